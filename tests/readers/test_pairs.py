"""Tables of paired comparisons: which they are, in which forms, and what is refused."""

import numpy as np
import openpyxl
import pandas as pd
import pytest
from helpers.readers import joined, refusal, write

from numpyro_rankings import PartialOrders, read_rankings, read_survey

WINS = [("tea", "maté"), ("maté", "cocoa"), ("tea", "cocoa"), ("tea", "maté")]
TWO_COLUMNS = [
    ("winner", "loser"),
    ("Winner", "Loser"),
    ("top_item", "bottom_item"),
    ("preferred", "other"),
    ("chosen", "rejected"),
    ("won", "lost"),
    ("winner_id", "loser_id"),
    ("Winning team", "Losing team"),
    ("preferred_option", "other_option"),
    ("chosen_response", "rejected_response"),
]


def pairs_of(survey):
    """What each row says, in the order of the file: ``a b``, or ``a=b`` of a tie."""
    orders = survey.rankings
    rows = np.asarray(orders.row_index)[survey.label_index]
    marks = np.where(np.asarray(orders.has_ties), "=", " ")
    names = [[orders.items[k] for k in row] for row in orders.listed.tolist()]
    return [
        marks[row].join(sorted(names[row]) if marks[row] == "=" else names[row]) for row in rows
    ]


@pytest.mark.parametrize("layout", [None, "pairs"])
@pytest.mark.parametrize("names", TWO_COLUMNS)
def test_columns_of_the_winner_and_the_loser(names, layout):
    frame = pd.DataFrame(WINS, columns=names)[[names[1], names[0]]]
    survey = read_survey(frame, layout)
    assert pairs_of(survey) == [f"{a} {b}" for a, b in WINS] and survey.layout == "pairs"
    expected = PartialOrders.from_pairs(pd.DataFrame(WINS, columns=["winner", "loser"]))
    assert {*survey.rankings.items} == {*expected.items}
    assert survey.rankings.counts.tolist() == [2, 1, 1]
    for other in ("orders", "ranks", "votes"):
        with refusal("called as those of paired comparisons", "add layout='pairs'"):
            read_survey(frame, other)


@pytest.mark.parametrize("names", TWO_COLUMNS[:3])
def test_pairs_may_be_read_as_orders(names):
    frame = pd.DataFrame(WINS, columns=names)[[names[1], names[0]]]
    survey = read_survey(frame, "orders", columns=list(names), unranked="not-offered")
    assert joined(survey) == [f"{a} {b}" for a, b in WINS]
    assert np.asarray(survey.rankings.choice_sets).sum(1).tolist() == [2, 2, 2]


def test_judges_and_their_closure():
    frame = pd.DataFrame(WINS, columns=["winner", "loser"]).assign(who=[1, 1, 2, 2], n=[3, 3, 1, 1])
    survey = read_survey(frame, judge="who", count="n")
    assert survey.judges == ["1"] * 3 + ["2"]
    expected = PartialOrders.from_pairs(frame, judge="who", count="n")
    assert survey.rankings == expected
    assert "comparisons: 4 by 2 judges" in survey.notes
    with refusal("column 'n' is '1', but '3' in an earlier row of judge '1'"):
        read_survey(frame.assign(n=[3, 1, 1, 1]), judge="who", count="n")


def test_numbers_of_games():
    frame = pd.DataFrame(WINS, columns=["winner", "loser"]).assign(games=[3, 1, 1, 2])
    read = read_rankings(frame, count="games")
    assert read == PartialOrders.from_pairs(frame, count="games") and len(read) == 7
    with refusal("expected a positive whole number, got '0'"):
        read_rankings(frame.assign(games=[3, 0, 1, 2]), count="games")


def test_what_may_name_the_judges_is_said():
    frame = pd.DataFrame(WINS, columns=["winner", "loser"]).assign(user=list("xxyy"))
    notes = read_survey(frame).notes
    assert (
        "each line is read as a judge of its own: use judge='user' if 'user' names the judges"
        in notes
    )
    assert "columns left out: 'user'" in notes


