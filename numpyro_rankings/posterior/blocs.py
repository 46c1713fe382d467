"""Blocs: the few components that keep most of what a fit with many groups says about rankings."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from numpyro_rankings._system.memory import USABLE, available_memory
from numpyro_rankings.families import RankingFamily, family_of
from numpyro_rankings.families.base import interval_of
from numpyro_rankings.families.choice_cells import count_cells
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.orderings import times_above, wants_of_members
from numpyro_rankings.posterior.bloc_levels import (
    MOST_BLOCS,
    SAME_BLOCS,
    SAME_KEPT,
    Arrival,
    BlocData,
    DrawnSizes,
    SearchedLevels,
    check_gain,
    last_level,
    most_groups,
    search_levels,
    suggested_number,
)
from numpyro_rankings.posterior.bloc_orders import (
    NoBlocsError,
    SearchedRows,
)
from numpyro_rankings.posterior.bloc_search import BlocFit
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.rankings import PartialOrders, Rankings, check_rows, refuse_weights

_STARTS = 12  # draws whose groups are merged, in all chains together
_DRAWS = 40  # draws that intervals are over
_LEAST_GAIN = 1e-3  # of a draw, as a share of the mean, by which what blocs keep is divided
_FIRST = 3  # draws that say at first how large the gain is
MOST_WORK = 1_500_000  # of a search that is made without being asked for, about 20 s of one core
_LEAST_SECONDS, _SECONDS_OF_MOST = 5.0, 20.0  # of a small search, and of one with so much work


class Bloc(NamedTuple):
    """One bloc.

    - **size** - expected number of rankings, and **size_interval** over draws.
    - **certainty** - mean probability with which its members belong to it; members are the rankings
      that belong to it most probably. NaN if there are none.
    - **consensus** - names of the items, best first, and **consensus_ordering**, their indices: the
      center, or the order of the weights.
    - **parameters** - further parameters of its likelihood, by name.
    - **agreement** - 0 if its members rank at random, 1 if all rank alike, as in
      :class:`~numpyro_rankings.posterior.ClusterProfile`.
    - **levels** - the items by what the members want, best first: of those who order an item of
      one level and one of a later level, whichever these are, at least 60% put the former first.
      Within a level the items are in the order of the consensus.
    - **clear_pairs** - names of two items of one level of which at least 60% of the members who
      order the two put the first one first, the clearest pair of each level first.
    """

    size: float
    size_interval: tuple[float, float]
    certainty: float
    consensus: tuple[str, ...]
    consensus_ordering: np.ndarray
    parameters: Mapping[str, Any]
    agreement: float
    levels: tuple[tuple[str, ...], ...]
    clear_pairs: tuple[tuple[str, str], ...] = ()

    @property
    def concentration(self) -> np.ndarray | None:
        """θ of each stage, (T,), of a Mallows model, else None."""
        return self.parameters.get("concentration")

    @property
    def weights(self) -> np.ndarray | None:
        """The weights of the items, (n,), of Plackett–Luce models, else None."""
        return self.parameters.get("weights")

    @property
    def unseen_weight(self) -> float | None:
        """The weight of all items that nobody listed, of a pool of items, else None."""
        return self.parameters.get("unseen_weight")


class BlocLevel(NamedTuple):
    """The best blocs of one number K.

    - **number** - K.
    - **kept** - share of the gain that they keep, the mean over draws, and **kept_interval**.
    - **blocs** - the largest first.
    - **parent** - for each bloc, which of the K - 1 blocs most of it comes from, (K,); 0 for K = 1.
    - **flow** - expected number of rankings in each of the K - 1 blocs and each of the K, in
      this order of the axes; none for K = 1.
    - **membership** - probability of each bloc for each row of the rankings, (rows, K).
    - **labels** - the most probable bloc of each ranking, int32 (N,).
    - **start_kept** - share that is kept from each start, (starts,).
    - **start_distance** - variation of information between the labels from each start and the best
      ones, divided by its largest value for K blocs, 2 log K; (starts,).
    - **arrived** - whether a start arrives at the best: it keeps at most 1% of the gain less,
      and its distance is at most 10%, (starts,).
    - **chain_kept**, **chain_distance** - the same of each chain: of the best that the search finds
      with the starts of this chain alone, (chains,). For more blocs than ``number`` there is no
      search by chain, and they are those of its best start.
    - **chains_agree** - whether each chain arrives in this way, (chains,).
    """

    number: int
    kept: float
    kept_interval: tuple[float, float]
    blocs: tuple[Bloc, ...]
    parent: np.ndarray
    flow: np.ndarray
    membership: np.ndarray
    labels: np.ndarray
    start_kept: np.ndarray
    start_distance: np.ndarray
    arrived: np.ndarray
    chain_kept: np.ndarray
    chain_distance: np.ndarray
    chains_agree: np.ndarray

    @property
    def num_arrived(self) -> int:
        """Number of starts that arrive at the best."""
        return int(self.arrived.sum())


class Blocs(NamedTuple):
    """What :func:`~numpyro_rankings.find_blocs` finds.

    - **number** - K, the number of blocs that is asked for, or else that the gain suggests.
    - **levels** - the best blocs of each number from 1 on; level K splits those of K - 1. The last
      one is the last whose blocs all have members, or that of the number that is asked for.
    - **start_chain**, **start_draw** - chain and draw whose groups a start merges, (starts,).
    - **log_density** - log density of the rankings under the mixture of draws, (draws,), and
      **log_density_of_one** - under one population.
    """

    number: int
    levels: tuple[BlocLevel, ...]
    start_chain: np.ndarray
    start_draw: np.ndarray
    log_density: np.ndarray
    log_density_of_one: float

    @property
    def level(self) -> BlocLevel:
        """The level of ``number`` blocs."""
        return self.levels[self.number - 1]

    @property
    def blocs(self) -> tuple[Bloc, ...]:
        """The blocs, the largest first."""
        return self.level.blocs

    @property
    def labels(self) -> np.ndarray:
        """The most probable bloc of each ranking, int32 (N,)."""
        return self.level.labels

    @property
    def membership(self) -> np.ndarray:
        """Probability of each bloc for each row of the rankings, (rows, K)."""
        return self.level.membership

    @property
    def kept(self) -> np.ndarray:
        """Share of the gain that 1, 2, … blocs keep, (levels,)."""
        return np.array([level.kept for level in self.levels])


def find_blocs(
    draws: Any,
    rankings: Rankings | PartialOrders,
    num_blocs: int | None = None,
    least_gain: float = 0.1,
) -> Blocs:
    r"""Find the K blocs that keep most of what a mixture with many groups says about rankings.

    A mixture of an unknown number of groups goes on to find groups as long as its components do not
    describe the rankings exactly. Blocs are a coarse view of such a fit: K components, each with
    one center and its concentrations, or one set of weights. They keep the share

    .. math::
        \frac{\log p(\text{rankings} \mid \text{blocs}) - \log p(\text{rankings} \mid \text{one
        population})}{\log p(\text{rankings} \mid \text{mixture of the draw}) - \log
        p(\text{rankings} \mid \text{one population})}

    of the gain of the draws' mixture over one population, and are those that keep most. (If the
    draws have few groups themselves, as many blocs may keep more than 100%, because the parameters
    of a draw are not the best ones.)

    The groups of 12 draws, from all chains, are merged two by two, each time the pair whose union
    costs least. Expectation-maximization (EM) on the rankings goes on from there, for 11 to 18
    rounds. The best result is then searched for further: a bloc is added or exchanged for one that
    another start has found, or EM sees only part of the rankings for some rounds. More blocs never
    keep less: where the search ends with less, it is made again from those of one fewer, one of
    which is divided. The same search is made with the starts of each chain alone. Each level tells
    which chains lead to the best blocs, and how many starts do without the search. If a chain does
    not, other blocs may keep about as much: see ``chain_kept``. Of blocs that keep as much within
    0.5% of the gain, the best are those that most chains lead to.

    :param draws: samples of :class:`~numpyro_rankings.infer.SliceGibbs`,
        :class:`~numpyro_rankings.infer.BetaGibbs`,
        :class:`~numpyro_rankings.infer.PlackettLuceGibbs` with several components, or
        :class:`~numpyro_rankings.infer.DPPlackettLuceGibbs`, grouped by chain or not; or the result
        of :func:`~numpyro_rankings.to_inference_data`.
    :param rankings: the rankings, or partial orders, that were fitted. Of the latter at most 50,000
        orderings may agree with what all judges of different rows said.
    :param num_blocs: K. By default it is the largest number from 2 to 8 whose last bloc still adds
        ``least_gain`` of the gain, up to 100%, and 2 if none does.
    :param least_gain: share of the gain, between 0 and 1.
    :return: the blocs of this number, and of all others up to 8, with the tree of how K blocs split
        into K + 1.
    :raises ValueError: if the draws are not of a mixture or not of these rankings, if they hold
        values that no kernel draws, if they have one group only, if their
        groups say no more about the rankings than one population, if ``num_blocs`` is more than
        their groups, or if the search will not fit into memory.

    .. doctest::

       >>> import jax, numpy as np
       >>> from numpyro_rankings import find_blocs
       >>> from numpyro_rankings.datasets import simulate_mallows_mixture
       >>> data = simulate_mallows_mixture(jax.random.key(0), 300, 5, 5, 3, 1.5)
       >>> draws = {  # in place of mcmc.get_samples()
       ...     "assignments": data.assignments[None],
       ...     "center": data.centers[None],
       ...     "concentration": data.concentrations[None, :, :4],
       ...     "cluster_sizes": np.bincount(data.assignments)[None],
       ... }
       >>> blocs = find_blocs(draws, data.rankings)
       >>> [bloc.consensus_ordering.tolist() for bloc in blocs.blocs]  # the largest first
       [[0, 4, 1, 2, 3], [0, 1, 3, 2, 4], [4, 3, 1, 0, 2]]
       >>> blocs.number, blocs.kept.round(2).tolist()
       (3, [0.0, 0.55, 1.08])
    """
    check_rows(rankings)
    refuse_weights(rankings, "find_blocs")
    if num_blocs is not None:
        check_whole("num_blocs", num_blocs)
    _check_share(least_gain)
    fitted = read_draws(draws, rankings)
    _check_fit(fitted)
    data = BlocData(fitted)

    def choose_number(kept: np.ndarray) -> int:
        return num_blocs or suggested_number(kept, least_gain)

    starts = data.choose(_STARTS)
    merged = [data.merge(*start, max(MOST_BLOCS, num_blocs or 0)) for start in starts]
    most_groups(merged, num_blocs)
    one = data.best_of_one(merged)
    some = [data.belongings(*start)[0] for start in starts[:: -(-len(starts) // _FIRST)]]
    gain = float(np.mean(some)) - one.log_likelihood
    check_gain(gain)
    searched = search_levels(data, starts, merged, one, gain, choose_number)
    top = last_level(searched.best, num_blocs)
    drawn = data.sizes(data.choose(_DRAWS), searched.best[:top])
    check_gain(drawn.log_density.mean() - one.log_likelihood)
    levels = tuple(_level(data, drawn, searched, number) for number in range(1, top + 1))
    number = choose_number(np.array([level.kept for level in levels]))
    chains, places = np.array(starts).T
    return Blocs(number, levels, chains, places, drawn.log_density, one.log_likelihood)


def search_work(draws: Collection[str], said: Rankings | PartialOrders) -> float:
    """Return about how much work the search for blocs is; see ``MOST_WORK``.

    :raises TooManyOrderingsError: if there is none, because partial orders leave too much open.
    """
    family = family_of(draws)
    rankings = _orderings(said, family)
    of_choices = float(count_cells(rankings) * rankings.num_items)
    return rankings.orderings.size + (1.0 if family is None else family.fit_cost) * of_choices


def _orderings(said: Rankings | PartialOrders, family: RankingFamily | None) -> Rankings:
    """Return the rankings, or the orderings that agree with different partial orders."""
    if not isinstance(said, PartialOrders):
        return said
    if family is None:
        return said.with_orderings(said.listed)
    distinct = family.prepared(family.described(said)).unique()
    return SearchedRows(distinct, family).rankings


def search_seconds(work: float) -> float:
    """Return about how many seconds the search for blocs takes, rather too many."""
    return _LEAST_SECONDS + _SECONDS_OF_MOST * work / MOST_WORK


def read_draws(source: Any, rankings: Rankings | PartialOrders) -> Draws:
    """Return draws of a mixture, with the rankings of the items that were fitted.

    :raises ValueError: if they are not of a mixture of these rankings, or no kernel draws them.
    """
    draws = Draws.of(source)
    if draws.labels is None and draws.sizes is not None:
        raise ValueError("the data have no assignments: use include_assignments=True")
    family = draws.check_family()
    if draws.labels is None:
        raise ValueError("the draws are of one population, which has no blocs")
    if draws.sizes is None:
        raise ValueError("the draws have no cluster_sizes")
    _check_shapes(draws, family)
    draws = draws.with_rankings(rankings)
    if isinstance(draws.said, PartialOrders):
        draws = replace(draws, orders=family.prepared(draws.said))
    _check_values(draws, family)
    return draws


def _check_shapes(draws: Draws, family: RankingFamily) -> None:
    """Refuse sites whose numbers of chains, draws or clusters differ."""
    each, slots = draws.samples["assignments"].shape[:2], (draws.num_slots,)
    for name in ("assignments", "cluster_sizes", *family.parameters):
        shape = draws.samples[name].shape
        expected = each if name == "assignments" else (*each, *slots)
        ndim = 4 if name in family.axes else 3
        if len(shape) != ndim or shape[: len(expected)] != expected:
            raise ValueError(
                f"{name} must be of as many chains, draws and clusters as the other sites, "
                f"{(*each, *slots)}; its shape is {shape}"
            )


def _check_values(draws: Draws, family: RankingFamily) -> None:
    """Refuse values that no kernel draws, of clusters in use; empty slots may hold anything."""
    flat, slots = draws.flat(), draws.num_slots or 0
    labels = flat["assignments"]
    used = np.zeros((len(labels), slots), bool)
    for of_draw, in_use in zip(labels, used, strict=True):  # all at once would take much memory
        bad = (of_draw < 0) | (of_draw >= slots)
        if labels.dtype.kind == "f":
            bad |= of_draw != np.floor(of_draw)  # NaN too
        if bad.any():
            raise ValueError(f"assignments must be from 0 to {slots - 1}, got {of_draw[bad][0]}")
        in_use[of_draw.astype(np.intp)] = True
    family.check_parameters({name: flat[name][used] for name in family.parameters}, draws.said)


def _check_fit(draws: Draws) -> None:
    """Refuse a likelihood without a fit, and a search that will not fit into memory."""
    family, rankings, free = draws.check_family(), draws.said, available_memory()
    if not family.has_fit:
        raise NoBlocsError(f"there are no blocs to find of the likelihood {family.name}")
    most = int(np.max(np.sum(draws.samples["cluster_sizes"] > 0, axis=-1)))
    needed = family.fit_bytes(rankings, most)
    if free is not None and needed > USABLE * free:
        raise NoBlocsError(
            f"to find blocs of {rankings.num_items:,} items takes about {needed / 1e9:.3g} GB of "
            f"memory, and {free / 1e9:.3g} GB are free"
        )


def _check_share(least_gain: Any) -> None:
    value = np.asarray(least_gain)
    if value.shape != () or value.dtype.kind not in "iuf" or not 0 <= float(value) <= 1:
        raise ValueError(f"least_gain must be a share between 0 and 1, got {least_gain!r}")


def _level(data: BlocData, drawn: DrawnSizes, searched: SearchedLevels, number: int) -> BlocLevel:
    """Describe the best K blocs."""
    fit, one = searched.best[number - 1], searched.best[0]
    order = _largest_first(fit, data.counts)
    membership = fit.membership[:, order]
    belonging = membership * data.counts[:, None]
    labels = membership.argmax(1)
    sizes = drawn.sizes[:, number * (number - 1) // 2 :][:, order]
    gains, gain = drawn.log_density - one.log_likelihood, fit.log_likelihood - one.log_likelihood
    flow = np.zeros((0, number))
    if number > 1:
        before = searched.best[number - 2]
        above = before.membership[:, _largest_first(before, data.counts)]
        flow = np.einsum("ra,rk->ak", above, belonging)
    arrivals = [*searched.from_starts[number - 1], *searched.from_chains[number - 1]]
    kept = gain / gains.mean()
    kept_from, distance = _compare(data, arrivals, labels, number)
    kept_from = (kept_from - one.log_likelihood) / gains.mean()
    arrived = (kept_from >= kept - SAME_KEPT) & (distance <= SAME_BLOCS)
    starts, chains = np.split(np.arange(len(arrivals)), [len(searched.from_starts[number - 1])])
    return BlocLevel(
        number=number,
        kept=float(kept),
        # Of a draw that says less than one population, blocs keep all there is.
        kept_interval=interval_of(gain / np.maximum(gains, _LEAST_GAIN * gains.mean())),
        blocs=_describe(data, fit, order, sizes),
        parent=flow.argmax(0).astype(np.int32) if number > 1 else np.zeros(1, np.int32),
        flow=flow,
        membership=membership[data.row_of_given],
        labels=labels[data.row_index].astype(np.int32),
        start_kept=kept_from[starts],
        start_distance=distance[starts],
        arrived=arrived[starts],
        chain_kept=kept_from[chains],
        chain_distance=distance[chains],
        chains_agree=arrived[chains],
    )


def _compare(
    data: BlocData, arrivals: list[Arrival | None], labels: np.ndarray, number: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log likelihoods of arrivals, and the distances of their labels, NaN if none."""
    log_likelihood, distance = np.full((2, len(arrivals)), np.nan)
    for k, arrival in enumerate(arrivals):
        if arrival is not None:
            log_likelihood[k] = arrival.log_likelihood
            distance[k] = data.distance(arrival.labels, labels) / (2 * np.log(max(number, 2)))
    return log_likelihood, distance


