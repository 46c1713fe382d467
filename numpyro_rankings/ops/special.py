r"""The normaliser of a stage, its integral over the concentration (B̃), and their ratios.

A stage with codes ``0..m`` and concentration :math:`\theta` has the normaliser

.. math::  \psi_m(\theta) = \sum_{k=0}^m e^{-k\theta}
           = e^{-m\theta/2}\, \frac{\sinh((m+1)\theta/2)}{\sinh(\theta/2)},

and the conjugate posterior of its concentration has the log-concave density

.. math::  p(\theta) \propto e^{-a\theta} \psi_m(\theta)^{1-b}, \qquad \theta \ge 0,

whose normaliser is :math:`\tilde B(a, b, m)`, equation (14) of Meilă & Chen (2010).

All functions are accurate in float32. With :math:`a, b \sim 10^7` a difference of two large
logarithms has no digits left, so the functions below return differences and ratios directly. They
broadcast over all arguments and work under ``jit``, ``vmap`` and ``grad``. The largest code ``m``
may be an integer array or traced; it is not differentiated.

**References**

1. *Dirichlet Process Mixtures of Generalized Mallows Models*, M. Meilă, H. Chen (UAI 2010)
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.nn import logsumexp
from jax.scipy.special import gammaln
from jax.typing import ArrayLike

# h(x) = log(sinh(x)/x) = sum_k 2^(2k) B_2k / (2k (2k)!) x^(2k): coefficients of x^2, x^4, ...
_H_SERIES = (
    1.0 / 6.0,
    -1.0 / 180.0,
    1.0 / 2835.0,
    -1.0 / 37800.0,
    1.0 / 467775.0,
    -691.0 / 3831077250.0,
    2.0 / 127702575.0,
    -3617.0 / 2605132530000.0,
)
# The series is used for (m+1)θ below this value, the closed forms above it.
_SMALL = 2.0
# Replaces θ = 0 in closed forms that are smooth there but divide by θ.
_TINY = 1e-25

# Quadrature on either side of the mode extends to where the density is e^-18 of its maximum.
# Gauss–Legendre nodes are mapped by the smooth step 3v² - 2v³, which concentrates them at both
# ends: at the mode, and near 0, where the density may change on the scale 1/m.
_QUADRATURE_DROP = 18.0
_LEGENDRE_NODES, _LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(32)
_V = 0.5 * (_LEGENDRE_NODES + 1.0)
QUADRATURE_NODES = _V * _V * (3.0 - 2.0 * _V)
QUADRATURE_WEIGHTS = 3.0 * _LEGENDRE_WEIGHTS * _V * (1.0 - _V)

_LOG_FACTORIALS = np.cumsum(np.log(np.maximum(np.arange(60), 1)))


def as_floats(*args: ArrayLike) -> tuple[Array, ...]:
    """Convert the arguments to arrays of one floating type: float32, or wider if one of them is."""
    floats = [x for x in args if jnp.issubdtype(jnp.result_type(x), jnp.floating)]
    dtype = jnp.result_type(*floats, jnp.float32)
    return tuple(jnp.asarray(x, dtype) for x in args)


def _h_derivatives(x: Array) -> tuple[Array, Array]:
    """First and second derivative of ``h``, by its series, for ``|x| <= 1``."""
    square = x * x
    first, second = jnp.zeros_like(x), jnp.zeros_like(x)
    for k, c in reversed(list(enumerate(_H_SERIES, start=1))):
        first = first * square + 2 * k * c
        second = second * square + 2 * k * (2 * k - 1) * c
    return first * x, second


def _h_difference(x: Array, dx: Array) -> Array:
    """``h(x + dx) - h(x)`` without cancellation, for arguments in [-1, 1]."""
    low, high = x * x, (x + dx) * (x + dx)
    # Horner's rule for the polynomial in x^2 and for its divided difference. The value is taken at
    # the far end, because the compiler would otherwise move its terms one by one out of loops over
    # dx at fixed x, at a cost in compile time.
    value, slope = jnp.zeros_like(high), jnp.zeros_like(high)
    for c in reversed(_H_SERIES):
        slope = slope * low + value
        value = value * high + c
    slope = slope * low + value
    return slope * dx * (2.0 * x + dx)


@jax.custom_jvp
def _log_psi(theta: Array, m: Array) -> Array:
    theta = jnp.maximum(theta, _TINY)
    # psi - 1 = e^-θ (1 - e^-mθ) / (1 - e^-θ) has full relative accuracy everywhere.
    return jnp.log1p(jnp.exp(-theta) * jnp.expm1(-m * theta) / jnp.expm1(-theta))


def _moments(theta: Array, m: Array) -> tuple[Array, Array]:
    """Mean and variance of a code."""
    size = m + 1.0
    small = size * theta < _SMALL
    # cumulants of uniform codes (θ = 0), less a series in θ
    x = 0.5 * jnp.where(small, theta, 0.0)
    (first, first_scaled), (second, second_scaled) = _h_derivatives(jnp.stack([x, size * x]))
    near_mean = 0.5 * (m - size * first_scaled + first)
    near_var = 0.25 * (size * size * second_scaled - second)
    # cumulants of a geometric variable, less those of another on the multiples of m + 1
    t = jnp.where(small, 1.0, theta)
    both = jnp.stack([t, size * t])
    odds, odds_scaled = jnp.exp(-both) / -jnp.expm1(-both)
    odds_scaled = size * odds_scaled
    far_mean = odds - odds_scaled
    far_var = odds * (1.0 + odds) - odds_scaled * (size + odds_scaled)
    # Fused operations may leave a rounding error where the result is exactly 0.
    mean = jnp.where(m > 0.0, jnp.where(small, near_mean, far_mean), 0.0)
    return mean, jnp.where(m > 0.0, jnp.where(small, near_var, far_var), 0.0)


@jax.custom_jvp
def _mean_code(theta: Array, m: Array) -> Array:
    return _moments(theta, m)[0]


def _var_code(theta: Array, m: Array) -> Array:
    return _moments(theta, m)[1]


@_log_psi.defjvp
def _log_psi_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    theta, m = primals
    return _log_psi(theta, m), -_mean_code(theta, m) * tangents[0]


@_mean_code.defjvp
def _mean_code_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    theta, m = primals
    return _mean_code(theta, m), -_var_code(theta, m) * tangents[0]


def log_psi(theta: ArrayLike, m: ArrayLike) -> Array:
    """Log normaliser ln ψ_m(θ) of a stage, equation (3) of [1]; its slope is -:func:`mean_code`."""
    return _log_psi(*jnp.broadcast_arrays(*as_floats(theta, m)))


def mean_code(theta: ArrayLike, m: ArrayLike) -> Array:
    r"""Mean of a code with probabilities :math:`e^{-k\theta}/\psi_m(\theta)`, ``k = 0..m``."""
    return _mean_code(*jnp.broadcast_arrays(*as_floats(theta, m)))


def var_code(theta: ArrayLike, m: ArrayLike) -> Array:
    r"""Variance of a code with probabilities :math:`e^{-k\theta}/\psi_m(\theta)`, ``k = 0..m``."""
    return _var_code(*jnp.broadcast_arrays(*as_floats(theta, m)))


def _split_step(theta: Array, delta: Array, m: Array) -> tuple[Array, Array, Array, Array]:
    """Split a step δ at (m+1)θ = 2: start and length below, lower end and length above."""
    cut = _SMALL / (m + 1.0)
    end = theta + delta
    lower = jnp.minimum(theta, end)
    is_below = theta < cut
    # A step that does not cross the cut keeps its length to the last bit.
    below = jnp.where(is_below, jnp.minimum(delta, cut - theta), jnp.minimum(end - cut, 0.0))
    # min and max would halve the derivative at θ = cut.
    start = jnp.where(is_below, theta, cut)
    return start, below, jnp.where(lower < cut, cut, lower), delta - below


def _near_difference(theta: Array, delta: Array, m: Array) -> Array:
    """``ln psi(θ+δ) - ln psi(θ) + mδ/2`` for both ends below the cut."""
    scale = 0.5 * jnp.stack([m + 1.0, jnp.ones_like(m)])
    scaled, single = _h_difference(scale * theta[None], scale * delta[None])
    return jnp.where(m > 0.0, scaled - single, 0.0)


def _far_difference(low: Array, delta: Array, m: Array) -> Array:
    """Change of ln ψ between ``low`` and ``low + |δ|``, with the sign of the step δ."""
    # Written from the lower end upwards, so that nothing overflows.
    # Unlike sign and abs, these have the right derivative at 0.
    sign = jnp.where(delta < 0.0, -1.0, 1.0)
    scale = jnp.stack([m + 1.0, jnp.ones_like(m)])
    x, d = scale * low[None], scale * (sign * delta)[None]
    # log of (1 - e^(-scale (low + length))) / (1 - e^(-scale low))
    scaled, single = jnp.log1p(jnp.expm1(-d) * jnp.exp(-x) / jnp.expm1(-x))
    return jnp.where(m > 0.0, sign * (scaled - single), 0.0)


def log_density_difference(
    theta: ArrayLike, delta: ArrayLike, a: ArrayLike, b: ArrayLike, m: ArrayLike
) -> Array:
    """Change of the log density -aθ - (b-1) ln ψ_m(θ) over a step."""
    # Where codes are nearly uniform the two terms cancel: the linear part a - (b-1)m/2 is first.
    theta, delta, a, b, m = jnp.broadcast_arrays(*as_floats(theta, delta, a, b, m))
    near, near_step, far, far_step = _split_step(theta, delta, m)
    count = b - 1.0
    below = (a - 0.5 * count * m) * near_step + count * _near_difference(near, near_step, m)
    return -below - (a * far_step + count * _far_difference(far, far_step, m))


def concentration_mode(a: ArrayLike, b: ArrayLike, m: ArrayLike) -> Array:
    """Mode of the density ∝ exp(-aθ) ψ_m(θ)^(1-b) on θ ≥ 0."""
    # Without a prior it is the maximum likelihood estimate, where ``mean_code`` equals a / (b - 1);
    # it is 0 if the codes are on average no smaller than uniform ones. It is accurate to a small
    # part of the standard deviation.
    return mode_and_variance(*jnp.broadcast_arrays(*as_floats(a, b, m)))[0]


def mode_and_variance(a: Array, b: Array, m: Array) -> tuple[Array, Array]:
    """:func:`concentration_mode` and the approximate variance of a code there, of one shape."""
    count = b - 1.0
    interior = a < 0.5 * count * m
    target_mean = jnp.where(interior, a, 1.0) / jnp.where(interior, count, 1.0)
    largest = jnp.where(interior, m, 1.0)
    # log(1 + 1/mean) equals θ for infinite m. For every m it is convex in θ with a slope in
    # [1/3, 1], so Newton's steps from above need no safeguard.
    target = jnp.minimum(jnp.log1p(1.0 / target_mean), 80.0)

    def newton(_: int, state: Any) -> Any:
        theta, _ = state
        mean, var = _moments(theta, largest)
        error = jnp.log1p(1.0 / mean) - target
        return jnp.maximum(theta - error * mean * (1.0 + mean) / var, 0.0), var

    theta, var = lax.fori_loop(0, 4, newton, (target, target))
    return jnp.where(interior, theta, 0.0), jnp.where(interior, var, m * (m + 2.0) / 12.0)


class Fall(NamedTuple):
    """Points right and left of a mode, along a leading axis of length 2; of JAX or of NumPy."""

    distance: Any
    """distance from the mode; to the left at most the mode itself"""
    drop: Any
    """how far the log density has fallen"""
    slope: Any
    """how steeply it falls, away from the mode"""


def points_of_fall(
    mode: Array, variance: Array, a: Array, b: Array, m: Array, drop: float, num_steps: int
) -> Fall:
    """Points on either side of the mode at which the log density has fallen by about ``drop``."""
    # The fall is within 1e-3 of it after 5 steps, and between 1 and 1.4 times that after 3.
    side = jnp.array([1.0, -1.0], mode.dtype).reshape((2,) + (1,) * mode.ndim)
    mode, variance, a, b, m = (x[None] for x in (mode, variance, a, b, m))
    count = b - 1.0
    # At a mode of 0 the density may have a slope to the right.
    edge_slope = jnp.where(mode > 0.0, 0.0, jnp.maximum(a - 0.5 * count * m, 0.0))
    edge_slope = jnp.where(side > 0.0, edge_slope, 0.0)
    root = jnp.sqrt(edge_slope * edge_slope + 2.0 * drop * count * variance)
    start = 2.0 * drop / jnp.maximum(edge_slope + root, 1e-30)
    limit = jnp.where(side > 0.0, jnp.inf, mode)

    def newton(_: int, state: Any) -> Any:
        distance = jnp.minimum(state[0], limit)
        fallen = -log_density_difference(mode, side * distance, a, b, m)
        slope = side * (a - count * mean_code(mode + side * distance, m))
        # On log-log scale the fall has a slope between 1 and 2 to the right, and is convex to the
        # left.
        positive = jnp.maximum(fallen, 1e-20)
        power = jnp.clip(distance * slope / positive, 1.0, 100.0)
        better = distance * jnp.exp(jnp.log(drop / positive) / power)
        return better, Fall(distance, fallen, slope)

    first = jnp.broadcast_to(start, (2, *mode.shape[1:]))
    return lax.fori_loop(0, num_steps + 1, newton, (first, Fall(first, first, first)))[1]


def _mode_and_log_integral(a: Array, b: Array, m: Array) -> tuple[Array, Array]:
    """The mode, and the log integral of the density divided by its value there."""
    # Flat arrays compile and run faster than those with a short last axis.
    shape = a.shape
    a, b, m = a.ravel(), b.ravel(), m.ravel()
    # Nodes are constant under differentiation, because the integral does not depend on them.
    fixed_a, fixed_b = lax.stop_gradient(a), lax.stop_gradient(b)
    mode, variance = mode_and_variance(fixed_a, fixed_b, m)
    ends = points_of_fall(mode, variance, fixed_a, fixed_b, m, _QUADRATURE_DROP, num_steps=5)
    right, left = ends.distance[:, :, None]
    nodes = jnp.asarray(QUADRATURE_NODES, mode.dtype)[None]
    weights = jnp.asarray(QUADRATURE_WEIGHTS, mode.dtype)[None]
    steps = jnp.concatenate([right * nodes, -left * nodes], 1)
    masses = jnp.concatenate([right * weights, left * weights], 1)
    heights = log_density_difference(mode[:, None], steps, a[:, None], b[:, None], m[:, None])
    log_integral = jnp.log(jnp.sum(masses * jnp.exp(heights), 1))
    return mode.reshape(shape), log_integral.reshape(shape)


def log_beta_tilde(a: ArrayLike, b: ArrayLike, m: ArrayLike) -> Array:
    """Log of B̃(a, b, m) = ∫ exp(-aθ) ψ_m(θ)^(1-b) dθ over θ ≥ 0, eq. (14) of [1]."""
    # It is computed by quadrature, with 32 nodes on either side of the mode. Its derivatives in a
    # and b are minus the means of θ and of ln ψ_m(θ). The Beta-Gibbs sampler of [1] has B(a, b)
    # instead, the same integral with m infinite, which is accurate only where (m+1)θ is large: for
    # m = 9 and 100 rankings with mean codes ln B is off by -3e-9 at θ = 3, -0.67 at 0.5 and -17 at
    # 0.1, and the log probability of code 9 by -1e-6, -0.16 and -0.92.
    a, b, m = jnp.broadcast_arrays(*as_floats(a, b, m))
    mode, log_integral = _mode_and_log_integral(a, b, m)
    return log_integral - a * mode - (b - 1.0) * _log_psi(mode, m)


def log_beta_tilde_ratio(a: ArrayLike, b: ArrayLike, m: ArrayLike, s: ArrayLike) -> Array:
    """The ratio ln B̃(a+s, b+1, m) - ln B̃(a, b, m)."""
    # It is the log predictive probability of a code, one factor of Lemma 6 of [1]: given a cluster
    # with codes summarised in a and b, the next ranking has code s with this probability. The
    # probabilities of s = 0..m sum to one, equation (16). Each integral is taken relative to its
    # own mode, and the change of log density between the two modes is computed as a single
    # difference, so that no term grows with the size of the cluster. Terms without s are computed
    # once.
    a, b, m, s = as_floats(a, b, m, s)
    a, b, m = jnp.broadcast_arrays(a, b, m)
    further = jnp.broadcast_arrays(a + s, b + 1.0, m)
    if further[0].shape == a.shape:  # one evaluation of both is half as much to compile
        both = (jnp.stack(pair) for pair in zip((a, b, m), further, strict=True))
        (mode, tilted), (log_integral, tilted_log_integral) = _mode_and_log_integral(*both)
    else:
        mode, log_integral = _mode_and_log_integral(a, b, m)
        tilted, tilted_log_integral = _mode_and_log_integral(*further)
    # Rounding moves the far end of a step, which has no effect to first order at the mode.
    change = -log_density_difference(tilted, mode - tilted, a, b, m)
    peak = change - s * tilted - _log_psi(tilted, m)
    return peak + tilted_log_integral - log_integral


def log_beta_tilde_change(a: ArrayLike, b: ArrayLike, m: ArrayLike, s: ArrayLike) -> Array:
    """The ratio ln B̃(a+s, b, m) - ln B̃(a, b, m), from a difference of modes."""
    # It is the log Bayes factor of two centers, one with codes that sum, with those of the prior,
    # to a + s, the other to a. The difference s may be negative as long as a + s > 0.
    a, b, m, s = jnp.broadcast_arrays(*as_floats(a, b, m, s))
    both = jnp.stack([a, a + s])
    (mode, new_mode), (log_integral, new_log_integral) = _mode_and_log_integral(
        both, *(jnp.broadcast_to(x, both.shape) for x in (b, m))
    )
    change = log_density_difference(mode, new_mode - mode, a, b, m) - s * new_mode
    return change + new_log_integral - log_integral


def _stirling_remainder(x: Array) -> Array:
    """``lnΓ(x) - (x - 1/2) ln x + x - ln(2π)/2``, to 2e-6 for ``x >= 2``."""
    y = 1.0 / x
    z = y * y
    return y * (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z / 1680.0)))


def log_beta_ratio(a: ArrayLike, b: ArrayLike, s: ArrayLike) -> Array:
    """The ratio ln B(a+s, b+1) - ln B(a, b), the weight of a code in Beta-Gibbs."""
    # It is ``log_beta_tilde_ratio`` for an unbounded code, in four logarithms. As
    # ln b/(a+b+s) + ln Γ(a+s)Γ(a+b)/(Γ(a)Γ(a+b+s)), its second term is a second difference of ln Γ.
    # Stirling's formula reduces it to terms no larger than the difference itself. The error is a
    # few units in the last place.
    a, b, s = as_floats(a, b, s)
    # Γ(x) = Γ(x + 2) / (x (x + 1)) shifts small arguments to where Stirling's formula is accurate.
    width, area = s + b, s * b
    shift = (1.0 + area / (a * (a + width))) * (1.0 + area / ((a + 1.0) * (a + 1.0 + width)))
    first = jnp.log(b / ((a + width) * shift))
    c = a + 2.0
    second = (
        (a + 1.5) * jnp.log1p(area / (c * (c + width)))
        - s * jnp.log1p(b / (c + s))
        - b * jnp.log1p(s / (c + b))
    )
    remainder = (
        _stirling_remainder(c + s)
        - _stirling_remainder(c)
        - _stirling_remainder(c + width)
        + _stirling_remainder(c + b)
    )
    return first + second + remainder


def log_gamma_ratio(x: ArrayLike, d: ArrayLike) -> Array:
    """The ratio lnΓ(x+d) - lnΓ(x), accurate for d small beside x too."""
    # The relative error is a few units in the last place except near its zeros, where x and x + d
    # lie on either side of 1.46 or close to it.
    x, d = as_floats(x, d)
    y, remainder, shift = _log_gamma_parts(x, d)
    return d * jnp.log(y + d) + (y - 0.5) * jnp.log1p(d / y) - d + remainder - shift


def log_gamma_rest(x: ArrayLike, d: ArrayLike) -> Array:
    """The ratio lnΓ(x+d) - lnΓ(x), less d ln(x+4+d) - d: what is left grows like ln d."""
    # Sums of such ratios, whose large parts cancel, keep their digits.
    x, d = as_floats(x, d)
    y, remainder, shift = _log_gamma_parts(x, d)
    return (y - 0.5) * jnp.log1p(d / y) + remainder - shift


def _log_gamma_parts(x: Array, d: Array) -> tuple[Array, Array, Array]:
    """y = x + 4, the remainder of Stirling's formula at y, and how much the ratios differ."""
    shift = sum(jnp.log1p(d / (x + i)) for i in range(4))
    y = x + 4.0
    # The difference of the remainders 1/(12 y) - 1/(360 y^3) + … has the factor d.
    u, v = 1.0 / y, 1.0 / (y + d)
    squares = u * u + u * v + v * v
    fourths = squares * squares - u * v * (u + v) ** 2
    remainder = -d * u * v * (1.0 / 12.0 - squares / 360.0 + fourths / 1260.0)
    return y, remainder, jnp.asarray(shift)


