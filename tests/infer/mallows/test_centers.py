"""Moves of the centers against enumeration, and their integer bookkeeping."""

import itertools
import math
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.enumeration import codes_of
from jax import random

from numpyro_rankings.infer.mallows.centers import (
    CenterSums,
    _cost_difference,
    pair_costs,
    reinsert_items,
    sample_center_stagewise,
    shuffle_unlisted,
    swap_neighbors,
    update_centers,
)
from numpyro_rankings.infer.mallows.data import MallowsData, code_sums, occupancy_of, stage_counts
from numpyro_rankings.infer.mixture.membership import Membership, membership_of
from numpyro_rankings.ops.codes import inverse_ordering

THETA = (1.2, 0.4)
TABLES = {"one": [(0,)], "two": [(0, 1)], "three": [(0, 1), (2, 0), (1, 3)]}
# total variation of the stagewise draw taken as it is
UNCORRECTED = {"one": 0.18, "two": 0.12, "three": 0.11}
CHAINS = 20_000


def table_of(lists, stages, counts=None, num_items=4):
    """The arrays that the moves read."""
    orderings = np.full((len(lists), stages), -1, np.int32)
    for row, ranking in zip(orderings, lists, strict=True):
        row[: len(ranking)] = ranking
    counts = np.ones(len(lists), np.int32) if counts is None else np.asarray(counts, np.int32)
    row_index = np.repeat(np.arange(len(lists), dtype=np.int32), counts)
    limits = np.array([num_items - 1 - j for j in range(stages)], np.int32)
    log_marginal = np.zeros(len(lists), np.float32)
    return MallowsData(*map(jnp.asarray, (orderings, counts, row_index, log_marginal, limits)))


def rows_of_clusters(data, labels, num_slots):
    return membership_of(labels, data.row_index, data.counts, num_slots)


def exact_posterior(lists, theta, num_items):
    """All centers and P(σ | θ, data) ∝ exp(-Σ_j θ_j S_j(σ))."""
    centers = list(itertools.permutations(range(num_items)))
    costs = [sum(np.dot(theta[: len(x)], codes_of(x, center)) for x in lists) for center in centers]
    p = np.exp(-np.array(costs) + min(costs))
    return np.array(centers), p / p.sum()


def frequencies(draws, centers):
    """Share of each center among the draws."""
    powers = centers.shape[1] ** np.arange(centers.shape[1])
    codes = centers @ powers
    order = np.argsort(codes)
    index = order[np.searchsorted(codes[order], np.asarray(draws) @ powers)]
    return np.bincount(index, minlength=len(centers)) / len(draws)


def tolerance(p, draws, error=1e-6):
    """What the total variation of so many independent draws exceeds with probability ``error``."""
    mean = 0.5 * np.sqrt(p * (1 - p) / draws).sum()  # Jensen
    return mean + math.sqrt(math.log(1 / error) / (2 * draws))  # McDiarmid


@lru_cache
def chains_of(move, repeats):
    """Compiled once for all tables of one shape: the last center of each of many chains."""

    @jax.jit
    def run(keys, data, theta, start, sizes):
        occupancy = occupancy_of(data, jnp.zeros(data.num_labels, jnp.int32), 1)
        occupancy = occupancy._replace(sizes=sizes)  # empty rows are no rankings
        rows = occupancy.membership
        costs = pair_costs(rows, data, theta, sizes, start.shape[1])

        def chain(key):
            def step(center, key):
                return move(key, center, costs, theta, occupancy, data), None

            return jax.lax.scan(step, start, random.split(key, repeats))[0][0]

        return jax.vmap(chain)(keys)

    return run


def run_chains(move, lists, theta, num_items, repeats):
    """Start at the reversed order; empty rows, which add nothing, fill the table to four."""
    data = table_of([*lists, *[()] * (4 - len(lists))], len(theta))
    start = np.arange(num_items, dtype=np.int32)[None, ::-1]
    keys = random.split(random.key(0), CHAINS)
    theta, sizes = np.array([theta], np.float32), np.array([len(lists)], np.int32)
    return np.asarray(chains_of(move, repeats)(keys, data, theta, start, sizes))


