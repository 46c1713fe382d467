"""Whom each point can link to, and the links given that."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random


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


class Hyper(NamedTuple):
    """What links are drawn given: **alpha**, **scale** of the decay, and the **reach**."""

    alpha: Array
    scale: Array | None
    reach: Reach


def log_totals(reach: Reach) -> Array:
    """log Σ_j f_ij of each point, (N,), -inf where nobody is in reach."""
    some = jnp.any(reach.log_decay > -jnp.inf, axis=1)
    # of a row of nothing else the slope would be no number
    log_decay = jnp.where(some[:, None], reach.log_decay, 0.0)
    return jnp.where(some, jax.nn.logsumexp(log_decay, axis=1), -jnp.inf)


def log_links(links: Array, hyper: Hyper) -> Array:
    """Log probability of each link, (N,), eq. (2)."""
    log_alpha = jnp.log(hyper.alpha)
    log_weight = log_weight_of_links(links, log_alpha, hyper.reach)
    return log_weight - jnp.logaddexp(log_alpha, log_totals(hyper.reach))


def log_weight_of_links(links: Array, log_alpha: Array, reach: Reach) -> Array:
    """log f_ij of each link, log α of those to oneself, (N,)."""
    index = jnp.arange(links.shape[0])
    if reach.neighbors is None:
        log_decay = reach.log_decay[index, links]
    else:
        chosen = reach.neighbors == links[:, None]
        log_decay = jnp.max(jnp.where(chosen, reach.log_decay, -jnp.inf), axis=1)
    return jnp.where(links == index, log_alpha, log_decay)


def links_go_back(neighbors: Array | None, distances: Array) -> Array:
    """Whether links, in whatever direction, never come back to where they started.

    They do not if all go to earlier points in the order of the points, or in that of how many
    others each can link to, as in time. There are more such distances, which are not recognised.
    """
    reach = as_reach(neighbors, jnp.where(distances < jnp.inf, 0.0, -jnp.inf))
    can_link = reach.log_decay > -jnp.inf
    columns = jnp.arange(reach.size) if neighbors is None else neighbors

    def all_earlier(place: Array) -> Array:
        return jnp.all(~can_link | (place[columns] < place[:, None]))

    return all_earlier(jnp.arange(reach.size)) | all_earlier(jnp.sum(can_link, axis=1))


def among_equals(labels: Array, reach: Reach) -> Reach:
    """Links to points of the same label only, all others of weight 0."""
    others = labels if reach.neighbors is None else labels[reach.neighbors]
    same = others == labels[:, None]
    return reach._replace(log_decay=jnp.where(same, reach.log_decay, -jnp.inf))


def link_backward(reach: Reach) -> Array:
    """Each to its likeliest point before it, to itself if it has none in reach: (N,)."""
    index = jnp.arange(reach.size)
    columns = index if reach.neighbors is None else reach.neighbors
    before = jnp.where(columns < index[:, None], reach.log_decay, -jnp.inf)
    best = jnp.argmax(before, axis=1)
    other = best if reach.neighbors is None else reach.neighbors[index, best]
    return jnp.where(before.max(axis=1) > -jnp.inf, other, index).astype(jnp.int32)


def draw_links(key: Array, log_itself: Array, reach: Reach) -> Array:
    """Each link for itself, (N,).

    :param log_itself: log weight of the link to oneself, () or (N,).
    """
    index = jnp.arange(reach.size)
    log_itself = jnp.broadcast_to(log_itself, (reach.size,))
    log_weights = jnp.concatenate([reach.log_decay, log_itself[:, None]], axis=1)
    column = random.categorical(key, log_weights)
    last = column == reach.log_decay.shape[1]
    column = jnp.where(last, 0, column)
    other = column if reach.neighbors is None else reach.neighbors[index, column]
    return jnp.where(last, index, other).astype(jnp.int32)
