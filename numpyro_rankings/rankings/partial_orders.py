"""Preferences of judges who tied items, compared pairs or left items out: partial orders."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.rankings.container import (
    Rankings,
    check_choice_sets,
    check_counts,
    check_rankings,
    check_unranked,
    load_format,
)
from numpyro_rankings.rankings.names import (
    RankingsError,
    item_names,
    list_of_names,
    number_names,
    row_place,
)
from numpyro_rankings.rankings.orderings import check_table, padded_table
from numpyro_rankings.rankings.preferences import (
    TIED_RANKS,
    above_of_levels,
    check_size,
    check_tied_ranks,
    flat_buckets,
)
from numpyro_rankings.rankings.ranks import as_floats, check_same_order
from numpyro_rankings.rankings.rows import RowsOfJudges


@jax.tree_util.register_pytree_node_class
class PartialOrders(RowsOfJudges):
    """Preferences of judges who need not order all items; immutable, and a JAX pytree.

    They are made by :meth:`from_buckets`, :meth:`from_ranks`, :meth:`from_pairs`,
    :meth:`from_preflib` or :meth:`from_rankings`. A row stands for an ordering of all n items of
    which only some preferences are known: those of **above**, and that each listed item is above
    each one that was offered and is not listed. Nothing is known of items that were not offered.

    - **listed** - indices of the items that the judge compared, in an order that agrees with what
      was said, padded with -1, int32 (rows, T).
    - **above** - whether the first of two listed items is preferred to the second, by what was
      said and what follows from it, bool (rows, T, T).
    - **lengths**, **counts** - number of listed items, and of judges, of each row, int32 (rows,).
    - **choice_sets** - which items were offered, bool (rows, n). None: see **unlisted**.
    - **unlisted** - without choice sets, what it means that an item is not listed: ``"below"``, or
      ``"not-offered"``.
    - **num_items**, **items**, **num_rankings** - n, the names of the items, and N.
    - **ids** - the names of the judges of the rows, or None. :meth:`of_all_items`, pickles and
      copies keep them; transformations of JAX and what changes the rows do not.

    .. doctest::

       >>> from numpyro_rankings import PartialOrders
       >>> p = PartialOrders.from_buckets([[["a", "b"], "c"], ["c", "a"]], items=["a", "b", "c"])
       >>> p
       PartialOrders(2 of 3 items, 2 rows, 1 with ties or gaps)
       >>> p.listed.tolist()
       [[0, 1, 2], [2, 0, -1]]
       >>> p.above[0].astype(int).tolist()
       [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    """

    __slots__ = ("above", "choice_sets", "lengths", "listed", "unlisted")
    are_partial = True
    kind = "partial orders"
    _leaves = ("listed", "above", "lengths", "counts", "choice_sets")
    _static = ("unlisted", "num_items", "items", "num_rankings")
    taken_by: ClassVar[str] = (
        "SliceGibbs, BetaGibbs and the Gibbs samplers of Plackett–Luce models without model= take "
        "both"
    )
    _instead = "if no row has ties or gaps, give their to_rankings()"

    listed: Array
    above: Array
    lengths: Array
    choice_sets: Array | None
    unlisted: str

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError(
            "use PartialOrders.from_buckets, from_ranks, from_pairs, from_preflib or from_rankings"
        )

    # -- constructors --------------------------------------------------------------------------

    @classmethod
    def from_buckets(
        cls,
        buckets: Any,
        num_items: int | None = None,
        items: Sequence[Any] | None = None,
        counts: Any = None,
        choice_sets: Any = None,
        unranked: str = "below",
        entries: str | None = None,
    ) -> "PartialOrders":
        """Make partial orders from lists of buckets, best first, in which items may be tied.

        :param buckets: for each row a list, whose entries are items or lists of tied items.
        :param num_items: n; by default the number of ``items``.
        :param items: names of the items, in index order; by default "item 1", "item 2", …
        :param counts: number of judges that each row stands for; by default 1.
        :param choice_sets: (rows, n) booleans, which items each judge was offered.
        :param unranked: what it means that an item is in no bucket: ``"below"`` or
            ``"not-offered"``.
        :param entries: what numbers are, as in :meth:`Rankings.from_orderings`.
        :return: the partial orders, with the rows as given.
        :raises RankingsError: naming the row (counted from 1) and the item.

        .. doctest::

           >>> from numpyro_rankings import PartialOrders
           >>> p = PartialOrders.from_buckets([[0, [1, 2]], [[0, 1, 2], 3]], num_items=4)
           >>> p.levels.tolist()
           [[0, 1, 1, -1], [0, 0, 0, 1]]
        """
        names = item_names(None if items is None else list_of_names(items), num_items)
        numbers = None if items is None else number_names(list_of_names(items), names, entries)
        check_unranked(unranked, choice_sets)
        rows, levels = flat_buckets(buckets)
        table = padded_table(rows, names, row_place, numbers)
        check_table(table, names, row_place)
        table, above = above_of_levels(table.astype(np.int64), levels)
        return build_partial_orders(table, above, names, (counts, choice_sets, unranked))

    @classmethod
    def from_ranks(
        cls,
        ranks: Any,
        items: Sequence[Any] | None = None,
        counts: Any = None,
        ties: str | None = None,
        unranked: str = "below",
        choice_sets: Any = None,
    ) -> "PartialOrders":
        """Make partial orders from the rank that each judge gave to each item, ties included.

        :param ranks: (rows, n), an array or a data frame, 1 = best; missing or 0 for items that are
            not ranked.
        :param items: names of the items; by default those of the columns of a data frame.
        :param counts: number of judges that each row stands for; by default 1.
        :param ties: the ranks of tied items: ``"min"`` (1, 2, 2, 4), ``"dense"`` (1, 2, 2, 3),
            ``"average"`` (1, 2.5, 2.5, 4), or ``"any"`` numbers, the lowest first, where 0 is a
            number too; of scores, of which the highest are best, give ``-scores``. By default each
            row must be one of the first three.
        :param unranked: what it means that an item has no rank: ``"below"`` or ``"not-offered"``.
        :param choice_sets: (rows, n) booleans, instead of ``unranked``.
        :return: the partial orders, with the rows as given.
        :raises RankingsError: naming the row and the item.

        .. doctest::

           >>> from numpyro_rankings import PartialOrders
           >>> PartialOrders.from_ranks([[1, 2, 2, 4], [1.5, 1.5, 3, 4]])
           PartialOrders(2 of 4 items, 2 rows, 2 with ties or gaps)
        """
        if ties not in (None, "any", *TIED_RANKS):
            ways = ", ".join(map(repr, TIED_RANKS))
            raise RankingsError(f"ties is {ways} or 'any', not {ties!r}")
        check_unranked(unranked, choice_sets)
        columns = list(ranks.columns) if hasattr(ranks, "columns") else None
        table = as_floats(ranks, columns)
        if table.ndim != 2:
            raise RankingsError(f"ranks must be a table (rows, items), got shape {table.shape}")
        if not len(table):
            raise RankingsError("there are no rankings")
        names = item_names(columns if items is None else items, table.shape[1])
        if columns is not None and items is not None:
            check_same_order(columns, names)
        if ties != "any":
            table = check_tied_ranks(table, names, ties)
        order = np.argsort(table, axis=1, kind="stable")  # NaN last
        levels = np.take_along_axis(table, order, axis=1)
        listed = np.where(np.isnan(levels), -1, order)
        check_table(listed, names, row_place)
        listed = listed[:, : (listed >= 0).sum(1).max()]
        listed, above = above_of_levels(listed, levels)
        return build_partial_orders(listed, above, names, (counts, choice_sets, unranked))

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
    ) -> "PartialOrders":
        """Make partial orders from a table of comparisons of two items.

        Items that a judge did not compare count as not offered.

        :param df: a data frame with a line for each comparison.
        :param judge: the column with the judges, each of whom becomes a row, in order of first
            appearance. By default each line is a judge of its own, and equal lines are one row.
        :param winner: the column with the name of the item that was preferred.
        :param loser: the column with the name of the other item.
        :param items: names of all items; by default those that appear, in order of first
            appearance.
        :param count: the column with the number of judges that a line, or all lines of a judge,
            stand for.
        :param pair: two columns with the items, such as ``("model_a", "model_b")``. Then the column
            ``winner`` has the name of the item that was preferred, or of its column, or is
            ``tie``, ``draw``, ``no preference`` or the like, and ``loser`` is not read. It may also
            have results only: ``H``, ``D``, ``A`` (home, a draw, away; the first is at home unless
            the columns are called otherwise), ``home``, ``draw``, ``away``, ``1``, ``X``, ``2``,
            ``W``, ``D``, ``L``, or points such as ``1-0``, ``1/2-1/2``, ``3-1``.
        :return: the partial orders, which have **ids** if ``judge`` is given.
        :raises RankingsError: naming the line or the judge; for preferences that contradict one
            another, with the cycle. :meth:`Comparisons.from_pairs` takes them as mistakes.

        .. doctest::

           >>> import pandas as pd
           >>> from numpyro_rankings import PartialOrders
           >>> table = pd.DataFrame(
           ...     {"judge": [1, 1, 2], "winner": ["a", "b", "a"], "loser": ["b", "c", "c"]}
           ... )
           >>> p = PartialOrders.from_pairs(table, judge="judge")
           >>> p
           PartialOrders(2 of 3 items, 2 rows)
           >>> p.listed.tolist()
           [[0, 1, 2], [0, 2, -1]]
        """
        columns = (winner, loser) if pair is None else (*pair, winner)
        return load_format("read table of pairs")(df, columns, judge, items, count)

    @classmethod
    def from_rankings(cls, rankings: Rankings) -> "PartialOrders":
        """Return the partial orders that say the same as rankings."""
        check_rankings(rankings)
        listed = rankings.orderings
        place = jnp.arange(listed.shape[1])
        both = (listed >= 0)[:, :, None] & (listed >= 0)[:, None, :]
        leaves = (
            listed,
            both & (place[:, None] < place),
            rankings.lengths,
            rankings.counts,
            rankings.choice_sets,
        )
        return cls._make(leaves, ("below", *rankings.tree_flatten()[1]))

    @classmethod
    def from_preflib(cls, path: Any, unranked: str = "below") -> "PartialOrders":
        """Read a PrefLib file of orders, with ties or without: ``.toc``, ``.toi``, ``.soc``,
        ``.soi`` or ``.cat``.

        :param path: the file; the categories of a ``.cat`` file are buckets.
        :param unranked: as in :meth:`from_buckets`.
        :return: the partial orders, one row for each distinct order.
        :raises RankingsError: naming the file and the line.
        """
        check_unranked(unranked)
        buckets, names, counts = load_format("read .toc, .toi, .cat")(path)
        return cls.from_buckets(buckets, None, names, counts, None, unranked, entries="indices")

    # -- views ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        size = f"{self.num_rankings} of {self.num_items} items"
        if self._is_traced() or not isinstance(self.lengths, jax.Array):
            return f"PartialOrders({size})"
        rows = f"{self.num_rows} {'rows' if self.num_rows == len(self) else 'distinct rows'}"
        tied = int(self.has_ties.sum())
        ties = f", {tied} with ties or gaps" if tied else ""
        return f"PartialOrders({size}, {rows}{ties})"

    @property
    def prefers(self) -> Array:
        """The same as **above**, under the name that :class:`Comparisons` have it by."""
        return self.above

    @property
    def num_above(self) -> Array:
        """Number of items that are above each listed item, int32 (rows, T)."""
        return self.above.sum(1, dtype=jnp.int32)

    @property
    def are_buckets(self) -> Array:
        """Whether each row is an order of buckets of tied items, bool (rows,)."""
        number = self.num_above
        is_listed = self.listed >= 0
        both = is_listed[:, :, None] & is_listed[:, None, :]
        return (self.above == (both & (number[:, :, None] < number[:, None, :]))).all((1, 2))

    @property
    def has_ties(self) -> Array:
        """Whether a row does not say the order of two listed items, bool (rows,)."""
        pairs = self.lengths * (self.lengths - 1) // 2
        return self.above.sum((1, 2), dtype=jnp.int32) < pairs

    @property
    def levels(self) -> Array:
        """The bucket of each listed item in its row, 0 = best, -1 = padding, int32 (rows, T).

        Only rows that :attr:`are_buckets` have them. They are in the order of ``listed``;
        :meth:`levels_of_items` has a column for each item.
        """
        number = self.num_above
        steps = (number[:, 1:] != number[:, :-1]).astype(jnp.int32)
        first = jnp.zeros((len(number), 1), jnp.int32)
        levels = jnp.concatenate([first, jnp.cumsum(steps, axis=1, dtype=jnp.int32)], axis=1)
        return jnp.where(self.listed >= 0, levels, -1)

    def levels_of_items(self) -> Array:
        """Return the bucket of each item in its row, 0 = best, -1 = not listed, int32 (rows, n).

        They are values of :class:`~numpyro_rankings.distributions.PlackettLuceTies`, with
        :meth:`offered` as its choice set.

        :raises RankingsError: naming a row that is no order of buckets, unless they are traced.
        """
        check_buckets(self)
        return self._by_item(self.levels, -1)

    def offered(self) -> Array | None:
        """Return which items were offered, bool (rows, n); None if all were."""
        if self.choice_sets is not None or self.unlisted == "below":
            return self.choice_sets
        return self._is_listed()

    def rest(self) -> Array:
        """Return which items are below all that are listed, bool (rows, n)."""
        offered, is_listed = self.offered(), self._is_listed()
        return ~is_listed if offered is None else offered & ~is_listed

    def _is_listed(self) -> Array:
        return self._by_item(jnp.ones_like(self.listed, dtype=bool), False)

    def _by_item(self, values: Array, missing: Any) -> Array:
        """Arrange values of the listed items, (rows, T), by item, (rows, n)."""
        rows = jnp.arange(self.num_rows)[:, None]
        columns = jnp.where(self.listed >= 0, self.listed, self.num_items)
        table = jnp.full((self.num_rows, self.num_items + 1), missing, values.dtype)
        return table.at[rows, columns].set(values)[:, :-1]

    def of_listed_items(self) -> "PartialOrders":
        """Drop the items that no row lists; under ``jit``, where they are not known, all stay."""
        if self._is_traced():
            return self
        listed = np.asarray(self.listed)
        kept = np.unique(listed[listed >= 0])
        if len(kept) == self.num_items:
            return self
        new_index = np.full(self.num_items + 1, -1, np.int32)  # the last one keeps the padding, -1
        new_index[kept] = np.arange(len(kept))
        (_, *others, offered), (unlisted, *_) = self.tree_flatten()
        with jax.ensure_compile_time_eval():  # otherwise these would be traced
            leaves = (jnp.asarray(new_index[listed]), *others)
            offered = None if offered is None else offered[:, kept]
        names = tuple(self.items[item] for item in kept)
        static = (unlisted, len(kept), names, self.num_rankings)
        return self._make((*leaves, offered), static).with_ids(self.ids)

    def agree(self, orderings: Array) -> Array:
        """Return whether orderings of the listed items agree with each row, bool (rows,).

        :param orderings: (rows, T), of which the n-th item may be left out.
        """
        is_listed, num_places = self.listed >= 0, orderings.shape[1]
        place = places_in(orderings, self.listed)
        num_missing = jnp.sum(is_listed & (place == num_places), axis=1)
        ordered = (place[:, :, None] < place[:, None, :]) | ~self.above
        return ordered.all((1, 2)) & (num_missing <= jnp.maximum(self.lengths - num_places, 0))

    def to_rankings(self) -> Rankings:
        """Return the rankings that say the same.

        :raises RankingsError: naming the first row with ties or items without an order.
        """
        has_ties = np.asarray(self.has_ties)
        if has_ties.any():
            row = int(np.argmax(has_ties))
            one, two = self._open_pair(row)
            raise RankingsError(
                f"{row_place(row)}: the order of items {one!r} and {two!r} is not known, so that "
                "the row is no ranking"
            )
        return self.with_orderings(self.listed)

    def with_orderings(self, orderings: Array) -> Rankings:
        """Return rankings with other orders of the listed items, of the same judges."""
        leaves = (orderings, self.lengths, self.counts, self.offered())
        return Rankings.tree_unflatten((self.num_items, self.items, self.num_rankings), leaves)

    def of_all_items(self) -> "PartialOrders":
        """Return the same preferences with all items listed in each row, and nothing else."""
        n, num_rows = self.num_items, self.num_rows
        check_size(num_rows, n)
        rows, columns = jnp.arange(num_rows), jnp.where(self.listed >= 0, self.listed, n)
        above = jnp.zeros((num_rows, n + 1, n + 1), bool)
        above = above.at[rows[:, None, None], columns[:, :, None], columns[:, None, :]].set(
            self.above
        )[:, :n, :n]
        # this is closed: who is above a listed item is listed
        above |= self._is_listed()[:, :, None] & self.rest()[:, None, :]
        order = jnp.argsort(above.sum(1), axis=1, stable=True).astype(jnp.int32)
        above = jnp.take_along_axis(above, order[:, :, None], axis=1)
        above = jnp.take_along_axis(above, order[:, None, :], axis=2)
        leaves = (order, above, jnp.full_like(self.lengths, n), self.counts, None)
        made = self._make(leaves, ("below", n, self.items, self.num_rankings))
        return made.with_ids(self.ids)

    def _open_pair(self, row: int) -> tuple[str, str]:
        """Return the names of two listed items of a row whose order is not known."""
        above = np.asarray(self.above[row])
        length = int(self.lengths[row])
        known = (above | above.T | np.eye(len(above), dtype=bool))[:length, :length]
        one, two = (self.items[int(self.listed[row, k])] for k in np.argwhere(~known)[0])
        return one, two

    def _keys(self) -> np.ndarray:
        bits = [np.asarray(self.above).reshape(self.num_rows, -1)]
        if self.choice_sets is not None:
            bits.append(np.asarray(self.choice_sets))
        packed = [np.packbits(part, axis=1) for part in bits]
        listed = np.ascontiguousarray(self.listed).view(np.uint8)
        index: dict[bytes, int] = {}
        rows = np.concatenate([listed, *packed], axis=1)
        return np.array([index.setdefault(row.tobytes(), len(index)) for row in rows])


def places_in(orderings: Array, listed: Array) -> Array:
    """Return the places of items, (rows, T), in orderings; after the last one of what is not there.

    :param listed: the items, padded with -1.
    """
    is_there = (listed[:, :, None] == orderings[:, None, :]) & (listed >= 0)[:, :, None]
    return jnp.where(is_there.any(2), is_there.argmax(2), orderings.shape[1])


def check_buckets(orders: PartialOrders) -> None:
    """Refuse a row in which items without an order are not tied, unless the rows are traced."""
    if orders._is_traced():
        return
    for row in np.flatnonzero(~np.asarray(orders.are_buckets))[:1]:
        place = row_place(row) if orders.ids is None else f"judge {orders.ids[row]!r}"
        raise RankingsError(
            f"{place}: the preferences are no order of buckets of tied items, as this likelihood "
            "needs them. Comparisons that may be taken as independent get a row each: from_pairs "
            "without a judge"
        )


def build_partial_orders(
    table: np.ndarray,
    above: np.ndarray,
    names: tuple[str, ...],
    given: tuple[Any, Any, str],
    where: Callable[[int], str] = row_place,
) -> PartialOrders:
    """Make partial orders of preferences that are closed and free of cycles.

    :param table: (rows, T) the items that each row compares, each once, padded with -1.
    :param above: (rows, T, T) whether the first of two is preferred to the second.
    :param given: counts, choice sets, and what it means that an item is not listed.
    :param where: how messages call a row.
    """
    counts, choice_sets, unlisted = given
    checked_counts = check_counts(counts, len(table), where)
    offered = check_choice_sets(choice_sets, table, names, where)
    is_listed = table >= 0
    lengths = is_listed.sum(1)
    # who has more items above cannot be above, so that their number orders the items
    number = above.view(np.uint8).sum(1, dtype=np.int32)
    order = np.lexsort((table, np.where(is_listed, number, table.shape[1])), axis=1)
    if (order != np.arange(table.shape[1])).any():
        rows = np.arange(len(table))[:, None, None]
        above = above[rows, order[:, :, None], order[:, None, :]]
        table = np.take_along_axis(table, order, axis=1)
    width = int(lengths.max())
    leaves = (
        jnp.asarray(table[:, :width], jnp.int32),
        jnp.asarray(above[:, :width, :width]),
        jnp.asarray(lengths, jnp.int32),
        jnp.asarray(checked_counts, jnp.int32),
        None if offered is None else jnp.asarray(offered),
    )
    static = (unlisted, len(names), names, int(checked_counts.sum()))
    return PartialOrders.tree_unflatten(static, leaves)
