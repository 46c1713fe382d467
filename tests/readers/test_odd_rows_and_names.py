"""Rows and names of columns that say something else than those around them."""

import json

import pytest
from helpers.readers import by_name, joined, read_with_answers, refusal, write

from numpyro_rankings import RankingsError, read_survey

WON = [["Bob", "Cem", "Eve"], ["Ann", "Dee", "Cem"], ["Bob", "Dee", "Eve"], ["Ann", "Cem", "Dee"]]


@pytest.mark.parametrize("best", ["Winner", "Best", "Top choice", "Favourite"])
@pytest.mark.parametrize("layout", [None, "orders", "votes"])
def test_a_winner_beside_second_and_third_places(tmp_path, best, layout):
    """No winner is in the other columns, as judges are not."""
    rows = "".join(f"v{k},{b},{c},{a}\n" for k, (a, b, c) in enumerate(WON))
    path = write(tmp_path, f"id,2nd choice,3rd,{best}\n{rows}", "t.csv")
    assert by_name(read_survey(path, layout, judge="id")) == WON


def test_a_winner_beside_numbers_is_not_asked_about(tmp_path):
    rows = "".join(f"{','.join(x)}\n" for x in WON)
    said, survey = read_with_answers(write(tmp_path, "Winner,2,3\n" + rows, "t.csv"))
    assert said == {"layout": "orders"}
    assert by_name(survey) == WON


def test_a_winner_before_a_runner_up_and_the_last(tmp_path):
    rows = "".join(f"{','.join(x)}\n" for x in WON)
    path = write(tmp_path, "Winner,Runner-up,3rd\n" + rows, "t.csv")
    assert by_name(read_survey(path)) == WON
    path = write(tmp_path, "Winner,2nd,Last\na,b,c\nb,a,c\nc,a,b\n", "t.csv")
    assert joined(read_survey(path, "orders")) == ["a b c", "b a c", "c a b"]


RANKS_DOWN = ["Ann,1,2,3", "Bob,2,1,1", "Cem,3,3,2"]


@pytest.mark.parametrize(
    ("header", "counts", "expected"),
    [
        ("candidate,A,B,C", "count,12,7,1", [12, 7, 1]),
        ("candidate,A,B,C", "total,12,7,0", [12, 7]),
        ("candidate,A,B,C", "n,12,7,0", [12, 7]),
        ("candidate,A,B,C", "votes,3,2,1", [3, 2, 1]),  # no more than there are rows
        ("count,12,7,0", None, [12, 7]),
        ("candidate,A,B,C", "total,6,6,6", [1, 1, 1]),  # the sums
    ],
)
@pytest.mark.parametrize("is_above", [True, False])
def test_a_row_of_counts_beside_ranks_down(tmp_path, header, counts, expected, is_above):
    rows = [] if counts is None else [counts]
    rows = [*rows, *RANKS_DOWN] if is_above else [*RANKS_DOWN, *rows]
    said, survey = read_with_answers(write(tmp_path, "\n".join([header, *rows]), "t.csv"))
    assert said == {"transpose": True, "layout": "ranks"}
    lists = ["Ann Bob Cem", "Bob Ann Cem", "Bob Cem Ann"]
    assert joined(survey) == [x for x, k in zip(lists, expected, strict=False) for _ in range(k)]


def test_a_row_of_counts_above_names_down(tmp_path):
    rows = "rank,A,B,C\nvotes,3,2,0\n1,Ann,Bob,Bob\n2,Bob,Ann,Cem\n3,Cem,Cem,Ann\n"
    said, survey = read_with_answers(write(tmp_path, rows, "t.csv"))
    assert said == {"transpose": True, "layout": "orders"}
    assert joined(survey) == ["Ann Bob Cem"] * 3 + ["Bob Ann Cem"] * 2


def test_items_called_as_counts_are_items(tmp_path):
    """An item that all judges put last, and one of several letters."""
    for item, others in (("count", RANKS_DOWN), ("n", ["a,1,2,3", "b,2,1,1", "c,3,3,2"])):
        text = "\n".join(["candidate,A,B,C", *others, f"{item},4,4,4"])
        survey = read_survey(write(tmp_path, text, "t.csv"), "ranks", transpose=True)
        assert survey.rankings.items[-1] == item


