"""Columns of small numbers beside a ballot, such as a precinct: recognised, and asked about."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.answers import rank_number
from numpyro_rankings.readers.grids import Grid, table_of
from numpyro_rankings.readers.headers import Table
from numpyro_rankings.readers.lists import are_ranks_with_ties
from numpyro_rankings.readers.questions import QuestionSpec, options_beside
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import option

_LOOKED_AT = 1000  # rows
_FEWEST_ROWS, _FEWEST_ROWS_OF_TWO = 3, 6  # any lists of two items could be ties
_MOST_BESIDE = 4  # columns
_MOST_LISTS, _FEW_LISTS = 0.8, 0.5  # shares of rows
_OF_JUDGES = re.compile(
    r"(?:^|[^a-z])(?:age|ward|precinct|district|region|county|state|city|country|school|site|sex|"
    r"gender|wave|stratum|cohort|year|education|income)(?:[^a-z]|$)",
    re.IGNORECASE,
)
_PLACE = re.compile(r"\d$|^\d")  # at an end of the name of a column
_RACE = "!!"  # between a race and a candidate


def refuse_column_beside(
    table: Table, picked: Sequence[int], spec: QuestionSpec, layout: str | None
) -> None:
    """Refuse a column without which the others rank 1, 2, … once each, and with which they do not.

    Also one of numbers that is not of the race of which the others are.
    """
    is_other = layout not in (None, "ranks", "orders") or spec.is_turned or spec.ties is not None
    if is_other or spec.patterns or spec.items is not None or len(picked) < 3:
        return
    grid = table.grid
    if not len(grid.numbers) or len({grid.columns[k] for k in picked}) < len(picked):
        return
    blank = {*spec.missing, *spec.offered, *spec.not_offered}
    numbers = table_of(
        [grid.cells[k] for k in picked], lambda x: 0 if x in blank else rank_number(x)
    )
    _refuse_columns_of_kinds(grid, picked)
    if layout == "orders" and (k := _beside_places(grid, picked)) is not None:
        why = "Its name has no number, as those of the others have, and its texts are in no other"
        _ask(grid, picked, k, spec, why)
    if (k := _beside_race(table, picked, numbers)) is not None:
        _ask(grid, picked, k, spec, f"Its name has no {_RACE!r}, as those of the others have")
    # words for blank cells may be among the numbers
    have_numbers = (2 * (numbers < 0).sum(0) <= len(numbers)).all()
    if have_numbers:
        _refuse_several_questions(grid, picked, np.maximum(numbers[:_LOOKED_AT], 0))
    found = _beside_lists(np.maximum(numbers[:_LOOKED_AT], 0)) if have_numbers else None
    if found is None:
        return
    k, without, within, rows = found
    why = (
        f"Without it {without:,} of {plural(rows, 'row')} have the numbers 1, 2, … once each, and "
        f"with it {within:,}"
    )
    # a wrong answer would lose an item that ties with another, and nothing would look odd
    may_tie = layout != "orders" and are_ranks_with_ties(np.maximum(numbers, 0))
    is_sure = not may_tie or _OF_JUDGES.search(grid.columns[picked[k]]) is not None
    _ask(grid, picked, k, spec, why, is_sure)


def _refuse_columns_of_kinds(grid: Grid, picked: Sequence[int]) -> None:
    """Refuse columns such as Tea_rank and Tea_why, of which one kind alone has ranks."""
    for pattern, end in ((r"(.+)(?P<kind>[ _:.-]\w+)", 1), (r"(?P<kind>\w+?[ _:.-])(.+)", 0)):
        kinds: dict[str, dict[str, int]] = {}
        for k in picked:
            if (match := re.fullmatch(pattern, grid.columns[k].strip())) is not None:
                kinds.setdefault(match["kind"], {})[match[1 if end else 2]] = k
        found = [x for x in kinds.values() if len(x) > 1]
        names = [set(x) for x in found]
        if len(found) < 2 or any(x != names[0] for x in names):
            continue
        have_ranks = [
            bool(are_lists(numbers).all()) if ((numbers := _ranks(grid, x)) >= 0).all() else False
            for x in found
        ]
        if sum(have_ranks) != 1 or 2 * len(found) * len(names[0]) < len(picked):
            continue
        right, other = found[have_ranks.index(True)], found[have_ranks.index(False)]
        kind = next(x for x, of_kind in kinds.items() if of_kind is right)
        first, second = (grid.columns[min(x.values())] for x in (right, other))
        raise RankingsError(
            f"{grid.header_place}: the columns seem to be of {len(found)} kinds, such as {first!r} "
            f"and {second!r}: pick those with the ranks by "
            f"{option('columns', f'*{kind}' if end else f'{kind}*')}"
        )


def _beside_places(grid: Grid, picked: Sequence[int]) -> int | None:
    """Return the first column without the number of a place, and without any item of the others."""
    texts = [{*grid.cells[k].values} - {""} for k in picked]
    are_places = [_PLACE.search(grid.columns[k]) is not None for k in picked]
    for k, own in enumerate(texts):
        others = [x for j, x in enumerate(texts) if are_places[j]]
        share = [any(x & y for y in others if y is not x) for x in others]
        if not are_places[k] and len(others) > 1 and all(share) and not own & set().union(*others):
            return k
    return None


def _ranks(grid: Grid, columns: Mapping[str, int]) -> np.ndarray:
    return table_of([grid.cells[k] for k in columns.values()], rank_number)


def _beside_race(table: Table, picked: Sequence[int], numbers: np.ndarray) -> int | None:
    """Return the first column of numbers that is of no race, where the others are of one."""
    is_of_race = np.array([_RACE in table.labels[k] for k in picked])
    if is_of_race.sum() < 2 or is_of_race.all() or are_lists(np.maximum(numbers, 0)).all():
        return None
    others = np.flatnonzero(~is_of_race & (numbers >= 0).all(0))
    return int(others[0]) if len(others) else None


def _refuse_several_questions(grid: Grid, picked: Sequence[int], numbers: np.ndarray) -> None:
    """Refuse columns of several questions, each of which ranks its own items 1, 2, … once each."""
    numbers = numbers[(numbers > 0).any(1)]
    ends = [0]
    while ends[-1] < numbers.shape[1]:
        later = range(ends[-1] + 2, numbers.shape[1] + 1)
        end = next((k for k in later if _are_mostly_lists(numbers[:, ends[-1] : k])), None)
        if end is None:
            return
        ends.append(end)
    is_whole = int(are_lists(numbers).sum()) > _FEW_LISTS * len(numbers)
    fewest = _FEWEST_ROWS if min(np.diff(ends), default=0) > 2 else _FEWEST_ROWS_OF_TWO
    if len(ends) == 2 or is_whole or len(numbers) < fewest:
        return
    names = [[grid.columns[k] for k in picked[a:b]] for a, b in itertools.pairwise(ends)]
    each = [f"{x[0]!r} to {x[-1]!r}" for x in names]
    raise RankingsError(
        f"{grid.header_place}: the columns seem to be those of {len(names)} questions, "
        f"{' and '.join(each)}: each has the numbers 1, 2, … once; pick those of one question, "
        f"such as {option('columns', pattern_of(names[0], grid.columns) or names[0])}"
    )


def pattern_of(names: Sequence[str], columns: Sequence[str]) -> str:
    """Return how the names begin, and no others, with a star; nothing if they do not."""
    alike = itertools.takewhile(lambda x: len(set(x)) == 1, zip(*names, strict=False))
    stem = "".join(x[0] for x in alike)
    is_own = not any(x.startswith(stem) for x in columns if x not in names)
    return f"{stem}*" if stem and is_own and not set("*?[]") & set(stem) else ""


def _are_mostly_lists(numbers: np.ndarray) -> bool:
    return int(are_lists(numbers).sum()) >= _MOST_LISTS * len(numbers)


def _beside_lists(numbers: np.ndarray) -> tuple[int, int, int, int] | None:
    """Return a column beside lists, the number of lists without it and with it, and of all rows."""
    width = numbers.shape[1]
    is_high = numbers > width
    if is_high.any(0).sum() > 1:  # codes for blank cells, not numbers of one column
        numbers = np.where(is_high, 0, numbers)
    numbers = numbers[(numbers > 0).any(1)]
    if len(numbers) < (_FEWEST_ROWS if width > 3 else _FEWEST_ROWS_OF_TWO):
        return None
    within = int(are_lists(numbers).sum())
    if within > _FEW_LISTS * len(numbers):
        return None
    for number in range(1, min(_MOST_BESIDE, width - 2) + 1):
        found = [
            (beside, without)
            for beside in _sets_of(width, number)
            if (without := int(are_lists(np.delete(numbers, beside, 1)).sum()))
            >= _MOST_LISTS * len(numbers)
        ]
        if found:
            # if columns are the same in all rows, the last is more often beside the ballot
            (*_, last), without = found[-1]
            is_same = number == 1 and all(
                (numbers[:, x] == numbers[:, last]).all() for (x,), _ in found
            )
            first = found[0][0][0] if len(found) == 1 else last
            return (first, without, within, len(numbers)) if len(found) == 1 or is_same else None
    return None


def _sets_of(width: int, number: int) -> list[list[int]]:
    """Return so many columns at both ends of a table together, or any one of them."""
    if number == 1:
        return [[k] for k in range(width)]
    return [[*range(k), *range(width - number + k, width)] for k in range(number, -1, -1)]


def are_lists(numbers: np.ndarray) -> np.ndarray:
    """Return which rows have the numbers 1, 2, … once each, and one at least, (rows,) bool."""
    lengths = (numbers > 0).sum(1)
    ordered = np.sort(numbers, axis=1)[:, ::-1]  # the blank cells are last
    expected = np.maximum(lengths[:, None] - np.arange(numbers.shape[1]), 0)
    return (ordered == expected).all(1) & (lengths > 0)


def _ask(
    grid: Grid, picked: Sequence[int], k: int, spec: QuestionSpec, why: str, is_sure: bool = True
) -> NoReturn:
    column = grid.cells[picked[k]]
    names = option("columns", [grid.columns[x] for x in picked], False)
    raise RankingsError(
        f"{grid.header_place}: is {column.name!r} part of the ranking? {why}. If not, "
        f"{options_beside(column, spec, is_sure)}; {names} if it is"
    )
