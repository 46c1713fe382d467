"""Exports of survey tools: what they write of a ranking question, and what is refused."""

import re
from pathlib import Path

import openpyxl
import pandas as pd
import pytest
from helpers.readers import joined

from numpyro_rankings import RankingsError
from numpyro_rankings.cli import main
from numpyro_rankings.readers import read_survey
from numpyro_rankings.readers.answers import rank_in_words
from numpyro_rankings.readers.headers import name_columns

# ---------------------------------------------------------------------------------------------
# Exports: the text of the file, how to read it, the items, the lists
# ---------------------------------------------------------------------------------------------

QUALTRICS = """\
StartDate,ResponseId,Q4,Q5_1,Q5_2,Q5_3,Q5_3_TEXT,Q5_DO_1,Q5_DO_2,Q5_DO_3,Q6_1,Q6_2,Q6_3
Start Date,Response ID,Where do you live?,"Rank them, please - Ann","Rank them, please - Bob",\
"Rank them, please - Other","Rank them, please - Other - Text",\
"Rank them, please - Display Order - 1","Rank them, please - Display Order - 2",\
"Rank them, please - Display Order - 3",Known? - Ann,Known? - Bob,Known? - Other
"{""ImportId"":""startDate"",""timeZone"":""America/Denver""}","{""ImportId"":""_recordId""}",\
"{""ImportId"":""QID4""}","{""ImportId"":""QID5_1""}","{""ImportId"":""QID5_2""}",\
"{""ImportId"":""QID5_3""}","{""ImportId"":""QID5_3_TEXT""}","{""ImportId"":""QID5_DO_1""}",\
"{""ImportId"":""QID5_DO_2""}","{""ImportId"":""QID5_DO_3""}","{""ImportId"":""QID6_1""}",\
"{""ImportId"":""QID6_2""}","{""ImportId"":""QID6_3""}"
2024-03-01 10:00:00,R_1a,North,2,1,3,Cid,1,3,2,1,,
2024-03-01 10:05:00,R_2b,South,1,3,2,,2,1,3,1,1,
2024-03-01 10:07:00,R_3c,North,,,,,3,1,2,,,1
2024-03-01 10:09:00,R_4d,South,3,2,1,Dan,1,2,3,1,1,1
"""

SURVEYMONKEY = """\
Respondent ID,Collector ID,Start Date,"Rank these drinks, best first.",,,,How old are you?
,,,Tea,Coffee,Cocoa,Maté,Response
118001,44,03/01/2024,1,2,3,4,33
118002,44,03/01/2024,4,N/A,1,2,41
118003,44,03/02/2024,2,1,N/A,N/A,29
"""

GOOGLE = """\
Timestamp,Rank the sites [North Hill],Rank the sites [South Bay],Rank the sites [West],Comments
3/1/2024 10:00:00,1st choice,2nd choice,3rd choice,"nice, thanks"
3/1/2024 10:01:00,3rd choice,,1st choice,
3/1/2024 10:02:00,2nd choice,1st choice,,no
"""

# a grid the other way round: a row for each place
GOOGLE_PLACES = """\
Timestamp,Your top 3. [Third choice],Your top 3. [First choice],Your top 3. [Second choice]
3/1/2024,C,A,B
3/1/2024,,B,
3/1/2024,A,D,C
"""

MICROSOFT = """\
ID,Start time,Completion time,Email,Name,Order the talks.,Any comments?
1,3/1/24 10:00,3/1/24 10:02,anonymous,,"Bayes, again;Graphs;Trees;",
2,3/1/24 10:05,3/1/24 10:06,anonymous,,"Trees;Graphs;Bayes, again;",late; sorry
3,3/1/24 10:07,3/1/24 10:09,anonymous,,,
4,3/1/24 10:08,3/1/24 10:12,anonymous,,"Graphs;Bayes, again;Trees;",
"""

LIMESURVEY = """\
"id","submitdate","lastpage","startlanguage","G01Q02[1]","G01Q02[2]","G01Q02[3]","G01Q03"
"1","2024-03-01 10:00:00","1","en","A2","A1","A3","Y"
"2","2024-03-01 10:05:00","1","en","A3","","","N"
"4","2024-03-02 09:00:00","1","en","A1","A3","A2",""
"""

LIMESURVEY_FULL = """\
"Response ID";"Please rank the parties. [Rank 1]";"Please rank the parties. [Rank 2]";"Age"
"1";"Greens";"Labour";"31"
"2";"Labour";"";"N/A"
"3";"N/A";"N/A";"45"
"""

REDCAP = """\
record_id,redcap_survey_identifier,rank_ann,rank_bob,rank_cid,my_survey_complete
1,,1,2,3,2
2,,3,1,2,2
3,,,1,,0
"""

REDCAP_LABELS = """\
Record ID,Rank these people: Ann,Rank these people: Bob,Rank these people: Cid,Complete?
1,First choice,Second choice,Third choice,Complete
2,Third choice,First choice,Second choice,Complete
"""

MOODLE_QUESTIONNAIRE = """\
Response,Submitted on:,Institution,Course,ID,Q1_rank->Lectures,Q1_rank->Exercises,Q1_rank->Reading
1,01/03/2024 10:00:00,,MATH1,7,1,3,2
2,01/03/2024 10:10:00,,MATH1,9,2,1,3
"""

