"""Which model predicts best, and how many groups there are."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jax import Array
from numpyro.infer import MCMC
from scipy.special import logsumexp

from numpyro_rankings import families
from numpyro_rankings._system import clock
from numpyro_rankings.families.scored import ScoredLists, scored
from numpyro_rankings.infer import PlackettLuceGibbs, SliceGibbs, TemperedMixture
from numpyro_rankings.infer.base import GibbsKernel
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.linear_extensions import SumTooLargeError
from numpyro_rankings.posterior import Draws, log_predictive_density
from numpyro_rankings.posterior.diagnostics import R_HAT_BAD
from numpyro_rankings.posterior.draws import family_of_kernel, num_components_of
from numpyro_rankings.posterior.inference_data import to_inference_data
from numpyro_rankings.posterior.ladders import LEAST_DRAWS, log_evidence
from numpyro_rankings.posterior.predictive_checks import (
    PredictiveCheck,
    posterior_predictive_checks,
)
from numpyro_rankings.posterior.stacking import leave_one_out
from numpyro_rankings.rankings import (
    Comparisons,
    Orders,
    Rankings,
    check_rankings,
    check_rows,
    refuse_weights,
)
from numpyro_rankings.rankings.counts import never_compared, sets_apart
from numpyro_rankings.report.judgements import count_outside
from numpyro_rankings.report.one_program import as_used, in_one_program
from numpyro_rankings.report.page import sentence
from numpyro_rankings.run import Run
from numpyro_rankings.run.loop import sharing_programs
from numpyro_rankings.words import in_minutes, listed, plural
from numpyro_rankings.words.options import option

if TYPE_CHECKING:
    import pandas as pd

# Functions import pandas, Jinja and xarray, which take long to load and are not always needed.

_KERNELS = "SliceGibbs, BetaGibbs, PlackettLuceGibbs, DPPlackettLuceGibbs, TemperedMixture"
BAD_K = 0.7  # shape of the Pareto distribution from which on leaving one out is unreliable
_SHARE_BAD = 0.01  # a larger share of judges with such a shape is worth a warning
_CLEAR_ERRORS, _CLEAR_NATS = 2.0, 4.0  # a difference beyond both is clear
_LITTLE_EVIDENCE = 3.0  # nats; beyond, odds are above 20 to 1
_CHECK_DRAWS = 50
_TERMS_A_SECOND = 5e7  # of sums over orders, on two cores
_SUMS_TO_RUN = 5  # times as long as a run these may take
_GROUPS_OF_PROCESS = 8  # about so many groups of any number, of which each scores all judges
_LEAST_DRAWS = 4  # of a chain, for diagnostics
# different rankings from which on chains need a search for their start, and components that a model
# does not have take longer than their compilation
_MANY_ROWS = 1000
_LOOKS, _FIRST_RHAT = 4, 1.05  # at each model, at most; and the goal of the first one
_APART_ERRORS, _APART_NATS = 4.0, 20.0  # a model that is worse by both is not looked at again
_SURE_ERRORS = 2.0  # nor is one whose place would be the same with so many errors of its draws


class TooFewDrawsError(ValueError):
    """A run has too few draws in its time."""


class NotComparedError(ValueError):
    """A model has no density of what the judges said."""


KernelOf = Callable[[int | None], GibbsKernel]  # of a number of groups, None for any number


def _mallows(number: int | None, num_rows: int = _MANY_ROWS) -> GibbsKernel:
    # chains on few rows find one another, and a search takes as long as their sweeps
    init = "nearest" if num_rows < _MANY_ROWS else None
    return SliceGibbs(num_components=number, assignment="parallel", init=init)


_compared: dict[families.RankingFamily, KernelOf] = {
    families.MALLOWS: _mallows,
    families.PLACKETT_LUCE: lambda k: PlackettLuceGibbs(num_components=1 if k is None else k),
}


def compare_by_default(family: families.RankingFamily, kernel_of: KernelOf) -> None:
    """Let :func:`default_models` have models of a further family.

    :param kernel_of: returns the kernel of a number of groups; of any number, if that is None,
        which is asked for only if the family has a process among its ``partitions``.
    """
    _compared[family] = kernel_of


class Comparison(NamedTuple):
    """The result of :func:`~numpyro_rankings.compare`.

    - **table** - a row for each model, the best first. ``elpd`` is the expected log predictive
      density of all judges, each predicted from the others, in nats, and ``se`` its standard error;
      ``elpd_diff`` and ``se_diff`` are of the difference to the best. ``groups`` is the mean number
      of groups, ``bad_k`` the share of the judges that leave-one-out predicts unreliably, NaN after
      k-fold, ``rhat`` the largest R-hat, and ``seconds`` the time of the run. Models of which a
      look says whether they are clearly worse are not run on. ``first_outside`` and
      ``pairs_outside`` are the shares of the items, or pairs of items, whose frequency of first
      places, or of one above the other, is outside the 90% interval of replications of the
      rankings: about one in ten, if the model fits. ``log_evidence`` and ``se_evidence`` are those
      of :func:`~numpyro_rankings.log_evidence`, NaN for other kernels than TemperedMixture.
    - **data** - ArviZ data of each model, for :func:`arviz.compare`.
    - **pointwise** - (N,) log predictive density of each judge, by model.
    - **groups** - family and number of groups of each model, None if it learns the number.
    - **simplest** - the model with the fewest groups among those that are not clearly worse than
      the best.
    - **in_words** - what the table says.
    """

    table: "pd.DataFrame"
    data: dict[str, Any]
    pointwise: dict[str, np.ndarray]
    groups: dict[str, tuple[str, int | None]]
    simplest: str
    in_words: str


class _Fit(NamedTuple):
    """What is kept of the run of a model."""

    data: Any
    values: np.ndarray
    bad_k: float
    groups: float
    rhat: float
    seconds: float
    error: float  # standard error of the elpd due to the draws, NaN if it is not known
    first_outside: float
    pairs_outside: float
    log_evidence: float
    se_evidence: float


def default_models(
    rankings: Rankings | Orders,
    components: Sequence[int] = (1, 2, 3, 4),
    *,
    evidence: bool = False,
) -> dict[str, Any]:
    """Return Mallows and Plackett–Luce models of these numbers of groups, and of any number.

    For rankings with choice sets there are Plackett–Luce models of fixed numbers only, which can
    use them. There are also those of :func:`compare_by_default`.

    :param components: numbers of groups.
    :param evidence: instead, models of these numbers whose evidence is told
        (:class:`~numpyro_rankings.infer.TemperedMixture`).
    """
    check_rows(rankings, takes_comparisons=True)
    if evidence:
        check_rankings(rankings)
        ladders = [
            TemperedMixture(family, number)
            for family in (families.MALLOWS, families.PLACKETT_LUCE)
            if rankings.choice_sets is None or family.takes_choice_sets
            for number in components
        ]
        return {model_name(kernel): kernel for kernel in ladders}
    kernels: list[GibbsKernel] = []
    num_rows = rankings.unique().num_rows
    for family, kernel_of in _compared.items():
        if _takes(family, rankings):
            numbers = [*components, *([None] if "process" in family.partitions else [])]
            if kernel_of is _mallows:
                kernel_of = partial(_mallows, num_rows=num_rows)
            kernels += [kernel_of(number) for number in numbers]
    return {model_name(kernel): kernel for kernel in kernels}


def _takes(family: families.RankingFamily, rankings: Rankings | Orders) -> bool:
    """Whether the likelihood of a family is defined for such rankings, or partial orders."""
    if not isinstance(rankings, Rankings):
        return family.scores_orders
    return rankings.choice_sets is None or family.takes_choice_sets


def model_name(kernel: Any) -> str:
    """Return the name of the model of a kernel, such as ``Mallows (3 groups)``."""
    number = num_components_of(kernel)
    groups = "any number of groups" if number is None else plural(number, "group")
    return f"{_family(kernel)} ({groups})"


def compare(
    rankings: Rankings | Orders,
    models: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    key: Array | None = None,
    kfold: int = 0,
    num_chains: int = 4,
    rhat: float = 1.01,
    ess: float = 200,
    minutes: float = 2,
    max_draws: int = 250,
    before_model: Callable[[str], None] | None = None,
    after_model: Callable[[str, dict[str, Any]], None] | None = None,
) -> Comparison:
    """Compare models by how well they predict judges that they have not seen.

    Each model is run until its chains nearly agree or a quarter of its time is over. Those that are
    worse than the best by both 20 nats and four standard errors stay as they are, and so do those
    whose chains nearly agree if it is clear whether they are worse by both 4 nats and two standard
    errors: by two errors of what the draws say, as far as the chains tell. The others run on, until
    they have twice the effective draws or for a quarter of their time, then three times and four
    times, until all that is clear, or their chains agree. Kernels that differ only in their
    ``num_components`` have one program, if there are fewer than 1,000 different rankings. A
    judge is predicted from all others, with the label summed out, by leave-one-out with
    Pareto-smoothed importance sampling [1]. Where this is unreliable for many judges (``bad_k``),
    use ``kfold``: then the judges are divided into so many parts, and each part is predicted by a
    run on the others, which has all of the time.

    :param rankings: the rankings, partial orders or comparisons to fit. The density of a judge who
        ties items is that of any of the orderings that agree; at most 16 items may be tied or not
        compared. Of comparisons that may be mistakes it is that of what was said, by a judge who
        compared at most 16 items; for Mallows models there are at most 16 in all.
    :param models: kernels of rankings by name, or without names; by default Mallows and
        Plackett–Luce models of 1 to 4 groups, and the Dirichlet process mixture of Mallows models,
        without those that :func:`~numpyro_rankings.report.comparison.comparable_models` leaves out.
        Models of an unlimited pool of items without groups predict other lists and are refused.
    :param key: a random key.
    :param kfold: 0 for leave-one-out, or the number of parts, at least 2.
    :param num_chains: chains of each run.
    :param rhat: a run ends when R-hat is at most this and the ESS at least **ess**, or after so
        many **minutes**; R-hat is in the table. In these there must be a few draws.
    :param max_draws: draws of each chain that predict.
    :param before_model: called with the name of each model before each look at it.
    :param after_model: called with the name and the row of each model after each look at it.

    **References:**

    1. Vehtari, A., Gelman, A., Gabry, J. (2017), "Practical Bayesian model evaluation using
       leave-one-out cross-validation and WAIC", Statistics and Computing 27.
    """
    check_rows(rankings, takes_comparisons=True)
    refuse_weights(rankings, "compare")
    check_whole("kfold", kfold, 0)
    left_out: list[str] = []
    if kfold == 1 or kfold > rankings.num_rankings:
        raise ValueError(f"kfold must be 0, or 2 to {rankings.num_rankings} parts, got {kfold}")
    if models is None:
        models, left_out = comparable_models(
            default_models(rankings), rankings, minutes, num_chains, max_draws
        )
        if not models:
            raise NotComparedError(f"no model can be compared: {'; '.join(left_out)}")
    kernels = _named(models)
    for name, kernel in kernels.items():
        _check_takes(name, kernel, rankings)
    key = jax.random.key(0) if key is None else key
    goals = dict(rhat=rhat, ess=ess, minutes=minutes)
    key_fit, key_check, key_parts = jax.random.split(key, 3)
    fits, runs, has_ended = dict[str, _Fit](), dict[str, Run](), set[str]()

    part_of = minutes / _LOOKS

    def goals_of(number: int) -> dict[str, Any]:
        """Return those of a look: draws whose number grows, and the last look has those asked."""
        near = rhat if number == _LOOKS else max(rhat, 1 + (_FIRST_RHAT - 1) / number)
        return dict(rhat=near, ess=ess * number / _LOOKS, minutes=part_of)

    def look(name: str, run: Run, goals: dict[str, Any]) -> None:
        start, number, kernel = clock.now(), run.num_draws, kernels[name]
        if before_model is not None:
            before_model(name)
        if name not in fits:
            run.extend(1)  # the program may still be compiled, which is no sampling
        run.until(**goals)
        if name not in fits and not kfold and _has_too_few(run):
            run.until(**{**goals, "minutes": minutes - part_of})
            has_ended.add(name)
        if name in fits and run.num_draws == number:
            return
        if _has_too_few(run):
            raise TooFewDrawsError(f"too few draws in {in_minutes(minutes)}: raise minutes")
        fit = _fit(kernel, run, rankings, key_check, max_draws, not kfold)
        if kfold:
            part = _parts(key_parts, rankings.num_rankings, kfold)
            values = _predict_parts(kernel, rankings, part, key_fit, num_chains, goals, max_draws)
            fit = fit._replace(values=values, bad_k=np.nan)
        before = fits[name].seconds if name in fits else 0.0
        fits[name] = fit._replace(seconds=before + clock.now() - start)
        if after_model is not None:
            after_model(name, _row(fits[name], fits[name]))

    with sharing_programs():
        for name, run in _begun(kernels, rankings, key_fit, num_chains):
            runs[name] = run
            look(name, run, goals if kfold else goals_of(1))
    for number in range(2, 1 if kfold else _LOOKS + 1):
        for name in [x for x in _in_question(fits) if x not in has_ended]:
            look(name, runs[name], goals_of(number))
    found = _compare_fits(fits, kernels)
    if left_out:
        said = " ".join(f"{text}." for text in left_out)
        found = found._replace(in_words=f"{found.in_words} {said}")
    if rankings.offered() is not None and (apart := sets_apart(rankings)):
        in_words = f"{found.in_words} {sentence(never_compared(apart))}."
        found = found._replace(in_words=in_words)
    return found


def comparable_models(
    models: Mapping[str, Any],
    rankings: Rankings | Orders,
    minutes: float = 2,
    num_chains: int = 4,
    max_draws: int = 250,
) -> tuple[dict[str, Any], list[str]]:
    """Return the models that can be compared, and why others are left out.

    Of partial orders, the density of a judge is a sum over orders. It may have too many terms, or
    take more than five times as long as the run.

    :param models: kernels of rankings by name.
    :param minutes: those of each run, with **num_chains** and **max_draws** of
        :func:`~numpyro_rankings.compare`.
    """
    kept, why = {}, dict[str, list[str]]()
    for name, kernel in models.items():
        if reason := _why_not_compared(kernel, rankings, minutes, num_chains * max_draws):
            why.setdefault(reason, []).append(name)
        else:
            kept[name] = kernel
    return kept, [f"{_in_short(names, models)} left out: {x}" for x, names in why.items()]


def _in_short(names: Sequence[str], models: Mapping[str, Any]) -> str:
    """Name some of the models, all of a family by its name."""
    left, texts = list(names), []
    for title in dict.fromkeys(_family(models[name]) for name in names):
        of_family = [name for name in models if _family(models[name]) == title]
        if set(of_family) <= set(names):
            left = [name for name in left if name not in of_family]
            texts.append(f"{title} models")
    verb = "is" if len(left) == len(names) == 1 else "are"
    return f"{listed([*texts, *left])} {verb}"


def _why_not_compared(kernel: Any, rankings: Rankings | Orders, minutes: float, draws: int) -> str:
    """Say why a model cannot be compared, or not in the time of a run; nothing if it can."""
    if isinstance(rankings, Rankings):
        return ""
    family = kernel.ranking_family
    try:
        rows = scored(family, family.described(rankings).unique())
    except SumTooLargeError as error:
        return f"the density of a judge {error.reason}"
    assert not isinstance(rows, ScoredLists)
    groups = num_components_of(kernel) or _GROUPS_OF_PROCESS
    takes = rows.num_terms * groups * draws / (60 * _TERMS_A_SECOND)
    if takes <= max(1.0, _SUMS_TO_RUN * minutes):
        return ""
    return (
        "to sum over the orders of items that are tied or not compared takes about "
        f"{plural(max(1, round(takes)), 'minute')}: "
        f"{option('minutes', math.ceil(takes / _SUMS_TO_RUN))} allows it"
    )


def _check_takes(name: str, kernel: Any, rankings: Rankings | Orders) -> None:
    """Refuse a model of which the density of the judges cannot be computed, before it is run."""
    if isinstance(rankings, Rankings):
        return
    if not kernel.takes_partial_orders:
        raise NotComparedError(
            f"{name} cannot be compared: {type(kernel).__name__} takes no {rankings.kind}; "
            f"{rankings.taken_by}"
        )
    family = kernel.ranking_family
    try:
        scored(family, family.described(rankings).unique())
    except ValueError as error:
        raise NotComparedError(f"{name} cannot be compared: {error}") from None


def _compare_fits(fits: Mapping[str, _Fit], kernels: Mapping[str, Any]) -> Comparison:
    """Return what the fits of all models say together."""
    import pandas as pd

    best = max(fits, key=lambda name: fits[name].values.sum())
    rows = {name: _row(fit, fits[best]) for name, fit in fits.items()}
    table = pd.DataFrame.from_dict(rows, orient="index").sort_values(
        "elpd", ascending=False, kind="stable"
    )
    table.index.name = "model"
    simplest, unsure = _simplest(table, kernels), list[str]()
    for name in table.index[~_is_near(table)]:
        if not any(_place(fits[name], fits[best])) and not math.isnan(fits[name].error):
            unsure.append(name)
    return Comparison(
        table,
        {name: fit.data for name, fit in fits.items()},
        {name: fit.values for name, fit in fits.items()},
        {name: (_family(kernel), num_components_of(kernel)) for name, kernel in kernels.items()},
        simplest,
        " ".join(_sentences(table, kernels, simplest, unsure)),
    )


def _named(models: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Return the kernels by name, after checking them."""
    given = models
    if not isinstance(given, Mapping):
        names = [model_name(kernel) for kernel in given]
        twice = [name for k, name in enumerate(names) if name in names[:k]]
        if twice:
            raise ValueError(f"two models are {twice[0]!r}: give them names, as a dictionary")
        given = dict(zip(names, given, strict=True))
    if not given:
        raise ValueError("there are no models to compare")
    for kernel in given.values():
        _family(kernel)
    return dict(given)


