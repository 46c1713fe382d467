"""Whether a run that is resumed is the same run, and otherwise what differs, in words."""

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpyro_rankings.posterior.diagnostics import CHANGES
from numpyro_rankings.run.errors import OtherRunError, StoreError
from numpyro_rankings.run.fingerprint import CODE, COMPUTED, DATA, MODEL, Description, Sites

_TRACED_BY = ("jax", "numpyro", "numpyro-rankings")  # a trace may depend on their versions
_IS_OTHER = "is not the same"
_MOST_LINES = 5
_LONG = 100


def check_same(path: Path, before: Any, resumed: Description, check: bool = True) -> list[str]:
    """Refuse to resume a run with other data, another model or another kernel.

    Warn of other versions or devices.
    """
    if not all(_is_described(before.get(name)) for name in resumed):
        raise StoreError(f"{path}: the description of the run is damaged")
    differing = differences(before, resumed)
    if differing:
        text = f"{path} is a run of other data, another model or another kernel: {_join(differing)}"
        if check:
            advice = "; Run.resume(…, check=False) goes on" if resumed[MODEL] else ""
            raise OtherRunError(text + advice)
        warnings.warn(f"{text}; it goes on, and its store notes it", UserWarning, stacklevel=3)
    elif changes := sentences_of(changes_of(path, before)):
        warnings.warn(f"{path}: {' '.join(changes)}", UserWarning, stacklevel=3)
    if other := _differing_entries(before["versions"], resumed["versions"]):
        warnings.warn(
            f"{path} was made by other versions or on other devices ({'; '.join(other)}): "
            "further draws are not to the last bit those that it would have had",
            UserWarning,
            stacklevel=3,
        )
    return differing


def changes_of(path: Path, about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the changes that a store has."""
    try:
        return [
            {"num_draws": int(x["num_draws"]), "differences": [*x["differences"]]}
            for x in about.get(CHANGES, [])
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


def differences(before: Description, resumed: Description) -> list[str]:
    """Return in words what differs between two descriptions."""
    if differing := _differing_entries(before["precision"], resumed["precision"]):
        return differing  # all else differs by it
    versions = before["versions"], resumed["versions"]
    kernels: tuple[Mapping, ...] = before["kernel"], resumed["kernel"]
    is_python_same = versions[0].get("Python") == versions[1]["Python"]
    if not is_python_same:  # another version compiles functions otherwise
        kernels = tuple(_without_code(x) for x in kernels)
    differing = _data_differences(before["data"], resumed["data"]) + _kernel_differences(*kernels)
    if differing:
        return differing  # the model may differ by it
    structural, computed = _model_differences(before[MODEL], resumed[MODEL])
    other = _differing_entries(*({k: x.get(k) for k in _TRACED_BY} for x in versions))
    if computed and other:  # other versions may trace the same model otherwise
        if is_python_same and before[CODE] == resumed[CODE]:
            computed = []
        else:
            computed.append(f"which may be due to other versions ({'; '.join(other)})")
    return structural + computed


def _differing_entries(before: Mapping[str, Any], resumed: Mapping[str, Any]) -> list[str]:
    """Return in words which entries differ."""
    differing = []
    for name in sorted({*before, *resumed}):
        one, other = before.get(name), resumed.get(name)
        if one != other:
            one, other = _without_hashes(one), _without_hashes(other)
            was = f"was {one}, is {other}"
            is_short = one != other and len(was) < _LONG
            differing.append(f"{name} {was if is_short else _IS_OTHER}")
    return differing


def _data_differences(before: Mapping[str, str], resumed: Mapping[str, str]) -> list[str]:
    end = f" {_IS_OTHER}"
    return [
        f"the data of {x.removesuffix(end)} differ" if x.endswith(end) else x
        for x in _differing_entries(before, resumed)
    ]


def _kernel_differences(before: Mapping[str, str], resumed: Mapping[str, str]) -> list[str]:
    one, other = (_without_hashes(x.get("class")) for x in (before, resumed))
    if one != other:  # other classes have other arguments
        return [f"class was {one}, is {other}"]
    return _differing_entries(before, resumed)


def _model_differences(before: Sites, resumed: Sites) -> tuple[list[str], list[str]]:
    """Return in words in which sites two models differ, and in what they compute."""
    structural, computed = [], []
    for name in sorted({*before, *resumed}):
        one, other = before.get(name), resumed.get(name)
        site = f"site {name}" if name else "the model"
        if one is None or other is None:
            structural.append(f"{site} is {'missing' if other is None else 'new'}")
            continue
        differing = [k for k in {**one, **other} if one.get(k) != other.get(k)]
        if "kind" in differing:
            structural.append(f"{site} was {one['kind']}, is {other['kind']}")
        elif words := sorted(k for k in differing if k not in COMPUTED):
            entries = [{k: x.get(k) for k in words} for x in (one, other)]
            structural += [f"{site}: {text}" for text in _differing_entries(*entries)]
        elif differing:
            aspect = min(differing, key=COMPUTED.index)
            computed.append(f"the {aspect} of {site} {'differ' if aspect == DATA else 'differs'}")
    return structural, [] if structural else computed


def _join(differing: list[str]) -> str:
    rest = len(differing) - _MOST_LINES
    return "; ".join(differing[:_MOST_LINES]) + (f"; and {rest} more" if rest > 0 else "")


def _without_hashes(text: Any) -> Any:
    return re.sub(r",? ?\b(code|content) [0-9a-f]{16}", "", text) if text else text


def _without_code(entries: Mapping[str, str]) -> dict[str, str]:
    """Drop the hashes of functions."""
    return {
        name: re.sub(r",? ?\bcode [0-9a-f]{16}( with \(\))?", "", text)
        for name, text in entries.items()
        if name != CODE
    }


def _is_described(entries: Any) -> bool:
    """Whether it has words, by name, or entries of words."""
    if not isinstance(entries, dict):
        return False
    return all(
        isinstance(x, str) or (isinstance(x, dict) and all(isinstance(y, str) for y in x.values()))
        for x in entries.values()
    )
