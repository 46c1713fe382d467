"""Summaries against worked examples and NumPy twins."""

import itertools
import math

import numpy as np
import pytest
from helpers.fabricated import fabricated_mcmc
from helpers.lists import mallows_twin

from numpyro_rankings.families import mallows
from numpyro_rankings.ops.orderings import (
    clear_pairs,
    levels_of_shares,
    times_above,
    wants_of_members,
)
from numpyro_rankings.posterior import (
    borda_ordering,
    certain_levels,
    cluster_profiles,
    cp_consensus,
    holds,
    kendall_distance,
    log_predictive_density,
    map_consensus,
    membership_probability,
    partition_profiles,
    rank_probabilities,
)
from numpyro_rankings.posterior.inference_data import to_inference_data
from numpyro_rankings.posterior.partitions import canonical_labels
from numpyro_rankings.posterior.relabeling import relabel_samples
from numpyro_rankings.rankings import PartialOrders, Rankings


def test_kendall_distance_counts_inverted_pairs():
    permutations = np.array(list(itertools.permutations(range(4))))
    by_pairs = np.zeros((24, 24))
    for (i, a), (j, b) in itertools.product(enumerate(permutations), repeat=2):
        rank_a, rank_b = np.argsort(a), np.argsort(b)
        by_pairs[i, j] = sum(
            (rank_a[x] < rank_a[y]) != (rank_b[x] < rank_b[y])
            for x, y in itertools.combinations(range(4), 2)
        )
    distance = kendall_distance(permutations[:, None], permutations)
    np.testing.assert_array_equal(distance, by_pairs)


def test_rank_probabilities():
    expected = [[2 / 3, 1 / 3, 0], [1 / 3, 1 / 3, 1 / 3], [0, 1 / 3, 2 / 3]]
    draws = [[0, 1, 2], [0, 2, 1], [1, 0, 2]]
    np.testing.assert_allclose(rank_probabilities(draws), expected)


def test_cp_consensus_by_hand():
    draws = [[0, 1, 2, 3]] * 4 + [[1, 2, 0, 3]] * 3 + [[2, 1, 3, 0]] * 3
    # First: A .4, B .3, C .3. Within two: B 1, C .6. Within three: C 1, D .3.
    assert cp_consensus(draws).tolist() == [0, 1, 2, 3]
    # The most frequent first item leads although its mean rank is the worst.
    draws = [[3, 0, 1, 2]] * 4 + [[0, 1, 2, 3]] * 3 + [[1, 0, 2, 3]] * 3
    assert cp_consensus(draws).tolist() == [3, 0, 1, 2]
    # A tie for the first place goes to the better mean rank.
    assert cp_consensus([[0, 1, 2], [1, 2, 0]]).tolist() == [1, 0, 2]


def test_map_consensus():
    ordering, probability = map_consensus([[0, 1, 2], [2, 1, 0], [2, 1, 0], [1, 0, 2]])
    assert ordering.tolist() == [2, 1, 0]
    assert probability == 0.5


def test_borda_ordering_spreads_the_unlisted_evenly():
    rankings = Rankings.from_orderings([[2, 0], [1], [2, 1, 0, 3]], num_items=4, counts=[3, 1, 2])
    # Places: list 1 gives A 1, B 2.5, C 0, D 2.5; list 2 B 0, others 2; list 3 A 2, B 1, C 0, D 3.
    total = np.array([3 * 1 + 2 + 2 * 2, 3 * 2.5 + 0 + 2 * 1, 0 + 2 + 0, 3 * 2.5 + 2 + 2 * 3])
    assert borda_ordering(rankings).tolist() == np.argsort(total).tolist()


def _samples(rng, num_draws, n, num_stages, labels, num_slots=4):
    sizes = np.stack([np.bincount(x, minlength=num_slots) for x in labels]).astype(np.int32)
    return {
        "assignments": labels.astype(np.int8),
        "center": np.argsort(rng.random((num_draws, num_slots, n))).astype(np.int32),
        "concentration": rng.gamma(1.0, 1.0, (num_draws, num_slots, num_stages)),
        "cluster_sizes": sizes,
        "num_clusters": (sizes > 0).sum(1),
        "alpha": rng.gamma(2.0, 1.0, num_draws),
    }


