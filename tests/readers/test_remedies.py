"""Tables that are read although their form is unusual, and remedies that messages name."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from helpers.readers import by_name, joined, read_with_answers, refusal, write, write_rows

from numpyro_rankings.rankings import Rankings, RankingsError
from numpyro_rankings.readers import read_survey


def orders_of(survey):
    """Return the list of each ranking as one text, in the order of the file."""
    return list(map("".join, by_name(survey)))


def read(tmp_path, text, layout=None, suffix=".csv", **options):
    return read_survey(write(tmp_path, text, f"table{suffix}"), layout, **options)


@pytest.mark.parametrize(
    "cells",
    [
        ["[a, b, c]", "[c, a, b]"],
        ["{a > b > c}", "{c > a > b}"],
        ["(a; b; c)", "(c; a; b)"],
        ['c("a", "b", "c")', 'c("c", "a", "b")'],
        ["<a, b, c>", "<c, a, b>"],
        ["[1. a; 2. b; 3. c]", "[1. c; 2. a; 3. b]"],
    ],
)
def test_lists_in_brackets(cells):
    survey = read_survey(pd.DataFrame({"list": cells}), "cell")
    assert orders_of(survey) == ["abc", "cab"]
    assert "the brackets around the lists were taken off" in survey.notes[0]


def test_lists_in_brackets_of_any_length(tmp_path):
    text = 'id,list\n1,"[a, b]"\n2,[c]\n3,[]\n4,"[c, a]"\n'
    survey = read(tmp_path, text, columns="list", items=["a", "b", "c"])
    assert orders_of(survey) == ["ab", "c", "ca"]


@pytest.mark.parametrize("form", ["{}", "[{}]", "1. {}"])
def test_words_within_lists_are_counted(form):
    cells = [["a", "N/A", "b"], ["b", "n/a"], ["N/A"], ["c", "a", "b"], ["N/A", "99"]]
    if form == "1. {}":
        texts = ["; ".join(f"{k}. {x}" for k, x in enumerate(cell, 1)) for cell in cells]
    else:
        texts = [form.format("; ".join(cell)) for cell in cells]
    survey = read_survey(pd.DataFrame({"list": texts}), "cell", missing="N/A,99", gaps="close")
    assert orders_of(survey) == ["ab", "b", "cab"]
    assert "read as not ranked: 'N/A' in 4 places, '99' in 1 place" in survey.notes


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


@pytest.mark.parametrize(
    "text, options",
    [
        ("order\na>b>c\nc>a>b\n", {}),
        ('order\n"a, b, c"\n"c, a, b"\n', {}),
        ("My order\na b c\nc a b\n", {"separator": "space"}),
        ("order\na;b;c\nc;a;b\n", {"layout": "cell"}),
        ("order\na, b, c\nc, a, b\n", {"layout": "cell"}),
        ("order\n1. a 2. b 3. c\n1. c 2. a 3. b\n", {}),
    ],
)
def test_one_column(tmp_path, text, options):
    assert orders_of(read(tmp_path, text, **options)) == ["abc", "cab"]


RANKS_BELOW = {
    "commas": "who,a,b,c\nx,1,2,3\ny,2,3,1\n",
    "semicolons": "who;a;b;c\nx;1;2;3\ny;2;3;1\n",
    "blanks": "who a b c\nx 1 2 3\ny 2 3 1\n",
    "aligned": "who   a   b   c\n  x   1   2   3\n  y   2   3   1\n",
    "as R writes it": '"who" "a" "b" "c"\n"x" 1 2 3\n"y" 2 3 1\n',
}


@pytest.mark.parametrize("title", ["", "Drinks of 2023\n", "Drinks\nby me\n\n", '"Drinks, 2023"\n'])
@pytest.mark.parametrize("kind", RANKS_BELOW)
def test_titles_and_blanks(tmp_path, title, kind):
    text = title + RANKS_BELOW[kind]
    if title and ";" not in text and text.count(",") < 3:  # blanks and a title are too little
        with pytest.raises(RankingsError, match="title"):
            read(tmp_path, text, "ranks", judge="who")
        return
    survey = read(tmp_path, text, "ranks", judge="who")
    assert (survey.judges, orders_of(survey)) == (["x", "y"], ["abc", "cab"])
    assert len(survey.notes) == bool(title) + (kind not in ("commas", "semicolons"))
    assert not title or "left out above the names of the columns: 'Drinks" in survey.notes[0]
    assert survey.rows.tolist() == [2 + title.count("\n"), 3 + title.count("\n")]


PADDED = {
    "ranks": ("who,a,b,c\nx,1,2,3\ny,2,3,1\n", {"layout": "ranks", "judge": "who"}),
    "orders": ("who,1st,2nd,3rd\nx,a,b,c\ny,c,a,b\n", {"judge": "who"}),
    "cell": ("who,list\nx,a;b;c\ny,c;a;b\n", {"layout": "cell", "judge": "who"}),
    "long": ("judge,item,rank\nx,a,1\nx,b,2\nx,c,3\ny,a,2\ny,b,3\ny,c,1\n", {}),
    "votes": (
        "who,1st choice,2nd choice,3rd choice\nx,a,b,c\ny,c,a,b\n",
        {"layout": "votes", "judge": "who"},
    ),
}


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize("title", [["Drinks of 2023"], ["Drinks", "by me"]])
@pytest.mark.parametrize("kind", PADDED)
def test_titles_that_are_as_wide_as_the_table(tmp_path, kind, title, suffix):
    text, options = PADDED[kind]
    commas = "," * text.partition("\n")[0].count(",")
    lines = [*(x + commas for x in title), commas, *text.splitlines()]
    path = tmp_path / f"table{suffix}"
    if suffix == ".csv":
        path.write_text("\n".join(lines))
    else:
        cells = [line.split(",") for line in lines]
        pd.DataFrame(cells).replace("", None).to_excel(path, index=False, header=False)
    survey = read_survey(path, **options)
    plain = read_survey(write(tmp_path, text, "plain.csv"), **options)
    assert (survey.judges, orders_of(survey)) == (plain.judges, orders_of(plain))
    shown = ", ".join(map(repr, title))
    assert f"left out above the names of the columns: {shown}" in survey.notes
    assert survey.rows.tolist() == [x + len(title) + 1 for x in plain.rows.tolist()]


def test_titles_that_say_what_numbers_mean(tmp_path):
    text = "Drinks (5 = best),,,\nwho,a,b,c\nx,1,2,3\ny,2,3,1\n"
    with pytest.raises(RankingsError, match="The question has '5 = best'"):
        read(tmp_path, text, "ranks", judge="who")
    survey = read(tmp_path, text, "ranks", judge="who", highest_first=True)
    assert orders_of(survey) == ["cba", "bac"]


@pytest.mark.parametrize(
    "text, layout",
    [
        ("order\na;b;c\nc;a;b\n", None),  # a title above names, or a name above lists
        ("Drinks\n1,2,3\n2,1,3\n", "ranks"),  # no names at all
        ("First choice\nAnn Able\nBob Best\n", "orders"),  # one column of names with a blank
        ("1\n2\n", "ranks"),
    ],
)
def test_forms_that_are_asked_about(tmp_path, text, layout):
    with pytest.raises(RankingsError, match=r"table.csv:1: expected the names.*cell"):
        read(tmp_path, text, layout)


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize("form", [",{}", ",,{},,", "{},"])
def test_empty_columns_at_either_end(tmp_path, form, suffix):
    text = "".join(form.format(x) + "\n" for x in ("who,a,b,c", "x,1,2,3", "y,2,3,1"))
    path = tmp_path / "table.xlsx"
    if suffix == ".xlsx":
        rows = [line.split(",") for line in text.splitlines()]
        pd.DataFrame(rows).replace("", None).to_excel(path, index=False, header=False)
    else:
        path = write(tmp_path, text, "table.csv")
    survey = read_survey(path, "ranks", judge="who")
    assert (survey.judges, orders_of(survey)) == (["x", "y"], ["abc", "cab"])


RACES = "id,ward,{},{},{}\nb1,,1,2,3\nb2,,2,1,\nb3,,,,\n"


@pytest.mark.parametrize(
    "mark, is_picked",
    [("?!!", False), ("?!!", True), ("::", True), (" => ", True), ("|", True), (" // ", True)],
)
def test_what_all_headers_share(tmp_path, mark, is_picked):
    text = RACES.format(*(f"Best Fruit{mark}{name}" for name in ("Kiwi", "Plum", "Fig")))
    picked = {"columns": "Best*"} if is_picked else {"about": "ward"}
    survey = read(tmp_path, text, "ranks", judge="id", **picked)
    assert survey.rankings.items == ("Kiwi", "Plum", "Fig")
    assert orders_of(survey) == ["KiwiPlumFig", "PlumKiwi"]


def test_races_are_not_mixed(tmp_path):
    text = "A!!Ann,A!!Bob,B!!Ann,B!!Bob\n1,2,2,1\n"
    with pytest.raises(RankingsError, match=r"of 2 races, such as 'A' and 'B'.*columns='A\*'"):
        read(tmp_path, text, "ranks")
    assert orders_of(read(tmp_path, text, "ranks", columns="B*")) == ["BobAnn"]


MARKS_OF_RACES = ["{} - {}", "{} – {}", "{}: {}", "{}_{}", "{} | {}", "{} / {}", "{}.{}", "{} [{}]",
                  "{}::{}", "{} ({})"]  # fmt: skip
OF_RACES = [
    ("Mayor", "Ann"),
    ("Clerk", "Dan"),
    ("Mayor", "Bob"),
    ("Clerk", "Eve"),
    ("Clerk", "Flo"),
]
RANKS_OF_RACES = "1,1,2,2,3\n2,3,1,1,2\n1,1,2,,2\n,1,,3,2\n"


@pytest.mark.parametrize("mark", MARKS_OF_RACES)
def test_races_of_any_mark_are_not_mixed(tmp_path, mark):
    text = ",".join(mark.format(*x) for x in OF_RACES) + "\n" + RANKS_OF_RACES
    path = write(tmp_path, text, "table.csv")
    for layout in (None, "ranks"):
        said, survey = read_with_answers(path, layout=layout)
        assert said["columns"] == mark.format("Mayor", "*").rstrip("]) ")
        assert orders_of(survey) == ["AnnBob", "BobAnn", "AnnBob"]
    picked = {"columns": mark.format("Clerk", "*").rstrip("])")}
    assert orders_of(read(tmp_path, text, "ranks", **picked)) == [
        "DanEveFlo", "EveFloDan", "DanFlo", "DanFloEve"
    ]  # fmt: skip
    with pytest.raises(RankingsError, match="of 2 races, such as 'Mayor' and 'Clerk', in each"):
        read(tmp_path, text, "ranks", columns="*")
    assert read(tmp_path, text, "ranks", ties="exact").rankings.num_items == 5


@pytest.mark.parametrize("mark", [" - ", ": ", "_", "."])
def test_names_in_two_parts_are_no_races(tmp_path, mark):
    names = [f"{x}{mark}{y}" for x in ("Smith", "Lee") for y in ("Jones", "Brown")]
    lists = "1,2,3,4\n2,1,,\n1,3,2,\n4,3,1,2\n"
    survey = read(tmp_path, ",".join(names) + "\n" + lists, "ranks")
    assert survey.rankings.items == tuple(names) and len(survey.rankings) == 4
    tied = read(tmp_path, ",".join(names) + "\n1,2,2,4\n1,1,3,4\n3,1,1,4\n", "ranks")
    assert tied.rankings.items == tuple(names)


def test_marks_of_two_races(tmp_path):
    names = [f"{race} - {x} {k}" for race, x in OF_RACES[:4] for k in (1, 2)]
    text = ",".join(names) + "\n1,0,0,1,0,1,1,0\n0,1,1,0,1,0,0,1\n1,0,0,0,0,1,0,0\n"
    said, survey = read_with_answers(write(tmp_path, text, "table.csv"), layout="marks")
    assert said == {"columns": "Mayor - *"}
    assert [x.replace("Mayor - ", "") for x in orders_of(survey)] == ["AnnBob", "BobAnn", "AnnBob"]


def test_two_questions_are_no_list(tmp_path):
    text = "A 1st choice,A 2nd choice,B 1st choice,B 2nd choice\na,b,c,d\nb,a,d,c\n"
    with pytest.raises(RankingsError, match=r"several columns are place 1, such as 'B 1st choice'"):
        read(tmp_path, text, "orders")
    assert orders_of(read(tmp_path, text, "orders", columns="B*")) == ["cd", "dc"]


def test_places_of_a_race(tmp_path):
    text = "id,A!!2nd choice,A!!1st choice\n1,b,a\n2,a,b\n"
    survey = read(tmp_path, text, judge="id")
    assert (survey.layout, orders_of(survey)) == ("orders", ["ab", "ba"])


@pytest.mark.parametrize("mark", ["|", "=", "/", ", "])
def test_several_names_at_a_place(tmp_path, mark):
    for text, layout in (
        (f'1st;2nd\na;b\nb;a\n"a{mark}b";c\n', "orders"),
        (f"list\na;b\nb;a\na{mark}b;c\n", "cell"),
    ):
        options = {"layout": layout} | ({"separator": ";"} if layout == "cell" else {})
        tied = read(tmp_path, text, **options).rankings
        assert tied.levels_of_items()[2].tolist() == [0, 0, 1]
        items = ["a", "b", "c", f"a{mark}b"]
        assert orders_of(read(tmp_path, text, items=items, **options))[2] == f"a{mark}bc"


def test_ranks_in_parentheses(tmp_path):
    with pytest.raises(RankingsError, match=r"'a\(1\)' seems to be an item and its rank"):
        read(tmp_path, "list\na(1)>b(2)\nb(1)>a(2)\n", "cell")


def test_places_with_the_same_items_are_no_ticks(tmp_path):
    text = "1st,2nd,3rd,4th\na,,c,d\na,b,c,d\n"
    with pytest.raises(RankingsError, match="gaps='fill' puts it at the gap"):
        read(tmp_path, text)
    assert orders_of(read(tmp_path, text, gaps="fill")) == ["abcd", "abcd"]


@pytest.mark.parametrize("layout", ["votes", "marks"])
def test_races_of_ballots(tmp_path, layout):
    rows = {"votes": ("1,2", "b,a", "a,"), "marks": ("a 1,a 2,b 1,b 2", "0,1,1,0", "1,0,0,0")}
    heads, *below = rows[layout]
    one, other = (",".join(f"{race}!!{x}" for x in heads.split(",")) for race in "AB")
    text = "\n".join([one, *below])
    assert orders_of(read(tmp_path, text, layout)) == ["ba", "a"]
    text = "\n".join([f"{one},{other}", *(f"{x},{x}" for x in below)])
    with pytest.raises(RankingsError, match="of 2 races, such as 'A' and 'B'"):
        read(tmp_path, text, layout)
    assert orders_of(read(tmp_path, text, layout, columns="B*")) == ["ba", "a"]


@pytest.mark.parametrize(
    "names",
    [
        ("1st choice", "2nd choice", "3rd choice"),
        ("First choice", "Second choice", "Third choice"),
        ("First", "Second", "Third"),
        ("1. Wahl", "2. Wahl", "3. Wahl"),
        ("Preference 1", "Preference 2", "Preference 3"),
    ],
)
def test_choices_are_places(tmp_path, names):
    text = f"id,{names[2]},{names[0]},{names[1]}\nx,c,a,b\ny,b,c,a\n"
    assert orders_of(read(tmp_path, text, judge="id")) == ["abc", "cab"]


@pytest.mark.parametrize(
    "layout, is_picked", [("orders", False), ("orders", True), ("votes", True)]
)
@pytest.mark.parametrize("name", ["Q1_{}", "top{}", "Q7.{}_TEXT", "A{}"])
def test_places_by_the_last_number(tmp_path, layout, is_picked, name):
    names = ",".join(name.format(k) for k in (1, 10, 2, 3))
    picked = {"columns": name.format("*")} if is_picked else {}
    survey = read(tmp_path, f"{names}\na,d,b,c\nb,c,a,d\n", layout, **picked)
    assert orders_of(survey) == ["abcd", "badc"]


@pytest.mark.parametrize("names", ["1,2", "#1,#2", "No. 1,No. 2", "1.,2."])
def test_numbers_may_be_items(tmp_path, names):
    with pytest.raises(RankingsError, match="the layout is needed"):
        read(tmp_path, f"{names}\n1,2\n2,1\n", header_rows=1)


# ---------------------------------------------------------------------------------------------
# Ties
# ---------------------------------------------------------------------------------------------

FEW = """\
# NUMBER ALTERNATIVES: 3
# NUMBER VOTERS: 12
# NUMBER UNIQUE ORDERS: 4
# ALTERNATIVE NAME 1: a
# ALTERNATIVE NAME 2: b
# ALTERNATIVE NAME 3: c
6: 1,2,3
3: 2,3
2: 3,{1,2}
1: {1,3},2
"""


@pytest.mark.parametrize(
    "overvote, expected",
    [
        ("stop", {"abc": 6, "bc": 3, "c": 2}),
        ("skip", {"abc": 6, "bc": 3, "c": 2, "b": 1}),
    ],
)
def test_ties_of_preflib_files(tmp_path, overvote, expected):
    survey = read(tmp_path, FEW, suffix=".toi", overvote=overvote)
    assert Counter(orders_of(survey)) == expected
    assert (survey.ballots.cast, survey.ballots.overvoted) == (12, 3)
    assert survey.ballots.emptied == (overvote == "stop")
    assert survey.rows.tolist() == [7] * 6 + [8] * 3 + [9] * 2 + [10] * (overvote == "skip")
    complete = FEW.replace("3: 2,3", "3: 2,{1,3}")
    survey = read(tmp_path, complete, suffix=".toc", overvote=overvote)
    assert Counter(orders_of(survey)) == {"b": 3 + (overvote == "skip"), "abc": 6, "c": 2}


def test_rules_on_preflib_files_without_ties(tmp_path):
    text = FEW.replace("3,{1,2}", "3,1,2").replace("{1,3},2", "1,3,2")
    for suffix in (".toi", ".soi"):
        survey = read(tmp_path, text, suffix=suffix, overvote="stop", max_ranks=2)
        assert Counter(orders_of(survey)) == {"ab": 6, "bc": 3, "ca": 2, "ac": 1}
    with pytest.raises(RankingsError, match="gaps does not go with a PrefLib file"):
        read(tmp_path, text, suffix=".soi", gaps="close")


TIED = "a,b,c,n\n1,2,3,40\n2,1,3,40\n3,2,1,40\n1,2,2,9\n1,,,\n"


def test_how_many_judges_have_ties(tmp_path):
    text = TIED.replace("1,,,\n", "")
    assert any(
        note.startswith("9 of 129 judges tie items, which is read as no opinion between these")
        for note in read(tmp_path, text, "ranks", count="n").notes
    )
    survey = read(tmp_path, text, "ranks", count="n", overvote="stop")
    assert Counter(orders_of(survey)) == {"abc": 40, "bac": 40, "cba": 40, "a": 9}
    remedy = "overvote='stop' ends a list before its first tie"
    with pytest.raises(
        RankingsError, match=f"as in ratings.*ties='exact' reads them, and {remedy}"
    ):
        read(tmp_path, "a,b,c\n2,3,3\n1,1,3\n1,2,3\n", "ranks")


def test_ties_in_ranks(tmp_path):
    ranks = [[1, 2, 2], [1, 2, 3], [1, 1, 2], [1, np.nan, np.nan]]
    with pytest.raises(RankingsError, match=r"2 rankings of 4 have ties.*overvote='stop'"):
        Rankings.from_ranks(ranks)
    table = pd.DataFrame(ranks, columns=["a", "b", "c"])
    assert Counter(orders_of(read_survey(table, "ranks", overvote="stop"))) == {"a": 2, "abc": 1}


# ---------------------------------------------------------------------------------------------
# Judges who answer twice
# ---------------------------------------------------------------------------------------------

TWICE = {  # x answers three times, once with nothing; y twice; z once
    "ranks": "id,a,b,c\nx,,,\nx,1,2,3\ny,3,2,1\nz,2,1,3\ny,1,3,2\nx,2,3,1\n",
    "orders": "id,1st,2nd,3rd\nx,,,\nx,a,b,c\ny,c,b,a\nz,b,a,c\ny,a,c,b\nx,c,a,b\n",
    "cell": "id,list\nx,\nx,a>b>c\ny,c>b>a\nz,b>a>c\ny,a>c>b\nx,c>a>b\n",
    "votes": "id,1st,2nd,3rd\nx,,,\nx,a,b,c\ny,c,b,a\nz,b,a,c\ny,a,c,b\nx,c,a,b\n",
    "long": "id,item,rank\nx,a,1\nx,b,2\nx,c,3\ny,c,1\nz,b,1\ny,b,2\nz,a,2\ny,a,3\nz,c,3\n"
    "y,a,1\ny,b,3\ny,c,2\nx,b,3\nx,c,1\nx,a,2\n",
}
READ_ONCE = {
    "first": {"x": "abc", "y": "cba", "z": "bac"},
    "last": {"x": "cab", "y": "acb", "z": "bac"},
    "drop": {"z": "bac"},
}


@pytest.mark.parametrize("layout", TWICE)
@pytest.mark.parametrize("duplicates", READ_ONCE)
def test_judges_who_answer_twice(tmp_path, layout, duplicates):
    columns = {"cell": {"columns": "list"}}.get(layout, {})
    with pytest.raises(RankingsError, match="duplicates='first' or duplicates='last'"):
        read(tmp_path, TWICE[layout], layout, judge="id", **columns)
    survey = read(tmp_path, TWICE[layout], layout, judge="id", duplicates=duplicates, **columns)
    assert dict(zip(survey.judges, orders_of(survey), strict=True)) == READ_ONCE[duplicates]
    (note,) = [x for x in survey.notes if "several answers" in x]
    rows = 4 if duplicates == "drop" else 2
    read_is = "none" if duplicates == "drop" else f"the {duplicates}"
    assert note.startswith(f"2 judges have several answers, of which {read_is} is read")
    assert f"{3 * rows if layout == 'long' else rows} rows left out: " in note


def test_answers_that_cannot_be_told_apart(tmp_path):
    text = "id,item,rank\nx,a,1\nx,b,2\nx,a,2\nx,c,1\ny,a,1\ny,b,2\n"
    with pytest.raises(RankingsError, match="'x' has several answers with different items"):
        read(tmp_path, text, "long", judge="id", duplicates="first")
    survey = read(tmp_path, text, "long", judge="id", duplicates="drop")
    assert (survey.judges, orders_of(survey)) == (["y"], ["ab"])


def test_who_answers_twice_is_needed(tmp_path):
    text = "id,a,b\nx,1,2\ny,2,1\n"
    with pytest.raises(RankingsError, match="duplicates goes with judge="):
        read(tmp_path, text, "ranks", about="id", duplicates="last")
    with pytest.raises(RankingsError, match="duplicates is 'first' or 'last' or 'drop', not 'all'"):
        read(tmp_path, text, "ranks", judge="id", duplicates="all")
    survey = read(tmp_path, text, "ranks", judge="id", duplicates="last")
    assert survey.notes == ["no judge has several answers: duplicates= changes nothing"]


@pytest.mark.parametrize("layout", ["ranks", "orders", "cell", "votes", "long"])
def test_the_top_of_lists(tmp_path, layout):
    columns = {"cell": {"columns": "list"}}.get(layout, {})
    options = {"judge": "id", "duplicates": "first", **columns}
    survey = read(tmp_path, TWICE[layout], layout, top=2, **options)
    tops = {who: order[:2] for who, order in READ_ONCE["first"].items()}
    assert dict(zip(survey.judges, orders_of(survey), strict=True)) == tops
    assert survey.notes[-1] == "top=2: 3 lists of 3 had more items"


def test_the_top_of_other_files(tmp_path):
    text = FEW.replace("3,{1,2}", "1,3,2").replace("{1,3},2", "1,2,3").replace("6: 1,2,3", "6: 3,1")
    survey = read(tmp_path, text, suffix=".soi", top=1)
    assert orders_of(survey) == [*"c" * 6, *"b" * 3, *"a" * 3]
    assert survey.rankings.num_rows == 3
    offered = "a,b,c,d\n1,2,3,\n2,1,,\n,1,,\n"
    rankings = read(tmp_path, offered, "ranks", unranked="not-offered", top=1).rankings
    assert rankings.unique().choice_sets.sum(1).tolist() == [3, 2, 1]
    assert read(tmp_path, offered, "ranks", top=4).notes[-1] == "top=4: 0 lists of 3 had more items"
    with pytest.raises(RankingsError, match="top is a whole number from 1, not 0"):
        read(tmp_path, offered, "ranks", top=0)


def test_the_top_of_orders_in_the_order_of_the_file(tmp_path):
    text = FEW.replace("3,{1,2}", "3,1").replace("{1,3},2", "1,2,3").replace("6: 1,2,3", "6: 3,1")
    text = text.replace("ORDERS: 4", "ORDERS: 3")
    survey = read(tmp_path, text, suffix=".soi", top=2)
    whole = read(tmp_path, text, suffix=".soi")
    assert orders_of(survey) == [order[:2] for order in orders_of(whole)]


# ---------------------------------------------------------------------------------------------
# Without a header
# ---------------------------------------------------------------------------------------------

# the text, the options, and the lists
NO_HEADER = {
    "one column": ("a > b > c\nb > a > c\n", {}, ["abc", "bac"]),
    "lists in brackets": ("[a, b, c]\n[b, a, c]\n", {"layout": "cell"}, ["abc", "bac"]),
    "brackets in quotes": ('"[a, b, c]"\n"[b, a, c]"\n', {}, ["abc", "bac"]),
    "names and blanks": ("a b c\nb a  c\n", {"layout": "orders"}, ["abc", "bac"]),
    "ranks and blanks": (
        "3 1 2\n1 2 3\n",
        {"layout": "ranks", "items": ["a", "b", "c"]},
        ["bca", "abc"],
    ),
    "a list of one first": ("a\nb,a\nb,c,a\n", {"layout": "orders"}, ["a", "ba", "bca"]),
    "a judge again": (
        "1;a>b>c\n2;b>a>c\n1;c>a>b\n",
        {"layout": "cell", "judge": "1", "duplicates": "last", "top": 2},
        ["ba", "ca"],
    ),
}


@pytest.mark.parametrize("name", NO_HEADER)
def test_unusual_forms_without_a_header(tmp_path, name):
    text, options, lists = NO_HEADER[name]
    assert orders_of(read(tmp_path, text, header="none", **options)) == lists


@pytest.mark.parametrize(
    "title",
    ["Survey\n", "Survey of 2024\nin Rome\n", "Survey of 2024,,\n", "Survey,,\nof Rome,,\n"],
)
@pytest.mark.parametrize("mark", ",\t;")
@pytest.mark.parametrize("layout", [None, "ranks"])
def test_a_title_above_ranks_without_names(tmp_path, title, mark, layout):
    path = write(tmp_path, f"{title}1,2,3\n2,1,3\n3,1,2\n".replace(",", mark), "t.csv")
    said, survey = read_with_answers(path, layout=layout)
    assert said == {"header": "none"} | ({} if layout else {"layout": "ranks"})
    assert joined(survey) == ["1 2 3", "2 1 3", "2 3 1"]
    shown = ", ".join(repr(x.strip(",")) for x in title.split("\n") if x)
    assert f"left out above the first ballot: {shown}" in survey.notes


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_title_above_other_tables_without_names(tmp_path, suffix):
    for rows, options, lists in (
        ("tea,rum,gin\nrum,tea,", {"layout": "orders"}, ["tea rum gin", "rum tea"]),
        ("tea,rum\nrum,gin", {"layout": "pairs"}, ["tea rum", "rum gin"]),
        ("Al,tea,1\nAl,rum,2", dict(layout="long", judge="1", item="2", rank="3"), ["tea rum"]),
        ("Al,1,2\nBo,2,1", {"layout": "ranks", "judge": "1"}, ["1 2", "2 1"]),
        ("tea,rum\nrum,", {"layout": "votes"}, ["tea rum", "rum"]),
    ):
        cells = [["Survey of 2024"], *(x.split(",") for x in rows.split("\n"))]
        cells[0] += [""] * (len(cells[1]) - 1)
        path = write_rows(tmp_path / f"t{suffix}", cells)
        survey = read_survey(path, header="none", **options)
        if options["layout"] == "pairs":
            assert [[survey.rankings.items[k] for k in x] for x in survey.rankings.listed] == [
                x.split() for x in lists
            ]
        else:
            assert joined(survey) == lists
        assert "left out above the first ballot: 'Survey of 2024'" in survey.notes


def test_a_single_item_above_lists_is_no_title(tmp_path):
    path = write(tmp_path, "sherry\ntea,rum,gin\nrum,tea,gin\n", "t.csv")
    with refusal("remove what is above them, such as a title, or add layout='cell' if"):
        read_survey(path, "orders", header="none")
    again = write(tmp_path, "tea\ntea,rum,gin\nrum,tea\n", "u.csv")
    said, survey = read_with_answers(again)
    assert said == {"header": "none", "layout": "orders"}
    assert joined(survey) == ["tea", "tea rum gin", "rum tea"]


def test_lists_without_a_header_are_asked_about(tmp_path):
    for text in ("a > b > c\nb > a > c\n", "1 2 3\n2 1 3\n3 1 2\n"):
        with pytest.raises(RankingsError, match="add header='none' if it is a ballot"):
            read(tmp_path, text)
    with pytest.raises(RankingsError, match="or add layout='orders' if each column is a place"):
        read(tmp_path, "a, b, c\nb, a\n", "cell", header="none")


def test_a_judge_again_in_columns(tmp_path):
    text = "item,j,k,j\na,1,2,1\nb,3,1,2\nc,2,3,3\n"
    survey = read(tmp_path, text, "ranks", transpose=True, duplicates="last")
    assert dict(zip(survey.judges, orders_of(survey), strict=True)) == {"k": "bac", "j": "abc"}


def test_a_gap_of_a_list_in_brackets(tmp_path):
    text = "order\n[a;;b]\n[a;c;b]\n"
    assert orders_of(read(tmp_path, text, "cell", gaps="fill")) == ["acb", "acb"]


def test_ties_beside_a_gap(tmp_path):
    survey = read(tmp_path, "a,b,c\n1,3,\n1,1,2\n", "ranks", gaps="fill")
    assert survey.rankings.levels_of_items().tolist() == [[0, 2, 1], [0, 0, 1]]


@pytest.mark.parametrize(
    "text, options, expected",
    [
        ("judge,item,rank\nx,a,1\nx,b,2\nx,c,3\ny,a,1\ny,a,2\ny,c,3\n", {}, {"duplicates": "drop"}),
        ("judge,item,rank\nx,a,1\nx,b,2\nx,a,3\n", {}, {}),
        ("judge,item,rank\nx,a,1\nx,b,2\nx,a,2\nx,b,1\n", {}, {"duplicates": "first"}),
        ("id,a,b\nx,1,2\nx,2,1\n", {"layout": "ranks"}, {"duplicates": "first"}),
        ("id,list\nx,a;b\nx,b;a\n", {"layout": "cell"}, {"duplicates": "first"}),
    ],
)
def test_each_way_that_is_named_reads_judges_who_answer_twice(tmp_path, text, options, expected):
    options = {"judge": text.partition(",")[0], **options}
    with pytest.raises(RankingsError) as error:
        read(tmp_path, text, **options)
    assert error.value.questions.options == expected
    for way in ("first", "last", "drop"):
        if f"duplicates={way!r}" in str(error.value):
            assert read(tmp_path, text, **options, duplicates=way).judges
        else:
            with pytest.raises(RankingsError, match=r"leaves none|cannot be told apart"):
                read(tmp_path, text, **options, duplicates=way)


MEANS = {
    "ranks": ("id,a,b,c,d\nx,1,3.5,3.5,\ny,1,2,3,4\n", {"layout": "ranks"}),
    "long": (
        "id,item,rank\nx,c,3.5\nx,a,1\nx,b,3.5\ny,a,1\ny,b,2\ny,c,3\ny,d,4\n",
        {"layout": "long"},
    ),
}


@pytest.mark.parametrize("kind", MEANS)
def test_a_gap_beside_means_of_ranks(tmp_path, kind):
    text, options = MEANS[kind]
    options = {"judge": "id", **options}
    with pytest.raises(
        RankingsError, match=r"the ranks are 1, 3.5, 3.5.* no item has rank 2; gaps"
    ):
        read(tmp_path, text, **options)
    levels = {"close": [0, 1, 1, -1], "fill": [0, 2, 2, 1]}
    for gaps, expected in levels.items():
        survey = read(tmp_path, text, **options, gaps=gaps)
        rows = np.asarray(survey.rankings.row_index)[survey.label_index]
        table = np.asarray(survey.rankings.levels_of_items())[rows]
        names = [survey.rankings.items.index(name) for name in "abcd"]
        assert table[0][names].tolist() == expected and table[1][names].tolist() == [0, 1, 2, 3]
        assert any("one item is left out" in x or "the one gap" in x for x in survey.notes)
    strict = read(tmp_path, text, **options, gaps="fill", ties="order")
    assert orders_of(strict)[0] in ("adbc", "adcb") and orders_of(strict)[1] == "abcd"
    assert read(tmp_path, text, **options, gaps="close", ties="drop").judges == ["y"]


def test_halves_that_are_no_means(tmp_path):
    for ranks in ("1,2.5,3", "1.5,1,2", "0.5,0.5,2", "1,1.5,1.5"):
        with pytest.raises(RankingsError, match="tied items may have the mean of their ranks"):
            read(tmp_path, f"id,a,b,c\nx,{ranks}\ny,1,2,3\n", "ranks", judge="id")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("12,10,8", "abc"),
        ("points 5,points 4,points 3", "abc"),
        ("3,2,1", "cba"),
        ("2,1,0", "cba"),
        ("8,12,10", "acb"),
        ("10,20,30", "abc"),
    ],
)
@pytest.mark.parametrize("is_picked", [False, True])
def test_points_above_places(tmp_path, names, expected, is_picked):
    """Numbers that fall, and do not end with the first place, are points of the columns."""
    options = {"columns": names.split(",")} if is_picked else {}
    survey = read(tmp_path, f"voter,{names}\nk,a,b,c\n", "orders", judge="voter", **options)
    assert orders_of(survey) == [expected]
    note = "the numbers of the places fall, as points do"
    if not is_picked and expected == "abc" and names[:2] != "10":
        assert any(x.startswith(note) for x in survey.notes)


@pytest.mark.parametrize(
    ("title", "mark"), [("Survey of 2024; n = 3", ","), ("Ann, Bob and Cid", ";")]
)
@pytest.mark.parametrize("more", ["", "kind: test\n"])
def test_a_title_with_the_mark_of_other_tables(tmp_path, title, mark, more):
    table = "1st,2nd,3rd\na,b,c\nb,a,c\n".replace(",", mark)
    survey = read(tmp_path, f"{title}\n{more}{table}")
    assert orders_of(survey) == ["abc", "bac"]
    assert survey.notes[0].startswith(f"left out above the names of the columns: {title!r}")


@pytest.mark.parametrize(
    "title", ["Drinks, spring; final", "Drinks; food; 2024, all", "a;b;c,d,e,f"]
)
@pytest.mark.parametrize("mark", [",", ";"])
@pytest.mark.parametrize("layout", ["ranks", "orders"])
def test_titles_with_commas_and_semicolons(tmp_path, title, mark, layout):
    rows = {
        "ranks": ["id,tea,milk,rum,gin", "r1,2,1,3,4", "r2,1,2,4,3"],
        "orders": ["id,1st,2nd,3rd,4th", "r1,milk,tea,rum,gin", "r2,tea,milk,gin,rum"],
    }[layout]
    table = "\n".join([title, *(row.replace(",", mark) for row in rows)])
    survey = read(tmp_path, table, layout, judge="id")
    assert orders_of(survey) == ["milktearumgin", "teamilkginrum"]
    assert survey.notes[0] == f"left out above the names of the columns: {title!r}"


def test_a_header_with_commas_and_semicolons_is_no_title(tmp_path):
    for header in ("id,Name; first,rank", "id;tea;milk,cold;rum"):
        table = f"{header}\nx;a;1,2;3\ny;b;2,1;2\nz;c;2,2;1\n"
        with pytest.raises(RankingsError, match="or remove the line if it is a title"):
            read(tmp_path, table, "ranks")
