"""Benchmarks of the kernels of partitions, printed as tables.

``python benchmarks/partitions.py NAME``, where NAME is speed, million, links, estimates, burnin,
mixing, nips, cora, language or samplers; ``--quick`` is a small version of each. From ``burnin`` on
they repeat the comparisons of Liang, Jordan & Taskar (2007) and of Blei & Frazier (2011), on the
data in the folder ``--data``.
"""

import argparse
import gzip
import lzma
import re
import resource
import time
import zipfile
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.diagnostics import autocorrelation, effective_sample_size
from numpyro.infer import MCMC, NUTS, DiscreteGibbs, Gibbs

import numpyro_rankings
from numpyro_rankings import (
    adjusted_rand_index,
    log_language_evidence,
    log_predictive_of_points,
    medoid_partition,
    point_estimate,
)
from numpyro_rankings.components import (
    DirichletMultinomial,
    Family,
    GaussianMean,
    NormalInverseWishart,
    SparseCounts,
)
from numpyro_rankings.components.points import as_points
from numpyro_rankings.distributions import DistanceDependentCRP, links_to_partition
from numpyro_rankings.infer import (
    CollapsedGibbs,
    Cycle,
    DDCRPGibbs,
    PermutationGibbs,
    SplitMerge,
    SubclusterGibbs,
    exponential_decay,
    identity_decay,
    logistic_decay,
    window_decay,
)
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.links.distances import SparseDistances, nearest_distances


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


