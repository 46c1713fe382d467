"""Long tables and pairs as strangers write them: what is asked, and what is read with answers."""

import pandas as pd
import pytest
from helpers.readers import joined, read_with_answers, refusal, write_rows

from numpyro_rankings import RankingsError, read_survey


def preferences(survey):
    """What each judge prefers to what, ``a>b``, in the order of the file."""
    orders = survey.rankings
    rows = orders.row_index[survey.label_index].tolist()
    return [
        sorted(
            f"{orders.items[one]}>{orders.items[two]}"
            for i, one in enumerate(orders.listed[row].tolist())
            for j, two in enumerate(orders.listed[row].tolist())
            if one >= 0 and two >= 0 and orders.prefers[row, i, j]
        )
        for row in rows
    ]


def table(tmp_path, text, kind):
    """Write a table as a file of a kind, or as a data frame."""
    rows = [line.split(",") for line in text.splitlines()]
    if kind == "frame":
        return pd.DataFrame(rows[1:], columns=rows[0])
    return write_rows(tmp_path / f"t.{kind}", rows)


KINDS = pytest.mark.parametrize("kind", ["csv", "xlsx", "frame"])
OF_JUDGES = "{},winner,loser\nx,a,b\nx,b,c\ny,c,a\ny,a,b\nz,a,c\n"


@KINDS
@pytest.mark.parametrize(
    "name", ["judge", "Voter", "respondent", "user_id", "annotator", "subject"]
)
def test_pairs_of_judges_are_taken_together(tmp_path, name, kind):
    source = table(tmp_path, OF_JUDGES.format(name), kind)
    options, survey = read_with_answers(source)
    assert options == {"judge": name} and survey.judges == ["x", "y", "z"]
    assert preferences(survey) == [["a>b", "a>c", "b>c"], ["a>b", "c>a", "c>b"], ["a>c"]]
    survey = read_survey(source, columns=["winner", "loser"])
    assert preferences(survey) == [["a>b"], ["b>c"], ["c>a"], ["a>b"], ["a>c"]]


def test_games_of_judges_are_taken_together(tmp_path):
    text = "participant,left,right,choice\nx,a,b,left\nx,b,c,left\ny,c,a,right\n"
    options, survey = read_with_answers(table(tmp_path, text, "csv"))
    assert options == {"judge": "participant"}
    assert preferences(survey) == [["a>b", "a>c", "b>c"], ["a>c"]]


def test_judges_who_all_contradict_themselves(tmp_path):
    text = "judge,winner,loser\nx,a,b\nx,b,a\ny,a,b\ny,b,c\ny,c,a\n"
    options, survey = read_with_answers(table(tmp_path, text, "csv"))
    assert options == {"judge": "judge", "cycles": "mistakes"}
    assert survey.rankings.wins.sum() == 5 and survey.judges == ["x", "y"]


COUNTED = "winner,loser,{}\na,b,{}\nb,c,3\nc,d,{}\n"


@KINDS
@pytest.mark.parametrize("name", ["count", "n", "votes", "times"])
@pytest.mark.parametrize("odd", ["-1", "2.5", "many", ""])
def test_counts_of_pairs_that_are_none(tmp_path, name, odd, kind):
    with refusal(
        f"column {name!r}: the column seems to say how often each comparison was made, but has",
        "write whole numbers from 0, and add count=",
        "columns=['winner', 'loser'] leaves the column out, so that each line counts once",
    ):
        read_survey(table(tmp_path, COUNTED.format(name, odd, 2), kind))


def test_counts_of_pairs_with_zeros(tmp_path):
    path = table(tmp_path, COUNTED.format("count", 2, 0), "csv")
    options, survey = read_with_answers(path)
    assert options == {"count": "count"}
    assert preferences(survey) == [["a>b"]] * 2 + [["b>c"]] * 3
    assert "1 line with 0 count left out: " in " ".join(survey.notes)


