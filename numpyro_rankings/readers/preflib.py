"""Read and write PrefLib files of strict orders, ``.soc`` and ``.soi``.

What other files of PrefLib hold is read in ``unsupported.py``, by the functions of this module.

**References**

1. *PrefLib: A Library for Preferences*, N. Mattei, T. Walsh (ADT 2013), https://preflib.org
"""

import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from numpyro_rankings.rankings import Rankings, RankingsError, build_rankings, check_rankings
from numpyro_rankings.rankings.names import names_counted
from numpyro_rankings.readers.ballots import about_ties
from numpyro_rankings.readers.text import check_writable_names, first_lines, read_lines, weight_hint
from numpyro_rankings.words import by_number, plural
from numpyro_rankings.words.options import in_python, option

PREFLIB = "a PrefLib file"
_HEADER = re.compile(r"#\s*([A-Z]+(?: [A-Z]+)*)(?: +([^\s:]+))?\s*:(.*)")
_ITEMS = r"\d{1,18}(?:\s*,\s*\d{1,18})*"
_ORDER = re.compile(rf"\s*(\d{{1,18}})\s*:\s*({_ITEMS})\s*", re.ASCII)
_GROUP = rf"(?:\d{{1,18}}|\{{\s*(?:{_ITEMS}\s*)?\}})"
_GROUPS = re.compile(rf"\s*(\d{{1,18}})\s*:\s*({_GROUP}(?:\s*,\s*{_GROUP})*)\s*", re.ASCII)
_NUMBERS = ("NUMBER ALTERNATIVES", "NUMBER VOTERS", "NUMBER UNIQUE ORDERS")
_GIVEN_ONCE = (*_NUMBERS, "NUMBER UNIQUE PREFERENCES", "NUMBER CATEGORIES", "NUMBER EDGES")
_NAMED = {"ALTERNATIVE NAME": "item", "CATEGORY NAME": "category"}
TYPES = {
    "soc": "strict orders of all items",
    "soi": "strict orders",
    "toc": "orders of all items with ties",
    "toi": "orders with ties",
    "cat": "items in categories, which are not orders",
    "wmd": "the weights of a matching graph, which are not orders",
}
_COUNT_AND_NAMES = re.compile(r"\s*\d{1,9}\s*:\s+[^,:;\"]+(?:,[^,:;\"]+)*")
_LOOKED_AT = 20  # lines
_SHIFTED_NAMES = "00014-00000001.soc"


def read_preflib(path: str | os.PathLike) -> Rankings:
    """Read a PrefLib file of strict orders.

    The file must be in the modern format, with metadata in lines that begin with ``#``. An order in
    a ``.soi`` file is read as the top of an order of all items. If the items that it leaves out
    were not offered, as in races that not everybody enters, use
    ``Rankings.from_orderings(…, choice_sets=…)`` instead.

    Ties are refused here: :meth:`numpyro_rankings.PartialOrders.from_preflib` takes them, and
    ``read_rankings(path, overvote="stop")`` reads lists up to them. A
    ``.toc`` or ``.toi`` file in which no order has one is read like a ``.soc``
    or ``.soi`` file. ``numpyro-rankings describe`` says what is in the others, and in ``.cat`` and
    ``.wmd`` files.

    :param path: the file; in ``.soc`` and ``.toc`` files all orders must be complete.
    :return: one row for each distinct order, in the order of the file.
    :raises RankingsError: beginning with ``FILE:LINE:``, if the file is not in this format.
    """
    return read_preflib_lines(path).unique()


