"""The data container: rankings of n items, with counts, lists of any length, and choice sets."""

import operator
import re
import warnings
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

if TYPE_CHECKING:
    import pandas as pd

_INT32_MAX = np.iinfo(np.int32).max
_LARGEST_KEY = 2**62


class RankingsError(ValueError):
    """Invalid data. The message is one line that names the row, the item and what was expected."""


@jax.tree_util.register_pytree_node_class
class Rankings:
    """Rankings of ``num_items`` items, in rows with counts; immutable, and a JAX pytree.

    Rankings are made by :meth:`from_orderings`, :meth:`from_ranks`, :meth:`from_dataframe` or
    :meth:`from_preflib`. A row that lists t items is the top of an ordering of all n items. With
    choice sets it is the order, or the top of the order, of the items that were offered.

    - **orderings** - item indices, best first, padded with -1, int32 (rows, T).
    - **lengths** - number of items that each row lists, int32 (rows,).
    - **counts** - number of rankings that each row stands for, int32 (rows,).
    - **choice_sets** - which items were offered, bool (rows, n), or None.
    - **num_items**, **items** - n and the names of the items, in index order.
    - **num_rankings** - N, the sum of the counts; also ``len(rankings)``.

    Blanks around the names of items are dropped. Missing entries, NaN or masked, mean "not ranked"
    in ranks and at the end of an ordering; elsewhere they are refused.

    The arrays are the leaves of the pytree. The last three are its static part, so that N and n are
    known under ``jit``.

    .. doctest::

       >>> from numpyro_rankings import Rankings
       >>> r = Rankings.from_orderings(
       ...     [["c", "a"], ["b"]], items=["a", "b", "c", "d"], counts=[3, 1]
       ... )
       >>> r
       Rankings(4 of 4 items, 2 distinct rows, lengths 1-2)
       >>> r.orderings.tolist()
       [[2, 0], [1, -1]]
       >>> r.to_ranks()[0]
       array([ 2., nan,  1., nan])
    """

    __slots__ = (
        "choice_sets",
        "counts",
        "items",
        "lengths",
        "num_items",
        "num_rankings",
        "orderings",
    )

    orderings: Array
    lengths: Array
    counts: Array
    choice_sets: Array | None
    num_items: int
    items: tuple[str, ...]
    num_rankings: int

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError("use Rankings.from_orderings, from_ranks, from_dataframe or from_preflib")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Rankings are immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Rankings are immutable: {name!r} cannot be deleted")

    @classmethod
    def _make(cls, leaves: Sequence[Any], static: tuple) -> "Rankings":
        """Make an object without checks: the leaves may be tracers or other objects of JAX."""
        self = object.__new__(cls)
        names = ("orderings", "lengths", "counts", "choice_sets")
        for name, value in zip(names, leaves, strict=True):
            object.__setattr__(self, name, value)
        for name, value in zip(("num_items", "items", "num_rankings"), static, strict=True):
            object.__setattr__(self, name, value)
        return self

    def tree_flatten(self) -> tuple[tuple, tuple]:
        leaves = (self.orderings, self.lengths, self.counts, self.choice_sets)
        return leaves, (self.num_items, self.items, self.num_rankings)

    @classmethod
    def tree_unflatten(cls, static: tuple, leaves: Sequence[Any]) -> "Rankings":
        return cls._make(leaves, static)

    def __reduce__(self) -> tuple:
        leaves, static = self.tree_flatten()
        return _rebuild, (tuple(None if x is None else np.asarray(x) for x in leaves), static)

    # -- constructors --------------------------------------------------------------------------

    @classmethod
    def from_orderings(
        cls,
        orderings: Any,
        num_items: int | None = None,
        items: Sequence[Any] | None = None,
        counts: Any = None,
        choice_sets: Any = None,
        unranked: str = "below",
        entries: str | None = None,
    ) -> "Rankings":
        """Make rankings from lists of items, best first.

        :param orderings: a sequence or series of lists of indices (or of names, if ``items`` is
            given), or a 2-d array or data frame, whose rows end with -1 or missing entries where
            they are shorter.
        :param num_items: n; by default the number of ``items``.
        :param items: names of the items, in index order; by default "item 1", "item 2", …
        :param counts: number of rankings that each row stands for, positive whole numbers; by
            default 1.
        :param choice_sets: (rows, n) booleans, which items each judge was offered. By default all
            items were offered. The columns of a data frame are matched to the items by name.
        :param unranked: what it means that an item is not listed: ``"below"``, it ranks below those
            that are; or ``"not-offered"``, the choice set is the items that are listed.
        :param entries: what numbers in the lists are: ``"indices"``, or ``"names"`` if items have
            names such as 1, 2 or "1", "2". By default they are names if ``items`` are numbers, and
            if they can be nothing else; numbers that could be names or indices of other items are
            refused.
        :return: the rankings, with the rows as given.
        :raises RankingsError: naming the row (counted from 1) and the item.
        """
        if items is not None:
            items = _list_of_names(items)
        names = _item_names(items, num_items)
        numbers = None if items is None else _number_names(items, names, entries)
        table = _padded_table(orderings, names, _row, numbers)
        _check_unranked(unranked, choice_sets)
        if unranked == "not-offered":
            _check_table(table, names, _row)
            choice_sets = _listed_items(table, len(names))
        return build_rankings(table, names, counts, choice_sets)

    @classmethod
    def from_ranks(
        cls,
        ranks: Any,
        items: Sequence[Any] | None = None,
        counts: Any = None,
        unranked: str = "below",
        choice_sets: Any = None,
    ) -> "Rankings":
        """Make rankings from the rank that each judge gave to each item.

        Ranks that start at 0 are refused: a table in which each row has one 0 could be of either
        kind.

        :param ranks: (rows, n), an array or a data frame, 1 = best; missing or 0 for items that are
            not ranked. All columns are items.
        :param items: names of the items, in the order of the columns; by default the names of the
            columns of a data frame.
        :param counts: as in :meth:`from_orderings`.
        :param unranked: what it means that an item has no rank: ``"below"``, it ranks below those
            that have one; or ``"not-offered"``, the choice set is the items that have a rank.
        :param choice_sets: as in :meth:`from_orderings`, instead of ``unranked``.
        :return: the rankings, with the rows as given.
        :raises RankingsError: if the ranks of a row are not 1, 2, …, t.
        """
        columns = list(ranks.columns) if hasattr(ranks, "columns") else None
        table = _as_floats(ranks, columns)
        if table.ndim != 2:
            raise RankingsError(f"ranks must be a table (rows, items), got shape {table.shape}")
        names = _item_names(columns if items is None else items, table.shape[1])
        if columns is not None and items is not None:
            _check_same_order(columns, names)
        _check_starts_at_one(table, names)
        _check_unranked(unranked, choice_sets)
        ranked = ~np.isnan(table) & (table != 0)
        entries = (*np.nonzero(ranked), table[ranked])
        orderings = orderings_of_ranks(entries, len(table), names, _row)
        offered = ranked if unranked == "not-offered" else choice_sets
        return build_rankings(orderings, names, counts, offered)

    @classmethod
    def from_dataframe(
        cls,
        df: Any,
        judge: str,
        item: str,
        rank: str,
        items: Sequence[Any] | None = None,
        unranked: str = "below",
        count: str | None = None,
    ) -> "Rankings":
        """Make rankings from a long table, which has a line for each judge and ranked item.

        Blanks around the names of judges and items are dropped.

        :param df: a data frame with the three columns.
        :param judge: the column with the judges. Each judge becomes a row, in order of first
            appearance.
        :param item: the column with the names of the items.
        :param rank: the column with the ranks, 1 = best; missing for items that are not ranked.
        :param items: names of all items, in index order; by default those that appear, in order
            of first appearance.
        :param unranked: as in :meth:`from_ranks`; an item without a line of the judge is not
            ranked.
        :param count: the column with the number of rankings that a judge stands for, the same in
            all lines of the judge.
        :return: the rankings, one row for each judge.
        :raises RankingsError: naming the judge and the item.
        """
        from numpyro_rankings.data_frames import read_long

        return read_long(df, (judge, item, rank), items, unranked, count)

    @classmethod
    def from_preflib(cls, path: Any, unranked: str = "below") -> "Rankings":
        """Read rankings from a PrefLib file of strict orders, ``.soc`` or ``.soi``.

        :param path: the file; see :func:`numpyro_rankings.readers.read_preflib`.
        :param unranked: as in :meth:`from_orderings`.
        :return: the rankings, one row for each distinct order.
        :raises RankingsError: naming the file and the line.
        """
        from numpyro_rankings.readers.preflib import read_preflib

        _check_unranked(unranked)
        rankings = read_preflib(path)
        if unranked == "below":
            return rankings
        offered = _listed_items(np.asarray(rankings.orderings), rankings.num_items)
        (*leaves, _), static = rankings.tree_flatten()
        return cls._make((*leaves, jnp.asarray(offered)), static)

    def to_blt(self, path: Any, seats: int = 1, title: str = "") -> None:
        """Write a ``.blt`` file, which software that counts ranked ballots reads.

        :param path: the file to write.
        :param seats: number of candidates to elect.
        :param title: of the election.
        :raises RankingsError: if the rankings do not fit the format; then nothing is written.
        """
        from numpyro_rankings.readers.blt import write_blt

        write_blt(self, path, seats, title)

    # -- views ---------------------------------------------------------------------------------

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.orderings.shape[0]

    @property
    def row_index(self) -> Array:
        """The row of each of the N rankings, int32 (N,), in the order of :meth:`expand`."""
        if not self._is_traced():  # NumPy has nothing to compile
            return jnp.asarray(np.repeat(np.arange(self.num_rows, dtype=np.int32), self.counts))
        rows = jnp.arange(self.num_rows, dtype=jnp.int32)
        return jnp.repeat(rows, self.counts, total_repeat_length=self.num_rankings)

    def _is_traced(self) -> bool:
        return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(self))

    def __len__(self) -> int:
        return self.num_rankings

    def __repr__(self) -> str:
        size = f"{self.num_rankings} of {self.num_items} items"
        if self._is_traced() or not isinstance(self.lengths, jax.Array):
            return f"Rankings({size})"
        low, high = int(self.lengths.min()), int(self.lengths.max())
        lengths = f"lengths {low}-{high}" if low < high else f"length {low}"
        # the distinct rows are not counted, because that would need a sort
        rows = f"{self.num_rows} {'rows' if self.num_rows == len(self) else 'distinct rows'}"
        subset = ", choice sets" if self.choice_sets is not None else ""
        return f"Rankings({size}, {rows}, {lengths}{subset})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rankings):
            return NotImplemented
        (mine, static), (theirs, other_static) = self.tree_flatten(), other.tree_flatten()
        return static == other_static and all(
            one is two or np.array_equal(one, two) for one, two in zip(mine, theirs, strict=True)
        )

    def __hash__(self) -> int:
        return hash((self.num_items, self.items, self.num_rankings))

    def to_ranks(self) -> np.ndarray:
        """Return the rank of each item in each row.

        :return: (rows, n) floats, 1 = best, NaN = not ranked.
        """
        orderings = np.asarray(self.orderings)
        ranks = np.full((self.num_rows, self.num_items), np.nan)
        rows, places = np.nonzero(orderings >= 0)
        ranks[rows, orderings[rows, places]] = places + 1
        return ranks

    def to_dataframe(self, layout: str, count: str | None = None) -> "pd.DataFrame":
        """Return the rankings as a data frame, in a layout that the constructors read.

        - ``"ranks"``: a column for each item, with its rank or a missing entry, for
          :meth:`from_ranks`;
        - ``"orders"``: the columns "rank 1", "rank 2", … with the names of the items, for
          :meth:`from_orderings`;
        - ``"long"``: the columns "judge", "item" and "rank", with a line for each item that is
          ranked, for :meth:`from_dataframe`;
        - ``"cell"``: the column "order" with all items, such as ``Ann;Bob;``, for
          :func:`~numpyro_rankings.read_rankings`.

        Only ranks name the items that nobody lists: give ``items`` when the others are read. Choice
        sets must be the items that are ranked, which is read with ``unranked="not-offered"``.

        :param layout: ``"ranks"``, ``"orders"``, ``"long"`` or ``"cell"``.
        :param count: name of a column with the counts of the rows. By default there is none, and
            each of the N rankings is written, in the order of :meth:`expand`.
        :return: the table; the judges, or the rows, are numbered from 1.
        :raises RankingsError: if there are choice sets that the table cannot represent.

        .. doctest::

           >>> from numpyro_rankings import Rankings
           >>> r = Rankings.from_orderings([[1, 0], [2]], items=["tea", "milk", "water"])
           >>> r.to_dataframe("ranks").reset_index()
              judge   tea  milk  water
           0      1     2     1   <NA>
           1      2  <NA>  <NA>      1
           >>> Rankings.from_ranks(r.to_dataframe("ranks")) == r
           True
        """
        from numpyro_rankings.data_frames import write_frame

        return write_frame(self, layout, count)

    def expand(self) -> "Rankings":
        """Return one row for each of the N rankings, with each row repeated in place."""
        index = self.row_index
        if not self._is_traced():
            return self._take(np.asarray(index), np.ones(len(self), np.int32))
        (orderings, lengths, counts, offered), static = self.tree_flatten()
        leaves = (
            orderings[index],
            lengths[index],
            jnp.ones_like(counts, shape=index.shape),
            None if offered is None else offered[index],
        )
        return self._make(leaves, static)

    def unique(self) -> "Rankings":
        """Merge identical rows, in order of first occurrence, and add their counts."""
        return self.merged()[0]

    def merged(self) -> "tuple[Rankings, np.ndarray]":
        """Merge identical rows as :meth:`unique`, and say where each row went.

        :return: the rankings, and the new row of each old one, (rows,).
        """
        keys = _row_keys(np.asarray(self.orderings))
        if self.choice_sets is not None:
            offered = np.packbits(np.asarray(self.choice_sets), axis=1)
            keys = _row_keys(np.column_stack([keys, _row_keys(offered)]))
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        totals = np.bincount(inverse, weights=np.asarray(self.counts, float))
        order = np.argsort(first)
        new_row = np.empty_like(order)
        new_row[order] = np.arange(len(order))
        return self._take(first[order], totals[order]), new_row[inverse]

    def of_listed_items(self) -> "Rankings":
        """Drop the items that no ranking lists; the others keep their order.

        Under ``jit`` the listed items are not known, and all items stay.
        """
        if self._is_traced():
            return self
        orderings = np.asarray(self.orderings)
        listed = np.unique(orderings[orderings >= 0])
        if len(listed) == self.num_items:
            return self
        new_index = np.full(self.num_items + 1, -1, np.int32)  # the last one keeps the padding, -1
        new_index[listed] = np.arange(len(listed))
        offered = None if self.choice_sets is None else self.choice_sets[:, listed]
        with jax.ensure_compile_time_eval():  # otherwise these would be traced
            leaves = (jnp.asarray(new_index[orderings]), self.lengths, self.counts, offered)
        names = tuple(self.items[item] for item in listed)
        return self._make(leaves, (len(listed), names, self.num_rankings))

    def split(self, key: Array, fraction: float) -> tuple["Rankings", "Rankings"]:
        """Split the N rankings at random into two parts, each with its identical rows merged.

        Both parts keep the width T of the arrays, so that a model that was fitted to one can be
        applied to the other.

        :param key: a JAX random key.
        :param fraction: share of the first part, strictly between 0 and 1; it has
            ``round(fraction * N)`` rankings.
        :return: the two parts.
        """
        if not 0 < fraction < 1:
            raise RankingsError(f"fraction must be strictly between 0 and 1, got {fraction}")
        first = round(fraction * len(self))
        if not 0 < first < len(self):
            raise RankingsError(
                f"with fraction {fraction} of {len(self)} rankings, one of the two parts is empty"
            )
        merged = self.unique()
        shuffled = np.asarray(jax.random.permutation(key, merged.row_index))
        tables = (
            np.bincount(part, minlength=merged.num_rows)
            for part in (shuffled[:first], shuffled[first:])
        )
        one, two = (merged._take(np.flatnonzero(table), table[table > 0]) for table in tables)
        return one, two

    def _take(self, rows: np.ndarray, counts: np.ndarray) -> "Rankings":
        """Return some of the rows, with new counts."""
        leaves = (
            jnp.asarray(np.asarray(self.orderings)[rows]),
            jnp.asarray(np.asarray(self.lengths)[rows]),
            jnp.asarray(counts, jnp.int32),
            None if self.choice_sets is None else jnp.asarray(np.asarray(self.choice_sets)[rows]),
        )
        return self._make(leaves, (self.num_items, self.items, int(counts.sum())))


