"""Figures of a fitted mixture. Each function draws on ``ax``, by default a new one, and returns it.

The colours are those of Okabe and Ito, which colour-blind readers can distinguish, in an order in
which the first ones also differ in lightness, for prints in grey. Clusters also differ by marker
and name.
"""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from numpyro.distributions import Distribution

from numpyro_rankings.links.decays import Decay
from numpyro_rankings.ops.checks import check_whole, refuse_masked
from numpyro_rankings.ops.orderings import as_orderings
from numpyro_rankings.posterior import (
    CenterProfile,
    ClusterProfile,
    RankingProfile,
    WeightsProfile,
    cp_consensus,
    rank_probabilities,
)
from numpyro_rankings.posterior.calibration import PosteriorSBC
from numpyro_rankings.posterior.diagnostics import posterior_of
from numpyro_rankings.posterior.partitions import as_partition, coclustering, evenly
from numpyro_rankings.posterior.places import TOP, Places
from numpyro_rankings.posterior.point_estimates import reference_partition
from numpyro_rankings.posterior.predictive_checks import PredictiveCheck
from numpyro_rankings.words import base_and_index, quantity_name, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Functions import matplotlib, which takes long to load.

__all__ = [
    "plot_coclustering",
    "plot_comparison",
    "plot_concentration",
    "plot_consensus",
    "plot_decay",
    "plot_group_path",
    "plot_num_clusters",
    "plot_partition_in_time",
    "plot_posterior_sbc",
    "plot_predictive_check",
    "plot_rank_probabilities",
    "plot_trace",
    "plot_weights",
]

COLORS = ("#0072B2", "#E69F00", "#444444", "#CC79A7", "#56B4E9", "#D55E00", "#8C6BB1", "#009E73")
_MARKERS = "osD^vPX*"
_LETTERS = 24  # of a name in a line beside an axis
_ROW, _WRAPPED_ROW = 0.26, 0.38  # inches for a name in one line, and in two
_LEAST_DISTANCE = 0.07  # of ticks that are numbers, as a share of an axis
_OVERLAID = 3  # clusters whose concentrations are told apart in one place
_WIDTH = 4.0  # inches; on a phone 400 px wide, text of 10 points is then 12 px high


def _axes(ax: "Axes | None", width: float, height: float) -> "Axes":
    """Return the given axes, or those of a new figure of a size in inches."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    # not pyplot, which keeps all figures of a session in memory
    return Figure(figsize=(width, height), layout="constrained").subplots()


def _tidy(ax: "Axes", grid: Literal["x", "y"] | None = None) -> "Axes":
    ax.spines[["top", "right"]].set_visible(False)
    if grid:
        ax.grid(axis=grid, color="0.9", linewidth=0.8)
        ax.set_axisbelow(True)
    return ax


def _variable(data: Any, name: str) -> Any:
    posterior = posterior_of(data)
    if name not in posterior:
        known = ", ".join(posterior.data_vars)
        raise ValueError(f"the posterior has no variable {name!r}; it has {known}")
    return posterior[name]


def _first_items(
    profile: RankingProfile,
    items: Sequence[str],
    max_items: int,
    mean: np.ndarray,
    interval: np.ndarray | None,
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return names, means and intervals of the first items of the consensus; None is the means."""
    check_whole("max_items", max_items)
    if len(items) != len(profile.consensus):
        raise ValueError(f"items must have {len(profile.consensus)} names, got {len(items)}")
    shown = profile.consensus_ordering[:max_items]
    interval = np.stack([mean, mean], axis=1) if interval is None else interval
    return [items[i] for i in shown], mean[shown], interval[shown]


