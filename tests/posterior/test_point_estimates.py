"""Point estimates of partitions against all partitions, and credible balls."""

import numpy as np
import pytest
from helpers.enumeration import binder_loss, partitions

import numpyro_rankings.posterior.point_estimates as point_estimates
from numpyro_rankings.posterior.partitions import (
    contingency_table,
    match_clusters,
    medoid_partition,
    variation_of_information,
)
from numpyro_rankings.posterior.point_estimates import (
    PointEstimate,
    credible_ball,
    point_estimate,
    reference_partition,
)

EVERY = np.array(list(partitions(6)))


LOSSES = {"vi": variation_of_information, "binder": binder_loss}


def test_descents_at_the_same_time_end_where_they_do_one_by_one(monkeypatch):
    rng = np.random.default_rng(3)
    strays = rng.random((60, 50)) < 0.4
    draws = np.where(strays, rng.integers(5, size=(60, 50)), rng.integers(5, size=50))
    found = []
    for cores in (1, 4):
        monkeypatch.setattr(point_estimates, "num_cores", lambda cores=cores: cores)
        found.append(point_estimate(draws, num_starts=6))
    # one by one, without what other descents have found
    right = point_estimates._descend
    alone = lambda *args: right(*args[:5], {}, *args[6:])  # noqa: E731
    monkeypatch.setattr(point_estimates, "_descend", alone)
    found.append(point_estimate(draws, num_starts=6))
    for one in found[1:]:
        np.testing.assert_array_equal(one.labels, found[0].labels)


def swept(labels, draws, f, num_slots, order):
    """One sweep by the whole loss of every choice, and whether a point has moved."""

    def loss(labels):
        seated = labels >= 0
        sizes = np.bincount(labels[seated], minlength=num_slots)
        pairs = [draw[seated] * num_slots + labels[seated] for draw in draws]
        return f[sizes].sum() - 2 * np.mean([f[np.bincount(x)].sum() for x in pairs])

    labels, moved = labels.copy(), False
    for point in order:
        others = np.delete(labels, point)
        taken = [k for k in range(num_slots) if k in others]
        is_alone = labels[point] >= 0 and labels[point] not in others
        empty = [labels[point]] if is_alone else [k for k in range(num_slots) if k not in taken]
        found = {}
        for k in (*taken, *empty[:1]):
            tried = labels.copy()
            tried[point] = k
            found[k] = loss(tried)
        best = min(sorted(found), key=found.__getitem__)
        if labels[point] < 0 or found[labels[point]] > found[best] + 1e-6 * np.diff(f).max():
            labels[point], moved = best, True
    return labels, moved


@pytest.mark.parametrize("seated", [0, 20, 40])
@pytest.mark.parametrize("num_slots", [4, 9])
def test_a_sweep_is_that_of_its_twin(seated, num_slots):
    """With points that have no cluster, with all slots in use, until no point moves."""
    rng = np.random.default_rng(seated + num_slots)
    draws = np.where(rng.random((25, 40)) < 0.3, rng.integers(4, size=(25, 40)), np.arange(40) % 4)
    sizes = np.arange(42.0)
    f = np.log2(np.maximum(sizes, 1)) * sizes
    labels = np.full(40, -1, np.int32)
    labels[:seated] = rng.integers(min(num_slots, 6), size=seated)
    steps, columns = point_estimates.jnp.asarray(np.diff(f), float), draws.T.astype(np.int32)
    counts = point_estimates._count(labels, draws, num_slots)
    for _ in range(10):
        order = rng.permutation(40).astype(np.int32)
        expected, moves = swept(labels, draws, f, num_slots, order)
        labels, counts, moved = map(
            np.asarray, point_estimates._move_points(labels, counts, columns, steps, order)
        )
        np.testing.assert_array_equal(labels, expected)
        np.testing.assert_array_equal(counts, point_estimates._count(labels, draws, num_slots))
        assert bool(moved) == moves
        if not moves:
            return
    raise AssertionError("points move in every sweep")


def swept_once(draws, labels, steps, order):
    """The labels, and whether a point has moved, with three slots and integers of two bytes."""
    draws, labels = np.asarray(draws, np.int32), np.asarray(labels, np.int32)
    counts = point_estimates._count(labels, draws, 3)
    steps, order = np.asarray(steps, np.float32), np.asarray(order, np.int32)
    found, counts, moved = map(
        np.asarray, point_estimates._move_points(labels, counts, draws.T, steps, order)
    )
    np.testing.assert_array_equal(counts, point_estimates._count(found, draws, 3))
    return found.tolist(), bool(moved)


BINDER = np.arange(7)  # f(n + 1) - f(n), but for a factor