def _row(row: int) -> str:
    return f"row {row + 1}"


def build_rankings(
    orderings: Any,
    names: tuple[str, ...],
    counts: Any = None,
    choice_sets: Any = None,
    where: Callable[[int], str] = _row,
) -> Rankings:
    """Check the data and make rankings of them; all constructors and readers end here.

    :param names: names of the items, already checked.
    :param where: returns the name of a row in the user's data, for messages.
    """
    table = _padded_table(orderings, names, where)
    _check_table(table, names, where)
    lengths = (table >= 0).sum(1)
    checked_counts = _check_counts(counts, len(table), where)
    offered = _check_choice_sets(choice_sets, table, names, where)
    leaves = (
        jnp.asarray(table[:, : lengths.max()], jnp.int32),
        jnp.asarray(lengths, jnp.int32),
        jnp.asarray(checked_counts, jnp.int32),
        None if offered is None else jnp.asarray(offered),
    )
    static = (len(names), names, int(checked_counts.sum()))
    return Rankings.tree_unflatten(static, leaves)


def _row_keys(table: np.ndarray) -> np.ndarray:
    """Return a number for each row, the same for equal rows; entries are -1 or more.

    To sort these takes a tenth of the time of sorting the rows.
    """
    keys, size = np.zeros(len(table), np.int64), 1
    for column in table.T:
        base = int(column.max(initial=0)) + 2
        if size * base > _LARGEST_KEY:
            _, keys = np.unique(keys, return_inverse=True)
            size = int(keys.max(initial=0)) + 1
        keys = keys * base + (column.astype(np.int64) + 1)
        size *= base
    return np.unique(keys, return_inverse=True)[1]


