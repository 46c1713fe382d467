"""The prior of a partition in two parameters, against float64 and against sums over partitions."""

from functools import partial

import jax
import numpy as np
import pytest
from helpers.enumeration import partitions
from scipy.special import gammaln, logsumexp

from numpyro_rankings.infer.mixture.prior import PartitionPrior

CASES = {"Dirichlet process": (None, 0.0), "Pitman-Yor": (None, 0.3), "finite": (6, None)}
SIZES = {
    "large": [100_000, 3, 0, 41_234, 1],
    "many": [1] * 40 + [0] * 3,
    "small": [2, 0, 1, 1, 0],
    "one": [1, 0],
}


# compiled once for all values of one number of components and of slots


@partial(jax.jit, static_argnums=2)
def log_prob(sizes, alpha, num_components, discount):
    return PartitionPrior(alpha, num_components, discount).log_prob(sizes)


@partial(jax.jit, static_argnums=3)
def log_weights_of(sizes, number, alpha, num_components, discount):
    prior = PartitionPrior(alpha, num_components, discount)
    return prior.log_join(sizes), prior.log_open(number)


def log_prob_twin(sizes, alpha, num_components, discount):
    """Seat the points of one cluster after another: the order does not matter."""
    sizes = np.asarray([n for n in sizes if n > 0], float)
    opened = np.arange(len(sizes))
    if num_components is None:
        weights = alpha + discount * opened
    else:
        discount = -alpha / num_components
        weights = alpha / num_components * (num_components - opened)
    if np.any(weights <= 0):
        return -np.inf
    within = gammaln(sizes - discount) - gammaln(1.0 - discount)
    total = gammaln(alpha + sizes.sum()) - gammaln(alpha)
    return np.log(weights).sum() + within.sum() - total


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("alpha", [1e-3, 0.7, 35.0])
@pytest.mark.parametrize("name", CASES)
def test_log_prob_in_float32(name, alpha, sizes):
    num_components, discount = CASES[name]
    sizes = np.array(SIZES[sizes])
    if num_components is not None:
        num_components = max(num_components, np.count_nonzero(sizes))
    found = float(log_prob(sizes, alpha, num_components, discount or 0.0))
    alpha = float(np.float32(alpha))
    expected = log_prob_twin(sizes, alpha, num_components, discount)
    assert found == pytest.approx(expected, rel=3e-6, abs=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_partitions_of_five_sum_to_one(name):
    num_components, discount = CASES[name]
    logs = [
        float(log_prob(np.bincount(one, minlength=6), 1.3, num_components, discount or 0.0))
        for one in partitions(5)
    ]
    assert logsumexp(logs) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_weights_are_those_of_the_probability(name):
    """Seating one point more multiplies the probability by its weight over all weights."""
    num_components, discount = CASES[name]
    parameters = 1.3, num_components, discount or 0.0
    sizes = np.array([4, 1, 2, 0, 0, 0])
    occupied = np.flatnonzero(sizes)
    log_join, log_open = log_weights_of(sizes, len(occupied), *parameters)
    log_weights = np.append(np.asarray(log_join)[occupied], log_open)
    log_weights -= logsumexp(log_weights)
    before = float(log_prob(sizes, *parameters))
    for log_weight, slot in zip(log_weights, [*occupied, len(occupied)], strict=True):
        after = sizes + (np.arange(6) == slot)
        change = float(log_prob(after, *parameters)) - before
        assert change == pytest.approx(float(log_weight), abs=1e-5)
    assert np.isneginf(log_join[3])


def test_a_finite_mixture_has_no_more_clusters_than_components():
    sizes = np.array([1, 1, 1, 1, 0])
    assert np.isneginf(log_weights_of(sizes, 3, 1.3, 3, 0.0)[1])
    assert np.isneginf(log_prob(sizes, 1.3, 3, 0.0))
