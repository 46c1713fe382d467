"""PrefLib files that are no strict orders, checked against preflibtools, and broken ones."""

import itertools

import numpy as np
import pytest
from helpers.readers import refusal, write
from preflibtools.instances import CategoricalInstance, MatchingInstance, OrdinalInstance

from numpyro_rankings import read_rankings, read_survey
from numpyro_rankings.rankings import Rankings, RankingsError
from numpyro_rankings.readers.preflib import read_preflib
from numpyro_rankings.readers.unsupported import (
    Categories,
    MatchingGraph,
    TiedOrders,
    read_unsupported,
)

HEADER = """\
# FILE NAME: small.{0}
# TITLE: A small election: part 1
# DATA TYPE: {0}
# NUMBER ALTERNATIVES: 4
"""
NAMES = "".join(f"# ALTERNATIVE NAME {k}: {x}\n" for k, x in enumerate("ABCD", start=1))
TOI = f"""{HEADER.format("toi")}\
# NUMBER VOTERS: 20
# NUMBER UNIQUE ORDERS: 4
{NAMES}\
11: 1,{{2,3}},4
6: {{4}}
2: {{2, 1 }} ,3
1:{{1,2,3,4}}
"""
TOC = TOI.replace("toi", "toc").replace("6: {4}", "6: 4,{1,3,2}").replace("1 } ,3", "1 } ,3,4")
CAT = f"""{HEADER.format("cat")}\
# OFFICIAL RESULTS: {{A: 71, B: 52}}
# NUMBER VOTERS: 12
# NUMBER UNIQUE PREFERENCES: 4
# NUMBER CATEGORIES: 2
# CATEGORY NAME 0: Yes
# CATEGORY NAME 1: No
{NAMES}\
6: 1,{{2,3,4}}
3: {{}},{{1,2,3,4}}
2: {{1, 3}}, {{2,4}}
1: 3,4
"""
WMD = f"""{HEADER.format("wmd")}\
# NUMBER EDGES: 5
{NAMES}\
1,2,1.0
1, 3, 0.5
2,1,-2
3,3,1e-3
4,1,0
"""
FILES = {"toi": TOI, "toc": TOC, "cat": CAT, "wmd": WMD}


def test_orders_with_ties(tmp_path):
    read = read_unsupported(write(tmp_path, TOI, "small.toi"))
    assert isinstance(read, TiedOrders)
    assert read.items == tuple("ABCD")
    assert read.orders == [((0,), (1, 2), (3,)), ((3,),), ((0, 1), (2,)), ((0, 1, 2, 3),)]
    assert read.counts.tolist() == [11, 6, 2, 1]


def test_categories(tmp_path):
    read = read_unsupported(write(tmp_path, CAT, "small.cat"))
    assert isinstance(read, Categories)
    assert read.items == tuple("ABCD") and read.categories == ("Yes", "No")
    assert read.table.tolist() == [[0, 1, 1, 1], [1, 1, 1, 1], [0, 1, 0, 1], [-1, -1, 0, 1]]
    assert read.counts.tolist() == [6, 3, 2, 1]


def test_matching_graph(tmp_path):
    read = read_unsupported(write(tmp_path, WMD, "small.wmd"))
    assert isinstance(read, MatchingGraph)
    assert read.nodes == tuple("ABCD")
    assert read.edges.tolist() == [[0, 1], [0, 2], [1, 0], [2, 2], [3, 0]]
    assert read.weights.tolist() == [1.0, 0.5, -2.0, 1e-3, 0.0]


def random_groups(rng, num_items, is_complete):
    """An order of random groups of items, as preflibtools has it."""
    length = num_items if is_complete else rng.integers(1, num_items + 1)
    items = (rng.permutation(num_items)[:length] + 1).tolist()
    cuts = [0, *(np.flatnonzero(rng.random(length - 1) < 0.6) + 1).tolist(), length]
    return tuple(tuple(sorted(items[a:b])) for a, b in itertools.pairwise(cuts))


