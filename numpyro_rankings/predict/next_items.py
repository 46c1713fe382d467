"""Prediction of what comes next in rankings that are not finished."""

from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp

from numpyro_rankings.families import RankingFamily
from numpyro_rankings.families.scored import ScoredLists
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.sums import scatter_add
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.partitions import evenly
from numpyro_rankings.posterior.predictive_density import (
    check_partition,
    log_terms_of_rows,
    mean_log_rows,
    prepared,
)
from numpyro_rankings.predict.groups import (
    CELLS,
    matched,
    parameters_with_empty,
    parts_of,
    some_draws,
)
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.words import plural

_NEW_CLUSTERS = 100  # drawn for each draw, where a new cluster has no closed form
_ENTRIES = 2**24  # of the probabilities of places that are counted at once


class NextItems(NamedTuple):
    """What :func:`next_items` says of M lists and n items.

    - **next** - the probability that each item is the next one, (M, n); 0 for those that are listed
      and those that were not offered, and in lists as long as the longest that was fitted.
    - **places** - the probability of each item (rows) at each place (columns), (M, n, n), by
      simulation, where listed items have their place for certain. Places that no fitted list has
      are in any order. None if the model does not say.
    - **items** - names of the items, in their order; those of the draws.
    """

    next: np.ndarray
    places: np.ndarray | None
    items: tuple[str, ...]

    def top(self, number: int) -> np.ndarray:
        """Return the probability of each item at the first places, (M, n); 1: that it wins.

        :param number: how many of them.
        :raises ValueError: if there are no probabilities of places.
        """
        check_whole("number", number, 1)
        if self.places is None:
            raise ValueError("there are no probabilities of places")
        return self.places[:, :, :number].sum(-1)


def next_items(
    source: Any,
    partial_lists: Rankings | None = None,
    *,
    items: Any = None,
    members: Any = None,
    num_orders: int = 2000,
    num_components: int | Literal["auto"] | None = "auto",
    max_draws: int | None = None,
    key: Array | None = None,
) -> NextItems:
    r"""Return which items come next, and at which places, in lists that are not finished.

    A list :math:`π` of a new judge goes on with item i with probability

    .. math:: p(i | π, \text{data}) = p(π \circ i | \text{data}) / p(π | \text{data}),

    where both densities are those of :func:`~numpyro_rankings.log_predictive_density`: the list
    also says to which groups the judge may belong, and "none of them" counts where the model has
    it. The later places are simulated: for each draw, weighted by the density of the list, a group
    is drawn given the list, and then what follows the list in it.

    :param source: a run, an MCMC, ArviZ data, samples or :class:`~numpyro_rankings.Draws`.
    :param partial_lists: the lists so far, M rows; their items are matched by name to those of the
        draws, if these have names. None stands for one judge of whom nothing is known, so that the
        result is that of everybody.
    :param items: the names (or indices) of the items in the race, at least two; by default all.
        Lists may have no others, and judges with choice sets take part with what is in both. A
        Mallows model then says nothing about places of lists with items, and about the next item
        if at most 16 are not ordered.
    :param members: indices of some fitted rankings, in the order of ``rankings.expand()`` (those of
        a file have it by ``survey.label_index``), to predict a judge from their clusters: of one
        of them taken at random, in each draw. Only without ``partial_lists``.
    :param num_orders: number of orders that are simulated for each list; 0 for no probabilities of
        places. Their standard error is about :math:`0.5 / \sqrt{\mathrm{num\_orders}}` at most,
        and larger where a list is much more probable in few of the draws.
    :param num_components: as for :func:`~numpyro_rankings.log_predictive_density`.
    :param max_draws: as for :func:`groups`.
    :param key: a JAX random key, by default always the same one.
    :return: see :class:`NextItems`. Under a gamma process the probabilities of the next item do not
        add up to 1: the rest is that of items that no fitted ranking lists.
    :raises ValueError: if the draws are of a block, or the items or lists are not those of the
        draws.

    .. doctest::

       >>> from numpyro_rankings import Rankings
       >>> from numpyro_rankings.predict import next_items
       >>> weights = [[0.6, 0.3, 0.1], [0.6, 0.2, 0.2]]  # as PlackettLuceGibbs().get_samples()
       >>> next_items({"weights": weights, "log_joint": [0.0, 0.0]}).next.round(2)
       array([[0.6 , 0.25, 0.15]], dtype=float32)
       >>> said = Rankings.from_orderings([[0]], num_items=3)
       >>> next_items({"weights": weights, "log_joint": [0.0, 0.0]}, said).next.round(3)
       array([[0.   , 0.625, 0.375]], dtype=float32)
    """
    draws = Draws.of(source, None, num_components)
    family = draws.check_family()
    check_partition(draws)
    check_whole("num_orders", num_orders, 0)
    if not draws.is_by_itself:
        raise ValueError("the samples must be those of a kernel by itself, not of a block of Gibbs")
    names = draws.items or tuple(str(k) for k in range(draws.num_items or 0))
    lists, offered = _read_lists(draws, partial_lists, names)
    if items is not None:
        race = _read_race(items, names)
        _check_in_race(lists, race, names)
        offered = race & (True if offered is None else offered) & np.ones((len(lists), 1), bool)
    if max_draws is not None:
        check_whole("max_draws", max_draws)
    lists, offered, row_of_given = _merged(lists, offered)
    num_terms = lists.shape[0] * (lists.shape[1] + 1) * len(names) * (draws.num_slots or 1)
    draws = some_draws(draws, num_terms, max_draws)
    by_draw = parameters_with_empty(draws)
    if members is not None:
        if partial_lists is not None:
            raise ValueError("members are for a judge of whom nothing is known: give one of them")
        by_draw["shares"] = _shares_of_members(draws, members, by_draw)
    key = jax.random.key(0) if key is None else key
    log_lists, following = _score(key, draws, by_draw, family, lists, offered)
    places = None
    says_places = family.continues_lists and num_orders > 0
    if says_places and (offered is None or family.takes_choice_sets or not lists.size):
        places = _simulate(key, draws, by_draw, family, lists, offered, log_lists, num_orders)
        places = places[row_of_given]
    return NextItems(following[row_of_given], places, names)


