"""PrefLib files, checked against preflibtools, and every message for a file that is not one."""

import warnings

import numpy as np
import pytest
from helpers.readers import joined, refusal, write
from preflibtools.instances import OrdinalInstance

from numpyro_rankings.rankings import Rankings, RankingsError
from numpyro_rankings.readers import read_survey, write_survey, write_table
from numpyro_rankings.readers import text as text_files
from numpyro_rankings.readers.preflib import read_preflib, write_preflib

SOI = """\
# FILE NAME: small.soi
# TITLE: A small election: part 1
# DESCRIPTION:
# DATA TYPE: soi
# MODIFICATION TYPE: original
# NUMBER ALTERNATIVES: 4
# NUMBER VOTERS: 25
# NUMBER UNIQUE ORDERS: 4
# ALTERNATIVE NAME 1: Ann: the first
# ALTERNATIVE NAME 2: Bob
# ALTERNATIVE NAME 3: Cid, Jr
# ALTERNATIVE NAME 4: Dée
14: 1,2,3,4
6: 4
4: 2, 1 ,3
1:3,4
"""
SOC = SOI.replace("soi", "soc").replace("6: 4\n", "6: 4,3,2,1\n")
SOC = SOC.replace("4: 2, 1 ,3\n", "4: 2,1,3,4\n").replace("1:3,4\n", "1: 3,4,1,2\n")
NAMES = ("Ann: the first", "Bob", "Cid, Jr", "Dée")


def assert_agrees_with_preflibtools(path, rankings):
    other = OrdinalInstance(str(path))
    assert other.num_alternatives == rankings.num_items
    assert other.num_voters == len(rankings)
    assert other.num_unique_orders == rankings.num_rows
    assert tuple(other.alternatives_name.values()) == rankings.items
    ours = [tuple((i + 1,) for i in row if i >= 0) for row in rankings.orderings.tolist()]
    assert ours == other.orders
    assert rankings.counts.tolist() == [other.multiplicity[order] for order in other.orders]
    return other


def random_rankings(seed, num_items=7, width=7):
    rng = np.random.default_rng(seed)
    orderings = np.argsort(rng.random((300, num_items)))[:, :width]
    lengths = rng.integers(1, width + 1, 300)
    orderings = np.where(np.arange(width) < lengths[:, None], orderings, -1)
    names = [f"Größe {i}, “{i}”: #{i}" for i in range(num_items, 0, -1)]
    return Rankings.from_orderings(orderings, items=names, counts=rng.integers(1, 9, 300))


def test_read_soi(tmp_path):
    path = write(tmp_path, SOI, "small.soi")
    r = Rankings.from_preflib(path)
    assert r == read_preflib(str(path))
    assert r.items == NAMES
    assert r.orderings.tolist() == [[0, 1, 2, 3], [3, -1, -1, -1], [1, 0, 2, -1], [2, 3, -1, -1]]
    assert r.counts.tolist() == [14, 6, 4, 1]
    assert_agrees_with_preflibtools(path, r)


def test_read_soc(tmp_path):
    r = read_preflib(write(tmp_path, SOC, "small.soc"))
    assert r.lengths.tolist() == [4] * 4
    assert_agrees_with_preflibtools(tmp_path / "small.soc", r)


@pytest.mark.parametrize(
    "text",
    [
        SOI.replace("\n", "\r\n"),
        SOI.replace("\n", "\r"),
        "\ufeff" + SOI,
        SOI.replace("14:", "\n\n14 :") + "\n \n",
        SOI.replace("14: 1,2,3,4\n", "4: 1,2,3,4\n10: 1,2,3,4\n"),
        SOI.replace("# DATA TYPE: soi\n", "# A remark\n# Edited: yes\n"),
        SOI.rstrip(),
    ],
    ids=["windows", "old mac", "mark", "blanks", "repeated order", "no type", "no end"],
)
def test_the_same_file_in_other_clothes(tmp_path, text):
    assert read_preflib(write(tmp_path, text, "x.soi")) == read_preflib(
        write(tmp_path, SOI, "other.soi")
    )