def _rebuild(leaves: tuple, static: tuple) -> Rankings:
    return Rankings._make([None if x is None else jnp.asarray(x) for x in leaves], static)


# -- checks of whole arrays at once; messages name the first error ------------------------------


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, masked, or missing in pandas."""
    if value is np.ma.masked:  # whose comparisons are masked too
        return True
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # that of pandas has no truth value
        return True


def _as_array(values: Any, dtype: Any = None) -> np.ndarray:
    """Convert lists and arrays to an array, with NaN for numbers that are masked.

    NumPy takes what is below the mask of a masked array instead.
    """
    is_list = isinstance(values, list | tuple)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning: converting a masked element")
        if is_list and any(isinstance(x, np.ma.MaskedArray) for x in values):
            values = np.ma.array(values)
        if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
            has_numbers = values.dtype.kind in "iuf"
            values = np.ma.filled(values.astype(float), np.nan) if has_numbers else values.tolist()
        return np.asarray(values, dtype)


def _as_floats(ranks: Any, columns: Sequence[Any] | None) -> np.ndarray:
    """Convert a table of ranks to floats, with NaN for what is missing.

    :param columns: those of a data frame.
    """
    if columns is not None:
        dtypes = list(getattr(ranks, "dtypes", ()))
    else:
        dtypes = [getattr(ranks, "dtype", None)]
        if getattr(ranks, "ndim", 2) == 1 and getattr(dtypes[0], "kind", "") == "O":
            ranks = list(ranks)  # a series of lists
    for k, dtype in enumerate(dtypes):
        if getattr(dtype, "kind", "O") in "bcmM":
            which = "" if columns is None else f"column {columns[k]!r} of the "
            raise RankingsError(f"{which}ranks must be numbers, got {dtype}; all columns are items")
    try:
        if hasattr(ranks, "to_numpy") and hasattr(ranks, "iloc"):  # of pandas
            return ranks.to_numpy(dtype=float, na_value=np.nan)
        return _as_array(ranks, float)
    except (TypeError, ValueError):
        raise RankingsError(_no_numbers(ranks, columns)) from None


def _no_numbers(ranks: Any, columns: Sequence[Any] | None) -> str:
    """Return why a table of ranks is not one of numbers."""
    problem = "ranks must be a table of numbers, one row per ranking"
    try:
        rows = ranks.to_numpy() if hasattr(ranks, "to_numpy") else ranks
        cells = [(row, k, x) for row, values in enumerate(rows) for k, x in enumerate(values)]
    except TypeError:
        return problem
    for row, k, x in cells:
        try:
            float(np.nan if is_missing(x) else x)
        except (TypeError, ValueError):
            column = k + 1 if columns is None else repr(columns[k])
            return (
                f"{_row(row)}: column {column} has {shown(x)}, which is not a number; {problem}, "
                "and all columns are items"
            )
    return problem


def shown(value: Any) -> str:
    """Return the text of a value in a message, without NumPy's types."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def _check_same_order(columns: Sequence[Any], names: tuple[str, ...]) -> None:
    """Refuse names of the items that are the names of the columns in another order."""
    own = [name_of(column) for column in columns]
    if set(own) == set(names) and own != list(names):
        k = next(k for k, name in enumerate(names) if name != own[k])
        raise RankingsError(
            f"column {k + 1} of the table is {own[k]!r}, but items has {names[k]!r} there; leave "
            "out items, or give the table the columns in the order of items"
        )


