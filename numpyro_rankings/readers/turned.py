"""Tables whose judges are the columns: they are recognised, asked about, and turned."""

import itertools
import re
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_counted
from numpyro_rankings.readers.answers import (
    cells_are_ranks,
    joint_ranks,
    numbers_in,
    numbers_of_ranks,
    places_in_order,
    rank_in_words,
    rank_of_header,
    with_places_in_words,
)
from numpyro_rankings.readers.grids import Column, Grid, column_of_texts, place_of, whole_number
from numpyro_rankings.readers.headers import Table, is_called_total
from numpyro_rankings.readers.lists import are_ranks_with_ties
from numpyro_rankings.readers.questions import QuestionSpec, is_called_as_counts, meaning_of_header
from numpyro_rankings.words import by_number
from numpyro_rankings.words.options import option

_MOST_ROWS = 10_000  # items or places
_POINTS = re.compile(r"(?:(?:jury|tele)?[ _-]?)?(?:points?|pts\.?|punkte|scores?)", re.I)
_YEARS = range(1900, 2100)
_PLACES = re.compile(
    r"(?:place|rank(?:ing)?|pos(?:ition)?\.?|no\.?|nr\.?|number|#|platz|rang|choice|finish)", re.I
)
# names of columns that say something of the items, or sum up what the judges say
_OF_ITEMS = re.compile(
    r"(?:year|vintage|price|cost|weight|size|category|type|brand|country|region|origin|abv|total|"
    r"sum|mean|average|avg|overall|consensus)s?",
    re.I,
)
# what columns behind those of judges may be called, too
_OF_RESULT = re.compile(r"(?:final[\W_]*)?(?:place|rank|position|pos|result|score|points)\.?", re.I)
_JUDGES = (
    "judge|juror|critic|taster|rater|reviewer|assessor|evaluator|voter|respondent|annotator|"
    "panell?ist"
)
_OF_JUDGES = re.compile(rf"(?:.*[\W_])?(?:{_JUDGES})s?(?:[\W_].*)?", re.I)
# what the column of one judge is called
_OF_ONE_JUDGE = re.compile(rf"(?:.*[\W_])?(?:{_JUDGES})(?:[\W_]*\d+|[\W_]+(?-i:[A-Z]))", re.I)
_ITEMS = re.compile(
    r"(?:item|option|candidate|alternative|product|object)s?(?:[\W_]?(?:id|no|nr|name))?", re.I
)
# numbers of judges above a column, with a word or without
_COUNT = re.compile(
    r"(n\s*=\s*)?(\d{1,9})\s*([x×]|voters?|votes?|ballots?|judges?|people|persons?|respondents?)?",
    re.I,
)


