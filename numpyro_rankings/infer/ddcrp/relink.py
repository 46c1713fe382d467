"""Draw the links of a distance dependent Chinese restaurant process, one after another.

Without its link a point is the root of a tree: the points that link to it, directly or not. Either
the tree is the whole of its component, or the component falls into two, and the new link may join
the tree to another component (Blei & Frazier 2011, eq. 5). Children are kept as linked lists, so
that a draw touches the tree and the components that the point can reach, and nothing else.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.components.family import Family, put, take
from numpyro_rankings.components.points import DataPoints
from numpyro_rankings.infer.ddcrp.reach import LinkPrior, LinkWeights
from numpyro_rankings.ops.links import representatives
from numpyro_rankings.ops.loops import shared_bound
from numpyro_rankings.ops.sums import count_by_label

# A forest has links, and the children of each point as a doubly linked list, (N + 1, 4): where each
# links to, its first child, and its next and previous sibling; N stands for none. Row N takes the
# values that must not be written anywhere; what it holds has no meaning. What is read and written
# together is one array, changed by one scatter after all reads: otherwise XLA copies whole arrays
# at every step.
_LINK, _FIRST, _NEXT, _BEFORE = range(4)


class _Components(NamedTuple):
    """The partition that the links make, with labels 0, …, N.

    The **table**, (N + 1, 4), has the label of each point; and by label the size, a permutation of
    the labels with those in use first, and the place of each label in it. It is one array, as for
    the forest.
    """

    table: Array
    clusters: Any  # statistics by label; the last entry takes what is dropped
    number: Array  # number of labels in use


_LABEL, _SIZE, _ID, _PLACE = range(4)


class _Graph(NamedTuple):
    """The values that a sweep changes."""

    # In ``visited``, (N + 1, 2), are the members of the current tree; and for each point the last
    # root by whose tree the search met it.
    forest: Array
    parts: _Components
    visited: Array


_MEMBER, _SEEN = range(2)


class _Given(NamedTuple):
    """The values that a sweep conditions on."""

    weights: LinkWeights  # of links to other points
    log_alpha: Array  # log weight of a point's link to itself
    points: DataPoints
    family: Family
    uniforms: Array  # a random number for each draw, (N,)


class _Tree(NamedTuple):
    """The points that link to a root, directly or not, and the root."""

    number: Array  # number of points
    statistics: Any
    home: Array  # label of its component
    home_size: Array  # number of points there, with the tree
    whole: Array  # whether the tree is the whole component
    left: Any  # statistics of the rest of the component


class _Target(NamedTuple):
    """The component that a tree joins; the last label replaces one that falls out of use."""

    alone: Array  # whether the new link is to a point of the tree
    label: Array  # of the component before, as are its size and statistics
    size: Array
    statistics: Any
    closes: Array  # whether the label of the tree falls out of use
    place: Array  # of that label among those in use
    last: Array  # last place in use
    other: Array  # the label there


def update_links_in_turn(
    key: Array, links: Array, prior: LinkPrior, points: DataPoints, family: Family
) -> Array:
    """Draw each link given all others, the first point's too [Blei & Frazier 2011, eq. 5]: (N,)."""
    size = prior.weights.size
    # without the barrier XLA computes constants among the statistics at every step
    fixed = points._replace(statistics=jax.lax.optimization_barrier(points.statistics))
    uniforms = random.uniform(key, (size,))
    given = _Given(prior.weights, jnp.log(prior.alpha), fixed, family, uniforms)
    visited = jnp.full((size + 1, 2), -1, jnp.int32)
    graph = _Graph(_plant(links), _group(links, points, family), visited)
    graph = jax.lax.fori_loop(0, size, lambda i, graph: _update_link(i, graph, given), graph)
    return graph.forest[:size, _LINK]