@pytest.mark.parametrize("num_components", [None, 4, 1])
def test_log_predictive_density_against_a_numpy_twin(num_components):
    rng = np.random.default_rng(2)
    n, num_stages, num_draws, num_fitted = 5, 4, 6, 12
    labels = rng.integers(0, 1 if num_components == 1 else 3, (num_draws, num_fitted))
    slots = num_components or 4
    samples = _samples(rng, num_draws, n, num_stages, labels, slots)
    lists = [[0], [3, 1], [4, 2, 0], [1, 0, 2, 3, 4], [1, 0, 2, 3]]
    new = Rankings.from_orderings(lists, num_items=n, counts=[1, 2, 1, 1, 3])
    density = np.zeros((num_draws, len(lists)))
    for d, (i, ordering) in itertools.product(range(num_draws), enumerate(lists)):
        alpha, sizes = samples["alpha"][d], samples["cluster_sizes"][d]
        alone = math.factorial(n - len(ordering)) / math.factorial(n)
        for c in range(slots):
            weight = sizes[c] + (0 if num_components is None else alpha / slots)
            seen = mallows_twin(ordering, samples["center"][d, c], samples["concentration"][d, c])
            density[d, i] += weight * (seen if sizes[c] else alone)
        if num_components is None:
            density[d, i] += alpha * alone
        density[d, i] /= num_fitted + alpha
    got = log_predictive_density(samples, new, num_components)
    np.testing.assert_allclose(got, np.log(density.mean(0)), rtol=1e-5)
    by_chain = {name: x.reshape(2, 3, *x.shape[1:]) for name, x in samples.items()}
    np.testing.assert_allclose(
        log_predictive_density(by_chain, new, num_components), got, rtol=1e-6
    )


def test_predictive_density_sums_to_one_over_all_lists_of_a_length():
    rng = np.random.default_rng(3)
    samples = _samples(rng, 4, 4, 2, rng.integers(0, 3, (4, 9)))
    lists = [list(x) for x in itertools.permutations(range(4), 2)]
    new = Rankings.from_orderings(lists, num_items=4)
    assert np.exp(log_predictive_density(samples, new, None)).sum() == pytest.approx(1, rel=1e-5)


def test_predictive_density_refuses_what_was_not_fitted():
    rng = np.random.default_rng(4)
    samples = _samples(rng, 4, 5, 2, rng.integers(0, 3, (4, 9)))
    longer = Rankings.from_orderings([[0], [0, 1, 2]], num_items=5)
    with pytest.raises(ValueError, match="row 2 lists 3 items, but the fitted lists had at most 2"):
        log_predictive_density(samples, longer, None)
    with pytest.raises(ValueError, match="are of 4 items, the fitted ones of 5"):
        log_predictive_density(samples, Rankings.from_orderings([[0]], num_items=4), None)
    with pytest.raises(ValueError, match="are of 4 components, not of 3"):
        log_predictive_density(samples, Rankings.from_orderings([[0]], num_items=5), 3)


@pytest.mark.parametrize("num_components", [None, 3, 1])
def test_a_run_knows_its_number_of_components(num_components):
    rankings = Rankings.from_orderings([[0, 1, 2], [2, 1, 0], [1, 0, 2]], num_items=3)
    mcmc = fabricated_mcmc(rankings, num_components)
    found = log_predictive_density(mcmc, rankings)
    samples = mcmc.get_samples()
    expected = log_predictive_density(samples, rankings, num_components)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(log_predictive_density(mcmc, rankings, num_components), found)
    data = to_inference_data(mcmc, rankings, log_likelihood=False)
    np.testing.assert_allclose(log_predictive_density(data, rankings), found, rtol=1e-6)
    for told in (mcmc, data):
        with pytest.raises(ValueError, match=r"num_components=2 was not fitted, but .*: leave it"):
            log_predictive_density(told, rankings, 2)
        if num_components is not None:
            with pytest.raises(ValueError, match="=None was not fitted, but num_components="):
                log_predictive_density(told, rankings, None)
    if num_components == 1:
        np.testing.assert_array_equal(log_predictive_density(samples, rankings), found)
    else:
        with pytest.raises(ValueError, match=r"do not say .*: pass the run instead"):
            log_predictive_density(samples, rankings)


