"""The waiting times of Plackett–Luce choices (Caron & Doucet 2012)."""

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.infer.mixture.members import Members
from numpyro_rankings.infer.plackett_luce.data import PlackettLuceData
from numpyro_rankings.ops.choices import (
    can_be_tabled,
    in_sets,
    set_counts,
    set_masses,
    stage_masses,
    times_in_play,
)
from numpyro_rankings.ops.sampling import sample_log_gamma

_COST_OF_GAMMA = 8  # in exponential draws


def draw_times(key: Array | None, counts: Array, masses: Array) -> Array:
    """Sums of ``counts`` waiting times Z ~ Exponential(mass); their means if there is no key."""
    if key is None:
        return counts / masses
    draws = jnp.exp(sample_log_gamma(key, jnp.maximum(counts, 1).astype(masses.dtype)))
    return jnp.where(counts > 0, draws / masses, 0.0)


def sum_times_in_play(
    key: Array | None, data: PlackettLuceData, who: Members, weights: Array, pool: Array | None
) -> tuple[Array, Array]:
    """Draw all waiting times, and add them up over the stages where each item was in play.

    :param key: None for expected times.
    :param weights: (C, n), adding up to at most 1 with the pool's, (C,).
    :return: (C, n), and the sum of all waiting times, (C,).
    """
    num_clusters, num_items = weights.shape
    choices, stages = data.choices, data.choices.orderings.shape[1]
    alone = len(who.rows) == data.num_rankings  # each entry is one ranking
    cells = num_clusters * (_COST_OF_GAMMA if key is not None and alone else 1)
    if can_be_tabled(cells, num_items, len(who.rows), stages):
        counts = set_counts(choices, *who, num_clusters, num_items)
        times = draw_times(key, counts, set_masses(weights, pool))
        return jnp.dot(times, in_sets(num_items, times.dtype), precision="highest"), times.sum(1)
    masses = stage_masses(choices, who.rows, who.clusters, weights, pool)
    counts = choices.informative.T[:, who.rows] * who.weights
    if key is not None and alone:
        times = counts * random.exponential(key, masses.shape, masses.dtype) / masses
    else:
        times = draw_times(key, counts, masses)
    return times_in_play(times, choices, who.rows, who.clusters, num_clusters, num_items)


def normalise(log_weights: Array) -> Array:
    """Weights that add up to 1 along the last axis, none of them 0."""
    weights = jax.nn.softmax(log_weights, axis=-1)
    return jnp.maximum(weights, jnp.finfo(weights.dtype).tiny)
