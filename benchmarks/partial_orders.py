"""What ties and pairs cost: kernels on partial orders, and on the full orderings of the judges.

``python benchmarks/partial_orders.py [--only ties pairs games] [--kernels NAME ...]``; ``--quick``
is a small version. Chains start at the parameters of the simulation; compilation is not counted.
``games`` is the posterior of Bradley-Terry weights, by Gibbs and by NUTS, from random starts.

``--to-rhat`` tells instead how long four chains from random starts take to an R-hat of 1.01, of the
slowest quantity or the log joint in the second half of the draws, looked at after 100 draws of each
chain, 150, …; ``--minutes`` of the processor are the most for each table and kernel.
"""

import argparse
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.infer import MCMC, NUTS

from numpyro_rankings import Games, PartialOrders, Rankings
from numpyro_rankings.datasets import simulate_mallows_mixture, simulate_plackett_luce_mixture
from numpyro_rankings.infer import PlackettLuceGibbs, SliceGibbs
from numpyro_rankings.infer.latent_orders import draw_orderings, with_orderings
from numpyro_rankings.models import bradley_terry

PRIOR = {"tied": True, "concentration_prior": dist.Gamma(1.0, 1.0), "init": "given"}
KERNELS = {
    "PlackettLuceGibbs": PlackettLuceGibbs(),
    "PlackettLuceGibbs, K = 3": PlackettLuceGibbs(num_components=3),
    "SliceGibbs, one population": SliceGibbs(num_components=1, **PRIOR),
    "SliceGibbs, K = 3": SliceGibbs(num_components=3, **PRIOR),
}


# -- data ----------------------------------------------------------------------------------------


def judges(kernel, size, num_items):
    """Orderings of all items, and the parameters that they were drawn with."""
    number, rng = kernel.num_components, np.random.default_rng(0)
    if isinstance(kernel, PlackettLuceGibbs):
        weights = np.exp(rng.normal(size=(number, num_items)))
        sample = simulate_plackett_luce_mixture(jax.random.key(1), size, weights, num_items)
        weights = jnp.asarray(sample.weights if number > 1 else sample.weights[0], jnp.float32)
        start = {"weights": weights}
    else:
        theta = 2.5 / num_items
        sample = simulate_mallows_mixture(
            jax.random.key(1), size, num_items, num_items, number, theta
        )
        stages = jnp.full((number, num_items - 1), theta)
        start = {"center": jnp.asarray(sample.centers), "concentration": stages}
    start |= {"assignments": jnp.asarray(sample.assignments)} if number > 1 else {}
    orderings = np.asarray(sample.rankings.expand().orderings)
    if orderings.shape[1] < num_items:
        last = np.arange(num_items).sum() - orderings.sum(1, keepdims=True)
        orderings = np.concatenate([orderings, last], axis=1).astype(np.int32)
    return orderings, start


def in_buckets(orderings, steps):
    """Items are tied with the next one where there is no step, (N, n)."""
    ranks = np.empty(orderings.shape)
    np.put_along_axis(ranks, orderings, steps.cumsum(1).astype(float), axis=1)
    return PartialOrders.from_ranks(ranks, ties="any")


def with_ties(orderings, rng):
    """A fifth of the neighbors are tied."""
    return in_buckets(orderings, rng.random(orderings.shape) >= 0.2)


def with_a_fifth_less(orderings, rng):
    """Of 10 items four are tied and three others: 9 of 45 preferences are missing."""
    sizes = rng.permuted(np.tile([4, 3, 1, 1, 1], (len(orderings), 1)), axis=1)
    steps = np.zeros(orderings.shape, int)
    np.put_along_axis(steps, sizes.cumsum(1)[:, :-1], 1, axis=1)
    return in_buckets(orderings, steps)


