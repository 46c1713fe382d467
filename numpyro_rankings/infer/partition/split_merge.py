"""Split and merge moves with sequential allocation (Dahl 2003)."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.components.family import Family, take
from numpyro_rankings.components.points import DataPoints, repeat
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.partition.base import Given, Move, PartitionKernel
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.loops import shared_bound


class SplitMerge(PartitionKernel):
    r"""
    Metropolis-Hastings moves that split a cluster in two or merge two of them.

    Two points are drawn. If they share a cluster, its other points are allocated one by one, in
    random order, to two new clusters, each with a probability proportional to the current size of
    the cluster and the predictive density of the point [1]; if they do not, their clusters are
    merged. The acceptance ratio is exact: it contains the posterior, and the probability of the
    allocation that makes the split, or that would undo the merge.

    By itself the kernel is ergodic but slow; use it in a :class:`Cycle` with
    :class:`CollapsedGibbs`, whose samples, initial partitions, blocks and overflow it shares.

    :param family: component family, see :mod:`numpyro_rankings.components`.
    :param alpha: concentration, a number or a distribution.
    :param num_moves: number of moves in a sweep.
    :param discount: d of the Pitman–Yor process, 0 for the Dirichlet process.
    :param max_clusters: number of slots. A split that is accepted when all slots are full is not
        made, and ``overflow`` is true of that draw.
    :param init: initial partition, ``"sequential"``, ``"one"`` or ``"singletons"``.
    :param model: your own model, in which the kernel is a block.
    :param sites: another name for the site ``assignments`` of that model.

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
        *,
        discount: float = 0.0,
        max_clusters: int = 64,
        init: str = "sequential",
        model: Callable | None = None,
        sites: Mapping[str, str] | None = None,
    ) -> None:
        check_whole("num_moves", num_moves, 1)
        self._num_moves = num_moves
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

        def one(labels: Array, key: Array) -> tuple[Array, tuple[Array, Array]]:
            move = split_or_merge_pair(key, labels, given)
            return move.labels, (move.accept_prob, move.overflow)

        labels, (accept_prob, overflow) = jax.lax.scan(
            one, labels, random.split(key, self._num_moves)
        )
        return Move(labels, accept_prob.mean(), overflow.any())


class _Pair(NamedTuple):
    """Two points, and what a move with them changes."""

    first: Array
    second: Array
    splits: Array  # whether they share a cluster, so that it is split
    others: Array  # the other points of their clusters, (N,) bool
    in_first: Array  # the points labelled like the first, (N,) bool


class _Allocation(NamedTuple):
    """The points allocated so far."""

    clusters: Any  # statistics of the two parts and of the whole, leading axis 3
    sizes: Array  # (3,)
    log_ratio: Array  # log posterior of the two parts over that of the whole
    log_prob: Array  # log probability of the allocation
    in_first: Array  # whether each point is in the first part, (N,) bool


def split_or_merge_pair(key: Array, labels: Array, given: Given) -> Move:
    """Propose to split the cluster of two points, or to merge those of the two [Dahl 2003]."""
    size = given.points.size
    if size == 1:
        return Move(labels, jnp.ones(()), jnp.array(False))
    key_first, key_second, key_order, key_deal, key_accept = random.split(key, 5)
    pair = _draw_pair(key_first, key_second, labels)
    allocation = _allocate(key_order, key_deal, pair, given)
    sizes = given.sizes_of(labels)
    number = jnp.sum(sizes > 0)
    # log_open of the number of clusters without the second part
    log_ratio = allocation.log_ratio + given.prior.log_open(number - jnp.where(pair.splits, 0, 1))
    log_accept = jnp.where(pair.splits, 1.0, -1.0) * (log_ratio - allocation.log_prob)
    # points that cannot share a cluster
    log_accept = jnp.where(jnp.isnan(log_accept), -jnp.inf, log_accept)
    wanted = jnp.log(random.uniform(key_accept)) < log_accept
    is_full = pair.splits & (number == given.num_slots)
    proposal = _relabel(labels, pair, allocation, sizes)
    accept_prob = jnp.where(is_full, 0.0, jnp.exp(jnp.minimum(log_accept, 0.0)))
    return Move(jnp.where(wanted & ~is_full, proposal, labels), accept_prob, wanted & is_full)


