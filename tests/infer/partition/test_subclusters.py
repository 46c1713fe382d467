"""SubclusterGibbs: each of its two moves by itself, and their pieces."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from helpers.enumeration import partitions
from helpers.exact_partitions import log_marginals, log_restaurant
from helpers.partition_kernels import (
    ATOM,
    CENTER,
    COUNTS,
    GAUSS,
    LINE,
    PLANE,
    TEXT,
    WEIGHTS,
    WISHART,
)
from jax import random
from numpyro.infer import MCMC, NUTS, Gibbs

import numpyro_rankings.distributions as rd
from numpyro_rankings.components import Family, GaussianMean
from numpyro_rankings.components.points import as_points
from numpyro_rankings.infer import CollapsedGibbs, Cycle, SubclusterGibbs
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.partition import subclusters
from numpyro_rankings.infer.partition.base import Given

ALPHA = 1.3


def label_move(key, labels, given):
    return subclusters.update_labels_by_slices(key, labels, given)


def pair_move(key, labels, given, num_scans=2):
    return subclusters.split_or_merge_clusters(key, labels, given, num_scans)


def free_move(key, labels, given):
    return subclusters.split_or_merge_without_labels(key, labels, given)


def largest_gap(move, family, data, slots=8, number=2000):
    """Largest |z| of p(z') - Σ p(z) P(z, z'): each partition is moved so many times."""
    table = [labels for labels in partitions(5) if max(labels) < slots]
    scores, logs = log_marginals(family, data), []
    for labels in table:
        blocks = [tuple(np.flatnonzero(np.equal(labels, c))) for c in range(max(labels) + 1)]
        log_prior = log_restaurant([len(b) for b in blocks], ALPHA, 0.0)
        logs.append(log_prior + sum(scores[b] for b in blocks))
    probs = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    given = Given(as_points(family, data), PartitionPrior(jnp.array(ALPHA)), family, slots)
    keys = random.split(random.key(0), (len(table), number))

    @jax.jit
    def moved(labels, keys):
        one = jax.vmap(lambda labels, key: move(key, labels, given).labels, (None, 0))
        return jax.vmap(one)(labels, keys)

    ends = moved(jnp.array(table, jnp.int32), keys)
    powers = 5 ** np.arange(5)
    index = {code: i for i, code in enumerate(np.array(table) @ powers)}
    steps = np.zeros((len(table), len(table)))
    for i, row in enumerate(np.asarray(ends, int) @ powers):
        for code, count in zip(*np.unique(row, return_counts=True), strict=True):
            steps[i, index[code]] = count / number
    assert (steps > 0).sum() > 2 * len(table)
    error = np.sqrt(probs**2 @ (steps * (1 - steps)) / number)
    return np.max(np.abs(probs @ steps - probs) / np.maximum(error, 1e-3 / number))


MOVES = {
    "labels": (label_move, GAUSS, LINE, 8),
    "labels-full": (label_move, TEXT, COUNTS, 3),
    "pairs": (pair_move, GAUSS, LINE, 8),
    "pairs-plane": (partial(pair_move, num_scans=0), WISHART, PLANE, 8),
    "pairs-full": (pair_move, TEXT, COUNTS, 3),
    "free": (free_move, GAUSS, LINE, 8),
    "free-plane": (free_move, WISHART, PLANE, 8),
    "free-full": (free_move, TEXT, COUNTS, 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MOVES)
def test_each_move_keeps_the_posterior(name):
    """Of at most 52 partitions: P(any |z| > 5.5) is about 2e-6."""
    assert largest_gap(*MOVES[name]) < 5.5


@pytest.mark.slow
def test_learning_from_a_sample(monkeypatch):
    """What is learned from random points first is as exact."""
    monkeypatch.setattr(subclusters, "_LEARNERS", 2)
    assert largest_gap(*MOVES["pairs"]) < 5.5


@pytest.mark.slow
def test_points_cut_at_random(monkeypatch):
    monkeypatch.setattr(type(GAUSS), "project", Family.project)
    assert largest_gap(*MOVES["pairs"]) < 5.5


@pytest.mark.slow
def test_wide_parameters(monkeypatch):
    monkeypatch.setattr(subclusters, "_NARROW", 0)
    assert largest_gap(*MOVES["pairs-plane"]) < 5.5


def no_sizes(monkeypatch):
    """The prior of the sizes left out of the ratio."""
    monkeypatch.setattr(subclusters, "log_beta", lambda a, b: jnp.zeros(jnp.shape(a)))


def no_deal(monkeypatch):
    """The probability of the deal left out of the ratio."""
    sums = subclusters.sum_by_label_in_blocks

    def zeros(values, labels, number):
        found = sums(values, labels, number)
        return jnp.zeros_like(found) if values.ndim == 2 else found

    monkeypatch.setattr(subclusters, "sum_by_label_in_blocks", zeros)


def no_rate(monkeypatch):
    """The rate of the empty places left out of the ratio."""
    pair = subclusters.pair_clusters
    monkeypatch.setattr(subclusters, "pair_clusters", lambda k, used, rate: pair(k, used, 3 * rate))


def no_parameters(monkeypatch):
    """What the few points say of the parameters left out of the ratio of the free move."""
    sums = subclusters.sum_by_label_in_blocks

    def half(values, labels, number):
        return sums(values, labels, number) * jnp.array([1.0, 0.0])

    monkeypatch.setattr(subclusters, "sum_by_label_in_blocks", half)


def other_prior(monkeypatch):
    """Slices of another α."""
    draw = subclusters.draw_slices
    monkeypatch.setattr(subclusters, "draw_slices", lambda k, n, z, alpha: draw(k, n, z, 2 * alpha))


def no_slices(monkeypatch):
    """The same slice for all points, whatever the shares of their clusters."""
    draw = subclusters.draw_slices

    def open_all(*args):
        log_shares, log_slices, too_few = draw(*args)
        return log_shares, jnp.full_like(log_slices, -3.0), too_few

    monkeypatch.setattr(subclusters, "draw_slices", open_all)


FAULTS = [
    (no_sizes, "pairs"),
    (no_deal, "pairs"),
    (no_rate, "pairs"),
    (no_rate, "free"),
    (no_parameters, "free"),
    (other_prior, "labels"),
    (no_slices, "labels"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "move"), FAULTS)
def test_faults_are_found(fault, move, monkeypatch):
    fault(monkeypatch)
    assert largest_gap(*MOVES[move]) > 8.0


# -- pieces ----------------------------------------------------------------------------------------


def pair_by_hand(rng, number, rate):
    """Clusters and empty places in random order, two by two: how often a cluster is split, …"""
    places = rng.permutation([*range(number), *[-1] * rng.poisson(rate)])
    splits, merges = set(), set()
    for first, second in zip(places[::2], places[1::2], strict=False):
        if first >= 0 and second >= 0:
            merges.add((int(first), int(second)))
        elif first >= 0 or second >= 0:
            splits.add(int(max(first, second)))
    return splits, merges


@pytest.mark.parametrize("rate", [0.3, 2.5])
def test_pairs(rate):
    """How many are split and merged at once, as if the places were laid out one by one."""
    number, draws = 3, 20_000
    occupied = jnp.array([True, False, True, True, False])
    slots = np.flatnonzero(occupied)
    keys = random.split(random.key(0), draws)
    pairs = jax.jit(jax.vmap(subclusters.pair_clusters, (0, None, None)))(keys, occupied, rate)
    pair, is_second, order, splits, merges = map(np.asarray, pairs)
    assert not splits[:, [1, 4]].any() and not merges[:, [1, 4]].any()
    assert np.all(np.sort(order) == np.arange(5))
    assert np.all(pair[:, [1, 4]] == 5) and not np.any(splits & merges)
    found, expected = np.zeros((4, 2)), np.zeros((4, 2))
    leads = np.zeros((3, 3))
    for row in range(draws):
        found[splits[row].sum(), merges[row].sum()] += 1
        for first in np.flatnonzero(merges[row]):
            second = np.flatnonzero((pair[row] == first) & is_second[row])
            assert len(second) == 1 and pair[row, first] == first
            leads[np.searchsorted(slots, first), np.searchsorted(slots, second[0])] += 1
        for one in np.flatnonzero(splits[row]):
            assert np.flatnonzero(pair[row] == one).tolist() == [one]
    rng = np.random.default_rng(0)
    for _ in range(draws):
        split, merged = pair_by_hand(rng, number, rate)
        expected[len(split), len(merged)] += 1
    error = np.sqrt(found + expected + 1.0)
    assert np.max(np.abs(found - expected) / error) < 5.0
    # all ordered pairs of clusters alike
    total = leads.sum()
    off = leads[~np.eye(3, dtype=bool)]
    assert np.max(np.abs(off - total / 6)) < 5 * np.sqrt(total * 5 / 36)


def test_moves_that_fit_into_the_slots():
    """In closed form as one after the other."""
    rng, slots = np.random.default_rng(1), 6
    fit = jax.jit(subclusters._fit_into_slots)
    for _ in range(200):
        number = int(rng.integers(1, slots + 1))
        order = rng.permutation(slots)
        kind = rng.integers(3, size=slots)
        wanted = rng.random(slots) < 0.7
        pairs = subclusters._Pairs(
            jnp.zeros(slots, int), jnp.zeros(slots, bool), order, kind == 1, kind == 2
        )
        made, overflow = fit(wanted, number, pairs)
        now, expected, refused = number, np.zeros(slots, bool), False
        for one in order:
            if wanted[one] and kind[one] == 1 and now == slots:
                refused = True
            elif wanted[one] and kind[one] > 0:
                expected[one] = True
                now += 1 if kind[one] == 1 else -1
        np.testing.assert_array_equal(made, expected)
        assert bool(overflow) == refused


def test_labels_by_reservoir():
    log_weights = jnp.log(jnp.array([0.2, 0.0, 0.5, 0.3]))
    draw = jax.jit(
        lambda key: subclusters._draw_labels(
            key, jnp.zeros(50_000, jnp.int32), 4, lambda k: jnp.full(50_000, log_weights[k])
        )
    )
    counts = np.bincount(np.asarray(draw(random.key(0))), minlength=4)
    expected = 50_000 * np.array([0.2, 0.0, 0.5, 0.3])
    assert counts[1] == 0
    assert np.all(np.abs(counts - expected) <= 5 * np.sqrt(expected))


def test_families_that_do_not_draw():
    for family in (ATOM, CENTER, WEIGHTS):
        with pytest.raises(ValueError, match=f"which {type(family).__name__} does not"):
            SubclusterGibbs(family)
    with pytest.raises(ValueError, match="num_scans must be"):
        SubclusterGibbs(GAUSS, num_scans=-1)
    with pytest.raises(ValueError, match="init is one of"):
        SubclusterGibbs(GAUSS, init="best")


def block_model(data, discount=0.0):
    alpha = numpyro.sample("mass", numpyro.distributions.Gamma(3.0, 2.0))
    prior = rd.ChineseRestaurantProcess(alpha, len(data), discount, max_clusters=6)
    labels = numpyro.sample("z", prior)
    clusters = GAUSS.of_clusters(GAUSS.statistics(data), labels, 6)
    numpyro.factor("likelihood", GAUSS.log_marginal(clusters).sum())


def start_of(kernel, key):
    return kernel.init(key, 0, None, (LINE,), {})


def test_discount_of_a_model_is_refused():
    model = partial(block_model, discount=0.2)
    settings = {"max_clusters": 6, "model": model, "sites": {"assignments": "z"}}
    one = SubclusterGibbs(GAUSS, **settings)
    for kernel in (one, Cycle([CollapsedGibbs(GAUSS, **settings), one])):
        whole = Gibbs([(kernel, ["z"]), (NUTS(model), None)])
        with pytest.raises(ValueError, match="must have no discount"):
            # a trace: the model is refused for what it is
            jax.eval_shape(partial(start_of, whole), random.key(0))


@pytest.mark.slow
def test_block_of_gibbs():
    settings = {"max_clusters": 6, "model": block_model, "sites": {"assignments": "z"}}
    kernel = Gibbs([(SubclusterGibbs(GAUSS, **settings), ["z"]), (NUTS(block_model), None)])
    mcmc = MCMC(kernel, num_warmup=10, num_samples=50, progress_bar=False)
    mcmc.run(random.key(0), LINE)
    assert np.asarray(mcmc.get_samples()["z"]).max() > 0


@pytest.mark.slow
def test_many_points():
    """20,000 points of five groups, from a sample and from one cluster: all are found."""
    rng = np.random.default_rng(2)
    truth = rng.integers(5, size=20_000)
    means = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [-6.0, 1.0], [1.0, -6.0]])
    data = (means[truth] + rng.normal(size=(20_000, 2))).astype(np.float32)
    for init in ("sample", "one"):
        kernel = SubclusterGibbs(GaussianMean(5.0, 1.0), max_clusters=32, init=init)
        mcmc = MCMC(kernel, num_warmup=40, num_samples=20, progress_bar=False)
        mcmc.run(random.key(0), data)
        labels = np.asarray(mcmc.get_samples()["assignments"], int)
        sizes = np.stack([np.bincount(row, minlength=32) for row in labels])
        assert np.all((sizes > 1000).sum(1) == 5)
        assert np.mean(sizes.max(1)) < 5000
