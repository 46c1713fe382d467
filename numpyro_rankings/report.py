"""One self-contained HTML page about a fit: the groups, and whether to trust them."""

import base64
import html
import io
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from numpyro_rankings import plots
from numpyro_rankings.inference_data import diagnostics_table
from numpyro_rankings.point_estimates import ReferencePartition, credible_ball, reference_partition
from numpyro_rankings.predictive_checks import PredictiveCheck, PredictiveChecks
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.summaries import (
    ClusterProfile,
    PartitionProfile,
    WeightsProfile,
    cluster_profiles,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Verdict", "verdict", "write_partition_report", "write_report"]

R_HAT_GOOD, R_HAT_BAD = 1.01, 1.05
ESS_GOOD, ESS_BAD = 400, 100
OVERFLOW_BAD = 0.01
_ITEMS_SHOWN = 12
_ITEMS_AT_TOP = 5
_CLUSTERS_SHOWN = 6
_ITEMS_IN_TABLE = 40
_CLUSTERS_IN_TABLE = 50


class Verdict(NamedTuple):
    """Whether a fit can be trusted.

    :param level: ``"good"``, ``"care"`` or ``"bad"``.
    :param headline: one sentence.
    :param reasons: what it rests on, a sentence each.
    """

    level: Literal["good", "care", "bad"]
    headline: str
    reasons: list[str]


def verdict(data: Any, table: "pd.DataFrame | None" = None) -> Verdict:
    """Judge a run by R-hat, ESS, overflow and acceptance.

    :param data: what :func:`~numpyro_rankings.to_inference_data` returned.
    :param table: its :func:`~numpyro_rankings.diagnostics_table`, if at hand.
    """
    table = diagnostics_table(data) if table is None else table
    bad: list[str] = []
    care: list[str] = []
    fine: list[str] = []
    stats = data["sample_stats"]
    overflow = float(np.mean(stats["overflow"])) if "overflow" in stats else 0.0
    if overflow > 0:
        (bad if overflow > OVERFLOW_BAD else care).append(
            f"{overflow:.1%} of the draws wanted more clusters than max_clusters allows: "
            "raise it and run again."
        )
    chains = data["posterior"].sizes["chain"]
    moving = table[table["note"] != "constant"]
    unknown = moving[moving["mean"].isna() | ((moving["note"] == "") & moving["r_hat"].isna())]
    if len(unknown):
        names = ", ".join(plots.quantity_name(str(name)) for name in unknown.index)
        bad.append(f"Some draws are no numbers, or cannot be compared: {names}.")
        moving = moving.drop(unknown.index)
    if chains < 2:
        care.append("One chain cannot be checked against another: run at least two.")
    elif len(moving):
        worst, r_hat = moving["r_hat"].idxmax(), moving["r_hat"].max()
        name = plots.quantity_name(str(worst))
        if r_hat > R_HAT_BAD:
            bad.append(
                f"The {chains} chains do not agree on the {name} (R-hat {r_hat:.2f}): they are "
                "in different places, so run them longer or from another start."
            )
        elif r_hat > R_HAT_GOOD:
            care.append(f"The chains nearly agree: R-hat is at most {r_hat:.3f}, for the {name}.")
        else:
            fine.append(f"The {chains} chains agree: R-hat is at most {r_hat:.3f}.")
    else:
        fine.append(f"Nothing that was watched moved: all {chains} chains stayed at one value.")
    if len(moving) and moving[["ess_bulk", "ess_tail"]].notna().any(axis=None):
        smallest = moving[["ess_bulk", "ess_tail"]].min(axis=1)
        ess, name = smallest.min(), plots.quantity_name(str(smallest.idxmin()))
        text = f"The draws are worth at least {ess:.0f} independent ones (ESS, for the {name})"
        if ess < ESS_BAD:
            bad.append(f"{text}: too few for intervals. Run longer.")
        elif ess < ESS_GOOD:
            care.append(f"{text}: enough for means, few for intervals.")
        else:
            fine.append(f"{text}.")
    posterior = data["posterior"]
    if overflow == 0 and "overflow" in stats and "num_clusters" in posterior:
        fine.append("No draw wanted more clusters than there was room for.")
    if "acceptance_rate" in stats and "center" in posterior:  # the others have no such steps
        rate = float(np.mean(stats["acceptance_rate"]))
        if rate < 1:  # else there were none
            fine.append(f"{rate:.0%} of the Metropolis proposals within a sweep were accepted.")
    if bad:
        return Verdict("bad", "Do not rely on this run yet.", bad + care + fine)
    if care:
        return Verdict("care", "Usable with care.", care + fine)
    return Verdict("good", "The chains agree; the posterior can be used.", fine)


_CHECK_CAPTION = "Shares of first places, observed and in replications."
_STYLE = """
:root { --ink: #1b1f24; --soft: #57606a; --line: #d8dee4; --fill: #f6f8fa; }
* { box-sizing: border-box; }
body { margin: 0; background: #fff; color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 24px 20px 64px; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: 8px 0 4px; }
h2 { font-size: 1.2rem; margin: 40px 0 8px; }
p { margin: 6px 0; max-width: 84ch; }
.soft { color: var(--soft); }
.answers { border: 1px solid var(--line); border-radius: 8px; background: var(--fill);
  padding: 10px 16px; margin: 16px 0; }
.answers dt { color: var(--ink); font-weight: 600; }
.verdict { border-left: 6px solid; border-radius: 4px; padding: 12px 16px; margin: 20px 0; }
.verdict strong { font-size: 1.1rem; }
.verdict ul { margin: 6px 0 0; padding-left: 20px; }
.good { border-color: #1a7f37; background: #eef9f0; }
.care { border-color: #bf8700; background: #fff8e5; }
.bad { border-color: #cf222e; background: #ffefee; }
.group { border: 1px solid var(--line); border-radius: 8px; padding: 14px 16px; margin: 12px 0; }
.group header { display: flex; flex-wrap: wrap; gap: 4px 16px; align-items: baseline; }
.group h3 { margin: 0; font-size: 1.05rem; }
.track { background: var(--fill); border: 1px solid var(--line); border-radius: 4px; height: 14px;
  margin: 8px 0; overflow: hidden; }
.bar { height: 100%; min-width: 2px; }
ol.order { display: flex; flex-wrap: wrap; gap: 6px; list-style: none; margin: 8px 0 0;
  padding: 0; }
ol.order li { border: 1px solid var(--line); background: var(--fill); border-radius: 4px;
  padding: 2px 9px; overflow-wrap: anywhere; }
ol.order li b { color: var(--soft); font-weight: 600; margin-right: 4px; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; margin: 8px 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums;
  font-size: 0.92rem; }
th, td { padding: 6px 12px; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { background: var(--fill); }
tbody tr { border-top: 1px solid var(--line); }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr));
  gap: 16px; align-items: start; }
figure { margin: 8px 0; }
img { width: 100%; max-width: 640px; height: auto; display: block; }
figcaption { font-size: 0.9rem; color: var(--soft); overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 6px 18px; margin: 8px 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
code { font: 0.9em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
@media (max-width: 560px) {
  main { padding: 14px 12px 48px; }
  h1 { font-size: 1.4rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 10px; }
}
@media print { .group, figure, .verdict { break-inside: avoid; } }
"""


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
) -> None:
    """Write one HTML page with everything in it: no other files, no links to follow.

    :param path: where to.
    :param data: what :func:`~numpyro_rankings.to_inference_data` returned, with
        the assignments.
    :param rankings: what was fitted.
    :param profiles: its :func:`~numpyro_rankings.cluster_profiles`, if at hand.
    :param reference: the partition they describe: labels of shape ``(N,)``, or, so that the page
        says how it was found, what
        :func:`~numpyro_rankings.reference_partition` has returned; by default that.
    :param title: heading of the page.
    :param checks: :func:`~numpyro_rankings.posterior_predictive_checks`, to be shown too.
    :param details: how the run was made, as the last section lists it: the command, the seed,
        where the data come from.
    :raises ValueError: if the assignments were left out of ``data``.
    """
    posterior = data["posterior"]
    is_mixture = "cluster_sizes" in posterior
    if is_mixture and "assignments" not in posterior:
        raise ValueError("the report needs the labels: to_inference_data(include_assignments=True)")
    names = ("assignments", "center", "concentration", "weights", "unseen_weight", "cluster_sizes")
    samples = {name: np.asarray(posterior[name]) for name in names if name in posterior}
    labels = _draws_of_labels(posterior)
    reference = None if labels is None else reference_partition(labels, reference)
    if profiles is None:
        profiles = cluster_profiles(samples, rankings, reference)
    table = diagnostics_table(data)
    what = (
        f"{plural(rankings.num_rankings, 'ranking')} ({rankings.unique().num_rows:,} distinct) of "
        f"{plural(rankings.num_items, 'item')}"
    )
    judged, details = verdict(data, table), details or {}
    wants = [_short_order(p.consensus, _ITEMS_AT_TOP) for p in profiles]
    parts = [
        _heading(title, what),
        _answers(
            data,
            profiles,
            rankings.num_rankings,
            "What do they want?",
            wants,
            judged,
            reference,
            details,
        ),
        _verdict_box(judged),
        _groups(profiles, rankings, "command" in details),
    ]
    if isinstance(profiles[0], WeightsProfile):
        parts.append(_weights(profiles, [str(name) for name in posterior["item"].values]))
    else:
        parts += [_concentrations(profiles), _consensus_figures(profiles, rankings)]
    parts += [
        _partition_figures(data, profiles, reference, labels) if labels is not None else "",
        _predictive_checks(checks) if checks is not None else "",
        _traces(data, table),
        _details(details),
    ]
    _write_page(path, title, parts)


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
) -> None:
    """Write one such page about a partition of any points.

    :param path: where to.
    :param data: what :func:`~numpyro_rankings.to_inference_data` returned, with
        the assignments.
    :param profiles: its :func:`~numpyro_rankings.summaries.partition_profiles`.
    :param reference: the partition they describe, as in :func:`write_report`.
    :param columns: what else the table of clusters shows: a heading, and a text for each.
    :param what: was clustered, such as ``"20 points"``.
    :param title: heading of the page.
    :param figures: more to show with the partition, each with its caption.
    :param details: how the run was made.
    """
    table = diagnostics_table(data)
    labels = _draws_of_labels(data["posterior"])
    reference = reference_partition(labels, reference)
    judged, details, size = verdict(data, table), details or {}, len(reference.labels)
    what_they_are = [
        ", ".join(f"{name} {texts[i]}".removeprefix("words ") for name, texts in columns.items())
        for i in range(len(profiles))
    ]
    parts = [
        _heading(title, what),
        _answers(data, profiles, size, "What are they?", what_they_are, judged, reference, details),
        _verdict_box(judged),
        _clusters(profiles, columns, size),
        _partition_figures(data, profiles, reference, labels, figures),
        _traces(data, table),
        _details(details),
    ]
    _write_page(path, title, parts)


