"""Drawing the links of a distance dependent Chinese restaurant process, one after another.

Without its link a point is the root of a tree: of all that link to it, directly or not. Either that
is the whole of its component, or the component falls apart, and the new link may join the tree to
another one (Blei & Frazier 2011, eq. 5 and 6). Children are kept as linked lists, so that a draw
touches the tree and the components that the point can reach, and nothing else.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.components.family import Family, put, take
from numpyro_rankings.components.points import Points
from numpyro_rankings.infer.ddcrp.reach import Reach
from numpyro_rankings.ops.links import representatives
from numpyro_rankings.ops.loops import shared_bound
from numpyro_rankings.ops.sums import count_by_label


class _Forest(NamedTuple):
    """Links, and the children of each point as a doubly linked list; N stands for none.

    - **nodes** - (N + 1, 4): whom each links to, its first child, and of the list of its siblings
      the next and the one before. Row N takes what is to be written nowhere, and says nothing.

    What is read and written together is one array, changed by one scatter after all that is read
    of it: otherwise XLA copies arrays of N numbers at every step.
    """

    nodes: Array


_LINK, _FIRST, _NEXT, _BEFORE = range(4)


class _Components(NamedTuple):
    """
    - **table** - (N + 1, 4): component of each point, its label; and by label the size, a
      permutation of the labels, those in use first, and the place of each in it. As for a forest.
    - **clusters** - statistics by label, leading axis N + 1, the last of which takes what is not
      kept.
    - **number** - of labels in use.
    """

    table: Array
    clusters: Any
    number: Array


_LABEL, _SIZE, _ID, _PLACE = range(4)


def _read(read: Callable, parts: _Components, once: Array) -> tuple[Any, _Components]:
    """Values read from the components, before these are changed.

    In a loop of one pass, for otherwise XLA reads where it needs the values, which may be after the
    change, and keeps a copy of all N rows for that.

    :param once: 1, as a number that the compiler does not know.
    """
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(read, parts))
    return jax.lax.fori_loop(0, once, lambda _, c: (read(c[1]), c[1]), (nothing, parts))


def _set(array: Array, *changes: tuple[Array | int, int, Array | int]) -> Array:
    """Change entries (row, column, value) at once."""
    rows, columns, values = (
        jnp.stack([jnp.asarray(x, jnp.int32) for x in xs]) for xs in zip(*changes, strict=True)
    )
    return array.at[rows, columns].set(values)


def _plant(links: Array) -> _Forest:
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
    return _Forest(jnp.stack([links, first, following, before], axis=1))


def _cut(forest: _Forest, i: Array) -> _Forest:
    """Take the link of a point away, which is then a root until it is grafted again."""
    size = forest.nodes.shape[0] - 1
    mine = forest.nodes[i]
    parent = jnp.where(mine[_LINK] == i, size, mine[_LINK])
    before, following = mine[_BEFORE], mine[_NEXT]
    nodes = _set(
        forest.nodes,
        (jnp.where(before == size, parent, size), _FIRST, following),
        (before, _NEXT, following),
        (following, _BEFORE, before),
    )
    return _Forest(nodes)


def _graft(forest: _Forest, i: Array, j: Array) -> _Forest:
    """Link a root to a point."""
    size = forest.nodes.shape[0] - 1
    sibling = jnp.where(i == j, size, forest.nodes[j, _FIRST])
    nodes = _set(
        forest.nodes,
        (i, _LINK, j),
        (i, _NEXT, sibling),
        (i, _BEFORE, size),
        (jnp.where(i == j, size, j), _FIRST, i),
        (sibling, _BEFORE, i),
    )
    return _Forest(nodes)


_MEMBER, _SEEN = range(2)


def _tree(forest: _Forest, i: Array, found: Array) -> tuple[Array, Array]:
    """All that link to a root: their number, and **found**, (N + 1, 2).

    The first column of it has them, itself first, the second i in the row of each. Breadth first:
    the list of those found is the queue of those to be looked at.
    """
    size = forest.nodes.shape[0] - 1

    def look(state: tuple) -> tuple:
        at, child, number, found = state
        some = child < size
        found = _set(
            found,
            (jnp.where(some, number, size), _MEMBER, child),
            (child, _SEEN, jnp.where(some, i, -1)),
        )
        number = number + some
        at = at + ~some
        parent = jnp.where(at < number, found[jnp.minimum(at, size), _MEMBER], size)
        first = jnp.where(at < number, forest.nodes[parent, _FIRST], size)
        child = jnp.where(some, forest.nodes[child, _NEXT], first)
        return at, child, number, found

    def goes_on(state: tuple) -> Array:
        return shared_bound((state[0] < state[2]).astype(jnp.int32)) > 0

    found = _set(found, (0, _MEMBER, i), (i, _SEEN, i))
    start = jnp.array(0), forest.nodes[i, _FIRST], jnp.array(1), found
    _, _, number, found = jax.lax.while_loop(goes_on, look, start)
    return number, found


def _group(links: Array, points: Points, family: Family) -> _Components:
    size = links.shape[0]
    labels = representatives(links)
    sizes = count_by_label(labels, size + 1)
    clusters = family.of_clusters(points.statistics, labels, size + 1)
    ids = jnp.argsort(sizes == 0, stable=True).astype(jnp.int32)
    place = jnp.zeros(size + 1, jnp.int32).at[ids].set(jnp.arange(size + 1, dtype=jnp.int32))
    labels = jnp.append(labels.astype(jnp.int32), size)
    table = jnp.stack([labels, sizes, ids, place], axis=1)
    return _Components(table, clusters, jnp.sum(sizes > 0))


def relink(
    key: Array, links: Array, log_alpha: Array, reach: Reach, points: Points, family: Family
) -> Array:
    """Draw each link given all others, the first point's too: links (N,)."""
    size = reach.size
    uniforms = random.uniform(key, (size,))

    def log_joins(
        i: Array, parts: _Components, tree: Any, left: Any, home: Array
    ) -> tuple[Array, _Components]:
        """Log likelihood ratio of the tree with the component of each in reach, (L,).

        The components are handed through: of what is read in an inner loop and changed after it
        XLA would make a copy.
        """
        other = family.for_union(tree)

        def log_ratio(
            label: Array, place: Array, carry: tuple[Array, _Components]
        ) -> tuple[Array, _Components]:
            log_ratios, parts = carry
            cluster = take(parts.clusters, label)
            cluster = jax.tree.map(lambda x, y: jnp.where(label == home, x, y), left, cluster)
            return log_ratios.at[place].set(family.log_union(cluster, other)), parts

        def of_component(k: Array, carry: tuple[Array, _Components]) -> tuple[Array, _Components]:
            label = carry[1].table[k, _ID]
            return log_ratio(label, label, carry)

        def of_neighbor(k: Array, carry: tuple[Array, _Components]) -> tuple[Array, _Components]:
            neighbor = jnp.where(neighbors[k] < 0, size, neighbors[k])
            return log_ratio(carry[1].table[neighbor, _LABEL], k, carry)

        if reach.neighbors is None:  # of each component once
            start = jnp.zeros(size + 1), parts
            bound = shared_bound(parts.number)
            log_ratios, parts = jax.lax.fori_loop(0, bound, of_component, start)
            return log_ratios[parts.table[:size, _LABEL]], parts
        neighbors = reach.neighbors[i]
        last = jnp.max(jnp.where(neighbors >= 0, jnp.arange(1, len(neighbors) + 1), 0))
        start = jnp.zeros(len(neighbors)), parts
        return jax.lax.fori_loop(0, shared_bound(last), of_neighbor, start)

    def visit(i: Array, carry: tuple) -> tuple:
        forest, parts, found = carry
        # without the link: the tree, and what is left of its component
        forest = _cut(forest, i)
        number, found = _tree(forest, i, found)
        once = shared_bound(jnp.minimum(number, 1))

        def of_home(parts: _Components) -> tuple[Array, Array, Any]:
            home = parts.table[i, _LABEL]
            return home, parts.table[home, _SIZE], take(parts.clusters, home)

        (home, home_size, at_home), parts = _read(of_home, parts, once)
        whole = number == home_size

        def join(k: Array, tree: Any) -> Any:
            real = k < number
            longer = family.add(tree, take(statistics, found[k, _MEMBER]))
            return jax.tree.map(lambda x, y: jnp.where(real, x, y), longer, tree)

        bound = shared_bound(jnp.where(whole, 0, number))
        tree = jax.lax.fori_loop(0, bound, join, points.empty)
        tree = jax.tree.map(lambda x, y: jnp.where(whole, x, y), at_home, tree)
        left = jax.tree.map(
            lambda x, y: jnp.where(whole, jnp.zeros_like(x), y),
            at_home,
            family.subtract(at_home, tree),
        )
        # eq. (6): the decay, times the likelihood ratio where two components join
        log_ratios, parts = log_joins(i, parts, tree, left, home)
        columns = jnp.arange(size) if reach.neighbors is None else reach.neighbors[i]
        columns = jnp.where(columns < 0, size, columns)
        inside = found[columns, _SEEN] == i
        log_weights = reach.log_decay[i] + jnp.where(inside, 0.0, log_ratios)
        log_weights = jnp.append(log_weights, log_alpha)
        weights = jnp.exp(log_weights - log_weights.max())
        sums = jnp.cumsum(weights)
        reached = (sums >= (1.0 - uniforms[i]) * sums[-1]) & (weights > 0)
        choice = jnp.where(reached.any(), jnp.argmax(reached), jnp.argmax(weights))
        new = jnp.append(columns, i)[choice]
        # the component that the tree is in from now on
        alone = found[new, _SEEN] == i
        opens = alone & ~whole

        def of_label(parts: _Components) -> tuple[Array, ...]:
            free = parts.table[jnp.minimum(parts.number, size), _ID]
            label = jnp.where(alone, jnp.where(whole, home, free), parts.table[new, _LABEL])
            # a label that nobody has any more goes behind those in use, in exchange for the last
            closes = whole & (label != home)
            place = parts.table[home, _PLACE]
            last = jnp.where(closes, parts.number - 1, place)
            size_there, there = parts.table[label, _SIZE], take(parts.clusters, label)
            return label, size_there, there, closes, place, last, parts.table[last, _ID]

        (label, size_there, there, closes, place, last, other), parts = _read(of_label, parts, once)
        stays = label == home
        joined = jax.tree.map(lambda x, y: jnp.where(alone, x, y), tree, family.add(there, tree))
        # what does not change is written to the last place
        places = jnp.where(stays, size, jnp.stack([home, label]))
        clusters = put(parts.clusters, places, jax.tree.map(lambda *x: jnp.stack(x), left, joined))
        moved = jnp.where(stays, 0, number)
        table = _set(
            parts.table,
            (home, _SIZE, home_size - moved),
            (jnp.where(stays, size, label), _SIZE, size_there + moved),
            (place, _ID, other),
            (last, _ID, home),
            (other, _PLACE, place),
            (home, _PLACE, last),
        )

        def relabel(k: Array, table: Array) -> Array:
            real = k < moved
            return _set(
                table,
                (jnp.where(real, found[k, _MEMBER], size), _LABEL, jnp.where(real, label, size)),
            )

        table = jax.lax.fori_loop(0, shared_bound(moved), relabel, table)
        parts = _Components(table, clusters, parts.number + opens - closes)
        return _graft(forest, i, new), parts, found

    # constants among them would be made afresh, N numbers at every step
    statistics = jax.lax.optimization_barrier(points.statistics)
    forest, parts = _plant(links), _group(links, points, family)
    found = jnp.full((size + 1, 2), -1, jnp.int32)
    forest, *_ = jax.lax.fori_loop(0, size, visit, (forest, parts, found))
    return forest.nodes[:size, _LINK]
