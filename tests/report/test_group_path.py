"""The number of groups as if there were fewer rankings, and which one lasts."""

import jax
import numpy as np
import pytest
import xarray as xr
from helpers.fabricated import as_run
from helpers.shared_programs import shared_programs

from numpyro_rankings import Draws, Rankings, group_path, lasting_number, to_inference_data
from numpyro_rankings._system.memory import TooLittleMemoryError
from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.infer import TemperedMixture
from numpyro_rankings.report.group_path import (
    _agreed_size,
    _count_groups,
    _is_enough,
    choose_number,
    stretches,
)
from numpyro_rankings.report.path_in_words import path_in_words
from numpyro_rankings.run.loop import SweepLoop

SIZES = np.geomspace(2, 1024, 10)


def path_of(numbers, probability=0.9, num_groups=None, agreed_size=None, ended="enough"):
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
        {"ended": ended},
    )


@pytest.mark.parametrize(
    "numbers, expected",
    [
        ([1] * 10, (1, 2, 1024)),
        ([0, 0, 1, 1, 1, 1, 1, 1, 1, 1], (1, 2 * 2**1.5, 1024)),
        # one group holds longer, but few rankings often speak for it
        ([1] * 6 + [3] * 4, (3, 2**6.5, 1024)),
        ([1, 1, 1, 2, 2, 2, 2, 3, 4, 5], (2, 2**3.5, 2**7.5)),
        ([1, 1, 1, 2, 3, 3, 3, 3, 2, 2], (3, 2**4.5, 2**8.5)),
        # the prior decides at first, so that what comes before the smallest number does not count
        ([4, 4, 4, 4, 1, 2, 2, 2, 3, 3], (2, 2**5.5, 2**8.5)),
        ([4, 4, 4, 4, 2, 2, 2, 3, 3, 3], (2, 2**4.5, 2**7.5)),
        ([3, 3, 3, 3, 1, 1, 1, 1, 1, 1], (1, 2**4.5, 1024)),
        ([3, 3, 3, 3, 3, 1, 1, 0, 0, 0], None),
        # a smaller number may come again
        ([1, 2, 2, 2, 2, 1, 1, 3, 3, 3], (2, 2**1.5, 2**5.5)),
        ([4, 4, 2, 2, 2, 4, 4, 3, 3, 3], (2, 2**2.5, 2**5.5)),
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


@pytest.mark.parametrize("path", [{"shares": np.ones((9, 2))}, xr.Dataset()])
def test_what_is_no_path(path):
    with pytest.raises(
        TypeError, match=r"path must be what group_path returns, got (dict|Dataset)"
    ):
        lasting_number(path)


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
        prior=[3, 1],
        num_ladders=1,
        num_warmup=20,
        num_samples=20,
        after_number=lambda number, mcmc: seen.append(number),
    )
    assert seen == path["num_components"].values.tolist() == [1, 2]
    assert path["effective_size"].values.tolist() == [1, 4, 17]
    assert path["round_trips"].shape == (2,) and path.attrs["ended"] == "number"
    assert np.all(path["standard_error"] > 0)
    np.testing.assert_allclose(path["probability"].sum("num_components"), 1)
    odds = np.exp(path["log_evidence"][:, 1] - path["log_evidence"][:, 0])
    np.testing.assert_allclose(path["probability"][:, 1] / path["probability"][:, 0], odds / 3)


def test_a_path_of_one_number_and_one_that_ends_for_want_of_memory(monkeypatch):
    rankings = Rankings.from_orderings([[0, 1, 2], [2, 1, 0]], num_items=3, counts=[9, 8])
    settings = dict(num_ladders=1, num_warmup=20, num_samples=20)
    one = group_path(rankings, "plackett-luce", 1, **settings)
    assert one["num_groups"].values.tolist() == [1] and one.attrs["ended"] == "number"
    assert one["labels"].shape == (1, 17)

    def check_memory(kernel, *_):
        if kernel.num_components > 2:
            raise TooLittleMemoryError("three do not fit")

    monkeypatch.setattr(TemperedMixture, "_check_memory", check_memory)
    path = group_path(rankings, "plackett-luce", 5, **settings)
    assert path["num_components"].values.tolist() == [1, 2] and path.attrs["ended"] == "memory"
    assert "1 to 2 components, for which there was memory" in path_in_words(path)


@pytest.fixture(scope="module")
def one_program():
    """Paths that are alike share what they compile."""
    with shared_programs():
        yield


def stepping(monkeypatch, clock, seconds):
    """Let each chunk of sweeps take the seconds that a function of the components in use says."""
    advance = SweepLoop._advance

    def advance_and_step(loop, *args):
        clock.step(seconds(int(loop.kwargs["num_used"])))
        return advance(loop, *args)

    monkeypatch.setattr(SweepLoop, "_advance", advance_and_step)


@pytest.mark.parametrize(
    ("minutes", "chains_after", "numbers"),
    [
        # after a program, which is one chunk of 10 s, and one number, at 40 s, 45 s are expected
        (1.45, 0, [1, 2]),
        (1.4, 0, [1]),
        (3.1, 2, [1, 2]),  # with a fit of two chains, which takes 10 + 2 · 45 s
        (3.05, 2, [1]),
    ],
)
def test_numbers_are_begun_for_which_there_is_time(
    one_program, monkeypatch, clock, minutes, chains_after, numbers
):
    rankings = Rankings.from_orderings([[0, 1, 2], [2, 1, 0]], num_items=3, counts=[9, 8])
    settings = dict(num_ladders=1, num_warmup=20, num_samples=20, chains_after=chains_after)
    stepping(monkeypatch, clock, lambda _: 10)
    mcmcs, start = {}, clock.seconds
    path = group_path(
        rankings, "plackett-luce", 4, **settings, minutes=minutes, after_number=mcmcs.__setitem__
    )
    assert path["num_components"].values.tolist() == numbers and path.attrs["ended"] == "time"
    assert clock.seconds - start == 40 * len(numbers)
    # the ladders are those of mixtures of so many components
    for number, mcmc in mcmcs.items():
        of_components = (1, 20, number, 3) if number > 1 else (1, 20, 3)
        weights = mcmc.get_samples(group_by_chain=True)["weights"]
        assert weights.shape == of_components and mcmc.num_warmup == 20
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
        posterior = to_inference_data(mcmc, rankings)["posterior"]
        assert posterior.attrs["num_components"] == number
        assert ("assignments" in posterior) == (number > 1)


def test_a_number_that_takes_too_long_is_left_out(one_program, monkeypatch, clock):
    rankings = Rankings.from_orderings([[0, 1, 2], [2, 1, 0]], num_items=3, counts=[9, 8])
    settings = dict(num_ladders=1, num_warmup=20, num_samples=20, minutes=2)
    stepping(monkeypatch, clock, lambda number: 10 if number == 1 else 50)
    start = clock.seconds
    path = group_path(rankings, "plackett-luce", 4, **settings)
    assert path["num_components"].values.tolist() == [1] and path.attrs["ended"] == "time"
    assert clock.seconds - start == 40 + 2 * 50
    stepping(monkeypatch, clock, lambda _: 200)
    with pytest.raises(ValueError, match="2 minutes did not suffice for one component"):
        group_path(rankings, "plackett-luce", 4, **settings)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"max_components": 0}, "max_components must be a positive whole number"),
        ({"num_ladders": 1.5}, "num_ladders must be a positive whole number"),
        ({"num_samples": 19}, "num_samples must be at least 20"),
        ({"chains_after": -1}, "chains_after must be a whole number"),
        ({"num_warmup": -1}, "num_warmup must be a whole number"),
        ({"effective_sizes": [2, 1]}, "must increase, from above 0 to at most the 3 rankings"),
        ({"effective_sizes": [0, 1]}, "must increase"),
        ({"effective_sizes": [1, 4]}, "must increase"),
        ({"effective_sizes": []}, "must increase"),
        ({"effective_sizes": [1, np.nan]}, "must increase"),
        ({"prior": [1] * 7}, "prior must be 8 positive numbers"),
        ({"prior": [1] * 7 + [0]}, "prior must be 8 positive numbers"),
        ({"family": "borda"}, "family is one of"),
    ],
)
def test_bad_settings_are_refused_before_the_first_ladder(settings, message):
    rankings = Rankings.from_orderings([[0, 1, 2]], num_items=3, counts=[3])
    with pytest.raises(ValueError, match=message):
        group_path(rankings, **settings)