# ranks of four judges, and places
OF_FOUR = {
    "ranks": ("Ann,Bob,Cem", ["1,2,3", "3,1,2", "2,3,1", "1,3,2"]),
    "orders": ("1st,2nd,3rd", ["Ann,Bob,Cem", "Bob,Cem,Ann", "Cem,Ann,Bob", "Ann,Cem,Bob"]),
}


@pytest.mark.parametrize("layout", OF_FOUR)
@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("start", [0, 1])
def test_numbers_of_rows_in_a_column_without_a_name(tmp_path, layout, place, start):
    header, rows = OF_FOUR[layout]
    lines = [header.split(","), *(x.split(",") for x in rows)]
    for k, line in enumerate(lines):
        line.insert(place, str(k + start - 1) if k else "")
    survey = read_survey(write(tmp_path, "\n".join(map(",".join, lines)), "t.csv"), layout)
    assert joined(survey) == ["Ann Bob Cem", "Bob Cem Ann", "Cem Ann Bob", "Ann Cem Bob"]
    which = f"column {place + 1}" if place else "the first column"
    assert f"{which} has no name and numbers the rows: it is left out" in survey.notes


def test_numbers_of_rows_behind_columns_without_a_name_of_their_own(tmp_path):
    rows = "".join(f"{x},{k}\n" for k, x in enumerate(OF_FOUR["orders"][1], 1))
    survey = read_survey(write(tmp_path, "Choice,,,\n" + rows, "t.csv"))
    assert joined(survey) == ["Ann Bob Cem", "Bob Cem Ann", "Cem Ann Bob", "Ann Cem Bob"]


def test_few_rows_with_numbers_are_asked_about(tmp_path):
    """The column may be that of an item."""
    said, survey = read_with_answers(
        write(tmp_path, "Ann,Bob,Cem,\n1,2,3,1\n3,1,2,2\n2,3,1,3\n", "t.csv")
    )
    assert said == {"columns": ["Ann", "Bob", "Cem"], "layout": "ranks"}
    assert joined(survey) == ["Ann Bob Cem", "Bob Cem Ann", "Cem Ann Bob"]


RATED = "id,Ann,Bob,Cem\n1,99,80,100\n2,70,99,99\n3,99,75,60\n4,100,80,99\n"


@pytest.mark.parametrize("missing", ["none", "none,DK", "DK"])
def test_no_note_of_codes_that_no_cell_has(tmp_path, missing):
    table = RATED if "none" in missing else RATED.replace("99", "90")
    given = {"judge": "id", "missing": missing, "ties": "exact", "gaps": "close"}
    survey = read_survey(write(tmp_path, table, "t.csv"), "ranks", highest_first=True, **given)
    assert not any("read as not ranked" in x or " 0 " in x for x in survey.notes)
    assert ("no cell has 'DK', of missing=" in survey.notes) == ("DK" in missing)
    assert survey.rankings.num_rankings == 4


def test_no_note_of_words_for_offers_that_no_cell_has(tmp_path):
    table = "id,Ann,Bob,Cem\n1,1,2,DNF\n2,2,1,3\n"
    given = {"judge": "id", "offered": "DNF", "not_offered": "DNS", "missing": "none"}
    notes = read_survey(write(tmp_path, table, "t.csv"), "ranks", **given).notes
    assert "read as offered and not ranked: 'DNF' in 1 cell" in notes
    assert "no cell has 'DNS', of not_offered=" in notes
    assert not any("none" in x or "in 0" in x for x in notes)


@pytest.mark.parametrize("said", [",1-5,1-5,1-5", "who,How good?,How good?,How good?"])
@pytest.mark.parametrize("is_ranked", [True, False])
def test_a_scale_or_a_question_below_the_items(tmp_path, said, is_ranked):
    rows = ["a,1,2,3", "b,3,1,2", "c,2,3,1"] if is_ranked else ["a,5,2,2", "b,3,1,1", "c,2,5,1"]
    path = write(tmp_path, "\n".join(["id,Ann,Bob,Cem", said, *rows]), "t.csv")
    given = {} if is_ranked else {"highest_first": True, "gaps": "close", "ties": "exact"}
    survey = read_survey(path, "ranks", judge="id", **given)
    assert survey.rankings.items == ("Ann", "Bob", "Cem") and survey.judges == ["a", "b", "c"]
    assert "2 rows name the columns, with ids and questions" in survey.notes


