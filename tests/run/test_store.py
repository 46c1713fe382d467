"""The store: what is committed survives a kill, a full disk and damage, and is readable."""

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
import zarr.storage._local
from helpers.toy_kernel import Autoregressive
from jax import random

from numpyro_rankings import Run, StoreError

DATA = jnp.array([0.3, -1.0, 2.0])
FIRST, SECOND = 40, 25


def new_run(path=None):
    return Run(Autoregressive(), DATA, key=random.key(1), num_warmup=0, burn_in=0.0, store=path)


def resumed(path):
    return Run.resume(path, Autoregressive(), DATA, burn_in=0.0)


def draws_of(run):
    return run.get_samples(group_by_chain=True)


def assert_begins(draws, whole, length):
    for name in whole:
        np.testing.assert_array_equal(draws[name], whole[name][:, :length])


@pytest.fixture(scope="module")
def alone():
    run = new_run()
    run.extend(FIRST + SECOND)
    return draws_of(run)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A store of the first draws. Tests copy it."""
    path = tmp_path_factory.mktemp("stored") / "a.run"
    run = new_run(path)
    run.extend(FIRST)
    run.close()
    return path


@pytest.fixture
def store(stored, tmp_path):
    return Path(shutil.copytree(stored, tmp_path / "a.run"))


class _Killed(BaseException):
    """What nothing catches."""


def _fail_at(monkeypatch, number, error):
    """Let Zarr's write number ``number`` fail, having written the half of its file beside it."""
    put, count = zarr.storage._local._put, 0

    def failing(path, value, **options):
        nonlocal count
        count += 1
        if count >= number:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            half = value.to_bytes()[: len(value) // 2]
            Path(path).with_suffix(".0.partial").write_bytes(half)
            raise error
        return put(path, value, **options)

    monkeypatch.setattr(zarr.storage._local, "_put", failing)
    return lambda: count


@pytest.mark.parametrize(
    ("error", "every"), [(_Killed(), 5), (OSError(errno.ENOSPC, "No space left on device"), 7)]
)
def test_a_chunk_counts_whole_or_not_at_all(alone, store, tmp_path, monkeypatch, error, every):
    """One write after another fails, and the run is resumed after each."""
    number, reached = 1 - every, set()
    while True:
        number += every
        path = Path(shutil.copytree(store, tmp_path / f"{number}.run"))
        run = resumed(path)
        with monkeypatch.context() as patch:
            writes = _fail_at(patch, number, error)
            with contextlib.suppress(_Killed):
                try:
                    run.extend(SECOND)
                except StoreError as refused:
                    assert str(refused) == f"cannot write to {path}: No space left on device"
            failed = writes() >= number
        run.close()
        if not failed:
            break
        again = resumed(path)
        reached.add(again.num_draws)
        assert again.num_draws == run.num_draws < FIRST + SECOND
        assert_begins(draws_of(again), alone, again.num_draws)
        again.extend(FIRST + SECOND - again.num_draws)
        assert_begins(draws_of(again), alone, FIRST + SECOND)
        again.close()
        again = resumed(path)
        assert_begins(draws_of(again), alone, FIRST + SECOND)
        again.close()
    assert number > 20
    assert {FIRST, FIRST + 1} <= reached  # a first chunk of one draw shows how long a sweep takes


def test_the_run_goes_on_when_the_disk_has_space_again(alone, store, monkeypatch):
    run = resumed(store)
    with monkeypatch.context() as patch:
        _fail_at(patch, 3, OSError(errno.ENOSPC, "No space left on device"))
        with pytest.raises(StoreError, match="No space left"):
            run.extend(SECOND)
    run.extend(SECOND)
    assert_begins(draws_of(run), alone, FIRST + SECOND)
    assert run.num_sweeps == FIRST + SECOND
    run.close()


def _files(store):
    return sorted(path.relative_to(store) for path in store.rglob("*") if path.is_file())


def test_damage_is_named_or_does_no_harm(alone, stored, tmp_path):
    """Each file is cut at some bytes, or missing: refused in one line, or all draws are right."""
    refused = 0
    for i, name in enumerate(_files(stored)):
        size = (stored / name).stat().st_size
        for cut in (None, 0, size // 2, size - 1):
            path = Path(shutil.copytree(stored, tmp_path / f"{i}-{cut}"))
            if cut is None:
                (path / name).unlink()
            else:
                os.truncate(path / name, cut)
            try:
                run = resumed(path)
                draws = draws_of(run)
            except StoreError as error:
                refused += 1
                assert "\n" not in str(error) and str(path) in str(error)
                continue
            finally:
                shutil.rmtree(path)
            assert_begins(draws, alone, FIRST)
            run.close()
    assert refused > 2 * len(_files(stored))


def test_a_changed_byte_is_noticed(store):
    chunk = next(path for path in (store / "posterior" / "mu" / "c").rglob("*") if path.is_file())
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(StoreError, match=r"posterior/mu is damaged"):
        resumed(store)


def test_two_writers(store):
    run = resumed(store)
    with pytest.raises(StoreError, match="in use by"):
        resumed(store)
    code = f"""
        import sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
        from run.test_store import *
        try:
            resumed({str(store)!r})
        except StoreError as error:
            print(error)
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert found.stdout == f"{store} is in use by another process\n"
    run.close()
    resumed(store).close()


def test_a_run_is_not_written_over(store, tmp_path):
    with pytest.raises(StoreError, match="exists: Run"):
        new_run(store)
    (tmp_path / "empty").mkdir()
    new_run(tmp_path / "empty").close()


def test_what_is_no_store_is_refused(store, tmp_path):
    with pytest.raises(StoreError, match="is not a folder"):
        resumed(tmp_path / "none")
    (tmp_path / "other").mkdir()
    with pytest.raises(StoreError, match=r"zarr\.json"):
        resumed(tmp_path / "other")
    root = store / "zarr.json"
    root.write_text(root.read_text().replace('"format": 1', '"format": 99'))
    with pytest.raises(StoreError, match=r"its format is 99, not 1$"):
        resumed(store)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for the superuser")
def test_a_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError, match=r"cannot write to .*: Permission denied"):
            new_run(tmp_path / "a.run")
    finally:
        tmp_path.chmod(0o700)


def test_other_processes_can_read_while_it_runs(alone, tmp_path):
    path = tmp_path / "a.run"
    run, seen = new_run(path), []

    def read(run):
        with xr.open_datatree(path, engine="zarr") as tree:
            seen.append(tree["posterior"].sizes["draw"])
            np.testing.assert_array_equal(tree["posterior"]["mu"], alone["mu"][:, : seen[-1]])
            assert tree["sample_stats"]["energy"].shape == (4, seen[-1])

    run.extend(FIRST + SECOND, after_chunk=read)
    assert seen[-1] == FIRST + SECOND and len(seen) > 1
    run.close()


KILLED = """
import sys
sys.path.insert(0, {tests!r})
import os, threading, time
import numpyro_rankings.run.loop as loop
loop._MOST_DRAWS, loop._FIRST_DRAWS = 7, 7
from run.test_store import *
path, draws, seconds = {path!r}, {draws}, float(sys.argv[1])
run = resumed(path) if os.path.exists(path + "/zarr.json") else new_run(path)
def kill():
    time.sleep(seconds)
    os.kill(os.getpid(), 9)
threading.Thread(target=kill, daemon=True).start()
run.extend(draws - run.num_draws)
run.close()
"""


@pytest.mark.slow
def test_fifty_kills(tmp_path):
    """A process is killed at 50 random moments of its chunks, and resumed after each."""
    path, draws, rng = tmp_path / "a.run", 3000, np.random.default_rng(0)
    code = KILLED.format(tests=str(Path(__file__).parent.parent), path=str(path), draws=draws)
    new_run(path).close()
    reached = []
    for _ in range(50):
        seconds = str(rng.uniform(0.01, 0.8))
        done = subprocess.run([sys.executable, "-c", code, seconds], capture_output=True, text=True)
        assert done.returncode == -9, done.stderr
        time.sleep(0.01)
        run = resumed(path)
        reached.append(run.num_draws)
        run.close()
    assert reached == sorted(reached) and len(set(reached)) > 20
    assert reached[-1] < draws
    whole = new_run()
    whole.extend(draws)
    run = resumed(path)
    run.extend(draws - run.num_draws)
    assert_begins(draws_of(run), draws_of(whole), draws)
    run.close()
