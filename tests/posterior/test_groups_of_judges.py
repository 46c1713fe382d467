"""Groups of new judges: against sums over all partitions and centers, and refused input."""

import itertools
import math

import jax
import numpy as np
import pytest
from helpers.enumeration import partitions

from numpyro_rankings import (
    PartialOrders,
    Rankings,
    find_blocs,
    log_predictive_density,
    predict,
)
from numpyro_rankings.datasets import simulate_mallows_mixture

CENTERS = list(itertools.permutations(range(3)))
THETA, ALPHA = (1.2, 0.7), 0.8


def log_mallows(ordering, center):
    """Of a list of some of three items."""
    left, total = list(center), 0.0
    for stage, item in enumerate(ordering[:2]):
        codes = np.arange(len(left))
        total -= THETA[stage] * left.index(item) + np.log(np.exp(-THETA[stage] * codes).sum())
        left.remove(item)
    return total


def log_restaurant(labels):
    """Seat by seat."""
    total, sizes = 0.0, []
    for i, c in enumerate(labels):
        total += math.log((ALPHA if c == len(sizes) else sizes[c]) / (ALPHA + i))
        sizes += [0] * (c == len(sizes))
        sizes[c] += 1
    return total


def members(labels, c):
    return [i for i, x in enumerate(labels) if x == c]


def exact_draws(lists, number):
    """Every partition and its centers, as often as they are probable among so many draws."""
    states, log_p = [], []
    for labels in partitions(len(lists)):
        for centers in itertools.product(CENTERS, repeat=max(labels) + 1):
            fits = sum(log_mallows(x, centers[c]) for x, c in zip(lists, labels, strict=True))
            states.append((labels, centers))
            log_p.append(log_restaurant(labels) + fits - len(centers) * math.log(6))
    p = np.exp(np.array(log_p) - max(log_p))
    times = np.round(number * p / p.sum()).astype(int)
    slots = len(lists) + 1
    center = [[*centers, *[CENTERS[0]] * (slots - len(centers))] for _, centers in states]
    labels = np.array([labels for labels, _ in states])
    draws = {
        "assignments": labels,
        "center": np.array(center, np.int32),
        "concentration": np.broadcast_to(np.float32(THETA), (len(states), slots, 2)),
        "cluster_sizes": np.stack([np.bincount(x, minlength=slots) for x in labels]),
        "alpha": np.full(len(states), ALPHA, np.float32),
    }
    return {name: np.repeat(x, times, axis=0) for name, x in draws.items()}


def groups_of_cluster(labels, cluster, reference):
    """The groups of those members of a cluster for which it stands."""
    most = {}
    for c in sorted(set(labels)):
        groups = [reference[i] for i in members(labels, c)]
        most[c] = max(sorted(set(groups)), key=groups.count)
    for_others = {}
    for g in set(reference) - set(most.values()):
        of_group = [labels[i] for i in members(reference, g)]
        for_others[g] = max(sorted(set(of_group)), key=of_group.count)
    return [
        reference[i]
        for i in members(labels, cluster)
        if most[cluster] == reference[i] or for_others.get(reference[i]) == cluster
    ]


def refitted(lists, new, reference):
    """The groups of one more judge, from all partitions with him; none of them last."""
    every, total = np.zeros(max(reference) + 2), 0.0
    for labels in partitions(len(lists) + 1):
        log_p = log_restaurant(labels)
        for c in set(labels):
            of_cluster = [[*lists, new][i] for i in members(labels, c)]
            fits = [sum(log_mallows(x, center) for x in of_cluster) for center in CENTERS]
            log_p += np.logaddexp.reduce(fits) - math.log(6)
        p, groups = math.exp(log_p), groups_of_cluster(labels[:-1], labels[-1], reference)
        for g in groups:
            every[g] += p / len(groups)
        every[-1] += p * (not groups)
        total += p
    return every / total


