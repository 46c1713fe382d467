"""Split and merge moves with sequential allocation (Dahl 2003)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.components.family import Family, take
from numpyro_rankings.components.points import Points, repeat
from numpyro_rankings.infer.mixture.prior import RestaurantPrior
from numpyro_rankings.infer.partition.base import Move, PartitionKernel, PartitionState
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.loops import shared_bound
from numpyro_rankings.ops.sums import count_by_label


class SplitMerge(PartitionKernel):
    r"""
    Metropolis-Hastings moves that split a cluster in two or merge two of them.

    Two points are drawn. If they share a cluster, the others of it are dealt out to the two in
    random order, each with a probability proportional to the number of points that are there and
    their predictive density [1]; if they do not, their clusters are merged. The acceptance ratio is
    exact: that of the posterior, and the probability of the deal, to be repeated by the reverse.

    By itself the kernel is ergodic, but slow; it belongs in a :class:`Cycle` with
    :class:`CollapsedGibbs`. Samples, settings, blocks and overflow are as there.

    :param family: component family.
    :param alpha: concentration, a number or a distribution.
    :param num_moves: moves in a sweep.

    **References:**

    1. Dahl, D. B. (2003), "An improved merge-split sampler for conjugate Dirichlet process mixture
       models", University of Wisconsin.
    """

    has_decisions = True

    def __init__(
        self,
        family: Family,
        alpha: float | dist.Distribution = 1.0,
        num_moves: int = 1,
        **settings: Any,
    ) -> None:
        check_whole("num_moves", num_moves, 1)
        self._num_moves = num_moves
        super().__init__(family, alpha, **settings)

    def _move(
        self,
        key: Array,
        labels: Array,
        prior: RestaurantPrior,
        points: Points,
        state: PartitionState,
    ) -> Move:
        def one(labels: Array, key: Array) -> tuple[Array, tuple[Array, Array]]:
            move = split_or_merge(key, labels, prior, points, self._family, self._max_clusters)
            return move.labels, (move.accept_prob, move.overflow)

        labels, (accept_prob, overflow) = jax.lax.scan(
            one, labels, random.split(key, self._num_moves)
        )
        return Move(labels, accept_prob.mean(), overflow.any())


class _Deal(NamedTuple):
    """Points dealt out so far.

    - **clusters** - statistics of the two parts and of the whole, leading axis 3; **sizes** (3,).
    - **log_ratio** - log posterior of the two parts over that of the whole.
    - **log_prob** - log probability of the deal.
    - **is_first** - which points are in the first part, (N,).
    """

    clusters: Any
    sizes: Array
    log_ratio: Array
    log_prob: Array
    is_first: Array


def split_or_merge(
    key: Array,
    labels: Array,
    prior: RestaurantPrior,
    points: Points,
    family: Family,
    num_slots: int,
) -> Move:
    """Propose to split the cluster of two points, or to merge those of the two."""
    size = points.size
    if size == 1:
        return Move(labels, jnp.ones(()), jnp.array(False))
    key_first, key_second, key_order, key_deal, key_accept = random.split(key, 5)
    first = random.randint(key_first, (), 0, size)
    second = random.randint(key_second, (), 0, size - 1)
    second += second >= first
    splits = labels[first] == labels[second]
    index = jnp.arange(size)
    others = (labels == labels[first]) | (labels == labels[second])
    others &= (index != first) & (index != second)
    # the others in random order, then all that the move leaves where they are
    order = jnp.argsort(jnp.where(others, random.uniform(key_order, (size,)), 2.0))
    uniforms = random.uniform(key_deal, (size,))

    one, two = (take(points.statistics, i) for i in (first, second))
    alone_one, alone_two = (family.add(points.empty, point) for point in (one, two))
    whole = family.add(alone_one, two)
    clusters = jax.tree.map(lambda *x: jnp.stack(x), alone_one, alone_two, whole)
    together = family.log_predictive(alone_one, two)
    log_ratio = points.log_alone[second] - together - jnp.log1p(-prior.discount)
    deal = _Deal(
        clusters,
        jnp.array([1, 1, 2]),
        log_ratio,
        jnp.zeros(()),
        (labels == labels[first]) & (index != second),
    )

    def place(k: Array, deal: _Deal) -> _Deal:
        # under vmap the loop may run on: then nothing is dealt
        i, real = order[k], k < others.sum()
        point = take(points.statistics, i)
        log_predictive = family.log_predictive(deal.clusters, point)
        log_parts = jnp.log(deal.sizes[:2].astype(float)) + log_predictive[:2]
        log_first = -jnp.logaddexp(0.0, log_parts[1] - log_parts[0])
        log_second = -jnp.logaddexp(0.0, log_parts[0] - log_parts[1])
        # in a merge the parts are those that there are
        to_first = jnp.where(splits, jnp.log(uniforms[k]) < log_first, labels[i] == labels[first])
        part = jnp.where(to_first, 0, 1)
        joined = jnp.array([to_first, ~to_first, True])
        log_terms = prior.log_join(deal.sizes) + log_predictive
        log_prob = jnp.where(to_first, log_first, log_second)
        added = family.add(deal.clusters, repeat(point, 3))

        def keep(new: Array, old: Array) -> Array:
            return jnp.where((joined & real).reshape(-1, *[1] * (new.ndim - 1)), new, old)

        return _Deal(
            jax.tree.map(keep, added, deal.clusters),
            deal.sizes + (joined & real),
            deal.log_ratio + jnp.where(real, log_terms[part] - log_terms[2], 0.0),
            deal.log_prob + jnp.where(real, log_prob, 0.0),
            deal.is_first.at[i].set(jnp.where(real, to_first, deal.is_first[i])),
        )

    deal = jax.lax.fori_loop(0, shared_bound(others.sum()), place, deal)
    sizes = count_by_label(labels, num_slots)
    number = jnp.sum(sizes > 0)
    # the clusters that there are without the second part
    log_ratio = deal.log_ratio + prior.log_open(number - jnp.where(splits, 0, 1))
    log_accept = jnp.where(splits, 1.0, -1.0) * (log_ratio - deal.log_prob)
    # a pair that cannot share a cluster
    log_accept = jnp.where(jnp.isnan(log_accept), -jnp.inf, log_accept)
    wanted = jnp.log(random.uniform(key_accept)) < log_accept
    is_full = splits & (number == num_slots)
    moved = others | (index == first) | (index == second)
    slot = jnp.where(splits, jnp.argmin(sizes > 0), labels[first])
    proposal = jnp.where(moved & ~(deal.is_first & splits), slot, labels)
    accepted = wanted & ~is_full
    accept_prob = jnp.where(is_full, 0.0, jnp.exp(jnp.minimum(log_accept, 0.0)))
    return Move(jnp.where(accepted, proposal, labels), accept_prob, wanted & is_full)
