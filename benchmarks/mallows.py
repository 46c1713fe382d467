"""Benchmarks of the generalized Mallows kernels, printed as tables.

``python benchmarks/mallows.py figure6|figure7|figure8|speed|apa``; ``--quick`` is a small version
of each, and ``figure6 --help`` and so on tell the sizes. Figures are those of Meilă & Chen (2010),
"Dirichlet process mixtures of generalized Mallows models", UAI.
"""

import argparse
import itertools
import json
import resource
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from scipy.optimize import brentq
from scipy.special import betaln, logsumexp

from numpyro_rankings import Rankings, load_dataset, log_predictive_density
from numpyro_rankings.datasets import simulate_mallows, simulate_mallows_mixture
from numpyro_rankings.families.mallows import log_cluster_likelihood
from numpyro_rankings.infer import BetaGibbs, SliceGibbs
from numpyro_rankings.ops.codes import inverse_ordering, stage_codes
from numpyro_rankings.ops.special import log_beta_tilde
from numpyro_rankings.posterior.partitions import variation_of_information

KERNELS = {
    "parallel": ("SliceGibbs parallel", partial(SliceGibbs, assignment="parallel")),
    "sequential": ("SliceGibbs sequential", SliceGibbs),
    "beta": ("BetaGibbs exact", BetaGibbs),
    "beta-approx": ("BetaGibbs exact=False", partial(BetaGibbs, exact=False)),
}
CURVES = ("mixture", "kernel", "shift")  # of Figure 8


def sweeps(kernel, num_sweeps, fields):
    """A compiled run of ``num_sweeps``: last state, the fields of z, whether slots ran out.

    The data are an argument, so that one compilation serves all data of one shape.
    """

    @jax.jit
    def run(state, rankings):
        def step(state, _):
            state = kernel.sample(state, (rankings,), {})
            return state, ({name: state.z[name] for name in fields}, state.overflow)

        state, (draws, overflow) = jax.lax.scan(step, state, None, length=num_sweeps)
        return state, draws, overflow.any()

    return run


# -- Figure 6 ----------------------------------------------------------------------------------


def figure6_data(key, number, size=500):
    """One of the paper's four data sets: 10 clusters of ``size`` rankings of 20 items.

    The paper draws each center from the posterior given 100 permutations of a model with θ = 0.7.
    Taken literally that posterior is all but one ordering, and the clusters would coincide; what
    is meant are centers that are not far apart. Here each center is itself drawn from a model
    with θ = 0.7 around a common ordering.
    """
    stages = (10, 19, 10, 19)[number - 1]
    i = np.arange(stages)
    theta = (np.ones(stages), np.ones(stages), 1.5 - 0.1 * i, 1.5 - 0.05 * i)[number - 1]
    key_centers, *keys = jax.random.split(key, 11)
    centers = np.asarray(simulate_mallows(key_centers, 10, np.arange(20), 0.7).orderings)
    lists = [
        np.asarray(simulate_mallows(k, size, c, theta, lengths=stages).orderings)
        for k, c in zip(keys, centers, strict=True)
    ]
    return Rankings.from_orderings(np.concatenate(lists), 20), np.repeat(np.arange(10), size)


def figure6(args):
    """Variation of information to the true clusters by iteration, from random starts."""
    at = [i for i in (1, 5, 10, 25, 50, 100, 250) if i <= args.iterations]
    print(
        f"Mean variation of information (nats) over {args.replicates} runs of each data set, "
        f"10 clusters of {args.size} rankings, after iteration"
    )
    print(f"{'':31s}", *(f"{i:6d}" for i in at), " sd last  clusters  s/iteration of one run")
    for number in args.datasets:
        rankings, truth = figure6_data(jax.random.key(100 + number), number, args.size)
        for name in args.kernels:
            title, make = KERNELS[name]
            kernel = make(alpha=1.0, nu=1.0, r=1.0, init="random")
            run = sweeps(kernel, args.iterations, ("assignments", "num_clusters"))
            keys = jax.random.split(jax.random.key(number), args.replicates)
            state = kernel.init(keys, 0, None, (rankings,), {})
            run = run.lower(state, rankings).compile()
            start = time.perf_counter()
            _, draws, overflow = jax.block_until_ready(run(state, rankings))
            seconds = (time.perf_counter() - start) / args.iterations / args.replicates
            labels = np.asarray(draws["assignments"])  # (iteration, replicate, N)
            vi = [[variation_of_information(truth, x) for x in labels[i - 1]] for i in at]
            found = np.asarray(draws["num_clusters"])[-1].mean()
            print(
                f"data set {number}  {title:21s}",
                *(f"{np.mean(x):6.3f}" for x in vi),
                f"{np.std(vi[-1]):8.3f} {found:9.1f} {seconds:10.3f}",
                "  (slots ran out)" if overflow else "",
                flush=True,
            )


