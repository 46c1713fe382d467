"""Pairs with the number of comparisons that each of the two items has won."""

from collections.abc import Sequence

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.grids import Column, Grid, column_of_texts, whole_number
from numpyro_rankings.readers.headers import Table
from numpyro_rankings.readers.questions import QuestionSpec
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import option

_MOST = 10**7  # comparisons of judges


def by_wins(
    table: Table, picked: Sequence[int], spec: QuestionSpec
) -> tuple[Table, list[int], QuestionSpec, str]:
    """Make two rows of each, of which the first column names the item that is preferred.

    They have a column that counts the comparisons; with judges a row is there as often instead.

    :param picked: the two items, and the number of comparisons that each has won.
    """
    grid = table.grid
    one, two, *won = (grid.cells[k] for k in picked)
    if spec.counts is not None:
        raise RankingsError(
            f"{grid.header_place}: {won[0].name!r} and {won[1].name!r} count the comparisons: "
            f"leave out {option('count')}"
        )
    wins = np.stack([_numbers(grid, column) for column in won], axis=1)
    rows = np.repeat(np.arange(len(wins)), 2)
    is_second, counts = np.tile([False, True], len(wins)), wins.ravel()
    total = f"{int(counts.sum()):,}"
    if spec.judge is None:
        is_kept, times = counts > 0, np.ones(len(counts), int)
    elif counts.sum() > _MOST:
        raise RankingsError(
            f"{grid.name}: {total} comparisons of judges; at most {_MOST:,} can be read"
        )
    else:
        is_kept, times = counts > 0, counts
    entries = np.repeat(np.flatnonzero(is_kept), times[is_kept])
    rows, is_second, counts = rows[entries], is_second[entries], counts[entries]
    texts = [x.mapped(str, object)[rows] for x in (one, two)]
    new = grid.keep(rows)
    cells = list(new.cells)
    for k, (first, second) in zip(picked[:2], (texts, texts[::-1]), strict=True):
        swapped = np.where(is_second, second, first).tolist()
        cells[k] = column_of_texts(grid.columns[k], swapped)
    if spec.judge is None:
        cells[picked[2]] = column_of_texts(won[0].name, map(str, counts.tolist()))
        spec = spec._replace(counts=won[0].name)
    note = (
        f"each line is as many comparisons as {won[0].name!r} says in which {one.name!r} is "
        f"preferred, and as {won[1].name!r} says in which {two.name!r} is: {total} in "
        f"{plural(len(wins), 'line')}"
    )
    return table._replace(grid=new._replace(cells=cells)), list(picked[:2]), spec, note


def _numbers(grid: Grid, column: Column) -> np.ndarray:
    """Return how many comparisons a column says, 0 for an empty cell, (rows,) int."""
    for text in column.values:
        number = whole_number(text) if text else 0
        if number is None or number < 0:
            raise RankingsError(
                f"{grid.at_text(column, text)}: expected how many comparisons were won, a whole "
                f"number from 0, got {text[:40]!r}; if the column says something else, leave it "
                f"out by {option('columns')}"
            )
    return column.mapped(lambda text: whole_number(text) or 0, int)