def turn(
    table: Table, picked: Sequence[int], spec: QuestionSpec
) -> tuple[Table, list[int], QuestionSpec, str]:
    """Make each of the columns that are picked a row, whose judge has the name of the column.

    The column of ``spec.judge``, by default the first one, has the names of the new columns. Where
    all columns are lists of names, these are places.
    """
    grid = table.grid
    if spec.counts or spec.weights or spec.item or spec.rank:
        raise RankingsError(
            f"{option('transpose', True)} goes with {option('judge')} and {option('columns')}, not "
            f"with options that name other columns, but {option('about')}, which leaves them out: "
            "judges are the columns"
        )
    grid, numbers = _without_counts(grid, spec)
    sums = np.setdiff1d(table.grid.numbers, grid.numbers) if not numbers else ()
    if not spec.patterns:
        _refuse_columns_of_items(grid, picked, spec)
    about = [k for k, name in enumerate(grid.columns) if name in spec.about]
    beside = [k for k in range(len(grid.cells)) if k not in picked and k not in about]
    are_all = not (spec.judge or beside) and _are_lists([grid.cells[k] for k in picked])
    first = grid.columns.index(spec.judge) if spec.judge else (*beside, *picked)[0]
    judges = [k for k in picked if are_all or k != first]
    names, labels = grid.cells[first], [table.labels[k] for k in judges]
    counts = [numbers[k] for k in judges] if numbers else []
    counts = counts or _counts_above(grid, labels, "" if are_all else names.name, spec)
    none = [repr(grid.columns[k]) for k, x in zip(judges, counts, strict=False) if not x]
    if none:
        judges = [k for k, x in zip(judges, counts, strict=True) if x]
        labels = [x for x, number in zip(labels, counts, strict=True) if number]
        counts = [x for x in counts if x]
    source = [grid.cells[k] for k in judges]
    points = [] if are_all else _falling_points(names)
    are_places = are_all or bool(points)
    cells = [column_of_texts("count" if counts else "judge", map(str, counts or labels))]
    cells += [
        column_of_texts(
            str(place) if are_places else names.text(row), [column.text(row) for column in source]
        )
        for place, row in enumerate(points or range(len(grid.numbers)), 1)
    ]
    turned = Grid(
        grid.name,
        cells,
        np.array(judges, int) + 1,
        place_of(grid.name, ": column {}"),
        grid.name if are_all else f"{grid.name}: column {first + 1}",
        grid.notes,
    )
    words = turned.columns
    shown = names_counted([column.name for column in source])
    note = f"the judges are the columns {shown}"
    note += f", which {'a row counts' if numbers else 'their names count'}" if counts else ""
    named = f"; the column {names.name!r} names what they rank"
    named = f"; the places are in the order of {names.name!r}, the most first" if points else named
    note += "" if are_all else named
    note += f"; left out, counted 0: {names_counted(none)}" if none else ""
    note += "".join(f"; left out, the sums of the others: {grid.place.format(k)}" for k in sums)
    note += f"; left out, no judges: {names_counted([*map(repr, spec.about)])}" if about else ""
    by = {"judge": None, "counts": "count"} if counts else {"judge": "judge"}
    spec = spec._replace(patterns=(), about=(), **by)
    table = Table(turned, words, [(x,) for x in words], table.notes)
    return table, list(range(1, len(cells))), spec, note


def _without_counts(grid: Grid, spec: QuestionSpec) -> tuple[Grid, list[int]]:
    """Take off the first or the last row if it counts the judges of each column, and return these.

    It is called so, and its numbers are above those of the rows, or the others are ranks without
    it, or names. The first cell has none, 0. Sums of the others are taken off, too, and are none.
    """
    names = grid.cells[0] if spec.judge is None else grid.column(spec.judge)
    others = [x for x in grid.cells if x is not names]
    for row in (0, len(grid.numbers) - 1):
        called, texts = names.text(row), [x.text(row) for x in others]
        if not (is_called_as_counts(called) or is_called_total(called)) or len(texts) < 2:
            continue
        if not all(map(str.isdecimal, texts)) or len(grid.numbers) < 3:
            continue
        rest = grid.keep(np.arange(len(grid.numbers)) != row)
        letters = sum(len(x) == 1 and x.isalpha() for x in names.values)
        if len(called) == 1 and letters > 1:  # an item
            continue
        said = np.array([*map(int, texts)])
        numbers = numbers_of_ranks([x for x in rest.cells if x.name != names.name])
        if (said == numbers.sum(0)).all():
            return rest, []
        are_names = 2 * (numbers < 0).sum() > numbers.size
        is_beside = are_ranks_with_ties(np.maximum(numbers, 0).T)
        is_beside &= bool((said != (numbers > 0).sum(0) + 1).any())  # else it may be the last item
        if said.max() > len(grid.numbers) or are_names or is_beside:
            return rest, [whole_number(x.text(row)) or 0 for x in grid.cells]
    return grid, []


