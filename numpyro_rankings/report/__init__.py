"""Reports: one self-contained HTML page with the groups, and whether they can be trusted.

The sentences and the HTML of the pages are the templates in the folder ``templates``. They show
what the modules ``answers``, ``figures``, ``description`` and ``write`` compute.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpyro_rankings.posterior.diagnostics import Verdict, verdict
    from numpyro_rankings.report.findings import Findings, findings_of
    from numpyro_rankings.report.write import write_partition_report, write_report

# Loaded when they are first used: the command line needs only the module of commands, and JAX is
# not loaded for it.
_HOMES = {
    "Findings": "report.findings",
    "Verdict": "posterior.diagnostics",
    "findings_of": "report.findings",
    "verdict": "posterior.diagnostics",
    "write_partition_report": "report.write",
    "write_report": "report.write",
}

__all__ = [
    "Findings",
    "Verdict",
    "findings_of",
    "verdict",
    "write_partition_report",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"numpyro_rankings.{_HOMES[name]}"), name)
