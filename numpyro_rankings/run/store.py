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
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

import numpy as np

from numpyro_rankings.run.convert import SITES, STATS, Groups
from numpyro_rankings.run.errors import NEEDS_ASSERTS, StoreError, errors_of
from numpyro_rankings.run.folder import (
    check_is_folder,
    clear,
    discard,
    drop_replaced,
    drop_unfinished,
    folder_of,
    has_sweeps,
    recover,
    refuse,
    set_aside,
)
from numpyro_rankings.run.lock import Lock, lock_of
from numpyro_rankings.run.metadata import (
    FORMAT,
    ROOT,
    STATES,
    check_identity,
    consolidated,
    counts_of,
    identity_of,
    mend,
    newest_of,
    nodes_of,
    read_root,
    with_checksum,
)

if TYPE_CHECKING:
    import zarr

# Functions import zarr and ArviZ, which take long to load and which not every run needs.

_CHUNK_BYTES = 2**20


class Store:
    """The draws and the newest states of a run, on disk.

    Use :meth:`create` or :meth:`open`, and :meth:`close` at the end.
    """

    def __init__(
        self, path: Path, root: "zarr.Group", attributes: dict[str, Any], lock: Lock
    ) -> None:
        self.path, self._root, self._attributes, self._lock = path, root, attributes, lock
        self.num_draws, self._turn, self._identity = 0, 0, identity_of(path)
        self._is_closed = self._is_discarded = self._replaces = False

    @classmethod
    def create(
        cls, path: str | os.PathLike, about: dict[str, Any], overwrite: bool = False
    ) -> "Store":
        """Make an empty store. One that it overwrites is kept until this one has a sweep."""
        path = folder_of(path)
        attributes = {"format": FORMAT, "run": about}
        with errors_of(path):
            path.mkdir(parents=True, exist_ok=True)
            lock, is_ours = Lock(path), False
            try:
                recover(path)
                refuse(path, overwrite)
                if replaces := has_sweeps(path):
                    set_aside(path)
                is_ours = True
                clear(path)  # a process may have been killed when it began
                root = _new_root(path, attributes)
            except BaseException:
                if is_ours:
                    discard(path)
                else:
                    with contextlib.suppress(OSError, StoreError):
                        recover(path)
                lock.close()
                raise
        store = cls(path, root, attributes, lock)
        store._replaces = replaces
        return store

    @staticmethod
    def check_new(path: str | os.PathLike, overwrite: bool = False) -> None:
        """Refuse a path at which :meth:`create` would fail."""
        if not __debug__:
            raise StoreError(NEEDS_ASSERTS)
        path = folder_of(path)
        with errors_of(path):
            if path.exists():
                with lock_of(path):
                    recover(path)
                    refuse(path, overwrite)

    @staticmethod
    def has_sweeps(path: str | os.PathLike) -> bool:
        """Whether a sweep was stored in a folder; if not, :meth:`create` makes a store there."""
        path = folder_of(path)
        with errors_of(path, ROOT), lock_of(path):
            recover(path)
            return has_sweeps(path)

    @staticmethod
    def about_new(path: str | os.PathLike) -> dict[str, Any] | None:
        """Return what a run without a sweep was created with, None if that was not stored."""
        path = folder_of(path)
        with errors_of(path, ROOT), lock_of(path):
            if has_sweeps(path) or not (path / ROOT).is_file():
                return None
            return json.loads((path / ROOT).read_text())["attributes"]["run"]

    @classmethod
    def open(cls, path: str | os.PathLike) -> "Store":
        """Open a store to go on with it."""
        import zarr

        if not __debug__:
            raise StoreError(NEEDS_ASSERTS)
        path = folder_of(path)
        check_is_folder(path)
        with errors_of(path, ROOT):
            lock = Lock(path)
        try:
            with errors_of(path):
                recover(path)
            if not (path / ROOT).is_file():
                raise StoreError(f"{path} is not the store of a run: it has no {ROOT}")
            with errors_of(path, ROOT):
                attributes, committed = read_root(path)
                if not any(f"{STATES}/{turn}" in committed for turn in (0, 1)):
                    raise StoreError(
                        f"{path} has no state of the chains, so nothing to resume: "
                        "Run(…, store=…) begins there"
                    )
            with errors_of(path):
                mend(path, committed)
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
        """Replace what :attr:`about` returns; the next :meth:`append` stores it."""
        self._attributes["run"] = about

    def append(self, draws: Groups, state: dict[str, np.ndarray], counts: dict[str, Any]) -> None:
        """Append draws, and replace the state; after an error all is as before."""
        import zarr

        self.check_writable()
        config = zarr.config.set({"array.write_empty_chunks": True})
        with errors_of(self.path), _whole_writes(), config:
            stop = self.num_draws
            for group, arrays in draws.items():
                for name, values in arrays.items():
                    stop = self.num_draws + values.shape[1]
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
        self.num_draws, self._turn = stop, turn
        if self._replaces and counts["num_sweeps"] > 0:
            drop_replaced(self.path)
            self._replaces = False

    def read_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the arrays of the newest state by name, and its counts."""
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
        """Return draws ``start:stop:step`` of all arrays of a group, by name."""
        stop = self.num_draws if stop is None else stop
        self._check_place()
        check_identity(self.path, self._identity)  # a closed run may be replaced
        with errors_of(self.path, group):
            names = sorted(name for name, _ in self._group(group).arrays())
        part = (slice(None), slice(start, stop, step))
        return {name: self._read(f"{group}/{name}", part) for name in names}

    def close(self) -> None:
        """Let other processes write."""
        self._is_closed = True
        self._lock.close()

    def discard(self) -> None:
        """Remove a store that was just made, as far as possible, and close it.

        One that it was to replace is put back.
        """
        if self._lock.is_in_place():
            discard(self.path)
            self._is_discarded = True
        self.close()

    def check_writable(self) -> None:
        """Refuse to write to a store that another run may have meanwhile, or that is gone."""
        if self._lock.is_inherited:
            raise StoreError(
                f"{self.path} belongs to the process that this one was forked from: only that one "
                "writes to it"
            )
        if self._is_discarded:
            raise StoreError(
                f"{self.path} was removed, because its run could not begin: make it anew"
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
            if node["node_type"] == "group":  # Zarr writes it so
                node["consolidated_metadata"] = consolidated({})
        root = {
            "zarr_format": 3,
            "node_type": "group",
            "attributes": self._attributes,
            "consolidated_metadata": consolidated(metadata),
        }
        root = with_checksum(json.loads(json.dumps(root)))
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
        array.resize((chains, self.num_draws + num_new, *site))
        array[:, self.num_draws :] = values

    def _find_newest(self, committed: dict[str, dict[str, Any]]) -> None:
        """Find the newest state that is complete, and forget what came after it."""
        self._turn, counts = newest_of(committed)
        self.num_draws = counts["num_draws"]
        drop_unfinished(self.path)
        for where, array in committed.items():
            if array["node_type"] == "array" and not where.startswith(STATES):
                with errors_of(self.path, where):
                    if (length := array["shape"][1]) < self.num_draws:
                        raise ValueError(f"it has {length} of {self.num_draws} draws")
                self._check_chunks(where)


def _new_root(path: Path, attributes: dict[str, Any]) -> "zarr.Group":
    """Make the groups of a store."""
    import zarr

    with _whole_writes():
        root = zarr.create_group(local_store(path), attributes=attributes)
        for name in (SITES, STATS, STATES):
            root.create_group(name)
    return root


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


def local_store(path: Path, read_only: bool = False) -> Any:
    """Return Zarr's view of a folder, whose name is no address of anything else."""
    from zarr.storage import LocalStore

    return LocalStore(path, read_only=read_only)


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