def _family(kernel: Any) -> str:
    family = family_of_kernel(kernel)
    if family is None:
        raise ValueError(
            f"models to compare are kernels such as {_KERNELS}, not {type(kernel).__name__}"
        )
    return family.title


# ---------------------------------------------------------------------------------------------
# Runs and predictions
# ---------------------------------------------------------------------------------------------


def _has_too_few(run: Run) -> bool:
    return run.num_draws - run.first_draw < _LEAST_DRAWS


def _begin(
    kernel: Any,
    rankings: Rankings | Orders,
    key: Array,
    num_chains: int,
    num_used: int | None = None,
) -> Run:
    family = family_of_kernel(kernel)
    rankings = rankings if family is None else family.described(rankings)
    given = {} if num_used is None else {"num_used": np.array(num_used, np.int32)}
    settings: dict[str, Any] = dict(key=key, num_chains=num_chains, model_kwargs=given)
    return Run(kernel, rankings, progress=False, **settings)


def _begun(
    kernels: Mapping[str, Any], rankings: Rankings | Orders, key: Array, num_chains: int
) -> Iterator[tuple[str, Run]]:
    """Yield the run of each model, while the program of the next one is compiled."""
    names, wide = [*kernels], dict[str, Any]()
    if rankings.unique().num_rows < _MANY_ROWS:
        wide = in_one_program(kernels)

    def begin(name: str) -> Run:
        kernel = kernels[name]
        if name in wide:
            return _begin(wide[name], rankings, key, num_chains, kernel.num_components)
        return _begin(kernel, rankings, key, num_chains)

    following = begin(names[0])
    for name, after in zip(names, [*names[1:], None], strict=True):
        run = following
        if after is not None:
            following = begin(after)
        yield name, run


