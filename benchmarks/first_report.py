"""How long ``numpyro-rankings fit`` takes on the bundled table, of two versions in turn.

``python benchmarks/first_report.py --before OLD/bin/python --now NEW/bin/python``: the Pythons of
two environments, with a version in each. Both start without compiled programs, once for each seed,
one after the other on an otherwise idle machine. ``--quick`` makes short runs.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

_SWEEPS = re.compile(r": ([\d,]+) sweeps?\b")
_ENDED = re.compile(r"stopped after ([\d,]+) sweeps.*?(?:R-hat ([\d.]+), )?ESS ([\d,]+)")


def fit(python, seed, arguments):
    """Run the command once, and return what is measured.

    Seconds are from the start of the command: to the first line that tells of sweeps, which is up
    to ten seconds late, to the first page, the last sweep and the end.
    """
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "results", "report.html")
        command = [python, "-m", "numpyro_rankings", "fit", "--seed", str(seed), *arguments]
        start = time.perf_counter()
        running = subprocess.Popen(
            [*command, "--out", str(page.parent)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,  # Python looks there first
            env={**os.environ, "XDG_CACHE_HOME": folder, "PYTHONUNBUFFERED": "1"},
        )
        found = {}
        for line in running.stderr:
            seconds = time.perf_counter() - start
            if page.exists():
                found.setdefault("first page", seconds)
            if (told := _SWEEPS.search(line)) and "first sweeps" not in found:
                found["first sweeps"], before = seconds, int(told[1].replace(",", ""))
            if ended := _ENDED.search(line):
                found["last sweep"] = seconds
                found["sweeps"], found["ESS"] = (int(x.replace(",", "")) for x in ended.group(1, 3))
        _, status, usage = os.wait4(running.pid, 0)
        seconds = time.perf_counter() - start
    if status != 0:
        sys.exit(f"{' '.join(command)} failed with status {os.waitstatus_to_exitcode(status)}")
    found |= {"report": seconds, "CPU": usage.ru_utime + usage.ru_stime}
    found.setdefault("first page", seconds)
    found["memory, GB"] = usage.ru_maxrss / 2**20
    if "last sweep" in found:
        sampling = found["last sweep"] - found["first sweeps"]
        found["ms a sweep"] = 1e3 * sampling / (found["sweeps"] - before)
        found["ESS a second"] = found["ESS"] / sampling
        found["after the last sweep"] = seconds - found["last sweep"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", help="Python of the environment of the version before")
    parser.add_argument("--now", default=sys.executable)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    arguments = ["--draws", "20", "--warmup", "20"] if args.quick else []
    versions = {"now": args.now} | ({"before": args.before} if args.before else {})
    found = {name: [] for name in versions}
    for seed in range(1 if args.quick else args.seeds):
        for name, python in versions.items():
            one = fit(python, seed, arguments)
            found[name].append(one)
            shown = ", ".join(f"{what} {x:,.3g}" for what, x in one.items())
            print(f"{name}, seed {seed}: {shown}", flush=True)
    for name, runs in found.items():
        shown = ", ".join(f"{what} {median(run[what] for run in runs):,.3g}" for what in runs[0])
        print(f"{name}, median: {shown}")


if __name__ == "__main__":
    main()
