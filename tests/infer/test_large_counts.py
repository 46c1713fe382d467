"""Data of a million rankings: what a sum holds, and what is refused because it would not."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.fabricated import fabricated_mcmc
from jax import random
from scipy.special import gammaln

from numpyro_rankings import Rankings, to_inference_data
from numpyro_rankings.components import MallowsCenter
from numpyro_rankings.infer import (
    BetaGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
)
from numpyro_rankings.infer.mallows import data
from numpyro_rankings.infer.mallows.centers import _relative_sums
from numpyro_rankings.infer.mallows.data import largest_code_sum
from numpyro_rankings.ops.codes import stage_codes
from numpyro_rankings.ops.pairs import (
    exact_products,
    log_as_pair,
    sum_as_pair,
    times_log,
    times_log_psi,
)

MILLION = 10**6


def first_choices(num_items, count):
    """Every item is the first of as many rankings, which list no other."""
    lists = np.arange(num_items)[:, None]
    return Rankings.from_orderings(lists, num_items=num_items, counts=[count] * num_items)


@pytest.mark.parametrize("kernel", [SliceGibbs(num_components=1), BetaGibbs(max_clusters=4)])
def test_code_sums_that_would_wrap_are_refused(kernel):
    """A million rankings of 5000 items: their codes add up to 2.5e9 and more."""
    with pytest.raises(ValueError, match="1000000 rankings of 5000 items are too many"):
        kernel.init(random.key(0), 0, None, (first_choices(5000, 200),), {})


def test_code_sums_that_fit_are_not_refused():
    """The bound is one for these data: N (n - 1) is 3.6e9, no center makes more than 1.8e9."""
    rankings = first_choices(3000, 400)
    SliceGibbs()._check((rankings,), {})
    assert largest_code_sum(rankings, 1) == 400 * 3000 * 2999 // 2

    def under_jit(rankings):
        SliceGibbs()._check((rankings,), {})
        return rankings.counts.sum()

    with pytest.raises(ValueError, match="too many"):  # counts that are not known
        jax.jit(under_jit)(rankings)
    assert jax.jit(under_jit)(first_choices(2000, 500)) == MILLION


def test_largest_code_sum_is_a_bound_for_every_stage(monkeypatch):
    """The largest that any center makes, by enumeration."""
    rankings = Rankings.from_orderings([[0, 1, 2], [1, 0], [3, 2]], num_items=4, counts=[2, 1, 4])
    monkeypatch.setattr(data, "_MOST_CODES", 20)
    orders = np.array(list(itertools.permutations(range(4))))
    codes = codes_of(rankings.orderings, orders)
    largest = int((np.asarray(codes) * np.asarray(rankings.counts)[:, None]).sum(1).max())
    assert largest_code_sum(rankings, 3) == largest == 17  # N (n - 1) is 21


def test_sums_over_many_items_do_not_wrap():
    """Moving an item past 10,000 others, each of which costs as much as a step may."""
    steps = jnp.full((1, 10_000), 2**30, jnp.int32)
    found = _relative_sums(steps, jnp.array([[0]]))[0]
    np.testing.assert_allclose(found, np.arange(10_001.0) * 2**30, rtol=1e-6)


def test_whole_numbers_of_mallows_center_are_exact_or_refused():
    """Sums of codes in single precision are exact up to 2^24."""
    orders = [[0, 1, 2, 3, 4, 5, 6]]
    MallowsCenter(1.0).check(Rankings.from_orderings(orders, num_items=7, counts=[2_700_000]))
    with pytest.raises(ValueError, match="2900000 rankings of 7 items are too many"):
        MallowsCenter(1.0).check(Rankings.from_orderings(orders, num_items=7, counts=[2_900_000]))


def test_gamma_process_starts_with_some_unseen_weight():
    """One part in 4·10^7, which is less than what 1 minus the other shares can tell."""
    rng = np.random.default_rng(0)
    lists = [rng.permutation(40) for _ in range(2)]
    rankings = Rankings.from_orderings(lists, num_items=40, counts=[MILLION // 2] * 2)
    state = GammaProcessPlackettLuceGibbs().init(random.key(0), 0, None, (rankings,), {})
    assert float(state.z["unseen_weight"]) == pytest.approx(1 / (40 * MILLION + 1), rel=1e-5)
    assert np.isfinite(state.potential_energy)


# -- log joints that a chain moves by a few nats ---------------------------------------------------

FORMS = {
    "plain": lambda f: f,
    "compiled": jax.jit,
    "batched": lambda f: jax.jit(jax.vmap(f, in_axes=(None, 0))),
}


def in_float64(pair):
    return np.asarray(pair[0], float) + np.asarray(pair[1], float)


@pytest.mark.parametrize("form", FORMS)
def test_sums_of_logarithms(form):
    """Each compiled form against NumPy; the sums are 10^8 to 10^9, where float32 steps by 64."""
    rng = np.random.default_rng(0)
    shape = (3, 500)
    counts = rng.integers(0, MILLION, shape[1])
    x = np.exp(-rng.gamma(2.0, 2.0, shape)).astype(np.float32)
    theta = np.exp(rng.normal(-1.0, 2.0, shape)).astype(np.float32)
    most = rng.integers(0, 400, shape[1])
    exact = x.astype(float), theta.astype(float)
    psi = np.log(np.expm1(-(most + 1) * exact[1]) / np.expm1(-exact[1]))
    one, m = (slice(None) if form == "batched" else 0), jnp.asarray(most)
    for terms, values, expected in (
        (exact_products, x, exact[0]),
        (times_log, x, np.log(exact[0])),
        (lambda c, x: times_log_psi(c, x, m), theta, psi),
    ):
        found = FORMS[form](lambda c, x, terms=terms: sum_as_pair(terms(c, x)))(
            jnp.asarray(counts), jnp.asarray(values[one])
        )
        np.testing.assert_allclose(in_float64(found), (expected @ counts)[one], rtol=0, atol=0.3)


def test_logarithms_as_pairs():
    """Over many numbers of all sizes, and at the ends of the table; then counted once or not."""
    rng = np.random.default_rng(1)
    near_nodes = 1 + np.arange(129)[:, None] / 128 + np.array([-1e-7, 0.0, 1e-7])
    x = np.concatenate([10.0 ** rng.uniform(-31, 3, 20_000), near_nodes.ravel()])
    x = x.astype(np.float32)
    exact = np.log(x.astype(float))
    assert np.abs(in_float64(jax.jit(log_as_pair)(x)) - exact).max() < 3e-9
    counts = rng.integers(0, 2, len(x))
    terms = jax.jit(lambda c, x: times_log(c, x, largest=1))(jnp.asarray(counts), x)
    found = sum(np.asarray(term, float) for term in terms)
    assert np.abs(found - counts * exact).max() < 3e-9


@jax.jit
def codes_of(orderings, places):
    """Of all rankings under each center, whose inverse is given."""
    return jax.vmap(stage_codes, in_axes=(None, 0))(orderings, places)


def changes(kernel, rankings, exact, starts=None):
    """Log joints less exact ones: their standard deviation, and that of the exact ones.

    :param starts: values of sites for 60 chains, whose first states are compared; by default it is
        60 draws of one chain, which takes longer to compile.
    """

    def draw(state, _):
        state = kernel.sample(state, (rankings,), {})
        return state, state.z

    if starts is None:
        state = kernel.init(random.key(0), 0, None, (rankings,), {})
        _, z = jax.jit(lambda state: jax.lax.scan(draw, state, None, length=60))(state)
    else:
        z = kernel.init(random.split(random.key(0), 60), 0, starts, (rankings,), {}).z
    values = exact({name: np.asarray(x, float) for name, x in z.items()})
    found = in_float64((z["log_joint"], z["log_joint_rest"]))
    return np.std(found - values), np.std(values)


def rankings_of(num_items, length):
    """A million rankings, 40 distinct ones."""
    rng = np.random.default_rng(1)
    lists = np.argsort(rng.gumbel(size=(40, num_items)) - np.linspace(0, 3, num_items))
    counts = rng.multinomial(MILLION - 40, np.full(40, 1 / 40)) + 1
    return Rankings.from_orderings(lists[:, :length], num_items=num_items, counts=counts)


each_way = pytest.mark.parametrize(
    "of_a_chain", [False, pytest.param(True, marks=pytest.mark.slow)]
)


@each_way
@pytest.mark.parametrize("num_items", [8, 14])  # with and without a table of all sets
def test_log_joints_of_plackett_luce(num_items, of_a_chain):
    """Within 0.01 nats at -10^7, where float32 has steps of 1 and sums were off by more."""
    rankings = rankings_of(num_items, 6)
    lists, counts = np.asarray(rankings.orderings), np.asarray(rankings.counts)

    def exact(z):
        chosen = z["weights"][:, lists]
        mass = z["weights"].sum(1)[:, None, None] - np.cumsum(chosen, -1) + chosen
        return (np.log(chosen) - np.log(mass)).sum(-1) @ counts + gammaln(num_items)

    starts = {"weights": np.random.default_rng(2).dirichlet(np.full(num_items, 1e4), 60)}
    error, spread = changes(PlackettLuceGibbs(), rankings, exact, None if of_a_chain else starts)
    assert error < 0.01 and 1.0 < spread < (5.0 if of_a_chain else 1e5)


@each_way
def test_log_joints_of_mallows(of_a_chain):
    rankings = rankings_of(8, 6)
    orderings, counts = jnp.asarray(rankings.orderings), np.asarray(rankings.counts)
    most = 7 - np.arange(6)

    def exact(z):
        theta, center = z["concentration"][:, 0], z["center"][:, 0].astype(int)
        codes = np.asarray(codes_of(orderings, np.argsort(center)))
        log_psi = np.log(np.expm1(-(most + 1) * theta) / np.expm1(-theta))
        prior = -(theta + log_psi).sum(1)
        return prior - (theta[:, None] * codes + log_psi[:, None]).sum(-1) @ counts

    kernel = SliceGibbs(num_components=1, num_center_updates=1)
    center = np.tile(np.arange(8), (60, 1, 1))
    starts = {"center": center, "concentration": np.random.default_rng(2).gamma(9, 0.1, (60, 1, 6))}
    error, spread = changes(kernel, rankings, exact, None if of_a_chain else starts)
    assert error < 0.02 and 0.5 < spread < (5.0 if of_a_chain else 1e7)


def test_what_is_diagnosed_has_all_digits():
    """R-hat, ESS and means are of the log joint in double precision."""
    rankings = Rankings.from_orderings([[0, 1, 2], [1, 0, 2], [2, 1]], num_items=3, counts=[9] * 3)
    mcmc = fabricated_mcmc(rankings, chains=2)
    z = mcmc._states["z"]
    whole = np.random.default_rng(0).normal(-1e8, 3.0, z["alpha"].shape)
    z["log_joint"] = jnp.asarray(whole, jnp.float32)
    z["log_joint_rest"] = jnp.asarray(whole - np.asarray(z["log_joint"], float), jnp.float32)
    posterior = to_inference_data(mcmc, rankings)["posterior"]
    assert "log_joint_rest" not in posterior
    np.testing.assert_allclose(posterior["log_joint"].values, whole, rtol=0, atol=1e-5)
    state = type("State", (), {"z": {name: x[0, 0] for name, x in z.items()}})
    assert mcmc.sampler.get_diagnostics_str(state).endswith(f"log joint {whole[0, 0]:.1f}")
