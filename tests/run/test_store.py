"""The store: what is committed survives a kill, a full disk and damage, and is readable."""

import contextlib
import errno
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest
import zarr.storage._local
from helpers.toy_kernel import DATA, Autoregressive, toy_run
from jax import random

from numpyro_rankings import Run, StoreError, open_run
from numpyro_rankings.run.errors import errors_of
from numpyro_rankings.run.folder import discard
from numpyro_rankings.run.metadata import ROOT, with_checksum
from numpyro_rankings.run.store import Store

pytestmark = pytest.mark.usefixtures("programs")

FIRST, SECOND = 40, 25
_NOBODY = 65534  # the user without rights, by custom


def new_run(path=None, **options):
    return toy_run(store=path, **options)


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


def _fail_at(monkeypatch, number, error, late=0.0):
    """Let Zarr's write number ``number`` fail, having written the half of its file beside it.

    :param late: seconds after which the writes after it, of Zarr's other threads, fail.
    """
    put, count = zarr.storage._local._put, 0

    def failing(path, value, **options):
        nonlocal count
        count += 1
        if count >= number:
            time.sleep(late if count > number else 0.0)
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            half = value.to_bytes()[: len(value) // 2]
            Path(path).with_suffix(f".{0:032x}.partial").write_bytes(half)
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
    """Each file is cut at some bytes, or missing: refused in one line, or all draws are right.

    All but the file of the root tells what that file has too, and is mended.
    """
    refused = dict.fromkeys(_files(stored), 0)
    for i, name in enumerate(_files(stored)):
        path = Path(shutil.copytree(stored, tmp_path / str(i)))
        whole = (path / name).read_bytes()
        for cut in (None, 0, len(whole) // 2, len(whole) - 1):
            if cut is None:
                (path / name).unlink()
            else:
                (path / name).write_bytes(whole[:cut])
            try:
                run = resumed(path)
                draws = draws_of(run)
                if cut == 0:
                    run.extend(SECOND)
                    assert_begins(draws_of(run), alone, FIRST + SECOND)
            except StoreError as error:
                refused[name] += 1
                assert "\n" not in str(error) and str(path) in str(error)
                continue
            finally:
                (path / name).write_bytes(whole)
            assert_begins(draws, alone, FIRST)
            run.close()
            if cut == 0:  # it has further draws
                path = Path(shutil.copytree(stored, path.with_name(f"{i}, {cut}")))
    nodes = json.loads((stored / "zarr.json").read_text())["consolidated_metadata"]["metadata"]
    newest = max("01", key=lambda turn: nodes[f"states/{turn}"]["attributes"]["num_sweeps"])
    for name, times in refused.items():
        is_mended = name.name == "zarr.json" and len(name.parts) > 1
        is_old = name.parts[0] == "states" and name.parts[1] != newest
        assert times == (0 if is_mended or is_old else 4), name


def change(store, where, name, value):
    """Change an attribute of a group, also in the metadata of the root; None removes it."""
    files = {store / where / "zarr.json": "", store / "zarr.json": where}
    for path, inside in files.items():
        root = json.loads(path.read_text())
        node = root["consolidated_metadata"]["metadata"][inside] if inside else root
        *parents, last = name.split(".")
        found = node["attributes"]
        for parent in parents:
            found = found[parent]
        if value is None:
            del found[last]
        else:
            found[last] = value
        is_root = path == store / "zarr.json"
        path.write_text(json.dumps(with_checksum(root) if is_root else root))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("run", None, "no description of the run"),
        ("run", [1], "no description of the run"),
        ("run.settings", None, "no 'settings'"),
        ("run.settings", "x", "settings of the run are damaged"),
        ("run.settings.num_chains", "x", "num_chains must be an integer of at least 1, got 'x'"),
        ("run.settings.num_chains", 0, "num_chains must be an integer of at least 1, got 0"),
        ("run.settings.num_chains", 8, r"the state of the chains is damaged: z.mu is .* \(8,\)"),
        ("run.settings.superchains", 3, "num_chains must be a multiple of superchains"),
        ("run.settings.num_warmup", -1, "num_warmup must be an integer"),
        ("run.settings.thinning", 0, "thinning must be an integer of at least 1, got 0"),
        ("run.settings.extra_fields", ["temperature"], "has no field 'temperature'"),
        ("run.settings.extra_fields", "energy", "extra_fields must be names"),
        ("run.settings.extra_fields", ["z.mu"], "sample_stats is damaged: it has"),
        ("run.settings.key_type", "rot13", "key .* of type 'rot13'"),
        ("run.settings.key", [1, 2, 3], "key .* of type 'threefry2x32'"),
        ("run.settings.key", [0, 2**32], "key .* of type 'threefry2x32'"),
        ("run.settings.key", [0, "x"], "each number of the key"),
        ("run.kernel.persistence", 0.5, "the description of the run is damaged"),
        ("run.versions", {"jax": 1}, "the description of the run is damaged"),
        ("num_sweeps", "x", "num_sweeps is 'x'"),
        ("num_draws", -1, "num_draws is -1"),
        ("seconds", None, "KeyError: 'seconds'"),
    ],
)
def test_malformed_attributes_are_named(store, name, value, words):
    for where in ("",) if name.startswith("run") else ("states/0", "states/1"):
        change(store, where, name, value)
    with pytest.raises(StoreError, match=words) as error:
        resumed(store)
    assert str(store) in str(error.value) and "\n" not in str(error.value)


