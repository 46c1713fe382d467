"""Weights and tie strengths of highest likelihood of orders with ties, and published values."""

import itertools
from fractions import Fraction

import jax
import numpy as np
import pandas as pd
import pytest
from helpers.compiled import double_precision
from scipy.optimize import minimize

import numpyro_rankings.distributions as rd
from numpyro_rankings import PartialOrders, RankingsError, plackett_luce_map
from numpyro_rankings.infer import tied_stages
from numpyro_rankings.infer.tied_stages import TiedStages


def choices_of(orders):
    """What was chosen at each stage, from which items, and how often."""
    offered, found = orders.offered(), []
    rows = map(np.asarray, (orders.listed, orders.levels, orders.counts))
    for row, (listed, levels, count) in enumerate(zip(*rows, strict=True)):
        left = set(range(orders.num_items))
        if offered is not None:
            left = set(np.flatnonzero(offered[row]).tolist())
        for level in range(levels.max() + 1):
            chosen = tuple(sorted(listed[levels == level].tolist()))
            found.append((chosen, set(left), int(count)))
            left -= set(chosen)
    return found


def log_likelihood(choices, log_weights, log_ties):
    """The definition, one set at a time; ``log_ties`` are by size."""
    f = {
        items: np.exp(strength + np.mean(log_weights[list(items)]))
        for d, strength in {1: 0.0, **log_ties}.items()
        for items in itertools.combinations(range(len(log_weights)), d)
    }
    total = 0.0
    for chosen, left, count in choices:
        mass = sum(x for items, x in f.items() if left.issuperset(items))
        total += count * np.log(f[chosen] / mass)
    return total


def random_orders(kind, sizes=(1, 1, 2, 3), num_items=5, num_rows=30, seed=0):
    rng = np.random.default_rng(seed)
    offered, rows = np.ones((num_rows, num_items), bool), []
    for row in range(num_rows):
        items = rng.permutation(num_items)
        if kind == "subsets":
            items = items[: rng.integers(2, num_items + 1)]
            offered[row] = np.isin(np.arange(num_items), items)
        buckets = []
        while len(items):
            size = rng.choice([d for d in sizes if d <= len(items)])
            buckets.append(items[:size].tolist())
            items = items[size:]
        rows.append(buckets if kind == "all" else buckets[: rng.integers(1, len(buckets) + 1)])
    counts = rng.integers(1, 4, num_rows)
    sets = offered if kind == "subsets" else None
    return PartialOrders.from_buckets(
        rows, num_items=num_items, counts=counts, choice_sets=sets, unranked="below"
    )


def best_by_bfgs(orders, sizes, times=0.0):
    """Log weights with mean 0, log strengths and the density there; ``times`` is of the prior."""
    n, choices = orders.num_items, choices_of(orders)

    def loss(x):
        prior = times * (x[:n].sum() - n * np.log(np.exp(x[:n]).sum()))
        # the scale, which does not matter, is held
        scale = x[:n].mean() ** 2
        return scale - prior - log_likelihood(choices, x[:n], dict(zip(sizes, x[n:], strict=True)))

    found = minimize(loss, np.zeros(n + len(sizes)), method="BFGS", options={"gtol": 1e-6})
    return found.x[:n] - found.x[:n].mean(), found.x[n:], -found.fun


def centered(weights):
    return np.log(weights) - np.log(weights).mean()


@pytest.mark.parametrize("kind", ["all", "tops", "subsets"])
def test_the_maximum_is_that_of_an_independent_optimiser(kind):
    orders = random_orders(kind)
    fit = plackett_luce_map(orders)
    log_weights, log_ties, best = best_by_bfgs(orders, (2, 3))
    np.testing.assert_allclose(centered(fit.weights), log_weights, atol=1e-4)
    np.testing.assert_allclose(np.log(fit.tie_strengths), log_ties, atol=1e-4)
    assert fit.log_likelihood == pytest.approx(best, abs=1e-7)
    assert fit.weights.sum() == pytest.approx(1.0) and fit.tie_sizes == (2, 3)


def test_information_is_the_curvature_of_the_likelihood():
    """Of ties of four items too, and of the tie strengths."""
    orders = random_orders("subsets", (1, 1, 2, 4), 6)
    fit = plackett_luce_map(orders)
    sizes, n, h = fit.tie_sizes, orders.num_items, 1e-3
    assert sizes == (2, 4) and fit.tie_strengths[1] == 0
    choices = choices_of(orders)
    top = np.append(np.log(fit.weights), np.log(fit.tie_strengths[[0, 2]]))

    def f(x):
        return log_likelihood(choices, x[:n], dict(zip(sizes, x[n:], strict=True)))

    steps = h * np.eye(len(top))
    slopes = [(f(top + e) - f(top - e)) / (2 * h) for e in steps]
    np.testing.assert_allclose(slopes, 0, atol=1e-4)
    expected = [
        [f(top + e + d) - f(top + e - d) - f(top - e + d) + f(top - e - d) for d in steps]
        for e in steps
    ]
    np.testing.assert_allclose(-np.array(expected) / (4 * h * h), fit.information, atol=1e-3)
    np.testing.assert_allclose(fit.information[:, :n].sum(1), 0, atol=1e-9)