def _in_question(fits: Mapping[str, _Fit]) -> list[str]:
    """Return the models that are to be run on: more draws may say whether they are near the best.

    Their differences change by the errors of what the draws say. Evidence needs all of the time.
    """
    best = max(fits.values(), key=lambda fit: fit.values.sum())

    def is_open(fit: _Fit) -> bool:
        is_apart, is_sure = _place(fit, best)
        return not is_apart and (not is_sure or not math.isnan(fit.log_evidence))

    return [name for name, fit in fits.items() if is_open(fit)]


def _place(fit: _Fit, best: _Fit) -> tuple[bool, bool]:
    """Whether a model is far below the best, and whether the draws say if it is clearly worse."""
    row = _row(fit, best)
    gap, error = -row["elpd_diff"], _SURE_ERRORS * math.hypot(fit.error, best.error)
    unknown = 0.0 if math.isnan(error) else error  # of one chain
    is_apart = gap - unknown > max(_APART_ERRORS * row["se_diff"], _APART_NATS)
    is_sure = fit.rhat <= R_HAT_BAD and abs(gap - _least_clear(row["se_diff"])) > error
    return is_apart, is_sure


def _fit(
    kernel: Any,
    run: Run,
    rankings: Rankings | Orders,
    key_check: Array,
    max_draws: int,
    leaves_one_out: bool,
) -> _Fit:
    table, mcmc = run.diagnostics(), _as_mcmc(kernel, run, max_draws)
    data = to_inference_data(mcmc, mcmc._args[0], log_likelihood=leaves_one_out)
    values, bad_k, error = np.zeros(0), np.nan, np.nan
    if leaves_one_out:
        array = data["log_likelihood"]["rankings"].transpose("ranking", "chain", "draw")
        by_chain = np.asarray(array, np.float64)
        values, shapes = leave_one_out(by_chain.reshape(len(by_chain), -1), 1.0)
        bad_k, error = float(np.mean(shapes > BAD_K)), _error_of_draws(by_chain)
    samples = run.get_samples(max_draws=max_draws)  # by one program, of all components
    groups = float(np.mean(samples.get("num_clusters", 1.0)))
    outside = np.nan, np.nan
    if not isinstance(rankings, Comparisons):
        checks = posterior_predictive_checks(key_check, samples, rankings, _CHECK_DRAWS)
        outside = _share_outside(checks.top), _share_outside(checks.pairs)
    return _Fit(
        data,
        values,
        bad_k,
        groups,
        float(table["r_hat"].max()),
        0.0,
        error,
        *outside,
        *_evidence(kernel, run),
    )


