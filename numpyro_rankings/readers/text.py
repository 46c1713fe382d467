"""Text files: their encoding and lines, and the names that can be written to them."""

import codecs
import contextlib
import io
import itertools
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.words.options import option

# by their first bytes; UTF-32 comes first, since its mark begins with that of UTF-16
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_LIKELY = ("windows-1252", "mac-roman")  # what spreadsheets write that do not write UTF-8
_NUL = re.compile("\0")
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")  # NUL, and halves of characters
_CONTROL = re.compile("[\0\x80-\x84\x86-\x9f]")  # of Latin-1, in the place of ’, € and the like
_NOT_UTF_8 = "this is not a text file in UTF-8, which spreadsheets save as 'CSV UTF-8'"
_LINE_END = re.compile(rb"\r\n?|\n")
_CELL_END = re.compile(rb"[,;\t\"\r\n]")
_BYTES_OF_HEAD, _TEXT_SHOWN = 2**16, 40
_MOST_BYTES_OF_JSON = 2**24
_IN_QUOTES = re.compile(r'["$`\\!]')  # what a shell reads within quotation marks


class TextFile(NamedTuple):
    """A text file that was read."""

    name: str  # its name in messages
    content: bytes  # its bytes
    encoding: str

    def lines(self, first: int = 0) -> Iterator[str]:
        """Yield the lines from one on, each with ``\\n`` at its end, whatever the file has."""
        # not splitlines(), which also splits names at rare separators
        stream = io.TextIOWrapper(io.BytesIO(self.content), self.encoding)
        return itertools.islice(stream, first, None)


def read_lines(
    path: str | os.PathLike, encoding: str | None = None, hint: bool = False
) -> list[str]:
    """Return the lines of a text file, without line ends; see :func:`read_text`."""
    lines = [line.removesuffix("\n") for line in read_text(path, encoding, hint).lines()]
    while not lines[-1]:
        lines.pop()
    return lines


def read_text(path: str | os.PathLike, encoding: str | None = None, hint: bool = False) -> TextFile:
    """Read a text file, at least one of whose lines is not blank.

    Only the encodings that its first bytes say, and UTF-8, are recognised: several others would
    read the file, and each would read other names. With ``hint``, messages name the option.
    """
    name = os.fspath(path)
    with _errors_in_words(name):
        content = Path(name).read_bytes()
    file = TextFile(name, content, _checked_encoding(name, content, encoding, hint))
    if all(not line or line.isspace() for line in file.lines()):
        raise RankingsError(f"{name}:1: the file is empty")
    return file


@contextlib.contextmanager
def open_text(path: str | os.PathLike) -> Iterator[TextIO]:
    """Open a text file in UTF-8, or in what its first bytes say, to read a part of it at a time."""
    name = os.fspath(path)
    with _errors_in_words(name):
        with open(name, "rb") as stream:
            encoding = _by_mark(stream.read(4)) or "utf-8"
        with open(name, encoding=encoding) as text:
            try:
                yield text
            except UnicodeDecodeError as error:
                raise RankingsError(
                    f"{name}: this is not text in {encoding.upper()}: {error.reason}"
                ) from None


