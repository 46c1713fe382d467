"""Who is in the groups, by what is known about the judges."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

# Functions import ArviZ, pandas and xarray, which take long to load and are not always needed.

# not 007, nor 1,000, which may be a thousand
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:[.,](?!\d{3}$)\d{1,15})?")
_NUMBERS_ARE_NAMES = re.compile(
    r"(?:.*[^a-z])?(?:precinct|batch|ward|district|tabulator)[\s_]*(?:id|no\.?|num|number)?",
    re.IGNORECASE,
)
_MOST_CATEGORIES, _LEAST_NUMBERS = 6, 8
NO_ANSWER, OTHERS = "(no answer)", "(others)"


class ColumnByGroup(NamedTuple):
    """What a column about the judges says in each group.

    - **headings** - the categories, or what is computed from numbers.
    - **values** - (groups + 1, headings): shares of the members, or the numbers; the last row is of
      all judges. NaN in a group without members.
    - **counts** - (groups + 1, headings) int, the number of judges of each category; None of
      numbers.
    """

    name: str
    headings: list[str]
    values: np.ndarray
    is_number: bool
    counts: np.ndarray | None = None


def texts_of_judges(about: Mapping[str, Sequence[Any]], number: int) -> dict[str, list[str]]:
    """Return the columns about so many judges as texts: nothing where a value is missing."""
    import pandas as pd

    columns = {}
    for name, values in about.items():
        column = list(values)
        if len(column) != number:
            raise ValueError(
                f"the column {name!r} about the judges has {len(column):,} entries, and there are "
                f"{number:,} judges"
            )
        missing = pd.isna(pd.Series(column, dtype=object))
        columns[name] = [
            "" if gone else _as_text(x) for x, gone in zip(column, missing, strict=True)
        ]
    return columns


def _as_text(value: Any) -> str:
    """Return a value as a text; numbers with missing ones among them are floats, and 3.0 is 3."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def as_numbers(name: str, values: Sequence[str]) -> np.ndarray | None:
    """Return the texts of a column as numbers, NaN where there is none, if they are no codes."""
    if _NUMBERS_ARE_NAMES.fullmatch(name) or not all(_NUMBER.fullmatch(x) for x in values if x):
        return None
    numbers = np.array([float(x.replace(",", ".")) if x else np.nan for x in values])
    return numbers if len(np.unique(numbers[~np.isnan(numbers)])) >= _LEAST_NUMBERS else None


def most_frequent(values: Sequence[str], most: int = _MOST_CATEGORIES) -> list[tuple[str, int]]:
    """Return the texts and how often each occurs, the rare ones together, and the missing ones."""
    counted = Counter(x for x in values if x).most_common()
    rest = sum(number for _, number in counted[most:])
    missing = sum(not x for x in values)
    more = [(OTHERS, rest)] * (rest > 0) + [(NO_ANSWER, missing)] * (missing > 0)
    return counted[:most] + more


def by_group(
    name: str,
    values: Sequence[str],
    groups: np.ndarray,
    size: int,
    weights: np.ndarray | None = None,
) -> ColumnByGroup:
    """Summarise a column about the judges in each of **size** groups, which are numbered from 0.

    A column of numbers has the median and the quartiles, each the middle of the numbers below and
    above which there is no more than its share of the weight of the judges.

    :param weights: of the judges, (N,), for the shares and the numbers; all have 1 by default.
    """
    weight = np.ones(len(groups)) if weights is None else weights
    members = [groups == k for k in range(size)] + [np.ones(len(groups), bool)]
    numbers = as_numbers(name, values)
    if numbers is not None:
        quartiles = np.full((size + 1, 3), np.nan)
        for k, of_group in enumerate(members):
            known = of_group & ~np.isnan(numbers) & (weight > 0)
            if known.any():
                quartiles[k] = _quartiles(numbers[known], weight[known])
        return ColumnByGroup(name, ["median", "lower quarter", "upper quarter"], quartiles, True)
    shown = [text for text, _ in most_frequent(values)]
    index = {text: k for k, text in enumerate(shown)}
    other = index.get(OTHERS, -1)
    codes = np.array([index.get(x if x else NO_ANSWER, other) for x in values])
    counts = np.stack([np.bincount(codes[x], minlength=len(shown)) for x in members])
    sums = np.stack([np.bincount(codes[x], weight[x], len(shown)) for x in members])
    total = sums.sum(1, keepdims=True)
    shares = np.divide(sums, total, out=np.full(counts.shape, np.nan), where=total > 0)
    return ColumnByGroup(name, shown, shares, False, counts)


def _quartiles(numbers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the median and the quartiles: SAS's definition 5, R's type 2."""
    shares = np.array([0.5, 0.25, 0.75])
    least = np.quantile(numbers, shares, weights=weights, method="inverted_cdf")
    most = -np.quantile(-numbers, 1 - shares, weights=weights, method="inverted_cdf")
    return (least + most) / 2
