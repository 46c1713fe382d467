"""What a report shows of blocs: a table, what each number of them keeps, and how they split."""

import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from numpyro_rankings import words
from numpyro_rankings.posterior import Bloc, BlocLevel, Blocs
from numpyro_rankings.posterior.diagnostics import Verdict
from numpyro_rankings.report import blocs_in_words as said
from numpyro_rankings.report.answers import (
    Colored,
    Judges,
    Row,
    color_of,
    judges_in_tables,
    numbered,
)
from numpyro_rankings.report.findings import Findings

_WIDTH, _FLOW, _BAR, _GAP, _TOP = 720.0, 220.0, 12.0, 8.0, 44.0  # pixels
_LABEL, _FIRST_LINE, _LINE, _LETTER = 18.0, 20.0, 15.0, 7.2  # pixels of the words beside a bar
_LEAST_FLOW = 0.01  # share of all rankings that a band of the tree shows
_NAMES, _LINES = 4, 8  # at most, of what a bloc wants, beside it in the tree


class Kept(NamedTuple):
    """The share that a number of blocs keeps, with its interval: in words, and for a bar."""

    number: int
    is_chosen: bool
    in_words: str
    share: float
    low: float
    high: float


class Node(NamedTuple):
    """A bloc in the tree; only those of the level that the page is about have a name."""

    x: float
    y: float
    height: float
    color: str
    name: str
    share: float
    lines: Sequence[str]


class Band(NamedTuple):
    """The members that two blocs of neighbouring levels have in common: an area."""

    path: str
    color: str


class Head(NamedTuple):
    """A level of the tree: its place in pixels, what it is, and whether the page is about it."""

    x: float
    number: int
    kept: float
    is_chosen: bool


class Tree(NamedTuple):
    """How few blocs split into more, from left to right, in a picture of this height in pixels."""

    height: float
    heads: Sequence[Head]
    nodes: Sequence[Node]
    bands: Sequence[Band]


class BlocsShown(NamedTuple):
    """The section about blocs; there is no tree of a single one."""

    how_many: str
    shares: Sequence[str]
    wants: Sequence[str]
    verdict: Verdict
    rows: Sequence[Row]
    explained: str
    kept_explained: str
    kept: Sequence[Kept]
    tree: Tree | None
    judges: Sequence[Judges]


def blocs_shown(findings: Findings, about: Mapping[str, Sequence[str]]) -> BlocsShown | None:
    """Return what the page shows of the blocs; None if there are none."""
    blocs, total = findings.blocs, findings.total
    if blocs is None:
        return None
    wants = [said.wants_of_bloc(bloc) for bloc in blocs.blocs]
    return BlocsShown(
        said.how_many_blocs(blocs),
        [words.share(bloc.size / total) for bloc in blocs.blocs],
        wants,
        said.verdict_of_blocs(blocs),
        [
            _row(k, bloc, text, findings)
            for k, (bloc, text) in enumerate(zip(blocs.blocs, wants, strict=True))
        ],
        said.table_explained(findings.with_intervals, findings.blocs_first),
        said.kept_explained(blocs),
        [_kept(level, blocs.number) for level in blocs.levels],
        _tree(blocs, total) if len(blocs.levels) > 1 else None,
        judges_in_tables(about, blocs.labels, numbered("bloc", blocs.number)),
    )


def _row(place: int, bloc: Bloc, wants: str, findings: Findings) -> Row:
    return (
        Colored(str(place + 1), color_of(place)),
        words.size(bloc.size),
        *([words.interval(bloc.size_interval)] if findings.with_intervals else []),
        words.share(bloc.size / findings.total),
        words.percent(bloc.certainty),
        words.percent(bloc.agreement),
        wants,
    )


def _kept(level: BlocLevel, chosen: int) -> Kept:
    share, low, high = (float(np.clip(x, 0, 1)) for x in (level.kept, *level.kept_interval))
    return Kept(level.number, level.number == chosen, said.share_kept(level), share, low, high)


