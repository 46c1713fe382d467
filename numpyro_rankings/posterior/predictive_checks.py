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
from numpyro_rankings.rankings import Rankings

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

    :param top: share of the rankings that have each item first, shape ``(n,)``.
    :param pairs: share of the rankings that put item ``i`` (row) above ``j`` (column), among those
        that order the two; NaN if none does; shape ``(n, n)``. A ranking orders two items if it
        lists at least one of them (an unlisted item is below the listed ones) and, with choice
        sets, was offered both.
    :param items: names of the items, in their order.
    """

    top: PredictiveCheck
    pairs: PredictiveCheck
    items: tuple[str, ...]


def posterior_predictive_checks(
    key: Array, samples: Any, rankings: Rankings, num_draws: int = 100
) -> PredictiveChecks:
    """Compare the rankings with replicated ones drawn from the fitted model [1, 2].

    For each of some draws every ranking is replicated from its cluster in that draw, with the same
    length and the same choice set. No kernel here models lengths, so they are not checked. The
    labels were fitted to these rankings, so a mixture of many clusters reproduces more than it
    would predict.

    :param key: a JAX random key.
    :param samples: ``mcmc.get_samples()`` of a Mallows or Plackett–Luce kernel, grouped by chain or
        not, or anything else that :meth:`Draws.of() <numpyro_rankings.Draws.of>` takes.
    :param rankings: the rankings that were fitted. Under a gamma process the items are those that
        are listed; replicated lists may have others, so their shares need not sum to 1.
    :param num_draws: number of draws to replicate, evenly spaced. Each keeps ``4 n²`` bytes.
    :raises ValueError: if the samples are of another kind or of other rankings, or if ``num_draws``
        is not positive.

    **References:**

    1. Rubin, D. B. (1984), *Bayesianly justifiable and relevant frequency calculations for the
       applied statistician*, Annals of Statistics.
    2. Gelman, A., Meng, X.-L., Stern, H. (1996), *Posterior predictive assessment of model fitness
       via realized discrepancies*, Statistica Sinica.
    """
    draws = Draws.of(samples)
    family = draws.check_family()
    check_whole("num_draws", num_draws)
    rankings = draws.with_rankings(rankings).fitted
    flat, total = draws.flat(), draws.num_chains * draws.num_draws
    kept = evenly(total, num_draws)
    names = [*family.parameters, *(["assignments"] if draws.labels is not None else [])]
    some = {name: jnp.asarray(flat[name][kept]) for name in names}
    some["key"] = jax.random.split(key, len(kept))
    listed = jnp.asarray(rankings.orderings, jnp.int32)
    offered = None if rankings.choice_sets is None else jnp.asarray(rankings.choice_sets, bool)
    # entries for one list: its pairs of places, and some numbers for each item
    per_list = listed.shape[1] ** 2 + 4 * rankings.num_items
    batch = int(np.clip(_ENTRIES // per_list, 1, rankings.num_rankings))
    top, wins = _replicate(some, rankings, family, batch)
    seen_top, seen_wins = _count(listed, rankings.counts, offered, rankings.num_items)
    size = rankings.num_rankings
    return PredictiveChecks(
        _check(np.asarray(seen_top) / size, np.asarray(top) / size),
        _check(_shares(np.asarray(seen_wins)), _shares(np.asarray(wins))),
        rankings.items,
    )


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


@partial(jax.jit, static_argnames=("family", "batch"))
def _replicate(
    draws: dict[str, Array], rankings: Rankings, family: RankingFamily, batch: int
) -> tuple[Array, Array]:
    """Counts by :func:`_count` of replicated rankings, one row for each draw."""
    size, num_items, length = rankings.num_rankings, rankings.num_items, rankings.orderings.shape[1]
    num_batches = -(-size // batch)
    padding = (0, num_batches * batch - size)
    row = jnp.pad(rankings.row_index, padding).reshape(num_batches, batch)
    weight = jnp.pad(jnp.ones(size, jnp.int32), padding).reshape(num_batches, batch)

    def one_draw(draw: dict[str, Array]) -> tuple[Array, Array]:
        labels = draw.get("assignments", jnp.zeros(size, jnp.int32)).astype(jnp.int32)
        labels = jnp.pad(labels, padding).reshape(num_batches, batch)

        def add(total: tuple, one: tuple) -> tuple[tuple, None]:
            key, labels, row, weight = one
            offered = None if rankings.choice_sets is None else rankings.choice_sets[row]
            lists = family.replicate(key, draw, labels, offered, length)
            is_listed = jnp.arange(lists.shape[1]) < rankings.lengths[row, None]
            counted = _count(jnp.where(is_listed, lists, -1), weight, offered, num_items)
            return jax.tree.map(jnp.add, total, counted), None

        start = jnp.zeros(num_items, jnp.int32), jnp.zeros((num_items, num_items), jnp.int32)
        keys = jax.random.split(draw["key"], num_batches)
        return jax.lax.scan(add, start, (keys, labels, row, weight))[0]

    return jax.lax.map(one_draw, draws)


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
