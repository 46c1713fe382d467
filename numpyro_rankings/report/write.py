"""The reports: which sections the page about a run has."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from numpyro_rankings.posterior import Blocs, PartitionProfile, RankingProfile
from numpyro_rankings.posterior.diagnostics import NUM_COMPONENTS, Verdict
from numpyro_rankings.posterior.judges import texts_of_judges
from numpyro_rankings.posterior.point_estimates import ReferencePartition
from numpyro_rankings.posterior.predictive_checks import PredictiveChecks
from numpyro_rankings.rankings import Orders, Rankings, check_rows
from numpyro_rankings.report.answers import (
    Columns,
    columns_of_rankings,
    concentrations,
    groups,
    judges_of_groups,
    passing_groups,
    short_answers,
    table_of_weights,
    wants,
)
from numpyro_rankings.report.blocs import blocs_shown
from numpyro_rankings.report.calibration import calibration_shown
from numpyro_rankings.report.figures import (
    ITEMS_IN_SUMMARY,
    consensus_figures,
    figure_of_summary,
    partition_figures,
    places_of_blocs,
    places_of_groups,
    predictive_checks,
    traces,
)
from numpyro_rankings.report.findings import JUDGES, Findings, findings_of, in_order
from numpyro_rankings.report.glossary import glossary, how_found
from numpyro_rankings.report.item_effects import effects_shown
from numpyro_rankings.report.overall import overall
from numpyro_rankings.report.page import Status, embedded_figure, rankings_in_words, write_page
from numpyro_rankings.report.path import path_shown
from numpyro_rankings.report.shares import shares_shown
from numpyro_rankings.report.slates import slates_shown
from numpyro_rankings.report.slides import save_figures

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Functions import pandas, Jinja and xarray, which take long to load and are not always needed.

# Sections of the page about rankings that not all likelihoods have.
_SECTIONS: Mapping[str, Callable[[Findings], Any]] = {
    "weights": table_of_weights,
    "concentrations": concentrations,
    "orders": consensus_figures,
}


def write_report(
    path: str | Path,
    data: Any,
    rankings: Rankings | Orders,
    profiles: Sequence[RankingProfile] | None = None,
    reference: Any = None,
    *,
    title: str = "Groups of rankings",
    checks: PredictiveChecks | Literal["auto"] | None = "auto",
    details: Mapping[str, str] | None = None,
    about: Columns | None = None,
    status: Status | None = None,
    blocs: Blocs | int | Literal["auto"] | None = "auto",
    figures: str | Path | None = None,
) -> None:
    """Write a report on clusters of rankings: one HTML page that needs no other files.

    ``numpyro-rankings fit`` writes the same page of the same draws.

    :param path: the file to write.
    :param data: the result of :func:`~numpyro_rankings.to_inference_data`, with the assignments,
        also if read back from ``posterior.nc``. Of chains that disagree, those are described that
        together predict best (:func:`~numpyro_rankings.stack_chains`).
    :param rankings: the rankings, partial orders or comparisons that were fitted; of the latter
        there are neither checks nor blocs.
    :param profiles: their :func:`~numpyro_rankings.cluster_profiles`, if already computed.
    :param reference: the partition that the profiles describe: the result of
        :func:`~numpyro_rankings.reference_partition`, so that the page says how it was found, or
        labels of shape ``(N,)``. By default it is computed.
    :param title: the heading of the page.
    :param checks: the :func:`~numpyro_rankings.posterior_predictive_checks`; None to leave them
        out. By default they are computed, unless there are too many items.
    :param details: how the run was made, for the last section: the command, the seed, the source
        of the data.
    :param about: what is known about the judges: N texts by column, in the order of the labels. The
        page then shows who is in the clusters. An empty text, None or NaN is no answer.
    :param status: why the run ended before its draws suffice, for the top of the page.
    :param blocs: as for :func:`~numpyro_rankings.report.findings_of`.
    :param figures: a folder in which each figure is saved too, as SVG and as PNG, in the size of a
        slide of 13.33 by 7.5 inches.
    :raises ValueError: if ``data`` has no assignments, if the blocs are of other rankings, or if
        there are not N texts in a column.
    """
    check_rows(rankings, takes_comparisons=True)
    about = texts_of_judges(about or {}, rankings.num_rankings)
    findings = findings_of(
        data,
        rankings,
        profiles=profiles,
        reference=reference,
        checks=checks,
        details=details,
        blocs=blocs,
    )
    write_findings(
        path, findings, rankings, title=title, about=about, status=status, figures=figures
    )


def write_findings(
    path: str | Path,
    findings: Findings,
    rankings: Rankings | Orders,
    *,
    title: str,
    about: Columns | None = None,
    status: Status | None = None,
    figures: str | Path | None = None,
    summary: str | Path | None = None,
) -> None:
    """Write a report on what was found, as :func:`write_report`.

    :param summary: a further page, with the answers alone, which prints on one sheet.
    """
    family, held = findings.family, findings.held
    assert family is not None
    view = {
        **_view_of_rankings(findings, rankings, title, status, about or {}),
        **{
            name: section(findings)
            for name, section in _SECTIONS.items()
            if name in family.sections
        },
        "places": places_of_blocs(findings, rankings),
        "figures": [(embedded_figure(ax), text) for ax, text in family.figures(held)],
        "partition": partition_figures(findings),
        "checks": predictive_checks(findings.checks),
        "chains": traces(findings),
    }
    write_page(path, "report.html", view)
    if summary is not None:
        write_page(summary, "summary.html", {**view, **_of_summary(findings, rankings)})
    if figures is not None:
        shown = view["places"] or places_of_groups(findings, rankings)
        save_figures({**view, "places": shown}, Path(figures))


def _of_summary(findings: Findings, rankings: Rankings | Orders) -> dict[str, Any]:
    """Return what the summary shows in its own way: a figure, and less of how it was made."""
    told = ("data", "how the file was read", "survey weights", JUDGES, "command", "versions")
    details = {name: findings.details[name] for name in told if name in findings.details}
    figure = figure_of_summary(findings, rankings)
    left = max(0, rankings.num_items - ITEMS_IN_SUMMARY)
    return {"figure": figure, "items_left": left, "details": details, "glossary": []}


def _view(
    findings: Findings, what: str, title: str, status: Status | None, answers: Sequence[str]
) -> dict[str, Any]:
    """Return what every page about a run shows, given what each of the groups is."""
    return {
        "title": title,
        "what": what,
        "how_found": how_found(findings),
        "overall": overall(findings) if findings.data is not None else None,
        "status": status,
        "details": findings.details,
        "glossary": glossary(findings),
        "answers": short_answers(findings, answers, status),
        "findings": findings,
    }


def _view_of_rankings(
    findings: Findings,
    rankings: Rankings | Orders,
    title: str,
    status: Status | None,
    about: Columns,
) -> dict[str, Any]:
    """Return what a page about groups of rankings shows in words and tables, which take no time."""
    columns = columns_of_rankings(findings)
    return {
        **_view(findings, rankings_in_words(rankings), title, status, wants(findings)),
        "blocs": blocs_shown(findings, about),
        "path": path_shown(findings),
        "slates": slates_shown(findings),
        "shares_by": shares_shown(findings),
        "effects": effects_shown(findings),
        "calibration": calibration_shown(findings),
        "groups": groups(findings, columns, about),
        "judges": judges_of_groups(findings, about),
        "passing": passing_groups(findings, columns),
        **dict.fromkeys(_SECTIONS),
    }


def interim_findings(
    rankings: Rankings | Orders,
    profiles: Sequence[Any],
    reference: ReferencePartition | None,
    table: "pd.DataFrame",
    verdict: Verdict,
    num_clusters: np.ndarray | None,
    num_components: int | None,
) -> Findings:
    """Return what is found so far in a run that goes on.

    :param profiles: of some of the draws, as **reference** and **num_clusters** are, which a single
        population has not.
    :param table: the diagnostics of the run, and **verdict**, the one on it.
    """
    import xarray as xr

    attributes = {} if num_components is None else {NUM_COMPONENTS: num_components}
    numbers = {} if num_clusters is None else {"num_clusters": ("draw", np.asarray(num_clusters))}
    described = {"posterior": xr.Dataset(numbers, attrs=attributes)}
    # without the details, which tell of files that are not written yet
    number, shown = rankings.num_rankings, in_order(profiles)
    return Findings(None, described, shown, number, reference, None, table, verdict, None, {})


def interim_view(
    findings: Findings,
    rankings: Rankings | Orders,
    *,
    title: str,
    status: Status,
    details: Mapping[str, str],
) -> dict[str, Any]:
    """Return what the page shows of a run that goes on: words and tables, which take no time."""
    return {
        **_view_of_rankings(findings, rankings, title, status, {}),
        **dict.fromkeys(("places", "figures", "partition", "checks")),
        "details": details,
        "chains": traces(findings, 0),
    }


def write_partition_report(
    path: str | Path,
    data: Any,
    profiles: Sequence[PartitionProfile],
    reference: Any,
    columns: Columns,
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
    :param profiles: the :func:`~numpyro_rankings.posterior.partition_profiles`.
    :param reference: the partition that they describe, as in :func:`write_report`.
    :param columns: further columns of the table of clusters: their headings, and a text for each
        profile.
    :param what: what was clustered, such as ``"20 points"``.
    :param title: the heading of the page.
    :param figures: further figures about the partition, each with its caption.
    :param details: how the run was made, as in :func:`write_report`.
    :param status: as in :func:`write_report`.
    """
    findings = findings_of(data, profiles=profiles, reference=reference, details=details)
    places = {p.label: k for k, p in enumerate(profiles)}
    order = [places[p.label] for p in findings.profiles]
    columns = {name: [texts[k] for k in order] for name, texts in columns.items()}
    write_findings_of_points(
        path, findings, columns, what=what, title=title, figures=figures, status=status
    )


def write_findings_of_points(
    path: str | Path,
    findings: Findings,
    columns: Columns,
    *,
    what: str,
    title: str,
    figures: Sequence[tuple["Axes", str]] = (),
    status: Status | None = None,
) -> None:
    """Write a report on what was found in points, as :func:`write_partition_report`.

    The columns have a text for each profile of the findings, in their order.
    """
    answers = [
        ", ".join(f"{name} {texts[i]}".removeprefix("words ") for name, texts in columns.items())
        for i in range(len(findings.profiles))
    ]
    view = {
        **_view(findings, what, title, status, answers),
        "groups": groups(findings, columns, {}),
        "partition": partition_figures(findings, figures),
        "chains": traces(findings),
        "passing": passing_groups(findings, columns),
        "blocs": None,
    }
    write_page(path, "points.html", view)
