"""What comes next in lists that are not finished, against all orderings one by one."""

from dataclasses import replace
from itertools import permutations

import jax
import numpy as np
import pytest

from numpyro_rankings import Draws, Rankings, log_predictive_density
from numpyro_rankings.distributions import GeneralizedMallows, TopTPlackettLuce
from numpyro_rankings.predict import next_items

NAMES = ("a", "b", "c", "d")
EVERY = np.array(list(permutations(range(4))))
FITTED = Rankings.from_orderings(
    [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 2, 3]], items=NAMES, counts=[3, 2, 1], entries="indices"
)
MALLOWS = {
    "assignments": [[0, 0, 0, 1, 1, 0], [0, 1, 0, 2, 2, 0]],
    "center": [
        [[0, 1, 2, 3], [3, 1, 2, 0], [0, 1, 2, 3]],
        [[0, 1, 3, 2], [1, 2, 3, 0], [3, 2, 0, 1]],
    ],
    "concentration": [
        [[1.0, 0.3, 0.0], [0.2, 2.0, 1.0], [0.0, 0.0, 0.0]],
        [[0.5, 0.4, 0.1], [3.0, 0.1, 0.2], [0.7, 0.7, 0.7]],
    ],
    "cluster_sizes": [[4, 2, 0], [3, 1, 2]],
    "num_clusters": [2, 3],
    "alpha": [1.5, 0.5],
    "log_joint": [0.0, 0.0],
}
WEIGHTS = {
    "weights": [[[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.1, 0.7]], [[0.25] * 4, [0.01, 0.09, 0.2, 0.7]]],
    "assignments": [[0, 0, 0, 1, 1, 0], [0, 1, 0, 1, 1, 0]],
    "cluster_sizes": [[4, 2], [3, 3]],
    "num_clusters": [2, 2],
    "alpha": [1.0, 1.0],
    "log_joint": [0.0, 0.0],
}
DENSITIES = {
    "process": lambda: _of_mallows(None),
    "components": lambda: _of_mallows(3),
    "plackett-luce": lambda: _of_weights(),
}


def _arrays(samples):
    return {name: np.asarray(x) for name, x in samples.items()}


def _draws(kind, rankings=FITTED):
    if kind == "plackett-luce":
        return Draws.of(_arrays(WEIGHTS), rankings)
    return Draws.of(_arrays(MALLOWS), rankings, None if kind == "process" else 3)


def _of_mallows(number):
    """Probability of every ordering, averaged over the draws, from the formula of the docstring."""
    total = np.zeros(24)
    for d in range(2):
        sizes, alpha = np.array(MALLOWS["cluster_sizes"][d]), MALLOWS["alpha"][d]
        kappa = 0 if number is None else alpha / number
        probability = np.zeros(24)
        for c in np.flatnonzero(sizes):
            model = GeneralizedMallows(
                np.array(MALLOWS["center"][d][c]), np.array(MALLOWS["concentration"][d][c])
            )
            probability += (sizes[c] + kappa) * np.exp(model.log_prob(EVERY[:, :3]))
        rest = alpha if number is None else kappa * (sizes == 0).sum()
        total += (probability + rest / 24) / (6 + alpha) / 2
    return total


def _of_weights():
    total = np.zeros(24)
    for d in range(2):
        for c in range(2):
            model = TopTPlackettLuce(np.log(WEIGHTS["weights"][d][c]), 4)
            share = (WEIGHTS["cluster_sizes"][d][c] + 0.5) / 7
            total += share * np.exp(model.log_prob(EVERY)) / 2
    return total


def _places(probability, prefix, race=(0, 1, 2, 3)):
    """Exact probabilities of places among the items of a race, given the first ones."""
    places = np.zeros((4, 4))
    for order, p in zip(EVERY, probability, strict=True):
        order = [item for item in order if item in race]
        if order[: len(prefix)] == list(prefix):
            places[order, range(len(order))] += p
    return places / places.sum(0).max()


def _close(found, exact, num_orders):
    error = 4.5 * np.sqrt(np.maximum(exact * (1 - exact), 0.002) / num_orders)
    np.testing.assert_array_less(abs(found - exact), 2 * error)  # the draws are weighted