def test_a_posterior_has_the_components_that_are_always_empty():
    rankings = Rankings.from_orderings([[0, 1, 2], [2, 1, 0], [1, 0, 2]], num_items=3)
    mcmc = fabricated_mcmc(rankings, 7)
    data = to_inference_data(mcmc, rankings, log_likelihood=False)
    assert data["posterior"].sizes["cluster"] < 7
    expected = log_predictive_density(mcmc, rankings)
    np.testing.assert_allclose(log_predictive_density(data, rankings), expected, rtol=1e-6)


def test_draws_that_fill_all_clusters_are_of_a_finite_mixture():
    rng = np.random.default_rng(4)
    samples = _samples(rng, 2, 5, 2, np.array([[0, 1, 2, 3, 3], [0, 1, 2, 2, 3]]))
    new = Rankings.from_orderings([[0]], num_items=5)
    with pytest.raises(ValueError, match="all 4 clusters are occupied in all draws"):
        log_predictive_density(samples, new, None)
    assert np.isfinite(log_predictive_density(samples, new, 4)).all()


def test_profiles_follow_a_cluster_through_label_switches():
    rng = np.random.default_rng(5)
    n, names = 4, ["Ann", "Bob", "Cid", "Dee"]
    labels = np.array([[0, 0, 0, 1, 1], [0, 0, 0, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]])
    samples = _samples(rng, 4, n, 3, labels)
    first, second = np.array([2, 0, 1, 3]), np.array([3, 1, 0, 2])
    samples["center"][[0, 1, 3], 0] = samples["center"][2, 1] = first
    samples["center"][[0, 1], 1] = samples["center"][2, 0] = second
    samples["concentration"][[0, 1, 3], 0] = samples["concentration"][2, 1] = 2.0
    samples["concentration"][[0, 1], 1] = samples["concentration"][2, 0] = [0.5, 0.0, 0.0]
    rankings = Rankings.from_orderings([[2, 0, 1]] * 3 + [[3, 1]] * 2, num_items=n, items=names)
    large, small = cluster_profiles(samples, rankings)
    assert large.consensus == large.map_consensus == ("Cid", "Ann", "Bob", "Dee")
    assert small.consensus == ("Dee", "Bob", "Ann", "Cid")
    assert (large.presence, small.presence) == (1.0, 0.75)
    assert (large.size, small.size) == (3.5, 2.0)
    assert (large.label, small.label) == (0, 1)
    np.testing.assert_allclose(large.concentration, [2, 2, 2])
    np.testing.assert_allclose(small.concentration_interval, [[0.5, 0.5], [0, 0], [0, 0]])
    assert large.interval_over_all == large.size_interval
    assert small.interval_over_all == pytest.approx((0.3, 2.0))  # 0 in one of four draws
    assert large.levels == (("Cid",), ("Ann",), ("Bob",), ("Dee",))
    assert large.clear_pairs == ()
    assert large.rank_mean.tolist() == [2, 3, 1, 4]
    assert large.rank_interval.tolist() == [[2, 2], [3, 3], [1, 1], [4, 4]]
    stage = np.exp(-0.5 * np.arange(4))
    stage /= stage.sum()
    entropy = -(stage * np.log(stage)).sum() + np.log(3) + np.log(2)
    assert small.entropy == pytest.approx(entropy, rel=1e-5)
    assert small.agreement == pytest.approx(1 - entropy / np.log(24), abs=1e-5)
    assert large.agreement > small.agreement


