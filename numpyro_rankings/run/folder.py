"""The folder of a store: what is in it, and what of that may be removed."""

import contextlib
import json
import os
import shutil
from pathlib import Path

from numpyro_rankings.run.convert import SITES, STATS
from numpyro_rankings.run.errors import StoreError
from numpyro_rankings.run.metadata import FORMAT, ROOT, STATES


def folder_of(path: str | os.PathLike) -> Path:
    """Return the folder of a store, which stays the same when the process changes its folder.

    :raises StoreError: if it cannot be a folder of this machine.
    """
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise StoreError(f"the store of a run is a folder, got {path!r}") from None
    if "://" in text:
        raise StoreError(f"{text} is not a folder of this machine, which the store of a run is")
    return Path(os.path.abspath(text))


def check_is_store(path: Path) -> None:
    """Refuse what is no store at first sight."""
    if not path.is_dir():
        raise StoreError(f"{path} is not a folder, so not the store of a run")
    if not (path / ROOT).is_file():
        raise StoreError(f"{path} is not the store of a run: it has no {ROOT}")


def has_sweeps(path: Path) -> bool:
    """Whether a sweep was stored in a folder.

    :raises StoreError: if there is something else than a store.
    """
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
        return True  # as far as one can tell


def refuse(path: Path, overwrite: bool) -> None:
    """Refuse a folder that is not a store, and one that has sweeps, unless it is overwritten."""
    if not has_sweeps(path):
        return
    if not overwrite:
        raise StoreError(f"{path} exists: Run.resume continues the run in a store")
    try:
        json.loads((path / ROOT).read_text())
    except ValueError:
        raise StoreError(
            f"{path} cannot be recognised as the store of a run, because its {ROOT} is damaged: "
            "remove the folder yourself"
        ) from None


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
    for rest in (*(path / name for name in (SITES, STATS, STATES)), *path.glob("*.partial")):
        if rest.is_dir() and not rest.is_symlink():
            shutil.rmtree(rest)
        else:
            rest.unlink(missing_ok=True)
    root.unlink(missing_ok=True)


def discard(path: str | os.PathLike) -> None:
    """Remove the store of a run of this process with its draws, and its folder if it is empty.

    A link to the folder that the user has made stays. Errors are ignored.
    """
    path = folder_of(path)
    with contextlib.suppress(OSError):
        clear(path)
        if not path.is_symlink():
            path.rmdir()
