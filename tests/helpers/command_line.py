"""Small files and short runs for the commands."""

import csv
import os
import signal

import numpy as np
import xarray as xr

import numpyro_rankings.posterior.predictive_checks
import numpyro_rankings.report.write
from numpyro_rankings.cli import main
from numpyro_rankings.cli.progress import Progress
from numpyro_rankings.report.page import write_page
from numpyro_rankings.run.store import Store

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
QUICK_FIT = [*FEW_DRAWS, "--max-clusters", "16", "--no-progress"]

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

    def write(path, findings, *_, title, status=None, **__):
        details = findings.details
        view = {"title": title, "what": "a test", "status": status, "details": details}
        view |= {"how_found": "", "glossary": []}
        write_page(path, "base.html", view)

    patch.setattr(numpyro_rankings.report.write, "write_findings", write)
    patch.setattr(numpyro_rankings.report.write, "write_findings_of_points", write)
    checks = numpyro_rankings.posterior.predictive_checks
    patch.setattr(checks, "posterior_predictive_checks", lambda *_: None)


def interrupting_after(chunks, patch, number=signal.SIGINT):
    """Press Ctrl-C in the given chunk, counted over all runs, or send another signal."""
    count, original = 0, Progress.show

    def show(self, run):
        nonlocal count
        count += 1
        original(self, run)
        if count == chunks:
            signal.raise_signal(number)

    patch.setattr(Progress, "show", show)


def run(*arguments):
    """Run a command, and return its exit status."""
    return main([str(argument) for argument in arguments])


def rows_of(path):
    """Return the rows of a table of the results, by the names of its columns."""
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def expect_error(capsys, arguments, fragments, others=("note:",)):
    """Let a command end in one line that has these fragments, and leave nothing behind.

    Lines that begin with the others may be shown before.
    """
    before = sorted(os.listdir())
    assert run(*arguments) == 2
    others = tuple(f"numpyro-rankings: {word}" for word in others)
    lines = capsys.readouterr().err.strip().splitlines()
    (line,) = (line for line in lines if not line.startswith(others))
    assert line.startswith("numpyro-rankings: error: ")
    for fragment in fragments:
        assert fragment in line
    assert sorted(os.listdir()) == before


def weights_of_results(folder):
    """Return the draws of the weights in the results of a command."""
    with xr.open_dataset(f"{folder}/posterior.nc", group="posterior", engine="h5netcdf") as data:
        return np.asarray(data["weights"])


def weights_of_store(path="out.run"):
    """Return the draws of the weights in the store of a command."""
    store = Store.open(path)
    try:
        return store.read("posterior")["weights"]
    finally:
        store.close()
