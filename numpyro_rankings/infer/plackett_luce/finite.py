"""Gibbs kernel for the Plackett–Luce model and finite mixtures of it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random
from jax.scipy.special import gammaln

from numpyro_rankings.distributions import FiniteDirichletPartition, TopTPlackettLuce
from numpyro_rankings.families import PLACKETT_LUCE, RankingFamily
from numpyro_rankings.infer.base import GibbsState, find_rankings
from numpyro_rankings.infer.blocks import check_judge_sites, check_prior_of_slots, log_judges_of
from numpyro_rankings.infer.checks import (
    check_positive_array,
    check_scale,
    check_whole_or_none,
    leave_to_model,
    site_names,
)
from numpyro_rankings.infer.latent_orders import PlackettLuceLists, plackett_luce_lists
from numpyro_rankings.infer.mixture.labels import canonical_order, update_labels_at_once
from numpyro_rankings.infer.mixture.membership import label_dtype
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.plackett_luce.data import (
    PlackettLuceData,
    as_data,
    check_shape_for,
    log_likelihood_of,
)
from numpyro_rankings.infer.plackett_luce.label_free import (
    WeightedLabels,
    choose_effort_for,
    move_weights_without_labels,
)
from numpyro_rankings.infer.plackett_luce.start import start_mixture
from numpyro_rankings.infer.plackett_luce.target import GammaWeights
from numpyro_rankings.infer.plackett_luce.waiting_times import normalise, sum_times_in_play
from numpyro_rankings.infer.priors import base_of
from numpyro_rankings.infer.ranking_kernel import MixtureKernel
from numpyro_rankings.models import plackett_luce
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.choices import log_choice_likelihoods, times_chosen
from numpyro_rankings.ops.pairs import Pair, add_number
from numpyro_rankings.ops.sampling import sample_log_gamma
from numpyro_rankings.ops.sums import count_by_label
from numpyro_rankings.rankings import Orders


class PlackettLuceMixture(NamedTuple):
    """State of a sweep."""

    labels: Array  # (N,) int32
    weights: Array  # (K, n), normalised
    partition: PartitionPrior  # prior of the labels, with the current α


class PlackettLuceInputs(NamedTuple):
    """Inputs of a sweep."""

    data: PlackettLuceData
    shape: Array  # shape of the gamma priors of the weights, (n,)
    log_judges: Array | None  # log probability of each judge's sites in each component, (K, N)


class PlackettLuceGibbs(MixtureKernel):
    r"""
    Gibbs sampler for the Plackett–Luce model with gamma priors, or a finite mixture of it.

    Each sweep draws a waiting time for every choice and, given these, every weight from its
    conditional, a gamma distribution [1, eq. 5; 2]. With up to 12 items, choices from the same set
    are pooled over all lists. The likelihood does not depend on the scale of the weights, which is
    drawn from its own conditional. With K > 1 components all labels are drawn at once, given the
    shares of the components; weights and shares also move with the labels integrated out, by
    Metropolis-Hastings steps and, where rankings times components are few, by Hamiltonian
    trajectories. A chain of a mixture starts at the best of four optima of the likelihood, each
    found by EM with random changes, in samples if there are many rankings.

    Samples: ``weights`` (D, n), normalised, and ``log_joint``. With K > 1: ``weights`` (D, K, n),
    ``assignments`` (D, N), canonical, ``cluster_sizes`` (D, K), ``num_clusters``, ``alpha``,
    ``log_joint``.

    Run as ``mcmc.run(key, rankings)``. The rankings may be subset rankings, with choice sets, or
    :class:`~numpyro_rankings.PartialOrders`: then each sweep also draws the judges' orderings, in
    the field ``orderings`` of the state. Of :class:`~numpyro_rankings.Comparisons`, which may be
    mistakes, it draws ``mistake_probability`` (D,) too.

    :param shape: a > 0 of the prior :math:`w_k \sim \mathrm{Gamma}(a_k, b)`, a number or one for
        each item, (n,).
    :param rate: b > 0. The normalised weights are Dirichlet(a) for any b.
    :param num_components: K.
    :param alpha: the shares of the components are symmetric Dirichlet(α/K); a number or a
        distribution.
    :param num_marginal_steps: Metropolis-Hastings steps in a sweep with the labels integrated out.
        By default 4 N, at least 10 and at most 2000; fewer with many distinct rankings.
    :param mistake_prior: a and b of the prior Beta(a, b) of ``mistake_probability``, truncated to
        (0, 1/2).
    :param model: your own model, in which the kernel is a block of
        :class:`numpyro.infer.Gibbs`. Its site ``weights`` must be Dirichlet, with K > 1 in a plate
        of the components, and its site ``assignments`` a
        :class:`~numpyro_rankings.distributions.FiniteDirichletPartition`. The rankings must have
        the likelihood of :func:`~numpyro_rankings.models.plackett_luce`.
    :param sites: other names for these sites, for instance ``{"weights": "w"}``.
    :param judge_sites: as a block with K > 1, observed sites of the model of batch shape (N,) that
        depend on the label of each judge, as in :class:`~numpyro_rankings.infer.SliceGibbs`: entry
        i may depend on the label of judge i and on sites that other blocks own, whose prior must be
        the same in all components. Labels then name components and are not in order of first use:
        give their prior ``validate_args=False``. There are no steps with the labels integrated
        out.

    **References:**

    1. Caron, F., Teh, Y. W., Murphy, T. B. (2014), "Bayesian nonparametric Plackett–Luce models
       for the analysis of preferences for college degree programmes".
    2. Caron, F., Doucet, A. (2012), "Efficient Bayesian inference for generalized Bradley–Terry
       models".

    .. doctest::

       >>> import jax
       >>> from numpyro.infer import MCMC
       >>> from numpyro_rankings import load_dataset
       >>> from numpyro_rankings.infer import PlackettLuceGibbs
       >>> mcmc = MCMC(PlackettLuceGibbs(), num_warmup=50, num_samples=500, progress_bar=False)
       >>> mcmc.run(jax.random.key(0), load_dataset("apa1980"))
       >>> [round(float(w), 2) for w in mcmc.get_samples()["weights"].mean(0)]
       [0.23, 0.18, 0.21, 0.19, 0.2]
    """

    _takes_judge_sites = True

    def __init__(
        self,
        shape: Any = 1.0,
        rate: float = 1.0,
        num_components: int = 1,
        alpha: float | dist.Distribution = 1.0,
        *,
        num_marginal_steps: int | None = None,
        mistake_prior: tuple[float, float] = (1.0, 3.0),
        model: Callable | None = None,
        sites: Mapping[str, str] | None = None,
        judge_sites: Sequence[str] = (),
    ) -> None:
        array = np.asarray(shape)
        check_positive_array("shape", shape, "a positive number or n of them")
        if array.ndim > 1:
            raise ValueError(f"shape must be a number or have shape (n,), got {array.shape}")
        if isinstance(rate, dist.Distribution):
            raise ValueError("rate must be a number: the normalised weights do not depend on it")
        check_scale("rate", rate, learned=False)
        check_scale("alpha", alpha)
        check_whole("num_components", num_components, 1)
        if num_components == 1 and isinstance(alpha, dist.Distribution):
            raise ValueError("with one component there is no alpha to learn: set num_components")
        check_whole_or_none("num_marginal_steps", num_marginal_steps, 0)
        self._num_marginal_steps = num_marginal_steps
        self._shape, self._rate, self._alpha = shape, rate, alpha
        self._num_components = num_components
        self._is_block = model is not None
        leave_to_model(
            self._is_block,
            alpha=isinstance(alpha, dist.Distribution) or alpha != 1.0,
            shape=bool(np.any(array != 1.0)),
        )
        self._judge_sites = check_judge_sites(judge_sites, self._is_block)
        if self._judge_sites and num_components == 1:
            raise ValueError("judge_sites need a mixture: set num_components")
        names = ["weights", "assignments"][: 2 if num_components > 1 else 1]
        self._sites = site_names(names, sites)
        if model is None:
            model = partial(plackett_luce, shape=shape, num_components=num_components, alpha=alpha)
        super().__init__(model, mistake_prior)

    @property
    def ranking_family(self) -> RankingFamily:
        """Plackett–Luce models."""
        return PLACKETT_LUCE

    @property
    def num_components(self) -> int:
        """K."""
        return self._num_components

    def padded(self, num_components: int) -> "PlackettLuceGibbs | None":
        if self._is_block:
            return None
        wide = PlackettLuceGibbs(
            self._shape,
            self._rate,
            num_components,
            self._alpha,
            num_marginal_steps=self._num_marginal_steps,
            mistake_prior=self._mistake_prior,
        )
        return wide._with_number_of_run()

    def _check(self, args: tuple, kwargs: dict) -> None:
        check_shape_for(self._shape, self._checked_rankings(args, kwargs))

    # -- inputs of a sweep ---------------------------------------------------------------------

    def _read(
        self, z: dict, args: tuple, kwargs: dict
    ) -> tuple[PlackettLuceMixture, PlackettLuceInputs]:
        """Return the state and the inputs of a sweep."""
        data = as_data(find_rankings(args, kwargs))
        weights, labels = z[self._sites["weights"]], jnp.zeros(data.num_labels, jnp.int32)
        if self._num_components == 1:
            weights = weights[None]
        else:
            labels = z[self._sites["assignments"]].astype(jnp.int32)
        if self._is_block:
            shape, partition = self._read_priors(z, args, kwargs)
        else:
            shape = jnp.broadcast_to(jnp.asarray(self._shape, float), weights.shape[1:])
            alpha = jnp.asarray(z.get("alpha", self._alpha), float)
            partition = PartitionPrior(alpha, self._num_components, num_used=self._num_used(kwargs))
        log_judges = self._log_judge_sites(z, self._num_components, args, kwargs)
        mixture = PlackettLuceMixture(labels, weights, partition)
        return mixture, PlackettLuceInputs(data, shape, log_judges)

    def _read_priors(self, z: dict, args: tuple, kwargs: dict) -> tuple[Array, PartitionPrior]:
        """Read the priors of weights and labels from a user's model."""
        trace = self._trace_model(self._own(z), args, kwargs)
        name, alpha = self._sites["weights"], jnp.ones(())
        prior = base_of(trace[name]["fn"])
        if not isinstance(prior, dist.Dirichlet):
            raise ValueError(f"site {name!r} must have a Dirichlet prior, not {prior!r}")
        if self._num_components > 1:
            site = self._sites["assignments"]
            partition = trace[site]["fn"]
            if (
                not isinstance(partition, FiniteDirichletPartition)
                or partition.num_components != self._num_components
            ):
                raise ValueError(
                    f"site {site!r} must have a FiniteDirichletPartition of "
                    f"{self._num_components} components as its prior, not {partition!r}"
                )
            if self._judge_sites:
                check_prior_of_slots(partition, site)
            alpha = jnp.asarray(partition.concentration, float)
        shape = jnp.asarray(prior.concentration, float)
        if shape.ndim > 1:
            raise ValueError(
                f"site {name!r} must have the same prior in all components: a Dirichlet of batch "
                f"shape () in a plate, not one of batch shape {shape.shape[:-1]}"
            )
        return shape, PartitionPrior(alpha, self._num_components)

    def _lists(self, z: dict, args: tuple, kwargs: dict, orders: Orders) -> PlackettLuceLists:
        mixture, _ = self._read(z, args, kwargs)
        return plackett_luce_lists(orders, mixture.labels, mixture.weights)

    # -- the chain -----------------------------------------------------------------------------

    def _init(
        self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict
    ) -> GibbsState:
        rankings = find_rankings(args, kwargs)
        data, n, slots = as_data(rankings), rankings.num_items, self._num_components
        key_labels, key_alpha, rng_key = random.split(rng_key, 3)
        start_values = {} if self._is_block else dict(init_params or {})
        labels, weights = start_mixture(key_labels, data, slots, n, self._num_used(kwargs))
        if "assignments" in start_values and slots > 1:
            labels = start_values["assignments"].astype(jnp.int32)
        if "weights" in start_values:
            weights = jnp.asarray(start_values["weights"], float).reshape(slots, n)
        z = {self._sites["weights"]: weights if slots > 1 else weights[0]}
        if slots > 1:
            z[self._sites["assignments"]] = jnp.where(data.is_padding, slots, labels)
        own = dict(z)
        z |= self._start_alpha(key_alpha, start_values)
        mixture, inputs = self._read(z, args, kwargs)
        if self._is_block:
            self._check_dependents(
                own, args, kwargs, lambda _, fn: isinstance(fn, TopTPlackettLuce)
            )
        return self._state(mixture, inputs, rng_key)

    def _sweep(self, state: GibbsState, args: tuple, kwargs: dict) -> GibbsState:
        rng_key, key_labels, key_weights, key_alpha, key_moves = random.split(state.rng_key, 5)
        mixture, inputs = self._read(state.z, args, kwargs)
        if self._num_components > 1:
            mixture = _update_labels(key_labels, mixture, inputs)
            mixture = self._move_without_labels(key_moves, mixture, inputs)
        mixture = _update_weights(key_weights, mixture, inputs, self._rate)  # eq. (5)
        if self._learned_prior("alpha") is not None:
            sizes = count_by_label(mixture.labels, self._num_components)
            partition = self._update_alpha(key_alpha, mixture.partition, sizes)
            mixture = mixture._replace(partition=partition)
        return self._state(mixture, inputs, rng_key)

    def _move_without_labels(
        self, key: Array, mixture: PlackettLuceMixture, inputs: PlackettLuceInputs
    ) -> PlackettLuceMixture:
        """Move weights and shares with the labels integrated out, then draw the labels."""
        data, (slots, num_items) = inputs.data, mixture.weights.shape
        effort = choose_effort_for(
            self._num_marginal_steps, data.choices, data.num_labels, slots, num_items
        )
        if inputs.log_judges is not None or effort.num_steps == 0:
            return mixture
        key_empty, key_scale, key_moves = random.split(key, 3)
        # the moves need unnormalised weights, and prior draws in empty slots
        occupied = count_by_label(mixture.labels, slots) > 0
        shape = jnp.broadcast_to(inputs.shape, (slots, num_items))
        log_scale = sample_log_gamma(key_scale, shape.sum(1))
        log_weights = jnp.log(mixture.weights) + log_scale[:, None]
        log_weights = jnp.where(occupied[:, None], log_weights, sample_log_gamma(key_empty, shape))
        clusters = WeightedLabels(mixture.labels, log_weights, jnp.zeros(slots))
        prior = GammaWeights(inputs.shape)
        clusters = move_weights_without_labels(
            key_moves, clusters, mixture.partition, prior, data, effort
        )
        return mixture._replace(labels=clusters.labels, weights=normalise(clusters.log_weights))

    def _state(
        self, mixture: PlackettLuceMixture, inputs: PlackettLuceInputs, rng_key: Array
    ) -> GibbsState:
        """Put the labels in order of first use, and the weights after them."""
        slots = self._num_components
        if slots > 1 and inputs.log_judges is None:
            labels, order = canonical_order(mixture.labels, slots)
            mixture = mixture._replace(labels=labels, weights=mixture.weights[order])
        log_joint, log_joint_rest = self._log_joint(mixture, inputs)
        z = {self._sites["weights"]: mixture.weights if slots > 1 else mixture.weights[0]}
        if slots > 1:
            z[self._sites["assignments"]] = mixture.labels.astype(label_dtype(slots))
        if not self._is_block:
            if slots > 1:
                sizes = count_by_label(mixture.labels, slots)
                z |= {
                    "cluster_sizes": sizes,
                    "num_clusters": jnp.sum(sizes > 0),
                    "alpha": mixture.partition.alpha,
                }
            z |= {"log_joint": log_joint, "log_joint_rest": log_joint_rest}
        return GibbsState(z, -log_joint, jnp.ones(()), jnp.array(False), rng_key)

    def _log_joint(self, mixture: PlackettLuceMixture, inputs: PlackettLuceInputs) -> Pair:
        """Return log p(rankings, judges' sites, labels, weights, α), of occupied components."""
        slots, weights = self._num_components, mixture.weights
        sizes = count_by_label(mixture.labels, slots)
        shape = jnp.broadcast_to(inputs.shape, weights.shape)
        per_cluster = gammaln(shape.sum(1)) - gammaln(shape).sum(1)
        per_cluster += jnp.sum((shape - 1.0) * jnp.log(weights), axis=1)
        log_joint = jnp.sum(jnp.where(sizes > 0, per_cluster, 0.0))
        if slots > 1:
            log_joint += mixture.partition.log_prob(sizes)
            log_joint = self._add_log_priors(log_joint, alpha=mixture.partition.alpha)
        membership = inputs.data.membership(mixture.labels, slots)
        pair = add_number(log_likelihood_of(inputs.data, membership, weights, None), log_joint)
        return add_number(pair, log_judges_of(mixture.labels, inputs.log_judges))

    def _potential(self, state: GibbsState, args: tuple, kwargs: dict) -> Array:
        return -self._log_joint(*self._read(state.z, args, kwargs))[0]