HEADER = """# DATA TYPE: soi
# NUMBER ALTERNATIVES: 2
# NUMBER VOTERS: 15
# NUMBER UNIQUE ORDERS: 2
# ALTERNATIVE NAME 1: Ann
# ALTERNATIVE NAME 2: Bob
"""
TWICE = {
    "x.soi": f"{HEADER}2: 1,2\n1: 2\n12: 1,2\n",
    "x.toi": f"{HEADER.replace('soi', 'toi')}2: 1,2\n1: 2\n12: 1,2\n",
    "own.csv": "# item a: Ann\n# item b: Bob\ncount,ordering\n2,a>b\n1,b\n12,a>b\n",
    "votes.csv": "Choice 1,Choice 2,n\nAnn,Bob,2\nBob,,1\nAnn,Bob,12\n",
    "x.blt": '2 1\n2 1 2 0\n1 2 0\n12 1 2 0\n0\n"Ann"\n"Bob"\n"A title"\n',
}


@pytest.mark.parametrize("name", TWICE)
def test_an_order_on_two_lines_has_its_rankings_where_they_are_in_the_file(tmp_path, name):
    options = {"count": "n"} if name == "votes.csv" else {}
    survey = read_survey(write(tmp_path, TWICE[name], name), **options)
    assert joined(survey) == ["Ann Bob"] * 2 + ["Bob"] + ["Ann Bob"] * 12


@pytest.mark.parametrize(("name", "width"), [("r.soi", 7), ("r.SOI", 3), ("r.soc", 7)])
def test_round_trip(tmp_path, name, width):
    r = random_rankings(0, width=width)
    if name == "r.soc":
        r = Rankings.from_ranks(np.argsort(np.random.default_rng(1).random((300, 4))) + 1)
    path = tmp_path / name
    write_preflib(r, path, title="Two\nlines:  of title")
    assert read_preflib(path) == r.unique()
    assert r.unique().num_rows < r.num_rows
    write_preflib(read_preflib(path), tmp_path / f"again{path.suffix}")
    assert read_preflib(tmp_path / f"again{path.suffix}") == r.unique()
    if name != "r.SOI":
        other = assert_agrees_with_preflibtools(path, r.unique())
        assert other.title == "Two lines: of title"
        assert other.infer_type() == path.suffix[1:]


def test_read_what_preflibtools_writes(tmp_path):
    r = random_rankings(2)
    write_preflib(r, tmp_path / "one.soi")
    OrdinalInstance(str(tmp_path / "one.soi")).write(str(tmp_path / "two.soi"))
    two = read_preflib(tmp_path / "two.soi")
    assert_agrees_with_preflibtools(tmp_path / "two.soi", two)
    count = dict(zip(map(tuple, two.orderings.tolist()), two.counts.tolist(), strict=True))
    merged = r.unique()
    assert count == dict(
        zip(map(tuple, merged.orderings.tolist()), merged.counts.tolist(), strict=True)
    )


def test_unwritable(tmp_path):
    r = random_rankings(3)
    for name in ("r.toc", "r.csv", "r"):
        with pytest.raises(RankingsError, match=rf"{name}: .*\.soc or \.soi"):
            write_preflib(r, tmp_path / name)
    with pytest.raises(RankingsError, match=r"row \d+ does not list all 7 items"):
        write_preflib(r, tmp_path / "r.soc")
    chosen = Rankings.from_orderings([[0]], 2, choice_sets=[[True, True]])
    with pytest.raises(RankingsError, match="choice sets"):
        write_preflib(chosen, tmp_path / "r.soi")
    with pytest.raises(RankingsError, match="item name"):
        write_preflib(Rankings.from_orderings([[0]], items=["a\nb", "b"]), tmp_path / "r.soi")
    for item in ("a\0b", "a\ud800"):  # with NUL, or half a character
        named = Rankings.from_orderings([[0]], items=[item, "b"])
        with pytest.raises(RankingsError, match="no text file can contain"):
            write_preflib(named, tmp_path / "r.soi")
        with pytest.raises(RankingsError, match="no text file can contain"):
            write_table(named, tmp_path / "r.csv")
        for layout in ("ranks", "orders", "long"):
            with pytest.raises(RankingsError, match="no text file can contain"):
                write_survey(named, tmp_path / "r.csv", layout)
    with pytest.raises(RankingsError, match="no text file can contain"):
        write_preflib(r, tmp_path / "r.soi", title="a\0b")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "file_name"), [("00014-00000001.soc", "x.soc"), ("sushi.soc", "00014-00000001.soc")]
)
def test_the_sushi_file_warns(tmp_path, name, file_name):
    path = write(tmp_path, SOC.replace("small.soc", file_name), name)
    with pytest.warns(UserWarning, match=r"shifted by one.*item k really is.*named k\+1") as record:
        assert read_preflib(path).items == NAMES
    assert len(record) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_preflib(write(tmp_path, SOC, "other.soc"))


