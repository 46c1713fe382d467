"""What draws are: one record of them, made once, that the summaries take."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpyro.infer import MCMC
from numpyro.infer.mcmc import MCMCKernel

from numpyro_rankings.components.family import Family
from numpyro_rankings.families import RankingFamily, family_of
from numpyro_rankings.infer.base import GibbsKernel, find_rankings
from numpyro_rankings.infer.ddcrp.base import LinkGibbs
from numpyro_rankings.infer.latent_orders import find_orders
from numpyro_rankings.infer.partition.base import PartitionKernel
from numpyro_rankings.posterior.diagnostics import NUM_COMPONENTS, as_dataset
from numpyro_rankings.rankings import (
    JudgeCovariates,
    Orders,
    PartialOrders,
    Rankings,
    check_rows,
    find_covariates,
)

Partition = Literal["population", "components", "process", "links", "unknown"]
NumComponents = int | Literal["auto"] | None
Samples = dict[str, np.ndarray]

KIND_OF_DATA = "data"  # attribute of a posterior for ArviZ

# what an evidence is computed from, (chains, draws, rungs)
LADDER_FIELDS = (
    "rung_power",
    "rung_effective_size",
    "rung_share_concentration",
    "rung_log_likelihood",
    "rung_log_shares",
)


class BlockFacts(NamedTuple):
    """What its draws do not say of a block, in types of JSON, as in :class:`Draws`."""

    kernel: str
    sites: dict[str, str]
    judge_sites: tuple[str, ...]
    num_components: int | None

    @classmethod
    def of(cls, block: GibbsKernel) -> "BlockFacts":
        """Return those of a kernel of this package."""
        return cls(
            type(block).__name__, block.sites, tuple(block.judge_sites), num_components_of(block)
        )


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of a model of this package, with all that is known of them.

    It is made by :meth:`of`, from whatever holds the draws, and everything that summarises draws
    takes it. Its fields:

    - **samples** - each (chains, draws, …), by the kernel's own names of the sites.
    - **family** - the likelihood of the rankings; None for partitions, whose parameters are
      integrated out.
    - **partition** - the prior of the labels: ``"population"`` for one cluster, ``"components"``
      for a finite mixture, ``"process"``, ``"links"`` of a distance dependent process, or
      ``"unknown"`` where samples alone do not tell.
    - **num_components** - of a finite mixture, which one population is too; otherwise None.
    - **rankings** - that were fitted, of the items that the draws describe; None if not given.
    - **items** - names of these items, None if unknown.
    - **kernel** - the name of its class, empty if unknown.
    - **sites** - for a block of :class:`numpyro.infer.Gibbs`: the names of the kernel's sites in
      the model, by its own names; None for a kernel by itself.
    - **judge_sites** - the observed sites of the model that depend on the label of each judge.
    - **component_family** - of a kernel of partitions, if known.
    - **lacks_empty** - whether the parameters of empty clusters are lost, as in ArviZ data.
    - **orders** - the partial orders, or comparisons, that were fitted, of which **rankings** then
      are some orderings, that agree with partial orders; None if rankings were fitted.
    - **data** - what was fitted: ``"rankings"``, ``"partial orders"`` or ``"comparisons"``; None if
      it is not known.
    - **ladder** - of :class:`~numpyro_rankings.infer.TemperedMixture`: the fields of its state that
      :func:`~numpyro_rankings.log_evidence` needs, each (chains, draws, rungs). Empty of other
      kernels, and where only the samples are given.
    - **covariates** - of the judges, on which the shares depend; None without any, and where only
      the samples are given or a store is read.

    .. doctest::

       >>> from numpyro_rankings import Draws
       >>> weights = [[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]]  # as PlackettLuceGibbs().get_samples()
       >>> draws = Draws.of({"weights": weights})
       >>> draws.family.name, draws.partition, draws.num_items
       ('plackett-luce', 'population', 3)
       >>> draws.num_chains, draws.num_draws
       (1, 2)
    """

    samples: Samples
    family: RankingFamily | None
    partition: Partition
    num_components: int | None
    rankings: Rankings | None = None
    items: tuple[str, ...] | None = None
    kernel: str = ""
    sites: Mapping[str, str] | None = None
    judge_sites: tuple[str, ...] = ()
    component_family: Family | None = None
    lacks_empty: bool = False
    orders: Orders | None = None
    data: str | None = None
    ladder: Mapping[str, np.ndarray] = field(default_factory=dict)
    covariates: JudgeCovariates | None = None

    @classmethod
    def of(
        cls,
        source: Any,
        rankings: Rankings | Orders | None = None,
        num_components: NumComponents = "auto",
        sites: Mapping[str, str] | None = None,
    ) -> "Draws":
        """Return the draws that a source holds.

        :param source: a :class:`~numpyro_rankings.Run`, what :func:`~numpyro_rankings.open_run`
            returns, a :class:`numpyro.infer.MCMC` that has run, of a kernel of this package or of
            :class:`numpyro.infer.Gibbs` with one as a block; what
            :func:`~numpyro_rankings.to_inference_data` makes of it; ``mcmc.get_samples()``, grouped
            by chain or not; or draws.
        :param rankings: the rankings, or partial orders, that were fitted; a run and an MCMC know
            them.
        :param num_components: for samples, which do not hold it: that of the kernel, None for a
            process. By default it is found out where the samples tell it.
        :param sites: for samples of a model in which the kernel is a block: its ``sites``.
        :raises TypeError: if the source is anything else.
        :raises ValueError: if there are no draws, if they are of other rankings, or if an argument
            contradicts what the source knows.
        """
        if isinstance(source, Draws):
            draws = source
        elif hasattr(source, "__contains__") and "posterior" in source:
            draws = cls._of_posterior(as_dataset(source["posterior"]))
            if "sample_stats" in source:
                draws = replace(draws, ladder=_ladder_of(as_dataset(source["sample_stats"])))
        elif isinstance(source, Mapping):
            named = named_as_by_kernel(source, sites)
            return cls._of_samples(named, num_components, sites).with_rankings(rankings)
        else:
            draws = cls._of_run(source)
        if sites is not None:
            raise ValueError("a run knows the names of its sites and its family: leave them out")
        if num_components not in ("auto", draws.num_components):
            raise ValueError(
                f"num_components={num_components} was not fitted, but "
                f"{_in_words(draws.num_components)}: leave it out"
            )
        return draws.with_rankings(rankings)

    @classmethod
    def of_kernel(
        cls,
        samples: Mapping[str, Any],
        num_components: int | None,
        rankings: Rankings | None = None,
        block: BlockFacts | None = None,
        kernel: str = "",
    ) -> "Draws":
        """Return draws by chain of a kernel of which only this is known; nothing is checked.

        Samples of a block have the names of the model. Rankings are of the items of the draws.
        """
        named = {name: np.asarray(x) for name, x in samples.items()}
        if block is not None:
            named = with_sizes({name: named[site] for name, site in block.sites.items()})
        family = family_of(named)
        partition, number = _partition_of(named, family, num_components)
        items = None if rankings is None else tuple(map(str, rankings.items))
        draws = cls(named, family, partition, number, rankings, items, kernel)
        if block is None:
            return draws
        kernel, sites, judges = block.kernel, block.sites, block.judge_sites
        return replace(draws, kernel=kernel, sites=sites, judge_sites=judges)

    @classmethod
    def _of_run(cls, run: Any) -> "Draws":
        """Return those of a run, a stored one, or an MCMC."""
        if hasattr(run, "as_draws"):
            return run.as_draws()
        mcmc = run.as_mcmc() if hasattr(run, "as_mcmc") else run
        if not isinstance(mcmc, MCMC):
            raise TypeError(
                "samples must be a dictionary as returned by mcmc.get_samples(), a run or an MCMC; "
                f"got {type(run).__name__}"
            )
        kernel: Any = mcmc.sampler
        own = kernel if isinstance(kernel, GibbsKernel) else find_block(kernel)
        samples = mcmc.get_samples(group_by_chain=True)
        if own is None:
            return cls._of_samples(samples, "auto", None)
        block = None if own is kernel else BlockFacts.of(own)
        name, number = type(own).__name__, num_components_of(own)
        draws = cls.of_kernel(samples, number, None, block, name)
        fitted = fitted_rankings(own, mcmc._args, mcmc._kwargs)
        draws = replace(
            draws,
            component_family=None if fitted else getattr(own, "family", None),
            ladder=_ladder_of(mcmc.get_extra_fields(group_by_chain=True)),
            covariates=find_covariates(mcmc._args, mcmc._kwargs),
        )
        return draws.with_rankings(fitted)

    @classmethod
    def _of_posterior(cls, posterior: Any) -> "Draws":
        """Return those of ArviZ data, with some parameters of clusters that are empty in a draw."""
        samples = {str(name): x.values for name, x in posterior.data_vars.items()}
        sites = json.loads(posterior.attrs["sites"]) if "sites" in posterior.attrs else None
        if sites is not None:
            samples = with_sizes({k: samples[site] for k, site in sites.items() if site in samples})
        check_draws(samples)
        family = family_of(samples)
        lacks_empty = False
        if family is not None and sites is None:
            lacks_empty = any(np.isnan(samples[name]).any() for name in family.parameters)
            samples = family.fill_empty(samples)
            if "shares" in samples:  # components that are empty in all draws are left out
                lacks_empty |= bool(np.any(samples["shares"].sum(-1) < 1.0 - 1e-3))
        kernel = str(posterior.attrs.get("kernel", ""))
        known = posterior.attrs.get(NUM_COMPONENTS)
        # draws of a process have no such number
        asked: NumComponents = int(known) if known is not None else None if kernel else "auto"
        partition, number = _partition_of(samples, family, asked)
        items = tuple(map(str, posterior["item"].values)) if "item" in posterior.coords else None
        draws = cls(samples, family, partition, number, None, items, kernel, sites)
        known_of_data = posterior.attrs.get(KIND_OF_DATA)
        covariates = JudgeCovariates.from_coords(posterior.coords)
        return replace(draws, lacks_empty=lacks_empty, data=known_of_data, covariates=covariates)

    @classmethod
    def _of_samples(
        cls,
        samples: Mapping[str, Any],
        num_components: NumComponents,
        sites: Mapping[str, str] | None,
    ) -> "Draws":
        """Return those of a dictionary, grouped by chain or not."""
        check_draws(samples)
        arrays = {str(name): np.asarray(x) for name, x in samples.items()}
        family = family_of(arrays)
        if _is_flat(arrays, family):
            arrays = {name: x[None] for name, x in arrays.items()}
        partition, number = _partition_of(arrays, family, num_components)
        slots = _num_slots(arrays, family)
        is_open = family is None or len(family.partitions) > 1  # else the draws say it themselves
        if is_open and isinstance(num_components, int) and slots not in (None, num_components):
            raise ValueError(f"the draws are of {slots} components, not of {num_components}")
        return cls(arrays, family, partition, number, sites=sites)

    # -- what they are of ----------------------------------------------------------------------

    @property
    def is_mixture(self) -> bool:
        """Whether there may be several clusters."""
        return self.partition != "population"

    @property
    def labels(self) -> np.ndarray | None:
        """The labels, (chains, draws, N); None of a population without any."""
        return self.samples.get("assignments")

    @property
    def sizes(self) -> np.ndarray | None:
        """The sizes of the clusters, (chains, draws, C), None if the samples do not have them."""
        return self.samples.get("cluster_sizes")

    @property
    def shares(self) -> np.ndarray | None:
        """The shares of the components, (chains, draws, C), if the kernel draws them."""
        has_shares = self.is_by_itself and self.sizes is not None
        return self.samples.get("shares") if has_shares else None

    @property
    def num_chains(self) -> int:
        """The number of chains."""
        return self._lead[0]

    @property
    def num_draws(self) -> int:
        """The number of draws of each chain."""
        return self._lead[1]

    @property
    def num_slots(self) -> int | None:
        """The number of slots for clusters, None if there are no parameters of clusters."""
        return _num_slots(self.samples, self.family)

    @property
    def num_items(self) -> int | None:
        """The number of items that the draws describe, None if they describe none."""
        return None if self.family is None else self.family.num_items(self.samples)

    @property
    def num_points(self) -> int | None:
        """The number of rankings or other points, None if it is unknown."""
        if self.labels is not None:
            return self.labels.shape[-1]
        return None if self.rankings is None else self.rankings.num_rankings

    @property
    def fitted(self) -> Rankings:
        """The rankings that were fitted.

        :raises TypeError: if they were not given, or if these were partial orders or comparisons.
        """
        if self.orders is not None:
            raise TypeError(
                f"this needs the rankings of the judges, and the draws are of {self.data}, which "
                "Draws.said has"
            )
        if self.rankings is None:
            raise TypeError("the draws have no rankings: use Draws.of(…, rankings)")
        return self.rankings

    @property
    def said(self) -> Rankings | PartialOrders:
        """What the judges said: the rankings, or the partial orders, that were fitted.

        :raises TypeError: if they were not given, or if these were comparisons.
        """
        check_rows(self.given)
        return cast(Rankings | PartialOrders, self.given)

    @property
    def given(self) -> Rankings | Orders:
        """The rankings, partial orders or comparisons that were fitted.

        :raises TypeError: if they were not given.
        """
        return self.fitted if self.orders is None else self.orders

    @property
    def stand_in(self) -> Rankings:
        """The rankings that were fitted, or some that agree with partial orders.

        They are for the names of the items, and for an order to compare centers to.
        """
        return self.fitted if self.orders is None or self.rankings is None else self.rankings

    @property
    def _lead(self) -> tuple[int, ...]:
        return np.shape(next(iter(self.samples.values())))[:2]

    @property
    def is_by_itself(self) -> bool:
        """Whether the draws are those of a kernel by itself, not of a block of a model."""
        return self.sites is None and "log_joint" in self.samples

    # -- other views ---------------------------------------------------------------------------

    def flat(self) -> Samples:
        """Return the samples with the chains concatenated, each (D, …)."""
        return {name: x.reshape(-1, *x.shape[2:]) for name, x in self.samples.items()}

    def take(self, draws: Sequence[int] | np.ndarray) -> "Draws":
        """Return some of the draws of each chain.

        :param draws: their indices.
        """
        samples = {name: x[:, draws] for name, x in self.samples.items()}
        ladder = {name: x[:, draws] for name, x in self.ladder.items()}
        return replace(self, samples=samples, ladder=ladder)

    def with_rankings(self, rankings: Rankings | Orders | None) -> "Draws":
        """Return the draws with the rankings, partial orders or comparisons that were fitted.

        :raises ValueError: if they are not.
        """
        if rankings is None:
            return self
        check_rows(rankings, takes_comparisons=True)
        if self.data not in (None, rankings.kind):
            raise ValueError(
                f"the run was of {self.data}, and these are {rankings.kind}: give those of the run"
            )
        if self.family is not None:
            rankings = self.family.described(cast(Rankings | PartialOrders, rankings))
            check_fitted(self.num_points, self.family.num_items(self.samples), rankings)
        draws = replace(
            self, items=tuple(map(str, rankings.items)), data=rankings.kind, orders=None
        )
        if isinstance(rankings, Orders):
            stand_in = rankings.with_orderings(rankings.listed)
            return replace(draws, rankings=stand_in, orders=rankings)
        return replace(draws, rankings=rankings)

    def check_family(self) -> RankingFamily:
        """Return the family of the rankings.

        :raises ValueError: if the draws are of anything else, or incomplete.
        """
        if self.family is None and self.partition in ("process", "links"):
            raise ValueError(
                "the samples are those of a kernel of partitions: for the clusters of rankings "
                "pass the run instead, or family=; for those of other points use partition_profiles"
            )
        is_whole = self.family is not None and (
            not self.family.has_labels or {"assignments", "cluster_sizes"} <= set(self.samples)
        )
        if self.family is None or not is_whole:
            raise ValueError(
                "samples must be those of a Mallows or Plackett–Luce kernel, mcmc.get_samples(): "
                f"these have {', '.join(self.samples) or 'no entries'}"
            )
        return self.family


