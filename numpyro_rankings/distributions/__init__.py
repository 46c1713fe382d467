"""NumPyro distributions of rankings, of their parameters, and of partitions."""

from . import constraints as constraints
from .ddcrp import DistanceDependentCRP, links_to_partition
from .flat import FlatLog
from .mallows import (
    GeneralizedMallows,
    MallowsConcentrationPrior,
    bayesmallows_alpha_to_concentration,
    concentration_to_bayesmallows_alpha,
    concentration_to_dispersion,
    dispersion_to_concentration,
)
from .partition import ChineseRestaurantProcess, FiniteDirichletPartition
from .permutation import RandomPermutation, all_permutations
from .plackett_luce import TopTPlackettLuce

__all__ = [
    "ChineseRestaurantProcess",
    "DistanceDependentCRP",
    "FiniteDirichletPartition",
    "FlatLog",
    "GeneralizedMallows",
    "MallowsConcentrationPrior",
    "RandomPermutation",
    "TopTPlackettLuce",
    "all_permutations",
    "bayesmallows_alpha_to_concentration",
    "concentration_to_bayesmallows_alpha",
    "concentration_to_dispersion",
    "constraints",
    "dispersion_to_concentration",
    "links_to_partition",
]
