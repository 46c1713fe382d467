"""Tables whose judges are the columns: asked about, and read with ``transpose=True``."""

import openpyxl
import pandas as pd
import pytest
from helpers.readers import joined, read_with_answers, refusal, write

from numpyro_rankings import read_survey

# the text, the options, the judges and their lists
TURNED = {
    "ranks": (
        "skater,J1,J2,J3\nHa,1,2,1\nSl,2,1,3\nKw,3,3,2\nCo,4,4,4\n",
        {"layout": "ranks", "judge": "skater"},
        ["Ha Sl Kw Co", "Sl Ha Kw Co", "Ha Kw Sl Co"],
    ),
    "ranks without the names": (
        "skater,J1,J2,J3\nHa,1,2,1\nSl,2,1,3\nKw,3,3,2\nCo,4,4,4\n",
        {"layout": "ranks"},
        ["Ha Sl Kw Co", "Sl Ha Kw Co", "Ha Kw Sl Co"],
    ),
    "fewer judges than items, no ties": (
        "item,J1,J2\na,1,2\nb,2,1\nc,3,4\nd,4,3\n",
        {"layout": "ranks", "judge": "item"},
        ["a b c d", "b a d c"],
    ),
    "top lists and words": (
        "driver,Rome,Oslo,Lima\nHa,1,DNF,1\nSl,2,1,\nKw,,2,2\nCo,DNF,3,3\n",
        {"layout": "ranks", "missing": "DNF"},
        ["Ha Sl", "Sl Kw Co", "Ha Kw Co"],
    ),
    "places": (
        "place,Ann,Bob,Cid\n1,Vertigo,Kane,Tokyo\n2,Kane,Psycho,Kane\n3,Tokyo,Vertigo,\n",
        {"layout": "orders"},
        ["Vertigo Kane Tokyo", "Kane Psycho Vertigo", "Tokyo Kane"],
    ),
    "places from the last": (
        "place,Ann,Bob,Cid\n3,Tokyo,Vertigo,\n2,Kane,Psycho,Kane\n1,Vertigo,Kane,Tokyo\n",
        {"layout": "orders"},
        ["Vertigo Kane Tokyo", "Kane Psycho Vertigo", "Tokyo Kane"],
    ),
    "places as judges": (
        "place,Ann,Bob,Cid\n1,Vertigo,Kane,Tokyo\n2,Kane,Psycho,Kane\n3,Tokyo,Vertigo,\n",
        {"layout": "orders", "judge": "place"},
        ["Vertigo Kane Tokyo", "Kane Psycho Vertigo", "Tokyo Kane"],
    ),
    "places in words, of which some are picked": (
        "x,rank,Q1 Ann,Q1 Bob\na,1st,Vertigo,Kane\nb,2nd,Kane,Psycho\nc,3rd,Tokyo,Tokyo\n",
        {"layout": "orders", "columns": "Q1 *", "judge": "rank"},
        ["Vertigo Kane Tokyo", "Kane Psycho Tokyo"],
    ),
    "ballots": (
        "choice,b1,b2\n1,Ann,Bob\n2,undervote,Ann\n3,Bob,undervote\n",
        {"layout": "votes"},
        ["Ann Bob", "Bob Ann"],
    ),
}


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize("name", TURNED)
def test_judges_in_columns(tmp_path, name, suffix):
    text, settings, lists = TURNED[name]
    rows = [line.split(",") for line in text.splitlines()]
    if suffix == ".xlsx":
        path, book = tmp_path / "t.xlsx", openpyxl.Workbook()
        for row in rows:
            book.active.append([int(x) if x.isdecimal() else x or None for x in row])
        book.save(path)
    else:
        path = write(tmp_path, text, "t.csv")
    with refusal("if each column is a judge, add transpose=True", "transpose=False if"):
        read_survey(path, **settings)
    survey = read_survey(path, transpose=True, **settings)
    assert joined(survey) == lists
    assert survey.judges == rows[0][-len(lists) :]
    assert any(note.startswith("the judges are the columns") for note in survey.notes)


def test_a_data_frame_with_the_items_in_its_index():
    frame = pd.read_csv(pd.io.common.StringIO(TURNED["ranks"][0]), index_col="skater")
    with refusal("transpose=True"):
        read_survey(frame, "ranks")
    survey = read_survey(frame, "ranks", judge="skater", transpose=True)
    assert joined(survey) == TURNED["ranks"][2] and survey.judges == ["J1", "J2", "J3"]
    assert survey.rankings.items == ("Ha", "Sl", "Kw", "Co")


