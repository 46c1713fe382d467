"""Tables as people have them: layouts, judges, separators, and what is refused."""

import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pytest
from helpers.readers import by_name, in_order, joined, refusal, write

from numpyro_rankings import Rankings, RankingsError
from numpyro_rankings.readers import Survey, grids, read_rankings, read_survey, write_survey
from numpyro_rankings.readers.grids import looks_like_table
from numpyro_rankings.readers.surveys import survey_of, with_sample

ITEMS = ("tea", "coffee", "cocoa", "maté")
LISTS = [[1, 0], [0, 1, 2, 3], [1, 0], [3], [0, 1, 2, 3]]
WHO = ["a1", "a2", "b1", "b2", "c"]
REGION = ["N", "S", "N", "", "S"]
RANKS = pd.DataFrame(
    {
        "who": WHO,
        "region": ["N", "S", "N", None, "S"],
        "tea": [2, 1, 2, None, 1],
        "coffee": [1, 2, 1, None, 2],
        "cocoa": [None, 3, None, None, 3],
        "maté": [None, 4, None, 1, 4],
    }
)
ORDERS = pd.DataFrame(
    {
        "who": WHO,
        "region": RANKS["region"],
        "1st": ["coffee", "tea", "coffee", "maté", "tea"],
        "2nd": ["tea", "coffee", "tea", None, "coffee"],
        "3rd": [None, "cocoa", None, None, "cocoa"],
        "4th": [None, "maté", None, None, "maté"],
    }
)
LONG = pd.DataFrame(
    [
        (who, region, ITEMS[item], place)
        for who, region, listed in zip(WHO, RANKS["region"], LISTS, strict=True)
        for place, item in enumerate(listed, 1)
    ],
    columns=["judge", "region", "item", "rank"],
)
CELLS = pd.DataFrame(
    {
        "who": WHO,
        "region": RANKS["region"],
        "order": [";".join(ITEMS[k] for k in listed) for listed in LISTS],
    }
)
READ = {
    "ranks": (RANKS, {"layout": "ranks", "judge": "who"}),
    "orders": (ORDERS, {"layout": "orders", "judge": "who", "items": ITEMS}),
    "long": (LONG, {"layout": "long", "items": ITEMS}),
    "cell": (CELLS, {"layout": "cell", "judge": "who", "items": ITEMS}),
}


def assert_is_the_survey(survey):
    assert survey.rankings.items == ITEMS
    assert in_order(survey) == LISTS
    assert survey.judges == WHO and survey.about == {"region": REGION}
    assert survey.rankings.num_rows == 3  # equal ones are merged


@pytest.mark.parametrize("name", READ)
def test_layouts_of_a_data_frame(name):
    frame, settings = READ[name]
    assert_is_the_survey(read_survey(frame, about=["region"], **settings))


TEXTS = {
    "commas": lambda frame: frame.to_csv(index=False).encode(),
    "byte order mark, Windows": lambda frame: frame.to_csv(
        index=False, lineterminator="\r\n"
    ).encode("utf-8-sig"),
    "semicolons": lambda frame: frame.to_csv(index=False, sep=";").encode(),
    "tabs": lambda frame: frame.to_csv(index=False, sep="\t").encode(),
    "decimal commas": lambda frame: frame.to_csv(
        index=False, sep=";", decimal=",", float_format="%.1f"
    ).encode(),
    "quoted": lambda frame: frame.to_csv(index=False, quoting=1).encode(),
    "R": lambda frame: frame.to_csv(index=False, na_rep="NA").encode(),
    "R, with the numbers of the rows": lambda frame: (
        frame.set_index(pd.RangeIndex(1, len(frame) + 1)).to_csv(na_rep="NA", quoting=2).encode()
    ),
    "pandas, with the numbers of the rows": lambda frame: frame.to_csv().encode(),
    "empty last columns": lambda frame: frame.to_csv(index=False).replace("\n", ",,\n").encode(),
    "UTF-16 with tabs": lambda frame: frame.to_csv(index=False, sep="\t").encode("utf-16"),
    "names its separator": lambda frame: (
        "sep=;\r\n" + frame.to_csv(index=False, sep=";", lineterminator="\r\n")
    ).encode("utf-8-sig"),
    "blank lines": lambda frame: frame.to_csv(index=False).replace("\n", "\n\n").encode(),
}


@pytest.mark.parametrize("how", TEXTS)
@pytest.mark.parametrize("name", READ)
def test_layouts_of_text_files(tmp_path, name, how):
    frame, settings = READ[name]
    path = write(tmp_path, TEXTS[how](frame), "survey.csv")
    assert_is_the_survey(read_survey(path, about=["region"], **settings))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx", ".parquet"])
