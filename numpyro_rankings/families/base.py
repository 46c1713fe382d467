"""What a likelihood of rankings knows, and which one draws are of."""

from abc import ABC
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from numpyro_rankings.ops.orderings import cp_consensus, map_consensus

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INTERVAL = (0.05, 0.95)  # quantiles of the intervals of profiles

Parameters = Mapping[str, np.ndarray]  # of one cluster in the draws that have it, each (D, …)


@dataclass(frozen=True, kw_only=True, eq=False)
class Profile:
    """Posterior summary of one cluster. Intervals hold 90% of the posterior.

    :param family: the likelihood of its rankings; None for a cluster of points.
    :param label: label of the cluster in the reference partition.
    :param presence: share of the draws in which the cluster is found again
        (:func:`~numpyro_rankings.posterior.partitions.found_again`).
    :param matched: share of the draws in which a cluster is matched to it
        (:func:`~numpyro_rankings.posterior.partitions.match_clusters`), of which all further
        numbers are.
    :param size: mean number of members over the draws in which one is matched.
    :param size_interval: ``(low, high)``.
    :param members: indices of its members in the reference partition.
    :param interval_over_all: the interval of the size over all draws, 0 in those in which none is
        matched.
    """

    noun: ClassVar[str] = "point"  # what its members are called
    family: "RankingFamily | None"
    label: int
    presence: float
    matched: float
    size: float
    size_interval: tuple[float, float]
    members: np.ndarray
    interval_over_all: tuple[float, float]

    @property
    def mean_size(self) -> float:
        """Mean size over all draws, 0 in those in which none is matched."""
        return self.matched * self.size

    @classmethod
    def describes(cls, *profiles: object) -> bool:
        """Return whether all that is given are profiles of this class."""
        return all(isinstance(profile, cls) for profile in profiles)

    @classmethod
    def check(cls, profile: object) -> None:
        """Raise a TypeError unless it is a profile of this class."""
        if not cls.describes(profile):
            raise TypeError(f"profile must be a {cls.__name__}, got {type(profile).__name__}")

    def _replace(self, **changes: object) -> Self:
        """Return the profile with other values of some fields."""
        return type(self)(**{**vars(self), **changes})


