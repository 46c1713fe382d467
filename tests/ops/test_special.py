"""Float32 numerics of the stage normaliser and of B̃eta, against mpmath."""

import itertools
from functools import lru_cache

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from mpmath import mpf

from numpyro_rankings.ops.known_prior import KnownPrior
from numpyro_rankings.ops.special import (
    concentration_mode,
    log_beta_ratio,
    log_beta_tilde,
    log_beta_tilde_change,
    log_beta_tilde_ratio,
    log_density_difference,
    log_gamma_ratio,
    log_psi,
    mean_code,
    var_code,
)

THETAS = [0.0, 1e-8, 1e-6, 1e-4, 2e-4, 3e-3, 0.1, 0.4, 0.7, 1.0, 2.5, 10.0, 50.0]
MAX_CODES = [0, 1, 2, 5, 100, 532, 10_000]


@pytest.fixture(autouse=True)
def precision():
    with mpmath.workdps(50):
        yield


def grid(*axes):
    """All combinations as float32 columns; references use the rounded values."""
    return [np.array(column, np.float32) for column in zip(*itertools.product(*axes), strict=True)]


def exact(function, *columns):
    """A reference function over columns of float32 arguments, as float64."""
    return np.array(
        [float(function(*(mpf(float(x)) for x in row))) for row in zip(*columns, strict=True)]
    )


def assert_relative(actual, expected, rtol):
    np.testing.assert_allclose(np.asarray(actual, np.float64), expected, rtol=rtol, atol=1e-37)


def assert_log_ratio(actual, expected):
    """An absolute 1e-3, or 4 units in the last place of a value too large for that."""
    tolerance = np.maximum(1e-3, 4.0 * np.spacing(np.abs(expected).astype(np.float32)))
    error = np.abs(np.asarray(actual, np.float64) - expected)
    worst = np.argmax(error / tolerance)
    assert error[worst] <= tolerance[worst], (worst, actual[worst], expected[worst])


# --- references ---------------------------------------------------------------------------------


def exact_log_psi(theta, m):
    if theta == 0:
        return mpmath.log(m + 1)
    return mpmath.log(mpmath.expm1(-(m + 1) * theta) / mpmath.expm1(-theta))


def exact_mean(theta, m):
    if theta == 0:
        return m / 2
    return 1 / mpmath.expm1(theta) - (m + 1) / mpmath.expm1((m + 1) * theta)


def exact_var(theta, m):
    if theta == 0:
        return m * (m + 2) / 12
    inverse_sinh = [k / (2 * mpmath.sinh(k * theta / 2)) for k in (1, m + 1)]
    return inverse_sinh[0] ** 2 - inverse_sinh[1] ** 2


def exact_log_beta_tilde(a, b, m):
    """Adaptive quadrature between places where the log density has fallen by known amounts."""

    def log_density(theta):
        return -a * theta - (b - 1) * exact_log_psi(theta, m)

    mode = mpf(0)
    if a < (b - 1) * m / 2:
        low, high = mpf(0), mpmath.log1p((b - 1) / a)
        for _ in range(60):
            mode = (low + high) / 2
            low, high = (mode, high) if a < (b - 1) * exact_mean(mode, m) else (low, mode)
    peak = log_density(mode)

    def fallen(theta, drop):
        return peak - log_density(theta) >= drop

    def place(drop, side):
        if side < 0 and not fallen(mpf(0), drop):
            return mpf(0)
        near, far = mode, mpf(0) if side < 0 else mode + 1 / (a + b)
        while not fallen(far, drop):
            far = mode + 2 * (far - mode)
        for _ in range(20):
            middle = (near + far) / 2
            near, far = (near, middle) if fallen(middle, drop) else (middle, far)
        return far

    places = [place(drop, side) for drop in (1, 5, 20, 45) for side in (-1, 1)]
    bends = [factor / (m + 1) for factor in (0.1, 1.0, 10.0)]
    inner = [x for x in bends if min(places) < x < max(places)]
    ends = sorted({*places, *inner, mode})
    with mpmath.workdps(20):
        integral = mpmath.quad(lambda x: mpmath.exp(log_density(x) - peak), ends, maxdegree=4)
    return peak + mpmath.log(integral)


# --- psi and its derivatives --------------------------------------------------------------------


@pytest.mark.parametrize(
    "function, reference",
    [(log_psi, exact_log_psi), (mean_code, exact_mean), (var_code, exact_var)],
    ids=["log_psi", "mean_code", "var_code"],
)
def test_psi_and_moments(function, reference):
    theta, m = grid(THETAS, MAX_CODES)
    assert_relative(jax.jit(function)(theta, m), exact(reference, theta, m), rtol=2e-6)