def test_profiles_are_of_the_partition_of_least_expected_loss():
    """Which is no draw here: in each of them two of the rankings stray."""
    labels, each = np.tile(np.repeat([0, 1], 12), (12, 1)), np.arange(12)
    labels[each, each], labels[each, 12 + each] = 1, 0
    samples = _samples(np.random.default_rng(6), 12, 4, 3, labels)
    rankings = Rankings.from_orderings([[0, 1, 2]] * 24, num_items=4)
    assert [p.presence for p in cluster_profiles(samples, rankings)] == [1, 1]
    found = [p.members.tolist() for p in partition_profiles(labels)]
    assert found == [list(range(12)), list(range(12, 24))]


def test_profile_of_a_cluster_that_is_in_no_draw():
    labels, lone = np.repeat([[0, 0, 0, 1, 1, 1]], 2, axis=0), np.array([0, 0, 2, 1, 1, 1])
    samples = _samples(np.random.default_rng(6), 2, 4, 3, labels)
    rankings = Rankings.from_orderings([[0, 1, 2]] * 6, num_items=4)
    with pytest.raises(ValueError, match="cluster 2 of the reference partition is found in no"):
        cluster_profiles(samples, rankings, lone)
    last = partition_profiles(labels, lone)[-1]
    assert (last.size, last.presence, last.members.tolist()) == (0, 0, [2])


def test_profiles_of_weights():
    """Two clusters whose labels switch between the draws; numbers by hand."""
    rankings = Rankings.from_orderings([[0, 1], [1], [3]], num_items=5, items=list("abcde"))
    labels = np.array([[0, 0, 1], [0, 0, 1], [0, 1, 2]])
    one, two = [0.6, 0.3, 0.05], [0.1, 0.1, 0.7]
    weights = np.array([[one, two, one], [[0.4, 0.5, 0.05], two, one], [one, one, two]])
    samples = {
        "assignments": labels,
        "weights": weights,
        "unseen_weight": 1.0 - weights.sum(-1),
        "cluster_sizes": np.array([[2, 1, 0], [2, 1, 0], [1, 1, 1]]),
        "log_joint": np.zeros(3),
    }
    first, second = cluster_profiles(samples, rankings, [0, 0, 1])
    assert first.consensus == ("a", "b", "d") and second.consensus == ("d", "a", "b")
    np.testing.assert_allclose(first.weights, np.mean([one, [0.4, 0.5, 0.05], one], axis=0))
    np.testing.assert_allclose(second.weights_interval, np.stack([two, two], -1))
    assert first.size == pytest.approx(5 / 3) and second.size == 1.0
    assert first.unseen_weight == pytest.approx(0.05) and first.presence == 1.0
    shares = np.array(two) / 0.9
    entropy = -np.sum(shares * np.log(shares)) / math.log(3)
    assert second.entropy == pytest.approx(entropy)
    assert second.agreement == pytest.approx(1.0 - entropy)
    population = {"weights": weights[:, 0], "log_joint": np.zeros(3)}
    (only,) = cluster_profiles(population, rankings.of_listed_items())
    assert only.size == 3 and only.unseen_weight is None and only.presence == 1.0
    np.testing.assert_allclose(only.weights, weights[:, 0].mean(0))


def test_profiles_of_a_partition_against_all_pairs():
    rng = np.random.default_rng(4)
    reference = np.repeat([0, 1, 2, 3], [9, 6, 4, 1])
    noise = rng.random((50, 20)) < 0.2
    draws = np.where(noise, rng.integers(0, 5, (50, 20)), reference)
    together = (draws[:, :, None] == draws[:, None, :]).mean(0)
    found = membership_probability(draws, reference)
    for i in range(19):
        others = [j for j in range(20) if j != i and reference[j] == reference[i]]
        assert found[i] == pytest.approx(together[i, others].mean())
    alone = [np.sum(labels == labels[19]) == 1 for labels in draws]
    assert found[19] == pytest.approx(np.mean(alone)) and 0 < found[19] < 1

    profiles = partition_profiles(draws, reference)
    assert [p.label for p in profiles] == [0, 1, 2, 3]
    for p in profiles:
        assert p.members.tolist() == np.flatnonzero(reference == p.label).tolist()
        assert p.cohesion == pytest.approx(found[p.members].mean())
        low, high = p.size_interval
        assert low <= p.size <= high
    # label 0 is mostly the first cluster whatever the noise, so its size is that of the label
    sizes = (draws == 0).sum(1)
    assert profiles[0].presence == 1
    assert profiles[0].size == pytest.approx(sizes.mean())
    assert profiles[0].size_interval == tuple(np.quantile(sizes, [0.05, 0.95]))
    assert profiles[3].presence < 1


