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
from numpyro_rankings.infer.base import GibbsKernel, find_rankings
from numpyro_rankings.infer.blocks import check_judge_sites, check_prior_of_slots, log_of_own
from numpyro_rankings.infer.checks import check_only_rankings, check_scale, leave_to_model
from numpyro_rankings.infer.mixture.labels import canonical_order, draw_labels, draw_weights
from numpyro_rankings.infer.mixture.members import Members, label_dtype
from numpyro_rankings.infer.mixture.prior import PartitionPrior, log_partition_prior, update_alpha
from numpyro_rankings.infer.plackett_luce.data import PlackettLuceData, as_data, log_likelihood_of
from numpyro_rankings.infer.plackett_luce.label_free import (
    number_of_steps,
    update_weights_marginally,
)
from numpyro_rankings.infer.plackett_luce.start import start_mixture
from numpyro_rankings.infer.plackett_luce.target import GammaWeights
from numpyro_rankings.infer.plackett_luce.waiting_times import normalise, sum_times_in_play
from numpyro_rankings.infer.priors import base_of, draw_start, log_prior
from numpyro_rankings.models import plackett_luce
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.choices import log_choice_likelihoods, times_chosen
from numpyro_rankings.ops.pairs import Pair, add_number
from numpyro_rankings.ops.sampling import sample_log_gamma
from numpyro_rankings.ops.sums import count_by_label


class PlackettLuceState(NamedTuple):
    """
    - **z** - ``weights`` (n,) and ``log_joint``; with K > 1 components ``weights`` (K, n),
      ``assignments`` (N,), ``cluster_sizes`` (K,), ``num_clusters``, ``alpha`` and ``log_joint``.
      ``log_joint_rest`` is what float32 leaves of the log joint.
    - **potential_energy** - minus the log joint.
    - **accept_prob** - 1, those steps left aside that have the labels integrated out.
    - **overflow** - False: a finite mixture has room for all.
    - **rng_key** - key of the next sweep.
    """

    z: dict[str, Array]
    potential_energy: Array
    accept_prob: Array
    overflow: Array
    rng_key: Array


class Hyper(NamedTuple):
    """What a sweep is conditioned on: **shape** (n,), and the **partition**'s prior."""

    shape: Array
    partition: PartitionPrior


