"""Columns of small numbers about the judges, beside a ballot: asked about, and left out of it."""

import numpy as np
import pandas as pd
import pytest
from helpers.readers import joined, read_with_answers, refusal, write

from numpyro_rankings import RankingsError, read_survey

LISTS = ["Ann Bob Cid", "Cid Ann Bob", "Bob Cid Ann", "Ann Cid Bob", "Cid Bob Ann", "Bob Ann Cid"]
NAMES = ["Ann", "Bob", "Cid"]
NUMBERS = [1, 2, 1, 3, 3, 2]


def table_of_ranks(names=NAMES, **beside):
    """A table of the ranks in the lists, with columns of numbers before them."""
    ranks = [[x.split().index(name) + 1 for x in LISTS] for name in NAMES]
    return pd.DataFrame(beside | dict(zip(names, ranks, strict=True)))


def answered(frame, layout, about):
    """The survey that the answers read, which are to name these columns."""
    with pytest.raises(RankingsError) as error:
        read_survey(frame, layout)
    found = error.value.questions
    assert found.is_read and list(found.options["about"]) == about
    return read_survey(frame, **{"layout": layout, **found.options})


@pytest.mark.parametrize("layout", [None, "ranks"])
@pytest.mark.parametrize("name", ["Precinct", "region", "age group"])
def test_a_column_of_small_numbers_beside_ranks(tmp_path, name, layout):
    path = write(tmp_path, table_of_ranks(**{name: NUMBERS}).to_csv(index=False), "t.csv")
    survey = answered(path, layout, [name])
    assert joined(survey) == LISTS and survey.about[name] == list(map(str, NUMBERS))
    with refusal(f"is {name!r} part of the ranking?", "1, 2, … once each", f"about={name!r}"):
        read_survey(path, "ranks")


def test_two_columns_and_lists_that_are_not_whole():
    frame = table_of_ranks(precinct=NUMBERS)
    frame["age"] = [4, 1, 2, 2, 1, 4]
    survey = answered(frame, "ranks", ["precinct", "age"])
    assert joined(survey) == LISTS
    frame = table_of_ranks(precinct=NUMBERS).astype(float).replace({"Ann": {3: np.nan}})
    survey = answered(frame, "ranks", ["precinct"])
    assert joined(survey)[1:3] == ["Cid Ann Bob", "Bob Cid"]


def test_a_column_beside_those_of_a_race():
    frame = table_of_ranks([f"Mayor!!{x}" for x in NAMES], Precinct=NUMBERS)
    frame.loc[:3, "Mayor!!Ann"] = [2, 3, 1, 3]  # ballots on which ranks come twice
    with refusal("is 'Precinct' part of the ranking?", "has no '!!'", "about='Precinct'"):
        read_survey(frame, "ranks", overvote="stop")
    survey = read_survey(frame, "ranks", overvote="stop", about="Precinct")
    assert survey.rankings.items == tuple(NAMES)


def test_a_column_of_small_numbers_beside_orders():
    orders = np.array([[NAMES.index(name) + 1 for name in x.split()] for x in LISTS])
    frame = pd.DataFrame({"ward": NUMBERS} | {f"p{k}": x for k, x in enumerate(orders.T)})
    survey = answered(frame, "orders", ["ward"])
    assert joined(survey)[1] == "3 1 2"


def test_items_with_ties_are_no_columns_about_judges():
    frame = pd.DataFrame({"a": [1, 1, 2, 1], "b": [1, 2, 1, 2], "c": [3, 2, 2, 2]})
    assert read_survey(frame, "ranks").rankings.num_items == 3
    frame = table_of_ranks(Precinct=NUMBERS)
    survey = read_survey(frame, "ranks", columns=list(frame), ties="exact", gaps="close")
    assert survey.rankings.num_items == 4


@pytest.mark.parametrize("last", [[1, 2, 3], [1, 1, 1], [3, 3, 3]])
def test_an_item_that_ties_with_another_is_not_lost(last):
    """It is asked about, and no answer is chosen; what becomes of ties answers it, too."""
    frame = table_of_ranks()
    frame["d"] = [*last, *last]
    with pytest.raises(RankingsError, match="is 'd' part of the ranking") as error:
        read_survey(frame, "ranks")
    assert "about" not in error.value.questions.options
    survey = read_survey(frame, "ranks", ties="exact")
    assert survey.rankings.items == ("Ann", "Bob", "Cid", "d")


