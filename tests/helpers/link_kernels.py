"""Kernels of links: constructor, data and distances by name."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from numpyro_rankings import Rankings
from numpyro_rankings.components import (
    DirichletMultinomial,
    Family,
    GaussianMean,
    PlackettLuceWeights,
    SparseCounts,
)
from numpyro_rankings.infer import (
    DDCRPGibbs,
    exponential_decay,
    identity_decay,
    logistic_decay,
    window_decay,
)
from numpyro_rankings.links.distances import SparseDistances


def dense(distances):
    """The same distances of all pairs."""
    if not isinstance(distances, SparseDistances):
        return distances
    size = len(distances.neighbors)
    full = np.full((size, size), np.inf)
    for i, (neighbors, row) in enumerate(zip(*distances, strict=True)):
        full[i, neighbors[neighbors >= 0]] = row[neighbors >= 0]
    return full


class Nothing(Family):
    """Data that say nothing: the posterior is the prior."""

    def statistics(self, data):
        return {"size": jnp.ones(len(data))}

    def log_marginal(self, cluster):
        return 0.0 * cluster["size"]


GAMMA = dist.Gamma(2.0, 2.0)
LOG_NORMAL = dist.LogNormal(0.0, 0.5)
LINE = np.array([[-1.0], [0.2], [-0.7], [0.9]])
COUNTS = np.array([[2, 0, 1], [0, 2, 2], [3, 1, 0], [0, 3, 1]])
GAUSS, TEXT = GaussianMean(1.5, 0.6), DirichletMultinomial(0.7)
TIMES = np.array([0.0, 0.4, 1.3, 2.1])
GENERAL = np.abs(TIMES[:, None] - TIMES)
SEQUENTIAL = np.where(np.arange(4)[:, None] > np.arange(4), GENERAL, np.inf)
SPARSE = SparseDistances(
    np.array([[1, 2], [0, -1], [3, 0], [2, -1]]),
    np.array([[0.4, 1.3], [0.4, 9.0], [0.8, 1.3], [0.8, 0.0]]),
)
ASYMMETRIC = np.array(
    [[0.0, 0.3, np.inf, 1.0], [np.inf, 0.0, 0.5, 1.7], [0.8, np.inf, 0.0, 0.2], [0.6, 2.0, 0.9, 0]]
)
SPARSE_ASYMMETRIC = SparseDistances(  # around 0, 1, 2, and from 3 to 1
    np.array([[1, 3], [2, -1], [0, 1], [1, -1]]),
    np.array([[0.4, 1.8], [0.7, 0.0], [0.2, 1.3], [0.9, 0.0]]),
)
WORDS = SparseCounts(
    np.array([[0, 2, -1], [1, 2, -1], [0, 1, -1], [1, 2, -1]]),
    np.array([[2, 1, 0], [2, 2, 0], [3, 1, 0], [3, 1, 0]]),
)
SPARSE_TEXT = DirichletMultinomial(0.7, vocabulary_size=3)

KERNELS = {
    "window": (lambda: DDCRPGibbs(GAUSS, GAMMA, window_decay(1.5)), LINE, GENERAL),
    "exponential": (
        lambda: DDCRPGibbs(TEXT, LOG_NORMAL, exponential_decay(0.8), init="prior"),
        COUNTS,
        GENERAL,
    ),
    "logistic-sequential": (
        lambda: DDCRPGibbs(GAUSS, GAMMA, logistic_decay(LOG_NORMAL)),
        LINE,
        SEQUENTIAL,
    ),
    "identity-sequential": (lambda: DDCRPGibbs(TEXT, 0.9, identity_decay()), COUNTS, SEQUENTIAL),
    "scale": (lambda: DDCRPGibbs(GAUSS, GAMMA, exponential_decay(LOG_NORMAL)), LINE, GENERAL),
    "window-scale": (
        lambda: DDCRPGibbs(GAUSS, 0.7, window_decay(dist.Gamma(3.0, 2.0))),
        LINE,
        SEQUENTIAL,
    ),
    "prior": (lambda: DDCRPGibbs(Nothing(), GAMMA, logistic_decay(LOG_NORMAL)), LINE, GENERAL),
    "sparse": (lambda: DDCRPGibbs(GAUSS, GAMMA, exponential_decay(0.8)), LINE, SPARSE),
    # the last point's value is not known
    "awaited": (lambda: DDCRPGibbs(TEXT, GAMMA, exponential_decay(0.8)), COUNTS[:3], GENERAL),
    # the same, and times of the choices are drawn as well
    "weights": (
        lambda: DDCRPGibbs(PlackettLuceWeights(), GAMMA, exponential_decay(0.8)),
        Rankings.from_orderings([[0, 1], [2], [2, 1]], num_items=3),
        GENERAL,
    ),
    "sparse-scale": (
        lambda: DDCRPGibbs(TEXT, GAMMA, logistic_decay(LOG_NORMAL), init="prior"),
        COUNTS,
        SPARSE,
    ),
    # links one way that come back all the same
    "asymmetric-scale": (
        lambda: DDCRPGibbs(GAUSS, GAMMA, exponential_decay(LOG_NORMAL)),
        LINE,
        ASYMMETRIC,
    ),
    "asymmetric-window": (
        lambda: DDCRPGibbs(GAUSS, LOG_NORMAL, window_decay(dist.Gamma(3.0, 2.0))),
        LINE,
        ASYMMETRIC,
    ),
    "sparse-asymmetric-scale": (
        lambda: DDCRPGibbs(SPARSE_TEXT, GAMMA, logistic_decay(LOG_NORMAL)),
        WORDS,
        SPARSE_ASYMMETRIC,
    ),
}
