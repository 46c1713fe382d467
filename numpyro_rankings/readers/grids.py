"""Tables of cells, read from text files, spreadsheets, Parquet files and data frames.

A grid holds what the file says, as text. What the columns mean is the subject of ``questions.py``
and of the layouts.
"""

import contextlib
import csv
import itertools
import os
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import is_missing, names_counted
from numpyro_rankings.readers.text import (
    TextFile,
    first_lines,
    read_lines,
    read_text,
    refuse_json,
    table_of_json,
)
from numpyro_rankings.words import by_number, plural
from numpyro_rankings.words.options import option

if TYPE_CHECKING:
    import pandas as pd

# Functions import pandas and what reads single formats, which take long to load.

TEXT_SUFFIXES, EXCEL_SUFFIXES, PARQUET_SUFFIXES, LABELLED_SUFFIXES = (
    (".csv", ".tsv", ".txt"),
    (".xlsx",),
    (".parquet",),
    (".sav", ".zsav", ".dta"),  # of SPSS and Stata, with labels of values
)
_BLANK = {"", "NA", "NaN", "nan", "<NA>", "#N/A"}  # as spreadsheets, R and pandas write it
_ERRORS = {"#DIV/0!", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!"}  # of spreadsheets
# not "1,000", which may be a thousand
_WHOLE = re.compile(r"[+-]?\d{1,15}(?:[.,]0{0,2})?")
_SCIENTIFIC = re.compile(r"\d\.\d{2,}e[+-]\d\d")  # as NumPy and C write 2.00e+00
_LINES_OF_HEAD, _LABELS_SHOWN = 20, 3
_MOST_TITLES = 3  # lines above the names of the columns
_CUT, _LENGTHS_OF_CUT = ("...", "…"), (31, 32, 63, 64, 127, 128, 255, 256)  # of long names
_LONG, _ALIKE = 20, 5  # letters of names with ... that are cut off, and at which two begin alike
_NAMES_OF_JUDGES = {"judge", "voter", "id", "name", "respondent", "participant", "rater", "user"}
_NO_MARK = "\x1f"  # between columns where there is one only: no text has it
_MOST_ROWS, _CELLS_OF_ROW = 2**20, 2**5  # of a sheet; spreadsheets have no more rows
_BYTES_AT_ONCE = 2**20  # of a file that is unpacked
_MERGED, _BYTES_OF_MERGED = re.compile(rb'[<:]mergeCell [^>]*ref="([A-Z]+\d+:[A-Z]+\d+)"'), 80
_MERGED_NOTE = "merged cells are read"
_LOOKED_AT = 1000  # texts
_FEWEST_NUMBERED = 4  # rows that a column behind the first one numbers
_ROWS_AT_ONCE = 2**8  # more would not stay in the cache of the processor
_IN_BRACKETS = r"[^\s,;()\[\]\"]+\[\d{1,3}\]"  # a name and its rank, as "C04[1]"
# a list in brackets, without quotes, or behind a number and a colon
_ONE_LIST = re.compile(r"c?[\[({][^\[\](){}]*[\])}]|\d+\s*:[^:]+")
_REMARK = re.compile(r"#+\s|//")
_SEPARATOR_LINE = re.compile(r"sep=([,;\t])", re.IGNORECASE)


class Column(NamedTuple):
    """A column of a table, whose texts are few and whose rows are many."""

    name: str
    values: list[str]  # the distinct texts, in order of first appearance; "" is a missing one
    codes: np.ndarray  # (rows,) int32, the text of each row, as an index of values
    label: str = ""  # its name in words, where the file says it

    def text(self, row: int) -> str:
        """Return the text of a row."""
        return self.values[self.codes[row]]

    def mapped(self, value: Callable[[str], Any], dtype: Any = np.int32) -> np.ndarray:
        """Return the value of the text of each row, (rows,)."""
        return np.array([value(text) for text in self.values], dtype)[self.codes]

    def is_blank(self) -> np.ndarray:
        """Return which rows have no text, (rows,) bool."""
        return self.mapped(lambda text: not text, bool)

    def counts(self) -> dict[str, int]:
        """Return how many rows have each text."""
        numbers = np.bincount(self.codes, minlength=len(self.values)).tolist()
        return dict(zip(self.values, numbers, strict=True))

    def first_rows(self) -> np.ndarray:
        """Return the row in which each of the values comes first, (values,) int."""
        first = np.full(len(self.values), len(self.codes))
        first[self.codes[::-1]] = np.arange(len(self.codes))[::-1]
        return first

    def with_texts(self, new: Callable[[str], str]) -> "Column":
        """Return the column with other texts, which may be the same for several values."""
        texts = [*map(new, self.values)]
        if texts == self.values:
            return self
        few = column_of_texts(self.name, texts)
        return self._replace(values=few.values, codes=few.codes[self.codes])

    def keep(self, rows: np.ndarray) -> "Column":
        """Return the column of some rows, and only the values that they have."""
        column = self._replace(codes=self.codes[rows])
        first = column.first_rows()
        used = np.argsort(first, kind="stable")[: np.sum(first < len(column.codes))]
        codes = np.zeros(len(self.values), np.int32)
        codes[used] = np.arange(len(used))
        return self._replace(values=[self.values[k] for k in used], codes=codes[column.codes])


class Grid(NamedTuple):
    """A table of cells."""

    name: str  # the name of the file, for messages
    cells: list[Column]  # the columns
    numbers: np.ndarray  # (rows,) int, the number of each row in the file
    place: str  # the name of a row in messages, such as "FILE:{}" or "FILE: row {}"
    header_place: str  # that of the row with the names of the columns
    notes: tuple[str, ...] = ()  # how cells were read, a sentence each

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.cells]

    def column(self, name: str) -> Column:
        """Return the column of this name."""
        return self.cells[self.columns.index(name)]

    def where(self, row: int) -> str:
        """Return where a row is, for messages."""
        return self.place.format(self.numbers[row])

    def also(self, rows: np.ndarray) -> str:
        """Return in which other rows than the first one something is, if there are others."""
        if len(rows) < 2:
            return ""
        shown = names_counted([str(x) for x in self.numbers[rows[1:]].tolist()])
        return f", as in {plural(len(rows) - 1, 'other line')}: {shown}"

    def at(self, row: int, column: Column) -> str:
        """Return where a cell is, for messages."""
        return f"{self.where(row)}: column {column.name!r}"

    def at_text(self, column: Column, text: str) -> str:
        """Return where a column has a text first, for messages."""
        return self.at(int(np.argmax(column.codes == column.values.index(text))), column)

    def keep(self, rows: np.ndarray) -> "Grid":
        """Return the table of some rows."""
        cells = [column.keep(rows) for column in self.cells]
        return self._replace(cells=cells, numbers=self.numbers[rows])


