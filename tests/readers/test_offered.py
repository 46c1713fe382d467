"""Items that were offered and not ranked, and items that were not offered."""

import itertools

import numpy as np
import pandas as pd
import pytest
from helpers.readers import by_name, joined, read_with_answers, refusal, write

from numpyro_rankings import PartialOrders, Rankings, RankingsError, read_rankings, read_survey

RACES = "race,Ann,Bob,Cid,Dora\nr1,1,DNF,2,DNS\nr2,DNF,1,2,\nr3,1,2,dns,3\n"
LONG = (
    "judge,item,rank\nr1,Ann,1\nr1,Bob,DNF\nr1,Cid,2\nr1,Dora,DNS\nr2,Ann,DNF\nr2,Bob,1\nr2,Cid,2\n"
    "r3,Ann,1\nr3,Bob,2\nr3,Cid,DNS\nr3,Dora,3\n"
)
# whether an item was offered that has DNF, DNS, or nothing
WAYS = {
    "words for both": ({"offered": "DNF", "not_offered": "DNS"}, (True, False)),
    "below, but for DNS": ({"missing": "DNF", "not_offered": "DNS"}, (True, False)),
    "not offered, but for DNF": (
        {"missing": "DNS", "offered": "DNF", "unranked": "not-offered"},
        (True, False),
    ),
    "both below": ({"missing": "DNF,DNS"}, (True, True)),
    "both not offered": ({"missing": "DNF,DNS", "unranked": "not-offered"}, (False, False)),
    "words below": ({"offered": ["DNF", "DNS"], "unranked": "not-offered"}, (True, True)),
}


@pytest.mark.parametrize("layout", ["ranks", "long"])
@pytest.mark.parametrize("way", WAYS)
def test_all_ways(tmp_path, way, layout):
    options, (finished, started) = WAYS[way]
    text, judge = (RACES, "race") if layout == "ranks" else (LONG, "judge")
    survey = read_survey(write(tmp_path, text, "t.csv"), layout, judge=judge, **options)
    assert by_name(survey) == [["Ann", "Cid"], ["Bob", "Cid"], ["Ann", "Bob", "Dora"]]
    blank = options.get("unranked") != "not-offered"
    expected = np.array(
        [
            [True, finished, True, started],
            [finished, True, True, blank],
            [True, True, started, True],
        ]
    )
    offered = survey.rankings.offered()
    if expected.all():
        assert offered is None
    else:
        assert np.asarray(offered)[survey.label_index].tolist() == expected.tolist()


def test_the_words_are_counted(tmp_path):
    path = write(tmp_path, RACES, "t.csv")
    survey = read_survey(path, "ranks", judge="race", offered="DNF", not_offered="DNS,empty")
    assert "read as offered and not ranked: 'DNF' in 2 cells" in survey.notes
    assert "read as not offered: 'DNS' in 2 cells, 'empty' in 1 cell" in survey.notes
    assert not any("does not rank" in note for note in survey.notes)
    assert not survey.rankings.choice_sets[1, 3]


def test_an_empty_cell_of_a_long_table():
    table = pd.DataFrame(
        {"judge": [1, 1, 1, 2, 2], "item": list("abcab"), "rank": [1, None, 2, 2, 1]}
    )
    for unranked, offered in itertools.product(("below", "not-offered"), ((), "empty")):
        read = read_rankings(table, unranked=unranked, offered=offered)
        is_there = unranked == "below"
        expected = [[True, is_there or bool(offered), True], [True, True, is_there]]
        assert read.choice_sets is None or read.choice_sets.tolist() == expected
        assert (read.choice_sets is None) == is_there


def test_with_ties(tmp_path):
    text = RACES.replace("r3,1,2,dns,3", "r3,1,2,dns,2")
    path = write(tmp_path, text, "t.csv")
    read = read_rankings(path, "ranks", judge="race", offered="DNF", not_offered="DNS")
    offered = [[True, True, True, False], [True] * 4, [True, True, False, True]]
    buckets = [["Ann", "Cid"], ["Bob", "Cid"], ["Ann", ["Bob", "Dora"]]]
    assert read == PartialOrders.from_buckets(
        buckets, items=["Ann", "Bob", "Cid", "Dora"], choice_sets=offered
    )
    same = read_rankings(path, "ranks", judge="race", missing="DNF,DNS", unranked="not-offered")
    assert same.unlisted == "not-offered" and same.choice_sets is None