def _counts_above(grid: Grid, labels: Sequence[str], name: str, spec: QuestionSpec) -> list[int]:
    """Return how many judges each column stands for, if the names of the columns say it.

    Numbers alone are asked about, unless they rise, as numbers of judges do, or **name**, that of
    the column beside, says what they are; so does who says which column that is.
    """
    numbers, are_sure = _numbers_above(labels)
    if spec.header_counts:
        if not any(numbers):
            raise RankingsError(
                f"{grid.header_place}: {option('header', 'counts')} is for names of columns that "
                f"count judges, such as 12, got {names_counted([*map(repr, labels)], 3)}"
            )
        return numbers
    if not numbers or spec.header_counts is False:
        return []
    if are_sure or (any(numbers) and is_called_as_counts(name)):
        return numbers
    if may_count(labels) and spec.judge is None:
        # three digits are more often of names, and a wrong answer would not be seen
        is_likely = min(numbers) < 100
        are_ids = min(numbers) >= 100 > max(numbers) - min(numbers)
        raise RankingsError(
            f"{grid.header_place}: the columns are called {names_counted(list(labels), 5)}: add "
            f"{option('header', 'counts', is_likely)} if that many judges gave each order, or "
            f"{option('header_rows', 1, are_ids)} if these are names of judges"
        )
    return []


def _numbers_above(labels: Sequence[str]) -> tuple[list[int], bool]:
    """Return the numbers that columns are called, and whether words say that they are counts."""
    matches = [_COUNT.fullmatch(label.strip()) for label in labels]
    if None in matches:
        return [], False
    numbers = [int(x[2]) for x in matches if x is not None]
    are_sure = any(numbers) and all(x[1] or x[3] for x in matches if x is not None)
    return numbers, are_sure


def may_count(labels: Sequence[str]) -> bool:
    """Return whether names of columns may count judges: numbers that do not rise, and no years."""
    numbers, _ = _numbers_above(labels)
    if all(x in _YEARS for x in numbers):
        return False
    return (
        len(numbers) > 1
        and (min(numbers) > 0 or max(numbers) > len(numbers))
        and any(x >= y for x, y in itertools.pairwise(numbers))
    )


def _falling_points(names: Column) -> list[int]:
    """Return the rows in the order of the points in a column of these, or nothing."""
    numbers = numbers_in([names])[:, 0]
    are_points = _POINTS.fullmatch(names.name) is not None and len(set(numbers)) == len(numbers)
    return np.argsort(-numbers).tolist() if are_points and (numbers >= 0).all() else []


def refuse_judges_in_columns(
    grid: Grid, picked: Sequence[int], spec: QuestionSpec, layout: str | None
) -> None:
    """Refuse a table that is read across, and seems to have the lists from top to bottom."""
    is_other = layout in ("long", "cell", "marks") or spec.is_turned is not None
    if is_other or not 1 < len(grid.numbers) < _MOST_ROWS:
        return
    grid, _ = _without_counts(grid, spec)
    columns = [grid.cells[k] for k in picked if grid.cells[k].name]
    first = grid.cells[0]
    if 0 in picked and not first.name and not all(map(str.isdecimal, first.values)):
        columns = [first] * places_in_order(first.values) + columns
    if joint := joint_ranks({text for column in columns for text in column.values}):
        columns = [x.with_texts(lambda text: str(joint.get(text, text))) for x in columns]
    called = [x.name for x in columns if not x.name.isdecimal()]
    places = {x: rank for x in called if (rank := rank_of_header(x))}
    places = with_places_in_words(places, called) if places else {}
    if 2 * len(places) > len(columns):
        return
    if spec.judge is None and len(columns) > 1 and not _has_ranks(columns[0]):
        if layout in (None, "orders") and _are_lists(columns):
            if num_twice(columns):
                _ask(grid, columns, "have no name twice, and rows have")
            if layout is None and _may_count_orders([x.name for x in columns]):
                _ask(grid, columns, "have no name twice, below numbers that may count judges")
        columns = columns[1:]
    if len(columns) < 2:
        return
    is_said_how = spec.ties is not None or spec.highest_first is not None
    has_ids = spec.judge is None and meaning_of_header(columns[0], spec) == "judge"
    names, judges = _apart(grid, picked, spec)
    is_open = layout is None and spec.judge is None
    may_be_turned = layout is None
    if layout == "ranks" and names is not None:
        numbers = numbers_of_ranks(columns[has_ids:])
        may_be_turned = bool((numbers < 0).any()) or not are_ranks_with_ties(numbers)
    if may_be_turned and names is not None and len(judges) > 1:
        _refuse_ranks_down(grid, judges, layout, is_said_how, names, is_open)
    others = columns[has_ids:]
    is_open &= len(others) < len(grid.cells)
    _refuse_ranks_down(grid, others, layout, is_said_how, may_be_counts=is_open)
    if layout in (None, "ranks"):
        if names is None:
            judges = others
        _refuse_called_judges(grid, judges, names, spec)
    if layout != "ranks":
        first = columns[0] if spec.judge is None else grid.column(spec.judge)
        others = [x for x in columns if x is not first]
        _refuse_names_down(grid, first, others, spec, layout)


