"""The Bradley–Terry model with ties and an advantage at home: its maximum and its posterior."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from helpers.densities import log_density_at
from numpyro.infer import MCMC, NUTS, Predictive
from scipy.optimize import minimize

from numpyro_rankings import (
    Games,
    PartialOrders,
    RankingsError,
    bradley_terry_map,
    plackett_luce_map,
)
from numpyro_rankings.infer import PlackettLuceGibbs
from numpyro_rankings.infer.plackett_luce_map import _Stages, fit_stages
from numpyro_rankings.infer.tied_stages import TiedStages
from numpyro_rankings.models import bradley_terry

# Wins at home and away of the teams of the American League East against each other in 1987, home
# teams in rows: Agresti, A. (2013), "Categorical Data Analysis", table 11.10
TEAMS = ["Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore"]
BASEBALL = """
-   4-3 4-2 4-3 6-1 4-2 6-0
3-3 -   4-2 4-3 6-0 6-1 4-3
2-5 4-3 -   2-4 4-3 4-2 6-0
3-3 5-1 2-5 -   4-3 4-2 6-1
5-1 2-5 3-3 4-2 -   5-2 6-0
2-5 3-3 3-4 4-3 4-2 -   2-4
2-5 1-5 1-6 2-4 1-6 3-4 -
"""
COLUMNS = {"winner": "result", "pair": ("home", "away"), "count": "games"}


def baseball():
    lines = []
    for home, row in zip(TEAMS, BASEBALL.strip().split("\n"), strict=True):
        for away, cell in zip(TEAMS, row.split(), strict=True):
            if away != home:
                lines += [
                    (home, away, *x) for x in zip("HA", map(int, cell.split("-")), strict=True)
                ]
    table = pd.DataFrame(lines, columns=["home", "away", "result", "games"])
    return table[table["games"] > 0]


def simulated(num_items=5, num_games=400, has_ties=True, seed=0):
    """Games of which a third are on neutral ground, and what they come from."""
    rng = np.random.default_rng(seed)
    x, log_tie, log_home = rng.normal(size=num_items), -0.5, 0.6
    lines = []
    for _ in range(num_games):
        one, two = rng.choice(num_items, 2, replace=False)
        is_home = rng.random() < 2 / 3
        a, b = x[one] + is_home * log_home, x[two]
        f = np.exp([a, b, log_tie + (a + b) / 2]) * [1, 1, has_ties]
        result = ["first", "second", "tie"][rng.choice(3, p=f / f.sum())]
        lines.append((f"i{one}", f"i{two}", result, f"i{one}" if is_home else None))
    return pd.DataFrame(lines, columns=["first", "second", "winner", "at"])


def negative_log_likelihood(parameters, table, has_ties, is_home, num_items):
    """The definition, one game at a time; the scale is held."""
    x, rest = parameters[:num_items], list(parameters[num_items:])
    tie = np.exp(rest.pop(0)) if has_ties else 0.0
    gamma = np.exp(rest.pop(0)) if is_home else 1.0
    total = -(x.mean() ** 2)
    for line in table.itertuples():
        one, two = (np.exp(x[int(name[1:])]) for name in (line.first, line.second))
        if isinstance(line.at, str):
            one *= gamma
        f = {"first": one, "second": two, "tie": tie * np.sqrt(one * two)}
        total += np.log(f[line.winner] / sum(f.values()))
    return -total


def second_differences(f, x, h=1e-3):
    steps = h * np.eye(len(x))
    return np.array(
        [[f(x + e + d) - f(x + e - d) - f(x - e + d) + f(x - e - d) for d in steps] for e in steps]
    ) / (4 * h * h)


@pytest.mark.parametrize("is_home", [False, True])
@pytest.mark.parametrize("has_ties", [False, True])
def test_the_maximum_is_that_of_an_independent_optimiser(has_ties, is_home):
    table, n = simulated(num_games=150, has_ties=has_ties), 5
    names = [f"i{k}" for k in range(n)]
    at = "at" if is_home else None
    fit = bradley_terry_map(table, pair=("first", "second"), home=at, items=names)
    arguments = table, has_ties, is_home, n
    start = np.zeros(n + has_ties + is_home)
    best = minimize(negative_log_likelihood, start, arguments, "BFGS", options={"gtol": 1e-6})
    log_weights = np.log(fit.weights) - np.log(fit.weights).mean()
    np.testing.assert_allclose(log_weights, best.x[:n] - best.x[:n].mean(), atol=1e-4)
    assert fit.log_likelihood == pytest.approx(-best.fun, abs=1e-6)
    rest = list(best.x[n:])
    if has_ties:
        assert np.log(fit.tie_strengths) == pytest.approx([rest.pop(0)], abs=1e-4)
    else:
        assert fit.tie_strengths is None
    assert (fit.home_advantage is not None) == is_home
    if is_home:
        assert np.log(fit.home_advantage) == pytest.approx(rest.pop(0), abs=1e-4)
    top = np.append(log_weights, best.x[n:])
    expected = second_differences(lambda x: negative_log_likelihood(x, *arguments), top)
    expected[:n, :n] -= 2 / n**2  # the scale
    np.testing.assert_allclose(fit.information, expected, atol=2e-3)


def test_baseball_has_the_published_values():
    """As in the vignette of BradleyTerry2, section 2.3, with Baltimore as the reference."""
    fit = bradley_terry_map(baseball(), home="home", **COLUMNS)
    table = fit.summary(reference="Baltimore").loc[[*TEAMS[:6], "home"]]
    order = ["Boston", "Cleveland", "Detroit", "Milwaukee", "New York", "Toronto", "home"]
    found = table.loc[order, "log_weight"]
    published = [1.1438, 0.7047, 1.4754, 1.6196, 1.2813, 1.3271, 0.3023]
    np.testing.assert_allclose(found, published, atol=6e-5)
    assert table.loc["home", "standard_error"] == pytest.approx(0.1309, abs=6e-5)
    assert np.isnan(table.loc["home", "quasi_variance"])
    assert fit.home_advantage == pytest.approx(np.exp(0.3023), abs=1e-4)
    without = bradley_terry_map(baseball(), **COLUMNS)
    found = without.summary(reference="Baltimore").loc[order[:6], "log_weight"]
    published = [1.1077, 0.6839, 1.4364, 1.5814, 1.2476, 1.2945]
    np.testing.assert_allclose(found, published, atol=6e-5)


@pytest.mark.parametrize("has_ties", [False, True])
@pytest.mark.parametrize("shape", [1.0, 2.5])
def test_without_home_it_is_the_maximum_of_plackett_luce(has_ties, shape):
    table = simulated(has_ties=has_ties).drop(columns="at")
    orders = PartialOrders.from_pairs(table, pair=("first", "second"))
    fits = [
        bradley_terry_map(table, pair=("first", "second"), items=orders.items, shape=shape),
        bradley_terry_map(orders, shape=shape),
        plackett_luce_map(orders, shape),
        # as orders of any number of items
        fit_stages(
            TiedStages(orders) if has_ties else _Stages(orders.to_rankings()), orders.items, shape
        ),
    ]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.weights, fits[0].weights, rtol=1e-6)
        np.testing.assert_allclose(fit.information, fits[0].information, atol=1e-4)
        assert fit.log_likelihood == pytest.approx(fits[0].log_likelihood, abs=1e-8)
        assert (fit.tie_strengths is None) != has_ties


def test_games_are_counted():
    table = simulated()
    games = Games.from_pairs(table, pair=("first", "second"), home="at")
    assert len(games) == 400 and games.has_ties and games.results.shape[1] == 3
    ties = int((table["winner"] == "tie").sum())
    at_home = int(table["at"].notna().sum())
    assert repr(games) == f"Games(400 of 5 items, {ties} ties, {at_home} with one of them at home)"
    index = [int(name[1:]) for name in games.items]
    for (one, two), result, is_home in zip(
        np.asarray(games.pairs), np.asarray(games.results), np.asarray(games.at_home), strict=True
    ):
        names = f"i{index[one]}", f"i{index[two]}"
        same = table["first"].isin(names) & table["second"].isin(names)
        same &= table["at"] == names[0] if is_home else table["at"].isna()
        winner = np.where(table["winner"] == "first", table["first"], table["second"])
        is_tie = table["winner"] == "tie"
        expected = [(same & ~is_tie & (winner == name)).sum() for name in names]
        assert result.tolist() == [*expected, (same & is_tie).sum()]
    again = pickle.loads(pickle.dumps(games))
    assert jax.tree.structure(again) == jax.tree.structure(games)
    turned = table.rename(columns={"first": "second", "second": "first"})
    turned["winner"] = turned["winner"].replace({"first": "second", "second": "first"})
    fits = [
        bradley_terry_map(x, pair=("first", "second"), home="at", items=games.items)
        for x in (table, turned)
    ]
    np.testing.assert_allclose(fits[0].weights, fits[1].weights, rtol=1e-8)
    same = bradley_terry_map(games)
    assert same.home_advantage == pytest.approx(fits[0].home_advantage)


@pytest.mark.parametrize(
    "codes", ["HAD", "had", "12X", ("home", "away", "Draw"), ("1-0", "0-1", "1/2-1/2")]
)
def test_results_may_be_codes(codes):
    table = pd.DataFrame(
        {"one": [*"pqpr"], "two": [*"qrrq"], "result": [codes[k] for k in (0, 1, 2, 2)]}
    )
    orders = PartialOrders.from_pairs(table, winner="result", pair=("one", "two"))
    expected = [["p", "q"], ["r", "q"], [["p", "r"]], [["r", "q"]]]
    found = PartialOrders.from_buckets(expected, items=orders.items, unranked="not-offered")
    assert orders == found.unique()


def test_codes_are_items_where_an_item_has_their_name():
    table = pd.DataFrame({"one": [*"ha"], "two": [*"ab"], "result": [*"aa"]})
    orders = PartialOrders.from_pairs(table, winner="result", pair=("one", "two"))
    assert orders.listed.tolist() == [[1, 0], [1, 2]]
    numbers = pd.DataFrame({"one": [1, 3], "two": [2, 1], "result": [2, 1]})
    orders = PartialOrders.from_pairs(numbers, winner="result", pair=("one", "two"))
    assert [[orders.items[k] for k in row] for row in orders.listed.tolist()] == [
        ["2", "1"],
        ["1", "3"],
    ]
    with pytest.raises(
        RankingsError, match="line 2 of the table: column 'result': 'H' does not say"
    ):
        wrong = table.assign(result=["a", "H"])
        PartialOrders.from_pairs(wrong, winner="result", pair=("one", "two"))


def test_the_advantage_at_home_must_be_told():
    def fit(*games, **settings):
        table = pd.DataFrame(games, columns=["winner", "loser", "home"])
        return bradley_terry_map(table, home="home", **settings)

    # each beats the other at home only
    with pytest.raises(RankingsError, match="no maximum: where it matters only those at home won"):
        fit(("a", "b", "a"), ("b", "a", "b"))
    with pytest.raises(RankingsError, match=r"only those away won\. Leave out home"):
        fit(("a", "b", "b"), ("b", "a", "a"))
    # a was at home in each game
    with pytest.raises(RankingsError, match="do not tell the advantage at home"):
        fit(("a", "b", "a"), ("b", "a", "a"))
    assert np.isfinite(fit(("a", "b", "a"), ("b", "a", "a"), shape=2.0).home_advantage)
    with pytest.raises(RankingsError, match="only those at home won"):
        fit(("a", "b", "a"), ("b", "a", "b"), shape=2.0)
    # what neutral ground tells of the items is enough
    found = fit(("a", "b", "a"), ("b", "a", "a"), ("a", "b", None), ("b", "a", None))
    assert found.home_advantage == pytest.approx(1.0)
    # of three items in a circle, where no two met twice
    circle = ("a", "b", "a"), ("b", "c", "b"), ("c", "a", "c")
    with pytest.raises(RankingsError, match="only those at home won"):
        fit(*circle)
    assert np.isfinite(fit(*circle, *((y, x, x) for x, y, _ in circle)).home_advantage)


def test_what_is_refused():
    good = pd.DataFrame({"winner": [*"ab"], "loser": [*"ba"], "at": [*"aa"]})
    for table, settings, message in (
        (good.assign(loser=[*"bb"]), {}, "line 2 of the table: compares item 'b' with itself"),
        (good[:0], {}, "there are no comparisons"),
        (good, {"home": "venue"}, "the table has no column 'venue'"),
        (
            good.assign(at=["a", "c"]),
            {"home": "at"},
            "line 2 .*'at' is 'c'; expected b, a, or",
        ),
        (good.assign(at=None), {"home": "at"}, "no game has an item at home in the column 'at'"),
        (
            good.assign(at=[*"ax"]),
            {"winner": "at", "pair": ("winner", "loser")},
            "'at': 'x' does not say which",
        ),
        (good.assign(n=[1, 0]), {"count": "n"}, "line 2 of the table: count 0"),
        (good[:1], {}, "no maximum: item 'a' is always|no maximum: item 'b' is never"),
        ([("a", "b")], {}, "a data frame of pairs is needed, got list"),
        (PartialOrders.from_pairs(good), {"home": "at"}, "are of a table of games"),
        (PartialOrders.from_buckets([["a", "b", "c"]], items=[*"abc"]), {}, "a game is a row of"),
        (PartialOrders.from_buckets([["a", "b"]], items=[*"abc"]), {}, "a game is a row of two"),
    ):
        with pytest.raises(RankingsError, match=message) as error:
            bradley_terry_map(table, **settings)
        assert "\n" not in str(error.value)
    tied = PartialOrders.from_buckets([[["a", "b"]]], items=[*"ab"])
    with pytest.raises(RankingsError, match="all games are ties"):
        bradley_terry_map(tied)
    with pytest.raises(ValueError, match="shape must be at least 1"):
        bradley_terry_map(good, shape=0.5)


@pytest.mark.slow
def test_intervals_hold_the_truth():
    """90% intervals of weights, δ and γ in 200 tables of 400 games, a third on neutral ground."""
    inside = []
    for seed in range(200):
        x = np.random.default_rng(seed).normal(size=5)
        names = [f"i{k}" for k in range(5)]
        fit = bradley_terry_map(
            simulated(seed=seed), pair=("first", "second"), home="at", items=names
        )
        table = fit.summary().loc[[*names, "tie2", "home"]]
        truth = np.append(x - x.mean(), [-0.5, 0.6])
        inside.append((table["low"] <= truth) & (truth <= table["high"]))
    shares = np.mean(inside, axis=0)
    assert (np.abs(shares - 0.9) < 4 * 0.3 / np.sqrt(200)).all()


# -- the posterior -------------------------------------------------------------------------------


def test_the_density_of_the_model_is_the_definition():
    table = simulated(num_games=60)
    games = Games.from_pairs(
        table, pair=("first", "second"), home="at", items=["i0", "i1", "i2", "i3", "i4"]
    )
    rng = np.random.default_rng(1)
    densities = []
    for _ in range(2):
        x, tie, gamma = rng.normal(size=5), 0.7 + rng.random(), 1 + rng.random()
        weights = np.exp(x) / np.exp(x).sum()
        z = {"weights": jnp.asarray(weights), "tie_strength": tie, "home_advantage": gamma}
        found = float(log_density_at(bradley_terry, games)(z))
        parameters = np.append(np.log(weights), np.log([tie, gamma]))
        expected = -negative_log_likelihood(parameters, table, True, True, 5)
        expected += np.log(weights).mean() ** 2  # no scale is held
        for value in (tie, gamma):  # LogNormal(0, 1), up to a constant
            expected -= np.log(value) + np.log(value) ** 2 / 2
        densities.append((found, expected))
    (one, exact), (two, other) = densities
    assert one - two == pytest.approx(exact - other, abs=1e-3)


def test_the_model_of_games():
    games = Games.from_pairs(baseball(), home="home", **COLUMNS)
    mcmc = MCMC(NUTS(bradley_terry), num_warmup=50, num_samples=50, progress_bar=False)
    mcmc.run(jax.random.key(0), games)
    samples = mcmc.get_samples()
    assert sorted(samples) == ["home_advantage", "weights"]
    new = Predictive(bradley_terry, samples)
    assert new(jax.random.key(1), games)["results"].shape[1:] == games.results.shape
    with pytest.raises(TypeError, match=r"games must be Games, got DataFrame: Games.from_pairs"):
        bradley_terry(baseball())


@pytest.mark.slow
def test_nuts_and_gibbs_have_the_same_posterior():
    """Posterior means of log weights of pairs without home and ties; z scores below 4.4."""
    table = simulated(num_games=60, has_ties=False).drop(columns="at")
    orders = PartialOrders.from_pairs(table, pair=("first", "second"))
    found = []
    for kernel, data, size in (
        (NUTS(bradley_terry), Games.from_orders(orders), 4000),
        (PlackettLuceGibbs(), orders, 20_000),
    ):
        mcmc = MCMC(kernel, num_warmup=1000, num_samples=size, progress_bar=False)
        mcmc.run(jax.random.key(0), data)
        x = np.log(np.asarray(mcmc.get_samples()["weights"], float))
        x -= x.mean(1, keepdims=True)
        batches = np.concatenate([x, x**2], 1).reshape(40, -1, 10).mean(1)
        found.append((batches.mean(0), batches.var(0, ddof=1) / 40))
    (one, error), (two, other) = found
    assert (np.abs(one - two) < 4.9 * np.sqrt(error + other)).all()  # of t with 39 degrees
