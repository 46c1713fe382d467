"""Drawing the links of a distance dependent Chinese restaurant process, one after another.

Without its link a point is the root of a tree: of all that link to it, directly or not. Either that
is the whole of its component, or the component falls apart, and the new link may join the tree to
another one (Blei & Frazier 2011, eq. 5 and 6). Children are kept as linked lists, so that a draw
touches the tree and the components that the point can reach, and nothing else.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random

from numpyro_rankings.components.family import Family, put, take
from numpyro_rankings.infer.partition import Points
from numpyro_rankings.ops.links import representatives
from numpyro_rankings.ops.loops import shared_bound


class Reach(NamedTuple):
    """Whom a point can link to: **neighbors** (N, L), -1 where there is none, and **log_decay**.

    Without a list of neighbors (None) to all, and L is N.
    """

    neighbors: Array | None
    log_decay: Array

    @property
    def size(self) -> int:
        """N."""
        return self.log_decay.shape[0]


def as_reach(neighbors: Array | None, log_decay: Array) -> Reach:
    """The weights of links to others: of the point itself, and where there is nobody, -inf."""
    index = jnp.arange(log_decay.shape[0])[:, None]
    columns = jnp.arange(log_decay.shape[1]) if neighbors is None else neighbors
    is_other = (columns != index) & (columns >= 0)
    return Reach(neighbors, jnp.where(is_other, log_decay, -jnp.inf))


class _Forest(NamedTuple):
    """Links, and the children of each point as a doubly linked list; N stands for none, (N + 1,).

    - **first** - child of each; **following**, **before** - it in the list of its siblings.
    """

    links: Array
    first: Array
    following: Array
    before: Array


class _Components(NamedTuple):
    """
    - **labels** - component of each point, (N + 1,), and **sizes** (N + 1,).
    - **clusters** - statistics, leading axis N + 1, the last of which takes what is not kept.
    - **ids** - a permutation of the labels, those in use first; **place** - of each in it;
      **number** - how many are in use.
    """

    labels: Array
    sizes: Array
    clusters: Any
    ids: Array
    place: Array
    number: Array


def _plant(links: Array) -> _Forest:
    size = links.shape[0]
    index = jnp.arange(size)
    parent = jnp.where(links == index, size, links)
    order = jnp.argsort(parent, stable=True)
    ordered = parent[order]
    none = jnp.full(size + 1, size)
    same = (ordered[1:] == ordered[:-1]) & (ordered[1:] < size)
    following = none.at[order[:-1]].set(jnp.where(same, order[1:], size))
    before = none.at[order[1:]].set(jnp.where(same, order[:-1], size))
    opens = jnp.concatenate([jnp.ones(1, bool), ~same]) & (ordered < size)
    first = none.at[jnp.where(opens, ordered, size)].set(jnp.where(opens, order, size))
    return _Forest(links, first.at[size].set(size), following, before)


def _cut(forest: _Forest, i: Array) -> _Forest:
    """Take the link of a point away, as if it were its own root."""
    size = forest.links.shape[0]
    old = forest.links[i]
    parent = jnp.where(old == i, size, old)
    before, following = forest.before[i], forest.following[i]
    first = forest.first.at[jnp.where(before == size, parent, size)].set(following)
    after = forest.following.at[before].set(following)
    return _Forest(
        forest.links.at[i].set(i),
        first.at[size].set(size),
        after.at[size].set(size).at[i].set(size),
        forest.before.at[following].set(before).at[size].set(size).at[i].set(size),
    )


def _graft(forest: _Forest, i: Array, j: Array) -> _Forest:
    """Link a root to a point."""
    size = forest.links.shape[0]
    parent = jnp.where(i == j, size, j)
    child = jnp.where(i == j, size, i)
    sibling = forest.first[parent]
    return _Forest(
        forest.links.at[i].set(j),
        forest.first.at[parent].set(child).at[size].set(size),
        forest.following.at[child].set(sibling).at[size].set(size),
        forest.before.at[sibling].set(child).at[size].set(size),
    )


def _tree(forest: _Forest, i: Array, members: Array, seen: Array) -> tuple[Array, Array, Array]:
    """All that link to a root, itself first: **members** (N + 1,), their number, and **seen** = i.

    Breadth first: the list of those found is the queue of those to be looked at.
    """
    size = forest.links.shape[0]

    def look(state: tuple) -> tuple:
        at, child, number, members, seen = state
        some = child < size
        members = members.at[jnp.where(some, number, size)].set(child)
        seen = seen.at[child].set(jnp.where(some, i, -1))
        number = number + some
        at = at + ~some
        parent = jnp.where(at < number, members[jnp.minimum(at, size)], size)
        child = jnp.where(some, forest.following[child], forest.first[parent])
        return at, child, number, members, seen

    members, seen = members.at[0].set(i), seen.at[i].set(i)
    start = jnp.array(0), forest.first[i], jnp.array(1), members, seen
    _, _, number, members, seen = jax.lax.while_loop(lambda s: s[0] < s[2], look, start)
    return number, members, seen


def _group(links: Array, points: Points, family: Family) -> _Components:
    size = links.shape[0]
    labels = representatives(links)
    sizes = jnp.zeros(size + 1, jnp.int32).at[labels].add(1)
    clusters = family.of_clusters(points.statistics, labels, size + 1)
    ids = jnp.argsort(sizes == 0, stable=True)
    place = jnp.zeros(size + 1, ids.dtype).at[ids].set(jnp.arange(size + 1))
    labels = jnp.concatenate([labels, jnp.full(1, size, labels.dtype)])
    return _Components(labels, sizes, clusters, ids, place, jnp.sum(sizes > 0))


def _swap(parts: _Components, label: Array, place: Array) -> _Components:
    """Put a label at a place of the list of labels."""
    other, old = parts.ids[place], parts.place[label]
    return parts._replace(
        ids=parts.ids.at[old].set(other).at[place].set(label),
        place=parts.place.at[other].set(old).at[label].set(place),
    )


def relink(
    key: Array, links: Array, log_alpha: Array, reach: Reach, points: Points, family: Family
) -> Array:
    """Draw each link given all others, the first point's too: links (N,)."""
    size = reach.size
    uniforms = random.uniform(key, (size,))

    def log_joins(
        i: Array, parts: _Components, tree: Any, left: Any, home: Array
    ) -> tuple[Array, Any]:
        """Log likelihood ratio of the tree with each component that it can reach, (N + 1,).

        The statistics are handed through: of what is read in an inner loop and changed after it
        XLA would make a copy.
        """

        def log_ratio(label: Array, carry: tuple[Array, Any]) -> tuple[Array, Any]:
            log_ratios, clusters = carry
            cluster = take(clusters, label)
            cluster = jax.tree.map(lambda x, y: jnp.where(label == home, x, y), left, cluster)
            return log_ratios.at[label].set(family.log_union(cluster, tree)), clusters

        start = jnp.zeros(size + 1), parts.clusters
        if reach.neighbors is None:
            return jax.lax.fori_loop(
                0, shared_bound(parts.number), lambda k, c: log_ratio(parts.ids[k], c), start
            )
        neighbors = reach.neighbors[i]

        def one(k: Array, carry: tuple[Array, Any]) -> tuple[Array, Any]:
            neighbor = jnp.where(neighbors[k] < 0, size, neighbors[k])
            return log_ratio(parts.labels[neighbor], carry)

        last = jnp.max(jnp.where(neighbors >= 0, jnp.arange(1, len(neighbors) + 1), 0))
        return jax.lax.fori_loop(0, shared_bound(last), one, start)

    def visit(i: Array, carry: tuple) -> tuple:
        forest, parts, members, seen = carry
        # without the link: the tree, and what is left of its component
        forest = _cut(forest, i)
        number, members, seen = _tree(forest, i, members, seen)
        home = parts.labels[i]
        whole = number == parts.sizes[home]
        at_home = take(parts.clusters, home)

        def join(k: Array, tree: Any) -> Any:
            real = k < number
            longer = family.add(tree, take(points.statistics, members[k]))
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
        log_ratios, clusters = log_joins(i, parts, tree, left, home)
        columns = jnp.arange(size) if reach.neighbors is None else reach.neighbors[i]
        columns = jnp.where(columns < 0, size, columns)
        inside = seen[columns] == i
        log_weights = reach.log_decay[i] + jnp.where(inside, 0.0, log_ratios[parts.labels[columns]])
        log_weights = jnp.append(log_weights, log_alpha)
        weights = jnp.exp(log_weights - log_weights.max())
        sums = jnp.cumsum(weights)
        reached = (sums >= (1.0 - uniforms[i]) * sums[-1]) & (weights > 0)
        choice = jnp.where(reached.any(), jnp.argmax(reached), jnp.argmax(weights))
        new = jnp.append(columns, i)[choice]
        forest = _graft(forest, i, new)
        # the component that the tree is in from now on
        alone = seen[new] == i
        free = parts.ids[jnp.minimum(parts.number, size)]
        label = jnp.where(alone, jnp.where(whole, home, free), parts.labels[new])
        stays = label == home
        joined = family.add(take(clusters, label), tree)
        joined = jax.tree.map(lambda x, y: jnp.where(alone, x, y), tree, joined)
        # what does not change is written to the last place
        places = jnp.where(stays, size, jnp.stack([home, label]))
        clusters = put(clusters, places, jax.tree.map(lambda *x: jnp.stack(x), left, joined))
        moved = jnp.where(stays, 0, number)
        sizes = parts.sizes.at[home].add(-moved).at[label].add(moved)

        def relabel(k: Array, labels: Array) -> Array:
            return labels.at[jnp.where(k < moved, members[k], size)].set(
                jnp.where(k < moved, label, size)
            )

        labels = jax.lax.fori_loop(0, shared_bound(moved), relabel, parts.labels)
        parts = parts._replace(labels=labels, sizes=sizes, clusters=clusters)
        opened = alone & ~whole
        closed = whole & ~stays
        # a label that nobody has any more goes behind those in use
        last = jnp.where(closed, parts.number - 1, parts.place[home])
        parts = _swap(parts, home, last)
        parts = parts._replace(number=parts.number + opened - closed)
        return forest, parts, members, seen

    forest, parts = _plant(links.astype(jnp.int32)), _group(links, points, family)
    nobody = jnp.full(size + 1, -1)
    carry = forest, parts, nobody, nobody
    forest, *_ = jax.lax.fori_loop(0, size, visit, carry)
    return forest.links.astype(jnp.int32)
