"""Sets of items that no ranking compares, as in leagues that never meet."""

import itertools

import numpy as np
import pytest

from numpyro_rankings import Rankings
from numpyro_rankings.rankings.counts import apart_in_words, sets_apart

TWO_LEAGUES = [[0, 1], [2, 0], [4, 3], [3]]
OFFERED = [[0, 1, 2], [0, 2], [3, 4], [3, 4]]


def rankings_of(orders, offered=None, num_items=5):
    sets = None
    if offered is not None:
        sets = np.array([np.isin(np.arange(num_items), x) for x in offered])
    return Rankings.from_orderings(orders, items=list("ABCDEFGH"[:num_items]), choice_sets=sets)


@pytest.mark.parametrize(
    ("orders", "offered", "expected"),
    [
        (TWO_LEAGUES, OFFERED, ["ABC", "DE"]),
        # one judge who is offered items of both
        ([*TWO_LEAGUES, [1]], [*OFFERED, [1, 4]], []),
        # an item that is offered alone is compared with none; one that never is has no set
        ([[0, 1, 2], [3]], [[0, 1, 2], [3]], ["ABC", "D"]),
        ([[0, 1, 2]], [[0, 1, 2]], []),
        # without choice sets lists of two items say it
        (TWO_LEAGUES, None, ["ABC", "DE"]),
        ([*TWO_LEAGUES, [1, 3]], None, []),
        ([*TWO_LEAGUES, [0, 1, 2, 3, 4]], None, []),
        ([[0], [1], [2]], None, []),
        ([[0, 1], [2]], None, []),
    ],
)
def test_sets(orders, offered, expected):
    assert ["".join(x) for x in sets_apart(rankings_of(orders, offered))] == expected


@pytest.mark.parametrize("seed", range(5))
def test_sets_of_random_choices_by_hand(seed):
    rng = np.random.default_rng(seed)
    offered = [sorted(rng.choice(8, rng.integers(2, 4), replace=False).tolist()) for _ in range(4)]
    orders = [rng.permutation(x)[: rng.integers(1, len(x) + 1)].tolist() for x in offered]
    sets = [{k} for k in sorted({k for x in offered for k in x})]
    for a, b in itertools.chain.from_iterable(itertools.combinations(x, 2) for x in offered):
        one, other = (next(s for s in sets if k in s) for k in (a, b))
        if one is not other:
            sets.remove(other)
            one |= other
    found = sets_apart(rankings_of(orders, offered, 8))
    expected = [{"ABCDEFGH"[k] for k in s} for s in sets] if len(sets) > 1 else []
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))
    assert [len(x) for x in found] == sorted(map(len, found), reverse=True)


def test_what_is_said():
    assert apart_in_words(rankings_of(TWO_LEAGUES, OFFERED)) == (
        "no judge compares items of different sets, which are {A, B and C} and {D and E}: how one "
        "set stands to another comes from the prior of the model alone"
    )
    assert apart_in_words(rankings_of(TWO_LEAGUES)).startswith(
        "no judge lists items of more than one of the sets {A, B and C} and {D and E}: were"
    )
    assert apart_in_words(rankings_of([[0, 3], [1, 2, 0]])) == ""
    names = [f"{k}" for k in range(24)]
    pairs = Rankings.from_orderings(
        [list(range(14)), *([k, k + 1] for k in range(14, 24, 2))], items=names
    )
    assert (
        "{0, 1, 2, 3, 4 and 9 more}, {14 and 15}, {16 and 17}, {18 and 19} and 2 more sets"
        in apart_in_words(pairs)
    )
