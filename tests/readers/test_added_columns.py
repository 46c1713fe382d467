"""The user's own table with columns added, in the formats that tables have."""

import csv

import openpyxl
import pandas as pd
import pytest

from numpyro_rankings import RankingsError, read_survey
from numpyro_rankings.readers.added_columns import added_columns
from numpyro_rankings.readers.with_columns import (
    check_kind,
    name_with_columns,
    write_with_columns,
)

COLUMNS = ["cluster", "probability"]


def added(source, folder, values, **settings):
    folder.mkdir()
    path = folder / name_with_columns(str(source))
    columns = dict(zip(COLUMNS, zip(*values.values(), strict=True), strict=True))
    write_with_columns(str(source), path, columns, [*values], **settings)
    if path.suffix == ".xlsx":
        return [list(row) for row in openpyxl.load_workbook(path).worksheets[0].values]
    return path.read_text(encoding="utf-8").splitlines()


def test_a_text_file_keeps_its_cells_and_its_separator(tmp_path):
    """Also a name like one of the columns, a line of two, blank lines and what judges left out."""
    path = tmp_path / "t.csv"
    path.write_bytes(
        'id;cluster;1st;2nd\n007;=A;Añn;Bob\n\n8;"x\ny";Bob;Añn\n9;;;\n'.encode("latin-1")
    )
    survey = read_survey(
        path, "orders", columns=["1st", "2nd"], judge="id", about=["cluster"], encoding="latin-1"
    )
    assert survey.rows.tolist() == [2, 4]
    values = {2: (1, 0.75), 4: (2, 1.0)}
    lines = added(path, tmp_path / "out", values, encoding="latin-1", layout="orders")
    assert lines == [
        "id;cluster;1st;2nd;cluster (fitted);probability",
        "007;=A;Añn;Bob;1;0.75",
        ";;;;;",
        '8;"x',
        'y";Bob;Añn;2;1.0',
        "9;;;;;",
    ]


@pytest.mark.parametrize("title", [[], ["A title", None, None]])
def test_a_spreadsheet_keeps_formulas_and_other_sheets(tmp_path, title):
    book, path = openpyxl.Workbook(), tmp_path / "t.XLSX"
    sheet = book.active
    for row in ([title] if title else []) + [["who", "A", "B"], ["x", 1, 2], ["y", "=1+1", 1]]:
        sheet.append(row)
    sheet["A1"].font = openpyxl.styles.Font(bold=True)
    book.create_sheet("codes").append(["kept"])
    book.save(path)
    first = 1 + len(title[:1])
    has_header = not title
    values = {first + 1: (1, 0.5), first + 2: (2, 1.0)}
    rows = added(path, tmp_path / "out", values, has_header=has_header)
    assert rows[first] == ["x", 1, 2, 1, 0.5] and rows[first + 1] == ["y", "=1+1", 1, 2, 1.0]
    assert rows[0][-2:] == (COLUMNS if has_header else [None, None])
    made = openpyxl.load_workbook(tmp_path / "out/table.xlsx")
    assert made["codes"]["A1"].value == "kept" and made.worksheets[0]["A1"].font.bold


def test_one_column_of_lists_and_other_formats_become_text_with_commas(tmp_path):
    path = tmp_path / "lists.csv"
    path.write_text("order\nAnn>Bob\nBob>Ann\n")
    values = {2: (1, 1.0), 3: (2, 0.5)}
    lines = added(path, tmp_path / "out", values, layout="cell")
    assert lines == ["order,cluster,probability", "Ann>Bob,1,1.0", "Bob>Ann,2,0.5"]
    values = {1: (1, 1.0), 2: (2, 0.5)}
    pd.DataFrame({"A": [1, 2], "B": [2, 1]}).to_parquet(tmp_path / "t.parquet")
    lines = added(tmp_path / "t.parquet", tmp_path / "more", values)
    assert list(csv.reader(lines)) == [
        ["A", "B", *COLUMNS],
        ["1", "2", "1", "1.0"],
        ["2", "1", "2", "0.5"],
    ]


@pytest.mark.parametrize(
    "names, kind", [(("t.csv", "out.xlsx"), "csv"), (("t.XLSX", "out.csv"), "xlsx")]
)
def test_other_kinds_are_refused(tmp_path, names, kind):
    with pytest.raises(
        RankingsError, match=rf"with columns added, {names[0]} is written as \.{kind}"
    ):
        check_kind(names[0], tmp_path / names[1])
    for source, path in (("t.csv", "out.tsv"), ("t.parquet", "out.csv"), ("t.xlsx", "out.xlsx")):
        check_kind(source, tmp_path / path)