def _as_mcmc(kernel: Any, run: Run, max_draws: int | None = None) -> MCMC:
    """Return the draws of a run as those of the kernel of the model."""
    mcmc = run.as_mcmc(max_draws)
    return as_used(mcmc, kernel) if "num_used" in mcmc._kwargs else mcmc


def _error_of_draws(values: np.ndarray) -> float:
    """Return how far the elpd may be off because the draws are few, as the chains differ in it.

    :param values: log density of each judge, (N, chains, draws). That of one who is left out is
        here the one of WAIC, which takes no time.
    """
    by_chain = logsumexp(values, axis=2) - math.log(values.shape[2]) - values.var(2)
    elpd = by_chain.sum(0)
    return float(elpd.std(ddof=1) / math.sqrt(len(elpd))) if len(elpd) > 1 else np.nan


def _evidence(kernel: Any, run: Run) -> tuple[float, float]:
    num_draws = run.num_draws - run.first_draw
    is_known = isinstance(kernel, TemperedMixture) and num_draws >= LEAST_DRAWS
    return log_evidence(_as_mcmc(kernel, run)) if is_known else (np.nan, np.nan)


def _share_outside(check: PredictiveCheck) -> float:
    number, outside = count_outside(check)
    return outside / number if number else np.nan


def _parts(key: Array, size: int, number: int) -> np.ndarray:
    """Return the part of each ranking, (N,), all as large as can be."""
    return np.asarray(jax.random.permutation(key, np.arange(size) % number))


