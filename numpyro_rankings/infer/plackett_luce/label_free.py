"""Moves of Plackett–Luce clusters with the labels integrated out, see ``marginal``."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random

from numpyro_rankings.infer.mixture.label_free import (
    choose_large,
    choose_pair,
    leapfrog_steps,
    number_of_moves,
    trajectory,
)
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.plackett_luce.fitted_splits import draw_split_proposals, split_or_merge
from numpyro_rankings.infer.plackett_luce.target import Mixture, Target, WeightsPrior
from numpyro_rankings.ops.choices import Choices, can_be_designed, cells_if_tabled, design_if_small
from numpyro_rankings.ops.loops import shared_bound

# Kinds of steps; a split is as probable as a merge.
_WEIGHTS, _SHARE, _SPLIT, _MERGE = range(4)
_KINDS = np.array([_WEIGHTS] * 2 + [_SHARE] * 2 + [_SPLIT, _MERGE] * 2)
_KINDS_OF_FIXED_NUMBER = _KINDS[:4]
# What pays beside a sweep that is cheap, where there is a table of rows and sets of items and where
# there is none: in a trajectory rows times slots times stages; rows in all steps of a sweep.
_MOST_IN_GLIDE, _MOST_ROWS = (2**18, 2**15), (2**19, 2**18)
# A fitted split evaluates up to four dozen rows with their slopes, a step evaluates one.
_STEPS_A_FITTED_SPLIT, _MOST_FITTED_SPLITS = 50, 8
_MOST_NORMALS = 2**22  # that the steps of a sweep may need
_LEAST_FLIPS, _MOST_FLIPS = 0.02, 0.5  # chance that an atom of one is none of the other


class Proposals(NamedTuple):
    """What the steps need of randomness, one entry each.

    - **kind** - of the step.
    - **uniforms** - for the first and second cluster, the share of a split, and the decision.
    - **scale** - standard deviation of the changes of log weights and of the log odds of shares.
    - **normals** - (steps, K + 1), and **moves** - which of the weights a step changes, (steps, K).
    - **flip_chance** - chance that an atom of a cluster is none of its offspring, or the other way
      round; **flips** - (steps, K) bool; **log_atoms** - of those that come up, (steps, K).
    """

    kind: Array
    uniforms: Array
    scale: Array
    normals: Array
    moves: Array
    flip_chance: Array
    flips: Array
    log_atoms: Array


def draw_proposals(
    key: Array, num_steps: int, num_items: int, kinds: np.ndarray, prior: WeightsPrior
) -> Proposals:
    """Proposals of all sizes, for nobody knows which one the data need."""
    keys = random.split(key, 8)
    kind = jnp.asarray(kinds)[random.randint(keys[0], (num_steps,), 0, len(kinds))]
    splits = kind >= _SPLIT  # a new cluster is tried further away

    def log_uniform(key: Array, low: Array | float, high: float) -> Array:
        return low * jnp.exp(random.uniform(key, (num_steps,)) * jnp.log(high / low))

    one = random.randint(keys[4], (num_steps, 1), 0, num_items) == jnp.arange(num_items)
    every = random.bernoulli(keys[5], 0.5, (num_steps, 1))
    chance = log_uniform(keys[6], _LEAST_FLIPS, _MOST_FLIPS) if prior.has_zeros else 0.0
    chance = jnp.broadcast_to(chance, (num_steps,))
    key_flips, key_atoms = random.split(keys[7])
    items = (num_steps, num_items)
    return Proposals(
        kind=kind,
        uniforms=random.uniform(keys[1], (num_steps, 4)),
        scale=log_uniform(keys[2], jnp.where(splits, 0.3, 0.02), 2.0),
        normals=random.normal(keys[3], (num_steps, num_items + 1)),
        moves=one | every,
        flip_chance=chance,
        flips=random.uniform(key_flips, items) < chance[:, None],
        log_atoms=jnp.log(random.exponential(key_atoms, items) / prior.rate),
    )


def log_offspring(
    log_weights: Array, parent: Array, scale: Array, flip_chance: Array, rate: Array | float
) -> Array:
    """Log density of the log weights of a cluster around another one, both (K,)."""
    is_atom, of_parent = log_weights > -jnp.inf, parent > -jnp.inf
    log_same, log_flip = jnp.log1p(-flip_chance), jnp.log(jnp.maximum(flip_chance, 1e-30))
    log_density = jnp.where(is_atom == of_parent, log_same, log_flip)
    value, center = jnp.where(is_atom, log_weights, 0.0), jnp.where(of_parent, parent, 0.0)
    moved = -0.5 * ((value - center) / scale) ** 2 - jnp.log(scale * math.sqrt(2 * math.pi))
    came = jnp.log(rate) + value - rate * jnp.exp(value)
    log_density += jnp.where(is_atom, jnp.where(of_parent, moved, came), 0.0)
    return log_density.sum()


def step(target: Target, now: Mixture, draw: Proposals) -> Mixture:
    """One Metropolis-Hastings step on a cluster c, or on two of them, c and d."""
    splits, merges, trades = draw.kind == _SPLIT, draw.kind == _MERGE, draw.kind == _SHARE
    log_odds_step = draw.scale * draw.normals[-1]
    kinds = splits, merges, trades
    pair = choose_pair(
        target.large, now.log_shares, draw.uniforms, log_odds_step, *kinds, any_free=True
    )
    c, d = pair.c, pair.d
    parent = now.log_weights[c]
    is_atom = parent > -jnp.inf

    # weights around those of c; in a merge, those of the cluster that is there
    change = draw.scale * draw.normals[:-1]
    offspring = jnp.where(is_atom, parent + change, draw.log_atoms)
    offspring = jnp.where(is_atom ^ draw.flips, offspring, -jnp.inf)
    changed = jnp.where(draw.moves, parent + change, parent)
    log_weights = jnp.where(splits, offspring, jnp.where(trades | merges, parent, changed))
    of_pair = jnp.where(merges, now.log_weights[d], offspring)
    log_density = log_offspring(of_pair, parent, draw.scale, draw.flip_chance, target.prior.rate)

    # the target is one of log weights; the Jacobian is that of the log odds
    log_split = pair.log_split - log_density
    log_accept = jnp.where(splits, log_split, jnp.where(merges, -log_split, 0.0))
    log_accept += pair.log_jacobian

    place = jnp.where(splits, d, c)
    here = jnp.arange(len(now.log_shares)) == place
    # the barrier keeps XLA from computing the row once for each slot
    row = jax.lax.optimization_barrier(target.row(log_weights, target.unseen[place]))
    shares = jnp.exp(pair.log_shares)
    density = jnp.dot(jnp.where(here, 0.0, shares), now.table, precision="highest")
    density += shares[place] * row
    log_prior = target.prior.log_density(log_weights[None])[0]
    log_priors = jnp.where(here, log_prior, now.log_priors)
    log_accept += target.large.log_gain(density, now.density)
    log_accept += target.log_prior(log_priors, pair.log_shares)
    log_accept -= target.log_prior(now.log_priors, now.log_shares)
    accepted = pair.possible & (jnp.log(draw.uniforms[3]) < log_accept)

    def put(new: Array, old: Array) -> Array:
        return old.at[place].set(jnp.where(accepted, new, old[place]))

    return Mixture(
        put(log_weights, now.log_weights),
        put(log_prior, now.log_priors),
        jnp.where(accepted, pair.log_shares, now.log_shares),
        put(row, now.table),
        jnp.where(accepted, density, now.density),
    )


def glide(key: Array, target: Target, now: Mixture) -> Mixture:
    """Hamiltonian Monte Carlo on all log weights and log shares.

    The shares are those of positive masses whose log total is standard normal.
    """
    key_total, key_weights, key_shares, key_size, key_accept = random.split(key, 5)
    active = now.log_shares > -jnp.inf
    is_atom = now.log_weights > -jnp.inf
    moving = active[:, None] & is_atom

    def mixture(position: tuple[Array, Array]) -> Mixture:
        log_weights = jnp.where(is_atom, position[0], -jnp.inf)
        log_shares = jax.nn.log_softmax(jnp.where(active, position[1], -jnp.inf))
        log_shares = jnp.where(active, log_shares, -jnp.inf)
        table = jax.vmap(target.row)(log_weights, target.unseen)
        density = jnp.dot(jnp.exp(log_shares), table, precision="highest")
        log_priors = target.prior.log_density(log_weights)
        return Mixture(log_weights, log_priors, log_shares, table, density)

    def log_density(position: tuple[Array, Array]) -> Array:
        proposal = mixture(position)
        log_total = jax.nn.logsumexp(jnp.where(active, position[1], -jnp.inf))
        jacobian = jnp.sum(jnp.where(active, proposal.log_shares, 0.0)) - 0.5 * log_total**2
        gain = target.large.log_gain(proposal.density, now.density)
        return gain + target.log_prior(proposal.log_priors, proposal.log_shares) + jacobian

    log_masses = jnp.where(active, now.log_shares, 0.0) + random.normal(key_total)
    position = (jnp.where(is_atom, now.log_weights, 0.0), log_masses)
    momentum = (
        jnp.where(moving, random.normal(key_weights, moving.shape), 0.0),
        jnp.where(active, random.normal(key_shares, active.shape), 0.0),
    )
    size, length = leapfrog_steps(key_size, target.large, active)
    moves = moving, active
    new_position, accepted = trajectory(
        key_accept, position, momentum, moves, log_density, size, length
    )
    proposal = mixture(new_position)
    return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), proposal, now)


def number_of_steps(
    asked: int | None, choices: Choices, num_rankings: int, num_slots: int, num_items: int
) -> tuple[int, bool]:
    """How many Metropolis-Hastings steps a sweep has, and whether trajectories with them."""
    rows, stages = choices.orderings.shape
    k = 0 if can_be_designed(rows, num_items) else 1
    most = _MOST_IN_GLIDE[k], _MOST_ROWS[k]
    return number_of_moves(asked, num_rankings, rows, stages, num_slots, *most)


def update_weights_marginally(
    key: Array,
    labels: Array,
    log_weights: Array,
    unseen: Array,
    partition: PartitionPrior,
    prior: WeightsPrior,
    choices: Choices,
    row_index: Array,
    num_steps: int,
    largest_minimum: int | None = None,
    glides: bool = True,
) -> tuple[Array, Array]:
    """Move the clusters above a random size with the labels integrated out, then draw those.

    :param labels: (N,), **log_weights** (C, K), -inf where there is no atom, and **unseen** (C,),
        weights, not normalised. Clusters that hold nobody must be draws from the prior.
    :param num_steps: Metropolis-Hastings steps.
    :param largest_minimum: m is at most this, by default N/200.
    :param glides: whether a Hamiltonian trajectory follows, in the same way.
    :return: labels and log weights. Slots that have become empty hold leftovers.
    """
    num_items = log_weights.shape[1]
    kinds = _KINDS if partition.num_components is None else _KINDS_OF_FIXED_NUMBER
    num_steps = min(num_steps, max(_MOST_NORMALS // num_items, 1))

    def steps(key: Array, target: Target, mixture: Mixture) -> Mixture:
        draws = draw_proposals(key, num_steps, num_items, kinds, prior)
        return jax.lax.scan(lambda m, draw: (step(target, m, draw), None), mixture, draws)[0]

    def fitted_splits(key: Array, target: Target, mixture: Mixture) -> Mixture:
        number = min(max(num_steps // _STEPS_A_FITTED_SPLIT, 1), _MOST_FITTED_SPLITS)
        draws = draw_split_proposals(key, number, choices.orderings, row_index, num_items)
        return jax.lax.scan(
            lambda m, draw: (split_or_merge(target, m, draw), None), mixture, draws
        )[0]

    moves: list[Callable[[Array, Target, Mixture], Mixture]] = [steps]
    if partition.num_components is None:
        moves.append(fitted_splits)
    if glides:
        moves.append(glide)
    cells = cells_if_tabled(choices, num_items)
    design = design_if_small(choices, num_items, log_weights.dtype)
    settings = unseen, partition, prior, choices, cells, design, row_index, largest_minimum

    def one(now: tuple[Array, Array], of_move: tuple[Array, Array]) -> tuple:
        key, which = of_move

        def move(key: Array, target: Target, mixture: Mixture) -> Mixture:
            return jax.lax.switch(which, moves, key, target, mixture)

        return _without_labels(key, now, move, *settings), None

    each = random.split(key, len(moves)), jnp.arange(len(moves))
    return jax.lax.scan(one, (labels, log_weights), each)[0]


def _without_labels(
    key: Array,
    now: tuple[Array, Array],
    move: Callable[[Array, Target, Mixture], Mixture],
    unseen: Array,
    partition: PartitionPrior,
    prior: WeightsPrior,
    choices: Choices,
    cells: Array | None,
    design: Array | None,
    row_index: Array,
    largest_minimum: int | None,
) -> tuple[Array, Array]:
    """Choose A, draw its shares, make a reversible move, and draw the labels of A."""
    labels, all_log_weights = now
    key_minimum, key_shares, key_move, key_labels = random.split(key, 4)
    num_rows, num_slots = choices.orderings.shape[0], len(all_log_weights)
    settings = row_index, num_rows, num_slots, largest_minimum
    large = choose_large(key_minimum, key_shares, labels, partition, *settings)
    slots = large.slots
    log_weights, rest = all_log_weights[slots], unseen[slots]
    start = jnp.zeros(num_rows)
    target = Target(large, rest, start, partition, prior, choices, cells, design)

    def one_slot(w: Array, table: Array) -> Array:
        return table.at[w].set(target.log_row(log_weights[w], rest[w]))

    # those of A come first, and what is in the table of the others is not read
    table = jnp.zeros((len(slots), num_rows))
    table = jax.lax.fori_loop(0, shared_bound(large.active.sum()), one_slot, table)
    start, table = large.start(table)
    target = target._replace(start=start)
    log_priors = target.prior.log_density(log_weights)
    shares, density = large.log_shares, jnp.ones_like(start)
    mixture = move(key_move, target, Mixture(log_weights, log_priors, shares, table, density))
    new_labels, valid = large.draw_labels(
        key_labels, labels, row_index, mixture.table, mixture.log_shares
    )
    changed = new_labels, all_log_weights.at[slots].set(mixture.log_weights)
    return jax.tree.map(lambda a, b: jnp.where(valid, a, b), changed, now)
