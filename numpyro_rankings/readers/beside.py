"""Columns beside a ballot, such as a precinct or the judges: recognised, and asked about."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.answers import (
    BAD,
    GOOD,
    numbers_of_ranks,
    rank_number,
    rank_of_header,
)
from numpyro_rankings.readers.grids import Grid, table_of
from numpyro_rankings.readers.headers import Table
from numpyro_rankings.readers.lists import are_ranks_with_ties
from numpyro_rankings.readers.questions import (
    OF_JUDGES,
    OF_PEOPLE,
    QuestionSpec,
    are_in_row,
    options_beside,
)
from numpyro_rankings.readers.turned import has_twice, num_twice
from numpyro_rankings.words import plural, shorten
from numpyro_rankings.words.options import option

_LOOKED_AT = 1000  # rows
_FEWEST_ROWS, _FEWEST_ROWS_OF_TWO = 3, 6  # any lists of two items could be ties
_FEWEST_IN_ROW = 4  # numbers that count the rows
_MOST_BESIDE = 4  # columns
_MOST_LISTS, _FEW_LISTS = 0.8, 0.5  # shares of rows
_OF_JUDGES = re.compile(
    r"(?:^|[^a-z])(?:age|ward|precinct|district|region|county|state|city|country|school|site|sex|"
    r"gender|wave|stratum|cohort|year|education|income)(?:[^a-z]|$)",
    re.IGNORECASE,
)
# at an end of the name of a column, or in words
_PLACE = re.compile(rf"\d$|^\d|\b(?:winner|first|{GOOD}|{BAD})\b", re.IGNORECASE)
_BEST = re.compile(rf"\b(?:{GOOD}|winner)\b", re.IGNORECASE)
_CALLED = "It is called as columns of judges are"
_NO_NUMBER = "Its name has no number, as those of the others have"
_RACE = "!!"  # between a race and a candidate
# other texts between them, of which a part comes after the whole
_AFTER_RACE = "::", "->", " - ", " – ", " — ", ": ", ":", " | ", "|", " / ", "/", ">", *"[(_."
_LENGTH = 60  # letters of a name in a message


def refuse_column_beside(
    table: Table, picked: Sequence[int], spec: QuestionSpec, layout: str | None
) -> None:
    """Refuse a column without which the others rank 1, 2, … once each, and with which they do not.

    Also one of numbers that is not of the race of which the others are.
    """
    is_other = layout not in (None, "ranks", "orders") or spec.is_turned
    if is_other or spec.patterns or spec.items is not None or len(picked) < 3:
        return
    grid = table.grid
    if not len(grid.numbers) or len({grid.columns[k] for k in picked}) < len(picked):
        return
    blank = {*spec.missing, *spec.offered, *spec.not_offered}
    numbers = table_of(
        [grid.cells[k] for k in picked], lambda x: 0 if x in blank else rank_number(x)
    )
    _refuse_columns_of_kinds(grid, picked, layout)
    find = {"ranks": _judges_beside_ranks, "orders": _judges_beside_places}.get(layout or "")
    if find is not None and (beside := find(grid, picked, numbers)) is not None:
        _ask(grid, picked, beside[0], spec, beside[1])
    if spec.ties is not None:
        return
    if (k := _beside_race(table, picked, numbers)) is not None:
        _ask(grid, picked, k, spec, f"Its name has no {_RACE!r}, as those of the others have")
    # words for blank cells may be among the numbers
    have_numbers = (2 * (numbers < 0).sum(0) <= len(numbers)).all()
    if have_numbers:
        _refuse_several_questions(grid, picked, np.maximum(numbers[:_LOOKED_AT], 0))
    if layout != "orders":
        labels = [table.labels[k] for k in picked]
        refuse_races(grid, ([grid.columns[k] for k in picked], labels), lambda: numbers, spec)
    found = _beside_lists(np.maximum(numbers[:_LOOKED_AT], 0)) if have_numbers else None
    if found is None:
        return
    k, without, within, rows = found
    alike = [x for x in range(len(picked)) if (numbers[:, x] == numbers[:, k]).all()]
    called = [x for x in alike if OF_JUDGES.fullmatch(grid.columns[picked[x]])]
    k = (*called, k)[0]
    why = (
        f"Without it {without:,} of {plural(rows, 'row')} have the numbers 1, 2, … once each, and "
        f"with it {within:,}"
    )
    # a wrong answer would lose an item that ties with another, and nothing would look odd
    may_tie = layout != "orders" and are_ranks_with_ties(np.maximum(numbers, 0))
    is_sure = not may_tie or bool(called) or _OF_JUDGES.search(grid.columns[picked[k]]) is not None
    _ask(grid, picked, k, spec, why, is_sure)


def _refuse_columns_of_kinds(grid: Grid, picked: Sequence[int], layout: str | None) -> None:
    """Refuse columns such as Tea_rank and Tea_why, or Tea and Tea_why, of which one has ranks.

    Also 1st and 1st_points, of which one has names; names of items beside their ranks, as item_1
    and rank_1; and Q1_Tea and Q2_Tea, where each kind has ranks of its own: these are several
    questions.
    """
    of_one: dict[str, tuple[int, str, str]] = {}  # by pattern, where each kind has ranks
    for pattern, end in ((r"(.+)(?P<kind>[ _:.-]\w+)", 1), (r"(?P<kind>\w+?[ _:.-])(.+)", 0)):
        kinds: dict[str, dict[str, int]] = {}
        for k in picked:
            if (match := re.fullmatch(pattern, grid.columns[k].strip())) is not None:
                kinds.setdefault(match["kind"], {})[match[1 if end else 2]] = k
        stems = {stem for of_kind in kinds.values() for stem in of_kind}
        kinds[""] = {x: k for k in picked if (x := grid.columns[k].strip()) in stems}
        found = {kind: x for kind, x in kinds.items() if len(x) > 1}
        names = [set(x) for x in found.values()]
        if len(found) < 2 or any(x != names[0] for x in names):
            continue
        _refuse_items_beside_ranks(grid, [*found.values()])
        numbers = [numbers_of_ranks([grid.cells[k] for k in x.values()]) for x in found.values()]
        ranked = [(x > 0).any(1) for x in numbers]
        # a single question has each rank once in a row; what names the judges is asked first
        are_several = np.sum(sum(ranked) > 1) > 1 and all(
            (x >= 0).all() and (are_lists(x) == is_ranked).all() and is_ranked.any()
            for x, is_ranked in zip(numbers, ranked, strict=True)
        )
        are_several &= not any(OF_JUDGES.fullmatch(grid.columns[k]) for k in picked)
        # items with a word in common, such as teas, may be the only ones that all judges rank
        have_ranks = [bool(((x >= 0) & (x <= len(picked))).all()) for x in numbers]
        is_one = sum(have_ranks) == 1 and _are_ranks(numbers[have_ranks.index(True)])
        if not (are_several or is_one) or 2 * len(found) * len(names[0]) < len(picked):
            continue
        kind = [*found][have_ranks.index(True)]
        other = next(x for x in found if x != kind)
        # names of places are the answer; their numbers are points, or how sure it is
        have_names = bool((numbers[[*found].index(other)] < 0).any())
        are_places = layout == "orders" or all(
            x[-1].isdigit() or rank_of_header(x) for x in names[0]
        )
        is_about_names = have_names and are_places and not all(map(str.isdecimal, names[0]))
        if is_about_names and not are_several:
            kind, other = other, kind
        first, second = (grid.columns[min(found[x].values())] for x in (kind, other))
        pattern = f"*{kind}" if end else f"{kind}*"
        if are_several:
            of_one[pattern] = len(found), first, second
            continue
        picks = pattern if kind else [grid.columns[k] for k in found[kind].values()]
        raise RankingsError(
            f"{grid.header_place}: the columns seem to be of {len(found)} kinds, such as {first!r} "
            f"and {second!r}: pick those with the {'names' if is_about_names else 'ranks'} by "
            f"{option('columns', picks)}"
        )
    if of_one:
        (number, first, second), *_ = of_one.values()
        is_sure = len(of_one) == 1
        picks = " or ".join(option("columns", x, is_sure) for x in of_one)
        whole = option("columns", [grid.columns[k] for k in picked], False)
        raise RankingsError(
            f"{grid.header_place}: the columns seem to be of {number if is_sure else 'several'} "
            f"questions, such as {first!r} and {second!r}: pick those of one question, such as "
            f"those of the first by {picks}; {whole} if it is one question"
        )


def _are_ranks(numbers: np.ndarray) -> bool:
    """Return whether rows have the ranks 1, 2, …, perhaps with ties.

    Each has a 1, as a row of lists from top to bottom has seldom.
    """
    ranks = np.maximum(numbers, 0)
    has_first = (ranks == 1).any(1) | (ranks == 0).all(1)
    return bool(has_first.all()) and are_ranks_with_ties(ranks)


def _refuse_items_beside_ranks(grid: Grid, kinds: Sequence[Mapping[str, int]]) -> None:
    """Refuse columns of two kinds of which one has names of items, and the other has numbers.

    Most names are in several of the columns, and none is twice in a row, or none in a column.
    """
    numbers = [numbers_of_ranks([grid.cells[k] for k in x.values()]) for x in kinds]
    of_ranks = [k for k, x in enumerate(numbers) if (x >= 0).all() and (x > 0).any()]
    if len(kinds) != 2 or len(of_ranks) != 1:
        return
    ranks, items = kinds[of_ranks[0]], kinds[1 - of_ranks[0]]
    are_numbered = all(len(stem) == 1 or stem.isdecimal() for stem in items)
    if not are_numbered and _are_ranks(numbers[of_ranks[0]]):
        return  # the stems are the items, and the texts are remarks
    columns = [grid.cells[k] for k in items.values()]
    places = [{*x.values} - {""} for x in columns]
    again = [x for x, number in Counter(itertools.chain(*places)).items() if number > 1]
    # a row with two items that scored 2 and 0 is a game
    are_ranks = len(items) > 2 or bool(are_lists(numbers[of_ranks[0]]).all())
    is_across = are_ranks and not num_twice(columns)
    have_names = [~x.is_blank() for x in columns]
    have_ranks = [grid.cells[ranks[stem]].mapped(rank_number) > 0 for stem in items]
    are_same = all((x.mapped(str, object) == columns[0].mapped(str, object)).all() for x in columns)
    are_places = all(rank_of_header(x.name) for x in columns)  # such as rank_1, beside score_1
    if 2 * len(again) <= len(set().union(*places)) or are_same or are_places:
        return
    if any(map(has_twice, columns)) and not is_across:
        return
    if any((x & ~y).any() for x, y in zip(have_ranks, have_names, strict=True)):
        return
    first, second = (grid.columns[min(x.values())] for x in (items, ranks))
    raise RankingsError(
        f"{grid.header_place}: the columns seem to be names of items and their ranks beside one "
        f"another, such as {first!r} and {second!r}: write a row for each name and its rank, in "
        f"columns called judge, item and rank, such as 1,{next(filter(None, columns[0].values))},1,"
        f" which {option('layout', 'long', False)} reads"
    )


def _judges_beside_ranks(
    grid: Grid, picked: Sequence[int], numbers: np.ndarray
) -> tuple[int, str] | None:
    """Return a column of numbers that names the judges, or is about them, and what says so.

    An item may be called as judges are, too: with it, rows have the numbers 1, 2, … once each.
    """
    ranked = np.maximum(numbers[(numbers > 0).any(1)], 0)
    if int(are_lists(ranked).sum()) > _FEW_LISTS * len(ranked):
        return None
    are_ranks = are_ranks_with_ties(np.maximum(numbers, 0))
    tops = numbers.max(0)
    for k, x in enumerate(picked):
        name, own, most = grid.columns[x], numbers[:, k], np.delete(tops, k).max()
        if (own < 0).any() or "" in grid.cells[x].values:
            continue
        if OF_PEOPLE.fullmatch(name):
            return k, _CALLED
        if OF_JUDGES.fullmatch(name) and _FEWEST_ROWS <= len(own) == len(np.unique(own)):
            return k, _CALLED
        if len(own) >= _FEWEST_IN_ROW and are_in_row(own) and (k == 0 or own.max() > most):
            if not are_ranks:
                return k, "Its numbers count the rows"
        least = most if _OF_JUDGES.search(name) else 2 * most
        if len(own) >= _FEWEST_ROWS and 0 < least < own.min() < own.max():
            return k, "Its numbers are far above those of the others"
    return None


def _judges_beside_places(
    grid: Grid, picked: Sequence[int], numbers: np.ndarray
) -> tuple[int, str] | None:
    """Return a column that names the judges, not a place, and what says so."""
    texts = [{*grid.cells[k].values} - {""} for k in picked]
    are_places = [_PLACE.search(grid.columns[k]) is not None for k in picked]
    for k, own in enumerate(texts):
        others = [x for j, x in enumerate(texts) if are_places[j]]
        if are_places[k] or len(others) < 2:
            continue
        share = [any(x & y for y in others if y is not x) for x in others]
        is_known = own & set().union(*others)
        if all(share) and not is_known:
            return k, f"{_NO_NUMBER}, and its texts are in no other"
        # judges may be items, and the best may be called otherwise than 2 and 3
        name = grid.columns[picked[k]]
        digits = [re.findall(r"\d+", grid.columns[j]) for j in picked]
        least = min((int(x) for of_name in digits for x in of_name), default=1)
        is_best = least == 2 or rank_of_header(name) or _BEST.search(name)
        if (
            is_known
            and sum(map(bool, digits)) == len(picked) - 1
            and (numbers[:, k] < 0).all()
            and not is_best
        ):
            return k, _NO_NUMBER
    called = [k for k, x in enumerate(picked) if OF_JUDGES.fullmatch(grid.columns[x])]
    if len(called) == 1:
        return called[0], _CALLED
    own, *others = texts
    share = [any(x & y for y in others if y is not x) for x in others]
    differ = _FEWEST_IN_ROW <= len(own) == len(grid.numbers)
    if differ and all(share) and not own & set().union(*others):
        return 0, "Its texts all differ, and are in no other"
    return None


def _beside_race(table: Table, picked: Sequence[int], numbers: np.ndarray) -> int | None:
    """Return the first column of numbers that is of no race, where the others are of one."""
    is_of_race = np.array([_RACE in table.labels[k] for k in picked])
    if is_of_race.sum() < 2 or is_of_race.all() or are_lists(np.maximum(numbers, 0)).all():
        return None
    others = np.flatnonzero(~is_of_race & (numbers >= 0).all(0))
    return int(others[0]) if len(others) else None


def refuse_races(
    grid: Grid,
    headers: Sequence[Sequence[str]],
    numbers: Callable[[], np.ndarray],
    spec: QuestionSpec,
) -> None:
    """Refuse columns such as ``Mayor - Ann`` of several races, in each of which ranks begin at 1.

    Those such as ``Mayor!!Ann`` are refused in any case. With what becomes of ties, or the names of
    all items, they are items of one race.

    :param headers: what the columns are called, in one way or several.
    :param numbers: returns their ranks, (rows, columns), 0 or less for none.
    """
    if spec.ties is not None or spec.items is not None:
        return
    cuts = itertools.product(headers, _AFTER_RACE, (str.partition, str.rpartition))
    for texts, mark, cut in cuts:
        races: dict[str, list[int]] = {}
        for k, text in enumerate(texts):
            race, found, _ = cut(text, mark)
            races.setdefault(race if found else "", []).append(k)
        if len(races) < 2 or min(map(len, races.values())) < 2 or "" in races:
            continue
        if _are_ranked_apart(np.maximum(numbers(), 0), [*races.values()]):
            first, *others = races
            one, other = (shorten(x.strip(), _LENGTH) for x in (first, others[0]))
            way = option("items") if spec.rules is not None else option("ties", "exact", False)
            raise RankingsError(
                f"{grid.header_place}: the columns seem to be of {len(races)} races, such as "
                f"{one!r} and {other!r}, in each of which the ranks begin at 1: pick those of one "
                f"with {option('columns', f'{first}{mark}*')}; {way} if all are items of one"
            )


def _are_ranked_apart(numbers: np.ndarray, races: Sequence[Sequence[int]]) -> bool:
    """Return whether rows have the ranks 1, 2, … once each in several races."""
    of_races = [numbers[:, places] for places in races]
    ranked = np.array([(x > 0).any(1) for x in of_races])
    is_in_several = ranked.sum(0) > 1
    are_own = np.array([are_lists(x) for x in of_races]) | ~ranked
    have_second = min(int(x.max(initial=0)) for x in of_races) > 1
    number = int((are_own.all(0) & is_in_several).sum())
    return have_second and number >= max(1, _MOST_LISTS * is_in_several.sum())


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
    others = [grid.columns[x] for x in picked if x != picked[k]]
    if not column.name:
        raise RankingsError(
            f"{grid.header_place}: column {picked[k] + 1} has no name. {why}: add "
            f"{option('columns', others)} to leave it out, or write a name above it"
        )
    judge = next(filter(OF_JUDGES.fullmatch, others), None)  # it is asked about next
    spec = spec._replace(judge=spec.judge or judge)
    if all(x.startswith(column.name) for x in others):  # such as choice, choice.1, choice.2
        raise RankingsError(
            f"{grid.header_place}: is {column.name!r} part of the ranking? {why}. If it is, add "
            f"{option('columns', [grid.columns[x] for x in picked])}; if not, "
            f"{options_beside(column, spec, False)}"
        )
    raise RankingsError(
        f"{grid.header_place}: is {column.name!r} part of the ranking? {why}. If not, "
        f"{options_beside(column, spec, is_sure)}; {names} if it is"
    )
