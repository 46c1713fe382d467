"""The two kinds of components that blocs have, and how they are fitted to sums over rankings."""

from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array

from numpyro_rankings.posterior.choice_cells import ChoiceCells, choice_cells
from numpyro_rankings.rankings import Rankings, num_stages

_MOVES = 2  # of blocks of items in a center, in each round
_FEW_COSTS, _MOST_COSTS = 2000, 300_000  # of pairs of items in all stages, see MallowsBlocs
_QUICK_TURNS, _LEAST_THETA = 2, 1e-3  # turns of quick moves; the θ that they see at least
_STEPS = 5  # of Hunter's MM algorithm in each round
_LEAST_MASS = np.float32(1e-30)  # of a set of items: numbers of rankings over it fit into float32
_GRID = np.append(np.geomspace(60.0, 1e-4, 3000), 0.0)  # of θ, where fits are tabulated
_PAIRS_AT_ONCE = 2**22  # cells of the largest array over pairs of groups


class Components(NamedTuple):
    """Components of a mixture.

    - **log_shares** - (K,).
    - **parameters** - arrays with a leading axis K: centers (n,) and concentrations (T,), or
      weights (n,), where the last one may be of a pool of unseen items.
    """

    log_shares: np.ndarray
    parameters: tuple[np.ndarray, ...]


class BlocModel(Protocol):
    """What a kind of components knows."""

    cells: ChoiceCells

    def log_choices(self, parameters: tuple[np.ndarray, ...]) -> np.ndarray:
        """Return the log probability of each cell in each component, (cells, K)."""
        ...

    def log_prior(self, parameters: tuple[np.ndarray, ...]) -> float:
        """Return the log of what one pseudo-ranking adds to the likelihood of the components."""
        ...

    def fit(
        self,
        parameters: tuple[np.ndarray, ...],
        amounts: np.ndarray,
        turn: int,
        thorough: bool = False,
    ) -> tuple[np.ndarray, ...]:
        """Improve the parameters, given how often each component makes each choice, (cells, K).

        :param turn: number of the round, which says what is tried.
        :param thorough: whether more may be tried, which takes longer.
        """
        ...

    def merge(
        self, parameters: tuple[np.ndarray, ...], amounts: np.ndarray, sizes: np.ndarray, most: int
    ) -> dict[int, Components]:
        """Merge groups two by two, each time the pair whose union costs least log likelihood.

        :param amounts: how often each group makes each choice, (cells, C).
        :param sizes: rankings of each group, (C,).
        :return: the components by their number, from C, but at most **most**, down to 1.
        """
        ...


def as_components(parameters: tuple[np.ndarray, ...], sizes: np.ndarray) -> Components:
    """Return components with shares from sizes, each with one ranking more than it has."""
    return Components(np.log((sizes + 1.0) / (sizes.sum() + len(sizes))), parameters)


