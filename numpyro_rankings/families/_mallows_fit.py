"""How centers and concentrations are fitted to weighted rankings."""

from collections.abc import Mapping
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.sparse import csr_array

from numpyro_rankings.families._block_moves import costs_of_moves, sources_of_move
from numpyro_rankings.families.choice_cells import choice_cells
from numpyro_rankings.families.weighted_fit import (
    FittedComponent,
    Groups,
    Parameters,
    WeightedFit,
)
from numpyro_rankings.ops.codes import max_codes
from numpyro_rankings.ops.special import concentration_mode, log_psi
from numpyro_rankings.ops.sums import scatter_add
from numpyro_rankings.rankings import Rankings, num_stages

_MOVES = 2  # of blocks of items in a center, in each round
_FEW_COSTS, _MOST_COSTS = 2000, 300_000  # of pairs of items in all stages, see MallowsFit
_QUICK_TURNS, _LEAST_THETA = 2, 1e-3  # turns of quick moves; the θ that they see at least
_GRID = np.append(np.geomspace(60.0, 1e-4, 3000), 0.0)  # of θ, where fits are tabulated


# -- in JAX --------------------------------------------------------------------------------------


def fit_lists(
    center: Array, orderings: Array, weights: Array, lengths: Array
) -> tuple[Array, Array]:
    """Move blocks of items in the centers, and take the best θ, see ``fit_costs``.

    :param center: (K, n).
    :param orderings: distinct lists, (rows, T), and their **weights** in each component, (K, rows).
    :param lengths: of the blocks, one after the other, (moves,).
    """
    num_items, num_stages = center.shape[1], orderings.shape[1]
    limits, is_listed = max_codes(num_items, num_stages), orderings >= 0
    stages, (later, earlier) = np.arange(num_stages), np.tril_indices(num_stages, -1)
    # an item of -1 (padding) is sent out of range, where "drop" ignores it
    items = jnp.where(is_listed, orderings, num_items)

    def fit_one(component: tuple[Array, Array]) -> tuple[Array, Array]:
        center, weights = component
        weights = jnp.where(is_listed, weights[:, None], 0.0)
        listed = scatter_add(jnp.zeros((num_stages, num_items)), (stages, items), weights)
        beaten = jnp.zeros((num_stages, num_items, num_items))
        pairs = later, items[:, later], items[:, earlier]
        beaten = scatter_add(beaten, pairs, weights[:, later])
        costs = jnp.where(jnp.eye(num_items, dtype=bool), 0.0, listed[:, :, None] - beaten)
        return fit_costs(center, costs, listed.sum(1), limits, lengths)

    return jax.lax.map(fit_one, (center, weights))


def fit_costs(
    center: Array, costs: Array, counts: Array, limits: Array, lengths: Array
) -> tuple[Array, Array]:
    """Move the best block of adjacent items to its best place, with the best θ for each option.

    With θ fixed, the present center would often stay the best.

    :param center: (n,).
    :param costs: how much a stage's sum of codes grows if item k stands before i, (T, n, n).
    :param counts: rankings that reach each stage, (T,).
    :param lengths: of the block in each move, one after the other, (moves,), at least 1.
    :return: center and θ, regularised by one pseudo-ranking whose codes are 1: θ stays finite.
    """

    def best_concentration(sums: Array) -> tuple[Array, Array]:
        b, m = (jnp.expand_dims(x, range(1, sums.ndim)) for x in (counts + 2.0, limits))
        theta = concentration_mode(sums + 1.0, b, m)
        return theta, jnp.sum(-theta * (sums + 1.0) - (b - 1.0) * log_psi(theta, m), axis=0)

    def code_sums(center: Array) -> tuple[Array, Array]:
        ordered_costs = costs[:, center][:, :, center]
        return jnp.tril(ordered_costs).sum((1, 2)), ordered_costs

    def move(center: Array, length: Array) -> tuple[Array, None]:
        sums, ordered_costs = code_sums(center)
        # cost of moving the item at place a behind that at place b
        change = ordered_costs - ordered_costs.swapaxes(1, 2)
        total = jnp.pad(jnp.cumsum(jnp.cumsum(change, axis=1), axis=2), ((0, 0), (1, 0), (1, 0)))
        further, fits = costs_of_moves(total, length, jnp)
        _, log_likelihood = best_concentration(sums[:, None, None] + further)
        best = jnp.argmax(jnp.where(fits, log_likelihood, -jnp.inf))
        return center[sources_of_move(len(center), best, length, jnp)], None

    center, _ = jax.lax.scan(move, center, lengths)
    return center, best_concentration(code_sums(center)[0])[0]


# -- in NumPy ------------------------------------------------------------------------------------


def largest_entropy(num_items: int, num_stages: int) -> float:
    """Return the entropy of a list of so many places whose items are at random."""
    return float(np.log(np.arange(num_items, 0, -1)[:num_stages]).sum())