def _check_starts_at_one(table: np.ndarray, names: tuple[str, ...]) -> None:
    """Refuse ranks that start at 0, and those that only look like them."""
    if not len(table) or not ((table == 0).sum(1) == 1).all():
        return
    ordered, lengths = np.sort(table, axis=1), (~np.isnan(table)).sum(1)  # NaN comes last
    places = np.arange(table.shape[1])
    if ((ordered == places) | (places >= lengths[:, None])).all():
        name = names[int(np.argmax(table[0] == 0))]
        raise RankingsError(
            f"row 1: item {name!r} has rank 0, and each row has one 0: if 0 is the best, write "
            "ranks + 1; if it means not ranked, write NaN instead"
        )


def orderings_of_ranks(
    entries: tuple[np.ndarray, np.ndarray, np.ndarray],
    num_rows: int,
    names: tuple[str, ...],
    where: Callable[[int], str],
) -> np.ndarray:
    """Check ranks, and convert them to orderings padded with -1, int32 (rows, T).

    :param entries: row, item and rank of all items that are ranked.
    :param where: as in :func:`build_rankings`.
    """
    rows, items, ranks = entries
    broken = ~((ranks >= 1) & (ranks == np.floor(ranks)) & (ranks < np.inf))
    if broken.any():
        k = int(np.argmax(broken))
        raise RankingsError(
            f"{where(rows[k])}: item {names[items[k]]!r} has rank {ranks[k]:g}; ranks are whole "
            "numbers from 1, and items that are not ranked have none"
        )
    lengths = np.bincount(rows, minlength=num_rows)
    table = np.full((num_rows, lengths.max(initial=0)), -1, np.int32)
    fits = ranks <= lengths[rows]
    table[rows[fits], ranks[fits].astype(np.intp) - 1] = items[fits]
    wrong = (table >= 0).sum(1) < lengths  # two have the same place, or one is beyond the last
    if wrong.any():
        row = int(np.argmax(wrong))
        own = np.flatnonzero(rows == row)
        raise RankingsError(f"{where(row)}: {_ranks_problem(items[own], ranks[own], names)}")
    return table