def test_no_digit_of_the_metadata_can_be_edited(store):
    """Settings, counts, shapes and chunks of all arrays are in the file of the root."""
    root = store / "zarr.json"
    text = root.read_text()
    digits = [i for i, letter in enumerate(text) if letter.isdigit()]
    assert len(digits) > 200
    for i in digits:
        root.write_text(f"{text[:i]}{(int(text[i]) + 2) % 10}{text[i + 1 :]}")
        with pytest.raises(StoreError):
            Store.open(store)
    root.write_text(text.replace('"thinning": 1', '"thinning": 3'))
    with pytest.raises(StoreError, match=r"zarr\.json is damaged: its checksum is not that of"):
        resumed(store)
    root.write_text(text)
    resumed(store).close()


def test_metadata_that_are_damaged_while_it_runs(store):
    run = resumed(store)
    (store / "states" / "zarr.json").write_text("{")
    with pytest.raises(StoreError, match=r"cannot write to .*: a file in it is .* damaged \(JSON"):
        run.extend(8)
    run.close()
    run = resumed(store)
    run.extend(8)
    run.close()


@pytest.mark.parametrize("was_on", [False, True])
def test_the_other_precision(was_on, tmp_path):
    with jax.enable_x64(was_on):
        new_run(tmp_path / "a.run").close()
    message = r"numbers of (64|32) bits, but JAX is set to (64|32): call jax\.config\.update\(.*"
    with jax.enable_x64(not was_on), pytest.raises(StoreError, match=message + str(was_on)):
        resumed(tmp_path / "a.run")
    with jax.enable_x64(was_on):
        resumed(tmp_path / "a.run").close()


# -- the moments of a creation -------------------------------------------------------------------

_watched: list[Callable[[], None]] = []
_EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"}


def _watch(event, args):
    if _watched and event in _EVENTS:
        _watched[-1]()


@contextlib.contextmanager
def kept_moments(path, folder):
    """Keep what a kill would leave of a folder, before each of the calls that change it."""
    if not hasattr(_watch, "is_hook"):  # which cannot be removed
        sys.addaudithook(_watch)
        _watch.is_hook = True
    lock, moments, inside = threading.RLock(), {}, threading.local()

    def keep():
        if getattr(inside, "is_copying", False):
            return
        with lock:
            inside.is_copying = True
            try:
                files = tuple(
                    (str(x.relative_to(path)), x.read_bytes() if x.is_file() else None)
                    for x in sorted(path.rglob("*"))
                )
                if path.exists() and files not in moments:
                    moments[files] = Path(shutil.copytree(path, folder / f"{len(moments)}.run"))
            finally:
                inside.is_copying = False

    one_by_one = {"async.concurrency": 1, "threading.max_workers": 1}
    _watched.append(keep)
    try:
        with zarr.config.set(one_by_one):
            yield moments
    finally:
        _watched.pop()


def test_a_kill_at_the_creation_leaves_a_new_run(alone, tmp_path):
    """Of one in an empty folder, and of one in what such a kill left."""
    (tmp_path / "first").mkdir()
    (tmp_path / "again").mkdir()
    path = tmp_path / "a.run"
    with kept_moments(path, tmp_path / "first") as first:
        new_run(path).close()
    part = max(first.values(), key=lambda x: len(_files(x)))
    Store.has_sweeps(part)
    with kept_moments(part, tmp_path / "again") as again:
        new_run(part).close()
    assert min(len(first), len(again)) > 20
    for i, moment in enumerate([*first.values(), *again.values()]):
        assert not Store.has_sweeps(moment)
        if i % 20:
            Store.create(moment, {}).close()
        else:
            run = new_run(moment)
            run.extend(3)
            assert_begins(draws_of(run), alone, 3)
            run.close()