@pytest.mark.parametrize("order", [[5, 0], [0, 5]])
def test_a_point_that_is_as_well_in_another_cluster_stays(order):
    """Whether it is the last in turn or not."""
    draws = [[0, 0, 1, 1, 2, 0], [0, 0, 1, 1, 2, 1]]
    labels = [0, 0, 1, 1, 2, 1]
    assert swept_once(draws, labels, BINDER, order) == (labels, False)


def test_a_point_moves_only_for_more_than_rounding():
    """It is alone in all draws, so that only the sizes of the clusters count."""
    draws, labels = [[0, 0, 0, 1, 1, 2]] * 2, [0, 1, 1, 2, 2, 1]
    for gain, label in ((5e-7, 1), (2e-6, 0)):
        steps = [0.0, 0.0, gain, 1.0, 1.0, 1.0, 1.0]
        found, moved = swept_once(draws, labels, steps, [5, 5])
        assert (found, moved) == ([*labels[:5], label], label == 0)


def test_a_point_that_is_alone_keeps_its_slot():
    """Though a slot before it is empty."""
    labels = [0, 0, 0, 0, 0, 2]
    assert swept_once([[0, 0, 0, 0, 0, 1]] * 2, labels, BINDER, [0, 5]) == (labels, False)


@pytest.mark.parametrize("number", [255, 256, 257, 2**16 - 1, 2**16, 2**16 + 1])
def test_rows_that_differ_in_the_last_of_so_many_clusters(number):
    """Labels are kept in one or two bytes, where these suffice."""
    apart = np.arange(number, dtype=np.int32)
    draws = np.stack([apart] * 5)
    draws[[1, 3], -1] = 0
    draws[4, -1] = 1
    first, counts = point_estimates._different_rows(draws)
    assert (first.tolist(), counts.tolist()) == ([0, 1, 4], [2, 2, 1])


@pytest.mark.parametrize("number", [127, 128, 256, 2**15 - 1, 2**15, 2**16, 2**16 + 1])
def test_all_points_in_one_cluster_are_counted(number):
    counts = point_estimates._count(np.zeros(number, np.int32), np.zeros((1, number), np.int32), 2)
    assert counts.tolist() == [[[number, 0]]]


def losses_of_all_pairs(loss, partitions):
    """Of every partition from every other one, by the definitions."""
    if loss == "binder":
        upper = np.triu_indices(partitions.shape[1], 1)
        together = (partitions[:, :, None] == partitions[:, None])[:, *upper]
        return (together[:, None] != together).mean(-1)
    belongs = (partitions[:, :, None] == np.arange(partitions.max() + 1)).astype(float)
    share = np.einsum("api,bpj->abij", belongs, belongs) / partitions.shape[1]
    of_one, of_other = share.sum(3, keepdims=True), share.sum(2, keepdims=True)
    # H(A | B) + H(B | A)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = share * (2.0 * np.log(share) - np.log(of_one) - np.log(of_other))
    return -np.where(share > 0, terms, 0.0).sum((2, 3))


@pytest.mark.parametrize("loss", LOSSES)
def test_least_expected_loss_of_all_partitions(loss):
    """Two posteriors on all 203 partitions of 6 points, a vague one and a sharp one."""
    table = losses_of_all_pairs(loss, EVERY)
    assert table[5, 100] == pytest.approx(LOSSES[loss](EVERY[5], EVERY[100]))
    for seed, power in ((0, 0.5), (3, 10.0)):
        rng = np.random.default_rng(seed)
        probs = rng.gamma(1.0 / power, size=len(EVERY))
        draws = EVERY[rng.choice(len(EVERY), 400, p=probs / probs.sum())]
        shares = np.array([(draws == labels).all(1).mean() for labels in EVERY])
        expected = table @ shares
        found = point_estimate(draws, loss)
        row = int(np.flatnonzero((found.labels == EVERY).all(1))[0])
        assert found.expected_loss == pytest.approx(expected[row], abs=1e-9)
        assert found.expected_loss == pytest.approx(expected.min(), abs=1e-6)
        # of draws only, and of those with few clusters
        drawn = shares > 0
        of_draws = point_estimate(draws, loss, search=False)
        assert of_draws.expected_loss == pytest.approx(expected[drawn].min(), abs=1e-9)
        few = EVERY.max(1) < 2
        found = point_estimate(draws, loss, max_clusters=2)
        assert found.labels.max() < 2
        assert found.expected_loss == pytest.approx(expected[few].min(), abs=1e-6)
        of_draws = point_estimate(draws, loss, max_clusters=2, search=False)
        assert of_draws.expected_loss == pytest.approx(expected[few & drawn].min(), abs=1e-9)