def test_a_scale_below_the_items_says_which_end_is_best(tmp_path):
    table = 'id,Ann,Bob\nwho,"rate, 5 = best","rate, 5 = best"\na,5,2\nb,1,1\nc,3,3\n'
    said, _ = read_with_answers(write(tmp_path, table, "t.csv"))
    assert said["highest_first"] and said["judge"] == "id"


def test_words_of_a_judge_are_no_second_header(tmp_path):
    for words in ("first,second,third", "n/a,n/a,n/a"):
        text = f"id,Ann,Bob,Cem\na,{words}\nb,3,1,2\nc,2,3,1\n"
        path = write(tmp_path, text, "t.csv")
        survey = read_survey(path, "ranks", judge="id", missing="n/a")
        assert joined(survey)[-2:] == ["Bob Cem Ann", "Cem Ann Bob"]
        assert not any("name the columns" in x for x in survey.notes)


@pytest.mark.parametrize("places", ["1st,2nd,3rd", "first,second,third", "Winner,2nd,3rd"])
@pytest.mark.parametrize("header", ["place,J,K,L", ",J,K,L"])
@pytest.mark.parametrize("mark", [",", "\t"])
def test_names_beside_places_in_rows(tmp_path, places, header, mark):
    """No row has a name twice, and the first column may have no name."""
    rows = ["Ann,Bob,Cem", "Bob,Cem,Ann", "Cem,Ann,Bob"]
    lines = [header, *(f"{x},{row}" for x, row in zip(places.split(","), rows, strict=True))]
    said, survey = read_with_answers(write(tmp_path, "\n".join(lines).replace(",", mark), "t.txt"))
    assert said == {"transpose": True}
    assert joined(survey) == ["Ann Bob Cem", "Bob Cem Ann", "Cem Ann Bob"]
    assert survey.judges == ["J", "K", "L"]


LAST = "judge,Ann,Bob,Cem\na,1,2,{0}\nb,{0},1,2\nc,2,1,3\n"


@pytest.mark.parametrize("word", ["last", "Worst", "n/a (tie)"])
def test_words_for_the_last_among_ranks(tmp_path, word):
    said, survey = read_with_answers(write(tmp_path, LAST.format(word), "t.csv"))
    assert said == {"judge": "judge", "layout": "ranks", "missing": [word]}
    assert joined(survey) == ["Ann Bob", "Bob Cem", "Bob Ann Cem"]  # the others are below
    with refusal(f"got {word!r}, as in 2 cells; if it "):
        read_survey(tmp_path / "t.csv", "ranks", judge="judge")


def test_words_for_the_last_beside_an_item_without_rank(tmp_path):
    """That and the last would both be below."""
    path = write(tmp_path, "Ann,Bob,Cem\n1,,last\n1,2,3\n2,1,3\n", "t.csv")
    with pytest.raises(RankingsError, match="if it is the last rank, write its number") as error:
        read_survey(path, "ranks")
    assert not error.value.questions.is_read


def test_words_for_the_first_and_the_last_make_no_orders(tmp_path):
    path = write(tmp_path, "Ann,Bob,Cem,Dee\nbest,2,3,worst\n2,best,3,worst\n", "t.csv")
    with refusal("got 'best', as in 2 cells; if it is the first rank, write 1"):
        read_survey(path, "ranks")
    with pytest.raises(RankingsError) as error:
        read_survey(path)
    assert error.value.questions.options == {"layout": "ranks"}


def test_words_for_the_last_in_a_long_table(tmp_path):
    path = write(tmp_path, "judge,item,rank\na,x,1\na,y,last\nb,y,1\nb,x,2\n", "t.csv")
    said, survey = read_with_answers(path)
    assert said == {"missing": ["last"]}
    assert joined(survey) == ["x", "y x"]


BALLOTS = [["Ann", "Bob", "Cem"], ["Bob", "Cem", "Ann"], ["Cem", "Ann", "Bob"]]
RANKED = [{"Ann": 1, "Bob": 2, "Cem": 3}, {"Ann": 3, "Bob": 1, "Cem": 2}, dict(Ann=2, Bob=3, Cem=1)]


