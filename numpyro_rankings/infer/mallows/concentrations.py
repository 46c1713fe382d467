"""Concentrations of generalized Mallows clusters, given their centers and labels.

Given σ and the labels, the stages of the clusters are independent, with density

.. math:: p(θ_{cj}) \\, \\exp(-θ_{cj} S_{cj} - N_{cj} \\ln ψ_{n-j}(θ_{cj})),

S and N the sum of the codes and the number of rankings that reach the stage (eq. 8 of Meilă &
Chen 2010). Under the conjugate prior this is log-concave and drawn exactly (:class:`Conjugate`);
under other priors it is drawn by Sample-θ-Slice (Figure 3; :class:`PerStage`, :class:`Tied`).

A new prior of θ needs

- here, a class with the methods of :class:`ConcentrationPrior`;
- in ``settings.py``, a field of ``MallowsSettings``, its check, and ``changed_priors``;
- in ``priors.py``, ``concentration_prior_of``, and ``concentration_prior_of_model`` for blocks;
- in ``slice_gibbs.py``, an argument of ``SliceGibbs`` with its documentation;
- in ``kernel.py``, the argument of the model, and in ``models.py``, the model itself.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, core, lax, random

from numpyro_rankings.infer.priors import base_of, log_prior, log_prior_ratio
from numpyro_rankings.ops.codes import max_codes
from numpyro_rankings.ops.known_prior import KnownPrior
from numpyro_rankings.ops.sampling import (
    Envelope,
    draw_in_envelope,
    sample_concentration,
    slice_sample,
)
from numpyro_rankings.ops.special import (
    as_floats,
    concentration_mode,
    log_beta_tilde,
    log_density_difference,
    log_psi,
    var_code,
)

_SLICE_REPEATS = 3  # TSlices in the paper


class ConcentrationPrior(Protocol):
    """A prior of θ for all clusters, with its update; clusters are independent under it."""

    def draw(self, key: Array, num_draws: int, limits: Array) -> Array:
        """Draw θ from the prior, (num_draws, T)."""

    def update(
        self, key: Array, concentration: Array, sums: Array, counts: Array, limits: Array
    ) -> Array:
        """Draw θ, (C, T), from its conditional; of clusters without rankings, from the prior."""

    def log_prob(self, concentration: Array, num_items: int) -> Array:
        """Return the log density of each cluster, (C,)."""

    @property
    def tied(self) -> bool:
        """Whether all stages of a cluster have one concentration."""

    @property
    def is_conjugate(self) -> bool:
        """Whether :meth:`conjugate_part` is the prior itself."""

    def log_kernel(self, concentration: Array, limits: Array) -> Array:
        """Return the log density of each cluster without its normalising constant, (C,)."""

    def log_constant(self, num_clusters: int, num_items: int, limits: Array) -> Array:
        """Return the log normalising constant, (C,), which may be costly."""

    def conjugate_part(self, limits: Array) -> "tuple[Array, Array] | None":
        """Return ν r and ν, (T,), of a conjugate prior whose posterior proposes θ; None if tied."""
        # Tied stages rule out a move of σ and θ together, ``rearrange``.

    def log_rest(self, concentration: Array, limits: Array) -> Array:
        """Return the log ratio of the prior to that conjugate prior, unnormalised, (C, T)."""


class Conjugate(NamedTuple):
    """The prior of eq. (7): density ∝ exp(-ν (r_j θ_j + ln ψ_{n-j}(θ_j)))."""

    nu: Array  # (T,) or (C, T), as r
    r: Array
    known: "KnownConjugate | None" = None  # None if these are computed in the program

    @property
    def tied(self) -> bool:
        return False

    @property
    def is_conjugate(self) -> bool:
        return True

    def draw(self, key: Array, num_draws: int, limits: Array) -> Array:
        shape = num_draws, limits.shape[0]
        a, b = jnp.broadcast_to(self.nu * self.r, shape), self.nu + 1.0
        if self.known is None:
            return sample_concentration(key, a, b, limits)
        parts = as_floats(a, b, limits, *self.known.envelope)
        a, b, m, *envelope = (jnp.broadcast_to(x, shape).ravel() for x in parts)
        return draw_in_envelope(key, Envelope(*envelope), a, b, m).reshape(shape)

    def update(
        self, key: Array, concentration: Array, sums: Array, counts: Array, limits: Array
    ) -> Array:
        return sample_concentration(key, self.nu * self.r + sums, self.nu + counts + 1.0, limits)

    def log_prob(self, concentration: Array, num_items: int) -> Array:
        limits = max_codes(num_items, concentration.shape[1])
        return self.log_kernel(concentration, limits) + self.log_constant(
            len(concentration), num_items, limits
        )

    def log_kernel(self, concentration: Array, limits: Array) -> Array:
        energy = self.r * concentration + log_psi(concentration, limits)
        return -jnp.sum(self.nu * energy, axis=1)

    def log_constant(self, num_clusters: int, num_items: int, limits: Array) -> Array:
        if self.known is None:
            log_normaliser = log_beta_tilde(self.nu * self.r, self.nu + 1.0, limits)
        else:
            log_normaliser = jnp.asarray(self.known.log_normaliser, float)
        return jnp.broadcast_to(-log_normaliser.sum(-1), (num_clusters,))

    def conjugate_part(self, limits: Array) -> tuple[Array, Array] | None:
        return self.nu * self.r, self.nu

    def log_rest(self, concentration: Array, limits: Array) -> Array:
        return jnp.zeros_like(concentration)


class KnownConjugate(NamedTuple):
    """Constants of a conjugate prior, from NumPy."""

    log_normaliser: np.ndarray  # ln B̃(ν r_j, ν + 1, n-j), (T,)
    envelope: Envelope  # envelope of its draws, (T,)


def conjugate_prior(nu: Any, r: Any, num_items: int, num_stages: int, exact: bool) -> Conjugate:
    """Return the conjugate prior with an entry for each stage."""
    known = None
    if not any(isinstance(x, core.Tracer) for x in (nu, r)):
        nu, r = (np.asarray(x, np.float64) for x in (nu, r))
        limits = num_items - 1 - np.arange(num_stages)
        density = KnownPrior(nu * r, nu + 1.0, limits)
        known = KnownConjugate(density.log_normaliser(), density.envelope())
    nu, r = jnp.asarray(nu, float), jnp.asarray(r, float)
    shape = jnp.broadcast_shapes(nu.shape, r.shape, (num_stages,))
    kind = Conjugate if exact else InfiniteConjugate
    return kind(jnp.broadcast_to(nu, shape), jnp.broadcast_to(r, shape), known)


class InfiniteConjugate(Conjugate):
    """The limit ψ_∞ for ψ_{n-j}: θ = -log x, x ~ Beta(ν r_j + S_j, ν + N_j + 1) (eq. 12)."""

    # For ``BetaGibbs(exact=False)``, which draws θ as the paper; densities are of Conjugate.

    def draw(self, key: Array, num_draws: int, limits: Array) -> Array:
        shape = (num_draws, limits.shape[0])
        return self._minus_log_beta(key, self.nu * self.r, self.nu + 1.0, shape)

    def update(
        self, key: Array, concentration: Array, sums: Array, counts: Array, limits: Array
    ) -> Array:
        a, b = self.nu * self.r + sums, self.nu + counts + 1.0
        return self._minus_log_beta(key, a, b, concentration.shape)

    @staticmethod
    def _minus_log_beta(key: Array, a: Array, b: Array, shape: tuple[int, ...]) -> Array:
        key_a, key_b = random.split(key)
        # -log(A / (A + B)) for two gamma variables, in logs so that x near 1 keeps its digits
        log_odds = random.loggamma(key_b, b, shape) - random.loggamma(key_a, a, shape)
        return jnp.logaddexp(0.0, log_odds)


class _AnyPrior(NamedTuple):
    """Base of the priors that are a univariate NumPyro distribution of the user's."""

    prior: Any

    @property
    def is_conjugate(self) -> bool:
        return False

    def log_constant(self, num_clusters: int, num_items: int, limits: Array) -> Array:
        return jnp.zeros(num_clusters)