def read_preflib_lines(path: str | os.PathLike) -> Rankings:
    """Read a PrefLib file as :func:`read_preflib`, with a row for each line."""
    parsed = parse_preflib(path)
    name, header = parsed.name, parsed.header
    if parsed.kind in ("cat", "wmd"):
        raise RankingsError(
            f"{name}:{header.get('DATA TYPE', (1, ''))[0]}: a .{parsed.kind} file holds "
            f"{TYPES[parsed.kind]}, and no model can take it; 'numpyro-rankings describe' says "
            "what is in it, and strict orders are in .soc and .soi files"
            + (in_python("; PartialOrders.from_preflib reads it") if parsed.kind == "cat" else "")
        )
    items, orders = read_orders(parsed)
    _refuse_ties(name, items, orders)
    rankings = build_rankings(
        [order.row for order in orders],
        items,
        [order.voters for order in orders],
        where=lambda r: f"{name}:{orders[r].line}",
    )
    distinct = rankings.unique().num_rows
    check_number(parsed, "NUMBER UNIQUE ORDERS", {distinct}, "distinct orders")
    if _SHIFTED_NAMES in (Path(name).name, header.get("FILE NAME", (0, ""))[1]):
        warnings.warn(
            f"{name}: the item names in PrefLib's {_SHIFTED_NAMES} (sushi) are shifted by one: its "
            "item k really is the one named k+1, and item 10 the one named 1; the names were read "
            "as they are in the file",
            UserWarning,
            stacklevel=3,
        )
    return rankings


def write_preflib(rankings: Rankings, path: str | os.PathLike, title: str = "") -> None:
    """Write a PrefLib file of strict orders, from which ``rankings.unique()`` can be read.

    :param rankings: rankings without choice sets, which the format cannot represent.
    :param path: the file to write, ``.soc`` for complete orders or ``.soi`` for any orders.
    :param title: a title of the data.
    :raises RankingsError: if the rankings do not fit the format; then nothing is written.
    """
    check_rankings(rankings)
    name = os.fspath(path)
    kind = Path(name).suffix.lower().removeprefix(".")
    if kind not in ("soc", "soi"):
        raise RankingsError(f"{name}: strict orders are written to a .soc or .soi file")
    if rankings.choice_sets is not None:
        raise RankingsError(f"{name}: PrefLib files cannot represent choice sets")
    check_writable_names(name, rankings.items, title)
    merged = rankings.unique()
    orderings, lengths = np.asarray(merged.orderings), np.asarray(merged.lengths)
    incomplete = lengths < merged.num_items
    if kind == "soc" and incomplete.any():
        raise RankingsError(
            f"{name}: row {np.argmax(incomplete) + 1} does not list all {merged.num_items} items, "
            "which a .soc file requires; write a .soi file"
        )
    header = {
        "FILE NAME": Path(name).name,
        "TITLE": " ".join(title.split()),
        "DESCRIPTION": "",
        "DATA TYPE": kind,
        "MODIFICATION TYPE": "original",
        "RELATES TO": "",
        "RELATED FILES": "",
        "PUBLICATION DATE": "",
        "MODIFICATION DATE": "",
        "NUMBER ALTERNATIVES": merged.num_items,
        "NUMBER VOTERS": len(merged),
        "NUMBER UNIQUE ORDERS": merged.num_rows,
    }
    header |= {f"ALTERNATIVE NAME {k}": item for k, item in enumerate(merged.items, start=1)}
    lines = [f"# {key}: {value}" for key, value in header.items()]
    for row, length, count in zip(orderings + 1, lengths, merged.counts.tolist(), strict=True):
        lines.append(f"{count}: {','.join(map(str, row[:length].tolist()))}")
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def refuse_lines_alone(path: str | os.PathLike, options: Mapping[str, Any]) -> None:
    """Refuse lines such as ``3: 1,2,{3,4}`` alone in a text file, unless it is said how to read.

    :param options: those that are given.
    """
    is_said = options.get("header") and (options.get("count") or options.get("judge"))
    lines = [line for line in first_lines(path) or () if line.strip()][:_LOOKED_AT]
    if any(re.match(r"#\s*NUMBER ALTERNATIVES\s*:", line) for line in lines):
        kinds = names_counted([f".{kind} ({what})" for kind, what in [*TYPES.items()][:4]])
        raise RankingsError(
            f"{os.fspath(path)}:1: the lines that begin with # are those of a PrefLib file: call "
            f"it by the extension of its kind, {kinds}"
        )
    have_lists = any("," in line for line in lines)
    if is_said or not have_lists:
        return
    what = "counts and lists of items"
    if all(map(_GROUPS.fullmatch, lines)):
        what = "those of a PrefLib file without its header, counts and items by their numbers"
    elif not all(map(_COUNT_AND_NAMES.fullmatch, lines)):
        return
    add = f"add {option('header', 'none')}, {option('layout', 'cell')} and "
    numbers = [int(line.partition(":")[0]) for line in lines]
    if len(lines) > 1 and numbers == list(range(1, len(lines) + 1)):
        what = f"{what.replace('counts', 'numbers', 1)}: {add}{option('judge', '1')} if they number"
        add = f" the judges, or {option('count', '1', False)} if they count them"
    else:
        what, add = f"{what}: {add}", option("count", "1")
    raise RankingsError(f"{os.fspath(path)}:1: the lines seem to be {what}{add}")