def table_of(columns: Sequence[Column], value: Callable[[str], int]) -> np.ndarray:
    """Return the values of the texts in columns, (rows, columns) int32."""
    return np.stack([column.mapped(value) for column in columns], axis=1)


def column_of_texts(name: str, texts: Iterable[str]) -> Column:
    """Return the column that has these texts from row to row."""
    index: dict[str, int] = {}
    codes = [index.setdefault(text, len(index)) for text in texts]
    return Column(name, list(index), np.array(codes, np.int32))


def read_grid(
    source: Any,
    names: Sequence[str] = (),
    encoding: str | None = None,
    layout: str | None = None,
    has_header: bool = True,
    max_rows: int | None = None,
) -> Grid:
    """Read a table whose first row names the columns; :func:`check_cells` checks the names.

    Texts in ``names`` are names and not blanks, such as an item "NA". A text file whose ``layout``
    is ``"cell"`` may have one column, in which commas separate no columns. Without a header,
    columns are called 1, 2, … A spreadsheet with more than ``max_rows`` rows is refused.
    """
    is_frame = hasattr(source, "columns") and hasattr(source, "iloc")
    suffix = "" if is_frame else Path(source).suffix.lower()
    if not has_header:
        _check_may_have_no_header(suffix)
    if max_rows is not None and suffix not in EXCEL_SUFFIXES:
        raise RankingsError(
            f"{option('max_rows')} goes with a spreadsheet ({', '.join(EXCEL_SUFFIXES)}): of other "
            "tables all rows are read"
        )
    if is_frame:
        if encoding is not None:
            raise RankingsError("encoding is that of a text file, and does not go with a table")
        return _grid_of_frame("the table", source, names, "row {}")
    name = os.fspath(source)
    if suffix in TEXT_SUFFIXES:
        return _read_text(name, names, encoding, layout, has_header)
    if encoding is not None:
        raise RankingsError(
            f"{name}: encoding is that of a text file, and {suffix} files say theirs"
        )
    if not Path(name).is_file():
        read_lines(name)  # refuses what is no file
    read, package = _PACKAGES[suffix]
    settings = (has_header, max_rows) if suffix in EXCEL_SUFFIXES else ()
    try:
        return read(name, names, *settings)
    except ImportError as error:
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
    head = first_lines(path)
    if head is None:
        return True
    lines = [line for line in head if line.strip()][:_LINES_OF_HEAD]
    if lines and _SEPARATOR_LINE.fullmatch(lines[0].strip()):
        return True
    for mark in "\t;,":
        sizes = [len(row) for row in csv.reader(lines, delimiter=mark)]
        if len(sizes) > 1 and sizes[0] > 1 and 2 * sizes.count(sizes[0]) >= len(sizes):
            return True
    return False


def check_cells(grid: Grid) -> None:
    """Refuse columns without a name or of the same name, and cells with an error."""
    if unnamed := [k for k, column in enumerate(grid.cells, 1) if not column.name]:
        each = by_number(len(unnamed), "it", "each")
        judges = ", such as id if it names the judges, as in tables of R" if unnamed[0] == 1 else ""
        are_names = all(grid.cells[k - 1].text(0) for k in unnamed) and _may_have_names(grid)
        has = by_number(len(unnamed), "column {} has", "columns {} have")
        two = f"; if the names are in two rows, add {option('header_rows', 2)}" if are_names else ""
        raise RankingsError(
            f"{grid.header_place}: {has.format(names_counted([*map(str, unnamed)]))} no name: "
            f"write a name above {each}{judges}{two}"
        )
    seen = set()
    for column in grid.cells:
        if column.name in seen:
            raise RankingsError(
                f"{grid.header_place}: two columns have the name {column.name!r}"
                f"{hint_of_cut_name(column.name)}: give each a name of its own"
            )
        seen.add(column.name)
    wrong = [
        (row, k)
        for k, column in enumerate(grid.cells)
        for text, row in zip(column.values, column.first_rows(), strict=True)
        if text in _ERRORS
    ]
    if wrong:
        row, k = min(wrong)
        column = grid.cells[k]
        raise RankingsError(
            f"{grid.where(row)}: column {column.name!r}: the error {column.text(row)}"
        )


