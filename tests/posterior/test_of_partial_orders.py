"""What is said of draws when judges tie items, compare pairs, or were offered some of the items."""

import itertools
import re
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from helpers.fabricated import fabricated_mcmc

from numpyro_rankings import (
    Comparisons,
    Draws,
    Games,
    PartialOrders,
    Rankings,
    cluster_profiles,
    compare,
    find_blocs,
    group_path,
    log_predictive_density,
    posterior_predictive_checks,
    to_inference_data,
)
from numpyro_rankings.cli.tables import rows_in_words
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.families import ITEM_POOL, MALLOWS, PLACKETT_LUCE
from numpyro_rankings.infer import SliceGibbs, TemperedMixture
from numpyro_rankings.ops.orderings import level_items
from numpyro_rankings.posterior import bloc_orders, predictive_checks
from numpyro_rankings.posterior.bloc_search import BlocComponents, BlocSearch
from numpyro_rankings.posterior.blocs import search_work
from numpyro_rankings.posterior.likelihood import pointwise_log_likelihood
from numpyro_rankings.rankings.counts import sets_apart, ties_in_words
from numpyro_rankings.report import comparison
from numpyro_rankings.report.comparison import Comparison, comparable_models, default_models

KEY = jax.random.key(0)
N, SLOTS, DRAWN = 4, 3, 5
ITEMS = list("abcd")
PERMUTATIONS = np.array(list(itertools.permutations(range(N))), np.int32)
COUNTS = [2, 1, 3, 1, 1, 2]
BUCKETS = [[0, [1, 2]], [[0, 3], [1, 2]], [[0, 1, 2, 3]], [3], [[1, 2], 0], [2, 1, [0, 3]]]
PAIRS = pd.DataFrame(
    {
        "judge": ["u", "u", "v", "w", "w"],
        "winner": ["a", "c", "d", "b", "a"],
        "loser": ["b", "d", "b", "c", "c"],
    }
)
OFFERED = [[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]]
ORDERS = {
    "ties": PartialOrders.from_buckets(BUCKETS, items=ITEMS, counts=COUNTS),
    "some offered": PartialOrders.from_buckets(
        BUCKETS, items=ITEMS, counts=COUNTS, choice_sets=np.array(OFFERED, bool)
    ),
    "pairs": PartialOrders.from_pairs(PAIRS, judge="judge", items=ITEMS),
}
STRICT = Rankings.from_orderings(
    [[0, 1, 2, 3], [3, 2], [1], [2, 0, 1, 3], [3, 2], [0, 2]],
    items=ITEMS,
    counts=[3, 2, 1, 2, 1, 1],
)


def drawn(family, orders, seed=0):
    """Draws with random parameters and labels."""
    rng, size = np.random.default_rng(seed), orders.num_rankings
    labels = rng.integers(0, SLOTS - 1, (DRAWN, size))
    samples = {
        "assignments": labels,
        "cluster_sizes": np.stack([np.bincount(x, minlength=SLOTS) for x in labels]),
        "alpha": rng.gamma(2.0, 1.0, DRAWN).astype(np.float32),
        "log_joint": rng.normal(size=DRAWN).astype(np.float32),
    }
    if family is MALLOWS:
        centers = [[rng.permutation(N) for _ in range(SLOTS)] for _ in range(DRAWN)]
        samples["center"] = np.array(centers, np.int32)
        theta = rng.gamma(2.0, 0.5, (DRAWN, SLOTS, N - 1))
        samples["concentration"] = theta.astype(np.float32)
    else:
        samples["weights"] = rng.dirichlet(np.ones(N), (DRAWN, SLOTS)).astype(np.float32)
    return {name: x[None] for name, x in samples.items()}


def agreeing(orders):
    """Which of all orderings of the items agree with each row, (rows, orderings), by a look."""
    found = np.zeros((orders.num_rows, len(PERMUTATIONS)), bool)
    places = np.argsort(PERMUTATIONS, axis=1)
    rest = np.asarray(orders.rest())
    for row in range(orders.num_rows):
        listed = [int(k) for k in orders.listed[row] if k >= 0]
        pairs = [(a, b) for a in listed for b in np.flatnonzero(rest[row])]
        for one, two in np.argwhere(np.asarray(orders.above[row])):
            pairs.append((listed[one], listed[two]))
        found[row] = [all(place[a] < place[b] for a, b in pairs) for place in places]
    return found