@pytest.mark.parametrize("kind", DENSITIES)
def test_all_orderings(kind):
    density, draws = DENSITIES[kind](), _draws(kind)
    np.testing.assert_allclose(density.sum(), 1, rtol=1e-5)
    prefixes = [[2], [0, 3], [3, 2, 1]]
    lists = Rankings.from_orderings(prefixes, items=NAMES, entries="indices")
    found = next_items(draws, lists, num_orders=20_000)
    everybody = next_items(draws, num_orders=20_000)
    assert found.items == NAMES
    for row, prefix in enumerate(prefixes):
        exact = _places(density, prefix)
        following = np.where(np.isin(range(4), prefix), 0, exact[:, len(prefix)])
        np.testing.assert_allclose(found.next[row], following, atol=2e-6)
        _close(found.places[row], exact, 20_000)
        np.testing.assert_allclose(found.places[row].sum(0), 1, atol=0.02)
    np.testing.assert_allclose(everybody.next[0], _places(density, [])[:, 0], atol=2e-6)
    _close(everybody.places[0], _places(density, []), 20_000)
    _close(everybody.top(2)[0], _places(density, [])[:, :2].sum(1), 20_000)


@pytest.mark.parametrize("kind", DENSITIES)
def test_a_race_of_some_items(kind):
    density, draws, race = DENSITIES[kind](), _draws(kind), ["d", "a", "c"]
    everybody = next_items(draws, items=race, num_orders=20_000)
    exact = _places(density, [], (0, 2, 3))
    np.testing.assert_allclose(everybody.next[0], exact[:, 0], atol=2e-6)
    _close(everybody.places[0], exact, 20_000)
    judge = Rankings.from_orderings([["c"]], items=NAMES)
    found = next_items(draws, judge, items=race)
    exact = _places(density, [2], (0, 2, 3))
    np.testing.assert_allclose(
        found.next[0], np.where(np.arange(4) == 2, 0, exact[:, 1]), atol=2e-6
    )
    assert (found.places is None) == (kind != "plackett-luce")
    # a table that lacks an item says the same, in another order of the items
    same = next_items(draws, Rankings.from_orderings([["c"]], items=["d", "c", "a"]))
    np.testing.assert_allclose(same.next, found.next, atol=2e-6)
    if kind == "plackett-luce":
        _close(found.places[0], exact, 2000)


@pytest.mark.parametrize("number", [None, 3])
def test_lists_that_were_shorter(number):
    """After the stages that were fitted all orders are equally probable."""
    short = _arrays(MALLOWS)
    short["concentration"] = short["concentration"][:, :, :1]
    draws = Draws.of(short, FITTED, number)
    density = np.zeros(24)
    for d in range(2):
        sizes, alpha = short["cluster_sizes"][d], short["alpha"][d]
        kappa = 0 if number is None else alpha / number
        for c in np.flatnonzero(sizes):
            model = GeneralizedMallows(short["center"][d, c], short["concentration"][d, c])
            density += (sizes[c] + kappa) * np.exp(model.log_prob(EVERY[:, :1])) / 6 / (6 + alpha)
        rest = alpha if number is None else kappa * (sizes == 0).sum()
        density += rest / 24 / (6 + alpha)
    density /= 2
    np.testing.assert_allclose(density.sum(), 1, rtol=1e-5)
    for race in ((0, 1, 2, 3), (1, 3)):
        found = next_items(draws, items=[NAMES[k] for k in race], num_orders=20_000)
        exact = _places(density, [], race)
        np.testing.assert_allclose(found.next[0], exact[:, 0], atol=2e-6)
        _close(found.places[0], exact, 20_000)


def test_few_orders_are_weighted_by_the_draws_that_were_simulated():
    rng = np.random.default_rng(0)
    samples = {"weights": rng.dirichlet(np.full(5, 0.3), 400), "log_joint": np.zeros(400)}
    said = Rankings.from_orderings([[0, 1, 2]], num_items=5)
    found = next_items(samples, said, num_orders=20)
    np.testing.assert_allclose(found.places[0].sum(0), 1, rtol=1e-5)


