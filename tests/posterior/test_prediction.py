"""Predictive probability of new points: against sums over all partitions and all links."""

import itertools
import math

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.enumeration import partitions
from helpers.exact_partitions import components, log_marginals
from jax import jit, lax, random
from numpyro.infer import MCMC

from numpyro_rankings import Rankings, log_predictive_of_points
from numpyro_rankings.components import (
    DirichletMultinomial,
    GaussianMean,
    PlackettLuceWeights,
    SparseCounts,
)
from numpyro_rankings.components.family import Augmented, AugmentedFamily
from numpyro_rankings.infer import CollapsedGibbs, DDCRPGibbs
from numpyro_rankings.links.decays import exponential_decay, window_decay
from numpyro_rankings.links.distances import SparseDistances
from numpyro_rankings.posterior.prediction import _by_draw

GAUSS, TEXT = GaussianMean(1.5, 0.6), DirichletMultinomial(0.7)
LINE = np.array([[-1.0], [0.2], [-0.7], [0.9]])
COUNTS = np.array([[2, 0, 1], [0, 2, 2], [3, 1, 0], [0, 3, 1]])
TIMES = np.array([0.0, 0.4, 1.3, 2.1])
GENERAL = np.abs(TIMES[:, None] - TIMES)
SEQUENTIAL = np.where(np.arange(4)[:, None] > np.arange(4), GENERAL, np.inf)
ALPHA = 0.8


def log_likelihood(scores, labels, known):
    """Of the first points of a partition."""
    blocks = (np.flatnonzero(np.equal(labels[:known], c)) for c in set(labels[:known]))
    return sum(scores[tuple(block)] for block in blocks)


def log_restaurant(labels, discount):
    """Seat by seat."""
    total, sizes = 0.0, []
    for i, c in enumerate(labels):
        weight = ALPHA + discount * len(sizes) if c == len(sizes) else sizes[c] - discount
        total += math.log(weight / (ALPHA + i))
        if c == len(sizes):
            sizes.append(0)
        sizes[c] += 1
    return total


@pytest.mark.parametrize("discount", [0.0, 0.3])
def test_restaurant(discount):
    """Σ over partitions of p(x_new | x, c) p(c | x) is the ratio of two marginals."""
    scores = log_marginals(GAUSS, LINE)
    evidence = {
        n: [log_restaurant(z, discount) + log_likelihood(scores, z, n) for z in partitions(n)]
        for n in (3, 4)
    }
    expected = np.logaddexp.reduce(evidence[4]) - np.logaddexp.reduce(evidence[3])
    kernel = CollapsedGibbs(GAUSS, ALPHA, discount=discount, max_clusters=5)
    found = _by_draw(kernel, draws_of(list(partitions(3))), LINE[:3], LINE[3:], None)
    total = np.logaddexp.reduce(found[:, 0] + np.array(evidence[3])) - np.logaddexp.reduce(
        evidence[3]
    )
    assert total == pytest.approx(expected, abs=1e-5)


def draws_of(labels, linked=False):
    """As if a run had drawn each of these partitions once."""
    samples = {"assignments": np.array(labels), "alpha": np.full(len(labels), ALPHA)}
    return samples | ({"links": samples["assignments"]} if linked else {})


def evidence_of_links(distances, scores, known, decay):
    """Log weight of each set of links with the data, (S,), and the sets."""
    size = len(distances)
    weights = np.array(decay(distances), float)
    np.fill_diagonal(weights, ALPHA)
    every = list(itertools.product(range(size), repeat=size))
    with np.errstate(divide="ignore"):
        log_prior = np.log(weights / weights.sum(1, keepdims=True))
    return every, np.array(
        [
            log_prior[np.arange(size), links].sum()
            + log_likelihood(scores, components(links), known)
            for links in every
        ]
    )


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_links_to_earlier_points(form):
    """eq. (8): the new point is last in time."""
    decay = exponential_decay(0.8)
    scores = log_marginals(TEXT, COUNTS)
    _, after = evidence_of_links(SEQUENTIAL, scores, 4, decay)
    every, before = evidence_of_links(SEQUENTIAL[:3, :3], scores, 3, decay)
    expected = np.logaddexp.reduce(after) - np.logaddexp.reduce(before)
    possible = before > -np.inf
    distances = SEQUENTIAL[3:, :3]
    if form == "sparse":
        distances = SparseDistances(np.array([[2, 0, -1, 1]]), distances[:, [2, 0, 0, 1]])
    samples = draws_of([components(links) for links in np.array(every)[possible]], linked=True)
    kernel = DDCRPGibbs(TEXT, ALPHA, decay)
    found = _by_draw(kernel, samples, COUNTS[:3], COUNTS[3:], distances)
    total = np.logaddexp.reduce(found[:, 0] + before[possible]) - np.logaddexp.reduce(before)
    assert total == pytest.approx(expected, abs=1e-5)