@pytest.mark.parametrize("name", ["t.txt", "t.csv", "t.tsv"])
@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize(
    ("value", "layout"),
    [
        (BALLOTS, "orders"),
        (RANKED, "ranks"),
        ({"ballots": BALLOTS}, "orders"),
        ({"title": "day 1", "ballots": RANKED}, "ranks"),
    ],
)
def test_json_in_a_text_file(tmp_path, monkeypatch, name, indent, value, layout):
    """The command that writes the table does not write over the file."""
    monkeypatch.chdir(tmp_path)
    content = json.dumps(value, indent=indent)
    write(tmp_path, content, name)
    with pytest.raises(RankingsError, match=f"^{name}:1: this file is JSON, and no table") as error:
        read_survey(name)
    exec(str(error.value).split('"')[1])
    assert (tmp_path / name).read_text() == content
    (table,) = {*tmp_path.iterdir()} - {tmp_path / name}
    assert joined(read_survey(table, layout)) == list(map(" ".join, BALLOTS))


def test_cast_vote_records_and_lists_that_are_no_file_of_json(tmp_path):
    with refusal("if it has cast vote records, save it as .json"):
        read_survey(write(tmp_path, json.dumps({"CVR": RANKED}, indent=2), "t.txt"))
    path = write(tmp_path, '["a", "b"]\n["b", "a"]\n', "t.txt")
    assert joined(read_survey(path, "cell", header="none")) == ["a b", "b a"]


OF_THREE = ["Ann Bob Cem", "Bob Cem Ann", "Cem Ann Bob"]


@pytest.mark.parametrize("remark", ["# day 2", "// day 2", "# day 2, rain", "## wet; cold"])
@pytest.mark.parametrize(
    ("mark", "header", "layout"),
    [
        (",", "1st,2nd,3rd", None),
        (";", "1st;2nd;3rd", None),
        (">", "order", None),
        (">", "", "cell"),
    ],
)
def test_remarks_between_ballots(tmp_path, remark, mark, header, layout):
    lists = [x.replace(" ", mark) for x in OF_THREE]
    lines = [*([header] if header else []), lists[0], remark, *lists[1:], remark]
    path = write(tmp_path, "\n".join(lines), "t.txt" if mark == ">" else "t.csv")
    survey = read_survey(path, layout, header=None if header else "none")
    assert joined(survey) == OF_THREE
    place = 3 if header else 2
    assert any(f"left out as remarks: {path}:{place}, " in x for x in survey.notes), survey.notes
    assert survey.rows.tolist() == [place - 1, place + 1, place + 2]


def test_names_and_headers_that_begin_like_remarks(tmp_path):
    for text, layout, given, expected in (
        (
            "# of voters,1st,2nd\n2,a,b\n1,b,a\n",
            None,
            {"count": "# of voters"},
            ["a b", "a b", "b a"],
        ),
        ("l\n# 1>b\n# 1\nb># 1\n", "cell", {}, ["# 1 b", "# 1", "b # 1"]),
        (
            "a;b;c\n# 1;b\nb;# 1;c\nc;b;a\n",
            "orders",
            {"header": "none"},
            ["a b c", "# 1 b", "b # 1 c", "c b a"],
        ),
        ("1st,2nd\n# 1,b\nb,# 1\nb,c\n", None, {}, ["# 1 b", "b # 1", "b c"]),
    ):
        survey = read_survey(write(tmp_path, text, "t.csv"), layout, **given)
        assert joined(survey) == expected
        assert not any("remark" in x for x in survey.notes)


@pytest.mark.parametrize("header", ["id,c1,c2,c3", "id,x,y,z"])
def test_numbers_of_items_are_no_ranks(tmp_path, header):
    """They are more than the columns, and no row has one twice."""
    rows = ["2,1,5", "4,5,3", "1,4,5", "5,2,3", "2,3,1", "2,1,5", "4,1,3"]
    path = write(tmp_path, "\n".join([header, *(f"v{k},{x}" for k, x in enumerate(rows))]), "t.csv")
    is_numbered = "c1" in header
    with pytest.raises(RankingsError) as error:
        read_survey(path, judge="id")
    found = error.value.questions
    assert (
        "rank 5, but there are 3 items, as in 5 cells, and no row has a number" in found.texts[-1]
    )
    assert "missing" not in found.texts[-1] and "about" not in found.texts[-1]
    assert found.is_read == is_numbered
    if is_numbered:
        assert found.options == {"layout": "orders"}
    assert joined(read_survey(path, "orders", judge="id")) == [x.replace(",", " ") for x in rows]
    given = {"judge": "id", "columns": header.split(",")[1:], "gaps": "close"}
    assert len(read_survey(path, "ranks", **given).rankings.items) == 3


