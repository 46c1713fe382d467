"""Loops and branches that stay what they are under ``vmap``."""

import jax
import jax.numpy as jnp
import numpy as np

from numpyro_rankings.ops.loops import computed_if

CALLS = []


def _twice(x, y):
    jax.debug.callback(lambda *_: CALLS.append(1), x)
    return 2.0 * x + y


def _choose(condition, x, y):
    return computed_if(condition, _twice, (x, y), -jnp.ones(2))


def _calls():
    jax.effects_barrier()
    number = len(CALLS)
    CALLS.clear()
    return number


def test_a_branch_is_computed_only_if_one_of_the_batch_needs_it():
    x, y = jnp.arange(6.0).reshape(3, 2), jnp.array([0.5, 1.5])
    for given in (np.array([True, False, True]), np.zeros(3, bool)):
        expected = np.where(given[:, None], 2 * np.asarray(x) + np.asarray(y), -1.0)
        conditions = jnp.asarray(given)
        found = jnp.stack([_choose(c, row, y) for c, row in zip(conditions, x, strict=True)])
        np.testing.assert_array_equal(found, expected)
        assert _calls() == given.sum()
        over_rows = jax.vmap(_choose, in_axes=(0, 0, None))
        for batched in (over_rows, jax.jit(over_rows)):
            np.testing.assert_array_equal(batched(conditions, x, y), expected)
            assert _calls() == 3 * given.any()
        # in a loop within a batch, and with a batch of batches
        in_loop = jax.vmap(
            lambda c, x: jax.lax.fori_loop(0, 2, lambda _, s: _choose(c, x, y) + 0.0 * s, x)
        )
        np.testing.assert_array_equal(jax.jit(in_loop)(conditions, x), expected)
        assert _calls() == 2 * 3 * given.any()
        twice = jax.vmap(over_rows, in_axes=(None, 0, None))(conditions, jnp.stack([x, x]), y)
        np.testing.assert_array_equal(twice, np.stack([expected, expected]))
        _calls()
