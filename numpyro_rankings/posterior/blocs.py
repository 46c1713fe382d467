"""Blocs: the few components that keep most of what a fit with many groups says about rankings."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from numpyro_rankings._system.memory import USABLE, available_memory
from numpyro_rankings.families.plackett_luce import normalised_entropy
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.orderings import wants_of_members
from numpyro_rankings.posterior.bloc_models import Components, MallowsBlocs
from numpyro_rankings.posterior.bloc_search import Fit, Search, normalised
from numpyro_rankings.posterior.choice_cells import ChoiceCells, count_cells
from numpyro_rankings.posterior.diagnostics import posterior_of
from numpyro_rankings.posterior.draws import Draws, check_draws
from numpyro_rankings.posterior.partitions import partition_entropy
from numpyro_rankings.rankings import Rankings, check_rankings, num_stages

MOST_BLOCS = 8  # that are tried by default
_STARTS = 12  # draws whose groups are merged, in all chains together
_DRAWS = 40  # draws that intervals are over
_FIRST = 3  # draws that say at first how large the gain is
_INTERVAL = (0.05, 0.95)
MOST_WORK = 1_500_000  # of a search that is made without being asked for, about 20 s of one core
_LEAST_SECONDS, _SECONDS_OF_MOST = 5.0, 20.0  # of a small search, and of one with so much work
_NO_GAIN = "there are no blocs to find: one population describes the rankings as well as the draws"
_SAME_KEPT = 0.01  # a start arrives at the best if it keeps this much less at most,
_SAME_BLOCS = 0.1  # and differs by at most this share of the largest variation of information
_DIFFER = 1e-3  # variation of information, in nats, from which a search goes on


class NoBlocsError(ValueError):
    """There are no blocs, or not so many."""


class Bloc(NamedTuple):
    """One bloc.

    - **size** - expected number of rankings, and **size_interval** over draws.
    - **certainty** - mean probability with which its members belong to it; members are the rankings
      that belong to it most probably. NaN if there are none.
    - **consensus** - names of the items, best first, and **consensus_ordering**, their indices: the
      center, or the order of the weights.
    - **concentration** - θ of each stage (T,), of a Mallows model, else None.
    - **weights** - of the items, (n,), and **unseen_weight** of all that nobody listed, of
      Plackett–Luce models, else None.
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
    concentration: np.ndarray | None
    weights: np.ndarray | None
    unseen_weight: float | None
    agreement: float
    levels: tuple[tuple[str, ...], ...]
    clear_pairs: tuple[tuple[str, str], ...] = ()


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
    draws: Any, rankings: Rankings, num_blocs: int | None = None, least_gain: float = 0.1
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
    :param rankings: the rankings that were fitted.
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
    check_rankings(rankings)
    if num_blocs is not None:
        check_whole("num_blocs", num_blocs)
    _check_share(least_gain)
    samples = _by_chain(draws)
    flat = {name: x.reshape(-1, *x.shape[2:]) for name, x in samples.items()}
    fitted = Draws.of(samples, rankings).fitted
    _check_values(flat, fitted)
    _check_memory(samples, fitted)
    data = _Data(samples, fitted)
    starts = data.choose(_STARTS)
    most = max(MOST_BLOCS, num_blocs or 0)
    merged = [data.merge(*start, most) for start in starts]
    top = min(most, max(max(found) for found in merged))
    if top == 1:
        raise NoBlocsError("there are no blocs to find: each draw has one group only")
    if num_blocs is not None and num_blocs > top:
        raise NoBlocsError(f"num_blocs is {num_blocs}, but the draws have at most {top} groups")

    one = data.best_of_one(merged)
    some = [data.belongings(*start)[0] for start in starts[:: -(-len(starts) // _FIRST)]]
    gain = float(np.mean(some)) - one.log_likelihood
    if gain <= 0:
        raise NoBlocsError(_NO_GAIN)
    data.search.scale = max(gain, 1.0)
    best, from_starts, pool = _search_from_starts(data, merged, one, top)
    number = num_blocs or _suggested(_kept(best, gain), least_gain)
    _search_further(data.search, best, pool, min(number + 2, top), data.search.settle)
    number = num_blocs or _suggested(_kept(best, gain), least_gain)
    for k in range(1, min(number + 1, top)):
        best[k] = data.search.settle(data.search.shake(best[k]))
    chain_of = np.array([chain for chain, _ in starts])
    from_chains = [
        _search_of_chain(data, from_starts, np.flatnonzero(chain_of == chain), best, number)
        for chain in range(data.num_chains)
    ]
    for k in range(1, min(number, top)):
        best[k] = _agreed(data, best[k], [found[k] for found in from_chains], gain)
    _never_less(data.search, best, pool)
    top = _last_level(best, num_blocs)
    best = best[:top]
    said = data.ask(data.choose(_DRAWS), best)
    if said.log_density.mean() <= one.log_likelihood:
        raise NoBlocsError(_NO_GAIN)
    levels = tuple(
        _level(data, said, best, k, from_starts[k - 1], [found[k - 1] for found in from_chains])
        for k in range(1, top + 1)
    )
    number = num_blocs or _suggested(np.array([level.kept for level in levels]), least_gain)
    chains, places = np.array(starts).T
    return Blocs(number, levels, chains, places, said.log_density, one.log_likelihood)


def search_work(draws: Any, rankings: Rankings) -> float:
    """Return about how much work the search for blocs is; see ``MOST_WORK``."""
    of_choices = float(count_cells(rankings) * rankings.num_items)
    return rankings.orderings.size + (1.0 if "center" in draws else 2.5) * of_choices


def search_seconds(work: float) -> float:
    """Return about how many seconds the search for blocs takes, rather too many."""
    return _LEAST_SECONDS + _SECONDS_OF_MOST * work / MOST_WORK


def _num_sets(items: int) -> float:
    """Return the number of sets of items, as far as it matters: there are fewer rows than 2^64."""
    return 2.0 ** min(items, 64)


def _check_memory(samples: dict[str, np.ndarray], rankings: Rankings) -> None:
    """Refuse a search that will not fit into memory."""
    rows, stages = rankings.orderings.shape
    items, free = rankings.num_items, available_memory()
    most = int(np.max(np.sum(samples["cluster_sizes"] > 0, axis=-1)))
    if "center" in samples:  # what choices are left with, and how often groups make them
        choices = min(float(rows * stages), items * _num_sets(items))
        needed = 8.0 * choices * (items + 3 * most)
    else:
        needed = 8.0 * min(float(rows * stages), _num_sets(items)) * items
    if free is not None and needed > USABLE * free:
        raise NoBlocsError(
            f"to find blocs of {items:,} items takes about {needed / 1e9:.3g} GB of memory, and "
            f"{free / 1e9:.3g} GB are free"
        )


def _suggested(kept: np.ndarray, least_gain: float) -> int:
    """Return the largest number whose last bloc adds enough, or 2.

    What exceeds 100% is how well blocs are fitted, and nothing that the draws say.
    """
    kept = np.minimum(kept[:MOST_BLOCS], 1.0)
    enough = np.flatnonzero(np.diff(kept) >= least_gain) + 2
    return int(max(enough, default=2))


def _kept(fits: list[Fit], gain: float) -> np.ndarray:
    return np.array([fit.log_likelihood - fits[0].log_likelihood for fit in fits]) / gain


def _search_from_starts(
    data: "_Data", merged: list[dict[int, Components]], one: Fit, top: int
) -> tuple[list[Fit], list[list["_FromStart | None"]], list[Components]]:
    """Return the best components of each number from 1 to **top**.

    :return: these, where each start arrives, and all components that were found.
    """
    search, pool, best = data.search, [], [one]
    from_starts: list[list[_FromStart | None]] = [[_arrival(one)] * len(merged)]
    for number in range(top, 1, -1):
        arrivals: list[_FromStart | None] = []
        found = [search.climb(search.blurred(search.merged(best[1])))] if number < top else []
        for of_start in merged:
            if number not in of_start:
                arrivals.append(None)
                continue
            fit = search.climb(search.blurred(of_start[number]))
            pool.append(fit.components)
            arrivals.append(_arrival(fit))
            found = [max([*found, fit], key=_objective)]  # memberships are large
        best.insert(1, found[0])
        from_starts.insert(1, arrivals)
    return best, from_starts, pool


def _search_further(
    search: Search,
    best: list[Fit],
    pool: list[Components],
    most: int,
    finish: Callable[[Fit], Fit],
) -> None:
    """Improve the best components of each number, from those of other numbers.

    :param most: number up to which components are exchanged, and those of more are merged.
    :param finish: makes the last rounds of EM.
    """
    further = search.candidates(pool)
    for k in range(1, len(best)):
        best[k] = search.best_of(best[k], search.enlarged(best[k - 1], further))
        if k < most:
            best[k] = finish(search.exchange(best[k], further))
    for k in range(most - 2, 0, -1):
        smaller = search.best_of(best[k], [search.merged(best[k + 1])])
        if smaller is not best[k]:
            best[k] = finish(search.exchange(smaller, further))


def _search_of_chain(
    data: "_Data",
    from_starts: "list[list[_FromStart | None]]",
    starts: np.ndarray,
    best: list[Fit],
    most: int,
) -> "list[_FromStart | None]":
    """Search with the starts of one chain alone, for up to **most** components.

    What is better than the best of all replaces it there.

    :param starts: the numbers of its starts.
    :return: the best of each number from 1 on.
    """
    search = data.search
    of_chain = [[x for i in starts if (x := level[i]) is not None] for level in from_starts]
    found = [max(x, key=_log_likelihood) if x else None for x in of_chain]
    if data.num_chains == 1:
        return [
            _arrival(fit) if x is not None else None for fit, x in zip(best, found, strict=True)
        ]
    known = [best[0], *(next(search.rounds(x.components)) for x in found[1:most] if x is not None)]
    pool = [x.components for level in of_chain[1:] for x in level]
    _search_further(search, known, pool, len(known), lambda fit: fit)
    for k in range(1, len(known)):
        is_asked = k == most - 1  # of which the verdict is: fewer are not worth all the rounds
        known[k] = search.settle(known[k]) if is_asked else known[k]
        if data.distance(known[k].membership.argmax(1), best[k].membership.argmax(1)) > _DIFFER:
            known[k] = search.shake(known[k])
            known[k] = search.settle(known[k]) if is_asked else known[k]
        best[k] = max(best[k], known[k], key=_objective)
        found[k] = _arrival(known[k])
    return found


def _agreed(data: "_Data", best: Fit, from_chains: "list[_FromStart | None]", gain: float) -> Fit:
    """Of components that keep about as much, return those that most chains lead to.

    :param from_chains: the best of each chain.
    :param gain: what is 100%.
    """
    found = [arrival for arrival in from_chains if arrival is not None]
    options = [_arrival(best)]
    least = best.log_likelihood - _SAME_KEPT * gain / 2
    options += [x for x in found if x.log_likelihood >= least]
    scale = _SAME_BLOCS * 2 * np.log(max(best.membership.shape[1], 2))
    chains = [
        sum(
            x.log_likelihood >= option.log_likelihood - _SAME_KEPT * gain
            and data.distance(x.labels, option.labels) <= scale
            for x in found
        )
        for option in options
    ]
    most = int(np.argmax(chains))  # the first of several, which is the best of all
    return best if most == 0 else next(data.search.rounds(options[most].components))


def _never_less(search: Search, best: list[Fit], pool: list[Components]) -> None:
    """Replace components that say less about the rankings than those of one fewer.

    The objective has a prior, and rounds of EM may end early, so that more components can be the
    better ones and have a lower likelihood. They are searched for again, from those of one fewer
    with one of the pool added. If EM takes these below as well, the largest one is divided into two
    equal ones, whose likelihood is the same.
    """
    further = None
    for k in range(1, len(best)):
        fewer = best[k - 1]
        if best[k].log_likelihood >= fewer.log_likelihood:
            continue
        further = search.candidates(pool) if further is None else further
        found = [search.climb(start) for start in search.enlarged(fewer, further)]
        found += [next(search.rounds(search.divided(fewer)))]
        best[k] = max([best[k], *found], key=lambda fit: fit.log_likelihood)


def _last_level(best: list[Fit], num_blocs: int | None) -> int:
    """Return the number of blocs of the last level: before it one of them has no members.

    Of two equal ones, one has none.

    :param num_blocs: that were asked for, which are a level in any case.
    :raises NoBlocsError: if one of two has no members, and no number was asked for.
    """
    least = 2 if num_blocs is None else max(2, num_blocs)
    for k, fit in enumerate(best[1:], start=2):
        if len(np.unique(fit.membership.argmax(1))) < k:
            if k == 2 and num_blocs is None:
                raise NoBlocsError(_NO_GAIN)
            return min(max(least, k - 1), len(best))
    return len(best)


def _objective(fit: Fit) -> float:
    return fit.objective


def _log_likelihood(fit: "_FromStart") -> float:
    return fit.log_likelihood


def _check_share(least_gain: Any) -> None:
    value = np.asarray(least_gain)
    if value.shape != () or value.dtype.kind not in "iuf" or not 0 <= float(value) <= 1:
        raise ValueError(f"least_gain must be a share between 0 and 1, got {least_gain!r}")


def _by_chain(draws: Any) -> dict[str, np.ndarray]:
    """Return the sites of a mixture, (chains, draws, …)."""
    needed = ("assignments", "cluster_sizes", "center", "concentration", "weights", "unseen_weight")
    if hasattr(draws, "__contains__") and "posterior" in draws:
        posterior = posterior_of(draws)
        draws = {name: posterior[name].values for name in needed if name in posterior}
        if "assignments" not in draws and "center" in draws:
            raise ValueError("the data have no assignments: use include_assignments=True")
    check_draws(draws)
    Draws.of(draws).check_family()
    if "assignments" not in draws:
        raise ValueError("the draws are of one population, which has no blocs")
    samples = {name: np.asarray(draws[name]) for name in needed if name in draws}
    if samples["assignments"].ndim == 2:
        samples = {name: x[None] for name, x in samples.items()}
    _check_shapes(samples)
    return samples


def _check_shapes(samples: dict[str, np.ndarray]) -> None:
    """Refuse sites whose numbers of chains, draws or clusters differ."""
    if "cluster_sizes" not in samples:
        raise ValueError("the draws have no cluster_sizes")
    clusters = samples["weights" if "weights" in samples else "center"]
    each, slots = samples["assignments"].shape[:2], clusters.shape[2:3]
    for name, x in samples.items():
        expected = each if name == "assignments" else (*each, *slots)
        ndim = 4 if name in ("center", "concentration", "weights") else 3
        if x.ndim != ndim or x.shape[: len(expected)] != expected:
            raise ValueError(
                f"{name} must be of as many chains, draws and clusters as the other sites, "
                f"{(*each, *slots)}; its shape is {x.shape}"
            )


def _check_values(flat: dict[str, np.ndarray], rankings: Rankings) -> None:
    """Refuse values that no kernel draws, of clusters in use; empty slots may hold anything.

    :param flat: the sites, (draws, …).
    :param rankings: of the items that were fitted.
    """
    labels, slots = flat["assignments"], flat["cluster_sizes"].shape[-1]
    used = np.zeros((len(labels), slots), bool)
    for of_draw, in_use in zip(labels, used, strict=True):  # all at once would take much memory
        bad = (of_draw < 0) | (of_draw >= slots)
        if labels.dtype.kind == "f":
            bad |= of_draw != np.floor(of_draw)  # NaN too
        if bad.any():
            raise ValueError(f"assignments must be from 0 to {slots - 1}, got {of_draw[bad][0]}")
        in_use[of_draw.astype(np.intp)] = True
    if "weights" not in flat:
        center, items = flat["center"][used], np.arange(rankings.num_items)
        bad = (np.sort(center, axis=-1) != items).any(-1)
        if bad.any():
            raise ValueError(f"center must be an order of all items, got {center[bad][0].tolist()}")
        stages = num_stages(rankings)
        if flat["concentration"].shape[-1] != stages:
            raise ValueError(
                f"the run was of {flat['concentration'].shape[-1]} stages; these rankings have "
                f"{stages}"
            )
    for name in ("concentration", "weights", "unseen_weight"):
        if name in flat:
            x = flat[name][used]
            bad = ~((x >= 0) & (x < np.inf))
            if bad.any():
                raise ValueError(f"{name} must be finite and not negative, got {x[bad][0]}")
    if "weights" in flat and not flat["weights"][used].any(-1).all():
        raise ValueError("weights must not all be 0 in a cluster")


class _FromStart(NamedTuple):
    """Where EM from a start arrives: the log likelihood, and labels of the distinct rows."""

    log_likelihood: float
    labels: np.ndarray
    components: Components


def _arrival(fit: Fit) -> _FromStart:
    return _FromStart(fit.log_likelihood, fit.membership.argmax(1), fit.components)


class _OfDraws(NamedTuple):
    """What draws say: **log_density** of the rankings, (draws,), and sizes of blocs.

    - **sizes** - of the blocs of all levels, one after the other, (draws, blocs).
    """

    log_density: np.ndarray
    sizes: np.ndarray


class _Data:
    """Draws, and the rankings that they describe."""

    def __init__(self, samples: dict[str, np.ndarray], rankings: Rankings) -> None:
        self.samples, self.rankings = samples, rankings
        self.weighted, self.pooled = "weights" in samples, "unseen_weight" in samples
        # the distinct row of each given row, and of each ranking
        distinct, self.row_of_given = rankings.merged()
        self.row_index = self.row_of_given[np.asarray(rankings.row_index)]
        self.search = Search(distinct, self.weighted, self.pooled)
        self.counts = self.search.counts

    @property
    def num_chains(self) -> int:
        """The number of chains."""
        return len(self.samples["assignments"])

    def choose(self, number: int) -> list[tuple[int, int]]:
        """Return chains and draws, about so many and at least one of each chain, evenly spaced."""
        chains, draws = self.samples["assignments"].shape[:2]
        each = min(-(-number // chains), draws)
        places = ((np.arange(each) + 0.5) * draws / each).astype(int)
        return [(chain, int(place)) for chain in range(chains) for place in places]

    def _groups(self, chain: int, draw: int) -> tuple[csr_array, tuple[np.ndarray, ...]]:
        """Return the rankings of each row in each group, (rows, C), and the groups' parameters."""
        labels = self.samples["assignments"][chain, draw].astype(np.int64)
        used, labels = np.unique(labels, return_inverse=True)
        entries = np.ones(len(labels)), (self.row_index, labels)
        table = csr_array(entries, shape=(len(self.counts), len(used)))
        names = ("weights",) if self.weighted else ("center", "concentration")
        found = [self.samples[name][chain, draw][used] for name in names]
        if self.pooled:
            pool = self.samples["unseen_weight"][chain, draw][used]
            found = [np.append(found[0], pool[:, None], axis=1)]
        parameters = tuple(x.astype(float) if x.dtype.kind == "f" else x for x in found)
        return table, parameters

    def merge(self, chain: int, draw: int, most: int) -> dict[int, Components]:
        """Merge the groups of a draw."""
        table, parameters = self._groups(chain, draw)
        amounts = (self.search.model.cells.of_cells @ table).toarray()
        return self.search.model.merge(parameters, amounts, table.sum(0), most)

    def best_of_one(self, merged: list[dict[int, Components]]) -> Fit:
        """Return the one population that describes the rankings best."""
        fits = (self.search.climb(x[1]) for x in merged)
        return self.search.settle(max(fits, key=_objective))

    def belongings(self, chain: int, draw: int) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the log density of the rankings under a draw, and who is in its groups.

        :return: the log density, the sizes of the groups, (C,), and the expected number of rankings
            of each row in each group, given the parameters of the draw, (rows, C).
        """
        table, parameters = self._groups(chain, draw)
        sizes = table.sum(0)
        log_shares = np.log(sizes / sizes.sum())
        log_density, belonging = normalised(
            self.search.log_table(Components(log_shares, parameters))
        )
        belonging *= self.counts[:, None]
        return float(np.sum(self.counts * log_density)), sizes, belonging

    def ask(self, draws: list[tuple[int, int]], fits: list[Fit]) -> _OfDraws:
        """Return what draws say about blocs.

        The share of a bloc under a draw is the mean probability of the bloc over rankings from the
        mixture of the draw: of those of each group, the mean over the rankings that were fitted.
        """
        memberships = np.concatenate([fit.membership for fit in fits], axis=1)
        log_density, found = [], []
        for draw in draws:
            value, sizes, belonging = self.belongings(*draw)
            expected = np.maximum(belonging.sum(0), np.finfo(float).tiny)
            log_density.append(value)
            found.append((sizes / expected) @ np.einsum("rc,rk->ck", belonging, memberships))
        return _OfDraws(np.array(log_density), np.array(found))

    def distance(self, a: np.ndarray, b: np.ndarray) -> float:
        """Return the variation of information of the rankings, given labels of their rows."""
        number = int(max(a.max(), b.max())) + 1
        table = np.bincount(a * number + b, self.counts, number**2).reshape(number, number)
        parts = table.sum(1), table.sum(0)
        difference = 2 * partition_entropy(table.ravel()) - sum(map(partition_entropy, parts))
        return max(0.0, float(difference))


def _level(
    data: _Data,
    said: _OfDraws,
    fits: list[Fit],
    number: int,
    from_starts: "list[_FromStart | None]",
    from_chains: "list[_FromStart | None]",
) -> BlocLevel:
    """Describe the best K blocs."""
    fit, one = fits[number - 1], fits[0]
    belonging = fit.membership * data.counts[:, None]
    order = _largest_first(fit, data.counts)
    membership, belonging = fit.membership[:, order], belonging[:, order]
    labels = membership.argmax(1)
    sizes = said.sizes[:, number * (number - 1) // 2 :][:, order]
    gains = said.log_density - one.log_likelihood
    gain = fit.log_likelihood - one.log_likelihood
    flow, parent = np.zeros((0, number)), np.zeros(number, np.int32)
    if number > 1:
        before = fits[number - 2]
        above = before.membership[:, _largest_first(before, data.counts)]
        flow = np.einsum("ra,rk->ak", above, belonging)
        parent = flow.argmax(0).astype(np.int32)
    found = [*from_starts, *from_chains]
    found_kept, distance = np.full((2, len(found)), np.nan)
    for k, arrival in enumerate(found):
        if arrival is not None:
            found_kept[k] = (arrival.log_likelihood - one.log_likelihood) / gains.mean()
            distance[k] = data.distance(arrival.labels, labels) / (2 * np.log(max(number, 2)))
    kept = gain / gains.mean()
    arrived = (found_kept >= kept - _SAME_KEPT) & (distance <= _SAME_BLOCS)
    num = len(from_starts)
    return BlocLevel(
        number=number,
        kept=float(kept),
        kept_interval=_interval(gain / gains),
        blocs=_describe(data, fit, order, belonging, labels, sizes),
        parent=parent,
        flow=flow,
        membership=membership[data.row_of_given],
        labels=labels[data.row_index].astype(np.int32),
        start_kept=found_kept[:num],
        start_distance=distance[:num],
        arrived=arrived[:num],
        chain_kept=found_kept[num:],
        chain_distance=distance[num:],
        chains_agree=arrived[num:],
    )


def _largest_first(fit: Fit, counts: np.ndarray) -> np.ndarray:
    return np.argsort(-np.einsum("r,rk->k", counts, fit.membership), kind="stable")


def _describe(
    data: _Data,
    fit: Fit,
    order: np.ndarray,
    belonging: np.ndarray,
    labels: np.ndarray,
    sizes: np.ndarray,
) -> tuple[Bloc, ...]:
    names = [str(name) for name in data.rankings.items]
    parameters = [x[order] for x in fit.components.parameters]
    blocs = []
    model = data.search.model
    if isinstance(model, MallowsBlocs):
        center, theta = parameters
        left = np.arange(len(names), 0, -1)[: theta.shape[1]]
        agreement = 1 - model.entropy((center, theta)) / np.log(left).sum()
    above = _times_above(model.cells, data.search.amounts(belonging))
    for k in range(len(order)):
        members = labels == k
        total = float(data.counts[members].sum())
        weights = concentration = pool = None
        if data.weighted:
            weights = parameters[0][k]
            agrees = float(1 - normalised_entropy(weights[: len(names)]))
            if data.pooled:
                weights, pool = weights[:-1], float(weights[-1])
            ordering = np.argsort(-weights, kind="stable").astype(np.int32)
        else:
            ordering, concentration = center[k].astype(np.int32), theta[k]
            agrees = float(agreement[k])
        found = wants_of_members(above[k][np.ix_(ordering, ordering)], ordering)
        levels, pairs = found.named(names)
        blocs.append(
            Bloc(
                size=float(belonging[:, k].sum()),
                size_interval=_interval(sizes[:, k]),
                certainty=float(belonging[members, k].sum() / total) if total else float("nan"),
                consensus=tuple(names[i] for i in ordering),
                consensus_ordering=ordering,
                concentration=concentration,
                weights=weights,
                unseen_weight=pool,
                agreement=agrees,
                levels=levels,
                clear_pairs=pairs,
            )
        )
    return tuple(blocs)


def _times_above(cells: ChoiceCells, amounts: np.ndarray) -> np.ndarray:
    """Return how many rankings of each component put an item above another, (K, n, n).

    :param amounts: how often each component makes each choice, (cells, K).
    """
    shape = cells.sets.shape[::-1]
    above = [csr_array((x, (cells.items, cells.set_of)), shape) @ cells.sets for x in amounts.T]
    return np.stack(above)


def _interval(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, _INTERVAL)
    return float(low), float(high)