def _has_ranks(column: Column) -> bool:
    """Return whether a column has numbers, or nothing but ranks such as 1st."""
    are_ranks = all(rank_in_words(x) for x in column.values if x) and any(column.values)
    are_ranks |= places_in_order(column.values)
    return are_ranks or bool((numbers_in([column]) > 0).any())


def _may_count_orders(labels: Sequence[str]) -> bool:
    """Return whether numbers above columns of names may count judges, and are no places."""
    numbers, _ = _numbers_above(labels)
    return may_count(labels) and sorted(numbers) != list(range(1, len(numbers) + 1))


def _apart(
    grid: Grid, picked: Sequence[int], spec: QuestionSpec
) -> tuple[Column | None, list[Column]]:
    """Return the column that names the items, and those of judges, if there are others beside.

    These are at both ends: of texts, such as a category, of numbers above that of the rows, such as
    a year, or called as what is known of items. The names of the items all differ.
    """
    columns = [grid.cells[k] for k in picked if grid.cells[k].name]
    beside = []
    for end in (0, -1):
        while len(columns) > 2 and (
            _is_of_items(columns[end]) or (end and _OF_RESULT.fullmatch(columns[end].name))
        ):
            beside.append(columns.pop(end))
    if any(map(_is_of_items, columns)):
        return None, columns
    texts = beside if spec.judge is None else [grid.column(spec.judge)]
    is_said = bool(spec.judge and spec.patterns)
    names = next((x for x in texts if len(x.values) == len(x.codes) and not _has_ranks(x)), None)
    return (names if len(beside) > (spec.judge is None) or is_said else None), columns


def _is_of_items(column: Column) -> bool:
    """Return whether a column has no ranks of a judge, but what is known of items."""
    numbers = numbers_of_ranks([column])[:, 0]
    are_texts = 2 * ((numbers < 0) | (numbers > len(numbers))).sum() > (numbers != 0).sum()
    if are_texts or _OF_ITEMS.fullmatch(column.name) is None:
        return bool(are_texts)
    return sorted(numbers) != list(range(1, len(numbers) + 1))


def _refuse_columns_of_items(grid: Grid, picked: Sequence[int], spec: QuestionSpec) -> None:
    """Refuse to take columns of years, prices and the like for judges."""
    names, judges = _apart(grid, picked, spec)
    if names is not None and len(judges) > 1:
        others = [repr(grid.columns[k]) for k in picked]
        others = [x for x in others if x not in {repr(y.name) for y in (names, *judges)}]
        verb = by_number(len(others), "seems", "seem")
        raise RankingsError(
            f"{grid.header_place}: {names_counted(others, 3)} {verb} to be about the items, and no "
            f"judges: add {option('judge', names.name)} and "
            f"{option('columns', [x.name for x in judges])}"
        )


