"""The data container: rankings of n items, with counts, lists of any length, and choice sets."""

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.rankings.names import (
    RankingsError,
    as_array,
    is_missing,
    is_number,
    item_names,
    list_of_names,
    name_of,
    names_shown,
    number_names,
    row_place,
)
from numpyro_rankings.rankings.orderings import check_table, listed_items, padded_table, row_keys
from numpyro_rankings.rankings.ranks import (
    as_floats,
    check_same_order,
    check_starts_at_one,
    orderings_of_ranks,
)
from numpyro_rankings.rankings.rows import Rows

if TYPE_CHECKING:
    import pandas as pd

_INT32_MAX = np.iinfo(np.int32).max
# Readers and writers, which are built on the container, so that it imports none of them. They are
# named as in a package's entry points.
_FORMATS = {
    "read long table": "numpyro_rankings.readers.frames:read_long",
    "write table": "numpyro_rankings.readers.writing:write_frame",
    "read .soc, .soi": "numpyro_rankings.readers.preflib:read_preflib",
    "write .blt": "numpyro_rankings.readers.blt:write_blt",
    "read table of pairs": "numpyro_rankings.readers.frames:read_pairs",
    "read comparisons": "numpyro_rankings.readers.frames:read_comparisons",
    "read table of games": "numpyro_rankings.readers.frames:read_games",
    "read .toc, .toi, .cat": "numpyro_rankings.readers.tied_orders:read_preflib_buckets",
}


def load_format(name: str) -> Callable[..., Any]:
    """Return the function that reads or writes a format."""
    module, _, function = _FORMATS[name].partition(":")
    return getattr(import_module(module), function)


@jax.tree_util.register_pytree_node_class
class Rankings(Rows):
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

    __slots__ = ("choice_sets", "lengths", "orderings")
    are_partial = False
    kind = "rankings"
    _leaves: ClassVar[tuple[str, ...]] = ("orderings", "lengths", "counts", "choice_sets")
    _static: ClassVar[tuple[str, ...]] = ("num_items", "items", "num_rankings")

    orderings: Array
    lengths: Array
    choice_sets: Array | None

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError("use Rankings.from_orderings, from_ranks, from_dataframe or from_preflib")

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
            items = list_of_names(items)
        names = item_names(items, num_items)
        numbers = None if items is None else number_names(items, names, entries)
        table = padded_table(orderings, names, row_place, numbers)
        check_unranked(unranked, choice_sets)
        if unranked == "not-offered":
            check_table(table, names, row_place)
            choice_sets = listed_items(table, len(names))
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

        Ranks that start at 0 are refused, and those that look like them: if each row has the ranks
        0, 1, …, t - 1, a 0 can be the best or mean that an item is not ranked.

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
        table = as_floats(ranks, columns)
        if table.ndim != 2:
            raise RankingsError(f"ranks must be a table (rows, items), got shape {table.shape}")
        names = item_names(columns if items is None else items, table.shape[1])
        if columns is not None and items is not None:
            check_same_order(columns, names)
        check_starts_at_one(table, names)
        check_unranked(unranked, choice_sets)
        ranked = ~np.isnan(table) & (table != 0)
        entries = (*np.nonzero(ranked), table[ranked])
        orderings = orderings_of_ranks(entries, len(table), names, row_place)
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
        return load_format("read long table")(df, (judge, item, rank), items, unranked, count)

    @classmethod
    def from_preflib(cls, path: Any, unranked: str = "below") -> "Rankings":
        """Read rankings from a PrefLib file of strict orders, ``.soc`` or ``.soi``.

        :meth:`PartialOrders.from_preflib` reads orders with ties, too.

        :param path: the file; see :func:`numpyro_rankings.readers.read_preflib`.
        :param unranked: as in :meth:`from_orderings`.
        :return: the rankings, one row for each distinct order.
        :raises RankingsError: naming the file and the line.
        """
        check_unranked(unranked)
        rankings = load_format("read .soc, .soi")(path)
        if unranked == "below":
            return rankings
        offered = listed_items(np.asarray(rankings.orderings), rankings.num_items)
        (*leaves, _), static = rankings.tree_flatten()
        return cls._make((*leaves, jnp.asarray(offered)), static)

    def to_blt(self, path: Any, seats: int = 1, title: str = "") -> None:
        """Write a ``.blt`` file, which software that counts ranked ballots reads.

        :param path: the file to write.
        :param seats: number of candidates to elect.
        :param title: of the election.
        :raises RankingsError: if the rankings do not fit the format; then nothing is written.
        """
        load_format("write .blt")(self, path, seats, title)

    # -- views ---------------------------------------------------------------------------------

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
        return load_format("write table")(self, layout, count)

    def _keys(self) -> np.ndarray:
        keys = row_keys(np.asarray(self.orderings))
        if self.choice_sets is None:
            return keys
        offered = np.packbits(np.asarray(self.choice_sets), axis=1)
        return row_keys(np.column_stack([keys, row_keys(offered)]))

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
        (_, *others, _), (*kind, _, _, size) = self.tree_flatten()
        with jax.ensure_compile_time_eval():  # otherwise these would be traced
            leaves = (jnp.asarray(new_index[orderings]), *others, offered)
        names = tuple(self.items[item] for item in listed)
        return self._make(leaves, (*kind, len(listed), names, size))

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