@pytest.mark.parametrize("name", READ)
def test_what_is_written_is_read_back(tmp_path, name, suffix):
    frame, settings = READ[name]
    survey = read_survey(frame, about=["region"], **settings)
    path = tmp_path / f"survey{suffix}"
    write_survey(survey, path, name)
    again = read_survey(path, name, judge="judge", about=["region"], items=ITEMS)
    assert_is_the_survey(again)
    assert again.rankings == survey.rankings
    np.testing.assert_array_equal(again.label_index, survey.label_index)


def test_names_of_columns_that_say_the_layout(tmp_path):
    orders = ORDERS.drop(columns=["who", "region"])
    assert in_order(read_survey(orders, items=ITEMS)) == LISTS
    survey = read_survey(LONG.rename(columns={"rank": "Position"}), about="region", items=ITEMS)
    assert_is_the_survey(survey)
    assert "layout='long'" in survey.notes[0]
    plain = orders.set_axis(["1", "2", "3", "4"], axis=1)  # these could be items, too
    with pytest.raises(RankingsError, match="the layout is needed"):
        read_survey(plain)


def test_a_table_that_may_be_either_is_asked_about(tmp_path):
    path = write(tmp_path, "x,y,z\n2,1,3\n", "either.csv")
    with refusal("either.csv:2", "'x' has rank 2", "'2' is at place 'x'", "layout='ranks'"):
        read_survey(path)
    assert in_order(read_survey(path, "ranks")) == [[1, 0, 2]]
    survey = read_survey(path, "orders")
    assert survey.rankings.items == ("2", "1", "3") and in_order(survey) == [[0, 1, 2]]


@pytest.mark.parametrize("names", [["3. Wahl", "2. Wahl", "1. Wahl"], ["top3", "top2", "top1"]])
def test_places_with_other_names_go_by_their_numbers(names):
    survey = read_survey(pd.DataFrame([["z", "y", "x"]], columns=names), "orders")
    assert by_name(survey) == [["x", "y", "z"]]
    assert any("order of their numbers: " + ", ".join(names[::-1]) in x for x in survey.notes)
    assert read_survey(pd.DataFrame([["x", "y", "z"]], columns=names[::-1]), "orders").notes == []


@pytest.mark.parametrize("dtype", ["str", "object", "category"])
def test_a_long_data_frame_has_no_item_without_a_name(dtype):
    frame = LONG.astype({"judge": dtype, "item": dtype})
    survey = read_survey(frame, "long", about="region")
    assert set(survey.rankings.items) == {"tea", "coffee", "cocoa", "maté"}
    assert survey.judges == WHO and not any("rank nothing" in x for x in survey.notes)


@pytest.mark.parametrize("layout", ["ranks", "orders", "long"])
def test_data_frames_that_rankings_write_are_read_back(layout):
    rankings = read_survey(RANKS, "ranks", judge="who", about="region").rankings
    frame = rankings.to_dataframe(layout)
    again = read_survey(frame, layout, judge="judge", items=rankings.items)
    assert again.rankings == rankings.merged()[0] and again.judges == list("12345")


def test_names_of_judges_in_the_index_are_taken_or_told():
    frame = pd.DataFrame({"x": [1, 2], "y": [2, 1]}, index=["ann", "bob"])
    survey = read_survey(frame, "ranks")
    assert survey.judges is None and "the index, which has no name, is left out" in survey.notes[0]
    named = frame.rename_axis("who")
    assert "judge='who'" in read_survey(named, "ranks").notes[0]
    survey = read_survey(named, "ranks", judge="who")
    assert survey.judges == ["ann", "bob"] and survey.notes == []
    assert read_survey(frame.reset_index(drop=True), "ranks").notes == []


def test_columns_that_a_long_table_leaves_out_are_told():
    survey = read_survey(LONG, "long", items=ITEMS)
    assert "1 other column is left out: 'region'" in survey.notes


def test_ranks_of_some_of_the_items():
    frame = pd.DataFrame({"x": [4, 1], "y": [2, 3], "z": [1, 4], "w": [3, 2]})
    with pytest.raises(RankingsError, match="with columns=, and add gaps='close'"):
        read_survey(frame[["x", "y"]], "ranks")
    picked = {"columns": ["x", "y"], "gaps": "close"}
    assert in_order(read_survey(frame, "ranks", **picked)) == [[1, 0], [0, 1]]
    assert in_order(read_survey(frame, "ranks", highest_first=True, **picked)) == [[0, 1], [1, 0]]