# -- Figure 7 ----------------------------------------------------------------------------------


def figure7(args):
    """Relative error 1 - Beta(a, b) / B̃eta(a, b, n) of Beta-Gibbs as printed."""
    b = np.array([4.0, 8.0, 16.0, 32.0])
    print("1 - Beta(a, b) / B̃eta(a, b, n)")
    for n in (10, 20, 50):
        print(f"n = {n:<4d}", *(f"     b = {x:<3.0f}" for x in b))
        for a in range(2, 11, 4 if args.quick else 1):
            exact = np.asarray(log_beta_tilde(float(a), b, n), float)
            print(f"a = {a:<3d} ", *(f"{e:12.2e}" for e in -np.expm1(betaln(a, b) - exact)))


# -- Figure 8 ----------------------------------------------------------------------------------


def log_kernel_density(train, test, num_items, theta):
    r"""Log density of top-t lists under Lebanon & Mao's estimator, a mean of kernels.

    The kernel of a training list is the mean, over all full centers that begin with it, of the
    Mallows probability of the test list. Stage by stage, let ``r`` be the number of items that
    the training list still has in front of the test item, those taken before left out. An item
    that the training list contains has code ``r`` in every such center. Any other item has code
    ``r + k``, ``k`` its place among the ``u`` unlisted items still left, and ``k`` is uniform on
    ``0..u-1`` independently of the stages before (it is a digit of the Lehmer code of a uniform
    permutation). So the kernel is a product over stages of :math:`e^{-\theta r}/\psi`, times
    :math:`\frac{1}{u}\sum_{k<u} e^{-\theta k}` where the item is not listed.

    :param train: lists, all of one length t' < n, shape (N, t').
    :param test: lists, all of one length t < n, shape (M, t).
    :return: shape (M,).
    """
    train, test = np.asarray(train), np.asarray(test)
    num_train, listed = train.shape
    # place of each item in each training list, t' if it has none
    places = np.full((num_train, num_items), listed, np.int32)
    np.put_along_axis(places, train, np.arange(listed, dtype=np.int32)[None], axis=1)
    log_sums = np.log(np.cumsum(np.exp(-theta * np.arange(num_items))))  # of 1, 2, …, n terms
    stages = test.shape[1]
    log_psis = log_sums[num_items - 1 - np.arange(stages)].sum()
    spread = jnp.asarray(log_sums - np.log(np.arange(1, num_items + 1)), jnp.float32)

    @jax.jit
    def score(places, tests):
        def one(ordering):
            place = places[:, ordering]
            before = jnp.tril(jnp.ones((stages, stages), bool), -1)  # [stage, an earlier stage]
            earlier = (place[:, None, :] < place[:, :, None]) & before
            codes = place - earlier.sum(-1)
            is_unlisted = place == listed
            left = num_items - listed - (is_unlisted[:, None, :] & before).sum(-1)
            log_mean = jnp.where(is_unlisted, spread[left - 1], 0.0)
            return jax.nn.logsumexp((log_mean - theta * codes).sum(-1))

        return jax.lax.map(one, tests)

    total = np.asarray(score(jnp.asarray(places), jnp.asarray(test)), float)
    return total - log_psis - np.log(num_train)


def kernel_by_brute_force(center_list, ordering, num_items, theta):
    """The kernel as it is defined: a mean over all full centers that begin with a list."""
    rest = [item for item in range(num_items) if item not in center_list]
    values = []
    for tail in itertools.permutations(rest):
        left, value = [*center_list, *tail], 1.0
        for item in ordering:
            value *= np.exp(-theta * left.index(item))
            value /= np.exp(-theta * np.arange(len(left))).sum()
            left.remove(item)
        values.append(value)
    return np.mean(values)


