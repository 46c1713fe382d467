"""Tables whose columns are judges, orders with counts, stars, rounds or merged cells."""

import pandas as pd
import pytest
from helpers.readers import joined, read_with_answers, refusal, write, write_rows

from numpyro_rankings import RankingsError, read_survey

RANKS = ["Tea Coffee Milk Juice", "Coffee Tea Milk Juice", "Coffee Milk Tea Juice"]
PROFILE = "{}\n{}Tea,Coffee,Milk\n{}Coffee,Tea,Tea\n{}Milk,Milk,Coffee\n"
COUNTED = ["Tea Coffee Milk"] * 12 + ["Coffee Tea Milk"] * 7 + ["Milk Tea Coffee"] * 3
# the text, and the lists that are read with the options that the question names
ASKED = {
    "items with a year": (
        "item,year,judge1,judge2,judge3\nTea,2001,1,2,3\nCoffee,2003,2,1,1\nMilk,2005,3,3,2\n"
        "Juice,2010,4,4,4\n",
        RANKS,
    ),
    "items with a price that could be a rank": (
        "item,price,J1,J2,J3\nTea,2,1,2,3\nCoffee,3,2,1,1\nMilk,2,3,3,2\nJuice,4,4,4,4\n",
        RANKS,
    ),
    "items in words, between what is known of them and a mean": (
        "vintage,wine,type,Ann,Bob,Cid,mean\n2001,Tea,a,1st,2nd,3rd,2\n2003,Coffee,a,2nd,1st,1st,"
        "1.33\n2005,Milk,b,3rd,3rd,2nd,2.67\n2005,Juice,b,4th,4th,4th,4\n",
        RANKS,
    ),
    "counts above orders": (PROFILE.format("12,7,3", "", "", ""), COUNTED),
    "counts above orders, with the places": (
        PROFILE.format(",12,7,3", "1st,", "2nd,", "3rd,"),
        COUNTED,
    ),
    "counts with a word": (
        PROFILE.format("Rank,12 voters,7 voters,3 voters", "1,", "2,", "3,"),
        COUNTED,
    ),
    "counts below their name": (PROFILE.format("votes,12,7,3", "1,", "2,", "3,"), COUNTED),
    "the same count twice": (
        "5,5,3\nA,B,C\nB,A,A\nC,C,B\n",
        ["A B C"] * 5 + ["B A C"] * 5 + ["C A B"] * 3,
    ),
    "a cycle": (
        "12,7,3\nA,B,C\nB,C,A\nC,A,B\n",
        ["A B C"] * 12 + ["B C A"] * 7 + ["C A B"] * 3,
    ),
    "counts above ranks": (
        "candidate,12,7,3\nA,1,2,2\nB,2,1,3\nC,3,3,1\n",
        ["A B C"] * 12 + ["B A C"] * 7 + ["C A B"] * 3,
    ),
    "counts in a row": (
        ",v1,v2,v3\nvoters,12,7,3\n1st,Tea,Coffee,Milk\n2nd,Coffee,Tea,Tea\n3rd,Milk,Milk,Coffee\n",
        COUNTED,
    ),
    "counts below ranks": (
        "item,A,B,C\nTea,1,2,2\nCoffee,2,1,3\nMilk,3,3,1\nVotes,12,7,3\n",
        COUNTED,
    ),
    "counts in a column": (
        "# of voters,1st,2nd,3rd\n12,Tea,Coffee,Milk\n7,Coffee,Tea,Milk\n3,Milk,Tea,Coffee\n",
        COUNTED,
    ),
    "sums and places behind the judges": (
        "wine,J1,J2,J3,Rank sum,Place\nTea,1,2,3,6,2\nCoffee,2,1,1,4,1\nMilk,3,3,2,8,3\n",
        ["Tea Coffee Milk", "Coffee Tea Milk", "Coffee Milk Tea"],
    ),
    "judges in columns without a header": (
        "Tea,1,2,3,1\nCoffee,2,1,1,2\nMilk,3,3,2,3\n",
        ["1 2 3", "2 1 3", "2 3 1", "1 2 3"],
    ),
    "ranks in words": (
        "judge,Tea,Coffee,Milk\na,1st,2nd,3rd\nb,2nd,1st,3rd\nc,3rd,1st,2nd\n",
        ["Tea Coffee Milk", "Coffee Tea Milk", "Coffee Milk Tea"],
    ),
    "ranks in longer words": (
        "who,Tea,Coffee,Milk\na,first,second,third\nb,second,first,third\nc,third,first,second\n",
        ["Tea Coffee Milk", "Coffee Tea Milk", "Coffee Milk Tea"],
    ),
    "asterisks": (
        "judge,Tea,Coffee,Milk\na,***,**,*\nb,**,***,*\nc,*,***,**\n",
        ["Tea Coffee Milk", "Coffee Tea Milk", "Coffee Milk Tea"],
    ),
    "stars with a filling": (
        "judge,Tea,Coffee,Milk\na,★★★,★★☆,★☆☆\nb,★★☆,★★★,★☆☆\nc,★☆☆,★★★,★★☆\n",
        ["Tea Coffee Milk", "Coffee Tea Milk", "Coffee Milk Tea"],
    ),
    "stars of five": (
        "judge,Tea,Coffee,Milk\na,*** / 5,** / 5,***** / 5\nb,** / 5,*** / 5,**** / 5\n"
        "c,* / 5,*** / 5,** / 5\n",
        ["Milk Tea Coffee", "Milk Coffee Tea", "Coffee Milk Tea"],
    ),
    "numbers of stars": (
        "judge,Tea,Coffee,Milk\na,3 stars,2 stars,5 stars\nb,1 star,3 stars,4 stars\n",
        ["Milk Tea Coffee", "Milk Coffee Tea"],
    ),
    "PrefLib without its header": (
        "3: 1,2,3,4\n2: 2,1,3,4\n1: 4,2,3,1\n",
        ["1 2 3 4"] * 3 + ["2 1 3 4"] * 2 + ["4 2 3 1"],
    ),
    "PrefLib without its header, incomplete": (
        "3: 1,2\n2: 2,1,3,4\n1: 4\n",
        ["1 2"] * 3 + ["2 1 3 4"] * 2 + ["4"],
    ),
    "counts before lists of names": (
        "12: Ann,Bob,Cid\n7: Bob,Ann,Cid\n",
        ["Ann Bob Cid"] * 12 + ["Bob Ann Cid"] * 7,
    ),
    "notes below the totals": (
        "judge,Tea,Coffee,Milk\na,1,2,3\nb,2,1,3\nc,3,1,2\nMean,2,1.33,2.67\n,,,\n"
        "Source: a survey,,,\n",
        ["Tea Coffee Milk", "Coffee Tea Milk", "Coffee Milk Tea"],
    ),
    "a note below sums": (
        "judge;Tea;Coffee;Milk\na;1;2;3\nb;2;1;3\nSum;3;3;6\nMean;1,5;1,5;3\nd left early;;;\n",
        ["Tea Coffee Milk", "Coffee Tea Milk"],
    ),
    "two questions below one another": (
        ",Drinks,,,Foods,,\nid,Tea,Coffee,Milk,Bread,Rice,Corn\n1,1,2,3,3,2,1\n2,2,1,3,1,2,3\n"
        "3,3,1,2,2,3,1\n",
        ["Tea Coffee Milk", "Coffee Tea Milk", "Coffee Milk Tea"],
    ),
    "two questions of places": (
        "id,Drinks,,,Foods,,\n,1st,2nd,3rd,1st,2nd,3rd\n1,Tea,Coffee,Milk,Bread,Rice,Corn\n"
        "2,Coffee,Tea,Milk,Rice,Bread,Corn\n",
        ["Tea Coffee Milk", "Coffee Tea Milk"],
    ),
    "ranks with remarks": (
        "judge,Tea_rank,Tea_why,Milk_rank,Milk_why\na,1,hot,2,ok\nb,2,,1,cold\nc,1,,2,\n",
        ["Tea_rank Milk_rank", "Milk_rank Tea_rank", "Tea_rank Milk_rank"],
    ),
    "ranks with remarks in two rows": (
        "Respondent,Tea,,Coffee,,Milk,\n,rank,comment,rank,comment,rank,comment\n1,1,a,2,,3,\n"
        "2,2,,1,b,3,\n3,3,,1,,2,c\n",
        ["Tea Coffee Milk", "Coffee Tea Milk", "Coffee Milk Tea"],
    ),
    "one code where there is no rank": (
        "judge,Tea,Coffee,Milk,Juice\na,1,2,X,X\nb,X,1,2,X\nc,2,X,X,1\n",
        ["Tea Coffee", "Coffee Milk", "Juice Tea"],
    ),
    "years that fall": (
        "Team,2021,2020,2019\nAnn,1,2,1\nBob,2,1,3\nCid,3,3,2\n",
        ["Ann Bob Cid", "Bob Ann Cid", "Ann Cid Bob"],
    ),
    "dashes between the items": (
        "judge,ranking\na,1-3-2\nb,2-1-3\nc,3-2-1\n",
        ["1 3 2", "2 1 3", "3 2 1"],
    ),
    "deviations below the means": (
        "judge,Tea,Milk\na,1,2\nMax,2,1\nmean,1.5,1.5\nsd,0.7,0.7\nmax,2,2\n",
        ["Tea Milk", "Milk Tea"],
    ),
    "one ballot alone": ("Tea,Coffee,Milk\n", ["Tea Coffee Milk"]),
    "one list alone": ("Tea > Coffee > Milk\n", ["Tea Coffee Milk"]),
    "one ballot of ranks alone": ("2,1,3\n", ["2 1 3"]),
    "the places of a league": (
        "Pos,Team,P,W,D,L,Pts\n1,Ann,6,4,1,1,13\n2,Bob,6,3,1,2,10\n3,Cid,6,2,0,4,6\n",
        ["Ann Bob Cid"],
    ),
}


