"""Likelihoods of rankings, one file each: all that depends on what the likelihood is."""

from numpyro_rankings.families.base import (
    CenterProfile,
    Profile,
    RankingFamily,
    RankingProfile,
    family_of,
    register_family,
    sites_of_clusters,
)
from numpyro_rankings.families.mallows import MALLOWS, ClusterProfile
from numpyro_rankings.families.plackett_luce import PLACKETT_LUCE, WeightsProfile
from numpyro_rankings.families.pool import ITEM_POOL
from numpyro_rankings.families.scored import ScoredOrders

__all__ = [
    "ITEM_POOL",
    "MALLOWS",
    "PLACKETT_LUCE",
    "CenterProfile",
    "ClusterProfile",
    "Profile",
    "RankingFamily",
    "RankingProfile",
    "ScoredOrders",
    "WeightsProfile",
    "family_of",
    "register_family",
    "sites_of_clusters",
]
