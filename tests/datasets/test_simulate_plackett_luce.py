"""Generators of the Plackett–Luce models, and what fitted ones predict."""

import itertools

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.lists import assert_frequencies, log_prob_twin, top_lists
from jax import random
from numpyro.infer import MCMC

from numpyro_rankings import Rankings, RankingsError, log_predictive_density, predict_items
from numpyro_rankings.datasets import (
    simulate_gamma_process,
    simulate_plackett_luce,
    simulate_plackett_luce_mixture,
)
from numpyro_rankings.infer import GammaProcessPlackettLuceGibbs, PlackettLuceGibbs

WEIGHTS = np.array([0.5, 2.0, 1.0, 0.7])


def test_plackett_luce():
    rankings = simulate_plackett_luce(random.key(0), 20_000, WEIGHTS, 2)
    lists = top_lists(4, 2)
    twin = [log_prob_twin(x, WEIGHTS) for x in lists]
    assert_frequencies(rankings.orderings, lists, twin)
    lengths = np.arange(6) % 4 + 1
    mixed = simulate_plackett_luce(random.key(0), 6, WEIGHTS, lengths, items=list("abcd"))
    assert mixed.lengths.tolist() == lengths.tolist() and mixed.items == ("a", "b", "c", "d")
    offered = np.array([True, False, True, True])
    subsets = simulate_plackett_luce(random.key(1), 20_000, WEIGHTS, choice_sets=offered)
    lists = np.array([x for x in top_lists(4, 3) if 1 not in x])
    twin = [log_prob_twin(x, WEIGHTS, offered=offered) for x in lists]
    assert_frequencies(subsets.orderings, lists, twin)
    assert subsets.choice_sets.shape == (20_000, 4)


def test_mixture():
    weights = np.array([[8.0, 1.0, 1.0], [1.0, 1.0, 8.0]])
    truth = simulate_plackett_luce_mixture(random.key(0), 20_000, weights, 1, [0.75, 0.25])
    assert abs(np.mean(truth.assignments == 0) - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 20_000)
    for c in range(2):
        lists = np.asarray(truth.rankings.orderings)[truth.assignments == c]
        assert_frequencies(lists, top_lists(3, 1), np.log(weights[c] / 10.0))
    np.testing.assert_allclose(truth.weights.sum(1), 1.0)


@pytest.mark.parametrize("sigma", [0.0, 0.4])
def test_gamma_process(sigma):
    """The number of items in lists of one, and how often the second shows a new one."""
    alpha, tau, replicates = 1.5, 0.7, 3000
    items, second = [], []
    for i in range(replicates):
        lists = np.asarray(
            simulate_gamma_process(random.key(i), 6, 1, alpha, tau, sigma).rankings.orderings
        )[:, 0]
        items.append(len(np.unique(lists)))
        second.append(lists[1] != lists[0])
    if sigma == 0:
        expected = sum(alpha / (alpha + i) for i in range(6))  # the Chinese restaurant
        assert abs(np.mean(items) - expected) < 4 * np.std(items) / np.sqrt(replicates)
        new = alpha / (alpha + 1)
    else:
        u = np.exp(np.linspace(-25, 30, 20_001))
        density = u * (tau + u) ** (sigma - 1.0)
        density *= np.exp(-alpha / sigma * ((tau + u) ** sigma - tau**sigma))
        new = (density * u * alpha * (tau + u) ** (sigma - 1.0)).sum() / density.sum()
    assert abs(np.mean(second) - new) < 4 * np.sqrt(new * (1 - new) / replicates)


def test_gamma_process_lists():
    """Lists of two: the second item given a first one, of the item's weight, by simulation."""
    sample = simulate_gamma_process(random.key(0), 40, 3, 5.0)
    orderings = np.asarray(sample.rankings.orderings)
    assert len(sample.weights) == sample.rankings.num_items == orderings.max() + 1
    assert all(len(set(row)) == 3 for row in orderings.tolist())
    # items are numbered as they come
    first = [int(np.argmax((orderings == k).any(1))) for k in range(len(sample.weights))]
    assert first == sorted(first)
    # the first two lists of two swap places: the law of rankings is exchangeable
    pairs = [
        tuple(np.asarray(simulate_gamma_process(random.key(i), 2, 2, 1.0).rankings.orderings)[1])
        for i in range(3000)
    ]
    # P(second list repeats the first) is P(first repeats second): both orders are as probable
    same, swapped = pairs.count((0, 1)), pairs.count((1, 0))
    assert same > swapped > 0
    # a tiny α still fills its lists
    assert simulate_gamma_process(random.key(1), 3, 3, 1e-3).rankings.num_items >= 3
    assert (
        simulate_gamma_process(random.key(1), 3, 1, 1e-6).rankings.orderings.tolist() == [[0]] * 3
    )


