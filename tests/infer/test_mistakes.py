"""Kernels of comparisons that may be mistakes: orderings, mistakes, and the posterior."""

import contextlib
import itertools
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from helpers.chains import sampled
from helpers.densities import log_density_at
from helpers.enumeration import MallowsPosterior, discrepancies, log_partition, partitions
from helpers.kernel_tests import each_of
from helpers.latent_orders import CENTER, THETA, WEIGHTS, extensions, lists_of
from helpers.lists import FALSE_ALARM, assert_frequencies, log_prob_twin, mallows_twin, simplex
from helpers.ranking_kernels import NU, R
from scipy import special, stats

from numpyro_rankings import Comparisons, PartialOrders, Run, StoreError
from numpyro_rankings.infer import (
    BetaGibbs,
    DPPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
    TemperedMixture,
    latent_orders,
    ranking_kernel,
)
from numpyro_rankings.infer.latent_orders import draw_orderings_of_comparisons
from numpyro_rankings.ops import mistakes
from numpyro_rankings.ops.mistakes import MistakePrior

COPIES = 4000


def table_of(*judges, counts=None):
    """A table of the pairs of items, (winner, loser), of each judge."""
    rows = [(k, *pair) for k, pairs in enumerate(judges) for pair in pairs]
    table = pd.DataFrame(rows, columns=["judge", "winner", "loser"])
    return table if counts is None else table.assign(count=np.asarray(counts)[table["judge"]])


def compared(*judges, num_items, counts=None):
    count = None if counts is None else "count"
    table = table_of(*judges, counts=counts)
    return Comparisons.from_pairs(table, "judge", items=range(num_items), count=count)


def orderings_of(comparisons, row):
    """All orderings of the listed items of a row."""
    listed = np.asarray(comparisons.listed[row])[: int(comparisons.lengths[row])].tolist()
    return [list(x) for x in itertools.permutations(listed)]


def log_prob_of(pairs, ordering, e):
    """Log probability of comparisons, one after the other, given an ordering."""
    wrong = sum(ordering.index(a) > ordering.index(b) for a, b in pairs)
    return wrong * np.log(e) + (len(pairs) - wrong) * np.log1p(-e)


def log_list_of(family, ordering):
    if family == "mallows":
        return np.log(mallows_twin(ordering, CENTER, THETA))
    return log_prob_twin(ordering, WEIGHTS, offered=np.isin(np.arange(5), ordering))


OTHERS = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]  # beside whom short lists have padding
PAIRS = {
    "cycle": [(0, 1), (1, 2), (2, 0)],
    "repeated": [(3, 1), (3, 1), (1, 3), (4, 3), (0, 4), (0, 4), (0, 4), (2, 1)],
    "against all": [(4, 0), (3, 0), (4, 2), (1, 2)],
}


@pytest.mark.parametrize("family", ["plackett-luce", "mallows"])
def test_orderings_have_their_conditional(family):
    """Each ordering as often as it is likely with so many comparisons against it."""
    e, draw = 0.2, jax.jit(draw_orderings_of_comparisons)
    for pairs in PAIRS.values():
        both = compared(pairs, OTHERS, num_items=5, counts=[COPIES, 1])
        many = (both.of_all_items() if family == "mallows" else both).expand()
        lists, orderings = lists_of(family, many), many.listed
        for key in jax.random.split(jax.random.key(0), 12):
            orderings = draw(key, many, orderings, lists, e)
        known, width = orderings_of(many, 0), orderings.shape[1]
        log_probs = [log_list_of(family, x) + log_prob_of(pairs, x, e) for x in known]
        padded = [x + [-1] * (width - len(x)) for x in known]
        assert_frequencies(orderings[:COPIES], padded, log_probs)
        found = many.count_mistakes(orderings)[:20].tolist()
        of = np.asarray(orderings)[:20].tolist()
        assert found == [sum(x.index(a) > x.index(b) for a, b in pairs) for x in of]