@dataclass(frozen=True, kw_only=True, eq=False)
class RankingProfile(Profile):
    """Posterior summary of one cluster of rankings, or of the only population.

    The first parameters are those of every cluster.

    :param consensus: names of the items in the order that describes the cluster best, best first.
    :param consensus_ordering: the same as item indices, shape ``(n,)``.
    :param entropy: mean entropy of the cluster, as its likelihood measures it; NaN if that does
        not say.
    :param agreement: 0 if the members rank at random, 1 if all rank alike.
    :param levels: the items by what the members want, best first: of those who order an item of one
        level and one of a later level, whichever these are, at least 60% put the former first. Each
        ranking counts as a member as often as it is in the cluster over the draws. Within a level
        the items are in the order of the consensus.
    :param clear_pairs: names of two items of one level of which at least 60% of the members who
        order the two put the first one first, the clearest pair of each level first.
    :param certain: the consensus, cut where at least 95% of the draws agree on it
        (:func:`~numpyro_rankings.posterior.certain_levels`).
    """

    noun: ClassVar[str] = "ranking"
    family: "RankingFamily"
    consensus: tuple[str, ...]
    consensus_ordering: np.ndarray
    entropy: float
    agreement: float
    levels: tuple[tuple[str, ...], ...]
    clear_pairs: tuple[tuple[str, str], ...] = ()
    certain: tuple[tuple[str, ...], ...] = ()

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items that it describes, in item order."""
        return in_item_order(self.consensus, self.consensus_ordering)

    def columns(self) -> dict[str, str]:
        """Return the columns of ``clusters.csv`` that not all clusters of rankings have."""
        return {}

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return the profile with other names of the items.

        :param names: the new ones by the old ones.
        """
        return self._replace(
            consensus=_renamed(self.consensus, names),
            levels=tuple(_renamed(level, names) for level in self.levels),
            clear_pairs=tuple((names[a], names[b]) for a, b in self.clear_pairs),
            certain=tuple(_renamed(level, names) for level in self.certain),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class CenterProfile(RankingProfile):
    """Posterior summary of one cluster that has an ordering of all items in each draw.

    The first parameters are those of every cluster of rankings.

    :param map_consensus: names of the items in the ordering drawn most often.
    :param map_probability: share of the draws with that ordering.
    :param rank_mean: mean rank of each item, 1 = best, in item order, shape ``(n,)``.
    :param rank_interval: shape ``(n, 2)``.
    """

    map_consensus: tuple[str, ...]
    map_probability: float
    rank_mean: np.ndarray
    rank_interval: np.ndarray

    def columns(self) -> dict[str, str]:
        return {
            "most_frequent_center": " > ".join(self.map_consensus),
            "most_frequent_probability": f"{self.map_probability:.4g}",
        }

    def renamed(self, names: Mapping[str, str]) -> Self:
        return super().renamed(names)._replace(map_consensus=_renamed(self.map_consensus, names))


class RankingFamily(ABC):
    """A likelihood of rankings given the parameters of clusters, without a state of its own.

    Draws, summaries, tables and figures ask it and nothing else in what likelihoods differ.

    - **name** - as the command line has it.
    - **parameters** - the names of the sites with the parameters of the clusters, each (…, C, …).
    - **title** - as tables and pages have it.
    - **sections** - of the page: those that not all likelihoods have.
    """

    name: str
    parameters: tuple[str, ...]
    title: str
    sections: tuple[str, ...] = ("orders",)

    # -- likelihood ----------------------------------------------------------------------------

    # -- fit -----------------------------------------------------------------------------------

    # -- profiles and tables -------------------------------------------------------------------

    def orderings(self, parameters: Parameters) -> np.ndarray:
        """Return the order of the items in each draw, best first, (D, n): by default the center."""
        return parameters["center"]

    def consensus(self, parameters: Parameters) -> np.ndarray:
        """Return the ordering that describes a cluster best, int32 (n,)."""
        return cp_consensus(self.orderings(parameters))

    def entropies(self, parameters: Parameters) -> np.ndarray | None:
        """Return the entropy of a cluster in each draw, (D,); None if there is no formula."""
        return None

    def largest_entropy(self, parameters: Parameters) -> float:
        """Return the entropy of clusters whose members rank at random."""
        return 1.0

    def profile(self, common: RankingProfile, parameters: Parameters) -> RankingProfile:
        """Return the profile of a cluster, with what is known of its parameters.

        :param common: what the profiles of all likelihoods say.
        """
        orderings, names = self.orderings(parameters), common.items
        likeliest, probability = map_consensus(orderings)
        ranks = np.argsort(orderings, axis=-1) + 1
        return CenterProfile(
            **vars(common),
            map_consensus=tuple(names[i] for i in likeliest),
            map_probability=probability,
            rank_mean=ranks.mean(0),
            rank_interval=np.quantile(ranks, INTERVAL, axis=0, method="nearest").T,
        )

    def columns_of_bloc(self, bloc: Mapping[str, Any], items: Sequence[str]) -> dict[str, str]:
        """Return the columns of ``blocs.csv`` that not all blocs have.

        :param bloc: the fields of a bloc by name.
        :param items: names of the items that it describes, in item order.
        """
        return {}

    # -- figures -------------------------------------------------------------------------------

    def figures(self, profiles: Sequence[RankingProfile]) -> "Sequence[tuple[Axes, str]]":
        """Return further figures of the clusters for the page, each with its caption.

        :param profiles: of the clusters that hold.
        """
        return ()


_families: list[RankingFamily] = []


def register_family(family: RankingFamily) -> None:
    """Let draws with the parameters of a family be known as its draws."""
    _families.append(family)


def family_of(sites: Collection[str]) -> RankingFamily | None:
    """Return the family whose parameters are among the sites of draws, None if there is none.

    Of several it is the one with the most parameters.
    """
    known = [family for family in _families if set(family.parameters) <= set(sites)]
    return max(known, key=lambda family: len(family.parameters), default=None)


def _renamed(items: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(names[item] for item in items)


def in_item_order(names: Sequence[str], ordering: np.ndarray) -> tuple[str, ...]:
    """Return the names of items, which are in the order of some consensus, in item order."""
    return tuple(names[place] for place in np.argsort(ordering))


def interval_of(values: np.ndarray) -> tuple[float, float]:
    """Return the interval that holds 90% of the values."""
    low, high = np.quantile(values, INTERVAL)
    return float(low), float(high)


def columns_with_interval(name: str, mean: float, interval: Sequence[float]) -> dict[str, str]:
    """Return the columns of a table with a mean and its interval."""
    low, high = interval
    return {name: f"{mean:.6g}", f"{name}_low": f"{low:.6g}", f"{name}_high": f"{high:.6g}"}
