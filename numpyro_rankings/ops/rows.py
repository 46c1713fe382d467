"""Rows of arrays at indices that may be all rows in order.

Where each ranking is a row of its own, no indices are kept. Nothing is gathered then, which is
faster, and needs no communication where the rows are split over devices.
"""

import jax.numpy as jnp
from jax import Array


def at_rows(values: Array, rows: Array | None, axis: int = 0) -> Array:
    """Return the entries of some rows, or of all in order if there are no indices."""
    return values if rows is None else jnp.take(values, rows, axis=axis, mode="clip")