def _draw_pair(key_first: Array, key_second: Array, labels: Array) -> _Pair:
    """Draw two different points uniformly."""
    size, index = labels.shape[0], jnp.arange(labels.shape[0])
    first = random.randint(key_first, (), 0, size)
    second = random.randint(key_second, (), 0, size - 1)
    second += second >= first
    in_first = labels == labels[first]
    others = in_first | (labels == labels[second])
    others &= (index != first) & (index != second)
    return _Pair(first, second, labels[first] == labels[second], others, in_first)


def _allocate(key_order: Array, key_deal: Array, pair: _Pair, given: Given) -> _Allocation:
    """Allocate the other points to the two parts, one by one in random order."""
    # In a merge the parts are the two clusters, allocated as it would make them.
    size = given.points.size
    # the other points in random order, followed by all points that the move does not change
    order = jnp.argsort(jnp.where(pair.others, random.uniform(key_order, (size,)), 2.0))
    uniforms = random.uniform(key_deal, (size,))
    number = pair.others.sum()

    def allocate_next(k: Array, allocation: _Allocation) -> _Allocation:
        # under vmap the loop may go on after the last of them: then nothing changes
        point, is_real = order[k], k < number
        return _allocate_point(allocation, point, uniforms[k], is_real, pair, given)

    start = _start_allocation(pair, given)
    return jax.lax.fori_loop(0, shared_bound(number), allocate_next, start)


def _start_allocation(pair: _Pair, given: Given) -> _Allocation:
    """The two points of the pair, each in its part."""
    points, family = given.points, given.family
    first, second = (take(points.statistics, i) for i in (pair.first, pair.second))
    first_part, second_part = (family.add(points.empty, point) for point in (first, second))
    whole = family.add(first_part, second)
    together = family.log_predictive(first_part, second)
    return _Allocation(
        clusters=jax.tree.map(lambda *x: jnp.stack(x), first_part, second_part, whole),
        sizes=jnp.array([1, 1, 2]),
        log_ratio=points.log_alone[pair.second] - together - jnp.log1p(-given.prior.discount),
        log_prob=jnp.zeros(()),
        in_first=pair.in_first & (jnp.arange(points.size) != pair.second),
    )


def _allocate_point(
    allocation: _Allocation, i: Array, uniform: Array, is_real: Array, pair: _Pair, given: Given
) -> _Allocation:
    """Add point i to one of the parts, and to the whole; nothing changes unless ``is_real``."""
    family, (clusters, sizes, log_ratio, log_prob, in_first) = given.family, allocation
    point = take(given.points.statistics, i)
    log_predictive = family.log_predictive(clusters, point)
    # probability of each part ∝ its size times the predictive density
    log_parts = jnp.log(sizes[:2].astype(float)) + log_predictive[:2]
    log_first = -jnp.logaddexp(0.0, log_parts[1] - log_parts[0])
    log_second = -jnp.logaddexp(0.0, log_parts[0] - log_parts[1])
    to_first = jnp.where(pair.splits, jnp.log(uniform) < log_first, pair.in_first[i])
    log_terms = given.prior.log_join(sizes) + log_predictive
    log_step = jnp.where(to_first, log_first, log_second)
    added = family.add(clusters, repeat(point, 3))
    joined = jnp.array([to_first, ~to_first, True]) & is_real

    def keep(new: Array, old: Array) -> Array:
        return jnp.where(joined.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    change = log_terms[jnp.where(to_first, 0, 1)] - log_terms[2]
    return _Allocation(
        clusters=jax.tree.map(keep, added, clusters),
        sizes=sizes + joined,
        log_ratio=log_ratio + jnp.where(is_real, change, 0.0),
        log_prob=log_prob + jnp.where(is_real, log_step, 0.0),
        in_first=in_first.at[i].set(jnp.where(is_real, to_first, in_first[i])),
    )


def _relabel(labels: Array, pair: _Pair, allocation: _Allocation, sizes: Array) -> Array:
    """Labels of the proposal: the second part, or the merged cluster, gets one label."""
    index = jnp.arange(labels.shape[0])
    moved = pair.others | (index == pair.first) | (index == pair.second)
    slot = jnp.where(pair.splits, jnp.argmin(sizes > 0).astype(labels.dtype), labels[pair.first])
    return jnp.where(moved & ~(allocation.in_first & pair.splits), slot, labels)
