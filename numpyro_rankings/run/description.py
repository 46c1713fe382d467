"""Describe a run, so that another process can tell whether it goes on with the same one.

Of a model it counts what it computes: it is traced once, and the log density of each site, the
data in it, and its shape and support are compared. Of a kernel the settings count. What cannot be
traced, such as the class of a kernel, is compared by its code.
"""

import functools
import platform
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
from jax.sharding import Mesh
from numpyro.infer import CustomGibbs, Gibbs
from numpyro.infer.mcmc import MCMCKernel

from numpyro_rankings._version import __version__
from numpyro_rankings.infer.base import GibbsKernel
from numpyro_rankings.posterior.diagnostics import CHANGES
from numpyro_rankings.run.contents import (
    Words,
    content_of,
    is_installed,
    settings_of_kernel,
)
from numpyro_rankings.run.errors import StoreError
from numpyro_rankings.run.sites import (
    COMPUTED,
    DATA,
    UPDATE,
    Sites,
    describe_potential,
    describe_update,
    trace_model,
)

_PACKAGES = ("jax", "jaxlib", "numpy", "numpyro")
_TRACED_BY = ("jax", "numpyro", "numpyro-rankings")  # on whose versions a trace may depend
_MODEL, _CODE = "model", "code"
_POTENTIALS = ("potential_fn", "_potential_fn")  # attributes of kernels
_IS_OTHER = "is not the same"
_MOST_LINES = 5
_LONG = 100

Description = dict[str, dict[str, Any]]


def describe(
    kernel: MCMCKernel, args: tuple, kwargs: dict, mesh: Mesh | None, init_params: Any = None
) -> Description:
    """Describe the data, the kernel, its model and the versions of a run, in words, by name.

    :param mesh: of devices, None for one. It is among the versions, since sums depend on it.
    :param init_params: starting values, whose shapes a kernel with ``potential_fn=`` needs.
    """
    devices = (
        "1" if mesh is None else " × ".join(f"{k} of {name}" for name, k in mesh.shape.items())
    )
    words = Words()
    sites, code, is_traced = _describe_models(kernel, args, kwargs, init_params, words)
    named = {f"argument {i}": x for i, x in enumerate(args, 1)} | kwargs
    of_argument = Words(only_data=is_traced)
    return {
        "data": {name: _describe_argument(x, of_argument) for name, x in named.items()},
        "kernel": words.of_kernel(kernel),
        _MODEL: sites,
        _CODE: code,
        "precision": {"jax_enable_x64": str(jax.config.read("jax_enable_x64"))},
        "versions": {**describe_versions(), "devices": devices},
    }


def check_has_start(kernel: MCMCKernel, init_params: Any) -> None:
    """Refuse a kernel with ``potential_fn=`` without starting values, in NumPyro's words."""
    if init_params is None and not all(has_sites for _, has_sites in _models_of(kernel)):
        raise ValueError("Valid value of `init_params` must be provided with `potential_fn`.")


def check_same(path: Path, before: Any, now: Description, check: bool = True) -> list[str]:
    """Refuse to resume a run with other data, another model or another kernel.

    Warn of other versions or devices.

    :param path: of the store.
    :param before: what :func:`describe` returned for the run.
    :param now: what it returns now.
    :param check: whether to refuse; otherwise there is a warning.
    :return: what differs, in words.
    :raises StoreError: if data, model or kernel differ, or there is no such description.
    """
    if not all(_is_described(before.get(name)) for name in now):
        raise StoreError(f"{path}: the description of the run is damaged")
    found = _differences(before, now)
    if found:
        text = f"{path} is a run of other data, another model or another kernel: {_join(found)}"
        if check:
            raise StoreError(f"{text}; Run.resume(…, check=False) goes on" if now[_MODEL] else text)
        warnings.warn(f"{text}; it goes on, and its store notes it", UserWarning, stacklevel=3)
    elif changes := sentences_of(changes_of(path, before)):
        warnings.warn(f"{path}: {' '.join(changes)}", UserWarning, stacklevel=3)
    if other := differences(before["versions"], now["versions"]):
        warnings.warn(
            f"{path} was made by other versions or on other devices ({'; '.join(other)}): "
            "further draws are not to the last bit those that it would have had",
            UserWarning,
            stacklevel=3,
        )
    return found


