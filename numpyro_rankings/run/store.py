"""The store of a run: a folder in Zarr's format, which xarray and ArviZ read.

The draws are appended to arrays (chain, draw, …) in the groups ``posterior`` and ``sample_stats``.
The states of the chains are in the group ``states``, one subgroup after each chunk, ``0`` and ``1``
in turn, so that the newest complete one is never overwritten.

A chunk counts once the metadata of all arrays, which are together in one file of the root
(``zarr.json``), is replaced: one rename, the last write of :meth:`Store.append`. Until then that
file names the old lengths and the old state, and readers see those. So a process killed anywhere
leaves what was there before its last chunk.

The arrays and that file have checksums, and nothing in the store is a pickle.
"""

import asyncio
import contextlib
import errno
import gc
import json
import math
import os
import shutil
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

import numpy as np

from numpyro_rankings.run.convert import SITES, STATS, Groups

if TYPE_CHECKING:
    import zarr

_FORMAT = 1
_CHUNK_BYTES = 2**20
ROOT = "zarr.json"
_CHECKSUM = "checksum"
_ERRORS_OF_WRITING = (errno.EROFS, errno.ENOSPC, errno.EDQUOT)
STATES = "states"


class StoreError(Exception):
    """A store cannot be made, read or written. The message is one line."""


class DamagedRootError(StoreError):
    """The file of the root is not what was written."""


