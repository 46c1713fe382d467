"""Benchmarks of the Plackett–Luce kernels, printed as tables.

``python benchmarks/plackett_luce.py population|mixture|maximum|apa|speed|nascar``; ``--quick`` is a
small version. ``maximum`` compares with choix if it is installed (``pip install choix``).
"""

import argparse
import resource
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.infer import MCMC, NUTS

import numpyro_rankings.distributions as rd
from numpyro_rankings import Rankings, load_dataset, plackett_luce_map
from numpyro_rankings.datasets import simulate_plackett_luce_mixture
from numpyro_rankings.infer import DPPlackettLuceGibbs, PlackettLuceGibbs

SIZES = {"small": (5000, 10, 10), "college": (53757, 533, 10)}  # N, n, t


def simulate(size, items, length, seed=1):
    """Top-t lists of one population; log weights are normal, with standard deviation 1."""
    key_weights, key_lists = jax.random.split(jax.random.key(seed))
    log_weights = jax.random.normal(key_weights, (items,))
    model = rd.TopTPlackettLuce(log_weights, length)
    draw = jax.jit(lambda key: model.sample(key, (1000,)))
    keys = jax.random.split(key_lists, -(-size // 1000))
    lists = np.concatenate([np.asarray(draw(key)) for key in keys])[:size]
    return Rankings.from_orderings(lists, num_items=items)


def log_likelihood(weights, orderings):
    """In its fastest form: the mass in play from one cumulative sum from the end."""
    chosen = weights[orderings]
    rest = jnp.maximum(1.0 - chosen.sum(1, keepdims=True), 0.0)
    if orderings.shape[1] == weights.shape[0]:
        rest = 0.0
    masses = jnp.cumsum(chosen[:, ::-1], axis=1)[:, ::-1] + rest
    return jnp.sum(jnp.log(chosen)) - jnp.sum(jnp.log(masses))


def nuts_model(orderings, num_items):
    """The same posterior for NUTS."""
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(num_items)))
    numpyro.factor("likelihood", log_likelihood(weights, orderings))


def effective(weights, orderings, seconds):
    """Effective draws a CPU second: the worst log weight, and the log likelihood; largest R-hat.

    :param weights: (chains, draws, n).
    """
    log_weights = np.log(np.asarray(weights, np.float64))
    of_one = jax.jit(partial(log_likelihood, orderings=jnp.asarray(orderings)))
    likelihood = np.array([[float(of_one(w)) for w in chain] for chain in weights])
    rhat = max(split_gelman_rubin(log_weights).max(), split_gelman_rubin(likelihood))
    worst = effective_sample_size(log_weights).min()
    return worst / seconds, effective_sample_size(likelihood) / seconds, rhat


def time_gibbs(kernel, rankings, warmup, draws, chains=4):
    """Weights (chains, draws, n), CPU seconds of the draws, and wall seconds of one sweep."""

    def run(state, rankings, number):
        def step(state, _):
            state = kernel.sample(state, (rankings,), {})
            return state, state.z["weights"]

        return jax.lax.scan(step, state, None, length=number)

    keys = jax.random.split(jax.random.key(0), chains)
    state = kernel.init(keys, 0, None, (rankings,), {})
    state, _ = jax.block_until_ready(jax.jit(partial(run, number=warmup))(state, rankings))
    sample = jax.jit(partial(run, number=draws)).lower(state, rankings).compile()
    start, wall = time.process_time(), time.perf_counter()
    _, weights = jax.block_until_ready(sample(state, rankings))
    seconds, wall = time.process_time() - start, time.perf_counter() - wall
    return np.asarray(weights).swapaxes(0, 1), seconds, wall / draws / chains


def time_nuts(rankings, warmup, draws, chains):
    """Weights (chains, draws, n) and CPU seconds of the draws."""
    orderings = jnp.asarray(rankings.orderings[rankings.row_index])
    mcmc = MCMC(
        NUTS(partial(nuts_model, num_items=rankings.num_items)),
        num_warmup=warmup,
        num_samples=draws,
        num_chains=chains,
        chain_method="sequential",
        progress_bar=True,  # keeps the compiled program between runs
    )
    mcmc.warmup(jax.random.key(0), orderings)
    mcmc.num_samples = draws
    mcmc.run(mcmc.post_warmup_state.rng_key, orderings)  # compiles what the draws need
    start = time.process_time()
    mcmc.run(mcmc.post_warmup_state.rng_key, orderings)
    seconds = time.process_time() - start
    return np.asarray(mcmc.get_samples(group_by_chain=True)["weights"]), seconds


