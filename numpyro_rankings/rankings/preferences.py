"""Preferences between the items of each row, (rows, T, T): from buckets, ranks and pairs."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from numpyro_rankings.rankings.names import RankingsError, is_missing, row_place
from numpyro_rankings.rankings.ranks import refuse_rank_zero
from numpyro_rankings.words import by_number, plural

TIED_RANKS = ("min", "dense", "average")
_MOST_BYTES = 2**32  # of preferences
_MOST_SHOWN = 10  # items of a cycle
_MOST_STARTS = 20  # of the search for a short one


def check_size(rows: int, width: int, bytes_each: int = 1) -> None:
    """Refuse preferences that would fill the memory."""
    size = bytes_each * rows * width**2
    if size > _MOST_BYTES:
        raise RankingsError(
            f"preferences between {width:,} items in each of {rows:,} rows take "
            f"{size / 1e9:,.0f} GB; merge equal rows, or divide the table"
        )


# -- buckets and ranks --------------------------------------------------------------------------


def flat_buckets(buckets: Any) -> tuple[list[list], list[list[int]]]:
    """Return the items of each row in one list, and the buckets that they are in."""
    try:
        given_rows = list(buckets.to_numpy() if hasattr(buckets, "columns") else buckets)
    except TypeError:
        kind = type(buckets).__name__
        raise RankingsError(f"buckets must be a list of rows of buckets, got {kind}") from None
    rows, levels = [], []
    for row, given in enumerate(given_rows):
        if isinstance(given, str | bytes | set | frozenset | dict) or not _has_entries(given):
            raise RankingsError(f"{row_place(row)}: {given!r} is not a list of buckets, best first")
        items: list = []
        level: list[int] = []
        for place, bucket in enumerate(given):
            entries = _entries(bucket, f"{row_place(row)}: bucket {place + 1}")
            items += entries
            level += [place] * len(entries)
        rows.append(items)
        levels.append(level)
    return rows, levels


def _has_entries(value: Any) -> bool:
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0


def _entries(bucket: Any, where: str) -> list:
    """Return the items of a bucket, which may be an item alone."""
    if isinstance(bucket, str | bytes | dict) or not _has_entries(bucket):
        return [bucket]
    entries = list(bucket)
    if not entries:
        raise RankingsError(f"{where} is empty")
    if any(is_missing(entry) for entry in entries):
        raise RankingsError(f"{where} has a missing entry")
    # the order of a set is not always the same
    return sorted(entries, key=str) if isinstance(bucket, set | frozenset) else entries


def above_of_levels(table: np.ndarray, levels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return items, (rows, T), in the order of buckets, and the preferences between them.

    :param levels: for each row the numbers of the buckets of the items.
    """
    check_size(*table.shape)
    numbers = np.full(table.shape, np.nan)
    for row, given in enumerate(levels):
        numbers[row, : len(given)] = given[: table.shape[1]]
    numbers[table < 0] = np.nan  # nothing is above it, nor below
    order = np.lexsort((table, numbers), axis=1)  # NaN last
    table, numbers = (np.take_along_axis(x, order, axis=1) for x in (table, numbers))
    return table, numbers[:, :, None] < numbers[:, None, :]


def check_tied_ranks(table: np.ndarray, names: tuple[str, ...], ties: str | None) -> np.ndarray:
    """Return ranks, (rows, n), with NaN for 0; refuse those that are not of items with ties."""
    ways = TIED_RANKS if ties is None else (ties,)
    is_zero = table == 0
    ranks = np.where(is_zero, np.nan, table)
    is_given = ~np.isnan(table).all(1)
    looks_like_0 = (is_zero.sum(1) == is_given).all() and is_given.any()
    if looks_like_0 and not _wrong_ranks(table + 1, ways).any():
        refuse_rank_zero(table, names)
    wrong = _wrong_ranks(ranks, ways)
    for row in np.flatnonzero(wrong.any(1))[:1]:
        item = min(np.flatnonzero(wrong[row]), key=ranks[row].__getitem__)
        way = f"ties={ties!r}" if ties else "ranks with ties"
        raise RankingsError(
            f"{row_place(row)}: item {names[item]!r} has rank {ranks[row, item]:g}, which does not "
            f"go with {way}; ties='any' takes any numbers, the lowest first"
        )
    return ranks


