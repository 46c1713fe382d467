"""Long data frames of rankings, and those of pairs. Other tables are read in ``surveys.py``."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from numpyro_rankings.rankings import (
    Comparisons,
    Games,
    PartialOrders,
    Rankings,
    RankingsError,
    build_rankings,
    check_unranked,
)
from numpyro_rankings.rankings.comparisons import build_comparisons
from numpyro_rankings.rankings.container import check_counts
from numpyro_rankings.rankings.games import count_games
from numpyro_rankings.rankings.names import is_missing, item_names, name_of, shown
from numpyro_rankings.rankings.partial_orders import build_partial_orders
from numpyro_rankings.rankings.preferences import closed, table_of_pairs
from numpyro_rankings.rankings.ranks import orderings_of_ranks
from numpyro_rankings.readers.grids import Column, Grid
from numpyro_rankings.readers.outcomes import SECOND, TIE, read_outcomes, refuse_pairs_of_one

_LEFT_OUT = "leave the line out if it is no answer"


def read_long(
    df: Any,
    columns: tuple[str, str, str],
    items: Sequence[Any] | None = None,
    unranked: str = "below",
    count: str | None = None,
) -> Rankings:
    """Read a long table without a table of all judges by all items.

    See :meth:`numpyro_rankings.Rankings.from_dataframe`.
    """
    check_unranked(unranked)
    judge, item, rank = (_column(df, name) for name in columns)
    if not len(judge) == len(item) == len(rank):
        sizes = f"{len(judge)}, {len(item)} and {len(rank)}"
        raise RankingsError(f"the columns of the table must be of one length, got {sizes}")
    if not len(judge):
        raise RankingsError("there are no rankings")
    rows, judges = _codes(
        judge, columns[0], lambda who: who.strip() if isinstance(who, str) else who
    )
    codes, listed = _codes(item, columns[1], name_of)
    if items is not None:
        names = item_names(items)
        index = {name: k for k, name in enumerate(names)}
        positions = np.array([index.get(name, -1) for name in listed])
        if (positions < 0).any():
            line = int(np.argmax(positions[codes] < 0))
            raise RankingsError(
                f"judge {judges[rows[line]]!r}: there is no item {listed[codes[line]]!r} in items"
            )
        codes = positions[codes]
    else:
        names = tuple(listed)

    def of_line(line: int) -> str:
        return f"judge {judges[rows[line]]!r}: item {names[codes[line]]!r}"

    cells = pd.Series(rows * len(names) + codes)
    twice = cells.duplicated().to_numpy()
    if twice.any():
        raise RankingsError(f"{of_line(int(np.argmax(twice)))} is ranked twice")
    ranks = _numbers(rank, of_line)
    if (ranks == 0).any():
        raise RankingsError(
            f"{of_line(int(np.argmax(ranks == 0)))} has rank 0; ranks start at 1, and an item that "
            "is not ranked has no line, or an empty rank"
        )
    names = item_names(names)
    ranked = ~np.isnan(ranks)
    entries = rows[ranked], codes[ranked], ranks[ranked]

    def where(row: int) -> str:
        return f"judge {judges[row]!r}"

    table = orderings_of_ranks(entries, len(judges), names, where)
    offered = None
    if unranked == "not-offered":
        offered = np.zeros((len(judges), len(names)), bool)
        offered[entries[:2]] = True
    counts = None if count is None else _counts(_column(df, count), count, rows, where)
    return build_rankings(table, names, counts, offered, where=where)


class _Pairs(NamedTuple):
    """A table of pairs."""

    rows: np.ndarray  # the row of each line, (m,)
    pairs: np.ndarray  # items, of which the first is preferred if the pair is decided, (m, 2)
    is_decided: np.ndarray
    names: tuple[str, ...]
    ids: list[str]  # of the judges; empty if each line is a row
    counts: np.ndarray | None  # of the rows

    def where(self, row: int) -> str:
        return f"judge {self.ids[row]!r}" if self.ids else _line(row)

    def table(self, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the items that each row compares, and its preferences, or their numbers."""
        return table_of_pairs(self.rows, self.pairs, self.is_decided, len(self.names), dtype)