@KINDS
@pytest.mark.parametrize("name", ["number", "n", "count", "times"])
def test_numbers_of_trials_are_no_counts(tmp_path, name, kind):
    text = f"judge,{name},winner,loser\nx,1,a,b\ny,1,c,a\nx,2,b,c\ny,2,a,b\nx,3,a,c\n"
    survey = read_survey(table(tmp_path, text, kind), judge="judge")
    assert preferences(survey) == [["a>b", "a>c", "b>c"], ["a>b", "c>a", "c>b"]]
    assert f"columns left out: {name!r}" in survey.notes
    with refusal("seems to say how often each comparison was made: with judge="):
        read_survey(table(tmp_path, text.replace("x,3,", "x,4,"), kind), judge="judge")


@KINDS
@pytest.mark.parametrize("name, odd", [("votes", "53.2"), ("times", "3.5"), ("n", "few")])
def test_columns_of_other_texts_are_no_counts(tmp_path, name, odd, kind):
    survey = read_survey(table(tmp_path, COUNTED.format(name, odd, odd), kind))
    assert preferences(survey) == [["a>b"], ["b>c"], ["c>d"]]
    assert f"columns left out: {name!r}" in survey.notes


def test_counts_of_pairs_of_judges(tmp_path):
    text = "voter,home,away,winner,n\nx,a,b,a,2\nx,b,c,b,4\ny,a,b,b,1\n"
    options, survey = read_with_answers(table(tmp_path, text, "csv"))
    assert options == {"judge": "voter", "columns": ["home", "away", "winner"]}
    assert preferences(survey) == [["a>b", "a>c", "b>c"], ["b>a"]]


RESULTS = {
    "of a league": ("HomeTeam,AwayTeam,FTR,HTR", ["H", "D", "A"], "D"),
    "words": ("home,away,res,odds", ["home", "draw", "away"], "1.5"),
    "of a pool": ("home,away,result,day", ["1", "X", "2"], "5"),
    "of a pool by its own name": ("team1,team2,1X2,attendance", ["1", "x", "2"], "100"),
    "from the guests": ("guest,home,ftr,referee", ["A", "D", "H"], "Smith"),
}


@KINDS
@pytest.mark.parametrize("name", RESULTS)
def test_results_of_games(tmp_path, name, kind):
    header, (one, draw, two), rest = RESULTS[name]
    games = [("Ars", "Che", one), ("Liv", "Mun", draw), ("Che", "Liv", two), ("Mun", "Ars", one)]
    text = "\n".join([header, *(",".join((*x, rest)) for x in games)])
    survey = read_survey(table(tmp_path, text, kind), ties="drop")
    assert preferences(survey) == [["Ars>Che"], ["Liv>Che"], ["Mun>Ars"]]


OTHER_RESULTS = {
    "beside a guess": ("home,away,guess,FTR", ["A,H", "H,D", "D,A"]),
    "beside what looks like one": ("home,away,x1,FT_Result", ["A,H", "H,D", "D,A"]),
    "called so": ("home,away,round,res", ["3,H", "3,D", "3,A"]),
    "the only ones": ("home,away,what,day", ["H,1", "D,2", "A,2"]),
}


@KINDS
@pytest.mark.parametrize("name", OTHER_RESULTS)
def test_which_column_has_the_results(tmp_path, name, kind):
    header, (one, two, three) = OTHER_RESULTS[name]
    text = f"{header}\na,b,{one}\nb,c,{two}\nc,a,{three}\n"
    survey = read_survey(table(tmp_path, text, kind), ties="drop")
    assert preferences(survey) == [["a>b"], ["a>c"]]


