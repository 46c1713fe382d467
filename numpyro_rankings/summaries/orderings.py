"""Orderings: distances, scores, and consensus orderings."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from numpyro_rankings.ops.checks import refuse_masked
from numpyro_rankings.rankings import Rankings

CERTAIN_FROM = 0.95  # share of the draws
_COMPARED = 20  # items of a level, the first ones, whose pairs are compared


def as_orderings(orderings: ArrayLike) -> np.ndarray:
    """Check draws of a full ordering, and return them as (D, n).

    :param orderings: permutations of 0..n-1, shape ``(D, n)`` or ``(chains, draws, n)``.
    :raises ValueError: if they are anything else, or if there are none.
    """
    refuse_masked("orderings", orderings)
    found = np.asarray(orderings)
    if found.ndim not in (2, 3) or found.size == 0 or found.dtype.kind not in "iu":
        wrong = f"shape {found.shape} of {found.dtype}"
    else:
        found = found.reshape(-1, found.shape[-1])
        is_ordering = (np.sort(found, axis=1) == np.arange(found.shape[1])).all(1)
        if is_ordering.all():
            return found
        wrong = str(found[int(is_ordering.argmin())].tolist())
    raise ValueError(
        "orderings must be draws of a full ordering, (D, n), each a permutation of 0..n-1 (of a "
        f"cluster that all draws have); got {wrong}"
    )


def kendall_distance(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Kendall distance: number of pairs of items that two orderings order differently.

    :param a: full orderings, shape ``(…, n)``.
    :param b: full orderings, shape ``(…, n)``; leading axes broadcast.
    :return: int64, shape ``(…)``.
    :raises ValueError: if they are not of the same items, each once.

    .. doctest::

       >>> int(kendall_distance([0, 1, 2], [2, 1, 0]))
       3
    """
    for given in (a, b):
        refuse_masked("orderings", given)
    a, b = np.asarray(a), np.asarray(b)
    n = a.shape[-1] if a.ndim else 0
    if any(x.shape[-1:] != (n,) or (np.sort(x) != np.arange(n)).any() for x in (a, b)):
        raise ValueError(
            f"full orderings of the same items are needed, got shape {a.shape} and {b.shape}"
        )
    a, places = np.broadcast_arrays(a, np.argsort(b, axis=-1))
    places = np.take_along_axis(places, a, axis=-1)
    # one item at a time, to avoid an n × n array for each draw
    inverted = [(places[..., i + 1 :] < places[..., i, None]).sum(-1) for i in range(a.shape[-1])]
    return np.sum(inverted, axis=0)


def borda_ordering(rankings: Rankings) -> np.ndarray:
    """Items by mean rank, where an unlisted item has the mean of the remaining places.

    :return: an ordering, int32, shape ``(n,)``; ties go to the item of lower index.
    """
    orderings, counts = np.asarray(rankings.orderings), np.asarray(rankings.counts, np.float64)
    n, listed = rankings.num_items, orderings >= 0
    lengths = listed.sum(1)
    unlisted_place = (lengths + n - 1) / 2
    places = np.arange(orderings.shape[1]) - unlisted_place[:, None]
    total = np.zeros(n)
    np.add.at(total, orderings[listed], (places * counts[:, None])[listed])
    return np.argsort(total, kind="stable").astype(np.int32)


def rank_probabilities(orderings: ArrayLike) -> np.ndarray:
    """Probability of each place for each item.

    :param orderings: draws of a full ordering, shape ``(D, n)`` or ``(chains, draws, n)``.
    :return: row ``i`` is item ``i``, column ``r`` is rank ``r + 1``; shape ``(n, n)``.
    :raises ValueError: if an ordering is not a permutation, as in a slot that is empty in a draw.
    """
    orderings = as_orderings(orderings)
    num_draws, n = orderings.shape
    cells = orderings.astype(np.int64) * n + np.arange(n)
    return np.bincount(cells.ravel(), minlength=n * n).reshape(n, n) / num_draws