class Store:
    """The draws and the newest states of a run, on disk.

    Use :meth:`create` or :meth:`open`, and :meth:`close` at the end.

    :param path: of the folder, absolute.
    :param root: the group of the root.
    :param attributes: of the root.
    :param lock: keeps other processes from writing.
    """

    def __init__(
        self, path: Path, root: "zarr.Group", attributes: dict[str, Any], lock: "_Lock"
    ) -> None:
        self.path, self._root, self._attributes, self._lock = path, root, attributes, lock
        self._num_draws, self._turn, self._is_closed = 0, 0, False

    @classmethod
    def create(
        cls, path: str | os.PathLike, about: dict[str, Any], overwrite: bool = False
    ) -> "Store":
        """Make an empty store.

        :param path: a folder that does not exist, is empty, or is a store without a sweep.
        :param about: what :attr:`about` returns, of the types of JSON.
        :param overwrite: whether to replace a store that has sweeps.
        :raises StoreError: if there is something at the path, or it cannot be written.
        """
        import zarr

        path = folder_of(path)
        with errors_of(path):
            path.mkdir(parents=True, exist_ok=True)
            lock, is_ours = _Lock(path), False
            try:
                _refuse(path, overwrite)
                is_ours = True
                _clear(path)  # of a process that was killed when it began
                attributes = {"format": _FORMAT, "run": about}
                with _whole_writes():
                    root = zarr.create_group(local_store(path), attributes=attributes)
                    for name in (SITES, STATS, STATES):
                        root.create_group(name)
            except BaseException:
                if is_ours:
                    discard(path)
                lock.close()
                raise
        return cls(path, root, attributes, lock)

    @staticmethod
    def check_new(path: str | os.PathLike, overwrite: bool = False) -> None:
        """Refuse a path at which :meth:`create` would fail.

        :param overwrite: as for :meth:`create`.
        :raises StoreError: if there is something at the path.
        """
        path = folder_of(path)
        with errors_of(path):
            if path.exists():
                with lock_of(path):
                    _refuse(path, overwrite)

    @staticmethod
    def has_sweeps(path: str | os.PathLike) -> bool:
        """Whether a sweep was stored in a folder; if not, :meth:`create` makes a new store there.

        :raises StoreError: if it is not a store, or in use by another process.
        """
        path = folder_of(path)
        with errors_of(path, ROOT), lock_of(path):
            return _has_sweeps(path)

    @staticmethod
    def about_new(path: str | os.PathLike) -> dict[str, Any] | None:
        """Return what a run without a sweep was created with, None if that was not stored.

        :raises StoreError: as :meth:`has_sweeps`.
        """
        path = folder_of(path)
        with errors_of(path, ROOT), lock_of(path):
            if _has_sweeps(path) or not (path / ROOT).is_file():
                return None
            return json.loads((path / ROOT).read_text())["attributes"]["run"]

    @classmethod
    def open(cls, path: str | os.PathLike) -> "Store":
        """Open a store to go on with it.

        :raises StoreError: if it is not a store, damaged, or in use by another process.
        """
        import zarr

        path = folder_of(path)
        check_is_store(path)
        lock = _Lock(path)
        try:
            with errors_of(path, ROOT):
                attributes, committed = read_root(path)
                if not any(f"{STATES}/{turn}" in committed for turn in (0, 1)):
                    raise StoreError(
                        f"{path} has no state of the chains, so nothing to resume: "
                        "Run(…, store=…) begins there"
                    )
            with errors_of(path):
                _mend(path, committed)
            with errors_of(path, ROOT):
                root = zarr.open_group(local_store(path), mode="r+", use_consolidated=False)
                store = cls(path, root, attributes, lock)
                store._find_newest(committed)
        except BaseException:
            lock.close()
            raise
        return store

    @property
    def about(self) -> dict[str, Any]:
        """What the run was created with."""
        about = self._attributes.get("run")
        if not isinstance(about, dict):
            raise StoreError(f"{self.path}: {ROOT} has no description of the run")
        return about

    def set_about(self, about: dict[str, Any]) -> None:
        """Replace what :attr:`about` returns; the next :meth:`append` stores it.

        :param about: of the types of JSON.
        """
        self._attributes["run"] = about

    @property
    def num_draws(self) -> int:
        """The number of draws of each chain."""
        return self._num_draws

    def append(self, draws: Groups, state: dict[str, np.ndarray], counts: dict[str, Any]) -> None:
        """Append draws, and replace the state.

        :param draws: for each group, arrays (chains, draws, …) by name; may have 0 draws.
        :param state: arrays of the state after them, by name.
        :param counts: numbers that belong to this state, of the types of JSON.
        :raises StoreError: if they cannot be written. The store is then as it was before.
        """
        import zarr

        self.check_writable()
        config = zarr.config.set({"array.write_empty_chunks": True})
        with errors_of(self.path), _whole_writes(), config:
            stop = self._num_draws
            for group, arrays in draws.items():
                for name, values in arrays.items():
                    stop = self._num_draws + values.shape[1]
                    self._extend(group, name, values)
            turn = 1 - self._turn
            states = self._root.create_group(
                f"{STATES}/{turn}", overwrite=True, attributes={**counts, "num_draws": stop}
            )
            for name, array in state.items():
                axes = tuple(f"{name}_dim_{k}" for k in range(array.ndim))
                _new_array(states, name, array, array.shape, axes)[...] = array
            self._check_place()
            self._write_root()
        self._num_draws, self._turn = stop, turn

    def read_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the arrays of the newest state by name, and its counts.

        :raises StoreError: if the store is damaged.
        """
        where = f"{STATES}/{self._turn}"
        with errors_of(self.path, where):
            group = self._group(where)
            names, counts = [name for name, _ in group.arrays()], counts_of(dict(group.attrs))
            for name in names:
                self._check_chunks(f"{where}/{name}")
        return {name: self._read(f"{where}/{name}", ...) for name in names}, counts

    def read(
        self, group: str, start: int = 0, stop: int | None = None, step: int = 1
    ) -> dict[str, np.ndarray]:
        """Return draws ``start:stop:step`` of all arrays of a group, by name.

        :raises StoreError: if the store is damaged.
        """
        stop = self._num_draws if stop is None else stop
        self._check_place()
        with errors_of(self.path, group):
            names = sorted(name for name, _ in self._group(group).arrays())
        part = (slice(None), slice(start, stop, step))
        return {name: self._read(f"{group}/{name}", part) for name in names}

    def close(self) -> None:
        """Let other processes write."""
        self._is_closed = True
        self._lock.close()

    def discard(self) -> None:
        """Remove a store that was just made, as far as possible, and close it."""
        if self._lock.is_in_place():
            discard(self.path)
        self.close()

    def check_writable(self) -> None:
        """Refuse to write to a store that another run may have by now, or that is gone.

        :raises StoreError: if it was closed, moved or removed, or if this process was forked.
        """
        if self._lock.is_inherited:
            raise StoreError(
                f"{self.path} belongs to the process that this one was forked from: only that one "
                "writes to it"
            )
        if self._is_closed:
            raise StoreError(f"this run of {self.path} was closed: Run.resume goes on with it")
        self._check_place()

    def _check_place(self) -> None:
        if not self._lock.is_in_place():
            raise StoreError(
                f"{self.path} was moved or removed while a run had it: move it back, or resume the "
                "run where it is now"
            )

    def _write_root(self) -> None:
        """Replace the file of the root, which has the metadata of all groups and arrays."""
        from zarr.core.buffer import default_buffer_prototype
        from zarr.core.sync import sync

        metadata = nodes_of(self.path)
        for node in metadata.values():
            if node["node_type"] == "group":  # as Zarr has them
                node["consolidated_metadata"] = _consolidated({})
        root = {
            "zarr_format": 3,
            "node_type": "group",
            "attributes": {name: x for name, x in self._attributes.items() if name != _CHECKSUM},
            "consolidated_metadata": _consolidated(metadata),
        }
        root = json.loads(json.dumps(root))
        root["attributes"][_CHECKSUM] = _checksum(root)
        content = default_buffer_prototype().buffer.from_bytes(json.dumps(root).encode())
        sync(local_store(self.path).set(ROOT, content))

    def _check_chunks(self, where: str) -> None:
        """Refuse an array of which a part is missing, which Zarr would read as zeros."""
        array = self._array(where)
        if array.nchunks_initialized < math.prod(array.cdata_shape):
            raise StoreError(f"{self.path}: {where} is damaged (a part of it is missing)")

    def _read(self, where: str, part: Any) -> np.ndarray:
        with errors_of(self.path, where):
            return np.asarray(self._array(where)[part])

    def _group(self, where: str) -> "zarr.Group":
        return cast("zarr.Group", self._root[where])

    def _array(self, where: str) -> "zarr.Array":
        return cast("zarr.Array", self._root[where])

    def _extend(self, group: str, name: str, values: np.ndarray) -> None:
        where = f"{group}/{name}"
        chains, num_new, *site = values.shape
        if where not in self._root:
            axes = [f"{name}_dim_{k}" for k in range(len(site))]
            _new_array(
                self._group(group), name, values, (chains, 0, *site), ("chain", "draw", *axes)
            )
        array = self._array(where)
        array.resize((chains, self._num_draws + num_new, *site))
        array[:, self._num_draws :] = values

    def _find_newest(self, committed: dict[str, dict[str, Any]]) -> None:
        """Find the newest state that is complete, and forget what came after it.

        :param committed: the metadata of all groups and arrays, as the root's file has them.
        """
        self._turn, counts = newest_of(committed)
        self._num_draws = counts["num_draws"]
        for rest in self.path.rglob("*.partial"):  # of a write that was interrupted
            rest.unlink()
        for where, array in committed.items():
            if array["node_type"] == "array" and not where.startswith(STATES):
                with errors_of(self.path, where):
                    self._forget_further(where)
                self._check_chunks(where)

    def _forget_further(self, where: str) -> None:
        """Cut an array where the newest state was stored."""
        array = self._array(where)
        chains, length, *site = array.shape
        if length < self._num_draws:
            raise ValueError(f"it has {length} of {self._num_draws} draws")
        array.resize((chains, self._num_draws, *site))


def _new_array(
    group: "zarr.Group",
    name: str,
    like: np.ndarray,
    shape: tuple[int, ...],
    axes: tuple[str, ...],
) -> "zarr.Array":
    """Make an array with checksums, in chunks of some draws."""
    from zarr.codecs import Crc32cCodec, ZstdCodec

    chunks = tuple(max(1, k) for k in shape)
    if axes[1:2] == ("draw",):
        draw_bytes = max(1, like[:, :1].nbytes)
        chunks = (chunks[0], max(1, _CHUNK_BYTES // draw_bytes), *chunks[2:])
    return group.create_array(
        name,
        shape=shape,
        chunks=chunks,
        dtype=like.dtype,
        compressors=[ZstdCodec(level=1), Crc32cCodec()],
        dimension_names=axes,
        attributes={"long_name": unquote(name)} if "%" in name else {},
    )


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


def local_store(path: Path, read_only: bool = False) -> Any:
    """Return Zarr's view of a folder, whose name is no address of anything else."""
    from zarr.storage import LocalStore

    return LocalStore(path, read_only=read_only)


