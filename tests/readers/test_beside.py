"""Columns of small numbers about the judges, beside a ballot: asked about, and left out of it."""

import numpy as np
import pandas as pd
import pytest
from helpers.readers import joined, refusal, write

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