def _ranks_problem(items: np.ndarray, ranks: np.ndarray, names: tuple[str, ...]) -> str:
    """Return why the ranks of a row are not 1, 2, …"""
    order = np.lexsort((items, ranks))
    named = [names[items[k]] for k in order]
    place = next(k for k, rank in enumerate(ranks[order]) if rank != k + 1)
    rank = ranks[order[place]]
    if place > 0 and rank == ranks[order[place - 1]]:
        return (
            f"items {named[place - 1]!r} and {named[place]!r} are tied at rank {rank:g}; ties are "
            "not supported"
        )
    return (
        f"item {named[place]!r} has rank {rank:g} where {place + 1} was expected; the ranks of a "
        "row are 1, 2, 3, … without gaps"
    )


def _check_unranked(unranked: str, choice_sets: Any = None) -> None:
    """Check the argument that says what it means that an item is not ranked."""
    if unranked not in ("below", "not-offered"):
        raise RankingsError(f"unranked is 'below' or 'not-offered', not {unranked!r}")
    if unranked == "not-offered" and choice_sets is not None:
        raise RankingsError("choice_sets say what was offered; leave out unranked")


def _listed_items(table: np.ndarray, num_items: int) -> np.ndarray:
    """Return which items each row lists, bool (rows, n)."""
    listed = np.zeros((len(table), num_items), bool)
    rows, places = np.nonzero(table >= 0)
    listed[rows, table[rows, places].astype(np.intp)] = True
    return listed


