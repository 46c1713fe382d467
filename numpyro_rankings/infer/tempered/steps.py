r"""Metropolis-Hastings steps of a finite mixture with the labels summed out, at any power.

The density of shares :math:`w_c` and parameters :math:`η_c` of K components is

.. math:: \prod_c w_c^{κ-1} p(η_c) \; \prod_i \Bigl(\sum_c w_c\, p(π_i | η_c)\Bigr)^z.

With covariates x of the judges, the share of component c for a judge is proportional to
:math:`w_c \exp(x'β_c)`, where the effects :math:`β_{cj}` are normal: a multinomial logit. All is
kept in logarithms: at a small power z a state may give a ranking any probability. All
replicas step at once. They are the last axis of what there is for each row: where an item of a row
is looked up, the values of all replicas lie side by side.
"""

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mixture.steps import log_uniform
from numpyro_rankings.infer.mixture.target import Clusters, Kind, StepDraw
from numpyro_rankings.ops.rows import transposed
from numpyro_rankings.ops.sampling import draw_together

_IMPOSSIBLE = -1e30  # stands for a log probability of minus infinity
_MOST_STEPS_OF_EFFECTS = 6  # in a block
_SCALES_OF_EFFECTS = 0.5, 6.0  # of these steps, in posterior standard deviations
_STEPS_OF_BLOCK = 8  # a step costs the row of one component, beginning a block those of all

LogRows = Callable[[Any], Array]  # parameters of R components to the log probabilities, (rows, R)


class Covariates(NamedTuple):
    """Covariates of the judges, on which the shares depend."""

    design: Array  # of each cell, (G, p)
    cells: Array  # cell of each row, (rows,)
    precision: Array  # mean square of each column over the judges, (p,)
    scale: float  # standard deviation of the effects in the prior


class Target(NamedTuple):
    """The density that the steps leave invariant, at each replica."""

    clusters: Clusters
    log_rows: LogRows
    counts: Array  # rankings of each row, (rows,) float
    power: Array  # z, (R,)
    share_concentration: Array  # κ, (R,)
    covariates: Covariates | None = None
    num_used: Array | None = None  # components, from the first on; None if all are used


class Components(NamedTuple):
    """State of the steps, for R replicas."""

    parameters: Any  # (R, K, …)
    log_shares: Array  # (R, K)
    log_table: Array  # log probability of each row in each component, (K, rows, R)
    log_density: Array  # of each row under the mixture, (rows, R)
    effects: Array | None = None  # of the covariates on the log shares, (R, K, p)


class One(NamedTuple):
    """The component of a block."""

    parameters: Any  # (R, …)
    log_prior: Array  # (R,)
    log_density: Array  # of each row under the mixture, (rows, R)


def read_components(
    log_rows: LogRows,
    parameters: Any,
    log_shares: Array,
    effects: Array | None = None,
    covariates: Covariates | None = None,
) -> Components:
    """Evaluate all rows in all components."""
    by_component = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), parameters)
    log_table = jax.lax.map(lambda x: _finite_rows(log_rows, x), by_component)
    log_density = log_mixture(log_table, log_shares_of_rows(log_shares, effects, covariates))
    return Components(parameters, log_shares, log_table, log_density, effects)


def _finite_rows(log_rows: LogRows, parameters: Any) -> Array:
    return jnp.maximum(log_rows(parameters), _IMPOSSIBLE)


def log_shares_of_rows(
    log_shares: Array, effects: Array | None, covariates: Covariates | None
) -> Array:
    """Return the log shares for each row, (K, rows, R); without covariates as they are, (R, K)."""
    if covariates is None or effects is None:
        return log_shares
    linear = jnp.einsum("gp,rkp->kgr", covariates.design, effects, precision="highest")
    linear += transposed(log_shares)[:, None]
    linear -= jax.nn.logsumexp(linear, axis=0)
    return jnp.take(linear, covariates.cells, axis=1, mode="clip")


