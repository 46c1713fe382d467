"""The evidence of tempered mixtures: where draws come from, effective sizes, and refusals.

Values against sums over all labels are in ``infer/tempered``.
"""

import jax
import numpy as np
import pytest
from helpers.kernel_tests import run_chains
from numpyro.infer import MCMC

from numpyro_rankings import Draws, Rankings, Run, log_evidence, open_run, to_inference_data
from numpyro_rankings.infer import PlackettLuceGibbs, TemperedMixture
from numpyro_rankings.posterior.draws import LADDER_FIELDS
from numpyro_rankings.posterior.ladders import Ladder, log_evidences

RANKINGS = Rankings.from_orderings(
    [[0, 1, 2], [2, 1, 0], [1]], num_items=3, items=["a", "b", "c"], counts=[9, 6, 5]
)


def kernel(**settings):
    return TemperedMixture("plackett-luce", 2, num_temperatures=5, num_steps=8, **settings)


@pytest.fixture(scope="module")
def mcmc():
    return run_chains(kernel(), RANKINGS, seed=0, num_warmup=50, num_samples=200, num_chains=2)


def test_every_source_of_the_draws_has_the_same_evidence(mcmc, tmp_path):
    expected = log_evidence(mcmc)
    assert expected.standard_error < 0.5
    assert log_evidence(to_inference_data(mcmc, RANKINGS)) == pytest.approx(expected, rel=1e-5)
    settings = {"key": jax.random.key(1), "num_chains": 2, "num_warmup": 20}
    run = Run(kernel(), RANKINGS, **settings, store=tmp_path / "store")
    run.extend(40)
    assert log_evidence(run) == log_evidence(run.as_mcmc())
    run.close()
    stored = open_run(tmp_path / "store")
    assert log_evidence(stored) == pytest.approx(log_evidence(run), rel=1e-5)
    for source in (mcmc, to_inference_data(mcmc, RANKINGS), run, stored):
        assert log_evidence(Draws.of(source)) == log_evidence(source)
    first = Draws.of(mcmc).take(np.arange(150))
    shorter = to_inference_data(mcmc, RANKINGS).isel(draw=slice(150))
    assert log_evidence(first) == pytest.approx(log_evidence(shorter), rel=1e-5)


def test_the_fields_of_a_ladder_share_their_axes_in_arviz(mcmc):
    stats, fields = to_inference_data(mcmc, RANKINGS)["sample_stats"], mcmc.get_extra_fields(True)
    for name in (*LADDER_FIELDS, "rejection"):
        axis, number = ("rung_pair", 4) if name == "rejection" else ("rung", 5)
        assert stats[name].dims == ("chain", "draw", axis)
        assert stats[axis].values.tolist() == list(range(number))
        np.testing.assert_array_equal(stats[name], fields[name])
    assert set(stats.dims) == {"chain", "draw", "rung", "rung_pair"}
    assert stats["barrier"].dims == stats["round_trips"].dims == ("chain", "draw")


def test_the_evidence_on_the_way_goes_from_nothing_to_that_of_the_model(mcmc):
    sizes = [1e-3, 0.5, 2.0, 7.0, 20.0]
    values = [log_evidence(mcmc, size).value for size in sizes]
    assert values[0] == pytest.approx(0, abs=1e-2)
    assert np.all(np.diff(values) < 0)
    assert values[-1] == pytest.approx(log_evidence(mcmc).value, abs=1e-4)


def test_a_normal_model_has_its_own_evidence():
    # x ~ N(0, 1), log likelihood -λ x² / 2: Z(z) is (1 + λ z)^(-1/2), and draws are independent
    rng, scale, powers = np.random.default_rng(0), 9.0, np.array([0.0, 0.1, 0.4, 1.0])
    ladders = []
    for _ in range(4):
        x = rng.normal(size=(5000, 4)) / np.sqrt(1 + scale * powers)
        log_likelihoods = -0.5 * scale * x**2
        zeros = np.zeros_like(x)
        ladders.append(Ladder(1, powers, 50 * powers, np.ones(4), log_likelihoods, zeros))
    sizes = [2.0, 5.0, 12.0, 20.0, 35.0, 50.0]
    # a draw of the prior may give the data probability 0
    ladders[0].log_likelihoods[7, 0] = -1e30
    values, errors = log_evidences(ladders, sizes)
    expected = -0.5 * np.log1p(scale * np.array(sizes) / 50)
    assert np.all(errors < 0.01)
    assert np.all(np.abs(values - expected) < 5 * errors)


def test_a_second_leg_changes_the_concentration_of_the_shares():
    # one share of two is uniform under κ = 1: the likelihood is 1, and the evidence is 1
    rng, kappas = np.random.default_rng(1), np.array([3.0, 3.0, 2.0, 1.0])
    share = rng.beta(kappas, kappas, size=(4000, 4))
    log_shares = np.log(share) + np.log1p(-share)
    powers = np.array([0.0, 1.0, 1.0, 1.0])
    ladder = Ladder(2, powers, 10 * powers, kappas, np.zeros_like(share), log_shares)
    (value,), (error,) = log_evidences([ladder], None)
    assert abs(value) < 5 * error < 0.1
    (on_the_way,), _ = log_evidences([ladder], [10.0])
    assert on_the_way == pytest.approx(0, abs=1e-6)


def test_what_has_no_evidence(mcmc):
    for samples in (mcmc.get_samples(), Draws.of(mcmc.get_samples())):
        with pytest.raises(TypeError, match="and not only the samples: these have no rung_power"):
            log_evidence(samples)
    gibbs = run_chains(PlackettLuceGibbs(), RANKINGS, seed=0, num_warmup=1, num_samples=30)
    with pytest.raises(TypeError, match="draws of a TemperedMixture"):
        log_evidence(gibbs)
    for size in (0, -1, 20.1, np.nan):
        with pytest.raises(ValueError, match="at most 20, where the ladder ends"):
            log_evidence(mcmc, size)
    few = run_chains(kernel(), RANKINGS, seed=0, num_warmup=5, num_samples=19)
    with pytest.raises(ValueError, match="at least 20 draws, got 19"):
        log_evidence(few)


def test_draws_of_the_warmup_are_refused():
    mcmc = MCMC(kernel(), num_warmup=40, num_samples=20, progress_bar=False)
    mcmc.warmup(jax.random.key(0), RANKINGS, collect_warmup=True)
    with pytest.raises(ValueError, match="after the warm-up"):
        log_evidence(mcmc)
