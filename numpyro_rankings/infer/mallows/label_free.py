"""Moves of generalized Mallows clusters with the labels integrated out, see ``marginal``."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random

from numpyro_rankings.infer.mallows.concentrations import ConcentrationPrior
from numpyro_rankings.infer.mallows.data import (
    MallowsData,
    codes_by_stage,
    log_row_likelihoods,
    log_row_of_codes,
)
from numpyro_rankings.infer.mixture.label_free import (
    Large,
    choose_large,
    choose_pair,
    leapfrog_steps,
    log_prior_of_shares,
    relative,
    trajectory,
)
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.ops.codes import inverse_ordering, ordering_from_codes
from numpyro_rankings.ops.sampling import sample_truncated_geometric
from numpyro_rankings.ops.special import log_psi
from numpyro_rankings.ops.sums import count_by_label

# Kinds of steps; a split is as probable as a merge.
_CONCENTRATION, _CENTER, _BOTH, _SHARE, _SPLIT, _MERGE = range(6)
_KINDS = np.array([_CONCENTRATION] * 2 + [_CENTER, _BOTH, _SHARE, _SHARE] + [_SPLIT, _MERGE] * 2)
_KINDS_OF_FIXED_NUMBER = _KINDS[:6]


class Mixture(NamedTuple):
    """What the moves change, in the W slots of A and of the clusters that may join it.

    - **center**, **concentration** - (W, n), (W, T).
    - **log_shares** - log w, (W,), -inf outside A.
    - **table** - probability of each row in each cluster, over that of the row at the start,
      (W, rows).
    - **density** - of each row under the mixture, over that at the start, (rows,).
    """

    center: Array
    concentration: Array
    log_shares: Array
    table: Array
    density: Array


class Proposals(NamedTuple):
    """What the steps need of randomness, one entry each.

    - **kind** - of the step.
    - **uniforms** - for the first and second cluster, the share of a split, and the decision.
    - **scale** - standard deviation of the changes of log θ and of the log odds of shares.
    - **normals** - (steps, T + 1).
    - **rearrangement** - of the places of a center, (steps, n), drawn around the identity with
      probability ∝ exp(-``dispersal`` · inversions); **log_constant** is its normaliser.
    """

    kind: Array
    uniforms: Array
    scale: Array
    normals: Array
    rearrangement: Array
    dispersal: Array
    log_constant: Array


def draw_proposals(
    key: Array, num_steps: int, num_items: int, num_stages: int, kinds: np.ndarray, tied: bool
) -> Proposals:
    """Proposals of all sizes, for nobody knows which one the data need."""
    keys = random.split(key, 6)
    kind = jnp.asarray(kinds)[random.randint(keys[0], (num_steps,), 0, len(kinds))]
    uniforms = random.uniform(keys[1], (num_steps, 4))
    splits = kind >= _SPLIT  # a new cluster is tried further away

    def log_uniform(key: Array, low: Array, high: Array) -> Array:
        return jnp.log(low) + random.uniform(key, (num_steps,)) * jnp.log(high / low)

    scale = jnp.exp(log_uniform(keys[2], jnp.where(splits, 0.3, 0.02), jnp.array(2.0)))
    normals = random.normal(keys[3], (num_steps, num_stages + 1))
    if tied:
        normals = normals.at[:, :-1].set(normals[:, :1])
    # about λ of the n - 1 stages of a rearrangement have a positive code
    log_mean = log_uniform(
        keys[4], jnp.where(splits, 0.5, 0.1), jnp.where(splits, 4.0 * num_items, 3.0)
    )
    dispersal = jnp.maximum(math.log(num_items - 1) - log_mean, 0.0)
    limits = jnp.arange(num_items - 1, 0, -1)
    codes = sample_truncated_geometric(keys[5], dispersal[:, None], limits)
    identity = jnp.arange(num_items)
    rearrangement = ordering_from_codes(jnp.pad(codes, ((0, 0), (0, 1))), identity)
    log_constant = log_psi(dispersal[:, None], limits).sum(1)
    return Proposals(kind, uniforms, scale, normals, rearrangement, dispersal, log_constant)


class Target(NamedTuple):
    """The density that the moves leave invariant.

    - **large** - A, and the slots that may join it.
    - **start** - log density of each row at the start, (rows,).
    - **log_scale** - log of β p(σ) times the constant of p(θ).
    - **partition**, **prior**, **data**, **limits** - as in a sweep.
    """

    large: Large
    start: Array
    log_scale: Array
    partition: PartitionPrior
    prior: ConcentrationPrior
    data: MallowsData
    limits: Array

    @property
    def free_stages(self) -> Array:
        """Stages whose concentration is free to differ from the first one's, (T,) bool."""
        stages = jnp.arange(len(self.limits))
        return stages < (1 if self.prior.tied else len(self.limits))

    @property
    def items(self) -> Array:
        """Items of the rows, stages first, (T, rows); arbitrary on padding."""
        return jnp.maximum(self.data.orderings, 0).T

    def row_codes(self, center: Array) -> Array:
        """Codes of every row under one center, (T, rows); arbitrary on padding."""
        return codes_by_stage(inverse_ordering(center)[self.items])

    def row_of_codes(self, codes: Array, theta: Array) -> Array:
        """Probability of every row in one cluster, over that at the start, (rows,)."""
        log_psis = log_psi(theta, self.limits)
        return relative(log_row_of_codes(codes, self.data.listed.T, theta, log_psis), self.start)

    def row(self, center: Array, theta: Array) -> Array:
        """The same, given the center."""
        return relative(self.log_row(center, theta), self.start)

    def log_row(self, center: Array, theta: Array) -> Array:
        """Log probability of every row in one cluster, (rows,)."""
        places, log_psis = inverse_ordering(center), log_psi(theta, self.limits)
        return log_row_likelihoods(self.items, self.data.listed.T, places, theta, log_psis)

    def log_prior(self, theta: Array, log_shares: Array) -> Array:
        """Log of all but the likelihood."""
        each = self.log_scale + self.prior.log_kernel(theta, self.limits)
        return log_prior_of_shares(self.large, self.partition, each, log_shares)


