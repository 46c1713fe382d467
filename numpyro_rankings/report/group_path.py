"""How many groups there are, as if there were fewer rankings than there are."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from numpyro.diagnostics import split_gelman_rubin
from numpyro.infer import MCMC
from scipy.special import logsumexp

from numpyro_rankings._system.memory import TooLittleMemoryError
from numpyro_rankings.infer import TemperedMixture
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.posterior.diagnostics import R_HAT_APART
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.ladders import LEAST_DRAWS, ladders_of, log_evidences
from numpyro_rankings.posterior.partitions import medoid_partition
from numpyro_rankings.rankings import Orders, Rankings, check_rankings
from numpyro_rankings.report.judgements import least_agreement
from numpyro_rankings.report.one_program import as_used, common_width, sites_of_used
from numpyro_rankings.report.path_time import PathTime
from numpyro_rankings.run import Run
from numpyro_rankings.run.loop import sharing_programs
from numpyro_rankings.words import in_minutes

# Functions import xarray, which takes long to load.

__all__ = ["GroupChoice", "Stretch", "choose_number", "group_path", "lasting_number"]

_NUM_SIZES, _FIRST_SIZE = 60, 2.0
_PROBABLE = 0.5  # a larger probability is more than not
_LASTING = 2.0  # a number of groups lasts if its range has this factor
_MUCH_LESS = 10.0  # log evidence by which a number that is not needed is below the largest one
_DRAWS_OF_MEDOID = 60
_PIECE = 50  # draws, after which it is looked whether they suffice
_SETTLED_R_HAT, _SETTLED_ERROR = 1.05, 0.5


class Stretch(NamedTuple):
    """A number of groups that has the largest probability over a range of effective sizes.

    Components without a common order are not counted as groups: ``num_components``, the most
    probable number of components at the end of the range, may be larger than ``num_groups``.
    """

    num_components: int
    first: float
    last: float
    num_groups: int

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
    prior: Sequence[float] | None = None,
    minutes: float | None = None,
    chains_after: int = 0,
    devices: Sequence[jax.Device] | None = None,
    after_number: Callable[[int, MCMC], None] | None = None,
) -> Any:
    r"""
    Probability of each number of groups, as if there were fewer rankings than there are.

    A model is only about right, and with enough rankings every departure from it becomes a group.
    Raised to a power z, the likelihood tells what z N rankings would tell if the model were right
    [1]. One ladder for each number K gives its evidence at all powers, and with the **prior** its
    probability. The number that lasts over the widest range of effective sizes depends little on
    how many rankings there are, unless its range ends with them: :func:`lasting_number` returns it.

    The numbers go up to **max_components**, or until two in a row are nowhere the most probable, at
    sizes of no fewer rankings than components, and have far less evidence than a smaller one at the
    largest size.

    A component without a common order is not counted as a group: its judges follow none of the
    others. Its agreement is below 3 divided by its size, which chance alone may make, but at least
    1% and at most 3%.

    :param rankings: to fit; N is their effective number if judges have survey weights.
    :param family: as of :class:`~numpyro_rankings.infer.TemperedMixture`.
    :param max_components: the largest K.
    :param effective_sizes: z N, increasing up to N; by default 60 from 2 to N, evenly in their
        logarithm.
    :param key: a random key.
    :param num_ladders: independent ladders for each K.
    :param num_warmup: sweeps in which the rungs are placed.
    :param num_samples: draws of each ladder, at most: fewer where the ladders agree and the
        standard error of the log evidence is below 0.5 at all sizes.
    :param prior: of 1, 2, … components, up to a common factor; by default all are equally probable.
    :param minutes: for all of it. A number is begun if it would end in time, as far as those before
        it tell. If it takes longer it gets no further draws, and is left out if it has fewer than
        20.
    :param chains_after: the number of chains, if a fit is to follow in the same minutes: time is
        left for its compilation, and for as many sweeps of each chain as a ladder has.
    :param devices: over which the ladders of a number are spread, as of
        :class:`~numpyro_rankings.Run`.
    :param after_number: called with each K and its ladders, an MCMC of
        :class:`~numpyro_rankings.infer.TemperedMixture`, when they have run.
    :return: an :class:`xarray.Dataset` with ``probability``, ``log_evidence`` and its
        ``standard_error`` over ``effective_size`` and ``num_components``; and for each K
        ``num_groups``; ``round_trips``, the least of the ladders; ``agreed_size``, the effective
        size up to which the ladders are in the same places; and ``labels`` of each ranking, those
        of the draw that agrees best with the others. Its attribute ``ended`` says why there are no
        further numbers: ``"enough"``, ``"number"`` (as many as were asked for), ``"time"``,
        or ``"memory"``, of which there was too little.

    **References**

    1. Miller, J. W., Dunson, D. B. (2019), "Robust Bayesian inference via coarsening".
    """
    import xarray as xr

    if isinstance(rankings, Orders):
        raise TypeError(
            f"group_path takes Rankings, and no {type(rankings).__name__}; compare takes them, and "
            "says which number of groups predicts best"
        )
    if not isinstance(rankings, Rankings):
        check_rankings(rankings)
    check_whole("max_components", max_components)
    check_whole("num_ladders", num_ladders)
    check_whole("num_warmup", num_warmup, 0)
    check_whole("num_samples", num_samples)
    check_whole("chains_after", chains_after, 0)
    if num_samples < LEAST_DRAWS:
        raise ValueError(f"num_samples must be at least {LEAST_DRAWS}, got {num_samples}")
    effective_sizes = _checked_sizes(effective_sizes, rankings.effective_number)
    log_prior = _checked_prior(prior, max_components)
    key = jax.random.key(0) if key is None else key

    ladders = {"num_chains": num_ladders, "num_warmup": num_warmup, "devices": devices}
    runs = _Runs(family, rankings, max_components, key, **ladders)
    numbers, is_enough = list[_OfNumber](), False
    time = PathTime(minutes, chains_after / num_ladders)
    with sharing_programs():
        for number, run in _draw(runs, max_components, effective_sizes, num_samples, time):
            draws = _draws_of(run, number, rankings)
            numbers.append(_read_number(run, draws, effective_sizes))
            if after_number is not None:
                warmup, kernel = run.num_sweeps - run.num_draws, TemperedMixture(family, number)
                after_number(number, as_used(run.as_mcmc(), kernel, warmup))
            is_enough = _is_enough([*_weighted(numbers, log_prior)], effective_sizes)
            if is_enough:
                break
    if not numbers:
        raise TooLittleTimeError(f"{in_minutes(minutes or 0)} did not suffice for one component")
    columns = {name: np.array([getattr(x, name) for x in numbers]) for name in _OfNumber._fields}
    table = _weighted(numbers, log_prior)
    columns["probability"] = np.exp(table - logsumexp(table, axis=0))
    axes = "num_components", "effective_size"
    rest = {"labels": ("num_components", "ranking")}
    variables = {name: (rest.get(name, axes[: x.ndim]), x) for name, x in columns.items()}
    coordinates = {
        "effective_size": np.asarray(effective_sizes, float),
        "num_components": np.arange(1, len(numbers) + 1),
    }
    ended = "enough" if is_enough else "number" if len(numbers) == max_components else "time"
    ended = "memory" if ended == "time" and runs.is_full else ended
    path = xr.Dataset(variables, coordinates, {"ended": ended})
    return path.transpose("effective_size", ...)


def programs_of_path(
    rankings: Rankings,
    family: Any,
    max_components: int,
    num_ladders: int,
    devices: Sequence[jax.Device] | None,
) -> Iterator[tuple[int, Callable[[], Run]]]:
    """Yield what begins a run of each program of :func:`group_path`, and its most components.

    Each is to be begun before the next one is asked for.
    """
    settings: dict[str, Any] = {"num_chains": num_ladders, "num_warmup": 0, "devices": devices}
    runs = _Runs(family, rankings, max_components, jax.random.key(0), **settings)
    for number in range(1, max_components + 1):
        if runs.is_new(number):
            yield runs._widths(number)[1], partial(runs.begin, number)


class _Runs:
    """Begins the runs of all numbers of components, of which several have one program."""

    def __init__(
        self, family: Any, rankings: Rankings, most: int, key: Array, **settings: Any
    ) -> None:
        self._family, self._rankings, self._most = family, rankings, most
        self._key, self._settings = key, settings
        self._kernels = dict[int, TemperedMixture]()
        self.is_full = False  # the memory

    def begin(self, number: int) -> Run:
        """Begin a run, with fewer components in the program if there is little memory."""
        least, width = self._widths(number)
        if width > least:
            with contextlib.suppress(TooLittleMemoryError):
                return self._begin_in(width, number)
        try:
            return self._begin_in(least, number)
        except TooLittleMemoryError:
            self.is_full = True
            raise

    def begin_if_room(self, number: int) -> Run | None:
        """Begin a run, unless there is too little memory: then the path ends."""
        with contextlib.suppress(TooLittleMemoryError):
            return self.begin(number)
        return None

    def is_new(self, number: int) -> bool:
        """Whether the program of a number is not there yet."""
        return self._widths(number)[1] not in self._kernels

    def _widths(self, number: int) -> tuple[int, int]:
        """Return the least number of components that its program can have, and the usual one."""
        least = max(2, number)  # so that there are labels
        return least, common_width(number, self._most)

    def _begin_in(self, width: int, number: int) -> Run:
        if width not in self._kernels:
            self._kernels[width] = TemperedMixture(self._family, width).padded(width)
        return Run(
            self._kernels[width],
            self._rankings,
            key=jax.random.fold_in(self._key, number),
            burn_in=0.0,
            model_kwargs={"num_used": np.array(number, np.int32)},
            progress=False,
            **self._settings,
        )


def _draw(
    runs: _Runs, most: int, sizes: Sequence[float], num_samples: int, time: PathTime
) -> Iterator[tuple[int, Run]]:
    """Make the draws of one number after another, as long as there is time."""

    def check_time(_: Run) -> None:
        time.sweep()
        if time.is_over():
            raise _LateError

    run: Run | None = runs.begin(1)
    for number in range(1, most + 1):
        if run is None:
            return
        following = None
        if number < most and time.suffices(runs.is_new(number + 1), numbers=2):
            following = runs.begin_if_room(number + 1)  # whose program is compiled meanwhile
        time.begin()
        with contextlib.suppress(_LateError):
            while run.num_draws < num_samples and not _is_settled(run, number, sizes):
                run.extend(min(_PIECE, num_samples - run.num_draws), check_time)
        time.end()
        if run.num_draws >= LEAST_DRAWS:
            yield number, run
        compiles = following is None and runs.is_new(number + 1)
        if number == most or not time.suffices(compiles):
            return
        run = following or runs.begin_if_room(number + 1)


class TooLittleTimeError(ValueError):
    """There were too few draws of one component."""


class _LateError(Exception):
    """The time is over."""


def _draws_of(run: Run, number: int, rankings: Rankings | None = None) -> Draws:
    """Return the draws of the components in use."""
    draws = Draws.of(run.as_mcmc(), rankings)
    assert draws.family is not None
    samples = sites_of_used(draws.samples, draws.family.parameters, number)
    return replace(draws, samples=samples, num_components=number)


def _is_settled(run: Run, number: int, sizes: Sequence[float]) -> bool:
    """Whether the ladders agree, and further draws would hardly change the evidence."""
    if run.num_draws < _PIECE:
        return False
    draws = _draws_of(run, number)
    agreed = _agreed_size(draws.ladder, draws.samples["shares"], _SETTLED_R_HAT)
    if agreed < draws.ladder["rung_effective_size"][0, -1, -1]:
        return False
    return bool(log_evidences(ladders_of(draws), sizes)[1].max() < _SETTLED_ERROR)


class _OfNumber(NamedTuple):
    """What the ladders of one number of components say."""

    log_evidence: np.ndarray  # (sizes,)
    standard_error: np.ndarray  # (sizes,)
    num_groups: int
    round_trips: int
    agreed_size: float
    labels: np.ndarray  # (N,)


def _weighted(numbers: Sequence[_OfNumber], log_prior: np.ndarray) -> np.ndarray:
    """Return the log evidence times the prior of each number, (numbers, sizes)."""
    return np.array([x.log_evidence + p for x, p in zip(numbers, log_prior, strict=False)])


def _read_number(run: Run, draws: Draws, sizes: Sequence[float]) -> _OfNumber:
    round_trips = run.as_mcmc().get_extra_fields(group_by_chain=True)["round_trips"]
    all_labels = draws.flat()["assignments"]
    return _OfNumber(
        *log_evidences(ladders_of(draws), sizes),
        num_groups=_count_groups(draws),
        round_trips=int(np.asarray(round_trips)[:, -1].min()),
        agreed_size=_agreed_size(draws.ladder, draws.samples["shares"]),
        labels=medoid_partition(all_labels, _DRAWS_OF_MEDOID).labels.astype(np.int32),
    )


def _count_groups(draws: Draws) -> int:
    """Return the usual number of components that have a common order."""
    family, samples = draws.family, draws.flat()
    assert family is not None
    shape = samples["shares"].shape
    each = {name: samples[name].reshape(-1, samples[name].shape[-1]) for name in family.parameters}
    entropies = family.entropies(each)
    if entropies is None:
        return int(shape[-1])
    agreement = 1 - entropies[0].reshape(shape) / entropies[1]
    has_order = agreement >= least_agreement(samples["cluster_sizes"])
    return max(1, int(np.median(has_order.sum(-1))))


def _agreed_size(
    ladder: Mapping[str, np.ndarray], shares: np.ndarray, r_hat_apart: float = R_HAT_APART
) -> float:
    """Return the effective size up to which all ladders are in the same places."""
    sizes = np.asarray(ladder["rung_effective_size"])[0, -1]
    r_hat = split_gelman_rubin(np.asarray(ladder["rung_log_likelihood"], np.float64))
    of_shares = split_gelman_rubin(np.sort(shares.astype(np.float64), -1)).max()
    r_hat[-1] = max(r_hat[-1], of_shares if shares.shape[-1] > 1 else 0.0)
    apart = np.flatnonzero(r_hat > r_hat_apart)
    return float(sizes[-1] if not len(apart) else sizes[max(apart[0] - 1, 0)])


def _checked_sizes(sizes: Sequence[float] | None, most: float) -> list[float]:
    if sizes is None:
        return np.geomspace(min(_FIRST_SIZE, most / 2), most, _NUM_SIZES).tolist()
    array = np.asarray(sizes, float)
    increases = array.ndim == 1 and len(array) > 0 and np.all(np.diff(array) > 0)
    if not increases or not (array[0] > 0 and array[-1] <= most):
        raise ValueError(
            f"effective_sizes must increase, from above 0 to at most the {most:.9g} rankings, got "
            f"{sizes!r}"
        )
    return array.tolist()


def _checked_prior(prior: Sequence[float] | None, max_components: int) -> np.ndarray:
    weights = np.ones(max_components) if prior is None else np.asarray(prior, float)
    if weights.shape != (max_components,) or not np.all((weights > 0) & np.isfinite(weights)):
        raise ValueError(f"prior must be {max_components} positive numbers, got {prior!r}")
    return np.log(weights / weights.sum())


def _is_enough(values: Sequence[np.ndarray], sizes: Sequence[float]) -> bool:
    """Whether the last two numbers are not needed at any effective size, the largest one last."""
    if len(values) < 3:
        return False
    lead = np.max(values[:-2], axis=0) - values[-2:]
    # with fewer rankings than components all numbers are about as probable
    has_rankings = np.asarray(sizes) >= [[len(values) - 1], [len(values)]]
    return bool(np.all(lead[has_rankings] > 0) and np.all(lead[:, -1] > _MUCH_LESS))


def stretches(path: Any) -> list[Stretch]:
    """Return the ranges over which one number is more probable than not, from few rankings to all.

    :param path: as :func:`group_path` returns it.
    """
    if not hasattr(path, "data_vars") or "probability" not in path:
        raise TypeError(f"path must be what group_path returns, got {type(path).__name__}")
    sizes, probability = path["effective_size"].values, path["probability"].values
    components, groups = path["num_components"].values, path["num_groups"].values
    of_groups = np.unique(groups)
    by_groups = np.stack([probability[:, groups == k].sum(1) for k in of_groups], 1)
    numbers = np.where(by_groups.max(1) > _PROBABLE, of_groups[by_groups.argmax(1)], 0)
    # a range goes on to the middle, in logarithms, of the sizes on both sides of a change
    middles = np.sqrt(sizes[1:] * sizes[:-1])
    changes = np.flatnonzero(np.diff(numbers))
    ends = np.append(changes, len(numbers) - 1)
    ranges = []
    for end, low, high in zip(
        ends,
        np.append(sizes[0], middles[changes]),
        np.append(middles[changes], sizes[-1]),
        strict=True,
    ):
        if numbers[end]:
            likely = np.where(groups == numbers[end], probability[end], -1.0).argmax()
            ranges.append(
                Stretch(int(components[likely]), float(low), float(high), int(numbers[end]))
            )
    return ranges


def lasting_number(path: Any) -> Stretch | None:
    """Return the number of groups that lasts over the widest range of effective sizes.

    With few rankings the prior decides, and any number may be the most probable, so that ranges
    before the first one of the smallest number do not count. Nor does one group, for which few
    rankings often speak, whatever the judges are like: it is returned only if no other number
    follows. The range of another number has to have a factor of 2 at least.

    :param path: as :func:`group_path` returns it.
    :return: the number and its range; None if no number stands out.
    """
    best = _widest(path)
    return best if best is not None and (best.num_groups == 1 or best.factor >= _LASTING) else None


def _widest(path: Any) -> Stretch | None:
    ranges = stretches(path)
    if not ranges:
        return None
    ranges = ranges[int(np.argmin([x.num_groups for x in ranges])) :]
    several = [x for x in ranges if x.num_groups > 1]
    if several:
        return max(several, key=lambda x: x.factor)
    is_one_at_end = ranges[-1].last == path["effective_size"].values[-1]
    return ranges[-1] if is_one_at_end else None


class GroupChoice(NamedTuple):
    """The number of groups to report, and at which resolution.

    - **stretch** - the range over which it lasts, None if no number stands out.
    - **effective_size** - up to which independent ladders agree; None if they do with all rankings,
      or not even where this number of groups is probable.
    """

    num_components: int
    num_groups: int
    stretch: Stretch | None
    effective_size: float | None


def choose_number(path: Any) -> GroupChoice:
    """Return the number of groups to report.

    It is that of :func:`lasting_number`; if none stands out, the one with the widest range, or else
    the most probable on average over the logarithm of the effective size. Where its ladders are in
    different places with all rankings, it is to be reported at the size up to which they agree.

    :param path: as :func:`group_path` returns it.
    """
    stretch = _widest(path)
    if stretch is None:
        number = int(path["probability"].mean("effective_size").values.argmax()) + 1
    else:
        number = stretch.num_components
    of_number = path.sel(num_components=number)
    least, most = (float(path["effective_size"][i]) for i in (0, -1))
    least = least if stretch is None else stretch.first  # below, another number is more probable
    agreed = float(of_number["agreed_size"])
    is_at_size = least <= agreed < most * (1 - 1e-6)
    return GroupChoice(
        number,
        int(of_number["num_groups"]),
        lasting_number(path),
        agreed if is_at_size else None,
    )