COLUMN = {
    "orders": "1st,2nd,offers\na,b,a;b;c\nc,a,\nb,d,b;d;e\n",
    "cell": 'list,offers\na>b,"a,b,c"\nc>a,\nb>d,"b,d,e"\n',
    "ranks": "a,b,c,d,e,offers\n1,2,,,,a|b|c\n2,,1,,,\n,1,,2,,b|d|e\n",
}


@pytest.mark.parametrize("unranked", ["below", "not-offered"])
@pytest.mark.parametrize("layout", COLUMN)
def test_a_column_lists_what_was_offered(tmp_path, layout, unranked):
    path = write(tmp_path, COLUMN[layout], "t.csv")
    columns = {"columns": "list"} if layout == "cell" else {}
    survey = read_survey(path, layout, offered="offers", unranked=unranked, **columns)
    assert by_name(survey) == [["a", "b"], ["c", "a"], ["b", "d"]]
    items = survey.rankings.items
    offered = np.asarray(survey.rankings.choice_sets)[survey.label_index]
    named = [{items[k] for k in np.flatnonzero(row)} for row in offered]
    assert named == [set("abc"), set("abcde") if unranked == "below" else set("ac"), set("bde")]
    assert any("offered, but ranked by nobody: e" in x for x in survey.notes) == (layout != "ranks")


def test_refusals(tmp_path):
    path = write(tmp_path, RACES, "t.csv")
    with refusal("'DNF' is in missing, which says nothing of what was offered"):
        read_survey(path, "ranks", judge="race", missing="DNF", offered="DNF,DNS")
    with refusal("'dnf' cannot mean both that an item was offered and that it was not"):
        read_survey(path, "ranks", judge="race", offered="DNF", not_offered="dnf")
    with refusal("got 'DNF'", "add offered='DNF'; not_offered=['DNS', 'DNF'] if it was not"):
        read_survey(path, "ranks", judge="race", not_offered="DNS")
    with refusal("offered and not_offered do not go with the rules of ballots"):
        read_survey(path, "ranks", judge="race", offered="DNF", overvote="stop")
    orders = write(tmp_path, COLUMN["orders"], "o.csv")
    with refusal("offered='DNF' says what cells mean in the layouts ranks and long; in the layout "
                 "orders offered= names a column"):  # fmt: skip
        read_survey(orders, "orders", about="offers", offered="DNF")
    wrong = write(tmp_path, COLUMN["orders"].replace("a;b;c", "b;c"), "w.csv")
    with refusal(
        "w.csv:2: 'a' is ranked, but is not among the items that the column 'offers' says"
    ):
        read_survey(wrong, "orders", offered="offers")


def test_strict_lists_stay_rankings(tmp_path):
    path = write(tmp_path, RACES, "t.csv")
    assert isinstance(read_rankings(path, "ranks", judge="race", offered="DNF,DNS"), Rankings)


LONG_COLUMN = "judge,item,rank,saw\nx,a,1,{0}\nx,b,2,{1}\ny,c,1,{2}\ny,d,2,{2}\nz,d,1,\n"


def offered_to(survey):
    """The names of the items that were offered to each judge, in the order of the file."""
    items = survey.rankings.items
    offered = np.asarray(survey.rankings.choice_sets)[survey.label_index]
    return ["".join(items[k] for k in np.flatnonzero(row)) for row in offered]


def test_what_is_ranked_was_offered(tmp_path):
    path = write(tmp_path, LONG_COLUMN.format("a;b", "a;b", "b"), "t.csv")
    with refusal(
        "t.csv: judge 'y': 'c', 'd' are ranked, but are not among the items that the column 'saw' "
        "says were offered; write all that was offered into that column, or leave out offered='saw'"
    ):
        read_survey(path, offered="saw")
    assert len(read_survey(path).rankings) == 3
    differs = write(tmp_path, LONG_COLUMN.format("a;b", "a;b;c", "c;d"), "d.csv")
    with refusal(
        "d.csv:3: column 'saw' is 'a;b;c', but 'a;b' in an earlier row of judge 'x'; write the "
        "same in all rows of a judge, or leave out offered='saw'"
    ):
        read_survey(differs, offered="saw")
    orders = COLUMN["orders"].replace("a;b;c", "b;c").replace("b;d;e", "d;e")
    with refusal("o.csv:2: 'a' is ranked", "says were offered, as in 1 other line: 4; write all"):
        read_survey(write(tmp_path, orders, "o.csv"), "orders", offered="offers")


