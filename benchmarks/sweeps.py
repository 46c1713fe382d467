"""What a sweep costs, and how far it gets: one table for all kernels, in one run.

``python benchmarks/sweeps.py [--only NAME ...]``; ``--quick`` is a small version. Each row is timed
by itself, on one device, compilation apart, and the best of three. ESS is that of one chain.
"""

import argparse
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.diagnostics import effective_sample_size
from partitions import clusters_of_points
from plackett_luce import log_mixture, simulate

import numpyro_rankings
from numpyro_rankings import Run, load_dataset, point_estimate
from numpyro_rankings.components import GaussianMean, NormalInverseWishart
from numpyro_rankings.datasets import (
    simulate_mallows,
    simulate_mallows_mixture,
    simulate_plackett_luce_mixture,
)
from numpyro_rankings.infer import (
    CollapsedGibbs,
    DDCRPGibbs,
    DPPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
    SubclusterGibbs,
)
from numpyro_rankings.links.decays import exponential_decay
from numpyro_rankings.links.distances import nearest_distances

PLANE = NormalInverseWishart([0.0, 0.0], 0.1, 4.0, np.eye(2))


class Timed:
    """A run of one chain.

    :param start: values from which it starts.
    :param warmup: sweeps before any is timed.
    """

    def __init__(self, kernel, data, start=None, warmup=3):
        began = time.perf_counter()
        if start is not None:
            start = {name: value[None] for name, value in start.items()}
        settings = dict(key=jax.random.key(0), num_chains=1, burn_in=0.0, init_params=start)
        self._run = Run(kernel, *data, **settings)
        self._run.extend(1)
        self.first = time.perf_counter() - began  # start, compilation and one sweep
        self._run.extend(warmup)

    def sweeps(self, number, repeats=3):
        """Seconds of a sweep, the best of some repeats, and the draws of the last."""
        best = np.inf
        for _ in range(repeats):
            before = self._run.seconds
            self._run.extend(number)
            best = min(best, (self._run.seconds - before) / number)
        return best, {name: x[0, -number:] for name, x in self.draws().items()}

    def draws(self):
        """All draws."""
        return self._run.get_samples(group_by_chain=True)

    @property
    def clusters(self):
        """Number of clusters of the last draw."""
        return int(self._run.num_clusters[0])


def show(name, seconds, rest=""):
    print(f"| {name} | {seconds:.3g} s | {rest} |", flush=True)


def ess_a_second(values, seconds):
    return effective_sample_size(np.asarray(values, np.float64)[None]) / (seconds * len(values))


# -- mixtures at the size of the paper's college data --------------------------------------------


def college(quick):
    size, items, slots = (2000, 60, 16) if quick else (53757, 533, 64)
    return size, items, slots, np.random.default_rng(0)


def slice_parallel(quick):
    size, items, slots, rng = college(quick)
    truth = simulate_mallows_mixture(jax.random.key(1), size, items, 10, 26, 0.5)
    center = np.stack([rng.permutation(items) for _ in range(max(slots, 26))])
    center[:26] = truth.centers
    kernel = SliceGibbs(assignment="parallel", max_clusters=len(center), init="given")
    start = {"assignments": jnp.asarray(truth.assignments), "center": jnp.asarray(center)}
    chain = Timed(kernel, (truth.rankings,), start)
    seconds, _ = chain.sweeps(3)
    found = chain.clusters
    show("SliceGibbs parallel, college size, 64 slots", seconds, f"{found} clusters")


def weights_of_college(quick):
    size, items, slots, rng = college(quick)
    weights = np.exp(2.0 * rng.normal(size=(26, items)))
    truth = simulate_plackett_luce_mixture(jax.random.key(1), size, weights, 10)
    return truth.rankings.of_listed_items(), jnp.asarray(truth.assignments), max(slots, 32)


def process(quick):
    rankings, labels, slots = weights_of_college(quick)
    kernel = DPPlackettLuceGibbs(max_clusters=slots)
    chain = Timed(kernel, (rankings,), {"assignments": labels})
    seconds, _ = chain.sweeps(5)
    found = chain.clusters
    first = f"first sweep, with start and compilation, {chain.first:.1f} s"
    show("DPPlackettLuceGibbs, college size, 64 slots", seconds, f"{found} clusters; {first}")


def finite(quick):
    rankings, labels, _ = weights_of_college(quick)
    chain = Timed(PlackettLuceGibbs(num_components=26), (rankings,), {"assignments": labels})
    seconds, _ = chain.sweeps(5)
    first = f"first sweep, with start and compilation, {chain.first:.1f} s"
    show("PlackettLuceGibbs, K = 26, college size", seconds, first)


def bundled(quick):
    kernel = SliceGibbs(assignment="parallel")
    chain = Timed(kernel, (load_dataset("apa1980"),), warmup=20 if quick else 300)
    seconds, _ = chain.sweeps(5 if quick else 30)
    first = f"first sweep, with start and compilation, {chain.first:.1f} s"
    show("SliceGibbs, bundled ballots, one chain, defaults", seconds, first)


# -- one population, and three, of ten items -----------------------------------------------------