def test_numbers_that_are_not_needed_are_not_tried():
    sizes = [4, 10, 100]
    one, two = np.array([0.0, -5.0, -90.0]), np.array([-0.1, -4.0, -60.0])
    worse = np.array([-0.2, -6.0, -75.0])
    assert not _is_enough([one, two], sizes)
    assert not _is_enough([one, two, worse], sizes)  # the smaller two are needed themselves
    assert _is_enough([one, two, worse, worse - 1], sizes)
    assert not _is_enough([one, two, worse, np.array([-0.2, -3.0, -75.0])], sizes)
    assert not _is_enough([one, two, worse, np.array([-0.2, -6.0, -65.0])], sizes)


def test_a_number_is_needed_only_by_as_many_rankings():
    one, two = np.array([0.0, -5.0, -90.0]), np.array([-0.1, -4.0, -60.0])
    most = np.array([0.5, -6.0, -75.0])  # with the fewest rankings
    less = np.array([-0.2, -6.0, -75.0])
    for values, least in (([most, less], 3), ([less, most], 4)):
        assert _is_enough([one, two, *values], [least - 0.1, 10, 100])
        assert not _is_enough([one, two, *values], [least, 10, 100])


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
    shares = np.sort(seen[1][1].get_samples()["shares"].mean(0))
    np.testing.assert_allclose(shares, [0.4, 0.6], atol=0.04)


