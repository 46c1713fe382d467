"""Every kernel through the same tests: density, chains, resume, blocks, bad input."""

import math
import os
import pickle
import subprocess
import sys
import textwrap
from functools import lru_cache
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from helpers.chains import sampled
from helpers.densities import log_density_at
from helpers.enumeration import MallowsPosterior, discrepancies
from helpers.kernel_tests import assert_log_joint_is_the_density, each_of, run_chains
from helpers.no_warnings import no_warnings
from helpers.ranking_kernels import (
    COUNTS,
    GAMMA,
    KERNELS,
    LISTS,
    MALLOWS,
    NU,
    PER_STAGE,
    R,
    assert_same_draws,
    sampler,
    table,
)
from helpers.refusals import assert_refused
from jax import random
from numpyro.diagnostics import split_gelman_rubin
from numpyro.infer import MCMC
from scipy import stats

import numpyro_rankings.distributions as rd
from numpyro_rankings import Rankings, to_inference_data
from numpyro_rankings.infer import BetaGibbs, SliceGibbs
from numpyro_rankings.infer.base import log_joint_of


def conjugate(theta, left):
    log_psi = np.log(np.exp(-np.outer(range(left + 1), theta)).sum(0))
    return -NU * (R[3 - left] * theta + log_psi)


def per_stage(theta, left):
    return stats.gamma([2.0, 1.0, 3.0][3 - left], scale=[1.0, 0.5, 1 / 1.5][3 - left]).logpdf(theta)


def log_normal(theta, left):
    return stats.lognorm(1.0).logpdf(theta)


# their log prior of θ, alpha (or shape and rate of its Gamma prior), components, one θ or many
POSTERIORS = {
    "slice-sequential": (conjugate, 1.3, None, False),
    "slice-parallel": (conjugate, (6.0, 6.0), None, False),
    "slice-parallel-births": (conjugate, 0.7, None, False),
    "slice-finite": (conjugate, (2.0, 1.0), 3, False),
    "slice-finite-parallel": (conjugate, 1.5, 3, False),
    "slice-per-stage": (per_stage, 1.0, None, False),
    "slice-tied": (log_normal, (2.0, 1.0), None, True),
    "slice-one-population": (per_stage, 1.0, 1, False),
    "beta": (conjugate, (2.0, 1.0), None, False),
    "beta-finite": (conjugate, 1.5, 3, False),
}
QUICK = (
    "slice-one-population",
    "plackett-luce",
    "plackett-luce-mixture",
    "tempered-plackett-luce",
)


each_kernel, each_mallows = each_of(KERNELS, QUICK), each_of(MALLOWS, QUICK)


def size_of(name):
    """Chains and draws, which for the Mallows kernels serve for their enumeration test too."""
    return (100, 100) if name in MALLOWS else (2, 12)


# without a search for a start, which is tested in infer/plackett_luce and takes long to compile
STARTS = {
    "plackett-luce-mixture": {
        "assignments": np.tile([0, 0, 1, 2, 1], (2, 1)),
        "weights": np.random.default_rng(0).dirichlet(np.ones(4), (2, 3)),
    }
}


@lru_cache
def fitted(name):
    chains, draws = size_of(name)
    return sampled(
        KERNELS[name](),
        table(),
        key=random.key(1),
        init_params=STARTS.get(name),
        # draws of one population of five rankings are all but independent, at lag 1 by 0.09
        num_warmup=10 if name == "slice-one-population" else 50 if name in MALLOWS else 1,
        num_samples=draws,
        num_chains=chains,
    )


@each_mallows
def test_posterior_by_enumeration(name):
    log_prior, alpha, num_components, tied = POSTERIORS[name]
    lists = [one for one, count in zip(LISTS, COUNTS, strict=True) for _ in range(count)]
    twin = MallowsPosterior(lists, 4, log_prior, tied)
    samples = fitted(name).get_samples(group_by_chain=True)
    assert not np.any(fitted(name).get_extra_fields()["overflow"])
    found = discrepancies(twin.indicators(samples), twin.expectations(alpha, num_components))
    # 80 quantities with 99 degrees of freedom: P(any |t| > 6) is about 3e-6
    assert max(found.values()) < 6.0, found


@each_kernel
def test_log_joint_is_the_density_of_the_model(name):
    assert_log_joint_is_the_density(fitted(name), table(), rel=1e-4, abs=1e-3)


