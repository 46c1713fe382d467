r"""Sums over the orderings that agree with a partial order, by dynamic programming over sets.

A model draws an ordering item by item: of the set R of items that are left, item a is next with
probability p(a | R). The probability that R comes in some order that agrees with a partial order is

.. math:: g(R) = \sum_a p(a \mid R)\, g(R \setminus \{a\}), \qquad g(\emptyset) = 1,

with the sum over those items of R that no other item of R is above. Each ordering is counted once,
by its first item, then by its second, and so on.

The items of a row are cut into blocks wherever all items before a place are above all items from
it on, such as the buckets of tied items. The blocks come one after another in every ordering, so
that g factors, and a block of W items costs :math:`W 2^{W-1}` terms. All g(R) are positive, also
for sets R that cannot be left, so that there is no log of 0 and gradients are finite.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.ops.checks import is_traced
from numpyro_rankings.rankings.names import RankingsError, row_place

_NOTHING = -1e30  # log of 0, but finite, so that gradients are finite
_LARGEST_BLOCK = 16  # items
_LARGEST_TRACED = 12  # items of a row, if the partial orders are traced
_MOST_TERMS = 2**26

# log p(a | R), (sets, size, blocks), of the items a, (sets, size), of sets R of one size, which are
# what is left of a block, as bits, (sets, 1)
LogChoice = Callable[[np.ndarray, np.ndarray], Array]


class SumTooLargeError(RankingsError):
    """A sum over orders has too many terms; **reason** says which limit it exceeds."""

    def __init__(self, place: str, reason: str) -> None:
        self.reason = f"{reason} in {place}"
        super().__init__(
            f"{place}: log_prob {reason}; the kernels draw the order of the items instead"
        )


class Blocks(NamedTuple):
    """Blocks of W items each, which are neighbours in the table of listed items."""

    rows: Array  # the row of each block, (blocks,)
    starts: Array  # the place of its first item in the row, (blocks,)
    before: Array  # the items of the block that are above each one, as bits, int32 (blocks, W)
    listed: Array  # whether there is an item; padding is below all items, (blocks, W) bool
    # the minus log of the factor if the second of two items comes before the first, (blocks, W, W);
    # None for 1
    costs: Array | None = None

    @property
    def places(self) -> Array:
        """The place of each item in its row, (blocks, W)."""
        return self.starts[:, None] + jnp.arange(self.before.shape[1])

    def with_costs_times(self, factor: Array) -> "Blocks":
        """Return the blocks with their costs times a factor."""
        return self if self.costs is None else self._replace(costs=factor * self.costs)


def blocks_of(listed: Array, above: Array, complete: Array) -> list[Blocks]:
    """Cut rows into blocks, and return those of each width together.

    The sum of the last block is 1, and it is left out, if nothing is known of the order of its
    items and no other item is below them. If the rows are traced, their blocks cannot be known,
    and each row is one.

    :param listed: items in an order that agrees with ``above``, padded with -1, (rows, T).
    :param above: which of them are above which, (rows, T, T).
    :param complete: whether no other item is below those of the row, (rows,) bool.
    :raises SumTooLargeError: if the sums would be too large; the line names the row.
    """
    if is_traced((listed, above, complete)):
        return [_whole_rows(listed, above)]
    pairs = np.asarray(above)
    rows, starts, widths = _cuts(np.asarray(listed) >= 0, pairs.sum(1), np.asarray(complete))
    _check_size(rows, widths)
    return [
        _of_width(rows[widths == width], starts[widths == width], width, pairs)
        for width in np.unique(widths)
    ]


def _cuts(is_listed: np.ndarray, number: np.ndarray, complete: np.ndarray) -> tuple:
    """Return the row, first place and width of each block, by the number above each item."""
    # If k items are above the one at place k, then all items before it are. They are above each
    # later item too, which has at least k items above it, because the number orders the items.
    rows, starts = np.nonzero(is_listed & (number == np.arange(number.shape[1])))
    is_last = np.append(rows[1:] != rows[:-1], True)
    ends = np.where(is_last, is_listed.sum(1)[rows], np.append(starts[1:], 0))
    is_open = is_last & complete[rows] & (number[rows, ends - 1] == starts)
    return tuple(x[~is_open] for x in (rows, starts, ends - starts))


def _check_size(rows: np.ndarray, widths: np.ndarray) -> None:
    for block in np.flatnonzero(widths > _LARGEST_BLOCK)[:1]:
        raise SumTooLargeError(
            row_place(rows[block]),
            f"sums over the orders of at most {_LARGEST_BLOCK} items that are tied or not "
            f"compared, and there are {widths[block]}",
        )
    terms = np.where(widths > 1, widths * 2.0 ** (widths - 1), 0.0)
    if terms.sum() > _MOST_TERMS:
        raise SumTooLargeError(
            f"{row_place(rows[np.argmax(terms)])} and others",
            f"would sum {terms.sum():.2g} terms, more than {_MOST_TERMS:.2g}",
        )


def _of_width(rows: np.ndarray, starts: np.ndarray, width: int, above: np.ndarray) -> Blocks:
    places = starts[:, None] + np.arange(width)
    within = above[rows[:, None, None], places[:, :, None], places[:, None, :]]
    before = (within << np.arange(width)[:, None]).sum(1)
    rows, starts, before = (x.astype(np.int32) for x in (rows, starts, before))
    return Blocks(*map(jnp.asarray, (rows, starts, before, np.ones_like(places, bool))))


def _whole_rows(listed: Array, above: Array) -> Blocks:
    """Return each row as a block, with the padding below all items in its own order."""
    num_rows, width = listed.shape
    if width > _LARGEST_TRACED:
        raise RankingsError(
            f"log_prob takes partial orders with at most {_LARGEST_TRACED} listed items through "
            f"jit or vmap, not {width}: let the compiled function close over them instead"
        )
    is_listed = listed >= 0
    place = np.arange(width)
    is_above = above | (~is_listed[:, None, :] & (place[:, None] < place))
    before = jnp.sum(is_above << place[:, None], axis=1, dtype=jnp.int32)
    return Blocks(jnp.arange(num_rows), jnp.zeros(num_rows, jnp.int32), before, is_listed)


@lru_cache
def _sets(width: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return for each size from 1 the sets of items, as bits, (sets, 1), and for each of their
    items, (sets, size), its number, and which of the smaller sets is left without it."""
    is_in = np.arange(2**width)[:, None] >> np.arange(width) & 1
    found = []
    for size in range(1, width + 1):
        smaller, sets = (np.flatnonzero(is_in.sum(1) == k) for k in (size - 1, size))
        items = np.nonzero(is_in[sets])[1].reshape(-1, size)
        left = np.searchsorted(smaller, sets[:, None] - (1 << items))
        found.append((sets[:, None].astype(np.int32), items, left))
    return found


