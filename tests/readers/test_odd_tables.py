"""Odd tables of many kinds: what is asked at once, and what is read with the answers."""

import datetime

import openpyxl
import pytest
from helpers.readers import joined, refusal, write

from numpyro_rankings import RankingsError, read_survey


def answers_of(path, **options):
    """The options with which a refused table is read, and what is then read."""
    with pytest.raises(RankingsError) as error:
        read_survey(path, **options)
    found = error.value.questions
    assert found.is_read, found.texts
    said = {x: list(y) if isinstance(y, tuple) else y for x, y in found.options.items()}
    return said, read_survey(path, **{**options, **found.options})


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
    said, survey = answers_of(write(tmp_path, text, file))
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
    said, survey = answers_of(tmp_path / "t.xlsx")
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
    said, survey = answers_of(tmp_path / "t.xlsx")
    assert said == {"transpose": True, "layout": "orders"} and survey.judges == ["Ida", "Jon"]
    assert joined(survey) == ["fig kiwi plum lime", "kiwi plum fig lime"]
    # places in a first column are no list
    path = write(tmp_path, "no,Ida,Jon\n1,fig,kiwi\n2,kiwi,plum\n3,plum,plum\n", "u.csv")
    survey = read_survey(path, "orders", transpose=True, columns=["Ida"])
    assert survey.judges == ["Ida"] and joined(survey) == ["fig kiwi plum"]


def test_counts_of_few_ballots_with_ties_are_no_long_table(tmp_path):
    path = write(tmp_path, "K,L,M,#\n2,1,3,40\n3,2,1,25\n2,2,1,31\n", "t.csv")
    said, survey = answers_of(path)
    assert said == {"count": "#", "layout": "ranks"}
    assert survey.rankings.num_rankings == 96 and survey.rankings.has_ties.sum() == 1


def test_means_of_tied_ranks_with_decimal_commas_are_no_lists(tmp_path):
    path = write(tmp_path, "id;a;b;c;d\nu;1;2,5;2,5;4\nv;2;1;3;4\nw;1;2;3,5;3,5\n", "t.csv")
    said, survey = answers_of(path)
    assert said == {"judge": "id", "layout": "ranks"}
    levels = survey.rankings.levels_of_items()[survey.rankings.row_index[survey.label_index]]
    assert levels.tolist() == [[0, 1, 1, 2], [1, 0, 2, 3], [0, 1, 2, 2]]
    # two numbers of items, as the first two choices
    path = write(tmp_path, "id;top\n1;2,5\n2;5,2\n3;3,2\n", "u.csv")
    assert joined(answers_of(path)[1]) == ["2 5", "5 2", "3 2"]


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