MOODLE_QUIZ = """\
"Last name","First name",State,"Response 1","Response 2"
Able,Ann,Finished,"Mercury; Venus; Earth","True"
Best,Bob,Finished,"Venus; Mercury; Earth","False"
"""

GOOD = {
    "sizes in a cell": (
        "id,list\na,1.5l;2.7l\nb,2.7l;1.5l\n",
        {"layout": "cell", "judge": "id", "columns": "list"},
        "1.5l 2.7l",
        ["1.5l 2.7l", "2.7l 1.5l"],
    ),
    "Qualtrics": (
        QUALTRICS,
        {"layout": "ranks", "columns": "Q5_*", "judge": "ResponseId", "about": ["Q4"]},
        "Ann Bob Other",
        ["Bob Ann Other", "Ann Other Bob", "Other Bob Ann"],
    ),
    "Qualtrics, by the question": (
        QUALTRICS,
        {"layout": "ranks", "columns": "Rank them, please*", "judge": "Response ID"},
        "Ann Bob Other",
        ["Bob Ann Other", "Ann Other Bob", "Other Bob Ann"],
    ),
    "Qualtrics, three names": (
        QUALTRICS,
        {"layout": "ranks", "columns": ["Q5_3", "Q5_1", "Q5_2"], "header_rows": 3},
        "Other Ann Bob",
        ["Bob Ann Other", "Ann Other Bob", "Other Bob Ann"],
    ),
    "Qualtrics, two header rows": (
        "StartDate,Q5_1,Q5_2\nStart Date,Rank - Ann,Rank - Bob\n2024-03-01,2,1\n2024-03-02,1,2\n",
        {"layout": "ranks", "columns": "Q5_?"},
        "Ann Bob",
        ["Bob Ann", "Ann Bob"],
    ),
    "SurveyMonkey": (
        SURVEYMONKEY,
        {
            "layout": "ranks",
            "columns": "Rank these*",
            "judge": "Respondent ID",
            "about": "How old are you?",
            "missing": "N/A",
            "gaps": "close",
        },
        "Tea Coffee Cocoa Maté",
        ["Tea Coffee Cocoa Maté", "Cocoa Maté Tea", "Coffee Tea"],
    ),
    "SurveyMonkey, the question in each column": (
        "ID,Rank,Rank,Rank\n,Tea,Milk,Water\n1,2,1,3\n2,1,3,2\n",
        {"layout": "ranks", "columns": "Rank"},
        "Tea Milk Water",
        ["Milk Tea Water", "Tea Water Milk"],
    ),
    "Google Forms": (
        GOOGLE,
        {"layout": "ranks", "columns": "Rank the sites*", "gaps": "close"},
        "North Hill South Bay West",
        ["North Hill South Bay West", "West North Hill", "South Bay North Hill"],
    ),
    "Google Forms, a row for each place": (
        GOOGLE_PLACES,
        {"columns": "Your top 3. [*]", "layout": "orders"},
        "A B C D",
        ["A B C", "B", "D C A"],
    ),
    "Microsoft Forms": (
        MICROSOFT,
        {"layout": "cell", "columns": "Order the talks.", "judge": "ID"},
        "Bayes, again Graphs Trees",
        ["Bayes, again Graphs Trees", "Trees Graphs Bayes, again", "Graphs Bayes, again Trees"],
    ),
    "Microsoft Forms, one column needs no layout": (
        MICROSOFT,
        {"columns": "Order*", "about": ["Name"]},
        "Bayes, again Graphs Trees",
        ["Bayes, again Graphs Trees", "Trees Graphs Bayes, again", "Graphs Bayes, again Trees"],
    ),
    "LimeSurvey, codes": (
        LIMESURVEY,
        {"layout": "orders", "columns": "G01Q02[*]", "judge": "id"},
        "A2 A1 A3",
        ["A2 A1 A3", "A3", "A1 A3 A2"],
    ),
    "LimeSurvey, full answers": (
        LIMESURVEY_FULL,
        {"columns": "Please rank*", "missing": ["N/A"], "about": ["Age"]},
        "Greens Labour",
        ["Greens Labour", "Labour"],
    ),
    "REDCap": (
        REDCAP,
        {"layout": "ranks", "columns": "rank_*", "judge": "record_id"},
        "ann bob cid",
        ["ann bob cid", "bob cid ann", "bob"],
    ),
    "REDCap, labels": (
        REDCAP_LABELS,
        {"layout": "ranks", "columns": "Rank these*", "judge": "Record ID"},
        "Ann Bob Cid",
        ["Ann Bob Cid", "Bob Cid Ann"],
    ),
    "Moodle, a questionnaire": (
        MOODLE_QUESTIONNAIRE,
        {"layout": "ranks", "columns": "Q1*", "judge": "ID"},
        "Lectures Exercises Reading",
        ["Lectures Reading Exercises", "Exercises Lectures Reading"],
    ),
    "Moodle, a quiz": (
        MOODLE_QUIZ,
        {"columns": "Response 1"},
        "Mercury Venus Earth",
        ["Mercury Venus Earth", "Venus Mercury Earth"],
    ),
    "LimeSurvey, codes and texts above": (
        '"G1[1]. Rank. [Rank 1]","G1[2]. Rank. [Rank 2]",x\nA2,A1,1\nA1,,2\n',
        {"columns": "G1*"},
        "A2 A1",
        ["A2 A1", "A1"],
    ),
    "Qualtrics, pick and rank": (
        "ResponseId,Q5_0_GROUP,Q5_0_1_RANK,Q5_0_2_RANK\nResponse ID,Sort - Ranks - Best,"
        'Sort - Ranks - Best - Ann - Rank,Sort - Ranks - Best - Bob - Rank\nR1,"Ann,Bob",1,2\n'
        "R2,Bob,,1\n",
        {"columns": "Q5_0_*_RANK", "layout": "ranks"},
        "Ann Bob",
        ["Ann Bob", "Bob"],
    ),
    "ranks in words need no layout": (
        GOOGLE,
        {"columns": "Rank the sites*", "gaps": "close"},
        "North Hill South Bay West",
        ["North Hill South Bay West", "West North Hill", "South Bay North Hill"],
    ),
    "items in another order": (
        "Q [A],Q [B]\n1,2\n2,1\n",
        {"columns": "Q*", "layout": "ranks", "items": ["B", "A"]},
        "B A",
        ["A B", "B A"],
    ),
    "items by their headers": (
        "Q [A],Q [B]\n1,2\n2,1\n",
        {"columns": "Q*", "layout": "ranks", "items": ["Q [B]", "Q [A]"]},
        "Q [B] Q [A]",
        ["Q [A] Q [B]", "Q [B] Q [A]"],
    ),
    "numbers that are parts of names": (
        "id,order\n1,1. A;2. B\n2,2. B;1. A\n",
        {"columns": "order", "items": ["1. A", "2. B"]},
        "1. A 2. B",
        ["1. A 2. B", "2. B 1. A"],
    ),
    "a row of totals": (
        "id,Q1: Ann,Q1: Bob,n\na,1,2,1\nb,2,1,1\nTotal,3,3,2\nMean,1.5,1.5,1\n",
        {"layout": "ranks", "columns": ["Q1: Ann", "Q1: Bob"], "judge": "id"},
        "Ann Bob",
        ["Ann Bob", "Bob Ann"],
    ),
    "columns of the same name elsewhere": (
        "id,Why?,Q1 [A],Q1 [B],Why?,\n1,x,1,2,y,#REF!\n2,,2,1,z,\n",
        {"layout": "ranks", "columns": "Q1*"},
        "A B",
        ["A B", "B A"],
    ),
    "lists of Python": (
        "id,list\n1,\"['A', 'B, C']\"\n2,\"['B, C', 'A']\"\n",
        {"layout": "cell", "columns": "list"},
        "A B, C",
        ["A B, C", "B, C A"],
    ),
    "lists of numbers": (
        'id,list\n1,"[3, 1]"\n2,"[1, 3]"\n',
        {"layout": "cell", "columns": "list"},
        "3 1",
        ["3 1", "1 3"],
    ),
    "numbers between the items": (
        "id,list\n1,1. A 2. B C\n2,1) B C 2) A\n3,1. A\n",
        {"layout": "cell", "columns": "list"},
        "A B C",
        ["A B C", "B C A", "A"],
    ),
    "the ends in words": (
        "A,B,C\n1 best,2,3. Worst\n3. Worst,2,1 best\n",
        {"layout": "ranks"},
        "A B C",
        ["A B C", "C B A"],
    ),
    "several codes that begin with a sign": (
        "A,B,C\n1,2,-99\n-1,-,1\n",
        {"layout": "ranks", "missing": "-99,-1,-"},
        "A B C",
        ["A B", "C"],
    ),
    "the highest number first": (
        "Ann,Bob,Cid\n3,2,1\n1,3,2\n,3,2\n",
        {"layout": "ranks", "highest_first": True},
        "Ann Bob Cid",
        ["Ann Bob Cid", "Bob Cid Ann", "Bob Cid"],
    ),
    "three points for the first": (
        "points_A,points_B,points_C,points_D\n3,2,1,\n,1,2,3\n",
        {"layout": "ranks", "highest_first": True, "columns": "points_*"},
        "A B C D",
        ["A B C", "D C B"],
    ),
    "the question says points, and 1 is first": (
        "Points: A,Points: B\n1,2\n2,1\n",
        {"layout": "ranks", "highest_first": False, "columns": "*"},
        "A B",
        ["A B", "B A"],
    ),
    "1 is the best, in the question": (
        "(1 = best 3 = worst) [A],(1 = best 3 = worst) [B],(1 = best 3 = worst) [C]\n"
        "1,2,3\n3,2,1\n",
        {"layout": "ranks", "columns": "(1*"},
        "A B C",
        ["A B C", "C B A"],
    ),
    "1 is the best, in the cells": (
        "A,B,C\n1 (best),2,3 (worst)\n3 (worst),2,1 (best)\n",
        {"layout": "ranks"},
        "A B C",
        ["A B C", "C B A"],
    ),
    "codes for not ranked": (
        "A,B,C\n1,2,99\n99,N/A,1\n2,1,99.0\n",
        {"layout": "ranks", "missing": "N/A,99"},
        "A B C",
        ["A B", "C", "B A"],
    ),
    "0 for not ranked": (
        "A,B,C\n1,2,0\n0,2,1\n",
        {"layout": "ranks", "missing": [0]},
        "A B C",
        ["A B", "C B"],
    ),
    "long, in words": (
        "judge,item,rank\na,A,2nd\na,B,1st\nb,A,first\nb,B,refused\n",
        {"layout": "long", "missing": "refused"},
        "A B",
        ["B A", "A"],
    ),
    "long, the highest first": (
        "judge,item,points\na,A,2\na,B,1\nb,A,1\nb,B,2\n",
        {"layout": "long", "rank": "points", "highest_first": True},
        "A B",
        ["A B", "B A"],
    ),
    "cells with a line for each item": (
        'id,list\n1,"A, x\nB\nC"\n2,"C\nA, x"\n',
        {"layout": "cell", "columns": "list", "separator": "newline"},
        "A, x B C",
        ["A, x B C", "C A, x"],
    ),
    "cells with numbered lines": (
        'id,list\n1,"1. A\n2. B\n3. C"\n2,"1. C\n2. A"\n',
        {"layout": "cell", "judge": "id"},
        "A B C",
        ["A B C", "C A"],
    ),
    "cells with arrows": (
        "x\ty\nA > B > C\t1\nC>A\t2\n",
        {"columns": "x"},
        "A B C",
        ["A B C", "C A"],
    ),
    "cells of lists in JSON": (
        'id;order\n1;"[""A"",""B""]"\n2;"[""B"",""A""]"\n',
        {"columns": "order"},
        "A B",
        ["A B", "B A"],
    ),
    "cells with the items given": (
        'id,order\n1,"A; B, C; D"\n2,"D; A"\n',
        {"columns": "order", "items": ["A", "B, C", "D"]},
        "A B, C D",
        ["A B, C D", "D A"],
    ),
    "cells with blanks between the items": (
        "id,order\n1,a b c\n2,c a b\n",
        {"columns": "order", "separator": "space"},
        "a b c",
        ["a b c", "c a b"],
    ),
    "cells with empty places": (
        "id,order\n1,a||c\n2,c|a|\n3,b|b2\n",
        {"columns": "order", "gaps": "close"},
        "a c b b2",
        ["a c", "c a", "b b2"],
    ),
}


