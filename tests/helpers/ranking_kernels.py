"""Kernels of rankings: a constructor by name, and the table of rankings that all of them fit."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.infer import MCMC

from numpyro_rankings import Rankings
from numpyro_rankings.infer import (
    BetaGibbs,
    DPPlackettLuceGibbs,
    GammaProcessPlackettLuceGibbs,
    MallowsComponents,
    PlackettLuceComponents,
    PlackettLuceGibbs,
    SliceGibbs,
    TemperedMixture,
)

GAMMA = dist.Gamma(2.0, 1.0)
PER_STAGE = dist.Gamma(jnp.array([2.0, 1.0, 3.0]), jnp.array([1.0, 2.0, 1.5]))
NU, R = 0.8, np.array([0.5, 1.0, 1.5])
PRIOR = {"nu": NU, "r": list(R)}

# name: constructor; four items and lists of up to four, hence three stages. The moves with the
# labels integrated out take long to compile, so some do without
MALLOWS = {
    "slice-sequential": lambda: SliceGibbs(
        1.3, **PRIOR, max_clusters=8, num_center_updates=2, init="random", num_marginal_steps=0
    ),
    "slice-parallel": lambda: SliceGibbs(
        dist.Gamma(6.0, 6.0), **PRIOR, assignment="parallel", num_births=0, max_clusters=64
    ),
    "slice-parallel-births": lambda: SliceGibbs(
        0.7, **PRIOR, assignment="parallel", num_births=2, max_clusters=24, num_marginal_steps=0
    ),
    "slice-finite": lambda: SliceGibbs(GAMMA, **PRIOR, num_components=3),
    "slice-finite-parallel": lambda: SliceGibbs(
        1.5, **PRIOR, num_components=3, assignment="parallel", num_births=0, num_marginal_steps=0
    ),
    "slice-per-stage": lambda: SliceGibbs(
        1.0, concentration_prior=PER_STAGE, max_clusters=6, num_marginal_steps=0
    ),
    "slice-tied": lambda: SliceGibbs(
        GAMMA,
        concentration_prior=dist.LogNormal(0.0, 1.0),
        tied=True,
        max_clusters=6,
        init="random",
    ),
    "slice-one-population": lambda: SliceGibbs(
        num_components=1, concentration_prior=PER_STAGE, num_reinsertions=2
    ),
    "beta": lambda: BetaGibbs(GAMMA, **PRIOR, max_clusters=6),
    "beta-finite": lambda: BetaGibbs(1.5, **PRIOR, num_components=3, num_marginal_steps=0),
}
# these have enumeration tests of their own
PLACKETT_LUCE = {
    "plackett-luce": lambda: PlackettLuceGibbs([0.5, 1.0, 1.5, 2.0]),
    "plackett-luce-mixture": lambda: PlackettLuceGibbs(
        num_components=3, alpha=GAMMA, num_marginal_steps=0
    ),
    "plackett-luce-mixture-marginal": lambda: PlackettLuceGibbs(num_components=3, alpha=GAMMA),
    "gamma-process": lambda: GammaProcessPlackettLuceGibbs(GAMMA),
    "generalised-gamma-process": lambda: GammaProcessPlackettLuceGibbs(1.5, 0.5, 0.3),
    "dp-plackett-luce": lambda: DPPlackettLuceGibbs(
        GAMMA, GAMMA, GAMMA, 0.7, max_clusters=40, num_marginal_steps=0
    ),
}
FEW = {"num_temperatures": 4, "num_steps": 8}
TEMPERED = {
    "tempered-mallows": lambda: TemperedMixture(MallowsComponents(**PRIOR), 3, 1.5, **FEW),
    "tempered-tied": lambda: TemperedMixture(
        MallowsComponents(concentration_prior=dist.LogNormal(0.0, 1.0), tied=True), 2, **FEW
    ),
    "tempered-one-population": lambda: TemperedMixture("mallows", 1, power=0.5, **FEW),
    "tempered-plackett-luce": lambda: TemperedMixture(
        PlackettLuceComponents([0.5, 1.0, 1.5, 2.0]), 2, effective_size=3.0, **FEW
    ),
}
KERNELS = MALLOWS | PLACKETT_LUCE | TEMPERED

LISTS = [[0, 1, 2], [0], [3, 1], [3, 2, 0, 1]]
COUNTS = [2, 1, 1, 1]


def table():
    return Rankings.from_orderings(LISTS, num_items=4, counts=COUNTS)


def sampler(kernel, chain_method="vectorized", **settings):
    settings = {"num_warmup": 1, "num_samples": 6, "num_chains": 4} | settings
    return MCMC(kernel, chain_method=chain_method, progress_bar=False, **settings)


def assert_same_draws(found, expected, least=1.0):
    """Draws are equal, floats up to fused reductions.

    :param least: share of draws of which that is asked: where sums round otherwise a decision near
        a tie falls otherwise, and from there on the chain is another one.
    """
    assert set(found) == set(expected)
    same = True
    for name, value in expected.items():
        assert found[name].shape == value.shape and found[name].dtype == value.dtype
        close = np.isclose(found[name], value, rtol=1e-3, atol=1e-4)
        same &= close.reshape(len(close), -1).all(axis=1)
    assert np.mean(same) >= least, same
