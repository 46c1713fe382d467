"""Densities of the priors that users give: never NaN, and 0 outside the support."""

import copy
import warnings
from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

_LEAST_START = 1e-6


def base_of(distribution: dist.Distribution) -> dist.Distribution:
    """Return the distribution inside ``expand``, ``to_event`` and ``mask``."""
    while isinstance(
        distribution, dist.Independent | dist.ExpandedDistribution | dist.MaskedDistribution
    ):
        distribution = distribution.base_dist
    return distribution


def draw_start(key: Array, value: Any) -> Array:
    """Return the start of a scale: the number itself, a draw of its prior, or 1 if improper."""
    if isinstance(value, dist.ImproperUniform):
        is_possible = log_prior(value, 1.0) > -jnp.inf
        value = jnp.where(is_possible, 1.0, value.support.feasible_like(jnp.ones(())))
    elif isinstance(value, dist.Distribution):
        draw = value.sample(key)
        # a draw from a vague prior may underflow to 0
        value = keep_possible(value, jnp.maximum(draw, _LEAST_START), draw)
    return jnp.asarray(value, float)


def log_prior(prior: dist.Distribution, value: Any) -> Array:
    """Return the log density of a user's prior: -inf outside its support, never NaN."""
    # This holds whether or not validation is on. The support of a mixture may have gaps.
    value, prior = jnp.asarray(value, float), _validated(prior)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # values outside the support are expected here
        log_prob = prior.log_prob(value)
    possible = ~jnp.isnan(log_prob)
    if not _is_union(prior):
        possible &= prior.support(value)
    return jnp.where(possible, log_prob, -jnp.inf)


def log_prior_ratio(prior: dist.Distribution, new: Any, old: Any) -> Array:
    """Return log p(new) - log p(old), -inf where ``new`` is outside the support."""
    log_new = log_prior(prior, new)
    return jnp.where(log_new > -jnp.inf, log_new - log_prior(prior, old), -jnp.inf)


def keep_possible(prior: dist.Distribution, new: Array, old: Array) -> Array:
    """Return ``new``, or ``old`` where rounding has moved ``new`` outside the support."""
    return jnp.where(log_prior(prior, new) > -jnp.inf, new, old)


def _validated(prior: dist.Distribution) -> dist.Distribution:
    """Return a copy that, like all its parts, has density 0 outside its support."""
    prior = copy.copy(prior)
    for name, part in list(vars(prior).items()):
        if isinstance(part, dist.Distribution):
            setattr(prior, name, _validated(part))
        elif isinstance(part, list | tuple) and any(isinstance(x, dist.Distribution) for x in part):
            setattr(prior, name, [_validated(x) for x in part])
    prior._validate_args = not _is_union(prior)
    return prior


def _is_union(prior: dist.Distribution) -> bool:
    """Whether the support is the union of those of the components of a mixture."""
    return isinstance(prior, dist.MixtureGeneral) and prior._support is None
