"""Partitions and links term by term: priors, marginal likelihoods, grids of hyperparameters."""

import jax
import numpy as np
import numpyro.distributions as dist
from scipy.special import roots_jacobi

from numpyro_rankings.components import PlackettLuceWeights


def log_restaurant(sizes, alpha, discount):
    """Log probability of a partition, one seat after the other, for each alpha."""
    total, log_prob = 0, 0.0
    for number, size in enumerate(sizes):
        for k in range(size):
            weight = alpha + number * discount if k == 0 else k - discount
            log_prob = log_prob + np.log(weight / (alpha + total))
            total += 1
    return log_prob


def log_marginals(family, data):
    """Of each set of points, by the family itself, whose tests are elsewhere."""
    if isinstance(family, PlackettLuceWeights):
        return log_marginals_of_weights(family, data)
    points = family.statistics(data)
    size = len(jax.tree.leaves(points)[0])
    is_in = np.arange(1, 2**size)[:, None] >> np.arange(size) & 1

    def log_marginal(labels):
        return family.log_marginal(family.of_clusters(points, labels, 2))[0]

    values = jax.jit(jax.lax.map, static_argnums=0)(log_marginal, 1 - is_in)
    return {tuple(np.flatnonzero(row)): float(x) for row, x in zip(is_in, values, strict=True)}


def log_marginals_of_weights(family, data):
    """Of each set of lists of three items: a sum over Gauss-Jacobi nodes of the weights."""
    a = np.broadcast_to(family.shape, (3,))
    # the first weight is Beta, and the second's part of the rest
    x, of_x = roots_jacobi(40, a[1] + a[2] - 1, a[0] - 1)
    y, of_y = roots_jacobi(40, a[2] - 1, a[1] - 1)
    x, y = (grid.ravel() for grid in np.meshgrid((1 + x) / 2, (1 + y) / 2, indexing="ij"))
    weights = np.stack([x, (1 - x) * y, (1 - x) * (1 - y)])
    nodes = np.outer(of_x / of_x.sum(), of_y / of_y.sum()).ravel()
    likelihoods = []
    for ranking in np.asarray(data.expand().orderings):
        value, left = np.ones(len(nodes)), [0, 1, 2]
        for item in ranking[ranking >= 0]:
            value = value * weights[item] / weights[left].sum(0)
            left.remove(item)
        likelihoods.append(value)
    subsets = [[i for i in range(len(data)) if code >> i & 1] for code in range(2 ** len(data))]
    return {
        tuple(s): np.log(nodes @ np.prod([likelihoods[i] for i in s], axis=0)) for s in subsets[1:]
    }


def grid(prior, number=400):
    """Points and log weights of a prior, or the number that it is.

    :param number: of points; 100 do for an integrand that is smooth, of which the error is then
        less than any power of their distance.
    """
    if not isinstance(prior, dist.Distribution):
        return np.array([1.0 if prior is None else prior]), np.zeros(1)
    points = np.exp(np.linspace(-7, 4, number))
    log_weight = np.asarray(prior.log_prob(points), float) + np.log(points)
    return points, log_weight - np.logaddexp.reduce(log_weight)


def components(links):
    """Labels by merging, link by link."""
    labels = list(range(len(links)))
    for i, j in enumerate(links):
        old, new = labels[i], labels[j]
        labels = [new if label == old else label for label in labels]
    names = {}
    return tuple(names.setdefault(label, len(names)) for label in labels)
