"""Text files: their lines, and the names that can be written to them."""

import os
from pathlib import Path

from numpyro_rankings.rankings import RankingsError


def read_lines(path: str | os.PathLike) -> list[str]:
    """Return the lines of a text file, without line ends.

    :param path: the file.
    :return: the lines, at least one of which is not blank.
    :raises RankingsError: if the file is missing, empty, or not text in UTF-8.
    """
    name = os.fspath(path)
    try:
        content = Path(name).read_bytes()
    except FileNotFoundError:
        raise RankingsError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise RankingsError(f"{name}: is a folder, not a file of rankings") from None
    except OSError as error:
        raise RankingsError(f"{name}: cannot be read: {error.strerror or error}") from None
    if not content.strip():
        raise RankingsError(f"{name}:1: the file is empty")
    try:
        text = content.decode("utf-8-sig")
        bad = content.find(b"\0")
    except UnicodeDecodeError as error:
        bad = error.start
    if bad >= 0:
        line = content[:bad].count(b"\n") + 1
        raise RankingsError(
            f"{name}:{line}: this is not a text file in UTF-8, which spreadsheets save "
            "as 'CSV UTF-8'"
        )
    # not splitlines(), which also splits names at rare separators
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n")


def check_writable_names(name: str, items: tuple[str, ...]) -> None:
    """Refuse item names that could not be read back unchanged."""
    for item in items:
        if item != item.strip() or "\n" in item or "\r" in item:
            raise RankingsError(
                f"{name}: the item name {item!r} contains a line break, or begins or ends with "
                "white space, which the file cannot represent"
            )