class MallowsBlocs:
    """Generalized Mallows components.

    A block of items is moved in a center. Thorough moves compare the options with the best θ of
    each, for which they need the costs of all pairs of items at each stage. Quick moves compare
    them with the present θ, for which one cost of each pair is enough; the center is kept unless
    the new one is better with the best θ. Tables with few items have thorough moves alone, and
    those with very many have quick ones.
    """

    def __init__(self, rankings: Rankings) -> None:
        self.num_items, self.num_stages = rankings.num_items, num_stages(rankings)
        self.cells = choice_cells(rankings, self.num_stages)
        self._limits = self.num_items - 1 - np.arange(self.num_stages)
        self._left = self.cells.sets[self.cells.set_of]
        self._stages = self.num_items - self._left.sum(1).astype(int)
        self._behind = np.tri(self.num_items)  # that the first item is not before the second one
        self._bounds = np.searchsorted(self.cells.items, np.arange(self.num_items + 1))
        self._num_costs = self.num_stages * self.num_items**2
        # cells in the order of stage and item, which are the rows of a matrix that adds them up
        groups = self._stages * self.num_items + self.cells.items
        self._order = np.argsort(groups, kind="stable")
        ends = np.arange(self.num_stages * self.num_items + 1)
        ends = np.searchsorted(groups[self._order], ends)
        ones, number = np.ones(len(groups)), len(groups)
        self._adder = csr_array((ones, self._order, ends), shape=(len(ends) - 1, number))
        of_stage = ones, self._order, ends[:: self.num_items]
        self._of_stage = csr_array(of_stage, shape=(self.num_stages, number))
        self._last_codes: tuple[np.ndarray, np.ndarray] | None = None
        # mean codes, and the best log likelihood of a ranking with each, at each stage
        on_grid = np.repeat(_GRID[:, None], self.num_stages, axis=1)
        log_psis, means, _ = self._moments(on_grid)
        self._means, self._log_likelihoods = means.T, (-on_grid * means - log_psis).T

    def log_choices(self, parameters: tuple[np.ndarray, ...]) -> np.ndarray:
        center, theta = parameters
        log_psis, _, _ = self._moments(theta)
        return -theta.T[self._stages] * self._codes_of_cells(center) - log_psis.T[self._stages]

    def _codes_of_cells(self, center: np.ndarray) -> np.ndarray:
        """Return the code of each cell about centers, (cells, K), and keep it for the next call."""
        if self._last_codes is not None and np.array_equal(self._last_codes[0], center):
            return self._last_codes[1]
        places = np.argsort(center, axis=1)
        ahead = (places[:, None, :] < places[:, :, None]).astype(np.float32)
        codes = np.empty((len(self._left), len(center)), np.float32)
        for item in range(self.num_items):
            some = slice(self._bounds[item], self._bounds[item + 1])
            codes[some] = self._left[some] @ ahead[:, item].T
        self._last_codes = center.copy(), codes
        return codes

    def log_prior(self, parameters: tuple[np.ndarray, ...]) -> float:
        _, theta = parameters
        return float(np.sum(-theta - self._moments(theta)[0]))

    def entropy(self, parameters: tuple[np.ndarray, ...]) -> np.ndarray:
        """Return the entropy of a list of T places, (K,)."""
        _, theta = parameters
        log_psis, means, _ = self._moments(theta)
        return np.sum(log_psis + theta * means, axis=1)

    def _moments(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return log normalisers, mean codes and their variances, of θ (…, T)."""
        codes = np.arange(self.num_items)
        terms = np.where(codes <= self._limits[:, None], np.exp(-theta[..., None] * codes), 0.0)
        psi = terms.sum(-1)
        mean = terms @ codes / psi
        return np.log(psi), mean, terms @ codes**2 / psi - mean**2

    def fit(
        self,
        parameters: tuple[np.ndarray, ...],
        amounts: np.ndarray,
        turn: int,
        thorough: bool = False,
    ) -> tuple[np.ndarray, ...]:
        return self._fitted(parameters[0], amounts, turn, thorough)

    def _fitted(
        self, center: np.ndarray, amounts: np.ndarray, turn: int, thorough: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Move blocks of items in the centers, and take the best θ."""
        counts = (self._of_stage @ amounts).T
        half = max(self.num_items // 2, 1)
        lengths = [1, *(1 + (turn * k) % half for k in range(1, _MOVES))]
        # of one component, thorough moves take little longer
        thorough = (thorough or len(center) == 1) and self._num_costs <= _MOST_COSTS
        if thorough or self._num_costs <= _FEW_COSTS:
            costs = self._costs(amounts)
            for length in lengths:
                center = self._moved(center, costs, counts, length)
            sums = np.sum(self._ordered(center, costs) * self._behind, axis=(2, 3))
            return center, self._best_concentration(sums, counts)
        sums = self._sums(center, amounts)
        theta = self._best_concentration(sums, counts)
        costs = self._weighted_costs(amounts, np.maximum(theta, _LEAST_THETA))
        new = center
        for length in lengths * _QUICK_TURNS:
            new = self._moved_quickly(new, costs, length)
        new_sums = self._sums(new, amounts)
        before, after = (self._best_log_likelihood(x, counts) for x in (sums, new_sums))
        better = (after > before)[:, None]
        sums = np.where(better, new_sums, sums)
        return np.where(better, new, center), self._best_concentration(sums, counts)

    def _sums(self, center: np.ndarray, amounts: np.ndarray) -> np.ndarray:
        """Sum the codes of each component about its center, (K, T)."""
        return (self._of_stage @ (amounts * self._codes_of_cells(center))).T

    # -- thorough moves ------------------------------------------------------------------------

    def _costs(self, amounts: np.ndarray) -> np.ndarray:
        """Return the cost of each item ahead of another at each stage, (K, T, n, n)."""
        n, stages, number = self.num_items, self.num_stages, amounts.shape[1]
        found = []
        for k in range(number):
            self._adder.data = amounts[self._order, k]  # a new matrix would take most of the time
            found.append(self._adder @ self._left)
        costs = np.stack(found).reshape(number, stages, n, n)
        costs[..., np.arange(n), np.arange(n)] = 0.0
        return costs

    def _ordered(self, center: np.ndarray, costs: np.ndarray) -> np.ndarray:
        """Return the costs of the items in the order of the centers."""
        k, stage = np.arange(len(center))[:, None, None, None], np.arange(self.num_stages)
        rows, columns = center[:, None, :, None], center[:, None, None, :]
        return costs[k, stage[:, None, None], rows, columns]

    def _moved(
        self, center: np.ndarray, costs: np.ndarray, counts: np.ndarray, length: int
    ) -> np.ndarray:
        """Move the best block of adjacent items to its best place, with the best θ for each option.

        It is what ``infer.mallows.start.move_blocks`` does, for a few components, which takes less
        time than to compile it.
        """
        n, here = self.num_items, np.arange(self.num_items)
        ordered = self._ordered(center, costs)
        sums = np.sum(ordered * self._behind, axis=(2, 3))
        # cost of moving the item at place a behind that at place b, cumulated
        change = ordered - ordered.swapaxes(2, 3)
        total = np.zeros((*change.shape[:2], n + 1, n + 1))  # np.pad takes several times as long
        total[:, :, 1:, 1:] = change.cumsum(2).cumsum(3)
        behind = total[:, :, np.minimum(here + length, n)] - total[:, :, :-1]
        start, new_start = here[:, None], here
        end = np.minimum(np.where(new_start > start, new_start + length, new_start), n)
        gain = behind[:, :, start, end] - behind[:, :, start, start]
        options = (sums[:, :, None, None] + gain).reshape(*sums.shape, n * n)
        log_likelihood = self._best_log_likelihood(options, counts[..., None])
        fits = (np.maximum(start, new_start) + length <= n).ravel()
        best = np.where(fits, log_likelihood, -np.inf).argmax(1)
        return self._after_move(center, best, length)

    def _after_move(self, center: np.ndarray, option: np.ndarray, length: int) -> np.ndarray:
        """Return the centers after moves of blocks, whose options are numbered by start and new."""
        n, here = self.num_items, np.arange(self.num_items)
        start, new_start = (x[:, None] for x in np.divmod(option, n))
        nth = np.where(here < new_start, here, here - length)
        source = np.where(nth < start, nth, nth + length)
        in_block = (here >= new_start) & (here < new_start + length)
        source = np.where(in_block, start + here - new_start, source)
        return np.take_along_axis(center, source, axis=1)

    # -- quick moves ---------------------------------------------------------------------------

    def _weighted_costs(self, amounts: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return the cost of each item ahead of another, weighted by θ and summed, (K, n, n)."""
        n = self.num_items
        weighted = (amounts * theta.T[self._stages]).astype(np.float32).T.copy()
        costs = np.empty((n, len(weighted), n), np.float32)
        for item in range(n):
            some = slice(self._bounds[item], self._bounds[item + 1])
            costs[item] = weighted[:, some] @ self._left[some]
        return costs.swapaxes(0, 1).astype(float)

    def _moved_quickly(self, center: np.ndarray, costs: np.ndarray, length: int) -> np.ndarray:
        n, here = self.num_items, np.arange(self.num_items)
        ordered = costs[np.arange(len(center))[:, None, None], center[:, :, None], center[:, None]]
        change = ordered - ordered.swapaxes(1, 2)
        total = np.pad(change.cumsum(1).cumsum(2), ((0, 0), (1, 0), (1, 0)))
        behind = total[:, np.minimum(here + length, n)] - total[:, :-1]
        start, new_start = here[:, None], here
        end = np.minimum(np.where(new_start > start, new_start + length, new_start), n)
        gain = behind[:, start, end] - behind[:, start, start]
        fits = np.maximum(start, new_start) + length <= n
        best = np.where(fits, gain, np.inf).reshape(len(center), -1).argmin(1)
        return self._after_move(center, best, length)

    def _best_log_likelihood(self, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the log likelihood at the best θ, of codes and a pseudo-ranking of codes 1.

        :param sums: of codes, (K, T, …), and **counts** of rankings, of a shape that broadcasts.
        """
        found = 0.0
        for j in range(self.num_stages):
            number = counts[:, j] + 1.0
            means = (sums[:, j] + 1.0) / number
            found = found + number * np.interp(means, self._means[j], self._log_likelihoods[j])
        return np.asarray(found)

    def _best_concentration(self, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the best θ, (K, T)."""
        means = (sums + 1.0) / (counts + 1.0)
        parts = zip(means.T, self._means, strict=True)
        theta = np.stack([np.interp(x, y, _GRID) for x, y in parts], axis=1)
        for _ in range(2):
            _, now, variance = self._moments(theta)
            theta = np.maximum(theta + (now - means) / np.maximum(variance, 1e-30), 0.0)
        return np.where(means < 0.5 * self._limits, theta, 0.0)

    def merge(
        self, parameters: tuple[np.ndarray, ...], amounts: np.ndarray, sizes: np.ndarray, most: int
    ) -> dict[int, Components]:
        center, sizes = parameters[0].copy(), sizes.astype(float)
        amounts = amounts.copy()
        counts = (self._of_stage @ amounts).T
        number, found = len(center), {}
        alive = np.ones(number, bool)
        # of group c about the center of d, (C, C, T)
        codes = self._codes(amounts, center)
        own_codes = codes[np.arange(number), np.arange(number)]
        theta = self._best_concentration(own_codes, counts)
        own = self._best_log_likelihood(own_codes, counts)
        pairs = np.stack(np.divmod(np.arange(number**2), number))
        losses = np.full((number, number), np.inf)
        self._update_losses(losses, pairs, codes, counts, own)
        for left in range(number, 0, -1):
            if left <= most:
                kept = np.flatnonzero(alive)
                found[left] = as_components((center[kept], theta[kept]), sizes[kept])
            if left == 1:
                break
            c, d = np.unravel_index(np.argmin(losses), losses.shape)  # c goes to d
            for sums in (amounts.T, counts, sizes, codes):
                sums[d] += sums[c]
            alive[c] = False
            refitted = self._fitted(center[[d]], amounts[:, [d]], left)
            center[d], theta[d] = (x[0] for x in refitted)
            codes[:, d] = self._codes(amounts, center[[d]])[:, 0]
            own[d] = self._best_log_likelihood(codes[[d], [d]], counts[[d]])[0]
            losses[c], losses[:, c] = np.inf, np.inf
            others = np.flatnonzero(alive & (np.arange(number) != d))
            if len(others):
                same = np.full(len(others), d)
                pairs = np.concatenate([[others, same], [same, others]], axis=1)
                self._update_losses(losses, pairs, codes, counts, own)
        return found

    def _codes(self, amounts: np.ndarray, center: np.ndarray) -> np.ndarray:
        """Sum the codes of groups about centers, (groups, centers, T)."""
        codes, sums = self._codes_of_cells(center), []
        for begin, end in pairwise(self._of_stage.indptr):
            some = self._order[begin:end]
            sums.append(amounts[some].T @ codes[some].astype(float))
        return np.stack(sums, axis=-1)

    def _update_losses(
        self,
        losses: np.ndarray,
        pairs: np.ndarray,
        codes: np.ndarray,
        counts: np.ndarray,
        own: np.ndarray,
    ) -> None:
        c, d = pairs
        sums = codes[c, d] + codes[d, d]
        together = self._best_log_likelihood(sums, counts[c] + counts[d])
        losses[c, d] = np.where(c == d, np.inf, own[c] + own[d] - together)


def _above_zero(weights: np.ndarray) -> np.ndarray:
    """Weights of draws may be too small for float32."""
    return np.maximum(weights, np.finfo(np.float32).tiny)


class PlackettLuceBlocs:
    """Plackett–Luce components; with a pool, the last weight is that of all unseen items."""

    def __init__(self, rankings: Rankings, pool: bool) -> None:
        self.cells = choice_cells(rankings, rankings.orderings.shape[1], pool)
        sets = self.cells.sets.astype(float)
        self._sets = np.pad(sets, ((0, 0), (0, int(pool))), constant_values=1.0)
        self._num_items = self._sets.shape[1]
        # the steps of Hunter's algorithm are in float32, which takes a third of the time
        self._few_bits = self._sets.astype(np.float32)
        self._few_bits_across = np.ascontiguousarray(self._few_bits.T)
        ones, here = np.ones(len(self.cells.items)), np.arange(len(self.cells.items))
        of_item = csr_array((ones, (self.cells.items, here)), (self._num_items, len(ones)))
        of_set = csr_array((ones, (self.cells.set_of, here)), (len(sets), len(ones)))
        self._of_item, self._of_set = of_item, of_set

    def log_choices(self, parameters: tuple[np.ndarray, ...]) -> np.ndarray:
        weights = _above_zero(parameters[0])
        log_masses = np.log(self._sets @ weights.T)
        return np.log(weights.T)[self.cells.items] - log_masses[self.cells.set_of]

    def log_prior(self, parameters: tuple[np.ndarray, ...]) -> float:
        return float(np.sum(np.log(_above_zero(parameters[0]))))

    def fit(
        self,
        parameters: tuple[np.ndarray, ...],
        amounts: np.ndarray,
        turn: int,
        thorough: bool = False,
    ) -> tuple[np.ndarray, ...]:
        (weights,) = parameters
        return (self._fitted(weights, *self._sums(amounts)),)

    def _sums(self, amounts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how often items are chosen, (K, n), and sets are chosen from, (K, sets)."""
        return (self._of_item @ amounts).T, (self._of_set @ amounts).T

    def _fitted(self, weights: np.ndarray, chosen: np.ndarray, in_use: np.ndarray) -> np.ndarray:
        """Take steps of Hunter's MM algorithm, as if each item had been chosen once more."""
        in_use = in_use.astype(np.float32)
        for _ in range(_STEPS):
            masses = weights.astype(np.float32) @ self._few_bits_across
            times = in_use / np.maximum(masses, _LEAST_MASS)
            weights = (chosen + 1.0) / (times @ self._few_bits + self._num_items).astype(float)
            weights = weights / weights.sum(1, keepdims=True)
        return weights

    def merge(
        self, parameters: tuple[np.ndarray, ...], amounts: np.ndarray, sizes: np.ndarray, most: int
    ) -> dict[int, Components]:
        weights, sizes = parameters[0].astype(float), sizes.astype(float)
        weights = _above_zero(weights)
        chosen, in_use = self._sums(amounts)
        number, found = len(weights), {}
        alive, losses = np.ones(number, bool), np.full((number, number), np.inf)
        own = self._log_likelihoods(weights, chosen, in_use)
        low, high = np.triu_indices(number, 1)
        self._update_losses(losses, low, high, (weights, chosen, in_use, sizes, own))
        for left in range(number, 0, -1):
            if left <= most:
                kept = np.flatnonzero(alive)
                found[left] = as_components((weights[kept],), sizes[kept])
            if left == 1:
                break
            c, d = np.unravel_index(np.argmin(losses), losses.shape)
            weights[d] = (sizes[c] * weights[c] + sizes[d] * weights[d]) / (sizes[c] + sizes[d])
            for sums in (chosen, in_use, sizes):
                sums[d] += sums[c]
            weights[d] = self._fitted(weights[[d]], chosen[[d]], in_use[[d]])[0]
            own[d] = self._log_likelihoods(weights[[d]], chosen[[d]], in_use[[d]])[0]
            alive[c] = False
            losses[c], losses[:, c] = np.inf, np.inf
            others = np.flatnonzero(alive & (np.arange(number) != d))
            low, high = np.minimum(others, d), np.maximum(others, d)
            self._update_losses(losses, low, high, (weights, chosen, in_use, sizes, own))
        return found

    def _log_likelihoods(
        self, weights: np.ndarray, chosen: np.ndarray, in_use: np.ndarray
    ) -> np.ndarray:
        log_masses = np.log(weights @ self._sets.T)
        return np.sum(chosen * np.log(weights), 1) - np.sum(in_use * log_masses, 1)

    def _update_losses(
        self, losses: np.ndarray, low: np.ndarray, high: np.ndarray, groups: tuple[Any, ...]
    ) -> None:
        """Compare two groups with one that has the mean of their weights."""
        weights, chosen, in_use, sizes, own = groups
        at_once = max(1, _PAIRS_AT_ONCE // len(self._sets))
        for start in range(0, len(low), at_once):
            c, d = low[start : start + at_once], high[start : start + at_once]
            share = (sizes[c] / (sizes[c] + sizes[d]))[:, None]
            mean = share * weights[c] + (1 - share) * weights[d]
            sums = chosen[c] + chosen[d], in_use[c] + in_use[d]
            losses[c, d] = own[c] + own[d] - self._log_likelihoods(mean, *sums)
