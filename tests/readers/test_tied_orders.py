"""PrefLib files with ties and categories as partial orders."""

import numpy as np
import pytest
from helpers.readers import refusal, write

from numpyro_rankings import PartialOrders, Rankings, RankingsError
from numpyro_rankings.words.options import options_of_commands

NAMES = "".join(f"# ALTERNATIVE NAME {k}: {x}\n" for k, x in enumerate("ABCD", start=1))
ORDERS = f"# NUMBER ALTERNATIVES: 4\n# NUMBER VOTERS: 20\n# NUMBER UNIQUE ORDERS: {{}}\n{NAMES}{{}}"
TOI = ORDERS.format(4, "9: 1,{2,3},4\n6: {4}\n2: {2, 1 } ,3\n1:{1,2,3,4}\n2: 1,{3,2},4\n")
TOC = ORDERS.format(3, "11: 1,{2,3},4\n8: {1,4},{3,2}\n1: 4,3,2,1\n")
SOI = ORDERS.format(2, "11: 1,2\n9: 4,3,1\n")
CAT = f"""\
# NUMBER ALTERNATIVES: 4
# NUMBER VOTERS: 12
# NUMBER UNIQUE PREFERENCES: 5
# NUMBER CATEGORIES: 3
# CATEGORY NAME 1: Yes
# CATEGORY NAME 2: Perhaps
# CATEGORY NAME 3: No
{NAMES}\
5: 1,{{2,3,4}},{{}}
3: {{}},{{}},{{1,2,3,4}}
2: {{1, 3}},{{}}, {{2,4}}
1: 3,4,{{}}
1: 4,{{}},3
"""
EXPECTED = {
    "small.toi": (
        TOI,
        [[0, [1, 2], 3], [3], [[0, 1], 2], [[0, 1, 2, 3]]],
        [11, 6, 2, 1],
    ),
    "small.toc": (TOC, [[0, [1, 2], 3], [[0, 3], [1, 2]], [3, 2, 1, 0]], [11, 8, 1]),
    "small.soi": (SOI, [[0, 1], [3, 2, 0]], [11, 9]),
    "small.cat": (
        CAT,
        [[0, [1, 2, 3]], [[0, 1, 2, 3]], [[0, 2], [1, 3]], [2, 3], [3, 2]],
        [5, 3, 2, 1, 1],
    ),
}


@pytest.mark.parametrize("unranked", ["below", "not-offered"])
@pytest.mark.parametrize("name", EXPECTED)
def test_read_files(tmp_path, name, unranked):
    text, buckets, counts = EXPECTED[name]
    p = PartialOrders.from_preflib(write(tmp_path, text, name), unranked)
    assert p == PartialOrders.from_buckets(buckets, 4, list("ABCD"), counts, None, unranked)
    assert p.are_buckets.all() and p.ids is None


def test_files_without_ties_are_those_of_rankings(tmp_path):
    path = write(tmp_path, SOI, "small.soi")
    assert PartialOrders.from_preflib(path).to_rankings() == Rankings.from_preflib(path)
    strict = TOC.replace("{2,3}", "2,3").replace("{1,4},{3,2}", "1,4,3,2")
    p = PartialOrders.from_preflib(write(tmp_path, strict, "strict.toc"))
    assert p.listed.tolist() == [[0, 1, 2, 3], [0, 3, 2, 1], [3, 2, 1, 0]]
    assert not np.asarray(p.has_ties).any()


BROKEN = {
    "nothing": ("a.cat", CAT.replace("1: 4,{},3", "1: {},{},{}"), ":16: a judge who puts no item"),
    "twice": ("a.toi", TOI.replace("{2, 1 } ,3", "{2,1},2"), "item 2 ('B') is listed twice"),
    "empty": ("a.toi", TOI.replace("{2, 1 } ,3", "{},3"), ":10: an empty tie '{}' in '{},3'"),
    "outside": ("a.toc", TOC.replace("8: {1,4}", "8: {1,5}"), ":9: item 5 is outside 1..4"),
    "incomplete": ("a.toc", TOC.replace("1: 4,3,2,1", "1: 4,3,2"), "item 1 ('A') is missing"),
    "count": ("a.toi", TOI.replace("6: {4}", "6.5: {4}"), "count '6.5' is not a positive whole"),
    "voters": ("a.toi", TOI.replace("6: {4}", "7: {4}"), ":2: NUMBER VOTERS is 20, but"),
    "a graph": (
        "a.wmd",
        f"# NUMBER ALTERNATIVES: 4\n# NUMBER EDGES: 1\n{NAMES}1,2,1.0\n",
        "a .wmd file holds the weights of a matching graph, which are not orders",
    ),
    "one item": (
        "a.cat",
        "# NUMBER ALTERNATIVES: 1\n# NUMBER VOTERS: 1\n# NUMBER UNIQUE PREFERENCES: 1\n"
        "# NUMBER CATEGORIES: 1\n# CATEGORY NAME 1: Yes\n# ALTERNATIVE NAME 1: A\n1: 1\n",
        ":1: a ranking needs at least 2 items, got 1",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(tmp_path, name):
    file, text, message = BROKEN[name]
    path = write(tmp_path, text, file)
    with refusal(message, start=str(path)):
        PartialOrders.from_preflib(path)
    with refusal("unranked is 'below' or 'not-offered', not 'last'"):
        PartialOrders.from_preflib(path, "last")


def test_refusals_of_ties_name_partial_orders(tmp_path):
    tied = write(tmp_path, TOI, "small.toi")
    with refusal("passes over ties; PartialOrders.from_preflib takes them as they are"):
        Rankings.from_preflib(tied)
    with refusal("PartialOrders.from_preflib reads it"):
        Rankings.from_preflib(write(tmp_path, CAT, "small.cat"))
    with refusal("1 ranking of 1 has ties, which PartialOrders.from_ranks takes; read_rankings("):
        Rankings.from_ranks([[1, 2, 2, 3]])
    with options_of_commands(), pytest.raises(RankingsError, match=r"skip passes over ties$"):
        Rankings.from_preflib(tied)
