"""Surveys: rankings with the judges who gave them, in the layouts in which people have them.

To add a layout, write a reader such as :func:`_of_orders` and add it to :data:`_READERS`.
"""

import csv
import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from numpyro_rankings.datasets.grids import (
    EXCEL_SUFFIXES,
    PARQUET_SUFFIXES,
    TEXT_SUFFIXES,
    Grid,
    read_grid,
    whole_number,
)
from numpyro_rankings.preflib import check_writable_texts
from numpyro_rankings.rankings import Rankings, RankingsError, _item_names, build_rankings
from numpyro_rankings.words import plural

_UNRANKED, _GAPS = ("below", "not-offered"), ("refuse", "close")
_ORDINAL = re.compile(r"(?:rank|choice|place|pref(?:erence)?)?[ _]?(\d+)(?:st|nd|rd|th)?", re.I)
_SHOWN = 5  # rows or items in a message
_MOST_RANKINGS = 100_000_000


class Survey(NamedTuple):
    """Rankings, and the judges who gave them.

    - **rankings** - one row for each distinct ranking; N rankings in all.
    - **place** - (N,) int, the place of each ranking of the file, in its order, among the N labels
      of a kernel that was run on ``rankings``: ``labels[survey.place]`` are in the file's order.
    - **judges** - (N,) names of the judges, or None if the file has none.
    - **about** - (N,) texts by column: what else the file says about each judge.
    - **layout** - how the file was read.
    - **notes** - what a reader of the file should know, a sentence each.
    """

    rankings: Rankings
    place: np.ndarray
    judges: list[str] | None
    about: dict[str, list[str]]
    layout: str
    notes: list[str]


class _Columns(NamedTuple):
    """The columns of a table by their meaning, and how to read them; None if there is none."""

    judge: str | None
    item: str | None
    rank: str | None
    counts: str | None
    about: tuple[str, ...]
    items: tuple[str, ...] | None
    closes_gaps: bool

    @property
    def special(self) -> set[str]:
        """Columns that are neither items nor places."""
        named = {self.judge, self.item, self.rank, self.counts, *self.about}
        return {name for name in named if name is not None}


class _Lists(NamedTuple):
    """The lists of a table.

    - **items** - names of all items.
    - **lists** - items of each judge, best first; empty if the judge ranks none.
    - **rows** - a row of the grid that each is in, for its id, count and further columns.
    - **where** - what messages call each.
    - **num_closed** - lists of which gaps were closed.
    """

    items: tuple[str, ...]
    lists: list[list[int]]
    rows: list[int]
    where: list[str]
    num_closed: int


def survey_of(rankings: Rankings, layout: str) -> Survey:
    """Return the survey of rankings whose judges are not known."""
    return Survey(rankings, np.arange(rankings.num_rankings), None, {}, layout, [])


def read_layout(
    source: Any,
    layout: str | None = None,
    *,
    judge: str | None = None,
    about: Sequence[str] = (),
    items: Sequence[str] | None = None,
    item: str | None = None,
    rank: str | None = None,
    count: str | None = None,
    unranked: str = "below",
    gaps: str = "refuse",
) -> Survey:
    """Read a table of rankings; see :func:`~numpyro_rankings.datasets.read_survey`."""
    if layout is not None and layout not in LAYOUTS:
        raise RankingsError(f"layout is one of {', '.join(LAYOUTS)}, not {layout!r}")
    for name, value, known in (("unranked", unranked, _UNRANKED), ("gaps", gaps, _GAPS)):
        if value not in known:
            raise RankingsError(f"{name} is {' or '.join(map(repr, known))}, not {value!r}")
    names = None if items is None else _item_names(items)
    grid = read_grid(source, names or ())
    judge, item, rank, count = (None if x is None else str(x) for x in (judge, item, rank, count))
    notes = []
    if layout is None:
        layout = _layout_by_names(grid)
        notes.append(f"read as --layout {layout}, because of the names of the columns")
    if layout == "long":
        judge, item, rank = _columns_of_long(grid, judge, item, rank)
    elif item is not None or rank is not None:
        raise RankingsError(f"item and rank name columns of the layout long, not of {layout}")
    about = (about,) if isinstance(about, str) else tuple(map(str, about))
    columns = _Columns(judge, item, rank, count, about, names, gaps == "close")
    _check_columns(grid, columns)
    found = _READERS[layout](grid, columns)
    return _survey(grid, columns, found, layout, unranked == "not-offered", notes)


# ---------------------------------------------------------------------------------------------
# Which layout
# ---------------------------------------------------------------------------------------------


