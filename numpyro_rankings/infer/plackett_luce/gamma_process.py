"""Gibbs kernel for the Plackett–Luce model of a (generalised) gamma process."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.infer.base import log_joint_of
from numpyro_rankings.infer.checks import check_scale, leave_to_model
from numpyro_rankings.infer.not_finite import check_not_stopped
from numpyro_rankings.infer.plackett_luce.data import PlackettLuceData, log_likelihood_of
from numpyro_rankings.infer.plackett_luce.measures import update_concentration
from numpyro_rankings.infer.plackett_luce.pool import SITES_OF_DATA, PoolKernel
from numpyro_rankings.infer.plackett_luce.waiting_times import sum_times_in_play
from numpyro_rankings.infer.priors import draw_start, log_prior
from numpyro_rankings.models import gamma_process_plackett_luce
from numpyro_rankings.ops.choices import times_chosen
from numpyro_rankings.ops.pairs import Pair, add_number
from numpyro_rankings.ops.random_measures import log_gamma_process, log_tempered_stable
from numpyro_rankings.ops.sampling import sample_log_gamma, slice_sample
from numpyro_rankings.ops.stable import sample_tilted_stable

LEAST_SIGMA = 1e-3  # below, float32 cannot hold ln(α/σ)/σ, and the gamma process is as good


class GammaProcessState(NamedTuple):
    """
    - **z** - ``weights`` (K,), ``unseen_weight``, ``alpha``, ``unseen_rate``, ``log_joint`` and
      ``log_joint_rest``, what float32 leaves of it; for σ > 0 ``total_weight`` too.
    - **potential_energy** - minus the log joint.
    - **accept_prob** - 1: every step is a draw from a conditional, or by slice sampling.
    - **overflow** - False: there are no slots.
    - **rng_key** - key of the next sweep.
    """

    z: dict[str, Array]
    potential_energy: Array
    accept_prob: Array
    overflow: Array
    rng_key: Array


class GammaProcessPlackettLuceGibbs(PoolKernel):
    r"""
    Gibbs sampler for the Plackett–Luce model of an endless pool of items, eq. (15) of [1].

    The weights are the atoms of a gamma process, or for ``sigma > 0`` of a generalised gamma
    process (Appendix C), of which the rankings show K. Each sweep draws a waiting time for every
    choice; given these α, with the unseen weight integrated out; then the unseen weight, a gamma
    variable or an exponentially tilted stable one [2], and the weights.

    Samples: ``weights`` (D, K) of the items that the rankings list, in item order, and
    ``unseen_weight`` (D,) of all others, together 1; ``alpha``, ``log_joint``; for σ > 0
    ``total_weight``, the sum of all weights before they were normalised. ``unseen_rate`` is τ plus
    the waiting times in units of the normalised weights: given these the unseen items are a process
    with this inverse scale, which :func:`~numpyro_rankings.predict_items` needs.

    Run as ``mcmc.run(key, rankings)``. Under ``jit`` (``jit_model_args=True``) the kernel cannot
    tell which items are listed: pass ``rankings.of_listed_items()``.

    :param alpha: concentration of the process: a number, or a distribution to learn it.
    :param tau: inverse scale τ. With σ = 0 the normalised weights do not depend on it, with σ > 0
        only through :math:`α τ^σ`.
    :param sigma: index of the generalised gamma process, 0 or 0.001 <= σ < 1: 0 is the gamma
        process, 0.5 the inverse Gaussian.
    :param model: a user's model, of which the kernel is then a block in
        :class:`numpyro.infer.Gibbs` that owns its sites ``weights`` and ``unseen_weight`` (and
        ``total_weight``). It calls :func:`~numpyro_rankings.models.gamma_process_plackett_luce`
        with the same ``tau`` and ``sigma``, and an ``alpha`` of its own.

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
        check_scale("tau", tau, learnt=False)
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

    def get_diagnostics_str(self, state: GammaProcessState) -> str:
        """Unseen weight and log joint, for the progress bar.

        :raises NotFiniteError: if the chain has stopped.
        """
        z = state.z
        check_not_stopped(self, z)
        if "log_joint" not in z:
            return ""
        return f"unseen {float(z['unseen_weight']):.1e}, log joint {float(log_joint_of(z)):.1f}"

    def _given_alpha(self, z: dict, args: tuple, kwargs: dict) -> Array:
        if not self._is_block:
            return jnp.asarray(z["alpha"], float)
        names = ("weights", "unseen_weight", "total_weight")
        values = {name: z[name] for name in names if name in z}
        trace = self._sites_of_model(values, args, kwargs)
        return jnp.asarray(trace["process_concentration"]["value"], float)

    def _init(
        self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict
    ) -> GammaProcessState:
        rankings, data = self._data(args, kwargs)
        key_alpha, rng_key = random.split(rng_key)
        given = {} if self._is_block else dict(init_params or {})
        alpha = draw_start(key_alpha, given.get("alpha", self._alpha))
        chosen = self._times_chosen(data, rankings.num_items).astype(float)
        # as often as it is listed, the unseen as often as once; 1 less the other shares has no
        # digits where there are many choices
        each = 1.0 / (chosen.sum() + 1.0)
        weights = jnp.asarray(given.get("weights", chosen * each), float)
        unseen = jnp.asarray(given.get("unseen_weight", each), float)
        z = {"weights": weights, "unseen_weight": unseen}
        if self._sigma > 0:
            z["total_weight"] = jnp.asarray(given.get("total_weight", 1.0), float)
        if not self._is_block:
            z["alpha"] = alpha
            z["unseen_rate"] = z["alpha"] / unseen
        else:
            self._check_dependents(z, "", args, kwargs, lambda name, _: name in SITES_OF_DATA, 2)
        return self._state(z, self._given_alpha(z, args, kwargs), data, rng_key)

    def _sweep(self, state: GammaProcessState, args: tuple, kwargs: dict) -> GammaProcessState:
        rankings, data = self._data(args, kwargs, state.z)
        keys = random.split(state.rng_key, 6)
        rng_key, key_scale, key_times, key_alpha, key_unseen, key_weights = keys
        z, tau, sigma = state.z, self._tau, self._sigma
        alpha = self._given_alpha(z, args, kwargs)
        weights, unseen = z["weights"], z["unseen_weight"]
        # the likelihood says nothing of the scale of all weights; given the normalised ones:
        if sigma == 0:
            log_total = sample_log_gamma(key_scale, alpha) - jnp.log(tau)
        else:
            log_total = self._update_scale(key_scale, z, alpha)

        # Z of eq. (15), their sums, of masses w = p · total
        who = data.members(jnp.zeros(data.num_rankings, jnp.int32), 1)
        in_play, total_time = sum_times_in_play(key_times, data, who, weights[None], unseen[None])
        log_time = jnp.log(total_time[0]) - log_total
        chosen = self._times_chosen(data, rankings.num_items)

        if isinstance(self._alpha, dist.Distribution) and not self._is_block:
            # with w_* integrated out: α^K e^{-ψ(ΣZ)}; w_* is drawn right after it
            exponent = self._laplace_exponent(log_time)
            number = jnp.sum(chosen > 0)
            alpha = update_concentration(key_alpha, alpha, self._alpha, number, exponent)
        log_rate = jnp.logaddexp(jnp.log(tau), log_time)
        if sigma == 0:
            log_unseen = sample_log_gamma(key_unseen, alpha) - log_rate
        else:
            log_scale = jnp.log(alpha / sigma) / sigma
            log_tilt = log_rate + log_scale
            log_unseen = sample_tilted_stable(key_unseen, sigma, log_tilt) + log_scale
        shape = jnp.where(chosen > 0, chosen - sigma, 1.0)
        log_rates = jnp.logaddexp(jnp.log(tau), jnp.log(in_play[0]) - log_total)
        log_weights = sample_log_gamma(key_weights, shape) - log_rates
        log_weights = jnp.where(chosen > 0, log_weights, -jnp.inf)

        both = jnp.append(log_weights, log_unseen)
        log_total = jnp.max(both) + jnp.log(jnp.sum(jnp.exp(both - jnp.max(both))))
        tiny = jnp.finfo(both.dtype).tiny
        shares = jnp.where(both > -jnp.inf, jnp.maximum(jnp.exp(both - log_total), tiny), 0.0)
        z = {**z, "weights": shares[:-1], "unseen_weight": shares[-1]}
        if sigma > 0:
            z["total_weight"] = jnp.exp(log_total)
        if not self._is_block:
            z["alpha"], z["unseen_rate"] = alpha, jnp.exp(log_rate + log_total)
        return self._state(z, alpha, data, rng_key)

    def _laplace_exponent(self, log_time: Array) -> Array:
        """ψ(ΣZ)/α. With a tiny α the times are beyond float32, but not their logarithms."""
        log_ratio = jnp.logaddexp(0.0, log_time - jnp.log(self._tau))
        if self._sigma == 0:
            return log_ratio
        return self._tau**self._sigma * jnp.expm1(self._sigma * log_ratio) / self._sigma

    def _update_scale(self, key: Array, z: dict, alpha: Array) -> Array:
        """log of the sum of all weights, given their shares, for σ > 0."""
        tau, sigma = self._tau, self._sigma
        seen, log_unseen = z["weights"].sum(), jnp.log(z["unseen_weight"])
        number = jnp.sum(z["weights"] > 0)

        def log_density(log_total: Array) -> Array:
            # Π λ(w_k) f(w_*), with the Jacobian of (w, w_*) to shares and the log of the total
            log_density = (1.0 - sigma * number) * log_total - tau * jnp.exp(log_total) * seen
            return log_density + log_tempered_stable(log_unseen + log_total, alpha, tau, sigma)

        def difference(log_total: Array, step: Array) -> Array:
            return log_density(log_total + step) - log_density(log_total)

        return slice_sample(key, jnp.log(z["total_weight"]), difference, 1.0, lower=-jnp.inf)

    def _times_chosen(self, data: PlackettLuceData, num_items: int) -> Array:
        """n_k."""
        rows = jnp.arange(data.counts.shape[0])
        return times_chosen(data.choices, rows, 0 * rows, data.counts, 1, num_items)[0]

    def _state(
        self, z: dict, alpha: Array, data: PlackettLuceData, rng_key: Array
    ) -> GammaProcessState:
        log_joint, log_joint_rest = self._log_joint(z, alpha, data)
        if not self._is_block:
            z = {**z, "log_joint": log_joint, "log_joint_rest": log_joint_rest}
        return GammaProcessState(z, -log_joint, jnp.ones(()), jnp.array(False), rng_key)

    def _log_joint(self, z: dict, alpha: Array, data: PlackettLuceData) -> Pair:
        """log p(rankings, weights, α)."""
        weights, unseen, total = z["weights"], z["unseen_weight"], z.get("total_weight")
        log_joint = log_gamma_process(weights, unseen, total, alpha, self._tau, self._sigma)
        who = data.members(jnp.zeros(data.num_rankings, jnp.int32), 1)
        if isinstance(self._alpha, dist.Distribution) and not self._is_block:
            log_joint += log_prior(self._alpha, alpha)
        return add_number(log_likelihood_of(data, who, weights[None], unseen[None]), log_joint)

    def _potential(self, state: GammaProcessState, args: tuple, kwargs: dict) -> Array:
        _, data = self._data(args, kwargs, state.z)
        return -self._log_joint(state.z, self._given_alpha(state.z, args, kwargs), data)[0]