@pytest.mark.parametrize(
    "header, rows",
    [
        ("home,away,group", ["A", "D", "A"]),
        ("home,away,side", ["H", "A", "H"]),
        ("home,away,said,seen", ["H,A", "D,H", "A,D"]),
    ],
)
def test_columns_that_may_have_results_are_asked_about(tmp_path, header, rows):
    text = "\n".join([header, *map(",".join, zip(("a,b", "b,c", "c,a"), rows, strict=True))])
    source = table(tmp_path, text + "\n", "csv")
    with refusal("does each row compare the two items in 'home' and 'away'? If so, add layout="):
        read_survey(source)
    survey = read_survey(source, "pairs", columns=["home", "away"])
    assert preferences(survey) == [["a>b"], ["b>c"], ["c>a"]]
    names = header.split(",")[:3]
    survey = read_survey(source, "pairs", columns=names, ties="drop")
    assert survey.notes[0] == "the pairs are in the columns " + ", ".join(map(repr, names))


@pytest.mark.parametrize("name", ["tip", "HTR", "prediction", "guess"])
def test_forecasts_and_half_times_are_no_results(tmp_path, name):
    text = f"home,away,{name}\na,b,H\nb,c,D\nc,a,A\n"
    with refusal("does each row compare the two items in 'home' and 'away'? If so, add layout="):
        read_survey(table(tmp_path, text, "csv"))


JOINT = {
    "signs behind": ["1=", "1=", "3"],
    "signs before": ["=1", "= 1", "3"],
    "golf": ["T1", "T-1", "3"],
    "golf behind": ["1T", "1 t", "3"],
    "words": ["joint 1st", "1st equal", "3rd"],
    "more words": ["tied 1", "1 (tie)", "3"],
}


@KINDS
@pytest.mark.parametrize("name", JOINT)
def test_joint_ranks_are_ties(tmp_path, name, kind):
    one, two, three = JOINT[name]
    ranks = f"id,a,b,c\nx,{one},{two},{three}\ny,3,1,2\n"
    long = f"judge,item,rank\nx,a,{one}\nx,b,{two}\nx,c,{three}\ny,a,3\ny,b,1\ny,c,2\n"
    options, survey = read_with_answers(table(tmp_path, ranks, kind))
    assert options == {"judge": "id", "layout": "ranks"}
    for found in (survey, read_survey(table(tmp_path, long, kind))):
        assert preferences(found) == [["a>c", "b>c"], ["b>a", "b>c", "c>a"]]


def test_names_that_look_like_joint_ranks(tmp_path):
    text = "1st,2nd,3rd\nT1,T2,T3\nT3,T1,T2\n"
    assert joined(read_survey(table(tmp_path, text, "csv"))) == ["T1 T2 T3", "T3 T1 T2"]
    with refusal("expected a rank, a whole number from 1, or nothing, got 'T1'"):
        read_survey(pd.DataFrame({"a": ["T1", "T2"], "b": ["T2", "T1"]}), "ranks")


def long_table(columns, *judges):
    """A long table in which each judge ranks fig, kiwi and lime; ``{}`` of a column is a number."""
    lines = [",".join(columns)]
    for judge, ranks in judges:
        for k, (item, rank) in enumerate(zip(("fig", "kiwi", "lime"), ranks, strict=True)):
            said = {"judge": judge, "item": item, "rank": rank, "k": k}
            lines.append(",".join(str(columns[x]).format(**said) for x in columns))
    return "\n".join(lines) + "\n"


TWO_LISTS = ("x", (2, 1, 3)), ("y", (1, 3, 2))
LONG = {
    "price": ({"judge": "{judge}", "wine": "{item}", "price": "{k}.5", "rank": "{rank}"}, "wine"),
    "code": ({"voter": "{judge}", "sku": "{k}", "sort": "{item}", "pos": "{rank}"}, "sort"),
    "group": (
        {"judge": "{judge}", "wine": "{item}", "rank": "{rank}", "group": "of {judge}"},
        "wine",
    ),
    "place at which it was shown": (
        {"judge": "{judge}", "wine": "{item}", "shown": "{k}", "rank": "{rank}", "time": "1{k}"},
        "wine",
    ),
}


@KINDS
@pytest.mark.parametrize("name", LONG)
def test_long_tables_with_further_columns(tmp_path, name, kind):
    columns, item = LONG[name]
    options, survey = read_with_answers(table(tmp_path, long_table(columns, *TWO_LISTS), kind))
    assert joined(survey) == ["kiwi fig lime", "fig lime kiwi"] and survey.judges == ["x", "y"]
    assert options["layout"] == "long" and options["item"] == item
    assert any("left out: " in note for note in survey.notes)