def test_membership_in_many_small_clusters():
    draws = np.random.default_rng(8).integers(0, 70, (5, 80))
    reference = canonical_labels(draws[0])
    assert draws.max() * reference.max() > 4 * 80
    together = (draws[:, :, None] == draws[:, None, :]).mean(0)
    same = (reference[:, None] == reference) & ~np.eye(80, dtype=bool)
    with_others = same.any(1)
    expected = (together * same).sum(1)[with_others] / same.sum(1)[with_others]
    np.testing.assert_allclose(membership_probability(draws, reference)[with_others], expected)


def test_the_entropies_of_all_clusters_are_one_program(monkeypatch):
    """Each number of draws that have a cluster would be another one."""
    calls, of_all = [], mallows._entropy

    def spy(center, theta):
        calls.append(len(center))
        return of_all(center, theta)

    monkeypatch.setattr(mallows, "_entropy", spy)
    labels = np.array([[0, 0, 1], [0, 0, 0], [0, 0, 1]])
    samples = _samples(np.random.default_rng(9), 3, 4, 2, labels)
    rankings = Rankings.from_orderings([[2, 0, 1]] * 3, num_items=4)
    found = cluster_profiles(samples, rankings, labels[0])
    assert calls == [5] and [p.presence for p in found] == [1.0, pytest.approx(2 / 3)]
    center, theta = samples["center"][[0, 2], 1], samples["concentration"][[0, 2], 1]
    assert found[1].entropy == pytest.approx(float(np.mean(of_all(center, theta))), rel=1e-6)


@pytest.mark.parametrize("samples", [{}, {"assignments": np.zeros((2, 3), int)}])
def test_samples_of_something_else(samples):
    rankings = Rankings.from_orderings([[0, 1], [1]], num_items=3)
    for function in (cluster_profiles, log_predictive_density):
        with pytest.raises(ValueError, match="samples must be those of a Mallows or Plackett"):
            function(samples, rankings)


@pytest.mark.parametrize("consensus", [cp_consensus, map_consensus, rank_probabilities])
def test_orderings_that_are_none(consensus):
    bad = [[0, 1, 2]], [[0, 0, 1]], [[0, -1, 1]], [[1, 2, 3]], [[0.0, np.nan, 1.0]]
    consensus(bad[0])
    consensus([bad[0], bad[0]])  # by chain
    for orderings in (*bad[1:], [0, 1, 2], np.zeros((0, 3), int)):
        with pytest.raises(ValueError, match="draws of a full ordering"):
            consensus(orderings)


def test_kendall_distance_of_other_items():
    for other in ([0, 1], [0, 0, 1], [1, 2, 3], 0):
        with pytest.raises(ValueError, match="of the same items are needed"):
            kendall_distance([0, 1, 2], other)