@pytest.mark.parametrize("new", [[2], [0, 2, 1], [1, 0]])
def test_process_against_enumeration(new):
    """Also where the reference partition is none of the draws' partitions."""
    lists, reference = [[0, 1, 2], [0, 2, 1], [2, 1]], [0, 1, 1]
    fitted = Rankings.from_orderings(lists, num_items=3)
    found = predict.groups(
        exact_draws(lists, 20_000),
        fitted,
        Rankings.from_orderings([new, [1]], num_items=3),
        reference,
        num_components=None,
        max_draws=10**6,
    )
    for row, given in enumerate([new, [1]]):
        expected = refitted(lists, given, reference)
        np.testing.assert_allclose(found.groups[row], expected[:-1], atol=3e-3)
        assert found.none[row] == pytest.approx(expected[-1], abs=3e-3)
    np.testing.assert_allclose(found.groups.sum(1) + found.none, 1.0, atol=1e-6)
    assert found.shares[-1] == pytest.approx(ALPHA / (ALPHA + 3), abs=1e-5)


WEIGHTS = np.float32([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.2, 0.5, 0.3]])
SIZES = np.array([3, 1, 0])
PLACKETT_LUCE = {
    "assignments": np.array([[0, 0, 0, 1]]),
    "weights": WEIGHTS[None],
    "cluster_sizes": SIZES[None],
    "alpha": np.ones(1, np.float32),
    "log_joint": np.zeros(1),
}
FOUR = Rankings.from_orderings([["a", "b"], ["a"], ["b", "a"], ["c"]], items=["a", "b", "c"])


def test_finite_mixture_with_an_empty_component_and_items_that_are_matched_by_name():
    new = Rankings.from_orderings([["c", "b", "a"], ["a", "c", "b"]], items=["c", "a", "b"])
    found = predict.groups(PLACKETT_LUCE, FOUR, new)
    for row, (first, second) in enumerate([(2, 1), (0, 2)]):
        w = WEIGHTS[:, first] * WEIGHTS[:, second] / (1 - WEIGHTS[:, first])
        terms = w * (SIZES + 1 / 3) / 5
        expected = terms / terms.sum()
        np.testing.assert_allclose(found.groups[row], expected[:2], rtol=1e-5)
        assert found.none[row] == pytest.approx(expected[2], rel=1e-5)
    np.testing.assert_allclose(found.shares, (SIZES + 1 / 3) / 5, rtol=1e-5)


def test_items_that_the_new_rankings_do_not_have_were_not_offered():
    two = Rankings.from_orderings([["c", "a"]], items=["c", "a"])
    offered = Rankings.from_orderings(
        [["c", "a"]], items=["a", "b", "c"], choice_sets=[[True, False, True]]
    )
    first, again = (predict.groups(PLACKETT_LUCE, FOUR, new) for new in (two, offered))
    w = WEIGHTS[:, 2] / (WEIGHTS[:, 2] + WEIGHTS[:, 0]) * (SIZES + 1 / 3)
    np.testing.assert_allclose(first.groups[0], (w / w.sum())[:2], rtol=1e-5)
    np.testing.assert_array_equal(first.groups, again.groups)


@pytest.mark.parametrize("form", ["tie", "offered"])
def test_partial_orders_are_sums_over_orderings_under_mallows(form):
    draws = exact_draws([[0, 1, 2], [2, 1]], 50)
    fitted = Rankings.from_orderings([[0, 1, 2], [2, 1]], num_items=3)
    new = {
        "tie": PartialOrders.from_buckets([[[0, 2], 1]], num_items=3),
        "offered": Rankings.from_orderings([["item 3", "item 2"]], items=["item 2", "item 3"]),
    }[form]
    agree = {"tie": [[0, 2, 1], [2, 0, 1]], "offered": [[0, 2, 1], [2, 0, 1], [2, 1, 0]]}[form]
    orders = Rankings.from_orderings(agree, num_items=3)
    settings = {"reference": [0, 1], "num_components": None}
    found = predict.groups(draws, fitted, new, **settings)
    each = predict.groups(draws, fitted, orders, **settings)
    density = np.exp(log_predictive_density(draws, orders, None))
    np.testing.assert_allclose(found.groups[0], density @ each.groups / density.sum(), rtol=1e-4)


def test_shares_of_tempered_mixtures():
    draws = {**PLACKETT_LUCE, "shares": np.float32([[0.2, 0.5, 0.3]])}
    found = predict.groups(draws, FOUR, Rankings.from_orderings([["a"]], items=["a", "b", "c"]))
    terms = WEIGHTS[:, 0] * [0.2, 0.5, 0.3]
    np.testing.assert_allclose(found.groups[0], (terms / terms.sum())[:2], rtol=1e-5)


