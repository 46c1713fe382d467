"""How often the items of rankings are listed, and where."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from numpyro_rankings.rankings import Comparisons, Orders, PartialOrders, Rankings
from numpyro_rankings.rankings.preferences import contradict_themselves
from numpyro_rankings.words import by_number, listed, plural

_SETS_NAMED, _NAMED = 4, 6  # at most, of sets of items, and of the items of one


class ItemCounts(NamedTuple):
    """How often the items of rankings are listed."""

    ranked: np.ndarray  # (n,) int, the number of judges who rank the item
    first: np.ndarray  # (n,) int, the number of those who rank it first
    mean_rank: np.ndarray  # (n,) its mean rank where it is ranked; NaN if it never is
    order: np.ndarray  # (n,) the items, those most often first before the others


def item_counts(rankings: Rankings | Orders) -> ItemCounts:
    """Count how often each item is listed, and first.

    Tied items are all first, and have the mean of their ranks. Of comparisons that may be mistakes
    an item is above those to which a judge preferred it more often than not, and no others.
    """
    n, counts = rankings.num_items, np.asarray(rankings.counts, float)
    table, ranks = np.asarray(rankings.table), _ranks_by_place(rankings)
    ranked, total, first = np.zeros(n), np.zeros(n), np.zeros(n)
    for items, (is_first, rank) in zip(table.T, ranks, strict=True):
        (rows,) = np.nonzero(items >= 0)
        here, weights = items[rows], counts[rows]
        ranked += np.bincount(here, weights, minlength=n)
        total += np.bincount(here, weights * np.broadcast_to(rank, len(items))[rows], minlength=n)
        first += np.bincount(here, weights * np.broadcast_to(is_first, len(items))[rows], n)
    mean = np.where(ranked > 0, total / np.maximum(ranked, 1), np.nan)
    order = np.lexsort((-ranked, -first))
    return ItemCounts(ranked.astype(int), first.astype(int), mean, order)


def _ranks_by_place(rankings: Any) -> Iterable[tuple[Any, Any]]:
    """Yield, for each place, whether the items there are first in their rows, and their ranks."""
    if not rankings.are_partial:
        for place in range(rankings.table.shape[1]):
            yield place == 0, place + 1
        return
    above, lengths = np.asarray(rankings.prefers), np.asarray(rankings.lengths)
    for place in range(above.shape[1]):
        better = above[:, :, place].sum(1)
        worse = above[:, place].sum(1)
        yield better == 0, (1 + better + lengths - worse) / 2


def shares_above(rankings: Rankings | Orders, items: np.ndarray) -> np.ndarray:
    """Return the share of the judges that put one item above another, among those who order them.

    An item that is listed is above one that is not, unless that was not offered. Of tied items
    neither is above the other.

    :param items: indices of the m items to compare.
    :return: (m, m), row above column; NaN where no judge orders the two.
    """
    counts = np.asarray(rankings.counts, float)
    is_above = _above_in_orders if rankings.are_partial else _above_in_lists
    above = np.zeros((len(items), len(items)))
    for (k, i), rows in is_above(rankings, items):
        above[k, i] = counts @ rows
    orders = above + above.T
    return np.where(orders > 0, above / np.maximum(orders, 1), np.nan)


def _above_in_lists(rankings: Any, items: np.ndarray) -> Iterable[tuple[tuple[int, int], Any]]:
    """Yield two of the items, and the rows with the first above the second, (rows,)."""
    ranks = ranks_of_items(rankings, items)
    offered = np.ones((len(items), 1), bool)
    if rankings.choice_sets is not None:
        offered = np.ascontiguousarray(np.asarray(rankings.choice_sets)[:, items].T)
    for k, i in itertools.permutations(range(len(items)), 2):
        yield (k, i), (ranks[k] < ranks[i]) & offered[i]


def _above_in_orders(orders: Any, items: np.ndarray) -> Iterable[tuple[tuple[int, int], Any]]:
    """Yield as :func:`_above_in_lists`, of partial orders or comparisons."""
    above, rest, table = (np.asarray(x) for x in (orders.prefers, orders.rest(), orders.listed))
    rows = np.arange(len(table))
    is_there = table[:, :, None] == items
    place, is_listed = is_there.argmax(1).T, is_there.any(1).T
    for k, i in itertools.permutations(range(len(items)), 2):
        are_ordered = above[rows, place[k], place[i]] & is_listed[i]
        yield (k, i), is_listed[k] & (are_ordered | rest[:, items[i]])


def judges_by_length(rankings: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the lengths of the lists, and how many judges give a list of each."""
    judges = np.bincount(np.asarray(rankings.lengths), np.asarray(rankings.counts, float))
    lengths = np.flatnonzero(judges)
    return lengths, judges[lengths].astype(int)


def ranks_of_items(rankings: Rankings, items: np.ndarray) -> np.ndarray:
    """Return the ranks of some items in each row, (items, rows).

    Those that are not listed have the same rank below all others.
    """
    orderings = np.asarray(rankings.orderings)
    rows, longest = orderings.shape
    place_of = np.full(rankings.num_items + 1, -1)  # -1, which pads the lists, is at the end
    place_of[items] = np.arange(len(items))
    ranks = np.full((len(items), rows), longest + 1, np.min_scalar_type(longest + 1))
    for rank, at_rank in enumerate(orderings.T, 1):
        of = place_of[at_rank]
        (row,) = np.nonzero(of >= 0)
        ranks[of[row], row] = rank
    return ranks


