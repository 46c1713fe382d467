"""The permutation-augmented sampler (Liang, Jordan & Taskar 2007).

Given an ordering π of the points, all partitions into segments of it are summed over by dynamic
programming. With log weights A(K) of the number of segments and B of each segment,

    p(C, π, x) ∝ A(|C|) Π_c B(c)                                                       (eq. 4)

where A holds the prior of the number of clusters and the |C|! orders of the clusters, and B the
prior of the size, the marginal p(x_c) and the probability of the order within the cluster. Scores
of points are relative to their predictive probability in their current clusters: this factor is the
same for all partitions, and float32 can then hold the sums. Equations and sections in this file and
in :mod:`~numpyro_rankings.infer.partition.segments` are those of the paper.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random
from jax.scipy.special import digamma, gammaln

from numpyro_rankings.components.family import Family
from numpyro_rankings.components.points import DataPoints
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.partition.base import Given, Move, PartitionKernel, PartitionState
from numpyro_rankings.infer.partition.segments import (
    Ordering,
    as_sequence,
    draw_by_slope,
    draw_exactly,
    labels_of,
)
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.sums import sum_by_label

ORDERINGS = ("uniform", "markov", "projection")
_MOST_EXACT = 64  # largest number of points for which the exact form is the default


class _NewSegments(NamedTuple):
    """New **labels**, their **log_accept**, and whether they are more clusters than slots."""

    labels: Array
    log_accept: Array
    is_over: Array


class PermutationGibbs(PartitionKernel):
    r"""
    Permutation-augmented sampler: a new partition of all points at once.

    Each sweep draws an ordering π of the points given the partition, and a partition into segments
    of it given π [1]. There are three forms of the latter:

    - exact, :math:`O(N^3)`: a draw from :math:`p(C \mid π, x)`, eq. (4);
    - :math:`O(N^2)`: a draw in which :math:`|C|!` is replaced by :math:`β^{|C|}`, eq. (5) and (6),
      accepted or rejected by Metropolis-Hastings. In warm-up β follows the current number of
      clusters; afterwards it is fixed by the mean number over the last sweeps of warm-up;
    - with ``beam=b``, :math:`O(N b)`: at each point only b starts of the last segment are kept
      (Section 3.3), the best up to Gumbel noise. They do not depend on the current partition, so
      the same Metropolis-Hastings step makes the draw exact: it is rejected where the beam could
      not have produced the current partition.

    Orderings: ``"uniform"`` over all that have the clusters as segments; ``"markov"``, in which
    each point is followed by one of its cluster with probability proportional to its predictive
    density given the point before (Section 4.1), :math:`O(N^2)` in time and memory;
    ``"projection"``, along a random line (Section 4.2). The probability of the last is unknown:
    during warm-up the partition is drawn from :math:`p(C, x)` restricted to segments and always
    accepted, a stochastic search for good labels, and after warm-up the ordering is uniform.

    Samples, initial partitions, blocks and overflow are those of :class:`CollapsedGibbs`.

    :param family: component family; for ``"projection"`` one with vectors.
    :param alpha: concentration, a number or a distribution.
    :param ordering: how π is drawn, ``"uniform"``, ``"markov"`` or ``"projection"``.
    :param beam: b, number of starts that are kept; None for all.
    :param exact: whether to use the exact form; by default up to 64 points, without a beam.
    :param discount: d of the Pitman–Yor process, 0 for the Dirichlet process.
    :param max_clusters: number of slots. ``overflow`` is true of a draw for which more clusters
        were drawn; the exact form then draws again among at most that many, the others reject.
    :param init: initial partition, ``"sequential"``, ``"one"`` or ``"singletons"``.
    :param model: your own model, in which the kernel is a block.
    :param sites: another name for the site ``assignments`` of that model.

    **References:**

    1. Liang, P., Jordan, M. I., Taskar, B. (2007), "A permutation-augmented sampler for DP mixture
       models", ICML.
    """

    has_decisions = True

    def __init__(
        self,
        family: Family,
        alpha: float | dist.Distribution = 1.0,
        ordering: str = "uniform",
        beam: int | None = None,
        exact: bool | None = None,
        *,
        discount: float = 0.0,
        max_clusters: int = 64,
        init: str = "sequential",
        model: Callable | None = None,
        sites: Mapping[str, str] | None = None,
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
        super().__init__(
            family,
            alpha,
            discount=discount,
            max_clusters=max_clusters,
            init=init,
            model=model,
            sites=sites,
        )

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
        prior: PartitionPrior,
        points: DataPoints,
        state: PartitionState,
    ) -> Move:
        key_order, key_segments, key_accept = random.split(key, 3)
        given = Given(points, prior, self._family, self._max_clusters)
        # π given C: eq. (3), Sections 4.1 and 4.2
        ordering = self._draw_ordering(key_order, labels, given, state)
        # C given π: eq. (4), or a proposal by eq. (5) and (6), and the ratio of Section 3.2
        if self._is_exact(points.size):
            return _draw_partition(key_segments, labels, ordering, given)
        proposal = self._propose_partition(key_segments, labels, ordering, given, state)
        return _accept(key_accept, labels, proposal)

    def _draw_ordering(
        self, key: Array, labels: Array, given: Given, state: PartitionState
    ) -> Ordering:
        """Draw π given the labels, along a line while the projection searches in warm-up."""
        searches = (state.warmup_left > 0) & (self._ordering == "projection")
        if self._ordering == "markov":
            pairs = log_pairs(given.points, given.family)
            return Ordering(order_by_chains(key, labels, pairs, given.num_slots), pairs, searches)
        order = order_uniformly(key, labels, given.num_slots)
        if self._ordering == "projection":
            order = jnp.where(searches, order_along_a_line(key, labels, given), order)
        return Ordering(order, None, searches)

    def _propose_partition(
        self, key: Array, labels: Array, ordering: Ordering, given: Given, state: PartitionState
    ) -> _NewSegments:
        """Draw a partition into segments of the ordering by eq. (5) and (6)."""
        prior, size = given.prior, given.points.size
        sequence = as_sequence(ordering, labels, given)
        log_counts = log_number(prior, size, ordering.searches)
        number = jnp.sum(given.sizes_of(labels) > 0)
        slope = log_slope(prior, _expected_number(number, given, state), ordering.searches)
        width = size if self._beam is None else min(self._beam + 1, size)
        starts, possible = draw_by_slope(key, sequence, slope, width, given.family)
        proposed_number = starts.sum()
        # p(C', π, x) q(C, π, x) / p(C, π, x) q(C', π, x)
        log_accept = (
            log_counts[proposed_number] - log_counts[number] - slope * (proposed_number - number)
        )
        log_accept = jnp.where(possible, log_accept, -jnp.inf)
        log_accept = jnp.where(ordering.searches, 0.0, log_accept)
        return _NewSegments(
            labels_of(ordering.order, starts), log_accept, proposed_number > given.num_slots
        )


def _draw_partition(key: Array, labels: Array, ordering: Ordering, given: Given) -> Move:
    """Draw a partition into segments of the ordering exactly, eq. (4)."""
    log_counts = log_number(given.prior, given.points.size, ordering.searches)
    sequence = as_sequence(ordering, labels, given)
    starts, overflow = draw_exactly(key, sequence, log_counts, given.num_slots, given.family)
    return Move(labels_of(ordering.order, starts), jnp.ones(()), overflow)


def _expected_number(number: Array, given: Given, state: PartitionState) -> Array:
    """The number of clusters at which log |C|! is expanded, Section 3.2: after warm-up its mean."""
    guess = _prior_guess(given.prior, given.points.size)
    mean = jnp.where(state.warmup_done > 0, state.mean_clusters, guess)
    return jnp.where(state.warmup_left > 0, number, mean)


def _accept(key: Array, labels: Array, proposal: _NewSegments) -> Move:
    """Accept a proposal or not; one with more clusters than slots is only reported."""
    wanted = jnp.log(random.uniform(key)) < proposal.log_accept
    accept_prob = jnp.exp(jnp.minimum(proposal.log_accept, 0.0))
    return Move(
        labels=jnp.where(wanted & ~proposal.is_over, proposal.labels, labels),
        accept_prob=jnp.where(proposal.is_over, 0.0, accept_prob),
        overflow=wanted & proposal.is_over,
    )


# -- orderings -----------------------------------------------------------------------------------


def order_uniformly(key: Array, labels: Array, num_slots: int) -> Array:
    """A random order of the clusters and of the points in each, eq. (3)."""
    key_clusters, key_points = random.split(key)
    cluster_places = random.permutation(key_clusters, num_slots)[labels]
    return jnp.lexsort((random.uniform(key_points, labels.shape), cluster_places))


def log_pairs(points: DataPoints, family: Family) -> Array:
    """Log predictive probability of point j given i alone, (N, N)."""

    def given(point: Any) -> Array:
        return family.log_predictive(family.add(points.empty, point), points.statistics)

    return jax.lax.map(given, points.statistics)


def order_by_chains(key: Array, labels: Array, pairs: Array, num_slots: int) -> Array:
    """Markov Gibbs scan, Section 4.1: each point is drawn given the previous one in its cluster."""
    key_clusters, key_points = random.split(key)
    cluster_places = random.permutation(key_clusters, num_slots)[labels]

    def follow(carry: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], Array]:
        last, left = carry
        same = left & (cluster_places == cluster_places[last])
        # the next cluster in the order, once this one is exhausted; its first point is uniform
        following = jnp.min(jnp.where(left, cluster_places, num_slots))
        log_weights = jnp.where(same.any(), pairs[last], 0.0)
        allowed = jnp.where(same.any(), same, left & (cluster_places == following))
        point = random.categorical(key, jnp.where(allowed, log_weights, -jnp.inf))
        return (point, left.at[point].set(False)), point

    size = labels.shape[0]
    first = jnp.argmin(cluster_places)
    key_first, key_points = random.split(key_points)
    log_first = jnp.where(cluster_places == cluster_places[first], 0.0, -jnp.inf)
    point = random.categorical(key_first, log_first)
    start = point, jnp.ones(size, bool).at[point].set(False)
    _, rest = jax.lax.scan(follow, start, random.split(key_points, size - 1))
    return jnp.concatenate([point[None], rest])


def order_along_a_line(key: Array, labels: Array, given: Given) -> Array:
    """Clusters by their mean along a random line, and the points of each along it, Section 4.2."""
    sizes = given.sizes_of(labels)
    places = given.family.project(key, given.points.statistics)
    means = sum_by_label(places, labels, given.num_slots) / jnp.maximum(sizes, 1)
    return jnp.lexsort((places, labels, means[labels]))


def log_number(prior: PartitionPrior, size: int, searches: Array) -> Array:
    """log A(K), K = 0, …, N, up to a constant; without 1/K! where the move searches."""
    opened = prior.log_open(jnp.arange(1, size))
    log_prior = jnp.concatenate([jnp.zeros(2), jnp.cumsum(opened)])
    return jnp.where(searches, log_prior, log_prior - gammaln(jnp.arange(size + 1) + 1.0))


def log_slope(prior: PartitionPrior, number: Array, searches: Array) -> Array:
    """Change of log A with K, eq. (5): log(α/β) with log β = Ψ(K + 1)."""
    number = number.astype(float)
    return prior.log_open(number) - jnp.where(searches, 0.0, digamma(number + 1.0))


def _prior_guess(prior: PartitionPrior, size: int) -> Array:
    """Prior guess of the number of clusters, for a run without warm-up."""
    return 1.0 + jnp.abs(prior.alpha) * jnp.log1p(size / jnp.abs(prior.alpha))
