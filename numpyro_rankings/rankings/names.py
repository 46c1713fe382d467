"""What users give: missing values, arrays and lists, and the names of the items."""

import operator
import re
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class RankingsError(ValueError):
    """Invalid data. The message is one line that names the row, the item and what was expected.

    **questions** is all that is odd in a file, of those that :func:`~numpyro_rankings.read_survey`
    and :func:`~numpyro_rankings.read_rankings` refuse; see
    :class:`~numpyro_rankings.readers.Questions`.
    """

    questions: Any = None


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, masked, or missing in pandas."""
    if value is np.ma.masked:  # whose comparisons are masked too
        return True
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # that of pandas has no truth value
        return True


def is_number(value: Any) -> bool:
    numbers = int | float | np.integer | np.floating
    return isinstance(value, numbers) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """Return the text of a value in a message, without NumPy's types."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def as_array(values: Any, dtype: Any = None) -> np.ndarray:
    """Convert lists and arrays to an array, with NaN for numbers that are masked.

    NumPy takes what is below the mask of a masked array instead.
    """
    is_list = isinstance(values, list | tuple)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning: converting a masked element")
        if is_list and any(isinstance(x, np.ma.MaskedArray) for x in values):
            values = np.ma.array(values)
        if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
            has_numbers = values.dtype.kind in "iuf"
            values = np.ma.filled(values.astype(float), np.nan) if has_numbers else values.tolist()
        return np.asarray(values, dtype)


def row_place(row: int) -> str:
    return f"row {row + 1}"


def names_shown(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, with ``…`` if there are more."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def names_counted(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def name_of(item: Any) -> str:
    """Return the text of the name of an item, without blanks around it."""
    if isinstance(item, float | np.floating) and float(item).is_integer():
        return str(int(item))  # in data frames whole numbers are floats where some are missing
    return str(item).strip()


def list_of_names(items: Any) -> list:
    """Return the names of the items as given, which may be numbers."""
    if isinstance(items, str | bytes):
        raise RankingsError(f"items must be a list of names, got {items!r}")
    return list(items)


def item_names(items: Sequence[Any] | None, num_items: int | None = None) -> tuple[str, ...]:
    if num_items is not None:
        try:
            num_items = operator.index(num_items)
        except TypeError:
            raise RankingsError(f"num_items must be a whole number, got {num_items!r}") from None
    if items is not None:
        given = list_of_names(items)
    elif num_items is not None:
        given = [f"item {i + 1}" for i in range(num_items)]
    else:
        raise RankingsError("num_items or the names of the items are needed")
    if num_items is not None and len(given) != num_items:
        raise RankingsError(f"there are {len(given)} item names for {num_items} items")
    if len(given) < 2:
        raise RankingsError(f"a ranking needs at least 2 items, got {len(given)}")
    seen: dict[str, Any] = {}
    for i, item in enumerate(given):
        if is_missing(item):
            raise RankingsError(f"the name of item {i} is missing")
        name = name_of(item)
        if not name:
            raise RankingsError(f"the name of item {i} is empty")
        if name in seen:
            also = "" if item == seen[name] else f", written {shown(seen[name])} and {shown(item)}"
            raise RankingsError(f"two items have the name {name!r}{also}")
        seen[name] = item
    return tuple(seen)


class Numbers(NamedTuple):
    """The numbers that name items."""

    item_of: dict[float, int]  # index of the item that a number names
    all_are_names: bool  # whether numbers in orderings are names for sure
    is_said: bool  # whether the user said so, so that -1 is no padding if it is a name


def number_names(
    items: Sequence[Any], names: tuple[str, ...], entries: str | None
) -> Numbers | None:
    """Return which names of items are numbers, None if numbers cannot be names."""
    if entries not in (None, "names", "indices"):
        raise RankingsError(f"entries is 'names' or 'indices', not {entries!r}")
    if entries == "indices":
        return None
    index: dict[float, int] = {}
    given_as_number = False
    for k, (item, name) in enumerate(zip(items, names, strict=True)):
        if is_number(item):
            given_as_number = True
            index[item] = k
        elif re.fullmatch(r"0|-?[1-9][0-9]{0,14}", name, re.ASCII):
            index[int(name)] = k
    is_sure = given_as_number or entries == "names"
    return Numbers(index, is_sure, entries == "names") if index or is_sure else None
