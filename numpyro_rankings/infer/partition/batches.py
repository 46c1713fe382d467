"""The collapsed sampler for large clusters: labels of many points are proposed at once."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random

from numpyro_rankings.components.family import put, take
from numpyro_rankings.components.points import repeat
from numpyro_rankings.infer.partition.base import Given, Move
from numpyro_rankings.ops.special import log_gamma_ratio
from numpyro_rankings.ops.sums import count_by_label


class _Partition(NamedTuple):
    """State of a sweep: **labels** (N,), statistics of the **clusters**, and **sizes** (C,)."""

    labels: Array
    clusters: Any
    sizes: Array


class _BatchDraws(NamedTuple):
    """Points of a batch, and uniform random numbers."""

    points: Array  # (B,)
    seats: Array  # for their labels, (B,)
    new: Array  # for whether more slots would have been wanted
    accept: Array  # for whether the labels are accepted


class _PointDraws(NamedTuple):
    """The same for a single point."""

    points: Array
    seat: Array
    new: Array


class _Batch(NamedTuple):
    """The points of a batch with labels for them."""

    statistics: Any  # of each point, (B, …)
    log_alone: Array  # (B,)
    labels: Array  # (B,)
    clusters: Any  # statistics of these points by cluster, (C, …)
    counts: Array  # (C,)


class _Outside(NamedTuple):
    """A partition without the points of a batch: **clusters** and **sizes** by slot, (C, …)."""

    clusters: Any
    sizes: Array


class _NewLabels(NamedTuple):
    """New labels of a batch."""

    labels: Array  # (B,)
    log_ratio: Array  # log Π q(c_i) / q(c'_i) of the old and the new labels
    wanted: Array  # whether a point wanted a new cluster when all slots were full


def update_labels_in_batches(key: Array, labels: Array, given: Given, batch_size: int) -> Move:
    r"""
    Update the labels of random batches of points, each by Metropolis–Hastings.

    All points of a batch B are taken out, and a label is proposed for each as if only that point
    came back, with the weights of Neal's Algorithm 3 given the points outside B,

    .. math:: q_i(c) \propto (n_{-B,c} - d)\, p(x_i \mid x_{-B,c}), \quad
        q_i(\text{new}) \propto (α + d K_{-B})\, p(x_i);

    the points that want a new cluster share one. The new labels of the batch are accepted together
    with probability min(1, p(c') Π q(c_i) / p(c) Π q(c'_i)), where p is their posterior given the
    others; this is near 1 if the clusters are large beside the batch. Two clusters that consist of
    points of the batch only could not have been proposed: where there are such, their points stay,
    and the others of the batch go to clusters outside it. Before, between and after the batches a
    random point is drawn by Algorithm 3, so that every partition can be left and reached.
    """
    key_order, key_seats, key_accept, key_one, key_seat_one = random.split(key, 5)
    index = random_batches(key_order, given.points.size, batch_size)
    number, batch_size = index.shape
    batches = _BatchDraws(
        index,
        random.uniform(key_seats, (number, batch_size)),
        *random.uniform(key_accept, (number, 2)).T,
    )
    singles = _PointDraws(
        random.randint(key_one, (number + 1,), 0, given.points.size),
        *random.uniform(key_seat_one, (number + 1, 2)).T,
    )
    triangle = jnp.triu(jnp.ones((given.num_slots, given.num_slots)))

    def step(
        partition: _Partition, draws: tuple[_BatchDraws, _PointDraws]
    ) -> tuple[_Partition, tuple[Array, Array]]:
        batch, single = draws
        partition, accept_prob, wanted = _update_batch(partition, batch, given)
        partition, wanted_alone = _update_point(partition, single, triangle, given)
        return partition, (accept_prob, wanted | wanted_alone)

    partition = _Partition(labels, given.clusters_of(labels), given.sizes_of(labels))
    first, others = take(singles, 0), take(singles, slice(1, None))
    partition, wanted_first = _update_point(partition, first, triangle, given)
    partition, (accept_prob, wanted) = jax.lax.scan(step, partition, (batches, others))
    return Move(partition.labels, accept_prob.mean(), wanted.any() | wanted_first)


def _update_batch(
    partition: _Partition, draws: _BatchDraws, given: Given
) -> tuple[_Partition, Array, Array]:
    """Propose labels of a batch, accept or not; return whether more slots were wanted too."""
    points = given.points
    batch = take(points.statistics, draws.points), points.log_alone[draws.points]
    old = _group(*batch, partition.labels[draws.points], given)
    outside = _take_out(partition, old, given)
    proposal = _propose(old, outside, draws, given)
    new = _group(*batch, proposal.labels, given)
    log_accept = _log_posterior(new, outside, given) - _log_posterior(old, outside, given)
    log_accept += proposal.log_ratio
    # points that cannot share a cluster
    log_accept = jnp.where(jnp.isnan(log_accept), -jnp.inf, log_accept)
    accepted = jnp.log(draws.accept) < log_accept
    joined = given.family.add(outside.clusters, new.clusters)
    partition = _Partition(
        partition.labels.at[draws.points].set(jnp.where(accepted, new.labels, old.labels)),
        jax.tree.map(lambda x, y: jnp.where(accepted, x, y), joined, partition.clusters),
        jnp.where(accepted, outside.sizes + new.counts, partition.sizes),
    )
    return partition, jnp.exp(jnp.minimum(log_accept, 0.0)), proposal.wanted


def _group(statistics: Any, log_alone: Array, labels: Array, given: Given) -> _Batch:
    clusters = given.family.of_clusters(statistics, labels, given.num_slots)
    counts = count_by_label(labels, given.num_slots)
    return _Batch(statistics, log_alone, labels, clusters, counts)


def _take_out(partition: _Partition, batch: _Batch, given: Given) -> _Outside:
    sizes = partition.sizes - batch.counts
    clusters = given.family.subtract(partition.clusters, batch.clusters)
    # subtraction leaves rounding in a cluster that is now empty
    clusters = jax.tree.map(
        lambda x: jnp.where((sizes > 0).reshape(-1, *[1] * (x.ndim - 1)), x, jnp.zeros_like(x)),
        clusters,
    )
    return _Outside(clusters, sizes)


def _propose(old: _Batch, outside: _Outside, draws: _BatchDraws, given: Given) -> _NewLabels:
    """Draw a label of each point of a batch given the points outside it."""
    own = (outside.sizes == 0) & (old.counts > 0)  # clusters of points of the batch only
    is_full = jnp.all(outside.sizes > 0)
    stays = own[old.labels] & (own.sum() > 1)
    can_open = ~is_full & (own.sum() < 2)
    # a new cluster takes the slot of the batch's own one if there is one, else a free slot
    new = jnp.where(own.any(), jnp.argmax(own), jnp.argmin(outside.sizes > 0))
    log_seats, log_new = _log_weights(old, outside, given)
    is_new = (jnp.arange(given.num_slots) == new) & can_open
    log_weights = jnp.where(is_new[:, None], log_new, log_seats)
    largest = log_weights.max(0)
    labels, total = choose(jnp.exp(log_weights - largest), draws.seats)
    labels = jnp.where(stays, old.labels, labels)
    # log probability that no point wants a new cluster is minus the sum of log(1 + new / others)
    log_content = jax.nn.softplus(log_new - largest - jnp.log(total)).sum()
    wanted = is_full & (jnp.log(draws.new) > -log_content)
    every = jnp.arange(labels.shape[0])
    log_ratio = log_weights[old.labels, every] - log_weights[labels, every]
    return _NewLabels(labels, jnp.sum(jnp.where(stays, 0.0, log_ratio)), wanted)


def _log_weights(batch: _Batch, outside: _Outside, given: Given) -> tuple[Array, Array]:
    """log q_i of each cluster outside a batch, (C, B), and of a new one, (B,)."""
    # The slots are the first axis: sums over it are fast on CPUs.
    prior, some = given.prior, outside.sizes > 0
    log_weights = prior.log_join(outside.sizes)[:, None] + given.family.log_predictive(
        jax.tree.map(lambda x: x[:, None], outside.clusters),
        jax.tree.map(lambda x: x[None], batch.statistics),
    )
    log_new = prior.log_open(jnp.sum(some)) + batch.log_alone
    return jnp.where(some[:, None], log_weights, -jnp.inf), log_new


def _log_posterior(batch: _Batch, outside: _Outside, given: Given) -> Array:
    """Log posterior of the labels of a batch given the points outside it, but for a constant."""
    family, prior, sizes = given.family, given.prior, outside.sizes
    log_union = family.log_union(outside.clusters, family.for_union(batch.clusters))
    log_prob = family.log_marginal(batch.clusters) + jnp.where(sizes > 0, log_union, 0.0)
    log_prior = jnp.where(
        sizes > 0,
        log_gamma_ratio(jnp.maximum(sizes, 1) - prior.discount, batch.counts.astype(float)),
        prior.log_open(jnp.sum(sizes > 0))
        + log_gamma_ratio(1.0 - prior.discount, jnp.maximum(batch.counts, 1) - 1.0),
    )
    return jnp.where(batch.counts > 0, log_prob + log_prior, 0.0).sum()


def _update_point(
    partition: _Partition, draws: _PointDraws, triangle: Array, given: Given
) -> tuple[_Partition, Array]:
    """Draw the label of a point given all others [Neal 2000, Algorithm 3]."""
    # It returns also whether more slots were wanted.
    (labels, clusters, sizes), family, index = partition, given.family, draws.points
    point, old = take(given.points.statistics, index), labels[index]
    left = sizes.at[old].add(-1)
    rest = family.subtract(take(clusters, old), point)
    rest = jax.tree.map(lambda x: jnp.where(left[old] > 0, x, jnp.zeros_like(x)), rest)
    clusters = put(clusters, old, rest)
    log_weights = given.prior.log_join(left) + family.log_predictive(clusters, repeat(point, 1))
    log_weights = jnp.where(left > 0, log_weights, -jnp.inf)
    is_full = jnp.all(left > 0)
    new = jnp.where(left[old] > 0, jnp.argmin(left > 0), old)
    log_new = given.prior.log_open(jnp.sum(left > 0)) + given.points.log_alone[index]
    wanted_new = jax.nn.sigmoid(log_new - jax.nn.logsumexp(log_weights)) > draws.new
    is_new = (jnp.arange(given.num_slots) == new) & ~is_full
    log_weights = jnp.where(is_new, log_new, log_weights)
    weights = jnp.exp(log_weights - log_weights.max())
    sums = jnp.dot(weights, triangle, precision="highest")
    target = (1.0 - draws.seat) * sums[-1]
    seat = jnp.argmax((sums >= target) & (weights > 0)).astype(labels.dtype)
    joined = family.add(take(clusters, seat), point)
    partition = _Partition(
        labels.at[index].set(seat), put(clusters, seat, joined), left.at[seat].add(1)
    )
    return partition, is_full & wanted_new


def choose(weights: Array, uniform: Array) -> tuple[Array, Array]:
    """Draw a label for each column with probability ∝ its weights, (C, B): labels, sums (B,)."""
    # A label of weight 0 is never drawn: the target is positive, at most the last partial sum.
    none = jnp.zeros_like(uniform)
    total, _ = jax.lax.scan(lambda so_far, row: (so_far + row, None), none, weights)
    target = (1.0 - uniform) * total

    def step(carry: tuple[Array, Array], row: Array) -> tuple[tuple[Array, Array], None]:
        so_far, seat = carry
        so_far = so_far + row
        return (so_far, seat + (so_far < target)), None

    seats = jnp.zeros(uniform.shape, jnp.int32)
    (_, seats), _ = jax.lax.scan(step, (none, seats), weights)
    return seats, total


def random_batches(key: Array, size: int, batch_size: int) -> Array:
    """Divide the points into batches, none with a point twice: (number of batches, batch size)."""
    # The columns of a fixed table are rotated at random, because XLA sorts slowly on CPUs. The last
    # row may end as the first does: a point stays in its column, so it is not twice in one batch.
    batch_size = min(batch_size, max(size // 2, 1))
    number = -(-size // batch_size)
    fixed = np.random.default_rng(0).permutation(size).astype(np.int32)
    left = size - (number - 1) * batch_size
    table = np.concatenate([fixed, fixed[left:batch_size]]).reshape(number, batch_size)
    key_shift, key_sign = random.split(key)
    shifts = random.randint(key_shift, (batch_size,), 0, number)
    sign = random.rademacher(key_sign, (), jnp.int32)  # makes a sweep reversible
    rows = (sign * jnp.arange(number)[:, None] + shifts) % number
    return jnp.asarray(table)[rows, jnp.arange(batch_size)]
