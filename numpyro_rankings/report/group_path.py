"""How many groups there are, as if there were fewer rankings than there are."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from numpyro.infer import MCMC
from scipy.special import logsumexp

from numpyro_rankings.infer import TemperedMixture
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.posterior.ladders import LEAST_DRAWS, ladders_of, log_evidences
from numpyro_rankings.rankings import Rankings, check_rankings

# Functions import xarray, which takes long to load.

__all__ = ["Stretch", "group_path", "lasting_number"]

_NUM_SIZES, _FIRST_SIZE = 60, 2.0
_PROBABLE = 0.5  # a larger probability is more than not
_LASTING = 2.0  # a number of groups lasts if its range has this factor
_MUCH_LESS = 10.0  # log evidence by which a number that is not needed is below the largest one


class Stretch(NamedTuple):
    """A number of groups that has the largest probability over a range of effective sizes."""

    num_components: int
    first: float
    last: float

    @property
    def factor(self) -> float:
        """The ratio of the ends of the range."""
        return self.last / self.first


def group_path(
    rankings: Rankings,
    family: Any = "mallows",
    max_components: int = 8,
    *,
    effective_sizes: Sequence[float] | None = None,
    key: Array | None = None,
    num_ladders: int = 2,
    num_warmup: int = 200,
    num_samples: int = 200,
    after_number: Callable[[int, MCMC], None] | None = None,
) -> Any:
    r"""
    Probability of each number of groups, as if there were fewer rankings than there are.

    A model is only about right, and with enough rankings every departure from it becomes a group.
    Raised to a power z, the likelihood tells what z N rankings would tell if the model were right
    [1]. One ladder for each number K gives its evidence at all powers; all K are equally probable
    beforehand. The number that lasts over the widest range of effective sizes depends little on how
    many rankings there are, unless its range ends with them: :func:`lasting_number` returns it.

    The numbers go up to **max_components**, or until two in a row are nowhere the most probable and
    have far less evidence than a smaller one at the largest size.

    :param rankings: to fit.
    :param family: as of :class:`~numpyro_rankings.infer.TemperedMixture`.
    :param max_components: the largest K.
    :param effective_sizes: z N, increasing up to N; by default 60 from 2 to N, evenly in their
        logarithm.
    :param key: a random key.
    :param num_ladders: independent ladders for each K.
    :param num_warmup: sweeps in which the rungs are placed.
    :param num_samples: draws of each ladder.
    :param after_number: called with each K and its MCMC when it has run.
    :return: an :class:`xarray.Dataset` with ``probability``, ``log_evidence`` and its
        ``standard_error`` over ``effective_size`` and ``num_components``, and ``round_trips`` of
        each K, the least of its ladders.

    **References**

    1. Miller, J. W., Dunson, D. B. (2019), "Robust Bayesian inference via coarsening".
    """
    import xarray as xr

    check_rankings(rankings)
    check_whole("max_components", max_components)
    check_whole("num_ladders", num_ladders)
    check_whole("num_warmup", num_warmup, 0)
    check_whole("num_samples", num_samples)
    if num_samples < LEAST_DRAWS:
        raise ValueError(f"num_samples must be at least {LEAST_DRAWS}, got {num_samples}")
    effective_sizes = _checked_sizes(effective_sizes, rankings.num_rankings)
    key = jax.random.key(0) if key is None else key
    values: list[np.ndarray] = []
    errors: list[np.ndarray] = []
    round_trips: list[int] = []
    for number in range(1, max_components + 1):
        mcmc = MCMC(
            TemperedMixture(family, number),
            num_warmup=num_warmup,
            num_samples=num_samples,
            num_chains=num_ladders,
            chain_method="vectorized",
            progress_bar=False,
        )
        mcmc.run(jax.random.fold_in(key, number), rankings)
        value, error = log_evidences(ladders_of(mcmc), effective_sizes)
        values, errors = [*values, value], [*errors, error]
        trips = mcmc.get_extra_fields(group_by_chain=True)["round_trips"]
        round_trips.append(int(np.asarray(trips)[:, -1].min()))
        if after_number is not None:
            after_number(number, mcmc)
        if _is_enough(values):
            break
    table = np.array(values).T
    axes = "effective_size", "num_components"
    probability = np.exp(table - logsumexp(table, axis=1, keepdims=True))
    return xr.Dataset(
        {
            "probability": (axes, probability),
            "log_evidence": (axes, table),
            "standard_error": (axes, np.array(errors).T),
            "round_trips": (axes[1], round_trips),
        },
        {
            "effective_size": np.asarray(effective_sizes, float),
            "num_components": np.arange(1, len(values) + 1),
        },
    )


def _checked_sizes(sizes: Sequence[float] | None, most: int) -> list[float]:
    if sizes is None:
        return np.geomspace(min(_FIRST_SIZE, most / 2), most, _NUM_SIZES).tolist()
    array = np.asarray(sizes, float)
    increases = array.ndim == 1 and len(array) > 0 and np.all(np.diff(array) > 0)
    if not increases or not (array[0] > 0 and array[-1] <= most):
        raise ValueError(
            f"effective_sizes must increase, from above 0 to at most the {most} rankings, got "
            f"{sizes!r}"
        )
    return array.tolist()


def _is_enough(values: Sequence[np.ndarray]) -> bool:
    """Whether the last two numbers are not needed at any effective size, the largest one last."""
    if len(values) < 3:
        return False
    lead = np.max(values[:-2], axis=0) - np.maximum(values[-1], values[-2])
    return bool(np.all(lead > 0) and lead[-1] > _MUCH_LESS)


def stretches(path: Any) -> list[Stretch]:
    """Return the ranges over which one number is more probable than not, from few rankings to all.

    :param path: as :func:`group_path` returns it.
    """
    sizes, probability = path["effective_size"].values, path["probability"].values
    numbers = path["num_components"].values[probability.argmax(1)]
    numbers = np.where(probability.max(1) > _PROBABLE, numbers, 0)
    # a range goes on to the middle, in logarithms, of the sizes on both sides of a change
    middles = np.sqrt(sizes[1:] * sizes[:-1])
    changes = np.flatnonzero(np.diff(numbers))
    ranges = zip(
        np.append(numbers[changes], numbers[-1]),
        np.append(sizes[0], middles[changes]),
        np.append(middles[changes], sizes[-1]),
        strict=True,
    )
    return [Stretch(int(k), float(a), float(b)) for k, a, b in ranges if k > 0]


def lasting_number(path: Any) -> Stretch | None:
    """Return the number of groups that lasts over the widest range of effective sizes.

    With few rankings every model has one group, so that one group counts only if no other number is
    ever more probable than not. The range of another number has to have a factor of 2 at least.

    :param path: as :func:`group_path` returns it.
    :return: the number and its range; None if no number stands out.
    """
    ranges = stretches(path)
    several = [x for x in ranges if x.num_components > 1]
    if not several:
        is_one_at_end = ranges and ranges[-1].last == path["effective_size"].values[-1]
        return ranges[-1] if is_one_at_end else None
    best = max(several, key=lambda x: x.factor)
    return None if best.factor < _LASTING else best
