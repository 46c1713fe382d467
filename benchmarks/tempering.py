"""Tempered mixtures: whether independent ladders agree, and what they say of the number of groups.

``python benchmarks/tempering.py bundled|simulated``; ``--quick`` is a small version. ``bundled``
runs four ladders of the bundled ballots until R-hat is at most 1.01. ``simulated`` makes the path
of the number of groups of 1,000 rankings of 10 items from two seeds; ``--figure FILE`` draws it.
``--write FILE`` writes the rankings instead, to be fitted by the command ``fit``.
"""

import argparse
import time

import jax
import numpy as np

from numpyro_rankings import (
    Draws,
    Rankings,
    Run,
    group_path,
    lasting_number,
    load_dataset,
    log_evidence,
)
from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.infer import TemperedMixture

NUM_ITEMS = 10


def bundled(args):
    """Print a row for each family and number of groups."""
    rankings = load_dataset("apa1980")
    print("| family, K | seconds | R-hat | round trips | shares by ladder | log evidence |")
    print("|---|---|---|---|---|---|")
    for family in ("mallows", "plackett-luce"):
        for number in (3, 4):
            start = time.perf_counter()
            kernel = TemperedMixture(family, number)
            run = Run(kernel, rankings, key=jax.random.key(args.seeds[0]), num_chains=4)
            run.until(rhat=1.01, ess=200, minutes=0.2 if args.quick else args.minutes)
            seconds = time.perf_counter() - start
            shares = np.asarray(run.get_samples(group_by_chain=True)["shares"])
            shares = np.sort(shares, axis=-1)[..., ::-1].mean(1)
            trips = run.as_mcmc().get_extra_fields(group_by_chain=True)["round_trips"][:, -1]
            evidence = log_evidence(run)
            print(
                f"| {family}, {number} | {seconds:.0f} | {run.diagnostics()['r_hat'].max():.3f} "
                f"| {', '.join(map(str, trips))} | {_words(shares)} "
                f"| {evidence.value:.2f} ± {evidence.standard_error:.2f} |",
                flush=True,
            )


def simulated(args):
    """Print a row for each data set, seed and number of groups, and the number that lasts."""
    print("| data, seed | K | seconds | log likelihood | shares | log evidence |")
    print("|---|---|---|---|---|---|")
    for name in args.only:
        rankings = DATA[name](100 if args.quick else args.judges)
        if args.write:
            rankings.to_dataframe("orders").to_csv(args.write, index=False)
            continue
        for seed in args.seeds:
            clock = [time.perf_counter()]
            path = group_path(
                rankings,
                max_components=2 if args.quick else args.most,
                key=jax.random.key(seed),
                num_warmup=20 if args.quick else args.sweeps,
                num_samples=20 if args.quick else args.sweeps,
                after_number=lambda number, mcmc, name=f"{name}, {seed}", clock=clock: _row(
                    name, number, Draws.of(mcmc), clock
                ),
            )
            trips = path["round_trips"].values.tolist()
            print(f"{name}, seed {seed}: {lasting_number(path)}; round trips {trips}", flush=True)
            if args.figure:
                from numpyro_rankings.plots import plot_group_path

                figure = plot_group_path(path).figure
                figure.savefig(args.figure, dpi=150, bbox_inches="tight")


def _row(name, number, draws, clock):
    shares = np.sort(draws.samples["shares"])[..., ::-1].mean(1)
    likelihood = draws.ladder["rung_log_likelihood"][..., -1].mean(1)
    evidence, now = log_evidence(draws), time.perf_counter()
    print(
        f"| {name} | {number} | {now - clock[-1]:.0f} | {likelihood.round(1).tolist()} "
        f"| {_words(shares)} | {evidence.value:.2f} ± {evidence.standard_error:.2f} |",
        flush=True,
    )
    clock.append(now)


def _words(shares):
    return "; ".join(" ".join(f"{x:.2f}".lstrip("0") for x in each) for each in shares)


def _sample(key, centers, sizes, scale):
    """Draw rankings from groups, whose concentrations vary from stage to stage."""
    parts = []
    for center, size in zip(centers, sizes, strict=True):
        key, key_theta, key_rankings = jax.random.split(key, 3)
        theta = jax.random.gamma(key_theta, 8.0, (NUM_ITEMS - 1,)) * scale / 8
        model = GeneralizedMallows(center, theta)
        parts.append(np.asarray(model.sample(key_rankings, (size,))))
    return np.concatenate(parts)


