"""Point estimates of a partition, by least expected loss, and credible balls around them.

Let n_c and n_k be the numbers of points in the clusters of two partitions, and n_ck those in their
intersections. Both losses are Σ f(n_c) + Σ f(n_k) - 2 Σ f(n_ck): f(n) = n ln n / N gives the
variation of information, and f(n) = n (n - 1)/2 over the number of pairs gives Binder's loss. The
search therefore keeps the counts n_ck of its partition against every draw, and needs no matrix of
pairs.
"""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from numpyro_rankings._system.cores import num_cores
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.posterior.partitions import (
    as_draws,
    as_partition,
    canonical_draws,
    canonical_labels,
    evenly,
    match_clusters,
    medoid_partition,
    partition_entropy,
)

__all__ = [
    "CredibleBall",
    "PointEstimate",
    "ReferencePartition",
    "credible_ball",
    "point_estimate",
    "reference_partition",
]

_MOST_COUNTS = 2**27  # cells of the table of counts against all draws
_SEARCHED = 2**24  # counts that one sweep over the points reads during the search
_MOST_TERMS = 2**27  # terms of the sums over all pairs of clusters that could be merged
_AT_ONCE = 2**29  # bytes of the counts of descents that go on at the same time
_MOST_SWEEPS = 100
_MORE_CLUSTERS = 8  # slots beyond the largest number of clusters of a draw
_MOST_STARTS = 64  # draws considered as starts
_MOST_ROUNDS = 10  # rounds of reseating clusters, and clusters tried in each round
# Limits of reference_partition. A cell is a count of one draw that a sweep over the points reads.
_CELLS = 2**23  # of a full search, which takes seconds
_SHORT_CELLS = 2**27  # of a short search, which takes about 10 s
_FULL_CLUSTERS = 64  # with more clusters a full search would try too many unions
_SHORT_CLUSTERS = 512
_FEW_DRAWS, _FEWEST_DRAWS = 100, 20  # least number of draws in a full and in a short search
_MOST_DRAWS = 128  # of a short search; 31 of 5,680 led to a worse partition, 62 to the same
_SHORT_SWEEPS = 12
_LEAST_ENTROPY = 0.75  # of the mean entropy of the draws; below it a partition has lost some groups
Loss = Literal["vi", "binder"]
# by a digest of labels, what the best merge of two clusters makes of them
_Merges = dict[bytes, np.ndarray | None]
Method = Literal["search", "short search", "medoid", "given"]


class PointEstimate(NamedTuple):
    """The partition to report.

    :param labels: canonical, int32, shape ``(N,)``.
    :param expected_loss: its mean loss against all draws: for ``"vi"`` in nats, for ``"binder"``
        the share of the pairs of points that one partition joins and the other separates.
    """

    labels: np.ndarray
    expected_loss: float


class ReferencePartition(NamedTuple):
    """The partition whose clusters an answer describes.

    :param labels: canonical if the partition was found here, unchanged if it was given; int32,
        shape ``(N,)``.
    :param expected_loss: its mean variation of information from all draws, in nats.
    :param method: how it was found: ``"search"`` among all partitions, ``"short search"``,
        ``"medoid"``, the draw nearest to the others, or ``"given"``.
    :param set_aside: a partition of less expected loss that was found but not used, because it
        joins clusters that the draws keep apart; None if there is none.
    """

    labels: np.ndarray
    expected_loss: float
    method: Method
    set_aside: PointEstimate | None = None

    @property
    def in_words(self) -> str:
        """A description for reports."""
        best, nearest = "the grouping that agrees best with all draws", "the draw that agrees best"
        return {
            "search": best,
            "short search": f"{best} among those that a short search found (with so many points "
            "and clusters it used only some of the draws)",
            "medoid": f"{nearest} with all the others",
            "given": "the grouping that was given",
        }[self.method]

    @property
    def caution(self) -> str:
        """What to keep in mind about the groups, a sentence, or nothing."""
        if self.set_aside is None:
            return ""
        return (
            "Many members could as well be in another group: look at how surely each belongs to "
            "its group."
        )


