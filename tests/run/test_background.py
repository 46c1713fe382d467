"""A run in a thread of its own: the same draws, and what may be done meanwhile."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from helpers.toy_kernel import DATA, Autoregressive, toy_run

from numpyro_rankings import Run, StoreError, open_run
from numpyro_rankings.run import loop
from numpyro_rankings.run.background import Background

pytestmark = pytest.mark.usefixtures("programs", "usual_signals")
LONG = 60.0  # seconds, which none of these takes; a test that hangs fails
SWEEPS = 400


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    monkeypatch.setattr(loop, "_MOST_DRAWS", 20)


@pytest.fixture(scope="module")
def plain():
    run = toy_run()
    run.extend(SWEEPS)
    return run.get_samples(group_by_chain=True)


class Gate:
    """Is called after each chunk, and holds the thread in the second until it is opened."""

    def __init__(self):
        self.reached, self.opened, self.count = threading.Event(), threading.Event(), 0

    def __call__(self, run):
        self.count += 1
        if self.count == 2:
            self.reached.set()
            assert self.opened.wait(LONG)


def ask(run, gate, what):
    """Ask for something that comes after the chunk at the gate, which is opened then."""
    asking = threading.Thread(target=what)
    asking.start()
    while run._background._asked == "go on":
        asking.join(0.01)
    gate.opened.set()
    asking.join(LONG)
    assert not asking.is_alive()


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])


@pytest.mark.parametrize("stored", [True, False])
def test_the_draws_are_those_of_extend(stored, plain, tmp_path):
    run = toy_run(store=tmp_path / "a.run" if stored else None)
    run.start(SWEEPS)
    assert run.wait(LONG) is None and not run.is_running
    assert_same(run.get_samples(group_by_chain=True), plain)
    run.close()
    if stored:
        assert open_run(tmp_path / "a.run").num_draws == SWEEPS


def test_the_draws_are_those_of_until(plain):
    goals, run, other = {"rhat": 1.05, "ess": 100, "minutes": 1}, toy_run(), toy_run()
    run.start(**goals)
    assert run.wait() is other.until(**goals) is True
    assert run.num_draws == other.num_draws
    assert_same(run.get_samples(), other.get_samples())
    run.start(20)  # it can go on
    run.wait()
    assert run.num_draws == other.num_draws + 20


def test_what_is_looked_at_meanwhile_is_of_complete_chunks(plain):
    """From another thread, while the run goes on as fast as it can."""
    run, seen = toy_run(), []
    run.start(SWEEPS)
    while run.is_running:
        samples = run.get_samples(group_by_chain=True)
        num_draws = samples["mu"].shape[1] if samples else 0
        for name, x in samples.items():
            np.testing.assert_array_equal(x, plain[name][:, :num_draws])
        if num_draws >= 4:
            table = run.diagnostics()
            assert abs(table.loc["mu", "mean"]) < 10 and run.verdict.level
            assert run.to_inference_data()["posterior"].sizes["draw"] >= num_draws
        seen.append(num_draws)
    run.wait()
    assert seen == sorted(seen)


def test_pause_and_proceed(plain, clock):
    gate, run = Gate(), toy_run()
    run.start(minutes=1, rhat=1.0001, ess=10_000, after_chunk=gate)
    assert gate.reached.wait(LONG)
    with pytest.raises(TimeoutError, match="goes on after 0 seconds"):
        run.wait(timeout=0)
    assert repr(run).endswith(", running)")
    ask(run, gate, run.pause)
    num_draws = run.num_draws
    assert num_draws == 17  # of the first two chunks
    assert repr(run).endswith(", paused)") and run.is_running
    assert_same(
        run.get_samples(group_by_chain=True), {k: x[:, :num_draws] for k, x in plain.items()}
    )
    with pytest.raises(RuntimeError, match="paused: call proceed"):
        run.wait()
    for sweep in (lambda: run.extend(1), lambda: run.start(1), run.until):
        with pytest.raises(RuntimeError, match="goes on already"):
            sweep()
    clock.step(1000)  # a pause takes none of the minutes
    assert run.num_draws == num_draws == run.get_samples()["mu"].size // 4
    later = threading.Event()
    gate.count, gate.reached = 0, later  # the second chunk from now on
    gate.opened.clear()
    run.proceed()
    assert later.wait(LONG) and run.num_draws > num_draws
    clock.step(61)  # but the time over is over
    gate.opened.set()
    assert run.wait(LONG) is False


def test_abort_keeps_the_draws(plain):
    gate, run = Gate(), toy_run()
    run.start(minutes=1, rhat=1.0001, ess=10_000, after_chunk=gate)
    assert gate.reached.wait(LONG)
    ask(run, gate, run.abort)
    num_draws = run.num_draws
    assert not run.is_running and run.wait() is False
    run.abort()  # does nothing
    assert num_draws < SWEEPS
    run.extend(SWEEPS - num_draws)
    assert_same(run.get_samples(group_by_chain=True), plain)


def test_an_aborted_pause_ends():
    run = toy_run()
    run.start(SWEEPS, after_chunk=Run.pause)  # which pauses from within, and does not wait
    while True:
        try:
            run.wait(LONG)
        except RuntimeError as error:
            assert "paused" in str(error)
            break
    run.abort()
    assert not run.is_running and 0 < run.num_draws < SWEEPS


def resting(background):
    """Start what makes no sweeps, and let it rest."""

    def work():
        while True:
            background.heed()

    background.start(work)
    background.pause()
    assert background.state == "paused"


def test_what_is_to_end_neither_pauses_nor_proceeds():
    background, gate = Background(), Gate()
    gate.count = 1
    background.start(lambda: [gate(None), background.heed()])
    asking = [threading.Thread(target=background.abort, daemon=True)]
    asking[0].start()
    while background._asked != "abort":
        asking[0].join(0.01)
    background.proceed()
    asking.append(threading.Thread(target=background.pause, daemon=True))
    asking[1].start()
    asking[1].join(1)
    waits = asking[1].is_alive()
    gate.opened.set()
    asking[0].join(5)
    assert not waits and not asking[0].is_alive() and background.wait(LONG) is False


def test_it_is_said_to_rest_only_while_it_does():
    background, gate = Background(), Gate()
    resting(background)
    with background._changed:  # the thread cannot go on yet
        background.proceed()
        assert background.state == "running"
    background.pause()
    background.abort()
    gate.count = 1
    background.start(lambda: gate(None))
    assert background.state == "running"
    gate.opened.set()
    assert background.wait(LONG) is None


def test_a_run_does_not_wait_for_itself():
    background = Background()
    background.start(background.wait)
    with pytest.raises(RuntimeError, match="cannot wait for itself"):
        background.wait(LONG)


@pytest.mark.parametrize("how", ["wait", "abort", "with"])
def test_an_error_in_the_thread_comes_out(how, tmp_path):
    failing = threading.Event()

    def fail(run):
        failing.set()
        raise ZeroDivisionError("after a chunk")

    run = toy_run(store=tmp_path / "a.run")
    with pytest.raises(ZeroDivisionError, match="after a chunk"), run:
        run.start(SWEEPS, after_chunk=fail)
        assert failing.wait(LONG)
        if how == "wait":
            run.wait(LONG)
        elif how == "abort":
            run.abort()
    assert repr(run).endswith(", ended with ZeroDivisionError)")
    run.close()  # it was told once
    with pytest.raises(ZeroDivisionError):
        run.wait()
    with Run.resume(tmp_path / "a.run", Autoregressive(), DATA) as again:
        assert again.num_draws >= 1


def test_what_cannot_begin_is_refused_at_once():
    run = toy_run(thinning=2)
    for bad in ({"sweeps": 3}, {"sweeps": -2}, {"rhat": 1.0}, {"ess": 1e9}, {"minutes": -1}):
        with pytest.raises(ValueError):
            run.start(**bad)
    for goals, named in (({"rhat": 1.01}, "rhat"), ({"ess": 400, "minutes": 5}, "ess and minutes")):
        with pytest.raises(ValueError, match=f"^10 sweeps are made .*: leave out {named}, or the"):
            run.start(10, **goals)
    assert run.wait() is None and not run.is_running
    run.pause(), run.proceed(), run.abort()
    run.close()
    with pytest.raises((ValueError, StoreError), match="closed"):
        run.start(2)


def test_ctrl_c_ends_the_waiting_and_not_the_run(plain):
    gate, run = Gate(), toy_run()
    run.start(SWEEPS, after_chunk=gate)
    assert gate.reached.wait(LONG)
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        run.wait(LONG)
    assert run.is_running
    gate.opened.set()
    run.wait(LONG)
    assert_same(run.get_samples(group_by_chain=True), plain)


def test_the_thread_has_the_settings_of_its_caller():
    import jax

    key = jax.random.key(1)
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        run = toy_run(key=key)
        run.start(20)
        run.wait(LONG)
        other = toy_run(key=key)
        other.extend(20)
        assert run.get_samples()["mu"].dtype == other.get_samples()["mu"].dtype
        assert_same(run.get_samples(), other.get_samples())


END = """
import sys
sys.path.insert(0, {tests!r})
from helpers.toy_kernel import toy_run
run = toy_run(store={store!r})
run.start(minutes=600, rhat=1.0001, ess=10_000)
{then}
"""


@pytest.mark.parametrize("then", ["", "run.pause()", "raise SystemExit"])
def test_the_end_of_the_program_ends_the_run(then, tmp_path):
    """After its chunk, which is stored."""
    store, tests = str(tmp_path / "a.run"), str(Path(__file__).parent.parent)
    script = END.format(tests=tests, store=store, then=then)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    with Run.resume(store, Autoregressive(), DATA) as run:
        run.extend(1)