def test_components_that_are_empty_in_all_draws():
    """ArviZ data leave them out; their share is that of any order."""
    tempered = _arrays(MALLOWS) | {"shares": np.array([[0.5, 0.3, 0.2], [0.4, 0.2, 0.4]])}
    tempered["cluster_sizes"] = np.array([[4, 2, 0], [4, 2, 0]])
    tempered["assignments"] = np.array([[0, 0, 0, 1, 1, 0]] * 2)
    kept = ("center", "concentration", "cluster_sizes", "shares")
    less = {name: x[:, :2] if name in kept else x for name, x in tempered.items()}
    found = next_items(replace(Draws.of(less, FITTED, 2), lacks_empty=True, num_components=3))
    uniform = tempered["concentration"].copy()
    uniform[:, 2] = 0
    expected = next_items(Draws.of({**tempered, "concentration": uniform}, FITTED, 3))
    np.testing.assert_allclose(found.next, expected.next, rtol=1e-5)


def test_the_groups_of_members():
    found = next_items(_draws("plackett-luce"), members=[3, 4], num_orders=1000)
    exact = np.mean([WEIGHTS["weights"][d][1] for d in range(2)], axis=0)
    np.testing.assert_allclose(found.next[0], exact, rtol=1e-5)
    _close(found.places[0][:, 0], exact, 1000)


@pytest.mark.parametrize("kind", ["process", "components"])
def test_density_of_choice_sets_under_mallows(kind):
    offered = np.array([[1, 0, 1, 1]], bool)
    new = Rankings.from_orderings([[2, 3]], items=NAMES, entries="indices", choice_sets=offered)
    density, total = DENSITIES[kind](), 0.0
    for order, p in zip(EVERY, density, strict=True):
        total += p * ([k for k in order if k != 1] == [2, 3, 0])
    np.testing.assert_allclose(log_predictive_density(_draws(kind), new), np.log(total), rtol=1e-5)


def test_pools_leave_room_for_items_that_are_new():
    samples = {
        "weights": np.array([[0.5, 0.2, 0.1, 0.1]]),
        "unseen_weight": np.array([0.1]),
        "alpha": np.ones(1),
        "log_joint": np.zeros(1),
    }
    found = next_items(samples, Rankings.from_orderings([[1]], num_items=4))
    np.testing.assert_allclose(found.next[0], [0.625, 0, 0.125, 0.125], rtol=1e-5)
    assert found.places is None
    with pytest.raises(ValueError, match="no probabilities of places"):
        found.top(3)


def test_bad_input():
    draws, short = _draws("process"), dict(_arrays(MALLOWS))
    with pytest.raises(ValueError, match="'e' is no item of the fit"):
        next_items(draws, Rankings.from_orderings([["a"], ["e"]], items=["a", "e"]))
    with pytest.raises(ValueError, match="items has 'e', which is no item"):
        next_items(draws, items=["a", "e"])
    with pytest.raises(ValueError, match="a race needs two items, got 1 item"):
        next_items(draws, items=["a"])
    with pytest.raises(ValueError, match="members must be indices of the 6 fitted rankings"):
        next_items(draws, members=[6])
    with pytest.raises(ValueError, match="members are for a judge of whom nothing is known"):
        next_items(draws, FITTED, members=[0])
    with pytest.raises(TypeError, match="partial_lists must be Rankings"):
        next_items(draws, [[0, 1]])
    with pytest.raises(ValueError, match="of a single population"):
        next_items({"weights": np.ones((2, 3)) / 3, "log_joint": np.zeros(2)}, members=[0])
    short["concentration"] = short["concentration"][:, :, :2]
    tops = Rankings.from_orderings([[0, 1]], items=NAMES, entries="indices")
    assert not next_items(Draws.of(short, num_components=None), tops).next.any()
    with pytest.raises(ValueError, match="the samples do not say whether they are of a mixture"):
        next_items(short)
    with pytest.raises(ValueError, match="row 1 lists 'a', which is not among items"):
        next_items(draws, FITTED, items=["b", "c"])