def read_pairs(
    df: Any,
    columns: tuple[str, ...],
    judge: str | None = None,
    items: Sequence[Any] | None = None,
    count: str | None = None,
) -> PartialOrders:
    """Read a table of pairs.

    See :meth:`numpyro_rankings.PartialOrders.from_pairs`.

    :param columns: those of the winner and the loser; or those of the two items and of the winner.
    """
    read = _read_lines(df, columns, judge, items, count)
    table, direct = read.table(bool)
    remedy = "Comparisons.from_pairs takes them as mistakes"
    above, _, _ = closed(direct, table, read.names, read.where, remedy)
    given = (read.counts, None, "not-offered")
    made = build_partial_orders(table, above, read.names, given, read.where)
    return made.with_ids(read.ids) if read.ids else made.unique()


def read_comparisons(
    df: Any,
    columns: tuple[str, ...],
    judge: str | None = None,
    items: Sequence[Any] | None = None,
    count: str | None = None,
) -> Comparisons:
    """Read a table of pairs that may contradict one another, with arguments as :func:`read_pairs`.

    See :meth:`numpyro_rankings.Comparisons.from_pairs`.
    """
    read = _read_lines(df, columns, judge, items, count)
    table, wins = read.table(np.int32)
    counts = check_counts(read.counts, len(table), read.where)
    made = build_comparisons(table, wins, read.names, counts)
    return made.with_ids(read.ids) if read.ids else made.unique()


def _read_lines(
    df: Any,
    columns: tuple[str, ...],
    judge: str | None,
    items: Sequence[Any] | None,
    count: str | None,
) -> _Pairs:
    pairs, names = _pairs_of_items(df, columns[:2], items)
    is_decided = np.ones(len(pairs), bool)
    if len(columns) > 2:
        pairs, is_decided = _decide(df, columns, pairs, names)
    ids: list[str] = []
    rows = np.arange(len(pairs))
    if judge is not None:
        rows, ids = _codes(_column(df, judge), judge, name_of)
    read = _Pairs(rows, pairs, is_decided, names, ids, None)
    if count is None:
        return read
    return read._replace(counts=_counts(_column(df, count), count, rows, read.where))


def read_games(
    df: Any,
    columns: tuple[str, ...],
    home: str | None = None,
    count: str | None = None,
    items: Sequence[Any] | None = None,
) -> Games:
    """Count the games of a table.

    See :meth:`numpyro_rankings.Games.from_pairs`.

    :param columns: as in :func:`read_pairs`.
    """
    pairs, names = _pairs_of_items(df, columns[:2], items)
    at_home = np.full(len(pairs), -1)
    if home is not None:
        at_home = _items_at_home(_column(df, home), home, pairs, names)
    outcomes = np.zeros(len(pairs), int)
    if len(columns) > 2:
        pairs, is_decided = _decide(df, columns, pairs, names)
        outcomes[~is_decided] = 2
    given = None if count is None else _counts(_column(df, count), count, np.arange(len(df)), _line)
    return count_games(pairs, outcomes, check_counts(given, len(pairs), _line), at_home, names)


def _items_at_home(
    column: pd.Series, name: str, pairs: np.ndarray, names: tuple[str, ...]
) -> np.ndarray:
    """Return the item at home of each line, -1 where the column is empty."""
    texts = ["" if is_missing(value) else name_of(value) for value in column.tolist()]
    index = {**{item: k for k, item in enumerate(names)}, "": -1}
    found = np.array([index.get(text, -2) for text in texts])
    for line in np.flatnonzero((found != -1) & (found[:, None] != pairs).all(1))[:1]:
        one, two = (names[k] for k in pairs[line])
        raise RankingsError(
            f"{_line(line)}: {name!r} is {texts[line]!r}; expected {one}, {two}, or nothing where "
            "none was at home"
        )
    if (found == -1).all():
        raise RankingsError(f"no game has an item at home in the column {name!r}: leave out home")
    return found


