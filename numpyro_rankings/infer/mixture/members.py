"""Which rows are in which cluster."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from numpyro_rankings.ops.sums import scatter_add


class Members(NamedTuple):
    """Who belongs where, as ``weights[e]`` copies of ``rows[e]`` in ``clusters[e]``."""

    rows: Array
    clusters: Array
    weights: Array


def members(assignments: Array, row_index: Array, num_rows: int, num_slots: int) -> Members:
    """Pair rows with clusters, identical rankings of one cluster once where that is shorter.

    :param assignments: cluster of each ranking, (N,).
    :param row_index: row of each ranking, (N,).
    """
    num_rankings, clusters = row_index.shape[0], assignments.astype(jnp.int32)
    if num_rows * num_slots >= num_rankings:
        return Members(row_index, clusters, jnp.ones(num_rankings, jnp.int32))
    table = jnp.zeros((num_rows, num_slots), jnp.int32)
    table = scatter_add(table, (row_index, clusters), 1)
    entries = jnp.arange(num_rows * num_slots, dtype=jnp.int32)
    # sums by slot must not know these numbers, see ``ops/sums.py``
    rows, slots = jax.lax.optimization_barrier(jnp.divmod(entries, num_slots))
    return Members(rows, slots, table.reshape(-1))


def label_dtype(num_slots: int) -> Any:
    """The smallest type of integer that holds the labels: there are many draws of them."""
    return jnp.int8 if num_slots <= 127 else jnp.int16 if num_slots <= 32767 else jnp.int32
