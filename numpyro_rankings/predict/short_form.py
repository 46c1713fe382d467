"""Which few items to ask for, so that most judges are still put into the right group."""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.families import PLACKETT_LUCE, RankingFamily
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.partitions import evenly
from numpyro_rankings.posterior.point_estimates import reference_partition
from numpyro_rankings.predict.groups import belonging_of, checked, groups
from numpyro_rankings.rankings import PartialOrders, Rankings, build_rankings

_MOST_SETS = 1000  # of items that are all tried; of more, the best ones are built up one by one
_MOST_ASKED = 6  # items, whose 720 orders are counted among the judges
_OF_ALL = 2000  # simulated judges whose full lists are put into groups


class ShortForm(NamedTuple):
    """The items to ask for, and the shares of judges who are put right.

    - **items** - names of the items, in the order of the fit.
    - **share** - of judges who are put right by their order of these items.
    - **by_number** - the best items of each number from 2 on with their share.
    - **share_of_all** - the share by the order of all items.
    - **share_of_none** - the share if all are put into the largest group.
    """

    items: tuple[str, ...]
    share: float
    by_number: tuple[tuple[tuple[str, ...], float], ...]
    share_of_all: float
    share_of_none: float


def short_form(
    draws: Any,
    rankings: Rankings | PartialOrders | None,
    num_items: int = 4,
    reference: Any = None,
    *,
    num_components: int | Literal["auto"] | None = "auto",
    num_judges: int = 40_000,
    key: Array | None = None,
) -> ShortForm:
    """Find the few items whose order tells best to which group a judge belongs, by simulation.

    Judges are simulated from the groups of the draws, as many of each as its share; places that the
    model says nothing about are filled at random. For half of the judges it is counted how often
    each order of some items comes from each group. The items are those whose orders tell most of
    these judges right, and the shares are those of the other half. Up to 1,000 sets of items are
    all tried; of more items, one after another is added to the best pair.

    :param draws: as for :func:`~numpyro_rankings.predict.groups`, as are **rankings**,
        **reference**, whose groups are told apart, and **num_components**.
    :param num_items: how many to ask for, from 2 to 6.
    :param num_judges: how many are simulated.
    :param key: a JAX random key; by default always the same one.
    :raises ValueError: if there are no groups, or not so many items.
    """
    check_whole("num_items", num_items)
    check_whole("num_judges", num_judges)
    fitted, labels = checked(Draws.of(draws, rankings, num_components))
    names = fitted.items or ()
    most = min(_MOST_ASKED, len(names))
    if not 2 <= num_items <= most:
        raise ValueError(f"num_items must be from 2 to {most}, got {num_items}")
    key = jax.random.key(0) if key is None else key
    chosen = reference_partition(labels, reference).labels
    lists, truth = _simulated(key, fitted, chosen, num_judges)
    ranks = _ranks(lists, len(names))
    half = num_judges // 2
    every = []
    for items in _best_sets(ranks[:half], truth[:half], num_items):
        share = _share_right(ranks, truth, items, half)
        every.append((tuple(names[k] for k in items), share))
    some = slice(half, half + _OF_ALL)
    new = build_rankings(lists[some], names, np.ones(len(truth[some]), int))
    found = groups(fitted, None, new, chosen)
    of_all = float(np.mean(found.labels == truth[some]))
    of_none = float(np.bincount(truth).max() / len(truth))
    return ShortForm(*every[-1], tuple(every), of_all, of_none)