def _pairs_of_items(
    df: Any, columns: Sequence[str], items: Sequence[Any] | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the items in two columns, (m, 2), and the names of all."""
    if not hasattr(df, "columns"):
        raise RankingsError(f"a data frame of pairs is needed, got {type(df).__name__}")
    parts = [_codes(_column(df, column), column, name_of) for column in columns]
    if not len(parts[0][0]):
        raise RankingsError("there are no comparisons")
    texts = np.column_stack([np.array(names, object)[codes] for codes, names in parts])
    flat, distinct = pd.factorize(texts.ravel())  # line by line, in order of first appearance
    pairs, found = flat.reshape(-1, 2), distinct.tolist()
    refuse_pairs_of_one(_grid(len(pairs)), pairs, found)
    if items is None:
        return pairs, item_names(found)
    names = item_names(items)
    positions = np.array([names.index(name) if name in names else -1 for name in found])
    for line, k in np.argwhere(positions[pairs] < 0)[:1]:
        raise RankingsError(f"{_line(line)}: there is no item {found[pairs[line, k]]!r} in items")
    return positions[pairs], names


def _decide(
    df: Any, columns: Sequence[str], pairs: np.ndarray, names: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs with the winner first, and which have one, by a column that says who won."""
    codes, texts = _codes(_column(df, columns[2]), columns[2], name_of)
    outcome = Column(columns[2], texts, codes)
    sides = columns[0], columns[1]
    said, _ = read_outcomes(_grid(len(pairs)), outcome, sides, pairs, names, lambda *_: _LEFT_OUT)
    return np.where((said == SECOND)[:, None], pairs[:, ::-1], pairs), said != TIE


def _grid(size: int) -> Grid:
    """Return the lines of a table for messages."""
    return Grid("the table", [], np.arange(size) + 1, "line {} of the table", "the table")


def _line(row: int) -> str:
    return f"line {row + 1} of the table"


def _column(df: Any, name: str) -> pd.Series:
    """Return a column of a data frame, or of anything else that has columns."""
    if name not in df:
        raise RankingsError(f"the table has no column {name!r}")
    values = df[name]
    if getattr(values, "ndim", 1) != 1:
        raise RankingsError(f"the table has several columns {name!r}")
    if isinstance(values, pd.Series):
        return values
    if hasattr(values, "dtype"):
        return pd.Series(values)
    entries = [None if value is np.ma.masked else value for value in values]
    return pd.Series(entries, dtype=object)


def _codes(column: pd.Series, name: str, key: Callable[[Any], Any]) -> tuple[np.ndarray, list[Any]]:
    """Return the codes of the values of a column by their keys, and the distinct keys."""
    try:
        codes, values = pd.factorize(column)
    except TypeError:
        raise RankingsError(f"the column {name!r} must have names, or numbers") from None
    if (codes < 0).any():
        raise RankingsError(f"line {np.argmax(codes < 0) + 1} of the table has no {name!r}")
    keys = [key(value) for value in values.tolist()]
    if any(value == "" for value in keys):
        blank = np.array([value == "" for value in keys])[codes]
        raise RankingsError(f"line {np.argmax(blank) + 1} of the table has no {name!r}")
    merged, distinct = pd.factorize(np.fromiter(keys, object, len(keys)))
    return merged[codes].astype(np.int64), distinct.tolist()


def _numbers(column: pd.Series, where: Callable[[int], str]) -> np.ndarray:
    """Return the ranks as floats, NaN where they are missing."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "iuf":
        return column.to_numpy(dtype=float, na_value=np.nan)
    missing = column.isna().to_numpy()
    if kind in "OSU":
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    else:
        numbers = np.full(len(column), np.nan)
    wrong = np.isnan(numbers) & ~missing
    if wrong.any():
        line = int(np.argmax(wrong))
        raise RankingsError(
            f"{where(line)} has rank {shown(column.iloc[line])}, which is not a number; expected a "
            "whole number from 1"
        )
    return numbers


def _counts(
    column: pd.Series, name: str, rows: np.ndarray, where: Callable[[int], str]
) -> np.ndarray:
    """Return the count of each judge, which all of the judge's lines have."""
    if getattr(column.dtype, "kind", "O") not in "iuf":
        raise RankingsError(f"the column {name!r} must have whole numbers, not {column.dtype}")
    counts = column.to_numpy(dtype=float, na_value=np.nan)
    first = np.unique(rows, return_index=True)[1]
    differs = ~((counts == counts[first][rows]) | np.isnan(counts) & np.isnan(counts[first][rows]))
    if differs.any():
        line = int(np.argmax(differs))
        raise RankingsError(
            f"{where(rows[line])}: the column {name!r} has {counts[first][rows[line]]:g} and "
            f"{counts[line]:g}; expected the same in all lines of a judge"
        )
    return counts[first]