def test_counts_of_long_tables(tmp_path):
    columns = {"judge": "{judge}", "item": "{item}", "rank": "{rank}", "count": "1"}
    text = long_table(columns, *TWO_LISTS)
    counted = text.replace("y,fig,1,1", "y,fig,1,4").replace("y,kiwi,3,1", "y,kiwi,3,4")
    counted = counted.replace("y,lime,2,1", "y,lime,2,4")
    options, survey = read_with_answers(table(tmp_path, counted, "csv"))
    assert options == {"count": "count"} and survey.rankings.num_rankings == 5
    # once in every line, and a number of each line, which is not one of each judge
    for found in (text, counted.replace("y,lime,2,4", "y,lime,2,9")):
        survey = read_survey(table(tmp_path, found, "csv"))
        assert joined(survey) == ["kiwi fig lime", "fig lime kiwi"]
        assert "1 other column is left out: 'count'" in survey.notes


CODED = "judge,item,rank\nx,a,1\nx,b,2\nx,c,{0}\ny,a,{0}\ny,b,1\ny,c,2\nz,a,2\nz,b,3\nz,c,1\n"


@KINDS
@pytest.mark.parametrize("code", ["9", "8", "99", "77"])
def test_codes_of_long_tables(tmp_path, code, kind):
    source = table(tmp_path, CODED.format(code), kind)
    options, survey = read_with_answers(source)
    assert options == {"missing": [code]}
    assert joined(survey) == ["a b", "b c", "c a b"]
    closed = read_survey(source, gaps="close") if code in "98" else None
    assert closed is None or joined(closed) == ["a b c", "b c a", "c a b"]


def test_a_rank_of_an_item_without_lines_is_no_code(tmp_path):
    text = CODED.format("4").replace("y,c,2", "y,c,3")
    options, survey = read_with_answers(table(tmp_path, text, "csv"))
    assert options == {"gaps": "close"} and joined(survey) == ["a b c", "b c a", "c a b"]


@KINDS
def test_lines_that_are_there_twice(tmp_path, kind):
    text = "judge,item,rank\nx,a,1\nx,b,2\nx,b,2\ny,b,1\ny,a,2\nx,a,1\ny,a,2\n"
    source = table(tmp_path, text, kind)
    with refusal(
        "judge 'x' ranks 'b' twice, also in ",
        ", as 2 judges do, as in 2 other",
        "the lines say the same: duplicates='first' reads one of them",
    ):
        read_survey(source)
    options, survey = read_with_answers(source)
    assert options == {"duplicates": "first"} and joined(survey) == ["a b", "b a"]


def test_an_item_twice_with_other_ranks(tmp_path):
    text = "judge,item,rank\nx,a,1\nx,b,2\nx,a,3\ny,b,1\ny,a,2\n"
    source = table(tmp_path, text, "csv")
    with refusal(
        "t.csv:4: judge 'x' ranks 'a' twice, also in ", "t.csv:2; these are not two whole answers"
    ):
        read_survey(source)
    with refusal("several answers with different items, which cannot be told apart"):
        read_survey(source, duplicates="first")
    options, survey = read_with_answers(source)
    assert options == {"duplicates": "drop"} and joined(survey) == ["b a"]


@KINDS
def test_an_item_twice_in_an_order(tmp_path, kind):
    text = "id,1st,2nd,3rd\nx,a,b,a\ny,b,a,c\nz,c,a,b\nw,c,c,b\nv,a,c,b\n"
    source = table(tmp_path, text, kind)
    with refusal(
        "column '3rd': 'a' is listed twice, as in 1 other", "layout='votes' reads a name once"
    ):
        read_survey(source, judge="id")
    options, survey = read_with_answers(source)
    assert options == {"judge": "id", "layout": "votes"}
    assert joined(survey) == ["a b", "b a c", "c a b", "c b", "a c b"]


