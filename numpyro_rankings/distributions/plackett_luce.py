"""The Plackett–Luce model of top-t and subset rankings."""

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
from numpyro_rankings.distributions.partial_orders import (
    against_rows,
    blocks_of_orders,
)
from numpyro_rankings.distributions.permutation import as_real, check_event, keep
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.linear_extensions import (
    Blocks,
    log_sum_over_orders,
    log_sums_of_subsets,
    sum_of_blocks,
)
from numpyro_rankings.rankings import PartialOrders, RankingsError

__all__ = ["TopTPlackettLuce"]

_NOTHING = -1e30  # log weight of absent items; finite, so that gradients are finite


@jax.jit
def _log_prob(
    lists: Array, log_weights: Array, log_unseen: Array | None, offered: Array | None
) -> Array:
    lists = lists.astype(jnp.int32)
    num_items = log_weights.shape[-1]
    there = log_weights if offered is None else jnp.where(offered, log_weights, _NOTHING)
    pool = jnp.asarray(_NOTHING, there.dtype) if log_unseen is None else log_unseen[..., None]
    shape = np.broadcast_shapes(lists.shape[:-1], there.shape[:-1], pool.shape[:-1])
    lists = jnp.broadcast_to(lists, (*shape, lists.shape[-1]))
    # the last column is for items of the pool and for padding
    columns = jnp.broadcast_to(there, (*shape, num_items)), jnp.broadcast_to(pool, (*shape, 1))
    there = jnp.concatenate(columns, axis=-1)
    listed = lists >= 0
    column = jnp.where(listed, jnp.minimum(lists, num_items), num_items)
    chosen = jnp.take_along_axis(there, column, axis=-1)
    # the pool is never used up
    used_up = jnp.where(column < num_items, chosen, _NOTHING)
    is_used_up = jnp.put_along_axis(
        jnp.zeros(there.shape, bool), column, column < num_items, axis=-1, inplace=False
    )
    rest = jax.nn.logsumexp(jnp.where(is_used_up, _NOTHING, there), axis=-1, keepdims=True)
    # summed from the last stage back, so that a rest of 1e-9 of the total is not lost
    in_play = jnp.concatenate([used_up, rest], axis=-1)
    in_play = lax.cumlogsumexp(in_play, axis=in_play.ndim - 1, reverse=True)[..., :-1]
    log_prob = jnp.sum(jnp.where(listed, chosen - in_play, 0.0), axis=-1)
    impossible = jnp.any(listed & (chosen <= 0.5 * _NOTHING), axis=-1)
    return jnp.where(impossible, -jnp.inf, log_prob)


@jax.jit
def _log_prob_of_orders(
    blocks: list[Blocks], listed: Array, below: Array, log_weights: Array, log_pool: Array
) -> Array:
    """Log probabilities of partial orders, (B, rows).

    :param listed: (rows, T).
    :param below: which items are below the listed ones, (rows, n) bool.
    :param log_weights: (B, rows, n).
    :param log_pool: of the pool, (B, rows, 1).
    """
    score = partial(log_prob_of_weights, blocks, listed, below)
    return jax.vmap(score)(jnp.maximum(log_weights, _NOTHING), log_pool)


def log_prob_of_weights(
    blocks: list[Blocks], listed: Array, below: Array, there: Array, log_pool: Array
) -> Array:
    """Log probabilities of partial orders, (rows,).

    :param there: log weights, finite, (rows, n); **log_pool** is (rows, 1).
    """
    is_listed = listed >= 0
    chosen = jnp.take_along_axis(there, jnp.maximum(listed, 0), axis=-1)
    chosen = jnp.where(is_listed, chosen, _NOTHING)
    rest = jax.nn.logsumexp(jnp.where(below, there, _NOTHING), axis=-1, keepdims=True)
    in_play = jnp.concatenate([chosen, jnp.logaddexp(rest, log_pool)], axis=-1)
    in_play = lax.cumlogsumexp(in_play, axis=1, reverse=True)
    values = [_log_prob_of_blocks(b, chosen, in_play) for b in blocks]
    log_prob = sum_of_blocks(blocks, values, jnp.zeros_like(rest[:, 0]))
    impossible = jnp.any(is_listed & (chosen <= 0.5 * _NOTHING), axis=-1)
    return jnp.where(impossible, -jnp.inf, log_prob)


def _log_prob_of_blocks(blocks: Blocks, chosen: Array, in_play: Array) -> Array:
    """Log probability that each block comes in an order that agrees, (blocks,).

    Item a of the items R that are left is next with probability w_a / (the weight of R and of all
    that is after the block).
    """
    rows, width = blocks.rows[:, None], blocks.before.shape[1]
    log_weights = chosen[rows, blocks.places].T
    log_masses = log_sums_of_subsets(log_weights, in_play[blocks.rows, blocks.starts + width])
    return log_sum_over_orders(blocks, lambda items, sets: log_weights[items] - log_masses[sets])


