"""Games of two items, counted: the data of the Bradley–Terry model."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.rankings.container import load_format
from numpyro_rankings.rankings.names import RankingsError
from numpyro_rankings.rankings.partial_orders import PartialOrders

_INT32_MAX = np.iinfo(np.int32).max


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["pairs", "results", "at_home"],
    meta_fields=["items", "num_games"],
)
@dataclass(frozen=True, eq=False, repr=False)
class Games:
    """Results of games of two items: how often each of the two won; immutable, and a JAX pytree.

    They are made by :meth:`from_pairs` or :meth:`from_orders`. Games of the same two items at the
    same place are one row.

    - **pairs** - the two items of each row, int32 (rows, 2). If one of them was at home, it is the
      first.
    - **results** - number of games that the first won and that the second won and, if there are
      ties at all, of ties, int32 (rows, 2) or (rows, 3).
    - **at_home** - whether the first item was at home, bool (rows,); None if no item ever was.
    - **items**, **num_games** - names of the n items, and number of games; also ``len(games)``.

    .. doctest::

       >>> import pandas as pd
       >>> from numpyro_rankings import Games
       >>> table = pd.DataFrame(
       ...     {"home": ["x", "y", "x"], "away": ["y", "x", "y"], "result": ["H", "H", "D"]}
       ... )
       >>> games = Games.from_pairs(table, winner="result", pair=("home", "away"), home="home")
       >>> games
       Games(3 of 2 items, 1 tie, 3 with one of them at home)
       >>> games.pairs.tolist(), games.results.tolist()
       ([[0, 1], [1, 0]], [[1, 0, 1], [1, 0, 0]])
    """

    _instead: ClassVar[str] = (
        "bradley_terry_map and models.bradley_terry take them; PartialOrders.from_pairs reads the "
        "same table for the kernels of rankings"
    )

    pairs: Array
    results: Array
    at_home: Array | None
    items: tuple[str, ...]
    num_games: int

    @classmethod
    def from_pairs(
        cls,
        df: Any,
        winner: str = "winner",
        loser: str = "loser",
        pair: tuple[str, str] | None = None,
        home: str | None = None,
        count: str | None = None,
        items: Sequence[Any] | None = None,
    ) -> "Games":
        """Count the games of a table.

        :param df: a data frame with a line for each game.
        :param winner: the column with the item that won or, with ``pair``, with the result; see
            :meth:`PartialOrders.from_pairs`.
        :param loser: the column with the other item, which is not read with ``pair``.
        :param pair: two columns with the items, so that there may be ties.
        :param home: the column with the item that was at home, empty where none was. It may be one
            of ``pair``.
        :param count: the column with the number of games that a line stands for.
        :param items: names of all items; by default those that appear, in order of first
            appearance.
        :raises RankingsError: naming the line: for an item that played against itself, a result
            that is not known, or an item at home that is none of the two; also for a column that
            is not there, and a table without games.
        """
        columns = (winner, loser) if pair is None else (*pair, winner)
        return load_format("read table of games")(df, columns, home, count, items)

    @classmethod
    def from_orders(cls, orders: PartialOrders) -> "Games":
        """Count the games of partial orders of two items each, of which none was at home.

        :raises RankingsError: if a row is not of two items.
        """
        if not are_games(orders):
            raise RankingsError(
                "a game is a row of two items, and of nothing else: make the partial orders by "
                "from_pairs without a judge"
            )
        pairs, counts = np.asarray(orders.listed), np.asarray(orders.counts)
        outcomes = np.where(np.asarray(orders.has_ties), 2, 0)
        return count_games(pairs, outcomes, counts, np.full(len(pairs), -1), orders.items)

    @property
    def num_items(self) -> int:
        """Number n of items."""
        return len(self.items)

    @property
    def has_ties(self) -> bool:
        """Whether any game was a tie."""
        return self.results.shape[1] == 3

    def __len__(self) -> int:
        return self.num_games

    def __repr__(self) -> str:
        if isinstance(self.results, jax.core.Tracer) or not isinstance(self.results, jax.Array):
            return f"Games({self.num_items} items)"
        text = f"{len(self)} of {self.num_items} items"
        if self.has_ties:
            number = int(self.results[:, 2].sum())
            text += f", {number} {'tie' if number == 1 else 'ties'}"
        if self.at_home is not None:
            number = int(jnp.where(self.at_home[:, None], self.results, 0).sum())
            text += f", {number} with one of them at home"
        return f"Games({text})"


def are_games(orders: PartialOrders) -> bool:
    """Whether each row of partial orders is of two items, and says nothing of others."""
    if orders.listed.shape[1] != 2 or int(orders.lengths.min()) != 2:
        return False
    if orders.choice_sets is not None:
        return int(orders.choice_sets.sum(1).max()) == 2
    return orders.unlisted == "not-offered" or orders.num_items == 2


def count_games(
    pairs: np.ndarray,
    outcomes: np.ndarray,
    counts: np.ndarray,
    home: np.ndarray,
    items: tuple[str, ...],
) -> Games:
    """Count games.

    :param pairs: the two items of each game, (m, 2).
    :param outcomes: 0 if the first won, 1 if the second won, 2 for a tie, (m,).
    :param counts: how many such games, (m,).
    :param home: the item at home, -1 if none was, (m,).
    """
    # the item at home is the first, otherwise that of the lower number
    turned = np.where(home < 0, pairs[:, 0] > pairs[:, 1], home == pairs[:, 1])
    pairs = np.where(turned[:, None], pairs[:, ::-1], pairs)
    outcomes = np.where(turned & (outcomes < 2), 1 - outcomes, outcomes)
    keys = np.column_stack([pairs, home >= 0])
    distinct, row = np.unique(keys, axis=0, return_inverse=True)
    width = 3 if (outcomes == 2).any() else 2
    cells = row.ravel() * width + outcomes
    results = np.bincount(cells, counts, len(distinct) * width).reshape(-1, width)
    if results.sum() > _INT32_MAX:
        raise RankingsError(f"the counts of the games sum to more than {_INT32_MAX}")
    return Games(
        jnp.asarray(distinct[:, :2], jnp.int32),
        jnp.asarray(results, jnp.int32),
        jnp.asarray(distinct[:, 2] == 1) if (home >= 0).any() else None,
        items,
        int(results.sum()),
    )