def test_texts_of_numbers_are_numbers_in_a_spreadsheet_and_columns_say_where_they_are_from(
    tmp_path,
):
    book, path = openpyxl.Workbook(), tmp_path / "t.xlsx"
    for row in (["who", "cluster"], ["x", "y"]):
        book.active.append(row)
    book.save(path)
    rows = added(path, tmp_path / "out", {2: ("none", "0.5")}, by="assigned")
    assert rows == [["who", "cluster", "cluster (assigned)", COLUMNS[1]], ["x", "y", "none", 0.5]]


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_names_stand_beside_those_of_the_table_and_not_beside_its_title(tmp_path, kind):
    """Names of items are texts, also 007; quotes and the mark at the start stay."""
    rows = [["Survey 2024", "", ""], ["id", "A, B", "C"], ["p1", 1, 2], ["p2", 2, 1]]
    path = tmp_path / f"t.{kind}"
    if kind == "xlsx":
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append([x or None for x in row])
        book.save(path)
    else:
        lines = [";".join(f'"{x}"' for x in row) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8-sig")
    out = tmp_path / f"out.{kind}"
    write_with_columns(str(path), out, {"next 1": ["007", ""], "p": ["0.5", ""]}, [3, 4])
    if kind == "xlsx":
        found = [list(row) for row in openpyxl.load_workbook(out).worksheets[0].values]
        assert found[1][3:] == ["next 1", "p"] and found[2][3:] == ["007", 0.5]
        assert found[0][3:] == [None, None]
    else:
        found = list(csv.reader(out.open(encoding="utf-8-sig"), delimiter=";"))
        assert found[1:3] == [["id", "A, B", "C", "next 1", "p"], ["p1", "1", "2", "007", "0.5"]]
        assert out.read_bytes().startswith(b"\xef\xbb\xbf")
        assert read_survey(out, "ranks", columns=["A, B", "C"]).rankings.num_rankings == 2


FITTED = {"cluster": [1, 2], "probability": ["0.5", "0.9"]}
ASSIGNED = {
    "cluster": [2, "none"],
    "bloc": [1, 2],
    "probability": ["0.7", "0.8"],
    "bloc_probability": ["0.9", "1"],
    "group 1": ["0.1", "0.1"],
    "group 2": ["0.7", "0.1"],
    "none of the groups": ["0.2", "0.8"],
    "next 1": ["A", "B"],
    "probability of next 1": ["0.6", "0.4"],
}
TABLES = {
    "ranks": [["A", "B", "C"], [1, 2, 3], [2, 1, 3]],
    "orders": [["1st", "2nd", "3rd"], ["A", "B", "C"], ["B", "A", "C"]],
    "cell": [["order"], ["A;B;C"], ["B;A;C"]],
    "titled": [["A title", None, None], ["A", "B", "C"], [1, 2, 3], [2, 1, 3]],
}


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize("table", TABLES)
def test_added_columns_are_no_items_and_are_replaced(tmp_path, table, kind):
    rows, layout = TABLES[table], "ranks" if table == "titled" else table
    paths = [tmp_path / f"{k}.{kind}" for k in range(4)]
    if kind == "xlsx":
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(paths[0])
    else:
        with paths[0].open("w", newline="") as stream:
            csv.writer(stream).writerows(rows)
    own = read_survey(paths[0], layout)
    numbers = own.rows.tolist()
    changed = ASSIGNED | {"cluster": [1, 1]}
    steps = [(FITTED, "fitted"), (ASSIGNED, "assigned"), (changed, "assigned")]
    for k, (columns, by) in enumerate(steps):
        replaced = write_with_columns(
            str(paths[k]), paths[k + 1], columns, numbers, by=by, layout=layout
        )
        assert len(replaced) == (len(ASSIGNED) if k == 2 else 0)
        again = read_survey(paths[k + 1], layout)
        assert again.rankings.items == own.rankings.items
        assert any("has added are left out: cluster, probability" in x for x in again.notes)
    if kind == "xlsx":
        made = [list(row) for row in openpyxl.load_workbook(paths[3]).worksheets[0].values]
    else:
        made = list(csv.reader(paths[3].open()))
    header, first = made[-3], made[-2]
    width = len(rows[0])
    assert header[width : width + 2] == ["cluster", "probability"]
    assert header[width + 2 : width + 4] == ["cluster (assigned)", "bloc"]
    assert len(header) == width + 2 + len(ASSIGNED) and str(first[width + 2]) == "1"
    named = read_survey(paths[3], layout, about=["cluster (assigned)"])
    assert named.about == {"cluster (assigned)": ["1", "1"]}


def test_columns_of_the_user_are_not_taken_for_added_ones():
    """Those of other names, in another order; what stands right of them keeps its place."""
    assert added_columns(["A", "cluster", "B", "probability"]) == []
    assert added_columns(["my cluster", "probability", "cluster"]) == []
    names = ["A", *(f"{x} (fitted 2)" for x in FITTED), "mine", *ASSIGNED]
    assert added_columns(names) == [(range(1, 3), "fitted"), (range(4, 13), "assigned")]


def test_columns_with_others_at_their_right_stay(tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    path.write_text("A,B,cluster,probability,mine\n1,2,1,0.5,x\n2,1,2,0.9,y\n")
    assert write_with_columns(str(path), out, FITTED, [2, 3]) == []
    header = out.read_text().splitlines()[0]
    assert header == "A,B,cluster,probability,mine,cluster (fitted),probability (fitted)"


def test_items_that_are_called_like_added_columns():
    lists = [[1, 2, 3, 4], [2, 1, 4, 3], [4, 3, 2, 1]]
    names = ["regression", "cluster", "probability", "testing"]
    frame = pd.DataFrame(lists, columns=names)
    assert read_survey(frame, "ranks").rankings.items == tuple(names)
    frame = pd.DataFrame([x[:2] for x in lists], columns=names[1:3]).rank(axis=1).astype(int)
    assert read_survey(frame, "ranks").rankings.items == tuple(names[1:3])
    # shares are left out, unless they are named
    frame = pd.DataFrame(
        {"a": [1, 2], "b": [2, 1], "cluster": [1, 2], "probability": [0.5, "1e-05"]}
    )
    assert read_survey(frame, "ranks").rankings.items == ("a", "b")
    assert read_survey(frame, "ranks", items=list("ab")).rankings.items == ("a", "b")
    frame["probability"] = [1, 0]
    chosen = ["a", "b", "cluster", "probability"]
    with pytest.raises(RankingsError):
        read_survey(frame, "ranks", items=chosen)
