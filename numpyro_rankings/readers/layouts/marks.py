"""A scanned sheet: a column of 0 and 1 for each item and rank, whose names say both."""

import re
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.ballots import BLANK, OVERVOTE, Rules
from numpyro_rankings.readers.beside import refuse_races
from numpyro_rankings.readers.grids import Column, Grid
from numpyro_rankings.readers.layouts.base import BallotLayout
from numpyro_rankings.readers.lists import Lists
from numpyro_rankings.readers.questions import Question, QuestionSpec
from numpyro_rankings.readers.votes import Votes, lists_of_ballots, votes_of_marks
from numpyro_rankings.words.options import option

_WORD = r"(?:(?<![A-Za-z])(?:rank|choice|place|pref(?:erence)?))?"
_RANK = rf"{_WORD}[\s_#.]*(?P<rank>\d+)(?:st|nd|rd|th)?\s*{_WORD}"
_ITEM = r"(?P<item>.*?\w.*?)"
# "Ann 1", "Ann [1st choice]"; and "1_Ann", "Rank 1: Ann"
_MARK_AT_END = re.compile(rf"{_ITEM}[\s_:\-\[(.,|]*{_RANK}\s*[\])]*", re.IGNORECASE | re.DOTALL)
_MARK_AT_START = re.compile(
    rf"[\[(]*\s*{_RANK}[\s_:\-\])\[(.,|]+{_ITEM}\s*[\])]*", re.IGNORECASE | re.DOTALL
)
_MARKED = {"1", "x", "true", "yes", "y", "✓", "✔"}
_NOT_MARKED = {"", "0", "false", "no", "n"}


class Marks(BallotLayout):
    """A column of marks for each item and rank."""

    name = "marks"
    has_names_in_cells = False

    def lists(self, question: Question) -> Lists:
        """Read the marks, and apply the rules."""
        grid, spec = question.grid, question.spec
        return lists_of_ballots(grid, spec, _read_marks(grid, question.columns, spec))


def _read_marks(grid: Grid, columns: Sequence[Column], spec: QuestionSpec) -> Votes:
    """Read marks; without names of items, they are those of the columns, in their order."""
    known = {*spec.items, *spec.aliases} if spec.items else set()
    named = _items_and_ranks(grid, [column.name for column in columns], known)
    items = tuple(dict.fromkeys((*(spec.items or ()), *(name for name, _ in named))))
    index = {name: k for k, name in enumerate(items)}
    shape = len(grid.numbers), max(rank for _, rank in named)
    number = np.zeros(shape, np.int32)
    marks = np.full(shape, BLANK, np.int32)
    for column, (name, rank) in zip(columns, named, strict=True):
        is_known = column.mapped(lambda text: text.casefold() in _MARKED | _NOT_MARKED, bool)
        if not is_known.all():
            row = int(np.argmin(is_known))
            raise RankingsError(
                f"{grid.at(row, column)}: expected 1 for a mark and 0 or nothing for none, got "
                f"{column.text(row)[:40]!r}"
            )
        is_marked = column.mapped(lambda text: text.casefold() in _MARKED, bool)
        number[:, rank - 1] += is_marked
        marks[is_marked, rank - 1] = index[name]
    if (number > 1).any():
        names, as_ballots = [x.name for x in columns], spec._replace(rules=spec.rules or Rules())
        refuse_races(grid, [names], lambda: _ranks_marked(columns, named), as_ballots)
    marks[number > 1] = OVERVOTE
    return votes_of_marks(items, marks)


def _ranks_marked(columns: Sequence[Column], named: Sequence[tuple[str, int]]) -> np.ndarray:
    """Return the rank that each cell marks, (rows, columns); 0 for none."""
    are_marked = [x.mapped(lambda text: text.casefold() in _MARKED) for x in columns]
    return np.stack(are_marked, axis=1) * [rank for _, rank in named]


def _items_and_ranks(grid: Grid, names: Sequence[str], known: set[str]) -> list[tuple[str, int]]:
    """Return the item and the rank that each name of a column says."""
    tried = []
    for pattern in (_MARK_AT_END, _MARK_AT_START):
        matches = [pattern.fullmatch(name) for name in names]
        if all(matches):
            tried.append([(m["item"].strip(), int(m["rank"])) for m in matches if m])
    for named in tried:
        if _is_sheet(named, known):
            return named
    _refuse_sheet(grid, names, tried, known)


def _is_sheet(named: Sequence[tuple[str, int]], known: set[str]) -> bool:
    """Return whether each item has the ranks 1 to k, once each."""
    items = {name for name, _ in named}
    ranks = {rank for _, rank in named}
    is_whole = len(set(named)) == len(named) == len(items) * len(ranks)
    is_numbered = ranks == set(range(1, len(ranks) + 1))
    return is_whole and is_numbered and (not known or items <= known)


def _refuse_sheet(
    grid: Grid, names: Sequence[str], tried: Sequence[Sequence[tuple[str, int]]], known: set[str]
) -> NoReturn:
    if not tried:
        parses = [_MARK_AT_END.fullmatch(x) or _MARK_AT_START.fullmatch(x) for x in names]
        other = next((x for x, m in zip(names, parses, strict=True) if not m), names[0])
        raise RankingsError(
            f"{grid.header_place}: the column {other!r} does not say an item and a rank, such as "
            f"'Ann 1'; pick the marks with {option('columns')}"
        )
    named = tried[0]
    if known and (others := [name for name, _ in named if name not in known]):
        raise RankingsError(
            f"{grid.header_place}: there is no item {others[0]!r}; name all with {option('items')}"
        )
    items = dict.fromkeys(name for name, _ in named)
    width = max(rank for _, rank in named)
    for name in items:
        for rank in range(1, min(width, len(named)) + 1):
            number = list(named).count((name, rank))
            if number != 1:
                has = "no column" if not number else f"{number} columns"
                raise RankingsError(
                    f"{grid.header_place}: {name!r} has {has} for rank {rank}, where others have "
                    f"one; pick the marks with {option('columns')}"
                )
    raise RankingsError(f"{grid.header_place}: the columns are no sheet of items and ranks")
