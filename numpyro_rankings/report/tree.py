"""A picture of how few groups split into more, from left to right."""

import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from numpyro_rankings.report.answers import color_of

_WIDTH, _FLOW, _BAR, _GAP, _TOP = 720.0, 220.0, 12.0, 8.0, 44.0  # pixels
_LABEL, _FIRST_LINE, _LINE, _LETTER = 18.0, 20.0, 15.0, 7.2  # pixels of the words beside a bar
_LEAST_FLOW = 0.01  # share of all rankings that a band of the tree shows
_LINES = 8  # at most, of what a group wants, beside it in the tree
_SHOWN = 3  # levels


class Level(NamedTuple):
    """A number of groups.

    - **sizes** - of its groups, and **texts**, what is said beside each.
    - **flow** - members of each group of the level before, and of each of its own, in both.
    """

    number: int
    heading: str
    sizes: Sequence[float]
    flow: np.ndarray
    texts: Sequence[str]


class Node(NamedTuple):
    """A group in the tree; only those of the level that the page is about have a name."""

    x: float
    y: float
    height: float
    color: str
    name: str
    share: float
    lines: Sequence[str]


class Band(NamedTuple):
    """The members that two groups of neighbouring levels have in common: an area."""

    path: str
    color: str


class Head(NamedTuple):
    """A level of the tree: its place in pixels, what it is, and whether the page is about it."""

    x: float
    text: str
    is_chosen: bool


class Tree(NamedTuple):
    """How few groups split into more, from left to right, in a picture of this height in pixels."""

    height: float
    heads: Sequence[Head]
    nodes: Sequence[Node]
    bands: Sequence[Band]


def around(levels: Sequence[Any], place: int) -> Sequence[Any]:
    """Return the level at a place and its neighbours."""
    first = max(0, min(place - 1, len(levels) - _SHOWN))
    return levels[first : first + _SHOWN]


def tree_of(
    levels: Sequence[Level],
    chosen: int,
    names: Sequence[str],
    total: int,
) -> Tree:
    """Lay out levels: a column each, with a bar for each group.

    :param chosen: the number of the level that the page is about.
    :param names: of its groups.
    """
    nodes: list[Node] = []
    bottom = _TOP
    columns = np.linspace(0, _WIDTH, len(levels), endpoint=False).tolist()
    scale = _FLOW / total
    letters = int((_WIDTH / len(levels) - _LABEL) / _LETTER)
    colors = _colors(levels, chosen)
    for x, level, its_colors in zip(columns, levels, colors, strict=True):
        # the groups of other levels have no numbers, for another "bloc 2" would seem the same
        its_names = names if level.number == chosen else [""] * level.number
        y = _TOP
        for size, text, name, color in zip(
            level.sizes, level.texts, its_names, its_colors, strict=True
        ):
            height = size * scale
            lines = textwrap.wrap(text, letters, max_lines=_LINES, placeholder=" …")
            nodes.append(Node(x, y, height, color, name, size / total, lines))
            y += max(height, _FIRST_LINE + _LINE * len(lines)) + _GAP
        bottom = max(bottom, y)
    heads = [
        Head(x, level.heading, level.number == chosen)
        for x, level in zip(columns, levels, strict=True)
    ]
    return Tree(bottom, heads, nodes, _bands(levels, nodes, chosen, total))


def _bands(levels: Sequence[Level], nodes: Sequence[Node], chosen: int, total: int) -> list[Band]:
    """Return the bands between the groups of neighbouring levels, whose nodes follow each other."""
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


def _colors(levels: Sequence[Level], chosen: int) -> list[list[str]]:
    """Return the color of each group: that of the one in the chosen level that it goes with.

    Each of fewer groups goes with another one, and each of more groups with that it comes from.
    """
    here = next(k for k, level in enumerate(levels) if level.number == chosen)
    which = {here: np.arange(chosen)}
    for k in range(here - 1, -1, -1):  # each of fewer groups has another match
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
