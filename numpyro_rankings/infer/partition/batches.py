"""Labels of many points proposed at once: the collapsed sampler where clusters are large."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random

from numpyro_rankings.components.family import Family, put, take
from numpyro_rankings.components.points import Points, repeat
from numpyro_rankings.infer.mixture.prior import RestaurantPrior
from numpyro_rankings.infer.partition.base import Move
from numpyro_rankings.ops.special import log_gamma_ratio
from numpyro_rankings.ops.sums import count_by_label


def propose_in_batches(
    key: Array,
    labels: Array,
    prior: RestaurantPrior,
    points: Points,
    family: Family,
    num_slots: int,
    batch_size: int,
) -> Move:
    r"""
    One sweep over random batches of points, each by Metropolis–Hastings.

    All points of a batch B are taken out, and each is seated as if it were the only one to return,
    with the weights of Neal's Algorithm 3 given the others,

    .. math:: q_i(c) \propto (n_{-B,c} - d)\, p(x_i \mid x_{-B,c}), \quad
        q_i(\text{new}) \propto (α + d K_{-B})\, p(x_i);

    those that want a new cluster share one. The new labels of the batch are accepted together with
    probability min(1, p(c') Π q(c_i) / p(c) Π q(c'_i)), where p is their posterior given the
    others; that is near 1 if the clusters are large beside the batch. Two clusters of a batch's own
    could not have been proposed: where there are, their points stay, and the others of the batch
    go to clusters outside it. Before, between and after the batches a random point is seated alone,
    by Algorithm 3, so that every partition can be left and reached.
    """
    slots = jnp.arange(num_slots)
    key_order, key_seats, key_accept, key_one, key_seat_one = random.split(key, 5)
    order = random_batches(key_order, points.size, batch_size)
    number, batch_size = order.shape
    uniforms = random.uniform(key_seats, (number, batch_size))
    # whether more slots would have been wanted, and whether the labels are accepted
    of_batch = random.uniform(key_accept, (number, 2))
    # the points that are seated alone, and two numbers for each as above
    singles = random.randint(key_one, (number + 1,), 0, points.size)
    of_single = random.uniform(key_seat_one, (number + 1, 2))
    triangle = jnp.triu(jnp.ones((num_slots, num_slots)))

    def only_where(some: Array, clusters: Any) -> Any:
        return jax.tree.map(
            lambda x: jnp.where(some.reshape(-1, *[1] * (x.ndim - 1)), x, jnp.zeros_like(x)),
            clusters,
        )

    def log_posterior(rest: Any, sizes: Array, mine: Any, counts: Array) -> Array:
        """Of the batch, seated by cluster with these counts and statistics, given the rest."""
        log_prob = family.log_marginal(mine)
        log_prob += jnp.where(sizes > 0, family.log_union(rest, family.for_union(mine)), 0.0)
        log_prior = jnp.where(
            sizes > 0,
            log_gamma_ratio(jnp.maximum(sizes, 1) - prior.discount, counts.astype(float)),
            prior.log_open(jnp.sum(sizes > 0))
            + log_gamma_ratio(1.0 - prior.discount, jnp.maximum(counts, 1) - 1.0),
        )
        return jnp.where(counts > 0, log_prob + log_prior, 0.0).sum()

    def step(carry: tuple, inputs: tuple) -> tuple[tuple, tuple[Array, Array]]:
        labels, clusters, sizes = carry
        index, uniform, (uniform_new, uniform_accept), single = inputs
        batch, old = take(points.statistics, index), labels[index]
        of_old = family.of_clusters(batch, old, num_slots)
        old_counts = count_by_label(old, num_slots)
        left = sizes - old_counts
        # of a cluster that nobody is left in, subtraction leaves rounding
        rest = only_where(left > 0, family.subtract(clusters, of_old))
        # a new cluster takes the slot of the one that the batch had to itself
        own = (left == 0) & (old_counts > 0)
        new = jnp.where(own.any(), jnp.argmax(own), jnp.argmin(left > 0))
        is_full = jnp.all(left > 0)
        stays = own[old] & (own.sum() > 1)
        can_open = ~is_full & (own.sum() < 2)
        # (slots, batch): sums over the first axis are what CPUs do fast
        log_weights = prior.log_join(left)[:, None] + family.log_predictive(
            jax.tree.map(lambda x: x[:, None], rest), jax.tree.map(lambda x: x[None], batch)
        )
        log_new = prior.log_open(jnp.sum(left > 0)) + points.log_alone[index]
        log_weights = jnp.where((left > 0)[:, None], log_weights, -jnp.inf)
        log_weights = jnp.where(((slots == new) & can_open)[:, None], log_new, log_weights)

        largest = log_weights.max(0)
        seats, total = choose(jnp.exp(log_weights - largest), uniform)
        seats = jnp.where(stays, old, seats)
        # log(1 + new / others): that a point had not wanted a new one
        log_content = jax.nn.softplus(log_new - largest - jnp.log(total)).sum()
        wanted = is_full & (jnp.log(uniform_new) > -log_content)

        of_new = family.of_clusters(batch, seats, num_slots)
        new_counts = count_by_label(seats, num_slots)
        log_accept = log_posterior(rest, left, of_new, new_counts)
        log_accept -= log_posterior(rest, left, of_old, old_counts)
        every = jnp.arange(batch_size)
        log_backward = log_weights[old, every] - log_weights[seats, every]
        log_accept += jnp.sum(jnp.where(stays, 0.0, log_backward))
        # points that cannot be together
        log_accept = jnp.where(jnp.isnan(log_accept), -jnp.inf, log_accept)
        accepted = jnp.log(uniform_accept) < log_accept
        joined = family.add(rest, of_new)
        clusters = jax.tree.map(lambda x, y: jnp.where(accepted, x, y), joined, clusters)
        sizes = jnp.where(accepted, left + new_counts, sizes)
        labels = labels.at[index].set(jnp.where(accepted, seats, old))
        carry, wanted_alone = seat_alone((labels, clusters, sizes), single)
        return carry, (jnp.exp(jnp.minimum(log_accept, 0.0)), wanted | wanted_alone)

    def seat_alone(carry: tuple, single: tuple) -> tuple[tuple, Array]:
        """A point by Algorithm 3, given all others."""
        labels, clusters, sizes = carry
        index, (uniform, uniform_new) = single
        point, old = take(points.statistics, index), labels[index]
        left = sizes.at[old].add(-1)
        rest = family.subtract(take(clusters, old), point)
        rest = jax.tree.map(lambda x: jnp.where(left[old] > 0, x, jnp.zeros_like(x)), rest)
        clusters = put(clusters, old, rest)
        log_weights = prior.log_join(left) + family.log_predictive(clusters, repeat(point, 1))
        log_weights = jnp.where(left > 0, log_weights, -jnp.inf)
        is_full = jnp.all(left > 0)
        new = jnp.where(left[old] > 0, jnp.argmin(left > 0), old)
        log_new = prior.log_open(jnp.sum(left > 0)) + points.log_alone[index]
        wanted_new = jax.nn.sigmoid(log_new - jax.nn.logsumexp(log_weights)) > uniform_new
        log_weights = jnp.where((slots == new) & ~is_full, log_new, log_weights)
        weights = jnp.exp(log_weights - log_weights.max())
        sums = weights @ triangle
        target = (1.0 - uniform) * sums[-1]
        seat = jnp.argmax((sums >= target) & (weights > 0)).astype(labels.dtype)
        joined = family.add(take(clusters, seat), point)
        carry = labels.at[index].set(seat), put(clusters, seat, joined), left.at[seat].add(1)
        return carry, is_full & wanted_new

    clusters = family.of_clusters(points.statistics, labels, num_slots)
    sizes = count_by_label(labels, num_slots)
    alone = singles, tuple(of_single.T)
    start = labels, clusters, sizes
    start, wanted_first = seat_alone(start, jax.tree.map(lambda x: x[0], alone))
    inputs = order, uniforms, tuple(of_batch.T), jax.tree.map(lambda x: x[1:], alone)
    carry, (accept_prob, wanted) = jax.lax.scan(step, start, inputs)
    return Move(carry[0], accept_prob.mean(), wanted.any() | wanted_first)


def choose(weights: Array, uniform: Array) -> tuple[Array, Array]:
    """One seat for each column with probability ∝ its weights, (C, B), and their sums, (B,).

    Never a seat of weight 0: the target is positive, and at most the sum that is reached last.
    """
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
    """Numbers of the points in batches, no point twice in one: (number of batches, batch size).

    Random rotations of the columns of a fixed table, for XLA sorts slowly on CPUs. Where the size
    is no multiple, the last row ends as the first does, and the columns keep the two apart.
    """
    batch_size = min(batch_size, max(size // 2, 1))
    number = -(-size // batch_size)
    fixed = np.random.default_rng(0).permutation(size).astype(np.int32)
    left = size - (number - 1) * batch_size
    table = np.concatenate([fixed, fixed[left:batch_size]]).reshape(number, batch_size)
    key_shift, key_sign = random.split(key)
    shifts = random.randint(key_shift, (batch_size,), 0, number)
    sign = random.rademacher(key_sign, (), jnp.int32)  # so that a sweep is reversible
    rows = (sign * jnp.arange(number)[:, None] + shifts) % number
    return jnp.asarray(table)[rows, jnp.arange(batch_size)]