@each_kernel
def test_counts_are_rankings_written_out(name):
    """The posterior of a row with a count is that of so many rows: so are log joints."""
    samples, kernel = fitted(name).get_samples(), KERNELS[name]()
    every = [one for one, count in zip(LISTS, COUNTS, strict=True) for _ in range(count)]
    written_out = Rankings.from_orderings(every, num_items=4)
    assert len(written_out.counts) == sum(COUNTS) > len(table().counts)
    potential = jax.jit(lambda z: kernel._potential(SimpleNamespace(z=z), (written_out,), {}))
    for draw in np.linspace(0, len(samples["log_joint"]) - 1, 4, dtype=int):
        z = {site: value[draw] for site, value in samples.items()}
        found = -float(potential(z))
        assert float(z["log_joint"]) == pytest.approx(found, rel=1e-5, abs=1e-4)


@each_mallows
def test_draws_are_consistent(name):
    kernel = KERNELS[name]()
    samples = {site: value[::100] for site, value in fitted(name).get_samples().items()}
    total, size, slots = math.prod(size_of(name)) // 100, sum(COUNTS), kernel.num_slots
    shapes = {
        "assignments": (size,),
        "center": (slots, 4),
        "concentration": (slots, 3),
        "cluster_sizes": (slots,),
        "num_clusters": (),
        "alpha": (),
        "log_joint": (),
        "log_joint_rest": (),
    }
    if name == "slice-tied":
        shapes["shared_concentration"] = (slots,)
    assert {site: value.shape for site, value in samples.items()} == {
        site: (total, *shape) for site, shape in shapes.items()
    }
    labels = np.asarray(samples["assignments"], int)
    assert bool(rd.constraints.canonical_labels(labels).all())
    for row, sizes, clusters in zip(
        labels, samples["cluster_sizes"], samples["num_clusters"], strict=True
    ):
        np.testing.assert_array_equal(np.bincount(row, minlength=slots), sizes)
        assert clusters == row.max() + 1
    centers = np.sort(samples["center"], axis=-1)
    assert np.array_equal(centers, np.broadcast_to(np.arange(4), centers.shape))
    assert np.all(np.isfinite(samples["concentration"])) and np.all(samples["concentration"] >= 0)
    assert np.all(samples["alpha"] > 0)
    if name == "slice-tied":
        theta = np.asarray(samples["concentration"])
        np.testing.assert_array_equal(theta, np.broadcast_to(theta[..., :1], theta.shape))
    accept = fitted(name).get_extra_fields()["accept_prob"]
    assert np.all((accept >= 0) & (accept <= 1.0 + 1e-6))


@pytest.mark.parametrize("name", ["plackett-luce", "plackett-luce-mixture"])
def test_draws_of_weights_are_consistent(name):
    samples = fitted(name).get_samples()
    total, size = math.prod(size_of(name)), sum(COUNTS)
    shapes = {"weights": (4,), "log_joint": (), "log_joint_rest": ()}
    if "mixture" in name:
        shapes = {
            "weights": (3, 4),
            "assignments": (size,),
            "cluster_sizes": (3,),
            "num_clusters": (),
            "alpha": (),
            "log_joint": (),
            "log_joint_rest": (),
        }
        labels = np.asarray(samples["assignments"], int)
        assert bool(rd.constraints.canonical_labels(labels).all())
        for row, sizes in zip(labels, samples["cluster_sizes"], strict=True):
            np.testing.assert_array_equal(np.bincount(row, minlength=3), sizes)
        np.testing.assert_array_equal(samples["num_clusters"], labels.max(1) + 1)
    assert {site: value.shape for site, value in samples.items()} == {
        site: (total, *shape) for site, shape in shapes.items()
    }
    weights = np.asarray(samples["weights"])
    assert np.all(weights > 0)
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "method", "jit"),
    [
        ("plackett-luce", "sequential", False),
        pytest.param("plackett-luce-mixture", "sequential", False, marks=pytest.mark.slow),
        pytest.param("plackett-luce-mixture", jax.vmap, True, marks=pytest.mark.slow),
        pytest.param("dp-plackett-luce", "sequential", True, marks=pytest.mark.slow),
    ],
)
def test_chain_methods_agree(name, method, jit):
    chains, draws = size_of(name)
    settings = {"num_chains": chains, "num_samples": draws, "jit_model_args": jit}
    mcmc = sampler(KERNELS[name](), method, **settings)
    mcmc.run(random.key(1), table(), init_params=STARTS.get(name))
    assert_same_draws(mcmc.get_samples(), fitted(name).get_samples(), 0.5)


