"""The number of groups as if there were fewer rankings, and which one lasts."""

import jax
import numpy as np
import pytest
import xarray as xr

from numpyro_rankings import Rankings, group_path, lasting_number
from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.report.group_path import stretches

SIZES = np.geomspace(2, 1024, 10)


def path_of(numbers, probability=0.9):
    """A path on which one number after the other is the most probable; 0 stands for none."""
    largest = max(*numbers, 2)
    table = np.full((len(numbers), largest), (1 - probability) / (largest - 1))
    for row, number in zip(table, numbers, strict=True):
        row[:] = row if number else 1 / largest
        if number:
            row[number - 1] = probability
    return xr.Dataset(
        {"probability": (("effective_size", "num_components"), table)},
        {"effective_size": SIZES, "num_components": np.arange(1, largest + 1)},
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
