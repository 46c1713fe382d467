"""Odd tables of many kinds: what is asked at once, and what is read with the answers."""

import datetime
import json
import shlex
import subprocess
import sys

import openpyxl
import pytest
from helpers.readers import joined, read_with_answers, refusal, write

from numpyro_rankings import RankingsError, read_survey


def pairs_in_order(survey):
    """The two items of each comparison, the preferred one first, in the order of the file."""
    orders = survey.rankings
    said = [" ".join(orders.items[k] for k in row if k >= 0) for row in orders.listed.tolist()]
    return [said[k] for k in orders.row_index[survey.label_index].tolist()]


# the name of the file, the text, all answers, and the lists
ASKED = {
    "lists of judges in columns": (
        "t.csv",
        "Ida,Jon,Kim\nfig,kiwi,lime\nkiwi,plum,kiwi\nlime,fig,plum\nplum,lime,fig\n",
        {"transpose": True, "layout": "orders"},
        ["fig kiwi lime plum", "kiwi plum fig lime", "lime kiwi plum fig"],
    ),
    "short lists of judges in columns": (
        "t.tsv",
        "Ida\tJon\tKim\tLou\nfig\tkiwi\tfig\tlime\nlime\tfig\tkiwi\tkiwi\nkiwi\tlime\t\tfig\n",
        {"transpose": True, "layout": "orders"},
        ["fig lime kiwi", "kiwi fig lime", "fig kiwi", "lime kiwi fig"],
    ),
    "judges of two leagues, who are numbered": (
        "t.csv",
        "judge,a,b,c,x,y,z\n1,1,2,3,,,\n2,2,1,3,,,\n3,,,,1,2,3\n4,,,,3,2,1\n",
        {"judge": "judge", "layout": "ranks"},
        ["a b c", "b a c", "x y z", "z y x"],
    ),
    "a column of times": (
        "t.csv",
        "Timestamp,Name,1st,2nd,3rd\n2024-01-03 10:22:11,Ann,tea,milk,rum\n"
        "2024-01-03 10:25:40,Bob,milk,tea,rum\n2024-01-04 09:00:00,Ann,tea,rum,milk\n",
        {"about": ["Timestamp"], "judge": "Name", "duplicates": "first"},
        ["tea milk rum", "milk tea rum"],
    ),
    "two questions of ranks": (
        "t.csv",
        "id,Q1_1,Q1_2,Q1_3,Q2_1,Q2_2,Q2_3\n1,1,2,3,2,3,1\n2,2,1,3,1,3,2\n3,3,1,2,2,1,3\n",
        {"judge": "id", "columns": "Q1_*", "layout": "ranks"},
        ["Q1_1 Q1_2 Q1_3", "Q1_2 Q1_1 Q1_3", "Q1_2 Q1_3 Q1_1"],
    ),
    "two questions of other lengths, with names in brackets": (
        "t.tsv",
        "id\tDrink [tea]\tDrink [rum]\tDrink [gin]\tHue [red]\tHue [tan]\n"
        + "".join(
            f"{k}\t1\t{2 + k % 2}\t{3 - k % 2}\t{1 + k % 2}\t{2 - k % 2}\n" for k in range(6)
        ),
        {
            "judge": "id",
            "columns": ["Drink [tea]", "Drink [rum]", "Drink [gin]"],
            "layout": "ranks",
        },
        ["tea rum gin", "tea gin rum"] * 3,
    ),
    "two questions side by side": (
        "t.csv",
        "id,Q1_1,Q1_2,Q1_3,Q2_1,Q2_2\n1,A,B,C,x,y\n2,B,A,C,y,x\n",
        {"judge": "id", "layout": "orders", "columns": "Q1_*"},
        ["A B C", "B A C"],
    ),
    "bars between columns": (
        "t.csv",
        "name|a|b|c\nu|1|2|3\nv|2|1|3\nw|3|2|1\n",
        {"judge": "name", "layout": "ranks"},
        ["a b c", "b a c", "c b a"],
    ),
    "lines of blank ranks": (
        "t.csv",
        "ballot,rank,candidate\n1,1,Ann\n1,2,Bob\n2,1,Bob\n2,2,Ann\n3,1,Ann\n3,2,undervote\n3,3,Bob\n",
        {
            "layout": "long",
            "judge": "ballot",
            "item": "candidate",
            "missing": ["undervote"],
            "gaps": "close",
        },
        ["Ann Bob", "Bob Ann", "Ann Bob"],
    ),
    "five oddities in German, and a title": (
        "t.csv",
        "Weinprobe;;;;;\nNr.;Rot;Weiß;Rosé;Sekt;\n1;1;2;3;4;\n2;2;1;k.A.;3;\n3;1;3;;;\n1;4;3;2;1;\n"
        "4;99;1;2;3;\nSumme;;;;;\n",
        {
            "judge": "Nr.",
            "layout": "ranks",
            "missing": ["99", "k.A."],
            "gaps": "close",
            "duplicates": "first",
        },
        ["Rot Weiß Rosé Sekt", "Weiß Rot Sekt", "Rot Weiß", "Weiß Rosé Sekt"],
    ),
    "five oddities in a long table with dates": (
        "t.csv",
        "when,user,thing,pos\n2024-01-01,u,a,1\n2024-01-01,u,b,2\n2024-01-01,u,c,99\n"
        "2024-01-02,v,a,1\n2024-01-02,v,c,3\n2024-01-03,u,a,2\n2024-01-03,u,b,1\n2024-01-03,u,c,3\n"
        "2024-01-04,w,b,-\n2024-01-04,w,c,1\n",
        {
            "judge": "user",
            "layout": "long",
            "item": "thing",
            "rank": "pos",
            "missing": ["99", "-"],
            "duplicates": "first",
            "gaps": "close",
        },
        ["a b", "a c", "c"],
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked(tmp_path, name):
    file, text, answers, lists = ASKED[name]
    said, survey = read_with_answers(write(tmp_path, text, file))
    assert said == answers and joined(survey) == lists


def test_five_oddities_of_a_spreadsheet(tmp_path):
    book = openpyxl.Workbook()
    for row in (
        ["Taste test"],
        ["Panelist", "Cola A", "Cola B", "Cola C", "Time"],
        [101, 1, 2, 3, datetime.time(9, 30)],
        [102, 2, 1, "N/A", datetime.time(9, 45)],
        [101, 3, 2, 1, datetime.time(10, 0)],
        [103, 1, 3, None, datetime.time(10, 5)],
        [104, 88, 1, 2, datetime.time(10, 7)],
        ["Mean", 1.75, 1.75, 2],
    ):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    said, survey = read_with_answers(tmp_path / "t.xlsx")
    assert said == {
        "judge": "Panelist",
        "layout": "ranks",
        "missing": ["88", "N/A"],
        "about": ["Time"],
        "gaps": "close",
        "duplicates": "first",
    }
    assert joined(survey) == [
        "Cola A Cola B Cola C",
        "Cola B Cola A",
        "Cola A Cola B",
        "Cola B Cola C",
    ]
    assert survey.judges == ["101", "102", "103", "104"]


def test_lists_of_judges_in_the_columns_of_a_spreadsheet(tmp_path):
    book = openpyxl.Workbook()
    for row in (
        ["Ida", "Jon"],
        ["fig", "kiwi"],
        ["kiwi", "plum"],
        ["plum", "fig"],
        ["lime", "lime"],
    ):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    said, survey = read_with_answers(tmp_path / "t.xlsx")
    assert said == {"transpose": True, "layout": "orders"} and survey.judges == ["Ida", "Jon"]
    assert joined(survey) == ["fig kiwi plum lime", "kiwi plum fig lime"]
    # places in a first column are no list
    path = write(tmp_path, "no,Ida,Jon\n1,fig,kiwi\n2,kiwi,plum\n3,plum,plum\n", "u.csv")
    survey = read_survey(path, "orders", transpose=True, columns=["Ida"])
    assert survey.judges == ["Ida"] and joined(survey) == ["fig kiwi plum"]


def test_counts_of_few_ballots_with_ties_are_no_long_table(tmp_path):
    path = write(tmp_path, "K,L,M,#\n2,1,3,40\n3,2,1,25\n2,2,1,31\n", "t.csv")
    said, survey = read_with_answers(path)
    assert said == {"count": "#", "layout": "ranks"}
    assert survey.rankings.num_rankings == 96 and survey.rankings.has_ties.sum() == 1


def test_means_of_tied_ranks_with_decimal_commas_are_no_lists(tmp_path):
    path = write(tmp_path, "id;a;b;c;d\nu;1;2,5;2,5;4\nv;2;1;3;4\nw;1;2;3,5;3,5\n", "t.csv")
    said, survey = read_with_answers(path)
    assert said == {"judge": "id", "layout": "ranks"}
    levels = survey.rankings.levels_of_items()[survey.rankings.row_index[survey.label_index]]
    assert levels.tolist() == [[0, 1, 1, 2], [1, 0, 2, 3], [0, 1, 2, 2]]
    # two numbers of items, as the first two choices
    path = write(tmp_path, "id;top\n1;2,5\n2;5,2\n3;3,2\n", "u.csv")
    assert joined(read_with_answers(path)[1]) == ["2 5", "5 2", "3 2"]


SCORES = "A,B,{}\nB,C,{}\nA,C,{}\nC,B,{}\n"


@pytest.mark.parametrize(
    "head, scores, expected",
    [
        ("left,right,score", "1 0 1 0.5", ["A B", "C B", "A C", None]),
        ("left,right,score", "3 -2 1 0", ["A B", "C B", "A C", None]),
        ("model_a,model_b,margin", "1.5 -0.5 2 -4", ["A B", "C B", "A C", "B C"]),
        ("left,right,score", "2-1 0-3 1-0 1-1", ["A B", "C B", "A C", None]),
        ("item1,item2,pref", "1 2 1 1", ["A B", "C B", "A C", "C B"]),
    ],
)
def test_scores_of_the_first_of_two_items(tmp_path, head, scores, expected):
    path = write(tmp_path, f"{head}\n{SCORES.format(*scores.split())}", "t.csv")
    survey = read_survey(path, ties="drop")
    assert pairs_in_order(survey) == [x for x in expected if x is not None]
    assert any(f"in the column {head.split(',')[2]!r}" in note for note in survey.notes)


DECISIONS = {
    "scores that may be of anything": (
        "left,right,score\n" + SCORES.format(7, 2, 5, 4),
        "the numbers in 'score', from 2 to 7, seem to say how much one of two items is preferred",
    ),
    "numbers of lines beside such scores": (
        "id,model_a,model_b,score\n1,A,B,1\n2,B,C,2\n3,A,C,0\n",
        "the numbers in 'score', from 0 to 2, seem to say how much one of two items is preferred",
    ),
    "Roman numerals": ("id,a,b,c\nu,III,I,II\nv,I,II,III\nw,II,I,III\n", "'II' seems to be a rank"),
    "ranks in quotation marks": (
        "id,'a','b','c'\nu,'1','2','3'\nv,'2','1','3'\n",
        "\"'3'\" seems to be a rank",
    ),
    "letters in a cell": ("n,ranking\n5,ABC\n3,BAC\n2,CBA\n", "all have the same letters"),
    "the best and the worst of a set": (
        "set,item1,item2,item3,best,worst\n1,A,B,C,A,C\n2,B,C,D,D,B\n3,A,C,D,D,C\n",
        "seem to say the best and the worst of the items in 'item1', 'item2'",
    ),
    "the best and the worst, each in a row": (
        "resp,task,drink,best,worst\n1,1,A,1,0\n1,1,B,0,0\n1,1,C,0,1\n2,1,A,0,1\n2,1,B,1,0\n",
        "seem to mark the best and the worst of rows that belong together: write these as one list",
    ),
    "the best and the worst as marks": (
        "id,A,B,C,D\n1,best,,worst,\n2,,Best,,Worst\n3,best,worst,,\n",
        "the columns 'A', 'B', 'C', 'D' mark the best and the worst item of each row: write each",
    ),
    "comparisons with a judge in each row": (
        "judge,preference\na,Tea>Milk\na,Milk>Juice\nb,Milk>Tea\nb,Tea>Juice\n",
        "if each row compares two items, write these in two columns and add layout='pairs'",
    ),
    "numbers of wins between the items": (
        "team,Ann,Bob,Cid,Dan\nAnn,,3,2,1\nBob,1,,4,2\nCid,2,1,,3\nDan,3,2,1,\n",
        "and nothing in its column: numbers of wins are read from a table with a line for each two",
    ),
    "lists that leave the own item out": (
        "voter,SWE,NOR,MLT,ITA\nSWE,,1,2,\nNOR,1,,2,\nMLT,2,1,,\nITA,1,,2,\n",
        "write a word such as 'own' into these cells and add not_offered='own'",
    ),
    "scores that a spreadsheet made dates": (
        "home,away,result\nA,B,02-Jan\nB,C,2-0\nC,A,1-1\nB,A,01-Mar\n",
        "makes dates of scores such as 2-1: write them as 2:1",
    ),
    "one name for two columns": (
        "id,a,b,a\n1,1,2,3\n2,2,1,3\n3,3,1,2\n",
        "two columns have the name 'a': give each a name of its own",
    ),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_what_a_person_decides(tmp_path, name):
    text, part = DECISIONS[name]
    with pytest.raises(RankingsError) as error:
        read_survey(write(tmp_path, text, "t.csv"))
    found = error.value.questions
    assert part in found.texts[-1] and not found.is_read and not found.answers[-1]


def test_the_best_and_the_worst_as_lists(tmp_path):
    """What the refusal of such tables says, with three sets."""
    path = write(tmp_path, 'set,list\n1,A; B; C\n2,D; C; B\n3,"D; A & C; B"\n', "t.csv")
    survey = read_survey(path, "cell", judge="set", unranked="not-offered", items=list("ABCD"))
    levels = survey.rankings.levels_of_items()[survey.rankings.row_index[survey.label_index]]
    assert levels.tolist() == [[0, 1, 2, -1], [-1, 2, 1, 0], [1, 2, 1, 0]]


def test_places_of_one_question_are_read(tmp_path):
    path = write(tmp_path, "Q1_1,Q1_2,Q1_3\nA,B,C\nB,A,C\n", "t.csv")
    assert joined(read_survey(path, "orders")) == ["A B C", "B A C"]
    with refusal("'Q1_1' and 'Q2_1' are both a first place", "columns='Q1_*'"):
        read_survey(write(tmp_path, "Q1_1,Q1_2,Q2_1,Q2_2\nA,B,x,y\n", "u.csv"), "orders")


@pytest.mark.parametrize("layout", ["csv", "xlsx"])
def test_nobody_is_offered_the_own_item(tmp_path, layout):
    rows = ["to,SWE,NOR,MLT,ITA", "SWE,,1,2,3", "NOR,2,,1,3", "MLT,3,2,,1", "ITA,1,3,2,"]
    if layout == "csv":
        path = write(tmp_path, "\n".join(rows), "t.csv")
    else:
        path = tmp_path / "t.xlsx"
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append([int(x) if x.isdecimal() else x or None for x in row.split(",")])
        book.save(path)
    said, survey = read_with_answers(path)
    assert said == {"judge": "to", "layout": "ranks", "unranked": "not-offered"}
    offered = survey.rankings.offered()[survey.rankings.row_index[survey.label_index]]
    assert (~offered).nonzero()[1].tolist() == [0, 1, 2, 3]
    # not by chance: a judge who ranks the own item may be called so
    path = write(tmp_path, "who,SWE,NOR,MLT\nSWE,1,2,\nNOR,2,1,\nMLT,2,1,\n", "u.csv")
    assert read_survey(path, "ranks", judge="who").rankings.num_rankings == 3


def test_points_for_all_but_the_own_item(tmp_path):
    """Those of a song contest: ten of eleven others get some, and nobody the own item."""
    names, points = "ABCDEFGHIJKL", [12, 10, 8, 7, 6, 5, 4, 3, 2, 1]
    given = {x: dict(zip((names * 2)[k + 1 :], points, strict=False)) for k, x in enumerate(names)}
    rows = [f"{x}," + ",".join(str(of.get(y, "")) for y in names) for x, of in given.items()]
    path = write(tmp_path, "\n".join(["country," + ",".join(names), *rows]), "t.csv")
    said = {"layout": "ranks", "judge": "country", "highest_first": True, "gaps": "close"}
    lists = [" ".join((names * 2)[k + 1 : k + 11]) for k in range(12)]
    with refusal("write a word such as 'own' into these cells and add not_offered='own'; "):
        read_survey(path, **said)
    below = read_survey(path, **said, unranked="below")
    assert joined(below) == lists and below.judges == list(names)
    assert below.rankings.choice_sets is None
    for k, row in enumerate(rows):
        cells = row.split(",")
        rows[k] = ",".join([*cells[: k + 1], "own", *cells[k + 2 :]])
    path = write(tmp_path, "\n".join(["country," + ",".join(names), *rows]), "u.csv")
    survey = read_survey(path, **said, not_offered="own")
    offered = survey.rankings.offered()[survey.rankings.row_index[survey.label_index]]
    assert joined(survey) == lists and (~offered).nonzero()[1].tolist() == list(range(12))


def test_ties_and_full_lists_of_all_but_the_own_item(tmp_path):
    tied = "c,A,B,C,D\nA,,1,1,3\nB,1,,2,3\nC,3,1,,1\nD,1,3,1,\n"
    path = write(tmp_path, tied, "t.csv")
    with refusal("add not_offered='own'; unranked='below' ranks it below the others"):
        read_survey(path, "ranks", judge="c", ties="exact")
    survey = read_survey(path, "ranks", judge="c", ties="exact", unranked="below")
    levels = survey.rankings.levels_of_items()[survey.rankings.row_index[survey.label_index]]
    assert levels.tolist() == [[-1, 0, 0, 1], [0, -1, 1, 2], [1, 0, -1, 0], [0, 1, 0, -1]]
    full = "to,SWE,NOR,MLT,ITA\nSWE,,1,2,3\nNOR,2,,1,3\nMLT,3,2,,1\nITA,1,3,2,\n"
    path = write(tmp_path, full, "u.csv")
    below = read_survey(path, "ranks", judge="to", unranked="below")
    assert joined(below)[0] == "NOR MLT ITA" and below.rankings.choice_sets is None


def test_a_column_that_is_as_that_of_an_item_is_asked_about(tmp_path):
    rows = ["judge,Tea,Cola,Milk,Sex", "a,1,2,3,1", "b,2,1,3,2", "c,3,1,2,3", "d,1,3,2,1"]
    with refusal("is 'Sex' part of the ranking? Without it 4 of 4 rows have", "about='Sex'"):
        read_survey(write(tmp_path, "\n".join(rows), "t.csv"), "ranks", judge="judge")
    survey = read_survey(tmp_path / "t.csv", "ranks", judge="judge", about="Sex")
    assert survey.rankings.num_items == 3 and not survey.rankings.are_partial


def test_the_best_and_the_worst_in_columns_called_so(tmp_path):
    """Also where no item is both somewhere."""
    text = "resp,best,worst\n1,Tea,Juice\n2,Water,Cola\n3,Coffee,Milk\n"
    said, survey = read_with_answers(write(tmp_path, text, "t.csv"))
    assert said == {"columns": ["best", "worst"], "layout": "pairs"}
    assert pairs_in_order(survey) == ["Tea Juice", "Water Cola", "Coffee Milk"]


NOTED = "judge,a,b,c\nAnn,1,2,3\nBob Lee,2,1,3\nTotal,3,3,6\n"


@pytest.mark.parametrize("below", ["Cid,,,", "Cid Low,,,", "12,,,", ",,1,", "Cid,,,\nTotal,,,"])
def test_answers_below_totals_are_no_notes(tmp_path, below):
    path = write(tmp_path, f"{NOTED}{below}\n", "t.csv")
    with refusal("t.csv:4: this row seems to have totals, because 'Total' is in its first cell"):
        read_survey(path, "ranks", judge="judge")
    orders = "judge,1st,2nd\nAnn,a,b\nTotal,b,a\nBob,,\n"
    with refusal("t.csv:3: this row seems to have totals, because 'Total' is in its first cell"):
        read_survey(write(tmp_path, orders, "t.csv"), "orders", judge="judge")
    ranks = "a,b,c\n1,2,3\n2,1,3\nTotal,,\n1,,\n,1,\n"
    with refusal("t.csv:4: this row seems to have totals, because 'Total' is in its first cell"):
        read_survey(write(tmp_path, ranks, "t.csv"), "ranks")


@pytest.mark.parametrize("below", ["Source: a survey,,,", ",see page 3,,", "* means of Ann,,,"])
def test_notes_below_totals(tmp_path, below):
    path = write(tmp_path, f"{NOTED}{below}\nSD,1,1,0\nRead on May 3,,,\n", "t.csv")
    survey = read_survey(path, "ranks", judge="judge")
    assert survey.judges == ["Ann", "Bob Lee"] and joined(survey) == ["a b c", "b a c"]
    assert survey.notes[:2] == [
        f"left out, because 'Total', 'SD' are in their first cells: {path}:4, {path}:6",
        f"left out, as notes below: {path}:5, {path}:7",
    ]


@pytest.mark.parametrize("lists", ["a, b, c|b, c, a|c, a, b|a, c, b", "1,2,3|2,3,1|3,1,2|1,3,2"])
def test_numbers_of_judges_before_lists(tmp_path, lists):
    lines = [f"{k}: {x}\n" for k, x in enumerate(lists.split("|"), 1)]
    said, survey = read_with_answers(write(tmp_path, "".join(lines), "t.txt"))
    assert said == {"header": "none", "layout": "cell", "judge": "1"}
    expected = [x.replace(",", " ").replace("  ", " ") for x in lists.split("|")]
    assert joined(survey) == expected and survey.judges == ["1", "2", "3", "4"]
    path = write(tmp_path, "".join(lines), "t.txt")
    with refusal("judge='1' if they number the judges, or count='1' if they count them"):
        read_survey(path)
    counted = read_survey(path, "cell", header="none", count="1")
    assert counted.rankings.num_rankings == 10
    said, _ = read_with_answers(write(tmp_path, "".join(lines[::-1]), "t.txt"))
    assert said == {"header": "none", "layout": "cell", "count": "1"}


@pytest.mark.parametrize("form", ["{} x {}", "{}x {}", "{} X {}"])
def test_counts_before_lists_with_an_x(tmp_path, form):
    lists = ["tea > coffee > milk", "coffee > tea > milk", "milk > tea > coffee"]
    lines = [form.format(k, x) for k, x in zip((3, 2, 1), lists, strict=True)]
    said, survey = read_with_answers(write(tmp_path, "\n".join(lines) + "\n", "t.txt"))
    assert said == {"header": "none", "count": "1"}
    assert survey.rankings.counts.tolist() == [3, 2, 1]
    assert survey.rankings.items == ("tea", "coffee", "milk")
    table = "order;region\n" + "".join(f"{x};here\n" for x in lines)
    said, survey = read_with_answers(write(tmp_path, table, "t.csv"), columns="order")
    assert said == {"count": "order"} and survey.rankings.num_rankings == 6


@pytest.mark.parametrize(
    "text, lists",
    [
        ("judge,1st,2nd\nAl,tea,milk\njudge,1st,2nd\nBo,milk,\n", ["tea milk", "milk"]),
        (
            "judge;tea;milk\nAl;1;2\njudge;tea;milk\nBo;2;1\njudge;tea;milk\n",
            ["tea milk", "milk tea"],
        ),
        (
            "judge,item,rank\nAl,tea,1\nAl,milk,2\njudge,item,rank\nBo,milk,1\n",
            ["tea milk", "milk"],
        ),
    ],
)
def test_names_of_columns_that_come_again(tmp_path, text, lists):
    path = write(tmp_path, text, "t.csv")
    said, survey = ({}, read_survey(path)) if "item" in text else read_with_answers(path)
    assert joined(survey) == lists and {"header", "header_rows", "duplicates"}.isdisjoint(said)
    assert sum("because they repeat the names of the columns: " in x for x in survey.notes) == 1


def test_a_ballot_that_comes_again_is_no_name(tmp_path):
    path = write(tmp_path, "tea,milk\nmilk,tea\ntea,milk\n", "t.csv")
    with refusal("the first row must name the columns, got 'tea', 'milk', as in the rows below"):
        read_survey(path)


@pytest.mark.parametrize(
    "text",
    [
        "id,item_1,rank_1,item_2,rank_2\nx,tea,2,milk,1\ny,milk,2,tea,1\n",
        "rank 1,name 1,rank 2,name 2,rank 3,name 3\n2,a,1,b,3,c\n3,b,1,c,2,a\n1,c,2,b,,\n",
        "Ann,Ann rank,Bob,Bob rank\ntea,1,milk,1\nmilk,2,rum,3\nrum,3,tea,2\n",
        "Ann;;Bob;\nitem;rank;item;rank\ntea;1;milk;1\nmilk;2;rum;3\nrum;3;tea;2\n",
    ],
)
def test_names_of_items_beside_their_ranks(tmp_path, text):
    with refusal("such as", "write a row for each name and its rank, in columns called judge"):
        read_survey(write(tmp_path, text, "t.csv"))


def test_games_and_remarks_are_no_names_beside_their_ranks(tmp_path):
    games = "red item,red points,blue item,blue points\nx,2,y,1\ny,3,x,1\nx,0,z,2\nz,1,x,4\n"
    with refusal("does each row compare two items, with what each scored"):
        read_survey(write(tmp_path, games, "t.csv"))
    for text in (
        "who,tea,tea_note,milk,milk_note\nx,1,nice,2,\ny,2,,1,wow\n",
        "who;why: tea;rank: tea;why: milk;rank: milk\nx;nice;1;;2\ny;;2;wow;1\n",
    ):
        said, survey = read_with_answers(write(tmp_path, text, "u.csv"), judge="who")
        assert said["layout"] == "ranks" and {"columns", "layout"} == {*said}
        assert joined(survey) == ["tea milk", "milk tea"]
    for names in ("tea,tea_rank", "why tea,rank tea", "Ann,Ann rank"):
        for ranks in ("1 2 2,1 1 3,2 1 2", "1 2 3,2 1 3,1 1 2", "1 2 3,2 3 1,3 1 2"):
            one, two = names.split(",")
            stem = "Ann" if "Ann" in names else "tea"
            head = ",".join(x.replace(stem, y) for y in ("tea", "rum", "gin") for x in (one, two))
            said = ("good bad ok", "bad good good", "ok good bad")
            rows = [
                ",".join(f"{x},{y}" for x, y in zip(a.split(), b.split(), strict=True))
                for a, b in zip(said, ranks.split(","), strict=True)
            ]
            path = write(tmp_path, "\n".join([head, *rows]), "w.csv")
            answers, survey = read_with_answers(path)
            assert answers == {"columns": two.replace(stem, "*"), "layout": "ranks"}
            assert survey.rankings.num_items == 3
    for text, answers in (
        ("rank_1,score_1,rank_2,score_2\ntea,9,milk,7\nmilk,8,tea,6\n", {"columns"}),
        (
            "A,A rank,B,B rank\ntea,1,tea,2\nmilk,2,milk,1\nrum,3,rum,3\n",
            {"columns", "transpose", "layout"},
        ),
    ):
        said, survey = read_with_answers(write(tmp_path, text, "v.csv"))
        assert {*said} == answers
        assert [x[:8] for x in joined(survey)] == ["tea milk", "milk tea"]


@pytest.mark.parametrize(
    "places", ["First,Second,Last", "1st choice,2nd choice,Least preferred", "Best,2nd,bottom_pick"]
)
@pytest.mark.parametrize("layout", [None, "orders"])
def test_the_last_of_as_many_places_as_items(tmp_path, places, layout):
    rows = [["A", "B", "C"], ["B", "C", "A"], ["C", "A", ""]]
    lists = ["A B C", "B C A", "C A"]
    names = places.split(",")
    text = "\n".join(map(",".join, [names, *rows]))
    path = write(tmp_path, text, "t.csv")
    assert joined(read_survey(path, layout)) == lists
    assert joined(read_survey(path, layout, columns=names)) == lists
    # in any order, beside a column of judges
    turned = [["who", *names[::-1]], *([f"v{k}", *row[::-1]] for k, row in enumerate(rows))]
    path = write(tmp_path, "\n".join(map(",".join, turned)), "u.csv")
    survey = read_survey(path, layout, judge="who")
    assert survey.judges == ["v0", "v1", "v2"] and joined(survey) == lists
    # others may be before it
    path = write(tmp_path, f"{text}\nA,B,D\n", "v.csv")
    for given in ({}, {"columns": names}):
        with refusal(
            f"the column {names[-1]!r} is no place: there are 4 items", "unranked='below'"
        ):
            read_survey(path, layout, **given)
    assert joined(read_survey(path, layout, columns=names[:2]))[2:] == ["C A", "A B"]
    for unranked in ("below", "not-offered"):
        assert joined(read_survey(path, layout, unranked=unranked)) == [*lists, "A B D"]


def test_top_second_and_bottom_are_no_pairs(tmp_path):
    path = write(tmp_path, "Top,Second,Bottom\nA,B,C\nB,C,A\n", "t.csv")
    assert joined(read_survey(path)) == ["A B C", "B C A"]
    path = write(tmp_path, "Top,Bottom,Town\nA,B,X\nB,C,Y\n", "u.csv")
    assert pairs_in_order(read_survey(path)) == ["A B", "B C"]


def test_the_last_beside_the_first_places(tmp_path):
    text = "year,1st,2nd,3rd,Last\n1,a,b,c,d\n2,b,a,c,d\n3,a,c,d,e\n"
    with pytest.raises(RankingsError, match="the column 'Last' is no place") as error:
        read_survey(write(tmp_path, text, "t.csv"), about="year")
    assert error.value.questions.options == {}


@pytest.mark.parametrize("head", ["id,Last,2nd,1st", "id,Least preferred,Second,First"])
@pytest.mark.parametrize("settings", [{}, {"judge": "id", "layout": "orders"}])
def test_the_last_of_all_places(tmp_path, head, settings):
    rows = [("1", "Tea", "Cola", "Milk"), ("2", "Cola", "Tea", "Milk"), ("3", "Milk", "Tea", "")]
    lists = ["Milk Cola Tea", "Milk Tea Cola"]
    for order in ((0, 1, 2, 3), (0, 3, 2, 1), (0, 2, 1, 3)):
        names = head.split(",")
        lines = [",".join(row[k] for k in order) for row in (names, *rows[:2])]
        path = write(tmp_path, "\n".join(lines), "t.csv")
        if settings:
            assert joined(read_survey(path, **settings)) == lists
            continue
        said, survey = read_with_answers(path)
        assert said == {"judge": "id"} and joined(survey) == lists
    text = f"{head}\n" + "\n".join(map(",".join, rows))  # the first place is empty
    with refusal(f"column {names[3]!r} is empty, but"):
        read_survey(write(tmp_path, text, "t.csv"), "orders", judge="id")


@pytest.mark.parametrize("columns", [(), "Q*"])
def test_the_last_behind_items_between(tmp_path, columns):
    names = [f"Q {x}" if columns else x for x in ("Last", "2nd", "1st")]
    path = write(tmp_path, f"{','.join(names)}\nTea,Cola,Milk\nGin,Tea,Milk\n", "t.csv")
    with pytest.raises(RankingsError, match=f"'{names[0]}' is no place: there are 4") as error:
        read_survey(path, "orders", columns=columns)
    assert error.value.questions.options == {}
    survey = read_survey(path, "orders", columns=columns, unranked="not-offered")
    assert joined(survey) == ["Milk Cola Tea", "Milk Tea Gin"]


def test_a_last_place_below_the_others(tmp_path):
    text = "place,Ann,Bob\n1st,Vertigo,Kane\n2nd,Kane,Vertigo\nLast,Tokyo,Tokyo\n"
    said, survey = read_with_answers(write(tmp_path, text, "t.csv"))
    assert said == {"transpose": True}
    assert joined(survey) == ["Vertigo Kane Tokyo", "Kane Vertigo Tokyo"]


def test_a_last_name_is_no_last_place(tmp_path):
    text = "id,Last name,1st,2nd\n7,Doe,a,b\n8,Roe,b,a\n5,Poe,a,b\n"
    said, survey = read_with_answers(write(tmp_path, text, "t.csv"))
    assert said["about"] == ["Last name"] and joined(survey) == ["a b", "b a", "a b"]


@pytest.mark.parametrize("ranks", ["Rank 1,Rank 2,Rank 3", "Ann,Bob,Cid"])
@pytest.mark.parametrize("name", ["CastVoteRecord", "Cvr Number"])
def test_records_of_ballots_beside_what_is_known_of_them(tmp_path, name, ranks):
    rows = ["1,P1,x,1,2,3", "2,P1,x,2,1,3", "3,P2,y,3,1,2", "4,P2,y,1,3,2"]
    text = "\n".join((f"{name},Precinct,BallotStyle,{ranks}", *rows))
    if "Rank" in ranks:
        for k, item in enumerate(("Ann", "Bob", "Cid"), 1):
            text = text.replace(f",{k}", f",{item}")
    said, survey = read_with_answers(write(tmp_path, text, "t.csv"))
    assert (said["judge"], said["about"]) == (name, ["Precinct", "BallotStyle"])
    third = "Cid Ann Bob" if "Rank" in ranks else "Bob Cid Ann"
    assert joined(survey)[::2] == ["Ann Bob Cid", third]


def test_numbers_of_rows_beside_ranks_of_ballots(tmp_path):
    rows = ["1,P1,x,Ann,Bob", "2,P1,x,Bob,Ann", "3,P2,y,Cid,Ann"]
    text = "\n".join(("record,Precinct,BallotStyle,Rank 1,Rank 2", *rows))
    said, survey = read_with_answers(write(tmp_path, text, "t.csv"))
    assert said == {"judge": "record", "about": ["Precinct", "BallotStyle"]}
    assert joined(survey) == ["Ann Bob", "Bob Ann", "Cid Ann"]


@pytest.mark.parametrize(
    "head", ["{},Tea,Cola,Milk", "{},1st,2nd,3rd", "{},ranking"], ids=["ranks", "orders", "cell"]
)
@pytest.mark.parametrize(
    ("name", "numbers", "answer"),
    [
        ("n", "1234", "judge"),
        ("N", "5678", "judge"),
        ("n", "9421", "count"),
        ("n", "2122", "count"),
        ("count", "1234", "count"),
    ],
)
def test_numbers_of_rows_are_no_counts(tmp_path, head, name, numbers, answer):
    lists = {"Tea": ["1,2,3", "2,1,3", "1,3,2", "3,1,2"]}
    lists["1st"] = [f"{x[0]}a,{x[2]}a,{x[4]}a" for x in lists["Tea"]]
    lists["ranking"] = [x.replace(",", ">") for x in lists["1st"]]
    rows = next(lists[x] for x in lists if x in head)
    lines = [f"{x},{y}" for x, y in zip(numbers, rows, strict=True)]
    path = write(tmp_path, "\n".join((head.format(name), *lines)), "t.csv")
    said, survey = read_with_answers(path)
    assert said[answer] == name and not {"judge", "count", "about"} - {answer} & {*said}
    number = 4 if answer == "judge" else sum(map(int, numbers))
    assert survey.rankings.num_rankings == number


def test_numbers_of_rows_beside_names_of_judges(tmp_path):
    rows = ["a,1,1,2,3", "b,2,2,1,3", "c,3,1,3,2", "d,4,3,1,2"]
    path = write(tmp_path, "\n".join(("id,n,x,y,z", *rows)), "t.csv")
    assert read_with_answers(path, judge="id", layout="ranks")[0] == {"about": ["n"]}


@pytest.mark.parametrize(
    ("numbers", "answer"),
    [
        ("17 23 42 51", "judge"),
        ("23 17 51 42", "judge"),
        ("1 2 3 4", "judge"),
        ("57 33 22 11", "count"),
        ("57 33 33 11", "count"),
        ("17 42 17 42", "count"),
        ("17 42 17 23", "about"),
    ],
)
def test_numbers_before_places_without_a_header(tmp_path, numbers, answer):
    lists = ["Kiwi,Plum,Pear", "Plum,Kiwi,Pear", "Pear,Plum,Kiwi", "Kiwi,Pear,Plum"]
    lines = [f"{x},{y}" for x, y in zip(numbers.split(), lists, strict=True)]
    path = write(tmp_path, "\n".join(lines), "t.csv")
    said, survey = read_with_answers(path, header="none")
    assert {*said} == {answer, "layout"}
    number = sum(map(int, numbers.split())) if answer == "count" else 4
    assert survey.rankings.num_rankings == number


@pytest.mark.parametrize("numbers", ["25 61 25 61 25 61", "54 61 54 54 61 61"])
def test_numbers_behind_ranks_without_a_header_are_no_counts(tmp_path, numbers):
    lists = ("1,2,3", "2,1,3", "3,1,2")
    lines = [f"r{k},{lists[k % 3]},{x}" for k, x in enumerate(numbers.split())]
    path = write(tmp_path, "\n".join(lines), "t.csv")
    said, survey = read_with_answers(path, layout="ranks", header="none")
    assert said == {"judge": "1", "about": ["5"]} and survey.rankings.num_rankings == 6


@pytest.mark.parametrize(
    "name", ["judge,ranks,,\na,1,2,3\nb,2,1,3\n", ",tea,,milk\na,1,2,3\nb,3,1,2\n"]
)
def test_no_ballot_is_taken_for_names(tmp_path, name):
    """Numbers below columns without a name may be ranks, and no empty name is in an option."""
    path = write(tmp_path, name, "t.csv")
    for layout in (None, "ranks"):
        with pytest.raises(RankingsError, match=r"columns ., . have no name: ") as error:
            read_survey(path, layout)
        assert error.value.questions.options == {}


def test_a_time_beside_places(tmp_path):
    """Names beside the numbers of the rows are no columns of judges if places are above them."""
    text = "race,1st,2nd,3rd,time\n1,Max,Lewis,Lando,1:30\n2,Lewis,Max,Lando,1:31\n"
    said, survey = read_with_answers(write(tmp_path, text, "t.csv"))
    assert said == {"about": ["race", "time"]}
    assert joined(survey) == ["Max Lewis Lando", "Lewis Max Lando"]
    text = "No;Choice 1;Choice 2;Choice 3;Town\n1;tea;milk;rum;X\n2;milk;tea;rum;Y\n"
    said, survey = read_with_answers(write(tmp_path, text, "t.csv"))
    assert said == {"judge": "No", "about": ["Town"]}
    assert joined(survey) == ["tea milk rum", "milk tea rum"]


def test_a_tie_of_one_judge(tmp_path):
    text = "judge,item,rank\nx,a,1\nx,b,1\ny,a,1\ny,b,2\n{}"
    for more, said in (("", "this judge"), ("z,a,1\nz,b,1\n", "the judges")):
        notes = " ".join(read_survey(write(tmp_path, text.format(more), "t.csv")).notes)
        assert f"use ties='drop' to leave out {said}, or ties='order' to put" in notes


@pytest.mark.parametrize(
    ("columns", "said", "pairs"),
    [
        ("item1,item2,choice", "aa", ["tea rum", "gin tea"]),
        ("left,right,vote", "AB", ["tea rum", "tea gin"]),
        ("home,away,result", "AA", ["rum tea", "tea gin"]),
        ("team1,team2,result", "HA", ["tea rum", "tea gin"]),
    ],
)
def test_the_letter_a_is_the_first_item_or_the_away_team(tmp_path, columns, said, pairs):
    path = write(tmp_path, f"{columns}\ntea,rum,{said[0]}\ngin,tea,{said[1]}\n", "t.csv")
    assert pairs_in_order(read_survey(path)) == pairs


@pytest.mark.parametrize("name", ["t.csv", "t.txt"])
def test_lists_of_json_without_a_header(tmp_path, name):
    lists = ['["tea", "rum", "gin"]', '["rum", "tea", "gin"]', '["tea", "gin", "rum"]']
    quoted = (
        ['"' + x.replace('"', '""') + '"' for x in lists]
        if name == "t.csv"
        else [x.replace(", ", ",") for x in lists]
    )
    said, survey = read_with_answers(write(tmp_path, "\n".join(quoted) + "\n", name))
    assert said == {"header": "none"} and len(survey.rankings) == 3


@pytest.mark.parametrize(
    "lines",
    [
        ["(tea, rum, gin)", "(rum, tea, gin)"],
        ["['tea', 'rum', 'gin']", "['rum', 'tea', 'gin']"],
        ['["tea","rum","gin"],', '["rum","tea","gin"]'],
        ["[tea, rum, gin],", "[rum, tea, gin],"],
        ["{tea; rum, gin}", "{rum; tea, gin}"],
        ["tea, {rum, gin}", "{rum, gin}, tea"],
    ],
)
@pytest.mark.parametrize("name", ["t.txt", "t.csv"])
def test_brackets_around_lists_in_lines(tmp_path, lines, name):
    said, survey = read_with_answers(write(tmp_path, "\n".join(lines) + "\n", name))
    if ";" in lines[0]:
        assert said == {"layout": "cell", "header": "none", "separator": "semicolon"}
        assert survey.rankings.items == ("tea", "rum, gin", "rum", "tea, gin")
        return
    del said["header"]
    assert said == ({} if '"' in lines[0] else {"layout": "cell"})  # quotes are in no header
    assert survey.rankings.items == ("tea", "rum", "gin")
    if "{" in lines[0]:
        assert survey.rankings.levels_of_items().tolist() == [[0, 1, 1], [1, 0, 0]]
    else:
        assert joined(survey) == ["tea rum gin", "rum tea gin"]


def test_objects_of_json(tmp_path, monkeypatch):
    """The command that is named writes a table."""
    monkeypatch.chdir(tmp_path)
    objects = ['{"tea": 1, "rum": 2, "gin": 3}', '{"tea": 2, "rum": 1, "gin": 3}']
    for name, text, message in (
        ("t.txt", "\n".join(objects), "seems to be an object of JSON: python -c"),
        ("u.json", f"[{','.join(objects)}]", "of other lists, python -c"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(RankingsError, match=message) as error:
            read_survey(name)
        code = str(error.value).partition('python -c "')[2].partition('"')[0]
        exec(code)
        survey = read_survey(f"{name[0]}.csv", "ranks")
        assert joined(survey) == ["tea rum gin", "rum tea gin"]


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *((x, "by judge") for x in ("u.json", "Ann's.json", "$HOME `x`.csv", "é !.tsv")),
        *(("u.json", x) for x in ("by item", "by column", "list")),
        ("Ann's.txt", "list"),
    ],
)
def test_the_command_for_json_in_a_shell(tmp_path, monkeypatch, name, form):
    """The names of the judges stay, and a name of a file may have marks that a shell reads."""
    monkeypatch.chdir(tmp_path)
    ranks = {"Al": {"tea": 1, "rum": 2, "gin": 3}, "Bo": {"tea": 2, "rum": 1, "gin": 3}}
    items = {x: {who: of[x] for who, of in ranks.items()} for x in ranks["Al"]}
    value = {
        "by judge": ranks,
        "by item": items,
        "by column": {x: dict(zip("01", of.values(), strict=True)) for x, of in items.items()},
        "list": {"day": 1, "ballots": [*ranks.values()]},
    }[form]
    (tmp_path / name).write_text(json.dumps(value))
    with pytest.raises(RankingsError) as error:
        read_survey(name)
    command = "python -c " + str(error.value).partition("python -c ")[2].rpartition(" writes ")[0]
    python = shlex.quote(sys.executable)
    subprocess.run(command.replace("python", python, 1), shell=True, check=True)
    (table,) = {*tmp_path.iterdir()} - {tmp_path / name}
    said, survey = read_with_answers(table)
    assert joined(survey) == ["tea rum gin", "rum tea gin"]
    if form == "by judge" or form == "by item":
        assert survey.judges == ["Al", "Bo"] and ("transpose" in said) == (form == "by item")


@pytest.mark.parametrize(
    "head, least",
    [("top1,top2,bottom1", "bottom1"), ("Best 1,Best 2,Worst 2,Worst 1", "Worst 2")],
)
def test_the_best_and_the_worst_with_numbers(tmp_path, head, least):
    width = head.count(",") + 1
    rows = [
        ["tea", "rum", "gin", "ale"],
        ["rum", "wine", "tea", "gin"],
        ["gin", "tea", "wine", "ale"],
    ]
    text = f"who,{head}\n" + "".join(f"r{k},{','.join(x[:width])}\n" for k, x in enumerate(rows))
    said, survey = read_with_answers(write(tmp_path, text, "t.csv"), judge="who", layout="orders")
    assert said == {
        "columns": f"{head[:-1].partition('1')[0].rstrip()}*".replace("Best*", "Best *")
    }
    assert joined(survey) == [" ".join(x[:2]) for x in rows]
    with refusal(repr(least), "the worst, and none says what is between that and"):
        read_survey(tmp_path / "t.csv", "orders", judge="who")
    whole = write(tmp_path, "top1,top2,bottom1\na,b,c\nb,c,a\n", "u.csv")
    assert joined(read_survey(whole, "orders")) == ["a b c", "b c a"]


@pytest.mark.parametrize("mark", ["x", "✓", "Yes"])
def test_ticks_are_no_places(tmp_path, mark):
    text = f"id,Ann,Bob,Cid\n1,{mark},,\n2,,{mark},\n3,{mark},{mark},\n"
    for layout in ("orders", "ranks"):
        with refusal("the columns say which items were chosen, not in which order"):
            read_survey(write(tmp_path, text, "t.csv"), layout, judge="id")


@pytest.mark.parametrize("layout", [None, "ranks"])
@pytest.mark.parametrize("total, sums", [("Total", [3, 7, 5]), ("Sum", [4, 9, 13])])
def test_a_column_of_sums_is_no_item(tmp_path, layout, total, sums):
    points = [
        (a, b)
        for a, b in zip(
            (1, 2, 4), (y - x for x, y in zip((1, 2, 4), sums, strict=True)), strict=True
        )
    ]
    rows = [f"c{k},{a + b},{a},{b}\n" for k, (a, b) in enumerate(points)]
    path = write(tmp_path, f"to,{total},Ann,Bob\n{''.join(rows)}", "t.csv")
    said, survey = read_with_answers(path, **({"layout": layout} if layout else {}), judge="to")
    assert said["about"] == [total] and survey.rankings.items == ("Ann", "Bob")
    assert survey.about[total] == list(map(str, sums))


@pytest.mark.parametrize("word", ["Ret", "DNF"])
def test_a_word_among_the_ranks_of_a_long_table(tmp_path, word):
    text = f"Race,Driver,Pos\nM,Max,1\nM,Lew,2\nM,Lan,{word}\nS,Lan,1\nS,Max,2\nS,Lew,3\n"
    said, survey = read_with_answers(write(tmp_path, text, "t.csv"), layout="long")
    assert said == {"judge": "Race", "item": "Driver", "rank": "Pos", "offered": [word]}
    assert joined(survey) == ["Max Lew", "Lan Max Lew"]


def test_a_long_table_of_items_that_come_once(tmp_path):
    text = "Year,Country,Place\n23,Sweden,1\n23,Finland,2\n24,Malta,1\n24,Italy,2\n"
    said, survey = read_with_answers(write(tmp_path, text, "t.csv"))
    assert said == {"layout": "long", "judge": "Year", "item": "Country", "rank": "Place"}
    assert joined(survey) == ["Sweden Finland", "Malta Italy"]
    text = "line,who,what,rank\n1,x,tea,1\n2,x,rum,2\n3,y,tea,1\n4,y,gin,2\n"
    said, survey = read_with_answers(write(tmp_path, text, "u.csv"))
    assert said == {"layout": "long", "judge": "who", "item": "what"}
    assert joined(survey) == ["tea rum", "tea gin"]


def test_items_of_two_kinds(tmp_path):
    text = "who,tea,tea latte,rum,rum latte\nx,1,3,2,4\ny,2,4,1,3\n"
    survey = read_survey(write(tmp_path, text, "t.csv"), "ranks", judge="who")
    assert joined(survey) == ["tea rum tea latte rum latte", "rum tea rum latte tea latte"]


def test_letters_of_candidates_are_kept(tmp_path):
    rows = "judge,1st,2nd,3rd\nu,Ann,Bob,C\nv,Bob,Ann,C\nw,C,Ann,Bob\n"
    said, survey = read_with_answers(write(tmp_path, rows, "t.csv"))
    assert said == {"judge": "judge", "items": ["Ann", "Bob", "C"]}
    assert survey.rankings.lengths.tolist() == [3, 3, 3]
    rows = "judge,1st,2nd,3rd\nu,A,B,C\nv,B,A,overvote\nw,C,A,undervote\n"
    said, survey = read_with_answers(write(tmp_path, rows, "u.csv"))
    assert said == {"judge": "judge"} and set(survey.rankings.items) == set("ABC")


@pytest.mark.parametrize("name", ["voters", "Anzahl", "Nb de votants", "people"])
def test_numbers_of_voters_are_counts(tmp_path, name):
    rows = f"{name},1st,2nd\n42,tea,rum\n26,rum,tea\n15,tea,rum\n"
    said, survey = read_with_answers(write(tmp_path, rows, "t.csv"))
    assert said == {"count": name} and len(survey.rankings) == 83
    said, _ = read_with_answers(write(tmp_path, "voters,1st,2nd\n1,tea,rum\n2,rum,tea\n", "u.csv"))
    assert said == {"judge": "voters"}


@pytest.mark.parametrize("header", ["judge,choice,choice,choice", "judge,choice,,", "judge,Best,,"])
def test_answers_below_columns_without_a_name_are_no_names(tmp_path, header):
    rows = "Al,tea,coffee,cocoa\nBo,coffee,tea,cocoa\nCy,coffee,cocoa,tea\n"
    path = write(tmp_path, f"{header}\n{rows}", "t.csv")
    survey = read_survey(path, "orders", judge="judge")
    assert survey.judges == ["Al", "Bo", "Cy"]
    assert joined(survey) == ["tea coffee cocoa", "coffee tea cocoa", "coffee cocoa tea"]
    name = header.split(",")[1]
    note = f"columns without a name of their own are called '{name} 1' to '{name} 3'"
    assert note in survey.notes


@pytest.mark.parametrize("judges", ["123", ["Al", "Bo", "Cy"]])
@pytest.mark.parametrize("ends", [("Least preferred", "Most preferred"), ("Worst", "Best")])
def test_a_column_without_a_name_between_the_ends(tmp_path, judges, ends):
    """It is neither of the ends, nor is the first ballot a row of names."""
    rows = [["tea", "rum", "gin"], ["rum", "tea", "gin"], ["gin", "rum", "tea"]]
    lists = [" ".join(row) for row in rows]
    for way in (1, -1):
        lines = [["id", ends[way > 0], "", ends[way < 0]]]
        lines += [[who, *row] for who, row in zip(judges, rows, strict=True)]
        path = write(tmp_path, "\n".join(map(",".join, lines)), "t.csv")
        said, survey = read_with_answers(path, judge="id")
        assert survey.judges == [*judges] and said["layout"] == "orders"
        assert joined(survey) == (lists if way > 0 else [" ".join(x[::-1]) for x in rows])
        assert "columns without a name of their own are called 'column 3'" in survey.notes
        assert ("columns" in said) == (way < 0)


@pytest.mark.parametrize(
    "text",
    [
        ",tea,rum\nann,1,2\nbob,2,1\n",
        "id,tea,rum,\n1,1,2,good\n2,2,1,\n3,1,2,bad\n",
        "id,1st,2nd,\n1,tea,rum,good\n2,rum,tea,\n3,tea,rum,bad\n",
        "who,1st,2nd,\nAl,tea,rum,good\nBo,rum,tea,bad\nCy,tea,rum,bad\n",
    ],
)
def test_a_first_ballot_is_no_second_row_of_names(tmp_path, text):
    path, judge = write(tmp_path, text, "t.csv"), text.partition(",")[0] or None
    with pytest.raises(RankingsError, match=r"has no name.*write a name above") as error:
        read_survey(path, "orders" if "1st" in text else "ranks", judge=judge)
    assert "header_rows" not in str(error.value)


def test_places_below_a_question_are_names(tmp_path):
    path = write(tmp_path, "id,Q,,\n,1st,2nd,3rd\n1,tea,rum,gin\n2,rum,tea,gin\n", "t.csv")
    said, survey = read_with_answers(path)
    assert said["header_rows"] == 2 and joined(survey) == ["tea rum gin", "rum tea gin"]


def test_names_below_a_question_are_names(tmp_path):
    path = write(tmp_path, "id,Q,,\n,tea,coffee,cocoa\n1,1,2,3\n2,3,1,2\n", "t.csv")
    survey = read_survey(path, "ranks", judge="id")
    assert joined(survey) == ["tea coffee cocoa", "coffee cocoa tea"]


@pytest.mark.parametrize("code", ["99", "-9", "9", "8", "66"])
def test_codes_among_numbers_of_items(tmp_path, code):
    text = f"judge,1st,2nd,3rd\nAl,1,2,{code}\nBo,1,2,3\nCy,2,1,{code}\nDi,3,1,2\n"
    path = write(tmp_path, text, "t.csv")
    with refusal(f"is '{code}' an item? It is in 2 cells"):
        read_survey(path, "orders", judge="judge")
    survey = read_survey(path, "orders", judge="judge", missing=[code], gaps="close")
    assert joined(survey)[:2] == ["1 2", "1 2 3"]
    cell = write(tmp_path, f'judge,order\nAl,"1, 2, {code}"\nBo,"1, 2, 3"\n', "c.csv")
    with refusal(f"is '{code}' an item?"):
        read_survey(cell, "cell", judge="judge")
    two = write(tmp_path, text.replace(f"1,2,{code}", "1,2,999"), "two.csv")
    said, survey = read_with_answers(two, layout="votes", judge="judge")
    assert set(said["missing"]) == {code, "999"} and joined(survey)[:3] == ["1 2", "1 2 3", "2 1"]
    other = write(tmp_path, "judge,1st,2nd,3rd\nAl,12,45,99\nBo,45,12,99\n", "o.csv")
    assert joined(read_survey(other, "orders", judge="judge")) == ["12 45 99", "45 12 99"]


@pytest.mark.parametrize("rows", ["1,8,9\n3,10,7\n4,5,6\n2,1,9", "1,2,9\n3,4,8\n5,6,7\n1,2,7"])
def test_numbers_of_items_near_others_are_no_codes(tmp_path, rows):
    path = write(tmp_path, f"1st,2nd,3rd\n{rows}\n", "t.csv")
    for layout in ("orders", "votes"):
        assert joined(read_survey(path, layout))[0] == rows[:5].replace(",", " ")


def test_totals_among_the_items_of_long_tables(tmp_path):
    rows = [("r1", "tea", 1), ("r1", "coffee", 2), ("r1", "TOTAL", 3), ("r2", "tea", 2)]
    rows += [("r2", "coffee", 1), ("r2", "TOTAL", 3)]
    text = "judge,item,rank\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n"
    with refusal("is 'TOTAL' an item? If it is a total, remove its rows; if not, name all items"):
        read_survey(write(tmp_path, text, "t.csv"))
    survey = read_survey(write(tmp_path, text, "t.csv"), items=["tea", "coffee", "TOTAL"])
    assert joined(survey) == ["tea coffee TOTAL", "coffee tea TOTAL"]


@pytest.mark.parametrize("places", ["d1,d2,d3", "1,2,3", "1st,2nd,3rd"])
def test_a_column_beside_numbered_places(tmp_path, places):
    rows = "Al,tea,coffee,cocoa,Rome\nBo,coffee,tea,cocoa,Oslo\nCy,tea,cocoa,coffee,Rome\n"
    path = write(tmp_path, f"name,{places},city\n{rows}", "t.csv")
    with refusal("is 'name' part of the ranking? Its name has no number", "judge='name'"):
        read_survey(path, "orders")
    with refusal("is 'city' part of the ranking?", "about='city'"):
        read_survey(path, "orders", judge="name")
    survey = read_survey(path, "orders", judge="name", about=["city"])
    assert joined(survey) == ["tea coffee cocoa", "coffee tea cocoa", "tea cocoa coffee"]
    rows = "tea,coffee,cocoa\ntea,cocoa,coffee\n"  # all have the same item first
    survey = read_survey(write(tmp_path, f"best,2nd,3rd\n{rows}", "t.csv"), "orders", columns="*")
    assert joined(survey) == ["tea coffee cocoa", "tea cocoa coffee"]


TOTAL_OF_COUNTS = {
    "orders": "1st,2nd,3rd,n\nAnn,Bob,Cid,10\nBob,Cid,Ann,5\nTotal,,,{}\n",
    "votes": "rank1,rank2,rank3,n\nAnn,Bob,Cid,10\nBob,Cid,Ann,5\nSumme,,,{}\n",
    "cell": "order,n\nAnn>Bob>Cid,10\nBob>Cid>Ann,5\nGrand total,{}\n",
}


@pytest.mark.parametrize("layout", TOTAL_OF_COUNTS)
def test_the_total_of_the_counts_is_no_ballot(tmp_path, layout):
    path = write(tmp_path, TOTAL_OF_COUNTS[layout].format(15), "t.csv")
    survey = read_survey(path, layout, count="n")
    assert joined(survey) == ["Ann Bob Cid"] * 10 + ["Bob Cid Ann"] * 5
    word = TOTAL_OF_COUNTS[layout].splitlines()[-1].partition(",")[0]
    assert f"left out, because {word!r} is in its first cell: {path}:4" in survey.notes
    # with a count of its own it is a name
    path = write(tmp_path, TOTAL_OF_COUNTS[layout].format(2), "t.csv")
    assert joined(read_survey(path, layout, count="n"))[-2:] == [word] * 2


@pytest.mark.parametrize(
    ("rows", "options", "expected"),
    [
        ("Ann,Bob\nBob,Cid\nAnn,Cid\n", {"layout": "pairs"}, ["Ann Bob", "Bob Cid", "Ann Cid"]),
        (
            "Ann>Bob>Cid,2\nCid>Ann>Bob,1\n",
            {"count": "2", "layout": "cell"},
            ["Ann Bob Cid", "Ann Bob Cid", "Cid Ann Bob"],
        ),
    ],
)
def test_a_title_over_two_columns_without_names(tmp_path, rows, options, expected):
    path = write(tmp_path, f"Games of 2024,\n{rows}", "t.csv")
    said, survey = read_with_answers(path)
    assert said == {"header": "none", **options}
    assert "left out above the first ballot: 'Games of 2024'" in survey.notes
    assert (
        pairs_in_order(survey) if options == {"layout": "pairs"} else joined(survey)
    ) == expected