def has_twice(column: Column) -> bool:
    """Return whether a column has a text twice."""
    return max(column.keep(~column.is_blank()).counts().values(), default=0) > 1


def _are_lists(columns: Sequence[Column]) -> bool:
    """Return whether columns are lists of some names in common, none twice in a column."""
    texts = [{*column.values} - {""} for column in columns]
    have_ranks = any(rank_in_words(x) is not None for of_column in texts for x in of_column)
    share_names = all(x & y for x, y in itertools.pairwise(texts))
    return not have_ranks and share_names and not any(map(has_twice, columns))


def num_twice(columns: Sequence[Column]) -> int:
    """Return the number of rows with a text twice."""
    rows = zip(*(column.mapped(str, object) for column in columns), strict=True)
    return sum(len({*x} - {""}) < sum(map(bool, x)) for x in rows)


def _refuse_ranks_down(
    grid: Grid,
    columns: Sequence[Column],
    layout: str | None,
    is_said_how: bool,
    names: Column | None = None,
    may_be_counts: bool = False,
) -> None:
    """Refuse columns that have the ranks 1, 2, …, once each, where rows have not.

    These are half of the rows, unless each cell has a rank. A third of the columns may be odd,
    too, such as those with ties. **names** has the names of the items, where there are further
    columns. **may_be_counts** is whether numbers above the columns are asked about.
    """
    numbers = numbers_of_ranks(columns)
    num_lists = 0
    for column, of_column in zip(columns, numbers.T, strict=True):
        ranks = of_column[of_column > 0]
        is_rank = ranks <= len(of_column)
        if 2 * is_rank.sum() < (~column.is_blank()).sum():
            return
        is_list = 1 < len(ranks) == len(np.unique(ranks)) and is_rank.all()
        num_lists += is_list and ranks.min() == 1
    if 3 * num_lists < 2 * len(columns):
        if not is_said_how:
            _refuse_ties_down(grid, columns, numbers, names)
        return
    ordered = np.sort(numbers, axis=1)
    is_odd = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] > 0)).any(1)
    if layout == "ranks":
        is_odd |= ordered[:, -1] > len(columns)
    num_odd, is_whole = int(is_odd.sum()), (numbers > 0).all() and num_lists == len(columns)
    are_all = num_lists == len(columns) > 2
    if num_odd and (is_whole or are_all or 2 * num_odd >= (ordered[:, -1] > 0).sum()):
        most = numbers[numbers <= len(numbers)].max()
        _ask(grid, columns, f"have ranks from 1 to {most} once each, and the rows have not", names)
    if may_be_counts and is_whole and _may_count_orders([x.name for x in columns]):
        _ask(grid, columns, "have ranks once each, below numbers that may count judges", names)


def _refuse_called_judges(
    grid: Grid, columns: Sequence[Column], names: Column | None, spec: QuestionSpec
) -> None:
    """Refuse columns of numbers that are called as judges, or have ranks once each beside items.

    The rows may have ranks once each, too. **names** has the names of the items, where there are
    columns beside those of ranks.
    """
    called = [x for x in grid.cells if _OF_ONE_JUDGE.fullmatch(x.name) and spec.may_pick(x.name)]
    free = [x for x in grid.cells if x.name not in {*spec.special, *(y.name for y in called)}]
    beside = free if spec.judge is None else [grid.column(spec.judge)]
    of_items = [x for x in beside if len(x.values) == len(x.codes) and not _has_ranks(x)]
    first = next((x for x in of_items if not _OF_JUDGES.fullmatch(x.name)), None)
    if first is None or any(_OF_JUDGES.fullmatch(x.name) for x in beside):
        return
    texts = [x for column in called for x in column.values if x]
    if len(called) > 1 and 2 * sum(x[0].isdigit() for x in texts) > len(texts):
        others = [x.name for x in free]
        is_alone = not others or (spec.judge is None and others == grid.columns[:1])
        _ask(grid, called, "are called as judges are", None if is_alone else first, are_rows=False)
    expected = np.arange(1, len(first.codes) + 1)[:, None]
    if _ITEMS.fullmatch(first.name) and (np.sort(numbers_of_ranks(columns), 0) == expected).all():
        why = f"have ranks once each, beside the names in {first.name!r}"
        _ask(grid, columns, why, names, are_rows=False)


