"""What kernels say of themselves: the likelihood in their clusters, and how many these are."""

import pytest
from helpers.ranking_kernels import KERNELS

from numpyro_rankings.components import GaussianMean, MallowsCenter, PlackettLuceWeights
from numpyro_rankings.families import ITEM_POOL, MALLOWS, PLACKETT_LUCE
from numpyro_rankings.infer import (
    BetaGibbs,
    CollapsedGibbs,
    Cycle,
    DDCRPGibbs,
    DPPlackettLuceGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
    exponential_decay,
)

DECAY = exponential_decay(1.0)


@pytest.mark.parametrize(
    "kernel, family, number",
    [
        (SliceGibbs(), MALLOWS, None),
        (BetaGibbs(num_components=3), MALLOWS, 3),
        (PlackettLuceGibbs(), PLACKETT_LUCE, 1),
        (PlackettLuceGibbs(num_components=2), PLACKETT_LUCE, 2),
        (GammaProcessPlackettLuceGibbs(), ITEM_POOL, None),
        (DPPlackettLuceGibbs(), ITEM_POOL, None),
        (CollapsedGibbs(MallowsCenter(1.0)), MALLOWS, None),
        (CollapsedGibbs(GaussianMean(1.0, 1.0)), None, None),
        (Cycle([CollapsedGibbs(PlackettLuceWeights())]), PLACKETT_LUCE, None),
        (DDCRPGibbs(PlackettLuceWeights(), decay=DECAY), PLACKETT_LUCE, None),
        (DDCRPGibbs(GaussianMean(1.0, 1.0), decay=DECAY), None, None),
    ],
    ids=lambda x: type(x).__name__,
)
def test_a_kernel_knows_its_likelihood_and_number_of_components(kernel, family, number):
    assert kernel.ranking_family is family
    assert kernel.num_components == number
    assert kernel.judge_sites == ()


@pytest.mark.parametrize("name", KERNELS)
def test_the_parameters_of_the_family_are_sites_of_the_kernel(name):
    kernel = KERNELS[name]()
    assert set(kernel.ranking_family.parameters) <= set(kernel.sites)
