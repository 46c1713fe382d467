"""Runs of the command line: until the draws suffice, interrupted, resumed, and what is shown."""

import errno
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.command_line import interrupting_after, run, without_page
from helpers.command_line import weights_of_results as draws_of
from helpers.command_line import weights_of_store as stored_draws

import numpyro_rankings.run.run
import numpyro_rankings.run.store
from numpyro_rankings.cli import capacity, fit
from numpyro_rankings.cli.arguments import HopelessError
from numpyro_rankings.cli.options import RunOptions
from numpyro_rankings.cli.progress import Progress
from numpyro_rankings.cli.session import RunSession
from numpyro_rankings.infer.not_finite import NotFiniteError
from numpyro_rankings.run import Run

pytestmark = pytest.mark.usefixtures("usual_signals", "one_program", "small")

MODEL = ["fit", "small.soi", "--model", "plackett-luce"]
TWO = ["--chains", "2"]  # of all commands, so that they share one program
FIXED = ["--warmup", "8", "--draws", "60", *TWO]


@pytest.fixture
def whole_page():
    """For the test that looks at it."""


@pytest.fixture(autouse=True)
def _page(monkeypatch, request):
    if "whole_page" not in request.fixturenames:
        without_page(monkeypatch)


def test_it_ends_by_itself(capsys, whole_page):
    assert run(*MODEL, *TWO, "--out", "out", "--ess", "60", "--rhat", "1.2") == 0
    printed = capsys.readouterr()
    shown = printed.err.splitlines()
    assert shown[0] == "numpyro-rankings: starting the chains"
    why = r"stopped after [\d,]+ sweeps of each chain because the chains agree: R-hat 1\.[\d]+, ESS"
    assert any(re.search(why, line) for line in shown)
    page = open("out/report.html", encoding="utf-8").read()
    assert re.search(r"[\d,]+ sweeps, of which the last [\d,]+ are used", page)
    for expected in ("Can I trust it?", "What each item weighs", "Ann &lt;A&gt;", "R-hat"):
        assert expected in page
    assert "To go on" not in printed.err
    assert sorted(os.listdir()) == ["out", "small.soi"]


def test_the_files_have_as_many_draws_as_the_help_says(capsys, monkeypatch):
    for command in ("fit", "cluster"):
        assert run(command, "--help") == 0
        words = " ".join(capsys.readouterr().out.split())
        assert f"at most {capacity._MOST_SHOWN:,} of each chain" in words
        assert f"beyond {capacity.DRAWS_BYTES / 2**20:.0f} MB" in words
    monkeypatch.setattr(capacity, "_MOST_SHOWN", 30)
    monkeypatch.setattr(capacity, "_LEAST_SHOWN", 1)
    assert run(*MODEL, *FIXED, "--thin", "1", "--out", "out") == 0
    assert draws_of("out").shape[1] == 30


def time_over_after(draws):
    """Instead of Run.until, whose draws depend on the speed of the machine."""
    return lambda run, *_, **__: run.extend(draws)


def test_it_ends_when_the_time_is_over_and_goes_on(capsys, monkeypatch):
    goals = ["--rhat", "1.0000001", "--minutes", "0.02"]
    monkeypatch.setattr(numpyro_rankings.run.Run, "until", time_over_after(0))
    assert run(*MODEL, *TWO, "--out", "out", *goals) == 2
    assert "too few draws in 0.02 minutes" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["small.soi"]
    monkeypatch.setattr(numpyro_rankings.run.Run, "until", time_over_after(1))
    assert run(*MODEL, *TWO, "--out", "out", *goals) == 2
    message = capsys.readouterr().err
    assert "too few draws" in message and "out.run keeps 1 sweep of each chain. To go on" in message
    command = message.strip().splitlines()[-1].split()
    assert command.count("--minutes") == 1 and command[command.index("--minutes") + 1] == "1"
    monkeypatch.setattr(numpyro_rankings.run.Run, "until", time_over_after(30))
    assert run(*command[1:]) == 0
    message = capsys.readouterr().err
    assert "stopped after 1 minute; the draws do not suffice, after 31 sweeps" in message
    command = message.strip().splitlines()[-1].split()
    assert command[:2] == ["numpyro-rankings", "fit"] and command[-2:] == ["--resume", "out"]
    assert sorted(os.listdir()) == ["out", "out.run", "small.soi"]
    before = stored_draws()
    assert run(*command[1:]) == 0
    after = stored_draws()
    assert (before.shape[1], after.shape[1]) == (31, 61)
    np.testing.assert_array_equal(after[:, :31], before)
    os.remove("small.soi")
    # a mistake in a command that begins again loses nothing
    assert run(*MODEL, "--out", "out", "--force") == 2
    np.testing.assert_array_equal(stored_draws(), after)


