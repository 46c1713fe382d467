"""Rows of count 0, which change nothing but the shapes: data of about one size have the same."""

from typing import Any

import numpy as np

from numpyro_rankings.rankings import Rankings


def split_rows(rankings: Rankings, num_parts: int) -> Rankings:
    """Give each ranking a row, and add rows of count 0 to a multiple of the number of parts."""
    num_rows = rounded_for(rankings.num_rankings, num_parts)
    fields = _padded_rows(rankings, num_rows, is_expanded=True)
    return rankings._make(fields, rankings.tree_flatten()[1])


def rounded_up(number: int) -> int:
    """Return the next of 16, 18, 20, … 32, 36, 40, … 64, 72, …: eight numbers in each doubling."""
    step = 2 ** max((number - 1).bit_length() - 4, 1)
    return max(-(-number // step) * step, 16)


def rounded_for(number: int, num_parts: int) -> int:
    """Round up a number, and then to a multiple of the number of parts."""
    return -(-rounded_up(number) // num_parts) * num_parts


def rounded_alike(rankings: Rankings) -> tuple[range, range]:
    """Return the numbers of rankings, and of rows, that :func:`round_rows` makes the same."""
    number, num_rows = rounded_up(rankings.num_rankings), rounded_up(rankings.num_rows + 1)
    numbers = range(_least(number), number + 1)
    if num_rows >= number:  # each ranking has a row
        return numbers, range(max(_least(number) - 1, 1), number + 1)
    return numbers, range(max(_least(num_rows) - 1, 1), num_rows)


def _least(rounded: int) -> int:
    """Return the least number that is rounded up to this one."""
    least = rounded
    while least > 1 and rounded_up(least - 1) == rounded:
        least -= 1
    return least


def round_rows(rankings: Rankings) -> Rankings:
    """Round up the numbers of rows and rankings by rows of count 0, and take the names away.

    The labels from N on are of the last row, which therefore always has count 0. If there are about
    as many rows as rankings, each ranking has a row. What is static no longer depends on the data
    but through rounded numbers, of which one is how many rankings survey weights are worth.
    """
    number, num_rows = rounded_up(rankings.num_rankings), rounded_up(rankings.num_rows + 1)
    is_expanded = num_rows >= number
    fields = _padded_rows(rankings, number if is_expanded else num_rows, is_expanded)
    names = tuple(f"item {i + 1}" for i in range(rankings.num_items))
    _, (*kind, num_items, _, _) = rankings.tree_flatten()
    worth = [float(rounded_up(round(x))) for x in kind]  # of survey weights
    return rankings._make(fields, (*worth, num_items, names, number))


def _padded_rows(rankings: Rankings, num_rows: int, is_expanded: bool) -> list[Any]:
    """Return the arrays of rankings with rows of count 0 at their end."""

    def rows(x: Any, fill: Any) -> np.ndarray:
        x = np.asarray(x)
        if is_expanded:
            x = np.repeat(x, np.asarray(rankings.counts), axis=0)
        missing = ((0, num_rows - len(x)), *((0, 0),) * (x.ndim - 1))
        return np.pad(x, missing, constant_values=fill)

    leaves = dict(zip(rankings._leaves, rankings.tree_flatten()[0], strict=True))
    if is_expanded:
        leaves["counts"] = np.ones_like(rankings.counts)
    fill = {"orderings": -1, "choice_sets": True}
    return [None if x is None else rows(x, fill.get(name, 0)) for name, x in leaves.items()]
