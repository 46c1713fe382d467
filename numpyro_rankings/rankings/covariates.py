"""Covariates of judges and of items: columns of a table, as numbers."""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numpyro_rankings.rankings.names import RankingsError, is_missing, row_place

MOST_LEVELS = 20  # of a column of text
_FORMULA = 'names of columns joined by +, such as "region + age"'


class Covariate(NamedTuple):
    """A column of a table, and how its values become numbers.

    - **name** - of the column.
    - **levels** - the values of a column of text, sorted; none of a column of numbers.
    - **base** - the level that the others are compared with: the commonest one, and of equally
      common ones the first. It is empty of numbers.
    - **start** - place of the first of its columns of numbers among those of all covariates.
    - **center** - the mean of each of these columns, which is subtracted.
    - **scale** - by which numbers are divided: their standard deviation; 1 of levels, and of
      columns of zeros and ones.
    """

    name: str
    levels: tuple[str, ...]
    base: str
    start: int
    center: tuple[float, ...]
    scale: float

    @property
    def others(self) -> list[str]:
        """The levels but the base."""
        return [level for level in self.levels if level != self.base]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns of numbers: ``age``, or ``region: south`` of each other level."""
        if not self.levels:
            return (self.name,)
        return tuple(f"{self.name}: {level}" for level in self.others)

    @property
    def steps(self) -> tuple[str, ...]:
        """What 1 more in each of them stands for, in words."""
        if not self.levels:
            is_one = self.scale == 1.0 and 0 < self.center[0] < 1
            return ("1 instead of 0" if is_one else f"{self.scale:.4g} more",)
        return tuple(f"{level} instead of {self.base}" for level in self.others)

    @property
    def place(self) -> slice:
        """Where its columns are among those of all covariates."""
        return slice(self.start, self.start + len(self.center))

    def code(self, values: Sequence[Any] | np.ndarray) -> np.ndarray:
        """Return the columns of numbers for some values, (values, columns)."""
        if self.levels:
            raw = np.array([str(x) for x in values])[:, None] == np.array(self.others)
        else:
            raw = np.asarray(values, float)[:, None]
        return (raw - np.array(self.center)) / self.scale


def read_covariate(
    name: str, values: Sequence[Any], start: int, where: Callable[[int], str] = row_place
) -> tuple[Covariate, np.ndarray]:
    """Return a covariate, and its columns of numbers for all values, (values, columns).

    :param where: names a row of the table, by its number from 0.
    """
    _check_there(name, values, where)
    numbers = _as_numbers(name, values, where)
    if numbers is not None:
        center, scale = float(numbers.mean()), float(numbers.std())
        _check_varies(name, numbers.min() < numbers.max(), values[0])
        scale = 1.0 if set(numbers.tolist()) == {0.0, 1.0} else scale
        one = Covariate(name, (), "", start, (center,), scale)
        return one, one.code(numbers)
    texts = [str(x).strip() for x in values]
    levels, counts = np.unique(texts, return_counts=True)
    _check_varies(name, len(levels) > 1, texts[0])
    if len(levels) > MOST_LEVELS:
        raise RankingsError(
            f"the covariate {name!r} is text with {len(levels)} levels, and at most {MOST_LEVELS} "
            "can be used: join some of them, or give numbers"
        )
    base, width = str(levels[counts.argmax()]), len(levels) - 1
    one = Covariate(name, tuple(levels.tolist()), base, start, (0.0,) * width, 1.0)
    one = one._replace(center=tuple(one.code(texts).mean(0).tolist()))
    return one, one.code(texts)


def code_others(
    one: Covariate, values: Sequence[Any], where: Callable[[int], str] = row_place
) -> np.ndarray:
    """Return the columns of numbers for values of others than those that were read."""
    _check_there(one.name, values, where)
    if not one.levels:
        numbers = _as_numbers(one.name, values, where)
        if numbers is None:
            raise RankingsError(f"the covariate {one.name!r} must be numbers, as it was before")
        return one.code(numbers)
    texts = [str(x).strip() for x in values]
    for row, text in enumerate(texts):
        if text not in one.levels:
            raise RankingsError(
                f"the covariate {one.name!r}: {text!r} in {where(row)} is none of its levels"
                f"{near(text, one.levels)}"
            )
    return one.code(texts)


def _check_there(name: str, values: Sequence[Any], where: Callable[[int], str]) -> None:
    missing = [k for k, x in enumerate(values) if is_missing(x) or not str(x).strip()]
    if missing:
        raise RankingsError(
            f"the covariate {name!r} has no value in {where(missing[0])} ({len(missing)} of "
            f"{len(values)} rows): fill it in, with a word such as unknown in a column of text, "
            "or leave it out"
        )


def _check_varies(name: str, varies: bool, value: Any) -> None:
    if not varies:
        raise RankingsError(
            f"the covariate {name!r} is {value!r} in all rows, which tells nothing: leave it out"
        )


def _as_numbers(name: str, values: Sequence[Any], where: Callable[[int], str]) -> np.ndarray | None:
    """Return the values of a column as numbers, or None if they are text."""
    if any(isinstance(x, bool | np.bool_) for x in values):
        return None
    try:
        numbers = np.array([float(x) for x in values])
    except (TypeError, ValueError):
        return None
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise RankingsError(f"the covariate {name!r}: {values[row]!r} in {where(row)} is no number")
    return numbers


def names_in(formula: str | Sequence[str], known: Sequence[str], of: str) -> list[str]:
    """Return the names in a formula, all of which are columns.

    :param of: whose columns these are, in a message.
    """
    is_name = not isinstance(formula, str) or formula in known
    names = [formula] if isinstance(formula, str) else list(map(str, formula))
    if not is_name:
        names = names[0].strip().removeprefix("~").split("+")
    names = [name if name in known else name.strip().strip("`") for name in names]
    names = list(dict.fromkeys(names))
    if not names or "" in names:
        raise RankingsError(f"covariates are {_FORMULA}, got {formula!r}")
    for name in names:
        if name not in known:
            _refuse_name(name, known, of)
    return names


def _refuse_name(name: str, known: Sequence[str], of: str) -> None:
    parts = [part.strip() for part in re.split(r"[:*]", name)]
    if len(parts) > 1 and all(part in known for part in parts):
        raise RankingsError(
            f"{name!r} is an interaction, which covariates cannot have: add a column with the "
            f"values of {' and '.join(parts)} joined, and name that"
        )
    hint = near(name, known)
    if not hint and not re.fullmatch(r"[\w .-]+", name):
        hint = f"; covariates are {_FORMULA}"
    some = ", ".join(known[:20]) + ", …" * (len(known) > 20)
    raise RankingsError(f"there is no column {name!r} of the {of}, only {some}{hint}")


def names_of_index(df: Any) -> list[str] | None:
    """Return the names in the index of a data frame; None of one that counts its rows."""
    if not hasattr(df, "columns") or (df.index.name is None and df.index.dtype.kind in "iu"):
        return None
    return [str(x).strip() for x in df.index]


def rows_of(of_rows: Sequence[str], names: Sequence[str], whose: str, are: str) -> list[int]:
    """Return the row of a table for each name, and refuse rows of others.

    :param of_rows: the name in each row.
    :param whose: what the names are of, such as items, and **are**, what has happened to those.
    """
    place: dict[str, int] = {}
    known = set(names)
    for row, name in enumerate(of_rows):
        if name not in known:
            raise RankingsError(
                f"the table of the {whose}, row {row + 1}: {name!r} is none of the {whose} that "
                f"{are}{near(name, names)}"
            )
        if place.setdefault(name, row) != row:
            raise RankingsError(
                f"the table of the {whose}, rows {place[name] + 1} and {row + 1}: both are {name!r}"
            )
    missing = [name for name in names if name not in place]
    if missing:
        some = ", ".join(map(repr, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise RankingsError(f"the table of the {whose} has no row for {some}")
    return [place[name] for name in names]


def near(word: str, words: Iterable[str]) -> str:
    """Ask whether a word is meant that is like one that is not known, if there is any."""
    close = difflib.get_close_matches(word, list(words), n=2)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