def _may_have_names(grid: Grid) -> bool:
    """Return whether the first row may have names of columns: no numbers, and no text of others."""
    first = {column.text(0) for column in grid.cells} - {""}
    below = grid.keep(np.arange(len(grid.numbers)) > 0).cells
    is_other = all(first.isdisjoint(column.values) for column in below)
    return is_other and all(whole_number(text) is None for text in first)


def first_places(columns: Sequence[Column]) -> dict[str, tuple[int, int]]:
    """Return the row and the column in which each text comes first, row by row."""
    first: dict[str, tuple[int, int]] = {}
    for k, column in enumerate(columns):
        for text, row in zip(column.values, column.first_rows().tolist(), strict=True):
            first[text] = min(first.get(text, (row, k)), (row, k))
    return first


def hint_of_cut_name(name: str) -> str:
    """Return that a name that comes twice seems to have been cut off, or nothing."""
    is_cut = name.endswith(_CUT) or len(name) in _LENGTHS_OF_CUT
    return "; the names seem to have been cut off" if is_cut else ""


def notes_of_cut_names(names: Sequence[str]) -> list[str]:
    """Return a note of names that seem to have been cut off, and may then be the same.

    A short one, such as ``Other...``, is whole if no other such name begins like it.
    """
    ended = [name for name in names if name.endswith(_CUT)]
    starts = Counter(name[:_ALIKE] for name in ended)
    cut = [x for x in ended if len(x.rstrip(".… ")) >= _LONG or starts[x[:_ALIKE]] > 1]
    if not cut:
        return []
    cut = [repr(name[:40]) for name in cut]
    verb = by_number(len(cut), "seems", "seem")
    return [
        f"{names_counted(cut, 3)} {verb} to have been cut off: items with the same beginning would "
        "be read as one"
    ]


def refuse_ranks_in_brackets(where: str, names: Sequence[str]) -> None:
    """Refuse names that have their ranks on a ballot, such as ``C04[1]`` and ``C07[2]``."""
    pattern = re.compile(f"{_IN_BRACKETS}(?:,{_IN_BRACKETS})*")
    items = {name.partition("[")[0] for name in names}
    if len(items) > 1 and all(map(pattern.fullmatch, names)):
        raise RankingsError(
            f"{where}: {names[0][:40]!r} seems to be a name with its rank in brackets; write a "
            "column for each rank, such as 'Choice 1', with the names alone and '|' between those "
            f"at the same rank, and add {option('layout', 'votes', False)}; if it is a name, add "
            f"{option('items')} with all names"
        )


def _check_may_have_no_header(suffix: str) -> None:
    """Refuse sources that name their columns; a data frame is one without a suffix."""
    if suffix not in (*TEXT_SUFFIXES, *EXCEL_SUFFIXES):
        what = f"{suffix} files have" if suffix else "a data frame has"
        raise RankingsError(
            f"{option('header', 'none')} goes with a text file or a spreadsheet: {what} names of "
            "the columns"
        )


def whole_number(text: str) -> int | None:
    """Return the whole number that a cell holds, such as ``3``, ``3.0`` or ``3,0``, or None."""
    if _WHOLE.fullmatch(text):
        return int(text.replace(",", ".").partition(".")[0])
    if _SCIENTIFIC.fullmatch(text):
        number = float(text)
        return int(number) if number.is_integer() and number < 1e15 else None
    return None


# ---------------------------------------------------------------------------------------------
# Readers
# ---------------------------------------------------------------------------------------------


def _read_text(
    name: str, names: Sequence[str], encoding: str | None, layout: str | None, has_header: bool
) -> Grid:
    text, about_remarks = _without_remarks(read_text(name, encoding, hint=True), has_header)
    try:
        form = form_of_text(text, layout, has_header)
        rows = rows_of_text(text, form.mark, form.first)
        grid = _grid(name, place_of(name, ":{}"), rows, names, has_header)
        return grid._replace(notes=(*about_remarks, *form.notes, *grid.notes))
    except RankingsError:
        head = itertools.islice(enumerate(text.lines(), 1), _LINES_OF_HEAD)
        lists = {k: names for k, x in head if (names := re.findall(_IN_BRACKETS, x))}
        if len(lists) > 1:  # one line may have the names of columns
            refuse_ranks_in_brackets(f"{name}:{min(lists)}", [x for y in lists.values() for x in y])
        raise


