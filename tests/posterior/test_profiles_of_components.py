"""Profiles of clusters whose parameters a kernel of partitions integrates out."""

import numpy as np
import pytest
from helpers.exact_partitions import log_marginals
from helpers.lists import mallows_twin
from jax import jit, lax, random
from numpyro.infer import MCMC

from numpyro_rankings import Rankings, cluster_profiles
from numpyro_rankings.components import GaussianMean, MallowsCenter, PlackettLuceWeights
from numpyro_rankings.components.family import Augmented
from numpyro_rankings.infer import CollapsedGibbs, DDCRPGibbs, exponential_decay

LISTS = [[0, 2, 1], [0, 1, 2], [0, 2], [2, 1, 0]]
RANKINGS = Rankings.from_orderings(LISTS, num_items=3, items=["a", "b", "c"])
LABELS = np.array([0, 0, 0, 1])
DRAWS = 4000


def draws_of(**more):
    labels = np.broadcast_to(LABELS, (DRAWS, 4))
    return {"assignments": labels, "alpha": np.ones(DRAWS), **more}


def test_centers_and_concentrations():
    """Those of the first cluster are drawn from their posterior, by enumeration."""
    family = MallowsCenter([0.5, 1.5], [0.3, 0.7])
    first, other = cluster_profiles(draws_of(), RANKINGS, family=family)
    assert (first.size, other.size, first.presence) == (3.0, 1.0, 1.0)
    assert first.consensus[0] == "a" and other.consensus[0] == "c"
    centers = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
    weights = np.ones((6, 2))
    for c, center in enumerate(centers):
        for g, (theta, prob) in enumerate([(0.5, 0.3), (1.5, 0.7)]):
            likelihoods = [mallows_twin(x, center, [theta] * 3) for x in LISTS[:3]]
            weights[c, g] = prob * np.prod(likelihoods)
    weights /= weights.sum()
    ranks = np.argsort(centers, axis=1) + 1
    np.testing.assert_allclose(first.rank_mean, weights.sum(1) @ ranks, atol=0.05)
    expected = weights.sum(0) @ [0.5, 1.5]
    np.testing.assert_allclose(first.concentration, [expected] * 2, atol=0.05)


def test_weights_given_the_waiting_times():
    """The mean weight of an item is the probability that it comes first."""
    family = PlackettLuceWeights([0.5, 1.0, 0.8])

    def step(times, key):
        times = family.refresh(key, Augmented(RANKINGS, times), LABELS, 2)
        return times, times

    run = jit(lambda keys: lax.scan(step, family.start(random.key(0), RANKINGS), keys)[1])
    times = np.asarray(run(random.split(random.key(1), DRAWS)))
    samples = draws_of(times=times)
    first, other = cluster_profiles(samples, RANKINGS, family=family)
    assert first.consensus[0] == "a" and other.unseen_weight is None
    further = Rankings.from_orderings([*LISTS[:3], [0], [1], [2]], num_items=3)
    scores = log_marginals(family, further)
    expected = [np.exp(scores[0, 1, 2, 3 + k] - scores[0, 1, 2]) for k in range(3)]
    np.testing.assert_allclose(first.weights, expected, atol=0.01)
    # a run knows its family, and leaves out points whose values are unknown
    distances = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    kernel = DDCRPGibbs(family, 1.0, exponential_decay(1.0))
    mcmc = MCMC(kernel, num_warmup=0, num_samples=DRAWS)
    labels = np.concatenate([samples["assignments"], np.full((DRAWS, 1), 2)], axis=1)
    linked = samples | {"assignments": labels, "links": labels}
    mcmc._states = {"z": {name: x[None] for name, x in linked.items()}}
    mcmc._args, mcmc._kwargs = (RANKINGS, distances), {}
    again = cluster_profiles(mcmc, RANKINGS)
    np.testing.assert_array_equal(again[0].weights, first.weights)
    with pytest.raises(ValueError, match="a run knows the names of its sites and its family"):
        cluster_profiles(mcmc, RANKINGS, family=family)


def test_what_has_no_profiles():
    kernel = CollapsedGibbs(GaussianMean(1.0, 1.0))
    samples = draws_of()
    with pytest.raises(ValueError, match="GaussianMean is no family of rankings"):
        cluster_profiles(samples, RANKINGS, family=kernel.family)
    with pytest.raises(ValueError, match="samples have no 'times', which PlackettLuceWeights"):
        cluster_profiles(samples, RANKINGS, family=PlackettLuceWeights())
    fewer = Rankings.from_orderings(LISTS[:3], num_items=3)
    with pytest.raises(ValueError, match="was of 4 rankings; these are 3"):
        cluster_profiles(samples, fewer, family=MallowsCenter(1.0))
    times = np.ones((DRAWS, 5, 3))
    with pytest.raises(ValueError, match="was of 5 rankings; these are 4"):
        cluster_profiles(draws_of(times=times), RANKINGS, family=PlackettLuceWeights())
    with pytest.raises(TypeError, match="rankings must be a Rankings"):
        cluster_profiles(samples, LISTS, family=MallowsCenter(1.0))
    with pytest.raises(ValueError, match="pass the run instead"):
        cluster_profiles(samples, RANKINGS)
