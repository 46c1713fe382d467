"""How weights are fitted to weighted rankings.

**References**

1. *MM algorithms for generalized Bradley-Terry models*, D. R. Hunter (Annals of Statistics, 2004).
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from jax import Array
from scipy.sparse import csr_array
from scipy.special import entr

from numpyro_rankings.families.choice_cells import choice_cells
from numpyro_rankings.families.weighted_fit import (
    FittedComponent,
    Groups,
    Parameters,
    WeightedFit,
)
from numpyro_rankings.rankings import Rankings

AnyArray = TypeVar("AnyArray", np.ndarray, Array)

_STEPS = 5  # of Hunter's MM algorithm in each round
_LEAST_MASS = np.float32(1e-30)  # of a set of items: numbers of rankings over it fit into float32
_PAIRS_AT_ONCE = 2**22  # cells of the largest array over pairs of groups


def times_with_prior(chosen: AnyArray, in_play: AnyArray, more: float) -> tuple[AnyArray, AnyArray]:
    """Return the terms whose ratio is the next weight of each item, by Hunter's MM algorithm [1].

    The likelihood increases unless the weights are its mode.

    :param chosen: how often each item is chosen, (…, n).
    :param in_play: sum of 1 / W over the choices for which it is in play, where W is the mass of
        all items in play, (…, n).
    :param more: how often each item counts as chosen besides, from all items, of weights that sum
        to 1; it keeps weights from 0.
    """
    return chosen + more, in_play + more * chosen.shape[-1]


class WeightsFit(WeightedFit):
    """Plackett–Luce components: weights, (K, n); with a pool, the last one is that of the pool."""

    def __init__(self, rankings: Rankings, has_pool: bool) -> None:
        self._has_pool = has_pool
        self.cells = choice_cells(rankings, rankings.orderings.shape[1], has_pool)
        sets = self.cells.sets.astype(float)
        self.sets = np.pad(sets, ((0, 0), (0, int(has_pool))), constant_values=1.0)
        # the steps of the MM algorithm are in float32, which takes a third of the time
        self._few_bits = self.sets.astype(np.float32)
        self._few_bits_across = np.ascontiguousarray(self._few_bits.T)
        ones, here = np.ones(len(self.cells.items)), np.arange(len(self.cells.items))
        shape = self.sets.shape[1], len(ones)
        self._of_item = csr_array((ones, (self.cells.items, here)), shape)
        self._of_set = csr_array((ones, (self.cells.set_of, here)), (len(sets), len(ones)))

    def parameters_of(self, sites: Mapping[str, np.ndarray]) -> Parameters:
        weights = sites["weights"]
        if self._has_pool:
            weights = np.append(weights, sites["unseen_weight"][:, None], axis=1)
        return (weights.astype(float),)

    def log_choices(self, parameters: Parameters) -> np.ndarray:
        weights = _above_zero(parameters[0])
        log_masses = np.log(self.sets @ weights.T)
        return np.log(weights.T)[self.cells.items] - log_masses[self.cells.set_of]

    def log_prior(self, parameters: Parameters) -> float:
        return float(np.sum(np.log(_above_zero(parameters[0]))))

    def describe(self, parameters: Parameters) -> list[FittedComponent]:
        components = []
        for weights in parameters[0]:
            sites: dict[str, Any] = {}
            if self._has_pool:
                weights, sites["unseen_weight"] = weights[:-1], float(weights[-1])
            sites["weights"] = weights
            ordering = np.argsort(-weights, kind="stable").astype(np.int32)
            agreement = float(1 - normalised_entropy(weights))
            components.append(FittedComponent(ordering, agreement, sites))
        return components

    def fit(
        self, parameters: Parameters, amounts: np.ndarray, turn: int, thorough: bool = False
    ) -> Parameters:
        return (self.fit_sums(parameters[0], *self.sums(amounts)),)

    def sums(self, amounts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how often items are chosen, (K, n), and sets are chosen from, (K, sets)."""
        return (self._of_item @ amounts).T, (self._of_set @ amounts).T

    def fit_sums(self, weights: np.ndarray, chosen: np.ndarray, in_use: np.ndarray) -> np.ndarray:
        """Take some steps, as if each item had been chosen once more."""
        in_use = in_use.astype(np.float32)
        for _ in range(_STEPS):
            masses = weights.astype(np.float32) @ self._few_bits_across
            times = in_use / np.maximum(masses, _LEAST_MASS)
            of_items, times = times_with_prior(chosen, times @ self._few_bits, 1.0)
            weights = of_items / times
            weights = weights / weights.sum(1, keepdims=True)
        return weights

    def log_likelihoods(
        self, weights: np.ndarray, chosen: np.ndarray, in_use: np.ndarray
    ) -> np.ndarray:
        """Return the log likelihood of each component, (K,)."""
        log_masses = np.log(weights @ self.sets.T)
        return np.sum(chosen * np.log(weights), 1) - np.sum(in_use * log_masses, 1)

    def groups(self, parameters: Parameters, amounts: np.ndarray, sizes: np.ndarray) -> Groups:
        return _WeightsGroups(self, parameters[0], amounts, sizes)