@pytest.mark.parametrize(
    ("seconds", "sweeps"), [(4, [20]), (5, [4, 36]), (10, [1, 4, 20, 36, 44]), (0, [])]
)
def test_elsewhere_a_line_is_printed_every_ten_seconds(capsys, monkeypatch, clock, seconds, sweeps):
    """For chunks that take so many seconds each."""
    monkeypatch.setattr(Progress, "show", after(lambda: clock.step(seconds), Progress.show))
    assert run(*MODEL, *TWO, "--warmup", "4", "--draws", "40", "--out", "out") == 0
    shown = capsys.readouterr().err
    line = r"^numpyro-rankings: (\d+) of 44 sweeps?, (R-hat .*, )?about 0 s left$"
    found = re.findall(line, shown, re.MULTILINE)
    assert [int(number) for number, _ in found] == sweeps
    assert all(bool(r_hat) == (int(number) >= 20) for number, r_hat in found)
    assert "numpyro-rankings: summarising the draws\n" in shown and "\r" not in shown


def test_ctrl_c_writes_what_there_is_and_resume_goes_on(alone, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        interrupting_after(4, patch)
        assert run(*MODEL, *FIXED, "--out", "out") == 130
    message = capsys.readouterr().err
    assert re.search(r"interrupted, after \d+ sweeps of each chain\. To go on:", message)
    part = draws_of("out")
    assert 4 <= part.shape[1] < 60
    assert run(*MODEL, "--out", "out") == 2
    assert "out.run has an unfinished run: go on with --resume out" in capsys.readouterr().err
    other = ["fit", "small.soi", "--model", "plackett-luce", "--shape", "2"]
    assert run(*other, *FIXED, "--resume", "out") == 2
    assert "begun without --shape, not with --shape 2" in capsys.readouterr().err
    assert os.path.isdir("out.run")
    assert run(*MODEL, *FIXED, "--resume", "out") == 0
    np.testing.assert_array_equal(draws_of("out"), alone)
    np.testing.assert_array_equal(draws_of("out")[:, : part.shape[1]], part)
    assert sorted(os.listdir()) == ["out", "small.soi"]


# the exit status of the commands, and how they say that they stop
SIGNALS = {
    "Ctrl-C": (signal.SIGINT, 130, "Ctrl-C: stopping after this chunk; Ctrl-C again stops at once"),
    "SIGTERM": (signal.SIGTERM, 143, "terminated: stopping after this chunk\n"),
    "SIGHUP": (signal.SIGHUP, 129, "hung up: stopping after this chunk\n"),
}


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_other_signals_end_a_run_like_ctrl_c(name, capfd, monkeypatch):
    number, status, words = SIGNALS[name]
    with monkeypatch.context() as patch:
        interrupting_after(4, patch, number)
        assert run(*MODEL, *FIXED, "--out", "out") == status
    message = capfd.readouterr().err
    assert words in message
    assert re.search(r"interrupted, after \d+ sweeps of each chain\. To go on:", message)
    assert signal.getsignal(number) is signal.SIG_DFL
    part = draws_of("out")
    assert 4 <= part.shape[1] < 60
    np.testing.assert_array_equal(part, stored_draws())
    command = message.strip().splitlines()[-1].split()
    assert run(*command[1:]) == 0
    np.testing.assert_array_equal(draws_of("out")[:, : part.shape[1]], part)
    assert sorted(os.listdir()) == ["out", "small.soi"]


@pytest.mark.parametrize("name", SIGNALS)
def test_signals_that_are_ignored_stay_so(name, alone, capfd, monkeypatch):
    number, _, words = SIGNALS[name]
    signal.signal(number, signal.SIG_IGN)
    monkeypatch.setattr(Progress, "show", lambda *_: signal.raise_signal(number))
    assert run(*MODEL, *FIXED, "--out", "out") == 0
    assert words not in capfd.readouterr().err
    assert signal.getsignal(number) is signal.SIG_IGN
    np.testing.assert_array_equal(draws_of("out"), alone)


def test_a_signal_that_comes_twice_does_not_disturb_the_end(alone, monkeypatch):
    """As ``timeout`` sends it."""

    def terminate(*_):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(fit, "_summarise", after(terminate, fit._summarise))
    monkeypatch.setattr(Run, "close", after(terminate, Run.close))
    assert run(*MODEL, *FIXED, "--out", "out") == 143
    np.testing.assert_array_equal(draws_of("out"), alone)


class Gone:
    """A terminal that hung up while the chains ran."""

    def __init__(self, stream, error):
        self.stream, self.error = stream, error

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def write(self, text):
        if os.path.exists("out.run"):
            raise self.error
        return self.stream.write(text)


@pytest.mark.parametrize("name", ["goes on", "SIGHUP"])
def test_a_run_outlives_its_terminal(name, monkeypatch):
    gone = OSError(errno.EIO, "Input/output error")
    monkeypatch.setattr("numpyro_rankings.cli.progress._SECONDS_BETWEEN_LINES", 0.0)
    if name == "SIGHUP":
        interrupting_after(4, monkeypatch, signal.SIGHUP)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", Gone(sys.stderr, gone))
        patch.setattr(sys, "stdout", Gone(sys.stdout, gone))
        assert run(*MODEL, *FIXED, "--out", "out") == (129 if name == "SIGHUP" else 0)
    assert 4 <= draws_of("out").shape[1] <= 60
    assert os.path.exists("out.run") == (name == "SIGHUP")


def test_other_errors_of_the_screen_are_told(capsys, monkeypatch):
    """As of a log on a disk that is full; not if they are of the place where errors are told."""
    for name in ("stdout", "stderr"):
        with monkeypatch.context() as patch:
            patch.setattr(sys, name, Gone(getattr(sys, name), FULL))
            assert run(*MODEL, *FIXED, "--out", "out", "--force") == 2
        message = capsys.readouterr().err
        words = "error: cannot write what is shown on the screen: No space left on device"
        assert (words in message) == (name == "stdout")


def failing(error, number=1):
    """A function that raises an error when it is called for the given time."""
    count = 0

    def fail(*_, **__):
        nonlocal count
        count += 1
        if count == number:
            raise error

    return fail


def after(do, function):
    """A function that first does something else."""

    def both(*arguments, **options):
        do()
        return function(*arguments, **options)

    return both


FULL = OSError(errno.ENOSPC, "No space left on device")
# what fails: where, how, and what is said
FAILURES = {
    "the disk, while sampling": (
        (numpyro_rankings.run.store, "_new_array"),
        failing(FULL, 25),
        "/out.run: No space left on device",
    ),
    "the disk, in the end": ((fit, "write_assigned"), failing(FULL), "cannot write to out: No"),
    "memory, in the end": ((fit, "_summarise"), failing(MemoryError()), "out of memory"),
    "Ctrl-C while summarising": (
        (fit, "_summarise"),
        failing(KeyboardInterrupt()),
        "interrupted, no results were written",
    ),
    "Ctrl-C in the warm-up": (
        (Progress, "show"),
        lambda *_: signal.raise_signal(signal.SIGINT),
        "interrupted, no results were written; out.run keeps 1 sweep of each chain",
    ),
    "SIGHUP in the warm-up": (
        (Progress, "show"),
        lambda *_: signal.raise_signal(signal.SIGHUP),
        "interrupted, no results were written; out.run keeps 1 sweep of each chain",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_what_is_drawn_outlives_errors(name, alone, capsys, monkeypatch):
    (place, attribute), fail, words = FAILURES[name]
    with monkeypatch.context() as patch:
        patch.setattr(place, attribute, after(fail, getattr(place, attribute)))
        status = SIGNALS[name.split()[0]][1] if name.split()[0] in SIGNALS else 2
        assert run(*MODEL, *FIXED, "--out", "out") == status
    message = capsys.readouterr().err
    assert words in message
    command = message.strip().splitlines()[-1].split()
    assert sorted(os.listdir()) == ["out.run", "small.soi"]
    assert command[-2:] == ["--resume", "out"]
    if "in the end" in name or "summar" in name:
        np.testing.assert_array_equal(stored_draws(), alone)
    else:
        assert run(*command[1:]) == 0
        np.testing.assert_array_equal(draws_of("out"), alone)
        assert sorted(os.listdir()) == ["out", "small.soi"]


@pytest.mark.parametrize(
    ("place", "attribute", "error", "words"),
    [
        (numpyro_rankings.run.run, "check_not_stopped", NotFiniteError("chain 1"), "chain 1 (out"),
        (fit, "_summarise", HopelessError("more slots"), "more slots (out.run keeps 68 sweeps of"),
    ],
)
def test_errors_that_come_again_keep_the_draws(capsys, monkeypatch, place, attribute, error, words):
    fail = failing(error, 1 if place is fit else 3)
    monkeypatch.setattr(place, attribute, after(fail, getattr(place, attribute)))
    assert run(*MODEL, *FIXED, "--out", "out") == 2
    message = capsys.readouterr().err
    assert words in message and "--force starts again" in message and "To go on" not in message
    assert os.path.isdir("out.run")
    if place is not fit:
        assert run(*MODEL, *FIXED, "--out", "out", "--force") == 0
        assert sorted(os.listdir()) == ["out", "small.soi"]


def other_run():
    """Of another process, whose store is out.run."""
    from jax import devices, random

    from numpyro_rankings import Run, read_rankings
    from numpyro_rankings.infer import PlackettLuceGibbs

    kernel, rankings = PlackettLuceGibbs(alpha=1.0), read_rankings("small.soi")
    settings = {"num_chains": 2, "devices": devices()[:2], "store": "out.run"}
    return Run(kernel, rankings, key=random.key(0), **settings)


@pytest.mark.parametrize("options", [["--out", "out"], ["--out", "out", "--force"]])
@pytest.mark.parametrize("comes", ["before", "meanwhile"])
def test_the_run_of_another_process_is_left_alone(capsys, monkeypatch, options, comes):
    others = []
    with monkeypatch.context() as patch:
        if comes == "before":
            others.append(other_run())
        else:
            started = after(lambda: others.append(other_run()), fit._choose_thinning)
            patch.setattr(fit, "_choose_thinning", started)
        assert run(*MODEL, *options) == 2
    assert "out.run is in use by another process" in capsys.readouterr().err
    others[0].extend(5)
    assert others[0].get_samples()["weights"].shape == (6, 4)
    others[0].close()


def test_a_run_that_is_resumed_by_another_process(capsys):
    other = other_run()
    assert run(*MODEL, "--resume", "out") == 2
    assert "out.run is in use by another process" in capsys.readouterr().err
    other.close()


@pytest.mark.parametrize("options", [["--out", "out"], ["--resume", "out"]])
def test_a_run_that_was_killed_before_its_first_sweep_begins_again(alone, options):
    other_run().close()
    assert run(*MODEL, *FIXED, *options) == 0
    np.testing.assert_array_equal(draws_of("out"), alone)


def test_a_resumed_run_has_the_settings_of_its_store(capsys, monkeypatch):
    own = [*TWO, "--seed", "3", "--thin", "2", "--draws", "80", "--warmup", "8"]
    assert run(*MODEL, *own, "--out", "alone") == 0
    with monkeypatch.context() as patch:
        interrupting_after(4, patch)
        assert run(*MODEL, *own, "--out", "out") == 130
    capsys.readouterr()
    for options, words in (
        (["--seed", "4"], "out.run is a run with --seed 3, not 4"),
        (["--chains", "4"], "out.run is a run with --chains 2, not 4"),
        (["--thin", "1"], "out.run is a run with --thin 2, not 1"),
        (["--warmup", "1000"], "out.run is a run with --warmup 8, not 1000"),
        (["--draws", "8"], "--draws must be at least that, got 8"),
    ):
        given = {"--draws": "80"} | dict([options])
        assert run(*MODEL, *(x for pair in given.items() for x in pair), "--resume", "out") == 2
        message = capsys.readouterr().err
        assert words in message and message.count("\n") == 1
    assert run(*MODEL, "--resume", "out") == 2
    assert "is a run of a fixed length: give its --draws again" in capsys.readouterr().err
    assert run(*MODEL, "--draws", "80", "--resume", "out") == 0
    np.testing.assert_array_equal(draws_of("out"), draws_of("alone"))
    page = open("out/report.html", encoding="utf-8").read()
    assert "2 chains, each of 8 warm-up sweeps and 80 further sweeps, of which one in 2" in page
    begun = re.search("<dt>begun with</dt><dd><code>(.*?)</code>", page)[1]
    assert begun == f"numpyro-rankings {' '.join([*MODEL, *own])} --out out"
    assert re.search("<dt>command</dt><dd><code>.* --resume out</code>", page)
    args = shlex.split(begun)[1:-1]
    assert run(*args, "again") == 0
    np.testing.assert_array_equal(draws_of("again"), draws_of("alone"))
    assert "begun with" not in open("again/report.html", encoding="utf-8").read()
    assert "<dt>seed</dt><dd>3</dd>" in page


def test_a_run_that_is_resumed_with_other_options_names_them(capsys, monkeypatch):
    """Those of the data and of the model, and the command that goes on."""
    Path("ranks.csv").write_text(
        "who,n,a,b,c\n" + "x,1,1,2,3\ny,2,3,1,2\nz,1,2,1,3\nw,2,1,3,2\n" * 5
    )
    begun = ["fit", "ranks.csv", "--layout", "ranks", "--columns", "a,b,c", "--top", "2", *FIXED]
    begun += ["--model", "plackett-luce", "--save", "summary"]
    with monkeypatch.context() as patch:
        interrupting_after(4, patch)
        assert run(*begun, "--out", "out") == 130
    go_on = f"  numpyro-rankings {' '.join(begun)} --resume out"
    capsys.readouterr()

    def other(*options, without=()):
        kept, words = [], iter(begun)
        for word in words:
            if word in without:
                next(words)
            else:
                kept.append(word)
        assert run(*kept, *options, "--resume", "out") == 2
        first, command = capsys.readouterr().err.splitlines()[-2:]
        assert command == go_on
        return first.removeprefix("numpyro-rankings: error: ").removesuffix("; to go on with it:")

    top = "out.run was begun with --top 2, not "
    assert other("--top=1", without=["--top"]) == f"{top}--top 1"
    assert other(without=["--top"]) == f"{top}without --top"
    model = "out.run was begun with --model plackett-luce, not "
    assert other("--model", "gamma-process", without=["--model"]) == f"{model}--model gamma-process"
    assert (
        other("--components", "2")
        == "out.run was begun without --components, not with --components 2"
    )
    both = other("--count", "n", "--columns", "a,c,b", "--highest-first", without=["--columns"])
    assert both == (
        "out.run was begun with --columns a,b,c, not --columns a,c,b; without --count, not with "
        "--count n; without --highest-first, not with --highest-first"
    )
    # what is only shown may be added, and the page has both commands
    assert run(*begun, "--about", "who", "--no-progress", "--resume", "out") == 0
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert (
        f"<dt>begun with</dt><dd><code>numpyro-rankings {' '.join(begun)} --out out</code>" in page
    )
    assert "--about who --no-progress --resume out</code>" in page
    assert not Path("out.run").exists()
    # of other data nothing but the file differs
    with monkeypatch.context() as patch:
        interrupting_after(4, patch)
        assert run(*begun, "--force", "--out", "out") == 130
    Path("ranks.csv").write_text(Path("ranks.csv").read_text().replace("y,2,3,1,2", "y,2,3,2,1"))
    assert run(*begun, "--resume", "out") == 2
    assert "another kernel: the data of ranks.csv differ\n" in capsys.readouterr().err
    Path("out.run/command.json").write_text("{}")
    assert run(*begun, "--top", "1", "--resume", "out") == 2
    assert "another kernel: the data of ranks.csv differ\n" in capsys.readouterr().err


def test_a_run_that_ends_by_itself_gets_no_fixed_length(capsys):
    other = other_run()
    other.extend(20)
    other.close()
    for options in (["--draws", "40"], ["--warmup", "8", "--draws", "40"]):
        assert run(*MODEL, *options, "--resume", "out") == 2
    first, second = capsys.readouterr().err.strip().split("\n")
    assert "of which only the last part is used: resume it without --draws" in first
    assert "out.run is a run with --warmup 0, not 8" in second


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        (["--rhat", "1"], "--rhat must be greater than 1, got 1"),
        (["--ess", "0"], "--ess must be a positive number, got 0"),
        (["--minutes", "-3"], "--minutes must be a positive number, got -3"),
        (["--draws", "100", "--minutes", "3"], "--minutes goes without --warmup and --draws"),
        (["--warmup", "100", "--rhat", "1.1"], "--rhat goes without --warmup and --draws"),
        (["--resume", "none"], "there is no run to resume: no folder none.run"),
        (["--resume", "a", "--out", "b"], "--out goes without --resume"),
        (["--resume", "a", "--force"], "--force goes without --resume, which goes on with the run"),
        (["--ess", "1000000"], "--ess must be at most 15,604 with 4 chains"),
    ],
)
def test_bad_options(capsys, options, fragment):
    assert run(*MODEL, *options) == 2
    message = capsys.readouterr().err
    assert fragment in message and message.count("\n") == 1
    assert sorted(os.listdir()) == ["small.soi"]


def wait_for_draws(process, number):
    root, draws = Path("out.run/zarr.json"), 0
    while draws < number:
        assert process.poll() is None
        found = re.findall(r'"num_draws": (\d+)', root.read_text() if root.exists() else "")
        draws = max(map(int, found), default=0)


LONG = [*MODEL, "--chains", "2", "--warmup", "100", "--thin", "60"]
# a command that kills itself a moment after it has stored 60 draws
KILLED = """
import os, signal, sys, threading
from numpyro_rankings._system import clock
from numpyro_rankings.cli import main
from numpyro_rankings.run.store import Store
clock.now = lambda: 0.0
append = Store.append
def append_and_kill(self, *args):
    append(self, *args)
    if self.num_draws >= 60:
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGKILL)).start()
Store.append = append_and_kill
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_killed_command_is_resumed():
    """Killed between two sweeps, or while it stores them."""
    options = [*LONG, "--draws", "60000"]
    command = [sys.executable, "-m", "numpyro_rankings", *options]
    subprocess.run([*command, "--out", "alone"], check=True, capture_output=True)
    killed = [sys.executable, "-c", KILLED, *options, "--out", "out"]
    assert subprocess.run(killed, capture_output=True).returncode == -signal.SIGKILL
    assert 60 <= stored_draws().shape[1] < 1000
    shown = subprocess.run(
        [*command, "--resume", "out"], check=True, capture_output=True, text=True
    )
    assert "note" not in shown.stderr
    np.testing.assert_array_equal(draws_of("out"), draws_of("alone"))
    assert draws_of("out").shape[1] == 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "is_ignored"), [("SIGTERM", False), ("SIGHUP", False), ("SIGHUP", True)]
)
def test_signals_to_a_process(name, is_ignored):
    """Its terminal has gone, and writing to it is an error, before the signal comes."""
    number, status, _ = SIGNALS[name]
    if is_ignored:
        signal.signal(number, signal.SIG_IGN)  # the new process inherits this, as from nohup
    leader, follower = pty.openpty()
    # of which the one that is ended cannot come to its end before
    command = [sys.executable, "-m", "numpyro_rankings", *LONG]
    command += ["--draws", "60000" if is_ignored else "60000000"]
    process = subprocess.Popen([*command, "--out", "out"], stdout=follower, stderr=follower)
    os.close(follower)
    wait_for_draws(process, 60)
    os.close(leader)
    process.send_signal(number)
    assert process.wait() == (0 if is_ignored else status)
    draws = draws_of("out").shape[1]
    assert draws == 1000 if is_ignored else 60 <= draws < 1_000_000
    if not is_ignored:
        np.testing.assert_array_equal(draws_of("out"), stored_draws())


def on_terminal(command):
    """Return what a command shows on a terminal, and its exit status."""
    leader, follower = pty.openpty()
    shown = bytearray()

    def read():
        while True:
            try:
                part = os.read(leader, 4096)
            except OSError:
                return
            if not part:
                return
            shown.extend(part)

    reader = threading.Thread(target=read)
    reader.start()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=follower)
    os.close(follower)
    reader.join()
    return shown.decode(), done.returncode


def test_the_live_line(capsys, monkeypatch):
    """It is replaced after each chunk, and removed in the end."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run(*MODEL, *TWO, "--warmup", "4", "--draws", "40", "--out", "out") == 0
    lines = capsys.readouterr().err.split("\r")
    assert lines[1].startswith("numpyro-rankings: starting the chains")
    assert any(re.match(r"44 of 44 sweeps, R-hat .*, about 0 s left", line) for line in lines)
    assert lines[-2].strip() == "" and "summarising" in lines[-1]


@pytest.mark.slow
def test_what_is_shown_on_a_terminal():
    command = [sys.executable, "-m", "numpyro_rankings", *MODEL, "--ess", "100", "--components"]
    shown, status = on_terminal([*command, "2", "--minutes", "100", "--out", "a"])
    assert status == 0
    for fragment in (
        "starting the chains",
        "clusters 2/2/2/2, R-hat",
        "left",
        "summarising",
        "drawing the figures",
    ):
        assert fragment in shown
    assert "compile" not in shown and "olding" not in shown  # XLA's own remarks


@pytest.mark.parametrize(("draws", "share"), [(1000, 0.2), (1000, 0.04), (999, 0.2), (5000, None)])
def test_a_run_that_lacks_slots_is_given_up(draws, share):
    """Not at its end, which may be an hour later; a few draws do not matter."""
    fake = SimpleNamespace(num_draws=draws, first_draw=draws // 2, overflow=share)
    fake.until = lambda *_, after_chunk: after_chunk(fake) or True
    progress = SimpleNamespace(show=lambda _: None, end=lambda: None, minutes=lambda: 0.0)
    session = RunSession(RunOptions(minutes=1.0), "command")
    if draws < 1000 or (share or 0.0) < 0.05:
        assert session._advance(fake, 1, progress, None) == "good"
        return
    with pytest.raises(HopelessError, match=r"20.0% of the draws .* than 64 .*--max-clusters 128"):
        session._advance(fake, 1, progress, None)
