"""Ties in tables of every layout and in PrefLib files: exact, dropped, or in a random order."""

import numpy as np
import pandas as pd
import pytest
from helpers.readers import by_name, read_with_answers, refusal, write

from numpyro_rankings import PartialOrders, Rankings, RankingsError, read_rankings, read_survey

ITEMS = tuple("abcd")
# Ann: a > b = c > d; Bob: d > a; Cid: a = b, twice
BUCKETS = [["a", ["b", "c"], "d"], ["d", "a"], [["a", "b"]]]
COUNTS = [1, 1, 2]
RANKS = "judge,a,b,c,d,n\nAnn,1,2,2,4,1\nBob,2,,,1,1\nCid,1,1,,,2\n"
TABLES = {
    "ranks": (RANKS, {"layout": "ranks", "count": "n"}),
    "dense ranks": (RANKS.replace("2,4", "2,3"), {"layout": "ranks", "count": "n"}),
    "highest ranks": (RANKS.replace("1,2,2,4", "1,3,3,4"), {"layout": "ranks", "count": "n"}),
    "mean ranks": (
        RANKS.replace("1,2,2,4", "1,2.5,2.5,4").replace("1,1,,", "1.5,1.5,,"),
        {"layout": "ranks", "count": "n"},
    ),
    "highest first": (
        RANKS.replace("1,2,2,4", "4,3,3,2").replace("2,,,1", "3,,,4").replace("1,1,,,", "4,4,,,"),
        {"layout": "ranks", "count": "n", "highest_first": True},
    ),
    "any ranks": (
        RANKS.replace("1,2,2,4", "2,3,3,4") + "Dan,1,2,3,4,1\nEve,1,2,3,4,1\n",
        {"layout": "ranks", "gaps": "close", "count": "n"},
    ),
    "orders": (
        "judge,1st,2nd,3rd,n\nAnn,a,b|c,d,1\nBob,d,a,,1\nCid,a|b,,,2\nDan,b,c,,1\n",
        {"count": "n"},
    ),
    "orders with a mark": (
        "judge,1st,2nd,3rd,n\nAnn,a,b+c,d,1\nBob,d,a,,1\nCid,a+b,,,2\n",
        {"count": "n", "separator": "+"},
    ),
    "cell": (
        "judge,list,n\nAnn,a>b=c>d,1\nBob,d>a,1\nCid,a=b,2\n",
        {"columns": "list", "count": "n"},
    ),
    "cell by semicolons": (
        'judge,list,n\nAnn,"a;b,c;d",1\nBob,d;a,1\nCid,"a,b",2\n',
        {"columns": "list", "separator": ";", "count": "n", "items": ITEMS},
    ),
    "long": (
        "judge,item,rank,n\nAnn,b,2,1\nAnn,a,1,1\nAnn,d,4,1\nAnn,c,2,1\nBob,d,1,1\nBob,a,2,1\n"
        "Cid,a,1,2\nCid,b,1,2\n",
        {"count": "n"},
    ),
    "long with means": (
        "judge,item,rank,n\nAnn,b,2.5,1\nAnn,a,1,1\nAnn,d,4,1\nAnn,c,2.5,1\nBob,d,1,1\nBob,a,2,1\n"
        "Cid,a,1.5,2\nCid,b,1.5,2\n",
        {"count": "n"},
    ),
}
TOI = """\
# NUMBER ALTERNATIVES: 4
# NUMBER VOTERS: 4
# NUMBER UNIQUE ORDERS: 3
# ALTERNATIVE NAME 1: a
# ALTERNATIVE NAME 2: b
# ALTERNATIVE NAME 3: c
# ALTERNATIVE NAME 4: d
1: 1,{2,3},4
1: 4,1
2: {1,2}
"""


def read(tmp_path, kind, **options):
    """The survey of a table, whose last judges may be others than in BUCKETS."""
    text, own = TABLES[kind]
    given = {"judge": "judge", "items": ITEMS, **own, **options}
    return read_survey(write(tmp_path, text, "table.csv"), given.pop("layout", None), **given)