def ties_in_words(rankings: Rankings | Orders) -> str:
    """Say how many judges leave the order of items open; nothing of rankings."""
    if not isinstance(rankings, PartialOrders):
        return ""
    counts, has_ties = np.asarray(rankings.counts), np.asarray(rankings.has_ties)
    number = int(counts[has_ties].sum())
    if not number:
        return ""
    ties, leave = by_number(number, "ties", "tie"), by_number(number, "leaves", "leave")
    kinds = f"{ties} items"
    if not np.asarray(rankings.are_buckets)[has_ties].all():
        kinds = f"{ties} items or {leave} pairs open"
    return f"{plural(number, 'judge')} {kinds}, which counts as no opinion between them"


def mistakes_in_words(comparisons: Comparisons) -> str:
    """Say how many judges contradict themselves, and that it counts as mistakes."""
    counts, has_cycles = np.asarray(comparisons.counts), comparisons.has_cycles
    number = int(counts[has_cycles].sum())
    judges = contradict_themselves(number, int(counts.sum()))
    return f"{judges}; any comparison may be a mistake, all with the same probability"


def said_in_words(rankings: Rankings | Orders) -> str:
    """Say what a page about rankings should of judges who tie items or make mistakes, if any do."""
    if isinstance(rankings, Comparisons):
        return mistakes_in_words(rankings)
    return ties_in_words(rankings)


def sets_apart(rankings: Rankings | Orders) -> list[list[str]]:
    """Return sets of items of which no ranking compares any with an item of another, or nothing.

    A ranking compares the items that it lists with one another, and with the others of its choice
    set. Without choice sets all items are compared, because those that are not listed rank below;
    then it is by lists of at least two items alone that the sets are told apart. Where items were
    not offered, partial orders compare those whose order follows from what was said.
    """
    if not isinstance(rankings, Rankings) and rankings.offered() is not None:
        return _sets_of(_pairs_said(rankings), rankings.items)
    orderings, lengths = np.asarray(rankings.table), np.asarray(rankings.lengths)
    if rankings.choice_sets is not None:
        rows, items = np.nonzero(np.asarray(rankings.choice_sets))
    elif ((lengths == rankings.num_items) & ~_tie_all(rankings)).any():
        return []
    else:
        rows, places = np.nonzero((orderings >= 0) & (lengths[:, None] > 1))
        items = orderings[rows, places]
    return _sets_of((orderings[rows, 0], items), rankings.items)


def _tie_all(rankings: Rankings | Orders) -> np.ndarray:
    """Return which rows prefer no item to another, (rows,) booleans."""
    if isinstance(rankings, Rankings):
        return np.zeros(rankings.num_rows, bool)
    return np.asarray((~rankings.prefers).all((1, 2)))


def _pairs_said(orders: Orders) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of items that connect all that are compared."""
    listed, rest = np.asarray(orders.listed), np.asarray(orders.rest())
    said = orders.wins if isinstance(orders, Comparisons) else orders.above
    row, one, two = np.nonzero(np.asarray(said))
    # all listed items are above the first of the rest, and the first listed one is above all of it
    low, low_items = np.nonzero(rest)
    high, places = np.nonzero((listed >= 0) & rest.any(axis=1, keepdims=True))
    ones = listed[row, one], listed[low, 0], listed[high, places]
    others = listed[row, two], low_items, rest.argmax(1)[high]
    return np.concatenate(ones), np.concatenate(others)


def _sets_of(ends: tuple[np.ndarray, np.ndarray], names: Sequence[str]) -> list[list[str]]:
    """Return the sets of items that pairs connect, the largest first; nothing if it is one."""
    graph = csr_array((np.ones(len(ends[0]), bool), ends), shape=(len(names),) * 2)
    _, set_of = connected_components(graph, directed=False)
    met = np.unique(np.concatenate(ends))
    numbers, sizes = np.unique(set_of[met], return_counts=True)
    if len(numbers) < 2:
        return []
    largest_first = numbers[np.argsort(-sizes, kind="stable")]
    return [[names[k] for k in met[set_of[met] == x]] for x in largest_first]


def apart_in_words(rankings: Rankings | Orders) -> str:
    """Say which sets of items stand apart, as :func:`sets_apart`; nothing if none do."""
    sets = sets_apart(rankings)
    if not sets:
        return ""
    if rankings.offered() is not None:
        return never_compared(sets)
    return (
        f"no judge lists items of more than one of the sets {sets_in_words(sets)}: were all items "
        "offered to all?"
    )


def never_compared(sets: Sequence[Sequence[str]]) -> str:
    """Say that items of different sets are never compared."""
    return (
        f"no judge compares items of different sets, which are {sets_in_words(sets)}: how one set "
        "stands to another comes from the prior of the model alone"
    )


def sets_in_words(sets: Sequence[Sequence[str]]) -> str:
    """Name sets of items: ``{A, B and C} and {D and E}``."""
    texts = []
    for names in sets[:_SETS_NAMED]:
        some = names if len(names) <= _NAMED else names[: _NAMED - 1]
        more = [f"{len(names) - len(some):,} more"] if len(some) < len(names) else []
        texts.append(f"{{{listed([*some, *more])}}}")
    if len(sets) > len(texts):
        texts.append(plural(len(sets) - len(texts), "more set"))
    return listed(texts)