@pytest.mark.parametrize("kind", ["toc", "toi"])
def test_ties_agree_with_preflibtools(tmp_path, kind):
    rng = np.random.default_rng(0)
    theirs = OrdinalInstance()
    theirs.append_order_list([random_groups(rng, 6, kind == "toc") for _ in range(300)])
    path = tmp_path / f"random.{kind}"
    theirs.write(str(path))
    theirs = OrdinalInstance(str(path))
    assert theirs.infer_type() == kind
    ours = read_unsupported(path)
    assert ours.items == tuple(theirs.alternatives_name.values())
    assert ours.counts.sum() == theirs.num_voters and len(ours.orders) == theirs.num_unique_orders
    read = [tuple(tuple(k + 1 for k in group) for group in order) for order in ours.orders]
    assert read == theirs.orders
    assert ours.counts.tolist() == [theirs.multiplicity[order] for order in theirs.orders]


def test_categories_agree_with_preflibtools(tmp_path):
    rng = np.random.default_rng(1)
    orders = OrdinalInstance()
    orders.append_order_list([random_groups(rng, 5, False) for _ in range(200)])
    theirs = CategoricalInstance.from_ordinal(orders, num_indif_classes=[1, 2])
    theirs.num_voters = orders.num_voters
    theirs.factorise_instance(reset_multiplicity=False)
    theirs.multiplicity = {key: 3 for key in theirs.multiplicity}
    theirs.preferences = list(theirs.multiplicity)
    theirs.recompute_cardinality_param()
    path = tmp_path / "random.cat"
    theirs.write(str(path))
    theirs, ours = CategoricalInstance(str(path)), read_unsupported(path)
    assert ours.categories == tuple(theirs.categories_name.values())
    assert len(ours.counts) > 50 and ours.counts.sum() == theirs.num_voters
    # preflibtools takes groups for different whose items are in another order
    expected = {}
    for groups, count in theirs.multiplicity.items():
        row = [-1] * 5
        for k, group in enumerate(groups):
            for item in group:
                row[item - 1] = k
        expected[tuple(row)] = expected.get(tuple(row), 0) + count
    table = map(tuple, ours.table.tolist())
    assert dict(zip(table, ours.counts.tolist(), strict=True)) == expected


def test_graphs_agree_with_preflibtools(tmp_path):
    rng = np.random.default_rng(2)
    theirs = MatchingInstance()
    theirs.num_alternatives, theirs.data_type = 9, "wmd"
    theirs.alternatives_name = {k: f"Pair {k}" for k in range(1, 10)}
    for a, b, weight in zip(*rng.integers(1, 10, (2, 40)), rng.normal(size=40), strict=True):
        theirs.add_edge(int(a), int(b), float(weight))
    theirs.num_edges = len(theirs.edges())
    path = tmp_path / "random.wmd"
    theirs.write(str(path))
    theirs, ours = MatchingInstance(str(path)), read_unsupported(path)
    assert ours.nodes == tuple(theirs.alternatives_name.values())
    edges = (ours.edges + 1).tolist()
    read = {(a, b, w) for (a, b), w in zip(edges, ours.weights.tolist(), strict=True)}
    assert read == theirs.edges() and len(edges) == theirs.num_edges


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace(NAMES, NAMES + "\n \n") + " \n\n",
        lambda text: text.replace(NAMES, NAMES + "# A remark\n# Edited: yes\n"),
        lambda text: "".join(line for line in text.splitlines(True) if "DATA TYPE" not in line),
        lambda text: text.replace("{4}", "4").replace(",", " ,\t").replace("{}", "{\t }").rstrip(),
    ],
    ids=["windows", "old mac", "mark", "blanks", "remarks", "no type", "spaces"],
)
@pytest.mark.parametrize("kind", list(FILES))
def test_the_same_file_in_other_clothes(tmp_path, kind, change):
    read = read_unsupported(write(tmp_path, change(FILES[kind]), f"small.{kind}"))
    expected = read_unsupported(write(tmp_path, FILES[kind], f"other.{kind}"))
    for ours, other in zip(read, expected, strict=True):
        np.testing.assert_equal(ours, other)