def _update_link(i: Array, graph: _Graph, given: _Given) -> _Graph:
    """Draw the link of point i given all others, eq. (5)."""
    # without its link point i is the root of a tree
    forest = _cut(graph.forest, i)
    number, visited = _find_tree(forest, i, graph.visited)
    tree, parts = _take_out(i, number, visited, graph.parts, given)
    # p(tree and component together) / p(tree) p(component), for each component
    log_ratios, parts = _log_joins(i, tree, parts, given)
    link = _draw_link(i, log_ratios, visited, given)
    # the tree joins the component of the new link
    target, parts = _find_target(link, visited[link, _SEEN] == i, tree, parts)
    parts = _join(target, tree, visited, parts, given.family)
    return _Graph(_graft(forest, i, link), parts, visited)


# -- the forest ----------------------------------------------------------------------------------


def _set(array: Array, *changes: tuple[Array | int, int, Array | int]) -> Array:
    """Change entries (row, column, value) at once."""
    rows, columns, values = (
        jnp.stack([jnp.asarray(x, jnp.int32) for x in xs]) for xs in zip(*changes, strict=True)
    )
    return array.at[rows, columns].set(values)


def _plant(links: Array) -> Array:
    """The forest of links, (N,)."""
    size = links.shape[0]
    index = jnp.arange(size, dtype=jnp.int32)
    parent = jnp.where(links == index, size, links)
    order = jnp.argsort(parent, stable=True).astype(jnp.int32)
    ordered = parent[order]
    none = jnp.full(size + 1, size, jnp.int32)
    same = (ordered[1:] == ordered[:-1]) & (ordered[1:] < size)
    following = none.at[order[:-1]].set(jnp.where(same, order[1:], size))
    before = none.at[order[1:]].set(jnp.where(same, order[:-1], size))
    opens = jnp.concatenate([jnp.ones(1, bool), ~same]) & (ordered < size)
    first = none.at[jnp.where(opens, ordered, size)].set(jnp.where(opens, order, size))
    links = jnp.append(links.astype(jnp.int32), size)
    return jnp.stack([links, first, following, before], axis=1)


def _cut(forest: Array, i: Array) -> Array:
    """Take the link of a point away: it is then a root until it is grafted again."""
    size = forest.shape[0] - 1
    mine = forest[i]
    parent = jnp.where(mine[_LINK] == i, size, mine[_LINK])
    before, following = mine[_BEFORE], mine[_NEXT]
    return _set(
        forest,
        (jnp.where(before == size, parent, size), _FIRST, following),
        (before, _NEXT, following),
        (following, _BEFORE, before),
    )


def _graft(forest: Array, i: Array, j: Array) -> Array:
    """Link a root to a point."""
    size = forest.shape[0] - 1
    sibling = jnp.where(i == j, size, forest[j, _FIRST])
    return _set(
        forest,
        (i, _LINK, j),
        (i, _NEXT, sibling),
        (i, _BEFORE, size),
        (jnp.where(i == j, size, j), _FIRST, i),
        (sibling, _BEFORE, i),
    )


def _find_tree(forest: Array, i: Array, visited: Array) -> tuple[Array, Array]:
    """The points that link to root i, directly or not: their number, and ``visited``."""
    # Its first column lists them, the root first; the second has i in the row of each. The search
    # is breadth first, and this list is also the queue of points whose children are to come.
    size = forest.shape[0] - 1

    def look(state: tuple) -> tuple:
        at, child, number, visited = state
        some = child < size
        visited = _set(
            visited,
            (jnp.where(some, number, size), _MEMBER, child),
            (child, _SEEN, jnp.where(some, i, -1)),
        )
        number = number + some
        at = at + ~some
        parent = jnp.where(at < number, visited[jnp.minimum(at, size), _MEMBER], size)
        first = jnp.where(at < number, forest[parent, _FIRST], size)
        child = jnp.where(some, forest[child, _NEXT], first)
        return at, child, number, visited

    def goes_on(state: tuple) -> Array:
        return shared_bound((state[0] < state[2]).astype(jnp.int32)) > 0

    visited = _set(visited, (0, _MEMBER, i), (i, _SEEN, i))
    start = jnp.array(0), forest[i, _FIRST], jnp.array(1), visited
    _, _, number, visited = jax.lax.while_loop(goes_on, look, start)
    return number, visited