def edit(old, new, text=SOI):
    assert old in text
    return text.replace(old, new)


# what to read: the line that the message names, and fragments of the message
BAD = {
    "empty": ("", 1, ["empty"]),
    "blank": (" \n\n", 1, ["empty"]),
    "binary": (b"\x89PNG\r\n\x1a\n\0\0\0", 1, ["not a text file"]),
    "zero byte": (SOI.encode() + b"\0", 17, ["not a text file"]),
    "latin-1": (SOI.encode("latin-1"), 12, ["not a text file", "UTF-8"]),
    "old format": ("3\n1,Ann\n2,Bob\n3,Cid\n2,2,1\n2,1,2,3\n", 1, ["old format", "'#'"]),
    "a table": ("count,ordering\n1,A\n", 1, ["# NUMBER ALTERNATIVES"]),
    "no orders": (SOI[: SOI.index("14:")], 12, ["no rankings"]),
    "no alternatives": (edit("# NUMBER ALTERNATIVES: 4\n", ""), 15, ["NUMBER ALTERNATIVES"]),
    "no voters": (edit("# NUMBER VOTERS: 25\n", ""), 15, ["NUMBER VOTERS"]),
    "no unique": (edit("# NUMBER UNIQUE ORDERS: 4\n", ""), 15, ["NUMBER UNIQUE ORDERS"]),
    "voters": (edit("VOTERS: 25", "VOTERS: 26"), 7, ["26", "sum to 25"]),
    "unique": (edit("ORDERS: 4", "ORDERS: 5"), 8, ["5", "4 distinct orders"]),
    "alternatives": (edit("ALTERNATIVES: 4", "ALTERNATIVES: 3"), 12, ["item 4", "is 3"]),
    "more alternatives": (edit("TIVES: 4", "TIVES: 5"), 6, ["is 5", "ALTERNATIVE NAME 5"]),
    "number in words": (edit("VOTERS: 25", "VOTERS: many"), 7, ["NUMBER VOTERS", "'many'"]),
    "fraction of voters": (edit("VOTERS: 25", "VOTERS: 25.0"), 7, ["whole number", "'25.0'"]),
    "header twice": (edit("# TITLE", "# NUMBER VOTERS: 25\n# TITLE"), 8, ["already, on line 2"]),
    "no name": (edit("# ALTERNATIVE NAME 2: Bob\n", ""), 6, ["ALTERNATIVE NAME 2"]),
    "name twice": (edit("NAME 3: C", "NAME 2: C"), 11, ["item 2", "already, on line 10"]),
    "same names": (edit("Cid, Jr", "Bob"), 11, ["items 2 and 3", "'Bob'"]),
    "empty name": (edit("NAME 2: Bob", "NAME 2:"), 10, ["item 2", "empty"]),
    "name of 0": (edit("NAME 2: Bob", "NAME 0: Bob"), 10, ["from 1"]),
    "one item": (
        "# NUMBER ALTERNATIVES: 1\n# NUMBER VOTERS: 3\n# NUMBER UNIQUE ORDERS: 1\n"
        "# ALTERNATIVE NAME 1: Ann\n3: 1\n",
        1,
        ["at least 2 items", "got 1"],
    ),
    "duplicate": (edit("2, 1 ,3", "2,1,2"), 15, ["item 2", "'Bob'", "twice"]),
    "outside": (edit("2, 1 ,3", "2,1,7"), 15, ["item 7", "1..4"]),
    "item 0": (edit("2, 1 ,3", "2,0"), 15, ["item 0", "1..4"]),
    "negative item": (edit("2, 1 ,3", "2,-1"), 15, ["item '-1'", "place 2"]),
    "item name": (edit("2, 1 ,3", "2,Bob"), 15, ["item 'Bob'", "place 2"]),
    "nan": (edit("2, 1 ,3", "nan"), 15, ["item 'nan'"]),
    "stray comma": (edit("2, 1 ,3", "2,1,"), 15, ["item ''", "place 3"]),
    "huge item": (edit("2, 1 ,3", "1" * 5000), 15, ["item '111", "…"]),
    "empty ranking": (edit("2, 1 ,3", ""), 15, ["empty ranking"]),
    "tie": (edit("2, 1 ,3", "2,{1,3}"), 15, ["tie", "'2,{1,3}'", "not supported", ".toi"]),
    "negative count": (edit("4: 2, 1", "-4: 2, 1"), 15, ["count '-4'", "positive"]),
    "fractional count": (
        edit("4: 2, 1", "4.5: 2, 1"),
        15,
        ["count '4.5'", "whole", "weights are not counts"],
    ),
    "no count": (edit("4: 2, 1", ": 2, 1"), 15, ["count ''"]),
    "count 0": (edit("4: 2, 1", "0: 2, 1"), 15, ["count 0"]),
    "count nan": (edit("4: 2, 1", "nan: 2, 1"), 15, ["count 'nan'"]),
    "too many": (
        edit("6: 4", f"{2**31}: 4").replace("VOTERS: 25", f"VOTERS: {2**31 + 19}"),
        14,
        ["2147483648", "more than 2147483647"],
    ),
    "no colon": (edit("4: 2, 1 ,3", "4,2,1,3"), 15, ["count: item,item", "'4,2,1,3'"]),
    "two colons": (edit("4: 2, 1 ,3", "4: 2: 1"), 15, ["'2: 1'"]),
    "soc header": (edit("TYPE: soi", "TYPE: soc"), 4, ["soc", ".soi"]),
    "ties by header": (edit("TYPE: soi", "TYPE: toi"), 4, ["toi", ".soi"]),
    "categories": (edit("TYPE: soi", "TYPE: cat"), 4, ["cat", ".soi"]),
    "no type": (edit("TYPE: soi", "TYPE: election"), 4, ["'election'", "soc, soi, toc"]),
}


