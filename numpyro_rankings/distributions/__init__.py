"""NumPyro distributions of rankings, of their parameters, and of partitions."""

from numpyro_rankings.distributions import constraints as constraints
from numpyro_rankings.distributions.ddcrp import DistanceDependentCRP, links_to_partition
from numpyro_rankings.distributions.flat import FlatLog
from numpyro_rankings.distributions.mallows import (
    GeneralizedMallows,
    MallowsConcentrationPrior,
    bayesmallows_alpha_to_concentration,
    concentration_to_bayesmallows_alpha,
    concentration_to_dispersion,
    dispersion_to_concentration,
)
from numpyro_rankings.distributions.partition import (
    ChineseRestaurantProcess,
    FiniteDirichletPartition,
)
from numpyro_rankings.distributions.permutation import RandomPermutation, all_permutations
from numpyro_rankings.distributions.plackett_luce import TopTPlackettLuce
from numpyro_rankings.distributions.plackett_luce_ties import PlackettLuceTies
from numpyro_rankings.distributions.scaled_dirichlet import ScaledDirichlet

__all__ = [
    "ChineseRestaurantProcess",
    "DistanceDependentCRP",
    "FiniteDirichletPartition",
    "FlatLog",
    "GeneralizedMallows",
    "MallowsConcentrationPrior",
    "PlackettLuceTies",
    "RandomPermutation",
    "ScaledDirichlet",
    "TopTPlackettLuce",
    "all_permutations",
    "bayesmallows_alpha_to_concentration",
    "concentration_to_bayesmallows_alpha",
    "concentration_to_dispersion",
    "constraints",
    "dispersion_to_concentration",
    "links_to_partition",
]