def _largest_first(fit: BlocFit, counts: np.ndarray) -> np.ndarray:
    return np.argsort(-np.einsum("r,rk->k", counts, fit.membership), kind="stable")


def _describe(
    data: BlocData, fit: BlocFit, order: np.ndarray, sizes: np.ndarray
) -> tuple[Bloc, ...]:
    """Describe blocs in some order.

    :param sizes: of the blocs in this order, (draws, K).
    """
    names = [str(name) for name in data.items]
    belonging = fit.membership[:, order] * data.counts[:, None]
    labels = fit.membership[:, order].argmax(1)
    components = data.search.model.describe(tuple(x[order] for x in fit.components.parameters))
    above = _times_above(data, belonging, [x.ordering for x in components])
    blocs = []
    for k, (ordering, agreement, parameters) in enumerate(components):
        members = labels == k
        total = float(data.counts[members].sum())
        wants = wants_of_members(above[k], ordering)
        levels, pairs = wants.named(names)
        blocs.append(
            Bloc(
                size=float(belonging[:, k].sum()),
                size_interval=interval_of(sizes[:, k]),
                certainty=float(belonging[members, k].sum() / total) if total else float("nan"),
                consensus=tuple(names[i] for i in ordering),
                consensus_ordering=ordering,
                parameters=parameters,
                agreement=agreement,
                levels=levels,
                clear_pairs=pairs,
            )
        )
    return tuple(blocs)


def _times_above(
    data: BlocData, belonging: np.ndarray, orderings: list[np.ndarray]
) -> list[np.ndarray]:
    """Return how many members of each bloc put an item above another, in the order of the bloc.

    :param belonging: of the rows to each bloc, (rows, K).
    """
    said = data.distinct
    if isinstance(said, PartialOrders):
        amounts = zip(belonging.T, orderings, strict=True)
        return [times_above(said, of_bloc, ordering) for of_bloc, ordering in amounts]
    cells = data.search.model.cells
    shape = cells.sets.shape[::-1]
    above = (
        csr_array((x, (cells.items, cells.set_of)), shape) @ cells.sets
        for x in (cells.of_cells @ belonging).T
    )
    return [x[np.ix_(order, order)] for x, order in zip(above, orderings, strict=True)]
