r"""The prior of a partition, in two parameters, and the update of its concentration α.

Points are seated one after another. A cluster of n points has weight n - d, and a new cluster has
weight α + d k where there are k clusters. This is

- the Dirichlet process for d = 0,
- the Pitman–Yor process for 0 <= d < 1,
- a finite mixture with symmetric Dirichlet(α/K) shares for d = -α/K: a new cluster then has weight
  (α/K)(K - k).

The probability of a partition of N points into k clusters of sizes :math:`n_c` is

.. math:: \frac{Γ(α + 1)}{Γ(α + N)} \prod_{i=1}^{k-1} (α + d i)
    \prod_c \frac{Γ(n_c - d)}{Γ(1 - d)}.

**References**

1. *Combinatorial stochastic processes*, J. Pitman (Springer, 2006), Section 3.2.
2. *Bayesian density estimation and inference using mixtures*, M. D. Escobar, M. West (JASA, 1995).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.infer.priors import keep_possible, log_prior_ratio
from numpyro_rankings.ops.sampling import sample_log_gamma, slice_sample
from numpyro_rankings.ops.special import log_gamma_ratio


class PartitionPrior(NamedTuple):
    """Prior of the labels."""

    alpha: Array  # concentration α, ()
    num_components: int | None = None  # K of a finite mixture; None for a process
    discount: Array | float = 0.0  # d of a process; not used for a finite mixture
    num_used: Array | None = None  # components in use, from the first on; None if all K are

    @property
    def number(self) -> Any:
        """K, of the components in use; None for a process."""
        return self.num_components if self.num_used is None else self.num_used

    def among_used(self, values: Array, otherwise: Any) -> Array:
        """Return values by slot, (C,), with another one for those that are not in use."""
        if self.num_used is None:
            return values
        return jnp.where(jnp.arange(len(values)) < self.num_used, values, otherwise)

    @property
    def kappa(self) -> Array:
        """κ: a cluster of n points has weight n + κ. It is α/K, or minus the discount."""
        if self.num_components is not None:
            return self.alpha / self.number
        return jnp.zeros_like(self.alpha) - self.discount

    def log_join(self, sizes: Array) -> Array:
        """Return the log weights of clusters of these sizes, -inf where they are empty."""
        occupied = sizes > 0
        weights = jnp.where(occupied, sizes, 1) + self.kappa
        return jnp.where(occupied, jnp.log(weights), -jnp.inf)

    def log_open(self, num_clusters: Array) -> Array:
        """Return the total log weight of all new clusters, where there are ``num_clusters``."""
        if self.num_components is None:
            return jnp.log(self.alpha + num_clusters * self.discount)
        left = (self.number - num_clusters).astype(float)
        return jnp.where(left > 0, jnp.log(self.kappa) + jnp.log(jnp.maximum(left, 1)), -jnp.inf)

    def log_prob(self, sizes: Array) -> Array:
        """Return the log probability of a partition with these sizes, (C,), zeros allowed."""
        occupied = sizes > 0
        num_clusters, num_points = occupied.sum(), sizes.sum().astype(float)
        before = jnp.arange(1, sizes.shape[0])
        opened = jnp.where(before < num_clusters, self.log_open(before), 0.0)
        within = log_gamma_ratio(1.0 + self.kappa, jnp.maximum(sizes, 1) - 1.0)
        log_prob = opened.sum() + jnp.where(occupied, within, 0.0).sum()
        return log_prob - log_gamma_ratio(self.alpha + 1.0, num_points - 1.0)


def update_alpha(
    key: Array, prior: PartitionPrior, alpha_prior: dist.Distribution, sizes: Array
) -> Array:
    """Draw α given the sizes of the clusters, (C,), zeros allowed."""
    # With a Gamma prior and the Dirichlet process exactly, by the auxiliary variable of Escobar &
    # West [2]; otherwise by slice sampling of log α.
    occupied = sizes > 0
    num_clusters, num_points = occupied.sum(), sizes.sum().astype(float)
    has_discount = not (isinstance(prior.discount, float) and prior.discount == 0.0)
    is_dirichlet_process = prior.num_components is None and not has_discount
    if is_dirichlet_process and isinstance(alpha_prior, dist.Gamma):
        return _escobar_west(key, prior.alpha, alpha_prior, num_clusters, num_points)
    before = jnp.arange(1, sizes.shape[0])

    def difference(log_alpha: Array, delta: Array) -> Array:
        """log p(α e^δ | partition) - log p(α | partition), in ratios that float32 can hold."""
        alpha = jnp.exp(log_alpha)
        step = alpha * jnp.expm1(delta)
        change = log_gamma_ratio(alpha + 1.0, step) - log_gamma_ratio(alpha + num_points, step)
        if has_discount:
            opened = jnp.log1p(step / (alpha + before * prior.discount))
            change += jnp.where(before < num_clusters, opened, 0.0).sum()
        else:
            change += (num_clusters - 1) * delta
        if prior.num_components is not None:
            kappa, kappa_step = alpha / prior.number, step / prior.number
            within = log_gamma_ratio(kappa + jnp.maximum(sizes, 1), kappa_step)
            within -= log_gamma_ratio(kappa + 1.0, kappa_step)
            change += jnp.where(occupied, within, 0.0).sum()
        change += log_prior_ratio(alpha_prior, alpha + step, prior.alpha)
        return change + delta  # the Jacobian of log α

    log_alpha = slice_sample(key, jnp.log(prior.alpha), difference, 2.0, lower=-jnp.inf)
    return keep_possible(alpha_prior, jnp.exp(log_alpha), prior.alpha)


def _escobar_west(
    key: Array, alpha: Array, prior: dist.Gamma, num_clusters: Array, num_points: Array
) -> Array:
    key_eta, key_mixture, key_gamma = random.split(key, 3)
    # log η, η ~ Beta(α + 1, N)
    log_gammas = sample_log_gamma(key_eta, jnp.stack([alpha + 1.0, num_points]))
    log_eta = log_gammas[0] - jnp.logaddexp(*log_gammas)
    rate = prior.rate - log_eta
    shape = prior.concentration + num_clusters
    odds = (shape - 1.0) / (num_points * rate)
    first = random.uniform(key_mixture) * (1.0 + odds) < odds
    log_gamma = sample_log_gamma(key_gamma, jnp.where(first, shape, shape - 1.0))
    return at_least_tiny(jnp.exp(log_gamma) / rate)


def at_least_tiny(alpha: Array) -> Array:
    """Round up to the smallest positive float: a draw under a vague prior may underflow to 0."""
    return jnp.maximum(alpha, jnp.finfo(alpha.dtype).tiny)
