"""Gibbs kernels for models of rankings, and for partitions of anything."""

from numpyro_rankings.infer.ddcrp import DDCRPGibbs, DDCRPLanguageGibbs
from numpyro_rankings.infer.mallows import BetaGibbs, MallowsComponents, SliceGibbs
from numpyro_rankings.infer.partition import (
    CollapsedGibbs,
    Cycle,
    PermutationGibbs,
    SplitMerge,
    SubclusterGibbs,
)
from numpyro_rankings.infer.plackett_luce import (
    DPPlackettLuceGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceComponents,
    PlackettLuceGibbs,
    PlackettLuceRegressionGibbs,
)
from numpyro_rankings.infer.tempered import TemperedMixture
from numpyro_rankings.links.decays import (
    exponential_decay,
    identity_decay,
    logistic_decay,
    window_decay,
)

__all__ = [
    "BetaGibbs",
    "CollapsedGibbs",
    "Cycle",
    "DDCRPGibbs",
    "DDCRPLanguageGibbs",
    "DPPlackettLuceGibbs",
    "GammaProcessPlackettLuceGibbs",
    "MallowsComponents",
    "PermutationGibbs",
    "PlackettLuceComponents",
    "PlackettLuceGibbs",
    "PlackettLuceRegressionGibbs",
    "SliceGibbs",
    "SplitMerge",
    "SubclusterGibbs",
    "TemperedMixture",
    "exponential_decay",
    "identity_decay",
    "logistic_decay",
    "window_decay",
]
