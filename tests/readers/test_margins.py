"""Winners who have not won, numbers on a scale beside pairs, and the best and the worst."""

import openpyxl
import pandas as pd
import pytest
from helpers.readers import joined, refusal, write

from numpyro_rankings import PartialOrders, RankingsError, read_survey

PAIRS = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "c")]


def table(columns, *values):
    """Four comparisons, and what is beside them."""
    return pd.DataFrame(
        [[*two, *x] for two, *x in zip(PAIRS, *values, strict=True)], columns=columns
    )


def questions(source, **settings):
    """What is asked of a table, and how it can be read."""
    with pytest.raises(RankingsError) as error:
        read_survey(source, **settings)
    return error.value.questions


def ties_of(survey):
    """Whether each line is a tie."""
    orders = survey.rankings
    return orders.has_ties[orders.row_index][survey.label_index].tolist()


# the columns, and what they say
DRAWS = {
    "margin": (["winner", "loser", "margin"], [2, 1, 0, 3]),
    "goals": (["Winner", "Loser", "goals"], [2, 1, 0, 3]),
    "words": (["better", "worse", "difference"], [0.5, 1.5, 0, 3]),
    "score": (["winner", "loser", "score"], ["2-1", "3:2", "1-1", "1 - 0"]),
    "two": (["winner", "loser", "winner_goals", "loser_goals"], [2, 1, 1, 3], [0, 0, 1, 2]),
    "short": (["winner", "loser", "w_score", "l_score"], [2, 1, 1, 3], [0, 0, 1, 2]),
}


@pytest.mark.parametrize("suffix", ["", ".csv", ".xlsx"])
@pytest.mark.parametrize("name", DRAWS)
def test_a_margin_of_0_is_no_win(tmp_path, name, suffix):
    columns, *values = DRAWS[name]
    source = table(columns, *values)
    if suffix == ".csv":
        source.to_csv(path := tmp_path / "t.csv", index=False)
    elif suffix == ".xlsx":
        book, path = openpyxl.Workbook(), tmp_path / "t.xlsx"
        for row in (source.columns.tolist(), *source.to_numpy().tolist()):
            book.active.append(row)
        book.save(path)
    source = path if suffix else source
    found = questions(source)
    assert found.is_read and found.options == {"columns": columns}
    assert "nobody has won" in found.texts[0] and ("4" if suffix else "row 3") in found.texts[0]
    assert ties_of(read_survey(source, **found.options)) == [False, False, True, False]
    left_out = read_survey(source, columns=columns[:2])
    assert ties_of(left_out) == [False] * 4 and left_out.layout == "pairs"


def test_margins_above_0_are_left_out_and_those_below_0_are_refused():
    read = read_survey(table(["winner", "loser", "margin"], [1, 2, 1, 3]))
    assert ties_of(read) == [False] * 4 and "columns left out: 'margin'" in read.notes
    with refusal("row 2: by 'margin' the item in 'loser' has won, as in 1 other line: 4"):
        read_survey(table(["winner", "loser", "margin"], [1, -2, 1, -3]))
    wrong = table(["winner", "loser", "winner_score", "loser_score"], [1, 2, 3, 4], [0, 0, 5, 0])
    with refusal("row 3: by 'winner_score' and 'loser_score'", "columns=['winner', 'loser']"):
        read_survey(wrong, columns="*")
    assert not questions(wrong).is_read
    # of a score either may come first
    scores = table(["winner", "loser", "score"], ["2-1", "0-3", "1-0", "2-4"])
    assert ties_of(read_survey(scores)) == [False] * 4


SCALES = {
    "score": [1, 5, 3, 4],
    "rating": [1, 7, 4, 2],
    "preference": [0, 100, 50, 25],
    "strength": [0.25, 0.5, 1, 0],
    "points": [2, 1, 0, 2],
}


@pytest.mark.parametrize("name", SCALES)
def test_numbers_on_a_scale_do_not_say_which_is_preferred(tmp_path, name):
    frame = table(["item_a", "item_b", name], SCALES[name])
    beside = frame.assign(judge=list("vwxy"))
    said = f"the numbers in {name!r}, from", "write 'item_a', 'item_b' or tie instead"
    for source, settings in (
        (frame, {}),
        (frame, {"layout": "pairs"}),
        (frame, {"layout": "pairs", "columns": [*frame.columns]}),
        (beside, {"judge": "judge"}),
        (write(tmp_path, frame.to_csv(index=False), "t.csv"), {}),
    ):
        with refusal(*said):
            read_survey(source, **settings)
        assert not questions(source, **settings).is_read
    with refusal(*said):
        PartialOrders.from_pairs(frame, pair=("item_a", "item_b"), winner=name)
    # the same in a form that is read
    signed = frame.rename(columns={name: "score"}).assign(score=[-2, 2, 0, 1])
    assert ties_of(read_survey(signed)) == [False, False, True, False]


def test_numbers_for_the_sides_and_codes_beside_them_are_no_scale():
    frame = table(["item_a", "item_b", "preference"], [1, 2, 0, 99])
    with refusal("missing='99' leaves such a line out"):
        read_survey(frame, "pairs", columns=[*frame.columns])
    read = read_survey(frame, "pairs", columns=[*frame.columns], missing="99")
    assert ties_of(read) == [False, False, True]
    # an item that is not known is no number on a scale
    numbers = pd.DataFrame({"a": ["1", "2", "3"], "b": ["2", "3", "1"], "winner": ["1", "3", "57"]})
    with refusal("'57' does not say which of '3' and '1' is preferred"):
        read_survey(numbers)


BEST = [("A", "D"), ("E", "B"), ("B", "D"), ("A", "B")]


def test_the_best_and_the_worst_are_compared():
    frame = pd.DataFrame(BEST, columns=["Best", "Worst"])
    frame.insert(0, "respondent", [1, 1, 2, 2])
    frame.insert(1, "task", [1, 2, 1, 2])
    for source in (frame, frame.assign(shown=["A;B;C;D", "B;C;E;F", "A;B;C;D", "A;B;E;F"])):
        found = questions(source)
        answer = {"judge": "respondent", "columns": ["Best", "Worst"], "layout": "pairs"}
        assert found.is_read and found.options == answer and len(found.texts) == 1
        read = read_survey(source, **answer)
        assert read.judges == ["1", "2"] and read.rankings.num_items == 4
    shown = frame.assign(i1=list("ABAA"), i2=list("BCBB"), i3=list("CECE"), i4=list("DFDF"))
    for settings in ({}, {"layout": "long"}, {"layout": "ranks"}):
        with refusal("the best and the worst of the items in 'i1', 'i2'"):
            read_survey(shown, **settings)
    # places are no sets of items that were shown
    places = pd.DataFrame([list("abcd"), list("bdac")], columns=["Best", "2nd", "3rd", "Worst"])
    assert joined(read_survey(places)) == ["a b c d", "b d a c"]


def test_1_for_the_best_and_minus_1_for_the_worst():
    rows = [(1, -1, 0, None, 0), (None, 1, 0, -1, 0), (0, 0, 1, -1, None)]
    frame = pd.DataFrame(rows, columns=list("ABCDE"), dtype="Int64")
    frame.insert(0, "id", [1, 2, 3])
    with refusal("'A' has 1 and 'B' has -1, as the best and the worst in each row"):
        read_survey(frame, "ranks", judge="id")