@pytest.mark.parametrize("family", ["plackett-luce", "mallows"])
def test_a_sweep_moves_each_item_once(family):
    """One sweep from a known ordering, by enumeration of the moves of one item after another."""
    e, pairs = 0.3, PAIRS["repeated"]
    both = compared(pairs, OTHERS, num_items=5, counts=[COPIES, 1])
    many = both.expand()
    known, items = orderings_of(many, 0), np.asarray(many.listed[0]).tolist()
    logs = [log_list_of(family, x) + log_prob_of(pairs, x, e) for x in known]
    law, probability = np.array([float(x == items) for x in known]), np.exp(logs)
    for item in items:
        rest = [[k for k in x if k != item] for x in known]
        moves = np.array([[one == two for two in rest] for one in rest]) * probability
        law = law @ (moves / moves.sum(1, keepdims=True))
    found = draw_orderings_of_comparisons(
        jax.random.key(1), many, many.listed, lists_of(family, many), jnp.asarray(e)
    )
    possible = law > 0
    assert_frequencies(found[:COPIES], np.array(known)[possible], np.log(law[possible]))


def test_without_mistakes_orderings_are_those_of_partial_orders():
    pairs = [(0, 2), (1, 2), (1, 3)]
    many = compared(pairs, OTHERS, num_items=5, counts=[COPIES, 1]).expand()
    orders = PartialOrders.from_pairs(table_of(pairs), "judge", items=range(5))
    orderings, lists = many.listed, lists_of("plackett-luce", many)
    draw = jax.jit(draw_orderings_of_comparisons)
    for key in jax.random.split(jax.random.key(2), 12):
        orderings = draw(key, many, orderings, lists, 1e-9)
    known = extensions(orders, 0)
    log_probs = [log_list_of("plackett-luce", x) for x in known]
    assert_frequencies(orderings[:COPIES], [[*x, -1] for x in known], log_probs)


# -- the probability of a mistake ----------------------------------------------------------------

NUMBERS = [(1, 3, 0, 0), (0.4, 2, 0, 5), (1, 3, 12, 90), (2, 2, 20, 17), (1, 3, 10**5, 10**6)]


@pytest.mark.parametrize("numbers", NUMBERS)
def test_the_probability_of_a_mistake_has_its_conditional(numbers):
    """Draws that begin at its distribution have it still; and its density."""
    a, b, mistakes, others = numbers
    prior, target = MistakePrior(a, b), stats.beta(a + mistakes, b + others)
    below = target.cdf(0.5)
    start = target.ppf(below * np.random.default_rng(0).uniform(size=COPIES))
    draw = jax.jit(jax.vmap(prior.draw, in_axes=(0, 0, None, None)))
    keys = jax.random.split(jax.random.key(3), COPIES)
    found = np.asarray(draw(keys, jnp.asarray(start, float), mistakes, others), float)
    assert found.min() > 0 and found.max() < 0.5
    assert np.mean(found != start.astype(np.float32)) > 0.9
    assert stats.kstest(target.cdf(found) / below, "uniform").pvalue > FALSE_ALARM
    e = start[:20].astype(np.float32).astype(float)
    expected = stats.beta(a, b).logpdf(e) - stats.beta(a, b).logcdf(0.5)
    expected += mistakes * np.log(e) + others * np.log1p(-e)
    pairs = [prior.log_joint(jnp.asarray(x, float), *map(jnp.asarray, numbers[2:])) for x in e]
    np.testing.assert_allclose(np.sum(np.array(pairs, float), 1), expected, rtol=1e-6, atol=1e-5)


def test_the_probability_stays_where_no_draw_is_possible():
    prior = MistakePrior()
    found = prior.draw(jax.random.key(0), jnp.asarray(0.3), jnp.asarray(10**4), jnp.asarray(10))
    assert float(found) == pytest.approx(0.3)


# -- the posterior of labels and parameters ------------------------------------------------------

