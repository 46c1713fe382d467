"""Gibbs kernel for the Plackett–Luce model of a (generalised) gamma process."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.infer.base import GibbsState, log_joint_of
from numpyro_rankings.infer.checks import check_scale, leave_to_model
from numpyro_rankings.infer.mixture.membership import Membership
from numpyro_rankings.infer.not_finite import check_not_stopped
from numpyro_rankings.infer.plackett_luce.data import PlackettLuceData, log_likelihood_of
from numpyro_rankings.infer.plackett_luce.measures import update_concentration
from numpyro_rankings.infer.plackett_luce.pool import SITES_OF_DATA, PoolKernel
from numpyro_rankings.infer.plackett_luce.waiting_times import sum_times_in_play
from numpyro_rankings.infer.priors import draw_start
from numpyro_rankings.models import gamma_process_plackett_luce
from numpyro_rankings.ops.choices import times_chosen
from numpyro_rankings.ops.pairs import Pair, add_number
from numpyro_rankings.ops.random_measures import log_gamma_process, log_tempered_stable
from numpyro_rankings.ops.sampling import sample_log_gamma, slice_sample
from numpyro_rankings.ops.stable import sample_tilted_stable

LEAST_SIGMA = 1e-3  # below, float32 cannot hold ln(α/σ)/σ; the gamma process is as good


class PoolWeights(NamedTuple):
    """State of a sweep: the weights of the K listed items and of all others, normalised together.

    The inverse scale of the unseen items, ``log_unseen_rate``, is in units of these weights.
    """

    weights: Array  # (K,)
    unseen: Array
    log_total: Array  # log of the sum of all weights before
    alpha: Array
    log_unseen_rate: Array


class WaitingTimes(NamedTuple):
    """Waiting times of a sweep, in units of the weights before they were normalised."""

    chosen: Array  # n_k, how often each item was chosen, (K,)
    log_in_play: Array  # log of the total time for which each item was in play, (K,)
    log_total: Array  # log of the total time


class GammaProcessPlackettLuceGibbs(PoolKernel):
    r"""
    Gibbs sampler for the Plackett–Luce model of an endless pool of items, eq. (15) of [1].

    The weights are the atoms of a gamma process or, for ``sigma > 0``, of a generalised gamma
    process (Appendix C), K of which the rankings list. Each sweep draws a waiting time for every
    choice. Given these it draws α, with the unseen weight integrated out; the unseen weight, a
    gamma variable or an exponentially tilted stable one [2]; and the weights.

    Samples: ``weights`` (D, K) of the items that the rankings list, in item order, and
    ``unseen_weight`` (D,) of all others, together 1; ``alpha``, ``log_joint``; for σ > 0
    ``total_weight``, the sum of all weights before they were normalised. ``unseen_rate`` is τ plus
    the waiting times, in units of the normalised weights: given the waiting times the unseen items
    are a process with this inverse scale, which :func:`~numpyro_rankings.predict_items` needs.

    Run as ``mcmc.run(key, rankings)``. Under ``jit`` (``jit_model_args=True``) the kernel cannot
    tell which items are listed: pass ``rankings.of_listed_items()``.
    :class:`~numpyro_rankings.PartialOrders` are taken too, as by
    :class:`~numpyro_rankings.infer.PlackettLuceGibbs`, if all items were offered.

    :param alpha: concentration of the process: a number, or a distribution to learn it.
    :param tau: inverse scale τ. With σ = 0 the normalised weights do not depend on it, with σ > 0
        only through :math:`α τ^σ`.
    :param sigma: index of the generalised gamma process, 0 or 0.001 <= σ < 1: 0 is the gamma
        process, 0.5 the inverse Gaussian.
    :param model: your own model, in which the kernel is a block of
        :class:`numpyro.infer.Gibbs` that owns the sites ``weights`` and ``unseen_weight`` (and
        ``total_weight``). The model calls
        :func:`~numpyro_rankings.models.gamma_process_plackett_luce` with the same ``tau`` and
        ``sigma``, and with its own ``alpha``.

    **References:**

    1. Caron, F., Teh, Y. W., Murphy, T. B. (2014), "Bayesian nonparametric Plackett–Luce models
       for the analysis of preferences for college degree programmes".
    2. Devroye, L. (2009), "Random variate generation for exponentially and polynomially tilted
       stable distributions".

    .. doctest::

       >>> import jax
       >>> from numpyro.infer import MCMC
       >>> from numpyro_rankings import Rankings
       >>> from numpyro_rankings.infer import GammaProcessPlackettLuceGibbs
       >>> rankings = Rankings.from_orderings([[3, 0], [0, 5]], num_items=9, counts=[4, 2])
       >>> kernel = GammaProcessPlackettLuceGibbs(alpha=1.0)
       >>> mcmc = MCMC(kernel, num_warmup=20, num_samples=50, progress_bar=False)
       >>> mcmc.run(jax.random.key(0), rankings)
       >>> mcmc.get_samples()["weights"].shape, rankings.of_listed_items().items
       ((50, 3), ('item 1', 'item 4', 'item 6'))
    """

    def __init__(
        self,
        alpha: float | dist.Distribution = 1.0,
        tau: float = 1.0,
        sigma: float = 0.0,
        *,
        model: Callable | None = None,
    ) -> None:
        check_scale("alpha", alpha)
        if isinstance(tau, dist.Distribution):
            raise ValueError("tau must be a number: only alpha * tau**sigma matters")
        check_scale("tau", tau, learned=False)
        number = np.asarray(sigma)
        if number.shape != () or number.dtype.kind not in "iuf" or not 0 <= float(number) < 1:
            raise ValueError(f"sigma must be at least 0 and less than 1, got {sigma!r}")
        if 0 < float(number) < LEAST_SIGMA:
            raise ValueError(f"sigma must be 0, or at least {LEAST_SIGMA}, got {sigma!r}")
        self._alpha, self._tau, self._sigma = alpha, float(tau), float(sigma)
        self._is_block = model is not None
        leave_to_model(self._is_block, alpha=isinstance(alpha, dist.Distribution) or alpha != 1.0)
        if model is None:
            model = partial(
                gamma_process_plackett_luce, alpha=alpha, tau=self._tau, sigma=self._sigma
            )
        super().__init__(model)

    def get_diagnostics_str(self, state: GibbsState) -> str:
        """Return the unseen weight and the log joint, for the progress bar."""
        z = state.z
        check_not_stopped(self, z)
        if "log_joint" not in z:
            return ""
        return f"unseen {float(z['unseen_weight']):.1e}, log joint {float(log_joint_of(z)):.1f}"

    # -- inputs of a sweep ---------------------------------------------------------------------

    @property
    def sites(self) -> dict[str, str]:
        """The names of the kernel's sites, which a model cannot change."""
        names = ["weights", "unseen_weight", *(["total_weight"] if self._sigma > 0 else [])]
        return {name: name for name in names}

    def read_prior(self, z: dict, args: tuple, kwargs: dict) -> tuple[dict[str, Any], Array | None]:
        return {"alpha": self._alpha_of(z, args, kwargs)}, None

    def _alpha_of(self, z: dict, args: tuple, kwargs: dict) -> Array:
        """Return α; as a block, that of the user's model."""
        if not self._is_block:
            return jnp.asarray(z["alpha"], float)
        trace = self._trace_model(self._own(z), args, kwargs)
        return jnp.asarray(trace["process_concentration"]["value"], float)

    # -- the chain -----------------------------------------------------------------------------

    def _init(
        self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict
    ) -> GibbsState:
        rankings, data = self._data(args, kwargs)
        key_alpha, rng_key = random.split(rng_key)
        start_values = {} if self._is_block else dict(init_params or {})
        alpha = draw_start(key_alpha, start_values.get("alpha", self._alpha))
        chosen = _times_chosen(data, rankings.num_items).astype(float)
        # the shares are proportional to the choices, the unseen items counting as chosen once. The
        # last one is not computed as 1 - Σ, which could round to 0
        each = 1.0 / (chosen.sum() + 1.0)
        weights = jnp.asarray(start_values.get("weights", chosen * each), float)
        unseen = jnp.asarray(start_values.get("unseen_weight", each), float)
        z = {"weights": weights, "unseen_weight": unseen}
        if self._sigma > 0:
            z["total_weight"] = jnp.asarray(start_values.get("total_weight", 1.0), float)
        if self._is_block:
            self._check_dependents(z, args, kwargs, lambda name, _: name in SITES_OF_DATA, 2)
        else:
            z |= {"alpha": alpha, "unseen_rate": alpha / unseen}
        return self._state(z, self._alpha_of(z, args, kwargs), data, rng_key)

    def _sweep(self, state: GibbsState, args: tuple, kwargs: dict) -> GibbsState:
        rng_key, *keys = random.split(state.rng_key, 6)
        key_total, key_times, key_alpha, key_unseen, key_weights = keys
        _, data = self._data(args, kwargs, state.z)
        current = self._read(state.z, args, kwargs)
        current = current._replace(log_total=self._draw_log_total(key_total, current, state.z))
        times = _draw_times(key_times, current, data)  # Z of eq. (15)
        current = current._replace(alpha=self._draw_alpha(key_alpha, current, times))
        log_unseen, log_rate = self._draw_log_unseen(key_unseen, current, times)
        log_weights = self._draw_log_weights(key_weights, times)
        current = _normalised(current, log_weights, log_unseen, log_rate)
        return self._state(self._sites_of(current), current.alpha, data, rng_key)

    def _read(self, z: dict, args: tuple, kwargs: dict) -> PoolWeights:
        alpha, zero = self._alpha_of(z, args, kwargs), jnp.zeros(())
        return PoolWeights(z["weights"], z["unseen_weight"], zero, alpha, zero)

    def _draw_log_total(self, key: Array, current: PoolWeights, z: dict) -> Array:
        """Draw the log of the sum of all weights, on which the likelihood does not depend."""
        tau, sigma = self._tau, self._sigma
        if sigma == 0:
            return sample_log_gamma(key, current.alpha) - jnp.log(tau)
        seen, log_unseen = current.weights.sum(), jnp.log(current.unseen)
        number = jnp.sum(current.weights > 0)

        def log_density(log_total: Array) -> Array:
            # Π λ(w_k) f(w_*), with the Jacobian of (w, w_*) to shares and the log of the total
            log_density = (1.0 - sigma * number) * log_total - tau * jnp.exp(log_total) * seen
            return log_density + log_tempered_stable(
                log_unseen + log_total, current.alpha, tau, sigma
            )

        def difference(log_total: Array, step: Array) -> Array:
            return log_density(log_total + step) - log_density(log_total)

        return slice_sample(key, jnp.log(z["total_weight"]), difference, 1.0, lower=-jnp.inf)

    def _draw_alpha(self, key: Array, current: PoolWeights, times: WaitingTimes) -> Array:
        """Draw α with w_* integrated out: ∝ α^K e^{-ψ(ΣZ)}. w_* is drawn next."""
        prior = self._learned_prior("alpha")
        if prior is None:
            return current.alpha
        # ψ(ΣZ)/α. With a tiny α the times exceed the range of float32, but their logarithms do not
        exponent = jnp.logaddexp(0.0, times.log_total - jnp.log(self._tau))
        if self._sigma > 0:
            exponent = self._tau**self._sigma * jnp.expm1(self._sigma * exponent) / self._sigma
        number = jnp.sum(times.chosen > 0)
        return update_concentration(key, current.alpha, prior, number, exponent)

    def _draw_log_unseen(
        self, key: Array, current: PoolWeights, times: WaitingTimes
    ) -> tuple[Array, Array]:
        """Draw log w_*; return it with the log of its inverse scale."""
        log_rate = jnp.logaddexp(jnp.log(self._tau), times.log_total)
        if self._sigma == 0:
            return sample_log_gamma(key, current.alpha) - log_rate, log_rate
        log_scale = jnp.log(current.alpha / self._sigma) / self._sigma
        log_tilt = log_rate + log_scale
        return sample_tilted_stable(key, self._sigma, log_tilt) + log_scale, log_rate

    def _draw_log_weights(self, key: Array, times: WaitingTimes) -> Array:
        """Draw the log weights of the listed items, (K,)."""
        shape = jnp.where(times.chosen > 0, times.chosen - self._sigma, 1.0)
        log_rates = jnp.logaddexp(jnp.log(self._tau), times.log_in_play)
        log_weights = sample_log_gamma(key, shape) - log_rates
        return jnp.where(times.chosen > 0, log_weights, -jnp.inf)

    def _sites_of(self, current: PoolWeights) -> dict[str, Array]:
        z = {"weights": current.weights, "unseen_weight": current.unseen}
        if self._sigma > 0:
            z["total_weight"] = jnp.exp(current.log_total)
        if not self._is_block:
            z |= {"alpha": current.alpha, "unseen_rate": jnp.exp(current.log_unseen_rate)}
        return z

    def _state(self, z: dict, alpha: Array, data: PlackettLuceData, rng_key: Array) -> GibbsState:
        log_joint, log_joint_rest = self._log_joint(z, alpha, data)
        if not self._is_block:
            z = {**z, "log_joint": log_joint, "log_joint_rest": log_joint_rest}
        return GibbsState(z, -log_joint, jnp.ones(()), jnp.array(False), rng_key)

    def _log_joint(self, z: dict, alpha: Array, data: PlackettLuceData) -> Pair:
        """Return log p(rankings, weights, α)."""
        weights, unseen, total = z["weights"], z["unseen_weight"], z.get("total_weight")
        log_joint = log_gamma_process(weights, unseen, total, alpha, self._tau, self._sigma)
        membership = _one_cluster(data)
        log_joint = self._add_log_priors(log_joint, alpha=alpha)
        likelihood = log_likelihood_of(data, membership, weights[None], unseen[None])
        return add_number(likelihood, log_joint)

    def _potential(self, state: GibbsState, args: tuple, kwargs: dict) -> Array:
        _, data = self._data(args, kwargs, state.z)
        return -self._log_joint(state.z, self._alpha_of(state.z, args, kwargs), data)[0]


