"""The columns of a table by their meaning: judges, counts, and what else is known of the judges."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.answers import ranks_in
from numpyro_rankings.readers.grids import Grid
from numpyro_rankings.readers.text import weight_hint
from numpyro_rankings.words.options import option

_MOST_RANKINGS = 100_000_000


def with_index(source: Any, named: Sequence[str | None]) -> tuple[Any, list[str]]:
    """Return a data frame with the columns of its index that are named, and notes."""
    if not (hasattr(source, "columns") and hasattr(source, "iloc")):
        return source, []
    names = [x for x in source.index.names if x is not None and x not in source.columns]
    wanted = [x for x in names if str(x) in set(map(str, named))]
    if wanted:
        return source.reset_index(level=wanted), []
    if names:
        return source, [f"the index is left out: judge={names[0]!r} takes it as the judges"]
    if any(isinstance(x, str) for x in source.index):
        return source, ["the index, which has no name, is left out: is it the judges?"]
    return source, []


def read_counts(grid: Grid, name: str | None, rows: np.ndarray) -> np.ndarray:
    """Return the number of rankings that each of the rows stands for."""
    if name is None:
        return np.ones(len(rows), int)
    column = grid.column(name)
    numbers = ranks_in(column, None)[rows].astype(int)
    if (numbers < 1).any():
        row = rows[int(np.argmax(numbers < 1))]
        text = column.text(row)
        if hint := weight_hint(text):
            hint += (
                f": leave out {option('count')}, or name the column in {option('about')} instead"
            )
        raise RankingsError(
            f"{grid.at(row, column)}: expected a positive whole number, got {text[:40]!r}{hint}"
        )
    if numbers.sum() > _MOST_RANKINGS:
        raise RankingsError(
            f"{grid.where(rows[int(np.argmax(numbers))])}: column {name!r}: with count "
            f"{numbers.max():,} there are {numbers.sum():,} rankings; at most {_MOST_RANKINGS:,} "
            "can be read"
        )
    return numbers


def read_judges(grid: Grid, name: str, rows: np.ndarray) -> np.ndarray:
    """Return the names of the judges in these rows: each has one, and no two have the same."""
    column = grid.column(name)
    if (blank := column.is_blank()[rows]).any():
        raise RankingsError(
            f"{grid.where(rows[int(np.argmax(blank))])}: column {name!r} is empty: who is it?"
        )
    if (again := is_repeated(column.codes[rows])).any():
        row = rows[int(np.argmax(again))]
        first = rows[int(np.argmax(column.codes[rows] == column.codes[row]))]
        raise RankingsError(
            f"{grid.where(row)}: judge {column.text(row)!r} has a row already, "
            f"{grid.where(first)}; remove one of them, or leave out {option('judge')} if both count"
        )
    return np.array(column.values, object)[column.codes[rows]]


def is_repeated(keys: np.ndarray) -> np.ndarray:
    """Return which of the keys is equal to an earlier one."""
    order = np.argsort(keys, kind="stable")
    is_again = np.zeros(len(keys), bool)
    is_again[order[1:][keys[order[1:]] == keys[order[:-1]]]] = True
    return is_again
