"""The reports: which sections the page about a run has."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from numpyro_rankings.diagnostics import NUM_COMPONENTS, Verdict, posterior_of
from numpyro_rankings.point_estimates import ReferencePartition
from numpyro_rankings.predictive_checks import PredictiveChecks
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.report.answers import (
    concentrations,
    groups,
    judges_of_groups,
    short_answers,
    table_of_clusters,
    table_of_weights,
    verdict_box,
    wants,
)
from numpyro_rankings.report.figures import (
    consensus_figures,
    partition_figures,
    predictive_checks,
    traces,
)
from numpyro_rankings.report.findings import Findings, findings_of, reference_of
from numpyro_rankings.report.page import (
    Status,
    details_of_run,
    heading,
    status_box,
    write_page,
)
from numpyro_rankings.stacking import posterior_by_weight
from numpyro_rankings.summaries import (
    ClusterProfile,
    PartitionProfile,
    WeightsProfile,
    cluster_profiles,
)
from numpyro_rankings.words import plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_SITES = ("assignments", "center", "concentration", "weights", "unseen_weight", "cluster_sizes")


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
    about: Mapping[str, Sequence[str]] | None = None,
    status: Status | None = None,
) -> None:
    """Write a report on clusters of rankings: one HTML page that needs no other files.

    :param path: the file to write.
    :param data: the result of :func:`~numpyro_rankings.to_inference_data`, with the assignments.
    :param rankings: the rankings that were fitted.
    :param profiles: their :func:`~numpyro_rankings.cluster_profiles`, if already computed.
    :param reference: the partition that the profiles describe: the result of
        :func:`~numpyro_rankings.reference_partition`, so that the page says how it was found, or
        labels of shape ``(N,)``. By default it is computed.
    :param title: the heading of the page.
    :param checks: the :func:`~numpyro_rankings.posterior_predictive_checks`, to include them.
    :param details: how the run was made, for the last section: the command, the seed, the source
        of the data.
    :param about: what is known about the judges: N texts by column, in the order of the labels. The
        page then shows who is in the clusters.
    :param status: why the run ended before its draws suffice, for the top of the page.
    :raises ValueError: if ``data`` has no assignments.
    """
    posterior = data["posterior"]
    if "cluster_sizes" in posterior and "assignments" not in posterior:
        raise ValueError("the report needs the labels: to_inference_data(include_assignments=True)")
    reference = reference_of(data, reference)
    if profiles is None:
        described = posterior_by_weight(posterior_of(data))
        samples = {name: np.asarray(described[name]) for name in _SITES if name in described}
        profiles = cluster_profiles(samples, rankings, reference)
    findings = findings_of(data, profiles, rankings.num_rankings, reference, details)
    parts = [
        heading(title, _in_words(rankings)),
        status_box(status),
        short_answers(findings, "What do they want?", wants(findings)),
        verdict_box(findings.verdict),
        groups(findings),
    ]
    if isinstance(profiles[0], WeightsProfile):
        parts.append(table_of_weights(profiles, [str(name) for name in posterior["item"].values]))
    else:
        parts += [concentrations(profiles), consensus_figures(profiles, rankings)]
    parts += [
        judges_of_groups(findings, about or {}),
        partition_figures(findings),
        predictive_checks(checks) if checks is not None else "",
        traces(findings),
        details_of_run(findings.details),
    ]
    write_page(path, title, parts)


def _in_words(rankings: Rankings) -> str:
    return (
        f"{plural(rankings.num_rankings, 'ranking')} ({rankings.unique().num_rows:,} distinct) of "
        f"{plural(rankings.num_items, 'item')}"
    )


def interim_parts(
    rankings: Rankings,
    profiles: Sequence[Any],
    reference: ReferencePartition | None,
    table: "pd.DataFrame",
    verdict: Verdict,
    num_clusters: np.ndarray | None,
    num_components: int | None,
    *,
    title: str,
    status: Status,
    details: Mapping[str, str],
) -> list[str]:
    """Return the parts of a page on a run that goes on: words and tables, which take no time.

    :param rankings: the rankings that are fitted.
    :param profiles: the :func:`~numpyro_rankings.cluster_profiles` of some of the draws.
    :param reference: the partition that they describe; None for a single population.
    :param table: the diagnostics of the run.
    :param verdict: on the run.
    :param num_clusters: of these draws; None for a single population.
    :param num_components: of a finite mixture, otherwise None.
    :param title: the heading of the page.
    :param status: what to say on top of it.
    :param details: how the run is made, for the last section.
    """
    import xarray as xr

    attributes = {} if num_components is None else {NUM_COMPONENTS: num_components}
    numbers = {} if num_clusters is None else {"num_clusters": ("draw", np.asarray(num_clusters))}
    described = {"posterior": xr.Dataset(numbers, attrs=attributes)}
    # without the details, which tell of files that are not written yet
    findings = Findings(
        None, described, profiles, rankings.num_rankings, reference, table, verdict, {}
    )
    return [
        heading(title, _in_words(rankings)),
        status_box(status),
        short_answers(findings, "What do they want?", wants(findings)),
        verdict_box(verdict),
        groups(findings),
        traces(findings, 0),
        details_of_run(details),
    ]


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
    status: Status | None = None,
) -> None:
    """Write a report on clusters of points of any kind: one HTML page that needs no other files.

    :param path: the file to write.
    :param data: the result of :func:`~numpyro_rankings.to_inference_data`, with the assignments.
    :param profiles: the :func:`~numpyro_rankings.summaries.partition_profiles`.
    :param reference: the partition that they describe, as in :func:`write_report`.
    :param columns: further columns of the table of clusters: their headings, and a text for each
        cluster.
    :param what: what was clustered, such as ``"20 points"``.
    :param title: the heading of the page.
    :param figures: further figures about the partition, each with its caption.
    :param details: how the run was made, as in :func:`write_report`.
    :param status: as in :func:`write_report`.
    """
    reference = reference_of(data, reference)
    size = data["posterior"]["assignments"].shape[-1]
    findings = findings_of(data, profiles, size, reference, details)
    answers = [
        ", ".join(f"{name} {texts[i]}".removeprefix("words ") for name, texts in columns.items())
        for i in range(len(profiles))
    ]
    parts = [
        heading(title, what),
        status_box(status),
        short_answers(findings, "What are they?", answers),
        verdict_box(findings.verdict),
        table_of_clusters(findings, columns),
        partition_figures(findings, figures),
        traces(findings),
        details_of_run(findings.details),
    ]
    write_page(path, title, parts)
