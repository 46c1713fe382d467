"""What containers of rankings share: rows with counts, immutable, and pytrees."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


class Rows:
    """Rows that stand for several rankings each; immutable, and a JAX pytree.

    A subclass names its leaves, arrays whose first axis is that of the rows or None: the first is
    the table of the listed items, padded with -1, the last the choice sets, and among the others
    are ``lengths`` and ``counts``. It also names its static fields, of which the last three are
    ``num_items``, ``items`` and ``num_rankings``.
    """

    __slots__ = ("counts", "items", "num_items", "num_rankings")
    _leaves: ClassVar[tuple[str, ...]]
    _static: ClassVar[tuple[str, ...]]
    _instead: ClassVar[str] = ""  # what to do where rankings are needed

    lengths: Array
    kind: ClassVar[str]  # in words
    are_partial: ClassVar[bool]  # whether a row may leave the order of listed items open
    counts: Array
    choice_sets: Array | None
    weights: Array | None = None  # of judges, which rankings may have
    num_items: int
    items: tuple[str, ...]
    num_rankings: int

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} are immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} are immutable: {name!r} cannot be deleted")

    @classmethod
    def _make(cls, leaves: Sequence[Any], static: tuple) -> Self:
        """Make an object without checks: the leaves may be tracers or other objects of JAX."""
        self = object.__new__(cls)
        for name, value in zip(cls._leaves, leaves, strict=True):
            object.__setattr__(self, name, value)
        for name, value in zip(cls._static, static, strict=True):
            object.__setattr__(self, name, value)
        return self

    def tree_flatten(self) -> tuple[tuple, tuple]:
        leaves = tuple(getattr(self, name) for name in self._leaves)
        return leaves, tuple(getattr(self, name) for name in self._static)

    @classmethod
    def tree_unflatten(cls, static: tuple, leaves: Sequence[Any]) -> Self:
        return cls._make(leaves, static)

    def __reduce__(self) -> tuple:
        leaves, static = self.tree_flatten()
        arrays = tuple(None if x is None else np.asarray(x) for x in leaves)
        return _rebuild, (type(self), arrays, static)

    @property
    def table(self) -> Array:
        """The listed items of each row, padded with -1, (rows, T)."""
        return getattr(self, self._leaves[0])

    def offered(self) -> Array | None:
        """Return which items were offered, bool (rows, n); None if all were."""
        return self.choice_sets

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.counts.shape[0]

    @property
    def effective_number(self) -> float:
        """How many rankings these are worth: N, without survey weights."""
        return self.num_rankings

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

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        (mine, static), (theirs, other_static) = self.tree_flatten(), other.tree_flatten()
        return static == other_static and all(
            one is two or np.array_equal(one, two) for one, two in zip(mine, theirs, strict=True)
        )

    def __hash__(self) -> int:
        return hash((self.num_items, self.items, self.num_rankings))

    def expand(self) -> Self:
        """Return one row for each of the N rankings, with each row repeated in place."""
        if not self._is_traced():
            rows = np.repeat(np.arange(self.num_rows), self.counts)
            return self._take(rows, np.ones(len(self), np.int32))
        index = self.row_index
        leaves, static = self.tree_flatten()
        ones = jnp.ones_like(self.counts, shape=index.shape)
        taken = [
            ones if name == "counts" else None if leaf is None else leaf[index]
            for name, leaf in zip(self._leaves, leaves, strict=True)
        ]
        return self._make(taken, static)

    def unique(self) -> Self:
        """Merge identical rows, in order of first occurrence, and add their counts."""
        return self.merged()[0]

    def merged(self) -> tuple[Self, np.ndarray]:
        """Merge identical rows as :meth:`unique`, and say where each row went.

        :return: the rankings, and the new row of each old one, (rows,).
        """
        _, first, inverse = np.unique(self._keys(), return_index=True, return_inverse=True)
        totals = np.bincount(inverse, weights=np.asarray(self.counts, float))
        order = np.argsort(first)
        new_row = np.empty_like(order)
        new_row[order] = np.arange(len(order))
        return self._take(first[order], totals[order]), new_row[inverse]

    def _keys(self) -> np.ndarray:
        """Return a number for each row, the same for equal rows."""
        raise NotImplementedError

    def _take(self, rows: np.ndarray, counts: np.ndarray) -> Self:
        """Return some of the rows, with new counts."""
        leaves, static = self.tree_flatten()
        taken = [
            jnp.asarray(counts, jnp.int32)
            if name == "counts"
            else None
            if leaf is None
            else jnp.asarray(np.asarray(leaf)[rows])
            for name, leaf in zip(self._leaves, leaves, strict=True)
        ]
        return self._make(taken, (*static[:-1], int(counts.sum())))


class RowsOfJudges(Rows):
    """Rows whose judges may have names, **ids**, which transformations of JAX do not keep."""

    __slots__ = ("ids",)

    ids: tuple[str, ...] | None

    if not TYPE_CHECKING:  # so that mypy finds who reads the orderings that only rankings have

        @property
        def orderings(self):
            """Refuse what takes rankings only."""
            name = type(self).__name__
            raise TypeError(f"rankings must be a Rankings here, not {name}: {self._instead}")

    @classmethod
    def _make(cls, leaves: Sequence[Any], static: tuple) -> Self:
        self = super()._make(leaves, static)
        object.__setattr__(self, "ids", None)
        return self

    def with_ids(self, ids: Sequence[str] | None) -> Self:
        """Return the same with names of the judges of the rows."""
        made = self._make(*self.tree_flatten())
        object.__setattr__(made, "ids", None if ids is None else tuple(ids))
        return made

    def __reduce__(self) -> tuple:
        return _with_ids, (*super().__reduce__(), self.ids)


def _with_ids(rebuild: Callable, arguments: tuple, ids: tuple[str, ...] | None) -> RowsOfJudges:
    return rebuild(*arguments).with_ids(ids)


def _rebuild(cls: type[Rows], leaves: tuple, static: tuple) -> Rows:
    return cls._make([None if x is None else jnp.asarray(x) for x in leaves], static)
