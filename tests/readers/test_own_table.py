"""The project's own tables after other programs have saved them."""

import csv
import io
import re

import numpy as np
import pytest
from helpers.readers import refusal, write

from numpyro_rankings import PartialOrders, Rankings, RankingsError
from numpyro_rankings.readers import read_rankings, read_survey, read_table, write_table

NAMES = ("Ann Able", "Bob, Jr", 'the "Best"', "maté; thé", "7")
RANKINGS = Rankings.from_orderings(
    [[0, 1, 2, 3, 4], [1], [3, 0]], items=NAMES, counts=[14, 6, 1]
).unique()
OFFERED = Rankings.from_orderings(
    [[0, 1], [1], [3, 0]], items=NAMES, choice_sets=np.ones((3, 5), bool), counts=[2, 1, 9]
).unique()
# as version 0.1.0 wrote it: names as they are
OLD = """\
# title: "Old", with, commas
# item A: Ann Able
# item B: Bob, Jr
# item C: the "Best"
# item D: maté; thé
# item E: 7
count,ordering
14,A>B>C>D>E
6,B
1,D>A
"""


def saved(text, mark=",", end="\r\n", quoting=csv.QUOTE_MINIMAL):
    """The table as a spreadsheet saves it: cells as many as there are columns, in all lines."""
    rows = list(csv.reader(text.splitlines()))
    width = max(map(len, rows))
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=mark, lineterminator=end, quoting=quoting)
    writer.writerows([row + [""] * (width - len(row)) for row in rows])
    return stream.getvalue()


def of_r(text):
    """The table of a data frame whose rows are numbered, below the names of the items."""
    items, _, table = text.partition("count,")
    rows = [row.split(",") for row in table.splitlines()]
    columns = ["count", *rows[0]]
    quoted = (
        f'"{k}",{row[0]},' + ",".join(f'"{x}"' for x in row[1:]) for k, row in enumerate(rows[1:])
    )
    return items + '"",' + ",".join(f'"{x}"' for x in columns) + "\n" + "\n".join(quoted) + "\n"


SAVED = {
    "commas": saved,
    "semicolons": lambda text: saved(text, ";"),
    "tabs": lambda text: saved(text, "\t"),
    "all in quotes": lambda text: saved(text, quoting=csv.QUOTE_ALL),
    "all in quotes, semicolons": lambda text: saved(text, ";", quoting=csv.QUOTE_ALL),
    "texts in quotes": lambda text: saved(text, end="\n", quoting=csv.QUOTE_NONNUMERIC),
    "R": of_r,
    "empty columns": lambda text: saved(text.replace("count,", ",,,\ncount,")),
    "decimal commas": lambda text: saved(text, ";").replace("6;", "6,0;"),
    "says its separator": lambda text: "sep=;\n" + saved(text, ";"),
    "capitals": lambda text: text.replace("# item", "# Item").replace("count,", "Count,"),
    "blanks": lambda text: re.sub(r"(?m)^(\d+|count),", r" \1 , ", text),
}
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("how", SAVED)
@pytest.mark.parametrize("rankings", [RANKINGS, OFFERED], ids=["ranked", "offered"])
def test_tables_that_another_program_has_saved(tmp_path, how, encoding, rankings):
    path = tmp_path / "table.csv"
    write_table(rankings, path, title='Saved, "again"; twice')
    path.write_bytes(SAVED[how](path.read_text(encoding="utf-8")).encode(encoding))
    assert read_table(path) == read_rankings(path) == rankings


@pytest.mark.parametrize("how", [None, "commas", "all in quotes", "texts in quotes", "R"])
def test_tables_of_the_first_version(tmp_path, how):
    text = SAVED[how](OLD) if how else OLD
    assert read_table(write(tmp_path, text, "old.csv")) == RANKINGS


def test_a_table_in_windows_1252(tmp_path):
    path = write(tmp_path, saved(OLD).encode("windows-1252"), "table.csv")
    with pytest.raises(RankingsError, match=r"table.csv:5: .* UTF-8.*: maté' with encoding='wind"):
        read_survey(path)
    assert read_survey(path, encoding="windows-1252").rankings == RANKINGS
    assert read_table(path, "cp1252") == RANKINGS


def test_all_lines_with_names_and_commas(tmp_path):
    """Names with a comma, in as many cells as the columns, are not taken for padded ones."""
    text = "# item A: Able, Ann\n# item B: Best, Bob\ncount,ordering\n1,A>B\n"
    assert read_table(write(tmp_path, text, "x.csv")).items == ("Able, Ann", "Best, Bob")


BAD = {
    "a comma at the end": ("# item A: Ann,\n# item B: Bob\n", "count,ordering\n", 1, "ends with"),
    "split at semicolons": ("# item A: Ann;Jr\n# item B: Bob\n", "count;ordering\n", 1, "contains"),
    "quotes in a part": (
        '# item A: Ann,"Jr"\n# item B: Bob\n',
        "count,ordering\n",
        1,
        "has quotes",
    ),
    "open quotes": ('"# item A: Ann\n# item B: Bob\n', "count,ordering\n", 3, "at least 2 items"),
    "open quotes in a row": (
        "# item A: Ann\n# item B: Bob\n",
        'count,ordering\n1,"A\n',
        4,
        "the quotes are wrong",
    ),
    "three cells": ("# item A: Ann\n# item B: Bob\n", "count,ordering,\n1,A,B\n", 4, "2 columns"),
}


@pytest.mark.parametrize("name", BAD)
def test_names_that_can_be_read_in_two_ways(tmp_path, monkeypatch, name):
    items, table, line, part = BAD[name]
    monkeypatch.chdir(tmp_path)
    write(tmp_path, items + table + "1,A>B\n".replace(",", table[5]), "bad.csv")
    with refusal(part, start=f"bad.csv:{line}: "):
        read_rankings("bad.csv")


def test_names_that_no_line_can_hold(tmp_path):
    for name in ("a\0b", "a\nb"):
        with pytest.raises(RankingsError, match=r"the item name|no text file can contain"):
            write_table(Rankings.from_orderings([[0]], items=[name, "c"]), tmp_path / "x.csv")
    assert not list(tmp_path.iterdir())


def test_ties(tmp_path):
    text = "# item A: Ann\n# item B: Bob\n# item C: Cid\ncount,ordering\n3,B>A = C\n1,C=A\n2,B\n"
    path = write(tmp_path, text, "x.csv")
    expected = PartialOrders.from_buckets(
        [[1, [0, 2]], [[0, 2]], [1]], items=["Ann", "Bob", "Cid"], counts=[3, 1, 2]
    )
    assert read_table(path) == read_rankings(path) == expected
    assert read_survey(path).notes == [
        "4 judges tie items, which counts as no opinion between them"
    ]
    offered = text.replace("ordering", "ordering,offered").replace("= C", "= C,A B C")
    path = write(tmp_path, offered.replace("C=A", "C=A,A C").replace("2,B", "2,B,A B"), "x.csv")
    assert read_table(path).choice_sets.tolist() == [
        [True, True, True], [True, False, True], [True, True, False]
    ]  # fmt: skip
    with refusal("x.csv:5: item 'Cid' is listed twice"):
        read_table(write(tmp_path, text.replace("B>A = C", "B>C = C"), "x.csv"))
