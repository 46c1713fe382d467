"""What ties and pairs cost: kernels on partial orders, and on the full orderings of the judges.

``python benchmarks/partial_orders.py [--only ties pairs] [--kernels NAME ...]``; ``--quick`` is a
small version. Chains start at the parameters of the simulation; compilation is not counted.
"""

import argparse
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pandas as pd
from numpyro.diagnostics import effective_sample_size

from numpyro_rankings import PartialOrders, Rankings
from numpyro_rankings.datasets import simulate_mallows_mixture, simulate_plackett_luce_mixture
from numpyro_rankings.infer import PlackettLuceGibbs, SliceGibbs
from numpyro_rankings.infer.latent_orders import draw_orderings, with_orderings

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


TABLES = {"ties": ties, "pairs": pairs}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    args = parser.parse_args()
    columns = (
        "judges, kernel | what they say | a sweep, ms | orderings, ms | ESS a sweep | a second"
    )
    print(f"| {columns} |\n|---|---|---|---|---|---|", flush=True)
    for table in args.only:
        for name in args.kernels:
            TABLES[table](name, KERNELS[name], args.quick)


if __name__ == "__main__":
    main()
