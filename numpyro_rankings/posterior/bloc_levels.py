"""Search for the best blocs of each number in draws, from all chains and from each alone."""

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from numpyro_rankings.families.weighted_fit import Parameters
from numpyro_rankings.posterior.bloc_orders import NoBlocsError
from numpyro_rankings.posterior.bloc_search import BlocComponents, BlocFit, BlocSearch, normalised
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.partitions import variation_of_table
from numpyro_rankings.rankings import PartialOrders, Rankings

MOST_BLOCS = 8  # that are tried by default
SAME_KEPT = 0.01  # a start arrives at the best if it keeps this much less at most,
SAME_BLOCS = 0.1  # and differs by at most this share of the largest variation of information
_NO_GAIN = "there are no blocs to find: one population describes the rankings as well as the draws"
_DIFFER = 1e-3  # variation of information, in nats, from which a search goes on


class DrawnSizes(NamedTuple):
    """Log density of the rankings, (draws,), and sizes of blocs of all levels, (draws, blocs)."""

    log_density: np.ndarray
    sizes: np.ndarray


class BlocData:
    """Draws, and the rankings that they describe, as ``read_draws`` of ``blocs`` checks them."""

    def __init__(self, draws: Draws) -> None:
        said: Rankings | PartialOrders = draws.said
        family = draws.check_family()
        self.draws, self.items, self._family = draws, said.items, family
        # the distinct row of each given row, and of each ranking
        self.distinct: Rankings | PartialOrders
        self.distinct, self.row_of_given = said.merged()
        self.row_index = self.row_of_given[np.asarray(said.row_index)]
        self.search = BlocSearch(self.distinct, family)
        self.counts = self.search.counts

    def choose(self, number: int) -> list[tuple[int, int]]:
        """Return chains and draws, about so many and at least one of each chain, evenly spaced."""
        chains, draws = self.draws.num_chains, self.draws.num_draws
        each = min(-(-number // chains), draws)
        places = ((np.arange(each) + 0.5) * draws / each).astype(int)
        return [(chain, int(place)) for chain in range(chains) for place in places]

    def _groups(self, chain: int, draw: int) -> tuple[csr_array, Parameters]:
        """Return the rankings of each row in each group, (rows, C), and the groups' parameters."""
        labels = self.draws.samples["assignments"][chain, draw].astype(np.int64)
        used, labels = np.unique(labels, return_inverse=True)
        entries = np.ones(len(labels)), (self.row_index, labels)
        table = csr_array(entries, shape=(len(self.counts), len(used)))
        names = self._family.parameters
        sites = {name: self.draws.samples[name][chain, draw][used] for name in names}
        return table, self.search.model.parameters_of(sites)

    def merge(self, chain: int, draw: int, most: int) -> dict[int, BlocComponents]:
        """Merge the groups of a draw, and return components by their number, at most **most**."""
        table, parameters = self._groups(chain, draw)
        amounts = self.search.amounts(parameters, table.toarray())
        return self.search.merge(parameters, amounts, table.sum(0), most)

    def best_of_one(self, merged: list[dict[int, BlocComponents]]) -> BlocFit:
        """Return the one population that describes the rankings best."""
        fits = (self.search.climb(x[1]) for x in merged)
        return self.search.settle(max(fits, key=attrgetter("objective")))

    def belongings(self, chain: int, draw: int) -> tuple[float, np.ndarray, np.ndarray]:
        """Return what a draw says of the rankings and of its groups.

        :return: the log density of the rankings, the sizes of the groups, (C,), and the expected
            number of rankings of each row in each group given their parameters, (rows, C).
        """
        table, parameters = self._groups(chain, draw)
        sizes = table.sum(0)
        log_shares = np.log(sizes / sizes.sum())
        log_table = self.search.log_table(BlocComponents(log_shares, parameters))
        log_density, belonging = normalised(log_table)
        belonging *= self.counts[:, None]
        return float(np.sum(self.counts * log_density)), sizes, belonging

    def sizes(self, draws: list[tuple[int, int]], fits: list[BlocFit]) -> DrawnSizes:
        """Return what draws say about blocs.

        The share of a bloc under a draw is the mean probability of the bloc over rankings from the
        mixture of the draw: of those of each group, the mean over the rankings that were fitted.
        """
        memberships = np.concatenate([fit.membership for fit in fits], axis=1)
        log_density, of_blocs = [], []
        for draw in draws:
            value, sizes, belonging = self.belongings(*draw)
            expected = np.maximum(belonging.sum(0), np.finfo(float).tiny)
            log_density.append(value)
            of_blocs.append((sizes / expected) @ np.einsum("rc,rk->ck", belonging, memberships))
        return DrawnSizes(np.array(log_density), np.array(of_blocs))

    def distance(self, a: np.ndarray, b: np.ndarray) -> float:
        """Return the variation of information of the rankings, given labels of their rows."""
        number = int(max(a.max(), b.max())) + 1
        table = np.bincount(a * number + b, self.counts, number**2).reshape(number, number)
        return variation_of_table(table)


class Arrival(NamedTuple):
    """Where EM from a start arrives; the labels are of the distinct rows."""

    log_likelihood: float
    labels: np.ndarray
    components: BlocComponents


class SearchedLevels(NamedTuple):
    """The best components of each number from 1 on, and where each start and each chain arrives.

    A start whose draw has fewer groups arrives nowhere: it has None.
    """

    best: list[BlocFit]
    from_starts: list[list[Arrival | None]]
    from_chains: list[list[Arrival | None]]


def search_levels(
    data: BlocData,
    starts: list[tuple[int, int]],
    merged: list[dict[int, BlocComponents]],
    one: BlocFit,
    gain: float,
    choose_number: Callable[[np.ndarray], int],
) -> SearchedLevels:
    """Search for the best components of each number.

    :param starts: chain and draw of each start, and **merged**, its components by their number.
    :param one: the best single component, and **gain**, the log likelihood above it that is 100%.
    :param choose_number: returns the number of blocs from the shares of the gain that are kept.
    """
    search = data.search
    search.scale = max(gain, 1.0)
    best, from_starts, pool = _search_from_starts(search, merged, one)
    top, number = len(best), choose_number(_kept(best, gain))
    search_further(search, best, pool, min(number + 2, top), search.settle)
    number = choose_number(_kept(best, gain))
    for k in range(1, min(number + 1, top)):
        best[k] = search.settle(search.shake(best[k]))
    chain_of = np.array([chain for chain, _ in starts])
    of_chains = [
        _search_of_chain(data, from_starts, np.flatnonzero(chain_of == chain), best, number)
        for chain in range(data.draws.num_chains)
    ]
    from_chains = [list(level) for level in zip(*of_chains, strict=True)]
    for k in range(1, min(number, top)):
        best[k] = agreed(data, best[k], from_chains[k], gain)
    never_less(search, best, pool)
    return SearchedLevels(best, from_starts, from_chains)


def most_groups(merged: list[dict[int, BlocComponents]], num_blocs: int | None) -> int:
    """Return the largest number of groups; refuse a single one, and more blocs than groups."""
    top = max(max(of_start) for of_start in merged)
    if top == 1:
        raise NoBlocsError("there are no blocs to find: each draw has one group only")
    if num_blocs is not None and num_blocs > top:
        raise NoBlocsError(f"num_blocs is {num_blocs}, but the draws have at most {top} groups")
    return top


def check_gain(gain: float) -> None:
    """Raise an error if draws describe the rankings no better than one population."""
    if gain <= 0:
        raise NoBlocsError(_NO_GAIN)


def suggested_number(kept: np.ndarray, least_gain: float) -> int:
    """Return the largest number whose last bloc adds enough, or 2.

    What exceeds 100% is how well blocs are fitted, and nothing that the draws say.
    """
    kept = np.minimum(kept[:MOST_BLOCS], 1.0)
    enough = np.flatnonzero(np.diff(kept) >= least_gain) + 2
    return int(max(enough, default=2))


def last_level(best: list[BlocFit], num_blocs: int | None) -> int:
    """Return the largest number up to which all blocs have members.

    Of two equal blocs one has none. A number that is asked for is a level in any case.
    """
    least = 2 if num_blocs is None else max(2, num_blocs)
    for k, fit in enumerate(best[1:], start=2):
        if len(np.unique(fit.membership.argmax(1))) < k:
            if k == 2 and num_blocs is None:
                raise NoBlocsError(_NO_GAIN)
            return min(max(least, k - 1), len(best))
    return len(best)


def arrival(fit: BlocFit) -> Arrival:
    """Return where EM arrived."""
    return Arrival(fit.log_likelihood, fit.membership.argmax(1), fit.components)


def _kept(fits: list[BlocFit], gain: float) -> np.ndarray:
    return np.array([fit.log_likelihood - fits[0].log_likelihood for fit in fits]) / gain


def _search_from_starts(
    search: BlocSearch, merged: list[dict[int, BlocComponents]], one: BlocFit
) -> tuple[list[BlocFit], list[list[Arrival | None]], list[BlocComponents]]:
    """Return the best of each number, where each start arrives, and all components there."""
    pool, best = [], [one]
    from_starts: list[list[Arrival | None]] = [[arrival(one)] * len(merged)]
    top = max(max(of_start) for of_start in merged)
    for number in range(top, 1, -1):
        arrivals: list[Arrival | None] = []
        leader = search.climb(search.blurred(search.merged(best[1]))) if number < top else None
        for of_start in merged:
            if number not in of_start:
                arrivals.append(None)
                continue
            fit = search.climb(search.blurred(of_start[number]))
            pool.append(fit.components)
            arrivals.append(arrival(fit))
            if leader is None or fit.objective > leader.objective:  # one, as memberships are large
                leader = fit
        assert leader is not None
        best.insert(1, leader)
        from_starts.insert(1, arrivals)
    return best, from_starts, pool


def search_further(
    search: BlocSearch,
    best: list[BlocFit],
    pool: list[BlocComponents],
    most: int,
    finish: Callable[[BlocFit], BlocFit],
) -> None:
    """Improve the best components of each number, from those of other numbers.

    Up to **most** components are exchanged, and those of more are merged. **finish** makes the last
    rounds of EM.
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
    data: BlocData,
    from_starts: list[list[Arrival | None]],
    starts: np.ndarray,
    best: list[BlocFit],
    most: int,
) -> list[Arrival | None]:
    """Return the best of each number that the starts of one chain alone lead to.

    There is a search for up to **most** components. What is better than the best replaces it.
    """
    search = data.search
    of_chain = [[x for i in starts if (x := level[i]) is not None] for level in from_starts]
    arrivals = [max(x, key=attrgetter("log_likelihood")) if x else None for x in of_chain]
    if data.draws.num_chains == 1:
        pairs = zip(best, arrivals, strict=True)
        return [arrival(fit) if x is not None else None for fit, x in pairs]
    first = (next(search.rounds(x.components)) for x in arrivals[1:most] if x is not None)
    known = [best[0], *first]
    pool = [x.components for level in of_chain[1:] for x in level]
    search_further(search, known, pool, len(known), lambda fit: fit)
    for k in range(1, len(known)):
        # the verdict is about the number that is asked for: fewer are not worth all the rounds
        settle = search.settle if k == most - 1 else lambda fit: fit
        known[k] = settle(known[k])
        if data.distance(known[k].membership.argmax(1), best[k].membership.argmax(1)) > _DIFFER:
            known[k] = settle(search.shake(known[k]))
        best[k] = max(best[k], known[k], key=attrgetter("objective"))
        arrivals[k] = arrival(known[k])
    return arrivals


def agreed(
    data: BlocData, best: BlocFit, from_chains: list[Arrival | None], gain: float
) -> BlocFit:
    """Return the components that most chains lead to, of those that keep about as much."""
    arrivals = [x for x in from_chains if x is not None]
    least = best.log_likelihood - SAME_KEPT * gain / 2
    options = [arrival(best), *(x for x in arrivals if x.log_likelihood >= least)]
    scale = SAME_BLOCS * 2 * np.log(max(best.membership.shape[1], 2))
    chains = [
        sum(
            x.log_likelihood >= option.log_likelihood - SAME_KEPT * gain
            and data.distance(x.labels, option.labels) <= scale
            for x in arrivals
        )
        for option in options
    ]
    most = int(np.argmax(chains))  # the first of several, which is the best of all
    return best if most == 0 else next(data.search.rounds(options[most].components))


def never_less(search: BlocSearch, best: list[BlocFit], pool: list[BlocComponents]) -> None:
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
        options = [search.climb(start) for start in search.enlarged(fewer, further)]
        options += [next(search.rounds(search.divided(fewer)))]
        best[k] = max([best[k], *options], key=attrgetter("log_likelihood"))
