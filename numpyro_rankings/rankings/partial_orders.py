"""Preferences of judges who tied items, compared pairs or left items out: partial orders."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

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
)
from numpyro_rankings.rankings.names import (
    RankingsError,
    is_missing,
    item_names,
    list_of_names,
    name_of,
    number_names,
    row_place,
)
from numpyro_rankings.rankings.orderings import padded_table, row_keys
from numpyro_rankings.rankings.ranks import as_floats, check_same_order
from numpyro_rankings.rankings.rows import Rows


@jax.tree_util.register_pytree_node_class
class PartialOrders(Rows):
    """Preferences of judges that need not order all items; immutable, and a JAX pytree.

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
    - **ids** - the judges of the rows, or None. They do not pass through transformations of JAX.

    .. doctest::

       >>> from numpyro_rankings import PartialOrders
       >>> p = PartialOrders.from_buckets([[["a", "b"], "c"], ["c", "a"]], items=["a", "b", "c"])
       >>> p
       PartialOrders(2 of 3 items, 2 rows, 1 with ties)
       >>> p.listed.tolist()
       [[0, 1, 2], [2, 0, -1]]
       >>> p.above[0].astype(int).tolist()
       [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    """

    __slots__ = ("above", "choice_sets", "ids", "lengths", "listed", "unlisted")
    _leaves = ("listed", "above", "lengths", "counts", "choice_sets")
    _static = ("unlisted", "num_items", "items", "num_rankings")

    listed: Array
    above: Array
    lengths: Array
    choice_sets: Array | None
    unlisted: str
    ids: tuple[str, ...] | None

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError(
            "use PartialOrders.from_buckets, from_ranks, from_pairs, from_preflib or from_rankings"
        )

    @classmethod
    def _make(cls, leaves: Sequence[Any], static: tuple) -> "PartialOrders":
        self = super()._make(leaves, static)
        object.__setattr__(self, "ids", None)
        return self

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
        """
        names = item_names(None if items is None else list_of_names(items), num_items)
        numbers = None if items is None else number_names(list_of_names(items), names, entries)
        rows, levels = _flat_buckets(buckets)
        table = padded_table(rows, names, row_place, numbers).astype(np.int64)
        return _of_levels(table, levels, names, counts, choice_sets, unranked)

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
            ``"average"`` (1, 2.5, 2.5, 4), or ``"any"`` numbers in their order, such as scores.
            By default each row must be one of the first three.
        :param unranked: what it means that an item has no rank: ``"below"`` or ``"not-offered"``.
        :param choice_sets: (rows, n) booleans, instead of ``unranked``.
        :return: the partial orders, with the rows as given.
        :raises RankingsError: naming the row and the item.

        .. doctest::

           >>> from numpyro_rankings import PartialOrders
           >>> PartialOrders.from_ranks([[1, 2, 2, 4], [1.5, 1.5, 3, 4]])
           PartialOrders(2 of 4 items, 2 rows, 2 with ties)
        """
        if ties not in (None, "any", *_TIED_RANKS):
            raise RankingsError(
                f"ties is {', '.join(map(repr, _TIED_RANKS))} or 'any', not {ties!r}"
            )
        columns = list(ranks.columns) if hasattr(ranks, "columns") else None
        table = as_floats(ranks, columns)
        if table.ndim != 2:
            raise RankingsError(f"ranks must be a table (rows, items), got shape {table.shape}")
        names = item_names(columns if items is None else items, table.shape[1])
        if columns is not None and items is not None:
            check_same_order(columns, names)
        if ties != "any":
            table = np.where(table == 0, np.nan, table)
            _check_tied_ranks(table, names, ties)
        order = np.argsort(table, axis=1, kind="stable")  # NaN last
        is_ranked = np.take_along_axis(~np.isnan(table), order, axis=1)
        levels = np.take_along_axis(table, order, axis=1)
        orderings = np.where(is_ranked, order, -1)[:, : max(is_ranked.sum(1).max(initial=1), 1)]
        return _of_levels(orderings, levels, names, counts, choice_sets, unranked)

    @classmethod
    def from_pairs(
        cls,
        df: Any,
        judge: str | None = None,
        winner: str = "winner",
        loser: str = "loser",
        items: Sequence[Any] | None = None,
        count: str | None = None,
    ) -> "PartialOrders":
        """Make partial orders from a table of comparisons of two items.

        :param df: a data frame with a line for each comparison.
        :param judge: the column with the judges, each of whom becomes a row, in order of first
            appearance. By default each line is a judge of its own, and equal lines are one row.
        :param winner: the column with the name of the item that was preferred.
        :param loser: the column with the name of the other item.
        :param items: names of all items; by default those that appear, in order of first
            appearance.
        :param count: the column with the number of judges that a line, or all lines of a judge,
            stand for.
        :return: the partial orders. Items that a judge did not compare count as not offered.
        :raises RankingsError: naming the line or the judge; for preferences that contradict one
            another, with the cycle.

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
        named = [column for column in (judge, winner, loser, count) if column is not None]
        for column in named:
            if column not in df.columns:
                raise RankingsError(f"there is no column {column!r}; expected {named}")
        winners, losers = (_names_in(df, column) for column in (winner, loser))
        given = list(dict.fromkeys([*winners, *losers])) if items is None else items
        names = item_names(given)
        pairs = np.column_stack([_indices_in(names, x) for x in (winners, losers)])
        for line in np.flatnonzero(pairs[:, 0] == pairs[:, 1])[:1]:
            raise RankingsError(f"{row_place(line)}: item {winners[line]!r} is compared to itself")
        counts = None if count is None else np.asarray(df[count])
        if judge is None:
            lines = np.arange(len(pairs))
            made = _of_pairs(lines, pairs, names, counts, row_place).unique()
            return made
        judges = _names_in(df, judge)
        ids = tuple(dict.fromkeys(judges))
        index = {name: k for k, name in enumerate(ids)}
        rows = np.array([index[name] for name in judges])
        if counts is not None:
            counts = _counts_of_judges(rows, counts, ids)
        made = _of_pairs(rows, pairs, names, counts, lambda row: f"judge {ids[row]!r}")
        object.__setattr__(made, "ids", ids)
        return made

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
        from numpyro_rankings.readers.preflib import read_preflib_buckets

        buckets, names, counts, where = read_preflib_buckets(path)
        rows, levels = _flat_buckets(buckets)
        table = padded_table(rows, names, where).astype(np.int64)
        return _of_levels(table, levels, names, counts, None, unranked, where)

    # -- views ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        size = f"{self.num_rankings} of {self.num_items} items"
        if self._is_traced() or not isinstance(self.lengths, jax.Array):
            return f"PartialOrders({size})"
        rows = f"{self.num_rows} {'rows' if self.num_rows == len(self) else 'distinct rows'}"
        tied = int(self.has_ties.sum())
        return f"PartialOrders({size}, {rows}{f', {tied} with ties' if tied else ''})"

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

        Only rows that :attr:`are_buckets` have them.
        """
        number = self.num_above
        steps = (number[:, 1:] != number[:, :-1]).astype(jnp.int32)
        first = jnp.zeros((len(number), 1), jnp.int32)
        levels = jnp.concatenate([first, jnp.cumsum(steps, axis=1, dtype=jnp.int32)], axis=1)
        return jnp.where(self.listed >= 0, levels, -1)

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
        rows = jnp.arange(self.num_rows)[:, None]
        columns = jnp.where(self.listed >= 0, self.listed, self.num_items)
        sets = jnp.zeros((self.num_rows, self.num_items + 1), bool).at[rows, columns].set(True)
        return sets[:, :-1]

    def agree(self, orderings: Array) -> Array:
        """Return whether orderings of the listed items agree with each row, bool (rows,).

        :param orderings: (rows, T), of which the n-th item may be left out.
        """
        is_listed, num_places = self.listed >= 0, orderings.shape[1]
        is_there = self.listed[:, :, None] == orderings[:, None, :]
        place = jnp.where(is_there.any(2), is_there.argmax(2), num_places)
        place = jnp.where(is_listed, place, num_places)
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
        object.__setattr__(made, "ids", self.ids)
        return made

    def _open_pair(self, row: int) -> tuple[str, str]:
        """Return the names of two listed items of a row whose order is not known."""
        above = np.asarray(self.above[row])
        length = int(self.lengths[row])
        known = (above | above.T | np.eye(len(above), dtype=bool))[:length, :length]
        one, two = np.argwhere(~known)[0]
        return tuple(self.items[int(self.listed[row, k])] for k in (one, two))

    def _keys(self) -> np.ndarray:
        parts = [np.asarray(self.listed)]
        flat = np.asarray(self.above).reshape(self.num_rows, -1)
        parts.append(row_keys(np.packbits(flat, axis=1))[:, None])
        if self.choice_sets is not None:
            parts.append(row_keys(np.packbits(np.asarray(self.choice_sets), axis=1))[:, None])
        return row_keys(np.concatenate(parts, axis=1))


def _of_levels(
    table: np.ndarray,
    levels: Any,
    names: tuple[str, ...],
    counts: Any,
    choice_sets: Any,
    unranked: str,
    where: Callable[[int], str] = row_place,
) -> PartialOrders:
    """Make partial orders of items, (rows, T), and numbers in the order of their buckets."""
    check_unranked(unranked, choice_sets)
    numbers = np.zeros(table.shape)
    for row, given in enumerate(levels):
        width = min(len(given), table.shape[1])
        numbers[row, :width] = given[:width]
    both = (table >= 0)[:, :, None] & (table >= 0)[:, None, :]
    direct = both & (numbers[:, :, None] < numbers[:, None, :])
    return _build(table, direct, names, counts, choice_sets, unranked, where)


def _of_pairs(
    rows: np.ndarray,
    pairs: np.ndarray,
    names: tuple[str, ...],
    counts: Any,
    where: Callable[[int], str],
) -> PartialOrders:
    """Make partial orders of pairs of items, each of a row."""
    num_rows = int(rows.max()) + 1
    mentioned = np.unique(np.column_stack([np.tile(rows, 2), pairs.T.ravel()]), axis=0)
    first = np.searchsorted(mentioned[:, 0], np.arange(num_rows))
    place = np.arange(len(mentioned)) - first[mentioned[:, 0]]
    table = np.full((num_rows, int(place.max()) + 1), -1)
    table[mentioned[:, 0], place] = mentioned[:, 1]
    keys = mentioned[:, 0] * len(names) + mentioned[:, 1]
    one, two = (place[np.searchsorted(keys, rows * len(names) + pairs[:, k])] for k in (0, 1))
    direct = np.zeros((*table.shape, table.shape[1]), bool)
    direct[rows, one, two] = True
    return _build(table, direct, names, counts, None, "not-offered", where)


def _build(
    table: np.ndarray,
    direct: np.ndarray,
    names: tuple[str, ...],
    counts: Any,
    choice_sets: Any,
    unlisted: str,
    where: Callable[[int], str],
) -> PartialOrders:
    """Check preferences, (rows, T, T), between the items of a table, and close and order them."""
    listed = table >= 0
    for row in np.flatnonzero(~listed.any(1))[:1]:
        raise RankingsError(f"{where(row)}: no item is listed")
    _check_listed(table, names, where)
    checked_counts = check_counts(counts, len(table), where)
    offered = check_choice_sets(choice_sets, table, names, where)
    above = _closure(direct)
    is_cycle = np.einsum("rii->ri", above).any(1)
    for row in np.flatnonzero(is_cycle)[:1]:
        cycle = " > ".join(names[table[row, k]] for k in _cycle(direct[row]))
        raise RankingsError(f"{where(row)}: the preferences contradict one another: {cycle}")
    # who has more items above cannot be above, so that their number orders the items
    number = np.where(listed, above.sum(1), table.shape[1])
    order = np.lexsort((np.where(listed, table, len(names)), number), axis=1)
    table = np.take_along_axis(np.where(listed, table, -1), order, axis=1)
    above = np.take_along_axis(above, order[:, :, None], axis=1)
    above = np.take_along_axis(above, order[:, None, :], axis=2)
    lengths = listed.sum(1)
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


def _closure(direct: np.ndarray) -> np.ndarray:
    """Return what follows from preferences, (rows, T, T), by Warshall's algorithm."""
    above = direct.copy()
    for k in range(above.shape[1]):
        above |= above[:, :, k, None] & above[:, None, k, :]
    return above


def _cycle(direct: np.ndarray) -> list[int]:
    """Return a shortest cycle of preferences, (T, T), with its first item again at the end."""
    best: list[int] = []
    for start in range(len(direct)):
        before, front = {}, [start]
        while front and start not in before:
            found = [(k, int(j)) for k in front for j in np.flatnonzero(direct[k])]
            front = []
            for k, j in found:
                if j not in before:
                    before[j] = k
                    front.append(j)
        if start not in before:
            continue
        path = [start, before[start]]
        while path[-1] != start:
            path.append(before[path[-1]])
        if not best or len(path) < len(best):
            best = path[::-1]
    return best


_TIED_RANKS = ("min", "dense", "average")


def _check_tied_ranks(table: np.ndarray, names: tuple[str, ...], ties: str | None) -> None:
    """Refuse a row whose ranks are not those of items that may be tied."""
    for row, ranks in enumerate(table):
        given = ranks[~np.isnan(ranks)]
        _, inverse, times = np.unique(given, return_inverse=True, return_counts=True)
        last = np.cumsum(times)
        right = {
            "min": last - times + 1,
            "dense": np.arange(len(times)) + 1,
            "average": last - (times - 1) / 2,
        }
        if any((right[way][inverse] == given).all() for way in _TIED_RANKS if ties in (None, way)):
            continue
        way = ties or "min"
        k = int(np.argmax(right[way][inverse] != given))
        name = names[np.flatnonzero(~np.isnan(ranks))[k]]
        ways = f"ties={ties!r}" if ties else "any way to number tied items"
        raise RankingsError(
            f"{row_place(row)}: item {name!r} has rank {given[k]:g} where {ways} has "
            f"{right[way][inverse][k]:g}; for scores say ties='any'"
        )


def _flat_buckets(buckets: Any) -> tuple[list[list], list[list[int]]]:
    """Return the items of each row in one list, and the buckets that they are in."""
    rows, levels = [], []
    for row, given in enumerate(buckets):
        if isinstance(given, str | bytes | set | dict) or not isinstance(given, Iterable):
            raise RankingsError(f"{row_place(row)}: {given!r} is not a list of buckets")
        items: list = []
        level: list[int] = []
        for place, bucket in enumerate(given):
            is_bucket = isinstance(bucket, list | tuple | set | frozenset | np.ndarray)
            entries = list(bucket) if is_bucket else [bucket]
            if isinstance(bucket, set | frozenset):
                entries.sort(key=str)
            if not entries:
                raise RankingsError(f"{row_place(row)}: bucket {place + 1} is empty")
            items += entries
            level += [place] * len(entries)
        rows.append(items)
        levels.append(level)
    return rows, levels


def _names_in(df: Any, column: str) -> list[str]:
    """Return the names in a column, none of which may be missing."""
    values = list(df[column])
    for line, value in enumerate(values):
        if is_missing(value) or not name_of(value):
            raise RankingsError(f"{row_place(line)}: the column {column!r} is empty")
    return [name_of(value) for value in values]


def _indices_in(names: tuple[str, ...], values: list[str]) -> np.ndarray:
    index = {name: k for k, name in enumerate(names)}
    for line, value in enumerate(values):
        if value not in index:
            raise RankingsError(f"{row_place(line)}: {value!r} is not one of the items")
    return np.array([index[value] for value in values])


def _counts_of_judges(rows: np.ndarray, counts: np.ndarray, ids: tuple[str, ...]) -> np.ndarray:
    """Return the count of each judge, which all lines of the judge must have."""
    first = np.unique(rows, return_index=True)[1]
    for line in np.flatnonzero(counts != counts[first][rows])[:1]:
        raise RankingsError(f"judge {ids[rows[line]]!r} has two counts")
    return counts[first]


def _check_listed(table: np.ndarray, names: tuple[str, ...], where: Callable[[int], str]) -> None:
    outside = table >= len(names)
    for row, place in np.argwhere(outside)[:1]:
        raise RankingsError(
            f"{where(row)}: item {table[row, place]} is outside 0..{len(names) - 1}"
        )
    ordered = np.sort(table, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    for row, place in np.argwhere(twice)[:1]:
        raise RankingsError(f"{where(row)}: item {names[ordered[row, place]]!r} is listed twice")
