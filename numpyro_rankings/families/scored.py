"""What judges said, in the form in which the likelihood of a family scores it."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import jax
import numpy as np
from jax import Array

from numpyro_rankings.distributions.partial_orders import blocks_of_orders
from numpyro_rankings.ops.linear_extensions import Blocks
from numpyro_rankings.rankings import PartialOrders, Rankings, RankingsError

_TERMS_AT_ONCE = 2**22  # of sums over orders, in all clusters together


class Scoring(Protocol):
    """What is asked of a family, :class:`~numpyro_rankings.families.RankingFamily`."""

    title: str
    has_pool: bool
    scores_orders: bool

    def log_rows(
        self, draw: Mapping[str, Array], orderings: Array, offered: Array | None
    ) -> Array: ...

    def log_orders(self, draw: Mapping[str, Array], orders: "ScoredOrders") -> Array: ...

    def log_new_cluster(
        self,
        key: Array,
        draw: Mapping[str, Array],
        orderings: Array,
        offered: Array | None,
        num_new_clusters: int,
    ) -> Array: ...

    def log_new_cluster_of_orders(
        self, key: Array, draw: Mapping[str, Array], orders: "ScoredOrders", num_new_clusters: int
    ) -> Array: ...

    def prepared(self, orders: PartialOrders) -> PartialOrders: ...


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

    def log_rows(self, family: Scoring, draw: Mapping[str, Array]) -> Array:
        """Return the log probability of each row in every cluster of one draw, (C, rows)."""
        return family.log_rows(draw, *self)

    def log_new_cluster(
        self, family: Scoring, key: Array, draw: Mapping[str, Array], number: int
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

    def log_rows(self, family: Scoring, draw: Mapping[str, Array]) -> Array:
        """As for lists."""
        return family.log_orders(draw, self)

    def log_new_cluster(
        self, family: Scoring, key: Array, draw: Mapping[str, Array], number: int
    ) -> Array:
        """As for lists."""
        return family.log_new_cluster_of_orders(key, draw, self, number)

    def by_cluster(self, score: Callable[..., Array], *parameters: Array) -> Array:
        """Score the rows in each cluster, (C, rows), given its parameters, (C, …) each."""
        at_once = int(np.clip(_TERMS_AT_ONCE // self.num_terms, 1, len(parameters[0])))
        return jax.lax.map(lambda x: score(*x), parameters, batch_size=at_once)


def scored(family: Scoring, rows: Rankings | PartialOrders) -> ScoredLists | ScoredOrders:
    """Return rankings, or partial orders, as a family scores them.

    :raises ValueError: if it does not score them, or if the sums of a row have too many terms.
    """
    if not isinstance(rows, PartialOrders):
        return ScoredLists(rows.orderings, rows.choice_sets)
    if not family.scores_orders:
        raise RankingsError(
            f"{family.title} models have no likelihood of partial orders: give rankings, such as "
            "those of read_rankings(table, 'ranks', overvote='stop')"
        )
    orders = family.prepared(rows)
    blocks = blocks_of_orders(orders, orders.num_items, pool=family.has_pool)
    return ScoredOrders(orders.listed, orders.rest(), blocks)
