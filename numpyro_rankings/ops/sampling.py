r"""Exact draws from the full conditionals of a generalized Mallows model, and slice sampling.

All samplers broadcast, work on whole arrays at once, and run under ``jit`` and ``vmap``.

**References**

1. *Dirichlet Process Mixtures of Generalized Mallows Models*, M. Meilă, H. Chen (UAI 2010)
2. *Non-Uniform Random Variate Generation*, L. Devroye (1986), chapter VII
3. *Slice Sampling*, R. M. Neal (Annals of Statistics, 2003)
4. *A Simple Method for Generating Gamma Variables*, G. Marsaglia, W. W. Tsang (ACM TOMS, 2000)
"""

import math
from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax, random
from jax.typing import ArrayLike, DTypeLike

from numpyro_rankings.ops.special import (
    Fall,
    as_floats,
    log_density_difference,
    log_gamma_ratio,
    mode_and_variance,
    points_of_fall,
)

# Rejection loops accept long before this limit, which only ends them on invalid arguments.
_MAX_TRIES = 200


def _fine_uniform(key: Array, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Uniform draws on (0, 1], with finer resolution near 0 than those of ``random.uniform``."""
    return _as_fine_uniform(_bits(key, shape), dtype)


def _bits(key: Array, shape: tuple[int, ...]) -> Array:
    # Drawn flat: random bits of an array with a short last axis take long to compile.
    return random.bits(key, (math.prod(shape),), jnp.uint32).reshape(shape)


def _as_fine_uniform(bits: Array, dtype: DTypeLike) -> Array:
    return jnp.maximum(bits.astype(dtype), 0.5) * 2.0**-32


def _as_normal(bits: Array, dtype: DTypeLike) -> Array:
    """Standard normal draws, by inversion at the odd multiples of 2^-24 between -1 and 1."""
    odd = 2 * (bits >> 8).astype(jnp.int32) + (1 - 2**24)
    return math.sqrt(2.0) * lax.erf_inv(odd.astype(dtype) * 2.0**-24)


def draw_together(
    sampler: Callable[[Array, tuple[int, ...]], Array], key: Array, *shapes: tuple[int, ...]
) -> list[Array]:
    """Draw arrays of several shapes in one call of the generator, which takes long to compile."""
    sizes = [math.prod(shape) for shape in shapes]
    drawn = sampler(key, (sum(sizes),))
    ends = list(accumulate(sizes))[:-1]
    parts = jnp.split(drawn, ends) if ends else [drawn]
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def sample_uniform(key: Array, shape: tuple[int, ...]) -> Array:
    """Uniform draws on (0, 1], with finer resolution near 0 than those of ``random.uniform``."""
    return _fine_uniform(key, shape, float)


def sample_concentration(key: Array, a: ArrayLike, b: ArrayLike, m: ArrayLike) -> Array:
    """Exact draws of a concentration given center and rankings: p(θ) ∝ exp(-aθ) ψ_m(θ)^(1-b)."""
    # Here a = ν r + S > 0 and b = ν + N + 1 ≥ 1; with m = 0, or b = 1, it is Exponential(a). The
    # normaliser is equation (14) of [1]; Lemma 4 of [1] gives it for infinite m. The density is
    # log-concave, so the rejection method of [2] applies. Two tangents touch the log density where
    # it is about 1 below its maximum. The envelope is flat around the mode and exponential beyond
    # the points where these tangents reach the maximum. At least 0.63 of the draws are accepted.
    a, b, m = jnp.broadcast_arrays(*as_floats(a, b, m))
    # Flat arrays compile and run faster than those with a short last axis.
    flat = a.ravel(), b.ravel(), m.ravel()
    mode, variance = mode_and_variance(*flat)
    # Any tangent lies above the log density, so the points need not be accurate.
    point = points_of_fall(mode, variance, *flat, DROP_OF_ENVELOPE, num_steps=3)
    envelope = envelope_through(mode, point)
    return draw_in_envelope(key, envelope, *flat).reshape(a.shape)


DROP_OF_ENVELOPE = 1.0


class Envelope(NamedTuple):
    """Above a log-concave density: flat around its mode, and exponential on either side."""

    mode: Array
    right: Array  # how far the flat part reaches, as left
    left: Array
    right_tail: Array  # mean length of the exponential part, as left_tail
    left_tail: Array


def envelope_through(mode: Any, point: Fall, numpy: Any = jnp) -> Envelope:
    """Return the envelope whose tails are the tangents at two points, one on either side."""
    # It is computed by NumPy or by ``jax.numpy``.
    scale = 1.0 / numpy.maximum(point.slope, 1e-30)
    # distances at which the tangents reach the height of the mode
    right, left = numpy.clip(point.distance - point.drop * scale, 0.0, point.distance)
    # There is no left tail if the mode is at the edge, or the edge too near for such a drop.
    no_tail = point.drop[1] < 0.5 * DROP_OF_ENVELOPE
    left = numpy.where(no_tail, mode, left)
    return Envelope(mode, right, left, scale[0], numpy.where(no_tail, 0.0, scale[1]))


def draw_in_envelope(key: Array, envelope: Envelope, a: Array, b: Array, m: Array) -> Array:
    """Draw concentrations, (k,), as :func:`sample_concentration` by rejection from an envelope."""
    dtype = a.dtype
    mode, right, left, right_tail, left_tail = envelope
    total = left + right + left_tail + right_tail

    def propose(key: Array) -> Any:
        place, excess, level = _fine_uniform(key, (3, *a.shape), dtype)
        place, excess, level = place * total, -jnp.log(excess), jnp.log(level)
        in_right = place < right_tail
        in_left = ~in_right & (place < right_tail + left_tail)
        flat = place - right_tail - left_tail - left
        step = jnp.where(
            in_right,
            right + excess * right_tail,
            jnp.where(in_left, -left - excess * left_tail, flat),
        )
        above = jnp.where(in_right | in_left, -excess, 0.0)
        inside = mode + step >= 0.0
        step = jnp.where(inside, step, 0.0)
        height = log_density_difference(mode, step, a, b, m)
        return mode + step, inside & (level <= height - above)

    def more(state: Any) -> Any:
        tries, _, accepted = state
        return (tries < _MAX_TRIES) & ~jnp.all(accepted)

    def step(state: Any) -> Any:
        tries, theta, accepted = state
        proposal, passed = propose(random.fold_in(key, tries))
        theta = jnp.where(passed & ~accepted, proposal, theta)
        return tries + 1, theta, accepted | passed

    start = (0, mode, jnp.zeros(a.shape, bool))
    theta = lax.while_loop(more, step, start)[1]
    return jnp.maximum(theta, jnp.finfo(dtype).tiny)


def sample_log_gamma(key: Array, a: ArrayLike) -> Array:
    """Exact draws of the logarithm of a Gamma(a, 1) variable, for small and large ``a``."""
    # This is the method of [4] on the whole array at once, several times as fast as
    # ``random.loggamma``, which runs a loop for each entry. For a < 1 the draw is one with a + 1
    # multiplied by U^(1/a).
    (a,) = as_floats(a)
    shape, dtype = a.shape, a.dtype
    a = a.ravel()
    small = a < 1.0
    d = jnp.where(small, a + 1.0, a) - 1.0 / 3.0
    c = 1.0 / (3.0 * jnp.sqrt(d))

    def step(state: Any) -> Any:
        tries, log_v, boost, accepted = state
        # all numbers of a step in one draw, because each draw is a loop that takes long to compile
        bits = _bits(random.fold_in(key, tries), (3, a.size))
        level, new_boost = _as_fine_uniform(bits[1:], dtype)
        h = c * _as_normal(bits[0], dtype)
        inside = h > -1.0
        h = jnp.where(inside, h, 0.0)
        # log(1 + h) - h + h²/2 - h³/3, to be multiplied by a d of up to 10^7
        near = jnp.abs(h) < 0.1
        k = jnp.where(near, h, 0.0)
        series = -(k**4) * (1 / 4 - k * (1 / 5 - k * (1 / 6 - k * (1 / 7 - k / 8))))
        log_one_h = jnp.log1p(h)
        rest = jnp.where(near, series, log_one_h - h * (1.0 - h * (1 / 2 - h / 3)))
        passed = inside & (jnp.log(level) <= 3.0 * d * rest)
        new = passed & ~accepted
        log_v = jnp.where(new, 3.0 * log_one_h, log_v)
        return tries + 1, log_v, jnp.where(new, new_boost, boost), accepted | passed

    def more(state: Any) -> Any:
        return (state[0] < _MAX_TRIES) & ~jnp.all(state[3])

    start = (0, jnp.zeros_like(a), jnp.ones_like(a), jnp.zeros(a.shape, bool))
    _, log_v, boost, _ = lax.while_loop(more, step, start)
    boost = jnp.where(small, jnp.log(boost) / jnp.where(small, a, 1.0), 0.0)
    return (jnp.log(d) + log_v + boost).reshape(shape)


def draw_log_gamma(rng: np.random.Generator, a: np.ndarray) -> np.ndarray:
    """Draw as :func:`sample_log_gamma`, in NumPy."""
    return np.log(rng.standard_gamma(a + 1.0)) - rng.standard_exponential(a.shape) / a


def sample_atom_counts(key: Array, x: ArrayLike, n: ArrayLike) -> Array:
    """Exact draws of a count u with probability ∝ x^u/u! Γ(u+n)/Γ(u), as floats."""
    # With n = 0 it is Poisson(x); with n > 0 the count is at least 1. The probabilities are
    # log-concave, so the rejection method of [2] applies. The envelope is flat around the mode and
    # geometric beyond two counts, one on either side of it, where the log probability has fallen by
    # about 1.
    x, n = jnp.broadcast_arrays(*as_floats(x, n))
    shape, dtype = x.shape, x.dtype
    x, n = jnp.maximum(x.ravel(), 1e-30), n.ravel()
    has_n = n > 0
    least = jnp.where(has_n, 1.0, 0.0)
    # from the mode on, the ratio p(u + 1) / p(u), which is x (u + n) / (u (u + 1)) or, with n = 0,
    # x / (u + 1), is below 1
    half = 0.5 * (x - 1.0)
    root = jnp.sqrt(half * half + x * n)
    above = jnp.where(half < 0, x * n / jnp.maximum(root - half, 1e-30), half + root)
    mode = jnp.maximum(jnp.ceil(jnp.where(has_n, above, x - 1.0)), least)
    log_x = jnp.log(x)

    def fall(step: Array) -> Array:
        """log p(mode + step) - log p(mode)."""
        inside = mode + step >= least
        step = jnp.where(inside, step, 0.0)
        change = step * log_x - log_gamma_ratio(mode + 1.0, step)
        start = jnp.where(has_n, mode, 1.0)
        there = jnp.where(has_n, step, 0.0)
        change += log_gamma_ratio(start + n, there) - log_gamma_ratio(start, there)
        return jnp.where(inside, change, -jnp.inf)

    curvature = jnp.where(
        has_n, 2.0 / jnp.maximum(mode, 1.0) - 1.0 / (mode + n), 1.0 / jnp.maximum(mode, 1.0)
    )
    width = jnp.maximum(jnp.ceil(1.2 / jnp.sqrt(jnp.maximum(curvature, 1e-30))), 2.0)
    # the first counts of the tails, and a lower bound on the fall from each count to the next
    right, left = width, jnp.minimum(width, mode - least + 1.0)
    # the four at once: one trace of the function, not four
    falls = fall(jnp.stack([right, -left, right - 1.0, 1.0 - left]))
    log_right, log_left, before_right, before_left = falls
    slope_right = jnp.minimum(log_right - before_right, -1e-6)
    slope_left = jnp.where(log_left > -jnp.inf, log_left - before_left, -1.0)
    slope_left = jnp.minimum(slope_left, -1e-6)
    tail_right = jnp.exp(log_right) / -jnp.expm1(slope_right)
    tail_left = jnp.exp(log_left) / -jnp.expm1(slope_left)
    middle = right + left - 1.0  # counts between the tails

    def more(state: Any) -> Any:
        tries, _, accepted = state
        return (tries < _MAX_TRIES) & ~jnp.all(accepted)

    def step(state: Any) -> Any:
        tries, value, accepted = state
        place, within, level = _fine_uniform(random.fold_in(key, tries), (3, x.size), dtype)
        place = place * (middle + tail_left + tail_right)
        in_right = place < tail_right
        in_left = ~in_right & (place < tail_right + tail_left)
        further = jnp.log(within)
        far_right = jnp.floor(further / slope_right)
        far_left = jnp.floor(further / slope_left)
        flat = jnp.minimum(jnp.floor(within * middle), middle - 1.0) - (left - 1.0)
        proposal = jnp.where(
            in_right, right + far_right, jnp.where(in_left, -left - far_left, flat)
        )
        envelope = jnp.where(
            in_right,
            log_right + far_right * slope_right,
            jnp.where(in_left, log_left + far_left * slope_left, 0.0),
        )
        passed = jnp.log(level) <= fall(proposal) - envelope
        value = jnp.where(passed & ~accepted, mode + proposal, value)
        return tries + 1, value, accepted | passed

    start = (0, mode, jnp.zeros(x.shape, bool))
    return lax.while_loop(more, step, start)[1].reshape(shape)


def sample_truncated_geometric(key: Array, theta: ArrayLike, m: ArrayLike) -> Array:
    """Exact draws of a code k = 0..m with probability exp(-kθ)/ψ_m(θ), uniform for θ = 0."""
    theta, m = jnp.broadcast_arrays(*as_floats(theta, m))
    theta = jnp.maximum(theta, 1e-25)
    scaled = (m + 1.0) * theta
    uniform = _fine_uniform(key, theta.shape, theta.dtype)
    # An exponential variable truncated at (m+1)θ, divided into steps of θ. For nearly uniform codes
    # its distribution function is inverted, otherwise its survival function: small uniforms have
    # more digits, and there they give the rare large codes.
    small = scaled < 1.0
    low = -jnp.log1p(uniform * jnp.expm1(-jnp.where(small, scaled, 1.0)))
    high = -jnp.log(jnp.exp(-scaled) - uniform * jnp.expm1(-scaled))
    code = jnp.floor(jnp.where(small, low, high) / theta)
    return jnp.clip(code, 0.0, m).astype(jnp.int32)


def slice_sample(
    key: Array,
    x: Array,
    log_density_difference: Callable[[Array, Array], Array],
    width: ArrayLike,
    num_steps: int = 16,
    lower: ArrayLike = 0.0,
) -> Array:
    """Update each entry of an array of independent coordinates by slice sampling.

    Stepping out and shrinkage, figures 3 and 5 of [3]. The level of the slice is relative to the
    current point, so only differences of the log density are needed, which can be made safe for
    float32. The update leaves each density invariant for any ``width`` and ``num_steps``.

    :param log_density_difference: maps ``(x, delta)`` to the log density at ``x + delta`` less
        that at ``x``, elementwise. It is only called with ``x + delta`` at least ``lower``.
    :param width: initial width of the interval, a typical width of the slice; may be an array.
        Wider gaps in the support are not crossed.
    :param num_steps: largest width of the interval, in units of ``width``; at most 255.
    :param lower: lower end of the support.
    """
    x = jnp.asarray(x)
    width = jnp.broadcast_to(jnp.asarray(width, x.dtype), x.shape)
    lowest = jnp.asarray(lower, x.dtype) - x
    key_start, key_shrink = random.split(key)
    # all numbers in one draw, because each draw is a loop that takes long to compile
    bits = _bits(key_start, (3, *x.shape))
    level, place = _as_fine_uniform(bits[:2], x.dtype)
    level = jnp.log(level)
    left = -width * place
    right = left + width
    # The steps allowed are split at random between the two sides, which exactness requires.
    left_steps = ((bits[2] >> 8) * num_steps >> 24).astype(jnp.int32)
    right_steps = num_steps - 1 - left_steps

    # Stepping out and shrinkage are one loop, so that the density is compiled once.
    def step(state: Any) -> Any:
        left, right, left_steps, right_steps, tries, delta, accepted = state
        stepping = jnp.any((left_steps > 0) | (right_steps > 0))
        at_left = left_steps > 0
        at_right = ~at_left & (right_steps > 0)
        end = jnp.where(at_left, jnp.maximum(left, lowest), right)
        key_point = random.fold_in(key_shrink, tries)
        # points below the support are never accepted, so the interval may be cut there at once
        inner = jnp.maximum(left, lowest)
        point = inner + _fine_uniform(key_point, x.shape, x.dtype) * (right - inner)
        passed = log_density_difference(x, jnp.where(stepping, end, point)) > level
        go = passed & ~(at_left & (left <= lowest))
        # an end outside the slice gets no further steps
        stepped = (
            jnp.where(at_left & go, left - width, left),
            jnp.where(at_right & go, right + width, right),
            jnp.where(at_left & go, left_steps - 1, 0),
            jnp.where(at_left, right_steps, jnp.where(at_right & go, right_steps - 1, 0)),
            tries,
            delta,
            accepted,
        )
        shrunk = (
            jnp.where(point < 0.0, point, inner),
            jnp.where(point < 0.0, right, point),
            left_steps,
            right_steps,
            tries + 1,
            jnp.where(passed & ~accepted, point, delta),
            accepted | passed,
        )
        return jax.tree.map(lambda a, b: jnp.where(stepping, a, b), stepped, shrunk)

    def more(state: Any) -> Any:
        _, _, left_steps, right_steps, tries, _, accepted = state
        stepping = jnp.any((left_steps > 0) | (right_steps > 0))
        return stepping | ((tries < _MAX_TRIES) & ~jnp.all(accepted))

    nothing = jnp.zeros_like(x), jnp.zeros(x.shape, bool)
    start = (left, right, left_steps, right_steps, jnp.array(0), *nothing)
    return jnp.maximum(x + lax.while_loop(more, step, start)[5], lower)