def one_theta(quick, length=10):
    size, draws = (500, 200) if quick else (5000, 5000)
    rankings = simulate_mallows(jax.random.key(0), size, np.arange(10), 0.25, lengths=length)
    prior = dist.Gamma(1.0, 1.0)
    kernel = SliceGibbs(num_components=1, tied=True, concentration_prior=prior)
    chain = Timed(kernel, (rankings,), warmup=200)
    seconds, kept = chain.sweeps(draws)
    values = np.asarray(kept["shared_concentration"])[:, 0]
    name = "full rankings" if length == 10 else f"top-{length}"
    rest = f"{ess_a_second(values, seconds):,.0f} effective draws of θ a second"
    show(f"one population, one θ, 5,000 {name} of 10", seconds, rest)


def top_five(quick):
    one_theta(quick, 5)


def one_plackett_luce(quick):
    size, draws = (500, 200) if quick else (5000, 5000)
    rankings = simulate(size, 10, 10).unique()
    chain = Timed(PlackettLuceGibbs(), (rankings,), warmup=200)
    seconds, kept = chain.sweeps(draws)
    orderings = jnp.asarray(rankings.orderings[rankings.row_index])
    of_one = jax.jit(lambda w: log_mixture(w[None], jnp.ones(1), orderings))
    values = [of_one(w) for w in kept["weights"]]
    rest = f"{ess_a_second(values, seconds):,.0f} effective draws of the log likelihood a second"
    show("PlackettLuceGibbs, one population, 5,000 x 10", seconds, rest)


def three_plackett_luce(quick):
    size, draws = (500, 100) if quick else (5000, 500)
    rng = np.random.default_rng(0)
    weights = np.exp(rng.normal(size=(3, 10)))
    truth = simulate_plackett_luce_mixture(jax.random.key(1), size, weights, 10)
    rankings = truth.rankings.unique()
    chain = Timed(PlackettLuceGibbs(num_components=3), (rankings,), warmup=100)
    seconds, kept = chain.sweeps(draws, repeats=1)
    orderings = jnp.asarray(rankings.orderings[rankings.row_index])
    of_one = jax.jit(lambda w, sizes: log_mixture(w, sizes / size, orderings))
    values = list(map(of_one, kept["weights"], kept["cluster_sizes"]))
    rest = f"{ess_a_second(values, seconds):,.1f} effective draws of the log likelihood a second, "
    rest += f"{ess_a_second(kept['log_joint'], seconds):,.1f} of the log joint"
    show("PlackettLuceGibbs, K = 3, 5,000 x 10", seconds, rest)


# -- partitions ----------------------------------------------------------------------------------


def collapsed(quick):
    points, labels = clusters_of_points(1000, 4, 2, np.sqrt(15.0))
    start = {"assignments": jnp.asarray(labels)}
    for batch_size in (1, 64):
        chain = Timed(CollapsedGibbs(PLANE, 1.0, batch_size=batch_size), (points,), start)
        seconds, _ = chain.sweeps(100)
        name = "one by one" if batch_size == 1 else f"batches of {batch_size}"
        show(f"CollapsedGibbs, 1,000 points in the plane, {name}", seconds)


def million(quick):
    size = 10_000 if quick else 1_000_000
    points, labels = clusters_of_points(size, 6, 2, np.sqrt(15.0))
    start = {"assignments": jnp.asarray(labels, jnp.int32)}
    chain = Timed(SubclusterGibbs(PLANE, 1.0), (points,), start)
    seconds, _ = chain.sweeps(5)
    found = chain.clusters
    show("SubclusterGibbs, 10^6 points in the plane", seconds, f"{found} clusters, 6 true ones")


def estimate(quick):
    size, number = (200, 150) if quick else (1000, 1500)
    rng = np.random.default_rng(0)
    truth = rng.integers(12, size=size)
    strays = rng.random((number, size)) < 0.25
    draws = np.where(strays, rng.integers(12, size=(number, size)), truth)
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        found = point_estimate(draws)
        best = min(best, time.perf_counter() - start)
    rest = f"{found.labels.max() + 1} clusters, expected loss {found.expected_loss:.4f}"
    show("point_estimate, 1,000 points, 1,500 draws", best, rest)


def links(quick):
    size = 1000 if quick else 10_000
    rng = np.random.default_rng(0)
    places = rng.uniform(size=(size, 2)) * np.sqrt(size)
    group = np.floor(places / 10) @ [1, 1000]
    points = 5.0 * np.cos(7.0 * group)[:, None] + rng.normal(size=(size, 1))
    kernel = DDCRPGibbs(GaussianMean(5.0, 1.0), 0.01, exponential_decay(1.0))
    chain = Timed(kernel, (jnp.asarray(points, jnp.float32), nearest_distances(places, 20)))
    seconds, _ = chain.sweeps(5)
    found = chain.clusters
    show("DDCRPGibbs, 10,000 places, 20 neighbors", seconds, f"{found} clusters")


ROWS = {
    row.__name__: row
    for row in (
        slice_parallel,
        process,
        finite,
        bundled,
        one_theta,
        top_five,
        one_plackett_luce,
        three_plackett_luce,
        collapsed,
        million,
        estimate,
        links,
    )
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME")
    args = parser.parse_args()
    print(
        f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores; jax {jax.__version__}, "
        f"numpyro_rankings {numpyro_rankings.__version__}\n"
    )
    print("| job | a sweep, or the job | |\n|---|---|---|", flush=True)
    for name in args.only:
        ROWS[name](args.quick)


if __name__ == "__main__":
    main()
