"""Sums of many logarithms as pairs of float32 numbers that together hold about what float64 does.

The log joint of a million rankings is about -10^8. There float32 has steps of 8 nats, while a chain
moves the value by a few. The terms are therefore summed without loss of digits, and the part that
float32 cannot hold is kept as a second number.

A compiler may fuse a multiplication and an addition into one instruction that does not round the
product, in one place where a sum is used and not in another. Products here are therefore either
exact or rounded explicitly.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.ops.special import log_psi

_LIMB = 12  # bits; the product of two numbers of so many bits is exact
_LN2_HIGH = round(math.log(2.0) * 2**16) / 2**16  # its products with an exponent are exact
_LOGS = np.log1p(np.arange(128) / 128)
_LOGS_HIGH = _LOGS.astype(np.float32)
_MOST_TABLED = 24.0  # beyond it exp(-x) is negligible beside 1
_EXP_NEAR = np.exp(-np.arange(_MOST_TABLED * 64 + 1) / 64)
_ONE_LESS = (1.0 - _EXP_NEAR).astype(np.float32)
_ONE_LESS_REST = (1.0 - _EXP_NEAR - _ONE_LESS).astype(np.float32)
_EXP_NEAR = _EXP_NEAR.astype(np.float32)

Pair = tuple[Array, Array]


def rounded(x: Array) -> Array:
    """Clear the last bit, so that no compiler can fuse the product with a later addition."""
    if x.dtype != jnp.float32:
        return x
    bits = jax.lax.bitcast_convert_type(x, jnp.int32)
    return jax.lax.bitcast_convert_type(bits & -2, jnp.float32)


def two_sum(a: Array, b: Array) -> Pair:
    """The sum and its rounding error."""
    total = a + b
    part = total - a
    lost = (a - (total - part)) + (b - part)
    return total, jnp.where(jnp.isfinite(total), lost, 0.0)


def add_pairs(a: Pair, b: Pair) -> Pair:
    """Add two pairs entry by entry."""
    total, lost = two_sum(a[0], b[0])
    return two_sum(total, a[1] + b[1] + lost)


def add_number(a: Pair, number: Array) -> Pair:
    """Add a number to a pair."""
    return add_pairs(a, (rounded(number), jnp.zeros_like(number)))


def subtract_pair(a: Pair, b: Pair) -> Pair:
    """Subtract the second pair from the first."""
    return add_pairs(a, (-b[0], -b[1]))


def sum_pairs(pairs: Pair) -> Pair:
    """Sum of all entries of a pair of arrays, as a pair."""
    zero = jnp.zeros((), pairs[0].dtype)
    every = tuple(range(pairs[0].ndim))
    return jax.lax.reduce(pairs, (zero, zero), add_pairs, every)


def sum_as_pair(terms: Sequence[Array]) -> Pair:
    """Sum of all entries of all arrays, as a pair; some may have further leading axes."""
    shape = min((x.shape for x in terms), key=len)
    # flat arrays would have to be collected from all devices, where rows are split over several
    every = jnp.concatenate([x.reshape(-1, *shape) for x in terms])
    return sum_pairs((every, jnp.zeros_like(every)))


def exact_products(counts: Array, x: Array, largest: int = 2**31 - 1) -> list[Array]:
    """Terms whose sum is ``counts * x``, none of them rounded; counts are from 0 to **largest**."""
    if x.dtype != jnp.float32:
        return [counts * x]
    high = jax.lax.bitcast_convert_type(
        jax.lax.bitcast_convert_type(x, jnp.int32) & -(2**_LIMB), jnp.float32
    )
    products = []
    for shift in range(0, max(largest.bit_length(), 1), _LIMB):
        limb = ((counts >> shift) & (2**_LIMB - 1)).astype(x.dtype) * 2.0**shift
        products += [limb * high, limb * (x - high)]
    return products


def log_as_pair(x: Array, rest: Array | float = 0.0) -> Pair:
    """log(x + rest) for x of at least 10^-31, with an absolute error of about 10^-9."""
    # Below, differences of float32 numbers are flushed to 0; the error is then at most 1/128.
    if x.dtype != jnp.float32:
        return jnp.log(x), rest / x
    bits = jax.lax.bitcast_convert_type(x, jnp.int32)
    exponent = ((bits >> 23) - 127).astype(x.dtype)
    near = jax.lax.bitcast_convert_type(bits & -(2**16), jnp.float32)  # 8 leading bits
    which = (bits >> 16) & 127
    log_near, lost = two_sum(exponent * _LN2_HIGH, jnp.asarray(_LOGS_HIGH)[which])
    low = jnp.asarray((_LOGS - _LOGS_HIGH).astype(np.float32))[which]
    low += exponent * (math.log(2.0) - _LN2_HIGH)
    y = (x - near + rest) / near  # at most 1/128, so the series of log1p is soon exact
    return log_near, y * (1.0 - y * (1 / 2 - y * (1 / 3 - y / 4))) + (lost + low)


def times_log(counts: Array, x: Array, rest: Array | float = 0.0, largest: int = 2**31 - 1) -> list:
    """Terms whose sum is ``counts * log(x + rest)``."""
    log_x, log_rest = log_as_pair(x, rest)
    if largest == 1:
        return [counts * log_x, counts * log_rest]
    return [*exact_products(counts, log_x, largest), rounded(counts * log_rest)]


def _log_one_less_exp(x: Array, rest: Array) -> tuple[Array, Array, Array]:
    """log(1 - exp(-(x + rest))) for positive x, as three numbers of which the last is small."""
    # below 1: log x - x/2 + x²/24 - …
    small = jnp.minimum(x, 1.0)
    log_x, log_rest = log_as_pair(small, jnp.where(x < 1.0, rest, 0.0))
    y = small * small
    series = y * (1 / 24 - y * (1 / 2880 - y * (1 / 181440 - y * (1 / 9676800 - y / 479001600))))
    # above: exp(-x) from a table, and a correction for the distance from the node
    steps = jnp.floor(jnp.clip(x, 1.0, _MOST_TABLED) * 64)
    exp_near = jnp.asarray(_EXP_NEAR)[steps.astype(jnp.int32)]
    one_less = jnp.asarray(_ONE_LESS)[steps.astype(jnp.int32)]
    lost = jnp.asarray(_ONE_LESS_REST)[steps.astype(jnp.int32)]
    further = exp_near * jnp.expm1(-((jnp.minimum(x, _MOST_TABLED) - steps / 64) + rest))
    log_far, far_rest = log_as_pair(*two_sum(one_less, lost - rounded(further)))
    is_small = x < 1.0
    return (
        jnp.where(is_small, log_x, log_far),
        jnp.where(is_small, -0.5 * small, 0.0),
        jnp.where(is_small, log_rest + series - 0.5 * rest, far_rest),
    )


def times_log_psi(counts: Array, theta: Array, m: Array, largest: int = 2**31 - 1) -> list[Array]:
    """Terms whose sum is ``counts * log_psi(theta, m)``."""
    if theta.dtype != jnp.float32:
        return [counts * log_psi(theta, m)]
    theta = jnp.maximum(theta, 1e-30)
    products = exact_products(jnp.broadcast_to(m + 1, theta.shape), theta, 2**24)
    x, rest = jnp.zeros_like(theta), jnp.zeros_like(theta)
    for product in products[::-1]:
        x, lost = two_sum(x, product)
        rest += lost
    x, rest = two_sum(x, rest)
    # (m + 1) θ, and θ
    large, middle, small = _log_one_less_exp(
        jnp.stack([x, theta]), jnp.stack([rest, jnp.zeros_like(rest)])
    )
    signs = jnp.array([1.0, -1.0], x.dtype).reshape((2,) + (1,) * x.ndim)
    products = exact_products(counts, signs * jnp.stack([large, middle]), largest)
    return [*products, rounded(counts * (small[0] - small[1]))]