def of_pairs(orderings, rng, number=100):
    """Each judge compares so many pairs."""
    size, num_items = orderings.shape
    first = rng.integers(num_items, size=(size, number))
    second = (first + rng.integers(1, num_items, size=(size, number))) % num_items
    places = np.sort(np.stack([first, second], axis=-1), axis=-1)
    items = np.take_along_axis(orderings[:, None], places, axis=-1).reshape(-1, 2)
    table = pd.DataFrame(items, columns=["winner", "loser"])
    table["judge"] = np.repeat(np.arange(size), number)
    return PartialOrders.from_pairs(table, "judge", items=range(num_items))


# -- measurement ---------------------------------------------------------------------------------


def quantity(z):
    """What is diagnosed: log weights or θ of one population, the size of the largest of three."""
    if "weights" in z and z["weights"].ndim == 1:
        return jnp.log(z["weights"])
    if len(z["cluster_sizes"]) > 1:
        return jnp.max(z["cluster_sizes"], keepdims=True).astype(float)
    return z["shared_concentration"]


def sweeps_of(kernel, number):
    """A compiled function of a state and data: the state after so many sweeps, and draws."""

    def sweep(data, state, _):
        state = kernel.sample(state, (data,), {})
        return state, quantity(state.z)

    return jax.jit(lambda state, data: jax.lax.scan(partial(sweep, data), state, length=number))


def fastest(call, repeats=3):
    """The result of a compiled call and its seconds, the best of some repeats."""
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        result = jax.block_until_ready(call())
        best = min(best, time.perf_counter() - begin)
    return result, best


def measure(kernel, sweeps, data, start):
    """Seconds of a sweep, and effective draws a second of the slowest quantity."""
    begin = jax.jit(lambda key, data: kernel.init(key, 0, start, (data,), {}))
    state, _ = sweeps(begin(jax.random.key(0), data), data)
    (state, draws), seconds = fastest(lambda: sweeps(state, data), 1)
    ess = effective_sample_size(np.asarray(draws, np.float64)[None]).min()
    return seconds / len(draws), ess / seconds, state


def seconds_of_orderings(kernel, orders, state):
    """Seconds that it takes to draw the orderings of all judges once."""

    @jax.jit
    def draw(state, orders):
        orders = kernel._find_orders((orders,), {})
        given = with_orderings((orders,), {}, orders, state.orderings)
        lists = kernel._lists(state.z, *given, orders)
        return draw_orderings(state.rng_key, orders, state.orderings, lists)

    draw(state, orders).block_until_ready()
    return fastest(lambda: draw(state, orders))[1]


def show(name, kernel, orderings, start, says, number):
    """One row for each kind of data."""
    strict = Rankings.from_orderings(orderings, num_items=orderings.shape[1])
    sweeps = sweeps_of(kernel, number)
    for what, data in {"all preferences": strict, **says}.items():
        seconds, ess, state = measure(kernel, sweeps, data, start)
        own = "" if data is strict else f"{1e3 * seconds_of_orderings(kernel, data, state):.3g}"
        each = seconds * ess
        print(
            f"| {name} | {what} | {1e3 * seconds:.3g} | {own} | {each:.2g} | {ess:.3g} |",
            flush=True,
        )


def ties(name, kernel, quick):
    size, number = (200, 50) if quick else (5000, 300)
    orderings, start = judges(kernel, size, 10)
    rng = np.random.default_rng(1)
    kinds = {"20% ties": with_ties, "a fifth less": with_a_fifth_less}
    says = {what: make(orderings, rng) for what, make in kinds.items()}
    show(f"{size:,} x 10, {name}", kernel, orderings, start, says, number)


def pairs(name, kernel, quick):
    size, num_items, number = (50, 20, 20) if quick else (500, 100, 40)
    orderings, start = judges(kernel, size, num_items)
    says = {"100 pairs": of_pairs(orderings, np.random.default_rng(1))}
    show(f"{size} x {num_items}, {name}", kernel, orderings, start, says, number)


