"""Loops whose number of passes depends on the data."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, random


def keys_of_loop(key: Array, number: int) -> Array:
    """Return a key for each pass of a loop, (number,): the key itself if there is one pass."""
    return key[None] if number == 1 else random.split(key, number)


@jax.custom_batching.custom_vmap
def shared_bound(bound: Array) -> Array:
    """Return the bound; under ``vmap``, the largest bound of the batch, shared by all members."""
    # With a bound of its own for each chain, a loop is compiled to one that selects, in every pass
    # and for every chain, between the new and the old value of everything it carries. With a shared
    # bound it stays a plain loop. Passes beyond a chain's own bound must have no effect.
    return bound


@shared_bound.def_vmap
def _(axis_size: int, in_batched: list[bool], bound: Array) -> tuple[Array, bool]:
    return shared_bound(jnp.max(bound)), False


def computed_if(
    condition: Array, compute: Callable[..., Array], args: tuple, otherwise: Array
) -> Array:
    """Return ``compute(*args)`` if the condition holds, else ``otherwise``."""
    # Under ``vmap``, :func:`jax.lax.cond` would become a selection that always computes both; here
    # nothing is computed if the condition holds for no member of a batch.

    @jax.custom_batching.custom_vmap
    def choose(condition: Array, args: tuple, otherwise: Array) -> Array:
        return jax.lax.cond(condition, lambda: compute(*args), lambda: otherwise)

    @choose.def_vmap
    def _(
        axis_size: int, in_batched: list, condition: Array, args: tuple, otherwise: Array
    ) -> tuple[Array, bool]:
        def to_batch(x: Array, is_batched: bool) -> Array:
            return x if is_batched else jnp.broadcast_to(x, (axis_size, *jnp.shape(x)))

        values = condition, args, otherwise
        condition, args, otherwise = jax.tree.map(to_batch, values, tuple(in_batched))

        def for_all() -> Array:
            computed = jax.vmap(compute)(*args)
            shape = (axis_size,) + (1,) * (computed.ndim - 1)
            return jnp.where(condition.reshape(shape), computed, otherwise)

        return jax.lax.cond(jnp.any(condition), for_all, lambda: otherwise), True

    return choose(condition, args, otherwise)
