"""Surveys follow the file, also where a list or a judge is there in several rows."""

import pytest
from helpers.readers import joined, write, write_rows

from numpyro_rankings import read_survey

HEAD = (
    "# FILE NAME: t\n# TITLE: x\n# DATA TYPE: {}\n# NUMBER ALTERNATIVES: 3\n# NUMBER VOTERS: {}\n"
    "# NUMBER UNIQUE ORDERS: {}\n# ALTERNATIVE NAME 1: A\n# ALTERNATIVE NAME 2: B\n"
    "# ALTERNATIVE NAME 3: C\n"
)
# how many voters and distinct orders there are, the orders, and the items above the last level
PREFLIB = {
    "soc": (4, 2, "1: 1,2,3\n2: 3,2,1\n1: 1,2,3\n", ["A B C", "C B A", "C B A", "A B C"]),
    "soi": (5, 3, "2: 1,2\n1: 3\n1: 2,1\n1: 1,2\n", ["A B", "A B", "C", "B A", "A B"]),
    "toc": (5, 2, "1: 1,{2,3}\n2: {3,2},1\n2: 1,{2,3}\n", ["A", "BC", "BC", "A", "A"]),
    "toi": (4, 2, "1: {1,3},2\n1: 3\n1: {1,3},2\n1: 3\n", ["AC", "C", "AC", "C"]),
}


@pytest.mark.parametrize("kind", PREFLIB)
def test_an_order_on_two_lines(tmp_path, kind):
    voters, distinct, orders, expected = PREFLIB[kind]
    path = write(tmp_path, HEAD.format(kind, voters, distinct) + orders, f"t.{kind}")
    survey = read_survey(path)
    if kind.startswith("s"):
        assert joined(survey) == expected
        return
    rows = survey.rankings.row_index[survey.label_index]
    levels = survey.rankings.levels_of_items()[rows]
    first = [
        "".join(x for x, level in zip("ABC", row, strict=True) if level == 0) for row in levels
    ]
    assert first == expected


LONG = [("z", "A", 1), ("b", "B", 1), ("z", "B", 2), ("a", "B", 2), ("b", "A", 2), ("a", "A", 1)]
WIDE = [("z", "A", "B", 2), ("b", "B", "A", 1), ("a", "A", "B", 1)]
TABLES = {
    "long": ([("judge", "item", "rank"), *LONG], {}, [2, 3, 5]),
    "wide": ([("who", "1st", "2nd", "n"), *WIDE], {"judge": "who", "count": "n"}, [2, 2, 3, 4]),
}


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize("name", TABLES)
def test_judges_whose_rows_are_apart_and_equal_lists(tmp_path, name, suffix):
    rows, settings, numbers = TABLES[name]
    path = write_rows(tmp_path / f"t{suffix}", rows)
    survey = read_survey(path, **settings)
    assert survey.judges == list("zba" if name == "long" else "zzba")
    assert joined(survey) == ["A B"] * (1 + (name == "wide")) + ["B A", "A B"]
    assert survey.rows.tolist() == numbers