def _ladder_of(fields: Mapping[Any, Any]) -> Samples:
    return {name: np.asarray(fields[name]) for name in LADDER_FIELDS if name in fields}


def _partition_of(
    samples: Mapping[str, np.ndarray],
    family: RankingFamily | None,
    num_components: NumComponents,
) -> tuple[Partition, int | None]:
    """Return the prior of the labels and the number of components, as far as they are known."""
    if family is not None and not _has_clusters(samples):
        return "population", 1 if "components" in family.partitions else None
    if family is None:
        is_partition = "assignments" in samples and "alpha" in samples
        return "links" if "links" in samples else "process" if is_partition else "unknown", None
    slots = _num_slots(samples, family)
    if family.partitions == ("process",):
        return "process", None
    if family.partitions == ("components",) or (num_components == "auto" and slots == 1):
        number = slots
    elif num_components == "auto":
        if "shares" not in samples:
            return "unknown", None
        number = slots
    else:
        number = num_components
    if number is None:
        return "process", None
    return "population" if number == 1 else "components", number


def _num_slots(samples: Mapping[str, np.ndarray], family: RankingFamily | None) -> int | None:
    if family is None:
        return None
    return samples[family.parameters[0]].shape[2] if _has_clusters(samples) else 1


def _has_clusters(samples: Mapping[str, np.ndarray]) -> bool:
    """Return whether parameters have an axis of clusters; the labels may have been left out."""
    return "assignments" in samples or "cluster_sizes" in samples


