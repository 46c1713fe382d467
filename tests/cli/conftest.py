"""What the tests of the commands have: a folder of their own, and no cache of the user."""

import contextlib

import pytest
from helpers.command_line import SOI, run, weights_of_results, without_page
from helpers.shared_programs import shared_programs


@pytest.fixture(autouse=True, scope="module")
def _own_cache():
    """Neither use nor touch the user's compilation cache, nor switch one on for other tests."""
    with pytest.MonkeyPatch.context() as patch:
        for command in ("session", "assign"):
            patch.setattr(f"numpyro_rankings.cli.{command}.use_compilation_cache", lambda: None)
        yield


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder that a test works in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small(folder):
    """The folder, with a small file of rankings."""
    (folder / "small.soi").write_text(SOI)
    return folder


@pytest.fixture
def plain_page(monkeypatch):
    """Pages without figures."""
    without_page(monkeypatch)


@pytest.fixture(scope="module")
def one_program():
    """Runs that are alike share what they compile."""
    with shared_programs():
        yield


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, one_program):
    """The results of a run that nothing disturbs."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "small.soi").write_text(SOI)
    command = "fit small.soi --model plackett-luce --chains 2 --warmup 8 --draws 60 --out out"
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        without_page(patch)
        assert run(*command.split()) == 0
    return folder / "out"


@pytest.fixture(scope="module")
def alone(undisturbed):
    """The draws of that run."""
    return weights_of_results(undisturbed)
