r"""Metropolis-Hastings steps of a finite mixture with the labels summed out, at any power.

The density of shares :math:`w_c` and parameters :math:`η_c` of K components is

.. math:: \prod_c w_c^{κ-1} p(η_c) \; \prod_i \Bigl(\sum_c w_c\, p(π_i | η_c)\Bigr)^z.

All is kept in logarithms: at a small power z a state may give a ranking any probability.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mixture.target import Clusters, Kind, StepDraw
from numpyro_rankings.ops.sampling import draw_together

_IMPOSSIBLE = -1e30  # stands for a log probability of minus infinity
_STEPS_OF_BLOCK = 8  # a step costs the row of one component, beginning a block those of all


class Target(NamedTuple):
    """The density that the steps leave invariant."""

    clusters: Clusters
    counts: Array  # rankings of each row, (rows,) float
    power: Array  # z
    share_concentration: Array  # κ


class Components(NamedTuple):
    """State of the steps."""

    parameters: Any  # (K, …)
    log_shares: Array  # (K,)
    log_table: Array  # log probability of each row in each component, (K, rows)
    log_density: Array  # of each row under the mixture, (rows,)


class One(NamedTuple):
    """The component of a block."""

    parameters: Any
    log_prior: Array
    log_row: Array  # (rows,)
    log_density: Array  # of each row under the mixture, (rows,)


def log_row_of(clusters: Clusters, parameters: Any) -> Array:
    """Return the log probability of each row in one component, which is finite, (rows,)."""
    slot = jnp.zeros((), jnp.int32)  # components are the same in all slots
    return jnp.maximum(clusters.log_row(parameters, slot), _IMPOSSIBLE)


def read_components(clusters: Clusters, parameters: Any, log_shares: Array) -> Components:
    """Evaluate all rows in all components."""
    log_table = jax.lax.map(lambda x: log_row_of(clusters, x), parameters)
    return Components(parameters, log_shares, log_table, log_mixture(log_table, log_shares))


def log_mixture(log_table: Array, log_shares: Array) -> Array:
    """Return the log density of each row, (rows,)."""
    terms = log_table + log_shares[:, None]
    largest = jnp.max(terms, axis=0)
    return largest + jnp.log(jnp.sum(jnp.exp(terms - largest), axis=0))


def _log_sum(a: Array, b: Array) -> Array:
    """Return log(exp(a) + exp(b)); where the terms differ much, the error is below 1e-7."""
    # faster than jnp.logaddexp
    return jnp.maximum(a, b) + jnp.log(1.0 + jnp.exp(-jnp.abs(a - b)))


def metropolis_steps(
    key: Array, target: Target, state: Components, draws: StepDraw
) -> tuple[Components, Array]:
    """Make steps one after another, in blocks that each change one component, then the shares."""
    number = len(state.log_shares)
    num_blocks = max(len(draws.scale) // _STEPS_OF_BLOCK, 1)
    steps = len(draws.scale) // num_blocks
    draws = jax.tree.map(
        lambda x: x[: num_blocks * steps].reshape(num_blocks, steps, *x.shape[1:]), draws
    )

    def block(state: Components, x: tuple[Array, StepDraw]) -> tuple[Components, Array]:
        uniforms, draws = x
        slot = jnp.minimum((uniforms[0] * number).astype(jnp.int32), number - 1)
        state, accepted = _change_one(target, state, slot, draws)
        if number > 1:
            last = jax.tree.map(lambda x: x[-1], draws)
            state = _trade(target, state, slot, uniforms[1], last)
        return state, accepted

    (uniforms,) = draw_together(random.uniform, key, (num_blocks, 2))
    state, accepted = jax.lax.scan(block, state, (uniforms, draws))
    return state, jnp.mean(accepted.astype(float))


def _change_one(
    target: Target, state: Components, slot: Array, draws: StepDraw
) -> tuple[Components, Array]:
    """Make steps of the parameters of one component, while all else stays."""
    clusters, log_share = target.clusters, state.log_shares[slot]
    is_other = jnp.arange(len(state.log_shares)) != slot
    others = log_mixture(state.log_table, jnp.where(is_other, state.log_shares, -1e30))
    no = jnp.array(False)

    def step(one: One, draw: StepDraw) -> tuple[One, Array]:
        proposal = clusters.propose(one.parameters, one.parameters, Kind(no, no, no), draw)
        parameters = jax.tree.map(lambda x: x[None], proposal.parameters)
        log_row = log_row_of(clusters, proposal.parameters)
        log_density = _log_sum(others, log_row + log_share)
        new = One(proposal.parameters, clusters.log_prior(parameters)[0], log_row, log_density)
        gain = jnp.sum(target.counts * (new.log_density - one.log_density))
        log_accept = target.power * gain + new.log_prior - one.log_prior + proposal.log_jacobian
        accepted = draw.log_uniform < log_accept
        return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, one), accepted

    parameters = jax.tree.map(lambda x: x[slot], state.parameters)
    log_prior = clusters.log_prior(jax.tree.map(lambda x: x[None], parameters))[0]
    start = One(parameters, log_prior, state.log_table[slot], state.log_density)
    one, accepted = jax.lax.scan(step, start, draws)
    state = Components(
        jax.tree.map(lambda x, y: x.at[slot].set(y), state.parameters, one.parameters),
        state.log_shares,
        state.log_table.at[slot].set(one.log_row),
        one.log_density,
    )
    return state, accepted


def _trade(
    target: Target, state: Components, slot: Array, uniform: Array, draw: StepDraw
) -> Components:
    """Move the log odds of the shares of two components by a normal step; their sum stays."""
    number = len(state.log_shares)
    other = jnp.minimum((uniform * (number - 1)).astype(jnp.int32), number - 2)
    slots = jnp.stack([slot, other + (other >= slot)])
    old = state.log_shares[slots]
    log_odds = old[0] - old[1] + draw.scale * draw.normals[-1]
    new = jnp.logaddexp(*old) - jax.nn.softplus(jnp.array([-1.0, 1.0]) * log_odds)
    log_shares = state.log_shares.at[slots].set(new)
    log_shares -= jax.nn.logsumexp(log_shares)  # rounding would add up
    log_density = log_mixture(state.log_table, log_shares)
    gain = jnp.sum(target.counts * (log_density - state.log_density))
    # the density of the log odds has w^κ in place of w^(κ - 1)
    log_accept = target.power * gain + target.share_concentration * jnp.sum(new - old)
    # the log odds of the draw are those of a uniform number
    accepted = -jax.nn.softplus(-draw.log_odds) < log_accept
    return state._replace(
        log_shares=jnp.where(accepted, log_shares, state.log_shares),
        log_density=jnp.where(accepted, log_density, state.log_density),
    )
