"""Posterior predictive checks: compare replicated rankings with the observed ones."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.families import RankingFamily
from numpyro_rankings.families.base import INTERVAL
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.sums import scatter_add, sum_by_label
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.partitions import evenly
from numpyro_rankings.rankings import PartialOrders, Rankings, refuse_weights

__all__ = ["PredictiveCheck", "PredictiveChecks", "posterior_predictive_checks"]

_ENTRIES = 2**22  # entries of the largest array made at once


class PredictiveCheck(NamedTuple):
    """A statistic of the observed rankings compared with that of replicated ones.

    :param observed: the statistic of the observed rankings, any shape.
    :param mean: mean over the replications, the same shape.
    :param interval: the interval that holds 90% of the replications, shape ``(…, 2)``.
    :param p_value: posterior predictive p-value: share of the replications above the observed
        value, where equal ones count half. Near 0 or 1 if the model does not reproduce the value.
    """

    observed: np.ndarray
    mean: np.ndarray
    interval: np.ndarray
    p_value: np.ndarray


class PredictiveChecks(NamedTuple):
    """The checks of :func:`~numpyro_rankings.posterior_predictive_checks`.

    :param top: share of the rankings that have each item first, shape ``(n,)``; of partial orders
        the share of the judges who put it above all others, tied with none.
    :param pairs: share of the rankings that put item ``i`` (row) above ``j`` (column), among those
        that order the two; NaN if none does; shape ``(n, n)``. A ranking orders two items if it
        lists at least one of them (an unlisted item is below the listed ones) and, with choice
        sets, was offered both. A tie is no order.
    :param items: names of the items, in their order.
    """

    top: PredictiveCheck
    pairs: PredictiveCheck
    items: tuple[str, ...]


def posterior_predictive_checks(
    key: Array, samples: Any, rankings: Rankings | PartialOrders, num_draws: int = 100
) -> PredictiveChecks:
    """Compare the rankings with replicated ones drawn from the fitted model [1, 2].

    For each of some draws every ranking is replicated from its cluster in that draw, with the same
    length and the same choice set. No kernel here models lengths, so they are not checked. Of
    partial orders the ties are kept as the lengths are: a judge whose first two items are tied ties
    the first two of a replication, and who compared some pairs compares the same pairs. The
    labels were fitted to these rankings, so a mixture of many clusters reproduces more than it
    would predict.

    :param key: a JAX random key.
    :param samples: ``mcmc.get_samples()`` of a Mallows or Plackett–Luce kernel, grouped by chain or
        not, or anything else that :meth:`Draws.of() <numpyro_rankings.Draws.of>` takes.
    :param rankings: the rankings, or partial orders, that were fitted. Under a gamma process the
        items are those that are listed; replicated lists may have others, so that their shares
        need not sum to 1.
    :param num_draws: number of draws to replicate, evenly spaced. Each keeps ``4 n²`` bytes.
    :raises ValueError: if the samples are of another kind or of other rankings, or if ``num_draws``
        is not positive.

    **References:**

    1. Rubin, D. B. (1984), *Bayesianly justifiable and relevant frequency calculations for the
       applied statistician*, Annals of Statistics.
    2. Gelman, A., Meng, X.-L., Stern, H. (1996), *Posterior predictive assessment of model fitness
       via realized discrepancies*, Statistica Sinica.
    """
    check_whole("num_draws", num_draws)
    draws = Draws.of(samples)
    draws.check_family()
    draws = draws.with_rankings(rankings)
    made = replicate(key, draws, evenly(draws.num_chains * draws.num_draws, num_draws))
    return PredictiveChecks(
        _check(made.seen_first, made.first), _check(made.seen_above, made.above), draws.said.items
    )


class Replications(NamedTuple):
    """Shares of the judges who put each item first, and of those who put it above another.

    Of D replications **first**, (D, n), and **above**, (D, n, n), row above column among those that
    order the two, NaN where none does; and of the observed rankings **seen_first** and
    **seen_above**.
    """

    first: np.ndarray
    above: np.ndarray
    seen_first: np.ndarray
    seen_above: np.ndarray

    def mean_ranks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return 1 + the sum of the shares above each item, of the replications and as observed.

        Pairs that somewhere nobody orders are left out. Of full rankings these are mean ranks.
        """
        is_known = ~(np.isnan(self.above).any(0) | np.isnan(self.seen_above))
        both = (np.where(is_known, x, 0.0).sum(-2) + 1 for x in (self.above, self.seen_above))
        replicated, observed = both
        return replicated, observed