def test_an_item_that_few_rank_and_a_candidate_who_is_written_in():
    frame = table_of_ranks()
    frame["d"] = [9, 9, 4, 9, 9, 9]
    survey = read_survey(frame, "ranks", missing="9")
    assert joined(survey) == [*LISTS[:2], "Bob Cid Ann d", *LISTS[3:]]
    names = [f"Mayor!!{x}" for x in NAMES[:2]]
    frame = table_of_ranks([*names, "write_in"])
    assert read_survey(frame, "ranks").rankings.num_items == 3


RATED = "{},tea,coffee,cocoa\n{},5,4,3\n{},5,5,2\n{},4,1,3\n{},2,4,5\n"
RATINGS = {"highest_first": True, "ties": "exact", "gaps": "close"}
NUMBERED = ["1", "2", "3", "4"], ["0", "1", "2", "3"], ["101", "205", "117", "350"]


@pytest.mark.parametrize(
    ("name", "ids", "answer"),
    [
        *(("Participant", x, "judge") for x in (*NUMBERED, ["1", "1", "2", "2"])),
        *(("id", x, "judge") for x in NUMBERED),
        *(("No", x, "judge") for x in NUMBERED),
        ("resp", NUMBERED[0], "judge"),
        ("resp", NUMBERED[1], "judge"),
        ("code", NUMBERED[2], "about"),
        ("age", ["33", "41", "27", "33"], "about"),
        ("years of school", ["9", "8", "12", "9"], "about"),
    ],
)
@pytest.mark.parametrize("settings", [{}, RATINGS])
def test_what_names_the_judges_is_no_item_of_ratings(tmp_path, name, ids, answer, settings):
    path = write(tmp_path, RATED.format(name, *ids), "t.csv")
    with pytest.raises(RankingsError, match=f"1: is '{name}' part of the ranking") as error:
        read_survey(path, "ranks", **settings)
    first = error.value.questions.answers[0]
    assert first in ({answer: name}, {answer: [name]})
    if len(set(ids)) == 4:
        survey = read_survey(path, "ranks", **RATINGS, **first)
        assert survey.rankings.items == ("tea", "coffee", "cocoa")
    if ids == NUMBERED[0]:
        every = read_survey(path, "ranks", **RATINGS, columns=[name, "tea", "coffee", "cocoa"])
        assert every.rankings.items == (name, "tea", "coffee", "cocoa")  # said, and read so


@pytest.mark.parametrize("name", ["id", "No", "user", "age", "resp"])
def test_an_item_may_be_called_as_what_names_the_judges(name):
    ranks = table_of_ranks([name, *NAMES[1:]])
    assert read_survey(ranks, "ranks").rankings.items == (name, *NAMES[1:])
    tied = {"resp": [1, 2, 3, 4], "b": [2, 1, 1, 1], "c": [3, 3, 2, 2], "d": [3, 4, 4, 2]}
    assert read_survey(pd.DataFrame(tied), "ranks").rankings.items == tuple(tied)


PLACES = "{},{}\nAnn,Bob,Cid,Dan\nBob,Ann,Cid,Dan\nCid,Dan,Ann,Bob\n"


@pytest.mark.parametrize(
    "names",
    ["Country,12,10,8", "Member,12 points,10 points,8 points", "Club,p1,p2,p3", "voter,x,y,z"],
)
def test_who_votes_and_is_an_item_is_no_first_place(tmp_path, names):
    first, _, places = names.partition(",")
    path = write(tmp_path, PLACES.format(first, places), "t.csv")
    said, survey = read_with_answers(path, layout="orders")
    assert said == {"judge": first, "unranked": "not-offered"}
    assert joined(survey) == ["Bob Cid Dan", "Ann Cid Dan", "Dan Ann Bob"]
    assert survey.judges == ["Ann", "Bob", "Cid"]
    every = read_survey(path, "orders", columns=names.split(","))
    assert joined(every)[0] == "Ann Bob Cid Dan"


def test_two_judges_who_are_items_and_points_above_the_columns(tmp_path):
    text = "Country,12,10,8\nSweden,Norway,Italy,Spain\nNorway,Sweden,Spain,Italy\n"
    said, survey = read_with_answers(write(tmp_path, text, "t.csv"))
    assert said == {"layout": "orders", "judge": "Country"}
    assert joined(survey) == ["Norway Italy Spain", "Sweden Spain Italy"]


@pytest.mark.parametrize("names", ["Best,2,3,4", "Winner,2nd,3rd,4th", "Top choice,5,3,1"])
def test_the_best_may_be_called_otherwise_than_the_others(tmp_path, names):
    first, _, places = names.partition(",")
    path = write(tmp_path, PLACES.format(first, places), "t.csv")
    assert joined(read_survey(path, "orders", columns=names.split(",")))[0] == "Ann Bob Cid Dan"
    if "2nd" not in names:  # else the columns are not all places by their names
        assert joined(read_survey(path, "orders"))[0] == "Ann Bob Cid Dan"