class CredibleBall(NamedTuple):
    """The draws nearest to a partition that together have a given posterior probability.

    :param radius: the largest loss among them.
    :param fewest: the farthest of the draws in the ball with the fewest clusters (the vertical
        upper bound of Wade & Ghahramani 2018), canonical, shape ``(N,)``.
    :param most: the farthest of those with the most clusters (the vertical lower bound).
    :param farthest: the farthest of all draws in the ball (the horizontal bound).
    """

    radius: float
    fewest: np.ndarray
    most: np.ndarray
    farthest: np.ndarray


def point_estimate(
    assignments: ArrayLike,
    loss: Loss = "vi",
    *,
    search: bool = True,
    max_clusters: int | None = None,
    num_starts: int = 10,
    seed: int = 0,
) -> PointEstimate:
    """Search for the partition of least expected loss among all partitions [1, 2].

    The starts are a single cluster, as many clusters as allowed, the best draws, and sequential
    allocations of the points in random order. From each start, points are moved one at a time to
    the existing or new cluster with the least expected loss. When no point moves, the two clusters
    whose union lowers the loss most are merged. From the best result of all starts, single clusters
    are taken apart and their points reseated, as long as that lowers the loss. If the product of
    points, clusters and draws is large, the search uses a subset of at least 100 draws and ends
    with a descent that uses all of them. The result need not be the best of all partitions.

    :param assignments: labels of the draws, whole numbers from 0, shape ``(D, N)``.
    :param loss: ``"vi"``, the variation of information [1], or ``"binder"``, whose best partition
        is also that of least squares from the co-clustering matrix [3].
    :param search: whether to consider partitions other than the draws. If not, all draws are
        compared with each other; with ``"binder"`` this is the least-squares clustering of [3].
    :param max_clusters: largest number of clusters; if None, eight more than any draw has.
    :param num_starts: number of starts, half of them draws; the first two are a single cluster and
        as many as allowed.
    :param seed: seed of the sequential allocations.
    :raises ValueError: if ``assignments`` are not labels or an argument is out of range.

    **References:**

    1. Wade, S., Ghahramani, Z. (2018), "Bayesian cluster analysis: point estimation and credible
       balls", Bayesian Analysis.
    2. Dahl, D. B., Johnson, D. J., Müller, P. (2022), "Search algorithms and loss functions for
       Bayesian clustering", Journal of Computational and Graphical Statistics.
    3. Dahl, D. B. (2006), "Model-based clustering for expression data via a Dirichlet process
       mixture model", in Bayesian Inference for Gene Expression and Proteomics.

    .. doctest::

       >>> draws = [[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 1, 1]]
       >>> point_estimate(draws).labels
       array([0, 0, 1, 1], dtype=int32)
    """
    draws = canonical_labels(as_draws(assignments))
    check_whole("num_starts", num_starts)
    if max_clusters is not None:
        check_whole("max_clusters", max_clusters)
    f = _terms(loss, draws.shape[1])
    if not search:
        few = draws if max_clusters is None else draws[draws.max(axis=1) < max_clusters]
        if len(few) == 0:
            raise ValueError(f"no draw has as few as {max_clusters} clusters")
        return _best(few, draws, f)
    num_slots = max_clusters or int(draws.max()) + 1 + _MORE_CLUSTERS
    num_slots = min(num_slots, draws.shape[1])
    # as many draws as fit in the memory of the search
    every = draws[evenly(len(draws), max(_MOST_COUNTS // (num_slots * (int(draws.max()) + 1)), 1))]
    kept = every[evenly(len(every), max(_SEARCHED // (draws.shape[1] * num_slots), _FEW_DRAWS))]
    rng = np.random.default_rng(seed)
    # the best of some draws, as starts
    some = kept[evenly(len(kept), _MOST_STARTS)]
    some = np.unique(some[some.max(axis=1) < num_slots], axis=0)
    order = np.argsort(_expected_losses(some, kept[evenly(len(kept), _MOST_STARTS)], f))
    size = draws.shape[1]
    starts: list[np.ndarray | None] = [np.zeros(size, np.int32)]
    starts.append(np.arange(size, dtype=np.int32) % num_slots)
    starts += list(some[order[: num_starts // 2]])
    starts += [None] * max(num_starts - len(starts), 0)
    orders = [rng.permutation(size) for _ in starts[:num_starts]]
    merges: _Merges = {}
    ends = list(_descend_each(starts[:num_starts], kept, f, num_slots, orders, merges))
    best = _best(np.stack([*some[order[:1]], *ends]), kept, f).labels
    for _ in range(_MOST_ROUNDS):
        better = _reseat_clusters(best, kept, f, num_slots, rng, merges)
        if better is None:
            break
        best = better
    if len(kept) < len(every):
        best = _descend(best, every, f, num_slots, rng.permutation(size), {})
    return _best(best[None], draws, f)


def _descend_each(
    starts: Sequence[np.ndarray | None],
    draws: np.ndarray,
    f: np.ndarray,
    num_slots: int,
    orders: Sequence[np.ndarray],
    merges: _Merges,
) -> Iterator[np.ndarray]:
    """Descend from each start, some at a time, and yield the ends in the order of the starts."""
    counts = 4 * len(draws) * (int(draws.max()) + 1) * num_slots  # bytes of one descent
    at_once = min(num_cores(), max(1, _AT_ONCE // counts))
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(
            lambda *one: _descend(one[0], draws, f, num_slots, one[1], merges), starts, orders
        )


def reference_partition(
    assignments: ArrayLike, reference: Any = None, *, seed: int = 0
) -> ReferencePartition:
    """Find the partition that profiles, plots and reports describe by default, within a minute.

    It is the :func:`point_estimate` for the variation of information, from as many evenly spaced
    draws as can be searched in seconds. For more points and clusters it is the result of a short
    search: from the medoid draw and from a single cluster, a dozen sweeps each, with 20 to 128
    draws. If even that would take long (more than 7 million points times clusters, or more than 500
    clusters), it is the draw of :func:`~numpyro_rankings.medoid_partition`. ``method`` says which.
    The amount of work does not depend on the clock, so the same draws give the same partition. No
    result has a larger expected loss over all draws than the medoid.

    If groups overlap so much that membership is uncertain, as in most mixtures of real ballots, the
    partition of least expected loss can be a single cluster, although no draw is. Such a partition
    shows which points are surely together but hides the groups. A partition with less than three
    quarters of the mean entropy of the draws is therefore ``set_aside``, and the medoid is used.

    A cluster that is found in no draw, in the sense of
    :func:`~numpyro_rankings.posterior.partitions.match_clusters`, is merged with another one,
    because there are no draws to describe it.

    :param assignments: labels of the draws, whole numbers from 0, shape ``(D, N)``.
    :param reference: a partition to use instead: labels ``0..K-1``, shape ``(N,)``, or the result
        of a function of this module.
    :param seed: seed of the search.
    :raises ValueError: if ``assignments`` are not labels or ``reference`` is of other points.

    .. doctest::

       >>> found = reference_partition([[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 1, 1]])
       >>> found.labels, found.method
       (array([0, 0, 1, 1], dtype=int32), 'search')
    """
    draws = as_draws(assignments)
    size = draws.shape[1]
    if isinstance(reference, ReferencePartition):
        as_partition(reference.labels, size)  # raises if it is of other points
        return reference
    draws, f = canonical_draws(draws), _terms("vi", size)
    if reference is not None:
        labels = as_partition(getattr(reference, "labels", reference), size).astype(np.int32)
        return ReferencePartition(labels, float(_losses(labels, draws, f).mean()), "given")
    medoid = medoid_partition(draws).labels
    num_slots = min(int(draws.max()) + 1 + _MORE_CLUSTERS, size)
    full, short = (cells // (size * num_slots) for cells in (_CELLS, _SHORT_CELLS))
    method: Method = "medoid"
    candidates = [medoid]
    if full >= min(_FEW_DRAWS, len(draws)) and num_slots <= _FULL_CLUSTERS + _MORE_CLUSTERS:
        candidates.append(point_estimate(draws[evenly(len(draws), full)], seed=seed).labels)
        method = "search"
    elif short >= min(_FEWEST_DRAWS, len(draws)) and num_slots <= _SHORT_CLUSTERS:
        kept = draws[evenly(len(draws), min(short, _MOST_DRAWS))].astype(np.int32)
        rng = np.random.default_rng(seed)
        starts = [medoid, np.zeros(size, np.int32)]
        for start in starts:
            order = rng.permutation(size)
            candidates.append(_descend(start, kept, f, num_slots, order, {}, _SHORT_SWEEPS))
        method = "short search"
    candidates[1:] = [_merge_unmatched(labels, draws, f) for labels in candidates[1:]]
    of_draws = _sums_of_draws(draws, f)
    expected = _expected_losses(np.stack(candidates), draws, f, of_draws)
    of_medoid, *others = (
        PointEstimate(canonical_labels(labels), float(loss))
        for labels, loss in zip(candidates, expected, strict=True)
    )
    best = min([of_medoid, *others], key=lambda one: one.expected_loss)
    entropy = float(partition_entropy(np.bincount(best.labels)))
    lost = entropy < _LEAST_ENTROPY * (np.log(size) - of_draws.mean())  # the mean of the draws
    if lost and not np.array_equal(best.labels, of_medoid.labels):
        return ReferencePartition(*of_medoid, "medoid", best)
    return ReferencePartition(*best, method)


def _merge_unmatched(labels: np.ndarray, draws: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Merge each cluster that no draw matches into the cluster where this costs least."""
    while True:
        is_matched = np.zeros(int(labels.max()) + 1, bool)
        for first in range(min(_FEWEST_DRAWS, len(draws))):  # until all are matched, usually soon
            matched = match_clusters(draws[first::_FEWEST_DRAWS], labels)
            is_matched[matched[matched >= 0]] = True
            if is_matched.all():
                return labels
        gains = _merge_gains(labels, draws, f)
        gains = np.where(is_matched, np.minimum(gains, gains.T), np.inf)
        into = np.where(is_matched, np.arange(len(gains)), gains.argmin(axis=1))
        labels = canonical_labels(into[labels])


def _reseat_clusters(
    labels: np.ndarray,
    draws: np.ndarray,
    f: np.ndarray,
    num_slots: int,
    rng: np.random.Generator,
    merges: _Merges,
) -> np.ndarray | None:
    """A better partition found by reseating the points of one cluster, or None."""
    of_draws = _sums_of_draws(draws, f)
    least = _losses(labels, draws, f, of_draws).mean() - 1e-6 * np.diff(f).max()
    clusters = rng.permutation(int(labels.max()) + 1)[:_MOST_ROUNDS]
    starts = [np.where(labels == cluster, -1, labels) for cluster in clusters]
    for start, cluster in zip(starts, clusters, strict=True):
        # renumber the other clusters, so that the first slots are the ones in use
        start[start > cluster] -= 1
    orders = [rng.permutation(len(labels)) for _ in starts]
    for end in _descend_each(starts, draws, f, num_slots, orders, merges):
        if _losses(end, draws, f, of_draws).mean() < least:
            return end
    return None


def _best(candidates: np.ndarray, draws: np.ndarray, f: np.ndarray) -> PointEstimate:
    expected = _expected_losses(candidates, draws, f)
    best = int(np.argmin(expected))
    return PointEstimate(canonical_labels(candidates[best]), float(expected[best]))


def credible_ball(
    assignments: ArrayLike, center: ArrayLike, loss: Loss = "vi", prob: float = 0.95
) -> CredibleBall:
    """The draws nearest to a partition that together have a given posterior probability [1].

    :param assignments: labels of the draws, shape ``(D, N)``.
    :param center: labels, whole numbers from 0, shape ``(N,)``, or a result of
        :func:`point_estimate`.
    :param prob: between 0 and 1.
    :raises ValueError: if the labels are invalid or of other points, or an argument is out of
        range.

    **References:**

    1. Wade, S., Ghahramani, Z. (2018), "Bayesian cluster analysis: point estimation and credible
       balls", Bayesian Analysis.
    """
    draws = canonical_draws(as_draws(assignments))
    labels = canonical_labels(as_partition(getattr(center, "labels", center), draws.shape[1]))
    if not 0 < prob <= 1:
        raise ValueError(f"prob must be above 0 and at most 1, got {prob!r}")
    losses = _losses(labels, draws, _terms(loss, draws.shape[1]))
    # rounding of prob times D must not add one more draw
    radius = float(np.sort(losses)[int(np.ceil(prob * len(draws) - 1e-9)) - 1])
    inside = np.flatnonzero(losses <= radius)
    number = draws.max(axis=1)[inside]  # one less than that of the clusters

    def farthest(some: np.ndarray) -> np.ndarray:
        return canonical_labels(draws[some[np.argmax(losses[some])]])

    return CredibleBall(
        radius,
        farthest(inside[number == number.min()]),
        farthest(inside[number == number.max()]),
        farthest(inside),
    )


def _terms(loss: str, size: int) -> np.ndarray:
    """f(0), …, f(N)."""
    n = np.arange(size + 1, dtype=float)
    if loss == "vi":
        return n * np.log(np.maximum(n, 1.0)) / size
    if loss == "binder":
        return n * (n - 1) / max(size * (size - 1), 1)
    raise ValueError(f"loss must be one of vi, binder, got {loss!r}")


def _losses(
    labels: np.ndarray, draws: np.ndarray, f: np.ndarray, of_draws: np.ndarray | None = None
) -> np.ndarray:
    """Loss of one partition against each draw, (D,), from their :func:`_sums_of_draws` if known."""
    of_draws = _sums_of_draws(draws, f) if of_draws is None else of_draws
    width = int(draws.max()) + 1
    first = labels.astype(np.int64) * width
    of_both = np.array([f[np.bincount(first + draw)].sum() for draw in draws])
    losses = f[np.bincount(labels)].sum() + of_draws - 2.0 * of_both
    return np.maximum(losses, 0.0)  # rounding may leave -1e-16


def _sums_of_draws(draws: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Σ f(n_k) of each draw, (D,)."""
    return np.array([f[np.bincount(draw)].sum() for draw in draws])


def _expected_losses(
    candidates: np.ndarray, draws: np.ndarray, f: np.ndarray, of_draws: np.ndarray | None = None
) -> np.ndarray:
    """Mean loss of each candidate, (number of candidates,); equal ones are computed once."""
    different, index = np.unique(candidates, axis=0, return_inverse=True)
    first, counts = _different_rows(draws)
    weights = counts / len(draws)
    if len(first) < len(draws):
        draws, of_draws = draws[first], None if of_draws is None else of_draws[first]
    of_draws = _sums_of_draws(draws, f) if of_draws is None else of_draws
    losses = [float(_losses(labels, draws, f, of_draws) @ weights) for labels in different]
    return np.array(losses)[index.ravel()]


def _different_rows(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each different row of labels is first, and how often it occurs."""
    if draws.itemsize > 1:
        draws = draws.astype(np.min_scalar_type(draws.max()))
    # rows may be so long that sorting them takes seconds
    keys = np.array([hashlib.blake2b(row).digest() for row in np.ascontiguousarray(draws)])
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    order = np.argsort(first)
    return first[order], counts[order]


def _descend(
    start: np.ndarray | None,
    draws: np.ndarray,
    f: np.ndarray,
    num_slots: int,
    order: np.ndarray,
    merges: _Merges,
    most_sweeps: int | None = None,
) -> np.ndarray:
    """Descend until neither moving a point nor merging two clusters lowers the expected loss.

    It starts from a sequential allocation if there is no **start**. Points move in the **order**.
    Several descents of the same draws share the **merges** of partitions where no point moves.
    """
    steps, columns = jnp.asarray(np.diff(f), float), jnp.asarray(draws.T)
    labels = np.full(draws.shape[1], -1, np.int32) if start is None else start
    turns = jnp.asarray(order, jnp.int32)
    left = np.inf if most_sweeps is None else most_sweeps
    while True:
        seats = jnp.asarray(labels), jnp.asarray(_count(labels, draws, num_slots))
        for sweep in itertools.count(1):
            *seats, moved = _move_points(*seats, columns, steps, turns)
            labels = canonical_labels(seats[0])
            key = hashlib.blake2b(labels.tobytes()).digest()
            # a sweep from where another descent has ended would move no point
            if not moved or sweep >= min(left, _MOST_SWEEPS) or merges.get(key, labels) is None:
                break
        left -= sweep
        if left <= 0:
            return labels
        merged = merges[key] if key in merges else _best_merge(labels, draws, f)
        if not moved:
            merges[key] = merged
        if merged is None:
            return labels
        labels = merged


def _count(labels: np.ndarray, draws: np.ndarray, num_slots: int) -> np.ndarray:
    """Number of points in each pair of a draw's cluster and a label, (D, K, C); -1 is no label."""
    width, seated = int(draws.max()) + 1, labels >= 0
    # a search reads the counts all the time, and half of the memory takes half of the time
    kind = np.int16 if len(labels) < 2**15 else np.int32
    if not seated.all():
        draws, labels = draws[:, seated], labels[seated]
    both = draws * np.int64(num_slots)
    both += labels
    counts = [np.bincount(row, minlength=width * num_slots) for row in both]
    return np.stack(counts).astype(kind).reshape(len(draws), width, num_slots)


@jax.jit
def _move_points(
    labels: Array, counts: Array, columns: Array, steps: Array, order: Array
) -> tuple[Array, Array, Array]:
    """Sweep once over the points, each to its best cluster; those without one are given one.

    :param counts: from :func:`_count`; **columns**, cluster of each point in each draw, (N, D).
    :param steps: f(n + 1) - f(n).
    :return: the labels, the counts, and whether a point has moved.
    """
    every, slots = jnp.arange(counts.shape[0]), jnp.arange(counts.shape[2])
    least = 1e-6 * steps.max()  # beyond rounding

    def seat(k: Array, labels: Array, counts: Array, sizes: Array) -> tuple[Array, Array]:
        """The best cluster of the point in turn k, and whether it stays where it is."""
        point = order[k]
        old, column = labels[point], columns[point]
        mine = slots == old  # all False if the point has no cluster
        left = sizes - mine
        # what the point adds to Σ f(n_c) - 2 Σ f(n_ck)
        cost = steps[left] - 2.0 * steps[counts[every, column] - mine].mean(axis=0)
        new = jnp.where(jnp.any(mine & (left == 0)), old, jnp.argmin(left > 0))
        cost = jnp.where((left > 0) | (slots == new), cost, jnp.inf)
        # if no slot is empty, argmin is 0, which is not a new cluster
        best = jnp.argmin(cost).astype(labels.dtype)
        return best, (old >= 0) & (cost[old] <= cost[best] + least)

    def to_next_move(carry: tuple) -> tuple:
        """Find the next point that does not stay, and move it; the counts are written only then."""
        k, labels, counts, sizes, moved = carry
        k, best, stays = jax.lax.while_loop(
            lambda turn: turn[2] & (turn[0] < len(order)),
            lambda turn: (turn[0] + 1, *seat(turn[0], labels, counts, sizes)),
            (k, jnp.zeros((), labels.dtype), jnp.array(True)),
        )
        point = order[k - 1]
        old, column = labels[point], columns[point]
        best = jnp.where(stays, old, best)  # the last one may leave its cluster and come back
        for slot, change in ((old, jnp.where(old >= 0, -1, 0)), (best, 1)):
            counts = counts.at[every, column, slot].add(change)
            sizes = sizes.at[slot].add(change)
        return k, labels.at[point].set(best), counts, sizes, moved | ~stays

    sizes = jnp.zeros(len(slots), jnp.int32).at[labels].add(labels >= 0)
    start = jnp.array(0), labels, counts, sizes, jnp.array(False)
    _, labels, counts, _, moved = jax.lax.while_loop(
        lambda carry: carry[0] < len(order), to_next_move, start
    )
    return labels, counts, moved


def _best_merge(labels: np.ndarray, draws: np.ndarray, f: np.ndarray) -> np.ndarray | None:
    """The partition with the two clusters merged whose union lowers the expected loss most."""
    if labels.max() == 0:
        return None
    gains = _merge_gains(labels, draws, f)
    one, other = np.unravel_index(np.argmin(gains), gains.shape)
    merged = canonical_labels(np.where(labels == other, one, labels))
    # over all draws, and by more than rounding errors, so that the descent ends
    of_draws = _sums_of_draws(draws, f)
    before, after = (_losses(x, draws, f, of_draws).mean() for x in (labels, merged))
    return merged if after - before < -1e-6 * np.diff(f).max() else None


def _merge_gains(labels: np.ndarray, draws: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Change of the expected loss by merging two clusters, above the diagonal; else infinite."""
    number = int(labels.max()) + 1
    width = int(draws.max()) + 1
    most = max(_MOST_TERMS // (number**2 * width), 1)
    some = draws[evenly(len(draws), most)]
    counts, sizes = _count(labels, some, number), np.bincount(labels)
    apart = f[counts].sum(axis=1).mean(axis=0)
    gains = np.full((number, number), np.inf)
    for c in range(number - 1):
        together = f[counts[:, :, c, None] + counts[:, :, c + 1 :]].sum(axis=1).mean(axis=0)
        gains[c, c + 1 :] = f[sizes[c] + sizes[c + 1 :]] - f[sizes[c]] - f[sizes[c + 1 :]]
        gains[c, c + 1 :] -= 2.0 * (together - apart[c] - apart[c + 1 :])
    return gains
