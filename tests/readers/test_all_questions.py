"""All that is odd in a file is found at once, with options that read it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from helpers.readers import joined, refusal, write

from numpyro_rankings import RankingsError, read_survey
from numpyro_rankings.readers.all_questions import read_or_ask
from numpyro_rankings.words.options import option


def questions_of(source, layout=None, **options):
    """The questions of a file that is refused."""
    with pytest.raises(RankingsError) as error:
        read_survey(source, layout, **options)
    found = error.value.questions
    assert found.texts[0] == str(error.value) and "\n" not in str(error.value)
    assert len(found.texts) == len(found.answers)
    return found


# the text, the options that are given, the answer to each question, and the lists
FIVE = {
    "ranks": (
        "id,a,b,c,d\nr1,1,2,3,4\nr2,2,99,1,n/a\nr1,4,3,2,1\nr3,1,3,,\nr4,1,2,4,3\n",
        {"judge": "id"},
        [
            {"layout": "ranks"},
            {"missing": ["99"]},
            {"missing": ["99", "n/a"]},
            {"gaps": "close"},
            {"duplicates": "first"},
        ],
        ["a b c d", "c a", "a b", "a b d c"],
    ),
    "orders": (
        "id,p1,p2,p3\nr1,Ann,Bob,Cid\nr2,Bob,99,Ann\nr1,Cid,Ann,Bob\nr3,N/A,Cid,Bob\nr4,Bob,,Cid\n",
        {},
        [
            {"judge": "id"},
            {"layout": "orders"},
            {"missing": "N/A"},
            {"missing": "99"},
            {"gaps": "close"},
            {"duplicates": "first"},
        ],
        ["Ann Bob Cid", "Bob Ann", "Cid Bob", "Bob Cid"],
    ),
    "long": (
        "judge,item,rank\nx,a,1\nx,b,2\nx,c,99\ny,a,1\ny,b,3\nx,a,2\nx,b,1\nx,c,3\nz,c,none\nz,b,1\n",
        {"about": ()},
        [
            {"missing": ["99"]},
            {"missing": ["99", "none"]},
            {"duplicates": "first"},
            {"gaps": "close"},
        ],
        ["a b", "a b", "b"],
    ),
    "long, by other names": (
        "user,product,place\nx,a,1\nx,b,2\nx,c,99\ny,a,1\ny,b,3\nx,a,2\nx,b,1\nx,c,3\n",
        {},
        [
            {"judge": "user"},
            {"layout": "long"},
            {"item": "product", "rank": "place"},
            {"missing": ["99"]},
            {"duplicates": "first"},
            {"gaps": "close"},
        ],
        ["a b", "a b"],
    ),
    "counts and ages": (
        "n,age,a,b,c\n4,30,1,2,3\n3,41,1,,3\n2,30,2,77,1\n1,22,2,1,3\n",
        {},
        [
            {"count": "n"},
            {"about": ["age"]},
            {"layout": "ranks"},
            {"missing": ["77"]},
            {"gaps": "close"},
        ],
        [*["a b c"] * 4, *["a c"] * 3, *["c a"] * 2, "b a c"],
    ),
    "cell": (
        "id;list\n1;a, b, c\n2;b, , a\n1;c, a, b\n3;none, a, c\n",
        {},
        [
            {"judge": "id"},
            {"layout": "cell"},
            {"gaps": "close"},
            {"missing": "none"},
            {"duplicates": "first"},
        ],
        ["a b c", "b a", "a c"],
    ),
    "no header": (
        "1,3,2,4\n2,1,3,4\n4,99,1,2\n1,2,,4\n3,2,1,99\n",
        {},
        [{"header": "none"}, {"layout": "ranks"}, {"missing": ["99"]}, {"gaps": "close"}],
        ["1 3 2 4", "2 1 3 4", "3 4 1", "1 2 4", "3 2 1"],
    ),
    "judges in columns": (
        "wine,J1,J2,J3,J4\nRed,1,2,n/a,1\nWhite,2,1,1,3\nDry,3,3,2,2\n",
        {"missing": "0"},
        [
            {"transpose": True},
            {"layout": "ranks"},
            {"missing": ["0", "n/a"]},
        ],
        ["Red White Dry", "White Red Dry", "White Dry", "Red Dry White"],
    ),
    "points in an old encoding": (
        "id;Points: Käse;Points: Öl\n1;2;1\n2;99;2\n1;1;2\n".encode("cp1252"),
        {"judge": "id", "layout": "ranks"},
        [
            {"encoding": "windows-1252"},
            {"missing": ["99"]},
            {"highest_first": True},
            {"duplicates": "first"},
        ],
        ["Points: Käse Points: Öl", "Points: Öl"],
    ),
    "separators": (
        "id\tlist\n1\ta; b > c\n2\tc; a > b\n1\tb > c; a\n",
        {"judge": "id", "columns": "list"},
        [{"separator": "semicolon"}, {"duplicates": "first"}],
        ["a b > c", "c a > b"],
    ),
}


@pytest.mark.parametrize("name", FIVE)
def test_all_that_is_odd_is_asked_at_once(tmp_path, name):
    text, given, answers, lists = FIVE[name]
    path = write(tmp_path, text, "t.csv")
    found = questions_of(path, **given)
    assert list(found.answers) == answers and found.is_read
    survey = read_survey(path, **{**given, **found.options})
    assert joined(survey) == lists


# the text, all answers, and the levels of the items in the order of their names, -1 if not ranked
FIVE_WITH_TIES = {
    "long": (
        "Survey of drinks,,\njudge,item,rank\na,tea,1\na,coffee,3.5\na,milk,3.5\nb,tea,1\n"
        "b,coffee,-\nb,milk,2\nc,tea,1\nc,coffee,2\nc,tea,1\nc,coffee,2\nd,water,1\nd,tea,2\nd,milk,4\n",
        {"missing": ("-",), "duplicates": "first", "gaps": "close"},
        [[1, 1, 0, -1], [-1, 1, 0, -1], [1, -1, 0, -1], [-1, 2, 1, 0]],
    ),
    "cell": (
        'id,list\n1,tea & coffee; milk; water\n2,"milk; {tea; coffee}; n/a; water"\n'
        "3,tea; coffee; milk\n3,coffee; tea; milk\n4,water; ; tea\n",
        {
            "judge": "id",
            "layout": "cell",
            "gaps": "close",
            "missing": ("n/a",),
            "items": ["tea", "coffee", "milk", "water"],
            "duplicates": "first",
        },
        [[0, 1, 0, 2], [1, 0, 1, 2], [1, 2, 0, -1], [-1, -1, 1, 0]],
    ),
    "orders": (
        "Drinks,,,\nid,1st,2nd,3rd\n1,tea & coffee,milk,\n2,milk,,tea\n3,NONE,tea,coffee\n"
        "4,tea,coffee,milk\n4,milk,tea,coffee\n",
        {
            "judge": "id",
            "missing": ("NONE",),
            "separator": "&",
            "gaps": "close",
            "duplicates": "first",
        },
        [[0, 1, 0], [-1, 0, 1], [1, -1, 0], [1, 2, 0]],
    ),
}


@pytest.mark.parametrize("name", FIVE_WITH_TIES)
def test_all_that_is_odd_beside_ties_is_asked_at_once(tmp_path, name):
    text, answers, expected = FIVE_WITH_TIES[name]
    path = write(tmp_path, text, "t.csv")
    found = questions_of(path)
    assert found.is_read and found.options == answers
    survey = read_survey(path, **found.options)
    rows = np.asarray(survey.rankings.row_index)[survey.label_index]
    levels = np.asarray(survey.rankings.levels_of_items())[rows]
    assert levels[:, np.argsort(survey.rankings.items)].tolist() == expected


def test_cycles_of_pairs():
    frame = pd.DataFrame(
        {"winner": list("abab"), "loser": list("baba"), "who": list("xxyz")}, index=range(4)
    )
    found = questions_of(frame, judge="who")
    assert found.answers == ({"cycles": "drop"},) and found.is_read
    assert read_survey(frame, judge="who", **found.options).judges == ["y", "z"]


def test_pairs_in_another_layout():
    frame = pd.DataFrame({"winner": list("aba"), "loser": list("bac")})
    found = questions_of(frame, layout="orders")
    assert found.answers == ({"layout": "pairs"},) and found.is_read


def test_data_frames():
    frame = pd.DataFrame({"who": ["x", "y", "x"], "a": [1, 99, 2], "b": [2, 1, 1]})
    found = questions_of(frame, judge="who", missing=["0"])
    assert found.options == {"layout": "ranks", "missing": ("0", "99"), "duplicates": "first"}
    survey = read_survey(frame, **{"judge": "who", **found.options})
    assert survey.judges == ["x", "y"] and joined(survey) == ["a b", "b"]
    with pytest.raises(RankingsError) as error:
        read_survey(frame, judge="who")
    assert pickle.loads(pickle.dumps(error.value)).questions.options["layout"] == "ranks"


@pytest.mark.parametrize(
    "text, options, last",
    [
        # ratings, and ranks that may start at 0: another reading would not be seen
        ("id,a,b,c\nx,3,3,1\ny,2,2,2\nz,1,99,1\n", {"judge": "id"}, "as in ratings"),
        ("a,b,c\n0,1,2\n2,0,1\n1,2,0\n", {}, "as once in every row"),
        # a rank of an item that has no column
        ("a,b,c\n1,2,3\n2,5,1\n2,1,3\n3,1,2\n", {}, "rank 5, but there are 3 items"),
        # what is to be done in the file
        ("list\na>b>c\nb>overvote>a\n", {}, "has rules for ballots"),
        ("model_a,model_b,winner\na,b,west\nb,c,east\n", {}, "does not say which"),
        ("left,right,label\na,b,0\nb,c,1\n", {}, "does 0 in 'label' mean"),
        ("winner,loser\nb,b\na,a\n", {}, "compares item 'b' with itself"),
    ],
)
def test_what_needs_a_decision_ends_the_questions(tmp_path, text, options, last):
    path = write(tmp_path, text, "t.csv")
    found = questions_of(path, **options)
    assert last in found.texts[-1] and not found.answers[-1] and not found.is_read
    assert all(found.answers[:-1])
    assert {name for answer in found.answers for name in answer} == {*found.options}
    if len(found.texts) > 1:  # the last is the only one that is left
        assert questions_of(path, **{**options, **found.options}).texts == found.texts[-1:]


def test_answers_that_lead_nowhere_are_not_taken():
    """The first answer leads to another question, the second one only reads the file."""

    def read(a=None, b=None):
        if a is None:
            raise RankingsError(f"which? {option('a', 1)}, {option('a', 2)}, {option('a', 3)}")
        if a == 1:
            raise KeyError(a)
        if a == 2:
            raise RankingsError(f"why {option('a', 2)}? {option('a', 2)} or {option('b', '')}")
        return a, b

    with pytest.raises(RankingsError) as error:
        read_or_ask(read, {})
    assert error.value.questions.options == {"a": 3} and error.value.questions.is_read
    assert read_or_ask(read, {"a": 3}) == (3, None)


def test_questions_without_end():
    def read(k=0):
        raise RankingsError(f"question {k}: {option('k', k + 1)}")

    with pytest.raises(RankingsError) as error:
        read_or_ask(read, {})
    found = error.value.questions
    assert str(error.value) == "question 0: k=1"
    assert 20 < len(found.texts) < 50 and not found.is_read


# the text, the only answers that lead to the right lists, and these lists
LIKELY = {
    "numbers of judges beside places": (
        "ID,1st choice,2nd choice,3rd choice\n1,Ann,Bob,Cid\n2,Bob,Ann,\n3,Cid,,\n",
        {"judge": "ID"},
        ["Ann Bob Cid", "Bob Ann", "Cid"],
    ),
    "numbers of judges beside lists": (
        "voter,ballot\n1,a>b>c\n2,b>a\n3,c>b>a\n",
        {"judge": "voter", "layout": "cell"},
        ["a b c", "b a", "c b a"],
    ),
    "numbers of judges beside names of columns": (
        "voter,p,q,r\n1,a,b,c\n2,b,a,c\n3,c,b,a\n",
        {"judge": "voter", "layout": "orders"},
        ["a b c", "b a c", "c b a"],
    ),
    "numbers of rows": (
        "Nr;Öl;Äpfel;Brot\n1;1;2;3\n2;3;2;1\n3;2;1;3\n",
        {"judge": "Nr", "layout": "ranks"},
        ["Öl Äpfel Brot", "Brot Äpfel Öl", "Äpfel Öl Brot"],
    ),
    "counts beside an item N": (
        "N,S,M,#\n2,3,1,7\n2,1,3,4\n1,2,3,5\n",
        {"count": "#", "layout": "ranks"},
        ["M N S"] * 7 + ["S N M"] * 4 + ["N S M"] * 5,
    ),
    "zeros among numbers of items": (
        "first,second,third\n1,2,3\n2,1,0\n3,0,0\n",
        {"missing": ["0"]},
        ["1 2 3", "2 1", "3"],
    ),
    "words of ballots in lists": (
        "ballot\nAnn>Bob>Cid\nexhausted\nAnn>undervote\nCid>Ann\n",
        {"missing": ["exhausted", "undervote"]},
        ["Ann Bob Cid", "Ann", "Cid Ann"],
    ),
    "words of ballots beside ranks": (
        "who,Ann,Bob,Cid\nx,1,2,3\ny,1,overvote,2\n",
        {"layout": "ranks", "judge": "who", "missing": ["overvote"]},
        ["Ann Bob Cid", "Ann Cid"],
    ),
    "words of ballots in a table with a row for each name": (
        "voter,who,rank\nx,Ann,1\nx,Bob,2\ny,Bob,1\ny,Ann,undervote\n",
        {"judge": "voter", "layout": "long", "item": "who", "missing": ["undervote"]},
        ["Ann Bob", "Bob"],
    ),
}


@pytest.mark.parametrize("name", LIKELY)
def test_the_likely_answer_comes_first(tmp_path, name):
    text, answers, lists = LIKELY[name]
    path = write(tmp_path, text, "t.csv")
    found = questions_of(path)
    said = {x: list(y) if isinstance(y, tuple) else y for x, y in found.options.items()}
    assert said == answers and found.is_read
    assert joined(read_survey(path, **found.options)) == lists


@pytest.mark.parametrize("number", ["1,200", "1.200", "1 200", "1'200", "1,200,000"])
@pytest.mark.parametrize("layout", ["ranks", "orders"])
def test_counts_with_thousands_are_no_names_of_judges(tmp_path, number, layout):
    rows = {"ranks": ["a;b;c", "1;2;3", "2;1;3"], "orders": ["1st;2nd;3rd", "a;b;c", "b;a;c"]}
    head, *lists = rows[layout]
    text = f"Votes;{head}\n{number};{lists[0]}\n850;{lists[1]}\n"
    found = questions_of(write(tmp_path, text, "t.csv"))
    way = "count='Votes' if it counts them, once thousands are written without marks"
    assert not found.is_read and way in found.texts[-1]
    with refusal("write thousands without marks between the digits"):
        read_survey(tmp_path / "t.csv", layout, count="Votes")
