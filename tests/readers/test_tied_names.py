"""Ties within lists in cells, by marks and in brackets; and names that have the marks of ties."""

import numpy as np
import pandas as pd
import pytest
from helpers.readers import by_name, write

from numpyro_rankings import PartialOrders, Rankings, RankingsError, read_survey

CELL = {"layout": "cell"}


def read_cells(cells, **options):
    return read_survey(pd.DataFrame({"list": cells}), **{**CELL, **options})


def buckets_of(survey):
    """The buckets of each list, each as a sorted list of names, in the order of the table."""
    orders = survey.rankings
    rows = np.asarray(orders.row_index)[survey.label_index]
    if isinstance(orders, Rankings):
        return [[[name] for name in names] for names in by_name(survey)]
    found = []
    for levels in np.asarray(orders.levels_of_items())[rows].tolist():
        names = dict(zip(orders.items, levels, strict=True))
        places = range(max(levels) + 1)
        found.append([sorted(x for x, level in names.items() if level == k) for k in places])
    return found


def answers_of(error):
    return dict(error.value.questions.options)


TIED = [["cocoa"], ["coffee", "tea"], ["water"]]
STRICT = [["water"], ["tea"], ["coffee"], ["cocoa"]]
BRACKETS = {
    "braces": ["cocoa; {tea; coffee}; water", "water; tea; coffee; cocoa"],
    "commas": ["cocoa, {tea, coffee}, water", "water, tea, coffee, cocoa"],
    "other marks within": ["cocoa > {tea; coffee} > water", "water > tea > coffee > cocoa"],
    "parentheses": ["cocoa; (tea, coffee); water", "water; tea; coffee; cocoa"],
    "blanks within": ["cocoa > (tea coffee) > water", "water > tea > coffee > cocoa"],
    "all in brackets": ["{cocoa}, {tea, coffee}, {water}", "{water}, {tea}, {coffee}, {cocoa}"],
    "around the list": ["[[cocoa],[tea, coffee],[water]]", "[[water],[tea],[coffee],[cocoa]]"],
    "some around": ["[cocoa,[tea, coffee],water]", "[water,tea,coffee,cocoa]"],
    "JSON": ['["cocoa",["tea","coffee"],"water"]', '["water","tea","coffee","cocoa"]'],
    "Python": ["[('cocoa',), ('tea', 'coffee'), ('water',)]", "['water','tea','coffee','cocoa']"],
    "numbered": ["1. cocoa; 2. {tea, coffee}; 3. water", "1. water; 2. tea; 3. coffee; 4. cocoa"],
    "equals": ["cocoa > tea = coffee > water", "water > tea > coffee > cocoa"],
}


@pytest.mark.parametrize("items", [None, ["tea", "coffee", "cocoa", "water"]])
@pytest.mark.parametrize("name", BRACKETS)
def test_ties_in_brackets(name, items):
    survey = read_cells(BRACKETS[name], items=items)
    assert buckets_of(survey) == [TIED, STRICT]
    assert any(note.startswith("1 tie in the cells, such as tea = coffee") for note in survey.notes)


def test_lists_of_lists_in_a_data_frame():
    survey = read_cells([[["cocoa"], ["tea", "coffee"], ["water"]], ["water", "tea", "coffee"]])
    assert buckets_of(survey)[0] == TIED


def test_blanks_between_items_and_brackets_around_ties():
    cells = ["cocoa (tea coffee) water", "water tea (coffee cocoa)"]
    with pytest.raises(RankingsError, match="Blanks do with separator='space'"):
        read_cells(cells)
    survey = read_cells(cells, separator="space")
    assert buckets_of(survey) == [TIED, [["water"], ["tea"], ["cocoa", "coffee"]]]


@pytest.mark.parametrize(
    "cells, items",
    [
        (["Tea (green, hot); Milk", "Milk; Tea (green, hot)"], {"Tea (green, hot)", "Milk"}),
        (["Tea (green, hot), Milk", "Milk, Tea (green, hot)"], {"Tea (green, hot)", "Milk"}),
        (["tea; milk :)", "milk :); tea"], {"tea", "milk :)"}),
    ],
)
def test_brackets_within_names(cells, items):
    if ":)" in cells[0]:
        with pytest.raises(RankingsError, match="bracket without its other half"):
            read_cells(cells)
        assert set(read_cells(cells, items=sorted(items)).rankings.items) == items
        return
    survey = read_cells(cells)
    assert isinstance(survey.rankings, Rankings) and set(survey.rankings.items) == items


def test_one_list_in_brackets_is_no_tie():
    with pytest.raises(RankingsError, match=r"row 1.*'\(a; b; c\)' is in brackets, and other"):
        read_cells(["(a; b; c)", "c; a; b"])
    assert buckets_of(read_cells(["a; {b; c}", "{a; b; c}"])) == [
        [["a"], ["b", "c"]],
        [["a", "b", "c"]],
    ]


EQUALS = ["E=mc2 > tea > coffee", "tea > E=mc2 > coffee", "coffee > tea > E=mc2"]