def _without_remarks(text: TextFile, has_header: bool) -> tuple[TextFile, tuple[str, ...]]:
    """Make lines below the first one blank that are remarks, such as ``# day 2``; return a note.

    They have other numbers of cells than all other lines; or they have not what separates items
    there, and are in no other line: a list may be a single name that begins so.
    """
    if not any(x + y in text.content for x in (b"\n", b"\r") for y in (b"# ", b"##", b"//")):
        return text, ()
    lines = [line.rstrip("\n") for line in text.lines()]
    every = [k for k, line in enumerate(lines) if line.strip()]
    remarks = [k for k in every[1:] if _REMARK.match(lines[k])][:_LOOKED_AT]
    others = [lines[k] for k in every if k == every[0] or not _REMARK.match(lines[k])]
    if 2 * len(remarks) > len(every) or '"' in "".join(lines[k] for k in remarks):
        return text, ()
    below = others[1 : _LOOKED_AT + 1]
    marks = [x for x in "\t;,|>≻→" if below and all(x in line for line in below)]
    of_cells = [x for x in marks if has_header and x in "\t;," and x in others[0]]
    of_cells = [x for x in of_cells if len({line.count(x) for line in (others[0], *below)}) == 1]
    whole = "\n".join((*others, *(lines[k] for k in remarks if any(x in lines[k] for x in marks))))
    found = {
        k
        for k in remarks
        if any(lines[k].count(x) != others[0].count(x) for x in of_cells)
        or (
            (not any(x in lines[k] for x in marks if x in ">≻→|" or len(marks) == 1))
            and marks
            and lines[k].strip() not in whole
        )
    }
    if not found:
        return text, ()
    kept = "\n".join("" if k in found else line for k, line in enumerate(lines))
    shown = names_counted([f"{text.name}:{k + 1}" for k in sorted(found)], 3)
    return text._replace(content=kept.encode(text.encoding)), (f"left out as remarks: {shown}",)


def form_of_text(text: TextFile, layout: str | None, has_header: bool) -> "Form":
    """Return how the lines of a text file are a table."""
    first, line = next((k, line) for k, line in enumerate(text.lines()) if line.strip())
    if said := _SEPARATOR_LINE.fullmatch(line.strip()):
        return Form(said[1], first + 1)
    if layout != "cell" or not line.strip().endswith("]"):  # a ballot
        refuse_json(text, first)
    in_brackets = layout in (None, "cell") and _have_brackets_around_commas(text, first)
    if re.match(r'\{\s*"[^"]*"\s*:', line):
        raise RankingsError(
            f"{text.name}:{first + 1}: {line.strip()[:40]!r} seems to be an object of JSON: "
            f"{table_of_json(text.name, how='lines=True')}"
        )
    if in_brackets and (has_header or layout is None):
        raise RankingsError(
            f"{text.name}:{first + 1}: {line.strip()[:40]!r} has brackets around a list, as the "
            f"line below: add {option('layout', 'cell')} and {option('header', 'none')} if each "
            "line is a ballot; put lists into quotes if there are other columns"
        )
    is_list = layout == "cell" and not has_header
    if is_list and (in_brackets or _ONE_LIST.fullmatch(line.strip())):
        return Form(_NO_MARK, first)
    return _form_of(text, first, layout, has_header)


def _have_brackets_around_commas(text: TextFile, first: int) -> bool:
    """Return whether a comma between columns would cut brackets in the first two lines."""
    lines = itertools.islice((line for line in text.lines(first) if line.strip()), 2)
    try:
        rows = [row for line in lines for row in csv.reader([line], strict=True)]
    except csv.Error:  # lists of JSON are never cut
        return False

    def are_cut(row: Sequence[str], left: str, right: str) -> bool:
        """The brackets of a line are complete, as those of a) and :) are not, but not in cells."""
        line = "".join(row)
        is_complete = line.count(left) == line.count(right)
        return is_complete and any(cell.count(left) != cell.count(right) for cell in row)

    return len(rows) > 1 and all(
        any(are_cut(row, *two) for two in ("[]", "()", "{}")) for row in rows
    )