def build_rankings(
    orderings: Any,
    names: tuple[str, ...],
    counts: Any = None,
    choice_sets: Any = None,
    where: Callable[[int], str] = row_place,
) -> Rankings:
    """Check the data and make rankings of them; all constructors and readers end here.

    Messages call a row of the user's data ``where(row)``.
    """
    table = padded_table(orderings, names, where)
    check_table(table, names, where)
    lengths = (table >= 0).sum(1)
    checked_counts = check_counts(counts, len(table), where)
    offered = check_choice_sets(choice_sets, table, names, where)
    leaves = (
        jnp.asarray(table[:, : lengths.max()], jnp.int32),
        jnp.asarray(lengths, jnp.int32),
        jnp.asarray(checked_counts, jnp.int32),
        None if offered is None else jnp.asarray(offered),
    )
    static = (len(names), names, int(checked_counts.sum()))
    return Rankings.tree_unflatten(static, leaves)


# -- checks of whole arrays at once; messages name the first error ------------------------------


def check_unranked(unranked: str, choice_sets: Any = None) -> None:
    """Check the argument that says what it means that an item is not ranked."""
    if unranked not in ("below", "not-offered"):
        raise RankingsError(f"unranked is 'below' or 'not-offered', not {unranked!r}")
    if unranked == "not-offered" and choice_sets is not None:
        raise RankingsError("choice_sets say what was offered; leave out unranked")


def check_counts(counts: Any, rows: int, where: Callable[[int], str]) -> np.ndarray:
    """Return checked counts of the rows, 1 by default."""
    if counts is None:
        return np.ones(rows, np.int64)
    array = as_array(counts)
    if array.dtype == object and all(is_missing(x) or is_number(x) for x in array.flat):
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


def check_choice_sets(
    choice_sets: Any, table: np.ndarray, names: tuple[str, ...], where: Callable[[int], str]
) -> np.ndarray | None:
    """Return checked choice sets, (rows, n)."""
    if choice_sets is None:
        return None
    shape = (len(table), len(names))
    if hasattr(choice_sets, "columns"):
        choice_sets = _in_order_of_items(choice_sets, names)
    try:
        offered = as_array(choice_sets)
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
            f"choice_sets has a column {name!r}, which is not an item; expected "
            f"{names_shown(names, 10)}"
        )
    return choice_sets.to_numpy()[:, [columns.index(name) for name in names]]


def check_rankings(rankings: Any) -> None:
    """Refuse an argument that is not a :class:`Rankings`, or has survey weights."""
    if isinstance(rankings, Rankings):
        return refuse_weights(rankings, "this")
    if instead := getattr(type(rankings), "_instead", ""):  # of this package
        name = type(rankings).__name__
        raise TypeError(f"rankings must be a Rankings here, not {name}: {instead}")
    raise TypeError(
        f"rankings must be a Rankings, got {type(rankings).__name__}: {_made(rankings)}"
    )


def _made(given: Any) -> str:
    """Say how to make rankings of what was given instead of them."""
    if isinstance(getattr(given, "rankings", None), Rows):  # a survey
        return "it has them, pass its .rankings"
    if isinstance(given, str | os.PathLike):
        return "read the file with read_rankings(path)"
    if hasattr(given, "columns"):
        return (
            "Rankings.from_ranks(frame) makes it of a column for each item, "
            "Rankings.from_dataframe(frame, judge=…, item=…, rank=…) of a row for each rank"
        )
    return (
        "Rankings.from_ranks(array) makes it of the rank of each item, "
        "Rankings.from_orderings(lists, num_items=…) of lists of items"
    )


def refuse_weights(rankings: Rows, name: str) -> None:
    """Refuse survey weights in the name of what does not take them."""
    if rankings.weights is not None:
        raise TypeError(
            f"{name} takes no survey weights, which TemperedMixture and group_path do: leave them "
            "out by rankings.unweighted()"
        )


def check_rows(rankings: Any, takes_comparisons: bool = False) -> None:
    """Refuse an argument that is neither :class:`Rankings` nor partial orders, nor comparisons."""
    kind = rankings.kind if isinstance(rankings, Rows) else ""
    if kind == "comparisons" and not takes_comparisons:
        raise TypeError(
            "these are comparisons, of which each may be a mistake: this takes rankings and "
            "partial orders; of comparisons diagnostics, densities, compare, coclustering, "
            "point_estimate, cluster_profiles and write_report can be had"
        )
    if not kind:
        check_rankings(rankings)


def num_stages(rankings: Rows) -> int:
    """Return T, the number of stages: the length of the longest list, but at most n - 1."""
    return min(rankings.table.shape[1], rankings.num_items - 1)
