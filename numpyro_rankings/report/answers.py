"""Sections of a report in words and tables: short answers, verdict, groups, weights, θ."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from numpyro_rankings import plots, words
from numpyro_rankings.diagnostics import Verdict
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
_ITEMS_IN_TABLE = 40
_CLUSTERS_IN_TABLE = 50
_LEAST_REST = 0.005  # share of the rankings in no group that holds that is worth a line


def short_answers(findings: Findings, question: str, answers: Sequence[str]) -> str:
    """Return the box at the top of the page, with short answers to the first questions.

    :param question: what the groups are, as a question.
    :param answers: its answer for each of them.
    """
    held, details = findings.held, findings.details
    shown = held[:CLUSTERS_SHOWN]
    rest = len(held) - len(shown)
    more = [f"and {plural(rest, 'smaller one')}, see below"] if rest else []
    who = [f"group {i}: {size_in_words(p, findings)}" for i, p in enumerate(shown, 1)]
    are = [f"group {i}: {text}" for i, text in enumerate(answers[: len(shown)], 1)]
    box = {
        "How many groups?": [how_many(findings)],
        "Who is in them?": [*who, *more, *left_in_words(findings)],
        question: [*are, *more],
        "Can I trust it?": [findings.verdict.headline],
    }
    rows = "".join(
        f"<dt>{name}</dt><dd>{'<br>'.join(html.escape(line) for line in lines)}</dd>"
        for name, lines in box.items()
        if lines
    )
    if "command" in details:
        versions = html.escape(details.get("versions", ""))
        rows += (
            f"<dt>How do I repeat it?</dt><dd><code>{html.escape(details['command'])}</code>"
            f'<br><span class="soft">{versions}</span></dd>'
        )
    return f'<section class="answers"><dl>{rows}</dl></section>\n'


def how_many(findings: Findings) -> str:
    """Say how many groups hold, and how many were asked for or are in a draw."""
    held, passing = len(findings.held), len(findings.passing)
    if findings.reference is None:
        return "One: a single population was fitted."
    text = (
        f"{plural(held, 'group')} {'holds' if held == 1 else 'hold'}: found again in more than "
        "half of the draws."
    )
    if not held:
        text = "No group holds: none is found again in more than half of the draws."
    if passing:
        comes = "comes and goes" if passing == 1 else "come and go"
        comes = f"more {comes}" if held else comes
        text += f" {passing:,} {comes} from draw to draw."
    if findings.num_components is not None:
        return f"{text} You asked for {plural(findings.num_components, 'group')}."
    numbers = np.asarray(findings.described["posterior"]["num_clusters"]).ravel()
    low, high = np.quantile(numbers, (0.05, 0.95), method="inverted_cdf").astype(int)
    if low == high == held and not passing:
        return text
    return f"{text} A draw has {groups_in_words(low, high)} (90% interval)."


def size_in_words(profile: Any, findings: Findings) -> str:
    """Say how large a group is, with the interval of its size."""
    of_all = f"{words.size(profile.mean_size)}, {words.share(profile.mean_size / findings.total)}"
    if findings.reference is None:
        return f"{of_all} of all"
    return f"{of_all} of all (90% interval {words.interval(profile.interval_over_all)})"


def left_in_words(findings: Findings) -> list[str]:
    """Say what is left besides the groups that hold, in one line; none if nothing is."""
    if findings.left < _LEAST_REST:
        return []
    return [f"{words.share(findings.left)} belong to no group that holds"]


def groups_in_words(low: int, high: int) -> str:
    """Return a range of numbers of groups in words."""
    return plural(low, "group") if low == high else f"{low} to {high} groups"


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
    """Say what the members of each group of rankings want."""
    return [words.order_in_words(p.levels) for p in findings.profiles]


def groups(findings: Findings, about: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return the section with a card for each group of rankings that holds.

    :param about: as for :func:`judges_of_groups`.
    """
    held = findings.held
    text = f"{_explained(findings)} " if held and findings.reference is not None else ""
    is_weighted = isinstance(findings.profiles[0], WeightsProfile)
    text += _WEIGHTS_EXPLAINED if is_weighted else _ORDERS_EXPLAINED
    if "command" in findings.details:
        text += (
            " The group of each ranking, and how surely it belongs there, is in assignments.csv."
        )
    judges = _judges_in_words(findings, about or {})
    cards = (_card(i, p, findings, judges[i]) for i, p in enumerate(held))
    rest = "".join(f"<p>{_sentence(line)}.</p>\n" for line in left_in_words(findings))
    return section("Who is in the groups", text) + "".join(cards) + rest


