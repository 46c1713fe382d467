"""Partitions that links stand for."""

import jax
import jax.numpy as jnp
from jax import Array


def representatives(links: Array) -> Array:
    """One point of the connected component of each, the same for all of it: (…, N).

    Each point has one link, so that from each a chain leads into the one cycle of its component;
    the lowest point of that is what is returned. Chains are doubled, which takes log N steps.

    :param links: to which point each links, perhaps itself, (…, N).
    """
    size = links.shape[-1]
    start = links.astype(jnp.int32)

    def double(_: int, chains: tuple[Array, Array]) -> tuple[Array, Array]:
        ahead, lowest = chains
        beyond = jnp.take_along_axis(lowest, ahead, axis=-1)
        return jnp.take_along_axis(ahead, ahead, axis=-1), jnp.minimum(lowest, beyond)

    # where a chain is after so many steps, all of them in the cycle, and the lowest on the way
    ahead, lowest = jax.lax.fori_loop(0, size.bit_length(), double, (start, start))
    return jnp.take_along_axis(lowest, ahead, axis=-1)
