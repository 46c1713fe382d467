"""Figures of a report, with what they say."""

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numpyro_rankings import plots
from numpyro_rankings.diagnostics import ESS_GOOD, R_HAT_GOOD
from numpyro_rankings.point_estimates import ReferencePartition
from numpyro_rankings.predictive_checks import PredictiveCheck, PredictiveChecks
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.report.answers import CLUSTERS_SHOWN, short_order, which_partition
from numpyro_rankings.report.page import embedded_figure
from numpyro_rankings.words import number, plural, quantity_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_CHECK_CAPTION = "Shares of first places, observed and in replications."


def consensus_figures(profiles: Sequence[Any], rankings: Rankings) -> str:
    items = [str(name) for name in rankings.items]
    figures = "".join(
        embedded_figure(
            plots.plot_consensus(p, items, color=plots.COLORS[i % len(plots.COLORS)]),
            f"Cluster {i + 1}. Most frequent center, {p.map_probability:.0%} of the draws: "
            + short_order(p.map_consensus),
        )
        for i, p in enumerate(profiles[:CLUSTERS_SHOWN])
    )
    rest = len(profiles) - CLUSTERS_SHOWN
    more = f'<p class="soft">{plural(rest, "smaller cluster")} not shown.</p>' if rest > 0 else ""
    return f'<h2>How sure each order is</h2>\n<div class="grid">{figures}</div>{more}\n'


def partition_figures(
    data: Any,
    profiles: Sequence[Any],
    reference: ReferencePartition,
    labels: np.ndarray,
    more: Sequence[tuple["Axes", str]] = (),
) -> str:
    if len(profiles) == 1 and float(np.max(data["posterior"]["num_clusters"])) == 1:
        return ""
    noun = data["posterior"]["assignments"].dims[-1]
    return (
        f'<h2>Who goes with whom</h2>\n<p class="soft">'
        f'{which_partition(reference, labels, noun)}</p>\n<div class="grid">'
        + embedded_figure(
            plots.plot_coclustering(data, reference, order=[p.label for p in profiles]),
            f"How often two {noun}s share a cluster. Sharp blocks are groups that the draws "
            "agree on.",
        )
        + embedded_figure(plots.plot_num_clusters(data), "How many clusters the draws have.")
        + "".join(embedded_figure(ax, caption) for ax, caption in more)
        + "</div>\n"
    )


def predictive_checks(checks: PredictiveChecks) -> str:
    """Whether the model would produce such rankings; the extreme pairs in words."""
    number, outside = _outside(checks.top)
    above = np.triu(np.ones(checks.pairs.observed.shape, bool), 1)
    pairs = PredictiveCheck(*(x[above] for x in checks.pairs))
    num_pairs, outside_pairs = _outside(pairs)
    low, high = checks.pairs.interval[..., 0], checks.pairs.interval[..., 1]
    seen = checks.pairs.observed
    far = np.nan_to_num(np.maximum(seen - high, low - seen), nan=-1.0)
    first, second = np.unravel_index(int(np.argmax(far)), far.shape)
    worst = ""
    if far[first, second] > 0:
        worst = (
            f" The pair that is furthest off: {seen[first, second]:.1%} have "
            f"{html.escape(checks.items[first])} above {html.escape(checks.items[second])}, "
            f"against {low[first, second]:.1%} to {high[first, second]:.1%} in replications."
        )
    return (
        "<h2>Does the model fit</h2>\n"
        '<p class="soft">Rankings drawn anew from the fitted model, each from its own cluster, '
        f"should look like those observed. Outside the 90% of the replications are {outside} of "
        f"{plural(number, 'share')} of first places, where one in ten would be by chance, and "
        f"{outside_pairs:,} of {plural(num_pairs, 'preference')} between pairs of items."
        f"{worst}</p>\n"
        '<div class="grid">'
        + embedded_figure(plots.plot_predictive_check(checks.top, checks.items, 20), _CHECK_CAPTION)
        + "</div>\n"
    )


def _outside(check: PredictiveCheck) -> tuple[int, int]:
    """How many are compared, and how many of them are outside their interval."""
    known = ~np.isnan(check.mean) & ~np.isnan(check.observed)
    low, high = check.interval[known].T
    seen = check.observed[known]
    return int(known.sum()), int(((seen < low) | (seen > high)).sum())


def traces(data: Any, table: "pd.DataFrame") -> str:
    moving = list(table.index[table["note"] != "constant"])
    figures = "".join(embedded_figure(plots.plot_trace(data, name)) for name in moving[:8])
    rows = "".join(
        f"<tr><td>{html.escape(quantity_name(str(name)))}</td><td>{row['mean']:,.4g}</td>"
        f"<td>{row['sd']:,.3g}</td>"
        + "".join(
            f"<td>{number(row[column], spec)}</td>"
            for column, spec in (("ess_bulk", ",.0f"), ("ess_tail", ",.0f"), ("r_hat", ".3f"))
        )
        + f"<td>{row['note']}</td></tr>"
        for name, row in table.iterrows()
    )
    return (
        "<h2>Do the chains agree</h2>\n"
        '<p class="soft">Of quantities that do not depend on how clusters are numbered. Lines of '
        "different colours, one for each chain, should lie over one another; R-hat should be "
        f"below {R_HAT_GOOD} and ESS above {ESS_GOOD}.</p>\n"
        '<div class="scroll"><table><thead><tr><th>quantity</th><th>mean</th><th>sd</th>'
        "<th>ESS bulk</th><th>ESS tail</th><th>R-hat</th><th></th></tr></thead>"
        f'<tbody>{rows}</tbody></table></div>\n<div class="grid">{figures}</div>\n'
    )
