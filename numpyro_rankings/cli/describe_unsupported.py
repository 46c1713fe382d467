"""What ``numpyro-rankings describe`` says of PrefLib files of categories, and of graphs."""

from collections.abc import Iterator

import numpy as np

from numpyro_rankings.cli.describe_rankings import (
    ITEMS_SHOWN,
    NAME_WIDTH,
    list_names,
    odd_names,
    shared_answers,
    what_to_check,
)
from numpyro_rankings.cli.models import MODELS
from numpyro_rankings.readers.unsupported import Categories, MatchingGraph
from numpyro_rankings.words import plural, shorten, span

_SIZES_SHOWN, _CATEGORIES_SHOWN, _CATEGORY_NAME = 20, 6, 12


def describe_unsupported(file: Categories | MatchingGraph) -> Iterator[str]:
    """Yield the lines that describe a file."""
    return _categories(file) if isinstance(file, Categories) else _graph(file)


# ---------------------------------------------------------------------------------------------
# Categories
# ---------------------------------------------------------------------------------------------


def _categories(file: Categories) -> Iterator[str]:
    counts, table, names = file.counts, file.table, file.categories
    total = int(counts.sum())
    kinds = f"{len(names):,} categor{'y' if len(names) == 1 else 'ies'}"
    yield (
        f"{plural(total, 'judge')} put {plural(len(file.items), 'item')} into {kinds}, in "
        f"{len(counts):,} different ways"
    )
    yield from shared_answers(counts, "answer")
    by_category = [counts @ (table == k) for k in range(len(names))]
    yield ""
    yield "items that a judge puts into a category: fewest, mean, most"
    for k, name in list(enumerate(names))[:_CATEGORIES_SHOWN]:
        sizes = (table == k).sum(1)
        mean = counts @ sizes / total
        label = f"{shorten(name, NAME_WIDTH):<{NAME_WIDTH}}"
        yield f"{label}  {sizes.min():>6,}  {mean:>8.1f}  {sizes.max():>6,}"
    yield ""
    yield "number of judges who put the item into the category"
    columns = [
        (shorten(name, _CATEGORY_NAME), x) for name, x in zip(names, by_category, strict=True)
    ]
    columns = columns[:_CATEGORIES_SHOWN]
    in_none = counts @ (table < 0)
    if in_none.any():
        columns.append(("in none", in_none))
    width = _CATEGORY_NAME + 2
    head = "".join(f"{name:>{width}}      " for name, _ in columns)
    yield f"{'item':<{NAME_WIDTH}}{head.rstrip()}"
    order = np.argsort(-by_category[0], kind="stable")
    for k in order[:ITEMS_SHOWN]:
        cells = (f"{x[k]:>{width},} {x[k] / total:>5.0%}" for _, x in columns)
        yield f"{shorten(file.items[k], NAME_WIDTH):<{NAME_WIDTH}}" + "".join(cells)
    if len(order) > ITEMS_SHOWN:
        yield f"and {len(order) - ITEMS_SHOWN:,} more items, which are less often in the first one"
    if len(names) > _CATEGORIES_SHOWN:
        yield f"and {len(names) - _CATEGORIES_SHOWN:,} more categories"
    yield from what_to_check(_odd_categories(file, by_category))
    yield ""
    yield (
        "Which model: all, "
        f"{', '.join(MODELS)}; items in a category are read as tied, and the first category as the "
        "best"
    )


def _odd_categories(file: Categories, by_category: list[np.ndarray]) -> Iterator[str]:
    empty = [
        repr(name)
        for name, number in zip(file.categories, by_category, strict=True)
        if not number.any()
    ]
    if empty:
        yield f"nobody puts an item into {list_names(empty)}"
    never = [file.items[k] for k in np.flatnonzero((file.table < 0).all(0))]
    if never:
        yield f"nobody puts {list_names(never)} into a category"
    yield from odd_names(file.items)
    is_same = (file.table == file.table[:, :1]).all(1)
    same = int(file.counts @ is_same)
    if same and len(file.items) > 1 and len(file.categories) > 1:
        yield f"judges who put all items into the same category, or into none: {same:,}"
    if file.num_repeated:
        yield f"lines that repeat an earlier one, whose counts were added: {file.num_repeated:,}"


# ---------------------------------------------------------------------------------------------
# Graphs
# ---------------------------------------------------------------------------------------------


def _graph(file: MatchingGraph) -> Iterator[str]:
    n, edges, weights = len(file.nodes), file.edges, file.weights
    yield f"a directed graph of {plural(n, 'node')} and {plural(len(edges), 'edge')}"
    keys = edges[:, 0] * n + edges[:, 1]
    is_loop = edges[:, 0] == edges[:, 1]
    is_mutual = np.isin(edges[:, 1] * n + edges[:, 0], keys) & ~is_loop
    yield f"{plural(int(is_mutual.sum()) // 2, 'pair')} of nodes have edges in both directions"
    if len(edges):
        values, number = np.unique(weights, return_counts=True)
        low, middle, high = np.quantile(weights, (0, 0.5, 1))
        yield f"weights: {span(low, high)}, median {middle:g}"
        if len(values) <= _SIZES_SHOWN:
            yield "weight: number of edges"
            yield "  " + ", ".join(
                f"{x:g}: {k:,}" for x, k in zip(values.tolist(), number.tolist(), strict=True)
            )
    out, into = (np.bincount(edges[:, k], minlength=n) for k in (0, 1))
    weight_out, weight_into = (np.bincount(edges[:, k], weights, minlength=n) for k in (0, 1))
    yield ""
    head = f"{'edges out':>10}  {'weight':>10}  {'edges in':>10}  {'weight':>10}"
    yield f"{'node':<{NAME_WIDTH}}  {head}"
    order = np.lexsort((-into, -out))
    for k in order[:ITEMS_SHOWN]:
        yield (
            f"{shorten(file.nodes[k], NAME_WIDTH):<{NAME_WIDTH}}  {out[k]:>10,}  "
            f"{weight_out[k]:>10g}  {into[k]:>10,}  {weight_into[k]:>10g}"
        )
    if n > ITEMS_SHOWN:
        yield f"and {n - ITEMS_SHOWN:,} more nodes, which have fewer edges out"
    yield from what_to_check(_odd_nodes(file, out + into))
    yield ""
    yield "Which model: none, because weights of a graph are no orders; fit and compare refuse it"


def _odd_nodes(file: MatchingGraph, degrees: np.ndarray) -> Iterator[str]:
    loops = [file.nodes[a] for a, b in file.edges.tolist() if a == b]
    if loops:
        yield f"edges from a node to itself: {len(loops):,} ({list_names(loops)})"
    alone = [file.nodes[k] for k in np.flatnonzero(degrees == 0)]
    if alone:
        yield f"nodes without an edge: {len(alone):,} ({list_names(alone)})"
    negative = int((file.weights < 0).sum())
    if negative:
        yield f"negative weights: {negative:,}"
    yield from odd_names(file.nodes)
