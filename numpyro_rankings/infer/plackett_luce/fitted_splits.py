r"""Splits and merges of Plackett–Luce clusters whose weights are fitted first.

Where thousands of rankings determine the weights, a new cluster with random weights is never
accepted. So a split fits two components, by a few steps of EM, to the rankings of the cluster c,
each weighted by the chance that it belongs to c, and draws the new weights and shares around that
fit. A merge draws the weights of c around a fit of one component to the rankings of both clusters.
The fits start at the current weights, tilted towards two random rankings that a step shares with
its reverse. Everything else follows from these, so the densities of both directions are known, and
a Metropolis-Hastings step leaves the target of ``mixture/label_free.py`` invariant.

**References**

1. *A smart-dumb/dumb-smart algorithm for efficient split-merge MCMC*, W. Wang, S. Russell (UAI
   2015): why a fitted split needs a way back that is as probable.
2. *MM algorithms for generalized Bradley-Terry models*, D. R. Hunter (Annals of Statistics, 2004).
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mixture.membership import rows_of
from numpyro_rankings.infer.mixture.steps import nth
from numpyro_rankings.infer.mixture.target import Mixture, Target, apply_change, propose_change
from numpyro_rankings.infer.plackett_luce.data import PlackettLuceData
from numpyro_rankings.infer.plackett_luce.target import WeightsClusters
from numpyro_rankings.ops.sampling import draw_together

# Steps of EM; the first ones see only some of many rows, because they need not be exact.
_FIT_STEPS, _ROUGH_STEPS, _ENOUGH_ROWS = 12, 8, 512
_TILT = 2.0  # of the log weight of the first item of a random ranking
_SPREAD = 1.3  # of the weights around a fit, in posterior standard deviations
_LEAST_LOG_WEIGHT = -60.0  # relative to the largest one: float32 can hold the ratio
_MOST_LOG_ODDS = 10.0  # of the shares of a pair


class FittedSplitDraw(NamedTuple):
    """Random numbers of the steps, with a leading axis of steps."""

    splits: Array  # whether the step is a split; else it is a merge
    uniforms: Array  # for the first and the second cluster, and the decision, (steps, 3)
    tilts: Array  # added to the log weights at which the two fits start, (steps, 2, K)
    normals: Array  # (steps, 2, K + 1)
    uniform_atoms: Array  # (steps, 2, K)
    odds: Array  # (steps,)


def draw_fitted_splits(
    key: Array, num_steps: int, data: PlackettLuceData, num_items: int
) -> FittedSplitDraw:
    """Draw splits and merges, and two random rankings for each."""
    key_uniforms, key_normals = random.split(key)
    # few calls of the generator, each of which takes long to compile
    (uniforms,) = draw_together(random.uniform, key_uniforms, (num_steps, 6 + 2 * num_items))
    (normals,) = draw_together(random.normal, key_normals, (num_steps, 3 + 2 * num_items))
    of_rows, of_kind, of_step, of_atoms = jnp.split(uniforms, [2, 3, 6], axis=1)
    rankings = (of_rows * data.num_rankings).astype(jnp.int32)
    rows = rows_of(jnp.minimum(rankings, data.num_rankings - 1), data.row_index)
    orderings = data.choices.orderings
    num_stages = orderings.shape[1]

    def tilt(ordering: Array) -> Array:
        columns = jnp.where(ordering >= 0, ordering, num_items)
        boost = _TILT * (1.0 - jnp.arange(num_stages) / num_stages)
        return jnp.zeros(num_items).at[columns].set(boost, mode="drop")

    return FittedSplitDraw(
        splits=of_kind[:, 0] < 0.5,
        uniforms=of_step,
        tilts=jax.vmap(jax.vmap(tilt))(orderings[rows]),
        normals=normals[:, 1:].reshape(num_steps, 2, num_items + 1),
        uniform_atoms=of_atoms.reshape(num_steps, 2, num_items),
        odds=normals[:, 0],
    )


class Fit(NamedTuple):
    """Two components, fitted to some rankings."""

    log_weights: Array  # not normalised, (2, K)
    chosen: Array  # expected number of times that an item was chosen, (2, K)
    information: Array  # on the sum of the weights, (2,)
    sizes: Array  # expected number of rankings, (2,)


def fit(
    clusters: WeightsClusters, log_weights: Array, log_shares: Array, unseen: Array, chances: Array
) -> Fit:
    """Fit two components by EM, with one of Hunter's MM steps in each, deterministically."""
    # The gamma prior is of log weights that are not normalised, so that the step has other terms
    # than ``PLACKETT_LUCE.times_with_prior``. The weights of the unseen items stay. Initial log
    # weights are (2, K), ``chances`` the expected number of rankings of each row to fit, (rows,).
    shape = jnp.maximum(clusters.prior.shape, 1e-6)

    def step(
        clusters: WeightsClusters, chances: Array, state: tuple[Array, Array]
    ) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
        log_weights, log_shares = state
        lowest = log_weights.max(1, keepdims=True) + _LEAST_LOG_WEIGHT
        log_weights = jnp.maximum(log_weights, lowest)
        table = jax.vmap(clusters.log_row_of)(log_weights, unseen)
        both = jax.nn.softmax(jnp.maximum(table, -1e30) + log_shares[:, None], axis=0) * chances
        chosen, slope = jax.vmap(clusters.slope)(log_weights, unseen, both)
        in_play = jnp.maximum(chosen - slope, 0.0)
        log_rate = jnp.log(clusters.prior.rate * jnp.exp(log_weights) + in_play)
        sizes = both.sum(1)
        log_weights = log_weights + jnp.log(chosen + shape) - log_rate
        information = shape.sum() + jnp.maximum(slope.sum(1), 0.0)
        log_shares = jnp.where(log_shares > -jnp.inf, jnp.log(sizes + 0.5), -jnp.inf)
        return (log_weights, log_shares), (chosen, information, sizes)

    state, num_steps, stride = (log_weights, log_shares), _FIT_STEPS, len(chances) // _ENOUGH_ROWS
    if stride > 1:
        few, of_few = clusters.thinned(stride), chances[::stride]
        of_few *= chances.sum() / jnp.maximum(of_few.sum(), 1e-30)
        state, _ = jax.lax.scan(
            lambda state, _: (step(few, of_few, state)[0], None), state, None, length=_ROUGH_STEPS
        )
        num_steps -= _ROUGH_STEPS
    (log_weights, _), steps = jax.lax.scan(
        lambda state, _: step(clusters, chances, state), state, None, length=num_steps
    )
    return Fit(log_weights, *(x[-1] for x in steps))


