"""Log densities of gamma processes and of Pitt–Walker dependent ones."""

from typing import Any

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from jax.scipy.special import gammaln, i1e

from numpyro_rankings.ops.special import log_bessel_ie
from numpyro_rankings.ops.stable import log_stable_density


def log_gamma_process(
    weights: Array, unseen: Array, total: Array | None, alpha: Array, tau: Any, sigma: float
) -> Array:
    """Log density of the weights of the listed items and of all others, see the model above.

    :param weights: (K,), normalised together with **unseen**, ().
    :param total: their sum before, for σ > 0.
    """
    # an item that no ranking lists has no atom of its own; it can occur only under jit
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
    """log p(w_jk | w_0k), eq. (25), with u_jk summed over; a weight of 0 has a mass of its own.

    :param weights: (C, K).
    :param root: (K,).
    """
    positive = weights > 0
    w = jnp.where(positive, weights, 1.0)
    rate = tau + phi
    x = 2.0 * jnp.sqrt(w * phi * root * rate)
    # e^x of the Bessel function against e^{-φ w_0 - (τ + φ) w} is a square
    log_density = jnp.log(i1e(x)) + 0.5 * jnp.log(phi * rate * root / w)
    log_density -= (jnp.sqrt(phi * root) - jnp.sqrt(rate * w)) ** 2
    return jnp.where(positive, log_density, -phi * root)


def log_unseen(weights: Array, root: Array, alpha: Array, phi: Array, tau: Any) -> Array:
    """log p(w_j* | w_0*), eq. (26), with u_j* summed over.

    :param weights: (C,).
    :param root: ().
    """
    rate = tau + phi
    x = 2.0 * jnp.sqrt(weights) * jnp.sqrt(phi * root * rate)
    log_density = log_bessel_ie(alpha - 1.0, x) + 0.5 * (alpha + 1.0) * jnp.log(rate)
    log_density += 0.5 * (alpha - 1.0) * jnp.log(weights / (phi * root))
    return log_density - (jnp.sqrt(phi * root) - jnp.sqrt(rate * weights)) ** 2


def log_pitt_walker(
    weights: Array,
    unseen: Array,
    total: Array,
    root: Array,
    root_unseen: Array,
    occupied: Array,
    alpha: Array,
    phi: Array,
    tau: Any,
) -> Array:
    """Log density of the root and of the occupied clusters, see the model above.

    :param weights: (C, K), normalised together with **unseen**, (C,); **total** (C,) is their sum
        as it was.
    :param root: (K,), and **root_unseen** ().
    """
    number = root.shape[0]
    # the atoms of the gamma process, and all the others
    log_density = number * jnp.log(alpha) - jnp.sum(jnp.log(root)) - tau * root.sum()
    log_density += dist.Gamma(alpha, tau).log_prob(root_unseen)
    of_atoms = log_atoms(weights * total[:, None], root, phi, tau).sum(1)
    rest = log_unseen(unseen * total, root_unseen, alpha, phi, tau)
    # the Jacobian of the shares and the total
    jacobian = jnp.sum(weights > 0, axis=1) * jnp.log(total)
    return log_density + jnp.sum(jnp.where(occupied, of_atoms + rest + jacobian, 0.0))