class MallowsFit(WeightedFit):
    """Generalized Mallows components: centers, (K, n), and concentrations, (K, T).

    A block of items is moved in a center. Thorough moves compare the options with the best θ of
    each, for which they need the costs of all pairs of items at each stage, as ``fit_costs`` does.
    Quick moves compare them with the present θ, for which one cost of each pair is enough; the
    center is kept unless the new one is better with the best θ. Tables with few items have thorough
    moves alone, and those with very many have quick ones.
    """

    def __init__(self, rankings: Rankings) -> None:
        self.num_items, self.num_stages = rankings.num_items, num_stages(rankings)
        self.cells = choice_cells(rankings, self.num_stages)
        self._limits = self.num_items - 1 - np.arange(self.num_stages)
        self._left = self.cells.sets[self.cells.set_of]
        self._stages = self.num_items - self._left.sum(1).astype(int)
        self._behind = np.tri(self.num_items)  # whether the first item is not before the second one
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

    def parameters_of(self, sites: Mapping[str, np.ndarray]) -> Parameters:
        return sites["center"], sites["concentration"].astype(float)

    def log_choices(self, parameters: Parameters) -> np.ndarray:
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
        for item, some in enumerate(self._cells_by_item()):
            codes[some] = self._left[some] @ ahead[:, item].T
        self._last_codes = center.copy(), codes
        return codes

    def _cells_by_item(self) -> list[slice]:
        return [slice(*bounds) for bounds in pairwise(self._bounds)]

    def log_prior(self, parameters: Parameters) -> float:
        _, theta = parameters
        return float(np.sum(-theta - self._moments(theta)[0]))

    def describe(self, parameters: Parameters) -> list[FittedComponent]:
        agreement = 1 - self.entropy(parameters) / largest_entropy(self.num_items, self.num_stages)
        return [
            FittedComponent(center.astype(np.int32), float(x), {"concentration": theta})
            for center, theta, x in zip(*parameters, agreement, strict=True)
        ]

    def entropy(self, parameters: Parameters) -> np.ndarray:
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

    # -- concentrations ------------------------------------------------------------------------

    def best_log_likelihood(self, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the log likelihood at the best θ, of codes and a pseudo-ranking of codes 1.

        :param sums: of codes, (K, T, …), and **counts** of rankings, of a shape that broadcasts.
        """
        total = 0.0
        for j in range(self.num_stages):
            number = counts[:, j] + 1.0
            means = (sums[:, j] + 1.0) / number
            total = total + number * np.interp(means, self._means[j], self._log_likelihoods[j])
        return np.asarray(total)

    def best_concentration(self, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the best θ, (K, T)."""
        means = (sums + 1.0) / (counts + 1.0)
        parts = zip(means.T, self._means, strict=True)
        theta = np.stack([np.interp(x, y, _GRID) for x, y in parts], axis=1)
        for _ in range(2):
            _, expected, variance = self._moments(theta)
            theta = np.maximum(theta + (expected - means) / np.maximum(variance, 1e-30), 0.0)
        return np.where(means < 0.5 * self._limits, theta, 0.0)

    # -- centers -------------------------------------------------------------------------------

    def fit(
        self, parameters: Parameters, amounts: np.ndarray, turn: int, thorough: bool = False
    ) -> Parameters:
        center, counts = parameters[0], self.stage_counts(amounts)
        half = max(self.num_items // 2, 1)
        lengths = [1, *(1 + (turn * k) % half for k in range(1, _MOVES))]
        # Thorough moves of one component take little longer.
        thorough = (thorough or len(center) == 1) and self._num_costs <= _MOST_COSTS
        if thorough or self._num_costs <= _FEW_COSTS:
            costs = self._costs(amounts)
            for length in lengths:
                center = self._moved(center, costs, length, counts)
            sums = np.sum(self._ordered(center, costs) * self._behind, axis=(2, 3))
            return center, self.best_concentration(sums, counts)
        return self._fit_quickly(center, amounts, counts, lengths)

    def _fit_quickly(
        self, center: np.ndarray, amounts: np.ndarray, counts: np.ndarray, lengths: list[int]
    ) -> Parameters:
        sums = self._sums(center, amounts)
        theta = self.best_concentration(sums, counts)
        costs = self._weighted_costs(amounts, np.maximum(theta, _LEAST_THETA))
        new = center
        for length in lengths * _QUICK_TURNS:
            new = self._moved(new, costs, length)
        new_sums = self._sums(new, amounts)
        before, after = (self.best_log_likelihood(x, counts) for x in (sums, new_sums))
        better = (after > before)[:, None]
        sums = np.where(better, new_sums, sums)
        return np.where(better, new, center), self.best_concentration(sums, counts)

    def stage_counts(self, amounts: np.ndarray) -> np.ndarray:
        """Count the rankings of each component that reach each stage, (K, T)."""
        return (self._of_stage @ amounts).T

    def _sums(self, center: np.ndarray, amounts: np.ndarray) -> np.ndarray:
        """Sum the codes of each component about its center, (K, T)."""
        return (self._of_stage @ (amounts * self._codes_of_cells(center))).T

    def _costs(self, amounts: np.ndarray) -> np.ndarray:
        """Return the cost of each item ahead of another at each stage, (K, T, n, n)."""
        n, costs = self.num_items, []
        for of_component in amounts.T:
            self._adder.data = of_component[self._order]  # to make it takes most of the time
            costs.append(self._adder @ self._left)
        table = np.stack(costs).reshape(-1, self.num_stages, n, n)
        table[..., np.arange(n), np.arange(n)] = 0.0
        return table

    def _weighted_costs(self, amounts: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return the cost of each item ahead of another, weighted by θ, (K, 1, n, n)."""
        n = self.num_items
        weighted = (amounts * theta.T[self._stages]).astype(np.float32).T.copy()
        costs = np.empty((n, len(weighted), n), np.float32)
        for item, some in enumerate(self._cells_by_item()):
            costs[item] = weighted[:, some] @ self._left[some]
        return costs.swapaxes(0, 1).astype(float)[:, None]

    def _ordered(self, center: np.ndarray, costs: np.ndarray) -> np.ndarray:
        """Return the costs of the items in the order of the centers."""
        k, stage = np.arange(len(center))[:, None, None, None], np.arange(costs.shape[1])
        rows, columns = center[:, None, :, None], center[:, None, None, :]
        return costs[k, stage[:, None, None], rows, columns]

    def _moved(
        self, center: np.ndarray, costs: np.ndarray, length: int, counts: np.ndarray | None = None
    ) -> np.ndarray:
        """Move the best block of adjacent items to its best place.

        :param costs: (K, T, n, n), or (K, 1, n, n) if they are weighted by θ.
        :param counts: rankings of each stage, (K, T), for the best θ of each option; else the one
            that costs least is the best.
        """
        n, ordered = self.num_items, self._ordered(center, costs)
        change = ordered - ordered.swapaxes(2, 3)
        total = np.zeros((*change.shape[:2], n + 1, n + 1))  # np.pad takes several times as long
        total[:, :, 1:, 1:] = change.cumsum(2).cumsum(3)
        further, fits = costs_of_moves(total, length, np)
        if counts is None:
            value = -further[:, 0]
        else:
            sums = np.sum(ordered * self._behind, axis=(2, 3))
            value = self.best_log_likelihood(
                sums[..., None, None] + further, counts[..., None, None]
            )
        best = np.where(fits, value, -np.inf).reshape(len(center), -1).argmax(1)
        return np.take_along_axis(center, sources_of_move(n, best, length, np), axis=1)

    # -- groups --------------------------------------------------------------------------------

    def groups(self, parameters: Parameters, amounts: np.ndarray, sizes: np.ndarray) -> Groups:
        return _MallowsGroups(self, parameters[0], amounts, sizes)

    def codes(self, amounts: np.ndarray, center: np.ndarray) -> np.ndarray:
        """Sum the codes of groups about centers, (groups, centers, T)."""
        codes, sums = self._codes_of_cells(center), []
        for begin, end in pairwise(self._of_stage.indptr):
            some = self._order[begin:end]
            sums.append(amounts[some].T @ codes[some].astype(float))
        return np.stack(sums, axis=-1)


class _MallowsGroups(Groups):
    """Groups whose union has the center of one of them, until it is fitted."""

    def __init__(
        self, fit: MallowsFit, center: np.ndarray, amounts: np.ndarray, sizes: np.ndarray
    ) -> None:
        self._fit, self._amounts, number = fit, amounts.copy(), np.arange(len(center))
        self.sizes, self.candidates = sizes.astype(float), number != number[:, None]
        self._counts = fit.stage_counts(amounts)
        # The sums of group c about the center of d, (C, C, T).
        self._codes = fit.codes(amounts, center)
        own_codes = self._codes[number, number]
        self.parameters = center.copy(), fit.best_concentration(own_codes, self._counts)
        self._own = fit.best_log_likelihood(own_codes, self._counts)

    def losses(self, c: np.ndarray, d: np.ndarray) -> np.ndarray:
        sums, counts = self._codes[c, d] + self._codes[d, d], self._counts[c] + self._counts[d]
        return self._own[c] + self._own[d] - self._fit.best_log_likelihood(sums, counts)

    def join(self, c: int, d: int, turn: int) -> None:
        for sums in (self._amounts.T, self._counts, self.sizes, self._codes):
            sums[d] += sums[c]
        amounts, one = self._amounts[:, [d]], tuple(x[[d]] for x in self.parameters)
        for x, fitted in zip(self.parameters, self._fit.fit(one, amounts, turn), strict=True):
            x[d] = fitted[0]
        center = self.parameters[0][[d]]
        self._codes[:, d] = self._fit.codes(self._amounts, center)[:, 0]
        own_codes, counts = self._codes[[d], [d]], self._counts[[d]]
        self._own[d] = self._fit.best_log_likelihood(own_codes, counts)[0]
