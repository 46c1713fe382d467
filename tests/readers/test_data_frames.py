"""Long tables, and data frames of every layout."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from helpers.readers import refusal

from numpyro_rankings.rankings import Rankings, RankingsError
from numpyro_rankings.readers import read_rankings

LAYOUTS = ("ranks", "orders", "long")


def long_table(*rows):
    return pd.DataFrame(rows, columns=["voter", "candidate", "place"])


def test_data_frame():
    frame = long_table(
        ("v9", "pear", 2), ("v1", "apple", 1), ("v9", "apple", 1), ("v9", "fig", None)
    )
    r = Rankings.from_dataframe(frame, judge="voter", item="candidate", rank="place")
    assert r.items == ("pear", "apple", "fig")
    assert r.orderings.tolist() == [[1, 0], [1, -1]]
    assert len(r) == r.num_rows == 2
    other = Rankings.from_dataframe(
        frame, "voter", "candidate", "place", items=["apple", "fig", "pear", "kiwi"]
    )
    assert other.orderings.tolist() == [[0, 2], [0, -1]] and other.num_items == 4
    columns = frame.to_dict("list")  # anything with columns
    assert Rankings.from_dataframe(columns, "voter", "candidate", "place") == r


FRAMES = {
    "tie": ([("v", "a", 1), ("v", "b", 1)], ["judge 'v'", "'a' and 'b'", "tied"]),
    "gap": ([("v", "a", 1), ("v", "b", 3)], ["judge 'v'", "'b'", "rank 3 where 2"]),
    "twice": ([("v", "a", 1), ("v", "b", 2), ("v", "a", 3)], ["judge 'v'", "'a'", "twice"]),
    "empty": ([("v", "a", 1), ("w", "b", None)], ["judge 'w'", "empty ranking"]),
    "no judge": ([("v", "a", 1), (None, "b", 1)], ["line 2", "'voter'"]),
    "no item": ([("v", "a", 1), ("v", pd.NA, 2)], ["line 2", "'candidate'"]),
    "text": ([("v", "a", "best")], ["judge 'v'", "'a'", "'best'"]),
    "blank": ([("v", "a", "1"), ("v", "b", "")], ["judge 'v'", "'b'", "''"]),
    "truth": ([("v", "a", True), ("w", "b", True)], ["judge 'v'", "'a'", "True", "not a number"]),
    "zero": ([("v", "a", 1), ("v", "b", 0)], ["judge 'v'", "'b'", "rank 0", "start at 1"]),
    "negative": ([("v", "a", 1), ("v", "b", -1)], ["judge 'v'", "'b'", "rank -1"]),
    "half": ([("v", "a", 1), ("v", "b", 1.5)], ["judge 'v'", "'b'", "rank 1.5", "whole"]),
    "infinite": ([("v", "a", 1), ("v", "b", np.inf)], ["judge 'v'", "'b'", "inf"]),
    "blank judge": ([("v", "a", 1), (" ", "b", 1)], ["line 2", "'voter'"]),
    "blank item": ([("v", "a", 1), ("v", "", 2)], ["line 2", "'candidate'"]),
    "same item": ([("v", "a", 1), ("v", "a ", 2)], ["judge 'v'", "'a'", "twice"]),
    "lists": ([(["v"], "a", 1)], ["'voter'", "names"]),
    "one item": ([("v", "a", 1), ("w", "a", 1)], ["at least 2", "got 1"]),
    "nothing": ([], ["no rankings"]),
}


@pytest.mark.parametrize("name", list(FRAMES))
def test_bad_data_frames(name):
    rows, fragments = FRAMES[name]
    with refusal(*fragments):
        Rankings.from_dataframe(long_table(*rows), "voter", "candidate", "place")


def test_bad_data_frame_columns_and_items():
    frame = long_table(("v", "a", 1), ("v", "b", 2))
    with pytest.raises(RankingsError, match="no column 'rank'"):
        Rankings.from_dataframe(frame, "voter", "candidate", "rank")
    with pytest.raises(RankingsError, match="judge 'v': there is no item 'b'"):
        Rankings.from_dataframe(frame, "voter", "candidate", "place", items=["a", "c"])


def test_columns_of_many_kinds():
    """The same table as texts, numbers, categories, masked arrays and columns with blanks."""
    expected = Rankings.from_orderings([[1, 0], [0]], items=["1", "2"], entries="indices")
    judges, items, ranks = ["v", "w", "v"], [1, 1, 2], [2, 1, 1]
    tables = [
        {"voter": judges, "candidate": items, "place": ranks},
        {"voter": [1, 2, 1.0], "candidate": [1.0, 1.0, 2.0], "place": ["2", "1", "1"]},
        {"voter": ["v", "w", "v "], "candidate": ["1 ", " 1", "2"], "place": ranks},
        {
            "voter": pd.Categorical(judges, ["w", "v"]),
            "candidate": pd.array(items, dtype="Int64"),
            "place": pd.array(ranks, dtype="Int64"),
        },
        {"voter": np.ma.array([5, 4, 5]), "candidate": items, "place": np.ma.array(ranks)},
        {"voter": judges + ["w"], "candidate": items + [2], "place": [2, 1, 1, np.ma.masked]},
        {
            "voter": judges + ["w"],
            "candidate": items + [2],
            "place": np.ma.array([2, 1, 1, 2], mask=[0, 0, 0, 1]),
        },
    ]
    for table in tables:
        assert Rankings.from_dataframe(table, "voter", "candidate", "place") == expected
    masked = {"voter": np.ma.array([1, 1], mask=[0, 1]), "candidate": items[1:], "place": ranks[1:]}
    with pytest.raises(RankingsError, match="line 2 of the table has no 'voter'"):
        Rankings.from_dataframe(masked, "voter", "candidate", "place")
    short = {"voter": judges, "candidate": items[:2], "place": ranks}
    with pytest.raises(RankingsError, match="of one length, got 3, 2 and 3"):
        Rankings.from_dataframe(short, "voter", "candidate", "place")
    twice = pd.DataFrame([["v", 1, 1, 1]], columns=["voter", "candidate", "place", "place"])
    with pytest.raises(RankingsError, match="several columns 'place'"):
        Rankings.from_dataframe(twice, "voter", "candidate", "place")


def test_counts_of_judges():
    frame = long_table(("v", "a", 1), ("w", "b", 1), ("v", "b", 2))
    columns = ("voter", "candidate", "place")
    frame["n"] = [3, 1, 3]
    assert Rankings.from_dataframe(frame, *columns, count="n").counts.tolist() == [3, 1]
    for values, fragments in {
        (3, 1, 2): ["judge 'v'", "'n'", "3 and 2"],
        (3, 1, None): ["judge 'v'", "'n'", "3 and nan"],
        (0, 1, 0): ["judge 'v'", "count 0"],
        ("x", "y", "z"): ["'n'", "whole numbers"],
    }.items():
        with refusal(*fragments):
            Rankings.from_dataframe(frame.assign(n=list(values)), *columns, count="n")
    with pytest.raises(RankingsError, match="no column 'm'"):
        Rankings.from_dataframe(frame, *columns, count="m")


def test_a_long_table_makes_no_table_of_all_judges_and_items():
    rng = np.random.default_rng(0)
    num_judges, num_items, length = 3000, 4000, 4
    lists = rng.integers(num_items // length, size=(num_judges, length))
    lists += np.arange(length) * (num_items // length)  # no item twice
    r = Rankings.from_orderings(lists, num_items)
    frame = r.to_dataframe("long").sample(frac=1.0, random_state=0)
    tracemalloc.start()
    again = Rankings.from_dataframe(frame, "judge", "item", "rank", items=r.items)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < num_judges * num_items  # less than a byte for each pair
    order = np.argsort(frame["judge"].drop_duplicates().to_numpy())  # in order of first appearance
    np.testing.assert_array_equal(np.asarray(again.orderings)[order], r.orderings)


# -- writing -----------------------------------------------------------------------------------


def read_back(r, layout, **columns):
    """Read what ``to_dataframe`` writes, by the constructor of the layout."""
    frame = r.to_dataframe(layout, **columns)
    unranked = "below" if r.choice_sets is None else "not-offered"
    if layout == "long":
        return Rankings.from_dataframe(
            frame, "judge", "item", "rank", items=r.items, unranked=unranked, **columns
        )
    counts = frame.pop(columns["count"]) if columns else None
    if layout == "ranks":
        return Rankings.from_ranks(frame, counts=counts, unranked=unranked)
    return Rankings.from_orderings(frame, items=r.items, counts=counts, unranked=unranked)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(6))
def test_round_trip(layout, seed):
    """Of short and full lists, with counts, choice sets, and names that are numbers."""
    rng = np.random.default_rng(seed)
    num_rows, num_items = int(rng.integers(1, 30)), int(rng.integers(2, 8))
    lengths = rng.integers(1, num_items + 1, num_rows)
    orderings = np.argsort(rng.random((num_rows, num_items)), axis=1)
    orderings[np.arange(num_items) >= lengths[:, None]] = -1
    r = Rankings.from_orderings(
        orderings,
        items=[str(num_items - k) if seed % 2 else f"item, {k}" for k in range(num_items)],
        counts=rng.integers(1, 4, num_rows),
        unranked="not-offered" if seed % 3 == 0 else "below",
        entries="indices",
    )
    assert read_back(r, layout) == r.expand()
    assert read_back(r, layout, count="n") == r
    if r.choice_sets is None:
        cells = r.to_dataframe("cell", count="n")
        options = {"items": r.items, "separator": ";", "count": "n"}
        assert read_rankings(cells, "cell", **options) == r.unique()


def test_frames_by_hand():
    r = Rankings.from_orderings([["c", "a"], ["b"]], items=list("abc"), counts=[2, 1])
    ranks = r.to_dataframe("ranks")
    assert ranks.columns.tolist() == ["a", "b", "c"] and ranks.index.tolist() == [1, 2, 3]
    assert ranks.fillna(0).to_numpy().tolist() == [[2, 0, 1], [2, 0, 1], [0, 1, 0]]
    assert all(dtype == "Int64" for dtype in ranks.dtypes)
    orders = r.to_dataframe("orders", count="n")
    assert orders.columns.tolist() == ["rank 1", "rank 2", "n"]
    assert orders.fillna("").to_numpy().tolist() == [["c", "a", 2], ["b", "", 1]]
    lines = r.to_dataframe("long", count="n")
    assert lines.columns.tolist() == ["judge", "item", "rank", "n"]
    assert lines.to_numpy().tolist() == [[1, "c", 1, 2], [1, "a", 2, 2], [2, "b", 1, 1]]
    assert r.to_dataframe("cell")["order"].tolist() == ["c;a;", "c;a;", "b;"]


def test_what_a_frame_cannot_say():
    r = Rankings.from_orderings([["a"]], items=["a", "n"])
    with pytest.raises(RankingsError, match="one of ranks, orders, long, cell, not 'wide'"):
        r.to_dataframe("wide")
    with pytest.raises(RankingsError, match="'a;b' contains a semicolon"):
        Rankings.from_orderings([[0]], items=["a;b", "c"]).to_dataframe("cell")
    with pytest.raises(RankingsError, match="has a column 'n' already"):
        r.to_dataframe("ranks", count="n")
    with pytest.raises(RankingsError, match="has a column 'judge' already"):
        r.to_dataframe("long", count="judge")
    offered = Rankings.from_orderings(
        [[0], [1]], 3, choice_sets=[[1, 0, 0], [0, 1, 1]] == np.ones(1)
    )
    for layout in LAYOUTS:
        with pytest.raises(RankingsError, match="row 2: item 'item 3' was offered but is not"):
            offered.to_dataframe(layout)
