"""Gibbs kernel for the Dirichlet process mixture of nonparametric Plackett–Luce models."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.infer.blocks import check_judge_sites, check_prior_of_slots, log_of_own
from numpyro_rankings.infer.checks import check_scale, leave_to_model
from numpyro_rankings.infer.mixture.labels import canonical_order, draw_labels_in_slices
from numpyro_rankings.infer.mixture.members import label_dtype
from numpyro_rankings.infer.mixture.prior import PartitionPrior, log_partition_prior, update_alpha
from numpyro_rankings.infer.plackett_luce.data import PlackettLuceData, log_likelihood_of
from numpyro_rankings.infer.plackett_luce.label_free import (
    number_of_steps,
    update_weights_marginally,
)
from numpyro_rankings.infer.plackett_luce.measures import (
    Measures,
    Scales,
    draw_clusters,
    update_common_scale,
    update_dependence,
    update_measures,
)
from numpyro_rankings.infer.plackett_luce.pool import SITES_OF_DATA, PoolKernel
from numpyro_rankings.infer.plackett_luce.start import start_mixture
from numpyro_rankings.infer.plackett_luce.target import PittWalkerWeights
from numpyro_rankings.infer.plackett_luce.waiting_times import sum_times_in_play
from numpyro_rankings.infer.priors import draw_start, log_prior
from numpyro_rankings.models import dp_plackett_luce
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.choices import log_choice_likelihoods, times_chosen
from numpyro_rankings.ops.codes import inverse_ordering
from numpyro_rankings.ops.pairs import Pair, add_number
from numpyro_rankings.ops.random_measures import ClusterShares, RootMeasure, log_pitt_walker
from numpyro_rankings.ops.sums import count_by_label

_SITES = (
    "assignments",
    "weights",
    "unseen_weight",
    "total_weight",
    "root_weights",
    "root_unseen_weight",
)


class DPPlackettLuceState(NamedTuple):
    """
    - **z** - ``assignments`` (N,), ``weights`` (C, K), ``unseen_weight`` (C,), ``total_weight``
      (C,), ``root_weights`` (K,), ``root_unseen_weight``, ``alpha``, ``phi``, ``gamma``,
      ``cluster_sizes`` (C,), ``num_clusters``, ``log_joint``,
      and ``log_joint_rest``, what float32 leaves of it.
    - **potential_energy** - minus the log joint.
    - **accept_prob** - 1, those steps left aside that have the labels integrated out.
    - **overflow** - whether the sweep wanted more cluster slots than there are.
    - **rng_key** - key of the next sweep.
    """

    z: dict[str, Array]
    potential_energy: Array
    accept_prob: Array
    overflow: Array
    rng_key: Array


class DPPlackettLuceGibbs(PoolKernel):
    r"""
    Gibbs sampler for the Dirichlet process mixture of nonparametric Plackett–Luce models.

    Clusters have weights of their own for items that they share, the atoms of a root gamma process
    (Pitt–Walker dependence, Section 5 of [1]). It is the sampler of Appendix D, with these steps
    put right: the counts :math:`u_{jk}` are drawn with :math:`w_{jk}` integrated out, exactly,
    instead of by its Metropolis steps (one of which compares a mass with a density); the sums of
    the weights are drawn given the counts, and not from the prior, which would change the
    posterior; φ is drawn by slice sampling with the counts summed over through Bessel functions,
    and so nothing is adapted. All labels are drawn at once, given shares of the clusters and slice
    variables [2, 3]; no truncation.

    Where clusters overlap, labels move only a little given the weights. Weights, shares and the
    number of clusters therefore also move with the labels integrated out, in Metropolis-Hastings
    steps that change, split and merge clusters, some of them with weights that EM has fitted first,
    and, where rankings times slots are few, in Hamiltonian trajectories. With tens of thousands of
    distinct rankings the steps are few, and chains can stay apart: compare the log joint of
    several. A chain starts from up to 20 groups, found by EM.

    Samples, of the K items that the rankings list, in item order: ``assignments`` (D, N),
    canonical, ``weights`` (D, C, K) and ``unseen_weight`` (D, C), together 1 in each cluster,
    ``total_weight`` (D, C), their sum before, ``root_weights`` (D, K) and ``root_unseen_weight``
    (D,), as they are, ``alpha``, ``phi``, ``gamma``, ``cluster_sizes`` (D, C), ``num_clusters``,
    ``log_joint``. Slots beyond ``num_clusters`` hold leftovers.

    The posterior is that of the model in which every item that is listed is an atom of the root.

    Run as ``mcmc.run(key, rankings)``. Under ``jit`` (``jit_model_args=True``) the kernel cannot
    tell which items are listed: pass ``rankings.of_listed_items()``.

    :param alpha: concentration α of the root process and of the clusters'; like φ and γ a number,
        or a distribution to learn it. :class:`~numpyro_rankings.distributions.FlatLog` is the
        prior 1/x of [1].
    :param phi: φ, how much the clusters resemble the root.
    :param gamma: concentration γ of the Dirichlet process.
    :param tau: inverse scale τ; only φ/τ matters.
    :param max_clusters: room for so many clusters, those tried included.
    :param num_marginal_steps: Metropolis-Hastings steps in a sweep with the labels integrated out.
        By default N, at least 10 and at most 3000; fewer where there are many distinct rankings.
    :param model: a user's model, of which the kernel is then a block in
        :class:`numpyro.infer.Gibbs` that owns its sites ``assignments``, ``weights``,
        ``unseen_weight``, ``total_weight``, ``root_weights`` and ``root_unseen_weight``. It calls
        :func:`~numpyro_rankings.models.dp_plackett_luce` with the same ``tau`` and
        ``max_clusters``, and scales of its own.
    :param judge_sites: as a block, observed sites of the model of batch shape (N,) that say
        something of each judge besides the ranking, as of
        :class:`~numpyro_rankings.infer.SliceGibbs`: entry i may depend on the label of judge i,
        which ``dp_plackett_luce`` returns, and on sites that other blocks own, in all slots of the
        same prior. Labels are then names of slots, not in order of first use, and there are no
        steps with the labels integrated out.

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
        check_scale("tau", tau, learnt=False)
        check_whole("max_clusters", max_clusters, 1)
        if num_marginal_steps is not None:
            check_whole("num_marginal_steps", num_marginal_steps, 0)
        self._num_marginal_steps = num_marginal_steps
        self._alpha, self._phi, self._gamma = alpha, phi, gamma
        self._tau, self._num_slots = float(tau), max_clusters
        self._is_block = model is not None
        scales = {"alpha": alpha, "phi": phi, "gamma": gamma}
        given = {k: isinstance(x, dist.Distribution) or x != 1.0 for k, x in scales.items()}
        leave_to_model(self._is_block, **given)
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

    def _scales(self, z: dict, args: tuple, kwargs: dict) -> Scales:
        if not self._is_block:
            return Scales(*(jnp.asarray(z[name], float) for name in Scales._fields))
        trace = self._sites_of_model({name: z[name] for name in _SITES}, args, kwargs)
        if self._judge_sites:
            check_prior_of_slots(trace["assignments"]["fn"], "assignments")
        values = (trace[f"process_{name}"]["value"] for name in Scales._fields)
        return Scales(*(jnp.asarray(value, float) for value in values))

    def _init(
        self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict
    ) -> DPPlackettLuceState:
        rankings, data = self._data(args, kwargs)
        key_labels, key_scales, rng_key = random.split(rng_key, 3)
        slots, n = self._num_slots, rankings.num_items
        given = {} if self._is_block else dict(init_params or {})
        start = {}
        for key, name in zip(random.split(key_scales, 3), Scales._fields, strict=True):
            start[name] = draw_start(key, given.get(name, getattr(self, f"_{name}")))
        num_seeds = min(slots, 20, data.num_rankings)
        labels, _ = start_mixture(key_labels, data, num_seeds, n)
        labels = jnp.asarray(given.get("assignments", labels), jnp.int32)
        who = data.members(labels, slots)
        chosen = times_chosen(data.choices, *who, slots, n).astype(float)
        of_all = chosen.sum(0)
        tau = self._tau
        root = of_all / of_all.sum() * n
        each = 1.0 / (chosen.sum(1) + 1.0)  # 1 less the other shares may have no digits
        z = {
            "assignments": labels,
            "weights": chosen * each[:, None],
            "unseen_weight": each,
            "total_weight": jnp.full(slots, n / tau),
            "root_weights": root / tau,
            "root_unseen_weight": jnp.asarray(1.0 / tau),
        }
        z = {name: jnp.asarray(given.get(name, value)) for name, value in z.items()}
        if not self._is_block:
            z |= start
        scales = self._scales(z, args, kwargs)
        total = z["total_weight"][:, None]
        measures = Measures(
            z["root_weights"],
            z["root_unseen_weight"],
            z["weights"] * total,
            z["unseen_weight"] * total[:, 0],
        )
        outcomes = self._log_outcomes_at(z, args, kwargs)
        if self._is_block:
            own = {name: z[name] for name in _SITES}
            self._check_dependents(
                own, "assignments", args, kwargs, lambda name, _: name in SITES_OF_DATA, 2
            )
        no = jnp.array(False)
        return self._state(z["assignments"], measures, scales, data, rng_key, no, outcomes)

    def _log_outcomes_at(self, z: dict, args: tuple, kwargs: dict) -> Array | None:
        own = {name: z[name] for name in _SITES}
        return self._log_outcomes(own, "assignments", self._num_slots, args, kwargs)

    def _sweep(self, state: DPPlackettLuceState, args: tuple, kwargs: dict) -> DPPlackettLuceState:
        rankings, data = self._data(args, kwargs, state.z)
        keys = random.split(state.rng_key, 8)
        rng_key, key_new, key_labels, key_gamma, key_times, key_measures, key_phi, key_steps = keys
        z, slots, tau = state.z, self._num_slots, self._tau
        scales = self._scales(z, args, kwargs)
        labels = z["assignments"].astype(jnp.int32)
        total = z["total_weight"][:, None]
        atoms, unseen = z["weights"] * total, z["unseen_weight"] * total[:, 0]
        measures = Measures(z["root_weights"], z["root_unseen_weight"], atoms, unseen)

        # 6: empty slots hold new clusters, then all labels at once
        sizes = count_by_label(labels, slots)
        new_atoms, new_unseen = draw_clusters(
            key_new, measures.root, measures.root_unseen, scales, tau, slots
        )
        empty = sizes == 0
        measures = measures._replace(
            atoms=jnp.where(empty[:, None], new_atoms, measures.atoms),
            unseen=jnp.where(empty, new_unseen, measures.unseen),
        )
        mass = measures.atoms.sum(1) + measures.unseen
        shares, pool = measures.atoms / mass[:, None], measures.unseen / mass

        # occupied slots first, as they are but where outcomes need the names of slots to stay
        first = jnp.argsort(empty, stable=True).astype(jnp.int32)
        outcomes, row_index = self._log_outcomes_at(z, args, kwargs), data.row_index
        if outcomes is not None:  # equal rankings are no longer alike
            row_index = jnp.arange(data.num_rankings, dtype=jnp.int32)

        def log_table(order: Array, num_active: Array) -> Array:
            order = first[order]
            table = log_choice_likelihoods(data.choices, shares[order], pool[order], num_active)
            return table if outcomes is None else table[:, data.row_index] + outcomes[order]

        partition = PartitionPrior(scales.gamma, None)
        place = inverse_ordering(first)
        labels, overflow = draw_labels_in_slices(
            key_labels, place[labels], sizes[first], partition, row_index, log_table
        )
        labels = first[labels]
        # labels, clusters and their number again, with the labels integrated out
        num_steps, glides = number_of_steps(
            self._num_marginal_steps, data.choices, data.num_rankings, slots, rankings.num_items
        )
        if num_steps > 0 and outcomes is None:
            labels, log_weights = update_weights_marginally(
                key_steps,
                labels,
                jnp.log(measures.atoms),
                measures.unseen,
                partition,
                PittWalkerWeights(measures.root, scales.phi, tau),
                data.choices,
                data.row_index,
                num_steps,
                glides=glides,
            )
            atoms = jnp.exp(log_weights)
            measures = measures._replace(atoms=atoms)
            mass = atoms.sum(1) + measures.unseen
            shares, pool = atoms / mass[:, None], measures.unseen / mass
        sizes = count_by_label(labels, slots)
        occupied = sizes > 0
        # 7: γ
        gamma = scales.gamma
        if self._has_prior("gamma"):
            gamma = update_alpha(key_gamma, partition, self._gamma, sizes)
        # 4: the waiting times
        who = data.members(labels, slots)
        in_play, total_time = sum_times_in_play(key_times, data, who, shares, pool)
        chosen = times_chosen(data.choices, *who, slots, rankings.num_items)
        alpha_prior = self._alpha if self._has_prior("alpha") else None
        measures, alpha = update_measures(
            key_measures,
            measures,
            scales,
            alpha_prior,
            occupied,
            chosen,
            in_play / mass[:, None],
            total_time / mass,
            tau,
        )
        scales = Scales(alpha, scales.phi, gamma)
        # 8: φ, with u integrated out
        if self._has_prior("phi"):
            key_phi, key_scale = random.split(key_phi)
            phi = update_dependence(key_phi, measures, scales, self._phi, occupied, tau)
            scales = scales._replace(phi=phi)
            measures, scales = update_common_scale(
                key_scale, measures, scales, self._phi, occupied, tau
            )
        return self._state(labels, measures, scales, data, rng_key, overflow, outcomes)

    def _has_prior(self, name: str) -> bool:
        return isinstance(getattr(self, f"_{name}"), dist.Distribution) and not self._is_block

    def _state(
        self,
        labels: Array,
        measures: Measures,
        scales: Scales,
        data: PlackettLuceData,
        rng_key: Array,
        overflow: Array,
        log_outcomes: Array | None = None,
    ) -> DPPlackettLuceState:
        """Labels in order of first use, the clusters after them, and the log joint."""
        slots = self._num_slots
        atoms, unseen = measures.atoms, measures.unseen
        if log_outcomes is None:
            labels, order = canonical_order(labels, slots)
            atoms, unseen = atoms[order], unseen[order]
        total = atoms.sum(1) + unseen
        z = {
            "assignments": labels.astype(label_dtype(slots)),
            "weights": atoms / total[:, None],
            "unseen_weight": unseen / total,
            "total_weight": total,
            "root_weights": measures.root,
            "root_unseen_weight": measures.root_unseen,
        }
        pair = self._log_joint(z, scales, data)
        log_joint, log_joint_rest = add_number(pair, log_of_own(labels, log_outcomes))
        if not self._is_block:
            sizes = count_by_label(labels, slots)
            z |= scales._asdict()
            z |= {
                "cluster_sizes": sizes,
                "num_clusters": jnp.sum(sizes > 0),
                "log_joint": log_joint,
                "log_joint_rest": log_joint_rest,
            }
        return DPPlackettLuceState(z, -log_joint, jnp.ones(()), overflow, rng_key)

    def _log_joint(self, z: dict, scales: Scales, data: PlackettLuceData) -> Pair:
        """log p(rankings, labels, measures, α, φ, γ), of the occupied clusters."""
        labels, slots = z["assignments"].astype(jnp.int32), self._num_slots
        sizes = count_by_label(labels, slots)
        log_joint = log_partition_prior(PartitionPrior(scales.gamma, None), sizes)
        log_joint += log_pitt_walker(
            RootMeasure(z["root_weights"], z["root_unseen_weight"]),
            ClusterShares(z["weights"], z["unseen_weight"], z["total_weight"]),
            sizes > 0,
            scales.alpha,
            scales.phi,
            self._tau,
        )
        for name in Scales._fields:
            if self._has_prior(name):
                log_joint += log_prior(getattr(self, f"_{name}"), getattr(scales, name))
        who = data.members(labels, slots)
        likelihood = log_likelihood_of(data, who, z["weights"], z["unseen_weight"])
        return add_number(likelihood, log_joint)

    def _potential(self, state: DPPlackettLuceState, args: tuple, kwargs: dict) -> Array:
        _, data = self._data(args, kwargs, state.z)
        log_joint, _ = self._log_joint(state.z, self._scales(state.z, args, kwargs), data)
        labels = state.z["assignments"].astype(jnp.int32)
        return -log_joint - log_of_own(labels, self._log_outcomes_at(state.z, args, kwargs))