def _num_inversions(places: Array) -> Array:
    """Pairs out of order, the Kendall distance to the identity."""
    return jnp.sum(jnp.triu(places[:, None] > places, k=1))


def step(target: Target, now: Mixture, draw: Proposals) -> Mixture:
    """One Metropolis-Hastings step on a cluster c, or on two of them, c and d."""
    splits, merges, trades = draw.kind == _SPLIT, draw.kind == _MERGE, draw.kind == _SHARE
    moves_theta = (draw.kind == _CONCENTRATION) | (draw.kind == _BOTH)
    moves_center = (draw.kind == _CENTER) | (draw.kind == _BOTH)
    log_odds_step = draw.scale * draw.normals[-1]
    pair = choose_pair(
        target.large, now.log_shares, draw.uniforms, log_odds_step, splits, merges, trades
    )
    c, d, log_shares = pair.c, pair.d, pair.log_shares
    theta_c, center_c = now.concentration[c], now.center[c]

    # a cluster with parameters around those of c; in a merge, the one that is there
    change = draw.scale * draw.normals[:-1]
    change = jnp.where(merges, jnp.log(now.concentration[d] / theta_c), change)
    order = jnp.where(merges, inverse_ordering(center_c)[now.center[d]], draw.rearrangement)
    theta = jnp.where(moves_theta | splits, theta_c * jnp.exp(change), theta_c)
    center = jnp.where(moves_center | splits, center_c[order], center_c)
    log_density = -0.5 * (change / draw.scale) ** 2 - jnp.log(draw.scale * math.sqrt(2 * math.pi))
    log_density = jnp.where(target.free_stages, log_density - jnp.log(theta_c) - change, 0.0).sum()
    log_density -= draw.dispersal * _num_inversions(order) + draw.log_constant

    # Jacobians of log θ and of the log odds
    log_split = pair.log_split - log_density
    log_accept = jnp.where(splits, log_split, jnp.where(merges, -log_split, 0.0))
    log_accept += jnp.where(moves_theta, jnp.sum(jnp.where(target.free_stages, change, 0.0)), 0.0)
    log_accept += pair.log_jacobian

    place = jnp.where(splits, d, c)
    here = jnp.arange(len(log_shares)) == place
    # the barrier keeps XLA from computing the row once for each slot
    row = jax.lax.optimization_barrier(target.row(center, theta))
    shares = jnp.exp(log_shares)
    density = jnp.dot(jnp.where(here, 0.0, shares), now.table, precision="highest")
    density += shares[place] * row
    all_theta = jnp.where(here[:, None], theta, now.concentration)
    log_accept += target.large.log_gain(density, now.density)
    log_accept += target.log_prior(all_theta, log_shares)
    log_accept -= target.log_prior(now.concentration, now.log_shares)
    accepted = pair.possible & (jnp.log(draw.uniforms[3]) < log_accept)

    def put(new: Array, old: Array) -> Array:
        return jnp.where((here & accepted)[:, None], new, old)

    return Mixture(
        put(center, now.center),
        put(theta, now.concentration),
        jnp.where(accepted, log_shares, now.log_shares),
        put(row, now.table),
        jnp.where(accepted, density, now.density),
    )


