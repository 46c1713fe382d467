"""The uniform distribution over all orderings, and the list of all orderings."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import Distribution
from numpyro.distributions import constraints as numpyro_constraints
from numpyro.distributions.batch_util import vmap_over
from numpyro.distributions.util import validate_sample
from numpyro.util import is_prng_key

from numpyro_rankings.distributions import constraints
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.rankings.rows import Rows

__all__ = ["RandomPermutation", "all_permutations"]

MAX_ENUMERATED_ITEMS = 9


def all_permutations(num_items: int) -> Array:
    """All orderings of a few items, in lexicographic order: int32, shape ``(n!, n)``.

    Indexed with a :class:`~numpyro.distributions.Categorical` site, it gives a permutation that
    NumPyro can enumerate.

    :param int num_items: at most 9.

    .. doctest::

       >>> all_permutations(3).tolist()
       [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
    """
    if not 1 <= num_items <= MAX_ENUMERATED_ITEMS:
        raise ValueError(
            f"all_permutations lists the orderings of 1 to {MAX_ENUMERATED_ITEMS} items, "
            f"not of {num_items}"
        )
    return jnp.asarray(list(itertools.permutations(range(num_items))), jnp.int32)


class RandomPermutation(Distribution):
    r"""
    Every ordering of the items is equally likely: :math:`P(\sigma) = 1/n!`.

    The value is an ordering: int32 item indices, best first, shape ``(…, num_items)``. For a
    batch of independent orderings use a plate or ``expand``.

    :param int num_items: number of items :math:`n`.

    .. doctest::

       >>> from jax import random
       >>> d = RandomPermutation(4)
       >>> ordering = d.sample(random.key(0))
       >>> sorted(ordering.tolist())
       [0, 1, 2, 3]
       >>> round(float(jnp.exp(-d.log_prob(ordering))))
       24
    """

    # Listed only so that the number is validated; it is static, not a leaf of the pytree.
    arg_constraints: ClassVar[dict[str, Any]] = {"num_items": numpyro_constraints.positive_integer}
    support = constraints.permutation
    pytree_data_fields: tuple[str, ...] = ()
    pytree_aux_fields = ("num_items",)

    def __init__(self, num_items: int, *, validate_args: bool | None = None) -> None:
        check_whole("num_items", num_items)
        self.num_items = int(num_items)
        super().__init__((), (self.num_items,), validate_args=validate_args)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> Array:
        assert is_prng_key(key)
        identity = jnp.arange(self.num_items, dtype=jnp.int32)
        orderings = jnp.broadcast_to(identity, self.shape(sample_shape))
        return jax.random.permutation(key, orderings, axis=-1, independent=True)

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list | None = None) -> Array:
        shape = np.broadcast_shapes(check_event(value, self), self.batch_shape)
        return jnp.broadcast_to(-self.entropy(), shape)

    def entropy(self) -> Array:
        return jnp.full(self.batch_shape, math.lgamma(self.num_items + 1))


def check_event(value: ArrayLike, distribution: Distribution) -> tuple[int, ...]:
    """Return the leading axes of a value, after checking the length of its last axis."""
    if isinstance(value, Rankings):
        name, remedy = type(distribution).__name__, "the array rankings.orderings"
        if name == "PlackettLuceTies":
            remedy = "PartialOrders.from_rankings(rankings).levels_of_items()"
        raise TypeError(f"{name} takes arrays, not Rankings: give {remedy}")
    if isinstance(value, Rows):
        name, kind = type(distribution).__name__, type(value).__name__
        raise TypeError(f"{name} scores orderings, not {kind}")
    shape = jnp.shape(value)
    (expected,) = distribution.event_shape
    if not shape or shape[-1] != expected:
        raise ValueError(
            f"{type(distribution).__name__} expects values with {expected} entries along the "
            f"last axis, got shape {shape}"
        )
    return shape[:-1]


def keep(x: ArrayLike | Sequence) -> np.ndarray | Array:
    """Keep NumPy arrays as they are, so that constants are checked even while JAX is tracing."""
    return x if isinstance(x, jax.Array) else np.asarray(x)


def as_real(x: ArrayLike) -> Array:
    """Convert to floating point, of JAX's default width unless the array already has one."""
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.result_type(float))


@vmap_over.register
def _vmap_over_random_permutation(dist: RandomPermutation) -> Any:
    return vmap_over.dispatch(Distribution)(dist)
