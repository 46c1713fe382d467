"""The store of a run: a folder in Zarr's format, which xarray and ArviZ read.

The draws are appended to arrays (chain, draw, …) in the groups ``posterior`` and ``sample_stats``.
The states of the chains are in the group ``states``, one subgroup after each chunk, ``0`` and ``1``
in turn, so that the newest complete one is never overwritten.

A chunk counts once the metadata of all arrays, which Zarr keeps in one file of the root
(``zarr.json``), is replaced: one rename, the last write of :meth:`Store.append`. Until then that
file names the old lengths and the old state, and readers see those. So a process killed anywhere
leaves what was there before its last chunk.

The arrays have checksums, and nothing in the store is a pickle.
"""

import asyncio
import contextlib
import json
import math
import os
import shutil
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from numpyro_rankings.run.convert import SITES, STATS, Groups

if TYPE_CHECKING:
    import zarr

_FORMAT = 1
_CHUNK_BYTES = 2**20
_STATES = "states"


class StoreError(Exception):
    """A store cannot be made, read or written. The message is one line."""


class Store:
    """The draws and the newest states of a run, on disk.

    Use :meth:`create` or :meth:`open`, and :meth:`close` at the end.

    :param path: of the folder.
    :param root: the group of the root.
    :param lock: a descriptor whose lock keeps other processes from writing.
    """

    def __init__(self, path: Path, root: "zarr.Group", lock: int | None) -> None:
        self.path, self._root = path, root
        self._num_draws, self._turn, self._is_closed = 0, 0, False
        # also when the store is no longer referred to, as in a notebook that runs a cell again
        self._give_back = weakref.finalize(self, _unlock, lock)

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

        path = Path(path)
        with _errors(path):
            path.mkdir(parents=True, exist_ok=True)
            lock, is_ours = _locked(path), False
            try:
                _refuse(path, overwrite)
                is_ours = True
                _clear(path)
                attributes = {"format": _FORMAT, "run": about}
                with _whole_writes():
                    root = zarr.create_group(str(path), attributes=attributes)
                    for name in (SITES, STATS, _STATES):
                        root.create_group(name)
            except BaseException:
                if is_ours:
                    discard(path)
                _unlock(lock)
                raise
        return cls(path, root, lock)

    @staticmethod
    def check_new(path: str | os.PathLike, overwrite: bool = False) -> None:
        """Refuse a path at which :meth:`create` would fail.

        :param overwrite: as for :meth:`create`.
        :raises StoreError: if there is something at the path.
        """
        path = Path(path)
        with _errors(path):
            if path.exists():
                with lock_of(path):
                    _refuse(path, overwrite)

    @staticmethod
    def has_sweeps(path: str | os.PathLike) -> bool:
        """Whether a sweep was stored in a folder; if not, :meth:`create` makes a new store there.

        :raises StoreError: if it is not a store, or in use by another process.
        """
        path = Path(path)
        with _errors(path, "zarr.json"), lock_of(path):
            return _has_sweeps(path)

    @staticmethod
    def about_new(path: str | os.PathLike) -> dict[str, Any] | None:
        """Return what a run without a sweep was created with, None if that was not stored.

        :raises StoreError: as :meth:`has_sweeps`.
        """
        path = Path(path)
        with _errors(path, "zarr.json"), lock_of(path):
            if _has_sweeps(path) or not (path / "zarr.json").is_file():
                return None
            return json.loads((path / "zarr.json").read_text())["attributes"]["run"]

    @classmethod
    def open(cls, path: str | os.PathLike) -> "Store":
        """Open a store to go on with it.

        :raises StoreError: if it is not a store, damaged, or in use by another process.
        """
        import zarr

        path = Path(path)
        if not path.is_dir():
            raise StoreError(f"{path} is not a folder, so not the store of a run")
        if not (path / "zarr.json").is_file():
            raise StoreError(f"{path} is not the store of a run: it has no zarr.json")
        lock = _locked(path)
        try:
            with _errors(path, "zarr.json"):
                root = zarr.open_group(str(path), mode="r+", use_consolidated=False)
                committed = _committed(path, root)
        except BaseException:
            _unlock(lock)
            raise
        store = cls(path, root, lock)
        try:
            with _errors(path, "zarr.json"):
                store._find_newest(committed)
        except BaseException:
            store.close()
            raise
        return store

    @property
    def about(self) -> dict[str, Any]:
        """What the run was created with."""
        about = self._root.attrs.get("run")
        if not isinstance(about, dict):
            raise StoreError(f"{self.path}: zarr.json has no description of the run")
        return about

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

        if self._is_closed:  # another run may have the store by now
            raise StoreError(f"this run of {self.path} was closed: Run.resume goes on with it")
        config = zarr.config.set({"array.write_empty_chunks": True})
        with _errors(self.path), _whole_writes(), config:
            stop = self._num_draws
            for group, arrays in draws.items():
                for name, values in arrays.items():
                    stop = self._num_draws + values.shape[1]
                    self._extend(group, name, values)
            turn = 1 - self._turn
            states = self._root.create_group(
                f"{_STATES}/{turn}", overwrite=True, attributes={**counts, "num_draws": stop}
            )
            for name, array in state.items():
                axes = tuple(f"{name}_dim_{k}" for k in range(array.ndim))
                _new_array(states, name, array, array.shape, axes)[...] = array
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*Consolidated metadata.*")
                zarr.consolidate_metadata(str(self.path))
        self._num_draws, self._turn = stop, turn

    def read_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the arrays of the newest state by name, and its counts.

        :raises StoreError: if the store is damaged.
        """
        where = f"{_STATES}/{self._turn}"
        with _errors(self.path, where):
            group = self._group(where)
            names, counts = [name for name, _ in group.arrays()], _counts(dict(group.attrs))
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
        with _errors(self.path, group):
            names = sorted(name for name, _ in self._group(group).arrays())
        part = (slice(None), slice(start, stop, step))
        return {name: self._read(f"{group}/{name}", part) for name in names}

    def close(self) -> None:
        """Let other processes write."""
        self._is_closed = True
        self._give_back()

    def _check_chunks(self, where: str) -> None:
        """Refuse an array of which a part is missing, which Zarr would read as zeros."""
        array = self._array(where)
        if array.nchunks_initialized < math.prod(array.cdata_shape):
            raise StoreError(f"{self.path}: {where} is damaged (a part of it is missing)")

    def _read(self, where: str, part: Any) -> np.ndarray:
        with _errors(self.path, where):
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
        turns = [
            (_counts(state["attributes"])["num_sweeps"], turn, state["attributes"]["num_draws"])
            for turn in (0, 1)
            if (state := committed.get(f"{_STATES}/{turn}")) is not None
        ]
        if not turns:
            raise StoreError(f"{self.path} has no state of the chains, so nothing to resume")
        _, self._turn, self._num_draws = max(turns)
        for rest in self.path.rglob("*.partial"):  # of a write that was interrupted
            rest.unlink()
        for where, array in committed.items():
            if array["node_type"] == "array" and not where.startswith(_STATES):
                with _errors(self.path, where):
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
    )


def _committed(path: Path, root: "zarr.Group") -> dict[str, dict[str, Any]]:
    """Return the metadata of all groups and arrays that the root's file has."""
    if root.attrs.get("format") != _FORMAT:
        raise StoreError(
            f"{path} is not a store that this version reads: its format is "
            f"{root.attrs.get('format')!r}, not {_FORMAT}"
        )
    metadata = json.loads((path / "zarr.json").read_text())
    return (metadata.get("consolidated_metadata") or {}).get("metadata", {})