def questions(source, **options):
    """Return what is asked about a table."""
    with pytest.raises(RankingsError) as error:
        read_survey(source, **options)
    return error.value.questions


def book(path, rows, merged=()):
    """Write a spreadsheet with merged cells."""
    cells = [[int(x) if x.isdecimal() else x or None for x in row.split(",")] for row in rows]
    return write_rows(path, cells, merged)


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize("name", ASKED)
def test_the_options_that_are_named_read_the_table(tmp_path, name, suffix):
    text, lists = ASKED[name]
    path = write(tmp_path, text, "t.csv")
    if suffix == ".xlsx":
        if "before" in name or "PrefLib" in name or ";" in text or ">" in text:
            return
        path = book(tmp_path / "t.xlsx", text.splitlines())
    found = questions(path)
    assert found.is_read, found.texts
    assert joined(read_survey(path, **found.options)) == lists


def test_what_is_asked_and_noted(tmp_path):
    def asked(name):
        return " ".join(questions(write(tmp_path, ASKED[name][0], "t.csv")).texts)

    assert (
        "'judge1', 'judge2', 'judge3' have ranks from 1 to 4 once each, and the rows have not: if "
        "each column is a judge, add judge='item', columns=['judge1', 'judge2', 'judge3'] and "
        "transpose=True"
    ) in asked("items with a year")
    assert "numbers of the rows" not in asked("ranks in words") + asked("ranks in longer words")
    assert "called 12, 7, 3: add header='counts' if" in asked("counts above orders")
    assert "header='none' if" not in asked("counts above orders")
    path = write(tmp_path, ASKED["notes below the totals"][0], "t.csv")
    notes = read_survey(path, "ranks", judge="judge").notes
    assert notes[:2] == [
        f"left out, because 'Mean' is in its first cell: {path}:5",
        f"left out, as notes below: {path}:7",
    ]


