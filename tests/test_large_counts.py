"""Data of a million rankings: what a sum holds, and what is refused because it would not."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from numpyro_rankings import Rankings
from numpyro_rankings.components import MallowsCenter
from numpyro_rankings.infer import BetaGibbs, GammaProcessPlackettLuceGibbs, SliceGibbs, centers
from numpyro_rankings.infer.centers import _relative_sums, largest_code_sum
from numpyro_rankings.ops.codes import stage_codes

MILLION = 10**6


def first_choices(num_items, count):
    """Every item is the first of as many rankings, which list no other."""
    lists = np.arange(num_items)[:, None]
    return Rankings.from_orderings(lists, num_items=num_items, counts=[count] * num_items)


@pytest.mark.parametrize("kernel", [SliceGibbs(num_components=1), BetaGibbs(max_clusters=4)])
def test_code_sums_that_would_wrap_are_refused(kernel):
    """A million rankings of 5000 items: their codes add up to 2.5e9 and more."""
    with pytest.raises(ValueError, match="1000000 rankings of 5000 items are too many"):
        kernel.init(random.key(0), 0, None, (first_choices(5000, 200),), {})


def test_code_sums_that_fit_are_not_refused():
    """The bound is one for these data: N (n - 1) is 3.6e9, no center makes more than 1.8e9."""
    rankings = first_choices(3000, 400)
    SliceGibbs()._check((rankings,), {})
    assert largest_code_sum(rankings, 1) == 400 * 3000 * 2999 // 2

    def under_jit(rankings):
        SliceGibbs()._check((rankings,), {})
        return rankings.counts.sum()

    with pytest.raises(ValueError, match="too many"):  # counts that are not known
        jax.jit(under_jit)(rankings)
    assert jax.jit(under_jit)(first_choices(2000, 500)) == MILLION


def test_largest_code_sum_is_a_bound_for_every_stage(monkeypatch):
    """The largest that any center makes, by enumeration."""
    rankings = Rankings.from_orderings([[0, 1, 2], [1, 0], [3, 2]], num_items=4, counts=[2, 1, 4])
    monkeypatch.setattr(centers, "_MOST_CODES", 20)
    orders = np.array(list(itertools.permutations(range(4))))
    codes = stage_codes(rankings.orderings, orders[:, None])
    largest = int((np.asarray(codes) * np.asarray(rankings.counts)[:, None]).sum(1).max())
    assert largest_code_sum(rankings, 3) == largest == 17  # N (n - 1) is 21


def test_sums_over_many_items_do_not_wrap():
    """Moving an item past 10,000 others, each of which costs as much as a step may."""
    steps = jnp.full((1, 10_000), 2**30, jnp.int32)
    found = _relative_sums(steps, jnp.array([[0]]))[0]
    np.testing.assert_allclose(found, np.arange(10_001.0) * 2**30, rtol=1e-6)


def test_whole_numbers_of_mallows_center_are_exact_or_refused():
    """Sums of codes in single precision are exact up to 2^24."""
    orders = [[0, 1, 2, 3, 4, 5, 6]]
    MallowsCenter(1.0).check(Rankings.from_orderings(orders, num_items=7, counts=[2_700_000]))
    with pytest.raises(ValueError, match="2900000 rankings of 7 items are too many"):
        MallowsCenter(1.0).check(Rankings.from_orderings(orders, num_items=7, counts=[2_900_000]))


def test_gamma_process_starts_with_some_unseen_weight():
    """One part in 4·10^7, which is less than what 1 minus the other shares can tell."""
    rng = np.random.default_rng(0)
    lists = [rng.permutation(40) for _ in range(2)]
    rankings = Rankings.from_orderings(lists, num_items=40, counts=[MILLION // 2] * 2)
    state = GammaProcessPlackettLuceGibbs().init(random.key(0), 0, None, (rankings,), {})
    assert float(state.z["unseen_weight"]) == pytest.approx(1 / (40 * MILLION + 1), rel=1e-5)
    assert np.isfinite(state.potential_energy)