def probabilities(family, samples, orders):
    """Of each row in each cluster, (draws, C, rows), by enumeration."""
    parameters = {name: jnp.asarray(samples[name][0]) for name in family.parameters}
    of_all = jax.jit(jax.vmap(lambda draw: family.log_rows(draw, PERMUTATIONS, None)))(parameters)
    return np.exp(np.asarray(of_all, float)) @ agreeing(orders).T


@pytest.mark.parametrize("family", [MALLOWS, PLACKETT_LUCE], ids=lambda x: x.name)
@pytest.mark.parametrize("name", ORDERS)
def test_densities_by_enumeration(family, name):
    """That of new judges, and of the fitted ones given the labels of all others."""
    orders = ORDERS[name]
    samples, rows = drawn(family, orders), np.asarray(orders.row_index)
    p, sizes = probabilities(family, samples, orders), samples["cluster_sizes"][0][..., None]
    # the parameters of empty components are integrated out, if they can be
    in_new = agreeing(orders).mean(1) if family.has_marginal else p
    scale = samples["alpha"][0][:, None, None] / SLOTS
    total = sizes.sum(1, keepdims=True) + SLOTS * scale
    expected = ((sizes + scale) / total * np.where(sizes > 0, p, in_new)).sum(1).mean(0)
    number = SLOTS if family is MALLOWS else "auto"
    found = log_predictive_density(samples, orders, number)
    np.testing.assert_allclose(found, np.log(expected), atol=2e-5)

    own = samples["assignments"][0][:, None] == np.arange(SLOTS)[:, None]
    shares, in_new = (sizes - own + scale) / (total - 1), in_new[..., rows]
    p = np.where(sizes > own, p[..., rows], in_new)
    draws = Draws.of(samples, orders, number)
    found = pointwise_log_likelihood(draws)[0]
    np.testing.assert_allclose(found, np.log((shares * p).sum(1)), atol=2e-5)
    some = pointwise_log_likelihood(draws, np.array([0, 2]))[0]
    np.testing.assert_allclose(some, found[:, [0, 2]], atol=1e-5)


def test_density_in_a_new_cluster():
    """Centers are uniform, so that an order has the share of all orderings that agree."""
    orders = ORDERS["ties"]
    samples = drawn(MALLOWS, orders)
    p, sizes = probabilities(MALLOWS, samples, orders), samples["cluster_sizes"][0]
    p[:, -1] = agreeing(orders).mean(1)  # the last slot is empty
    weights = np.where(np.arange(SLOTS) < SLOTS - 1, sizes, samples["alpha"][0][:, None])
    expected = (weights[..., None] * p).sum(1) / weights.sum(1, keepdims=True)
    found = log_predictive_density(samples, orders, None)
    np.testing.assert_allclose(found, np.log(expected.mean(0)), atol=2e-5)


def test_density_with_a_pool_of_items():
    """The items that nobody listed are below all others."""
    orders = PartialOrders.from_buckets([[0, [1, 2]], [[1, 2]], [2]], items=ITEMS[:3])
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(4), (1, DRAWN)).astype(np.float32)
    samples = {"weights": weights[..., :3], "unseen_weight": weights[..., 3]}
    samples |= {"alpha": np.ones((1, DRAWN)), "log_joint": np.zeros((1, DRAWN))}
    lists = np.array([[0, 1, 2], [0, 2, 1], [1, 2, -1], [2, 1, -1], [2, -1, -1]], np.int32)
    draw = {name: jnp.asarray(samples[name][0]) for name in ITEM_POOL.parameters}
    log_p = jax.vmap(lambda draw: ITEM_POOL.log_rows(draw, lists, None)[0])(draw)
    p = np.exp(np.asarray(log_p, float)).mean(0)
    found = log_predictive_density(samples, orders, fitted=orders)
    np.testing.assert_allclose(np.exp(found), [p[0] + p[1], p[2] + p[3], p[4]], rtol=1e-5)
    new = PartialOrders.from_buckets([["x", ["a", "b"]]], items=["a", "b", "x"])
    with pytest.raises(ValueError, match="row 1 lists 'x', which no fitted ranking lists"):
        log_predictive_density(samples, new, fitted=orders)


def test_rankings_as_partial_orders_are_rankings():
    """Densities, checks, clusters and blocs are those of the rankings."""
    orders = PartialOrders.from_rankings(STRICT)
    for family, number in ((MALLOWS, SLOTS), (PLACKETT_LUCE, "auto")):
        samples = drawn(family, STRICT)
        both = [partial(log_predictive_density, samples, x, number) for x in (STRICT, orders)]
        np.testing.assert_allclose(*(density() for density in both), atol=1e-5)
        draws = [Draws.of(samples, x, number) for x in (STRICT, orders)]
        np.testing.assert_allclose(*map(pointwise_log_likelihood, draws), atol=1e-5)
        checks = [posterior_predictive_checks(KEY, x, x.said, 5) for x in draws]
        for one, two in zip(*(x[:2] for x in checks), strict=True):
            for x, y in zip(one, two, strict=True):
                np.testing.assert_array_equal(x, y)
        for one, two in zip(*(cluster_profiles(x, x.said) for x in draws), strict=True):
            assert (one.consensus, one.levels, one.level) == (two.consensus, two.levels, two.level)