def _predict_parts(
    kernel: Any,
    rankings: Rankings | Orders,
    part: np.ndarray,
    key: Array,
    num_chains: int,
    goals: dict,
    max_draws: int,
) -> np.ndarray:
    """Return the log density of each ranking, predicted from the other parts, (N,)."""
    rows, values = np.asarray(rankings.row_index), np.empty(rankings.num_rankings)
    for number in range(part.max() + 1):
        left_out = part == number
        train = np.bincount(rows[~left_out], minlength=rankings.num_rows)
        kept = np.flatnonzero(train)
        fitted = rankings._take(kept, train[kept])
        run = _begin(kernel, fitted, key, num_chains)
        run.until(**goals)
        new, inverse = np.unique(rows[left_out], return_inverse=True)
        test = rankings._take(new, np.ones(len(new), int))
        draws = Draws.of(run.as_mcmc(max_draws))
        matched = fitted if draws.check_family().matches_items else None
        density = log_predictive_density(draws, test, fitted=matched)
        values[left_out] = density[inverse]
    return values


def _row(fit: _Fit, best: _Fit) -> dict[str, float]:
    difference = fit.values - best.values
    return {
        "elpd": float(fit.values.sum()),
        "se": _standard_error(fit.values),
        "elpd_diff": float(difference.sum()),
        "se_diff": _standard_error(difference),
        "groups": fit.groups,
        "bad_k": fit.bad_k,
        "rhat": fit.rhat,
        "seconds": fit.seconds,
        "first_outside": fit.first_outside,
        "pairs_outside": fit.pairs_outside,
        "log_evidence": fit.log_evidence,
        "se_evidence": fit.se_evidence,
    }


