"""Tables of cells, read from text files, spreadsheets, Parquet files and data frames.

A grid holds what the file says, as text. What the columns mean is the subject of ``surveys.py``.
"""

import contextlib
import csv
import io
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.text import read_lines

if TYPE_CHECKING:
    import pandas as pd

TEXT_SUFFIXES, EXCEL_SUFFIXES, PARQUET_SUFFIXES = (
    (".csv", ".tsv", ".txt"),
    (".xlsx",),
    (".parquet",),
)
_BLANK = {"", "NA", "NaN", "nan", "<NA>", "#N/A"}  # as spreadsheets, R and pandas write it
_ERRORS = {"#DIV/0!", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!"}  # of spreadsheets
# not "1,000", which may be a thousand
_WHOLE = re.compile(r"[+-]?\d{1,15}(?:[.,]0{0,2})?")
_BYTES_OF_HEAD, _LINES_OF_HEAD = 2**16, 20
_SEPARATOR_LINE = re.compile(r"sep=([,;\t])", re.IGNORECASE)


class Grid(NamedTuple):
    """A table of cells.

    - **name** - of the file, for messages.
    - **columns** - names of the columns.
    - **rows** - the cells of each row as text, without blanks around them; ``""`` if missing.
    - **places** - where each row is, such as ``FILE:5`` or ``FILE: row 5``.
    """

    name: str
    columns: list[str]
    rows: list[list[str]]
    places: list[str]

    def column(self, name: str) -> list[str]:
        """Return the cells of a column."""
        k = self.columns.index(name)
        return [row[k] for row in self.rows]


def read_grid(source: Any, names: Sequence[str] = ()) -> Grid:
    """Read a table whose first row names the columns.

    :param source: a file ``.csv``, ``.tsv`` or ``.txt`` in UTF-8, whose columns are separated by
        commas, semicolons or tabs; a spreadsheet ``.xlsx``, of which the first sheet is read; a
        ``.parquet`` file; or a data frame.
    :param names: texts that are names and not blanks, such as an item "NA".
    :raises RankingsError: naming the row and the column.
    """
    if hasattr(source, "columns") and hasattr(source, "iloc"):
        return _grid_of_frame("the table", source, names, lambda row: f"row {row + 1}")
    name, suffix = os.fspath(source), Path(source).suffix.lower()
    if suffix in TEXT_SUFFIXES:
        return _read_text(name, names)
    if not Path(name).is_file():
        read_lines(name)  # refuses what is no file
    read = _read_excel if suffix in EXCEL_SUFFIXES else _read_parquet
    try:
        return read(name, names)
    except ImportError as error:
        package = "openpyxl" if suffix in EXCEL_SUFFIXES else "pyarrow"
        raise RankingsError(
            f"{name}: {suffix} files need the package {package}: pip install "
            f"'numpyro-rankings[tables]' ({error})"
        ) from None
    except RankingsError:
        raise
    except Exception as error:  # these packages raise many kinds
        raise RankingsError(f"{name}: cannot be read as a {suffix} file: {error}") from None


def looks_like_table(path: str | os.PathLike) -> bool:
    """Return whether the beginning of a text file is that of a table, right or wrong.

    It is if half of the first lines, or more, have as many cells as the first one, which has two or
    more. Files that are not text, or cannot be read, count too: the reader says what is wrong.
    """
    try:
        with open(path, "rb") as stream:
            head = stream.read(_BYTES_OF_HEAD)
    except OSError:
        return True
    if b"\0" in head:
        return True
    text = head.decode("utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()][:_LINES_OF_HEAD]
    if lines and _SEPARATOR_LINE.fullmatch(lines[0].strip()):
        return True
    for mark in "\t;,":
        sizes = [len(row) for row in csv.reader(lines, delimiter=mark)]
        if len(sizes) > 1 and sizes[0] > 1 and 2 * sizes.count(sizes[0]) >= len(sizes):
            return True
    return False


def whole_number(text: str) -> int | None:
    """Return the whole number that a cell holds, such as ``3``, ``3.0`` or ``3,0``, or None."""
    return int(re.split("[.,]", text)[0]) if _WHOLE.fullmatch(text) else None


# ---------------------------------------------------------------------------------------------
# Readers
# ---------------------------------------------------------------------------------------------


def _read_text(name: str, names: Sequence[str]) -> Grid:
    lines = read_lines(name)
    first = next((k for k, line in enumerate(lines) if line.strip()), None)
    if first is None:
        raise RankingsError(f"{name}:1: the file is empty")
    if said := _SEPARATOR_LINE.fullmatch(lines[first].strip(" \r")):
        mark, lines[first] = said[1], ""
    else:
        mark = _separator(name, first + 1, lines[first:])
    rows, places = [], []
    text = io.StringIO("\n".join(lines), newline="")
    reader = csv.reader(text, delimiter=mark, strict=True)
    before = 0
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append(row)
                places.append(f"{name}:{before + 1}")
            before = reader.line_num
    except csv.Error as error:
        raise RankingsError(f"{name}:{before + 1}: {error}") from None
    return _grid(name, rows, places, names)


def _separator(name: str, number: int, lines: Sequence[str]) -> str:
    """Return what separates the columns: the only one of comma, semicolon and tab in the header."""
    marks, header = [], lines[0]
    for mark in "\t;,":
        with contextlib.suppress(csv.Error):
            header_lines = (f"{line}\n" for line in lines)
            if len(next(csv.reader(header_lines, delimiter=mark, strict=True))) > 1:
                marks.append(mark)
    if not marks:
        raise RankingsError(
            f"{name}:{number}: expected the names of the columns, separated by commas, semicolons "
            f"or tabs, got {header[:40]!r}"
        )
    if len(marks) > 1 and marks[0] != "\t":
        raise RankingsError(
            f"{name}:{number}: the names of the columns contain commas and semicolons; put names "
            "that contain them into quotes"
        )
    return marks[0]


def _read_excel(name: str, names: Sequence[str]) -> Grid:
    import openpyxl

    found = []
    for has_values in (True, False):  # the values, and the formulas that they are of
        book = openpyxl.load_workbook(name, read_only=True, data_only=has_values)
        try:
            rows = book.worksheets[0].iter_rows(values_only=True)
            found.append([[_text(cell) for cell in row] for row in rows])
        finally:
            book.close()
    cells, formulas = found
    for k, (row, of_row) in enumerate(zip(cells, formulas, strict=True), 1):
        for column, (cell, formula) in enumerate(zip(row, of_row, strict=True), 1):
            if not cell and formula.startswith("="):
                raise RankingsError(
                    f"{name}: row {k}, column {column}: the formula {formula[:40]!r} has no stored "
                    "value; open the file in a spreadsheet and save it"
                )
    used = [k for k, row in enumerate(cells) if any(row)]
    return _grid(name, [cells[k] for k in used], [f"{name}: row {k + 1}" for k in used], names)


def _read_parquet(name: str, names: Sequence[str]) -> Grid:
    import pandas as pd

    frame = pd.read_parquet(name)
    return _grid_of_frame(name, frame, names, lambda row: f"{name}: row {row + 1}")


def _grid_of_frame(
    name: str, frame: "pd.DataFrame", names: Sequence[str], where: Callable[[int], str]
) -> Grid:
    columns = [frame.iloc[:, k] for k in range(frame.shape[1])]
    cells = zip(*([_text(cell) for cell in column] for column in columns), strict=True)
    rows = [[_text(column) for column in frame.columns], *map(list, cells)]
    return _grid(name, rows, [name, *(where(k) for k in range(len(frame)))], names)


def _text(cell: Any) -> str:
    """Return a cell as text; whole numbers without a point."""
    if isinstance(cell, str):
        return cell
    try:
        if cell is None or bool(cell != cell):
            return ""
    except (TypeError, ValueError):  # a missing value of pandas
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).removesuffix(" 00:00:00")  # of dates


def _grid(
    name: str, rows: Sequence[Sequence[str]], places: Sequence[str], names: Sequence[str]
) -> Grid:
    """Check the names of the columns, and that all rows have as many cells."""
    if not rows:
        raise RankingsError(f"{name}: the table is empty")
    header = [cell.strip() for cell in rows[0]]
    blank = _BLANK - set(names)
    table = [["" if (text := cell.strip()) in blank else text for cell in row] for row in rows[1:]]
    # a spreadsheet may save empty columns at the end
    while (
        header
        and not header[-1]
        and all(len(row) < len(header) or not row[len(header) - 1] for row in table)
    ):
        header.pop()
    for k, column in enumerate(header):
        if not column:
            raise RankingsError(f"{places[0]}: column {k + 1} has no name")
        if column in header[:k]:
            raise RankingsError(f"{places[0]}: two columns have the name {column!r}")
    kept, where = [], []
    for row, place in zip(table, places[1:], strict=True):
        if len(row) < len(header) or any(row[len(header) :]):
            raise RankingsError(
                f"{place}: has {len(row)} cells, expected {len(header)}, one for each column named "
                "in the first row"
            )
        wrong = next((k for k, cell in enumerate(row) if cell in _ERRORS), None)
        if wrong is not None:
            raise RankingsError(f"{place}: column {header[wrong]!r}: the error {row[wrong]}")
        if any(row):
            kept.append(row[: len(header)])
            where.append(place)
    if not kept:
        raise RankingsError(f"{places[0]}: there are no rows below the names of the columns")
    return Grid(name, header, kept, where)
