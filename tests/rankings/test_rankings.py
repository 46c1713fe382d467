"""The data container: constructors that check, views that lose nothing, a pytree that traces."""

import copy
import pickle
import re

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from helpers.readers import refusal

from numpyro_rankings.datasets import simulate_plackett_luce
from numpyro_rankings.rankings import Rankings, RankingsError
from numpyro_rankings.readers import write_preflib

NAMES = ["a", "b", "c", "d"]


def small(**changes):
    arguments = {"orderings": [[2, 0], [1]], "num_items": 4, "items": NAMES, "counts": [3, 1]}
    return Rankings.from_orderings(**{**arguments, **changes})


def random_rankings(seed, rows=200, num_items=5, choice_sets=False):
    """Ragged rows, many of them identical, with counts."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 4, rows)
    orderings = np.argsort(rng.random((rows, num_items)))[:, :3]
    offered = None
    if choice_sets:
        offered = rng.random((rows, num_items)) < 0.5
        np.put_along_axis(offered, orderings, True, axis=1)
    orderings = np.where(np.arange(3) < lengths[:, None], orderings, -1)
    counts = rng.integers(1, 5, rows)
    return Rankings.from_orderings(orderings, num_items, counts=counts, choice_sets=offered)


def multiset(rankings):
    """Sorted rows of what each ranking says."""
    rows = np.asarray(rankings.orderings)[np.asarray(rankings.row_index)]
    if rankings.choice_sets is not None:
        offered = np.asarray(rankings.choice_sets)[np.asarray(rankings.row_index)]
        rows = np.concatenate([rows, offered], axis=1)
    return rows[np.lexsort(rows.T)]


def test_the_contract():
    r = small()
    assert r.orderings.tolist() == [[2, 0], [1, -1]]
    assert r.lengths.tolist() == [2, 1]
    assert r.counts.tolist() == [3, 1]
    for leaf in (r.orderings, r.lengths, r.counts):
        assert isinstance(leaf, jax.Array) and leaf.dtype == jnp.int32
    assert r.items == ("a", "b", "c", "d")
    assert (r.num_items, r.num_rows, r.num_rankings, len(r)) == (4, 2, 4, 4)
    assert r.choice_sets is None
    assert r.row_index.tolist() == [0, 0, 0, 1]
    assert repr(r) == "Rankings(4 of 4 items, 2 distinct rows, lengths 1-2)"
    assert repr(r.expand()) == "Rankings(4 of 4 items, 4 rows, lengths 1-2)"


@pytest.mark.parametrize(
    "orderings",
    [
        [["c", "a"], ["b"]],
        [("c", 0), [1]],
        [[2.0, 0.0], [1.0]],
        [[2, 0, -1], [1]],
        np.array([[2, 0], [1, -1]]),
        np.array([[2, 0, -1, -1], [1, -1, -1, -1]], np.int8),
        np.array([[2.0, 0.0], [1.0, -1.0]]),
        np.array([["c", "a"], [1, -1]], object),
        jnp.array([[2, 0], [1, -1]]),
        [np.array([2, 0]), jnp.array([1])],
        ((x for x in row) for row in [[2, 0], [1]]),
        pd.Series([["c", "a"], ["b "]], index=[7, 3]),
        pd.DataFrame({"1st": [2, 1], "2nd": [0, None]}, dtype="Int64"),
        np.ma.array([[2, 0], [1, 3]], mask=[[0, 0], [0, 1]]),
        np.ma.array([["c", "a"], ["b", "d"]], mask=[[0, 0], [0, 1]]),
        [np.ma.array([2, 0]), np.ma.array([1, 3], mask=[0, 1])],
        [[2, 0], [1, np.ma.masked]],
    ],
    ids=lambda orderings: type(orderings).__name__,
)
def test_the_same_rankings_in_many_forms(orderings):
    assert small(orderings=orderings) == small()


def test_default_names_and_counts():
    r = Rankings.from_orderings([[0], [1]], num_items=12)
    assert r.items[:2] == ("item 1", "item 2") and r.items[11] == "item 12"
    assert r.counts.tolist() == [1, 1]
    named = Rankings.from_orderings([[0]], items=["10", "9", "zebra", "Zebra"])
    assert named.items == ("10", "9", "zebra", "Zebra")  # never sorted


LISTS = {
    "duplicate": ([[0, 1], [2, 0, 2]], ["row 2", "'c'", "twice"]),
    "outside": ([[0], [1], [0, 4]], ["row 3", "item 4", "place 2", "0..3"]),
    "far outside": ([[2**40]], ["row 1", str(2**40), "0..3"]),
    "negative": ([[0], [-2]], ["row 2", "item -2", "0..3"]),
    "no rows": ([], ["no rankings"]),
    "no rows in an array": (np.zeros((0, 3), int), ["no rankings"]),
    "no columns": (np.zeros((2, 0), int), ["row 1", "empty ranking"]),
    "empty ranking": ([[0], []], ["row 2", "empty ranking"]),
    "only padding": (np.array([[0, 1], [-1, -1]]), ["row 2", "empty ranking"]),
    "all empty": ([[], []], ["row 1", "empty ranking"]),
    "hole": (np.array([[0, 1, 2], [3, -1, 2]]), ["row 2", "place 2", "'c'", "-1"]),
    "nan": (np.array([[0, 1], [np.nan, 2]]), ["row 2", "nan", "place 1"]),
    "nan in a list": ([[0, 1], [float("nan"), 2]], ["row 2", "nan", "place 1"]),
    "fraction": ([[0, 1], [2, 1.5]], ["row 2", "1.5", "place 2", "whole number"]),
    "infinite": ([[float("inf")]], ["row 1", "inf"]),
    "unknown name": ([["a"], ["b", "x"]], ["row 2", "'x'", "place 2", "a, b, c, d"]),
    "none": ([[None, 0]], ["row 1", "None", "place 1"]),
    "masked": (
        np.ma.array([[0, 1], [2, 3]], mask=[[0, 0], [1, 0]]),
        ["row 2", "place 1", "missing"],
    ),
    "no list in a series": (pd.Series([["a"], None]), ["row 2", "None", "list of items"]),
    "boolean": ([[0], [True]], ["row 2", "True"]),
    "tie": ([[0], [1, [2, 3]]], ["row 2", "[2, 3]", "place 2"]),
    "string": (["ab", "c"], ["row 1", "'ab'", "list of items"]),
    "flat": ([0, 1], ["row 1", "0", "list of items"]),
    "number": (3, ["list of rankings", "int"]),
    "flat array": (np.array([0, 1]), ["(2,)", "(rows, T)"]),
    "dtype": (np.array([[0j]]), ["complex"]),
    "boolean array": (np.array([[True, False]]), ["bool"]),
}

ARGUMENTS = {
    "count zero": ({"counts": [1, 0]}, ["row 2", "count 0", "positive"]),
    "count negative": ({"counts": [-3, 1]}, ["row 1", "count -3"]),
    "count fraction": ({"counts": [1, 1.5]}, ["row 2", "1.5"]),
    "count nan": ({"counts": [1, np.nan]}, ["row 2", "nan"]),
    "count text": ({"counts": ["1", "2"]}, ["counts", "whole numbers"]),
    "counts too few": ({"counts": [1]}, ["each of the 2 rows", "(1,)"]),
    "counts too large": ({"counts": [1, 2**31]}, ["row 2", "2147483648", "2147483647"]),
    "counts sum": ({"counts": [2**30, 2**30]}, ["2147483647"]),
    "one item": ({"orderings": [[0]], "num_items": 1, "items": None}, ["at least 2", "got 1"]),
    "no items": ({"num_items": None, "items": None}, ["num_items", "names"]),
    "half an item": ({"num_items": 2.5, "items": None}, ["num_items", "2.5"]),
    "count masked": ({"counts": np.ma.array([3, 999], mask=[0, 1])}, ["row 2", "count nan"]),
    "count masked in a list": ({"counts": [3, np.ma.masked]}, ["row 2", "count nan"]),
    "count NA": ({"counts": pd.Series([3, None], dtype="Int64")}, ["row 2", "count nan"]),
    "one text": ({"items": "abcd"}, ["list of names", "'abcd'"]),
    "missing name": ({"items": ["a", "b", None, "d"]}, ["item 2", "missing"]),
    "same but for blanks": ({"items": ["a", "b", "a ", "d"]}, ["'a'", "'a' and 'a '"]),
    "number and text": ({"items": [1, 2, 3, "1"]}, ["two items", "'1'", "1 and '1'"]),
    "too few names": ({"items": ["a", "b"]}, ["2 item names", "4 items"]),
    "same names": ({"items": ["a", "b", "a", "d"]}, ["two items", "'a'"]),
    "empty name": ({"items": ["a", "b", " ", "d"]}, ["item 2", "empty"]),
    "not offered": (
        {"choice_sets": [[True, False, True, False], [True, False, True, True]]},
        ["row 2", "'b'", "choice set"],
    ),
    "choice masked": (
        {"choice_sets": np.ma.array([[True] * 4] * 2, mask=[[0] * 4, [0, 0, 1, 0]])},
        ["row 2", "no entry", "'c'"],
    ),
    "choice masked rows": (
        {"choice_sets": [[True] * 4, np.ma.array([True] * 4, mask=[0, 1, 0, 0])]},
        ["row 2", "no entry", "'b'"],
    ),
    "choice NA": (
        {"choice_sets": pd.DataFrame([[True] * 4, [True, True, True, None]], dtype="boolean")},
        ["row 2", "no entry", "'d'"],
    ),
    "choice columns": (
        {"choice_sets": pd.DataFrame([[True] * 4] * 2, columns=["a", "b", "c", "x"])},
        ["'x'", "not an item"],
    ),
    "unranked": ({"unranked": "last"}, ["'below' or 'not-offered'", "'last'"]),
    "unranked and choice sets": (
        {"unranked": "not-offered", "choice_sets": [[True] * 4] * 2},
        ["leave out unranked"],
    ),
    "choice shape": ({"choice_sets": [[True] * 3] * 2}, ["(2, 4)", "(2, 3)"]),
    "choice dtype": ({"choice_sets": [[1] * 4] * 2}, ["boolean", "int"]),
    "choice ragged": ({"choice_sets": [[True], [True, False]]}, ["boolean", "(2, 4)"]),
}


@pytest.mark.parametrize("name", list(LISTS))
def test_bad_orderings(name):
    orderings, fragments = LISTS[name]
    with refusal(*fragments):
        Rankings.from_orderings(orderings, 4, NAMES)


@pytest.mark.parametrize("name", list(ARGUMENTS))
def test_bad_arguments(name):
    changes, fragments = ARGUMENTS[name]
    with refusal(*fragments):
        small(**changes)
    assert issubclass(RankingsError, ValueError)


# -- ranks and data frames ---------------------------------------------------------------------


def test_ranks_and_orderings_agree():
    r = random_rankings(0)
    assert Rankings.from_ranks(r.to_ranks(), r.items, r.counts) == r
    assert Rankings.from_ranks(np.nan_to_num(r.to_ranks()), r.items, r.counts) == r
    assert Rankings.from_ranks(jnp.asarray(r.to_ranks()), counts=r.counts) == r
    few = np.argsort(np.argsort(np.random.default_rng(0).random((20, 4)), axis=1), axis=1) + 1
    assert Rankings.from_ranks(np.where(few <= 3, few, np.nan)) == Rankings.from_ranks(
        np.ma.array(few, mask=few > 3)
    )
    by_hand = Rankings.from_ranks([[2, None, 1, 0], [np.nan, 1, np.nan, np.nan]], NAMES, [3, 1])
    assert by_hand == small()


def test_to_ranks():
    ranks = small().to_ranks()
    np.testing.assert_array_equal(ranks, [[2, np.nan, 1, np.nan], [np.nan, 1, np.nan, np.nan]])


RANKS = {
    "tie": ([[1, 2, 3], [1, 1, 2]], ["row 2", "'a' and 'b'", "tied at rank 1"]),
    "gap": ([[1, 2, 4]], ["row 1", "'c'", "rank 4 where 3"]),
    "from 2": ([[1, 0, 0], [0, 2, 3]], ["row 2", "'b'", "rank 2 where 1"]),
    "half": ([[1, 2.5, 2.5]], ["row 1", "'b'", "2.5", "whole numbers"]),
    "negative": ([[1, 2, 3], [1, -2, 3]], ["row 2", "'b'", "-2"]),
    "infinite": ([[1, np.inf, 2]], ["row 1", "'b'", "inf"]),
    "empty": ([[1, 2, 3], [0, np.nan, 0]], ["row 2", "empty ranking"]),
    "text": ([["first", 2, 3]], ["numbers"]),
    "ragged": ([[1, 2, 3], [1, 2]], ["table"]),
    "flat": ([1, 2, 3], ["(rows, items)"]),
    "from 0": ([[2, 0, 1], [0, 1, 2]], ["row 1", "'b'", "rank 0", "ranks + 1", "NaN"]),
    "short from 0": ([[0, 1, np.nan], [2, 1, 0]], ["row 1", "'a'", "rank 0", "ranks + 1"]),
    "from 0, some empty": (
        [[np.nan] * 3, [2, 0, 1], [0, 1, np.nan]],
        ["row 2", "'b'", "rank 0", "each row", "ranks + 1", "NaN"],
    ),
    "truths": (np.array([[True, False, False]]), ["numbers", "bool"]),
    "masked": (np.ma.array([[1, 2, 3]], mask=[[1, 0, 0]]), ["row 1", "'b'", "rank 2 where 1"]),
    "no rows": (np.zeros((0, 3)), ["no rankings"]),
    "columns": ([[1, 2]], ["3 item names", "2 items"]),
}


@pytest.mark.parametrize("name", list(RANKS))
def test_bad_ranks(name):
    ranks, fragments = RANKS[name]
    with refusal(*fragments):
        Rankings.from_ranks(ranks, NAMES[:3])


# -- views -------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice_sets", [False, True])
def test_weights_equal_expansion(choice_sets):
    r = random_rankings(1, choice_sets=choice_sets)
    expanded, merged = r.expand(), r.unique()
    assert len(expanded) == expanded.num_rows == len(r) == len(merged) == int(r.counts.sum())
    assert merged.num_rows < r.num_rows
    for view in (expanded, merged, merged.expand(), expanded.unique()):
        np.testing.assert_array_equal(multiset(view), multiset(r))
    assert expanded.unique() == merged == merged.unique()
    assert merged.expand().unique() == merged
    np.testing.assert_array_equal(expanded.orderings, r.orderings[r.row_index])
    np.testing.assert_array_equal(expanded.lengths, (expanded.orderings >= 0).sum(1))


def test_unique_keeps_the_order_of_first_occurrence():
    r = Rankings.from_orderings([[2], [0], [2], [1], [0]], 3, counts=[1, 2, 3, 4, 5])
    merged = r.unique()
    assert merged.orderings.tolist() == [[2], [0], [1]]
    assert merged.counts.tolist() == [4, 7, 4]


def test_choice_sets_keep_rows_apart():
    offered = np.array([[True, True, False], [True, True, True], [True, True, False]])
    r = Rankings.from_orderings([[0, 1]] * 3, 3, choice_sets=offered)
    merged = r.unique()
    assert merged.counts.tolist() == [2, 1]
    np.testing.assert_array_equal(merged.choice_sets, offered[:2])
    assert repr(merged).endswith("length 2, choice sets)")


@pytest.mark.parametrize("choice_sets", [False, True])
def test_split(choice_sets):
    r = random_rankings(2, choice_sets=choice_sets)
    one, two = r.split(jax.random.key(0), 0.3)
    assert len(one) == round(0.3 * len(r)) and len(one) + len(two) == len(r)
    both = np.concatenate([multiset(one), multiset(two)])
    np.testing.assert_array_equal(both[np.lexsort(both.T)], multiset(r))
    for part in (one, two):
        assert part.unique() == part and part.items == r.items
        assert part.orderings.shape[1] == r.orderings.shape[1]
    again, _ = r.split(jax.random.key(0), 0.3)
    other, _ = r.split(jax.random.key(1), 0.3)
    assert again == one and other != one


def test_split_is_of_rankings_not_of_rows():
    """One row of 60 and one of 40: the first half's share of it is hypergeometric."""
    r = Rankings.from_orderings([[0], [1]], 2, counts=[60, 40])
    keys = jax.random.split(jax.random.key(0), 100)
    first = np.array([int(r.split(key, 0.5)[0].counts[0]) for key in keys])
    variance = 50 * 0.6 * 0.4 * 50 / 99
    assert abs(first.mean() - 30) < 4 * np.sqrt(variance / len(keys))
    assert 0.5 < first.var() / variance < 1.7  # 4 standard errors of a chi-square on 99


