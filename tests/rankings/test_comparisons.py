"""Comparisons that may be mistakes, as data."""

import copy
import pickle

import jax
import numpy as np
import pandas as pd
import pytest

from numpyro_rankings import Comparisons, PartialOrders, RankingsError, find_blocs
from numpyro_rankings.cli.tables import rows_in_words
from numpyro_rankings.ops.orderings import times_above
from numpyro_rankings.rankings.counts import (
    item_counts,
    mistakes_in_words,
    sets_apart,
    shares_above,
)

TABLE = pd.DataFrame(
    [
        ("Ann", "tea", "coffee"),
        ("Ann", "coffee", "cocoa"),
        ("Bob", "maté", "tea"),
        ("Ann", "cocoa", "tea"),
        ("Ann", "tea", "coffee"),
        ("Bob", "tea", "maté"),
        ("Bob", "maté", "tea"),
    ],
    columns=["judge", "winner", "loser"],
)
GIVEN = Comparisons.from_pairs(TABLE, judge="judge")


def wins_of(comparisons, row):
    """How often each pair was said, by name."""
    listed, wins = np.asarray(comparisons.listed[row]), np.asarray(comparisons.wins[row])
    return {
        (comparisons.items[listed[i]], comparisons.items[listed[k]]): int(wins[i, k])
        for i, k in np.argwhere(wins)
    }


def test_a_table_of_pairs():
    assert GIVEN.ids == ("Ann", "Bob") and GIVEN.items == ("tea", "coffee", "cocoa", "maté")
    ann = {("tea", "coffee"): 2, ("coffee", "cocoa"): 1, ("cocoa", "tea"): 1}
    bob = {("maté", "tea"): 2, ("tea", "maté"): 1}
    assert [wins_of(GIVEN, row) for row in (0, 1)] == [ann, bob]
    assert GIVEN.listed.tolist() == [[0, 2, 1], [3, 0, -1]]  # who won most often first
    assert GIVEN.lengths.tolist() == [3, 2] and GIVEN.counts.tolist() == [1, 1]
    assert GIVEN.has_cycles.tolist() == [True, True]
    assert repr(GIVEN) == "Comparisons(2 of 4 items, 7 comparisons, 2 rows with cycles)"
    whole = GIVEN.of_all_items()
    assert [wins_of(whole, row) for row in (0, 1)] == [ann, bob]
    assert whole.offered() is None and not whole.rest().any() and whole.ids == GIVEN.ids
    assert sorted(whole.listed[1].tolist()) == [0, 1, 2, 3]
    assert GIVEN.offered()[1].tolist() == [True, False, False, True]


def test_what_contains_no_cycle_is_that_of_partial_orders():
    table = TABLE.iloc[:3]
    given = Comparisons.from_pairs(table, judge="judge")
    orders = PartialOrders.from_pairs(table, judge="judge")
    assert not given.has_cycles.any()
    assert repr(given) == "Comparisons(2 of 4 items, 3 comparisons)"
    np.testing.assert_array_equal(given.lengths, orders.lengths)
    np.testing.assert_array_equal(given.count_mistakes(orders.listed), [0, 0])


def test_counts_ties_and_lines():
    lines = Comparisons.from_pairs(TABLE)  # each line is a judge
    assert len(lines) == 7 and lines.counts.tolist() == [2, 1, 2, 1, 1] and lines.ids is None
    counted = Comparisons.from_pairs(TABLE.assign(n=3), "judge", count="n")
    assert len(counted) == 6 and counted.expand().num_rows == 6
    table = pd.DataFrame({"a": ["x", "x", "y"], "b": ["y", "y", "z"], "won": ["a", "tie", "z"]})
    tied = Comparisons.from_pairs(table.assign(j=1), "j", winner="won", pair=("a", "b"))
    assert wins_of(tied, 0) == {("x", "y"): 1, ("z", "y"): 1}


