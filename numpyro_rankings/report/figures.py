"""Sections of a report with figures: orders, partition, predictive checks, chains."""

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numpyro_rankings import plots
from numpyro_rankings.diagnostics import ESS_GOOD, R_HAT_GOOD
from numpyro_rankings.point_estimates import ReferencePartition, credible_ball
from numpyro_rankings.predictive_checks import PredictiveCheck, PredictiveChecks
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.report.answers import CLUSTERS_SHOWN, groups_in_words, short_order
from numpyro_rankings.report.findings import Findings, labels_of_draws
from numpyro_rankings.report.page import embedded_figure, grid, not_shown, section, table
from numpyro_rankings.words import number, percent, plural, quantity_name, value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TRACES_SHOWN = 8
_ITEMS_CHECKED = 20


def consensus_figures(profiles: Sequence[Any], rankings: Rankings) -> str:
    """Return the section with the mean ranks of each group that holds."""
    if not profiles:
        return ""
    items = [str(name) for name in rankings.items]
    figures = (
        embedded_figure(
            plots.plot_consensus(p, items, color=plots.COLORS[i % len(plots.COLORS)]),
            f"Group {i + 1}. Its most frequent order, in {percent(p.map_probability)} of the "
            f"draws: {short_order(p.map_consensus)}",
        )
        for i, p in enumerate(profiles[:CLUSTERS_SHOWN])
    )
    rest = not_shown(len(profiles) - CLUSTERS_SHOWN, "smaller group")
    return f"<h2>How certain each order is</h2>\n{grid(figures)}{rest}"


def partition_figures(findings: Findings, more: Sequence[tuple["Axes", str]] = ()) -> str:
    """Return the section about the partition; nothing if there is one cluster only.

    :param more: further figures and their captions.
    """
    data, profiles, reference = findings.described, findings.profiles, findings.reference
    labels = labels_of_draws(data["posterior"])
    if labels is None or reference is None:
        return ""
    numbers = np.asarray(data["posterior"]["num_clusters"])
    if len(profiles) == 1 and numbers.max() == 1:
        return ""
    noun = data["posterior"]["assignments"].dims[-1]
    figures = [
        (
            plots.plot_coclustering(data, reference, order=[p.label for p in profiles]),
            f"Probability that two {noun}s are in one group. Sharp blocks are groups on which the "
            "draws agree.",
        )
    ]
    if numbers.min() < numbers.max():
        figures.append((plots.plot_num_clusters(data), "Number of groups in the draws."))
    figures += more
    return section("Who goes with whom", _which_partition(reference, labels, noun)) + grid(
        embedded_figure(ax, caption) for ax, caption in figures
    )


def _which_partition(reference: ReferencePartition, labels: np.ndarray, noun: str) -> str:
    """Return which partition the groups come from, and how far the draws are from it."""
    ball = credible_ball(labels, reference.labels)
    fewest, most = (len(np.unique(x)) for x in (ball.fewest, ball.most))
    return (
        f"The groups are {html.escape(reference.in_words)}. {reference.caution} Their distance "
        f"from the draws is {reference.expected_loss:.3g} on average: 0 means that all draws "
        f"agree, and {np.log(len(reference.labels)):.3g} is the worst possible (the variation of "
        f"information of {len(reference.labels):,} {noun}s, in nats). 95% of the draws are within "
        f"{ball.radius:.3g} of them, with {groups_in_words(fewest, most)}."
    )


def predictive_checks(checks: PredictiveChecks) -> str:
    """Return the section that compares the rankings with replications from the model."""
    num_shares, num_shares_outside = _outside(checks.top)
    above = np.triu(np.ones(checks.pairs.observed.shape, bool), 1)
    pairs = PredictiveCheck(*(x[above] for x in checks.pairs))
    num_pairs, num_pairs_outside = _outside(pairs)
    text = (
        "New rankings are drawn from the fitted model, one for each that was observed, from its "
        "group. They should resemble the observed ones: about one number in ten is outside its "
        "90% interval by chance, and many more mean that the model misses something. Here "
        f"{num_shares_outside:,} of {plural(num_shares, 'share')} of first places and "
        f"{num_pairs_outside:,} of {plural(num_pairs, 'preference')} between two items are "
        f"outside.{_worst_pair(checks)}"
    )
    figure = plots.plot_predictive_check(checks.top, checks.items, _ITEMS_CHECKED)
    caption = "Shares of first places, observed and in new rankings."
    return section("Does the model fit", text) + grid([embedded_figure(figure, caption)])


def _worst_pair(checks: PredictiveChecks) -> str:
    low, high = checks.pairs.interval[..., 0], checks.pairs.interval[..., 1]
    seen = checks.pairs.observed
    # a pair that is below its interval is above it the other way around
    far = np.nan_to_num(seen - high, nan=-1.0)
    first, second = np.unravel_index(int(np.argmax(far)), far.shape)
    if far[first, second] <= 0:
        return ""
    return (
        f" The largest deviation: {seen[first, second]:.1%} rank "
        f"{html.escape(checks.items[first])} above {html.escape(checks.items[second])}, but "
        f"{low[first, second]:.1%} to {high[first, second]:.1%} of the new rankings do."
    )


def _outside(check: PredictiveCheck) -> tuple[int, int]:
    """Return how many quantities are compared, and how many are outside their interval."""
    known = ~np.isnan(check.mean) & ~np.isnan(check.observed)
    low, high = check.interval[known].T
    seen = check.observed[known]
    return int(known.sum()), int(((seen < low) | (seen > high)).sum())


def traces(findings: Findings, shown: int = _TRACES_SHOWN) -> str:
    """Return the section with the diagnostics, as a table and as traces.

    :param shown: number of traces at most.
    """
    diagnostics = findings.table
    is_moving = diagnostics["note"] != "constant"
    moving = list(diagnostics.index[is_moving])
    listed = diagnostics[is_moving] if moving else diagnostics  # what is constant says nothing
    rows = (
        (
            html.escape(quantity_name(str(name))),
            value(row["mean"]),
            value(row["sd"]),
            number(row["ess_bulk"], ",.0f"),
            number(row["ess_tail"], ",.0f"),
            number(row["r_hat"], ".3f"),
            row["note"],
        )
        for name, row in listed.iterrows()
    )
    lines = "The lines of different colours, one for each chain, should overlap. " if shown else ""
    text = (
        f"These quantities do not depend on how the groups are numbered. {lines}R-hat should be "
        f"below {R_HAT_GOOD}, and ESS above {ESS_GOOD}."
    )
    figures = [embedded_figure(plots.plot_trace(findings.data, name)) for name in moving[:shown]]
    return (
        section("Do the chains agree", text)
        + table(("quantity", "mean", "sd", "ESS bulk", "ESS tail", "R-hat", ""), rows)
        + (grid(figures) if figures else "")
    )
