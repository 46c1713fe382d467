"""Variables and folders of the machine that a command cannot work with are told before the work."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from helpers.command_line import POINTS, SOI, run

from numpyro_rankings.cli.compilation import use_writable_cache

FIT = ["fit", "small.soi", "--draws", "40", "--chains", "2"]


def refusal(arguments, *options, **variables):
    """Return the one line with which a command ends in a process with these variables."""
    before = sorted(os.listdir())
    command = [sys.executable, *options, "-m", "numpyro_rankings", *arguments]
    done = subprocess.run(
        command, env={**os.environ, **variables}, text=True, capture_output=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert sorted(os.listdir()) == before
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("command", [FIT, ["compare", "small.soi"]], ids=["fit", "compare"])
def test_backends_that_do_not_exist(small, command):
    assert "'nonsense'" in refusal(command, JAX_PLATFORMS="nonsense")
    assert "MPLBACKEND" in refusal(command, MPLBACKEND="nonsense")


def test_backends_of_a_description(small):
    command = ["describe", "small.soi"]
    assert "'nonsense'" in refusal(command, JAX_PLATFORMS="nonsense")
    assert "MPLBACKEND" in refusal([*command, "--plot", "page.html"], MPLBACKEND="nonsense")


def test_backends_are_checked_before_several_files(small):
    (small / "other.soi").write_text(SOI)
    command = ["fit", "small.soi", "other.soi", "--draws", "40"]
    assert "'nonsense'" in refusal(command, JAX_PLATFORMS="nonsense")


@pytest.mark.parametrize(
    "command",
    [
        "describe small.soi",
        "describe",
        "fit small.soi --draws 40",
        "fit small.soi other.soi --draws 40",
        "compare small.soi",
        "check",
        "warm small.soi",
        "cluster points.csv --family gaussian",
    ],
)
def test_devices_that_the_machine_has_not(small, monkeypatch, capsys, command):
    """JAX skips cuda without a GPU, and then asserts, without words, that there is a device."""

    def no_device():
        raise AssertionError

    (small / "other.soi").write_text(SOI)
    (small / "points.csv").write_text(POINTS)
    monkeypatch.setattr(jax, "devices", no_device)
    before = sorted(os.listdir())
    assert run(*command.split()) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and sorted(os.listdir()) == before
    assert shown.err.count("\n") == 1
    assert "error: JAX_PLATFORMS is " in shown.err and "no such device" in shown.err


def test_python_without_assertions(small):
    """The second chunk of a store would fail in Zarr."""
    assert "start Python without -O" in refusal(FIT, "-O")
    assert "start Python without -O" in refusal(FIT, PYTHONOPTIMIZE="2")
    code = "from numpyro_rankings.run.store import Store; Store.check_new('a.run')"
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True)
    assert "StoreError: python -O takes assertions away" in done.stderr


@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME"])
def test_a_home_that_cannot_be_written(folder, monkeypatch, variable):
    """ArviZ makes a folder there when it is imported, which is at the end of a run."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("MPLCONFIGDIR", "here")
    (folder / "file").write_text("")
    monkeypatch.setenv(variable, str(folder / "file"))
    use_writable_cache()
    cache = Path(os.environ["XDG_CACHE_HOME"])
    assert os.access(cache, os.W_OK) and os.environ["MPLCONFIGDIR"] == "here"
    use_writable_cache()
    assert Path(os.environ["XDG_CACHE_HOME"]) == cache


def test_a_home_that_can_be_written_is_used(folder, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    use_writable_cache()
    assert os.environ["XDG_CACHE_HOME"] == str(folder / "cache")