@pytest.mark.parametrize(
    "names",
    [
        ("model_a", "model_b", "winner"),
        ("item1", "item2", "choice"),
        ("Left", "Right", "preferred"),
        ("option A", "option B", "outcome"),
        ("home", "away", "result"),
        ("left", "right", "label"),
        ("player1", "player2", "winner_name"),
        ("option1", "option2", "selected_option"),
        ("team_home", "team_away", "winning team"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_columns_of_two_items_and_the_outcome(tmp_path, names, suffix):
    rows = [names, ("tea", "maté", "tea"), ("maté", "cocoa", "cocoa"), ("cocoa", "tea", "tie")]
    path = tmp_path / f"t{suffix}"
    if suffix == ".xlsx":
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(path)
    else:
        write(tmp_path, "\n".join(",".join(row) for row in rows), "t.csv")
    assert pairs_of(read_survey(path)) == ["tea maté", "cocoa maté", "cocoa=tea"]
    with refusal("paired comparisons", "add layout='pairs'"):
        read_survey(path, "votes")


OUTCOMES = {
    "1-0": ("White", "Black", ("1-0", "0-1", "1/2-1/2")),
    "½": ("White", "Black", ("1-0", "0 - 1", "½-½")),
    "score": ("player1", "player2", ("1", "0", "0.5")),
    "numbers": ("home", "away", ("1", "2", "0")),
    "toto": ("home", "away", ("1", "2", "X")),
    "words": ("home", "away", ("W", "L", "D")),
    "letters": ("home", "away", ("H", "A", "D")),
    "colours": ("White", "Black", ("white", "black", "draw")),
    "points": ("home", "away", ("3-1", "0:2", "1-1")),
    "columns": ("model_a", "model_b", ("model_a", "model_b", "tie (bothbad)")),
    "ends": ("model_a", "model_b", ("A", "B", "tie")),
    "items": ("model_a", "model_b", ("a", "c", "Tie")),
}


@pytest.mark.parametrize("ties", [None, "exact", "drop"])
@pytest.mark.parametrize("form", OUTCOMES)
def test_results_of_games(form, ties):
    one, two, results = OUTCOMES[form]
    frame = pd.DataFrame({one: list("abc"), two: list("bca"), "Result": results})
    survey = read_survey(frame, ties=ties)
    assert pairs_of(survey) == ["a b", "c b", *([] if ties == "drop" else ["a=c"])]
    how = "and are left out" if ties == "drop" else "which are read as no opinion"
    assert any(x.startswith(f"1 of 3 comparisons are ties, {how}") for x in survey.notes)
    with refusal("ties='order' does not go with pairs, of which 1 of 3 comparisons are ties"):
        read_survey(frame, ties="order")


def test_outcomes_that_may_be_read_in_two_ways():
    frame = pd.DataFrame({"left": list("abc"), "right": list("bca"), "label": [0, 1, 0]})
    with refusal("column 'label': does 0 in 'label' mean that 'left' is preferred, or 'right'?"):
        read_survey(frame)
    frame = pd.DataFrame({"left": list("xyz"), "right": list("yzx"), "winner": ["x", "q", "x"]})
    with refusal("row 2: column 'winner': 'q' says of 'y' and 'z' which is preferred?"):
        read_survey(frame)
    survey = read_survey(frame, missing="q")
    assert pairs_of(survey) == ["x y", "x z"]
    assert any("1 line with an empty cell left out: row 2" in x for x in survey.notes)


CYCLE = [("a", "b", "Ann"), ("b", "c", "Ann"), ("c", "a", "Ann"), ("a", "b", "Bob")]


def test_cycles():
    frame = pd.DataFrame(CYCLE, columns=["winner", "loser", "judge"])
    said = "judge 'Ann': the preferences contradict one another: a > b > c > a; 1 of 2 judges"
    with refusal(said, "contradicts themselves, whom cycles='drop' leaves out"):
        read_survey(frame, judge="judge")
    survey = read_survey(frame, judge="judge", cycles="drop")
    assert survey.judges == ["Bob"] and pairs_of(survey) == ["a b"]
    assert (
        "1 of 2 judges contradicts themselves, and is left out: judge 'Ann': a > b > c > a"
        in survey.notes
    )
    assert len(read_rankings(frame)) == 4  # each line a judge of its own
    with refusal("all judges contradict themselves: a > b > c > a"):
        read_survey(frame[:3], judge="judge", cycles="drop")
    with refusal("cycles goes with the layout pairs, not with ranks"):
        read_survey(pd.DataFrame({"a": [1], "b": [2]}), "ranks", cycles="drop")


def test_refusals(tmp_path):
    frame = pd.DataFrame({"winner": ["a", "b"], "loser": ["b", "b"]})
    with refusal("row 2: compares 'b' with itself"):
        read_survey(frame)
    with refusal("there is no item 'b'; expected a, c"):
        read_survey(frame, items=["a", "c"])
    with refusal("which columns are the pairs?", "columns="):
        read_survey(pd.DataFrame({"x": ["a"], "y": ["b"], "z": ["c"]}), "pairs")
    with refusal("duplicates does not go with pairs"):
        read_survey(frame.assign(judge=[1, 2]), judge="judge", duplicates="first")
    with refusal("there are no comparisons"):
        read_survey(pd.DataFrame({"winner": ["a", ""], "loser": ["", "b"]}))
    with refusal("is empty: who is it?"):
        read_survey(
            pd.DataFrame({"winner": ["a", "b"], "loser": ["b", "a"], "judge": ["x", ""]}),
            judge="judge",
        )


def test_columns_of_other_names():
    frame = pd.DataFrame({"x": ["a", "b"], "y": ["b", "c"], "z": ["a", "c"]})
    assert pairs_of(read_survey(frame, "pairs", columns=["y", "x"])) == ["b a", "c b"]
    assert pairs_of(read_survey(frame, "pairs", columns=["x", "y", "z"])) == ["a b", "c b"]


def test_a_pattern_that_leaves_the_pairs_out():
    frame = pd.DataFrame({"Q1_1": ["a", "b"], "Q1_2": ["b", "a"], "winner": ["x", "y"]})
    frame["loser"] = ["y", "x"]
    assert joined(read_survey(frame, "orders", columns="Q1_*")) == ["a b", "b a"]


def test_a_choice_that_is_of_no_pair():
    frame = pd.DataFrame({"choice": [3, 1, 2], "b1": ["x", "y", "x"], "b2": ["y", "x", "y"]})
    assert joined(read_survey(frame, "orders", columns="*"))[0] == "3 x y"


def test_words_of_pairs_beside_orders():
    for names in (("team1", "team2", "label"), ("item_1", "item_2", "vote")):
        frame = pd.DataFrame([["a", "b", "north"], ["b", "a", "south"]], columns=names)
        assert joined(read_survey(frame, "orders", about=names[2])) == ["a b", "b a"]


def test_ranks_are_no_pairs():
    frame = pd.DataFrame({"rank1": ["a", "b"], "rank2": ["b", "a"], "result": ["c", "c"]})
    assert joined(read_survey(frame, "orders", about="result")) == ["a b", "b a"]


@pytest.mark.parametrize(
    ("columns", "rows", "words"),
    [
        (
            "model_a model_b winner",
            ["x y y", "y z x"],
            "'x' is an item, but not one of the two, 'y' and 'z'",
        ),
        ("item_a item_b winner", ["B A A", "B C A"], "'A' is an item, but not one of the two"),
        ("item1 item2 choice", ["2 5 1", "5 1 1"], "'1' is an item, but not one of the two"),
        ("winner loser draw", ["x y 0", "y z 1"], "does the column 'draw' say which comparisons"),
        ("winner loser is_tie", ["x y no", "y z yes"], "does the column 'is_tie' say"),
        ("a b winner", ["x y 0", "y z 1"], "does 0 in 'winner' mean"),
        (
            "home away home_goals",
            ["Ars Che 2", "Che Liv 0"],
            "'home_goals' is what one of the two scored",
        ),
    ],
)
def test_outcomes_that_are_not_what_they_seem(columns, rows, words):
    frame = pd.DataFrame([row.split() for row in rows], columns=columns.split())
    with refusal(words):
        read_survey(frame, "pairs", columns=columns.split() if "goals" in columns else ())
    if "loser" in columns:  # the remedy works
        survey = read_survey(frame, "pairs", columns=["winner", "loser"])
        assert pairs_of(survey) == ["x y", "y z"]


def test_pairs_take_no_offers():
    frame = pd.DataFrame({"j": ["a"], "winner": ["x"], "loser": ["y"], "saw": ["x;y;z"]})
    with refusal("offered='saw' does not go with pairs"):
        read_survey(frame, "pairs", judge="j", offered="saw")


def test_names_of_columns_come_before_codes():
    """Also where the first column is that of the guests."""
    frame = pd.DataFrame({"away": ["x"], "home": ["y"], "won": ["home"]})
    for won, first in (("home", "y"), ("away", "x")):
        made = PartialOrders.from_pairs(frame.assign(won=won), winner="won", pair=("away", "home"))
        assert made.items[int(made.listed[0, 0])] == first
    with refusal("give pair=('home', 'away')"):
        PartialOrders.from_pairs(frame.assign(won="H"), winner="won", pair=("away", "home"))
