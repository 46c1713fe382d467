"""Loops over as many slots as there is need of."""

import jax
import jax.numpy as jnp
from jax import Array


@jax.custom_batching.custom_vmap
def shared_bound(bound: Array) -> Array:
    """The bound itself; under ``vmap``, the largest of the batch, as one number for all.

    A loop up to a bound of its own for each chain would be turned into one that selects, in every
    pass and for every chain, between the new and the old of all that it carries. With a shared
    bound it stays a plain loop; what it does beyond a chain's own bound must do no harm.
    """
    return bound


@shared_bound.def_vmap
def _(axis_size: int, in_batched: list[bool], bound: Array) -> tuple[Array, bool]:
    return shared_bound(jnp.max(bound)), False
