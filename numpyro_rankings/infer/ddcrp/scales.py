"""Draw the concentration α and the scale of the decay given links or the partition.

Equations are those of Blei & Frazier (2011).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.infer.ddcrp.reach import (
    LinkPrior,
    LinkWeights,
    draw_links,
    log_links,
    log_totals,
    weights_within,
)
from numpyro_rankings.infer.mixture.prior import at_least_tiny
from numpyro_rankings.infer.priors import draw_start, keep_possible, log_prior_ratio
from numpyro_rankings.ops.sampling import slice_sample

_STARTS = 16  # number of draws of an initial scale
_LOG_TOTAL = np.log(0.1)  # least log Σ_j f_ij at which a point counts as able to link


def start_scale(
    key: Array, prior: dist.Distribution, weights_of: Callable[[Array], LinkWeights]
) -> Array:
    """Draw an initial scale from its prior: of several draws one at which points can link."""
    # Where no point is reachable all link to themselves, and given that no scale is likelier.
    draws = jax.vmap(draw_start, (0, None))(random.split(key, _STARTS), prior)
    linking = jax.lax.map(lambda a: jnp.sum(log_totals(weights_of(a)) > _LOG_TOTAL), draws)
    return draws[jnp.argmax(2 * linking >= linking.max())]


def log_terms_of_scale(goes_back: Array, links: Array, labels: Array, prior: LinkPrior) -> Array:
    r"""Terms whose sum is the log likelihood of the scale, (N,), Appendix B, eq. (20).

    Given the partition, with the links summed over, if no chain of links can return
    (``goes_back``); otherwise given the links. Given the links, a window could not become shorter
    than the longest link. Given the partition, each cluster has one link of a point to itself, that
    of the point that can link to none of the others, and all other links are free: the sum over all
    links that make the partition is a product of :math:`\sum_{j: z_j = z_i} f_{ij}`.
    """

    def given_partition() -> Array:
        log_alpha = jnp.log(prior.alpha)
        log_within = log_totals(weights_within(labels, prior.weights))
        opens = log_within == -jnp.inf
        log_prob = jnp.where(opens, log_alpha, log_within)
        log_prob -= jnp.logaddexp(log_alpha, log_totals(prior.weights))
        return jnp.where(jnp.sum(opens) == labels.max() + 1, log_prob, -jnp.inf)

    return jax.lax.cond(goes_back, given_partition, lambda: log_links(links, prior))


def update_links_given_partition(
    key: Array, goes_back: Array, links: Array, labels: Array, weights: LinkWeights
) -> Array:
    """Draw all links given the partition, from which the scale was drawn, if ``goes_back``."""

    def draw() -> Array:
        within = weights_within(labels, weights)
        opens = log_totals(within) == -jnp.inf
        return draw_links(key, jnp.where(opens, 0.0, -jnp.inf), within)

    return jax.lax.cond(goes_back, draw, lambda: links)


def update_link_alpha(
    key: Array, prior: LinkPrior, alpha_prior: dist.Distribution, links: Array
) -> Array:
    """Draw α given the links, Appendix B, eq. (17)."""
    # With a Gamma prior exactly, by auxiliary variables V_i ~ Exp(α + Σ_j f_ij), otherwise by slice
    # sampling of log α.
    size = links.shape[0]
    itself = jnp.sum(links == jnp.arange(size)).astype(float)  # K of eq. (17)
    totals = jnp.exp(log_totals(prior.weights))
    if isinstance(alpha_prior, dist.Gamma):
        key_times, key_alpha = random.split(key)
        times = random.exponential(key_times, (size,)) / (prior.alpha + totals)
        log_gamma = random.loggamma(key_alpha, alpha_prior.concentration + itself)
        return at_least_tiny(jnp.exp(log_gamma) / (alpha_prior.rate + times.sum()))

    def difference(log_alpha: Array, delta: Array) -> Array:
        alpha = jnp.exp(log_alpha)
        step = alpha * jnp.expm1(delta)
        change = itself * delta - jnp.sum(jnp.log1p(step / (alpha + totals)))
        return change + log_prior_ratio(alpha_prior, alpha + step, prior.alpha) + delta

    log_alpha = slice_sample(key, jnp.log(prior.alpha), difference, 2.0, lower=-jnp.inf)
    return keep_possible(alpha_prior, at_least_tiny(jnp.exp(log_alpha)), prior.alpha)


def update_decay_scale(
    key: Array,
    log_terms: Callable[[LinkPrior], Array],
    prior: LinkPrior,
    scale_prior: dist.Distribution,
    weights_of: Callable[[Array], LinkWeights],
) -> LinkPrior:
    """Draw the scale of the decay by slice sampling of its logarithm."""
    current_terms = log_terms(prior)

    def difference(log_scale: Array, delta: Array) -> Array:
        scale = jnp.exp(log_scale + delta)
        other = log_terms(prior._replace(scale=scale, weights=weights_of(scale)))
        change = jnp.sum(other - current_terms) + delta
        return change + log_prior_ratio(scale_prior, scale, prior.scale)

    assert prior.scale is not None
    log_scale = slice_sample(key, jnp.log(prior.scale), difference, 1.0, lower=-jnp.inf)
    scale = keep_possible(scale_prior, jnp.exp(log_scale), prior.scale)
    return prior._replace(scale=scale, weights=weights_of(scale))
