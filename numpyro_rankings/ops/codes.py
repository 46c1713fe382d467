"""Stage codes of a top-t ranking: how many items of the center each stage skipped.

Orderings are 0-based int32 arrays, best item first, padded with -1 at their end. Stages are
0-based here: at stage ``j`` there are ``n - 1 - j`` items left besides the one chosen, so its code
takes the values ``0..n-1-j``.
"""

import jax
import jax.numpy as jnp
from jax import Array

_FEW_ITEMS = 32  # up to so many items, n² comparisons cost less than a sort


def inverse_ordering(ordering: Array) -> Array:
    """Places of the items in a full ordering, shape ``(…, n)`` to ``(…, n)``, and the reverse."""
    num_items = ordering.shape[-1]
    if num_items > _FEW_ITEMS:
        return jnp.argsort(ordering, axis=-1).astype(jnp.int32)
    items = jnp.arange(num_items, dtype=ordering.dtype)
    is_item = ordering[..., None, :] == items[:, None]
    places = jnp.where(is_item, jnp.arange(num_items, dtype=jnp.int32), 0)
    return jnp.sum(places, axis=-1, dtype=jnp.int32)  # a plain sum would be int64 with x64


def max_codes(num_items: int, num_stages: int) -> Array:
    """Largest code of each stage: ``n-1, n-2, …``, shape ``(num_stages,)``."""
    return jnp.maximum(num_items - 1 - jnp.arange(num_stages, dtype=jnp.int32), 0)


def codes_from_places(listed_places: Array, listed: Array) -> Array:
    """Stage codes of lists, ``(…, T)`` int32, given the places of their items in the center."""
    # Equation (1) of Meilă & Chen (2010): one less than the rank of the j-th item in the center
    # after the items listed before it are struck out; 0 where nothing is listed.
    num_stages = listed_places.shape[-1]
    earlier = jnp.arange(num_stages)[:, None] > jnp.arange(num_stages)
    ahead = listed_places[..., None, :] < listed_places[..., :, None]
    struck_out = jnp.sum(ahead & earlier & listed[..., None, :], axis=-1)
    return jnp.where(listed, listed_places - struck_out, 0).astype(jnp.int32)


def stage_codes(orderings: Array, center_places: Array) -> Array:
    """Stage codes ``s_j(π | σ)`` of padded orderings, (…, T), by the inverses of the centers."""
    listed = orderings >= 0
    batch = jnp.broadcast_shapes(orderings.shape[:-1], center_places.shape[:-1])
    items = jnp.broadcast_to(jnp.maximum(orderings, 0), (*batch, orderings.shape[-1]))
    places = jnp.broadcast_to(center_places, (*batch, center_places.shape[-1]))
    return codes_from_places(jnp.take_along_axis(places, items, axis=-1), listed)


def ordering_from_codes(codes: Array, center: Array) -> Array:
    """The list, ``(…, T)``, whose stage codes with respect to ``center`` are ``codes``."""
    batch = jnp.broadcast_shapes(codes.shape[:-1], center.shape[:-1])
    codes = jnp.broadcast_to(codes, (*batch, codes.shape[-1]))
    center = jnp.broadcast_to(center, (*batch, center.shape[-1]))

    nowhere = jnp.int32(2**30)

    def choose(taken: Array, code: Array) -> tuple[Array, Array]:
        """Find the ``code``-th of the free places; ``taken`` places are sorted."""
        # the k-th taken place is passed if at most ``code`` free places lie before it
        passed = jnp.sum(taken - jnp.arange(taken.shape[-1]) <= code[..., None], axis=-1)
        place = (code + passed).astype(jnp.int32)
        before = jnp.roll(taken, 1, axis=-1).at[..., 0].set(-1)
        return jnp.maximum(jnp.minimum(taken, place[..., None]), before), place

    taken = jnp.full(codes.shape, nowhere)
    _, places = jax.lax.scan(choose, taken, jnp.moveaxis(codes, -1, 0))
    return jnp.take_along_axis(center, jnp.moveaxis(places, 0, -1), axis=-1).astype(jnp.int32)


def center_from_codes(codes: Array, ordering: Array, fill: Array) -> Array:
    """Places of items in a center for which a list has the given codes (Lemma 7, Sample-σ-N1)."""
    # The j-th listed item goes to the (code_j + 1)-th place that is still free. The unlisted items
    # fill the remaining places in the order of ``fill``; if that is uniform, so is the tail.
    num_items = fill.shape[-1]

    def place_item(carry: tuple[Array, Array], stage: tuple[Array, Array]) -> tuple:
        free, places = carry
        code, item = stage
        place = jnp.argmax(jnp.cumsum(free) > code).astype(jnp.int32)
        free = free & ((jnp.arange(num_items) != place) | (item < 0))
        places = places.at[jnp.where(item >= 0, item, num_items)].set(place, mode="drop")
        return (free, places), None

    start = (jnp.ones(num_items, bool), jnp.full(num_items, -1, jnp.int32))
    (free, places), _ = jax.lax.scan(place_item, start, (codes, ordering))
    unlisted_in_fill = places[fill] < 0
    turn = jnp.cumsum(unlisted_in_fill) - 1
    free_places = jnp.argsort(~free, stable=True).astype(jnp.int32)
    filled = jnp.where(unlisted_in_fill, free_places[turn], places[fill])
    return places.at[fill].set(filled)
