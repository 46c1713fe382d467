"""Tables without a header: asked about, and read with ``header="none"``."""

import numpy as np
import openpyxl
import pandas as pd
import pytest
from helpers.readers import joined, read_with_answers, refusal, write

from numpyro_rankings import RankingsError, read_survey

# the text, the options that read it, and its lists
NO_HEADER = {
    "orders of numbers": ("2,1,3\n1,2,3\n3,2,1\n", {}, ["2 1 3", "1 2 3", "3 2 1"]),
    "orders from 1": ("1,2,3\n2,1,3\n1,2,3\n", {}, ["1 2 3", "2 1 3", "1 2 3"]),
    "top orders": ("2,1,\n1,3,2\n3,,\n", {}, ["2 1", "1 3 2", "3"]),
    "orders from 0": ("1,0,2\n0,1,2\n", {}, ["1 0 2", "0 1 2"]),
    "names": ("Ann,Bob,Cid\nBob,Ann,Cid\n", {}, ["Ann Bob Cid", "Bob Ann Cid"]),
    "top names": ("Ann,Bob,,\nCid,Ann,Bob,Di\n", {}, ["Ann Bob", "Cid Ann Bob Di"]),
    "judges": ("r1,Ann,Bob\nr2,Bob,Ann\n", {"judge": "1"}, ["Ann Bob", "Bob Ann"]),
    "numbers of judges": ("7,Ann,Bob\n8,Bob,Ann\n", {"judge": "1"}, ["Ann Bob", "Bob Ann"]),
    "counts": ("9,2,1,3\n4,1,2,3\n", {"count": "1"}, ["2 1 3"] * 9 + ["1 2 3"] * 4),
    "ranks": ("3,1,2\n1,2,3\n", {"layout": "ranks"}, ["2 3 1", "1 2 3"]),
    "ranks and judges": (
        "r1,3,1,2\nr2,1,2,3\n",
        {"layout": "ranks", "judge": "1", "items": ["a", "b", "c"]},
        ["b c a", "a b c"],
    ),
    "long": (
        "r1,Ann,2\nr1,Bob,1\nr2,Ann,1\nr2,Bob,2\n",
        {"layout": "long", "judge": "1", "item": "2", "rank": "3"},
        ["Bob Ann", "Ann Bob"],
    ),
    "cell": (
        'r1,"Ann;Bob"\nr2,"Bob;Ann"\n',
        {"layout": "cell", "judge": "1"},
        ["Ann Bob", "Bob Ann"],
    ),
    "votes": (
        "Ann,undervote,Bob\nBob,Ann,undervote\n",
        {"layout": "votes"},
        ["Ann Bob", "Bob Ann"],
    ),
}


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize("name", NO_HEADER)
def test_tables_without_a_header(tmp_path, name, suffix):
    text, settings, lists = NO_HEADER[name]
    if name == "cell":
        text = text.replace(",", "\t").replace('"', "")
    settings = {"layout": "orders"} | settings
    rows = [line.split("\t" if name == "cell" else ",") for line in text.splitlines()]
    if suffix == ".xlsx":
        path, book = tmp_path / "t.xlsx", openpyxl.Workbook()
        for row in rows:
            book.active.append([int(x) if x.isdecimal() else x or None for x in row])
        book.save(path)
    else:
        path = write(tmp_path, text, "t.tsv" if name == "cell" else "t.csv")
    with refusal("the first row must name the columns", f"got {rows[0][0]!r}", "header='none'"):
        read_survey(path, settings["layout"])
    survey = read_survey(path, header="none", **settings)
    assert joined(survey) == lists
    assert any(note.startswith("without a header, the columns are") for note in survey.notes)


def test_rows_of_different_width(tmp_path):
    path = write(tmp_path, "2,1\n1,3,2\n\n3\n", "t.csv")
    with refusal("t.csv:2: has 3 cells, expected 2", "if the first row is a ballot, add header="):
        read_survey(path, "orders")
    assert joined(read_survey(path, "orders", header="none")) == ["2 1", "1 3 2", "3"]


def test_a_data_frame_whose_names_are_a_ballot(tmp_path):
    path = write(tmp_path, "2,1,3\n1,2,3\n", "t.csv")
    with refusal("the first row must name the columns", "header=None"):
        read_survey(pd.read_csv(path), "orders")
    assert joined(read_survey(pd.read_csv(path, header=None), "orders")) == ["2 1 3", "1 2 3"]
    with refusal("header='none' goes with a text file or a spreadsheet"):
        read_survey(pd.read_csv(path), "orders", header="none")
    pd.read_csv(path).to_parquet(tmp_path / "t.parquet")
    with refusal("the first row must name the columns", "write the file with names"):
        read_survey(tmp_path / "t.parquet", "orders")


