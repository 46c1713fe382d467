"""Runs: the draws of any kernel, in chunks, until they suffice, stopped and resumed."""

import functools
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from helpers.no_warnings import no_warnings
from helpers.toy_kernel import DATA, Autoregressive, change_root, posterior, toy_run
from jax import random
from numpyro.infer import HMC, MCMC, NUTS, Gibbs
from numpyro.infer.mcmc import MCMCKernel

from numpyro_rankings import (
    Rankings,
    Run,
    StoreError,
    diagnostics_table,
    open_run,
    to_inference_data,
)
from numpyro_rankings.distributions import TopTPlackettLuce
from numpyro_rankings.infer import CollapsedGibbs, PlackettLuceGibbs
from numpyro_rankings.infer.base import GibbsKernel
from numpyro_rankings.infer.not_finite import NotFiniteError
from numpyro_rankings.posterior.convergence import r_hats
from numpyro_rankings.posterior.diagnostics import verdict
from numpyro_rankings.run.convert import as_arrays
from numpyro_rankings.run.kernels import KernelTraits
from numpyro_rankings.run.loop import SweepLoop, _Compiling
from numpyro_rankings.run.monitor import Facts, Monitor

pytestmark = pytest.mark.usefixtures("usual_signals")

FULL = Rankings.from_orderings([[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]], num_items=3)
LISTS = Rankings.from_orderings([[0, 1, 2], [2, 1, -1], [1, 0, 2], [2, 0, -1]], num_items=4)


def assert_same(first, second):
    assert set(first) == set(second)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


@pytest.fixture(scope="module")
def alone():
    """A run of 60 draws that is left alone."""
    run = toy_run()
    run.extend(60)
    return run.get_samples(group_by_chain=True)


