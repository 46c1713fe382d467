"""How often the blocs of simulated rankings are found from fits to them.

``python benchmarks/blocs.py --model process|components --replicates 0-19 --jobs 2 --out FILE``;
``--quick`` is a small version. Each replicate has three blocs of 2 to 4 nearby groups, and a tenth
of random rankings, and is fitted by four chains. Each job is a process on a core of its own. A line
of JSON is added to FILE for each replicate; replicates that are there already are not made again.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np

from numpyro_rankings import Run, find_blocs, variation_of_information
from numpyro_rankings.infer import SliceGibbs
from numpyro_rankings.run.loop import sharing_programs

TESTS = Path(__file__).resolve().parents[1] / "tests"
MODELS = {
    "process": {"assignment": "parallel"},
    "components": {"assignment": "parallel", "num_components": 12},
}


def fit(args):
    """Fit replicates in this process, and add a line for each to the file."""
    sys.path.append(str(TESTS))
    from helpers.simulated_blocs import LEAST_SHARE, least_share, simulate_blocs

    kernel = SliceGibbs(**MODELS[args.model])
    for seed in args.only:
        start = time.process_time()
        data, bloc_of = simulate_blocs(seed, args.rankings, args.items)
        truth = bloc_of[np.asarray(data.assignments)]
        run = Run(kernel, data.rankings, key=jax.random.key(1000 + seed))
        started = time.process_time()
        run.extend(args.sweeps)
        fitted = time.process_time()
        samples = run.get_samples(group_by_chain=True)
        blocs = find_blocs(samples, data.rankings)
        ended = time.process_time()
        in_bloc = truth >= 0
        of_three = blocs.levels[2].labels if len(blocs.levels) > 2 else blocs.labels
        share = least_share(truth, of_three)
        found = {
            "model": args.model,
            "replicate": seed,
            "rankings": args.rankings,
            "items": args.items,
            "sweeps": args.sweeps,
            "true_groups": len(bloc_of) - 1,
            "true_sizes": np.bincount(truth[in_bloc], minlength=3).tolist(),
            "groups": float(samples["num_clusters"].mean()),
            "rhat": float(run.diagnostics()["r_hat"].max()),
            "number": blocs.number,
            "kept": [round(float(kept), 4) for kept in blocs.kept],
            "least_share": float(share),
            "vi": float(variation_of_information(truth[in_bloc], of_three[in_bloc])),
            "chains_agree": int(blocs.level.chains_agree.sum()),
            "found": bool(blocs.number == 3 and share >= LEAST_SHARE),
            "seconds_of_start": round(started - start, 1),
            "seconds_of_sweeps": round(fitted - started, 1),
            "seconds_of_blocs": round(ended - fitted, 1),
        }
        with args.out.open("a") as file:
            file.write(json.dumps(found) + "\n")


def lines(path, model):
    """The lines of the file about this model, by replicate."""
    if not path.exists():
        return {}
    found = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    return {one["replicate"]: one for one in found if one["model"] == model}


def start_jobs(args, missing):
    """Fit the missing replicates in so many processes, each on a core of its own."""
    flags = f"--xla_cpu_multi_thread_eigen=false {os.environ.get('XLA_FLAGS', '')}".strip()
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    cores = sorted(os.sched_getaffinity(0))
    running = []
    for job in range(min(args.jobs, len(missing))):
        core = cores[(args.first_core + job) % len(cores)]
        only = [str(seed) for seed in missing[job :: args.jobs]]
        sizes = [f"--{name}={getattr(args, name)}" for name in ("rankings", "items", "sweeps")]
        command = [sys.executable, __file__, "--model", args.model, "--out", str(args.out)]
        running.append(
            subprocess.Popen(
                [*command, *sizes, "--only", *only],
                env=environment,
                preexec_fn=lambda core=core: os.sched_setaffinity(0, [core]),
            )
        )
    if any([one.wait() for one in running]):
        sys.exit("a job failed")


def replicates(text):
    """The replicates A to B of "A-B", or the one of "A"."""
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", choices=MODELS, default="process")
    parser.add_argument("--replicates", type=replicates, default="0-19", metavar="A-B")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--first-core", type=int, default=0, help="core of the first job")
    parser.add_argument("--out", type=Path, default=Path("blocs.jsonl"), metavar="FILE")
    parser.add_argument("--rankings", type=int, default=800)
    parser.add_argument("--items", type=int, default=9)
    parser.add_argument("--sweeps", type=int, default=500, help="the second half is kept")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", type=int, nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.quick:
        args.replicates, args.rankings, args.sweeps = [0], 200, 60
    if args.only is not None:
        with sharing_programs():
            return fit(args)
    done = lines(args.out, args.model)
    start_jobs(args, [seed for seed in args.replicates if seed not in done])
    done = [found for seed, found in lines(args.out, args.model).items() if seed in args.replicates]
    print("| replicate | groups | R-hat | number | 3 blocs keep | least share | VI | found |")
    print("|---|---|---|---|---|---|---|---|")
    for one in sorted(done, key=lambda one: one["replicate"]):
        kept = one["kept"][2] if len(one["kept"]) > 2 else float("nan")
        print(
            f"| {one['replicate']} | {one['groups']:.1f} of {one['true_groups']} | "
            f"{one['rhat']:.2f} | {one['number']} | {kept:.0%} | {one['least_share']:.2f} | "
            f"{one['vi']:.3f} | {'yes' if one['found'] else 'no'} |"
        )
    print(f"{args.model}: found in {sum(one['found'] for one in done)} of {len(done)}")


if __name__ == "__main__":
    main()
