"""Logarithms of long products, from which the likelihoods of choices are made."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numpyro_rankings.ops.choices import split_exponent


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_split_exponent(dtype):
    with jax.enable_x64(dtype == "float64"):
        info = np.finfo(dtype)
        few = [info.tiny, 3 * info.tiny, 0.3, 1 - info.eps, 1.0, 1.5, 2.0, 7e4, 0.99 * info.max]
        x = jnp.asarray(np.array(few, dtype))
        mantissa, exponent = (np.asarray(part) for part in jax.jit(split_exponent)(x))
        assert mantissa.dtype == exponent.dtype == dtype
        known, powers = np.frexp(np.asarray(x))
        np.testing.assert_array_equal(mantissa, 2 * known)
        np.testing.assert_array_equal(exponent, powers - 1)
        assert np.asarray(split_exponent(jnp.zeros((), dtype))[0]) == 0


def test_the_gradient_of_a_long_product():
    """100 factors from 10^-30 to 1, whose product float32 cannot hold."""
    x = jnp.asarray(10.0 ** np.random.default_rng(0).uniform(-30, 0, 100), jnp.float32)

    def log_product(x):
        def times(now, factor):
            product, exponent = now
            product, more = split_exponent(product * factor)
            return (product, exponent + more), None

        (product, exponent), _ = jax.lax.scan(times, (jnp.ones(()), jnp.zeros(())), x)
        return jnp.log(product) + np.log(2.0) * exponent

    value, gradient = jax.jit(jax.value_and_grad(log_product))(x)
    exact = np.asarray(x, np.float64)
    np.testing.assert_allclose(value, np.log(exact).sum(), rtol=1e-6)
    np.testing.assert_allclose(gradient, 1 / exact, rtol=1e-4)