def test_bad_arguments():
    key = random.key(0)
    for call, message in (
        (lambda: simulate_plackett_luce(key, 3, [1.0, 0.0]), "positive"),
        (lambda: simulate_plackett_luce(key, 3, [1.0, 2.0], 3), "from 1 to 2"),
        (lambda: simulate_plackett_luce(key, 3, WEIGHTS, choice_sets=np.ones(4)), "booleans"),
        (
            lambda: simulate_plackett_luce(key, 3, WEIGHTS, choice_sets=np.zeros(4, bool)),
            "offers no item",
        ),
        (lambda: simulate_plackett_luce_mixture(key, 3, WEIGHTS[None], 1, [1.0, 1.0]), "shares"),
        (lambda: simulate_gamma_process(key, 3, 1, 0.0), "alpha must be"),
        (lambda: simulate_gamma_process(key, 3, 1, 1.0, sigma=1.0), "sigma must be"),
        (lambda: simulate_gamma_process(key, 0, 1, 1.0), "at least 1"),
    ):
        with pytest.raises(RankingsError, match=message):
            call()


@pytest.fixture(scope="module")
def fitted():
    """Of a gamma process with α = 2 after 5 lists of one item and 1 of another, in closed form."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([5.0, 1.0, 2.0], 3000).astype(np.float32)
    return {
        "weights": shares[:, :2],
        "unseen_weight": shares[:, 2],
        "unseen_rate": rng.gamma(8.0, size=3000).astype(np.float32),  # of the total, before
        "alpha": np.full(3000, 2.0, np.float32),
        "log_joint": np.zeros(3000, np.float32),
    }


def test_predicted_items(fitted):
    """After six lists of one the next shows a new item with probability α/(α + 6), and so on."""
    predicted = predict_items(random.key(1), fitted, 5, 1)
    assert predicted.distinct.shape == predicted.new.shape == (3000, 5)
    new = np.cumsum([2.0 / (2.0 + 6 + i) for i in range(5)])
    error = predicted.new.std(0) / np.sqrt(3000)
    assert np.all(np.abs(predicted.new.mean(0) - new) < 4.5 * error)
    # a known item k is among L lists with probability 1 - (1 - p)^L, p ~ Beta(n_k, 8 - n_k)
    lists = np.arange(1, 6)
    known = sum(
        1 - np.array([np.prod([(8 - n + i) / (8 + i) for i in range(ell)]) for ell in lists])
        for n in (5, 1)
    )
    error = predicted.distinct.std(0) / np.sqrt(3000)
    assert np.all(np.abs(predicted.distinct.mean(0) - new - known) < 4.5 * error + 1e-9)
    only_weights = {"weights": fitted["weights"]}
    for samples, num_lists, length, options, message in (
        (fitted, 5, 1, {"sigma": 0.5}, "sigma"),
        (only_weights, 5, 1, {}, "samples must be those of"),
        (fitted, 5, 0, {}, "length"),
        (fitted, 1.5, 1, {}, "num_lists must be a positive whole number"),
        (fitted, 5, 1, {"tau": 2.0}, "tau is for"),
        (fitted, 5, 1, {"tau": 0.0}, "tau must be a positive number"),
    ):
        with pytest.raises(ValueError, match=message):
            predict_items(random.key(1), samples, num_lists, length, **options)
    with pytest.raises(ValueError, match="num_new_clusters must be a positive whole number"):
        rankings = Rankings.from_orderings([[0]], num_items=2)
        log_predictive_density(fitted, rankings, num_new_clusters=0)
    with pytest.raises(ValueError, match="num_components is for"):
        log_predictive_density(fitted, Rankings.from_orderings([[0]], num_items=2), 3)


@pytest.mark.slow
def test_predicted_items_of_a_generalised_process():
    """The next item is new as often as the unseen weight says."""
    rankings = Rankings.from_orderings([[0, 1], [2, 0]], num_items=3)
    mcmc = MCMC(
        GammaProcessPlackettLuceGibbs(dist.Gamma(2.0, 1.0), 1.0, 0.5),
        num_warmup=50,
        num_samples=4000,
        progress_bar=False,
    )
    mcmc.run(random.key(0), rankings)
    samples = mcmc.get_samples()
    new = predict_items(random.key(1), samples, 1, 1, sigma=0.5).new[:, 0]
    unseen = np.asarray(samples["unseen_weight"], float)
    error = np.sqrt((new.var() + unseen.var()) / 1000)  # 1,000 of the draws are effective
    assert abs(new.mean() - unseen.mean()) < 4 * error


def test_log_predictive_density_of_lists_with_new_items():
    """By quadrature over the share V ~ Beta(1, α) of the unseen that a new item takes."""
    alpha, w, u, draws = 1.5, np.array([0.5, 0.2]), 0.3, 20_000
    samples = {
        "weights": np.tile(w, (draws, 1)),
        "unseen_weight": np.full(draws, u),
        "alpha": np.full(draws, alpha),
        "log_joint": np.zeros(draws),
    }
    seen = Rankings.from_orderings([["b"], ["d"]], items=["a", "b", "c", "d"])
    lists = [["c"], ["d", "c"], ["c", "b"], ["a", "c", "d"], ["b", "d"]]
    new = Rankings.from_orderings(lists, items=["d", "c", "b", "a"])
    v = (np.arange(4000) + 0.5) / 4000
    density = alpha * (1 - v) ** (alpha - 1) / 4000
    left = u * (1 - v)
    one = left[:, None] * (1 - v)  # after two new ones, by the share of the second
    third = 0.2 / (0.7 + one) @ density
    expected = [
        u,
        0.2 * u / 0.8,
        density @ (u * 0.5 / (0.7 + left)),
        density @ (u * left / (0.7 + left) * third),
        0.5 * 0.2 / 0.5,
    ]
    computed = np.exp(log_predictive_density(samples, new, fitted=seen))
    np.testing.assert_allclose(computed, expected, rtol=0.02)
    assert computed[[0, 1, 4]] == pytest.approx(np.array(expected)[[0, 1, 4]], rel=1e-4)
    with pytest.raises(ValueError, match="row 1 lists 'c', which no fitted ranking lists"):
        log_predictive_density(samples | {"total_weight": np.ones(draws)}, new, fitted=seen)
    with pytest.raises(ValueError, match="samples are of 2 items, the fitted rankings of 1"):
        log_predictive_density(samples, new, fitted=Rankings.from_orderings([[0]], num_items=2))


@pytest.mark.slow
def test_log_predictive_density(fitted):
    new = Rankings.from_orderings([[0], [1, 0]], num_items=2, counts=[1, 4])
    computed = log_predictive_density(fitted, new)
    weights, unseen = np.asarray(fitted["weights"], float), np.asarray(fitted["unseen_weight"])
    for row, ranking in enumerate([[0], [1, 0]]):
        twin = [log_prob_twin(ranking, w, u) for w, u in zip(weights, unseen, strict=True)]
        assert float(computed[row]) == pytest.approx(np.log(np.mean(np.exp(twin))), rel=1e-4)
    with pytest.raises(ValueError, match="pass fitted= to match items by name"):
        log_predictive_density(fitted, Rankings.from_orderings([[0]], num_items=3))

    kernel = PlackettLuceGibbs(num_components=2, alpha=1.5, num_marginal_steps=0)
    mcmc = MCMC(
        kernel,
        num_warmup=5,
        num_samples=20,
        num_chains=2,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(random.key(0), Rankings.from_orderings([[0, 1], [2], [2, 0]], num_items=3))
    samples = mcmc.get_samples(group_by_chain=True)
    offered = np.array([[1, 1, 1], [0, 1, 1]], bool)
    new = Rankings.from_orderings([[2, 0], [1]], num_items=3, choice_sets=offered)
    computed = log_predictive_density(samples, new)
    for row, ranking in enumerate([[2, 0], [1]]):
        total = 0.0
        for chain, draw in itertools.product(range(2), range(20)):
            sizes = np.asarray(samples["cluster_sizes"])[chain, draw] + 0.75
            shares = sizes / sizes.sum()
            for c in range(2):
                weights = np.asarray(samples["weights"][chain, draw, c], float)
                total += shares[c] * np.exp(log_prob_twin(ranking, weights, 0.0, offered[row]))
        assert float(computed[row]) == pytest.approx(np.log(total / 40), rel=1e-4)
    by_draw = mcmc.get_samples()
    np.testing.assert_allclose(log_predictive_density(by_draw, new), computed, rtol=1e-5)
    assert jnp.ndim(by_draw["weights"]) == 3
