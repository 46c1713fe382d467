"""What a report shows of blocs: a table, what each number of them keeps, and how they split."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from numpyro_rankings import plots, words
from numpyro_rankings.posterior import BlocLevel, Blocs
from numpyro_rankings.posterior.diagnostics import Verdict
from numpyro_rankings.report import blocs_in_words as said
from numpyro_rankings.report.answers import Colored, Judges, Row, judges_in_tables
from numpyro_rankings.report.findings import Findings

_WIDTH, _FLOW, _BAR, _GAP, _TOP = 720.0, 220.0, 12.0, 8.0, 44.0  # pixels
_LABEL, _FIRST_LINE, _LINE, _LETTER = 18.0, 20.0, 15.0, 7.2  # of the words beside a bar; pixels
_LEAST_FLOW = 0.01  # share of all rankings that a band of the tree shows
_NAMES, _LINES = 4, 8  # at most, of what a bloc wants, beside it in the tree


class Kept(NamedTuple):
    """What a number of blocs keeps.

    - **number** - of blocs, and **is_chosen** whether the others on the page are these.
    - **kept** - in words.
    - **width** - of the bar, **low** of the interval and **spread** of it, in percent.
    """

    number: int
    is_chosen: bool
    kept: str
    width: str
    low: str
    spread: str


class Node(NamedTuple):
    """A bloc in the tree: its place in pixels, color, size and what it wants.

    - **name** - of a bloc of the level that the page is about; of others nothing.
    - **lines** - what it wants first.
    """

    x: str
    y: str
    height: str
    color: str
    name: str
    share: str
    lines: Sequence[str]


class Band(NamedTuple):
    """The members that two blocs of neighbouring levels have in common: an area."""

    path: str
    color: str


class Head(NamedTuple):
    """A level of the tree: its place in pixels, what it is, and whether the page is about it."""

    x: str
    number: int
    kept: str
    is_chosen: bool


class Tree(NamedTuple):
    """How few blocs split into more, from left to right.

    - **height** - of the picture in pixels, whose width is 720, and **bar** - width of a bloc.
    """

    height: str
    bar: str
    heads: Sequence[Head]
    nodes: Sequence[Node]
    bands: Sequence[Band]


class BlocsShown(NamedTuple):
    """The section about blocs.

    - **how_many** - in words, with what they keep.
    - **shares** - of all rankings in each bloc, and **wants**, what it wants.
    - **verdict** - on them.
    - **rows** - of the table, **with_intervals** of the sizes or not.
    - **explained** - sentences about the table, and **kept_explained** about what blocs keep.
    - **kept** - by each number of them.
    - **tree** - None if there is one bloc only.
    - **judges** - tables of the columns about the judges.
    - **are_first** - whether they come before the groups.
    """

    how_many: str
    shares: Sequence[str]
    wants: Sequence[str]
    verdict: Verdict
    rows: Sequence[Row]
    with_intervals: bool
    explained: str
    kept_explained: str
    kept: Sequence[Kept]
    tree: Tree | None
    judges: Sequence[Judges]
    are_first: bool


def blocs_shown(findings: Findings, about: Mapping[str, Sequence[str]]) -> BlocsShown | None:
    """Return what the page shows of the blocs; None if there are none.

    :param about: as for :func:`~numpyro_rankings.report.write_report`.
    """
    blocs, total = findings.blocs, findings.total
    if blocs is None:
        return None
    wants = [said.wants_of_bloc(bloc) for bloc in blocs.blocs]
    rows: list[Row] = [
        (
            Colored(str(k), plots.COLORS[(k - 1) % len(plots.COLORS)]),
            words.size(bloc.size),
            *([words.interval(bloc.size_interval)] if findings.with_intervals else []),
            words.share(bloc.size / total),
            words.percent(bloc.certainty),
            words.percent(bloc.agreement),
            text,
        )
        for k, (bloc, text) in enumerate(zip(blocs.blocs, wants, strict=True), 1)
    ]
    return BlocsShown(
        said.how_many_blocs(blocs),
        [words.share(bloc.size / total) for bloc in blocs.blocs],
        wants,
        said.verdict_of_blocs(blocs),
        rows,
        findings.with_intervals,
        said.table_explained(findings.with_intervals, findings.blocs_first),
        said.kept_explained(blocs),
        [_kept(level, blocs.number) for level in blocs.levels],
        _tree(blocs, total) if len(blocs.levels) > 1 else None,
        judges_in_tables(about, blocs.labels, said.names_of_blocs(blocs.number)),
        findings.blocs_first,
    )


def _kept(level: BlocLevel, chosen: int) -> Kept:
    kept, low, high = (float(np.clip(x, 0, 1)) for x in (level.kept, *level.kept_interval))
    return Kept(
        level.number,
        level.number == chosen,
        said.share_kept(level),
        *(f"{100 * x:.2f}" for x in (kept, low, high - low)),
    )


def _tree(blocs: Blocs, total: int) -> Tree:
    """Lay out the chosen level and its neighbours: a column each, with a bar for each bloc."""
    first = max(0, min(blocs.number - 2, len(blocs.levels) - 3))
    levels = blocs.levels[first : first + 3]
    scale = _FLOW / total
    columns = np.linspace(0, _WIDTH, len(levels), endpoint=False)
    letters = int((_WIDTH / len(levels) - _LABEL) / _LETTER)
    tops, heights = [], []
    colors = _colors(levels, blocs.number)
    lines = [[_wants_first(bloc.levels, letters) for bloc in level.blocs] for level in levels]
    for level, of_level in zip(levels, lines, strict=True):
        sizes = np.array([bloc.size for bloc in level.blocs]) * scale
        words_beside = _FIRST_LINE + _LINE * np.array([len(some) for some in of_level])
        room = np.maximum(sizes, words_beside) + _GAP
        tops.append(_TOP + np.cumsum(room) - room)
        heights.append(float(room.sum()))
    nodes = [
        Node(
            f"{x:.1f}",
            f"{top:.1f}",
            f"{max(bloc.size * scale, 1):.1f}",
            color,
            name,
            words.share(bloc.size / total),
            beside,
        )
        for x, level, of_level, its, said_of in zip(
            columns, levels, tops, colors, lines, strict=True
        )
        for bloc, name, top, color, beside in zip(
            level.blocs, _names(level.number, blocs.number), of_level, its, said_of, strict=True
        )
    ]
    bands = []
    for k in range(1, len(levels)):
        shown = levels[k].flow * scale
        left = tops[k - 1][:, None] + np.cumsum(shown, 1) - shown
        right = tops[k] + np.cumsum(shown, 0) - shown
        for a, b in np.argwhere(levels[k].flow >= _LEAST_FLOW * total):
            ends = columns[k - 1] + _BAR, columns[k]
            color = colors[k][b] if levels[k].number <= blocs.number else colors[k - 1][a]
            bands.append(Band(_area(*ends, left[a, b], right[a, b], shown[a, b]), color))
    heads = [
        Head(f"{x:.1f}", level.number, words.share(level.kept), level.number == blocs.number)
        for x, level in zip(columns, levels, strict=True)
    ]
    return Tree(f"{_TOP + max(heights):.0f}", f"{_BAR:.0f}", heads, nodes, bands)


def _names(number: int, chosen: int) -> list[str]:
    """Number the blocs of the chosen level alone, for another ``bloc 2`` would seem the same."""
    return said.names_of_blocs(number) if number == chosen else [""] * number


def _wants_first(levels: Sequence[Sequence[str]], letters: int) -> list[str]:
    """Say in a few lines which items come first: the first level, and a second one if both are one.

    :param levels: of the consensus.
    :param letters: in a line.
    """
    first = levels[0]
    named = list(first if len(first) <= _NAMES + 1 else first[:_NAMES])
    if len(first) > len(named):
        named.append(f"{len(first) - len(named)} more")
    text = f"{words.listed(named)} first"
    if len(levels) == 1 and len(first) > 1:
        text = "all close"
    elif len(first) == 1 and len(levels) > 1 and len(levels[1]) == 1:
        text = f"{first[0]} before {levels[1][0]}"
    return textwrap.wrap(text, letters, max_lines=_LINES, placeholder=" …")


def _colors(levels: Sequence[BlocLevel], chosen: int) -> list[list[str]]:
    """Return the color of each bloc of each level.

    A bloc has the color of the one in the chosen level that has most members in common with it; of
    fewer blocs each has another one.
    """
    here = next(k for k, level in enumerate(levels) if level.number == chosen)
    which = {here: np.arange(chosen)}
    for k in range(here - 1, -1, -1):  # of fewer blocs each is matched
        fewer, more = linear_sum_assignment(levels[k + 1].flow, maximize=True)
        which[k] = which[k + 1][more[np.argsort(fewer)]]
    for k in range(here + 1, len(levels)):
        which[k] = which[k - 1][levels[k].flow.argmax(0)]
    names = plots.COLORS
    return [[names[i % len(names)] for i in which[k]] for k in range(len(levels))]


def _area(x: float, end: float, left: float, right: float, height: float) -> str:
    """Return the path of a band, as the attribute ``d`` of SVG has it."""
    middle = (x + end) / 2
    return (
        f"M{x:.1f},{left:.1f} C{middle:.1f},{left:.1f} {middle:.1f},{right:.1f} "
        f"{end:.1f},{right:.1f} V{right + height:.1f} C{middle:.1f},{right + height:.1f} "
        f"{middle:.1f},{left + height:.1f} {x:.1f},{left + height:.1f} Z"
    )
