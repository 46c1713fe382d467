"""Nested R-hat against its definition."""

import arviz as az
import numpy as np
import pytest

from numpyro_rankings.diagnostics import nested_r_hat


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


def test_it_is_that_of_arviz(monkeypatch):
    if not hasattr(az, "rhat_nested"):
        pytest.skip("only ArviZ 1.x has nested R-hat")
    rng = np.random.default_rng(3)
    for spread, draws in ((0.0, 21), (1.0, 40)):
        x = chains_of(rng, 5, 3, draws, spread)
        expected = nested_r_hat(x, 5)
        with monkeypatch.context() as patch:
            patch.delattr(az, "rhat_nested")
            assert nested_r_hat(x, 5) == pytest.approx(expected, rel=1e-10)