def test_a_kill_at_the_removal_leaves_a_store_or_a_new_run(store, tmp_path):
    (tmp_path / "moments").mkdir()
    with kept_moments(store, tmp_path / "moments") as moments:
        discard(store)
    assert not store.exists() and len(moments) > 20
    left = [moment for moment in moments.values() if Store.has_sweeps(moment)]
    for moment in left:  # before anything was removed
        run = resumed(moment)
        assert run.num_draws == FIRST
        run.close()
    assert 0 < len(left) < 5
    for moment in set(moments.values()) - set(left):
        Store.create(moment, {}).close()


def content_of(store):
    return {path: (store / path).read_bytes() for path in _files(store)}


def test_a_kill_while_a_run_is_replaced_keeps_the_old_or_the_new(alone, store, tmp_path):
    """The old one, until the new one has a sweep."""
    (tmp_path / "moments").mkdir()
    before = content_of(store)
    with kept_moments(store, tmp_path / "moments") as moments:
        run = new_run(store, overwrite=True, key=random.key(2))
        run.extend(1)
    new = draws_of(run)
    run.close()
    are_old = []
    for i, moment in enumerate(moments.values()):
        shown = open_run(moment).num_draws if i % 10 == 0 else None
        assert Store.has_sweeps(moment)
        assert ".replaced" not in os.listdir(moment)
        are_old.append(content_of(moment) == before)
        assert shown in (None, FIRST if are_old[-1] else 1)
    assert are_old == sorted(are_old, reverse=True) and 50 < sum(are_old) < len(are_old)
    for i, draws, length in ((sum(are_old) - 1, alone, FIRST), (sum(are_old), new, 1)):
        run = resumed(list(moments.values())[i])
        assert run.num_draws == length
        assert_begins(draws_of(run), draws, length)
        run.close()


@pytest.mark.parametrize("number", [2, 9, 16])
def test_a_run_that_cannot_replace_another_leaves_it(alone, store, monkeypatch, number):
    """Because of a full disk at its creation, or because it was left without a sweep."""
    before = content_of(store)
    with monkeypatch.context() as patch:
        _fail_at(patch, number, OSError(errno.ENOSPC, "No space left on device"))
        with pytest.raises(StoreError, match="No space left"):
            new_run(store, overwrite=True)
    assert content_of(store) == before
    new_run(store, overwrite=True).close()
    assert open_run(store).num_draws == FIRST
    with pytest.raises(StoreError, match="exists: Run"):
        new_run(store)
    assert content_of(store) == before


def test_a_store_that_cannot_be_set_aside_stays(store, monkeypatch):
    rename = Path.rename

    def fail(path, target):
        if path.name == "states":
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, target)

    before = _files(store)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fail)
        with pytest.raises(StoreError, match="Input/output error"):
            new_run(store, overwrite=True)
    assert _files(store) == before
    resumed(store).close()