@pytest.mark.parametrize("fraction", [0, 1, -0.5, 1.5, float("nan"), 0.01])
def test_bad_fractions(fraction):
    with pytest.raises(RankingsError, match=f"fraction.*{re.escape(str(fraction))}"):
        small().split(jax.random.key(0), fraction)


# -- pytree and immutability -------------------------------------------------------------------


def test_flatten_and_unflatten():
    r = random_rankings(3, choice_sets=True)
    leaves, structure = jax.tree.flatten(r)
    assert len(leaves) == 4 and len(jax.tree.leaves(small())) == 3
    assert jax.tree.unflatten(structure, leaves) == r
    assert hash(structure) == hash(jax.tree.structure(jax.tree.map(lambda x: x, r)))
    shapes = jax.eval_shape(lambda x: x, r)
    assert shapes.num_rows == r.num_rows and len(shapes) == len(r)
    assert repr(shapes) == f"Rankings({len(r)} of 5 items)"
    assert "Rankings(" in repr(jax.tree.map(id, r))


def test_under_jit():
    r = small()
    traces = []

    @jax.jit
    def first_items(rankings):
        traces.append(repr(rankings))
        assert (len(rankings), rankings.num_rows, rankings.num_items) == (4, 2, 4)
        expanded = rankings.expand()
        assert len(expanded) == expanded.num_rows == 4
        return rankings.orderings[rankings.row_index, 0], expanded

    first, expanded = first_items(r)
    assert first.tolist() == [2, 2, 2, 1]
    assert expanded == r.expand()
    first_items(small(orderings=[[3, 1], [0]]))
    assert traces == ["Rankings(4 of 4 items)"]  # same shapes and N: compiled once
    first_items(small(items=["w", "x", "y", "z"]))
    assert len(traces) == 2


