"""Long data frames of rankings. Other tables are read in ``surveys.py``."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from numpyro_rankings.rankings import Rankings, RankingsError, build_rankings, check_unranked
from numpyro_rankings.rankings.names import item_names, name_of, shown
from numpyro_rankings.rankings.ranks import orderings_of_ranks


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
