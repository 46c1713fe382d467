"""The Plackett–Luce model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr

from numpyro_rankings.families.base import (
    INTERVAL,
    Parameters,
    RankingFamily,
    RankingProfile,
    columns_with_interval,
    register_family,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightsProfile(RankingProfile):
    """Posterior summary of one cluster of Plackett–Luce weights, or of the only population.

    Intervals hold 90% of the posterior. The first parameters are those of every cluster of
    rankings: **consensus** has the items by their mean weight, largest first, and **entropy** is
    the mean ratio of the entropy of the weights to that of equal weights. **agreement** is 1 minus
    that ratio: 0 for equal weights, 1 if one item always comes first.

    :param weights: mean weight of each item, in item order, shape ``(K,)``: the probability that it
        comes first.
    :param weights_interval: shape ``(K, 2)``.
    :param unseen_weight: mean weight of all items that no ranking lists, None if there are none.
    :param unseen_interval: ``(low, high)``.
    """

    weights: np.ndarray
    weights_interval: np.ndarray
    unseen_weight: float | None = None
    unseen_interval: tuple[float, float] | None = None

    def columns(self) -> dict[str, str]:
        columns: dict[str, str] = {}
        if self.unseen_weight is not None and self.unseen_interval is not None:
            columns |= columns_with_interval(
                "unseen_weight", self.unseen_weight, self.unseen_interval
            )
        weights = zip(self.items, self.weights, self.weights_interval, strict=True)
        for name, mean, interval in weights:
            columns |= columns_with_interval(f"weight of {name}", mean, interval)
        return columns


class PlackettLuce(RankingFamily):
    """Plackett–Luce models: a weight for each item."""

    name = "plackett-luce"
    parameters: tuple[str, ...] = ("weights",)
    title = "Plackett–Luce"
    sections = ("weights",)

    # -- likelihood ----------------------------------------------------------------------------

    # -- fit -----------------------------------------------------------------------------------

    # -- profiles and tables -------------------------------------------------------------------

    def orderings(self, parameters: Parameters) -> np.ndarray:
        return np.argsort(-parameters["weights"], axis=-1, kind="stable")

    def consensus(self, parameters: Parameters) -> np.ndarray:
        mean = parameters["weights"].astype(np.float64).mean(0)
        return np.argsort(-mean, kind="stable").astype(np.int32)

    def entropies(self, parameters: Parameters) -> np.ndarray:
        return normalised_entropy(parameters["weights"].astype(np.float64))

    def profile(self, common: RankingProfile, parameters: Parameters) -> WeightsProfile:
        weights = parameters["weights"].astype(np.float64)
        return WeightsProfile(
            **vars(common),
            weights=weights.mean(0),
            weights_interval=np.quantile(weights, INTERVAL, axis=0).T,
        )

    def columns_of_bloc(self, bloc: Mapping[str, Any], items: Sequence[str]) -> dict[str, str]:
        weights = zip(items, bloc["weights"], strict=True)
        return {f"weight of {name}": f"{x:.6g}" for name, x in weights}


PLACKETT_LUCE = PlackettLuce()
register_family(PLACKETT_LUCE)


def normalised_entropy(weights: np.ndarray) -> np.ndarray:
    """Ratio of the entropy of weights, shape ``(…, K)``, to its maximum; 1 for equal weights."""
    shares = weights / weights.sum(-1, keepdims=True)
    if shares.shape[-1] == 1:
        return np.ones(shares.shape[:-1])
    return np.sum(entr(shares), axis=-1) / np.log(shares.shape[-1])
