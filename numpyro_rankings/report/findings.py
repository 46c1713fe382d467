"""What a report is about: the draws, their clusters and their diagnostics, computed once."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numpyro_rankings.diagnostics import Verdict, diagnostics_table, posterior_of, verdict
from numpyro_rankings.point_estimates import ReferencePartition, reference_partition
from numpyro_rankings.stacking import posterior_by_weight

if TYPE_CHECKING:
    import pandas as pd


class Findings(NamedTuple):
    """What a report is about.

    - **data** - the result of :func:`~numpyro_rankings.to_inference_data`.
    - **described** - the same with the draws that are described: of chains that disagree, those
      that the weights of the chains choose.
    - **profiles** - a profile of each cluster, the largest first.
    - **total** - number of all rankings or points.
    - **reference** - the partition whose clusters they are; None for a single population.
    - **table** - the diagnostics.
    - **verdict** - whether the run can be trusted.
    - **details** - how the run was made, by name.
    """

    data: Any
    described: Any
    profiles: Sequence[Any]
    total: int
    reference: ReferencePartition | None
    table: "pd.DataFrame"
    verdict: Verdict
    details: Mapping[str, str]


def findings_of(
    data: Any,
    profiles: Sequence[Any],
    total: int,
    reference: ReferencePartition | None,
    details: Mapping[str, str] | None,
) -> Findings:
    """Collect what a report is about, and compute the diagnostics."""
    table = diagnostics_table(data)
    described = {"posterior": posterior_by_weight(posterior_of(data))}
    judged = verdict(data, table)
    return Findings(data, described, profiles, total, reference, table, judged, details or {})


def labels_of_draws(data: Any) -> np.ndarray | None:
    """Return the labels of the draws that are described, (D, N); None for a single population."""
    posterior = posterior_of(data)
    if "assignments" not in posterior:
        return None
    labels = np.asarray(posterior_by_weight(posterior)["assignments"])
    return labels.reshape(-1, labels.shape[-1])


def reference_of(data: Any, reference: Any = None) -> ReferencePartition | None:
    """Return the partition that the profiles describe; None for a single population.

    :param reference: labels or the result of :func:`~numpyro_rankings.reference_partition`; by
        default the partition is computed.
    """
    labels = labels_of_draws(data)
    return None if labels is None else reference_partition(labels, reference)
