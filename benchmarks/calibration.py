"""Calibration of tempered mixtures: how often intervals hold what surveys were simulated from.

``python benchmarks/calibration.py`` simulates surveys of 300 judges and 5 items from the prior of
1 to 4 Mallows components. ``--quick`` is a small version.
"""

import argparse
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from numpyro_rankings import Rankings
from numpyro_rankings.infer import TemperedMixture
from numpyro_rankings.posterior.ladders import Ladder, log_evidences

MOST, JUDGES, ITEMS = 4, 300, 5


def simulate(template, numbers, rng):
    """Return how many judges have each ranking, (surveys, rows), and the shares, largest first."""
    surveys = len(numbers)
    counts, shares = np.zeros((surveys, template.num_rows), int), [None] * surveys
    for number in range(1, MOST + 1):
        kernel = TemperedMixture("mallows", number)
        rows = kernel._components.read(template)
        path = kernel._path(template, rows)

        def draw(key, kernel=kernel, rows=rows, path=path):
            replica = kernel._draw_prior(key, rows, path)
            return replica.log_shares, kernel._read_one(replica, rows).log_density

        keys = random.split(random.key(100 + number), surveys)
        log_shares, log_density = map(np.asarray, jax.jit(jax.vmap(draw))(keys))
        for i in np.flatnonzero(numbers == number):
            chances = np.exp(log_density[i].astype(float))
            counts[i] = rng.multinomial(JUDGES, chances / chances.sum())
            shares[i] = np.sort(np.exp(log_shares[i]))[::-1]
    return counts, shares


def fit(number, template, counts, num_warmup, num_samples):
    """Return the shares of all surveys, largest first, and their log evidence."""
    kernel = TemperedMixture("mallows", number)
    leaves, tree = jax.tree.flatten(template)
    place = next(i for i, x in enumerate(leaves) if x is template.counts)

    def survey(given):
        key, own = given
        rankings = jax.tree.unflatten(tree, [*leaves[:place], own, *leaves[place + 1 :]])
        state = kernel._init(key, None, (rankings,), {})
        state = kernel._finish_start(state, num_warmup)

        def sweep(state, _):
            state = kernel.sample(state, (rankings,), {})
            return state, (state.z["shares"], state.rung_log_likelihood, state.rung_log_shares)

        state, _ = jax.lax.scan(sweep, state, None, length=num_warmup)
        state, drawn = jax.lax.scan(sweep, state, None, length=num_samples)
        rungs = state.rung_power, state.rung_effective_size, state.rung_share_concentration
        return drawn, rungs

    keys = random.split(random.key(number), len(counts))
    run = jax.jit(lambda keys, counts: jax.lax.map(survey, (keys, counts), batch_size=20))
    (shares, *values), rungs = jax.tree.map(np.asarray, run(keys, jnp.asarray(counts, jnp.int32)))
    ladders = [Ladder(number, *x) for x in zip(*rungs, *values, strict=True)]
    evidence = [log_evidences([ladder], None)[0][0] for ladder in ladders]
    return np.sort(shares, axis=-1)[..., ::-1], np.array(evidence)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    surveys, num_warmup, num_samples = (4, 20, 20) if args.quick else (200, 100, 150)
    rng = np.random.default_rng(0)
    every = list(permutations(range(ITEMS)))
    weights = [3] * (len(every) // 2) + [2] * (len(every) // 2)
    template = Rankings.from_orderings(every, num_items=ITEMS, counts=weights)
    numbers = rng.integers(1, MOST + 1, surveys)
    counts, truths = simulate(template, numbers, rng)
    fits = [fit(k, template, counts, num_warmup, num_samples) for k in range(1, MOST + 1)]
    chances = jax.nn.softmax(jnp.stack([evidence for _, evidence in fits], axis=1), axis=1)
    held, masses = [], []
    for chance, number in zip(np.asarray(chances), numbers, strict=True):
        order = np.argsort(-chance)
        size = int(np.sum(np.cumsum(chance[order]) < 0.9)) + 1
        held.append(number - 1 in order[:size])
        masses.append(chance[order[:size]].sum())
    is_mode = np.argmax(chances, axis=1) == numbers - 1
    print(f"number of groups: sets of {np.mean(masses):.3f} hold the truth in {np.mean(held):.3f}")
    print(f"the most probable number is the true one in {np.mean(is_mode):.3f}")
    for j in range(MOST - 1):
        own = np.flatnonzero(numbers > max(j, 1))
        ends = [np.quantile(fits[numbers[i] - 1][0][i][:, j], [0.05, 0.95]) for i in own]
        inside = [low <= truths[i][j] <= high for i, (low, high) in zip(own, ends, strict=True)]
        print(f"share {j + 1}: in {np.mean(inside):.3f} of {len(own)} surveys")


if __name__ == "__main__":
    main()