def _layout_by_names(grid: Grid) -> str:
    """Return the layout that the names of the columns say.

    :raises RankingsError: if they do not, showing the first row read in both ways.
    """
    names = {name.lower() for name in grid.columns}
    if {"judge", "item"} <= names and names & {"rank", "position"}:
        return "long"
    if _places_by_names(grid.columns):
        return "orders"
    cells = list(zip(grid.columns, grid.rows[0], strict=True))[:_SHOWN]
    more = ", …" if len(grid.columns) > _SHOWN else ""
    ranks = ", ".join(f"{name!r} has rank {cell or 'none'}" for name, cell in cells)
    orders = ", ".join(f"{cell or 'nothing'!r} is at place {name!r}" for name, cell in cells)
    raise RankingsError(
        f"{grid.places[0]}: the layout is needed. As ranks (one column for each item), this row "
        f"says: {ranks}{more}. As orders (one column for each place): {orders}{more}. Add --layout "
        "ranks or --layout orders, or --layout long if each row is one judge and one item"
    )


def _places_by_names(columns: Sequence[str]) -> list[str]:
    """Return the columns that are places by their names, such as 1st and 2nd, the best first."""
    found = {name: int(m[1]) for name in columns if (m := _ORDINAL.fullmatch(name))}
    # a column "1" may also be an item or a judge, so that numbers alone do not suffice
    named = {name: k for name, k in found.items() if not name.isdecimal()}
    if len(named) < 2 or sorted(named.values()) != list(range(1, len(named) + 1)):
        return []
    return sorted(named, key=lambda name: named[name])


def _columns_of_long(
    grid: Grid, judge: str | None, item: str | None, rank: str | None
) -> tuple[str, str, str]:
    """Return the columns with the judge, the item and the rank; by default those of that name."""

    def find(given: str | None, option: str, *names: str) -> str:
        if given is not None:
            return given
        found = [name for name in grid.columns if name.lower() in names]
        if len(found) != 1:
            known = ", ".join(map(repr, grid.columns))
            raise RankingsError(
                f"{grid.name}: which column has the {option}? Name it with --{option}; the columns "
                f"are {known}"
            )
        return found[0]

    return (
        find(judge, "judge", "judge"),
        find(item, "item", "item"),
        find(rank, "rank", "rank", "position"),
    )


def _check_columns(grid: Grid, columns: _Columns) -> None:
    named = [columns.judge, columns.item, columns.rank, columns.counts, *columns.about]
    given = [name for name in named if name is not None]
    for k, name in enumerate(given):
        if name not in grid.columns:
            known = ", ".join(map(repr, grid.columns))
            raise RankingsError(
                f"{grid.name}: there is no column {name!r}; the columns are {known}"
            )
        if name in given[:k]:
            raise RankingsError(f"{grid.name}: the column {name!r} is named twice")


# ---------------------------------------------------------------------------------------------
# Layouts
# ---------------------------------------------------------------------------------------------


def _of_ranks(grid: Grid, columns: _Columns) -> _Lists:
    """A column for each item, with its rank in each row; 1 is best."""
    others = [name for name in grid.columns if name not in columns.special]
    names = columns.items or tuple(others)
    for name in names:
        if name not in others:
            raise RankingsError(f"{grid.name}: there is no column for the item {name!r}")
    if columns.items is not None and (rest := [name for name in others if name not in names]):
        raise RankingsError(
            f"{grid.name}: the column {rest[0]!r} is no item; if it is about the judges, add it to "
            "--about"
        )
    lists, num_closed = [], 0
    cells = [grid.column(name) for name in names]
    for row, where in enumerate(grid.places):
        ranks = {
            k: _rank(f"{where}: column {name!r}", column[row], len(names))
            for k, (name, column) in enumerate(zip(names, cells, strict=True))
            if column[row]
        }
        listed, is_closed = _list_of_ranks(where, ranks, names, columns.closes_gaps)
        lists.append(listed)
        num_closed += is_closed
    return _Lists(names, lists, list(range(len(lists))), grid.places, num_closed)


def _rank(where: str, text: str, num_items: int | None) -> int:
    number = whole_number(text)
    if number is None or number < 1:
        hint = ""
        if num_items is not None and number is None:
            hint = "; if the column is about the judges, add it to --about, or to --judge if it "
            hint += "names them"
        raise RankingsError(
            f"{where}: expected a rank, a whole number from 1, or nothing, got {text[:40]!r}{hint}"
        )
    if num_items is not None and number > num_items:
        raise RankingsError(
            f"{where}: rank {number}, but there are {num_items} items; if the column is about the "
            "judges, add it to --about, or to --judge if it names them"
        )
    return number


