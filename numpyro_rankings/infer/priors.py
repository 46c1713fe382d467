"""Densities of the priors that users give: never NaN, and 0 outside the support."""

import copy
import warnings
from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

_LEAST_START = 1e-6


def base_of(distribution: dist.Distribution) -> dist.Distribution:
    """What is expanded, made independent or masked."""
    while isinstance(
        distribution, dist.Independent | dist.ExpandedDistribution | dist.MaskedDistribution
    ):
        distribution = distribution.base_dist
    return distribution


def draw_start(key: Array, value: Any) -> Array:
    """Where a scale starts: a number as it is, a draw from its prior, or 1 if that is improper."""
    if isinstance(value, dist.ImproperUniform):
        is_possible = log_prior(value, 1.0) > -jnp.inf
        value = jnp.where(is_possible, 1.0, value.support.feasible_like(jnp.ones(())))
    elif isinstance(value, dist.Distribution):
        draw = value.sample(key)
        # a vague prior's draw may be 0
        value = keep_possible(value, jnp.maximum(draw, _LEAST_START), draw)
    return jnp.asarray(value, float)


def log_prior(prior: dist.Distribution, value: Any) -> Array:
    """Log density of a prior of the user's: -inf outside its support, and never NaN.

    Validation that is switched off makes no difference. A mixture may have gaps.
    """
    value, prior = jnp.asarray(value, float), _validated(prior)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # values outside are no mistake here
        log_prob = prior.log_prob(value)
    possible = ~jnp.isnan(log_prob)
    if not _is_union(prior):
        possible &= prior.support(value)
    return jnp.where(possible, log_prob, -jnp.inf)


def log_prior_ratio(prior: dist.Distribution, new: Any, old: Any) -> Array:
    """Log density at ``new`` less that at ``old``: -inf if the former is outside the support."""
    log_new = log_prior(prior, new)
    return jnp.where(log_new > -jnp.inf, log_new - log_prior(prior, old), -jnp.inf)


def keep_possible(prior: dist.Distribution, new: Array, old: Array) -> Array:
    """``new``, or ``old`` where a rounding at the edge has put it outside the support."""
    return jnp.where(log_prior(prior, new) > -jnp.inf, new, old)


def _validated(prior: dist.Distribution) -> dist.Distribution:
    """A copy whose density is 0 outside the support, and so are those of all its parts."""
    prior = copy.copy(prior)
    for name, part in list(vars(prior).items()):
        if isinstance(part, dist.Distribution):
            setattr(prior, name, _validated(part))
        elif isinstance(part, list | tuple) and any(isinstance(x, dist.Distribution) for x in part):
            setattr(prior, name, [_validated(x) for x in part])
    prior._validate_args = not _is_union(prior)
    return prior


def _is_union(prior: dist.Distribution) -> bool:
    """Whether it is a mixture whose support is that of all components, not of the first one."""
    return isinstance(prior, dist.MixtureGeneral) and prior._support is None
