"""A store that somebody else has made or replaced: nothing outside its folder is touched."""

import copy
import os
import pickle
import re
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from helpers.toy_kernel import DATA, Autoregressive, change_root, toy_run
from jax import random

from numpyro_rankings import Run, StoreError, open_run
from numpyro_rankings.run.folder import discard
from numpyro_rankings.run.store import Store

pytestmark = pytest.mark.usefixtures("programs")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A store of some draws. Tests copy it."""
    path = tmp_path_factory.mktemp("stored") / "a.run"
    run = toy_run(store=path)
    run.extend(10)
    run.close()
    return path


@pytest.fixture
def store(stored, tmp_path):
    (tmp_path / "victim").mkdir()
    return Path(shutil.copytree(stored, tmp_path / "a.run"))


def resumed(path):
    return Run.resume(path, Autoregressive(), DATA, burn_in=0.0)


def everything(folder):
    return {x: x.read_bytes() if x.is_file() else None for x in sorted(folder.rglob("*"))}


NAMES = [
    "../victim/x",
    "{folder}/victim/x",
    "/tmp",
    "..",
    "",
    "posterior/../../victim/x",
    "posterior/..",
    "posterior/",
    "posterior//x",
    "posterior/in/x",
    "posterior/..\\..\\victim",
    "posterior/%2E%2E%2Fvictim",
    "states/2",
    "states/0/../../../victim",
    "sample_stats\\..\\..\\victim",
    "victim",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["posterior", "posterior/mu"])
def test_names_are_those_of_a_store(name, kind, store):
    """Of groups and of arrays; the checksum is right."""
    name = name.format(folder=store.parent)

    def add(root):
        nodes = root["consolidated_metadata"]["metadata"]
        nodes[name] = nodes[kind]

    change_root(store, add)
    before = everything(store.parent)
    for read in (resumed, open_run, Store.open):
        with pytest.raises(
            StoreError, match=r"is not the store of a run: zarr\.json names"
        ) as error:
            read(store)
        assert repr(name) in str(error.value)
    assert everything(store.parent) == before


@pytest.mark.parametrize(
    "name", ["posterior", "posterior/mu", "posterior/mu/c", "states/0", "zarr.json"]
)
def test_links_in_a_store_are_refused(name, store):
    """A chunk would be written where they lead to."""
    moved = store.parent / "victim" / "part"
    (store / name).rename(moved)
    (store / name).symlink_to(moved)
    before = everything(store.parent)
    overwriting = partial(toy_run, store=store, overwrite=True)
    for use in (resumed, open_run, Store.has_sweeps, Store.check_new):
        with pytest.raises(
            StoreError, match=f"has a link, {name}, and the store of a run has none"
        ):
            use(store)
    with pytest.raises(StoreError, match="has a link"):
        overwriting()
    discard(store)
    assert everything(store.parent) == before


def test_a_link_in_place_of_what_was_set_aside(store):
    """The store would be taken from there, and what is there removed."""
    other = store.parent / "victim" / "posterior"
    shutil.copytree(store / "posterior", other)
    (store / ".replaced").symlink_to(store.parent / "victim")
    for use in (resumed, open_run, Store.has_sweeps, Store.check_new):
        with pytest.raises(StoreError, match=r"has a link, \.replaced"):
            use(store)
    assert (other / "mu" / "zarr.json").is_file()


def test_what_is_written_first_follows_no_link(store):
    """The metadata of an array are mended by way of a file beside them."""
    (store / "posterior" / "mu" / "zarr.json").unlink()
    victim = store.parent / "victim" / "x"
    victim.write_text("mine")
    for folder in (store, store / "posterior"):
        (folder / "zarr.json.partial").symlink_to(victim)
    (store / "posterior" / "zarr.json.partial").unlink()
    run = resumed(store)
    run.extend(5)
    run.close()
    new = toy_run(store=store, overwrite=True)
    new.extend(1)
    new.close()
    discard(store)
    assert victim.read_text() == "mine"


def test_a_link_to_the_folder_of_a_store_is_as_good_as_its_name(store):
    link = store.parent / "link.run"
    link.symlink_to(store)
    assert open_run(link).num_draws == 10
    run = resumed(link)
    run.extend(5)
    run.close()
    assert open_run(store).num_draws == 15


@pytest.mark.parametrize("do", [resumed, open_run, partial(toy_run, overwrite=True)])
def test_files_of_the_user_are_not_taken_for_unfinished_ones(do, store):
    """Files that Zarr and this package had not written whole are removed alone."""
    own = [store / "my.partial", store / "notes" / "b.partial", store / "posterior" / "c.partial"]
    unfinished = [store / "zarr.json.partial", store / "posterior" / "mu" / "zarr.json.partial"]
    unfinished += [store / "states" / f"0.{1:032x}.partial"]
    for file in (*own, *unfinished):
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
    (store / "folder.partial").mkdir()
    run = do(store=store) if isinstance(do, partial) else do(store)
    if isinstance(run, Run):
        run.extend(5)
        run.close()
        assert not any(file.exists() for file in unfinished)
    left = own[:2] if isinstance(do, partial) else own  # its groups are removed
    assert all(file.read_text() == "mine" for file in left)
    assert (store / "folder.partial").is_dir()


def test_a_folder_with_a_file_of_the_user_is_no_new_store(tmp_path):
    (tmp_path / "my.partial").write_text("mine")
    with pytest.raises(StoreError, match="is not the store of a run"):
        toy_run(store=tmp_path)
    assert os.listdir(tmp_path) == ["my.partial"]


@pytest.mark.parametrize("how", ["overwritten", "moved away", "an old store", "the same again"])
def test_a_run_that_was_replaced_is_not_read_on(how, store):
    if how == "an old store":  # which has no id
        change_root(store, lambda root: root["attributes"]["run"].pop("id"))
    reader, closed = open_run(store, burn_in=0.0), resumed(store)
    first = reader.get_samples()["mu"]
    closed.close()
    key = random.key(1 if how == "the same again" else 7)
    if how == "moved away":
        store.rename(store.with_name("b.run"))
    run = toy_run(store=store, overwrite=True, key=key)
    run.extend(10)
    run.close()
    new = open_run(store, burn_in=0.0).get_samples()["mu"]
    assert (new == first).all() == (how == "the same again")
    words = "no longer has the run that was opened"
    for read in (reader.get_samples, reader.find_damage, reader.diagnostics, reader.as_draws):
        with pytest.raises(StoreError, match=words):
            read()
    with pytest.raises(StoreError, match=f"{words}|was moved or removed"):
        closed.get_samples()


def test_a_run_that_is_not_replaced_after_all_is_read_on(store):
    """One that was to replace it has ended before its first sweep."""
    reader = open_run(store, burn_in=0.0)
    first = reader.get_samples()["mu"]
    run = toy_run(store=store, overwrite=True)
    with pytest.raises(StoreError, match="no longer has the run"):
        reader.get_samples()
    run.close()
    Store.check_new(store, overwrite=True)  # puts it back
    np.testing.assert_array_equal(reader.get_samples()["mu"], first)
    run = resumed(store)
    run.extend(5)
    run.close()
    np.testing.assert_array_equal(reader.get_samples()["mu"], first)


@pytest.mark.parametrize("name", ["thinning", "num_draws"])
def test_settings_that_were_edited_are_told(name, store):
    root = store / "zarr.json"
    root.write_text(re.sub(rf'"{name}": \d+', f'"{name}": 3', root.read_text()))
    with pytest.warns(
        UserWarning, match=r"zarr\.json is damaged: how the run was made is not known"
    ):
        run = open_run(store)
    assert run.num_draws == 10


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("do", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_run_is_not_copied(do, is_stored, tmp_path):
    run = toy_run(store=tmp_path / "a.run" if is_stored else None)
    run.extend(5)
    with pytest.raises(TypeError, match="a Run cannot be copied or pickled: copy"):
        do(run)
    run.extend(5)
    assert run.num_draws == 10
    run.close()


def test_what_reads_a_store_can_be_copied(store):
    run = open_run(store)
    for again in (copy.copy(run), pickle.loads(pickle.dumps(run))):
        np.testing.assert_array_equal(again.get_samples()["mu"], run.get_samples()["mu"])


@pytest.mark.parametrize("target", ["nowhere", "link.run"])
def test_links_that_lead_nowhere(target, tmp_path):
    link = tmp_path / "link.run"
    link.symlink_to(tmp_path / target)
    for do in (partial(toy_run, store=link), partial(open_run, link), partial(resumed, link)):
        with pytest.raises(StoreError, match=r"link\.run is a link that leads nowhere"):
            do()
    assert os.listdir(tmp_path) == ["link.run"]
