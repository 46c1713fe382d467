"""Neighbours of a center that change places, in the orderings of judges who leave them open, too.

Where most judges say nothing of two items, the orderings that were drawn and the center hold one
another fixed: an item moves in one of these at a time. So two neighbours of the center are
exchanged, and in the same Metropolis step also in the ordering of each member for whom that agrees
with what was said. This renames the two items, so that the density of these orderings stays. That
of another member changes by the code of whichever of the two comes first, which is 1 more if that
was the first of the two in the center, and 1 less if not.
"""

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.ops.sums import sum_by_label, sum_by_label_in_blocks
from numpyro_rankings.rankings import PartialOrders

_TRIES = 4  # pairs of a center in a sweep


def exchange_neighbours(
    key: Array,
    orders: PartialOrders,
    orderings: Array,
    labels: Array,
    center: Array,
    concentration: Array,
) -> tuple[Array, Array]:
    """Exchange neighbours of each center by Metropolis steps, given all else.

    :param orders: of all items, with one judge in each row.
    :param orderings: current orderings of the listed items, (rows, T).
    :param labels: (rows,).
    :param center: with a uniform prior, (C, n).
    :param concentration: at the T places, 0 at one that has no code, (C, T).
    :return: new centers and orderings.
    """
    num_clusters, num_items = center.shape
    if num_items < 2:
        return center, orderings
    theta, places = concentration[labels], jnp.arange(num_items)
    key_stages, key_accept = random.split(key)
    shape = _TRIES, num_clusters
    stages = random.randint(key_stages, shape, 0, num_items - 1)
    log_uniforms = jnp.log(random.uniform(key_accept, shape))

    def step(carry: tuple[Array, Array], draw: tuple[Array, Array]) -> tuple[tuple, None]:
        center, orderings = carry
        stage, log_uniform = draw
        pair = jnp.take_along_axis(center, stage[:, None] + jnp.arange(2), axis=1)
        items = pair[labels]
        is_item = orderings == items[..., None].swapaxes(0, 1)  # (2, rows, T)
        is_open = _may_change_places(orders, orderings, items)
        is_listed, place = is_item.any(-1), jnp.argmax(is_item, axis=-1)
        comes_first = is_listed[0] & (~is_listed[1] | (place[0] < place[1]))
        own = jnp.where(comes_first, place[0], place[1])
        change = jnp.take_along_axis(theta, own[:, None], axis=1)[:, 0]
        change = jnp.where(comes_first, -change, change)
        change = jnp.where(is_listed.any(0) & ~is_open, change, 0.0)
        accepts = log_uniform < sum_by_label_in_blocks(change, labels, num_clusters)
        # without such a member the center moves in steps of its own
        accepts &= sum_by_label(is_open.astype(jnp.int32), labels, num_clusters) > 0
        changed = jnp.where(places == stage[:, None], pair[:, 1:], center)
        changed = jnp.where(places == stage[:, None] + 1, pair[:, :1], changed)
        renamed = jnp.where(is_item[0], items[:, 1:], orderings)
        renamed = jnp.where(is_item[1], items[:, :1], renamed)
        return (
            jnp.where(accepts[:, None], changed, center),
            jnp.where((accepts[labels] & is_open)[:, None], renamed, orderings),
        ), None

    return jax.lax.scan(step, (center, orderings), (stages, log_uniforms))[0]


def _may_change_places(orders: PartialOrders, orderings: Array, items: Array) -> Array:
    """Whether two items are listed and may change places in the orderings, (rows,)."""
    listed = orders.listed
    is_item = listed[:, None] == items[..., None]  # (rows, 2, T)
    index = jnp.argmax(is_item, axis=-1)
    place = jnp.argmax(listed[:, :, None] == orderings[:, None], axis=2)  # of each listed item
    own = jnp.take_along_axis(place, index, axis=1)
    # the index of the first of the two, and that of the second
    index = jnp.where((own[:, 0] < own[:, 1])[:, None], index, index[:, ::-1])
    low, high = own.min(1)[:, None], own.max(1)[:, None]
    rows = jnp.arange(len(listed))
    below_first = orders.above[rows, index[:, 0]]
    above_second = orders.above[rows, :, index[:, 1]]
    passed = (place > low) & (place <= high) & below_first
    passed |= (place >= low) & (place < high) & above_second
    is_there = jnp.arange(listed.shape[1]) < orders.lengths[:, None]
    return is_item.any(-1).all(-1) & ~jnp.any(passed & is_there, axis=1)
