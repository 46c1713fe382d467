"""To which groups new judges belong; the package says how it is derived."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.families import RankingFamily
from numpyro_rankings.families.base import RowsT
from numpyro_rankings.families.scored import Scored, scored
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.posterior.blocs import Blocs
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.likelihood import log_terms, parameters_of
from numpyro_rankings.posterior.partitions import evenly
from numpyro_rankings.posterior.point_estimates import reference_partition
from numpyro_rankings.posterior.predictive_density import (
    by_name,
    check_lengths,
    check_partition,
    log_terms_of_rows,
    prepared,
)
from numpyro_rankings.rankings import Orders, PartialOrders, Rankings, RankingsError, check_rows

CELLS = 2**22  # log probabilities of rows in clusters, of one draw, that are computed at once
_DRAWS, _FEWEST_DRAWS, _TERMS = 500, 100, 2.5e8  # terms of likelihoods in all draws and clusters
_NEW_CLUSTERS = 20  # drawn for each draw, where a new cluster has no closed form


class GroupsOfJudges(NamedTuple):
    """To which of the fitted groups new judges belong, one row for each row of their rankings.

    - **labels** - the most probable group, int32 (rows,); the number of groups if it is none.
    - **probability** - that of this group, (rows,).
    - **groups** - probability of each group, (rows, groups).
    - **none** - probability of none of the groups, (rows,).
    - **shares** - of a judge of whom nothing is known: each group, and none of them, (groups + 1,).
    - **blocs** - probability of each bloc, (rows, blocs); None without blocs.
    - **num_draws** - over how many draws they are averages.
    """

    labels: np.ndarray
    probability: np.ndarray
    groups: np.ndarray
    none: np.ndarray
    shares: np.ndarray
    blocs: np.ndarray | None
    num_draws: int

    @property
    def says_little(self) -> np.ndarray:
        """Whether a row leaves the probabilities as they are without it, within 10%, (rows,).

        The distance is that of total variation: the probability that moves to other groups.
        """
        return are_near(np.append(self.groups, self.none[:, None], axis=1), self.shares)


def are_near(probabilities: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return whether each row of probabilities, (rows, K), is within 10% of some shares, (K,)."""
    return np.abs(probabilities - shares).sum(1) / 2 < 0.1


class BlocMixture(NamedTuple):
    """What is needed of blocs: **parameters** by name, each (blocs, …), and **sizes**, (blocs,)."""

    parameters: Mapping[str, np.ndarray]
    sizes: np.ndarray

    @property
    def shares(self) -> np.ndarray:
        """The share of each bloc, (blocs,), of a judge of whom nothing is known."""
        return (self.sizes + 1.0) / (self.sizes.sum() + len(self.sizes))  # as they are fitted

    @classmethod
    def of(cls, blocs: Blocs, family: RankingFamily) -> "BlocMixture":
        """Return that of the blocs of the chosen number."""
        sites = {  # a bloc has its center as an ordering
            name: np.stack([x.parameters.get(name, x.consensus_ordering) for x in blocs.blocs])
            for name in family.parameters
        }
        return cls(sites, np.array([x.size for x in blocs.blocs]))


