"""R*: chains that agree, chains that R-hat cannot tell apart, and chains that are elsewhere."""

import numpy as np
import pytest
import xarray as xr

from numpyro_rankings import r_star
from numpyro_rankings.posterior.convergence import r_hats

CHAINS, DRAWS = 4, 1000


def normal(seed, *more):
    return np.random.default_rng(seed).normal(size=(CHAINS, DRAWS, *more))


def one_is_correlated(seed):
    """Two quantities with the same margins in all chains, correlated in the last."""
    x = normal(seed, 2)
    x[3, :, 1] = 0.9 * x[3, :, 0] + np.sqrt(1 - 0.9**2) * x[3, :, 1]
    return x


def standard_error(num_classes):
    """Of R* where a classifier can only guess, on three tenths of the draws."""
    share = 1 / num_classes
    return num_classes * np.sqrt(share * (1 - share) / (0.3 * CHAINS * DRAWS))


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("quantities", [1, 3, 60])
def test_it_is_about_one_if_chains_agree(split, quantities):
    found = r_star({"x": normal(0, quantities)}, split=split)
    margin = 4 * standard_error(CHAINS * (1 + split))
    assert abs(found.value - 1) < margin and abs(np.median(found.draws) - 1) < margin
    low, high = found.interval()
    assert low < 1 < high and found.draws.shape == (1000,)
    assert high - low == pytest.approx(2 * 1.645 * standard_error(CHAINS * (1 + split)), rel=0.2)


@pytest.mark.parametrize("split", [False, True])
def test_it_sees_a_correlation_that_r_hat_does_not_see(split):
    x = one_is_correlated(1)
    assert r_hats(np.moveaxis(x, 2, 0)).max() < 1.01
    found = r_star({"x": x}, split=split)
    assert found.value > 1 + 4 * standard_error(CHAINS * (1 + split))
    assert found.interval()[0] > 1


def test_it_is_the_number_of_chains_if_all_are_elsewhere():
    x = normal(2, 2) + 20 * np.arange(CHAINS)[:, None, None]
    found = r_star({"x": x}, split=False)
    assert found.value == CHAINS and np.median(found.draws) > 0.95 * CHAINS
    one = r_star({"x": x[:1] + np.linspace(0, 40, DRAWS)[:, None]})  # a drift of one chain
    assert one.value > 1.9
    away = normal(3)
    away[0] += 20  # found always; the others are guessed
    assert r_star({"x": away}, split=False).value == pytest.approx(2, abs=4 * standard_error(3))


def test_it_takes_the_quantities_without_labels():
    correlated = one_is_correlated(4)
    dims = ("chain", "draw")
    quantities = {
        "log_joint": (dims, correlated[..., 0]),
        "partition_entropy": (dims, correlated[..., 1]),
        "num_clusters": (dims, np.full((CHAINS, DRAWS), 3)),
        "weights": ((*dims, "cluster"), normal(5, 1) + 20 * np.arange(CHAINS)[:, None, None]),
    }
    found = r_star({"posterior": xr.Dataset(quantities)})
    of_these = r_star({"log_joint": correlated[..., 0], "partition_entropy": correlated[..., 1]})
    assert found.value == of_these.value


def test_it_does_not_depend_on_monotone_scales_and_takes_few_of_many_draws():
    x = normal(6, 2)
    assert r_star({"x": x}).value == r_star({"x": np.exp(3 * x)}).value
    few = r_star({"x": x}, max_draws=300, seed=3)
    spaced = x[:, np.linspace(0, DRAWS - 1, 300).astype(int)]
    assert few.value == r_star({"x": spaced}, seed=3).value
    assert r_star({"x": x}, num_draws=7).draws.shape == (7,)


def test_what_it_cannot_be_computed_of():
    x = normal(7)
    for data, words in (
        ({"x": x[:, :19]}, "at least 20 draws of each chain"),
        ({"x": np.ones((4, 50))}, "constant"),
        ({"x": np.where(x > 3, np.nan, x)}, "draws of x are NaN"),
        # as get_samples() returns them
        ({"x": x.ravel()}, r"get_samples\(group_by_chain=True\) .* got x \(4000,\)"),
        ({"x": x.ravel(), "y": x.reshape(-1, 2)}, r"get_samples.* y \(2000, 2\)"),
        ({"x": x.reshape(-1, 4)}, r"got 4 of 1,000 chains; are they by chain, as get_samples"),
    ):
        with pytest.raises(ValueError, match=words):
            r_star(data)
    with pytest.raises(ValueError, match="at least two chains: use split=True"):
        r_star({"x": x[:1]}, split=False)
    with pytest.raises(ValueError, match="max_draws must be at least 20"):
        r_star({"x": x}, max_draws=3)
    with pytest.raises(TypeError, match="to_inference_data"):
        r_star(x)