class PlackettLuceGibbs(GibbsKernel):
    r"""
    Gibbs sampler for the Plackett–Luce model with gamma priors, or a finite mixture of it.

    Each sweep draws a waiting time for every choice, and given these every weight from its
    conditional, a gamma distribution [1, eq. 5; 2]. Of up to 12 items, choices from the same items
    are taken together, whatever lists they belong to. The scale of the weights, on which the
    rankings say nothing, is drawn anew from its own conditional. With K > 1 components all labels
    are drawn at once, given shares of the components; weights and shares also move with the labels
    integrated out, in Metropolis-Hastings steps and, where rankings times components are few, in
    Hamiltonian trajectories. A chain starts at the best of up to 20 optima of the likelihood, found
    by EM from random rankings.

    Samples: ``weights`` (D, n), normalised, and ``log_joint``. With K > 1: ``weights`` (D, K, n),
    ``assignments`` (D, N), canonical, ``cluster_sizes`` (D, K), ``num_clusters``, ``alpha``,
    ``log_joint``.

    Run as ``mcmc.run(key, rankings)``; choice sets make them subset rankings.

    :param shape: a > 0 of the prior :math:`w_k \sim \mathrm{Gamma}(a_k, b)`, a number or one for
        each item, (n,).
    :param rate: b > 0. The normalised weights are Dirichlet(a) whatever it is.
    :param num_components: K.
    :param alpha: the shares of the components are symmetric Dirichlet(α/K); a number or a
        distribution.
    :param num_marginal_steps: Metropolis-Hastings steps in a sweep with the labels integrated out.
        By default N, at least 10 and at most 3000; fewer where there are many distinct rankings.
    :param model: a user's model, of which the kernel is then a block in
        :class:`numpyro.infer.Gibbs`. Its site ``weights`` must be Dirichlet, with K > 1 in a plate
        of the components, and its site ``assignments`` a
        :class:`~numpyro_rankings.distributions.FiniteDirichletPartition`. The rankings must have
        the likelihood of :func:`~numpyro_rankings.models.plackett_luce`.
    :param sites: other names for these sites, for instance ``{"weights": "w"}``.
    :param judge_sites: as a block with K > 1, observed sites of the model of batch shape (N,) that
        say something of each judge besides the ranking, as of
        :class:`~numpyro_rankings.infer.SliceGibbs`: entry i may depend on the label of judge i and
        on sites that other blocks own, in all components of the same prior. Labels are then names
        of components, not in order of first use: give their prior ``validate_args=False``. There
        are no steps with the labels integrated out.

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
        model: Callable | None = None,
        sites: Mapping[str, str] | None = None,
        judge_sites: Sequence[str] = (),
    ) -> None:
        array = np.asarray(shape)
        if array.dtype.kind not in "iuf" or not np.all((array > 0) & (array < np.inf)):
            raise ValueError(f"shape must be positive, a number or (n,) of them, got {shape!r}")
        if array.ndim > 1:
            raise ValueError(f"shape must be a number or have shape (n,), got {array.shape}")
        if isinstance(rate, dist.Distribution):
            raise ValueError("rate must be a number: the normalised weights do not depend on it")
        check_scale("rate", rate, learnt=False)
        check_scale("alpha", alpha)
        check_whole("num_components", num_components, 1)
        if num_components == 1 and isinstance(alpha, dist.Distribution):
            raise ValueError("with one component there is no alpha to learn: num_components=")
        if num_marginal_steps is not None:
            check_whole("num_marginal_steps", num_marginal_steps, 0)
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
            raise ValueError("judge_sites are of judges in clusters: num_components=")
        names = ["weights", "assignments"][: 2 if num_components > 1 else 1]
        self._sites = {**{name: name for name in names}, **(sites or {})}
        if set(self._sites) != set(names):
            raise ValueError(f"sites can name {sorted(names)}, got {sorted(self._sites)}")
        if model is None:
            model = partial(plackett_luce, shape=shape, num_components=num_components, alpha=alpha)
        super().__init__(model)

    @property
    def num_components(self) -> int:
        """K."""
        return self._num_components

    def _check(self, args: tuple, kwargs: dict) -> None:
        self._check_use_as_block()
        rankings = find_rankings(args, kwargs)
        if not self._is_block:
            check_only_rankings(args, kwargs)
        if rankings.num_items < 2:
            raise ValueError("a ranking needs at least 2 items")
        if np.shape(self._shape) not in ((), (rankings.num_items,)):
            raise ValueError(
                f"shape must be a number or have one entry for each of the {rankings.num_items} "
                f"items, got shape {np.shape(self._shape)}"
            )

    def _hyper(self, z: dict, alpha: Array | None, args: tuple, kwargs: dict) -> Hyper:
        """The priors; as a block, those of the user's model given the sibling sites."""
        if not self._is_block:
            n = find_rankings(args, kwargs).num_items
            alpha = jnp.asarray(self._alpha if alpha is None else alpha, float)
            shape = jnp.broadcast_to(jnp.asarray(self._shape, float), (n,))
            return Hyper(shape, PartitionPrior(alpha, self._num_components))
        values = {name: z[name] for name in self._sites.values()}
        trace = self._sites_of_model(values, args, kwargs)
        name, alpha = self._sites["weights"], jnp.ones(())
        prior = trace[name]["fn"]
        prior = base_of(prior)
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
        return Hyper(shape, PartitionPrior(alpha, self._num_components))

    def _init(
        self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict
    ) -> PlackettLuceState:
        rankings = find_rankings(args, kwargs)
        data, n, slots = as_data(rankings), rankings.num_items, self._num_components
        key_labels, key_alpha, rng_key = random.split(rng_key, 3)
        given = {} if self._is_block else dict(init_params or {})
        alpha = given.get("alpha")
        if alpha is None and isinstance(self._alpha, dist.Distribution):
            alpha = draw_start(key_alpha, self._alpha)
        labels, weights = start_mixture(key_labels, data, slots, n)
        if "assignments" in given and slots > 1:
            labels = given["assignments"].astype(jnp.int32)
        if "weights" in given:
            weights = jnp.asarray(given["weights"], float).reshape(slots, n)
        z = {self._sites["weights"]: weights if slots > 1 else weights[0]}
        if slots > 1:
            z[self._sites["assignments"]] = labels
        hyper = self._hyper(z, alpha, args, kwargs)
        outcomes = self._log_outcomes_at(z, args, kwargs)
        if self._is_block:
            site = self._sites.get("assignments", "")
            self._check_dependents(
                z, site, args, kwargs, lambda _, fn: isinstance(fn, TopTPlackettLuce)
            )
        return self._state(labels, weights, hyper, data, rng_key, outcomes)

    def _log_outcomes_at(self, z: dict, args: tuple, kwargs: dict) -> Array | None:
        own = {name: z[name] for name in self._sites.values()}
        site = self._sites.get("assignments", "")
        return self._log_outcomes(own, site, self._num_components, args, kwargs)

    def _sweep(self, state: PlackettLuceState, args: tuple, kwargs: dict) -> PlackettLuceState:
        data, slots = as_data(find_rankings(args, kwargs)), self._num_components
        hyper = self._hyper(state.z, state.z.get("alpha"), args, kwargs)
        rng_key, key_labels, key_weights, key_alpha, key_steps = random.split(state.rng_key, 5)
        weights, labels = self._parameters(state.z, data)
        outcomes = self._log_outcomes_at(state.z, args, kwargs)
        if slots > 1:
            labels = _update_labels(key_labels, labels, weights, hyper.partition, data, outcomes)
        if slots > 1 and outcomes is None:
            moves = number_of_steps(
                self._num_marginal_steps, data.choices, data.num_rankings, slots, weights.shape[1]
            )
            labels, weights = _update_without_labels(
                key_steps, labels, weights, hyper, data, *moves
            )
        who = data.members(labels, slots)
        weights = _update_weights(key_weights, weights, hyper.shape, self._rate, who, data)
        if slots > 1 and isinstance(self._alpha, dist.Distribution) and not self._is_block:
            sizes = count_by_label(labels, slots)
            alpha = update_alpha(key_alpha, hyper.partition, self._alpha, sizes)
            hyper = hyper._replace(partition=hyper.partition._replace(alpha=alpha))
        return self._state(labels, weights, hyper, data, rng_key, outcomes)

    def _parameters(self, z: dict, data: PlackettLuceData) -> tuple[Array, Array]:
        """Weights (K, n) and labels (N,) of a state."""
        weights = z[self._sites["weights"]]
        if self._num_components == 1:
            return weights[None], jnp.zeros(data.num_rankings, jnp.int32)
        return weights, z[self._sites["assignments"]].astype(jnp.int32)

    def _state(
        self,
        labels: Array,
        weights: Array,
        hyper: Hyper,
        data: PlackettLuceData,
        rng_key: Array,
        log_outcomes: Array | None = None,
    ) -> PlackettLuceState:
        """Labels in order of first use, the weights after them, and the log joint."""
        slots = self._num_components
        if slots > 1 and log_outcomes is None:
            labels, order = canonical_order(labels, slots)
            weights = weights[order]
        pair = self._log_joint(labels, weights, hyper, data)
        log_joint, log_joint_rest = add_number(pair, log_of_own(labels, log_outcomes))
        z = {self._sites["weights"]: weights if slots > 1 else weights[0]}
        if slots > 1:
            z[self._sites["assignments"]] = labels.astype(label_dtype(slots))
        if not self._is_block:
            if slots > 1:
                sizes = count_by_label(labels, slots)
                z |= {
                    "cluster_sizes": sizes,
                    "num_clusters": jnp.sum(sizes > 0),
                    "alpha": hyper.partition.alpha,
                }
            z |= {"log_joint": log_joint, "log_joint_rest": log_joint_rest}
        return PlackettLuceState(z, -log_joint, jnp.ones(()), jnp.array(False), rng_key)

    def _log_joint(
        self, labels: Array, weights: Array, hyper: Hyper, data: PlackettLuceData
    ) -> Pair:
        """log p(rankings, labels, weights, α), of the occupied components."""
        slots = self._num_components
        sizes = count_by_label(labels, slots)
        shape = jnp.broadcast_to(hyper.shape, weights.shape)
        per_cluster = gammaln(shape.sum(1)) - gammaln(shape).sum(1)
        per_cluster += jnp.sum((shape - 1.0) * jnp.log(weights), axis=1)
        log_joint = jnp.sum(jnp.where(sizes > 0, per_cluster, 0.0))
        if slots > 1:
            log_joint += log_partition_prior(hyper.partition, sizes)
            if isinstance(self._alpha, dist.Distribution) and not self._is_block:
                log_joint += log_prior(self._alpha, hyper.partition.alpha)
        likelihood = log_likelihood_of(data, data.members(labels, slots), weights, None)
        return add_number(likelihood, log_joint)

    def _potential(self, state: PlackettLuceState, args: tuple, kwargs: dict) -> Array:
        data = as_data(find_rankings(args, kwargs))
        hyper = self._hyper(state.z, state.z.get("alpha"), args, kwargs)
        weights, labels = self._parameters(state.z, data)
        outcomes = self._log_outcomes_at(state.z, args, kwargs)
        return -self._log_joint(labels, weights, hyper, data)[0] - log_of_own(labels, outcomes)


