"""The generalized Mallows model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import Array

from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.families.base import (
    INTERVAL,
    CenterProfile,
    Parameters,
    RankingFamily,
    RankingProfile,
    columns_with_interval,
    register_family,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterProfile(CenterProfile):
    """Posterior summary of one cluster of rankings under a Mallows model.

    Intervals hold 90% of the posterior. The first parameters are those of every cluster of
    rankings, and of every one with orderings, which are the centers: **consensus** is the CP
    consensus, and **entropy** the mean entropy of a list of ``T`` places from the cluster, in
    nats. **agreement** is 1 minus the ratio of that entropy to that of uniform lists.

    :param concentration: mean θ of each stage, shape ``(T,)``.
    :param concentration_interval: shape ``(T, 2)``.
    """

    concentration: np.ndarray
    concentration_interval: np.ndarray

    def columns(self) -> dict[str, str]:
        columns = super().columns()
        by_stage = zip(self.concentration, self.concentration_interval, strict=True)
        for stage, (mean, interval) in enumerate(by_stage, 1):
            columns |= columns_with_interval(f"theta_{stage}", mean, interval)
        return columns


class Mallows(RankingFamily):
    """Generalized Mallows models: a center, and a concentration for each stage."""

    name = "mallows"
    parameters = ("center", "concentration")
    title = "Mallows"
    sections = ("concentrations", "orders")

    # -- likelihood ----------------------------------------------------------------------------

    # -- fit -----------------------------------------------------------------------------------

    # -- profiles and tables -------------------------------------------------------------------

    def entropies(self, parameters: Parameters) -> np.ndarray:
        # in float64, so that their means are
        return np.asarray(_entropy(parameters["center"], parameters["concentration"]), np.float64)

    def largest_entropy(self, parameters: Parameters) -> float:
        num_items, num_stages = (
            parameters["center"].shape[-1],
            parameters["concentration"].shape[-1],
        )
        return float(np.log(np.arange(num_items, 0, -1)[:num_stages]).sum())

    def profile(self, common: RankingProfile, parameters: Parameters) -> ClusterProfile:
        theta = parameters["concentration"]
        return ClusterProfile(
            **vars(super().profile(common, parameters)),
            concentration=theta.mean(0, dtype=np.float64),
            concentration_interval=np.quantile(theta, INTERVAL, axis=0).T,
        )

    def columns_of_bloc(self, bloc: Mapping[str, Any], items: Sequence[str]) -> dict[str, str]:
        return {f"theta_{j}": f"{x:.6g}" for j, x in enumerate(bloc["concentration"], 1)}


MALLOWS = Mallows()
register_family(MALLOWS)


@jax.jit
def _entropy(center: Array, theta: Array) -> Array:
    return GeneralizedMallows(center, theta, validate_args=False).entropy()
