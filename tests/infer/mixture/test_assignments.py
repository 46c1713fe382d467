"""Draws of labels, and the table of likelihoods that they read."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from scipy import stats

from numpyro_rankings.infer.mallows.data import as_mallows_data, log_likelihoods
from numpyro_rankings.infer.mixture import labels as module
from numpyro_rankings.infer.mixture.labels import (
    _num_leading,
    draw_labels,
    draw_slices,
    update_labels_at_once,
)
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


def test_number_of_leading_ones_is_that_of_a_count():
    """Of 1 to 17 numbers, of which any number holds, none and all included."""
    for num in range(1, 18):
        limits = np.arange(num + 1)
        found = _num_leading(lambda c, limits=limits: c < limits, num, limits.shape)
        expected = (np.arange(num) < limits[:, None]).sum(1)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == jnp.int32


def zeros(key, shape=(), *_):
    """The least that ``random.uniform`` can return."""
    return jnp.zeros(shape)


def test_a_label_is_drawn_at_the_end_of_its_weights(monkeypatch):
    """It is the last one with a weight, also where the number drawn is the least or the largest."""
    weights = [[0.0, 0.5, 0.2], [0.4, 0.5, 0.3], [0.6, 0.0, 0.5], [0.0, 0.0, 0.0]]
    log_weights = jnp.log(jnp.array(weights))
    monkeypatch.setattr(module.random, "uniform", zeros)
    found = draw_labels(random.key(0), log_weights, None)
    np.testing.assert_array_equal(found, [2, 1, 2])
    allowed = jnp.array([2, 1, 4])
    found = draw_labels(random.key(0), log_weights, None, allowed)
    np.testing.assert_array_equal(found, [1, 0, 2])
    below_1 = np.nextafter(np.float32(1), np.float32(0))
    monkeypatch.setattr(module.random, "uniform", lambda key, shape: jnp.full(shape, below_1))
    found = draw_labels(random.key(0), log_weights, None)
    np.testing.assert_array_equal(found, [1, 0, 0])


def test_a_cluster_is_open_to_a_slice_that_equals_its_share(monkeypatch):
    """And closed to one just above it; the shares need not be in order."""
    shares = np.log(np.array([0.2, 0.5, 0.05, 0.1], np.float32))
    slices = np.array([*shares, *np.nextafter(shares, np.float32(1)), -np.inf, np.inf])
    given = jnp.asarray(shares), jnp.asarray(slices), jnp.array(False)
    labels = jnp.array([0, 1] * 4 + [0, 4])  # the last one is padding

    def order_and_number(key, table, rows, num_allowed):
        counts.append(np.asarray(num_allowed))
        return num_allowed % 4

    counts = []
    monkeypatch.setattr(module, "draw_slices", lambda *_: given)
    monkeypatch.setattr(module, "draw_labels", order_and_number)
    sizes, prior = jnp.array([5, 4, 0, 0]), PartitionPrior(jnp.float32(1.0), None)
    tables = []
    found, overflow = update_labels_at_once(
        random.key(0), labels, sizes, prior, None, lambda *given: tables.append(given)
    )
    expected = (shares[None] >= slices[:, None]).sum(1)
    np.testing.assert_array_equal(counts[0], expected)
    assert expected.tolist() == [2, 1, 4, 3, 1, 0, 3, 2, 4, 0] and not overflow
    order, needed = tables[0]
    assert needed == 4 and np.asarray(order).tolist() == [1, 0, 3, 2]
    np.testing.assert_array_equal(found[:-1], np.asarray(order)[expected[:-1] % 4])
    assert found[-1] == 4


def test_slices_are_below_the_shares_of_their_clusters(monkeypatch):
    sizes, labels = jnp.array([3, 2, 0, 0, 0]), jnp.array([0, 1, 0, 0, 1, 5])
    for key, alpha, is_short in ((0, 0.1, False), (1, 1000.0, True)):
        shares, slices, overflow = draw_slices(random.key(key), sizes, labels, jnp.float32(alpha))
        own = np.asarray(shares)[np.asarray(labels[:-1])]
        assert np.all(np.asarray(slices[:-1]) <= own) and np.isposinf(slices[-1])
        rest = 1.0 - np.exp(shares).sum()
        assert overflow == is_short == (rest > np.exp(slices.min()))
    monkeypatch.setattr(module.random, "uniform", zeros)
    shares, slices, _ = draw_slices(random.key(0), sizes, labels, jnp.float32(1.0))
    np.testing.assert_array_equal(slices[:-1], np.asarray(shares)[np.asarray(labels[:-1])])


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
