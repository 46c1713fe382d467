"""Read and write PrefLib files of strict orders, ``.soc`` and ``.soi``.

**References**

1. *PrefLib: A Library for Preferences*, N. Mattei, T. Walsh (ADT 2013), https://preflib.org
"""

import os
import re
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from numpyro_rankings.rankings import Rankings, RankingsError, build_rankings
from numpyro_rankings.readers.text import check_writable_names, read_lines

_HEADER = re.compile(r"#\s*([A-Z]+(?: [A-Z]+)*)(?: +([^\s:]+))?\s*:(.*)")
_ORDER = re.compile(r"\s*(\d{1,18})\s*:\s*(\d{1,18}(?:\s*,\s*\d{1,18})*)\s*", re.ASCII)
_NUMBERS = ("NUMBER ALTERNATIVES", "NUMBER VOTERS", "NUMBER UNIQUE ORDERS")
_SHIFTED_NAMES = "00014-00000001.soc"


def read_preflib(path: str | os.PathLike) -> Rankings:
    """Read a PrefLib file of strict orders.

    The file must be in the modern format, with metadata in lines that begin with ``#``, and without
    ties. An order in a ``.soi`` file is read as the top of an order of all items. If the items that
    it leaves out were not offered, as in races that not everybody enters, use
    ``Rankings.from_orderings(…, choice_sets=…)`` instead.

    :param path: the file; in a ``.soc`` file all orders must be complete.
    :return: one row for each distinct order, in the order of the file.
    :raises RankingsError: beginning with ``FILE:LINE:``, if the file is not in this format.
    """
    name = os.fspath(path)
    lines = read_lines(path)
    header, names, orders = _parse(name, lines)
    complete = _check_type(name, header)
    num_items, num_voters, num_orders = (
        _header_number(name, key, header, len(lines)) for key in _NUMBERS
    )
    items = _check_names(name, num_items, header[_NUMBERS[0]][0], names)
    if not orders:
        raise RankingsError(f"{name}:{len(lines)}: there are no rankings after the header")

    rows, counts = [], []
    for number, line in orders:
        count, row = _parse_order(f"{name}:{number}", line, items, complete)
        counts.append(count)
        rows.append(row)
    total = sum(counts)
    if total != num_voters:
        raise RankingsError(
            f"{name}:{header[_NUMBERS[1]][0]}: NUMBER VOTERS is {num_voters}, but the counts of "
            f"the rankings sum to {total}"
        )
    rankings = build_rankings(rows, items, counts, where=lambda r: f"{name}:{orders[r][0]}")
    rankings = rankings.unique()
    if rankings.num_rows != num_orders:
        raise RankingsError(
            f"{name}:{header[_NUMBERS[2]][0]}: NUMBER UNIQUE ORDERS is {num_orders}, but the file "
            f"has {rankings.num_rows} distinct orders"
        )
    if _SHIFTED_NAMES in (Path(name).name, header.get("FILE NAME", (0, ""))[1]):
        warnings.warn(
            f"{name}: the item names in PrefLib's {_SHIFTED_NAMES} (sushi) are shifted by one: its "
            "item k really is the one named k+1, and item 10 the one named 1; the names were read "
            "as they are in the file",
            UserWarning,
            stacklevel=2,
        )
    return rankings


def write_preflib(rankings: Rankings, path: str | os.PathLike, title: str = "") -> None:
    """Write a PrefLib file of strict orders, from which ``rankings.unique()`` can be read.

    :param rankings: rankings without choice sets, which the format cannot represent.
    :param path: the file to write, ``.soc`` for complete orders or ``.soi`` for any orders.
    :param title: a title of the data.
    :raises RankingsError: if the rankings do not fit the format; then nothing is written.
    """
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
    for row, length, count in zip(
        (orderings + 1).tolist(), lengths.tolist(), merged.counts.tolist(), strict=True
    ):
        lines.append(f"{count}: {','.join(map(str, row[:length]))}")
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


class _Parsed(NamedTuple):
    """The lines of a file, each text with its line number.

    - **header** - values of the metadata, by key.
    - **names** - names of the items, by their numbers from 1.
    - **orders** - the lines of the orders.
    """

    header: dict[str, tuple[int, str]]
    names: dict[int, tuple[int, str]]
    orders: list[tuple[int, str]]