def test_mistakes_are_counted():
    rng = np.random.default_rng(0)
    for _ in range(5):
        orderings = np.array([rng.permutation([0, 1, 2]), [*rng.permutation([0, 3]), -1]])
        expected = [
            sum(
                number
                for (a, b), number in wins_of(GIVEN, row).items()
                if list(x).index(GIVEN.items.index(a)) > list(x).index(GIVEN.items.index(b))
            )
            for row, x in enumerate(orderings)
        ]
        assert GIVEN.count_mistakes(orderings).tolist() == expected
        without_last = orderings[:, :2] if orderings[1, 2] < 0 else orderings
        assert GIVEN.count_mistakes(without_last)[0] == expected[0]


def test_copies_and_rows():
    for made in (pickle.loads(pickle.dumps(GIVEN)), copy.deepcopy(GIVEN)):
        assert made == GIVEN and made.ids == GIVEN.ids
    assert GIVEN != PartialOrders.from_pairs(TABLE.iloc[:3], "judge")
    assert jax.jit(lambda x: x.of_all_items())(GIVEN) == GIVEN.of_all_items()
    with pytest.raises(AttributeError, match="Comparisons are immutable"):
        GIVEN.wins = None


def test_what_members_say_more_often_counts():
    above = times_above(GIVEN, np.array([2.0, 1.0]), np.arange(4))
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 2] = expected[2, 0] = 2.0
    expected[3, 0] = 1.0
    np.testing.assert_array_equal(above, expected)


@pytest.mark.parametrize(
    "change, message",
    [
        (
            {"loser": "tea"},
            "line 1 of the table: compares item 'tea' with itself, as in 2 other lines: 5, 6; "
            "correct the names, or leave such lines out",
        ),
        ({"winner": None}, "line 1 of the table has no 'winner'"),
        ({"judge": None}, "line 1 of the table has no 'judge'"),
    ],
)
def test_bad_tables(change, message):
    with pytest.raises(RankingsError) as error:
        Comparisons.from_pairs(TABLE.assign(**change), judge="judge")
    assert str(error.value) == message
    with pytest.raises(RankingsError, match="there are no comparisons"):
        Comparisons.from_pairs(TABLE.iloc[:0], judge="judge")


def test_items_are_counted_by_what_was_said_more_often():
    counted = item_counts(GIVEN)
    assert counted.ranked.tolist() == [2, 1, 1, 1]  # tea, coffee, cocoa, maté
    assert counted.first.tolist() == [0, 0, 0, 1]  # of a cycle none is first
    shares = shares_above(GIVEN, np.arange(4))
    assert shares[0, 1] == 1 and shares[2, 0] == 1 and shares[3, 0] == 1 and np.isnan(shares[1, 3])
    assert sets_apart(GIVEN) == []
    even = Comparisons.from_pairs(TABLE.iloc[[2, 5]], "judge")  # as often one way as the other
    assert sets_apart(even) == [] and item_counts(even).first.tolist() == [1, 1]
    assert mistakes_in_words(GIVEN).startswith("2 of 2 judges contradict their own answers; any ")
    texts = rows_in_words(GIVEN)
    assert set(texts[1].split("; ")) == {"maté > tea (2 times)", "tea > maté"}
    assert set(texts[0].split("; ")) == {"tea > coffee (2 times)", "coffee > cocoa", "cocoa > tea"}


def test_other_uses_are_refused():
    with pytest.raises(TypeError, match=r"use Comparisons\.from_pairs"):
        Comparisons()
    with pytest.raises(TypeError) as error:
        find_blocs({}, GIVEN)
    assert str(error.value) == (
        "these are comparisons, of which each may be a mistake: this takes rankings and partial "
        "orders; of comparisons diagnostics, densities, compare, coclustering, point_estimate, "
        "cluster_profiles and write_report can be had"
    )
    with pytest.raises(
        RankingsError, match=r"tea > .* > tea; 1 of 2 judges.*; Comparisons\.from_pairs"
    ):
        PartialOrders.from_pairs(TABLE.iloc[:5], "judge")