def _explained(findings: Findings) -> str:
    """Say what the sizes of groups are, and how surely their members belong."""
    text = (
        "These groups hold: each is found again in more than half of the draws. Its size is a mean "
        "over all draws, where a draw without the group counts as 0."
    )
    if findings.membership is not None:
        text += (
            " <em>Together</em> says how surely its members belong to it: in what share of the "
            "draws two of them are in one group."
        )
    return text


_ORDERS_EXPLAINED = (
    "<em>A before B</em> is certain: it is so in at least 95% of the draws. Items that are "
    "<em>close</em> may be in any order; they are shown in the order that is most likely (the "
    "cumulative-probability consensus), best first. <em>Agreement</em> says how alike the members "
    "of the group rank: 0% if at random, 100% if all alike."
)
_WEIGHTS_EXPLAINED = (
    "The weight of an item is the probability to be named first. <em>A before B</em> is certain: "
    "the weight of A is larger in at least 95% of the draws. Of items that are <em>close</em> "
    "either may have the larger one. <em>Agreement</em> says how alike the members of the group "
    "choose: 0% if all weights are equal, 100% if all name the same item first."
)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _card(i: int, p: Any, findings: Findings, judges: Sequence[str]) -> str:
    share = p.mean_size / findings.total
    shown = p.consensus[:_ITEMS_SHOWN]
    items = "".join(f"<li><b>{j}</b>{html.escape(x)}</li>" for j, x in enumerate(shown, 1))
    if len(p.consensus) > len(shown):
        items += f"<li>and {len(p.consensus) - len(shown):,} more</li>"
    facts = [f"agreement {words.percent(p.agreement)}"]
    together = findings.together(p)
    if together is not None and len(findings.profiles) > 1:
        facts.insert(0, f"together in {words.percent(together)} of the draws")
    if p.presence < 1:
        facts.insert(0, f"found in {words.percent(p.presence)} of the draws")
    soft = "".join(f'<span class="soft">{fact}</span>' for fact in facts)
    who = "".join(f'<p class="soft">{html.escape(line)}</p>' for line in judges)
    return (
        f'<section class="group"><header><h3>Group {i + 1}</h3>'
        f"<span>{size_in_words(p, findings)}</span>{soft}</header>"
        f'<div class="track" role="img" aria-label="{words.share(share)} of the rankings">'
        f'<div class="bar" style="width:{100 * share:.2f}%;'
        f'background:{plots.COLORS[i % len(plots.COLORS)]}"></div></div>'
        f'<p class="wants">{html.escape(words.order_in_words(p.levels))}</p>{who}'
        f'<ol class="order">{items}</ol></section>\n'
    )


