"""Gibbs kernel for the Dirichlet process mixture of nonparametric Plackett–Luce models."""

from collections.abc import Callable, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.infer.base import GibbsState
from numpyro_rankings.infer.blocks import check_judge_sites, check_prior_of_slots, log_judges_of
from numpyro_rankings.infer.checks import check_scale, check_whole_or_none, leave_to_model
from numpyro_rankings.infer.latent_orders import Partition
from numpyro_rankings.infer.mixture.labels import canonical_order, update_labels_at_once
from numpyro_rankings.infer.mixture.membership import label_dtype
from numpyro_rankings.infer.mixture.prior import PartitionPrior, update_alpha
from numpyro_rankings.infer.plackett_luce.data import PlackettLuceData, log_likelihood_of
from numpyro_rankings.infer.plackett_luce.label_free import (
    WeightedLabels,
    choose_effort_for,
    move_weights_without_labels,
)
from numpyro_rankings.infer.plackett_luce.measures import (
    ClusterTimes,
    Measures,
    Scales,
    draw_clusters,
    update_common_scale,
    update_measures,
    update_phi,
)
from numpyro_rankings.infer.plackett_luce.pool import SITES_OF_DATA, PoolKernel
from numpyro_rankings.infer.plackett_luce.start import start_mixture
from numpyro_rankings.infer.plackett_luce.target import PittWalkerWeights
from numpyro_rankings.infer.plackett_luce.waiting_times import sum_times_in_play
from numpyro_rankings.infer.priors import draw_start
from numpyro_rankings.models import dp_plackett_luce
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.choices import log_choice_likelihoods, times_chosen
from numpyro_rankings.ops.pairs import Pair, add_number
from numpyro_rankings.ops.random_measures import ClusterShares, RootMeasure, log_pitt_walker
from numpyro_rankings.ops.sums import count_by_label

_MOST_SEEDS = 20  # groups from which a chain starts
_SITES = (
    "assignments",
    "weights",
    "unseen_weight",
    "total_weight",
    "root_weights",
    "root_unseen_weight",
)


class ProcessMixture(NamedTuple):
    """State of a sweep."""

    labels: Array  # (N,) int32
    measures: Measures  # the root and the clusters, not normalised
    scales: Scales

    @property
    def partition(self) -> PartitionPrior:
        """Prior of the labels."""
        return PartitionPrior(self.scales.gamma)

    def sizes(self) -> Array:
        """Return the number of rankings of each cluster, (C,)."""
        return count_by_label(self.labels, len(self.measures.atoms))


class ProcessInputs(NamedTuple):
    """Inputs of a sweep."""

    data: PlackettLuceData
    tau: float  # τ
    log_judges: Array | None  # log probability of each judge's judge_sites in each cluster, (C, N)


