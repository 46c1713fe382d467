"""The prior of links: which points each point can link to, and with what weight."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random


class LinkWeights(NamedTuple):
    """Weights f_ij of links to neighbors, -1 where there is none; None if to all: L is N."""

    neighbors: Array | None  # (N, L)
    log_decay: Array  # log f_ij of the link to each of them, (N, L)

    @property
    def size(self) -> int:
        """N, the number of points."""
        return self.log_decay.shape[0]


def as_link_weights(neighbors: Array | None, log_decay: Array) -> LinkWeights:
    """Weights of links to others: log f is set to -inf for the point itself and empty places."""
    index = jnp.arange(log_decay.shape[0])[:, None]
    columns = jnp.arange(log_decay.shape[1]) if neighbors is None else neighbors
    is_other = (columns != index) & (columns >= 0)
    return LinkWeights(neighbors, jnp.where(is_other, log_decay, -jnp.inf))


class LinkPrior(NamedTuple):
    """Prior of links, eq. (2): **alpha**, the **scale** of the decay, if it has one, and the
    **weights** that the decay gives."""

    alpha: Array
    scale: Array | None
    weights: LinkWeights


def log_totals(weights: LinkWeights) -> Array:
    """log Σ_j f_ij of each point, (N,), -inf where no point is reachable."""
    some = jnp.any(weights.log_decay > -jnp.inf, axis=1)
    # in a row of -inf the gradient of logsumexp would be NaN
    log_decay = jnp.where(some[:, None], weights.log_decay, 0.0)
    return jnp.where(some, jax.nn.logsumexp(log_decay, axis=1), -jnp.inf)


def log_links(links: Array, prior: LinkPrior) -> Array:
    """Log probability of each link, (N,) [Blei & Frazier 2011, eq. 2]."""
    log_alpha = jnp.log(prior.alpha)
    log_weight = log_weight_of_links(links, log_alpha, prior.weights)
    return log_weight - jnp.logaddexp(log_alpha, log_totals(prior.weights))


def log_weight_of_links(links: Array, log_alpha: Array, weights: LinkWeights) -> Array:
    """log f_ij of each link, log α where a point links to itself, (N,)."""
    index = jnp.arange(links.shape[0])
    if weights.neighbors is None:
        log_decay = weights.log_decay[index, links]
    else:
        chosen = weights.neighbors == links[:, None]
        log_decay = jnp.max(jnp.where(chosen, weights.log_decay, -jnp.inf), axis=1)
    return jnp.where(links == index, log_alpha, log_decay)


def links_go_back(neighbors: Array | None, distances: Array) -> Array:
    """Whether no chain of links can return to the point where it started."""
    # It cannot if all links go to earlier points, in the given order or in that of the number of
    # others that each can link to. Other distances without cycles are not recognised.
    weights = as_link_weights(neighbors, jnp.where(distances < jnp.inf, 0.0, -jnp.inf))
    can_link = weights.log_decay > -jnp.inf
    columns = jnp.arange(weights.size) if neighbors is None else neighbors

    def all_earlier(place: Array) -> Array:
        return jnp.all(~can_link | (place[columns] < place[:, None]))

    return all_earlier(jnp.arange(weights.size)) | all_earlier(jnp.sum(can_link, axis=1))


def weights_within(labels: Array, weights: LinkWeights) -> LinkWeights:
    """The weights of links between points of the same label; all others are 0."""
    others = labels if weights.neighbors is None else labels[weights.neighbors]
    same = others == labels[:, None]
    return weights._replace(log_decay=jnp.where(same, weights.log_decay, -jnp.inf))


def link_backward(weights: LinkWeights) -> Array:
    """Link each point to its likeliest earlier point, to itself if none is reachable: (N,)."""
    index = jnp.arange(weights.size)
    columns = index if weights.neighbors is None else weights.neighbors
    before = jnp.where(columns < index[:, None], weights.log_decay, -jnp.inf)
    best = jnp.argmax(before, axis=1)
    other = best if weights.neighbors is None else weights.neighbors[index, best]
    return jnp.where(before.max(axis=1) > -jnp.inf, other, index).astype(jnp.int32)


def draw_links(key: Array, log_itself: Array, weights: LinkWeights) -> Array:
    """Draw all links independently, (N,), with log weights of the links of points to themselves."""
    index = jnp.arange(weights.size)
    log_itself = jnp.broadcast_to(log_itself, (weights.size,))
    log_weights = jnp.concatenate([weights.log_decay, log_itself[:, None]], axis=1)
    column = random.categorical(key, log_weights)
    last = column == weights.log_decay.shape[1]
    column = jnp.where(last, 0, column)
    other = column if weights.neighbors is None else weights.neighbors[index, column]
    return jnp.where(last, index, other).astype(jnp.int32)
