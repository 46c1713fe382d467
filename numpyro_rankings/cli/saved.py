"""What ``fit --save`` writes beside the usual results: figures, a workbook, a summary, a table."""

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpyro_rankings.cli.arguments import PROGRAM, UserError, note
from numpyro_rankings.words import without_mark

if TYPE_CHECKING:
    from numpyro_rankings.cli.fit_options import FitOptions
    from numpyro_rankings.readers import Survey

FIGURES, WORKBOOK, SUMMARY = "figures", "results.xlsx", "summary.html"
TABLES = ("table.csv", "table.xlsx")
SAVED = (FIGURES, WORKBOOK, SUMMARY, *TABLES)
_LAYOUTS = ("ranks", "orders", "cell", "votes", "marks")  # with a row for each judge
_MOST_ROWS, _DIGITS = 2**20 - 1, 15  # of a sheet, and of a number in a spreadsheet
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?")


def names_saved(options: "FitOptions") -> list[str]:
    """Return the names of what is saved, in the folder of the results."""
    from numpyro_rankings.readers.with_columns import name_with_columns

    names = {"figures": FIGURES, "xlsx": WORKBOOK, "summary": SUMMARY}
    names["table"] = name_with_columns(options.file or "")
    return [names[word] for word in options.save]


def check_can_save(options: "FitOptions", survey: "Survey") -> None:
    """Refuse a table that has no row for each judge, and more judges than a sheet has rows."""
    if "xlsx" in options.save and survey.rankings.num_rankings > _MOST_ROWS:
        raise UserError(
            f"--save xlsx: a sheet has room for {_MOST_ROWS:,} judges, and there are "
            f"{survey.rankings.num_rankings:,}; leave it out"
        )
    if "table" not in options.save:
        return
    table, why = options.table, ""
    if options.file is None or survey.rows is None or survey.layout not in _LAYOUTS:
        why = "goes with a table that has a row for each judge"
    elif table.count is not None:
        why = "goes without --count: judges of one row can be in different groups"
    elif table.transpose:
        why = "goes without --transpose: it has a row for each judge"
    if why:
        raise UserError(f"--save table {why}; assignments.csv has the group of each, without it")


def write_table(
    folder: Path, options: "FitOptions", survey: "Survey", columns: Mapping[str, Iterable[Any]]
) -> None:
    """Write the user's own table with columns that have an entry for each judge."""
    from numpyro_rankings.readers.with_columns import (
        name_with_columns,
        replaced_in_words,
        write_with_columns,
    )

    assert options.file is not None and survey.rows is not None
    table = options.table
    name = name_with_columns(options.file)
    replaced = write_with_columns(
        options.file,
        folder / name,
        columns,
        survey.rows.tolist(),
        encoding=table.encoding,
        layout=survey.layout,
        has_header=table.header != "none",
    )
    for text in replaced_in_words(name, replaced):
        note(text)


def write_workbook(folder: Path, names: Iterable[str]) -> None:
    """Write ``results.xlsx``, with a sheet for each of the csv tables of these names."""
    import openpyxl  # is not always there
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    book = openpyxl.Workbook(write_only=True)
    book.properties.creator = PROGRAM
    for name in names:
        sheet = book.create_sheet(Path(name).stem[:31])  # spreadsheets allow no more
        sheet.freeze_panes = "A2"
        with (folder / name).open(newline="", encoding="utf-8") as stream:
            header, *rows = csv.reader(stream)
        are_numbers = [all(map(_is_number, filter(None, x))) for x in zip(*rows, strict=True)]
        for k, row in enumerate([header, *rows]):
            cells: list[Any] = []
            for text, is_number in zip(row, are_numbers or [False] * len(row), strict=True):
                if is_number and k:
                    cells.append(float(text) if text else None)
                    continue
                # the apostrophe is for programs that take such a text of a csv file for a formula
                text = ILLEGAL_CHARACTERS_RE.sub("", without_mark(text))
                cell = WriteOnlyCell(sheet, value=text)
                cell.data_type = "s"  # also of one that begins with =
                cells.append(cell if text else None)
            sheet.append(cells)
    book.save(folder / WORKBOOK)


def _is_number(text: str) -> bool:
    """Whether a text is a number, and no name such as 007 or one with more digits than fit."""
    digits = sum(map(str.isdigit, text))
    return _NUMBER.fullmatch(text) is not None and digits <= _DIGITS
