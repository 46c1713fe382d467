"""Samplers against the distributions they claim to draw from."""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from scipy import stats

from numpyro_rankings.ops.sampling import (
    draw_log_gamma,
    draw_together,
    sample_concentration,
    sample_log_gamma,
    sample_truncated_geometric,
    slice_sample,
)
from numpyro_rankings.ops.special import concentration_mode, log_density_difference

# a, b, m of the density ∝ exp(-a θ) ψ_m(θ)^(1-b)
POSTERIORS = {
    "no codes to choose": (2.5, 40.0, 0),
    "no counts": (0.3, 1.0, 9),
    "one ranking": (1.0, 2.0, 9),
    "flat to the left": (0.01, 3.0, 10_000),
    "small sum, large cluster": (0.05, 3000.0, 7),
    "interior mode": (300.0, 200.0, 5),
    "mode near the edge": (380.0, 200.0, 4),
    "mode at the edge": (92_000.0, 15_450.0, 4),
    "mode at the edge, flat": (400.0, 201.0, 4),
    "steep at the edge": (1e7, 100.0, 532),
    "large": (1e7, 1e6, 532),
    "huge": (1e7, 1e7, 10_000),
    "uniform on a long scale": (10_000.0, 3.0, 10_000),
}


def log_density(theta, a, b, m):
    """In float64, away from 0 by enough."""
    theta = np.maximum(theta, 1e-12)
    log_psi = np.log1p(np.exp(-theta) * np.expm1(-m * theta) / np.expm1(-theta))
    return -a * theta - (b - 1.0) * log_psi


@lru_cache
def distribution_function(a, b, m):
    """By the trapezoidal rule on a grid that covers all but e^-40 of the mass."""
    candidates = np.concatenate([[0.0], np.geomspace(1e-11, 1e6, 50_001)])
    height = log_density(candidates, a, b, m)
    inside = np.flatnonzero(height > height.max() - 40.0)
    low, high = candidates[max(inside[0] - 1, 0)], candidates[inside[-1] + 1]
    points = np.linspace(low, high, 50_001)
    if low == 0.0:
        points = np.union1d(points, candidates[candidates < high])
    height = log_density(points, a, b, m)
    density = np.exp(height - height.max())
    mass = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(points))])
    return lambda theta: np.interp(theta, points, mass / mass[-1])


def p_values(draws, cases):
    for row, (a, b, m) in zip(np.asarray(draws, np.float64), cases, strict=True):
        yield stats.kstest(row, distribution_function(a, b, m)).pvalue


def columns(cases):
    return (np.array(x, np.float32)[:, None] for x in zip(*cases, strict=True))


def draws_of(key, num_draws=20_000):
    """Draws of each posterior; the quick tests of these shapes share a program."""
    shape = (len(POSTERIORS), num_draws)
    columns_of_all = [np.broadcast_to(x, shape) for x in columns(POSTERIORS.values())]
    return jax.jit(sample_concentration)(key, *columns_of_all)