def _parse(name: str, lines: list[str]) -> _Parsed:
    """Divide the lines into metadata, names of items, and orders."""
    header: dict[str, tuple[int, str]] = {}
    names: dict[int, tuple[int, str]] = {}
    orders: list[tuple[int, str]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if not line.lstrip().startswith("#"):
            if not header and not names:
                raise RankingsError(
                    f"{name}:{number}: expected a header line such as '# NUMBER ALTERNATIVES: 5'; "
                    "the old format of PrefLib, without '#', is not supported"
                )
            orders.append((number, line))
            continue
        match = _HEADER.fullmatch(line.strip())
        if match is None:
            continue
        key, argument, value = match[1], match[2], match[3].strip()
        if key == "ALTERNATIVE NAME":
            item = _whole(argument)
            if item is None or item < 1:
                raise RankingsError(
                    f"{name}:{number}: expected '# ALTERNATIVE NAME k: …' with a number k from 1"
                )
            if item in names:
                raise RankingsError(
                    f"{name}:{number}: item {item} is named already, on line {names[item][0]}"
                )
            names[item] = number, value
        elif argument is None:
            if key in header and key in _NUMBERS:
                raise RankingsError(
                    f"{name}:{number}: {key} is given already, on line {header[key][0]}"
                )
            header[key] = number, value
    return _Parsed(header, names, orders)


def _parse_order(
    where: str, line: str, items: tuple[str, ...], complete: bool
) -> tuple[int, list[int]]:
    """Return the count and the 0-based items of an order."""
    match = _ORDER.fullmatch(line)
    if match is None:
        raise RankingsError(f"{where}: {_line_problem(line)}")
    count, row = int(match[1]), [int(item) - 1 for item in match[2].split(",")]
    problem = _row_problem(row, items, complete)
    if count < 1:
        problem = f"count {count} is not a positive whole number"
    if problem:
        raise RankingsError(f"{where}: {problem}")
    return count, row


def _check_type(name: str, header: dict[str, tuple[int, str]]) -> bool:
    """Return whether all orders must be complete; the extension and the header must agree."""
    extension = Path(name).suffix.lower().removeprefix(".")
    line, kind = header.get("DATA TYPE", (1, ""))
    kind = kind.lower() or extension
    for tied in {kind, extension} & {"toc", "toi"}:
        raise RankingsError(
            f"{name}:{line}: a .{tied} file has ties, which are not supported; strict orders are "
            "in .soc and .soi files"
        )
    if kind not in ("soc", "soi") and "DATA TYPE" in header:
        raise RankingsError(f"{name}:{line}: DATA TYPE is {kind!r}; expected soc or soi")
    if extension in ("soc", "soi") and kind != extension:
        raise RankingsError(f"{name}:{line}: DATA TYPE is {kind}, but this is a .{extension} file")
    return kind == "soc"


def _header_number(name: str, key: str, header: dict[str, tuple[int, str]], last_line: int) -> int:
    if key not in header:
        raise RankingsError(f"{name}:{last_line}: the file has no line '# {key}: …'")
    line, text = header[key]
    value = _whole(text)
    if value is None:
        raise RankingsError(f"{name}:{line}: {key} must be a whole number, got {_short(text)}")
    return value


def _check_names(
    name: str, num_items: int, line: int, names: dict[int, tuple[int, str]]
) -> tuple[str, ...]:
    if num_items < 2:
        raise RankingsError(f"{name}:{line}: a ranking needs at least 2 items, got {num_items}")
    seen: dict[str, int] = {}
    for item, (where, text) in names.items():
        if item > num_items:
            raise RankingsError(
                f"{name}:{where}: item {item} has a name, but NUMBER ALTERNATIVES is {num_items}"
            )
        if not text:
            raise RankingsError(f"{name}:{where}: the name of item {item} is empty")
        if text in seen:
            raise RankingsError(
                f"{name}:{where}: items {seen[text]} and {item} have the same name {_short(text)}"
            )
        seen[text] = item
    if len(names) < num_items:
        missing = next(k for k in range(1, num_items + 1) if k not in names)
        raise RankingsError(
            f"{name}:{line}: NUMBER ALTERNATIVES is {num_items}, but there is no line "
            f"'# ALTERNATIVE NAME {missing}: …'"
        )
    return tuple(names[k][1] for k in range(1, num_items + 1))


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,18}", text) else None


def _row_problem(row: list[int], items: tuple[str, ...], complete: bool) -> str:
    """Return what is wrong with an order of 0-based items, in the 1-based numbers of the file."""
    if min(row) < 0 or max(row) >= len(items):
        item = next(k for k in row if not 0 <= k < len(items))
        return f"item {item + 1} is outside 1..{len(items)}"
    if len(set(row)) < len(row):
        item = next(k for i, k in enumerate(row) if k in row[:i])
        return f"item {item + 1} ({items[item]!r}) is listed twice"
    if complete and len(row) < len(items):
        item = min(set(range(len(items))) - set(row))
        return (
            f"item {item + 1} ({items[item]!r}) is missing; an order of a .soc file lists all "
            f"{len(items)} items"
        )
    return ""


def _line_problem(line: str) -> str:
    """Return why a line is not of the form ``count: item,item,…``."""
    count, colon, order = (part.strip() for part in line.partition(":"))
    if not colon:
        return f"expected 'count: item,item,…', got {_short(line.strip())}"
    if not _whole(count):
        return f"count {_short(count)} is not a positive whole number"
    if "{" in order or "}" in order:
        return f"the tie {_short(order)} is not supported; expected strict orders"
    if not order:
        return "an empty ranking; expected 'count: item,item,…'"
    for place, item in enumerate(order.split(","), start=1):
        if _whole(item.strip()) is None:
            return f"item {_short(item.strip())} at place {place} is not a whole number"
    return f"expected 'count: item,item,…', got {_short(line.strip())}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")