def test_pools_of_items():
    """Clusters are exact, and a new one is the mean over clusters drawn from the root."""
    one = {
        "assignments": np.array([0, 0, 0, 1]),
        "weights": np.float32([[0.6, 0.3], [0.1, 0.7], [0.5, 0.5]]),
        "unseen_weight": np.float32([0.1, 0.2, 0.0]),
        "total_weight": np.ones(3, np.float32),
        "cluster_sizes": np.array([3, 1, 0]),
        "root_weights": np.float32([2.0, 1.0]),
        "root_unseen_weight": np.float32(0.5),
        "alpha": np.float32(1.0),
        "phi": np.float32(2.0),
        "gamma": np.float32(2.0),
        "log_joint": np.zeros(()),
    }
    draws = {name: np.broadcast_to(x, (400, *np.shape(x))) for name, x in one.items()}
    fitted = Rankings.from_orderings([["a"], ["a"], ["b", "a"], ["b"]], items=["a", "b"])
    new = Rankings.from_orderings([["b"], ["a"]], items=["b", "unlisted", "a"])
    found = predict.groups(draws, fitted, new, [0, 0, 0, 1])
    density = np.exp(log_predictive_density(draws, new, fitted=fitted))
    for row, item in enumerate([1, 0]):
        expected = one["weights"][:2, item] * [3, 1] / 6
        np.testing.assert_allclose(found.groups[row] * density[row], expected, rtol=0.05)
        np.testing.assert_allclose(
            found.groups[row, 0] / found.groups[row, 1], expected[0] / expected[1], rtol=1e-4
        )
    assert found.shares.tolist() == pytest.approx([3 / 6, 1 / 6, 2 / 6], rel=1e-4)
    with pytest.raises(ValueError, match="'z' is no item of the fit, whose items are a, b"):
        predict.groups(
            draws, fitted, Rankings.from_orderings([["z"]], items=["z", "a"]), [0, 0, 0, 1]
        )


def separated(num=300):
    data = simulate_mallows_mixture(jax.random.key(0), num, 5, 5, 3, 1.5)
    return data, {
        "assignments": data.assignments[None],
        "center": data.centers[None],
        "concentration": data.concentrations[None, :, :4],
        "cluster_sizes": np.bincount(data.assignments)[None],
        "alpha": np.ones(1, np.float32),
        "log_joint": np.zeros(1),
    }


def test_fitted_judges_as_new_ones_and_blocs():
    """Of well separated groups nearly all come back; blocs are those of the fitted rankings."""
    data, draws = separated()
    blocs = find_blocs(draws, data.rankings)
    found = predict.groups(
        draws,
        data.rankings,
        data.rankings,
        blocs=blocs,
        num_components=3,
        reference=data.assignments,
    )
    rows = np.asarray(data.rankings.row_index)
    assert (found.labels[rows] == data.assignments).mean() > 0.8
    assert (found.blocs.argmax(1)[rows] == blocs.labels).mean() > 0.98
    np.testing.assert_allclose(found.blocs, blocs.membership, atol=0.05)


def test_a_list_that_says_nothing_is_known_as_such():
    data, draws = separated()
    new = Rankings.from_orderings([[0, 1, 2, 3, 4], [2]], num_items=5, items=data.rankings.items)
    found = predict.groups(draws, data.rankings, new, num_components=3)
    assert not found.says_little[0]
    flat = {**draws, "concentration": np.zeros_like(draws["concentration"])}
    assert predict.groups(flat, data.rankings, new, num_components=3).says_little.all()


@pytest.mark.parametrize(
    ("draws", "new", "message"),
    [
        (PLACKETT_LUCE, Rankings.from_orderings([["a", "z"]], items=["a", "z"]), "'z' is no item"),
        (
            {"weights": np.ones((3, 3)) / 3, "log_joint": np.zeros(3)},
            FOUR,
            "no groups to tell apart",
        ),
    ],
)
def test_refused(draws, new, message):
    with pytest.raises(ValueError, match=message):
        predict.groups(draws, FOUR, new)


def test_lists_that_are_longer_than_the_fitted_ones_are_refused():
    data, draws = separated()
    short = {**draws, "concentration": draws["concentration"][:, :, :2]}
    with pytest.raises(
        ValueError, match=r"row 1 lists 5 items, but the fitted lists had at most 2"
    ):
        predict.groups(short, data.rankings, data.rankings, num_components=3)
