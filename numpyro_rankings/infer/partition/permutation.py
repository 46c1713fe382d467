"""The permutation-augmented sampler (Liang, Jordan & Taskar 2007).

Given an ordering π of the points, all partitions into segments of it are summed over by dynamic
programming. With log weights A(K) of the number of segments and B of each segment,

    p(C, π, x) ∝ A(|C|) Π_c B(c)                                                       (eq. 4)

where A holds the prior of the number of clusters and the |C|! orders of the clusters, and B the
prior of the size, the marginal p(x_c) and the probability of the order within the cluster. Scores
of points are taken relative to their predictive probability in the clusters of now, which is the
same for all partitions, so that float32 holds the sums.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random
from jax.scipy.special import digamma, gammaln

from numpyro_rankings.components.family import Family
from numpyro_rankings.components.points import Points
from numpyro_rankings.infer.mixture.prior import RestaurantPrior
from numpyro_rankings.infer.partition.base import Move, PartitionKernel, PartitionState
from numpyro_rankings.infer.partition.segments import (
    as_sequence,
    draw_by_slope,
    draw_exactly,
    labels_of,
)
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.sums import count_by_label, sum_by_label

ORDERINGS = ("uniform", "markov", "projection")
_MOST_EXACT = 64  # points, up to which the exact form is taken if nothing is said


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
