"""PrefLib files that are no strict orders: orders with ties, categories, and matching graphs.

The rules are those of preflibtools, and what its
checks call an error is refused.
"""

import math
import os
import re
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.preflib import (
    Parsed,
    check_names,
    check_number,
    header_number,
    item_names,
    items_problem,
    parse_preflib,
    read_orders,
    shorten_text,
    split_groups,
)

SUFFIXES = (".toc", ".toi", ".cat", ".wmd")
_MOST_VOTERS = 2**31 - 1
_EDGE = re.compile(r"\s*([0-9]{1,18})\s*,\s*([0-9]{1,18})\s*,\s*(\S+)\s*")


class TiedOrders(NamedTuple):
    """Orders in which items may be tied."""

    items: tuple[str, ...]  # names of all items
    # the distinct orders: groups of tied 0-based items, each in increasing order, best first
    orders: list[tuple[tuple[int, ...], ...]]
    counts: np.ndarray  # (rows,) int64, how many judges gave each order


class Categories(NamedTuple):
    """Judges who put items into categories."""

    items: tuple[str, ...]  # names of all items
    categories: tuple[str, ...]  # names of the categories
    # (rows, n) the category of each item, or -1 if it is in none; rows are distinct
    table: np.ndarray
    counts: np.ndarray  # (rows,) int64, how many judges each row stands for
    num_repeated: int  # lines of the file that say the same as an earlier one


class MatchingGraph(NamedTuple):
    """A directed graph with weights."""

    nodes: tuple[str, ...]  # their names
    edges: np.ndarray  # (m, 2) nodes from and to which each edge goes
    weights: np.ndarray  # (m,) their weights


_Row = TypeVar("_Row", bound=Hashable)
Unsupported = TiedOrders | Categories | MatchingGraph


def read_unsupported(path: str | os.PathLike) -> Unsupported | None:
    """Read what is no strict order; None if it is no such file, or no order in it has a tie."""
    if Path(path).suffix.lower() not in SUFFIXES:
        return None
    parsed = parse_preflib(path)
    if parsed.kind == "cat":
        return _categories(parsed)
    return _graph(parsed) if parsed.kind == "wmd" else tied_orders(parsed)


def tied_orders(parsed: Parsed) -> TiedOrders | None:
    """Read orders; None if none of them has a tie."""
    items, lines = read_orders(parsed)
    if all(line.groups is None for line in lines):
        return None
    as_written = [
        tuple(tuple(group) for group in line.groups or ([item] for item in line.row))
        for line in lines
    ]
    orders = [tuple(tuple(sorted(group)) for group in order) for order in as_written]
    distinct, counts = _merge(parsed, orders, ((x.line, x.voters) for x in lines))
    # preflibtools takes {1,2} and {2,1} for two orders
    numbers = {len(distinct), len(set(as_written))}
    check_number(parsed, "NUMBER UNIQUE ORDERS", numbers, "distinct orders")
    return TiedOrders(items, distinct, counts)


def _categories(parsed: Parsed) -> Categories:
    name, header = parsed.name, parsed.header
    for key in ("NUMBER ALTERNATIVES", "NUMBER VOTERS", "NUMBER UNIQUE PREFERENCES"):
        header_number(parsed, key)
    items, number = item_names(parsed, least=1), header_number(parsed, "NUMBER CATEGORIES")
    categories = check_names(name, "category", parsed.categories)
    if len(categories) != number or not number:
        raise RankingsError(
            f"{name}:{header['NUMBER CATEGORIES'][0]}: NUMBER CATEGORIES is {number}, but "
            f"{len(categories)} lines '# CATEGORY NAME k: …' name one"
        )
    if not parsed.data:
        raise RankingsError(f"{name}:{parsed.num_lines}: there are no judges after the header")
    rows, as_written, lines = [], set(), []
    for line_number, line in parsed.data:
        where = f"{name}:{line_number}"
        count, groups = split_groups(where, line, allows_empty=True)
        problem = items_problem([item for group in groups for item in group], items)
        if len(groups) != number:
            problem = (
                f"expected {number} categories, which NUMBER CATEGORIES says, got {len(groups)}"
            )
        if count < 1:
            problem = f"count {count} is not a positive whole number"
        if problem:
            raise RankingsError(f"{where}: {problem}")
        category_of = {item: k for k, group in enumerate(groups) for item in group}
        rows.append(tuple(category_of.get(item, -1) for item in range(len(items))))
        as_written.add(tuple(map(tuple, groups)))
        lines.append((line_number, count))
    distinct, counts = _merge(parsed, rows, lines)
    total = int(counts.sum())
    check_number(parsed, "NUMBER VOTERS", {total}, "the counts of the lines sum to")
    numbers = {len(distinct), len(as_written)}
    check_number(parsed, "NUMBER UNIQUE PREFERENCES", numbers, "distinct ones")
    table = np.array(distinct, np.min_scalar_type(-number))
    return Categories(items, categories, table, counts, len(rows) - len(table))


def _merge(
    parsed: Parsed, rows: list[_Row], lines: Iterable[tuple[int, int]]
) -> tuple[list[_Row], np.ndarray]:
    """Return the distinct rows and their counts, of the line number and count of each row."""
    counts: dict[_Row, int] = {}
    total = 0
    for row, (line, count) in zip(rows, lines, strict=True):
        total += count
        if total > _MOST_VOTERS:
            raise RankingsError(
                f"{parsed.name}:{line}: with count {count} the counts sum to more than "
                f"{_MOST_VOTERS}"
            )
        counts[row] = counts.get(row, 0) + count
    return list(counts), np.array(list(counts.values()), np.int64)


def _graph(parsed: Parsed) -> MatchingGraph:
    name = parsed.name
    nodes = item_names(parsed, least=1)
    lines: dict[tuple[int, int], int] = {}
    weights = []
    for number, line in parsed.data:
        where = f"{name}:{number}"
        match = _EDGE.fullmatch(line)
        if match is None:
            raise RankingsError(
                f"{where}: expected 'from,to,weight', got {shorten_text(line.strip())}"
            )
        edge = int(match[1]), int(match[2])
        for node in edge:
            if not 1 <= node <= len(nodes):
                raise RankingsError(f"{where}: node {node} is outside 1..{len(nodes)}")
        if edge in lines:
            raise RankingsError(
                f"{where}: the edge from {edge[0]} to {edge[1]} is given already, on line "
                f"{lines[edge]}"
            )
        lines[edge] = number
        weights.append(_parse_weight(where, match[3]))
    check_number(parsed, "NUMBER EDGES", {len(lines)}, "edges")
    edges = np.array(list(lines), int).reshape(-1, 2) - 1
    return MatchingGraph(nodes, edges, np.array(weights, float))


def _parse_weight(where: str, text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not math.isfinite(weight) or "_" in text:
        raise RankingsError(f"{where}: weight {shorten_text(text)} is not a number")
    return weight
