"""Games with what each side scored, answers that are none, and points instead of ranks."""

import numpy as np
import pandas as pd
import pytest
from helpers.readers import by_name, joined, refusal, write

from numpyro_rankings import PartialOrders, RankingsError, read_rankings, read_survey
from numpyro_rankings.rankings.games import Games

# away won, home won, a tie, and a game that was not played
SCORES = [("Ars", "Che", "1", "2"), ("Che", "Liv", "10", "9"), ("Liv", "Ars", "0", "0")]
SCORES += [("Ars", "Liv", "", "")]
WINS = ["Che Ars", "Che Liv", "Ars=Liv"]
GAMES = [
    ("home", "away", "home_goals", "away_goals"),
    ("HomeTeam", "AwayTeam", "FTHG", "FTAG"),
    ("team1", "team2", "score1", "score2"),
    ("Team A", "Team B", "Score A", "Score B"),
    ("home_team", "away_team", "home_score", "away_score"),
    ("home", "visitor", "hgoal", "vgoal"),
    ("White", "Black", "white points", "black points"),
    ("home_team_name", "away_team_name", "home_team_goals", "away_team_goals"),
]


def said_by(survey):
    """What each row says, in the order of the file: ``a b``, or ``a=b`` of a tie."""
    orders = survey.rankings
    rows = np.asarray(orders.row_index)[survey.label_index].tolist()
    names = [[orders.items[k] for k in row] for row in orders.listed.tolist()]
    ties = np.asarray(orders.has_ties)
    return ["=".join(sorted(names[row])) if ties[row] else " ".join(names[row]) for row in rows]


@pytest.mark.parametrize("places", [(0, 1, 2, 3), (0, 2, 1, 3), (3, 2, 1, 0)])
@pytest.mark.parametrize("names", GAMES)
def test_games_with_what_each_side_scored(tmp_path, names, places):
    rows = [("date", *names), *((f"1.{k}.", *x) for k, x in enumerate(SCORES, 1))]
    text = "\n".join(",".join([row[0], *(row[1 + k] for k in places)]) for row in rows)
    path = write(tmp_path, text, "t.csv")
    for settings in ({}, {"layout": "pairs"}, {"columns": [*names], "layout": "pairs"}):
        survey = read_survey(path, **settings)
        assert said_by(survey) == WINS and survey.layout == "pairs"
        more = f"the item with more in {names[2]!r} or {names[3]!r} is preferred, as many are a tie"
        one = "and each line is one game, whatever the numbers"
        assert any(f"{more}, {one}" in note for note in survey.notes)
        assert any("1 line with an empty cell left out: " in note for note in survey.notes)
    assert said_by(read_survey(path, ties="drop")) == WINS[:2]
    with refusal("paired comparisons", "add layout='pairs'"):
        read_survey(path, "orders", judge="date")


def test_games_in_columns_of_other_names(tmp_path):
    columns = ["date", "club", "opponent", "gf", "ga"]
    frame = pd.DataFrame([("1.1.", *x) for x in SCORES], columns=columns)
    with pytest.raises(RankingsError) as error:
        read_survey(frame)
    found = error.value.questions
    assert found.is_read and found.options == {"layout": "pairs", "columns": columns[1:]}
    assert "with what each scored" in found.texts[0]
    assert said_by(read_survey(frame, **found.options)) == WINS
    # and one that is between the teams
    mixed = {"layout": "pairs", "columns": ["club", "gf", "opponent", "ga"]}
    assert said_by(read_survey(frame, **mixed)) == WINS


def test_scores_that_are_no_numbers():
    frame = pd.DataFrame(SCORES, columns=GAMES[0])
    frame.loc[2, "home_goals"] = "w.o."
    with refusal("row 3: column 'home_goals': 'w.o.' is no number", "missing='w.o.' leaves such"):
        read_survey(frame)
    assert said_by(read_survey(frame, missing="w.o.")) == WINS[:2]
    with refusal("'home_goals' is what one of the two", f"columns={[*GAMES[0]]!r}, or write"):
        read_survey(frame, "pairs", columns=[*GAMES[0][:3]])


def test_columns_of_numbers_that_are_no_scores():
    frame = pd.DataFrame(SCORES[:3], columns=["1st", "2nd", "age", "children"])
    with refusal("the column 'age' is no place"):
        read_survey(frame)
    lists = joined(read_survey(frame, about=["age", "children"]))
    assert lists == ["Ars Che", "Che Liv", "Liv Ars"]


ANSWERS = ["left", "right", "don't know", "no preference", "skip", "Both", "left"]


@pytest.mark.parametrize("answer", ["choice", "preference", "winner"])
@pytest.mark.parametrize("are_names", [False, True])
def test_answers_that_are_none(tmp_path, answer, are_names):
    left, right = (
        "tea tea maté tea maté maté maté".split(),
        "maté cola cola cola tea tea cola".split(),
    )
    said = ANSWERS
    if are_names:
        said = [
            {"left": a, "right": b}.get(x, x) for x, a, b in zip(said, left, right, strict=True)
        ]
    lines = [",".join(x) for x in zip(left, right, said, strict=True)]
    path = write(tmp_path, "\n".join([f"left,right,{answer}", *lines]), "t.csv")
    with refusal(
        f"t.csv:4: column {answer!r}: \"don't know\" does not say which of 'maté' and 'cola' is",
        "as in 1 other line: 6 (also 'skip')",
        "missing=[\"don't know\", 'skip'] leaves these lines out",
    ):
        read_survey(path)
    survey = read_survey(path, missing="don't know,skip")
    assert said_by(survey) == ["tea maté", "cola tea", "cola=tea", "maté=tea", "maté cola"]
    assert any("'no preference' is a tie" in note for note in survey.notes)