def _list_of_ranks(
    where: str, ranks: Mapping[int, int], names: Sequence[str], closes_gaps: bool
) -> tuple[list[int], bool]:
    """Return the items by rank, and whether gaps between the ranks were closed; 0 is no rank."""
    listed = sorted((rank, k) for k, rank in ranks.items() if rank > 0)
    for (rank, k), (next_rank, other) in itertools.pairwise(listed):
        if rank == next_rank:
            raise RankingsError(
                f"{where}: {names[k]!r} and {names[other]!r} both have rank {rank}; ties are not "
                "supported"
            )
    has_gap = any(rank != k for k, (rank, _) in enumerate(listed, 1))
    if has_gap and not closes_gaps:
        place, (rank, k) = next((n, x) for n, x in enumerate(listed, 1) if x[0] != n)
        raise RankingsError(
            f"{where}: {names[k]!r} has rank {rank}, but no item has rank {place}; --gaps close "
            "keeps the order of the items that are ranked"
        )
    return [k for _, k in listed], has_gap


def _of_orders(grid: Grid, columns: _Columns) -> _Lists:
    """A column for each place, the best first, with the name of the item there."""
    others = [name for name in grid.columns if name not in columns.special]
    places = _places_by_names(others) or others
    if all(name.isdecimal() for name in places):
        places = sorted(places, key=int)
    if rest := [name for name in others if name not in places]:
        raise RankingsError(
            f"{grid.name}: the column {rest[0]!r} is no place; if it is about the judges, add it "
            "to --about, or to --judge if it names them"
        )
    index = {name: k for k, name in enumerate(columns.items or ())}
    is_closed_set, lists, num_closed = columns.items is not None, [], 0
    cells = [grid.column(name) for name in places]
    for row, where in enumerate(grid.places):
        listed: list[int] = []
        gap = None
        for name, column in zip(places, cells, strict=True):
            text = column[row]
            if not text:
                gap = gap or name
                continue
            if is_closed_set and text not in index:
                known = ", ".join(list(index)[:_SHOWN]) + (", …" if len(index) > _SHOWN else "")
                raise RankingsError(
                    f"{where}: column {name!r}: there is no item {text[:40]!r}; expected {known}"
                )
            item = index.setdefault(text, len(index))
            if item in listed:
                raise RankingsError(f"{where}: column {name!r}: {text!r} is listed twice")
            if gap is not None and not columns.closes_gaps:
                raise RankingsError(
                    f"{where}: column {gap!r} is empty, but {name!r} is {text!r}; --gaps close "
                    "keeps the order of the items that are listed"
                )
            num_closed += gap is not None
            gap = None
            listed.append(item)
        lists.append(listed)
    return _Lists(tuple(index), lists, list(range(len(lists))), grid.places, num_closed)


def _of_long(grid: Grid, columns: _Columns) -> _Lists:
    """A row for each judge and item, with its rank."""
    assert columns.judge and columns.item and columns.rank
    used = (columns.judge, columns.item, columns.rank)
    constant = [name for name in (*columns.about, columns.counts) if name is not None]
    of_judges = [(name, grid.column(name)) for name in constant]
    index = {name: k for k, name in enumerate(columns.items or ())}
    first: dict[str, int] = {}
    ranks: dict[str, dict[int, int]] = {}
    for row, (judge, item, rank) in enumerate(zip(*map(grid.column, used), strict=True)):
        where = grid.places[row]
        for name, cell in zip(used, (judge, item), strict=False):
            if not cell:
                raise RankingsError(f"{where}: column {name!r} is empty")
        if columns.items is not None and item not in index:
            raise RankingsError(f"{where}: there is no item {item!r} in --items")
        of_judge, k = ranks.setdefault(judge, {}), index.setdefault(item, len(index))
        if k in of_judge:
            raise RankingsError(f"{where}: judge {judge!r} ranks {item!r} twice")
        of_judge[k] = _rank(f"{where}: column {columns.rank!r}", rank, None) if rank else 0
        start = first.setdefault(judge, row)
        for name, cells in of_judges:
            if cells[start] != cells[row]:
                raise RankingsError(
                    f"{where}: column {name!r} is {cells[row]!r}, but {cells[start]!r} in an "
                    f"earlier row of judge {judge!r}"
                )
    names, lists, num_closed = tuple(index), [], 0
    for judge, of_judge in ranks.items():
        where = f"{grid.name}: judge {judge!r}"
        listed, is_closed = _list_of_ranks(where, of_judge, names, columns.closes_gaps)
        lists.append(listed)
        num_closed += is_closed
    where_judges = [f"{grid.name}: judge {judge!r}" for judge in ranks]
    return _Lists(names, lists, list(first.values()), where_judges, num_closed)