def test_blocs():
    """Of rankings as partial orders they are the same; with ties they are found again."""
    data = simulate_mallows_mixture(KEY, 200, 5, 5, 3, 1.5)
    samples = {
        "assignments": data.assignments[None],
        "center": data.centers[None],
        "concentration": data.concentrations[None, :, :4],
        "cluster_sizes": np.bincount(data.assignments)[None],
    }
    strict = data.rankings
    orders = PartialOrders.from_rankings(strict)
    one, two = (find_blocs(samples, x, 3) for x in (strict, orders))
    np.testing.assert_allclose(one.kept, two.kept, rtol=1e-6)
    np.testing.assert_allclose(one.membership, two.membership, atol=1e-6)
    assert [x.levels for x in one.blocs] == [x.levels for x in two.blocs]
    assert search_work(samples, orders) == search_work(samples, strict.unique())

    ranks = np.asarray(strict.to_ranks())
    tied = PartialOrders.from_ranks(np.where(ranks > 3, 4, np.maximum(ranks, 2)), ties="any")
    three = find_blocs(samples, tied, 3)
    assert (three.labels == one.labels).mean() > 0.9
    assert {x.consensus[-1] for x in three.blocs} <= set(strict.items)


@pytest.mark.parametrize("family", [MALLOWS, PLACKETT_LUCE], ids=lambda x: x.name)
@pytest.mark.parametrize("name", ["ties", "some offered", "pairs"])
def test_search_for_blocs_sums_over_orderings(family, name):
    """The log probabilities are exact, and rounds of EM never decrease the objective."""
    orders = family.prepared(ORDERS[name])
    samples, search = drawn(family, orders), BlocSearch(orders, family)
    sites = {name: samples[name][0, 0] for name in family.parameters}
    components = BlocComponents(np.zeros(SLOTS), search.model.parameters_of(sites))
    expected = probabilities(family, samples, ORDERS[name])[0].T
    np.testing.assert_allclose(np.exp(search.log_table(components)), expected, rtol=1e-4)
    some = search.candidates([components])
    np.testing.assert_allclose(some.log_rows.sum(), np.log(expected).sum(), rtol=1e-4)

    start = BlocComponents(np.log(np.full(SLOTS, 1 / SLOTS)), components.parameters)
    trace = list(itertools.islice(search.rounds(start), 15))[-1].trace
    assert (np.diff(trace) > -1e-6).all() and trace[-1] > trace[0] + 0.1


def test_blocs_with_too_many_orderings(monkeypatch):
    orders = PartialOrders.from_buckets([[[0, 1, 2], 3]] * 10, N)
    samples = {name: np.asarray(x) for name, x in fabricated_mcmc(orders)._states["z"].items()}
    monkeypatch.setattr(bloc_orders, "MOST_ORDERINGS", 5)
    with pytest.raises(bloc_orders.NoBlocsError, match="more than 5 orderings agree"):
        find_blocs(samples, orders)
    monkeypatch.undo()
    with pytest.raises(bloc_orders.NoBlocsError, match="nobody says an order"):
        BlocSearch(PartialOrders.from_buckets([[[0, 1, 2, 3]]] * 10, N), MALLOWS)


CERTAIN = {  # all judges rank a > b > c > d
    "assignments": np.zeros((4, 50), int),
    "center": np.tile(np.arange(N), (4, 1, 1)),
    "concentration": np.full((4, 1, N - 1), 30.0, np.float32),
    "cluster_sizes": np.full((4, 1), 50),
}


