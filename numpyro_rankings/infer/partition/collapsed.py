"""Collapsed Gibbs sampling of a partition, one point at a time (Neal 2000, Algorithm 3)."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.components.family import Family, put, take
from numpyro_rankings.components.points import Points
from numpyro_rankings.infer.mixture.prior import RestaurantPrior
from numpyro_rankings.infer.partition.base import Move, PartitionKernel, PartitionState
from numpyro_rankings.infer.partition.batches import propose_in_batches
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.loops import shared_bound
from numpyro_rankings.ops.sums import count_by_label

# points whose labels are drawn at once, as long as none of them changes: where some did, and after
# as many as the second that did not
_BLOCKS = (32, 512)
_WIDE_BLOCKS = (2, 32)  # the same where a cluster is more than so many numbers
_WIDE = 256
_SLOTS = 8  # of such clusters that are scored at once


class CollapsedGibbs(PartitionKernel):
    r"""
    Gibbs sampler of the partition of a Dirichlet or Pitman–Yor process mixture.

    Each sweep takes every point out of its cluster and seats it anew [1, Algorithm 3]:

    .. math:: p(c_i = c) \propto (n_{-i,c} - d)\, p(x_i \mid x_{-i,c}), \quad
        p(c_i \text{ new}) \propto (α + d K_{-i})\, p(x_i).

    Draws are made for many points at once, and hold up to the first of them that changes its
    cluster: the result is that of one at a time. Where clusters are large and many points change,
    ``batch_size`` makes sweeps several times faster: then the labels of so many points are
    proposed together, and accepted or not together.

    Samples: ``assignments`` (D, N), canonical, ``num_clusters`` (D,), ``alpha``, ``log_joint``.
    Run as ``mcmc.run(key, data)``.

    :param family: component family, see :mod:`numpyro_rankings.components`.
    :param alpha: concentration, a number or a distribution; with a Gamma prior and no discount it
        is drawn by the auxiliary variable of Escobar & West, otherwise by slice sampling.
    :param discount: d of the Pitman–Yor process, 0 for the Dirichlet process.
    :param max_clusters: slots; where a point wants a new cluster beyond them, it is drawn among
        those that there are, and ``mcmc.get_extra_fields()["overflow"]`` is true of that draw.
    :param batch_size: 1, or a number of points small beside the clusters, such as 64: each batch of
        a random order of the points is taken out, all of its points are seated given the others
        alone, and a Metropolis–Hastings step, reported as ``accept_prob``, corrects for what they
        say of each other; a single point is seated after each. No more than half of the points.
        Clusters smaller than a batch are mostly left to those: where there are many, 1 is better.
    :param init: ``"sequential"`` seats the points in turn by their predictive probability,
        ``"one"`` is one cluster, ``"singletons"`` as many as points; or give
        ``init_params={"assignments": labels}``.
    :param model: a user's model, of which the kernel is then a block in
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
        **settings: Any,
    ) -> None:
        check_whole("batch_size", batch_size, 1)
        self._batch_size = batch_size
        self.has_decisions = batch_size > 1
        super().__init__(family, alpha, **settings)

    def _move(
        self,
        key: Array,
        labels: Array,
        prior: RestaurantPrior,
        points: Points,
        state: PartitionState,
    ) -> Move:
        if self._batch_size > 1:
            of_batches = points, self._family, self._max_clusters, self._batch_size
            return propose_in_batches(key, labels, prior, *of_batches)
        labels, overflow = reseat(key, labels, prior, points, self._family, self._max_clusters)
        return Move(labels, jnp.ones(()), overflow)


class _Seating(NamedTuple):
    """
    - **position** - of the next point; **quiet** - how many in a row have kept their labels.
    - **labels**, **sizes** and statistics of **clusters**.
    """

    position: Array
    quiet: Array
    labels: Array
    sizes: Array
    clusters: Any
    overflow: Array