def test_what_is_no_judge_is_told_of_a_turned_table(tmp_path):
    path = write(tmp_path, ASKED["items with a year"][0], "t.csv")
    with refusal("'year' seems to be about the items, and no judges: add judge='item' and "):
        read_survey(path, "ranks", transpose=True)
    frame = pd.read_csv(path)
    found = questions(frame)
    assert joined(read_survey(frame, **found.options)) == RANKS
    assert read_survey(frame, **found.options).judges == ["judge1", "judge2", "judge3"]


def test_numbers_above_columns_may_name_judges(tmp_path):
    path = write(tmp_path, ASKED["counts above orders"][0], "t.csv")
    named = read_survey(path, "orders", transpose=True, header_rows=1)
    assert named.judges == ["12", "7", "3"] and joined(named) == [COUNTED[k] for k in (0, 12, 19)]
    rising = write(tmp_path, ASKED["counts above orders"][0].replace("12,7,3", "1,2,3"), "u.csv")
    assert read_survey(rising, "orders", transpose=True).judges == ["1", "2", "3"]
    with refusal("header='counts' goes with transpose=True"):
        read_survey(path, "orders", header="counts")
    with refusal("names of columns that count judges, such as 12, got 'Ann', 'Bob'"):
        frame = pd.DataFrame({"Ann": ["x", "y"], "Bob": ["y", "x"]})
        read_survey(frame, "orders", transpose=True, header="counts")


def test_names_of_columns_that_say_something_else(tmp_path):
    """Numbers above ranks, and names of items and judges such as price."""
    path = write(tmp_path, "id,30,10,20\na,1,2,3\nb,2,3,1\nc,3,1,2\n", "t.csv")
    with refusal("below numbers that may count judges"):
        read_survey(path)
    assert joined(read_survey(path, "ranks", judge="id")) == ["30 10 20", "20 30 10", "10 20 30"]
    path = write(tmp_path, "30,10,20\nA,B,C\nB,C,A\nC,A,B\n", "u.csv")
    assert joined(read_survey(path, "orders")) == ["B C A", "C A B", "A B C"]  # by the numbers
    for name in ("price", "mean", "score"):
        rows = f"who,speed,service,place,{name}\na,1,2,3,4\nb,2,3,4,1\nc,3,4,1,2\nd,4,1,2,3\n"
        path = write(tmp_path, rows, "v.csv")
        survey = read_survey(path, "ranks", judge="who")
        assert survey.rankings.num_items == 4 and joined(survey)[1] == f"{name} speed service place"
    for name in ("Ann Price", "Price", "Brand"):
        path = write(tmp_path, f"item,{name},Bob,Cid\nx,1,2,3\ny,2,3,1\nz,3,1,2\n", "w.csv")
        survey = read_survey(path, "ranks", transpose=True)
        assert survey.judges == [name, "Bob", "Cid"]
        assert joined(survey) == ["x y z", "z x y", "y z x"]