def test_under_vmap():
    several = [small(), small(orderings=[[3, 1], [0]]), small(counts=[1, 3])]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *several)
    first = jax.vmap(lambda rankings: rankings.orderings[rankings.row_index, 0])(stacked)
    assert first.tolist() == [[2, 2, 2, 1], [3, 3, 3, 0], [2, 1, 1, 1]]


def test_immutable():
    r = small()
    for name in ("orderings", "items", "num_items", "anything"):
        with pytest.raises(AttributeError, match=name):
            setattr(r, name, None)
    with pytest.raises(AttributeError, match="counts"):
        del r.counts
    with pytest.raises(TypeError):
        r.counts[0] = 7
    with pytest.raises(TypeError, match="from_orderings"):
        Rankings()


def test_the_arguments_are_copied():
    orderings, counts = np.array([[0, 1]]), np.array([2])
    offered = np.ones((1, 2), bool)
    r = Rankings.from_orderings(orderings, 2, counts=counts, choice_sets=offered)
    orderings[:], counts[:], offered[:] = 1, 9, False
    assert r.orderings.tolist() == [[0, 1]] and r.counts.tolist() == [2]
    assert np.asarray(r.choice_sets).all()


def test_equality_and_copies():
    r = random_rankings(4, choice_sets=True)
    for copied in (pickle.loads(pickle.dumps(r)), copy.copy(r), copy.deepcopy(r)):
        assert copied == r and hash(copied) == hash(r)
        assert isinstance(copied.orderings, jax.Array)
    assert small() != small(counts=[2, 2])
    assert small() != small(items=["w", "x", "y", "z"])
    assert small() != small(orderings=[[2, 0], [3]])
    assert small() != small(choice_sets=np.ones((2, 4), bool))
    assert small() != "Rankings"


