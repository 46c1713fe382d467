"""Search for the K components that describe rankings best, from the groups of draws.

The groups of each draw are merged two by two. Expectation-maximization goes on from there, with
memberships that are blurred at first [1], which avoids many poor optima. The best result of all
draws is then changed in ways that EM would not: a component is added or exchanged for one that
another start has found, or some rounds see only part of the rankings [2].

**References**

1. *Deterministic annealing EM algorithm*, N. Ueda, R. Nakano (Neural Networks, 1998).
2. *Data perturbation for escaping local maxima in learning*, G. Elidan, M. Ninio, N. Friedman,
   D. Schuurmans (AAAI, 2002).
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from numpyro_rankings.families import RankingFamily
from numpyro_rankings.families.weighted_fit import Parameters
from numpyro_rankings.posterior.bloc_orders import SearchedRows
from numpyro_rankings.rankings import PartialOrders, Rankings

_BLURRED_ROUNDS, _FIRST_POWER = 6, 0.5  # of EM from a merger; the first power of memberships
_SAMPLE = 10_000  # rankings that these rounds see at most
_LEAST_ROUNDS, _MOST_ROUNDS, _MOST_OF_BEST = 5, 12, 50  # of plain EM
_SLOW = 1e-4  # share of the gain below which a round is the last one
_HORIZON = 20  # a change is dropped if its present gain, times this, does not reach the best
_TRIES = 4  # additions or exchanges that fail before no more are tried
_SHAKES = ("some", 0.02), ("some", 0.1), ("some", 0.4), ("blur", 0.3), ("blur", 0.5)
_SHAKEN_ROUNDS, _TURNS = 4, 2  # rounds of EM that see part of the rankings; turns of all shakes
_ROWS_ASKED = 4000  # rankings, by which candidates are compared
_ODDS_CAP = 80.0  # log of the largest ratio of densities, below the limit of float32


class BlocComponents(NamedTuple):
    """Components of a mixture; each parameter has a leading axis K, as ``WeightedFit`` has them."""

    log_shares: np.ndarray
    parameters: Parameters


def as_components(parameters: Parameters, sizes: np.ndarray) -> BlocComponents:
    """Return components with shares from sizes, each with one ranking more than it has."""
    return BlocComponents(np.log((sizes + 1.0) / (sizes.sum() + len(sizes))), parameters)


class BlocFit(NamedTuple):
    """A mixture that was fitted.

    - **log_likelihood** - of the rankings; **objective** - with the pseudo-rankings.
    - **membership** - probability of each component for each row, (rows, K).
    - **trace** - the objective before each round of plain EM, so far.
    """

    components: BlocComponents
    log_likelihood: float
    objective: float
    membership: np.ndarray
    trace: tuple[float, ...]


class Candidates(NamedTuple):
    """Components that may come into others.

    - **parameters** - of P components.
    - **rows** - some distinct rows, with **weights** that sum to 1, by which they are compared.
    - **log_rows** - log probability of each of these, (some, P).
    """

    parameters: Parameters
    rows: np.ndarray
    weights: np.ndarray
    log_rows: np.ndarray


class BlocSearch:
    """Distinct rankings, or partial orders, and how mixtures of them are fitted.

    ``scale`` is the gain in log likelihood that counts as all, see ``slow``.
    """

    def __init__(self, said: Rankings | PartialOrders, family: RankingFamily) -> None:
        self.counts = np.asarray(said.counts, float)
        self.rows = SearchedRows(said, family)
        self.model = family.fitter(self.rows.rankings)
        self.scale = 1.0
        self._sample: BlocSearch | None = None
        if said.num_rankings > _SAMPLE:
            weights = self.counts / self.counts.sum()
            drawn = np.random.default_rng(0).choice(len(weights), _SAMPLE, p=weights)
            rows, times = np.unique(drawn, return_counts=True)
            self._sample = BlocSearch(said._take(rows, times), family)

    @property
    def slow(self) -> float:
        """Gain of a round that is too small to go on."""
        return self.scale * _SLOW

    def log_table(self, components: BlocComponents) -> np.ndarray:
        """Return log share plus log probability of each row in each component, (rows, K)."""
        return self.rows.log_rows(self._of_orderings(components.parameters)) + components.log_shares

    def amounts(self, parameters: Parameters, belonging: np.ndarray) -> np.ndarray:
        """Return how often each component makes each choice, (cells, K), from (rows, K)."""
        of_orderings = partial(self._of_orderings, parameters)
        return self.model.cells.of_cells @ self.rows.share(belonging, of_orderings)

    def _of_orderings(self, parameters: Parameters) -> np.ndarray:
        """Return the log probability of each ordering in each component, (orderings, K)."""
        return self.model.cells.of_rows @ self.model.log_choices(parameters)

    # -- expectation-maximization --------------------------------------------------------------

    def rounds(
        self, components: BlocComponents, counts: np.ndarray | None = None, thorough: bool = False
    ) -> Iterator[BlocFit]:
        """Make rounds of EM, of which none decreases the objective; thorough ones take longer."""
        counts = self.counts if counts is None else counts
        trace: tuple[float, ...] = ()
        while True:
            log_density, membership = normalised(self.log_table(components))
            log_likelihood = float(np.sum(counts * log_density))
            log_prior = self.model.log_prior(components.parameters) + components.log_shares.sum()
            trace = (*trace, log_likelihood + float(log_prior))
            yield BlocFit(components, log_likelihood, trace[-1], membership, trace)
            belonging = membership * counts[:, None]
            components = self._improved(components, belonging, len(trace), thorough)

    def _improved(
        self, components: BlocComponents, belonging: np.ndarray, turn: int, thorough: bool = False
    ) -> BlocComponents:
        amounts = self.amounts(components.parameters, belonging)
        parameters = self.model.fit(components.parameters, amounts, turn, thorough)
        return as_components(parameters, belonging.sum(0))

    def blurred(self, components: BlocComponents, power: float = _FIRST_POWER) -> BlocComponents:
        """Make rounds of EM on a sample, with powers of memberships that increase to almost 1."""
        if self._sample is not None:
            return self._sample.blurred(components, power)
        for turn in range(_BLURRED_ROUNDS):
            current = power + (1 - power) * turn / _BLURRED_ROUNDS
            _, membership = normalised(self.log_table(components) * current)
            components = self._improved(components, membership * self.counts[:, None], turn)
        return components

    def climb(self, components: BlocComponents, target: float = -np.inf) -> BlocFit:
        """Make 5 to 12 rounds, until they add little or will not reach the target."""
        return self._until(self.rounds(components), self.slow, _MOST_ROUNDS, target)

    def settle(self, fit: BlocFit) -> BlocFit:
        """Make further rounds, until they add very little."""
        rounds = self.rounds(fit.components, thorough=True)
        return self._until(rounds, self.slow / 10, _MOST_OF_BEST, -np.inf)

    def _until(self, rounds: Iterator[BlocFit], slow: float, most: int, target: float) -> BlocFit:
        for fit in rounds:
            made = len(fit.trace) - 1
            if made < 2:
                continue
            # Two rounds are compared, because every other one may move blocks that do not fit
            gain = fit.trace[-1] - fit.trace[-3]
            out_of_reach = fit.objective + _HORIZON * gain / 2 < target
            if made >= most or out_of_reach or (made >= _LEAST_ROUNDS and gain < 2 * slow):
                return fit
        raise AssertionError("rounds do not end")

    # -- changes -------------------------------------------------------------------------------

    def candidates(self, pool: Iterable[BlocComponents]) -> Candidates:
        """Gather components, one of those that say the same."""
        parts = zip(*(components.parameters for components in pool), strict=True)
        parameters = tuple(np.concatenate(x) for x in parts)
        rows, weights = np.arange(len(self.counts)), self.counts / self.counts.sum()
        if len(rows) > _ROWS_ASKED:
            drawn = np.random.default_rng(0).choice(len(rows), _ROWS_ASKED, p=weights)
            rows, times = np.unique(drawn, return_counts=True)
            weights = times / _ROWS_ASKED
        cells = self.model.cells.of_rows[self.rows.orderings_of(rows)]
        of_orderings = cells @ self.model.log_choices(parameters)
        log_rows = self.rows.log_rows(of_orderings, rows).astype(np.float32)
        mean = np.einsum("r,rp->p", weights, log_rows)
        _, first = np.unique(np.round(mean, 3), return_index=True)
        log_rows = np.ascontiguousarray(log_rows[:, first])
        parameters = tuple(x[first] for x in parameters)
        return Candidates(parameters, rows, weights.astype(np.float32), log_rows)

    def merged(self, fit: BlocFit) -> BlocComponents:
        """Merge the two components whose union costs least."""
        belonging = fit.membership * self.counts[:, None]
        number = belonging.shape[1] - 1
        parameters = fit.components.parameters
        amounts = self.amounts(parameters, belonging)
        return self.merge(parameters, amounts, belonging.sum(0), number)[number]

    def merge(
        self, parameters: Parameters, amounts: np.ndarray, sizes: np.ndarray, most: int
    ) -> dict[int, BlocComponents]:
        """Merge groups two by two, each time the pair whose union costs least log likelihood.

        :param amounts: how often each group makes each choice, (cells, C); **sizes** is (C,).
        :return: the components by their number, from C, but at most **most**, down to 1.
        """
        steps = self.model.groups(parameters, amounts, sizes).merge()
        return {len(sizes): as_components(x, sizes) for x, sizes in steps if len(sizes) <= most}

    def enlarged(self, fit: BlocFit, further: Candidates) -> list[BlocComponents]:
        """Add one of the candidates, those that add most first."""
        ratios = self._ratios(fit, further)
        share = 1 / (1 + fit.membership.shape[1])
        gains, shares = self._gains(further, np.ones((len(ratios), 1), np.float32), ratios, share)
        before, options = fit.components, []
        for p in np.argsort(-gains)[:_TRIES]:
            log_shares = np.append(before.log_shares + np.log1p(-shares[p]), np.log(shares[p]))
            both = zip(before.parameters, further.parameters, strict=True)
            parameters = tuple(np.append(x, y[[p]], 0) for x, y in both)
            options.append(BlocComponents(log_shares, parameters))
        return options

    def divided(self, fit: BlocFit) -> BlocComponents:
        """Divide the largest component into two equal ones."""
        log_shares = fit.components.log_shares
        k = int(np.argmax(log_shares))
        log_shares = np.append(log_shares, log_shares[k])
        log_shares[[k, -1]] -= np.log(2)
        parameters = (np.append(x, x[[k]], 0) for x in fit.components.parameters)
        return BlocComponents(log_shares, tuple(parameters))

    def exchanged(self, fit: BlocFit, further: Candidates) -> list[BlocComponents]:
        """Exchange a component for one of the candidates, the exchanges that add most first."""
        before, ratios = fit.components, self._ratios(fit, further)
        shares_before, options = np.exp(before.log_shares), []
        for k, share in enumerate(shares_before):
            rest = (1 - fit.membership[further.rows, k]) / (1 - share)
            gains, shares = self._gains(further, rest[:, None].astype(np.float32), ratios, share)
            options += [(gains[p], k, p, shares[p]) for p in np.argsort(-gains)[:_TRIES]]
        options.sort(key=lambda option: -option[0])
        exchanged = []
        for _, k, p, share in options[:_TRIES]:
            log_shares = before.log_shares + np.log1p(-share) - np.log1p(-shares_before[k])
            log_shares[k] = np.log(share)
            parameters = tuple(x.copy() for x in before.parameters)
            for x, new in zip(parameters, further.parameters, strict=True):
                x[k] = new[p]
            exchanged.append(BlocComponents(log_shares, parameters))
        return exchanged

    def _ratios(self, fit: BlocFit, further: Candidates) -> np.ndarray:
        """Return the density of each row in each candidate over that in the mixture."""
        log_density, _ = normalised(self.log_table(fit.components))
        log_ratios = further.log_rows - log_density[further.rows, None].astype(np.float32)
        return np.exp(np.minimum(log_ratios, _ODDS_CAP))

    def _gains(
        self, further: Candidates, rest: np.ndarray, ratios: np.ndarray, share: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what each candidate adds beside the rest of a mixture, and its best share."""
        shares = np.full(ratios.shape[1], share, np.float32)
        for _ in range(3):
            part = shares * ratios
            part /= np.maximum(part + (1 - shares) * rest, np.finfo(np.float32).tiny)
            shares = np.clip(np.einsum("r,rp->p", further.weights, part), 1e-6, 1 - 1e-6)
        density = np.maximum(shares * ratios + (1 - shares) * rest, np.finfo(np.float32).tiny)
        return np.einsum("r,rp->p", further.weights, np.log(density)), shares

    def exchange(self, best: BlocFit, further: Candidates) -> BlocFit:
        """Exchange components as long as EM then gets to a higher objective."""
        while True:
            fit = self.best_of(best, self.exchanged(best, further))
            if fit is best:
                return best
            best = fit

    def best_of(self, best: BlocFit, changed: Iterable[BlocComponents]) -> BlocFit:
        """Return the first change from which EM gets to a higher objective, or else the best."""
        for components in changed:
            fit = self.climb(components, best.objective)
            if fit.objective > best.objective + self.slow:
                return fit
        return best

    def shake(self, best: BlocFit) -> BlocFit:
        """Blur the memberships, or make some rounds that see only part of the rankings."""
        rng = np.random.default_rng(best.membership.shape[1])
        for kind, amount in _SHAKES * _TURNS:
            if kind == "blur":
                shaken = self.blurred(best.components, amount)
            else:
                kept = self.counts * (rng.random(len(self.counts)) < amount)
                shaken = best.components
                for fit in self.rounds(shaken, kept):
                    shaken = fit.components
                    if len(fit.trace) > _SHAKEN_ROUNDS:
                        break
            best = self.best_of(best, [shaken])
        return best


def normalised(log_table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the log of the sum of each row, (rows,), and the shares of its entries."""
    largest = np.ascontiguousarray(log_table.T).max(0)[:, None]  # several times as fast as by rows
    shares = np.exp(log_table - largest)
    total = np.einsum("rk->r", shares)[:, None]
    shares /= total
    return (largest + np.log(total))[:, 0], shares
