"""Samples whose labels were permuted at random come back as they were."""

import numpy as np
import pytest

from numpyro_rankings.posterior import cluster_profiles
from numpyro_rankings.posterior.partitions import canonical_labels
from numpyro_rankings.posterior.relabeling import relabel_samples
from numpyro_rankings.rankings import Rankings

SLOTS, NUM_ITEMS = 6, 4


def _samples(rng, reference, num_draws=40):
    """Draws whose clusters are numbered as those of the reference; a few rankings stray."""
    labels = np.tile(reference, (num_draws, 1))
    labels[np.arange(num_draws), rng.integers(len(reference), size=num_draws)] = 3
    sizes = (labels[..., None] == np.arange(SLOTS)).sum(1)
    return {
        "assignments": labels,
        "center": np.argsort(rng.random((num_draws, SLOTS, NUM_ITEMS))).astype(np.int32),
        "concentration": rng.random((num_draws, SLOTS, 3)).astype(np.float32),
        "weights": rng.random((num_draws, SLOTS, NUM_ITEMS)),
        "unseen_weight": rng.random((num_draws, SLOTS)),
        "total_weight": rng.random((num_draws, SLOTS)),
        "cluster_sizes": sizes,
        "alpha": rng.random(num_draws),
    }


OF_CLUSTERS = [
    name
    for name in _samples(np.random.default_rng(0), np.zeros(5, int))
    if name not in ("assignments", "alpha")
]


def _permuted(samples, rng):
    """Each draw with slots of its own."""
    out = {name: x.copy() for name, x in samples.items()}
    for d in range(len(samples["alpha"])):
        place = rng.permutation(SLOTS)
        out["assignments"][d] = place[samples["assignments"][d]]
        for name in OF_CLUSTERS:
            out[name][d, place] = samples[name][d]
    return out


@pytest.mark.parametrize("by_chain", [False, True])
def test_permuted_samples_come_back_equal(by_chain):
    rng = np.random.default_rng(1)
    reference = rng.permutation(np.repeat([0, 1, 2], [12, 8, 5]))
    samples = _samples(rng, reference)
    permuted = _permuted(samples, rng)
    lead = (4, 10) if by_chain else (40,)
    shaped = {name: x.reshape(*lead, *x.shape[1:]) for name, x in permuted.items()}
    samples = {name: x.reshape(*lead, *x.shape[1:]) for name, x in samples.items()}
    back = relabel_samples(shaped, reference)
    assert back.num_clusters == 3 and back.found.shape == (*lead, 4) and back.found.all()
    for name in ("assignments", "alpha"):
        np.testing.assert_array_equal(back.samples[name], samples[name])
    axis = len(lead)
    for name in OF_CLUSTERS:
        expected = np.take(samples[name], range(4), axis=axis)
        np.testing.assert_array_equal(back.samples[name], expected)
        assert back.samples[name].dtype == samples[name].dtype
    # and the permuted samples were others
    assert np.any(shaped["assignments"] != samples["assignments"])


def test_where_a_draw_has_no_such_cluster():
    labels = np.array([[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 2, 2]])
    center = np.tile(np.arange(3), (3, 3, 1)) + 10 * np.arange(3)[None, :, None]
    samples = {
        "assignments": labels,
        "center": center,
        "concentration": np.arange(9.0).reshape(3, 3, 1),
        "cluster_sizes": np.array([[2, 2, 0], [4, 0, 0], [1, 1, 2]]),
    }
    back = relabel_samples(samples, [1, 1, 0, 0])
    assert back.found.tolist() in (
        [[True, True, False], [True, False, False], [True, True, True]],
        [[True, True, False], [False, True, False], [True, True, True]],
    )
    found, sizes = back.found, back.samples["cluster_sizes"]
    np.testing.assert_array_equal(sizes > 0, found)
    np.testing.assert_array_equal(np.isnan(back.samples["concentration"][..., 0]), ~found)
    np.testing.assert_array_equal((back.samples["center"] == -1).all(-1), ~found)
    for d in range(3):
        assert (
            np.bincount(back.samples["assignments"][d], minlength=3).tolist() == sizes[d].tolist()
        )
        np.testing.assert_array_equal(
            canonical_labels(back.samples["assignments"][d]), canonical_labels(labels[d])
        )
    assert back.samples["cluster_sizes"][2, 0] == 2  # those of the last two
    assert back.samples["concentration"][2, 0, 0] == 8.0


def test_a_cluster_of_the_reference_that_is_nowhere():
    back = relabel_samples({"assignments": [[0, 0], [0, 0]]}, [0, 1])
    assert back.found.shape == (2, 2) and back.found.sum() == 2 and back.num_clusters == 2


def test_means_are_those_of_the_profiles():
    rng = np.random.default_rng(2)
    samples = _permuted(_samples(rng, np.repeat([0, 1, 2], [12, 8, 5])), rng)
    samples = {name: x for name, x in samples.items() if "weight" not in name}
    rankings = Rankings.from_orderings([[0, 1, 2]] * 25, num_items=NUM_ITEMS)
    back = relabel_samples(samples)
    for profile in cluster_profiles(samples, rankings):
        theta = back.samples["concentration"][:, profile.label]
        np.testing.assert_allclose(np.nanmean(theta, 0), profile.concentration, rtol=1e-5)
        assert back.found[:, profile.label].mean() == profile.matched


def test_bad_input():
    with pytest.raises(ValueError, match="have no assignments"):
        relabel_samples({"weights": np.ones((3, 4))})
    with pytest.raises(ValueError, match="a partition of the same 2 points"):
        relabel_samples({"assignments": [[0, 0]]}, [0, 1, 1])