def _update_weights(
    key: Array, weights: Array, shape: Array, rate: Any, who: Members, data: PlackettLuceData
) -> Array:
    """The waiting times given the weights, then the weights given the times (eq. 5)."""
    num_clusters, num_items = weights.shape
    shape = jnp.broadcast_to(shape, weights.shape)
    key_scale, key_times, key_weights = random.split(key, 3)
    # w = s p: the scale s is Gamma(Σ a, b), independent of p, and only p is kept
    log_scale = sample_log_gamma(key_scale, shape.sum(1)) - jnp.log(rate)
    in_play, _ = sum_times_in_play(key_times, data, who, weights, None)
    chosen = times_chosen(data.choices, *who, num_clusters, num_items)
    # times of masses in p are s times those of masses in w
    log_rate = jnp.log(rate + in_play * jnp.exp(-log_scale)[:, None])
    return normalise(sample_log_gamma(key_weights, shape + chosen) - log_rate)


def _update_labels(
    key: Array,
    labels: Array,
    weights: Array,
    prior: PartitionPrior,
    data: PlackettLuceData,
    log_outcomes: Array | None,
) -> Array:
    """The shares of the components given the labels, then all labels given the shares."""
    key_shares, key_labels = random.split(key)
    slots = weights.shape[0]
    sizes = count_by_label(labels, slots)
    log_shares, _, _ = draw_weights(key_shares, sizes, labels, prior)
    table = log_choice_likelihoods(data.choices, weights, None, jnp.array(slots))
    table += log_shares[:, None]
    row_index = data.row_index
    if log_outcomes is not None:  # equal rankings are no longer alike
        table = table[:, row_index] + log_outcomes
        row_index = jnp.arange(data.num_rankings, dtype=jnp.int32)
    return draw_labels(key_labels, table, row_index)


def _update_without_labels(
    key: Array,
    labels: Array,
    weights: Array,
    hyper: Hyper,
    data: PlackettLuceData,
    num_steps: int,
    glides: bool,
) -> tuple[Array, Array]:
    """Weights and shares with the labels integrated out, then the labels."""
    slots, num_items = weights.shape
    if num_steps == 0:
        return labels, weights
    key_empty, key_scale, key_steps = random.split(key, 3)
    occupied = count_by_label(labels, slots) > 0
    shape = jnp.broadcast_to(hyper.shape, (slots, num_items))
    log_scale = sample_log_gamma(key_scale, shape.sum(1))
    log_weights = jnp.log(weights) + log_scale[:, None]
    fresh = sample_log_gamma(key_empty, shape)
    labels, log_weights = update_weights_marginally(
        key_steps,
        labels,
        jnp.where(occupied[:, None], log_weights, fresh),
        jnp.zeros(slots),
        hyper.partition,
        GammaWeights(hyper.shape),
        data.choices,
        data.row_index,
        num_steps,
        glides=glides,
    )
    return labels, normalise(log_weights)
