"""What judges said, in the form in which the likelihood of a family scores it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.distributions.partial_orders import blocks_of_orders
from numpyro_rankings.ops.linear_extensions import Blocks
from numpyro_rankings.ops.mistakes import MISTAKE
from numpyro_rankings.rankings import Comparisons, Orders, Rankings, RankingsError

Family = Any  # a RankingFamily, which is defined by means of this file
_TERMS_AT_ONCE = 2**22  # of sums over orders, in all clusters together


class ScoredLists(NamedTuple):
    """Lists, padded with -1, (rows, T), and choice sets, (rows, n); None if all were offered."""

    orderings: Array
    offered: Array | None

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.orderings)

    @property
    def num_terms(self) -> int:
        """About how many terms the likelihood of one component has."""
        return self.orderings.size

    def log_rows(self, family: Family, draw: Mapping[str, Array]) -> Array:
        """Return the log probability of each row in every cluster of one draw, (C, rows)."""
        return family.log_rows(draw, *self)

    def log_new_cluster(
        self, family: Family, key: Array, draw: Mapping[str, Array], number: int
    ) -> Array:
        """Return the log probability of each row in a new cluster, (rows,)."""
        return family.log_new_cluster(key, draw, *self, number)


class ScoredOrders(NamedTuple):
    """Partial orders, whose probability is a sum over the orderings that agree with a row.

    - **listed** - the items of each row, padded with -1, (rows, T).
    - **below** - which items are below all that are listed, (rows, n) bool.
    - **blocks** - over whose orders the sums are, those of each width together.
    """

    listed: Array
    below: Array
    blocks: list[Blocks]

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.listed)

    @property
    def num_terms(self) -> int:
        """How many terms the likelihood of one component has."""
        shapes = (block.before.shape for block in self.blocks)
        return self.listed.size + sum(number * width * 2 ** (width - 1) for number, width in shapes)

    def log_rows(self, family: Family, draw: Mapping[str, Array]) -> Array:
        """As for lists."""
        return family.log_orders(draw, self)

    def log_new_cluster(
        self, family: Family, key: Array, draw: Mapping[str, Array], number: int
    ) -> Array:
        """As for lists."""
        return family.log_new_cluster_of_orders(key, draw, self, number)

    def by_cluster(self, score: Callable[..., Array], *parameters: Array) -> Array:
        """Score the rows in each cluster, (C, rows), given its parameters, (C, …) each."""
        at_once = int(np.clip(_TERMS_AT_ONCE // self.num_terms, 1, len(parameters[0])))
        return jax.lax.map(lambda x: score(*x), parameters, batch_size=at_once)


class ScoredComparisons(NamedTuple):
    """Comparisons that may be mistakes: a sum over all orders of the items, some of them unlikely.

    - **orders** - of which the costs of the blocks are how often an item was preferred to another.
    - **numbers** - of the comparisons, (rows,).
    """

    orders: ScoredOrders
    numbers: Array

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.orders.num_rows

    @property
    def num_terms(self) -> int:
        """As for partial orders."""
        return self.orders.num_terms

    def log_rows(self, family: Family, draw: Mapping[str, Array]) -> Array:
        """As for lists."""
        orders, of_all = self._given(draw)
        return family.log_orders(draw, orders) + of_all

    def log_new_cluster(
        self, family: Family, key: Array, draw: Mapping[str, Array], number: int
    ) -> Array:
        """As for lists."""
        orders, of_all = self._given(draw)
        return family.log_new_cluster_of_orders(key, draw, orders, number) + of_all

    def _given(self, draw: Mapping[str, Array]) -> tuple[ScoredOrders, Array]:
        """Return the costs of mistakes in a draw, and the log probability without any, (rows,)."""
        e = draw[MISTAKE]
        cost = jnp.log1p(-e) - jnp.log(e)
        blocks = [x.with_costs_times(cost) for x in self.orders.blocks]
        return self.orders._replace(blocks=blocks), self.numbers * jnp.log1p(-e)


Scored = ScoredLists | ScoredOrders | ScoredComparisons


def scored(family: Family, rows: Rankings | Orders) -> Scored:
    """Return rankings, partial orders or comparisons, as a family scores them.

    :raises ValueError: if it does not score them, or if the sums of a row have too many terms.
    """
    if isinstance(rows, Rankings):
        return ScoredLists(rows.orderings, rows.choice_sets)
    if not family.scores_orders:
        raise RankingsError(
            f"{family.title} models have no likelihood of partial orders: give rankings, such as "
            "those of read_rankings(table, 'ranks', overvote='stop')"
        )
    orders = family.prepared(rows)
    if isinstance(orders, Comparisons):
        return _scored_comparisons(orders)
    blocks = blocks_of_orders(orders, orders.num_items, pool=family.has_pool)
    return ScoredOrders(orders.listed, orders.rest(), blocks)


def _scored_comparisons(made: Comparisons) -> ScoredComparisons:
    wins = made.wins.astype(float)
    blocks = []
    # with a pool the sum over the last block counts, of which each order has a factor here
    for block in blocks_of_orders(made.orders, made.num_items, pool=True):
        rows, places = block.rows[:, None, None], block.places
        costs = wins[rows, places[:, :, None], places[:, None, :]]
        blocks.append(block._replace(costs=costs))
    return ScoredComparisons(ScoredOrders(made.listed, made.rest(), blocks), wins.sum((1, 2)))
