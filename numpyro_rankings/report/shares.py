"""What a report shows of shares that depend on covariates of the judges."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from numpyro_rankings import words
from numpyro_rankings.predict import SharesBy
from numpyro_rankings.report.answers import Colored, Row, WithInterval, color_of
from numpyro_rankings.report.findings import Findings


class SharesShown(NamedTuple):
    """The section about covariates: their names, and a table of the shares of groups."""

    names: str
    headings: Sequence[Any]
    rows: Sequence[Row]


def values_shown(found: SharesBy) -> list[str]:
    """Return each value in words, such as "region: north"."""
    return [f"{name}: {text}" for name, text in zip(found.covariate, found.value, strict=True)]


def shares_shown(findings: Findings) -> SharesShown | None:
    """Return what the page shows of covariates; None if there are none."""
    found = findings.shares_by
    if found is None:
        return None

    def cell(mean: float, bounds: Any, sign: bool = False) -> str | WithInterval:
        text, *limits = (_points(x) if sign else words.percent(x) for x in (mean, *bounds))
        return WithInterval(text, *limits) if findings.with_intervals else text

    rows: list[Row] = []
    for v, name in enumerate(values_shown(found)):
        for k in range(len(found.average)):
            rows.append(
                (
                    name if k == 0 else "",
                    words.size(found.num_judges[v]) if k == 0 else "",
                    Colored(str(k + 1), color_of(k)),
                    cell(found.share[v, k], found.share_interval[v, k]),
                    cell(found.difference[v, k], found.difference_interval[v, k], True),
                )
            )
    names = words.listed(list(dict.fromkeys(found.covariate)))
    return SharesShown(names, ("value", "judges", "group", "share", "difference"), rows)


def _points(x: float) -> str:
    """Format a difference of shares in points of percent, with its sign."""
    return f"{100 * x:+.1f}".replace("-", "−")
