"""Covariates of the judges: what is known of them besides their rankings, as numbers."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.rankings.container import Rankings, check_rankings
from numpyro_rankings.rankings.covariates import (
    Covariate,
    names_in,
    names_of_index,
    read_covariate,
    rows_of,
)
from numpyro_rankings.rankings.names import RankingsError
from numpyro_rankings.rankings.rows import Rows


@jax.tree_util.register_pytree_node_class
class JudgeCovariates:
    """Covariates of N judges, on which the shares of groups may depend; a JAX pytree.

    They are made by :func:`judge_covariates`. Judges with the same values are in one **cell**.

    - **design** - the covariates of each of G cells as numbers, float (G, p). The mean of a column
      over the judges is 0, and where it is of numbers, but not of zeros and ones, their standard
      deviation is 1.
    - **cells** - the cell of each judge, in the order of ``rankings.expand()``, int32 (N,).
    - **terms** - a :class:`~numpyro_rankings.rankings.covariates.Covariate` for each column.
    """

    def __init__(self, design: Any, cells: Any, terms: tuple[Covariate, ...]) -> None:
        self.design, self.cells, self.terms = design, cells, terms

    design: Array
    cells: Array
    terms: tuple[Covariate, ...]

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
            Covariate(name, tuple(levels), _base(base, name, levels), start, tuple(center), scale)
            for name, levels, base, start, center, scale in json.loads(
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


class _Survey(Protocol):
    """What is taken of a :class:`~numpyro_rankings.readers.Survey`."""

    @property
    def rankings(self) -> Any: ...
    @property
    def label_index(self) -> np.ndarray: ...
    @property
    def judges(self) -> list[str] | None: ...


def judge_covariates(
    rankings: "Rankings | _Survey", frame: Any, formula: str | Sequence[str]
) -> RankingsBy:
    """Prepare covariates of judges for :class:`~numpyro_rankings.infer.TemperedMixture`.

    A column of numbers has a linear effect, and one of text an effect of each level, in comparison
    with the commonest one; of equally common ones that is the first by the alphabet. Codes that are
    numbers, such as 1 to 5 for regions, are turned into text for this.

    :param rankings: of N judges, or the survey of a file.
    :param frame: a data frame, or a mapping of the names of columns to values: one for each of the
        N judges, in the order of ``rankings.expand()``, or of the survey, as ``survey.about``.
        Rows of a data frame whose index is of texts or has a name are matched by it to the judges
        of a survey, if it names them.
    :param formula: names of columns joined by +, or a list of names.
    :return: the rankings, whose rows have one ranking and one value of the covariates each, the
        covariates, both of which ``mcmc.run`` takes, and where each judge is in these rankings.
    :raises RankingsError: if a column is not there, has no value in some row, has one value only,
        or is text with more than 20 levels; of interactions and functions of columns; and if the
        index has no row of a judge, two, or one of nobody.

    .. doctest::

       >>> from numpyro_rankings import Rankings, judge_covariates
       >>> rankings = Rankings.from_orderings([[0, 1], [1, 0], [0, 1]], num_items=2)
       >>> made = judge_covariates(rankings, {"region": ["n", "s", "n"], "age": [30, 50, 70]},
       ...                         "region + age")
       >>> made.covariates.columns, made.covariates.design.shape
       (('region: s', 'age'), (3, 2))
    """
    of_labels = None
    if not isinstance(rankings, Rows) and hasattr(rankings, "label_index"):
        survey, rankings = rankings, rankings.rankings
        of_labels, of_rows = np.asarray(survey.label_index), names_of_index(frame)
        if survey.judges is not None and of_rows is not None:
            frame = frame.iloc[rows_of(of_rows, survey.judges, "judges", "were read")]
    check_rankings(rankings)
    assert isinstance(rankings, Rankings)
    columns = {str(name): frame[name] for name in frame}
    names = names_in(formula, list(columns), "judges")
    terms, parts, start = list[Covariate](), [], 0
    for name in names:
        values = list(columns[name])
        if len(values) != rankings.num_rankings:
            raise RankingsError(
                f"the column {name!r} has {len(values)} values, but there are "
                f"{rankings.num_rankings} rankings: give one value for each of them"
            )
        term, coded = read_covariate(name, values, start)
        terms.append(term)
        parts.append(np.round(coded, 6))  # so that equal values are one cell
        start += len(term.columns)
    coded = np.hstack(parts)
    if of_labels is not None:
        coded = coded[np.argsort(of_labels)]
    design, cells = np.unique(coded, axis=0, return_inverse=True)
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
    judges = judges if of_labels is None else judges[of_labels]
    return RankingsBy(merged._take(keys[:, 0], counts), covariates, judges)


def find_covariates(args: tuple, kwargs: Mapping[str, Any]) -> JudgeCovariates | None:
    """Return the covariates of the judges among the arguments of a model, if there are any."""
    found = (x for x in (*args, *kwargs.values()) if isinstance(x, JudgeCovariates))
    return next(found, None)


def _base(base: Any, name: str, levels: Sequence[str]) -> str:
    """Return the level that others are compared with; once the names of the columns were kept."""
    if isinstance(base, str):
        return base
    return next((level for level in levels if f"{name}: {level}" not in base), "")