def test_what_is_no_draws_and_no_rankings():
    rankings = Rankings.from_orderings([[0, 1], [1]], num_items=3)
    draws = {
        "assignments": np.zeros((4, 2), int),
        "center": np.tile(np.arange(3), (4, 1, 1)),
        "concentration": np.ones((4, 1, 2)),
        "cluster_sizes": np.full((4, 1), 2),
    }
    assert len(cluster_profiles(draws, rankings)) == 1
    others = Rankings.from_orderings([[0, 1], [1], [2]], num_items=3)
    with pytest.raises(ValueError, match="was of 2 rankings of 3 items; these are 3 of 3"):
        cluster_profiles(draws, others)
    with pytest.raises(TypeError, match="rankings must be a Rankings, got list"):
        cluster_profiles(draws, [[0, 1], [1]])
    none = {name: value[:0] for name, value in draws.items()}
    with pytest.raises(ValueError, match="there are no draws"):
        cluster_profiles(none, rankings)
    with pytest.raises(TypeError, match="rankings must be a Rankings, got list"):
        log_predictive_density(draws, [[0, 1]])
    for function in (cluster_profiles, log_predictive_density):
        with pytest.raises(TypeError, match=r"must be a dictionary.* got Rankings"):
            function(rankings, draws)
    with pytest.raises(TypeError, match=r"must be a dictionary.* got list"):
        relabel_samples([draws])
    missing = {"assignments": [[0.0, np.nan]]}
    with pytest.raises(ValueError, match="whole numbers from 0"):
        relabel_samples(missing)


def test_profiles_of_a_block_with_other_names():
    """A block returns its sites under the model's names, and no sizes."""
    rankings = Rankings.from_orderings([[0, 1, 2], [2, 1, 0], [1, 0, 2]], num_items=3)
    samples = fabricated_mcmc(rankings, 3).get_samples()
    sites = {"assignments": "z", "center": "sigma", "concentration": "theta"}
    of_block = {own: samples[name] for name, own in sites.items()} | {"rate": np.ones(60)}
    found = cluster_profiles(of_block, rankings, sites=sites)
    for one, two in zip(found, cluster_profiles(samples, rankings), strict=True):
        for x, y in zip(vars(one).values(), vars(two).values(), strict=True):
            np.testing.assert_array_equal(x, y)
    by_chain = {name: x.reshape(2, 30, *x.shape[1:]) for name, x in of_block.items()}
    assert len(cluster_profiles(by_chain, rankings, sites=sites)) == len(found)
    with pytest.raises(ValueError, match="no site 'label'; they have z, sigma, theta, rate"):
        cluster_profiles(of_block, rankings, sites=sites | {"assignments": "label"})
    with pytest.raises(ValueError, match="sites must name the assignments"):
        cluster_profiles(of_block, rankings, sites={"concentration": "theta"})


def test_mean_sizes_count_the_draws_without_the_cluster():
    """One cluster of two is found in half of the draws; otherwise all four points are together."""
    two, one = [0, 0, 1, 1], [0, 0, 0, 0]
    first, second = partition_profiles([two, one, two, one], two)
    assert (first.size, first.presence, first.mean_size) == (3.0, 1.0, 3.0)
    assert (second.size, second.presence, second.mean_size) == (2.0, 0.5, 1.0)
    assert first.mean_size + second.mean_size == 4  # shares add up


def test_levels_are_cut_where_draws_are_certain():
    orderings = np.array([[2, 0, 1, 3]] * 60 + [[2, 1, 0, 3]] * 37 + [[2, 0, 3, 1]] * 3)
    found = [level.tolist() for level in certain_levels(orderings, np.array([2, 0, 1, 3]))]
    assert found == [[2], [0, 1], [3]]  # the last one is so in 97% of the draws
    found = [x.tolist() for x in certain_levels(orderings[37:], np.array([2, 0, 1, 3]))]
    assert found == [[2], [0, 1], [3]]
    found = [x.tolist() for x in certain_levels(orderings[-40:], np.array([2, 0, 1, 3]))]
    assert found == [[2], [0, 1, 3]]
    assert [x.tolist() for x in certain_levels(orderings[:, :1] * 0, np.array([0]))] == [[0]]


CYCLE = np.array([[0.5, 0.7, 0.3, 0.9], [0.3, 0.5, 0.7, 0.9], [0.7, 0.3, 0.5, 0.9], [0.1] * 4])
CHAIN = np.array([[0.5, 0.55, 0.8], [0.45, 0.5, 0.59], [0.2, 0.41, 0.5]])  # 0 before 2 alone


