"""Questions of survey tools that are no rankings: ticks, ratings, and rows of sums."""

import itertools
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.answers import numbers_in
from numpyro_rankings.readers.grids import Column, Grid
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import option

_SHOWN = 3  # columns in a message
_TICKS = set(
    "x|✓|✔|yes|true|checked|ticked|selected|y|on|no|false|unchecked|not selected".split("|")
)


def refuse_other_questions(grid: Grid, columns: Sequence[Column]) -> None:
    """Refuse columns of ticks, of ratings, and of sums below the ranks."""
    texts = [{x for x in column.values if x} for column in columns]
    names = [column.name for column in columns]
    ticked = all(map(_is_of_ticks, texts, names)) and any(texts)
    numbers = numbers_in(columns)
    listed = (numbers > 0).sum(1)
    if ticked or (numbers.max() == 1 and numbers.min() >= 0 and (listed > 1).any()):
        is_ticked = np.stack([~column.is_blank() for column in columns], axis=1)
        _refuse_ticks(grid, columns, is_ticked.sum(1) > 1 if ticked else listed > 1)
    _refuse_ranks_from_0(grid, columns, numbers)
    ordered = np.sort(numbers, axis=1)
    is_tied = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] > 0)).any(1)
    if is_tied.sum() > 1 and 2 * is_tied.sum() >= (listed > 1).sum():
        row = int(np.argmax(is_tied))
        of_row = numbers[row].tolist()
        k, i = next(
            (k, i)
            for k, i in itertools.combinations(range(len(names)), 2)
            if of_row[k] == of_row[i] > 0
        )
        raise RankingsError(
            f"{grid.where(row)}: {names[k]!r} and {names[i]!r} both have {of_row[k]}, and in "
            f"{int(is_tied.sum()):,} of {plural(int((listed > 1).sum()), 'row')} a number comes "
            "twice, as in ratings; ranks are needed: ties are not supported"
        )
    _refuse_sums(grid, columns, numbers)


def _refuse_ranks_from_0(grid: Grid, columns: Sequence[Column], numbers: np.ndarray) -> None:
    """Refuse ranks 0, 1, …, where 0 may mean the first choice, or that an item is not ranked."""
    is_zero = (numbers == 0) & ~np.stack([column.is_blank() for column in columns], axis=1)
    is_listed = (numbers > 0).any(1) | is_zero.any(1)
    if is_listed.any() and (is_zero.sum(1) == is_listed).all():
        row = int(np.argmax(is_listed))
        name = columns[int(np.argmax(is_zero[row]))].name
        raise RankingsError(
            f"{grid.where(row)}: column {name!r}: expected a rank, a whole number from 1, or "
            "nothing, got '0', as once in every row: add 1 to the ranks if they start at 0; add "
            f"{option('missing', '0')} if 0 means that the item is not ranked"
        )


def refuse_ticks(grid: Grid, columns: Sequence[Column]) -> None:
    """Refuse columns of places of which each has one item only, with holes between them."""
    texts = [[x for x in column.values if x] for column in columns]
    is_blank = np.stack([column.is_blank() for column in columns], axis=1)
    has_hole = (is_blank[:, :-1] & ~is_blank[:, 1:]).any(1)
    if all(len(x) == 1 for x in texts) and len({x[0] for x in texts}) > 1 and has_hole.any():
        _refuse_ticks(grid, columns, has_hole)


def _refuse_ticks(grid: Grid, columns: Sequence[Column], rows: np.ndarray) -> NoReturn:
    row = int(np.argmax(rows))
    said = [f"{x.name!r} is {x.text(row) or 'empty'!r}" for x in columns[:_SHOWN]]
    raise RankingsError(
        f"{grid.where(row)}: {', '.join(said)}: the columns say which items were chosen, not in "
        f"which order; pick the columns of a ranking with {option('columns')}, or write one column "
        "for each item, with its rank"
    )


def _is_of_ticks(texts: set[str], name: str) -> bool:
    """Return whether a column says in each row that its item was chosen, or that it was not."""
    words = {x.casefold() for x in texts}
    return words <= _TICKS or words == {name.casefold()} or (words <= {"0", "1"} and "0" in words)


def _refuse_sums(grid: Grid, columns: Sequence[Column], numbers: np.ndarray) -> None:
    """Refuse a last row with the sums or the means of the others."""
    last = len(numbers) - 1
    if last < 2:
        return
    above = np.maximum(numbers[:-1], 0)
    try:
        row = np.array([float(column.text(last).replace(",", ".") or 0) for column in columns])
    except ValueError:
        return
    sums, counts = above.sum(0), np.maximum((above > 0).sum(0), 1)
    for name, totals in (("sums", sums), ("means", sums / counts)):
        if np.allclose(row, totals, atol=0.006) and (row.max() > len(columns) or (row % 1).any()):
            raise RankingsError(
                f"{grid.where(last)}: this row has the {name} of the columns; remove it"
            )