def test_log_psi_derivatives():
    theta, m = grid(THETAS, MAX_CODES)
    first = jax.jit(jax.vmap(jax.grad(log_psi)))(theta, m)
    second = jax.jit(jax.vmap(jax.grad(jax.grad(log_psi))))(theta, m)
    assert_relative(first, -exact(exact_mean, theta, m), rtol=2e-6)
    assert_relative(second, exact(exact_var, theta, m), rtol=2e-6)
    assert np.all(np.isfinite(jax.jit(jax.vmap(jax.grad(var_code)))(theta, m)))


def test_log_psi_with_integer_traced_codes():
    m = jnp.arange(5)
    values = jax.jit(jax.vmap(log_psi, in_axes=(None, 0)))(0.7, m)
    assert values.dtype == jnp.float32
    np.testing.assert_allclose(values, jax.jit(log_psi)(0.7, m), rtol=1e-6)
    by_hand = [np.log(np.exp(-0.7 * np.arange(k + 1)).sum()) for k in range(5)]
    np.testing.assert_allclose(values, by_hand, rtol=1e-6)


LARGE_POSTERIORS = [(1e7, 1e7), (5e6, 1e7), (1e7, 1e6), (1e7, 2.2e4), (1e7, 2003.0), (1e3, 1e7)]


@pytest.mark.parametrize("m", [1, 4, 100, 10_000])
def test_log_density_difference_of_large_clusters(m):
    a, b = (np.array(x, np.float32) for x in zip(*LARGE_POSTERIORS, strict=True))
    m = np.full_like(a, m)
    mode = np.asarray(jax.jit(concentration_mode)(a, b, m))
    # steps of 0.1 to 8 standard deviations: falls of up to about 30
    slope = np.maximum(a - (b - 1.0) * exact(exact_mean, mode, m), 0.0) * (mode == 0.0)
    spread = 1.0 / np.maximum(slope, np.sqrt((b - 1.0) * exact(exact_var, mode, m)))
    for steps in (-3.0, -1.0, -0.1, 0.1, 1.0, 3.0, 8.0):
        delta = np.maximum(steps * spread, -mode).astype(np.float32)

        def reference(theta, delta, a, b, m):
            change = exact_log_psi(theta + delta, m) - exact_log_psi(theta, m)
            return -a * delta - (b - 1) * change

        columns = (mode, delta, a, b, m)
        actual = jax.jit(log_density_difference)(*columns)
        expected = exact(reference, *columns)
        tolerance = 1e-3 * np.maximum(1.0, abs(steps))
        np.testing.assert_allclose(actual, expected, atol=tolerance, rtol=1e-4)


# --- B̃eta ---------------------------------------------------------------------------------------

SUMS = [0.01, 0.5, 1.0, 30.0, 1e3, 92_000.0, 1e7]
COUNTS = [1.0, 1.01, 2.0, 3.0, 100.0, 15_450.0, 1e7]


def test_concentration_mode():
    a, b, m = grid(SUMS, COUNTS, MAX_CODES)
    mode = np.asarray(jax.jit(concentration_mode)(a, b, m))
    gradient = a.astype(float) - (b.astype(float) - 1.0) * exact(exact_mean, mode, m)
    spread = 1.0 / np.sqrt(np.maximum((b - 1.0) * exact(exact_var, mode, m), 1e-30))
    at_edge = a >= (b.astype(float) - 1.0) * m / 2
    np.testing.assert_array_equal(mode == 0.0, at_edge)
    # the error of the mode, in standard deviations
    assert np.max(np.abs(gradient * spread)[~at_edge]) < 1e-3


def posteriors(num):
    """A random part of the grid, all of it if ``num`` is None, with a code for each."""
    a, b, m = grid(SUMS, COUNTS, [0, 1, 4, 100, 10_000])
    rng = np.random.default_rng(1)
    keep = np.arange(len(a)) if num is None else rng.choice(len(a), num, replace=False)
    a, b, m = a[keep], b[keep], m[keep]
    return a, b, m, np.floor(m * rng.choice([0.0, 0.1, 0.5, 1.0], len(m))).astype(np.float32)


@lru_cache
def exact_of_posteriors(num):
    """B̃eta at :func:`posteriors`, which takes long."""
    return exact(exact_log_beta_tilde, *posteriors(num)[:3])


