"""The Davidson–Luce model: Plackett–Luce with ties."""

from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax, random
from jax.typing import ArrayLike
from numpyro.distributions import Distribution
from numpyro.distributions import constraints as numpyro_constraints
from numpyro.distributions.batch_util import vmap_over
from numpyro.distributions.util import promote_shapes, validate_sample
from numpyro.util import is_prng_key

from numpyro_rankings.distributions import constraints
from numpyro_rankings.distributions.permutation import as_real, check_event, keep
from numpyro_rankings.rankings import PartialOrders

__all__ = ["PlackettLuceTies"]

_NOTHING = -1e30  # log of 0; finite, so that gradients are finite

# For each size d the normaliser needs the sum over sets S of d items of (∏ α_i)^(1/d), which is the
# elementary symmetric polynomial e_d of the numbers α_i^(1/d). A table, (D, D + 1), has log e_k of
# the numbers α_i^(1/d) in row d - 1 and column k. All terms are positive: nothing cancels.


def _of_no_items(largest: int, dtype: Any) -> Array:
    return jnp.full((largest, largest + 1), _NOTHING, dtype).at[:, 0].set(0.0)


def _with_item(table: Array, log_weight: Array) -> Array:
    """Return the table of one more item: e_k becomes e_k + w e_{k-1}."""
    sizes = jnp.arange(1, len(table) + 1, dtype=table.dtype)
    more = table[:, :-1] + log_weight / sizes[:, None]
    return jnp.concatenate([table[:, :1], jnp.logaddexp(table[:, 1:], more)], axis=1)


def _from_one(log_ties: Array) -> Array:
    """Log strengths of sets of 1, …, D items."""
    return jnp.concatenate([jnp.zeros_like(log_ties, shape=1), log_ties])


def _log_masses(table: Array, log_ties: Array) -> Array:
    """Log of the sums of f(S) over all sets S of each size, (D,)."""
    return _from_one(log_ties) + jnp.diagonal(table, offset=1)


def _scaled(log_weights: Array, offered: Array) -> Array:
    """Log weights of which the largest is 0; f has the same factor for sets of all sizes."""
    there = jnp.where(offered, log_weights, _NOTHING)
    return jnp.where(offered, there - lax.stop_gradient(there.max()), _NOTHING)


@jax.jit
@partial(jnp.vectorize, signature="(n),(n),(d),(n)->()")
def _log_prob(levels: Array, log_weights: Array, log_ties: Array, offered: Array) -> Array:
    num_items, largest = len(levels), len(log_ties) + 1
    listed = levels >= 0
    log_weights = _scaled(log_weights, offered)
    # from the items that are left at the end to the first bucket: the items in play at each stage
    # are the first ones in this order, so that one pass finds all normalisers
    place = jnp.where(listed, levels, jnp.where(offered, num_items, num_items + 1))
    order = jnp.argsort(-place)

    def add(table: Array, item: Array) -> tuple[Array, Array]:
        table = _with_item(table, log_weights[item])
        return table, jax.nn.logsumexp(_log_masses(table, log_ties))

    _, log_totals = lax.scan(add, _of_no_items(largest, log_weights.dtype), order)
    in_order = levels[order]
    differs = in_order[:-1] != in_order[1:]
    is_last = jnp.concatenate([differs, jnp.ones(1, bool)]) & (in_order >= 0)
    # log f of a bucket is the sum of what its items have of it
    column = jnp.where(listed, levels, num_items)
    sizes = jnp.zeros(num_items + 1, jnp.int32).at[column].add(1)[column]
    log_f = log_weights + _from_one(log_ties)[jnp.minimum(sizes, largest) - 1]
    shares = jnp.where(listed, log_f / sizes.astype(log_f.dtype), 0.0)
    log_prob = shares.sum() - jnp.where(is_last, log_totals, 0.0).sum()
    impossible = jnp.any(listed & ((sizes > largest) | ~offered))
    return jnp.where(impossible, -jnp.inf, log_prob)