def read_text(tmp_path, text, options, file="export.csv"):
    path = tmp_path / file
    if file.endswith(".xlsx"):
        book = openpyxl.Workbook()
        for row in pd.read_csv(pd.io.common.StringIO(text), header=None, dtype=str).to_numpy():
            cells = [None if cell != cell else cell for cell in row]
            book.active.append([int(x) if x and x.isdecimal() else x for x in cells])
        book.save(path)
    else:
        path.write_text(text, encoding="utf-8")
    return read_survey(path, **options)


@pytest.mark.parametrize("name", GOOD)
def test_exports_are_read_as_they_are_meant(tmp_path, name):
    text, options, items, lists = GOOD[name]
    survey = read_text(tmp_path, text, options)
    assert " ".join(survey.rankings.items) == items
    assert joined(survey) == lists


@pytest.mark.parametrize("name", ["Qualtrics", "SurveyMonkey", "Google Forms", "REDCap"])
def test_exports_as_spreadsheets(tmp_path, name):
    text, options, items, lists = GOOD[name]
    survey = read_text(tmp_path, text, options, "export.xlsx")
    assert " ".join(survey.rankings.items) == items
    assert joined(survey) == lists


def test_what_was_read_is_told(tmp_path):
    text, options, _, _ = GOOD["Qualtrics"]
    survey = read_text(tmp_path, text, options)
    assert survey.judges == ["R_1a", "R_2b", "R_4d"]
    assert survey.about == {"Q4": ["North", "South", "South"]}
    assert survey.rows.tolist() == [4, 5, 7]
    path = tmp_path / "export.csv"
    assert survey.notes == [
        "3 rows name the columns, with ids and questions",
        "left out: Q5_3_TEXT, Q5_DO_1, Q5_DO_2, Q5_DO_3, which a survey tool writes beside the "
        "answers",
        "Q5_1, Q5_2, Q5_3 are the items Ann, Bob, Other; 8 other columns are left out",
        f"1 judge ranks nothing and is left out: {path}:6",
    ]
    text, options, _, _ = GOOD["SurveyMonkey"]
    notes = read_text(tmp_path, text, options).notes
    assert notes[0] == "2 rows name the columns, with questions and items"
    assert "read as not ranked: 'N/A' in 3 cells" in notes
    notes = read_text(tmp_path, GOOGLE, GOOD["Google Forms"][1]).notes
    assert "ranks in words: '1st choice' is 1, '2nd choice' is 2, '3rd choice' is 3" in notes
    notes = read_text(tmp_path, MICROSOFT, GOOD["Microsoft Forms"][1]).notes
    assert "column 'Order the talks.': the items are separated by ';'" in notes
    notes = read_text(tmp_path, *GOOD["three points for the first"][:2]).notes
    assert "the highest number, 3, is read as the first choice" in notes
    notes = read_text(tmp_path, *GOOD["a row of totals"][:2]).notes
    assert any("'Total', 'Mean' are in their first cells: " in x and "csv:4, " in x for x in notes)
    notes = read_text(tmp_path, *GOOD["codes for not ranked"][:2]).notes
    assert "read as not ranked: 'N/A' in 1 cell, '99' in 3 cells" in notes