class PerStage(_AnyPrior):
    """Any prior with independent stages, of batch shape (), (T,) or (C, T)."""

    @property
    def tied(self) -> bool:
        return False

    def draw(self, key: Array, num_draws: int, limits: Array) -> Array:
        return self.prior.expand((num_draws, limits.shape[0])).sample(key)

    def update(
        self, key: Array, concentration: Array, sums: Array, counts: Array, limits: Array
    ) -> Array:
        def difference(theta: Array, delta: Array) -> Array:
            likelihood = log_density_difference(theta, delta, sums, counts + 1.0, limits)
            return likelihood + _log_prior_difference(self.prior, theta, delta)

        key_slice, key_draw = random.split(key)
        width = _slice_width(sums, counts, limits)
        theta = _slice_repeatedly(key_slice, concentration, difference, width)
        empty = counts.sum(1, keepdims=True) == 0
        return jnp.where(empty, self.draw(key_draw, len(concentration), limits), theta)

    def log_prob(self, concentration: Array, num_items: int) -> Array:
        return log_prior(self.prior, concentration).sum(1)

    def log_kernel(self, concentration: Array, limits: Array) -> Array:
        return log_prior(self.prior, concentration).sum(1)

    def conjugate_part(self, limits: Array) -> tuple[Array, Array] | None:
        # Exponential(1/2), a nearly flat choice: ν r = 1/2 and ν = 0
        return jnp.full(limits.shape, 0.5), jnp.zeros(limits.shape)

    def log_rest(self, concentration: Array, limits: Array) -> Array:
        return log_prior(self.prior, concentration) + 0.5 * concentration