def test_neither_is_removed_if_the_new_one_is_damaged(store, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("numpyro_rankings.run.store.drop_replaced", lambda _: None)
        run = new_run(store, overwrite=True)
        run.extend(2)
        run.close()
    (store / ROOT).write_text("")
    before = _files(store)
    with pytest.raises(StoreError, match="damaged"):
        resumed(store)
    with pytest.raises(StoreError, match="cannot be recognised"):
        new_run(store, overwrite=True)
    assert _files(store) == before and Path(".replaced/zarr.json") in before


BEGINS = """
import sys
sys.path.insert(0, {tests!r})
from run.test_store import *
put, kill = zarr.storage._local._put, threading.Timer
def counted(*args, **options):
    if not started:
        started.append(kill(float(sys.argv[1]), os.kill, (os.getpid(), 9)))
        started[0].start()
    return put(*args, **options)
started = []
zarr.storage._local._put = counted
run = new_run({path!r})
started[0].join()
"""


@pytest.mark.slow
def test_kills_at_the_creation(alone, tmp_path):
    for i, seconds in enumerate(np.linspace(0, 0.12, 10)):
        path = tmp_path / f"{i}.run"
        code = BEGINS.format(tests=str(Path(__file__).parent.parent), path=str(path))
        done = subprocess.run([sys.executable, "-c", code, str(seconds)], capture_output=True)
        assert done.returncode == -9, done.stderr
        run = new_run(path)
        run.extend(3)
        assert_begins(draws_of(run), alone, 3)
        run.close()


def test_what_began_and_never_stored_is_begun_again(tmp_path, monkeypatch):
    path = tmp_path / "a.run"
    with monkeypatch.context() as patch:  # killed before the state of the chains was stored
        patch.setattr(Store, "append", lambda *_: None)
        new_run(path).close()
    with pytest.raises(StoreError, match="nothing to resume"):
        resumed(path)
    assert not Store.has_sweeps(path)
    run = new_run(path)
    assert not any(".partial" in str(name) for name in _files(path))
    with pytest.raises(StoreError, match="in use by"):
        Store.has_sweeps(path)
    with pytest.raises(StoreError, match="in use by"):
        new_run(path, overwrite=True)
    run.extend(3)
    run.close()
    assert Store.has_sweeps(path)
    with pytest.raises(StoreError, match="exists: Run"):
        new_run(path)
    run = new_run(path, overwrite=True)
    run.extend(2)
    run.close()
    assert open_run(path).num_draws == 2


@pytest.mark.parametrize("number", range(2, 17, 2))
def test_a_run_that_cannot_begin_leaves_nothing(tmp_path, monkeypatch, number):
    """Not even what Zarr's other threads write after the error."""
    full = OSError(errno.ENOSPC, "No space left on device")
    with monkeypatch.context() as patch:
        _fail_at(patch, number, full, late=0.2)
        with pytest.raises(StoreError, match="No space left"):
            new_run(tmp_path / "a.run")
        assert not any(tmp_path.iterdir())
        time.sleep(0.3)  # in which they would, if nobody waited for them
        assert not any(tmp_path.iterdir())
    new_run(tmp_path / "a.run").close()


def test_other_folders_are_left_alone(tmp_path):
    zarr.create_group(str(tmp_path / "zarr"))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "thesis.tex").write_text("")
    for name in ("zarr", "files"):
        for do in (new_run, partial(new_run, overwrite=True), Store.has_sweeps):
            with pytest.raises(StoreError, match="is not the store of a run"):
                do(tmp_path / name)
        assert any((tmp_path / name).iterdir())


def test_only_the_parts_of_a_store_are_removed(store):
    (store / "notes.txt").write_text("mine")
    (store / "more").mkdir()
    run = new_run(store, overwrite=True)
    run.extend(1)
    run.close()
    discard(store)
    assert sorted(os.listdir(store)) == ["more", "notes.txt"]


@pytest.mark.parametrize("number", range(1, 7))
def test_a_store_that_is_removed_in_part_can_be_overwritten(store, monkeypatch, number):
    """Killed before each of the steps, or in the last."""
    (store / f"0.{0:032x}.partial").mkdir()
    steps = 0

    def counted(function):
        def step(*arguments, **options):
            nonlocal steps
            steps += 1
            if steps == number:
                raise _Killed
            return function(*arguments, **options)

        return step

    with monkeypatch.context() as patch:
        for place, name in ((Path, "replace"), (Path, "unlink"), (shutil, "rmtree")):
            patch.setattr(place, name, counted(getattr(place, name)))
        with pytest.raises(_Killed):
            discard(store)
    new_run(store, overwrite=True).close()
    assert not any("partial" in str(name) for name in _files(store))


def test_a_store_that_is_not_recognised_is_not_overwritten(store):
    (store / "zarr.json").write_text('{"attributes": ')
    before = _files(store)
    with pytest.raises(StoreError, match=r"cannot be recognised .* remove the folder yourself"):
        new_run(store, overwrite=True)
    assert _files(store) == before


def test_a_folder_that_was_removed_while_it_was_locked(store, monkeypatch):
    """A lock of what another process has just removed would keep nobody out."""
    fcntl = pytest.importorskip("fcntl")
    flock = fcntl.flock

    def flock_late(*arguments):
        flock(*arguments)
        store.rename(store.with_name("b.run"))

    monkeypatch.setattr(fcntl, "flock", flock_late)
    with pytest.raises(StoreError, match="in use by"):
        resumed(store)


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
    assert found.stdout.startswith(f"{store} is in use by another process")
    run.close()
    other = resumed(store)
    draws = other.num_draws
    with pytest.raises(StoreError, match="was closed"):
        run.extend(8)
    other.extend(8)
    del other  # without close()
    gc.collect()
    again = resumed(store)
    assert again.num_draws == draws + 8
    again.close()