def whole_update(key, center, costs, theta, occupancy, data, exact=True):
    """`update_centers` with its sums checked against a recount."""
    rows = occupancy.membership
    now = CenterSums(center, code_sums(rows, data, inverse_ordering(center)))
    (center, sums), _ = update_centers(key, now, theta, occupancy, data, 3, exact)
    recount = code_sums(rows, data, inverse_ordering(center))
    return jnp.where(jnp.all(sums == recount), center, 0)


def paper_update(*args):
    return whole_update(*args, exact=False)


# so often repeated that the start, known by matrices of transitions, is forgotten to 1e-5
MOVES = {
    "update": (whole_update, 4),
    "swaps": (lambda key, center, costs, *_: swap_neighbors(key, center, costs, 2), 15),
    "reinsertion": (lambda key, center, costs, *_: reinsert_items(key, center, costs, 1), 25),
    "stagewise": (
        lambda key, center, costs, *_: sample_center_stagewise(key, center, costs)[0],
        10,
    ),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("move", MOVES)
def test_center_by_enumeration(move, name):
    lists = TABLES[name]
    centers, p = exact_posterior(lists, THETA, 4)
    draws = run_chains(MOVES[move][0], lists, THETA, 4, MOVES[move][1])
    assert np.array_equal(np.sort(draws, axis=1), np.tile(np.arange(4), (CHAINS, 1)))
    distance = 0.5 * np.abs(frequencies(draws, centers) - p).sum()
    assert distance < tolerance(p, CHAINS)


@pytest.mark.parametrize("name", TABLES)
def test_the_stagewise_draw_alone_is_not_exact(name):
    lists = TABLES[name]
    centers, p = exact_posterior(lists, THETA, 4)

    draws = run_chains(paper_update, lists, THETA, 4, repeats=1)
    distance = 0.5 * np.abs(frequencies(draws, centers) - p).sum()
    assert distance > 2 * tolerance(p, CHAINS)
    assert distance == pytest.approx(UNCORRECTED[name], abs=0.02)


@pytest.mark.slow
def test_batches_of_slots(monkeypatch):
    """Two slots at a time, in chains that differ in how many of the five are occupied."""
    monkeypatch.setattr("numpyro_rankings.infer.mallows.centers._BATCH_ITEMS", 8)
    data = table_of([x for name in TABLES for x in TABLES[name]], 2)
    groups = {0: ["one"], 2: ["two"], 4: ["three"]}, {3: list(TABLES)}
    labels = jnp.array([[0, 2, 4, 4, 4], [3, 3, 3, 3, 3]], jnp.int32)
    theta = jnp.tile(jnp.array(THETA), (5, 1))

    def chain(key, labels):
        occupancy = occupancy_of(data, labels, 5)
        rows = occupancy.membership

        def step(center, key):
            now = CenterSums(center, code_sums(rows, data, inverse_ordering(center)))
            (center, new_sums), _ = update_centers(key, now, theta, occupancy, data, 3)
            return center, jnp.all(new_sums == code_sums(rows, data, inverse_ordering(center)))

        start = jnp.tile(jnp.arange(3, -1, -1, dtype=jnp.int32), (5, 1))
        return jax.lax.scan(step, start, random.split(key, 12))

    over_labels = jax.vmap(chain, in_axes=(None, 0))
    draws, agree = jax.jit(jax.vmap(over_labels, (0, None)))(
        random.split(random.key(5), 8_000), labels
    )
    assert np.all(agree)
    for kind, occupied in enumerate(groups):
        for slot in range(5):
            lists = [x for name in occupied.get(slot, []) for x in TABLES[name]]
            centers, p = exact_posterior(lists, THETA, 4)
            distance = 0.5 * np.abs(frequencies(draws[:, kind, slot], centers) - p).sum()
            assert distance < tolerance(p, 8_000), (kind, slot)


@pytest.mark.parametrize("swaps", [False, True])
def test_sparse_lists_of_eight_items(swaps, monkeypatch, request):
    """Places of every item, most of them never listed; with swaps, as of many items."""
    if swaps:
        monkeypatch.setattr("numpyro_rankings.infer.mallows.centers._MOST_STAGEWISE", 4)
        chains_of.cache_clear()
        request.addfinalizer(chains_of.cache_clear)
    lists, theta = [(3, 1), (5,), (3, 6, 0), (1, 3, 5)], (1.1, 0.6, 0.3)
    centers, p = exact_posterior(lists, theta, 8)
    places = np.argsort(centers, axis=1)
    expected = np.array([[p[places[:, i] == k].sum() for k in range(8)] for i in range(8)])
    # enough that the start moves no z by as much as 0.05
    repeats = 3 if swaps else 5
    draws = np.argsort(run_chains(whole_update, lists, theta, 8, repeats), axis=1)
    found = np.array([[(draws[:, i] == k).mean() for k in range(8)] for i in range(8)])
    z = (found - expected) / np.sqrt(expected * (1 - expected) / CHAINS)
    assert np.abs(z).max() < 5.5  # 64 quantities: below 1e-5
    # and pairs: is i before k
    before = (places[:, :, None] < places[:, None, :]).transpose(1, 2, 0) @ p
    seen = (draws[:, :, None] < draws[:, None, :]).mean(0)
    z = (seen - before) / np.sqrt(np.maximum(before * (1 - before), 1e-9) / CHAINS)
    assert np.abs(z[~np.eye(8, dtype=bool)]).max() < 5.5


def test_weights_equal_expansion():
    rng = np.random.default_rng(0)
    lists = [rng.permutation(6)[: rng.integers(1, 5)] for _ in range(5)]
    counts = np.array([7, 1, 40, 3, 11])
    table = table_of(lists, 4, counts, 6)
    expanded = table_of(
        [x for x, k in zip(lists, counts, strict=True) for _ in range(k)], 4, num_items=6
    )
    labels = rng.integers(0, 3, counts.sum()).astype(np.int32)
    slots, theta = 4, rng.gamma(1.0, size=(4, 4)).astype(np.float32)
    centers = np.array([rng.permutation(6) for _ in range(slots)], np.int32)
    sizes = np.bincount(labels, minlength=slots).astype(np.int32)

    @jax.jit
    def sums(data, labels, theta, centers, sizes):
        rows = rows_of_clusters(data, labels, slots)
        return rows.rows, (
            stage_counts(rows, data, slots),
            code_sums(rows, data, inverse_ordering(centers)),
            *pair_costs(rows, data, theta, sizes, 6),
        )

    short, of_counts = sums(table, labels, theta, centers, sizes)
    long, of_copies = sums(expanded, labels, theta, centers, sizes)
    assert len(short) < len(long)
    for a, b in zip(of_counts, of_copies, strict=True):
        np.testing.assert_array_equal(a, b)


def test_pair_costs_of_a_large_cluster_are_exact():
    """10^5 rankings: cost differences of centers as integers, and against float64."""
    rng = np.random.default_rng(1)
    n, stages, num_rows = 9, 6, 200
    lists = [rng.permutation(n)[: rng.integers(2, stages + 1)] for _ in range(num_rows)]
    counts = rng.multinomial(100_000, np.ones(num_rows) / num_rows)
    data = table_of(lists, stages, counts, n)
    theta = np.array([[1.7, 0.9, 0.31, 0.02, 1e-4, 2.3]], np.float32)
    centers = np.array([rng.permutation(n) for _ in range(12)], np.int32)

    @jax.jit
    def compiled(data, theta, centers):
        rows = rows_of_clusters(data, jnp.zeros(counts.sum(), jnp.int32), 1)
        costs = pair_costs(rows, data, theta, jnp.array([counts.sum()]), n)
        each = jax.vmap(lambda center: code_sums(rows, data, inverse_ordering(center)))
        old, new = centers[:-1, None], centers[1:, None]
        change = jax.vmap(_cost_difference, in_axes=(0, 0, None))(old, new, costs)
        return costs, each(centers[:, None])[:, 0], change[:, 0]

    costs, code_sums_found, change = compiled(data, theta, centers)
    unit = float(costs.unit[0])
    multiples = np.rint(np.asarray(costs.concentration[0], float) / unit).astype(np.int64)
    np.testing.assert_allclose(multiples * unit, theta[0], atol=unit)
    pairs = np.asarray(costs.listed[0], np.int64)[:, None] - np.asarray(costs.beaten[0], np.int64)
    assert pairs.min() >= 0
    found, sums = [], []
    for center in centers:
        place = np.argsort(center)
        found.append(pairs[place[None, :] < place[:, None]].sum())
        by_hand = np.zeros(stages, np.int64)
        for ranking, count in zip(lists, counts, strict=True):
            codes = codes_of(list(ranking), tuple(center))
            by_hand[: len(codes)] += count * np.array(codes)
        sums.append(by_hand)
    sums = np.array(sums)
    np.testing.assert_array_equal(code_sums_found, sums)
    np.testing.assert_array_equal(found, sums @ multiples)
    # θ̃ is θ to within half a unit, which the last Metropolis-Hastings step makes up for
    gap = np.array(found) * unit - sums @ theta[0].astype(float)
    assert np.all(np.abs(gap) <= 0.5001 * unit * sums.sum(1))
    # the float32 differences that the stagewise draw is judged by
    np.testing.assert_allclose(np.asarray(change, float), np.diff(found), rtol=1e-4, atol=100.0)


def test_a_large_cluster_finds_its_center():
    """Costs of 10^5 in their differences overflow nothing: the mode is found and kept."""
    rng = np.random.default_rng(2)
    n = 7
    truth = rng.permutation(n)
    lists = [tuple(truth)] + [tuple(rng.permutation(n)) for _ in range(20)]
    lists = [x[: n - 1] for x in lists]
    counts = np.array([60_000] + 20 * [2_000])
    data = table_of(lists, n - 1, counts, n)
    theta = np.full((1, n - 1), 0.8, np.float32)

    @jax.jit
    @jax.vmap
    def chain(key):
        occupancy = occupancy_of(data, jnp.zeros(counts.sum(), jnp.int32), 1)

        def step(now, key):
            now, _ = update_centers(key, now, theta, occupancy, data, 14)
            return now, now.center[0]

        start = random.permutation(key, n)[None].astype(jnp.int32)
        sums = code_sums(occupancy.membership, data, inverse_ordering(start))
        return jax.lax.scan(step, CenterSums(start, sums), random.split(key, 20))[1]

    draws = np.asarray(chain(random.split(random.key(3), 16)))
    np.testing.assert_array_equal(draws[:, 10:], np.tile(truth, (16, 10, 1)))


def test_shuffle_leaves_listed_places_alone_and_is_uniform():
    center = np.array([[4, 0, 3, 1, 2], [0, 1, 2, 3, 4], [2, 1, 0, 4, 3]], np.int32)
    present = np.array([[1, 0, 0, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], bool)
    keys = random.split(random.key(4), CHAINS)
    shuffle = jax.jit(jax.vmap(shuffle_unlisted, (0, None, None)))
    draws = np.asarray(shuffle(keys, center, present))
    places, before = np.argsort(draws, axis=2), np.argsort(np.asarray(center), axis=1)
    for slot in range(3):
        kept = np.asarray(present[slot])
        expected = np.tile(before[slot][kept], (CHAINS, 1))
        np.testing.assert_array_equal(places[:, slot][:, kept], expected)
    # 6 orders of the three free items of slot 0, all 120 orders of slot 2
    for slot, size in ((0, 6), (2, 120)):
        _, seen = np.unique(draws[:, slot], axis=0, return_counts=True)
        assert len(seen) == size
        chi2 = ((seen - CHAINS / size) ** 2 / (CHAINS / size)).sum()
        assert abs(chi2 - (size - 1)) < 6 * math.sqrt(2 * (size - 1)) + 12


def test_an_empty_cluster_costs_nothing():
    """With no member every pair cost is 0, and a move of the center is uniform."""
    data = table_of([(0, 1)], 2)
    rows = Membership(np.array([0]), np.array([0]), np.array([1], np.int32))
    theta, sizes = np.array([THETA, THETA], np.float32), np.array([1, 0], np.int32)
    costs = jax.jit(pair_costs, static_argnums=4)(rows, data, theta, sizes, 4)
    assert not np.any(costs.listed[1]) and not np.any(costs.beaten[1])
    assert not np.any(costs.present[1])
    assert np.all(np.isfinite(costs.unit)) and np.all(costs.unit > 0)
