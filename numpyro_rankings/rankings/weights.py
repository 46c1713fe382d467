"""Rankings whose judges have survey weights, and how many judges these are worth."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.rankings.container import Rankings, check_rankings
from numpyro_rankings.rankings.names import RankingsError, as_array, is_missing, row_place


class SurveyWeights(NamedTuple):
    """What :func:`~numpyro_rankings.survey_weights` returns.

    - **scaled** - the weights with the sum **effective_number**, (N,) float.
    - **effective_number** - of judges, by Kish.
    - **design_effect** - N divided by the effective number, at least 1.
    """

    scaled: np.ndarray
    effective_number: float
    design_effect: float


def survey_weights(values: Any, counts: Any = None) -> SurveyWeights:
    r"""
    Scale survey weights to the effective number of judges.

    The effective number of judges with weights :math:`v_i` is
    :math:`n = (\sum_i v_i)^2 / \sum_i v_i^2` [1], and the scaled weights are
    :math:`w_i = n v_i / \sum_j v_j`. It is how many judges of equal weight have a weighted mean
    of the same variance, if what judges say does not depend on their weights.

    :param values: :math:`v_i`, (N,), not negative; judges of weight 0 say nothing.
    :param counts: number of judges that each of the values is of, by default 1.
    :return: the scaled weights, the effective number and the design effect.
    :raises RankingsError: naming the row, counted from 1.

    **References**

    1. Kish, L. (1965), "Survey Sampling", Wiley, Section 11.7.

    .. doctest::

       >>> from numpyro_rankings import survey_weights
       >>> weights = survey_weights([1.0, 1.0, 2.0])
       >>> weights.scaled.round(3).tolist()
       [0.667, 0.667, 1.333]
       >>> round(weights.effective_number, 3), round(weights.design_effect, 3)
       (2.667, 1.125)
    """
    array = check_weights(values)
    number = np.ones(array.shape) if counts is None else np.asarray(counts, float)
    shape = array / array.max()  # squares of large or small numbers are out of range
    total = float((number * shape).sum())
    scale = total / float((number * shape**2).sum())
    return SurveyWeights(shape * scale, total * scale, float(number.sum()) / (total * scale))


def check_weights(values: Any, where: Callable[[int], str] = row_place) -> np.ndarray:
    """Return checked survey weights, float (N,)."""
    array = as_array(values)
    if array.dtype == object:
        array = np.array([np.nan if is_missing(x) else x for x in array.flat], object)
        array = array.reshape(np.shape(values))
    try:
        numbers = array.astype(float)
    except (TypeError, ValueError):
        raise RankingsError(f"weights must be numbers, got dtype {array.dtype}") from None
    if numbers.ndim != 1 or not len(numbers):
        raise RankingsError(f"weights must have shape (N,), got {numbers.shape}")
    broken = ~(np.isfinite(numbers) & (numbers >= 0))
    if broken.any():
        row = int(np.argmax(broken))
        raise RankingsError(
            f"{where(row)}: weight {numbers[row]:g} is not a number from 0 on"
            f"{f' (also {broken.sum() - 1} more)' if broken.sum() > 1 else ''}"
        )
    if not numbers.any():
        raise RankingsError("all weights are 0: no judge says anything")
    return numbers


@jax.tree_util.register_pytree_node_class
class WeightedRankings(Rankings):
    """Rankings whose judges have survey weights, for :class:`~.infer.TemperedMixture`.

    They are made by :meth:`of`, or by :func:`~numpyro_rankings.read_survey` with ``weight=``.

    - **weights** - scaled weight of each judge of a row, their mean where these differ, float
      (rows,). The posterior depends on their sum in a row only.
    - **effective_number** - the sum of the weights of all judges: how many they are worth.
    """

    __slots__ = ("effective_number", "weights")
    _leaves = ("orderings", "lengths", "counts", "weights", "choice_sets")
    _static = ("effective_number", "num_items", "items", "num_rankings")

    weights: Array
    effective_number: float  # type: ignore[misc]  # a property of those without weights

    @classmethod
    def of(cls, rankings: Rankings, weights: Any, scale: bool = True) -> "WeightedRankings":
        """Return the rankings with weights.

        :param weights: that of each judge of a row, (rows,), not negative.
        :param scale: whether to scale them to the effective number of judges, as
            :func:`~numpyro_rankings.survey_weights`; else a judge counts as often as its weight.
        :raises RankingsError: naming the row.
        """
        check_rankings(rankings)
        numbers, counts = check_weights(weights), np.asarray(rankings.counts)
        if numbers.shape != counts.shape:
            raise RankingsError(
                f"there must be a weight for each of the {rankings.num_rows} rows, got "
                f"{len(numbers)}"
            )
        effective = float(numbers @ counts)
        if scale:
            numbers, effective, _ = survey_weights(numbers, counts)
        return cls._made(rankings, numbers, effective)

    @classmethod
    def of_judges(cls, rankings: Rankings, rows: np.ndarray, weights: Any) -> "WeightedRankings":
        """Return the rankings with the weights of N judges, given the row of each, (N,)."""
        scaled, effective, _ = survey_weights(weights)
        sums = np.bincount(rows, scaled, rankings.num_rows)
        return cls._made(rankings, sums / np.asarray(rankings.counts), effective)

    @classmethod
    def _made(cls, rankings: Rankings, means: np.ndarray, effective: float) -> "WeightedRankings":
        (*leaves, offered), static = rankings.tree_flatten()
        return cls._make((*leaves, jnp.asarray(means, float), offered), (effective, *static))

    def with_lists(self, rankings: Rankings) -> "WeightedRankings":
        """Return the weights with other lists of the judges of the same rows."""
        (*leaves, offered), static = rankings.tree_flatten()
        return self._make((*leaves, self.weights, offered), (self.effective_number, *static))

    def unweighted(self) -> Rankings:
        """Return the rankings without the weights."""
        (*leaves, _, offered), (_, *static) = self.tree_flatten()
        return Rankings._make((*leaves, offered), tuple(static))

    @property
    def design_effect(self) -> float:
        """The number of judges divided by the effective number."""
        return self.num_rankings / self.effective_number

    def __repr__(self) -> str:
        return f"Weighted{super().__repr__()[:-1]}, worth {self.effective_number:.4g})"

    def merged(self) -> tuple[Self, np.ndarray]:
        made, new_row = super().merged()
        sums = np.asarray(self.weights, float) * np.asarray(self.counts)
        means = np.bincount(new_row, sums) / np.asarray(made.counts)
        return made._with(means), new_row

    def _take(self, rows: np.ndarray, counts: np.ndarray) -> Self:
        """Return some of the rows with the weights that they have here, whatever their sum."""
        taken = super()._take(rows, counts)
        if taken.num_rankings == self.num_rankings:
            return taken
        weights = np.asarray(taken.weights, float)
        return taken._with(weights, float(weights @ np.asarray(counts)))

    def _with(self, weights: np.ndarray, effective_number: float | None = None) -> Self:
        leaves, (old, *static) = self.tree_flatten()
        new = [
            jnp.asarray(weights, float) if name == "weights" else leaf
            for name, leaf in zip(self._leaves, leaves, strict=True)
        ]
        return self._make(new, (old if effective_number is None else effective_number, *static))


def weights_in_words(rankings: WeightedRankings) -> str:
    """Say what the weights are worth."""
    number, effective = rankings.num_rankings, rankings.effective_number
    effect = f"design effect {rankings.design_effect:.2f}"
    return f"{number:,} judges count as {effective:,.0f} ({effect})"


def worth_of(rankings: Any, amounts: Any) -> Any:
    """Return what numbers of judges by row, (rows,) or (rows, K), are worth: sums of weights."""
    if not isinstance(rankings, WeightedRankings):
        return amounts
    return amounts * np.asarray(rankings.weights, float).reshape(-1, *[1] * (np.ndim(amounts) - 1))
