"""Posterior SBC: right kernels pass, spoiled ones do not."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from helpers.chains import sampled
from numpyro.infer import MCMC, NUTS
from numpyro.infer.mcmc import MCMCKernel
from scipy.stats import binom

from numpyro_rankings import PartialOrders, Rankings
from numpyro_rankings.infer import (
    BetaGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
    TemperedMixture,
)
from numpyro_rankings.infer.plackett_luce import finite
from numpyro_rankings.posterior.calibration import PosteriorSBC, posterior_sbc

RNG = np.random.default_rng(0)
LISTS = [RNG.permutation(5)[: 3 if i % 3 else 5].tolist() for i in range(20)]
JUDGES = Rankings.from_orderings([*LISTS, *[[0, 1, 2, 3, 4]] * 15], num_items=5).unique()
SHORT = {"num_replicates": 200, "num_draws": 9, "num_sweeps": 5}
FALSE_ALARM = 1e-5  # of all quantities of a kernel


def draws_of(kernel, rankings=JUDGES, num_warmup=200):
    return sampled(
        kernel,
        rankings,
        key=jax.random.key(1),
        num_samples=300,
        num_chains=2,
        num_warmup=num_warmup,
    )


def least_of(found):
    return len(found.p_values) * min(found.p_values.values())


def test_a_right_kernel_passes_and_a_spoiled_one_does_not(monkeypatch):
    kernel = PlackettLuceGibbs()
    found = posterior_sbc(jax.random.key(2), kernel, draws_of(kernel), **SHORT)
    assert {"log_joint", "population_entropy", "top_weights[item 1]"} < set(found.ranks)
    assert all(x.shape == (200,) and 0 <= x.min() and x.max() <= 9 for x in found.ranks.values())
    assert least_of(found) > FALSE_ALARM, found.p_values
    assert found.num_further == 35 and "agree with uniform ones" in found.in_words

    # choices count for the next item: what is simulated is not what the sweeps take it for
    right = finite.times_chosen
    monkeypatch.setattr(finite, "times_chosen", lambda *args: jnp.roll(right(*args), 1, axis=-1))
    spoiled = PlackettLuceGibbs()
    found = posterior_sbc(jax.random.key(2), spoiled, draws_of(spoiled), **SHORT)
    assert least_of(found) < FALSE_ALARM, found.p_values
    assert "are not uniform" in found.in_words


def test_chains_that_hardly_move_have_ranks_at_the_ends():
    """One sweep between draws of judges of whom few disagree, whose weights move in small steps."""
    judges = Rankings.from_orderings([[0, 1, 2]] * 800 + [[1, 0, 2]] * 4, num_items=3)
    kernel, settings = PlackettLuceGibbs(), {"num_further": 1, "num_draws": 4}
    draws, key = draws_of(kernel, judges), jax.random.key(3)
    slow, quick = (
        posterior_sbc(key, kernel, draws, num_replicates=200, num_sweeps=k, **settings)
        for k in (1, 100)
    )
    at_ends = [np.isin(x.ranks["top_weights[item 1]"], [0, 4]).mean() for x in (slow, quick)]
    assert at_ends[0] > 0.5 > at_ends[1], at_ends
    assert least_of(quick) > FALSE_ALARM, quick.p_values


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    [
        SliceGibbs(max_clusters=16, alpha=dist.Gamma(2.0, 2.0)),
        BetaGibbs(num_components=2),
        PlackettLuceGibbs(num_components=2),
        TemperedMixture("plackett-luce", 2, num_temperatures=4),
        TemperedMixture("mallows", 2, num_temperatures=4),
    ],
    ids=["slice", "beta", "finite", "ladder", "ladder of Mallows"],
)
def test_right_kernels_pass(kernel):
    found = posterior_sbc(
        jax.random.key(2), kernel, draws_of(kernel), **SHORT | {"num_replicates": 60}
    )
    assert least_of(found) > FALSE_ALARM, found.p_values


def test_bands_hold_uniform_ranks():
    ranks = np.random.default_rng(1).integers(0, 20, (2000, 60))
    band = PosteriorSBC({"x": ranks[0]}, {}, 19, 35).band(0.9)
    numbers = (ranks[:, :, None] <= np.arange(19)).sum(1)
    held = ((band[:, 0] <= numbers) & (numbers <= band[:, 1])).all(1).mean()
    assert 0.87 < held < 0.94
    pointwise = binom.ppf(0.95, 60, np.arange(1, 20) / 20)
    assert (band[:, 1] >= pointwise).all()


def test_what_is_not_checked_is_refused():
    kernel = PlackettLuceGibbs()
    samples = {"weights": np.full((1, 4, 5), 0.2), "log_joint": np.zeros((1, 4))}
    key = jax.random.key(0)
    with pytest.raises(ValueError, match="the draws are of PlackettLuceGibbs, not of BetaGibbs"):
        posterior_sbc(key, BetaGibbs(), draws_of(kernel))
    with pytest.raises(ValueError, match="num_replicates is 100, but there are 4 draws"):
        posterior_sbc(key, kernel, samples, JUDGES)
    with pytest.raises(ValueError, match="num_draws"):
        posterior_sbc(key, kernel, samples, JUDGES, num_draws=0)
    with pytest.raises(TypeError, match="the draws have no rankings"):
        posterior_sbc(key, kernel, samples)
    ties = PartialOrders.from_buckets([[0, [1, 2], 3, 4]] * 3, num_items=5)
    with pytest.raises(ValueError, match="without ties"):
        posterior_sbc(key, kernel, samples, ties)
    with pytest.raises(ValueError, match="leave num_further out"):
        posterior_sbc(key, kernel, samples, JUDGES, num_further=3, simulate=lambda key, draw: ())
    with pytest.raises(TypeError, match="NUTS is not of this package; simulate= can say"):
        posterior_sbc(key, NUTS(lambda: None), samples)
    with pytest.raises(ValueError, match="power 1"):
        posterior_sbc(key, TemperedMixture("plackett-luce", 2, power=0.5), samples, JUDGES)
    with pytest.raises(ValueError, match="further rankings may have items of the pool"):
        pool = GammaProcessPlackettLuceGibbs()
        posterior_sbc(key, pool, draws_of(pool, num_warmup=2))


def test_clusters_for_which_there_is_no_slot_are_refused():
    kernel = SliceGibbs(alpha=3.0, max_clusters=5)
    draws = draws_of(kernel)
    with pytest.raises(ValueError, match="fit with a larger max_clusters"):
        posterior_sbc(jax.random.key(2), kernel, draws, num_replicates=20, num_further=60)


def test_a_ladder_keeps_the_prior_of_the_shares_with_more_rankings():
    kernel = TemperedMixture("mallows", 2)
    many = Rankings.from_orderings([[0, 1, 2, 3, 4, 5, 6]] * 100, num_items=7)
    for one, kappa in ((kernel, math.lgamma(8) / 2), (kernel.with_prior_of(JUDGES), 35 / 20)):
        state = one.init(jax.random.key(0), 0, None, (many,), {})
        assert float(state.z["alpha"]) == pytest.approx(2 * kappa)


class StartsElsewhere(NUTS):
    def init(self, rng_key, num_warmup, init_params, model_args, model_kwargs):
        return super().init(rng_key, num_warmup, None, model_args, model_kwargs)


def test_a_kernel_of_numpyro_with_data_that_the_user_simulates():
    """A normal mean and its scale by NUTS, and further data that are of another scale."""

    def model(y):
        mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
        scale = numpyro.sample("scale", dist.HalfNormal(2.0))
        numpyro.deterministic("ratio", mean / scale)
        numpyro.sample("y", dist.Normal(mean, scale), obs=y)

    def nuts(step_size):
        return NUTS(model, step_size=step_size, adapt_step_size=False, adapt_mass_matrix=False)

    y = 1.0 + np.random.default_rng(0).normal(size=12)
    kernel = nuts(0.2)
    mcmc = MCMC(kernel, num_warmup=200, num_samples=400, progress_bar=False)
    mcmc.run(jax.random.key(0), y)

    def check(factor, kernel=kernel):
        def simulate(key, draw):
            more = draw["mean"] + factor * draw["scale"] * jax.random.normal(key, (12,))
            return (jnp.concatenate([y, more]),), draw

        settings = {"num_replicates": 100, "num_draws": 9, "num_sweeps": 3}
        return posterior_sbc(jax.random.key(1), kernel, mcmc, simulate=simulate, **settings)

    found = check(1.0)
    assert set(found.ranks) == {"mean", "scale", "ratio"} and found.num_further is None
    assert least_of(found) > FALSE_ALARM, found.p_values
    found = check(2.0)
    assert least_of(found) < FALSE_ALARM, found.p_values

    with pytest.raises(ValueError, match="never moves from where it starts"):
        check(1.0, nuts(2.0))  # rejects all
    with pytest.raises(ValueError, match="StartsElsewhere does not start from the given"):
        check(1.0, StartsElsewhere(model))

    def elsewhere(key, draw):
        return (y,), {"mean": draw["mean"]}

    with pytest.raises(ValueError, match="to start from lack scale"):
        posterior_sbc(jax.random.key(1), kernel, mcmc, simulate=elsewhere, num_replicates=1)


def test_judges_who_tie_items_are_simulated_by_the_user():
    """The two first items of each judge are tied."""
    orderings = RNG.permuted(np.tile(np.arange(4), (12, 1)), axis=1)

    def tied(orderings):
        return PartialOrders.from_buckets([[[a, b], c, d] for a, b, c, d in orderings], num_items=4)

    def simulate(key, draw):
        scores = np.log(draw["weights"]) + jax.random.gumbel(key, (12, 4))
        return (tied(np.concatenate([orderings, np.argsort(-scores, axis=1)]).tolist()),), draw

    kernel = PlackettLuceGibbs()
    draws = draws_of(kernel, tied(orderings.tolist()))
    found = posterior_sbc(
        jax.random.key(2), kernel, draws, simulate=simulate, **SHORT | {"num_replicates": 100}
    )
    assert "top_weights[item 1]" in found.ranks
    assert least_of(found) > FALSE_ALARM, found.p_values


def test_groups_of_which_all_labels_are_certain():
    """Their sizes never move, which is no fault of the kernel."""
    first = list(range(8))
    judges = Rankings.from_orderings([first] * 30 + [first[::-1]] * 30, num_items=8).unique()
    kernel = PlackettLuceGibbs(num_components=2)
    found = posterior_sbc(
        jax.random.key(1), kernel, draws_of(kernel, judges), num_replicates=20, num_draws=4
    )
    assert "log_joint" in found.ranks and "largest_sizes[1]" not in found.ranks


class _State(NamedTuple):
    z: Any
    rng_key: Any


class DrawsOfMean(MCMCKernel):
    """Independent draws of a normal mean, without a model; sweeps that move are at random."""

    sample_field = "z"

    def __init__(self, moves=1.0, start=None):
        self._moves, self._start = moves, start

    def init(self, rng_key, num_warmup, init_params, model_args, model_kwargs):
        return _State(jax.tree.map(jnp.asarray, self._start or init_params), rng_key)

    def sample(self, state, model_args, model_kwargs):
        (y,), (key, *keys) = model_args, jax.random.split(state.rng_key, 3)
        mean = y.sum() / (len(y) + 1) + jax.random.normal(keys[0]) / jnp.sqrt(len(y) + 1)
        moves = jax.random.uniform(keys[1]) < self._moves
        return _State({"mean": jnp.where(moves, mean, state.z["mean"])}, key)


def check_mean(kernel, change=lambda found: found, source=None):
    y = np.random.default_rng(0).normal(size=10)
    means = y.sum() / 11 + np.random.default_rng(1).normal(size=100) / 11**0.5

    def simulate(key, draw):
        return change(((jnp.concatenate([y, draw["mean"] + jax.random.normal(key, (10,))]),), draw))

    source = {"mean": means} if source is None else source
    settings = {"num_replicates": 40, "num_draws": 9, "num_sweeps": 2}
    return posterior_sbc(jax.random.key(1), kernel, source, simulate=simulate, **settings)


def test_a_kernel_without_a_model_must_start_where_it_is_told_and_move():
    found = check_mean(DrawsOfMean())
    assert found.in_words == "The ranks of the only quantity agree with uniform ones."
    with pytest.raises(
        ValueError, match=r"mean never moves .* in [23]\d of 40 refits: raise num_sw"
    ):
        check_mean(DrawsOfMean(moves=0.02))
    with pytest.raises(ValueError, match="DrawsOfMean does not start from the given mean"):
        check_mean(DrawsOfMean(start={"mean": 0.0}))


@pytest.mark.parametrize(
    ("wrong", "got"),
    [
        (lambda found: None, "got NoneType"),
        (lambda found: found[0], "got 1 things"),
        (lambda found: (found[0][0], found[1]), "got ArrayImpl and dict"),
        (lambda found: (found[0], None), "got tuple and NoneType"),
    ],
)
def test_what_a_simulation_must_return(wrong, got):
    with pytest.raises(TypeError, match=f"such as `return \\(data,\\), draw`: {got}"):
        check_mean(DrawsOfMean(), wrong)


def test_a_kernel_and_draws_are_asked_for():
    for kernel in (MCMC(DrawsOfMean(), num_warmup=1, num_samples=1), DrawsOfMean):
        with pytest.raises(TypeError, match=r"kernel must be a kernel, such as mcmc\.sampler"):
            check_mean(kernel)
    with pytest.raises(TypeError, match=r"source must be an MCMC, .* got DrawsOfMean"):
        check_mean(DrawsOfMean(), source=DrawsOfMean())
    with pytest.raises(ValueError, match="source has no draws"):
        check_mean(DrawsOfMean(), source={})


def test_a_mixture_must_start_from_its_parameters_and_labels():
    kernel = PlackettLuceGibbs(num_components=2)
    samples = {
        "assignments": np.tile(np.arange(len(JUDGES)) % 2, (1, 4, 1)),
        "weights": np.full((1, 4, 2, 5), 0.2),
        "cluster_sizes": np.tile([18, 17], (1, 4, 1)),
        "log_joint": np.zeros((1, 4)),
    }
    for name in ("assignments", "weights"):

        def simulate(key, draw, name=name):
            return (JUDGES,), {x: value for x, value in draw.items() if x != name}

        settings = {"simulate": simulate, "num_replicates": 1}
        with pytest.raises(ValueError, match=f"the parameters to start from lack {name}"):
            posterior_sbc(jax.random.key(2), kernel, samples, JUDGES, **settings)
