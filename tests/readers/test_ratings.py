"""Ratings, of which many items have the same: asked about, and never taken for ranks or names."""

import numpy as np
import openpyxl
import pandas as pd
import pytest
from helpers.readers import joined, read_with_answers, refusal, write

from numpyro_rankings import RankingsError, read_survey

NAMES = ["Pizza", "Pasta", "Soup"]
RATINGS = [(4, 5, 1), (3, 3, 1), (2, 5, 2), (5, 5, 4), (1, 3, 3), (4, 4, 4), (2, 1, 5), (3, 1, 5)]
# the level of each item, of which 5 is the best, and of which 1 is
HIGH = [[1, 0, 2], [0, 0, 1], [1, 0, 1], [0, 0, 1], [1, 0, 0], [0, 0, 0], [1, 2, 0], [1, 2, 0]]
LOW = [[1, 2, 0], [1, 1, 0], [0, 1, 0], [1, 1, 0], [0, 1, 1], [0, 0, 0], [1, 0, 2], [1, 0, 2]]
BOTH = {"ties": "exact", "gaps": "close"}


def levels(survey):
    """The level of each item for each judge, in the order of the file."""
    rows = np.asarray(survey.rankings.row_index)[survey.label_index]
    of_items = [survey.rankings.items.index(name) for name in NAMES]
    return np.asarray(survey.rankings.levels_of_items())[rows][:, of_items].tolist()


def tables(names=NAMES):
    """The ratings with a row for each judge, and with one for each judge and item."""
    wide = pd.DataFrame(RATINGS, columns=names)
    wide.insert(0, "judge", [f"j{k}" for k in range(len(RATINGS))])
    return wide, wide.melt("judge", var_name="item", value_name="rank")


@pytest.mark.parametrize("settings", [{}, {"ties": "exact"}, {"gaps": "close"}, BOTH])
def test_ratings_are_asked_about_and_not_turned(settings):
    wide, long = tables()
    for table, unit, layout in (
        (wide, "rows", {"layout": "ranks", "judge": "judge"}),
        (long, "lists", {}),
    ):
        with pytest.raises(RankingsError) as error:
            read_survey(table, **layout, **settings)
        text = str(error.value)
        assert f"in 8 of 8 {unit} a number comes twice or is above 3, as in ratings" in text
        assert "highest_first=True reads 5 as the best, or highest_first=False reads 1" in text
        assert "transpose" not in text and "missing" not in text
        assert not error.value.questions.is_read  # nothing says which end is the best
        read = {**layout, **BOTH}
        assert levels(read_survey(table, highest_first=True, **read)) == HIGH
        assert levels(read_survey(table, highest_first=False, **read)) == LOW


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_what_says_that_these_are_stars_gives_the_answer(tmp_path, suffix):
    names = [f"Stars [{name}]" for name in NAMES]
    path, (wide, _) = tmp_path / f"t{suffix}", tables(names)
    if suffix == ".xlsx":
        book = openpyxl.Workbook()
        for row in (wide.columns.tolist(), *wide.to_numpy().tolist()):
            book.active.append(row)
        book.save(path)
    else:
        wide.to_csv(path, index=False)
    settings = {"layout": "ranks", "judge": "judge", "columns": "Stars*"}
    with pytest.raises(RankingsError) as error:
        read_survey(path, **settings)
    found = error.value.questions
    assert found.is_read and found.options == {"highest_first": True, **BOTH}
    assert levels(read_survey(path, **settings, **found.options)) == HIGH


def test_ratings_of_as_many_items_as_stars_may_be_ranks_with_ties():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(1, 5, (30, 4)), columns=list("abcd"))
    with refusal(
        "a number comes twice, as in ratings; of ratings, highest_first=True reads 4 as the best",
        "if these are ranks with ties, ties='exact' reads them, and overvote='stop'",
    ):
        read_survey(frame, "ranks")
    with refusal("gaps='close'"):
        read_survey(frame, "ranks", ties="exact")