def population(args):
    """Effective draws a CPU second of one population, Gibbs against NUTS."""
    print(f"{'data':>8s}  {'kernel':30s} worst log weight  log likelihood  R-hat  ms/sweep")
    for name in args.sizes:
        size, items, length = SIZES[name]
        rankings = simulate(size // (10 if args.quick else 1), items, length)
        orderings = np.asarray(rankings.orderings)
        merged = rankings.unique()
        for title, data in (("Gibbs, rows merged", merged), ("Gibbs, rows written out", rankings)):
            run = time_gibbs(PlackettLuceGibbs(), data, args.warmup, args.draws)
            one, two, rhat = effective(run[0], orderings, run[1])
            print(
                f"{name:>8s}  {title:30s}{one:17.1f}{two:16.1f}{rhat:7.3f}{1e3 * run[2]:10.3f}",
                flush=True,
            )
        if args.nuts_draws > 0:
            weights, seconds = time_nuts(rankings, args.nuts_warmup, args.nuts_draws, 2)
            one, two, rhat = effective(weights, orderings, seconds)
            print(f"{name:>8s}  {'NUTS':30s}{one:17.1f}{two:16.1f}{rhat:7.3f}", flush=True)


def log_row_likelihoods(weights, orderings):
    """Of each list under each component, in the fastest form: (C, N)."""

    def one(weights):
        chosen = weights[orderings]
        rest = jnp.maximum(1.0 - chosen.sum(1, keepdims=True), 0.0)
        if orderings.shape[1] == weights.shape[0]:
            rest = 0.0
        masses = jnp.cumsum(chosen[:, ::-1], axis=1)[:, ::-1] + rest
        return jnp.sum(jnp.log(chosen) - jnp.log(masses), axis=1)

    return jax.vmap(one)(weights)


def log_mixture(weights, shares, orderings):
    """Log likelihood with the labels summed out; weights of 0 count as next to nothing."""
    weights = jnp.maximum(weights, 1e-30)
    log_shares = jnp.log(jnp.maximum(shares, 1e-30))
    by_component = log_row_likelihoods(weights, orderings) + log_shares[:, None]
    return jnp.sum(jax.nn.logsumexp(by_component, axis=0))


def nuts_mixture(orderings, num_items, truncation):
    """Stick-breaking shares, cut off, and Dirichlet(1) weights; labels summed out."""
    with numpyro.plate("stick", truncation - 1):
        sticks = numpyro.sample("sticks", dist.Beta(1.0, 1.0))
    left = jnp.concatenate([jnp.ones(1), jnp.cumprod(1.0 - sticks)])
    shares = left * jnp.concatenate([sticks, jnp.ones(1)])
    with numpyro.plate("component", truncation):
        weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(num_items)))
    log_likelihood = log_mixture(weights, shares, orderings)
    numpyro.deterministic("log_likelihood", log_likelihood)
    numpyro.factor("likelihood", log_likelihood)


