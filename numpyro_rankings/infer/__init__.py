"""Gibbs kernels for models of rankings."""

from numpyro_rankings.infer.dp_plackett_luce import DPPlackettLuceGibbs
from numpyro_rankings.infer.gamma_process import GammaProcessPlackettLuceGibbs
from numpyro_rankings.infer.mallows import BetaGibbs, SliceGibbs
from numpyro_rankings.infer.plackett_luce import PlackettLuceGibbs

__all__ = [
    "BetaGibbs",
    "DPPlackettLuceGibbs",
    "GammaProcessPlackettLuceGibbs",
    "PlackettLuceGibbs",
    "SliceGibbs",
]