JUDGES = [(0, 1), (1, 2), (2, 0), (0, 1)], [(1, 0), (1, 0), (0, 1)], [(2, 1), (1, 0), (2, 0)]
DATA = compared(*JUDGES, num_items=3)
A, B = 1.5, 4.0
ALPHA = 1.3
MALLOWS = {
    "one": lambda: SliceGibbs(1.0, NU, R[:2], num_components=1, mistake_prior=(A, B)),
    "two": lambda: SliceGibbs(
        ALPHA, NU, R[:2], num_components=2, num_marginal_steps=6, mistake_prior=(A, B)
    ),
    "beta, one": lambda: BetaGibbs(1.0, NU, R[:2], num_components=1, mistake_prior=(A, B)),
    "beta, two": lambda: BetaGibbs(
        ALPHA, NU, R[:2], num_components=2, num_marginal_steps=6, mistake_prior=(A, B)
    ),
}


def log_mass(a, b):
    """Log of the integral of x^(a-1) (1-x)^(b-1) up to 1/2."""
    return special.betaln(a, b) + np.log(special.betainc(a, b, 0.5))


def mistakes_of(lists):
    """Log probability of all comparisons given the orderings, and the mean of e given both."""
    wrong = sum(
        x.index(a) > x.index(b) for x, pairs in zip(lists, JUDGES, strict=True) for a, b in pairs
    )
    right = sum(map(len, JUDGES)) - wrong
    total = log_mass(A + wrong, B + right)
    return total - log_mass(A, B), np.exp(log_mass(A + wrong + 1, B + right) - total)


def mallows_expectations(number):
    """Expectations over all orderings of the judges and all partitions."""

    def log_prior(theta, left):
        log_psi = np.log(np.exp(-np.outer(range(left + 1), theta)).sum(0))
        return -NU * (R[2 - left] * theta + log_psi)

    orders = [list(x) for x in itertools.permutations(range(3))]
    twin = MallowsPosterior(orders, 3, log_prior)
    cluster, table = cache(twin.cluster), list(partitions(3))
    logs, which, means = [], [], []
    for lists in itertools.product(range(6), repeat=3):
        log_said, mean = mistakes_of([orders[k] for k in lists])
        for k, labels in enumerate(table):
            if max(labels) >= number:
                continue
            blocks = [np.flatnonzero(np.equal(labels, c)) for c in range(max(labels) + 1)]
            found = [cluster(tuple(sorted(lists[i] for i in block))) for block in blocks]
            sizes = [len(block) for block in blocks]
            prior = log_partition(sizes, np.array([ALPHA]), number)[0] if number > 1 else 0.0
            logs.append(prior + log_said + sum(x[0] for x in found))
            which.append(k)
            means.append((*found[0][1:3], mean))
    weights = np.exp(logs - np.logaddexp.reduce(logs))
    center, theta, mistake = (weights @ np.array(x) for x in zip(*means, strict=True))
    partition = np.bincount(which, weights, len(table))
    return {"partition": partition, "center": center, "theta": theta, "mistake": mistake[None]}


@each_of(MALLOWS, ["one"])
def test_mallows_posterior_by_enumeration(name):
    kernel = MALLOWS[name]()
    expected = mallows_expectations(kernel.num_components)
    mcmc = sampled(
        kernel, DATA, key=jax.random.key(1), num_samples=600, num_chains=64, num_warmup=30
    )
    samples = mcmc.get_samples(group_by_chain=True)
    indicators = MallowsPosterior([[0, 1, 2]] * 3, 3, lambda *_: 0.0 * _[0]).indicators(samples)
    indicators["mistake"] = np.asarray(samples["mistake_probability"], float)[..., None]
    found = discrepancies({k: indicators[k] for k in expected}, expected)
    assert max(found.values()) < 5.0, found
    z = {site: np.asarray(value)[0] for site, value in mcmc.last_state.z.items()}
    z["rankings"] = mcmc.last_state.orderings[0][:, :2]
    density = log_density_at(kernel.model, DATA)
    assert float(z["log_joint"]) == pytest.approx(float(density(z)), rel=1e-4)


SHAPE = np.array([0.5, 1.0, 1.5])


def plackett_luce_kernel(number):
    two = {"alpha": ALPHA, "num_components": 2, "num_marginal_steps": 6}
    return PlackettLuceGibbs(SHAPE, mistake_prior=(A, B), **(two if number == 2 else {}))


