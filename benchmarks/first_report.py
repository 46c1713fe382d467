"""How long ``numpyro-rankings fit`` takes on the bundled table, of two versions in turn.

``python benchmarks/first_report.py --before OLD/bin/python --now NEW/bin/python``: the Pythons of
two environments, with a version in each. Both start without compiled programs, once for each seed,
one after the other on an otherwise idle machine. With ``--judges 100 97`` they fit simulated tables
of ten items and three groups, each after the first with the compiled programs of those before it.
``--quick`` makes short runs.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from math import nan
from pathlib import Path
from statistics import median

import jax

from numpyro_rankings.datasets import simulate_mallows_mixture

_SWEEPS = re.compile(r": ([\d,]+) sweeps?\b")
_ENDED = re.compile(r"stopped after ([\d,]+) sweeps.*?(?:R-hat ([\d.]+), )?ESS ([\d,]+)")


def simulated(judges, path):
    """Write lists of ten items, a row for each judge, and return the arguments that read them."""
    shares = [0.5, 0.3, 0.2]
    sample = simulate_mallows_mixture(jax.random.key(0), judges, 10, 10, 3, 1.0, weights=shares)
    lists = sample.rankings.to_dataframe("orders")
    lists.to_csv(path, index_label="id")
    return [str(path), "--layout", "orders", "--judge", "id"]


def fit(python, arguments, cache):
    """Run the command once, and return what is measured.

    Seconds are from the start of the command: to the first line that tells of sweeps, which is up
    to ten seconds late, to the first page, the last sweep and the end.
    """
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "results", "report.html")
        command = [python, "-m", "numpyro_rankings", "fit", *arguments]
        start = time.perf_counter()
        running = subprocess.Popen(
            [*command, "--out", str(page.parent)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,  # Python looks there first
            env={**os.environ, "XDG_CACHE_HOME": cache, "PYTHONUNBUFFERED": "1"},
        )
        found = {}

        def wait_for_page():
            while not page.exists() and "report" not in found:
                time.sleep(0.1)
            found.setdefault("first page", time.perf_counter() - start)

        waiting = threading.Thread(target=wait_for_page)
        waiting.start()
        for line in running.stderr:
            seconds = time.perf_counter() - start
            if (told := _SWEEPS.search(line)) and "first sweeps" not in found:
                found["first sweeps"], before = seconds, int(told[1].replace(",", ""))
            if ended := _ENDED.search(line):
                found["last sweep"] = seconds
                found["sweeps"], found["ESS"] = (int(x.replace(",", "")) for x in ended.group(1, 3))
        _, status, usage = os.wait4(running.pid, 0)
        found["report"] = seconds = time.perf_counter() - start
        waiting.join()
    if status != 0:
        sys.exit(f"{' '.join(command)} failed with status {os.waitstatus_to_exitcode(status)}")
    found["CPU"] = usage.ru_utime + usage.ru_stime
    found["memory, GB"] = usage.ru_maxrss / 2**20
    if "last sweep" in found:
        sampling = found["last sweep"] - found["first sweeps"]
        if found["sweeps"] > before:  # of which the first were not all
            found["ms a sweep"] = 1e3 * sampling / (found["sweeps"] - before)
            found["ESS a second"] = found["ESS"] / sampling
        found["after the last sweep"] = seconds - found["last sweep"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", help="Python of the environment of the version before")
    parser.add_argument("--now", default=sys.executable)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--judges", type=int, nargs="+", help="of simulated tables")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    options = ["--draws", "20", "--warmup", "20"] if args.quick else []
    versions = {"now": args.now} | ({"before": args.before} if args.before else {})
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        tables = {
            f"{judges} judges": simulated(judges, Path(folder, f"{judges}.csv"))
            for judges in args.judges or []
        } or {"bundled table": []}
        for seed in range(1 if args.quick else args.seeds):
            for version, python in versions.items():
                cache = tempfile.mkdtemp(dir=folder)
                for table, arguments in tables.items():
                    one = fit(python, ["--seed", str(seed), *arguments, *options], cache)
                    found.setdefault(f"{version}, {table}", []).append(one)
                    shown = ", ".join(f"{what} {x:,.3g}" for what, x in one.items())
                    print(f"{version}, {table}, seed {seed}: {shown}", flush=True)
    for name, runs in found.items():
        shown = ", ".join(
            f"{what} {median(run.get(what, nan) for run in runs):,.3g}" for what in runs[0]
        )
        print(f"{name}, median: {shown}")


if __name__ == "__main__":
    main()
