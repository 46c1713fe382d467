"""What is said of draws when the comparisons of judges may be mistakes."""

import itertools

import numpy as np
import pandas as pd
import pytest
from helpers.lists import log_prob_twin, mallows_twin
from scipy.special import logsumexp

from numpyro_rankings import Comparisons, Draws, PartialOrders, log_predictive_density
from numpyro_rankings.families import MALLOWS, PLACKETT_LUCE
from numpyro_rankings.families.scored import scored
from numpyro_rankings.ops import linear_extensions
from numpyro_rankings.posterior.likelihood import cost_of_value, pointwise_log_likelihood
from numpyro_rankings.report.comparison import comparable_models, default_models

N, SLOTS, DRAWN = 4, 3, 4
JUDGES = [
    [(0, 1), (1, 2), (2, 0), (0, 1), (0, 1)],
    [(3, 1), (1, 3), (3, 1)],
    [(3, 0), (2, 0), (1, 2), (3, 2), (0, 1)],
]


def compared(judges, num_items=N):
    rows = [(f"j{k}", *pair) for k, pairs in enumerate(judges) for pair in pairs]
    table = pd.DataFrame(rows, columns=["judge", "winner", "loser"])
    return Comparisons.from_pairs(table, "judge", items=range(num_items))


DATA = compared(JUDGES)


def drawn(family, seed=0):
    """Draws of a mixture, a chain of them."""
    rng, size = np.random.default_rng(seed), len(JUDGES)
    labels = rng.integers(0, SLOTS - 1, (DRAWN, size))
    samples = {
        "assignments": labels,
        "cluster_sizes": np.stack([np.bincount(x, minlength=SLOTS) for x in labels]),
        "alpha": rng.gamma(2.0, 1.0, DRAWN).astype(np.float32),
        "log_joint": rng.normal(size=DRAWN).astype(np.float32),
        "mistake_probability": rng.uniform(0.02, 0.4, DRAWN).astype(np.float32),
    }
    if family is MALLOWS:
        centers = [[rng.permutation(N) for _ in range(SLOTS)] for _ in range(DRAWN)]
        samples["center"] = np.array(centers, np.int32)
        samples["concentration"] = rng.gamma(2.0, 0.5, (DRAWN, SLOTS, N - 1)).astype(np.float32)
    else:
        samples["weights"] = rng.dirichlet(np.ones(N), (DRAWN, SLOTS)).astype(np.float32)
    return {name: x[None] for name, x in samples.items()}


def probability(pairs, e, log_list, items):
    """Log of the sum over all orders of the items."""
    terms = []
    for order in itertools.permutations(items):
        wrong = sum(order.index(a) > order.index(b) for a, b in pairs)
        said = wrong * np.log(e) + (len(pairs) - wrong) * np.log1p(-e)
        terms.append(said + log_list(list(order)))
    return logsumexp(terms)


def expected(family, samples):
    """Log probability of each judge in each slot of each draw, and in a new cluster."""
    known, new = np.zeros((DRAWN, SLOTS, len(JUDGES))), np.zeros((DRAWN, len(JUDGES)))
    for d, c, k in np.ndindex(known.shape):
        e, pairs = float(samples["mistake_probability"][0, d]), JUDGES[k]
        if family is MALLOWS:
            center, theta = samples["center"][0, d, c], samples["concentration"][0, d, c]
            items = range(N)

            def log_list(order, center=center, theta=theta):
                return np.log(mallows_twin(order, center, theta))
        else:
            weights, items = (
                samples["weights"][0, d, c],
                sorted({x for pair in pairs for x in pair}),
            )

            def log_list(order, weights=weights, items=items):
                return log_prob_twin(order, weights, offered=np.isin(range(N), items))

        known[d, c, k] = probability(pairs, e, log_list, items)
        new[d, k] = probability(pairs, e, lambda _: -np.log(24.0), range(N))
    return known, new


@pytest.mark.parametrize("family", [MALLOWS, PLACKETT_LUCE])
def test_the_density_of_a_judge_by_enumeration(family):
    """The sum over all orders, of which those that contradict what was said are unlikely."""
    samples = drawn(family)
    known, new = expected(family, samples)
    rows = scored(family, DATA)
    flat = {name: x[0] for name, x in samples.items()}
    for d in range(DRAWN):
        draw = {name: x[d] for name, x in flat.items()}
        np.testing.assert_allclose(rows.log_rows(family, draw), known[d], rtol=2e-5, atol=2e-5)
        if family is MALLOWS:
            found = rows.log_new_cluster(family, None, draw, 1)
            np.testing.assert_allclose(found, new[d], rtol=2e-5, atol=2e-5)
    # leaving one out, from the others of the clusters
    draws = Draws.of(samples, DATA, None if family is MALLOWS else "auto")
    values, alpha = pointwise_log_likelihood(draws)[0], flat["alpha"]
    for d, k in np.ndindex(values.shape):
        others = flat["cluster_sizes"][d] - (np.arange(SLOTS) == flat["assignments"][d, k])
        if family is MALLOWS:
            total = (others * np.exp(known[d, :, k])).sum() + alpha[d] * np.exp(new[d, k])
        else:
            total = ((others + alpha[d] / SLOTS) * np.exp(known[d, :, k])).sum()
        assert values[d, k] == pytest.approx(np.log(total / (2 + alpha[d])), abs=1e-4)
    assert cost_of_value(draws) >= 1.0
    again = log_predictive_density(draws, compared(JUDGES[::-1]))
    assert again[0] == pytest.approx(log_predictive_density(draws, DATA)[2], abs=1e-5)


def test_without_mistakes_the_density_is_that_of_partial_orders():
    judges, samples = [JUDGES[1][:1], JUDGES[2][:4]], drawn(PLACKETT_LUCE)
    given = compared(judges)
    orders = PartialOrders.from_pairs(
        pd.DataFrame(
            [(k, *pair) for k, pairs in enumerate(judges) for pair in pairs],
            columns=["judge", "winner", "loser"],
        ),
        "judge",
        items=range(N),
    )
    draw = {name: x[0, 0] for name, x in samples.items()} | {"mistake_probability": 1e-7}
    found, exact = (scored(PLACKETT_LUCE, x).log_rows(PLACKETT_LUCE, draw) for x in (given, orders))
    np.testing.assert_allclose(found, exact, atol=2e-5)


def test_what_has_no_density():
    many = compared([[(k, k + 1) for k in range(17)], [(1, 0)]], 18)
    with pytest.raises(linear_extensions.SumTooLargeError, match=r"row 1: .* there are 18"):
        scored(PLACKETT_LUCE, many)
    few = compared([[(0, 1), (1, 2), (2, 0)], [(3, 1)]], 18)
    kept, left_out = comparable_models(default_models(few), few)
    assert {name.split(" (")[0] for name in kept} == {"Plackett–Luce"}
    assert left_out[0].startswith("Mallows models are left out: the density of a judge sums over")
    samples = drawn(PLACKETT_LUCE)
    del samples["mistake_probability"]
    with pytest.raises(ValueError, match="the draws are not of comparisons: they have no"):
        log_predictive_density(samples, DATA)
