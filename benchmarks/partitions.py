"""Benchmarks of the kernels of partitions, printed as tables.

``python benchmarks/partitions.py speed|links``; ``--quick`` is a small version of each.
"""

import argparse
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, DiscreteGibbs, Gibbs

import numpyro_rankings
from numpyro_rankings.components import DirichletMultinomial, GaussianMean, SparseCounts
from numpyro_rankings.decays import SparseDistances
from numpyro_rankings.infer import (
    CollapsedGibbs,
    DDCRPGibbs,
    PermutationGibbs,
    exponential_decay,
    window_decay,
)


def clusters_of_points(size, clusters, dimension, spread, seed=0):
    """Points about means of standard deviation ``spread``, noise 1; and their clusters."""
    rng = np.random.default_rng(seed)
    means = spread * rng.normal(size=(clusters, dimension))
    labels = rng.integers(clusters, size=size)
    points = means[labels] + rng.normal(size=(size, dimension))
    return jnp.asarray(points, jnp.float32), labels


def seconds_a_sweep(kernel, args, params=None, warmup=3, sweeps=10):
    """Wall seconds of a sweep, compiled; the state after it; sweeps in warm-up are left out."""
    state = kernel.init(jax.random.key(0), warmup + 1, params, args, {})

    def run(state, args, number):
        return jax.lax.fori_loop(0, number, lambda _, s: kernel.sample(s, args, {}), state)

    state = jax.block_until_ready(jax.jit(partial(run, number=warmup + 1))(state, args))
    compiled = jax.jit(partial(run, number=sweeps)).lower(state, args).compile()
    start = time.perf_counter()
    state = jax.block_until_ready(compiled(state, args))
    return (time.perf_counter() - start) / sweeps, state


def nearby(points, number):
    """The nearest points of each, and their distances, in blocks."""
    points, neighbors, distances = np.asarray(points), [], []
    for block in np.array_split(np.arange(len(points)), max(len(points) // 500, 1)):
        d = np.linalg.norm(points[block, None] - points[None], axis=-1)
        d[np.arange(len(block)), block] = np.inf
        nearest = np.argpartition(d, number, axis=1)[:, :number]
        neighbors.append(nearest)
        distances.append(np.take_along_axis(d, nearest, axis=1))
    return SparseDistances(np.concatenate(neighbors), np.concatenate(distances))


def stock_numpyro(points, clusters, draws):
    """Seconds a sweep of NumPyro's own Gibbs: labels one by one, means by NUTS."""

    def model(x):
        means = numpyro.sample("means", dist.Normal(0.0, 10.0).expand((clusters,)).to_event(1))
        shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(clusters)))
        with numpyro.plate("point", len(x)):
            label = numpyro.sample("label", dist.Categorical(shares))
            numpyro.sample("x", dist.Normal(means[label], 1.0), obs=x)

    x = points[:, 0]
    mcmc = MCMC(
        Gibbs([(DiscreteGibbs(model), ["label"]), (NUTS(model, max_tree_depth=3), None)]),
        num_warmup=2,
        num_samples=draws,
        progress_bar=True,  # keeps the compiled program between runs
    )
    mcmc.run(jax.random.key(0), x)
    start = time.perf_counter()
    mcmc.run(jax.random.key(1), x)
    return (time.perf_counter() - start) / (draws + 2)


