"""Runs of the command line: until the draws suffice, interrupted, resumed, and what is shown."""

import os
import pty
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import xarray as xr
from helpers.command_line import SOI

import numpyro_rankings.run
from numpyro_rankings.cli import fit, main

MODEL = ["fit", "small.soi", "--model", "plackett-luce"]


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fit, "use_compilation_cache", lambda: None)
    (tmp_path / "small.soi").write_text(SOI)
    return tmp_path


def run(*arguments):
    return main([str(argument) for argument in arguments])


def draws_of(folder):
    with xr.open_dataset(f"{folder}/posterior.nc", group="posterior", engine="h5netcdf") as data:
        return np.asarray(data["weights"])


def interrupting_after(chunks, monkeypatch):
    """Press Ctrl-C in the given chunk."""
    from numpyro_rankings.cli.progress import Progress

    count = 0

    def show(self, run):
        nonlocal count
        count += 1
        if count == chunks:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Progress, "show", show)


def test_it_ends_by_itself(capsys):
    assert run(*MODEL, "--out", "out", "--ess", "60", "--rhat", "1.2") == 0
    printed = capsys.readouterr()
    page = open("out/report.html", encoding="utf-8").read()
    assert "sweeps, of which the second half is used" in page
    for expected in ("Can I trust it?", "What each item weighs", "Ann &lt;A&gt;", "R-hat"):
        assert expected in page
    assert "To go on" not in printed.err
    assert sorted(os.listdir()) == ["out", "small.soi"]


def test_it_ends_when_the_time_is_over_and_goes_on(capsys, monkeypatch):
    goals = ["--rhat", "1.0000001", "--minutes", "0.02"]
    with monkeypatch.context() as patch:
        patch.setattr(numpyro_rankings.run.Run, "until", lambda *_, **__: False)
        assert run(*MODEL, "--out", "out", *goals) == 2
    assert "too few draws in 0.02 minutes: raise --minutes" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["small.soi"]
    assert run(*MODEL, "--out", "out", *goals) == 0
    message = capsys.readouterr().err
    assert "stopped after 0.02 minutes; the draws do not suffice yet" in message
    command = message.strip().splitlines()[-1].split()
    assert command[:2] == ["numpyro-rankings", "fit"] and command[-2:] == ["--resume", "out"]
    assert sorted(os.listdir()) == ["out", "out.run", "small.soi"]
    before = draws_of("out").shape[1]
    # without --resume it is not written over
    assert run(*MODEL, "--out", "out", "--force") == 0
    assert sorted(os.listdir()) == ["out", "small.soi"]
    assert before > 0


def test_elsewhere_a_line_is_printed_every_ten_seconds(capsys, monkeypatch):
    monkeypatch.setattr("numpyro_rankings.cli.progress._SECONDS_BETWEEN_LINES", 0.0)
    assert run(*MODEL, "--warmup", "4", "--draws", "40", "--out", "out") == 0
    shown = capsys.readouterr().err
    assert re.search(r"^numpyro-rankings: 44 of 44 sweeps, about 0 s left$", shown, re.MULTILINE)
    assert "numpyro-rankings: summarising the draws\n" in shown and "\r" not in shown


def test_ctrl_c_writes_what_there_is_and_resume_goes_on(capsys, monkeypatch):
    fixed = ["--warmup", "8", "--draws", "400", "--chains", "2"]
    assert run(*MODEL, *fixed, "--out", "alone") == 0
    with monkeypatch.context() as patch:
        interrupting_after(5, patch)
        assert run(*MODEL, *fixed, "--out", "out") == 130
    message = capsys.readouterr().err
    assert re.search(r"interrupted, after \d+ sweeps of each chain\. To go on:", message)
    part = draws_of("out")
    assert 4 <= part.shape[1] < 400
    assert run(*MODEL, "--out", "out") == 2
    assert "out.run has an unfinished run: go on with --resume out" in capsys.readouterr().err
    other = ["fit", "small.soi", "--model", "plackett-luce", "--shape", "2"]
    assert run(*other, *fixed, "--resume", "out") == 2
    assert "shape was 1.0, is 2.0" in capsys.readouterr().err
    assert os.path.isdir("out.run")
    assert run(*MODEL, *fixed, "--resume", "out") == 0
    np.testing.assert_array_equal(draws_of("out"), draws_of("alone"))
    np.testing.assert_array_equal(draws_of("out")[:, : part.shape[1]], part)
    assert sorted(os.listdir()) == ["alone", "out", "small.soi"]


def test_a_second_process_is_refused(capsys):
    from jax import random

    from numpyro_rankings import Run, read_rankings
    from numpyro_rankings.infer import PlackettLuceGibbs

    kernel, rankings = PlackettLuceGibbs(alpha=1.0), read_rankings("small.soi")
    other = Run(kernel, rankings, key=random.key(0), store="out.run")
    assert run(*MODEL, "--resume", "out") == 2
    assert "out.run is in use by another process" in capsys.readouterr().err
    other.close()


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
        (["--ess", "1000000"], "--ess must be at most 15,604 with 4 chains"),
    ],
)
def test_bad_options(capsys, options, fragment):
    assert run(*MODEL, *options) == 2
    message = capsys.readouterr().err
    assert fragment in message and message.count("\n") == 1
    assert sorted(os.listdir()) == ["small.soi"]


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
    reader.join(timeout=10)
    return shown.decode(), done.returncode


def test_the_live_line(capsys, monkeypatch):
    """It is replaced after each chunk, and removed in the end."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run(*MODEL, "--warmup", "4", "--draws", "40", "--out", "out") == 0
    lines = capsys.readouterr().err.split("\r")
    assert lines[1].startswith("numpyro-rankings: compiling and starting the chains")
    assert any(line.startswith("44 of 44 sweeps, about 0 s left") for line in lines)
    assert lines[-2].strip() == "" and "summarising" in lines[-1]


@pytest.mark.slow
def test_what_is_shown_on_a_terminal():
    command = [sys.executable, "-m", "numpyro_rankings", *MODEL, "--ess", "100", "--components"]
    shown, status = on_terminal([*command, "2", "--minutes", "1", "--out", "a"])
    assert status == 0
    for fragment in (
        "compiling and starting the chains",
        "clusters 2/2/2/2, R-hat",
        "left",
        "summarising",
        "drawing the figures",
    ):
        assert fragment in shown
    assert "compile" not in shown and "olding" not in shown  # XLA's own remarks