@pytest.mark.parametrize(
    ("shares", "levels", "pairs"),
    [
        (CYCLE, [[0, 1, 2], [3]], [(0, 1), (1, 2), (2, 0)]),
        (CYCLE[::-1, ::-1], [[1, 2, 3], [0]], [(1, 3), (2, 1), (3, 2)]),
        (CHAIN, [[0, 1, 2]], [(0, 2)]),
        (CHAIN[:2, :2], [[0, 1]], []),
        (1 - CHAIN, [[0, 1, 2]], [(2, 0)]),
        (np.full((3, 3), 0.5), [[0, 1, 2]], []),
        (np.triu(np.full((3, 3), 0.6), 1), [[0], [1], [2]], []),
        (np.tril(np.full((3, 3), 0.6), -1), [[2], [1], [0]], []),
        (np.ones((1, 1)), [[0]], []),
    ],
)
def test_levels_and_clear_pairs_of_shares(shares, levels, pairs):
    found = levels_of_shares(shares)
    assert [level.tolist() for level in found] == levels
    assert sorted(clear_pairs(shares, found)) == pairs


def test_levels_cannot_be_divided():
    """Of random relations of up to six items, which often have circles."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(2, 7))
        shares = rng.choice([0.3, 0.5, 0.7], (n, n), p=rng.dirichlet([0.5, 0.5, 3]))
        shares = np.triu(shares, 1) + np.triu(1 - shares, 1).T
        levels = levels_of_shares(shares)
        assert sorted(np.concatenate(levels).tolist()) == list(range(n))
        for k, level in enumerate(levels):
            later = [i for x in levels[k + 1 :] for i in x]
            assert (shares[np.ix_(level, later)] >= 0.6).all()
            for size in range(1, len(level)):
                for some in itertools.combinations(level.tolist(), size):
                    others = sorted({*level.tolist()} - {*some})
                    assert not (shares[np.ix_(some, others)] >= 0.6).all()


@pytest.mark.parametrize("with_sets", [False, True])
def test_times_above_are_counted_over_lists(with_sets):
    """A slow twin: one pair of items and one list at a time."""
    rng, n = np.random.default_rng(2), 6
    sets = rng.random((40, n)) < 0.7 if with_sets else np.ones((40, n), bool)
    sets[:, :2] = True
    lists = [rng.permutation(np.flatnonzero(x))[: rng.integers(1, 5)].tolist() for x in sets]
    rankings = Rankings.from_orderings(lists, num_items=n, choice_sets=sets if with_sets else None)
    amounts = rng.random(rankings.num_rows) * rng.integers(0, 2, rankings.num_rows)
    items = rng.permutation(n)[:4]
    expected = np.zeros((4, 4))
    rows = zip(np.asarray(rankings.orderings).tolist(), amounts, sets, strict=True)
    for row, amount, offered in rows:
        for a, b in itertools.permutations(range(4), 2):
            first, second = items[a], items[b]
            behind = second in row[: row.index(first)] if first in row else True
            expected[a, b] += amount * (not behind and offered[second])
    np.testing.assert_allclose(times_above(rankings, amounts, items), expected, atol=1e-12)


@pytest.mark.parametrize("with_sets", [False, True])
def test_times_above_are_counted_over_partial_orders(with_sets):
    """A slow twin: one pair of items and one judge at a time; those without ties are lists."""
    rng, n = np.random.default_rng(3), 6
    sets = rng.random((30, n)) < 0.7 if with_sets else np.ones((30, n), bool)
    sets[:, :2] = True
    buckets = []
    for offered in sets:
        listed = rng.permutation(np.flatnonzero(offered))[: rng.integers(1, 5)]
        level = np.sort(rng.integers(0, 3, len(listed)))
        buckets.append([listed[level == k].tolist() for k in np.unique(level)])
    orders = PartialOrders.from_buckets(buckets, n, choice_sets=sets if with_sets else None)
    amounts = rng.random(30) * rng.integers(0, 2, 30)
    items = rng.permutation(n)[:4]
    expected = np.zeros((4, 4))
    for row, amount, offered in zip(buckets, amounts, sets, strict=True):
        level = {item: k for k, bucket in enumerate(row) for item in bucket}
        for a, b in itertools.permutations(range(4), 2):
            one, two = items[a], items[b]
            is_above = one in level and offered[two] and level[one] < level.get(two, 9)
            expected[a, b] += amount * is_above
    np.testing.assert_allclose(times_above(orders, amounts, items), expected, atol=1e-12)
    strict = orders.with_orderings(orders.listed)
    found = times_above(PartialOrders.from_rankings(strict), amounts, items)
    np.testing.assert_allclose(found, times_above(strict, amounts, items), atol=1e-12)


def test_items_beyond_those_that_are_compared_are_in_the_last_level():
    above = np.array([[0, 90, 90], [10, 0, 50], [10, 50, 0]])
    found = wants_of_members(above, np.array([4, 2, 0, 3, 1]))
    assert [level.tolist() for level in found.levels] == [[4], [2, 0, 3, 1]]
    few = wants_of_members(above / 50, np.array([4, 2, 0]))  # of two lists little can be said
    assert len(few.levels) == 2
    assert len(wants_of_members(above / 1000, np.array([4, 2, 0])).levels) == 1


def test_a_group_wants_what_its_members_say_and_not_what_the_draws_are_sure_of():
    """All draws have the same center; 55 of 100 members put its first item first, and 80 the second
    before the third. Two lists are in the group in every second draw only.
    """
    lists = [[0, 1, 2]] * 40 + [[0, 2, 1]] * 15 + [[1, 0, 2]] * 40 + [[1, 2, 0]] * 5
    lists += [[2, 1, 0]] * 100
    rankings = Rankings.from_orderings(lists, num_items=3, items=["A", "B", "C"])
    labels = np.tile(np.repeat([0, 1], 100), (4, 1))
    labels[::2, :2] = 1
    samples = _samples(np.random.default_rng(0), 4, 3, 2, labels)
    samples["center"][:, 0], samples["center"][:, 1] = [0, 1, 2], [2, 1, 0]
    found = {p.label: p for p in cluster_profiles(samples, rankings, labels[1])}
    assert found[0].levels == (("A", "B"), ("C",)) and found[0].clear_pairs == ()
    assert found[0].certain == (("A",), ("B",), ("C",))
    assert found[1].levels == (("C",), ("B",), ("A",))


def test_a_group_holds_if_its_members_are_found_together_again():
    """In two of three draws the last group is matched to a cluster of one of its members."""
    two = np.repeat([0, 1], [6, 4])
    away = np.repeat([0, 0, 1], [6, 3, 1])
    labels = np.array([two, away, away])
    first, last = partition_profiles(labels, two)
    assert (first.presence, first.matched, last.matched) == (1.0, 1.0, 1.0)
    assert last.presence == pytest.approx(1 / 3)
    assert holds(first) and not holds(last)
    assert holds(last._replace(presence=0.51)) and not holds(last._replace(presence=0.5))
    assert last.size == last.mean_size == 2.0  # of the clusters that are matched
    samples = _samples(np.random.default_rng(6), 3, 4, 3, labels)
    rankings = Rankings.from_orderings([[0, 1, 2]] * 10, num_items=4)
    of_rankings = cluster_profiles(samples, rankings, two)
    weighted = {"assignments": labels, "weights": np.full((3, 2, 4), 0.25)}
    sizes = np.array([np.bincount(x, minlength=2) for x in labels])
    weighted |= {"cluster_sizes": sizes, "log_joint": np.zeros(3)}
    for found in (of_rankings, cluster_profiles(weighted, rankings, two)):
        assert [p.presence for p in found] == [1.0, pytest.approx(1 / 3)]
        assert [p.matched for p in found] == [1.0, 1.0]