def levels_by_judge(survey):
    """The bucket of each item, by judge: what a survey says, however its rows are merged."""
    orders = survey.rankings
    levels = np.asarray(orders.levels_of_items())[np.asarray(orders.row_index)[survey.label_index]]
    return dict(zip(survey.judges, levels.tolist(), strict=True))


@pytest.mark.parametrize("ties", [None, "exact"])
@pytest.mark.parametrize("kind", TABLES)
def test_ties_as_they_are(tmp_path, kind, ties):
    survey = read(tmp_path, kind, ties=ties)
    found = levels_by_judge(survey)
    expected = PartialOrders.from_buckets(BUCKETS, items=ITEMS)
    levels = np.asarray(expected.levels_of_items()).tolist()
    assert [found[x] for x in ("Ann", "Bob", "Cid")] == levels
    counts = {x: survey.judges.count(x) for x in found}
    assert counts["Cid"] == 2
    total, tied = len(survey.judges), counts["Ann"] + counts["Cid"]
    (note,) = [x for x in survey.notes if "tie items" in x]
    assert note.startswith(f"{tied} of {total} judges tie items, which is read as no opinion")
    assert survey.rankings.unlisted == "below" and survey.rankings.choice_sets is None


@pytest.mark.parametrize("kind", TABLES)
def test_judges_with_ties_are_left_out(tmp_path, kind):
    survey = read(tmp_path, kind, ties="drop")
    assert isinstance(survey.rankings, Rankings)
    lists = dict(zip(survey.judges, by_name(survey), strict=True))
    assert not {"Ann", "Cid"} & lists.keys() and lists["Bob"] == ["d", "a"]
    assert any("and are left out" in note for note in survey.notes)


@pytest.mark.parametrize("kind", TABLES)
def test_tied_items_in_a_random_order(tmp_path, kind):
    survey, again = (read(tmp_path, kind, ties="order") for _ in range(2))
    assert isinstance(survey.rankings, Rankings) and survey.rankings == again.rankings
    lists = list(zip(survey.judges, map("".join, by_name(survey)), strict=True))
    assert dict(lists)["Bob"] == "da" and dict(lists)["Ann"] in ("abcd", "acbd")
    assert {x for judge, x in lists if judge == "Cid"} <= {"ab", "ba"}
    assert any("put in a random order" in note for note in survey.notes)


def test_each_judge_of_a_row_has_an_own_order():
    table = pd.DataFrame({"a": [1], "b": [1], "c": [3], "n": [1000]})
    counts = read_rankings(table, "ranks", count="n", ties="order").counts.tolist()
    assert sum(counts) == 1000 and abs(counts[0] - 500) < 80  # five standard deviations


def test_without_ties_nothing_changes(tmp_path):
    text = "judge,a,b,c\nx,1,2,3\ny,2,1,\n"
    path = write(tmp_path, text, "t.csv")
    plain = read_survey(path, "ranks", judge="judge")
    for ties in ("exact", "drop", "order"):
        survey = read_survey(path, "ranks", judge="judge", ties=ties)
        assert survey.rankings == plain.rankings and survey.notes == plain.notes
    assert isinstance(plain.rankings, Rankings)


def test_rules_of_ballots_win(tmp_path):
    survey = read_survey(write(tmp_path, RANKS, "t.csv"), "ranks", judge="judge", about="n",
                         overvote="stop", ties="exact")  # fmt: skip
    assert by_name(survey) == [["a"], ["d", "a"]] and survey.ballots.overvoted == 2
    with refusal("ties does not go with the layout votes; overvote= is the rule"):
        read_survey(pd.DataFrame({"1st": ["a"], "2nd": ["b"]}), "votes", ties="drop")
    with refusal("ties is 'exact' or 'drop' or 'order', not 'some'"):
        read_survey(pd.DataFrame({"a": [1], "b": [2]}), "ranks", ties="some")


