"""Replicated rankings: counts against brute force, shares against the models' probabilities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numpyro_rankings.datasets import simulate_mallows
from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.plots import plot_predictive_check
from numpyro_rankings.posterior import predictive_checks
from numpyro_rankings.posterior.predictive_checks import posterior_predictive_checks
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.report import figures as report

LISTS = [[0, 1], [2], [3, 2, 1], [1, 0, 2, 3], [2, 0]]
COUNTS = [3, 1, 2, 1, 4]
KEY = jax.random.key(0)


def counted_by_pairs(lists, counts, offered, n):
    first, wins = np.zeros(n), np.zeros((n, n))
    for ordering, count, there in zip(lists, counts, offered, strict=True):
        first[ordering[0]] += count
        for i in ordering:
            for j in range(n):
                before = j in ordering and ordering.index(j) <= ordering.index(i)
                wins[i, j] += count * (there[j] and not before)
    return first, wins


@pytest.mark.parametrize("has_choice_sets", [False, True])
def test_counts_against_brute_force(has_choice_sets):
    offered = np.ones((5, 4), bool)
    if has_choice_sets:
        offered[[0, 1, 4], [3, 0, 1]] = False
    rankings = Rankings.from_orderings(
        LISTS, num_items=4, counts=COUNTS, choice_sets=offered if has_choice_sets else None
    )
    sets = None if rankings.choice_sets is None else jnp.asarray(rankings.choice_sets)
    found = predictive_checks._count(rankings.orderings, rankings.counts, sets, 4)
    expected = counted_by_pairs(LISTS, COUNTS, offered, 4)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


def mallows_samples(center, theta, labels, num_draws=200):
    labels = np.tile(labels, (num_draws, 1))
    sizes = np.stack([np.bincount(x, minlength=len(center)) for x in labels])
    return {
        "assignments": labels.astype(np.int8),
        "center": np.tile(center, (num_draws, 1, 1)).astype(np.int32),
        "concentration": np.tile(theta, (num_draws, 1, 1)).astype(np.float32),
        "cluster_sizes": sizes,
    }


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(predictive_checks, "_ENTRIES", 200)


def test_mallows_mixture(small_batches):
    """Clusters as drawn, lengths as given; a ranking of cluster 0 stops after its first place."""
    n, centers = 4, np.array([[0, 1, 2, 3], [3, 2, 1, 0]])
    theta = np.array([[1.0, 0.5, 0.2], [2.0, 1.0, 1.0]])
    rankings = Rankings.from_orderings([[0], [3, 2, 1, 0]], num_items=n, counts=[20, 30])
    samples = mallows_samples(centers, theta, np.repeat([0, 1], [20, 30]))
    by_chain = {name: x.reshape(4, 50, *x.shape[1:]) for name, x in samples.items()}
    checks = posterior_predictive_checks(KEY, by_chain, rankings, num_draws=200)
    shares = [np.exp(-t * np.arange(4)) / np.exp(-t * np.arange(4)).sum() for t in (1.0, 2.0)]
    expected = 0.4 * shares[0] + 0.6 * shares[1][::-1]
    error = 5 * np.sqrt(0.25 / (50 * 200))
    np.testing.assert_allclose(checks.top.mean, expected, atol=error)
    np.testing.assert_allclose(checks.top.observed, [0.4, 0, 0, 0.6])
    assert np.all(checks.top.interval[:, 0] <= checks.top.interval[:, 1])
    # item 0 against 1: decided in all of the second kind, in the first where either is listed
    lists = GeneralizedMallows(centers[1], theta[1]).sample(jax.random.key(1), (20_000,))
    place = np.argmax(np.asarray(lists)[:, :, None] == np.arange(4), axis=1)
    place[~(np.asarray(lists)[:, :, None] == np.arange(4)).any(1)] = 9
    second = (place[:, 0] < place[:, 1]).mean()
    decided = 20 * (shares[0][0] + shares[0][1]) + 30
    expected = (20 * shares[0][0] + 30 * second) / decided
    assert checks.pairs.mean[0, 1] == pytest.approx(expected, abs=0.015)
    assert checks.pairs.observed[0, 1] == pytest.approx(0.4)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose((checks.pairs.mean + checks.pairs.mean.T)[off], 1, atol=1e-6)
    assert np.isnan(np.diag(checks.pairs.mean)).all()


def test_a_model_that_fits_and_one_that_does_not():
    center = np.arange(5)
    rankings = simulate_mallows(jax.random.key(2), 400, center, [1.0] * 4)
    labels = np.zeros(400, int)
    good = mallows_samples(center[None], np.full((1, 4), 1.0), labels)
    checks = posterior_predictive_checks(KEY, good, rankings, num_draws=60)
    good_checks = checks
    for check in checks.top, checks.pairs:  # within standard errors of 400 rankings
        error = np.sqrt(np.maximum(check.mean * (1 - check.mean), 1 / 400) / 400)
        assert np.nanmax(np.abs(check.observed - check.mean) / error) < 5.5
        assert np.any((check.p_value > 0.005) & (check.p_value < 0.995))
    flat = mallows_samples(center[None], np.zeros((1, 4)), labels)
    checks = posterior_predictive_checks(KEY, flat, rankings, num_draws=60)
    assert checks.top.p_value[0] == 0 and checks.top.p_value[4] == 1
    assert checks.pairs.p_value[0, 4] == 0
    assert not report.predictive_checks(good_checks).fit.misses_something
    said = report.predictive_checks(checks)  # what the report says of it
    assert said.fit.misses_something and said.fit.shares_outside in (4, 5) and said.fit.shares == 5
    assert said.fit.pairs == 10 and said.fit.pairs_outside > 5
    low, high = np.moveaxis(checks.pairs.interval, -1, 0)
    far = np.nan_to_num(checks.pairs.observed - high, nan=-1.0)
    i, j = np.unravel_index(far.argmax(), far.shape)
    assert i < j and far[i, j] > 0.3  # the flat model knows no order
    assert (said.worst.first, said.worst.second) == (f"item {i + 1}", f"item {j + 1}")
    shown = [checks.pairs.observed[i, j], low[i, j], high[i, j]]
    assert [said.worst.observed, said.worst.low, said.worst.high] == [*shown]


def test_plackett_luce_with_choice_sets(small_batches):
    """Nobody is offered what they were not; shares are those of the weights in play."""
    offered = np.array([[True, True, True], [True, True, False]])
    rankings = Rankings.from_orderings(
        [[0, 1], [1, 0]], num_items=3, counts=[10, 30], choice_sets=offered
    )
    weights = np.array([0.5, 0.3, 0.2])
    samples = {"weights": np.tile(weights, (300, 1)), "log_joint": np.zeros(300)}
    checks = posterior_predictive_checks(KEY, samples, rankings, num_draws=300)
    expected = 0.25 * weights + 0.75 * np.append(weights[:2] / 0.8, 0)
    np.testing.assert_allclose(checks.top.mean, expected, atol=5 * np.sqrt(0.25 / 12_000))
    assert checks.pairs.mean[0, 1] == pytest.approx(0.5 / 0.8, abs=0.025)
    assert checks.pairs.mean[0, 2] == pytest.approx(0.5 / 0.7, abs=0.05)


def test_gamma_process_mixture():
    """Items are those listed, and the pool takes its share."""
    rankings = Rankings.from_orderings([[0, 3], [3, 0]], num_items=5, counts=[20, 20])
    weights = np.tile(np.array([[0.5, 0.2], [0.1, 0.8]]), (200, 1, 1))
    samples = {
        "weights": weights,
        "unseen_weight": np.tile([0.3, 0.1], (200, 1)),
        "assignments": np.tile(np.repeat([0, 1], 20), (200, 1)),
        "cluster_sizes": np.tile([20, 20], (200, 1)),
        "log_joint": np.zeros(200),
    }
    checks = posterior_predictive_checks(KEY, samples, rankings, num_draws=200)
    assert checks.items == ("item 1", "item 4")
    np.testing.assert_allclose(checks.top.mean, [0.3, 0.5], atol=5 * np.sqrt(0.25 / 8000))


def test_a_pair_that_nobody_orders():
    rankings = Rankings.from_orderings([[0], [0]], num_items=3)
    samples = mallows_samples(np.arange(3)[None], np.array([[50.0]]), [0, 0], num_draws=5)
    checks = posterior_predictive_checks(KEY, samples, rankings)
    assert np.isnan(checks.pairs.observed[1, 2]) and np.isnan(checks.pairs.p_value[1, 2])
    assert checks.pairs.observed[0, 1] == checks.pairs.mean[0, 1] == 1
    assert checks.pairs.p_value[0, 1] == 0.5  # all equal
    ax = plot_predictive_check(checks.top, checks.items, max_items=2)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["item 1", "item 2"]
    assert plot_predictive_check(checks.top, checks.items, ax=ax) is ax


def test_bad_input():
    rankings = Rankings.from_orderings([[0], [1]], num_items=3)
    samples = mallows_samples(np.arange(3)[None], np.array([[1.0]]), [0, 0, 0], num_draws=5)
    with pytest.raises(ValueError, match="the run was of 3 rankings of 3 items; these are 2 of 3"):
        posterior_predictive_checks(KEY, samples, rankings)
    with pytest.raises(ValueError, match="num_draws must be"):
        posterior_predictive_checks(KEY, samples, rankings, num_draws=0)
    with pytest.raises(ValueError, match="samples must be those of"):
        posterior_predictive_checks(KEY, {}, rankings)