def effective_a_sweep(kernel, state, args, sweeps):
    """Effective draws of the log joint from so many sweeps, for each of them."""

    def sweep(state, _):
        state = kernel.sample(state, args, {})
        return state, state.z["log_joint"]

    _, draws = jax.jit(lambda state: jax.lax.scan(sweep, state, None, sweeps))(state)
    return effective_sample_size(np.asarray(draws)[None]) / sweeps


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
        if spread == 10.0 and args.draws > 0:
            stock = stock_numpyro(points, 10, args.draws)
            print(f"Gibbs of NumPyro, means N(0, {spread:g}²): {stock:.4f}", flush=True)
        for batch_size in (1, 64, 256, 512):
            kernel = CollapsedGibbs(
                GaussianMean(spread, 1.0), 1.0, max_clusters=32, batch_size=batch_size
            )
            start = {"assignments": jnp.asarray(labels)}
            ours, state = seconds_a_sweep(kernel, (points,), start, sweeps=100)
            effective = effective_a_sweep(kernel, state, (points,), 2000 // scale)
            print(
                f"CollapsedGibbs, means N(0, {spread:g}²), batches of {batch_size}: {ours:.6f}, "
                f"{int(state.z['num_clusters'])} clusters, "
                f"accepted {float(state.accept_prob):.3f}, "
                f"{effective:.3f} effective draws of the log joint a sweep",
                end="",
            )
            if spread == 10.0 and args.draws > 0:
                print(f"; {stock / ours:.0f} times NumPyro's", end="")
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


def million(args):
    """Seconds a sweep of a million points in the plane: sub-clusters, and batches, by N and K."""
    scale = 100 if args.quick else 1
    family = NormalInverseWishart([0.0, 0.0], 0.1, 4.0, np.eye(2))

    def row(kernel, size, clusters, sweeps):
        points, labels = clusters_of_points(size, clusters, 2, np.sqrt(15.0), args.seed)
        start = {"assignments": jnp.asarray(labels, jnp.int32)}
        taken, state = seconds_a_sweep(kernel, (points,), start, sweeps=sweeps)
        found, log_joint = int(state.z["num_clusters"]), float(state.z["log_joint"])
        print(
            f"{type(kernel).__name__}, N = {size}, {clusters} clusters: {taken:.3f}, "
            f"{found} at the end, log joint {log_joint:.0f}",
            flush=True,
        )

    print("points in the plane, means N(0, 15 I), noise I, from the true clusters: seconds a sweep")
    kernel = SubclusterGibbs(family, 1.0, max_clusters=128)
    for times in (1, 2, 4):
        row(kernel, times * 1_000_000 // scale, 6, args.sweeps)
    for clusters in (4, 16, 64):
        row(kernel, 1_000_000 // scale, clusters, args.sweeps)
    row(CollapsedGibbs(family, 1.0, batch_size=4096 // scale), 1_000_000 // scale, 6, 2)


def estimates(args):
    """Seconds of a point estimate: 2,000 points, 1,000 draws, 12 clusters, a quarter strays."""
    size, number = (200, 100) if args.quick else (2000, 1000)
    rng = np.random.default_rng(0)
    truth = rng.integers(12, size=size)
    strays = rng.random((number, size)) < 0.25
    draws = np.where(strays, rng.integers(12, size=(number, size)), truth)
    draws[: number // 2][draws[: number // 2] == 11] = 10  # two clusters that half of them join
    for loss in ("vi", "binder"):
        start = time.perf_counter()
        found = point_estimate(draws, loss)
        taken = time.perf_counter() - start
        drawn = medoid_partition(draws, loss=loss).expected_loss
        print(
            f"{loss}: {taken:.1f} s, {found.labels.max() + 1} clusters, expected loss "
            f"{found.expected_loss:.4f}, of the best of 100 draws {drawn:.4f}; adjusted Rand index "
            f"with the truth {adjusted_rand_index(found.labels, truth):.3f}; most memory so far "
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB",
            flush=True,
        )


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
    if args.data and (Path(args.data) / "cora_lda").exists():
        documents, near, vocabulary = read_cora(args.data)
        family = DirichletMultinomial(1.0, vocabulary_size=vocabulary)
        kernel = DDCRPGibbs(family, 1.0, window_decay(1.5))
        taken, state = seconds_a_sweep(kernel, (documents, near), sweeps=3)
        print(
            f"CORA, {len(documents.words)} documents, {np.sum(near.neighbors >= 0) // 2} links: "
            f"{taken:.2f} s a sweep, "
            f"{int(state.z['num_clusters'])} clusters, log joint {float(state.z['log_joint']):.0f}",
            flush=True,
        )
    print("places in the plane, 20 neighbors, seconds a sweep by N:", end=" ")
    scale = 10 if args.quick else 1
    for size in (10_000 // scale, 30_000 // scale, 100_000 // scale):
        rng = np.random.default_rng(0)
        places = rng.uniform(size=(size, 2)) * np.sqrt(size)
        near = nearest_distances(places, 20)
        group = np.floor(places / 10) @ [1, 1000]  # squares of a hundred places
        points = 5.0 * np.cos(7.0 * group)[:, None] + rng.normal(size=(size, 1))
        kernel = DDCRPGibbs(GaussianMean(5.0, 1.0), 0.01, exponential_decay(1.0))
        taken, state = seconds_a_sweep(kernel, (points, near), sweeps=3)
        print(
            f"{size}: {taken:.3f} ({int(state.z['num_clusters'])} clusters)", end="; ", flush=True
        )
    print()


# -- Liang, Jordan & Taskar (2007) -----------------------------------------------------------------

SAMPLERS = ("gibbs", "gibbs+splitmerge", "gibbs+perm", "gibbs+splitmerge+perm")


def hybrid(name, family, ordering, **settings):
    """A sampler of the paper: kernels that take turns, α learned."""
    alpha = dist.Gamma(1.0, 1.0)
    kernels = [CollapsedGibbs(family, alpha, **settings)]
    if "splitmerge" in name:
        kernels.append(SplitMerge(family, alpha, 20, **settings))
    if "perm" in name:
        kernels.append(PermutationGibbs(family, alpha, ordering, beam=20, **settings))
    return Cycle(kernels)


def digits(folder, dimension):
    """MNIST test digits, pixels from 0 to 255 centered, first principal components."""
    raw = gzip.open(Path(folder) / "mnist10k" / "t10k-images-idx3-ubyte.gz").read()
    pixels = np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 784).astype(float)
    pixels = (pixels - pixels.mean(0)) / np.maximum(pixels.std(0), 1e-9)
    _, axes = np.linalg.eigh(pixels.T @ pixels)
    return pixels @ axes[:, ::-1][:, :dimension]


def problem(args):
    """Data, family and slots of one of the paper's experiments."""
    rng = np.random.default_rng(0)
    if args.data_set == "synthetic":
        d, k = args.dimension, args.clusters
        means = np.sqrt(2.0) * rng.normal(size=(k, d))
        points = means[rng.integers(k, size=args.size)] + rng.normal(size=(args.size, d))
        return jnp.asarray(points, jnp.float32), GaussianMean(10.0, 1.0)
    if args.data_set == "mnist":
        points = digits(args.data, args.dimension)[: args.size]
        return jnp.asarray(points, jnp.float32), GaussianMean(10.0, 4.0)
    documents = read_ldac(Path(args.data) / "ap_blei" / "ap.dat")
    words = len((Path(args.data) / "ap_blei" / "vocab.txt").read_text().split())
    documents = SparseCounts(documents.words[: args.size], documents.counts[: args.size])
    return documents, DirichletMultinomial(0.1, vocabulary_size=words)


def trace(kernel, data, seed, seconds):
    """Seconds, log joint and number of clusters of each sweep, compilation left out."""
    state = kernel.init(jax.random.key(seed), 1_000_000, None, (data,), {})
    sweep = jax.jit(lambda state, data: kernel.sample(state, (data,), {})).lower(state, data)
    sweep, rows, start = sweep.compile(), [], time.perf_counter()
    rows.append((0.0, float(state.z["log_joint"]), int(state.z["num_clusters"])))
    while rows[-1][0] < seconds:
        state = jax.block_until_ready(sweep(state, data))
        log_joint, clusters = float(state.z["log_joint"]), int(state.z["num_clusters"])
        rows.append((time.perf_counter() - start, log_joint, clusters))
    return np.array(rows)


def burnin(args):
    """Log joint against seconds: the four samplers of Liang, Jordan & Taskar (Figure 3, a-j)."""
    if args.quick:
        args.size, args.seconds, args.seeds = min(args.size, 500), 3.0, 1
    data, family = problem(args)
    slots = args.size if args.init == "singletons" else args.slots
    traces = {}
    print(
        f"{args.data_set}, {args.size} points, start {args.init}, {args.seconds:g} s a run, "
        f"{args.seeds} seeds: log joint and clusters at a tenth, a third, the end; sweeps"
    )
    for name in SAMPLERS:
        kernel = hybrid(name, family, "projection", max_clusters=slots, init=args.init)
        traces[name] = [trace(kernel, data, seed, args.seconds) for seed in range(args.seeds)]
        shown = []
        for part in (0.1, 1 / 3, 1.0):
            at = [t[np.searchsorted(t[:, 0], part * args.seconds) - 1] for t in traces[name]]
            values = np.array([row[1] for row in at])
            clusters = np.mean([row[2] for row in at])
            spread = f" ({np.ptp(values):.0f})" if len(at) > 1 else ""
            shown.append(f"{values.mean():.0f}{spread}, {clusters:.1f}")
        sweeps = np.mean([len(t) - 1 for t in traces[name]])
        print(f"{name:<24}{'; '.join(shown)}; {sweeps:.0f}", flush=True)
    if args.plot:
        plot_traces(traces, args.plot, "seconds", f"{args.data_set}, start {args.init}")


def plot_traces(traces, path, xlabel, title):
    """One line a run: log joint against its first column."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    for k, (name, runs) in enumerate(traces.items()):
        for i, rows in enumerate(runs):
            label = name if i == 0 else None
            axes.plot(rows[1:, 0], rows[1:, 1], color=f"C{k}", lw=1, alpha=0.8, label=label)
    axes.set(xlabel=xlabel, ylabel="log joint", title=title)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def mixing(args):
    """Autocorrelation at lags 1, 10, 50 sweeps, 1,000 digits in two dimensions (Figure 3, k-l)."""
    size, draws, warmup = (200, 200, 50) if args.quick else (1000, args.draws, args.draws // 4)
    points = jnp.asarray(digits(args.data, 2)[:size], jnp.float32)
    family = GaussianMean(10.0, 4.0)
    print("autocorrelation at lags 1, 10, 50; seconds a draw; effective draws a second")
    for name in SAMPLERS:
        kernel = hybrid(name, family, "uniform", max_clusters=64)

        def run(state, points, number, kernel=kernel):
            def step(state, _):
                state = kernel.sample(state, (points,), {})
                sizes = jnp.zeros(64, int).at[state.z["assignments"]].add(1)
                return state, jnp.stack([state.z["num_clusters"], sizes.max()])

            return jax.lax.scan(step, state, None, length=number)

        state = kernel.init(jax.random.key(0), warmup, None, (points,), {})
        state, _ = jax.block_until_ready(jax.jit(partial(run, number=warmup))(state, points))
        compiled = jax.jit(partial(run, number=draws)).lower(state, points).compile()
        start = time.perf_counter()
        _, found = jax.block_until_ready(compiled(state, points))
        seconds = (time.perf_counter() - start) / draws
        for column, what in enumerate(("number of clusters", "largest cluster")):
            x = np.asarray(found, float)[:, column]
            rho = autocorrelation(x)[[1, 10, 50]]
            effective = effective_sample_size(x[None]) / (seconds * draws)
            shown = " ".join(f"{r:6.3f}" for r in rho)
            print(f"{name:<24}{what:<20}{shown}  {seconds:.4f} s  {effective:.1f}", flush=True)


# -- Blei & Frazier (2011) -------------------------------------------------------------------------


def read_nips(folder, num_words):
    """Papers of NIPS by their most frequent words, and the year of each."""
    folder = Path(folder) / "nips0_12"
    lines = lzma.open(folder / "nips.ldac.xz", "rt").read().split("\n")
    rows = [[tuple(map(int, p.split(":"))) for p in line.split()[1:]] for line in lines if line]
    years = np.loadtxt(folder / "nips.vols", int)[: len(rows)]
    totals = np.zeros(1 + max(w for row in rows for w, _ in row))
    for row in rows:
        for word, count in row:
            totals[word] += count
    kept = np.argsort(-totals)[:num_words]
    place = {int(word): i for i, word in enumerate(kept)}
    rows = [[(place[w], c) for w, c in row if w in place] for row in rows]
    longest = max(map(len, rows))
    words, counts = np.full((len(rows), longest), -1), np.zeros((len(rows), longest), int)
    for i, row in enumerate(rows):
        words[i, : len(row)], counts[i, : len(row)] = zip(*row, strict=True)
    return words, counts, years


def sequential(times):
    """Differences of times, ∞ to all that come later."""
    lag = np.subtract.outer(times, times).astype(float)
    return np.where(np.tri(len(times), k=-1, dtype=bool), lag, np.inf)


def draws_of(kernel, args, seed, warmup, draws):
    """Samples of a single chain."""
    mcmc = MCMC(kernel, num_warmup=warmup, num_samples=draws, progress_bar=False)
    mcmc.run(jax.random.key(seed), *args)
    return mcmc.get_samples()


def nips(args):
    """Held-out log likelihood of the last 250 papers of NIPS (Figure 5)."""
    num_words, held_out, warmup, draws = 5146, 250, args.warmup, args.draws
    words, counts, years = read_nips(args.data, 200 if args.quick else num_words)
    if args.quick:
        words, counts, years = (x[::20] for x in (words, counts, years))
        num_words, held_out, warmup, draws = 200, 12, 3, 4
    split = len(words) - held_out
    old = SparseCounts(words[:split], counts[:split])
    new = SparseCounts(words[split:], counts[split:])
    family = DirichletMultinomial(args.concentration, vocabulary_size=num_words)
    distances = sequential(years)
    print(f"{split} papers, {held_out} held out, {num_words} words: log likelihood of a paper")
    for decay in [
        identity_decay(),
        *(logistic_decay(a) for a in (1.0, 2.0, 4.0)),
        *(exponential_decay(a) for a in (1.0, 2.0, 4.0)),
    ]:
        kernel = DDCRPGibbs(family, 1.0, decay)
        values, clusters, start = [], [], time.perf_counter()
        for seed in range(args.seeds):
            samples = draws_of(kernel, (old, distances[:split, :split]), seed, warmup, draws)
            found = log_predictive_of_points(kernel, samples, old, new, distances[split:, :split])
            values.append(np.asarray(found).mean())
            clusters.append(np.asarray(samples["num_clusters"]).mean())
        name = f"{decay.name} {'' if decay.scale is None else format(decay.scale, 'g')}"
        print(
            f"{name:<16}{np.mean(values):10.2f} ± {np.std(values):.2f} over seeds, "
            f"{np.mean(clusters):.1f} clusters, {time.perf_counter() - start:.0f} s",
            flush=True,
        )


class Tempered(Family):
    """A family whose likelihood is taken to a power."""

    def __init__(self, family, power):
        self.family, self.power = family, power

    def __getattr__(self, name):
        return getattr(self.family, name)

    def statistics(self, data):
        return self.family.statistics(data)

    def of_clusters(self, *args):
        return self.family.of_clusters(*args)

    def add(self, *args):
        return self.family.add(*args)

    def subtract(self, *args):
        return self.family.subtract(*args)

    def for_union(self, other):
        return self.family.for_union(other)

    def log_marginal(self, cluster):
        return self.power * self.family.log_marginal(cluster)

    def log_predictive(self, *args):
        return self.power * self.family.log_predictive(*args)

    def log_predictive_of_member(self, *args):
        return self.power * self.family.log_predictive_of_member(*args)

    def log_union(self, *args):
        return self.power * self.family.log_union(*args)


def log_evidence(make, family, args, powers, warmup, draws):
    """Thermodynamic integration: ∫ E[log p(x | z)] over powers of the likelihood from 0 to 1.

    :return: the integral, and how far off it can be: it lies between the sums of lower and upper
        steps, for the mean rises with the power.
    """
    points = family.statistics(args[0])
    means, start = [], None
    score = jax.jit(lambda z: family.log_marginal(family.of_clusters(points, z, len(z) + 1)).sum())
    for power in powers:
        kernel = make(Tempered(family, power))
        mcmc = MCMC(kernel, num_warmup=warmup, num_samples=draws, progress_bar=False)
        mcmc.run(jax.random.key(0), *args, init_params=start)
        samples = mcmc.get_samples()
        name = "links" if "links" in samples else "assignments"
        start = {name: samples[name][-1].astype(jnp.int32)}
        labels = samples["assignments"].astype(jnp.int32)
        means.append(np.mean([float(score(z)) for z in labels]))
    steps = np.diff(powers)
    lower, upper = np.sum(steps * means[:-1]), np.sum(steps * means[1:])
    return (lower + upper) / 2, abs(upper - lower) / 2


def read_cora(folder):
    """Documents of CORA, their citations as neighbors, and the size of the vocabulary."""
    folder = Path(folder) / "cora_lda"
    documents = read_ldac(folder / "cora.ldac")
    vocabulary = len((folder / "cora.vocab").read_text().split())
    size = len(documents.words)
    cited = [set() for _ in range(size)]
    for i, j in np.loadtxt(folder / "cora.cites", int):
        if i != j:
            cited[i].add(int(j))
            cited[j].add(int(i))
    width = max(map(len, cited))
    neighbors = np.array([[*sorted(c), *[-1] * (width - len(c))] for c in cited])
    return documents, SparseDistances(neighbors, np.ones(neighbors.shape)), vocabulary


def cora(args):
    """Log Bayes factor of the citations of CORA against the traditional process (Section 5.3)."""
    documents, near, vocabulary = read_cora(args.data)
    powers = np.linspace(0.0, 1.0, 4 if args.quick else args.powers) ** 3
    warmup, draws = (2, 2) if args.quick else (args.warmup, args.draws)
    family = DirichletMultinomial(args.concentration, vocabulary_size=vocabulary)
    evidence = {}
    for name, make, given in (
        (
            "citations",
            lambda f: DDCRPGibbs(f, 1.0, window_decay(1.5), init="prior"),
            (documents, near),
        ),
        ("traditional", lambda f: CollapsedGibbs(f, 1.0, max_clusters=256), (documents,)),
    ):
        start = time.perf_counter()
        evidence[name] = log_evidence(make, family, given, powers, warmup, draws)
        value, off = evidence[name]
        seconds = time.perf_counter() - start
        print(f"{name:<12} log evidence {value:.0f} ± {off:.0f}, {seconds:.0f} s", flush=True)
    difference = evidence["citations"][0] - evidence["traditional"][0]
    print(f"log Bayes factor {difference:.0f}, {len(powers)} powers, {draws} draws of each")


def language(args):
    """Log Bayes factors of decays against the traditional process, words in texts (Figure 4)."""
    texts = []
    with zipfile.ZipFile(Path(args.data) / "state_union" / "state_union.zip") as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".txt"):
                text = archive.read(name).decode("latin-1").lower()
                texts.append(re.findall(r"[a-z]+(?:'[a-z]+)?", text)[: args.length])
    texts = texts[: 3 if args.quick else None]
    names = sorted({word for text in texts for word in text})
    number = {word: i for i, word in enumerate(names)}
    texts = [np.array([number[word] for word in text]) for text in texts]
    counts = np.bincount(np.concatenate(texts), minlength=len(names))
    probs = counts / counts.sum()
    print(f"{len(texts)} addresses, first {args.length} words: mean log Bayes factor ± its error")
    decays = [identity_decay()] + [
        make(a) for make in (logistic_decay, exponential_decay) for a in (20, 100, 500, 1000)
    ]
    for alpha in args.alphas:
        evidence = np.array(
            [
                [
                    float(log_language_evidence(w, sequential(range(len(w))), probs, alpha, decay))
                    for decay in decays
                ]
                for w in texts
            ]
        )
        ratios = evidence[:, 1:] - evidence[:, :1]
        for decay, column in zip(decays[1:], ratios.T, strict=True):
            error = column.std(ddof=1) / np.sqrt(len(column))
            print(
                f"α = {alpha:<6g}{decay.name} {decay.scale:<6g}{column.mean():9.1f} ± {error:.1f}, "
                f"{np.mean(column > 0):.0%} of them positive",
                flush=True,
            )


def samplers(args):
    """The traditional process by links and by Neal's Algorithm 3, by iteration (Figure 7)."""
    words, counts, _ = read_nips(args.data, 200 if args.quick else 1000)
    step = 40 if args.quick else 5
    documents = SparseCounts(words[::step], counts[::step])
    size, sweeps = len(documents.words), 10 if args.quick else args.sweeps
    family = DirichletMultinomial(1.0, vocabulary_size=200 if args.quick else 1000)
    distances = sequential(np.arange(size))
    traces = {"links": [], "Neal 3": []}
    for seed in range(args.seeds):
        prior = DistanceDependentCRP(1.0, identity_decay()(distances))
        links = prior.sample(jax.random.key(seed))
        labels = links_to_partition(links)
        for name, kernel, given, start in (
            ("links", DDCRPGibbs(family, 1.0, identity_decay()), (documents, distances), links),
            ("Neal 3", CollapsedGibbs(family, 1.0, max_clusters=128), (documents,), labels),
        ):
            site = "links" if name == "links" else "assignments"
            mcmc = MCMC(kernel, num_warmup=0, num_samples=sweeps, progress_bar=False)
            mcmc.run(jax.random.key(seed), *given, init_params={site: start})
            # both by the probability of the partition
            partitions = mcmc.get_samples()["assignments"].astype(jnp.int32)
            points = as_points(family, documents)
            process = PartitionPrior(jnp.ones(()))

            @jax.jit
            def score(z, points=points, process=process):
                sizes = jnp.zeros(size, jnp.int32).at[z].add(1)
                clusters = family.of_clusters(points.statistics, z, size)
                return process.log_prob(sizes) + family.log_marginal(clusters).sum()

            values = [float(score(z)) for z in partitions]
            traces[name].append(np.column_stack([np.arange(1, sweeps + 1), values]))
    print(f"{size} papers of NIPS, {args.seeds} runs: log joint after 3, 10, 30, … iterations")
    for name, runs in traces.items():
        at = [k for k in (3, 10, 30, 100, 300, 1000) if k <= sweeps]
        values = np.array([[rows[k - 1, 1] for k in at] for rows in runs])
        shown = ", ".join(
            f"{m:.0f} ({s:.0f})"
            for m, s in zip(values.mean(0), np.ptp(values, axis=0), strict=True)
        )
        print(f"{name:<8}{shown}", flush=True)
    if args.plot:
        plot_traces(traces, args.plot, "iteration", f"{size} papers of NIPS")


def main():
    """Read the command line and print the table asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    of_papers = (burnin, mixing, nips, cora, language, samplers)
    for function in (speed, million, links, estimates, *of_papers):
        one = commands.add_parser(function.__name__, help=function.__doc__.split("\n")[0])
        one.add_argument("--quick", action="store_true", help="a small version")
        one.set_defaults(run=function)
        if function not in (speed, million, estimates):
            is_needed = function in of_papers and function is not burnin
            one.add_argument("--data", required=is_needed, help="the folder of the data sets")
    options = {name: one.add_argument for name, one in commands.choices.items()}
    options["speed"]("--draws", type=int, default=10, help="of NumPyro")
    options["million"]("--sweeps", type=int, default=10)
    options["million"]("--seed", type=int, default=0)
    options["burnin"]("data_set", choices=["synthetic", "mnist", "ap"])
    options["burnin"]("--size", type=int, default=10_000)
    options["burnin"]("--dimension", type=int, default=40)
    options["burnin"]("--clusters", type=int, default=40)
    options["burnin"]("--slots", type=int, default=256)
    options["burnin"]("--init", choices=["sequential", "one", "singletons"], default="sequential")
    options["burnin"]("--seconds", type=float, default=60.0)
    options["mixing"]("--draws", type=int, default=4000)
    options["nips"]("--warmup", type=int, default=20)
    options["nips"]("--draws", type=int, default=20)
    options["nips"]("--concentration", type=float, default=1.0)
    options["cora"]("--warmup", type=int, default=15)
    options["cora"]("--draws", type=int, default=10)
    options["cora"]("--powers", type=int, default=16)
    options["cora"]("--concentration", type=float, default=1.0)
    options["language"]("--length", type=int, default=2000)
    options["language"]("--alphas", type=float, nargs="+", default=[1.0, 100.0])
    options["samplers"]("--sweeps", type=int, default=100)
    for name, seeds in (("burnin", 3), ("nips", 2), ("samplers", 10)):
        options[name]("--seeds", type=int, default=seeds)
    for name in ("burnin", "samplers"):
        options[name]("--plot", help="a file for the plot")
    args = parser.parse_args()
    print(f"numpyro_rankings {numpyro_rankings.__version__}, jax {jax.__version__}")
    args.run(args)


if __name__ == "__main__":
    main()