def _is_flat(samples: Mapping[str, np.ndarray], family: RankingFamily | None) -> bool:
    """Return whether samples are not grouped by chain, from the first site whose axes are known."""
    axes = {"assignments": 2, "cluster_sizes": 2, "log_joint": 1}
    if family is not None:
        axes[family.parameters[0]] = 2  # of a single population
    return next((samples[name].ndim == n for name, n in axes.items() if name in samples), False)


def _in_words(number: int | None) -> str:
    return "the Dirichlet process" if number is None else f"num_components={number}"


# -- samples ---------------------------------------------------------------------------------------


def check_draws(samples: Any) -> None:
    """Raise an error unless the samples are a dictionary with at least one draw."""
    if not isinstance(samples, Mapping):
        raise TypeError(
            "samples must be a dictionary as returned by mcmc.get_samples(); got "
            f"{type(samples).__name__}"
        )
    if any(np.size(value) == 0 for value in samples.values()):
        raise ValueError("there are no draws in the samples")


def named_as_by_kernel(
    samples: Mapping[str, Any], sites: Mapping[str, str] | None
) -> Mapping[str, Any]:
    """Return the samples of a block by the kernel's own names of its sites, with cluster sizes."""
    if sites is None:
        return samples
    check_draws(samples)
    missing = [name for name in sites.values() if name not in samples]
    if missing:
        raise ValueError(f"the samples have no site {missing[0]!r}; they have {', '.join(samples)}")
    named = {name: np.asarray(samples[own]) for name, own in sites.items()}
    if "assignments" not in named or family_of(named) is None:
        raise ValueError("sites must name the assignments, and the centers or the weights")
    return with_sizes(named)


