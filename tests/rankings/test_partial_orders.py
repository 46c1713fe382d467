"""Partial orders: constructors that check, what follows from preferences, views, a pytree."""

import copy
import itertools
import pickle
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from helpers.readers import refusal

from numpyro_rankings import PartialOrders, Rankings
from numpyro_rankings.rankings.preferences import closure, find_cycle

NAMES = ["a", "b", "c", "d"]
NAN = np.nan


def of_buckets(*rows, **options):
    """Partial orders of texts such as ``ab c``: a and b tied, above c."""
    return PartialOrders.from_buckets(
        [[list(bucket) for bucket in row.split()] for row in rows],
        **{"items": NAMES, **options},
    )


def of_pairs(*lines, **options):
    """Partial orders of texts such as ``x:ab``: judge x prefers a to b."""
    table = pd.DataFrame([line.replace(":", "") for line in lines], columns=["line"])
    judge, winner, loser = (table["line"].str[k] for k in range(3))
    df = pd.DataFrame({"judge": judge, "winner": winner, "loser": loser})
    return PartialOrders.from_pairs(df, judge="judge", **options)


def said(p, row=0):
    """The preferences of a row as texts."""
    above, listed = np.asarray(p.above[row]), np.asarray(p.listed[row])
    return {"".join(p.items[listed[k]] for k in pair) for pair in np.argwhere(above)}


def texts(p):
    """The buckets of each row, as :func:`of_buckets` has them."""
    rows = []
    for listed, levels in zip(np.asarray(p.listed), np.asarray(p.levels), strict=True):
        buckets = itertools.groupby(range((levels >= 0).sum()), levels.__getitem__)
        rows.append(" ".join("".join(p.items[listed[k]] for k in ks) for _, ks in buckets))
    return rows


def random_relation(rng, rows, width, edges):
    """Preferences that agree with a random order of each row, (rows, T, T)."""
    rank = np.argsort(rng.random((rows, width)), axis=1)
    is_given = rng.random((rows, width, width)) < edges
    return is_given & (rank[:, :, None] < rank[:, None, :])


# ---------------------------------------------------------------------------------------------
# Buckets and ranks
# ---------------------------------------------------------------------------------------------


def test_the_contract():
    p = of_buckets("ab c", "c a", counts=[3, 1])
    assert p.listed.tolist() == [[0, 1, 2], [2, 0, -1]]
    assert p.above.astype(int).tolist() == [
        [[0, 0, 1], [0, 0, 1], [0, 0, 0]],
        [[0, 1, 0], [0, 0, 0], [0, 0, 0]],
    ]
    for leaf in (p.listed, p.lengths, p.counts, p.levels, p.num_above):
        assert isinstance(leaf, jax.Array) and leaf.dtype == jnp.int32
    assert p.above.dtype == bool
    assert p.lengths.tolist() == [3, 2] and p.counts.tolist() == [3, 1]
    assert (p.num_items, p.num_rows, p.num_rankings, len(p)) == (4, 2, 4, 4)
    assert p.choice_sets is None and p.unlisted == "below" and p.ids is None
    assert p.levels.tolist() == [[0, 0, 1], [0, 1, -1]]
    assert p.num_above.tolist() == [[0, 0, 2], [0, 1, 0]]
    assert p.has_ties.tolist() == [True, False]
    assert p.are_buckets.tolist() == [True, True]
    assert p.row_index.tolist() == [0, 0, 0, 1]
    assert repr(p) == "PartialOrders(4 of 4 items, 2 distinct rows, 1 with ties or gaps)"


@pytest.mark.parametrize(
    "buckets",
    [
        [["a", ("b", "c")], [["d"]]],
        [["a", {"b", "c"}], ("d",)],
        [[0, [1, 2]], [3]],
        [[np.int32(0), np.array([2, 1])], np.array([3])],
        [[" a", ["c ", "b"]], ["d"]],
        np.array([["a", ["b", "c"]], ["d", None]], object),
        pd.DataFrame({"first": ["a", "d"], "second": [["b", "c"], NAN]}),
        (row for row in ([0, frozenset([1, 2])], [3])),
    ],
)
def test_buckets_in_many_forms(buckets):
    assert PartialOrders.from_buckets(buckets, items=NAMES) == of_buckets("a bc", "d")