def _list_of_names(items: Any) -> list:
    """Return the names of the items as given, which may be numbers."""
    if isinstance(items, str | bytes):
        raise RankingsError(f"items must be a list of names, got {items!r}")
    return list(items)


def name_of(item: Any) -> str:
    """Return the text of the name of an item, without blanks around it."""
    if isinstance(item, float | np.floating) and float(item).is_integer():
        return str(int(item))  # in data frames whole numbers are floats where some are missing
    return str(item).strip()


def _item_names(items: Sequence[Any] | None, num_items: int | None = None) -> tuple[str, ...]:
    if num_items is not None:
        try:
            num_items = operator.index(num_items)
        except TypeError:
            raise RankingsError(f"num_items must be a whole number, got {num_items!r}") from None
    if items is not None:
        given = _list_of_names(items)
    elif num_items is not None:
        given = [f"item {i + 1}" for i in range(num_items)]
    else:
        raise RankingsError("num_items or the names of the items are needed")
    if num_items is not None and len(given) != num_items:
        raise RankingsError(f"there are {len(given)} item names for {num_items} items")
    if len(given) < 2:
        raise RankingsError(f"a ranking needs at least 2 items, got {len(given)}")
    seen: dict[str, Any] = {}
    for i, item in enumerate(given):
        if is_missing(item):
            raise RankingsError(f"the name of item {i} is missing")
        name = name_of(item)
        if not name:
            raise RankingsError(f"the name of item {i} is empty")
        if name in seen:
            also = "" if item == seen[name] else f", written {shown(seen[name])} and {shown(item)}"
            raise RankingsError(f"two items have the name {name!r}{also}")
        seen[name] = item
    return tuple(seen)


class _Numbers(NamedTuple):
    """The numbers that name items.

    - **item_of** - index of the item that a number names.
    - **all_are_names** - whether numbers in orderings are names for sure.
    - **is_said** - whether the user said so, so that -1 is no padding if it is a name.
    """

    item_of: dict[float, int]
    all_are_names: bool
    is_said: bool


def _number_names(
    items: Sequence[Any], names: tuple[str, ...], entries: str | None
) -> _Numbers | None:
    """Return which names of items are numbers, None if numbers cannot be names."""
    if entries not in (None, "names", "indices"):
        raise RankingsError(f"entries is 'names' or 'indices', not {entries!r}")
    if entries == "indices":
        return None
    index: dict[float, int] = {}
    given_as_number = False
    for k, (item, name) in enumerate(zip(items, names, strict=True)):
        if _is_number(item):
            given_as_number = True
            index[item] = k
        elif re.fullmatch(r"0|-?[1-9][0-9]{0,14}", name, re.ASCII):
            index[int(name)] = k
    is_sure = given_as_number or entries == "names"
    return _Numbers(index, is_sure, entries == "names") if index or is_sure else None


def _is_number(value: Any) -> bool:
    numbers = int | float | np.integer | np.floating
    return isinstance(value, numbers) and not isinstance(value, bool)


def _padded_table(
    orderings: Any,
    names: tuple[str, ...],
    where: Callable[[int], str],
    numbers: _Numbers | None = None,
) -> np.ndarray:
    """Convert the orderings to a table of whole numbers, not yet checked against the items.

    :param numbers: the numbers that name items; without them all numbers are indices.
    """
    is_text = None  # of entries that are names, already converted to indices
    if not hasattr(orderings, "shape"):
        table, is_text = _table_of_lists(orderings, names, where)
    else:
        table = _as_array(orderings)
        if table.ndim == 1 and table.dtype == object:  # a series of lists
            table, is_text = _table_of_lists(list(table), names, where)
        elif table.ndim != 2:
            raise RankingsError(f"orderings must be a table (rows, T), got shape {table.shape}")
        elif table.dtype.kind in "OSU":
            table, is_text = _table_of_lists(table.tolist(), names, where)
    if table.shape[0] == 0:
        raise RankingsError("there are no rankings")
    if table.shape[1] == 0:
        raise RankingsError(f"{where(0)}: an empty ranking")
    if table.dtype.kind not in "iuf":
        raise RankingsError(f"orderings must be item indices, got dtype {table.dtype}")
    is_end = np.zeros(table.shape, bool)
    if table.dtype.kind == "f":
        is_end = np.logical_and.accumulate(np.isnan(table)[:, ::-1], axis=1)[:, ::-1]
        table = np.where(is_end, -1.0, table)  # missing at the end of a row
    if numbers is not None:
        if -1 in numbers.item_of and not numbers.is_said and (table[~is_end] == -1).any():
            row, place = np.argwhere((table == -1) & ~is_end)[0]
            raise RankingsError(
                f"{where(row)}: -1 at place {place + 1} is an item or the end of the row; say "
                "entries='names' and end rows with NaN, or leave out items"
            )
        is_number = ~is_end & ((table != -1) | (-1 in numbers.item_of))
        if is_text is not None:
            is_number &= ~is_text
        table = _read_numbers(table, is_number, names, numbers, where)
    if table.dtype.kind == "f":
        broken = ~np.isfinite(table) | (table != np.floor(table))
        if broken.any():
            row, place = np.argwhere(broken)[0]
            if np.isnan(table[row, place]):
                raise RankingsError(
                    f"{where(row)}: nan at place {place + 1}, which is missing; only the end of a "
                    "row can be"
                )
            raise RankingsError(
                f"{where(row)}: {table[row, place]} at place {place + 1} is not an item; expected "
                f"a whole number 0..{len(names) - 1}"
            )
    return table


