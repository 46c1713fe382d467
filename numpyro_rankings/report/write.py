"""One self-contained HTML page about a fit: the groups, and whether to trust them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from numpyro_rankings.diagnostics import diagnostics_table, verdict
from numpyro_rankings.point_estimates import reference_partition
from numpyro_rankings.predictive_checks import PredictiveChecks
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.report.answers import (
    ITEMS_AT_TOP,
    concentrations,
    groups,
    short_answers,
    short_order,
    table_of_clusters,
    table_of_weights,
    verdict_box,
)
from numpyro_rankings.report.figures import (
    consensus_figures,
    partition_figures,
    predictive_checks,
    traces,
)
from numpyro_rankings.report.page import details_of_run, heading, write_page
from numpyro_rankings.summaries import (
    ClusterProfile,
    PartitionProfile,
    WeightsProfile,
    cluster_profiles,
)
from numpyro_rankings.words import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def write_report(
    path: str | Path,
    data: Any,
    rankings: Rankings,
    profiles: Sequence[ClusterProfile] | Sequence[WeightsProfile] | None = None,
    reference: Any = None,
    *,
    title: str = "Groups of rankings",
    checks: PredictiveChecks | None = None,
    details: Mapping[str, str] | None = None,
) -> None:
    """Write one HTML page with everything in it: no other files, no links to follow.

    :param path: where to.
    :param data: what :func:`~numpyro_rankings.to_inference_data` returned, with
        the assignments.
    :param rankings: what was fitted.
    :param profiles: its :func:`~numpyro_rankings.cluster_profiles`, if at hand.
    :param reference: the partition they describe: labels of shape ``(N,)``, or, so that the page
        says how it was found, what
        :func:`~numpyro_rankings.reference_partition` has returned; by default that.
    :param title: heading of the page.
    :param checks: :func:`~numpyro_rankings.posterior_predictive_checks`, to be shown too.
    :param details: how the run was made, as the last section lists it: the command, the seed,
        where the data come from.
    :raises ValueError: if the assignments were left out of ``data``.
    """
    posterior = data["posterior"]
    is_mixture = "cluster_sizes" in posterior
    if is_mixture and "assignments" not in posterior:
        raise ValueError("the report needs the labels: to_inference_data(include_assignments=True)")
    names = ("assignments", "center", "concentration", "weights", "unseen_weight", "cluster_sizes")
    samples = {name: np.asarray(posterior[name]) for name in names if name in posterior}
    labels = _draws_of_labels(posterior)
    reference = None if labels is None else reference_partition(labels, reference)
    if profiles is None:
        profiles = cluster_profiles(samples, rankings, reference)
    table = diagnostics_table(data)
    what = (
        f"{plural(rankings.num_rankings, 'ranking')} ({rankings.unique().num_rows:,} distinct) of "
        f"{plural(rankings.num_items, 'item')}"
    )
    judged, details = verdict(data, table), details or {}
    wants = [short_order(p.consensus, ITEMS_AT_TOP) for p in profiles]
    parts = [
        heading(title, what),
        short_answers(
            data,
            profiles,
            rankings.num_rankings,
            "What do they want?",
            wants,
            judged,
            reference,
            details,
        ),
        verdict_box(judged),
        groups(profiles, rankings, "command" in details),
    ]
    if isinstance(profiles[0], WeightsProfile):
        parts.append(table_of_weights(profiles, [str(name) for name in posterior["item"].values]))
    else:
        parts += [concentrations(profiles), consensus_figures(profiles, rankings)]
    parts += [
        partition_figures(data, profiles, reference, labels) if labels is not None else "",
        predictive_checks(checks) if checks is not None else "",
        traces(data, table),
        details_of_run(details),
    ]
    write_page(path, title, parts)


def write_partition_report(
    path: str | Path,
    data: Any,
    profiles: Sequence[PartitionProfile],
    reference: Any,
    columns: Mapping[str, Sequence[str]],
    *,
    what: str,
    title: str = "Groups of points",
    figures: Sequence[tuple["Axes", str]] = (),
    details: Mapping[str, str] | None = None,
) -> None:
    """Write one such page about a partition of any points.

    :param path: where to.
    :param data: what :func:`~numpyro_rankings.to_inference_data` returned, with
        the assignments.
    :param profiles: its :func:`~numpyro_rankings.summaries.partition_profiles`.
    :param reference: the partition they describe, as in :func:`write_report`.
    :param columns: what else the table of clusters shows: a heading, and a text for each.
    :param what: was clustered, such as ``"20 points"``.
    :param title: heading of the page.
    :param figures: more to show with the partition, each with its caption.
    :param details: how the run was made.
    """
    table = diagnostics_table(data)
    labels = _draws_of_labels(data["posterior"])
    reference = reference_partition(labels, reference)
    judged, details, size = verdict(data, table), details or {}, len(reference.labels)
    what_they_are = [
        ", ".join(f"{name} {texts[i]}".removeprefix("words ") for name, texts in columns.items())
        for i in range(len(profiles))
    ]
    parts = [
        heading(title, what),
        short_answers(
            data, profiles, size, "What are they?", what_they_are, judged, reference, details
        ),
        verdict_box(judged),
        table_of_clusters(profiles, columns, size),
        partition_figures(data, profiles, reference, labels, figures),
        traces(data, table),
        details_of_run(details),
    ]
    write_page(path, title, parts)


def _draws_of_labels(posterior: Any) -> Any:
    """Labels of all draws, (D, N), or None of one population."""
    if "assignments" not in posterior:
        return None
    labels = np.asarray(posterior["assignments"])
    return labels.reshape(-1, labels.shape[-1])