def check_kernel(theta):
    """Largest error of the log kernel for n ≤ 6, against brute force."""
    worst = 0.0
    for n, length, other in ((3, 1, 2), (4, 2, 2), (4, 2, 3), (5, 2, 4), (5, 3, 3), (6, 2, 3)):
        train = [list(p) for p in itertools.permutations(range(n), length)][:: 1 if n < 6 else 7]
        test = [list(p) for p in itertools.permutations(range(n), other)][:: 1 if n < 5 else 5]
        for one in train:
            found = log_kernel_density([one], test, n, theta) if len(test) else []
            known = np.log([kernel_by_brute_force(one, x, n, theta) for x in test])
            worst = max(worst, float(np.abs(found - known).max()))
    return worst


def preferences(lists, num_items):
    """Which items come before which, (rows, n · n): unlisted items come last, in no order."""
    rows, length = lists.shape
    places = np.full((rows, num_items), length)
    np.put_along_axis(places, lists, np.arange(length)[None], axis=1)
    before = places[:, :, None] < places[:, None, :]
    return before.reshape(rows, -1).astype(np.float32)


def distances_between(preferred):
    """Number of pairs of items that two lists put in opposite orders, (rows, rows)."""
    rows, n = len(preferred), round(np.sqrt(preferred.shape[1]))
    opposite = preferred.reshape(rows, n, n).swapaxes(1, 2).reshape(rows, -1)
    return preferred @ opposite.T


def greedy_centers(votes, length):
    """Place by place the item that loses the fewest votes to those left, (rows, length)."""
    rows, n = len(votes), round(np.sqrt(votes.shape[1]))
    lost = votes.reshape(rows, n, n)  # [row, winner, loser]
    left, chosen = np.ones((rows, n), bool), []
    for _ in range(length):
        losses = np.where(left, np.einsum("rwl,rw->rl", lost, left), np.inf)
        chosen.append(losses.argmin(1))
        left[np.arange(rows), chosen[-1]] = False
    return np.stack(chosen, axis=1)


def theta_of_mean(distance, num_items, stages):
    """The θ of all stages under which a list has this mean distance from its center."""

    def mean(theta):
        total = 0.0
        for size in num_items - np.arange(stages):
            weights = np.exp(-theta * np.arange(size))
            total += (np.arange(size) * weights).sum() / weights.sum()
        return total

    return brentq(lambda theta: mean(theta) - distance, 1e-3, 20.0)


def blurring_mean_shift(lists, num_items, share=0.2):
    """Cluster top-t lists by exponential blurring mean shift (Meilă & Bao 2008).

    Each list becomes the center of all others, weighted by exp(−θ d), until nothing moves. The
    width θ is that of a Mallows model whose lists are as far from its center as these are, in the
    mean, from their nearest neighbors, a share of all lists. With the nearest alone there were 14
    to 200 clusters of three; a fifth serves this method best.

    :return: the cluster of each list.
    """
    length = lists.shape[1]
    points, labels, counts = np.unique(lists, axis=0, return_inverse=True, return_counts=True)
    labels, theta = labels.reshape(-1), None
    while True:
        preferred = preferences(points, num_items)
        distance = distances_between(preferred)
        if theta is None:
            number = max(1, round(share * len(lists)))
            every = np.sort(np.repeat(distance, counts, axis=1), axis=1)  # the first is itself
            nearest = np.average(every[:, 1 : number + 1].mean(1), weights=counts)
            theta = theta_of_mean(nearest, num_items, length)
        weights = np.exp(-theta * distance) * counts - np.eye(len(points))
        moved = greedy_centers(weights @ preferred, length)
        before = points
        points, inverse = np.unique(moved, axis=0, return_inverse=True)
        labels = inverse.reshape(-1)[labels]
        counts = np.bincount(labels)
        # two single lists may exchange their places for ever
        if np.array_equal(points, before) or len(points) == 1:
            return labels


def score_under_clusters(labels, train, test, num_items):
    """Log density of lists under a mixture of these clusters, with the likeliest single θ.

    :return: the density of each list, and the cluster in which it is likeliest.
    """
    votes = np.zeros((labels.max() + 1, num_items**2))
    np.add.at(votes, labels, preferences(train, num_items))
    centers = jnp.asarray(greedy_centers(votes, num_items), jnp.int32)
    codes = np.asarray(stage_codes(jnp.asarray(train), inverse_ordering(centers)[labels]))
    theta = theta_of_mean(codes.sum(1).mean(), num_items, train.shape[1])
    by_cluster = log_cluster_likelihood(
        jnp.asarray(test), centers, jnp.full((len(centers), train.shape[1]), theta)
    )
    log_shares = np.log(np.bincount(labels) / len(labels))
    joint = np.asarray(by_cluster, float) + log_shares
    return logsumexp(joint, axis=1), joint.argmax(1)