def _update_labels(
    key: Array, mixture: PlackettLuceMixture, inputs: PlackettLuceInputs
) -> PlackettLuceMixture:
    """Draw the shares of the components given the labels, then all labels given the shares."""
    weights, data = mixture.weights, inputs.data
    slots = len(weights)

    def log_table(order: Array, num_active: Array) -> Array:
        return log_choice_likelihoods(data.choices, weights[order], None, num_active)

    sizes = count_by_label(mixture.labels, slots)
    labels, _ = update_labels_at_once(
        key, mixture.labels, sizes, mixture.partition, data.row_index, log_table, inputs.log_judges
    )
    return mixture._replace(labels=labels)


def _update_weights(
    key: Array, mixture: PlackettLuceMixture, inputs: PlackettLuceInputs, rate: float
) -> PlackettLuceMixture:
    """Draw the waiting times given the weights, then the weights given the times (eq. 5)."""
    data, (num_components, num_items) = inputs.data, mixture.weights.shape
    membership = data.membership(mixture.labels, num_components)
    shape = jnp.broadcast_to(inputs.shape, mixture.weights.shape)
    key_scale, key_times, key_weights = random.split(key, 3)
    # w = s p: the scale s is Gamma(Σ a, b), independent of p, and only p is kept
    log_scale = sample_log_gamma(key_scale, shape.sum(1)) - jnp.log(rate)
    in_play, _ = sum_times_in_play(key_times, data, membership, mixture.weights, None)
    chosen = times_chosen(data.choices, *membership, num_components, num_items)
    # waiting times scale with 1/weight: for masses in p they are s times those for masses in w
    log_rate = jnp.log(rate + in_play * jnp.exp(-log_scale)[:, None])
    log_weights = sample_log_gamma(key_weights, shape + chosen) - log_rate
    return mixture._replace(weights=normalise(log_weights))
