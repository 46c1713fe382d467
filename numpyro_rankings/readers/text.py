"""Text files: their encoding and lines, and the names that can be written to them."""

import codecs
import os
import re
from pathlib import Path

from numpyro_rankings.rankings import RankingsError

# by their first bytes; UTF-32 comes first, since its mark begins with that of UTF-16
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8"),
)
_LIKELY = ("windows-1252", "mac-roman")  # what spreadsheets write that do not write UTF-8
_CONTROL = re.compile("[\x80-\x84\x86-\x9f]")  # of Latin-1, in the place of ’, € and the like
_NOT_UTF_8 = "this is not a text file in UTF-8, which spreadsheets save as 'CSV UTF-8'"
_CELL_END = re.compile(rb"[,;\t\"\r\n]")
_BYTES_OF_HEAD, _TEXT_SHOWN = 2**16, 40


def read_lines(
    path: str | os.PathLike, encoding: str | None = None, hint: bool = False
) -> list[str]:
    """Return the lines of a text file, without line ends.

    :param path: the file.
    :param encoding: see :func:`read_text`.
    :param hint: see :func:`read_text`.
    :return: the lines, at least one of which is not blank.
    :raises RankingsError: see :func:`read_text`.
    """
    # not splitlines(), which also splits names at rare separators
    return read_text(path, encoding, hint).rstrip("\n").split("\n")


def read_text(path: str | os.PathLike, encoding: str | None = None, hint: bool = False) -> str:
    r"""Return the text of a file, whose lines end with ``\n``.

    :param path: the file.
    :param encoding: how it is encoded; by default what its first bytes say, or else UTF-8. Others
        are never guessed, because several would read the file, and each would read other names.
    :param hint: whether the caller takes an encoding from the user, so that messages name one.
    :raises RankingsError: if the file is missing, empty, or not text in this encoding.
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
    text = _decode(name, content, encoding, hint)
    if not text or text.isspace():
        raise RankingsError(f"{name}:1: the file is empty")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def first_lines(path: str | os.PathLike, encoding: str | None = None) -> list[str] | None:
    """Return the lines at the beginning of a file, or None if it is not text.

    What cannot be decoded is replaced: the reader of the file refuses it.
    """
    try:
        with open(path, "rb") as stream:
            head = stream.read(_BYTES_OF_HEAD)
    except OSError:
        return None
    chosen = _by_mark(head) or encoding or "utf-8"
    try:
        text = head.decode(chosen, errors="replace")
    except LookupError:
        return None
    text = text.lstrip("\ufeff")
    if "\0" in text:
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _by_mark(content: bytes) -> str | None:
    """Return the encoding that the first bytes of a file say."""
    return next((encoding for mark, encoding in _MARKS if content.startswith(mark)), None)


def _decode(name: str, content: bytes, given: str | None, hint: bool) -> str:
    marked = _by_mark(content)
    if given is not None:
        try:
            encoding = codecs.lookup(given).name
            b"".decode(encoding)
        except LookupError:
            raise RankingsError(
                f"{name}: there is no encoding {given!r}; --encoding takes names such as "
                "windows-1252, iso8859-2 or utf-16"
            ) from None
        if marked is not None and not encoding.startswith(marked):
            raise RankingsError(
                f"{name}: begins with the mark of {marked.upper()}; leave out --encoding {given}"
            )
        if not encoding.startswith("utf"):
            _check_is_not_utf_8(name, content, given)
    else:
        encoding = "utf-8"
    encoding = marked or encoding
    try:
        text = content.decode(encoding).lstrip("\ufeff")
    except UnicodeDecodeError as error:
        line = _line(content, error.start)
        if encoding != "utf-8":
            raise RankingsError(
                f"{name}:{line}: this is not text in {encoding.upper()}: {error.reason}"
            ) from None
        raise RankingsError(
            f"{name}:{line}: {_NOT_UTF_8}{_readings(content, error.start) if hint else ''}"
        ) from None
    if "\0" in text:
        raise RankingsError(f"{name}:{text[: text.find(chr(0))].count(chr(10)) + 1}: {_NOT_UTF_8}")
    if given is not None and (found := _CONTROL.search(text)):
        line = text[: found.start()].count("\n") + 1
        raise RankingsError(
            f"{name}:{line}: has the control character {found[0]!a} in {given}, which is "
            "hardly meant; use the encoding of the program that saved the file, such as "
            "windows-1252"
        )
    return text


def _check_is_not_utf_8(name: str, content: bytes, given: str) -> None:
    """Refuse to read UTF-8 in another encoding, which would change the names without an error."""
    if content.isascii():
        return
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return
    odd = next(character for character in text if not character.isascii())
    wrong = odd.encode().decode(given, errors="replace")
    raise RankingsError(
        f"{name}: is in UTF-8; --encoding {given} would read {odd!r} as {wrong!r}, so leave it out"
    )


def _line(content: bytes, place: int) -> int:
    return content[:place].count(b"\n") + 1


def _readings(content: bytes, place: int) -> str:
    """Return what the text at this place is in likely encodings, each with its option."""
    before, after = (
        content[max(place - _BYTES_OF_HEAD, 0) : place],
        content[place : place + _BYTES_OF_HEAD],
    )
    cell = _CELL_END.split(before)[-1] + _CELL_END.split(after, maxsplit=1)[0]
    found = {}
    for encoding in _LIKELY:
        text = cell.decode(encoding, errors="replace").strip()
        if text.isprintable() and "\ufffd" not in text:
            found.setdefault(text, encoding)
    if not found:
        return ""
    said = ", ".join(
        f"{text[:_TEXT_SHOWN]!r} with --encoding {encoding}" for text, encoding in found.items()
    )
    return f"; a name in this line is {said}: use the encoding that is right"


def check_writable_names(name: str, items: tuple[str, ...]) -> None:
    """Refuse item names that could not be read back unchanged."""
    for item in items:
        if item != item.strip() or any(mark in item for mark in "\n\r\0"):
            raise RankingsError(
                f"{name}: the item name {item!r} contains a line break or a NUL, or begins or ends "
                "with white space, which the file cannot represent"
            )
