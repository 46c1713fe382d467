"""R-hat and ESS of many quantities at once: those of ArviZ, and where they are not defined."""

import arviz as az
import numpy as np
import pytest

from numpyro_rankings.posterior import convergence
from numpyro_rankings.posterior.diagnostics import largest_of, table_of_scalars

FORMS = {
    "normal": lambda x: x,
    "whole numbers": np.round,
    "heavy tail": lambda x: np.exp(3 * x),
    "zeros and ones": lambda x: (x > 1) * 1.0,
}


def autoregressive(rng, correlation, *shape):
    x = rng.normal(size=shape)
    for t in range(1, shape[-1]):
        x[..., t] = correlation * x[..., t - 1] + np.sqrt(1 - correlation**2) * x[..., t]
    return x


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("chains", "draws"), [(1, 4), (1, 51), (2, 5), (4, 6), (3, 9), (4, 200)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_they_are_those_of_arviz(chains, draws, form, monkeypatch):
    rng = np.random.default_rng(0)
    correlations = (-0.9, -0.3, 0.0, 0.5, 0.95, 0.999)
    all_x = [FORMS[form](autoregressive(rng, r, 4, chains, draws)) for r in correlations]
    x = np.concatenate(all_x)
    x = x[np.ptp(x, axis=2).any(1)]  # the others are not asked for
    monkeypatch.setattr(convergence, "_BLOCK", 5 * chains * draws)
    found = np.concatenate([convergence.convergence(one) for one in convergence.blocks(list(x))])
    ess = [[float(az.ess(one, method=which)) for which in ("bulk", "tail")] for one in x]
    np.testing.assert_allclose(found[:, :2], ess, rtol=1e-8)
    r_hats = [np.nan if chains == 1 else float(az.rhat(one)) for one in x]
    np.testing.assert_allclose(found[:, 2], r_hats, rtol=1e-8)


def test_what_is_not_finite_has_none():
    x = np.random.default_rng(1).normal(size=(4, 2, 50))
    x[1, 0, 3], x[2, 1, 4] = np.nan, np.inf
    found = convergence.convergence(x)
    assert np.isnan(found[1:3]).all() and np.isfinite(found[[0, 3]]).all()
    assert np.isnan(largest_of(dict(zip("abcd", x, strict=True)), None, 9.0))
    assert np.isnan(convergence.convergence(x[..., :3])).all()  # too few draws


def test_a_table_has_notes_where_nothing_moves():
    x = np.random.default_rng(2).normal(size=(2, 40))
    same, apart = np.ones((2, 40)), np.repeat([[1.0], [2.0]], 40, axis=1)
    table = table_of_scalars({"x": x, "same": same, "apart": apart})
    assert table["note"].tolist() == ["", "constant", "stuck"]
    assert table["r_hat"].isna().tolist() == [False, True, False]
    assert table.loc["apart", "r_hat"] == np.inf and np.isnan(table.loc["apart", "ess_bulk"])
    assert largest_of({"x": x, "apart": apart}, None, 1.5) == np.inf
    assert largest_of({"x": x, "same": same}, None, 1.5) == table.loc["x", "r_hat"]
    one = table_of_scalars({"x": x[:1], "same": same[:1]})
    assert one["note"].tolist() == ["one chain", "constant"]
    assert np.isnan(largest_of({"x": x[:1]}, None, 1.5))
    assert np.isnan(largest_of({"same": same}, None, 1.5))


def test_the_first_that_is_too_large_ends_the_search(monkeypatch):
    """What comes after it is not looked at."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(6, 4, 100))
    x[1, 0] += 1
    monkeypatch.setattr(convergence, "_BLOCK", 2 * x[0].size)
    looked_at, rank_scores = [], convergence._rank_scores

    def counted(x):
        looked_at.append(len(x))
        return rank_scores(x)

    expected, scalars = convergence.r_hats(x), dict(zip("abcdef", x, strict=True))
    monkeypatch.setattr(convergence, "_rank_scores", counted)
    assert largest_of(scalars, None, 1.05) == expected[1] > 1.05
    assert sum(looked_at) == 2 * 2  # location and spread of two quantities
    looked_at.clear()
    assert largest_of(scalars, None, 9.0) == expected.max()
    assert sum(looked_at) == 2 * 6