def likeliest_clusters(draws, test, every=10):
    """The cluster of a draw in which each list is likeliest, for some of the draws."""
    for draw in range(0, len(draws["center"]), every):
        sizes = np.asarray(draws["cluster_sizes"][draw])
        some = sizes > 0
        by_cluster = log_cluster_likelihood(
            jnp.asarray(test), draws["center"][draw], draws["concentration"][draw]
        )
        yield (np.asarray(by_cluster)[:, some] + np.log(sizes[some])).argmax(1)


def figure8(args):
    """Held-out log likelihood and clusters of 3 components, n = 12, t = 5, θ = 1."""
    n, stages, theta = 12, 5, 1.0
    print(f"Kernel density, closed form against brute force: error {check_kernel(theta):.1e}")
    print(
        f"Means over {args.replicates} replicates (and their standard errors): log likelihood of "
        f"a list, {args.tests} held out;\nvariation of information (VI, nats) of the training "
        "labels, and of the held-out lists' labels, each in its likeliest cluster"
    )
    print(f"mean shift: exponential blurring mean shift, up to N = {args.most_shifted:,}")
    columns = ("truth", "DP mixture", "kernel density", "mean shift")
    columns += ("VI of DP", "VI of mean shift", "VI of truth")
    columns += ("test: VI of DP", "test: of shift", "test: of truth", "clusters", "of mean shift")
    print(f"{'N':>6s}", *(f"{c:>17s}" for c in columns), " seconds a fit")
    # one kernel, so that replicates of one size share a compilation
    kernel = SliceGibbs(assignment="parallel")
    fields = ("assignments", "center", "concentration", "cluster_sizes", "num_clusters", "alpha")
    burn_in = sweeps(kernel, args.warmup, ())
    sample = sweeps(kernel, args.draws, fields)
    for size in args.sizes:
        rows, seconds = [], []
        for replicate in range(args.replicates):
            key = jax.random.key(1000 + args.first + replicate)
            key_data, key_fit = jax.random.split(key)
            # the fixed mixture of the paper: the same components in every replicate
            components = [np.random.default_rng(c).permutation(n) for c in range(3)]
            truth = simulate_mallows_mixture(
                key_data, size + args.tests, n, stages, 3, theta, centers=components
            )
            orderings = np.asarray(truth.rankings.orderings)
            train = Rankings.from_orderings(orderings[:size], n)
            test = Rankings.from_orderings(orderings[size:], n)
            labels, others = truth.assignments[:size], truth.assignments[size:]

            by_cluster = np.asarray(
                log_cluster_likelihood(
                    jnp.asarray(orderings), jnp.asarray(truth.centers), jnp.full((3, stages), theta)
                ),
                float,
            )
            true_density = logsumexp(by_cluster[size:], axis=1) - np.log(3)
            likeliest = by_cluster.argmax(1)

            fitted, vi, vi_of_fit, clusters = np.nan, np.nan, np.nan, np.nan
            if size <= args.most_fitted and "mixture" in args.curves:
                start = time.perf_counter()
                state = kernel.init(key_fit, 0, None, (train,), {})
                state, _, _ = burn_in(state, train)
                _, draws, overflow = jax.block_until_ready(sample(state, train))
                seconds.append(time.perf_counter() - start)
                if overflow:
                    print(f"{size:6d}  slots ran out", flush=True)
                fitted = log_predictive_density(draws, test, None)
                vi = [variation_of_information(labels, x) for x in np.asarray(draws["assignments"])]
                vi_of_fit = [
                    variation_of_information(others, x)
                    for x in likeliest_clusters(draws, orderings[size:])
                ]
                clusters = np.asarray(draws["num_clusters"])
            kde = np.array(np.nan)
            if "kernel" in args.curves:
                kde = log_kernel_density(orderings[:size], orderings[size:], n, theta)
            shifted, vi_of_shifted, vi_of_tests, number = np.nan, np.nan, np.nan, np.nan
            if size <= args.most_shifted and "shift" in args.curves:
                found = blurring_mean_shift(orderings[:size], n)
                shifted, near = score_under_clusters(found, orderings[:size], orderings[size:], n)
                vi_of_shifted, number = variation_of_information(labels, found), found.max() + 1
                vi_of_tests = variation_of_information(others, near)
            rows.append(
                [
                    true_density.mean(),
                    np.mean(fitted),
                    kde.mean(),
                    np.mean(shifted),
                    np.mean(vi),
                    vi_of_shifted,
                    variation_of_information(labels, likeliest[:size]),
                    np.mean(vi_of_fit),
                    vi_of_tests,
                    variation_of_information(others, likeliest[size:]),
                    np.mean(clusters),
                    number,
                ]
            )
            if args.out is not None:
                one = {"N": size, "replicate": args.first + replicate}
                one |= dict(zip(columns, map(float, rows[-1]), strict=True))
                with args.out.open("a") as file:
                    file.write(json.dumps(one) + "\n")
        mean = np.mean(rows, 0)
        error = np.std(rows, 0, ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else mean * np.nan
        cells = (f"{m:9.4f} ({e:5.4f})" for m, e in zip(mean, error, strict=True))
        # the first fit of a size compiles
        print(
            f"{size:6d}",
            *(f"{c:>17s}" for c in cells),
            f"{min(seconds, default=np.nan):8.1f}",
            flush=True,
        )


# -- speed -------------------------------------------------------------------------------------


def seconds_per_sweep(kernel, rankings, params, chains=None, repeats=3):
    """Best of ``repeats`` sweeps after one that compiles, and how long that one took."""
    key = jax.random.key(0)
    if chains is not None:
        key = jax.random.split(key, chains)
        params = {name: jnp.stack([value] * chains) for name, value in params.items()}
    state = kernel.init(key, 0, params, (rankings,), {})
    sweep = jax.jit(lambda state, rankings: kernel.sample(state, (rankings,), {}))
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        state = jax.block_until_ready(sweep(state, rankings))
        times.append(time.perf_counter() - start)
    if np.any(state.overflow):
        print("slots ran out in the next line")
    return min(times[1:]), times[0]


def peak_memory():
    """Peak resident memory of this process so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def speed(args):
    """Seconds per sweep at the size of the paper's college data; chains start at the truth.

    The peak memory is that of the process up to the line; for one kernel by itself, name only it.
    """
    print(
        f"n = {args.items}, t = {args.length}, {args.clusters} true clusters, {args.slots} slots; "
        f"best of {args.repeats} sweeps"
    )
    print(f"{'N':>7s}  {'kernel':28s} s/sweep  first sweep, compiling  peak GiB so far")

    def line(size, title, seconds, first):
        print(f"{size:7d}  {title:28s}{seconds:8.3f}  {first:22.1f}  {peak_memory():15.2f}", end="")

    best = {}
    for size in (args.rankings, 2 * args.rankings):
        truth = simulate_mallows_mixture(
            jax.random.key(1), size, args.items, args.length, args.clusters, 0.5
        )
        rng = np.random.default_rng(0)
        center = np.stack([rng.permutation(args.items) for _ in range(args.slots)])
        center[: args.clusters] = truth.centers
        params = {"assignments": jnp.asarray(truth.assignments), "center": jnp.asarray(center)}
        for name in args.kernels:
            title, make = KERNELS[name]
            kernel = make(max_clusters=args.slots, init="given")
            timed = partial(seconds_per_sweep, kernel, truth.rankings, params)
            seconds, first = timed(repeats=args.repeats)
            line(size, title, seconds, first)
            half = best.get((size // 2, name))
            print("" if half is None else f"  {seconds / half:.2f} times N/2", flush=True)
            best[size, name] = seconds
            if name == "parallel" and size == args.rankings:
                four, first = timed(chains=4, repeats=args.repeats)
                line(size, "  four vectorized chains", four, first)
                print(f"  {four / seconds:.2f} times one chain", flush=True)


# -- APA ---------------------------------------------------------------------------------------


def apa(args):
    """One population on APA 1980 with θ_j ~ Exponential(0.1), known by enumeration."""
    rankings = load_dataset("apa1980")
    kernel = SliceGibbs(num_components=1, concentration_prior=dist.Exponential(0.1), init=args.init)
    run = sweeps(kernel, args.draws, ("center", "concentration", "log_joint"))
    keys = jax.random.split(jax.random.key(0), 4)
    state = kernel.init(keys, 0, None, (rankings,), {})
    state, _, _ = jax.block_until_ready(run(state, rankings))  # compiles, and is the warm-up
    start = time.process_time()
    _, draws, _ = jax.block_until_ready(run(state, rankings))
    seconds = time.process_time() - start

    theta = np.asarray(draws["concentration"])[:, :, 0].swapaxes(0, 1)  # (chain, draw, stage)
    ess, rhat = effective_sample_size(theta), split_gelman_rubin(theta)
    print(f"4 chains of {args.draws} draws after {args.draws}, init={args.init!r}, ", end="")
    print(f"{seconds:.1f} CPU seconds")
    print("        E θ found      known     R-hat      ESS   ESS per CPU second")
    for j, known in enumerate((0.00034, 0.1261, 0.2328, 0.1673)):
        mean = theta[..., j].mean(dtype=np.float64)
        print(
            f"θ_{j + 1}  {mean:12.5f} {known:10.5f} {rhat[j]:9.3f} {ess[j]:8.0f} "
            f"{ess[j] / seconds:12.0f}"
        )
    center = np.asarray(draws["center"])[:, :, 0].swapaxes(0, 1)
    known = {(0, 1, 4, 3, 2): 0.671, (0, 4, 1, 3, 2): 0.329}
    found, times = np.unique(center.reshape(-1, 5), axis=0, return_counts=True)
    shares = {tuple(c): t / times.sum() for c, t in zip(found.tolist(), times, strict=True)}
    print("center         found    known   by chain")
    for one in sorted(shares | known, key=lambda c: -shares.get(c, 0.0)):
        by_chain = (center == np.array(one)).all(-1).mean(1)
        print(
            "-".join(str(item + 1) for item in one),
            f"{shares.get(one, 0.0):10.3f} {known.get(one, 0.0):8.3f}  ",
            *(f"{share:.3f}" for share in by_chain),
        )


def main():
    """Read the command line and print the table asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)

    def add(function):
        command = commands.add_parser(function.__name__, help=function.__doc__.split("\n")[0])
        command.add_argument("--quick", action="store_true", help="small sizes: try it out")
        command.set_defaults(run=function, small={})
        return command

    def choose_kernels(command):
        command.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))

    one = add(figure6)
    one.add_argument("--replicates", type=int, default=10)
    one.add_argument("--iterations", type=int, default=250)
    one.add_argument("--size", type=int, default=500, help="rankings in a cluster")
    one.add_argument("--datasets", type=int, nargs="+", choices=range(1, 5), default=[1, 2, 3, 4])
    choose_kernels(one)
    one.set_defaults(small={"replicates": 2, "iterations": 25, "size": 50})
    add(figure7)
    one = add(figure8)
    one.add_argument("--replicates", type=int, default=10)
    one.add_argument("--first", type=int, default=0, help="number of the first replicate")
    one.add_argument("--sizes", type=int, nargs="+", default=[100, 300, 1000, 3000, 10000])
    one.add_argument(
        "--curves", nargs="+", choices=CURVES, default=CURVES, help="besides the truth"
    )
    one.add_argument("--out", type=Path, help="file to which each replicate adds a line of JSON")
    one.add_argument("--tests", type=int, default=3000)
    one.add_argument("--most-fitted", type=int, default=10000, help="largest N for the DP mixture")
    one.add_argument("--most-shifted", type=int, default=3000, help="largest N for mean shift")
    one.add_argument("--warmup", type=int, default=100)
    one.add_argument("--draws", type=int, default=100)
    one.set_defaults(small={"replicates": 2, "sizes": [100, 300], "tests": 500})
    one = add(speed)
    one.add_argument("--rankings", type=int, default=53757)
    one.add_argument("--items", type=int, default=533)
    one.add_argument("--length", type=int, default=10)
    one.add_argument("--clusters", type=int, default=26)
    one.add_argument("--slots", type=int, default=64)
    one.add_argument("--repeats", type=int, default=3)
    choose_kernels(one)
    one.set_defaults(small={"rankings": 2000, "items": 60})
    one = add(apa)
    one.add_argument("--draws", type=int, default=3000)
    one.add_argument("--init", choices=("random", "nearest"), default="random")
    one.set_defaults(small={"draws": 300})

    args = parser.parse_args()
    if args.quick:
        vars(args).update(args.small)
    args.run(args)


if __name__ == "__main__":
    main()
