r"""Metropolis-Hastings steps of a finite mixture with the labels summed out, at any power.

The density of shares :math:`w_c` and parameters :math:`η_c` of K components is

.. math:: \prod_c w_c^{κ-1} p(η_c) \; \prod_i \Bigl(\sum_c w_c\, p(π_i | η_c)\Bigr)^z.

All is kept in logarithms: at a small power z a state may give a ranking any probability. All
replicas step at once. They are the last axis of what there is for each row: where an item of a row
is looked up, the values of all replicas lie side by side.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mixture.target import Clusters, Kind, StepDraw
from numpyro_rankings.ops.rows import transposed
from numpyro_rankings.ops.sampling import draw_together

_IMPOSSIBLE = -1e30  # stands for a log probability of minus infinity
_STEPS_OF_BLOCK = 8  # a step costs the row of one component, beginning a block those of all

LogRows = Callable[[Any], Array]  # parameters of R components to the log probabilities, (rows, R)


class Target(NamedTuple):
    """The density that the steps leave invariant, at each replica."""

    clusters: Clusters
    log_rows: LogRows
    counts: Array  # rankings of each row, (rows,) float
    power: Array  # z, (R,)
    share_concentration: Array  # κ, (R,)


class Components(NamedTuple):
    """State of the steps, for R replicas."""

    parameters: Any  # (R, K, …)
    log_shares: Array  # (R, K)
    log_table: Array  # log probability of each row in each component, (K, rows, R)
    log_density: Array  # of each row under the mixture, (rows, R)


class One(NamedTuple):
    """The component of a block."""

    parameters: Any  # (R, …)
    log_prior: Array  # (R,)
    log_density: Array  # of each row under the mixture, (rows, R)


def read_components(log_rows: LogRows, parameters: Any, log_shares: Array) -> Components:
    """Evaluate all rows in all components."""
    by_component = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), parameters)
    log_table = jax.lax.map(lambda x: _finite_rows(log_rows, x), by_component)
    return Components(parameters, log_shares, log_table, log_mixture(log_table, log_shares))


def _finite_rows(log_rows: LogRows, parameters: Any) -> Array:
    return jnp.maximum(log_rows(parameters), _IMPOSSIBLE)


def log_mixture(log_table: Array, log_shares: Array) -> Array:
    """Return the log density of each row, (rows, R)."""
    # XLA on CPUs does not vectorize a sum over an axis
    terms = [x + y for x, y in zip(log_table, transposed(log_shares), strict=True)]
    largest = reduce(jnp.maximum, terms)
    return largest + jnp.log(sum(jnp.exp(x - largest) for x in terms))


def _log_sum(a: Array, b: Array) -> Array:
    """Return log(exp(a) + exp(b)); where the terms differ much, the error is below 1e-7."""
    # faster than jnp.logaddexp
    return jnp.maximum(a, b) + jnp.log(1.0 + jnp.exp(-jnp.abs(a - b)))


def metropolis_steps(
    key: Array, target: Target, state: Components, draws: StepDraw
) -> tuple[Components, Array]:
    """Make steps one after another, in blocks that each change one component, then the shares.

    :param draws: (steps, R, …).
    :return: the state, and how often each replica accepted a step of the parameters, (R,).
    """
    number = state.log_shares.shape[1]
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

    # the replicas change the same component, whose rows lie side by side
    (uniforms,) = draw_together(random.uniform, key, (num_blocks, 2))
    state, accepted = jax.lax.scan(block, state, (uniforms, draws))
    return state, jnp.mean(accepted.astype(float), axis=(0, 1))


def _change_one(
    target: Target, state: Components, slot: Array, draws: StepDraw
) -> tuple[Components, Array]:
    """Make steps of the parameters of one component, while all else stays."""
    clusters, log_share = target.clusters, state.log_shares[:, slot]
    is_other = jnp.arange(state.log_shares.shape[1]) != slot
    others = log_mixture(state.log_table, jnp.where(is_other, state.log_shares, _IMPOSSIBLE))
    no = jnp.array(False)

    def propose(parameters: Any, draw: StepDraw) -> tuple[Any, Array]:
        proposal = clusters.propose(parameters, parameters, Kind(no, no, no), draw)
        return proposal.parameters, proposal.log_jacobian

    def step(one: One, draw: StepDraw) -> tuple[One, Array]:
        parameters, log_jacobian = jax.vmap(propose)(one.parameters, draw)
        log_row = _finite_rows(target.log_rows, parameters)
        log_density = _log_sum(others, log_row + log_share)
        new = One(parameters, clusters.log_prior(parameters), log_density)
        gain = target.power * _sum_rows(target.counts, new.log_density - one.log_density)
        accepted = draw.log_uniform < gain + new.log_prior - one.log_prior + log_jacobian
        rows = jax.tree.map(lambda x, y: jnp.where(accepted, x, y), new[1:], one[1:])
        return One(_choose(accepted, parameters, one.parameters), *rows), accepted

    parameters = jax.tree.map(lambda x: x[:, slot], state.parameters)
    log_prior = clusters.log_prior(parameters)
    start = One(parameters, log_prior, state.log_density)
    one, accepted = jax.lax.scan(step, start, draws)
    # the row is not kept from step to step: XLA would then compute it twice in each
    log_row = _finite_rows(target.log_rows, one.parameters)
    state = Components(
        jax.tree.map(lambda x, y: x.at[:, slot].set(y), state.parameters, one.parameters),
        state.log_shares,
        state.log_table.at[slot].set(log_row),
        one.log_density,
    )
    return state, accepted


def _sum_rows(counts: Array, x: Array) -> Array:
    return jnp.sum(counts[:, None] * x, axis=0)


def _choose(is_new: Array, new: Any, old: Any) -> Any:
    """Choose the parameters of each replica."""

    def choose(new: Array, old: Array) -> Array:
        return jnp.where(is_new.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return jax.tree.map(choose, new, old)


def _trade(
    target: Target, state: Components, slot: Array, uniform: Array, draw: StepDraw
) -> Components:
    """Move the log odds of the shares of two components by a normal step; their sum stays."""
    number = state.log_shares.shape[1]
    other = jnp.minimum((uniform * (number - 1)).astype(jnp.int32), number - 2)
    slots = jnp.stack([slot, other + (other >= slot)])
    old = state.log_shares[:, slots]
    log_odds = old[:, 0] - old[:, 1] + draw.scale * draw.normals[:, -1]
    signs = jnp.array([-1.0, 1.0])
    new = jnp.logaddexp(old[:, :1], old[:, 1:]) - jax.nn.softplus(signs * log_odds[:, None])
    log_shares = state.log_shares.at[:, slots].set(new)
    log_shares -= jax.nn.logsumexp(log_shares, axis=1, keepdims=True)  # rounding would add up
    log_density = log_mixture(state.log_table, log_shares)
    gain = target.power * _sum_rows(target.counts, log_density - state.log_density)
    # the density of the log odds has w^κ in place of w^(κ - 1)
    log_accept = gain + target.share_concentration * jnp.sum(new - old, axis=1)
    # the log odds of the draw are those of a uniform number
    accepted = -jax.nn.softplus(-draw.log_odds) < log_accept
    return state._replace(
        log_shares=jnp.where(accepted[:, None], log_shares, state.log_shares),
        log_density=jnp.where(accepted, log_density, state.log_density),
    )