def test_a_prior_with_ties():
    orders = random_orders("tops")
    fit = plackett_luce_map(orders, shape=2.5)
    log_weights, log_ties, _ = best_by_bfgs(orders, (2, 3), 1.5)
    np.testing.assert_allclose(centered(fit.weights), log_weights, atol=1e-4)
    np.testing.assert_allclose(np.log(fit.tie_strengths), log_ties, atol=1e-4)
    assert fit.log_likelihood < plackett_luce_map(orders).log_likelihood


def test_the_likelihood_is_that_of_the_distribution():
    orders = random_orders("tops")
    fit = plackett_luce_map(orders)
    levels = np.full((orders.num_rows, orders.num_items + 1), -1)
    np.put_along_axis(levels, np.asarray(orders.listed), np.asarray(orders.levels), axis=1)
    d = rd.PlackettLuceTies(np.log(fit.weights), np.log(fit.tie_strengths))
    total = np.asarray(d.log_prob(levels[:, :-1])) @ np.asarray(orders.counts)
    assert float(total) == pytest.approx(fit.log_likelihood, rel=1e-5)


@pytest.mark.parametrize("kind", ["all", "tops", "subsets"])
def test_orders_without_ties_are_rankings(kind):
    orders = random_orders(kind, (1,))
    fit, same = plackett_luce_map(orders), plackett_luce_map(orders.to_rankings())
    np.testing.assert_array_equal(fit.weights, same.weights)
    np.testing.assert_array_equal(fit.information, same.information)
    assert fit.tie_strengths is None and fit.tie_sizes == ()
    assert list(fit.summary().index) == list(same.summary().index)


# brands i and j, how often i was preferred, j, and neither: Davidson, R. R. (1970), "On extending
# the Bradley-Terry model to accommodate ties in paired comparison experiments", JASA 65, example 2
PUDDING = """
1 2 19 22 16  1 3 16 19 12  2 3 19 19 10  1 4 18 23 13  2 4 23 19  9
3 4 19 20 15  1 5 13 19 18  2 5 16 20 12  3 5 16 15 17  4 5 17 14 16
1 6 18 21 12  2 6 22 20 12  3 6 13 18 10  4 6 14 19 18  5 6 11 21 12
"""


def pudding():
    rows, counts = [], []
    for i, j, *times in np.array(PUDDING.split()).reshape(-1, 5).tolist():
        rows += [[i, j], [j, i], [[i, j]]]
        counts += map(int, times)
    return PartialOrders.from_buckets(
        rows, items=[*"123456"], counts=counts, unranked="not-offered"
    )


def test_pudding_has_the_published_values():
    """As in "Introduction to PlackettLuce", section 2, which stops after 7 iterations."""
    fit = plackett_luce_map(pudding())
    published = [0.1388005, 0.1729985, 0.1617420, 0.1653930, 0.1586805, 0.2023855]
    np.testing.assert_allclose(fit.weights, published, atol=3e-5)
    assert fit.tie_strengths[0] == pytest.approx(0.7468147, abs=5e-5)
    assert -2 * fit.log_likelihood == pytest.approx(1619.4, abs=0.051)
    table = fit.summary(reference="1").loc[[*"123456", "tie2"]]
    estimates = [0.0, 0.2202, 0.1530, 0.1753, 0.1339, 0.3771, -0.2919]
    np.testing.assert_allclose(table["log_weight"], estimates, atol=2e-4)
    errors = [0.0, 0.1872, 0.1935, 0.1882, 0.1927, 0.1924, 0.0825]
    np.testing.assert_allclose(table["standard_error"], errors, atol=1e-4)
    assert table.loc["tie2", "z"] == pytest.approx(-3.539, abs=5e-3)
    assert table.loc["tie2", "p_value"] == pytest.approx(0.000402, abs=1e-5)
    quasi = [0.01766108, 0.01761919, 0.01948091, 0.01769538, 0.01957908, 0.01937796]
    np.testing.assert_allclose(table["quasi_variance"].iloc[:6], quasi, rtol=1e-3)
    assert np.isnan(table.loc["tie2", "quasi_variance"])
    assert table.attrs["quasi_error"] == pytest.approx(0.008, abs=5e-4)
    mean_zero = fit.summary()
    assert mean_zero.index[-1] == "tie2" and mean_zero.index[0] == "6"
    assert mean_zero.loc["6", "standard_error"] == pytest.approx(0.126594, abs=2e-5)
    assert mean_zero.loc["tie2", "standard_error"] == pytest.approx(0.082499, abs=2e-5)


