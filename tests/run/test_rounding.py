"""Rows of count 0, which round up the number of rankings, change no posterior and no program."""

from collections import defaultdict
from functools import partial
from itertools import permutations
from types import SimpleNamespace

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.enumeration import MallowsPosterior, discrepancies
from helpers.ranking_kernels import LISTS, NU, R

from numpyro_rankings import Rankings, Run
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.infer import (
    BetaGibbs,
    DPPlackettLuceGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
)
from numpyro_rankings.run.kernels import KernelTraits
from numpyro_rankings.run.loop import SweepLoop
from numpyro_rankings.run.placement import Placement
from numpyro_rankings.run.rounding import round_rows, rounded_alike, rounded_up
from numpyro_rankings.run.settings import Settings

FIVE = Rankings.from_orderings([*LISTS, LISTS[0]], num_items=4)
# numbers for all rankings from the conjugate prior are drawn by rejection, in rounds of as many
SLICE = {"max_clusters": 8, "num_marginal_steps": 3}
EXPONENTIAL = {"concentration_prior": dist.Exponential(1.0)}
KINDS = {
    "parallel": partial(SliceGibbs, assignment="parallel", num_births=2, **SLICE),
    "sequential": partial(SliceGibbs, **EXPONENTIAL, **SLICE),
    "finite": partial(SliceGibbs, num_components=2, num_marginal_steps=0, init="nearest"),
    "one population": partial(SliceGibbs, num_components=1),
    "beta": partial(BetaGibbs, **SLICE),
    "as printed": partial(BetaGibbs, exact=False, max_clusters=8),
    "plackett-luce": PlackettLuceGibbs,
    "plackett-luce-mixture": partial(PlackettLuceGibbs, num_components=2, num_marginal_steps=2),
    "gamma-process": GammaProcessPlackettLuceGibbs,
    "dp-plackett-luce": partial(DPPlackettLuceGibbs, max_clusters=6, num_marginal_steps=0),
}
QUICK = ("parallel", "gamma-process")


def names(*left_out):
    """Kernels, of which few are quick."""
    chosen = [name for name in KINDS if name not in left_out]
    return [pytest.param(k, marks=() if k in QUICK else pytest.mark.slow) for k in chosen]


def few_rows(number=100):
    """Few distinct lists of 2 of 4 items."""
    lengths = np.full(number, 2)
    sample = simulate_mallows_mixture(jax.random.key(0), number, 4, lengths, 2, 0.8)
    return sample.rankings.unique()


def sixteen_rows():
    """As many rows as need not be rounded up, of 100 rankings, which are."""
    orders = list(permutations(range(5), 2))[:16]
    return Rankings.from_orderings(orders, num_items=5, counts=[7] * 4 + [6] * 12)


def many_rows(number=70):
    """Different lists of 5 of 7 items."""
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(7), (number, 1)), axis=1)
    return Rankings.from_orderings(orders[:, :5], num_items=7)


def test_sizes():
    sizes = sorted({rounded_up(number) for number in range(1, 130)})
    assert sizes == [16, 18, *range(20, 33, 2), *range(36, 65, 4), *range(72, 129, 8), 144]
    numbers = np.arange(17, 5000)
    rounded = np.array([rounded_up(int(number)) for number in numbers])
    assert np.all((rounded >= numbers) & (rounded <= 1.125 * numbers))


def of_size(number, num_rows):
    """So many rankings of 6 items, of which so many are different."""
    orders = np.array([*permutations(range(6), 5)])[:num_rows]
    counts = np.ones(num_rows, int)
    counts[0] += number - num_rows
    return Rankings.from_orderings(orders, num_items=6, counts=counts)