def _one_cluster(data: PlackettLuceData) -> Membership:
    return data.membership(jnp.zeros(data.num_labels, jnp.int32), 1)


def _times_chosen(data: PlackettLuceData, num_items: int) -> Array:
    """Count n_k, how often each item was chosen, (K,)."""
    one_cluster = jnp.zeros(len(data.counts), jnp.int32)
    return times_chosen(data.choices, None, one_cluster, data.counts, 1, num_items)[0]


def _draw_times(key: Array, current: PoolWeights, data: PlackettLuceData) -> WaitingTimes:
    """Draw the waiting times of all choices, and sum them."""
    weights, unseen = current.weights[None], current.unseen[None]
    in_play, total = sum_times_in_play(key, data, _one_cluster(data), weights, unseen)
    # waiting times scale with 1/weight: divide by the total, with which the weights are multiplied
    return WaitingTimes(
        chosen=_times_chosen(data, len(current.weights)),
        log_in_play=jnp.log(in_play[0]) - current.log_total,
        log_total=jnp.log(total[0]) - current.log_total,
    )


def _normalised(
    current: PoolWeights, log_weights: Array, log_unseen: Array, log_rate: Array
) -> PoolWeights:
    """Normalise new weights together with that of the unseen items."""
    both = jnp.append(log_weights, log_unseen)
    log_total = jnp.max(both) + jnp.log(jnp.sum(jnp.exp(both - jnp.max(both))))
    tiny = jnp.finfo(both.dtype).tiny
    shares = jnp.where(both > -jnp.inf, jnp.maximum(jnp.exp(both - log_total), tiny), 0.0)
    return PoolWeights(shares[:-1], shares[-1], log_total, current.alpha, log_rate + log_total)
