"""Stacking of chains against an optimiser, and where the answer is known."""

import arviz as az
import numpy as np
import pytest
import xarray as xr
from helpers.fabricated import as_run
from scipy.optimize import minimize
from scipy.stats import norm

from numpyro_rankings import Draws, Rankings, stack_chains
from numpyro_rankings.cli import fit, main
from numpyro_rankings.cli.session import Sampled
from numpyro_rankings.infer import SliceGibbs
from numpyro_rankings.posterior.stacking import (
    _stacking_weights,
    leave_one_out,
    posterior_by_weight,
    stack_fitted_chains,
)


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
    if az.__version__ < "1":
        data = az.InferenceData(posterior=posterior, **as_data(values))
        expected = az.loo(data, pointwise=True, reff=1.0)
        of_each, total = expected.loo_i, expected.elpd_loo
    else:
        data = xr.DataTree.from_dict({"posterior": posterior, **as_data(values)})
        expected = az.loo(data, pointwise=True, reff=1.0)
        of_each, total = expected.elpd_i, expected.elpd
    stacked = stack_chains(data)
    np.testing.assert_allclose(leave_one_out(values[0].T, 1.0)[0], of_each, rtol=1e-6)
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


def test_draws_by_weight():
    samples = {"x": (("chain", "draw"), np.arange(30).reshape(3, 10))}
    samples["y"] = (("chain", "draw", "n"), np.arange(60).reshape(3, 10, 2))
    weighted = xr.Dataset(samples, attrs={"stacking_weights": [0.7, 0.0, 0.3]})
    drawn = posterior_by_weight(weighted)
    assert drawn["x"].shape == (1, 10) and drawn["y"].shape == (1, 10, 2)
    np.testing.assert_array_equal(drawn["x"][0] // 10, [0] * 7 + [2] * 3)
    np.testing.assert_array_equal(drawn["y"][..., 0], 2 * drawn["x"])


def test_a_report_of_chains_that_disagree(tmp_path, monkeypatch, capsys):
    """Two chains have found the groups, one has all in one: it has no weight."""
    rankings = Rankings.from_orderings([[0, 1, 2], [2, 1, 0]], num_items=3, counts=[30, 10])
    items = "# item A: A\n# item B: B\n# item C: C\n"
    (tmp_path / "two.csv").write_text(f"{items}count,ordering\n30,A>B>C\n10,C>B>A\n")
    rng, shape = np.random.default_rng(0), (3, 60)
    right = np.array([[0, 1, 2], [2, 1, 0]])
    center = np.stack([right, right, np.array([[1, 0, 2], [1, 2, 0]])])
    labels = np.array([rankings.row_index, rankings.row_index, np.zeros(40)], np.int8)
    sizes, numbers = np.array([[30, 10], [30, 10], [40, 0]], np.int32), np.array([2, 2, 1])
    z = {
        "assignments": np.broadcast_to(labels[:, None], (*shape, 40)),
        "center": np.broadcast_to(center[:, None], (*shape, 2, 3)).astype(np.int32),
        "concentration": 2 + 0.1 * rng.random((*shape, 2, 2)).astype(np.float32),
        "cluster_sizes": np.broadcast_to(sizes[:, None], (*shape, 2)),
        "num_clusters": np.broadcast_to(numbers[:, None], shape),
        "alpha": np.ones(shape, np.float32),
        "log_joint": rng.normal(size=shape) - np.array([100.0, 100.0, 150.0])[:, None],
    }
    mcmc = as_run(SliceGibbs(num_components=2), z, rankings, np.ones(shape), np.zeros(shape, bool))
    weights = stack_fitted_chains(Draws.of(z, rankings, 2)).weights
    np.testing.assert_allclose(weights[2], 0.0, atol=1e-3)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fit, "_sample", lambda *_: Sampled(mcmc, "length", (60, 60)))
    monkeypatch.setattr("numpyro_rankings.cli.session.use_compilation_cache", lambda: None)
    command = ["fit", "two.csv", "--components", "2", "--warmup", "0", "--draws", "60"]
    assert main([*command, "--chains", "3", "--no-progress", "--out", "out"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "The groups described here are those of chain 1 (" in printed
    assert "and chain 2 (" in printed and "chain 3" not in printed
    assert "A before B before C" in printed and "B before A before C" not in printed
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "not how probable their groups are" in page
    # everything but the traces is of the chains with a weight
    assert "2 groups hold" in page and "You asked for 2 groups." in page
    assert "draws is at most 0.)" in " ".join(page.split())
