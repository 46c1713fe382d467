"""Ranks as users give them, checked and converted to orderings."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from numpyro_rankings.rankings.names import (
    RankingsError,
    as_array,
    is_missing,
    name_of,
    row_place,
    shown,
)
from numpyro_rankings.words import by_number, plural


def as_floats(ranks: Any, columns: Sequence[Any] | None) -> np.ndarray:
    """Convert a table of ranks, of a data frame if it has columns, to floats; NaN if missing."""
    if columns is not None:
        dtypes = list(getattr(ranks, "dtypes", ()))
    else:
        dtypes = [getattr(ranks, "dtype", None)]
        if getattr(ranks, "ndim", 2) == 1 and getattr(dtypes[0], "kind", "") == "O":
            ranks = list(ranks)  # a series of lists
    for k, dtype in enumerate(dtypes):
        if getattr(dtype, "kind", "O") in "bcmM":
            which = "" if columns is None else f"column {columns[k]!r} of the "
            raise RankingsError(f"{which}ranks must be numbers, got {dtype}; all columns are items")
    try:
        if hasattr(ranks, "to_numpy") and hasattr(ranks, "iloc"):  # of pandas
            return ranks.to_numpy(dtype=float, na_value=np.nan)
        return as_array(ranks, float)
    except (TypeError, ValueError):
        raise RankingsError(_no_numbers(ranks, columns)) from None


def _no_numbers(ranks: Any, columns: Sequence[Any] | None) -> str:
    """Return why a table of ranks is not one of numbers."""
    problem = "ranks must be a table of numbers, one row per ranking"
    try:
        rows = ranks.to_numpy() if hasattr(ranks, "to_numpy") else ranks
        cells = [(row, k, x) for row, values in enumerate(rows) for k, x in enumerate(values)]
    except TypeError:
        return problem
    for row, k, x in cells:
        try:
            float(np.nan if is_missing(x) else x)
        except (TypeError, ValueError):
            column = k + 1 if columns is None else repr(columns[k])
            return (
                f"{row_place(row)}: column {column} has {shown(x)}, which is not a number; "
                f"{problem}, and all columns are items"
            )
    return problem


def check_same_order(columns: Sequence[Any], names: tuple[str, ...]) -> None:
    """Refuse names of the items that are the names of the columns in another order."""
    own = [name_of(column) for column in columns]
    if set(own) == set(names) and own != list(names):
        k = next(k for k, name in enumerate(names) if name != own[k])
        raise RankingsError(
            f"column {k + 1} of the table is {own[k]!r}, but items has {names[k]!r} there; leave "
            "out items, or give the table the columns in the order of items"
        )


def check_starts_at_one(table: np.ndarray, names: tuple[str, ...]) -> None:
    """Refuse ranks that start at 0, and those that only look like them.

    If a row has ranks but no 0, the ranks start at 1, and a 0 means not ranked.
    """
    rows = np.flatnonzero(~np.isnan(table).all(1))
    ordered, lengths = np.sort(table[rows], axis=1), (~np.isnan(table[rows])).sum(1)  # NaN last
    places = np.arange(table.shape[1])
    if len(rows) and ((ordered == places) | (places >= lengths[:, None])).all():
        refuse_rank_zero(table, names)


def refuse_rank_zero(table: np.ndarray, names: tuple[str, ...]) -> NoReturn:
    """Refuse ranks, (rows, n), of which each row has one 0."""
    row, item = np.argwhere(table == 0)[0]
    raise RankingsError(
        f"{row_place(row)}: item {names[item]!r} has rank 0, and each row has one 0: if 0 is the "
        "best, write ranks + 1; if it means not ranked, write NaN instead"
    )


def orderings_of_ranks(
    entries: tuple[np.ndarray, np.ndarray, np.ndarray],
    num_rows: int,
    names: tuple[str, ...],
    where: Callable[[int], str],
) -> np.ndarray:
    """Check (row, item, rank) of all ranked items; return orderings (rows, T), padded with -1."""
    rows, items, ranks = entries
    broken = ~((ranks >= 1) & (ranks == np.floor(ranks)) & (ranks < np.inf))
    if broken.any():
        k = int(np.argmax(broken))
        raise RankingsError(
            f"{where(rows[k])}: item {names[items[k]]!r} has rank {ranks[k]:g}; ranks are whole "
            "numbers from 1, and items that are not ranked have none"
        )
    lengths = np.bincount(rows, minlength=num_rows)
    table = np.full((num_rows, lengths.max(initial=0)), -1, np.int32)
    fits = ranks <= lengths[rows]
    table[rows[fits], ranks[fits].astype(np.intp) - 1] = items[fits]
    wrong = (table >= 0).sum(1) < lengths  # two have the same place, or one is beyond the last
    if wrong.any():
        row = int(np.argmax(wrong))
        own = np.flatnonzero(rows == row)
        places = np.stack([rows, ranks.astype(np.int64)])
        twice = np.unique(places, axis=1, return_counts=True)
        num_tied = len(set(twice[0][0, twice[1] > 1].tolist()))
        about_ties = (
            f"{plural(num_tied, 'ranking')} of {num_rows:,} {by_number(num_tied, 'has', 'have')} "
            "ties, which PartialOrders.from_ranks takes; read_rankings(table, 'ranks', "
            "overvote='stop') ends lists before the first tie"
        )
        problem = _ranks_problem(items[own], ranks[own], names, about_ties)
        raise RankingsError(f"{where(row)}: {problem}")
    return table


def _ranks_problem(
    items: np.ndarray, ranks: np.ndarray, names: tuple[str, ...], about_ties: str
) -> str:
    """Return why the ranks of a row are not 1, 2, …"""
    order = np.lexsort((items, ranks))
    named = [names[items[k]] for k in order]
    place = next(k for k, rank in enumerate(ranks[order]) if rank != k + 1)
    rank = ranks[order[place]]
    if place > 0 and rank == ranks[order[place - 1]]:
        return (
            f"items {named[place - 1]!r} and {named[place]!r} are tied at rank {rank:g}; "
            f"{about_ties}"
        )
    return (
        f"item {named[place]!r} has rank {rank:g} where {place + 1} was expected; the ranks of a "
        "row are 1, 2, 3, … without gaps here: read_rankings(table, …, gaps='close') keeps the "
        "order, and gaps='fill' puts an item at the gap that is the only one left out"
    )