def cp_consensus(orderings: ArrayLike) -> np.ndarray:
    """Cumulative-probability consensus, as in BayesMallows [1].

    The first item is the one that is most often first; the second is, of the others, the one most
    often among the first two; and so on. Ties go to the better mean rank, then to the lower index.

    :param orderings: draws of a full ordering, shape ``(D, n)`` or ``(chains, draws, n)``.
    :return: an ordering, int32, shape ``(n,)``.
    :raises ValueError: as :func:`~numpyro_rankings.summaries.rank_probabilities`.

    **References:**

    1. Vitelli, V. et al. (2018), *Probabilistic preference learning with the Mallows rank
       model*, JMLR.

    .. doctest::

       >>> cp_consensus([[0, 1, 2], [0, 2, 1], [1, 2, 0]]).tolist()
       [0, 1, 2]
    """
    probabilities = rank_probabilities(orderings)
    within = np.cumsum(probabilities, axis=1)
    mean_rank = probabilities @ np.arange(len(probabilities))
    left = list(range(len(probabilities)))
    consensus = []
    for place in range(len(probabilities)):
        item = max(left, key=lambda i: (round(within[i, place], 12), -mean_rank[i], -i))
        left.remove(item)
        consensus.append(item)
    return np.array(consensus, np.int32)


def map_consensus(orderings: ArrayLike) -> tuple[np.ndarray, float]:
    """The ordering drawn most often, and its share of the draws.

    :param orderings: draws of a full ordering, shape ``(D, n)`` or ``(chains, draws, n)``.
    :return: an ordering, int32, shape ``(n,)``, and its share of the draws.
    :raises ValueError: as :func:`~numpyro_rankings.summaries.rank_probabilities`.
    """
    distinct, times = np.unique(as_orderings(orderings), axis=0, return_counts=True)
    best = int(times.argmax())
    return distinct[best].astype(np.int32), float(times[best] / times.sum())


def clear_pairs(
    shares: Callable[[np.ndarray], np.ndarray], levels: Sequence[np.ndarray], least: float
) -> list[tuple[int, int]]:
    """Return the pairs of items within a level whose order is clear all the same.

    Of a level with more than 20 items only the first 20 are compared.

    :param shares: for some items (m,), how often that of the row is above that of the column,
        (m, m).
    :param levels: the items of each level, such as those of :func:`certain_levels`.
    :param least: share from which the order of two items is clear.
    :return: the item above and the one below, the clearest pair of each level first.
    """
    found = []
    for level in levels:
        if len(level) < 3:  # a clear pair would be two levels
            continue
        items = level[:_COMPARED]
        above = shares(items)
        pairs = np.argwhere((above >= least) & ~np.eye(len(items), dtype=bool))
        pairs = pairs[np.argsort(-above[tuple(pairs.T)], kind="stable")]
        found += [(int(items[a]), int(items[b])) for a, b in pairs]
    return found


def shares_above(ranks: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return how often draws put an item above another, as :func:`clear_pairs` takes it.

    :param ranks: of each item in each draw, (D, n).
    """

    def of(items: np.ndarray) -> np.ndarray:
        place = ranks[:, items]
        return np.stack([(place[:, [k]] < place).mean(0) for k in range(len(items))])

    return of


def certain_levels(orderings: np.ndarray, consensus: np.ndarray) -> list[np.ndarray]:
    """Cut a consensus where the draws are certain of the order.

    There is a cut after its first k items if these are the first k, in any order, in at least 95%
    of the draws.

    :param orderings: draws of a full ordering, shape ``(D, n)``.
    :param consensus: an ordering, shape ``(n,)``.
    :return: the items of each level, in the order of the consensus.

    .. doctest::

       >>> [level.tolist() for level in certain_levels([[2, 0, 1], [2, 1, 0]], [2, 0, 1])]
       [[2], [0, 1]]
    """
    orderings, consensus = np.asarray(orderings), np.asarray(consensus)
    size = len(consensus)
    place = np.empty(size, np.int32)
    place[consensus] = np.arange(size)
    # the largest place in the consensus of the first k items: k - 1 if they are its first k
    reached = np.maximum.accumulate(place[orderings], axis=-1)[..., :-1]
    is_certain = (reached == np.arange(size - 1)).mean(0) >= CERTAIN_FROM
    return np.split(consensus, np.flatnonzero(is_certain) + 1)
