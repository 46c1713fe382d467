"""Tables of paired comparisons are recognised, and refused with what reads them."""

import numpy as np
import openpyxl
import pandas as pd
import pytest
from helpers.readers import joined, refusal, write

from numpyro_rankings import read_survey

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


@pytest.mark.parametrize("layout", [None, "orders", "ranks", "votes"])
@pytest.mark.parametrize("names", TWO_COLUMNS)
def test_columns_of_the_winner_and_the_loser(names, layout):
    frame = pd.DataFrame(WINS, columns=names)[[names[1], names[0]]]
    with refusal(f"{names[0]!r} and {names[1]!r} seem to be of paired comparisons"):
        read_survey(frame, layout)
    with refusal("paired comparisons"):
        read_survey(frame.assign(judge=list("abcd")), layout, judge="judge")


@pytest.mark.parametrize("names", TWO_COLUMNS)
def test_the_options_of_the_message_read_pairs(names):
    frame = pd.DataFrame(WINS, columns=names)[[names[1], names[0]]]
    survey = read_survey(frame, "orders", columns=list(names), unranked="not-offered")
    assert joined(survey) == [f"{a} {b}" for a, b in WINS]
    assert np.asarray(survey.rankings.choice_sets).sum(1).tolist() == [2, 2, 2]


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
    rows = [names, ("tea", "maté", "tea"), ("maté", "cocoa", "cocoa"), ("cocoa", "tea", "tea")]
    path = tmp_path / f"t{suffix}"
    if suffix == ".xlsx":
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(path)
    else:
        write(tmp_path, "\n".join(",".join(row) for row in rows), "t.csv")
    for layout in (None, "orders", "long", "votes"):
        with refusal("paired comparisons", "write the two columns 'winner' and 'loser'"):
            read_survey(path, layout)


@pytest.mark.parametrize("names", [("White", "Black"), ("player1", "player2"), ("home", "away")])
@pytest.mark.parametrize("results", [("1-0", "0-1", "1/2-1/2"), ("1", "0", "0.5"), ("W", "L", "D")])
def test_results_of_games(names, results):
    frame = pd.DataFrame({names[0]: list("abc"), names[1]: list("bca"), "Result": results})
    for layout in (None, "orders"):
        with refusal("paired comparisons", "in place of 'Result'"):
            read_survey(frame, layout)


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
