"""Rankings as the Mallows kernels read them: codes, their sums, and likelihoods of rows."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.infer.mixture.members import Members, members
from numpyro_rankings.ops.codes import codes_from_places, max_codes
from numpyro_rankings.ops.loops import shared_bound
from numpyro_rankings.ops.special import log_psi
from numpyro_rankings.ops.sums import sum_by_label
from numpyro_rankings.rankings import Rankings

_MOST_CODES = 2**31 - 1  # what a sum of codes, int32, can be


class MallowsData(NamedTuple):
    """Rankings as the updates read them.

    - **orderings** - distinct lists cut to the T stages that carry information, (rows, T).
    - **counts** - how many rankings each row stands for, (rows,).
    - **row_index** - row of each of the N rankings, (N,).
    - **log_marginal** - log probability of a row under a uniform center, (n-t)!/n! (Lemma 1).
    """

    orderings: Array
    counts: Array
    row_index: Array
    log_marginal: Array

    @property
    def listed(self) -> Array:
        """Whether a stage of a row holds an item, (rows, T)."""
        return self.orderings >= 0

    @property
    def num_rankings(self) -> int:
        """N, the number of rankings."""
        return self.row_index.shape[0]

    def members(self, assignments: Array, num_slots: int) -> Members:
        """Who belongs where."""
        return members(assignments, self.row_index, self.orderings.shape[0], num_slots)


def stage_counts(who: Members, data: MallowsData, num_slots: int) -> Array:
    """N_cj: rankings of each cluster that list at least j items, int32 (C, T)."""
    listed = jnp.where(data.listed[who.rows], who.weights[:, None], 0)
    return sum_by_label(listed, who.clusters, num_slots)


def code_sums(who: Members, data: MallowsData, places: Array) -> Array:
    """S_cj: sum of the stage codes of each cluster's rankings, int32 (C, T)."""
    orderings = data.orderings[who.rows]
    listed = orderings >= 0
    listed_places = places[who.clusters[:, None], jnp.maximum(orderings, 0)]
    codes = codes_from_places(listed_places, listed) * who.weights[:, None]
    return sum_by_label(codes, who.clusters, places.shape[0])


def largest_code_sum(rankings: Rankings, num_stages: int) -> int:
    """No code sum S_cj is larger, whatever the labels and centers.

    Every ranking lists an item first, with a code of n - 1 at most. Where that says too little, and
    the rankings are not traced, the codes of a stage are at most the places of its items, no two of
    which are equal.
    """
    most, n = rankings.num_rankings * (rankings.num_items - 1), rankings.num_items
    if most <= _MOST_CODES or rankings._is_traced():
        return most
    orderings, counts = np.asarray(rankings.orderings), np.asarray(rankings.counts, np.int64)
    bounds = []
    for j in range(num_stages):
        listed = orderings[:, j] >= 0
        often = np.zeros(n, np.int64)
        np.add.at(often, orderings[listed, j], counts[listed])
        codes = np.minimum(np.arange(n), n - 1 - j)
        bounds.append(int(np.sort(often) @ codes))
    return max(bounds)


def check_code_sums(rankings: Rankings, num_stages: int) -> None:
    """Refuse rankings whose code sums might wrap around."""
    most = largest_code_sum(rankings, num_stages)
    if most > _MOST_CODES:
        raise ValueError(
            f"{rankings.num_rankings} rankings of {rankings.num_items} items are too many: their "
            f"codes may add up to {most:.3g} at a stage, and sums are held up to {_MOST_CODES}. "
            f"Take a random part of at most {_MOST_CODES // (rankings.num_items - 1)} rankings, "
            "or leave out items that few of them list"
        )


_UNROLLED_STAGES = 16  # up to here the pairs of stages are written out, which XLA fuses best


def codes_by_stage(listed_places: Array) -> Array:
    """Stage codes of rows whose items stand at the given places of a center, both (T, rows).

    Stages come first, which computes far faster than (rows, T). Padding, at the end of a row, is
    to be ignored.
    """
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
    """Log probability of every row in one cluster, (rows,), eq. (2).

    :param items: at each stage, stages first, (T, rows), any where **listed** says there is none.
    :param places: place of each item in the center, (n,).
    :param concentration: (T,), and **log_psis**, the logarithms of their normalisers.
    """
    if len(items) > _UNROLLED_STAGES:
        return log_row_of_codes(codes_by_stage(places[items]), listed, concentration, log_psis)
    codes = _unrolled_codes([places[stage] for stage in items])
    return log_row_of_codes(codes, listed, concentration, log_psis)


def log_row_of_codes(
    codes: Array | list[Array], listed: Array, concentration: Array, log_psis: Array
) -> Array:
    """The same, given the codes of the rows.

    Stage by stage where they are few: of a sum over an axis XLA on CPUs computes the terms one
    number at a time.
    """
    num_stages = len(codes)
    if num_stages > _UNROLLED_STAGES:
        stages = -concentration[:, None] * jnp.asarray(codes) - log_psis[:, None]
        return jnp.sum(jnp.where(listed, stages, 0.0), axis=0)
    total = jnp.zeros(listed.shape[1], concentration.dtype)
    for j in range(num_stages):
        total += jnp.where(listed[j], -concentration[j] * codes[j] - log_psis[j], 0.0)
    return total


def log_likelihoods(
    data: MallowsData, places: Array, concentration: Array, num_active: Array, num_items: int
) -> Array:
    """Log probability of every distinct row in every active cluster, eq. (2).

    :param places: place of each item in each center, (C, n).
    :param concentration: (C, T).
    :param num_active: clusters from this one on are passed over, and get -inf.
    :return: (C, rows).
    """
    num_stages = concentration.shape[1]
    items = jnp.maximum(data.orderings, 0).T
    listed = data.listed.T
    log_psis = log_psi(concentration, max_codes(num_items, num_stages))

    def one_cluster(c: Array, table: Array) -> Array:
        row = log_row_likelihoods(items, listed, places[c], concentration[c], log_psis[c])
        return table.at[c].set(jnp.where(c < num_active, row, -jnp.inf))

    table = jnp.full((places.shape[0], data.orderings.shape[0]), -jnp.inf)
    return jax.lax.fori_loop(0, shared_bound(num_active), one_cluster, table)