def replicate(key: Array, draws: Draws, kept: np.ndarray) -> Replications:
    """Replicate all rankings in some draws, numbered over all chains."""
    family, said, flat = draws.check_family(), draws.said, draws.flat()
    refuse_weights(said, "a posterior predictive check")
    names = [*family.parameters, *(["assignments"] if draws.labels is not None else [])]
    some = {name: jnp.asarray(flat[name][kept]) for name in names}
    some["key"] = jax.random.split(key, len(kept))
    form = _OfOrders.of(said) if isinstance(said, PartialOrders) else _OfLists.of(said)
    size = said.num_rankings
    batch = int(np.clip(_ENTRIES // form.entries, 1, size))
    top, wins = _replicate(some, form, said.row_index, family, batch)
    seen_top, seen_wins = form.tally(said.table, jnp.arange(said.num_rows), said.counts)
    first, seen_first = np.asarray(top) / size, np.asarray(seen_top) / size
    above, seen_above = _shares(np.asarray(wins)), _shares(np.asarray(seen_wins))
    return Replications(first, above, seen_first, seen_above)


def _shares(wins: np.ndarray) -> np.ndarray:
    """Shares of the rankings that order a pair, NaN if none does."""
    both = wins + np.swapaxes(wins, -1, -2)
    return np.divide(wins, both, out=np.full(wins.shape, np.nan), where=both > 0)


def _check(observed: np.ndarray, replicated: np.ndarray) -> PredictiveCheck:
    """Check against replications along the first axis, leaving out NaN."""
    there = ~np.isnan(replicated)
    number = there.sum(0)
    none = np.isnan(observed) | (number == 0)
    values = np.where(none, 0.0, replicated)
    above = np.where(there, (values > observed) + 0.5 * (values == observed), 0.0).sum(0)

    def known(x: np.ndarray) -> np.ndarray:
        return np.where(none.reshape(none.shape + (1,) * (x.ndim - none.ndim)), np.nan, x)

    interval = np.moveaxis(np.nanquantile(values, INTERVAL, axis=0), 0, -1)
    p_value = above / np.maximum(number, 1)
    return PredictiveCheck(
        observed, known(np.nanmean(values, axis=0)), known(interval), known(p_value)
    )


class _OfLists(NamedTuple):
    """What is kept of lists when they are replicated: the lengths and the choice sets."""

    lengths: Array  # (rows,)
    offered: Array | None  # (rows, n)
    like: Array  # of the shape (T, n), which says how many places and items there are

    @classmethod
    def of(cls, rankings: Rankings) -> "_OfLists":
        offered = None if rankings.choice_sets is None else jnp.asarray(rankings.choice_sets, bool)
        shape = rankings.table.shape[1], rankings.num_items
        return cls(rankings.lengths, offered, jnp.zeros(shape, bool))

    @property
    def entries(self) -> int:
        """Entries for one list: its pairs of places, and some numbers for each item."""
        return self.like.shape[0] ** 2 + 4 * self.like.shape[1]

    def tally(self, lists: Array, row: Array, weight: Array) -> tuple[Array, Array]:
        """Count by :func:`_count` lists that stand for the judges of some rows."""
        offered = None if self.offered is None else self.offered[row]
        is_listed = jnp.arange(lists.shape[1]) < self.lengths[row, None]
        return _count(jnp.where(is_listed, lists, -1), weight, offered, self.like.shape[1])


class _OfOrders(NamedTuple):
    """What is kept of partial orders: which places are tied, or which items were compared.

    A judge with buckets of tied items ties the same places in a replication. Of another one the
    pairs of items whose order follows from what was said are the same, and their order is that of
    the replication.
    """

    levels: Array  # the bucket of each place, T for all places that are not listed, (rows, T + 1)
    is_single: Array  # whether the first place is not tied, (rows,)
    are_buckets: Array  # (rows,)
    compared: Array | None  # (rows, n, n), if there are other rows than buckets
    offered: Array | None  # (rows, n)
    like: Array  # as of lists

    @classmethod
    def of(cls, orders: PartialOrders) -> "_OfOrders":
        num_places, num_rows = orders.table.shape[1], orders.num_rows
        levels = jnp.where(orders.listed >= 0, orders.levels, num_places)
        levels = jnp.concatenate([levels, jnp.full((num_rows, 1), num_places)], axis=1)
        compared, are_buckets = None, orders.are_buckets
        if not bool(are_buckets.all()):
            whole = orders.of_all_items()
            rows = jnp.arange(num_rows)[:, None, None]
            cells = rows, whole.listed[:, :, None], whole.listed[:, None, :]
            both = whole.above | jnp.swapaxes(whole.above, 1, 2)
            compared = jnp.zeros_like(both).at[cells].set(both)
        like = jnp.zeros((num_places, orders.num_items), bool)
        is_single = levels[:, 0] != levels[:, 1]
        return cls(levels, is_single, are_buckets, compared, orders.offered(), like)

    @property
    def entries(self) -> int:
        """Entries for one row: its pairs of items."""
        return 4 * self.like.shape[1] ** 2

    def tally(self, lists: Array, row: Array, weight: Array) -> tuple[Array, Array]:
        """Count as :func:`_count` what judges of some rows say whose orderings are these lists."""
        return _count_orders(self, lists, row, weight)


@partial(jax.jit, static_argnames=("family", "batch"))
def _replicate(
    draws: dict[str, Array],
    form: _OfLists | _OfOrders,
    row_index: Array,
    family: RankingFamily,
    batch: int,
) -> tuple[Array, Array]:
    """Counts of replicated rankings, one row for each draw."""
    size, (length, num_items) = len(row_index), form.like.shape
    num_batches = -(-size // batch)
    padding = (0, num_batches * batch - size)
    row = jnp.pad(row_index, padding).reshape(num_batches, batch)
    weight = jnp.pad(jnp.ones(size, jnp.int32), padding).reshape(num_batches, batch)

    def one_draw(draw: dict[str, Array]) -> tuple[Array, Array]:
        labels = draw.get("assignments", jnp.zeros(size, jnp.int32)).astype(jnp.int32)
        labels = jnp.pad(labels, padding).reshape(num_batches, batch)

        def add(total: tuple, one: tuple) -> tuple[tuple, None]:
            key, labels, row, weight = one
            offered = None if form.offered is None else form.offered[row]
            lists = family.replicate(key, draw, labels, offered, length)
            return jax.tree.map(jnp.add, total, form.tally(lists, row, weight)), None

        start = jnp.zeros(num_items, jnp.int32), jnp.zeros((num_items, num_items), jnp.int32)
        keys = jax.random.split(draw["key"], num_batches)
        return jax.lax.scan(add, start, (keys, labels, row, weight))[0]

    return jax.lax.map(one_draw, draws)


@jax.jit
def _count_orders(form: _OfOrders, lists: Array, row: Array, weight: Array) -> tuple[Array, Array]:
    """Numbers of judges with each item alone first, (n,), and with one above another, (n, n)."""
    num_items, num_lists = form.like.shape[1], len(lists)
    # the place of each item among those offered, that of the missing ones after all others
    is_item = (lists >= 0) & (lists < num_items)
    columns, rows = jnp.where(is_item, lists, num_items), jnp.arange(num_lists)[:, None]
    place = jnp.full((num_lists, num_items + 1), lists.shape[1], jnp.int32)
    place = place.at[rows, columns].set(jnp.arange(lists.shape[1], dtype=jnp.int32))[:, :-1]
    offered = None if form.offered is None else form.offered[row]
    if offered is not None:
        is_ahead = (place[:, :, None] < place[:, None, :]) & offered[:, :, None]
        place = jnp.sum(is_ahead, axis=1, dtype=jnp.int32)
    levels = form.levels[row]
    level = jnp.take_along_axis(levels, jnp.minimum(place, levels.shape[1] - 1), axis=1)
    above = level[:, :, None] < level[:, None, :]
    is_first = (place == 0) & form.is_single[row, None]
    if form.compared is not None:
        said = form.compared[row] & (place[:, :, None] < place[:, None, :])
        are_buckets = form.are_buckets[row]
        above = jnp.where(are_buckets[:, None, None], above, said)
        others = (num_items if offered is None else offered.sum(1, keepdims=True)) - 1
        is_best = (place == 0) & (said.sum(2) == others)
        is_first = jnp.where(are_buckets[:, None], is_first, is_best)
    if offered is not None:
        above &= offered[:, :, None] & offered[:, None, :]
        is_first &= offered
    return weight @ is_first.astype(jnp.int32), jnp.einsum(
        "r,rij->ij", weight, above.astype(jnp.int32)
    )


@partial(jax.jit, static_argnames="num_items")
def _count(
    lists: Array, weight: Array, offered: Array | None, num_items: int
) -> tuple[Array, Array]:
    """Numbers of rankings with each item first, (n,), and with one item above another, (n, n).

    A listed item is above all offered items except those listed before it.
    """
    is_item = (lists >= 0) & (lists < num_items)
    item = jnp.where(is_item, lists, num_items)  # one more cell, for entries to be dropped
    first = sum_by_label(weight, item[:, 0], num_items + 1)[:num_items]
    times = jnp.zeros(num_items + 1, jnp.int32)
    if offered is None:
        by_item = scatter_add(times, item, weight[:, None])[:num_items]
        above = jnp.broadcast_to(by_item[:, None], (num_items, num_items))
    else:
        rows = jnp.zeros((num_items + 1, num_items), jnp.int32)
        amounts = weight[:, None] * offered.astype(jnp.int32)
        above = jax.lax.fori_loop(
            0, item.shape[1], lambda t, x: x.at[item[:, t]].add(amounts), rows
        )[:num_items]
    earlier, later = np.triu_indices(lists.shape[1], 1)
    pairs = item[:, later] * (num_items + 1) + item[:, earlier]
    after = scatter_add(jnp.zeros((num_items + 1) ** 2, jnp.int32), pairs, weight[:, None])
    after = after.reshape(num_items + 1, num_items + 1)[:num_items, :num_items]
    return first, (above - after) * (1 - jnp.eye(num_items, dtype=jnp.int32))