@pytest.mark.parametrize("num_draws", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_sample_concentration(num_draws):
    cases = list(POSTERIORS.values())
    draws = draws_of(random.key(0), num_draws)
    assert draws.dtype == jnp.float32
    assert np.all(np.isfinite(draws)) and np.all(draws > 0.0)
    for name, p_value in zip(POSTERIORS, p_values(draws, cases), strict=True):
        assert p_value > 1e-5, name


def test_sample_concentration_on_a_wide_grid():
    sums = [1e-4, 0.01, 1.0, 30.0, 92_000.0, 1e7]
    counts = [1.0, 1.001, 1.5, 3.0, 100.0, 15_450.0, 1e7]
    axes = np.meshgrid(sums, counts, [0, 1, 4, 532, 10_000])
    a, b, m = (x.ravel().astype(np.float32) for x in axes)
    shape = (len(POSTERIORS), 20_000)
    columns_of_all = [np.resize(x, shape) for x in (a, b, m)]
    draws = np.asarray(jax.jit(sample_concentration)(random.key(1), *columns_of_all), float)
    whole = draws.size // a.size
    draws = draws.ravel()[: whole * a.size].reshape(whole, a.size)
    assert np.all(np.isfinite(draws)) and np.all(draws > 0.0)
    # log-concave: the mass where the log density has fallen by d is at most about (1+d) e^-d
    mode = np.asarray(jax.jit(concentration_mode)(a, b, m))
    change = np.maximum((draws - mode).astype(np.float32), -mode)
    fall = np.asarray(jax.jit(log_density_difference)(mode, change, a, b, m))
    assert np.min(fall) > -25.0
    assert np.all(np.mean(fall > -3.0, axis=0) > 0.65)


def test_sample_concentration_under_vmap():
    a, b, m = (np.array(x, np.float32) for x in zip(*POSTERIORS.values(), strict=True))
    keys = random.split(random.key(2), 3)
    together = jax.jit(jax.vmap(sample_concentration, in_axes=(0, None, None, None)))(keys, a, b, m)
    alone = [np.asarray(jax.jit(sample_concentration)(key, a, b, m)) for key in keys]
    np.testing.assert_allclose(together, alone, rtol=1e-3)


@pytest.mark.parametrize("m", [0, 1, 9, 60])
def test_sample_truncated_geometric(m):
    theta = np.array([0.0, 1e-30, 1e-8, 0.001, 0.05, 0.12, 1.0, 3.0, 50.0], np.float32)
    num_draws = 50_000
    draws = jax.jit(sample_truncated_geometric)(
        random.key(m), np.broadcast_to(theta, (num_draws, len(theta))), m
    )
    assert draws.dtype == jnp.int32
    draws = np.asarray(draws)
    for i, x in enumerate(np.asarray(theta, np.float64)):
        probabilities = np.exp(-x * np.arange(m + 1))
        expected = num_draws * probabilities / probabilities.sum()
        counts = np.bincount(draws[:, i], minlength=m + 1)
        assert len(counts) == m + 1
        assert_chi_square(counts, expected)


def assert_chi_square(counts, expected):
    """Cells with few draws expected are taken together."""
    rare = expected < 10.0
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    statistic = np.sum((counts - expected) ** 2 / expected)
    assert stats.chi2.sf(statistic, max(len(expected) - 1, 1)) > 1e-5


@pytest.mark.parametrize("theta", [0.0, 5e-5, 1.5e-4, 1e-3])
@pytest.mark.parametrize("num_draws", [1_000_000, pytest.param(20_000_000, marks=pytest.mark.slow)])
def test_sample_truncated_geometric_with_many_codes(theta, num_draws):
    m = 10_000
    thetas = np.full(num_draws, theta, np.float32)
    draws = jax.jit(sample_truncated_geometric)(random.key(3), thetas, m)
    counts = np.bincount(draws, minlength=m + 1)
    probabilities = np.exp(-theta * np.arange(m + 1))
    assert len(counts) == m + 1
    assert_chi_square(counts, num_draws * probabilities / probabilities.sum())


def test_sample_truncated_geometric_reaches_rare_codes():
    theta = np.full(4_000_000, 15.0, np.float32)
    draws = np.asarray(jax.jit(sample_truncated_geometric)(random.key(4), theta, 9))
    # P(k >= 1) = e^-15, P(k >= 2) = e^-30
    count = int(np.sum(draws == 1))
    assert stats.poisson.sf(count - 1, 4_000_000 * np.exp(-15.0)) > 1e-5
    assert stats.poisson.cdf(count, 4_000_000 * np.exp(-15.0)) > 1e-5
    assert np.max(draws) <= 1


SLICE_POSTERIORS = [POSTERIORS[k] for k in ("one ranking", "interior mode", "mode at the edge")]
SLICE_POSTERIORS.append(POSTERIORS["large"])


@pytest.mark.parametrize(
    "scale, num_steps",
    # the next test has 16 steps, too
    [(3.0, 1), (0.5, 2), pytest.param(0.5, 16, marks=pytest.mark.slow)],
)
def test_slice_sample_leaves_the_density_invariant(scale, num_steps):
    """From exact draws, some updates later, draws are exact."""
    a, b, m = columns(SLICE_POSTERIORS)
    rows = [list(POSTERIORS.values()).index(case) for case in SLICE_POSTERIORS]
    start = np.asarray(draws_of(random.key(5)))[rows]
    width = np.float32(scale) * np.std(start, axis=1, keepdims=True)

    def difference(x, delta):
        return log_density_difference(x, delta, a, b, m)

    def update(x, key):
        return slice_sample(key, x, difference, width, num_steps=num_steps), None

    x = np.asarray(jax.lax.scan(update, start, random.split(random.key(6), 3))[0])
    assert np.all(np.isfinite(x)) and np.all(x >= 0.0)
    assert np.mean(x != start) > 0.9
    for p_value in p_values(x, SLICE_POSTERIORS):
        assert p_value > 1e-5


def test_slice_sample_forgets_its_start():
    """From one point far out, coordinates reach a normal distribution; no lower end."""

    def difference(x, delta):
        return -0.5 * delta * (2.0 * x + delta)

    def update(x, key):
        return slice_sample(key, x, difference, 1.0, lower=-jnp.inf), None

    start = jnp.full(20_000, 8.0)
    x, _ = jax.lax.scan(update, start, random.split(random.key(7), 40))
    assert stats.kstest(np.asarray(x, np.float64), stats.norm.cdf).pvalue > 1e-5


def test_draws_are_in_single_precision():
    one, m = np.ones(3, np.float32), np.array([1, 4, 9], np.int32)
    key = random.key(8)
    theta, code, moved = jax.eval_shape(
        lambda: (
            sample_concentration(key, one, 2.0 * one, m),
            sample_truncated_geometric(key, one, m),
            slice_sample(key, one, lambda x, d: -d, one),
        )
    )
    assert theta.shape == code.shape == moved.shape == (3,)
    assert theta.dtype == moved.dtype == jnp.float32


def test_log_gamma():
    """All shapes in one array, each against its distribution function in log x."""
    shapes = np.array([1e-3, 0.05, 0.7, 1.0, 1.5, 3.0, 40.0, 3e3, 1e5, 1e7], np.float32)
    repeated = np.tile(shapes[:, None], (1, 20_000))
    draws = np.asarray(jax.jit(sample_log_gamma)(random.key(3), repeated), float)
    in_numpy = draw_log_gamma(np.random.default_rng(3), repeated.astype(float))
    assert np.isfinite(draws).all() and np.isfinite(in_numpy).all()
    for a, x in zip(np.tile(shapes.astype(float), 2), [*draws, *in_numpy], strict=True):
        if a < 0.01:  # x^a is all but uniform
            found = stats.kstest(np.exp(a * x), "uniform").pvalue
        elif a > 1e6:  # what float32 can tell of log x
            found = stats.kstest((x - np.log(a)) * np.sqrt(a), "norm").pvalue
        else:
            found = stats.kstest(np.exp(x), stats.gamma(a).cdf).pvalue
        assert found > 1e-5, (a, found)
    one = jax.eval_shape(sample_log_gamma, random.key(4), 2.0)
    assert one.shape == () and one.dtype == jnp.float32


def test_arrays_drawn_together_are_parts_of_one_draw():
    key, shapes = jax.random.key(4), ((), (2, 3), (0,), (4,))
    parts = draw_together(jax.random.normal, key, *shapes)
    assert [part.shape for part in parts] == list(shapes)
    flat = jnp.concatenate([part.ravel() for part in parts])
    assert flat.tolist() == jax.random.normal(key, (11,)).tolist()