_READERS: dict[str, Callable[[Grid, _Columns], _Lists]] = {
    "ranks": _of_ranks,
    "orders": _of_orders,
    "long": _of_long,
}
LAYOUTS = tuple(_READERS)


# ---------------------------------------------------------------------------------------------
# The survey
# ---------------------------------------------------------------------------------------------


def _survey(
    grid: Grid, columns: _Columns, found: _Lists, layout: str, not_offered: bool, notes: list[str]
) -> Survey:
    """Put the lists together with what the table says about their judges."""
    if len(found.items) < 2:
        raise RankingsError(
            f"{grid.name}: a ranking needs at least 2 items, got {len(found.items)}"
        )
    kept = [k for k, listed in enumerate(found.lists) if listed]
    if not kept:
        raise RankingsError(f"{grid.name}: no row ranks any item")
    if len(kept) < len(found.lists):
        empty = [found.where[k] for k, listed in enumerate(found.lists) if not listed]
        shown = ", ".join(empty[:_SHOWN]) + (", …" if len(empty) > _SHOWN else "")
        verb = "ranks nothing and is" if len(empty) == 1 else "rank nothing and are"
        notes.append(f"{plural(len(empty), 'judge')} {verb} left out: {shown}")
    if found.num_closed:
        notes.append(f"gaps were closed in {plural(found.num_closed, 'list')}")
    rows, num_items = [found.rows[k] for k in kept], len(found.items)
    lists = [found.lists[k] for k in kept]
    counts = np.ones(len(kept), int)
    if columns.counts is not None:
        cells = grid.column(columns.counts)
        counts = np.array([_count(grid.places[r], columns.counts, cells[r]) for r in rows])
        if counts.sum() > _MOST_RANKINGS:
            where = grid.places[rows[int(np.argmax(counts))]]
            raise RankingsError(
                f"{where}: column {columns.counts!r}: with count {counts.max():,} there are "
                f"{counts.sum():,} rankings; at most {_MOST_RANKINGS:,} can be read"
            )
    # a list of all items but one says the same as the full one, if all were offered
    least = num_items if not_offered else num_items - 1
    is_partial = any(len(listed) < least for listed in lists)
    if is_partial:
        meaning, other = "ranked below the others", "not-offered if they were not offered"
        if not_offered:
            meaning, other = "not offered", "below if they rank below the others"
        notes.append(
            f"items that a judge does not rank are read as {meaning}: use --unranked {other}"
        )
    choice_sets = None
    if not_offered and is_partial:
        choice_sets = np.zeros((len(lists), num_items), bool)
        for k, listed in enumerate(lists):
            choice_sets[k, listed] = True
    of_each = build_rankings(
        lists, found.items, counts, choice_sets, where=lambda k: found.where[kept[k]]
    )
    judges = None
    if columns.judge is not None:
        judges = np.repeat(_judges(grid, columns.judge, rows), counts).tolist()
    about = {}
    for name in columns.about:
        cells = grid.column(name)
        about[name] = np.repeat(np.array([cells[r] for r in rows], object), counts).tolist()
    merged, row_of_each = of_each.merged()
    place = np.empty(of_each.num_rankings, int)
    place[np.argsort(np.repeat(row_of_each, counts), kind="stable")] = np.arange(len(place))
    return Survey(merged, place, judges, about, layout, notes)


def _count(where: str, column: str, text: str) -> int:
    number = whole_number(text)
    if number is None or not 1 <= number < 2**31:
        raise RankingsError(
            f"{where}: column {column!r}: expected a positive whole number, got {text[:40]!r}"
        )
    return number


def _judges(grid: Grid, column: str, rows: list[int]) -> np.ndarray:
    """Return the names of the judges in these rows: each has one, and no two have the same."""
    cells, seen = grid.column(column), set()
    names = [cells[row] for row in rows]
    for row, name in zip(rows, names, strict=True):
        if not name:
            raise RankingsError(f"{grid.places[row]}: column {column!r} is empty: who is it?")
        if name in seen:
            raise RankingsError(f"{grid.places[row]}: judge {name!r} has a row already")
        seen.add(name)
    return np.array(names, object)


# ---------------------------------------------------------------------------------------------
# Writing
# ---------------------------------------------------------------------------------------------