def _draws_of_labels(posterior: Any) -> Any:
    """Labels of all draws, (D, N), or None of one population."""
    if "assignments" not in posterior:
        return None
    labels = np.asarray(posterior["assignments"])
    return labels.reshape(-1, labels.shape[-1])


def _write_page(path: str | Path, title: str, parts: Sequence[str]) -> None:
    page = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{''.join(parts)}</main>\n</body>\n</html>\n"
    )
    Path(path).write_text(page, encoding="utf-8")


def _heading(title: str, what: str) -> str:
    return f"<h1>{html.escape(title)}</h1>\n<p>In {html.escape(what)}.</p>\n"


def _answers(
    data: Any,
    profiles: Sequence[Any],
    total: int,
    what_question: str,
    what_they_are: Sequence[str],
    judged: Verdict,
    reference: ReferencePartition | None,
    details: Mapping[str, str],
) -> str:
    """The questions that everybody has, and short answers, before anything else."""
    shown = profiles[:_CLUSTERS_SHOWN]
    rest = len(profiles) - len(shown)
    more = [f"and {plural(rest, 'smaller one')}, see below"] if rest else []
    shares = [f"cluster {i}: {p.size / total:.0%} of all" for i, p in enumerate(shown, 1)]
    others = 1 - sum(p.size for p in profiles) / total
    come_and_go = [f"in clusters that come and go: {others:.0%}"] if others >= 0.005 else []
    are = [f"cluster {i}: {text}" for i, text in enumerate(what_they_are[: len(shown)], 1)]
    answers = {
        "How many groups?": [_how_many(data, profiles, reference)],
        "Who is in them?": [*shares, *more, *come_and_go],
        what_question: [*are, *more],
        "Can I trust it?": [judged.headline],
    }
    rows = "".join(
        f"<dt>{question}</dt><dd>{'<br>'.join(html.escape(line) for line in lines)}</dd>"
        for question, lines in answers.items()
    )
    if "command" in details:
        versions = html.escape(details.get("versions", ""))
        rows += (
            f"<dt>How do I repeat it?</dt><dd><code>{html.escape(details['command'])}</code>"
            f'<br><span class="soft">{versions}</span></dd>'
        )
    return f'<section class="answers"><dl>{rows}</dl></section>\n'


