"""Describe a run, so that another process can tell whether it goes on with the same one."""

import contextlib
import functools
import hashlib
import platform
import re
import types
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist
from jax.sharding import Mesh
from numpyro.infer.mcmc import MCMCKernel

from numpyro_rankings._version import __version__
from numpyro_rankings.run.convert import is_key
from numpyro_rankings.run.store import StoreError

_MODEL = "model"
_PACKAGES = ("jax", "jaxlib", "numpy", "numpyro")


def describe(
    kernel: MCMCKernel, args: tuple, kwargs: dict, mesh: Mesh | None
) -> dict[str, dict[str, str]]:
    """Describe the data, the kernel and the versions of a run, each in words, by name.

    :param mesh: of devices, None for one. It is among the versions, since sums depend on it.
    """
    devices = (
        "1" if mesh is None else " × ".join(f"{k} of {name}" for name, k in mesh.shape.items())
    )
    named = {f"argument {i}": x for i, x in enumerate(args, 1)} | kwargs
    return {
        "data": {name: _digest(value) for name, value in named.items()},
        "kernel": describe_kernel(kernel),
        "versions": {**describe_versions(), "devices": devices},
    }


def check_same(path: Path, before: dict[str, Any], now: dict[str, dict[str, str]]) -> None:
    """Refuse to resume a run with other data or another kernel; warn of other versions or devices.

    :param path: of the store.
    :param before: what :func:`describe` returned for the run.
    :param now: what it returns now.
    :raises StoreError: if data or kernel differ, or there is no such description.
    """
    if not all(_are_words(before.get(name)) for name in now):
        raise StoreError(f"{path}: the description of the run is damaged")
    other_versions = differences(before["versions"], now["versions"])
    found = differences(before["data"], now["data"])
    kernels = before["kernel"], now["kernel"]
    if before["versions"].get("Python") != now["versions"]["Python"]:
        kernels = without_code(kernels[0]), without_code(kernels[1])
    found += differences(*kernels)
    if found:
        raise StoreError(f"{path} is a run of other data or another kernel: {'; '.join(found)}")
    if other_versions:
        warnings.warn(
            f"{path} was made by other versions or on other devices ({'; '.join(other_versions)}): "
            "further draws are not to the last bit those that it would have had",
            UserWarning,
            stacklevel=3,
        )


def describe_kernel(kernel: MCMCKernel) -> dict[str, str]:
    """Return the class of a kernel and its settings, each in words, by name."""
    return _Words().of_kernel(kernel)


def describe_versions() -> dict[str, str]:
    """Return the versions on which the draws depend, by name."""
    versions = {name: _version_of(name) for name in _PACKAGES}
    return {
        "numpyro-rankings": __version__,
        **versions,
        "Python": platform.python_version(),
        "machine": f"{platform.machine()}, {jax.default_backend()}",
    }


