"""Distances between partitions against the definitions, by brute force over pairs and labels."""

import itertools

import numpy as np
import pytest
from helpers.enumeration import binder_loss, partitions
from scipy.optimize import linear_sum_assignment

from numpyro_rankings.posterior.partitions import (
    adjusted_rand_index,
    canonical_draws,
    canonical_labels,
    coclustering,
    coclustering_blocks,
    coclustering_of_groups,
    contingency_table,
    found_again,
    match_clusters,
    medoid_partition,
    partition_entropy,
    variation_of_information,
)


def _vi_by_definition(a, b):
    n, total = len(a), 0.0
    for x, y in set(zip(a, b, strict=True)):
        p_a, p_b = a.count(x) / n, b.count(y) / n
        both = sum(pair == (x, y) for pair in zip(a, b, strict=True)) / n
        total -= both * (np.log(both / p_a) + np.log(both / p_b))
    return total


def _ari_by_pairs(a, b):
    pairs = list(itertools.combinations(range(len(a)), 2))
    in_a = np.array([a[i] == a[j] for i, j in pairs])
    in_b = np.array([b[i] == b[j] for i, j in pairs])
    expected = in_a.sum() * in_b.sum() / len(pairs)
    most = (in_a.sum() + in_b.sum()) / 2
    return 1.0 if most == expected else ((in_a & in_b).sum() - expected) / (most - expected)


def test_distances_equal_their_definitions_on_all_partitions_of_four():
    for a, b in itertools.product(partitions(4), repeat=2):
        assert variation_of_information(a, b) == pytest.approx(_vi_by_definition(a, b), abs=1e-12)
        assert adjusted_rand_index(a, b) == pytest.approx(_ari_by_pairs(a, b), abs=1e-12)


def test_variation_of_information_is_a_metric_and_blind_to_labels():
    rng = np.random.default_rng(0)
    a, b, c = rng.integers(0, 5, (3, 200))
    vi = variation_of_information
    assert vi(a, b) == pytest.approx(vi(b, a))
    assert vi(a, c) <= vi(a, b) + vi(b, c)
    assert vi(a, -7 * b) == pytest.approx(vi(a, b))
    assert vi(a, a + 3) == 0
    assert vi(np.arange(50), np.zeros(50, int)) == pytest.approx(np.log(50))


def test_entropy_ignores_empty_clusters():
    entropy = partition_entropy([[5, 5, 0, 0], [10, 0, 0, 0]])
    np.testing.assert_allclose(entropy, [np.log(2), 0], atol=1e-15)
    assert partition_entropy([3, 1]) == pytest.approx(-0.75 * np.log(0.75) - 0.25 * np.log(0.25))


def test_canonical_labels_count_up_in_order_of_first_use():
    assert canonical_labels([7, 7, 2, 9, 2]).tolist() == [0, 0, 1, 2, 1]
    labels = canonical_labels(np.array([[[1, 0], [0, 0]]], np.int8))
    assert labels.tolist() == [[[0, 1], [0, 0]]]
    assert canonical_labels([-3, 1000, -3, 0]).tolist() == [0, 1, 0, 2]
    assert canonical_labels(["b", "a", "b"]).tolist() == [0, 1, 0]
    for a in partitions(4):
        assert tuple(canonical_labels(a)) == a


