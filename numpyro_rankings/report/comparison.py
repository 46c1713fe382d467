"""Which model predicts best, and how many groups there are."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jax import Array

from numpyro_rankings import families
from numpyro_rankings._system import clock
from numpyro_rankings.families.scored import scored
from numpyro_rankings.infer import PlackettLuceGibbs, SliceGibbs, TemperedMixture
from numpyro_rankings.infer.base import GibbsKernel
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.posterior import Draws, log_predictive_density
from numpyro_rankings.posterior.diagnostics import R_HAT_BAD
from numpyro_rankings.posterior.draws import family_of_kernel, num_components_of
from numpyro_rankings.posterior.ladders import LEAST_DRAWS, log_evidence
from numpyro_rankings.posterior.predictive_checks import (
    PredictiveCheck,
    posterior_predictive_checks,
)
from numpyro_rankings.posterior.stacking import leave_one_out
from numpyro_rankings.rankings import PartialOrders, Rankings, check_rankings, check_rows
from numpyro_rankings.rankings.counts import never_compared, sets_apart
from numpyro_rankings.report.judgements import count_outside
from numpyro_rankings.report.page import sentence
from numpyro_rankings.run import Run
from numpyro_rankings.words import listed, plural
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
_LEAST_DRAWS = 4  # of a chain, for diagnostics


class TooFewDrawsError(ValueError):
    """A run has too few draws in its time."""


class NotComparedError(ValueError):
    """A model has no density of what the judges said."""


KernelOf = Callable[[int | None], GibbsKernel]  # of a number of groups, None for any number
_compared: dict[families.RankingFamily, KernelOf] = {
    families.MALLOWS: lambda k: SliceGibbs(num_components=k, assignment="parallel"),
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
      k-fold, ``rhat`` the largest R-hat, and ``seconds`` the time of the run. ``first_outside`` and
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
    first_outside: float
    pairs_outside: float
    log_evidence: float
    se_evidence: float


def default_models(
    rankings: Rankings | PartialOrders,
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
    check_rows(rankings)
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
    for family, kernel_of in _compared.items():
        if _takes(family, rankings):
            numbers = [*components, *([None] if "process" in family.partitions else [])]
            kernels += [kernel_of(number) for number in numbers]
    return {model_name(kernel): kernel for kernel in kernels}


def _takes(family: families.RankingFamily, rankings: Rankings | PartialOrders) -> bool:
    """Whether the likelihood of a family is defined for such rankings, or partial orders."""
    if isinstance(rankings, PartialOrders):
        return family.scores_orders
    return rankings.choice_sets is None or family.takes_choice_sets


def model_name(kernel: Any) -> str:
    """Return the name of the model of a kernel, such as ``Mallows (3 groups)``."""
    number = num_components_of(kernel)
    groups = "any number of groups" if number is None else plural(number, "group")
    return f"{_family(kernel)} ({groups})"


def compare(
    rankings: Rankings | PartialOrders,
    models: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    key: Array | None = None,
    kfold: int = 0,
    num_chains: int = 4,
    rhat: float = 1.01,
    ess: float = 200,
    minutes: float = 2,
    max_draws: int = 250,
    after_model: Callable[[str, dict[str, Any]], None] | None = None,
) -> Comparison:
    """Compare models by how well they predict judges that they have not seen.

    Each model is run until its chains agree or its time is over. A judge is then predicted from all
    others, with the label summed out, by leave-one-out with Pareto-smoothed importance sampling
    [1]. Where this is unreliable for many judges (``bad_k``), use ``kfold``: then the judges are
    divided into so many parts, and each part is predicted by a run on the others.

    :param rankings: the rankings, or partial orders, to fit. The density of a judge who ties items
        is that of any of the orderings that agree; at most 16 items may be tied or not compared.
    :param models: kernels of rankings by name, or without names; by default Mallows and
        Plackett–Luce models of 1 to 4 groups, and the Dirichlet process mixture of Mallows models.
        Models of an unlimited pool of items without groups predict other lists and are refused.
    :param key: a random key.
    :param kfold: 0 for leave-one-out, or the number of parts, at least 2.
    :param num_chains: chains of each run.
    :param rhat: a run ends when R-hat is at most this and the ESS at least **ess**, or after so
        many **minutes**; R-hat is in the table. In these there must be a few draws.
    :param max_draws: draws of each chain that predict.
    :param after_model: called with the name and the row of each model when it is done.

    **References:**

    1. Vehtari, A., Gelman, A., Gabry, J. (2017), "Practical Bayesian model evaluation using
       leave-one-out cross-validation and WAIC", Statistics and Computing 27.
    """
    check_rows(rankings)
    check_whole("kfold", kfold, 0)
    if kfold == 1 or kfold > rankings.num_rankings:
        raise ValueError(f"kfold must be 0, or 2 to {rankings.num_rankings} parts, got {kfold}")
    kernels = _named(default_models(rankings) if models is None else models)
    for name, kernel in kernels.items():
        _check_takes(name, kernel, rankings)
    key = jax.random.key(0) if key is None else key
    goals = dict(rhat=rhat, ess=ess, minutes=minutes)
    key_fit, key_check, key_parts = jax.random.split(key, 3)
    fits: dict[str, _Fit] = {}
    for name, kernel in kernels.items():
        fit = _fit(kernel, rankings, key_fit, key_check, num_chains, goals, max_draws, not kfold)
        if kfold:
            part = _parts(key_parts, rankings.num_rankings, kfold)
            values = _predict_parts(kernel, rankings, part, key_fit, num_chains, goals, max_draws)
            fit = fit._replace(values=values, bad_k=np.nan)
        fits[name] = fit
        if after_model is not None:
            after_model(name, _row(fit, fit))
    found = _compare_fits(fits, kernels)
    if rankings.offered() is not None and (apart := sets_apart(rankings)):
        in_words = f"{found.in_words} {sentence(never_compared(apart))}."
        found = found._replace(in_words=in_words)
    return found


def _check_takes(name: str, kernel: Any, rankings: Rankings | PartialOrders) -> None:
    """Refuse a model of which the density of the judges cannot be computed, before it is run."""
    if not isinstance(rankings, PartialOrders):
        return
    if not kernel.takes_partial_orders:
        raise NotComparedError(
            f"{name} cannot be compared: its kernel takes no partial orders, and some judges tie "
            "items or leave their order open"
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
    simplest = _simplest(table, kernels)
    return Comparison(
        table,
        {name: fit.data for name, fit in fits.items()},
        {name: fit.values for name, fit in fits.items()},
        {name: (_family(kernel), num_components_of(kernel)) for name, kernel in kernels.items()},
        simplest,
        " ".join(_sentences(table, kernels, simplest)),
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


def _run(
    kernel: Any, rankings: Rankings | PartialOrders, key: Array, num_chains: int, goals: dict
) -> Run:
    family = family_of_kernel(kernel)
    rankings = rankings if family is None else family.described(rankings)
    run = Run(kernel, rankings, key=key, num_chains=num_chains)
    run.until(**goals)
    return run


def _fit(
    kernel: Any,
    rankings: Rankings | PartialOrders,
    key: Array,
    key_check: Array,
    num_chains: int,
    goals: dict,
    max_draws: int,
    leaves_one_out: bool,
) -> _Fit:
    start = clock.now()
    run = _run(kernel, rankings, key, num_chains, goals)
    if run.num_draws - run.first_draw < _LEAST_DRAWS:
        raise TooFewDrawsError(f"too few draws in {goals['minutes']:g} minutes: raise minutes")
    table = run.diagnostics()
    data = run.to_inference_data(max_draws=max_draws, log_likelihood=leaves_one_out)
    values, bad_k = np.zeros(0), np.nan
    if leaves_one_out:
        array = data["log_likelihood"]["rankings"].transpose("ranking", "chain", "draw")
        flat = np.asarray(array, np.float64).reshape(rankings.num_rankings, -1)
        values, shapes = leave_one_out(flat, 1.0)
        bad_k = float(np.mean(shapes > BAD_K))
    samples = run.get_samples(max_draws=max_draws)
    groups = float(np.mean(samples.get("num_clusters", 1.0)))
    checks = posterior_predictive_checks(key_check, samples, rankings, _CHECK_DRAWS)
    return _Fit(
        data,
        values,
        bad_k,
        groups,
        float(table["r_hat"].max()),
        clock.now() - start,
        _share_outside(checks.top),
        _share_outside(checks.pairs),
        *_evidence(kernel, run),
    )


def _evidence(kernel: Any, run: Run) -> tuple[float, float]:
    num_draws = run.num_draws - run.first_draw
    is_known = isinstance(kernel, TemperedMixture) and num_draws >= LEAST_DRAWS
    return log_evidence(run) if is_known else (np.nan, np.nan)


def _share_outside(check: PredictiveCheck) -> float:
    number, outside = count_outside(check)
    return outside / number if number else np.nan


def _parts(key: Array, size: int, number: int) -> np.ndarray:
    """Return the part of each ranking, (N,), all as large as can be."""
    return np.asarray(jax.random.permutation(key, np.arange(size) % number))


def _predict_parts(
    kernel: Any,
    rankings: Rankings | PartialOrders,
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
        run = _run(kernel, fitted, key, num_chains, goals)
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
    least = -np.maximum(_CLEAR_ERRORS * table["se_diff"], _CLEAR_NATS)
    return table["elpd_diff"] >= least


def _simplest(table: "pd.DataFrame", kernels: Mapping[str, Any]) -> str:
    def complexity(name: str) -> float:
        number = num_components_of(kernels[name])
        return np.inf if number is None else number

    near = list(table.index[_is_near(table)])  # the best first
    return min(near, key=complexity)


def _sentences(table: "pd.DataFrame", kernels: Mapping[str, Any], simplest: str) -> Iterator[str]:
    near = list(table.index[_is_near(table)])
    best, family = near[0], _family(kernels[simplest])
    if len(near) == 1:
        yield f"{best} predicts best, and all others predict clearly worse."
    else:
        others = ", ".join(name for name in near if name != best)
        yield f"{best} predicts best; not clearly worse: {others}."
    titles = {name: _family(kernels[name]) for name in table.index}
    same = [num_components_of(kernels[name]) for name in table.index if titles[name] == family]
    number, numbers = num_components_of(kernels[simplest]), [k for k in same if k is not None]
    if number is not None and len(numbers) > 1:
        yield _how_many(number, min(numbers), max(numbers))
    good = sorted({titles[name] for name in near})
    if len(good) > 1:
        yield f"Whether {' or '.join(good)} models predict better is not clear."
    if worse := sorted({*titles.values()} - {*good}):
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