@pytest.mark.parametrize("name", list(BAD))
def test_bad_files(tmp_path, monkeypatch, name):
    text, line, fragments = BAD[name]
    monkeypatch.chdir(tmp_path)
    write(tmp_path, text, "bad.soi")
    with refusal(*fragments, start=f"bad.soi:{line}: ", below=250):
        read_preflib("bad.soi")


def test_bad_by_extension(tmp_path):
    with pytest.raises(RankingsError, match=r"bad.soc:15: item 4 \('Dée'\) is missing"):
        read_preflib(write(tmp_path, SOC.replace("2,1,3,4", "2,1,3"), "bad.soc"))
    text = SOI.replace("# DATA TYPE: soi\n", "")
    with pytest.raises(RankingsError, match=r"bad.toc:13: item 1 .* is missing; .* a .toc file"):
        read_preflib(write(tmp_path, text, "bad.toc"))
    for extension in ("cat", "wmd"):
        with pytest.raises(RankingsError, match=rf"bad.{extension}:1: a .{extension} file holds"):
            read_preflib(write(tmp_path, text, f"bad.{extension}"))
    # no telling extension: what the header says
    assert read_preflib(write(tmp_path, SOI, "small.txt")).items == NAMES
    with pytest.raises(RankingsError, match=r"small.txt:14: item 1 .*is missing"):
        read_preflib(write(tmp_path, SOI.replace("TYPE: soi", "TYPE: soc"), "small.txt"))


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    with pytest.raises(RankingsError, match=r"nothing.soi: no such file"):
        read_preflib(tmp_path / "nothing.soi")
    with pytest.raises(RankingsError, match="is a folder"):
        read_preflib(tmp_path)

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(text_files.Path, "read_bytes", refuse)
    with pytest.raises(RankingsError, match=r"x.soi: cannot be read: Permission denied"):
        read_preflib("x.soi")
