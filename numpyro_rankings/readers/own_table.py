"""The project's own text format of rankings."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from numpyro_rankings.rankings import Rankings, RankingsError, build_rankings
from numpyro_rankings.readers.text import check_writable_names, read_lines, read_text

_ITEM = re.compile(r"#\s*item\s+([^\s,>:={}]+)\s*:(.*)")
_COLUMNS = ("count,ordering", "count,ordering,offered")


def read_table(path: str | os.PathLike) -> Rankings:
    """Read rankings in the project's own text format.

    Lines that begin with ``#`` are comments, except those that name the items in index order, each
    with a code (without blanks or ``,>:={}``) and a name. They are followed by a line with the
    names of the columns, and by a line for each row: the number of rankings that it stands for, and
    the codes of the items that they list, best first::

        # title: A small election
        # item A: Ann Able
        # item B: Bob Best
        # item C: Cid Chair
        count,ordering
        14,C>A>B
        6,B

    An optional third column ``offered`` contains the choice set: the codes of the items that were
    offered, separated by blanks.

    :param path: the file.
    :return: the rankings, with the rows of the file.
    :raises RankingsError: beginning with ``FILE:LINE:``, if the file is not in this format.
    """
    name = os.fspath(path)
    codes: dict[str, int] = {}
    names: dict[str, int] = {}
    columns = 0
    where: list[int] = []
    counts: list[int] = []
    rows: list[list[int]] = []
    offered: list[list[int]] = []
    lines = read_lines(path)
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        try:
            if match := _ITEM.fullmatch(line):
                _add_item(match[1], match[2].strip(), codes, names)
            elif not line or line.startswith("#"):
                continue
            elif columns == 0:
                columns = _parse_columns(line, codes)
            else:
                fields = line.split(",")
                if len(fields) != columns:
                    raise RankingsError(f"expected {columns} columns, got {len(fields)}")
                where.append(number)
                counts.append(_parse_count(fields[0].strip()))
                rows.append(_parse_items(fields[1].split(">"), codes))
                if columns == 3:
                    offered.append(_parse_items(fields[2].split(), codes))
        except RankingsError as error:
            raise RankingsError(f"{name}:{number}: {error}") from None
    if not rows:
        raise RankingsError(f"{name}:{len(lines)}: there are no rankings")
    choice_sets = None
    if columns == 3:
        choice_sets = np.zeros((len(rows), len(names)), bool)
        for row, items in enumerate(offered):
            choice_sets[row, items] = True
    return build_rankings(
        rows, tuple(names), counts, choice_sets, where=lambda row: f"{name}:{where[row]}"
    )


def is_own_table(path: str | os.PathLike) -> bool:
    """Whether a file means to be in the format of :func:`read_table`."""
    for line in read_text(path).lines():
        line = line.strip()
        if re.match(r"#\s*item\b", line) or line.replace(" ", "") in _COLUMNS:
            return True
        if line and not line.startswith("#"):
            return False
    return False


def write_table(
    rankings: Rankings, path: str | os.PathLike, title: str = "", citation: str = ""
) -> None:
    """Write rankings in the format of :func:`read_table`, which reads ``rankings.unique()``.

    :param rankings: any rankings; their items get the codes 1, 2, …, n.
    :param path: the file to write.
    :param title: a title of the data.
    :param citation: the source of the data.
    :raises RankingsError: if the name of an item does not fit the format; then nothing is written.
    """
    check_writable_names(os.fspath(path), rankings.items, title, citation)
    merged = rankings.unique()
    notes = {"title": title, "citation": citation}
    lines = [f"# {key}: {' '.join(note.split())}" for key, note in notes.items() if note]
    codes = [str(k) for k in range(1, merged.num_items + 1)]
    lines += [f"# item {code}: {item}" for code, item in zip(codes, merged.items, strict=True)]
    lines.append(_COLUMNS[merged.choice_sets is not None])
    orderings, lengths = np.asarray(merged.orderings), np.asarray(merged.lengths)
    offered = None if merged.choice_sets is None else np.asarray(merged.choice_sets)
    for row, count in enumerate(np.asarray(merged.counts).tolist()):
        listed = orderings[row, : lengths[row]].tolist()
        fields = [str(count), ">".join(codes[item] for item in listed)]
        if offered is not None:
            fields.append(" ".join(codes[item] for item in np.flatnonzero(offered[row])))
        lines.append(",".join(fields))
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def _add_item(code: str, item: str, codes: dict[str, int], names: dict[str, int]) -> None:
    if not item:
        raise RankingsError(f"the name of item {code!r} is empty")
    if code in codes:
        raise RankingsError(f"two items have the code {code!r}")
    if item in names:
        raise RankingsError(f"two items have the name {item!r}")
    codes[code] = names[item] = len(codes)


def _parse_columns(line: str, codes: dict[str, int]) -> int:
    columns = line.replace(" ", "")
    if columns not in _COLUMNS:
        raise RankingsError(
            f"expected the columns {_COLUMNS[0]!r}, got {line[:40]!r}; the format is that of "
            "numpyro_rankings.readers.read_table"
        )
    if len(codes) < 2:
        raise RankingsError(
            "a ranking needs at least 2 items, each named by a line such as '# item A: Ann Able', "
            f"got {len(codes)}"
        )
    return columns.count(",") + 1


def _parse_count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) == 0:
        raise RankingsError(f"count {text[:40]!r} is not a positive whole number")
    return int(text)


def _parse_items(texts: Sequence[str], codes: dict[str, int]) -> list[int]:
    texts = [text.strip() for text in texts]
    if texts in ([], [""]):
        raise RankingsError("an empty ranking")
    for text in texts:
        if any(mark in text for mark in "={}"):
            raise RankingsError(f"ties are not supported, got {text[:40]!r}")
        if text not in codes:
            known = list(codes) if len(codes) <= 10 else [*list(codes)[:10], "…"]
            raise RankingsError(f"there is no item {text[:40]!r}; expected {', '.join(known)}")
    return [codes[text] for text in texts]
