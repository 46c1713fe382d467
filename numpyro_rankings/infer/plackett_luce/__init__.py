"""Gibbs kernels for Plackett–Luce models (Caron, Teh & Murphy 2014; Caron & Doucet 2012)."""

from numpyro_rankings.infer.plackett_luce.dirichlet_process import DPPlackettLuceGibbs
from numpyro_rankings.infer.plackett_luce.finite import PlackettLuceGibbs
from numpyro_rankings.infer.plackett_luce.gamma_process import GammaProcessPlackettLuceGibbs
from numpyro_rankings.infer.plackett_luce.regression import PlackettLuceRegressionGibbs
from numpyro_rankings.infer.plackett_luce.tempered import PlackettLuceComponents

__all__ = [
    "DPPlackettLuceGibbs",
    "GammaProcessPlackettLuceGibbs",
    "PlackettLuceComponents",
    "PlackettLuceGibbs",
    "PlackettLuceRegressionGibbs",
]