def test_a_code_for_items_that_are_not_ranked_is_no_rating():
    frame = pd.DataFrame([(1, 2, 9, 9), (9, 1, 2, 9), (1, 9, 9, 2)], columns=list("abcd"))
    with refusal("add missing='9'"):
        read_survey(frame, "ranks")
    assert read_survey(frame, "ranks", missing="9").rankings.lengths.tolist() == [2, 2, 2]


def test_tables_of_few_ratings_are_hardly_ever_turned():
    turned = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(rng.integers(1, 6, (8 + seed % 3, 3)), columns=NAMES)
        with pytest.raises(RankingsError) as error:
            read_survey(frame, "ranks")
        turned += "transpose" in str(error.value)
    assert turned == 0


SCALES = {
    "words": ["Bad", "Poor", "OK", "Good", "Great"],
    "numbers with a unit": [f"{k} euros" for k in range(1, 6)],
}


@pytest.mark.parametrize("layout", [None, "orders", "ranks"])
@pytest.mark.parametrize("name", SCALES)
def test_words_of_a_scale_are_no_names_of_items(name, layout):
    frame = pd.DataFrame([[SCALES[name][x - 1] for x in row] for row in RATINGS], columns=NAMES)
    with refusal("row 2: ", "comes twice", "as in ratings", "write the numbers 1, 2, …"):
        read_survey(frame, layout)


def test_names_of_places_that_come_twice_by_mistake_are_no_ratings(tmp_path):
    text = "1st,2nd,3rd\nA,B,C\nB,B,A\nC,A,B\nB,A,C\nA,C,B\n"
    with refusal("'B' is listed twice"):
        read_survey(write(tmp_path, text, "t.csv"))


CODED = {
    "9": ([(5, 4, 9), (5, 5, 2), (4, 1, 9)], "1 to 5", [[0, 1, 2], [0, 0, 1], [0, 1, 2]]),
    "8": ([(5, 4, 8), (5, 5, 2), (3, 1, 8)], "1 to 5", [[0, 1, 2], [0, 0, 1], [0, 1, 2]]),
    "99": ([(7, 4, 99), (5, 5, 2), (4, 1, 99)], "1 to 7", [[0, 1, 2], [0, 0, 1], [0, 1, 2]]),
}


@pytest.mark.parametrize("layout", ["ranks", "long"])
@pytest.mark.parametrize("code", CODED)
def test_a_code_above_a_small_scale_is_asked_about(tmp_path, code, layout):
    rows, scale, expected = CODED[code]
    table = pd.DataFrame(rows, columns=NAMES)
    table.insert(0, "judge", ["Al", "Bo", "Cy"])
    if layout == "long":
        table = table.melt("judge", var_name="item", value_name="rank")
    path, settings = tmp_path / "t.csv", {"judge": "judge", "layout": layout}
    table.to_csv(path, index=False)
    for given in ({}, {"highest_first": True}, {"highest_first": True, **BOTH}):
        with pytest.raises(RankingsError) as error:
            read_survey(path, **settings, **given)
        text = error.value.questions.texts[0]
        above = f"{code} is far above the other numbers, {scale}, as in 2 cells"
        assert above in text or (code == "99" and "got '99', as in 2 cells" in text)
        assert f"add missing={[code]!r}" in text or f"add missing={code!r}" in text
        assert list(error.value.questions.options["missing"]) == [code]
    read = {**settings, "highest_first": True, **BOTH}
    survey = read_survey(path, **read, missing=code)
    assert levels(survey) == [[0, 1, -1], [0, 0, 1], [0, 1, -1]]
    every = read_survey(path, **read, missing="none")  # which says that it is a rating
    assert levels(every) == [[1, 2, 0], [0, 0, 1], [1, 2, 0]] != expected


