"""How often the items of rankings are listed, and where."""

from typing import Any, NamedTuple

import numpy as np

from numpyro_rankings.rankings import Rankings


class ItemCounts(NamedTuple):
    """How often the items of rankings are listed."""

    ranked: np.ndarray  # (n,) int, the number of judges who rank the item
    first: np.ndarray  # (n,) int, the number of those who rank it first
    mean_rank: np.ndarray  # (n,) its mean rank where it is ranked; NaN if it never is
    order: np.ndarray  # (n,) the items, those most often first before the others


def item_counts(rankings: Rankings) -> ItemCounts:
    """Count how often each item is listed, and first."""
    orderings, n = np.asarray(rankings.orderings), rankings.num_items
    counts = np.asarray(rankings.counts, float)
    ranked, total = np.zeros(n), np.zeros(n)
    for place, items in enumerate(orderings.T, 1):
        (rows,) = np.nonzero(items >= 0)
        here = np.bincount(items[rows], counts[rows], minlength=n)
        ranked, total = ranked + here, total + place * here
    first = np.bincount(orderings[:, 0], counts, minlength=n)
    mean = np.where(ranked > 0, total / np.maximum(ranked, 1), np.nan)
    order = np.lexsort((-ranked, -first))
    return ItemCounts(ranked.astype(int), first.astype(int), mean, order)


def judges_by_length(rankings: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the lengths of the lists, and how many judges give a list of each."""
    judges = np.bincount(np.asarray(rankings.lengths), np.asarray(rankings.counts, float))
    lengths = np.flatnonzero(judges)
    return lengths, judges[lengths].astype(int)


def ranks_of_items(rankings: Any, items: np.ndarray) -> np.ndarray:
    """Return the ranks of some items in each row, (items, rows).

    Those that are not listed have the same rank below all others.
    """
    if not isinstance(rankings, Rankings):
        ranks = rankings.to_ranks()[:, items].T
        return np.where(np.isnan(ranks), np.inf, ranks)
    orderings = np.asarray(rankings.orderings)
    rows, longest = orderings.shape
    place_of = np.full(rankings.num_items + 1, -1)  # -1, which pads the lists, is at the end
    place_of[items] = np.arange(len(items))
    ranks = np.full((len(items), rows), longest + 1, np.min_scalar_type(longest + 1))
    for rank, listed in enumerate(orderings.T, 1):
        of = place_of[listed]
        (row,) = np.nonzero(of >= 0)
        ranks[of[row], row] = rank
    return ranks
