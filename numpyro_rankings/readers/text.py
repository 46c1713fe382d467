"""Text files: their lines, and the names that can be written to them."""

import codecs
import io
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from numpyro_rankings.rankings import RankingsError


class TextFile(NamedTuple):
    """A text file that was read.

    - **name** - of the file, for messages.
    - **content** - its bytes.
    - **encoding** - of the text.
    """

    name: str
    content: bytes
    encoding: str

    def lines(self, first: int = 0) -> Iterator[str]:
        """Yield the lines from one on, each with ``\\n`` at its end, whatever the file has."""
        # not splitlines(), which also splits names at rare separators
        stream = io.TextIOWrapper(io.BytesIO(self.content), self.encoding)
        return itertools.islice(stream, first, None)


def read_lines(path: str | os.PathLike) -> list[str]:
    """Return the lines of a text file, without line ends; see :func:`read_text`."""
    lines = [line.removesuffix("\n") for line in read_text(path).lines()]
    while not lines[-1]:
        lines.pop()
    return lines


def read_text(path: str | os.PathLike) -> TextFile:
    """Read a text file, at least one of whose lines is not blank.

    :param path: the file.
    :raises RankingsError: if the file is missing, empty, or not text in UTF-8.
    """
    name = os.fspath(path)
    content = _read_bytes(name)
    if not content.removeprefix(codecs.BOM_UTF8).strip():
        raise RankingsError(f"{name}:1: the file is empty")
    try:
        content.decode("utf-8-sig")
        bad = content.find(b"\0")
    except UnicodeDecodeError as error:
        bad = error.start
    if bad >= 0:
        line = content[:bad].count(b"\n") + 1
        raise RankingsError(
            f"{name}:{line}: this is not a text file in UTF-8, which spreadsheets save "
            "as 'CSV UTF-8'"
        )
    return TextFile(name, content, "utf-8-sig")


def _read_bytes(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except FileNotFoundError:
        raise RankingsError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise RankingsError(f"{name}: is a folder, not a file of rankings") from None
    except OSError as error:
        raise RankingsError(f"{name}: cannot be read: {error.strerror or error}") from None


def check_writable_names(name: str, items: tuple[str, ...], *notes: str) -> None:
    """Refuse item names that could not be read back unchanged, and notes that spoil the file."""
    for item in items:
        if item != item.strip() or "\n" in item or "\r" in item:
            raise RankingsError(
                f"{name}: the item name {item!r} contains a line break, or begins or ends with "
                "white space, which the file cannot represent"
            )
    check_writable_texts(name, (*items, *notes))


def check_writable_texts(name: str, texts: Iterable[object]) -> None:
    """Refuse texts that no file in UTF-8 can contain: those with NUL, and halves of characters."""
    for text in texts:
        if isinstance(text, str) and ("\0" in text or not _is_unicode(text)):
            raise RankingsError(
                f"{name}: {text!r} has a character that no text file can contain, such as NUL; "
                "write it without"
            )


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