def _counts(found: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of a state, or raise ValueError."""
    for name in ("num_sweeps", "num_draws", "seconds"):
        kinds = (int, float) if name == "seconds" else int
        if isinstance(found[name], bool) or not isinstance(found[name], kinds) or found[name] < 0:
            raise ValueError(f"{name} is {found[name]!r}")
    return found


def _has_sweeps(path: Path) -> bool:
    """Whether a sweep was stored in a folder.

    :raises StoreError: if there is something else than a store.
    """
    if not (path / "zarr.json").is_file():
        if any(not file.name.endswith(".partial") for file in path.iterdir()):
            raise StoreError(f"{path} is not the store of a run: it has no zarr.json")
        return False
    try:
        metadata = json.loads((path / "zarr.json").read_text())
        if "run" not in metadata["attributes"]:
            raise StoreError(f"{path} is not the store of a run")
        committed = (metadata.get("consolidated_metadata") or {}).get("metadata", {})
        states = [x for name, x in committed.items() if name in (f"{_STATES}/0", f"{_STATES}/1")]
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
        json.loads((path / "zarr.json").read_text())
    except ValueError:
        raise StoreError(
            f"{path} cannot be recognised as the store of a run, because its zarr.json is damaged: "
            "remove the folder yourself"
        ) from None


def _clear(path: Path) -> None:
    """Remove a store, but neither its folder nor what else is in it.

    A process that is killed meanwhile leaves a store, or what :meth:`Store.create` begins anew.
    """
    _remove_rests(path)
    for name in (SITES, STATS, _STATES):
        if (path / name).is_dir():
            (path / name).rename(path / f"{name}.partial")
    (path / "zarr.json").unlink(missing_ok=True)
    _remove_rests(path)


def _remove_rests(path: Path) -> None:
    """Remove what is left of writes that were interrupted, and of a store that was removed."""
    for rest in path.glob("*.partial"):
        shutil.rmtree(rest) if rest.is_dir() else rest.unlink()


def discard(path: str | os.PathLike) -> None:
    """Remove the store of a run of this process with its draws, and its folder if it is empty.

    Errors are ignored.
    """
    with contextlib.suppress(OSError):
        _clear(Path(path))
        Path(path).rmdir()


def _locked(path: Path) -> int | None:
    """Return a descriptor of the folder that no other process has locked."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        return None
    lock = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(lock), os.stat(path)):
            raise OSError  # another process has just removed the folder
    except OSError:
        os.close(lock)
        raise StoreError(
            f"{path} is in use by another process, or by another run of this process, which gives "
            "it back by Run.close()"
        ) from None
    return lock


@contextlib.contextmanager
def lock_of(path: Path) -> Iterator[None]:
    """Keep other processes from a folder.

    :raises StoreError: if one of them has it.
    """
    lock = _locked(path)
    try:
        yield
    finally:
        _unlock(lock)


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


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
def _errors(path: Path, what: str | None = None) -> Iterator[None]:
    """Turn the errors of the file system, and of Zarr on a damaged file, into one line.

    :param what: the part of the store that is read; None while it is written.
    """
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        doing = "write to" if what is None else "read"
        raise StoreError(f"cannot {doing} {path}: {error.strerror or error}") from error
    except Exception as error:
        if what is None:
            if not (path / "zarr.json").is_file():
                raise StoreError(f"cannot write to {path}: the store was removed") from error
            raise
        text = " ".join(str(error).split())
        raise StoreError(f"{path}: {what} is damaged ({type(error).__name__}: {text})") from error