def test_draws_are_those_of_mcmc(alone):
    mcmc = MCMC(Autoregressive(), num_warmup=0, num_samples=60, num_chains=4, chain_method=jax.vmap)
    mcmc.run(random.key(1), DATA)
    expected = mcmc.get_samples(group_by_chain=True)
    for name in ("mu", "pair"):
        np.testing.assert_allclose(alone[name], expected[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("chunks", [(60,), (1, 29, 30), (7,) * 8 + (4,)])
def test_chunks_do_not_matter(alone, chunks):
    run = toy_run()
    for sweeps in chunks:
        run.extend(sweeps)
    assert_same(run.get_samples(group_by_chain=True), alone)
    assert (run.num_draws, run.num_sweeps) == (60, 60)


def test_thinning_and_burn_in(alone):
    run = toy_run(thinning=3, burn_in=0.25)
    run.extend(60)
    kept = run.get_samples(group_by_chain=True)
    assert (run.num_draws, run.first_draw) == (20, 5)
    np.testing.assert_array_equal(kept["mu"], alone["mu"][:, 2::3][:, 5:])
    few = run.get_samples(group_by_chain=True, max_draws=6)
    np.testing.assert_array_equal(few["mu"], kept["mu"][:, ::3])
    assert run.as_mcmc(max_draws=6).get_samples(group_by_chain=True)["pair"].shape == (4, 5, 2)
    flat = run.get_samples()
    assert flat["pair"].shape == (60, 2)
    with pytest.raises(ValueError, match="multiple of the thinning"):
        run.extend(4)


@pytest.mark.parametrize("num_devices", [2, 4])
def test_chains_on_devices(alone, num_devices):
    run = toy_run(devices=jax.devices()[:num_devices])
    run.extend(60)
    found = run.get_samples(group_by_chain=True)
    for name in alone:  # of another program, which may round otherwise
        np.testing.assert_allclose(found[name], alone[name], rtol=1e-4, atol=1e-5)
    assert len(run._state.z["mu"].sharding.device_set) == num_devices


def test_superchains_start_at_the_same_points():
    run = toy_run(num_chains=12, superchains=3)
    start = np.asarray(run._state.z["mu"]).reshape(3, 4)
    assert (start == start[:, :1]).all() and len(np.unique(start)) == 3
    run.extend(1)
    assert len(np.unique(run.get_samples()["mu"])) == 12
    run.extend(39)
    draws = run.get_samples(group_by_chain=True)["mu"]
    np.testing.assert_allclose(run.diagnostics().loc["mu", "r_hat"], r_hats(draws[None], 3)[0])
    assert run.until(rhat=1.05, ess=100, minutes=1)
    for settings in ({"superchains": 1}, {"superchains": 5}, {"superchains": 24}):
        with pytest.raises(ValueError, match="superchains"):
            toy_run(num_chains=12, **settings)


def test_it_stops_when_the_draws_suffice():
    run = toy_run(Autoregressive(0.9), burn_in=0.5)
    assert run.until(rhat=1.02, ess=300, minutes=5)
    table = run.diagnostics()
    assert list(table.index) == ["mu", "pair[1]", "pair[2]"]
    assert (table["r_hat"] <= 1.02).all()
    assert (table[["ess_bulk", "ess_tail"]] >= 300).all(axis=None)
    mean, sd = posterior(DATA)
    error = table.loc["mu", "mean"] - mean
    assert abs(error) < 5 * sd / np.sqrt(table.loc["mu", "ess_bulk"])


def test_it_stops_when_the_time_is_over(clock):
    run = toy_run()
    assert not run.until(rhat=1 + 1e-9, minutes=1, after_chunk=lambda _: clock.step(25))
    before = run.num_draws
    assert before == 1 + 16 + 17
    assert not run.until(minutes=0)
    assert run.num_draws == before


def test_chunks_take_two_seconds(clock, monkeypatch):
    """A draw takes 1/16 of a second here; at first a chunk at most doubles the draws."""
    compiled, lengths = SweepLoop._compiled, []

    def slowly(loop, state):
        def program(state, number, thinning, arrays):
            lengths.append(int(number))
            clock.step(int(number) * int(thinning) / 32)
            return compiled(loop, state)(state, number, thinning, arrays)

        return program

    monkeypatch.setattr(SweepLoop, "_compiled", slowly)
    run = toy_run(thinning=2)
    run.extend(2 * 100)
    assert lengths == [1, 16, 17, 32, 32, 2]
    assert run.seconds == 100 / 16


def test_ctrl_c_waits_for_the_end_of_a_chunk(alone, capfd):
    run = toy_run()
    with pytest.raises(KeyboardInterrupt):
        run.extend(60, after_chunk=lambda run: signal.raise_signal(signal.SIGINT))
    assert 0 < run.num_draws < 60
    assert "Ctrl-C: stopping after this chunk" in capfd.readouterr().err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    run.extend(60 - run.num_draws)
    assert_same(run.get_samples(group_by_chain=True), alone)


def test_a_second_ctrl_c_does_not_wait():
    def twice(run):
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        toy_run().extend(60, after_chunk=twice)


def test_signals_of_the_user_are_left_alone(alone):
    """Those that are ignored, those with a handler, and those that end a process."""
    own = []
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _: own.append(number))

    def raise_both(_):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL

    run = toy_run()
    run.extend(60, after_chunk=raise_both)
    assert_same(run.get_samples(group_by_chain=True), alone)
    assert set(own) == {signal.SIGTERM}
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


# ---------------------------------------------------------------------------------------------
# Other kernels
# ---------------------------------------------------------------------------------------------

EFFECTS = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def eight_schools(effects, errors):
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = numpyro.sample("tau", dist.HalfCauchy(5.0))
    with numpyro.plate("schools", len(effects)):
        z = numpyro.sample("z", dist.Normal())
        theta = numpyro.deterministic("theta", mu + tau * z)
        numpyro.sample("effects", dist.Normal(theta, errors), obs=effects)


def composed(rankings, num_items):
    """Weights of Plackett–Luce, whose prior has an unknown concentration."""
    concentration = numpyro.sample("concentration", dist.Gamma(2.0, 1.0))
    weights = numpyro.sample("weights", dist.Dirichlet(concentration * jnp.ones(num_items)))
    with numpyro.plate("judge", len(rankings)):
        lists = rankings.orderings[rankings.row_index]
        numpyro.sample("list", TopTPlackettLuce(jnp.log(weights), num_items), obs=lists)


def composed_kernel():
    block = PlackettLuceGibbs(model=composed, sites={"weights": "weights"})
    return Gibbs([(block, ["weights"]), (NUTS(composed), None)])


# to search for a start takes long to compile
START = {"init_params": {"weights": np.full((2, 4), 0.25)}}

CASES = {
    "own": (lambda: PlackettLuceGibbs(), (LISTS,), START),
    "partition": (lambda: CollapsedGibbs(_family(), alpha=1.0), (DATA[:, None],), {}),
    "composed": (composed_kernel, (FULL, 3), {"num_warmup": 10}),
    "nuts": (lambda: NUTS(eight_schools), (EFFECTS, ERRORS), {"num_warmup": 30}),
    # adapts as NUTS does, and compiles faster
    "hmc": (
        lambda: HMC(eight_schools, num_steps=3, trajectory_length=None),
        (EFFECTS, ERRORS),
        {"num_warmup": 30},
    ),
}


def _family():
    from numpyro_rankings.components import GaussianMean

    return GaussianMean(prior_scale=1.0, noise_scale=1.0)


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory):
    """By the name of a case: a run of 24 draws, and a copy of its store from the middle of it."""

    @functools.cache
    def make_run(name):
        make, data, settings = CASES[name]
        store = tmp_path_factory.mktemp(name) / "a.run"
        settings = {"burn_in": 0.0, "num_chains": 2, "store": store, **settings}
        kernel = make()
        with lowered_sweeps() as lowered:
            run = Run(kernel, *data, key=random.key(3), **settings)
            # the state itself was not there yet
            assert lowered == ([jax.ShapeDtypeStruct] if isinstance(kernel, GibbsKernel) else [])
            if name in ("nuts", "hmc"):  # in the middle of its warm-up
                with pytest.raises(KeyboardInterrupt):
                    run.extend(24, after_chunk=lambda run: signal.raise_signal(signal.SIGINT))
                assert run.num_draws == 0 < run.num_sweeps < 30
            else:
                run.extend(10)
            part = Path(shutil.copytree(store, store.with_name("part.run")))
            run.extend(24 - run.num_draws)
            assert len(lowered) == 1
        return run, part

    return make_run


