"""All lists of a few items, their probabilities item by item, and drawn ones against them."""

import itertools

import numpy as np
from scipy import stats
from scipy.special import roots_jacobi

# Everything random here has a fixed key; a p-value below this is a failure.
FALSE_ALARM = 1e-4


def top_lists(num_items, length, num_stages=None):
    """All lists of ``length`` items, padded to ``num_stages``."""
    lists = np.array(list(itertools.permutations(range(num_items), length)), np.int32)
    padding = (num_stages or length) - length
    return np.pad(lists, ((0, 0), (0, padding)), constant_values=-1)


def assert_frequencies(samples, outcomes, log_probs):
    """Chi-square of sampled events against their probabilities."""
    samples = np.asarray(samples).reshape(-1, np.shape(outcomes)[-1])
    index = {tuple(outcome): i for i, outcome in enumerate(np.asarray(outcomes).tolist())}
    seen = np.bincount([index[tuple(s)] for s in samples.tolist()], minlength=len(index))
    expected = np.exp(np.asarray(log_probs, float))
    expected *= len(samples) / expected.sum()
    rare = expected < 5
    if rare.any():
        seen = np.append(seen[~rare], seen[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    if len(expected) == 1:
        return  # only one thing can happen
    assert stats.chisquare(seen, expected).pvalue > FALSE_ALARM


def log_prob_twin(ranking, weights, pool=0.0, offered=None):
    """Item by item; an item beyond the last stands for one of the pool.

    :param weights: of each item, or for each item an array of them.
    """
    left = {k: w for k, w in enumerate(weights) if offered is None or offered[k]}
    total = 0.0
    for item in ranking:
        if item < 0:
            break
        mass = sum(left.values()) + pool
        chosen = pool if item == len(weights) else left.pop(item, 0.0)
        with np.errstate(divide="ignore"):
            total = total + np.log(chosen) - np.log(mass)
    return total


def mallows_twin(ordering, center, theta):
    """Probability of a top-t list, stage by stage as the model is told."""
    left, probability = list(center), 1.0
    for item, of_stage in zip(ordering, theta, strict=False):  # the last stage is certain
        weights = np.exp(-of_stage * np.arange(len(left)))
        probability *= weights[left.index(item)] / weights.sum()
        left.remove(item)
    return probability


def simplex(shape, nodes=30):
    """Nodes and weights of quadrature under Dirichlet(shape)."""
    first, others = shape[0], np.sum(shape[1:])
    x, masses = roots_jacobi(nodes, others - 1, first - 1)
    x, masses = (x + 1) / 2, masses / masses.sum()
    if len(shape) == 2:
        return np.stack([x, 1 - x], axis=-1), masses
    inner, of_inner = simplex(shape[1:], nodes)
    x = np.broadcast_to(x[:, None, None], (nodes, len(inner), 1))
    points = np.concatenate([x, (1 - x) * inner], axis=-1)
    return points.reshape(-1, len(shape)), np.outer(masses, of_inner).ravel()
