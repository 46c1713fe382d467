"""What a report shows in figures: orders, partition, predictive checks, chains.

As in :mod:`numpyro_rankings.report.answers`, a template has the sentences and the captions.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numpyro_rankings import plots
from numpyro_rankings.diagnostics import ESS_GOOD, R_HAT_GOOD
from numpyro_rankings.point_estimates import credible_ball
from numpyro_rankings.predictive_checks import PredictiveChecks
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.report.answers import (
    CLUSTERS_SHOWN,
    groups_in_words,
    reference_in_words,
    short_order,
)
from numpyro_rankings.report.findings import Findings, labels_of_draws
from numpyro_rankings.report.fit import counts_outside, misses_something
from numpyro_rankings.report.page import Figure, embedded_figure
from numpyro_rankings.words import number, percent, plural, quantity_name, value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TRACES_SHOWN = 8
_ITEMS_CHECKED = 20


class OrderOfGroup(NamedTuple):
    """The mean ranks of a group; its most frequent order, and how often it is in the draws."""

    image: Figure
    probability: str
    order: str


class Orders(NamedTuple):
    """The largest groups that hold, and the number of the others that do."""

    groups: Sequence[OrderOfGroup]
    groups_left: int


def consensus_figures(profiles: Sequence[Any], rankings: Rankings) -> Orders | None:
    """Return the mean ranks of each group that holds; None if none does."""
    if not profiles:
        return None
    items = [str(name) for name in rankings.items]
    shown = [
        OrderOfGroup(
            embedded_figure(
                plots.plot_consensus(p, items, color=plots.COLORS[i % len(plots.COLORS)])
            ),
            percent(p.map_probability),
            short_order(p.map_consensus),
        )
        for i, p in enumerate(profiles[:CLUSTERS_SHOWN])
    ]
    return Orders(shown, len(profiles) - len(shown))


class Partition(NamedTuple):
    """The partition that the groups come from.

    - **in_words** - which it is, and how far the draws are from it.
    - **size** - number of rankings or points, and **noun** what they are.
    - **radius**, **groups** - of 95% of the draws: how near they are to it, and how many groups
      they have.
    - **coclustering**, **num_groups** - figures; None if all draws have as many groups.
    - **more** - further figures and their captions.
    """

    in_words: str
    size: str
    noun: str
    radius: str
    groups: str
    coclustering: Figure
    num_groups: Figure | None
    more: Sequence[tuple[Figure, str]]


def partition_figures(
    findings: Findings, more: Sequence[tuple["Axes", str]] = ()
) -> Partition | None:
    """Return the partition; None if there is one cluster only.

    :param more: further figures and their captions.
    """
    data, profiles, reference = findings.described, findings.profiles, findings.reference
    labels = labels_of_draws(data["posterior"])
    if labels is None or reference is None:
        return None
    numbers = np.asarray(data["posterior"]["num_clusters"])
    if len(profiles) == 1 and numbers.max() == 1:
        return None
    noun = data["posterior"]["assignments"].dims[-1]
    ball = credible_ball(labels, reference.labels)
    fewest, most = (len(np.unique(x)) for x in (ball.fewest, ball.most))
    order = [p.label for p in profiles]
    vary = numbers.min() < numbers.max()
    return Partition(
        reference_in_words(reference),
        plural(len(reference.labels), noun),
        noun,
        f"{ball.radius:.3g}",
        groups_in_words(fewest, most),
        embedded_figure(plots.plot_coclustering(data, reference, order=order)),
        embedded_figure(plots.plot_num_clusters(data)) if vary else None,
        [(embedded_figure(ax), caption) for ax, caption in more],
    )


class WorstPair(NamedTuple):
    """The two items whose order deviates most: how many have it, and have it in new rankings."""

    first: str
    second: str
    observed: str
    low: str
    high: str


class Checks(NamedTuple):
    """The rankings beside replications from the model.

    - **shares**, **pairs** - how many numbers are compared, and **shares_outside**,
      **pairs_outside** how many are outside their intervals.
    - **misses** - whether more are outside than by chance.
    - **worst** - the pair that is farthest outside; None if none is.
    - **image** - shares of first places.
    """

    shares: str
    shares_outside: str
    pairs: str
    pairs_outside: str
    misses: bool
    worst: WorstPair | None
    image: Figure


def predictive_checks(checks: PredictiveChecks | None) -> Checks | None:
    """Compare the rankings with replications from the model."""
    if checks is None:
        return None
    (num_shares, num_shares_outside), (num_pairs, num_pairs_outside) = counts_outside(checks)
    return Checks(
        plural(num_shares, "share"),
        f"{num_shares_outside:,}",
        plural(num_pairs, "preference"),
        f"{num_pairs_outside:,}",
        misses_something(checks),
        _worst_pair(checks),
        embedded_figure(plots.plot_predictive_check(checks.top, checks.items, _ITEMS_CHECKED)),
    )


def _worst_pair(checks: PredictiveChecks) -> WorstPair | None:
    low, high = checks.pairs.interval[..., 0], checks.pairs.interval[..., 1]
    seen = checks.pairs.observed
    # a pair that is below its interval is above it the other way around
    far = np.nan_to_num(seen - high, nan=-1.0)
    pair = np.unravel_index(int(np.argmax(far)), far.shape)
    if far[pair] <= 0:
        return None
    first, second = (checks.items[k] for k in pair)
    return WorstPair(first, second, *(f"{x[pair]:.1%}" for x in (seen, low, high)))


class Chains(NamedTuple):
    """Whether the chains agree: the diagnostics in a table, and traces.

    - **with_traces** - whether traces were asked for.
    - **r_hat_good**, **ess_good** - what the diagnostics should reach.
    """

    rows: Sequence[Sequence[str]]
    with_traces: bool
    traces: Sequence[Figure]
    r_hat_good: str = str(R_HAT_GOOD)
    ess_good: str = str(ESS_GOOD)


def traces(findings: Findings, shown: int = _TRACES_SHOWN) -> Chains:
    """Return the diagnostics, as a table and as traces.

    :param shown: number of traces at most.
    """
    diagnostics = findings.table
    is_moving = diagnostics["note"] != "constant"
    moving = list(diagnostics.index[is_moving])
    listed = diagnostics[is_moving] if moving else diagnostics  # what is constant says nothing
    rows = [
        (
            quantity_name(str(name)),
            value(row["mean"]),
            value(row["sd"]),
            number(row["ess_bulk"], ",.0f"),
            number(row["ess_tail"], ",.0f"),
            number(row["r_hat"], ".3f"),
            row["note"],
        )
        for name, row in listed.iterrows()
    ]
    figures = [embedded_figure(plots.plot_trace(findings.data, name)) for name in moving[:shown]]
    return Chains(rows, shown > 0, figures)