_Texts = dict[int, tuple[int, str]]  # lines and texts, by the numbers of what they name


class Parsed(NamedTuple):
    """The lines of a file, each text with its line number."""

    name: str  # the name of the file, for messages
    kind: str  # its type, such as soi
    header: dict[str, tuple[int, str]]  # values of the metadata, by key
    names: _Texts  # names of the items, by their numbers from 1
    categories: _Texts  # names of the categories, by their numbers
    data: list[tuple[int, str]]  # the lines after the header
    num_lines: int  # number of lines
    takes_ties: bool = False  # whether strict orders may have ties, too


class Order(NamedTuple):
    """An order of a file."""

    line: int  # its line number
    voters: int  # how many gave it
    row: list[int]  # 0-based items, best first
    # the same, where tied items are in one group; None if no two are tied
    groups: list[list[int]] | None


def parse_preflib(path: str | os.PathLike) -> Parsed:
    """Divide the lines of a file into metadata, names and data."""
    name, lines = os.fspath(path), read_lines(path)
    header: dict[str, tuple[int, str]] = {}
    named: dict[str, _Texts] = {key: {} for key in _NAMED}
    data: list[tuple[int, str]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if not line.lstrip().startswith("#"):
            if not header and not any(named.values()):
                raise RankingsError(
                    f"{name}:{number}: expected a header line such as '# NUMBER ALTERNATIVES: 5'; "
                    "the old format of PrefLib, without '#', is not supported"
                )
            data.append((number, line))
            continue
        match = _HEADER.fullmatch(line.strip())
        if match is None:
            continue
        key, argument, value = match[1], match[2], match[3].strip()
        if key in _NAMED:
            _add_name(name, key, argument, (number, value), named[key])
        elif argument is None:
            if key in header and key in _GIVEN_ONCE:
                raise RankingsError(
                    f"{name}:{number}: {key} is given already, on line {header[key][0]}"
                )
            header[key] = number, value
    kind = _check_type(name, header)
    names, categories = named["ALTERNATIVE NAME"], named["CATEGORY NAME"]
    return Parsed(name, kind, header, names, categories, data, len(lines))


def _add_name(
    name: str, key: str, argument: str | None, value: tuple[int, str], named: _Texts
) -> None:
    where, k, what = f"{name}:{value[0]}", _whole(argument), _NAMED[key]
    least = 1 if what == "item" else 0  # some files number the categories from 0
    if k is None or k < least:
        raise RankingsError(f"{where}: expected '# {key} k: …' with a number k from {least}")
    if k in named:
        raise RankingsError(f"{where}: {what} {k} is named already, on line {named[k][0]}")
    named[k] = value


def read_orders(parsed: Parsed) -> tuple[tuple[str, ...], list[Order]]:
    """Return the names of the items, and the order of each line."""
    name = parsed.name
    for key in _NUMBERS:
        header_number(parsed, key)
    items = item_names(parsed)
    if not parsed.data:
        raise RankingsError(f"{name}:{parsed.num_lines}: there are no rankings after the header")
    orders = [_parse_order(parsed, *numbered, items) for numbered in parsed.data]
    total = sum(order.voters for order in orders)
    check_number(parsed, "NUMBER VOTERS", {total}, "the counts of the rankings sum to")
    return items, orders


def _parse_order(parsed: Parsed, number: int, line: str, items: tuple[str, ...]) -> Order:
    kind, where, groups = parsed.kind, f"{parsed.name}:{number}", None
    if match := _ORDER.fullmatch(line):
        count, row = int(match[1]), [int(item) - 1 for item in match[2].split(",")]
    else:
        count, groups = split_groups(where, line, allows_empty=False)
        row = [item for group in groups for item in group]
        if len(groups) == len(row):
            groups = None
    problem = items_problem(row, items)
    if not problem and kind.endswith("oc") and len(row) < len(items):
        item = min(set(range(len(items))) - set(row))
        problem = (
            f"item {item + 1} ({items[item]!r}) is missing; an order of a .{kind} file lists all "
            f"{len(items)} items"
        )
    if count < 1:
        problem = f"count {count} is not a positive whole number"
    if groups is not None and not (kind.startswith("to") or parsed.takes_ties):
        order = shorten_text(line.partition(":")[2].strip())
        exact, drop = (option("ties", x) for x in ("exact", "drop"))
        problem = (
            f"the tie {order} is not supported in a .{kind} file, as in .toc and .toi; "
            f"{in_python('read_rankings with ')}{exact} reads it as no opinion, {drop} leaves out "
            f"its judges, and {option('overvote', 'stop', False)} reads up to it"
        )
    if problem:
        raise RankingsError(f"{where}: {problem}")
    return Order(number, count, row, groups)


def split_groups(where: str, line: str, allows_empty: bool) -> tuple[int, list[list[int]]]:
    """Return the count of a line, and its 0-based items in groups; an item alone is one."""
    match = _GROUPS.fullmatch(line)
    if match is None or (not allows_empty and re.search(r"\{\s*\}", line)):
        raise RankingsError(f"{where}: {_line_problem(line, allows_empty)}")
    texts = re.findall(r"\{[^}]*\}|[0-9]+", match[2])
    groups = [[int(x) - 1 for x in text.strip("{}").split(",") if x.strip()] for text in texts]
    return int(match[1]), groups


def _refuse_ties(name: str, items: tuple[str, ...], orders: list[Order]) -> None:
    tied = {order.line: order.groups for order in orders if order.groups is not None}
    if not tied:
        return
    line, groups = next(iter(tied.items()))
    judges = sum(order.voters for order in orders if order.line in tied)
    total = sum(order.voters for order in orders)
    names = [shorten_text(items[k]) for k in next(group for group in groups if len(group) > 1)]
    raise RankingsError(
        f"{name}:{line}: {names_counted(names, 2)} are tied; {judges:,} of "
        f"{plural(total, 'judge')} {by_number(judges, 'has', 'have')} ties: "
        f"{about_ties(constructor='from_preflib')}"
    )


def _check_type(name: str, header: dict[str, tuple[int, str]]) -> str:
    """Return the type of a file; its extension and the header must agree."""
    extension = Path(name).suffix.lower().removeprefix(".")
    line, kind = header.get("DATA TYPE", (1, ""))
    kind = kind.lower() or (extension if extension in TYPES else "soi")
    if kind not in TYPES:
        *others, last = TYPES
        raise RankingsError(
            f"{name}:{line}: DATA TYPE is {shorten_text(kind)}; expected {', '.join(others)} or "
            f"{last}"
        )
    if extension in TYPES and kind != extension:
        raise RankingsError(f"{name}:{line}: DATA TYPE is {kind}, but this is a .{extension} file")
    return kind


def header_number(parsed: Parsed, key: str) -> int:
    """Return a number of the header."""
    name, header = parsed.name, parsed.header
    if key not in header:
        raise RankingsError(f"{name}:{parsed.num_lines}: the file has no line '# {key}: …'")
    line, text = header[key]
    value = _whole(text)
    if value is None:
        raise RankingsError(
            f"{name}:{line}: {key} must be a whole number, got {shorten_text(text)}"
        )
    return value


def check_number(parsed: Parsed, key: str, right: set[int], what: str) -> None:
    """Refuse a file whose header has none of the numbers that are right."""
    number = header_number(parsed, key)
    if number in right:
        return
    counted = f"the file has {max(right)} {what}"
    if what.endswith(" to"):
        counted = f"{what} {max(right)}"
    raise RankingsError(f"{parsed.name}:{parsed.header[key][0]}: {key} is {number}, but {counted}")


def item_names(parsed: Parsed, least: int = 2) -> tuple[str, ...]:
    """Return the names of the items, which are numbered from 1."""
    key = "NUMBER ALTERNATIVES"
    name, num_items, line = parsed.name, header_number(parsed, key), parsed.header[key][0]
    if num_items < least:
        raise RankingsError(
            f"{name}:{line}: a ranking needs at least {plural(least, 'item')}, got {num_items}"
        )
    for item, (where, _) in parsed.names.items():
        if item > num_items:
            raise RankingsError(f"{name}:{where}: item {item} has a name, but {key} is {num_items}")
    names = check_names(name, "item", parsed.names)
    if len(names) < num_items:
        missing = next(k for k in range(1, num_items + 1) if k not in parsed.names)
        raise RankingsError(
            f"{name}:{line}: {key} is {num_items}, but there is no line "
            f"'# ALTERNATIVE NAME {missing}: …'"
        )
    return names


def check_names(name: str, what: str, named: _Texts) -> tuple[str, ...]:
    """Return names in the order of their numbers; none may be empty, and no two the same."""
    seen: dict[str, int] = {}
    for k, (where, text) in named.items():
        if not text:
            raise RankingsError(f"{name}:{where}: the name of {what} {k} is empty")
        if text in seen:
            some = {"item": "items", "category": "categories"}[what]
            raise RankingsError(
                f"{name}:{where}: {some} {seen[text]} and {k} have the same name "
                f"{shorten_text(text)}"
            )
        seen[text] = k
    return tuple(named[k][1] for k in sorted(named))


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,18}", text) else None