def log_beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Logarithm of the beta function of arguments from 1, to a few last places of a + b."""
    a, b = as_floats(a, b)
    rest = log_gamma_rest(1.0, a - 1.0) + log_gamma_rest(1.0, b - 1.0)
    rest -= log_gamma_rest(1.0, a + b - 1.0)
    large = (a - 1.0) * jnp.log1p(b / (a + 4.0)) + (b - 1.0) * jnp.log1p(a / (b + 4.0))
    return rest + 1.0 - jnp.log(a + b + 4.0) - large


def log_bessel_ie(nu: ArrayLike, x: ArrayLike) -> Array:
    """Logarithm of exp(-x) I_ν(x), the modified Bessel function of the first kind."""
    # To a few 1e-6: by power series where ν > -1 and x are small, else by Debye's expansion.
    nu, x = jnp.broadcast_arrays(*as_floats(nu, x))
    size = jnp.sqrt(nu * nu + x * x)
    large = size > 24.0
    # 60 terms of the series suffice; arguments are clipped so that nothing overflows
    a, y = jnp.where(large, 0.0, nu), jnp.where(large, 1.0, x)
    k = jnp.arange(60, dtype=x.dtype)
    terms = 2.0 * k * jnp.log(0.5 * y)[..., None] - jnp.asarray(_LOG_FACTORIALS, x.dtype)
    terms -= gammaln(k + 1.0 + a[..., None]) - gammaln(1.0 + a)[..., None]
    series = logsumexp(terms, axis=-1) - gammaln(1.0 + a) + a * jnp.log(0.5 * y) - y
    s = jnp.where(large, size, 24.0)
    b, y = jnp.where(large, nu, 0.0), jnp.where(large, x, 24.0)
    p, q = (b / s) ** 2, 1.0 / s
    first = (3.0 - 5.0 * p) / 24.0
    second = (81.0 - p * (462.0 - 385.0 * p)) / 1152.0
    third = (30375.0 - p * (369603.0 - p * (765765.0 - 425425.0 * p))) / 414720.0
    correction = jnp.log1p(q * (first + q * (second + q * third)))
    # s + ν log(x / (ν + s)) - x
    exponent = b * b / (s + y) + b * jnp.log(y / (b + s))
    debye = exponent - 0.5 * jnp.log(2.0 * jnp.pi * s) + correction
    return jnp.where(large, debye, series)
