"""Samplers of partitions of the points of a conjugate family."""

from numpyro_rankings.infer.partition.base import Move, PartitionKernel
from numpyro_rankings.infer.partition.collapsed import CollapsedGibbs
from numpyro_rankings.infer.partition.cycle import Cycle
from numpyro_rankings.infer.partition.permutation import PermutationGibbs
from numpyro_rankings.infer.partition.split_merge import SplitMerge
from numpyro_rankings.infer.partition.subclusters import SubclusterGibbs

__all__ = [
    "CollapsedGibbs",
    "Cycle",
    "Move",
    "PartitionKernel",
    "PermutationGibbs",
    "SplitMerge",
    "SubclusterGibbs",
]
