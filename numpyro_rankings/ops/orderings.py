"""Orderings: distances, scores, and consensus orderings."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from numpyro_rankings.ops.checks import refuse_masked
from numpyro_rankings.rankings import Orders, Rankings
from numpyro_rankings.words import COMPARED

CERTAIN_FROM = 0.95  # share of the draws
LEVEL_WITHIN = (0.25, 0.75)  # share of the draws in which an item is before one that is level
BEFORE_FROM = 0.6  # share of the members who order two items
_MOST_ITEMS = 1000  # the first ones of a consensus, that are compared with one another


def as_orderings(orderings: ArrayLike) -> np.ndarray:
    """Check draws of a full ordering, (D, n) or (chains, draws, n), and return them as (D, n)."""
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
    :raises ValueError: as :func:`~numpyro_rankings.posterior.rank_probabilities`.

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
    :raises ValueError: as :func:`~numpyro_rankings.posterior.rank_probabilities`.
    """
    distinct, times = np.unique(as_orderings(orderings), axis=0, return_counts=True)
    best = int(times.argmax())
    return distinct[best].astype(np.int32), float(times[best] / times.sum())


class Wants(NamedTuple):
    """What the members of a group want, as :func:`wants_of_members` finds it."""

    levels: list[np.ndarray]  # indices of the items, level by level, best first
    clear_pairs: list[tuple[int, int]]  # items of one level, the first before the second

    def named(
        self, names: Sequence[str]
    ) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, str], ...]]:
        """Return both with the names of the items."""
        levels = tuple(tuple(names[i] for i in level) for level in self.levels)
        return levels, tuple((names[a], names[b]) for a, b in self.clear_pairs)


def wants_of_members(above: np.ndarray, consensus: np.ndarray) -> Wants:
    """Find the order that members have in common: levels of items, and clear pairs within them.

    An item is *before* another if at least 60% of the members who order the two put it first; two
    further members, one for each order, are added, so that one alone says no more than 2 to 1. Each
    item of a level is before each item of all later levels, and no level can be divided in this
    way.

    :param above: how many members put the item of the row above that of the column, (m, m), for the
        first m items of the consensus. Further items are in the last level.
    """
    first = consensus[: len(above)]
    shares = (above + 1) / (above + above.T + 2)
    levels = levels_of_shares(shares)
    pairs = clear_pairs(shares, levels)
    named = [first[level] for level in levels]
    named[-1] = np.append(named[-1], consensus[len(above) :])
    return Wants(named, [(int(first[a]), int(first[b])) for a, b in pairs])


def levels_of_shares(shares: np.ndarray, least: float = BEFORE_FROM) -> list[np.ndarray]:
    """Divide items into levels, as finely as each item can be before all of later levels.

    :param shares: how often the item of the row is above that of the column, (m, m).
    :param least: share from which it is before it.
    :return: the items of each level, by index.

    .. doctest::

       >>> shares = np.array([[0.5, 0.55, 0.7], [0.45, 0.5, 0.8], [0.3, 0.2, 0.5]])
       >>> [level.tolist() for level in levels_of_shares(shares)]
       [[0, 1], [2]]
    """
    is_before = (shares >= least) & ~np.eye(len(shares), dtype=bool)
    # with steps from an item to one that it is not before, no step leads to a later level, and the
    # items of a level can be reached from one another
    number, level_of = connected_components(csr_array(~is_before), connection="strong")
    beaten = [is_before[level_of == k][0] & (level_of != k) for k in range(number)]
    order = np.argsort([-x.sum() for x in beaten], kind="stable")
    return [np.flatnonzero(level_of == k) for k in order]


def clear_pairs(
    shares: np.ndarray, levels: Sequence[np.ndarray], least: float = BEFORE_FROM
) -> list[tuple[int, int]]:
    """Return the pairs of items within a level of which one is before the other all the same."""
    # Of a level with more than 60 items only the first 60 are compared. The item above is first,
    # and so is the clearest pair of each level.
    found = []
    for level in levels:
        items = level[:COMPARED]
        above = shares[np.ix_(items, items)]
        pairs = np.argwhere((above >= least) & ~np.eye(len(items), dtype=bool))
        pairs = pairs[np.argsort(-above[tuple(pairs.T)], kind="stable")]
        found += [(int(items[a]), int(items[b])) for a, b in pairs]
    return found