class TopTPlackettLuce(Distribution):
    r"""
    Plackett–Luce model of top-t rankings: items are drawn one after another, without replacement,
    with probability proportional to their weights [1, 2].

    With weights :math:`w_k = e^{\lambda_k}`,

    .. math::
        P(\rho \mid w) = \prod_{i\,:\,\rho_i \text{ listed}}
        \frac{w_{\rho_i}}{w_* + \sum_{k} w_k - \sum_{j<i} w_{\rho_j}},

    with the sum over the items of the choice set, all :math:`n` by default. This is the order of
    arrival in a race where item :math:`k` takes a time Exponential(:math:`w_k`).

    The value is an int32 list of item indices, best first, shape ``(…, length)``. A shorter list is
    padded with -1 at its end. Its probability is that of a ranking beginning with it; the length of
    the list is taken as given. Samples list ``length`` items, or all items of a smaller choice set.

    With an unseen weight :math:`w_*` the value :math:`n` stands for an item that is none of the
    :math:`n`, and may occur more than once. The unseen items are a pool of infinitely many items of
    negligible weight each, so that the pool is never used up. (Under a gamma process this is the
    probability of the first unseen item, which takes part of :math:`w_*` with it.)

    The value may also be :class:`~numpyro_rankings.PartialOrders`: the log probability of each row,
    shape ``(…, rows)``, is that of any of the orderings that agree with it. It is exact, by
    dynamic programming over sets of items. At most 16 items may be tied or not compared where all
    earlier items are above them and all later ones below, and 12 listed items if the orders are
    traced, that is arguments of a compiled function. The items that were offered to each judge are
    those of the partial orders or, if they do not say it, of ``choice_set``; ``length`` has no
    effect. Counts are not applied.
    In a model it is a ``numpyro.factor``, because NumPyro observes arrays only.

    :param log_weights: :math:`\lambda`, up to a constant, shape ``(…, n)``.
    :param int length: :math:`t`, the number of places of a list, at most ``n`` unless there is an
        unseen weight.
    :param log_unseen_weight: :math:`\log w_*`, shape ``(…)``; None if there are no other items.
    :param choice_set: which items are offered, booleans of shape ``(…, n)``; None for all. A
        list with an item that is not offered has probability 0.

    **References:**

    1. Plackett, R. L. (1975), *The analysis of permutations*, Applied Statistics.
    2. Caron, F., Teh, Y. W. and Murphy, T. B. (2014), *Bayesian nonparametric Plackett–Luce models
       for the analysis of preferences for college degree programmes*, Annals of Applied
       Statistics; equation (1).

    .. doctest::

       >>> d = TopTPlackettLuce(jnp.log(jnp.array([0.5, 0.3, 0.2])), length=2)
       >>> d.event_shape, round(float(jnp.exp(d.log_prob(jnp.array([0, 2])))), 4)
       ((2,), 0.2)
       >>> d.sample(jax.random.key(0), (10,)).shape
       (10, 2)
       >>> offered = jnp.array([True, False, True])
       >>> d = TopTPlackettLuce(jnp.log(jnp.array([0.5, 0.3, 0.2])), 2, choice_set=offered)
       >>> round(float(jnp.exp(d.log_prob(jnp.array([0, 2])))), 4)
       0.7143
       >>> from numpyro_rankings import PartialOrders
       >>> orders = PartialOrders.from_buckets([[[0, 2], 1], [[0, 1, 2]]], num_items=3)
       >>> d = TopTPlackettLuce(jnp.log(jnp.array([0.5, 0.3, 0.2])), length=3)
       >>> [round(float(x), 4) for x in jnp.exp(d.log_prob(orders))]
       [0.325, 1.0]
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "log_weights": numpyro_constraints.real_vector,
        "log_unseen_weight": numpyro_constraints.real,
        "choice_set": numpyro_constraints.independent(numpyro_constraints.boolean, 1),
    }
    pytree_data_fields = ("log_weights", "log_unseen_weight", "choice_set")
    reparametrized_params: ClassVar[list[str]] = []

    def __init__(
        self,
        log_weights: ArrayLike,
        length: int,
        log_unseen_weight: ArrayLike | None = None,
        choice_set: ArrayLike | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        log_weights = keep(log_weights)
        if log_weights.ndim < 1 or log_weights.shape[-1] < 1:
            raise ValueError(
                f"log_weights must have shape (…, n), one for each item, got {log_weights.shape}"
            )
        num_items = log_weights.shape[-1]
        check_whole("length", length)
        length = int(length)
        if length > num_items and log_unseen_weight is None:
            raise ValueError(f"a ranking of {num_items} items cannot have length {length}")
        batch = log_weights.shape[:-1]
        if log_unseen_weight is not None:
            log_unseen_weight = keep(log_unseen_weight)
            batch = np.broadcast_shapes(batch, log_unseen_weight.shape)
        if choice_set is not None:
            choice_set = keep(choice_set)
            if choice_set.ndim < 1 or choice_set.shape[-1] != num_items:
                raise ValueError(
                    f"choice_set must have shape (…, {num_items}), got {choice_set.shape}"
                )
            batch = np.broadcast_shapes(batch, choice_set.shape[:-1])
        (self.log_weights,) = promote_shapes(log_weights, shape=(*batch, num_items))
        self.log_unseen_weight, self.choice_set = None, None
        if log_unseen_weight is not None:
            (self.log_unseen_weight,) = promote_shapes(log_unseen_weight, shape=batch)
        if choice_set is not None:
            (self.choice_set,) = promote_shapes(choice_set, shape=(*batch, num_items))
        # constraints of the arguments given; the others are None and cannot be checked
        self.arg_constraints = {  # type: ignore[misc]
            name: constraint
            for name, constraint in type(self).arg_constraints.items()
            if getattr(self, name) is not None
        }
        super().__init__(batch, (length,), validate_args=validate_args)

    @property
    def num_items(self) -> int:
        """Number n of items, without the unseen ones."""
        return self.log_weights.shape[-1]

    @numpyro_constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> numpyro_constraints.Constraint:
        return constraints.top_list(self.num_items, self.log_unseen_weight is not None)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> Array:
        assert is_prng_key(key)
        key_items, key_pool = random.split(key)
        (length,), num_items = self.event_shape, self.num_items
        shape = (*sample_shape, *self.batch_shape)
        log_weights = as_real(self.log_weights)
        # minus the log arrival times
        order = log_weights + random.gumbel(key_items, (*shape, num_items), log_weights.dtype)
        if self.choice_set is not None:
            order = jnp.where(jnp.asarray(self.choice_set).astype(bool), order, -jnp.inf)
        if self.log_unseen_weight is not None:
            # items of the pool arrive as a Poisson process
            waits = random.exponential(key_pool, (*shape, length), log_weights.dtype)
            pool = as_real(self.log_unseen_weight)[..., None] - jnp.log(jnp.cumsum(waits, axis=-1))
            order = jnp.concatenate([order, pool], axis=-1)
        best, items = lax.top_k(order, length)
        items = jnp.where(best > -jnp.inf, jnp.minimum(items, num_items), -1)
        return items.astype(jnp.int32)

    @validate_sample
    def log_prob(
        self, value: ArrayLike | PartialOrders, intermediates: list | None = None
    ) -> Array:
        if isinstance(value, PartialOrders):
            return self._log_prob_of_orders(value)
        check_event(value, self)
        unseen, offered = self.log_unseen_weight, self.choice_set
        log_prob = _log_prob(
            jnp.asarray(value),
            as_real(self.log_weights),
            None if unseen is None else as_real(unseen),
            None if offered is None else jnp.asarray(offered).astype(bool),
        )
        return jnp.broadcast_to(
            log_prob, np.broadcast_shapes(jnp.shape(value)[:-1], self.batch_shape)
        )

    def _log_prob_of_orders(self, orders: PartialOrders) -> Array:
        log_weights, unseen = as_real(self.log_weights), self.log_unseen_weight
        says_offered = orders.choice_sets is not None or orders.unlisted == "not-offered"
        if says_offered and not (unseen is None and self.choice_set is None):
            raise RankingsError(
                "the partial orders say which items were offered to each judge, so that the "
                "distribution takes neither choice_set nor log_unseen_weight"
            )
        blocks = blocks_of_orders(orders, self.num_items, pool=unseen is not None)
        if self.choice_set is not None:
            offered = jnp.asarray(self.choice_set).astype(bool)
            log_weights = jnp.where(offered, log_weights, _NOTHING)
        pool = jnp.asarray(_NOTHING, log_weights.dtype) if unseen is None else as_real(unseen)
        shape, parameters = against_rows(orders, self.batch_shape, log_weights, pool[..., None])
        return _log_prob_of_orders(blocks, orders.listed, orders.rest(), *parameters).reshape(shape)

    @staticmethod
    def infer_shapes(
        log_weights: tuple[int, ...],
        length: int,
        log_unseen_weight: tuple[int, ...] | None = None,
        choice_set: tuple[int, ...] | None = None,
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        batch = np.broadcast_shapes(
            log_weights[:-1], log_unseen_weight or (), (choice_set or ())[:-1]
        )
        return batch, (length,)


@vmap_over.register
def _vmap_over_top_t_plackett_luce(
    dist: TopTPlackettLuce,
    log_weights: Any = None,
    log_unseen_weight: Any = None,
    choice_set: Any = None,
) -> Any:
    return vmap_over.dispatch(Distribution)(
        dist, log_weights=log_weights, log_unseen_weight=log_unseen_weight, choice_set=choice_set
    )
