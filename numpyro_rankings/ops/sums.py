"""Sums of what bears the same label, in a form that XLA compiles rightly.

XLA on CPUs (jaxlib 0.9.2 to 0.12; 0.9.1 is right) updates the operand of a scatter in place also
where the array of indices is the same array: ``jnp.zeros(1, int32).at[zeros].add(values)``, of as
many chains as values, has two int32 arrays of zeros of the same shape, which the compiler makes
one. The first sum that is written is then read as an index. So there is no scatter for a single
label here; sums over more labels have accumulators of another shape than that of the indices; and
scatters at several indices, where shapes may coincide, do not know theirs at compile time (see
``tests/test_xla.py``).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike


def sum_by_label(values: Array, labels: Array, num_labels: int) -> Array:
    """Sums along the first axis over equal labels.

    :param values: of shape (entries, …).
    :param labels: from 0 to ``num_labels - 1``, (entries,).
    :return: (num_labels, …), of the type of the values.
    """
    if num_labels == 1:
        return jnp.sum(values, axis=0, keepdims=True, dtype=values.dtype)
    zeros = jnp.zeros((num_labels, *values.shape[1:]), values.dtype)
    return zeros.at[labels].add(values)


def count_by_label(labels: Array, num_labels: int) -> Array:
    """How many entries have each label, int32 (num_labels,)."""
    return sum_by_label(jnp.ones(labels.shape, jnp.int32), labels, num_labels)


def scatter_add(table: Array, indices: Any, values: ArrayLike) -> Array:
    """``table.at[indices].add(values, mode="drop")``, of indices that the compiler does not know.

    :param indices: an array or a tuple of them.
    """
    return table.at[jax.lax.optimization_barrier(indices)].add(values, mode="drop")
