"""Tables that are read although their form is unusual, and remedies that messages name."""

import numpy as np
import pandas as pd
import pytest

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers import read_survey


def orders_of(survey):
    """Return the list of each ranking by its names, in the order of the file."""
    rankings = survey.rankings
    rows = np.asarray(rankings.orderings)[np.asarray(rankings.row_index)[survey.label_index]]
    return ["".join(rankings.items[k] for k in row if k >= 0) for row in rows]


def read(tmp_path, text, layout=None, suffix=".csv", **options):
    path = tmp_path / f"table{suffix}"
    path.write_text(text)
    return read_survey(path, layout, **options)


@pytest.mark.parametrize(
    "cells",
    [
        ["[a, b, c]", "[c, a, b]"],
        ["{a > b > c}", "{c > a > b}"],
        ["(a; b; c)", "(c; a; b)"],
        ['c("a", "b", "c")', 'c("c", "a", "b")'],
        ["[1. a; 2. b; 3. c]", "[1. c; 2. a; 3. b]"],
    ],
)
def test_lists_in_brackets(cells):
    survey = read_survey(pd.DataFrame({"list": cells}), "cell")
    assert orders_of(survey) == ["abc", "cab"]
    assert "the brackets around the lists were taken off" in survey.notes[0]


def test_lists_in_brackets_of_any_length(tmp_path):
    text = 'list\n"[a, b]"\n[c]\n[]\n"[a, (x), c]"\n'.replace("list", "id,list").replace(
        "\n", "\n1,"
    )
    survey = read(tmp_path, text.removesuffix("1,"), columns="list", items=["a", "b", "c", "(x)"])
    assert orders_of(survey) == ["ab", "c", "a(x)c"]


def test_lists_as_numpy_writes_them():
    table = pd.DataFrame({"list": ["['a' 'b']", "['b' 'a']"]})
    assert orders_of(read_survey(table, "cell", separator="space")) == ["ab", "ba"]


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_lists_of_data_frames(tmp_path, kind):
    lists = [["a", "b"], ["b", "a"]]
    table = pd.DataFrame({"list": pd.Series([kind(x) for x in lists])})
    assert orders_of(read_survey(table, "cell")) == ["ab", "ba"]
    table.to_parquet(tmp_path / "lists.parquet")
    assert orders_of(read_survey(tmp_path / "lists.parquet", "cell")) == ["ab", "ba"]
