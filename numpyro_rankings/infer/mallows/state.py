"""State and inputs of a sweep of the Mallows kernels."""

from typing import NamedTuple

from jax import Array

from numpyro_rankings.infer.mallows.concentrations import ConcentrationPrior
from numpyro_rankings.infer.mallows.data import MallowsData
from numpyro_rankings.infer.mixture.prior import PartitionPrior


class MallowsMixture(NamedTuple):
    """State of a sweep."""

    labels: Array  # (N,) int32
    center: Array  # (C, n)
    concentration: Array  # (C, T)
    partition: PartitionPrior  # prior of the labels, with the current α


class MallowsInputs(NamedTuple):
    """Inputs of a sweep."""

    data: MallowsData
    prior: ConcentrationPrior  # prior of θ, at the current values of its parameters
    log_judges: Array | None  # log probability of each judge's judge_sites in each cluster, (C, N)


class LabelReport(NamedTuple):
    """How the update of the labels went."""

    overflow: Array  # whether it needed more slots
    accept_prob: Array  # mean acceptance probability, 1 without Metropolis-Hastings steps
