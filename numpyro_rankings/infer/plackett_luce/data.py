"""Rankings as the Plackett–Luce kernels read them, and their likelihood."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.infer.mixture.membership import Membership, membership_of, row_index_of
from numpyro_rankings.ops.choices import (
    Choices,
    as_choices,
    can_be_tabled,
    set_counts,
    set_mass_pairs,
    stage_mass_pairs,
    times_chosen,
)
from numpyro_rankings.ops.pairs import Pair, subtract_pair, sum_as_pair, sum_pairs, times_log
from numpyro_rankings.ops.rows import at_rows
from numpyro_rankings.rankings import Rankings


class PlackettLuceData(NamedTuple):
    """Rankings as the updates read them. Labels from N on are padding."""

    choices: Choices  # choices of the distinct rankings
    counts: Array  # number of rankings of each row, (rows,)
    row_index: Array | None  # row of each label, (labels,), or None, see row_index_of

    @property
    def num_rankings(self) -> Array:
        """N, the number of rankings, without padding."""
        return jnp.sum(self.counts, dtype=jnp.int32)

    @property
    def num_labels(self) -> int:
        """The number of labels: N, and those of rows that are padding."""
        return len(self.counts if self.row_index is None else self.row_index)

    @property
    def is_padding(self) -> Array:
        """Whether a label is of a row that is padding, (labels,)."""
        return jnp.arange(self.num_labels) >= self.num_rankings

    def membership(self, labels: Array, num_slots: int) -> Membership:
        """Return which rows are in which cluster."""
        return membership_of(labels, self.row_index, self.counts, num_slots)


def check_shape_for(shape: Any, rankings: Rankings) -> None:
    """Raise ValueError if rankings do not go with the shape of the prior of the weights."""
    if rankings.num_items < 2:
        raise ValueError("a ranking needs at least 2 items")
    if np.shape(shape) not in ((), (rankings.num_items,)):
        raise ValueError(
            f"shape must be a number or have one entry for each of the {rankings.num_items} "
            f"items, got shape {np.shape(shape)}"
        )


def as_data(rankings: Rankings, pool: bool = False) -> PlackettLuceData:
    """Return the choices of the rankings; a ``pool`` of unseen items is always in play."""
    choices = as_choices(
        jnp.asarray(rankings.orderings),
        None if rankings.choice_sets is None else jnp.asarray(rankings.choice_sets),
        rankings.num_items,
        pool,
    )
    return PlackettLuceData(choices, jnp.asarray(rankings.counts), row_index_of(rankings))


def log_likelihood_of(
    data: PlackettLuceData, membership: Membership, weights: Array, pool: Array | None
) -> Pair:
    """Return the log likelihood of all rankings in their clusters, eq. (1), as a pair of floats."""
    num_clusters, num_items = weights.shape
    choices, stages = data.choices, data.choices.orderings.shape[1]
    chosen = times_chosen(choices, *membership, num_clusters, num_items)
    most = data.num_labels
    total = sum_as_pair(times_log(chosen, jnp.where(chosen > 0, weights, 1.0), largest=most))
    if can_be_tabled(num_clusters, num_items, len(membership.clusters), stages):
        counts = set_counts(choices, *membership, num_clusters, num_items)
        masses = sum_as_pair(times_log(counts, *set_mass_pairs(weights, pool), largest=most))
        return subtract_pair(total, masses)
    if len(membership.clusters) == data.num_labels:  # each entry is one ranking
        most = 1
    counts = at_rows(choices.informative.T, membership.rows, 1) * membership.weights
    masses = stage_mass_pairs(choices, membership.rows, membership.clusters, weights, pool)

    def one_stage(stage: tuple[Array, Pair]) -> Pair:
        counts, masses = stage
        return sum_as_pair(times_log(counts, *masses, largest=most))

    return subtract_pair(total, sum_pairs(jax.lax.map(one_stage, (counts, masses))))
