"""Orderings as users give them, lists, arrays or data frames, checked and converted to a table."""

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from numpyro_rankings.rankings.names import (
    Numbers,
    RankingsError,
    as_array,
    is_missing,
    names_shown,
)


def padded_table(
    orderings: Any,
    names: tuple[str, ...],
    where: Callable[[int], str],
    numbers: Numbers | None = None,
) -> np.ndarray:
    """Convert the orderings to a table of whole numbers, not yet checked against the items.

    Without ``numbers``, which name items, all numbers are indices.
    """
    is_text = None  # of entries that are names, already converted to indices
    if not hasattr(orderings, "shape"):
        table, is_text = _table_of_lists(orderings, names, where)
    else:
        table = as_array(orderings)
        if table.ndim == 1 and table.dtype == object:  # a series of lists
            table, is_text = _table_of_lists(list(table), names, where)
        elif table.ndim != 2:
            raise RankingsError(f"orderings must be a table (rows, T), got shape {table.shape}")
        elif table.dtype.kind in "OSU":
            table, is_text = _table_of_lists(table.tolist(), names, where)
    if table.shape[0] == 0:
        raise RankingsError("there are no rankings")
    if table.shape[1] == 0:
        raise RankingsError(f"{where(0)}: an empty ranking")
    if table.dtype.kind not in "iuf":
        raise RankingsError(f"orderings must be item indices, got dtype {table.dtype}")
    is_end = np.zeros(table.shape, bool)
    if table.dtype.kind == "f":
        is_end = np.logical_and.accumulate(np.isnan(table)[:, ::-1], axis=1)[:, ::-1]
        table = np.where(is_end, -1.0, table)  # missing at the end of a row
    if numbers is not None:
        if -1 in numbers.item_of and not numbers.is_said and (table[~is_end] == -1).any():
            row, place = np.argwhere((table == -1) & ~is_end)[0]
            raise RankingsError(
                f"{where(row)}: -1 at place {place + 1} is an item or the end of the row; say "
                "entries='names' and end rows with NaN, or leave out items"
            )
        is_number = ~is_end & ((table != -1) | (-1 in numbers.item_of))
        if is_text is not None:
            is_number &= ~is_text
        table = _read_numbers(table, is_number, names, numbers, where)
    if table.dtype.kind == "f":
        broken = ~np.isfinite(table) | (table != np.floor(table))
        if broken.any():
            row, place = np.argwhere(broken)[0]
            if np.isnan(table[row, place]):
                raise RankingsError(
                    f"{where(row)}: nan at place {place + 1}, which is missing; only the end of a "
                    "row can be"
                )
            raise RankingsError(
                f"{where(row)}: {table[row, place]} at place {place + 1} is not an item; expected "
                f"a whole number 0..{len(names) - 1}"
            )
    return table


def _read_numbers(
    table: np.ndarray,
    is_number: np.ndarray,
    names: tuple[str, ...],
    numbers: Numbers,
    where: Callable[[int], str],
) -> np.ndarray:
    """Replace numbers that are names of items by indices, where they can be nothing else."""
    values, inverse = np.unique(table[is_number], return_inverse=True)
    as_names = np.array([numbers.item_of.get(value, -1) for value in values.tolist()], np.int64)
    unknown = as_names < 0
    if unknown.any():
        if not numbers.all_are_names:
            return table  # indices, or nothing, which is found next
        k = int(np.argmax(unknown[inverse]))
        row, place = np.argwhere(is_number)[k]
        raise RankingsError(
            f"{where(row)}: {table[row, place]:g} at place {place + 1} is not an item; expected "
            f"one of the names {names_shown(names, 10)}, or say entries='indices'"
        )
    if not numbers.all_are_names:
        can_be_indices = ((values >= 0) & (values < len(names))).all()
        differs = (as_names != values)[inverse]
        if can_be_indices and differs.any():
            row, place = np.argwhere(is_number)[int(np.argmax(differs))]
            value = int(table[row, place])
            raise RankingsError(
                f"{where(row)}: {value} at place {place + 1} is item {str(value)!r} if it is a "
                f"name, and item {names[value]!r} if it is a 0-based index; say which by "
                "entries='names' or entries='indices'"
            )
    table = table.copy()
    table[is_number] = as_names[inverse]
    return table


def _without_missing_end(entries: list) -> list:
    """Drop what is missing at the end of a list, such as the empty cells of a data frame."""
    while entries and not isinstance(entries[-1], str | int) and is_missing(entries[-1]):
        entries.pop()
    return entries