PARALLEL = """
    import jax
    jax.config.update("jax_num_cpu_devices", 2)
    import numpy as np
    from numpyro.infer import MCMC
    from helpers.ranking_kernels import KERNELS, assert_same_draws, sampler, table
    draws = []
    for method in ("parallel", "sequential"):
        mcmc = sampler(KERNELS["plackett-luce-mixture"](), method, num_chains=2)
        mcmc.run(jax.random.key(1), table())
        draws.append(mcmc.get_samples())
    assert_same_draws(*draws)
    print("same draws")
"""


def run_script(script):
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONPATH": ":".join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout


@pytest.mark.slow
def test_parallel_chains_on_two_devices():
    assert "same draws" in run_script(PARALLEL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ("slice-sequential", "plackett-luce-mixture", "generalised-gamma-process")
)
def test_resume_is_the_single_long_run(name, capsys, monkeypatch):
    """Warm-up, run and resume are three thirds of one stream, bit for bit; and what is shown."""
    for variable in ("CI", "PYTEST_XDIST_WORKER"):  # where they are set, NumPyro shows no progress
        monkeypatch.delenv(variable, raising=False)
    traced = name in MALLOWS  # whose data may be arguments of the compiled program
    mcmc = MCMC(KERNELS[name](), num_warmup=6, num_samples=6, jit_model_args=traced)
    parts = []
    mcmc.warmup(random.key(2), table(), collect_warmup=True)
    parts.append(mcmc.get_samples())
    mcmc.run(mcmc.post_warmup_state.rng_key, table())
    parts.append(mcmc.get_samples())
    mcmc = pickle.loads(pickle.dumps(mcmc))
    mcmc.post_warmup_state = mcmc.last_state
    mcmc.run(mcmc.post_warmup_state.rng_key, table())
    parts.append(mcmc.get_samples())
    shown = capsys.readouterr().err
    assert ", log joint -" in shown
    long = MCMC(KERNELS[name](), num_warmup=0, num_samples=18, jit_model_args=traced)
    long.run(random.key(2), table())
    for site, value in long.get_samples().items():
        joined = np.concatenate([part[site] for part in parts])
        np.testing.assert_array_equal(joined, value, err_msg=site)


@each_kernel
def test_kernels_are_pickled(name):
    mcmc = fitted(name)
    again = pickle.loads(pickle.dumps(mcmc))
    assert_same_draws(again.get_samples(), mcmc.get_samples())
    state = jax.tree.map(lambda x: x[0], again.last_state)
    assert np.isfinite(log_density_at(again.sampler.model, table())(state.z))
    line = again.sampler.get_diagnostics_str(state)
    assert line.endswith(f"log joint {log_joint_of(state.z):.1f}")
    assert ("num_clusters" in state.z) == line.startswith(f"{state.z.get('num_clusters')} clusters")


@each_kernel
def test_weights_equal_expansion_in_the_density(name):
    """Also where a kernel groups identical rankings, which it does when they are many."""
    kernel = fitted(name).sampler
    state = jax.tree.map(lambda x: x[-1], fitted(name).last_state)
    many = Rankings.from_orderings(LISTS, num_items=4, counts=[40 * k for k in COUNTS])
    z = state.z
    if "assignments" in z:
        z = z | {"assignments": jnp.repeat(z["assignments"], 40)}
    refresh = jax.jit(lambda z, data: kernel.refresh(state._replace(z=z), (data,), {}))
    expected = log_density_at(kernel.model, many)(z)
    for data in (many, many.expand()):
        found = -refresh(z, data).potential_energy
        assert float(found) == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize("init", [pytest.param("nearest", marks=pytest.mark.slow), "random"])
def test_start_values_are_taken(init):
    rng = np.random.default_rng(0)
    params = {
        "assignments": np.array([0, 0, 1, 2, 2]),
        "center": rng.permuted(np.tile(np.arange(4), (5, 1)), axis=1),
        "concentration": np.arange(15.0).reshape(5, 3) / 5,
        "alpha": 2.5,
    }
    # of a quick test one program has to do: sites that are not given are started as ever
    subsets = [("assignments", "concentration", "alpha")]
    subsets += [] if init == "random" else [tuple(params), ("alpha",)]
    kernel = SliceGibbs(GAMMA, max_clusters=5, init=init)
    for names in subsets:
        given = {name: params[name] for name in names}
        state = kernel.init(random.key(5), 0, given, (table(),), {})
        for name, value in given.items():
            np.testing.assert_array_equal(state.z[name], np.asarray(value, np.float32))
        assert np.isfinite(state.potential_energy)
        np.testing.assert_array_equal(np.sort(state.z["center"]), np.tile(np.arange(4), (5, 1)))


