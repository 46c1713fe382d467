"""Comparisons of pairs of items that judges may get wrong, and so contradict themselves."""

from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.rankings.container import Rankings, load_format
from numpyro_rankings.rankings.partial_orders import PartialOrders, places_in
from numpyro_rankings.rankings.preferences import check_size, closure
from numpyro_rankings.rankings.rows import RowsOfJudges


@jax.tree_util.register_pytree_node_class
class Comparisons(RowsOfJudges):
    """Comparisons "A rather than B" of judges who make mistakes; immutable, and a JAX pytree.

    They are made by :meth:`from_pairs`. A row stands for an ordering of all n items, against which
    each comparison is made: it agrees with the ordering, or is a mistake. So the comparisons of a
    judge may contradict one another. Nothing is known of items that a judge did not compare.

    - **listed** - indices of the items that the judge compared, those that won most often first,
      padded with -1, int32 (rows, T).
    - **wins** - how often the first of two listed items was preferred to the second, int32
      (rows, T, T).
    - **lengths**, **counts** - number of listed items, and of judges, of each row, int32 (rows,).
    - **num_items**, **items**, **num_rankings** - n, the names of the items, and N.
    - **ids** - the names of the judges of the rows, or None, as in :class:`PartialOrders`.

    This is another class than :class:`PartialOrders`, whose preferences hold, so that nothing takes
    the one for the other unawares.

    **References:** Crispino, M., Arjas, E., Vitelli, V., Barrett, N., Frigessi, A. (2019), "A
    Bayesian Mallows approach to nontransitive pair comparison data: How human are sounds?", Annals
    of Applied Statistics 13(1).

    .. doctest::

       >>> import pandas as pd
       >>> from numpyro_rankings import Comparisons
       >>> table = pd.DataFrame({"judge": "Ann", "winner": list("abca"), "loser": list("bcab")})
       >>> c = Comparisons.from_pairs(table, judge="judge")
       >>> c
       Comparisons(1 of 3 items, 4 comparisons, 1 row with cycles)
       >>> c.listed.tolist(), c.wins.tolist()
       ([[0, 2, 1]], [[[0, 0, 2], [1, 0, 0], [0, 1, 0]]])
    """

    __slots__ = ("lengths", "listed", "unlisted", "wins")
    are_partial = True
    kind = "comparisons"
    _leaves = ("listed", "wins", "lengths", "counts")
    _static = ("unlisted", "num_items", "items", "num_rankings")
    taken_by: ClassVar[str] = "SliceGibbs, BetaGibbs and PlackettLuceGibbs without model= take them"
    _instead = taken_by

    listed: Array
    wins: Array
    lengths: Array
    unlisted: str  # "not-offered"; "below" where all items are listed

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError("use Comparisons.from_pairs")

    @classmethod
    def from_pairs(
        cls,
        df: Any,
        judge: str | None = None,
        winner: str = "winner",
        loser: str = "loser",
        items: Sequence[Any] | None = None,
        count: str | None = None,
        pair: tuple[str, str] | None = None,
    ) -> "Comparisons":
        """Make comparisons from a table with a line for each.

        The arguments are those of :meth:`PartialOrders.from_pairs`. A pair that a judge compares
        several times counts as often. A tie is no comparison.

        :return: the comparisons, which have **ids** if ``judge`` is given.
        :raises RankingsError: naming the line or the judge.
        """
        columns = (winner, loser) if pair is None else (*pair, winner)
        return load_format("read comparisons")(df, columns, judge, items, count)

    def __repr__(self) -> str:
        size = f"{self.num_rankings} of {self.num_items} items"
        if self._is_traced() or not isinstance(self.lengths, jax.Array):
            return f"Comparisons({size})"
        number = int(np.asarray(self.counts) @ np.asarray(self.wins).sum((1, 2)))
        wrong = int(self.has_cycles.sum())
        cycles = f", {wrong} {'row' if wrong == 1 else 'rows'} with cycles" if wrong else ""
        return f"Comparisons({size}, {number} comparisons{cycles})"

    @property
    def has_cycles(self) -> np.ndarray:
        """Whether the comparisons of a row contradict one another, bool (rows,)."""
        return np.einsum("rii->ri", closure(np.asarray(self.wins) > 0)).any(axis=1)

    @property
    def prefers(self) -> Array:
        """Whether the first of two listed items won more often than the second, (rows, T, T)."""
        return self.wins > jnp.swapaxes(self.wins, 1, 2)

    @property
    def orders(self) -> PartialOrders:
        """The items of each row, without preferences between them."""
        nothing = jnp.zeros(self.wins.shape, bool)
        leaves = (self.listed, nothing, self.lengths, self.counts, None)
        static = (self.unlisted, self.num_items, self.items, self.num_rankings)
        return PartialOrders._make(leaves, static)

    def offered(self) -> Array | None:
        """Return which items were compared, bool (rows, n); None if all are listed."""
        return self.orders.offered()

    def rest(self) -> Array:
        """Return which items are below all that are listed, bool (rows, n): none are."""
        return self.orders.rest()

    def with_orderings(self, orderings: Array) -> Rankings:
        """Return rankings with orders of the listed items, of the same judges."""
        return self.orders.with_orderings(orderings)

    def of_all_items(self) -> "Comparisons":
        """Return the same comparisons with all items listed in each row, and nothing else."""
        n, num_rows = self.num_items, self.num_rows
        check_size(num_rows, n, bytes_each=4)
        rows, columns = jnp.arange(num_rows), jnp.where(self.listed >= 0, self.listed, n)
        wins = jnp.zeros((num_rows, n + 1, n + 1), jnp.int32)
        wins = wins.at[rows[:, None, None], columns[:, :, None], columns[:, None, :]].set(self.wins)
        wins = wins[:, :n, :n]
        order = jnp.argsort((wins.sum(1) - wins.sum(2)), axis=1, stable=True).astype(jnp.int32)
        wins = jnp.take_along_axis(wins, order[:, :, None], axis=1)
        wins = jnp.take_along_axis(wins, order[:, None, :], axis=2)
        leaves = (order, wins, jnp.full_like(self.lengths, n), self.counts)
        made = self._make(leaves, ("below", n, self.items, self.num_rankings))
        return made.with_ids(self.ids)

    def count_mistakes(self, orderings: Array) -> Array:
        """Return how many comparisons contradict orderings of the listed items, int32 (rows,).

        :param orderings: (rows, T), of which the n-th item may be left out.
        """
        place = places_in(orderings, self.listed)
        contradicts = place[:, :, None] > place[:, None, :]
        return jnp.where(contradicts, self.wins, 0).sum((1, 2), dtype=jnp.int32)

    def _keys(self) -> np.ndarray:
        parts = (self.listed, np.asarray(self.wins).reshape(self.num_rows, -1))
        return np.unique(np.concatenate(parts, axis=1), axis=0, return_inverse=True)[1].ravel()


Orders = PartialOrders | Comparisons  # of which kernels draw the orderings behind them


def build_comparisons(
    table: np.ndarray, wins: np.ndarray, names: tuple[str, ...], counts: np.ndarray
) -> Comparisons:
    """Make comparisons of judges, each of whom compares two items at least.

    :param table: (rows, T) the items that each row compares, each once, padded with -1.
    :param wins: (rows, T, T) how often the first of two was preferred to the second.
    :param counts: numbers of judges, which are checked.
    """
    margin = wins.sum(2) - wins.sum(1)
    order = np.lexsort((table, -margin, table < 0), axis=1)
    wins = np.take_along_axis(wins, order[:, :, None], axis=1)
    wins = np.take_along_axis(wins, order[:, None, :], axis=2)
    leaves = (
        jnp.asarray(np.take_along_axis(table, order, axis=1), jnp.int32),
        jnp.asarray(wins, jnp.int32),
        jnp.asarray((table >= 0).sum(1), jnp.int32),
        jnp.asarray(counts, jnp.int32),
    )
    return Comparisons._make(leaves, ("not-offered", len(names), names, int(counts.sum())))
