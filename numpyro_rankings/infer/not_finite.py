"""Stop a chain for good once its state is not finite, and report it.

A compiled sweep cannot raise an error. So when the log joint or a site is not finite, every site is
filled with a mark that no draw can equal: NaN for floats, inf for the site at fault, -1 for
integers. The chain keeps these marks, and Python code that reads states or draws raises an error.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

_LOG_JOINT = "log_joint"


class NotFiniteError(ValueError):
    """A chain has stopped because its log joint or a site was not finite."""


def _is_float(x: Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


def is_stopped(z: dict[str, Array]) -> Array:
    """Whether the sites are marked. A mark fills a whole site, so one number suffices."""
    if _LOG_JOINT in z:
        return jnp.isnan(z[_LOG_JOINT])
    first = next(iter(z.values())).ravel()[0]
    return ~jnp.isfinite(first) if _is_float(first) else first < 0


def stop_if_not_finite(state: Any, stopped: Array | bool, before: dict, allows_zero: bool) -> Any:
    """Return the state, marked if its log joint is NaN or a site is not finite."""
    # The chain may have ``stopped`` already; ``allows_zero`` allows states of probability 0.
    z, potential = state.z, state.potential_energy
    at_fault = {
        name: ~jnp.all(jnp.isfinite(x))
        for name, x in z.items()
        if _is_float(x) and not name.startswith(_LOG_JOINT)
    }
    invalid_potential = jnp.isnan(potential) | (potential == -jnp.inf)
    if not allows_zero:
        invalid_potential |= potential == jnp.inf
    stops = invalid_potential | stopped
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
    """Make one sweep. A stopped chain sweeps from harmless values, and the result is discarded."""
    stopped = is_stopped(state.z)
    harmless = {
        name: jnp.where(stopped, 1 if _is_float(x) else 0, x).astype(x.dtype)
        for name, x in state.z.items()
    }
    return stop_if_not_finite(sweep(state._replace(z=harmless)), stopped, state.z, allows_zero)


def check_start_not_stopped(kernel: Any, z: Mapping[str, Any], params: Any) -> None:
    """Raise NotFiniteError if a chain stops where it starts because a start value is 0."""
    log_joint = z.get(_LOG_JOINT)
    if log_joint is None or any(isinstance(x, jax.core.Tracer) for x in z.values()):
        return
    stopped = np.isnan(np.asarray(log_joint))
    zeros = []
    for name, value in (params or {}).items():
        at = np.argwhere(np.asarray(value) == 0)
        if stopped.any() and len(at) and name in z and _is_float(z[name]):
            place = f", first at {at[0].tolist()}" if at.size else ""
            zeros.append(f"init_params[{name!r}] is 0{place}")
    if zeros:
        raise NotFiniteError(
            f"{type(kernel).__name__} cannot start: {_what_is_not_finite(z, stopped)} is not "
            f"finite, and {', and '.join(zeros)}. Give positive numbers"
        )


def _what_is_not_finite(z: Mapping[str, Any], stopped: np.ndarray) -> str:
    sites = [name for name, x in z.items() if np.isposinf(np.asarray(x)[stopped]).any()]
    return " and ".join(f"site {name!r}" for name in sites) or "the log joint"


def check_not_stopped(kernel: Any, z: Mapping[str, Any]) -> None:
    """Raise NotFiniteError if a chain is stopped, in a state or in draws that are not traced."""
    log_joint = z.get(_LOG_JOINT)
    if log_joint is None or any(isinstance(x, jax.core.Tracer) for x in z.values()):
        return
    stopped = np.isnan(np.asarray(log_joint))
    if not stopped.any():
        return
    what = _what_is_not_finite(z, stopped)
    share = f", in {stopped.mean():.1%} of the draws" if stopped.ndim else ""
    raise NotFiniteError(
        f"{type(kernel).__name__} has stopped: {what} is not finite{share}. Either the data or the "
        "priors exceed the range of single precision, or a log likelihood of your own is NaN. Try "
        "double precision (jax_enable_x64), fewer rankings or points, or a prior with less mass at "
        "extreme values"
    )
