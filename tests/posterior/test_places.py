"""Mean ranks and shares of places of parts of the judges, by hand."""

import numpy as np
import pytest
from scipy.stats import beta, t

from numpyro_rankings.posterior.places import places_of
from numpyro_rankings.rankings import PartialOrders, Rankings

ITEMS = ["a", "b", "c", "d"]


def test_lists_of_two_parts():
    """Three judges say a > b, one says d > c > b; the second part has half of the latter."""
    rankings = Rankings.from_orderings([[0, 1], [3, 2, 1]], items=ITEMS, counts=[3, 1])
    places = places_of(rankings, np.array([[3.0, 0.0], [0.5, 0.5]]))
    # c and d share the ranks 3 and 4 in the first list; a is fourth in the other
    of_lists = np.array([[1, 2, 3.5, 3.5], [4, 3, 2, 1]])
    np.testing.assert_allclose(places.mean[0], (3 * of_lists[0] + 0.5 * of_lists[1]) / 3.5)
    np.testing.assert_allclose(places.mean[1], of_lists[1])
    np.testing.assert_allclose(places.first, [[6 / 7, 0, 0, 1 / 7], [0, 0, 0, 1]])
    # not listed is not among the first three
    np.testing.assert_allclose(places.top, [[6 / 7, 1, 1 / 7, 1 / 7], [0, 1, 1, 1]])
    np.testing.assert_allclose(places.overall, (3 * of_lists[0] + of_lists[1]) / 4)
    mean = places.mean[0, 0]
    spread = np.sqrt((3 * (1 - mean) ** 2 + 0.5 * (4 - mean) ** 2) / 2.5 / 3.5)
    bounds = np.clip(mean + t.ppf([0.05, 0.95], 2.5) * spread, 1, 4)
    np.testing.assert_allclose(places.mean_interval[0, 0], bounds)
    assert np.isnan(places.mean_interval[1, 0]).all()  # of less than one judge
    np.testing.assert_allclose(places.first_interval[0, 0], beta.ppf([0.05, 0.95], 3.5, 1.0))
    np.testing.assert_allclose(places.first_interval[0, 1], [0, beta.ppf(0.95, 0.5, 4.0)])
    assert places.items == tuple(ITEMS)


def test_ties_have_the_mean_of_their_ranks():
    orders = PartialOrders.from_buckets([[["a", "b"], "c"], ["d", ["b", "c"]]], items=ITEMS)
    places = places_of(orders, np.eye(2))
    np.testing.assert_allclose(places.mean, [[1.5, 1.5, 3, 4], [4, 2.5, 2.5, 1]])
    np.testing.assert_allclose(places.first, [[0, 0, 0, 0], [0, 0, 0, 1]])
    np.testing.assert_allclose(places.top, [[1, 1, 1, 0], [0, 1, 1, 1]])


def test_items_that_were_not_offered_do_not_count():
    offered = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], bool)
    rankings = Rankings.from_orderings([[0], [3]], items=ITEMS, choice_sets=offered)
    places = places_of(rankings, np.ones((2, 1)))
    # b and c have ranks 2.5 of three, and 3 of four
    np.testing.assert_allclose(places.mean[0], [2, 2.75, 2.75, 1])
    np.testing.assert_allclose(places.first[0], [0.5, 0, 0, 1])
    nobody = places_of(rankings, np.array([[1.0], [0.0]]))
    assert np.isnan(nobody.mean[0, 3]) and np.isnan(nobody.first_interval[0, 3]).all()


def test_pairs_have_no_ranks_and_three_items_no_first_three():
    orders = PartialOrders.from_buckets([["a", "b", "c"]], items=["a", "b", "c"])
    assert places_of(orders, np.ones((1, 1))).top is None
    import pandas as pd

    pairs = pd.DataFrame({"judge": [1, 1], "winner": ["a", "c"], "loser": ["b", "d"]})
    pairs = PartialOrders.from_pairs(pairs, judge="judge", winner="winner", loser="loser")
    assert places_of(pairs, np.ones((pairs.num_rows, 1))) is None


@pytest.mark.parametrize("size", [50, 400])
def test_intervals_cover_the_mean_of_the_population(size):
    """In nine of ten samples, within four standard errors."""
    rng, times = np.random.default_rng(size), 400
    scores = rng.gumbel(size=(times * size, 4)) + [1.5, 1.0, 0.5, 0.0]
    orderings = np.argsort(-scores, 1)
    ranks = np.argsort(orderings, 1) + 1
    truth, first = ranks.mean(0), (ranks == 1).mean(0)
    cover = np.zeros(2)
    for sample in orderings.reshape(times, size, 4):
        places = places_of(Rankings.from_orderings(sample, items=ITEMS), np.ones((size, 1)))
        for k, (bounds, x) in enumerate(
            [(places.mean_interval, truth), (places.first_interval, first)]
        ):
            cover[k] += ((bounds[0, :, 0] <= x) & (x <= bounds[0, :, 1])).mean()
    error = 4 * np.sqrt(0.1 * 0.9 / times)
    assert (np.abs(cover / times - 0.9) < error).all()