@pytest.mark.parametrize("ranks", [(1, 2, 2, 5), (1, 1, 4, 4), (3, 3, 4, 4), (1, 2.5, 2.5, 5)])
def test_numbers_that_are_no_ranks_with_ties(ranks):
    table = pd.DataFrame([ranks, (1, 2, 3, 4)], columns=ITEMS)
    with refusal("row 1"):
        read_survey(table, "ranks")


def test_the_remedy_of_gaps_beside_ties():
    table = pd.DataFrame([(1, 1, 4, None), (1, 2, 3, 4)], columns=ITEMS)
    said = "row 1: the ranks are 1, 1, 4, with 'b' tied at 1; ranks with ties are numbered as"
    with refusal(said, "gaps='close'"):
        read_survey(table, "ranks")


def test_ratings_are_asked_about():
    table = pd.DataFrame([(4, 4, 5, 1), (3, 3, 2, 5), (1, 2, 2, 4)], columns=ITEMS)
    with refusal("comes twice or is above 4, as in ratings; of ratings, highest_first="):
        read_survey(table, "ranks", gaps="close")
    read = read_rankings(table, "ranks", ties="exact", gaps="close", highest_first=True)
    assert np.asarray(read.levels_of_items()).tolist() == [[1, 1, 0, 2], [1, 1, 2, 0], [2, 1, 1, 0]]
    # most rows have ties, and all are right as ranks
    ranks = read_rankings(pd.DataFrame([(2, 2, 1), (1, 2, 2), (2, 3, 1)]), "ranks")
    assert ranks == PartialOrders.from_ranks([(2, 2, 1), (1, 2, 2), (2, 3, 1)], items=list("012"))


def test_a_name_twice_in_ties(tmp_path):
    with refusal("column '2nd': 'b' is listed twice"):
        read_survey(pd.DataFrame({"1st": ["a|b", "a"], "2nd": ["b", "b"]}))
    with refusal("'b' is listed twice"):
        read_survey(pd.DataFrame({"x": ["a>b=b", "a>b"]}), "cell")
    with refusal("there is no item 'e'"):
        read_survey(pd.DataFrame({"x": ["a>b=e", "a>b"]}), "cell", items=ITEMS)
    with refusal("all judges tie items: ties='drop' leaves none"):
        read_survey(pd.DataFrame({"x": ["a>b=c", "c=b>a"]}), "cell", ties="drop")


def test_top_of_lists_with_ties():
    table = pd.DataFrame({"x": ["a>b=c", "c>b>a"]})
    with refusal(
        "top=2 goes with lists in which no items are tied: add ties='drop', or ties='order';"
    ):
        read_survey(table, "cell", top=2)
    tied = pd.DataFrame({"a": [1, 2, 1], "b": [2, 1, 2], "c": [2, 3, 3]})
    with refusal("add ties='drop', or ties='order', or overvote='stop';"):
        read_survey(tied, "ranks", top=2)
    assert by_name(read_survey(tied, "ranks", top=2, overvote="stop")) == [
        ["a"],
        ["b", "a"],
        ["a", "b"],
    ]
    assert by_name(read_survey(table, "cell", top=2, ties="drop")) == [["c", "b"]]


@pytest.mark.parametrize("kind", [*TABLES, "toi"])
def test_the_rule_that_ends_lists_before_ties_is_named_where_it_applies(tmp_path, kind):
    """By the rule, what is read is the list before the tie; other layouts do not take it."""
    path = write(tmp_path, TOI, "x.toi")
    survey = read_survey(path) if kind == "toi" else read(tmp_path, kind)
    (note,) = [x for x in survey.notes if "tie items" in x]
    is_said = "overvote='stop' to end a list before its first tie" in note
    assert is_said == (kind == "toi" or TABLES[kind][1].get("layout") == "ranks")
    if is_said and kind not in ("mean ranks", "any ranks"):
        ended = read_survey(path, overvote="stop") if kind == "toi" else read(
            tmp_path, kind, overvote="stop"
        )  # fmt: skip
        assert by_name(ended) == [["a"], ["d", "a"]]
    if is_said:  # without what is below a tie, it was not offered
        options = {"unranked": "not-offered"}
        survey = read_survey(path, **options) if kind == "toi" else read(tmp_path, kind, **options)
        assert not any("overvote" in note for note in survey.notes)