@pytest.mark.parametrize("kind", ["ties", "pairs", "offered"])
def test_replications_tie_as_the_judges_do(kind):
    above = np.zeros((N, N))
    first = np.zeros(N)
    if kind == "ties":  # d and c, then b, then a: the first two of a replication are tied
        orders = PartialOrders.from_buckets([[[2, 3], 1]], N, counts=[50])
        above[[0, 0, 1, 1, 2], [2, 3, 2, 3, 3]] = 1
    elif kind == "pairs":  # the pairs stay, and their order is that of the replication
        table = pd.DataFrame({"judge": "x", "winner": [3, 1], "loser": [0, 2]})
        orders = PartialOrders.from_pairs(table, "judge", items=range(N), count=None)
        orders = orders._take(np.array([0]), np.array([50]))
        above[[0, 1], [3, 2]] = 1
    else:  # the best of those offered is the first, and the others are tied
        sets = np.array([[0, 1, 1, 1]], bool)
        orders = PartialOrders.from_buckets([[3, [1, 2]]], N, counts=[50], choice_sets=sets)
        above[1, 2:] = first[1] = 1
    checks = posterior_predictive_checks(KEY, Draws.of(CERTAIN, orders, 1), orders, 4)
    np.testing.assert_array_equal(checks.top.mean, first)
    expected = np.where((above + above.T) > 0, above, np.nan)
    seen = checks.pairs.observed
    np.testing.assert_array_equal(checks.pairs.mean, np.where(np.isnan(seen), np.nan, expected))
    said = np.asarray(orders.of_all_items().above[0])
    places = np.argsort(np.asarray(orders.of_all_items().listed[0]))
    said = said[np.ix_(places, places)]
    np.testing.assert_array_equal(seen, np.where(said | said.T, said, np.nan))


@pytest.mark.parametrize("family", [MALLOWS, PLACKETT_LUCE])
def test_each_pair_is_ordered_in_each_replication(family):
    """Judges who compared few of many items compare the same pairs, wherever the items stand."""
    rng, orders, n = np.random.default_rng(0), pairs_of_many(8), 8
    samples = {"assignments": np.zeros((1, 6, 2), int), "cluster_sizes": np.full((1, 6, 1), 2)}
    if family is MALLOWS:
        samples["center"] = np.array([rng.permutation(n) for _ in range(6)])[None, :, None]
        samples["concentration"] = np.full((1, 6, 1, n - 1), 0.3, np.float32)
    else:
        samples["weights"] = rng.dirichlet(np.ones(n), (1, 6, 1)).astype(np.float32)
    said = Draws.of(samples, orders).said
    draws = {name: jnp.asarray(x[0]) for name, x in samples.items() if name != "cluster_sizes"}
    draws["key"] = jax.random.split(KEY, 6)
    form = predictive_checks._OfOrders.of(said)
    _, wins = predictive_checks._replicate(draws, form, said.row_index, family, 2)
    _, seen = form.tally(said.table, jnp.arange(2), said.counts)
    np.testing.assert_array_equal(wins + wins.swapaxes(1, 2), [seen + seen.T] * 6)
    assert seen.sum() == 6


def test_draws_know_whether_they_are_of_partial_orders():
    orders = ORDERS["ties"]
    strict = orders.with_orderings(orders.listed)
    mcmc = fabricated_mcmc(orders)
    data = to_inference_data(mcmc, orders, log_likelihood=False)
    for source, given, was in ((mcmc, strict, "partial orders"), (data, strict, "partial orders")):
        with pytest.raises(ValueError, match=f"the run was of {was}, and these are rankings"):
            cluster_profiles(source, given)
    assert Draws.of(data, orders).orders is orders
    with pytest.raises(ValueError, match="the run was of rankings, and these are partial orders"):
        cluster_profiles(fabricated_mcmc(strict), orders)


def test_models_that_are_not_compared():
    wide = PartialOrders.from_buckets([[list(range(17)), 17]], 18, counts=[4])
    with pytest.raises(ValueError, match=r"Mallows \(1 group\) cannot be compared: row 1: .* 17;"):
        compare(wide, [SliceGibbs(num_components=1)])
    with pytest.raises(ValueError, match=r"Mallows \(2 groups\) cannot be compared: Tempered"):
        compare(ORDERS["ties"], [TemperedMixture("mallows", 2)])


OTHER_DATA = {
    "PartialOrders": ORDERS["pairs"],
    "Comparisons": Comparisons.from_pairs(PAIRS, "judge"),
    "Games": Games.from_pairs(PAIRS),
}
WORKS = {
    "PartialOrders": "SliceGibbs, BetaGibbs and the Gibbs samplers of Plackett–Luce models without",
    "Comparisons": "SliceGibbs, BetaGibbs and PlackettLuceGibbs without model= take them",
    "Games": "bradley_terry_map and models.bradley_terry take them; PartialOrders.from_pairs reads",
}


