"""New judges of simulated surveys: probabilities of groups come true, and most are put right."""

import itertools

import jax
import numpy as np
import pytest
from numpyro.infer import MCMC

from numpyro_rankings import Rankings, predict, reference_partition
from numpyro_rankings.distributions import GeneralizedMallows
from numpyro_rankings.infer import SliceGibbs

EVERY = np.array(list(itertools.permutations(range(5))))
CENTERS = np.array([[0, 1, 2, 3, 4], [3, 4, 0, 2, 1]])
SHARES, HALF, TIMES = np.array([0.6, 0.4]), 300, 6


@pytest.mark.slow
def test_two_known_groups_that_overlap():
    """Fitted to 300 judges, 300 others are put into the groups.

    The best share that can be put right is that of Bayes' rule with the true parameters.
    """
    p = np.exp(GeneralizedMallows(CENTERS[:, None], np.full(4, 0.9)).log_prob(EVERY[:, :4]))
    p /= p.sum(1, keepdims=True)
    kernel = SliceGibbs(num_components=2)
    mcmc = MCMC(kernel, num_warmup=300, num_samples=300, progress_bar=False, jit_model_args=True)
    said, came, right, best = [], [], [], []
    for seed in range(TIMES):
        rng = np.random.default_rng(seed)
        truth = rng.choice(2, 2 * HALF, p=SHARES)
        orders = np.array([rng.choice(len(EVERY), p=p[k]) for k in truth])
        fitted = Rankings.from_orderings(EVERY[orders[:HALF]], num_items=5)
        mcmc.run(jax.random.key(seed), fitted)
        draws = mcmc.get_samples()
        reference = reference_partition(draws["assignments"]).labels
        new = Rankings.from_orderings(EVERY, num_items=5)
        found = predict.groups(draws, fitted, new, reference, num_components=2)
        first = int(np.bincount(reference[truth[:HALF] == 0]).argmax())
        q, is_first = found.groups[orders[HALF:], first], truth[HALF:] == 0
        said, came = [*said, q], [*came, is_first]
        right.append((q > 0.5) == is_first)
        best.append(((SHARES[:, None] * p).argmax(0)[orders[HALF:]] == 0) == is_first)
    said, came = np.concatenate(said), np.concatenate(came)
    for some in (said < 0.1, said > 0.9):
        q, number = said[some], some.sum()
        error = np.sqrt((q * (1 - q)).sum()) / number
        assert number > 300 and abs(q.mean() - came[some].mean()) < 4 * error
    # the two are of the same judges, and differ in those of a few orders
    assert np.mean(right) > np.mean(best) - 0.01
