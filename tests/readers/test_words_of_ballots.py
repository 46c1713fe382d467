"""Words for over- and undervotes, and codes for no answer, are no items unless they are named."""

import pandas as pd
import pytest
from helpers.readers import joined, read_with_answers, refusal, write

from numpyro_rankings import read_survey
from numpyro_rankings.readers.answers import codes_above

WORDS = [
    "Multiple votes",
    "double vote",
    "over",
    "under",
    "O",
    "U",
    "OV",
    "uv",
    "Overvote",
    "UNDERVOTED",
    "Exhausted",
    "(under)",
    "Survote",
]


NO_RANK = [
    "N/A",
    "empty",
    "nul",
    "Blanc",
    "VOTE BLANC",
    "Ungültig",
    "k.A.",
    "Abstention",
    "en blanco",
]


def ballots(word, layout):
    """Three ballots, in the second of which a word stands for the second place."""
    return table_of([["Ann", "Bob", "Cid"], ["Bob", word, "Ann"], ["Cid", "Ann", "Bob"]], layout)


def table_of(names, layout):
    if layout == "cell":
        return pd.DataFrame({"order": ["; ".join(x) for x in names]})
    if layout == "long":
        rows = [(k, x, i) for k, x in enumerate(names) for i, x in enumerate(x, 1)]
        return pd.DataFrame(rows, columns=["judge", "item", "rank"])
    return pd.DataFrame(names, columns=[f"Rank {k}" for k in range(1, len(names[0]) + 1)])


@pytest.mark.parametrize("word", WORDS)
def test_words_of_ballots(word):
    survey = read_survey(ballots(word, "votes"), columns="Rank*")
    assert survey.layout == "votes" and survey.rankings.items == ("Ann", "Bob", "Cid")
    second = "Bob" if word.casefold()[0] in "omds" else "Bob Ann"
    assert joined(survey) == ["Ann Bob Cid", second, "Cid Ann Bob"]
    assert any(repr(word) in note for note in survey.notes)
    with refusal("some cells have words such as undervote", "layout='votes'"):
        read_survey(ballots(word, "orders"), "orders")
    with refusal(f"have words such as {word!r}", f"add missing={word!r}"):
        read_survey(ballots(word, "cell"), "cell")
    lists = read_survey(ballots(word, "cell"), "cell", missing=word, gaps="close")
    assert joined(lists)[1] == "Bob Ann"
    with refusal(f"is {word!r} an item?", "if it is an item, add items="):
        read_survey(ballots(word, "long"), "long")
    ranks = pd.DataFrame({"Ann": [1, 2], "Bob": [2, 1], word: [3, 3]})
    with refusal(f"is {word!r} an item?", "about="):
        read_survey(ranks, "ranks")


@pytest.mark.parametrize("layout", ["orders", "cell", "long", "votes"])
def test_words_that_are_items(layout):
    for word in ("over", "blank", "*"):
        names = ["Ann", "Bob", "Cid", word]
        survey = read_survey(ballots(word, layout), layout, items=names)
        assert joined(survey)[1] == f"Bob {word} Ann"


def test_letters_are_items_among_letters():
    frame = pd.DataFrame({"1st": ["O", "U", "A"], "2nd": ["A", "O", "U"]})
    assert joined(read_survey(frame)) == ["O A", "U O", "A U"]
    assert joined(read_survey(frame, "votes")) == ["O A", "U O", "A U"]
    assert read_survey(frame.replace({"A": "7"}), items=["7", "8"]).layout == "votes"


@pytest.mark.parametrize("layout", ["orders", "cell", "long", "votes"])
@pytest.mark.parametrize(
    "code",
    ["*", "##", "X", "99", "9", "66", "998", "-1", "<none>", "[no mark]", *NO_RANK, "skip"],
)
def test_codes_among_names(code, layout):
    if (layout, code) in (("votes", "skip"), ("cell", "<none>")):
        return  # a blank rank, and what may be a mark between items
    how = f"add missing={code!r}"
    if layout == "long" and code not in NO_RANK:
        how = "if it is an item, add items=" if code == "skip" else "remove its rows"
    with refusal(f"is {code!r} an item?", how):
        read_survey(ballots(code, layout), layout)


@pytest.mark.parametrize("layout", ["orders", "cell", "votes", "long"])
def test_numbers_among_names_with_numbers_are_items(layout):
    frame = table_of([["Ann", "12", "Bob"], ["Bob", "9", "Ann"]], layout)
    assert joined(read_survey(frame, layout))[1] == "Bob 9 Ann"