# ---------------------------------------------------------------------------------------------
# Components without a common order, and the number to report
# ---------------------------------------------------------------------------------------------


def test_a_component_without_order_makes_no_further_group():
    """Ranges of two and three components are one, if the third has no common order."""
    numbers = [1, 1, 2, 2, 2, 3, 3, 3, 4, 4]
    assert [x.num_groups for x in stretches(path_of(numbers))] == [1, 2, 3, 4]
    path = path_of(numbers, num_groups=[1, 2, 2, 3])
    one, two, three = stretches(path)
    assert (one.num_groups, two.num_groups, three.num_groups) == (1, 2, 3)
    assert (two.num_components, three.num_components) == (3, 4)  # the likely ones at the end
    np.testing.assert_allclose([two.first, two.last], [2**2.5, 2**8.5])
    assert lasting_number(path) == two and two.factor == pytest.approx(2**6)
    # the probabilities of 2 and 3 components, 30 and 40%, add up if both have two groups
    assert stretches(path_of([3] * 10, probability=0.4)) == []
    both = path_of([3] * 10, probability=0.4, num_groups=[1, 2, 2])
    assert [x.num_groups for x in stretches(both)] == [2]


@pytest.mark.parametrize(
    ("numbers", "agreed", "expected"),
    [
        ([1, 1, 2, 2, 2, 2, 3, 3, 3, 4], None, (2, 2, None)),
        # the ladders of the number that is chosen count, and no others
        ([1, 1, 2, 2, 2, 2, 3, 3, 3, 4], [1024, 300.0, 5.0, 5.0], (2, 2, 300.0)),
        ([1, 1, 2, 2, 2, 2, 3, 3, 3, 4], [5.0, 1024, 5.0, 5.0], (2, 2, None)),
        # where they agree, one group is the most probable
        ([1, 1, 2, 2, 2, 2, 3, 3, 3, 4], [1024, 5.0, 5.0, 5.0], (2, 2, None)),
        ([1, 1, 2, 2, 2, 2, 3, 3, 3, 4], [1024, 0.0, 5.0, 5.0], (2, 2, None)),
        ([1] * 10, None, (1, 1, None)),
    ],
)
def test_the_number_to_report(numbers, agreed, expected):
    path = path_of(numbers, agreed_size=agreed)
    choice = choose_number(path)
    assert choice == (*expected[:2], lasting_number(path), expected[2])
    assert choice.stretch.num_groups == choice.num_groups


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([1] * 9 + [2], 2),  # the widest range, which has no factor of 2
        ([0, 1, 1, 1, 1, 1, 1, 0, 0, 0], 1),  # the most probable one on average
        ([3, 3, 1, 1, 1, 1, 1, 1, 1, 0], 1),
    ],
)
def test_a_number_is_reported_where_none_stands_out(numbers, expected):
    choice = choose_number(path_of(numbers))
    assert choice.num_components == choice.num_groups == expected
    assert choice.stretch is None


@pytest.mark.parametrize(
    ("path", "fragments"),
    [
        (path_of([1] * 10), ["One group lasts: with more rankings no other number becomes more"]),
        (
            path_of([1, 1, 1, 2, 2, 2, 2, 3, 4, 5]),
            ["2 groups last longest", "with 11 to 181 rankings (a factor of 16.0)"],
        ),
        (path_of([1, 1, 1, 1, 1, 1, 2, 2, 2, 2]), ["to 1,024 rankings (a factor of 11.3)."]),
        (
            path_of([1] * 9 + [2]),
            ["No number of groups stands out", "Shown are 2 groups, which come nearest."],
        ),
        (
            path_of([1] * 10, ended="number"),
            ["Tried were 1 to 2 components, as many as were asked"],
        ),
        (
            path_of([1] * 5 + [3] * 5, ended="time"),
            ["1 to 3 components, for which there was time: a larger number may be more probable."],
        ),
        (
            path_of([1] * 3 + [2] * 6 + [3], ended="time"),
            ["1 to 3 components, for which there was time."],
        ),
        (
            path_of([2] * 10, ended="time").isel(num_components=[0]),
            ["One group is shown; no other number was tried."],
        ),
        (
            path_of([1] * 5 + [3] * 5, num_groups=[1, 2, 2]),
            ["2 groups last longest", "The other judges follow none of these"],
        ),
        (
            path_of([1] * 5 + [2] * 5, agreed_size=[1024, 300]),
            ["With all 1,024 rankings independent runs are in different", "as many as 300"],
        ),
    ],
)
def test_the_choice_in_words(path, fragments):
    text = path_in_words(path)
    for fragment in fragments:
        assert fragment in text
    assert ("common order" in text) == ("The other judges" in "".join(fragments))
    assert ("independent runs" in text) == ("independent runs" in "".join(fragments))
    assert ("Tried" in text) == (
        path.attrs["ended"] != "enough" and path.sizes["num_components"] > 1
    )
    assert "  " not in text and text == text.strip()


