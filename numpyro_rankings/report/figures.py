"""What a report shows in figures: orders, partition, predictive checks, chains.

As in :mod:`numpyro_rankings.report.answers`, a template has the sentences and the captions.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from numpyro_rankings import plots
from numpyro_rankings.posterior.diagnostics import ESS_GOOD, R_HAT_GOOD, posterior_of
from numpyro_rankings.posterior.partitions import coclustering_of_groups, evenly
from numpyro_rankings.posterior.places import places_of
from numpyro_rankings.posterior.point_estimates import credible_ball
from numpyro_rankings.posterior.predictive_checks import PredictiveChecks
from numpyro_rankings.rankings import Comparisons, PartialOrders, Rankings
from numpyro_rankings.rankings.weights import worth_of
from numpyro_rankings.report.answers import (
    CLUSTERS_SHOWN,
    figures_of_groups,
    group_of_each,
    numbered,
    reference_in_words,
    short_order,
)
from numpyro_rankings.report.findings import Findings, labels_of_draws
from numpyro_rankings.report.judgements import Fit, judge_fit, r_star_in_words
from numpyro_rankings.report.page import Figure, embedded_figure
from numpyro_rankings.words import number, quantity_name, value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TRACES_SHOWN = 8
_DRAWS_OF_TRACES = 600  # in all chains together, so that each is seen
_GROUPS_TOGETHER = 8  # in the table of who goes with whom
_DRAWS_TOGETHER = 1000
_SHARP = 0.5  # how often members are together, from which on a map of all pairs shows a block
_ITEMS_CHECKED = 20
_ITEMS_OF_BLOCS, ITEMS_IN_SUMMARY = 15, 10


class OrderOfGroup(NamedTuple):
    """The mean ranks of a group, the order that the draws agree on, and the most frequent one."""

    image: Figure
    certain: str
    probability: float
    order: str


class Orders(NamedTuple):
    """The largest groups that hold, and the number of the others that do."""

    groups: Sequence[OrderOfGroup]
    groups_left: int


def consensus_figures(findings: Findings) -> Orders | None:
    """Return the mean ranks of each group that holds; None if none does."""
    held, images = findings.held, figures_of_groups(plots.plot_consensus, findings)
    shown = [
        OrderOfGroup(
            image, _certain_order(p.certain), p.map_probability, short_order(p.map_consensus)
        )
        for image, p in zip(images, held, strict=False)
    ]
    return Orders(shown, len(held) - len(shown)) if held else None


def _certain_order(levels: Sequence[Sequence[str]]) -> str:
    """Return the beginning of an order whose levels are certain, in one line: ``A > {B, C}``."""
    texts = [level[0] if len(level) == 1 else f"{{{', '.join(level)}}}" for level in levels]
    return short_order(texts)


class PlacesShown(NamedTuple):
    """The figures of blocs: mean rank of each item, shares of the first place and of the first 3.

    The first items are shown, and **items_left** is the number of the others.
    """

    mean: Figure
    first: Figure
    top: Figure | None
    items_left: int


def places_of_blocs(
    findings: Findings, rankings: Rankings | PartialOrders | Comparisons
) -> PlacesShown | None:
    """Return where the judges of each bloc rank the items; None without blocs, and of pairs."""
    return None if findings.blocs is None else _places_shown(rankings, *_blocs(findings, rankings))


def places_of_groups(
    findings: Findings, rankings: Rankings | PartialOrders | Comparisons
) -> PlacesShown | None:
    """Return where the judges of each of the largest groups rank the items; None of pairs."""
    return _places_shown(rankings, *_largest_groups(findings, rankings))


def _places_shown(
    rankings: Rankings | PartialOrders | Comparisons, amounts: np.ndarray, names: Sequence[str]
) -> PlacesShown | None:
    places, most = places_of(rankings, amounts), _ITEMS_OF_BLOCS
    if places is None:
        return None

    def draw(what: Literal["mean", "first", "top"]) -> Figure:
        return embedded_figure(plots.plot_places(places, what, names, most))

    top = None if places.top is None else draw("top")
    return PlacesShown(draw("mean"), draw("first"), top, max(0, len(places.items) - most))


def _blocs(
    findings: Findings, rankings: Rankings | PartialOrders | Comparisons
) -> tuple[np.ndarray, Sequence[str]]:
    """Return how many judges of each row are in each bloc, and the names of the blocs."""
    blocs = findings.blocs
    assert blocs is not None
    return blocs.membership * np.asarray(rankings.counts)[:, None], numbered("bloc", blocs.number)


def _largest_groups(
    findings: Findings, rankings: Rankings | PartialOrders | Comparisons
) -> tuple[np.ndarray, Sequence[str]]:
    """Return how many judges of each row are in each group that is shown, and their names."""
    shown = (findings.held or findings.profiles)[:CLUSTERS_SHOWN]
    amounts = np.zeros((rankings.num_rows, len(shown) + 1))
    np.add.at(amounts, (rankings.row_index, group_of_each(findings, shown)), 1)
    return worth_of(rankings, amounts[:, : len(shown)]), numbered("group", len(shown))


def figure_of_summary(
    findings: Findings, rankings: Rankings | PartialOrders | Comparisons
) -> Figure | None:
    """Return the mean ranks in the blocs, or in the largest groups; None of pairs."""
    parts = _blocs if findings.blocs is not None and findings.blocs_first else _largest_groups
    amounts, names = parts(findings, rankings)
    places = places_of(rankings, amounts)
    if places is None:
        return None
    return embedded_figure(plots.plot_places(places, "mean", names, ITEMS_IN_SUMMARY))


class Together(NamedTuple):
    """How often members of a group are in one group with others of it, and of other groups.

    Each row has a heading and the shares, NaN where it is not known.
    """

    headings: Sequence[str]
    rows: Sequence[tuple[str, Sequence[float]]]
    not_shown: int


class Partition(NamedTuple):
    """The partition that the groups come from.

    - **size** - number of rankings or points, and **noun** what they are.
    - **radius** - how near 95% of the draws are to it.
    - **any_two**, **firmest** - how often any two are together, and two members of the group in
      which they are most often; the latter is None if no group holds.
    - **coclustering** - a map of all pairs; None if members of each group are together in less than
      half of the draws, so that it would show nothing.
    - **num_groups** - a figure; None if all draws have as many groups.
    """

    in_words: str
    size: int
    noun: str
    radius: str
    any_two: float
    firmest: float | None
    together: Together | None
    coclustering: Figure | None
    num_groups: Figure | None
    more: Sequence[tuple[Figure, str]]


def partition_figures(
    findings: Findings, more: Sequence[tuple["Axes", str]] = ()
) -> Partition | None:
    """Return the partition with further figures and captions; None if there is one cluster only."""
    data, profiles, reference = findings.described, findings.profiles, findings.reference
    labels = labels_of_draws(data["posterior"])
    if labels is None or reference is None:
        return None
    numbers = np.asarray(data["posterior"]["num_clusters"])
    if len(profiles) == 1 and numbers.max() == 1:
        return None
    some = labels[evenly(len(labels), _DRAWS_TOGETHER)]
    place = group_of_each(findings, findings.held)
    any_two = coclustering_of_groups(some, np.zeros_like(place))[0, 0]
    firmest = _firmest(findings, some, place)
    image = None
    if firmest is not None and firmest >= _SHARP:
        order = [p.label for p in profiles]
        image = embedded_figure(plots.plot_coclustering(data, reference, order=order))
    vary = numbers.min() < numbers.max()
    return Partition(
        reference_in_words(reference),
        len(reference.labels),
        data["posterior"]["assignments"].dims[-1],
        f"{credible_ball(labels, reference.labels).radius:.3g}",
        any_two,
        firmest,
        _together(findings, some, place),
        image,
        embedded_figure(plots.plot_num_clusters(data)) if vary else None,
        [(embedded_figure(ax), caption) for ax, caption in more],
    )


def _firmest(findings: Findings, labels: np.ndarray, place: np.ndarray) -> float | None:
    """Return how often members of the group that holds best are together; None if none holds."""
    held = len(findings.held)
    within = np.diag(coclustering_of_groups(labels, place))[:held]
    # nothing is known of a group with a single member
    return float(np.nan_to_num(within).max()) if held else None


def _together(findings: Findings, labels: np.ndarray, place: np.ndarray) -> Together | None:
    """Return how often members of each group that holds are together with those of the others."""
    held = len(findings.held)
    present, shown = np.unique(np.minimum(place, _GROUPS_TOGETHER), return_inverse=True)
    if not held or len(present) < 2:
        return None
    means = coclustering_of_groups(labels, shown)
    names = [str(k + 1) for k in range(min(held, _GROUPS_TOGETHER))]
    headings = [f"group {name}" for name in names]
    others = ["others"] * (len(present) - len(names))
    rows = list(zip([*headings, *others], means, strict=True))
    return Together([*names, *others], rows, max(0, held - _GROUPS_TOGETHER))


class WorstPair(NamedTuple):
    """The two items whose order deviates most: how many have it, and have it in new rankings."""

    first: str
    second: str
    observed: float
    low: float
    high: float


class Checks(NamedTuple):
    """The rankings beside replications: the fit, the pair that is farthest off, first places."""

    fit: Fit
    worst: WorstPair | None
    image: Figure


def predictive_checks(checks: PredictiveChecks | None) -> Checks | None:
    """Compare the rankings with replications from the model."""
    if checks is None:
        return None
    image = embedded_figure(plots.plot_predictive_check(checks.top, checks.items, _ITEMS_CHECKED))
    return Checks(judge_fit(checks), _worst_pair(checks), image)


def _worst_pair(checks: PredictiveChecks) -> WorstPair | None:
    low, high = checks.pairs.interval[..., 0], checks.pairs.interval[..., 1]
    seen = checks.pairs.observed
    # a pair that is below its interval is above it the other way around
    far = np.nan_to_num(seen - high, nan=-1.0)
    pair = np.unravel_index(int(np.argmax(far)), far.shape)
    if far[pair] <= 0:
        return None
    first, second = (checks.items[k] for k in pair)
    return WorstPair(first, second, seen[pair], low[pair], high[pair])


class Chains(NamedTuple):
    """Whether the chains agree: the diagnostics in a table, and traces if they were asked for."""

    rows: Sequence[Sequence[str]]
    with_traces: bool
    traces: Sequence[Figure]
    r_star: str  # in words
    r_hat_good: str = str(R_HAT_GOOD)
    ess_good: str = str(ESS_GOOD)


def traces(findings: Findings, shown: int = _TRACES_SHOWN) -> Chains:
    """Return the diagnostics as a table, with some traces."""
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
    draws = 1
    if shown:
        draws = max(50, _DRAWS_OF_TRACES // posterior_of(findings.data).sizes["chain"])
    figures = [
        embedded_figure(plots.plot_trace(findings.data, name, draws)) for name in moving[:shown]
    ]
    r_star = "" if findings.r_star is None else r_star_in_words(findings.r_star)
    return Chains(rows, shown > 0, figures, r_star)