def _tree(blocs: Blocs, total: int) -> Tree:
    """Lay out the chosen level and its neighbours: a column each, with a bar for each bloc."""
    first = max(0, min(blocs.number - 2, len(blocs.levels) - 3))
    levels, bottom = blocs.levels[first : first + 3], _TOP
    nodes: list[Node] = []
    columns = np.linspace(0, _WIDTH, len(levels), endpoint=False).tolist()
    scale = _FLOW / total
    letters = int((_WIDTH / len(levels) - _LABEL) / _LETTER)
    colors = _colors(levels, blocs.number)
    for x, level, its_colors in zip(columns, levels, colors, strict=True):
        # the blocs of other levels have no numbers, for another "bloc 2" would seem the same
        is_chosen = level.number == blocs.number
        names = numbered("bloc", level.number) if is_chosen else [""] * level.number
        y = _TOP
        for bloc, name, color in zip(level.blocs, names, its_colors, strict=True):
            height, lines = bloc.size * scale, _wants_first(bloc.levels, letters)
            nodes.append(Node(x, y, height, color, name, bloc.size / total, lines))
            y += max(height, _FIRST_LINE + _LINE * len(lines)) + _GAP
        bottom = max(bottom, y)
    heads = [
        Head(x, level.number, level.kept, level.number == blocs.number)
        for x, level in zip(columns, levels, strict=True)
    ]
    return Tree(bottom, heads, nodes, _bands(levels, nodes, blocs.number, total))


def _bands(
    levels: Sequence[BlocLevel], nodes: Sequence[Node], chosen: int, total: int
) -> list[Band]:
    """Return the bands between the blocs of neighbouring levels, whose nodes follow each other."""
    bands, start = [], 0
    for fewer, more in pairwise(levels):
        middle = start + fewer.number
        lefts, rights = nodes[start:middle], nodes[middle : middle + more.number]
        start = middle
        shown = more.flow * (_FLOW / total)
        left = np.array([node.y for node in lefts])[:, None] + np.cumsum(shown, 1) - shown
        right = np.array([node.y for node in rights]) + np.cumsum(shown, 0) - shown
        for a, b in np.argwhere(more.flow >= _LEAST_FLOW * total):
            color = rights[b].color if more.number <= chosen else lefts[a].color
            ends = lefts[a].x + _BAR, rights[b].x
            bands.append(Band(_area(*ends, left[a, b], right[a, b], shown[a, b]), color))
    return bands


def _wants_first(levels: Sequence[Sequence[str]], letters: int) -> list[str]:
    """Say in lines of so many letters what comes first: one level, or two if both are one item."""
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
    """Return the color of each bloc: that of the one in the chosen level that it goes with.

    Each of fewer blocs goes with another one, and each of more blocs with that it comes from.
    """
    here = next(k for k, level in enumerate(levels) if level.number == chosen)
    which = {here: np.arange(chosen)}
    for k in range(here - 1, -1, -1):  # each of fewer blocs has another match
        fewer, more = linear_sum_assignment(levels[k + 1].flow, maximize=True)
        which[k] = which[k + 1][more[np.argsort(fewer)]]
    for k in range(here + 1, len(levels)):
        which[k] = which[k - 1][levels[k].flow.argmax(0)]
    return [[color_of(int(i)) for i in which[k]] for k in range(len(levels))]


def _area(x: float, end: float, left: float, right: float, height: float) -> str:
    """Return the path of a band, as the attribute ``d`` of SVG has it."""
    middle = (x + end) / 2
    return (
        f"M{x:.1f},{left:.1f} C{middle:.1f},{left:.1f} {middle:.1f},{right:.1f} "
        f"{end:.1f},{right:.1f} V{right + height:.1f} C{middle:.1f},{right + height:.1f} "
        f"{middle:.1f},{left + height:.1f} {x:.1f},{left + height:.1f} Z"
    )
