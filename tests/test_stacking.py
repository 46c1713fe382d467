"""Stacking of chains against an optimiser, and where the answer is known."""

import arviz as az
import numpy as np
import pytest
import xarray as xr
from scipy.optimize import minimize
from scipy.stats import norm

from numpyro_rankings import stack_chains
from numpyro_rankings.stacking import _leave_one_out, _stacking_weights


def as_data(values):
    """ArviZ data with these log likelihoods, (chains, draws, observations)."""
    dataset = xr.Dataset({"y": (("chain", "draw", "n"), values)})
    return {"log_likelihood": dataset}


def modes(rng, means, share, size=400, draws=200):
    """Chains stuck at different means, of data of which a share is from the first."""
    from_first = rng.random(size) < share
    y = np.where(from_first, means[0], means[1]) + rng.normal(size=size)
    chains = [m + 0.05 * rng.normal(size=draws) for m in means]
    return np.stack([norm.logpdf(y, mu[:, None]) for mu in chains])


def test_weights_are_the_best():
    rng = np.random.default_rng(0)
    log_densities = rng.normal(size=(4, 60))
    weights = _stacking_weights(log_densities)

    def loss(w):
        return -np.log(w @ np.exp(log_densities)).sum()

    best = minimize(
        loss,
        np.full(4, 0.25),
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-12},
    )
    assert loss(weights) <= best.fun + 1e-4
    np.testing.assert_allclose(weights, best.x, atol=2e-3)


@pytest.mark.parametrize("share", [1.0, 0.7])
def test_chains_get_the_share_that_they_predict(share):
    values = modes(np.random.default_rng(1), (0.0, 6.0, 30.0), share)
    stacked = stack_chains(as_data(values))
    np.testing.assert_allclose(stacked.weights, [share, 1 - share, 0.0], atol=0.07)
    assert stacked.weights.sum() == pytest.approx(1.0)
    assert stacked.elpd_stacked >= stacked.elpd.max() - 1e-6
    assert np.argmax(stacked.elpd) == 0


def test_equal_chains_share_the_weight():
    values = np.repeat(modes(np.random.default_rng(2), (0.0, 6.0), 1.0)[:1], 3, axis=0)
    np.testing.assert_allclose(stack_chains(as_data(values)).weights, 1 / 3, atol=1e-6)


def test_densities_are_those_of_loo():
    values = modes(np.random.default_rng(3), (0.0, 6.0), 0.5)[:1]
    posterior = xr.Dataset({"mu": (("chain", "draw"), np.zeros(values.shape[:2]))})
    if hasattr(az, "InferenceData"):
        data = az.InferenceData(posterior=posterior, **as_data(values))
        expected = az.loo(data, pointwise=True, reff=1.0)
        of_each, total = expected.loo_i, expected.elpd_loo
    else:
        data = xr.DataTree.from_dict(
            {"/posterior": posterior, "/log_likelihood": as_data(values)["log_likelihood"]}
        )
        expected = az.loo(data, pointwise=True, reff=1.0)
        of_each, total = expected.elpd_i, expected.elpd
    stacked = stack_chains(data)
    np.testing.assert_allclose(_leave_one_out(values[0].T, 1.0)[0], of_each, rtol=1e-6)
    np.testing.assert_allclose(stacked.elpd, [total], rtol=1e-6)
    np.testing.assert_array_equal(stacked.weights, [1.0])


def test_bad_data():
    values = modes(np.random.default_rng(4), (0.0, 6.0), 0.5)
    with pytest.raises(ValueError, match="log_likelihood=True"):
        stack_chains({"posterior": xr.Dataset()})
    two = as_data(values)["log_likelihood"].assign(z=(("chain", "draw"), values[..., 0]))
    with pytest.raises(ValueError, match="there are 2"):
        stack_chains({"log_likelihood": two})
    values[0, 3, 5] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        stack_chains(as_data(values))
