"""Rankings as the Mallows kernels read them: stage codes, their sums, and row likelihoods."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.infer.mixture.membership import Membership, membership_of, row_index_of
from numpyro_rankings.ops.codes import codes_from_places, inverse_ordering, max_codes
from numpyro_rankings.ops.loops import shared_bound
from numpyro_rankings.ops.rows import at_rows
from numpyro_rankings.ops.special import log_psi
from numpyro_rankings.ops.sums import count_by_label, sum_by_label
from numpyro_rankings.rankings import Rankings, num_stages

_MOST_CODES = 2**31 - 1  # what a sum of codes, int32, can be
_MOST_COLUMNS = 80  # stages times pairs of items, of a design
_UNROLLED_STAGES = 16  # up to this many, the pairs of stages are unrolled, which XLA fuses best


class MallowsData(NamedTuple):
    """Rankings as the updates read them. Labels from N on are padding."""

    orderings: Array  # distinct lists cut to the T stages that carry information, (rows, T)
    counts: Array  # number of rankings of each row, (rows,)
    row_index: Array | None  # row of each label, (labels,), or None, see row_index_of
    log_marginal: Array  # log p of a row under a uniform center, (n-t)!/n! (Lemma 1)
    limits: Array  # largest code of each stage, n - j, (T,)

    @property
    def listed(self) -> Array:
        """Whether a stage of a row holds an item, (rows, T)."""
        return self.orderings >= 0

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


def as_mallows_data(rankings: Rankings) -> MallowsData:
    """Return the arrays that the updates read."""
    n, stages = rankings.num_items, num_stages(rankings)
    orderings = jnp.asarray(rankings.orderings)[:, :stages]
    left = (n - jnp.arange(stages)).astype(float)
    log_marginal = -jnp.sum(jnp.where(orderings >= 0, jnp.log(left), 0.0), axis=1)
    rows = row_index_of(rankings)
    counts, limits = jnp.asarray(rankings.counts), max_codes(n, stages)
    return MallowsData(orderings, counts, rows, log_marginal, limits)


class Occupancy(NamedTuple):
    """The members of each cluster."""

    membership: Membership  # rows of each cluster
    sizes: Array  # rankings of each cluster, (C,)
    counts: Array  # N_cj: rankings of each cluster that list at least j items, int32 (C, T)


def occupancy_of(data: MallowsData, labels: Array, num_slots: int) -> Occupancy:
    """Return the rows, sizes and stage counts of the clusters."""
    membership = membership_of(labels, data.row_index, data.counts, num_slots)
    sizes = count_by_label(labels, num_slots)
    return Occupancy(membership, sizes, stage_counts(membership, data, num_slots))


def stage_counts(membership: Membership, data: MallowsData, num_slots: int) -> Array:
    """Count N_cj: rankings of each cluster that list at least j items, int32 (C, T)."""
    listed = jnp.where(at_rows(data.listed, membership.rows), membership.weights[:, None], 0)
    return sum_by_label(listed, membership.clusters, num_slots)


def code_sums(membership: Membership, data: MallowsData, places: Array) -> Array:
    """Sum S_cj: the stage codes of each cluster, int32 (C, T), given the places of the items."""
    orderings = at_rows(data.orderings, membership.rows)
    listed = orderings >= 0
    listed_places = places[membership.clusters[:, None], jnp.maximum(orderings, 0)]
    codes = codes_from_places(listed_places, listed) * membership.weights[:, None]
    return sum_by_label(codes, membership.clusters, places.shape[0])


class ClusterSums(NamedTuple):
    """Sums on which the likelihood of the clusters depends, besides θ."""

    sizes: Array  # rankings of each cluster, (C,) int32
    counts: Array  # N_cj, (C, T) int32
    codes: Array  # S_cj, (C, T) int32


def cluster_sums(data: MallowsData, labels: Array, center: Array) -> ClusterSums:
    """Sum up the clusters, whose centers are (C, n)."""
    membership, sizes, counts = occupancy_of(data, labels, len(center))
    return ClusterSums(sizes, counts, code_sums(membership, data, inverse_ordering(center)))


def largest_code_sum(rankings: Rankings, num_stages: int) -> int:
    """Return an upper bound of all code sums S_cj, for any labels and centers."""
    # A code is at most n - 1. If that bound is too large and the rankings are not traced, a sharper
    # bound is used: different items have different codes at one stage.
    most, n = rankings.num_rankings * (rankings.num_items - 1), rankings.num_items
    if most <= _MOST_CODES or rankings._is_traced():
        return most
    orderings, counts = np.asarray(rankings.orderings), np.asarray(rankings.counts, np.int64)
    bounds = []
    for j in range(num_stages):
        listed = orderings[:, j] >= 0
        item_counts = np.zeros(n, np.int64)
        np.add.at(item_counts, orderings[listed, j], counts[listed])
        codes = np.minimum(np.arange(n), n - 1 - j)
        bounds.append(int(np.sort(item_counts) @ codes))
    return max(bounds)


def check_code_sums(rankings: Rankings, num_stages: int) -> None:
    """Refuse rankings whose code sums might wrap around."""
    most = largest_code_sum(rankings, num_stages)
    if most > _MOST_CODES:
        enough = _MOST_CODES // (rankings.num_items - 1)
        raise ValueError(
            f"{rankings.num_rankings} rankings of {rankings.num_items} items are too many: the "
            f"sum of their codes may reach {most:.3g} at a stage, and the largest sum that can be "
            f"stored is {_MOST_CODES}. Take a random sample of at most {enough} rankings, or leave "
            "out items that few of them list"
        )


def codes_by_stage(listed_places: Array) -> Array:
    """Return the stage codes of rows, (T, rows), given the places of their items in a center."""
    # With stages first this is far faster. Codes of padding are arbitrary.
    num_stages = len(listed_places)
    if num_stages <= _UNROLLED_STAGES:
        return jnp.stack(_unrolled_codes(list(listed_places)))

    def one_stage(j: Array) -> Array:
        ahead = (listed_places < listed_places[j]) & (jnp.arange(num_stages) < j)[:, None]
        return listed_places[j] - ahead.sum(0)

    return jax.lax.map(one_stage, jnp.arange(num_stages))


def _unrolled_codes(listed_places: list[Array]) -> list[Array]:
    return [
        here - sum(before < here for before in listed_places[:j])
        for j, here in enumerate(listed_places)
    ]


def log_row_likelihoods(
    items: Array, listed: Array, places: Array, concentration: Array, log_psis: Array
) -> Array:
    """Return the log probability of every row in one cluster, (rows,), eq. (2)."""
    # The items at each stage, (T, rows), are arbitrary where not listed.
    if len(items) > _UNROLLED_STAGES:
        return _log_row_by_codes(codes_by_stage(places[items]), listed, concentration, log_psis)
    codes = _unrolled_codes([places[stage] for stage in items])
    return _log_row_by_codes(codes, listed, concentration, log_psis)


def _log_row_by_codes(
    codes: Array | list[Array], listed: Array, concentration: Array, log_psis: Array
) -> Array:
    """Return the log probability of every row in one cluster, (rows,), given its codes."""
    # Few stages are added one by one: XLA on CPUs does not vectorize a sum over an axis.
    num_stages = len(codes)
    if num_stages > _UNROLLED_STAGES:
        stages = -concentration[:, None] * jnp.asarray(codes) - log_psis[:, None]
        return jnp.sum(jnp.where(listed, stages, 0.0), axis=0)
    total = jnp.zeros(listed.shape[1], concentration.dtype)
    for j in range(num_stages):
        total += jnp.where(listed[j], -concentration[j] * codes[j] - log_psis[j], 0.0)
    return total


def design_if_small(data: MallowsData, num_items: int) -> Array | None:
    """Return what makes the log probabilities of rows linear, (columns, rows), for few items."""
    # A code is the number of items that are still there and stand ahead: linear in the orders of
    # all pairs in the center. Reading places of listed items cannot be vectorized on CPUs.
    num_stages = data.orderings.shape[1]
    low, high = np.triu_indices(num_items, 1)
    if num_stages * len(low) > _MOST_COLUMNS:
        return None
    is_listed = data.orderings[:, :, None] == jnp.arange(num_items)  # (rows, T, n)
    is_left = jnp.cumsum(is_listed, axis=1) - is_listed == 0
    # whether the lower item of a pair counts if it stands ahead, and the same of the higher one
    counts_low = (is_listed[:, :, high] & is_left[:, :, low]).astype(float)
    counts_high = (is_listed[:, :, low] & is_left[:, :, high]).astype(float)
    parts = counts_low - counts_high, counts_high.sum(2, keepdims=True), data.listed[:, :, None]
    return jnp.concatenate(parts, axis=2).reshape(len(data.orderings), -1).T


def log_designed_rows(design: Array, places: Array, concentration: Array, log_psis: Array) -> Array:
    """Return the log probability of every row in one cluster, (rows,), by its design."""
    low, high = np.triu_indices(len(places), 1)
    is_ahead = (places[low] < places[high]).astype(concentration.dtype)
    costs = -concentration[:, None] * jnp.append(is_ahead, 1.0)
    return jnp.dot(
        jnp.concatenate([costs, -log_psis[:, None]], axis=1).ravel(), design, precision="highest"
    )


def log_likelihoods(
    data: MallowsData, places: Array, concentration: Array, num_active: Array
) -> Array:
    """Return the log probability of every row in every active cluster, (C, rows), eq. (2)."""
    # Clusters from ``num_active`` on are not evaluated and get -inf.
    items = jnp.maximum(data.orderings, 0).T
    listed = data.listed.T
    log_psis = log_psi(concentration, data.limits)

    def one_cluster(c: Array, table: Array) -> Array:
        row = log_row_likelihoods(items, listed, places[c], concentration[c], log_psis[c])
        return table.at[c].set(jnp.where(c < num_active, row, -jnp.inf))

    table = jnp.full((places.shape[0], data.orderings.shape[0]), -jnp.inf)
    return jax.lax.fori_loop(0, shared_bound(num_active), one_cluster, table)