RATINGS = {"highest_first": True, "gaps": "close", "ties": "exact"}


def test_names_of_stars_are_kept(tmp_path):
    """Of items, in each layout that has them in cells, of judges, and in columns about judges."""
    lists = ["3 stars 4 stars 5 stars", "4 stars 3 stars 5 stars", "5 stars 4 stars 3 stars"]
    rows = [x.replace("stars ", "stars,") for x in lists]
    path = write(tmp_path, "\n".join(["1st,2nd,3rd", *rows]), "t.csv")
    assert joined(read_survey(path)) == joined(read_survey(path, "orders")) == lists
    cells = [f"{k},{x.replace(',', '; ')}" for k, x in enumerate(rows)]
    path = write(tmp_path, "\n".join(["who,list", *cells]), "u.csv")
    assert joined(read_survey(path, "cell", judge="who")) == lists
    lines = [
        f"{k},{x},{place}"
        for k, row in enumerate(rows)
        for place, x in enumerate(row.split(","), 1)
    ]
    path = write(tmp_path, "\n".join(["judge,item,rank", *lines]), "v.csv")
    assert joined(read_survey(path, "long")) == joined(read_survey(path)) == lists
    path = write(tmp_path, "who,A,B,C,hotel\n*,1,2,3,3 stars\n**,2,1,3,***\n", "w.csv")
    survey = read_survey(path, "ranks", judge="who", about="hotel")
    assert survey.judges == ["*", "**"] and survey.about == {"hotel": ["3 stars", "***"]}
    assert joined(survey) == ["A B C", "B A C"]
    path = write(tmp_path, "item,Ann,Bob\n1 star,1,2\n2 stars,2,1\n", "x.csv")
    assert joined(read_survey(path, "ranks", transpose=True)) == [
        "1 star 2 stars",
        "2 stars 1 star",
    ]
    marks = write(tmp_path, "who,A,B,C\na,1,2,*\nb,2,1,**\n", "y.csv")
    with refusal("'*'"):
        read_survey(marks, "ranks", judge="who")
    assert joined(read_survey(marks, "ranks", judge="who", missing=["*", "**"])) == ["A B", "B A"]


def test_stars_are_no_names(tmp_path):
    path = write(tmp_path, ASKED["stars of five"][0], "t.csv")
    assert joined(read_survey(path, "ranks", judge="judge", **RATINGS)) == ASKED["stars of five"][1]
    mark = write(tmp_path, "judge,Tea,Coffee,Milk\na,1,2,*\nb,2,1,*\n", "u.csv")
    assert joined(read_survey(mark, "ranks", judge="judge", missing="*")) == [
        "Tea Coffee",
        "Coffee Tea",
    ]
    long = write(tmp_path, "judge,item,rank\na,Tea,***\na,Milk,*\nb,Tea,**\nb,Milk,****\n", "v.csv")
    found = questions(long)
    assert joined(read_survey(long, **found.options)) == ["Tea Milk", "Milk Tea"]


def test_ties_of_preflib_without_its_header(tmp_path):
    path = write(tmp_path, "3: 1,2,{3,4}\n2: 2,1,3,4\n1: {1,2},3,4\n", "t.txt")
    found = questions(path)
    assert found.is_read and found.options == {"header": "none", "layout": "cell", "count": "1"}
    read = read_survey(path, **found.options).rankings
    assert read.levels_of_items().tolist() == [[0, 1, 2, 2], [1, 0, 2, 3], [0, 0, 1, 2]]
    assert read.counts.tolist() == [3, 2, 1]


@pytest.mark.parametrize("name", ["t.txt", "t.tsv", "t.csv"])
def test_preflib_in_a_text_file(tmp_path, name):
    lines = ["# FILE NAME: 1.soc", "# NUMBER ALTERNATIVES: 2", "# ALTERNATIVE NAME 1: Tea"]
    path = write(tmp_path, "\n".join([*lines, "3: 1,2", "2: 2,1", ""]), name)
    for options in ({}, {"header": "none", "layout": "cell", "count": "1"}):
        with refusal("those of a PrefLib file: call it by the extension of its kind, .soc (strict"):
            read_survey(path, **options)


