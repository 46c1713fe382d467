"""The distance dependent Chinese restaurant process: links, decays, closed forms."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.densities import draw, log_prob
from helpers.enumeration import partitions
from helpers.exact_partitions import components
from helpers.refusals import assert_refused

import numpyro_rankings.distributions as rd
from numpyro_rankings.infer import exponential_decay, identity_decay, logistic_decay, window_decay

to_partition = jax.jit(rd.links_to_partition)
log_prob_of_partition = jax.jit(lambda process, labels: process.log_prob_of_partition(labels))

DECAYS = {
    "window": (window_decay(1.5), lambda d: float(d < 1.5)),
    "exponential": (exponential_decay(0.7), lambda d: np.exp(-d / 0.7)),
    "logistic": (logistic_decay(1.2), lambda d: 1 / (1 + np.exp(d - 1.2))),
    "identity": (identity_decay(), lambda d: float(d < np.inf)),
}


def test_components_of_links():
    every = np.array(list(itertools.product(range(4), repeat=4)))
    expected = [components(links) for links in every]
    np.testing.assert_array_equal(to_partition(every), expected)
    rng = np.random.default_rng(0)
    for size in (1, 2, 37, 200):
        links = rng.integers(size, size=(3, size))
        np.testing.assert_array_equal(to_partition(links), [components(row) for row in links])
    chain = np.maximum(np.arange(1000) - 1, 0)
    ring = (np.arange(1000) + 1) % 1000
    assert not np.any(to_partition(np.stack([chain, ring])))


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


@pytest.mark.parametrize("make", [window_decay, exponential_decay, logistic_decay])
def test_a_scale_that_is_sampled(make):
    """The scale and the exponent may be traced."""
    distances = np.array([0.3, 1.0, 4.0, np.inf])

    @jax.jit
    def value_and_slope(scale, exponent):
        def total(scale, exponent):
            decay = make(scale)
            return decay(distances).sum() + decay.power(exponent)(distances).sum()

        return jax.value_and_grad(total, (0, 1))(scale, exponent)

    def expected(scale, exponent):
        return float(
            np.sum(np.asarray(make(scale)(distances), float) ** np.array([[1], [exponent]]))
        )

    value, slopes = value_and_slope(1.3, 0.4)
    assert float(value) == pytest.approx(expected(1.3, 0.4), rel=1e-5)
    ends = [[expected(1.3 + s, 0.4), expected(1.3, 0.4 + s)] for s in (1e-2, -1e-2)]
    np.testing.assert_allclose(slopes, np.subtract(*ends) / 2e-2, rtol=1e-2, atol=1e-3)
    with pytest.raises(ValueError, match="must be a positive number"):
        jax.eval_shape(lambda scale: make(scale)(distances), jnp.ones(2))


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
    found = np.exp(log_prob(process, every))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-30)
    entropy = -np.sum(expected[expected > 0] * np.log(expected[expected > 0]))
    assert float(process.entropy()) == pytest.approx(entropy, rel=1e-5)
    draws = np.asarray(draw(process, jax.random.key(0), (20_000,)))
    assert draws.shape == (20_000, 4) and draws.dtype == np.int32
    share = (draws[:, None] == every).all(-1).mean(0)
    error = np.sqrt(expected * (1 - expected) / 20_000)
    assert np.all(np.abs(share - expected) < 5.5 * error + 1e-4)
    # the partition: links summed over
    labels = [tuple(row) for row in np.asarray(to_partition(every)).tolist()]
    if not sequential:
        with pytest.raises(ValueError, match="sequential decays only"):
            process.log_prob_of_partition(np.zeros(4, int))
        return
    every = list(partitions(4))
    found = np.exp(np.asarray(log_prob_of_partition(process, np.array(every)), float))
    for partition, probability in zip(every, found, strict=True):
        total = sum(p for p, label in zip(expected, labels, strict=True) if label == partition)
        assert probability == pytest.approx(total, rel=1e-5, abs=1e-30)


def test_the_traditional_process_is_a_special_case():
    decay = np.tril(np.ones((5, 5)), -1)
    process = rd.DistanceDependentCRP(1.7, decay)
    labels = np.array(list(partitions(5)))
    expected = log_prob(rd.ChineseRestaurantProcess(1.7, 5), labels)
    np.testing.assert_allclose(log_prob_of_partition(process, labels), expected, atol=1e-5)


def test_batches_and_gradients():
    decays = np.stack([matrix("exponential", False), matrix("logistic", True)])
    process = rd.DistanceDependentCRP(np.array([0.5, 2.0]), decays)
    assert process.batch_shape == (2,) and process.event_shape == (4,)
    links = np.array([0, 1, 0, 2])
    found = np.asarray(log_prob(process, links))
    for i in range(2):
        one = rd.DistanceDependentCRP([0.5, 2.0][i], decays[i])
        assert found[i] == pytest.approx(float(log_prob(one, links)), rel=1e-5)
    assert draw(process, jax.random.key(0), (3,)).shape == (3, 2, 4)

    @jax.jit
    def log_density(alpha, scale):
        times = jnp.array([0.0, 0.4, 1.3, 2.9])
        distances = jnp.abs(times[:, None] - times).at[0, 1:].set(jnp.inf).at[1, 3].set(500.0)
        decay = exponential_decay(1.0)(distances, scale)
        return rd.DistanceDependentCRP(alpha, decay).log_prob(links)

    slopes = jax.jit(jax.grad(log_density, (0, 1)))(0.8, 0.7)
    for argument, slope in enumerate(slopes):
        step = [0.0, 0.0]
        step[argument] = 1e-2
        high, low = (float(log_density(0.8 + k * step[0], 0.7 + k * step[1])) for k in (1, -1))
        assert float(slope) == pytest.approx((high - low) / 2e-2, rel=2e-3)


def test_gradient_of_the_entropy_where_decays_are_0():
    decay = np.array([[0.0, 0.5, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])

    def entropy(alpha, scale):
        return rd.DistanceDependentCRP(alpha, scale * decay).entropy()

    def by_hand(alpha, scale):
        weights = scale * decay + alpha * np.eye(3)
        probs = weights / weights.sum(1, keepdims=True)
        return -np.sum(probs[probs > 0] * np.log(probs[probs > 0]))

    found = jax.jit(jax.grad(entropy, (0, 1)))(1.2, 1.0)
    ends = [[by_hand(1.2 + s, 1.0), by_hand(1.2, 1.0 + s)] for s in (1e-5, -1e-5)]
    np.testing.assert_allclose(found, np.subtract(*ends) / 2e-5, rtol=1e-4)


def test_bad_input():
    assert_refused(
        rd.DistanceDependentCRP,
        ("must have shape", 1.0, np.ones((3, 4))),
        ("row 0 has a neighbor twice", 1.0, np.ones((2, 2)), np.array([[1, 1], [0, -1]])),
        ("row 0 has a neighbor that is not from 0 to 2", 1.0, np.ones((3, 2)), np.full((3, 2), 7)),
        ("neighbors must be integers", 1.0, np.ones((3, 1)), np.full((3, 1), 1.0)),
    )
    with pytest.raises(ValueError, match="decay_matrix"):
        rd.DistanceDependentCRP(1.0, -np.ones((3, 3)), validate_args=True)
    with pytest.raises(ValueError, match="alpha"):
        rd.DistanceDependentCRP(0.0, np.ones((3, 3)), validate_args=True)
    process = rd.DistanceDependentCRP(1.0, np.ones((3, 3)))
    with pytest.raises(ValueError, match="values with 3 entries"):
        process.log_prob(np.zeros(4, int))
