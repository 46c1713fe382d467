"""Which distinct rankings (rows) belong to which cluster."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from numpyro_rankings.ops.sums import scatter_add
from numpyro_rankings.rankings import Rankings


class Membership(NamedTuple):
    """Entry e says that ``weights[e]`` copies of row ``rows[e]`` are in cluster ``clusters[e]``.

    Without ``rows``, entry e is of row e.
    """

    rows: Array | None
    clusters: Array
    weights: Array


def row_index_of(rankings: Rankings) -> Array | None:
    """Return the row of each ranking, (N,), or None if ranking i is row i."""
    # Rows of count 0 at the end are padding. Labels of them, which are of the last row here, are
    # the number of slots, which is no label: sums over labels drop them.
    if rankings.num_rows >= rankings.num_rankings:
        return None
    return jnp.asarray(rankings.row_index, jnp.int32)


def rows_of(rankings: Array, row_index: Array | None) -> Array:
    """Return the rows of some rankings, given by their numbers."""
    return rankings if row_index is None else row_index[rankings]


def membership_of(
    labels: Array, row_index: Array | None, counts: Array, num_slots: int
) -> Membership:
    """Pair rows with clusters: an entry per ranking, or per row and cluster if those are fewer."""
    num_rows, clusters = len(counts), labels.astype(jnp.int32)
    if row_index is None:
        return Membership(None, clusters, counts)
    if num_rows * num_slots >= len(row_index):
        return Membership(row_index, clusters, jnp.ones(len(row_index), jnp.int32))
    table = jnp.zeros((num_rows, num_slots), jnp.int32)
    table = scatter_add(table, (row_index, clusters), 1)
    entries = jnp.arange(num_rows * num_slots, dtype=jnp.int32)
    # hides these constants from the sums by cluster, see ``ops/sums.py``
    rows, slots = jax.lax.optimization_barrier(jnp.divmod(entries, num_slots))
    return Membership(rows, slots, table.reshape(-1))


def label_dtype(num_slots: int) -> Any:
    """Return the smallest integer type that holds the labels: a run keeps many draws of them."""
    return jnp.int8 if num_slots <= 127 else jnp.int16 if num_slots <= 32767 else jnp.int32
