"""What a report says in words and tables: short answers, groups, judges, weights, θ.

Each function returns what a template of the same name in ``templates/sections`` shows, with the
numbers in words. Sentences that the screen has too are here, and those of the page alone are there.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from numpyro_rankings import plots, words
from numpyro_rankings.posterior.judges import by_group
from numpyro_rankings.posterior.point_estimates import ReferencePartition
from numpyro_rankings.report.blocs_in_words import BEFORE_EXPLAINED, NO_INTERVALS
from numpyro_rankings.report.findings import BEGUN_WITH, Findings
from numpyro_rankings.report.next_steps import Step, next_steps
from numpyro_rankings.report.overall import trust
from numpyro_rankings.report.page import Figure, Status, embedded_figure
from numpyro_rankings.words import number, plural

CLUSTERS_SHOWN = 6
_ITEMS_SHOWN = 12
_CURVES = 8  # groups whose concentrations are in the figure
_STAGES_ACROSS, _GROUPS_ACROSS = 9, 8  # columns of a table that a screen has room for
_ITEMS_IN_TABLE = 40
_CLUSTERS_IN_TABLE = 50
_PASSING_IN_TABLE = 10
_LEAST_REST = 0.005  # share of the rankings in no group that holds that is worth a line


class WithInterval(NamedTuple):
    """The cell of a mean and its interval."""

    mean: str
    low: str
    high: str


class Colored(NamedTuple):
    """The cell of a name, with the color that it has in figures."""

    text: str
    color: str


Row = Sequence[str | WithInterval | Colored]


class Answers(NamedTuple):
    """Short answers to the first questions.

    - **how_many** - groups there are.
    - **sizes** - of the largest groups that hold.
    - **groups** - what they are, in their order; none if that is not known.
    - **smaller** - number of groups that hold besides them.
    - **left** - what belongs to no group that holds; nothing if little does.
    - **trust** - whether they can be trusted: yes, partly or no.
    - **steps** - what to do next; none while the run goes on.
    - **files** - which table has the group of each ranking or point; nothing without files.
    - **begun_with** - command that began the run; nothing if **command** did.
    - **command** - that made the page; nothing if it is not known.
    - **versions** - of the software.
    """

    how_many: str
    sizes: Sequence[str]
    groups: Sequence[str]
    smaller: int
    left: str
    trust: str
    steps: Sequence[Step]
    files: str
    begun_with: str
    command: str
    versions: str


def short_answers(
    findings: Findings, answers: Sequence[str], status: Status | None = None
) -> Answers:
    """Return the short answers.

    :param answers: what each of the groups is.
    :param status: as for :func:`~numpyro_rankings.report.write_report`.
    """
    shown = findings.held[:CLUSTERS_SHOWN]
    return Answers(
        how_many(findings),
        [size_in_words(p, findings) for p in shown],
        answers[: len(shown)],
        len(findings.held) - len(shown),
        left_in_words(findings),
        trust(findings),
        next_steps(findings, status),
        files_in_words(findings),
        findings.details.get(BEGUN_WITH, ""),
        findings.details.get("command", ""),
        findings.details.get("versions", ""),
    )


def how_many(findings: Findings) -> str:
    """Say how many groups hold, how many were asked for or are in a draw, and why without blocs."""
    return f"{_how_many(findings)} {findings.no_blocs}".strip()


def _how_many(findings: Findings) -> str:
    held = len(findings.held)
    if findings.reference is None:
        return "One, of everybody: a single population was fitted."
    text = (
        f"{plural(held, 'group')} {'holds' if held == 1 else 'hold'}, that is, "
        f"{'it' if held == 1 else 'each'} is found again in more than half of the draws."
    )
    if not held:
        text = "No group holds: none is found again in more than half of the draws."
    if findings.passing:
        text += f" {'All others' if held else 'They'} come and go from draw to draw."
    if findings.num_components is not None:
        return f"{text} You asked for {plural(findings.num_components, 'group')}."
    numbers = np.asarray(findings.described["posterior"]["num_clusters"]).ravel()
    low, high = np.quantile(numbers, (0.05, 0.95), method="inverted_cdf").astype(int)
    if low == high == held and not findings.passing:
        return text
    if not findings.with_intervals:
        mean = findings.table["mean"].get("num_clusters", numbers.mean())
        return f"{text} A draw has about {mean:.0f} groups in all."
    return f"{text} A draw has {groups_in_words(low, high)} in all (90% interval)."


def size_in_words(profile: Any, findings: Findings) -> str:
    """Say how large a group is, with the interval of its size."""
    of_all = f"{words.size(profile.mean_size)}, {words.share(profile.mean_size / findings.total)}"
    if findings.reference is None or not findings.with_intervals:
        return f"{of_all} of all"
    return f"{of_all} of all (90% interval {words.interval(profile.interval_over_all)})"


def no_intervals(findings: Findings) -> str:
    """Say why sizes have no intervals; nothing if they have, or if it is said of blocs before."""
    if findings.with_intervals or findings.reference is None or not findings.held:
        return ""
    return "" if findings.blocs_first else NO_INTERVALS


def left_in_words(findings: Findings) -> str:
    """Say what is left besides the groups that hold; nothing if nothing is."""
    if findings.left < _LEAST_REST:
        return ""
    return f"{words.share(findings.left)} belong to no group that holds"


def files_in_words(findings: Findings) -> str:
    """Say which table has the group of each ranking or point; nothing if no tables are written."""
    if "command" not in findings.details or findings.reference is None:
        return ""
    of_blocs = "" if findings.blocs is None else "bloc and "
    verb = "are" if of_blocs else "is"
    return f"The {of_blocs}group of each {findings.noun} {verb} in assignments.csv."


def groups_in_words(low: int, high: int) -> str:
    """Return a range of numbers of groups in words."""
    return plural(low, "group") if low == high else f"{low} to {high} groups"


def reference_in_words(reference: ReferencePartition) -> str:
    """Say which partition the groups come from, and how far the draws are from it."""
    worst = math.log(len(reference.labels))
    text = (
        f"The groups shown, {len(np.unique(reference.labels))} in all, are those of "
        f"{reference.in_words}. {reference.caution} They differ "
        f"from those of the draws by {reference.expected_loss:.3g} on average: 0 means that all "
        f"draws have the same groups, and {worst:.3g} is the worst possible."
    )
    return " ".join(text.split())


def short_order(names: Sequence[str], most: int = _ITEMS_SHOWN) -> str:
    """Return the beginning of an order in one line."""
    return " > ".join(names[:most]) + (" > …" if len(names) > most else "")


def wants(findings: Findings) -> list[str]:
    """Say what the members of each group of rankings want."""
    return [words.order_in_words(p.levels, p.clear_pairs) for p in findings.profiles]


class Card(NamedTuple):
    """A group of rankings that holds.

    - **size** - in words, with its interval.
    - **share** - of all rankings.
    - **width**, **color** - of its bar, which is as long as its share, in percent.
    - **found**, **together** - in what share of the draws; nothing if it needs no words.
    - **agreement** - of its members.
    - **wants** - what they want.
    - **judges** - what stands out in each column about them.
    - **order** - the first items of its consensus.
    - **more** - number of the other items; nothing if there are none.
    """

    size: str
    share: str
    width: str
    color: str
    found: str
    together: str
    agreement: str
    wants: str
    judges: Sequence[str]
    order: Sequence[str]
    more: str


class TableOfGroups(NamedTuple):
    """A table of groups.

    - **headings** - of what it says of groups of any kind, the first columns of its **rows**.
    - **not_shown** - number of groups for which it has no room.
    """

    headings: Sequence[str]
    rows: Sequence[Row]
    not_shown: int


class Groups(NamedTuple):
    """The groups of rankings that hold.

    - **cards** - of them; none if there is a table.
    - **table** - of them, where blocs come first; None if there are cards.
    - **left** - what belongs to none, as in :class:`Answers`.
    - **with_sizes** - whether there are sizes to explain, and **with_together** how surely the
      members belong to the groups.
    - **no_intervals** - why the sizes have none; nothing if they have.
    - **before_explained** - what is said of orders.
      Both are nothing if the section about blocs, which comes first, says it.
    - **by_weight** - whether the items have weights.
    - **with_files** - whether tables are written beside the page.
    """

    cards: Sequence[Card]
    table: TableOfGroups | None
    left: str
    with_sizes: bool
    with_together: bool
    no_intervals: str
    before_explained: str
    by_weight: bool
    with_files: bool


def groups(findings: Findings, about: Mapping[str, Sequence[str]] | None = None) -> Groups:
    """Return the groups of rankings that hold.

    :param about: as for :func:`judges_of_groups`.
    """
    held = findings.held
    if findings.blocs_first:
        cards, table = [], _table_of_rankings(findings, 0, len(held))
    else:
        judges = _judges_in_words(findings, about or {})
        cards, table = [_card(i, p, findings, judges[i]) for i, p in enumerate(held)], None
    return Groups(
        cards,
        table,
        left_in_words(findings),
        bool(held) and findings.reference is not None,
        findings.membership is not None,
        no_intervals(findings),
        "" if findings.blocs_first else BEFORE_EXPLAINED,
        findings.has_weights,
        "command" in findings.details,
    )


def _card(i: int, p: Any, findings: Findings, judges: Sequence[str]) -> Card:
    share = p.mean_size / findings.total
    together = findings.cohesion(p) if len(findings.profiles) > 1 else None
    rest = len(p.consensus) - _ITEMS_SHOWN
    return Card(
        size_in_words(p, findings),
        words.share(share),
        f"{100 * share:.2f}",
        plots.COLORS[i % len(plots.COLORS)],
        words.percent(p.presence) if p.presence < 1 else "",
        "" if together is None else words.percent(together),
        words.percent(p.agreement),
        words.order_in_words(p.levels, p.clear_pairs),
        judges,
        p.consensus[:_ITEMS_SHOWN],
        f"{rest:,}" if rest > 0 else "",
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


def passing_groups(findings: Findings) -> TableOfGroups | None:
    """Return the groups of rankings that come and go; None if there are none."""
    first, last = len(findings.held), len(findings.profiles)
    return _table_of_rankings(findings, first, last) if first < last else None


def _table_of_rankings(findings: Findings, first: int, last: int) -> TableOfGroups:
    shown = findings.profiles[first:last]
    texts = (
        (words.percent(p.agreement), words.order_in_words(p.levels, p.clear_pairs)) for p in shown
    )
    return _table(findings, texts, first, last)


def _table(findings: Findings, texts: Any, first: int, last: int) -> TableOfGroups:
    """Return the table of some groups.

    :param texts: what it says of each of them besides what it says of groups of any kind.
    """
    most = _PASSING_IN_TABLE if first == len(findings.held) else _CLUSTERS_IN_TABLE
    shown = range(first, min(last, first + most))
    rows = [
        (*_cells(i + 1, findings.profiles[i], findings), *more)
        for i, more in zip(shown, texts, strict=False)
    ]
    headings = ["group", "size", "90% interval", "share", "found in", "together"]
    if not findings.with_intervals:
        headings.remove("90% interval")
    return TableOfGroups(headings, rows, last - first - len(shown))


def _cells(number: int, p: Any, findings: Findings) -> tuple[str, ...]:
    """Return what the tables say of a group of any kind."""
    together = findings.cohesion(p)
    return (
        str(number),
        words.size(p.mean_size),
        *([words.interval(p.interval_over_all)] if findings.with_intervals else []),
        words.share(p.mean_size / findings.total),
        words.percent(p.presence),
        "" if together is None else words.percent(together),
    )


class Judges(NamedTuple):
    """Who is in the groups by a column about the judges: its name, and a table."""

    name: str
    headings: Sequence[str]
    rows: Sequence[Row]


def judges_of_groups(findings: Findings, about: Mapping[str, Sequence[str]]) -> list[Judges]:
    """Say who is in the groups, by each column about the judges.

    :param about: N texts by column, in the order of the labels.
    """
    profiles = findings.profiles
    if len(profiles) < 2:
        return []
    shown = (findings.held or profiles)[:_CLUSTERS_IN_TABLE]
    names = [f"group {k}" for k in range(1, len(shown) + 1)]
    return judges_in_tables(about, _group_of_judges(findings, shown), names)


def judges_in_tables(
    about: Mapping[str, Sequence[str]], labels: np.ndarray, names: Sequence[str]
) -> list[Judges]:
    """Say who is in each part of the judges, by each column about them.

    :param labels: (N,) the part of each judge, from 0; those of none have a larger number.
    :param names: of the parts.
    """
    tables = []
    for column, texts in about.items():
        found = by_group(column, texts, labels, len(names))
        spec = ".4g" if found.is_number else ".0%"
        rows = [
            (name, *(number(x, spec) for x in values))
            for name, values in zip([*names, "all"], found.values, strict=True)
        ]
        tables.append(Judges(column, list(found.headings), rows))
    return tables


class Points(NamedTuple):
    """The groups of points that hold.

    - **columns** - headings of what the table says of points of this kind alone.
    - **headings**, **rows**, **not_shown** - as in :class:`TableOfGroups`.
    - **left**, **with_together**, **no_intervals** - as in :class:`Groups`.
    """

    columns: Sequence[str]
    headings: Sequence[str]
    rows: Sequence[Row]
    not_shown: int
    left: str
    with_together: bool
    no_intervals: str


def table_of_points(findings: Findings, columns: Mapping[str, Sequence[str]]) -> Points:
    """Return the groups of points that hold.

    :param columns: further columns: their headings, and a text for each cluster.
    """
    held = _table(findings, zip(*columns.values(), strict=True), 0, len(findings.held))
    known = findings.membership is not None
    left = left_in_words(findings)
    return Points(list(columns), *held, left, known, no_intervals(findings))


def passing_points(
    findings: Findings, columns: Mapping[str, Sequence[str]]
) -> TableOfGroups | None:
    """Return the groups of points that come and go; None if there are none."""
    first, last = len(findings.held), len(findings.profiles)
    texts = zip(*(x[first:] for x in columns.values()), strict=True)
    return _table(findings, texts, first, last) if first < last else None


class WeightsOfGroup(NamedTuple):
    """The weights of a group: a figure, its entropy, and the weight of all unlisted items."""

    image: Figure
    entropy: str
    unseen: str


class Weights(NamedTuple):
    """What each item weighs.

    - **groups** - the largest ones, and **groups_left** how many others hold.
    - **headings**, **rows** - of the table, whose items are the heaviest ones; **items_left** is
      the number of the others.
    - **with_intervals** - whether there are intervals.
    """

    groups: Sequence[WeightsOfGroup]
    groups_left: int
    headings: Sequence[str]
    rows: Sequence[Row]
    items_left: int
    with_intervals: bool


def table_of_weights(
    profiles: Sequence[Any], items: Sequence[str], with_intervals: bool = True
) -> Weights | None:
    """Return the weights of the items.

    :param profiles: of the groups that hold.
    :param with_intervals: whether the draws suffice for intervals.
    """
    if not profiles:
        return None
    shown = profiles[:CLUSTERS_SHOWN]
    of_groups = [
        WeightsOfGroup(
            embedded_figure(
                plots.plot_weights(
                    p,
                    items,
                    color=plots.COLORS[i % len(plots.COLORS)],
                    with_intervals=with_intervals,
                )
            ),
            words.percent(p.entropy),
            f"{p.unseen_weight:.2g}" if p.unseen_interval else "",
        )
        for i, p in enumerate(shown)
    ]
    total = sum(p.mean_size for p in profiles)
    mean = sum(p.mean_size / total * p.weights for p in profiles)
    heaviest = np.argsort(-mean, kind="stable")[:_ITEMS_IN_TABLE]
    rows = [
        (
            items[k],
            *(_cell(p.weights[k], p.weights_interval[k], with_intervals) for p in shown),
        )
        for k in heaviest
    ]
    return Weights(
        of_groups,
        len(profiles) - len(shown),
        [f"group {i}" for i in range(1, len(shown) + 1)],
        rows,
        len(items) - len(heaviest),
        with_intervals,
    )


def _cell(mean: float, interval: Sequence[float], with_interval: bool) -> str | WithInterval:
    low, high = interval
    if not with_interval:
        return f"{mean:.3f}"
    return WithInterval(f"{mean:.3f}", f"{low:.3f}", f"{high:.3f}")


class Concentrations(NamedTuple):
    """The concentrations θ: a figure, and tables by group and stage.

    - **tables** - headings and rows of each: one with a row for each group; or if there are many
      stages, some with a row for each stage and a column for each of a few groups.
    - **in_figure** - number of groups in the figure, and **not_in_figure** of the others.
    - **with_intervals** - whether there are intervals.
    """

    image: Figure
    tables: Sequence[tuple[Sequence[str], Sequence[Row]]]
    in_figure: int
    not_in_figure: int
    with_intervals: bool


def concentrations(profiles: Sequence[Any], with_intervals: bool = True) -> Concentrations | None:
    """Return the concentrations θ.

    :param profiles: of the groups that hold.
    :param with_intervals: whether the draws suffice for intervals.
    """
    if not profiles:
        return None
    names = [f"group {i}" for i in range(1, len(profiles) + 1)]
    stages = [f"stage {j}" for j in range(1, len(profiles[0].concentration) + 1)]
    cells = [
        [
            _cell(mean, interval, with_intervals)
            for mean, interval in zip(p.concentration, p.concentration_interval, strict=True)
        ]
        for p in profiles
    ]
    tables: list[tuple[Sequence[str], Sequence[Row]]] = []
    if len(stages) <= _STAGES_ACROSS:
        named = zip(names, cells, strict=True)
        tables.append((stages, [(name, *of_group) for name, of_group in named]))
    else:
        for first in range(0, len(names), _GROUPS_ACROSS):
            some = slice(first, first + _GROUPS_ACROSS)
            by_stage = zip(stages, zip(*cells[some], strict=True), strict=True)
            tables.append((names[some], [(name, *of_stage) for name, of_stage in by_stage]))
    image = embedded_figure(
        plots.plot_concentration(profiles, _CURVES, with_intervals=with_intervals)
    )
    shown = min(len(profiles), _CURVES)
    return Concentrations(image, tables, shown, len(profiles) - shown, with_intervals)
