"""State and inputs of a sweep of the Mallows kernels."""

from typing import NamedTuple

from jax import Array

from numpyro_rankings.infer.mallows.concentrations import ConcentrationPrior
from numpyro_rankings.infer.mallows.data import MallowsData
from numpyro_rankings.infer.mixture.prior import PartitionPrior


class MallowsMixture(NamedTuple):
    """State of a sweep.

    - **labels** - (N,) int32.
    - **center** - (C, n), and **concentration** - (C, T), of the clusters.
    - **partition** - prior of the labels, with the current α.
    """

    labels: Array
    center: Array
    concentration: Array
    partition: PartitionPrior


class MallowsInputs(NamedTuple):
    """Inputs of a sweep.

    - **data** - the rankings.
    - **prior** - prior of θ, at the current values of its parameters.
    - **log_judges** - log probability of each judge's ``judge_sites`` in each cluster, (C, N), or
      None.
    """

    data: MallowsData
    prior: ConcentrationPrior
    log_judges: Array | None


class LabelReport(NamedTuple):
    """How the update of the labels went.

    - **overflow** - whether it needed more slots.
    - **accept_prob** - mean acceptance probability, 1 without Metropolis-Hastings steps.
    """

    overflow: Array
    accept_prob: Array
