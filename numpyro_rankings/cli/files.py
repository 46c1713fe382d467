"""The files that ``numpyro-rankings cluster`` reads: points, documents and distances.

To add a file format of points or documents, add its suffixes and a reader like :func:`read_ldac`,
which returns a :class:`PointsTable` or :class:`Documents`, and call it in ``read_points`` of
``points.py``. Formats of rankings are in ``numpyro_rankings/readers/formats.py``.
"""

import csv
import datetime
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numpyro_rankings.cli.arguments import UserError, as_user_errors, note
from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.text import read_lines as read_lines_of_text

if TYPE_CHECKING:
    from numpyro_rankings.links.distances import SparseDistances

MOST_POINTS = 10_000  # for which the distances of all pairs are stored
_MOST_WORDS = 10_000_000
_LARGEST = 1e15  # single precision can still add up the squares
_MOST_COUNT = 2**24  # above it, single precision has no odd numbers
_LDAC_SUFFIXES, _TABLE_SUFFIXES = (".ldac", ".dat"), (".csv",)
# A column of which so many cells are numbers, with signs such as % or not, is meant as numbers
_NEARLY_ALL = 0.8
_WITH_SIGNS = re.compile(
    r"[+-]?[$€£¥]?\s*[+-]?(\d{1,3}(,\d{3})+(\.\d*)?|\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?\s*[%‰°$€£¥]?",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DATE_HINT = "; as times (--time), dates are written 2024-03-31, all of them with or without a zone"
_COMPACT = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")  # 20240331
_DOCUMENT = re.compile(r"\d+(\s+\d+:\d+)*\s*")


class PointsTable(NamedTuple):
    """Points as numbers in named columns."""

    columns: list[str]
    values: np.ndarray  # (N, d), float64
    names: list[str] | None  # of the points
    times: np.ndarray | None  # (N,)
    lines: list[int]  # the line of the file that each point is on
    name_column: str | None  # "" if it has no heading


class Documents(NamedTuple):
    """The counts of the words in each document."""

    vocabulary: list[str]
    words: np.ndarray  # (N, L), padded with -1
    counts: np.ndarray  # (N, L), padded with 0
    names: list[str] | None
    times: np.ndarray | None  # (N,)


def read_lines(path: str) -> list[str]:
    """Return the lines of a text file, without line ends and without blank lines at its end."""
    with as_user_errors(RankingsError):
        lines = read_lines_of_text(path)
    while not lines[-1].strip():
        del lines[-1]
    return lines


def is_ldac(path: str) -> bool:
    """Return whether a file is in the LDA-C format, by its suffix or else by its first line."""
    suffix = Path(path).suffix.lower()
    if suffix in _LDAC_SUFFIXES + _TABLE_SUFFIXES:
        return suffix in _LDAC_SUFFIXES
    return _DOCUMENT.fullmatch(read_lines(path)[0]) is not None


# ---------------------------------------------------------------------------------------------
# Tables
# ---------------------------------------------------------------------------------------------


def read_points_table(path: str, name_column: str | None, time_column: str | None) -> PointsTable:
    """Read a CSV file whose first line names the columns.

    By default the first column names the points, if it has no name or nothing like a number.
    Numbers with signs such as ``10%`` are refused, because they could be read in two ways.
    """
    header, lines, rows = _header_and_rows(path)
    for option, name in (("--names", name_column), ("--time", time_column)):
        if name is not None and name not in header:
            raise UserError(
                f"{path}: there is no column {name!r} for {option}; the columns are "
                f"{', '.join(header)}"
            )
    if name_column is None and header[0] != time_column:
        no_numbers = not any(_WITH_SIGNS.fullmatch(row[0]) for row in rows)
        name_column = header[0] if header[0] == "" or no_numbers else None
    used = [k for k, name in enumerate(header) if name not in (name_column, time_column, "")]
    if not used:
        raise UserError(f"{path}: has no column of numbers; columns are separated by commas")

    def column(k: int) -> list[float]:
        hint = _hint(header[k], [row[k] for row in rows], can_be_names=name_column is None)
        return [
            _number(f"{path}:{line}: column {header[k]!r}", row[k], hint)
            for line, row in zip(lines, rows, strict=True)
        ]

    values = np.array([column(k) for k in used]).T
    times = None
    if time_column is not None:
        k = header.index(time_column)
        where = [f"{path}:{line}: column {time_column!r}" for line in lines]
        times = _times(f"{path}: column {time_column!r}", where, [row[k] for row in rows])
    names = None
    if name_column is not None:
        names = [row[header.index(name_column)] for row in rows]
    return PointsTable([header[k] for k in used], values, names, times, lines, name_column)


def _times(name: str, where: Sequence[str], texts: Sequence[str]) -> np.ndarray:
    """Return numbers as they are, and dates as days since the first, (N,).

    Dates are written 2024-03-31, perhaps with a time of day; all or none have a time zone.

    :param name: of the file or column, and **where** each text is.
    """
    if not any(map(_DATE.match, texts)):
        if all(map(_COMPACT.fullmatch, texts)):
            raise UserError(f"{where[0]}: {texts[0]} may be a date{_DATE_HINT}")
        return np.array(
            [_number(x, text, _DATE_HINT) for x, text in zip(where, texts, strict=True)]
        )
    dates = []
    for place, text in zip(where, texts, strict=True):
        try:
            dates.append(datetime.datetime.fromisoformat(text if _DATE.match(text) else ""))
            dates[-1] - dates[0]  # fails where one has a time zone, and the other has not
        except (ValueError, TypeError):
            got = repr(text[:40]) if text else "nothing"
            raise UserError(f"{place}: expected a date, got {got}{_DATE_HINT}") from None
    first = min(dates)
    days = [(date - first) / datetime.timedelta(days=1) for date in dates]
    note(f"{name}: dates are read as days since {first:%Y-%m-%d}, so that --decay is in days")
    return np.array(days)


def _header_and_rows(path: str) -> tuple[list[str], list[int], list[list[str]]]:
    """Return the names of the columns, and the line numbers and cells of the rows below them."""
    (_, header), *table = _csv_rows(path)
    _check_header(path, header)
    for line, row in table:
        if len(row) != len(header):
            raise UserError(
                f"{path}:{line}: has {len(row)} values, expected {len(header)}, one for each "
                "column named in the first line"
            )
    if not table:
        raise UserError(f"{path}: has no points below the line with the names of the columns")
    return header, [line for line, _ in table], [row for _, row in table]


def _hint(name: str, cells: Sequence[str], can_be_names: bool) -> str:
    """Say what can be done about a column with cells that are no numbers."""
    alike = sum(_WITH_SIGNS.fullmatch(cell) is not None for cell in cells)
    has_signs = alike > sum(map(_is_number, cells))
    names = f"add --names {name}" if can_be_names else ""
    if alike < _NEARLY_ALL * len(cells) and not has_signs:
        return f" (if this column names the points, {names})" if names else ""
    hint = f": {alike:,} of the {len(cells):,} cells of this column are numbers"
    if has_signs:
        hint += ", some with signs. Write them without: 10 or 0.1 for 10%, and 1234.5 for 1,234.5"
    return hint + (f". If the column names the points, {names}" if names else "")


def _csv_rows(path: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with its line number."""
    reader = csv.reader(read_lines(path), skipinitialspace=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, [cell.strip() for cell in row]
    except csv.Error as error:
        raise UserError(f"{path}:{reader.line_num}: {error}") from None


def _check_header(path: str, header: Sequence[str]) -> None:
    if all(_is_number(name) for name in header):
        raise UserError(
            f"{path}:1: the first line must name the columns, got numbers: {', '.join(header)}"
        )
    for k, name in enumerate(header):
        if name == "" and k > 0:
            raise UserError(f"{path}:1: column {k + 1} has no name")
        if name in header[:k]:
            raise UserError(f"{path}:1: two columns have the name {name!r}")


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _number(where: str, text: str, hint: str = "") -> float:
    if not _is_number(text) or "_" in text:
        got = repr(text[:40]) if text else "nothing"
        raise UserError(f"{where}: expected a number, got {got}{hint}")
    number = float(text)
    if abs(number) > _LARGEST:
        raise UserError(f"{where}: {text} is too large: use a larger unit")
    return number


def documents_of_table(path: str, table: PointsTable) -> Documents:
    """Convert a table of counts, with a column for each word and a row for each document."""
    counts = table.values
    bad = (counts < 0) | (counts != np.floor(counts)) | (counts > _MOST_COUNT)
    if bad.any():
        row, k = (int(x[0]) for x in np.nonzero(bad))
        raise UserError(
            f"{path}:{table.lines[row]}: column {table.columns[k]!r}: expected a count, a whole "
            f"number from 0 to {_MOST_COUNT:,}, got {counts[row, k]:g}"
        )
    lists = [[(int(v), int(row[v])) for v in np.flatnonzero(row)] for row in counts]
    return Documents(table.columns, *_padded(lists), table.names, table.times)


# ---------------------------------------------------------------------------------------------
# Documents
# ---------------------------------------------------------------------------------------------


def read_ldac(path: str, vocab: str | None, times: str | None) -> Documents:
    """Read documents in the LDA-C format.

    Each line is a document ``M word:count word:count …`` with M different words, numbered from 0.
    The files of the vocabulary and of the times have a word, and a number, in each line.
    """
    vocabulary = None
    if vocab is not None:
        vocabulary = [line.strip() for line in read_lines(vocab)]
    lists = []
    for number, line in enumerate(read_lines(path), 1):
        where = f"{path}:{number}"
        entries = _parse_document(where, line)
        for word, _ in entries:
            if vocabulary is not None and word >= len(vocabulary):
                raise UserError(
                    f"{where}: word {word} is not in {vocab}, which has the words 0 to "
                    f"{len(vocabulary) - 1}"
                )
        lists.append([(word, used) for word, used in entries if used])
    if vocabulary is None:
        most = max((word for entries in lists for word, _ in entries), default=-1)
        vocabulary = [f"word {k}" for k in range(most + 1)]
    when = None
    if times is not None:
        lines = [line.strip() for line in read_lines(times)]
        when = _times(times, [f"{times}:{k}" for k in range(1, len(lines) + 1)], lines)
        if len(when) != len(lists):
            raise UserError(
                f"{times}: has {len(when)} numbers, but {path} has {len(lists)} documents"
            )
    return Documents(vocabulary, *_padded(lists), None, when)


def _parse_document(where: str, line: str) -> list[tuple[int, int]]:
    """Parse a line of an LDA-C file, and return the words and their counts."""
    if not line.strip():
        raise UserError(f"{where}: expected a document; the line of an empty document is 0")
    if not _DOCUMENT.fullmatch(line.strip()):
        bad = repr(_first_bad(line)[:40])
        raise UserError(f"{where}: expected a document 'M word:count word:count …', got {bad}")
    size, *pairs = line.split()
    entries = [(int(word), int(used)) for word, used in (pair.split(":") for pair in pairs)]
    if len(entries) != int(size):
        raise UserError(f"{where}: announces {size} words but lists {len(entries)}")
    seen = set()
    for word, used in entries:
        if word in seen:
            raise UserError(f"{where}: lists word {word} twice")
        seen.add(word)
        if word >= _MOST_WORDS:
            raise UserError(f"{where}: word {word} is above the limit of {_MOST_WORDS:,} words")
        if used > _MOST_COUNT:
            raise UserError(f"{where}: word {word} has a count above {_MOST_COUNT:,}")
    return entries


def _first_bad(line: str) -> str:
    """Return the first part of a line that is not in the LDA-C format."""
    size, *pairs = line.split()
    if not size.isdecimal():
        return size
    return next(pair for pair in pairs if not re.fullmatch(r"\d+:\d+", pair))


def _padded(lists: Sequence[Sequence[tuple[int, int]]]) -> tuple[np.ndarray, np.ndarray]:
    """Convert lists of words and counts to arrays (N, L), padded with -1 and 0."""
    longest = max(1, max(len(entries) for entries in lists))
    words = np.full((len(lists), longest), -1, np.int32)
    counts = np.zeros((len(lists), longest), np.float32)
    for row, entries in enumerate(lists):
        if entries:
            words[row, : len(entries)], counts[row, : len(entries)] = zip(*entries, strict=True)
    return words, counts


# ---------------------------------------------------------------------------------------------
# Distances
# ---------------------------------------------------------------------------------------------


def _check_size(option: str, size: int) -> None:
    if size > MOST_POINTS:
        raise UserError(
            f"{option} stores the distances of all pairs, for at most {MOST_POINTS:,} points, not "
            f"{size:,}; --graph has no such limit"
        )


def read_distances(path: str, size: int) -> np.ndarray:
    """Read a matrix (N, N) without a header: the distances from each point, ``inf`` for no link."""
    _check_size("--distances", size)
    matrix = np.zeros((size, size), np.float32)
    rows = list(_csv_rows(path))
    if len(rows) != size:
        raise UserError(
            f"{path}: has {len(rows)} rows, expected {size}, one for each point, without a header"
        )
    for i, (line, row) in enumerate(rows):
        if len(row) != size:
            raise UserError(f"{path}:{line}: has {len(row)} distances, expected {size}")
        for k, text in enumerate(row):
            try:
                distance = float(text)
            except ValueError:
                distance = math.nan
            if not distance >= 0:
                raise UserError(
                    f"{path}:{line}: column {k + 1}: expected a distance (0 or more, or inf), got "
                    f"{text.strip()[:40]!r}"
                )
            matrix[i, k] = distance
    return matrix


def distances_in_time(times: np.ndarray) -> np.ndarray:
    """Return the time from each point back to the earlier ones, (N, N), ``inf`` to the others.

    Among points of the same time, those above it in the file are earlier.
    """
    from numpyro_rankings.links.distances import sequential_distances

    _check_size("--time", len(times))
    return np.asarray(sequential_distances(times))


def read_graph(
    path: str, size: int, names: Sequence[str] | None, num_hops: int
) -> "SparseDistances":
    """Return the hops from each point to those within reach, from a file with an edge per line."""
    from numpyro_rankings.links.distances import graph_distances

    edges = list(_edges(path))
    numbers = _number_points(path, edges, size, names)
    by_name = "" if names is None else f"names such as {names[0]!r}, or "
    for line, *ends in edges:
        for end in ends:
            if end not in numbers:
                raise UserError(
                    f"{path}:{line}: there is no point {end!r}; expected {by_name}numbers from 0 "
                    f"to {size - 1}"
                )
    pairs = [(numbers[one], numbers[other]) for _, one, other in edges]
    try:
        return graph_distances(pairs, size, num_hops)
    except ValueError as error:
        raise UserError(f"{path}: {error}: lower --hops") from None


def _edges(path: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        # Where a tab or comma separates the two names, they may contain blanks.
        mark = next((mark for mark in ("\t", ",") if mark in line), None)
        ends = [end.strip() for end in line.strip().split(mark)]
        if len(ends) != 2 or not all(ends):
            raise UserError(f"{path}:{number}: expected two points, got {line.strip()[:40]!r}")
        yield number, ends[0], ends[1]


def _number_points(
    path: str, edges: Sequence[tuple[int, str, str]], size: int, names: Sequence[str] | None
) -> dict[str, int]:
    """Return the points by what the file calls them: names if it uses any, otherwise numbers."""
    if names is None or not {end for _, *ends in edges for end in ends} & set(names):
        return {str(k): k for k in range(size)}
    numbers = {name: k for k, name in enumerate(names)}
    if len(numbers) < size:
        twice = next(name for k, name in enumerate(names) if numbers[name] != k)
        raise UserError(f"{path}: two points have the name {twice!r}: use numbers from 0")
    return numbers