def _simulated(
    key: Array, draws: Draws, reference: np.ndarray, number: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return lists of simulated judges, (number, T), and their groups, (number,), in any order."""
    family, most = draws.check_family(), max(1, 200 // draws.num_chains)
    some = draws.take(evenly(draws.num_draws, most))
    belonging = belonging_of(some, some.num_slots or 0, reference)[:, :-1, :-1]
    flat = some.flat()
    each = -(-number // len(belonging))
    rng = np.random.default_rng(np.asarray(jax.random.bits(key, (4,), "uint32")))
    # the shares of clusters that have members: of the others nothing is known
    sizes = np.asarray(flat.get("shares", flat["cluster_sizes"]), float) * belonging.any(2)
    clusters = _choices(rng, np.repeat(sizes, each, 0)).reshape(len(sizes), each)
    of_judges = belonging[np.arange(len(sizes))[:, None], clusters]
    truth = _choices(rng, of_judges.reshape(-1, of_judges.shape[-1]))
    parameters = {name: flat[name] for name in family.parameters}
    if family.has_pool:  # the order of items that are known does not depend on the others
        family, parameters = PLACKETT_LUCE, {"weights": flat["weights"]}
    length = len(draws.items or ())
    lists = np.asarray(_replicates(key, parameters, clusters, family, length))
    lists = lists.reshape(-1, lists.shape[-1])
    order = rng.permutation(len(lists))[:number]
    return lists[order], truth[order]


def _choices(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    """Draw an index for each row of weights, (rows, k)."""
    bounds = np.cumsum(weights, axis=1)
    at = rng.uniform(size=(len(bounds), 1)) * bounds[:, -1:]
    return (at >= bounds).sum(1).clip(max=weights.shape[1] - 1)


@partial(jax.jit, static_argnames=("family", "length"))
def _replicates(
    key: Array, draws: dict[str, Array], clusters: Array, family: RankingFamily, length: int
) -> Array:
    def of_draw(inputs: tuple) -> Array:
        key, draw, labels = inputs
        return family.replicate(key, draw, labels, None, length)

    keys = jax.random.split(key, len(clusters))
    return jax.lax.map(of_draw, (keys, draws, jnp.asarray(clusters)))


def _ranks(lists: np.ndarray, num_items: int) -> np.ndarray:
    """Return the place of each item, (judges, n); those that are not listed are last, at random."""
    ranks = num_items + np.random.default_rng(0).random((len(lists), num_items))
    rows = np.arange(len(lists))[:, None]
    listed = lists >= 0
    places = np.broadcast_to(np.arange(lists.shape[1]), lists.shape)
    ranks[np.broadcast_to(rows, lists.shape)[listed], lists[listed]] = places[listed]
    return ranks


def _best_sets(ranks: np.ndarray, truth: np.ndarray, most: int) -> Iterator[tuple[int, ...]]:
    """Yield the best items of each number from 2 to **most**."""
    num_items = ranks.shape[1]
    best: tuple[int, ...] = ()
    for number in range(2, most + 1):
        tried: Sequence[tuple[int, ...]]
        if number == 2 or math.comb(num_items, number) <= _MOST_SETS:
            tried = list(itertools.combinations(range(num_items), number))
        else:
            tried = [tuple(sorted((*best, k))) for k in range(num_items) if k not in best]
        best = max(tried, key=lambda items: _table(ranks, truth, items).max(1).sum())
        yield best


def _orders(ranks: np.ndarray, items: Sequence[int]) -> np.ndarray:
    """Return a number for the order of some items by each judge, (judges,)."""
    places = ranks[:, list(items)].argsort(1)
    return places @ len(items) ** np.arange(len(items))


def _table(ranks: np.ndarray, truth: np.ndarray, items: Sequence[int]) -> np.ndarray:
    """Return how many judges of each group have each order of some items, (orders, groups)."""
    number = int(truth.max()) + 1
    cells = _orders(ranks, items) * number + truth
    return np.bincount(cells, minlength=number * len(items) ** len(items)).reshape(-1, number)


def _share_right(ranks: np.ndarray, truth: np.ndarray, items: Sequence[int], half: int) -> float:
    """Return the share of the second half that the first half tells right."""
    table = _table(ranks[:half], truth[:half], items)
    rule = np.where(table.any(1), table.argmax(1), table.sum(0).argmax())
    return float(np.mean(rule[_orders(ranks[half:], items)] == truth[half:]))
