"""The Davidson–Luce model against its definition, set by set, over all orders with ties."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.densities import draw, log_prob
from helpers.lists import assert_frequencies, log_prob_twin
from jax import random

import numpyro_rankings.distributions as rd
from numpyro_rankings import PartialOrders
from numpyro_rankings.distributions import constraints

LOG_WEIGHTS = np.array([0.4, -0.9, 1.3, 0.1], np.float32)
LOG_TIES = np.array([-0.3, -1.2, 0.6], np.float32)


def orders_with_ties(num_items):
    """Levels of all orders with ties of some items."""
    levels = np.array(list(itertools.product(range(num_items), repeat=num_items)), np.int32)
    return levels[[len(set(row)) == max(row) + 1 for row in levels.tolist()]]


def twin(levels, log_weights, log_ties, offered=None):
    """Log probability, set by set, as the model is told."""
    strengths = np.append(1.0, np.exp(np.asarray(log_ties, float)))
    alpha = np.exp(np.asarray(log_weights, float))
    left = [i for i in range(len(alpha)) if offered is None or offered[i]]

    def f(items):
        return strengths[len(items) - 1] * np.prod(alpha[list(items)]) ** (1 / len(items))

    total = 0.0
    for level in range(max(levels) + 1):
        chosen = [i for i, own in enumerate(levels) if own == level]
        if len(chosen) > len(strengths) or not set(chosen) <= set(left):
            return -np.inf
        sizes = range(1, min(len(strengths), len(left)) + 1)
        masses = [f(items) for d in sizes for items in itertools.combinations(left, d)]
        total += np.log(f(chosen) / np.sum(masses))
        left = [i for i in left if i not in chosen]
    return total


@pytest.mark.parametrize("num_items, largest", [(1, 2), (3, 1), (3, 2), (3, 3), (4, 2), (4, 4)])
def test_sums_to_one_over_all_orders_with_ties(num_items, largest):
    log_weights, log_ties = LOG_WEIGHTS[:num_items], LOG_TIES[: largest - 1]
    orders = orders_with_ties(num_items)
    found = np.asarray(log_prob(rd.PlackettLuceTies(log_weights, log_ties), orders), float)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-5)
    expected = [twin(order, log_weights, log_ties) for order in orders]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_orders_of_the_top_have_the_probability_of_how_they_begin():
    d = rd.PlackettLuceTies(LOG_WEIGHTS, LOG_TIES)
    full = orders_with_ties(4)
    probabilities = np.exp(np.asarray(log_prob(d, full), float))
    for num_levels in (1, 2, 3):
        tops = np.unique(np.where(full < num_levels, full, -1), axis=0)
        begins = (np.where(full < num_levels, full, -1) == tops[:, None]).all(-1)
        found = np.exp(np.asarray(log_prob(d, tops), float))
        np.testing.assert_allclose(found, begins @ probabilities, rtol=1e-5)


def test_without_ties_it_is_plackett_luce():
    orders = orders_with_ties(4)
    strict = orders[orders.max(1) == 3]
    expected = [log_prob_twin(np.argsort(x), np.exp(LOG_WEIGHTS)) for x in strict]
    for log_ties in (np.zeros(0), np.full(2, -40.0)):
        d = rd.PlackettLuceTies(LOG_WEIGHTS, log_ties)
        np.testing.assert_allclose(log_prob(d, strict), expected, rtol=1e-5, atol=1e-5)
        tied = np.asarray(log_prob(d, orders[orders.max(1) < 3]))
        assert (tied < -30).all()


def test_items_that_were_not_offered_are_not_there():
    offered = np.array([True, False, True, True])
    d = rd.PlackettLuceTies(LOG_WEIGHTS, LOG_TIES[:1], offered)
    few = orders_with_ties(3)
    orders = np.insert(few, 1, -1, axis=1)
    found = np.asarray(log_prob(d, orders), float)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-5)
    expected = [twin(order, LOG_WEIGHTS, LOG_TIES[:1], offered) for order in orders]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert log_prob(d, np.array([0, 1, 2, 3])) == -jnp.inf
    possible = np.isfinite(found)
    samples = draw(d, random.key(0), (20_000,))
    assert_frequencies(samples, orders[possible], found[possible])


@pytest.mark.parametrize("largest", [1, 2, 4])
def test_samples(largest):
    d = rd.PlackettLuceTies(LOG_WEIGHTS, LOG_TIES[: largest - 1])
    samples = draw(d, random.key(largest), (20_000,))
    assert samples.dtype == jnp.int32
    orders = orders_with_ties(4)
    possible = orders[[max(np.bincount(row)) <= largest for row in orders]]
    assert_frequencies(samples, possible, log_prob(d, possible))


def test_accurate_in_float32_for_many_items():
    """Levels of 300 items whose weights span 26 powers of e, by NumPy in float64."""
    rng = np.random.default_rng(0)
    log_weights = rng.normal(scale=4.0, size=300) + 1000
    log_ties = np.array([-3.0, -8.0])
    levels = np.argsort(np.argsort(rng.gumbel(size=300) - log_weights)) // 2
    expected, left = 0.0, np.argsort(levels)
    alpha = np.exp(log_weights - 1000)
    while len(left):
        sums = []
        for d in (1, 2, 3):
            e = np.array([1.0, 0, 0, 0])
            for w in alpha[left] ** (1 / d):
                e[1:] += w * e[:-1]
            sums.append(e[d])
        total = sums @ np.exp(np.append(0.0, log_ties))
        expected += log_ties[0] + np.log(alpha[left[:2]]).sum() / 2 - np.log(total)
        left = left[2:]
    found = log_prob(rd.PlackettLuceTies(log_weights.astype(np.float32), log_ties), levels)
    assert found.dtype == jnp.float32
    # the weights are around 1000 and rounded to 6e-5, of which 300 are added
    assert float(found) == pytest.approx(expected, abs=5e-3)


def test_gradient_is_the_observed_minus_expected_shares():
    """And it is finite where items or sets are impossible."""
    offered = np.array([True, False, True, True])
    levels = np.array([1, -1, 0, 0])

    def log_density(log_weights, log_ties):
        return rd.PlackettLuceTies(log_weights, log_ties, offered).log_prob(levels)

    by_weight, by_tie = jax.jit(jax.grad(log_density, (0, 1)))(LOG_WEIGHTS, LOG_TIES)
    step = 1e-5
    for found, x, place in ((by_weight, LOG_WEIGHTS, 0), (by_tie, LOG_TIES, 1)):
        for k in range(len(x)):
            values = []
            for sign in (1, -1):
                parameters = [LOG_WEIGHTS.astype(float), LOG_TIES.astype(float)]
                parameters[place][k] += sign * step
                values.append(twin(levels, *parameters, offered))
            slope = (values[0] - values[1]) / (2 * step)
            assert float(found[k]) == pytest.approx(slope, abs=1e-4)


def test_batches_and_vmapped_constructors():
    weights = np.stack([LOG_WEIGHTS, LOG_WEIGHTS[::-1], np.zeros(4, np.float32)])
    ties = np.stack([LOG_TIES[:2], LOG_TIES[1:]])[:, None]
    d = rd.PlackettLuceTies(weights, ties)
    assert (d.batch_shape, d.event_shape) == ((2, 3), (4,))
    assert rd.PlackettLuceTies.infer_shapes((3, 4), (2, 1, 2)) == ((2, 3), (4,))
    samples = np.asarray(draw(d, random.key(0), (5,)))
    assert samples.shape == (5, 2, 3, 4) and constraints.bucket_order(samples).all()
    found = np.asarray(log_prob(d, samples))
    for s, i, j in itertools.product(range(5), range(2), range(3)):
        expected = twin(samples[s, i, j], weights[j], ties[i, 0])
        assert found[s, i, j] == pytest.approx(expected, abs=1e-4)
    batch = jax.jit(jax.vmap(rd.PlackettLuceTies, (0, None)))(weights, LOG_TIES)
    each = jax.jit(jax.vmap(lambda d, x: d.log_prob(x), in_axes=(0, None)))
    x = np.array([0, 1, 1, -1])
    expected = log_prob(rd.PlackettLuceTies(weights, LOG_TIES), x)
    np.testing.assert_allclose(each(batch, x), expected, rtol=1e-6)


def test_bad_values_and_arguments():
    d = rd.PlackettLuceTies(LOG_WEIGHTS, LOG_TIES, validate_args=True)
    for levels in ([1, 2, 3, 4], [0, 2, 2, 0], [-1, -1, -1, -1], [-2, 0, 1, 2], [0, 0.5, 1, 2]):
        with pytest.warns(UserWarning, match="Out-of-support"):
            assert d.log_prob(np.array(levels)) == -jnp.inf
    for levels in ([0, 0, 0, 0], [0, -1, -1, -1], [3, 1, 0, 2], [1, -1, 0, 1]):
        assert np.isfinite(d.log_prob(np.array(levels)))
    with pytest.raises(ValueError, match="log_weights must have shape"):
        rd.PlackettLuceTies(0.0, LOG_TIES)
    with pytest.raises(ValueError, match="log_tie_strengths must have shape"):
        rd.PlackettLuceTies(LOG_WEIGHTS, 0.0)
    with pytest.raises(ValueError, match="choice_set must have shape"):
        rd.PlackettLuceTies(LOG_WEIGHTS, LOG_TIES, np.ones(3, bool))
    with pytest.raises(ValueError, match="invalid log_tie_strengths"):
        rd.PlackettLuceTies(LOG_WEIGHTS, np.array([np.nan]), validate_args=True)
    with pytest.raises(ValueError, match="4 entries along the last axis"):
        d.log_prob(np.array([0, 1]))


def test_partial_orders_give_their_levels():
    offered = np.array([[True, True, True, False], [True] * 4])
    buckets = [["c", ["b", "a"]], ["c", "d"]]
    orders = PartialOrders.from_buckets(buckets, items=[*"abcd"], choice_sets=offered)
    d = rd.PlackettLuceTies(LOG_WEIGHTS, LOG_TIES, orders.offered())
    levels = [[1, 1, 0, -1], [-1, -1, 0, 1]]
    expected = [
        twin(row, LOG_WEIGHTS, LOG_TIES, sets) for row, sets in zip(levels, offered, strict=True)
    ]
    np.testing.assert_allclose(d.log_prob(orders.levels_of_items()), expected, rtol=1e-5)
    with pytest.raises(TypeError, match=r"give levels_of_items\(\) of the partial orders"):
        d.log_prob(orders)


def test_sizes_that_do_not_occur():
    log_ties = np.array([-np.inf, -0.5], np.float32)

    def total(log_weights, order):
        d = rd.PlackettLuceTies(log_weights, log_ties, validate_args=True)
        return d.log_prob(order)

    for order in ([0, 0, 0, 1], [1, 0, 2, 3], [0, 0, 1, -1]):
        with np.errstate(divide="ignore"):
            expected = twin(order, LOG_WEIGHTS, log_ties)
        assert total(LOG_WEIGHTS, jnp.array(order)) == pytest.approx(expected, rel=1e-5)
        assert np.isfinite(jax.grad(total)(LOG_WEIGHTS, jnp.array(order))).all()
    orders = draw(rd.PlackettLuceTies(LOG_WEIGHTS, log_ties), random.key(0), (200,))
    sizes = [np.bincount(row) for row in np.asarray(orders)]
    assert {int(x) for row in sizes for x in row} == {1, 3}
