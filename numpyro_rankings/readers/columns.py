"""The columns of a table by their meaning: judges, counts, and what else is known of the judges."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.ballots import Rules
from numpyro_rankings.readers.grids import Column, Grid, whole_number
from numpyro_rankings.readers.text import weight_hint
from numpyro_rankings.words.options import option

_SHOWN = 5  # rows or items in a message
_MOST_RANKINGS = 100_000_000


class Columns(NamedTuple):
    """The columns of a table by their meaning, and how to read them; None if there is none."""

    judge: str | None
    item: str | None
    rank: str | None
    counts: str | None
    about: tuple[str, ...]
    items: tuple[str, ...] | None
    closes_gaps: bool
    is_picked: bool  # the items, perhaps some of a question
    rules: Rules | None = None
    separator: str | None = None
    aliases: Mapping[str, str] = MappingProxyType({})

    @property
    def special(self) -> set[str]:
        """Columns that are neither items nor places."""
        named = {self.judge, self.item, self.rank, self.counts, *self.about}
        return {name for name in named if name is not None}


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


def check_columns(grid: Grid, columns: Columns) -> None:
    named = [columns.judge, columns.item, columns.rank, columns.counts, *columns.about]
    given = [name for name in named if name is not None]
    for k, name in enumerate(given):
        if name not in grid.columns:
            known = ", ".join(map(repr, grid.columns))
            raise RankingsError(
                f"{grid.name}: there is no column {name!r}; the columns are {known}"
            )
        if name in given[:k]:
            raise RankingsError(f"{grid.name}: the column {name!r} is named twice")


def columns_of_long(
    grid: Grid, judge: str | None, item: str | None, rank: str | None
) -> tuple[str, str, str]:
    """Return the columns with the judge, the item and the rank; by default those of that name."""

    def find(given: str | None, of: str, *names: str) -> str:
        if given is not None:
            return given
        found = [name for name in grid.columns if name.lower() in names]
        if len(found) != 1:
            known = ", ".join(map(repr, grid.columns))
            raise RankingsError(
                f"{grid.name}: which column has the {of}? Name it with {option(of)}; the columns "
                f"are {known}"
            )
        return found[0]

    return (
        find(judge, "judge", "judge"),
        find(item, "item", "item"),
        find(rank, "rank", "rank", "position"),
    )


def ranks_of(column: Column, num_items: int | None) -> np.ndarray:
    """Return the ranks of a column, (rows,) int32: 0 if there is none, and -1 if it is no rank."""
    most = np.iinfo(np.int32).max if num_items is None else num_items

    def rank(text: str) -> int:
        if not text:
            return 0
        number = whole_number(text)
        return -1 if number is None or not 1 <= number <= most else number

    return np.array([rank(text) for text in column.values], np.int32)[column.codes]


def counts_of(grid: Grid, name: str | None, rows: np.ndarray) -> np.ndarray:
    """Return the number of rankings that each of the rows stands for."""
    if name is None:
        return np.ones(len(rows), int)
    column = grid.column(name)
    numbers = ranks_of(column, None)[rows].astype(int)
    if (numbers < 1).any():
        row = rows[int(np.argmax(numbers < 1))]
        text = column.text(row)
        if hint := weight_hint(text):
            hint += (
                f": leave out {option('count')}, or name the column in {option('about')} instead"
            )
        raise RankingsError(
            f"{grid.where(row)}: column {name!r}: expected a positive whole number, got "
            f"{text[:40]!r}{hint}"
        )
    if numbers.sum() > _MOST_RANKINGS:
        raise RankingsError(
            f"{grid.where(rows[int(np.argmax(numbers))])}: column {name!r}: with count "
            f"{numbers.max():,} there are {numbers.sum():,} rankings; at most {_MOST_RANKINGS:,} "
            "can be read"
        )
    return numbers


def judges_of(grid: Grid, name: str, rows: np.ndarray) -> np.ndarray:
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
    found = np.zeros(len(keys), bool)
    found[order[1:][keys[order[1:]] == keys[order[:-1]]]] = True
    return found