# ---------------------------------------------------------------------------------------------
# What the ladders of one number say
# ---------------------------------------------------------------------------------------------

LISTS = Rankings.from_orderings([[0, 1, 2, 3], [3, 2, 1, 0]], num_items=4, counts=[30, 30])


def draws_of(family, sharp, shape=(2, 40)):
    """Draws of as many components as **sharp** says, (draws, K): which have a common order."""
    sharp = np.broadcast_to(sharp, (*shape, np.shape(sharp)[-1]))
    number = sharp.shape[-1]
    labels = np.broadcast_to(np.arange(60) % number, (*shape, 60)).astype(np.int8)
    z = {
        "assignments": labels,
        "cluster_sizes": np.full((*shape, number), 60 // number, np.int32),
        "num_clusters": np.full(shape, number),
        "shares": np.full((*shape, number), 1 / number),
        "alpha": np.ones(shape),
        "log_joint": np.zeros(shape),
    }
    if family == "mallows":
        z["center"] = np.broadcast_to(np.arange(4, dtype=np.int32), (*shape, number, 4))
        z["concentration"] = np.repeat(np.where(sharp, 1.5, 0.01)[..., None], 3, axis=-1)
    else:
        weights = np.where(sharp[..., None], [0.7, 0.2, 0.08, 0.02], 0.25)
        z["weights"] = weights if number > 1 else weights[..., 0, :]
    kernel = TemperedMixture(family, number)
    return Draws.of(as_run(kernel, z, LISTS, np.ones(shape), np.zeros(shape, bool)), LISTS)


@pytest.mark.parametrize("family", ["mallows", "plackett-luce"])
def test_components_without_a_common_order_are_not_counted(family):
    assert _count_groups(draws_of(family, [True, True, True])) == 3
    assert _count_groups(draws_of(family, [True, False, True])) == 2
    assert _count_groups(draws_of(family, [False, False])) == 1  # there is always one
    assert _count_groups(draws_of(family, [True])) == 1
    # the usual number of the draws counts: three in 30 of 40, and two otherwise
    usual = np.array([[True, True, True]] * 30 + [[False, True, True]] * 10)
    assert _count_groups(draws_of(family, usual)) == 3
    assert _count_groups(draws_of(family, usual[::-1] & [True, True, False])) == 2


def fields_of(apart, shape=(2, 200)):
    """Log likelihoods of six rungs, in which the ladders differ at those that are named."""
    rng, sizes = np.random.default_rng(0), [0.0, 4.0, 20.0, 100.0, 400.0, 1000.0]
    values = rng.normal(-500, 1, (*shape, 6))
    values[1, :, apart] += 10
    return {
        "rung_effective_size": np.broadcast_to(sizes, (*shape, 6)),
        "rung_log_likelihood": values,
    }


def test_the_size_up_to_which_ladders_agree():
    rng = np.random.default_rng(1)
    alike = rng.dirichlet([30, 20, 10], (2, 200))
    assert _agreed_size(fields_of([]), alike) == 1000
    assert _agreed_size(fields_of([5]), alike) == 400
    assert _agreed_size(fields_of([2, 4]), alike) == 4  # the first one that differs counts
    assert _agreed_size(fields_of([0, 1]), alike) == 0
    # labels that are exchanged do not matter, but other shares do
    exchanged = alike.copy()
    exchanged[1] = exchanged[1][:, ::-1]
    assert _agreed_size(fields_of([]), exchanged) == 1000
    other = alike.copy()
    other[1] = rng.dirichlet([50, 5, 5], 200)
    assert _agreed_size(fields_of([]), other) == 400
    assert _agreed_size(fields_of([]), np.ones((2, 200, 1))) == 1000
