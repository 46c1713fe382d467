"""How long the command line takes until its chains agree, on data of many kinds.

``python benchmarks/mixing.py [--data DIR] [--only NAME ...] [--minutes M]`` runs
``numpyro-rankings fit`` with its default settings, each time as a new process that compiles
everything anew, and prints one row of a table for each run. ``--data`` is a folder with the PrefLib
data sets 00001 (``irish2002``), 00024 and 00025 (``preflib_misc/dots``, ``preflib_misc/puzzle``);
without it only simulated data and the bundled ballots are fitted.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import arviz as az
import jax
import numpy as np

from numpyro_rankings.datasets import (
    simulate_mallows,
    simulate_mallows_mixture,
    simulate_plackett_luce_mixture,
)
from numpyro_rankings.posterior.diagnostics import diagnostics_table
from numpyro_rankings.readers import write_table

MALLOWS_DP = ()
PLACKETT_LUCE_DP = ("--model", "dp-plackett-luce")


def mallows(components):
    return ("--components", str(components))


def plackett_luce(components):
    return ("--model", "plackett-luce", "--components", str(components))


class Job(NamedTuple):
    """One data set with the options of some fits."""

    data: object  # makes rankings, or names a file in the folder of the data; None: bundled
    options: tuple


# -- data --------------------------------------------------------------------------------------


def survey(size, num_items, seed=0):
    """Three groups with centers at random; a judge lists any number of items."""
    key, key_lengths = jax.random.split(jax.random.key(seed))
    lengths = jax.random.randint(key_lengths, (size,), 1, num_items + 1)
    sample = simulate_mallows_mixture(key, size, num_items, np.asarray(lengths), 3, 0.7)
    return sample.rankings


def overlapping(size=5000, num_items=10, seed=1):
    """Three groups with centers near one another, and 10% of the rankings at random."""
    keys = jax.random.split(jax.random.key(seed), 3)
    around = simulate_mallows(keys[0], 3, np.arange(num_items), 0.5)
    weights = [0.4, 0.3, 0.2, 0.1]
    centers = np.concatenate([around.expand().orderings, np.arange(num_items)[None]])
    theta = np.repeat([[0.6], [0.6], [0.6], [0.0]], num_items - 1, 1)
    sample = simulate_mallows_mixture(
        keys[1], size, num_items, num_items, 4, theta, weights, centers
    )
    return sample.rankings


def short_lists(size=400, length=6, num_items=20, seed=2):
    """Three groups of Plackett–Luce lists, with independent Gamma(1) weights."""
    key, key_weights = jax.random.split(jax.random.key(seed))
    weights = jax.random.gamma(key_weights, 1.0, (3, num_items))
    return simulate_plackett_luce_mixture(key, size, weights, length).rankings


SMALL = (MALLOWS_DP, PLACKETT_LUCE_DP, mallows(3))
IRISH = (*(mallows(k) for k in (3, 4, 5)), MALLOWS_DP, PLACKETT_LUCE_DP)
JOBS = {
    "survey-100x10": Job(partial(survey, 100, 10), SMALL),
    "survey-300x5": Job(partial(survey, 300, 5), SMALL),
    "survey-435x6": Job(partial(survey, 435, 6), SMALL),
    "survey-500x4": Job(partial(survey, 500, 4), SMALL),
    "dots": Job("preflib_misc/dots/00024-00000001.soc", SMALL),
    "puzzle": Job("preflib_misc/puzzle/00025-00000001.soc", SMALL),
    "apa": Job(None, (MALLOWS_DP, mallows(3))),
    "5000x10": Job(overlapping, (MALLOWS_DP, plackett_luce(3), PLACKETT_LUCE_DP)),
    "400x6-of-20": Job(short_lists, (PLACKETT_LUCE_DP,)),
    "dublin-north": Job("irish2002/00001-00000001.soi", IRISH),
    "dublin-west": Job("irish2002/00001-00000002.soi", IRISH),
    "meath": Job("irish2002/00001-00000003.soi", IRISH),
}


# -- fits --------------------------------------------------------------------------------------


def fit(file, options, minutes, folder, seed):
    """Run the command in a new process; return its seconds, all that it printed, and its draws."""
    out = folder / "out"
    command = [sys.executable, "-m", "numpyro_rankings", "fit", *file, *options]
    command += ["--minutes", str(minutes), "--seed", str(seed), "--out", str(out), "--force"]
    with tempfile.TemporaryDirectory() as cache:
        env = os.environ | {"JAX_COMPILATION_CACHE_DIR": cache}
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=env)
        seconds = time.perf_counter() - start
    if done.returncode:
        return seconds, done.stderr, None
    return seconds, done.stderr, az.from_netcdf(out / "posterior.nc")


def row(name, options, seconds, text, draws):
    if draws is None:
        return f"| {name} | {' '.join(options)} | failed: {text.splitlines()[-1]} |"
    table = diagnostics_table(draws)
    sampled = table[table["r_hat"].notna()]
    sweeps = re.findall(r"after ([\d,]+) sweeps", text)[-1]
    worst = sampled["r_hat"].idxmax(), sampled["ess_bulk"].idxmin()
    ended = "agree" if "because" in text else "time over"
    r_hat, ess = sampled["r_hat"].max(), sampled["ess_bulk"].min()
    return (
        f"| {name} | {' '.join(options) or 'none'} | {seconds:.0f} s | {ended} | {sweeps} | "
        f"{r_hat:.3f} ({worst[0]}) | {ess:,.0f} ({worst[1]}) |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the PrefLib data sets")
    parser.add_argument("--only", nargs="+", choices=JOBS, default=list(JOBS), metavar="NAME")
    parser.add_argument("--options", help="only fits with exactly these options, such as ''")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print("| data | options | time | ended | sweeps | largest R-hat | smallest ESS |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in args.only:
        job = JOBS[name]
        if isinstance(job.data, str) and args.data is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            file = []
            if isinstance(job.data, str):
                file = [str(args.data / job.data)]
            elif job.data is not None:
                file = [str(folder / "data.csv")]
                write_table(job.data(), file[0])
            for options in job.options:
                if args.options is None or args.options.split() == list(options):
                    result = fit(file, options, args.minutes, folder, args.seed)
                    print(row(name, options, *result), flush=True)


if __name__ == "__main__":
    main()