def test_repeated_lines_are_merged(tmp_path):
    text = TOI.replace("11: 1,{2,3},4", "9: 1,{2,3},4\n2: 1,{3,2},4")
    for number in (4, 5):  # preflibtools takes {2,3} and {3,2} for different
        read = read_unsupported(
            write(tmp_path, text.replace("S: 4\n# A", f"S: {number}\n# A"), "x.toi")
        )
        assert len(read.orders) == 4
        assert read.counts.tolist() == [11, 6, 2, 1]
    text = CAT.replace("6: 1,{2,3,4}", "5: 1,{2,3,4}\n1: 1,{4,3,2}")
    read = read_unsupported(write(tmp_path, text, "x.cat"))
    assert read.counts.tolist() == [6, 3, 2, 1] and read.num_repeated == 1


def test_files_without_ties_are_strict_orders(tmp_path):
    """Their type is inferred as that of strict orders by preflibtools, too."""
    strict = TOI.replace("{2,3}", "2,3").replace("{2, 1 }", "2,1").replace("{1,2,3,4}", "{2}")
    path = write(tmp_path, strict, "small.toi")
    assert read_unsupported(path) is None
    rankings = read_preflib(path)
    assert rankings == Rankings.from_preflib(path) == read_rankings(path)
    assert rankings.orderings.tolist() == [
        [0, 1, 2, 3],
        [3, -1, -1, -1],
        [1, 0, 2, -1],
        [1, -1, -1, -1],
    ]
    other = OrdinalInstance(str(path))
    assert other.infer_type() == "soi"
    assert [tuple(k for (k,) in order) for order in other.orders] == [
        tuple(k + 1 for k in row if k >= 0) for row in rankings.orderings.tolist()
    ]
    assert read_survey(path).notes == [
        "no order of the .toi file has a tie: it is read as strict orders"
    ]
    complete = TOC
    for old, new in (("1,{2,3},4", "1,2,3,4"), ("{1,3,2}", "1,3,2"), ("{2, 1 } ", "2,{1}")):
        complete = complete.replace(old, new)
    complete = complete.replace("{1,2,3,4}", "4,3,2,1")
    path = write(tmp_path, complete, "small.toc")
    assert read_preflib(path).lengths.tolist() == [4] * 4
    assert OrdinalInstance(str(path)).infer_type() == "soc"
    soi = write(tmp_path, strict.replace("toi", "soi"), "small.soi")
    assert read_survey(soi).notes == [] and read_unsupported(soi) is None


@pytest.mark.parametrize("read", [read_rankings, read_survey])
def test_matching_graphs_are_refused(tmp_path, read):
    path = write(tmp_path, WMD, "small.wmd")
    with pytest.raises(RankingsError, match=r"small.wmd:3: a .wmd file holds the weights") as error:
        read(path)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


@pytest.mark.parametrize("read", [read_preflib, Rankings.from_preflib])
def test_ties_categories_and_weights_are_refused(tmp_path, monkeypatch, read):
    monkeypatch.chdir(tmp_path)
    for kind, text in FILES.items():
        write(tmp_path, text, f"small.{kind}")
    refused = {
        "toi": "small.toi:11: 'B', 'C' are tied; .* judges have ties: overvote='stop' ends",
        "cat": "small.cat:3: a .cat file holds items in categories.*'numpyro-rankings describe'",
        "wmd": "small.wmd:3: a .wmd file holds the weights of a matching graph.*describe'",
    }
    for kind, message in refused.items():
        with pytest.raises(RankingsError, match=message) as error:
            read(f"small.{kind}")
        assert "\n" not in str(error.value) and len(str(error.value)) < 250
    # only last items are tied, as in PrefLib's files of ballots to which the others were added
    last = TOC.replace("1,{2,3},4", "1,{2,3,4}").replace("{2, 1 } ,3,4", "3,4,1,2")
    last = last.replace("{1,2,3,4}", "2,1,{3,4}")
    write(tmp_path, last, "small.toc")
    message = r"small.toc:11: 'B', 'C' and 1 more are tied; .* the last items are tied"
    with pytest.raises(RankingsError, match=message):
        read("small.toc")
    all_tied = last.replace("2,1,{3,4}", "{1,2,3,4}")
    with pytest.raises(RankingsError, match=r"overvote='skip' passes over ties"):
        read(write(tmp_path, all_tied, "small.toc"))


