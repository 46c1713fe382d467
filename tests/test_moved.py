"""Modules under the names that they had in 0.1."""

import importlib
import sys

import pytest

from numpyro_rankings import _moved


@pytest.mark.parametrize("old", sorted(_moved._HOMES))
def test_old_names_are_the_same_modules_and_warn_where_they_are_imported(old, monkeypatch):
    name = f"numpyro_rankings.{old}"
    monkeypatch.delitem(sys.modules, name, raising=False)
    home = importlib.import_module(f"numpyro_rankings.{_moved._HOMES[old]}")
    spec = home.__spec__
    with pytest.warns(DeprecationWarning, match=f"{name} is now {home.__name__}") as warned:
        exec(f"import {name}")
    assert sys.modules[name] is home and home.__spec__ is spec
    assert warned[0].filename in ("<string>", __file__)


def test_a_file_of_an_old_folder_is_not_loaded_twice(monkeypatch):
    for name in ("numpyro_rankings.summaries", "numpyro_rankings.summaries.profiles"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    home = importlib.import_module("numpyro_rankings.posterior.profiles")
    with pytest.warns(DeprecationWarning, match=f"is now {home.__name__}"):
        assert importlib.import_module("numpyro_rankings.summaries.profiles") is home
    assert sys.modules["numpyro_rankings.posterior"].profiles is home


def test_names_that_never_were_are_not_found():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("numpyro_rankings.summary")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("numpyro_rankings.posterior.summaries")
