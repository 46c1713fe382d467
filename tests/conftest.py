"""Shared settings: a persistent compilation cache, for compilation is most of a test's time."""

import os
import tempfile
from pathlib import Path

import jax
import pytest

_cache = Path(os.environ.get("NUMPYRO_RANKINGS_TEST_CACHE", Path(tempfile.gettempdir())))
jax.config.update("jax_compilation_cache_dir", str(_cache / "numpyro_rankings_test_cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


@pytest.fixture(autouse=True)
def _float32():
    """The library is written for JAX's default precision, and tested in it."""
    assert not jax.config.jax_enable_x64


@pytest.fixture(autouse=True, scope="module")
def _release_programs():
    """Let go of compiled programs after each file.

    Each keeps a few dozen memory maps open, and Linux allows a process 65,530.
    """
    yield
    jax.clear_caches()