@pytest.mark.parametrize(
    "rows, merged, options, lists",
    [
        (
            "judge,item,rank a,Tea,1 ,Coffee,2 ,Milk,3 b,Coffee,1 ,Tea,2 ,Milk,3",
            ["A2:A4", "A5:A7"],
            {},
            ["Tea Coffee Milk", "Coffee Tea Milk"],
        ),
        (
            "region,judge,Tea,Milk N,a,1,2 ,b,2,1 S,c,2,1 ,d,1,2",
            ["A2:A3", "A4:A5"],
            {"layout": "ranks", "judge": "judge", "about": "region"},
            ["Tea Milk", "Milk Tea", "Milk Tea", "Tea Milk"],
        ),
        (
            "group,item,a,b,c hot,Tea,1,2,3 ,Coffee,2,1,1 cold,Milk,3,3,2 ,Juice,4,4,4",
            ["A2:A3", "A4:A5"],
            {"judge": "item", "columns": ["a", "b", "c"], "transpose": True, "layout": "ranks"},
            RANKS,
        ),
    ],
)
def test_cells_merged_down_a_column(tmp_path, rows, merged, options, lists):
    survey = read_survey(book(tmp_path / "t.xlsx", rows.split(), merged), **options)
    assert joined(survey) == lists
    assert any("merged cells are read in each of their rows: '" in x for x in survey.notes)
    if "about" in options:
        assert survey.about["region"] == ["N", "N", "S", "S"]


def test_other_merged_cells(tmp_path):
    rows = ["id,Drinks,,Foods,", ",Tea,Milk,Rice,Corn", "1,1,2,2,1", "2,2,1,1,2"]
    path = book(tmp_path / "t.xlsx", rows, ["A1:A2", "B1:C1", "D1:E1"])
    survey = read_survey(path, "ranks", columns="Drinks*", judge="id")
    assert joined(survey) == ["Tea Milk", "Milk Tea"] and survey.rankings.items == ("Tea", "Milk")
    # titles, a year above the names, and a remark
    rows = ["Report,,,", "2024,,,", "judge,A,B,C", "a,1,2,3", "b,2,1,3"]
    path = book(tmp_path / "u.xlsx", rows, ["A1:D1", "A2:D2"])
    assert joined(read_survey(path, "ranks", judge="judge")) == ["A B C", "B A C"]
    rows = ["who,2024,,2025,", ",A,B,A,B", "a,1,2,2,1", "b,2,1,1,2"]
    path = book(tmp_path / "v.xlsx", rows, ["A1:A2", "B1:C1", "D1:E1"])
    survey = read_survey(path, "ranks", judge="who", columns="2024*", header_rows=2)
    assert joined(survey) == ["A B", "B A"]
    # a name of a column that is merged down, below a title
    rows = ["Report,,", "who,Tea,Milk", ",hot,", "a,1,2", "b,2,1"]
    path = book(tmp_path / "x.xlsx", rows, ["A1:C1", "A2:A3", "C2:C3"])
    survey = read_survey(path, "ranks", judge="Report - who", header_rows=3)
    assert survey.rankings.items == ("Tea - hot", "Milk")
    rows = ["who,A,B,remark,more", "a,1,2,7,", "b,2,1,,"]
    path = book(tmp_path / "w.xlsx", rows, ["D2:E2"])
    assert joined(read_survey(path, "ranks", judge="who", columns=["A", "B"])) == ["A B", "B A"]


def test_cells_merged_across_places(tmp_path):
    path = book(tmp_path / "t.xlsx", ["judge,1st,2nd,3rd", "a,X,Y,", "b,Y,X,Z"], ["C2:D2"])
    with refusal("row 2: column '3rd': 'Y' is listed twice", "merged across columns: split them"):
        read_survey(path, judge="judge")
    assert not questions(path).is_read
    # of ranks, two items have the same; others beside the ballots stay
    rows = ["Drinks,,,,", "judge,X,Y,Z,remark", "a,1,2,,", "b,2,1,3,", "c,1,2,3,", "as told,,,,"]
    merged = ["A1:E1", "C3:D3", "A6:E6"]
    survey = read_survey(
        book(tmp_path / "u.xlsx", rows, merged), "ranks", judge="judge", columns=["X", "Y", "Z"]
    )
    levels = survey.rankings.levels_of_items()[survey.rankings.row_index[survey.label_index]]
    assert levels.tolist() == [[0, 1, 1], [1, 0, 2], [0, 1, 2]]
    note = "merged cells are read in each of their rows and columns: '2' in columns 3 to 4 of row 3"
    assert note in survey.notes


@pytest.mark.parametrize("text", ["judge,1st,2nd,3rd\n{}", "judge,choice_1,choice_2,choice_3\n{}"])
def test_two_marks_between_tied_names(tmp_path, text):
    rows = "a,Tea/Coffee,Milk,\nb,Coffee,Tea,Milk\nc,Milk,Tea & Coffee,\n"
    path = write(tmp_path, text.format(rows), "t.csv")
    found = questions(path, layout="orders", judge="judge")
    assert "is 'Tea & Coffee' one name, or several, as 'Tea/Coffee' is?" in found.texts[0]
    read = read_survey(path, "orders", judge="judge", **found.options)
    assert read.rankings.items == ("Milk", "Coffee", "Tea")
    rows = read.rankings.row_index[read.label_index]
    assert read.rankings.levels_of_items()[rows].tolist() == [[1, 0, 0], [2, 0, 1], [0, 1, 1]]


