"""A store that somebody else has made or replaced: nothing outside its folder is touched."""

import os
import shutil
from functools import partial
from pathlib import Path

import pytest
from helpers.toy_kernel import DATA, Autoregressive, change_root, toy_run

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