def test_a_store_that_is_removed(store):
    run = resumed(store)
    shutil.rmtree(store)
    for do in (lambda: run.extend(8), lambda: draws_of(run)):
        with pytest.raises(StoreError, match="was moved or removed while a run had it"):
            do()
    assert not store.exists()
    new_run(store).close()  # which is another one
    for do in (lambda: run.extend(8), lambda: draws_of(run)):
        with pytest.raises(StoreError, match="was moved or removed while a run had it"):
            do()
    run.close()
    resumed(store).close()


def test_a_store_that_is_moved(alone, store):
    run = resumed(store)
    store.rename(store.with_name("b.run"))
    with pytest.raises(StoreError, match="was moved or removed while a run had it: move it back"):
        run.extend(8)
    assert not store.exists()
    store.with_name("b.run").rename(store)
    run.extend(SECOND)
    assert_begins(draws_of(run), alone, FIRST + SECOND)
    run.close()


def test_paths_are_made_absolute_at_once(alone, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    run = new_run("a.run")
    run.extend(FIRST)
    monkeypatch.chdir("other")
    run.extend(SECOND)
    assert_begins(draws_of(run), alone, FIRST + SECOND)
    run.close()
    assert not any((tmp_path / "other").iterdir())
    again = resumed(Path("../a.run"))
    monkeypatch.chdir(tmp_path)
    again.extend(1)
    assert again.num_draws == FIRST + SECOND + 1
    again.close()
    assert sorted(x.name for x in tmp_path.iterdir()) == ["a.run", "other"]


def test_names_that_are_addresses_elsewhere(alone, tmp_path):
    run = new_run(tmp_path / "a::b.run")
    run.extend(3)
    run.close()
    run = resumed(tmp_path / "a::b.run")
    assert_begins(draws_of(run), alone, 3)
    run.close()
    assert open_run(tmp_path / "a::b.run").num_draws == 3
    for address in ("memory://a.run", "s3://bucket/a.run"):
        for do in (new_run, resumed, open_run):
            with pytest.raises(StoreError, match=f"{address} is not a folder of this machine"):
                do(address)
    with pytest.raises(StoreError, match="the store of a run is a folder, got 5"):
        new_run(5)


@pytest.mark.parametrize("has_store", [True, False])
def test_a_closed_run_says_so(alone, has_store, tmp_path):
    run = new_run(tmp_path / "a.run" if has_store else None)
    run.extend(FIRST)
    run.close()
    run.close()
    for do in (lambda: run.extend(1), lambda: run.extend(0), lambda: run.until(minutes=1)):
        with pytest.raises(StoreError if has_store else ValueError, match=r"this run .*was closed"):
            do()
    assert_begins(draws_of(run), alone, FIRST)


def test_a_run_that_is_no_longer_referred_to(store):
    """It gives its lock back, also where it is part of a cycle."""
    run = resumed(store)
    run.extend(3)
    run.itself = run
    gc.disable()
    try:
        del run
        resumed(store).close()
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_child_has_no_lock(store):
    run = resumed(store)
    (said, says), (waits, ends) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run._draws.check_writable()
        except StoreError as error:
            os.write(says, str(error).encode())
        finally:
            os.close(says)
            os.close(ends)
            os.read(waits, 1)
            os._exit(0)
    os.close(says)
    try:
        words = os.read(said, 1000).decode()
        assert words == (
            f"{store} belongs to the process that this one was forked from: only that one writes "
            "to it"
        )
        run.extend(3)
        with pytest.raises(StoreError, match="in use by"):
            resumed(store)
        run.close()
        resumed(store).close()  # while the child still lives
    finally:
        os.close(ends)
        os.waitpid(child, 0)
        os.close(said)
        os.close(waits)


def test_what_is_no_store_is_refused(store, tmp_path):
    with pytest.raises(StoreError, match="is not a folder"):
        resumed(tmp_path / "none")
    (tmp_path / "other").mkdir()
    with pytest.raises(StoreError, match=r"zarr\.json"):
        resumed(tmp_path / "other")
    root = store / "zarr.json"
    root.write_text(root.read_text().replace('"format": 2', '"format": 99'))
    with pytest.raises(StoreError, match=r"its format is 99, not 2$"):
        resumed(store)


def as_nobody(function):
    """Return the function, run without the rights of the superuser, who may write anywhere."""

    def without_rights(*args):
        os.seteuid(_NOBODY)
        try:
            return function(*args)
        finally:
            os.seteuid(0)

    return without_rights


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no such rights on Windows")
@pytest.mark.parametrize("mode", (0o500, 0o000))
def test_a_read_only_folder(mode, monkeypatch):
    folder = Path(tempfile.mkdtemp())
    folder.chmod(mode)
    if os.geteuid() == 0:
        os.chown(folder, _NOBODY, -1)
        for name in ("check_new", "create"):  # only they: the packages may be another's to read
            monkeypatch.setattr(Store, name, staticmethod(as_nobody(getattr(Store, name))))
    try:
        with pytest.raises(StoreError, match=r"cannot write to .*: Permission denied"):
            new_run(folder / "a.run")
    finally:
        folder.chmod(0o700)
        folder.rmdir()


READER = """
import sys
import numpy as np, xarray as xr
path, expected, lengths = sys.argv[1], np.load(sys.argv[2]), []
while not lengths or lengths[-1] < expected.shape[1]:
    with xr.open_datatree(path, engine="zarr") as tree:
        lengths.append(tree["posterior"].sizes.get("draw", 0))
        if lengths[-1]:
            np.testing.assert_array_equal(tree["posterior"]["mu"], expected[:, : lengths[-1]])
            assert tree["sample_stats"]["energy"].shape == (4, lengths[-1])
    assert lengths == sorted(lengths)
    print(lengths[-1], flush=True)
"""


def test_another_process_can_read_while_it_runs(alone, tmp_path):
    """It reads again and again, also while chunks are written; some of them wait for it."""
    path = tmp_path / "a.run"
    run = new_run(path)
    run.extend(1)
    np.save(tmp_path / "mu.npy", alone["mu"])
    command = [sys.executable, "-c", READER, str(path), str(tmp_path / "mu.npy")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        for length in (1, 20, FIRST, FIRST + SECOND):
            while run.num_draws < length:
                run.extend(min(3, length - run.num_draws))
            while int(reader.stdout.readline()) < length:  # it has no number if it failed
                pass
        run.close()
    assert reader.returncode == 0


KILLED = """
import sys
sys.path.insert(0, {tests!r})
import itertools, os, threading
import numpyro_rankings.run.loop as loop
loop._MOST_DRAWS, loop._FIRST_DRAWS = 7, 7
from run.test_store import *
writes, seconds = int(sys.argv[1]), float(sys.argv[2])
run = resumed({path!r})
put, numbers = zarr.storage._local._put, itertools.count(1)
def counted(*args, **options):
    number = next(numbers)
    if number == writes:
        threading.Timer(seconds, os.kill, (os.getpid(), 9)).start()
    if number == writes + 60:
        os.kill(os.getpid(), 9)
    return put(*args, **options)
zarr.storage._local._put = counted
run.extend({draws} - run.num_draws)
"""


@pytest.mark.slow
def test_fifty_kills(tmp_path):
    """A process is killed at 50 random moments of its chunks, and resumed after each.

    It is killed some milliseconds after one of its writes, and 60 writes later on a fast machine.
    """
    path, draws, rng = tmp_path / "a.run", 6000, np.random.default_rng(0)
    code = KILLED.format(tests=str(Path(__file__).parent.parent), path=str(path), draws=draws)
    new_run(path).close()
    reached = []
    for _ in range(50):
        moment = str(rng.integers(1, 100)), str(rng.uniform(0.0, 0.05))
        done = subprocess.run([sys.executable, "-c", code, *moment], capture_output=True, text=True)
        assert done.returncode == -9, done.stderr
        run = resumed(path)
        reached.append(run.num_draws)
        run.close()
    assert reached == sorted(reached) and len(set(reached)) > 5
    assert reached[-1] < draws
    whole = new_run()
    whole.extend(draws)
    run = resumed(path)
    run.extend(draws - run.num_draws)
    assert_begins(draws_of(run), draws_of(whole), draws)
    run.close()


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC])
def test_a_store_that_cannot_be_written_when_it_is_opened(tmp_path, number):
    with pytest.raises(StoreError, match="cannot write to"), errors_of(tmp_path, ROOT):
        raise OSError(number, os.strerror(number))
    with pytest.raises(StoreError, match="cannot read"), errors_of(tmp_path, ROOT):
        raise OSError(errno.EACCES, "Permission denied")