def read_root(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the attributes of the root, and the metadata of all groups and arrays.

    :raises StoreError: if its file is not of this version, or was changed.
    """
    root = json.loads((path / ROOT).read_bytes())
    attributes = root["attributes"]
    if attributes.get("format") != _FORMAT:
        raise StoreError(
            f"{path} is not a store that this version reads: its format is "
            f"{attributes.get('format')!r}, not {_FORMAT}"
        )
    found = attributes.pop(_CHECKSUM, None)  # stores of version 0.1.0 have none
    if found is not None and found != _checksum(root):
        raise DamagedRootError(
            f"{path}: {ROOT} is damaged: its checksum is not that of its content"
        )
    return attributes, (root.get("consolidated_metadata") or {}).get("metadata", {})


def _checksum(root: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(root, sort_keys=True).encode()):08x}"


def _consolidated(metadata: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "inline", "must_understand": False, "metadata": metadata}


def nodes_of(path: Path, damaged: list[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return the metadata of all groups and arrays, as their own files have it.

    :param damaged: takes the places of files that cannot be read; None to raise the error.
    """
    found = {}
    for group in (SITES, STATS, STATES, f"{STATES}/0", f"{STATES}/1"):
        for file in sorted(path.glob(f"{group}/{ROOT}")) + sorted(path.glob(f"{group}/*/{ROOT}")):
            where = file.parent.relative_to(path).as_posix()
            try:
                found[where] = json.loads(file.read_bytes())
            except (OSError, ValueError):
                if damaged is None:
                    raise
                damaged.append(where)
    return found


def newest_of(committed: dict[str, dict[str, Any]]) -> tuple[int, dict[str, Any]]:
    """Return which of the two states is the newest, and its counts."""
    found = [
        (turn, counts_of(committed[where]["attributes"]))
        for turn in (0, 1)
        if (where := f"{STATES}/{turn}") in committed
    ]
    return max(found, key=lambda x: (x[1]["num_sweeps"], x[0]))


def _mend(path: Path, committed: dict[str, dict[str, Any]]) -> None:
    """Write the files again in which the groups and arrays have their own metadata, where needed.

    That of the root has it too, with a checksum. Where an array is longer than there, the process
    was killed before a chunk counted.
    """
    for where, node in committed.items():
        file = path / where / ROOT
        node = {name: x for name, x in node.items() if name != "consolidated_metadata"}
        try:
            found = json.loads(file.read_bytes())
            if node["node_type"] == "array":
                found = {**found, "shape": _cut(found["shape"], node["shape"])}
            is_whole = found == node
        except (OSError, ValueError, LookupError, TypeError):
            is_whole = False
        if not is_whole:
            file.parent.mkdir(parents=True, exist_ok=True)
            partial = file.with_suffix(".partial")
            partial.write_text(json.dumps(node))
            partial.replace(file)


def _cut(shape: list[int], committed: list[int]) -> list[int]:
    """Cut a shape in its second place, where it is longer than it was committed."""
    is_longer = len(shape) == len(committed) > 1 and shape[1] > committed[1]
    return [shape[0], committed[1], *shape[2:]] if is_longer else shape


def counts_of(found: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of a state, or raise an error."""
    for name in ("num_sweeps", "num_draws", "seconds"):
        kinds = (int, float) if name == "seconds" else int
        if isinstance(found[name], bool) or not isinstance(found[name], kinds) or found[name] < 0:
            raise ValueError(f"{name} is {found[name]!r}")
    return found


def _has_sweeps(path: Path) -> bool:
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


def _refuse(path: Path, overwrite: bool) -> None:
    """Refuse a folder that is not a store, and one that has sweeps, unless it is overwritten."""
    if not _has_sweeps(path):
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


def _clear(path: Path) -> None:
    """Remove a store, but neither its folder nor what else is in it.

    A process that is killed meanwhile leaves a store without a sweep.
    """
    root = path / ROOT
    if root.is_file():
        nothing = {"zarr_format": 3, "node_type": "group"}
        partial = path / "zarr.partial"
        partial.write_text(json.dumps({**nothing, "attributes": {"format": _FORMAT, "run": {}}}))
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
        _clear(path)
        if not path.is_symlink():
            path.rmdir()


class _Lock:
    """Keeps a folder from all other runs, of this process and others.

    It is given back by :meth:`close`, when it is no longer referred to, as in a notebook that
    runs a cell again, and in a process that is forked, where the run is not its own.

    :param path: of the folder.
    :raises StoreError: if another one has it.
    """

    def __init__(self, path: Path) -> None:
        self.is_inherited = False
        self._path = path
        descriptor = _locked(path)
        if descriptor is None:
            gc.collect()  # a run that is no longer referred to, but part of a cycle
            descriptor = _locked(path)
        if descriptor is None:
            raise StoreError(
                f"{path} is in use by another process, or by another run of this process, which "
                "gives it back by Run.close()"
            )
        self._folder = os.stat(path if descriptor < 0 else descriptor)
        self._close = weakref.finalize(self, _close, descriptor)
        _locks.add(self)

    def close(self) -> None:
        """Give the folder back."""
        self._close()

    def is_in_place(self) -> bool:
        """Whether the folder is still where it was."""
        try:
            return os.path.samestat(self._folder, os.stat(self._path))
        except OSError:
            return False


_locks: weakref.WeakSet[_Lock] = weakref.WeakSet()


def _release_after_fork() -> None:
    for lock in list(_locks):
        lock.is_inherited = True
        lock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_after_fork)


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


def _locked(path: Path) -> int | None:
    """Return a descriptor of the folder with a lock, or None if another one has it.

    It is -1 on Windows, which has no such locks.
    """
    try:
        import fcntl
    except ImportError:
        return -1
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # as below
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(descriptor), os.stat(path)):
            raise OSError  # another process has just removed the folder
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


@contextlib.contextmanager
def lock_of(path: Path) -> Iterator[None]:
    """Keep other processes from a folder.

    :raises StoreError: if one of them has it.
    """
    with contextlib.closing(_Lock(path)):
        yield


@contextlib.contextmanager
def _whole_writes() -> Iterator[None]:
    """After an error, wait for the files that Zarr's threads are still writing.

    Zarr raises the first error at once. What it goes on to write would come back after the folder
    is removed, or replace what is written next.
    """
    try:
        yield
    except BaseException:
        from zarr.core.sync import sync

        sync(_wait_for_others())
        raise


async def _wait_for_others() -> None:
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)


@contextlib.contextmanager
def errors_of(path: Path, what: str | None = None) -> Iterator[None]:
    """Turn the errors of the file system, and of Zarr on a damaged file, into one line.

    :param what: the part of the store that is read; None while it is written.
    """
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        # a store that is opened to go on with it is read and written
        doing = "write to" if what is None or error.errno in _ERRORS_OF_WRITING else "read"
        raise StoreError(f"cannot {doing} {path}: {error.strerror or error}") from error
    except Exception as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if what is None:
            raise StoreError(
                f"cannot write to {path}: a file in it is missing or damaged ({text})"
            ) from error
        raise StoreError(f"{path}: {what} is damaged ({text})") from error