def log_sum_over_orders(blocks: Blocks, log_choice: LogChoice) -> Array:
    """log g of all items of each block, (blocks,)."""
    # compilers would evaluate what follows from constants, which takes long
    before, listed = jax.lax.optimization_barrier((blocks.before.T, blocks.listed.T))
    log_sum: Any = 0.0
    for sets, items, left in _sets(len(before)):
        terms = jnp.where(listed[items], log_choice(items, sets), 0.0)
        terms += log_sum if isinstance(log_sum, float) else log_sum[left]
        if blocks.costs is not None:
            is_left = (sets >> np.arange(len(before)) & 1).astype(np.float32)
            costs = jnp.einsum("sy,bya->sab", is_left, blocks.costs, precision="highest")
            terms -= jnp.take_along_axis(costs, items[..., None], axis=1)
        is_next = (before[items] & sets[..., None]) == 0
        terms = jnp.where(is_next, terms, _NOTHING)
        largest = jax.lax.stop_gradient(terms.max(1))
        log_sum = largest + jnp.log(jnp.exp(terms - largest[:, None]).sum(1))
    return log_sum[0]


def log_sums_of_subsets(log_weights: Array, log_rest: Array) -> Array:
    """Log of the sum over each set of items and a rest, (2^W, blocks).

    :param log_weights: of the items, (W, blocks).
    :param log_rest: of what is added to all sets, (blocks,).
    """
    sums = log_rest[None]
    for log_weight in log_weights:
        # the sum of two positive numbers; logaddexp, which also takes 0 and NaN, costs more
        with_it = jnp.maximum(sums, log_weight) + jnp.log1p(jnp.exp(-jnp.abs(sums - log_weight)))
        sums = jnp.concatenate([sums, with_it])
    return sums


def sum_of_blocks(blocks: list[Blocks], values: list[Array], totals: Array) -> Array:
    """Add the values of blocks, (blocks,) each, to the totals of their rows, (rows,)."""
    for block, value in zip(blocks, values, strict=True):
        totals = totals.at[block.rows].add(value)
    return totals
