"""Likelihoods of the orderings behind partial orders, and all orderings that agree with them."""

import itertools

import jax.numpy as jnp
import numpy as np

from numpyro_rankings.infer.latent_orders import MallowsLists, PlackettLuceLists

WEIGHTS = np.array([0.35, 0.3, 0.2, 0.1, 0.05])
CENTER, THETA = (2, 0, 4, 1, 3), np.array([1.5, 0.2, 0.0, 0.9])


def extensions(orders, row):
    """All orderings of the listed items of a row that agree with it."""
    length, above = int(orders.lengths[row]), np.asarray(orders.above[row])
    listed = np.asarray(orders.listed[row])[:length].tolist()
    return [
        [listed[k] for k in order]
        for order in itertools.permutations(range(length))
        if not any(above[b, a] for a, b in itertools.combinations(order, 2))
    ]


def lists_of(family, orders):
    """The likelihood of the lists of five items, of which all judges prefer the same."""
    items, listed = np.maximum(orders.listed, 0), np.asarray(orders.listed) >= 0
    if family == "mallows":
        places = np.argsort(CENTER)[items].T.astype(np.int32)
        theta = np.pad(THETA, (0, 1))[: len(places), None]
        num_items = jnp.full(len(orders), orders.num_items)
        return MallowsLists(jnp.asarray(places), jnp.asarray(theta), orders.lengths, num_items)
    rest = np.where(orders.rest(), WEIGHTS, 0.0).sum(1)
    weights = np.where(listed, WEIGHTS[items], 0.0)
    return PlackettLuceLists(jnp.asarray(weights.T), jnp.asarray(rest), orders.lengths)