_version_of = functools.cache(version)  # it reads a file


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return in words which entries differ."""
    names = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    if len(names) > 1 and _MODEL in names:
        names.remove(_MODEL)  # it repeats the settings of the kernel
    return [f"{name} was {before.get(name)}, is {now.get(name)}" for name in names]


def without_code(found: Mapping[str, str]) -> dict[str, str]:
    """Drop the hashes of functions, which another version of Python compiles otherwise."""
    return {name: re.sub(r"\bcode [0-9a-f]{16}", "code", text) for name, text in found.items()}


def _are_words(found: Any) -> bool:
    return isinstance(found, dict) and all(isinstance(x, str) for x in found.values())


def _digest(value: Any) -> str:
    """Return a hash of the leaves and the structure of a pytree."""
    leaves, structure = jax.tree.flatten(value)
    arrays = [np.asarray(jax.random.key_data(x) if is_key(x) else x) for x in leaves]
    found = hashlib.sha256(str(structure).encode())
    for array in arrays:
        found.update(f"{array.dtype} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    name = type(value).__name__
    if isinstance(value, np.ndarray | jax.Array):  # kernels take those of NumPy and JAX alike
        name = f"Array of {arrays[0].dtype}"
    shape = f" of shape {arrays[0].shape}" if len(arrays) == 1 else ""
    return f"{name}{shape}, content {found.hexdigest()[:16]}"


_PLAIN = (bool, int, float, str, bytes, tuple, np.ndarray, np.generic, jax.Array)


def _names_of(code: types.CodeType) -> set[str]:
    """Names that a function uses, those in its inner functions included."""
    inner = (_names_of(x) for x in code.co_consts if isinstance(x, types.CodeType))
    return set(code.co_names).union(*inner)


class _Words:
    """Describes settings in words that are the same in every process.

    It keeps what it is describing, since a model often refers to its kernel.
    """

    def __init__(self) -> None:
        self._within: list[int] = []

    def of_kernel(self, kernel: MCMCKernel) -> dict[str, str]:
        # what is compiled while a kernel runs is left out of its pickle, and of this
        settings = dict(kernel.__getstate__())
        for x in list(settings.values()):
            settings |= x._asdict() if hasattr(x, "_asdict") else {}
        found = {
            name.lstrip("_"): self.of(x)
            for name, x in settings.items()
            if not hasattr(x, "_asdict")
        }
        of_class = f"{type(kernel).__module__}.{type(kernel).__qualname__}"
        return {"class": of_class, **dict(sorted(found.items()))}

    def of(self, value: Any) -> str:
        if id(value) in self._within:
            return "itself"
        self._within.append(id(value))
        try:
            return self._of(value)
        finally:
            self._within.pop()

    def _of(self, value: Any) -> str:
        if value is None or isinstance(value, bool | int | float | str | bytes):
            return repr(value)
        if isinstance(value, np.ndarray | jax.Array | np.generic):
            is_short = np.size(value) <= 20 and not is_key(value)
            return str(np.asarray(value).tolist()) if is_short else _digest(value)
        if isinstance(value, MCMCKernel):
            return self._of_entries(type(value).__name__, self.of_kernel(value))
        if isinstance(value, dist.Distribution):
            settings = {name: getattr(value, name) for name in value.arg_constraints}
            return self._of_entries(type(value).__name__, settings)
        if isinstance(value, Mapping):
            return self._of_entries("", value)
        if hasattr(value, "_asdict"):
            return self._of_entries(type(value).__name__, value._asdict())
        if isinstance(value, list | tuple):
            return f"({', '.join(self.of(x) for x in value)})"
        if isinstance(value, set | frozenset):
            return f"({', '.join(sorted(self.of(x) for x in value))})"
        if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType):
            return value.__name__
        if isinstance(value, types.MethodType):
            return f"{self.of(value.__func__)} of {self.of(value.__self__)}"
        if isinstance(value, functools.partial):
            return f"{self.of(value.func)} with {self.of(value.args)} {self.of(value.keywords)}"
        if isinstance(value, types.FunctionType):
            return self._of_function(value)
        if hasattr(value, "__wrapped__"):  # such as jax.jit makes
            return self.of(value.__wrapped__)
        # private attributes may be what an object has learned of its data
        public = {k: x for k, x in getattr(value, "__dict__", {}).items() if k[0] != "_"}
        return self._of_entries(type(value).__qualname__, public)

    def _of_entries(self, name: str, entries: Mapping[Any, Any]) -> str:
        parts = sorted(f"{key}={self.of(x)}" for key, x in entries.items())
        return f"{name}({', '.join(parts)})"

    def _of_function(self, function: types.FunctionType) -> str:
        """Return the name of a function, and a hash of its code and of what it refers to.

        Of global names these are numbers, words, arrays, and functions of the same module.
        """
        found = hashlib.sha256(self._of_code(function.__code__).encode())
        inside: list[Any] = [function.__defaults__, function.__kwdefaults__]
        for name in sorted(_names_of(function.__code__) & function.__globals__.keys()):
            x = function.__globals__[name]
            is_near = getattr(x, "__module__", None) == function.__module__
            if isinstance(x, _PLAIN) or (isinstance(x, types.FunctionType) and is_near):
                inside.append((name, x))
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # a cell that is still empty
                inside.append(cell.cell_contents)
        found.update(self.of(inside).encode())
        return f"{function.__qualname__}, code {found.hexdigest()[:16]}"

    def _of_code(self, code: types.CodeType) -> str:
        constants = [
            self._of_code(x) if isinstance(x, types.CodeType) else self.of(x)
            for x in code.co_consts
        ]
        return f"{code.co_code.hex()} {code.co_names} {constants}"
