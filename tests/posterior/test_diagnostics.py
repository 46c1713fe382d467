"""Nested R-hat, and whether there are intervals."""

import arviz as az
import numpy as np
import pytest

from numpyro_rankings.posterior.convergence import r_hats
from numpyro_rankings.posterior.diagnostics import allows_intervals, table_of_scalars


def nested_r_hat(draws, superchains):
    return r_hats(draws[None], superchains)[0]


def chains_of(rng, num_superchains, copies, draws, spread):
    """Superchains whose means differ, of chains of white noise."""
    means = np.repeat(spread * rng.normal(size=num_superchains), copies)
    return means[:, None] + rng.normal(size=(num_superchains * copies, draws))


def test_it_is_near_one_only_if_the_superchains_agree():
    rng = np.random.default_rng(0)
    assert nested_r_hat(chains_of(rng, 4, 16, 50, 0.0), 4) < 1.01
    assert nested_r_hat(chains_of(rng, 4, 16, 50, 0.5), 4) > 1.05
    scaled = chains_of(rng, 4, 16, 50, 0.0)
    scaled[:16] *= 3  # the same means, another spread
    assert nested_r_hat(scaled, 4) > 1.05


def test_it_is_nearer_to_one_than_r_hat_for_many_short_chains():
    rng = np.random.default_rng(1)
    means = np.repeat(rng.normal(size=64), 1)
    draws = means[:, None] + 0.3 * rng.normal(size=(64, 8))  # each chain has hardly moved
    shuffled = rng.permutation(draws)
    assert nested_r_hat(shuffled, 4) < 1.2 < float(az.rhat(shuffled))


def test_it_does_not_depend_on_a_monotone_scale():
    rng = np.random.default_rng(2)
    draws = chains_of(rng, 3, 4, 20, 0.3)
    ranks = np.argsort(np.argsort(draws, axis=None)).reshape(draws.shape)
    bulk = nested_r_hat(ranks, 3)
    assert bulk == pytest.approx(nested_r_hat(draws, 3), rel=0.1)


def test_it_is_that_of_arviz():
    if not hasattr(az, "rhat_nested"):
        pytest.skip("only ArviZ 1.x has nested R-hat")
    rng = np.random.default_rng(3)
    for spread, draws in ((0.0, 21), (1.0, 40)):
        x = chains_of(rng, 5, 3, draws, spread)
        groups = np.repeat(np.arange(5), 3)
        expected = float(az.rhat_nested(x, superchain_ids=groups))
        assert nested_r_hat(x, 5) == pytest.approx(expected, rel=1e-10)


def test_intervals_need_an_ess_of_100_if_there_is_one():
    rng = np.random.default_rng(4)
    moving, constant = rng.normal(size=(2, 200)), np.ones((2, 200))
    table = table_of_scalars({"alpha": moving, "num_clusters": constant})
    for bulk, tail, allowed in ((100.0, 100.0, True), (99.0, 900.0, False), (900.0, 99.0, False)):
        some = table.copy()
        some.loc["alpha", ["ess_bulk", "ess_tail"]] = bulk, tail
        assert allows_intervals(some) == allowed
        some.loc["num_clusters", ["ess_bulk", "ess_tail"]] = 5.0  # which does not count
        assert allows_intervals(some) == allowed
    assert allows_intervals(table_of_scalars({"num_clusters": constant}))
    assert allows_intervals(table.iloc[:0])
    unknown = table.assign(ess_bulk=np.nan, ess_tail=np.nan)  # of a chain that is too short
    assert allows_intervals(unknown)
