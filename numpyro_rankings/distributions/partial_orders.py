"""What distributions of rankings share to score partial orders."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.ops.checks import as_array, is_traced
from numpyro_rankings.ops.linear_extensions import Blocks, blocks_of
from numpyro_rankings.rankings import PartialOrders, RankingsError


def blocks_of_orders(orders: PartialOrders, num_items: int, pool: bool = False) -> list[Blocks]:
    """Return the blocks of partial orders of the items of a distribution, perhaps with a pool."""
    if orders.num_items != num_items:
        raise RankingsError(
            f"the partial orders are of {orders.num_items} items, and the distribution of "
            f"{num_items}"
        )
    number = num_items
    if orders.choice_sets is not None:
        number = as_array(orders.choice_sets).sum(1)
    elif orders.unlisted == "not-offered":
        number = as_array(orders.lengths)
    complete = (as_array(orders.lengths) == number) & (not pool)
    return blocks_of(orders.listed, orders.above, complete)


def orders_of_all_items(orders: PartialOrders) -> PartialOrders:
    """List all items in each row, unless all of them were offered."""
    if orders.choice_sets is None and orders.unlisted == "below":
        return orders
    if is_traced(orders):
        raise RankingsError(
            "partial orders of which some items were not offered cannot be traced: pass "
            "orders.of_all_items()"
        )
    with jax.ensure_compile_time_eval():  # they are known also while something is traced
        offered = orders.offered()
        is_all = offered is None or bool(offered.all())
        return orders if is_all else orders.of_all_items()


def against_rows(
    orders: PartialOrders, batch_shape: tuple[int, ...], *parameters: Array
) -> tuple[tuple[int, ...], list[Array]]:
    """Broadcast parameters, (…, k) each, against rows.

    :return: the shape of the log probabilities; and the parameters, (B, rows, k) each.
    """
    rows = orders.num_rows
    shape = np.broadcast_shapes(batch_shape, (rows,))
    flat = [
        jnp.broadcast_to(x, (*shape, x.shape[-1])).reshape(-1, rows, x.shape[-1])
        for x in parameters
    ]
    return shape, flat