_DRAWS = np.array([[0, 0, 1], [0, 1, 1]])
_MISSING = np.array([[0.0, 0.0, np.nan], [0.0, 1.0, 1.0]])


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: contingency_table([0, 1], [0, 1, 1]), "same rankings"),
        (lambda: contingency_table([0.2, 1.7], [0, 1]), "whole numbers from 0"),
        (lambda: canonical_labels([]), "labels are needed"),
        (lambda: variation_of_information([0, 1], [0, 1, 1]), "same rankings"),
        (lambda: variation_of_information([0, np.nan, 1], [0, 1, 1]), "none missing"),
        (lambda: variation_of_information(_DRAWS, _DRAWS), "labels of one partition"),
        (lambda: adjusted_rand_index([0, 1, 1], _MISSING[0]), "none missing"),
        (lambda: adjusted_rand_index([], []), "whole numbers from 0"),
        (lambda: coclustering(_DRAWS[0]), r"\(D, N\), or \(chains, draws, N\); got shape \(3,\)"),
        (lambda: coclustering(_MISSING), "whole numbers from 0"),
        (lambda: coclustering(np.zeros((0, 3), int)), "whole numbers from 0"),
        (lambda: coclustering(_DRAWS, [3]), "judges must be whole numbers from 0 to 2"),
        (lambda: coclustering(_DRAWS, [0], [-1]), "judges must be"),
        (lambda: coclustering(_DRAWS, [0.5]), "judges must be"),
        (lambda: coclustering_blocks(_DRAWS, 0), "block_size must be"),
        (lambda: coclustering_blocks(_DRAWS, 1.5), "block_size must be"),
        (lambda: coclustering_blocks([0, 1]), r"must be whole numbers from 0, \(D, N\)"),
        (lambda: medoid_partition(_DRAWS + 0.5), "whole numbers from 0"),
        (lambda: medoid_partition(_DRAWS - 1), "whole numbers from 0"),
        (lambda: medoid_partition(_DRAWS, max_draws=0), "max_draws must be"),
        (lambda: medoid_partition(_DRAWS, loss="rand"), "loss must be one of vi, binder"),
        (lambda: medoid_partition(_DRAWS * 10**9), "number the clusters, 0, 1, …; one is 10000"),
        (lambda: match_clusters(_DRAWS, [0, 1, 10**9]), "number the clusters"),
        (lambda: match_clusters(_DRAWS, [0, 1]), "the same 3 points"),
        (lambda: match_clusters(_DRAWS, [0, -1, 1]), "whole numbers from 0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_names_as_labels_and_draws_by_chain():
    assert adjusted_rand_index(["b", "b", "a"], [0, 0, 1]) == 1.0
    assert variation_of_information(["b", "b", "a"], [0, 0, 1]) == 0.0
    by_chain = np.random.default_rng(4).integers(0, 3, (2, 5, 7))
    draws = by_chain.reshape(10, 7)
    np.testing.assert_array_equal(coclustering(by_chain), coclustering(draws))
    medoid, other = medoid_partition(by_chain), medoid_partition(draws)
    assert medoid.labels.tolist() == other.labels.tolist() and medoid.draw == other.draw
    matched = match_clusters(by_chain, draws[0])
    np.testing.assert_array_equal(matched, match_clusters(draws, draws[0]))


def test_coclustering_of_all_and_of_a_few():
    draws = np.array([[0, 0, 1], [0, 1, 1], [0, 0, 0], [0, 0, 1]], np.int8)
    expected = np.array([[1, 0.75, 0.25], [0.75, 1, 0.5], [0.25, 0.5, 1]])
    np.testing.assert_allclose(coclustering(draws), expected)
    np.testing.assert_allclose(coclustering(draws, [2, 0]), expected[np.ix_([2, 0], [2, 0])])
    with pytest.raises(ValueError, match="judges"):
        coclustering(np.zeros((1, 6000), np.int8))


def test_coclustering_of_groups():
    """The mean of the matrix over pairs of members, without those of a member with itself."""
    rng = np.random.default_rng(3)
    draws, groups = rng.integers(0, 4, (7, 30)), np.repeat([0, 1, 2], [12, 17, 1])
    pairs = coclustering(draws)
    np.fill_diagonal(pairs, np.nan)
    expected = np.array(
        [[pairs[np.ix_(groups == a, groups == b)] for b in range(3)] for a in range(3)],
        dtype=object,
    )
    found = coclustering_of_groups(draws, groups)
    for a, b in np.ndindex(2, 3):
        assert found[a, b] == found[b, a] == pytest.approx(np.nanmean(expected[a, b]))
    assert np.isnan(found[2, 2])
    assert coclustering_of_groups(draws.astype(np.int8), groups)[0, 0] == found[0, 0]


def test_coclustering_of_some_with_others():
    draws = np.random.default_rng(2).integers(0, 4, (30, 25))
    full = (draws[:, :, None] == draws[:, None]).mean(0)
    found = coclustering(draws, [3, 0, 8], [1, 3])
    np.testing.assert_allclose(found, full[np.ix_([3, 0, 8], [1, 3])])
    np.testing.assert_allclose(coclustering(draws, others=[7]), full[:, [7]])
    many = np.zeros((2, 6000), np.int8)
    assert coclustering(many, [5]).shape == (1, 1)
    assert coclustering(many, [5], range(6000)).shape == (1, 6000)


@pytest.mark.parametrize("block_size", [1, 7, 25, 100])
def test_coclustering_in_blocks(block_size):
    rng = np.random.default_rng(3)
    draws = rng.integers(0, 3, (12, 10))[:, rng.integers(0, 10, 25)]  # with equal columns
    rows, blocks = zip(*coclustering_blocks(draws, block_size), strict=True)
    assert [len(x) for x in rows[:-1]] == [block_size] * (len(rows) - 1)
    np.testing.assert_array_equal(np.concatenate(rows), np.arange(25))
    np.testing.assert_array_equal(np.concatenate(blocks), coclustering(draws))


def test_one_block_of_very_many_rankings():
    """Their matrix would take 80 GB."""
    labels = np.tile(np.arange(100_000) % 5, (3, 1)).astype(np.int8)
    rows, block = next(coclustering_blocks(labels, 4))
    assert rows.tolist() == [0, 1, 2, 3] and block.shape == (4, 100_000)
    assert block.sum(1).tolist() == [20_000] * 4 and block[2, 7] == 1


TRUTH = np.repeat([0, 1, 2], 20)
RNG = np.random.default_rng(1)
FEW = [
    np.where(RNG.random(60) < noise, RNG.integers(0, 3, 60), TRUTH)
    for noise in (0.5, 0.4, 0.0, 0.3, 0.5)
]
MANY = canonical_labels(RNG.integers(0, 40, (6, 60)))  # for which no table is made


@pytest.mark.parametrize("draws", [FEW, MANY])
@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_medoid_is_the_draw_of_least_mean_loss(draws, loss):
    measure = binder_loss if loss == "binder" else variation_of_information
    expected = np.array([[measure(a, b) for b in draws] for a in draws]).mean(1)
    best = medoid_partition(draws, loss=loss)
    assert best.draw == expected.argmin()
    assert best.expected_loss == pytest.approx(expected.min())
    if draws is FEW:
        assert best.draw == 2 and best.labels.tolist() == TRUTH.tolist()
    else:
        assert (draws.max(1) + 1).min() ** 2 > 4 * 60


def test_medoid_of_many_draws_compares_a_few():
    draws = np.tile(np.array([[0, 1, 1]], np.int8), (1000, 1))
    assert medoid_partition(draws, max_draws=3).labels.tolist() == [0, 1, 1]


def test_clusters_are_matched_by_greatest_overlap():
    reference = np.repeat([0, 1, 2], [5, 4, 3])
    swapped = np.repeat([0, 2, 1], [5, 4, 3])
    merged = np.repeat([0, 0, 1], [5, 4, 3])
    split = np.repeat([0, 3, 1, 2], [4, 1, 4, 3])
    matched = match_clusters(np.array([reference, swapped, merged, split]), reference)
    assert matched.tolist() == [[0, 1, 2, -1], [0, 2, 1, -1], [0, 2, -1, -1], [0, 1, 2, -1]]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_canonical_draws_are_not_copied_if_they_fit_in_bytes(dtype):
    rng = np.random.default_rng(5)
    draws = rng.integers(0, 6, (20, 30)).astype(dtype)
    draws[:, 0] = 5  # not canonical, but for the draws that have no other label
    expected = canonical_labels(draws.astype(float))
    np.testing.assert_array_equal(canonical_draws(draws), expected)
    np.testing.assert_array_equal(canonical_labels(draws), expected)
    same = expected.astype(dtype)
    assert (canonical_draws(same) is same) == (same.itemsize == 1)
    np.testing.assert_array_equal(canonical_draws(same), expected)
    same[3, -1] = 9  # a label before which others are missing
    np.testing.assert_array_equal(canonical_draws(same), canonical_labels(same.astype(float)))


def test_coclustering_of_more_draws_than_a_byte_counts():
    draws = np.zeros((700, 3), int)
    draws[100:, 2] = 1
    assert coclustering(draws).tolist() == [[1, 1, 1 / 7], [1, 1, 1 / 7], [1 / 7, 1 / 7, 1]]


def _strayed(size, most):
    """Twelve clusters of a size, and draws in which ever more points stray."""
    rng, reference = np.random.default_rng(3), np.repeat(np.arange(12), size)
    noise = rng.random((30, 12 * size)) < np.linspace(0, most, 30)[:, None]
    return reference, canonical_labels(np.where(noise, rng.integers(0, 20, noise.shape), reference))


@pytest.mark.parametrize("size", [4, 10])  # of a cluster: a table is too large, or it is not
def test_matching_pairs_as_many_as_the_whole_table_would(size):
    reference, draws = _strayed(size, 0.6)
    for labels, matched in zip(draws, match_clusters(draws, reference), strict=True):
        table = contingency_table(labels, reference)
        best = table[linear_sum_assignment(table, maximize=True)].sum()
        found = np.flatnonzero(matched >= 0)
        assert len(set(matched[found])) == len(found)
        assert table[found, matched[found]].sum() == best
        assert (table[found, matched[found]] > 0).all()


@pytest.mark.parametrize("size", [4, 10])
def test_what_is_found_again_against_all_pairs(size):
    reference, draws = _strayed(size, 0.9)
    matched = match_clusters(draws, reference)
    found = found_again(draws, reference, matched)
    for labels, names, again in zip(draws, matched, found, strict=True):
        for cluster, name in enumerate(names):
            expected = name >= 0
            if expected:
                both = np.sum((labels == cluster) & (reference == name))
                of_name = [np.sum((labels == c) & (reference == name)) for c in range(20)]
                of_cluster = [np.sum((labels == cluster) & (reference == k)) for k in range(12)]
                expected = both == max(of_name) and both == max(of_cluster)
                expected &= both > max(np.sum(labels == cluster), np.sum(reference == name)) / 3
            assert again[cluster] == expected
    assert found[0].sum() == 12 and found[-1].sum() <= 4


def test_a_match_of_other_members_is_not_found_again():
    """What is left of a group that was merged, or of a large one that lost most members."""
    reference = np.repeat([0, 1, 2], [6, 4, 4])
    rest = np.repeat([0, 1, 0, 2], [5, 1, 4, 4])  # the second is in the first, but for one of it
    matched = match_clusters([rest], reference)
    assert matched.tolist() == [[0, -1, 2]] or matched.tolist() == [[1, 0, 2]]
    assert found_again([rest], reference, matched)[0].tolist()[2]
    few = np.repeat([0, 1, 1, 2], [2, 4, 4, 4])  # four of the first are with the second
    matched = match_clusters([few], reference)
    found = found_again([few], reference, matched)
    assert matched.tolist() == [[0, 1, 2]] and found.tolist() == [[False, True, True]]


def test_a_match_that_has_fewer_in_common_than_another_pair_is_not_found_again():
    """Four of ten are more than a third of them, but the other six are together elsewhere."""
    reference = np.repeat([0, 1], [10, 7])
    draws = [np.repeat([0, 1], [4, 13])]
    matched = match_clusters(draws, reference)
    assert matched.tolist() == [[0, 1]]
    assert found_again(draws, reference, matched).tolist() == [[False, True]]


def test_groups_that_share_more_than_half_of_their_union_are_found_again():
    """Such a pair is unique, and every matching by greatest overlap has it."""
    rng = np.random.default_rng(0)
    reference = canonical_labels(rng.integers(0, 5, 40))
    noise = rng.random((300, 40)) < rng.random((300, 1))
    draws = canonical_labels(np.where(noise, rng.integers(0, 7, (300, 40)), reference))
    matched = match_clusters(draws, reference)
    found, number = found_again(draws, reference, matched), 0
    for labels, names, again in zip(draws, matched, found, strict=True):
        table = contingency_table(labels, reference)
        union = table.sum(1)[:, None] + table.sum(0) - table
        for cluster, name in np.argwhere(2 * table > union):
            assert names[cluster] == name and again[cluster]
            number += 1
    assert number > 100