def _table_of_lists(
    orderings: Any, names: tuple[str, ...], where: Callable[[int], str]
) -> tuple[np.ndarray, np.ndarray]:
    """Convert lists of indices or names to a table padded with NaN, and say which are names."""
    try:
        given = list(orderings)
    except TypeError:
        raise RankingsError(
            f"orderings must be a list of rankings or a 2-d array, got {type(orderings).__name__}"
        ) from None
    rows: list[list] = []
    for row in given:
        values = row.tolist() if hasattr(row, "tolist") else row
        unordered = isinstance(values, str | bytes | set | frozenset | dict)
        if unordered or not hasattr(values, "__iter__"):
            raise RankingsError(f"{where(len(rows))}: {values!r} is not a list of items")
        rows.append(_without_missing_end(list(values)))
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    entries = list(chain.from_iterable(rows))
    kinds = set(map(type, entries))

    def refuse(unfit: Callable[[Any], bool], expected: str) -> None:
        index = next(i for i, entry in enumerate(entries) if unfit(entry))
        row = int(np.searchsorted(np.cumsum(lengths), index, side="right"))
        place = index - int(lengths[:row].sum()) + 1
        raise RankingsError(
            f"{where(row)}: {entries[index]!r} at place {place} is not an item; expected {expected}"
        )

    numbers = (int, float, np.integer, np.floating)
    strange = {k for k in kinds if not issubclass(k, (*numbers, str)) or issubclass(k, bool)}
    if strange:
        refuse(lambda entry: type(entry) in strange, "item indices or names")
    is_place = np.arange(lengths.max(initial=0)) < lengths[:, None]
    is_text = np.zeros(is_place.shape, bool)
    if any(issubclass(kind, str) for kind in kinds):
        texts = [isinstance(entry, str) for entry in entries]
        is_text[is_place] = texts
        index = {name: i for i, name in enumerate(names)}
        index_of = {
            entry: index.get(entry.strip()) for entry in set(entries) if isinstance(entry, str)
        }
        if None in index_of.values():
            refuse(
                lambda entry: isinstance(entry, str) and index_of[entry] is None,
                f"one of {names_shown(names, 10)}",
            )
        entries = [
            index_of[entry] if text else entry for entry, text in zip(entries, texts, strict=True)
        ]
    table = np.full(is_place.shape, np.nan)
    table[is_place] = entries
    return table, is_text


def check_table(table: np.ndarray, names: tuple[str, ...], where: Callable[[int], str]) -> None:
    num_items = len(names)
    outside = (table < -1) | (table >= num_items)
    if outside.any():
        row, place = np.argwhere(outside)[0]
        raise RankingsError(
            f"{where(row)}: item {table[row, place]:.0f} at place {place + 1} is outside "
            f"0..{num_items - 1} (-1 pads the end of a row)"
        )
    listed = table >= 0
    empty = ~listed.any(1)
    if empty.any():
        raise RankingsError(f"{where(int(np.argmax(empty)))}: an empty ranking")
    holes = listed[:, 1:] & ~listed[:, :-1]
    if holes.any():
        row, place = np.argwhere(holes)[0]
        raise RankingsError(
            f"{where(row)}: place {place + 1} is empty (-1), but place {place + 2} has item "
            f"{names[int(table[row, place + 1])]!r}; -1 is allowed at the end of a row only"
        )
    ordered = np.sort(table, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        row, place = np.argwhere(twice)[0]
        name = names[int(ordered[row, place])]
        raise RankingsError(f"{where(row)}: item {name!r} is listed twice")


def listed_items(table: np.ndarray, num_items: int) -> np.ndarray:
    """Return which items each row lists, bool (rows, n)."""
    listed = np.zeros((len(table), num_items), bool)
    rows, places = np.nonzero(table >= 0)
    listed[rows, table[rows, places].astype(np.intp)] = True
    return listed


def row_keys(table: np.ndarray) -> np.ndarray:
    """Return a number for each row, the same for equal rows; entries are -1 or more.

    To sort these takes a tenth of the time of sorting the rows.
    """
    keys, size = np.zeros(len(table), np.int64), 1
    for column in table.T:
        base = int(column.max(initial=0)) + 2
        if size * base > 2**62:
            _, keys = np.unique(keys, return_inverse=True)
            size = int(keys.max(initial=0)) + 1
        keys = keys * base + (column.astype(np.int64) + 1)
        size *= base
    return np.unique(keys, return_inverse=True)[1]