class Around(NamedTuple):
    """Distribution of the log weights of a cluster around a fit.

    It is normal with covariance diag(**variance**) + **of_all**, where the latter is a change that
    all weights share; an item is an atom with chance **is_atom**.
    """

    center: Array
    variance: Array
    of_all: Array
    is_atom: Array


def around(fitted: Fit, which: int, clusters: WeightsClusters) -> Around:
    """Return the distribution around a fit; the variances are those of the logs of counts."""
    chosen = fitted.chosen[which]
    is_atom = 1.0 - jnp.maximum(0.5 * jnp.exp(-3.0 * chosen), 1e-6)
    return Around(
        fitted.log_weights[which],
        _SPREAD**2 / (chosen + clusters.prior.shape + 0.5),
        _SPREAD**2 / (fitted.information[which] + 0.5),
        is_atom,
    )


def draw_around(normals: Array, uniform_atoms: Array, proposal: Around) -> Array:
    """Draw log weights, -inf where there is no atom, (K,)."""
    change = jnp.sqrt(proposal.variance) * normals[:-1] + jnp.sqrt(proposal.of_all) * normals[-1]
    return jnp.where(uniform_atoms < proposal.is_atom, proposal.center + change, -jnp.inf)


def log_density_around(log_weights: Array, proposal: Around) -> Array:
    """Return the log density of log weights, (K,)."""
    is_atom = log_weights > -jnp.inf
    off = jnp.where(is_atom, log_weights, proposal.center) - proposal.center
    precision = jnp.where(is_atom, 1.0 / proposal.variance, 0.0)
    total = precision.sum()
    mean = jnp.sum(off * precision) / jnp.maximum(total, 1e-30)
    square = jnp.sum((off - mean) ** 2 * precision)
    square += mean**2 * total / (1.0 + proposal.of_all * total)
    log_normal = -0.5 * (square + jnp.log1p(proposal.of_all * total))
    each = -0.5 * jnp.log(2.0 * math.pi * proposal.variance) + jnp.log(proposal.is_atom)
    return log_normal + jnp.sum(jnp.where(is_atom, each, jnp.log1p(-proposal.is_atom)))


def log_odds_around(fitted: Fit) -> tuple[Array, Array]:
    """Return the mean and standard deviation of the log odds of the two shares."""
    first, second = fitted.sizes + 0.5
    return jnp.log(first / second), _SPREAD * jnp.sqrt(1.0 / first + 1.0 / second)


def log_density_of_proportion(log_odds: Array, fitted: Fit) -> Array:
    """Return the log density of the first component's proportion, given its log odds."""
    mean, scale = log_odds_around(fitted)
    log_normal = -0.5 * ((log_odds - mean) / scale) ** 2 - jnp.log(scale * math.sqrt(2 * math.pi))
    return log_normal - jax.nn.log_sigmoid(log_odds) - jax.nn.log_sigmoid(-log_odds)


class _Two(NamedTuple):
    """Clusters c and d in a state."""

    weights: Array  # log weights, (2, K)
    log_shares: Array  # (2,)
    rows: Array  # (2, rows)
    density: Array  # density of each row under the whole mixture, (rows,)


