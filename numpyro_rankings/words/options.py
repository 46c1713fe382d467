"""How messages write an option: as a caller in Python gives it, or a user of the command line."""

import contextlib
import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

Value = str | int | bool | Sequence[str]
_is_command: ContextVar[bool] = ContextVar("is_command", default=False)


class NamedOption(NamedTuple):
    """An option that a message names with a value."""

    text: str  # as it is written
    name: str
    value: Value
    is_answer: bool  # whether the same file may be read with it, as far as the message knows


# options as people type them: those of other programs, and the words of the page
_MEANT = {
    **dict.fromkeys(
        (
            *("group", "groups", "num-groups", "n-groups", "clusters", "num-clusters"),
            *("n-clusters", "nclusters", "k", "n-components", "num-components"),
        ),
        ("components", "blocs", "max-clusters"),
    ),
    **dict.fromkeys(("output", "outdir", "results", "folder", "out"), ("out", "plot")),
    "samples": ("draws", "sample"),
    **dict.fromkeys(("iterations", "iter", "sweeps"), ("draws",)),
    **dict.fromkeys(("burnin", "burn-in", "burn"), ("warmup",)),
    **dict.fromkeys(("ties", "tie"), ("ties", "overvote")),
    **dict.fromkeys(("sep", "delimiter"), ("separator",)),
    **dict.fromkeys(("id", "voter", "respondent", "user"), ("judge", "names")),
    **dict.fromkeys(("frequency", "n"), ("count",)),
    **dict.fromkeys(("weights", "survey-weights", "wt"), ("weight",)),
    **dict.fromkeys(("na", "na-values", "nan"), ("missing",)),
    **dict.fromkeys(("format", "type"), ("layout",)),
    **dict.fromkeys(("time-limit", "timeout"), ("minutes",)),
    "overwrite": ("force",),
    "quiet": ("no-progress",),
}

_named: ContextVar[list[NamedOption] | None] = ContextVar("named", default=None)


@contextlib.contextmanager
def options_of_commands() -> Iterator[None]:
    """Write options as the command line has them."""
    token = _is_command.set(True)
    try:
        yield
    finally:
        _is_command.reset(token)


@contextlib.contextmanager
def named_options() -> Iterator[list[NamedOption]]:
    """Keep the options that messages name with a value."""
    named: list[NamedOption] = []
    token = _named.set(named)
    try:
        yield named
    finally:
        _named.reset(token)


def in_python(text: str) -> str:
    """Return a part of a message that is of use to a caller in Python only."""
    return "" if _is_command.get() else text


def option(name: str, value: Value | None = None, is_answer: bool = True) -> str:
    """Return an option for a message: ``gaps='close'``, or ``--gaps close`` in a command.

    :param value: what it is to be, or None to name it only: ``gaps=``, or ``--gaps``.
    :param is_answer: False if it is right only of another file, such as one that was edited, or
        if a wrong choice would not be seen in what is read.
    """
    text = _written(name, value)
    named = _named.get()
    if named is not None and value is not None:
        named.append(NamedOption(text, name, value, is_answer))
    return text


def _written(name: str, value: Value | None) -> str:
    if not _is_command.get():
        if value is not None and not isinstance(value, str | int):
            value = list(value) if len(value) > 1 else value[0]
        return f"{name}=" if value is None else f"{name}={value!r}"
    if value is None or isinstance(value, bool):
        return _flag(name, value)
    text = _text(value)
    is_plain = re.fullmatch(r"[\w./,-]+", text) is not None
    between = "=" if text.startswith("-") else " "  # it would be another option behind a blank
    return f"{_flag(name)}{between}{text if is_plain else repr(text)}"


def meant_by(name: str) -> tuple[str, ...]:
    """Return the options, as a command has them, that a word of other programs may mean."""
    flag = name.lower().lstrip("-").replace("_", "-")
    return tuple(f"--{x}" for x in _MEANT.get(flag, ()))


def options_like(name: str, known: Collection[str]) -> list[str]:
    """Return the options that may be meant by one that does not exist.

    :param known: those that exist, in flags or in names as the one that does not.
    """
    if meant := meant_by(name):
        flags = {_flag(x.removeprefix("--")): x for x in known}
        return [flags[x] for x in meant if x in flags]
    return alike(name.lower(), known)


def alike(word: str, words: Iterable[str]) -> list[str]:
    """Return the words that a word may be meant as, the likeliest first."""
    import difflib  # only after a mistake

    return difflib.get_close_matches(word, list(words), n=2)


def refuse_unknown(function: str, given: Iterable[str], known: Collection[str]) -> None:
    """Refuse options that a function has not, where Python would name one that is within it."""
    for name in given:
        if name not in known:
            meant = [f"{x}=" for x in options_like(name, known)]
            if not meant and "--components" in meant_by(name):
                meant = ["num_components= of a kernel"]
            hint = f"; did you mean {' or '.join(meant)}?" if meant else ""
            raise TypeError(f"{function}() has no option {name!r}{hint}")


def words_of_option(name: str, value: Value) -> list[str]:
    """Return the words of an option in a command, before a shell takes off quotes."""
    if isinstance(value, bool):
        return [_flag(name, value)]
    flag, text = _flag(name), _text(value)
    return [f"{flag}={text}"] if text.startswith("-") else [flag, text]


def _flag(name: str, value: bool | None = None) -> str:
    return f"--{'no-' if value is False else ''}{name.replace('_', '-')}"


def _text(value: Any) -> str:
    """Return a value as a command takes it, with commas between names."""
    if isinstance(value, str | int):
        return str(value)
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(value)
    return line.getvalue()
