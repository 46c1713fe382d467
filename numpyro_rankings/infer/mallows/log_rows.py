"""Row likelihoods of many Mallows clusters at once, with sets of items as the bits of integers.

The code of the item at a stage is the number of items that are still there and stand ahead of it in
the center. The first set is of the row, the second of the center and the item: one look-up for each
stage, where the values of all clusters lie side by side.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from numpyro_rankings.infer.mallows.data import MallowsData
from numpyro_rankings.infer.mallows.label_free import MallowsParameters
from numpyro_rankings.ops.codes import inverse_ordering
from numpyro_rankings.ops.rows import transposed
from numpyro_rankings.ops.special import log_psi

_BITS = 32
_UNROLLED_STAGES = 16


class RemainingItems(NamedTuple):
    """What the codes of rows depend on besides the center, stages first."""

    items: Array  # item of each stage, 0 where none is listed, (T, rows)
    remaining: Array  # items left after it, none where none is listed, (T, words, rows) uint32
    lengths: Array  # number of listed items, (rows,)


def remaining_items(data: MallowsData, num_items: int) -> RemainingItems:
    """Return the sets of items of each row."""
    items, listed = jnp.maximum(data.orderings, 0).T, data.listed.T
    everything = _as_bits(jnp.ones(num_items, bool))[:, None]  # (words, 1)
    words = jnp.arange(len(everything))[:, None]
    bit = jnp.uint32(1) << (items % _BITS).astype(jnp.uint32)
    is_here = (items // _BITS)[:, None] == words
    # the items of a row differ, so that a sum of their bits is the set of them, (T, words, rows)
    listed = listed[:, None]
    gone = jnp.cumsum(jnp.where(is_here & listed, bit[:, None], 0), axis=0, dtype=jnp.uint32)
    return RemainingItems(items, jnp.where(listed, everything - gone, 0), data.listed.sum(1))


def _as_bits(members: Array) -> Array:
    """Write sets of items, (n, …) bool, as bits of words, (words, …) uint32."""
    padding = [(0, -len(members) % _BITS)] + [(0, 0)] * (members.ndim - 1)
    words = jnp.pad(members, padding).reshape(-1, _BITS, *members.shape[1:])
    bits = jnp.arange(_BITS, dtype=jnp.uint32).reshape(-1, *[1] * (members.ndim - 1))
    return jnp.sum(words.astype(jnp.uint32) << bits, axis=1, dtype=jnp.uint32)


def log_rows_by_bits(rows: RemainingItems, parameters: MallowsParameters, limits: Array) -> Array:
    """Return the log probability of every row in each of C clusters, (rows, C), eq. (2).

    :param limits: largest code of each stage, (T,).
    """
    # clusters last throughout
    places, theta = (
        transposed(jax.vmap(inverse_ordering)(parameters.center)),
        transposed(parameters.concentration),
    )
    # the items ahead of each item in a center, (words, n, C)
    ahead = _as_bits(places[:, None] < places)
    # a row lists its first items, up to some stage
    log_psis = jnp.cumsum(log_psi(theta, limits[:, None]), axis=0)
    start = -jnp.pad(log_psis, ((1, 0), (0, 0)))[rows.lengths]

    def one_stage(total: Array, stage: tuple[Array, Array, Array]) -> tuple[Array, None]:
        item, remaining, theta = stage
        words = zip(ahead, remaining, strict=True)
        counts = [jax.lax.population_count(word[item] & left[:, None]) for word, left in words]
        return total - theta * sum(counts, jnp.zeros((), jnp.int32)).astype(total.dtype), None

    stages = rows.items, rows.remaining, theta
    unroll = min(len(theta), _UNROLLED_STAGES)
    return jax.lax.scan(one_stage, start, stages, unroll=unroll)[0]