def test_a_forgotten_judge_beside_names():
    frame = pd.DataFrame({"id": [1, 2, 3], "a": ["x", "x", "y"], "b": ["y", "y", "x"]})
    with refusal("beside the numbers of the rows in 'id'", "add judge='id'"):
        read_survey(frame, "orders")
    assert joined(read_survey(frame, "orders", judge="id")) == ["x y", "x y", "y x"]
    with refusal("is 'id' part of the ranking?", "judge='id'"):
        read_survey(frame, "orders", transpose=False)
    every = read_survey(frame, "orders", columns=["id", "a", "b"], transpose=False)
    assert joined(every)[0] == "1 x y"


def test_lists_in_rows_are_not_asked_about():
    square = pd.DataFrame({"who": list("xyz"), "A": [1, 2, 3], "B": [2, 3, 1], "C": [3, 1, 2]})
    assert joined(read_survey(square, "ranks", judge="who"))[1] == "C A B"
    places = pd.DataFrame({"no": [1, 2], "1st": ["a", "b"], "2nd": ["b", "a"]})
    assert joined(read_survey(places, judge="no")) == ["a b", "b a"]


def test_options_that_do_not_go_with_it():
    frame = pd.DataFrame({"item": ["a", "b"], "J1": [1, 2], "J2": [2, 1], "kind": ["x", "y"]})
    with refusal("transpose=True goes with judge= and columns=", "but about=, which leaves"):
        read_survey(frame, "ranks", judge="item", count="kind", transpose=True)


@pytest.mark.parametrize("settings", [{}, {"judge": "film"}])
@pytest.mark.parametrize("last", ["total,4,6,8,12", "mean,1.33,2,2.67,4"])
def test_what_sums_up_the_judges_in_columns(tmp_path, last, settings):
    """The first judge has the numbers of the rows, and is no column beside the ranks."""
    columns = ["film,Jaws,Heat,Fargo,Alien", "J1,1,2,3,4", "J2,2,1,3,4", "J3,1,3,2,4", last]
    lines = map(",".join, zip(*(x.split(",") for x in columns), strict=True))
    path = write(tmp_path, "\n".join(lines), "t.csv")
    lists = ["Jaws Heat Fargo Alien", "Heat Jaws Fargo Alien", "Jaws Fargo Heat Alien"]
    said, survey = read_with_answers(path, layout="ranks", **settings)
    assert {"judge": "film", **said} == {
        "judge": "film",
        "columns": ["J1", "J2", "J3"],
        "transpose": True,
    }
    assert joined(survey) == lists and survey.judges == ["J1", "J2", "J3"]
    survey = read_survey(path, "ranks", about=last[: last.index(",")], transpose=True, **settings)
    assert joined(survey) == lists and not survey.about
    assert any(f"left out, no judges: '{last[: last.index(',')]}'" in x for x in survey.notes)


SQUARE = "{},{},{},{}\nMerlot,1,2,3\nSyrah,2,3,1\nMalbec,3,1,2\n"


@pytest.mark.parametrize("layout", [None, "ranks"])
@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize(
    "names",
    [
        ("wine", "Judge 1", "Judge 2", "Judge 3"),
        ("wine", "Wine critic A", "Wine critic B", "Wine critic C"),
        ("name", "rater_1", "rater_2", "rater_3"),
        ("item", "Ann", "Bob", "Cid"),
        ("", "Judge 1", "Judge 2", "Judge 3"),
    ],
    ids=lambda names: names[0],
)
def test_ranks_once_each_in_rows_and_columns(tmp_path, names, is_named, layout):
    path = write(tmp_path, SQUARE.format(*names), "t.csv")
    settings = {"judge": names[0]} if is_named and names[0] else {}
    said, survey = read_with_answers(path, layout=layout, **settings)
    assert said.pop("transpose") is True and said in ({}, {"layout": "ranks"})
    assert joined(survey) == ["Merlot Syrah Malbec", "Malbec Merlot Syrah", "Syrah Malbec Merlot"]
    assert survey.judges == list(names[1:])
    if settings:
        survey = read_survey(path, "ranks", transpose=False, **settings)
        assert joined(survey)[1] == " ".join((names[3], names[1], names[2]))


@pytest.mark.parametrize("name", ["voter", "judge", "Reviewer name"])
def test_judges_who_rank_judges(tmp_path, name):
    path = write(tmp_path, SQUARE.format(name, "Judge 1", "Judge 2", "Judge 3"), "t.csv")
    assert joined(read_survey(path, "ranks", judge=name))[1] == "Judge 3 Judge 1 Judge 2"