class _WeightsGroups(Groups):
    """Groups whose union has the mean of their weights, until it is fitted."""

    def __init__(
        self, fit: WeightsFit, weights: np.ndarray, amounts: np.ndarray, sizes: np.ndarray
    ) -> None:
        self._fit, self.sizes = fit, sizes.astype(float)
        self.parameters = (_above_zero(weights.astype(float)),)
        self._chosen, self._in_use = fit.sums(amounts)
        self._own = fit.log_likelihoods(*self.parameters, self._chosen, self._in_use)
        self.candidates = np.triu(np.ones((len(weights), len(weights)), bool), 1)

    def losses(self, c: np.ndarray, d: np.ndarray) -> np.ndarray:
        at_once = max(1, _PAIRS_AT_ONCE // len(self._fit.sets))
        some = [slice(start, start + at_once) for start in range(0, len(c), at_once)]
        return np.concatenate([np.zeros(0), *(self._losses(c[x], d[x]) for x in some)])

    def _losses(self, c: np.ndarray, d: np.ndarray) -> np.ndarray:
        (weights,) = self.parameters
        share = (self.sizes[c] / (self.sizes[c] + self.sizes[d]))[:, None]
        mean = share * weights[c] + (1 - share) * weights[d]
        sums = self._chosen[c] + self._chosen[d], self._in_use[c] + self._in_use[d]
        return self._own[c] + self._own[d] - self._fit.log_likelihoods(mean, *sums)

    def join(self, c: int, d: int, turn: int) -> None:
        (weights,), sizes, both = self.parameters, self.sizes, [d]
        weights[d] = (sizes[c] * weights[c] + sizes[d] * weights[d]) / (sizes[c] + sizes[d])
        for total in (self._chosen, self._in_use, sizes):
            total[d] += total[c]
        sums = self._chosen[both], self._in_use[both]
        weights[both] = self._fit.fit_sums(weights[both], *sums)
        self._own[both] = self._fit.log_likelihoods(weights[both], *sums)


def normalised_entropy(weights: np.ndarray) -> np.ndarray:
    """Ratio of the entropy of weights, shape ``(…, K)``, to its maximum; 1 for equal weights."""
    shares = weights / weights.sum(-1, keepdims=True)
    if shares.shape[-1] == 1:
        return np.ones(shares.shape[:-1])
    return np.sum(entr(shares), axis=-1) / np.log(shares.shape[-1])


def _above_zero(weights: np.ndarray) -> np.ndarray:
    """Weights of draws may be too small for float32."""
    return np.maximum(weights, np.finfo(np.float32).tiny)
