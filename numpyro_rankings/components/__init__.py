"""Conjugate families: sufficient statistics and log marginals of clusters."""

from numpyro_rankings.components.checks import check_family
from numpyro_rankings.components.discrete import Atom, DirichletMultinomial, SparseCounts
from numpyro_rankings.components.family import Augmented, AugmentedFamily, Family
from numpyro_rankings.components.gaussian import GaussianMean, NormalGamma, NormalInverseWishart
from numpyro_rankings.components.mallows import MallowsCenter
from numpyro_rankings.components.plackett_luce import PlackettLuceWeights

__all__ = [
    "Atom",
    "Augmented",
    "AugmentedFamily",
    "DirichletMultinomial",
    "Family",
    "GaussianMean",
    "MallowsCenter",
    "NormalGamma",
    "NormalInverseWishart",
    "PlackettLuceWeights",
    "SparseCounts",
    "check_family",
]