def test_a_number_too_large_in_a_few_lists(tmp_path):
    path = write(tmp_path, "id,a,b,c\nv,1,2,3\nw,5,1,2\nx,2,3,1\ny,3,1,2\n", "t.csv")
    with refusal("column 'a': rank 5, but there are 3 items; if it means that the item is not"):
        read_survey(path, "ranks", judge="id")


@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("layout", [None, "ranks"])
def test_remarks_beside_ranks_with_ties_and_gaps(tmp_path, place, layout):
    rows = ["1,3,4", "1,2,2", "3,1,2", "2,3,1", "1,2,3"]
    said = ["fine", "no 2 was hot", "so so", "fine", ""]
    lines = [["Ann", "Bob", "Cem"], *(x.split(",") for x in rows)]
    for line, text in zip(lines, ["why", *said], strict=True):
        line.insert(place, text)
    path = write(tmp_path, "\n".join(map(",".join, lines)), "t.csv")
    answers, survey = read_with_answers(path, layout=layout, ties="exact", gaps="close")
    assert answers == {"about": ["why"]} | ({} if layout else {"layout": "ranks"})
    assert survey.about == {"why": said} and survey.rankings.items == ("Ann", "Bob", "Cem")


# ---------------------------------------------------------------------------------------------
# Columns of two kinds, of several questions, and of sums
# ---------------------------------------------------------------------------------------------

OF_SURE = [("Tea", 3, "Milk", 2, "Cola", 1), ("Milk", 3, "Tea", 2, "Cola", 1)]
OF_SURE += [("Cola", 3, "Tea", 2, "Milk", 1)]


@pytest.mark.parametrize(
    "names", ["1st,1st_{},2nd,2nd_{},3rd,3rd_{}", "c1,c1_{},c2,c2_{},c3,c3_{}"]
)
@pytest.mark.parametrize("word", ["points", "sure"])
@pytest.mark.parametrize("layout", [None, "orders"])
def test_numbers_beside_places_are_not_the_answer(tmp_path, names, word, layout):
    header = "id," + names.format(word, word, word)
    rows = [",".join(map(str, (k, *row))) for k, row in enumerate(OF_SURE)]
    path = write(tmp_path, "\n".join([header, *rows]) + "\n", "t.csv")
    said, survey = read_with_answers(path, judge="id", **{"layout": layout} if layout else {})
    assert said["columns"] == names.format(word, word, word).split(",")[::2]
    assert joined(survey) == ["Tea Milk Cola", "Milk Tea Cola", "Cola Tea Milk"]


def test_remarks_beside_items_are_no_names_of_items(tmp_path):
    """Also if no row has a word twice, and each column has the words of the others."""
    header = "id,Tea,Milk,Cola,Tea{0},Milk{0},Cola{0}\n"
    rows = "1,1,2,3,often,rarely,never\n2,2,1,3,rarely,often,never\n3,1,2,3,never,rarely,often\n"
    for end in ("_seen", "_why"):
        path = write(tmp_path, header.format(end) + rows, "t.csv")
        said, survey = read_with_answers(path, judge="id", layout="ranks")
        assert said["columns"] == ["Tea", "Milk", "Cola"]
        assert joined(survey) == ["Tea Milk Cola", "Milk Tea Cola", "Tea Milk Cola"]
    # but where the numbers are names of items and their ranks, an example is given
    text = "id,item_1,rank_1,item_2,rank_2\n1,Tea,1,Milk,2\n2,Milk,2,Tea,1\n3,Tea,2,Milk,1\n"
    with refusal("such as 1,Tea,1, which layout='long' reads"):
        read_survey(write(tmp_path, text, "t.csv"), judge="id")


