"""Which distinct rankings (rows) belong to which cluster."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from numpyro_rankings.ops.sums import scatter_add


class Membership(NamedTuple):
    """Entry e says that ``weights[e]`` copies of row ``rows[e]`` are in cluster ``clusters[e]``."""

    rows: Array
    clusters: Array
    weights: Array


def membership_of(labels: Array, row_index: Array, num_rows: int, num_slots: int) -> Membership:
    """Pair rows with clusters: an entry per ranking, or per row and cluster if those are fewer.

    :param labels: cluster of each ranking, (N,).
    :param row_index: row of each ranking, (N,).
    """
    num_rankings, clusters = row_index.shape[0], labels.astype(jnp.int32)
    if num_rows * num_slots >= num_rankings:
        return Membership(row_index, clusters, jnp.ones(num_rankings, jnp.int32))
    table = jnp.zeros((num_rows, num_slots), jnp.int32)
    table = scatter_add(table, (row_index, clusters), 1)
    entries = jnp.arange(num_rows * num_slots, dtype=jnp.int32)
    # hides these constants from the sums by cluster, see ``ops/sums.py``
    rows, slots = jax.lax.optimization_barrier(jnp.divmod(entries, num_slots))
    return Membership(rows, slots, table.reshape(-1))


def label_dtype(num_slots: int) -> Any:
    """Return the smallest integer type that holds the labels: a run keeps many draws of them."""
    return jnp.int8 if num_slots <= 127 else jnp.int16 if num_slots <= 32767 else jnp.int32