def test_ranks_of_a_data_frame():
    """Names of the columns, whole numbers with missing values, and what a missing one means."""
    frame = pd.DataFrame({"tea": [2, 1], "coffee": [1, None], "milk": [3, None]}).astype("Int64")
    below = Rankings.from_ranks(frame)
    assert below.items == ("tea", "coffee", "milk") and below.choice_sets is None
    assert below.orderings.tolist() == [[1, 0, 2], [0, -1, -1]]
    offered = Rankings.from_ranks(frame, unranked="not-offered").choice_sets
    assert offered.tolist() == [[True, True, True], [True, False, False]]
    sets = np.array([[True, True, True], [True, True, False]])
    assert Rankings.from_ranks(frame, choice_sets=sets).choice_sets.tolist() == sets.tolist()
    for wrong in ({"unranked": "last"}, {"unranked": "not-offered", "choice_sets": sets}):
        with pytest.raises(RankingsError, match="unranked"):
            Rankings.from_ranks(frame, **wrong)
    long = pd.DataFrame({"judge": list("aab"), "item": list("xyx"), "rank": [1, 2, 1]})
    read = Rankings.from_dataframe(long, "judge", "item", "rank", unranked="not-offered")
    assert read.choice_sets.tolist() == [[True, True], [True, False]]


