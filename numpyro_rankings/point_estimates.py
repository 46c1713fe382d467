"""Which clustering to report: the partition of least expected loss, and how far around it to look.

Both losses here are, of the numbers of points in the clusters of one partition, of the other, and
in both, Σ f(n_c) + Σ f(n_k) - 2 Σ f(n_ck): f(n) = n ln n / N is the variation of information, and
f(n) = n (n - 1)/2 over the number of pairs is Binder's loss. So the search keeps the counts n_ck of
its partition against every draw, and no matrix of pairs.
"""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.partitions import (
    as_draws,
    as_partition,
    canonical_labels,
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
_SEARCHED = 2**24  # counts that a sweep over the points reads while it searches
_MOST_TERMS = 2**27  # terms of the sums over all pairs of clusters that could be merged
_MOST_SWEEPS = 100
_MORE_CLUSTERS = 8  # than any draw has
_MOST_STARTS = 64  # draws that are looked at for a start
_MOST_ROUNDS = 10  # of seating clusters anew, and clusters in each
# Of reference_partition. A cell is a draw's count that one sweep over the points reads.
_CELLS = 2**23  # of a full search: seconds
_SHORT_CELLS = 2**27  # of a short one: some 10 s
_FULL_CLUSTERS = 64  # and slots, above which a full search tries too many unions
_SHORT_CLUSTERS = 512
_FEW_DRAWS, _FEWEST_DRAWS = 100, 20  # that a full and a short search look at
_SHORT_SWEEPS = 12
_LEAST_ENTROPY = 0.75  # of the draws' mean, below which a partition has lost some of their groups
Loss = Literal["vi", "binder"]
Method = Literal["search", "short search", "medoid", "given"]


class PointEstimate(NamedTuple):
    """The partition to report.

    :param labels: canonical, int32, shape ``(N,)``.
    :param expected_loss: its mean loss against all draws: for ``"vi"`` in nats, for ``"binder"``
        the share of the pairs of points that one partition joins and the other parts.
    """

    labels: np.ndarray
    expected_loss: float


class ReferencePartition(NamedTuple):
    """The partition that the clusters of an answer are those of.

    :param labels: canonical if it was found here, as they came if given; int32, shape ``(N,)``.
    :param expected_loss: its mean variation of information from all draws, in nats.
    :param method: how it was found: ``"search"`` among all partitions, ``"short search"``,
        ``"medoid"``, the draw nearest to the others, or ``"given"``.
    :param set_aside: a partition of less expected loss that was found and not taken, for it joins
        clusters that the draws keep apart; None if there is none.
    """

    labels: np.ndarray
    expected_loss: float
    method: Method
    set_aside: PointEstimate | None = None

    @property
    def in_words(self) -> str:
        """What it is, as a report says it."""
        least = "the partition of least expected variation of information from the draws"
        nearest = "the draw of least expected variation of information from the others"
        if self.set_aside is not None:
            number = int(self.set_aside.labels.max()) + 1
            clusters = "one single cluster" if number == 1 else f"{number} clusters"
            loss = self.set_aside.expected_loss
            return (
                f"{nearest} (the groups overlap, or the chains disagree, so much that {clusters} "
                f"would come nearer, {loss:.3g} nats: who is in which is unsure, but the draws "
                "keep them apart)"
            )
        return {
            "search": f"{least}, sought among all partitions",
            "short search": f"{least} that a short search found (with so many, it looked at some "
            "of the draws)",
            "medoid": f"{nearest} (to search among all partitions would take too long here)",
            "given": "the partition that was given",
        }[self.method]


class CredibleBall(NamedTuple):
    """The draws nearest to a partition that together have a given probability.

    :param radius: the largest loss among them.
    :param fewest: of those in the ball with the fewest clusters, the farthest (the vertical upper
        bound of [1]), canonical, shape ``(N,)``.
    :param most: the same of those with the most clusters (the vertical lower bound).
    :param farthest: the farthest of all (the horizontal bound).
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
    """The partition of least expected loss, sought among all partitions [1, 2].

    A start is one cluster, as many as there can be, one of the best draws, or a sequential
    allocation of the points in random order. From it points are moved one at a time, each to the
    cluster, or the new one, where the expected loss is least; where none moves, the two clusters
    are merged whose union helps most. From the best end of all starts clusters are taken apart and
    their points seated anew, as long as that helps. Where points times clusters times draws are
    many, all this looks at some of the draws, 100 or more, and the end moves on from there with all
    of them. That the result is the best of all partitions cannot be promised.

    :param assignments: labels of the draws, whole numbers from 0, shape ``(D, N)``.
    :param loss: ``"vi"``, the variation of information [1], or ``"binder"``, whose best partition
        is also that of least squares from the co-clustering matrix [3].
    :param search: whether partitions that are no draw may be returned; if not, with ``"binder"``,
        this is the least-squares clustering of [3]. Each draw is then compared with each.
    :param max_clusters: of the partition sought; if it is None, eight more than any draw has.
    :param num_starts: half of them draws; the first two are one cluster and many.
    :param seed: of the sequential allocations.
    :raises ValueError: if ``assignments`` are no labels or an argument is out of range.

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
    every = _thin(draws, num_slots)
    kept = every[_evenly(len(every), max(_SEARCHED // (draws.shape[1] * num_slots), _FEW_DRAWS))]
    rng = np.random.default_rng(seed)
    # the draws among which the best of some of them are
    some = kept[_evenly(len(kept), _MOST_STARTS)]
    some = np.unique(some[some.max(axis=1) < num_slots], axis=0)
    order = np.argsort(_expected_losses(some, kept[_evenly(len(kept), _MOST_STARTS)], f))
    size = draws.shape[1]
    starts: list[np.ndarray | None] = [np.zeros(size, np.int32)]
    starts.append(np.arange(size, dtype=np.int32) % num_slots)
    starts += list(some[order[: num_starts // 2]])
    starts += [None] * max(num_starts - len(starts), 0)
    ends = [_descend(start, kept, f, num_slots, rng) for start in starts[:num_starts]]
    best = _best(np.stack([*some[order[:1]], *ends]), kept, f).labels
    for _ in range(_MOST_ROUNDS):
        better = _reseat_clusters(best, kept, f, num_slots, rng)
        if better is None:
            break
        best = better
    if len(kept) < len(every):
        best = _descend(best, every, f, num_slots, rng)
    return _best(best[None], draws, f)


def reference_partition(
    assignments: ArrayLike, reference: Any = None, *, seed: int = 0
) -> ReferencePartition:
    """The partition that profiles, plots and reports describe by default, within a minute.

    That of :func:`point_estimate` for the variation of information, of as many of the draws, evenly
    spaced, as take seconds. Of more points and clusters a short search: from the medoid draw and
    from one cluster, a dozen sweeps each, looking at 20 draws or more. Where even that would take
    long (more than 7 million points times clusters, or more than 500 clusters), the draw of
    :func:`~numpyro_rankings.medoid_partition`. ``method`` says which. The work does not
    depend on the clock, so the same draws give the same partition; none is worse, over all draws,
    than the medoid.

    Where groups overlap so much that nobody's is sure, as in mixtures of most real ballots, the
    partition of least expected loss can be a single cluster, although no draw is: it then says who
    is surely together, and nothing of the groups. A partition with less than three quarters of the
    draws' mean entropy is therefore ``set_aside``, and the medoid taken.

    A cluster that is found in no draw, in the sense of
    :func:`~numpyro_rankings.partitions.match_clusters`, is merged with another: nothing could be
    said of it.

    :param assignments: labels of the draws, whole numbers from 0, shape ``(D, N)``.
    :param reference: a partition to take instead: labels ``0..K-1``, shape ``(N,)``, or what a
        function of this module has returned.
    :param seed: of the search.
    :raises ValueError: if ``assignments`` are no labels or ``reference`` is of other points.

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
    draws, f = canonical_labels(draws), _terms("vi", size)
    if reference is not None:
        labels = as_partition(getattr(reference, "labels", reference), size).astype(np.int32)
        return ReferencePartition(labels, float(_losses(labels, draws, f).mean()), "given")
    medoid = medoid_partition(draws).labels
    num_slots = min(int(draws.max()) + 1 + _MORE_CLUSTERS, size)
    full, short = (cells // (size * num_slots) for cells in (_CELLS, _SHORT_CELLS))
    method: Method = "medoid"
    found = [medoid]
    if full >= min(_FEW_DRAWS, len(draws)) and num_slots <= _FULL_CLUSTERS + _MORE_CLUSTERS:
        found.append(point_estimate(draws[_evenly(len(draws), full)], seed=seed).labels)
        method = "search"
    elif short >= min(_FEWEST_DRAWS, len(draws)) and num_slots <= _SHORT_CLUSTERS:
        kept = draws[_evenly(len(draws), short)]
        rng = np.random.default_rng(seed)
        starts = [medoid, np.zeros(size, np.int32)]
        found += [_descend(x, kept, f, num_slots, rng, _SHORT_SWEEPS) for x in starts]
        method = "short search"
    found[1:] = [_of_found_clusters(labels, draws, f) for labels in found[1:]]
    best = _best(np.stack(found), draws, f)
    is_medoid = np.array_equal(best.labels, canonical_labels(medoid))
    lost = _entropy(best.labels) < _LEAST_ENTROPY * np.mean([_entropy(x) for x in draws])
    if lost and not is_medoid:
        one = _best(medoid[None], draws, f)
        return ReferencePartition(one.labels, one.expected_loss, "medoid", best)
    return ReferencePartition(best.labels, best.expected_loss, method)


def _entropy(labels: np.ndarray) -> float:
    return float(partition_entropy(np.bincount(labels)))


def _of_found_clusters(labels: np.ndarray, draws: np.ndarray, f: np.ndarray) -> np.ndarray:
    """With each cluster that is matched in no draw merged into the one where it costs least."""
    while True:
        is_found = np.isin(np.arange(int(labels.max()) + 1), match_clusters(draws, labels))
        if is_found.all():
            return labels
        gains = _merge_gains(labels, draws, f)
        gains = np.where(is_found, np.minimum(gains, gains.T), np.inf)
        into = np.where(is_found, np.arange(len(gains)), gains.argmin(axis=1))
        labels = canonical_labels(into[labels])


def _reseat_clusters(
    labels: np.ndarray, draws: np.ndarray, f: np.ndarray, num_slots: int, rng: np.random.Generator
) -> np.ndarray | None:
    """A better partition found by seating the points of one cluster anew, if there is one."""
    least = _losses(labels, draws, f).mean() - 1e-6 * np.diff(f).max()
    clusters = rng.permutation(int(labels.max()) + 1)[:_MOST_ROUNDS]
    for cluster in clusters:
        start = np.where(labels == cluster, -1, labels)
        # the others keep their order of use, so that the slots in use are the first
        start[start > cluster] -= 1
        end = _descend(start, draws, f, num_slots, rng)
        if _losses(end, draws, f).mean() < least:
            return end
    return None


def _best(candidates: np.ndarray, draws: np.ndarray, f: np.ndarray) -> PointEstimate:
    expected = _expected_losses(candidates, draws, f)
    best = int(np.argmin(expected))
    return PointEstimate(canonical_labels(candidates[best]), float(expected[best]))


def _evenly(number: int, most: int) -> np.ndarray:
    """Indices of so many, evenly spaced."""
    return np.linspace(0, number - 1, min(most, number)).astype(int)


def credible_ball(
    assignments: ArrayLike, center: ArrayLike, loss: Loss = "vi", prob: float = 0.95
) -> CredibleBall:
    """The draws nearest to a partition that have a given posterior probability together [1].

    :param assignments: labels of the draws, shape ``(D, N)``.
    :param center: labels, whole numbers from 0, shape ``(N,)``, or what :func:`point_estimate` has
        returned.
    :param prob: between 0 and 1.
    :raises ValueError: if the labels are none or of other points, or an argument is out of range.

    **References:**

    1. Wade, S., Ghahramani, Z. (2018), "Bayesian cluster analysis: point estimation and credible
       balls", Bayesian Analysis.
    """
    draws = canonical_labels(as_draws(assignments))
    labels = canonical_labels(as_partition(getattr(center, "labels", center), draws.shape[1]))
    if not 0 < prob <= 1:
        raise ValueError(f"prob must be above 0 and at most 1, got {prob!r}")
    losses = _losses(labels, draws, _terms(loss, draws.shape[1]))
    # rounding of prob times D must not ask for one draw more
    radius = float(np.sort(losses)[int(np.ceil(prob * len(draws) - 1e-9)) - 1])
    inside = np.flatnonzero(losses <= radius)
    number = np.array([len(np.unique(draws[draw])) for draw in inside])

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


def _losses(labels: np.ndarray, draws: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Loss of one partition against each draw, (D,)."""
    own = f[np.bincount(labels)].sum()
    width = int(draws.max()) + 1
    found = np.empty(len(draws))
    for d, draw in enumerate(draws):
        both = np.bincount(labels.astype(np.int64) * width + draw)
        found[d] = own + f[np.bincount(draw)].sum() - 2.0 * f[both].sum()
    return np.maximum(found, 0.0)  # rounding may leave -1e-16


def _expected_losses(candidates: np.ndarray, draws: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Mean loss of each candidate, equal ones counted once, (number of candidates,)."""
    different, index = np.unique(candidates, axis=0, return_inverse=True)
    of_each, weights = np.unique(draws, axis=0, return_counts=True)
    weights = weights / weights.sum()
    found = [float(_losses(labels, of_each, f) @ weights) for labels in different]
    return np.array(found)[index.ravel()]


def _thin(draws: np.ndarray, num_slots: int) -> np.ndarray:
    """As many of the draws, evenly spaced, as the search has memory for."""
    most = max(_MOST_COUNTS // (num_slots * (int(draws.max()) + 1)), 1)
    return draws[_evenly(len(draws), most)]


def _descend(
    start: np.ndarray | None,
    draws: np.ndarray,
    f: np.ndarray,
    num_slots: int,
    rng: np.random.Generator,
    most_sweeps: int | None = None,
) -> np.ndarray:
    """Labels where neither moving a point nor merging two clusters lowers the expected loss.

    Or where ``most_sweeps`` over the points have led, if they are given.
    """
    steps, columns = jnp.asarray(np.diff(f), float), jnp.asarray(draws.T)
    order = jnp.asarray(rng.permutation(draws.shape[1]), jnp.int32)
    labels = np.full(draws.shape[1], -1, np.int32) if start is None else start
    left = np.inf if most_sweeps is None else most_sweeps
    while True:
        counts = jnp.asarray(_count(labels, draws, num_slots))
        most = min(left, _MOST_SWEEPS)
        moved, sweeps = _move_points(jnp.asarray(labels), counts, columns, steps, order, most)
        labels = canonical_labels(moved)
        left -= int(sweeps)
        merged = _best_merge(labels, draws, f) if left > 0 else None
        if merged is None:
            return labels
        labels = merged


def _count(labels: np.ndarray, draws: np.ndarray, num_slots: int) -> np.ndarray:
    """Points of each cluster of each draw by cluster, -1 being none, (D, K, C)."""
    width, seated = int(draws.max()) + 1, labels >= 0
    both = draws[:, seated].astype(np.int64) * num_slots + labels[seated]
    counts = [np.bincount(row, minlength=width * num_slots) for row in both]
    return np.stack(counts).astype(np.int32).reshape(len(draws), width, num_slots)


@jax.jit
def _move_points(
    labels: Array, counts: Array, columns: Array, steps: Array, order: Array, most_sweeps: Any
) -> tuple[Array, Array]:
    """Sweep over the points until none of them moves; those without a cluster are given one.

    Returns the labels and the number of sweeps, at most ``most_sweeps``.

    :param counts: of :func:`_count`; **columns** - cluster of each point in each draw, (N, D).
    :param steps: f(n + 1) - f(n).
    """
    every, slots = jnp.arange(counts.shape[0]), jnp.arange(counts.shape[2])
    least = 1e-6 * steps.max()  # beyond rounding

    def move(k: Array, carry: tuple) -> tuple:
        labels, counts, sizes, moved = carry
        point = order[k]
        old, column = labels[point], columns[point]
        mine = slots == old  # nowhere if the point has no cluster
        left = sizes - mine
        # what the point adds to Σ f(n_c) - 2 Σ f(n_ck)
        cost = steps[left] - 2.0 * steps[counts[every, column] - mine].mean(axis=0)
        new = jnp.where(jnp.any(mine & (left == 0)), old, jnp.argmin(left > 0))
        cost = jnp.where((left > 0) | (slots == new), cost, jnp.inf)
        # with all slots in use and none empty argmin is 0, which is then no new one
        best = jnp.argmin(cost).astype(labels.dtype)
        stays = (old >= 0) & (cost[old] <= cost[best] + least)
        best, moves = jnp.where(stays, old, best), jnp.where(stays, 0, 1)
        leaves = jnp.where(old >= 0, moves, 0)
        counts = counts.at[every, column, old].add(-leaves).at[every, column, best].add(moves)
        sizes = sizes.at[old].add(-leaves).at[best].add(moves)
        return labels.at[point].set(best), counts, sizes, moved | ~stays

    def sweep(carry: tuple) -> tuple:
        labels, counts, sizes, _, number = carry
        start = labels, counts, sizes, jnp.array(False)
        return *jax.lax.fori_loop(0, len(order), move, start), number + 1

    sizes = jnp.zeros(len(slots), jnp.int32).at[labels].add(labels >= 0)
    carry = labels, counts, sizes, jnp.array(True), jnp.array(0)
    labels, *_, number = jax.lax.while_loop(lambda c: c[3] & (c[4] < most_sweeps), sweep, carry)
    return labels, number


def _best_merge(labels: np.ndarray, draws: np.ndarray, f: np.ndarray) -> np.ndarray | None:
    """The partition with the two clusters merged whose union lowers the expected loss most."""
    if labels.max() == 0:
        return None
    gains = _merge_gains(labels, draws, f)
    one, other = np.unravel_index(np.argmin(gains), gains.shape)
    merged = canonical_labels(np.where(labels == other, one, labels))
    # of all draws, and beyond rounding: so that it comes to an end
    change = _losses(merged, draws, f).mean() - _losses(labels, draws, f).mean()
    return merged if change < -1e-6 * np.diff(f).max() else None


def _merge_gains(labels: np.ndarray, draws: np.ndarray, f: np.ndarray) -> np.ndarray:
    """What merging two clusters adds to the expected loss, above the diagonal; else infinite."""
    number = int(labels.max()) + 1
    width = int(draws.max()) + 1
    most = max(_MOST_TERMS // (number**2 * width), 1)
    some = draws[_evenly(len(draws), most)]
    counts, sizes = _count(labels, some, number), np.bincount(labels)
    apart = f[counts].sum(axis=1).mean(axis=0)
    gains = np.full((number, number), np.inf)
    for c in range(number - 1):
        together = f[counts[:, :, c, None] + counts[:, :, c + 1 :]].sum(axis=1).mean(axis=0)
        gains[c, c + 1 :] = f[sizes[c] + sizes[c + 1 :]] - f[sizes[c]] - f[sizes[c + 1 :]]
        gains[c, c + 1 :] -= 2.0 * (together - apart[c] - apart[c + 1 :])
    return gains
