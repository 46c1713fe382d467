"""What a report shows of covariates of the items: their effects on the weights."""

from collections.abc import Sequence
from typing import NamedTuple

from numpyro_rankings import words
from numpyro_rankings.report.answers import Row, WithInterval
from numpyro_rankings.report.findings import Findings


class EffectsShown(NamedTuple):
    """The section about covariates: a table, the same in lines, and how much they explain."""

    headings: Sequence[str]
    rows: Sequence[Row]
    lines: Sequence[str]
    explained: str


def effects_shown(findings: Findings) -> EffectsShown | None:
    """Return what the page shows of covariates; None if there are none."""
    found = findings.item_effects
    if found is None:
        return None
    rows: list[Row] = []
    lines = []
    for k, name in enumerate(found.names):
        odds = f"× {words.value(found.odds[k])}"
        low, high = map(words.value, found.odds_interval[k])
        effect = f"{found.effect[k]:+.2f}"
        ends = [f"{x:+.2f}" for x in found.effect_interval[k]]
        rows.append(
            (name, found.steps[k], WithInterval(odds, low, high), WithInterval(effect, *ends))
        )
        lines.append(f"{name}, {found.steps[k]}: odds {odds} ({low} to {high})")
    low, high = map(words.percent, found.explained_interval)
    explained = (
        f"The covariates explain {words.percent(found.explained)} ({low} to {high}) of the "
        "variance of the log weights of these items."
    )
    headings = ("covariate", "step", "odds of being chosen", "effect on the log weight")
    return EffectsShown(headings, rows, lines, explained)