def test_least_squares():
    """Dahl (2006): the draw nearest to the co-clustering matrix."""
    rng = np.random.default_rng(3)
    draws = EVERY[rng.integers(len(EVERY), size=60)]
    together = (draws[:, :, None] == draws[:, None]).mean(0)
    squares = [((np.equal.outer(x, x) - together) ** 2).sum() for x in draws]
    found = point_estimate(draws, "binder", search=False)
    assert ((np.equal.outer(found.labels, found.labels) - together) ** 2).sum() == pytest.approx(
        min(squares)
    )


def noisy_draws(size, number, clusters, share, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(clusters, size=size)
    changed = rng.random((number, size)) < share
    return truth, np.where(changed, rng.integers(clusters, size=(number, size)), truth)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_partition_that_no_draw_is(loss, monkeypatch):
    """A fifth of the points strays in each draw; memory for some of the draws only."""
    truth, draws = noisy_draws(120, 200, 4, 0.2)
    found = point_estimate(draws, loss)
    assert np.count_nonzero(contingency_table(truth, found.labels)) == 4
    assert found.expected_loss < point_estimate(draws, loss, search=False).expected_loss
    assert found.expected_loss == pytest.approx(
        np.mean([LOSSES[loss](found.labels, draw) for draw in draws])
    )
    with monkeypatch.context() as few:  # the search looks at 20 draws, the end at all
        few.setattr(point_estimates, "_SEARCHED", 0)
        few.setattr(point_estimates, "_FEW_DRAWS", 20)
        short = point_estimate(draws, loss)
    np.testing.assert_array_equal(short.labels, found.labels)
    assert short.expected_loss == pytest.approx(found.expected_loss)
    monkeypatch.setattr(point_estimates, "_MOST_COUNTS", 4 * 4 * 50)
    monkeypatch.setattr(point_estimates, "_MOST_TERMS", 4 * 4 * 4 * 20)
    again = point_estimate(draws, loss)
    np.testing.assert_array_equal(again.labels, found.labels)
    assert again.expected_loss == pytest.approx(found.expected_loss)


def test_merges():
    """Halves of two clusters: no single point gains by moving."""
    truth = np.repeat([0, 1], 40)
    halves = np.repeat([0, 1, 2, 3], 20)
    draws = np.tile(truth, (9, 1))
    draws[0], draws[1] = halves, 0
    f = point_estimates._terms("binder", 80)
    merged = point_estimates._best_merge(halves, draws, f)
    assert merged.max() == 2
    merged = point_estimates._best_merge(merged, draws, f)
    np.testing.assert_array_equal(merged, truth)
    assert point_estimates._best_merge(merged, draws, f) is None


def test_extremes():
    one = point_estimate(np.zeros((3, 1), int))
    assert one.labels.tolist() == [0] and one.expected_loss == 0.0
    singletons = np.tile(np.arange(7), (4, 1))
    found = point_estimate(singletons, "binder")
    assert found.labels.tolist() == list(range(7)) and found.expected_loss == 0.0
    assert point_estimate(singletons, max_clusters=1, num_starts=1).labels.tolist() == [0] * 7
    labels = point_estimate([[7, 7, 3], [7, 3, 3], [7, 7, 3]]).labels  # any labels
    assert labels.tolist() == [0, 0, 1]


@pytest.mark.parametrize("loss", LOSSES)
def test_credible_ball(loss):
    rng = np.random.default_rng(5)
    draws = EVERY[rng.integers(len(EVERY), size=101)]
    center = draws[7]
    ball = credible_ball(draws, center, loss, prob=0.6)
    losses = np.array([LOSSES[loss](center, draw) for draw in draws])
    inside = losses <= ball.radius + 1e-12
    assert inside.mean() >= 0.6
    assert (losses < ball.radius - 1e-12).mean() < 0.6
    number = draws.max(1) + 1

    def one_of(labels, some):
        far = losses[some].max()
        return any((draws[k] == labels).all() and losses[k] > far - 1e-9 for k in some)

    inside = np.flatnonzero(inside)
    assert one_of(ball.farthest, inside)
    assert one_of(ball.fewest, inside[number[inside] == number[inside].min()])
    assert one_of(ball.most, inside[number[inside] == number[inside].max()])
    assert credible_ball(np.tile(center, (5, 1)), center, loss).radius == 0.0


def test_reference_partition_searches_as_far_as_time_allows(monkeypatch):
    """In full, in short, or not at all: never worse than the medoid over all draws."""
    _, draws = noisy_draws(120, 200, 4, 0.2)
    losses = {}
    for method, cells in (
        ("search", {}),
        ("short search", {"_CELLS": 0, "_SHORT_CELLS": 120 * 12 * 30}),
        ("medoid", {"_CELLS": 0, "_SHORT_CELLS": 120 * 12 * 19}),
    ):
        for name, number in cells.items():
            monkeypatch.setattr(point_estimates, name, number)
        found = reference_partition(draws)
        assert found.method == method
        losses[method] = found.expected_loss
        by_draw = [variation_of_information(found.labels, draw) for draw in draws]
        assert found.expected_loss == pytest.approx(np.mean(by_draw))
        again = reference_partition(draws)
        np.testing.assert_array_equal(again.labels, found.labels)
    np.testing.assert_array_equal(found.labels, medoid_partition(draws).labels)
    assert losses["search"] <= losses["short search"] < losses["medoid"]
    monkeypatch.undo()
    np.testing.assert_array_equal(
        reference_partition(draws).labels, point_estimate(draws).labels
    )  # all the draws, where there is time


def test_reference_partition_keeps_groups_that_overlap():
    """With two points in five astray, one cluster is nearest to draws that all have three."""
    _, draws = noisy_draws(60, 100, 3, 0.6)
    found, medoid = reference_partition(draws), medoid_partition(draws)
    assert found.method == "medoid" and found.set_aside is not None
    np.testing.assert_array_equal(found.labels, medoid.labels)
    assert found.set_aside.labels.max() == 0
    assert found.set_aside.expected_loss < found.expected_loss
    assert "the draw that agrees best" in found.in_words and "in another group" in found.caution


def test_reference_partition_sets_no_draw_aside():
    two = np.repeat([0, 1], 10)
    found = reference_partition([two, two, two, np.arange(20), np.arange(20)])
    assert found.labels.tolist() == two.tolist()
    assert found.method == "search" and found.set_aside is None


def test_reference_partition_with_many_clusters(monkeypatch):
    """Unions of many clusters are not tried."""
    monkeypatch.setattr(point_estimates, "_FULL_CLUSTERS", 3)
    _, draws = noisy_draws(40, 30, 5, 0.3)
    assert reference_partition(draws).method == "short search"
    monkeypatch.setattr(point_estimates, "_SHORT_CLUSTERS", 12)
    assert reference_partition(draws).method == "medoid"


def test_reference_partition_has_no_cluster_that_is_in_no_draw():
    """Halves of a cluster in each draw: one of them takes its name every time."""
    draws = np.tile(np.repeat([0, 1], 10), (5, 1))
    labels = np.repeat([0, 1, 2], [4, 6, 10])
    assert not np.any(match_clusters(draws, labels) == 0)
    f = point_estimates._terms("vi", 20)
    merged = point_estimates._merge_unmatched(labels, draws, f)
    np.testing.assert_array_equal(merged, np.repeat([0, 1], 10))


def test_a_given_reference_partition():
    draws = np.array([[0, 0, 1, 1], [0, 1, 1, 1]])
    given = reference_partition(draws, [2, 2, 0, 0])
    assert given.method == "given" and given.labels.tolist() == [2, 2, 0, 0]
    other = variation_of_information(draws[0], draws[1])
    assert given.expected_loss == pytest.approx(other / 2)
    assert reference_partition(draws, given) is given
    with pytest.raises(ValueError, match="a partition of the same 3 points is needed"):
        reference_partition(draws[:, :3], given)
    ball = credible_ball(draws, point_estimate(draws))
    assert ball.radius == credible_ball(draws[None], point_estimate(draws[None]).labels).radius
    estimate = PointEstimate(draws[1].astype(np.int32), 0.0)
    assert reference_partition(draws, estimate).labels.tolist() == [0, 1, 1, 1]
    for bad in ([0, 0, 1], [0, 0, -1, 1], [0.0, 0.5, 1.0, 1.0]):
        with pytest.raises(ValueError, match="a partition of the same 4 points is needed"):
            reference_partition(draws, bad)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: point_estimate([0, 1]), r"\(D, N\), or .* got shape \(2,\)"),
        (lambda: point_estimate([[0.5, 1.0]]), "whole numbers from 0"),
        (lambda: point_estimate([[0, -1]]), "whole numbers from 0"),
        (lambda: point_estimate(np.zeros((0, 3), int)), "whole numbers from 0"),
        (lambda: point_estimate([[0, 1]], "rand"), "loss must be one of vi, binder"),
        (lambda: point_estimate([[0, 1]], num_starts=0), "num_starts must be"),
        (lambda: point_estimate([[0, 1]], max_clusters=0), "max_clusters must be"),
        (lambda: point_estimate([[0, 1]], max_clusters=1, search=False), "no draw has as few"),
        (lambda: credible_ball([[0, 1]], [0, 1, 2]), "of the same 2 points"),
        (lambda: credible_ball([[0, 1]], [0.0, 1.0]), "a partition of the same 2 points"),
        (lambda: credible_ball([[0, 1]], [0, 1], prob=0.0), "prob must be above 0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