def test_answers_that_only_look_as_if_they_had_slid():
    """Columns of numbers beside the ranks, and of names beside lists that are not complete."""
    frame = pd.DataFrame({"n": [3, 0, 7, 9], "A": [2, 1, 1, 2], "B": [1, 2, 2, 1], "C": None})
    assert joined(read_survey(frame, "ranks", about="n"))[0] == "B A"
    frame = pd.DataFrame({"best": ["A", "x", "y", "z"], "1st": ["B", "A", "A", "A"]})
    frame["2nd"] = [None, "B", None, "B"]
    assert joined(read_survey(frame, "orders", about="best"))[0] == "B"


def test_first_choices_only_are_read_from_either_end():
    frame = pd.DataFrame({"points A": [1, None], "points B": [None, 1]})
    assert joined(read_survey(frame, "ranks", columns="points *")) == ["A", "B"]


def test_names_that_pandas_gives(tmp_path):
    text, options, items, lists = GOOD["SurveyMonkey"]
    frame = pd.read_csv(pd.io.common.StringIO(text), keep_default_na=False)
    assert frame.columns[4] == "Unnamed: 4"
    survey = read_survey(frame, **options)
    assert " ".join(survey.rankings.items) == items and joined(survey) == lists


def test_rows_of_the_file_are_kept_without_names_of_judges():
    frame = pd.DataFrame({"x": [1, None, 2, 2], "y": [2, None, 1, 1]})
    survey = read_survey(frame, "ranks")
    assert survey.judges is None and survey.rows.tolist() == [1, 3, 4]
    frame["n"] = [1, 1, 2, 1]
    assert read_survey(frame, "ranks", count="n").rows.tolist() == [1, 3, 3, 4]