@pytest.mark.parametrize("name", ["winner", "result", "outcome"])
@pytest.mark.parametrize("codes", ["HAD", "12X", "WLD", "10½"])
def test_a_code_that_is_not_known_is_named(name, codes):
    first, second, tie = codes
    said = [first, second, "?!", tie, first, "?!"]
    frame = pd.DataFrame({"home": list("abcdab"), "away": list("bcdacd"), name: said})
    with refusal(
        f"row 3: column {name!r}: '?!' does not say which of 'c' and 'd' is preferred",
        "as in 1 other line: 6",
        f"{first!r} is 'home', {second!r} is 'away', {tie!r} is a tie",
        "missing='?!' leaves such a line out",
    ):
        read_survey(frame)
    expected = ["a b", "c b", "a=d", "a c"]
    assert said_by(read_survey(frame, missing="?!")) == expected
    # a data frame is read by the same function
    for read in (PartialOrders.from_pairs, Games.from_pairs):
        with refusal(
            f"line 3 of the table: column {name!r}: '?!' does not say which of 'c' and 'd' is",
            "as in 1 other line: 6",
        ):
            read(frame, winner=name, pair=("home", "away"))
        made = read(frame[frame[name] != "?!"], winner=name, pair=("home", "away"))
        assert len(made) == 4
    known = frame[frame[name] != "?!"]
    assert read_rankings(known) == PartialOrders.from_pairs(
        known, winner=name, pair=("home", "away"), items=read_rankings(known).items
    )


def test_codes_alone_are_no_ties():
    """Beside the names of winners, x may be anything."""
    frame = pd.DataFrame({"home": list("abc"), "away": list("bca"), "winner": ["a", "c", "x"]})
    with refusal("row 3: column 'winner': 'x' does not say which"):
        read_survey(frame)
    assert said_by(read_survey(frame.replace("x", "D"))) == ["a b", "c b", "a=c"]


EUROVISION = [12, 10, 8, 7, 6, 5, 4, 3, 2, 1]


def points_of(num_items, num_judges, points):
    """A table of points of the first items in random orders, and the orders."""
    rng = np.random.default_rng(num_items)
    orders = [rng.permutation(num_items)[: len(points)] for _ in range(num_judges)]
    table = np.full((num_judges, num_items), "", object)
    for row, order in zip(table, orders, strict=True):
        row[order] = [str(x) for x in points]
    names = [f"i{k}" for k in range(num_items)]
    lists = [[names[k] for k in order] for order in orders]
    return pd.DataFrame(table, columns=names), lists


@pytest.mark.parametrize("num_items", [10, 11, 26])
@pytest.mark.parametrize("points", [EUROVISION, [25, 18, 15, 12, 10, 8, 6, 4, 2, 1], [5, 3, 1]])
@pytest.mark.parametrize("layout", ["ranks", "long"])
def test_points_are_asked_about(num_items, points, layout):
    frame, lists = points_of(num_items, 5, points)
    if layout == "long":
        frame = frame.assign(judge=range(5)).melt("judge", var_name="item", value_name="rank")
        frame = frame[frame["rank"] != ""].sort_values("judge", kind="stable")
    with pytest.raises(RankingsError) as error:
        read_survey(frame, layout)
    found = error.value.questions
    assert "is the lowest number the first choice, or the highest?" in found.texts[0]
    assert found.is_read and found.options["highest_first"] is True
    assert by_name(read_survey(frame, layout, **found.options)) == lists
    turned = {**found.options, "highest_first": False, "gaps": "close"}
    assert by_name(read_survey(frame, layout, **turned)) == [x[::-1] for x in lists]


def test_points_that_differ_by_judge():
    frame = pd.DataFrame([[40, 30, 20, 10], [70, None, 25, 5]], columns=list("abcd"))
    with refusal("The numbers are 40, 30, 20, 10, as of points", "the list is a > b > c > d"):
        read_survey(frame, "ranks")
    survey = read_survey(frame, "ranks", highest_first=True)
    assert joined(survey) == ["a b c d", "a c d"]
    assert "the numbers, up to 70, are read as points, the highest first" in survey.notes
    tied = frame.assign(c=[30, 25])  # the next rank counts both
    orders = read_rankings(tied, "ranks", highest_first=True)
    assert orders == PartialOrders.from_buckets(
        [["a", ["b", "c"], "d"], ["a", "c", "d"]], items=list("abcd")
    )


def test_ranks_with_gaps_are_no_points():
    codes = pd.DataFrame([[1, 2, 77], [77, 1, 2], [1, 77, 2]], columns=list("abc"))
    with refusal("rank 77, but there are 3 items", "missing"):
        read_survey(codes, "ranks")
    ages = pd.DataFrame([[1, 2, 30], [2, 1, 41], [1, 2, 52]], columns=["a", "b", "age"])
    with refusal("is 'age' part of the ranking? Its numbers are far above", "add about='age'"):
        read_survey(ages, "ranks")
    some = pd.DataFrame([[1, 4, None, 2], [None, 1, 2, 4]], columns=list("abcd"))
    with refusal("no item has rank 3", "gaps='close'"):
        read_survey(some, "ranks")