def simulated_games(quick):
    """Games as counted, and as the first places of judges who were offered two items."""
    size, num_items = (1000, 20) if quick else (100_000, 1000)
    rng = np.random.default_rng(0)
    strength = rng.normal(size=num_items)
    first = rng.integers(num_items, size=size)
    pair = np.stack([first, (first + rng.integers(1, num_items, size=size)) % num_items])
    wins = rng.random(size) < 1 / (1 + np.exp(strength[pair[1]] - strength[pair[0]]))
    winner, loser = np.where(wins, pair, pair[::-1])
    counted = Games.from_pairs(
        pd.DataFrame({"winner": winner, "loser": loser}), items=range(num_items)
    )
    both, counts = np.unique(np.stack([winner, loser], axis=1), axis=0, return_counts=True)
    offered = np.zeros((len(both), num_items), bool)
    offered[np.arange(len(both))[:, None], both] = True
    firsts = Rankings.from_orderings(
        both[:, :1], num_items=num_items, counts=counts, choice_sets=offered
    )
    return counted, firsts


def games(quick):
    """The posterior of Bradley-Terry weights with a Dirichlet(1) prior, from random starts."""
    counted, firsts = simulated_games(quick)
    print("| sampler | draws of each of 4 chains | seconds | ms a draw | R-hat | ESS | a second |")
    print("|---|---|---|---|---|---|---|")
    lengths = (50, 50) if quick else (200, 400)
    _of_games("`PlackettLuceGibbs`", PlackettLuceGibbs(), firsts, *lengths)
    lengths = (50, 50) if quick else (200, 100)
    _of_games("NUTS of `models.bradley_terry`", NUTS(bradley_terry), counted, *lengths)


def _of_games(name, kernel, data, warmup, draws):
    settings = {"chain_method": "vectorized", "progress_bar": False, "jit_model_args": True}
    mcmc = MCMC(kernel, num_warmup=warmup, num_samples=1, num_chains=4, **settings)
    mcmc.run(jax.random.key(0), data)

    def draw(data, state, _):
        step = partial(kernel.sample, model_args=(data,), model_kwargs={})
        state = step(state) if isinstance(kernel, NUTS) else jax.vmap(step)(state)
        sites = jax.vmap(kernel.postprocess_fn((data,), {}))(getattr(state, kernel.sample_field))
        return state, jnp.log(sites["weights"])

    run = jax.jit(lambda state, data: jax.lax.scan(partial(draw, data), state, length=draws)[1])
    program = run.lower(mcmc.last_state, data).compile()
    log_weights, seconds = fastest(lambda: program(mcmc.last_state, data), 1)
    log_weights = np.asarray(log_weights, np.float64).swapaxes(0, 1)
    ess, r_hat = effective_sample_size(log_weights).min(), split_gelman_rubin(log_weights).max()
    print(
        f"| {name} | {draws} after {warmup} | {seconds:.3g} | {1e3 * seconds / draws:.3g} | "
        f"{r_hat:.3f} | {ess:.3g} | {ess / seconds:.3g} |",
        flush=True,
    )


TABLES = {"ties": ties, "pairs": pairs}


# -- seconds to R-hat 1.01 -------------------------------------------------------------------------


def random_start(kernel, data):
    """The kernel, and a function of keys: the states of chains that start anywhere."""
    number, size, n = kernel.num_components, data.num_rankings, data.num_items
    if not isinstance(kernel, PlackettLuceGibbs):
        kernel = SliceGibbs(num_components=number, **PRIOR | {"init": "random"})

    def begin(key, data):
        key_chain, key_weights, key_labels = jax.random.split(key, 3)
        start = None
        if isinstance(kernel, PlackettLuceGibbs):
            shape = (number,) if number > 1 else ()
            start = {"weights": jax.random.dirichlet(key_weights, jnp.ones(n), shape)}
            if number > 1:
                start["assignments"] = jax.random.randint(key_labels, (size,), 0, number)
        return kernel.init(key_chain, 0, start, (data,), {})

    return kernel, jax.jit(jax.vmap(begin, (0, None)))