def _fit_pair(
    fits_two: Array, state: _Two, target: Target, slots: Array, draw: FittedSplitDraw
) -> Fit:
    """Fit two components to the rankings of c, or one to the rankings of c and d."""
    of_both = state.weights + jax.nn.log_softmax(state.log_shares)[:, None]
    parent = jnp.where(fits_two, state.weights[0], jnp.logaddexp(*of_both))
    least = jnp.maximum(parent.max(), -30.0) - 10.0  # items that are not atoms may become atoms
    start = jnp.maximum(parent, least) + jnp.where(fits_two, draw.tilts, 0.0)
    start_shares = jnp.where(fits_two | (jnp.arange(2) == 0), 0.0, -jnp.inf)
    parts = jnp.exp(state.log_shares)[:, None] * state.rows
    parts = jnp.where(fits_two & (jnp.arange(2) == 1)[:, None], 0.0, parts)
    row_counts = target.large.row_counts
    chances = jnp.where(row_counts > 0, row_counts * parts.sum(0) / state.density, 0.0)
    clusters = target.clusters
    assert isinstance(clusters, WeightsClusters)
    return fit(clusters, start, start_shares, clusters.unseen[slots], chances)


def _choose_slots(
    target: Target, log_shares: Array, splits: Array, uniforms: Array
) -> tuple[Array, Array, Array]:
    """Choose c and a free slot d to split it into, or c and d to merge, if there are such."""
    active = log_shares > -jnp.inf
    free = ~active & ~target.large.small
    number = active.sum()
    first = jnp.minimum((uniforms[0] * number).astype(jnp.int32), number - 1)
    second = jnp.minimum((uniforms[1] * (number - 1)).astype(jnp.int32), number - 2)
    # free slots hold variables of the model, and a merge can free any of them
    which = jnp.minimum((uniforms[1] * free.sum()).astype(jnp.int32), free.sum() - 1)
    other = jnp.where(splits, nth(free, which), nth(active, second + (second >= first)))
    possible = jnp.where(splits, jnp.any(free), number > 1)
    return nth(active, first), other, possible


def fitted_split_or_merge(target: Target, mixture: Mixture, draw: FittedSplitDraw) -> Mixture:
    """Make a Metropolis-Hastings step that splits a cluster c into c and d, or merges them [1]."""
    clusters, splits = target.clusters, draw.splits
    assert isinstance(clusters, WeightsClusters)
    c, d, possible = _choose_slots(target, mixture.log_shares, splits, draw.uniforms)
    slots = jnp.stack([c, d])
    old = _Two(
        mixture.parameters[slots], mixture.log_shares[slots], mixture.table[slots], mixture.density
    )
    forward_fit = _fit_pair(splits, old, target, slots, draw)

    # draw around that fit: c and d, or c alone
    new_c, new_d = (
        draw_around(draw.normals[k], draw.uniform_atoms[k], around(forward_fit, k, clusters))
        for k in range(2)
    )
    mean, scale = log_odds_around(forward_fit)
    log_odds = mixture.log_shares[c] - mixture.log_shares[d]
    log_odds = jnp.where(splits, mean + scale * draw.odds, log_odds)
    both = jnp.where(splits, mixture.log_shares[c], jnp.logaddexp(*mixture.log_shares[slots]))
    divided = jnp.where(
        splits,
        both + jax.nn.log_sigmoid(jnp.array([1.0, -1.0]) * log_odds),
        jnp.stack([both, -jnp.inf]),
    )
    log_shares = mixture.log_shares.at[slots].set(divided)
    weights = jnp.stack([new_c, jnp.where(splits, new_d, old.weights[1])])
    change, log_accept = propose_change(target, mixture, slots, weights, log_shares)
    new = _Two(weights, divided, change.rows, change.density)
    reverse_fit = _fit_pair(~splits, new, target, slots, draw)

    def log_density_of_two(weights: Array, fitted: Fit) -> Array:
        both = sum(log_density_around(weights[k], around(fitted, k, clusters)) for k in range(2))
        return both + log_density_of_proportion(log_odds, fitted)

    def log_density_of_one(weights: Array, fitted: Fit) -> Array:
        return log_density_around(weights, around(fitted, 0, clusters))

    log_split = log_density_of_one(old.weights[0], reverse_fit)
    log_split -= log_density_of_two(weights, forward_fit)
    log_merge = log_density_of_two(old.weights, reverse_fit)
    log_merge -= log_density_of_one(weights[0], forward_fit)
    # A merge chooses c and d out of k clusters, 1 / (k (k - 1)); a split one out of k - 1, and
    # new shares whose sum is that of c.
    log_pairs = both - jnp.log(jnp.sum(mixture.log_shares > -jnp.inf) + splits)
    log_accept += jnp.where(splits, log_split + log_pairs, log_merge - log_pairs)
    possible &= jnp.abs(log_odds) < _MOST_LOG_ODDS
    accepted = possible & (jnp.log(draw.uniforms[2]) < log_accept)
    return apply_change(mixture, change, accepted)
