r"""Log densities of gamma processes and of Pitt–Walker dependent gamma processes.

**References**

1. *Bayesian nonparametric Plackett–Luce models for the analysis of preferences for college degree
   programmes*, F. Caron, Y. W. Teh, T. B. Murphy (Annals of Applied Statistics, 2014)

Equation numbers are those of [1].
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.scipy.special import gammaln, i1e

from numpyro_rankings.ops.special import log_bessel_ie
from numpyro_rankings.ops.stable import log_stable_density


class RootMeasure(NamedTuple):
    """The root :math:`G_0`: **weights** of the listed items, (K,), and the **unseen** mass, ()."""

    weights: Array
    unseen: Array


class ClusterShares(NamedTuple):
    """The measures :math:`G_j` of the clusters, normalised."""

    weights: Array  # of the listed items, (C, K); their sum with the unseen ones is 1
    unseen: Array  # (C,)
    total: Array  # total mass of each measure before it was normalised, (C,)


def log_gamma_process(
    weights: Array, unseen: Array, total: Array | None, alpha: Array, tau: Any, sigma: float
) -> Array:
    """Log density of the weights of the listed items, (K,), and of all others together."""
    # It is stated in :func:`~numpyro_rankings.models.gamma_process_plackett_luce`. The total is the
    # sum of all weights before they were normalised; None for σ = 0.
    # an item that no ranking lists has no atom; this can occur only under jit
    has_atom = weights > 0
    number = has_atom.sum()
    sum_log = jnp.sum(jnp.where(has_atom, jnp.log(jnp.where(has_atom, weights, 1.0)), 0.0))
    if total is None:
        return number * jnp.log(alpha) - sum_log + (alpha - 1.0) * jnp.log(unseen)
    log_total = jnp.log(total)
    log_atoms = number * (jnp.log(alpha) - gammaln(1.0 - sigma) - (1.0 + sigma) * log_total)
    log_atoms -= (1.0 + sigma) * sum_log + tau * total * weights.sum()
    log_rest = log_tempered_stable(jnp.log(unseen) + log_total, alpha, tau, sigma)
    return log_atoms + log_rest + number * log_total


def log_tempered_stable(log_mass: Array, alpha: Array, tau: Any, sigma: float) -> Array:
    """Log density of the total mass of a generalised gamma process, at exp(``log_mass``)."""
    log_scale = jnp.log(alpha / sigma) / sigma
    log_stable = log_stable_density(log_mass - log_scale, sigma) - log_scale
    return log_stable - tau * jnp.exp(log_mass) + alpha / sigma * tau**sigma


def log_atoms(weights: Array, root: Array, phi: Array, tau: Any) -> Array:
    """log p(w_jk | w_0k), eq. (25), summed over u_jk, (C, K); log of a probability at 0."""
    positive = weights > 0
    w = jnp.where(positive, weights, 1.0)
    rate = tau + phi
    x = 2.0 * jnp.sqrt(w * phi * root * rate)
    # e^x of the scaled Bessel function and e^{-φ w_0 - (τ + φ) w} combine to a square
    log_density = jnp.log(i1e(x)) + 0.5 * jnp.log(phi * rate * root / w)
    log_density -= (jnp.sqrt(phi * root) - jnp.sqrt(rate * w)) ** 2
    return jnp.where(positive, log_density, -phi * root)


def log_unseen(weights: Array, root: Array, alpha: Array, phi: Array, tau: Any) -> Array:
    """log p(w_j* | w_0*), eq. (26), summed over u_j*, (C,)."""
    rate = tau + phi
    x = 2.0 * jnp.sqrt(weights) * jnp.sqrt(phi * root * rate)
    log_density = log_bessel_ie(alpha - 1.0, x) + 0.5 * (alpha + 1.0) * jnp.log(rate)
    log_density += 0.5 * (alpha - 1.0) * jnp.log(weights / (phi * root))
    return log_density - (jnp.sqrt(phi * root) - jnp.sqrt(rate * weights)) ** 2


def log_pitt_walker(
    root: RootMeasure, clusters: ClusterShares, occupied: Array, alpha: Array, phi: Array, tau: Any
) -> Array:
    """Log density of the root and of the occupied clusters, that of ``dp_plackett_luce``."""
    number = root.weights.shape[0]
    # the atoms of the root gamma process, and its unseen mass
    log_density = number * jnp.log(alpha) - jnp.sum(jnp.log(root.weights))
    log_density -= tau * root.weights.sum()
    log_density += _log_gamma(root.unseen, alpha, tau)
    total = clusters.total
    of_atoms = log_atoms(clusters.weights * total[:, None], root.weights, phi, tau).sum(1)
    rest = log_unseen(clusters.unseen * total, root.unseen, alpha, phi, tau)
    # the Jacobian of the shares and the total
    jacobian = jnp.sum(clusters.weights > 0, axis=1) * jnp.log(total)
    return log_density + jnp.sum(jnp.where(occupied, of_atoms + rest + jacobian, 0.0))


def _log_gamma(x: Array, shape: Array, rate: Any) -> Array:
    """Log density of Gamma(shape, rate)."""
    log_normalizer = gammaln(shape) - shape * jnp.log(rate)
    return (shape - 1) * jnp.log(x) - rate * x - log_normalizer