def _refuse_ties_down(
    grid: Grid, columns: Sequence[Column], numbers: np.ndarray, names: Column | None
) -> None:
    """Refuse columns that all have ranks with a few ties, where most rows have no ranks.

    Ratings could be ranks with many ties, too, and are not meant: they are no orderings.
    """
    numbers = np.maximum(numbers, 0) if 4 * (numbers < 0).sum() < numbers.size else numbers
    if (numbers < 0).any() or len(columns) < 2 or not 3 <= len(numbers) <= 1.5 * numbers.max():
        return
    num_distinct = sum(len({*of_column} - {0}) for of_column in numbers.T.tolist())
    if not (numbers > 0).sum(0).all() or 3 * num_distinct < 2 * (numbers > 0).sum():
        return
    if not are_ranks_with_ties(numbers.T):
        return
    num_wrong = sum(not are_ranks_with_ties(row[None]) for row in numbers)
    if 2 * num_wrong >= len(numbers):
        most = numbers.max()
        _ask(grid, columns, f"have ranks from 1 to {most} with ties, and most rows have not", names)


def _refuse_names_down(
    grid: Grid,
    first: Column,
    others: Sequence[Column],
    spec: QuestionSpec,
    layout: str | None,
) -> None:
    """Refuse columns of names below one another, beside the numbers of their places."""
    if len(others) < 2 or (numbers_of_ranks(others) > 0).any() or cells_are_ranks(others, ()):
        return
    is_in_order = len(first.values) == len(first.codes) and places_in_order(first.values)
    if is_in_order and spec.judge is None:
        also = f"; if these are the judges, add {option('judge', first.name)}"
        are_places = not any(map(str.isdecimal, first.values)) or _PLACES.fullmatch(first.name)
        also = "" if are_places else also
        why = f"have names beside the numbers of the rows in {first.name!r}"
        called = [x.name for x in others if not x.name.isdecimal()]
        have_places = sum(rank_of_header(x) is not None for x in called) > 1
        if have_places or meaning_of_header(first, spec) == "judge":  # the likely answer is first
            why, also = why + also, ""
        _ask(grid, others, why, also=also)
    if any(map(has_twice, others)):
        return
    is_twice = 2 * num_twice(others) >= len(first.codes)
    are_numbers = len(first.values) == len(first.codes) > 2 and (numbers_in([first]) > 0).all()
    has_points = bool(_falling_points(first)) or (is_twice and are_numbers and layout is None)
    if has_points and spec.judge is None:
        _ask(grid, others, f"have no name twice, as lists below one another beside {first.name!r}")
    if (is_in_order and _PLACES.fullmatch(first.name)) or (is_twice and layout == "orders"):
        _ask(grid, others, "have no name twice, as the lists of judges")


def _ask(
    grid: Grid,
    columns: Sequence[Column],
    why: str,
    names: Column | None = None,
    also: str = "",
    are_rows: bool = True,
) -> NoReturn:
    """Ask whether columns are judges; **are_rows** is whether rows may be tried for them, too."""
    shown = names_counted([repr(column.name) for column in columns], 3)
    how = option("transpose", True)
    if names is not None:
        judges = option("columns", [column.name for column in columns])
        how = f"{option('judge', names.name)}, {judges} and {how}"
    raise RankingsError(
        f"{grid.header_place}: the columns {shown} {why}: if each column is a judge, add "
        f"{how}{also}; {option('transpose', False, are_rows)} if each row is one"
    )
