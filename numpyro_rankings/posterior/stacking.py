"""Weights of chains that disagree, by how well each predicts rankings that it has not seen."""

from typing import Any, NamedTuple

import numpy as np

from numpyro_rankings.posterior.diagnostics import STACKING_WEIGHTS, as_dataset
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.likelihood import cost_of_value, pointwise_log_likelihood
from numpyro_rankings.posterior.partitions import evenly

_MOST_STEPS, _TOLERANCE = 10_000, 1e-9
_MOST_VALUES, _LEAST_DRAWS, _MOST_RANKINGS = 10_000_000, 50, 2000  # for the weights of a report


class StackedChains(NamedTuple):
    """Weights of chains.

    - **weights** - (chains,), not negative, of sum 1.
    - **elpd** - (chains,), expected log predictive density of all observations under each chain
      alone, by leave-one-out.
    - **elpd_stacked** - of the mixture of the chains with these weights.
    - **largest_k** - (chains,), largest shape of the Pareto distributions that smooth the
      importance weights. Above 0.7 a leave-one-out density is unreliable.
    """

    weights: np.ndarray
    elpd: np.ndarray
    elpd_stacked: float
    largest_k: np.ndarray


def stack_chains(data: Any, reff: float = 1.0) -> StackedChains:
    """Weight chains by stacking their leave-one-out predictive densities.

    Chains that are stuck in different modes do not have the shares of the posterior. Their draws
    can still predict: the mixture of the chains with these weights has the largest leave-one-out
    predictive density. A chain that adds nothing to the predictions of the others gets no weight.
    The weights are *not* posterior probabilities of the modes.

    **References:** Yao, Vehtari, Gelman, "Stacking for non-mixing Bayesian computations: the curse
    and blessing of multimodal posteriors", Journal of Machine Learning Research 23 (2022).

    :param data: ArviZ data with a group ``log_likelihood`` of one variable, (chain, draw, …), such
        as :func:`~numpyro_rankings.to_inference_data` makes.
    :param reff: effective draws of a chain divided by its draws, for the smoothing of the
        importance weights.
    :raises ValueError: if there is no such group, or it is not finite.
    """
    return _stack(_log_likelihood(data), reff)


def _stack(values: np.ndarray, reff: float) -> StackedChains:
    log_densities, shapes = np.empty(values.shape[::2]), np.empty(values.shape[::2])
    for chain, of_chain in enumerate(values):
        log_densities[chain], shapes[chain] = leave_one_out(of_chain.T, reff)
    weights = _stacking_weights(log_densities)
    with np.errstate(divide="ignore"):
        mixture = np.logaddexp.reduce(np.log(weights)[:, None] + log_densities, axis=0)
    return StackedChains(weights, log_densities.sum(-1), float(mixture.sum()), shapes.max(-1))


def stack_fitted_chains(draws: Draws) -> StackedChains:
    """Weight the chains of a kernel of rankings, from some of its draws and rankings.

    :raises ValueError: of partial orders or comparisons whose likelihood has too many terms.
    """
    size, of_one = draws.given.num_rankings, cost_of_value(draws)
    most = max(_LEAST_DRAWS, int(_MOST_VALUES // (of_one * draws.num_chains * size)))
    some = draws.take(evenly(draws.num_draws, most))
    values = pointwise_log_likelihood(some, evenly(size, _MOST_RANKINGS))
    return _stack(np.asarray(values, np.float64), 1.0)


def posterior_by_weight(posterior: Any) -> Any:
    """Return a posterior whose chains have weights as one chain, of about as many draws as one.

    Each chain has as many of them, evenly spaced, as its weight says. Without weights nothing is
    changed.
    """
    weights, draws = posterior.attrs.get(STACKING_WEIGHTS), posterior.sizes["draw"]
    if weights is None:
        return posterior
    chosen = [evenly(draws, round(x * draws)) for x in weights]
    chain, draw = np.repeat(np.arange(len(chosen)), list(map(len, chosen))), np.concatenate(chosen)
    one = posterior.isel(chain=("draw", chain), draw=("draw", draw))
    one = one.drop_vars(["chain", "draw"], errors="ignore").expand_dims("chain")
    one.attrs = {name: x for name, x in posterior.attrs.items() if name != STACKING_WEIGHTS}
    return one


def _log_likelihood(data: Any) -> np.ndarray:
    """Return the log likelihoods, (chains, draws, observations)."""
    if not hasattr(data, "__contains__") or "log_likelihood" not in data:
        raise ValueError(
            "stacking needs the log likelihood: use to_inference_data(…, log_likelihood=True)"
        )
    variables = as_dataset(data["log_likelihood"]).data_vars
    if len(variables) != 1:
        raise ValueError(f"one variable of log likelihoods is needed, there are {len(variables)}")
    array = next(iter(variables.values())).transpose("chain", "draw", ...)
    values = np.asarray(array, np.float64)
    if not np.isfinite(values).all():
        raise ValueError("the log likelihood is not finite")
    return values.reshape(*values.shape[:2], -1)


def leave_one_out(values: np.ndarray, reff: float) -> tuple[np.ndarray, np.ndarray]:
    """Return log leave-one-out densities and Pareto shapes of values (observations, draws)."""
    try:
        from arviz import psislw

        log_weights, shapes = psislw(-values, reff)
    except ImportError:  # ArviZ 1.x
        from arviz_stats.base import array_stats

        log_weights, shapes = array_stats.psislw(values, r_eff=reff)  # takes likelihoods
    log_densities = np.logaddexp.reduce(np.asarray(log_weights) + values, axis=-1)
    return log_densities - np.logaddexp.reduce(np.asarray(log_weights), axis=-1), np.asarray(shapes)


def _stacking_weights(log_densities: np.ndarray) -> np.ndarray:
    """Return the weights that maximise the sum of the log densities, which is concave, by EM."""
    scaled = np.exp(log_densities - log_densities.max(0))
    weights = np.full(len(scaled), 1 / len(scaled))
    for _ in range(_MOST_STEPS):
        before = weights
        weights = weights * (scaled / (weights @ scaled)).mean(-1)
        if np.abs(weights - before).max() < _TOLERANCE:
            break
    return weights / weights.sum()