def _whole_numbers(axis: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def plot_coclustering(
    data: Any,
    reference: Any = None,
    max_rankings: int = 300,
    ax: "Axes | None" = None,
    *,
    order: Sequence[int] | None = None,
) -> "Axes":
    """Plot a heat map of the probability that two rankings, or points, share a cluster.

    :param data: the result of :func:`~numpyro_rankings.to_inference_data`.
    :param reference: the partition that the rankings are ordered by: labels of shape ``(N,)``, or
        the result of :func:`~numpyro_rankings.reference_partition`. By default it is computed.
    :param max_rankings: the largest number of rankings shown, which are picked evenly over the
        clusters.
    :param order: labels of the reference in the order in which clusters are numbered, such as
        ``[p.label for p in profiles]``; by default the largest cluster first.
    """
    check_whole("max_rankings", max_rankings)
    assignments = _variable(data, "assignments")
    noun = f"{assignments.dims[-1]}s"  # rankings or points
    labels = np.asarray(assignments)
    labels = labels.reshape(-1, labels.shape[-1])
    by_size = _numbered(labels, reference, order)
    places = np.argsort(by_size, kind="stable")
    judges = places[evenly(len(places), max_rankings)]
    ax = _axes(ax, _WIDTH, 3.6)
    _heat_map(ax, coclustering(labels, judges), "probability to share a group", first=0)
    _divide(ax, by_size[judges])
    some = f"{len(judges)} of {len(places):,} {noun}" if len(judges) < len(places) else noun
    ax.set_xlabel(f"{some}, by group")
    ax.set_ylabel("group")
    return ax


def _numbered(labels: np.ndarray, reference: Any, order: Sequence[int] | None) -> np.ndarray:
    """Return the number of the cluster of each point, from 0, as for :func:`plot_coclustering`."""
    if reference is None:
        reference = reference_partition(labels)
    partition = as_partition(getattr(reference, "labels", reference), labels.shape[1])
    if order is None:
        order = np.argsort(-np.bincount(partition), kind="stable").tolist()
    if not set(partition.tolist()) <= set(order) or len(set(order)) < len(order):
        raise ValueError(f"order must name each label of the reference once, got {order!r}")
    number = np.zeros(max(max(order), int(partition.max())) + 1, int)
    number[list(order)] = np.arange(len(order))
    return number[partition]


def _divide(ax: "Axes", clusters: np.ndarray) -> None:
    """Draw a line between each two clusters of a map of all pairs, and number the clusters."""
    edges = np.flatnonzero(np.diff(clusters)) + 0.5
    linewidth = min(0.8, 16 / max(len(edges), 1))  # many wide lines would hide what is between them
    for edge in edges:
        ax.axhline(edge, color="white", linewidth=linewidth)
        ax.axvline(edge, color="white", linewidth=linewidth)
    bounds = np.concatenate([[-0.5], edges, [len(clusters) - 0.5]])
    middles = (bounds[1:] + bounds[:-1]) / 2
    names = clusters[np.ceil(bounds[:-1]).astype(int)]
    shown: list[int] = []  # the widest groups first, where their numbers do not touch
    for k in np.argsort(-np.diff(bounds), kind="stable"):
        if (np.abs(middles[shown] - middles[k]) >= _LEAST_DISTANCE * len(clusters)).all():
            shown.append(int(k))
    ticks, tick_names = middles[sorted(shown)], [str(name + 1) for name in names[sorted(shown)]]
    ax.set_xticks(ticks, tick_names)
    ax.set_yticks(ticks, tick_names)


def _heat_map(ax: "Axes", probability: np.ndarray, label: str, first: int) -> None:
    """Show probabilities as colours, with the number of the first column."""
    rows, columns = probability.shape
    extent = (first - 0.5, first + columns - 0.5, rows - 0.5, -0.5)
    image = ax.imshow(
        probability, cmap="cividis", vmin=0, vmax=1, extent=extent, interpolation="nearest"
    )
    ax.figure.colorbar(image, ax=ax, label=label, shrink=0.85)


def _intervals(
    names: Sequence[str], mean: np.ndarray, interval: np.ndarray, color: str, ax: "Axes | None"
) -> "Axes":
    """Plot a mean and its interval for each name, one below the other."""
    ax = _axes(ax, _WIDTH, 1.0 + _row_height(names) * len(names))
    rows = _rows(names, ax, lines=2)
    ax.hlines(rows, interval[:, 0], interval[:, 1], color=color, linewidth=3, alpha=0.45)
    ax.plot(mean, rows, "o", color=color, markersize=6)
    return ax


def _rows(names: Sequence[str], ax: "Axes", lines: int = 1) -> np.ndarray:
    """Label a row for each name of 1 or 2 lines, one below the other, and return their places."""
    rows = np.arange(len(names))
    # names like "$199 or $299" are not formulas
    ax.set_yticks(rows, [_beside(str(name), lines) for name in names], parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)
    return rows


def _row_height(names: Sequence[str]) -> float:
    """Return the height of a row in inches, with room for names of two lines if there are any."""
    return _WRAPPED_ROW if any(len(str(name)) > _LETTERS for name in names) else _ROW


def _beside(name: str, lines: int) -> str:
    """Fit a name beside an axis, without its middle: the ends are what often differs."""
    if len(name) <= _LETTERS:
        return name
    if lines == 1:
        half = (_LETTERS - 1) // 2
        return f"{name[: _LETTERS - 1 - half]}…{name[-half:]}"
    wrapped = textwrap.wrap(name, _LETTERS, break_on_hyphens=False)
    if len(wrapped) <= 2:
        return "\n".join(wrapped)
    return f"{name[: _LETTERS - 1]}…\n…{name[1 - _LETTERS :]}"


def plot_places(
    places: Places,
    what: Literal["mean", "first", "top"],
    names: Sequence[str],
    max_items: int = 15,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot what parts of the judges, such as blocs, say of each item, with 90% intervals.

    :param what: the field of the places that is shown. Items are in the order of the mean ranks of
        all judges, at most ``max_items`` of them.
    :param names: of the parts, for the legend.
    """
    values, intervals = getattr(places, what), getattr(places, f"{what}_interval")
    shown = np.argsort(places.overall, kind="stable")[:max_items]
    items = [places.items[i] for i in shown]
    height = max(_row_height(items), 0.12 * len(names) + 0.12)
    ax = _axes(ax, _WIDTH, 1.0 + 0.2 * -(-len(names) // 2) + height * len(items))
    rows = _rows(items, ax, lines=2)
    step = min(0.2, 0.8 / len(names))
    for k, name in enumerate(names):
        at, color = rows + step * (k - (len(names) - 1) / 2), COLORS[k % len(COLORS)]
        low, high = intervals[k, shown].T
        ax.hlines(at, low, high, color=color, linewidth=2.5, alpha=0.45)
        marker = _MARKERS[k % len(_MARKERS)]
        (line,) = ax.plot(values[k, shown], at, marker, color=color, markersize=5, label=name)
        line.set_clip_on(False)  # 0% is at the edge
    ax.hlines(rows[1:] - 0.5, 0, 1, transform=ax.get_yaxis_transform(), color="0.9", linewidth=0.8)
    if what == "mean":
        ax.set_xlim(0.5, len(places.items) + 0.5)
        _whole_numbers(ax.xaxis)
        ax.set_xlabel("mean rank (1 = best)", loc="right")
    else:
        ax.set_xlim(left=0)
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
        ax.locator_params(axis="x", nbins=4)
        first = "first" if what == "first" else f"among the first {TOP}"
        ax.set_xlabel(f"share of the judges who rank it {first}", loc="right")
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, ncols=min(2, len(names)))
    return _tidy(ax, "x")


def plot_comparison(comparison: Any, ax: "Axes | None" = None) -> "Axes":
    """Plot how well models predict, by their number of groups.

    Bars are standard errors of the differences to the best model. The lines without groups are
    those of models that learn their number.

    :param comparison: the result of :func:`~numpyro_rankings.compare`.
    """
    table = comparison.table
    families: dict[str, list[tuple[float, float, float]]] = {}
    for name, row in table.iterrows():
        family, number = comparison.groups[name]
        entry = (np.nan if number is None else number, row["elpd_diff"], row["se_diff"])
        families.setdefault(family, []).append(entry)
    ax = _axes(ax, _WIDTH, 3.2)
    for k, (family, entries) in enumerate(sorted(families.items())):
        color, marker = COLORS[k % len(COLORS)], _MARKERS[k % len(_MARKERS)]
        fixed = np.array(sorted(x for x in entries if not np.isnan(x[0]))).reshape(-1, 3).T
        ax.errorbar(*fixed, color=color, marker=marker, capsize=3, label=family)
        for _, difference, _ in (x for x in entries if np.isnan(x[0])):
            label = f"{family}, any number"
            ax.axhline(difference, color=color, linestyle="--", linewidth=1, label=label)
    _whole_numbers(ax.xaxis)
    ax.set_xlabel("groups")
    ax.set_ylabel("elpd, difference to the best")
    ax.legend(loc="lower right", frameon=False)
    return _tidy(ax, "y")


def plot_consensus(
    profile: CenterProfile,
    items: Sequence[str],
    max_items: int = 30,
    color: str = COLORS[0],
    ax: "Axes | None" = None,
    with_intervals: bool = True,
) -> "Axes":
    """Plot the mean rank of each item with its 90% interval, in the order of the consensus.

    :param profile: one of :func:`~numpyro_rankings.cluster_profiles`.
    :param items: names of all items, in item order.
    :param max_items: the largest number of items shown, from the top of the consensus.
    :param with_intervals: whether to show the intervals.
    """
    CenterProfile.check(profile)
    of_ranks = profile.rank_interval if with_intervals else None
    names, mean, interval = _first_items(profile, items, max_items, profile.rank_mean, of_ranks)
    ax = _intervals(names, mean, interval, color, ax)
    ax.set_xlim(0.5, max(interval.max(), len(names)) + 0.5)
    _whole_numbers(ax.xaxis)
    # the label starts at the right, and extends to the left as far as it needs
    what = "mean and 90% interval" if with_intervals else "mean"
    ax.set_xlabel(f"rank (1 = best), {what}", loc="right")
    return _tidy(ax, "x")


def plot_weights(
    profile: WeightsProfile,
    items: Sequence[str],
    max_items: int = 20,
    color: str = COLORS[0],
    ax: "Axes | None" = None,
    with_intervals: bool = True,
) -> "Axes":
    """Plot the weight of each item with its 90% interval, the largest first.

    :param profile: one of :func:`~numpyro_rankings.cluster_profiles`.
    :param items: names of the items that have weights, in their order.
    :param max_items: the largest number of items shown.
    :param with_intervals: whether to show the intervals.
    """
    WeightsProfile.check(profile)
    of_weights = profile.weights_interval if with_intervals else None
    names, mean, interval = _first_items(profile, items, max_items, profile.weights, of_weights)
    ax = _intervals(names, mean, interval, color, ax)
    ax.set_xlim(0.0, max(1.05 * interval.max(), 1.05 * mean.max(), 1e-6))
    ax.locator_params(axis="x", nbins=4)
    ax.set_xlabel(f"weight, mean{' and 90% interval' if with_intervals else ''}", loc="right")
    return _tidy(ax, "x")


def plot_predictive_check(
    check: PredictiveCheck,
    items: Sequence[str],
    max_items: int = 30,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot the share of rankings that have each item first, observed and in replications.

    :param check: ``top`` of the :func:`~numpyro_rankings.posterior_predictive_checks`.
    :param items: names of the items, in their order.
    :param max_items: the largest number of items shown, those with the largest observed shares.
    """
    shown = np.argsort(-check.observed, kind="stable")[:max_items]
    names = [items[i] for i in shown]
    ax = _axes(ax, _WIDTH, 1.1 + _row_height(names) * len(shown))
    rows = _rows(names, ax, lines=2)
    low, high = check.interval[shown].T
    ax.hlines(rows, low, high, color=COLORS[0], linewidth=5, alpha=0.4, label="90% of replications")
    ax.plot(check.observed[shown], rows, "D", color=COLORS[1], markersize=5, label="observed")
    ax.set_xlim(left=0)
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    ax.locator_params(axis="x", nbins=4)  # so that long names leave room for the numbers
    ax.set_xlabel("share of the rankings with the item first", loc="right")
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, ncols=2)
    return _tidy(ax, "x")


def plot_rank_probabilities(
    orderings: ArrayLike, items: Sequence[str], max_items: int = 30, ax: "Axes | None" = None
) -> "Axes":
    """Plot a heat map of the rank probabilities of the items, in the order of the CP consensus.

    :param orderings: draws of a full ordering, shape ``(D, n)``: ``center`` of one cluster, for
        example from :func:`~numpyro_rankings.relabel_samples` in the draws that have the cluster.
    :param items: names of all items, in item order.
    :param max_items: the largest number of items shown, from the top of the consensus, and of
        ranks.
    """
    orderings = as_orderings(orderings)
    shown = cp_consensus(orderings)[:max_items]
    probability = rank_probabilities(orderings)[shown, :max_items]
    size = len(shown)
    names = [items[i] for i in shown]
    ax = _axes(ax, 2.6 + _ROW * size, 1.6 + _row_height(names) * size)
    _heat_map(ax, probability, "probability", first=1)
    _rows(names, ax, lines=2)
    _whole_numbers(ax.xaxis)
    ax.set_xlabel("rank (1 = best)", loc="right")
    return ax


def plot_decay(
    decay: Decay,
    scales: ArrayLike | None = None,
    max_distance: float | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot a decay: the weight f(d) of links as a function of the distance d.

    :param decay: a decay such as ``exponential_decay(2.0)``.
    :param scales: draws of its scale, ``mcmc.get_samples()["decay_scale"]``, of any shape. The mean
        of f over the draws is shown, with its 90% interval. Required if the scale of the decay is a
        distribution.
    :param max_distance: the largest distance shown; by default four times the (median) scale.
    """
    own = [] if decay.scale is None else [decay.scale]
    if scales is None and own and isinstance(own[0], Distribution):
        raise ValueError("the scale of this decay is a distribution: give draws of it as scales")
    values = np.ravel(own if scales is None else np.asarray(scales, float))
    values = values[evenly(len(values), 1000)] if len(values) else values
    if max_distance is None:
        max_distance = 4.0 * float(np.median(values)) if len(values) else 1.0
    distances = np.linspace(0.0, max_distance, 400)
    curves = np.array([decay(distances, scale) for scale in values.tolist() or [None]])
    ax = _axes(ax, _WIDTH, 2.8)
    if len(curves) > 1:
        low, high = np.quantile(curves, (0.05, 0.95), axis=0)
        ax.fill_between(
            distances, low, high, color=COLORS[0], alpha=0.25, linewidth=0, label="90% interval"
        )
    label = "mean over the draws" if len(curves) > 1 else f"{decay.name} decay"
    ax.plot(distances, curves.mean(0), color=COLORS[0], label=label)
    ax.set_xlim(0, max_distance)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("distance d")
    ax.set_ylabel("decay f(d)")
    ax.legend(frameon=False)
    return _tidy(ax, "y")


def plot_partition_in_time(
    times: ArrayLike,
    reference: Any,
    max_clusters: int = 40,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot the times of the points of each cluster, with clusters one below the other.

    Clusters are numbered and ordered by the time of their first point.

    :param times: times of the points, shape ``(N,)``.
    :param reference: labels of shape ``(N,)``, or the result of
        :func:`~numpyro_rankings.reference_partition`.
    :param max_clusters: the largest number of clusters shown; the largest clusters are.
    """
    times, labels = _times_and_labels(times, reference)
    first = np.full(int(labels.max()) + 1, np.inf)
    np.minimum.at(first, labels, times)
    place = np.argsort(np.argsort(first, kind="stable"))[labels]
    sizes = np.bincount(place)
    shown = np.sort(np.argsort(-sizes, kind="stable")[:max_clusters])
    ax = _axes(ax, _WIDTH, 1.4 + 0.22 * len(shown))
    for row, cluster in enumerate(shown):
        when, color = times[place == cluster], COLORS[row % len(COLORS)]
        ax.hlines(row, when.min(), when.max(), color=color, linewidth=1, alpha=0.4)
        marker = _MARKERS[row % len(_MARKERS)]
        ax.plot(when, np.full(len(when), row), marker, color=color, markersize=4, alpha=0.8)
    _rows([f"{k + 1} ({sizes[k]:,})" for k in shown], ax)
    ax.set_xlabel("time")
    rest = len(sizes) - len(shown)
    ax.set_ylabel("group (points)" + (f", {rest} smaller not shown" if rest else ""))
    return _tidy(ax, "x")


def _times_and_labels(times: ArrayLike, reference: Any) -> tuple[np.ndarray, np.ndarray]:
    """Check the times of points, and return them and the labels 0..K-1 of the points."""
    refuse_masked("times", times)
    times, labels = np.asarray(times, float), np.asarray(getattr(reference, "labels", reference))
    if times.shape != labels.shape or times.ndim != 1 or times.size == 0:
        raise ValueError(
            f"times and reference must have a time and a label for each point, got shapes "
            f"{times.shape} and {labels.shape}"
        )
    if not np.isfinite(times).all():
        raise ValueError("times must be finite numbers")
    return times, np.unique(labels, return_inverse=True)[1]


def plot_concentration(
    profiles: Sequence[ClusterProfile],
    max_clusters: int = 8,
    ax: "Axes | None" = None,
    with_intervals: bool = True,
) -> "Axes":
    """Plot the concentration θ of each stage with its 90% interval, one line for each cluster.

    More than three clusters stand side by side, each with all stages from left to right.

    :param profiles: the :func:`~numpyro_rankings.cluster_profiles`.
    :param max_clusters: the largest number of clusters shown.
    :param with_intervals: whether to show the intervals.
    """
    check_whole("max_clusters", max_clusters)
    if len(profiles) == 0 or not ClusterProfile.describes(*profiles):
        raise TypeError(
            "profiles must be those that cluster_profiles returns for draws of a Mallows kernel"
        )
    ax = _axes(ax, _WIDTH, 3.0)
    shown = profiles[:max_clusters]
    num_stages = len(shown[0].concentration)
    are_apart = len(shown) > _OVERLAID
    places = len(shown) * (num_stages + 1) if are_apart else num_stages
    is_wide = places > (40 if are_apart else 20)
    if are_apart:
        shifts = np.arange(len(shown)) * (num_stages + 1.0)
    else:  # side by side, so that intervals do not overlap
        shifts = (0.0 if is_wide else 0.07) * (np.arange(len(shown)) - (len(shown) - 1) / 2)
    for i, profile in enumerate(shown):
        _curve_of_concentrations(ax, i, profile, shifts[i], is_wide, with_intervals)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("concentration θ")
    if are_apart:
        _name_parts(ax, len(shown), num_stages)
    else:
        _name_stages(ax, len(shown), num_stages)
    return _tidy(ax, "y")


def _curve_of_concentrations(
    ax: "Axes",
    number: int,
    profile: ClusterProfile,
    shift: float,
    is_wide: bool,
    with_intervals: bool,
) -> None:
    mean, interval = profile.concentration, profile.concentration_interval
    errors = np.maximum([mean - interval[:, 0], interval[:, 1] - mean], 0.0)
    ax.errorbar(
        np.arange(1, len(mean) + 1) + shift,
        mean,
        yerr=errors if with_intervals else None,
        color=COLORS[number % len(COLORS)],
        marker=_MARKERS[number % len(_MARKERS)],
        markersize=3 if is_wide else 5,
        linewidth=1.2,
        elinewidth=1.2,
        capsize=0 if is_wide else 2,
        label=f"group {number + 1}",
    )


def _name_stages(ax: "Axes", number: int, num_stages: int) -> None:
    ax.set_xlim(0.5, num_stages + 0.5)
    _whole_numbers(ax.xaxis)
    ax.set_xlabel("stage")
    if number > 1:
        place = (0.5, -0.17)  # below the axis, where there are no intervals
        ax.legend(loc="upper center", bbox_to_anchor=place, frameon=False, ncols=3)


def _name_parts(ax: "Axes", number: int, num_stages: int) -> None:
    """Divide the axis into a part for each group, with all stages from left to right."""
    starts = np.arange(number + 1) * (num_stages + 1)
    for start in starts[1:-1]:
        ax.axvline(start, color="0.8", linewidth=0.8)
    ax.set_xlim(0, starts[-1])
    ax.set_xticks((starts[1:] + starts[:-1]) / 2, [str(i + 1) for i in range(number)])
    ax.tick_params(axis="x", length=0)
    ax.set_xlabel(f"group, with stages 1 to {num_stages} from left to right", loc="right")


def plot_trace(
    data: Any, name: str = "num_clusters", max_draws: int = 500, ax: "Axes | None" = None
) -> "Axes":
    """Plot the trace of a quantity that does not depend on labels, the chains side by side.

    Each chain has a strip with its draws from left to right, and its mean as a black line. Chains
    that agree are at the same height, and move up and down alike.

    :param data: the result of :func:`~numpyro_rankings.to_inference_data`.
    :param name: a variable of its posterior, such as ``"log_joint"``, or an entry of a variable:
        by its number from 1, as ``"largest_sizes[1]"``, or its item, as ``"top_weights[Ann]"``.
    :param max_draws: the largest number of draws shown of each chain, evenly spaced.
    :raises ValueError: if there is no such variable or entry, or it is not a single number.
    """
    values = _values_of(data, name)
    ax = _axes(ax, _WIDTH, 2.0)
    num_chains, num_draws = values.shape
    kept = evenly(num_draws, max_draws)
    starts = 1.08 * num_draws * np.arange(num_chains)
    for chain, (start, line) in enumerate(zip(starts, values[:, kept], strict=True)):
        color = COLORS[chain % len(COLORS)]
        ax.plot(start + kept + 1, line, color=color, linewidth=0.6, label=f"chain {chain + 1}")
        mean = float(values[chain].mean())
        ax.hlines(mean, start + 1, start + num_draws, color="black", linewidth=1.4, zorder=3)
    if num_chains == 1:
        ax.set_xlabel("draw")
    else:
        shown = evenly(num_chains, 16)  # more numbers would touch
        names = [str(chain + 1) for chain in shown]
        ax.set_xticks(starts[shown] + (1 + num_draws) / 2, names)
        ax.tick_params(axis="x", length=0)
        ax.set_xlabel("chain, with its draws from left to right", loc="right")
    ax.set_title(quantity_name(name), loc="left", fontsize="medium", parse_math=False)
    ax.ticklabel_format(axis="y", useOffset=False, style="plain")
    if np.all(values == np.round(values)) and np.ptp(values) < 20:
        _whole_numbers(ax.yaxis)
    return _tidy(ax, "y")


def _values_of(data: Any, name: str) -> np.ndarray:
    """Return the values of a quantity, (chains, draws)."""
    base, index = base_and_index(name)
    variable = _variable(data, base)
    values = np.asarray(variable, np.float64)
    if index:
        entries = range(1, values.shape[-1] + 1)
        names = variable["top_item"].values if base == "top_weights" else entries
        places = [str(entry) for entry in names] if values.ndim == 3 else []
        if index not in places:
            known = ", ".join(places) or "no entries"
            raise ValueError(f"{base} has no entry {index!r}; it has {known}")
        values = values[..., places.index(index)]
    if values.ndim != 2:
        raise ValueError(f"{base} has several numbers in each draw: name one, such as {base}[1]")
    return values


def plot_num_clusters(data: Any, ax: "Axes | None" = None) -> "Axes":
    """Plot the posterior probability of each number of occupied clusters.

    :param data: the result of :func:`~numpyro_rankings.to_inference_data`.
    """
    numbers = np.asarray(_variable(data, "num_clusters")).ravel().astype(int)
    low, high = numbers.min(), numbers.max()
    probability = np.bincount(numbers - low) / len(numbers)
    ax = _axes(ax, _WIDTH, 2.8)
    ax.bar(np.arange(low, high + 1), probability, color=COLORS[0], width=0.8)
    ax.set_xlim(low - 1.5, high + 1.5)
    _whole_numbers(ax.xaxis)
    ax.set_ylim(0, 1.05 * probability.max())
    ax.set_xlabel("number of groups")
    ax.set_ylabel("probability")
    return _tidy(ax, "y")


def plot_group_path(path: Any, ax: "Axes | None" = None) -> "Axes":
    """Plot the probability of each number of groups, as if there were fewer rankings.

    The probabilities are stacked, the smallest number at the bottom.

    :param path: the result of :func:`~numpyro_rankings.group_path`.
    """
    sizes, numbers = path["effective_size"].values, path["num_components"].values
    probability = path["probability"].values.T
    ax = _axes(ax, _WIDTH, 2.8)
    colors = [COLORS[k % len(COLORS)] for k in range(len(numbers))]
    # the edges tell colours apart that come again
    ax.stackplot(sizes, probability, colors=colors, edgecolor="white", linewidth=0.5)
    bottom = np.cumsum(probability, axis=0) - probability
    for k, number in enumerate(numbers):
        where = int(probability[k].argmax())
        if probability[k, where] > 0.5:
            inside = np.flatnonzero(probability[k] > 0.5)
            where = int(inside[len(inside) // 2])
            height = bottom[k, where] + probability[k, where] / 2
            ax.annotate(
                str(number), (sizes[where], height), color="white", ha="center", va="center"
            )
    ax.set_xscale("log")
    ax.set_xlim(sizes[0], sizes[-1])
    ax.set_ylim(0, 1)
    ax.set_xlabel("as many rankings as")
    ax.set_ylabel("probability of the number of components")
    return _tidy(ax)


def plot_posterior_sbc(found: PosteriorSBC, ax: "Axes | None" = None) -> "Axes":
    """Plot how many ranks are at most so large, less the expected number, for each quantity.

    :param found: the result of :func:`~numpyro_rankings.posterior_sbc`.
    """
    at_most = np.arange(found.num_draws)
    size = len(next(iter(found.ranks.values())))
    expected = size * (at_most + 1) / (found.num_draws + 1)
    ax = _axes(ax, _WIDTH, 2.8)
    low, high = found.band().T
    ax.fill_between(at_most, low - expected, high - expected, color="0.9", step="mid")
    least = min(found.p_values, key=lambda name: found.p_values[name])
    for name, ranks in found.ranks.items():
        numbers = (ranks[:, None] <= at_most).sum(0)
        is_least = name == least
        ax.step(
            at_most,
            numbers - expected,
            where="mid",
            color=COLORS[0] if is_least else "0.6",
            linewidth=1.5 if is_least else 0.8,
            zorder=3 if is_least else 2,
        )
    ax.axhline(0.0, color="0.4", linewidth=0.8)
    _whole_numbers(ax.xaxis)
    ax.set_xlabel(f"rank, of 0 to {found.num_draws}")
    ax.set_ylabel("ranks up to it, less expected")
    ax.set_title(shorten(quantity_name(least), 40), loc="left", color=COLORS[0])
    return _tidy(ax, "y")