def with_sizes(named: Samples) -> Samples:
    """Return the samples of a block, by the kernel's names, with the sizes of the clusters."""
    family = family_of(named)
    if family is None or "assignments" not in named:
        return named
    labels = named["assignments"]
    slots = named[family.parameters[0]].shape[labels.ndim - 1]
    flat = labels.reshape(-1, labels.shape[-1])
    sizes = np.stack([np.bincount(x, minlength=slots) for x in flat]).astype(np.int32)
    return {**named, "cluster_sizes": sizes.reshape(*labels.shape[:-1], slots)}


def check_fitted(num_rankings: int | None, num_items: int, rankings: Rankings | Orders) -> None:
    """Refuse rankings of another number or of other items than were fitted, as far as is known."""
    fitted = rankings.num_rankings if num_rankings is None else num_rankings
    if (fitted, num_items) != (rankings.num_rankings, rankings.num_items):
        raise ValueError(
            f"the run was of {fitted} rankings of {num_items} items; these are "
            f"{rankings.num_rankings} of {rankings.num_items}"
        )


# -- kernels ---------------------------------------------------------------------------------------


def own_kernel(kernel: Any) -> GibbsKernel | None:
    """Return a kernel of this package, None of another one.

    :raises TypeError: if it is no kernel.
    """
    if not isinstance(kernel, MCMCKernel):
        got = type(kernel).__name__
        raise TypeError(f"kernel must be a kernel, such as mcmc.sampler: got {got}")
    return kernel if isinstance(kernel, GibbsKernel) else None