TOURNAMENTS = {
    "crosstable": "player,Ann,Bob,Cid\nAnn,,1,1\nBob,0,,1\nCid,0,0,\n",
    "crosstable with draws": ",Ann,Bob,Cid\nAnn,x,1,½\nBob,0,x,1\nCid,½,0,x\n",
    "crosstable in letters": ",Ann,Bob,Cid\nAnn,-,W,L\nBob,L,-,W\nCid,W,L,-\n",
    "crosstable in words": "player,Ann,Bob,Cid\nAnn,,win,loss\nBob,loss,,win\nCid,win,loss,\n",
    "crosstable of scores": "Home,Ann,Bob,Cid\nAnn,—,2–1,3–0\nBob,0–0,—,1–2\nCid,1–1,0–2,—\n",
    "rounds": "No,Name,R1,R2,Pts\n1,Ann,2w1,3b½,1.5\n2,Bob,1b0,4w1,1\n3,Cid,4b1,1w½,1.5\n"
    "4,Dan,3w0,2b0,0\n",
    "rounds in a line": "1. Ann | 2w1 | 3b½\n2. Bob | 1b0 | 4w1\n3. Cid | 4b1 | 1w½\n",
    "rounds in letters": "Name,Rd1,Rd2\nAnn,W4,D3\nBob,L3,W4\nCid,W2,D1\nDan,L1,L2\n",
    "league": "Team,P,W,D,L,Pts\nAnn,6,4,1,1,13\nBob,6,3,1,2,10\nCid,6,2,0,4,6\n",
    "league of wins": "Club,Won,Lost,Points\nAnn,4,1,8\nBob,3,2,6\nCid,1,5,2\n",
}


@pytest.mark.parametrize("name", TOURNAMENTS)
def test_tables_of_tournaments(tmp_path, name):
    path = write(tmp_path, TOURNAMENTS[name], "t.txt" if "line" in name else "t.csv")
    with refusal("and no ranks: write a line for each game, with columns such as", "'pairs'"):
        read_survey(path)


@pytest.mark.parametrize("cells", ["1 1 1", "W D D", "L D D", "W L S"])
def test_cells_that_are_no_results_beside_their_own_names(tmp_path, cells):
    """These are results only if somebody has won, somebody has lost, and nothing else is said."""
    a, b, c = cells.split()
    text = f"player,Ann,Bob,Cid\nAnn,,{a},{b}\nBob,{b},,{c}\nCid,{c},{a},\n"
    with refusal("is 'player' part of the question?", "the layout is needed"):
        read_survey(write(tmp_path, text, "t.csv"))


