"""What a likelihood of rankings knows, and which one draws are of."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
from jax import Array

from numpyro_rankings.families.weighted_fit import WeightedFit
from numpyro_rankings.rankings import Rankings

Arrays = Mapping[str, np.ndarray]
Axes = Mapping[str, tuple[str, ...]]


class RankingFamily(ABC):
    """A likelihood of rankings given the parameters of clusters, without a state of its own.

    Draws, summaries, tables and figures ask it and nothing else in what likelihoods differ. A new
    family defines ``name``, ``parameters``, ``axes``, :meth:`log_rows` and :meth:`replicate`; the
    rest has defaults.

    - **name** - as the command line has it.
    - **parameters** - the names of the sites with the parameters of the clusters, each (…, C, …),
      or (…) of a single population without labels. The first ends with an axis of items or places.
    - **of_clusters** - the names of further sites with a value for each cluster, (…, C).
    - **axes** - the names of the axes of sites, after that of the clusters, for ArviZ.
    - **partitions** - the priors of partitions that the kernels of the family have.
    - **scale** - the site with the concentration of this prior.
    - **has_marginal** - whether :meth:`log_new_cluster` is defined, so that the parameters of empty
      clusters do not matter. Without it they are draws from the prior.
    - **new_cluster_sites** - the names of further sites that :meth:`log_new_cluster` needs.
    - **cost_of_new_cluster** - the time that it takes for a ranking, in that of one cluster.
    - **matches_items** - whether new rankings can be matched to the fitted items by name.
    - **has_labels** - whether draws of a single population have labels too.
    - **leaves_out_unused** - whether ArviZ data leave out slots that are empty in all draws.
    - **needs_reference** - whether :meth:`quantities` needs the Borda order of the rankings.
    - **block_variables** - those of :meth:`variables` that draws of a block get too.
    - **has_fit** - whether :meth:`fitter` is defined, without which there are no blocs.
    - **fit_cost** - the time that a choice takes there, in that of a Mallows model.
    """

    name: str
    parameters: tuple[str, ...]

    # -- likelihood ----------------------------------------------------------------------------

    of_clusters: tuple[str, ...] = ()
    axes: ClassVar[Axes] = MappingProxyType({})
    partitions: tuple[Literal["components", "process"], ...] = ("components", "process")
    scale = "alpha"
    has_marginal = False
    new_cluster_sites: tuple[str, ...] = ()
    cost_of_new_cluster = 1
    matches_items = False
    has_labels = True
    leaves_out_unused = False
    needs_reference = False
    block_variables: tuple[str, ...] = ()

    @abstractmethod
    def log_rows(self, draw: Mapping[str, Array], orderings: Array, offered: Array | None) -> Array:
        """Return the log probability of lists in every cluster of one draw, (C, rows).

        :param draw: the parameters, each (C, …), or without the axis of the clusters.
        :param orderings: lists, padded with -1, (rows, T).
        :param offered: choice sets, (rows, items); None if all items were offered.
        """

    @abstractmethod
    def replicate(
        self,
        key: Array,
        draw: Mapping[str, Array],
        labels: Array,
        offered: Array | None,
        length: int,
    ) -> Array:
        """Draw a list of at least this length, if it can be, for each label, (N, …).

        :param labels: (N,).
        :param offered: choice sets, (N, items); None if all items were offered.
        """

    def log_new_cluster(
        self,
        key: Array,
        draw: Mapping[str, Array],
        orderings: Array,
        offered: Array | None,
        num_new_clusters: int,
    ) -> Array:
        """Return the log probability of each list in a new cluster, (rows,).

        :param num_new_clusters: the number of clusters that are drawn from the prior, if there is
            no closed form.
        """
        raise NotImplementedError(f"{self.name} has no marginal likelihood of a ranking")

    def takes_new_items(self, sites: Collection[str]) -> bool:
        """Whether lists with items that no fitted ranking lists have a probability."""
        return False

    def log_rows_with_new_items(
        self, key: Array, draw: Mapping[str, Array], orderings: Array
    ) -> Array:
        """Return the log probability of lists in which n stands for an item that is new, (rows,).

        :param draw: of a single population.
        """
        raise NotImplementedError(f"{self.name} has no lists with new items")

    def described(self, rankings: Rankings) -> Rankings:
        """Return the rankings restricted to the items that the draws describe."""
        return rankings

    def num_items(self, samples: Mapping[str, Any]) -> int:
        """Return the number of items that samples describe."""
        return np.shape(samples[self.parameters[0]])[-1]

    def most_listed(self, samples: Arrays) -> int:
        """Return the length of the longest list that has a probability."""
        return self.num_items(samples)

    def quantities(
        self, samples: Arrays, sizes: np.ndarray | None, rankings: Rankings
    ) -> dict[str, np.ndarray]:
        """Return quantities that do not depend on the labels, (chains, draws) or with an axis more.

        :param samples: each (chains, draws, …).
        :param sizes: of the clusters, (chains, draws, C); None for a single population.
        :param rankings: that were fitted.
        """
        return {}

    def variables(
        self, samples: Arrays, sizes: np.ndarray | None
    ) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """Return the variables that ArviZ data have instead of the parameters, or beside them.

        Empty clusters are marked, with NaN or, where the values are integers, with -1.

        :param samples: each (chains, draws, …).
        :param sizes: of the clusters, (chains, draws, C); None without labels.
        :return: axes after that of the clusters, and values, by name.
        """
        if sizes is None:
            return {}
        found = {}
        for name in self.parameters:
            values = np.asarray(samples[name])
            empty = (sizes == 0).reshape(*sizes.shape, *[1] * (values.ndim - sizes.ndim))
            missing = -1 if values.dtype.kind in "iu" else np.nan
            found[name] = self.axes.get(name, ()), np.where(empty, missing, values)
        return found

    def fill_empty(self, samples: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return samples of ArviZ data with valid parameters where empty clusters are marked."""
        return samples

    # -- fit -----------------------------------------------------------------------------------

    has_fit = False
    fit_cost = 1.0

    def fitter(self, rankings: Rankings) -> WeightedFit:
        """Return what fits components to these rankings, each weighted."""
        raise NotImplementedError(f"{self.name} has no weighted fit")

    def fit_bytes(self, rankings: Rankings, num_components: int) -> float:
        """Return about how much memory :meth:`fitter` takes for so many components."""
        return 0.0

    def check_parameters(self, sites: Arrays, rankings: Rankings) -> None:
        """Refuse parameters that no kernel draws, of clusters in use, each site (clusters, …).

        :raises ValueError: if there are any.
        """
        for name in self.parameters:
            if not np.isfinite(sites[name]).all():
                raise ValueError(f"{name} must be finite")

    # -- profiles and tables -------------------------------------------------------------------

    # -- figures -------------------------------------------------------------------------------


_families: list[RankingFamily] = []


def register_family(family: RankingFamily) -> None:
    """Let draws with the parameters of a family be known as its draws."""
    _families.append(family)


def sites_of_clusters() -> set[str]:
    """Return the names of the sites that have values for each cluster, of all families."""
    names = ((*family.parameters, *family.of_clusters) for family in _families)
    return {"cluster_sizes", *chain.from_iterable(names)}


def family_of(sites: Collection[str]) -> RankingFamily | None:
    """Return the family whose parameters are among the sites of draws, None if there is none.

    Of several it is the one with the most parameters.
    """
    known = [family for family in _families if set(family.parameters) <= set(sites)]
    return max(known, key=lambda family: len(family.parameters), default=None)


def check_not_negative(sites: Arrays, *names: str) -> None:
    """Raise an error if a value of these sites is negative or not finite."""
    for name in names:
        bad = ~((sites[name] >= 0) & (sites[name] < np.inf))
        if bad.any():
            raise ValueError(f"{name} must be finite and not negative, got {sites[name][bad][0]}")


def num_sets(items: int) -> float:
    """Return the number of sets of items, as far as it matters: there are fewer rows than 2^64."""
    return 2.0 ** min(items, 64)
