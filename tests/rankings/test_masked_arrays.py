"""Masked entries are missing or refused, never the numbers below the mask.

Those of rankings are tested in ``test_rankings.py`` and ``readers/test_data_frames.py``.
"""

import jax
import numpy as np
import pytest

from numpyro_rankings.components import (
    Atom,
    DirichletMultinomial,
    GaussianMean,
    MallowsCenter,
    NormalInverseWishart,
    PlackettLuceWeights,
    SparseCounts,
)
from numpyro_rankings.datasets import (
    simulate_mallows,
    simulate_plackett_luce,
    simulate_plackett_luce_mixture,
)
from numpyro_rankings.infer import CollapsedGibbs
from numpyro_rankings.infer.checks import check_start_values
from numpyro_rankings.links.distances import (
    SparseDistances,
    check_distances,
    graph_distances,
    nearest_distances,
    sequential_distances,
)
from numpyro_rankings.ops.orderings import as_orderings, kendall_distance
from numpyro_rankings.plots import plot_partition_in_time
from numpyro_rankings.posterior.partitions import (
    adjusted_rand_index,
    as_draws,
    canonical_labels,
    coclustering,
    partition_entropy,
)

NUMBERS = np.ma.array([1, 2], mask=[0, 1])
SHARES = np.ma.array([0.5, 0.5], mask=[0, 1])
TABLE = np.ma.array([[0, 1], [1, 0]], mask=[[0, 0], [1, 0]])
ROWS = [[0, 1], TABLE[1]]
PLAIN = np.array([[0, 1], [1, 0]])
GAUSSIAN = GaussianMean(5.0, 1.0)
KEY = jax.random.key(0)

CASES = {
    "times": lambda: sequential_distances(NUMBERS),
    "points": lambda: nearest_distances(TABLE, 1),
    "rows of points": lambda: nearest_distances(ROWS, 1),
    "edges": lambda: graph_distances(TABLE, 2),
    "distances": lambda: check_distances(TABLE, 2),
    "distances of neighbors": lambda: check_distances(SparseDistances(PLAIN[:, :1], TABLE), 2),
    "neighbors": lambda: check_distances(SparseDistances(TABLE, PLAIN), 2),
    "data of a kernel": lambda: CollapsedGibbs(GAUSSIAN, 1.0).init(KEY, 0, None, (TABLE,), {}),
    "rows of a kernel": lambda: CollapsedGibbs(GAUSSIAN, 1.0).init(KEY, 0, None, (ROWS,), {}),
    "start": lambda: check_start_values({"assignments": NUMBERS}),
    "gaussian": lambda: GAUSSIAN.check(TABLE),
    "statistics of gaussian": lambda: GAUSSIAN.statistics(ROWS),
    "prior mean": lambda: GaussianMean(5.0, 1.0, NUMBERS),
    "prior scale": lambda: NormalInverseWishart([0.0, 0.0], 1.0, 3.0, TABLE),
    "a number": lambda: GaussianMean(np.ma.masked, 1.0),
    "multinomial": lambda: DirichletMultinomial(1.0).check(TABLE),
    "statistics of multinomial": lambda: DirichletMultinomial(1.0).statistics(TABLE),
    "sparse counts": lambda: DirichletMultinomial(1.0, 2).check(SparseCounts(PLAIN, TABLE)),
    "sparse words": lambda: DirichletMultinomial(1.0, 2).check(SparseCounts(TABLE, PLAIN)),
    "concentration": lambda: DirichletMultinomial(NUMBERS),
    "symbols": lambda: Atom([0.5, 0.5]).check(NUMBERS - 1),
    "statistics of symbols": lambda: Atom([0.5, 0.5]).statistics(NUMBERS - 1),
    "probabilities": lambda: Atom(SHARES),
    "concentrations of centers": lambda: MallowsCenter(NUMBERS),
    "probabilities of centers": lambda: MallowsCenter([1.0, 2.0], SHARES),
    "shape": lambda: PlackettLuceWeights(NUMBERS),
    "labels of draws": lambda: as_draws(TABLE),
    "labels": lambda: canonical_labels(TABLE),
    "labels of two": lambda: adjusted_rand_index(NUMBERS, [0, 1]),
    "sizes": lambda: partition_entropy(NUMBERS),
    "judges": lambda: coclustering(PLAIN, judges=NUMBERS - 1),
    "orderings": lambda: as_orderings(TABLE),
    "two orderings": lambda: kendall_distance([0, 1], NUMBERS - 1),
    "times of a plot": lambda: plot_partition_in_time(NUMBERS, [0, 1]),
    "center": lambda: simulate_mallows(KEY, 2, NUMBERS - 1, 1.0),
    "stages": lambda: simulate_mallows(KEY, 2, [0, 1, 2], NUMBERS),
    "weights": lambda: simulate_plackett_luce(KEY, 2, NUMBERS),
    "lengths": lambda: simulate_plackett_luce(KEY, 2, [1.0, 2.0], NUMBERS),
    "offered": lambda: simulate_plackett_luce(KEY, 2, [1.0, 2.0], choice_sets=TABLE == 0),
    "shares": lambda: simulate_plackett_luce_mixture(KEY, 2, PLAIN + 1.0, shares=SHARES),
}


@pytest.mark.parametrize("name", list(CASES))
def test_masked_entries_are_refused(name):
    with pytest.raises(ValueError, match="is masked: leave out or fill in what is missing"):
        CASES[name]()


def test_a_mask_of_nothing_is_no_matter():
    plain = np.arange(4.0).reshape(2, 2)
    np.testing.assert_array_equal(
        nearest_distances(np.ma.array(plain, mask=False), 1).distances,
        nearest_distances(plain, 1).distances,
    )