def test_words_of_overvotes_that_may_be_items():
    frame = ballots("Multiple", "orders")
    said, survey = read_with_answers(frame)
    assert said == {"layout": "votes"} and joined(survey) == ["Ann Bob Cid", "Bob", "Cid Ann Bob"]
    with refusal("is 'Multiple' an item?", "add items=['Ann', 'Bob', 'Cid', 'Multiple']"):
        read_survey(frame, "orders")
    survey = read_survey(frame, items=["Ann", "Bob", "Cid", "Multiple"])
    assert joined(survey)[1] == "Bob Multiple Ann"


@pytest.mark.parametrize("word", ["keine Angabe", "leer", "nulo"])
def test_words_of_other_languages_among_ranks(tmp_path, word):
    text = f"Tee;Milch;Wein\n1;2;{word}\n2;1;3\n{word};1;2\n"
    said, survey = read_with_answers(write(tmp_path, text, "t.csv"), layout="ranks")
    assert said == {"missing": [word]}
    assert joined(survey) == ["Tee Milch", "Milch Tee Wein", "Milch Wein"]


@pytest.mark.parametrize("layout", ["orders", "cell", "votes", "long"])
def test_a_candidate_called_blanc(layout):
    rows = [("Ann", "Blanc", "Bob"), ("Blanc", "Bob", "Ann"), ("Bob", "Ann", "Blanc")]
    frame = table_of(rows, layout)
    said, survey = read_with_answers(frame, layout=layout)
    assert said == {"items": ["Ann", "Blanc", "Bob"]} and joined(survey)[0] == "Ann Blanc Bob"
    # twice in a list it is none
    if layout in ("orders", "votes"):
        frame = frame.replace({"Rank 1": {"Ann": "Blanc"}})
        with refusal("is 'Blanc' an item?", "add missing='Blanc'; if it is one, name all items"):
            read_survey(frame, layout)


@pytest.mark.parametrize("layout", ["orders", "cell", "votes"])
def test_blanc_above_others_is_likely_a_name_also_among_many(layout):
    names = ("Blanc", "Noir", "Rouge", "Gris", "Vert", "Bleu")
    frame = table_of([names[k:] + names[:k] for k in range(6)], layout)
    said, survey = read_with_answers(frame, layout=layout)
    assert set(said) == {"items"} and joined(survey)[5] == "Bleu Blanc Noir Rouge Gris Vert"
    # behind the names it means that no further one is ranked
    frame = table_of([(*names[1:], "Blanc"), (*names[1:], "Blanc"), names], layout)
    said, survey = read_with_answers(frame, layout=layout)
    assert said["missing"] == ["Blanc"] and survey.rankings.num_items == 5


@pytest.mark.parametrize("layout", ["orders", "cell", "votes"])
@pytest.mark.parametrize("code", ["8", "66"])
def test_numbers_of_items_above_others_are_no_codes(layout, code):
    rows = [("1", code, "2"), (code, "3", "1"), ("2", "3", code), ("3", code, "1")]
    assert joined(read_survey(table_of(rows, layout), layout)) == list(map(" ".join, rows))
    # behind the others they may be codes
    rows = [("1", "2", code), ("2", "3", code), ("3", "1", "2")]
    with refusal(f"is {code!r} an item?", f"add missing={code!r}"):
        read_survey(table_of(rows, layout), layout)


LINES = "judge,item,rank\nA,Ann,1\nA,U,2\nA,Bob,3\nB,Bob,1\nB,Ann,2\nB,O,3\nC,Cid,1\nC,Ann,2\n"


def test_several_words_among_the_items_of_a_long_table(tmp_path):
    path = write(tmp_path, LINES, "t.csv")
    with refusal("are 'U', 'O' items?", "missing=['U', 'O'] leaves such lines out"):
        read_survey(path)
    said, survey = read_with_answers(path)
    assert said == {"missing": ["U", "O"], "gaps": "close"}
    assert joined(survey) == ["Ann Bob", "Bob Ann", "Cid Ann"]
    note = "left out, because nothing is ranked there: 'U' in 1 line, 'O' in 1 line"
    assert note in survey.notes and not any("no cell has" in x for x in survey.notes)
    assert read_survey(path, missing="u,o", gaps="close").notes == survey.notes
    other = read_survey(path, missing=["U", "O", "99"], gaps="close")
    assert "no cell has '99', of missing=" in other.notes