def rows_of_text(text: TextFile, mark: str, first: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the line, and the cells, of each row."""
    if mark == " ":  # one or more of them
        for number, line in enumerate(text.lines(first), first + 1):
            yield from ((number, x) for x in csv.reader([" ".join(line.split())], delimiter=mark))
        return
    if b'"' not in text.content:  # in half the time
        for number, line in enumerate(text.lines(first), first + 1):
            yield number, line.rstrip("\n").split(mark)
        return
    reader = csv.reader(text.lines(first), delimiter=mark, strict=True)
    number = first + 1
    try:
        for row in reader:
            yield number, row
            number = first + 1 + reader.line_num
    except csv.Error as error:
        raise RankingsError(
            f"{text.name}:{number}: {error}; are the quotation marks around texts in pairs?"
        ) from None


def place_of(name: str, form: str) -> str:
    """Return the form of the places of a file, whose name may have braces."""
    return name.replace("{", "{{").replace("}", "}}") + form


class Form(NamedTuple):
    """How the lines of a text file are a table."""

    mark: str  # what separates the columns
    first: int  # the index of the line with their names
    notes: tuple[str, ...] = ()


def _form_of(text: TextFile, first: int, layout: str | None, has_header: bool) -> Form:
    """Return the form of a table: the only one of comma, semicolon and tab in its first row."""
    marks = []
    for mark in "\t;,":
        with contextlib.suppress(csv.Error):
            if len(next(csv.reader(text.lines(first), delimiter=mark, strict=True))) > 1:
                marks.append(mark)
    if not marks:
        return _form_without_marks(text, first, layout, has_header)
    if len(marks) > 1 and marks[0] != "\t":
        if has_header and len(found := _below_mixed_title(text, marks, first)) == 1:
            return found[0]
        raise RankingsError(
            f"{text.name}:{first + 1}: the first row contains commas and semicolons; put names "
            "that contain them into quotes, or remove the line if it is a title"
        )
    if has_header and len(rows := list(itertools.islice(_full_rows(text, marks[0], first), 2))) > 1:
        others = [mark for mark in "\t;," if mark != marks[0]]
        if (
            len(rows[0][1]) != len(rows[1][1])
            and len(found := _below_titles(text, others, first)) == 1
        ):
            return found[0]
    return Form(marks[0], first)


def _full_rows(text: TextFile, mark: str, first: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank."""
    return ((k, row) for k, row in rows_of_text(text, mark, first) if any(map(str.strip, row)))


def _below_titles(text: TextFile, marks: Sequence[str], first: int) -> list[Form]:
    """Return the tables below a title with another mark in it, that some marks make."""
    found = []
    for mark in marks:
        with contextlib.suppress(RankingsError):
            rows = list(_full_rows(text, mark, first))
            if any(len(row) > 1 for _, row in rows):
                found.append(_below_title(mark, rows))
    return [form for form in found if form is not None]


def _below_mixed_title(text: TextFile, marks: Sequence[str], first: int) -> list[Form]:
    """Return the tables below a title that has several marks, of which each makes some cells.

    It has not as many cells as the rows below, of which the first has names and no numbers.
    """
    found = []
    for mark in marks:
        with contextlib.suppress(RankingsError):
            (number, title), *rows = _full_rows(text, mark, first)
            names = rows[0][1] if rows else title
            if 1 < len(names) != len(title) and all(map(str.strip, names)):
                is_plain = not any(other in name for name in names for other in marks)
                if is_plain and all(whole_number(x.strip()) is None for x in names):
                    found.append(_below_title(mark, [(number, [mark.join(title)]), *rows]))
    return [form for form in found if form is not None]


def _form_without_marks(text: TextFile, first: int, layout: str | None, has_header: bool) -> Form:
    """Return the form of a table whose first line is one name, a title, or has blanks."""
    if layout == "cell":
        return Form(_NO_MARK, first)
    tables = {}
    for mark in "\t;,":
        with contextlib.suppress(RankingsError):
            tables[mark] = list(_full_rows(text, mark, first))
    wide = {m: rows for m, rows in tables.items() if any(len(row) > 1 for _, row in rows)}
    find = _below_title if has_header else _without_names
    found = [x for mark, rows in wide.items() if (x := find(mark, rows)) is not None]
    if len(found) == 1:
        return found[0]
    has_bar = has_header and "|" in next(text.lines(first))
    if not wide and has_bar and _has_bars(list(_full_rows(text, "|", first))):
        return Form("|", first, ("the columns are separated by '|'",))
    if not wide and _has_blanks_between_columns(text, first, has_header):
        return Form(" ", first, ("the columns are separated by blanks",))
    is_single = not any(" " in line.strip() for line in text.lines(first))
    if not wide and (layout is None or (layout == "orders" and is_single)):
        return Form(_NO_MARK, first)
    line = next(text.lines(first)).rstrip("\n")
    expected, is_list, none = "the names of the columns", "names a single column of lists", ""
    if not has_header:
        expected, is_list = "a ballot in columns", "is a list in a single column"
    elif sum(_without_names(mark, rows) is not None for mark, rows in wide.items()) == 1:
        none = f"{option('header', 'none')} if the columns have no names, or "
    # lists in cells are no answer to who says that there are columns
    cell = option("layout", "cell", layout is None and not none)
    raise RankingsError(
        f"{text.name}:{first + 1}: expected {expected}, separated by commas, semicolons or tabs, "
        f"got {line[:40]!r}; remove what is above them, such as a title, or add {none}{cell} if it "
        f"{is_list}"
    )


def _below_title(mark: str, rows: Sequence[tuple[int, list[str]]]) -> Form | None:
    """Return the form of a table below a title, or None if it may be a list below a name.

    Its rows have as many cells as its first one, whose texts are names: they do not come again.
    """
    start = next(k for k, (_, row) in enumerate(rows) if len(row) > 1)
    (number, names), below = rows[start], rows[start + 1 :]
    texts = {text.strip() for _, row in below for text in row} - {""}
    is_table = bool(below) and all(len(row) == len(names) for _, row in below)
    if start > _MOST_TITLES or not is_table or not texts.isdisjoint(map(str.strip, names)):
        return None
    titles = ", ".join(repr(row[0].strip()[:40]) for _, row in rows[:start])
    return Form(mark, number - 1, (f"left out above the names of the columns: {titles}",))


def _without_names(mark: str, rows: Sequence[tuple[int, list[str]]]) -> Form | None:
    """Return the form of ballots below a title, or of which the first has a single item.

    None if it may be either. Titles are left out later.
    """
    (number, (item, *_)), *below = rows
    texts = {text.strip() for _, row in below for text in row}
    return Form(mark, number - 1) if item.strip() in texts or is_title(item, texts) else None


def is_title(text: str, others: Iterable[str]) -> bool:
    """Return whether a text alone in a row is a title of ballots, which have the **others**.

    These are numbers, or it has more words than any of them. An item would be there, too.
    """
    texts = {*others} - {""}
    if text in texts or whole_number(text) is not None:
        return False
    most = max((len(x.split()) for x in texts), default=0)
    return len(text.split()) > most or all(whole_number(x) is not None for x in texts)


def _has_bars(rows: Sequence[tuple[int, list[str]]]) -> bool:
    """Return whether all rows have as many cells, and what is in the first one does not come again.

    Lists have names of items again; those of a table are names of columns.
    """
    (_, names), *below = rows
    texts = {text.strip() for _, row in below for text in row}
    is_table = len(names) > 1 and below and all(len(row) == len(names) for _, row in below)
    return bool(is_table) and texts.isdisjoint(map(str.strip, names))


def _has_blanks_between_columns(text: TextFile, first: int, has_header: bool) -> bool:
    """Return whether blanks separate columns, and not the words of names in a single one.

    Each row has as many texts as the first one, or one more, the name of the row. A column of
    numbers, or a text that is in two columns, says that they are columns.
    """
    names, *rows = (row for _, row in rows_of_text(text, " ", first) if any(row))
    rows = rows if has_header else [names, *rows]
    widths = set(map(len, rows))
    if len(names) < 2 or widths not in ({len(names)}, {len(names) + 1}):
        return False
    columns = [set(column) for column in zip(*rows, strict=True)]
    has_numbers = any(all(whole_number(x) is not None for x in texts) for texts in columns)
    is_shared = any(one & other for one, other in itertools.combinations(columns, 2))
    has_lists = any(mark in line for line in text.lines(first) for mark in "><≻≺|=")
    is_column = has_numbers or (is_shared and widths == {len(names)})
    return is_column and not has_lists


def _merged_of_few_rows(name: str, most: int) -> dict[str, list[str]]:
    """Return the merged cells, and refuse more rows than are read, in a fraction of their time.

    None is counted that is not there: it is by the rows that are read that the rest is refused.

    :return: the merged cells of each sheet, such as ``A2:A4``, by the name of its part.
    """
    merged: dict[str, list[str]] = {}
    with zipfile.ZipFile(name) as book:
        for sheet in (part for part in book.namelist() if part.startswith("xl/worksheets/")):
            number, end = 0, b""
            with book.open(sheet) as stream:
                while some := stream.read(_BYTES_AT_ONCE):
                    number += some.count(b"<row ") + some.count(b"<row>")
                    if number > most:
                        _refuse_size(f"{name}: a sheet", f"{most:,} rows")
                    found = [x.decode() for x in _MERGED.findall(end + some)]
                    merged.setdefault(sheet, []).extend(found)
                    end = some[-_BYTES_OF_MERGED:]  # where one may begin
    return merged


def _with_merged(cells: list[list[str]], merged: Iterable[str], has_header: bool) -> list[str]:
    """Write the text of merged cells into each of their rows and columns; return notes.

    Cells that are merged across are titles, unless others are beside them, below a row with the
    names of all columns.
    """
    from openpyxl.utils import range_boundaries

    shown = []
    # the names of the columns are there, below titles
    header = next((k for k, row in enumerate(cells, 1) if sum(map(bool, row)) > 1), 1)
    start = next((k for k, row in enumerate(cells, 1) if all(row)), len(cells)) if has_header else 0
    for left, top, right, bottom in sorted(range_boundaries(place) for place in {*merged}):
        is_header = has_header and top <= header
        if top > len(cells) or left > len(cells[0]) or is_header:
            continue
        text = cells[top - 1][left - 1]
        rows = [row for row in cells[top - 1 : bottom] if any(row)]
        if left < right and (top <= start or not text or sum(map(bool, cells[top - 1])) < 2):
            continue
        for row in rows:
            row[left - 1 : right] = [text] * len(row[left - 1 : right])
        if text and (len(rows) > 1 or left < right):
            where = f" in columns {left} to {right} of" if left < right else " in"
            last = min(bottom, len(cells))
            where += f" rows {top} to {last}" if top < last else f" row {top}"
            shown.append(f"{text[:40]!r}{where}")
    if not shown:
        return []
    across = " and columns" if any(" in columns " in x for x in shown) else ""
    return [f"{_MERGED_NOTE} in each of their rows{across}: {names_counted(shown, 3)}"]


def are_merged(grid: Grid) -> bool:
    """Return whether cells of a spreadsheet are merged across columns."""
    return any(x.startswith(_MERGED_NOTE) and " in columns " in x for x in grid.notes)


def _rows_of_sheet(name: str, sheet: Any, most: int) -> Iterator[Sequence[Any]]:
    """Yield the rows of a sheet, not more than memory has room for: a small file can have many."""
    sheet.reset_dimensions()  # which a file may state wrong: rows beyond them would be lost
    width = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        width = max(width, len(row))  # to which all rows are filled up
        if number > most:
            _refuse_size(f"{name}: the sheet {sheet.title!r}", f"{most:,} rows")
        if number * width > most * _CELLS_OF_ROW:
            limit = f"{most * _CELLS_OF_ROW:,} cells, {_CELLS_OF_ROW} for each of {most:,} rows"
            _refuse_size(f"{name}: the sheet {sheet.title!r}", limit)
        yield row


def _refuse_size(sheet: str, limit: str) -> NoReturn:
    raise RankingsError(
        f"{sheet} has more than {limit}, the most that are read of a spreadsheet; if they are "
        f"meant, save it as .csv, or read more with {option('max_rows')}, as memory allows"
    )


def _read_excel(
    name: str, names: Sequence[str], has_header: bool = True, max_rows: int | None = None
) -> Grid:
    import openpyxl

    most = _MOST_ROWS if max_rows is None else max_rows
    merged = _merged_of_few_rows(name, most)
    tables, notes = [], []
    for has_values in (True, False):  # the values, and the formulas that they are of
        book = openpyxl.load_workbook(name, read_only=True, data_only=has_values)
        try:
            first, *others = book.worksheets
            part = str(getattr(first, "_worksheet_path", "")).lstrip("/")
            rows = [[_text(cell) for cell in row] for row in _rows_of_sheet(name, first, most)]
            width = max(map(len, rows), default=0)  # some programs do not save empty cells
            tables.append([row + [""] * (width - len(row)) for row in rows])
            rows_of_others = (row for sheet in others for row in _rows_of_sheet(name, sheet, most))
            if not has_values and any(cell is not None for row in rows_of_others for cell in row):
                notes.append(f"only the first sheet is read, {first.title!r}")
        finally:
            book.close()
    cells, formulas = tables
    for k, (row, of_row) in enumerate(zip(cells, formulas, strict=True), 1):
        for column, (cell, formula) in enumerate(zip(row, of_row, strict=True), 1):
            if not cell and formula.startswith("="):
                raise RankingsError(
                    f"{name}: row {k}, column {column}: the formula {formula[:40]!r} has no stored "
                    "value; open the file in a spreadsheet and save it"
                )
    notes += _with_merged(cells, merged.get(part, ()), has_header)
    grid = _grid(name, place_of(name, ": row {}"), enumerate(cells, 1), names, has_header)
    return grid._replace(notes=(*notes, *grid.notes))


def _read_parquet(name: str, names: Sequence[str]) -> Grid:
    import pandas as pd

    return _grid_of_frame(name, pd.read_parquet(name), names, place_of(name, ": row {}"))


def _read_labelled(name: str, names: Sequence[str]) -> Grid:
    import pyreadstat

    read = pyreadstat.read_dta if name.lower().endswith(".dta") else pyreadstat.read_sav
    # values that the file says are missing are missing here too
    frame, meta = read(name, user_missing=False)
    grid = _grid_of_frame(name, frame, names, place_of(name, ": row {}"))
    labels = dict(zip(meta.column_names, meta.column_labels, strict=True))
    cells = [x._replace(label=(labels.get(x.name) or "").strip()) for x in grid.cells]
    cells, notes = _with_value_labels(cells, meta.variable_value_labels)
    return grid._replace(cells=cells, notes=tuple(notes))


def _with_value_labels(
    cells: Sequence[Column], labels: Mapping[str, Mapping[Any, str]]
) -> tuple[list[Column], list[str]]:
    """Put the labels of values in their place.

    Columns with the same labels are of one question. If some of their values have no label, such as
    those between the ends of a scale, all are read as numbers: labels and numbers are not mixed.
    """
    texts = {
        name: {_text(value): str(label).strip() for value, label in of_values.items()}
        for name, of_values in labels.items()
        if of_values
    }
    same: dict[tuple, list[Column]] = {}
    for column in cells:
        same.setdefault(tuple(texts.get(column.name, {}).items()), []).append(column)
    read: dict[str, Column] = {}
    notes = []
    for of_values, columns in same.items():
        words = dict(of_values)
        used = {text for column in columns for text in column.values if text}
        if used <= words.keys() and len({words[text] for text in used}) == len(used):
            columns = [x._replace(values=[words.get(y, y) for y in x.values]) for x in columns]
        elif words:
            shown = ", ".join(f"{value} = {word}" for value, word in of_values[:_LABELS_SHOWN])
            notes.append(
                f"{', '.join(x.name for x in columns)}: read as numbers, because only some values "
                f"have labels of their own: {shown}"
            )
        read.update((x.name, x) for x in columns)
    return [read[x.name] for x in cells], notes


def _grid_of_frame(name: str, frame: "pd.DataFrame", names: Sequence[str], place: str) -> Grid:
    cells = [
        _column_of_series(_text(column).strip(), frame.iloc[:, k])
        for k, column in enumerate(frame.columns)
    ]
    return _checked(Grid(name, cells, np.arange(1, len(frame) + 1), place, name), names)


def _column_of_series(name: str, series: "pd.Series") -> Column:
    if series.dtype == object:  # 1, True and "1" are one value to pandas
        return column_of_texts(name, map(_text, series))
    numbers, values = series.factorize(use_na_sentinel=True)
    texts = list(map(_text, values))
    if (numbers < 0).any():  # a text that no row has would be read as an item or a judge
        numbers = np.where(numbers < 0, len(texts), numbers)
        texts.append("")
    return Column(name, texts, numbers.astype(np.int32))


_PACKAGES: dict[str, tuple[Callable[..., Grid], str]] = {
    **dict.fromkeys(EXCEL_SUFFIXES, (_read_excel, "openpyxl")),
    **dict.fromkeys(PARQUET_SUFFIXES, (_read_parquet, "pyarrow")),
    **dict.fromkeys(LABELLED_SUFFIXES, (_read_labelled, "pyreadstat")),
}


def _text(cell: Any) -> str:
    """Return a cell as text; whole numbers without a point."""
    if isinstance(cell, str):
        return cell
    if getattr(cell, "ndim", 0):  # a list of a Parquet file
        cell = cell.tolist()
    if is_missing(cell):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).removesuffix(" 00:00:00")  # of dates


