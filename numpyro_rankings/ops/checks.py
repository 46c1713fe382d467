"""Checks of arguments that every part of the package makes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def refuse_masked(name: str, value: Any) -> None:
    """Raise ValueError if entries are masked: JAX would take the numbers below the mask."""
    rows = value if isinstance(value, list | tuple) else [value]
    for k, row in enumerate(rows):
        if isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row):
            place = np.argwhere(np.ma.getmaskarray(row))[0].tolist()
            place = place if row is value else [k, *place]
            at = f"{place}" if place else ""
            raise ValueError(f"{name}{at} is masked: leave out or fill in what is missing")


def is_traced(values: Any) -> bool:
    """Whether any array among the values is traced, so that only its shape and type are known."""
    return any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(values))


def as_array(value: Any) -> Any:
    """Convert a value to an array of NumPy or, if it is traced, of JAX."""
    return jnp.asarray(value) if is_traced(value) else np.asarray(value)


def is_real(array: Any) -> bool:
    """Whether an array has integers or real numbers; it may be traced."""
    return jnp.issubdtype(array.dtype, jnp.floating) or array.dtype.kind in "iu"


def check_whole(name: str, number: Any, least: int = 1) -> None:
    """Raise ValueError unless the number is a whole one, at least 1 or, with ``least=0``, 0."""
    is_whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if not is_whole or number < least:
        kind = "a positive whole number" if least == 1 else "a whole number, 0 or more"
        raise ValueError(f"{name} must be {kind}, got {number!r}")


def check_positive(name: str, value: Any, expected: str = "a positive number") -> None:
    """Raise ValueError unless the value is one positive, finite number; a traced one may be."""
    refuse_masked(name, value)
    number = as_array(value)
    is_number = number.shape == () and is_real(number)
    if not is_number or not (is_traced(number) or 0 < float(number) < np.inf):
        raise ValueError(f"{name} must be {expected}, got {value!r}")


def positive_number(name: str, value: Any) -> Any:
    """Return one positive number as a float, or as a traced array if it is traced."""
    check_positive(name, value)
    return jnp.asarray(value, float) if is_traced(value) else float(value)