class DPPlackettLuceGibbs(PoolKernel):
    r"""
    Gibbs sampler for the Dirichlet process mixture of nonparametric Plackett–Luce models.

    The clusters share their items, the atoms of a root gamma process, and each has its own weights
    for them (Pitt–Walker dependence, Section 5 of [1]). The kernel is the sampler of Appendix D
    with three corrections. The counts :math:`u_{jk}` are drawn exactly, with :math:`w_{jk}`
    integrated out, instead of by Metropolis steps, one of which compares a probability mass with a
    density. The sums of the weights are drawn given the counts and not from the prior, which would
    change the posterior. φ is drawn by slice sampling with the counts summed out through Bessel
    functions, so that nothing needs adaptation. All labels are drawn at once, given shares of the
    clusters and slice variables [2, 3], without truncation.

    Where clusters overlap, labels move little given the weights. Weights, shares and the number of
    clusters therefore also move with the labels integrated out, by Metropolis-Hastings steps that
    change, split and merge clusters (some with weights that EM fits first) and, where rankings
    times slots are few, by Hamiltonian trajectories. With tens of thousands of distinct rankings
    there are few such steps, and chains may not agree: compare the log joint of several chains. A
    chain starts from up to 20 groups that EM finds.

    Samples, of the K items that the rankings list, in item order: ``assignments`` (D, N),
    canonical, ``weights`` (D, C, K) and ``unseen_weight`` (D, C), together 1 in each cluster,
    ``total_weight`` (D, C), their sum before, ``root_weights`` (D, K) and ``root_unseen_weight``
    (D,), not normalised, ``alpha``, ``phi``, ``gamma``, ``cluster_sizes`` (D, C), ``num_clusters``,
    ``log_joint``. Values in slots from ``num_clusters`` on have no meaning.

    In the model every listed item is an atom of the root.

    Run as ``mcmc.run(key, rankings)``. Under ``jit`` (``jit_model_args=True``) the kernel cannot
    tell which items are listed: pass ``rankings.of_listed_items()``.
    :class:`~numpyro_rankings.PartialOrders` are taken too, as by
    :class:`~numpyro_rankings.infer.PlackettLuceGibbs`, if all items were offered.

    :param alpha: concentration α of the processes of the root and of the clusters; like φ and γ a
        number, or a distribution to learn it. :class:`~numpyro_rankings.distributions.FlatLog` is
        the prior 1/x of [1].
    :param phi: φ, the resemblance of the clusters to the root.
    :param gamma: concentration γ of the Dirichlet process.
    :param tau: inverse scale τ; only φ/τ matters.
    :param max_clusters: number of slots, for the clusters and those that a sweep tries.
    :param num_marginal_steps: Metropolis-Hastings steps in a sweep with the labels integrated out.
        By default 4 N, at least 10 and at most 2000; fewer with many distinct rankings.
    :param model: your own model, in which the kernel is a block of
        :class:`numpyro.infer.Gibbs` that owns the sites ``assignments``, ``weights``,
        ``unseen_weight``, ``total_weight``, ``root_weights`` and ``root_unseen_weight``. The model
        calls :func:`~numpyro_rankings.models.dp_plackett_luce` with the same ``tau`` and
        ``max_clusters``, and with its own scales.
    :param judge_sites: as a block, observed sites of the model of batch shape (N,) that depend on
        the label of each judge, as in :class:`~numpyro_rankings.infer.SliceGibbs`: entry i may
        depend on the label of judge i, which ``dp_plackett_luce`` returns, and on sites that other
        blocks own, whose prior must be the same in all slots. Labels then name slots and are not in
        order of first use, and there are no steps with the labels integrated out.

    **References:**

    1. Caron, F., Teh, Y. W., Murphy, T. B. (2014), "Bayesian nonparametric Plackett–Luce models
       for the analysis of preferences for college degree programmes".
    2. Walker, S. (2007), "Sampling the Dirichlet mixture model with slices".
    3. Kalli, M., Griffin, J., Walker, S. (2011), "Slice sampling mixture models".

    .. doctest::

       >>> import jax
       >>> from numpyro.infer import MCMC
       >>> from numpyro_rankings import Rankings
       >>> from numpyro_rankings.infer import DPPlackettLuceGibbs
       >>> rankings = Rankings.from_orderings([[3, 0], [0, 5], [5]], num_items=9, counts=[4, 2, 9])
       >>> mcmc = MCMC(DPPlackettLuceGibbs(), num_warmup=20, num_samples=50, progress_bar=False)
       >>> mcmc.run(jax.random.key(0), rankings)
       >>> mcmc.get_samples()["weights"].shape
       (50, 64, 3)
    """

    _takes_judge_sites = True
    _sites = MappingProxyType({name: name for name in _SITES})  # which a model cannot change

    def __init__(
        self,
        alpha: float | dist.Distribution = 1.0,
        phi: float | dist.Distribution = 1.0,
        gamma: float | dist.Distribution = 1.0,
        tau: float = 1.0,
        max_clusters: int = 64,
        *,
        num_marginal_steps: int | None = None,
        model: Callable | None = None,
        judge_sites: Sequence[str] = (),
    ) -> None:
        for name, value in (("alpha", alpha), ("phi", phi), ("gamma", gamma)):
            check_scale(name, value)
        if isinstance(tau, dist.Distribution):
            raise ValueError("tau must be a number: only phi/tau matters")
        check_scale("tau", tau, learned=False)
        check_whole("max_clusters", max_clusters, 1)
        check_whole_or_none("num_marginal_steps", num_marginal_steps, 0)
        self._num_marginal_steps = num_marginal_steps
        self._alpha, self._phi, self._gamma = alpha, phi, gamma
        self._tau, self._num_slots = float(tau), max_clusters
        self._is_block = model is not None
        scales = {"alpha": alpha, "phi": phi, "gamma": gamma}
        changed = {k: isinstance(x, dist.Distribution) or x != 1.0 for k, x in scales.items()}
        leave_to_model(self._is_block, **changed)
        self._judge_sites = check_judge_sites(judge_sites, self._is_block)
        if model is None:
            model = partial(
                dp_plackett_luce,
                alpha=alpha,
                phi=phi,
                gamma=gamma,
                tau=self._tau,
                max_clusters=max_clusters,
            )
        super().__init__(model)

    def _scale_arguments(self) -> dict[str, Any]:
        return {"alpha": self._alpha, "phi": self._phi, "gamma": self._gamma}

    # -- inputs of a sweep ---------------------------------------------------------------------

    def _read(self, z: dict, args: tuple, kwargs: dict) -> tuple[ProcessMixture, ProcessInputs]:
        """Return the state and the inputs of a sweep."""
        _, data = self._data(args, kwargs, z)
        total = z["total_weight"][:, None]
        measures = Measures(
            z["root_weights"],
            z["root_unseen_weight"],
            z["weights"] * total,
            z["unseen_weight"] * total[:, 0],
        )
        labels = z["assignments"].astype(jnp.int32)
        mixture = ProcessMixture(labels, measures, self._scales(z, args, kwargs))
        log_judges = self._log_judge_sites(z, self._num_slots, args, kwargs)
        return mixture, ProcessInputs(data, self._tau, log_judges)

    def read_prior(self, z: dict, args: tuple, kwargs: dict) -> tuple[dict[str, Any], Array | None]:
        mixture, inputs = self._read(z, args, kwargs)
        return mixture.scales._asdict(), inputs.log_judges

    def _partition(self, z: dict, args: tuple, kwargs: dict) -> Partition:
        mixture, _ = self._read(z, args, kwargs)
        return Partition(mixture.labels, self._num_slots, mixture.partition.kappa)

    def _scales(self, z: dict, args: tuple, kwargs: dict) -> Scales:
        if not self._is_block:
            return Scales(*(jnp.asarray(z[name], float) for name in Scales._fields))
        trace = self._trace_model(self._own(z), args, kwargs)
        if self._judge_sites:
            check_prior_of_slots(trace["assignments"]["fn"], "assignments")
        values = (trace[f"process_{name}"]["value"] for name in Scales._fields)
        return Scales(*(jnp.asarray(value, float) for value in values))

    # -- the chain -----------------------------------------------------------------------------

    def _init(
        self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict
    ) -> GibbsState:
        rankings, data = self._data(args, kwargs)
        key_labels, key_scales, rng_key = random.split(rng_key, 3)
        slots, n, tau = self._num_slots, rankings.num_items, self._tau
        start_values = {} if self._is_block else dict(init_params or {})
        start, scales = {}, self._scale_arguments()
        for key, name in zip(random.split(key_scales, 3), Scales._fields, strict=True):
            start[name] = draw_start(key, start_values.get(name, scales[name]))
        num_seeds = min(slots, _MOST_SEEDS, data.num_labels)
        labels, _ = start_mixture(key_labels, data, num_seeds, n)
        labels = jnp.asarray(start_values.get("assignments", labels), jnp.int32)
        labels = jnp.where(data.is_padding, slots, labels)
        membership = data.membership(labels, slots)
        chosen = times_chosen(data.choices, *membership, slots, n).astype(float)
        of_all = chosen.sum(0)
        root = of_all / of_all.sum() * n
        each = 1.0 / (chosen.sum(1) + 1.0)  # not computed as 1 - Σ, which could round to 0
        z = {
            "assignments": labels,
            "weights": chosen * each[:, None],
            "unseen_weight": each,
            "total_weight": jnp.full(slots, n / tau),
            "root_weights": root / tau,
            "root_unseen_weight": jnp.asarray(1.0 / tau),
        }
        z = {name: jnp.asarray(start_values.get(name, value)) for name, value in z.items()}
        if not self._is_block:
            z |= start
        mixture, inputs = self._read(z, args, kwargs)
        if self._is_block:
            self._check_dependents(z, args, kwargs, lambda name, _: name in SITES_OF_DATA, 2)
        return self._state(mixture, inputs, rng_key, jnp.array(False))

    def _sweep(self, state: GibbsState, args: tuple, kwargs: dict) -> GibbsState:
        """Make a sweep in the steps of Appendix D of [1]."""
        keys = random.split(state.rng_key, 8)
        rng_key, key_new, key_labels, key_gamma, key_times, key_measures, key_phi, key_moves = keys
        mixture, inputs = self._read(state.z, args, kwargs)
        mixture = _with_new_empty_clusters(key_new, mixture, inputs)
        mixture, overflow = _update_labels(key_labels, mixture, inputs)  # step 6
        mixture = self._move_without_labels(key_moves, mixture, inputs)
        mixture = self._update_gamma(key_gamma, mixture)  # step 7
        times = _draw_times(key_times, mixture, inputs)  # step 4
        measures, scales = update_measures(  # steps 2, 1b, 5, 1 and 3
            key_measures,
            mixture.measures,
            mixture.scales,
            times,
            self._learned_prior("alpha"),
            inputs.tau,
        )
        mixture = mixture._replace(measures=measures, scales=scales)
        mixture = self._update_phi(key_phi, mixture, inputs)  # step 8
        return self._state(mixture, inputs, rng_key, overflow)

    def _move_without_labels(
        self, key: Array, mixture: ProcessMixture, inputs: ProcessInputs
    ) -> ProcessMixture:
        """Move labels, clusters and their number with the labels integrated out."""
        data, measures = inputs.data, mixture.measures
        slots, num_items = measures.atoms.shape
        effort = choose_effort_for(
            self._num_marginal_steps, data.choices, data.num_labels, slots, num_items
        )
        if inputs.log_judges is not None or effort.num_steps == 0:
            return mixture
        clusters = WeightedLabels(mixture.labels, jnp.log(measures.atoms), measures.unseen)
        prior = PittWalkerWeights(measures.root, mixture.scales.phi, inputs.tau)
        clusters = move_weights_without_labels(
            key, clusters, mixture.partition, prior, data, effort
        )
        measures = measures._replace(atoms=jnp.exp(clusters.log_weights))
        return mixture._replace(labels=clusters.labels, measures=measures)

    def _update_gamma(self, key: Array, mixture: ProcessMixture) -> ProcessMixture:
        """Draw γ given the labels."""
        prior = self._learned_prior("gamma")
        if prior is None:
            return mixture
        gamma = update_alpha(key, mixture.partition, prior, mixture.sizes())
        return mixture._replace(scales=mixture.scales._replace(gamma=gamma))

    def _update_phi(
        self, key: Array, mixture: ProcessMixture, inputs: ProcessInputs
    ) -> ProcessMixture:
        """Draw φ with u integrated out, then φ and the scale of the measures together."""
        prior = self._learned_prior("phi")
        if prior is None:
            return mixture
        key_phi, key_scale = random.split(key)
        occupied, (_, measures, scales) = mixture.sizes() > 0, mixture
        phi = update_phi(key_phi, measures, scales, prior, occupied, inputs.tau)
        scales = scales._replace(phi=phi)
        measures, scales = update_common_scale(
            key_scale, measures, scales, prior, occupied, inputs.tau
        )
        return mixture._replace(measures=measures, scales=scales)

    def _state(
        self, mixture: ProcessMixture, inputs: ProcessInputs, rng_key: Array, overflow: Array
    ) -> GibbsState:
        """Put the labels in order of first use, and the clusters after them."""
        slots = self._num_slots
        if inputs.log_judges is None:
            labels, order = canonical_order(mixture.labels, slots)
            atoms, unseen = mixture.measures.atoms[order], mixture.measures.unseen[order]
            mixture = mixture._replace(
                labels=labels, measures=mixture.measures._replace(atoms=atoms, unseen=unseen)
            )
        measures, total = mixture.measures, mixture.measures.totals
        z = {
            "assignments": mixture.labels.astype(label_dtype(slots)),
            "weights": measures.atoms / total[:, None],
            "unseen_weight": measures.unseen / total,
            "total_weight": total,
            "root_weights": measures.root,
            "root_unseen_weight": measures.root_unseen,
        }
        log_joint, log_joint_rest = self._log_joint(z, mixture.scales, inputs)
        if not self._is_block:
            sizes = mixture.sizes()
            z |= mixture.scales._asdict()
            z |= {
                "cluster_sizes": sizes,
                "num_clusters": jnp.sum(sizes > 0),
                "log_joint": log_joint,
                "log_joint_rest": log_joint_rest,
            }
        return GibbsState(z, -log_joint, jnp.ones(()), overflow, rng_key)

    def _log_joint(self, z: dict, scales: Scales, inputs: ProcessInputs) -> Pair:
        """Return log p(rankings, judges' sites, labels, measures, scales), of occupied clusters."""
        labels, slots = z["assignments"].astype(jnp.int32), self._num_slots
        sizes = count_by_label(labels, slots)
        log_joint = PartitionPrior(scales.gamma).log_prob(sizes)
        log_joint += log_pitt_walker(
            RootMeasure(z["root_weights"], z["root_unseen_weight"]),
            ClusterShares(z["weights"], z["unseen_weight"], z["total_weight"]),
            sizes > 0,
            scales.alpha,
            scales.phi,
            self._tau,
        )
        log_joint = self._add_log_priors(log_joint, **scales._asdict())
        membership = inputs.data.membership(labels, slots)
        likelihood = log_likelihood_of(inputs.data, membership, z["weights"], z["unseen_weight"])
        pair = add_number(likelihood, log_joint)
        return add_number(pair, log_judges_of(labels, inputs.log_judges))

    def _potential(self, state: GibbsState, args: tuple, kwargs: dict) -> Array:
        mixture, inputs = self._read(state.z, args, kwargs)
        return -self._log_joint(state.z, mixture.scales, inputs)[0]


