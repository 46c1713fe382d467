"""Distinct rows whose blocs are searched: rankings, or all orderings behind partial orders."""

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from numpyro_rankings.distributions.partial_orders import blocks_of_orders
from numpyro_rankings.families import RankingFamily
from numpyro_rankings.ops.linear_extensions import SumTooLargeError
from numpyro_rankings.rankings import PartialOrders, Rankings

MOST_ORDERINGS = 50_000  # behind the rows of partial orders, which are listed one by one


class NoBlocsError(ValueError):
    """There are no blocs, or not so many."""


class TooManyOrderingsError(NoBlocsError):
    """Partial orders leave open more orderings than a search goes through."""


class SearchedRows:
    """Rows, and how what is known of their orderings is known of them.

    The orderings of a row of partial orders, which agree with it, are a table of their own. A row
    has the sum of their probabilities, and so many members of a component as a row has are shared
    among its orderings by their probabilities in this component, which is the E-step of EM.

    - **said** - the rankings, or the partial orders.
    - **rankings** - a row for each ordering.
    """

    def __init__(self, said: Rankings | PartialOrders, family: RankingFamily) -> None:
        self.said = said
        self._numbers: np.ndarray | None = None  # of the orderings of each row, if there are more
        if isinstance(said, PartialOrders):
            self.rankings, self._numbers = _all_orderings(said, family.has_pool)
        else:
            self.rankings = said

    def orderings_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the places of the orderings of some rows, which are in order."""
        if self._numbers is None:
            return rows
        row_of = np.repeat(np.arange(len(self._numbers)), self._numbers)
        return np.flatnonzero(np.isin(row_of, rows))

    def log_rows(self, of_orderings: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the log probabilities of rows, (rows, K), from those of their orderings.

        :param rows: which rows these are, by default all.
        """
        if self._numbers is None:
            return of_orderings
        numbers = self._numbers if rows is None else self._numbers[rows]
        starts = np.cumsum(numbers) - numbers
        largest = np.maximum.reduceat(of_orderings, starts)
        shares = np.exp(of_orderings - np.repeat(largest, numbers, axis=0))
        return largest + np.log(np.add.reduceat(shares, starts))

    def share(self, belonging: np.ndarray, of_orderings: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the members of each ordering, (orderings, K), from those of the rows, (rows, K).

        :param of_orderings: returns their log probabilities in each component.
        """
        if self._numbers is None:
            return belonging
        log_p = of_orderings()
        log_rows, belonging = (
            np.repeat(x, self._numbers, axis=0) for x in (self.log_rows(log_p), belonging)
        )
        return belonging * np.exp(log_p - log_rows)


def _all_orderings(orders: PartialOrders, has_pool: bool) -> tuple[Rankings, np.ndarray]:
    """Return all orderings that agree with partial orders, and how many are of each row.

    Items at the end of a row of whose order nothing is known are left out.

    :raises TooManyOrderingsError: if there are too many.
    """
    parts = _orders_of_blocks(orders, has_pool)
    listed, lists = np.asarray(orders.listed), []
    for row, of_row in enumerate(parts):
        places = np.zeros((1, 0), int)
        for start, some in sorted(of_row, key=lambda part: part[0]):
            again = np.repeat(places, len(some), axis=0)
            places = np.hstack([again, np.tile(start + some, (len(places), 1))])
        padded = np.full((len(places), listed.shape[1]), -1, np.int32)
        padded[:, : places.shape[1]] = listed[row][places]
        lists.append(padded)
    numbers, table = np.array(list(map(len, lists))), np.concatenate(lists)
    if (table < 0).all():
        raise NoBlocsError("there are no blocs to find: nobody says an order")
    offered = orders.offered()
    leaves = (
        table,
        (table >= 0).sum(1),
        np.ones(len(table), np.int32),
        None if offered is None else np.repeat(np.asarray(offered), numbers, axis=0),
    )
    return Rankings.tree_unflatten((orders.num_items, orders.items, len(table)), leaves), numbers


def _orders_of_blocks(orders: PartialOrders, has_pool: bool) -> list[list[tuple[int, np.ndarray]]]:
    """Return for each row the first place of each of its blocks, and the orders of its items.

    :raises TooManyOrderingsError: if there are too many.
    """
    try:
        blocks = blocks_of_orders(orders, orders.num_items, has_pool)
    except SumTooLargeError as error:
        raise _too_many(f"a search {error.reason}") from None
    parts: list[list[tuple[int, np.ndarray]]] = [[] for _ in range(orders.num_rows)]
    numbers, total = np.ones(orders.num_rows), float(orders.num_rows)
    known: dict[tuple[int, ...], np.ndarray] = {}
    for block in blocks:
        columns = map(np.asarray, (block.rows, block.starts, block.before))
        for row, start, before in zip(*columns, strict=True):
            key = tuple(before.tolist())
            if key not in known:
                known[key] = np.array(list(islice(_extensions(key), MOST_ORDERINGS + 1)))
            total += numbers[row] * (len(known[key]) - 1)
            if total > MOST_ORDERINGS:
                raise _too_many(
                    f"more than {MOST_ORDERINGS:,} orderings agree with what the judges said, "
                    "because many items are tied or not compared"
                )
            numbers[row] *= len(known[key])
            parts[row].append((int(start), known[key]))
    return parts


def _too_many(why: str) -> TooManyOrderingsError:
    return TooManyOrderingsError(f"no blocs are searched: {why}")


def _extensions(before: tuple[int, ...], left: int | None = None) -> Iterator[list[int]]:
    """Yield the orders of the items of a block, given which are above each one, as bits."""
    left = (1 << len(before)) - 1 if left is None else left
    if not left:
        yield []
    for item, above in enumerate(before):
        if left >> item & 1 and not above & left:
            yield from ([item, *rest] for rest in _extensions(before, left & ~(1 << item)))
