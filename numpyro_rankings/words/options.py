"""How messages write an option: as a caller in Python gives it, or a user of the command line."""

import contextlib
import re
from collections.abc import Iterator
from contextvars import ContextVar

_is_command: ContextVar[bool] = ContextVar("is_command", default=False)


@contextlib.contextmanager
def options_of_commands() -> Iterator[None]:
    """Write options as the command line has them."""
    token = _is_command.set(True)
    try:
        yield
    finally:
        _is_command.reset(token)


def in_python(text: str) -> str:
    """Return a part of a message that is of use to a caller in Python only."""
    return "" if _is_command.get() else text


def option(name: str, value: str | int | bool | None = None) -> str:
    """Return an option for a message: ``gaps='close'``, or ``--gaps close`` in a command.

    :param value: what it is to be, or None to name it only: ``gaps=``, or ``--gaps``.
    """
    if not _is_command.get():
        return f"{name}=" if value is None else f"{name}={value!r}"
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    if value is None:
        return f"--{flag}"
    text = str(value)
    is_plain = re.fullmatch(r"[\w./,][\w./,-]*", text) is not None
    return f"--{flag} {text if is_plain else repr(text)}"