def log_mixture(log_table: Array, log_shares: Array) -> Array:
    """Return the log density of each row, (rows, R), given :func:`log_shares_of_rows`."""
    # XLA on CPUs does not vectorize a sum over an axis
    by_component = transposed(log_shares) if log_shares.ndim == 2 else log_shares
    terms = [x + y for x, y in zip(log_table, by_component, strict=True)]
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
    width = state.log_shares.shape[1]
    number = width if target.num_used is None else target.num_used
    num_blocks = max(len(draws.scale) // _STEPS_OF_BLOCK, 1)
    steps = len(draws.scale) // num_blocks
    draws = jax.tree.map(
        lambda x: x[: num_blocks * steps].reshape(num_blocks, steps, *x.shape[1:]), draws
    )

    def block(state: Components, x: tuple) -> tuple[Components, Array]:
        uniforms, draws, of_effects = x
        slot = jnp.minimum((uniforms[0] * number).astype(jnp.int32), number - 1)
        state, accepted = _change_one(target, state, slot, draws)
        if width > 1:
            last = jax.tree.map(lambda x: x[-1], draws)
            state = _trade(target, state, slot, uniforms[1], last)
        if of_effects is not None:
            state = _change_effects(target, state, of_effects)
        return state, accepted

    # the replicas change the same component, whose rows lie side by side
    (uniforms,) = draw_together(random.uniform, key, (num_blocks, 2))
    of_effects = None
    if state.effects is not None:
        key_effects, key_level = random.split(random.fold_in(key, 1))
        of_effects = _draw_effects(key_effects, target, state.effects, num_blocks)
    state, accepted = jax.lax.scan(block, state, (uniforms, draws, of_effects))
    if state.effects is not None:
        state = state._replace(effects=_draw_level(key_level, target, state.effects))
    return state, jnp.mean(accepted.astype(float), axis=(0, 1))


def _change_one(
    target: Target, state: Components, slot: Array, draws: StepDraw
) -> tuple[Components, Array]:
    """Make steps of the parameters of one component, while all else stays."""
    clusters = target.clusters
    log_shares = log_shares_of_rows(state.log_shares, state.effects, target.covariates)
    is_of_rows = log_shares.ndim == 3
    log_share = log_shares[slot] if is_of_rows else log_shares[:, slot]
    is_other = jnp.arange(state.log_shares.shape[1]) != slot
    is_other = is_other[:, None, None] if is_of_rows else is_other
    others = log_mixture(state.log_table, jnp.where(is_other, log_shares, _IMPOSSIBLE))
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
        state.effects,
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
    number = state.log_shares.shape[1] if target.num_used is None else target.num_used
    other = jnp.minimum((uniform * (number - 1)).astype(jnp.int32), number - 2)
    slots = jnp.stack([slot, other + (other >= slot)])
    old = state.log_shares[:, slots]
    log_odds = old[:, 0] - old[:, 1] + draw.scale * draw.normals[:, -1]
    signs = jnp.array([-1.0, 1.0])
    new = jnp.logaddexp(old[:, :1], old[:, 1:]) - jax.nn.softplus(signs * log_odds[:, None])
    log_shares = state.log_shares.at[:, slots].set(new)
    log_shares -= jax.nn.logsumexp(log_shares, axis=1, keepdims=True)  # rounding would add up
    log_density = log_mixture(
        state.log_table, log_shares_of_rows(log_shares, state.effects, target.covariates)
    )
    gain = target.power * _sum_rows(target.counts, log_density - state.log_density)
    # the density of the log odds has w^κ in place of w^(κ - 1)
    log_accept = gain + target.share_concentration * jnp.sum(new - old, axis=1)
    # the log odds of the draw are those of a uniform number
    accepted = (-jax.nn.softplus(-draw.log_odds) < log_accept) & (number > 1)
    return state._replace(
        log_shares=jnp.where(accepted[:, None], log_shares, state.log_shares),
        log_density=jnp.where(accepted, log_density, state.log_density),
    )


class EffectDraw(NamedTuple):
    """Random numbers of steps of the effects, which all replicas make at the same places."""

    slot: Array  # component, (steps,)
    column: Array  # of the design, (steps,)
    change: Array  # (steps, R)
    log_uniform: Array  # for the decision, (steps, R)


def _draw_effects(key: Array, target: Target, effects: Array, num_blocks: int) -> EffectDraw:
    """Draw random numbers of the steps of all blocks, (blocks, steps, …)."""
    assert target.covariates is not None
    replicas, number, width = effects.shape
    shape = num_blocks, min(-(-number * width // num_blocks), _MOST_STEPS_OF_EFFECTS)
    keys = random.split(key, 5)
    slot, column = (
        random.randint(k, shape, 0, x) for k, x in zip(keys, (number, width), strict=False)
    )
    # about the posterior standard deviation, where the components have equal shares
    scale, precision = target.covariates.scale, target.covariates.precision
    worth = target.power * jnp.sum(target.counts) / number
    known = 0.5 * worth * scale**2 * precision[column][..., None]
    low, high = _SCALES_OF_EFFECTS
    factor = log_uniform(random.uniform(keys[2], (*shape, replicas)), low, high)
    change = scale * factor * jax.lax.rsqrt(1.0 + known)
    change *= random.normal(keys[3], change.shape)
    return EffectDraw(slot, column, change, jnp.log(random.uniform(keys[4], change.shape)))


def _change_effects(target: Target, state: Components, draws: EffectDraw) -> Components:
    """Make steps that each change the effect of one column on the share of one component."""
    covariates, power = target.covariates, target.power
    assert covariates is not None

    def step(state: Components, draw: EffectDraw) -> tuple[Components, None]:
        assert state.effects is not None
        old = state.effects[:, draw.slot, draw.column]
        new = old + draw.change
        effects = state.effects.at[:, draw.slot, draw.column].set(new)
        log_shares = log_shares_of_rows(state.log_shares, effects, covariates)
        log_density = log_mixture(state.log_table, log_shares)
        gain = power * _sum_rows(target.counts, log_density - state.log_density)
        gain -= 0.5 * (new**2 - old**2) / covariates.scale**2
        accepted = draw.log_uniform < gain
        return state._replace(
            effects=jnp.where(accepted[:, None, None], effects, state.effects),
            log_density=jnp.where(accepted, log_density, state.log_density),
        ), None

    return jax.lax.scan(step, state, draws)[0]


def _draw_level(key: Array, target: Target, effects: Array) -> Array:
    """Draw the mean of the effects over the components, on which the shares do not depend."""
    assert target.covariates is not None
    replicas, number, width = effects.shape
    mean = random.normal(key, (replicas, 1, width)) * target.covariates.scale / math.sqrt(number)
    return effects - effects.mean(1, keepdims=True) + mean