def test_the_search_for_a_start_of_a_mixture_is_traced():
    """Its shapes and types; that it finds a start is tested in infer/plackett_luce."""
    kernel = KERNELS["plackett-luce-mixture"]()
    z = jax.eval_shape(lambda key: kernel.init(key, 0, None, (table(),), {}).z, random.key(0))
    assert (z["weights"].shape, z["assignments"].shape) == ((3, 4), (5,))


@pytest.mark.slow
def test_overflow_is_told():
    kernel = SliceGibbs(50.0, max_clusters=2, num_marginal_steps=0)
    mcmc = run_chains(kernel, table(), seed=6, num_warmup=1, num_samples=5)
    with pytest.warns(UserWarning, match="max_clusters"):
        to_inference_data(mcmc, table(), log_likelihood=False)
    assert np.any(mcmc.get_extra_fields()["overflow"])
    assert np.all(np.asarray(mcmc.get_samples()["assignments"]) < 2)


def test_no_overflow_no_warning():
    with no_warnings(UserWarning):
        overflow = fitted("slice-one-population").get_extra_fields()["overflow"]
    assert not np.any(overflow)


def test_to_arviz():
    import arviz as az

    posterior = to_inference_data(fitted("slice-one-population"), table())["posterior"]
    assert posterior["concentration"].shape == (*size_of("slice-one-population"), 1, 3)
    # ArviZ 1.x leaves the log likelihood out unless asked
    idata = az.from_numpyro(fitted("slice-one-population"), log_likelihood=True)
    assert idata.posterior["center"].shape == (*size_of("slice-one-population"), 1, 4)
    assert idata.posterior["concentration"].shape == (*size_of("slice-one-population"), 1, 3)
    shape = *size_of("slice-one-population"), sum(COUNTS)
    assert idata.log_likelihood["rankings"].shape[:3] == shape
    np.testing.assert_allclose(idata.sample_stats["lp"], idata.posterior["log_joint"], rtol=1e-6)


# -- bad input -----------------------------------------------------------------------------------

BAD_SETTINGS = {
    "alpha zero": (SliceGibbs, {"alpha": 0.0}, "alpha must be a positive number"),
    "alpha negative": (BetaGibbs, {"alpha": -1.0}, "alpha must be a positive number"),
    "alpha not a number": (SliceGibbs, {"alpha": float("nan")}, "alpha must be"),
    "alpha an array": (SliceGibbs, {"alpha": [1.0, 2.0]}, "alpha must be"),
    "nu negative": (SliceGibbs, {"nu": -1.0}, "nu must be a positive number"),
    "r with a zero": (BetaGibbs, {"r": [1.0, 0.0]}, "r must be a positive number"),
    "no slots": (SliceGibbs, {"max_clusters": 0}, "max_clusters must be a positive whole number"),
    "alpha prior negative": (SliceGibbs, {"alpha": dist.Normal(0.0, 1.0)}, "negative numbers"),
    "alpha prior discrete": (SliceGibbs, {"alpha": dist.Poisson(1.0)}, "alpha must be a cont"),
    "alpha prior wide": (BetaGibbs, {"alpha": PER_STAGE}, "alpha must be a scalar"),
    "theta prior negative": (
        SliceGibbs,
        {"concentration_prior": dist.Uniform(-0.5, 2.0)},
        "concentration_prior must give no mass to negative",
    ),
    "theta prior no prior": (SliceGibbs, {"concentration_prior": 3.0}, "must be a distribution"),
    "births": (SliceGibbs, {"num_births": -1}, "num_births must be a whole number"),
    "center updates": (BetaGibbs, {"num_center_updates": 0}, "num_center_updates must be"),
    "reinsertions": (BetaGibbs, {"num_reinsertions": 0.5}, "num_reinsertions must be"),
    "marginal steps": (SliceGibbs, {"num_marginal_steps": True}, "num_marginal_steps must be"),
    "slots in words": (SliceGibbs, {"max_clusters": "many"}, "max_clusters must be"),
    "no slots given": (SliceGibbs, {"max_clusters": None}, "max_clusters must be"),
    "nu in words": (BetaGibbs, {"nu": "one"}, "nu must be a positive number"),
    "half a slot": (BetaGibbs, {"max_clusters": 1.5}, "max_clusters must be"),
    "no components": (SliceGibbs, {"num_components": 0}, "num_components must be"),
    "tied without a prior": (SliceGibbs, {"tied": True}, "tied=True needs a concentration_prior"),
    "tied with many": (
        SliceGibbs,
        {"tied": True, "concentration_prior": PER_STAGE},
        "must be a scalar distribution",
    ),
    "assignment": (SliceGibbs, {"assignment": "gibbs"}, "'sequential' or 'parallel', not 'gibbs'"),
    "init": (BetaGibbs, {"init": "best"}, "init is one of"),
    "sites": (SliceGibbs, {"sites": {"labels": "z"}}, "sites can name"),
}