def majorities(above: np.ndarray) -> float:
    """Return by how much the larger part of those who order two items exceeds the smaller one."""
    # It is a share of both parts, summed over all pairs: 0 if each pair is as often in one order as
    # in the other, and 1 if all who order a pair agree on it.
    return float(np.abs(above - above.T).sum() / max((above + above.T).sum(), 1e-12))


def times_above(
    rankings: Rankings | Orders, amounts: np.ndarray, consensus: np.ndarray
) -> np.ndarray:
    """Return how many of some rankings put an item above another, (m, m), for the first 1000."""
    # An item that is listed is above one that is not, unless that was not offered.
    items = consensus[:_MOST_ITEMS]
    if not isinstance(rankings, Rankings):
        return _times_said(rankings, amounts, items)
    (rows,) = np.nonzero(amounts > 0)
    number, amounts = len(items), amounts[rows]
    place_of = np.full(rankings.num_items + 1, -1)  # -1, which pads the lists, is at the end
    place_of[items] = np.arange(number)
    listed = place_of[np.asarray(rankings.orderings)[rows]]
    behind = np.zeros(number**2)
    for k in range(1, listed.shape[1]):
        row, earlier = np.nonzero((listed[:, [k]] >= 0) & (listed[:, :k] >= 0))
        cells = listed[row, k] * number + listed[row, earlier]
        behind += np.bincount(cells, amounts[row], minlength=number**2)
    row, place = np.nonzero(listed >= 0)
    entries = amounts[row], (listed[row, place], row)
    of_items = csr_array(entries, shape=(number, len(rows)))
    offered = np.ones((len(rows), 1))
    if rankings.choice_sets is not None:
        offered = np.asarray(rankings.choice_sets)[np.ix_(rows, items)].astype(float)
    above = of_items @ offered - behind.reshape(number, number)
    np.fill_diagonal(above, 0.0)
    return above


def _times_said(orders: Orders, amounts: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return how many judges said, or implied, that an item is above another, (m, m).

    Of a pair that a judge compared several times, what the judge said more often counts.
    """
    (rows,) = np.nonzero(amounts > 0)
    number, amounts = len(items), amounts[rows]
    place_of = np.full(orders.num_items + 1, number)  # the last one is of padding, -1
    place_of[items] = np.arange(number)
    listed = place_of[np.asarray(orders.listed)[rows]]
    row, one, two = np.nonzero(np.asarray(orders.prefers)[rows])
    cells = listed[row, one] * (number + 1) + listed[row, two]
    above = np.bincount(cells, amounts[row], (number + 1) ** 2).reshape(number + 1, -1)
    row, place = np.nonzero(listed < number)
    of_items = csr_array((amounts[row], (listed[row, place], row)), (number, len(rows)))
    return above[:number, :number] + of_items @ np.asarray(orders.rest())[np.ix_(rows, items)]


def level_items(orderings: np.ndarray, consensus: np.ndarray) -> list[np.ndarray]:
    """Find the neighbours in a consensus of which the draws do not say which one is before.

    Two items are level if one is before the other in 25% to 75% of the draws. Only the first 60
    items of the consensus are compared.

    :param orderings: draws of a full ordering, shape ``(D, n)``.
    :param consensus: an ordering, shape ``(n,)``.
    :return: sets of at least two items, each level with all others of its set. They are as large as
        can be, so that an item may be in several: A with B, and B with C, but not A with C.

    .. doctest::

       >>> draws = [[2, 0, 1], [2, 1, 0], [0, 2, 1], [2, 0, 1]]
       >>> [items.tolist() for items in level_items(draws, [2, 0, 1])]
       [[2, 0], [0, 1]]
    """
    items = np.asarray(consensus)[:COMPARED]
    places = np.argsort(orderings, axis=-1)[:, items]
    found, start = [], 0
    for k in range(1, len(items) + 1):
        is_apart = np.ones(k - start, bool)
        if k < len(items):
            before = (places[:, start:k] < places[:, [k]]).mean(0)
            is_apart = (before < LEVEL_WITHIN[0]) | (before > LEVEL_WITHIN[1])
        if is_apart.any():
            found += [items[start:k]] if k - start > 1 else []
            start += 1 + int(np.flatnonzero(is_apart)[-1])
    return found


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
