"""The folder of a store: what is in it, and what of that may be removed."""

import contextlib
import json
import os
import shutil
from pathlib import Path

from numpyro_rankings.run.convert import SITES, STATS
from numpyro_rankings.run.errors import StoreError
from numpyro_rankings.run.metadata import FORMAT, ROOT, STATES

_GROUPS = SITES, STATS, STATES
_REPLACED = ".replaced"  # folder in that of a store


def folder_of(path: str | os.PathLike) -> Path:
    """Return the folder of a store, which stays the same when the process changes its folder."""
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise StoreError(f"the store of a run is a folder, got {path!r}") from None
    if "://" in text:
        raise StoreError(f"{text} is not a folder of this machine, which the store of a run is")
    return Path(os.path.abspath(text))


def check_is_folder(path: Path) -> None:
    """Refuse what is no folder."""
    if not path.is_dir():
        raise StoreError(f"{path} is not a folder, so not the store of a run")


def has_sweeps(path: Path) -> bool:
    """Whether a sweep was stored in a folder."""
    if not (path / ROOT).is_file():
        if any(not file.name.endswith(".partial") for file in path.iterdir()):
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
    aside = path / _REPLACED
    if current_of(path) == path:
        if not (aside / ROOT).exists() or _is_readable(path):
            drop_replaced(path)
        return
    for rest in (path / ROOT, *path.glob("*.partial")):
        _remove(rest)
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
        partial = path / "zarr.partial"
        partial.write_text(json.dumps({**nothing, "attributes": {"format": FORMAT, "run": {}}}))
        partial.replace(root)
    for rest in (*(path / name for name in _GROUPS), *path.glob("*.partial")):
        _remove(rest)
    root.unlink(missing_ok=True)


def discard(path: str | os.PathLike) -> None:
    """Remove the store of a run of this process with its draws, and its folder if it is empty.

    A store that it was to replace, and has no sweep to replace it with, is put back instead. A link
    to the folder that the user has made stays. Errors are ignored.
    """
    path = folder_of(path)
    with contextlib.suppress(OSError):
        if current_of(path) != path:
            recover(path)
            return
        drop_replaced(path)
        clear(path)
        if not path.is_symlink():
            path.rmdir()
