"""Covariates of items, by a data frame: their columns as numbers, each matched to its item."""

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numpyro_rankings.rankings.names import RankingsError, is_missing

_LEAST_SHARE = (
    1e-6  # of the variance of a column that others leave, below which it follows from them
)


class Covariate(NamedTuple):
    """How a column of numbers comes from a column of the table.

    - **name** - of the effect: the column's or, of a level, ``brand: Y``.
    - **column** - of the table.
    - **level**, **base** - the level that has a 1, and that of the zeros; None of numbers.
    - **centre**, **scale** - taken off, and then divided by; 0 and 1 of levels, and of columns of
      zeros and ones.
    """

    name: str
    column: str
    level: str | None = None
    base: str | None = None
    centre: float = 0.0
    scale: float = 1.0

    @property
    def step(self) -> str:
        """What the effect is of, in words."""
        if self.level is not None:
            return f"{self.level} instead of {self.base}"
        if self.scale == 1.0 and self.centre == 0.0:
            return "1 instead of 0"
        return f"{self.scale:.4g} more"


class ItemCovariates(NamedTuple):
    """Covariates of n items, as :func:`item_covariates` makes them.

    - **values** - what the kernel takes, (n, p), in the order of the items.
    - **covariates** - how each of the p columns is made.
    - **items** - names of the items.
    """

    values: np.ndarray
    covariates: tuple[Covariate, ...]
    items: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The names of the effects."""
        return [x.name for x in self.covariates]

    def of_others(self, df: Any, item: str | None = None) -> tuple[np.ndarray, list[str]]:
        """Return the values of other items on the same scale, (m, p), and the names of these items.

        :param df: a data frame with the same columns.
        :param item: the column with the names of the items, as in :func:`item_covariates`.
        :raises RankingsError: for a column or a cell that is missing, or a level that no item had.
        """
        table, names = _named_rows(df, item)
        levels: dict[str, set[str]] = {}
        for one in self.covariates:
            if one.level is not None:
                levels.setdefault(one.column, {str(one.base)}).add(one.level)
        columns = []
        for one in self.covariates:
            cells = _cells(table, one.column, names)
            if one.level is None:
                columns.append((_as_numbers(cells, one.column, names) - one.centre) / one.scale)
                continue
            texts, known = list(map(str, cells)), levels[one.column]
            for name, text in zip(names, texts, strict=True):
                if text not in known:
                    raise RankingsError(
                        f"column {one.column!r}: {text!r} of {name!r} is none of the levels of the "
                        f"fitted items{_near(text, known)}"
                    )
            columns.append(np.array([float(text == one.level) for text in texts]))
        return np.column_stack(columns).astype(np.float32), names


def item_covariates(
    df: Any, formula: str | None = None, *, items: Sequence[Any], item: str | None = None
) -> ItemCovariates:
    """
    Covariates of the items, for :class:`~numpyro_rankings.infer.PlackettLuceRegressionGibbs`.

    Rows are matched to items by name. Columns of numbers are centred and divided by their standard
    deviation, so that an effect is that of one standard deviation; columns of zeros and ones stay
    as they are. A column of texts has a covariate for each level but the first that occurs, the
    base.

    :param df: a data frame with a row for each item.
    :param formula: names of columns with + between them, such as ``"price + brand"``; by default
        all columns but that with the names.
    :param items: names of the items, such as ``rankings.items``.
    :param item: the column with the names of the items; by default ``item`` or, if there is none,
        the first column.
    :raises RankingsError: for an item without a row or with two, a row of no item, a column that
        is not there, a missing cell, a column with the same value in all rows, one with a level
        of its own for each item, and one that follows from others.

    .. doctest::

       >>> import pandas as pd
       >>> from numpyro_rankings import item_covariates
       >>> table = pd.DataFrame(
       ...     {
       ...         "item": ["w", "x", "y", "z"],
       ...         "price": [1.0, 3.0, 2.0, 2.0],
       ...         "brand": ["A", "B", "B", "A"],
       ...     }
       ... )
       >>> found = item_covariates(table, "price + brand", items=["x", "w", "y", "z"])
       >>> found.names, found.values.astype(float).round(2).tolist()
       (['price', 'brand: B'], [[1.41, 1.0], [-1.41, 0.0], [0.0, 1.0], [0.0, 0.0]])
    """
    names = tuple(map(str, items))
    table, of_rows = _named_rows(df, item)
    order = _rows_of(of_rows, names)
    made: list[tuple[Covariate, np.ndarray]] = []
    for column in _columns_of(formula, [str(c) for c in table.columns]):
        made += _covariates_of(column, _cells(table, column, of_rows), of_rows)
    _check_independent(made)
    values = np.column_stack([x[order] for _, x in made]).astype(np.float32)
    return ItemCovariates(values, tuple(one for one, _ in made), names)


def _named_rows(df: Any, item: str | None) -> tuple[Any, list[str]]:
    """Return the table without the column of names, whose columns are texts, and the names."""
    table = df.rename(columns=str)
    columns = list(table.columns)
    if len(set(columns)) < len(columns):
        twice = next(c for c in columns if columns.count(c) > 1)
        raise RankingsError(f"the table of the items has two columns called {twice!r}")
    if item is None:
        item = "item" if "item" in columns else columns[0] if columns else "item"
    if item not in columns:
        raise RankingsError(f"the table of the items has no column {item!r}{_near(item, columns)}")
    names = [str(x).strip() for x in table[item]]
    return table.drop(columns=item), names


def _rows_of(of_rows: list[str], items: Sequence[str]) -> list[int]:
    """Return the row of each item."""
    place: dict[str, int] = {}
    for row, name in enumerate(of_rows):
        if name not in items:
            raise RankingsError(
                f"the table of the items, row {row + 1}: {name!r} is none of the items that are "
                f"ranked{_near(name, items)}"
            )
        if place.setdefault(name, row) != row:
            raise RankingsError(
                f"the table of the items, rows {place[name] + 1} and {row + 1}: both are {name!r}"
            )
    missing = [name for name in items if name not in place]
    if missing:
        some = ", ".join(map(repr, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise RankingsError(f"the table of the items has no row for {some}")
    return [place[name] for name in items]


def _columns_of(formula: str | None, columns: Sequence[str]) -> list[str]:
    """Return the columns that a formula names."""
    if formula is None:
        if not columns:
            raise RankingsError("the table of the items has no column but that with their names")
        return list(columns)
    parts = [formula] if formula in columns else formula.strip().removeprefix("~").split("+")
    parts = list(dict.fromkeys(part.strip().strip("`") for part in parts))
    for part in parts:
        if part not in columns:
            raise RankingsError(
                f"the formula {formula!r} has names of columns with + between them: there is no "
                f"column {part!r}{_near(part, columns)}"
            )
    return parts


def _cells(table: Any, column: str, names: Sequence[str]) -> list[Any]:
    """Return the cells of a column, of which none is missing."""
    if column not in table.columns:
        raise RankingsError(f"the table has no column {column!r}{_near(column, table.columns)}")
    cells = table[column].tolist()
    for name, cell in zip(names, cells, strict=True):
        if is_missing(cell) or not str(cell).strip():
            raise RankingsError(
                f"column {column!r} has no value for the item {name!r}: fill it in, or leave the "
                "column out"
            )
    return [x.strip() if isinstance(x, str) else x for x in cells]


def _as_numbers(cells: Sequence[Any], column: str, names: Sequence[str]) -> np.ndarray:
    """Return cells as numbers, or raise an error."""
    numbers = []
    for name, cell in zip(names, cells, strict=True):
        try:
            numbers.append(float(cell))
        except (TypeError, ValueError):
            raise RankingsError(f"column {column!r}: {cell!r} of {name!r} is no number") from None
        if not np.isfinite(numbers[-1]):
            raise RankingsError(f"column {column!r}: {cell!r} of {name!r} is not finite")
    return np.array(numbers)


def _covariates_of(
    column: str, cells: list[Any], names: Sequence[str]
) -> list[tuple[Covariate, np.ndarray]]:
    """Return the covariates that a column makes, each with its values."""
    levels = list(dict.fromkeys(map(str, cells)))
    if len(levels) == 1:
        raise RankingsError(
            f"column {column!r} is {levels[0]!r} for all items, which tells nothing: leave it out"
        )
    if not any(isinstance(x, str | bool | np.bool_) for x in cells):
        numbers = _as_numbers(cells, column, names)
        if set(numbers.tolist()) == {0.0, 1.0}:
            return [(Covariate(column, column), numbers)]
        centre, scale = float(numbers.mean()), float(numbers.std())
        return [(Covariate(column, column, None, None, centre, scale), (numbers - centre) / scale)]
    if len(levels) == len(names):
        raise RankingsError(
            f"column {column!r} has texts, another one for each item, such as {levels[0]!r}: leave "
            "it out, or write numbers"
        )
    texts = np.array(list(map(str, cells)), object)
    return [
        (Covariate(f"{column}: {level}", column, level, levels[0]), (texts == level).astype(float))
        for level in levels[1:]
    ]


def _check_independent(made: Sequence[tuple[Covariate, np.ndarray]]) -> None:
    """Refuse a covariate that follows from those before it and a constant."""
    before: list[np.ndarray] = []
    for one, x in made:
        rest = x - x.mean()
        size = rest @ rest
        for other in before:
            rest = rest - (rest @ other) * other
        if rest @ rest <= _LEAST_SHARE * size:
            raise RankingsError(
                f"the covariate {one.name!r} follows from those before it, "
                f"{', '.join(repr(x.name) for x, _ in made[: len(before)])}: leave a column out"
            )
        before.append(rest / np.sqrt(rest @ rest))


def _near(word: Any, words: Any) -> str:
    close = difflib.get_close_matches(str(word), list(map(str, words)), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