@pytest.mark.parametrize("sizes", [(100, 11), (15449, 120), (97, 97), (40, 35), (17, 1), (5, 4)])
def test_sizes_of_one_shape(sizes):
    """They are all those that are rounded up to the same arrays."""

    def shape(number, num_rows):
        rounded = round_rows(of_size(number, num_rows))
        return rounded.num_rankings, rounded.num_rows

    numbers, rows = rounded_alike(of_size(*sizes))
    assert numbers[0] >= 1 and rows[0] >= 1
    for number in {numbers[0], numbers[-1]}:
        for num_rows in {min(rows[0], number), min(rows[-1], number)}:
            assert shape(number, max(num_rows, 1)) == shape(*sizes)
    assert shape(numbers[-1] + 1, sizes[1]) != shape(*sizes)
    if rows[-1] < numbers[0]:
        assert shape(sizes[0], rows[-1] + 1) != shape(*sizes)
    for fewer in (numbers[0] - 1, sizes[1]), (sizes[0], rows[0] - 1):
        assert min(fewer) < 1 or fewer[1] > fewer[0] or shape(*fewer) != shape(*sizes)


def test_sizes_of_one_shape_are_those_found_one_by_one():
    """All numbers to 36, up to which they are rounded, and all numbers of rows."""
    alike = defaultdict(set)
    for number in range(1, 37):
        for num_rows in range(1, number + 1):
            rounded = round_rows(of_size(number, num_rows))
            alike[rounded.num_rankings, rounded.num_rows].add((number, num_rows))
    for sizes in alike.values():
        expected = [{*some} for some in zip(*sizes, strict=True)]
        for number, num_rows in sizes:
            size = SimpleNamespace(num_rankings=number, num_rows=num_rows)
            assert [{*some} for some in rounded_alike(size)] == expected


def test_rows_of_count_0():
    rankings = few_rows()
    rounded = round_rows(rankings)
    assert (rankings.num_rows, rounded.num_rows, rounded.num_rankings) == (11, 16, 104)
    assert np.sum(rounded.counts) == 100 and not np.any(rounded.counts[11:])
    assert np.all(rounded.orderings[11:] == -1) and not np.any(rounded.lengths[11:])
    index = np.asarray(jax.jit(lambda x: x.row_index)(rounded))
    np.testing.assert_array_equal(index[:100], rankings.row_index)
    assert np.all(index[100:] == 15)


def test_a_row_of_count_0_is_always_added():
    """Labels from N on are of the last row, which must not be one of the data."""
    rounded = round_rows(sixteen_rows())
    assert (rounded.num_rows, rounded.num_rankings) == (18, 104)
    assert rounded.counts[16:].tolist() == [0, 0]
    index = np.asarray(jax.jit(lambda x: x.row_index)(rounded))
    assert np.all(index[100:] == 17)


def test_as_many_rows_as_rankings():
    """Then each ranking has a row, whatever its copies."""
    offered = np.ones((4, 4), bool)
    for rankings in (FIVE, Rankings.from_orderings(LISTS, 4, counts=[2, 1, 1, 1])):
        rounded = round_rows(rankings)
        assert rounded.num_rows == rounded.num_rankings == 16
        assert rounded.counts.tolist() == [1] * 5 + [0] * 11
    subset = Rankings.from_orderings(LISTS, 4, choice_sets=offered)
    assert round_rows(subset).choice_sets.shape == (16, 4)


def states_of(kernel, rankings, sweeps):
    state = kernel.init(jax.random.key(1), 0, None, (rankings,), {})
    leaves, structure = jax.tree.flatten(rankings)
    sweep = jax.jit(lambda s, leaves: kernel.sample(s, (structure.unflatten(leaves),), {}))
    states = [state]
    for _ in range(sweeps):
        states.append(sweep(states[-1], leaves))
    return states


@pytest.mark.parametrize("name", names("beta"))  # of which numbers are drawn by rejection
@pytest.mark.parametrize("data", [few_rows, pytest.param(many_rows, marks=pytest.mark.slow)])
def test_a_sweep_is_that_without_them(name, data):
    """Random numbers of padding come last, so the others are the same: so must the draws be.

    In double precision, since the sums over rows are rounded otherwise, by which trajectories go
    apart.
    """
    kernel, rankings = KINDS[name](), data()
    size = len(rankings)
    assert (round_rows(rankings).num_rows == rounded_up(size)) == (data is many_rows)
    with jax.enable_x64(True):
        one, other = (states_of(kernel, x, 2) for x in (rankings, round_rows(rankings)))
        for expected, found in zip(one, other, strict=True):
            assert set(expected.z) == set(found.z)
            for site, value in expected.z.items():
                of_padded = np.asarray(found.z[site])
                if site == "assignments":
                    slots = len(found.z["cluster_sizes"])
                    assert len(of_padded) > size and np.all(of_padded[size:] == slots)
                    of_padded = of_padded[:size]
                np.testing.assert_allclose(of_padded, value, 1e-4, 1e-6, err_msg=site)
            np.testing.assert_allclose(found.accept_prob, expected.accept_prob, rtol=1e-6)