def test_questions_that_could_be_either_way_are_both_named(tmp_path):
    header = "id,Q1_Tea,Q1_Milk,Q2_Tea,Q2_Milk\n"
    path = write(tmp_path, header + "1,1,2,2,1\n2,2,1,1,2\n3,1,2,2,1\n", "t.csv")
    with refusal("by columns='*_Tea' or columns='Q1_*'; columns=['Q1_Tea', 'Q1_Milk', "):
        read_survey(path, judge="id")
    survey = read_survey(path, judge="id", layout="ranks", columns="Q1_*")
    assert survey.rankings.items == ("Tea", "Milk")
    # one way only: that is the likely answer, and the other way out is named, too
    wine = "id,red_wine,white_wine,red_beer,white_beer\n1,1,2,1,2\n2,1,2,2,1\n3,2,1,2,1\n"
    path = write(tmp_path, wine, "t.csv")
    with refusal("columns=['red_wine', 'white_wine', ", "] if it is one question"):
        read_survey(path, judge="id", layout="ranks", ties="exact")
    names = ["red_wine", "white_wine", "red_beer", "white_beer"]
    survey = read_survey(path, judge="id", layout="ranks", ties="exact", columns=names)
    assert survey.rankings.num_items == 4


def test_an_item_called_total(tmp_path):
    fuel = "id,Fiat,Total,Shell\n1,2,3,1\n2,1,3,2\n3,2,3,1\n"
    names = ["Fiat", "Total", "Shell"]
    path, options = write(tmp_path, fuel, "t.csv"), {"judge": "id", "layout": "ranks"}
    with refusal("about='Total'", "; columns=['Fiat', 'Total', 'Shell'] if it is one"):
        read_survey(path, **options)
    assert joined(read_survey(path, **options, columns=names))[0] == "Shell Fiat Total"
    # an average is none of the numbers that it would be the sum of
    path = write(tmp_path, "id,Low,High,Average\n1,1,2,3\n2,1,2,3\n3,2,1,3\n", "t.csv")
    assert read_survey(path, **options).rankings.num_items == 3
    # half of the rows have no sum, or more, where it is no rank
    for rows, given in (
        ("1,1,2,3,\n2,2,1,3,\n3,3,1,2,6\n4,1,3,2,\n", options),
        ("1,1,1,2,4\n2,2,1,1,\n3,1,2,2,5\n4,2,2,1,\n", {**options, "ties": "exact"}),
    ):
        path = write(tmp_path, f"id,Tea,Milk,Rum,Total\n{rows}", "t.csv")
        with refusal("'Total' has the sums of the other columns: add about='Total'"):
            read_survey(path, **given)
        said, survey = read_with_answers(path, **given)
        assert said == {"about": ["Total"]} and survey.rankings.items == ("Tea", "Milk", "Rum")
    few = write(tmp_path, "id,Fiat,Total,Shell\n1,2,3,1\n2,1,,2\n3,2,,1\n", "t.csv")
    assert joined(read_survey(few, **options)) == ["Shell Fiat Total", "Fiat Shell", "Shell Fiat"]
    # one who answered nothing has no sum
    path = write(tmp_path, "id,Tea,Milk,Sum\n1,,,\n2,1,2,3\n3,2,1,3\n", "t.csv")
    with refusal("'Sum' has the sums of the other columns"):
        read_survey(path, **options)


def test_a_column_that_begins_the_names_of_the_others_is_likely_the_first(tmp_path):
    for names in ("choice,choice.1,choice.2", "course,course_1,course_2"):
        text = names + "\nTea,Milk,Cola\nMilk,Tea,Cola\nCola,Tea,Milk\nTea,Cola,Milk\n"
        path = write(tmp_path, text, "t.csv")
        said, survey = read_with_answers(path, layout="orders")
        assert said["columns"] == names.split(",") and survey.rankings.num_rankings == 4


# ---------------------------------------------------------------------------------------------
# Brackets, codes and own items
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "first"),
    [
        ("id,1st :),2nd :(\n1 :),Tea,Milk\n2 :),Milk,Tea\n", {"judge": "id"}, "Tea Milk"),
        ("a) 1st,b) 2nd\na) Tea,b) Milk\na) Milk,b) Tea\n", {"layout": "orders"}, "a) Tea b) Milk"),
        ("1) Tea,2) Milk\n1,2\n2,1\n", {"layout": "ranks"}, "1) Tea 2) Milk"),
    ],
)
def test_a_bracket_that_closes_nothing_is_no_list(tmp_path, text, options, first):
    assert joined(read_survey(write(tmp_path, text, "t.csv"), **options))[0] == first