def test_fruits_have_the_published_values():
    """The example of the tests of PlackettLuce 0.4, whose half games are half of each count."""
    rows = [[*"ab"], [*"bca"], [[*"bc"], "a"], [*"abc"], [[*"bc"], "a"], [*"ac"]]
    # each item wins and loses half a game against a further one
    rows += [[x, "g"] for x in "abc"] + [["g", x] for x in "abc"]
    orders = PartialOrders.from_buckets(
        rows, items=[*"abcg"], counts=[2] * 6 + [1] * 6, unranked="not-offered"
    )
    table = plackett_luce_map(orders).summary(reference="a")
    found = table.loc[["b", "c", "tie2"], "log_weight"]
    np.testing.assert_allclose(found, [0.2867987, -0.4636687, -1.0701129], atol=1e-6)


def test_pairs_have_the_published_values():
    """As in "Introduction to PlackettLuce", section 2.3: A > B, C > A, B > A, B > C."""
    games = pd.DataFrame({"winner": [*"ACBB"], "loser": [*"BAAC"]})
    fit = plackett_luce_map(PartialOrders.from_pairs(games))
    table = fit.summary(reference="A").loc[["B", "C"]]
    np.testing.assert_allclose(table["log_weight"], [0.8392, 0.4196], atol=1e-4)
    np.testing.assert_allclose(table["standard_error"], [1.3596, 1.5973], atol=1e-4)
    assert -2 * fit.log_likelihood == pytest.approx(5.1356, abs=1e-4)


# How often a variety of beans was worse and better than the local one, in plots with a highest
# temperature at night of at most 18.69 °C, and above: van Etten et al. (2019), PNAS 116(10)
BEANS = """
ALS 0532-6      34 20 13 18
BRT 103-182     29 16 14 18
INTA Centro Sur 41 11 13 21
INTA Ferroso    34 19 12 14
INTA Matagalpa  33 20 19 16
INTA Precoz     38 19 12 16
INTA Rojo       32 17 19 13
INTA Sequia     30 24 17 15
PM2 Don Rey     36  9  9 22
SJC 730-79      48 20 16 15
"""
# weights in cool plots, and log weights in warm ones, in the order above, the local one last
COOL = """
0.09663466 0.09072365 0.04497423 0.09188975 0.09950195 0.08239922 0.08743950 0.13071479 0.04214223
0.06887900 0.16470103
"""
WARM = """
0.00000000 -0.07161137 0.14990568 -0.16583159 -0.48272277 -0.03697466 -0.68305444 -0.43665252
0.54722786 -0.37766352 -0.31973562
"""


def test_beans_have_the_published_values():
    """As for the tree in the reference of PlackettLuce 0.4, "Plackett-Luce Tree Summaries".

    There too each item wins and loses half a game, which the likelihood of the tree leaves out.
    """
    lines = [line.rsplit(None, 4) for line in BEANS.strip().split("\n")]
    varieties, total = [name for name, *_ in lines], 0.0
    items = [*varieties, "Local", "ghost"]
    half = [[x, "ghost"] for x in items[:-1]] + [["ghost", x] for x in items[:-1]]
    games = [["Local", x] for x in varieties] + [[x, "Local"] for x in varieties]
    for column, published in ((1, COOL), (3, WARM)):
        counts = [int(line[column + k]) for k in (0, 1) for line in lines]
        orders = PartialOrders.from_buckets(
            [*games, *half],
            items=items,
            counts=[*(2 * x for x in counts), *[1] * len(half)],
            unranked="not-offered",
        )
        weights = plackett_luce_map(orders).weights[:-1]
        weights /= weights.sum()
        published = np.array(published.split(), float)
        found = weights if published[0] > 0 else np.log(weights / weights[0])
        np.testing.assert_allclose(found, published, atol=2e-8)
        won = np.concatenate([np.full(10, weights[10]), weights[:10]])
        total += counts @ np.log(won / (np.tile(weights[:10], 2) + weights[10]))
    # ten differences of each of the two leaves, and where the tree divides the plots
    assert -2 * total + 2 * 21 == pytest.approx(1123.72, abs=0.005)