def _read_numbers(
    table: np.ndarray,
    is_number: np.ndarray,
    names: tuple[str, ...],
    numbers: _Numbers,
    where: Callable[[int], str],
) -> np.ndarray:
    """Replace numbers that are names of items by indices, where they can be nothing else."""
    values, inverse = np.unique(table[is_number], return_inverse=True)
    as_names = np.array([numbers.item_of.get(value, -1) for value in values.tolist()], np.int64)
    unknown = as_names < 0
    if unknown.any():
        if not numbers.all_are_names:
            return table  # indices, or nothing, which is found next
        k = int(np.argmax(unknown[inverse]))
        row, place = np.argwhere(is_number)[k]
        raise RankingsError(
            f"{where(row)}: {table[row, place]:g} at place {place + 1} is not an item; expected "
            f"one of the names {_some(names)}, or say entries='indices'"
        )
    if not numbers.all_are_names:
        can_be_indices = ((values >= 0) & (values < len(names))).all()
        differs = (as_names != values)[inverse]
        if can_be_indices and differs.any():
            row, place = np.argwhere(is_number)[int(np.argmax(differs))]
            value = int(table[row, place])
            raise RankingsError(
                f"{where(row)}: {value} at place {place + 1} is item {str(value)!r} if it is a "
                f"name, and item {names[value]!r} if it is a 0-based index; say which by "
                "entries='names' or entries='indices'"
            )
    table = table.copy()
    table[is_number] = as_names[inverse]
    return table


def _some(names: Sequence[str]) -> str:
    """Return the first names, for messages."""
    return ", ".join(names if len(names) <= 10 else [*names[:10], "…"])


def _without_missing_end(entries: list) -> list:
    """Drop what is missing at the end of a list, such as the empty cells of a data frame."""
    while entries and not isinstance(entries[-1], str | int) and is_missing(entries[-1]):
        entries.pop()
    return entries


def _table_of_lists(
    orderings: Any, names: tuple[str, ...], where: Callable[[int], str]
) -> tuple[np.ndarray, np.ndarray]:
    """Convert a list of lists of indices or names to a table padded with -1.

    :return: the table, with NaN as padding, and which of its entries were names.
    """
    try:
        given = list(orderings)
    except TypeError:
        raise RankingsError(
            f"orderings must be a list of rankings or a 2-d array, got {type(orderings).__name__}"
        ) from None
    rows: list[list] = []
    for row in given:
        values = row.tolist() if hasattr(row, "tolist") else row
        unordered = isinstance(values, str | bytes | set | frozenset | dict)
        if unordered or not hasattr(values, "__iter__"):
            raise RankingsError(f"{where(len(rows))}: {values!r} is not a list of items")
        rows.append(_without_missing_end(list(values)))
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    entries = list(chain.from_iterable(rows))
    kinds = set(map(type, entries))

    def refuse(unfit: Callable[[Any], bool], expected: str) -> None:
        index = next(i for i, entry in enumerate(entries) if unfit(entry))
        row = int(np.searchsorted(np.cumsum(lengths), index, side="right"))
        place = index - int(lengths[:row].sum()) + 1
        raise RankingsError(
            f"{where(row)}: {entries[index]!r} at place {place} is not an item; expected {expected}"
        )

    numbers = (int, float, np.integer, np.floating)
    strange = {k for k in kinds if not issubclass(k, (*numbers, str)) or issubclass(k, bool)}
    if strange:
        refuse(lambda entry: type(entry) in strange, "item indices or names")
    is_place = np.arange(lengths.max(initial=0)) < lengths[:, None]
    is_text = np.zeros(is_place.shape, bool)
    if any(issubclass(kind, str) for kind in kinds):
        texts = [isinstance(entry, str) for entry in entries]
        is_text[is_place] = texts
        index = {name: i for i, name in enumerate(names)}
        found = {
            entry: index.get(entry.strip()) for entry in set(entries) if isinstance(entry, str)
        }
        if None in found.values():
            refuse(
                lambda entry: isinstance(entry, str) and found[entry] is None,
                f"one of {_some(names)}",
            )
        entries = [
            found[entry] if text else entry for entry, text in zip(entries, texts, strict=True)
        ]
    table = np.full(is_place.shape, np.nan)
    table[is_place] = entries
    return table, is_text


