"""Loops whose number of passes depends on the data."""

import jax
import jax.numpy as jnp
from jax import Array


@jax.custom_batching.custom_vmap
def shared_bound(bound: Array) -> Array:
    """Return the bound; under ``vmap``, the largest bound of the batch, shared by all members.

    With a bound of its own for each chain, a loop is compiled to one that selects, in every pass
    and for every chain, between the new and the old value of everything it carries. With a shared
    bound it stays a plain loop. Passes beyond a chain's own bound must have no effect.
    """
    return bound


@shared_bound.def_vmap
def _(axis_size: int, in_batched: list[bool], bound: Array) -> tuple[Array, bool]:
    return shared_bound(jnp.max(bound)), False