def at_25(function, *columns):
    """A function of a few numbers, in the program for 25 of them that other tests have."""
    columns = [np.asarray(column, np.float32) for column in columns]
    return np.asarray(jax.jit(function)(*(np.resize(x, 25) for x in columns)))[: columns[0].size]


@pytest.mark.parametrize("num", [25, pytest.param(None, marks=pytest.mark.slow)])
def test_log_beta_tilde_and_ratio(num):
    a, b, m, s = posteriors(num)
    expected = exact_of_posteriors(num)
    actual = jax.jit(log_beta_tilde)(a, b, m)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
    further = exact(lambda a, b, m, s: exact_log_beta_tilde(a + s, b + 1, m), a, b, m, s)
    assert_log_ratio(jax.jit(log_beta_tilde_ratio)(a, b, m, s), further - expected)


def test_log_beta_tilde_change():
    a, b, m, _ = posteriors(25)
    # from a thousandth of the sum of the codes to half of it, up and down
    s = np.round(a * np.resize([0.001, -0.5, 0.5, -0.03], len(a))).astype(np.float32)
    expected = exact_of_posteriors(25)
    further = exact(lambda a, b, m, s: exact_log_beta_tilde(a + s, b, m), a, b, m, s)
    actual = np.asarray(jax.jit(log_beta_tilde_change)(a, b, m, s))
    np.testing.assert_allclose(actual, further - expected, rtol=1e-4, atol=1e-3)
    small = np.abs(further - expected) < 50.0  # where an acceptance can hang on it
    assert small.sum() >= 10
    np.testing.assert_allclose(actual[small], (further - expected)[small], atol=1e-3)


def test_log_beta_tilde_without_codes_to_choose():
    a, b, m = grid([1e-3, 1.0, 1e6], [1.0, 7.0, 1e7], [0, 20])
    keep = (b == 1.0) | (m == 0.0)
    actual = jax.jit(log_beta_tilde)(a[keep], b[keep], m[keep])
    np.testing.assert_allclose(actual, -np.log(a[keep]), rtol=1e-6, atol=1e-6)


def test_log_beta_tilde_tends_to_log_beta():
    # (m + 1) θ is large throughout
    a, b, s = [5.0, 400.0, 1e5], [30.0, 500.0, 1e6], [0.0, 3.0, 2.0]
    found = at_25(log_beta_tilde_ratio, a, b, [1e4] * 3, s)
    np.testing.assert_allclose(found, at_25(log_beta_ratio, a, b, s), rtol=1e-5)


def test_predictive_probabilities_sum_to_one():
    """Lemma 5 of Meilă & Chen (2010)."""
    max_codes = np.array([1, 4, 532, 10_000])
    m = np.repeat(max_codes, max_codes + 1)
    s = np.concatenate([np.arange(k + 1) for k in max_codes])
    pairs = [(0.3, 2.0), (1.0, 1.0), (92_000.0, 15_450.0), (1e5, 1e6), (1e7, 1e7)]
    a, b = (np.array(x, np.float32)[:, None] for x in zip(*pairs, strict=True))
    probabilities = np.exp(np.asarray(jax.jit(log_beta_tilde_ratio)(a, b, m[None], s[None]), float))
    for k in max_codes:
        np.testing.assert_allclose(probabilities[:, m == k].sum(1), 1.0, rtol=2e-4)


def test_log_beta_tilde_gradient():
    a, b, m = grid([0.5, 92_000.0], [2.0, 15_450.0], [1, 500])
    in_a, in_b = jax.jit(jax.grad(lambda *x: log_beta_tilde(*x).sum(), argnums=(0, 1)))(a, b, m)
    h = mpf("1e-3")
    for i, row in enumerate(zip(a, b, m, strict=True)):
        x, y, k = (mpf(float(v)) for v in row)
        by_a = exact_log_beta_tilde(x * (1 + h), y, k) - exact_log_beta_tilde(x * (1 - h), y, k)
        by_b = exact_log_beta_tilde(x, y * (1 + h), k) - exact_log_beta_tilde(x, y * (1 - h), k)
        np.testing.assert_allclose(in_a[i], float(by_a / (2 * h * x)), rtol=1e-3)
        np.testing.assert_allclose(in_b[i], float(by_b / (2 * h * y)), rtol=1e-3)