# -- the components ------------------------------------------------------------------------------


def _group(links: Array, points: DataPoints, family: Family) -> _Components:
    """The components that links make."""
    size = links.shape[0]
    labels = representatives(links)
    sizes = count_by_label(labels, size + 1)
    clusters = family.of_clusters(points.statistics, labels, size + 1)
    ids = jnp.argsort(sizes == 0, stable=True).astype(jnp.int32)
    place = jnp.zeros(size + 1, jnp.int32).at[ids].set(jnp.arange(size + 1, dtype=jnp.int32))
    labels = jnp.append(labels.astype(jnp.int32), size)
    table = jnp.stack([labels, sizes, ids, place], axis=1)
    return _Components(table, clusters, jnp.sum(sizes > 0))


def _read(read: Callable, parts: _Components, number: Array) -> tuple[Any, _Components]:
    """Values read from the components before these are changed, in a loop of one pass."""
    # Otherwise XLA reads where it needs the values, which may be after the change, and keeps
    # copies of all N rows for that. The compiler must not know the number, which is positive.
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(read, parts))
    once = shared_bound(jnp.minimum(number, 1))
    return jax.lax.fori_loop(0, once, lambda _, c: (read(c[1]), c[1]), (nothing, parts))


def _take_out(
    i: Array, number: Array, visited: Array, parts: _Components, given: _Given
) -> tuple[_Tree, _Components]:
    """The tree of root i, and what is left of its component without the tree."""
    family, points = given.family, given.points

    def read_home(parts: _Components) -> tuple[Array, Array, Any]:
        home = parts.table[i, _LABEL]
        return home, parts.table[home, _SIZE], take(parts.clusters, home)

    (home, home_size, at_home), parts = _read(read_home, parts, number)
    whole = number == home_size

    def add(k: Array, tree: Any) -> Any:
        is_real = k < number
        longer = family.add(tree, take(points.statistics, visited[k, _MEMBER]))
        return jax.tree.map(lambda x, y: jnp.where(is_real, x, y), longer, tree)

    bound = shared_bound(jnp.where(whole, 0, number))
    tree = jax.lax.fori_loop(0, bound, add, points.empty)
    tree = jax.tree.map(lambda x, y: jnp.where(whole, x, y), at_home, tree)
    left = jax.tree.map(
        lambda x, y: jnp.where(whole, jnp.zeros_like(x), y), at_home, family.subtract(at_home, tree)
    )
    return _Tree(number, tree, home, home_size, whole, left), parts


def _log_joins(
    i: Array, tree: _Tree, parts: _Components, given: _Given
) -> tuple[Array, _Components]:
    """Log likelihood ratio of joining the tree to the component of each point, (L,), eq. (5)."""
    # The components are handed through: XLA copies what is read in an inner loop, then changed.
    family, weights, size = given.family, given.weights, given.weights.size
    other = family.for_union(tree.statistics)

    def log_ratio(
        label: Array, place: Array, carry: tuple[Array, _Components]
    ) -> tuple[Array, _Components]:
        log_ratios, parts = carry
        cluster = take(parts.clusters, label)
        is_home = label == tree.home
        cluster = jax.tree.map(lambda x, y: jnp.where(is_home, x, y), tree.left, cluster)
        return log_ratios.at[place].set(family.log_union(cluster, other)), parts

    def add_component(k: Array, carry: tuple[Array, _Components]) -> tuple[Array, _Components]:
        label = carry[1].table[k, _ID]
        return log_ratio(label, label, carry)

    if weights.neighbors is None:  # every component is scored once
        start = jnp.zeros(size + 1), parts
        bound = shared_bound(parts.number)
        log_ratios, parts = jax.lax.fori_loop(0, bound, add_component, start)
        return log_ratios[parts.table[:size, _LABEL]], parts
    neighbors = weights.neighbors[i]

    def add_neighbor(k: Array, carry: tuple[Array, _Components]) -> tuple[Array, _Components]:
        neighbor = jnp.where(neighbors[k] < 0, size, neighbors[k])
        return log_ratio(carry[1].table[neighbor, _LABEL], k, carry)

    last = jnp.max(jnp.where(neighbors >= 0, jnp.arange(1, len(neighbors) + 1), 0))
    start = jnp.zeros(len(neighbors)), parts
    return jax.lax.fori_loop(0, shared_bound(last), add_neighbor, start)