@contextlib.contextmanager
def _errors_in_words(name: str) -> Iterator[None]:
    """Say why a file cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise RankingsError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise RankingsError(f"{name}: is a folder, not a file of rankings") from None
    except OSError as error:
        raise RankingsError(f"{name}: cannot be read: {error.strerror or error}") from None


def first_lines(path: str | os.PathLike, encoding: str | None = None) -> list[str] | None:
    """Return the lines at the beginning of a file, or None if it cannot be read or is not text.

    What cannot be decoded is replaced: the reader of the file refuses it.
    """
    try:
        with open(path, "rb") as stream:
            head = stream.read(_BYTES_OF_HEAD)
        text = head.decode(_by_mark(head) or encoding or "utf-8", errors="replace")
    except (OSError, LookupError):
        return None
    if "\0" in text:
        return None
    return re.split(r"\r\n?|\n", text.removeprefix("\ufeff"))


def _by_mark(content: bytes) -> str | None:
    """Return the encoding that the first bytes of a file say."""
    return next((encoding for mark, encoding in _MARKS if content.startswith(mark)), None)


def _checked_encoding(name: str, content: bytes, given: str | None, hint: bool) -> str:
    """Return the encoding of a file, in which all of it is text."""
    marked = _by_mark(content)
    encoding = marked or "utf-8-sig"
    if given is not None:
        known = _known_encoding(name, given)
        if marked is not None and not known.startswith(marked.removesuffix("-sig")):
            raise RankingsError(
                f"{name}: begins with the mark of {marked[:6].rstrip('-').upper()}; leave out "
                f"{option('encoding', given)}"
            )
        if not known.startswith("utf"):
            _check_is_not_utf_8(name, content, given)
        encoding = marked or known.replace("utf-8", "utf-8-sig")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = len(_LINE_END.findall(content, 0, error.start)) + 1
        where = f"{name}:{line}"
        if encoding != "utf-8-sig":
            what = (given or encoding).upper()
            raise RankingsError(f"{where}: this is not text in {what}: {error.reason}") from None
        readings = _readings(content, error.start) if hint else ""
        raise RankingsError(f"{where}: {_NOT_UTF_8}{readings}") from None
    unfit = _CONTROL if given is not None else _NUL
    if odd := unfit.search(text):
        line = len(re.findall(r"\r\n?|\n", text[: odd.start()])) + 1
        where = f"{name}:{line}"
        if odd[0] == "\0":
            raise RankingsError(f"{where}: {_NOT_UTF_8}")
        raise RankingsError(
            f"{where}: has the control character {odd[0]!a} in {given}, which is hardly meant; "
            "use the encoding of the program that saved the file, such as windows-1252"
        )
    return encoding


def _known_encoding(name: str, given: str) -> str:
    try:
        encoding = codecs.lookup(given).name
        b"    ".decode(encoding, errors="replace")  # refuses codecs that are not of text
    except LookupError:
        raise RankingsError(
            f"{name}: there is no encoding {given!r}; {option('encoding')} takes names such as "
            "windows-1252, iso8859-2 or utf-16"
        ) from None
    return encoding.removesuffix("-sig")


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
        f"{name}: is in UTF-8; {option('encoding', given)} would read {odd!r} as {wrong!r}, so "
        "leave it out"
    )


def _readings(content: bytes, place: int) -> str:
    """Return what the text at this place is in likely encodings, each with its option."""
    before = content[max(place - _BYTES_OF_HEAD, 0) : place]
    after = content[place : place + _BYTES_OF_HEAD]
    cell = _CELL_END.split(before)[-1] + _CELL_END.split(after, maxsplit=1)[0]
    encoding_of: dict[str, str] = {}
    for encoding in _LIKELY:
        text = cell.decode(encoding, errors="replace").strip()
        if text.isprintable() and "\ufffd" not in text:
            encoding_of.setdefault(text, encoding)
    if not encoding_of:
        return ""
    readings = " or ".join(
        f"{text[:_TEXT_SHOWN]!r} with {option('encoding', encoding)}"
        for text, encoding in encoding_of.items()
    )
    return f"; a text in this line is {readings}: use the encoding that is right"


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
        if isinstance(text, str) and _UNWRITABLE.search(text):
            raise RankingsError(
                f"{name}: {text!r} has a character that no text file can contain, such as NUL; "
                "write it without"
            )


def table_of_json(name: str, value: object = None, how: str = "") -> str:
    """Return the command that writes the objects or lists of a file of JSON as a table.

    :param value: what the file has, if that is known.
    """
    given, end = f"{name!r}, {how}" if how else repr(name), "index=False"
    key = _key_of_table(value)
    if key is None and _has_names(value):
        given, end = f"{name!r}, orient='index'", "index_label='judge'"
    stem, suffix = os.path.splitext(name)
    table = f"{stem}{'_table' if suffix == '.csv' else ''}.csv"  # never the file itself
    code = f"import pandas; pandas.read_json({given})"
    if key is not None:
        code = f"import json, pandas; pandas.DataFrame(json.load(open({name!r}))[{key!r}])"
    code = f"{code}.to_csv({table!r}, {end})"
    quoted = shlex.quote(code) if _IN_QUOTES.search(code) else f'"{code}"'
    return f"python -c {quoted} writes {table} as a table"


def value_of_json(name: str) -> object:
    """Return what a file of JSON has, or None if it is large or no JSON."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        if os.path.getsize(name) <= _MOST_BYTES_OF_JSON:
            with open_text(name) as stream:
                return json.load(stream)
    return None


def refuse_json(file: TextFile, first: int) -> None:
    """Refuse a text file that is one object, or list of these or of lists, of JSON.

    It has any number of lines. A single object may be the only line of several.
    """
    if not re.match(rb"\s*[\[{]", file.content.lstrip(b"\xef\xbb\xbf")):
        return
    try:
        value = json.loads(file.content.decode(file.encoding))
    except (ValueError, RecursionError):
        return
    parts = value.values() if isinstance(value, dict) else ()
    if not (_is_table(value) or any(isinstance(x, list | dict) for x in parts)):
        return
    how = f"{table_of_json(file.name, value)}, which is read"
    if isinstance(value, dict) and "CVR" in value:
        how = "if it has cast vote records, save it as .json, which is read"
    raise RankingsError(f"{file.name}:{first + 1}: this file is JSON, and no table: {how}")


def _key_of_table(value: object) -> str | None:
    """Return the key of the first list of objects or lists in an object of JSON."""
    items = value.items() if isinstance(value, dict) else ()
    return next((key for key, x in items if _is_table(x)), None)


def _has_names(value: object) -> bool:
    """Return whether an object of JSON has an object for each name, and not for each column.

    Those of columns, as pandas writes them, number the rows from 0.
    """
    parts = [*value.values()] if isinstance(value, dict) else []
    if len(parts) < 2 or not all(isinstance(x, dict) and x for x in parts):
        return False
    return any([*x] != [str(k) for k in range(len(x))] for x in parts)


def _is_table(value: object) -> bool:
    """Return whether a value of JSON is a list of several objects, or of several lists."""
    kinds = {type(x) for x in value} if isinstance(value, list) and len(value) > 1 else set()
    return kinds in ({dict}, {list})


def weight_hint(text: str, instead: str = "") -> str:
    """Return what to say of a count that has thousands, or looks like a survey weight, or both.

    :param instead: what to do with a weight; by default, to write a table.
    """
    is_thousands = re.fullmatch(r"[1-9][0-9]{0,2}(?:([,. '’])[0-9]{3})(?:\1[0-9]{3})*", text)
    hint = "; write thousands without marks between the digits" if is_thousands else ""
    is_weight = re.fullmatch(r"[0-9]*[.,][0-9]+(?:e[-+]?[0-9]+)?", text)
    if is_weight and not (is_thousands and "," in text):
        instead = instead or f"write a table with a column of them for {option('weight')}"
        hint += f"; survey weights are not counts: {instead}"
    return hint
