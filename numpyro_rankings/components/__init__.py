"""Conjugate families: what the samplers of partitions know of a cluster."""

from numpyro_rankings.components.discrete import Atom, DirichletMultinomial, SparseCounts
from numpyro_rankings.components.family import Family
from numpyro_rankings.components.gaussian import GaussianMean, NormalGamma, NormalInverseWishart

__all__ = [
    "Atom",
    "DirichletMultinomial",
    "Family",
    "GaussianMean",
    "NormalGamma",
    "NormalInverseWishart",
    "SparseCounts",
]