def test_missing_cells_at_the_end_of_a_list():
    names, expected = ["a", "b", "c"], [[0, 1], [2, -1]]
    frame = pd.DataFrame({"1st": ["a", "c"], "2nd": ["b", None]})
    assert Rankings.from_orderings(frame, items=names).orderings.tolist() == expected
    numbers = pd.DataFrame({"1st": [0, 2], "2nd": [1, np.nan]})
    assert Rankings.from_orderings(numbers, items=names).orderings.tolist() == expected
    where = Rankings.from_orderings([[0, 1], [2], [0, 1]], items=names).merged()[1]
    assert where.tolist() == [0, 1, 0]


@pytest.mark.parametrize("num_items", [3, 40, 3000])
@pytest.mark.parametrize("with_choice_sets", [False, True])
def test_equal_rows_are_found_in_tables_of_any_width(num_items, with_choice_sets):
    """Also where a row has more values than fit into one number."""
    rng = np.random.default_rng(num_items)
    some = np.argsort(rng.random((9, num_items)))[:, : min(num_items, 30)]
    some[::2, 2:] = -1
    table = some[rng.integers(0, 9, 60)]
    offered = None
    if with_choice_sets:
        offered = np.tile(rng.random((2, num_items)) < 0.5, (30, 1))
        np.put_along_axis(offered, np.where(table >= 0, table, table[:, :1]), True, axis=1)
    r = Rankings.from_orderings(table, num_items=num_items, choice_sets=offered)
    whole = table if offered is None else np.concatenate([table, offered], axis=1)
    expected, first, inverse = np.unique(whole, axis=0, return_index=True, return_inverse=True)
    merged, row = r.merged()
    order = np.argsort(first)
    np.testing.assert_array_equal(merged.orderings, table[first[order]])
    np.testing.assert_array_equal(merged.counts, np.bincount(inverse.reshape(-1))[order])
    np.testing.assert_array_equal(np.asarray(merged.orderings)[row], table)
    assert len(expected) == merged.num_rows