def unconstrained_model(kernel: Any) -> Any:
    """Return the model of a kernel that starts from unconstrained values of it; None of others."""
    return None if isinstance(kernel, GibbsKernel) else getattr(kernel, "model", None)


def num_components_of(kernel: Any) -> int | None:
    """Return the number of components of a kernel, None for a process and other kernels."""
    number = getattr(kernel, "num_components", None)
    return None if number is None else int(number)


def family_of_kernel(kernel: Any) -> RankingFamily | None:
    """Return the likelihood of a kernel of rankings; None of others and a pool without groups."""
    if not isinstance(kernel, GibbsKernel) or is_of_partitions(kernel):
        return None
    has_groups = kernel.num_components is not None or kernel.label_site is not None
    return kernel.ranking_family if has_groups else None


def fitted_rankings(kernel: GibbsKernel, args: tuple, kwargs: dict) -> Rankings | Orders | None:
    """Return the rankings among the arguments of a kernel's model, None of one of partitions."""
    if is_of_partitions(kernel):
        return None
    return find_orders(args, kwargs) or find_rankings(args, kwargs)


def is_of_partitions(kernel: Any) -> bool:
    """Whether a kernel of this package draws partitions alone, of points of any kind."""
    return isinstance(kernel, PartitionKernel | LinkGibbs)


def find_block(kernel: Any) -> GibbsKernel | None:
    """Return the only block of :class:`numpyro.infer.Gibbs` that is of this package, if any."""
    blocks = list(blocks_of(kernel))
    if len(blocks) > 1:
        names = " and ".join(type(block).__name__ for block in blocks)
        raise ValueError(
            f"the model has several blocks of this package, {names}: use "
            "arviz.from_numpyro(mcmc), and cluster_profiles(mcmc.get_samples(), rankings, sites=…) "
            "for the clusters of each"
        )
    return blocks[0] if blocks else None


def blocks_of(kernel: Any) -> Iterator[GibbsKernel]:
    """Yield the blocks of :class:`numpyro.infer.Gibbs` that are kernels of this package."""
    for block, _ in getattr(kernel, "blocks", ()):
        if isinstance(block, GibbsKernel):
            yield block
        else:
            yield from blocks_of(block)