POINTS = "{},Oslo,Rome,Bonn\n{},a,b,a\n{},c,a,b\n{},b,c,c\n"


@KINDS
@pytest.mark.parametrize("numbers", [("12", "10", "8"), ("3", "2", "1"), ("5", "3", "1")])
def test_points_at_the_places_of_judges_in_columns(tmp_path, numbers, kind):
    down = table(tmp_path, POINTS.format("Points", *numbers), kind)
    options, survey = read_with_answers(down)
    assert options == {"transpose": True, "layout": "orders"}
    assert survey.judges == ["Oslo", "Rome", "Bonn"]
    assert joined(survey) == ["a c b", "b a c", "a b c"]
    up = table(tmp_path, POINTS.format("points", *numbers[::-1]), kind)
    _, survey = read_with_answers(up)
    assert joined(survey) == ["b c a", "c a b", "c b a"]


BEST_IN_ROWS = (
    "respondent,task,item,choice\n1,1,a,{0}\n1,1,b,{2}\n1,1,c,{1}\n1,2,d,{0}\n1,2,a,{2}\n"
)


@KINDS
@pytest.mark.parametrize("marks", [("best", "worst", ""), ("Most", "Least", ""), ("1", "-1", "0")])
def test_best_and_worst_in_rows_of_a_long_table(tmp_path, marks, kind):
    for columns in ("respondent,task,item,choice", "id,set,option,answer"):
        text = BEST_IN_ROWS.replace("respondent,task,item,choice", columns).format(*marks)
        with refusal(f"{columns.split(',')[-1]!r} seems to mark the best and the worst of rows"):
            read_survey(table(tmp_path, text, kind))


SIGNS = "id,a,b,c\n1,1,-1,-1\n2,1,2,3\n3,-1,1,2\n4,1,3,2\n"


@KINDS
def test_a_code_below_0_marks_no_worst_item(tmp_path, kind):
    source = table(tmp_path, SIGNS, kind)
    survey = read_survey(source, "ranks", judge="id", missing=["-1"])
    assert joined(survey) == ["a", "a b c", "b c", "a c b"]
    options, survey = read_with_answers(source)
    assert options == {"judge": "id", "layout": "ranks", "missing": ["-1"]}
    assert joined(survey) == ["a", "a b c", "b c", "a c b"]


@KINDS
@pytest.mark.parametrize("marks", [("1", "0", "-1"), ("best", "", "worst")])
def test_marks_beside_the_ranks_of_a_long_table(tmp_path, marks, kind):
    columns = {"judge": "{judge}", "item": "{item}", "rank": "{rank}", "mood": "m{k}"}
    text = long_table(columns, *TWO_LISTS)
    for k, mark in enumerate(marks):
        text = text.replace(f",m{k}\n", f",{mark}\n")
    survey = read_survey(table(tmp_path, text, kind))
    assert joined(survey) == ["kiwi fig lime", "fig lime kiwi"]
    assert "1 other column is left out: 'mood'" in survey.notes
    other = text.replace("judge,item,rank", "who,wine,place")
    options, survey = read_with_answers(table(tmp_path, other, kind))
    assert options == {"layout": "long", "judge": "who", "item": "wine", "rank": "place"}
    assert joined(survey) == ["kiwi fig lime", "fig lime kiwi"]


def test_marks_that_are_said_to_be_about_the_judges(tmp_path):
    text = "id,hue,a,b,view\n1,red,1,2,-1\n2,red,2,1,1\n3,tan,1,2,1\n"
    source = table(tmp_path, text, "csv")
    with refusal("'view' seems to mark the best", "about='view' if it is about the judges"):
        read_survey(source)
    survey = read_survey(source, "ranks", judge="id", about=["hue", "view"])
    assert joined(survey) == ["a b", "b a", "a b"]
    picked = read_survey(source, "ranks", judge="id", columns=["a", "b"])
    assert joined(picked) == joined(survey)


