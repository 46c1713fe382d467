"""What the kernels refuse, in words."""

import warnings
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array

from numpyro_rankings.infer.priors import base_of, log_prior


def leave_to_model(is_block: bool, **given: bool) -> None:
    """Refuse priors that the constructor is given besides a model, which has its own."""
    names = [name for name, is_given in given.items() if is_given]
    if is_block and names:
        raise ValueError(f"with model= the priors are those of the model: leave out {names[0]}")


def check_only_rankings(args: tuple, kwargs: dict) -> None:
    """Refuse further arguments, which the kernel by itself would not look at."""
    if len(args) + len(kwargs) > 1:
        raise TypeError("the kernel takes mcmc.run(key, rankings) and nothing else")


def check_prior(name: str, prior: Any) -> None:
    """Refuse what is not a distribution on the positive half-line."""
    if not isinstance(prior, dist.Distribution):
        raise ValueError(f"{name} must be a distribution, got {prior!r}")
    prior = base_of(prior)
    if prior.support is None or prior.support.is_discrete:
        raise ValueError(f"{name} must be a continuous distribution, not {type(prior).__name__}")
    ones = np.ones(prior.batch_shape + prior.event_shape)
    if any(np.any(prior.support(-x * ones)) for x in (1e-6, 1e-3, 1.0, 1e3)):
        raise ValueError(
            f"{name} must give no mass to negative numbers: not {type(prior).__name__}"
        )
    # a density that is no number would be taken for 0, and cut the prior off
    points = np.logspace(-3, 3, 31).reshape(31, *(1 for _ in ones.shape)) * ones
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # values outside are no mistake here
        inside, log_prob = prior.support(points), prior.log_prob(points)
    if not isinstance(log_prob, jax.core.Tracer) and np.any(np.isnan(log_prob) & inside):
        raise ValueError(f"{name} has a log density that is no number where it has support")


def check_arguments(args: tuple, kwargs: dict) -> None:
    """Refuse data frames, which JAX cannot trace."""
    for value in jax.tree.leaves((args, kwargs)):
        if hasattr(value, "to_numpy"):
            raise TypeError(
                f"the arguments of mcmc.run must be arrays or Rankings: of the "
                f"{type(value).__name__} give .to_numpy(), or see Rankings.from_dataframe"
            )


def check_start_values(params: Any) -> None:
    """Refuse start values that are negative or no numbers: no site of the kernels has such.

    A whole draw may be given: its log joint is computed anew, and may be anything.
    """
    if params is not None and not isinstance(params, Mapping):
        raise ValueError(f"init_params must be a dictionary by site, got {type(params).__name__}")
    for name, value in (params or {}).items():
        if isinstance(value, jax.core.Tracer) or name in ("log_joint", "log_joint_rest"):
            continue
        array = np.asarray(value)
        if array.dtype.kind not in "iuf" or not np.all((array >= 0) & (array < np.inf)):
            raise ValueError(f"init_params[{name!r}] must be numbers, 0 or more, and finite")


def check_start_scale(name: str, value: Any, prior: Any, chains: tuple[int, ...]) -> None:
    """Refuse a start that is not one number for each chain, or that its prior excludes."""
    if isinstance(value, jax.core.Tracer):
        return
    if np.shape(value) != chains:
        expected = f"one number for each of the {chains[0]} chains" if chains else "one number"
        raise ValueError(
            f"init_params[{name!r}] must be {expected}, got an array of shape {np.shape(value)}"
        )
    if not np.all((np.asarray(value) > 0) & (log_prior(prior, value) > -jnp.inf)):
        raise ValueError(f"init_params[{name!r}] is outside the support of its prior: {value!r}")


def check_scale(name: str, value: Any, learnt: bool = True) -> None:
    """Refuse what is neither a positive number nor, if it can be learnt, a distribution of one."""
    if learnt and isinstance(value, dist.Distribution):
        check_prior(name, value)
        shape = value.batch_shape + value.event_shape
        if shape != ():
            raise ValueError(f"{name} must be a scalar distribution, got one of shape {shape}")
        return
    number = np.asarray(value)
    if number.shape != () or number.dtype.kind not in "iuf" or not 0 < float(number) < np.inf:
        kind = "a positive number or a distribution" if learnt else "a positive number"
        raise ValueError(f"{name} must be {kind}, got {value!r}")


def check_possible(potential_energy: Array) -> None:
    """Refuse a start of probability 0, from which a sampler may never come away."""
    if isinstance(potential_energy, jax.core.Tracer):
        return
    if not np.all(np.asarray(potential_energy) < np.inf):
        raise ValueError(
            "the start has probability 0 under the model: take another init, or other init_params; "
            "or the numbers are too large for the precision, or a family's scores no numbers"
        )


def is_traced(values: Any) -> bool:
    """Whether any array in there is known to a trace only."""
    return any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(values))
