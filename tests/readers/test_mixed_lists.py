"""Lists in cells with several marks, with numbers in front or beside them, and long tables."""

import pandas as pd
import pytest
from helpers.readers import joined, refusal, write

from numpyro_rankings import RankingsError, read_survey
from numpyro_rankings.readers.mixed_lists import numbers_before

MIXED = 'id,vote\na,Ann > Bob > none of these\nb,"Bob, Ann, Cid"\nc,"Ann, Bob"\nd,Cid\n'
LISTS = ["Ann Bob none of these", "Bob Ann Cid", "Ann Bob", "Cid"]


@pytest.mark.parametrize("separator", [None, ">", "comma", ","])
def test_marks_that_differ_from_row_to_row(tmp_path, separator):
    path = write(tmp_path, MIXED, "t.csv")
    for source in (path, pd.read_csv(path)):
        settings = {"layout": "cell", "columns": "vote", "judge": "id"}
        with refusal("separator='any'"):
            read_survey(source, separator=separator, **settings)
        survey = read_survey(source, separator="any", **settings)
        assert joined(survey) == LISTS
        assert "'>' in 1 text, ',' in 2 texts" in " ".join(survey.notes)


def test_semicolons_beside_commas_and_ties(tmp_path):
    text = "vote\nA;B;C\n" + '"B,A,C"\n' + "C\n"
    with refusal("what separates the items? With separator='any'", "separator='semicolon'"):
        read_survey(write(tmp_path, text, "t.csv"), "cell")
    survey = read_survey(tmp_path / "t.csv", "cell", separator="any")
    assert joined(survey) == ["A B C", "B A C", "C"]
    # tied items may have | between them, so that this comes last
    ties = write(tmp_path, "vote\nA>B>C\nA|B|C\nC\n", "u.csv")
    with refusal("With separator='>' it is ['A', 'B', 'C']; With separator='any'"):
        read_survey(ties)
    assert joined(read_survey(ties, separator="any")) == ["A B C", "A B C", "C"]
    with refusal("separator='any' goes with the layout cell"):
        read_survey(write(tmp_path, "1st,2nd\nA,B\nB,A\n", "v.csv"), separator="any")


def test_names_with_commas_stay_whole(tmp_path):
    text = 'vote\n"Smith, J > Doe, K"\n"Doe, K"\n"Doe, K > Smith, J"\n'
    survey = read_survey(write(tmp_path, text, "t.csv"), "cell", separator=">")
    assert survey.rankings.items == ("Smith, J", "Doe, K")


def test_numbers_that_are_parts_of_names():
    assert numbers_before(["7 Up > 3 Musketeers", "3 Musketeers > 7 Up"]) == []
    assert numbers_before(["1 A > 2 B", "1 B > 2 A"]) == []
    assert numbers_before(["2 A > B", "1 B > A"]) == [("2", "A > B"), ("1", "B > A")]
    assert numbers_before(["2 A > B", "B > A"]) == []


@pytest.mark.parametrize("layout", [None, "cell"])
def test_numbers_beside_lists_without_a_header(tmp_path, layout):
    path = write(tmp_path, "12,A>B>C\n5,B>A>C\n3,C>A\n", "t.csv")
    with refusal("the first row must name the columns"):
        read_survey(path, layout)
    with refusal("t.csv:1: the column '1' has a number beside each list: add count='1'"):
        read_survey(path, layout, header="none")
    survey = read_survey(path, "cell", header="none", count="1")
    assert joined(survey) == ["A B C"] * 12 + ["B A C"] * 5 + ["C A"] * 3
    ids = write(tmp_path, '1,"[A, B, C]"\n2,"[C, A, B]"\n4,"[B, C, A]"\n', "u.csv")
    with refusal("add judge='1' if it numbers the judges or count='1'"):
        read_survey(ids, layout, header="none")
    assert read_survey(ids, "cell", header="none", judge="1").judges == ["1", "2", "4"]


def test_a_column_beside_lists(tmp_path):
    text = 'age,answer\n31,"tea, milk"\n25,"milk, tea"\n'
    with refusal("what is 'age' beside the lists in 'answer'?", "add about='age'"):
        read_survey(write(tmp_path, text, "t.csv"))