def glide(key: Array, target: Target, now: Mixture) -> Mixture:
    """Hamiltonian Monte Carlo on all log θ and log shares, the centers as they are [3].

    The shares are those of positive masses whose log total is standard normal.
    """
    key_total, key_theta, key_shares, key_size, key_accept = random.split(key, 5)
    active = now.log_shares > -jnp.inf
    moving = active[:, None] & target.free_stages
    codes = jax.lax.map(target.row_codes, now.center).astype(float)

    def mixture(position: tuple[Array, Array]) -> Mixture:
        log_theta, log_masses = position
        theta = jnp.exp(log_theta[:, :1] if target.prior.tied else log_theta)
        theta = jnp.broadcast_to(theta, log_theta.shape)
        log_shares = jax.nn.log_softmax(jnp.where(active, log_masses, -jnp.inf))
        log_shares = jnp.where(active, log_shares, -jnp.inf)
        table = jax.vmap(target.row_of_codes)(codes, theta)
        density = jnp.dot(jnp.exp(log_shares), table, precision="highest")
        return Mixture(now.center, theta, log_shares, table, density)

    def log_density(position: tuple[Array, Array]) -> Array:
        proposal = mixture(position)
        log_theta, log_masses = position
        log_total = jax.nn.logsumexp(jnp.where(active, log_masses, -jnp.inf))
        jacobian = jnp.sum(jnp.where(moving, log_theta, 0.0))
        jacobian += jnp.sum(jnp.where(active, proposal.log_shares, 0.0)) - 0.5 * log_total**2
        gain = target.large.log_gain(proposal.density, now.density)
        return gain + target.log_prior(proposal.concentration, proposal.log_shares) + jacobian

    log_total = random.normal(key_total)
    log_masses = jnp.where(active, now.log_shares, 0.0) + log_total
    position = (jnp.log(now.concentration), log_masses)
    momentum = (
        jnp.where(moving, random.normal(key_theta, moving.shape), 0.0),
        jnp.where(active, random.normal(key_shares, active.shape), 0.0),
    )
    size, length = leapfrog_steps(key_size, target.large, active)
    moves = moving, active
    new_position, accepted = trajectory(
        key_accept, position, momentum, moves, log_density, size, length
    )
    proposal = mixture(new_position)
    return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), proposal, now)