def speed(args):
    """Seconds a sweep: collapsed Gibbs against NumPyro's own, and by the number of points."""
    scale = 10 if args.quick else 1
    size = 4000 // scale
    print(f"10 clusters on a line, N = {size}: seconds a sweep")
    for spread in (10.0, 40.0):
        points, labels = clusters_of_points(size, 10, 1, spread)
        kernel = CollapsedGibbs(GaussianMean(spread, 1.0), 1.0, max_clusters=32)
        start = {"assignments": jnp.asarray(labels)}
        ours, state = seconds_a_sweep(kernel, (points,), start, sweeps=100)
        print(f"CollapsedGibbs, means N(0, {spread:g}²): {ours:.6f}", end="", flush=True)
        print(f", {int(state.z['num_clusters'])} clusters", end="")
        if spread == 10.0 and args.draws > 0:
            stock = stock_numpyro(points, 10, args.draws)
            print(f"; Gibbs of NumPyro: {stock:.4f}, {stock / ours:.0f} times", end="")
        print(flush=True)
    family = GaussianMean(10.0, 1.0)
    print("CollapsedGibbs in 10 dimensions, 20 clusters, seconds a sweep by N:", end=" ")
    for size in (10_000 // scale, 30_000 // scale, 100_000 // scale):
        points, labels = clusters_of_points(size, 20, 10, 10.0)
        kernel = CollapsedGibbs(family, 1.0, max_clusters=32)
        start = {"assignments": jnp.asarray(labels)}
        taken, _ = seconds_a_sweep(kernel, (points,), start, sweeps=5)
        print(f"{size}: {taken:.4f}", end="; ", flush=True)
    print("\nPermutationGibbs, beam 20, 50 dimensions, 40 clusters, seconds a sweep by N:", end=" ")
    for size in (10_000 // scale, 20_000 // scale):
        points, labels = clusters_of_points(size, 40, 50, 10.0)
        kernel = PermutationGibbs(family, 1.0, beam=20, max_clusters=64)
        start = {"assignments": jnp.asarray(labels)}
        taken, state = seconds_a_sweep(kernel, (points,), start, sweeps=3)
        print(f"{size}: {taken:.3f}", end="; ", flush=True)
    print()


def read_ldac(path):
    """Documents of an LDA-C file as sparse counts."""
    rows = [
        [pair.split(":") for pair in line.split()[1:]]
        for line in Path(path).read_text().split("\n")
    ]
    rows = [row for row in rows if row]
    longest = max(map(len, rows))
    words = np.full((len(rows), longest), -1, np.int32)
    counts = np.zeros((len(rows), longest), np.int32)
    for i, row in enumerate(rows):
        words[i, : len(row)] = [int(word) for word, _ in row]
        counts[i, : len(row)] = [int(count) for _, count in row]
    return SparseCounts(words, counts)


def links(args):
    """Seconds a sweep of the link sampler: citations of CORA, and places by their number."""
    folder = Path(args.data) / "cora_lda" if args.data else None
    if folder is not None and folder.exists():
        documents = read_ldac(folder / "cora.ldac")
        vocabulary = len((folder / "cora.vocab").read_text().split())
        cites = np.loadtxt(folder / "cora.cites", int)
        size = len(documents.words)
        cited = [set() for _ in range(size)]
        for i, j in cites:
            if i != j:
                cited[i].add(int(j))
                cited[j].add(int(i))
        width = max(map(len, cited))
        neighbors = np.array([[*sorted(c), *[-1] * (width - len(c))] for c in cited])
        near = SparseDistances(neighbors, np.ones(neighbors.shape))
        family = DirichletMultinomial(1.0, vocabulary_size=vocabulary)
        kernel = DDCRPGibbs(family, 1.0, window_decay(1.5))
        taken, state = seconds_a_sweep(kernel, (documents, near), sweeps=3)
        print(
            f"CORA, {size} documents, {sum(map(len, cited)) // 2} links: {taken:.2f} s a sweep, "
            f"{int(state.z['num_clusters'])} clusters, log joint {float(state.z['log_joint']):.0f}",
            flush=True,
        )
    print("places in the plane, 20 neighbors, seconds a sweep by N:", end=" ")
    scale = 10 if args.quick else 1
    for size in (10_000 // scale, 30_000 // scale, 100_000 // scale):
        rng = np.random.default_rng(0)
        places = rng.uniform(size=(size, 2)) * np.sqrt(size)
        near = nearby(places, 20)
        group = np.floor(places / 10) @ [1, 1000]  # squares of a hundred places
        points = 5.0 * np.cos(7.0 * group)[:, None] + rng.normal(size=(size, 1))
        kernel = DDCRPGibbs(GaussianMean(5.0, 1.0), 0.01, exponential_decay(1.0))
        taken, state = seconds_a_sweep(kernel, (points, near), sweeps=3)
        print(
            f"{size}: {taken:.3f} ({int(state.z['num_clusters'])} clusters)", end="; ", flush=True
        )
    print()


def main():
    """Read the command line and print the table asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for function in (speed, links):
        one = commands.add_parser(function.__name__, help=function.__doc__.split("\n")[0])
        one.add_argument("--quick", action="store_true", help="a tenth of the points")
        one.set_defaults(run=function)
    commands.choices["speed"].add_argument("--draws", type=int, default=10, help="of NumPyro")
    commands.choices["links"].add_argument("--data", help="a folder that holds cora_lda")
    args = parser.parse_args()
    print(f"numpyro_rankings {numpyro_rankings.__version__}, jax {jax.__version__}")
    args.run(args)


if __name__ == "__main__":
    main()