@pytest.mark.parametrize("kind", OTHER_DATA)
def test_refusals_of_tempered_chains_name_what_works(kind):
    data, kernel = OTHER_DATA[kind], TemperedMixture("mallows", 2)
    for refused in (
        lambda: kernel.init(KEY, 0, None, (data,), {}),
        lambda: compare(data, [kernel]),
    ):
        with pytest.raises((TypeError, ValueError), match=WORKS[kind]):
            refused()
    works = WORKS[kind] if kind == "Games" else "compare takes them, and says which number of"
    with pytest.raises(TypeError, match=works):
        group_path(data)


def pairs_of_many(num_items=20):
    """Two judges, of whom each compares three of many items."""
    table = pd.DataFrame({"j": list("uuvv"), "winner": [0, 1, 2, 3], "loser": [1, 4, 3, 5]})
    return PartialOrders.from_pairs(table, "j", items=range(num_items))


def test_models_whose_sums_are_too_large_are_left_out(monkeypatch):
    """Mallows models place all items, Plackett–Luce models those that a judge compared."""
    wide = pairs_of_many()
    kept, left_out = comparable_models(default_models(wide), wide)
    assert list(kept) == ["Plackett–Luce (1 group)"] + [
        f"Plackett–Luce ({k} groups)" for k in (2, 3, 4)
    ]
    limit = "sums over the orders of at most 16 items that are tied or not compared, and there are"
    said = f"Mallows models are left out: the density of a judge {limit} 20 in row 1"
    assert left_out == [said]
    assert comparable_models(default_models(STRICT), STRICT)[1] == []
    # what is compared by default says so at its end
    sweeps = {"until": lambda **_: True, "extend": lambda _: None}
    run = SimpleNamespace(num_draws=9, first_draw=0, **sweeps)
    monkeypatch.setattr(comparison, "_begin", lambda *_: run)
    fit = comparison._Fit(None, np.zeros(wide.num_rankings), *[0.0] * 9)
    monkeypatch.setattr(comparison, "_fit", lambda *_: fit)
    found = Comparison(None, {}, {}, {}, "", "One predicts best.")
    monkeypatch.setattr(comparison, "_compare_fits", lambda *_: found)
    in_words = compare(wide).in_words
    assert in_words.startswith(f"One predicts best. {said}.")


def test_models_whose_sums_take_too_long_are_left_out():
    rows = [[list(range(16)), 16], [[*range(15), 16], 15]]
    tied = PartialOrders.from_buckets(rows, 17, counts=[50, 20])
    models = default_models(tied)
    kept, left_out = comparable_models(models, tied, minutes=0.01)
    assert "Mallows (1 group)" in kept and "Mallows (4 groups)" not in kept
    minutes = int(re.search(r"minutes=(\d+)", left_out[-1])[1])
    assert comparable_models(models, tied, minutes)[0] == models


def test_what_is_said_of_ties():
    assert ties_in_words(STRICT) == ties_in_words(PartialOrders.from_rankings(STRICT)) == ""
    assert ties_in_words(ORDERS["ties"]) == (
        "9 judges tie items, which counts as no opinion between them"
    )
    assert ties_in_words(ORDERS["pairs"]) == (
        "2 judges tie items or leave pairs open, which counts as no opinion between them"
    )
    assert rows_in_words(ORDERS["ties"])[:4] == ["a > b = c", "a = d > b = c", "a = b = c = d", "d"]
    assert rows_in_words(ORDERS["pairs"])[:2] == ["a > b; c > d", "d > b"]
    assert rows_in_words(STRICT)[1] == "d > c"


def test_sets_that_no_judge_compares():
    pairs = PartialOrders.from_buckets([[0, 1], [2, [3, 4]]], 5, unranked="not-offered")
    assert sets_apart(pairs) == [["item 3", "item 4", "item 5"], ["item 1", "item 2"]]
    assert sets_apart(ORDERS["ties"]) == []


def test_items_that_are_level():
    """Each is before each other item of its set in a quarter to three quarters of the draws."""
    draws = np.array([[0, 1, 2, 3]] * 5 + [[0, 2, 1, 3]] * 4 + [[1, 0, 2, 3]] * 1)
    assert [x.tolist() for x in level_items(draws, np.arange(4))] == [[1, 2]]
    assert level_items(draws[:1], np.arange(4)) == []
    # 0 and 1 are level, and 1 and 2, but 0 is before 2 in nine of ten draws
    chain = np.array([[0, 1, 2, 3]] * 3 + [[1, 0, 2, 3]] * 3 + [[0, 2, 1, 3]] * 3 + [[2, 1, 0, 3]])
    assert [x.tolist() for x in level_items(chain, np.arange(4))] == [[0, 1], [1, 2]]
    turning = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]])  # 0 before 1 before 2 before 0
    assert [x.tolist() for x in level_items(turning, np.arange(3))] == [[0, 1, 2]]
