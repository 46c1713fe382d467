"""Decays of the distance dependent Chinese restaurant process (Blei & Frazier 2011, Section 2)."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array
from jax.typing import ArrayLike

from numpyro_rankings.ops.checks import is_traced, positive_number

__all__ = [
    "Decay",
    "exponential_decay",
    "identity_decay",
    "logistic_decay",
    "window_decay",
]


class Decay(NamedTuple):
    """A decay f(d) ≥ 0 of distances, with f(∞) = 0.

    - **name** - name of the kind of decay.
    - **log_function** - log f as a function of distances and scale.
    - **scale** - a: a number, which may be traced, a distribution if it is to be sampled, or None
      if there is no scale.
    """

    name: str
    log_function: Callable[[Array, Any], Array]
    scale: Any

    def log(self, distances: ArrayLike, scale: ArrayLike | None = None) -> Array:
        """log f, of the shape of the distances; -inf where no link is possible.

        :param scale: replaces the decay's own scale, which may be a distribution.
        """
        scale = self.scale if scale is None else scale
        if isinstance(scale, dist.Distribution):
            raise ValueError("the scale of this decay is a distribution: give the number to use")
        d = jnp.asarray(distances, float)
        finite = d < jnp.inf
        log_decay = self.log_function(jnp.where(finite, d, 0.0), scale)
        return jnp.where(finite, log_decay, -jnp.inf)

    def __call__(self, distances: ArrayLike, scale: ArrayLike | None = None) -> Array:
        """f, of the shape of the distances."""
        return jnp.exp(self.log(distances, scale))

    def power(self, exponent: float) -> "Decay":
        """The decay f to a power, and 0 where f is 0.

        With exponent 0 it is 1 wherever a link is possible, with exponent 1 it is f.
        """
        if not is_traced(exponent) and not 0 <= exponent < np.inf:
            raise ValueError(f"the exponent of a decay must be 0 or more, got {exponent!r}")
        log_function = partial(_log_power, log_function=self.log_function, exponent=exponent)
        name = "b" if is_traced(exponent) else f"{exponent:g}"
        return Decay(f"{self.name}^{name}", log_function, self.scale)


# functions of the module rather than closures, because a kernel is pickled with its decay


def _log_window(distances: Array, scale: Any) -> Array:
    return jnp.where(distances < scale, 0.0, -jnp.inf)


def _log_exponential(distances: Array, scale: Any) -> Array:
    return -distances / scale


def _log_logistic(distances: Array, scale: Any) -> Array:
    return jax.nn.log_sigmoid(scale - distances)


def _log_identity(distances: Array, scale: Any) -> Array:
    return jnp.zeros_like(distances)


def _log_power(distances: Array, scale: Any, log_function: Callable, exponent: float) -> Array:
    log_decay = log_function(distances, scale)
    some = log_decay > -jnp.inf
    return jnp.where(some, exponent * jnp.where(some, log_decay, 0.0), -jnp.inf)


def _check_scale(scale: Any) -> Any:
    if isinstance(scale, dist.Distribution):
        return scale
    return positive_number("the scale of a decay", scale)


def window_decay(scale: Any) -> Decay:
    r"""Links to points nearer than a: :math:`f(d) = 1[d < a]`.

    :param scale: a, a positive number or a distribution.
    """
    return Decay("window", _log_window, _check_scale(scale))


def exponential_decay(scale: Any) -> Decay:
    r"""Links of weight :math:`f(d) = e^{-d/a}`.

    :param scale: a, a positive number or a distribution.
    """
    return Decay("exponential", _log_exponential, _check_scale(scale))


def logistic_decay(scale: Any) -> Decay:
    r"""A window with a smooth edge: :math:`f(d) = 1/(1 + e^{d - a})`.

    :param scale: a, a positive number or a distribution.
    """
    return Decay("logistic", _log_logistic, _check_scale(scale))


def identity_decay() -> Decay:
    """Links of weight 1 at every finite distance.

    With sequential distances this is the traditional Chinese restaurant process.
    """
    return Decay("identity", _log_identity, None)
