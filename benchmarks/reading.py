"""How long large tables take to be read and described, and with how much memory.

``python benchmarks/reading.py``; ``--quick`` is a small version. Each table is read in a process of
its own, whose processor time and largest memory are those of the whole process: with Python, JAX
and the imports, which the row "nothing" has alone.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ITEMS = 10
LAYOUTS = ("ranks", "orders", "long")


def write(folder, layout, rows):
    """Write a table of lists of 1 to 10 of the items, with the ids of the judges."""
    rng = np.random.default_rng(0)
    orders = np.argsort(rng.random((rows, ITEMS)) + 0.1 * np.arange(ITEMS), axis=1)
    lengths = rng.integers(1, ITEMS + 1, rows)
    names = np.array([f"Candidate {k}" for k in range(1, ITEMS + 1)], object)
    ids = [f"r{k:07}" for k in range(rows)]
    path = folder / f"{layout}.csv"
    with path.open("w", encoding="utf-8") as file:
        if layout == "long":
            file.write("judge,item,rank\n")
            for judge, order, length in zip(ids, orders.tolist(), lengths.tolist(), strict=True):
                listed = enumerate(order[:length], 1)
                file.writelines(f"{judge},{names[item]},{rank}\n" for rank, item in listed)
            return path
        if layout == "ranks":
            ranks = np.argsort(orders, axis=1) + 1
            cells = np.where(ranks <= lengths[:, None], ranks.astype(str), "")
            columns = names.tolist()
        else:
            cells = np.where(np.arange(ITEMS) < lengths[:, None], names[orders], "")
            columns = [f"rank {k}" for k in range(1, ITEMS + 1)]
        file.write(",".join(["judge", *columns]) + "\n")
        file.writelines(
            f"{judge},{','.join(row)}\n" for judge, row in zip(ids, cells.tolist(), strict=True)
        )
    return path


def largest_memory():
    """Return the largest memory of this process so far, in GB, on Linux."""
    # not ru_maxrss, which begins with that of the process that started this one
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) / 2**20


def measure(path, layout):
    """Read a table in this process, describe it, and print what both took."""
    start = time.process_time()
    from numpyro_rankings import read_survey
    from numpyro_rankings.cli.describe_rankings import description

    found = {"imports": time.process_time() - start}
    if path is not None:
        start = time.process_time()
        survey = read_survey(path, layout, judge="judge")
        found["reading"] = time.process_time() - start
        found["memory"] = largest_memory()
        start = time.process_time()
        list(description(survey))
        found["describing"] = time.process_time() - start
        found["distinct"] = survey.rankings.num_rows
    found.setdefault("memory", largest_memory())
    print(json.dumps(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("FILE", "LAYOUT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        path, layout = args.one
        return measure(path or None, layout)
    rows = 10_000 if args.quick else args.rows
    print(f"| {rows:,} ballots | file | seconds of reading | of describing | memory, GB |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for layout in ("nothing", *LAYOUTS):
            path = "" if layout == "nothing" else write(Path(folder), layout, rows)
            command = [sys.executable, __file__, "--one", str(path), layout]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            if layout == "nothing":
                print(f"| nothing | | imports {found['imports']:.2f} | | {found['memory']:.2f} |")
                continue
            size = path.stat().st_size / 1e6
            print(
                f"| {layout}, {found['distinct']:,} distinct lists | {size:,.0f} MB | "
                f"{found['reading']:.2f} | {found['describing']:.2f} | "
                f"{found['memory']:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
