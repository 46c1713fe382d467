"""Answers, groups and tables of a report."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from numpyro_rankings import plots
from numpyro_rankings.diagnostics import Verdict
from numpyro_rankings.point_estimates import ReferencePartition, credible_ball
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.report.page import embedded_figure
from numpyro_rankings.summaries import PartitionProfile, WeightsProfile
from numpyro_rankings.words import plural

_ITEMS_SHOWN = 12
ITEMS_AT_TOP = 5
CLUSTERS_SHOWN = 6
_ITEMS_IN_TABLE = 40
_CLUSTERS_IN_TABLE = 50


def short_answers(
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
    shown = profiles[:CLUSTERS_SHOWN]
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


def verdict_box(judged: Verdict) -> str:
    reasons = "".join(f"<li>{html.escape(reason)}</li>" for reason in judged.reasons)
    return (
        f'<section class="verdict {judged.level}"><strong>'
        f"{html.escape(judged.headline)}</strong><ul>{reasons}</ul></section>\n"
    )


def groups(profiles: Sequence[Any], rankings: Rankings, has_files: bool) -> str:
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


def table_of_clusters(
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


def table_of_weights(profiles: Sequence[Any], items: Sequence[str]) -> str:
    figures = "".join(
        embedded_figure(
            plots.plot_weights(p, items, color=plots.COLORS[i % len(plots.COLORS)]),
            f"Cluster {i + 1}. Entropy of its weights {p.entropy:.2f} of the largest."
            + (f" All unlisted items: {p.unseen_weight:.2g}." if p.unseen_interval else ""),
        )
        for i, p in enumerate(profiles[:CLUSTERS_SHOWN])
    )
    rest = len(profiles) - CLUSTERS_SHOWN
    more = f'<p class="soft">{plural(rest, "smaller cluster")} not shown.</p>' if rest > 0 else ""
    total = sum(p.size for p in profiles)
    mean = sum(p.size / total * p.weights for p in profiles)
    shown = np.argsort(-mean, kind="stable")[:_ITEMS_IN_TABLE]
    clusters = profiles[:CLUSTERS_SHOWN]
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


def concentrations(profiles: Sequence[Any]) -> str:
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
        + embedded_figure(
            plots.plot_concentration(profiles), "Mean θ by stage, with 90% intervals."
        )
        + f'<div class="scroll"><table><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>\n"
    )


def short_order(names: Sequence[str], most: int = _ITEMS_SHOWN) -> str:
    return " > ".join(names[:most]) + (" > …" if len(names) > most else "")


def which_partition(reference: ReferencePartition, labels: np.ndarray, noun: str) -> str:
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
