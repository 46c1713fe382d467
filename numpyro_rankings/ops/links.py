"""Connected components of links, and a check of lists of neighbors."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


def check_neighbors(neighbors: np.ndarray, size: int) -> None:
    """Raise ValueError unless each row of (N, L) has distinct numbers below ``size``, or -1."""
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
    """One point that represents the connected component of each point, (…, N)."""
    # Each point has one link, so a chain leads from it into the only cycle of its component;
    # the lowest point there is taken. Chains are followed by doubling, in log N steps.
    size = links.shape[-1]
    start = links.astype(jnp.int32)

    def double(_: int, chains: tuple[Array, Array]) -> tuple[Array, Array]:
        ahead, lowest = chains
        beyond = jnp.take_along_axis(lowest, ahead, axis=-1)
        return jnp.take_along_axis(ahead, ahead, axis=-1), jnp.minimum(lowest, beyond)

    # every chain has reached its cycle, where ``lowest`` is the lowest point of the whole cycle
    ahead, lowest = jax.lax.fori_loop(0, size.bit_length(), double, (start, start))
    return jnp.take_along_axis(lowest, ahead, axis=-1)
