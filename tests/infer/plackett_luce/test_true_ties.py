"""The posterior of the Davidson–Luce model: orders with true ties, alone and in mixtures."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.densities import log_density_at
from helpers.lists import simplex
from numpyro.infer import MCMC, NUTS

import numpyro_rankings.distributions as rd
from numpyro_rankings import PartialOrders, RankingsError
from numpyro_rankings.models import plackett_luce_ties

ROWS = [["a", ["b", "c"]], [["a", "b"], "c"], ["c", "a", "b"], [["a", "b", "c"]], ["b", "a"]]


def orders_of(rows=ROWS, **settings):
    return PartialOrders.from_buckets(rows, items=[*"abc"], counts=[3, 2, 1, 1, 2], **settings)


def said(orders):
    """The levels and the items offered, (rows, n) each."""
    levels, offered = np.asarray(orders.levels_of_items()), orders.offered()
    return levels, np.ones(levels.shape, bool) if offered is None else np.asarray(offered)


def log_likelihood(levels_of_rows, offered, weights, ties):
    """Of each row by the definition, set by set; ``ties`` are δ_2, δ_3."""
    strengths, found = [1.0, *ties], []
    for row, levels in enumerate(levels_of_rows):
        left = set(np.flatnonzero(offered[row]).tolist())
        total = 0.0
        for level in range(levels.max() + 1):
            f = {
                items: strengths[d - 1] * np.prod(weights[list(items)]) ** (1 / d)
                for d in (1, 2, 3)
                for items in itertools.combinations(sorted(left), d)
            }
            chosen = tuple(np.flatnonzero(levels == level).tolist())
            total += np.log(f[chosen] / sum(f.values()))
            left -= set(chosen)
        found.append(total)
    return np.array(found)


@pytest.mark.parametrize("unranked", ["below", "not-offered"])
@pytest.mark.parametrize("num_components", [1, 2])
def test_the_density_is_the_definition(num_components, unranked):
    orders = orders_of(unranked=unranked)
    settings = {"num_components": num_components, "shape": 2.0}
    density = log_density_at(lambda data: plackett_luce_ties(data, **settings), orders)
    rng, values = np.random.default_rng(0), []
    for _ in range(2):
        weights = rng.dirichlet(np.ones(3), num_components)
        ties, shares = (
            rng.gamma(1.0, size=(num_components, 2)),
            rng.dirichlet([1.0] * num_components),
        )
        by_component = [
            log_likelihood(*said(orders), *one) for one in zip(weights, ties, strict=True)
        ]
        rows = np.log(shares @ np.exp(by_component))
        expected = rows @ np.asarray(orders.counts) + np.log(weights).sum()
        expected += dist.LogNormal(0.0, 1.0).log_prob(ties).sum()
        z = {"weights": weights, "tie_strengths": ties}
        z = {"shares": shares, **z} if num_components > 1 else {k: v[0] for k, v in z.items()}
        values.append((float(density({k: jnp.asarray(v) for k, v in z.items()})), expected))
    (one, exact), (two, other) = values
    assert one - two == pytest.approx(float(exact - other), abs=1e-3)


def test_sites_and_what_is_refused():
    orders = orders_of()
    for number, batch in ((1, ()), (2, (2,))):
        model = NUTS(lambda data, number=number: plackett_luce_ties(data, num_components=number))
        mcmc = MCMC(model, num_warmup=5, num_samples=5, progress_bar=False)
        mcmc.run(jax.random.key(0), orders)
        samples = mcmc.get_samples()
        assert samples["weights"].shape == (5, *batch, 3)
        assert samples["tie_strengths"].shape == (5, *batch, 2)
        np.testing.assert_allclose(samples["weights"].sum(-1), 1, rtol=1e-5)
    strict = PartialOrders.from_buckets([["a", "b"], ["b", "a"]], items=[*"ab"])
    assert np.isfinite(log_density_at(plackett_luce_ties, strict)({
        "weights": jnp.full(2, 0.5), "tie_strengths": jnp.ones(1)
    }))  # fmt: skip
    above = PartialOrders.from_buckets([["a", "b"]], items=[*"abc"], unranked="not-offered")
    with pytest.raises(RankingsError, match="no order of buckets"):
        plackett_luce_ties(above.of_all_items())


@pytest.mark.slow
def test_nuts_has_the_posterior_by_quadrature():
    """Posterior means of the weights and of log δ_2 of pairs and ties of three items."""
    rows = [["a", ["b", "c"]], [["a", "b"], "c"], ["c", "a", "b"], ["b", "a"], ["c"]]
    orders = PartialOrders.from_buckets(rows, items=[*"abc"], counts=[3, 2, 1, 2, 1])
    points, masses = simplex(np.ones(3), 20)
    nodes, of_nodes = np.polynomial.hermite_e.hermegauss(20)
    rows, counts = said(orders), np.asarray(orders.counts)
    log_f = [[log_likelihood(*rows, w, (np.exp(t), 0.0)) @ counts for t in nodes] for w in points]
    log_f = np.array(log_f)
    mass = masses[:, None] * of_nodes * np.exp(log_f - log_f.max())
    mass /= mass.sum()
    expected = np.append(mass.sum(1) @ points, [mass.sum(0) @ nodes, mass.sum(0) @ nodes**2])
    mcmc = MCMC(NUTS(plackett_luce_ties), num_warmup=1000, num_samples=8000, progress_bar=False)
    mcmc.run(jax.random.key(0), orders)
    samples = mcmc.get_samples()
    log_tie = np.log(np.asarray(samples["tie_strengths"], float))
    draws = np.column_stack([samples["weights"], log_tie, log_tie**2])
    batches = draws.reshape(40, -1, draws.shape[1]).mean(1)
    error = batches.std(0, ddof=1) / np.sqrt(40)
    assert (np.abs(batches.mean(0) - expected) < 4.9 * error).all()  # of t with 39 degrees


@pytest.mark.slow
def test_simulated_parameters_are_recovered():
    """Of two groups of judges, 400 orders of four items: posterior z scores below 4.4."""
    log_weights = np.array([[2.0, 1.0, -1.0, -2.0], [-2.0, -1.0, 1.0, 2.0]])
    log_ties, groups = np.array([[-1.0], [0.5]]), np.repeat([0, 1], [150, 250])
    d = rd.PlackettLuceTies(log_weights[groups], log_ties[groups])
    levels = np.asarray(d.sample(jax.random.key(0)))
    orders = PartialOrders.from_ranks(levels.astype(float), ties="any").unique()
    model = NUTS(lambda data: plackett_luce_ties(data, num_components=2))
    mcmc = MCMC(model, num_warmup=500, num_samples=500, progress_bar=False)
    mcmc.run(jax.random.key(1), orders)
    samples = mcmc.get_samples()
    x = np.log(np.asarray(samples["weights"], float))
    x -= x.mean(-1, keepdims=True)
    shares = np.asarray(samples["shares"])[..., None]
    draws = np.concatenate([x, np.log(samples["tie_strengths"]), shares], -1)
    draws = draws[:, ::-1] if x[:, 0, 0].mean() < 0 else draws
    truth = np.concatenate([log_weights, log_ties, [[150 / 400], [250 / 400]]], 1)
    z = (draws.mean(0) - truth) / draws.std(0)
    assert (np.abs(z) < 4.4).all() and (draws.std(0)[:, :4] < 0.3).all()
