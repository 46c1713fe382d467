"""Data frames of rankings: long tables in, and tables of every layout out."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from numpyro_rankings.rankings import Rankings, RankingsError, build_rankings, check_unranked
from numpyro_rankings.rankings.names import item_names, name_of, shown
from numpyro_rankings.rankings.ranks import orderings_of_ranks
from numpyro_rankings.readers.layouts import LAYOUTS
from numpyro_rankings.readers.layouts.base import Layout

# ---------------------------------------------------------------------------------------------
# Reading a long table
# ---------------------------------------------------------------------------------------------


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
    rows, judges = _codes(judge, columns[0], lambda who: who.strip() if _is_text(who) else who)
    codes, found = _codes(item, columns[1], name_of)
    if items is not None:
        names = item_names(items)
        index = {name: k for k, name in enumerate(names)}
        positions = np.array([index.get(name, -1) for name in found])
        if (positions < 0).any():
            line = int(np.argmax(positions[codes] < 0))
            raise RankingsError(
                f"judge {judges[rows[line]]!r}: there is no item {found[codes[line]]!r} in items"
            )
        codes = positions[codes]
    else:
        names = tuple(found)

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


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _codes(column: pd.Series, name: str, key: Callable[[Any], Any]) -> tuple[np.ndarray, list[Any]]:
    """Return the codes of the values of a column by their keys, and the distinct keys."""
    try:
        codes, values = pd.factorize(column)
    except TypeError:
        raise RankingsError(f"the column {name!r} must have names, or numbers") from None
    if (codes < 0).any():
        raise RankingsError(f"line {np.argmax(codes < 0) + 1} of the table has no {name!r}")
    keys = [key(value) for value in values.tolist()]
    if _is_text(key("")) and any(value == "" for value in keys):
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


# ---------------------------------------------------------------------------------------------
# Writing
# ---------------------------------------------------------------------------------------------


def table_frame(
    orderings: np.ndarray, items: tuple[str, ...], layout: Layout
) -> tuple[np.ndarray, pd.DataFrame]:
    """Return the list that each line of a table is of, and the table."""
    lists, columns = layout.table(orderings, items)
    masked = {name: x for name, x in columns.items() if isinstance(x, np.ma.MaskedArray)}
    whole = {name: pd.arrays.IntegerArray(x.data, x.mask) for name, x in masked.items()}
    return lists, pd.DataFrame({**columns, **whole})


def write_frame(rankings: Rankings, layout: str, count: str | None = None) -> pd.DataFrame:
    """Write a data frame; see :meth:`numpyro_rankings.Rankings.to_dataframe`."""
    written = {name: one for name, one in LAYOUTS.items() if not one.is_of_ballots}
    if layout not in written:
        raise RankingsError(f"layout is one of {', '.join(written)}, not {layout!r}")
    _check_choice_sets_are_lists(rankings)
    orderings, lengths = np.asarray(rankings.orderings), np.asarray(rankings.lengths)
    rows = np.asarray(rankings.row_index) if count is None else np.arange(rankings.num_rows)
    orderings = orderings[rows, : lengths.max()]
    lists, frame = table_frame(orderings, rankings.items, written[layout])
    if written[layout].has_lines_of_items:
        frame.insert(0, "judge", lists + 1)
    else:
        frame.index = pd.RangeIndex(1, len(orderings) + 1, name="judge")
    if count is None:
        return frame
    if count in frame.columns:
        raise RankingsError(f"the table has a column {count!r} already; give count another name")
    frame[count] = np.asarray(rankings.counts, np.int64)[lists]
    return frame


def _check_choice_sets_are_lists(rankings: Rankings) -> None:
    """Refuse choice sets with items that were offered and are not ranked."""
    if rankings.choice_sets is None:
        return
    more = np.asarray(rankings.choice_sets) & np.isnan(rankings.to_ranks())
    if more.any():
        row, item = np.argwhere(more)[0]
        raise RankingsError(
            f"row {row + 1}: item {rankings.items[item]!r} was offered but is not ranked, which a "
            "data frame cannot say; readers.write_table writes a file that can"
        )
