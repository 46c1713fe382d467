"""Pairs with the number of comparisons that each of the two items has won."""

from collections import Counter

import pandas as pd
import pytest
from helpers.readers import refusal, write

from numpyro_rankings import RankingsError, read_survey

TEXT = "x,Ann,Bob,3,1\ny,Bob,Cid,0,2\ny,Ann,Bob,1,1\nx,Ann,Cid,0,0\n"
SAID = {"Ann Bob": 4, "Bob Ann": 2, "Cid Bob": 2}
NAMES = [
    "item1,item2,wins1,wins2",
    "item_a,item_b,wins_a,wins_b",
    "a,b,won_a,won_b",
    "A,B,A wins,B wins",
]
NAMES += [
    "player1,player2,wins1,wins2",
    "left,right,left_wins,right_wins",
    "home,away,home_wins,away_wins",
]


def said_by(survey):
    """How often each order of two items is there."""
    orders, items = survey.rankings, survey.rankings.items
    lists = [" ".join(items[k] for k in row if k >= 0) for row in orders.listed.tolist()]
    return dict(Counter(lists[k] for k in orders.row_index[survey.label_index].tolist()))


@pytest.mark.parametrize("names", NAMES)
def test_numbers_of_wins_are_so_many_comparisons(tmp_path, names):
    path = write(tmp_path, f"day,{names}\n{TEXT}", "t.csv")
    one = names.split(",")[2]
    for settings in ({}, {"layout": "pairs"}, {"columns": names.split(",")}):
        survey = read_survey(path, **settings)
        assert said_by(survey) == SAID and survey.layout == "pairs"
        assert any(f"as many comparisons as {one!r} says" in note for note in survey.notes)
        assert any("is: 8 in 4 lines" in note for note in survey.notes)
    about = read_survey(path, about="day").about["day"]
    assert about == ["x"] * 4 + ["y"] * 4


def test_numbers_of_wins_of_judges():
    frame = pd.DataFrame(
        [x.split(",") for x in TEXT.split()], columns=["who", "a", "b", "won_a", "won_b"]
    )
    with refusal("2 of 2 judges contradict their own answers; cycles='drop' leaves none"):
        read_survey(frame, judge="who")
    survey = read_survey(frame, judge="who", cycles="mistakes")
    assert survey.judges == ["x", "y"] and survey.rankings.wins.sum() == 8


def test_numbers_of_wins_that_are_none():
    frame = pd.DataFrame(
        {"a": ["x", "y"], "b": ["y", "z"], "wins_a": [3, 1], "wins_b": ["2", "1.5"]}
    )
    with refusal("row 2: column 'wins_b': expected how many comparisons were won", "'1.5'"):
        read_survey(frame)
    with refusal("'wins_a' and 'wins_b' count the comparisons: leave out count"):
        read_survey(frame.assign(n=1), count="n")


def test_goals_stay_a_game():
    frame = pd.DataFrame(
        {"home": ["x", "y"], "away": ["y", "x"], "home_goals": [3, 1], "away_goals": [2, 4]}
    )
    survey = read_survey(frame)
    assert said_by(survey) == {"x y": 2}


@pytest.mark.parametrize("names", ["n_a n_b", "votes_a votes_b", "count_a count_b"])
def test_other_numbers_are_asked_about(names):
    """They may be how often each was offered."""
    columns = ["a", "b", *names.split()]
    frame = pd.DataFrame([["A", "B", 3, 1], ["B", "C", 2, 2], ["C", "A", 1, 5]], columns=columns)
    with pytest.raises(RankingsError):
        read_survey(frame)