def test_a_sweep_of_as_many_rows_as_need_not_be_rounded_up():
    """A kernel of one population counts the labels from N on too, whose row has no item."""
    test_a_sweep_is_that_without_them("gamma-process", sixteen_rows)


def program_of(kernel, rankings):
    traits = KernelTraits(kernel)
    lengths = {"num_chains": 2, "superchains": None, "num_warmup": 0, "thinning": 1}
    settings = Settings.of(jax.random.key(0), **lengths, extra_fields=())
    loop = SweepLoop(traits, (rankings,), {}, Placement(traits, (rankings,), {}), settings)
    state = loop.init(None, False)
    loop._place(loop.placement.put_state(state))
    return loop._lower(loop.placement.put_state(state)).as_text()


@pytest.mark.parametrize("name", names())
def test_data_of_about_the_same_size_have_the_same_program(name):
    """To the last character, so that the cache of compiled programs has it."""
    one = few_rows()
    counts = np.asarray(one.counts)[1:].copy()
    counts[0] += one.counts[0] - 1
    other = Rankings.from_orderings(one.orderings[1:], items=list("abcd"), counts=counts)
    assert (one.num_rows, len(one), other.num_rows, len(other)) == (11, 100, 10, 99)
    kernel = KINDS[name]()
    assert program_of(kernel, one) == program_of(kernel, other)


def test_starting_values():
    """Labels are those of the rankings, and others are refused."""
    kernel, rankings = KINDS["one population"](), few_rows()
    start = {"assignments": np.zeros((2, 100), int)}
    run = Run(kernel, rankings, num_chains=2, key=jax.random.key(0), init_params=start)
    run.extend(2)
    assert run.get_samples()["assignments"].shape == (2, 100)
    assert run.as_mcmc().last_state.z["assignments"].shape == (2, 100)
    start = {"assignments": np.zeros((2, 104), int)}
    with pytest.raises(ValueError, match=r"each of the 100 rankings: got shape \(2, 104\)"):
        Run(kernel, rankings, num_chains=2, key=jax.random.key(0), init_params=start)


def conjugate(theta, left):
    stage = 3 - left
    log_psi = np.log(np.exp(-np.outer(range(left + 1), theta)).sum(0))
    return -NU * (R[stage] * theta + log_psi)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one by one", "all at once", "finite", "beta"])
def test_posterior_of_a_run(name):
    """Five rankings with eleven rows of count 0, against enumeration."""
    settings = {"alpha": 1.5, "nu": NU, "r": list(R), "num_marginal_steps": 3}
    components = 3 if name == "finite" else None
    kernel = {
        "one by one": partial(SliceGibbs, max_clusters=8),
        "all at once": partial(SliceGibbs, assignment="parallel", max_clusters=40, num_births=1),
        "finite": partial(SliceGibbs, num_components=3),
        "beta": partial(BetaGibbs, max_clusters=8),
    }[name](**settings)
    rankings = Rankings.from_orderings(LISTS, num_items=4, counts=[2, 1, 1, 1])
    run = Run(kernel, rankings, num_chains=32, key=jax.random.key(5), burn_in=0.0)
    run.extend(3000)
    kept = {site: x[:, 200:] for site, x in run.get_samples(group_by_chain=True).items()}
    exact = MallowsPosterior([LISTS[0], *LISTS], 4, conjugate)
    z = discrepancies(exact.indicators(kept), exact.expectations(1.5, components))
    assert max(z.values()) < 6.0, z