@contextmanager
def lowered_sweeps():
    """The types of the states for which sweeps are compiled."""
    lowered, real = [], SweepLoop._lower

    def lower(loop, state):
        lowered.append(type(jax.tree.leaves(state)[0]))
        return real(loop, state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SweepLoop, "_lower", lower)
        yield lowered


SLOW_CASES = ("partition", "composed", "nuts")
SLOW_CASES = [pytest.param(name, marks=pytest.mark.slow) for name in SLOW_CASES]


@pytest.mark.parametrize("name", ["own", "hmc", *SLOW_CASES])
def test_resumed_runs_are_the_same(name, left_alone, tmp_path):
    """And sweeps are compiled once, while the chains start."""
    make, data, settings = CASES[name]
    alone, part = left_alone(name)
    path = Path(shutil.copytree(part, tmp_path / "a.run"))
    with lowered_sweeps() as lowered:
        start = {"init_params": settings.get("init_params")}
        run = Run.resume(path, make(), *data, burn_in=0.0, **start)
        assert run.num_draws == (0 if name in ("nuts", "hmc") else 10)
        assert lowered == []  # only to read, nothing is compiled
        run.extend(24 - run.num_draws)
        assert len(lowered) == 1
    assert_same(run.get_samples(group_by_chain=True), alone.get_samples(group_by_chain=True))
    assert run.num_sweeps == alone.num_sweeps == 24 + settings.get("num_warmup", 0)
    assert run.diagnostics().equals(alone.diagnostics())
    assert run.verdict == alone.verdict
    first, second = run.to_inference_data(), alone.to_inference_data()
    assert first["posterior"].equals(second["posterior"])
    assert ("population_weights" in first["posterior"]) == (name in ("own", "composed"))
    run.close()