CODE, POINTS = {"missing": ["9"]}, {"highest_first": True}
ONE_EACH = {  # a number far above the others, the first answer, and the first list
    "ranks of all others": ([(1, 2, 3, 9), (2, 1, 9, 3), (9, 1, 2, 3)], CODE, "a b c"),
    "one judge has none": ([(1, 2, 3, 9), (2, 1, 9, 3), (3, 2, "", 1)], CODE, "a b c"),
    "one judge has all ranks": ([(1, 2, 3, 9), (2, 1, 9, 3), (3, 2, 4, 1)], CODE, "a b c"),
    "twice": ([(1, 2, 9, 9), (2, 1, 9, 3), (9, 1, 2, 3)], CODE, "a b"),
    "of five": ([(1, 2, 3, 9, 4), (2, 1, 9, 3, 4), (9, 1, 2, 3, 4)], CODE, "a b c e"),
    "points": ([(1, 3, 5, 9), (3, 1, 9, 5), (9, 1, 3, 5)], POINTS, "d c b a"),
    "points, one has none": ([(1, 3, 5, 9), (3, 1, 9, 5), (5, 3, "", 1)], POINTS, "d c b a"),
    "points far apart": ([(1, 4, 2, 9), (4, 2, 9, 1), (9, 1, 4, 2)], POINTS, "d b c a"),
}


@pytest.mark.parametrize("layout", ["ranks", "long"])
@pytest.mark.parametrize("name", ONE_EACH)
def test_a_number_far_above_the_others_once_in_most_lists(tmp_path, name, layout):
    rows, answer, first = ONE_EACH[name]
    table = pd.DataFrame(rows, columns=[*"abcde"[: len(rows[0])]])
    table.insert(0, "judge", ["Al", "Bo", "Cy"])
    gaps = {"gaps": "close"} if layout == "long" else {}
    if layout == "long":
        table = table.melt("judge", var_name="item", value_name="rank")
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    said, survey = read_with_answers(path, judge="judge", layout=layout)
    assert said == (answer if answer == CODE else answer | gaps)
    assert joined(survey)[0] == first
    if name in ("one judge has none", "of five"):  # it is the most points, if that is said
        given = {"judge": "judge", "missing": "none", **POINTS, **gaps}
        assert joined(read_survey(path, layout, **given))[0] == f"d {first[::-1]}"


def test_a_code_above_few_places_of_many():
    """Its number is not above that of the items, but no place between is there."""
    rows = [(1, 2, 3, *[9] * 7), (3, 9, 1, 2, *[9] * 6), (*[9] * 5, 1, 2, 3, 9, 9)]
    table = pd.DataFrame(rows, columns=list("abcdefghij"))
    with refusal("9 is far above the other numbers, 1 to 3, as in 21 cells", "missing='9'"):
        read_survey(table, "ranks")
    survey = read_survey(table, "ranks", missing="9")
    assert joined(survey) == ["a b c", "c d a", "f g h"]


@pytest.mark.parametrize(
    "rows",
    [
        [(9, 6, 4, 3, 2, 1), (6, 9, 3, 4, 1, 2), (1, 2, 3, 4, 6, 9)],  # the points of each race
        [(20, 15, 9, 3, 2, 1), (6, 9, 3, 14, 1, 2), (1, 2, 3, 4, 6, 30)],
    ],
)
def test_points_and_whole_scales_have_no_codes(rows):
    table = pd.DataFrame(rows, columns=list("abcdef"))
    survey = read_survey(table, "ranks", highest_first=True)
    assert joined(survey)[0] == "a b c d e f" and survey.rankings.num_rankings == 3
    whole = pd.DataFrame([(9, 9, 4, 1), (5, 5, 8, 2), (7, 6, 9, 3)], columns=list("abcd"))
    survey = read_survey(whole, "ranks", highest_first=True, **BOTH)
    assert survey.rankings.num_items == 4 and not any("missing" in x for x in survey.notes)


def test_ratings_up_to_100_may_be_99(tmp_path):
    path = write(tmp_path, "judge,a,b,c\nAl,99,40,75\nBo,80,88,20\nCy,64,91,98\n", "t.csv")
    with refusal("got '99'", "add missing='99'", "missing='none' if it is a rating"):
        read_survey(path, "ranks", judge="judge")
    survey = read_survey(path, "ranks", judge="judge", highest_first=True, missing="none")
    assert joined(survey) == ["a c b", "b a c", "c b a"]