def _wrong_ranks(ranks: np.ndarray, ways: Iterable[str]) -> np.ndarray:
    """Return which ranks, (rows, n), are not those of any way to number tied items."""
    order = np.argsort(ranks, axis=1)  # NaN last
    ordered = np.take_along_axis(ranks, order, axis=1)
    is_listed, places = ~np.isnan(ordered), np.arange(ranks.shape[1])
    is_new = np.ones(ranks.shape, bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.maximum.accumulate(np.where(is_new, places, 0), axis=1)
    is_last = np.ones(ranks.shape, bool)
    is_last[:, :-1] = is_new[:, 1:]
    last = np.where(is_last, places, len(places))[:, ::-1]
    last = np.minimum.accumulate(last, axis=1)[:, ::-1]
    right = {"min": first + 1, "dense": is_new.cumsum(1), "average": (first + last) / 2 + 1}
    wrong = [(right[way] != ordered) & is_listed for way in ways]
    is_right = np.any([~x.any(1) for x in wrong], axis=0)
    result = np.zeros(ranks.shape, bool)
    np.put_along_axis(result, order, wrong[0] & ~is_right[:, None], axis=1)
    return result


# -- pairs ---------------------------------------------------------------------------------------


def table_of_pairs(
    rows: np.ndarray,
    pairs: np.ndarray,
    is_decided: np.ndarray,
    num_items: int,
    dtype: Any = bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the items that each row compares, and its preferences.

    :param rows: (m,) the row of each pair.
    :param pairs: (m, 2) items, of which the first is preferred if the pair is decided.
    :param is_decided: (m,) booleans.
    :param dtype: of integers, to count the pairs that are equal.
    :return: (rows, T) items, padded with -1, and (rows, T, T) booleans or numbers.
    """
    num_rows = int(rows.max()) + 1
    keys = rows[:, None] * num_items + pairs
    mentioned = np.unique(keys)
    row, item = np.divmod(mentioned, num_items)
    place = np.arange(len(row)) - np.searchsorted(row, np.arange(num_rows))[row]
    width = int(place.max()) + 1
    check_size(num_rows, width, np.dtype(dtype).itemsize)
    table = np.full((num_rows, width), -1)
    table[row, place] = item
    one, two = place[np.searchsorted(mentioned, keys[is_decided])].T
    direct = np.zeros((num_rows, width, width), dtype)
    np.add.at(direct, (rows[is_decided], one, two), direct.dtype.type(1))
    return table, direct


def contradict_themselves(number: int, total: int) -> str:
    """Say how many of all judges contradict themselves."""
    own = by_number(number, "contradicts their own answers", "contradict their own answers")
    return f"{number:,} of {plural(total, 'judge')} {own}"


class Closed(NamedTuple):
    """Preferences with all that follow from them."""

    above: np.ndarray  # (rows, T, T) booleans
    has_cycle: np.ndarray  # (rows,) which rows contradict themselves
    said: str  # what is said of these, or nothing


def closed(
    direct: np.ndarray,
    table: np.ndarray,
    names: tuple[str, ...],
    where: Callable[[int], str],
    remedy: str = "",
) -> Closed:
    """Return preferences with all that follow from them; refuse a cycle if a remedy is given."""
    above = closure(direct)
    has_cycle = np.einsum("rii->ri", above).any(1)
    if not has_cycle.any():
        return Closed(above, has_cycle, "")
    k, number = int(np.argmax(has_cycle)), int(has_cycle.sum())
    cycle = _cycle_in_words(direct[k], above[k], table[k], names)
    said = f"{where(k)}: the preferences contradict one another: {cycle}"
    if len(has_cycle) > 1:
        said += f"; {contradict_themselves(number, len(has_cycle))}"
    if remedy:
        raise RankingsError(f"{said}; {remedy}")
    return Closed(above, has_cycle, said)


def _cycle_in_words(
    direct: np.ndarray, above: np.ndarray, listed: np.ndarray, names: tuple[str, ...]
) -> str:
    """Return a short cycle of the preferences of a row, (T, T), such as ``a > b > a``.

    :param above: what follows from the preferences.
    :param listed: (T,) the items.
    """
    cycle = find_cycle(direct, np.flatnonzero(np.diagonal(above)))
    shown = [names[listed[k]] for k in cycle]
    if len(shown) > _MOST_SHOWN:
        shown[_MOST_SHOWN - 1 : -1] = ["…"]
    return " > ".join(shown)


def closure(direct: np.ndarray) -> np.ndarray:
    """Return what follows from preferences, (rows, T, T), by Warshall's algorithm on bits."""
    rows, width, _ = direct.shape
    num_words = -(-width // 64)
    packed = np.zeros((rows, width, 8 * num_words), np.uint8)
    packed[:, :, : -(-width // 8)] = np.packbits(direct, axis=2)
    words = packed.view(np.uint64)  # the same memory
    for k in range(width):
        is_above = (packed[:, :, k // 8] >> (7 - k % 8)) & 1
        # all bits of the items that are above k, and none of the others
        mask = (-is_above.astype(np.int64)).view(np.uint64)
        words |= words[:, None, k] & mask[:, :, None]
    return np.unpackbits(packed, axis=2, count=width).view(bool)


def find_cycle(direct: np.ndarray, starts: np.ndarray) -> list[int]:
    """Return a short cycle of preferences, (T, T), with its first item again at the end.

    :param starts: items that are in cycles.
    """
    for one, two in np.argwhere(direct & direct.T)[:1].tolist():
        return [one, two, one]
    best: list[int] = []
    for start in starts[:_MOST_STARTS]:
        before, front, steps = np.full(len(direct), -1), np.array([start]), 0
        while before[start] < 0 and len(front) and not 0 < len(best) <= steps + 2:
            reached = direct[front]
            is_new = reached.any(0) & (before < 0)
            before[is_new] = front[reached[:, is_new].argmax(0)]
            front, steps = np.flatnonzero(is_new), steps + 1
        if before[start] >= 0:
            path = [int(start), int(before[start])]
            while path[-1] != start:
                path.append(int(before[path[-1]]))
            best = path[::-1]
    return best
