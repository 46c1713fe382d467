"""What a report says in words and tables: short answers, groups, judges, weights, θ.

Each function returns what a template of the same name in ``templates/sections`` shows, with the
numbers in words. Sentences that the screen has too are here, and those of the page alone are there.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numpyro_rankings import plots, words
from numpyro_rankings.posterior.judges import by_group
from numpyro_rankings.posterior.point_estimates import ReferencePartition
from numpyro_rankings.report.blocs_in_words import BEFORE_EXPLAINED, NO_INTERVALS, NO_ORDER_IN_WORDS
from numpyro_rankings.report.findings import JUDGES, Findings
from numpyro_rankings.report.judgements import lacks_order
from numpyro_rankings.report.next_steps import Step, next_steps
from numpyro_rankings.report.overall import trust
from numpyro_rankings.report.page import Figure, Status, embedded_figure, sentence
from numpyro_rankings.report.path_in_words import path_in_words
from numpyro_rankings.words import number, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
Columns = Mapping[str, Sequence[str]]  # texts by heading


def color_of(place: int) -> str:
    """Return the color of the group or bloc at a place, from 0."""
    return plots.COLORS[place % len(plots.COLORS)]


class Answers(NamedTuple):
    """Short answers to the first questions.

    The **sizes** are those of the largest groups that hold, **groups** is what these are, and
    **smaller** the number of the others that hold. There are no **steps** while the run goes on.
    """

    how_many: str
    sizes: Sequence[str]
    groups: Sequence[str]
    smaller: int
    left: str
    trust: str
    steps: Sequence[Step]
    files: str


def short_answers(
    findings: Findings, answers: Sequence[str], status: Status | None = None
) -> Answers:
    """Return the short answers, given what each of the groups is."""
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
    )


def how_many(findings: Findings) -> str:
    """Say how many groups hold, how many were asked for or are in a draw, and why without blocs."""
    return f"{_how_many(findings)} {findings.no_blocs}".strip()


def _how_many(findings: Findings) -> str:
    held = len(findings.held)
    if findings.reference is None and findings.path is not None:
        return f"{path_in_words(findings.path)} It has everybody in it."
    if findings.reference is None:
        return "One group with everybody in it, because a single population was fitted."
    text = (
        f"{plural(held, 'group')} {'holds' if held == 1 else 'hold'}, that is, "
        f"{'it' if held == 1 else 'each'} is found again in more than half of the draws."
    )
    if not held:
        text = "No group holds: none is found again in more than half of the draws."
    if findings.passing:
        text += f" {'All others' if held else 'They'} come and go from draw to draw."
    if findings.path is not None:
        return f"{path_in_words(findings.path)} {text}"
    if findings.num_components is not None:
        return f"{text} You asked for {plural(findings.num_components, 'group')}."
    numbers = np.asarray(findings.described["posterior"]["num_clusters"]).ravel()
    low, high = np.quantile(numbers, (0.05, 0.95), method="inverted_cdf").astype(int)
    if low == high == held and not findings.passing:
        return text
    if not findings.with_intervals:
        mean = findings.table["mean"].get("num_clusters", numbers.mean())
        return f"{text} A draw has about {mean:.0f} groups in all."
    number = plural(low, "group") if low == high else f"{low} to {high} groups"
    return f"{text} A draw has {number} in all (90% interval)."


def size_in_words(profile: Any, findings: Findings) -> str:
    """Say how large a group is, with the interval of its size."""
    of_all = f"{words.size(profile.mean_size)}, {words.share(profile.mean_size / findings.total)}"
    bounds = "".join(findings.interval_in_words(profile.interval_over_all))
    if findings.reference is None or not bounds:
        return f"{of_all} of all"
    return f"{of_all} of all (90% interval {bounds})"


def no_intervals(findings: Findings) -> str:
    """Say why sizes have no intervals; nothing if they have, or if it is said of blocs before."""
    if findings.with_intervals or findings.reference is None or not findings.held:
        return ""
    return "" if findings.blocs_first else NO_INTERVALS


def left_in_words(findings: Findings) -> str:
    """Say what is left besides the groups that hold; nothing if nothing is."""
    if findings.left < _LEAST_REST:
        return ""
    return f"{words.share(findings.left)} are in groups that do not hold"


def files_in_words(findings: Findings) -> str:
    """Say which table has the group of each ranking or point; nothing if no tables are written.

    If a sample was fitted, it says of how many, and who is in the table.
    """
    if JUDGES in findings.details:
        return f"{sentence(findings.details[JUDGES])}."
    if "command" not in findings.details or findings.reference is None:
        return ""
    of_blocs = "" if findings.blocs is None else "bloc and "
    are = "are" if of_blocs else "is"
    return f"The {of_blocs}group of each {findings.noun} {are} in assignments.csv."


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


def short_order(names: Sequence[str]) -> str:
    """Return the beginning of an order in one line."""
    return " > ".join([*names[:_ITEMS_SHOWN], *(["…"] if len(names) > _ITEMS_SHOWN else [])])


def wants(findings: Findings) -> list[str]:
    """Say what the members of each group of rankings want."""
    return [wants_of_group(p, findings) for p in findings.profiles]


def wants_of_group(profile: Any, findings: Findings) -> str:
    """Say what the members of a group of rankings want."""
    if lacks_order(profile, findings):
        return NO_ORDER_IN_WORDS
    return words.order_in_words(profile.levels, profile.clear_pairs)


class Card(NamedTuple):
    """A group of rankings that holds.

    - **share** - of all rankings; its bar is as long as this, and has the **color**.
    - **cohesion** - in what share of the draws its members are together; None if it is the only
      group, or if it is not known.
    - **judges** - what stands out in each column about them.
    - **order** - the first items of its consensus, and **more** number of the others.
    - **level** - which of these items are level; nothing if none are.
    """

    profile: Any
    size: str
    share: float
    color: str
    cohesion: float | None
    wants: str
    judges: Sequence[str]
    order: Sequence[str]
    more: int
    level: str


class TableOfGroups(NamedTuple):
    """A table of groups, and the number of those for which it has no room."""

    headings: Sequence[str]
    rows: Sequence[Row]
    not_shown: int


class Groups(NamedTuple):
    """The groups that hold: cards, or a table of points, or of rankings where blocs come first.

    It is said why sizes have **no_intervals**, and what orders mean, unless the section about blocs
    says it before.
    """

    cards: Sequence[Card]
    table: TableOfGroups | None
    no_intervals: str
    before_explained: str


def columns_of_rankings(findings: Findings) -> Columns:
    """Return what tables say of groups of rankings alone, a text for each group by heading."""
    agreement = [words.percent(p.agreement) for p in findings.profiles]
    return {"agreement": agreement, "what they want": wants(findings)}


def groups(findings: Findings, columns: Columns, about: Columns) -> Groups:
    """Return the groups that hold.

    :param columns: further columns of their table, with a text for each group.
    :param about: columns about the judges.
    """
    held, cards, table = findings.held, [], None
    if findings.blocs_first or findings.family is None:
        table = _table(findings, columns, range(len(held)), _CLUSTERS_IN_TABLE)
    else:
        judges = _judges_in_words(findings, about)
        cards = [_card(i, p, findings, judges[i]) for i, p in enumerate(held)]
    before_explained = "" if findings.blocs_first else BEFORE_EXPLAINED
    return Groups(cards, table, no_intervals(findings), before_explained)


def passing_groups(findings: Findings, columns: Columns) -> TableOfGroups | None:
    """Return the groups that come and go, with the columns of :func:`groups`; None if none do."""
    places = range(len(findings.held), len(findings.profiles))
    return _table(findings, columns, places, _PASSING_IN_TABLE) if places else None


def _card(i: int, p: Any, findings: Findings, judges: Sequence[str]) -> Card:
    return Card(
        p,
        size_in_words(p, findings),
        p.mean_size / findings.total,
        color_of(i),
        findings.cohesion(p) if len(findings.profiles) > 1 else None,
        wants_of_group(p, findings),
        judges,
        p.consensus[:_ITEMS_SHOWN],
        len(p.consensus) - _ITEMS_SHOWN,
        _level_items(p),
    )


def _level_items(p: Any) -> str:
    """Say which of the items of the consensus that are shown are level."""
    shown, sets = set(p.consensus[:_ITEMS_SHOWN]), list[list[str]]()
    for names in p.level:
        some = [name for name in names if name in shown]
        if len(some) > 1 and not (sets and set(some) <= set(sets[-1])):
            sets.append(some)
    return words.level_in_words(sets)


def _table(findings: Findings, columns: Columns, places: range, most: int) -> TableOfGroups:
    """Return the table of the groups at some places, the first ones if there are many."""
    headings = ["group", "size", "share", "90% interval", "found in", "together", *columns]
    if not findings.with_intervals:
        headings.remove("90% interval")
    rows = []
    for k in places[:most]:
        p = findings.profiles[k]
        cohesion = findings.cohesion(p)
        cells = (
            str(k + 1),
            words.size(p.mean_size),
            words.share(p.mean_size / findings.total),
            *findings.interval_in_words(p.interval_over_all),
            words.percent(p.presence),
            "" if cohesion is None else words.percent(cohesion),
        )
        rows.append((*cells, *(texts[k] for texts in columns.values())))
    return TableOfGroups(headings, rows, len(places) - len(rows))


def _judges_in_words(findings: Findings, about: Columns) -> list[list[str]]:
    """Say of each group that holds, and of each column about the judges, what stands out."""
    held = findings.held
    lines: list[list[str]] = [[] for _ in held]
    if len(findings.profiles) < 2:
        return lines
    for column, texts in about.items():
        table = by_group(column, texts, group_of_each(findings, held), len(held), findings.weights)
        *by_line, of_all = table.values
        for line, values in zip(lines, by_line, strict=True):
            if np.isnan(values).all():
                continue
            if table.is_number:
                line.append(f"{column}: median {values[0]:.4g} (of all judges {of_all[0]:.4g})")
                continue
            most = int(np.argmax(values - of_all))
            line.append(
                f"{column}: {table.headings[most]} {words.percent(values[most])} (of all judges "
                f"{words.percent(of_all[most])})"
            )
    return lines


def group_of_each(findings: Findings, profiles: Sequence[Any]) -> np.ndarray:
    """Return the group of each ranking or point, from 0; all others have the last number."""
    group = np.full(findings.total, len(profiles))
    for k, profile in enumerate(profiles):
        group[profile.members] = k
    return group


class Judges(NamedTuple):
    """Who is in the groups by a column about the judges: its name, and a table."""

    name: str
    headings: Sequence[str]
    rows: Sequence[Row]


def judges_of_groups(findings: Findings, about: Columns) -> list[Judges]:
    """Say who is in the groups, by each column about the judges, of N texts."""
    profiles = findings.profiles
    if len(profiles) < 2:
        return []
    shown = (findings.held or profiles)[:_CLUSTERS_IN_TABLE]
    names = numbered("group", len(shown))
    return judges_in_tables(about, group_of_each(findings, shown), names, findings.weights)


def judges_in_tables(
    about: Columns, labels: np.ndarray, names: Sequence[str], weights: np.ndarray | None = None
) -> list[Judges]:
    """Say who is in each part of the judges, by each column about them.

    :param labels: (N,) the part of each judge, from 0; those in no part have a larger number.
    :param weights: of the judges, as of :func:`by_group`.
    """
    tables = []
    for column, texts in about.items():
        table = by_group(column, texts, labels, len(names), weights)
        spec = ".4g" if table.is_number else ".0%"
        cells = [[number(x, spec) for x in values] for values in table.values]
        for texts, counts in zip(cells, () if table.counts is None else table.counts, strict=False):
            texts[:] = [f"{text} ({count:,})" for text, count in zip(texts, counts, strict=True)]
        rows = [(name, *texts) for name, texts in zip([*names, "all"], cells, strict=True)]
        tables.append(Judges(column, list(table.headings), rows))
    return tables


class Weights(NamedTuple):
    """What items weigh: a figure and the profile of each of the largest groups, and a table."""

    groups: Sequence[tuple[Figure, Any]]
    groups_left: int
    headings: Sequence[str]
    rows: Sequence[Row]
    items_left: int


def table_of_weights(findings: Findings) -> Weights | None:
    """Return the weights of the items in the groups that hold; None if none does."""
    held, shown = findings.held, findings.held[:CLUSTERS_SHOWN]
    if not held:
        return None
    items = held[0].items
    total = sum(p.mean_size for p in held)
    mean = sum(p.mean_size / total * p.weights for p in held)
    heaviest = np.argsort(-mean, kind="stable")[:_ITEMS_IN_TABLE]
    rows = [
        (items[k], *(_cell(findings, p.weights[k], p.weights_interval[k]) for p in shown))
        for k in heaviest
    ]
    return Weights(
        list(zip(figures_of_groups(plots.plot_weights, findings), shown, strict=True)),
        len(held) - len(shown),
        numbered("group", len(shown)),
        rows,
        len(items) - len(heaviest),
    )


def figures_of_groups(plot: "Callable[..., Axes]", findings: Findings) -> list[Figure]:
    """Return a figure of each of the largest groups that hold, in its color."""
    return [
        embedded_figure(plot(p, p.items, color=color_of(i), with_intervals=findings.with_intervals))
        for i, p in enumerate(findings.held[:CLUSTERS_SHOWN])
    ]


def numbered(noun: str, number: int) -> list[str]:
    """Return what groups or blocs are called, by their places: ``group 1``, ``group 2``, …."""
    return [f"{noun} {k}" for k in range(1, number + 1)]


def _cell(findings: Findings, mean: float, interval: Sequence[float]) -> str | WithInterval:
    if not findings.with_intervals:
        return f"{mean:.3f}"
    return WithInterval(*(f"{x:.3f}" for x in (mean, *interval)))


class Concentrations(NamedTuple):
    """The concentrations θ: a figure of some groups, and tables by group and stage."""

    image: Figure
    tables: Sequence[tuple[Sequence[str], Sequence[Row]]]
    in_figure: int
    not_in_figure: int


def concentrations(findings: Findings) -> Concentrations | None:
    """Return the concentrations θ in the groups that hold; None if none does."""
    held, shown = findings.held, findings.held[:_CURVES]
    if not held:
        return None
    image = plots.plot_concentration(held, _CURVES, with_intervals=findings.with_intervals)
    tables = _tables_of_concentrations(findings)
    return Concentrations(embedded_figure(image), tables, len(shown), len(held) - len(shown))


def _tables_of_concentrations(
    findings: Findings,
) -> list[tuple[Sequence[str], Sequence[Row]]]:
    """Return a table with a row for each group; of many stages some with a column for each."""
    held = findings.held
    names = numbered("group", len(held))
    stages = [f"stage {j}" for j in range(1, len(held[0].concentration) + 1)]
    cells = [
        [
            _cell(findings, mean, interval)
            for mean, interval in zip(p.concentration, p.concentration_interval, strict=True)
        ]
        for p in held
    ]
    if len(stages) <= _STAGES_ACROSS:
        return [(stages, [(name, *row) for name, row in zip(names, cells, strict=True)])]
    tables: list[tuple[Sequence[str], Sequence[Row]]] = []
    for first in range(0, len(names), _GROUPS_ACROSS):
        some = slice(first, first + _GROUPS_ACROSS)
        by_stage = zip(stages, zip(*cells[some], strict=True), strict=True)
        tables.append((names[some], [(stage, *row) for stage, row in by_stage]))
    return tables
