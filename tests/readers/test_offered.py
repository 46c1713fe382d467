"""Items that were offered and not ranked, and items that were not offered."""

import itertools

import numpy as np
import pandas as pd
import pytest
from helpers.readers import by_name, refusal, write

from numpyro_rankings import PartialOrders, Rankings, read_rankings, read_survey

RACES = "race,Ann,Bob,Cid,Dora\nr1,1,DNF,2,DNS\nr2,DNF,1,2,\nr3,1,2,dns,3\n"
LONG = (
    "judge,item,rank\nr1,Ann,1\nr1,Bob,DNF\nr1,Cid,2\nr1,Dora,DNS\nr2,Ann,DNF\nr2,Bob,1\nr2,Cid,2\n"
    "r3,Ann,1\nr3,Bob,2\nr3,Cid,DNS\nr3,Dora,3\n"
)
# whether an item was offered that has DNF, DNS, or nothing
WAYS = {
    "words for both": ({"offered": "DNF", "not_offered": "DNS"}, (True, False)),
    "below, but for DNS": ({"missing": "DNF", "not_offered": "DNS"}, (True, False)),
    "not offered, but for DNF": (
        {"missing": "DNS", "offered": "DNF", "unranked": "not-offered"},
        (True, False),
    ),
    "both below": ({"missing": "DNF,DNS"}, (True, True)),
    "both not offered": ({"missing": "DNF,DNS", "unranked": "not-offered"}, (False, False)),
    "words below": ({"offered": ["DNF", "DNS"], "unranked": "not-offered"}, (True, True)),
}


@pytest.mark.parametrize("layout", ["ranks", "long"])
@pytest.mark.parametrize("way", WAYS)
def test_all_ways(tmp_path, way, layout):
    options, (finished, started) = WAYS[way]
    text, judge = (RACES, "race") if layout == "ranks" else (LONG, "judge")
    survey = read_survey(write(tmp_path, text, "t.csv"), layout, judge=judge, **options)
    assert by_name(survey) == [["Ann", "Cid"], ["Bob", "Cid"], ["Ann", "Bob", "Dora"]]
    blank = options.get("unranked") != "not-offered"
    expected = np.array(
        [
            [True, finished, True, started],
            [finished, True, True, blank],
            [True, True, started, True],
        ]
    )
    offered = survey.rankings.offered()
    if expected.all():
        assert offered is None
    else:
        assert np.asarray(offered)[survey.label_index].tolist() == expected.tolist()


def test_the_words_are_counted(tmp_path):
    path = write(tmp_path, RACES, "t.csv")
    survey = read_survey(path, "ranks", judge="race", offered="DNF", not_offered="DNS,empty")
    assert "read as offered and not ranked: 'DNF' in 2 cells" in survey.notes
    assert "read as not offered: 'DNS' in 2 cells, 'empty' in 1 cell" in survey.notes
    assert not any("does not rank" in note for note in survey.notes)
    assert not survey.rankings.choice_sets[1, 3]


def test_an_empty_cell_of_a_long_table():
    table = pd.DataFrame(
        {"judge": [1, 1, 1, 2, 2], "item": list("abcab"), "rank": [1, None, 2, 2, 1]}
    )
    for unranked, offered in itertools.product(("below", "not-offered"), ((), "empty")):
        read = read_rankings(table, unranked=unranked, offered=offered)
        is_there = unranked == "below"
        expected = [[True, is_there or bool(offered), True], [True, True, is_there]]
        assert read.choice_sets is None or read.choice_sets.tolist() == expected
        assert (read.choice_sets is None) == is_there


def test_with_ties(tmp_path):
    text = RACES.replace("r3,1,2,dns,3", "r3,1,2,dns,2")
    path = write(tmp_path, text, "t.csv")
    read = read_rankings(path, "ranks", judge="race", offered="DNF", not_offered="DNS")
    offered = [[True, True, True, False], [True] * 4, [True, True, False, True]]
    buckets = [["Ann", "Cid"], ["Bob", "Cid"], ["Ann", ["Bob", "Dora"]]]
    assert read == PartialOrders.from_buckets(
        buckets, items=["Ann", "Bob", "Cid", "Dora"], choice_sets=offered
    )
    same = read_rankings(path, "ranks", judge="race", missing="DNF,DNS", unranked="not-offered")
    assert same.unlisted == "not-offered" and same.choice_sets is None


COLUMN = {
    "orders": "1st,2nd,offers\na,b,a;b;c\nc,a,\nb,d,b;d;e\n",
    "cell": 'list,offers\na>b,"a,b,c"\nc>a,\nb>d,"b,d,e"\n',
    "ranks": "a,b,c,d,e,offers\n1,2,,,,a|b|c\n2,,1,,,\n,1,,2,,b|d|e\n",
}


@pytest.mark.parametrize("unranked", ["below", "not-offered"])
@pytest.mark.parametrize("layout", COLUMN)
def test_a_column_lists_what_was_offered(tmp_path, layout, unranked):
    path = write(tmp_path, COLUMN[layout], "t.csv")
    columns = {"columns": "list"} if layout == "cell" else {}
    survey = read_survey(path, layout, offered="offers", unranked=unranked, **columns)
    assert by_name(survey) == [["a", "b"], ["c", "a"], ["b", "d"]]
    items = survey.rankings.items
    offered = np.asarray(survey.rankings.choice_sets)[survey.label_index]
    named = [{items[k] for k in np.flatnonzero(row)} for row in offered]
    assert named == [set("abc"), set("abcde") if unranked == "below" else set("ac"), set("bde")]
    assert any("offered, but ranked by nobody: e" in x for x in survey.notes) == (layout != "ranks")


def test_refusals(tmp_path):
    path = write(tmp_path, RACES, "t.csv")
    with refusal("'DNF' is in missing, which says nothing of what was offered"):
        read_survey(path, "ranks", judge="race", missing="DNF", offered="DNF,DNS")
    with refusal("'dnf' cannot mean both that an item was offered and that it was not"):
        read_survey(path, "ranks", judge="race", offered="DNF", not_offered="dnf")
    with refusal("got 'DNF'", "offered='DNF' or not_offered='DNF' if it says whether"):
        read_survey(path, "ranks", judge="race", not_offered="DNS")
    with refusal("offered and not_offered do not go with the rules of ballots"):
        read_survey(path, "ranks", judge="race", offered="DNF", overvote="stop")
    orders = write(tmp_path, COLUMN["orders"], "o.csv")
    with refusal("offered='DNF' says what cells mean in the layouts ranks and long; in the layout "
                 "orders offered= names a column"):  # fmt: skip
        read_survey(orders, "orders", about="offers", offered="DNF")
    wrong = write(tmp_path, COLUMN["orders"].replace("a;b;c", "b;c"), "w.csv")
    with refusal(
        "w.csv:2: 'a' is ranked, but is not among the items that the column 'offers' says"
    ):
        read_survey(wrong, "orders", offered="offers")


def test_strict_lists_stay_rankings(tmp_path):
    path = write(tmp_path, RACES, "t.csv")
    assert isinstance(read_rankings(path, "ranks", judge="race", offered="DNF,DNS"), Rankings)