def _check_table(table: np.ndarray, names: tuple[str, ...], where: Callable[[int], str]) -> None:
    num_items = len(names)
    outside = (table < -1) | (table >= num_items)
    if outside.any():
        row, place = np.argwhere(outside)[0]
        raise RankingsError(
            f"{where(row)}: item {table[row, place]:.0f} at place {place + 1} is outside "
            f"0..{num_items - 1} (-1 pads the end of a row)"
        )
    listed = table >= 0
    empty = ~listed.any(1)
    if empty.any():
        raise RankingsError(f"{where(int(np.argmax(empty)))}: an empty ranking")
    holes = listed[:, 1:] & ~listed[:, :-1]
    if holes.any():
        row, place = np.argwhere(holes)[0]
        raise RankingsError(
            f"{where(row)}: place {place + 1} is empty (-1), but place {place + 2} has item "
            f"{names[int(table[row, place + 1])]!r}; -1 is allowed at the end of a row only"
        )
    ordered = np.sort(table, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        row, place = np.argwhere(twice)[0]
        name = names[int(ordered[row, place])]
        raise RankingsError(f"{where(row)}: item {name!r} is listed twice")


def _check_counts(counts: Any, rows: int, where: Callable[[int], str]) -> np.ndarray:
    if counts is None:
        return np.ones(rows, np.int64)
    array = _as_array(counts)
    if array.dtype == object and all(is_missing(x) or _is_number(x) for x in array.flat):
        array = np.array([np.nan if is_missing(x) else x for x in array.flat], float)
    if array.shape != (rows,):
        raise RankingsError(
            f"counts must have one entry for each of the {rows} rows, got shape {array.shape}"
        )
    if array.dtype.kind not in "iuf":
        raise RankingsError(f"counts must be whole numbers, got dtype {array.dtype}")
    broken = ~np.isfinite(array) | (array != np.floor(array)) | (array < 1)
    if broken.any():
        row = int(np.argmax(broken))
        raise RankingsError(f"{where(row)}: count {array[row]} is not a positive whole number")
    if array.sum(dtype=float) > _INT32_MAX:
        raise RankingsError(
            f"{where(int(np.argmax(array)))}: with count {array.max():.0f} the counts sum to more "
            f"than {_INT32_MAX}"
        )
    return array.astype(np.int64)


def _check_choice_sets(
    choice_sets: Any, table: np.ndarray, names: tuple[str, ...], where: Callable[[int], str]
) -> np.ndarray | None:
    if choice_sets is None:
        return None
    shape = (len(table), len(names))
    if hasattr(choice_sets, "columns"):
        choice_sets = _in_order_of_items(choice_sets, names)
    try:
        offered = _as_array(choice_sets)
    except ValueError:
        raise RankingsError(f"choice_sets must be booleans of shape {shape}") from None
    if offered.shape == shape and offered.dtype == object:
        for row, item in np.ndindex(shape):
            if is_missing(offered[row, item]):
                raise RankingsError(
                    f"{where(row)}: choice_sets has no entry for item {names[item]!r}; expected "
                    "True or False"
                )
        if all(isinstance(x, bool | np.bool_) for x in offered.flat):
            offered = offered.astype(bool)
    if offered.shape != shape or offered.dtype != bool:
        raise RankingsError(
            f"choice_sets must be booleans of shape {shape}, got {offered.dtype} of shape "
            f"{offered.shape}"
        )
    listed = table >= 0
    items = np.where(listed, table, 0).astype(np.int64)
    missing = listed & ~np.take_along_axis(offered, items, axis=1)
    if missing.any():
        row, place = np.argwhere(missing)[0]
        name = names[items[row, place]]
        raise RankingsError(f"{where(row)}: item {name!r} is listed but not in the choice set")
    return offered


def _in_order_of_items(choice_sets: Any, names: tuple[str, ...]) -> Any:
    """Return the columns of a data frame of choice sets in the order of the items."""
    columns = [name_of(column) for column in choice_sets.columns]
    if columns == [str(k) for k in range(len(names))] or len(columns) != len(names):
        return choice_sets.to_numpy()  # not named, or of a shape that is refused
    if set(columns) != set(names):
        name = next(column for column in columns if column not in names)
        raise RankingsError(
            f"choice_sets has a column {name!r}, which is not an item; expected {_some(names)}"
        )
    return choice_sets.to_numpy()[:, [columns.index(name) for name in names]]


def check_rankings(rankings: Any) -> None:
    """Refuse an argument that is not a :class:`Rankings`."""
    if not isinstance(rankings, Rankings):
        raise TypeError(
            f"rankings must be a Rankings, got {type(rankings).__name__}; make it with "
            "Rankings.from_orderings, from_ranks, from_dataframe or from_preflib"
        )


def num_stages(rankings: Rankings) -> int:
    """Return T, the number of stages: the length of the longest list, but at most n - 1."""
    return min(rankings.orderings.shape[1], rankings.num_items - 1)