def test_tables_of_orderings_are_buckets():
    expected = PartialOrders.from_buckets([[2, 0, 1], [1]], 4)
    for table in (
        np.array([[2, 0, 1], [1, -1, -1]]),
        np.array([[2, 0, 1], [1, NAN, NAN]]),
        np.ma.array([[2, 0, 1], [1, 9, 9]], mask=[[0, 0, 0], [0, 1, 1]]),
        pd.DataFrame([[2, 0, 1], [1, None, None]], dtype="Int64"),
    ):
        assert PartialOrders.from_buckets(table, 4) == expected
    assert PartialOrders.from_buckets(np.array([[[0, 1], [2, 3]]]), 4).levels.tolist() == [
        [0, 0, 1, 1]
    ]


def test_items_named_by_numbers():
    p = PartialOrders.from_buckets([[[3, 1], 2]], items=[1, 2, 3])
    assert texts(p) == ["13 2"]
    p = PartialOrders.from_buckets([[[0, 1], 2]], items=["1", "2", "3"], entries="indices")
    assert texts(p) == ["12 3"]
    with refusal("entries='names' or entries='indices'"):
        PartialOrders.from_buckets([[[0, 1], 2]], items=["1", "0", "2"])
    assert texts(of_pairs("x:12", "x:23")) == ["1 2 3"]
    df = pd.DataFrame({"winner": [1.0, 2.0], "loser": [2, 3]})
    assert PartialOrders.from_pairs(df).items == ("1", "2", "3")
    assert PartialOrders.from_pairs(df, items=[3, 2, 1]).listed.tolist() == [[2, 1], [1, 0]]


BUCKETS = {
    "an empty bucket": ([["a", []]], "row 1: bucket 2 is empty"),
    "an empty set": ([["a"], [set()]], "row 2: bucket 1 is empty"),
    "a judge who said nothing": ([["a"], []], "row 2: an empty ranking"),
    "nobody said anything": ([[], []], "row 1: an empty ranking"),
    "no judges": ([], "there are no rankings"),
    "twice": ([["a", ["b", "a"]]], "row 1: item 'a' is listed twice"),
    "twice in a bucket": ([[["b", "b"]]], "row 1: item 'b' is listed twice"),
    "unknown": ([["a", ["b", "x"]]], "row 1: 'x' at place 3 is not an item; expected one of"),
    "outside": ([[0, [1, 4]]], "row 1: item 4 at place 3 is outside 0..3"),
    "below 0": ([[0, [1, -3]]], "row 1: item -3 at place 3 is outside"),
    "a hole": ([[0, -1, 2]], "row 1: place 2 is empty (-1)"),
    "missing in a bucket": ([["a", ["b", None]]], "row 1: bucket 2 has a missing entry"),
    "NaN in a bucket": ([[0, [1, NAN]]], "row 1: bucket 2 has a missing entry"),
    "missing between": ([["a", NAN, "b"]], "row 1: nan at place 2, which is missing"),
    "buckets in buckets": ([["a", ["b", ["c"]]]], "row 1: ['c'] at place 3 is not an item"),
    "a dictionary": ([["a", {"b": 1}]], "row 1: {'b': 1} at place 2 is not an item"),
    "a fraction": ([[0.5, 1]], "row 1: 0.5 at place 1 is not an item"),
    "a text": ("ab", "row 1: 'a' is not a list of buckets, best first"),
    "a row of text": ([["a"], "ab"], "row 2: 'ab' is not a list of buckets"),
    "a row without order": ([{"a", "b"}], "is not a list of buckets"),
    "a number": (3, "buckets must be a list of rows of buckets, got int"),
    "one list": ([0, 1], "row 1: 0 is not a list of buckets"),
}


@pytest.mark.parametrize("name", BUCKETS)
def test_bad_buckets(name):
    buckets, message = BUCKETS[name]
    with refusal(message):
        PartialOrders.from_buckets(buckets, items=NAMES)