def test_units_below_the_names_do_not_name_the_items(tmp_path):
    path = write(tmp_path, "who,x,y\n,rank,rank\na,1,2\nb,2,1\n", "x.csv")
    survey = read_survey(path, "ranks", judge="who", header_rows=2)
    assert survey.rankings.items == ("x", "y") and in_order(survey) == [[0, 1], [1, 0]]


def test_further_sheets_are_told(tmp_path):
    with pd.ExcelWriter(tmp_path / "x.xlsx") as book:
        for name in ("first", "second"):
            RANKS.to_excel(book, sheet_name=name, index=False)
    survey = read_survey(tmp_path / "x.xlsx", "ranks", judge="who", about="region")
    assert "only the first sheet is read, 'first'" in survey.notes
    assert_is_the_survey(survey)


def test_numbers_of_rows_are_left_out_with_a_note():
    frame = pd.DataFrame({"Unnamed: 0": [0, 1, 2], "x": [1, None, 2], "y": [2, None, 1]})
    survey = read_survey(frame, "ranks")
    assert survey.rankings.items == ("x", "y") and in_order(survey) == [[0, 1], [1, 0]]
    assert "the first column has no name and numbers the rows: it is left out" in survey.notes
    assert "1 judge ranks nothing and is left out: row 2" in survey.notes


def test_long_numbers_of_judges_are_no_numbers_of_rows():
    judges = ["123456789012345678901", "123456789012345678902", "3"]
    frame = pd.DataFrame({"Unnamed: 0": judges, "x": [1, 1, 2], "y": [2, 2, 1]})
    survey = read_survey(frame, "ranks", judge="Unnamed: 0")
    assert survey.judges == judges and in_order(survey) == [[0, 1], [0, 1], [1, 0]]


def test_counts_and_blank_rows():
    frame = pd.DataFrame({"n": [3, 1, 2], "x": [1, None, 2], "y": [2, None, 1]})
    survey = read_survey(frame, "ranks", count="n")
    assert in_order(survey) == [[0, 1]] * 3 + [[1, 0]] * 2
    assert "1 judge ranks nothing and is left out: row 2" in survey.notes
    assert survey.judges is None and survey.about == {}


def test_labels_come_back_in_the_order_of_the_file():
    survey = read_survey(RANKS, "ranks", judge="who", about="region")
    labels = np.asarray(survey.rankings.row_index)  # of each ranking, as a kernel has it
    np.testing.assert_array_equal(labels[survey.label_index], [0, 1, 0, 2, 1])
    assert sorted(survey.label_index.tolist()) == list(range(5))
    frame = pd.DataFrame({"x": [1, 2, 3, 3, 1], "y": [2, 1, 1, 1, 2], "z": [3, 3, 2, 2, 3]})
    assert read_survey(frame, "ranks").label_index.tolist() == [0, 2, 3, 4, 1]


def test_items_that_are_not_ranked():
    below = read_survey(RANKS, "ranks", judge="who", about="region")
    assert below.rankings.choice_sets is None
    assert any(
        "read as ranked below the others: use unranked='not-offered' if" in x for x in below.notes
    )
    survey = read_survey(RANKS, "ranks", judge="who", about="region", unranked="not-offered")
    offered = np.asarray(survey.rankings.choice_sets)
    np.testing.assert_array_equal(offered.sum(1), np.asarray(survey.rankings.lengths))
    full = RANKS.iloc[[1, 4]]
    survey = read_survey(full, "ranks", judge="who", about="region", unranked="not-offered")
    assert survey.rankings.choice_sets is None and survey.notes == []


def test_places_go_by_their_names():
    frame = pd.DataFrame({"3rd": ["z"], "1st": ["x"], "2nd": ["y"]})
    assert by_name(read_survey(frame, "orders")) == [["x", "y", "z"]]
    numbered = frame.set_axis(["10", "1", "2"], axis=1)
    assert by_name(read_survey(numbered, "orders")) == [["x", "y", "z"]]