COUNTS = {
    "places": "item,1st,2nd,3rd\ntea,12,5,3\ncoffee,5,10,5\nmilk,3,5,12\n",
    "ranks and a total": "Wine,Rank1,Rank2,Rank3,Total\nA,9,5,2,16\nB,5,8,3,16\nC,2,3,11,16\n",
    "medals": "Country;Gold;Silver;Bronze\nUSA;39;41;33\nChina;38;32;18\n",
    "numbers of places": "candidate,1,2,3\nAnn,40,35,25\nBob,35,30,35\nCem,25,35,40\n",
    "percentages": "item,1st,2nd\nAnn,33.3%,40%\nBob,33.3%,30%\nCem,33.4%,30%\n",
    "choices": "Product\tFirst choice\tSecond choice\ntea\t3\t0\nmilk\t0\t3\n",
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_places_have_no_ballots(tmp_path, name):
    path = write(tmp_path, COUNTS[name], "t.csv")
    why = "seem to count how often each row stood at that place: such a table is a summary"
    with pytest.raises(RankingsError, match=why) as error:
        read_survey(path)
    # few and small ones may be numbers of items
    assert ("layout='orders' if" in str(error.value)) == (name == "choices")


@pytest.mark.parametrize("places", ["1st,2nd,3rd", "1,2,3", "first,second,third"])
def test_counts_of_places_in_rows(tmp_path, places):
    """Each column is an item, unless it may be a judge or the rows rank the columns."""
    names, counts = places.split(","), ["40,35,25", "35,30,35", "25,35,40"]
    rows = [f"{place},{row}" for place, row in zip(names, counts, strict=True)]
    path = write(tmp_path, "\n".join(["place,Ann,Bob,Cem", *rows]), "t.csv")
    with refusal("how often each column stood at the place of the row", "cannot be recovered"):
        read_survey(path)
    for lists in (["1,2,3", "2,3,1", "3,1,2"], ["1,2,3", "1,3,2", "3,1,2"]):
        rows = [f"{place},{row}" for place, row in zip(names, lists, strict=True)]
        path = write(tmp_path, "\n".join(["place,Ann,Bob,Cem", *rows]), "t.csv")
        with pytest.raises(RankingsError) as error:
            read_survey(path)
        assert "how often" not in str(error.value)


def test_numbers_of_items_at_places(tmp_path):
    """Items with numbers are read, also where all rows or columns have the same sum."""
    for head, rows in (
        ("race,1st,2nd", ["x,1,2", "y,2,3", "z,3,1"]),  # the layout is named below
        ("judge,1st,2nd", ["x,1,2", "y,2,3", "z,3,1"]),
        ("town,1st,2nd,3rd", ["x,1,2,3", "y,3,1,2", "z,2,1,3"]),
        ("town,1st,2nd", ["x,7,2", "y,2,3", "z,3,5"]),
    ):
        path = write(tmp_path, "\n".join([head, *rows, ""]), "t.csv")
        name = head.partition(",")[0]
        layout = "orders" if name == "race" else None
        expected = [row[2:].replace(",", " ") for row in rows]
        assert joined(read_survey(path, layout, judge=name)) == expected


@pytest.mark.parametrize("mark", [">", " > "])
def test_counts_below_lists(tmp_path, mark):
    lists = [mark.join(x) for x in ("abc", "bca", "cab")]
    path = write(tmp_path, f"voters;{';'.join(lists)}\nn;18;12;10\n", "t.csv")
    with refusal("the names of the columns are lists, such as", "columns called order and count"):
        read_survey(path)
    text = "order,count\n" + "".join(f"{x},{k}\n" for x, k in zip(lists, (18, 12, 10), strict=True))
    counted = write(tmp_path, text, "u.csv")
    survey = read_survey(counted, columns="order", count="count")
    assert survey.rankings.counts.tolist() == [18, 12, 10]


def test_how_often_each_item_was_preferred(tmp_path):
    path = write(tmp_path, ",Ann,Bob,Cid\nAnn,0,10,3\nBob,4,0,7\nCid,9,7,0\n", "t.csv")
    with refusal("write a line for each two items", "such as item1,item2,wins1,wins2"):
        read_survey(path)
    games = "item1,item2,wins1,wins2\nAnn,Bob,10,4\nAnn,Cid,3,9\nBob,Cid,7,7\n"
    survey = read_survey(write(tmp_path, games, "u.csv"), "pairs")
    assert survey.rankings.num_rankings == 40


def test_judges_who_rate_one_another(tmp_path):
    """Who names the judges has said that the rows are no items of which each was preferred."""
    path = write(tmp_path, "who,Ann,Bob,Cid\nAnn,0,10,3\nBob,4,0,7\nCid,9,7,0\n", "t.csv")
    with refusal("if they count how often the item of the row was preferred"):
        read_survey(path)
    with pytest.raises(RankingsError) as error:
        read_survey(path, judge="who")
    assert "preferred" not in " ".join(error.value.questions.texts)
    points = {"missing": "0", "highest_first": True, "gaps": "close", "unranked": "not-offered"}
    survey = read_survey(path, "ranks", judge="who", **points)
    assert joined(survey) == ["Bob Cid", "Cid Ann", "Ann Bob"]
    results = write(tmp_path, "who,Ann,Bob,Cid\nAnn,,1,0\nBob,0,,1\nCid,1,0,\n", "u.csv")
    with refusal("the rows and the columns have the same names", "no ranks"):
        read_survey(results, judge="who")


@pytest.mark.parametrize("name", ["team", "Players"])
def test_numbers_of_items_of_teams(tmp_path, name):
    rows = ["Reds,14,11,12", "Blues,12,13,11", "Greens,11,12,14", "Owls,13,14,12"]
    head = f"{name},1st,2nd,3rd"
    path = write(tmp_path, "\n".join([head, *rows]), "t.csv")
    said, survey = read_with_answers(path)
    assert said == {"judge": name} and joined(survey)[0] == "14 11 12"
    for text in (
        "\n".join([head, "Reds,14,14,12", *rows[1:]]),  # no item comes twice
        "\n".join([head.replace(name, "candidate"), *rows]),  # which judge nobody
        "\n".join([f"{name},Gold,Silver,Bronze", *rows]),
    ):
        with refusal("seem to count how often each row stood at that place"):
            read_survey(write(tmp_path, text, "u.csv"))


def test_ranks_that_look_like_tournaments(tmp_path):
    own = write(tmp_path, "to,SWE,NOR,MLT\nSWE,,1,2\nNOR,1,,2\nMLT,2,1,\n", "t.csv")
    assert joined(read_survey(own, "ranks", judge="to", unranked="not-offered")) == [
        "NOR MLT",
        "SWE MLT",
        "NOR SWE",
    ]
    letters = write(tmp_path, "judge,W,D,L\na,1,2,3\nb,2,1,3\n", "u.csv")
    assert joined(read_survey(letters, "ranks", judge="judge")) == ["W D L", "D W L"]
    league = write(tmp_path, "person,P,W,L\na,3,1,2\nb,3,2,1\nc,3,1,2\n", "v.csv")
    with refusal("and no ranks: write a line for each game", "layout='ranks' if they are ranks"):
        read_survey(league)
    assert joined(read_survey(league, "ranks", judge="person")) == ["W L P", "L W P", "W L P"]
    nominated = write(tmp_path, "who,Ann,Bob,Cid\nAnn,,1,0\nBob,1,,0\nCid,0,1,\n", "w.csv")
    survey = read_survey(nominated, "ranks", judge="who", missing="0", unranked="below")
    assert joined(survey) == ["Bob", "Ann", "Bob"]


@pytest.mark.parametrize("letter", "DLW")
def test_names_that_look_like_rounds(tmp_path, letter):
    lists = ["1 2 3 4", "2 1 3 4", "4 3 2 1"]
    named = [" ".join(letter + x for x in text.split()) for text in lists]
    rows = [",".join(x.split()) for x in named]
    places = "1st,2nd,3rd,4th\n"
    path = write(tmp_path, places + "\n".join(rows) + "\n", "t.csv")
    assert joined(read_survey(path)) == joined(read_survey(path, "orders")) == named
    judged = "who," + places + "".join(f"{k},{row}\n" for k, row in enumerate(rows))
    path = write(tmp_path, judged, "u.csv")
    assert joined(read_survey(path, "orders", judge="who", transpose=False)) == named
    cells = "".join(f"{k},{row.replace(',', '; ')}\n" for k, row in enumerate(rows))
    path = write(tmp_path, f"who,list\n{cells}", "v.csv")
    assert joined(read_survey(path, "cell", judge="who")) == named
    # names of which some have each of the letters are read by the layout, or below places
    path = write(tmp_path, "1st,2nd,3rd\nW1,D2,L3\nL3,W1,D2\n", "p.csv")
    assert joined(read_survey(path)) == ["W1 D2 L3", "L3 W1 D2"]
    path = write(tmp_path, "R1,R2,R3\nW1,D2,L3\nL3,W1,D2\n", "w.csv")
    with refusal("no ranks", "layout='orders' if they are names of items"):
        read_survey(path)
    assert joined(read_survey(path, "orders")) == ["W1 D2 L3", "L3 W1 D2"]


def test_names_that_were_cut_off(tmp_path):
    name = "The name of an item that..."
    twice = write(tmp_path, f"1st,2nd\n{name},{name}\nMilk,{name}\n", "t.csv")
    with refusal("is listed twice; the names seem to have been cut off"):
        read_survey(twice)
    header = write(tmp_path, f"judge,{name},{name}\na,1,2\nb,2,1\n", "u.csv")
    with refusal("the names seem to have been cut off: give each a name of its own"):
        read_survey(header, "ranks", judge="judge")
    once = write(tmp_path, f"1st,2nd\n{name},Milk\nMilk,{name}\n", "v.csv")
    notes = read_survey(once).notes
    assert any("seems to have been cut off: items with the same beginning" in x for x in notes)
    for items, are_cut in (
        ("Price...", False),
        ("Other…", False),
        ("Price...|Other...", False),
        ("Price of mi...|Price of te...", True),
    ):
        one, two = [*items.split("|"), "Milk"][:2]
        path = write(tmp_path, f"1st,2nd\n{one},{two}\n{two},{one}\n", "w.csv")
        notes = read_survey(path).notes
        assert any("to have been cut off: items with the same" in x for x in notes) == are_cut


@pytest.mark.parametrize(
    "cells, what",
    [
        ("gold,silver,bronze", "rank: write ranks as 1, 2, 3"),
        ("High,Medium,Low", "rank: write ranks as 1, 2, 3"),
        ("4/5,2/5,5/5", "rating: write the numbers alone"),
        ("50%,30%,20%", "rating: write the numbers alone"),
        ("+++,+,++", "rating: write the numbers alone"),
    ],
)
def test_words_of_ranks_and_ratings_are_no_names(tmp_path, cells, what):
    other = ",".join(cells.split(",")[::-1])
    path = write(tmp_path, f"judge,Tea,Coffee,Milk\na,{cells}\nb,{other}\n", "t.csv")
    with refusal(f"seems to be a {what}", "layout='orders' if these are names"):
        read_survey(path, judge="judge")
    assert joined(read_survey(path, "orders", judge="judge"))[0] == " ".join(cells.split(","))
