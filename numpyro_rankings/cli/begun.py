"""The command that began a run: its store keeps it, and what differs is told by its options."""

import json
import shlex
from dataclasses import fields
from pathlib import Path

from numpyro_rankings.cli.arguments import file_errors
from numpyro_rankings.cli.models import PROCESS
from numpyro_rankings.cli.options import RunOptions
from numpyro_rankings.words.commands import DEFAULT_MODEL, options_of

_FILE = "command.json"  # in the store
# A run goes on with others of these, or its settings refuse them.
_FREE = {f"--{each.name.replace('_', '-')}" for each in fields(RunOptions)}
_FREE |= {"--save", "--blocs", "--slates", "--about"}
_USUAL = {"--model": DEFAULT_MODEL, "--components": PROCESS}  # as good as not given


def keep_command(store: Path, run: str, command: str) -> None:
    """Write the command into the store of a run.

    :param run: a hash of the run, since a process may be killed as it replaces another.
    """
    from numpyro_rankings.run.metadata import replace_file  # loads JAX

    with file_errors(f"cannot write {store / _FILE}"):
        replace_file(store / _FILE, json.dumps({"run": run, "command": command}).encode())


def kept_command(store: Path, run: str) -> str:
    """Return the command that began the run in a store; nothing if none did, as in Python."""
    file = store / _FILE
    if not file.is_file() or file.is_symlink():
        return ""
    try:
        kept = json.loads(file.read_bytes())
        return str(kept["command"]) if kept["run"] == run else ""
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def drop_command(store: Path) -> None:
    """Remove the command from a store."""
    (store / _FILE).unlink(missing_ok=True)


def differing_options(begun: str, resumed: str) -> list[str]:
    """Say which options of data and model differ: ``with --top 3, not --top 2``."""
    before, after = options_of(begun), options_of(resumed)
    texts = []
    for flag in sorted({*before, *after} - _FREE):
        pair = before.get(flag), after.get(flag)
        if pair[0] == pair[1] or (None in pair and [_USUAL.get(flag)] in pair):
            continue
        one, other = (
            f"without {flag}" if x is None else shlex.join([flag, *x] if flag else x) for x in pair
        )
        said = "with " if pair[0] is None else ""
        texts.append(f"{one if pair[0] is None else f'with {one}'}, not {said}{other}")
    return texts
