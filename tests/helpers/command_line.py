"""Small files and short runs for the commands."""

import numpy as np

import numpyro_rankings.predictive_checks
import numpyro_rankings.report
from numpyro_rankings.report.page import details_of_run, status_box, write_page

SOI = """\
# FILE NAME: small.soi
# TITLE: A small election
# DATA TYPE: soi
# NUMBER ALTERNATIVES: 4
# NUMBER VOTERS: 40
# NUMBER UNIQUE ORDERS: 5
# ALTERNATIVE NAME 1: Ann <A>
# ALTERNATIVE NAME 2: Bob
# ALTERNATIVE NAME 3: Cid
# ALTERNATIVE NAME 4: Dee
14: 1,2,3,4
4: 1,2
12: 4,3,2
6: 4
4: 2,1,3
"""
FEW_DRAWS = ["--warmup", "20", "--draws", "40", "--chains", "2"]
QUICK_FIT = [
    *FEW_DRAWS,
    "--max-clusters",
    "16",
    "--no-progress",
]

# two groups, by turns: around (-5, -50) and (5, 50)
_JITTER = np.random.default_rng(0).normal(size=(20, 2))
_SIDE = np.where(np.arange(20) % 2 == 0, -1.0, 1.0)
PLANE = np.stack([5 * _SIDE, 50 * _SIDE], axis=1) + _JITTER * [0.3, 2.0]
POINTS = "who,x,y\n" + "".join(
    f"<p{i}>,{x:.3f},{y:.3f}\n" for i, (x, y) in enumerate(PLANE.tolist())
)
QUICK_CLUSTER = [*FEW_DRAWS, "--no-progress", "--out", "out"]
GAUSSIAN = ["cluster", "points.csv", "--family", "gaussian"]
FEW = ["--alpha", "gamma(2,20)"]  # clusters


def without_page(patch):
    """Write of the page its status and how it was made, but no figures, nor their checks."""

    def write_report(path, *_, title, details, status=None, **__):
        write_page(path, title, [status_box(status), details_of_run(details)])

    patch.setattr(numpyro_rankings.report, "write_report", write_report)
    patch.setattr(numpyro_rankings.report, "write_partition_report", write_report)
    checks = numpyro_rankings.predictive_checks
    patch.setattr(checks, "posterior_predictive_checks", lambda *_: None)
