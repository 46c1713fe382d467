"""Constraints on orderings, padded lists and partition labels.

Each is a ``ParameterFreeConstraint`` with static fields only, so that
:class:`~numpyro.distributions.MixtureSameFamily` accepts distributions with this support. For NumPy
arrays they return NumPy arrays, so that constants are checked even while JAX is tracing.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions.constraints import (
    Constraint,
    ParameterFreeConstraint,
    _Interval,
    _SingletonConstraint,
)

from numpyro_rankings.rankings import PartialOrders

__all__ = [
    "bucket_order",
    "canonical_labels",
    "permutation",
    "top_list",
    "unit_interval_without_one",
]


class _Permutation(_SingletonConstraint):
    """Orderings: each of ``0..n-1`` occurs once along the last axis."""

    is_discrete = True
    event_dim = 1

    def __call__(self, x: Any) -> ArrayLike:
        xp = jnp if isinstance(x, jax.Array) else np
        x = xp.asarray(x)
        return xp.all(xp.sort(x, axis=-1) == xp.arange(x.shape[-1]), axis=-1)

    def feasible_like(self, prototype: ArrayLike) -> Array:
        shape = jnp.shape(prototype)
        return jnp.broadcast_to(jnp.arange(shape[-1], dtype=jnp.result_type(prototype)), shape)


class _TopList(ParameterFreeConstraint):
    """Lists of distinct items of ``0..num_items-1``, best first, padded with -1 at their end.

    At least one item is listed. Partial orders are accepted as they are.

    :param int num_items: number of all items, listed or not.
    :param bool unseen: whether the value ``num_items`` may be listed too. It stands for any other
        item and may occur more than once.
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, num_items: int, unseen: bool = False) -> None:
        self.num_items, self.unseen = int(num_items), bool(unseen)

    def __call__(self, x: Any) -> ArrayLike:
        if isinstance(x, PartialOrders):  # whose constructors check them
            return np.full(x.num_rows, x.num_items == self.num_items)
        xp = jnp if isinstance(x, jax.Array) else np
        x = xp.asarray(x)
        listed = x >= 0
        known = xp.all((x >= -1) & (x < self.num_items + self.unseen) & (x % 1 == 0), axis=-1)
        padded_at_end = listed[..., 0] & xp.all(listed[..., :-1] >= listed[..., 1:], axis=-1)
        in_order = xp.sort(x, axis=-1)
        twice = (in_order[..., 1:] == in_order[..., :-1]) & (in_order[..., 1:] >= 0)
        twice &= in_order[..., 1:] < self.num_items
        return known & padded_at_end & ~xp.any(twice, axis=-1)

    def __repr__(self) -> str:
        unseen = ", unseen=True" if self.unseen else ""
        return f"top_list(num_items={self.num_items}{unseen})"

    def feasible_like(self, prototype: ArrayLike) -> Array:
        shape = jnp.shape(prototype)
        return jnp.broadcast_to(jnp.arange(shape[-1], dtype=jnp.result_type(prototype)), shape)

    def tree_flatten(self) -> tuple:
        return (), ((), {"num_items": self.num_items, "unseen": self.unseen})

    def eq(self, other: object, static: bool = False) -> ArrayLike:
        return type(other) is type(self) and self.tree_flatten() == other.tree_flatten()


class _BucketOrder(_SingletonConstraint):
    """Levels of items, ``0..k-1``, each of at least one item; -1 for items without a level."""

    is_discrete = True
    event_dim = 1

    def __call__(self, x: Any) -> ArrayLike:
        xp = jnp if isinstance(x, jax.Array) else np
        x = xp.asarray(x)
        in_order = xp.sort(x, axis=-1)
        no_gap = xp.all(in_order[..., 1:] - in_order[..., :-1] <= 1, axis=-1)
        begins = (in_order[..., 0] == -1) | (in_order[..., 0] == 0)
        return no_gap & begins & (in_order[..., -1] >= 0) & xp.all(x % 1 == 0, axis=-1)

    def __repr__(self) -> str:
        return "bucket_order()"

    def feasible_like(self, prototype: ArrayLike) -> Array:
        shape = jnp.shape(prototype)
        return jnp.broadcast_to(jnp.arange(shape[-1], dtype=jnp.result_type(prototype)), shape)


class _CanonicalLabels(_SingletonConstraint):
    """Labels of a partition, ``0..k-1`` in order of first use along the last axis."""

    is_discrete = True
    event_dim = 1

    def __call__(self, x: Any) -> ArrayLike:
        xp = jnp if isinstance(x, jax.Array) else np
        x = xp.asarray(x)
        highest = xp.maximum.accumulate(x, axis=-1)
        grows_by_one = xp.all(x[..., 1:] <= highest[..., :-1] + 1, axis=-1)
        return (x[..., 0] == 0) & grows_by_one & xp.all((x >= 0) & (x % 1 == 0), axis=-1)

    def __repr__(self) -> str:
        return "canonical_labels()"

    def feasible_like(self, prototype: ArrayLike) -> Array:
        return jnp.zeros_like(prototype)


class _UnitIntervalWithoutOne(_Interval, _SingletonConstraint):
    """Numbers of the half-open interval [0, 1)."""

    def __init__(self) -> None:
        super().__init__(0.0, 1.0)

    def __call__(self, x: Any) -> ArrayLike:
        xp = jnp if isinstance(x, jax.Array) else np
        return (xp.asarray(x) >= 0) & (xp.asarray(x) < 1)

    def __repr__(self) -> str:
        return "unit_interval_without_one()"

    def tree_flatten(self) -> tuple:
        return (), ((), {})

    def eq(self, other: object, static: bool = False) -> ArrayLike:
        return other is self


permutation: Constraint = _Permutation()
top_list = _TopList
bucket_order: Constraint = _BucketOrder()
canonical_labels: Constraint = _CanonicalLabels()
unit_interval_without_one: Constraint = _UnitIntervalWithoutOne()
