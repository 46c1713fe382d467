"""Gibbs kernels for models of rankings, and for partitions of anything."""

from numpyro_rankings.decays import (
    exponential_decay,
    identity_decay,
    logistic_decay,
    window_decay,
)
from numpyro_rankings.infer.collapsed import CollapsedGibbs
from numpyro_rankings.infer.cycle import Cycle
from numpyro_rankings.infer.ddcrp import DDCRPGibbs
from numpyro_rankings.infer.dp_plackett_luce import DPPlackettLuceGibbs
from numpyro_rankings.infer.gamma_process import GammaProcessPlackettLuceGibbs
from numpyro_rankings.infer.language import DDCRPLanguageGibbs
from numpyro_rankings.infer.mallows import BetaGibbs, SliceGibbs
from numpyro_rankings.infer.permutation import PermutationGibbs
from numpyro_rankings.infer.plackett_luce import PlackettLuceGibbs
from numpyro_rankings.infer.split_merge import SplitMerge

__all__ = [
    "BetaGibbs",
    "CollapsedGibbs",
    "Cycle",
    "DDCRPGibbs",
    "DDCRPLanguageGibbs",
    "DPPlackettLuceGibbs",
    "GammaProcessPlackettLuceGibbs",
    "PermutationGibbs",
    "PlackettLuceGibbs",
    "SliceGibbs",
    "SplitMerge",
    "exponential_decay",
    "identity_decay",
    "logistic_decay",
    "window_decay",
]