def _standard_error(values: np.ndarray) -> float:
    """Return the standard error of the sum of the values."""
    return float(np.sqrt(len(values) * values.var()))


# ---------------------------------------------------------------------------------------------
# What the table says
# ---------------------------------------------------------------------------------------------


def _is_near(table: "pd.DataFrame") -> "pd.Series":
    """Whether each model is not clearly worse than the best."""
    return -table["elpd_diff"] <= _least_clear(table["se_diff"])


def _least_clear(se_diff: Any) -> Any:
    """Return by how much a model has to be worse for it to be clear."""
    return np.maximum(_CLEAR_ERRORS * se_diff, _CLEAR_NATS)


def _simplest(table: "pd.DataFrame", kernels: Mapping[str, Any]) -> str:
    def complexity(name: str) -> float:
        number = num_components_of(kernels[name])
        return np.inf if number is None else number

    near = list(table.index[_is_near(table)])  # the best first
    return min(near, key=complexity)


def _sentences(
    table: "pd.DataFrame", kernels: Mapping[str, Any], simplest: str, unsure: Sequence[str] = ()
) -> Iterator[str]:
    """Say which models predict best.

    :param unsure: models that seem clearly worse, which their draws do not tell for sure.
    """
    near = list(table.index[_is_near(table)])
    best, family = near[0], _family(kernels[simplest])
    if len(table) == 1:
        yield f"{best} is the only model."
    elif len(near) == 1:
        others = "the other predicts" if len(table) == 2 else "all others predict"
        yield f"{best} predicts best{'' if unsure else f', and {others} clearly worse'}."
    else:
        others = ", ".join(name for name in near if name != best)
        yield f"{best} predicts best; not clearly worse: {others}."
    titles = {name: _family(kernels[name]) for name in table.index}
    same = [num_components_of(kernels[name]) for name in table.index if titles[name] == family]
    number, numbers = num_components_of(kernels[simplest]), [k for k in same if k is not None]
    if unsure:
        yield (
            f"Whether {listed(unsure)} {'predicts' if len(unsure) == 1 else 'predict'} clearly "
            "worse is not sure: give more time "
            f"({option('minutes')})."
        )
    elif number is not None and len(numbers) > 1:
        yield _how_many(number, min(numbers), max(numbers))
    good = sorted({titles[name] for name in near})
    if len(good) > 1:
        yield f"Whether {' or '.join(good)} models predict better is not clear."
    if worse := sorted({*titles.values()} - {*good} - {titles[name] for name in unsure}):
        yield f"{listed(worse)} models predict clearly worse than {' or '.join(good)} models."
    if len(known := table.dropna(subset="log_evidence")) > 1:
        yield _most_evidence(known)
    yield from _warnings(table.loc[near])


