r"""Plackett–Luce likelihoods: which item was chosen from which, and how long items were in play.

At each stage of a ranking an item k is chosen from the items in play, whose weights sum to a mass
W. The choice has probability :math:`w_k / W`. A waiting time Z ~ Exponential(W) is added to it, and
the joint density is :math:`w_k e^{-Z W}` (Caron, Teh & Murphy 2014, eq. 4). The conditional of the
weights then depends on two sums only: how often each item was chosen, and the sum of Z over the
stages where it was in play.

The paper's cost of O(K·J·m·L) can be avoided: an item is in play at every stage of a list except
those after its own. Differences of such sums lose digits, so each sum is kept as an integer
multiple of a unit, which adds exactly, and a small remainder. With few items, stages that have the
same items in play are counted together, whichever lists they belong to.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from numpyro_rankings.ops.loops import shared_bound
from numpyro_rankings.ops.pairs import Pair, two_sum
from numpyro_rankings.ops.rows import at_rows
from numpyro_rankings.ops.sums import scatter_add, sum_by_label

_MOST_TABLED = 12  # items for which every subset has a cell
_UNROLLED_STAGES = 16
_UNIT = 2.0**-29  # unit of weights that sum to 1
_MOST_DESIGNED = 2**20  # cells of a dense table of rows and sets


class Choices(NamedTuple):
    """Rankings as choices, with the rows of ``Rankings``."""

    orderings: Array  # (rows, T)
    informative: Array  # stages that list an item while another is in play, (rows, T) bool
    unlisted: Array | None  # items offered but not listed, (rows, n) bool; None if all were offered


def as_choices(orderings: Array, choice_sets: Array | None, num_items: int, pool: bool) -> Choices:
    """Make the choices of rankings; with ``pool``, a pool of unseen items is always in play."""
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
    choices: Choices,
    rows: Array | None,
    clusters: Array,
    counts: Array,
    num_clusters: int,
    num_items: int,
) -> Array:
    """n_k: informative stages at which each item was chosen, (C, n), of the type of ``counts``."""
    # Entry i is of row ``rows[i]``, or i if None; it has a cluster and a number of copies.
    columns = at_rows(jnp.where(choices.informative, choices.orderings, num_items), rows)
    zeros = jnp.zeros((num_clusters, num_items), counts.dtype)
    return scatter_add(zeros, (clusters[:, None], columns), counts[:, None])


# -- entry by entry ------------------------------------------------------------------------------


def _suffix_sums(x: Array) -> Array:
    """Sums over each stage and those after it; stages are the first axis."""
    if len(x) > _UNROLLED_STAGES:
        return jax.lax.cumsum(x, axis=0, reverse=True)
    sums = [x[-1]]
    for stage in reversed(range(len(x) - 1)):
        sums.append(sums[-1] + x[stage])
    return jnp.stack(sums[::-1])


def _split(x: Array, unit: Array | float) -> tuple[Array, Array]:
    """Split into integer multiples of a unit and a remainder."""
    coarse = jnp.floor(x / unit)
    return coarse.astype(jnp.int32), x - coarse * unit


def stage_masses(
    choices: Choices, rows: Array | None, clusters: Array, weights: Array, pool: Array | None
) -> Array:
    """Mass of the items in play at each stage of each entry, (T, entries)."""
    # The weights, (C, n), and the pool of unseen items, (C,) or None, sum to at most 1.
    items = at_rows(choices.orderings.T, rows, 1)
    chosen = jnp.where(items >= 0, weights[clusters, jnp.maximum(items, 0)], 0.0)
    if choices.unlisted is None:
        coarse, fine = (part.sum(1)[clusters] for part in _split(weights, _UNIT))
        rest = _rest(coarse, fine, chosen)
    else:
        unlisted = choices.unlisted.astype(weights.dtype)
        masses = at_rows(jnp.dot(unlisted, weights.T, precision="highest"), rows)
        rest = jnp.take_along_axis(masses, clusters[:, None], axis=1, mode="clip")[:, 0]
    if pool is not None:
        rest = rest + pool[clusters]
    return jnp.maximum(_suffix_sums(chosen) + rest, jnp.finfo(weights.dtype).tiny)


def _rest(coarse: Array, fine: Array, chosen: Array) -> Array:
    """The sum of all weights, given in its two parts, less the weights of the listed items."""
    listed_coarse, listed_fine = (part.sum(0) for part in _split(chosen, _UNIT))
    return jnp.maximum((coarse - listed_coarse) * _UNIT + (fine - listed_fine), 0.0)


def stage_mass_pairs(
    choices: Choices, rows: Array | None, clusters: Array, weights: Array, pool: Array | None
) -> Pair:
    """:func:`stage_masses` with the part that float32 loses; for subset rankings that part is 0."""
    if choices.unlisted is not None:
        masses = stage_masses(choices, rows, clusters, weights, pool)
        return masses, jnp.zeros_like(masses)
    items = at_rows(choices.orderings.T, rows, 1)
    chosen = jnp.where(items >= 0, weights[clusters, jnp.maximum(items, 0)], 0.0)
    parts = []
    for all_of, listed in zip(_split(weights, _UNIT), _split(chosen, _UNIT), strict=True):
        parts.append(_suffix_sums(listed) + (all_of.sum(1)[clusters] - listed.sum(0)))
    if pool is not None:
        parts = [x + y[clusters] for x, y in zip(parts, _split(pool, _UNIT), strict=True)]
    return _as_pair(*parts)


def _as_pair(coarse: Array, fine: Array) -> Pair:
    """Convert multiples of the unit and a remainder to a positive number and its lost part."""
    number = coarse.astype(fine.dtype)
    left = (coarse - number.astype(coarse.dtype)).astype(fine.dtype)
    total, rest = two_sum(number * _UNIT, left * _UNIT + fine)
    tiny = jnp.finfo(fine.dtype).tiny
    return jnp.maximum(total, tiny), jnp.where(total >= tiny, rest, 0.0)


def times_in_play(
    times: Array,
    choices: Choices,
    rows: Array | None,
    clusters: Array,
    num_clusters: int,
    num_items: int,
) -> tuple[Array, Array]:
    """Σ δ_ℓik Z_ℓi by item, (C, n), and Σ Z by cluster, (C,), of waiting times, (T, entries)."""
    # Times are 0 at stages that are not informative.
    items = at_rows(choices.orderings.T, rows, 1)
    columns = jnp.where(items >= 0, items, num_items)
    suffix = _suffix_sums(times)
    of_entry = suffix[0]
    totals = sum_by_label(of_entry, clusters, num_clusters)
    zeros = jnp.zeros((num_clusters, num_items), times.dtype)
    if choices.unlisted is not None:
        # the stages up to an item's own, or all stages if it is not listed; as a difference of sums
        # it could be negative where the last times are long
        upto = _suffix_sums(times[::-1])[::-1]
        listed = scatter_add(zeros, (clusters, columns), upto)
        by_row = jnp.zeros((num_clusters, len(choices.orderings)), times.dtype)
        rows = jnp.arange(len(clusters)) if rows is None else rows
        by_row = scatter_add(by_row, (clusters, rows), of_entry)
        unlisted = choices.unlisted.astype(times.dtype)
        return listed + jnp.dot(by_row, unlisted, precision="highest"), totals
    # all stages of the cluster except those after an item's own
    unit = jnp.maximum(jnp.sum(of_entry), jnp.finfo(times.dtype).tiny) * 2.0**-30
    after = suffix - times
    in_play = []
    for all_of, part in zip(_split(of_entry, unit), _split(after, unit), strict=True):
        total = sum_by_label(all_of, clusters, num_clusters)
        behind = scatter_add(zeros.astype(part.dtype), (clusters, columns), part)
        in_play.append(total[:, None] - behind)
    coarse, fine = in_play
    return jnp.maximum(coarse * unit + fine, 0.0), totals


# -- stages with the same items in play, counted together ------------------------------------------


def can_be_tabled(num_clusters: int, num_items: int, num_entries: int, num_stages: int) -> bool:
    """Whether there are fewer sets of items, over all clusters, than stages of all entries."""
    return num_items <= _MOST_TABLED and num_clusters * 2**num_items <= num_entries * num_stages


def set_codes(choices: Choices, num_items: int) -> Array:
    """The items in play at each stage, as the bits of a number, (rows, T)."""
    bits = jnp.where(choices.orderings >= 0, 1 << jnp.maximum(choices.orderings, 0), 0)
    everything = jnp.array(2**num_items - 1)
    if choices.unlisted is not None:
        everything = bits.sum(1, keepdims=True)
        everything += (choices.unlisted * (1 << jnp.arange(num_items))).sum(1, keepdims=True)
    return everything - jnp.cumsum(bits, axis=1) + bits


def in_sets(num_items: int, dtype: DTypeLike) -> Array:
    """Membership of the items in every set, (2^n, n)."""
    sets = np.arange(2**num_items)[:, None] >> np.arange(num_items)
    return jnp.asarray(sets & 1, dtype)


def set_counts(
    choices: Choices,
    rows: Array | None,
    clusters: Array,
    counts: Array,
    num_clusters: int,
    num_items: int,
) -> Array:
    """Number of informative stages with each set in play, (C, 2^n), of the type of ``counts``."""
    codes = jnp.where(choices.informative, set_codes(choices, num_items), 2**num_items)
    codes = at_rows(codes, rows)
    zeros = jnp.zeros((num_clusters, 2**num_items), counts.dtype)
    return scatter_add(zeros, (clusters[:, None], codes), counts[:, None])


def set_masses(weights: Array, pool: Array | None) -> Array:
    """Mass of every set of items, (C, 2^n)."""
    masses = jnp.dot(weights, in_sets(weights.shape[1], weights.dtype).T, precision="highest")
    if pool is not None:
        masses = masses + pool[:, None]
    return jnp.maximum(masses, jnp.finfo(weights.dtype).tiny)


def set_mass_pairs(weights: Array, pool: Array | None) -> Pair:
    """:func:`set_masses` with the part that float32 loses."""
    coarse, fine = _split(weights, _UNIT)
    sets = in_sets(weights.shape[1], fine.dtype).T
    coarse = jnp.dot(coarse, sets.astype(coarse.dtype), precision="highest")
    fine = jnp.dot(fine, sets, precision="highest")
    if pool is not None:
        pool_coarse, pool_fine = _split(pool, _UNIT)
        coarse, fine = coarse + pool_coarse[:, None], fine + pool_fine[:, None]
    return _as_pair(coarse, fine)


# -- the likelihood --------------------------------------------------------------------------------


def cells_if_tabled(choices: Choices, num_items: int) -> Array | None:
    """The set in play and the item chosen, as one number, (T, rows), or None if it is no gain."""
    # Stages that are not informative get the number after the last cell.
    num_cells = num_items * 2**num_items
    if num_items > _MOST_TABLED or num_cells > choices.orderings.size:
        return None
    cells = set_codes(choices, num_items) * num_items + choices.orderings
    return jnp.where(choices.informative, cells, num_cells).T


def counts_of_cells(cells: Array, amounts: Array, num_items: int) -> tuple[Array, Array]:
    """How often each item was chosen, (n,), and each set in play, (2^n,), given amounts of rows."""
    zeros = jnp.zeros(num_items * 2**num_items, amounts.dtype)
    counts = scatter_add(zeros, cells, jnp.broadcast_to(amounts, cells.shape))
    counts = counts.reshape(-1, num_items)
    return counts.sum(0), counts.sum(1)


def log_choice_row_likelihoods(
    choices: Choices, weights: Array, pool: Array | None, cells: Array | None
) -> Array:
    """Log probability of every row in one cluster, (rows,), eq. (1); it has a gradient."""
    # Stages are added in a loop, because XLA on CPUs does not vectorise the terms of a sum over an
    # axis. The weights, (n,), and the pool, (), sum to 1.
    num_rows, num_stages = choices.orderings.shape
    tiny = jnp.finfo(weights.dtype).tiny
    unroll = min(num_stages, _UNROLLED_STAGES)
    zeros, ones = jnp.zeros(num_rows, weights.dtype), jnp.ones(num_rows, weights.dtype)
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
        unlisted = choices.unlisted.astype(weights.dtype)
        rest = jnp.dot(unlisted, weights, precision="highest")

    def stage(carry: tuple[Array, Array, Array], stage_inputs: tuple[Array, Array]) -> tuple:
        mass, product, exponent = carry
        column, informative = stage_inputs
        chosen = of_column[column]
        mass = mass + chosen
        share = jnp.where(informative, chosen / jnp.maximum(mass, tiny), 1.0)
        product, more = split_exponent(product * share)
        return (mass, product, exponent + more), None

    start = rest + outside, ones, zeros
    stages = columns, choices.informative.T
    carry, _ = jax.lax.scan(stage, start, stages, reverse=True, unroll=unroll)
    _, product, exponent = carry
    return log_or_impossible(product) + np.log(2.0) * exponent


@jax.custom_jvp
def split_exponent(x: Array) -> tuple[Array, Array]:
    """Write positive numbers as m 2^e with 1 ≤ m < 2, where e is a float; 0 gives m = 0."""
    # The log of a long product then takes one logarithm, not one for each factor, which costs
    # several times as much. Numbers below the least normal one count as that.
    info = jnp.finfo(x.dtype)
    integers = jnp.int32 if info.bits == 32 else jnp.int64
    bits = jax.lax.bitcast_convert_type(jnp.maximum(x, info.tiny), integers)
    biased = bits >> info.nmant
    one = jax.lax.bitcast_convert_type(jnp.ones((), x.dtype), integers)
    mantissa = jax.lax.bitcast_convert_type((bits & (2**info.nmant - 1)) | one, x.dtype)
    return jnp.where(x > 0, mantissa, 0.0), (biased - info.maxexp + 1).astype(x.dtype)


@split_exponent.defjvp
def _split_exponent_jvp(primals: tuple, tangents: tuple) -> tuple:
    mantissa, exponent = split_exponent(*primals)
    (change,) = tangents
    return (mantissa, exponent), (change * jnp.exp2(-exponent), jnp.zeros_like(exponent))


def _unlisted_mass(weights: Array, columns: Array, unroll: int) -> Array:
    """The sum of all weights except those in the columns, (rows,)."""
    coarse, fine = (part.sum() for part in _split(weights, _UNIT))

    def stage(left: tuple, column: Array) -> tuple:
        chosen = weights[column]
        parts = *_split(chosen, _UNIT), chosen
        return jax.tree.map(lambda total, part: total - part, left, parts), None

    start = coarse, fine, weights.sum()
    start = jax.tree.map(lambda total: jnp.broadcast_to(total, columns.shape[1:]), start)
    (coarse, fine, plain), _ = jax.lax.scan(stage, start, columns, unroll=unroll)
    # integers have no gradient, so the gradient is taken from the plain sums
    rest = jax.lax.stop_gradient(jnp.maximum(coarse * _UNIT + fine, 0.0))
    return rest + (plain - jax.lax.stop_gradient(plain))


def can_be_designed(num_rows: int, num_items: int) -> bool:
    """Whether a dense table of rows by sets of items is small."""
    return num_items <= _MOST_TABLED and num_rows * 2**num_items <= _MOST_DESIGNED


def design_if_small(choices: Choices, num_items: int, dtype: DTypeLike) -> Array | None:
    """For each row, how often it chose each item and, with a minus sign, met each set in play."""
    # The log likelihoods are this matrix, (rows, n + 2^n), times the logarithms of weights and
    # masses. For few rows and items it is the fastest form, also of the gradient; else None.
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
    """Log probability of every row in one cluster, (rows,), by :func:`design_if_small`."""
    # The weights, (n,), and the pool, (), 0 if there is none, need not sum to 1.
    masses = set_masses(weights[None], pool[None])[0]
    possible = weights > 0
    log_weights = jnp.where(possible, jnp.log(jnp.where(possible, weights, 1.0)), -1e30)
    return jnp.dot(design, jnp.append(log_weights, jnp.log(masses)), precision="highest")


def log_choice_likelihoods(
    choices: Choices, weights: Array, pool: Array | None, num_active: Array
) -> Array:
    """Log probability of every row in every active cluster, (C, rows), eq. (1); of others -inf."""
    num_clusters, num_items = weights.shape
    cells = cells_if_tabled(choices, num_items)

    def one_cluster(c: Array, table: Array) -> Array:
        row = log_choice_row_likelihoods(
            choices, weights[c], None if pool is None else pool[c], cells
        )
        return table.at[c].set(jnp.where(c < num_active, row, -jnp.inf))

    table = jnp.full((num_clusters, choices.orderings.shape[0]), -jnp.inf, weights.dtype)
    return jax.lax.fori_loop(0, shared_bound(num_active), one_cluster, table)