class Tied(_AnyPrior):
    """One concentration for all stages, () or (C,): the Mallows model with Kendall's distance."""

    @property
    def tied(self) -> bool:
        return True

    def draw(self, key: Array, num_draws: int, limits: Array) -> Array:
        theta = self.prior.expand((num_draws,)).sample(key)
        return jnp.broadcast_to(theta[:, None], (num_draws, limits.shape[0]))

    def update(
        self, key: Array, concentration: Array, sums: Array, counts: Array, limits: Array
    ) -> Array:
        def difference(theta: Array, delta: Array) -> Array:
            stages = log_density_difference(
                theta[:, None], delta[:, None], sums, counts + 1.0, limits
            )
            return stages.sum(1) + _log_prior_difference(self.prior, theta, delta)

        key_slice, key_draw = random.split(key)
        # the narrowest stage sets the scale; step-out and shrinkage do the rest
        width = _slice_width(sums, counts, limits).min(1)
        theta = _slice_repeatedly(key_slice, concentration[:, 0], difference, width)
        theta = jnp.broadcast_to(theta[:, None], concentration.shape)
        empty = counts.sum(1, keepdims=True) == 0
        return jnp.where(empty, self.draw(key_draw, len(concentration), limits), theta)

    def log_prob(self, concentration: Array, num_items: int) -> Array:
        return log_prior(self.prior, concentration[:, 0])

    def log_kernel(self, concentration: Array, limits: Array) -> Array:
        return log_prior(self.prior, concentration[:, 0])

    def conjugate_part(self, limits: Array) -> tuple[Array, Array] | None:
        return None

    def log_rest(self, concentration: Array, limits: Array) -> Array:
        return jnp.zeros_like(concentration)


def _slice_repeatedly(
    key: Array, theta: Array, difference: Callable[[Array, Array], Array], width: Array
) -> Array:
    """Slice-sampling updates one after the other."""
    keys = random.split(key, _SLICE_REPEATS)
    return lax.scan(lambda t, k: (slice_sample(k, t, difference, width), None), theta, keys)[0]


def _log_prior_difference(prior: Any, theta: Array, delta: Array) -> Array:
    new = theta + delta
    return jnp.where(new > 0, log_prior_ratio(prior, new, theta), -jnp.inf)


def _slice_width(sums: Array, counts: Array, limits: Array) -> Array:
    """Return about three posterior standard deviations. They must not depend on θ."""
    mode = concentration_mode(sums + 1.0, counts + 2.0, limits)
    return jnp.clip(3.0 / jnp.sqrt((counts + 1.0) * var_code(mode, limits) + 1.0), 1e-4, 3.0)


def per_stage_prior(prior: dist.Distribution, num_stages: int) -> dist.Distribution:
    """Return the univariate distribution of a prior on (T,), whose stages must be independent."""
    prior = base_of(prior)
    if prior.event_shape != () or prior.batch_shape[-1:] not in ((), (1,), (num_stages,)):
        raise ValueError(
            f"concentration_prior must be a univariate distribution, one for all stages or with "
            f"one entry for each of the {num_stages} stages; got {type(prior).__name__} of batch "
            f"shape {prior.batch_shape} and event shape {prior.event_shape}"
        )
    return prior