def to_rhat(what, name, kernel, data, minutes, goal=1.01, chains=4):
    """One row: how long chains from random starts take until they agree."""
    kernel, begin = random_start(kernel, data)

    def block(state, data, number):
        def sweep(state, _):
            state = jax.vmap(lambda one: kernel.sample(one, (data,), {}))(state)
            values = jax.vmap(quantity)(state.z)
            return state, jnp.concatenate([values, state.z["log_joint"][:, None]], axis=1)

        return jax.lax.scan(sweep, state, None, length=number)

    keys, size = jax.random.split(jax.random.key(3), chains), 50
    state = begin(keys, data)
    program = jax.jit(block, static_argnums=2).lower(state, data, size).compile()
    jax.block_until_ready(program(state, data))  # as fast as it will be
    state, seconds, wall, draws, rhat = begin(keys, data), 0.0, 0.0, [], np.array([np.inf])
    while len(draws) < 2 or (rhat.max() > goal and seconds < 60 * minutes):
        start = time.process_time(), time.perf_counter()
        state, new = jax.block_until_ready(program(state, data))
        seconds += time.process_time() - start[0]
        wall += time.perf_counter() - start[1]
        draws.append(np.asarray(new, np.float64).swapaxes(0, 1))
        kept = np.concatenate(draws, axis=1)
        kept = kept[:, kept.shape[1] // 2 :]
        if len(draws) > 1:
            with np.errstate(invalid="ignore"):
                rhat = np.nan_to_num(split_gelman_rubin(kept), nan=1.0)  # of what is constant
    slowest, number = int(np.argmax(rhat)), size * len(draws)
    which = "log joint" if slowest == len(rhat) - 1 else name_of(state.z, slowest)
    ess = effective_sample_size(kept)[slowest]
    took = f"{seconds:.3g}" if rhat.max() <= goal else f"not in {seconds:.3g}"
    print(
        f"| {what}, {name} | {number} | {1e3 * seconds / number:.3g} | {rhat.max():.3f} | {which} "
        f"| {ess:.3g} | {took} | {wall:.3g} |",
        flush=True,
    )


def name_of(z, index):
    """What an entry of ``quantity`` is."""
    if "weights" in z and z["weights"].ndim == 2:  # with the chains
        return f"log weight {index + 1}"
    return "largest group" if z["cluster_sizes"].shape[-1] > 1 else "θ"


def all_to_rhat(only, kernels, quick, minutes):
    """The table of ``--to-rhat``: one population and a mixture for ties and pairs, and games."""
    print(
        "| data, kernel | draws of each of 4 chains | ms of all four | R-hat | of | ESS | seconds "
        "of the processor | on the wall |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    rng = np.random.default_rng(1)
    for table, (size, num_items) in {"ties": (5000, 10), "pairs": (500, 100)}.items():
        size, num_items = (size // 10, min(num_items, 20)) if quick else (size, num_items)
        for name in kernels if table in only else ():
            orderings, _ = judges(KERNELS[name], size, num_items)
            data = with_ties(orderings, rng) if table == "ties" else of_pairs(orderings, rng)
            what = f"{size:,} x {num_items}, {'20% ties' if table == 'ties' else '100 pairs'}"
            to_rhat(what, name, KERNELS[name], data, minutes)
    if "games" in only:
        _, firsts = simulated_games(quick)
        what = f"{firsts.num_rankings:,} games of {firsts.num_items:,}"
        to_rhat(what, "PlackettLuceGibbs", PlackettLuceGibbs(), firsts, minutes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    names = [*TABLES, "games"]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    parser.add_argument("--to-rhat", action="store_true")
    parser.add_argument("--minutes", type=float, default=10.0)
    args = parser.parse_args()
    if args.to_rhat:
        return all_to_rhat(args.only, args.kernels, args.quick, args.minutes)
    if "games" in args.only:
        games(args.quick)
    columns = (
        "judges, kernel | what they say | a sweep, ms | orderings, ms | ESS a sweep | a second"
    )
    tables = [x for x in args.only if x in TABLES]
    if tables:
        print(f"| {columns} |\n|---|---|---|---|---|---|", flush=True)
    for table in tables:
        for name in args.kernels:
            TABLES[table](name, KERNELS[name], args.quick)


if __name__ == "__main__":
    main()
