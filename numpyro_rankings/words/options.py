"""How messages write an option: as a caller in Python gives it, or a user of the command line."""

import contextlib
import csv
import io
import re
from collections.abc import Iterator, Sequence
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
