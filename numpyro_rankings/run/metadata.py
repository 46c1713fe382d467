"""The metadata of a store: those of all groups and arrays, which the file of its root has too."""

import json
import re
import zlib
from pathlib import Path
from typing import Any

from numpyro_rankings.run.convert import SITES, STATS, is_quoted
from numpyro_rankings.run.errors import DamagedRootError, StoreError

ROOT = "zarr.json"
STATES = "states"
FORMAT = 2
_CHECKSUM = "checksum"
_NODE = re.compile(rf"({SITES}|{STATS}|{STATES}/[01])(/(?P<name>[^/]+))?")


def read_root(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the attributes of the root, and the metadata of all groups and arrays."""
    root = json.loads((path / ROOT).read_bytes())
    attributes = root["attributes"]
    if attributes.get("format") != FORMAT:
        raise StoreError(
            f"{path} is not a store that this version reads: its format is "
            f"{attributes.get('format')!r}, not {FORMAT}"
        )
    committed = (root.get("consolidated_metadata") or {}).get("metadata", {})
    if committed and root != with_checksum(root):
        raise DamagedRootError(
            f"{path}: {ROOT} is damaged: its checksum is not that of its content"
        )
    for where in committed:  # they become paths
        if not _is_name(where):
            raise StoreError(f"{path} is not the store of a run: {ROOT} names {where!r}")
    return attributes, committed


def identity_of(path: Path) -> list[Any] | None:
    """Return what tells the run of a store from others, None if it cannot be read."""
    try:
        run = json.loads((path / ROOT).read_bytes())["attributes"]["run"]
        return [run.get("id"), run.get("settings")]  # older stores have no id
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def check_identity(path: Path, identity: list[Any] | None) -> None:
    """Refuse to read on in a folder that does not have this run any more."""
    if identity_of(path) != identity:
        raise StoreError(
            f"{path} no longer has the run that was opened: it was replaced, moved or damaged since"
        )


def _is_name(where: str) -> bool:
    """Whether it is the name of a group or an array of a store, with nothing outside its folder."""
    if where == STATES:
        return True
    match = _NODE.fullmatch(where)
    return match is not None and (match["name"] is None or is_quoted(match["name"]))


def with_checksum(root: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a root with the checksum that they need."""
    attributes = {name: x for name, x in root["attributes"].items() if name != _CHECKSUM}
    content = json.dumps({**root, "attributes": attributes}, sort_keys=True)
    checksum = f"{zlib.crc32(content.encode()):08x}"
    return {**root, "attributes": {**attributes, _CHECKSUM: checksum}}


def consolidated(metadata: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "inline", "must_understand": False, "metadata": metadata}


def nodes_of(path: Path, damaged: list[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return the metadata of all groups and arrays, as their own files have it."""
    nodes = {}
    for group in (SITES, STATS, STATES, f"{STATES}/0", f"{STATES}/1"):
        for file in sorted(path.glob(f"{group}/{ROOT}")) + sorted(path.glob(f"{group}/*/{ROOT}")):
            where = file.parent.relative_to(path).as_posix()
            try:
                nodes[where] = json.loads(file.read_bytes())
            except (OSError, ValueError):
                if damaged is None:
                    raise
                damaged.append(where)
    return nodes


def newest_of(committed: dict[str, dict[str, Any]]) -> tuple[int, dict[str, Any]]:
    """Return which of the two states is the newest, and its counts."""
    states = [
        (turn, counts_of(committed[where]["attributes"]))
        for turn in (0, 1)
        if (where := f"{STATES}/{turn}") in committed
    ]
    return max(states, key=lambda x: (x[1]["num_sweeps"], x[0]))


def mend(path: Path, committed: dict[str, dict[str, Any]]) -> None:
    """Write the files again in which the groups and arrays have their own metadata, where needed.

    That of the root has it too, with a checksum. Where an array is longer than there, the process
    was killed before a chunk counted, whose files the next draws replace.
    """
    for where, node in committed.items():
        file = path / where / ROOT
        node = {name: x for name, x in node.items() if name != "consolidated_metadata"}
        try:
            is_whole = json.loads(file.read_bytes()) == node
        except (OSError, ValueError):
            is_whole = False
        if not is_whole:
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, json.dumps(node).encode())


def replace_file(file: Path, content: bytes) -> None:
    """Write a file at once, so that a process that is killed leaves the old one."""
    partial = file.with_name(f"{file.name}.partial")
    partial.unlink(missing_ok=True)  # it may be a link, which would be followed
    partial.write_bytes(content)
    partial.replace(file)


def counts_of(counts: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of a state, or raise an error."""
    for name in ("num_sweeps", "num_draws", "seconds"):
        kinds = (int, float) if name == "seconds" else int
        if (
            isinstance(counts[name], bool)
            or not isinstance(counts[name], kinds)
            or counts[name] < 0
        ):
            raise ValueError(f"{name} is {counts[name]!r}")
    return counts
