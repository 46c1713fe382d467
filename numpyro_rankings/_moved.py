"""Modules under the names that they had in 0.1: each import of one warns, until 0.3."""

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_HOMES = {
    "comparison": "report.comparison",
    "decays": "links.decays",
    "diagnostics": "posterior.diagnostics",
    "distances": "links.distances",
    "evidence": "posterior.evidence",
    "inference_data": "posterior.inference_data",
    "partitions": "posterior.partitions",
    "point_estimates": "posterior.point_estimates",
    "prediction": "posterior.prediction",
    "predictive_checks": "posterior.predictive_checks",
    "relabeling": "posterior.relabeling",
    "stacking": "posterior.stacking",
    "summaries": "posterior",
}
_PACKAGE = __name__.rpartition(".")[0]


def _home_of(name: str) -> str | None:
    """Return where a module under its old name is, or a file of an old folder; None of others."""
    package, _, rest = name.partition(".")
    old, _, file = rest.partition(".")
    if package != _PACKAGE or old not in _HOMES:
        return None
    home = f"{package}.{_HOMES[old]}"
    return f"{home}.{file}" if file else home


class _Finder(MetaPathFinder, Loader):
    """Finds the old modules only. It is asked first, so that no file is loaded a second time."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        return None if _home_of(name) is None else ModuleSpec(name, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        home = _home_of(spec.name)
        assert home is not None
        warnings.warn(f"{spec.name} is now {home}", DeprecationWarning, stacklevel=2)
        self._kept = (module := import_module(home)).__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._kept  # which the import system has just replaced


def find_old_modules() -> None:
    """Let the import system find modules under their old names."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
