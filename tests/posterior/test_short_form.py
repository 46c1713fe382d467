"""Which few items tell groups apart."""

import itertools

import numpy as np
import pytest

from numpyro_rankings import Rankings, predict

ITEMS = ["a", "b", "c", "d", "e"]
# groups of 30 and 20 judges that differ in the order of b and d only
WEIGHTS = np.float32([[0.4, 0.3, 0.15, 0.1, 0.05], [0.4, 0.1, 0.15, 0.3, 0.05]])
DRAWS = {
    "assignments": np.repeat([[0, 1]], [30, 20], axis=1),
    "weights": WEIGHTS[None],
    "cluster_sizes": np.array([[30, 20]]),
    "alpha": np.ones(1, np.float32),
    "log_joint": np.zeros(1),
}
FITTED = Rankings.from_orderings([["a"]], items=ITEMS, counts=[50])


def exact_share(items):
    """The share that the order of some items puts right."""
    total = 0.0
    for order in itertools.permutations(items):
        p = np.array([0.6, 0.4])
        for k in range(len(order)):
            p = p * WEIGHTS[:, order[k]] / WEIGHTS[:, list(order[k:])].sum(1)
        total += p.max()
    return total


def test_the_items_that_differ_and_the_share_that_is_put_right():
    found = predict.short_form(DRAWS, FITTED, 4, [0] * 30 + [1] * 20)
    (two, share), *_ = found.by_number
    assert two == ("b", "d") and share == pytest.approx(exact_share([1, 3]), abs=0.015)
    assert [len(items) for items, _ in found.by_number] == [2, 3, 4]
    best = max(exact_share(x) for x in itertools.combinations(range(5), 4))
    assert found.share == pytest.approx(best, abs=0.015)
    assert found.share_of_all == pytest.approx(exact_share(range(5)), abs=0.04)
    assert found.share_of_none == pytest.approx(0.6, abs=0.01)


def test_places_that_a_mallows_model_of_two_stages_leaves_open():
    """Groups that differ in their first items, of lists of two places."""
    draws = {
        **{name: DRAWS[name] for name in ("assignments", "cluster_sizes", "alpha", "log_joint")},
        "center": np.array([[[0, 1, 2, 3, 4], [4, 1, 2, 3, 0]]]),
        "concentration": np.full((1, 2, 2), 3.0, np.float32),
    }
    found = predict.short_form(draws, FITTED, 2, [0] * 30 + [1] * 20, num_components=2)
    assert found.items == ("a", "e") and 0.9 < found.share <= found.share_of_all + 0.02


@pytest.mark.parametrize("number", [1, 6])
def test_too_few_or_too_many_items(number):
    with pytest.raises(ValueError, match="num_items must be from 2 to 5"):
        predict.short_form(DRAWS, FITTED, number, [0] * 50)
