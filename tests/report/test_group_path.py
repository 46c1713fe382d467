"""The number of groups as if there were fewer rankings, and which one lasts."""

import jax
import numpy as np
import pytest
import xarray as xr

from numpyro_rankings import Rankings, group_path, lasting_number
from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.report.group_path import _is_enough, stretches

SIZES = np.geomspace(2, 1024, 10)


def path_of(numbers, probability=0.9, num_groups=None, agreed_size=None):
    """A path on which one number after the other is the most probable; 0 stands for none.

    :param num_groups: of each number of components those with a common order, by default all.
    :param agreed_size: up to which the ladders of each number agree, by default all rankings.
    """
    largest = max(*numbers, 2)
    table = np.full((len(numbers), largest), (1 - probability) / (largest - 1))
    for row, number in zip(table, numbers, strict=True):
        row[:] = row if number else 1 / largest
        if number:
            row[number - 1] = probability
    components = np.arange(1, largest + 1)
    agreed = [SIZES[-1]] * largest if agreed_size is None else agreed_size
    return xr.Dataset(
        {
            "probability": (("effective_size", "num_components"), table),
            "num_groups": ("num_components", components if num_groups is None else num_groups),
            "agreed_size": ("num_components", agreed),
        },
        {"effective_size": SIZES[: len(numbers)], "num_components": components},
    )


@pytest.mark.parametrize(
    "numbers, expected",
    [
        ([1] * 10, (1, 2, 1024)),
        ([0, 0, 1, 1, 1, 1, 1, 1, 1, 1], (1, 2 * 2**1.5, 1024)),
        # one group holds longer, but with few rankings it always does
        ([1] * 6 + [3] * 4, (3, 2**6.5, 1024)),
        ([1, 1, 1, 2, 2, 2, 2, 3, 4, 5], (2, 2**3.5, 2**7.5)),
        ([1, 1, 1, 2, 3, 3, 3, 3, 2, 2], (3, 2**4.5, 2**8.5)),
        ([1] * 9 + [2], None),  # a range of a factor below two
        ([1, 1, 1, 1, 1, 1, 1, 0, 0, 0], None),  # one group is not what all rankings tell
        ([0] * 10, None),
    ],
)
def test_the_number_that_lasts(numbers, expected):
    found = lasting_number(path_of(numbers))
    if expected is None:
        assert found is None
    else:
        assert found.num_components == expected[0]
        np.testing.assert_allclose([found.first, found.last], expected[1:])


def test_ranges_follow_one_another():
    ranges = stretches(path_of([1, 1, 1, 0, 2, 2, 2, 3, 3, 3]))
    assert [x.num_components for x in ranges] == [1, 2, 3]
    assert ranges[0].last < ranges[1].first and ranges[1].last == ranges[2].first


def test_a_path_has_numbers_of_groups_at_effective_sizes():
    rankings = Rankings.from_orderings([[0, 1, 2], [2, 1, 0]], num_items=3, counts=[9, 8])
    seen = []
    path = group_path(
        rankings,
        "plackett-luce",
        2,
        effective_sizes=[1, 4, 17],
        num_ladders=1,
        num_warmup=20,
        num_samples=20,
        after_number=lambda number, mcmc: seen.append(number),
    )
    assert seen == path["num_components"].values.tolist() == [1, 2]
    assert path["effective_size"].values.tolist() == [1, 4, 17]
    assert path["round_trips"].shape == (2,)
    assert np.all(path["standard_error"] > 0)
    np.testing.assert_allclose(path["probability"].sum("num_components"), 1)
    odds = np.exp(path["log_evidence"][:, 1] - path["log_evidence"][:, 0])
    np.testing.assert_allclose(path["probability"][:, 1] / path["probability"][:, 0], odds)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"max_components": 0}, "max_components must be a positive whole number"),
        ({"num_ladders": 1.5}, "num_ladders must be a positive whole number"),
        ({"num_samples": 19}, "num_samples must be at least 20"),
        ({"num_warmup": -1}, "num_warmup must be a whole number"),
        ({"effective_sizes": [2, 1]}, "must increase, from above 0 to at most the 3 rankings"),
        ({"effective_sizes": [0, 1]}, "must increase"),
        ({"effective_sizes": [1, 4]}, "must increase"),
        ({"effective_sizes": []}, "must increase"),
        ({"effective_sizes": [1, np.nan]}, "must increase"),
        ({"family": "borda"}, "family is one of"),
    ],
)
def test_bad_settings_are_refused_before_the_first_ladder(settings, message):
    rankings = Rankings.from_orderings([[0, 1, 2]], num_items=3, counts=[3])
    with pytest.raises(ValueError, match=message):
        group_path(rankings, **settings)


def test_numbers_that_are_not_needed_are_not_tried():
    one, two = np.array([0.0, -5.0, -90.0]), np.array([-0.1, -4.0, -60.0])
    worse = np.array([-0.2, -6.0, -75.0])
    assert not _is_enough([one, two])
    assert not _is_enough([one, two, worse])  # the smaller two are needed themselves
    assert _is_enough([one, two, worse, worse - 1])
    assert not _is_enough([one, two, worse, np.array([-0.2, -3.0, -75.0])])
    assert not _is_enough([one, two, worse, np.array([-0.2, -6.0, -65.0])])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_two_groups_are_found_from_two_seeds(seed):
    lists = [
        GeneralizedMallows(np.array(center), np.full(4, 1.2)).sample(jax.random.key(size), (size,))
        for center, size in (([0, 1, 2, 3, 4], 180), ([4, 2, 0, 3, 1], 120))
    ]
    rankings = Rankings.from_orderings(np.concatenate(lists), num_items=5)
    seen = []
    path = group_path(
        rankings,
        max_components=3,
        key=jax.random.key(seed),
        num_warmup=100,
        num_samples=150,
        after_number=lambda number, mcmc: seen.append((number, mcmc)),
    )
    assert [number for number, _ in seen] == path["num_components"].values.tolist() == [1, 2, 3]
    assert lasting_number(path).num_components == 2
    np.testing.assert_allclose(path["probability"].sum("num_components"), 1)
    assert float(path["standard_error"].max()) < 1
    shares = np.sort(np.asarray(seen[1][1].get_samples()["shares"]).mean(0))
    np.testing.assert_allclose(shares, [0.4, 0.6], atol=0.04)
