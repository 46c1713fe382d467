"""Tables whose judges are the columns: they are recognised, asked about, and turned."""

import itertools
import re
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_counted
from numpyro_rankings.readers.answers import numbers_in, rank_in_words, rank_of_header
from numpyro_rankings.readers.grids import Column, Grid, column_of_texts, place_of
from numpyro_rankings.readers.headers import Table
from numpyro_rankings.readers.lists import are_ranks_with_ties
from numpyro_rankings.readers.questions import QuestionSpec, meaning_of_header
from numpyro_rankings.words.options import option

_MOST_ROWS = 10_000  # items or places
_PLACES = re.compile(
    r"(?:place|rank(?:ing)?|pos(?:ition)?\.?|no\.?|nr\.?|number|#|platz|rang|choice|finish)", re.I
)


def turn(
    table: Table, picked: Sequence[int], spec: QuestionSpec
) -> tuple[Table, list[int], QuestionSpec, str]:
    """Make each of the columns that are picked a row, whose judge has the name of the column.

    The column of ``spec.judge``, by default the first one, has the names of the new columns. Where
    all columns are lists of names, these are places.
    """
    grid = table.grid
    if spec.about or spec.counts or spec.weights or spec.item or spec.rank:
        raise RankingsError(
            f"{option('transpose', True)} goes with {option('judge')} and {option('columns')}, not "
            "with options that name other columns: judges are the columns"
        )
    beside = [k for k in range(len(grid.cells)) if k not in picked]
    are_all = not (spec.judge or beside) and _are_lists([grid.cells[k] for k in picked])
    first = grid.columns.index(spec.judge) if spec.judge else (*beside, *picked)[0]
    judges = [k for k in picked if are_all or k != first]
    names, source = grid.cells[first], [grid.cells[k] for k in judges]
    cells = [column_of_texts("judge", [table.labels[k] for k in judges])]
    cells += [
        column_of_texts(
            str(row + 1) if are_all else names.text(row), [column.text(row) for column in source]
        )
        for row in range(len(grid.numbers))
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
    note += "" if are_all else f"; the column {names.name!r} names what they rank"
    spec = spec._replace(judge="judge", patterns=())
    table = Table(turned, words, [(x,) for x in words], table.notes)
    return table, list(range(1, len(cells))), spec, note


def refuse_judges_in_columns(
    grid: Grid, picked: Sequence[int], spec: QuestionSpec, layout: str | None
) -> None:
    """Refuse a table that is read across, and seems to have the lists from top to bottom."""
    is_other = layout in ("long", "cell", "marks") or spec.is_turned is not None
    if is_other or not 1 < len(grid.numbers) < _MOST_ROWS:
        return
    columns = [grid.cells[k] for k in picked if grid.cells[k].name]
    are_places = [rank_of_header(x.name) and not x.name.isdecimal() for x in columns]
    if all(are_places) or (len(columns) > 2 and all(are_places[1:])):
        return
    if spec.judge is None and len(columns) > 1 and not (numbers_in(columns[:1]) > 0).any():
        if layout in (None, "orders") and _are_lists(columns) and _num_twice(columns):
            _ask(grid, columns, "have no name twice, and rows have")
        columns = columns[1:]
    if len(columns) < 2:
        return
    is_said_how = spec.ties is not None or spec.highest_first is not None
    has_ids = spec.judge is None and meaning_of_header(columns[0], spec) == "judge"
    _refuse_ranks_down(grid, columns[has_ids:], layout, is_said_how)
    if layout != "ranks":
        first = columns[0] if spec.judge is None else grid.column(spec.judge)
        others = [x for x in columns if x is not first]
        _refuse_names_down(grid, first, others, spec, layout)


def _has_twice(column: Column) -> bool:
    """Return whether a column has a text twice."""
    return max(column.keep(~column.is_blank()).counts().values(), default=0) > 1


def _are_lists(columns: Sequence[Column]) -> bool:
    """Return whether columns are lists of some names in common, none twice in a column."""
    texts = [{*column.values} - {""} for column in columns]
    have_ranks = any(rank_in_words(x) is not None for of_column in texts for x in of_column)
    share_names = all(x & y for x, y in itertools.pairwise(texts))
    return not have_ranks and share_names and not any(map(_has_twice, columns))


def _num_twice(columns: Sequence[Column]) -> int:
    """Return the number of rows with a text twice."""
    rows = zip(*(column.mapped(str, object) for column in columns), strict=True)
    return sum(len({*x} - {""}) < sum(map(bool, x)) for x in rows)


def _refuse_ranks_down(
    grid: Grid, columns: Sequence[Column], layout: str | None, is_said_how: bool
) -> None:
    """Refuse columns that have the ranks 1, 2, …, once each, where rows have not.

    These are half of the rows, unless each cell has a rank. A third of the columns may be odd,
    too, such as those with ties.
    """
    numbers = numbers_in(columns)
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
            _refuse_ties_down(grid, columns, numbers)
        return
    ordered = np.sort(numbers, axis=1)
    is_odd = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] > 0)).any(1)
    if layout == "ranks":
        is_odd |= ordered[:, -1] > len(columns)
    num_odd, is_whole = int(is_odd.sum()), (numbers > 0).all() and num_lists == len(columns)
    if num_odd and (is_whole or 2 * num_odd >= (ordered[:, -1] > 0).sum()):
        most = numbers[numbers <= len(numbers)].max()
        _ask(grid, columns, f"have ranks from 1 to {most} once each, and the rows have not")


def _refuse_ties_down(grid: Grid, columns: Sequence[Column], numbers: np.ndarray) -> None:
    """Refuse columns that all have ranks with a few ties, where most rows have no ranks.

    Ratings could be ranks with many ties, too, and are not meant: they are no orderings.
    """
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
        _ask(grid, columns, f"have ranks from 1 to {most} with ties, and most rows have not")


def _refuse_names_down(
    grid: Grid,
    first: Column,
    others: Sequence[Column],
    spec: QuestionSpec,
    layout: str | None,
) -> None:
    """Refuse columns of names below one another, beside the numbers of their places."""
    if len(others) < 2 or (numbers_in(others) > 0).any():
        return
    ranks = [rank_in_words(text) for text in first.values]
    places = [0 if rank is None else rank[0] for rank in ranks]
    is_in_order = len(ranks) == len(first.codes) and (
        min(places, places[::-1]) == list(range(1, len(places) + 1))
    )
    if is_in_order and spec.judge is None:
        also = f"; if these are the judges, add {option('judge', first.name)}"
        also = "" if _PLACES.fullmatch(first.name) else also
        why = f"have names beside the numbers of the rows in {first.name!r}"
        if meaning_of_header(first, spec) == "judge":  # the likely answer comes first
            why, also = why + also, ""
        _ask(grid, others, why, also)
    if any(map(_has_twice, others)):
        return
    is_twice = 2 * _num_twice(others) >= len(first.codes)
    if (is_in_order and _PLACES.fullmatch(first.name)) or (is_twice and layout == "orders"):
        _ask(grid, others, "have no name twice, as the lists of judges")


def _ask(grid: Grid, columns: Sequence[Column], why: str, also: str = "") -> NoReturn:
    shown = names_counted([repr(column.name) for column in columns], 3)
    raise RankingsError(
        f"{grid.header_place}: the columns {shown} {why}: if each column is a judge, add "
        f"{option('transpose', True)}{also}; {option('transpose', False)} if each row is one"
    )