def test_best_and_worst_of_sets_of_judges(tmp_path):
    text = "respondent,set,best,worst\nx,1,a,b\nx,2,b,c\ny,1,b,a\ny,2,a,c\n"
    options, survey = read_with_answers(table(tmp_path, text, "csv"))
    assert options == {"judge": "respondent", "columns": ["best", "worst"], "layout": "pairs"}
    assert preferences(survey) == [["a>b", "a>c", "b>c"], ["a>c", "b>a", "b>c"]]


def test_columns_of_win_and_lose(tmp_path):
    survey = read_survey(table(tmp_path, "win,lose\na,b\nb,c\n", "csv"))
    assert preferences(survey) == [["a>b"], ["b>c"]]
    with refusal("the layout is needed"):  # numbers of games that judges have won
        read_survey(table(tmp_path, "win,lose\n1,2\n2,1\n", "csv"))


@KINDS
@pytest.mark.parametrize(
    "columns",
    [
        {"judge_id": "{judge}", "item_id": "1{k}", "rank": "{rank}"},
        {"user": "{judge}", "movie": "1{k}", "rank": "{rank}", "rating": "{k}"},
        {"name": "{judge}", "item": "1{k}", "rank": "{rank}"},
    ],
)
def test_long_tables_that_look_like_ranks(tmp_path, columns, kind):
    """Of items that have numbers, or have numbers beside them."""
    options, survey = read_with_answers(table(tmp_path, long_table(columns, *TWO_LISTS), kind))
    assert options["judge"] == next(iter(columns))
    assert joined(survey) == ["11 10 12", "10 12 11"] and survey.judges == ["x", "y"]


SEVERAL = "{},item,rank,{}\nx,a,1,Q1\nx,b,2,Q1\nx,c,1,Q2\nx,d,2,Q2\ny,b,1,Q1\ny,a,2,Q1\n"


@KINDS
@pytest.mark.parametrize("names", [("judge", "question"), ("respondent", "round")])
def test_several_lists_of_judges_in_a_long_table(tmp_path, names, kind):
    """The first of one list is not tied with the first of another."""
    source, judge = table(tmp_path, SEVERAL.format(*names), kind), names[0]
    with refusal(f"judges have several lists, one for each text in {names[1]!r}"):
        read_survey(source, judge=judge)
    assert read_survey(source, judge=judge, ties="exact").rankings.num_rankings == 2
    one = table(tmp_path, SEVERAL.format(*names).replace("x,c,1,Q2\nx,d,2,Q2\n", ""), kind)
    assert joined(read_survey(one, judge=judge)) == ["a b", "b a"]


def test_comparisons_in_cells_are_no_long_table(tmp_path):
    text = "id,pair,answer\n1,a vs b,a\n1,b vs c,c\n2,a vs b,b\n2,b vs c,b\n"
    with pytest.raises(RankingsError) as error:
        read_survey(table(tmp_path, text, "csv"))
    assert not error.value.questions.is_read


def test_numbers_beside_items_that_are_no_scores(tmp_path):
    text = "country,jury,points,to\nSE,1,12,NO\nSE,1,10,FI\nNO,1,12,SE\nNO,1,10,FI\n"
    with refusal("does each row compare two items, with what each scored"):
        read_survey(table(tmp_path, text, "csv"))
    with pytest.raises(RankingsError) as error:
        read_survey(table(tmp_path, text, "csv"))
    assert not error.value.questions.is_read


def test_weights_of_long_tables(tmp_path):
    columns = {"judge": "{judge}", "item": "{item}", "rank": "{rank}", "weight": "0.5"}
    options, survey = read_with_answers(table(tmp_path, long_table(columns, *TWO_LISTS), "csv"))
    assert options == {"weight": "weight"} and survey.weights.tolist() == [0.5, 0.5]


