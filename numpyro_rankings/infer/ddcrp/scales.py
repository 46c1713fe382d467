"""The concentration α and the scale of the decay, given links or the partition."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.infer.ddcrp.reach import (
    Hyper,
    Reach,
    among_equals,
    draw_links,
    log_links,
    log_totals,
)
from numpyro_rankings.infer.mixture.prior import positive
from numpyro_rankings.infer.priors import draw_start, keep_possible, log_prior_ratio
from numpyro_rankings.ops.sampling import slice_sample

_STARTS, _LOG_TOTAL = 16, np.log(0.1)  # draws of a scale; of Σ_j f_ij where a point can link


def start_scale(key: Array, prior: dist.Distribution, reach_of: Callable[[Array], Reach]) -> Array:
    """A draw of the scale from its prior, of several one at which points can link.

    With nobody in reach all links are to oneself, and given those no scale is likelier.
    """
    draws = jax.vmap(draw_start, (0, None))(random.split(key, _STARTS), prior)
    linking = jax.lax.map(lambda a: jnp.sum(log_totals(reach_of(a)) > _LOG_TOTAL), draws)
    return draws[jnp.argmax(2 * linking >= linking.max())]


def log_terms_of_scale(goes_back: Array, links: Array, labels: Array, hyper: Hyper) -> Array:
    r"""Terms whose sum is the log likelihood of the scale: given the partition if links go back.

    Then each cluster has one link to itself, of the point that can link to none of the others, and
    the rest of them are free: the sum over all links that make the partition is a product of
    :math:`\sum_{j: z_j = z_i} f_{ij}`. Given the links, a window could not get below the longest.
    """

    def given_partition() -> Array:
        log_alpha = jnp.log(hyper.alpha)
        log_within = log_totals(among_equals(labels, hyper.reach))
        opens = log_within == -jnp.inf
        log_prob = jnp.where(opens, log_alpha, log_within)
        log_prob -= jnp.logaddexp(log_alpha, log_totals(hyper.reach))
        return jnp.where(jnp.sum(opens) == labels.max() + 1, log_prob, -jnp.inf)

    return jax.lax.cond(goes_back, given_partition, lambda: log_links(links, hyper))


def update_links_within(
    key: Array, goes_back: Array, links: Array, labels: Array, reach: Reach
) -> Array:
    """Draw all links given the partition, as the scale was drawn, if links go back."""

    def draw() -> Array:
        within = among_equals(labels, reach)
        opens = log_totals(within) == -jnp.inf
        return draw_links(key, jnp.where(opens, 0.0, -jnp.inf), within)

    return jax.lax.cond(goes_back, draw, lambda: links)


def update_alpha(key: Array, hyper: Hyper, alpha_prior: dist.Distribution, links: Array) -> Array:
    """Draw α given the links: of a Gamma prior exactly, with V_i ~ Exp(α + Σ_j f_ij)."""
    size = links.shape[0]
    itself = jnp.sum(links == jnp.arange(size)).astype(float)
    totals = jnp.exp(log_totals(hyper.reach))
    if isinstance(alpha_prior, dist.Gamma):
        key_times, key_alpha = random.split(key)
        times = random.exponential(key_times, (size,)) / (hyper.alpha + totals)
        log_gamma = random.loggamma(key_alpha, alpha_prior.concentration + itself)
        return positive(jnp.exp(log_gamma) / (alpha_prior.rate + times.sum()))

    def difference(log_alpha: Array, delta: Array) -> Array:
        alpha = jnp.exp(log_alpha)
        step = alpha * jnp.expm1(delta)
        change = itself * delta - jnp.sum(jnp.log1p(step / (alpha + totals)))
        return change + log_prior_ratio(alpha_prior, alpha + step, hyper.alpha) + delta

    log_alpha = slice_sample(key, jnp.log(hyper.alpha), difference, 2.0, lower=-jnp.inf)
    return keep_possible(alpha_prior, positive(jnp.exp(log_alpha)), hyper.alpha)


def update_decay(
    key: Array,
    log_terms: Callable[[Hyper], Array],
    hyper: Hyper,
    prior: dist.Distribution,
    reach_of: Callable[[Array], Reach],
) -> Hyper:
    """Draw the scale of the decay by slice sampling of its logarithm.

    :param log_terms: whose sum is the log likelihood of α and the scale, (N,).
    """
    now = log_terms(hyper)

    def difference(log_scale: Array, delta: Array) -> Array:
        scale = jnp.exp(log_scale + delta)
        other = log_terms(hyper._replace(scale=scale, reach=reach_of(scale)))
        change = jnp.sum(other - now) + delta
        return change + log_prior_ratio(prior, scale, hyper.scale)

    assert hyper.scale is not None
    log_scale = slice_sample(key, jnp.log(hyper.scale), difference, 1.0, lower=-jnp.inf)
    scale = keep_possible(prior, jnp.exp(log_scale), hyper.scale)
    return hyper._replace(scale=scale, reach=reach_of(scale))