def test_names_of_judges_beside_places_without_numbers(tmp_path):
    rows = "Al,tea,coffee,cocoa\nBo,coffee,tea,cocoa\nCy,cocoa,tea,coffee\nDi,tea,cocoa,coffee\n"
    for names in ("voter,best,middle,worst", "who,x,y,z"):
        path = write(tmp_path, f"{names}\n{rows}", "t.csv")
        said, survey = read_with_answers(path, layout="orders")
        assert said == {"judge": names.partition(",")[0]}
        assert joined(survey)[0] == "tea coffee cocoa"


QUESTIONS = {
    "Q1_tea,Q1_rum,Q1_cocoa,Q2_tea,Q2_rum,Q2_cocoa\n1,2,3,3,2,1\n2,1,3,1,2,3\n1,2,3,2,1,3\n": (
        "Q1_*",
        ["tea rum cocoa", "rum tea cocoa", "tea rum cocoa"],
    ),
    "tea_taste,coffee_taste,tea_price,coffee_price\n1,2,2,1\n2,1,1,2\n1,2,1,2\n": (
        "*_taste",
        ["tea_taste coffee_taste", "coffee_taste tea_taste", "tea_taste coffee_taste"],
    ),
    "tea.taste,tea.price,rum.taste,rum.price\n1,2,2,1\n2,,1,\n1,1,2,2\n": (
        "*.taste",
        ["tea.taste rum.taste", "rum.taste tea.taste", "tea.taste rum.taste"],
    ),
}


@pytest.mark.parametrize("text", QUESTIONS)
@pytest.mark.parametrize("judge", ["", "id"])
def test_two_questions_in_a_short_table(tmp_path, text, judge):
    columns, lists = QUESTIONS[text]
    if judge:
        lines = text.splitlines()
        text = "\n".join([f"id,{lines[0]}", *(f"r{k},{x}" for k, x in enumerate(lines[1:]))])
    said, survey = read_with_answers(write(tmp_path, text, "t.csv"), layout="ranks")
    assert said == {"columns": columns} | ({"judge": judge} if judge else {})
    assert joined(survey) == lists


def test_one_question_whose_items_are_of_two_kinds():
    names = ["hot_tea", "hot_rum", "cold_tea", "cold_rum"]
    whole = pd.DataFrame([(1, 2, 3, 4), (4, 3, 2, 1), (1, 3, 2, 4)], columns=names)
    assert read_survey(whole, "ranks").rankings.items == tuple(names)
    first = pd.DataFrame([(1, 2, None, None), (None, None, 2, 1)], columns=names)
    assert joined(read_survey(first, "ranks")) == ["hot_tea hot_rum", "cold_rum cold_tea"]


@pytest.mark.parametrize("name", ["No", "id"])
@pytest.mark.parametrize("layout", [None, "ranks"])
def test_numbers_of_judges_that_are_also_those_of_an_item(tmp_path, name, layout):
    text = f"{name},Tea,Coffee,Milk\n1,1,2,3\n2,2,1,3\n3,3,1,2\n"
    said, survey = read_with_answers(write(tmp_path, text, "t.csv"), layout=layout)
    assert said == {"judge": name} | ({} if layout else {"layout": "ranks"})
    assert joined(survey) == ["Tea Coffee Milk", "Coffee Tea Milk", "Coffee Milk Tea"]
    # without such a name, nothing says which of the two is the item
    with pytest.raises(RankingsError, match="part of the ranking") as error:
        read_survey(write(tmp_path, text.replace(name, "resp"), "u.csv"), layout)
    assert not error.value.questions.options


@pytest.mark.parametrize(("name", "answers"), [("No", {"about": ("No",)}), ("d", {})])
def test_numbers_that_may_tie_with_ranks_beside_the_judges(name, answers):
    """Only what they are called says that they are no item."""
    frame = table_of_ranks(who=list("abcdef"), **{name: NUMBERS})
    with pytest.raises(RankingsError, match=f"is '{name}' part of the ranking") as error:
        read_survey(frame, "ranks", judge="who")
    assert error.value.questions.options == answers


def test_what_numbers_the_rows_beside_the_judges(tmp_path):
    text = "judge,Seed,tea,rum,milk\na,6,5,4,3\nb,7,5,5,2\nc,8,4,1,3\nd,9,2,4,5\n"
    path = write(tmp_path, text, "t.csv")
    with pytest.raises(RankingsError, match="is 'Seed' part of the ranking") as error:
        read_survey(path, "ranks")
    options = error.value.questions.options
    assert (*options["about"], options["judge"]) == ("Seed", "judge")
