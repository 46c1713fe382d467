r"""Plackett–Luce likelihoods: what was chosen from what, and for how long items were in play.

At a stage of a ranking an item k is chosen from those in play, whose weights add up to a mass W.
Beside its probability :math:`w_k / W` stands a waiting time Z ~ Exponential(W), and jointly
:math:`w_k e^{-Z W}` (Caron, Teh & Murphy 2014, eq. 4). So all that the weights want to know of the
rankings is how often an item was chosen, and the sum of Z over the stages where it was in play.

The paper's cost O(K·J·m·L) is not needed: an item is in play in all of a list, but for the stages
after its own. Differences of such sums lose digits, so they are kept in multiples of a unit, which
integers add exactly, and a small remainder. Of few items, stages with the same items in play are
taken together, whatever the lists that they belong to.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.ops.loops import shared_bound
from numpyro_rankings.ops.pairs import Pair, two_sum
from numpyro_rankings.ops.sums import scatter_add, sum_by_label

_MOST_TABLED = 12  # items, of which every subset has a cell
_UNROLLED_STAGES = 16
_UNIT = 2.0**-29  # of weights that add up to 1
_MOST_DESIGNED = 2**20  # cells of a dense table of rows and sets


class Choices(NamedTuple):
    """Rankings as choices, rows as in ``Rankings``.

    - **orderings** - (rows, T).
    - **informative** - stages that list an item and had another one in play, (rows, T) bool.
    - **unlisted** - items that were offered and not listed, (rows, n) bool, for subset rankings;
      None if every item was offered.
    """

    orderings: Array
    informative: Array
    unlisted: Array | None


def as_choices(orderings: Array, choice_sets: Array | None, num_items: int, pool: bool) -> Choices:
    """The choices of rankings; a ``pool`` of unseen items is always in play."""
    num_rows, num_stages = orderings.shape
    listed = orderings >= 0
    offered = jnp.array(num_items) if choice_sets is None else choice_sets.sum(1, keepdims=True)
    informative = listed & ((offered - jnp.arange(num_stages) > 1) | pool)
    unlisted = None
    if choice_sets is not None:
        columns = jnp.where(listed, orderings, num_items)
        unlisted = choice_sets.at[jnp.arange(num_rows)[:, None], columns].set(False, mode="drop")
    return Choices(orderings, informative, unlisted)


def times_chosen(
    choices: Choices, rows: Array, clusters: Array, counts: Array, num_clusters: int, num_items: int
) -> Array:
    """n_k: informative stages that chose an item, (C, n), of the type of the counts.

    :param rows: row, **clusters** and number of copies, **counts**, of each entry, (entries,).
    """
    columns = jnp.where(choices.informative, choices.orderings, num_items)[rows]
    zeros = jnp.zeros((num_clusters, num_items), counts.dtype)
    return scatter_add(zeros, (clusters[:, None], columns), counts[:, None])


# -- one entry after the other -------------------------------------------------------------------


def _suffix_sums(x: Array) -> Array:
    """Sums from each stage on, stages first."""
    if len(x) > _UNROLLED_STAGES:
        return jax.lax.cumsum(x, axis=0, reverse=True)
    sums = [x[-1]]
    for stage in reversed(range(len(x) - 1)):
        sums.append(sums[-1] + x[stage])
    return jnp.stack(sums[::-1])


def _split(x: Array, unit: Array | float) -> tuple[Array, Array]:
    """As integer multiples of a unit, and what remains."""
    coarse = jnp.floor(x / unit)
    return coarse.astype(jnp.int32), x - coarse * unit


def stage_masses(
    choices: Choices, rows: Array, clusters: Array, weights: Array, pool: Array | None
) -> Array:
    """Mass of the items in play at each stage of each entry, stages first: (T, entries).

    :param weights: (C, n); they and the pool's add up to at most 1 in each cluster.
    :param pool: weight of the unseen items, (C,), or None.
    """
    items = choices.orderings.T[:, rows]
    chosen = jnp.where(items >= 0, weights[clusters, jnp.maximum(items, 0)], 0.0)
    if choices.unlisted is None:
        coarse, fine = (part.sum(1)[clusters] for part in _split(weights, _UNIT))
        rest = _rest(coarse, fine, chosen)
    else:
        rest = (choices.unlisted.astype(weights.dtype) @ weights.T)[rows, clusters]
    if pool is not None:
        rest = rest + pool[clusters]
    return jnp.maximum(_suffix_sums(chosen) + rest, jnp.finfo(weights.dtype).tiny)


def _rest(coarse: Array, fine: Array, chosen: Array) -> Array:
    """What is left of the sum of all weights, in its two parts, without the listed ones."""
    listed_coarse, listed_fine = (part.sum(0) for part in _split(chosen, _UNIT))
    return jnp.maximum((coarse - listed_coarse) * _UNIT + (fine - listed_fine), 0.0)


def stage_mass_pairs(
    choices: Choices, rows: Array, clusters: Array, weights: Array, pool: Array | None
) -> Pair:
    """The same masses, and what float32 leaves of them; of subset rankings nothing is kept."""
    if choices.unlisted is not None:
        masses = stage_masses(choices, rows, clusters, weights, pool)
        return masses, jnp.zeros_like(masses)
    items = choices.orderings.T[:, rows]
    chosen = jnp.where(items >= 0, weights[clusters, jnp.maximum(items, 0)], 0.0)
    parts = []
    for all_of, listed in zip(_split(weights, _UNIT), _split(chosen, _UNIT), strict=True):
        parts.append(_suffix_sums(listed) + (all_of.sum(1)[clusters] - listed.sum(0)))
    if pool is not None:
        parts = [x + y[clusters] for x, y in zip(parts, _split(pool, _UNIT), strict=True)]
    return _as_pair(*parts)


def _as_pair(coarse: Array, fine: Array) -> Pair:
    """Multiples of the unit and what remains as a positive number and the rest of it."""
    number = coarse.astype(fine.dtype)
    left = (coarse - number.astype(coarse.dtype)).astype(fine.dtype)
    total, rest = two_sum(number * _UNIT, left * _UNIT + fine)
    tiny = jnp.finfo(fine.dtype).tiny
    return jnp.maximum(total, tiny), jnp.where(total >= tiny, rest, 0.0)


def times_in_play(
    times: Array, choices: Choices, rows: Array, clusters: Array, num_clusters: int, num_items: int
) -> tuple[Array, Array]:
    """Σ δ_ℓik Z_ℓi: waiting times of the stages where an item was in play.

    :param times: Z, stages first, 0 at stages that are not informative, (T, entries).
    :return: (C, n), and the sum of all waiting times, (C,).
    """
    items = choices.orderings.T[:, rows]
    columns = jnp.where(items >= 0, items, num_items)
    suffix = _suffix_sums(times)
    of_entry = suffix[0]
    totals = sum_by_label(of_entry, clusters, num_clusters)
    zeros = jnp.zeros((num_clusters, num_items), times.dtype)
    if choices.unlisted is not None:
        # the stages up to an item's own, or all if it is not listed
        upto = of_entry - suffix + times
        listed = scatter_add(zeros, (clusters, columns), upto)
        by_row = jnp.zeros((num_clusters, len(choices.orderings)), times.dtype)
        by_row = scatter_add(by_row, (clusters, rows), of_entry)
        return listed + by_row @ choices.unlisted.astype(times.dtype), totals
    # all of the cluster's, but for the stages after an item's own
    unit = jnp.maximum(jnp.sum(of_entry), jnp.finfo(times.dtype).tiny) * 2.0**-30
    after = suffix - times
    in_play = []
    for all_of, part in zip(_split(of_entry, unit), _split(after, unit), strict=True):
        total = sum_by_label(all_of, clusters, num_clusters)
        behind = scatter_add(zeros.astype(part.dtype), (clusters, columns), part)
        in_play.append(total[:, None] - behind)
    coarse, fine = in_play
    return jnp.maximum(coarse * unit + fine, 0.0), totals


# -- stages with the same items in play taken together ---------------------------------------------


def can_be_tabled(num_clusters: int, num_items: int, num_entries: int, num_stages: int) -> bool:
    """Whether the sets of items in play are few beside the stages of all entries."""
    return num_items <= _MOST_TABLED and num_clusters * 2**num_items <= num_entries * num_stages


def set_codes(choices: Choices, num_items: int) -> Array:
    """Which items are in play, as the bits of a number, (rows, T)."""
    bits = jnp.where(choices.orderings >= 0, 1 << jnp.maximum(choices.orderings, 0), 0)
    everything = jnp.array(2**num_items - 1)
    if choices.unlisted is not None:
        everything = bits.sum(1, keepdims=True)
        everything += (choices.unlisted * (1 << jnp.arange(num_items))).sum(1, keepdims=True)
    return everything - jnp.cumsum(bits, axis=1) + bits


def in_sets(num_items: int, dtype) -> Array:
    """Which items are in which set, (2^n, n)."""
    sets = np.arange(2**num_items)[:, None] >> np.arange(num_items)
    return jnp.asarray(sets & 1, dtype)


def set_counts(
    choices: Choices, rows: Array, clusters: Array, counts: Array, num_clusters: int, num_items: int
) -> Array:
    """Informative stages with each set in play, (C, 2^n), of the type of the counts."""
    codes = jnp.where(choices.informative, set_codes(choices, num_items), 2**num_items)[rows]
    zeros = jnp.zeros((num_clusters, 2**num_items), counts.dtype)
    return scatter_add(zeros, (clusters[:, None], codes), counts[:, None])


def set_masses(weights: Array, pool: Array | None) -> Array:
    """Mass of every set of items, (C, 2^n)."""
    masses = jnp.dot(weights, in_sets(weights.shape[1], weights.dtype).T, precision="highest")
    if pool is not None:
        masses = masses + pool[:, None]
    return jnp.maximum(masses, jnp.finfo(weights.dtype).tiny)


def set_mass_pairs(weights: Array, pool: Array | None) -> Pair:
    """The same, and what float32 leaves of them."""
    coarse, fine = _split(weights, _UNIT)
    sets = in_sets(weights.shape[1], fine.dtype).T
    coarse = jnp.dot(coarse, sets.astype(coarse.dtype))
    fine = jnp.dot(fine, sets, precision="highest")
    if pool is not None:
        pool_coarse, pool_fine = _split(pool, _UNIT)
        coarse, fine = coarse + pool_coarse[:, None], fine + pool_fine[:, None]
    return _as_pair(coarse, fine)


# -- the likelihood --------------------------------------------------------------------------------


def cells_if_tabled(choices: Choices, num_items: int) -> Array | None:
    """Which set was in play and which item was chosen, as one number, stages first, (T, rows).

    :return: None if a table of all sets and items is not worth its while. Stages that say nothing
        have the number after the last one.
    """
    num_cells = num_items * 2**num_items
    if num_items > _MOST_TABLED or num_cells > choices.orderings.size:
        return None
    cells = set_codes(choices, num_items) * num_items + choices.orderings
    return jnp.where(choices.informative, cells, num_cells).T


def counts_of_cells(cells: Array, amounts: Array, num_items: int) -> tuple[Array, Array]:
    """How often each item was chosen, (n,), and each set in play, (2^n,), rows counting so much."""
    zeros = jnp.zeros(num_items * 2**num_items, amounts.dtype)
    counts = scatter_add(zeros, cells, jnp.broadcast_to(amounts, cells.shape))
    counts = counts.reshape(-1, num_items)
    return counts.sum(0), counts.sum(1)


def log_row_likelihoods(
    choices: Choices, weights: Array, pool: Array | None, cells: Array | None
) -> Array:
    """Log probability of every row in one cluster, (rows,), eq. (1); it has a gradient.

    Stages are added up one after the other: of a sum over an axis XLA on CPUs computes the terms
    one number at a time.

    :param weights: (n,); they and the pool's, (), add up to 1.
    :param cells: of :func:`cells_if_tabled`.
    """
    num_rows, num_stages = choices.orderings.shape
    tiny = jnp.finfo(weights.dtype).tiny
    unroll = min(num_stages, _UNROLLED_STAGES)
    zeros = jnp.zeros(num_rows, weights.dtype)
    outside = jnp.zeros((), weights.dtype) if pool is None else pool

    def log_or_impossible(weights: Array) -> Array:
        possible = weights > 0
        return jnp.where(possible, jnp.log(jnp.where(possible, weights, 1.0)), -jnp.inf)

    if cells is not None:
        masses = set_masses(weights[None], outside[None])[0]
        table = log_or_impossible(weights) - jnp.log(masses)[:, None]
        table = jnp.append(table.ravel(), 0.0)
        return jax.lax.scan(lambda total, cell: (total + table[cell], None), zeros, cells)[0]

    of_column = jnp.append(weights, 0.0)
    columns = jnp.where(choices.orderings >= 0, choices.orderings, len(weights)).T
    if choices.unlisted is None:
        rest = _unlisted_mass(of_column, columns, unroll)
    else:
        rest = choices.unlisted.astype(weights.dtype) @ weights

    def stage(now: tuple[Array, Array], of_stage: tuple[Array, Array]) -> tuple:
        mass, total = now
        column, informative = of_stage
        chosen = of_column[column]
        mass = mass + chosen
        log_stage = log_or_impossible(chosen / jnp.maximum(mass, tiny))
        return (mass, total + jnp.where(informative, log_stage, 0.0)), None

    start = rest + outside, zeros
    stages = columns, choices.informative.T
    return jax.lax.scan(stage, start, stages, reverse=True, unroll=unroll)[0][1]


def _unlisted_mass(weights: Array, columns: Array, unroll: int) -> Array:
    """The sum of all weights without those in the columns, (rows,)."""
    coarse, fine = (part.sum() for part in _split(weights, _UNIT))

    def stage(left: tuple, column: Array) -> tuple:
        chosen = weights[column]
        parts = *_split(chosen, _UNIT), chosen
        return jax.tree.map(lambda total, part: total - part, left, parts), None

    start = coarse, fine, weights.sum()
    start = jax.tree.map(lambda total: jnp.broadcast_to(total, columns.shape[1:]), start)
    (coarse, fine, plain), _ = jax.lax.scan(stage, start, columns, unroll=unroll)
    # integers have no slope: it is that of the plain sums
    rest = jax.lax.stop_gradient(jnp.maximum(coarse * _UNIT + fine, 0.0))
    return rest + (plain - jax.lax.stop_gradient(plain))


def can_be_designed(num_rows: int, num_items: int) -> bool:
    """Whether a dense table of rows and sets of items is small."""
    return num_items <= _MOST_TABLED and num_rows * 2**num_items <= _MOST_DESIGNED


def design_if_small(choices: Choices, num_items: int, dtype) -> Array | None:
    """How often a row chose each item, and less how often each set was in play there.

    Log likelihoods are this times the logarithms of the weights and masses: for few rows and
    items the fastest form, with its gradient.

    :return: (rows, n + 2^n), or None if that is large.
    """
    num_rows = choices.orderings.shape[0]
    if not can_be_designed(num_rows, num_items):
        return None
    width = num_items + 2**num_items
    items = jnp.where(choices.informative, choices.orderings, width)
    sets = jnp.where(choices.informative, num_items + set_codes(choices, num_items), width)
    rows = jnp.arange(num_rows)[:, None]
    design = jnp.zeros((num_rows, width), dtype)
    return scatter_add(scatter_add(design, (rows, items), 1.0), (rows, sets), -1.0)


def log_designed_likelihoods(design: Array, weights: Array, pool: Array) -> Array:
    """Log probability of every row in one cluster, (rows,), by the table above.

    :param weights: (n,), and **pool**, (), 0 if there is none; they need not add up to 1.
    """
    masses = set_masses(weights[None], pool[None])[0]
    possible = weights > 0
    log_weights = jnp.where(possible, jnp.log(jnp.where(possible, weights, 1.0)), -1e30)
    # two products, for XLA unrolls what fills one array of both
    of_items, of_sets = design[:, : len(weights)], design[:, len(weights) :]
    chosen = jnp.dot(of_items, log_weights, precision="highest")
    return chosen + jnp.dot(of_sets, jnp.log(masses), precision="highest")


def log_likelihoods(
    choices: Choices, weights: Array, pool: Array | None, num_active: Array
) -> Array:
    """Log probability of every row in every active cluster, (C, rows), eq. (1).

    :param num_active: clusters from this one on are passed over, and get -inf.
    """
    num_clusters, num_items = weights.shape
    cells = cells_if_tabled(choices, num_items)

    def one_cluster(c: Array, table: Array) -> Array:
        row = log_row_likelihoods(choices, weights[c], None if pool is None else pool[c], cells)
        return table.at[c].set(jnp.where(c < num_active, row, -jnp.inf))

    table = jnp.full((num_clusters, choices.orderings.shape[0]), -jnp.inf, weights.dtype)
    return jax.lax.fori_loop(0, shared_bound(num_active), one_cluster, table)
