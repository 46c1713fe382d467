"""Waiting times of Plackett–Luce choices, given which the weights are gamma variables.

**References**

1. *Efficient Bayesian inference for generalized Bradley–Terry models*, F. Caron, A. Doucet (JCGS,
   2012).
"""

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mixture.membership import Membership
from numpyro_rankings.infer.plackett_luce.data import PlackettLuceData
from numpyro_rankings.ops.choices import (
    can_be_tabled,
    in_sets,
    set_counts,
    set_masses,
    stage_masses,
    times_in_play,
)
from numpyro_rankings.ops.rows import at_rows
from numpyro_rankings.ops.sampling import sample_log_gamma

_COST_OF_GAMMA = 8  # cost of a gamma draw relative to an exponential draw


def draw_times(key: Array | None, counts: Array, masses: Array) -> Array:
    """Draw sums of ``counts`` waiting times Z ~ Exponential(mass); without a key, their means."""
    if key is None:
        return counts / masses
    draws = jnp.exp(sample_log_gamma(key, jnp.maximum(counts, 1).astype(masses.dtype)))
    return jnp.where(counts > 0, draws / masses, 0.0)


def sum_times_in_play(
    key: Array | None,
    data: PlackettLuceData,
    membership: Membership,
    weights: Array,
    pool: Array | None,
) -> tuple[Array, Array]:
    """Draw all times; return their sums while each item is in play, (C, n), and in all, (C,)."""
    # Without a key these are expected times. The weights, (C, n), and the pool, (C,), add up to at
    # most 1.
    num_clusters, num_items = weights.shape
    choices, stages = data.choices, data.choices.orderings.shape[1]
    alone = len(membership.clusters) == data.num_labels  # each entry is one ranking
    cells = num_clusters * (_COST_OF_GAMMA if key is not None and alone else 1)
    if can_be_tabled(cells, num_items, len(membership.clusters), stages):
        counts = set_counts(choices, *membership, num_clusters, num_items)
        times = draw_times(key, counts, set_masses(weights, pool))
        return jnp.dot(times, in_sets(num_items, times.dtype), precision="highest"), times.sum(1)
    masses = stage_masses(choices, membership.rows, membership.clusters, weights, pool)
    counts = at_rows(choices.informative.T, membership.rows, 1) * membership.weights
    if key is not None and alone:
        # entries first, so that padding, which comes last, leaves the draws as they are
        exponentials = random.exponential(key, masses.shape[::-1], masses.dtype).T
        times = counts * exponentials / masses
    else:
        times = draw_times(key, counts, masses)
    return times_in_play(
        times, choices, membership.rows, membership.clusters, num_clusters, num_items
    )


def normalise(log_weights: Array) -> Array:
    """Return weights that sum to 1 along the last axis, none of them 0."""
    weights = jax.nn.softmax(log_weights, axis=-1)
    return jnp.maximum(weights, jnp.finfo(weights.dtype).tiny)
