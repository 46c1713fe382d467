"""Draws of labels, and the table of likelihoods that they read."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from scipy import stats

from numpyro_rankings.infer.mallows.data import as_mallows_data, log_likelihoods
from numpyro_rankings.infer.mixture.labels import draw_labels, update_labels_at_once
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.ops.codes import inverse_ordering
from numpyro_rankings.rankings import Rankings

DRAWS = 20_000


def test_labels_have_their_probabilities():
    """Weights of 0 at either end, rows that differ by hundreds, clusters closed to a ranking."""
    log_weights = np.array(
        [
            [-np.inf, 0.3, -700.0, 2.0],
            [1.0, -np.inf, -701.0, 2.0],
            [0.0, -0.5, 300.0, -np.inf],
            [-2.0, 0.1, 301.0, 2.0],
            [-np.inf, -np.inf, 299.0, -np.inf],
        ]
    )
    row_index = np.repeat([0, 1, 2, 3, 2, 3], DRAWS)
    num_allowed = np.repeat([5, 5, 5, 5, 2, 1], DRAWS)
    draw = jax.jit(draw_labels)
    every = draw(random.key(0), jnp.asarray(log_weights), jnp.asarray(row_index))
    some = draw(
        random.key(1), jnp.asarray(log_weights), jnp.asarray(row_index), jnp.asarray(num_allowed)
    )
    for labels, allowed in ((every, np.full(6, 5)), (some, num_allowed[::DRAWS])):
        groups = np.asarray(labels).reshape(6, DRAWS)
        for group, row, open_to in zip(groups, row_index[::DRAWS], allowed, strict=True):
            weights = np.where(np.arange(5) < open_to, log_weights[:, row], -np.inf)
            p = np.exp(weights - weights.max())
            p /= p.sum()
            found = np.bincount(group, minlength=5) / DRAWS
            np.testing.assert_array_equal(found[p == 0], 0.0)
            error = np.sqrt(np.maximum(p * (1 - p), 1e-12) / DRAWS)
            assert np.all(np.abs(found - p) < 5.5 * error + 1e-6), (row, open_to)


def test_labels_drawn_at_once_in_a_finite_mixture():
    """Three rankings of two rows jointly, and padding; one of three clusters is empty."""
    table = np.log([[0.5, 0.1], [0.2, 0.6], [0.3, 0.9]])
    labels, sizes, alpha = np.array([0, 0, 1, 3]), np.array([2, 1, 0]), 2.1

    @jax.jit
    def draw(keys, table, labels, sizes, rows):
        prior = PartitionPrior(jnp.float32(alpha), 3)

        def once(key):
            return update_labels_at_once(key, labels, sizes, prior, rows, lambda c, _: table[c])

        return jax.vmap(once)(keys)

    keys = random.split(random.key(2), DRAWS)
    drawn, overflow = map(np.asarray, draw(keys, table, labels, sizes, np.array([0, 1, 1, 0])))
    assert np.all(drawn[:, 3] == 3) and not np.any(overflow)
    found = np.bincount(drawn[:, :3] @ [9, 3, 1], minlength=27) / DRAWS

    # the mean over the shares, Dirichlet(N_c + α/3): sticks at quantiles of their Beta laws
    a, b, c = sizes + alpha / 3
    levels = (np.arange(200) + 0.5) / 200
    first, second = stats.beta(a, b + c).ppf(levels)[:, None], stats.beta(b, c).ppf(levels)
    shares = [first + 0 * second, (1 - first) * second, (1 - first) * (1 - second)]
    weights = np.stack(shares)[:, None] * np.exp(table)[:, :, None, None]
    x, y = np.moveaxis(weights / weights.sum(0), 1, 0)
    expected = np.einsum("iab,jab,kab->ijk", x, y, y).ravel() / 200**2
    # one of 27 frequencies is off by 5.5 standard errors with probability 1e-6, and the quadrature
    # by 1.5e-4
    error = np.sqrt(expected * (1 - expected) / DRAWS)
    assert np.all(np.abs(found - expected) < 5.5 * error + 2e-4)


def test_table_up_to_a_bound_of_each_chain():
    """Chains share the loop, not what they leave out."""
    rankings = Rankings.from_orderings([[0, 1, 2], [3], [2, 0]], num_items=4)
    rng = np.random.default_rng(0)
    centers = np.stack([rng.permutation(4) for _ in range(10)]).reshape(2, 5, 4)
    theta = rng.gamma(1.0, size=(2, 5, 3)).astype(np.float32)
    active = np.array([2, 4])

    def of_chain(center, theta, active):
        places = inverse_ordering(center)
        return log_likelihoods(as_mallows_data(rankings), places, theta, active)

    both = jax.jit(jax.vmap(of_chain))(centers, theta, active)
    one = jax.jit(of_chain)
    for chain in range(2):
        alone = one(centers[chain], theta[chain], active[chain])
        np.testing.assert_allclose(both[chain], alone, rtol=1e-6)
        np.testing.assert_array_equal(
            np.isfinite(alone), np.arange(5)[:, None] < np.full(3, active[chain])
        )
