r"""Positive stable variables: their density, and draws with an exponential tilt.

The variable with Laplace transform :math:`E\,e^{-sX} = e^{-s^σ}`, 0 < σ < 1, has the density
(Zolotarev's formula)

.. math:: f_σ(x) = \frac{σ}{1-σ}\, \frac1π \int_0^π x^{-1/(1-σ)} A(u)\, e^{-A(u) x^{-σ/(1-σ)}} du,
    \qquad A(u) = \left(\frac{\sin^σ(σu) \sin^{1-σ}((1-σ)u)}{\sin u}\right)^{1/(1-σ)}.

**References**

1. *Random variate generation for exponentially and polynomially tilted stable distributions*,
   L. Devroye (ACM TOMACS, 2009).
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax, random
from jax.typing import ArrayLike

_MAX_TRIES = 500
# nodes of the trapezoidal rule in the log odds of u/π, where the integrand decays smoothly
_NODES = np.linspace(-40.0, 40.0, 641)


def _log_sinc(x: Array) -> Array:
    """log(sin(x) / x), accurate near 0."""
    y = x * x
    series = -y * (1 / 6 + y * (1 / 180 + y * (1 / 2835 + y * (1 / 37800 + y / 467775))))
    small = x < 0.7
    far = jnp.where(small, 1.0, x)
    return jnp.where(small, series, jnp.log(jnp.maximum(jnp.sin(far), 1e-37) / far))


def _log_fall(u: Array, left: Array, sigma: Array) -> Array:
    """log B(u)/B(0) with B = A^{-(1-σ)}, which decreases from 0 at u = 0; ``left`` is π - u."""
    middle = u < 0.5 * math.pi
    near = _log_sinc(jnp.where(middle, u, 1.0))
    far = jnp.where(middle, 1.0, left)
    of_one = jnp.where(middle, near, _log_sinc(far) + jnp.log(far / jnp.where(middle, 1.0, u)))
    return of_one - sigma * _log_sinc(sigma * u) - (1 - sigma) * _log_sinc((1 - sigma) * u)


def _log_a_at_zero(sigma: Array) -> Array:
    """log A(0)."""
    return jnp.log1p(-sigma) + sigma / (1.0 - sigma) * jnp.log(sigma)


def log_stable_density(log_x: ArrayLike, sigma: ArrayLike) -> Array:
    """Log of :math:`f_σ(x)`, by the trapezoidal rule, of the shape of ``log_x``."""
    log_x = jnp.asarray(log_x, float)
    sigma = jnp.asarray(sigma, log_x.dtype)
    nodes = jnp.asarray(_NODES, log_x.dtype)
    u, left = math.pi * jax.nn.sigmoid(nodes), math.pi * jax.nn.sigmoid(-nodes)
    log_a = _log_a_at_zero(sigma) - _log_fall(u, left, sigma) / (1.0 - sigma)
    # du/π = p(1 - p) times the step, p = u/π
    log_du = (
        jax.nn.log_sigmoid(nodes) + jax.nn.log_sigmoid(-nodes) + math.log(_NODES[1] - _NODES[0])
    )
    log_rate = log_a - sigma / (1.0 - sigma) * log_x[..., None]
    values = log_a + log_du - jnp.exp(jnp.minimum(log_rate, 80.0))
    log_integral = jax.nn.logsumexp(values, axis=-1)
    return jnp.log(sigma / (1.0 - sigma)) - log_x / (1.0 - sigma) + log_integral


def sample_tilted_stable(key: Array, sigma: ArrayLike, log_tilt: ArrayLike) -> Array:
    """Exact draw of log x, x from the density ∝ :math:`f_σ(x) e^{-λx}`, by double rejection [1]."""
    log_tilt = jnp.asarray(log_tilt, float)
    dtype = log_tilt.dtype
    sigma = jnp.asarray(sigma, dtype)
    power = jnp.exp(sigma * log_tilt)  # λ^σ
    gamma = power * sigma * (1.0 - sigma)
    root, half = jnp.sqrt(gamma), math.sqrt(math.pi / 2.0)
    xi = ((2.0 + half) * math.sqrt(2.0) * root + 1.0) / math.pi
    psi = jnp.exp(-gamma * math.pi**2 / 8.0) * (2.0 + half) * root * math.sqrt(math.pi) / math.pi
    many = gamma >= 1.0
    first = jnp.where(many, xi * half / jnp.maximum(root, 1e-30), xi * math.pi)
    second = 2.0 * psi * math.sqrt(math.pi)
    b = (1.0 - sigma) / sigma

    def attempt(state: tuple) -> tuple:
        tries = state[0]
        keys = random.split(random.fold_in(key, tries), 4)
        uniforms = 1.0 - random.uniform(keys[0], (4,), dtype)  # on (0, 1]
        normals = jnp.abs(random.normal(keys[1], (2,), dtype))
        exponential = random.exponential(keys[2], (), dtype)
        # U from an envelope of its density
        from_first = uniforms[0] * (first + second) < first
        u = jnp.where(many, normals[0] / jnp.maximum(root, 1e-30), math.pi * (1.0 - uniforms[1]))
        left = jnp.where(from_first, math.pi - u, math.pi * uniforms[1] ** 2)
        u = jnp.where(from_first, u, math.pi - left)
        inside = (left > 0.0) & (u >= 0.0)
        u, left = jnp.where(inside, u, 1.0), jnp.where(inside, left, math.pi - 1.0)
        log_fall = _log_fall(u, left, sigma)
        zeta = jnp.exp(0.5 * log_fall)
        # 1 / (1 - (1 + σζ/√γ)^{-1/σ})
        z = -1.0 / jnp.expm1(-jnp.log1p(sigma * zeta / root) / sigma)
        envelope = jnp.where(many, xi * jnp.exp(-0.5 * gamma * u * u), xi)
        envelope += psi / jnp.sqrt(left)
        log_rho = math.log(math.pi) + power * jnp.expm1(-log_fall)
        log_rho += jnp.log(envelope) - jnp.log((1.0 + half) * root / zeta + z)
        log_level = jnp.log(uniforms[2]) + log_rho
        # X given U, as the multiple 1 + d of its mode m
        a = jnp.exp(_log_a_at_zero(sigma) - log_fall / (1.0 - sigma))
        log_m = sigma * (jnp.log(b) + log_tilt - jnp.log(a))
        am = a * jnp.exp(log_m)
        width = jnp.sqrt(sigma / am)
        parts = jnp.stack([width * half, width, z / am])
        choice = jnp.searchsorted(jnp.cumsum(parts), uniforms[3] * parts.sum())
        within = random.uniform(keys[3], (), dtype)
        d = jnp.stack([-width * normals[1], width * within, width + exponential * parts[2]])
        d = d[jnp.minimum(choice, 2)]
        possible = d > -1.0
        d = jnp.where(possible, d, 0.0)
        cost = am * (d + jnp.expm1(-b * jnp.log1p(d)) / b)
        cost -= jnp.where(choice == 0, 0.5 * normals[1] ** 2, 0.0)
        cost -= jnp.where(choice >= 2, exponential, 0.0)
        accepted = inside & (log_level <= 0.0) & possible & (cost <= -log_level)
        return tries + 1, -b * (log_m + jnp.log1p(d)), accepted

    def rejected(state: tuple) -> Array:
        return (state[0] < _MAX_TRIES) & ~state[2]

    start = attempt((jnp.array(0), jnp.zeros((), dtype), jnp.array(False)))
    return lax.while_loop(rejected, attempt, start)[1]