NUMBERS = {
    "names": ([[2, 1], [3]], [1, 2, 3], None),
    "names of data frames": ([[2, 1], [3]], [1.0, 2.0, 3.0], None),
    "in an array": (np.array([[2, 1], [3, -1]]), [1, 2, 3], None),
    "in a data frame": (pd.DataFrame({"1st": [2, 3], "2nd": [1, None]}), pd.Index([1, 2, 3]), None),
    "negative": ([[0, -1], [1]], [-1, 0, 1], "names"),
    "texts that can be nothing else": ([[2, 1], [3]], ["1", "2", "3"], None),
    "texts by name": (np.array([[2, 1], [1, np.nan]]) + 0.0, ["1", "2", "3"], "names"),
    "indices that can be nothing else": ([[1, 0], [2]], ["1", "2", "3"], None),
    "indices": ([[1, 0], [2]], [1, 2, 3], "indices"),
    "both the same": ([[1, 0], [2]], ["0", "1", "2"], None),
    "texts and numbers": ([["2", 1], [3]], [1, 2, 3], None),
}


@pytest.mark.parametrize("name", list(NUMBERS))
def test_items_named_by_numbers(name):
    orderings, items, entries = NUMBERS[name]
    read = Rankings.from_orderings(orderings, items=items, entries=entries)
    last = 0 if name == "texts by name" else 2
    assert read.orderings.tolist() == [[1, 0], [last, -1]]
    assert read.items == tuple(str(int(item)) for item in items)