@pytest.mark.parametrize("unranked", ["below", "not-offered"])
@pytest.mark.parametrize("layout", ["orders", "cell", "long"])
def test_aliases_and_items_of_what_was_offered(tmp_path, layout, unranked):
    """The column has the further names, too; an empty cell offers all, or what is ranked."""
    if layout == "long":
        text, columns = LONG_COLUMN.format("A;b;e", "A;b;e", "c|d|A"), {}
    elif layout == "cell":
        text, columns = "list,saw\na>b,A;b;e\nc>d,c|d|A\nd,\n", {"columns": "list"}
    else:
        text, columns = "1st,2nd,saw\na,b,A;b;e\nc,d,c|d|A\nd,,\n", {}
    path = write(tmp_path, text, "t.csv")
    options = {"offered": "saw", "unranked": unranked, **columns}
    last = "d" if unranked == "not-offered" else "{}"
    for further, order in (({}, "abcde"), ({"items": [*"ebfdca"]}, "ebfdca")):
        survey = read_survey(path, layout, aliases={"A": "a"}, **further, **options)
        assert "".join(survey.rankings.items) == order
        expected = ["abe", "acd", last.format(order)]
        assert [sorted(x) for x in offered_to(survey)] == [sorted(x) for x in expected]
        assert by_name(survey) == [["a", "b"], ["c", "d"], ["d"]]
        meaning = "only what is ranked" if unranked == "not-offered" else "all items"
        said = f"the column 'saw' is empty in 1 row, where {meaning} was offered"
        assert any(said in x for x in survey.notes)
    with refusal("there is no item 'A'; expected e, b, f, d, c, …"):
        read_survey(path, layout, items=[*"ebfdca"], **options)


@pytest.mark.parametrize("unranked", ["below", "not-offered"])
@pytest.mark.parametrize("layout", ["ranks", "long"])
def test_items_without_a_word(tmp_path, layout, unranked):
    """No text says of Dora in r2, nor of Eve, whether she was offered: the default does."""
    text, judge = (RACES, "race") if layout == "ranks" else (LONG, "judge")
    options = {"offered": "DNF", "not_offered": "DNS", "unranked": unranked, "judge": judge}
    items = ["Dora", "Cid", "Bob", "Ann"]
    aliases = {"D.": "Dora"}
    path = write(tmp_path, text.replace("Dora", "D."), "t.csv")
    survey = read_survey(path, layout, aliases=aliases, items=items, **options)
    found = np.asarray(survey.rankings.choice_sets)[survey.label_index].tolist()
    is_there = unranked == "below"
    assert found == [
        [False, True, True, True],
        [is_there, True, True, True],
        [True, False, True, True],
    ]
    assert any("of which no text says whether they were offered" in x for x in survey.notes)
    if layout == "long":
        more = read_survey(path, layout, aliases=aliases, items=["Eve", *items], **options)
        offered = np.asarray(more.rankings.offered())[more.label_index]
        assert (offered[:, 0] == is_there).all()


@pytest.mark.parametrize("name", ["offered", "candidates offered", "available", "choices shown"])
@pytest.mark.parametrize("columns", ["1st,2nd", "ranking"])
def test_a_column_of_lists_is_suggested_as_offered(tmp_path, columns, name):
    between = "," if "," in columns else ">"
    rows = [("k", "Ann", "Bob", "Cid"), ("l", "Bob", "Cid", "Dee"), ("m", "Dee", "Ann", "Bob")]
    text = "".join(f"{k},{x}{between}{y},{x};{y};{z}\n" for k, x, y, z in rows)
    path = write(tmp_path, f"judge,{columns},{name}\n{text}", "t.csv")
    with pytest.raises(RankingsError) as error:
        read_survey(path)
    questions = error.value.questions
    assert questions.is_read and questions.options["offered"] == name
    settings = dict(questions.options)
    survey = read_survey(path, settings.pop("layout", None), **settings)
    assert np.asarray(survey.rankings.offered()).sum(1).tolist() == [3, 3, 3]
    other = write(tmp_path, f"judge,{columns},{name}\n{text}".replace(";", " "), "u.csv")
    with pytest.raises(RankingsError) as error:
        read_survey(other)
    assert "offered" not in error.value.questions.options


WORDS = {
    "DNF": "offered",
    "Did not finish": "offered",
    "ret": "offered",
    "DNS": "not_offered",
    "did not start": "not_offered",
    "not offered": "not_offered",
    "n/a - not on my ballot": "not_offered",
    "never tried": "not_offered",
    "not applicable": "missing",
    "N/A (see below)": "missing",
}