def edit(kind, *changes):
    text = FILES[kind]
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return kind, text


# what to read: the line that the message names, and fragments of the message
BAD = {
    "empty": (("toi", ""), 1, ["empty"]),
    "old orders": (("toi", "3\n1,A\n2,B\n3,C\n2,2,1\n2,1,{2,3}\n"), 1, ["old format"]),
    "old graph": (("wmd", "2,1\n1,Pair 1\n2,Pair 2\n1,2,1.0\n"), 1, ["old format"]),
    "latin-1": (("cat", CAT.replace("A small", "Ä").encode("latin-1")), 2, ["UTF-8"]),
    "other type": (edit("toi", ("TYPE: toi", "TYPE: soi")), 3, ["soi", ".toi file"]),
    "nested braces": (
        edit("toi", ("{2,3}", "{2,{3}}")),
        11,
        ["braces within braces", "'1,{2,{3}}"],
    ),
    "no end of braces": (edit("toi", ("{2,3}", "{2,3")), 11, ["'{' without '}'"]),
    "no begin of braces": (edit("toi", ("{2,3}", "2,3}")), 11, ["'}' without '{'"]),
    "empty tie": (edit("toi", ("{2,3}", "{}")), 11, ["an empty tie '{}'"]),
    "blank tie": (edit("toi", ("{2,3}", "{ }")), 11, ["an empty tie '{}'"]),
    "no comma": (edit("toi", ("{2,3},4", "{2,3}4")), 11, ["a comma is missing", "'1,{2,3}4'"]),
    "no comma before": (edit("toi", ("1,{2,3}", "1{2,3}")), 11, ["a comma is missing"]),
    "comma in braces": (edit("toi", ("{2,3}", "{2,}")), 11, ["item ''", "place 3"]),
    "two ties": (edit("toi", ("1,{2,3},4", "{1,2},{2,3}")), 11, ["item 2 ('B')", "twice"]),
    "tied with itself": (edit("toi", ("{2,3}", "{2,2}")), 11, ["item 2 ('B')", "twice"]),
    "tie outside": (edit("toi", ("{2,3}", "{2,5}")), 11, ["item 5 is outside 1..4"]),
    "tie of 0": (edit("toi", ("{2,3}", "{0,3}")), 11, ["item 0 is outside 1..4"]),
    "a name in a tie": (edit("toi", ("{2,3}", "{2,C}")), 11, ["item 'C'"]),
    "not complete": (edit("toc", ("{1,3,2}", "{1,3}")), 12, ["item 2 ('B') is missing", ".toc"]),
    "voters": (edit("toi", ("VOTERS: 20", "VOTERS: 21")), 5, ["21", "sum to 20"]),
    "unique orders": (edit("toi", ("ORDERS: 4", "ORDERS: 3")), 6, ["3", "4 distinct orders"]),
    "weight": (edit("toi", ("11: 1", "10.5: 1")), 11, ["'10.5'", "weights are not counts"]),
    "too many": (
        edit("toi", ("11: 1", f"{2**31}: 1"), ("VOTERS: 20", f"VOTERS: {2**31 + 9}")),
        11,
        ["2147483648", "more than 2147483647"],
    ),
    "blank name": (edit("toi", ("NAME 2: B", "NAME 2:  ")), 8, ["item 2", "empty"]),
    "same names": (edit("toi", ("NAME 2: B", "NAME 2: A")), 8, ["items 1 and 2", "'A'"]),
    "no orders": (("toi", TOI[: TOI.index("11:")]), 10, ["no rankings"]),
    "few categories": (
        edit("cat", ("6: 1,{2,3,4}", "6: {1,2,3,4}")),
        15,
        ["2 categories", "got 1"],
    ),
    "many categories": (edit("cat", ("{1, 3}", "1,3")), 17, ["2 categories", "got 3"]),
    "two categories": (edit("cat", ("6: 1,", "6: {1,2},")), 15, ["item 2 ('B')", "twice"]),
    "category outside": (edit("cat", ("6: 1,", "6: 5,")), 15, ["item 5 is outside 1..4"]),
    "nested category": (edit("cat", ("{1, 3}", "{1,{3}}")), 17, ["braces within braces"]),
    "no judges": (("cat", CAT[: CAT.index("6: 1")]), 14, ["no judges"]),
    "judges": (edit("cat", ("VOTERS: 12", "VOTERS: 13")), 6, ["13", "sum to 12"]),
    "preferences": (edit("cat", ("ENCES: 4", "ENCES: 5")), 7, ["5", "4 distinct"]),
    "category names": (edit("cat", ("ORIES: 2", "ORIES: 3")), 8, ["3", "2 lines '# CATEGORY NAME"]),
    "no categories": (edit("cat", ("# NUMBER CATEGORIES: 2\n", "")), 17, ["NUMBER CATEGORIES"]),
    "category of blank": (edit("cat", ("1: No", "1:")), 10, ["category 1", "empty"]),
    "same categories": (edit("cat", ("1: No", "1: Yes")), 10, ["categories 0 and 1", "'Yes'"]),
    "category twice": (edit("cat", ("NAME 1: No", "NAME 0: No")), 10, ["already, on line 9"]),
    "category in words": (edit("cat", ("NAME 1: No", "NAME x: No")), 10, ["a number k from 0"]),
    "count of 0": (edit("cat", ("6: 1,", "0: 1,")), 15, ["count 0 is not a positive"]),
    "edges": (edit("wmd", ("EDGES: 5", "EDGES: 6")), 5, ["6", "5 edges"]),
    "no edges": (edit("wmd", ("# NUMBER EDGES: 5\n", "")), 13, ["NUMBER EDGES"]),
    "edge twice": (edit("wmd", ("2,1,-2", "1,2,4")), 12, ["1 to 2", "already, on line 10"]),
    "node outside": (edit("wmd", ("3,3,1e-3", "3,5,1")), 13, ["node 5 is outside 1..4"]),
    "node 0": (edit("wmd", ("3,3,1e-3", "0,3,1")), 13, ["node 0 is outside 1..4"]),
    "no weight": (edit("wmd", ("3,3,1e-3", "3,3")), 13, ["'from,to,weight'", "'3,3'"]),
    "weight in words": (edit("wmd", ("3,3,1e-3", "3,3,heavy")), 13, ["weight 'heavy'"]),
    "weight nan": (edit("wmd", ("3,3,1e-3", "3,3,nan")), 13, ["weight 'nan'"]),
    "weight inf": (edit("wmd", ("3,3,1e-3", "3,3,inf")), 13, ["weight 'inf'"]),
    "decimal comma": (edit("wmd", ("3,3,1e-3", "3,3,0,5")), 13, ["weight '0,5'"]),
    "a tie in a graph": (edit("wmd", ("3,3,1e-3", "1: {2,3}")), 13, ["'from,to,weight'"]),
}


@pytest.mark.parametrize("name", list(BAD))
def test_bad_files(tmp_path, monkeypatch, name):
    (kind, text), line, fragments = BAD[name]
    monkeypatch.chdir(tmp_path)
    write(tmp_path, text, f"bad.{kind}")
    with refusal(*fragments, start=f"bad.{kind}:{line}: ", below=250):
        read_unsupported(f"bad.{kind}")


def test_long_broken_lines_are_refused_at_once(tmp_path):
    """A pattern that tries every division of a line would not return."""
    for tail in ("}" * 50_000, ",{" * 50_000, "{1" + " , 1" * 50_000, "1" * 100_000):
        with refusal(":11: ", below=250):
            read_unsupported(write(tmp_path, TOI.replace("{2,3}", tail), "long.toi"))
