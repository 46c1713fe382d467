"""Row likelihoods of many Plackett–Luce clusters at once.

The values of all clusters lie side by side, so that looking up those of an item or of a set of
items is one read.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from numpyro_rankings.ops.choices import Choices, in_sets, set_codes
from numpyro_rankings.ops.rows import transposed

_MOST_TABLED = 12  # items for which the mass of every set is computed
_MOST_UNLISTED = 2**24  # cells of the table of unlisted items
_UNROLLED_STAGES = 16
_SMALLEST = -1e30  # log of a weight


class ChoicesOfRows(NamedTuple):
    """What the likelihood of rows depends on besides the weights, stages first."""

    items: Array  # item of each stage, n where none is listed, (T, rows)
    informative: Array  # whether another item is in play, (T, rows)
    sets: Array | None  # number of the set in play at each stage; None if there are many items
    unlisted: Array | None  # items offered but not listed, (rows, n); None if there are sets


def choices_of_rows(choices: Choices, num_items: int) -> ChoicesOfRows | None:
    """Return the items and sets of each row, or None if they would take too much memory."""
    items = jnp.where(choices.orderings >= 0, choices.orderings, num_items)
    stages = items.T, choices.informative.T
    if num_items <= _MOST_TABLED and 2**num_items <= items.size:
        return ChoicesOfRows(*stages, set_codes(choices, num_items).T, None)
    if len(items) * num_items > _MOST_UNLISTED:
        return None
    unlisted = choices.unlisted
    if unlisted is None:
        is_listed = jnp.zeros((len(items), num_items), bool)
        unlisted = ~is_listed.at[jnp.arange(len(items))[:, None], items].set(True, mode="drop")
    return ChoicesOfRows(*stages, None, unlisted.astype(float))


def log_rows_by_choices(rows: ChoicesOfRows, log_weights: Array) -> Array:
    """Return the log probability of every row in each of C clusters, (rows, C), eq. (1).

    :param log_weights: not normalised, (C, n); -inf counts as the smallest one that there is.
    """
    log_weights = log_weights - jnp.max(log_weights, axis=1, keepdims=True)
    log_weights = transposed(jnp.maximum(log_weights, _SMALLEST))
    weights, tiny = jnp.exp(log_weights), jnp.finfo(log_weights.dtype).tiny
    if rows.unlisted is not None:
        return _by_items(rows, rows.unlisted, log_weights, weights)
    masses = jnp.dot(in_sets(len(weights), weights.dtype), weights, precision="highest")
    return _by_sets(rows, log_weights, jnp.log(jnp.maximum(masses, tiny)))


def _by_sets(rows: ChoicesOfRows, log_weights: Array, log_masses: Array) -> Array:
    """Add up the stages; the log masses are of all sets of items, (2^n, C)."""

    def stage(total: Array, x: Any) -> tuple[Array, None]:
        item, informative, number = x
        log_choice = log_weights[item] - log_masses[number]
        return total + jnp.where(informative[:, None], log_choice, 0.0), None

    start = jnp.zeros((rows.items.shape[1], log_weights.shape[1]), log_weights.dtype)
    stages = rows.items, rows.informative, rows.sets
    unroll = min(len(rows.items), _UNROLLED_STAGES)
    return jax.lax.scan(stage, start, stages, unroll=unroll)[0]


def _by_items(rows: ChoicesOfRows, unlisted: Array, log_weights: Array, weights: Array) -> Array:
    """Add up the stages from the last to the first, and the mass in play."""
    weights, tiny = jnp.pad(weights, ((0, 1), (0, 0))), jnp.finfo(weights.dtype).tiny

    def stage(carry: tuple[Array, Array], x: tuple[Array, Array]) -> tuple:
        total, mass = carry
        item, informative = x
        mass += weights[item]
        log_choice = log_weights[item] - jnp.log(jnp.maximum(mass, tiny))
        return (total + jnp.where(informative[:, None], log_choice, 0.0), mass), None

    mass = jnp.dot(unlisted, weights[:-1], precision="highest")
    stages = rows.items, rows.informative
    unroll = min(len(rows.items), _UNROLLED_STAGES)
    carry = jnp.zeros_like(mass), mass
    return jax.lax.scan(stage, carry, stages, reverse=True, unroll=unroll)[0][0]