def plackett_luce_expectations(number):
    """On the simplex of the weights and over the probability of a mistake."""
    points, masses = simplex(SHAPE)
    nodes, node_masses = np.polynomial.legendre.leggauss(40)
    e = (nodes + 1) / 4
    node_masses = node_masses * stats.beta(A, B).pdf(e)
    likely = np.zeros((3, len(points), len(e)))
    for row, pairs in enumerate(JUDGES):
        for x in orderings_of(DATA, row):
            lists = np.exp(log_prob_twin(x, points.T, offered=np.isin(range(3), x)))
            likely[row] += lists[:, None] * np.exp(log_prob_of(pairs, x, e))
    table, terms, means, mistakes = [x for x in partitions(3) if max(x) < number], [], [], []
    for labels in table:
        blocks = [np.flatnonzero(np.equal(labels, c)) for c in range(max(labels) + 1)]
        joints = [masses[:, None] * likely[block].prod(0) for block in blocks]
        sizes = [len(block) for block in blocks]
        prior = log_partition(sizes, np.array([ALPHA]), number)[0] if number > 1 else 0.0
        of_e = node_masses * np.prod([joint.sum(0) for joint in joints], axis=0)
        terms.append(prior + np.log(of_e.sum()))
        mistakes.append([of_e @ e / of_e.sum()])
        means.append(of_e @ (joints[0].T @ points / joints[0].sum(0)[:, None]) / of_e.sum())
    weights = np.exp(terms - np.logaddexp.reduce(terms))
    return table, {
        "partition": weights,
        "weights": weights @ np.array(means),
        "mistake": weights @ np.array(mistakes),
    }


def run_of_plackett_luce(kernel):
    """A run, and the largest |z| of each quantity."""
    number = kernel.num_components
    table, expected = plackett_luce_expectations(number)
    mcmc = sampled(
        kernel, DATA, key=jax.random.key(2), num_samples=600, num_chains=64, num_warmup=30
    )
    samples = mcmc.get_samples(group_by_chain=True)
    first = samples["weights"] if number == 1 else samples["weights"][:, :, 0]
    labels = samples["assignments"] if number > 1 else np.zeros((*first.shape[:2], 3), int)
    indicators = {
        "partition": (labels[:, :, None] == np.array(table)).all(-1),
        "weights": np.asarray(first, float),
        "mistake": np.asarray(samples["mistake_probability"], float)[..., None],
    }
    return mcmc, discrepancies(indicators, expected)


@each_of(["one", "two"], ["one"])
def test_plackett_luce_posterior_by_quadrature(name):
    kernel = plackett_luce_kernel(1 + (name == "two"))
    mcmc, found = run_of_plackett_luce(kernel)
    assert max(found.values()) < 5.0, found
    z = {site: np.asarray(value)[0] for site, value in mcmc.last_state.z.items()}
    z["rankings"] = mcmc.last_state.orderings[0]
    density = log_density_at(kernel.model, DATA)
    assert float(z["log_joint"]) == pytest.approx(float(density(z)), rel=1e-4)


def once(margins):
    """Margins of which each is that of one comparison."""
    sizes = jnp.abs(margins)
    return jnp.sign(margins) * jnp.where(sizes > 0, sizes, jnp.inf).min()


# Each fault replaces an attribute of a class or module by one that is made of the right one.
FAULTS = {
    "orderings not drawn": (
        (ranking_kernel, "draw_orderings_of_comparisons"),
        lambda right: lambda key, comparisons, orderings, *_: orderings,
    ),
    "mistakes half as probable": (
        (ranking_kernel, "draw_orderings_of_comparisons"),
        lambda right: lambda *args: right(*args[:-1], args[-1] / 2),
    ),
    "repeated comparisons counted once": (
        (latent_orders, "draw_orderings"),
        lambda right: lambda *args: right(*args[:-1], once(args[-1])),
    ),
    "probability given no mistakes": (
        (MistakePrior, "draw"),
        lambda right: (
            lambda prior, key, e, mistakes, others: right(
                prior, key, e, 0 * mistakes, others + mistakes
            )
        ),
    ),
    "probability not truncated": (
        (mistakes, "LARGEST"),
        lambda right: 1.0,
    ),
}


