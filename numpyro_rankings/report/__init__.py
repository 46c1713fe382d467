"""Reports: one self-contained HTML page with the groups, and whether they can be trusted.

The sentences and the HTML of the pages are the templates in the folder ``templates``. They show
what the modules ``answers``, ``figures``, ``description`` and ``write`` compute.
"""

from numpyro_rankings.posterior.diagnostics import Verdict, verdict
from numpyro_rankings.report.findings import Findings, findings_of
from numpyro_rankings.report.write import write_partition_report, write_report

__all__ = [
    "Findings",
    "Verdict",
    "findings_of",
    "verdict",
    "write_partition_report",
    "write_report",
]