def test_words_in_rows_that_are_left_out_are_somewhere(tmp_path):
    path = write(tmp_path, "id,a,b,c\n1,1,2,99\n1,1,2,3\n2,2,1,3\n", "t.csv")
    options = {"judge": "id", "layout": "ranks", "duplicates": "last"}
    survey = read_survey(path, missing="99", **options)
    assert joined(survey) == ["a b c", "b a c"] and len(survey.notes) == 1
    assert len(read_survey(path, missing="98", **options).notes) == 2
    for layout, text in (
        ("orders", "id,1st,2nd\n1,tea,nil\n1,tea,rum\n2,rum,tea\n"),
        ("cell", "id,list\n1,nil\n1,tea > rum\n2,rum > tea\n"),
    ):
        path = write(tmp_path, text, "u.csv")
        survey = read_survey(path, layout, judge="id", duplicates="last", missing="nil")
        assert not any("has 'nil'" in note for note in survey.notes)


def test_a_few_capitals_are_a_code_on_ballots_alone():
    with refusal("is 'XXX' an item?", "add missing='XXX'"):
        read_survey(ballots("XXX", "votes"), "votes")
    assert joined(read_survey(ballots("XXX", "votes"), "votes", missing="XXX"))[1] == "Bob Ann"
    assert joined(read_survey(ballots("USA", "orders"), "orders"))[1] == "Bob USA Ann"
    parties = ballots("CDU", "votes").replace({"Ann": "SPD"})
    assert joined(read_survey(parties, "votes"))[1] == "Bob CDU SPD"


def test_names_of_an_overvote_are_no_codes():
    frame = pd.DataFrame({"Rank 1": ["Ann", "Bob|X", "X"], "Rank 2": ["Bob", "Ann", "Ann"]})
    survey = read_survey(frame, "votes", overvote="skip")
    assert joined(survey) == ["Ann Bob", "Ann", "X Ann"]


REST = {
    "orders": "judge,1st,2nd,3rd\nA,tea,rum,{0}\nB,rum,cocoa,tea\nC,{1},tea,rum\n",
    "votes": "judge,Choice 1,Choice 2,Choice 3\nA,tea,rum,{0}\nB,rum,cocoa,tea\nC,{1},tea,rum\n",
    "cell": "judge,list\nA,tea > rum > {0}\nB,rum > cocoa > tea\nC,{1} > tea > rum\n",
    "long": "judge,item,rank\nA,tea,1\nA,rum,2\nA,{0},3\nB,rum,1\nB,cocoa,2\nB,tea,3\nC,{1},1\n"
    "C,tea,2\nC,rum,3\n",
}


@pytest.mark.parametrize("layout", REST)
@pytest.mark.parametrize(
    "word", ["others", "Other (please specify)", "all other items", "the rest"]
)
def test_what_stands_for_all_other_items(tmp_path, word, layout):
    path = write(tmp_path, REST[layout].format(word, "cocoa"), "t.csv")
    said, survey = read_with_answers(path, layout=layout, judge="judge")
    assert said == {"missing": [word]}
    said_where = [note for note in survey.notes if repr(word) in note]
    assert len(said_where) == 1 and "has" not in said_where[0]
    assert joined(survey) == ["tea rum", "rum cocoa tea", "cocoa tea rum"]
    items = ["tea", "rum", "cocoa", word]
    assert joined(read_survey(path, layout, judge="judge", items=items))[0] == f"tea rum {word}"
    # an item like any other
    path = write(tmp_path, REST[layout].format(word, word), "u.csv")
    survey = read_survey(path, layout, judge="judge")
    assert joined(survey) == [f"tea rum {word}", "rum cocoa tea", f"{word} tea rum"]


def test_an_item_called_other_that_all_rank_last(tmp_path):
    path = write(tmp_path, "1st,2nd,3rd\ntea,rum,Other\nrum,tea,Other\n", "t.csv")
    assert joined(read_survey(path)) == ["tea rum Other", "rum tea Other"]
    ranks = pd.DataFrame({"tea": [1, 2], "rum": [2, 1], "other": [3, None]})
    assert read_survey(ranks, "ranks").rankings.num_items == 3


BALLOTS = ["Kiwi,Plum,undervote", "Plum,Kiwi,Lime", "Lime,undervote,undervote", "Kiwi,Lime,Plum"]
LISTS = ["Kiwi Plum", "Plum Kiwi Lime", "Lime", "Kiwi Lime Plum"]


