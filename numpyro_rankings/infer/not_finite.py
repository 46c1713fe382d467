"""A chain that comes upon numbers that are not finite: it stops for good, and nobody is misled.

Nothing can be raised in a compiled sweep. So after one whose log joint is not finite, or one of
whose sites is not, every site of the state is filled with a mark that no draw can be, and stays so:
floats with NaN, those of the site at fault with inf, whole numbers with -1. Where Python looks at
states or draws, the mark is an error.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

_LOG_JOINT = "log_joint"


class NotFiniteError(ValueError):
    """A chain has stopped, because its log joint or a site was no finite number."""


def _is_float(x: Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


def is_stopped(z: dict[str, Array]) -> Array:
    """Whether the sites are marked. The mark fills them, so that one number tells."""
    if _LOG_JOINT in z:
        return jnp.isnan(z[_LOG_JOINT])
    first = next(iter(z.values())).ravel()[0]
    return ~jnp.isfinite(first) if _is_float(first) else first < 0


def stop_if_not_finite(state: Any, stopped: Array | bool, before: dict, allows_zero: bool) -> Any:
    """The state, marked if its log joint is no number, or one of its sites is not finite.

    :param stopped: whether the chain had been before, at the sites **before**.
    :param allows_zero: whether states of probability 0 are none that the chain should not be in.
    """
    z, potential = state.z, state.potential_energy
    at_fault = {
        name: ~jnp.all(jnp.isfinite(x))
        for name, x in z.items()
        if _is_float(x) and not name.startswith(_LOG_JOINT)
    }
    no_number = jnp.isnan(potential) | (potential == -jnp.inf)
    if not allows_zero:
        no_number |= potential == jnp.inf
    stops = no_number | stopped
    for is_fault in at_fault.values():
        stops |= is_fault

    def mark(name: str, x: Array) -> Array:
        fault = at_fault.get(name, jnp.array(False))
        value = jnp.where(fault, jnp.inf, jnp.nan) if _is_float(x) else -1
        return jnp.where(stops, jnp.where(stopped, before[name], value), x).astype(x.dtype)

    return state._replace(
        z={name: mark(name, x) for name, x in z.items()},
        potential_energy=jnp.where(stops, jnp.nan, potential),
    )


def sweep_unless_stopped(sweep: Callable[[Any], Any], state: Any, allows_zero: bool) -> Any:
    """One sweep; of a chain that is stopped it goes from harmless numbers, and is thrown away."""
    stopped = is_stopped(state.z)
    harmless = {
        name: jnp.where(stopped, 1 if _is_float(x) else 0, x).astype(x.dtype)
        for name, x in state.z.items()
    }
    return stop_if_not_finite(sweep(state._replace(z=harmless)), stopped, state.z, allows_zero)


def check_not_stopped(kernel: Any, z: Mapping[str, Any]) -> None:
    """Raise NotFiniteError if a chain is stopped.

    :param kernel: whose it is.
    :param z: sites of a state, or of draws of one or more chains; traced ones are passed over.
    """
    log_joint = z.get(_LOG_JOINT)
    if log_joint is None or any(isinstance(x, jax.core.Tracer) for x in z.values()):
        return
    stopped = np.isnan(np.asarray(log_joint))
    if not stopped.any():
        return
    sites = [name for name, x in z.items() if np.isposinf(np.asarray(x)[stopped]).any()]
    what = " and ".join(f"site {name!r}" for name in sites) or "the log joint"
    share = f", in {stopped.mean():.1%} of the draws" if stopped.ndim else ""
    raise NotFiniteError(
        f"{type(kernel).__name__} has stopped: {what} is not finite{share}. Either the data or the "
        "priors are beyond what single precision holds, or a log likelihood of your own is no "
        "number. Try double precision (jax_enable_x64), fewer rankings or points, or a prior with "
        "less mass at extreme values"
    )
