"""Sections of a report in words and tables: short answers, verdict, groups, weights, θ."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from numpyro_rankings import plots
from numpyro_rankings.diagnostics import NUM_COMPONENTS, Verdict
from numpyro_rankings.report.findings import Findings
from numpyro_rankings.report.page import (
    cell_with_interval,
    embedded_figure,
    grid,
    not_shown,
    section,
    table,
)
from numpyro_rankings.summaries import WeightsProfile
from numpyro_rankings.summaries.judges import by_group
from numpyro_rankings.words import number, plural

CLUSTERS_SHOWN = 6
_ITEMS_SHOWN = 12
_ITEMS_IN_ANSWERS = 5
_ITEMS_IN_TABLE = 40
_CLUSTERS_IN_TABLE = 50
_LEAST_REST = 0.005  # share of the rankings in no cluster of the profiles that is worth a line


def short_answers(findings: Findings, question: str, answers: Sequence[str]) -> str:
    """Return the box at the top of the page, with short answers to the first questions.

    :param question: what the clusters are, as a question.
    :param answers: its answer for each cluster.
    """
    profiles, details = findings.profiles, findings.details
    shown = profiles[:CLUSTERS_SHOWN]
    rest = len(profiles) - len(shown)
    more = [f"and {plural(rest, 'smaller one')}, see below"] if rest else []
    shares = [
        f"cluster {i}: {p.mean_size:,.0f}, {p.mean_size / findings.total:.0%} of all"
        for i, p in enumerate(shown, 1)
    ]
    others = 1 - sum(p.mean_size for p in profiles) / findings.total
    shares += more
    if others >= _LEAST_REST:
        shares.append(f"in groups that come and go from draw to draw: {others:.0%}")
    are = [f"cluster {i}: {text}" for i, text in enumerate(answers[: len(shown)], 1)]
    box = {
        "How many groups?": [_how_many(findings)],
        "Who is in them?": shares,
        question: [*are, *more],
        "Can I trust it?": [findings.verdict.headline],
    }
    rows = "".join(
        f"<dt>{name}</dt><dd>{'<br>'.join(html.escape(line) for line in lines)}</dd>"
        for name, lines in box.items()
    )
    if "command" in details:
        versions = html.escape(details.get("versions", ""))
        rows += (
            f"<dt>How do I repeat it?</dt><dd><code>{html.escape(details['command'])}</code>"
            f'<br><span class="soft">{versions}</span></dd>'
        )
    return f'<section class="answers"><dl>{rows}</dl></section>\n'


def _how_many(findings: Findings) -> str:
    groups_found = plural(len(findings.profiles), "group")
    if findings.reference is None:
        return f"{groups_found}: a single population was fitted."
    posterior = findings.described["posterior"]
    if NUM_COMPONENTS in posterior.attrs:
        return f"{groups_found}. You asked for {int(posterior.attrs[NUM_COMPONENTS])}."
    numbers = np.asarray(posterior["num_clusters"]).ravel()
    low, high = np.quantile(numbers, (0.05, 0.95), method="inverted_cdf").astype(int)
    return (
        f"{groups_found} in {findings.reference.in_words}. The draws have "
        f"{clusters(low, high)} (90% interval)."
    )


def clusters(low: int, high: int) -> str:
    """Return a range of numbers of clusters in words."""
    return plural(low, "cluster") if low == high else f"{low} to {high} clusters"


def verdict_box(judged: Verdict) -> str:
    """Return the verdict and its reasons."""
    reasons = "".join(f"<li>{html.escape(reason)}</li>" for reason in judged.reasons)
    return (
        f'<section class="verdict {judged.level}"><strong>'
        f"{html.escape(judged.headline)}</strong><ul>{reasons}</ul></section>\n"
    )


def short_order(names: Sequence[str], most: int = _ITEMS_SHOWN) -> str:
    """Return the beginning of an order in one line."""
    return " > ".join(names[:most]) + (" > …" if len(names) > most else "")


def wants(findings: Findings) -> list[str]:
    """Return the top of the consensus order of each cluster of rankings."""
    return [short_order(p.consensus, _ITEMS_IN_ANSWERS) for p in findings.profiles]


def groups(findings: Findings) -> str:
    """Return the section with a card for each cluster of rankings."""
    if isinstance(findings.profiles[0], WeightsProfile):
        order = (
            "The items of each cluster, in the order of their weights, which are the probabilities "
            "to be named first. Agreement is 0% if all weights are equal, and 100% if all members "
            "name the same item first."
        )
    else:
        order = (
            "The consensus order of each cluster, best first (cumulative-probability consensus). "
            "Agreement is 0% if its members rank at random, and 100% if all rank alike."
        )
    sizes = (
        "Sizes are means over the draws, and the intervals are over those that have the cluster."
    )
    has_files = "command" in findings.details
    file = (
        " The cluster of each ranking, and how surely it belongs to it, is in assignments.csv."
        if has_files
        else ""
    )
    cards = (_card(i, p, findings.total) for i, p in enumerate(findings.profiles))
    return section("Who is in the groups", f"{order} {sizes}{file}") + "".join(cards)


def _card(i: int, p: Any, total: int) -> str:
    share = p.mean_size / total
    shown = p.consensus[:_ITEMS_SHOWN]
    items = "".join(f"<li><b>{j}</b>{html.escape(x)}</li>" for j, x in enumerate(shown, 1))
    if len(p.consensus) > len(shown):
        items += f"<li>and {len(p.consensus) - len(shown)} more</li>"
    low, high = p.size_interval
    found = "" if p.presence > 0.995 else f"<span>found in {p.presence:.0%} of the draws</span>"
    return (
        f'<section class="group"><header><h3>Cluster {i + 1}</h3>'
        f"<span>{p.mean_size:,.0f} rankings, {share:.1%}</span>"
        f'<span class="soft">90% interval {low:,.0f} to {high:,.0f}</span>'
        f'<span class="soft">agreement {p.agreement:.0%}</span>{found}</header>'
        f'<div class="track" role="img" aria-label="{share:.1%} of the rankings">'
        f'<div class="bar" style="width:{100 * share:.2f}%;'
        f'background:{plots.COLORS[i % len(plots.COLORS)]}"></div></div>'
        f'<ol class="order">{items}</ol></section>\n'
    )


def judges_of_groups(findings: Findings, about: Mapping[str, Sequence[str]]) -> str:
    """Return the section that says who is in the groups, by each column about the judges.

    :param about: N texts by column, in the order of the labels.
    """
    profiles = findings.profiles
    if not about or len(profiles) < 2:
        return ""
    shown = profiles[:_CLUSTERS_IN_TABLE]
    group = np.full(findings.total, len(shown))  # the others
    for k, profile in enumerate(shown):
        group[profile.members] = k
    names = [f"cluster {k}" for k in range(1, len(shown) + 1)] + ["all"]
    sizes = [len(p.members) for p in shown] + [findings.total]
    tables = []
    for column, texts in about.items():
        found = by_group(column, texts, group, len(shown))
        spec = ".4g" if found.is_number else ".0%"
        rows = (
            (name, f"{size:,}", *(number(x, spec) for x in values))
            for name, size, values in zip(names, sizes, found.values, strict=True)
        )
        head = ("", "judges", *found.headings)
        tables.append(f"<h3>{html.escape(column)}</h3>\n{table(head, rows)}")
    text = "Shares of the judges of each group, and of all judges; of numbers, the quartiles."
    return section("Who the judges are", text) + "".join(tables)


def table_of_clusters(findings: Findings, columns: Mapping[str, Sequence[str]]) -> str:
    """Return the section with the table of the clusters of points.

    :param columns: further columns: their headings, and a text for each cluster.
    """
    shown = findings.profiles[:_CLUSTERS_IN_TABLE]
    rows = [
        (
            f"{i + 1}",
            f"{p.mean_size:,.1f}",
            f"{p.size_interval[0]:,.0f}–{p.size_interval[1]:,.0f}",
            f"{p.mean_size / findings.total:.1%}",
            f"{p.presence:.0%}",
            f"{p.cohesion:.0%}",
            *(html.escape(texts[i]) for texts in columns.values()),
        )
        for i, p in enumerate(shown)
    ]
    head = ("cluster", "size", "90% interval", "share", "presence", "cohesion", *columns)
    text = (
        "Sizes are means over the draws. The interval is over those that have the cluster, and "
        "presence is their share. Cohesion is the mean probability that two members of the "
        "cluster are together. The cluster of each point is in assignments.csv."
    )
    rest = not_shown(len(findings.profiles) - len(shown), "smaller cluster")
    return section("What the groups are", text) + table(head, rows) + rest


def table_of_weights(profiles: Sequence[Any], items: Sequence[str]) -> str:
    """Return the section with the weights of the items, as figures and as a table."""
    shown = profiles[:CLUSTERS_SHOWN]
    figures = (
        embedded_figure(
            plots.plot_weights(p, items, color=plots.COLORS[i % len(plots.COLORS)]),
            f"Cluster {i + 1}. The entropy of its weights is {p.entropy:.2f} of the largest "
            "possible."
            + (
                f" Weight of all unlisted items: {p.unseen_weight:.2g}."
                if p.unseen_interval
                else ""
            ),
        )
        for i, p in enumerate(shown)
    )
    total = sum(p.size for p in profiles)
    mean = sum(p.size / total * p.weights for p in profiles)
    heaviest = np.argsort(-mean, kind="stable")[:_ITEMS_IN_TABLE]
    rows = (
        [
            html.escape(items[k]),
            *(cell_with_interval(p.weights[k], p.weights_interval[k]) for p in shown),
        ]
        for k in heaviest
    )
    text = (
        "At each place, an item is chosen from those that are left with a probability proportional "
        "to its weight. Means and 90% intervals of the weights, for the largest clusters."
    )
    return (
        section("What each item weighs", text)
        + grid(figures)
        + not_shown(len(profiles) - len(shown), "smaller cluster")
        + table(["", *(f"cluster {i}" for i in range(1, len(shown) + 1))], rows)
        + not_shown(len(items) - len(heaviest), "item of lower weight")
    )


def concentrations(profiles: Sequence[Any]) -> str:
    """Return the section with the concentrations θ, as a figure and as a table."""
    stages = range(1, len(profiles[0].concentration) + 1)
    rows = (
        [
            f"cluster {i}",
            *map(cell_with_interval, p.concentration, p.concentration_interval),
        ]
        for i, p in enumerate(profiles, 1)
    )
    text = (
        "θ of stage j is how closely the j-th choice follows the consensus order of the items that "
        "are left. With θ = 0 the choice is random; otherwise each item is e<sup>θ</sup> times "
        "less likely than the one above it."
    )
    figure = plots.plot_concentration(profiles)
    return (
        section("How sharp each choice is", text)
        + embedded_figure(figure, "Mean θ by stage, with 90% intervals.")
        + table(["", *(f"stage {j}" for j in stages)], rows)
    )