LONG = ("j1,A,1", "j1,B,2", "j1,C,3", "j2,B,1", "j2,A,2", "j2,C,3")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
@pytest.mark.parametrize("header", [None, "v,c,p"])
def test_columns_of_a_long_table(tmp_path, order, header):
    rows = [*([header] if header else []), *LONG]
    text = "".join(",".join(row.split(",")[k] for k in order) + "\n" for row in rows)
    path = write(tmp_path, text, "t.csv")
    settings = {"layout": "long"} | ({} if header else {"header": "none"})
    names = list("vcp") if header else [str(order.index(k) + 1) for k in range(3)]
    judge, item, rank = names
    with refusal(f"with judge={judge!r}, item={item!r}, rank={rank!r}; the columns are"):
        read_survey(path, **settings)
    survey = read_survey(path, judge=judge, item=item, rank=rank, **settings)
    assert joined(survey) == ["A B C", "B A C"]
    if header is None:
        with refusal("or layout='long' if each row is one judge and one item"):
            read_survey(path, header="none")


def test_lists_are_no_items_at_places(tmp_path):
    path = write(tmp_path, "Ann,Bob\nA>B>C,B>A>C\nC>A,B>C\n", "t.csv")
    with refusal("t.csv:2: column 'Ann': 'A>B>C' seems to be a list, not the item at a place"):
        read_survey(path, "orders")
    one = write(tmp_path, "id,1st\n1,A>B>C\n2,C>A\n", "u.csv")
    with refusal("seems to be a list", "add layout='cell' if it is"):
        read_survey(one, "orders", judge="id")
    some = write(tmp_path, "1st,2nd\nA>B,C\nC,A>B\n", "v.csv")
    assert read_survey(some, "orders").rankings.items == ("A>B", "C")


def test_an_item_twice_is_no_code_where_all_are_short(tmp_path):
    path = write(tmp_path, "1st,2nd,3rd\nA,B,A\nB,C,A\n", "t.csv")
    with refusal("'A' is listed twice", below=90 + len(str(path))):
        read_survey(path, "orders")
    codes = write(tmp_path, "1st,2nd,3rd\nAnn,NR,NR\nBob,Cid,Ann\n", "u.csv")
    with refusal("'NR' is listed twice; if it means that nothing is ranked, add missing='NR'"):
        read_survey(codes, "orders")


def test_names_tied_in_one_list_are_known_in_others(tmp_path):
    path = write(tmp_path, 'vote\nA > B = C\n"B,C > A"\n"B,C"\n', "t.csv")
    survey = read_survey(path, "cell", separator=">")
    assert survey.rankings.items == ("A", "B", "C")


@pytest.mark.parametrize("word", ["then", "over", "before"])
def test_a_word_between_items(tmp_path, word):
    lists = ["green tea {0} milk {0} rum", "milk {0} green tea {0} rum", "rum {0} milk"]
    text = "\n".join(["list", *(x.format(word) for x in lists), ""])
    with pytest.raises(RankingsError, match=f"what separates the items. '{word}' does") as error:
        read_survey(write(tmp_path, text, "t.csv"), "cell")
    assert error.value.questions.options == {"separator": f" {word} "}
    survey = read_survey(tmp_path / "t.csv", "cell", separator=f" {word} ")
    assert joined(survey) == ["green tea milk rum", "milk green tea rum", "rum milk"]


@pytest.mark.parametrize("text", ["list\na >= b > c\nb > a > c\n", "id,list\n1,a >= b\n2,b >= a\n"])
def test_preferred_or_tied(tmp_path, text):
    path = write(tmp_path, text, "t.csv")
    with refusal("has an empty name beside a mark of ties; write > or = instead of >="):
        read_survey(path, "cell", columns="list")


@pytest.mark.parametrize("mark", ["<", " < ", "≺", " <- ", "←"])
def test_lists_that_may_have_the_worst_first(tmp_path, mark):
    lists = [mark.join(x) for x in (["tea", "rum", "milk"], ["milk", "tea", "rum"], ["rum", "tea"])]
    text = "id,order\n" + "".join(f"r{k},{x}\n" for k, x in enumerate(lists))
    path = write(tmp_path, text, "t.csv")
    bare = mark.strip()
    with refusal("is the first or the last item of", f"separator={bare!r} reads the first"):
        read_survey(path, "cell", judge="id")
    survey = read_survey(path, "cell", judge="id", separator=bare)
    assert joined(survey) == ["tea rum milk", "milk tea rum", "rum tea"]
    if mark.strip() in "<≺":  # the first line is no name of a column
        path = write(tmp_path, "\n".join(lists[:2]), "t.txt")
        for settings in ({}, {"layout": "cell"}):
            with refusal("the first row must name the columns", "header='none'"):
                read_survey(path, **settings)
        assert len(joined(read_survey(path, header="none", separator=bare))) == 2


def test_a_sign_in_a_name_separates_no_items(tmp_path):
    path = write(tmp_path, "order\n<18;18-30;>30\n18-30;<18;>30\n", "t.csv")
    assert joined(read_survey(path, "cell", separator=";"))[0] == "<18 18-30 >30"
