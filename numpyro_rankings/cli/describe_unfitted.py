"""What ``numpyro-rankings describe`` says of PrefLib files that no model can take yet."""

from collections.abc import Iterator

import numpy as np

from numpyro_rankings.cli.describe import (
    _ITEMS_SHOWN,
    _NAME,
    _lengths,
    _list,
    _odd_names,
    _pairs,
    _shared,
    _to_check,
)
from numpyro_rankings.readers.preflib import ends_in_tie
from numpyro_rankings.readers.unsupported import Categories, MatchingGraph, TiedOrders
from numpyro_rankings.readers.unsupported import Unsupported as Unfitted
from numpyro_rankings.words import plural, shorten

_SIZES_SHOWN, _CATEGORIES_SHOWN, _CATEGORY_NAME = 20, 6, 12


def describe_unfitted(found: Unfitted) -> Iterator[str]:
    """Yield the lines that describe a file."""
    if isinstance(found, TiedOrders):
        return _tied_orders(found)
    return _categories(found) if isinstance(found, Categories) else _graph(found)


# ---------------------------------------------------------------------------------------------
# Orders with ties
# ---------------------------------------------------------------------------------------------


def _tied_orders(found: TiedOrders) -> Iterator[str]:
    yield (
        f"{plural(found.num_rankings, 'ranking')} of {plural(found.num_items, 'item')}, "
        f"{found.num_rows:,} of them different"
    )
    yield from _shared(found.counts, "list")
    yield from _lengths(found)
    yield from _ties(found)
    yield ""
    yield from _tied_items(found)
    yield ""
    yield from _pairs(found)
    yield "a judge who ties two items, or ranks neither, is left out of their share"
    yield from _to_check(list(_odd_orders(found)))
    yield ""
    only_last = all(ends_in_tie(order, found.num_items) for order in found.orders if _sizes(order))
    advice = "Without the orders that have ties, in a .soi file, it can be fitted"
    if only_last:
        advice = (
            "As only last items are tied, it can be fitted as a .soi file of orders that leave "
            "them out, and rank them below the others"
        )
    yield f"Which model: none yet, because of the ties; fit and compare refuse the file. {advice}"


def _sizes(order: tuple[tuple[int, ...], ...]) -> list[int]:
    """Return the sizes of the ties of an order."""
    return [len(group) for group in order if len(group) > 1]


def _ties(found: TiedOrders) -> Iterator[str]:
    sizes: dict[int, int] = {}
    tied, only_last = 0, 0
    for order, count in zip(found.orders, found.counts.tolist(), strict=True):
        of_order = _sizes(order)
        for size in of_order:
            sizes[size] = sizes.get(size, 0) + count
        tied += count * bool(of_order)
        only_last += count * (bool(of_order) and ends_in_tie(order, found.num_items))
    yield f"{tied:,} have ties ({tied / found.num_rankings:.0%})"
    yield "items in the tie: number of ties"
    shown = [f"{size}: {number:,}" for size, number in sorted(sizes.items())]
    yield "  " + ", ".join(shown[:_SIZES_SHOWN]) + (", …" if len(shown) > _SIZES_SHOWN else "")
    if only_last:
        yield (
            f"{only_last:,} of these rank all items and tie only the last ones, which may be those "
            "that they did not rank"
        )


def _tied_items(found: TiedOrders) -> Iterator[str]:
    ranks, counts = found.to_ranks(), found.counts
    listed = counts @ ~np.isnan(ranks)
    is_first = ranks == 1
    is_shared = is_first & (is_first.sum(1, keepdims=True) > 1)
    first, shared = counts @ is_first, counts @ is_shared
    total = found.num_rankings
    head = f"{'ranked by':>9}  {'':>5}  {'first':>7}  {'':>5}  of these tied"
    yield f"{'item':<{_NAME}}  {head}"
    order = np.lexsort((-listed, -first))
    for k in order[:_ITEMS_SHOWN]:
        yield (
            f"{shorten(found.items[k], _NAME):<{_NAME}}  {listed[k]:>9,}  "
            f"{listed[k] / total:>5.0%}  {first[k]:>7,}  {first[k] / total:>5.0%}  {shared[k]:>13,}"
        )
    if len(order) > _ITEMS_SHOWN:
        yield f"and {len(order) - _ITEMS_SHOWN:,} more items, which are less often first"
    both = int(counts @ is_shared.any(1))
    yield f"judges who put several items first, and count for each of them: {both:,}"


def _odd_orders(found: TiedOrders) -> Iterator[str]:
    ranks = found.to_ranks()
    never = [found.items[k] for k in np.flatnonzero(np.isnan(ranks).all(0))]
    if never:
        yield f"nobody ranks {_list(never)}"
    yield from _odd_names(found.items)
    all_tied = sum(
        count
        for order, count in zip(found.orders, found.counts.tolist(), strict=True)
        if len(order) == 1 and len(order[0]) > 1
    )
    if all_tied:
        yield f"judges who tie all items that they list: {all_tied:,}"
    if found.num_repeated:
        yield f"lines that repeat an earlier order, whose counts were added: {found.num_repeated:,}"


# ---------------------------------------------------------------------------------------------
# Categories
# ---------------------------------------------------------------------------------------------


