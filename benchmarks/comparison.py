"""How often the comparison of models names the model that made the data.

``python benchmarks/comparison.py``; ``--quick`` is a small version.
"""

import argparse
import time

import jax
import numpy as np

from numpyro_rankings import compare
from numpyro_rankings.datasets import simulate_mallows_mixture, simulate_plackett_luce_mixture
from numpyro_rankings.report.comparison import default_models

ITEMS = 6


def mallows(key, size, groups):
    return simulate_mallows_mixture(key, size, ITEMS, ITEMS, groups, 1.0).rankings


def plackett_luce(key, size, groups):
    weights = np.exp(1.5 * np.asarray(jax.random.normal(key, (groups, ITEMS))))
    return simulate_plackett_luce_mixture(key, size, weights).rankings


TRUTHS = {
    "Mallows (3 groups)": (mallows, 3),
    "Plackett–Luce (3 groups)": (plackett_luce, 3),
    "Mallows (1 group)": (mallows, 1),
    "Plackett–Luce (1 group)": (plackett_luce, 1),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--size", type=int, default=500, help="rankings in a data set")
    parser.add_argument("--components", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--truth", nargs="+", choices=TRUTHS, default=list(TRUTHS))
    args = parser.parse_args()
    replicates = 1 if args.quick else args.replicates
    components = [1, 3] if args.quick else args.components
    print(f"{args.size} full rankings of {ITEMS} items, groups {components}\n")
    print("| truth | replicates | named | right number of groups | right family | seconds each |")
    print("|---|---|---|---|---|---|", flush=True)
    for truth in args.truth:
        simulate, groups = TRUTHS[truth]
        named = numbers = families = 0
        start = time.perf_counter()
        for seed in range(replicates):
            rankings = simulate(jax.random.key(seed), args.size, groups)
            models = default_models(rankings, components)
            models = {name: x for name, x in models.items() if "any" not in name}
            comparison = compare(rankings, models, key=jax.random.key(100 + seed), minutes=1)
            family, number = comparison.groups[comparison.simplest]
            named += comparison.simplest == truth
            numbers += number == groups
            families += truth.startswith(family)
        seconds = (time.perf_counter() - start) / replicates
        cells = truth, replicates, named, numbers, families, f"{seconds:.0f}"
        print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main()