def _numbered(
    rows: Iterable[tuple[int, Sequence[str]]],
) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield a row with the numbers of the columns, and rows that are as wide as the widest."""
    filled = [(number, row) for number, row in rows if any(map(str.strip, row))]
    width = max((k for _, row in filled for k, x in enumerate(row, 1) if x.strip()), default=0)
    yield filled[0][0] if filled else 0, [str(k + 1) for k in range(width)]
    for number, row in filled:
        yield number, [*row[:width], *[""] * (width - len(row))]


def _grid(
    name: str,
    place: str,
    rows: Iterable[tuple[int, Sequence[str]]],
    names: Sequence[str],
    has_header: bool,
) -> Grid:
    """Put numbered rows of cells together; the first that is not blank names the columns."""
    remaining = iter(rows) if has_header else _numbered(rows)
    number, first = next((x for x in remaining if any(map(str.strip, x[1]))), (0, []))
    header, header_place = [cell.strip() for cell in first], place.format(number)
    indices: list[dict[str, int]] = [{} for _ in header]
    codes: list[list[np.ndarray]] = [[] for _ in header]
    numbers: list[int] = []
    while some := list(
        _of_width(itertools.islice(remaining, _ROWS_AT_ONCE), header, place, not numbers)
    ):
        numbers += [number for number, _ in some]
        for index, of_column, texts in zip(
            indices, codes, zip(*(row for _, row in some), strict=True), strict=True
        ):
            for text in dict.fromkeys(texts):
                index.setdefault(text, len(index))
            of_column.append(np.fromiter(map(index.__getitem__, texts), np.int32, len(texts)))
    empty = [np.zeros(0, np.int32)]
    cells = [
        Column(column, list(index), np.concatenate([*empty, *of_column]))
        for column, index, of_column in zip(header, indices, codes, strict=True)
    ]
    called = by_number(len(header), "column is called 1", f"columns are called 1 to {len(header)}")
    note = f"without a header, the {called}"
    notes = () if has_header else (note,)
    grid = Grid(name, cells, np.array(numbers, int), place, header_place, notes)
    return _checked(grid, names, may_be_ballot=has_header)


def _of_width(
    rows: Iterable[tuple[int, Sequence[str]]], header: Sequence[str], place: str, is_top: bool
) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield the rows that are not blank, which have as many cells as the header."""
    width = len(header)
    for number, row in rows:
        if len(row) == width:
            is_top = False
            yield number, row
        elif any(map(str.strip, row)):
            if len(row) < width or any(map(str.strip, row[width:])):
                remark = "; remove the line if it is a remark" if len(row) == 1 else ""
                if is_top and len(row) == width + 1:
                    remark = "; if the names of the judges come first, as in tables of R, write a "
                    remark += "name for them in front of the first row"
                if is_top and len(row) > width:
                    remark += "; if the first line is a title, remove it"
                if len(set(header) & set(row) - {""}) > 1:
                    remark = f"; if the first row is a ballot, add {option('header', 'none')}"
                if any(text.lstrip().startswith("[") for text in row):
                    remark += "; put a list in brackets into quotes"
                raise RankingsError(
                    f"{place.format(number)}: has {plural(len(row), 'cell')}, expected {width}, "
                    f"one for each column named in the first row{remark}"
                )
            is_top = False
            yield number, row[:width]


