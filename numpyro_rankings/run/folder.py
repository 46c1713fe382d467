"""The folder of a store: what is in it, and what of that may be removed."""

import contextlib
import json
import os
import re
import shutil
from itertools import chain
from pathlib import Path

from numpyro_rankings.run.convert import SITES, STATS
from numpyro_rankings.run.errors import StoreError
from numpyro_rankings.run.metadata import FORMAT, ROOT, STATES, replace_file

_GROUPS = SITES, STATS, STATES
_REPLACED = ".replaced"  # folder in that of a store
# Names that Zarr and this package give to what they have not yet written whole.
_UNFINISHED = re.compile(
    r"(zarr|\d+)\.[0-9a-f]{32}\.partial|(zarr(\.json)?|path\.nc|command\.json)\.partial"
)


def folder_of(path: str | os.PathLike) -> Path:
    """Return the folder of a store, which stays the same when the process changes its folder."""
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise StoreError(f"the store of a run is a folder, got {path!r}") from None
    if "://" in text:
        raise StoreError(f"{text} is not a folder of this machine, which the store of a run is")
    folder = Path(os.path.abspath(text))
    if os.path.islink(folder) and not os.path.exists(folder):
        raise StoreError(f"{folder} is a link that leads nowhere, so not the store of a run")
    return folder


def check_is_folder(path: Path) -> None:
    """Refuse what is no folder."""
    if not path.is_dir():
        raise StoreError(f"{path} is not a folder, so not the store of a run")


def refuse_links(path: Path) -> None:
    """Refuse a store with links in it: they may lead out of its folder."""
    parts = [path / name for name in (ROOT, *_GROUPS, _REPLACED)]
    inside = (
        Path(folder, name)
        for part in parts
        for folder, folders, files in os.walk(part)
        for name in (*folders, *files)
    )
    for x in chain(parts, inside):
        if x.is_symlink():
            raise StoreError(
                f"{path} has a link, {x.relative_to(path)}, and the store of a run has none: copy "
                "what it leads to in its place if you trust it"
            )


def drop_unfinished(path: Path) -> None:
    """Remove the files of a store that a process left which was killed as it wrote them."""
    for place in (path.glob("*.partial"), *((path / x).rglob("*.partial") for x in _GROUPS)):
        for file in place:
            if _UNFINISHED.fullmatch(file.name):
                _remove(file)


def has_sweeps(path: Path) -> bool:
    """Whether a sweep was stored in a folder."""
    if not (path / ROOT).is_file():
        if not all(_UNFINISHED.fullmatch(file.name) for file in path.iterdir()):
            raise StoreError(f"{path} is not the store of a run: it has no {ROOT}")
        return False
    try:
        metadata = json.loads((path / ROOT).read_text())
        if "run" not in metadata["attributes"]:
            raise StoreError(f"{path} is not the store of a run")
        committed = (metadata.get("consolidated_metadata") or {}).get("metadata", {})
        states = [x for name, x in committed.items() if name in (f"{STATES}/0", f"{STATES}/1")]
        return any(x["attributes"]["num_sweeps"] != 0 for x in states)
    except (AttributeError, KeyError, TypeError, ValueError):
        return True  # it cannot be ruled out


def refuse(path: Path, overwrite: bool) -> None:
    """Refuse a folder that is not a store, and one that has sweeps, unless it is overwritten."""
    if not has_sweeps(path):
        return
    if not overwrite:
        raise StoreError(f"{path} exists: Run.resume continues the run in a store")
    if not _is_readable(path):
        raise StoreError(
            f"{path} cannot be recognised as the store of a run, because its {ROOT} is damaged: "
            "remove the folder yourself"
        )


def current_of(path: Path) -> Path:
    """Return where the store of a folder is: aside, while what is to replace it has no sweep."""
    aside = path / _REPLACED
    if not (aside / ROOT).is_file() or ((path / ROOT).is_file() and has_sweeps(path)):
        return path
    return aside


def set_aside(path: Path) -> None:
    """Keep a store in a folder within its own, until the run that replaces it has a sweep.

    Its root is moved first, and by :func:`recover` last: where it is, is the store.
    """
    aside = path / _REPLACED
    aside.mkdir(exist_ok=True)
    for name in (ROOT, *_GROUPS):
        if (path / name).exists():
            (path / name).rename(aside / name)


def recover(path: Path) -> None:
    """Put a store back that was set aside, or remove it if the run that replaces it has a sweep."""
    refuse_links(path)
    aside = path / _REPLACED
    if current_of(path) == path:
        if not (aside / ROOT).exists() or _is_readable(path):
            drop_replaced(path)
        return
    _remove(path / ROOT)
    drop_unfinished(path)
    for name in (*_GROUPS, ROOT):
        if (aside / name).exists():
            _remove(path / name)
            (aside / name).rename(path / name)
    drop_replaced(path)


def drop_replaced(path: Path) -> None:
    """Remove the store that was set aside, if there is one. Errors are ignored."""
    aside = path / _REPLACED
    with contextlib.suppress(OSError):
        for name in (ROOT, *_GROUPS):
            _remove(aside / name)
        aside.rmdir()


def _is_readable(path: Path) -> bool:
    try:
        json.loads((path / ROOT).read_text())
    except ValueError:
        return False
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def clear(path: Path) -> None:
    """Remove a store, but neither its folder nor what else is in it.

    A process that is killed meanwhile leaves a store without a sweep.
    """
    root = path / ROOT
    if root.is_file():
        nothing = {"zarr_format": 3, "node_type": "group"}
        empty = {**nothing, "attributes": {"format": FORMAT, "run": {}}}
        replace_file(root, json.dumps(empty).encode())
    for name in _GROUPS:
        _remove(path / name)
    drop_unfinished(path)
    root.unlink(missing_ok=True)


def discard(path: str | os.PathLike) -> None:
    """Remove the store of a run of this process with its draws, and its folder if it is empty.

    A store that it was to replace, and has no sweep to replace it with, is put back instead. A link
    to the folder that the user has made stays. Errors are ignored.
    """
    path = folder_of(path)
    with contextlib.suppress(OSError, StoreError):
        refuse_links(path)
        if current_of(path) != path:
            recover(path)
            return
        drop_replaced(path)
        clear(path)
        if not path.is_symlink():
            path.rmdir()