def _draw_link(i: Array, log_ratios: Array, visited: Array, given: _Given) -> Array:
    """Draw the link of point i, eq. (5): α for itself, else decay times the ratio of a join."""
    weights, size = given.weights, given.weights.size
    columns = jnp.arange(size) if weights.neighbors is None else weights.neighbors[i]
    columns = jnp.where(columns < 0, size, columns)
    inside = visited[columns, _SEEN] == i
    log_weights = weights.log_decay[i] + jnp.where(inside, 0.0, log_ratios)
    log_weights = jnp.append(log_weights, given.log_alpha)
    probs = jnp.exp(log_weights - log_weights.max())
    sums = jnp.cumsum(probs)
    reached = (sums >= (1.0 - given.uniforms[i]) * sums[-1]) & (probs > 0)
    choice = jnp.where(reached.any(), jnp.argmax(reached), jnp.argmax(probs))
    return jnp.append(columns, i)[choice]


def _find_target(
    link: Array, alone: Array, tree: _Tree, parts: _Components
) -> tuple[_Target, _Components]:
    """The component that the tree joins by a link, or none if it stays alone."""
    size = parts.table.shape[0] - 1

    def read_target(parts: _Components) -> tuple:
        free = parts.table[jnp.minimum(parts.number, size), _ID]
        own = jnp.where(tree.whole, tree.home, free)
        label = jnp.where(alone, own, parts.table[link, _LABEL])
        # a label that falls out of use changes places with the last label in use
        closes = tree.whole & (label != tree.home)
        place = parts.table[tree.home, _PLACE]
        last = jnp.where(closes, parts.number - 1, place)
        size_there, there = parts.table[label, _SIZE], take(parts.clusters, label)
        return label, size_there, there, closes, place, last, parts.table[last, _ID]

    values, parts = _read(read_target, parts, tree.number)
    return _Target(alone, *values), parts


def _join(
    target: _Target, tree: _Tree, visited: Array, parts: _Components, family: Family
) -> _Components:
    """The components after the tree has joined another one, or stays alone."""
    size = visited.shape[0] - 1
    stays = target.label == tree.home
    joined = family.add(target.statistics, tree.statistics)
    joined = jax.tree.map(lambda x, y: jnp.where(target.alone, x, y), tree.statistics, joined)
    # what does not change is written to the last place
    places = jnp.where(stays, size, jnp.stack([tree.home, target.label]))
    both = jax.tree.map(lambda *x: jnp.stack(x), tree.left, joined)
    clusters = put(parts.clusters, places, both)
    moved = jnp.where(stays, 0, tree.number)
    table = _set(
        parts.table,
        (tree.home, _SIZE, tree.home_size - moved),
        (jnp.where(stays, size, target.label), _SIZE, target.size + moved),
        (target.place, _ID, target.other),
        (target.last, _ID, tree.home),
        (target.other, _PLACE, target.place),
        (tree.home, _PLACE, target.last),
    )

    def relabel(k: Array, table: Array) -> Array:
        is_real = k < moved
        member = jnp.where(is_real, visited[k, _MEMBER], size)
        return _set(table, (member, _LABEL, jnp.where(is_real, target.label, size)))

    table = jax.lax.fori_loop(0, shared_bound(moved), relabel, table)
    opens = target.alone & ~tree.whole
    return _Components(table, clusters, parts.number + opens - target.closes)
