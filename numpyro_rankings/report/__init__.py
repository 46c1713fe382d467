"""Reports: one self-contained HTML page with the groups, and whether they can be trusted."""

from numpyro_rankings.diagnostics import Verdict, verdict
from numpyro_rankings.report.write import write_partition_report, write_report

__all__ = [
    "Verdict",
    "verdict",
    "write_partition_report",
    "write_report",
]
