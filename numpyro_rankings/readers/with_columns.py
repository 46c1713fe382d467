"""The user's own table with further columns: the file as it is, and what was found beside it."""

import codecs
import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_counted
from numpyro_rankings.readers.added_columns import FITTED, added_columns
from numpyro_rankings.readers.grids import (
    EXCEL_SUFFIXES,
    TEXT_SUFFIXES,
    form_of_text,
    read_grid,
    rows_of_text,
)
from numpyro_rankings.readers.text import read_text

_SEPARATORS = ",;\t"
Columns = Mapping[str, Mapping[int, Any]]  # values by the number of the row in the file


def name_with_columns(source: str) -> str:
    """Return a name of the file that :func:`write_with_columns` writes of a table."""
    return f"table{'.xlsx' if _is_spreadsheet(source) else '.csv'}"


def check_kind(source: str, path: Path) -> None:
    """Refuse to write a spreadsheet as text, or another table as a spreadsheet."""
    kinds = EXCEL_SUFFIXES if _is_spreadsheet(source) else TEXT_SUFFIXES
    if path.suffix.lower() not in kinds:
        kind = Path(name_with_columns(source)).suffix
        raise RankingsError(f"{path}: with columns added, {source} is written as {kind}")


def write_with_columns(
    source: str,
    path: Path,
    columns: Mapping[str, Iterable[Any]],
    rows_of_values: Sequence[int],
    *,
    by: str = FITTED,
    encoding: str | None = None,
    layout: str | None = None,
    has_header: bool = True,
) -> list[str]:
    """Write a table as it is in its file, with columns added at its right end.

    Columns at that end that were added in the same way before are replaced. A spreadsheet stays
    one, with its formats and its other sheets. All other tables are written as text in UTF-8, with
    the separator that the file has. Rows without values get none.

    :param source: the file that was read.
    :param columns: added values by name; a name that the table has gets **by** in brackets.
    :param by: what adds them, ``"fitted"`` or ``"assigned"``.
    :param rows_of_values: the number of the row in the file, as surveys have them, of each value.
    :param encoding: how a text file was read, and **layout** and **has_header**.
    :return: the names of the columns that are replaced.
    """
    by_row = {
        name: dict(zip(rows_of_values, values, strict=True)) for name, values in columns.items()
    }
    suffix = Path(source).suffix.lower()
    if suffix in EXCEL_SUFFIXES:
        return _write_workbook(source, path, by_row, by, has_header)
    mark, written = ",", "utf-8"
    if suffix in TEXT_SUFFIXES:
        text = read_text(source, encoding)
        form = form_of_text(text, layout, has_header)
        mark = form.mark if form.mark in _SEPARATORS else ","
        written = "utf-8-sig" if text.content.startswith(codecs.BOM_UTF8) else "utf-8"
        rows: Sequence[tuple[int, list[str]]] = list(rows_of_text(text, form.mark, form.first))
    else:
        grid = read_grid(source)
        below = ((n, [x.text(k) for x in grid.cells]) for k, n in enumerate(grid.numbers.tolist()))
        rows = [(0, list(grid.columns)), *below]
    rows, replaced = _without_former(rows, by, has_header)
    table = list(_with_values(rows, by_row, by, has_header))
    others = _SEPARATORS.replace(mark, "")
    has_others = any(x in str(cell) for cell in table[0] for x in others)
    with path.open("w", newline="", encoding=written) as stream:
        # without quotes it would not be clear what separates the columns
        quoted = csv.writer(stream, delimiter=mark, quoting=csv.QUOTE_ALL)
        (quoted if has_others else csv.writer(stream, delimiter=mark)).writerows(table)
    return replaced


def replaced_in_words(path: Path | str, names: Sequence[str]) -> list[str]:
    """Return a note about the columns that are replaced, if there are any."""
    return [f"{path}: {names_counted(names)} of an earlier time are replaced"] if names else []


def _is_spreadsheet(source: str) -> bool:
    return Path(source).suffix.lower() in EXCEL_SUFFIXES


def _place_of_header(rows: Sequence[tuple[int, Sequence[Any]]]) -> int:
    """Return the number of the row with the names of columns, below titles in the first cell."""
    filled = [(number, [x not in (None, "") for x in row]) for number, row in rows]
    filled = [(number, cells) for number, cells in filled if any(cells)]
    return next((number for number, cells in filled if sum(cells) > 1), filled[0][0])


def _former(names: Sequence[Any], by: str) -> range:
    """Return which columns at the right end are replaced; what was put beside them keeps them."""
    end, former = len(names), range(0)
    for columns, source in reversed(added_columns(names)):
        if columns.stop != end:
            break
        end, former = columns.start, columns if source == by else former
    return former


def _without_former(
    rows: Sequence[tuple[int, list[str]]], by: str, has_header: bool
) -> tuple[Sequence[tuple[int, list[str]]], list[str]]:
    """Return the rows without the columns that are replaced, and their names."""
    if not has_header:
        return rows, []
    header = _place_of_header([(number, [x.strip() for x in row]) for number, row in rows])
    names = next(row for number, row in rows if number == header)
    former = _former(names, by)
    kept = [
        (number, [x for k, x in enumerate(row[: len(names)]) if k not in former])
        for number, row in rows
    ]
    return kept if former else rows, [names[k] for k in former]


def _with_values(
    rows: Sequence[tuple[int, list[str]]], columns: Columns, by: str, has_header: bool
) -> Iterable[list[Any]]:
    """Yield the rows with the added values behind their cells, all of one width."""
    stripped = [(number, [x.strip() for x in row]) for number, row in rows]
    header = _place_of_header(stripped)
    width = next(len(row) for number, row in rows if number == header)
    start = next(number for number, row in stripped if any(row))
    for number, row in rows:
        if number < start:
            continue
        added = [values.get(number, "") for values in columns.values()]
        if has_header and number == header:
            added = _free(columns, by, row)
        yield [*row[:width], *[""] * (width - len(row)), *added]


def _free(columns: Columns, by: str, names: Sequence[Any]) -> list[str]:
    taken = {str(name).strip() for name in names}
    endings = ["", f" ({by})", *(f" ({by} {k})" for k in range(2, len(taken) + 3))]
    return [next(x for y in endings if (x := f"{name}{y}") not in taken) for name in columns]


def _write_workbook(
    source: str, path: Path, columns: Columns, by: str, has_header: bool
) -> list[str]:
    import openpyxl  # is not always there

    book = openpyxl.load_workbook(source)
    sheet = book.worksheets[0]
    rows = list(enumerate(sheet.values, 1))
    width = max(k for _, row in rows for k, x in enumerate(row, 1) if x not in (None, ""))
    replaced: list[str] = []
    if has_header:
        header = _place_of_header(rows)
        names = [sheet.cell(header, k + 1).value for k in range(width)]
        former = _former(names, by)
        replaced = [names[k] for k in former]
        if former:
            sheet.delete_cols(former.start + 1, len(former))
            del names[former.start : former.stop]
            width = len(names)
        for k, name in enumerate(_free(columns, by, names), width + 1):
            sheet.cell(header, k, name)
    for k, (name, values) in enumerate(columns.items(), width + 1):
        for number, value in values.items():
            is_text = name.startswith("next ")  # the name of an item
            sheet.cell(number, k, value if is_text else _as_number(value))
    book.properties.lastModifiedBy = "numpyro-rankings"
    book.save(path)
    return replaced


def _as_number(value: Any) -> Any:
    """Return a number that a text says, so that a spreadsheet can add it up."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
