"""Covariates of the judges: what is known of them besides their rankings, as numbers."""

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.rankings.container import Rankings, check_rankings
from numpyro_rankings.rankings.names import RankingsError, is_missing, row_place

MOST_LEVELS = 20  # of a column of text
_FORMULA = 'names of columns joined by +, such as "region + age"'


class Term(NamedTuple):
    """A covariate: its column, and how its values become numbers.

    - **name** - of the column.
    - **levels** - the values of a column of text, sorted; none of a column of numbers.
    - **columns** - its columns of the design: one of numbers, or one for each level but the
      commonest.
    - **start** - the first of them.
    - **center** - the mean of each over the judges, which is subtracted.
    - **scale** - standard deviation of the numbers, by which they are divided; 1 of levels.
    """

    name: str
    levels: tuple[str, ...]
    columns: tuple[str, ...]
    start: int
    center: tuple[float, ...]
    scale: float

    def code(self, values: Sequence[Any] | np.ndarray) -> np.ndarray:
        """Return the columns of the design for some values, (values, columns)."""
        if self.levels:
            raw = np.array([[x == f"{self.name}: {v}" for x in self.columns] for v in values])
            return raw.astype(float) - self.center
        return (np.asarray(values, float)[:, None] - self.center) / self.scale


@jax.tree_util.register_pytree_node_class
class JudgeCovariates:
    """Covariates of N judges, on which the shares of groups may depend; a JAX pytree.

    They are made by :func:`judge_covariates`. Judges with the same values are in one **cell**.

    - **design** - the covariates of each of G cells as numbers, float (G, p). The mean of a column
      over the judges is 0, and where it is of numbers, their standard deviation is 1.
    - **cells** - the cell of each judge, in the order of ``rankings.expand()``, int32 (N,).
    - **terms** - a :class:`~numpyro_rankings.rankings.covariates_of_judges.Term` for each
      covariate.
    """

    def __init__(self, design: Any, cells: Any, terms: tuple[Term, ...]) -> None:
        self.design, self.cells, self.terms = design, cells, terms

    design: Array
    cells: Array
    terms: tuple[Term, ...]

    def tree_flatten(self) -> tuple[tuple, tuple]:
        return (self.design, self.cells), self.terms

    @classmethod
    def tree_unflatten(cls, terms: tuple, leaves: Sequence[Any]) -> "JudgeCovariates":
        design, cells = leaves
        return cls(design, cells, terms)

    def to_coords(self) -> dict[str, Any]:
        """Return coordinates of a data set of xarray, of which :meth:`from_coords` makes them."""
        return {
            "covariate": list(self.columns),
            "covariate_design": (("covariate_cell", "covariate"), np.asarray(self.design)),
            "covariate_cells": ("judge", np.asarray(self.cells)),
            "covariate_terms": json.dumps(self.terms),
        }

    @classmethod
    def from_coords(cls, coords: Mapping[str, Any]) -> "JudgeCovariates | None":
        """Return the covariates in coordinates of a data set, None if there are none."""
        if "covariate_terms" not in coords:
            return None
        terms = tuple(
            Term(name, tuple(levels), tuple(columns), start, tuple(center), scale)
            for name, levels, columns, start, center, scale in json.loads(
                str(coords["covariate_terms"].values)
            )
        )
        design, cells = coords["covariate_design"].values, coords["covariate_cells"].values
        return cls(jnp.asarray(design), jnp.asarray(cells), terms)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the p columns of the design, such as "region: south" or "age"."""
        return tuple(name for term in self.terms for name in term.columns)

    def __repr__(self) -> str:
        names = ", ".join(term.name for term in self.terms)
        return f"JudgeCovariates({names}; {len(self.columns)} columns)"


class RankingsBy(NamedTuple):
    """Rankings in rows of one ranking and one cell of covariates.

    - **rankings** - of the same judges, in another order.
    - **covariates** - of these judges.
    - **judges** - where each judge of the given rankings is in them, int (N,).
    """

    rankings: Rankings
    covariates: JudgeCovariates
    judges: np.ndarray


def judge_covariates(rankings: Rankings, frame: Any, formula: str | Sequence[str]) -> RankingsBy:
    """Prepare covariates of judges for :class:`~numpyro_rankings.infer.TemperedMixture`.

    A column of numbers has a linear effect, and one of text an effect of each level, in comparison
    with the commonest one. Codes that are numbers, such as 1 to 5 for regions, are turned into text
    for this.

    :param rankings: of N judges.
    :param frame: a data frame, or a mapping of the names of columns to values: one for each of the
        N judges, in the order of ``rankings.expand()``.
    :param formula: names of columns joined by +, or a list of names.
    :return: the rankings, whose rows have one ranking and one value of the covariates each, the
        covariates, both of which ``mcmc.run`` takes, and where each judge is in these rankings.
    :raises RankingsError: if a column is not there, has no value in some row, has one value only,
        or is text with more than 20 levels; and of interactions and functions of columns.

    .. doctest::

       >>> from numpyro_rankings import Rankings, judge_covariates
       >>> rankings = Rankings.from_orderings([[0, 1], [1, 0], [0, 1]], num_items=2)
       >>> made = judge_covariates(rankings, {"region": ["n", "s", "n"], "age": [30, 50, 70]},
       ...                         "region + age")
       >>> made.covariates.columns, made.covariates.design.shape
       (('region: s', 'age'), (3, 2))
    """
    check_rankings(rankings)
    columns = {str(name): frame[name] for name in frame}
    names = _names_of(formula, list(columns))
    terms, parts, start = [], [], 0
    for name in names:
        values = list(columns[name])
        if len(values) != rankings.num_rankings:
            raise RankingsError(
                f"the column {name!r} has {len(values)} values, but there are "
                f"{rankings.num_rankings} rankings: give one value for each of them"
            )
        term, coded = _coded(name, values, start)
        terms.append(term)
        parts.append(coded)
        start += len(term.columns)
    design, cells = np.unique(np.hstack(parts), axis=0, return_inverse=True)
    merged, row_of_given = rankings.merged()
    rows = row_of_given[np.asarray(rankings.row_index)]
    keys, of_judges, counts = np.unique(
        np.column_stack([rows, cells.ravel()]), axis=0, return_inverse=True, return_counts=True
    )
    judges = np.empty(len(rows), int)
    judges[np.argsort(of_judges.ravel(), kind="stable")] = np.arange(len(rows))
    covariates = JudgeCovariates(
        jnp.asarray(design, float),
        jnp.asarray(np.repeat(keys[:, 1], counts), jnp.int32),
        tuple(terms),
    )
    return RankingsBy(merged._take(keys[:, 0], counts), covariates, judges)


def _names_of(formula: str | Sequence[str], known: list[str]) -> list[str]:
    """Return the names in a formula, all of which are columns."""
    names = formula.split("+") if isinstance(formula, str) else list(map(str, formula))
    names = [name.strip() for name in names]
    if not names or "" in names:
        raise RankingsError(f"covariates are {_FORMULA}, got {formula!r}")
    for name in names:
        if name in known:
            continue
        parts = [part.strip() for part in re.split(r"[:*]", name)]
        if len(parts) > 1 and all(part in known for part in parts):
            raise RankingsError(
                f"{name!r} is an interaction, which shares cannot have: add a column with the "
                f"values of {' and '.join(parts)} joined, and name that"
            )
        near = difflib.get_close_matches(name, known, n=2)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        if not near and not re.fullmatch(r"[\w .-]+", name):
            hint = f"; covariates are {_FORMULA}"
        shown = ", ".join(known[:20]) + ", …" * (len(known) > 20)
        raise RankingsError(f"there is no column {name!r} of the judges, only {shown}{hint}")
    if repeated := [name for name in names if names.count(name) > 1]:
        raise RankingsError(f"the covariate {repeated[0]!r} is named twice")
    return names


def _coded(name: str, values: list[Any], start: int) -> tuple[Term, np.ndarray]:
    """Return a covariate, and its columns of the design for each judge, (N, columns)."""
    missing = [k for k, x in enumerate(values) if is_missing(x) or str(x).strip() == ""]
    if missing:
        raise RankingsError(
            f"the covariate {name!r} has no value in {len(missing)} of {len(values)} rows, the "
            f"first of which is {row_place(missing[0])}: leave these judges out, or write what a "
            "missing value means, such as unknown"
        )
    numbers = _as_numbers(values)
    if numbers is not None:
        center, scale = float(numbers.mean()), float(numbers.std())
        _check_varies(name, scale > 1e-6 * max(abs(center), 1e-30), values[0])
        term = Term(name, (), (name,), start, (center,), scale)
        return term, np.round(term.code(numbers), 6)
    texts = [str(x).strip() for x in values]
    levels, counts = np.unique(texts, return_counts=True)
    _check_varies(name, len(levels) > 1, texts[0])
    if len(levels) > MOST_LEVELS:
        raise RankingsError(
            f"the covariate {name!r} is text with {len(levels)} levels, and at most {MOST_LEVELS} "
            "can be used: join some of them, or give numbers"
        )
    others = [x for x in levels.tolist() if x != levels[counts.argmax()]]
    coded = (np.array(texts)[:, None] == others).astype(float)
    term = Term(
        name,
        tuple(levels.tolist()),
        tuple(f"{name}: {x}" for x in others),
        start,
        tuple(coded.mean(0).tolist()),
        1.0,
    )
    return term, coded - term.center


def _check_varies(name: str, varies: bool, value: Any) -> None:
    if not varies:
        raise RankingsError(
            f"the covariate {name!r} is {value!r} in all rows, and shares can only depend on what "
            "differs between judges: leave it out"
        )


def _as_numbers(values: Sequence[Any]) -> np.ndarray | None:
    """Return values as numbers, or None if they are text."""
    if any(isinstance(x, bool | np.bool_) for x in values):
        return None
    try:
        numbers = np.array([float(x) for x in values])
    except (TypeError, ValueError):
        return None
    return numbers if np.isfinite(numbers).all() else None


def find_covariates(args: tuple, kwargs: Mapping[str, Any]) -> JudgeCovariates | None:
    """Return the covariates of the judges among the arguments of a model, if there are any."""
    found = (x for x in (*args, *kwargs.values()) if isinstance(x, JudgeCovariates))
    return next(found, None)