def test_an_item_that_is_called_NA():
    frame = pd.DataFrame({"1st": ["NA", "EU"], "2nd": ["EU", "NA"]})
    assert in_order(read_survey(frame, items=["NA", "EU"])) == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    "text", ['"judge\nid";"tea, black";coffee\na;1;2\n', "sep=;\nid;tea;coffee\na;1;2\n"]
)
def test_separators_in_odd_headers(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    name = "judge\nid" if "judge" in text else "id"
    assert in_order(read_survey(tmp_path / "x.csv", "ranks", judge=name)) == [[0, 1]]


def test_formulas_without_a_value(tmp_path):
    book = openpyxl.Workbook()
    for row in (["tea", "coffee"], [1, "=1+1"]):
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    with pytest.raises(RankingsError, match=r"row 2, column 2: the formula '=1\+1' has no"):
        read_survey(tmp_path / "x.xlsx", "ranks")


@pytest.mark.parametrize(
    ("layout", "row"),
    [("ranks", {"x": 1, "y": 4, "z": 3}), ("orders", {"1st": "x", "2nd": None, "3rd": "y"})],
)
def test_gaps(layout, row):
    frame = pd.DataFrame([row, row])
    frame["w"] = None if layout == "ranks" else "z"
    if layout == "orders":
        frame = frame.rename(columns={"w": "4th"})
    with pytest.raises(RankingsError, match="gaps='close'"):
        read_survey(frame, layout)
    survey = read_survey(frame, layout, gaps="close")
    assert by_name(survey) == [["x", "z", "y"] if layout == "ranks" else ["x", "y", "z"]] * 2
    assert "gaps were closed in 2 lists" in survey.notes


def test_gaps_of_a_long_table():
    lines = [("a", "x", 1), ("b", "x", 4), ("a", "y", 2), ("b", "y", 1), ("b", "z", 2)]
    frame = pd.DataFrame(lines, columns=["judge", "item", "rank"])
    with pytest.raises(RankingsError, match="judge 'b': 'x' has rank 4, but no item has rank 3"):
        read_survey(frame, "long")
    survey = read_survey(frame, "long", gaps="close")
    assert in_order(survey) == [[0, 1], [1, 2, 0]]
    assert "gaps were closed in 1 list" in survey.notes


A_HOLE = {
    "ranks": {"who": ["r1", "r2", "r3"], "A": [1, 2, 1], "B": [None, 3, 2], "C": [3, 4, 3]}
    | {"D": [4, None, None]},
    "orders": {"who": ["r1", "r2", "r3"], "1st": ["A", None, "A"], "2nd": [None, "A", "B"]}
    | {"3rd": ["C", "B", "C"], "4th": ["D", "C", None]},
    "long": {"judge": list("111222333"), "item": list("ACDABCABC")}
    | {"rank": [1, 3, 4, 2, 3, 4, 1, 2, 3]},
    "cell": {"who": ["r1", "r2", "r3"], "order": ["A;;C;D", ";A;B;C", "A;B;C"]},
}


@pytest.mark.parametrize("layout", A_HOLE)
def test_a_gap_of_the_only_item_left_out(layout):
    """It is either the item that is missing, or last; a list without a gap ends with it."""
    frame = pd.DataFrame(A_HOLE[layout])
    settings = {"items": list("ABCD")} | ({} if layout == "long" else {"judge": "who"})
    left_out = "that is the only one left out" if layout == "cell" else "the only one left out, as"
    with refusal("gaps='close' keeps", left_out, "gaps='fill' puts"):
        read_survey(frame, layout, **settings)
    filled = read_survey(frame, layout, gaps="fill", **settings)
    assert joined(filled) == ["A B C D", "D A B C", "A B C"]
    assert "the one item that is left out was put at the one gap of 2 lists" in filled.notes
    closed = read_survey(frame, layout, gaps="close", **settings)
    assert joined(closed) == ["A C D", "A B C", "A B C"]
    assert "gaps were closed in 2 lists" in closed.notes
    note = "in 2 lists with a gap one item is left out, which is read as {}: gaps='fill' puts"
    assert any(x.startswith(note.format("below the others")) for x in closed.notes)
    others = read_survey(frame, layout, gaps="close", unranked="not-offered", **settings)
    assert any(x.startswith(note.format("not offered")) for x in others.notes)
    last = "{} without one of the 4 items: it is read as the last; use unranked='not-offered' if"
    assert any(x.startswith(last.format("1 list")) for x in filled.notes)
    assert any(x.startswith(last.format("3 lists")) for x in closed.notes)
    assert not any("it is read as the last" in x for x in others.notes)


def test_fill_closes_other_gaps():
    frame = pd.DataFrame({"A": [1, 1], "B": [3, None], "C": [None, 3], "D": [4, None]})
    survey = read_survey(frame, "ranks", gaps="fill")
    assert by_name(survey) == [["A", "C", "B", "D"], ["A", "C"]]
    assert "gaps were closed in 1 list" in survey.notes


# ---------------------------------------------------------------------------------------------
# What is refused: the file, its layout and options, and parts of the message
# ---------------------------------------------------------------------------------------------

BAD = {
    "empty": ("", {}, ["empty"]),
    "a byte order mark": ("\ufeff", {}, ["empty"]),
    "comments": ("# a\n# b\n", {}, ["bad.csv:1", "commas, semicolons or tabs"]),
    "from 0": ("x,y,z\n0,1,2\n", {}, ["bad.csv:2: column 'x'", "whole number from 1", "'0'"]),
    "thousands": ('n,x,y\n"1,000",1,2\n', {"count": "n"}, ["column 'n'", "'1,000'"]),
    "too many": ("n,x,y\n2000000000,1,2\n", {"count": "n"}, ["bad.csv:2", "at most 100,000,000"]),
    "an error": ("1st,2nd\nA,#REF!\n", {"layout": "orders"}, ["bad.csv:2: column '2nd'", "#REF!"]),
    "no place": (
        "id,1st,2nd\n1,A,B\n",
        {"layout": "orders"},
        ["is 'id' part of the ranking?", "add about=", "or judge="],
    ),
    "items twice": ("x,y\n1,2\n", {"items": ["x", "x"]}, ["two items have the name 'x'"]),
    "one column": ("x\n1\n", {}, ["bad.csv:1", "commas, semicolons or tabs"]),
    "two separators": ("x,y;z\n1,2;3\n", {}, ["bad.csv:1", "commas and semicolons"]),
    "no rows": ("x,y\n", {}, ["no rows"]),
    "blank rows": ("x,y\n,\n,\n", {}, ["no rows"]),
    "no name": ("x,,y\n1,2,3\n", {}, ["bad.csv:1", "column 2 has no name"]),
    "same name": ("x,y,x\n1,2,3\n", {}, ["bad.csv:1", "two columns have the name 'x'"]),
    "a title": ("Drinks\n\nx,y\n1,x\n", {}, ["bad.csv:1", "remove what is above them"]),
    "a remark": ("x,y,z\n1,2,3\nSource: me\n", {}, ["bad.csv:3", "1 cell, ", "if it is a remark"]),
    "not the numbers of the rows": (",x,y\n2,1,2\n1,2,1\n", {}, ["column 1 has no name"]),
    "short row": ("x,y,z\n1,2,3\n1,2\n", {}, ["bad.csv:3", "2 cells, expected 3"]),
    "long row": ("x,y\n1,2\n1,2,3\n", {}, ["bad.csv:3", "3 cells, expected 2"]),
    "quote": ('x,y\n1,"2\n', {}, ["bad.csv:2"]),
    "text": ("x,y\n1,2\n1,two\n", {}, ["bad.csv:3: column 'y'", "got 'two'", "add about='y'"]),
    "fraction": ("x,y\n1,1.5\n", {}, ["bad.csv:2: column 'y'", "1.5"]),
    "negative": ("x,y\n1,-1\n", {}, ["bad.csv:2: column 'y'", "-1"]),
    "too large": (
        "x,y\n1,34\n",
        {},
        ["column 'y'", "rank 34, but there are 2 items", "add about='y'"],
    ),
    "ids": ("id,x,y\n7,1,2\n", {}, ["is 'id' part of the ranking?", "or judge='id'"]),
    "tie": ("x,y,z\n2,3,3\n", {}, ["bad.csv:2", "the ranks are 2, 3, 3", "gaps='close'"]),
    "gap": (
        "x,y,z\n1,3,\n",
        {},
        ["bad.csv:2", "'y' has rank 3, but no item has rank 2", "gaps='close' keeps"],
    ),
    "one item": ("w,x\na,1\n", {"judge": "w"}, ["at least 2 items, got 1"]),
    "nothing ranked": ("w,x,y\na,,\n", {"judge": "w"}, ["no row ranks any item"]),
    "names of rows": (
        ",x,y\nann,1,2\nbob,2,1\n",
        {},
        ["bad.csv:1: column 1 has no name", "names the judges", "write a name above it"],
    ),
    "names of rows that the header leaves out": (
        "x,y\nann,1,2\nbob,2,1\n",
        {},
        ["bad.csv:2", "3 cells, expected 2", "in front of the first row"],
    ),
    "a title with empty cells": (
        "Drinks,,\nby me,,\nwho,x,y\nwho,1,2\n",
        {"judge": "who"},
        ["bad.csv:1: only the first column has a name, 'Drinks'", "title", "remove"],
    ),
    "a row of units": (
        "who,x,y\n,[1-2],[1-2]\na,1,2\n",
        {"judge": "who"},
        ["bad.csv:2: column 'x'", "'[1-2]'", "remove it or add header_rows=2"],
    ),
    "a fraction": ("x,y\n1/2,2/2\n", {}, ["column 'x'", "'1/2'", "write the number alone"]),
    "totals with answers below": (
        "who,x,y\na,1,2\nMean,1,2\nb,2,1\n",
        {"judge": "who"},
        ["bad.csv:3: this row seems to have totals", "'Mean' is in its first cell", "remove it"],
    ),
    "subtotals of a group": (
        "region,who,x,y\nN,a,1,2\nSubtotal,,1,2\nS,b,2,1\n",
        {"about": "region", "judge": "who"},
        ["bad.csv:3", "'Subtotal'"],
    ),
    "the worst first": (
        "worst,middle,best\nA,B,C\n",
        {"layout": "orders"},
        ["'worst' comes before 'best'", "best first"],
    ),
    "the best and the worst": (
        "best,worst\nA,B\n",
        {"layout": "orders"},
        ["'best' and 'worst'", "nothing of what is between", "columns='best'"],
    ),
    "stars": (
        "judge,item,stars\na,x,5\na,y,4\n",
        {"layout": "long", "rank": "stars"},
        ["is 1 the first choice, or the highest number", "'stars'"],
    ),
    "no such judge": ("x,y\n1,2\n", {"judge": "id"}, ["no column 'id'", "'x', 'y'"]),
    "no such column": ("x,y\n1,2\n", {"about": ["age"]}, ["no column 'age'"]),
    "twice": ("w,x,y\na,1,2\n", {"judge": "w", "about": ["w"]}, ["'w' is named twice"]),
    "same judge": (
        "w,x,y\na,1,2\na,2,1\n",
        {"judge": "w"},
        ["bad.csv:3: judge 'a' has a row already, bad.csv:2", "leave out judge="],
    ),
    "no judge": ("w,x,y\n,1,2\n", {"judge": "w"}, ["bad.csv:2", "'w' is empty"]),
    "count": ("n,x,y\n0,1,2\n", {"count": "n"}, ["bad.csv:2: column 'n'", "'0'"]),
    "count of words": ("n,x,y\nmany,1,2\n", {"count": "n"}, ["column 'n'", "'many'"]),
    "huge count": ("n,x,y\n99999999999,1,2\n", {"count": "n"}, ["column 'n'", "positive whole"]),
    "no such item": ("x,y\n1,2\n", {"items": ["x", "q"]}, ["no column for the item 'q'"]),
    "column left": ("x,y,z\n1,2,3\n", {"items": ["x", "y"]}, ["'z' is no item", "to about="]),
    "item column": ("x,y\n1,2\n", {"item": "x"}, ["not of ranks"]),
    "twice in an order": (
        "1st,2nd\nA,A\n",
        {"layout": "orders"},
        ["bad.csv:2", "'A' is listed twice"],
    ),
    "hole in an order": ("1st,2nd\n,A\n", {"layout": "orders"}, ["'1st' is empty", "gaps='close'"]),
    "unknown in an order": (
        "1st,2nd\nA,B\nA,b\n",
        {"layout": "orders", "items": ["A", "B"]},
        ["bad.csv:3: column '2nd'", "no item 'b'", "expected A, B"],
    ),
    "one name": ("1st,2nd\nA,\n", {"layout": "orders"}, ["at least 2 items"]),
    "long: column": ("who,item,rank\na,x,1\n", {"layout": "long"}, ["which column has the judge"]),
    "long: no item": (
        "judge,item,rank\na,,1\n",
        {"layout": "long"},
        ["bad.csv:2", "'item' is empty"],
    ),
    "long: no judge": (
        "judge,item,rank\na,x,1\n,y,2\n",
        {"layout": "long"},
        ["bad.csv:3: column 'judge' is empty", "in each row"],
    ),
    "long: twice": (
        "judge,item,rank\na,x,1\na,x,2\n",
        {"layout": "long"},
        ["bad.csv:3", "judge 'a' ranks 'x' twice"],
    ),
    "long: tie": (
        "judge,item,rank\na,x,3\na,y,3\n",
        {"layout": "long"},
        ["judge 'a'", "the ranks are 3, 3, with 'y' tied at 3"],
    ),
    "long: rank": ("judge,item,rank\na,x,best\n", {"layout": "long"}, ["bad.csv:2", "'best'"]),
    "long: about": (
        "judge,item,rank,age\na,x,1,30\na,y,2,31\n",
        {"layout": "long", "about": ["age"]},
        ["bad.csv:3", "'age' is '31', but '30'", "judge 'a'"],
    ),
    "long: item": (
        "judge,item,rank\na,x,1\n",
        {"layout": "long", "items": ["y", "z"]},
        ["bad.csv:2", "no item 'x'; expected y, z"],
    ),
    "layout": ("x,y\n1,2\n", {"layout": "wide"}, ["ranks, orders, long", "'wide'"]),
    "unranked": ("x,y\n1,2\n", {"unranked": "last"}, ["'below' or 'not-offered'"]),
    "gaps": ("x,y\n1,2\n", {"gaps": "no"}, ["'refuse' or 'close'"]),
    "other letters": ("x,é\n1,2\n".encode("latin-1"), {}, ["UTF-8", "CSV UTF-8"]),
    "no spreadsheet": ("x,y\n1,2\n", {"file": "bad.xlsx"}, ["bad.xlsx: cannot be read"]),
    "no parquet": ("x,y\n1,2\n", {"file": "bad.parquet"}, ["bad.parquet: cannot be read"]),
    "own format": (
        "# item A: Ann\n# item B: Bob\ncount,ordering\n1,A\n",
        {},
        ["layout does not go"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_by_row_and_column(tmp_path, monkeypatch, name):
    text, options, parts = BAD[name]
    options = {"layout": "ranks", **options}
    monkeypatch.chdir(tmp_path)
    file = options.pop("file", "bad.csv")
    write(tmp_path, text, file)
    with refusal(*parts):
        read_survey(file, **options)


def test_files_that_say_what_they_hold_take_no_layout(tmp_path):
    (tmp_path / "x.soi").write_text("")
    with pytest.raises(RankingsError, match="judge does not go with a PrefLib file"):
        read_survey(tmp_path / "x.soi", judge="id", unranked="below")


def test_surveys_that_cannot_be_written(tmp_path):
    frame = pd.DataFrame({"who": ["p", "=q"], "a": [1, 2], "b": [2, 1], "n": [3, 1]})
    survey = read_survey(frame, "ranks", judge="who", count="n")
    with pytest.raises(RankingsError, match="a judge has several rankings"):
        write_survey(survey, tmp_path / "x.csv")
    survey = read_survey(frame.drop(columns="n"), "ranks", judge="who")
    with pytest.raises(RankingsError, match="begins with = for a formula"):
        write_survey(survey, tmp_path / "x.xlsx")
    with pytest.raises(RankingsError, match="cannot be written"):
        write_survey(survey, tmp_path / "none" / "x.csv")
    with pytest.raises(RankingsError, match="same name"):
        write_survey(survey._replace(about={"judge": ["1", "2"]}), tmp_path / "x.csv")
    partly = Rankings.from_orderings(
        [[0]], num_items=3, choice_sets=np.array([[True, True, False]])
    )
    with pytest.raises(RankingsError, match="which were offered"):
        write_survey(partly, tmp_path / "x.csv")
    marked = Rankings.from_orderings([[0, 1]], items=["x; y", "z"])
    with pytest.raises(RankingsError, match="contains a semicolon"):
        write_survey(marked, tmp_path / "x.csv", "cell")
    whole = Rankings.from_orderings([[0, 1]], items=["judge", "y"])
    with pytest.raises(RankingsError, match="same name"):
        write_survey(whole, tmp_path / "x.csv")
    for path, layout in (("x.doc", "ranks"), ("x.csv", "pairs")):
        with pytest.raises(RankingsError):
            write_survey(whole, tmp_path / path, layout)
    offered = Rankings.from_orderings(
        [[0, 1]], items=["x", "y", "z"], choice_sets=np.array([[True, True, False]])
    )
    write_survey(survey_of(offered, "test"), tmp_path / "y.csv")
    assert (
        read_rankings(tmp_path / "y.csv", "ranks", judge="judge", unranked="not-offered") == offered
    )


def test_fields_of_a_survey():
    survey = survey_of(
        Rankings.from_orderings([[0, 1], [1, 0]], num_items=2, counts=[2, 1]), "test"
    )
    assert isinstance(survey, Survey) and survey.label_index.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tea,milk\n1,2\n2,1\n", True),
        ("tea;milk\n1,5;2\n", True),
        ("sep=;\ntea;milk\n1;2\n", True),
        ("\ntea\tmilk\n1\t2\n", True),
        ("tea,milk\n1,2,3\n2,1\n1\n2,1\n", True),  # with mistakes, which its reader tells
        ("tea,milk\n1,2\n".encode("utf-16"), True),
        ('"tea, with milk",water\n1,2\n', True),
        ("", False),
        ("Ballots of 1980\n", False),
        ("The ballots, of 1980.\n\nSee the paper.\nOr the page.\n", False),
        ("# Ballots\n\n- a.csv, b.csv\n- c.csv, d.csv\n", False),
        ("names\nann\nbob\n", False),
    ],
)
def test_texts_that_look_like_tables(tmp_path, text, expected):
    assert looks_like_table(write(tmp_path, text, "a.txt")) == expected
    assert looks_like_table(tmp_path / "none.txt")


@pytest.mark.parametrize("sheet", ["ballots", "notes"])
@pytest.mark.parametrize(("row", "column", "words"), [(900, 1, "5 rows"), (3, 99, "160 cells, 32")])
def test_a_spreadsheet_that_unpacks_to_more_than_is_read(
    sheet, row, column, words, tmp_path, monkeypatch
):
    """It is refused at once, not when all of it is in memory, unless an option says how many."""
    book, path, read = openpyxl.Workbook(), tmp_path / "x.xlsx", []
    book.active.title = "ballots"
    book.active.append(["Ann", "Bob"])
    book.active.append([1, 2])
    (book["ballots"] if sheet == "ballots" else book.create_sheet(sheet)).cell(row, column, 7)
    book.save(path)
    text = grids._text
    monkeypatch.setattr(grids, "_text", lambda cell: read.append(cell) or text(cell))
    message = f"x.xlsx: the sheet '{sheet}' has more than {words}.* save it as .csv.* max_rows="
    with pytest.raises(RankingsError, match=message):
        read_survey(path, "ranks", max_rows=5)
    assert len(read) < 400
    monkeypatch.setattr(grids, "_MOST_ROWS", 5)
    with pytest.raises(RankingsError, match=message):
        read_survey(path, "ranks")
    if sheet == "notes":
        assert read_survey(path, "ranks", max_rows=900).rankings.num_rankings == 1


def test_rows_are_counted_before_they_are_read(tmp_path, monkeypatch):
    book, path = openpyxl.Workbook(), tmp_path / "x.xlsx"
    for row in (["Ann", "Bob"], *[[1, 2]] * 7):
        book.active.append(row)
    book.save(path)
    assert read_survey(path, "ranks", max_rows=8).rankings.num_rankings == 7
    monkeypatch.setattr(openpyxl, "load_workbook", None)
    with pytest.raises(RankingsError, match=r"x\.xlsx: a sheet has more than 7 rows.* max_rows="):
        read_survey(path, "ranks", max_rows=7)


@pytest.mark.parametrize(
    "most, source, words",
    [
        (0, "x.csv", "max_rows is a whole number from 1, not 0"),
        (5, "x.csv", r"max_rows= goes with a spreadsheet \(.xlsx\)"),
        (5, None, "max_rows= goes with a spreadsheet"),
    ],
)
def test_rows_of_other_tables_have_no_limit(tmp_path, most, source, words):
    table = pd.DataFrame({"Ann": [1], "Bob": [2]})
    path = write(tmp_path, "Ann,Bob\n1,2\n", "x.csv")
    with pytest.raises(RankingsError, match=words):
        read_survey(table if source is None else path, "ranks", max_rows=most)


def test_a_spreadsheet_that_states_too_few_rows(tmp_path):
    """Some programs do not count what they add."""
    book, path = openpyxl.Workbook(), tmp_path / "x.xlsx"
    for row in (["Ann", "Bob"], [1, 2], [2, 1], [2, 1]):
        book.active.append(row)
    book.save(tmp_path / "right.xlsx")
    with zipfile.ZipFile(tmp_path / "right.xlsx") as right, zipfile.ZipFile(path, "w") as wrong:
        for name in right.namelist():
            wrong.writestr(name, right.read(name).replace(b'ref="A1:B4"', b'ref="A1:B2"'))
    assert read_survey(path, "ranks").rankings.num_rankings == 3


def test_a_sample_of_the_judges_keeps_what_belongs_together(tmp_path):
    """Each judge has their own ranking, name, row and region still, in the order of the file."""
    rng = np.random.default_rng(3)
    orders = [rng.permutation(3) for _ in range(60)]
    lines = [f"p{k},{'NS'[k % 2]},{','.join('ABC'[i] for i in x)}" for k, x in enumerate(orders)]
    path = tmp_path / "t.csv"
    path.write_text("id,region,1st,2nd,3rd\n" + "\n".join(lines) + "\n")
    whole = read_survey(path, judge="id", about=["region"])
    some = with_sample(whole, 25)
    assert some.rankings.num_rankings == len(some.judges) == len(some.rows) == 25
    places = [int(name[1:]) for name in some.judges]
    assert places == sorted(set(places)) and (np.asarray(some.rows) == np.array(places) + 2).all()
    assert some.about["region"] == ["NS"[k % 2] for k in places]
    row = np.asarray(some.rankings.row_index)[some.label_index]
    letters = np.array(some.rankings.items)[np.asarray(some.rankings.orderings)[row]]
    assert [list(x) for x in letters] == [["ABC"[i] for i in orders[k]] for k in places]
    assert some.notes[-1] == "25 of 60 judges drawn at random"
    assert with_sample(whole, 25).judges == some.judges and with_sample(whole, 60) is whole
