"""Shares by precinct, partially pooled: on a grid, and of simulated precincts."""

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import beta

from numpyro_rankings.posterior.blocs import Blocs
from numpyro_rankings.posterior.slates_by import _draw_log_m, pooled_shares, slates_by
from numpyro_rankings.rankings import PartialOrders, Rankings, WeightedRankings

FOUR = {"a": "X", "b": "X", "c": "Y", "d": "Y"}
TINY = np.array([[4, 0], [1, 3], [2, 1], [0, 0]])


def log_posterior(log_m, s):
    """That of two groups, with the correlation 1 / (1 + m) uniform, and s from Jeffreys' prior."""
    m = np.exp(log_m)
    total = log_m - 2 * np.logaddexp(0, log_m) - 0.5 * np.log(s * (1 - s))
    for a, b in TINY:
        total = total + betaln(a + m * s, b + m * (1 - s)) - betaln(m * s, m * (1 - s))
    return total


def test_concentration_given_the_usual_shares_on_a_grid():
    grid = np.linspace(-12, 16, 2001)
    weights = np.exp(log_posterior(grid, 0.4))
    exact = weights @ (1 / (1 + np.exp(grid))) / weights.sum()
    rng, drawn = np.random.default_rng(0), [0.0]
    for _ in range(2500):
        drawn.append(_draw_log_m(drawn[-1], TINY, np.array([0.4, 0.6]), rng))
    assert np.mean(1 / (1 + np.exp(drawn))) == pytest.approx(exact, abs=0.03)


def test_concentration_of_many_places_that_are_alike_on_a_grid():
    """The chain begins far from it, so that a slice is wide and m is large there."""
    rng, usual = np.random.default_rng(3), np.array([0.6, 0.4])
    counts = rng.multinomial(200, usual, size=400)
    grid = np.linspace(4, 30, 2601)
    m = np.exp(grid)
    log_mass = grid - 2 * np.logaddexp(0, grid)
    for a, b in counts:
        log_mass += betaln(a + m * 0.6, b + m * 0.4) - betaln(m * 0.6, m * 0.4)
    weights = np.exp(log_mass - log_mass.max())
    drawn = [0.0]
    for _ in range(600):
        drawn.append(_draw_log_m(drawn[-1], counts, usual, rng))
    exact = weights @ grid / weights.sum()
    assert np.mean(drawn[50:]) == pytest.approx(exact, abs=0.3)


def test_all_of_it_on_a_grid():
    """Means and deviations of the shares; those of a precinct without judges are of m and s."""
    log_m, s = np.linspace(-9, 16, 401)[:, None], np.linspace(0, 1, 202)[1:-1]
    weights = np.exp(log_posterior(log_m, s))
    weights /= weights.sum()
    m = np.exp(log_m)
    drawn = pooled_shares((TINY for _ in range(2500)), np.random.default_rng(1))[..., 0]
    for k, (a, b) in enumerate(TINY):
        of_first, of_all = a + m * s, a + b + m
        mean = (weights * of_first / of_all).sum()
        square = (weights * of_first * (of_first + 1) / of_all / (of_all + 1)).sum()
        assert drawn[:, k].mean() == pytest.approx(mean, abs=0.03)
        assert drawn[:, k].std() == pytest.approx(np.sqrt(square - mean**2), abs=0.03)


def of_labels(labels, values, number):
    """Shares by value of groups that are known, in some draws that have them all."""
    rankings = Rankings.from_orderings([[0], [2]], items=list("abcd"), counts=[1, len(labels) - 1])
    slots = labels.max() + 1
    draws = {
        "assignments": np.broadcast_to(labels, (number, len(labels))),
        "weights": np.full((number, slots, 4), 0.25),
        "cluster_sizes": np.broadcast_to(np.bincount(labels), (number, slots)),
    }
    return slates_by(draws, rankings, FOUR, values, labels)