@pytest.mark.parametrize("layout", ["ranks", "long"])
def test_the_rule_beside_ties_that_are_refused(layout):
    rows = [(1, 1, 4, None), (1, 2, 3, 4)]
    table = pd.DataFrame(rows, columns=ITEMS)
    if layout == "long":
        lines = [(k, x, r) for k, row in enumerate(rows) for x, r in zip(ITEMS, row, strict=True)]
        table = pd.DataFrame(lines, columns=["judge", "item", "rank"])
    with pytest.raises(RankingsError, match="the ranks are 1, 1, 4, with 'b' tied") as error:
        read_survey(table, layout)
    assert ("overvote='stop' ends a list" in str(error.value)) == (layout == "ranks")
    rows = [(3, 3, 1), (2, 2, 1), (2, 3, 3)]
    table = pd.DataFrame(rows, columns=ITEMS[:3])
    if layout == "long":
        lines = [(k, x, r) for k, row in enumerate(rows) for x, r in zip(ITEMS, row, strict=False)]
        table = pd.DataFrame(lines, columns=["judge", "item", "rank"])
    with pytest.raises(RankingsError, match="if these are ranks with ties, ties='exact'") as error:
        read_survey(table, layout)
    assert ("overvote='stop' ends a list" in str(error.value)) == (layout == "ranks")


@pytest.mark.parametrize("kind", ["soi", "soc"])
def test_ties_in_strict_preflib_files(tmp_path, kind):
    text = TOI if kind == "soi" else TOI.replace("4,1", "4,{1,2,3}").replace("{1,2}", "{1,2},{3,4}")
    path = write(tmp_path, f"# DATA TYPE: {kind}\n{text}", f"x.{kind}")
    said, survey = read_with_answers(path)
    assert said == {"ties": "exact"}
    as_tied = write(tmp_path, text, f"x.to{kind[-1]}")
    assert survey.rankings == PartialOrders.from_preflib(as_tied)
    for options in ({"ties": "order"}, {"overvote": "stop"}, {"unranked": "not-offered"}):
        options = {"ties": "exact", **options}
        assert read_rankings(path, **options) == read_rankings(as_tied, **options)
    strict = write(tmp_path, TOI.replace("{", "").replace("}", ""), "y.soi")
    assert read_survey(strict, ties="exact").rankings == read_survey(strict).rankings
    assert read_survey(strict, ties="drop").notes == read_survey(strict).notes


@pytest.mark.parametrize("unranked", ["below", "not-offered"])
@pytest.mark.parametrize("kind", ["toi", "toc"])
def test_preflib_files(tmp_path, kind, unranked):
    text = TOI if kind == "toi" else TOI.replace("4,1", "4,{1,2,3}").replace("{1,2}", "{1,2},{3,4}")
    path = write(tmp_path, text, f"x.{kind}")
    survey = read_survey(path, unranked=unranked)
    assert survey.rankings == PartialOrders.from_preflib(path, unranked)
    assert survey.rows.tolist() == [8, 9, 10, 10] and survey.label_index.tolist() == [0, 1, 2, 3]
    assert survey.notes[0].startswith(f"{3 if kind == 'toi' else 4} of 4 judges tie items, which")
    order = read_survey(path, unranked=unranked, ties="order")
    assert isinstance(order.rankings, Rankings) and len(order.rankings) == 4
    assert order.rankings == read_rankings(path, unranked=unranked, ties="order")
    if kind == "toi":
        assert by_name(read_survey(path, ties="drop")) == [["d", "a"]]
    else:
        with refusal("all judges tie items"):
            read_survey(path, ties="drop")