def test_all_is_known_at_the_end():
    found = next_items(_draws("process"), FITTED, num_orders=10)
    assert not found.next.any()
    expected = np.zeros((4, 4))
    expected[[3, 2, 1, 0], range(4)] = 1
    np.testing.assert_array_equal(found.places[1], expected)
    assert next_items(_draws("process"), FITTED, num_orders=0).places is None
    again = next_items(_draws("process"), FITTED, num_orders=10, key=jax.random.key(1))
    np.testing.assert_array_equal(again.places, found.places)


def _log_weights(order, weights):
    """Of each item among those that are left."""
    weights = np.asarray(weights, float)[list(order)]
    return np.log(weights / weights[::-1].cumsum()[::-1]).sum()


def _log_mallows(order, center, thetas):
    """By the number of items of the center that are passed over at each stage."""
    left, total = list(center), 0.0
    for item, theta in zip(order[:-1], thetas, strict=True):
        total -= theta * left.index(item) + np.log(np.exp(-theta * np.arange(len(left))).sum())
        left.remove(item)
    return total


@pytest.mark.parametrize("kind", ["plackett-luce", "process"])
def test_all_orders_of_five_items(kind):
    """Next item, winner, first three and every place, from sums over the 120 orders."""
    every, names = list(permutations(range(5))), tuple("abcde")
    fitted = Rankings.from_orderings([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]], items=names, counts=[2, 1])
    common = {
        "assignments": np.array([[0, 0, 1], [0, 0, 1]]),
        "cluster_sizes": np.array([[2, 1], [2, 1]]),
        "num_clusters": np.array([2, 2]),
        "alpha": np.array([1.0, 0.5]),
        "log_joint": np.zeros(2),
    }
    probability = np.zeros(120)
    rng = np.random.default_rng(0)
    if kind == "plackett-luce":
        weights = rng.dirichlet(np.ones(5), (2, 2)).astype(np.float32)
        draws = Draws.of({**common, "weights": weights}, fitted)
        for d, c in np.ndindex(2, 2):
            alpha = common["alpha"][d]
            share = (common["cluster_sizes"][d, c] + alpha / 2) / (3 + alpha)
            probability += [share / 2 * np.exp(_log_weights(x, weights[d, c])) for x in every]
    else:
        centers = np.array([[[0, 1, 2, 3, 4], [4, 2, 3, 1, 0]], [[1, 0, 2, 4, 3], [4, 3, 2, 1, 0]]])
        thetas = rng.uniform(0, 2, (2, 2, 4)).astype(np.float32)
        samples = {**common, "center": centers, "concentration": thetas}
        draws = Draws.of(samples, fitted, None)
        for d in range(2):
            alpha = common["alpha"][d]
            probability += alpha / (3 + alpha) / 120 / 2  # of a new group
            for c in range(2):
                share = common["cluster_sizes"][d, c] / (3 + alpha) / 2
                of_group = [_log_mallows(x, centers[d, c], thetas[d, c]) for x in every]
                probability += share * np.exp(of_group)
    np.testing.assert_allclose(probability.sum(), 1, rtol=1e-5)
    prefixes = [[3], [2, 4], [4, 0, 1]]
    lists = Rankings.from_orderings(prefixes, items=names, entries="indices")
    found, everybody = (next_items(draws, x, num_orders=20_000) for x in (lists, None))
    for prefix, following, places in (
        ([], everybody.next[0], everybody.places[0]),
        *zip(prefixes, found.next, found.places, strict=True),
    ):
        exact = np.zeros((5, 5))
        for order, p in zip(every, probability, strict=True):
            if list(order[: len(prefix)]) == prefix:
                exact[order, range(5)] += p
        exact /= exact[:, 0].sum()
        of_next = np.where(np.isin(range(5), prefix), 0, exact[:, len(prefix)])
        np.testing.assert_allclose(following, of_next, atol=3e-6)
        _close(places, exact, 20_000)
    np.testing.assert_array_equal(everybody.top(3), everybody.places[:, :, :3].sum(-1))