BOTH = {
    "two readings": (
        [[0, 0], [2, 1]],
        ["2", "1", "0"],
        None,
        ["row 1", "0 at place 1", "'0'", "'2'"],
    ),
    "texts": ([[1, 2], [2, 1]], ["1", "2", "3"], None, ["item '1'", "item '2'", "entries='names'"]),
    "texts and numbers": ([["2", 1]], ["1", "2", "3"], None, ["row 1", "1 at place 2"]),
    "no name": ([[1], [0]], [1, 2, 3], None, ["row 2", "0 at place 1", "1, 2, 3", "'indices'"]),
    "no name, said": ([[1]], ["a", "b"], "names", ["row 1", "1 at place 1", "a, b"]),
    "minus 1": (np.array([[1, -1]]), [-1, 0, 1], None, ["row 1", "place 2", "end of the row"]),
    "outside": ([[0, 3]], ["1", "2", "4"], None, ["row 1", "item 3", "0..2"]),
    "half": ([[1, 1.5]], [1, 2], None, ["row 1", "1.5 at place 2", "1, 2"]),
    "entries": ([[0]], ["a", "b"], "ranks", ["'names' or 'indices'"]),
}


@pytest.mark.parametrize("name", list(BOTH))
def test_numbers_that_can_be_read_in_two_ways(name):
    orderings, items, entries, fragments = BOTH[name]
    with refusal(*fragments):
        Rankings.from_orderings(orderings, items=items, entries=entries)


def test_simulated_items_named_by_numbers():
    """Indices inside of the package are never taken for names."""
    weights = [1.0, 2.0, 3.0]
    plain = simulate_plackett_luce(jax.random.key(0), 20, weights)
    for items in (["1", "2", "3"], [3, 2, 1]):
        named = simulate_plackett_luce(jax.random.key(0), 20, weights, items=items)
        assert named.items == tuple(map(str, items))
        np.testing.assert_array_equal(named.orderings, plain.orderings)


def test_names_have_no_blanks_around_them():
    frame = pd.DataFrame({" tea": [1, 2], "milk ": [2, 1]})
    assert Rankings.from_ranks(frame).items == ("tea", "milk")
    named = Rankings.from_orderings([["a ", "b"], [" b"]], items=["a", "b "])
    assert named.items == ("a", "b") and named.orderings.tolist() == [[0, 1], [1, -1]]
    with pytest.raises(RankingsError, match="two items have the name 'tea'"):
        Rankings.from_ranks(pd.DataFrame({"tea": [1], "tea ": [2]}))


FRAMES_OF_RANKS = {
    "a column of names": ({"who": ["x"], "a": [1]}, None, ["row 1", "'who'", "'x'", "all columns"]),
    "truths": ({"a": [True], "b": [1]}, None, ["'a'", "bool"]),
    "dates": ({"a": [1], "b": [pd.Timestamp("2020")]}, None, ["'b'", "datetime"]),
    "another order": (
        {"a": [1], "b": [2]},
        ["b", "a"],
        ["'a'", "items has 'b'", "leave out items"],
    ),
}


@pytest.mark.parametrize("name", list(FRAMES_OF_RANKS))
def test_bad_data_frames_of_ranks(name):
    columns, items, fragments = FRAMES_OF_RANKS[name]
    with refusal(*fragments):
        Rankings.from_ranks(pd.DataFrame(columns), items)


def test_not_offered_in_every_constructor(tmp_path):
    listed = [[True, False, True], [False, True, False]]
    r = Rankings.from_orderings([["c", "a"], ["b"]], items=list("abc"), unranked="not-offered")
    assert r.choice_sets.tolist() == listed
    write_preflib(Rankings.from_orderings([[2, 0], [1]], items=list("abc")), tmp_path / "r.soi")
    assert Rankings.from_preflib(tmp_path / "r.soi", unranked="not-offered") == r
    with pytest.raises(RankingsError, match="unranked"):
        Rankings.from_preflib(tmp_path / "r.soi", unranked="last")
    sets = pd.DataFrame(listed, columns=list("abc"))[["c", "b", "a"]]  # matched by name
    assert Rankings.from_orderings([[2, 0], [1]], items=list("abc"), choice_sets=sets) == r
    ranks = pd.Series([[2, None, 1], [None, 1, None]])
    assert Rankings.from_ranks(ranks, list("abc"), unranked="not-offered") == r
