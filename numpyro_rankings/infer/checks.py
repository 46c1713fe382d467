"""Arguments that the kernels refuse, with messages for the user."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array

from numpyro_rankings.infer.priors import base_of, log_prior
from numpyro_rankings.ops.checks import check_positive, check_whole, refuse_masked

_OF_ANY_SIGN = ("log_joint", "log_joint_rest", "item_effects")


def leave_to_model(is_block: bool, **given: bool) -> None:
    """Refuse priors in the constructor of a block, whose priors are those of the model."""
    names = [name for name, is_given in given.items() if is_given]
    if is_block and names:
        raise ValueError(f"with model=, priors come from the model: omit {', '.join(names)}")


def check_only_rankings(args: tuple, kwargs: dict) -> None:
    """Refuse arguments besides the rankings, which the kernel would ignore."""
    if len(args) + len(kwargs) > 1:
        raise TypeError(
            "the kernel takes mcmc.run(key, rankings) and nothing else; covariates of the items go "
            "to PlackettLuceRegressionGibbs, of a single population"
        )


def check_prior(name: str, prior: Any) -> None:
    """Refuse anything but a continuous distribution on the positive half-line."""
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
    # the kernels treat a NaN density as 0, which would truncate the prior
    points = np.logspace(-3, 3, 31).reshape(31, *(1 for _ in ones.shape)) * ones
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # values outside the support are expected here
        inside, log_prob = prior.support(points), prior.log_prob(points)
    if not isinstance(log_prob, jax.core.Tracer) and np.any(np.isnan(log_prob) & inside):
        raise ValueError(f"{name} has a log density of NaN inside its support")


def check_arguments(args: tuple, kwargs: dict) -> None:
    """Refuse data frames, which JAX cannot trace, and masked entries, which it would take."""
    for value in jax.tree.leaves((args, kwargs)):
        refuse_masked("an argument of mcmc.run", value)
        if hasattr(value, "to_numpy"):
            raise TypeError(
                f"the arguments of mcmc.run are arrays or Rankings, not a {type(value).__name__}: "
                "pass frame.to_numpy() of points, Rankings.from_ranks(frame) of ranks in a column "
                "for each item, or Rankings.from_dataframe(frame, judge=…, item=…, rank=…)"
            )


def check_start_values(params: Any) -> None:
    """Refuse start values that are not finite, non-negative numbers, but for those of any sign."""
    if params is not None and not isinstance(params, Mapping):
        raise ValueError(f"init_params must be a dictionary by site, got {type(params).__name__}")
    for name, value in (params or {}).items():
        if isinstance(value, jax.core.Tracer) or name in _OF_ANY_SIGN:
            continue
        refuse_masked(f"init_params[{name!r}]", value)
        array = np.asarray(value)
        least, kind = (-np.inf, "") if name == "share_effects" else (0.0, "non-negative, ")
        is_right = (array >= least) & np.isfinite(array) if array.dtype.kind in "iuf" else False
        if not np.all(is_right):
            raise ValueError(f"init_params[{name!r}] must be {kind}finite numbers")


def check_start_scale(name: str, value: Any, prior: Any, chains: tuple[int, ...]) -> None:
    """Refuse a start that is not one number per chain, or lies outside the support of its prior."""
    if isinstance(value, jax.core.Tracer):
        return
    if np.shape(value) != chains:
        expected = f"one number for each of the {chains[0]} chains" if chains else "one number"
        raise ValueError(
            f"init_params[{name!r}] must be {expected}, got an array of shape {np.shape(value)}"
        )
    if not np.all((np.asarray(value) > 0) & (log_prior(prior, value) > -jnp.inf)):
        raise ValueError(f"init_params[{name!r}] is outside the support of its prior: {value!r}")


def check_scale(name: str, value: Any, learned: bool = True) -> None:
    """Refuse anything but a positive number or, where it can be learned, a scalar prior."""
    if learned and isinstance(value, dist.Distribution):
        check_prior(name, value)
        shape = value.batch_shape + value.event_shape
        if shape != ():
            raise ValueError(f"{name} must be a scalar distribution, got one of shape {shape}")
        return
    kind = "a positive number or a distribution" if learned else "a positive number"
    check_positive(name, value, kind)


def check_positive_array(name: str, value: Any, kind: str) -> None:
    """Refuse anything but finite, positive numbers; **kind** says in the message what is needed."""
    refuse_masked(name, value)
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or not np.all((array > 0) & (array < np.inf)):
        raise ValueError(f"{name} must be {kind}, got {value!r}")


def check_whole_or_none(name: str, value: Any, least: int) -> None:
    """Refuse anything but None or a whole number from ``least`` on."""
    if value is not None:
        check_whole(name, value, least)


def site_names(names: Sequence[str], changed: Mapping[str, str] | None) -> dict[str, str]:
    """Return the names of a kernel's sites in a user's model, by their names in its own."""
    sites = {**{name: name for name in names}, **(changed or {})}
    if set(sites) != set(names):
        raise ValueError(f"sites can name {sorted(names)}, got {sorted(sites)}")
    return sites


def check_possible(potential_energy: Array) -> None:
    """Refuse a start of probability 0, which a sampler may never leave."""
    if isinstance(potential_energy, jax.core.Tracer):
        return
    if not np.all(np.asarray(potential_energy) < np.inf):
        raise ValueError(
            "the start has probability 0 under the model: choose another init or init_params. The "
            "data may also be too large for the precision, or a family may return NaN scores"
        )