def _judges_in_words(findings: Findings, about: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Say of each group that holds, and of each column about the judges, what stands out."""
    held = findings.held
    lines: list[list[str]] = [[] for _ in held]
    if len(findings.profiles) < 2:
        return lines
    for column, texts in about.items():
        found = by_group(column, texts, _group_of_judges(findings, held), len(held))
        *of_groups, of_all = found.values
        for line, values in zip(lines, of_groups, strict=True):
            if np.isnan(values).all():
                continue
            if found.is_number:
                line.append(f"{column}: median {values[0]:.4g} (of all judges {of_all[0]:.4g})")
                continue
            most = int(np.argmax(values - of_all))
            line.append(
                f"{column}: {found.headings[most]} {words.percent(values[most])} (of all judges "
                f"{words.percent(of_all[most])})"
            )
    return lines


def _group_of_judges(findings: Findings, profiles: Sequence[Any]) -> np.ndarray:
    """Return the group of each judge, from 0; those of other groups have the last number."""
    group = np.full(findings.total, len(profiles))
    for k, profile in enumerate(profiles):
        group[profile.members] = k
    return group


def passing_groups(findings: Findings) -> str:
    """Return the section with the groups of rankings that come and go, as a table."""
    first = len(findings.held) + 1
    shown = findings.passing[:_CLUSTERS_IN_TABLE]
    if not shown:
        return ""
    rows = (
        (*_cells(i, p, findings), words.percent(p.agreement), html.escape(_words_of(p)))
        for i, p in enumerate(shown, first)
    )
    rest = not_shown(len(findings.passing) - len(shown), "smaller group")
    return (
        section("Groups that come and go", _PASSING_EXPLAINED)
        + table((*_HEADINGS, "agreement", "what they want"), rows)
        + rest
    )


_HEADINGS = ("group", "size", "90% interval", "share", "found in", "together")
_PASSING_EXPLAINED = (
    "These groups are found again in half of the draws or less. Do not rely on them: with a little "
    "more or less data, or in another run, they may not be there."
)


def _cells(number: int, p: Any, findings: Findings) -> tuple[str, ...]:
    """Return what the tables say of a group of any kind."""
    together = findings.together(p)
    return (
        str(number),
        words.size(p.mean_size),
        words.interval(p.interval_over_all),
        words.share(p.mean_size / findings.total),
        words.percent(p.presence),
        "" if together is None else words.percent(together),
    )


def _words_of(p: Any) -> str:
    return words.order_in_words(p.levels)


def judges_of_groups(findings: Findings, about: Mapping[str, Sequence[str]]) -> str:
    """Return the section that says who is in the groups, by each column about the judges.

    :param about: N texts by column, in the order of the labels.
    """
    profiles = findings.profiles
    if not about or len(profiles) < 2:
        return ""
    shown = (findings.held or profiles)[:_CLUSTERS_IN_TABLE]
    group = _group_of_judges(findings, shown)
    names = [f"group {k}" for k in range(1, len(shown) + 1)] + ["all"]
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


def table_of_points(findings: Findings, columns: Mapping[str, Sequence[str]]) -> str:
    """Return the section with the table of the groups of points that hold.

    :param columns: further columns: their headings, and a text for each cluster.
    """
    text = f"{_explained(findings)} The group of each point is in assignments.csv."
    rest = "".join(f"<p>{_sentence(line)}.</p>\n" for line in left_in_words(findings))
    rows = _rows_of_points(findings, columns, 0, len(findings.held))
    return section("What the groups are", text) + rows + rest


def passing_points(findings: Findings, columns: Mapping[str, Sequence[str]]) -> str:
    """Return the section with the groups of points that come and go."""
    if not findings.passing:
        return ""
    first, last = len(findings.held), len(findings.profiles)
    rows = _rows_of_points(findings, columns, first, last)
    return section("Groups that come and go", _PASSING_EXPLAINED) + rows


def _rows_of_points(
    findings: Findings, columns: Mapping[str, Sequence[str]], first: int, last: int
) -> str:
    shown = range(first, min(last, first + _CLUSTERS_IN_TABLE))
    rows = [
        (
            *_cells(i + 1, findings.profiles[i], findings),
            *(html.escape(texts[i]) for texts in columns.values()),
        )
        for i in shown
    ]
    rest = not_shown(last - first - len(shown), "smaller group")
    return (table((*_HEADINGS, *columns), rows) if rows else "") + rest


def table_of_weights(profiles: Sequence[Any], items: Sequence[str]) -> str:
    """Return the section with the weights of the items, as figures and as a table.

    :param profiles: of the groups that hold.
    """
    if not profiles:
        return ""
    shown = profiles[:CLUSTERS_SHOWN]
    figures = (
        embedded_figure(
            plots.plot_weights(p, items, color=plots.COLORS[i % len(plots.COLORS)]),
            f"Group {i + 1}. The entropy of its weights is {words.percent(p.entropy)} of the "
            "largest possible, which equal weights have."
            + (
                f" Weight of all unlisted items: {p.unseen_weight:.2g}."
                if p.unseen_interval
                else ""
            ),
        )
        for i, p in enumerate(shown)
    )
    total = sum(p.mean_size for p in profiles)
    mean = sum(p.mean_size / total * p.weights for p in profiles)
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
        "to its weight. Means and 90% intervals of the weights, for the largest groups."
    )
    return (
        section("What each item weighs", text)
        + grid(figures)
        + not_shown(len(profiles) - len(shown), "smaller group")
        + table(["", *(f"group {i}" for i in range(1, len(shown) + 1))], rows)
        + not_shown(len(items) - len(heaviest), "item of lower weight")
    )


def concentrations(profiles: Sequence[Any]) -> str:
    """Return the section with the concentrations θ, as a figure and as a table.

    :param profiles: of the groups that hold.
    """
    if not profiles:
        return ""
    stages = range(1, len(profiles[0].concentration) + 1)
    rows = (
        [
            f"group {i}",
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