@pytest.mark.parametrize("case", BAD_SETTINGS)
def test_bad_settings(case):
    kernel, settings, message = BAD_SETTINGS[case]
    with pytest.raises(ValueError, match=message):
        kernel(**settings)


def test_bad_data():
    offered = np.array([[1, 1, 0], [0, 1, 1]], bool)
    subsets = Rankings.from_orderings([[0], [1]], num_items=3, choice_sets=offered)

    def run(kernel, *args):
        kernel.init(random.key(0), 0, None, args, {})

    assert_refused(
        run,
        ("choice sets", SliceGibbs(), subsets),
        ("one entry for each of the 3 stages", SliceGibbs(nu=[1.0, 2.0]), table()),
        ("one entry for each of the 3 stages", BetaGibbs(r=[1.0, 2.0, 1.0, 1.0]), table()),
        ("each of the 3 stages", SliceGibbs(concentration_prior=dist.Gamma(jnp.ones(2))), table()),
        ("univariate", SliceGibbs(concentration_prior=dist.Dirichlet(jnp.ones(3))), table()),
    )
    with pytest.raises(TypeError, match="must be a Rankings, got ArrayImpl"):
        run(SliceGibbs(), jnp.zeros((3, 4), jnp.int32))


IN_DOUBLE_PRECISION = """
import jax
from numpyro.infer import MCMC
from numpyro_rankings import Rankings
from numpyro_rankings.infer import (
    BetaGibbs,
    DPPlackettLuceGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
)

rankings = Rankings.from_orderings([[0, 1, 2], [0], [3, 1], [3, 2, 0, 1]], num_items=4)
for kernel in (
    SliceGibbs(assignment="parallel", max_clusters=32, num_marginal_steps=2),
    BetaGibbs(max_clusters=6, num_marginal_steps=0),
    PlackettLuceGibbs(num_components=3, num_marginal_steps=2),
    GammaProcessPlackettLuceGibbs(sigma=0.5),
    DPPlackettLuceGibbs(max_clusters=30, num_marginal_steps=0),
):
    mcmc = MCMC(kernel, num_warmup=1, num_samples=3, progress_bar=False)
    mcmc.run(jax.random.key(0), rankings)
    assert mcmc.get_samples()["log_joint"].dtype == "float64"
    assert "center" not in mcmc.get_samples() or mcmc.get_samples()["center"].dtype == "int32"
"""


@pytest.mark.slow
def test_double_precision():
    """In a process of its own; a type that does not fit would be a warning of JAX's."""
    command = [sys.executable, "-W", "error::FutureWarning", "-c", IN_DOUBLE_PRECISION]
    done = subprocess.run(
        command, env=os.environ | {"JAX_ENABLE_X64": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


# -- chains that agree ---------------------------------------------------------------------------


@pytest.mark.slow
def test_random_starts_reach_the_mode():
    """16 starts at uniform orders of 15 items, one population of 500 rankings, θ = 0.3."""
    n, size = 15, 500
    center = random.permutation(random.key(7), n).astype(jnp.int32)
    lists = rd.GeneralizedMallows(center, jnp.full(n - 1, 0.3)).sample(random.key(8), (size,))
    kernel = SliceGibbs(num_components=1, init="random")
    data = Rankings.from_orderings(np.asarray(lists), num_items=n)
    mcmc = run_chains(kernel, data, seed=9, num_warmup=100, num_samples=200, num_chains=16)
    samples = mcmc.get_samples(group_by_chain=True)
    powers = [np.unique(chain[:, 0], axis=0, return_counts=True) for chain in samples["center"]]
    modes = np.array([centers[np.argmax(counts)] for centers, counts in powers])
    assert np.array_equal(modes, np.tile(modes[0], (16, 1)))
    assert split_gelman_rubin(np.asarray(samples["log_joint"])) < 1.05
    assert split_gelman_rubin(np.asarray(samples["concentration"][..., 0, 0])) < 1.05