def test_log_beta_tilde_ratio_under_vmap_and_grad():
    a, b = jnp.array([[0.5], [300.0]]), jnp.array([[4.0], [90.0]])
    m, s = jnp.array([1, 5, 30]), jnp.array([0, 2, 9])
    batched = jax.jit(log_beta_tilde_ratio)(a, b, m[None], s[None])
    assert batched.shape == (2, 3)
    total = jax.value_and_grad(lambda a, b, m, s: log_beta_tilde_ratio(a, b, m, s).sum(), (0, 1))
    by_row, gradient = jax.jit(jax.vmap(total, in_axes=(0, 0, None, None)))(a, b, m, s)
    np.testing.assert_allclose(batched.sum(1), by_row, rtol=1e-5)
    assert all(np.all(np.isfinite(x)) for x in gradient)


# --- ratios of Beta and Gamma -------------------------------------------------------------------


def test_log_beta_ratio():
    sums = [1e-3, 0.01, *SUMS]
    a, b, s = grid(sums, COUNTS, [0, 1, 2, 5, 50, 1000, 10_000])

    def reference(a, b, s):
        return mpmath.log(mpmath.beta(a + s, b + 1) / mpmath.beta(a, b))

    assert_log_ratio(jax.jit(log_beta_ratio)(a, b, s), exact(reference, a, b, s))


def test_log_gamma_ratio():
    x, d = grid(
        [1e-4, 0.01, 0.3, 1.0, 3.3, 10.0, 1e3, 1e5, 1e7],
        [-0.9, -0.1, -1e-6, 0.0, 1e-8, 1e-5, 0.01, 0.4, 5.0, 100.0, 1e4, 1e7],
    )
    d = np.where(d < 0.0, d * x, d)

    def reference(x, d):
        return mpmath.loggamma(x + d) - mpmath.loggamma(x)

    assert_relative(jax.jit(log_gamma_ratio)(x, d), exact(reference, x, d), rtol=5e-6)


# --- types --------------------------------------------------------------------------------------


def test_results_are_in_single_precision():
    one, m = np.ones(3, np.float32), np.array([1, 4, 9], np.int32)
    functions = (
        lambda: log_psi(one, m),
        lambda: mean_code(one, m),
        lambda: var_code(one, m),
        lambda: log_density_difference(one, 0.1 * one, one, 2.0 * one, m),
        lambda: concentration_mode(one, 2.0 * one, m),
        lambda: log_beta_tilde(one, 2.0 * one, m),
        lambda: log_beta_tilde_ratio(one, 2.0 * one, m, np.ones(3, np.int32)),
        lambda: log_beta_ratio(one, 2.0 * one, m),
        lambda: log_gamma_ratio(one, 0.5 * one),
    )
    results = [jax.eval_shape(function) for function in functions]
    assert all(x.dtype == jnp.float32 and x.shape == (3,) for x in results)


def test_how_far_beta_is_from_beta_tilde():
    """The figures in the docstring of BetaGibbs: 100 rankings, codes 0..9, θ = 0.1, ν = r = 1."""
    k = np.arange(10)
    sums = 100 * np.average(k, weights=np.exp(-0.1 * k))
    a, b, m, s = [1.0 + sums] * 2, [102.0] * 2, [9.0] * 2, [0.0, 9.0]
    error = at_25(log_beta_ratio, a, b, s) - at_25(log_beta_tilde_ratio, a, b, m, s)
    np.testing.assert_allclose(error, [0.34, -0.92], atol=0.005)


def test_constants_of_a_known_prior():
    """By NumPy, before a program is compiled: normaliser, mode, and an envelope above all."""
    nu, r, m = grid([1e-6, 0.5, 1.0, 100.0], [1e-3, 0.9, 40.0], [0, 1, 4, 99])
    a, b = nu * r, nu + 1.0
    prior = KnownPrior(a, b, m)
    expected = exact(exact_log_beta_tilde, a, b, m)
    np.testing.assert_allclose(prior.log_normaliser(), expected, rtol=1e-5, atol=1e-5)
    a, b, m = (np.asarray(x, np.float64) for x in (a, b, m))

    def log_density(theta):
        theta = np.maximum(theta, 1e-12)
        return -a * theta - (b - 1.0) * np.log(np.expm1(-(m + 1.0) * theta) / np.expm1(-theta))

    envelope = prior.envelope()
    right, left = envelope.mode + envelope.right, envelope.mode - envelope.left
    assert np.all(left >= 0.0)
    for quantile in np.linspace(0.01, 0.99, 50):
        beyond = -np.log(quantile)
        for theta, falls in (
            (right + beyond * envelope.right_tail, beyond),
            (left - beyond * envelope.left_tail, beyond * (envelope.left_tail > 0)),
            (left + quantile * (right - left), 0.0),
        ):
            fallen = log_density(envelope.mode) - log_density(theta)
            assert np.all((fallen >= falls - 1e-6) | (theta < 0.0))
