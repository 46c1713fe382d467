"""Sums over equal labels, in a form that XLA compiles correctly.

XLA on CPUs (jaxlib 0.9.2 to 0.12; 0.9.1 is correct) updates the operand of a scatter in place even
where the same array also holds the indices. ``jnp.zeros(1, int32).at[zeros].add(values)``, run for
as many chains as there are values, has two int32 arrays of zeros of the same shape, which the
compiler merges into one. The first sum that is written is then read as an index. The functions here
avoid this in three ways: a single label needs no scatter; sums over more labels have accumulators
whose shape differs from that of the indices; and in scatters at several indices, where shapes may
coincide, the compiler cannot know the indices (``docs/compiler_faults.rst``).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

_MOST_BLOCKS = 256


def sum_by_label(values: Array, labels: Array, num_labels: int) -> Array:
    """Sum the values along the first axis over equal labels, (num_labels, …), in their own type."""
    if num_labels == 1:
        return jnp.sum(values, axis=0, keepdims=True, dtype=values.dtype)
    zeros = jnp.zeros((num_labels, *values.shape[1:]), values.dtype)
    return zeros.at[labels].add(values)


def sum_by_label_in_blocks(values: Array, labels: Array, num_labels: int) -> Array:
    """:func:`sum_by_label` of many floats: blocks of entries are summed first, then the blocks."""
    # A running sum of 10^6 numbers in single precision loses up to four digits. Labels out of range
    # are not counted.
    num_entries = labels.shape[0]
    # the table of sums is at most an eighth of the values
    num_blocks = min(_MOST_BLOCKS, num_entries // (8 * num_labels))
    if num_blocks < 2:
        return sum_by_label(values, labels, num_labels)
    num_cells = num_blocks * num_labels
    block = jnp.arange(num_entries, dtype=jnp.int32) // -(-num_entries // num_blocks)
    is_label = (labels >= 0) & (labels < num_labels)
    cells = jnp.where(is_label, block * num_labels + labels, num_cells)
    zeros = jnp.zeros((num_cells, *values.shape[1:]), values.dtype)
    sums = scatter_add(zeros, cells, values)
    return sums.reshape(num_blocks, num_labels, *values.shape[1:]).sum(axis=0)


def count_by_label(labels: Array, num_labels: int) -> Array:
    """Number of entries with each label, int32 (num_labels,); others are not counted."""
    if num_labels == 1:
        return jnp.sum(labels == 0, keepdims=True, dtype=jnp.int32)
    return sum_by_label(jnp.ones(labels.shape, jnp.int32), labels, num_labels)


def scatter_add(table: Array, indices: Any, values: ArrayLike) -> Array:
    """``table.at[indices].add(values, mode="drop")``, with the indices hidden from the compiler."""
    return table.at[jax.lax.optimization_barrier(indices)].add(values, mode="drop")
