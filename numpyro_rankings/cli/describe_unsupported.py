"""What ``numpyro-rankings describe`` says of PrefLib files that no model can take yet."""

import itertools
from collections import Counter
from collections.abc import Iterator

import numpy as np

from numpyro_rankings.cli.describe_rankings import (
    ITEMS_SHOWN,
    NAME_WIDTH,
    list_names,
    numbers_and_lengths,
    odd_names,
    pairs_table,
    shared_answers,
    what_to_check,
)
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.rankings.counts import apart_in_words
from numpyro_rankings.readers.preflib import ends_in_tie
from numpyro_rankings.readers.unsupported import Categories, MatchingGraph, TiedOrders, Unsupported
from numpyro_rankings.words import plural, shorten, span
from numpyro_rankings.words.options import option

_SIZES_SHOWN, _CATEGORIES_SHOWN, _CATEGORY_NAME = 20, 6, 12


def describe_unsupported(file: Unsupported) -> Iterator[str]:
    """Yield the lines that describe a file."""
    if isinstance(file, TiedOrders):
        return _tied_orders(file)
    return _categories(file) if isinstance(file, Categories) else _graph(file)


# ---------------------------------------------------------------------------------------------
# Orders with ties
# ---------------------------------------------------------------------------------------------


def _tied_orders(file: TiedOrders) -> Iterator[str]:
    yield from numbers_and_lengths(file)
    yield from _ties(file)
    yield ""
    yield from _tied_items(file)
    yield ""
    yield from pairs_table(file)
    yield "a judge who ties two items, or ranks neither, is left out of their share"
    yield from what_to_check(_odd_orders(file))
    yield ""
    only_last = all(ends_in_tie(order, file.num_items) for order in file.orders if _sizes(order))
    which = ", which loses nothing, as only last items are tied" if only_last else ""
    yield (
        "Which model: none yet, because of the ties; fit and compare refuse the file without "
        f"{option('overvote', 'stop')}, which ends a list before its first tie{which}; or "
        f"{option('overvote', 'skip')}, which passes over ties"
    )


def _sizes(order: tuple[tuple[int, ...], ...]) -> list[int]:
    """Return the sizes of the ties of an order."""
    return [len(group) for group in order if len(group) > 1]


def _ties(file: TiedOrders) -> Iterator[str]:
    sizes: Counter[int] = Counter()
    tied, only_last = 0, 0
    for order, count in zip(file.orders, file.counts.tolist(), strict=True):
        of_order = _sizes(order)
        for size in of_order:
            sizes[size] += count
        tied += count * bool(of_order)
        only_last += count * (bool(of_order) and ends_in_tie(order, file.num_items))
    yield f"{tied:,} have ties ({tied / file.num_rankings:.0%})"
    yield "items in the tie: number of ties"
    shown = [f"{size}: {number:,}" for size, number in sorted(sizes.items())]
    yield "  " + ", ".join(shown[:_SIZES_SHOWN]) + (", …" if len(shown) > _SIZES_SHOWN else "")
    if only_last:
        yield (
            f"{only_last:,} of these rank all items and tie only the last ones, which may be those "
            "that they did not rank"
        )


def _tied_items(file: TiedOrders) -> Iterator[str]:
    ranks, counts = file.to_ranks(), file.counts
    listed = counts @ ~np.isnan(ranks)
    is_first = ranks == 1
    is_shared = is_first & (is_first.sum(1, keepdims=True) > 1)
    first, shared = counts @ is_first, counts @ is_shared
    total = file.num_rankings
    head = f"{'ranked by':>9}  {'':>5}  {'first':>7}  {'':>5}  of these tied"
    yield f"{'item':<{NAME_WIDTH}}  {head}"
    order = np.lexsort((-listed, -first))
    for k in order[:ITEMS_SHOWN]:
        yield (
            f"{shorten(file.items[k], NAME_WIDTH):<{NAME_WIDTH}}  {listed[k]:>9,}  "
            f"{listed[k] / total:>5.0%}  {first[k]:>7,}  {first[k] / total:>5.0%}  {shared[k]:>13,}"
        )
    if len(order) > ITEMS_SHOWN:
        yield f"and {len(order) - ITEMS_SHOWN:,} more items, which are less often first"
    both = int(counts @ is_shared.any(1))
    yield f"judges who put several items first, and count for each of them: {both:,}"


def _odd_orders(file: TiedOrders) -> Iterator[str]:
    ranks = file.to_ranks()
    never = [file.items[k] for k in np.flatnonzero(np.isnan(ranks).all(0))]
    if never:
        yield f"nobody ranks {list_names(never)}"
    yield from odd_names(file.items)
    tied = int(file.counts @ [bool(_sizes(order)) for order in file.orders])
    yield f"{tied:,} of {plural(file.num_rankings, 'judge')} have ties"
    listed = [list(itertools.chain.from_iterable(order)) for order in file.orders]
    if apart := apart_in_words(Rankings.from_orderings(listed, items=file.items)):
        yield apart
    all_tied = sum(
        count
        for order, count in zip(file.orders, file.counts.tolist(), strict=True)
        if len(order) == 1 and len(order[0]) > 1
    )
    if all_tied:
        yield f"judges who tie all items that they list: {all_tied:,}"
    if file.num_repeated:
        yield f"lines that repeat an earlier order, whose counts were added: {file.num_repeated:,}"


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
    yield "Which model: none, because categories are not orders; fit and compare refuse the file"


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
