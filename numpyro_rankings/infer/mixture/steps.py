"""Metropolis-Hastings steps of clusters with the labels integrated out.

References are numbered as in ``label_free.py``.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.infer.mixture.target import (
    ClusterPair,
    Kind,
    Mixture,
    StepDraw,
    Target,
    apply_change,
    propose_change,
)


def choose_kinds(uniforms: Array, kinds: np.ndarray) -> Array:
    """Choose one of the kinds for each uniform number."""
    table = jnp.asarray(kinds)
    return table[jnp.minimum((uniforms * len(kinds)).astype(jnp.int32), len(kinds) - 1)]


def log_uniform(uniforms: Array, low: Array | float, high: Array | float) -> Array:
    """Map uniform numbers to numbers whose logarithms are uniform between low and high."""
    return low * jnp.exp(uniforms * jnp.log(high / low))


def nth(mask: Array, n: Array) -> Array:
    """Return the index of the n-th true entry."""
    return jnp.argmax(jnp.cumsum(mask) > n)


def choose_slots(
    target: Target, log_shares: Array, kind: Kind, uniforms: Array
) -> tuple[Array, Array, Array]:
    """Choose clusters c and d of A; for a split, d is a free slot.

    :return: c, d, and whether there are such slots.
    """
    active = log_shares > -jnp.inf
    number = active.sum()
    first = jnp.minimum((uniforms[0] * number).astype(jnp.int32), number - 1)
    second = jnp.minimum((uniforms[1] * (number - 1)).astype(jnp.int32), number - 2)
    c, d = nth(active, first), nth(active, second + (second >= first))
    free = ~active & ~target.large.small
    # free slots that hold parameters are distinguishable, and a merge can free any of them, so a
    # split chooses one uniformly
    any_free = target.clusters.free_slots_hold_parameters
    which = (uniforms[1] * free.sum()).astype(jnp.int32) if any_free else jnp.array(0)
    d = jnp.where(kind.splits, nth(free, jnp.minimum(which, free.sum() - 1)), d)
    possible = (number >= 1 + (kind.merges | kind.trades)) & (jnp.any(free) | ~kind.splits)
    return c, d, possible


def pair_of(
    slots: tuple[Array, Array, Array], log_shares: Array, kind: Kind, log_odds: Array
) -> ClusterPair:
    """Return the pair with its new shares: those of the log odds or, in a merge, their sum for c.

    :param slots: c, d, and whether there are such slots.
    :param log_odds: of the new shares of c and d, for a split or a trade.
    """
    c, d, possible = slots
    splits, merges, trades = kind
    share_c, share_d = log_shares[c], log_shares[d]
    both = jnp.where(splits, share_c, jnp.logaddexp(share_c, share_d))
    new_c = jnp.where(trades | splits, both + jax.nn.log_sigmoid(log_odds), share_c)
    new_d = jnp.where(trades | splits, both + jax.nn.log_sigmoid(-log_odds), share_d)
    new_c, new_d = jnp.where(merges, both, new_c), jnp.where(merges, -jnp.inf, new_d)
    return ClusterPair(
        kind,
        c,
        d,
        possible,
        log_shares.at[d].set(new_d).at[c].set(new_c),
        # the choice of c for a split, of c and d for a merge
        both - jnp.log(jnp.sum(log_shares > -jnp.inf) + splits),
        jnp.where(trades, new_c + new_d - share_c - share_d, 0.0),
    )


def choose_pair(
    target: Target, log_shares: Array, kind: Kind, uniforms: Array, log_odds_step: Array
) -> ClusterPair:
    """Choose two clusters and their new shares: other odds, a split of c's share, or the sum for c.

    :param log_odds_step: change of the log odds in a trade; a split is uniform.
    """
    slots = c, d, _ = choose_slots(target, log_shares, kind, uniforms)
    log_odds = log_shares[c] - log_shares[d] + log_odds_step
    log_odds = jnp.where(kind.splits, jnp.log(uniforms[2] / (1 - uniforms[2])), log_odds)
    return pair_of(slots, log_shares, kind, log_odds)


def metropolis_step(target: Target, now: Mixture, draw: StepDraw) -> Mixture:
    """Make one Metropolis-Hastings step on a cluster c, or on two clusters c and d [1, 2]."""
    log_odds_step = draw.scale * draw.normals[-1]
    pair = choose_pair(target, now.log_shares, draw.kind, draw.uniforms, log_odds_step)
    splits, merges, _ = pair.kind
    proposal = target.clusters.propose(now.parameters, pair, draw)
    slots = jnp.where(splits, pair.d, pair.c)[None]
    parameters = jax.tree.map(lambda x: x[None], proposal.parameters)
    change, log_accept = propose_change(target, now, slots, parameters, pair.log_shares)
    log_split = pair.log_split - proposal.log_density
    log_accept += jnp.where(splits, log_split, jnp.where(merges, -log_split, 0.0))
    log_accept += proposal.log_jacobian + pair.log_jacobian
    accepted = pair.possible & (jnp.log(draw.uniforms[3]) < log_accept)
    return apply_change(now, change, accepted)


def metropolis_steps(target: Target, now: Mixture, draws: StepDraw) -> Mixture:
    """Make steps one after another.

    :param draws: with a leading axis of steps.
    """
    return jax.lax.scan(lambda m, draw: (metropolis_step(target, m, draw), None), now, draws)[0]