def _most_evidence(table: "pd.DataFrame") -> str:
    """Say which model has the largest evidence, and which are nearly as probable."""
    best = table["log_evidence"].idxmax()
    less = table.loc[best, "log_evidence"] - table["log_evidence"]
    errors = np.hypot(table["se_evidence"], table.loc[best, "se_evidence"])
    is_near = less < np.maximum(_LITTLE_EVIDENCE, _CLEAR_ERRORS * errors)
    near = [str(name) for name in table.index[is_near] if name != best]
    also = f"; not much less: {', '.join(near)}" if near else ""
    return f"{best} has the largest evidence{also}."


def _warnings(near: "pd.DataFrame") -> Iterator[str]:
    """Say of which of the models that predict well the numbers cannot be relied on."""
    bad = near.index[near["bad_k"] > _SHARE_BAD]
    if len(bad):
        yield (
            f"Leave-one-out is unreliable for more than {_SHARE_BAD:.0%} of the judges under "
            f"{', '.join(bad)}: use k-fold ({option('kfold', 5)}) to be sure."
        )
    disagree = near.index[~(near["rhat"] <= R_HAT_BAD)]
    if len(disagree):
        yield (
            f"The chains of {', '.join(disagree)} do not agree (R-hat above {R_HAT_BAD}): give "
            f"more time ({option('minutes')})."
        )


def _how_many(number: int, fewest: int, most: int) -> str:
    """Say how many groups there are, if **number** is the least that predicts well."""
    groups = plural(number, "group")
    if number == fewest:
        return f"{groups} can be enough: more predict no better, or not clearly."
    beyond = "more were not tried"
    if number < most:
        beyond = f"beyond {number} nothing is gained that is clear"
    return f"{groups} or more: fewer predict clearly worse, and {beyond}."