def test_no_code_beside_cells_with_none(tmp_path):
    """The word is then for these cells, and 99 is asked about as without it."""
    rows = "1,4,none,2,3\n2,4,1,99,3\n3,1,2,none,4\n4,1,3,4,99\n"
    path = write(tmp_path, "id,a,b,c,d\n" + rows, "t.csv")
    options = {"judge": "id", "layout": "ranks", "highest_first": True, "ties": "exact"}
    for missing in (["none"], ["None"]):
        with refusal("got '99', as in 2 cells"):
            read_survey(path, **options, missing=missing)
    survey = read_survey(path, **options, missing=["none", "99"], gaps="close")
    assert joined(survey)[1] == "a d b"


def test_not_offered_is_no_answer_where_others_leave_out_more(tmp_path):
    header, own = "id,1st,2nd,3rd,4th\n", "A,B,C,D,\nB,A,C,D,\nC,A,B,D,\nD,A,B,C,\n"
    path = write(tmp_path, header + own + "Xu,A,B,C,D\n", "t.csv")
    with refusal("add unranked='not-offered' if nobody was offered it"):
        read_survey(path, judge="id")
    path = write(tmp_path, header + own + "Zed,A,B,,\nYan,D,,,\nXu,A,B,C,D\n", "t.csv")
    with refusal("add offered= with a column"):
        read_survey(path, judge="id")


def test_numbers_of_items_of_judges_called_as_teams(tmp_path):
    text = "player,1st,2nd\nAnn,7,12\nBob,3,7\nCy,12,3\n"
    survey = read_survey(write(tmp_path, text, "t.csv"), judge="player")
    assert joined(survey) == ["7 12", "3 7", "12 3"]
    text = "player,1st,2nd\nAnn,7,3\nBob,3,3\nCy,2,6\n"  # a number twice in a row: counts
    with refusal("seem to count how often"):
        read_survey(write(tmp_path, text, "t.csv"), judge="player")


REMARKS = {
    "orders": "1st,2nd,3rd\nAnn,Bob,{0}\nBob,Dee,Ann\nDee,Ann,Bob\n",
    "votes": "Choice 1,Choice 2,Choice 3\nAnn,Bob,{0}\nBob,Dee,Ann\nDee,Ann,undervote\n",
    "cell": "list\nAnn > Bob > {0}\nBob > Dee > Ann\nDee > Ann > Bob\n",
    "long": "judge,item,rank\n1,Ann,1\n1,{0},2\n2,Dee,1\n2,Ann,2\n3,Dee,1\n3,Ann,2\n",
    "pairs": "winner,loser\nAnn,{0}\nBob,Dee\nDee,Ann\n",
}


@pytest.mark.parametrize("layout", REMARKS)
@pytest.mark.parametrize("remark", [" # late", " #late", " (late)", "(late)"])
def test_a_remark_behind_a_name(tmp_path, remark, layout):
    path = write(tmp_path, REMARKS[layout].format(f"Dee{remark}"), "t.csv")
    with refusal(f"is 'Dee{remark}' an item, or 'Dee' with a remark?", "write 'Dee' there"):
        read_survey(path, layout)
    as_written = read_survey(write(tmp_path, REMARKS[layout].format("Dee"), "u.csv"), layout)
    survey = read_survey(path, layout, aliases={f"Dee{remark}": "Dee"})
    assert survey.rankings == as_written.rankings
    items = [*as_written.rankings.items, f"Dee{remark}"]
    assert read_survey(path, layout, items=items).rankings.num_items == len(items)


@pytest.mark.parametrize(
    "rows",
    [
        ["Milk,Milk (skim),Tea", "Milk,Tea,", "Tea,Milk,"],  # both in one list
        ["Milk (skim),Tea,", "Milk (skim),Tea,", "Tea,Milk,Rum", "Milk,Tea,Rum"],
        ["Cee#,Rum,", "Cee,Tea,", "Tea,Cee,Rum"],
        ["Write-in,Tea,", "Tea,Write-in,", "Write-in (Zed),Tea,"],
        ["Ann (5931),Tea,", "Ann,Tea,", "Tea,Ann,"],  # a code, which describe tells
        ["Rum (white),Tea,", "Rum,Tea,", "Tea,Gin,Gin (dry)"],  # each is there once
    ],
)
def test_names_that_begin_as_another_are_items(tmp_path, rows):
    path = write(tmp_path, "1st,2nd,3rd\n" + "\n".join(rows), "t.csv")
    assert joined(read_survey(path)) == [" ".join(x.strip(",").split(",")) for x in rows]
