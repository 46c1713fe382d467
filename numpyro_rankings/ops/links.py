"""Partitions that links stand for."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


def check_neighbors(neighbors: np.ndarray, size: int) -> None:
    """Refuse lists (N, L) of other than numbers below ``size``, no number twice, or -1 for none."""
    if neighbors.dtype.kind not in "iu":
        raise ValueError(f"neighbors must be integers, got {neighbors.dtype}")
    outside = ((neighbors < -1) | (neighbors >= size)).any(axis=1)
    if outside.any():
        raise ValueError(
            f"row {np.argmax(outside)} has a neighbor that is not from 0 to {size - 1}"
        )
    ordered = np.sort(neighbors, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    if twice.any():
        raise ValueError(f"row {np.argmax(twice)} has a neighbor twice")


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
