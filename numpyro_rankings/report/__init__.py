"""One self-contained HTML page about a fit: the groups, and whether to trust them."""

from numpyro_rankings.diagnostics import Verdict, verdict
from numpyro_rankings.report.write import write_partition_report, write_report

__all__ = [
    "Verdict",
    "verdict",
    "write_partition_report",
    "write_report",
]
