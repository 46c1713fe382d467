"""Priors of partitions, and the update of their concentration α."""

from typing import NamedTuple

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random
from jax.scipy.special import gammaln

from numpyro_rankings.infer.priors import keep_possible, log_prior_ratio
from numpyro_rankings.ops.sampling import slice_sample
from numpyro_rankings.ops.special import log_gamma_ratio


class PartitionPrior(NamedTuple):
    """Prior of the labels: α, and K for a finite mixture (None for the Dirichlet process)."""

    alpha: Array
    num_components: int | None

    @property
    def kappa(self) -> Array:
        """Prior weight of an occupied cluster beyond its size."""
        if self.num_components is None:
            return jnp.zeros_like(self.alpha)
        return self.alpha / self.num_components

    def log_new(self, occupied: Array) -> Array:
        """Log of the total prior weight of the clusters that hold nobody yet."""
        if self.num_components is None:
            return jnp.log(self.alpha)
        left = (self.num_components - occupied).astype(float)
        return jnp.where(left > 0, jnp.log(self.kappa) + jnp.log(jnp.maximum(left, 1)), -jnp.inf)


class RestaurantPrior(NamedTuple):
    """Chinese restaurant process: **alpha**, and the **discount** of Pitman and Yor."""

    alpha: Array
    discount: Array

    def log_open(self, num_clusters: Array) -> Array:
        """Log weight of a new cluster where there are that many."""
        some = self.alpha + num_clusters * self.discount
        # the first cluster of all opens whatever alpha is
        return jnp.where(num_clusters > 0, jnp.log(jnp.where(num_clusters > 0, some, 1.0)), 0.0)

    def log_join(self, size: Array) -> Array:
        """Log weight of a cluster of that size, -inf if it is empty."""
        some = size > 0
        return jnp.where(some, jnp.log(jnp.where(some, size - self.discount, 1.0)), -jnp.inf)

    def log_prob(self, sizes: Array) -> Array:
        """Log probability of a partition with these block sizes, (C,), zeros allowed."""
        number, total = jnp.sum(sizes > 0), sizes.sum().astype(float)
        opened = jnp.arange(1, sizes.shape[0])
        opened = jnp.where(opened < number, self.log_open(opened), 0.0).sum()
        inside = log_gamma_ratio(1.0 - self.discount, jnp.maximum(sizes, 1) - 1.0)
        return (
            opened
            + jnp.where(sizes > 0, inside, 0.0).sum()
            - log_gamma_ratio(self.alpha + 1.0, total - 1.0)
        )


def update_alpha_with_discount(
    key: Array, prior: RestaurantPrior, alpha_prior: dist.Distribution, sizes: Array
) -> Array:
    """Draw α of a Pitman–Yor process given the block sizes, by slice sampling of log α."""
    number, total = jnp.sum(sizes > 0), sizes.sum().astype(float)
    others = jnp.arange(1, sizes.shape[0])

    def difference(log_alpha: Array, delta: Array) -> Array:
        alpha = jnp.exp(log_alpha)
        step = alpha * jnp.expm1(delta)
        opened = jnp.log1p(step / (alpha + others * prior.discount))
        change = jnp.where(others < number, opened, 0.0).sum()
        # Γ(α + 1)/Γ(α + N)
        change += log_gamma_ratio(alpha + 1.0, step) - log_gamma_ratio(alpha + total, step)
        return change + log_prior_ratio(alpha_prior, alpha + step, prior.alpha) + delta

    log_alpha = slice_sample(key, jnp.log(prior.alpha), difference, 2.0, lower=-jnp.inf)
    return keep_possible(alpha_prior, jnp.exp(log_alpha), prior.alpha)


def log_partition_prior(prior: PartitionPrior, sizes: Array) -> Array:
    """Log probability of the partition with block sizes ``sizes``, (C,), zeros allowed."""
    alpha, kappa = prior.alpha, prior.kappa
    occupied = sizes > 0
    num_rankings, num_clusters = sizes.sum(), occupied.sum()
    filled = jnp.where(occupied, sizes, 1).astype(float)
    blocks = gammaln(filled + kappa)
    if prior.num_components is None:
        opened = num_clusters * jnp.log(alpha)
    else:
        left = prior.num_components - num_clusters
        opened = gammaln(prior.num_components + 1.0) - gammaln(left + 1.0)
        blocks = blocks - gammaln(kappa)
    ratio = gammaln(alpha) - gammaln(alpha + num_rankings)
    return opened + jnp.sum(jnp.where(occupied, blocks, 0.0)) + ratio


def update_alpha(
    key: Array, prior: PartitionPrior, alpha_prior: dist.Distribution, sizes: Array
) -> Array:
    """Draw α given the block sizes.

    For a Dirichlet process and a Gamma prior exactly, with the auxiliary variable of Escobar &
    West (1995); otherwise by slice sampling of log α.
    """
    num_clusters = jnp.sum(sizes > 0)
    num_rankings = sizes.sum().astype(float)
    if prior.num_components is None and isinstance(alpha_prior, dist.Gamma):
        return _escobar_west(key, prior.alpha, alpha_prior, num_clusters, num_rankings)

    def difference(log_alpha: Array, delta: Array) -> Array:
        """log p(α e^δ | partition) - log p(α | partition), in ratios that float32 can hold."""
        alpha = jnp.exp(log_alpha)
        step = alpha * jnp.expm1(delta)
        change = log_gamma_ratio(alpha, step) - log_gamma_ratio(alpha + num_rankings, step)
        if prior.num_components is None:
            change += num_clusters * delta
        else:
            kappa, kappa_step = alpha / prior.num_components, step / prior.num_components
            filled = jnp.maximum(sizes, 1)
            blocks = log_gamma_ratio(kappa + filled, kappa_step)
            blocks -= log_gamma_ratio(kappa, kappa_step)
            change += jnp.sum(jnp.where(sizes > 0, blocks, 0.0))
        change += log_prior_ratio(alpha_prior, alpha + step, prior.alpha)
        return change + delta  # the Jacobian of log α

    log_alpha = slice_sample(key, jnp.log(prior.alpha), difference, 2.0, lower=-jnp.inf)
    return keep_possible(alpha_prior, jnp.exp(log_alpha), prior.alpha)


def _escobar_west(
    key: Array, alpha: Array, prior: dist.Gamma, num_clusters: Array, num_rankings: Array
) -> Array:
    key_eta, key_eta_rest, key_mixture, key_gamma = random.split(key, 4)
    # log η, η ~ Beta(α + 1, N)
    log_left = random.loggamma(key_eta, alpha + 1.0)
    log_eta = log_left - jnp.logaddexp(log_left, random.loggamma(key_eta_rest, num_rankings))
    rate = prior.rate - log_eta
    shape = prior.concentration + num_clusters
    odds = (shape - 1.0) / (num_rankings * rate)
    first = random.uniform(key_mixture) * (1.0 + odds) < odds
    log_gamma = random.loggamma(key_gamma, jnp.where(first, shape, shape - 1.0))
    return positive(jnp.exp(log_gamma) / rate)


def positive(alpha: Array) -> Array:
    """What is too small for the format, with a vague prior, as the smallest number."""
    return jnp.maximum(alpha, jnp.finfo(alpha.dtype).tiny)
