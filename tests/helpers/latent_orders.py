"""Partial orders, all orderings that agree with them, their likelihoods and exact posteriors."""

import itertools

import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy.special import gammaln

from helpers.enumeration import MallowsPosterior, codes_of, log_partition, partitions
from helpers.lists import log_prob_twin, simplex
from numpyro_rankings import PartialOrders
from numpyro_rankings.infer.latent_orders import MallowsLists, PlackettLuceLists

WEIGHTS = np.array([0.35, 0.3, 0.2, 0.1, 0.05])
CENTER, THETA = (2, 0, 4, 1, 3), np.array([1.5, 0.2, 0.0, 0.9])


# Pairs of items, (winner, loser). Only the third is an order of buckets.
N_SHAPE = [[0, 2], [1, 2], [1, 3]]  # 0 > 2 < 1 > 3
LONE_PAIR = [[3, 1]]
BOTTOM = [[0, 3], [1, 3], [2, 3]]
GAP = [[2, 0], [0, 1], [2, 3]]  # 2 > 0 > 1, and 3 anywhere below 2


def of_pairs(*judges, num_items, counts=None):
    """Partial orders of the pairs of items, (winner, loser), of each judge."""
    rows = [(k, *pair) for k, pairs in enumerate(judges) for pair in pairs]
    table = pd.DataFrame(rows, columns=["judge", "winner", "loser"])
    if counts is not None:
        table["count"] = np.asarray(counts)[table["judge"]]
    count = None if counts is None else "count"
    return PartialOrders.from_pairs(table, "judge", items=range(num_items), count=count)


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


# -- the posterior by enumeration of all orderings ------------------------------------------------


def blocks_of(labels):
    """The judges of each cluster."""
    return [tuple(np.flatnonzero(np.equal(labels, c)).tolist()) for c in range(max(labels) + 1)]


def indicators_of_orderings(orders, orderings):
    """Of draws (chains, draws, N, T): which of its extensions each judge has, one after another."""
    width, found = orderings.shape[-1], []
    for row in range(len(orders)):
        for x in extensions(orders, row):
            padded = [*x, *[-1] * (width - len(x))]
            found.append((orderings[:, :, row] == padded).all(-1))
    return np.stack(found, axis=-1)


def _log_partitions(size, alpha, number):
    """All partitions, and their log prior probabilities."""
    table = list(partitions(size))
    alphas = np.array([alpha])
    return table, [log_partition(list(np.bincount(x)), alphas, number)[0] for x in table]


def _of_stage(twin, j, count):
    """Log integral over θ_j, and its mean, for each sum of the codes of so many judges."""
    sums = np.arange(count * (twin.num_items - 1 - j) + 1)[:, None]
    logs = twin.log_priors[j] - sums * twin.theta - count * twin.log_psis[j] + twin.log_width
    total = np.logaddexp.reduce(logs, axis=1)
    return total, np.exp(logs - total[:, None]) @ twin.theta


def mallows_expectations(orders, log_prior, alpha, number):
    """Expectations as of ``MallowsPosterior``, and probabilities of the judges' orderings.

    :param log_prior: as of ``MallowsPosterior``.
    :param number: of components, None for the Dirichlet process.
    :return: a ``MallowsPosterior`` for its indicators, and the expectations.
    """
    n, lists = orders.num_items, [extensions(orders, row) for row in range(len(orders))]
    twin = MallowsPosterior([x[0] for x in lists], n, log_prior)
    codes = [np.array([[codes_of(x, c) for c in twin.centers] for x in of]) for of in lists]
    every = np.array(list(itertools.product(*map(range, map(len, lists)))))

    def cluster(block):
        """Log marginal, P(σ), and E[θ_j], given each choice of orderings."""
        log_centers, means = -gammaln(n + 1), []
        for j in range(twin.stages):
            listing = [i for i in block if codes[i].shape[-1] > j]
            sums = sum(codes[i][every[:, i], :, j] for i in listing)
            sums = np.broadcast_to(sums, (len(every), len(twin.centers)))
            log_stage, mean = _of_stage(twin, j, len(listing))
            log_centers = log_centers + log_stage[sums]
            means.append(mean[sums])
        total = np.logaddexp.reduce(log_centers, axis=1)
        center = np.exp(log_centers - total[:, None])
        return total, center, np.einsum("oc,joc->oj", center, means)

    table, log_priors = _log_partitions(len(lists), alpha, number)
    clusters = {block: cluster(block) for labels in table for block in blocks_of(labels)}
    logs = np.stack(
        [
            log_p + sum(clusters[block][0] for block in blocks_of(labels))
            for labels, log_p in zip(table, log_priors, strict=True)
        ]
    )
    weights = np.exp(logs - np.logaddexp.reduce(logs, axis=None))
    firsts = [clusters[blocks_of(labels)[0]] for labels in table]
    of_lists = weights.sum(0)
    return twin, {
        "partition": weights.sum(1),
        "center": sum(w @ first[1] for w, first in zip(weights, firsts, strict=True)),
        "theta": sum(w @ first[2] for w, first in zip(weights, firsts, strict=True)),
        "orderings": np.concatenate([np.bincount(k, of_lists) for k in every.T]),
    }


def plackett_luce_expectations(orders, shape, alpha, number):
    """Partition, weights of the cluster of judge 0, and the judges' orderings, by quadrature.

    :param shape: of the Dirichlet prior of the weights.
    """
    points, masses = simplex(shape, 30 if len(shape) == 3 else 20)
    offered, size = np.asarray(orders.offered()), len(orders)
    likely = [
        np.exp([log_prob_twin(x, points.T, offered=offered[row]) for x in extensions(orders, row)])
        for row in range(size)
    ]
    of_judge = np.array([x.sum(0) for x in likely])
    logs, means, orderings = [], [], []
    table, log_priors = _log_partitions(size, alpha, number)
    for labels, log_p in zip(table, log_priors, strict=True):
        joints = [masses * of_judge[list(block)].prod(0) for block in blocks_of(labels)]
        logs.append(log_p + sum(np.log(joint.sum()) for joint in joints))
        shares = [joints[c] / joints[c].sum() for c in labels]
        means.append(shares[0] @ points)
        of_lists = [x / total @ p for x, total, p in zip(likely, of_judge, shares, strict=True)]
        orderings.append(np.concatenate(of_lists))
    weights = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    return {
        "partition": weights,
        "weights": weights @ np.array(means),
        "orderings": weights @ np.array(orderings),
    }