def test_links_of_a_point_that_is_awaited():
    """General distances: links go to the new point too, whose value is not known in the fit."""
    decay = window_decay(1.5)
    scores = log_marginals(GAUSS, LINE)
    every, before = evidence_of_links(GENERAL, scores, 3, decay)
    _, after = evidence_of_links(GENERAL, scores, 4, decay)
    expected = np.logaddexp.reduce(after) - np.logaddexp.reduce(before)
    samples = draws_of([components(links) for links in every], linked=True)
    found = _by_draw(DDCRPGibbs(GAUSS, ALPHA, decay), samples, LINE[:3], LINE[3:], None)
    total = np.logaddexp.reduce(found[:, 0] + before) - np.logaddexp.reduce(before)
    assert total == pytest.approx(expected, abs=1e-5)


def test_draws_are_averaged():
    """Over chains and draws, each with its own α and scale; sparse counts as dense ones."""
    samples = {
        "assignments": np.array([[[0, 0, 1], [0, 1, 2]], [[0, 0, 0], [0, 1, 1]]]),
        "alpha": np.array([[0.5, 1.0], [2.0, 0.7]]),
        "decay_scale": np.array([[0.3, 1.0], [0.8, 2.0]]),
    }
    samples["links"] = samples["assignments"]
    kernel = DDCRPGibbs(TEXT, ALPHA, exponential_decay(dist.LogNormal(0.0, 1.0)))
    new, distances = np.array([[1, 0, 0], [0, 4, 1]]), np.array([[0.2, 1.0, 3.0], [0.1, 0.1, 5.0]])
    found = log_predictive_of_points(kernel, samples, COUNTS[:3], new, distances)
    each = np.asarray(_by_draw(kernel, samples, COUNTS[:3], new, distances))
    np.testing.assert_allclose(found, np.logaddexp.reduce(each) - math.log(4), rtol=1e-5)
    one = {name: x[1:, 0] for name, x in samples.items()}
    alone = log_predictive_of_points(kernel, one, COUNTS[:3], new, distances)
    np.testing.assert_allclose(alone, each[2], rtol=1e-5)
    words = np.broadcast_to(np.arange(3), (3, 3))
    sparse = DDCRPGibbs(DirichletMultinomial(0.7, vocabulary_size=3), ALPHA, exponential_decay(1.0))
    again = log_predictive_of_points(
        sparse,
        samples,
        SparseCounts(words, COUNTS[:3]),
        SparseCounts(words[:2], new),
        distances,
    )
    np.testing.assert_allclose(found, again, rtol=1e-5)


ORDERS = [[0, 2, 1], [0, 1, 2], [2], [2, 0]]
LISTS = Rankings.from_orderings(ORDERS, num_items=3)
WEIGHTS = PlackettLuceWeights([0.5, 1.0, 0.8])


def draws_without_links(samples):
    return {name: x for name, x in samples.items() if name != "links"}


def parts(number):
    """The first lists, and the others."""
    return (Rankings.from_orderings(x, num_items=3) for x in (ORDERS[:number], ORDERS[number:]))


def times_given(labels, rankings, number):
    """Draws of the waiting times given a partition, by their update."""
    labels, data = jnp.array(labels), rankings

    def step(times, key):
        times = WEIGHTS.refresh(key, Augmented(data, times), labels, 3)
        return times, times

    start = WEIGHTS.start(random.key(0), data)
    run = jit(lambda keys: lax.scan(step, start, keys)[1])
    return np.asarray(run(random.split(random.key(1), number + 50)))[50:]


@pytest.mark.parametrize("linked", [False, True])
def test_rankings_with_unknown_weights(linked):
    """The probability of a list without its waiting times is a ratio of exact marginals."""
    lists, new = parts(3)
    labels, number = [0, 0, 1], 3000
    samples = draws_of([labels] * number, linked)
    samples["times"] = times_given(labels, lists, number)
    scores = log_marginals(WEIGHTS, LISTS)
    ratios = [(0, 1, 3), (2, 3), (3,)]
    p = np.exp([scores[s] - scores.get(s[:-1], 0.0) for s in ratios])
    if linked:
        kernel = DDCRPGibbs(WEIGHTS, ALPHA, exponential_decay(0.8))
        distances = np.array([[0.3, 1.0, 0.5]])
        f = np.exp(-distances[0] / 0.8)
        seats = np.array([f[0] + f[1], f[2], ALPHA])
    else:
        kernel, distances = CollapsedGibbs(WEIGHTS, ALPHA, max_clusters=4), None
        seats = np.array([2.0, 1.0, ALPHA])
    expected = np.log(seats @ p / seats.sum())
    found = log_predictive_of_points(kernel, samples, lists, new, distances, num_parameters=20)
    assert float(found[0]) == pytest.approx(expected, abs=0.01)
    few = {name: x[:2] for name, x in samples.items()}
    one, two = (
        log_predictive_of_points(kernel, few, lists, new, distances, key=random.key(k))
        for k in (1, 2)
    )
    assert one != two
    others = Rankings.from_orderings([[0, 1]], num_items=4)
    of_any = CollapsedGibbs(PlackettLuceWeights(), ALPHA, max_clusters=4)
    with pytest.raises(ValueError, match="new rankings are of 4 items, the fitted ones of 3"):
        log_predictive_of_points(of_any, draws_without_links(few), lists, others)
    with pytest.raises(ValueError, match="draws are of 3 points, and 4 are given"):
        log_predictive_of_points(kernel, few, LISTS, new, distances)
    with pytest.raises(ValueError, match="num_parameters must be"):
        log_predictive_of_points(kernel, few, lists, new, distances, num_parameters=0)
    del few["times"]
    with pytest.raises(ValueError, match=r"samples must be those of the kernel, with .*times"):
        log_predictive_of_points(kernel, few, lists, new, distances)