def items_problem(row: list[int], items: tuple[str, ...]) -> str:
    """Return what is wrong with 0-based items of a line, in the 1-based numbers of the file."""
    if row and (min(row) < 0 or max(row) >= len(items)):
        item = next(k for k in row if not 0 <= k < len(items))
        return f"item {item + 1} is outside 1..{len(items)}"
    if len(set(row)) < len(row):
        item = next(k for i, k in enumerate(row) if k in row[:i])
        return f"item {item + 1} ({items[item]!r}) is listed twice"
    return ""


def _line_problem(line: str, allows_empty: bool = False) -> str:
    """Return why a line is not of the form ``count: item,item,…``."""
    count, colon, order = (part.strip() for part in line.partition(":"))
    if not colon:
        return f"expected 'count: item,item,…', got {shorten_text(line.strip())}"
    if not _whole(count):
        return f"count {shorten_text(count)} is not a positive whole number{weight_hint(count)}"
    if not order:
        return "an empty ranking; expected 'count: item,item,…'"
    if problem := _brace_problem(order, allows_empty):
        return f"{problem} in {shorten_text(order)}"
    if allows_empty:
        order = re.sub(r"\{\s*\}", "0", order)
    for place, item in enumerate(re.sub("[{}]", "", order).split(","), start=1):
        if _whole(item.strip()) is None:
            return f"item {shorten_text(item.strip())} at place {place} is not a whole number"
    return f"expected 'count: item,item,…', got {shorten_text(line.strip())}"


def _brace_problem(order: str, allows_empty: bool) -> str:
    """Return what is wrong with the braces of an order."""
    is_open = False
    for mark in re.findall("[{}]", order):
        if mark == "{" and is_open:
            return "braces within braces"
        if mark == "}" and not is_open:
            return "'}' without '{'"
        is_open = mark == "{"
    if is_open:
        return "'{' without '}'"
    if not allows_empty and re.search(r"\{\s*\}", order):
        return "an empty tie '{}'"
    if re.search(r"\}\s*[^\s,}]|[^\s,{]\s*\{", order):
        return "a comma is missing before or after braces"
    return ""


def shorten_text(text: str) -> str:
    """Return the beginning of a text in quotes."""
    return repr(text if len(text) <= 40 else text[:39] + "…")