def _with_new_empty_clusters(
    key: Array, mixture: ProcessMixture, inputs: ProcessInputs
) -> ProcessMixture:
    """Draw the measures of empty clusters from their prior, eq. (19)."""
    measures, empty = mixture.measures, mixture.sizes() == 0
    atoms, unseen = draw_clusters(
        key, measures.root, measures.root_unseen, mixture.scales, inputs.tau, len(empty)
    )
    measures = measures._replace(
        atoms=jnp.where(empty[:, None], atoms, measures.atoms),
        unseen=jnp.where(empty, unseen, measures.unseen),
    )
    return mixture._replace(measures=measures)


def _shares(measures: Measures) -> tuple[Array, Array]:
    """Return the normalised weights, (C, K), and those of the unseen items, (C,)."""
    totals = measures.totals
    return measures.atoms / totals[:, None], measures.unseen / totals


def _update_labels(
    key: Array, mixture: ProcessMixture, inputs: ProcessInputs
) -> tuple[ProcessMixture, Array]:
    """Draw shares, slices and all labels; return whether more slots would have been needed too."""
    shares, pool = _shares(mixture.measures)
    data = inputs.data

    def log_table(order: Array, num_active: Array) -> Array:
        return log_choice_likelihoods(data.choices, shares[order], pool[order], num_active)

    labels, overflow = update_labels_at_once(
        key,
        mixture.labels,
        mixture.sizes(),
        mixture.partition,
        data.row_index,
        log_table,
        inputs.log_judges,
    )
    return mixture._replace(labels=labels), overflow


def _draw_times(key: Array, mixture: ProcessMixture, inputs: ProcessInputs) -> ClusterTimes:
    """Draw the waiting times, and sum them by cluster."""
    slots, num_items = mixture.measures.atoms.shape
    shares, pool = _shares(mixture.measures)
    membership = inputs.data.membership(mixture.labels, slots)
    in_play, total = sum_times_in_play(key, inputs.data, membership, shares, pool)
    chosen = times_chosen(inputs.data.choices, *membership, slots, num_items)
    # waiting times scale with 1/weight: those of the normalised weights are divided by the total
    totals = mixture.measures.totals
    return ClusterTimes(mixture.sizes() > 0, chosen, in_play / totals[:, None], total / totals)