def test_ratings_of_judges_in_columns(tmp_path):
    text = "wine,year,Judge 1,Judge 2\nMerlot,1999,17,15\nSyrah,2001,12,14\nMalbec,2003,11,19\n"
    path = write(tmp_path, text, "t.csv")
    how = {"layout": "ranks", "highest_first": True, "gaps": "close", "ties": "exact"}
    with refusal("are called as judges are: if each column is a judge, add transpose=True"):
        read_survey(path, judge="wine", about="year", **how)
    with refusal("are called as judges are", "judge='wine', columns=['Judge 1', 'Judge 2'] and"):
        read_survey(path, **how)
    last = "\n".join(",".join(line.split(",")[::-1]) for line in text.splitlines())
    said, survey = read_with_answers(write(tmp_path, last, "u.csv"), **how)
    assert said == {"judge": "wine", "columns": ["Judge 2", "Judge 1"], "transpose": True}
    assert joined(survey) == ["Malbec Merlot Syrah", "Merlot Syrah Malbec"]
    for other in ({"about": "year"}, {"columns": ["Judge 1", "Judge 2"]}):
        survey = read_survey(path, judge="wine", transpose=True, **other, **how)
        assert joined(survey) == ["Merlot Syrah Malbec", "Malbec Merlot Syrah"]


def test_critics_in_columns_who_tie_films():
    films = ["Jaws", "Alien", "Rocky", "Heat", "Fargo"]
    ranks = {"Kael": [1, 2, 2, 4, 5], "Ebert": [5, 4, 3, 1, 1], "Canby": [3, 1, 5, 3, 1]}
    frame = pd.DataFrame({"film": films, **ranks})
    with refusal(
        "with ties, and most rows have not: if each column is a judge, add transpose=True"
    ):
        read_survey(frame, "ranks")
    survey = read_survey(frame, "ranks", transpose=True)
    levels = survey.rankings.levels_of_items()
    assert survey.judges == list(ranks) and survey.rankings.items == tuple(films)
    rows = survey.rankings.row_index[survey.label_index]
    assert levels[rows][0].tolist() == [0, 1, 1, 2, 3]
    # each row has ranks with ties, and so has each column
    both = pd.DataFrame({"a": [1, 2, 1], "b": [2, 1, 1], "c": [2, 2, 3]})
    assert read_survey(both, "ranks").rankings.num_items == 3


def test_golfers_with_joint_places_and_a_cut():
    """Places such as T2 are ranks, and a few words among them are none."""
    rounds = {
        "R1": ["1", "T2", "T2", "4", "5", "6", "7"],
        "R2": ["T5", "T5", "4", "3", "T1", "T1", "MC"],
        "R3": ["3", "4", "T1", "T1", "7", "5", "6"],
    }
    frame = pd.DataFrame({"golfer": list("abcdefg"), **rounds})
    with refusal("with ties, and most rows have not: if each column is a judge, add"):
        read_survey(frame)
    survey = read_survey(frame, "ranks", transpose=True, missing="MC")
    assert survey.judges == ["R1", "R2", "R3"]


@pytest.mark.parametrize("number", [5, 6])
def test_words_among_the_places_of_golfers(number):
    """Fewer than a quarter of the cells: as many as that may be no ranks at all."""
    rounds = {
        "R1": [1, 2, 2, 4, 5, 6, "MC", "MC"],
        "R2": [5, 5, 4, 3, 1, 1, "MC", "MC"],
        "R3": [3, 4, 1, 1, 7 if number == 5 else "MC", 5, 6, "MC"],
    }
    frame = pd.DataFrame({"golfer": list("abcdefgh"), **rounds})
    is_asked = "with ties, and most rows have not: if each column is a judge, add"
    with refusal(is_asked if number == 5 else "is 'golfer' part of the question?"):
        read_survey(frame)


@pytest.mark.parametrize("blank", ["", "-"])
def test_critics_in_columns_who_did_not_see_all_films(blank):
    """All columns are lists, though most rows would be, too."""
    seen = {
        "Ann": ["1", "2", blank, "3"],
        "Bob": [blank, "1", "2", "3"],
        "Cid": ["2", blank, "1", "3"],
    }
    frame = pd.DataFrame({"film": ["Alien", "Brazil", "Casino", "Dune"], **seen})
    with refusal("from 1 to 3 once each, and the rows have not: if each column is a judge"):
        read_survey(frame)
    lists = read_survey(frame, "ranks", transpose=True, missing=[blank] if blank else ())
    assert joined(lists) == ["Alien Brazil Dune", "Brazil Casino Dune", "Casino Alien Dune"]


def test_ratings_with_decimals_beside_ids_are_no_names():
    frame = pd.DataFrame({"id": [1, 2], "tea": ["7,5", "6,2"], "rum": ["8,5", "8,8"]})
    with refusal("is 'id' part of the question? If not, add"):
        read_survey(frame)
    with refusal("write ratings without decimals, such as 75 for 7.5"):
        read_survey(frame, "ranks", judge="id")
