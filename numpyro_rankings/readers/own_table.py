"""The project's own text format of rankings."""

import contextlib
import csv
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from numpyro_rankings.rankings import (
    PartialOrders,
    Rankings,
    RankingsError,
    build_rankings,
    check_rankings,
)
from numpyro_rankings.rankings.names import names_shown
from numpyro_rankings.rankings.partial_orders import build_partial_orders
from numpyro_rankings.rankings.preferences import above_of_levels
from numpyro_rankings.readers.grids import whole_number
from numpyro_rankings.readers.text import check_writable_names, first_lines, read_lines, weight_hint

_ITEM = re.compile(r"#\s*item\s+([^\s,>:={}]+)\s*:(.*)", re.IGNORECASE)
_COMMENT = re.compile(r'"?#')
_COLUMNS = ("count", "ordering", "offered")
_MARKS = ",;\t"  # between the cells
_SEPARATOR_LINE = re.compile(r"sep=[,;\t][,;\t]*", re.IGNORECASE)  # for spreadsheets


class _Header(NamedTuple):
    """The line with the names of the columns."""

    mark: str  # the character between the cells
    columns: int  # 2, or 3 with choice sets
    skipped: int  # columns before these: 1 if a program has written the numbers of the rows
    width: int  # all cells of the line, empty ones at its end included


def read_table(path: str | os.PathLike, encoding: str | None = None) -> Rankings | PartialOrders:
    """Read rankings in the project's own text format.

    Lines that begin with ``#`` are comments, except those that name the items in index order, each
    with a code (without blanks or ``,>:={}``) and a name. They are followed by a line with the
    names of the columns, and by a line for each row: the number of rankings that it stands for, and
    the codes of the items that they list, best first::

        # title: A small election
        # item A: Ann Able
        # item B: Bob Best
        # item C: Cid Chair
        count,ordering
        14,C>A>B
        6,B

    Tied items have ``=`` between them, as in ``14,C>A=B``; then partial orders are returned.

    An optional third column ``offered`` contains the choice set: the codes of the items that were
    offered, separated by blanks.

    The file may have been saved by a spreadsheet or by another program, with fields in quotes,
    semicolons or tabs instead of commas, and empty cells at the ends of lines. A line with the name
    of an item may be in quotes, and must be if the name ends with a comma.

    :param path: the file.
    :param encoding: of the file, such as ``"windows-1252"``; by default UTF-8, or UTF-16 with a
        byte order mark.
    :return: the rankings, with the rows of the file.
    :raises RankingsError: beginning with ``FILE:LINE:``, if the file is not in this format.
    """
    name = os.fspath(path)
    lines = [line.strip(" ") for line in read_lines(path, encoding, hint=True)]
    start = next((k for k, line in enumerate(lines, 1) if not _is_before_header(line)), len(lines))
    line = lines[start - 1]
    header = _parse_header(line)
    if header is None and not _is_before_header(line):
        raise RankingsError(
            f"{name}:{start}: expected the columns 'count,ordering', got {line[:40]!r}; the format "
            "is that of numpyro_rankings.readers.read_table"
        )
    codes, items = _read_items(name, lines, header)
    if header is None:
        raise RankingsError(f"{name}:{len(lines)}: there are no rankings")
    if len(codes) < 2:
        raise RankingsError(
            f"{name}:{start}: a ranking needs at least 2 items, each named by a line such as "
            f"'# item A: Ann Able', got {len(codes)}"
        )
    numbers, counts, listed, levels, offered = [], [], [], [], []
    for number, line in enumerate(lines[start:], start + 1):
        where = f"{name}:{number}"
        if not (cells := _cells_of_row(where, line, header)):
            continue
        numbers.append(number)
        counts.append(_parse_count(where, cells[0].strip()))
        listed.append(_parse_items(where, re.split("[>=]", cells[1]), codes))
        levels.append(np.cumsum([0, *(mark == ">" for mark in re.findall("[>=]", cells[1]))]))
        if header.columns == 3:
            offered.append(_parse_items(where, cells[2].split(), codes))
    if not numbers:
        raise RankingsError(f"{name}:{len(lines)}: there are no rankings")
    choice_sets = np.zeros((len(offered), len(items)), bool) if offered else None
    if choice_sets is not None:
        for k, row in enumerate(offered):
            choice_sets[k, row] = True
    rankings = build_rankings(
        listed, items, counts, choice_sets, where=lambda k: f"{name}:{numbers[k]}"
    )
    if all(of_list[-1] + 1 == len(of_list) for of_list in levels):
        return rankings
    table, above = above_of_levels(np.asarray(rankings.orderings), levels)
    return build_partial_orders(table, above, items, (counts, choice_sets, "below"))


