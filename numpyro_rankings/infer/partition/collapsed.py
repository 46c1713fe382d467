"""Collapsed Gibbs sampling of a partition, one point at a time (Neal 2000, Algorithm 3)."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.components.family import Family, put, take
from numpyro_rankings.components.points import DataPoints
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.partition.base import Given, Move, PartitionKernel
from numpyro_rankings.infer.partition.batches import update_labels_in_batches
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.loops import shared_bound

# Block sizes, in points whose labels are drawn at once: the first after a label has changed, the
# second once as many points as that have kept theirs
_BLOCKS = (8, 256)
_WIDE_BLOCKS = (2, 32)  # block sizes for wide clusters
_WIDE = 256  # a cluster is wide if its statistics are more numbers than this
_SLOTS = 8  # number of wide clusters that are scored at once


class CollapsedGibbs(PartitionKernel):
    r"""
    Gibbs sampler of the partition of a Dirichlet or Pitman–Yor process mixture.

    Each sweep takes every point out of its cluster and draws a new one for it [1, Algorithm 3]:

    .. math:: p(c_i = c) \propto (n_{-i,c} - d)\, p(x_i \mid x_{-i,c}), \quad
        p(c_i \text{ new}) \propto (α + d K_{-i})\, p(x_i).

    Labels are drawn for a block of points at once, and those up to the first that changes are kept:
    the result is that of one point at a time. Where clusters are large and many points change,
    ``batch_size`` makes sweeps several times faster: then the labels of that many points are
    proposed together, and accepted or rejected together.

    Samples: ``assignments`` (D, N), canonical, ``num_clusters`` (D,), ``alpha``, ``log_joint``.
    Run as ``mcmc.run(key, data)``.

    :param family: component family, see :mod:`numpyro_rankings.components`.
    :param alpha: concentration, a number or a distribution; with a Gamma prior and no discount it
        is drawn with the auxiliary variable of Escobar & West, otherwise by slice sampling.
    :param batch_size: 1, or a number of points that is small beside the clusters, such as 64. Each
        batch of a random order of the points is taken out, each of its points gets a cluster given
        only the points outside the batch, and a Metropolis–Hastings step, reported as
        ``accept_prob``, corrects for the dependence between them; after each batch a single point
        is drawn by Algorithm 3. At most half of the points. Clusters smaller than a batch mostly
        change by these single points: where there are many such clusters, 1 is better.
    :param discount: d of the Pitman–Yor process, 0 for the Dirichlet process.
    :param max_clusters: number of slots. A point that wants a new cluster when all slots are full
        is drawn among the current clusters, and ``mcmc.get_extra_fields()["overflow"]`` is true of
        that draw.
    :param init: initial partition. ``"sequential"`` seats the points in turn by their predictive
        probability, ``"one"`` is one cluster, ``"singletons"`` one cluster for each point; or give
        ``init_params={"assignments": labels}``.
    :param model: your own model, in which the kernel is a block of
        :class:`numpyro.infer.Gibbs`: its site ``assignments`` must be a
        :class:`~numpyro_rankings.distributions.ChineseRestaurantProcess` with this
        ``max_clusters``, its first argument the data, and its likelihood that of the family, as in
        :func:`~numpyro_rankings.models.conjugate_mixture`.
    :param sites: another name for that site, ``{"assignments": "z"}``.

    **References:**

    1. Neal, R. M. (2000), "Markov chain sampling methods for Dirichlet process mixture models",
       Journal of Computational and Graphical Statistics.

    .. doctest::

       >>> import jax
       >>> from numpyro.infer import MCMC
       >>> from numpyro_rankings.components import GaussianMean
       >>> from numpyro_rankings.infer import CollapsedGibbs
       >>> x = jnp.array([[-1.5], [-1.4], [-1.2], [2.1], [2.5], [2.8]])
       >>> kernel = CollapsedGibbs(GaussianMean(prior_scale=3.0, noise_scale=0.3), max_clusters=6)
       >>> mcmc = MCMC(kernel, num_warmup=100, num_samples=1000, progress_bar=False)
       >>> mcmc.run(jax.random.key(0), x)
       >>> bool((mcmc.get_samples()["num_clusters"] == 2).mean() > 0.5)
       True
    """

    def __init__(
        self,
        family: Family,
        alpha: float | dist.Distribution = 1.0,
        *,
        batch_size: int = 1,
        discount: float = 0.0,
        max_clusters: int = 64,
        init: str = "sequential",
        model: Callable | None = None,
        sites: Mapping[str, str] | None = None,
    ) -> None:
        check_whole("batch_size", batch_size, 1)
        self._batch_size = batch_size
        self.has_decisions = batch_size > 1
        super().__init__(
            family,
            alpha,
            discount=discount,
            max_clusters=max_clusters,
            init=init,
            model=model,
            sites=sites,
        )

    def _move(
        self, key: Array, labels: Array, prior: PartitionPrior, points: DataPoints, state: Any
    ) -> Move:
        given = Given(points, prior, self._family, self._max_clusters)
        if self._batch_size > 1:
            return update_labels_in_batches(key, labels, given, self._batch_size)
        return update_labels_in_turn(key, labels, given)


def log_given_others(labels: Array, given: Given) -> Array:
    """Log probability of each point given the others and their labels, (N,).

    It is the sum over its own label: that of the weights of Algorithm 3, divided by N - 1 + α.
    """
    size = given.points.size
    block = min(_BLOCKS[1], size)
    sizes, clusters = given.sizes_of(labels), given.clusters_of(labels)
    start = jnp.array(0)
    progress = _Progress(start, start, labels, sizes, clusters, jnp.array(False))
    index = jnp.minimum(jnp.arange(-(-size // block) * block), size - 1).reshape(-1, block)

    def of_block(index: Array) -> Array:
        return jax.nn.logsumexp(_log_weights(progress, index, given)[0], axis=1)

    log_sums = jax.lax.map(of_block, index).reshape(-1)[:size]
    return log_sums - jnp.log(size - 1 + given.prior.alpha)


class _Progress(NamedTuple):
    """How far a sweep has come."""

    position: Array  # the next point
    quiet: Array  # number of points in a row that kept their labels
    labels: Array  # (N,)
    sizes: Array  # (C,)
    clusters: Any  # statistics, leading axis C
    overflow: Array  # whether a point wanted a new cluster when all slots were full


class _Fixed(NamedTuple):
    """The values that a sweep computes before its first point."""

    uniforms: Array  # for the draw of each label, and for the overflow, (2, N)
    triangle: Array  # ones on and above the diagonal, (C + 1, C + 1), to sum up weights


def update_labels_in_turn(key: Array, labels: Array, given: Given) -> Move:
    """Draw the label of every point given all others [Neal 2000, Algorithm 3]."""
    size = given.points.size
    blocks = _WIDE_BLOCKS if _width(given) > _WIDE else _BLOCKS
    small, large = (min(block, size) for block in blocks)
    ones = jnp.ones((given.num_slots + 1, given.num_slots + 1))
    fixed = _Fixed(random.uniform(key, (2, size)), jnp.triu(ones))
    start = _Progress(
        position=jnp.array(0),
        quiet=jnp.array(large),
        labels=labels,
        sizes=given.sizes_of(labels),
        clusters=given.clusters_of(labels),
        overflow=jnp.array(False),
    )
    advance = partial(_advance, fixed=fixed, given=given)
    progress = _advance_to_end(start, small, large, advance)
    return Move(progress.labels, jnp.ones(()), progress.overflow)


def _advance_to_end(
    progress: _Progress, small: int, large: int, advance: Callable[..., _Progress]
) -> _Progress:
    """Take all points in small blocks, or in large ones as long as no label changes."""
    size = progress.labels.shape[0]

    # all chains run the same number of passes: see shared_bound
    def goes_on(progress: _Progress) -> Array:
        return shared_bound((progress.position < size).astype(jnp.int32)) > 0

    def is_quiet(progress: _Progress) -> Array:
        moving = (progress.quiet < large) & (progress.position < size)
        return shared_bound(moving.astype(jnp.int32)) == 0

    def alternate(progress: _Progress) -> _Progress:
        progress = jax.lax.while_loop(
            lambda p: goes_on(p) & is_quiet(p), partial(advance, block=large), progress
        )
        return jax.lax.while_loop(
            lambda p: goes_on(p) & ~is_quiet(p), partial(advance, block=small), progress
        )

    body = alternate if small < large else partial(advance, block=small)
    return jax.lax.while_loop(goes_on, body, progress)


def _width(given: Given) -> int:
    """How many numbers the statistics of a cluster are."""
    return sum(math.prod(x.shape) for x in jax.tree.leaves(given.points.empty))


def _advance(progress: _Progress, block: int, fixed: _Fixed, given: Given) -> _Progress:
    """Draw labels for the next points, a block of them, up to the first that changes."""
    # the last block may reach back to points that have been drawn already
    start = jnp.minimum(progress.position, given.points.size - block)
    index = start + jnp.arange(block)
    seats, wanted, clusters = _draw_seats(progress, index, fixed, given)
    mine = progress.labels[index]
    is_open = index >= progress.position
    changes = is_open & (seats != mine)
    any_change = changes.any()
    last = jnp.where(any_change, jnp.argmax(changes), block - 1)  # the last that is kept
    old = mine[last]
    new = jnp.where(any_change, seats[last], old)
    is_kept = is_open & (jnp.arange(block) <= last)
    point, both = take(given.points.statistics, index[last]), jnp.stack([old, new])
    before = take(clusters, both)
    after = _move_point(before, progress.sizes[new], point, given.family)
    after = jax.tree.map(lambda x, y: jnp.where(any_change, y, x), before, after)
    return _Progress(
        position=index[last] + 1,
        quiet=jnp.where(any_change, 0, progress.quiet + is_kept.sum()),
        labels=progress.labels.at[index[last]].set(new),
        sizes=progress.sizes.at[old].add(-1).at[new].add(1),
        clusters=put(clusters, both, after),
        overflow=progress.overflow | jnp.any(wanted & is_kept),
    )


def _draw_seats(
    progress: _Progress, index: Array, fixed: _Fixed, given: Given
) -> tuple[Array, Array, Any]:
    """Draw labels for points of a block, (B,), each as if it were the first of them to change."""
    # It returns also whether a cluster was wanted when all slots were full, (B,).
    mine, sizes = progress.labels[index], progress.sizes
    alone = sizes[mine] == 1
    log_weights, clusters = _log_weights(progress, index, given)
    weights = jnp.exp(log_weights - log_weights.max(1, keepdims=True))
    # partial sums as a product, which is faster on CPUs; their rounding is harmless
    sums = jnp.dot(weights, fixed.triangle, precision="highest")
    is_full = jnp.all(sizes > 0) & ~alone
    # if no slot is free, the share of a new cluster goes to the others
    total = jnp.where(is_full, sums[:, -2], sums[:, -1])
    wanted = is_full & (fixed.uniforms[1, index] * sums[:, -1] > sums[:, -2])
    target = (1.0 - fixed.uniforms[0, index]) * total  # positive
    # rounding must not lead to a label of weight 0
    reached = jnp.argmax((sums >= target[:, None]) & (weights > 0), axis=1)
    possible = jnp.take_along_axis(weights, reached[:, None], axis=1)[:, 0] > 0
    seat = jnp.where(possible, reached, jnp.argmax(weights[:, :-1], axis=1))
    free = jnp.where(alone, mine, jnp.argmin(sizes > 0))
    return jnp.where(seat == given.num_slots, free, seat).astype(jnp.int32), wanted, clusters


def _log_weights(progress: _Progress, index: Array, given: Given) -> tuple[Array, Any]:
    """Log weights of each label, (B, C + 1), the last of a new cluster [Neal 2000, Algorithm 3]."""
    points, prior = given.points, given.prior
    mine, sizes, slots = progress.labels[index], progress.sizes, jnp.arange(given.num_slots)
    point = take(points.statistics, index)
    log_others, clusters = _log_predictives(progress.clusters, sizes, point, given)
    log_mine = given.family.log_predictive_of_member(take(clusters, mine), point)
    alone = sizes[mine] == 1
    others = jnp.sum(sizes > 0) - alone
    log_seats = jnp.where(
        slots == mine[:, None],
        (prior.log_join(sizes[mine] - 1) + log_mine)[:, None],
        prior.log_join(sizes) + log_others,
    )
    # an empty slot has weight 0, whatever rounding has left of its statistics
    log_seats = jnp.where((sizes - (slots == mine[:, None])) > 0, log_seats, -jnp.inf)
    log_new = prior.log_open(others) + points.log_alone[index]
    return jnp.concatenate([log_seats, log_new[:, None]], axis=1), clusters


def _log_predictives(clusters: Any, sizes: Array, point: Any, given: Given) -> tuple[Array, Any]:
    """Log probability of each point of a block given each cluster, (B, C); and the clusters."""
    # Of wide clusters only the slots in use are scored. The clusters are handed through, because
    # XLA would copy what is read in an inner loop and changed after it.
    num_slots, log_predictive = given.num_slots, given.family.log_predictive
    point = jax.tree.map(lambda x: x[:, None], point)
    if _width(given) <= _WIDE or num_slots <= _SLOTS:
        return log_predictive(jax.tree.map(lambda x: x[None], clusters), point), clusters

    def score_some(k: Array, carry: tuple[Array, Any]) -> tuple[Array, Any]:
        log_others, clusters = carry
        # the last group of slots may overlap the one before
        first = jnp.minimum(k * _SLOTS, num_slots - _SLOTS)
        group = jax.tree.map(
            lambda x: jax.lax.dynamic_slice_in_dim(x, first, _SLOTS)[None], clusters
        )
        log_probs = log_predictive(group, point)
        return jax.lax.dynamic_update_slice_in_dim(log_others, log_probs, first, 1), clusters

    used = jnp.max(jnp.where(sizes > 0, jnp.arange(num_slots) // _SLOTS + 1, 0))
    block = jax.tree.leaves(point)[0].shape[0]
    start = jnp.zeros((block, num_slots)), clusters
    return jax.lax.fori_loop(0, shared_bound(used), score_some, start)


def _move_point(both: Any, size: Array, point: Any, family: Family) -> Any:
    """Statistics of two clusters, (2, …), after a point has moved from the first to the second."""
    # If the second was empty before, rounding errors in its statistics are set to 0 first.
    left = family.subtract(take(both, 0), point)
    other = jax.tree.map(lambda x: jnp.where(size > 0, x, jnp.zeros_like(x)), take(both, 1))
    joined = family.add(other, point)
    return jax.tree.map(lambda x, y: jnp.stack([x, y]), left, joined)
