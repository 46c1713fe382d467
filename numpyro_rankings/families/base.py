"""What a likelihood of rankings knows, and which one draws are of."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from jax import Array

from numpyro_rankings.families.scored import ScoredOrders
from numpyro_rankings.families.weighted_fit import WeightedFit
from numpyro_rankings.ops.orderings import cp_consensus, map_consensus
from numpyro_rankings.rankings import Comparisons, Orders, PartialOrders, Rankings
from numpyro_rankings.rankings.rows import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INTERVAL = (0.05, 0.95)  # quantiles of the intervals of profiles

Arrays = Mapping[str, np.ndarray]
PartitionPriors = tuple[Literal["components", "process"], ...]
SiteAxes = Mapping[str, tuple[str, ...]]
RowsT = TypeVar("RowsT", Rankings, PartialOrders, Comparisons, Rankings | Orders)
OrdersT = TypeVar("OrdersT", PartialOrders, Comparisons, Orders)


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
    :param level: sets of neighbours in the consensus that are level: of each two of them one is
        before the other in 25% to 75% of the draws, so that their order in the consensus says
        little.
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
    level: tuple[tuple[str, ...], ...] = ()

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items that it describes, in item order."""
        return in_item_order(self.consensus, self.consensus_ordering)

    def columns(self) -> dict[str, str]:
        """Return the columns of ``clusters.csv`` that not all clusters of rankings have."""
        return {}

    def strength(self) -> str:
        """Say by an interval how strong the order of the cluster is; nothing if it has none."""
        return ""

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return the profile with other names of the items.

        :param names: the new ones by the old ones.
        """
        return self._replace(
            consensus=_renamed(self.consensus, names),
            levels=tuple(_renamed(level, names) for level in self.levels),
            clear_pairs=tuple((names[a], names[b]) for a, b in self.clear_pairs),
            certain=tuple(_renamed(level, names) for level in self.certain),
            level=tuple(_renamed(items, names) for items in self.level),
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
    - **scores_orders** - whether :meth:`log_orders` is defined, and with **has_marginal** also
      :meth:`log_new_cluster_of_orders`.
    - **continues_lists** - whether :meth:`continued` is defined.
    - **takes_choice_sets** - whether judges may have been offered some of the items only.
    - **matches_items** - whether new rankings can be matched to the fitted items by name.
    - **has_pool** - whether there are further items, which no ranking lists.
    - **has_labels** - whether draws of a single population have labels too.
    - **leaves_out_unused** - whether ArviZ data leave out slots that are empty in all draws.
    - **needs_reference** - whether :meth:`quantities` needs the Borda order of the rankings.
    - **block_variables** - those of :meth:`variables` that draws of a block get too.
    - **has_fit** - whether :meth:`fitter` is defined, without which there are no blocs.
    - **fit_cost** - the time that a choice takes there, in that of a Mallows model.
    - **title** - as tables and pages have it.
    - **sections** - of the page: those that not all likelihoods have.
    """

    name: str
    parameters: tuple[str, ...]
    title: str
    sections: tuple[str, ...] = ("orders",)

    # -- likelihood ----------------------------------------------------------------------------

    of_clusters: tuple[str, ...] = ()
    axes: ClassVar[SiteAxes] = MappingProxyType({})
    partitions: ClassVar[PartitionPriors] = ("components", "process")
    scale = "alpha"
    has_marginal = False
    new_cluster_sites: tuple[str, ...] = ()
    cost_of_new_cluster = 1
    scores_orders = False
    continues_lists = False
    takes_choice_sets = False
    matches_items = False
    has_pool = False
    has_labels = True
    leaves_out_unused = False
    needs_reference = False
    block_variables: tuple[str, ...] = ()

    @property
    def with_components(self) -> str:
        """The name of the family with the same parameters in a fixed number of clusters."""
        return self.name

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

    def continued(
        self,
        key: Array,
        draw: Mapping[str, Array],
        labels: Array,
        lists: Array,
        offered: Array | None,
    ) -> Array:
        """Draw what follows in each list, given its label, (N, items), padded with -1.

        :param labels: (N,); C stands for a new cluster, if :meth:`log_new_cluster` is defined.
        :param lists: padded with -1, (N, T). Without **takes_choice_sets** they are empty where
            choice sets are given.
        :param offered: choice sets, (N, items); None if all items were offered.
        """
        raise NotImplementedError(f"{self.name} does not continue lists")

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

    def prepared(self, orders: OrdersT) -> OrdersT:
        """Return partial orders, or comparisons, of the items of the draws as they are scored."""
        return orders

    def log_orders(self, draw: Mapping[str, Array], orders: ScoredOrders) -> Array:
        """Return the log probability of partial orders in every cluster of one draw, (C, rows).

        :param draw: as for :meth:`log_rows`.
        """
        raise NotImplementedError(f"{self.name} has no likelihood of partial orders")

    def log_new_cluster_of_orders(
        self, key: Array, draw: Mapping[str, Array], orders: ScoredOrders, num_new_clusters: int
    ) -> Array:
        """As :meth:`log_new_cluster`, of partial orders."""
        raise NotImplementedError(f"{self.name} has no marginal likelihood of partial orders")

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

    def described(self, rankings: RowsT) -> RowsT:
        """Return rankings, or partial orders, restricted to the items that the draws describe."""
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

        They have an R-hat beside the log joint and the sizes; by default there are none.

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
        """Return samples of ArviZ data with valid parameters where empty clusters are marked.

        By default they are those of the first cluster that is in use in the draw.
        """
        if "cluster_sizes" not in samples:
            return samples
        is_empty, filled = samples["cluster_sizes"] == 0, dict(samples)
        for name in self.parameters:
            values = samples[name]
            shape = is_empty.shape + (1,) * (values.ndim - is_empty.ndim)
            first = (~is_empty).argmax(-1, keepdims=True).reshape(*shape[:2], 1, *shape[3:])
            in_use = np.take_along_axis(values, first, axis=2)
            filled[name] = np.where(is_empty.reshape(shape), in_use, values)
        return filled

    # -- fit -----------------------------------------------------------------------------------

    has_fit = False
    fit_cost = 1.0

    def fitter(self, rankings: Rankings) -> WeightedFit:
        """Return what fits components to these rankings, each weighted."""
        raise NotImplementedError(f"{self.name} has no weighted fit")

    def fit_bytes(self, rankings: Rows, num_components: int) -> float:
        """Return about how much memory :meth:`fitter` takes for so many components."""
        return 0.0

    def check_parameters(self, sites: Arrays, rankings: Rows) -> None:
        """Refuse parameters that no kernel draws, of clusters in use, each site (clusters, …).

        :raises ValueError: if there are any.
        """
        for name in self.parameters:
            if not np.isfinite(sites[name]).all():
                raise ValueError(f"{name} must be finite")

    # -- profiles and tables -------------------------------------------------------------------
    # Parameters are those of one cluster in the draws that have it, (D, …).

    def orderings(self, parameters: Arrays) -> np.ndarray:
        """Return the order of the items in each draw, best first, (D, n): by default the center."""
        return parameters["center"]

    def consensus(self, parameters: Arrays) -> np.ndarray:
        """Return the ordering that describes a cluster best, int32 (n,)."""
        return cp_consensus(self.orderings(parameters))

    def entropies(self, parameters: Arrays) -> tuple[np.ndarray, float] | None:
        """Return the entropy in each draw, (D,), and that of members who rank at random.

        By default it is None: there is no formula, and agreement is that on pairs of items.
        """
        return None

    def profile(self, common: RankingProfile, parameters: Arrays) -> RankingProfile:
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

    def columns_of_bloc(
        self, parameters: Mapping[str, Any], items: Sequence[str]
    ) -> dict[str, str]:
        """Return the columns of ``blocs.csv`` that not all blocs have.

        :param parameters: of the bloc, as :meth:`fitter` describes it.
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
    """Let draws with the parameters of a family be known as its draws.

    :raises ValueError: if another family has its name, or the same names of parameters.
    """
    for other in _families:
        if other.name == family.name:
            raise ValueError(f"there is a family {family.name!r} already")
        if {*other.parameters} == {*family.parameters}:
            raise ValueError(
                f"the family {other.name!r} has the parameters {', '.join(other.parameters)} too: "
                "draws are known by the names of their parameters"
            )
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
