"""Kernels of symbols: constructor, data and distances by name."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from helpers.link_kernels import GAMMA, LOG_NORMAL
from numpyro_rankings.infer import (
    DDCRPLanguageGibbs,
    exponential_decay,
    identity_decay,
    logistic_decay,
    window_decay,
)
from numpyro_rankings.links.distances import SparseDistances

WORDS = np.array([0, 1, 0, 0, 1])
THREE = np.array([2, 0, 0, 2, 0])
PROBS = np.array([0.6, 0.4])
DIRICHLET = dist.Dirichlet(jnp.array([0.7, 1.2]))
THREE_DIRICHLET = dist.Dirichlet(jnp.array([0.5, 1.0, 0.8]))
TIMES = np.array([0.0, 0.4, 1.3, 2.1, 2.5])
LAG = TIMES[:, None] - TIMES
ONE = np.where(np.tri(5, k=-1) > 0, LAG, np.inf)
# two documents: the first two points, and the others
TWO = np.where(np.equal.outer(np.arange(5) < 2, np.arange(5) < 2), ONE, np.inf)
NEAR = SparseDistances(
    np.array([[-1, -1], [0, -1], [0, 1], [2, 0], [3, 1]]),
    np.array([[0.0, 0.0], [0.4, 0.0], [1.3, 0.9], [0.8, 2.1], [0.4, 2.1]]),
)

KERNELS = {
    "window": (lambda: DDCRPLanguageGibbs(PROBS, GAMMA, window_decay(1.5)), WORDS, ONE),
    "exponential": (
        lambda: DDCRPLanguageGibbs([0.5, 0.3, 0.2], LOG_NORMAL, exponential_decay(0.8)),
        THREE,
        ONE,
    ),
    "logistic": (lambda: DDCRPLanguageGibbs(PROBS, 0.7, logistic_decay(LOG_NORMAL)), WORDS, TWO),
    "identity": (
        lambda: DDCRPLanguageGibbs(DIRICHLET, GAMMA, identity_decay(), init="prior"),
        WORDS,
        ONE,
    ),
    "window-scale": (
        lambda: DDCRPLanguageGibbs(PROBS, GAMMA, window_decay(dist.Gamma(3.0, 2.0))),
        WORDS,
        ONE,
    ),
    "dirichlet": (
        lambda: DDCRPLanguageGibbs(DIRICHLET, GAMMA, exponential_decay(LOG_NORMAL)),
        WORDS,
        ONE,
    ),
    "documents": (
        lambda: DDCRPLanguageGibbs(THREE_DIRICHLET, 0.8, logistic_decay(1.0)),
        THREE,
        TWO,
    ),
    "sparse": (lambda: DDCRPLanguageGibbs(PROBS, GAMMA, exponential_decay(0.8)), WORDS, NEAR),
    "sparse-dirichlet": (
        lambda: DDCRPLanguageGibbs(THREE_DIRICHLET, GAMMA, logistic_decay(LOG_NORMAL)),
        THREE,
        NEAR,
    ),
}
