"""Summaries of draws: consensus orderings, cluster profiles, predictions, predictive densities."""

from numpyro_rankings.families import (
    CenterProfile,
    ClusterProfile,
    Profile,
    RankingProfile,
    WeightsProfile,
)
from numpyro_rankings.ops.orderings import (
    borda_ordering,
    certain_levels,
    cp_consensus,
    kendall_distance,
    map_consensus,
    rank_probabilities,
)
from numpyro_rankings.posterior.blocs import Bloc, BlocLevel, Blocs, find_blocs
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.further_lists import PredictedItems, predict_items
from numpyro_rankings.posterior.ladders import LogEvidence, log_evidence
from numpyro_rankings.posterior.predictive_density import log_predictive_density
from numpyro_rankings.posterior.profiles import (
    PartitionProfile,
    cluster_profiles,
    holds,
    membership_probability,
    partition_profiles,
)

__all__ = [
    "Bloc",
    "BlocLevel",
    "Blocs",
    "CenterProfile",
    "ClusterProfile",
    "Draws",
    "LogEvidence",
    "PartitionProfile",
    "PredictedItems",
    "Profile",
    "RankingProfile",
    "WeightsProfile",
    "borda_ordering",
    "certain_levels",
    "cluster_profiles",
    "cp_consensus",
    "find_blocs",
    "holds",
    "kendall_distance",
    "log_evidence",
    "log_predictive_density",
    "map_consensus",
    "membership_probability",
    "partition_profiles",
    "predict_items",
    "rank_probabilities",
]
