"""Rows of arrays at indices that may be all rows in order.

Where each ranking is a row of its own, no indices are kept. Nothing is gathered then, which is
faster, and needs no communication where the rows are split over devices.
"""

import jax.numpy as jnp
from jax import Array


def at_rows(values: Array, rows: Array | None, axis: int = 0) -> Array:
    """Return the entries of some rows, or of all in order if there are no indices."""
    return values if rows is None else jnp.take(values, rows, axis=axis, mode="clip")


def transposed(x: Array) -> Array:
    """Return the transpose of a small matrix, in memory in that order."""
    # A product with the identity, which is exact: XLA would read a plain transpose from the other
    # order wherever it is used, in steps that processors cannot take together.
    return jnp.dot(jnp.eye(x.shape[1], dtype=x.dtype), x.T, precision="highest")
