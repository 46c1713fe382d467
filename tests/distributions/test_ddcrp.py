"""The distance dependent Chinese restaurant process: links, decays, closed forms."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.enumeration import partitions
from helpers.exact_partitions import components

import numpyro_rankings.distributions as rd
from numpyro_rankings.infer import (
    exponential_decay,
    identity_decay,
    logistic_decay,
    window_decay,
)

DECAYS = {
    "window": (window_decay(1.5), lambda d: float(d < 1.5)),
    "exponential": (exponential_decay(0.7), lambda d: np.exp(-d / 0.7)),
    "logistic": (logistic_decay(1.2), lambda d: 1 / (1 + np.exp(d - 1.2))),
    "identity": (identity_decay(), lambda d: float(d < np.inf)),
}


def test_components_of_links():
    every = np.array(list(itertools.product(range(4), repeat=4)))
    expected = [components(links) for links in every]
    np.testing.assert_array_equal(rd.links_to_partition(every), expected)
    rng = np.random.default_rng(0)
    for size in (1, 2, 37, 200):
        links = rng.integers(size, size=(3, size))
        found = jax.jit(rd.links_to_partition)(links)
        np.testing.assert_array_equal(found, [components(row) for row in links])
    chain = np.maximum(np.arange(1000) - 1, 0)
    assert not np.any(rd.links_to_partition(chain))
    ring = (np.arange(1000) + 1) % 1000
    assert not np.any(rd.links_to_partition(ring))


@pytest.mark.parametrize("name", DECAYS)
def test_decays(name):
    decay, expected = DECAYS[name]
    distances = np.array([0.0, 0.3, 1.2, 1.5, 4.0, 500.0, np.inf])
    found = np.asarray(decay(distances))
    np.testing.assert_allclose(found, [expected(d) for d in distances], rtol=2e-6, atol=1e-30)
    logs = np.asarray(decay.log(distances))
    assert found[-1] == 0.0 and logs[-1] == -np.inf
    if name in ("exponential", "logistic"):  # beyond what float32 holds of the decay itself
        assert np.isfinite(logs[5]) and found[5] == 0.0


def test_decay_with_a_prior():
    decay = window_decay(dist.Gamma(1.0, 1.0))
    np.testing.assert_array_equal(decay([0.5, 2.0], 1.0), [1.0, 0.0])
    with pytest.raises(ValueError, match="give the number"):
        decay([0.5])
    for bad in (0.0, -1.0, np.nan, [1.0, 2.0], "far"):
        with pytest.raises(ValueError, match="must be a positive number"):
            exponential_decay(bad)


def matrix(name, sequential, size=4):
    times = np.array([0.0, 0.4, 1.3, 2.9])[:size]
    distances = np.abs(times[:, None] - times)
    if sequential:
        distances[np.triu_indices(size, 1)] = np.inf
    return np.asarray(DECAYS[name][0](distances), float)


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("name", DECAYS)
def test_probability_of_links(name, sequential):
    decay = matrix(name, sequential)
    process = rd.DistanceDependentCRP(0.8, decay)
    every = np.array(list(itertools.product(range(4), repeat=4)))
    weights = decay.copy()
    np.fill_diagonal(weights, 0.8)
    probs = weights / weights.sum(1, keepdims=True)
    expected = probs[np.arange(4), every].prod(1)
    found = np.exp(process.log_prob(every))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-30)
    entropy = -np.sum(expected[expected > 0] * np.log(expected[expected > 0]))
    assert float(process.entropy()) == pytest.approx(entropy, rel=1e-5)
    draws = np.asarray(process.sample(jax.random.key(0), (20_000,)))
    assert draws.shape == (20_000, 4) and draws.dtype == np.int32
    share = (draws[:, None] == every).all(-1).mean(0)
    error = np.sqrt(expected * (1 - expected) / 20_000)
    assert np.all(np.abs(share - expected) < 5.5 * error + 1e-4)
    # the partition: links summed over
    labels = [tuple(row) for row in np.asarray(rd.links_to_partition(every)).tolist()]
    if not sequential:
        with pytest.raises(ValueError, match="sequential decays only"):
            process.log_prob_of_partition(np.zeros(4, int))
        return
    for partition in partitions(4):
        total = sum(p for p, label in zip(expected, labels, strict=True) if label == partition)
        found = float(np.exp(process.log_prob_of_partition(np.array(partition))))
        assert found == pytest.approx(total, rel=1e-5, abs=1e-30)


def test_the_traditional_process_is_a_special_case():
    decay = np.tril(np.ones((5, 5)), -1)
    process = rd.DistanceDependentCRP(1.7, decay)
    labels = np.array(list(partitions(5)))
    expected = rd.ChineseRestaurantProcess(1.7, 5).log_prob(labels)
    np.testing.assert_allclose(process.log_prob_of_partition(labels), expected, atol=1e-5)


def test_batches_and_gradients():
    decays = np.stack([matrix("exponential", False), matrix("logistic", True)])
    process = rd.DistanceDependentCRP(np.array([0.5, 2.0]), decays)
    assert process.batch_shape == (2,) and process.event_shape == (4,)
    links = np.array([0, 1, 0, 2])
    found = process.log_prob(links)
    for i in range(2):
        one = rd.DistanceDependentCRP([0.5, 2.0][i], decays[i])
        assert float(found[i]) == pytest.approx(float(one.log_prob(links)), rel=1e-5)
    assert process.sample(jax.random.key(0), (3,)).shape == (3, 2, 4)

    def log_prob(alpha, scale):
        times = jnp.array([0.0, 0.4, 1.3, 2.9])
        distances = jnp.abs(times[:, None] - times).at[0, 1:].set(jnp.inf).at[1, 3].set(500.0)
        decay = exponential_decay(1.0)(distances, scale)
        return rd.DistanceDependentCRP(alpha, decay).log_prob(links)

    for argument in (0, 1):
        slope = float(jax.grad(log_prob, argument)(0.8, 0.7))
        step = [0.0, 0.0]
        step[argument] = 1e-2
        rise = log_prob(0.8 + step[0], 0.7 + step[1]) - log_prob(0.8 - step[0], 0.7 - step[1])
        assert slope == pytest.approx(float(rise) / 2e-2, rel=2e-3)


def test_bad_input():
    with pytest.raises(ValueError, match="must have shape"):
        rd.DistanceDependentCRP(1.0, np.ones((3, 4)))
    with pytest.raises(ValueError, match="row 0 has a neighbor twice"):
        rd.DistanceDependentCRP(1.0, np.ones((2, 2)), np.array([[1, 1], [0, -1]]))
    with pytest.raises(ValueError, match="row 0 has a neighbor that is not from 0 to 2"):
        rd.DistanceDependentCRP(1.0, np.ones((3, 2)), np.full((3, 2), 7))
    with pytest.raises(ValueError, match="neighbors must be integers"):
        rd.DistanceDependentCRP(1.0, np.ones((3, 1)), np.full((3, 1), 1.0))
    with pytest.raises(ValueError, match="decay_matrix"):
        rd.DistanceDependentCRP(1.0, -np.ones((3, 3)), validate_args=True)
    with pytest.raises(ValueError, match="alpha"):
        rd.DistanceDependentCRP(0.0, np.ones((3, 3)), validate_args=True)
    process = rd.DistanceDependentCRP(1.0, np.ones((3, 3)))
    with pytest.raises(ValueError, match="values with 3 entries"):
        process.log_prob(np.zeros(4, int))