def test_intervals_of_simulated_precincts_hold():
    """Of 200 precincts with 1 to 80 judges; those with few have nearly the shares of the whole."""
    rng, usual = np.random.default_rng(0), np.array([0.5, 0.3, 0.2])
    truth, sizes = rng.dirichlet(20 * usual, 200), rng.integers(1, 81, 200)
    labels = np.concatenate([rng.choice(3, n, p=p) for n, p in zip(sizes, truth, strict=True)])
    values = np.repeat([f"P{k:03}" for k in range(200)], sizes).tolist()
    found = of_labels(labels, values, 150)
    assert found.judges.tolist() == sizes.tolist() and found.share.shape == (200, 3)
    low, high = np.moveaxis(found.share_interval, 2, 0)
    assert 0.84 < ((low <= truth) & (truth <= high)).mean() < 0.96
    np.testing.assert_allclose(found.share.sum(1), 1)
    raw = np.stack([np.bincount(np.repeat(np.arange(200), sizes), labels == k) for k in range(3)])
    raw, whole = raw.T / sizes[:, None], raw.sum(1) / sizes.sum()
    small = sizes <= 4
    assert abs(found.share - whole)[small].mean() < 0.3 * abs(raw - whole)[small].mean()
    assert abs(found.share - truth).mean() < 0.8 * abs(raw - truth).mean()


def test_places_that_are_alike_are_no_surer_than_all_together():
    """Three with four judges each: with all that is known, there are twelve."""
    values = np.repeat(["A", "B", "C"], 4).tolist()
    found = of_labels(np.tile([0, 0, 0, 1], 3), values, 400)
    width = np.diff(beta.ppf([0.05, 0.95], 9.5, 3.5))
    assert (np.diff(found.share_interval[:, 0]) > 0.9 * width).all()
    np.testing.assert_allclose(found.share[:, 0], 0.75, atol=0.08)


def of_one(rankings, values, **settings):
    """The first choices of all judges together, by value."""
    draws = {"weights": np.full((300, 4), 0.25), "log_joint": np.zeros(300)}
    return slates_by(draws, rankings, FOUR, values, **settings)


def test_first_choices_and_judges_without_a_value():
    rankings = Rankings.from_orderings([[0], [2]], items=list("abcd"), counts=[400, 300])
    found = of_one(rankings, ["N"] * 300 + [""] * 100 + ["N"] * 100 + ["S"] * 200)
    assert found.values == ("N", "S") and found.judges.tolist() == [400, 200]
    assert found.slates == ("X", "Y") and found.share.tolist() == [[1], [1]]
    np.testing.assert_allclose(found.first, [[0.75, 0.25], [0, 1]], atol=0.02)


def test_tied_first_choices_are_shared():
    lists = [[["a", "c"], "b"], ["a"]]
    orders = PartialOrders.from_buckets(lists, items=list("abcd"), counts=[800, 800])
    found = of_one(orders, ["N"] * 800 + ["S"] * 800)
    np.testing.assert_allclose(found.first, [[0.5, 0.5], [1, 0]], atol=0.03)


def test_of_blocs():
    rankings = Rankings.from_orderings([[0], [2]], items=list("abcd"), counts=[300, 300])

    class Two(Blocs):
        membership = np.array([[0.9, 0.1], [0.0, 1.0]])

    labels = np.repeat([0, 1], 300)
    blocs = Two(2, (), labels, labels, labels, 0.0)
    found = of_one(rankings, ["N"] * 300 + ["S"] * 300, blocs=blocs)
    np.testing.assert_allclose(found.share, [[0.9, 0.1], [0, 1]], atol=0.02)
    assert found.take([1]).share.shape == (2, 1)


def test_values_are_checked():
    rankings = Rankings.from_orderings([[0], [2]], items=list("abcd"))
    with pytest.raises(ValueError, match="must be 2, not 3"):
        of_one(rankings, ["N", "S", "S"])
    with pytest.raises(ValueError, match="all are empty"):
        of_one(rankings, ["", ""])
    with pytest.raises(TypeError, match="slates_by takes no survey weights"):
        of_one(WeightedRankings.of(rankings, [1.0, 3.0]), ["N", "S"])