@pytest.mark.slow
def test_intervals_hold_the_truth():
    """90% intervals of weights and tie strengths in 200 data sets of 100 orders of 5 items."""
    log_weights, log_ties = np.linspace(-1.0, 1.0, 5), np.array([-0.5, -1.5])
    d = rd.PlackettLuceTies(log_weights, log_ties)
    levels = np.asarray(d.sample(jax.random.key(0), (200, 100)))
    truth, inside = np.append(log_weights, log_ties), []
    for ranks in levels:
        orders = PartialOrders.from_ranks(ranks.astype(float), ties="any").unique()
        table = plackett_luce_map(orders).summary()
        table = table.loc[[*orders.items, "tie2", "tie3"]]
        inside.append((table["low"] <= truth) & (truth <= table["high"]))
    shares = np.mean(inside, axis=0)
    # of each parameter 200 independent ones, of standard deviation 0.3
    assert (np.abs(shares - 0.9) < 4 * 0.3 / np.sqrt(200)).all()


def test_what_is_refused():
    games = pd.DataFrame({"who": ["x", "x", "y"], "winner": [*"aca"], "loser": [*"bdc"]})
    orders = PartialOrders.from_pairs(games, judge="who")
    with pytest.raises(RankingsError, match=r"judge 'x': .* no order of buckets.*a row each"):
        plackett_luce_map(orders)
    with pytest.raises(RankingsError, match="row 1: the preferences are no order of buckets"):
        plackett_luce_map(orders.of_all_items().unique())

    def fit(*rows, counts=None, **settings):
        orders = PartialOrders.from_buckets(rows, items=[*"abc"], counts=counts)
        return plackett_luce_map(orders, **settings)

    with pytest.raises(RankingsError, match="may have no maximum: item 'c' is never ahead"):
        fit(["a", "b", "c"], ["b", "a", "c"], ["a", ["b", "c"]])
    strict = [["a", "b", "c"], ["c", "b", "a"]]
    assert fit(*strict, ["a", ["b", "c"]]).tie_strengths[0] > 0
    always = ["b", "c"], ["c", "b"], [["a", "b", "c"]]
    sets = np.array([[0, 1, 1], [0, 1, 1], [1, 1, 1]], bool)
    orders = PartialOrders.from_buckets(always, items=[*"abc"], choice_sets=sets)
    with pytest.raises(RankingsError, match="no maximum: ties of 3 items occur wherever"):
        plackett_luce_map(orders, shape=2.0)
    with pytest.raises(TypeError, match="rankings must be a Rankings"):
        plackett_luce_map([[0, 1]])


def test_ties_of_many_items_are_accurate():
    """Of 40 items in play, 30 are tied: as the distribution has it, and as differences have it."""
    n, rng = 40, np.random.default_rng(0)
    rows = [rng.permutation(n).tolist() for _ in range(10)]
    tied = [[*row[:2], row[2:32], *row[32:]] for row in rows[6:]]
    orders = PartialOrders.from_buckets([*rows[:6], *tied], num_items=n)
    stages = TiedStages(orders)
    weights = np.exp(rng.normal(size=n))
    weights /= weights.sum()
    stages.ties = np.array([1e-9])
    log_ties = np.append(np.full(28, -np.inf), np.log(stages.ties))
    with double_precision():
        d = rd.PlackettLuceTies(np.log(weights), log_ties)
        expected = np.sum(np.asarray(d.log_prob(orders.levels_of_items())))
        assert stages.log_likelihood(weights) == pytest.approx(expected, rel=1e-10)
    # a tie of 30 items is worth 1/30 of a choice of each
    slope = stages.times_chosen - weights * stages.times_in_play(weights)
    information, h = stages.information(weights), 1e-5
    for k in (0, 7):
        step = h * np.eye(n)[k]
        values = [stages.log_likelihood(weights * np.exp(x)) for x in (step, -step)]
        assert (values[0] - values[1]) / (2 * h) == pytest.approx(slope[k], rel=1e-5, abs=1e-5)
        slopes = [
            stages.times_chosen - w * stages.times_in_play(w)
            for w in (weights * np.exp(step), weights * np.exp(-step))
        ]
        expected = (slopes[1] - slopes[0]) / (2 * h)
        np.testing.assert_allclose(information[k, :n], expected, rtol=1e-5, atol=1e-6)
    assert np.isfinite(plackett_luce_map(orders, shape=2.0).log_likelihood)


def test_sums_over_sets_without_an_item():
    """Of 60 numbers, by enumeration where few are left, and by exact fractions where many are."""
    rng = np.random.default_rng(0)
    w = rng.random((2, 60))
    for degree in (0, 1, 2, 58, 59):
        found = tied_stages._symmetric_without(w, degree)
        for place in (0, 31, 59):
            exact = [Fraction(1)] + [Fraction(0)] * degree
            for x in np.delete(w[1], place):
                for k in range(degree, 0, -1):
                    exact[k] += Fraction(x) * exact[k - 1]
            assert found[1, place] == pytest.approx(float(exact[degree]), rel=1e-13)
