"""The permutation-augmented sampler (Liang, Jordan & Taskar 2007).

Given an ordering π of the points, all partitions into segments of it are summed over by dynamic
programming. With log weights A(K) of the number of segments and B of each segment,

    p(C, π, x) ∝ A(|C|) Π_c B(c)                                                       (eq. 4)

where A holds the prior of the number of clusters and the |C|! orders of the clusters, and B the
prior of the size, the marginal p(x_c) and the probability of the order within the cluster. Scores
of points are taken relative to their predictive probability in the clusters of now, which is the
same for all partitions, so that float32 holds the sums.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random
from jax.scipy.special import digamma, gammaln

from numpyro_rankings.components.family import Family, take
from numpyro_rankings.infer.partition import (
    Move,
    PartitionKernel,
    PartitionState,
    Points,
    RestaurantPrior,
    repeat,
)
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.special import log_gamma_ratio
from numpyro_rankings.ops.sums import count_by_label, sum_by_label

ORDERINGS = ("uniform", "markov", "projection")
_MOST_EXACT = 64  # points, up to which the exact form is taken if nothing is said
_LEAST = -1e30  # log weight, where all are -inf


class PermutationGibbs(PartitionKernel):
    r"""
    Permutation-augmented sampler: a new partition of all points at once.

    Each sweep draws an ordering π of the points given the partition, and a partition into segments
    of it given π [1]. There are three forms of the latter:

    - exact, :math:`O(N^3)`: a draw from :math:`p(C \mid π, x)`, eq. (4);
    - :math:`O(N^2)`: a draw in which :math:`|C|!` is replaced by :math:`β^{|C|}`, eq. (5) and (6),
      accepted or not by Metropolis-Hastings. β is adapted to the number of clusters in warm-up, and
      fixed afterwards, by the mean number over its last sweeps;
    - with ``beam=b``, :math:`O(N b)`: at each point only b beginnings of the last segment are kept
      (Section 3.3), the best but for Gumbel noise. They do not depend on the partition of now, so
      that the same Metropolis-Hastings step makes it exact: it is not accepted where the beam could
      not have produced the partition of now.

    Orderings: ``"uniform"`` over all that have the clusters as segments; ``"markov"``, in which
    each point is followed by one of its cluster with probability proportional to its predictive
    density given the point before (Section 4.1), :math:`O(N^2)` in time and memory;
    ``"projection"``, along a random line (Section 4.2). The last has no known probability: during
    warm-up the partition is drawn from :math:`p(C, x)` restricted to segments and always taken, a
    stochastic search for a good start, and after it the ordering is uniform.

    Samples, settings, blocks and overflow are as of :class:`CollapsedGibbs`.

    :param family: component family; for ``"projection"`` one with vectors.
    :param alpha: concentration, a number or a distribution.
    :param ordering: how π is drawn.
    :param beam: b, how many beginnings are kept; None for all.
    :param exact: whether to take the exact form; by default up to 64 points, without a beam.

    **References:**

    1. Liang, P., Jordan, M. I., Taskar, B. (2007), "A permutation-augmented sampler for DP mixture
       models", ICML.
    """

    def __init__(
        self,
        family: Family,
        alpha: float | dist.Distribution = 1.0,
        ordering: str = "uniform",
        beam: int | None = None,
        exact: bool | None = None,
        **settings: Any,
    ) -> None:
        if ordering not in ORDERINGS:
            raise ValueError(f"ordering is one of {ORDERINGS}, got {ordering!r}")
        if beam is not None:
            check_whole("beam", beam, 1)
        if exact not in (None, True, False):
            raise ValueError(f"exact is True, False or None, got {exact!r}")
        if exact and beam is not None:
            raise ValueError("the exact form has no beam")
        if ordering == "projection" and type(family).project is Family.project:
            raise ValueError(f"{type(family).__name__} has no vectors that could be projected")
        self._ordering, self._beam, self._exact = ordering, beam, exact
        super().__init__(family, alpha, **settings)

    has_decisions = True

    def _check_warmup(self, num_warmup: int) -> None:
        if self._ordering == "projection" and num_warmup == 0:
            raise ValueError(
                "ordering='projection' is for warm-up only, after which the ordering is uniform: "
                "num_warmup must not be 0"
            )

    def _is_exact(self, size: int) -> bool:
        if self._exact is None:
            return self._beam is None and size <= _MOST_EXACT
        return self._exact

    def _move(
        self,
        key: Array,
        labels: Array,
        prior: RestaurantPrior,
        points: Points,
        state: PartitionState,
    ) -> Move:
        key_order, key_segments, key_accept = random.split(key, 3)
        family, slots, size = self._family, self._max_clusters, points.size
        sizes = count_by_label(labels, slots)
        number = jnp.sum(sizes > 0)
        warm = state.warmup_left > 0
        searches = warm & (self._ordering == "projection")
        pairs = log_pairs(points, family) if self._ordering == "markov" else None
        if pairs is None:
            order = order_uniformly(key_order, labels, slots)
        else:
            order = order_by_chains(key_order, labels, pairs, slots)
        if self._ordering == "projection":
            along = order_along_a_line(key_order, labels, sizes, points, family)
            order = jnp.where(searches, along, order)
        sequence = as_sequence(order, labels, sizes, prior, points, pairs, searches, family, slots)
        log_counts = log_number(prior, size, searches)
        if self._is_exact(size):
            starts, overflow = draw_exactly(key_segments, sequence, log_counts, slots, family)
            return Move(labels_of(order, starts), jnp.ones(()), overflow)
        # the slope of log A, eq. (5): in warm-up where the number of clusters is now
        mean = jnp.where(state.warmup_done > 0, state.mean_clusters, _prior_guess(prior, size))
        slope = log_slope(prior, jnp.where(warm, number, mean), searches)
        width = size if self._beam is None else min(self._beam + 1, size)
        starts, possible = draw_by_slope(key_segments, sequence, slope, width, family)
        found = starts.sum()
        log_accept = log_counts[found] - log_counts[number] - slope * (found - number)
        log_accept = jnp.where(possible, log_accept, -jnp.inf)
        log_accept = jnp.where(searches, 0.0, log_accept)
        wanted = jnp.log(random.uniform(key_accept)) < log_accept
        accept_prob = jnp.where(found > slots, 0.0, jnp.exp(jnp.minimum(log_accept, 0.0)))
        labels = jnp.where(wanted & (found <= slots), labels_of(order, starts), labels)
        return Move(labels, accept_prob, wanted & (found > slots))


# -- orderings -----------------------------------------------------------------------------------


def order_uniformly(key: Array, labels: Array, num_slots: int) -> Array:
    """A random order of the clusters and of the points in each, eq. (3)."""
    key_clusters, key_points = random.split(key)
    of_clusters = random.permutation(key_clusters, num_slots)[labels]
    return jnp.lexsort((random.uniform(key_points, labels.shape), of_clusters))


def log_pairs(points: Points, family: Family) -> Array:
    """Log predictive probability of point j given i alone, (N, N)."""

    def given(point: Any) -> Array:
        return family.log_predictive(family.add(points.empty, point), points.statistics)

    return jax.lax.map(given, points.statistics)


def order_by_chains(key: Array, labels: Array, pairs: Array, num_slots: int) -> Array:
    """Markov Gibbs scan, Section 4.1: each point is drawn given the one before in its cluster."""
    key_clusters, key_points = random.split(key)
    of_clusters = random.permutation(key_clusters, num_slots)[labels]

    def follow(carry: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], Array]:
        last, left = carry
        same = left & (of_clusters == of_clusters[last])
        # the next cluster in the order, once this one is done; its first point is uniform
        following = jnp.min(jnp.where(left, of_clusters, num_slots))
        log_weights = jnp.where(same.any(), pairs[last], 0.0)
        allowed = jnp.where(same.any(), same, left & (of_clusters == following))
        point = random.categorical(key, jnp.where(allowed, log_weights, -jnp.inf))
        return (point, left.at[point].set(False)), point

    size = labels.shape[0]
    first = jnp.argmin(of_clusters)
    key_first, key_points = random.split(key_points)
    of_first = jnp.where(of_clusters == of_clusters[first], 0.0, -jnp.inf)
    point = random.categorical(key_first, of_first)
    start = point, jnp.ones(size, bool).at[point].set(False)
    _, rest = jax.lax.scan(follow, start, random.split(key_points, size - 1))
    return jnp.concatenate([point[None], rest])


def order_along_a_line(
    key: Array, labels: Array, sizes: Array, points: Points, family: Family
) -> Array:
    """Clusters by their mean along a random line, and the points of each along it, Section 4.2."""
    places = family.project(key, points.statistics)
    means = sum_by_label(places, labels, sizes.shape[0]) / jnp.maximum(sizes, 1)
    return jnp.lexsort((places, labels, means[labels]))


# -- weights -------------------------------------------------------------------------------------


class Sequence(NamedTuple):
    """The points in the order π, with the parts of log B of a segment.

    - **statistics**, **log_alone** - of the points, the latter relative to **reference**: their
      log probability in the clusters of now, (N,).
    - **log_sizes** - by the number of points, (N + 1,).
    - **log_chains** - of the order within each segment from s to e, (e, s), or None.
    - **old_start** - where the segment of now that ends here starts, or -1 if none does.
    - **empty** - statistics of a cluster without points.
    """

    statistics: Any
    log_alone: Array
    reference: Array
    log_sizes: Array
    log_chains: Array | None
    old_start: Array
    empty: Any


def as_sequence(
    order: Array,
    labels: Array,
    sizes: Array,
    prior: RestaurantPrior,
    points: Points,
    pairs: Array | None,
    searches: Array,
    family: Family,
    num_slots: int,
) -> Sequence:
    """What the dynamic programs read."""
    clusters = family.of_clusters(points.statistics, labels, num_slots)
    reference = family.log_predictive(take(clusters, labels), points.statistics)
    reference = jnp.where(jnp.isfinite(reference), reference, 0.0)[order]
    index = jnp.arange(points.size)
    ordered = labels[order]
    differs = ordered[1:] != ordered[:-1]
    starts = jnp.concatenate([jnp.ones(1, bool), differs])
    ends = jnp.concatenate([differs, jnp.ones(1, bool)])
    old_start = jnp.where(ends, jax.lax.cummax(jnp.where(starts, index, 0)), -1)
    number = jnp.maximum(jnp.arange(points.size + 1), 1).astype(float)
    log_prior = log_gamma_ratio(1.0 - prior.discount, number - 1.0)  # Γ(n - d)/Γ(1 - d)
    log_chains = None
    if pairs is None:
        # with 1/n! of the order, eq. (3)
        log_sizes = log_gamma_ratio(number + 1.0, -1.0 - prior.discount)
        log_sizes = log_sizes - gammaln(1.0 - prior.discount)
        log_sizes = jnp.where(searches, log_prior, log_sizes)
    else:
        log_sizes = log_prior - jnp.log(number)  # the first point of a segment is uniform
        log_chains = log_chain_table(pairs[order][:, order])
    return Sequence(
        take(points.statistics, order),
        points.log_alone[order] - reference,
        reference,
        log_sizes,
        log_chains,
        old_start,
        points.empty,
    )


def log_chain_table(pairs: Array) -> Array:
    """Log probability of the order of the points from s to e after the first, as (e, s).

    Step i is drawn among those from i to e, so its normaliser is a cumulative sum of row i - 1.
    """
    index = jnp.arange(len(pairs))
    after = jnp.where(index[None, :] > index[:, None], pairs, -jnp.inf)
    log_totals = jax.lax.cumlogsumexp(after, axis=1)[:-1]  # [i - 1, e]: over i, …, e
    step = jnp.diagonal(pairs, 1)[:, None]
    # where nobody that is left can be next, the total is 0 too
    steps = jnp.where(step > -jnp.inf, step - log_totals, -jnp.inf)
    steps = jnp.where(index[None, :] > index[:-1, None], steps, 0.0)
    # the sum over i from s + 1 to e
    sums = jnp.cumsum(steps[::-1], axis=0)[::-1]
    return jnp.concatenate([sums, jnp.zeros((1, len(pairs)))]).T


def log_number(prior: RestaurantPrior, size: int, searches: Array) -> Array:
    """log A(K), K = 0, …, N, but for a constant."""
    opened = prior.log_open(jnp.arange(1, size))
    log_prior = jnp.concatenate([jnp.zeros(2), jnp.cumsum(opened)])
    return jnp.where(searches, log_prior, log_prior - gammaln(jnp.arange(size + 1) + 1.0))


def log_slope(prior: RestaurantPrior, number: Array, searches: Array) -> Array:
    """Change of log A with K: log(α/β) with log β = Ψ(K + 1)."""
    number = number.astype(float)
    return prior.log_open(number) - jnp.where(searches, 0.0, digamma(number + 1.0))


def _prior_guess(prior: RestaurantPrior, size: int) -> Array:
    """Number of clusters to expect, if there was no warm-up to tell."""
    return 1.0 + jnp.abs(prior.alpha) * jnp.log1p(size / jnp.abs(prior.alpha))


# -- dynamic programs ----------------------------------------------------------------------------


class _Segments(NamedTuple):
    """Segments that end at a point: **start** (W,), -1 if there is none, their **statistics**, the
    **log_marginal** relative to the reference, and **log_before**, log g up to the start."""

    start: Array
    statistics: Any
    log_marginal: Array
    log_before: Array


def _no_segments(sequence: Sequence, width: int, log_before: Array) -> _Segments:
    return _Segments(
        jnp.full(width, -1), repeat(sequence.empty, width), jnp.zeros(width), log_before
    )


def _extend(
    segments: _Segments,
    slot: Array,
    log_before: Array,
    e: Array,
    sequence: Sequence,
    family: Family,
) -> tuple[_Segments, Array]:
    """All segments with point e, one more that starts at it, and their log B."""
    point = take(sequence.statistics, e)
    log_predictive = family.log_predictive(segments.statistics, point) - sequence.reference[e]
    width = segments.start.shape[0]
    longer = family.add(segments.statistics, repeat(point, width))
    first = family.add(sequence.empty, point)
    segments = _Segments(
        segments.start.at[slot].set(e),
        jax.tree.map(lambda x, y: x.at[slot].set(y), longer, first),
        (segments.log_marginal + log_predictive).at[slot].set(sequence.log_alone[e]),
        segments.log_before.at[slot].set(log_before),
    )
    log_weights = segments.log_marginal + sequence.log_sizes[e - segments.start + 1]
    if sequence.log_chains is not None:
        log_weights += sequence.log_chains[e, segments.start]
    return segments, jnp.where(segments.start >= 0, log_weights, -jnp.inf)


def _draw(uniform: Array, log_weights: Array) -> Array:
    """An index of the first axis with probability ∝ exp(log weight), one for each of the others."""
    weights = jnp.exp(log_weights - jnp.maximum(log_weights.max(0), _LEAST))
    sums = jnp.cumsum(weights, axis=0)
    reached = (sums >= (1.0 - uniform) * sums[-1]) & (weights > 0)
    # of rounding none may be
    return jnp.where(reached.any(0), jnp.argmax(reached, axis=0), jnp.argmax(weights, axis=0))


def draw_by_slope(
    key: Array, sequence: Sequence, slope: Array, width: int, family: Family
) -> tuple[Array, Array]:
    """Draw segments with probability ∝ Π B(c) exp(slope), eq. (5), keeping the best beginnings.

    :param width: how many, one of them at the point itself.
    :return: where segments start, (N,) bool, and whether the partition of now could be drawn.
    """
    size = sequence.reference.shape[0]

    def visit(carry: Any, inputs: tuple) -> Any:
        segments, log_total, scores = carry
        e, uniform, noise = inputs
        # where there is room, and then in place of the least
        slot = e if width == size else jnp.argmin(scores + noise)
        segments, log_weights = _extend(segments, slot, log_total, e, sequence, family)
        scores = segments.log_before + log_weights + slope
        drawn = segments.start[_draw(uniform, scores)]
        possible = jnp.any(segments.start == sequence.old_start[e]) | (sequence.old_start[e] < 0)
        return (segments, jax.nn.logsumexp(scores), scores), (drawn, possible)

    start = (
        _no_segments(sequence, width, jnp.zeros(width)),
        jnp.zeros(()),
        jnp.full(width, -jnp.inf),
    )
    key_draw, key_noise = random.split(key)
    # so that any partition can come up, however small the beam
    noise = random.gumbel(key_noise, (size, 1 if width == size else width))
    inputs = jnp.arange(size), random.uniform(key_draw, (size,)), noise
    _, (drawn, possible) = jax.lax.scan(visit, start, inputs)

    def back(carry: Any) -> Any:
        end, starts = carry
        start = drawn[jnp.maximum(end, 1) - 1]
        return start, starts.at[start].set(True)

    _, starts = jax.lax.while_loop(
        lambda carry: carry[0] > 0, back, (jnp.array(size), jnp.zeros(size, bool))
    )
    return starts, possible.all()


def draw_exactly(
    key: Array, sequence: Sequence, log_counts: Array, most: int, family: Family
) -> tuple[Array, Array]:
    """Draw segments with probability ∝ A(K) Π B(c), eq. (4), at most so many.

    :return: where segments start, (N,) bool, and whether more of them would have been drawn.
    """
    size = sequence.reference.shape[0]
    key_segments, key_number, key_again = random.split(key, 3)

    def visit(carry: Any, inputs: tuple) -> Any:
        segments, log_totals = carry  # g(e, K), K = 0, …, N
        e, uniform = inputs
        segments, log_weights = _extend(segments, e, log_totals, e, sequence, family)
        # one segment more than before it
        scores = segments.log_before[:, :-1] + log_weights[:, None]
        totals = jnp.concatenate([jnp.full(1, -jnp.inf), jax.nn.logsumexp(scores, axis=0)])
        drawn = segments.start[_draw(uniform, scores)]
        return (segments, totals), jnp.concatenate([jnp.zeros(1, drawn.dtype), drawn])

    nothing = jnp.full(size + 1, -jnp.inf).at[0].set(0.0)
    before = jnp.full((size, size + 1), -jnp.inf)
    inputs = jnp.arange(size), random.uniform(key_segments, (size, size))
    (_, totals), drawn = jax.lax.scan(
        visit, (_no_segments(sequence, size, before), nothing), inputs
    )
    log_numbers = log_counts + totals
    number = random.categorical(key_number, log_numbers)
    overflow = number > most
    allowed = jnp.where(jnp.arange(size + 1) <= most, log_numbers, -jnp.inf)
    number = jnp.where(overflow, random.categorical(key_again, allowed), number)

    def back(carry: Any) -> Any:
        end, left, starts = carry
        start = drawn[jnp.maximum(end, 1) - 1, left]
        return start, left - 1, starts.at[start].set(True)

    _, _, starts = jax.lax.while_loop(
        lambda carry: carry[0] > 0, back, (jnp.array(size), number, jnp.zeros(size, bool))
    )
    return starts, overflow


def labels_of(order: Array, starts: Array) -> Array:
    """Labels of the points, (N,), given where the segments of their order start."""
    segment = jnp.cumsum(starts) - 1
    return jnp.zeros(order.shape[0], jnp.int32).at[order].set(segment.astype(jnp.int32))
