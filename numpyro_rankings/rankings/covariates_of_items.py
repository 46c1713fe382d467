"""Covariates of items, by a data frame: their columns as numbers, each matched to its item."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numpyro_rankings.rankings.covariates import (
    Covariate,
    code_others,
    names_in,
    names_of_index,
    near,
    read_covariate,
    rows_of,
)
from numpyro_rankings.rankings.names import RankingsError

# share of the variance of a column that others leave, below which it follows from them
_LEAST_SHARE = 1e-6


class ItemCovariates(NamedTuple):
    """Covariates of n items, as :func:`item_covariates` makes them.

    - **values** - what the kernel takes, (n, p), in the order of the items.
    - **terms** - a :class:`~numpyro_rankings.rankings.covariates.Covariate` for each column of the
      table.
    - **items** - names of the items.
    """

    values: np.ndarray
    terms: tuple[Covariate, ...]
    items: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The names of the p effects."""
        return [name for term in self.terms for name in term.columns]

    @property
    def steps(self) -> list[str]:
        """What each effect is of, in words."""
        return [step for term in self.terms for step in term.steps]

    def of_others(self, df: Any, item: str | None = None) -> tuple[np.ndarray, list[str]]:
        """Return the values of other items on the same scale, (m, p), and the names of these items.

        :param df: a data frame with the same columns.
        :param item: the column with the names of the items, as in :func:`item_covariates`.
        :raises RankingsError: for a column or a cell that is missing, or a level that no item had.
        """
        table, names = _named_rows(df, item)
        names_in([term.name for term in self.terms], list(table.columns), "other items")
        parts = [code_others(x, table[x.name].tolist(), _row_of(names)) for x in self.terms]
        return np.hstack(parts).astype(np.float32), names


def item_covariates(
    df: Any, formula: str | None = None, *, items: Sequence[Any], item: str | None = None
) -> ItemCovariates:
    """
    Covariates of the items, for :class:`~numpyro_rankings.infer.PlackettLuceRegressionGibbs`.

    Rows are matched to items by name. Columns of numbers are divided by their standard deviation,
    so that an effect is that of one standard deviation, but for columns of zeros and ones. A column
    of text has an effect of each level in comparison with the commonest one; of equally common ones
    that is the first by the alphabet. All have mean 0 over the items.

    :param df: a data frame with a row for each item.
    :param formula: names of columns with + between them, such as ``"price + brand"``; by default
        all columns but that with the names.
    :param items: names of the items, such as ``rankings.items``.
    :param item: the column with the names of the items; by default ``item`` or, if there is none,
        the index of the data frame if it is of texts or has a name, and else the first column.
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
       (['price', 'brand: B'], [[1.41, 0.5], [-1.41, -0.5], [0.0, 0.5], [0.0, -0.5]])
    """
    names = tuple(map(str, items))
    table, of_rows = _named_rows(df, item)
    order = rows_of(of_rows, names, "items", "are ranked")
    columns = list(table.columns)
    if not columns:
        raise RankingsError("the table of the items has no column but that with their names")
    terms, parts, start = list[Covariate](), [], 0
    for name in columns if formula is None else names_in(formula, columns, "items"):
        term, coded = read_covariate(name, table[name].tolist(), start, _row_of(of_rows))
        if len(term.levels) == len(of_rows):
            raise RankingsError(
                f"the covariate {name!r} has texts, another one for each item, such as "
                f"{term.base!r}: leave it out, or write numbers"
            )
        terms.append(term)
        parts.append(coded)
        start += len(term.columns)
    values = np.hstack(parts)
    found = ItemCovariates(values[order].astype(np.float32), tuple(terms), names)
    _check_independent(found.names, values)
    return found


def _row_of(names: Sequence[str]) -> Callable[[int], str]:
    return lambda row: f"the row of {names[row]!r}"


def _named_rows(df: Any, item: str | None) -> tuple[Any, list[str]]:
    """Return the table without the column of names, whose columns are texts, and the names."""
    import pandas as pd  # takes long to load

    table = pd.DataFrame(df).rename(columns=str)
    columns = list(table.columns)
    if len(set(columns)) < len(columns):
        twice = next(c for c in columns if columns.count(c) > 1)
        raise RankingsError(f"the table of the items has two columns called {twice!r}")
    if item is None:
        if "item" not in columns and (of_rows := names_of_index(df)) is not None:
            return table, of_rows
        item = "item" if "item" in columns else columns[0] if columns else "item"
    elif item not in columns and item == str(table.index.name):
        return table, [str(x).strip() for x in table.index]
    if item not in columns:
        raise RankingsError(f"the table of the items has no column {item!r}{near(item, columns)}")
    names = [str(x).strip() for x in table[item]]
    return table.drop(columns=item), names


def _check_independent(names: Sequence[str], values: np.ndarray) -> None:
    """Refuse a column of mean 0 that follows from those before it."""
    before: list[np.ndarray] = []
    for name, x in zip(names, values.T, strict=True):
        rest, size = x, x @ x
        for other in before:
            rest = rest - (rest @ other) * other
        if rest @ rest <= _LEAST_SHARE * size:
            raise RankingsError(
                f"the covariate {name!r} follows from those before it, "
                f"{', '.join(map(repr, names[: len(before)]))}: leave a column out"
            )
        before.append(rest / np.sqrt(rest @ rest))