def update_marginally(
    key: Array,
    now: dict[str, Array],
    partition: PartitionPrior,
    prior: ConcentrationPrior,
    data: MallowsData,
    limits: Array,
    num_steps: int,
    largest_minimum: int | None = None,
    glides: bool = True,
) -> dict[str, Array]:
    """Move the clusters above a random size with the labels integrated out, then draw those.

    :param now: ``assignments`` (N,), ``center`` (C, n), ``concentration`` (C, T).
    :param num_steps: Metropolis-Hastings steps.
    :param largest_minimum: m is at most this, by default N/200.
    :param glides: whether a Hamiltonian trajectory follows, in the same way.
    :return: the same after the moves. Slots that have become empty hold leftovers.
    """
    num_items, num_stages = now["center"].shape[1], now["concentration"].shape[1]
    kinds = _KINDS if partition.num_components is None else _KINDS_OF_FIXED_NUMBER

    def steps(key: Array, target: Target, mixture: Mixture) -> Mixture:
        draws = draw_proposals(key, num_steps, num_items, num_stages, kinds, prior.tied)
        return jax.lax.scan(lambda m, draw: (step(target, m, draw), None), mixture, draws)[0]

    key_steps, key_glide = random.split(key)
    settings = partition, prior, data, limits, largest_minimum
    now = _without_labels(key_steps, now, steps, *settings)
    return _without_labels(key_glide, now, glide, *settings) if glides else now


def _without_labels(
    key: Array,
    now: dict[str, Array],
    move: Callable[[Array, Target, Mixture], Mixture],
    partition: PartitionPrior,
    prior: ConcentrationPrior,
    data: MallowsData,
    limits: Array,
    largest_minimum: int | None,
) -> dict[str, Array]:
    """Choose A, draw its shares, make a reversible move, and draw the labels of A."""
    labels = now["assignments"]
    num_slots, num_items = now["center"].shape
    fixed_number = partition.num_components is not None
    key_empty, key_minimum, key_shares, key_move, key_labels = random.split(key, 5)
    sizes = count_by_label(labels, num_slots)
    if fixed_number:
        # the empty components may hold leftovers too
        key_center, key_theta = random.split(key_empty)
        fresh = {
            "center": jnp.argsort(random.uniform(key_center, now["center"].shape), axis=1),
            "concentration": prior.draw(key_theta, num_slots, limits),
        }
        for name, value in fresh.items():
            kept = jnp.where(sizes[:, None] > 0, now[name], value)
            now = {**now, name: kept.astype(now[name].dtype)}

    settings = data.row_index, data.orderings.shape[0], num_slots, largest_minimum
    large = choose_large(key_minimum, key_shares, labels, partition, *settings)
    slots = large.slots
    log_scale = prior.log_constant(len(slots), num_items, limits) - math.lgamma(num_items + 1.0)
    if not fixed_number:
        log_scale += jnp.log(partition.alpha)

    target = Target(
        large=large,
        start=jnp.zeros(data.orderings.shape[0]),
        log_scale=log_scale,
        partition=partition,
        prior=prior,
        data=data,
        limits=limits,
    )

    center, theta = now["center"][slots], now["concentration"][slots]
    log_table = jax.lax.map(lambda parameters: target.log_row(*parameters), (center, theta))
    start, table = large.start(log_table)
    target = target._replace(start=start)
    mixture = move(
        key_move, target, Mixture(center, theta, large.log_shares, table, jnp.ones_like(start))
    )

    new_labels, valid = large.draw_labels(
        key_labels, labels, data.row_index, mixture.table, mixture.log_shares
    )
    changed = {
        "assignments": new_labels,
        "center": now["center"].at[slots].set(mixture.center),
        "concentration": now["concentration"].at[slots].set(mixture.concentration),
    }
    return jax.tree.map(lambda a, b: jnp.where(valid, a, b), changed, now)
