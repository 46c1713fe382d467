"""What a likelihood of rankings knows, and which one draws are of."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

import numpy as np

from numpyro_rankings.families.weighted_fit import WeightedFit
from numpyro_rankings.rankings import Rankings


class RankingFamily(ABC):
    """A likelihood of rankings given the parameters of clusters, without a state of its own.

    Draws, summaries, tables and figures ask it and nothing else in what likelihoods differ.

    - **name** - as the command line has it.
    - **parameters** - the names of the sites with the parameters of the clusters, each (…, C, …).
    """

    name: str
    parameters: tuple[str, ...]

    # -- likelihood ----------------------------------------------------------------------------

    # -- fit -----------------------------------------------------------------------------------

    fit_cost: float  # of a choice in ``fitter``, in units of one of a Mallows model
    scalars: tuple[str, ...] = ()  # those of the parameters that are one number for each cluster

    @abstractmethod
    def fitter(self, rankings: Rankings) -> WeightedFit:
        """Return what fits components to these rankings, each weighted."""

    @abstractmethod
    def fit_bytes(self, rankings: Rankings, num_components: int) -> float:
        """Return about how much memory ``fitter`` takes for so many components."""

    @abstractmethod
    def check_parameters(self, sites: Mapping[str, np.ndarray], rankings: Rankings) -> None:
        """Refuse parameters that no kernel draws, of clusters in use, each site (clusters, …).

        :raises ValueError: if there are any.
        """

    # -- profiles and tables -------------------------------------------------------------------

    # -- figures -------------------------------------------------------------------------------


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


def check_not_negative(sites: Mapping[str, np.ndarray], *names: str) -> None:
    """Raise an error if a value of these sites is negative or not finite."""
    for name in names:
        bad = ~((sites[name] >= 0) & (sites[name] < np.inf))
        if bad.any():
            raise ValueError(f"{name} must be finite and not negative, got {sites[name][bad][0]}")


def num_sets(items: int) -> float:
    """Return the number of sets of items, as far as it matters: there are fewer rows than 2^64."""
    return 2.0 ** min(items, 64)