# tables whose first row names the columns, although it is like those below
HEADERS = {
    "numbers of places": ("id,1,2,3\nr1,2,1,3\nr2,1,2,3\n", {"judge": "id"}),
    "numbers without a judge": ("who,1,2,3\nAnn,2,1,3\nBob,1,2,3\n", {"columns": ["1", "2", "3"]}),
    "numbers of rows": (",0,1,2\n1,2,1,3\n2,1,2,3\n", {}),
    "codes": ("10,20,30\n1,2,3\n2,1,3\n", {"layout": "ranks"}),
    "years": ("2020,2021,2022\n1,2,3\n2,1,3\n", {"layout": "ranks"}),
    "who ranks whom": (
        "who,Ann,Bob\nAnn,,1\nBob,1,\n",
        {"judge": "who", "layout": "ranks"},
    ),
    "items that are given": ("1,2,3\n2,1,3\n", {"layout": "ranks", "items": ["1", "2", "3"]}),
    "one row of names": ("1,2,3\n2,1,3\n1,3,2\n", {"header_rows": 1}),
    "places of names": ("1,2\nAnn,Bob\nBob,Ann\n", {}),
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_are_headers(tmp_path, name):
    text, settings = HEADERS[name]
    survey = read_survey(write(tmp_path, text, "t.csv"), **{"layout": "orders"} | settings)
    assert survey.rankings.num_rankings == len(text.splitlines()) - 1


@pytest.mark.parametrize("mark", [",", " "])
def test_ranks_as_numpy_saves_them(tmp_path, mark):
    ranks = np.array([[2, 1, 3], [1, 2, 3], [1, 3, 2]])
    np.savetxt(tmp_path / "t.csv", ranks, delimiter=mark)
    with refusal("the first row must name the columns", "header='none'"):
        read_survey(tmp_path / "t.csv", "ranks")
    survey = read_survey(tmp_path / "t.csv", "ranks", header="none")
    assert joined(survey) == ["2 1 3", "1 2 3", "1 3 2"]


def test_columns_of_a_data_frame_by_number():
    frame = pd.DataFrame(np.array([[2, 1, 3], [1, 2, 3]]), columns=["1", "2", "3"])
    assert joined(read_survey(frame, "ranks")) == ["2 1 3", "1 2 3"]


def test_header_has_one_value(tmp_path):
    path = write(tmp_path, "2,1\n1,2\n", "t.csv")
    with refusal("header is 'none'"):
        read_survey(path, "orders", header="first")
    with refusal("header_rows does not go with header='none'"):
        read_survey(path, "orders", header="none", header_rows=1)
    with refusal("3 names in items=, but 2 columns of ranks"):
        read_survey(path, "ranks", header="none", items=["a", "b", "c"])


@pytest.mark.parametrize("mark", [": ", "*", " × ", " "])
def test_counts_before_lists(tmp_path, mark):
    """The first list is no name of the column, and the counts are no part of the first items."""
    text = "".join(f"{n}{mark}{x}\n" for n, x in ((12, "Ann>Bob>Cid"), (7, "Bob>Ann"), (5, "Cid")))
    text = text.replace("5" + mark + "Cid", f"5{mark}Cid>Ann")
    path = write(tmp_path, text, "t.txt")
    with refusal("the first row must name the columns", "header='none'"):
        read_survey(path)
    with refusal("seems to be a number and a list", "add count='1' if it counts them"):
        read_survey(path, "cell", header="none")
    named = write(tmp_path, "ballot\n" + text.replace(">", ";"), "u.csv")
    with refusal("seems to be a number and a list", "add count='ballot'"):
        read_survey(named, "cell")
    for survey in (
        read_survey(path, header="none", count="1"),
        read_survey(named, "cell", count="ballot"),
        read_survey(
            pd.read_csv(named, sep="\0", engine="python"), count="ballot", columns="ballot"
        ),
    ):
        assert survey.rankings.items == ("Ann", "Bob", "Cid")
        assert joined(survey) == ["Ann Bob Cid"] * 12 + ["Bob Ann"] * 7 + ["Cid Ann"] * 5
    assert read_survey(path, header="none", judge="1").judges == ["12", "7", "5"]


@pytest.mark.parametrize("layout", ["ranks", "orders"])
def test_names_of_judges_before_numbers(tmp_path, layout):
    """Names below a word for judges leave 1, 2, 3 the names of columns."""
    text = "kim,1,2,3\nlee,2,1,3\nmax,3,2,1\nned,1,3,2\n"
    path = write(tmp_path, text, "t.csv")
    with refusal("the first row must name the columns", "got 'kim'", "header='none'"):
        read_survey(path, layout)
    assert read_survey(path, layout, header="none", judge="1").judges[0] == "kim"
    assert len(read_survey(path, layout, header_rows=1, judge="kim").judges) == 3
    named = write(tmp_path, text.replace("kim", "voter"), "u.csv")
    assert len(read_survey(named, layout, judge="voter").judges) == 3


@pytest.mark.parametrize("numbers", ["12345", "53124", (101, 102, 103, 104, 105)])
@pytest.mark.parametrize("layout", ["ranks", "orders", None])
def test_numbers_of_ballots_without_a_header(tmp_path, layout, numbers):
    lists = ["3,1,2", "1,2,3", "2,1,3", "1,3,2", "3,2,1"]
    text = "".join(f"{k},{x}\n" for k, x in zip(numbers, lists, strict=True))
    path = write(tmp_path, text, "t.csv")
    with refusal(
        "in the first column all differ", "judge='1'", "count='1'", "columns=['1', '2', '3', '4']"
    ):
        read_survey(path, layout, header="none")
    survey = read_survey(path, layout or "ranks", header="none", judge="1")
    assert survey.judges == [str(k) for k in numbers]
    assert survey.rankings.num_items == 3


def test_first_places_that_all_differ_are_no_numbers_of_ballots(tmp_path):
    path = write(tmp_path, "1,2,3\n2,3,1\n3,1,2\n", "t.csv")
    assert joined(read_survey(path, "orders", header="none")) == ["1 2 3", "2 3 1", "3 1 2"]


@pytest.mark.parametrize(
    "numbers, answer",
    [("10,5,3", {"count": "1"}), ("101,102,103", {"judge": "1"}), ("3,2,1", {"judge": "1"})],
)
def test_falling_numbers_before_ballots_count_them(tmp_path, numbers, answer):
    lists = ["1,2,3", "2,1,3", "3,1,2"] if "0" in numbers else ["2,1,3", "1,3,2", "2,3,1"]
    lines = [f"{x},{y}\n" for x, y in zip(numbers.split(","), lists, strict=True)]
    with pytest.raises(RankingsError) as error:
        read_survey(write(tmp_path, "".join(lines), "t.csv"), "orders", header="none")
    assert error.value.questions.options == answer


@pytest.mark.parametrize(
    "rows", ["1,2 3,1 2,3 1,3 2,1", "1,2 3,4 2,3 1,4 5,1", "101,102 103,101 102,103"]
)
@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("judge", ["", "Al"])
def test_two_numbers_in_each_row(tmp_path, rows, mark, judge):
    """Pairs, lists and points are told apart by a person; each way that is named reads them."""
    cells = [
        [*([f"{judge}{k}"] if judge else []), *x.split(",")] for k, x in enumerate(rows.split())
    ]
    path = write(tmp_path, "\n".join(map(mark.join, cells)) + "\n", "t.csv")
    given = {"header": "none"} | ({"judge": "1"} if judge else {})
    for options in ({}, given):
        with pytest.raises(RankingsError) as error:
            read_survey(path, **options)
        found = error.value.questions
        assert not found.is_read and not found.answers[-1]
        assert "layout" not in found.options and "header_rows" not in found.options
        assert f"what are the two numbers of a row, such as {cells[0][-2]} and" in found.texts[-1]
        for layout in ("pairs", "orders", "ranks"):
            assert f"layout='{layout}'" in found.texts[-1]
    lists = [x.replace(",", " ") for x in rows.split()]
    assert joined(read_survey(path, "orders", **given)) == lists
    assert read_survey(path, "pairs", **given).rankings.num_items == len(
        set(" ".join(lists).split())
    )
    points = {"highest_first": True, "gaps": "close", "ties": "exact"}
    first = [1 + (int(x) < int(y)) for x, y in map(str.split, lists)]
    named = ["1", "2"]
    expected = [f"{named[k - 1]} {named[2 - k]}" for k in first]
    assert joined(read_survey(path, "ranks", **given, **points)) == expected


def test_two_numbers_that_are_clear(tmp_path):
    """Ranks of two items are the same as pairs, and an item is no tie with itself."""
    path = write(tmp_path, "1,2\n2,1\n1,2\n1,2\n", "t.csv")
    said, survey = read_with_answers(path)
    assert said == {"header": "none", "layout": "ranks"}
    assert joined(survey) == ["1 2", "2 1", "1 2", "1 2"]
    path = write(tmp_path, "1,2\n3,\n2,3\n1,3\n", "u.csv")
    with pytest.raises(RankingsError, match="what are the two numbers of a row") as error:
        read_survey(path, header="none")
    assert "layout='pairs'" not in str(error.value)


@pytest.mark.parametrize("code", ["9", "99"])
@pytest.mark.parametrize("judge", [False, True])
def test_ranks_of_two_items_beside_a_code_are_ranks(tmp_path, code, judge):
    rows = [("1", code), ("1", "2"), (code, "1"), ("2", "1")]
    lines = [",".join((f"Al{k}", *row) if judge else row) for k, row in enumerate(rows)]
    said, survey = read_with_answers(write(tmp_path, "\n".join(lines), "t.csv"))
    assert said.pop("judge", None) == ("1" if judge else None)
    assert said == {"header": "none", "layout": "ranks", "missing": [code]}
    assert survey.rankings.num_rankings == 4
