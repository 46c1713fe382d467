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


class _Finder(MetaPathFinder, Loader):
    """Finds the old modules only: those that exist are found before it is asked."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        package, _, old = name.rpartition(".")
        return ModuleSpec(name, self) if package == _PACKAGE and old in _HOMES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        home = f"{_PACKAGE}.{_HOMES[spec.name.rpartition('.')[2]]}"
        warnings.warn(f"{spec.name} is now {home}", DeprecationWarning, stacklevel=2)
        self._kept = (module := import_module(home)).__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._kept  # which the import system has just replaced


def find_old_modules() -> None:
    """Let the import system find modules under their old names."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