def groups(
    draws: Any,
    rankings: Rankings | PartialOrders | None,
    new: Rankings | PartialOrders,
    reference: Any = None,
    *,
    blocs: Blocs | BlocMixture | None = None,
    num_components: int | Literal["auto"] | None = "auto",
    max_draws: int | None = None,
    key: Array | None = None,
) -> GroupsOfJudges:
    """Tell to which of the fitted groups new judges belong, with probabilities.

    :mod:`numpyro_rankings.predict` says how they are derived. Items are matched by their names, so
    that the new rankings may have them in another order, and may have fewer of them: items that
    they do not have were not offered, unless the fitted model is of an endless pool. Other items
    are refused. Under a Mallows model that was fitted to shorter lists, the orders of what such a
    judge says beyond their places are equally probable.

    In :func:`~numpyro_rankings.to_inference_data` and files of it, components that are empty in a
    draw have no parameters. Here all orders are then as probable in them, which is exact if the
    prior has no favourites among the items and the likelihood no power.

    Where the shares depend on covariates, a new judge counts as one who is drawn from all fitted
    judges: shares are means over these, or those at the average if the draws do not know them.

    :param draws: a :class:`~numpyro_rankings.Run` or :class:`numpyro.infer.MCMC` that has run,
        what :func:`~numpyro_rankings.to_inference_data` makes of it, or ``mcmc.get_samples()``; of
        a mixture of Mallows or Plackett–Luce models, finite, tempered or of a Dirichlet process.
    :param rankings: the rankings, or partial orders, that were fitted; None if the draws know the
        names of their items, as those of :func:`~numpyro_rankings.to_inference_data` do.
    :param new: what the new judges said, of whom equal ones may be one row: lists, of which each
        may rank some items only, or partial orders. The model says what is allowed, as in
        :func:`~numpyro_rankings.log_predictive_density`; choice sets are allowed under Mallows
        models, too.
    :param reference: the partition whose clusters are the groups: labels ``0..K-1`` of the fitted
        rankings in the order of ``rankings.expand()``, or a result of
        :func:`~numpyro_rankings.reference_partition`, which is also the default. The groups are in
        the order of these labels.
    :param blocs: those of :func:`~numpyro_rankings.find_blocs`, for the probability of each bloc.
    :param num_components: as for :func:`~numpyro_rankings.log_predictive_density`.
    :param max_draws: if there are more, so many are used, evenly spaced in each chain. By default
        they are 500, or fewer, at least 100, where these would take more than about ten seconds.
    :param key: a JAX random key for new clusters of ``DPPlackettLuceGibbs``, which are drawn.
    :raises ValueError: if the draws are not of a mixture, if items are not those that were fitted,
        or if a list is longer than the fitted ones.
    """
    check_rows(new)
    if max_draws is not None:
        check_whole("max_draws", max_draws)
    fitted, labels = checked(Draws.of(draws, rankings, num_components))
    family = fitted.check_family()
    rows, row_of_given = _in_fitted_terms(fitted, family, new).merged()
    chosen = reference_partition(labels, reference).labels
    sizes = np.asarray(fitted.sizes)
    slots = int(np.flatnonzero(sizes.any((0, 1)))[-1]) + 1
    parts = list(parts_of(family, rows, max(1, CELLS // slots)))
    some = some_draws(fitted, slots * sum(part.num_terms for part in parts), max_draws)
    by_draw = parameters_with_empty(some)
    belonging = belonging_of(some, by_draw["cluster_sizes"].shape[1], chosen)
    mixture = BlocMixture.of(blocs, family) if isinstance(blocs, Blocs) else blocs
    key = jax.random.key(0) if key is None else key
    settings = family, fitted.num_components, _NEW_CLUSTERS
    every, of_blocs = [], []
    for part in parts:
        every.append(_normalised(_log_groups(key, by_draw, belonging, part, *settings)))
        if mixture is not None:
            of_blocs.append(_probabilities_of_blocs(mixture, family, part))
    shares, every = every[0][:, -1], [x[:, :-1] for x in every]
    probabilities = np.concatenate(every, axis=1).T[row_of_given]
    return GroupsOfJudges(
        probabilities.argmax(1).astype(np.int32),
        probabilities.max(1),
        probabilities[:, :-1],
        probabilities[:, -1],
        shares,
        np.concatenate(of_blocs)[row_of_given] if of_blocs else None,
        len(belonging),
    )


def some_draws(draws: Draws, num_terms: int, most: int | None) -> Draws:
    """Return draws, evenly spaced: fewer where a draw has many terms, if no number is given."""
    if most is None:
        most = min(max(int(_TERMS // num_terms), _FEWEST_DRAWS), _DRAWS)
    return draws.take(evenly(draws.num_draws, max(1, most // draws.num_chains)))


def parameters_with_empty(draws: Draws) -> dict[str, Any]:
    """Return what likelihoods depend on, with components that ArviZ data do not have.

    Those that are empty in a draw have the parameters of ``fill_empty``. Those that are empty in
    all draws are left out there, so that the shares of the others do not add up to 1.
    """
    by_draw, family = parameters_of(replace(draws, lacks_empty=False)), draws.check_family()
    if not draws.lacks_empty or "shares" not in by_draw:
        return by_draw
    one = {name: by_draw[name][:, :1] for name in family.parameters}
    empty = {
        name: np.full(x.shape, -1 if x.dtype.kind in "iu" else np.nan) for name, x in one.items()
    }
    rest = np.maximum(1.0 - by_draw["shares"].sum(1, keepdims=True), 0.0)
    added = family.fill_empty(empty) | {"shares": rest, "cluster_sizes": np.zeros(rest.shape)}
    return {
        name: np.concatenate([x, added[name].astype(x.dtype)], axis=1) if name in added else x
        for name, x in by_draw.items()
    }


def parts_of(family: RankingFamily, rows: Rankings | Orders, size: int) -> Iterator[Scored]:
    """Yield rows as the family scores them, so many at a time."""
    for start in range(0, rows.num_rows, size):
        part = np.arange(start, min(start + size, rows.num_rows))
        yield scored(family, rows._take(part, np.ones(len(part), int)))


def checked(draws: Draws) -> tuple[Draws, np.ndarray]:
    """Return draws with their labels; refuse those without groups, or of which not all is known."""
    draws.check_family()
    labels = draws.labels
    if labels is None or draws.partition == "population":
        raise ValueError("the draws are of one population: there are no groups to tell apart")
    if draws.sites is not None:
        raise ValueError("the samples must be those of a kernel by itself, not of a block of Gibbs")
    check_partition(draws)
    if draws.items is None:
        raise ValueError("the draws do not know the names of their items: give the fitted rankings")
    return draws, labels


def _in_fitted_terms(
    draws: Draws, family: RankingFamily, new: Rankings | PartialOrders
) -> Rankings | Orders:
    """Return new rankings with the fitted items, as the family scores them."""
    rows = matched(draws, family, new)
    if rows.choice_sets is None or family.takes_choice_sets:
        check_lengths(draws, rows)
    return prepared(family, rows)


def matched(draws: Draws, family: RankingFamily, new: RowsT) -> RowsT:
    """Return new rankings with the fitted items; those that they lack were not offered.

    :raises RankingsError: if they have other items.
    """
    items, new = cast(tuple[str, ...], draws.items), family.described(new)
    if unknown := [str(name) for name in new.items if name not in items]:
        raise RankingsError(
            f"{', '.join(map(repr, unknown[:3]))}{' and others' * (len(unknown) > 3)} "
            f"{'is no item' if len(unknown) == 1 else 'are no items'} of the fit, whose items are "
            f"{', '.join(items[:20])}{', …' * (len(items) > 20)}"
        )
    if new.num_items < len(items) and new.offered() is None and not family.has_pool:
        flat: Any = new.tree_flatten()
        offered = np.ones((new.num_rows, new.num_items), bool)
        new = new._make((*flat[0][:-1], offered), flat[1])
    return by_name(new, items)


def belonging_of(draws: Draws, slots: int, reference: np.ndarray) -> np.ndarray:
    """Return which share of each cluster stands for each group, or for none, (D, C + 1, K + 1).

    The last cluster is a new one.
    """
    labels, number = np.asarray(draws.flat()["assignments"]), int(reference.max()) + 1
    shares = np.zeros((len(labels), slots + 1, number + 1), np.float32)
    for table, row in zip(shares, labels.astype(np.int64), strict=True):
        counts = np.bincount(row * number + reference, minlength=slots * number)
        counts = counts.reshape(slots, number)
        table[:-1, :-1] = counts * _stands_for(counts)
        table[:, -1] = table.sum(1) == 0
        table /= table.sum(1, keepdims=True)
    return shares


def _stands_for(counts: np.ndarray) -> np.ndarray:
    """Return for which groups each cluster stands, given their common members, both (C, K)."""
    clusters, groups = (np.arange(x) for x in counts.shape)
    own = (groups == counts.argmax(1)[:, None]) & (counts > 0)
    of_most = clusters[:, None] == counts.argmax(0)
    return own | (of_most & ~own.any(0))


@partial(jax.jit, static_argnames=("family", "num_components", "num_new_clusters"))
def _log_groups(
    key: Array,
    draws: dict[str, Array],
    belonging: Array,
    rows: Scored,
    family: RankingFamily,
    num_components: int | None,
    num_new_clusters: int,
) -> Array:
    """Return the log of the sum over draws for each group and row, (K + 1, rows + 1).

    The last column is of a judge of whom nothing is known.
    """

    def add_draw(total: Array, inputs: tuple) -> tuple[Array, None]:
        key, draw, belonging = inputs
        known = log_terms_of_rows(key, draw, rows, family, num_components, num_new_clusters)
        table = jnp.zeros((len(draw["cluster_sizes"]), 1))
        log_new = jnp.zeros(1) if len(known) > len(table) else None
        unknown = log_terms(draw, table, log_new, num_components)
        terms = jnp.concatenate([known, unknown], axis=1)
        largest = jnp.maximum(terms.max(0), jnp.finfo(terms.dtype).min)  # also of probability 0
        shares = belonging[: len(terms)].T
        of_groups = jnp.matmul(shares, jnp.exp(terms - largest), precision="highest")
        return jnp.logaddexp(total, largest + jnp.log(of_groups)), None

    dtype = draws[family.parameters[-1]].dtype
    start = jnp.full((belonging.shape[2], rows.num_rows + 1), -jnp.inf, dtype)
    inputs = jax.random.split(key, len(belonging)), draws, belonging
    return jax.lax.scan(add_draw, start, inputs)[0]


def _normalised(log_terms: Array) -> np.ndarray:
    """Return terms, (K, rows), as shares of their sum."""
    terms = np.asarray(log_terms, np.float64)
    shares = np.exp(terms - terms.max(0))
    return shares / shares.sum(0)


def _probabilities_of_blocs(blocs: BlocMixture, family: RankingFamily, rows: Scored) -> np.ndarray:
    """Return the probability of each bloc for each row, (rows, blocs)."""
    table = rows.log_rows(family, {name: jnp.asarray(x) for name, x in blocs.parameters.items()})
    return _normalised(table + np.log(blocs.shares)[:, None]).T
