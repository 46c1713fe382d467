"""The settings of a run, and how they are read from a store."""

import math
import numbers
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from numpyro_rankings.run.convert import is_key
from numpyro_rankings.run.errors import StoreError

_MOST_SWEEPS = 2**31 - 1  # that a program counts


class Settings(NamedTuple):
    """What the draws depend on besides data and kernel, in types of JSON."""

    num_chains: int
    superchains: int | None
    num_warmup: int
    thinning: int
    extra_fields: tuple[str, ...]
    key: list[int]
    key_type: str
    x64: bool

    @classmethod
    def of(
        cls,
        key: Any,
        *,
        num_chains: int,
        superchains: int | None,
        num_warmup: int,
        thinning: int,
        extra_fields: tuple[str, ...],
    ) -> "Settings":
        """Return the settings of a new run."""
        key = _one_key(key)
        settings = cls(
            num_chains,
            superchains,
            num_warmup,
            thinning,
            extra_fields,
            np.asarray(jax.random.key_data(key)).tolist(),
            str(jax.random.key_impl(key)),
            _has_x64(),
        )
        return settings._in_range()

    def _in_range(self) -> "Settings":
        """Return them if the numbers are in range, or raise ValueError."""
        num_chains = at_least("num_chains", self.num_chains, 1)
        return self._replace(
            num_chains=num_chains,
            superchains=_check_superchains(self.superchains, num_chains),
            num_warmup=at_least("num_warmup", self.num_warmup, 0),
            thinning=at_least("thinning", self.thinning, 1, _MOST_SWEEPS),
        )

    @property
    def num_starts(self) -> int:
        """Number of points at which the chains start."""
        return self.superchains or self.num_chains

    def starting_keys(self) -> Array:
        """Return the keys of the starting points."""
        return jax.random.split(self.random_key(), self.num_starts)

    def random_key(self) -> Array:
        """Return the key of the run."""
        try:
            data = jnp.asarray(np.array(self.key, np.uint32))
            return jax.random.wrap_key_data(data, impl=self.key_type)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"key {self.key} of type {self.key_type!r}: {error}") from None


def settings_of(path: Path, about: dict[str, Any]) -> Settings:
    """Return the settings that a store has."""
    try:
        settings = Settings(**about["settings"])._in_range()
        fields = settings.extra_fields
        if not isinstance(fields, list) or not all(isinstance(name, str) for name in fields):
            raise ValueError(f"extra_fields must be names, got {fields!r}")
        key, key_type = settings.key, settings.key_type
        if not (isinstance(key, list) and key and isinstance(key_type, str)):
            raise ValueError(f"the key is {key!r} of type {key_type!r}")
        if not isinstance(settings.x64, bool):
            raise ValueError(f"x64 is {settings.x64!r}")
        for number in key:
            at_least("each number of the key", number, 0)
    except (KeyError, TypeError, ValueError) as error:
        text = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise StoreError(f"{path}: the settings of the run are damaged: {text}") from None
    return settings._replace(extra_fields=tuple(fields))


def check_precision(path: Path, settings: Settings) -> None:
    """Refuse to go on with a run in the other precision."""
    if settings.x64 != _has_x64():
        bits, others = (64, 32) if settings.x64 else (32, 64)
        raise StoreError(
            f"{path} is a run with numbers of {bits} bits, but JAX is set to {others}: call "
            f'jax.config.update("jax_enable_x64", {settings.x64}) before anything else'
        )


def _has_x64() -> bool:
    """Whether JAX computes with 64 bits."""
    return jnp.result_type(float) == jnp.float64


def _check_superchains(superchains: int | None, num_chains: int) -> int | None:
    """Raise ValueError unless the chains can start at so many points."""
    if superchains is None:
        return None
    if at_least("superchains", superchains, 2) > num_chains or num_chains % superchains:
        raise ValueError(
            f"num_chains must be a multiple of superchains, got {num_chains} and {superchains}"
        )
    return int(superchains)


def _one_key(key: Any) -> Array:
    """Return a random key, or raise ValueError."""
    try:
        one = key if is_key(key) else jax.random.wrap_key_data(jnp.asarray(key))
    except (TypeError, ValueError):
        one = None
    if one is None or one.shape != ():
        got = " ".join(repr(key).split())
        raise ValueError(f"key must be one random key, such as jax.random.key(0), got {got}")
    return one


def check_names(name: str, value: Any) -> tuple[str, ...]:
    """Return names as a tuple, or raise ValueError."""
    is_list = isinstance(value, Iterable) and not isinstance(value, str)
    if not is_list or not all(isinstance(x, str) for x in value):
        raise ValueError(f"{name} must be a tuple of names, got {value!r}")
    return tuple(value)


def is_number(value: Any) -> bool:
    """Whether it is a real number."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_number(name: str, value: Any) -> None:
    """Raise ValueError unless it is a real number."""
    if not is_number(value):
        raise ValueError(f"{name} must be a number, got {value!r}")


def at_least(name: str, value: Any, least: int, most: float = math.inf) -> int:
    """Return a whole number, or raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    if value > most:
        raise ValueError(f"{name} must be at most {most:,}, got {value!r}")
    return int(value)