@pytest.mark.slow
def test_wrong_moves_are_found(monkeypatch):
    """The same judges and the same quadrature, with one move spoiled."""
    for fault, ((owner, attribute), spoil) in FAULTS.items():
        with monkeypatch.context() as patch:
            patch.setattr(owner, attribute, spoil(getattr(owner, attribute)))
            _, found = run_of_plackett_luce(plackett_luce_kernel(1))
        assert max(found.values()) > 10.0, (fault, found)


# -- beside the other ways to run a kernel -------------------------------------------------------


def test_a_run_is_resumed_to_the_last_bit(tmp_path):
    whole = Run(PlackettLuceGibbs(), DATA, key=jax.random.key(0), num_chains=2)
    whole.extend(20)
    with contextlib.closing(
        Run(PlackettLuceGibbs(), DATA, key=jax.random.key(0), num_chains=2, store=tmp_path / "a")
    ) as first:
        first.extend(12)
    other = compared(JUDGES[0][:3], *JUDGES[1:], num_items=3)
    with pytest.raises(StoreError, match="the data of argument 1 differ"):
        Run.resume(tmp_path / "a", PlackettLuceGibbs(), other)
    with pytest.raises(StoreError, match=r"mistake_prior"):
        Run.resume(tmp_path / "a", PlackettLuceGibbs(mistake_prior=(1, 9)), DATA)
    with contextlib.closing(Run.resume(tmp_path / "a", PlackettLuceGibbs(), DATA)) as second:
        second.extend(8)
        for name, value in whole.get_samples().items():
            np.testing.assert_array_equal(second.get_samples()[name], value)
        assert "mistake_probability" in second.diagnostics().index
        data = second.to_inference_data()
    assert data.posterior["mistake_probability"].dims == ("chain", "draw")
    assert np.isfinite(data.log_likelihood["rankings"]).all()


@pytest.mark.parametrize("make", [MALLOWS["two"], PlackettLuceGibbs])
def test_the_state_keeps_its_types_in_float64(make):
    with jax.enable_x64(True):
        kernel, data = make(), (DATA,)
        state = jax.eval_shape(lambda key: kernel._begin(key, None, data, {}), jax.random.key(0))
        after = jax.eval_shape(lambda state: kernel.sample(state, data, {}), state)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), after) == jax.tree.map(
        lambda x: (x.shape, x.dtype), state
    )
    assert state.z["mistake_probability"].dtype == "float64"


def test_starts():
    keys, kernel = jax.random.split(jax.random.key(0), 2), PlackettLuceGibbs()
    for start in ([0.1, 0.5], [0.0, 0.1], [0.2]):
        with pytest.raises(ValueError, match=r"'mistake_probability'\] must be one number between"):
            kernel.init(keys, 0, {"mistake_probability": np.array(start)}, (DATA,), {})
    state = kernel.init(keys, 0, {"mistake_probability": np.array([0.1, 0.4])}, (DATA,), {})
    assert np.isfinite(state.potential_energy).all()


@pytest.mark.parametrize(
    "kernel",
    [
        TemperedMixture("mallows", 2),
        PlackettLuceGibbs(model=lambda r: None),
        DPPlackettLuceGibbs(),
    ],
)
def test_kernels_that_take_no_comparisons(kernel):
    with pytest.raises(TypeError, match=r"no Comparisons; SliceGibbs, BetaGibbs and PlackettLuceG"):
        kernel.init(jax.random.key(0), 0, None, (DATA,), {})


@pytest.mark.parametrize(
    "prior, message",
    [
        ((1.0, 0.0), "mistake_prior must be two positive numbers"),
        ((1.0, 2.0, 3.0), "mistake_prior must be two numbers"),
        ((1e4, 1.0), "leaves no mass below 0.5"),
    ],
)
def test_bad_priors(prior, message):
    for kernel in (SliceGibbs, PlackettLuceGibbs):
        with pytest.raises(ValueError, match=message):
            kernel(mistake_prior=prior)
