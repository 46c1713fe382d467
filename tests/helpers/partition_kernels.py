"""Kernels of partitions: constructor and data by name."""

import numpy as np
import numpyro.distributions as dist

from numpyro_rankings import Rankings
from numpyro_rankings.components import (
    Atom,
    DirichletMultinomial,
    GaussianMean,
    MallowsCenter,
    NormalGamma,
    NormalInverseWishart,
    PlackettLuceWeights,
    SparseCounts,
)
from numpyro_rankings.infer import (
    CollapsedGibbs,
    Cycle,
    PermutationGibbs,
    SplitMerge,
    SubclusterGibbs,
)

GAMMA = dist.Gamma(3.0, 2.0)
LOG_NORMAL = dist.LogNormal(0.0, 0.5)
LINE = np.array([[-1.0], [-0.7], [0.2], [0.9], [1.1]])
PLANE = np.array([[-1.0, 0.3], [-0.7, 0.1], [0.2, -1.0], [0.9, 0.8], [1.1, 1.2]])
COUNTS = np.array([[2, 0, 1], [3, 1, 0], [0, 2, 2], [0, 3, 1], [1, 1, 1]])
WORDS = SparseCounts(
    np.array([[0, 2, -1], [0, 1, -1], [1, 2, -1], [1, 2, -1], [0, 1, 2]]),
    np.array([[2, 1, 0], [3, 1, 0], [2, 2, 0], [3, 1, 0], [1, 1, 1]]),
)
GAUSS = GaussianMean(prior_scale=1.5, noise_scale=0.6)
WISHART = NormalInverseWishart([0.0, 0.0], 0.5, 4.0, np.eye(2))
TEXT = DirichletMultinomial(0.7)
SPARSE_TEXT = DirichletMultinomial(0.7, vocabulary_size=3)
ATOM, SYMBOLS = Atom([0.4, 0.6]), np.array([0, 1, 0, 1, 0])
LISTS = Rankings.from_orderings([[0, 1], [2, 0], [0], [2, 1], [0, 1]], num_items=3)
CENTER, WEIGHTS = MallowsCenter([0.3, 2.0], [0.3, 0.7]), PlackettLuceWeights([0.5, 1.0, 0.8])

# name: constructor, data
KERNELS = {
    "collapsed": (lambda: CollapsedGibbs(GAUSS, GAMMA), LINE),
    "collapsed-discount": (lambda: CollapsedGibbs(WISHART, GAMMA, discount=0.4), PLANE),
    "collapsed-full": (lambda: CollapsedGibbs(TEXT, LOG_NORMAL, max_clusters=2), COUNTS),
    "collapsed-sparse": (
        lambda: CollapsedGibbs(SPARSE_TEXT, 1.3, max_clusters=6, init="singletons"),
        WORDS,
    ),
    "batches": (lambda: CollapsedGibbs(GAUSS, GAMMA, discount=0.2, batch_size=2, init="one"), LINE),
    "batches-singletons": (
        lambda: CollapsedGibbs(GAUSS, 0.8, batch_size=2, init="singletons"),
        LINE,
    ),
    "batches-full": (lambda: CollapsedGibbs(TEXT, 1.4, max_clusters=3, batch_size=64), COUNTS),
    "batches-atoms": (lambda: CollapsedGibbs(ATOM, GAMMA, batch_size=2), SYMBOLS),
    "split-merge": (lambda: SplitMerge(GAUSS, GAMMA, num_moves=4, init="one"), LINE),
    "split-merge-full": (
        lambda: SplitMerge(TEXT, 0.9, num_moves=4, discount=0.3, max_clusters=3),
        COUNTS,
    ),
    "batches-sparse": (lambda: CollapsedGibbs(SPARSE_TEXT, GAMMA, batch_size=2), WORDS),
    "split-merge-sparse": (
        lambda: SplitMerge(SPARSE_TEXT, LOG_NORMAL, num_moves=4, discount=0.3),
        WORDS,
    ),
    "subclusters": (lambda: SubclusterGibbs(GAUSS, GAMMA, num_scans=3), LINE),
    "subclusters-plane": (lambda: SubclusterGibbs(WISHART, 1.3, num_scans=1, init="one"), PLANE),
    "subclusters-full": (
        lambda: SubclusterGibbs(TEXT, LOG_NORMAL, num_scans=0, max_clusters=3),
        COUNTS,
    ),
    "subclusters-sparse": (
        lambda: SubclusterGibbs(SPARSE_TEXT, GAMMA, num_scans=2, init="sequential"),
        WORDS,
    ),
    "subclusters-variances": (
        lambda: SubclusterGibbs(NormalGamma(0.0, 0.5, 1.5, 0.4), 0.7, init="singletons"),
        PLANE,
    ),
    "exact-uniform": (lambda: PermutationGibbs(GAUSS, GAMMA), LINE),
    "exact-uniform-discount": (lambda: PermutationGibbs(GAUSS, LOG_NORMAL, discount=0.4), LINE),
    "exact-markov": (
        lambda: PermutationGibbs(SPARSE_TEXT, 0.8, ordering="markov", discount=0.2, max_clusters=3),
        WORDS,
    ),
    "exact-projection": (lambda: PermutationGibbs(WISHART, 1.0, ordering="projection"), PLANE),
    "slope-uniform": (lambda: PermutationGibbs(GAUSS, GAMMA, exact=False, discount=0.2), LINE),
    "slope-markov": (
        lambda: PermutationGibbs(GAUSS, 1.2, ordering="markov", exact=False, max_clusters=3),
        LINE,
    ),
    "slope-markov-discount": (
        lambda: PermutationGibbs(GAUSS, LOG_NORMAL, ordering="markov", exact=False, discount=0.3),
        LINE,
    ),
    "slope-projection": (
        lambda: PermutationGibbs(TEXT, 1.0, ordering="projection", exact=False),
        COUNTS,
    ),
    "beam-uniform": (lambda: PermutationGibbs(GAUSS, GAMMA, beam=2), LINE),
    "beam-markov": (lambda: PermutationGibbs(GAUSS, 1.0, ordering="markov", beam=1), LINE),
    "beam-projection": (lambda: PermutationGibbs(TEXT, 0.8, ordering="projection", beam=2), COUNTS),
    # points that cannot be together at all
    "exact-markov-atoms": (lambda: PermutationGibbs(ATOM, 1.0, ordering="markov"), SYMBOLS),
    "slope-markov-atoms": (
        lambda: PermutationGibbs(ATOM, GAMMA, ordering="markov", exact=False),
        SYMBOLS,
    ),
    "mallows": (lambda: CollapsedGibbs(CENTER, GAMMA), LISTS),
    # the times of the choices are drawn as well
    "weights": (lambda: Cycle([CollapsedGibbs(WEIGHTS, GAMMA), SplitMerge(WEIGHTS, GAMMA)]), LISTS),
    "weights-full": (lambda: PermutationGibbs(WEIGHTS, 1.2, discount=0.3, max_clusters=3), LISTS),
    "cycle": (
        lambda: Cycle(
            [
                CollapsedGibbs(GAUSS, GAMMA),
                SplitMerge(GAUSS, GAMMA),
                PermutationGibbs(GAUSS, GAMMA, beam=2),
            ]
        ),
        LINE,
    ),
}