@pytest.mark.parametrize(
    ("labels", "patterns", "expected"),
    [
        (["Q5: Rank the candidates [Ann]", "Q5: Rank the candidates [Bob]"], (), "Ann|Bob"),
        (["Rank these - Ann", "Rank these - Anna"], (), "Ann|Anna"),
        (["Rank - Ann - Rank", "Rank - Bob - Rank"], (), "Ann|Bob"),
        (["New York", "New Jersey"], (), "New York|New Jersey"),
        (["Rank New York", "Rank New Jersey"], ("Rank *",), "New York|New Jersey"),
        (["rank_new_york", "rank_new_jersey"], ("rank_*",), "new_york|new_jersey"),
        (["new_york", "new_jersey"], (), "new_york|new_jersey"),
        (["Q: A (red)", "Q: B (red)"], (), "A|B"),
        (["Q: A (red)", "Q: A (blue)"], (), "A (red)|A (blue)"),
        (["A [m]", "B [f]"], (), "A [m]|B [f]"),
        (["Q [A]", "Q []"], (), "Q [A]|Q []"),
        (["Q: ", "Q: A"], (), "Q:|Q: A"),
        (["Q5->A", "Q5->B"], (), "A|B"),
        (["Rank?\nA", "Rank?\nB"], (), "A|B"),
        (["Q. id", "Q. name"], (), "Q. id|Q. name"),  # "id" is the judge
        (["Only one"], (), "Only one"),
        (["Q5_ann", "Q5_bob"], ("Q5*",), "ann|bob"),
    ],
)
def test_names_of_items_are_what_is_left_of_the_headers(labels, patterns, expected):
    assert "|".join(name_columns(labels, patterns, {"id"})) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("1.0", 1),
        ("1,0", 1),
        ("1st", 1),
        ("2. Choice", 2),
        ("2nd choice", 2),
        ("3rd Place", 3),
        ("first", 1),
        ("Twelfth choice", 12),
        ("Rank 3", 3),
        ("rank_3", 3),
        ("#4", 4),
        ("No. 5", 5),
        ("Choice 2", 2),
        ("3 (worst)", 3),
        ("1 - most important", 1),
        ("1 = best", 1),
        ("4th (of the teams)", 4),
        ("2. Wahl", 2),
        ("Platz 3", 3),
        ("1er choix", 1),
        ("2e", 2),
        ("4.", 4),
        ("1.5", None),
        ("1-2", None),
        ("2024-03-01", None),
        ("1/3/2024", None),
        ("5 stars", None),
        ("5 points", None),
        ("Ann", None),
        ("Firstly Ann", None),
        ("", None),
        ("10:30", None),
        ("-1", None),
    ],
)
def test_ranks_in_words(text, expected):
    rank = rank_in_words(text)
    assert (None if rank is None else rank[0]) == expected


# ---------------------------------------------------------------------------------------------
# What is refused: the file, how it is read, and parts of the message
# ---------------------------------------------------------------------------------------------