def test_the_items_are_not_what_judges_have_in_all_lines(tmp_path):
    columns = {"ballot_id": "{judge}", "precinct": "P1", "candidate": "{item}", "rank": "{rank}"}
    source = table(tmp_path, long_table(columns, *TWO_LISTS), "csv")
    options, survey = read_with_answers(source, layout="long")
    assert options["item"] == "candidate" and joined(survey) == ["kiwi fig lime", "fig lime kiwi"]
    source = table(tmp_path, long_table(columns, *TWO_LISTS).replace("fig,2", "fig,"), "csv")
    options, survey = read_with_answers(source, layout="long", judge="ballot_id", gaps="close")
    assert options["item"] == "candidate" and joined(survey) == ["kiwi lime", "fig lime kiwi"]


def test_signs_in_columns_of_items_are_not_marks_of_rows(tmp_path):
    text = "id,a,b,c,d\n1,1,0,-1,0\n2,0,1,0,-1\n3,1,-1,0,0\n"
    with refusal("has -1, as the best and the worst in each row"):
        read_survey(table(tmp_path, text, "csv"), "ranks", judge="id")


@pytest.mark.parametrize("columns", ["bid,item,rank", "bid,candidate,place", "bid,option,Position"])
@pytest.mark.parametrize("ranks", ["1 2 3", "1st 2nd 3rd", "First Second Third"])
@pytest.mark.parametrize("choice", ["", " choice"])
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize("are_tied", [False, True])
def test_columns_called_item_and_rank(tmp_path, columns, ranks, choice, kind, are_tied):
    """They are a long table, with ranks in words and ties, and in any order of the columns."""
    words = [x + choice for x in ranks.split()]
    second = 0 if are_tied else 1
    rows = [(1, "tea", 0), (1, "rum", second), (1, "gin", 2 - are_tied), (2, "rum", 0)]
    rows += [(2, "gin", 1), (3, "gin", 0), (3, "tea", 1)]
    for way in (1, -1):
        cells = [columns.split(","), *([str(k), x, words[y]] for k, x, y in rows)]
        path = write_rows(tmp_path / f"t.{kind}", [row[::way] for row in cells])
        said, survey = read_with_answers(path)
        named = zip(("judge", "item", "rank"), columns.split(","), strict=True)
        names = {x: y for x, y in named if x == "judge" or y.lower() not in ("item", "rank")}
        names = {x: y for x, y in names.items() if y != "Position"}
        assert said == {"layout": "long", **names}
        assert survey.judges == ["1", "2", "3"]
        if are_tied:
            levels = survey.rankings.levels_of_items()
            rows_of = survey.rankings.row_index[survey.label_index]
            assert levels[rows_of].tolist() == [[0, 0, 1], [-1, 0, 1], [1, -1, 0]]
        else:
            assert joined(survey) == ["tea rum gin", "rum gin", "gin tea"]
        given = {x: y for x, y in names.items() if x != "judge"}
        assert read_with_answers(path, layout="long", **given)[0] == {"judge": "bid"}


def test_columns_of_ranks_called_item_and_rank(tmp_path):
    path = write_rows(tmp_path / "t.csv", ["item rank taste".split(), "123", "213", "312"])
    said, survey = read_with_answers(path)
    assert said == {"layout": "ranks"} and joined(survey)[0] == "item rank taste"


@pytest.mark.parametrize("word", ["last", "k.A.", "letzter"])
@pytest.mark.parametrize("columns", ["Wähler Kandidat Platz", "client thing rang", "who what rank"])
def test_ids_are_not_the_ranks_beside_a_column_with_a_word(columns, word):
    who, what, rank = columns.split()
    rows = [(1, "Ann", "1"), (1, "Bob", "2"), (1, "Cid", word)]
    rows += [(2, "Ann", "2"), (2, "Bob", "1"), (2, "Cid", "3")]
    frame = pd.DataFrame(rows, columns=[who, what, rank])
    said, survey = read_with_answers(frame, layout="long")
    roles = {"judge": who, "item": what, **({} if rank == "rank" else {"rank": rank})}
    assert said == {**roles, "missing": [word]}
    assert joined(survey) == ["Ann Bob", "Bob Ann Cid"]
