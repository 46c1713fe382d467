"""What a report shows of slates: the share, cohesion and crossover of each group or bloc."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from numpyro_rankings import words
from numpyro_rankings.report.answers import Colored, Row, WithInterval, color_of
from numpyro_rankings.report.findings import Findings


class SlatesShown(NamedTuple):
    """The section about slates: which items they have, a table, and by what there are files."""

    in_words: str
    headings: Sequence[str]
    rows: Sequence[Row]
    files_by: str


def noun_of(findings: Findings) -> str:
    """Return what the rows are: blocs, where these come first."""
    return "bloc" if findings.blocs_first else "group"


def slates_shown(findings: Findings) -> SlatesShown | None:
    """Return what the page shows of slates; None if there are none."""
    found = findings.slates
    if found is None:
        return None

    def cell(mean: float, bounds: Any) -> str | WithInterval:
        text = words.percent(mean)
        return WithInterval(text, *map(words.percent, bounds)) if findings.with_intervals else text

    rows: list[Row] = [
        (
            Colored(str(k + 1), color_of(k)),
            cell(found.share[k], found.share_interval[k]),
            found.slates[own],
            cell(found.cohesion[k], found.cohesion_interval[k]),
            cell(found.crossover[k], found.crossover_interval[k]),
            cell(found.first[k, own], found.first_interval[k, own]),
        )
        for k, own in enumerate(found.own.tolist())
    ]
    pairs = list(zip(found.items, found.slate_of_items.tolist(), strict=True))
    members = [
        f"{slate}: {', '.join(item for item, place in pairs if place == k)}"
        for k, slate in enumerate(found.slates)
    ]
    headings = (noun_of(findings), "share", "its slate", "cohesion", "crossover", "first place")
    by = words.listed([*findings.slates_by]) if findings.slates_by else ""
    return SlatesShown("; ".join(members), headings, rows, by)