KILLED = """
import sys
sys.path.insert(0, {tests!r})
import os, signal, threading
from numpyro_rankings._system import clock
from run.test_run import *
clock.now = lambda: 0.0  # so that the minutes do not run out
make, data, settings = CASES[{name!r}]
run = Run(make(), *data, key=random.key(3), num_chains=2, store={path!r}, **settings)
def kill(run):
    if run.num_draws > 50:  # in the middle of the next chunk, or when it is stored
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGKILL)).start()
run.until(rhat=1 + 1e-9, minutes=5, after_chunk=kill)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nuts", "composed"])
def test_until_killed_and_resumed(name, tmp_path):
    make, data, settings = CASES[name]
    path = str(tmp_path / "a.run")
    code = KILLED.format(tests=str(Path(__file__).parent.parent), name=name, path=path)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    run = Run.resume(path, make(), *data, burn_in=0.0)
    before = run.num_draws
    assert before > 50
    assert run.until(rhat=1.1, ess=100, minutes=5)
    run.extend(20)
    alone = Run(make(), *data, key=random.key(3), burn_in=0.0, num_chains=2, **settings)
    alone.extend(run.num_draws)
    assert run.num_draws > before
    assert_same(run.get_samples(group_by_chain=True), alone.get_samples(group_by_chain=True))
    run.close()


def test_what_is_diagnosed_is_what_reports_diagnose(left_alone):
    run, _ = left_alone("own")
    data = to_inference_data(run.as_mcmc(), LISTS)
    expected = diagnostics_table(data)
    found = run.diagnostics().loc[expected.index]
    assert len(run.diagnostics()) == len(expected)
    np.testing.assert_array_equal(found["note"], expected["note"])
    np.testing.assert_allclose(
        found.drop(columns="note").to_numpy(), expected.drop(columns="note").to_numpy(), rtol=1e-6
    )
    assert run.verdict == verdict(data)
    assert run.to_inference_data()["posterior"].equals(data["posterior"])


def test_the_burn_in_is_as_short_as_the_chains_agree(tmp_path):
    """The eighth or quarter of the draws of which R-hat of the rest is at most 1.01, else half."""
    found = {}
    for persistence, sweeps in ((0.0, 2000), (0.9, 2000), (0.99, 2000), (0.0, 10)):
        run = toy_run(Autoregressive(persistence), burn_in="auto", store=tmp_path / "a.run")
        run.extend(sweeps)
        run.close()
        share = run.first_draw / sweeps
        found[persistence, sweeps] = share
        opened = open_run(tmp_path / "a.run")
        assert opened.first_draw == run.first_draw
        pd.testing.assert_frame_equal(opened.diagnostics(), run.diagnostics())
        assert opened.verdict == run.verdict
        again = open_run(tmp_path / "a.run", burn_in=share)
        pd.testing.assert_frame_equal(again.diagnostics(), run.diagnostics())
        assert again.verdict == run.verdict
        shorter = [x for x in (0.125, 0.25) if x < share]
        for other in shorter if sweeps > 10 else ():
            r_hat = open_run(tmp_path / "a.run", burn_in=other).diagnostics()["r_hat"].max()
            assert r_hat > 1.01
        shutil.rmtree(tmp_path / "a.run")
    assert found[0.0, 2000] == 0.125 and found[0.99, 2000] == found[0.0, 10] == 0.5
    alone = toy_run(Autoregressive(0.0), burn_in="auto", num_chains=1)
    alone.extend(200)
    assert alone.first_draw == 100  # one chain agrees with none
    print(found)


def test_long_runs_are_diagnosed_by_some_of_their_draws(monkeypatch):
    monkeypatch.setattr(Monitor, "LEAST_KEPT", 64)
    run = toy_run(burn_in=0.5)
    for sweeps in (50, 51, 100, 130, 300, 7):
        run.extend(sweeps)
    every = 8  # 638 draws, of which 64 to 128 are kept
    kept = run.get_samples(group_by_chain=True)["mu"][:, 1::every]  # draws 320, 328, …
    assert kept.shape == (4, 40)
    found = run.diagnostics().loc["mu"]
    np.testing.assert_allclose(found["mean"], kept.mean(), rtol=1e-6)
    with pytest.raises(ValueError, match="ess must be at most 128, because diagnostics"):
        run.until(ess=129)


def test_what_labels_index_is_not_diagnosed():
    """Beside a block that draws labels, other arrays may be indexed by them."""
    block = CollapsedGibbs(_family(), 1.0, model=lambda x: None, sites={"assignments": "group"})
    kernel = Gibbs([(block, ["group"]), (NUTS(block.model), None)])
    monitor = Monitor(Facts.of(KernelTraits(kernel), (), {}), None, None)
    rng = np.random.default_rng(0)
    samples = {"group": rng.integers(0, 2, (2, 9, 5)), "scale": rng.random((2, 9))}
    monitor.add(monitor.take({**samples, "means": rng.random((2, 9, 3))}, {}))
    found = [name.split("[")[0] for name in monitor.table(0.0).index]
    assert set(found) == {"scale", "largest_sizes", "partition_entropy"}


MEMORY = """
import gc, sys, tracemalloc
sys.path.insert(0, {tests!r})
from helpers.toy_kernel import Wide, toy_run
from numpyro_rankings.run import loop

