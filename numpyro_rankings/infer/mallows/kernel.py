"""Base class of the Gibbs kernels for mixtures of generalized Mallows models.

**References**

1. *Dirichlet process mixtures of generalized Mallows models*, M. Meilă, H. Chen (UAI, 2010).
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import Array, random

from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.families import MALLOWS, RankingFamily
from numpyro_rankings.infer.base import GibbsState, find_rankings
from numpyro_rankings.infer.blocks import check_judge_sites, log_judges_of
from numpyro_rankings.infer.checks import leave_to_model, site_names
from numpyro_rankings.infer.latent_orders import MallowsLists
from numpyro_rankings.infer.mallows.concentrations import per_stage_prior
from numpyro_rankings.infer.mallows.data import (
    ClusterSums,
    as_mallows_data,
    check_code_sums,
    cluster_sums,
)
from numpyro_rankings.infer.mallows.label_free import MallowsParameters, move_mallows_without_labels
from numpyro_rankings.infer.mallows.level_items import exchange_neighbours
from numpyro_rankings.infer.mallows.memory import check_memory
from numpyro_rankings.infer.mallows.parameters import update_parameters
from numpyro_rankings.infer.mallows.priors import (
    check_center_prior_of_model,
    concentration_prior_of,
    concentration_prior_of_model,
    partition_prior_of_model,
)
from numpyro_rankings.infer.mallows.settings import MallowsSettings, check_settings
from numpyro_rankings.infer.mallows.start import Start, draw_start_of_mixture, search_iterations
from numpyro_rankings.infer.mallows.state import LabelReport, MallowsInputs, MallowsMixture
from numpyro_rankings.infer.mixture.label_free import Effort, choose_effort
from numpyro_rankings.infer.mixture.labels import canonical_order
from numpyro_rankings.infer.mixture.membership import label_dtype
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.ranking_kernel import MixtureKernel
from numpyro_rankings.models import mallows_mixture
from numpyro_rankings.ops.codes import inverse_ordering
from numpyro_rankings.ops.pairs import Pair, add_number, exact_products, sum_as_pair, times_log_psi
from numpyro_rankings.ops.sums import count_by_label
from numpyro_rankings.rankings import Comparisons, Orders, Rankings, num_stages

_SITES = ("assignments", "center", "concentration")


class MallowsGibbs(MixtureKernel):
    """Base of Slice-Gibbs and Beta-Gibbs: all updates but that of the labels."""

    # Its ``accept_prob`` is the smaller of two means: of the stagewise draws of the centers, and of
    # the labels in an exact Beta-Gibbs.

    def __init__(
        self,
        settings: MallowsSettings,
        mistake_prior: tuple[float, float],
        *,
        model: Callable | None,
        sites: Mapping[str, str] | None,
        judge_sites: Sequence[str] = (),
    ) -> None:
        check_settings(settings)
        self._settings, self._alpha = settings, settings.alpha
        self._is_block = model is not None
        leave_to_model(self._is_block, **settings.changed_priors())
        self._sites = site_names(_SITES, sites)
        self._judge_sites = check_judge_sites(judge_sites, self._is_block)
        if model is None:
            model = partial(
                mallows_mixture,
                alpha=settings.alpha,
                nu=settings.nu,
                r=settings.r,
                concentration_prior=settings.concentration_prior,
                tied=settings.tied,
                num_components=settings.num_components,
                max_clusters=settings.max_clusters,
            )
        super().__init__(model, mistake_prior)

    @property
    def ranking_family(self) -> RankingFamily:
        """Generalized Mallows models."""
        return MALLOWS

    @property
    def num_components(self) -> int | None:
        """K of a finite mixture, None for the Dirichlet process."""
        return self._settings.num_components

    @property
    def num_slots(self) -> int:
        """C, the number of cluster slots."""
        return self._settings.num_slots

    @property
    def can_split_rankings(self) -> bool:
        return False

    def search_iterations(self, rankings: Rankings | Orders) -> int:
        """Return the number of iterations of the search for a start, 0 without a search."""
        return search_iterations(self._settings, rankings)

    # -- inputs of a sweep ---------------------------------------------------------------------

    def _check(self, args: tuple, kwargs: dict) -> None:
        check_rankings_for(self._settings, self._checked_rankings(args, kwargs))

    def _check_memory(self, args: tuple, kwargs: dict, num_chains: int) -> None:
        check_memory(self._settings, find_rankings(args, kwargs), num_chains)

    def _read(self, z: dict, args: tuple, kwargs: dict) -> tuple[MallowsMixture, MallowsInputs]:
        """Return the state and the inputs of a sweep."""
        rankings, names, settings = find_rankings(args, kwargs), self._sites, self._settings
        data = as_mallows_data(rankings)
        stages = len(data.limits)
        if self._is_block:
            trace = self._trace_model(self._own(z), args, kwargs)
            partition = partition_prior_of_model(
                trace, names["assignments"], bool(self._judge_sites)
            )
            check_center_prior_of_model(trace, names["center"])
            prior = concentration_prior_of_model(
                trace, names["concentration"], self.num_slots, stages, settings.exact
            )
        else:
            alpha = jnp.asarray(z.get("alpha", self._alpha), float)
            partition = PartitionPrior(
                alpha, settings.num_components, num_used=self._num_used(kwargs)
            )
            prior = concentration_prior_of(settings, rankings.num_items, stages)
        labels = z[names["assignments"]].astype(jnp.int32)
        center, theta = z[names["center"]], z[names["concentration"]]
        mixture = MallowsMixture(labels, center, theta, partition)
        log_judges = self._log_judge_sites(z, self.num_slots, args, kwargs)
        return mixture, MallowsInputs(data, prior, log_judges)

    @staticmethod
    def _prepare_orders(orders: Orders) -> Orders:
        # items that were not offered may be anywhere
        return orders if orders.offered() is None else orders.of_all_items()

    def _lists(self, z: dict, args: tuple, kwargs: dict, orders: Orders) -> MallowsLists:
        mixture, _ = self._read(z, args, kwargs)
        items, labels = jnp.maximum(orders.listed, 0), mixture.labels
        places = inverse_ordering(mixture.center)[labels[:, None], items]
        theta = _at_all_places(mixture, items.shape[1])[labels]
        num_items = jnp.full(len(labels), orders.num_items)
        return MallowsLists(places.T, theta.T, orders.lengths, num_items)

    def _move_items(
        self, key: Array, z: dict, orderings: Array, given: tuple[tuple, dict], orders: Orders
    ) -> tuple[dict, Array]:
        if isinstance(orders, Comparisons):  # of which all orderings are possible
            return z, orderings
        mixture, _ = self._read(z, *given)
        theta = _at_all_places(mixture, orderings.shape[1])
        labels, center = mixture.labels, mixture.center
        center, orderings = exchange_neighbours(key, orders, orderings, labels, center, theta)
        return z | {self._sites["center"]: center}, orderings

    # -- the chain -----------------------------------------------------------------------------

    def _init(
        self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict
    ) -> GibbsState:
        rankings = find_rankings(args, kwargs)
        key_init, key_alpha, rng_key = random.split(rng_key, 3)
        start_values, names = dict(init_params or {}), self._sites
        data = as_mallows_data(rankings)
        number = self._num_used(kwargs)
        start = draw_start_of_mixture(key_init, self._settings, rankings, data, number)
        # numpyro.infer.Gibbs always passes a draw from the prior. It is a poor start, used only
        # with init="given"
        takes_given = not self._is_block or self._settings.init == "given"
        if takes_given:
            start = Start(
                *(start_values.get(names[k], x) for k, x in zip(_SITES, start, strict=True))
            )
        z = {names[name]: x for name, x in zip(_SITES, start, strict=True)}
        labels = names["assignments"]
        z[labels] = jnp.where(data.is_padding, self.num_slots, z[labels])
        z[names["concentration"]] = jnp.asarray(z[names["concentration"]], float)
        z |= self._start_alpha(key_alpha, start_values)
        mixture, inputs = self._read(z, args, kwargs)
        if not (takes_given and names["concentration"] in start_values):
            mixture = _with_possible_concentrations(random.fold_in(key_init, 1), mixture, inputs)
        if self._is_block:
            values = mixture.labels, mixture.center, mixture.concentration
            own = {names[name]: x for name, x in zip(_SITES, values, strict=True)}
            self._check_dependents(
                own, args, kwargs, lambda _, fn: isinstance(fn, GeneralizedMallows)
            )
        report = LabelReport(jnp.array(False), jnp.ones(()))
        sums = cluster_sums(inputs.data, mixture.labels, mixture.center)
        return self._state(mixture, inputs, sums, rng_key, report)

    def _sweep(self, state: GibbsState, args: tuple, kwargs: dict) -> GibbsState:
        rng_key, *keys = random.split(state.rng_key, 6)
        mixture, inputs = self._read(state.z, args, kwargs)
        if self._is_block:
            # other blocks may have changed the prior from which the empty clusters were drawn
            mixture = _with_new_empty_clusters(keys[0], mixture, inputs)
        # Figures 1 and 5, step 1
        mixture, report = self._update_labels(keys[1], mixture, inputs)
        mixture = self._move_without_labels(keys[2], mixture, inputs)
        # Figures 1 and 5, step 2
        mixture, sums, accept_center = update_parameters(keys[3], mixture, inputs, self._settings)
        partition = self._update_alpha(keys[4], mixture.partition, sums.sizes)
        mixture = mixture._replace(partition=partition)
        accept_prob = jnp.minimum(report.accept_prob, accept_center)
        return self._state(mixture, inputs, sums, rng_key, report._replace(accept_prob=accept_prob))

    @abstractmethod
    def _update_labels(
        self, key: Array, mixture: MallowsMixture, inputs: MallowsInputs
    ) -> tuple[MallowsMixture, LabelReport]:
        """Draw the labels (Figures 1 and 5, step 1)."""

    def _effort(self, mixture: MallowsMixture, inputs: MallowsInputs) -> Effort:
        """Return how many moves without labels a sweep makes."""
        can_move = self._settings.exact and inputs.log_judges is None
        if not can_move or mixture.partition.num_components == 1:
            return Effort(0, False)
        rows_shape, num_rankings = inputs.data.orderings.shape, inputs.data.num_labels
        requested = self._settings.num_marginal_steps
        return choose_effort(requested, num_rankings, self.num_slots, rows_shape)

    def _move_without_labels(
        self, key: Array, mixture: MallowsMixture, inputs: MallowsInputs
    ) -> MallowsMixture:
        """Move labels, centers and concentrations with the labels integrated out."""
        effort = self._effort(mixture, inputs)
        if effort.num_steps == 0:
            return mixture
        parameters = MallowsParameters(mixture.center, mixture.concentration)
        labels, parameters = move_mallows_without_labels(
            key, (mixture.labels, parameters), mixture.partition, inputs.prior, inputs.data, effort
        )
        return mixture._replace(labels=labels, **parameters._asdict())

    def _state(
        self,
        mixture: MallowsMixture,
        inputs: MallowsInputs,
        sums: ClusterSums,
        rng_key: Array,
        report: LabelReport,
    ) -> GibbsState:
        """Put the labels in order of first use, and the clusters and their sums after them."""
        slots, names = self.num_slots, self._sites
        if inputs.log_judges is None:
            labels, order = canonical_order(mixture.labels, slots)
            center, theta = mixture.center[order], mixture.concentration[order]
            mixture = mixture._replace(labels=labels, center=center, concentration=theta)
            sums = ClusterSums(*(x[order] for x in sums))
        log_joint, log_joint_rest = self._log_joint(mixture, inputs, sums)
        z = {
            names["assignments"]: mixture.labels.astype(label_dtype(slots)),
            names["center"]: mixture.center.astype(jnp.int32),
            names["concentration"]: mixture.concentration,
        }
        if not self._is_block:
            z |= {
                "cluster_sizes": sums.sizes,
                "num_clusters": jnp.sum(sums.sizes > 0),
                "alpha": mixture.partition.alpha,
                "log_joint": log_joint,
                "log_joint_rest": log_joint_rest,
            }
            if self._settings.tied:
                z["shared_concentration"] = mixture.concentration[:, 0]
        return GibbsState(z, -log_joint, report.accept_prob, report.overflow, rng_key)

    def _log_joint(self, mixture: MallowsMixture, inputs: MallowsInputs, sums: ClusterSums) -> Pair:
        """Return log p(rankings, judges' sites, labels, centers, θ, α), of occupied clusters."""
        data, num_items = inputs.data, mixture.center.shape[1]
        sizes, counts, codes = sums
        occupied = sizes > 0
        log_center = -jnp.sum(jnp.log(jnp.arange(1, num_items + 1, dtype=float)))
        per_cluster = inputs.prior.log_prob(mixture.concentration, num_items) + log_center
        log_joint = jnp.sum(jnp.where(occupied, per_cluster, 0.0))
        # values in empty slots do not count
        theta = jnp.where(occupied[:, None], mixture.concentration, 1.0)
        terms = exact_products(codes, theta)
        terms += times_log_psi(counts, theta, data.limits, data.num_labels)
        minus_likelihood, rest = sum_as_pair(terms)
        if mixture.partition.num_components != 1:
            log_joint += mixture.partition.log_prob(sizes)
            log_joint = self._add_log_priors(log_joint, alpha=mixture.partition.alpha)
        pair = add_number((-minus_likelihood, -rest), log_joint)
        return add_number(pair, log_judges_of(mixture.labels, inputs.log_judges))

    def _potential(self, state: GibbsState, args: tuple, kwargs: dict) -> Array:
        mixture, inputs = self._read(state.z, args, kwargs)
        sums = cluster_sums(inputs.data, mixture.labels, mixture.center)
        return -self._log_joint(mixture, inputs, sums)[0]


def check_rankings_for(settings: MallowsSettings, rankings: Rankings) -> None:
    """Raise ValueError if rankings do not fit a Mallows model with these settings."""
    if rankings.choice_sets is not None:
        raise ValueError(
            "these are subset rankings (they have choice sets); a Mallows model is for "
            "rankings of all items, where an item not listed ranks below the listed ones"
        )
    if rankings.num_items < 2:
        raise ValueError("a ranking needs at least 2 items")
    stages = num_stages(rankings)
    for name, value in (("nu", settings.nu), ("r", settings.r)):
        if np.shape(value) not in ((), (stages,)):
            raise ValueError(
                f"{name} must be a scalar or have one entry for each of the {stages} stages, "
                f"got shape {np.shape(value)}"
            )
    if settings.concentration_prior is not None:
        per_stage_prior(settings.concentration_prior, stages)
    check_code_sums(rankings, stages)


def _at_all_places(mixture: MallowsMixture, length: int) -> Array:
    """Return θ of each cluster at so many places, 0 at the last of all, where nothing is chosen."""
    missing = length - mixture.concentration.shape[1]
    return jnp.pad(mixture.concentration, ((0, 0), (0, missing)))


def _with_possible_concentrations(
    key: Array, mixture: MallowsMixture, inputs: MallowsInputs
) -> MallowsMixture:
    """Replace concentrations outside the support of their prior, which no update would leave."""
    num_slots, num_items = mixture.center.shape
    drawn = inputs.prior.draw(key, num_slots, inputs.data.limits)
    possible = jnp.isfinite(inputs.prior.log_prob(mixture.concentration, num_items))
    return mixture._replace(
        concentration=jnp.where(possible[:, None], mixture.concentration, drawn)
    )


def _with_new_empty_clusters(
    key: Array, mixture: MallowsMixture, inputs: MallowsInputs
) -> MallowsMixture:
    """Draw the concentrations of empty clusters from the prior."""
    num_slots = len(mixture.center)
    sizes = count_by_label(mixture.labels, num_slots)
    drawn = inputs.prior.draw(key, num_slots, inputs.data.limits)
    return mixture._replace(
        concentration=jnp.where(sizes[:, None] > 0, mixture.concentration, drawn)
    )