def _how_many(data: Any, profiles: Sequence[Any], reference: ReferencePartition | None) -> str:
    number = plural(len(profiles), "group")
    if reference is None:
        return f"{number}: one population was fitted."
    numbers = np.asarray(data["posterior"]["num_clusters"]).ravel()
    low, high = np.quantile(numbers, (0.05, 0.95), method="inverted_cdf").astype(int)
    spread = plural(low, "cluster") if low == high else f"{low} to {high} clusters"
    return f"{number}, those of {reference.in_words}. The draws have {spread} (90% interval)."


def plural(number: int, noun: str) -> str:
    """``1 ranking``, ``2,000 rankings``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _verdict_box(judged: Verdict) -> str:
    reasons = "".join(f"<li>{html.escape(reason)}</li>" for reason in judged.reasons)
    return (
        f'<section class="verdict {judged.level}"><strong>'
        f"{html.escape(judged.headline)}</strong><ul>{reasons}</ul></section>\n"
    )


def _groups(profiles: Sequence[Any], rankings: Rankings, has_files: bool) -> str:
    total, cards = rankings.num_rankings, []
    for i, p in enumerate(profiles):
        share = p.size / total
        shown = p.consensus[:_ITEMS_SHOWN]
        items = "".join(f"<li><b>{j}</b>{html.escape(x)}</li>" for j, x in enumerate(shown, 1))
        if len(p.consensus) > len(shown):
            items += f"<li>and {len(p.consensus) - len(shown)} more</li>"
        low, high = p.size_interval
        found = "" if p.presence > 0.995 else f"<span>found in {p.presence:.0%} of draws</span>"
        cards.append(
            f'<section class="group"><header><h3>Cluster {i + 1}</h3>'
            f"<span>{p.size:,.0f} rankings, {share:.1%}</span>"
            f'<span class="soft">90% interval {low:,.0f} to {high:,.0f}</span>'
            f'<span class="soft">agreement {p.agreement:.0%}</span>{found}</header>'
            f'<div class="track" role="img" aria-label="{share:.1%} of the rankings">'
            f'<div class="bar" style="width:{100 * share:.2f}%;'
            f'background:{plots.COLORS[i % len(plots.COLORS)]}"></div></div>'
            f'<ol class="order">{items}</ol></section>\n'
        )
    if isinstance(profiles[0], WeightsProfile):
        order = (
            "Items of each cluster by their weight, the chance to be named first. Agreement is 0% "
            "where all are equal and 100% where all members name the same one first."
        )
    else:
        order = (
            "Consensus order of each cluster, best first (cumulative-probability consensus). "
            "Agreement is 0% where its members rank by chance and 100% where all rank alike."
        )
    file = " Which ranking is in which is in assignments.csv." if has_files else ""
    return (
        f'<h2>Who is in the groups</h2>\n<p class="soft">{order} Sizes are means over the draws '
        f"that have the cluster.{file}</p>\n" + "".join(cards)
    )


def _clusters(
    profiles: Sequence[PartitionProfile], columns: Mapping[str, Sequence[str]], total: int
) -> str:
    """The table of the clusters of a partition."""
    head = "".join(
        f"<th>{html.escape(name)}</th>"
        for name in ("cluster", "size", "90% interval", "share", "presence", "cohesion", *columns)
    )
    rows = ""
    for i, p in enumerate(profiles[:_CLUSTERS_IN_TABLE]):
        low, high = p.size_interval
        cells = (
            f"{i + 1}",
            f"{p.size:,.1f}",
            f"{low:,.0f}–{high:,.0f}",
            f"{p.size / total:.1%}",
            f"{p.presence:.0%}",
            f"{p.cohesion:.0%}",
            *(texts[i] for texts in columns.values()),
        )
        rows += "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
    rest = len(profiles) - _CLUSTERS_IN_TABLE
    more = f'<p class="soft">{plural(rest, "smaller cluster")} not shown.</p>' if rest > 0 else ""
    return (
        '<h2>What the groups are</h2>\n<p class="soft">Sizes are means over the draws that have '
        "the cluster, and presence is the share of these. Cohesion is how often two of its members "
        "are together. Who is in which cluster is in assignments.csv.</p>\n"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{more}\n"
    )


def _weights(profiles: Sequence[Any], items: Sequence[str]) -> str:
    figures = "".join(
        _figure(
            plots.plot_weights(p, items, color=plots.COLORS[i % len(plots.COLORS)]),
            f"Cluster {i + 1}. Entropy of its weights {p.entropy:.2f} of the largest."
            + (f" All unlisted items: {p.unseen_weight:.2g}." if p.unseen_interval else ""),
        )
        for i, p in enumerate(profiles[:_CLUSTERS_SHOWN])
    )
    rest = len(profiles) - _CLUSTERS_SHOWN
    more = f'<p class="soft">{plural(rest, "smaller cluster")} not shown.</p>' if rest > 0 else ""
    total = sum(p.size for p in profiles)
    mean = sum(p.size / total * p.weights for p in profiles)
    shown = np.argsort(-mean, kind="stable")[:_ITEMS_IN_TABLE]
    clusters = profiles[:_CLUSTERS_SHOWN]
    head = "".join(f"<th>cluster {i}</th>" for i in range(1, len(clusters) + 1))
    rows = "".join(
        f"<tr><td>{html.escape(items[k])}</td>"
        + "".join(
            f'<td>{p.weights[k]:.3f} <span class="soft">({p.weights_interval[k, 0]:.3f}–'
            f"{p.weights_interval[k, 1]:.3f})</span></td>"
            for p in clusters
        )
        + "</tr>"
        for k in shown
    )
    left = len(items) - len(shown)
    tail = f'<p class="soft">{plural(left, "item")} of less weight not shown.</p>' if left else ""
    return (
        "<h2>What each item weighs</h2>\n"
        '<p class="soft">At each place an item is chosen with a chance in proportion to its '
        "weight among those still left. Means and 90% intervals; of the largest clusters.</p>\n"
        f'<div class="grid">{figures}</div>{more}\n'
        f'<div class="scroll"><table><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{tail}\n"
    )


def _concentrations(profiles: Sequence[Any]) -> str:
    num_stages = len(profiles[0].concentration)
    head = "".join(f"<th>stage {j}</th>" for j in range(1, num_stages + 1))
    rows = "".join(
        f"<tr><td>cluster {i}</td>"
        + "".join(
            f'<td>{mean:.3f} <span class="soft">({low:.3f}–{high:.3f})</span></td>'
            for mean, (low, high) in zip(p.concentration, p.concentration_interval, strict=True)
        )
        + "</tr>"
        for i, p in enumerate(profiles, 1)
    )
    return (
        "<h2>How sharp each choice is</h2>\n"
        '<p class="soft">θ of stage j is how strongly the j-th choice follows the consensus among '
        "the items still left: 0 is chance; at θ the next item down is e<sup>θ</sup> times less "
        "likely.</p>\n"
        + _figure(plots.plot_concentration(profiles), "Mean θ by stage, with 90% intervals.")
        + f'<div class="scroll"><table><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>\n"
    )


def _consensus_figures(profiles: Sequence[Any], rankings: Rankings) -> str:
    items = [str(name) for name in rankings.items]
    figures = "".join(
        _figure(
            plots.plot_consensus(p, items, color=plots.COLORS[i % len(plots.COLORS)]),
            f"Cluster {i + 1}. Most frequent center, {p.map_probability:.0%} of the draws: "
            + _short_order(p.map_consensus),
        )
        for i, p in enumerate(profiles[:_CLUSTERS_SHOWN])
    )
    rest = len(profiles) - _CLUSTERS_SHOWN
    more = f'<p class="soft">{plural(rest, "smaller cluster")} not shown.</p>' if rest > 0 else ""
    return f'<h2>How sure each order is</h2>\n<div class="grid">{figures}</div>{more}\n'


def _short_order(names: Sequence[str], most: int = _ITEMS_SHOWN) -> str:
    return " > ".join(names[:most]) + (" > …" if len(names) > most else "")


def _which_partition(reference: ReferencePartition, labels: np.ndarray, noun: str) -> str:
    """What the groups are those of, and how far the draws lie from it."""
    ball = credible_ball(labels, reference.labels)
    fewest, most = (len(np.unique(x)) for x in (ball.fewest, ball.most))
    spread = plural(fewest, "cluster") if fewest == most else f"{fewest} to {most} clusters"
    return (
        f"The groups are those of {html.escape(reference.in_words)}. Expected loss: "
        f"{reference.expected_loss:.3g} nats, where 0 is agreement with every draw and "
        f"{np.log(len(reference.labels)):.3g}, the log of the number of {noun}s, is the most there "
        f"can be. Credible ball: 95% of the draws are within {ball.radius:.3g} nats, with {spread}."
    )


def _partition_figures(
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
        f'{_which_partition(reference, labels, noun)}</p>\n<div class="grid">'
        + _figure(
            plots.plot_coclustering(data, reference, order=[p.label for p in profiles]),
            f"How often two {noun}s share a cluster. Sharp blocks are groups that the draws "
            "agree on.",
        )
        + _figure(plots.plot_num_clusters(data), "How many clusters the draws have.")
        + "".join(_figure(ax, caption) for ax, caption in more)
        + "</div>\n"
    )


def _predictive_checks(checks: PredictiveChecks) -> str:
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
        + _figure(plots.plot_predictive_check(checks.top, checks.items, 20), _CHECK_CAPTION)
        + "</div>\n"
    )


def _outside(check: PredictiveCheck) -> tuple[int, int]:
    """How many are compared, and how many of them are outside their interval."""
    known = ~np.isnan(check.mean) & ~np.isnan(check.observed)
    low, high = check.interval[known].T
    seen = check.observed[known]
    return int(known.sum()), int(((seen < low) | (seen > high)).sum())


def _traces(data: Any, table: "pd.DataFrame") -> str:
    moving = list(table.index[table["note"] != "constant"])
    figures = "".join(_figure(plots.plot_trace(data, name)) for name in moving[:8])
    rows = "".join(
        f"<tr><td>{html.escape(plots.quantity_name(str(name)))}</td><td>{row['mean']:,.4g}</td>"
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


def number(value: float, spec: str) -> str:
    """Formatted, or a dash where it is not defined."""
    return "–" if np.isnan(value) else format(value, spec)


def _details(details: Mapping[str, str]) -> str:
    rows = "".join(
        f"<dt>{html.escape(term)}</dt><dd>"
        + (f"<code>{html.escape(text)}</code>" if term == "command" else html.escape(text))
        + "</dd>"
        for term, text in details.items()
    )
    return f"<h2>How this was made</h2>\n<dl>{rows}</dl>\n" if rows else ""


def _figure(ax: "Axes", caption: str = "") -> str:
    """The figure of ``ax`` as an image inside the page."""
    import matplotlib

    figure: Any = ax.figure
    stream = io.StringIO()
    # A fixed salt and no date: the same fit gives the same page. Text stays text, which the browser
    # has fonts for where matplotlib has not.
    settings: Any = {"svg.hashsalt": "numpyro_rankings", "svg.fonttype": "none"}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        for _ in range(
            2
        ):  # ticks, and with them the room for them, are settled by the layout before
            figure.draw_without_rendering()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    encoded = base64.b64encode(stream.getvalue().encode()).decode()
    alt = caption or ax.get_title(loc="left")
    note = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    return (
        f'<figure><img alt="{html.escape(alt, quote=True)}" '
        f'src="data:image/svg+xml;base64,{encoded}">{note}</figure>\n'
    )