def six_groups(size):
    """Return six groups of 26 to 8%."""
    rng = np.random.default_rng(1)
    sizes = [int(size * share) for share in (0.26, 0.22, 0.18, 0.14, 0.12, 0.08)]
    lists = _sample(jax.random.key(1), [rng.permutation(NUM_ITEMS) for _ in sizes], sizes, 0.5)
    return Rankings.from_orderings(lists, num_items=NUM_ITEMS)


def three_and_noise(size):
    """Return three groups that share the order of five items, and a tenth of random rankings."""
    rng = np.random.default_rng(2)
    base = rng.permutation(NUM_ITEMS)
    centers = []
    for _ in range(3):
        center, places = base.copy(), rng.choice(NUM_ITEMS, 5, replace=False)
        center[places] = center[rng.permutation(places)]
        centers.append(center)
    sizes = [int(size * share) for share in (0.4, 0.3, 0.2)]
    # the last item of all is certain
    noise = [rng.permutation(NUM_ITEMS)[:-1] for _ in range(size // 10)]
    lists = _sample(jax.random.key(2), centers, sizes, 0.5)
    return Rankings.from_orderings(np.concatenate([lists, noise]), num_items=NUM_ITEMS)


def no_groups(size):
    """Return judges whose utilities follow three continuous factors: no mixture of Mallows."""
    rng = np.random.default_rng(3)
    factors, base = rng.normal(size=(NUM_ITEMS, 3)), np.linspace(1, 0, NUM_ITEMS)
    noise = rng.gumbel(size=(size, NUM_ITEMS))
    utilities = 0.9 * rng.normal(size=(size, 3)) @ factors.T + noise + base
    return Rankings.from_orderings(np.argsort(-utilities), num_items=NUM_ITEMS)


def one_group(size):
    """Return judges of one Mallows model."""
    center = np.random.default_rng(4).permutation(NUM_ITEMS)
    lists = _sample(jax.random.key(4), [center], [size], 0.6)
    return Rankings.from_orderings(lists, num_items=NUM_ITEMS)


def trend(size):
    """Return judges each with a center of its own, anywhere between two orders."""
    rng = np.random.default_rng(5)
    scores = np.stack([rng.permutation(NUM_ITEMS), rng.permutation(NUM_ITEMS)])
    place = rng.uniform(size=(size, 1))
    centers = np.argsort(place * scores[0] + (1 - place) * scores[1], axis=1)
    model = GeneralizedMallows(centers, np.full(NUM_ITEMS - 1, 0.6))
    return Rankings.from_orderings(model.sample(jax.random.key(5)), num_items=NUM_ITEMS)


def nine_in_three_blocs(size):
    """Return three blocs of three groups, which differ in the places of four items."""
    rng, centers = np.random.default_rng(6), []
    for base in [rng.permutation(NUM_ITEMS) for _ in range(3)]:
        for _ in range(3):
            center, places = base.copy(), rng.choice(NUM_ITEMS, 4, replace=False)
            center[places] = center[rng.permutation(places)]
            centers.append(center)
    sizes = [size // 9 + (i < size % 9) for i in range(9)]
    return Rankings.from_orderings(_sample(jax.random.key(6), centers, sizes, 0.6), NUM_ITEMS)


DATA = {
    "six": six_groups,
    "three and noise": three_and_noise,
    "factors": no_groups,
    "one": one_group,
    "trend": trend,
    "nine": nine_in_three_blocs,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["bundled", "simulated"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--most", type=int, default=8, help="largest number of groups")
    parser.add_argument("--sweeps", type=int, default=200, help="of the warm-up, and kept")
    parser.add_argument("--judges", type=int, default=1000, help="of simulated rankings")
    parser.add_argument("--only", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--figure", help="file of the last path")
    parser.add_argument("--write", help="file of the last rankings")
    args = parser.parse_args()
    {"bundled": bundled, "simulated": simulated}[args.part](args)


if __name__ == "__main__":
    main()
