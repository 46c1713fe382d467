"""Read lists of a file of JSON object by object, with little of the file in memory at a time."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.text import open_text

_CHARACTERS = 2**22  # that are read at a time
_LONGEST = 2**28  # characters of an object
_LONGEST_KEY = 200  # characters of a key, with what is around it
_MARK = re.compile(r"\s*(\S)\s*")


def read_lists(path: str, keys: Sequence[str]) -> dict[str, list[Any]]:
    """Return the first list that each of some keys has, anywhere in the file.

    Nothing else of the file is looked at: it may not be JSON.
    """
    lists: dict[str, list[Any]] = {}
    with open_text(path) as stream:
        window = _Window(path, stream)
        while len(lists) < len(keys) and (key := window.find(set(keys) - set(lists))):
            lists[key] = window.value()
    return lists


def iterate_list(path: str, key: str) -> Iterator[Any]:
    """Yield the objects in the first list that a key has."""
    with open_text(path) as stream:
        window = _Window(path, stream)
        if window.find({key}) is None:
            raise RankingsError(f"{path}: there is no list {key!r}")
        yield from window.elements()


class _Window:
    """What is in memory of a file, which is read from its beginning to its end."""

    def __init__(self, name: str, stream: TextIO) -> None:
        self._name, self._stream = name, stream
        self._text, self._place = "", 0
        self._start = 0  # place of the text in the file, in characters
        self._decode = json.JSONDecoder().raw_decode

    def _read_on(self) -> bool:
        """Read more, and forget what is before the place; return whether there was more."""
        more = self._stream.read(_CHARACTERS)
        self._start += self._place
        self._text, self._place = self._text[self._place :] + more, 0
        return bool(more)

    def find(self, keys: set[str]) -> str | None:
        """Go to the next list that has one of the keys, and return the key; None at the end."""
        # within a text there is a backslash before the quotation marks, so that these are keys
        pattern = re.compile(rf'"({"|".join(map(re.escape, sorted(keys)))})"\s*:\s*(?=\[)')
        while True:
            if match := pattern.search(self._text, self._place):
                self._place = match.end()
                return match[1]
            self._place = max(self._place, len(self._text) - _LONGEST_KEY)
            if not self._read_on():
                return None

    def value(self) -> Any:
        """Return the object or list at the place, and go to its end."""
        while True:
            try:
                value, self._place = self._decode(self._text, self._place)
                return value
            except json.JSONDecodeError as error:
                place = self._start + error.pos
                # it may be longer than what has been read
                if len(self._text) - self._place > _LONGEST or not self._read_on():
                    raise self._error(error.msg, place) from None
            except RecursionError:
                raise self._error("it is nested too deeply", self._start + self._place) from None

    def elements(self) -> Iterator[Any]:
        """Yield the objects or lists in the list at the place."""
        self._mark("[")
        if self._text.startswith("]", self._place):
            return
        yield self.value()
        while self._mark(",]") == ",":
            yield self.value()

    def _mark(self, expected: str) -> str:
        """Return the next character that is not blank, and go beyond the blanks after it."""
        match = _MARK.match(self._text, self._place)
        while match is None or match.end() == len(self._text):
            is_more = self._read_on()
            match = _MARK.match(self._text, self._place)
            if not is_more:
                break
        if match is None or match[1] not in expected:
            what = f"expected {' or '.join(map(repr, expected))}"
            raise self._error(what, self._start + self._place)
        self._place = match.end()
        return match[1]

    def _error(self, what: str, place: int) -> RankingsError:
        """Return the error at a place, a number of characters of the file."""
        with open_text(self._name) as stream:
            line = column = 1
            while place > 0 and (text := stream.read(min(place, _CHARACTERS))):
                line, place = line + text.count("\n"), place - len(text)
                column = len(text) - text.rfind("\n") + (0 if "\n" in text else column - 1)
        return RankingsError(
            f"{self._name}:{line}: this is not JSON: {what}, at character {column} of the line; if "
            "the file is cut off there, export it again"
        )
