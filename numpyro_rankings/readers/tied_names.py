"""Names that are tied at a place of a list in a cell, and texts that may be one name or several.

Ties are written with a mark between the names, as ``A > B = C``, or in brackets, as ``A; {B; C}``.
A name may have such a mark, too: what is not sure is asked about.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from numpyro_rankings.words.options import option

TIE = "\x1f"  # between tied names while a list is read: no text has it
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_BRACKETS = frozenset("{}[]()")
_INSIDE = (";", ",", "|", "=", "~", "\n", "/", "&")  # between tied names in brackets
_EQUALS = ("=", "~")
_SURE = ("=", "~", "|", ";", "\n")  # names rarely have these
_MARKS = (*_SURE, "//", "/", ",")
PARTLY = (*_SURE, "//", "/")  # asked about if one of the parts is a name
JOINING = ("&", " + ", " and ")  # within names, and between several
_READABLE = (" = ", " ~ ", " | ", TIE)
_MOST_NAMES = 30  # in an option of a message


class TiedNames(NamedTuple):
    """The names in texts."""

    names: dict[str, list[str]]  # of those texts that are ties, or have brackets around
    unsure: dict[str, list[str]]  # of those that may be one name
    joined: list[str]  # texts such as A & B that are read as one name


def split_outside(text: str, mark: str) -> list[str]:
    """Split a text at a mark that is not within brackets, if each of these has its other half."""
    pieces = text.split(mark)
    if len(pieces) < 2 or _BRACKETS.isdisjoint(text) or not _has_halves(text):
        return [x.strip() for x in pieces]
    parts, depth = [""], 0
    for k, piece in enumerate(pieces):
        if k and not depth:
            parts.append("")
        parts[-1] += (mark if depth else "") + piece
        depth += sum((x in _CLOSING) - (x in _CLOSING.values()) for x in piece)
    return [x.strip() for x in parts]


def is_outside(mark: str, text: str) -> bool:
    """Return whether a text has a mark that is not within brackets."""
    return mark in text and len(split_outside(text, mark)) > 1


def inside_brackets(text: str) -> str | None:
    """Return what is in the brackets around a whole text, or None if there are none."""
    if text[:1] not in _CLOSING or not _has_halves(text):
        return None
    depth = 0
    for k, x in enumerate(text):
        depth += (x in _CLOSING) - (x in _CLOSING.values())
        if not depth:
            return text[1:k].strip() if k == len(text) - 1 else None
    return None


def _has_halves(text: str) -> bool:
    """Return whether each bracket is closed, in their order."""
    waiting: list[str] = []
    for x in text:
        if x in _CLOSING:
            waiting.append(_CLOSING[x])
        elif x in _BRACKETS and (not waiting or waiting.pop() != x):
            return False
    return not waiting


def segments(text: str, mark: str, known: Container[str]) -> list[str] | None:
    """Return two or more known names, which may have the mark between them within, or None."""
    pieces = text.split(mark)
    # the fewest names of the first pieces, for each number of them
    ways: list[list[str] | None] = [[]]
    for end in range(1, len(pieces) + 1):
        found = [
            [*before, name]
            for start, before in enumerate(ways)
            if before is not None
            and (start or end < len(pieces))
            and (name := mark.join(pieces[start:end]).strip()) in known
        ]
        ways.append(min(found, key=len, default=None))
    return ways[-1]


def known_names(text: str, known: set[str], is_by_arrows: bool) -> list[str] | None:
    """Return the known names in a text; None if it is one name, or what is in it is not known.

    In brackets, and with arrows around it, a tie is one if its names are not known, too.
    """
    if text in known:
        return None
    inside = inside_brackets(text)
    if inside is not None:
        if inside in known:
            return [inside]
        marks = [mark for mark in (*_INSIDE, None) if mark is None or mark in inside]
        ways = [inside.split() if x is None else segments(inside, x, known) for x in marks]
        found = next((x for x in ways if x and known.issuperset(x)), None)
        return found or (_pieces(inside, marks[0]) if marks[0] else None)
    for one in (*_MARKS, *JOINING):
        if one in text and (found := segments(text, one, known)):
            return found
    mark = next((x for x in _EQUALS if is_by_arrows and x in text), None)
    return _pieces(text, mark) if mark else None


def _pieces(text: str, mark: str) -> list[str]:
    """Split a text at a mark; if the mark has blanks around it anywhere, only at these."""
    with_blanks = f" {mark} "
    return [x.strip() for x in text.split(with_blanks if with_blanks in text else mark)]


def find_ties(
    parts: Sequence[str], known: set[str] | None, others: set[str], arrows: str
) -> TiedNames:
    """Return which of the texts at places are ties, of what names, and which may be.

    :param parts: distinct texts.
    :param known: the names of all items, if they are given.
    :param others: further names.
    :param arrows: a list with arrows between its places, without "=" or "~"; "" if there is none.
    """
    if known is not None:
        sure = {x: y for x in parts if (y := known_names(x, known, bool(arrows)))}
        return TiedNames(sure, {}, [])
    names, unsure = _in_brackets(parts, others)
    alone = {*others, *parts} | {x for listed in names.values() for x in listed}
    joined = []
    for mark in (*_MARKS, *JOINING):
        left = [x for x in parts if mark in x and x not in names and x not in unsure]
        read = {x: _pieces(x, mark) for x in left}
        is_equal = bool(arrows) and mark in _EQUALS
        read = {x: listed for x, listed in read.items() if is_equal or all(listed)}
        often = Counter(name for listed in read.values() for name in listed)
        for x, listed in read.items():
            are_known = [y in alone or (is_equal and often[y] > 1) for y in listed]
            has_blanks = f" {mark} " in x or " " not in arrows
            if not all(listed):
                names[x] = listed  # which is refused
            elif mark in JOINING:
                if any(are_known):
                    unsure[x] = listed
                elif mark == "&":
                    joined.append(x)
            elif all(are_known) or (is_equal and has_blanks and not any(are_known)):
                names[x] = listed
            elif is_equal or (mark in PARTLY and any(are_known)):
                unsure[x] = listed
        alone |= {y for x in left for y in names.get(x, ())}
    return TiedNames(names, unsure, joined)


def _in_brackets(
    parts: Sequence[str], others: set[str]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the names in texts with brackets around, and of those that may be one name."""
    inside = {x: y for x in parts if (y := inside_brackets(x))}
    if not inside:
        return {}, {}
    ways = {
        x: [
            _pieces(y, mark) if mark else y.split() for mark in (*_INSIDE, "") if (mark or " ") in y
        ]
        for x, y in inside.items()
    }
    is_all = len(inside) == len(parts)
    often = Counter(name for some in ways.values() for name in {x for way in some for x in way})
    alone = {*others, *(x for x in parts if x not in inside)}
    alone |= {inside[x] for x in inside if not ways[x]} | {
        x for x, number in often.items() if number > 1
    }
    names, unsure = dict[str, list[str]](), dict[str, list[str]]()
    for x, some in ways.items():
        by_blanks = " " in inside[x]
        marked = some[: len(some) - by_blanks]
        if sure := next((way for way in some if alone.issuperset(way)), None):
            names[x] = sure
        elif len(marked) == 1 and all(marked[0]) and x[0] in "{[":
            names[x] = marked[0]
        elif some and (marked or any(y in alone for y in some[-1])):
            unsure[x] = (marked or some)[0]
    kinds = {x[0] for x in names} | ({x[0] for x in parts} if is_all else set())
    names |= {
        x: [y] for x, y in inside.items() if x not in names and x not in unsure and x[0] in kinds
    }
    return names, unsure


def readable_mark(texts: Iterable[str]) -> str:
    """Return a mark for ties that no name has."""
    every = [name for text in texts for name in text.split(TIE)]
    return next(mark for mark in _READABLE if not any(mark in name for name in every))


def options_of_unsure(found: TiedNames, parts: Sequence[str], text: str) -> str:
    """Return what to add if a text is one name, or several: the names of all items."""
    ways = []
    for are_ties in (False, True):
        read = found.names | (found.unsure if are_ties else {})
        items = list(dict.fromkeys(y for x in parts for y in read.get(x, [x])))
        ways.append(option("items", items) if len(items) <= _MOST_NAMES else option("items"))
    one, several = ways
    if one == several:
        return f"name all items with {one}, {text!r} among them if it is one"
    listed = ", ".join(map(repr, found.unsure[text]))
    said = [f"{one} if it is one name", f"{several} if {listed} are tied"]
    is_in_doubt = "=" in text and " = " not in text
    first, second = said if is_in_doubt else said[::-1]
    return f"add {first}, or {second}"