def test_marks_of_ties_within_names(tmp_path):
    with pytest.raises(RankingsError, match="is 'E=mc2' one name, or several") as error:
        read_cells(EQUALS)
    assert answers_of(error) == {"items": ["E=mc2", "tea", "coffee"]}
    survey = read_cells(EQUALS, **answers_of(error))
    assert by_name(survey) == [text.split(" > ") for text in EQUALS]
    tied = read_cells(EQUALS, items=["E", "mc2", "tea", "coffee"])
    assert buckets_of(tied)[0] == [["E", "mc2"], ["tea"], ["coffee"]]
    # the names may be tied, too
    both = read_cells([*EQUALS, "coffee > E=mc2 = tea"], items=["E=mc2", "tea", "coffee"])
    assert buckets_of(both)[3] == [["coffee"], ["E=mc2", "tea"]]
    text = "id,1st,2nd,3rd\n1,E=mc2=tea,coffee,\n2,coffee,tea,E=mc2\n"
    places = read_survey(write(tmp_path, text, "table.csv"), judge="id")
    assert buckets_of(places)[0] == [["E=mc2", "tea"], ["coffee"]]


@pytest.mark.parametrize(
    "cells, number", [(["a > b = c", "c > a > b"], 1), (["a=b>c", "c>a=b", "c>b=a"], 3)]
)
def test_ties_by_a_mark_are_counted(cells, number):
    assert any(x.startswith(f"{number} tie") for x in read_cells(cells).notes)


@pytest.mark.parametrize(
    "cells, tied",
    [
        (["tea > coffee = milk", "tea = cofee > milk", "milk > tea > coffee"], ["cofee", "tea"]),
        (["tea; coffee; milk", "tea = cofee; milk"], ["cofee", "tea"]),
        (["tea; coffee; milk", "(tea cofee); milk"], ["cofee", "tea"]),
        (["tea; coffee; milk", "tea & coffee; milk"], ["coffee", "tea"]),
        (["tea; coffee; milk", "tea and coffee; milk"], ["coffee", "tea"]),
        (["tea > coffee > milk", "tea + coffee > milk"], ["coffee", "tea"]),
    ],
)
def test_a_name_or_a_tie_is_asked(cells, tied):
    with pytest.raises(RankingsError, match="one name, or several that are tied") as error:
        read_cells(cells)
    found = error.value.questions
    assert found.is_read
    survey = read_cells(cells, **answers_of(error))
    assert isinstance(survey.rankings, PartialOrders) and buckets_of(survey)[1][0] == tied


def test_a_code_within_lists_comes_before_ties():
    cells = ["tea > coffee > n/a", "tea = cofee > coffee"]
    with pytest.raises(RankingsError, match="is 'n/a' an item") as error:
        read_cells(cells)
    assert answers_of(error) == {"missing": ("n/a",), "items": ["tea", "coffee", "cofee"]}
    assert error.value.questions.is_read


def test_names_with_a_word_between():
    survey = read_cells(["Marks & Spencer; milk", "milk; Marks & Spencer"])
    assert set(survey.rankings.items) == {"Marks & Spencer", "milk"}
    note = "read as one item, because its parts are at no other place: 'Marks & Spencer'"
    assert note in survey.notes


@pytest.mark.parametrize("layout", [None, "votes"])
@pytest.mark.parametrize("word, separator", [("&", "&"), ("and", " and "), ("+", "+")])
def test_a_name_or_several_at_a_place(tmp_path, layout, word, separator):
    text = f"id,1st choice,2nd choice\n1,tea {word} milk,brandy\n2,milk,tea\n3,brandy,tea\n"
    path = write(tmp_path, text, "table.csv")
    with pytest.raises(RankingsError, match="one name, or several") as error:
        read_survey(path, layout, judge="id")
    assert answers_of(error) == {"separator": separator} and error.value.questions.is_read
    survey = read_survey(path, layout, judge="id", separator=separator)
    assert set(survey.rankings.items) == {"tea", "milk", "brandy"}
    items = [f"tea {word} milk", "tea", "milk", "brandy"]
    assert read_survey(path, layout, judge="id", items=items).rankings.items == tuple(items)
    tied = read_survey(path, layout, judge="id", items=items[1:])
    assert set(tied.rankings.items) == {"tea", "milk", "brandy"}


SINGLE = {
    "one name": ("id,list\n1,tea\n2,milk\n3,tea\n", {"judge": "id"}, {"layout": "orders"}),
    "one column": ("drink\ntea\nmilk\ntea\n", {}, {"layout": "orders"}),
    "the first row, too": ("tea\nmilk\ntea\n", {}, {"header": "none", "layout": "orders"}),
    "places": ("who,1st,2nd\na,tea,milk\nb,milk,tea\n", {"judge": "who"}, {"layout": "orders"}),
    "ranks": ("who,tea,milk\na,1,2\nb,2,1\n", {"judge": "who"}, {"layout": "ranks"}),
    "long": ("judge,item,rank\na,tea,1\na,milk,2\nb,tea,1\nb,milk,2\n", {}, {"layout": "long"}),
}


@pytest.mark.parametrize("name", SINGLE)
def test_cells_that_are_no_lists(tmp_path, name):
    text, options, answers = SINGLE[name]
    path = write(tmp_path, text, "table.csv")
    with pytest.raises(RankingsError) as error:
        read_survey(path, "cell", **options)
    assert answers_of(error) == answers and error.value.questions.is_read
    assert set(read_survey(path, **{**options, **answers}).rankings.items) == {"tea", "milk"}


def test_lines_of_judges_are_no_lists(tmp_path):
    text = "judge,item\n1,tea\n1,milk\n2,milk\n2,tea\n"
    with pytest.raises(RankingsError, match=r"judges have several rows.*layout='long'") as error:
        read_survey(write(tmp_path, text, "table.csv"), "cell", judge="judge")
    assert not answers_of(error)
