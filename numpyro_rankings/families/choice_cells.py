"""Rankings as choices of an item from the items left, equal choices of all rankings told once.

The likelihoods of Mallows and of Plackett–Luce models depend on a stage only through its item and
the set of the items left. Rankings share many of these cells: full rankings of 9 items have at most
9 · 2^8 of them, however many judges there are. So a sweep over rankings is two products with a
sparse matrix.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from numpyro_rankings.rankings import Rankings


class ChoiceCells(NamedTuple):
    """The different choices that rankings make.

    - **of_rows** - the cells of each row of the rankings, sparse, (rows, cells), and
      **of_cells**, its transpose.
    - **items** - the item that is chosen, (cells,), sorted.
    - **set_of** - the set that it is chosen from, (cells,).
    - **sets** - the items left, with the chosen one, (sets, n), 0 or 1 in float32.
    """

    of_rows: csr_array
    of_cells: csr_array
    items: np.ndarray
    set_of: np.ndarray
    sets: np.ndarray


def choice_cells(rankings: Rankings, num_stages: int, pool: bool = False) -> ChoiceCells:
    """Find the different choices.

    :param num_stages: later stages are left out.
    :param pool: whether a pool of further items is always in play, so that the choice of the only
        item left counts too.
    """
    orderings = np.asarray(rankings.orderings)[:, :num_stages]
    offered, left, row, place = _sets_left(rankings, orderings, pool)
    num_rows, n = len(orderings), rankings.num_items
    _, first, set_of = np.unique(left, return_index=True, return_inverse=True)
    sets = np.broadcast_to(offered, (num_rows, n))[row[first]].astype(np.float32)
    for stage in range(orderings.shape[1]):
        later = np.flatnonzero(place[first] > stage)
        sets[later, orderings[row[first[later]], stage]] = 0.0
    keys = orderings[row, place].astype(np.int64) * len(sets) + set_of.ravel()
    cells, cell = np.unique(keys, return_inverse=True)
    shape = num_rows, len(cells)
    of_rows = csr_array((np.ones(len(row)), (row, cell.ravel())), shape)
    items, set_of = np.divmod(cells, len(sets))
    return ChoiceCells(of_rows, csr_array(of_rows.T), items, set_of, sets)


def count_cells(rankings: Rankings) -> int:
    """Return the number of different choices, without the sets, which may be large."""
    orderings = np.asarray(rankings.orderings)
    _, left, row, place = _sets_left(rankings, orderings, False)
    numbers = np.random.default_rng(1).integers(2**64, size=rankings.num_items, dtype=np.uint64)
    return len(np.unique(left ^ numbers[orderings[row, place]]))


def _sets_left(
    rankings: Rankings, orderings: np.ndarray, pool: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the items offered, and of each choice a number that stands for the set of items left.

    :return: the items offered, the numbers, and the row and place of each choice.
    """
    n = rankings.num_items
    if rankings.choice_sets is None:
        offered = np.ones((1, n), bool)
    else:
        offered = np.asarray(rankings.choice_sets)
    listed, stages = orderings >= 0, np.arange(orderings.shape[1])
    informative = listed & ((offered.sum(1, keepdims=True) - stages > 1) | pool)
    # a set is known by the exclusive or of random numbers of its items, of 64 bits
    numbers = np.random.default_rng(0).integers(2**64, size=n, dtype=np.uint64)
    chosen = np.where(listed, numbers[np.maximum(orderings, 0)], np.uint64(0))
    everything = np.bitwise_xor.reduce(np.where(offered, numbers, np.uint64(0)), axis=1)
    left = everything[:, None] ^ np.bitwise_xor.accumulate(chosen, axis=1) ^ chosen

    row, place = np.nonzero(informative)
    return offered, left[row, place], row, place