def _categories(found: Categories) -> Iterator[str]:
    counts, table, names = found.counts, found.table, found.categories
    total = int(counts.sum())
    kinds = f"{len(names):,} categor{'y' if len(names) == 1 else 'ies'}"
    yield (
        f"{plural(total, 'judge')} put {plural(len(found.items), 'item')} into {kinds}, in "
        f"{len(counts):,} different ways"
    )
    yield from _shared(counts, "answer")
    by_category = [counts @ (table == k) for k in range(len(names))]
    yield ""
    yield "items that a judge puts into a category: fewest, mean, most"
    for k, name in list(enumerate(names))[:_CATEGORIES_SHOWN]:
        sizes = (table == k).sum(1)
        mean = counts @ sizes / total
        label = f"{shorten(name, _NAME):<{_NAME}}"
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
    yield f"{'item':<{_NAME}}{head.rstrip()}"
    order = np.argsort(-by_category[0], kind="stable")
    for k in order[:_ITEMS_SHOWN]:
        cells = (f"{x[k]:>{width},} {x[k] / total:>5.0%}" for _, x in columns)
        yield f"{shorten(found.items[k], _NAME):<{_NAME}}" + "".join(cells)
    if len(order) > _ITEMS_SHOWN:
        yield f"and {len(order) - _ITEMS_SHOWN:,} more items, which are less often in the first one"
    if len(names) > _CATEGORIES_SHOWN:
        yield f"and {len(names) - _CATEGORIES_SHOWN:,} more categories"
    yield from _to_check(list(_odd_categories(found, by_category)))
    yield ""
    yield "Which model: none, because categories are not orders; fit and compare refuse the file"


def _odd_categories(found: Categories, by_category: list[np.ndarray]) -> Iterator[str]:
    empty = [
        repr(name)
        for name, number in zip(found.categories, by_category, strict=True)
        if not number.any()
    ]
    if empty:
        yield f"nobody puts an item into {_list(empty)}"
    never = [found.items[k] for k in np.flatnonzero((found.table < 0).all(0))]
    if never:
        yield f"nobody puts {_list(never)} into a category"
    yield from _odd_names(found.items)
    is_same = (found.table == found.table[:, :1]).all(1)
    same = int(found.counts @ is_same)
    if same and len(found.items) > 1 and len(found.categories) > 1:
        yield f"judges who put all items into the same category, or into none: {same:,}"
    if found.num_repeated:
        yield f"lines that repeat an earlier one, whose counts were added: {found.num_repeated:,}"


# ---------------------------------------------------------------------------------------------
# Graphs
# ---------------------------------------------------------------------------------------------


def _graph(found: MatchingGraph) -> Iterator[str]:
    n, edges, weights = len(found.nodes), found.edges, found.weights
    yield f"a directed graph of {plural(n, 'node')} and {plural(len(edges), 'edge')}"
    keys = edges[:, 0] * n + edges[:, 1]
    is_loop = edges[:, 0] == edges[:, 1]
    is_mutual = np.isin(edges[:, 1] * n + edges[:, 0], keys) & ~is_loop
    yield f"{plural(int(is_mutual.sum()) // 2, 'pair')} of nodes have edges in both directions"
    if len(edges):
        values, number = np.unique(weights, return_counts=True)
        low, middle, high = np.quantile(weights, (0, 0.5, 1))
        yield f"weights: {low:g} to {high:g}, median {middle:g}"
        if len(values) <= _SIZES_SHOWN:
            yield "weight: number of edges"
            yield "  " + ", ".join(
                f"{x:g}: {k:,}" for x, k in zip(values.tolist(), number.tolist(), strict=True)
            )
    out, into = (np.bincount(edges[:, k], minlength=n) for k in (0, 1))
    weight_out, weight_into = (np.bincount(edges[:, k], weights, minlength=n) for k in (0, 1))
    yield ""
    head = f"{'edges out':>10}  {'weight':>10}  {'edges in':>10}  {'weight':>10}"
    yield f"{'node':<{_NAME}}  {head}"
    order = np.lexsort((-into, -out))
    for k in order[:_ITEMS_SHOWN]:
        yield (
            f"{shorten(found.nodes[k], _NAME):<{_NAME}}  {out[k]:>10,}  "
            f"{weight_out[k]:>10g}  {into[k]:>10,}  {weight_into[k]:>10g}"
        )
    if n > _ITEMS_SHOWN:
        yield f"and {n - _ITEMS_SHOWN:,} more nodes, which have fewer edges out"
    yield from _to_check(list(_odd_nodes(found, out + into)))
    yield ""
    yield "Which model: none, because weights of a graph are no orders; fit and compare refuse it"


def _odd_nodes(found: MatchingGraph, degrees: np.ndarray) -> Iterator[str]:
    loops = [found.nodes[a] for a, b in found.edges.tolist() if a == b]
    if loops:
        yield f"edges from a node to itself: {len(loops):,} ({_list(loops)})"
    alone = [found.nodes[k] for k in np.flatnonzero(degrees == 0)]
    if alone:
        yield f"nodes without an edge: {len(alone):,} ({_list(alone)})"
    negative = int((found.weights < 0).sum())
    if negative:
        yield f"negative weights: {negative:,}"
    yield from _odd_names(found.nodes)