@pytest.mark.parametrize("word", WORDS)
def test_what_a_word_says_of_an_item_without_a_rank_is_the_first_answer(tmp_path, word):
    rows = [("x", 1, 2, 3), ("y", 1, 2, word), ("z", word, 2, 1), ("w", 3, 1, 2)]
    wide = pd.DataFrame(rows, columns=["race", "Ham", "Ver", "Lec"])
    long = wide.melt("race", var_name="item", value_name="rank").rename(columns={"race": "judge"})
    for frame, settings in ((wide, {"layout": "ranks", "judge": "race"}), (long, {})):
        path = tmp_path / "t.csv"
        frame.to_csv(path, index=False)
        with pytest.raises(RankingsError) as error:
            read_survey(path, **settings)
        found = error.value.questions
        assert found.is_read
        assert {x: list(y) for x, y in found.options.items()} == {WORDS[word]: [word]}
        rankings = read_survey(path, **settings, **found.options).rankings
        offered = rankings.choice_sets
        assert (offered is not None and int(np.sum(~offered)) == 2) == (
            WORDS[word] == "not_offered"
        )


def test_words_for_both_are_asked_about_together(tmp_path):
    text = "race,a,b,c,d\nx,1,2,3,4\ny,1,2,DNS,DNF\nz,DNF,2,1,ret\nw,3,1,2,4\n"
    path = write(tmp_path, text, "t.csv")
    with pytest.raises(RankingsError) as error:
        read_survey(path, "ranks", judge="race")
    found = error.value.questions
    assert found.options == {"offered": ["DNF", "ret"], "not_offered": ["DNS"]} and found.is_read
    sets = read_survey(path, "ranks", judge="race", **found.options).rankings.choice_sets
    assert np.sum(~np.asarray(sets)) == 1


@pytest.mark.parametrize("word", ["not offered", "n/a - not on my ballot", "DNS"])
def test_such_words_among_names_are_no_items(tmp_path, word):
    text = f"1st,2nd,3rd\nX,Y,Z\nZ,X,{word}\nY,Z,X\n"
    for settings in ({}, {"layout": "votes"}):
        with refusal(f"is {word!r} an item?", f"add missing={word!r}"):
            read_survey(write(tmp_path, text, "t.csv"), **settings)
    read = read_survey(tmp_path / "t.csv", missing=word)
    assert joined(read) == ["X Y Z", "Z X", "Y Z X"]
    cells = pd.DataFrame({"list": [f"X;Y;{word}", "Y;X;Z"]})
    with refusal(f"is {word!r} an item?"):
        read_survey(cells, "cell")


VOTERS = {
    "orders": "voter,1st,2nd,3rd\nAnn,Bob,Cid,Dan\nBob,Ann,Cid,Dan\nCid,Dan,Ann,Bob\n",
    "cell": "voter,list\nAnn,Bob;Cid;Dan\nBob,Ann;Cid;Dan\nCid,Dan;Ann;Bob\n",
    "long": "judge,item,rank\nAnn,Bob,1\nAnn,Cid,2\nAnn,Dan,3\nBob,Ann,1\nBob,Cid,2\nBob,Dan,3\n"
    "Cid,Dan,1\nCid,Ann,2\nCid,Bob,3\n",
    "votes": "voter,Choice 1,Choice 2,Choice 3\nAnn,Bob,Cid,Dan\nBob,Ann,Cid,Dan\n"
    "Cid,Dan,Ann,Bob\n",
}


@pytest.mark.parametrize("layout", VOTERS)
def test_voters_who_are_items_and_do_not_rank_themselves(tmp_path, layout):
    text = VOTERS[layout]
    path = write(tmp_path, text, "t.csv")
    settings = {"layout": layout, "judge": text.partition(",")[0]}
    said, survey = read_with_answers(path, **settings)
    assert said == {"unranked": "not-offered"}
    assert joined(survey) == ["Bob Cid Dan", "Ann Cid Dan", "Dan Ann Bob"]
    assert np.asarray(survey.rankings.choice_sets).sum() == 9
    assert read_survey(path, **settings, unranked="below").rankings.choice_sets is None
    # with fewer of all, the items that were offered are not known
    text = VOTERS["orders"].replace(",Cid,Dan", ",Eve,Dan") + "Dan,Ann,Bob,\n"
    short = write(tmp_path, text, "u.csv")
    with refusal("3 judges in 'voter' have the name of an item", "unranked='below' ranks it below"):
        read_survey(short, judge="voter")


def test_voters_who_may_rank_themselves(tmp_path):
    text = VOTERS["orders"]
    for new in (text.replace("Ann,Bob,Cid", "Ann,Ann,Cid"), text.replace(",Cid,Dan", ",,")):
        assert read_survey(write(tmp_path, new, "t.csv"), judge="voter").judges is not None
