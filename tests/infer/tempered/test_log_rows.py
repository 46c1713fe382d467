"""The rows of several components at once, against those of one component at a time."""

from functools import partial

import jax
import numpy as np
import pytest

from numpyro_rankings import Rankings
from numpyro_rankings.infer import MallowsComponents, PlackettLuceComponents
from numpyro_rankings.infer.mixture.component_model import ComponentModel


def _lists(num_items, number, longest, offers=False):
    """Return random lists of 1 to ``longest`` items, and which items were offered."""
    rng = np.random.default_rng(num_items)
    lists, offered = [], []
    for _ in range(number):
        items = rng.permutation(num_items)[: rng.integers(2, num_items + 1) if offers else None]
        lists.append(list(items[: rng.integers(1, min(longest, len(items)) + 1)]))
        offered.append(np.isin(np.arange(num_items), items))
    sets = np.array(offered) if offers else None
    return Rankings.from_orderings(lists, num_items=num_items, choice_sets=sets)


_FULL = Rankings.from_orderings([[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]], num_items=4)
_CASES = {
    "two items": Rankings.from_orderings([[0], [1]], num_items=2),
    "tops": _lists(6, 40, 6),
    "few rows": _lists(10, 5, 10),  # more sets of items than stages
    "two words of bits": _lists(40, 20, 40),  # and stages in a loop
    "just full words": _lists(32, 9, 3),
    "subsets": _lists(6, 60, 6, offers=True),
    "subsets of many": _lists(15, 30, 15, offers=True),
}
_MANY = _lists(130, 4, 3)


@pytest.mark.parametrize("name", _CASES)
@pytest.mark.parametrize("components", [MallowsComponents(), PlackettLuceComponents()])
def test_rows_of_several_components(name, components):
    rankings = _CASES[name]
    if rankings.choice_sets is not None and isinstance(components, MallowsComponents):
        return  # which takes no subset rankings
    rows = components.read(rankings)
    assert rows.tables is not None

    @jax.jit
    def both(key):
        parameters = components.draw_prior(key, 3, rows)
        expected = ComponentModel.log_rows(components, parameters, rows)
        return components.log_rows(parameters, rows), expected

    got, expected = both(jax.random.key(1))
    assert got.shape == (rankings.num_rows, 3)
    np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-5)


@pytest.mark.parametrize("rankings", [_FULL, _lists(20, 4, 3)])
def test_small_weights_do_not_vanish(rankings):
    # exp(-120) is below what float32 holds, its logarithm is not
    components, n = PlackettLuceComponents(), rankings.num_items
    log_weights = np.zeros((1, n))
    first = int(rankings.orderings[0, 0])
    log_weights[0, first] = -120.0
    rows = components.read(rankings)
    log_rows = jax.jit(lambda x: components.log_rows(x, rows))
    got = log_rows(log_weights)[0, 0]
    others = len([k for k in np.asarray(rankings.orderings[0]) if k >= 0]) - 1
    expected = -120.0 - sum(np.log(n - k) for k in (1, *range(1, others + 1)))
    assert float(got) == pytest.approx(expected, abs=1e-3)
    # no weight at all is no NaN, and other rows do not see it
    log_weights[0, first] = -np.inf
    got = np.asarray(log_rows(log_weights))[:, 0]
    lists = np.asarray(rankings.orderings)
    is_last = lists[:, -1] == first  # of a full list, where it is left over
    chosen = (lists == first).any(1) & ~(is_last & (lists.shape[1] == n))
    np.testing.assert_array_equal(got < -1e29, chosen)


def test_many_items_are_read_one_component_at_a_time():
    components = MallowsComponents()
    rows = components.read(_MANY)
    assert rows.tables is None
    draw = partial(components.draw_prior, num_components=2, rows=rows)
    log_rows = jax.eval_shape(lambda key: components.log_rows(draw(key), rows), jax.random.key(1))
    assert log_rows.shape == (4, 2)