@pytest.mark.parametrize("layout", [None, "votes"])
@pytest.mark.parametrize("place", [0, 2, 3])
@pytest.mark.parametrize(
    "ids", [["b1", "b2", "b3", "b4"], ["7", "8", "9", "10"], ["17", "99", "23", "104"]]
)
def test_ids_of_ballots_without_a_header_are_no_candidates(tmp_path, ids, place, layout):
    rows = [x.split(",") for x in BALLOTS]
    rows = [[*x[:place], name, *x[place:]] for name, x in zip(ids, rows, strict=True)]
    path = write(tmp_path, "\n".join(map(",".join, rows)), "t.csv")
    said, survey = read_with_answers(path, layout=layout, header="none")
    column = str(place + 1)
    assert said == {"judge": column}
    assert joined(survey) == LISTS and survey.rankings.items == ("Kiwi", "Plum", "Lime")
    assert survey.judges == ids
    # all columns may be ranks, if it is said
    items = ["Kiwi", "Plum", "Lime", *ids]
    every = read_survey(path, layout, header="none", columns=list("1234"), items=items)
    assert sum(name in " ".join(joined(every)) for name in ids) == len(ids)


def test_wards_of_ballots_without_a_header(tmp_path):
    rows = [f"W{k % 3},{x}" for k, x in enumerate(3 * BALLOTS)]
    said, survey = read_with_answers(write(tmp_path, "\n".join(rows), "t.csv"), header="none")
    assert said == {"about": ["1"]} and joined(survey) == 3 * LISTS


def test_ranks_without_a_header_that_share_no_name_with_others(tmp_path):
    """A few first choices may be none of the others, and so may a name that was written in."""
    text = "Ann,Bob,Cid\nAnn,Cid,undervote\nEve,Bob,undervote\nEve,Cid,Bob\n"
    lists = ["Ann Bob Cid", "Ann Cid", "Eve Bob", "Eve Cid Bob"]
    assert joined(read_survey(write(tmp_path, text, "t.csv"), header="none")) == lists
    text = "Ann,Bob,Zed\nBob,Ann,\nAnn,Bob,undervote\n"
    lists = ["Ann Bob Zed", "Bob Ann", "Ann Bob"]
    assert joined(read_survey(write(tmp_path, text, "t.csv"), header="none")) == lists


@pytest.mark.parametrize("layout", [None, "votes"])
@pytest.mark.parametrize(
    ("header", "before", "options"),
    [
        ("ballot,c1,c2,c3", "b{},", {"judge": "ballot"}),
        ("ref,c1,c2,c3", "b{},", {"judge": "ref"}),
        ("c1,c2,c3", "", {}),
        ("ref,ward,c3,c1,c2", "b{},w,", {"judge": "ref", "about": ["ward"]}),
    ],
)
def test_ranks_of_ballots_whose_names_say_no_rank(tmp_path, header, before, options, layout):
    rows = [before.format(k) + x for k, x in enumerate(BALLOTS)]
    if "c3,c1" in header:
        rows = [",".join([*x.split(",")[:2], *y.split(",")[2:], *y.split(",")[:2]])
                for x, y in zip(rows, BALLOTS, strict=True)]  # fmt: skip
    path = write(tmp_path, "\n".join([header, *rows]), "t.csv")
    said, survey = read_with_answers(path, layout=layout)
    columns = said.pop("columns")
    assert sorted(columns) == ["c1", "c2", "c3"] and said == options
    assert joined(survey) == LISTS


def test_tables_of_ranks_and_names_in_a_header_are_not_proposed_as_ballots(tmp_path):
    with refusal("which columns are the ranks of the ballots? Pick them"):
        read_survey(write(tmp_path, "id,Ann,Bob\n1,1,2\n2,2,1\n", "t.csv"), "votes", judge="id")
    with refusal("which columns are the ranks of the ballots? Pick them"):
        read_survey(write(tmp_path, "Ann,Bob\nBob,Ann\nAnn,Bob\n", "t.csv"), "votes", header_rows=1)


@pytest.mark.parametrize(
    ("numbers", "codes"),
    [
        ([1, 2, 3, 4, 5, 6, 8], []),  # 7 may be missing by chance
        ([1, 2, 3, 4, 5, 8], [8]),
        ([0, 1, 2, 3, 4, 5, 6, 9, 99], [9, 99]),
        ([1, 2, 3, 7, 99], [99]),
    ],
)
def test_codes_are_far_above_other_numbers(numbers, codes):
    assert codes_above(numbers) == codes
