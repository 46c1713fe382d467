"""Dirichlet shares whose gamma variables have scales of their own."""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, random
from jax.scipy.special import gammaln
from numpyro.distributions import constraints
from numpyro.distributions.util import validate_sample
from numpyro.util import is_prng_key


class ScaledDirichlet(dist.Distribution):
    r"""
    Normalised gamma variables with scales :math:`e^{η_k}` of their own [1].

    For independent :math:`g_k \sim \mathrm{Gamma}(a_k, 1)`, the shares

    .. math:: p_k = \frac{e^{η_k} g_k}{\sum_j e^{η_j} g_j}

    have the density

    .. math::
        \frac{Γ(\sum_k a_k)}{\prod_k Γ(a_k)}
        \frac{\prod_k p_k^{a_k - 1} e^{-a_k η_k}}{(\sum_k p_k e^{-η_k})^{\sum_k a_k}},

    which a number added to all η leaves as it is. With equal η it is that of Dirichlet(a).

    :param concentration: a, positive, (…, n).
    :param log_scale: η, (…, n).

    **References:**

    1. Monti, G. S., Mateu-Figueras, G., Pawlowsky-Glahn, V. (2011), "Notes on the scaled Dirichlet
       distribution", in Compositional Data Analysis, Wiley.

    .. doctest::

       >>> import jax.numpy as jnp
       >>> from numpyro_rankings.distributions import ScaledDirichlet
       >>> prior = ScaledDirichlet(jnp.ones(2), jnp.log(jnp.array([3.0, 1.0])))
       >>> round(float(jnp.exp(prior.log_prob(jnp.array([0.75, 0.25])))), 3)
       1.333
    """

    arg_constraints = {  # noqa: RUF012 - as in NumPyro
        "concentration": constraints.independent(constraints.positive, 1),
        "log_scale": constraints.real_vector,
    }
    support = constraints.simplex
    reparametrized_params = ["concentration", "log_scale"]  # noqa: RUF012

    def __init__(
        self, concentration: Any, log_scale: Any, *, validate_args: bool | None = None
    ) -> None:
        shape = jnp.broadcast_shapes(jnp.shape(concentration), jnp.shape(log_scale))
        if not shape:
            raise ValueError("concentration or log_scale must be at least one-dimensional")
        self.concentration = jnp.broadcast_to(jnp.asarray(concentration, float), shape)
        self.log_scale = jnp.broadcast_to(jnp.asarray(log_scale, float), shape)
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        assert is_prng_key(key)
        shape = (*sample_shape, *self.batch_shape, *self.event_shape)
        log_gamma = random.loggamma(key, self.concentration, shape)
        shares = jax.nn.softmax(log_gamma + self.log_scale, axis=-1)
        return jnp.maximum(shares, jnp.finfo(shares.dtype).tiny)

    @validate_sample
    def log_prob(self, value: Array) -> Array:
        a = self.concentration
        # p e^(-η), normalised, is Dirichlet(a); the rest is the log determinant of this map
        residual = jax.nn.log_softmax(jnp.log(value) - self.log_scale, axis=-1)
        constant = gammaln(a.sum(-1)) - gammaln(a).sum(-1)
        return constant + jnp.sum(a * residual - jnp.log(value), axis=-1)

    @staticmethod
    def infer_shapes(
        concentration: tuple[int, ...], log_scale: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        shape = jnp.broadcast_shapes(concentration, log_scale)
        return shape[:-1], shape[-1:]
