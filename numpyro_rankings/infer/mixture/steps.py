"""Metropolis-Hastings steps of clusters with the labels integrated out.

References are numbered as in ``label_free.py``.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random

from numpyro_rankings.infer.mixture.target import Kind, Mixture, StepDraw, Target
from numpyro_rankings.ops.sampling import draw_together

_STEPS_OF_BLOCK = 8  # the two clusters should settle, and choosing them costs some steps


def choose_kinds(uniforms: Array, kinds: np.ndarray) -> Array:
    """Choose one of the kinds for each uniform number."""
    table = jnp.asarray(kinds)
    return table[jnp.minimum((uniforms * len(kinds)).astype(jnp.int32), len(kinds) - 1)]


def log_uniform(uniforms: Array, low: Array | float, high: Array | float) -> Array:
    """Map uniform numbers to numbers whose logarithms are uniform between low and high."""
    return low * jnp.exp(uniforms * jnp.log(high / low))


def transform_uniforms(uniforms: Array) -> tuple[Array, Array, Array]:
    """Return ``takes_second``, ``log_odds`` and ``log_uniform`` of steps, from (steps, 3)."""
    for_second, for_share, for_decision = uniforms.T
    return for_second < 0.5, jnp.log(for_share / (1.0 - for_share)), jnp.log(for_decision)


def nth(mask: Array, n: Array) -> Array:
    """Return the index of the n-th true entry."""
    return jnp.argmax(jnp.cumsum(mask) > n)


class Block(NamedTuple):
    """Two slots whose clusters change while all others stay."""

    slots: Array  # (2,); the second may be out of range, where it is not usable
    usable: Array  # whether the second slot may hold a cluster
    others: Array  # density of the rows under all other clusters, relative to the start, (rows,)
    num_others: Array  # number of these clusters


def choose_block(target: Target, mixture: Mixture, uniforms: Array) -> Block:
    """Choose a cluster of A and another; in a process, half of the time a free slot instead."""
    free_chance = 0.5 if target.partition.num_components is None else 0.0
    active = mixture.log_shares > -jnp.inf
    free = ~active & ~target.large.small
    number, num_free = active.sum(), free.sum()
    first = jnp.minimum((uniforms[0] * number).astype(jnp.int32), number - 1)
    second = jnp.minimum((uniforms[1] * (number - 1)).astype(jnp.int32), number - 2)
    third = jnp.minimum((uniforms[1] * num_free).astype(jnp.int32), num_free - 1)
    is_free = uniforms[2] < free_chance
    other = jnp.where(is_free, nth(free, third), nth(active, second + (second >= first)))
    usable = jnp.where(is_free, num_free > 0, number > 1)
    slots = jnp.stack([nth(active, first), jnp.where(usable, other, len(active))])
    shares = jnp.exp(mixture.log_shares).at[slots].set(0.0, mode="drop")
    others = jnp.dot(shares, mixture.table, precision="highest")
    return Block(slots, usable, others, jnp.sum(shares > 0))


class PairShares(NamedTuple):
    """New shares of the two clusters of a block, and what a step needs to know of them.

    ``log_split`` is log(s / k), with s the share of both clusters and k the number of all while
    these are separate: the log ratio of the proposals, merge over split, without parameters.
    """

    log_shares: Array  # (2,)
    possible: Array  # whether there is such a step
    log_split: Array
    log_jacobian: Array  # log Jacobian of a trade


def propose_shares(
    block: Block, log_shares: Array, kind: Kind, second: Array, draw: StepDraw
) -> PairShares:
    """Propose shares of the clusters c and d of a block: a uniform split, a sum, or other odds."""
    # A split and the merge that undoes it are steps of the same block. Two of k clusters are chosen
    # with probability 1/2 · 2 / (k (k - 1)); one of k - 1 clusters, with one of f free slots, with
    # probability 1/2 · 1 / ((k - 1) f). The f free slots are exchangeable, and a merge keeps c with
    # probability 1/2. A split draws the share of c uniformly. Together the ratio is s / k.
    both = jnp.logaddexp(log_shares[0], log_shares[1])
    log_odds = log_shares[0] - log_shares[1] + draw.scale * draw.normals[-1]
    log_odds = jnp.where(kind.splits, draw.log_odds, log_odds)
    divided = both - jnp.logaddexp(0.0, jnp.array([-1.0, 1.0]) * log_odds)
    is_c = (jnp.arange(2) == 1) == second
    new = jnp.where(kind.trades | kind.splits, divided, log_shares)
    new = jnp.where(kind.merges, jnp.where(is_c, both, -jnp.inf), new)
    has_two = kind.splits | jnp.all(log_shares > -jnp.inf)
    possible = jnp.where(kind.trades, has_two, block.usable | ~kind.splits)
    log_split = both - jnp.log(block.num_others + 2.0)
    log_jacobian = jnp.where(kind.trades, jnp.sum(new - log_shares), 0.0)
    return PairShares(new, possible, log_split, log_jacobian)


def step_in_block(target: Target, block: Block, mixture: Mixture, draw: StepDraw) -> Mixture:
    """Make one Metropolis-Hastings step on a cluster c, or on both clusters of a block [1, 2]."""
    has_two = jnp.all(mixture.log_shares > -jnp.inf)
    resizes, trades = draw.kind
    kind = Kind(splits=resizes & ~has_two, merges=resizes & has_two, trades=trades)
    second = jnp.where(has_two, draw.takes_second, mixture.log_shares[1] > -jnp.inf)
    shares = propose_shares(block, mixture.log_shares, kind, second, draw)

    def of(second: Array) -> Any:
        return jax.tree.map(lambda x: jnp.where(second, x[1], x[0]), mixture.parameters)

    proposal = target.clusters.propose(of(second), of(~second), kind, draw)
    changes_second = second ^ kind.splits
    slot = jnp.where(changes_second, block.slots[1], block.slots[0])
    row = target.row(proposal.parameters, slot)

    def put(new: Array, old: Array) -> Array:
        is_new = (jnp.arange(2) == 1) == changes_second
        return jnp.where(is_new.reshape(2, *(1,) * new.ndim), new, old)

    table = put(row, mixture.table)
    weights = jnp.exp(shares.log_shares)
    log_prior = target.clusters.log_prior(jax.tree.map(lambda x: x[None], proposal.parameters))[0]
    new = Mixture(
        jax.tree.map(put, proposal.parameters, mixture.parameters),
        put(log_prior, mixture.log_priors),
        shares.log_shares,
        table,
        block.others + weights[0] * table[0] + weights[1] * table[1],
    )
    log_accept = target.large.log_likelihood_ratio(new.density, mixture.density)
    log_accept += target.log_prior(new.log_priors, new.log_shares)
    log_accept -= target.log_prior(mixture.log_priors, mixture.log_shares)
    log_split = shares.log_split - proposal.log_density
    log_accept += jnp.where(kind.splits, log_split, jnp.where(kind.merges, -log_split, 0.0))
    log_accept += proposal.log_jacobian + shares.log_jacobian
    accepted = shares.possible & (draw.log_uniform < log_accept)
    return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, mixture)


def metropolis_steps(key: Array, target: Target, mixture: Mixture, draws: StepDraw) -> Mixture:
    """Make steps one after another, in blocks that each change two slots only."""
    # A step then costs the rows of two clusters. Steps that do not fill a block are left out.
    block_size = min(_STEPS_OF_BLOCK, len(draws.scale))
    num_blocks = len(draws.scale) // block_size
    draws = jax.tree.map(
        lambda x: x[: num_blocks * block_size].reshape(num_blocks, block_size, *x.shape[1:]), draws
    )

    def make_block(mixture: Mixture, x: tuple[Array, StepDraw]) -> tuple[Mixture, None]:
        uniforms, draws = x
        block = choose_block(target, mixture, uniforms)
        pair, _ = jax.lax.scan(
            lambda pair, draw: (step_in_block(target, block, pair, draw), None),
            _take(block, mixture),
            draws,
        )
        return _put_back(block, mixture, pair), None

    (for_blocks,) = draw_together(random.uniform, key, (num_blocks, 3))
    return jax.lax.scan(make_block, mixture, (for_blocks, draws))[0]


def _take(block: Block, mixture: Mixture) -> Mixture:
    """Return the clusters of a block, with the density of the whole mixture."""
    by_slot = mixture._asdict() | {"density": block.slots}
    pair = Mixture(**jax.tree.map(lambda x: x[block.slots], by_slot))
    there = block.usable | (jnp.arange(2) == 0)
    log_shares = jnp.where(there, pair.log_shares, -jnp.inf)
    return pair._replace(log_shares=log_shares, density=mixture.density)


def _put_back(block: Block, mixture: Mixture, pair: Mixture) -> Mixture:
    def put(x: Array, values: Array) -> Array:
        return x.at[block.slots].set(values, mode="drop")

    without = pair._replace(density=block.slots)
    new = jax.tree.map(put, mixture._replace(density=block.slots), without)
    return new._replace(density=pair.density)