def write_survey(survey: Survey | Rankings, path: str | os.PathLike, layout: str = "ranks") -> None:
    """Write a table that :func:`~numpyro_rankings.datasets.read_survey` reads.

    The columns of judges and what is known about them come first. A layout of orders or a long one
    does not name the items that nobody lists: give ``items`` when it is read.

    :param survey: the survey, or rankings, whose judges are then numbered from 1.
    :param path: the file to write: ``.csv``, ``.tsv``, ``.xlsx`` or ``.parquet``.
    :param layout: ``"ranks"``, ``"orders"`` or ``"long"``.
    :raises RankingsError: if there are choice sets that the table cannot represent.
    """
    if isinstance(survey, Rankings):
        survey = survey_of(survey, "")
    name, suffix = os.fspath(path), Path(path).suffix.lower()
    if suffix not in (*TEXT_SUFFIXES, *EXCEL_SUFFIXES, *PARQUET_SUFFIXES):
        raise RankingsError(f"{name}: the extension {suffix!r} is not known")
    if layout not in LAYOUTS:
        raise RankingsError(f"layout is one of {', '.join(LAYOUTS)}, not {layout!r}")
    rankings = survey.rankings
    orderings = np.asarray(rankings.orderings)
    if rankings.choice_sets is not None:
        listed = (np.asarray(rankings.to_ranks()) > 0).astype(bool)
        if not np.array_equal(listed, np.asarray(rankings.choice_sets)):
            raise RankingsError(
                f"{name}: a table says which items were ranked, not which were offered, and some "
                "judges did not rank all items of their choice sets"
            )
    rows = orderings[np.asarray(rankings.row_index)[survey.place]]
    if "judge" in survey.about:
        raise RankingsError(f"{name}: two columns would have the same name")
    if survey.judges is not None and len(set(survey.judges)) < len(survey.judges):
        raise RankingsError(f"{name}: a judge has several rankings, of which a table has only one")
    judges = survey.judges or [str(k) for k in range(1, len(rows) + 1)]
    before = {"judge": judges, **survey.about}
    columns, cells = _CELLS[layout](rows, rankings.items)
    header = [*before, *columns]
    if len(set(header)) < len(header):
        raise RankingsError(f"{name}: two columns would have the same name")
    table = [
        [*about, *row]
        for about, of_judge in zip(zip(*before.values(), strict=True), cells, strict=True)
        for row in of_judge
    ]
    check_writable_texts(name, (cell for row in [header, *table] for cell in row))
    if suffix in EXCEL_SUFFIXES and any(
        isinstance(cell, str) and cell.startswith("=") for row in [header, *table] for cell in row
    ):
        raise RankingsError(f"{name}: spreadsheets take a text that begins with = for a formula")
    try:
        if suffix in TEXT_SUFFIXES:
            with open(name, "w", newline="", encoding="utf-8") as stream:
                writer = csv.writer(stream, delimiter="," if suffix == ".csv" else "\t")
                writer.writerows([header, *table])
            return
        import pandas as pd

        frame = pd.DataFrame(table, columns=header)
        if suffix in EXCEL_SUFFIXES:
            frame.to_excel(name, index=False)
        else:
            frame.to_parquet(name, index=False)
    except OSError as error:
        raise RankingsError(f"{name}: cannot be written: {error.strerror or error}") from None
    except ImportError as error:
        raise RankingsError(f"{name}: pip install 'numpyro-rankings[tables]' ({error})") from None


_Cells = tuple[list[str], list[list[list[Any]]]]  # columns, and the rows of each judge


def _cells_of_ranks(rows: np.ndarray, items: Sequence[str]) -> _Cells:
    cells = []
    for row in rows:
        ranks = {item: place for place, item in enumerate(row[row >= 0], 1)}
        cells.append([[ranks.get(k) for k in range(len(items))]])
    return list(items), cells


def _cells_of_orders(rows: np.ndarray, items: Sequence[str]) -> _Cells:
    columns = [f"rank {k}" for k in range(1, rows.shape[1] + 1)]
    return columns, [[[items[k] if k >= 0 else None for k in row]] for row in rows]


def _cells_of_long(rows: np.ndarray, items: Sequence[str]) -> _Cells:
    cells = [[[items[k], place] for place, k in enumerate(row[row >= 0], 1)] for row in rows]
    return ["item", "rank"], cells


_CELLS: dict[str, Callable[[np.ndarray, Sequence[str]], _Cells]] = {
    "ranks": _cells_of_ranks,
    "orders": _cells_of_orders,
    "long": _cells_of_long,
}