def _read_lists(
    draws: Draws, lists: Rankings | None, names: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return lists of the items of the draws, padded with -1, (M, T), and choice sets, (M, n)."""
    if lists is None:
        return np.full((1, 0), -1, np.int32), None
    if not isinstance(lists, Rankings):
        raise TypeError(
            f"partial_lists must be Rankings, of which the first places are known, got "
            f"{type(lists).__name__}"
        )
    if draws.items is not None:
        lists = matched(draws, draws.check_family(), lists)
    elif lists.num_items != len(names):
        raise ValueError(
            f"the lists are of {lists.num_items} items, the draws of {len(names)}, without names"
        )
    offered = lists.choice_sets
    return np.asarray(lists.orderings), None if offered is None else np.asarray(offered)


def _read_race(items: Any, names: tuple[str, ...]) -> np.ndarray:
    """Return which items are in the race, (n,)."""
    race, numbers = np.zeros(len(names), bool), {name: k for k, name in enumerate(names)}
    for item in items:
        is_index = isinstance(item, int | np.integer) and not isinstance(item, bool)
        index = item if is_index else numbers.get(str(item), -1)
        if not 0 <= index < len(names):
            raise ValueError(f"items has {item!r}, which is no item of the draws")
        race[index] = True
    if race.sum() < 2:
        raise ValueError(f"a race needs two items, got {plural(int(race.sum()), 'item')}")
    return race


def _check_in_race(lists: np.ndarray, race: np.ndarray, names: tuple[str, ...]) -> None:
    rows, stages = np.nonzero((lists >= 0) & ~race[lists])
    if len(rows):
        name = names[lists[rows[0], stages[0]]]
        raise ValueError(f"row {rows[0] + 1} lists {name!r}, which is not among items")


def _merged(
    lists: np.ndarray, offered: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Return distinct lists with their choice sets, and which of them each given one is, (M,)."""
    width = lists.shape[1]
    both = lists if offered is None else np.concatenate([lists, offered], axis=1)
    if not both.shape[1]:
        return lists, None, np.zeros(len(lists), int)
    distinct, row_of_given = np.unique(both, axis=0, return_inverse=True)
    sets = None if offered is None else distinct[:, width:].astype(bool)
    return distinct[:, :width].astype(np.int32), sets, row_of_given.reshape(-1)


def _shares_of_members(draws: Draws, members: Any, by_draw: dict[str, Any]) -> np.ndarray:
    """Return the share of some rankings that each cluster has in each draw, (D, C)."""
    if draws.labels is None:
        raise ValueError("the draws are of a single population, without members")
    labels = draws.labels.reshape(-1, draws.labels.shape[-1])
    which = np.unique(np.asarray(members))
    if (
        not which.size
        or which.dtype.kind not in "iu"
        or which[0] < 0
        or which[-1] >= labels.shape[1]
    ):
        raise ValueError(f"members must be indices of the {labels.shape[1]} fitted rankings")
    of_members, slots = labels[:, which].astype(int), by_draw["cluster_sizes"].shape[1]
    return np.stack([(of_members == c).mean(1) for c in range(slots)], axis=1).astype(np.float32)


def _score(
    key: Array,
    draws: Draws,
    by_draw: dict[str, Any],
    family: RankingFamily,
    lists: np.ndarray,
    offered: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log densities of the lists, (M,), and the probabilities of the next item."""
    num_lists, num_items = len(lists), draws.num_items or 0
    is_left = np.ones((num_lists, num_items), bool) if offered is None else offered.copy()
    rows, stages = np.nonzero(lists >= 0)
    is_left[rows, lists[rows, stages]] = False
    lengths = (lists >= 0).sum(1)
    is_left[lengths >= family.most_listed(draws.samples)] = False
    of_list, candidates = np.nonzero(is_left)
    following = np.pad(lists, [(0, 0), (0, 1)], constant_values=-1)[of_list]
    following[np.arange(len(of_list)), lengths[of_list]] = candidates
    said = lengths > 0
    width = following.shape[1]
    table = np.concatenate(
        [np.pad(lists[said], [(0, 0), (0, width - lists.shape[1])], constant_values=-1), following]
    )
    sets = None if offered is None else np.concatenate([offered[said], offered[of_list]])
    values = _log_densities(key, draws, by_draw, family, table, sets)
    log_lists = np.zeros(num_lists, values.dtype)
    log_lists[said] = values[: said.sum()]
    probabilities = np.zeros((num_lists, num_items), values.dtype)
    probabilities[of_list, candidates] = np.exp(values[said.sum() :] - log_lists[of_list])
    return log_lists, probabilities


def _log_densities(
    key: Array,
    draws: Draws,
    by_draw: dict[str, Any],
    family: RankingFamily,
    table: np.ndarray,
    offered: np.ndarray | None,
) -> np.ndarray:
    rankings = Rankings.from_orderings(table, num_items=draws.num_items, choice_sets=offered)
    distinct, row_of_given = rankings.merged()
    size = max(1, CELLS // (draws.num_slots or 1))
    found = [
        np.asarray(mean_log_rows(key, by_draw, part, family, draws.num_components, _NEW_CLUSTERS))
        for part in parts_of(family, prepared(family, distinct), size)
    ]
    return np.concatenate(found)[row_of_given]


def _simulate(
    key: Array,
    draws: Draws,
    by_draw: dict[str, Any],
    family: RankingFamily,
    lists: np.ndarray,
    offered: np.ndarray | None,
    log_lists: np.ndarray,
    num_orders: int,
) -> np.ndarray:
    """Return the probability of each item at each place, (M, n, n)."""
    num_lists, num_items = len(lists), draws.num_items or 0
    lists = np.pad(lists, [(0, 0), (0, num_items - lists.shape[1])], constant_values=-1)
    kept = evenly(draws.num_chains * draws.num_draws, num_orders)
    repeats = -(-num_orders // len(kept))
    some = {name: jnp.asarray(x[kept]) for name, x in by_draw.items()}
    size = int(np.clip(_ENTRIES // (repeats * num_items**2), 1, num_lists))
    found = []
    for start in range(0, num_lists, size):
        # the last batch is filled up, so that there is one program
        which = np.arange(start, start + size) % num_lists
        sets = None if offered is None else jnp.asarray(offered[which])
        found.append(
            _count_places(
                jax.random.fold_in(key, start),
                some,
                ScoredLists(jnp.asarray(lists[which]), sets),
                log_lists[which],
                family,
                draws.num_components,
                repeats,
            )
        )
    places = np.concatenate([np.asarray(x) for x in found])[:num_lists]
    rows, stages = np.nonzero(lists >= 0)
    places[rows, lists[rows, stages], stages] = 1.0
    return places


@partial(jax.jit, static_argnames=("family", "num_components", "repeats"))
def _count_places(
    key: Array,
    draws: dict[str, Array],
    rows: ScoredLists,
    log_lists: Array,
    family: RankingFamily,
    num_components: int | None,
    repeats: int,
) -> Array:
    """Return how often each item has each place after the lists, (M, n, n)."""
    num_lists, num_items = rows.orderings.shape
    lengths = jnp.sum(rows.orderings >= 0, axis=1)
    repeated = jnp.tile(jnp.arange(num_lists), repeats)

    def add_draw(
        totals: tuple[Array, Array], inputs: tuple[Array, dict[str, Array]]
    ) -> tuple[tuple[Array, Array], None]:
        (total, weight), (key, draw) = totals, inputs
        key_new, key_labels, key_rest = jax.random.split(key, 3)
        terms = log_terms_of_rows(key_new, draw, rows, family, num_components, _NEW_CLUSTERS)
        weights = jnp.exp(logsumexp(terms, axis=0) - log_lists)
        labels = jax.random.categorical(key_labels, terms[:, repeated], axis=0)
        sets = None if rows.offered is None else rows.offered[repeated]
        rest = family.continued(key_rest, draw, labels, rows.orderings[repeated], sets)
        places = lengths[repeated, None] + jnp.arange(num_items)
        cells = repeated[:, None], jnp.where(rest >= 0, rest, num_items), places
        return (scatter_add(total, cells, weights[repeated, None]), weight + weights), None

    start = jnp.zeros((num_lists, num_items, num_items)), jnp.zeros(num_lists)
    num_draws = len(draws[family.parameters[0]])
    inputs = jax.random.split(key, num_draws), draws
    (total, weight), _ = jax.lax.scan(add_draw, start, inputs)
    return total / (weight * repeats)[:, None, None]