def _read_items(
    name: str, lines: Sequence[str], header: _Header | None
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the index of each item by its code, and the names of the items."""
    codes: dict[str, int] = {}
    items: dict[str, int] = {}
    mark = "," if header is None else header.mark
    named = [
        (number, line)
        for number, line in enumerate(lines, 1)
        if _COMMENT.match(line) and _ITEM.match(_item_cells(line, mark)[0])
    ]
    is_padded = header is not None and all(
        len(_item_cells(line, mark)) == header.width for _, line in named
    )
    for number, line in named:
        where = f"{name}:{number}"
        code, item = _parse_item(where, line, mark, is_padded)
        if not item:
            raise RankingsError(f"{where}: the name of item {code!r} is empty")
        if code in codes:
            raise RankingsError(f"{where}: two items have the code {code!r}")
        if item in items:
            raise RankingsError(f"{where}: two items have the name {item!r}")
        codes[code] = items[item] = len(codes)
    return codes, tuple(items)


def _cells_of_row(where: str, line: str, header: _Header) -> list[str]:
    """Return the cells of a row, without empty ones at its end; none if it is no row."""
    if not line or _COMMENT.match(line):
        return []
    try:
        cells = _cells(line, header.mark)[header.skipped :]
    except csv.Error as error:
        raise RankingsError(f"{where}: the quotes are wrong: {error}") from None
    if not any(cell.strip() for cell in cells):
        return []
    while len(cells) > header.columns and not cells[-1].strip():
        cells.pop()
    if len(cells) != header.columns:
        raise RankingsError(f"{where}: expected {header.columns} columns, got {len(cells)}")
    return cells


def is_own_table(path: str | os.PathLike, encoding: str | None = None) -> bool:
    """Whether a file means to be in the format of :func:`read_table`."""
    for line in first_lines(path, encoding) or ():
        line = line.strip()
        if re.match(r'"?#\s*item\b', line, re.IGNORECASE):
            return True
        if not _is_before_header(line):
            return _parse_header(line) is not None
    return False


def write_table(
    rankings: Rankings, path: str | os.PathLike, title: str = "", citation: str = ""
) -> None:
    """Write rankings in the format of :func:`read_table`, which reads ``rankings.unique()``.

    :param rankings: any rankings; their items get the codes 1, 2, …, n.
    :param path: the file to write.
    :param title: a title of the data.
    :param citation: the source of the data.
    :raises RankingsError: if the name of an item does not fit the format; then nothing is written.
    """
    check_rankings(rankings)
    check_writable_names(os.fspath(path), rankings.items, title, citation)
    merged = rankings.unique()
    notes = {"title": title, "citation": citation}
    lines = [f"# {key}: {' '.join(note.split())}" for key, note in notes.items() if note]
    codes = [str(k) for k in range(1, merged.num_items + 1)]
    lines += [_item_line(code, item) for code, item in zip(codes, merged.items, strict=True)]
    lines.append(",".join(_COLUMNS[: 2 if merged.choice_sets is None else 3]))
    orderings, lengths = np.asarray(merged.orderings), np.asarray(merged.lengths)
    offered = None if merged.choice_sets is None else np.asarray(merged.choice_sets)
    for row, count in enumerate(np.asarray(merged.counts).tolist()):
        listed = orderings[row, : lengths[row]].tolist()
        fields = [str(count), ">".join(codes[item] for item in listed)]
        if offered is not None:
            fields.append(" ".join(codes[item] for item in np.flatnonzero(offered[row])))
        lines.append(",".join(fields))
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def _item_line(code: str, item: str) -> str:
    """Return the line that names an item: one cell, also if the name contains what separates."""
    line = f"# item {code}: {item}"
    if any(mark in item for mark in f'{_MARKS}"'):
        line = '"' + line.replace('"', '""') + '"'
    return line


def _is_before_header(line: str) -> bool:
    """Return whether a line is blank or a comment, those that name items included."""
    bare = line.strip(f"{_MARKS} ")
    return not bare or bool(_COMMENT.match(line)) or bool(_SEPARATOR_LINE.fullmatch(line))


def _cells(line: str, mark: str) -> list[str]:
    """Return the cells of a line, which ends where the line does."""
    if '"' not in line:
        return line.split(mark)
    return next(csv.reader([line], delimiter=mark, strict=True))


def _parse_header(line: str) -> _Header | None:
    """Return what a line with the names of the columns says, or None if it is none."""
    for mark in _MARKS:
        cells = []
        with contextlib.suppress(csv.Error):
            cells = [cell.strip().lower() for cell in _cells(line, mark)]
        width = len(cells)
        while cells and not cells[-1]:
            cells.pop()
        skipped = int(len(cells) > 2 and not cells[0])
        if tuple(cells[skipped:]) in (_COLUMNS[:2], _COLUMNS):
            return _Header(mark, len(cells) - skipped, skipped, width)
    return None


def _parse_item(where: str, line: str, mark: str, is_padded: bool) -> tuple[str, str]:
    """Return the code and the name of an item.

    A spreadsheet saves all lines with as many cells: it splits names at commas, which are put back
    here, and adds empty cells. Where only some lines end with a comma, it may belong to the name.
    """
    cells, problem = _item_cells(line, mark), ""
    if not line.startswith('"'):
        if mark.join(cells) != line:
            problem = "has quotes after a comma"
        elif not cells[-1].strip() and not is_padded:
            problem = f"ends with {mark!r}, which may or may not belong to the name"
    while not cells[-1].strip():
        cells.pop()
    if len(cells) > 1 and mark != ",":
        problem = f"contains {mark!r}, which separates the columns"
    if problem:
        raise RankingsError(
            f"{where}: the name of an item {problem}; put the whole line into quotes, from '#' to "
            "the end of the name"
        )
    match = _ITEM.fullmatch(",".join(cells))
    assert match is not None
    return match[1], match[2].strip()


def _item_cells(line: str, mark: str) -> list[str]:
    """Return the cells of a comment; where its quotes are wrong, it is one cell."""
    try:
        return _cells(line, mark)
    except csv.Error:
        return [line]


def _parse_count(where: str, text: str) -> int:
    number = whole_number(text)
    if number is None or number < 1:
        raise RankingsError(
            f"{where}: count {text[:40]!r} is not a positive whole number{weight_hint(text)}"
        )
    return number


def _parse_items(where: str, texts: Sequence[str], codes: dict[str, int]) -> list[int]:
    texts = [text.strip() for text in texts]
    if texts in ([], [""]):
        raise RankingsError(f"{where}: an empty ranking")
    for text in texts:
        if any(mark in text for mark in "={}"):
            raise RankingsError(f"{where}: ties are written as A=B, got {text[:40]!r}")
        if text not in codes:
            known = names_shown(list(codes), 10)
            raise RankingsError(f"{where}: there is no item {text[:40]!r}; expected {known}")
    return [codes[text] for text in texts]
