"""Moves of a block of adjacent items of a center to another place, in NumPy or in JAX."""

from types import ModuleType
from typing import TypeVar

import numpy as np
from jax import Array

AnyArray = TypeVar("AnyArray", np.ndarray, Array)


def costs_of_moves(
    total: AnyArray, length: int | Array, xp: ModuleType
) -> tuple[AnyArray, AnyArray]:
    """Return what each move adds to the costs.

    A move is known by the present place of its block, and by the new one.

    :param total: cost of moving the item at place a behind that at place b, cumulated over both,
        with zeros in front, (…, n + 1, n + 1).
    :param length: of the block.
    :param xp: NumPy or ``jax.numpy``.
    :return: the costs, (…, n, n), and whether the block fits in there, (n, n).
    """
    num_items = total.shape[-1] - 1
    here = xp.arange(num_items)
    # the same for a block that starts at a place, against all items before another place, by
    # cumulative sums; the block against itself costs 0
    behind = total[..., xp.minimum(here + length, num_items), :] - total[..., :-1, :]
    start, new_start = here[:, None], here
    end = xp.where(new_start > start, new_start + length, new_start)
    costs = behind[..., start, xp.minimum(end, num_items)] - behind[..., start, start]
    return costs, xp.maximum(start, new_start) + length <= num_items


def sources_of_move(
    num_items: int, move: AnyArray, length: int | Array, xp: ModuleType
) -> AnyArray:
    """Return the present place of the item at each place after a move, (…, n).

    The other items keep their order.

    :param move: present place of the block times n, plus the new place, (…).
    """
    here = xp.arange(num_items)
    start, new_start = (x[..., None] for x in xp.divmod(move, num_items))
    nth = xp.where(here < new_start, here, here - length)
    sources = xp.where(nth < start, nth, nth + length)
    in_block = (here >= new_start) & (here < new_start + length)
    return xp.where(in_block, start + here - new_start, sources)