def test_rankings_that_are_awaited():
    """Two lists whose values are unknown, each predicted from its cluster."""
    lists, new = parts(2)
    number = 2000
    samples = draws_of([[0, 1, 1, 2]] * number, linked=True)
    samples["times"] = times_given([0, 1], lists, number)
    kernel = DDCRPGibbs(WEIGHTS, ALPHA, exponential_decay(0.8))
    found = log_predictive_of_points(kernel, samples, lists, new, num_parameters=20)
    scores = log_marginals(WEIGHTS, LISTS)
    np.testing.assert_allclose(found, [scores[1, 2] - scores[1,], scores[3,]], atol=0.015)


def test_a_family_of_ones_own_with_auxiliary_variables():
    class Other(PlackettLuceWeights):
        log_predictive_of_values = AugmentedFamily.log_predictive_of_values

    samples = draws_of([[0, 0, 1]]) | {"times": np.ones((1, 3, 3))}
    lists, new = parts(3)
    kernel = CollapsedGibbs(Other(), ALPHA, max_clusters=4)
    with pytest.raises(ValueError, match="define its method log_predictive_of_values"):
        log_predictive_of_points(kernel, samples, lists, new)


def test_bad_input():
    kernel = CollapsedGibbs(GAUSS, max_clusters=5)
    samples = {"assignments": np.array([[0, 0, 1]]), "alpha": np.array([1.0])}
    block, links = (
        CollapsedGibbs(GAUSS, model=lambda x: None),
        DDCRPGibbs(GAUSS, 1.0, exponential_decay(1.0)),
    )
    labels = samples["assignments"]
    linked, three, last = samples | {"links": labels}, LINE[:3], LINE[3:]
    for message, *arguments in (
        ("draws are of 3 points, and 4 are given", kernel, samples, LINE, LINE),
        ("not finite", kernel, samples, three, [[np.nan]]),
        ("distances are for DDCRPGibbs", kernel, samples, three, last, GENERAL[3:, :3]),
        ("samples must be those of the kernel", kernel, {"assignments": labels}, three, last),
        ("samples must be those of the kernel", kernel, None, three, last),
        ("samples must be those of the kernel", kernel, {}, three, last),
        ("labels from 0", kernel, samples | {"assignments": labels - 1}, three, last),
        ("alpha must be positive", kernel, samples | {"alpha": [np.nan]}, three, last),
        ("those of DDCRPGibbs", kernel, linked, three, last),
        ("differ in their dimension", kernel, samples, three, [[0.1, 0.2]]),
        ("differ in their dimension", CollapsedGibbs(TEXT), samples, COUNTS[:3], [[3]]),
        ("the kernel is a block", block, samples, three, last),
        ("with assignments, alpha, links", links, samples, three, last),
        (r"array \(1, 3\), got shape \(1, 4\)", links, linked, three, last, GENERAL[3:]),
        ("distances from new points to the fitted ones are needed", links, linked, three, last),
        ("draws are of 3 points, and 4 are given", links, linked, LINE[:2], LINE[2:]),
        ("must be a kernel of partitions", GAUSS, linked, three, last),
    ):
        with pytest.raises(ValueError, match=message):
            log_predictive_of_points(*arguments)


@pytest.mark.slow
def test_from_a_run():
    """A new point beside a cluster is likelier than one between two."""
    mcmc = MCMC(
        DDCRPGibbs(GaussianMean(3.0, 0.3), 0.5, exponential_decay(2.0)),
        num_warmup=50,
        num_samples=200,
        progress_bar=False,
    )
    data = jnp.array([[-1.5], [-1.4], [2.1], [2.5]])
    distances = np.abs(np.arange(6.0)[:, None] - np.arange(6.0))
    mcmc.run(random.key(0), data, distances)
    found = log_predictive_of_points(mcmc.sampler, mcmc.get_samples(), data, [[2.2], [0.3]])
    assert mcmc.get_samples()["links"].shape == (200, 6)
    assert found[0] > found[1] + 1.0