def reseat(
    key: Array,
    labels: Array,
    prior: RestaurantPrior,
    points: Points,
    family: Family,
    num_slots: int,
) -> tuple[Array, Array]:
    """One sweep over all points: labels (N,), and whether more slots would have been needed."""
    size = points.size
    width = sum(math.prod(x.shape) for x in jax.tree.leaves(points.empty))
    small, large = (min(block, size) for block in (_WIDE_BLOCKS if width > _WIDE else _BLOCKS))
    slots = jnp.arange(num_slots)
    uniforms = random.uniform(key, (2, size))
    triangle = jnp.triu(jnp.ones((num_slots + 1, num_slots + 1)))

    def log_given(clusters: Any, sizes: Array, point: Any) -> tuple[Array, Any]:
        """Log probability of each point given each cluster, (B, C); and the clusters again.

        Of wide clusters only those that are used are scored. They are handed through: of what is
        read in a loop and changed after it XLA would make a copy.
        """
        point = jax.tree.map(lambda x: x[:, None], point)
        if width <= _WIDE or num_slots <= _SLOTS:
            return family.log_predictive(jax.tree.map(lambda x: x[None], clusters), point), clusters

        def some(k: Array, carry: tuple[Array, Any]) -> tuple[Array, Any]:
            log_others, clusters = carry
            # the last may begin earlier, and is then in part the same again
            first = jnp.minimum(k * _SLOTS, num_slots - _SLOTS)
            part = jax.tree.map(
                lambda x: jax.lax.dynamic_slice_in_dim(x, first, _SLOTS)[None], clusters
            )
            found = family.log_predictive(part, point)
            return jax.lax.dynamic_update_slice_in_dim(log_others, found, first, 1), clusters

        used = jnp.max(jnp.where(sizes > 0, slots // _SLOTS + 1, 0))
        size_of_block = jax.tree.leaves(point)[0].shape[0]
        start = jnp.zeros((size_of_block, num_slots)), clusters
        return jax.lax.fori_loop(0, shared_bound(used), some, start)

    def draw(seating: _Seating, index: Array) -> tuple[Array, Array, Any]:
        """Seats of the points of a block, each as if it were the first of them to move."""
        mine, sizes = seating.labels[index], seating.sizes
        point = take(points.statistics, index)
        log_others, clusters = log_given(seating.clusters, sizes, point)
        log_mine = family.log_predictive_of_member(take(clusters, mine), point)
        alone = sizes[mine] == 1
        others = jnp.sum(sizes > 0) - alone
        log_seats = jnp.where(
            slots == mine[:, None],
            (prior.log_join(sizes[mine] - 1) + log_mine)[:, None],
            prior.log_join(sizes) + log_others,
        )
        # a cluster without members scores nothing, whatever was left of its statistics
        log_seats = jnp.where((sizes - (slots == mine[:, None])) > 0, log_seats, -jnp.inf)
        log_new = prior.log_open(others) + points.log_alone[index]
        log_weights = jnp.concatenate([log_seats, log_new[:, None]], axis=1)
        weights = jnp.exp(log_weights - log_weights.max(1, keepdims=True))
        # sums from the first seat on, as a product, which CPUs do faster; any rounding does
        sums = jnp.dot(weights, triangle)
        is_full = jnp.all(sizes > 0) & ~alone
        # where there is no seat for a new cluster, its share goes to the others
        total = jnp.where(is_full, sums[:, -2], sums[:, -1])
        wanted = is_full & (uniforms[1, index] * sums[:, -1] > sums[:, -2])
        target = (1.0 - uniforms[0, index]) * total  # positive
        # of rounding nobody sits where the weight is 0
        reached = jnp.argmax((sums >= target[:, None]) & (weights > 0), axis=1)
        possible = jnp.take_along_axis(weights, reached[:, None], axis=1)[:, 0] > 0
        seat = jnp.where(possible, reached, jnp.argmax(weights[:, :-1], axis=1))
        free = jnp.where(alone, mine, jnp.argmin(sizes > 0))
        return jnp.where(seat == num_slots, free, seat).astype(jnp.int32), wanted, clusters

    def step(seating: _Seating, block: int) -> _Seating:
        # the last block may reach back to points that have been seated
        start = jnp.minimum(seating.position, size - block)
        index = start + jnp.arange(block)
        seats, wanted, clusters = draw(seating, index)
        mine = seating.labels[index]
        open_ = index >= seating.position
        changes = open_ & (seats != mine)
        any_change = changes.any()
        first = jnp.where(any_change, jnp.argmax(changes), block - 1)
        point, old = take(points.statistics, index[first]), mine[first]
        new = jnp.where(any_change, seats[first], old)
        sizes = seating.sizes.at[old].add(-1).at[new].add(1)
        both = jnp.stack([old, new])
        before = take(clusters, both)
        left = family.subtract(take(before, 0), point)
        joined = family.add(_unless_empty(take(before, 1), seating.sizes[new]), point)
        after = jax.tree.map(
            lambda x, *y: jnp.where(any_change, jnp.stack(y), x), before, left, joined
        )
        valid = open_ & (jnp.arange(block) <= first)
        return _Seating(
            index[first] + 1,
            jnp.where(any_change, 0, seating.quiet + valid.sum()),
            seating.labels.at[index[first]].set(new),
            sizes,
            put(clusters, both, after),
            seating.overflow | jnp.any(wanted & valid),
        )

    # what is asked of the loops is the same for all chains: see shared_bound
    def goes_on(seating: _Seating) -> Array:
        return shared_bound((seating.position < size).astype(jnp.int32)) > 0

    def is_quiet(seating: _Seating) -> Array:
        moving = (seating.quiet < large) & (seating.position < size)
        return shared_bound(moving.astype(jnp.int32)) == 0

    def alternate(seating: _Seating) -> _Seating:
        seating = jax.lax.while_loop(
            lambda s: goes_on(s) & is_quiet(s), partial(step, block=large), seating
        )
        return jax.lax.while_loop(
            lambda s: goes_on(s) & ~is_quiet(s), partial(step, block=small), seating
        )

    clusters = family.of_clusters(points.statistics, labels, num_slots)
    sizes = count_by_label(labels, num_slots)
    seating = _Seating(jnp.array(0), jnp.array(large), labels, sizes, clusters, jnp.array(False))
    body = alternate if small < large else partial(step, block=small)
    seating = jax.lax.while_loop(goes_on, body, seating)
    return seating.labels, seating.overflow


def _unless_empty(cluster: Any, size: Array) -> Any:
    """Statistics, 0 if there are no members: what subtraction has left there is rounding."""
    return jax.tree.map(lambda x: jnp.where(size > 0, x, jnp.zeros_like(x)), cluster)
