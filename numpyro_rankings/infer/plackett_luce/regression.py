r"""Gibbs kernel for Plackett–Luce weights that depend on covariates of the items.

With :math:`η = Xβ`, shares :math:`p`, residuals :math:`g_k \sim \mathrm{Gamma}(a, 1)` and weights
:math:`w_k = e^{η_k} g_k = s p_k`, the conditionals follow from

.. math:: p(w, β, a) \propto p(a) \, e^{-|β|^2 / 2τ^2} \prod_k
    \frac{w_k^{a-1} e^{-a η_k}}{Γ(a)} \exp(-w_k e^{-η_k})

and from waiting times, given which the likelihood is :math:`\prod_k w_k^{m_k} e^{-w_k T_k}`, with
:math:`m_k` the number of choices of item k and :math:`T_k` the time for which it is in play.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random
from jax.scipy.linalg import solve_triangular

from numpyro_rankings.distributions import ScaledDirichlet
from numpyro_rankings.families import PLACKETT_LUCE, RankingFamily
from numpyro_rankings.infer.base import GibbsState, find_rankings
from numpyro_rankings.infer.checks import check_scale
from numpyro_rankings.infer.latent_orders import PlackettLuceLists, plackett_luce_lists
from numpyro_rankings.infer.mixture.trajectory import Leapfrog, trajectory
from numpyro_rankings.infer.plackett_luce.data import (
    PlackettLuceData,
    as_data,
    check_shape_for,
    log_likelihood_of,
)
from numpyro_rankings.infer.plackett_luce.start import start_mixture
from numpyro_rankings.infer.plackett_luce.waiting_times import normalise, sum_times_in_play
from numpyro_rankings.infer.priors import draw_start, keep_possible, log_prior_ratio
from numpyro_rankings.infer.ranking_kernel import RankingKernel
from numpyro_rankings.models import plackett_luce_regression
from numpyro_rankings.ops.choices import times_chosen
from numpyro_rankings.ops.pairs import Pair, add_number
from numpyro_rankings.ops.sampling import sample_log_gamma, slice_sample
from numpyro_rankings.ops.special import log_gamma_ratio
from numpyro_rankings.rankings import Orders

_NUM_LEAPFROGS = 8
_LEAST_SIZE, _RANGE_OF_SIZES = 0.1, 6.0  # of a leapfrog step, in posterior standard deviations
RESIDUAL_SHAPE = dist.Gamma(1.0, 0.1)
_dot = partial(jnp.dot, precision="highest")  # accelerators else round factors to three digits


class Worths(NamedTuple):
    """State of a sweep."""

    log_weights: Array  # (n,), of normalised weights
    effects: Array  # β, (p,)
    shape: Array  # a, ()


class PlackettLuceRegressionGibbs(RankingKernel):
    r"""
    Gibbs sampler for the Plackett–Luce model whose weights depend on covariates of the items.

    .. math:: w_k = e^{x_k'β} g_k, \quad g_k \sim \mathrm{Gamma}(a, 1), \quad
        β_j \sim \mathrm{Normal}(0, τ^2).

    The residual log g of an item has the variance :math:`ψ'(a)`, about 1/a, so that covariates
    explain more of the log weights the larger a is. Only normalised weights matter, hence there is
    no intercept: a constant that is added to a covariate changes nothing.

    A sweep draws the waiting times of all choices and, given these, the weights [1]. Then β moves
    along two Hamiltonian trajectories [2], first with the residuals held, so that the weights
    follow, then with the weights held [3]; at last a is drawn by slice sampling.

    Run as ``mcmc.run(key, rankings, item_covariates)``, with an array (n, p), a row for each item.
    The prior of β expects columns of standard deviation 1, or of zeros and ones;
    :func:`~numpyro_rankings.item_covariates` makes such a table of a data frame. The rankings may
    be subset rankings, with choice sets, :class:`~numpyro_rankings.PartialOrders` or
    :class:`~numpyro_rankings.Comparisons`, as for
    :class:`~numpyro_rankings.infer.PlackettLuceGibbs`. There is one population, and the kernel is
    no block of a model of your own.

    Samples: ``weights`` (D, n), normalised, ``item_effects`` (D, p), ``residual_shape`` (D,) and
    ``log_joint``. The field ``accept_prob`` is the share of the two trajectories that are accepted.

    :param shape: a, a positive number or a prior.
    :param effect_scale: τ. With 1, two items that are two standard deviations apart in a covariate
        differ by odds of at most 50, with a prior probability of 95%.
    :param mistake_prior: a and b of the prior Beta(a, b) of ``mistake_probability``, truncated to
        (0, 1/2), of :class:`~numpyro_rankings.Comparisons`.

    **References:**

    1. Caron, F., Doucet, A. (2012), "Efficient Bayesian inference for generalized Bradley–Terry
       models".
    2. Neal, R. M. (2011), "MCMC using Hamiltonian dynamics".
    3. Yu, Y., Meng, X.-L. (2011), "To center or not to center: that is not the question", JCGS 20.

    .. doctest::

       >>> import jax
       >>> import numpy as np
       >>> from numpyro.infer import MCMC
       >>> from numpyro_rankings import load_dataset
       >>> from numpyro_rankings.infer import PlackettLuceRegressionGibbs
       >>> kernel = PlackettLuceRegressionGibbs()
       >>> mcmc = MCMC(kernel, num_warmup=50, num_samples=100, progress_bar=False)
       >>> covariates = np.array([[1.0], [0.0], [1.0], [0.0], [0.0]])
       >>> mcmc.run(jax.random.key(0), load_dataset("apa1980"), covariates)
       >>> mcmc.get_samples()["item_effects"].shape
       (100, 1)
    """

    def __init__(
        self,
        shape: float | dist.Distribution = RESIDUAL_SHAPE,
        effect_scale: float = 1.0,
        *,
        mistake_prior: tuple[float, float] = (1.0, 3.0),
    ) -> None:
        check_scale("shape", shape)
        if isinstance(effect_scale, dist.Distribution):
            raise ValueError("effect_scale must be a number, got a distribution")
        check_scale("effect_scale", effect_scale, learned=False)
        self._is_block = False
        self._shape, self._effect_scale = shape, effect_scale
        model = partial(plackett_luce_regression, shape=shape, effect_scale=effect_scale)
        super().__init__(model, mistake_prior)

    @property
    def ranking_family(self) -> RankingFamily:
        """Plackett–Luce models."""
        return PLACKETT_LUCE

    @property
    def num_components(self) -> int:
        """1, a single population."""
        return 1

    def _scale_arguments(self) -> dict[str, Any]:
        return {"residual_shape": self._shape}

    def _check(self, args: tuple, kwargs: dict) -> None:
        rankings, covariates = find_rankings(args, kwargs), _covariates_in(args, kwargs)
        check_shape_for(1.0, rankings)
        shape = np.shape(covariates)
        if len(shape) != 2 or shape[0] != rankings.num_items or shape[1] == 0:
            raise ValueError(
                f"item_covariates must have shape ({rankings.num_items}, p), a row for each item, "
                f"got {shape}"
            )
        if isinstance(covariates, jax.core.Tracer):
            return
        if np.asarray(covariates).dtype.kind not in "biuf" or not np.all(np.isfinite(covariates)):
            raise ValueError("item_covariates must be finite numbers")

    def _lists(self, z: dict, args: tuple, kwargs: dict, orders: Orders) -> PlackettLuceLists:
        labels = jnp.zeros(len(orders.listed), jnp.int32)
        return plackett_luce_lists(orders, labels, z["weights"][None])

    # -- the chain -----------------------------------------------------------------------------

    def _init(
        self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict
    ) -> GibbsState:
        start, rankings = dict(init_params or {}), find_rankings(args, kwargs)
        data, covariates = as_data(rankings), _covariates_of(args, kwargs)
        key_weights, key_effects, key_shape, rng_key = random.split(rng_key, 4)
        _, weights = start_mixture(key_weights, data, 1, rankings.num_items)
        weights = jnp.asarray(start.get("weights", weights), float).reshape(-1)
        effects = self._effect_scale * random.normal(key_effects, covariates.shape[1:])
        effects = jnp.asarray(start.get("item_effects", effects), float)
        shape = start.get("residual_shape", draw_start(key_shape, self._shape))
        worths = Worths(jnp.log(weights), effects, jnp.asarray(shape, float))
        return self._state(worths, data, covariates, jnp.ones(()), rng_key)

    def _sweep(self, state: GibbsState, args: tuple, kwargs: dict) -> GibbsState:
        rng_key, key_weights, key_together, key_apart, key_shape = random.split(state.rng_key, 5)
        data, covariates = as_data(find_rankings(args, kwargs)), _covariates_of(args, kwargs)
        worths = _read(state.z)
        scale = self._effect_scale
        worths, choices = _update_weights(key_weights, worths, data, covariates)
        worths, moved = _move_with_weights(key_together, worths, choices, covariates, scale)
        worths, alone = _move_effects(key_apart, worths, covariates, scale)
        prior = self._learned_prior("residual_shape")
        if prior is not None:
            worths = _update_shape(key_shape, worths, covariates, prior)
        accept = (moved + alone.astype(float)) / 2
        return self._state(worths, data, covariates, accept, rng_key)

    def _state(
        self, worths: Worths, data: PlackettLuceData, covariates: Array, accept: Array, key: Array
    ) -> GibbsState:
        z = {
            "weights": normalise(worths.log_weights),
            "item_effects": worths.effects,
            "residual_shape": worths.shape,
        }
        log_joint, log_joint_rest = self._log_joint(z, data, covariates)
        z |= {"log_joint": log_joint, "log_joint_rest": log_joint_rest}
        return GibbsState(z, -log_joint, accept, jnp.array(False), key)

    def _log_joint(self, z: dict, data: PlackettLuceData, covariates: Array) -> Pair:
        """Return log p(rankings, weights, β, a)."""
        weights, effects, shape = z["weights"], z["item_effects"], z["residual_shape"]
        prior = ScaledDirichlet(
            jnp.broadcast_to(shape, weights.shape), _dot(covariates, effects), validate_args=False
        )
        log_joint = prior.log_prob(weights)
        log_joint += dist.Normal(0.0, self._effect_scale).log_prob(effects).sum()
        log_joint = self._add_log_priors(log_joint, residual_shape=shape)
        membership = data.membership(jnp.zeros(data.num_labels, jnp.int32), 1)
        return add_number(log_likelihood_of(data, membership, weights[None], None), log_joint)

    def _potential(self, state: GibbsState, args: tuple, kwargs: dict) -> Array:
        data = as_data(find_rankings(args, kwargs))
        return -self._log_joint(state.z, data, _covariates_of(args, kwargs))[0]


def _read(z: dict) -> Worths:
    return Worths(jnp.log(z["weights"]), z["item_effects"], z["residual_shape"])


def _covariates_in(args: tuple, kwargs: dict) -> Any:
    """Return the covariates as they were given, or raise TypeError."""
    if len(args) + len(kwargs) != 2 or set(kwargs) - {"rankings", "item_covariates"}:
        raise TypeError("the kernel takes mcmc.run(key, rankings, item_covariates)")
    return kwargs.get("item_covariates", args[-1] if args else None)


def _covariates_of(args: tuple, kwargs: dict) -> Array:
    """Return the covariates, centred, which changes no probability, (n, p)."""
    covariates = jnp.asarray(_covariates_in(args, kwargs), float)
    return covariates - covariates.mean(0)


class Choices(NamedTuple):
    """What the weights depend on, given the waiting times."""

    chosen: Array  # m, how often each item is chosen, (n,)
    log_times: Array  # log T, in play, for weights on the scale of the residuals, (n,)
    log_residuals: Array  # log g, up to a constant, (n,)


def _update_weights(
    key: Array, worths: Worths, data: PlackettLuceData, covariates: Array
) -> tuple[Worths, Choices]:
    """Draw the waiting times given the weights, then the weights given the times."""
    # s | p ~ Gamma(n a, Σ p_k exp(-η_k));  w_k | T ~ Gamma(a + m_k, exp(-η_k) + T_k)
    n, eta, a = len(covariates), _dot(covariates, worths.effects), worths.shape
    key_scale, key_times, key_weights = random.split(key, 3)
    log_scale = sample_log_gamma(key_scale, n * a)
    log_scale -= jax.nn.logsumexp(worths.log_weights - eta)
    membership = data.membership(jnp.zeros(data.num_labels, jnp.int32), 1)
    weights = normalise(worths.log_weights)[None]
    # waiting times scale with 1/weight: for masses in p they are s times those for masses in w
    in_play, _ = sum_times_in_play(key_times, data, membership, weights, None)
    log_times = jnp.log(in_play[0]) - log_scale  # with few items and a small a, s is out of range
    chosen = times_chosen(data.choices, *membership, 1, n)[0].astype(log_times.dtype)
    log_weights = sample_log_gamma(key_weights, a + chosen) - jnp.logaddexp(-eta, log_times)
    choices = Choices(chosen, log_times, log_weights - eta)
    return worths._replace(log_weights=jax.nn.log_softmax(log_weights)), choices


def _move_with_weights(
    key: Array, worths: Worths, choices: Choices, covariates: Array, scale: float
) -> tuple[Worths, Array]:
    """Move β with the shares q of the residuals held, so that the weights move along."""
    # The sum of g, Gamma(n a, 1), is integrated out: with M = n a + Σ m,
    # log p(β | q, T) = Σ m_k x_k'β - M log(1 + Σ q_k exp(x_k'β) T_k) - |β|² / 2τ²
    n, chosen, residual = len(covariates), choices.chosen, choices.log_residuals
    residual = jax.nn.log_softmax(residual)
    total, prior = chosen.sum(), n * worths.shape
    eta = _dot(covariates, worths.effects)
    log_masses = jnp.append(residual + eta + choices.log_times, 0.0)
    # what is expected of the curvature does not depend on β
    share = chosen / jnp.maximum(total, 1.0)
    mean = _dot(share, covariates)
    spread = _dot((covariates - mean).T, (share * total)[:, None] * (covariates - mean))
    spread += total * prior / (total + prior) * jnp.outer(mean, mean)
    effects, accepted = _move_along_trajectory(
        key,
        worths.effects,
        _dot(chosen, covariates),
        jnp.concatenate([covariates, jnp.zeros_like(covariates[:1])]),
        jax.nn.softmax(log_masses),
        total + prior,
        spread,
        scale,
    )
    log_weights = jax.nn.log_softmax(residual + _dot(covariates, effects))
    return worths._replace(log_weights=log_weights, effects=effects), accepted


def _move_effects(
    key: Array, worths: Worths, covariates: Array, scale: float
) -> tuple[Worths, Array]:
    """Move β with the weights held."""
    # log p(β | p, a) = - a Σ x_k'β - n a log Σ p_k exp(-x_k'β) - |β|² / 2τ², the s integrated out
    a, n = worths.shape, len(covariates)
    effects, accepted = _move_along_trajectory(
        key,
        worths.effects,
        -a * covariates.sum(0),
        -covariates,
        jax.nn.softmax(worths.log_weights - _dot(covariates, worths.effects)),
        n * a,
        a * _dot(covariates.T, covariates),
        scale,
    )
    return worths._replace(effects=effects), accepted


def _move_along_trajectory(
    key: Array,
    effects: Array,
    linear: Array,
    covariates: Array,
    shares: Array,
    number: Array,
    curvature: Array,
    scale: float,
) -> tuple[Array, Array]:
    r"""Move β by Hamiltonian Monte Carlo; return it, and whether it has moved.

    The log density relative to that of the current β is
    :math:`c'δ - M \log \sum_k r_k e^{x_k'δ}`, plus that of the prior, with r the shares at β.

    :param curvature: of it, about, without that of the prior; the mass of the momentum.
    """
    size = len(effects)
    root = jnp.linalg.cholesky(curvature + jnp.eye(size) / scale**2)

    def change(position: Array) -> Array:
        return solve_triangular(root, position, lower=True, trans=1)

    def log_density(position: Array) -> tuple[Array, Array]:
        delta = change(position)
        # ratio form, so that float32 keeps the digits of small moves of large samples
        rise = jnp.log1p(jnp.sum(shares * jnp.expm1(_dot(covariates, delta))))
        prior = jnp.sum(delta * (effects + 0.5 * delta)) / scale**2
        return _dot(linear, delta) - number * rise - prior, effects + delta

    key_momentum, key_uniforms = random.split(key)
    uniform, for_size = random.uniform(key_uniforms, (2,))
    step = _LEAST_SIZE * jnp.exp(for_size * np.log(_RANGE_OF_SIZES))
    proposal, accepted = trajectory(
        uniform,
        jnp.zeros_like(effects),
        random.normal(key_momentum, effects.shape, effects.dtype),
        jnp.ones(size, bool),
        log_density,
        Leapfrog(jnp.full(size, step, effects.dtype), _NUM_LEAPFROGS),
    )
    return jnp.where(accepted, proposal, effects), accepted


def _update_shape(
    key: Array, worths: Worths, covariates: Array, prior: dist.Distribution
) -> Worths:
    """Draw a given the shares q of the residuals, which are Dirichlet(a), by slices of log a."""
    n = len(covariates)
    residual = jax.nn.log_softmax(worths.log_weights - _dot(covariates, worths.effects))
    total = residual.sum()

    def difference(log_a: Array, delta: Array) -> Array:
        a = jnp.exp(log_a)
        step = a * jnp.expm1(delta)
        change = log_gamma_ratio(n * a, n * step) - n * log_gamma_ratio(a, step) + step * total
        return change + log_prior_ratio(prior, a + step, worths.shape) + delta

    log_a = slice_sample(key, jnp.log(worths.shape), difference, 1.0, lower=-jnp.inf)
    return worths._replace(shape=keep_possible(prior, jnp.exp(log_a), worths.shape))
