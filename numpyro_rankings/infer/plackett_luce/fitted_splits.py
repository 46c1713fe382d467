r"""Splits and merges of Plackett–Luce clusters whose weights are fitted first.

Where thousands of rankings pin the weights down, a new cluster with random weights is never
accepted. So two components are fitted, by a few steps of EM, to the rankings of the cluster c that
is split, each with the chance that it belongs there, and the new weights and shares are drawn
around that fit. A merge draws the weights of c around a fit of one component to the rankings of
both. The fits start at the weights that are there, tilted towards two random rankings, which the
way back shares. All else follows from them, so the densities of both ways are known, and a
Metropolis-Hastings step leaves invariant what those of ``marginal`` do.

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

from numpyro_rankings.infer.mixture.label_free import Pair, choose_pair
from numpyro_rankings.infer.plackett_luce.target import Mixture, Target

# Steps of EM; the first ones see few of many rows, for they need not be exact.
_FIT_STEPS, _ROUGH_STEPS, _ENOUGH_ROWS = 12, 8, 512
_TILT = 2.0  # of the log weight of what a random ranking lists first
_SPREAD = 1.3  # of the weights around a fit, in standard deviations of the posterior there
_LEAST_LOG_WEIGHT = -60.0  # relative to the largest one: float32 can hold the ratio
_MOST_LOG_ODDS = 10.0  # of the shares of a pair


class SplitProposals(NamedTuple):
    """What the steps need of randomness, one entry each.

    - **splits** - or else a merge.
    - **uniforms** - for the first and second cluster, one that is not used, and the decision.
    - **tilts** - of the log weights at which two fits start, (steps, 2, K).
    - **normals** - (steps, 2, K + 1), **uniform_atoms** - (steps, 2, K), **odds** - (steps,).
    """

    splits: Array
    uniforms: Array
    tilts: Array
    normals: Array
    uniform_atoms: Array
    odds: Array


def draw_split_proposals(
    key: Array, num_steps: int, orderings: Array, row_index: Array, num_items: int
) -> SplitProposals:
    """Splits and merges, and two random rankings for each."""
    keys = random.split(key, 6)
    rows = row_index[random.randint(keys[0], (num_steps, 2), 0, len(row_index))]
    num_stages = orderings.shape[1]

    def tilt(ordering: Array) -> Array:
        columns = jnp.where(ordering >= 0, ordering, num_items)
        boost = _TILT * (1.0 - jnp.arange(num_stages) / num_stages)
        return jnp.zeros(num_items).at[columns].set(boost, mode="drop")

    return SplitProposals(
        splits=random.bernoulli(keys[1], 0.5, (num_steps,)),
        uniforms=random.uniform(keys[2], (num_steps, 4)),
        tilts=jax.vmap(jax.vmap(tilt))(orderings[rows]),
        normals=random.normal(keys[3], (num_steps, 2, num_items + 1)),
        uniform_atoms=random.uniform(keys[4], (num_steps, 2, num_items)),
        odds=random.normal(keys[5], (num_steps,)),
    )


class Fit(NamedTuple):
    """Two components, fitted to some rankings.

    - **log_weights** - not normalised, (2, K).
    - **chosen** - expected number of times that an item was chosen, (2, K).
    - **information** - on the sum of the weights, (2,).
    - **sizes** - expected number of rankings, (2,).
    """

    log_weights: Array
    chosen: Array
    information: Array
    sizes: Array


def fit(
    target: Target, log_weights: Array, log_shares: Array, unseen: Array, chances: Array
) -> Fit:
    """Some steps of EM, with one of Hunter's in each. It depends on what is passed, nothing else.

    :param log_weights: start, (2, K), and **log_shares**, (2,).
    :param unseen: weights of the unseen, (2,), which stay.
    :param chances: expected number of each row that are to be fitted, (rows,).
    """
    shape = jnp.maximum(target.prior.shape, 1e-6)

    def step(
        target: Target, chances: Array, now: tuple[Array, Array]
    ) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
        log_weights, log_shares = now
        lowest = log_weights.max(1, keepdims=True) + _LEAST_LOG_WEIGHT
        log_weights = jnp.maximum(log_weights, lowest)
        table = jax.vmap(target.log_row)(log_weights, unseen)
        both = jax.nn.softmax(jnp.maximum(table, -1e30) + log_shares[:, None], axis=0) * chances
        chosen, slope = jax.vmap(target.slope)(log_weights, unseen, both)
        in_play = jnp.maximum(chosen - slope, 0.0)
        log_rate = jnp.log(target.prior.rate * jnp.exp(log_weights) + in_play)
        sizes = both.sum(1)
        log_weights = log_weights + jnp.log(chosen + shape) - log_rate
        information = shape.sum() + jnp.maximum(slope.sum(1), 0.0)
        log_shares = jnp.where(log_shares > -jnp.inf, jnp.log(sizes + 0.5), -jnp.inf)
        return (log_weights, log_shares), (chosen, information, sizes)

    now, num_steps, every = (log_weights, log_shares), _FIT_STEPS, len(chances) // _ENOUGH_ROWS
    if every > 1:
        few, of_few = target.thinned(every), chances[::every]
        of_few *= chances.sum() / jnp.maximum(of_few.sum(), 1e-30)
        now, _ = jax.lax.scan(
            lambda now, _: (step(few, of_few, now)[0], None), now, None, length=_ROUGH_STEPS
        )
        num_steps -= _ROUGH_STEPS
    (log_weights, _), found = jax.lax.scan(
        lambda now, _: step(target, chances, now), now, None, length=num_steps
    )
    return Fit(log_weights, *(x[-1] for x in found))


class Around(NamedTuple):
    """Distribution of the log weights of a cluster around a fit.

    Normal with covariance diag(**variance**) + **of_all**, for one change is common to all; an item
    is an atom with chance **is_atom**.
    """

    center: Array
    variance: Array
    of_all: Array
    is_atom: Array


def around(fitted: Fit, which: int, target: Target) -> Around:
    """Weights are known about as well as the numbers are from which they are estimated."""
    chosen = fitted.chosen[which]
    is_atom = 1.0 - jnp.maximum(0.5 * jnp.exp(-3.0 * chosen), 1e-6)
    return Around(
        fitted.log_weights[which],
        _SPREAD**2 / (chosen + target.prior.shape + 0.5),
        _SPREAD**2 / (fitted.information[which] + 0.5),
        is_atom,
    )


def draw_around(normals: Array, uniform_atoms: Array, law: Around) -> Array:
    """Log weights, -inf where there is no atom, (K,)."""
    change = jnp.sqrt(law.variance) * normals[:-1] + jnp.sqrt(law.of_all) * normals[-1]
    return jnp.where(uniform_atoms < law.is_atom, law.center + change, -jnp.inf)


def log_density_around(log_weights: Array, law: Around) -> Array:
    """Log density of log weights, (K,)."""
    is_atom = log_weights > -jnp.inf
    off = jnp.where(is_atom, log_weights, law.center) - law.center
    precision = jnp.where(is_atom, 1.0 / law.variance, 0.0)
    total = precision.sum()
    mean = jnp.sum(off * precision) / jnp.maximum(total, 1e-30)
    square = jnp.sum((off - mean) ** 2 * precision)
    square += mean**2 * total / (1.0 + law.of_all * total)
    log_normal = -0.5 * (square + jnp.log1p(law.of_all * total))
    each = -0.5 * jnp.log(2.0 * math.pi * law.variance) + jnp.log(law.is_atom)
    return log_normal + jnp.sum(jnp.where(is_atom, each, jnp.log1p(-law.is_atom)))


def log_odds_around(fitted: Fit) -> tuple[Array, Array]:
    """Mean and standard deviation of the log odds of the shares of the two."""
    first, second = fitted.sizes + 0.5
    return jnp.log(first / second), _SPREAD * jnp.sqrt(1.0 / first + 1.0 / second)


def log_density_of_proportion(log_odds: Array, fitted: Fit) -> Array:
    """Log density of the proportion that the first of two has, by its log odds."""
    mean, scale = log_odds_around(fitted)
    log_normal = -0.5 * ((log_odds - mean) / scale) ** 2 - jnp.log(scale * math.sqrt(2 * math.pi))
    return log_normal - jax.nn.log_sigmoid(log_odds) - jax.nn.log_sigmoid(-log_odds)


def split_or_merge(target: Target, now: Mixture, draw: SplitProposals) -> Mixture:
    """One Metropolis-Hastings step that splits a cluster c into c and d, or merges them."""
    large, splits, never = target.large, draw.splits, jnp.array(False)

    def choose(uniforms: Array) -> Pair:
        return choose_pair(
            large, now.log_shares, uniforms, jnp.zeros(()), splits, ~splits, never, any_free=True
        )

    def mean_of_two(log_weights: Array, log_shares: Array) -> Array:
        return jnp.logaddexp(*(log_weights + jax.nn.log_softmax(log_shares)[:, None]))

    def fit_pair(two: Array, weights: Array, log_shares: Array, density: Array, rows: Array) -> Fit:
        """Two components for the rankings of c, or one for those of c and d.

        :param weights: log weights of c and d, (2, K); theirs are **log_shares** and **rows**.
        """
        parent = jnp.where(two, weights[0], mean_of_two(weights, log_shares))
        least = jnp.maximum(parent.max(), -30.0) - 10.0  # what is no atom yet may become one
        start = jnp.maximum(parent, least) + jnp.where(two, draw.tilts, 0.0)
        start_shares = jnp.where(two | (jnp.arange(2) == 0), 0.0, -jnp.inf)
        parts = jnp.exp(log_shares)[:, None] * rows
        parts = jnp.where(two & (jnp.arange(2) == 1)[:, None], 0.0, parts)
        counted = large.row_counts > 0
        chances = jnp.where(counted, large.row_counts * parts.sum(0) / density, 0.0)
        return fit(target, start, start_shares, target.unseen[place], chances)

    pair = choose(draw.uniforms)
    place = jnp.stack([pair.c, pair.d])
    old = now.log_weights[place]
    there = fit_pair(splits, old, now.log_shares[place], now.density, now.table[place])

    # around that fit: c and d, or c alone
    new_c, new_d = (
        draw_around(draw.normals[k], draw.uniform_atoms[k], around(there, k, target))
        for k in range(2)
    )
    mean, scale = log_odds_around(there)
    log_odds = now.log_shares[pair.c] - now.log_shares[pair.d]
    log_odds = jnp.where(splits, mean + scale * draw.odds, log_odds)
    pair = choose(draw.uniforms.at[2].set(jax.nn.sigmoid(log_odds)))
    new = jnp.stack([new_c, jnp.where(splits, new_d, old[1])])
    rows = jax.lax.optimization_barrier(jax.vmap(target.row)(new, target.unseen[place]))
    slots = jnp.arange(len(now.log_shares))
    others = (slots != pair.c) & (slots != pair.d)
    shares = jnp.exp(pair.log_shares)
    density = jnp.sum(jnp.where(others, shares, 0.0)[:, None] * now.table, axis=0)
    density += shares[place] @ rows
    back = fit_pair(~splits, new, pair.log_shares[place], density, rows)

    def log_density_of_two(weights: Array, fitted: Fit) -> Array:
        both = sum(log_density_around(weights[k], around(fitted, k, target)) for k in range(2))
        return both + log_density_of_proportion(log_odds, fitted)

    def log_density_of_one(weights: Array, fitted: Fit) -> Array:
        return log_density_around(weights, around(fitted, 0, target))

    log_split = log_density_of_one(old[0], back) - log_density_of_two(new, there)
    log_merge = log_density_of_two(old, back) - log_density_of_one(new[0], there)
    log_accept = jnp.where(splits, log_split + pair.log_split, log_merge - pair.log_split)
    log_priors = now.log_priors.at[place].set(target.prior.log_density(new))
    log_accept += large.log_gain(density, now.density)
    log_accept += target.log_prior(log_priors, pair.log_shares)
    log_accept -= target.log_prior(now.log_priors, now.log_shares)
    possible = pair.possible & (jnp.abs(log_odds) < _MOST_LOG_ODDS)
    accepted = possible & (jnp.log(draw.uniforms[3]) < log_accept)
    proposal = now._replace(
        log_weights=now.log_weights.at[place].set(new),
        log_priors=log_priors,
        log_shares=pair.log_shares,
        table=now.table.at[place].set(rows),
        density=density,
    )
    return jax.tree.map(lambda a, b: jnp.where(accepted, a, b), proposal, now)