def _checked(grid: Grid, names: Sequence[str], may_be_ballot: bool = False) -> Grid:
    """Take blanks off the texts, and blank rows, and blank columns at the ends, off the table."""
    if not grid.cells:
        raise RankingsError(f"{grid.name}: the table is empty")
    blank = _BLANK - set(names)

    def without_blanks(text: str) -> str:
        return "" if text.strip() in blank else text.strip()

    cells = [column.with_texts(without_blanks) for column in grid.cells]
    # a spreadsheet may save empty columns at either end
    for end in (-1, 0):
        while len(cells) > 1 and not cells[end].name and cells[end].is_blank().all():
            cells.pop(end)
    is_blank = np.logical_and.reduce([column.is_blank() for column in cells])
    if is_blank.all():
        ballot = ""
        if may_be_ballot and any(column.name for column in cells):
            is_likely = _NAMES_OF_JUDGES.isdisjoint(x.name.casefold() for x in cells)
            none = option("header", "none", is_likely)
            ballot = f"; if the row is a ballot, add {none}"
        raise RankingsError(
            f"{grid.header_place}: there are no rows below the names of the columns{ballot}"
        )
    grid = grid._replace(cells=cells)
    return _without_row_numbers(grid.keep(~is_blank) if is_blank.any() else grid)


def _without_row_numbers(grid: Grid) -> Grid:
    """Take off a column without a name that numbers the rows, as R and pandas write the first one.

    Another one has more rows, a few might be ranks, and is the only one of numbers without a name.
    """
    unnamed = [k for k, x in enumerate(grid.cells) if re.fullmatch(r"|Unnamed: \d+", x.name)]
    rows = len(grid.numbers)
    for k in unnamed:
        few = _FEWEST_NUMBERED if k else 0
        if len(grid.cells) < 3 or rows < few or len(grid.cells[k].values) < rows:
            continue
        numbers = grid.cells[k].mapped(lambda x: int(x) if x.isdecimal() else -1, object)
        if numbers[0] not in (0, 1) or (numbers != numbers[0] + np.arange(rows)).any():
            continue
        others = [x for j in unnamed if j not in (0, k) for x in grid.cells[j].values[:_LOOKED_AT]]
        if k and any(whole_number(x) is not None for x in others):
            continue
        which = f"column {k + 1}" if k else "the first column"
        note = f"{which} has no name and numbers the rows: it is left out"
        cells = [x for j, x in enumerate(grid.cells) if j != k]
        return grid._replace(cells=cells, notes=(*grid.notes, note))
    return grid