SETS = [[True, True, False, False], [True, True, True, False]]
ARGUMENTS = {
    "a fraction of a judge": ({"counts": [1, 1.5]}, "row 2: count 1.5 is not a positive whole"),
    "a missing count": ({"counts": [1, NAN]}, "row 2: count nan is not a positive whole number"),
    "no judge": ({"counts": [0, 1]}, "row 1: count 0 is not a positive whole number"),
    "text": ({"counts": ["1", "1"]}, "counts must be whole numbers"),
    "one count": ({"counts": [1]}, "counts must have one entry for each of the 2 rows"),
    "not offered": ({"choice_sets": SETS}, "row 1: item 'c' is listed but not in the choice set"),
    "no booleans": ({"choice_sets": np.ones((2, 4))}, "choice_sets must be booleans of shape"),
    "both": (
        {"choice_sets": np.ones((2, 4), bool), "unranked": "not-offered"},
        "choice_sets say what was offered; leave out unranked",
    ),
    "unranked": ({"unranked": "last"}, "unranked is 'below' or 'not-offered', not 'last'"),
    "two names": ({"items": ["a", "b", "c", "a"]}, "two items have the name 'a'"),
    "one item": ({"items": ["a"]}, "a ranking needs at least 2 items"),
    "number of items": ({"num_items": 5}, "there are 4 item names for 5 items"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_bad_arguments(name):
    options, message = ARGUMENTS[name]
    with refusal(message):
        of_buckets("ab c", "c ab", **options)
    if "items" not in options and "num_items" not in options:
        with refusal(message):
            PartialOrders.from_ranks([[1, 1, 3, NAN], [2, 2, 1, NAN]], NAMES, **options)


RANKS = {"min": [1, 2, 2, 4], "dense": [1, 2, 2, 3], "average": [1, 2.5, 2.5, 4]}


@pytest.mark.parametrize("ties", RANKS)
def test_ranks_with_ties(ties):
    ranks = RANKS[ties]
    expected = of_buckets("a bc d", "d bc a")
    table = [ranks, ranks[::-1]]
    for way in (None, ties, "any"):
        assert PartialOrders.from_ranks(table, NAMES, ties=way) == expected
    for other in RANKS.keys() - {ties}:
        with refusal("row 1: item ", f"which does not go with ties={other!r}; ties='any' takes"):
            PartialOrders.from_ranks(table, NAMES, ties=other)
    for forms in (
        pd.DataFrame(table, columns=NAMES),
        pd.DataFrame(table, columns=NAMES).astype("Float64"),
        np.ma.array(table),
    ):
        assert PartialOrders.from_ranks(forms, None if hasattr(forms, "columns") else NAMES) == (
            expected
        )


def test_ranks_agree_with_pandas():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, (200, 6)).astype(float)
    scores[rng.random(scores.shape) < 0.2] = NAN
    scores[:, 0] = rng.integers(0, 4, 200)
    expected = PartialOrders.from_ranks(scores, ties="any")
    for way in RANKS:
        ranks = pd.DataFrame(scores).rank(axis=1, method=way).to_numpy()
        assert PartialOrders.from_ranks(ranks, ties=way) == expected
        assert PartialOrders.from_ranks(np.where(np.isnan(ranks), 0, ranks)) == expected
    for row in range(20):
        listed = np.flatnonzero(~np.isnan(scores[row]))
        pairs = {(i, j) for i in listed for j in listed if scores[row, i] < scores[row, j]}
        items = np.asarray(expected.listed[row])
        assert {tuple(items[pair]) for pair in np.argwhere(expected.above[row])} == pairs


def test_strict_ranks_are_those_of_rankings():
    table = [[2, 1, NAN, 3], [NAN, NAN, 1, NAN]]
    for unranked in ("below", "not-offered"):
        p = PartialOrders.from_ranks(table, NAMES, [2, 3], unranked=unranked)
        assert p.to_rankings() == Rankings.from_ranks(table, NAMES, [2, 3], unranked=unranked)


def test_missing_ranks():
    expected = of_buckets("a", "bc a")
    assert PartialOrders.from_ranks([[1, NAN, 0, NAN], [3, 1, 1, NAN]], NAMES) == expected
    masked = np.ma.array([[1, 7, 7, 7], [3, 1, 1, 7]], mask=[[0, 1, 1, 1], [0, 0, 0, 1]])
    assert PartialOrders.from_ranks(masked, NAMES) == expected
    frame = pd.DataFrame({"a": [1, 3], "b": [None, 1], "c": [None, 1], "d": [None, None]})
    assert PartialOrders.from_ranks(frame.astype("Int64")) == expected


TABLES = {
    "a gap": ([[1, 3, 3, NAN]], {}, "row 1: item 'b' has rank 3, which does not go with ranks"),
    "a rank left out": ([[1, 2, 2, 5]], {}, "row 1: item 'd' has rank 5"),
    "below 1": ([[-1, 1, 1, 3]], {}, "row 1: item 'a' has rank -1"),
    "below 1 in the end": ([[1, 2, 3, -1]], {}, "row 1: item 'd' has rank -1"),
    "infinite": ([[1, 2, 2, np.inf]], {}, "row 1: item 'd' has rank inf"),
    "in the second row": ([[1, 1, 2, 3], [2, 2, 2, 2]], {}, "row 2: item 'a' has rank 2"),
    "from 0": ([[0, 1, 1, 3], [1, 2, 2, 0]], {}, "row 1: item 'a' has rank 0, and each row has"),
    "nothing": ([[1, 1, 2, 2], [NAN] * 4], {}, "row 2: an empty ranking"),
    "zeros": ([[0, 0, 0, 0]], {}, "row 1: an empty ranking"),
    "no rows": (np.ones((0, 4)), {}, "there are no rankings"),
    "one row": ([1, 2, 3, 4], {}, "ranks must be a table (rows, items), got shape (4,)"),
    "text": ([["x", 1, 2, 3]], {}, "row 1: column 1 has 'x', which is not a number"),
    "ties": ([[1, 1, 1, 1]], {"ties": "max"}, "ties is 'min', 'dense', 'average' or 'any', not"),
    "no way": ([[1, 1, 1, 1]], {"ties": True}, "or 'any', not True"),
}


@pytest.mark.parametrize("name", TABLES)
def test_bad_ranks(name):
    table, options, message = TABLES[name]
    with refusal(message):
        PartialOrders.from_ranks(table, NAMES, **options)


def test_any_numbers_are_in_their_order():
    scores = np.array([[-1.5, 0, 0, np.inf], [7, NAN, -np.inf, 2]])
    assert texts(PartialOrders.from_ranks(scores, NAMES, ties="any")) == ["a bc d", "c d a"]


def test_columns_of_data_frames_of_ranks():
    frame = pd.DataFrame([[1, 1]], columns=["a", "b"])
    with refusal("column 1 of the table is 'a', but items has 'b' there"):
        PartialOrders.from_ranks(frame, ["b", "a"])
    with refusal("column 'c' of the ranks must be numbers, got bool; all columns are items"):
        PartialOrders.from_ranks(frame.assign(c=True))


# ---------------------------------------------------------------------------------------------
# Pairs
# ---------------------------------------------------------------------------------------------


def test_pairs_and_what_follows():
    p = of_pairs("x:ab", "y:dc", "x:bc", "x:dc", "x:ab")
    assert p.items == ("a", "b", "d", "c")
    assert said(p) == {"ab", "bc", "ac", "dc"} and said(p, 1) == {"dc"}
    assert p.ids == ("x", "y") and p.unlisted == "not-offered"
    assert p.counts.tolist() == [1, 1]
    assert p.are_buckets.tolist() == [False, True] and p.has_ties.tolist() == [True, False]
    assert p.offered().tolist() == [[True] * 4, [False, False, True, True]]
    assert repr(p) == "PartialOrders(2 of 4 items, 2 rows, 1 with ties or gaps)"


def test_lines_without_judges_are_judges():
    df = pd.DataFrame({"winner": ["a", "b", "a"], "loser": ["b", "a", "b"], "n": [2, 1, 3]})
    p = PartialOrders.from_pairs(df)
    assert p.counts.tolist() == [2, 1] and p.ids is None
    assert [said(p, k) for k in (0, 1)] == [{"ab"}, {"ba"}]
    assert PartialOrders.from_pairs(df, count="n").counts.tolist() == [5, 1]
    given = PartialOrders.from_pairs(df, items=["c", "b", "a"])
    assert given.items == ("c", "b", "a") and given.listed.tolist() == [[2, 1], [1, 2]]


@pytest.mark.parametrize("dtype", ["object", "string", "category"])
def test_kinds_of_columns(dtype):
    df = pd.DataFrame({"w": ["b ", "a"], "l": ["c", "c"], "j": [7, 7], "n": [2, 2]})
    df = df.astype({"w": dtype, "l": dtype, "n": "Int64", "j": "Int64"}).set_index([[5, 5]])
    p = PartialOrders.from_pairs(df, "j", "w", "l", count="n")
    assert p.items == ("b", "c", "a")
    assert said(p) == {"bc", "ac"} and p.ids == ("7",) and p.counts.tolist() == [2]


PAIRS = {
    "a cycle of two": (("x:ab", "y:ab", "y:ba"), {}, "judge 'y': the preferences contradict"),
    "printed": (("x:ab", "x:bc", "x:ca", "x:ad"), {}, "contradict one another: a > b > c > a"),
    "a short one": (("x:ab", "x:bc", "x:ca", "x:cb"), {}, "another: b > c > b"),
    "itself": (("x:ab", "x:cc"), {}, "line 2 of the table: compares item 'c' with itself"),
    "itself alone": (("x:aa",), {}, "line 1 of the table: compares item 'a' with itself"),
    "unknown": (("x:ab", "x:bd"), {"items": ["a", "b", "c"]}, "line 2 of the table: "),
    "no lines": ((), {}, "there are no comparisons"),
    "no column": (("x:ab",), {"winner": "won"}, "the table has no column 'won'"),
    "no count": (("x:ab",), {"count": "n"}, "the table has no column 'n'"),
}


@pytest.mark.parametrize("name", PAIRS)
def test_bad_pairs(name):
    lines, options, message = PAIRS[name]
    with refusal(message):
        of_pairs(*lines, **options)


FRAMES = {
    "two counts": ({"n": [1, 2]}, "judge 'x': the column 'n' has 1 and 2; expected the same"),
    "no whole number": ({"n": [1.5, 1.5]}, "judge 'x': count 1.5 is not a positive whole number"),
    "missing": ({"n": [NAN, NAN]}, "judge 'x': count nan is not a positive whole number"),
    "one missing": ({"n": pd.array([1, None], "Int64")}, "judge 'x': the column 'n' has 1 and nan"),
    "text": ({"n": ["1", "1"]}, "the column 'n' must have whole numbers"),
    "no winner": ({"w": ["a", None]}, "line 2 of the table has no 'w'"),
    "a blank": ({"l": ["b", "  "]}, "line 2 of the table has no 'l'"),
    "no judge": ({"j": [NAN, "x"]}, "line 1 of the table has no 'j'"),
    "lists": ({"w": [["a"], ["a"]]}, "the column 'w' must have names, or numbers"),
}


@pytest.mark.parametrize("name", FRAMES)
def test_bad_frames_of_pairs(name):
    changes, message = FRAMES[name]
    columns = {"j": ["x", "x"], "w": ["a", "a"], "l": ["b", "c"], "n": [1, 1], **changes}
    with refusal(message):
        PartialOrders.from_pairs(pd.DataFrame(columns), "j", "w", "l", count="n")


def test_no_frame_and_two_columns():
    with refusal("a data frame of pairs is needed, got list"):
        PartialOrders.from_pairs([("a", "b")])
    df = pd.DataFrame([["a", "b", "c"]], columns=["winner", "winner", "loser"])
    with refusal("the table has several columns 'winner'"):
        PartialOrders.from_pairs(df)
    df = pd.DataFrame({"winner": ["a"], "loser": ["b"], "n": [0]})
    with refusal("line 1 of the table: count 0.0 is not a positive whole number"):
        PartialOrders.from_pairs(df, count="n")


def arena(*winners):
    a, b = ["x", "y", "x", "z"], ["y", "z", "z", "y"]
    size = len(winners)
    return pd.DataFrame({"model_a": a[:size], "model_b": b[:size], "winner": winners})


def test_a_column_that_says_who_won():
    pair = ("model_a", "model_b")
    p = PartialOrders.from_pairs(arena("model_a", "z", "tie (bothbad)", "Tie"), pair=pair)
    assert p.items == ("x", "y", "z")
    assert [said(p, k) for k in range(4)] == [{"xy"}, {"zy"}, set(), set()]
    assert p.listed.tolist() == [[0, 1], [2, 1], [0, 2], [1, 2]]
    judged = arena("model_a", "model_a", "draw").assign(judge="j")
    p = PartialOrders.from_pairs(judged, "judge", pair=pair)
    assert said(p) == {"xy", "yz", "xz"}  # the tie says nothing against it
    with refusal("judge 'j': the preferences contradict one another: x > y > z > x"):
        PartialOrders.from_pairs(judged.assign(winner=["x", "y", "z"]), "judge", pair=pair)


def test_bad_columns_that_say_who_won():
    pair = ("model_a", "model_b")
    with refusal(
        "line 2 of the table: column 'winner': 'x' is an item, but not one of the two, 'y' and 'z'"
    ):
        PartialOrders.from_pairs(arena("x", "x"), pair=pair)
    with refusal("line 2 of the table has no 'winner'"):
        PartialOrders.from_pairs(arena("x", None), pair=pair)
    with refusal("'Draw' in the column 'winner' can be an item or not: rename the item"):
        PartialOrders.from_pairs(arena("x", "z").replace("z", "Draw"), pair=pair)
    with refusal("the table has no column 'left'"):
        PartialOrders.from_pairs(arena("x"), pair=("left", "right"))


@pytest.mark.parametrize("width", [1, 2, 7, 64, 65, 130])
def test_closure_against_a_slow_twin(width):
    direct = random_relation(np.random.default_rng(width), 4, width, 2 / width)
    slow = direct.copy()
    for _ in range(8):
        slow |= np.matmul(slow, slow, dtype=np.float32) > 0
    np.testing.assert_array_equal(closure(direct), slow)


def test_cycles_are_cycles():
    rng = np.random.default_rng(1)
    for size in range(3, 30):
        direct = random_relation(rng, 1, size, 0.1)[0]
        around = rng.permutation(size)[: rng.integers(2, size + 1)]
        direct[around, np.roll(around, -1)] = True
        starts = np.flatnonzero(closure(direct[None])[0].diagonal())
        cycle = find_cycle(direct, starts)
        assert cycle[0] == cycle[-1] and len(set(cycle)) == len(cycle) - 1 >= 2
        assert direct[cycle[:-1], cycle[1:]].all()


def test_long_cycles_are_printed_in_short():
    size = 300
    df = pd.DataFrame({"judge": 1, "winner": range(size), "loser": np.roll(range(size), -1)})
    with refusal("judge '1': ", ": 0 > 1 > 2 > 3 > 4 > 5 > 6 > 7 > 8 > … > 0", below=200):
        PartialOrders.from_pairs(df, judge="judge")


def test_listed_items_agree_with_what_was_said():
    rng = np.random.default_rng(2)
    lines = []
    for judge in range(50):
        above = random_relation(rng, 1, 9, 0.15)[0]
        above[0, 8] = not above[8].any()
        lines += [(judge, *pair) for pair in np.argwhere(above)]
    df = pd.DataFrame(lines, columns=["judge", "winner", "loser"])
    p = PartialOrders.from_pairs(df, "judge", items=range(9))
    above = np.asarray(p.above)
    assert not above[:, *np.tril_indices(above.shape[1])].any()
    for row, judge in enumerate(p.ids):
        of_judge = df[df["judge"] == int(judge)]
        assert set(zip(of_judge["winner"], of_judge["loser"], strict=True)) <= {
            tuple(np.asarray(p.listed[row])[pair]) for pair in np.argwhere(above[row])
        }
    shuffled = PartialOrders.from_pairs(df.sample(frac=1, random_state=0), "judge", items=range(9))
    order = [shuffled.ids.index(judge) for judge in p.ids]
    assert (shuffled.listed[np.array(order)] == p.listed).all()


# ---------------------------------------------------------------------------------------------
# Large tables
# ---------------------------------------------------------------------------------------------


def pairs_of_scores(num_pairs, num_items, num_judges):
    rng = np.random.default_rng(3)
    pairs = rng.integers(num_items, size=(num_pairs, 2))
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    df = pd.DataFrame(pairs, columns=["winner", "loser"]).map("item {}".format)
    return df.assign(judge=rng.integers(num_judges, size=len(df)))


@pytest.mark.parametrize(
    "num_items, num_judges, judge, most",
    [(1000, 1, None, 2), (1000, 1, "judge", 1000), (100, 1000, "judge", 100)],
)
def test_many_pairs(num_items, num_judges, judge, most):
    df = pairs_of_scores(100_000, num_items, num_judges)
    tracemalloc.start()
    p = PartialOrders.from_pairs(df, judge)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert p.above.shape[1] <= most
    assert peak < 4 * p.above.size + 60e6
    assert len(p) == (len(df) if judge is None else num_judges)


def test_more_than_fits_is_refused():
    df = pairs_of_scores(20_000, 1000, 1).assign(judge=0)
    others = df.iloc[:5000].assign(judge=range(1, 5001))
    with refusal("preferences between 1,000 items in each of 5,001 rows take 5 GB; merge"):
        PartialOrders.from_pairs(pd.concat([df, others]), "judge")
    p = of_buckets("a", num_items=4)
    with refusal("preferences between 70,000 items"):
        PartialOrders.from_buckets([[0]], 70_000).of_all_items()
    assert p.of_all_items().num_items == 4


# ---------------------------------------------------------------------------------------------
# Views
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unranked", ["below", "not-offered"])
def test_rankings_are_partial_orders(unranked):
    r = Rankings.from_orderings([[2, 0], [1], [0, 1, 2, 3]], 4, NAMES, [2, 1, 5], unranked=unranked)
    p = PartialOrders.from_rankings(r)
    assert p.to_rankings() == r
    assert not p.has_ties.any() and p.are_buckets.all()
    assert texts(p) == ["c a", "b", "a b c d"]
    if unranked == "below":
        assert p == of_buckets("c a", "b", "a b c d", counts=[2, 1, 5])


def test_rankings_with_choice_sets():
    offered = [[True, True, True, False], [True, True, True, True]]
    r = Rankings.from_orderings([[2, 0], [3]], items=NAMES, choice_sets=offered)
    p = PartialOrders.from_rankings(r)
    assert p == of_buckets("c a", "d", choice_sets=offered)
    assert p.to_rankings() == r and p.offered().tolist() == offered
    assert said(p.of_all_items()) == {"ca", "cb", "ab"}
    assert said(p.of_all_items(), 1) == {"da", "db", "dc"}
    assert jax.jit(PartialOrders.from_rankings)(r) == p
    with pytest.raises(TypeError, match="rankings must be a Rankings here, not PartialOrders"):
        PartialOrders.from_rankings(p)


def test_rows_that_are_no_rankings():
    with refusal("row 2: the order of items 'a' and 'c' is not known, so that the row is no"):
        of_buckets("a b", "b ac").to_rankings()
    with refusal("row 1: the order of items 'a' and 'c' is not known"):
        of_pairs("x:ab", "x:cd").to_rankings()


def test_other_orders_of_the_same_judges():
    p = of_buckets("ab c", "dc", counts=[3, 1], unranked="not-offered")
    r = p.with_orderings(jnp.array([[1, 0, 2], [2, 3, -1]], jnp.int32))
    assert r.choice_sets.tolist() == [[True, True, True, False], [False, False, True, True]]
    assert r.counts is p.counts and len(r) == 4
    assert of_buckets("ab c").with_orderings(p.listed[:1]).choice_sets is None


def test_all_items():
    below = of_buckets("ab c", "d").of_all_items()
    assert said(below) == {"ac", "bc", "ad", "bd", "cd"} and said(below, 1) == {"da", "db", "dc"}
    assert below.lengths.tolist() == [4, 4] and below.listed.shape == (2, 4)
    p = of_pairs("x:ba", "x:bc", "y:cd")
    everything = p.of_all_items()
    assert said(everything) == said(p) and said(everything, 1) == said(p, 1)
    assert everything.ids == p.ids and everything.offered() is None
    assert everything.of_all_items() == everything
    with_sets = of_buckets("ab", choice_sets=[[True, True, True, False]]).of_all_items()
    assert said(with_sets) == {"ac", "bc"}


def test_levels_are_the_buckets():
    rows = ["abc d", "a b cd", "d", "dcba", "c bd"]
    p = of_buckets(*rows)
    assert texts(p) == ["abc d", "a b cd", "d", "abcd", "c bd"]
    assert p.are_buckets.all()
    levels = [[0, 0, 0, 1], [0, 1, 2, 2], [-1, -1, -1, 0], [0, 0, 0, 0], [-1, 1, 0, 1]]
    assert p.levels_of_items().tolist() == levels
    assert jax.jit(lambda x: x.levels_of_items())(p).tolist() == levels
    no_buckets = of_pairs("x:ab", "x:bc", "x:ad")
    assert not no_buckets.are_buckets.any()
    with refusal("judge 'x': the preferences are no order of buckets"):
        no_buckets.levels_of_items()


# ---------------------------------------------------------------------------------------------
# Rows and pytrees, which rankings share
# ---------------------------------------------------------------------------------------------

ROWS = {
    "buckets": of_buckets("ab c", "c a", "ba c", "abc", counts=[3, 1, 2, 1]),
    "choice sets": of_buckets(
        "ab", "ab", "ab", choice_sets=[[True] * 4, [True, True, True, False], [True] * 4]
    ),
    "not offered": of_buckets("ab c", "ab c", "a bc", unranked="not-offered"),
    "pairs": of_pairs("x:ab", "x:cd", "y:cd", "y:ab", "z:ab", "z:bc", "z:cd"),
    "rankings": Rankings.from_orderings([[1, 0], [2, 3], [1, 0]], 4, counts=[1, 2, 3]),
}


@pytest.mark.parametrize("name", ROWS)
def test_expand_and_unique(name):
    p = ROWS[name]
    merged, new_row = p.merged()
    assert merged.num_rows < p.num_rows
    assert len(merged) == len(p) and merged == p.unique() == merged.unique()
    for row, new in enumerate(new_row):
        for mine, theirs in zip(p.tree_flatten()[0], merged.tree_flatten()[0], strict=True):
            assert mine is p.counts or mine is None or (mine[row] == theirs[new]).all()
    assert np.bincount(new_row, np.asarray(p.counts)).tolist() == merged.counts.tolist()
    first = np.unique(new_row, return_index=True)[1]
    assert (np.diff(first) > 0).all()
    expanded = p.expand()
    assert expanded.num_rows == len(p) and (expanded.counts == 1).all()
    assert expanded.unique() == merged and jax.jit(lambda x: x.expand())(p) == expanded


@pytest.mark.parametrize("name", ROWS)
def test_pytree(name):
    p = ROWS[name]
    leaves, tree = jax.tree.flatten(p)
    assert len(leaves) == 4 + (p.choice_sets is not None) - (name == "rankings")
    assert jax.tree.unflatten(tree, leaves) == p
    assert jax.jit(lambda x: x)(p) == p
    assert repr(jax.eval_shape(lambda x: x, p)).endswith(f"{len(p)} of 4 items)")
    total = jax.jit(lambda x: (x.counts * x.lengths).sum() + len(x))(p)
    assert total == (p.counts * p.lengths).sum() + len(p)


@pytest.mark.parametrize("name", ROWS)
def test_copies_and_equality(name):
    p = ROWS[name]
    for other in (pickle.loads(pickle.dumps(p)), copy.copy(p), copy.deepcopy(p)):
        assert other == p and hash(other) == hash(p)
        assert getattr(other, "ids", None) == getattr(p, "ids", None)
    assert p != "p" and p != p._take(np.array([0]), np.array([1]))
    assert p != type(p)._make(p.tree_flatten()[0], (*p.tree_flatten()[1][:-2], tuple("wxyz"), 0))


@pytest.mark.parametrize("name", ROWS)
def test_immutable(name):
    p = ROWS[name]
    with pytest.raises(AttributeError, match=f"{type(p).__name__} are immutable: 'counts' cannot"):
        p.counts = 1
    with pytest.raises(AttributeError, match="'items' cannot be deleted"):
        del p.items
    with pytest.raises(TypeError, match=r"use .*from_"):
        type(p)()


def test_views_under_jit():
    p = ROWS["pairs"]

    @jax.jit
    def views(p):
        return p.num_above, p.are_buckets, p.has_ties, p.levels, p.offered()

    eager = (p.num_above, p.are_buckets, p.has_ties, p.levels, p.offered())
    for one, two in zip(views(p), eager, strict=True):
        np.testing.assert_array_equal(one, two)


def test_ids_go_where_rows_stay():
    p = of_pairs("x:ab", "y:ab")
    assert p.ids == ("x", "y") and p.unique().ids is None and p.expand().ids is None
    assert jax.jit(lambda x: x)(p).ids is None
    named = of_buckets("a", "b").with_ids(["j", "k"])
    assert named.ids == ("j", "k") and named == of_buckets("a", "b")


def test_equal_rows_of_any_width():
    rng = np.random.default_rng(4)
    ranks = rng.integers(1, 3, (300, 5)).repeat(20, axis=1)
    p = PartialOrders.from_ranks(ranks, ties="any")
    from_0 = ranks - ranks.min(1, keepdims=True)
    assert p.unique().num_rows == len(np.unique(from_0, axis=0)) < 300


def test_the_arguments_are_copied():
    ranks, offered = np.array([[1.0, 1, 3, NAN]]), np.ones((1, 4), bool)
    p = PartialOrders.from_ranks(ranks, NAMES, choice_sets=offered)
    before = copy.deepcopy(p)
    ranks[:], offered[:] = 1, False
    assert p == before


def test_of_listed_items():
    """Items that no row lists go, with their columns of the choice sets; names and ids stay."""
    sets = np.array([[1, 1, 0, 1], [1, 0, 1, 1]], bool)
    orders = PartialOrders.from_buckets([[[3, 1]], [3]], items=list("abcd"), choice_sets=sets)
    found = orders.with_ids(["x", "y"]).of_listed_items()
    assert (found.items, found.num_items, found.ids) == (("b", "d"), 2, ("x", "y"))
    assert found.listed.tolist() == [[0, 1], [1, -1]]
    assert found.choice_sets.tolist() == sets[:, [1, 3]].tolist()
    np.testing.assert_array_equal(found.above, orders.above)
    assert found.of_listed_items() is found
    assert jax.jit(lambda x: x.of_listed_items())(orders) == orders