assert loop._BUFFER_BYTES == 2**26
loop._BUFFER_BYTES = 2**24
run = toy_run(
    Wide(2500), num_chains=4, store={path!r}, quantities=lambda samples: {{"mu": samples["mu"]}}
)
run.extend(100)
gc.collect()  # garbage counts, and when Python removes it depends on what else was done
tracemalloc.start()
before = tracemalloc.get_traced_memory()[0]
run.extend(2000)
peak = tracemalloc.get_traced_memory()[1]
gc.collect()
after = tracemalloc.get_traced_memory()[0]
tracemalloc.stop()
assert run.diagnostics().loc["mu", "ess_bulk"] > 100
run.close()
print(after - before, peak - before)
"""


def test_memory_stays_flat(tmp_path):
    """Draws of 80 MB go through it; the few numbers that are diagnosed remain.

    A chunk has a quarter of its usual size. The process is its own: what
    other tests and their threads leave would count, too.
    """
    code = MEMORY.format(tests=str(Path(__file__).parent.parent), path=str(tmp_path / "a.run"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    left, peak = map(int, done.stdout.split())
    assert left < 1e6
    assert peak < 65e6  # one chunk of 16 MiB, and 30 MB of Zarr


def test_own_quantities():
    run = toy_run(quantities=lambda samples: {"square": samples["mu"] ** 2})
    run.extend(20)
    assert list(run.diagnostics().index) == ["square"]


def test_quantities_that_fail_lose_no_draws():
    fails = [False]

    def square(samples):
        if fails[0]:
            raise RuntimeError("now")
        return {"square": samples["mu"] ** 2}

    run, alone = toy_run(quantities=square), toy_run()
    run.extend(20)
    fails[0] = True
    with pytest.raises(RuntimeError, match="now"):
        run.extend(20)
    assert run.num_draws == 20
    fails[0] = False
    run.extend(20)
    alone.extend(40)
    np.testing.assert_array_equal(run.get_samples()["mu"], alone.get_samples()["mu"])
    mean = (alone.get_samples()["mu"].astype(float) ** 2).mean()
    np.testing.assert_allclose(run.diagnostics()["mean"]["square"], mean, rtol=1e-5)


def test_a_chain_that_is_not_finite(tmp_path):
    class Breaks(Autoregressive):
        def sample(self, state, model_args, model_kwargs):
            state = super().sample(state, model_args, model_kwargs)
            return state._replace(z={**state.z, "log_joint": jnp.array(jnp.nan)})

        def init(self, *args, **kwargs):
            state = super().init(*args, **kwargs)
            return state._replace(z={**state.z, "log_joint": jnp.array(0.0)})

    run = toy_run(Breaks(), store=tmp_path / "a.run")
    with pytest.raises(NotFiniteError, match="log joint is not finite"):
        run.extend(5)
    assert run.num_draws == 0


def test_two_threads_do_not_make_sweeps_of_one_run(alone):
    """They would make the same draws twice."""
    run, errors = toy_run(), []

    def extend():
        try:
            run.extend(5)
        except RuntimeError as error:
            errors.append(str(error))

    def after_chunk(_):
        if not errors:
            other = threading.Thread(target=extend)
            other.start()
            other.join()

    run.extend(30, after_chunk)
    assert errors == ["another thread makes sweeps of this run: wait for it"]
    other = threading.Thread(target=lambda: run.extend(30))  # one after the other
    other.start()
    other.join()
    assert_same(run.get_samples(group_by_chain=True), alone)


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_chain_that_is_not_finite_of_a_kernel_without_log_joint(tmp_path, is_stored):
    class Breaks(Autoregressive):
        def init(self, *args, **kwargs):
            state = super().init(*args, **kwargs)
            return state._replace(z={**state.z, "pair": jnp.zeros(2)})

        def sample(self, state, model_args, model_kwargs):
            sweeps = state.z["pair"] + 1
            state = super().sample(state, model_args, model_kwargs)
            mu = jnp.where(sweeps[0] > 4, jnp.nan, state.z["mu"])
            return state._replace(z={"mu": mu, "pair": sweeps})

    run = toy_run(Breaks(), store=tmp_path / "a.run" if is_stored else None)
    run.extend(4)
    with pytest.raises(NotFiniteError, match="Breaks has stopped: site 'mu' is not finite"):
        run.extend(5)
    assert run.num_draws == 4
    if is_stored:  # what there is can be resumed
        run.close()
        assert Run.resume(tmp_path / "a.run", Breaks(), DATA).num_draws == 4


# ---------------------------------------------------------------------------------------------
# Bad arguments
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"thinning": 0}, "thinning must be an integer of at least 1, got 0"),
        ({"num_warmup": -1}, "num_warmup must be an integer of at least 0"),
        ({"num_warmup": 2.5}, "num_warmup must be an integer"),
        ({"devices": []}, r"devices must be a list of devices, as of jax.devices\(\), got \[\]"),
        ({"devices": [0, 1]}, "devices must be a list of devices"),
        ({"devices": jax.devices()[0]}, "devices must be a list of devices"),
        ({"devices": "cpu"}, "devices must be a list of devices"),
        ({"mesh": "x"}, "mesh must be a jax.sharding.Mesh, got 'x'"),
        ({"extra_fields": "z"}, "extra_fields must be a tuple of names, got 'z'"),
        ({"extra_fields": ("energy", "force")}, "the state of the kernel has no field 'force'"),
        ({"extra_fields": 5}, "extra_fields must be a tuple of names, got 5"),
        ({"quantities": 5}, "quantities must be a function of the samples, got 5"),
        ({"devices": jax.devices()[:3]}, "4 chains cannot be spread over 3 devices"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        toy_run(**settings)


def test_bad_burn_in():
    for wrong in (1.0, -0.1, np.nan, True, None, "x", "0.5"):
        with pytest.raises(ValueError) as error:
            toy_run(burn_in=wrong)
        expected = f'burn_in must be "auto" or a share from 0 to less than 1, got {wrong!r}'
        assert str(error.value) == expected


def test_quantities_of_another_form():
    for wrong, message in (
        (lambda _: {}, "quantities must return arrays by name, got {}"),
        (lambda samples: {"first": samples["mu"][:, :1]}, r"first has the shape \(\d, 1"),
    ):
        run = toy_run(quantities=wrong)
        with pytest.raises(ValueError, match=message):
            run.extend(20)


def test_a_store_is_refused_before_the_chains_start(tmp_path):
    class DoesNotStart(Autoregressive):
        def init(self, *args, **kwargs):
            raise AssertionError

    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("")
    with pytest.raises(StoreError, match="is not the store of a run"):
        toy_run(DoesNotStart(), store=tmp_path / "other")


def test_bad_goals():
    run = toy_run()
    for goals in ({"rhat": 1.0}, {"ess": 0}, {"minutes": -1}, {"minutes": float("nan")}):
        with pytest.raises(ValueError, match="rhat must be greater than 1"):
            run.until(**goals)
    with pytest.raises(ValueError, match="at least 4 are needed"):
        run.diagnostics()
    with pytest.raises(ValueError, match="at least 1 are needed"):
        run.to_inference_data()


@pytest.mark.parametrize(
    ("kernel", "data", "message"),
    [
        (Autoregressive(0.4), DATA, r"persistence was 0\.5, is 0\.4$"),
        (Autoregressive(), DATA + 1, "the data of argument 1 differ$"),
        (Autoregressive(), DATA[:2], r"of shape \(3,\).*of shape \(2,\)"),
        (CollapsedGibbs(_family(), alpha=1.0), DATA, "class was [^;]*, is [^;]*CollapsedGibbs$"),
    ],
)
def test_other_runs_are_not_resumed(tmp_path, kernel, data, message):
    toy_run(store=tmp_path / "a.run").close()
    with pytest.raises(StoreError, match=message):
        Run.resume(tmp_path / "a.run", kernel, data)
    Run.resume(tmp_path / "a.run", Autoregressive(), DATA)  # is not locked


def _potential(z):
    return _SCALE * jnp.sum(z**2)


_SCALE = 0.5


def short_steps():
    """A kernel that compiles faster than NUTS."""
    return HMC(potential_fn=_potential, num_steps=2, trajectory_length=None)


def test_kernels_that_need_starting_values(tmp_path, monkeypatch):
    """They are resumed with them; what a global name of the model stands for is compared."""
    settings = dict(store=tmp_path / "a.run", init_params=np.zeros((2, 3)))
    kernel, like = short_steps(), dict(init_params=np.ones((2, 3)))
    run = Run(kernel, key=random.key(0), num_chains=2, num_warmup=20, **settings)
    run.extend(10)
    whole = run.get_samples()
    run.close()
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "_SCALE", 2.0)
        with pytest.raises(StoreError, match="the potential energy of the model differs"):
            Run.resume(tmp_path / "a.run", short_steps(), **like)
    again = Run.resume(tmp_path / "a.run", short_steps(), **like)
    for name, x in again.get_samples().items():
        np.testing.assert_array_equal(x, whole[name])
    again.extend(5)
    again.close()


def test_starting_values_of_another_number_of_chains():
    for wrong in (jnp.zeros(3), jnp.zeros((4, 3)), jnp.zeros(())):
        with pytest.raises(ValueError, match="init_params must have an axis of 2 starting points"):
            Run(NUTS(potential_fn=_potential), key=random.key(0), num_chains=2, init_params=wrong)


def test_a_state_that_is_not_finite(tmp_path):
    run = toy_run(store=tmp_path / "a.run")
    run.extend(3)
    state = run._state._replace(z={name: x * np.nan for name, x in run._state.z.items()})
    run._draws.append({}, as_arrays(state), {"num_sweeps": 4, "seconds": 0.0})
    run.close()
    with pytest.raises(StoreError, match="not finite"):
        Run.resume(tmp_path / "a.run", Autoregressive(), DATA)


def test_other_versions_are_told(tmp_path):
    run = toy_run(store=tmp_path / "a.run")
    run.extend(3)
    run.close()
    older = {"jaxlib": "0.1"}
    change_root(
        tmp_path / "a.run", lambda root: root["attributes"]["run"]["versions"].update(older)
    )
    with pytest.warns(UserWarning, match=r"jaxlib was 0\.1, is") as warned:
        run = Run.resume(tmp_path / "a.run", Autoregressive(), DATA)
    assert run.num_draws == 3 and __file__ in [warning.filename for warning in warned]
    run.close()


def test_other_devices_are_told(tmp_path):
    toy_run(store=tmp_path / "a.run", devices=jax.devices()[:2]).close()
    with pytest.warns(UserWarning, match=r"\(devices was 2 of chains, is 1\): further draws"):
        Run.resume(tmp_path / "a.run", Autoregressive(), DATA).close()
    with no_warnings():
        Run.resume(tmp_path / "a.run", Autoregressive(), DATA, devices=jax.devices()[:2]).close()


def test_an_error_of_the_compiler_reaches_the_caller():
    class Broken:
        def compile(self):
            raise RuntimeError("the compiler failed")

    with pytest.raises(RuntimeError, match="the compiler failed"):
        _Compiling(Broken()).result()


class Walk(MCMCKernel):
    """A kernel without a model, which starts by itself, as NumPyro's documentation has one."""

    sample_field = "z"

    def __init__(self, potential_fn):
        self.potential_fn = potential_fn

    def init(self, rng_key, num_warmup, init_params, model_args, model_kwargs):
        return WalkState({"x": jnp.zeros(2)}, rng_key)

    def sample(self, state, model_args, model_kwargs):
        key, step, coin = random.split(state.rng_key, 3)
        x = state.z["x"]
        new = x + random.normal(step, x.shape)
        accepts = random.uniform(coin) < jnp.exp(self.potential_fn(x) - self.potential_fn(new))
        return WalkState({"x": jnp.where(accepts, new, x)}, key)


class WalkState(NamedTuple):
    z: dict
    rng_key: jax.Array


def _half_square(x):
    return jnp.sum(x**2) / 2


def test_a_kernel_without_a_model(tmp_path):
    path, options = tmp_path / "a.run", {"key": random.key(0), "num_warmup": 0, "burn_in": 0.0}
    whole = Run(Walk(_half_square), **options)
    whole.extend(60)
    run = Run(Walk(_half_square), store=path, **options)
    run.extend(40)
    expected = run.get_samples(group_by_chain=True)["x"]
    assert expected.shape == (4, 40, 2)
    for of in (run, open_run(path, burn_in=0.0)):
        np.testing.assert_array_equal(of.to_inference_data()["posterior"]["x"], expected)
    run.close()
    run = Run.resume(path, Walk(_half_square), burn_in=0.0)
    run.extend(20)
    np.testing.assert_array_equal(run.get_samples()["x"], whole.get_samples()["x"])
    run.close()
    with pytest.raises(StoreError, match="another model or another kernel"):
        Run.resume(path, Walk(lambda x: jnp.sum(x**2)))
