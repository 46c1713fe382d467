"""Simulated rankings of three blocs, and whether blocs that were found are theirs."""

import jax
import numpy as np
from scipy.optimize import linear_sum_assignment

from numpyro_rankings.datasets import simulate_mallows_mixture

LEAST_SHARE = 0.8  # of the rankings of each bloc that a bloc found must have


def simulate_blocs(seed, num_rankings=800, num_items=9):
    """Three blocs of 2 to 4 nearby groups, and a tenth of the rankings at random.

    Returns the simulated data, whose assignments are groups, and the bloc of each group, -1 for
    the random rankings.
    """
    rng = np.random.default_rng(seed)
    centers, bloc_of, shares = [], [], []
    for bloc, share in enumerate(rng.dirichlet([6.0] * 3)):
        base, number = rng.permutation(num_items), rng.integers(2, 5)
        for group in rng.dirichlet([5.0] * number):
            center = base.copy()
            for place in rng.integers(0, num_items - 1, 3):  # three swaps of neighbors
                center[[place, place + 1]] = center[[place + 1, place]]
            centers.append(center)
            bloc_of.append(bloc)
            shares.append(0.9 * share * group)
    theta = rng.uniform(1.0, 1.6, (len(centers) + 1, num_items))
    theta[-1] = 0.0
    data = simulate_mallows_mixture(
        jax.random.key(seed),
        num_rankings,
        num_items,
        num_items,
        len(theta),
        theta,
        weights=[*shares, 0.1],
        centers=[*centers, rng.permutation(num_items)],
    )
    return data, np.array([*bloc_of, -1])


def least_share(truth, found):
    """Return the smallest share of a true bloc in the bloc found that is matched with it.

    Blocs are matched one to one, so that the shares are largest. Rankings of no bloc, -1 in
    ``truth``, do not count; a true bloc that has no match has the share 0.
    """
    truth, found = np.asarray(truth), np.asarray(found)
    table = np.zeros((truth.max() + 1, found.max() + 1))
    np.add.at(table, (truth[truth >= 0], found[truth >= 0]), 1)
    shares = table / table.sum(1, keepdims=True)
    rows, columns = linear_sum_assignment(-shares)
    return shares[rows, columns].min() if len(rows) == len(table) else 0.0