def _draw_set(key: Array, log_weights: Array, log_ties: Array) -> Array:
    """Draw a set of items with probability proportional to f, as booleans (n,)."""
    largest = len(log_ties) + 1
    key_size, key_items = random.split(key)

    def add(table: Array, log_weight: Array) -> tuple[Array, Array]:
        return _with_item(table, log_weight), table

    last, before = lax.scan(add, _of_no_items(largest, log_weights.dtype), log_weights)
    size = random.categorical(key_size, _log_masses(last, log_ties)) + 1

    # among sets of k of the first items, those with the last one have the share w e_{k-1} / e_k
    def decide(left: Array, item: tuple) -> tuple[Array, Array]:
        log_weight, table, log_uniform = item
        log_with = table[size - 1, left - 1] + log_weight / size.astype(table.dtype)
        log_odds = log_with - jnp.logaddexp(log_with, table[size - 1, left])
        is_in = (left > 0) & (log_uniform <= log_odds)
        return left - is_in.astype(left.dtype), is_in

    log_uniforms = -random.exponential(key_items, log_weights.shape, log_weights.dtype)
    return lax.scan(decide, size, (log_weights, before, log_uniforms), reverse=True)[1]


@jax.jit
@jax.vmap
def _draw(key: Array, log_weights: Array, log_ties: Array, offered: Array) -> Array:
    """Draw the levels of one order."""
    log_weights = _scaled(log_weights, offered)

    def stage(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        level, levels, left = state
        in_play = jnp.where(left, log_weights, _NOTHING)
        chosen = _draw_set(random.fold_in(key, level), in_play, log_ties) & left
        return level + 1, jnp.where(chosen, level, levels), left & ~chosen

    levels = jnp.full(log_weights.shape, -1, jnp.int32)
    start = jnp.int32(0), levels, offered
    return lax.while_loop(lambda state: state[2].any(), stage, start)[1]


class PlackettLuceTies(Distribution):
    r"""
    Davidson–Luce model of orders with ties: sets of tied items are drawn one after another [1, 2].

    With weights :math:`\alpha_i` and tie strengths :math:`\delta_2, …, \delta_D`, and
    :math:`\delta_1 = 1`, the next set is :math:`S` with probability

    .. math::
        \frac{f(S)}{\sum_{S'} f(S')}, \quad
        f(S) = \delta_{|S|} \Big(\prod_{i \in S} \alpha_i\Big)^{1/|S|},

    where the sum is over all sets of at most :math:`D` of the items that are left. Two items of the
    same weight, alone, are tied with probability :math:`\delta_2 / (2 + \delta_2)`. With
    :math:`D = 1` it is the Plackett–Luce model.

    The value has the level of each item, int32 of shape ``(…, n)``: 0 for those of the first set, 1
    for those of the second, and so on. Items of level -1 are in no set. If they were offered, they
    are below all others, in an order that is not known: the probability is that of an order that
    begins with these sets. Samples have levels of all items offered. Of
    :class:`~numpyro_rankings.PartialOrders` the value is ``levels_of_items()``, with ``offered()``
    as choice set.

    :param log_weights: :math:`\log \alpha`, up to a constant, shape ``(…, n)``.
    :param log_tie_strengths: :math:`\log \delta_2, …, \log \delta_D`, shape ``(…, D - 1)``, with
        -inf for sizes that do not occur. Sets of more than :math:`D` items have probability 0.
    :param choice_set: which items are offered, booleans of shape ``(…, n)``; None for all. An
        order with an item that is not offered has probability 0.

    **References:**

    1. Turner, H. L., van Etten, J., Firth, D. and Kosmidis, I. (2020), *Modelling rankings in R:
       the PlackettLuce package*, Computational Statistics.
    2. Davidson, R. R. (1970), *On extending the Bradley–Terry model to accommodate ties in paired
       comparison experiments*, Journal of the American Statistical Association.

    .. doctest::

       >>> d = PlackettLuceTies(jnp.zeros(2), jnp.log(jnp.array([0.5])))
       >>> orders = jnp.array([[0, 1], [1, 0], [0, 0]])
       >>> jnp.exp(d.log_prob(orders)).round(3).tolist()
       [0.4000000059604645, 0.4000000059604645, 0.20000000298023224]
       >>> d.sample(jax.random.key(0), (10,)).shape
       (10, 2)
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "log_weights": numpyro_constraints.real_vector,
        # -inf for sizes that do not occur
        "log_tie_strengths": numpyro_constraints.independent(
            numpyro_constraints.less_than(np.inf), 1
        ),
        "choice_set": numpyro_constraints.independent(numpyro_constraints.boolean, 1),
    }
    support = constraints.bucket_order
    pytree_data_fields = ("log_weights", "log_tie_strengths", "choice_set")
    reparametrized_params: ClassVar[list[str]] = []

    def __init__(
        self,
        log_weights: ArrayLike,
        log_tie_strengths: ArrayLike,
        choice_set: ArrayLike | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        log_weights, log_ties = keep(log_weights), keep(log_tie_strengths)
        if log_weights.ndim < 1 or log_weights.shape[-1] < 1:
            raise ValueError(
                f"log_weights must have shape (…, n), one for each item, got {log_weights.shape}"
            )
        if log_ties.ndim < 1:
            raise ValueError("log_tie_strengths must have shape (…, D - 1), got a number")
        num_items = log_weights.shape[-1]
        batch = np.broadcast_shapes(log_weights.shape[:-1], log_ties.shape[:-1])
        self.choice_set = None
        if choice_set is not None:
            choice_set = keep(choice_set)
            if choice_set.ndim < 1 or choice_set.shape[-1] != num_items:
                raise ValueError(
                    f"choice_set must have shape (…, {num_items}), got {choice_set.shape}"
                )
            batch = np.broadcast_shapes(batch, choice_set.shape[:-1])
            (self.choice_set,) = promote_shapes(choice_set, shape=(*batch, num_items))
        (self.log_weights,) = promote_shapes(log_weights, shape=(*batch, num_items))
        (self.log_tie_strengths,) = promote_shapes(log_ties, shape=(*batch, log_ties.shape[-1]))
        if self.choice_set is None:  # what is None cannot be checked
            own = {k: v for k, v in type(self).arg_constraints.items() if k != "choice_set"}
            self.arg_constraints = own  # type: ignore[misc]
        super().__init__(batch, (num_items,), validate_args=validate_args)

    @property
    def num_items(self) -> int:
        """Number n of items."""
        return self.log_weights.shape[-1]

    def _parameters(self) -> tuple[Array, Array, Array]:
        offered = np.ones(self.num_items, bool) if self.choice_set is None else self.choice_set
        log_weights, log_ties = as_real(self.log_weights), as_real(self.log_tie_strengths)
        dtype = jnp.result_type(log_weights, log_ties)
        return (
            log_weights.astype(dtype),
            log_ties.astype(dtype),
            jnp.asarray(offered).astype(bool),
        )

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> Array:
        assert is_prng_key(key)
        shape = (*sample_shape, *self.batch_shape)
        number = int(np.prod(shape))
        flat = [
            jnp.broadcast_to(x, (*shape, x.shape[-1])).reshape(number, x.shape[-1])
            for x in self._parameters()
        ]
        return _draw(random.split(key, number), *flat).reshape(*shape, self.num_items)

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list | None = None) -> Array:
        if isinstance(value, PartialOrders):
            raise TypeError(
                "PlackettLuceTies takes the levels of the items: give levels_of_items() of the "
                "partial orders, and their offered() as choice_set"
            )
        shape = np.broadcast_shapes(check_event(value, self), self.batch_shape)
        log_prob = _log_prob(jnp.asarray(value).astype(jnp.int32), *self._parameters())
        return jnp.broadcast_to(log_prob, shape)

    @staticmethod
    def infer_shapes(
        log_weights: tuple[int, ...],
        log_tie_strengths: tuple[int, ...],
        choice_set: tuple[int, ...] | None = None,
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        batch = np.broadcast_shapes(
            log_weights[:-1], log_tie_strengths[:-1], (choice_set or ())[:-1]
        )
        return batch, log_weights[-1:]


@vmap_over.register
def _vmap_over_plackett_luce_ties(
    dist: PlackettLuceTies,
    log_weights: Any = None,
    log_tie_strengths: Any = None,
    choice_set: Any = None,
) -> Any:
    return vmap_over.dispatch(Distribution)(
        dist, log_weights=log_weights, log_tie_strengths=log_tie_strengths, choice_set=choice_set
    )