def changes_of(path: Path, about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the changes that a store has.

    :param path: of the store.
    :param about: what it was created with, and the changes.
    :raises StoreError: if they are damaged.
    """
    found = about.get(CHANGES, [])
    try:
        return [
            {"num_draws": int(x["num_draws"]), "differences": [*x["differences"]]} for x in found
        ]
    except (KeyError, TypeError, ValueError):
        raise StoreError(f"{path}: the changes of the run are damaged") from None


def sentences_of(changes: list[dict[str, Any]]) -> list[str]:
    """Return a sentence for each change."""
    return [
        f"From draw {x['num_draws'] + 1} of each chain on, the run is one of other data, another "
        f"model or another kernel: {_join(x['differences'])}."
        for x in changes
    ]


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
    found = []
    for name in sorted({*before, *now}):
        one, other = before.get(name), now.get(name)
        if one != other:
            one, other = _without_hashes(one), _without_hashes(other)
            was = f"was {one}, is {other}"
            is_short = one != other and len(was) < _LONG
            found.append(f"{name} {was if is_short else _IS_OTHER}")
    return found


# ---------------------------------------------------------------------------------------------
# Description
# ---------------------------------------------------------------------------------------------


def _describe_models(
    kernel: MCMCKernel, args: tuple, kwargs: dict, init_params: Any, words: Words
) -> tuple[Sites, dict[str, str], bool]:
    """Describe what the models of a kernel compute, and their code, and whether all were traced.

    A kernel of this package that has no user's model is described by its settings.
    """
    sites: Sites = {}
    code: dict[str, str] = {}
    is_traced = True
    for number, (model, has_sites) in enumerate(_models_of(kernel), 1):
        mark = f" of model {number}" if number > 1 else ""
        code[f"model{mark}"] = words.of(model)
        latents: Mapping[str, Any] = {}
        try:
            if has_sites:
                found, latents = trace_model(model, args, kwargs)
            else:
                found = describe_potential(model, jax.tree.map(lambda x: x[0], init_params))
        except Exception:  # it cannot be traced, or needs starting values
            found, is_traced = {"": {_CODE: code[f"model{mark}"]}}, False
        for update, own in _updates_of(kernel):
            of_update = code[f"update of {', '.join(own)}"] = words.of(update)
            try:
                found[own[0]][UPDATE] = describe_update(update, own, latents)
            except Exception:
                found.setdefault("", {})[f"{_CODE} of the {UPDATE} of {own}"] = of_update
        sites |= {f"{name}{mark}": aspects for name, aspects in found.items()}
    return sites, code, is_traced and bool(sites)


def _models_of(kernel: MCMCKernel) -> Iterator[tuple[Callable, bool]]:
    """Yield the model of a kernel, or of its parts, and True; a potential energy, and False."""
    if isinstance(kernel, GibbsKernel) and is_installed(type(kernel)) and not kernel.is_block:
        return
    if callable(model := getattr(kernel, "model", None)):
        yield model, True
    elif potentials := [x for name in _POTENTIALS if callable(x := getattr(kernel, name, None))]:
        yield potentials[0], False
    else:
        for x in settings_of_kernel(kernel).values():
            for part in x if isinstance(x, list | tuple) else (x,):
                if isinstance(part, MCMCKernel):
                    yield from _models_of(part)


def _updates_of(kernel: MCMCKernel) -> Iterator[tuple[Callable, Sequence[str]]]:
    """Yield the functions by which a user draws sites, with the names of the sites."""
    for block, names in kernel.blocks if isinstance(kernel, Gibbs) else ():
        if isinstance(block, CustomGibbs):
            yield block._gibbs_fn, () if callable(names) else names
        yield from _updates_of(block)


def _describe_argument(value: Any, words: Words) -> str:
    text = words.of_argument(value)
    return text if len(text) < _LONG else f"{type(value).__name__}, {content_of(text)}"


# ---------------------------------------------------------------------------------------------
# Comparison
# ---------------------------------------------------------------------------------------------


def _differences(before: Description, now: Description) -> list[str]:
    """Return in words what differs between two descriptions."""
    if found := differences(before["precision"], now["precision"]):
        return found  # all else differs by it
    versions = before["versions"], now["versions"]
    kernels: tuple[Mapping, ...] = before["kernel"], now["kernel"]
    is_python_same = versions[0].get("Python") == versions[1]["Python"]
    if not is_python_same:  # which compiles functions otherwise
        kernels = tuple(_without_code(x) for x in kernels)
    found = _data_differences(before["data"], now["data"]) + _kernel_differences(*kernels)
    if found:
        return found  # the model may differ by it
    structural, computed = _model_differences(before[_MODEL], now[_MODEL])
    other = differences(*({k: x.get(k) for k in _TRACED_BY} for x in versions))
    if computed and other:  # which may compute the same otherwise
        if is_python_same and before[_CODE] == now[_CODE]:
            computed = []
        else:
            computed.append(f"which may be due to other versions ({'; '.join(other)})")
    return structural + computed


def _kernel_differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    one, other = (_without_hashes(x.get("class")) for x in (before, now))
    if one != other:  # which have other arguments
        return [f"class was {one}, is {other}"]
    return differences(before, now)


def _model_differences(before: Sites, now: Sites) -> tuple[list[str], list[str]]:
    """Return in words in which sites two models differ, and in what they compute."""
    structural, computed = [], []
    for name in sorted({*before, *now}):
        one, other = before.get(name), now.get(name)
        site = f"site {name}" if name else "the model"
        if one is None or other is None:
            structural.append(f"{site} is {'missing' if other is None else 'new'}")
            continue
        differing = [k for k in {**one, **other} if one.get(k) != other.get(k)]
        if "kind" in differing:
            structural.append(f"{site} was {one['kind']}, is {other['kind']}")
        elif words := sorted(k for k in differing if k not in COMPUTED):
            entries = [{k: x.get(k) for k in words} for x in (one, other)]
            structural += [f"{site}: {text}" for text in differences(*entries)]
        elif differing:
            aspect = min(differing, key=COMPUTED.index)
            computed.append(f"the {aspect} of {site} {'differ' if aspect == DATA else 'differs'}")
    return structural, [] if structural else computed


def _data_differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    found = differences(before, now)
    end = f" {_IS_OTHER}"
    return [f"the data of {x.removesuffix(end)} differ" if x.endswith(end) else x for x in found]


def _join(found: list[str]) -> str:
    rest = len(found) - _MOST_LINES
    return "; ".join(found[:_MOST_LINES]) + (f"; and {rest} more" if rest > 0 else "")


def _without_hashes(text: Any) -> Any:
    return re.sub(r",? ?\b(code|content) [0-9a-f]{16}", "", text) if text else text


def _without_code(found: Mapping[str, str]) -> dict[str, str]:
    """Drop the hashes of functions."""
    return {
        name: re.sub(r",? ?\bcode [0-9a-f]{16}( with \(\))?", "", text)
        for name, text in found.items()
        if name != _CODE
    }


def _is_described(found: Any) -> bool:
    """Whether it has words, by name, or entries of words."""
    if not isinstance(found, dict):
        return False
    return all(
        isinstance(x, str) or (isinstance(x, dict) and all(isinstance(y, str) for y in x.values()))
        for x in found.values()
    )
