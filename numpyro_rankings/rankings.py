"""The data container: rankings of n items, with counts, lists of any length, and choice sets."""

import operator
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

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
        items: Sequence[str] | None = None,
        counts: Any = None,
        choice_sets: Any = None,
    ) -> "Rankings":
        """Make rankings from lists of items, best first.

        :param orderings: a sequence of lists of 0-based indices (or of names, if ``items`` is
            given), or a 2-d array whose rows are padded with -1 at their end.
        :param num_items: n; by default the number of ``items``.
        :param items: names of the items, in index order; by default "item 1", "item 2", …
        :param counts: number of rankings that each row stands for, positive whole numbers; by
            default 1.
        :param choice_sets: (rows, n) booleans, which items each judge was offered. By default all
            items were offered, and items that are not listed rank below the listed ones.
        :return: the rankings, with the rows as given.
        :raises RankingsError: naming the row (counted from 1) and the item.
        """
        names = _item_names(items, num_items)
        return build_rankings(orderings, names, counts, choice_sets)

    @classmethod
    def from_ranks(
        cls,
        ranks: Any,
        items: Sequence[str] | None = None,
        counts: Any = None,
        unranked: str = "below",
        choice_sets: Any = None,
    ) -> "Rankings":
        """Make rankings from the rank that each judge gave to each item.

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
        if hasattr(ranks, "columns") and items is None:
            items = [str(name) for name in ranks.columns]
        try:
            table = _as_floats(ranks)
        except (TypeError, ValueError):
            raise RankingsError("ranks must be a table of numbers, one row per ranking") from None
        if table.ndim != 2:
            raise RankingsError(f"ranks must be a table (rows, items), got shape {table.shape}")
        names = _item_names(items, table.shape[1])
        offered = _offered(table, unranked, choice_sets)
        return cls._from_ranks(table, names, counts, offered)

    @classmethod
    def _from_ranks(
        cls,
        table: np.ndarray,
        names: tuple[str, ...],
        counts: Any = None,
        choice_sets: Any = None,
        where: Callable[[int], str] = lambda row: f"row {row + 1}",
    ) -> "Rankings":
        """Check ranks, and convert them to orderings; ``where`` is as in build_rankings."""
        table = np.where(np.isnan(table), 0.0, table)
        broken = (table < 0) | (table != np.floor(table)) | ~np.isfinite(table)
        if broken.any():
            row, item = np.argwhere(broken)[0]
            raise RankingsError(
                f"{where(row)}: item {names[item]!r} has rank {table[row, item]:g}; ranks are "
                "whole numbers from 1, with NaN or 0 for items that are not ranked"
            )
        order = np.argsort(np.where(table > 0, table, np.inf), axis=1, kind="stable")
        ordered = np.take_along_axis(table, order, axis=1)
        places = np.arange(len(names))
        expected = np.where(places < (table > 0).sum(1)[:, None], places + 1, 0)
        wrong = ordered != expected
        if wrong.any():
            row, place = np.argwhere(wrong)[0]
            rank, name = ordered[row, place], names[order[row, place]]
            if place > 0 and rank == ordered[row, place - 1]:
                other = names[order[row, place - 1]]
                raise RankingsError(
                    f"{where(row)}: items {other!r} and {name!r} are tied at rank {rank:g}; ties "
                    "are not supported"
                )
            raise RankingsError(
                f"{where(row)}: item {name!r} has rank {rank:g} where {place + 1} was expected; "
                "the ranks of a row are 1, 2, 3, … without gaps"
            )
        orderings = np.where(expected > 0, order, -1)
        return build_rankings(orderings, names, counts, choice_sets, where=where)

    @classmethod
    def from_dataframe(
        cls,
        df: Any,
        judge: str,
        item: str,
        rank: str,
        items: Sequence[str] | None = None,
        unranked: str = "below",
    ) -> "Rankings":
        """Make rankings from a long table, which has a line for each judge and ranked item.

        :param df: a data frame with the three columns.
        :param judge: the column with the judges. Each judge becomes a row, in order of first
            appearance.
        :param item: the column with the names of the items.
        :param rank: the column with the ranks, 1 = best; missing or 0 for items that are not
            ranked.
        :param items: names of all items, in index order; by default those that appear, in order
            of first appearance.
        :param unranked: as in :meth:`from_ranks`; an item without a line of the judge is not
            ranked.
        :return: the rankings, one row for each judge.
        :raises RankingsError: naming the judge and the item.
        """
        for column in (judge, item, rank):
            if column not in df:
                raise RankingsError(f"the table has no column {column!r}")
        lines = list(zip(list(df[judge]), list(df[item]), list(df[rank]), strict=True))
        if not lines:
            raise RankingsError("there are no rankings")
        judge_rows: dict[Any, int] = {}
        names = {} if items is None else {name: i for i, name in enumerate(_item_names(items))}
        entries: dict[tuple[int, int], float] = {}
        for line, (who, what, value) in enumerate(lines, start=1):
            for column, field in ((judge, who), (item, what)):
                if _is_missing(field):
                    raise RankingsError(f"line {line} of the table has no {column!r}")
            what = str(what)
            if items is not None and what not in names:
                raise RankingsError(f"judge {who!r}: there is no item {what!r} in items")
            cell = (
                judge_rows.setdefault(who, len(judge_rows)),
                names.setdefault(what, len(names)),
            )
            if cell in entries:
                raise RankingsError(f"judge {who!r}: item {what!r} is ranked twice")
            try:
                entries[cell] = 0.0 if _is_missing(value) else float(value)
            except (TypeError, ValueError):
                raise RankingsError(
                    f"judge {who!r}: item {what!r} has rank {value!r}, which is not a number"
                ) from None
        table = np.zeros((len(judge_rows), len(names)))
        rows, columns = np.array(list(entries)).T
        table[rows, columns] = list(entries.values())
        judges = list(judge_rows)
        return cls._from_ranks(
            table,
            _item_names(tuple(names)),
            choice_sets=_offered(table, unranked, None),
            where=lambda row: f"judge {judges[row]!r}",
        )

    @classmethod
    def from_preflib(cls, path: Any) -> "Rankings":
        """Read rankings from a PrefLib file of strict orders, ``.soc`` or ``.soi``.

        :param path: the file; see :func:`numpyro_rankings.readers.read_preflib`.
        :return: the rankings, one row for each distinct order.
        :raises RankingsError: naming the file and the line.
        """
        from numpyro_rankings.readers.preflib import read_preflib

        return read_preflib(path)

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


def build_rankings(
    orderings: Any,
    names: tuple[str, ...],
    counts: Any = None,
    choice_sets: Any = None,
    where: Callable[[int], str] = lambda row: f"row {row + 1}",
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


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or missing in pandas (which has no truth value)."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def _as_floats(table: Any) -> np.ndarray:
    """Convert an array or a data frame to floats, with NaN for what is missing."""
    if hasattr(table, "columns"):  # of pandas, whose missing values numpy does not know
        return table.to_numpy(dtype=float, na_value=np.nan)
    return np.asarray(table, dtype=float)


def _offered(ranks: np.ndarray, unranked: str, choice_sets: Any) -> Any:
    """Return the choice sets of judges by what it means that an item has no rank."""
    if unranked not in ("below", "not-offered"):
        raise RankingsError(f"unranked is 'below' or 'not-offered', not {unranked!r}")
    if unranked == "below":
        return choice_sets
    if choice_sets is not None:
        raise RankingsError("choice_sets say what was offered; leave out unranked")
    return ranks > 0


def _item_names(items: Sequence[str] | None, num_items: int | None = None) -> tuple[str, ...]:
    if num_items is not None:
        try:
            num_items = operator.index(num_items)
        except TypeError:
            raise RankingsError(f"num_items must be a whole number, got {num_items!r}") from None
    if items is not None:
        names = tuple(str(name) for name in items)
    elif num_items is not None:
        names = tuple(f"item {i + 1}" for i in range(num_items))
    else:
        raise RankingsError("num_items or the names of the items are needed")
    if num_items is not None and len(names) != num_items:
        raise RankingsError(f"there are {len(names)} item names for {num_items} items")
    if len(names) < 2:
        raise RankingsError(f"a ranking needs at least 2 items, got {len(names)}")
    seen: set[str] = set()
    for i, name in enumerate(names):
        if not name.strip():
            raise RankingsError(f"the name of item {i} is empty")
        if name in seen:
            raise RankingsError(f"two items have the name {name!r}")
        seen.add(name)
    return names


def _padded_table(
    orderings: Any, names: tuple[str, ...], where: Callable[[int], str]
) -> np.ndarray:
    """Convert the orderings to a table of whole numbers, not yet checked against the items."""
    if hasattr(orderings, "shape"):
        table = np.asarray(orderings)
        if table.ndim != 2:
            raise RankingsError(f"orderings must be a table (rows, T), got shape {table.shape}")
        if table.dtype.kind in "OSU":
            table = _table_of_lists(table.tolist(), names, where)
    else:
        table = _table_of_lists(orderings, names, where)
    if table.shape[0] == 0:
        raise RankingsError("there are no rankings")
    if table.shape[1] == 0:
        raise RankingsError(f"{where(0)}: an empty ranking")
    if table.dtype.kind not in "iuf":
        raise RankingsError(f"orderings must be item indices, got dtype {table.dtype}")
    if table.dtype.kind == "f":
        is_end = np.logical_and.accumulate(np.isnan(table)[:, ::-1], axis=1)[:, ::-1]
        table = np.where(is_end, -1.0, table)  # missing at the end of a row
        broken = ~np.isfinite(table) | (table != np.floor(table))
        if broken.any():
            row, place = np.argwhere(broken)[0]
            raise RankingsError(
                f"{where(row)}: {table[row, place]} at place {place + 1} is not an item; expected "
                f"a whole number 0..{len(names) - 1}"
            )
    return table


def _without_missing_end(entries: list) -> list:
    """Drop what is missing at the end of a list, such as the empty cells of a data frame."""
    while entries and not isinstance(entries[-1], str | int) and _is_missing(entries[-1]):
        entries.pop()
    return entries


def _table_of_lists(
    orderings: Any, names: tuple[str, ...], where: Callable[[int], str]
) -> np.ndarray:
    """Convert a list of lists of indices or names to a table padded with -1."""
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
    if any(issubclass(kind, str) for kind in kinds):
        index = {name: i for i, name in enumerate(names)}
        known = index if len(names) <= 10 else list(names[:10]) + ["…"]
        if not all(entry in index for entry in entries if isinstance(entry, str)):
            refuse(
                lambda entry: isinstance(entry, str) and entry not in index,
                "one of " + ", ".join(known),
            )
        entries = [index[entry] if isinstance(entry, str) else entry for entry in entries]
    table = np.full((len(rows), lengths.max(initial=0)), -1.0)
    table[np.arange(table.shape[1]) < lengths[:, None]] = entries
    return table


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
    array = np.asarray(counts)
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
            f"{where(int(np.argmax(array)))}: with count {array.max()} the counts sum to more "
            f"than {_INT32_MAX}"
        )
    return array.astype(np.int64)


def _check_choice_sets(
    choice_sets: Any, table: np.ndarray, names: tuple[str, ...], where: Callable[[int], str]
) -> np.ndarray | None:
    if choice_sets is None:
        return None
    shape = (len(table), len(names))
    try:
        offered = np.asarray(choice_sets)
    except ValueError:
        raise RankingsError(f"choice_sets must be booleans of shape {shape}") from None
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