def mixture(args):
    """Effective draws a CPU second of the log likelihood of a mixture, Gibbs against NUTS."""
    for name in args.sizes:
        size, items, length = SIZES[name]
        compare_mixtures(size // (10 if args.quick else 1), items, length, args)


def compare_mixtures(size, items, length, args):
    rng = np.random.default_rng(0)
    weights = np.exp(1.5 * rng.normal(size=(args.clusters, items)))
    truth = simulate_plackett_luce_mixture(jax.random.key(1), size, weights, length)
    rankings = truth.rankings.of_listed_items().unique()  # what the DP mixture can be run on
    orderings, items = jnp.asarray(rankings.orderings[rankings.row_index]), rankings.num_items
    print(f"N = {size}, n = {items}, {args.clusters} clusters; quantity: log likelihood")
    print(f"{'kernel':40s} ESS a CPU second   R-hat  clusters  ms/sweep")
    kernels = {
        f"PlackettLuceGibbs, K = {args.clusters}": PlackettLuceGibbs(num_components=args.clusters),
        "DPPlackettLuceGibbs": DPPlackettLuceGibbs(1.0, 1.0, 1.0, max_clusters=32),
        "DPPlackettLuceGibbs, scales learned": DPPlackettLuceGibbs(
            dist.Gamma(1.0, 0.1), dist.Gamma(1.0, 0.01), dist.Gamma(1.0, 1.0), max_clusters=32
        ),
    }

    def of_draw(z):
        sizes = z["cluster_sizes"]
        return log_mixture(z["weights"], sizes / sizes.sum(), orderings), z["num_clusters"]

    for title, kernel in kernels.items():

        def run(state, rankings, number, kernel=kernel):
            def step(state, _):
                state = kernel.sample(state, (rankings,), {})
                kept = ("weights", "cluster_sizes", "num_clusters")
                return state, {name: state.z[name] for name in kept}

            return jax.lax.scan(step, state, None, length=number)

        state = kernel.init(jax.random.split(jax.random.key(0), 4), 0, None, (rankings,), {})
        state, _ = jax.block_until_ready(jax.jit(partial(run, number=args.warmup))(state, rankings))
        sample = jax.jit(partial(run, number=args.draws)).lower(state, rankings).compile()
        start, wall = time.process_time(), time.perf_counter()
        _, draws = jax.block_until_ready(sample(state, rankings))
        seconds, wall = time.process_time() - start, time.perf_counter() - wall
        values, clusters = jax.jit(lambda z: jax.lax.map(lambda x: jax.lax.map(of_draw, x), z))(
            draws
        )
        values = np.asarray(values, np.float64).T
        print(
            f"{title:40s}{effective_sample_size(values) / seconds:17.2f}"
            f"{split_gelman_rubin(values):8.3f}{float(np.mean(clusters)):10.2f}"
            f"{1e3 * wall / args.draws / 4:10.1f}",
            flush=True,
        )
    if args.nuts_draws > 0:
        mcmc = MCMC(
            NUTS(nuts_mixture),
            num_warmup=args.nuts_warmup,
            num_samples=args.nuts_draws,
            num_chains=2,
            chain_method="sequential",
            progress_bar=True,  # keeps the compiled program between runs
        )
        model_args = orderings, items, args.truncation
        mcmc.warmup(jax.random.key(0), *model_args)
        mcmc.num_samples = 2
        mcmc.run(mcmc.post_warmup_state.rng_key, *model_args)  # compiles what the draws need
        mcmc.num_samples = args.nuts_draws
        start = time.process_time()
        mcmc.run(mcmc.post_warmup_state.rng_key, *model_args)
        seconds = time.process_time() - start
        values = np.asarray(mcmc.get_samples(group_by_chain=True)["log_likelihood"], np.float64)
        title = f"NUTS, {args.truncation} sticks"
        print(
            f"{title:40s}{effective_sample_size(values) / seconds:17.4f}"
            f"{split_gelman_rubin(values):8.3f}, {args.nuts_draws} draws of 2 chains in "
            f"{seconds:.0f} CPU s",
            flush=True,
        )


def maximum(args):
    """Seconds to the weights of highest likelihood, against choix.

    choix knows rankings of subsets only, so the lists are taken as orders of what they list.
    """
    for name in args.sizes:
        size, items, length = SIZES[name]
        lists = np.asarray(simulate(size // (10 if args.quick else 1), items, length).orderings)
        offered = np.zeros((len(lists), items), bool)
        np.put_along_axis(offered, lists, True, axis=1)
        rankings = Rankings.from_orderings(lists, num_items=items, choice_sets=offered)
        start = time.process_time()
        fit = plackett_luce_map(rankings)
        seconds = time.process_time() - start
        known = np.log(fit.weights)
        print(f"{name}: plackett_luce_map {seconds:.3f} CPU s, {fit.num_iterations} iterations")
        try:
            import choix
        except ImportError:
            print("choix is not installed")
            continue
        data = [row.tolist() for row in lists]
        for function in (choix.ilsr_rankings, choix.mm_rankings):
            start = time.process_time()
            try:
                found = function(items, data)
            except RuntimeError as error:
                print(f"{name}: choix.{function.__name__}: {error}", end=", ")
                found = np.full(items, np.nan)
            taken = time.process_time() - start
            gap = np.abs(found - found.mean() - known + known.mean()).max()
            print(
                f"{name}: choix.{function.__name__} {taken:.3f} CPU s, {taken / seconds:.0f} times "
                f"as long, log weights differ by {gap:.1e}",
                flush=True,
            )


def apa(args):
    """APA 1980, Gamma(1, 1) weights: known means, and the time of a sweep."""
    kernel = PlackettLuceGibbs()
    weights, seconds, sweep = time_gibbs(kernel, load_dataset("apa1980"), 200, args.draws)
    ess = effective_sample_size(np.log(weights))
    print(f"4 chains of {args.draws} draws, {1e3 * sweep:.3f} ms a sweep of one of them")
    print("weight     known     found        sd   ESS a CPU second")
    for k, known in enumerate((0.23166, 0.17586, 0.20706, 0.18765, 0.19777)):
        draws = weights[..., k].astype(float)
        print(
            f"{k + 1:6d}{known:10.5f}{draws.mean():10.5f}{draws.std():10.5f}"
            f"{ess[k] / seconds:12.0f}"
        )
    single, _, sweep = time_gibbs(kernel, load_dataset("apa1980"), 200, args.draws, chains=1)
    print(f"one chain: {1e3 * sweep:.3f} ms a sweep, {single.shape[1]} draws")


def speed(args):
    """Seconds per sweep of the DP mixture, n = 533, t = 10, from the truth of 26 clusters."""
    rng = np.random.default_rng(0)
    items, length, clusters = 533, 10, 26
    kernel = DPPlackettLuceGibbs(max_clusters=64)
    times = []
    first = args.rankings // (10 if args.quick else 1)
    for size in (first, 2 * first):
        weights = np.exp(2.0 * rng.normal(size=(clusters, items)))
        truth = simulate_plackett_luce_mixture(jax.random.key(1), size, weights, length)
        rankings = truth.rankings.of_listed_items()
        start = {"assignments": jnp.asarray(truth.assignments)}
        state = kernel.init(jax.random.key(0), 0, start, (rankings,), {})
        sweep = jax.jit(lambda state, rankings: kernel.sample(state, (rankings,), {}))
        best = np.inf
        for i in range(args.repeats + 1):
            began = time.perf_counter()
            state = jax.block_until_ready(sweep(state, rankings))
            if i > 0:
                best = min(best, time.perf_counter() - began)
        times.append(best)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        ratio = "" if len(times) == 1 else f", {times[1] / times[0]:.2f} times N/2"
        print(
            f"N = {size}: {best:.3f} s a sweep, {int(state.z['num_clusters'])} clusters, peak so "
            f"far {peak:.2f} GiB{ratio}",
            flush=True,
        )


# Log weights that the vignette of the R package PlackettLuce prints, for 83 drivers and for all 87
# with half a win and half a loss of each against a further one; standard errors of the latter
PRINTED = """
PJ Jones         4.15  3.20
Scott Pruett     3.62  2.77
Mark Martin      2.08  1.91
Dave Marcis      0.03  0.02
Dick Trickle    -0.31 -0.38
Joe Varde       -0.15 -0.12
Andy Hillenburg  - -2.171065 1.812994
Gary Bradberry   - -1.744754 1.855365
Jason Hedlesky   - -1.590764 1.881708
Randy Renfrow    - -1.768629 1.904871
"""


def compare_with_printed(best, names, races):
    """Print log weights and standard errors beside those of PlackettLuce, Austin Cameron at 0."""
    names, last = [*names.values()], len(names)
    rows = [[driver - 1 for driver in race] for race in races]
    rows += [pair for k in range(last) for pair in ([k, last], [last, k])]
    counts = np.where(np.arange(len(rows)) < len(races), 2, 1)  # which halves the halves
    offered = np.array([np.isin(np.arange(last + 1), row) for row in rows])
    fit = plackett_luce_map(Rankings.from_orderings(rows, last + 1, None, counts, offered))
    # standard errors do not count what was added
    weights, information = fit.weights[:last], fit.information[:last, :last].copy()
    added = 2 * weights * fit.weights[last] / (weights + fit.weights[last]) ** 2
    information[np.diag_indices(last)] -= added
    fit = fit._replace(weights=weights, items=tuple(names), information=information / 2)
    of_all, of_best = fit.summary(names[0]), np.log(best.weights / best.weights[0])
    print("| driver | of 83 | printed | of 87 | printed | standard error | printed |")
    print("|---|---|---|---|---|---|---|")
    for line in PRINTED.strip().split("\n"):
        name, printed = line[:16].strip(), [*line[16:].split(), ""]
        before = f"{of_best[names.index(name)]:.2f} | {printed[0]}" if printed[0] != "-" else " | "
        x, error = of_all.loc[name, ["log_weight", "standard_error"]]
        digits = len(printed[1].split(".")[1])
        errors = f"{error:.6f} | {printed[2]}" if printed[2] else " | "
        print(f"| {name} | {before} | {x:.{digits}f} | {printed[1]} | {errors} |")
    print(f"quasi-variances: largest relative error {of_all.attrs['quasi_error']:.3f}")


def nascar(args):
    """NASCAR 2002 (Hunter 2004): maximum and posterior means of 83 drivers, subset rankings."""
    names = dict(
        line.split(",", 1) for line in (args.folder / "drivers.csv").read_text().splitlines()[1:]
    )
    races = np.genfromtxt(
        args.folder / "nascar2002_orderings.csv", delimiter=",", skip_header=1, dtype=int
    )
    # those who always were last are left out, as by Hunter: nothing bounds their weights
    orderings = [[driver - 1 for driver in race if driver <= 83] for race in races]
    offered = np.array([np.isin(np.arange(83), race) for race in orderings])
    rankings = Rankings.from_orderings(orderings, num_items=83, choice_sets=offered)
    best = plackett_luce_map(rankings)
    compare_with_printed(best, names, races)
    mcmc = MCMC(
        PlackettLuceGibbs(),
        num_warmup=args.draws // 2,
        num_samples=args.draws,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(0), rankings)
    draws = np.asarray(mcmc.get_samples(group_by_chain=True)["weights"], np.float64)
    rhat = split_gelman_rubin(np.log(draws)).max()
    worst = effective_sample_size(np.log(draws)).min()
    print(f"log likelihood {best.log_likelihood:.4f} at its maximum (known: -4191.0973)")
    print(f"{4 * args.draws} draws: R-hat at most {rhat:.3f}, at least {worst:.0f} effective")
    weights = np.asarray(best.weights)
    for driver in np.argsort(-weights)[:8]:
        low, high = np.quantile(draws[..., driver], [0.05, 0.95])
        mean = draws[..., driver].mean()
        print(
            f"{names[str(driver + 1)]:<16}{weights[driver]:.4f}; posterior mean {mean:.4f} "
            f"({low:.4f} to {high:.4f}), {offered[:, driver].sum()} races"
        )


def main():
    """Read the command line and print the table asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)

    def add(function):
        command = commands.add_parser(function.__name__, help=function.__doc__.split("\n")[0])
        command.add_argument("--quick", action="store_true", help="a tenth of the rankings")
        command.set_defaults(run=function)
        return command

    for function in (population, maximum, mixture):
        one = add(function)
        one.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    one = commands.choices["population"]
    one.add_argument("--warmup", type=int, default=200)
    one.add_argument("--draws", type=int, default=2000)
    one.add_argument("--nuts-warmup", type=int, default=500)
    one.add_argument("--nuts-draws", type=int, default=500)
    one = commands.choices["mixture"]
    one.add_argument("--clusters", type=int, default=4)
    one.add_argument("--truncation", type=int, default=10)
    one.add_argument("--warmup", type=int, default=100)
    one.add_argument("--draws", type=int, default=500)
    one.add_argument("--nuts-warmup", type=int, default=100)
    one.add_argument("--nuts-draws", type=int, default=60)
    add(apa).add_argument("--draws", type=int, default=4000)
    one = add(speed)
    one.add_argument("--rankings", type=int, default=53757)
    one.add_argument("--repeats", type=int, default=5)
    one = add(nascar)
    one.add_argument("folder", type=Path, help="with drivers.csv and nascar2002_orderings.csv")
    one.add_argument("--draws", type=int, default=4000)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