RANKS = {"layout": "ranks"}
LIST = {"layout": "cell", "columns": "list"}
BAD = {
    # files that are no rankings
    "ticks of 0 and 1": (
        "id,A,B,C\na,1,0,1\nb,0,0,1\n",
        {**RANKS, "judge": "id"},
        ["bad.csv:2", "'A' is '1', 'B' is '0'", "which items were chosen", "--columns"],
    ),
    "ticks of 1": (
        "A,B,C\n1,,\n1,1,\n",
        RANKS,
        ["bad.csv:3", "'A' is '1', 'B' is '1'", "which items were chosen"],
    ),
    "ticks of words": (
        "Q [A],Q [B]\nChecked,Unchecked\nChecked,Checked\n",
        {**RANKS, "columns": "Q*"},
        ["bad.csv:2", "'A' is 'Checked'", "which items were chosen"],
    ),
    "ticks of names": (
        "Q [A],Q [B]\nA,\nA,B\n",
        {**RANKS, "columns": "Q*"},
        ["bad.csv:3", "'B' is 'B'", "which items were chosen"],
    ),
    "ticks as orders": (
        "Q [A],Q [B],Q [C]\nA,,C\nA,B,\n",
        {"layout": "orders", "columns": "Q*"},
        ["bad.csv:2", "'Q [A]' is 'A'", "which items were chosen"],
    ),
    "ratings": (
        "A,B,C\n3,1,2\n3,3,2\n1,1,1\n",
        RANKS,
        ["bad.csv:3", "'A' and 'B' both have 3", "2 of 3 rows", "ratings"],
    ),
    "ratings in words": ("A,B\nGood,Bad\n", RANKS, ["bad.csv:2: column 'A'", "'Good'"]),
    "sums": (
        "A,B,C\n1,2,3\n2,1,3\n1,2,3\n1,2,3\n5,7,12\n",
        RANKS,
        ["bad.csv:6", "the sums of the columns", "remove it"],
    ),
    "means": ("A,B\n1,2\n2,1\n1,2\n1.33,1.67\n", RANKS, ["bad.csv:5", "the means of the columns"]),
    # rows that have slid
    "slid to the left": (
        "id,region,A,B,C\na,N,1,2,3\nb,S,3,1,2\nc,3,1,2,\nd,N,1,2,3\n",
        {**RANKS, "judge": "id", "about": ["region"]},
        ["bad.csv:4", "slid one column to the left", "'region' is '3'", "'C' is 'empty'"],
    ),
    "slid to the left, from behind": (
        "id,A,B,C,age\nx,1,2,3,50\ny,2,1,3,40\n2,1,3,30,\nz,3,1,2,20\n",
        {**RANKS, "columns": ["A", "B", "C"]},
        ["bad.csv:4", "slid one column to the left", "'id' is '2'", "'C' is '30'"],
    ),
    "slid to the right": (
        "A,B,C,region\n1,2,3,N\n,3,1,2\n2,1,3,S\n",
        {**RANKS, "about": ["region"]},
        ["bad.csv:3", "slid one column to the right", "'region' is '2'"],
    ),
    "slid names": (
        "id,region,1st,2nd\na,N,X,Y\nb,X,Y,\nc,S,Y,X\nd,S,X,Y\n",
        {"layout": "orders", "about": ["id", "region"]},
        ["bad.csv:3", "slid one column to the left", "'region' is 'X'", "'2nd' is 'empty'"],
    ),
    # which end is the first
    "points": (
        "Points [A],Points [B],Points [C]\n3,1,2\n1,2,3\n",
        {**RANKS, "columns": "Points*"},
        ["bad.csv:2", "has 'Points'", "A > C > B: add --highest-first", "B > C > A: add --no-hi"],
    ),
    "5 is the best": (
        "Q (3 = best) [A],Q (3 = best) [B],Q (3 = best) [C]\n3,1,2\n",
        RANKS,
        ["bad.csv:2", "'3 = best'", "--highest-first", "--no-highest-first"],
    ),
    "best in the cells": (
        "A,B\n2 (best),1 (worst)\n",
        RANKS,
        ["bad.csv:2", "'2 (best'", "A > B: add --highest-first"],
    ),
    "a score in a long table": (
        "judge,item,score\na,x,1\na,y,2\n",
        {"layout": "long", "rank": "score"},
        ["bad.csv:2: column 'score'", "has 'score'", "--highest-first"],
    ),
    "the last ranks only": (
        "A,B,C,D\n1,2,3,4\n,4,,3\n",
        RANKS,
        ["bad.csv:3", "B > D: add --highest-first", "D > B, with gaps: add --gaps close"],
    ),
    "the last ranks only, with gaps": (
        "A,B,C,D\n1,2,3,4\n,4,,3\n",
        {**RANKS, "gaps": "close"},
        ["bad.csv:3", "B > D: add --highest-first", "add --no-highest-first"],
    ),
    # words for no rank
    "N/A": ("A,B\n1,N/A\n", RANKS, ["bad.csv:2: column 'B'", "'N/A'", "--missing N/A"]),
    "99": ("A,B\n1,2\n1,99\n", RANKS, ["bad.csv:3: column 'B'", "'99'", "--missing 99"]),
    "-1": ("A,B\n2,1\n1,-1\n", RANKS, ["bad.csv:3: column 'B'", "'-1'", "--missing"]),
    "not ranked": ("A,B\n1,not ranked\n", RANKS, ["--missing 'not ranked'"]),
    "0 in some rows": ("A,B,C\n1,2,3\n1,2,0\n", RANKS, ["bad.csv:3: column 'C'", "--missing 0"]),
    "0 in every row": (
        "A,B,C\n0,1,2\n2,1,0\n",
        RANKS,
        ["bad.csv:2: column 'A'", "'0'", "start at 0", "--missing 0"],
    ),
    "N/A as an item": (
        "1st,2nd\nA,B\nB,N/A\n",
        {"layout": "orders"},
        ["bad.csv:3: column '2nd'", "is 'N/A' an item", "--missing N/A", "--items"],
    ),
    "a rank for missing": (
        "A,B\n1,2\n",
        {**RANKS, "missing": "2"},
        ["'2' cannot mean", "a rank of 2 items"],
    ),
    "an empty word for missing": ("A,B\n1,2\n", {**RANKS, "missing": ","}, ["empty text"]),
    # columns
    "no such columns": (
        "id,Q5_1,Q5_2\na,1,2\n",
        {**RANKS, "columns": "Q6_*"},
        ["no column is called 'Q6_*'", "'id', 'Q5_1', 'Q5_2'"],
    ),
    "a comma in a pattern": (
        '"Rank, please A","Rank, please B"\n1,2\n',
        {**RANKS, "columns": ["Rank", "please *"]},
        ["no column is called 'Rank'", "quotes"],
    ),
    "columns of two questions": (
        "Q1_1,Q1_2,Q10_1,Q10_2\n1,2,2,1\n",
        {**RANKS, "columns": "Q1*"},
        ["'Q1*' takes 'Q1_1' and 'Q10_1'", "'Q1_*'"],
    ),
    "the judge among the columns": (
        "id,A,B\na,1,2\n",
        {**RANKS, "columns": ["id", "A", "B"], "judge": "id"},
        ["'id' is named twice"],
    ),
    "one column": ("A,B\n1,2\n", {**RANKS, "columns": "A"}, ["at least 2 items, got 1"]),
    "columns of the same name": (
        "Q [A],Q [A],Q [B]\n1,2,3\n",
        {**RANKS, "columns": "Q*"},
        ["bad.csv:1", "two columns have the name 'Q [A]'"],
    ),
    "an error in a cell": (
        "id,A,B\n#REF!,1,2\nb,#REF!,1\n",
        {**RANKS, "columns": ["A", "B"]},
        ["bad.csv:3: column 'A'", "#REF!"],
    ),
    "columns of a long table": (
        "judge,item,rank\na,x,1\n",
        {"layout": "long", "columns": "r*"},
        ["columns picks", "layout long"],
    ),
    "no layout": (
        "Q [A],Q [B]\n1,2\n",
        {"columns": "Q*"},
        ["bad.csv:2: the layout is needed", "'Q [A]' has rank 1", "--layout cell"],
    ),
    # rows above the answers
    "names in two rows": (
        "Rank,,x\n1st,2nd,y\n1,2,A\n1,2,B\n",
        RANKS,
        ["bad.csv:1: column 2 has no name", "--header-rows 2"],
    ),
    "four header rows": (
        "A,B\n1,2\n",
        {**RANKS, "header_rows": 4},
        ["expected 1, 2 or 3", "--header-rows 4"],
    ),
    "nothing below": ("A,B\nx,y\n", {**RANKS, "header_rows": 2}, ["bad.csv:2", "no rows below"]),
    "an item in words in the second row": (
        "A,B\nAnn,Bob\n1,2\n",
        RANKS,
        ["bad.csv:2: column 'A'", "'Ann'"],
    ),
    "two columns are called so": (
        "ID,Rank,Rank\n,Tea,Milk\n1,1,2\n",
        {**RANKS, "columns": "Rank", "judge": "Rank"},
        ["2 columns have the name 'Rank'"],
    ),
    # cells with the whole order
    "two separators": (
        'id,list\na,A;B\nb,"A, x;B"\n',
        LIST,
        [
            "bad.csv:3: column 'list'",
            "it is ['A', 'x;B']",
            "--separator semicolon it is ['A, x', 'B']",
            "--separator comma it is ['A', 'x;B']",
        ],
    ),
    "a long table with a code": (
        "judge,item,rank\na,x,1\na,y,2\na,z,99\n",
        {"layout": "long", "gaps": "close", "highest_first": True},
        ["bad.csv:4: column 'rank'", "'99'", "--missing 99"],
    ),
    "a rank that is to mean nothing": (
        "judge,item,rank\na,x,1\na,y,2\na,z,3\n",
        {"layout": "long", "missing": "3"},
        ["'3' cannot mean", "it is a rank of 3 items"],
    ),
    "codes with names": (
        "Q [1],Q [2]\n2 - Tea,1 - Milk\n1 - Milk,2 - Tea\n",
        {"columns": "Q*"},
        ["the layout is needed", "'Q [1]' has rank 2 - Tea", "'2 - Tea' is at place 'Q [1]'"],
    ),
    "no list in brackets": (
        'id,list\na,"[{[]: 1}]"\n',
        LIST,
        ["bad.csv:2: column 'list'", "what separates the items"],
    ),
    "ranks with their number": (
        "Q [A],Q [B],Q [C]\n1/3,3/3,2/3\n2/3,,1/3\n",
        {"columns": "Q*"},
        ["bad.csv:2: column 'A'", "expected a rank", "'1/3'", "write the number alone"],
    ),
    "ranks of a tie": (
        "Q [A],Q [B],Q [C]\n1.5,3.5,1.5\n",
        {"columns": "Q*"},
        ["bad.csv:2: column 'A'", "expected a rank", "'1.5'"],
    ),
    "ranks with their number in a cell": (
        "id,list\na,1/2 A; 2/2 B\n",
        LIST,
        ["bad.csv:2", "'1/2 A' seems to be an item and its rank"],
    ),
    "no separator": ("id,list\na,A B\nb,B A\n", LIST, ["bad.csv:2: column 'list'", "'A B'"]),
    "twice in a cell": ("id,list\na,A;B\nb,B;A;B\n", LIST, ["bad.csv:3", "'B' is listed twice"]),
    "names that were cut off": (
        "id,list\na,Candida...; Candida...\n",
        LIST,
        ["bad.csv:2", "listed twice", "cut off"],
    ),
    "a hole in a cell": ("id,list\na,A;;B\n", LIST, ["bad.csv:2", "place 2 is empty", "--gaps"]),
    "half a tie in a cell": ("id,list\na,A>B=\n", LIST, ["bad.csv:2", "'B='", "empty name"]),
    "an unknown item in a cell": (
        "id,list\na,A;B\nb,A;b\n",
        {**LIST, "items": ["A", "B"]},
        ["bad.csv:3: column 'list'", "no item 'b'", "expected A, B"],
    ),
    "numbers in a cell": (
        "id,list\na,2. A; 1. B\n",
        LIST,
        ["bad.csv:2", "numbered 2, 1", "without numbers"],
    ),
    "an item and its rank": (
        "id,list\na,A:1;B:2\n",
        LIST,
        ["bad.csv:2", "'A:1' seems to be an item and its rank", "--items"],
    ),
    "half a list": (
        'id,list\na,"[A (hot), B"\n',
        LIST,
        ["bad.csv:2", "has a bracket without its other half"],
    ),
    "a list in brackets with an unknown item": (
        'id,list\na,"[A, B]"\n',
        {**LIST, "items": ["A", "C"]},
        ["bad.csv:2", "there is no item 'B'", "expected A, C"],
    ),
    "a list in brackets without quotes": (
        "id,list\na,[A, B]\n",
        LIST,
        ["bad.csv:2", "3 cells, expected 2", "put a list in brackets into quotes"],
    ),
    "a list as NumPy writes it": (
        "id,list\na,['A' 'B']\n",
        LIST,
        ["bad.csv:2", "what separates the items", "--separator"],
    ),
    "a second code for no rank": (
        "A,B\n1,-99\nN/A,1\n",
        {**RANKS, "missing": "-99"},
        ["bad.csv:3: column 'A'", "add --missing=-99,N/A"],
    ),
    "no rank in a cell": (
        "id,list\na,A;B\nb,A;none\n",
        LIST,
        ["is 'none' an item", "--missing none"],
    ),
    "two columns of cells": (
        "id,list,more\na,A;B,x\n",
        {"layout": "cell"},
        ["what is 'id' beside the lists in 'list'?", "--judge id", "--columns list"],
    ),
    "two columns of lists": (
        "list,more\nA;B,B;A\n",
        {"layout": "cell"},
        ["has one column, not 2", "--columns"],
    ),
    "a separator of columns": ("A,B\n1,2\n", {**RANKS, "separator": ";"}, ["layout cell"]),
    "a separator in no cell": (
        "id,list\na,A;B\n",
        {**LIST, "separator": ">"},
        ["bad.csv:2", "'>'"],
    ),
    "no number of an item": (
        "Points: A,Points: B\n3,1\n1,2\n",
        {**RANKS, "columns": "Points*", "highest_first": True},
        ["bad.csv:2: column 'A'", "rank 3, but there are 2 items"],
    ),
    "an empty separator": ("id,list\na,A;B\n", {**LIST, "separator": ""}, ["empty"]),
    "the highest of an order": (
        "1st,2nd\nA,B\n",
        {"layout": "orders", "highest_first": True},
        ["highest_first goes with ranks"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_ranking_is_refused_by_row_and_column(tmp_path, monkeypatch, name):
    text, options, parts = BAD[name]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RankingsError) as error:
        read_text(Path(), text, options, "bad.csv")
    message = str(error.value)
    assert "\n" not in message and "--" not in message
    for part in parts:  # options are those of a command, see below
        assert re.split("(?:add |with )?--", part)[0] in message


def flags(options):
    """The options of the command line that say the same as those of Python."""
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            yield flag if value else flag.replace("--", "--no-")
        elif isinstance(value, list):
            yield from (flag, ",".join(f'"{x}"' for x in value))
        else:
            text = str(value)
            is_list = name in ("columns", "about") and "," in text
            yield from (flag, f'"{text}"' if is_list else text)


@pytest.mark.parametrize("name", BAD)
def test_the_command_refuses_them_and_writes_nothing(tmp_path, monkeypatch, capsys, name):
    text, options, parts = BAD[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text(text, encoding="utf-8")
    assert main(["fit", "bad.csv", *flags(options), "--out", "out"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("numpyro-rankings: error: ") and "Traceback" not in shown
    assert all(part in shown for part in parts if "empty" not in part)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["bad.csv"]


@pytest.mark.parametrize("name", GOOD)
def test_the_command_reads_them(tmp_path, monkeypatch, capsys, name):
    text, options, _, lists = GOOD[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(text, encoding="utf-8")
    assert main(["describe", "good.csv", *flags(options)]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(f"{len(lists)} rankings of ")


@pytest.mark.parametrize("word", ["Average rank", "Overall", "Final ranking", "Consensus", "Σ"])
def test_a_summary_below_the_judges_is_none(tmp_path, word):
    rows = f"judge,Tea,Milk,Maté\na,1,2,3\nb,2,1,3\nSD,3,1,2\n{word},2,1,3\n"
    (tmp_path / "t.csv").write_text(rows, encoding="utf-8")
    survey = read_survey(tmp_path / "t.csv", "ranks", judge="judge")
    assert list(survey.judges) == ["a", "b", "SD"]
    assert any(f"{word!r} is in its first cell" in x and "csv:5" in x for x in survey.notes)
