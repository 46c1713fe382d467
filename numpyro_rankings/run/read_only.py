"""Read a store that other processes may write to, also where it is damaged."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from numpyro_rankings.run.convert import SITES, STATS
from numpyro_rankings.run.errors import DamagedRootError, StoreError, errors_of
from numpyro_rankings.run.folder import check_is_folder, current_of, refuse_links
from numpyro_rankings.run.metadata import (
    ROOT,
    STATES,
    check_identity,
    counts_of,
    identity_of,
    newest_of,
    nodes_of,
    read_root,
)
from numpyro_rankings.run.store import local_store

if TYPE_CHECKING:
    import zarr

# Functions import zarr and ArviZ, which take long to load and which not every run needs.


class ReadOnlyStore:
    """What is whole of a store, as it was when this was made. Other processes may write to it.

    - **path** - the folder.
    - **about** - what the run was created with; empty if it cannot be read.
    - **damage** - what was found to be damaged at first, in words.
    """

    def __init__(self, path: Path) -> None:
        check_is_folder(path)
        refuse_links(path)
        with errors_of(path, ROOT):
            path = current_of(path)
        self.path, self.damage = path, list[str]()
        self.about: dict[str, Any] = {}
        self._content, self._identity = b"", identity_of(path)
        try:
            self._content = (path / ROOT).read_bytes()
            attributes, self._nodes = read_root(path)
            if not isinstance(about := attributes.get("run"), dict):
                raise StoreError(f"{path} is not the store of a run")
            self.about = about
        except PermissionError as error:
            raise StoreError(f"cannot read {path}: {error.strerror}") from None
        except (DamagedRootError, OSError, ValueError, LookupError, TypeError, AttributeError):
            self._nodes = self._salvage()
        if not any(f"{STATES}/{turn}" in self._nodes for turn in (0, 1)):
            raise StoreError(f"{path} has no draws, and no state of the chains")
        with errors_of(path, STATES):
            self._turn, counts = newest_of(self._nodes)
        self.num_draws, self.num_sweeps = counts["num_draws"], counts["num_sweeps"]
        self.seconds = float(counts["seconds"])
        self._arrays: dict[str, zarr.Array | None] = {}

    def arrays_of(self, group: str) -> dict[str, str]:
        """Return where the arrays of a group are, by the name of the site or field."""
        inside = sorted(where for where in self._nodes if where.startswith(f"{group}/"))
        return {unquote(where.partition("/")[2]): where for where in inside}

    def shape_of(self, where: str) -> tuple[int, ...]:
        """Return the shape of an array."""
        return tuple(self._nodes[where]["shape"])

    def read(self, where: str, draws: range) -> tuple[np.ndarray, np.ndarray]:
        """Return some draws of an array, and for each whether it is whole; others are 0."""
        array = self._array(where)
        if array is None:
            check_identity(self.path, self._identity)
            return np.zeros((0, len(draws))), np.zeros(len(draws), bool)
        values = np.zeros((array.shape[0], len(draws), *array.shape[2:]), array.dtype)
        is_whole = np.ones(len(draws), bool)
        for here, content in self._parts(where, array, draws):
            if content is None:
                is_whole[here] = False
            else:
                values[:, here] = content
        check_identity(self.path, self._identity)  # afterwards, since it may be replaced meanwhile
        return values, is_whole

    def is_whole(self, where: str, draws: range) -> bool:
        """Whether all of these draws of an array can be read."""
        array = self._array(where)
        is_whole = array is not None and all(
            content is not None for _, content in self._parts(where, array, draws)
        )
        check_identity(self.path, self._identity)
        return is_whole

    def find_damage(self) -> list[str]:
        """Read everything, and return what is damaged, in words."""
        damage, every = [], range(self.num_draws)
        for where in [x for x in self._nodes if x.startswith((f"{SITES}/", f"{STATS}/"))]:
            array = self._array(where)
            if array is None:
                damage.append(f"{where}: its metadata are damaged")
                continue
            for here, content in self._parts(where, array, every):
                if content is None:
                    damage.append(
                        f"{where}: draws {here.start + 1:,} to {here.stop:,} of "
                        f"{self.num_draws:,} are damaged"
                    )
        state = [x for x in self._nodes if x.startswith(f"{STATES}/{self._turn}/")]
        arrays = {where: self._array(where) for where in state}
        is_whole = all(
            array is not None and self._chunk(where, (0,) * array.ndim, ...) is not None
            for where, array in arrays.items()
        )
        if not is_whole and not self._has_moved_on():
            damage.append(f"{STATES}/{self._turn} is damaged: the run cannot be resumed")
        check_identity(self.path, self._identity)
        return damage

    def _salvage(self) -> dict[str, dict[str, Any]]:
        """Return the metadata that groups and arrays have themselves."""
        damaged: list[str] = []
        nodes = nodes_of(self.path, damaged)
        if not nodes:
            raise StoreError(f"{self.path} is not the store of a run: {ROOT} cannot be read")
        self.damage.append(f"{ROOT} is damaged: how the run was made is not known")
        self.damage += [f"{where}: its metadata are damaged" for where in damaged]
        for where in (f"{STATES}/0", f"{STATES}/1"):
            try:
                counts_of(nodes[where]["attributes"])
            except (LookupError, TypeError, ValueError):
                nodes.pop(where, None)
        return nodes

    def _array(self, where: str) -> "zarr.Array | None":
        import zarr
        from zarr.storage import StorePath

        if where not in self._arrays:
            try:
                place = StorePath(local_store(self.path, read_only=True), where)
                array = zarr.Array.from_dict(place, self._nodes[where])
                is_long = where.startswith(STATES) or array.shape[1] >= self.num_draws
                self._arrays[where] = array if is_long else None
            except Exception:  # Zarr raises any on damaged metadata
                self._arrays[where] = None
        return self._arrays[where]

    def _parts(
        self, where: str, array: "zarr.Array", draws: range
    ) -> Iterator[tuple[slice, np.ndarray | None]]:
        """Yield the draws of each chunk, None if it is damaged, with their places among them."""
        for block, here, part in _blocks(draws, array.chunks[1]):
            chunk = 0, block, *(0,) * (array.ndim - 2)
            yield here, self._chunk(where, chunk, (slice(None), part))

    def _chunk(self, where: str, chunk: tuple[int, ...], part: Any) -> np.ndarray | None:
        """Return a part of a chunk, or None if it is damaged, or missing, which Zarr reads as 0."""
        array = self._array(where)
        assert array is not None
        try:
            if not (self.path / where / array.metadata.encode_chunk_key(chunk)).is_file():
                return None
            return np.asarray(array[part])
        except Exception:  # Zarr and the codecs raise any on damaged content
            return None

    def _has_moved_on(self) -> bool:
        """Whether another process has written to the store since."""
        try:
            return (self.path / ROOT).read_bytes() != self._content
        except OSError:
            return True


def _blocks(draws: range, size: int) -> Iterator[tuple[int, slice, slice]]:
    """Return the chunks in which draws are, with their places among them and in the array."""
    for block in range(draws.start // size, -(-draws.stop // size)):
        start = max(0, -(-(block * size - draws.start) // draws.step))
        stop = min(len(draws), -(-((block + 1) * size - draws.start) // draws.step))
        if start < stop:
            yield block, slice(start, stop), slice(draws[start], draws[stop - 1] + 1, draws.step)