def test_categories(tmp_path):
    head = TOI.partition("1: 1")[0].replace("UNIQUE ORDERS", "UNIQUE PREFERENCES")
    head += "# NUMBER CATEGORIES: 3\n"
    head += "".join(f"# CATEGORY NAME {k}: {x}\n" for k, x in enumerate(("Yes", "So-so", "No"), 1))
    path = write(tmp_path, head + "1: 1,{2,3},4\n2: {},{1,3,2,4},{}\n1: 4,{},2\n", "x.cat")
    survey = read_survey(path)
    assert survey.rankings == PartialOrders.from_preflib(path)
    assert survey.notes[0] == "categories are read as ties, the best first: Yes, So-so, No"
    assert survey.notes[1].startswith("3 of 4 judges tie items")
    assert by_name(read_survey(path, ties="drop")) == [["d", "b"]]
    assert isinstance(read_rankings(path, ties="order"), Rankings)
    path = write(tmp_path, head + "1: 1,{2,3},4\n2: {},{},{}\n1: 4,{},2\n", "x.cat")
    assert any("1 judge ranks nothing and is left out" in x for x in read_survey(path).notes)


def test_strict_preflib_files_of_items_that_were_not_offered(tmp_path):
    text = TOI.replace("1: 1,{2,3},4", "1: 1,2,3,4").replace("2: {1,2}", "2: 2,1")
    for kind in ("soi", "toi"):
        path = write(tmp_path, text, f"x.{kind}")
        read = read_rankings(path, unranked="not-offered")
        assert read == Rankings.from_preflib(path, unranked="not-offered")


MAYBE_TIED = "1st,2nd,3rd\nAnn,Bob,Cid\nBob,Cid,Ann\nCid,Ann{0}{1},{2}\n"


@pytest.mark.parametrize("other", ["Bob", "Zoe"])
@pytest.mark.parametrize("mark", ["/", " & ", "&", " + ", " // ", "~", " and ", "="])
@pytest.mark.parametrize("layout", ["orders", "cell"])
def test_a_text_with_known_names_is_a_tie_or_an_item(tmp_path, layout, mark, other):
    """Where all names are known, some marks are those of ties; else it is asked."""
    text = MAYBE_TIED.format(mark, other, "" if other == "Bob" else "Bob")
    if layout == "cell":
        text = "list" + text[text.index("\n") :].replace(",", ";").replace(";\n", "\n")
    path = write(tmp_path, text, "t.csv")
    one, known = f"Ann{mark}{other}", ["Ann", "Bob", "Cid"]
    tied = [["Ann", "Bob", "Cid"], ["Bob", "Cid", "Ann"]]
    tied.append(["Cid", ["Ann", other], *(["Bob"] if other == "Zoe" else [])])
    as_item = [*known, one]
    if other == "Bob" and mark in ("/", " // ", "=", "~"):
        read = read_rankings(path, layout)
        assert read == PartialOrders.from_buckets(tied, items=read.items) and len(read.items) == 3
    else:
        with pytest.raises(RankingsError) as error:
            read_survey(path, layout)
        assert repr(one) in str(error.value) and "several" in str(error.value)
        found = error.value.questions
        assert found.is_read
        read = read_rankings(path, layout, **found.options)
        if found.options.get("items") != as_item:
            assert read == PartialOrders.from_buckets(tied, items=read.items)
    # with all names it is what they say
    strict = read_rankings(path, layout, items=as_item)
    assert strict.items == tuple(as_item) and not strict.are_partial


def test_marks_within_names_are_asked_about_only_beside_the_names(tmp_path):
    text = "1st,2nd\nR&B,AC/DC\nAC/DC,Salt & Pepper\nSalt & Pepper,C++\nC++,R&B\n"
    assert len(read_rankings(write(tmp_path, text, "t.csv"), "orders").items) == 4
    mixed = text + "Salt & Pepper,Pepper\n"
    with refusal(
        "t.csv:3: column '2nd': is 'Salt & Pepper' one name, or several? Add separator='&' if it "
        "is 'Salt', 'Pepper', or items= with all"
    ):
        read_rankings(write(tmp_path, mixed, "t.csv"), "orders")
