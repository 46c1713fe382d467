"""Tables that are near to odd ones, and are none: they are read, and no answer loses anything."""

import pytest
from helpers.readers import joined, refusal, write

from numpyro_rankings import RankingsError, read_survey


def read(tmp_path, text, suffix=".csv", **options):
    """Read a table with the answers that a refusal names, if any; return these, too."""
    path = write(tmp_path, text if suffix == ".csv" else text.replace(",", "\t"), f"t{suffix}")
    try:
        return {}, read_survey(path, **options)
    except RankingsError as error:
        found = error.questions
        assert found.is_read, found.texts
        return dict(found.options), read_survey(path, **{**options, **found.options})


NUMBERED = "item,104,101,103\na,1,2,1\nb,2,1,3\nc,3,3,2\n"
NUMBERED_LISTS = "104,101,103\na,b,a\nb,a,c\nc,c,b\n"


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_numbers_of_judges_are_no_counts(tmp_path, suffix):
    said, survey = read(tmp_path, NUMBERED, suffix)
    assert said == {"transpose": True, "header_rows": 1, "layout": "ranks"}
    assert survey.judges == ["104", "101", "103"] and joined(survey) == ["a b c", "b a c", "a c b"]
    said, survey = read(tmp_path, NUMBERED_LISTS, suffix)
    assert joined(survey) == ["a b c", "b a c", "a c b"] and "header" not in said
    options = {"transpose": True, "judge": "item", "layout": "ranks"}
    for text in (NUMBERED, NUMBERED.replace("04,101,103", "2,7,3")):
        said, survey = read(tmp_path, text, suffix, **options)
        assert not said and survey.rankings.num_rankings == 3
    path = write(tmp_path, NUMBERED_LISTS.replace("104,101,103", "1040,720,310"), "t.csv")
    with pytest.raises(RankingsError) as error:  # these may be either
        read_survey(path, "orders", transpose=True)
    assert not error.value.questions.is_read


TICKED = (
    "id,Please rank,,,Which do you drink?,,\n,Tea,Coffee,Cocoa,{}\n"
    "1,1,2,3,{}\n2,2,1,3,,Coffee,\n3,3,1,2,Tea,Coffee,\n"
)


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("names", [["Tea,Coffee,Cocoa", "Tea,,Cocoa"], ["Tea,Coffee,Rum", "Tea,,"]])
def test_ticked_names_below_their_own_are_no_answers(tmp_path, names, suffix):
    said, survey = read(tmp_path, TICKED.format(*names), suffix, columns="Please rank*")
    assert said == {"layout": "ranks"}
    assert joined(survey) == ["Tea Coffee Cocoa", "Coffee Tea Cocoa", "Coffee Cocoa Tea"]
    # two places have one column without a name, in which the items come again
    places = "id,choice,\nAnn,a,b\nBob,b,a\nCid,a,b\n"
    said, survey = read(tmp_path, places, suffix, judge="id")
    assert joined(survey) == ["a b", "b a", "a b"]


@pytest.mark.parametrize("more", [{}, {"columns": "choice*"}])
def test_places_of_the_same_name_apart_from_each_other(tmp_path, more):
    text = "id,choice,choice,other,choice\n1,a,b,x,c\n2,b,a,y,c\n3,c,a,x,b\n"
    _, survey = read(tmp_path, text, **more)
    assert joined(survey) == ["a b c", "b a c", "c a b"]


@pytest.mark.parametrize("name", ["Max", "N", "range"])
def test_a_judge_called_max_below_the_means(tmp_path, name):
    ranks = f"judge,a,b\nAnn,1,2\nBob,2,1\nmean,1.5,1.5\n{name},1,2\n"
    orders = f"judge,1st,2nd\nAnn,a,b\nBob,b,a\nmean,1.5,1.5\n{name},a,b\n"
    for text, layout in ((ranks, "ranks"), (orders, "orders")):
        with refusal(":4: this row seems to have totals, because 'mean' is in its first cell"):
            read_survey(write(tmp_path, text, "t.csv"), layout, judge="judge")
    path = write(tmp_path, ranks.replace(f"{name},1,2", f"{name},2,2"), "t.csv")
    survey = read_survey(path, "ranks", judge="judge")
    assert survey.judges == ["Ann", "Bob"]
    assert f"'mean', '{name}' are in their first cells: {path}:4, {path}:5" in survey.notes[0]


COMMENTS = (
    "id,a,b,c,best_comment,worst_comment\n1,1,2,3,nice smell,too sweet\n2,2,1,3,great,awful\n"
    "3,3,1,2,lovely,bad\n"
)
# the text, the options, the answers, and the lists
READ = {
    "items with a word in common, of which all rank some": (
        "id,black tea,green tea,black coffee,green coffee\n1,1,2,,\n2,2,1,3,\n3,1,2,4,3\n",
        {"layout": "ranks", "judge": "id"},
        {},
        ["black tea green tea", "green tea black tea black coffee"],
    ),
    "items with a beginning in common": (
        "id,A_x,A_y,B_x,B_y\n1,1,2,3,4\n2,2,1,4,3\n",
        {},
        {"judge": "id", "layout": "ranks"},
        ["A_x A_y B_x B_y", "A_y A_x B_y B_x"],
    ),
    "ranks beside seconds": (
        "id,tea_rank,rum_rank,tea_time,rum_time\nAnn,1,2,31,7\nBob,2,1,12,3\n",
        {"layout": "ranks", "judge": "id"},
        {"columns": "*_rank"},
        ["tea_rank rum_rank", "rum_rank tea_rank"],
    ),
    "winners who are second nowhere": (
        "id,Winner,2nd,3rd\n1,a,b,c\n2,d,c,b\n3,e,b,c\n",
        {"layout": "orders", "judge": "id"},
        {},
        ["a b c", "d c b", "e b c"],
    ),
    "comments beside ranks": (
        COMMENTS,
        {},
        {"judge": "id", "layout": "ranks", "about": ("best_comment", "worst_comment")},
        ["a b c", "b a c", "b c a"],
    ),
    "comments beside ranks of which most tie": (
        COMMENTS.replace("1,1,2,3", "1,1,1,2").replace("2,2,1,3", "2,2,1,2"),
        {"layout": "ranks", "judge": "id", "ties": "drop"},
        {"about": ("best_comment", "worst_comment")},
        ["b c a"],
    ),
    "persons in the household of a judge": (
        "id,persons,a,b\nAnn,3,1,2\nBob,2,2,1\nCid,1,1,2\n",
        {"judge": "id"},
        {"about": ("persons",), "layout": "ranks"},
        ["a b", "b a", "a b"],
    ),
    "people beside places": (
        "id,people,1st,2nd\nAnn,3,x,y\nBob,2,y,x\nCid,1,x,y\n",
        {"judge": "id", "layout": "orders"},
        {"about": ("people",)},
        ["x y", "y x", "x y"],
    ),
    "people in a long table": (
        "judge,item,rank,people\nAnn,x,1,3\nAnn,y,2,3\nBob,x,2,1\nBob,y,1,1\n",
        {},
        {},
        ["x y", "y x"],
    ),
    "judges and items with numbers": (
        "id,1,2,3,4\n1,,1,2,\n2,1,,2,\n3,,1,,2\n4,1,,2,\n",
        {"judge": "id", "layout": "ranks"},
        {},
        ["2 3", "1 3", "2 4", "1 3"],
    ),
    "the same rank in another form": (
        "judge,item,rank\nx,a,1\nx,a,1.0\nx,b,2nd\ny,a,2\ny,b,1\n",
        {},
        {"duplicates": "first"},
        ["a b", "b a"],
    ),
    "names like results of games at places": (
        "id,1st,2nd,3rd\n1,W12,L3,D7\n2,L3,W12,D7\n3,D7,W12,L3\n",
        {},
        {"judge": "id"},
        ["W12 L3 D7", "L3 W12 D7", "D7 W12 L3"],
    ),
    "names like opponents at places": (
        "id,1st,2nd,3rd\n1,2w1,1s1,3b1\n2,1s1,2w1,3b1\n",
        {"judge": "id"},
        {},
        ["2w1 1s1 3b1", "1s1 2w1 3b1"],
    ),
    "a vote beside a region and ranks": (
        "id,region,vote,a,b\n1,n,1,1,2\n2,s,-1,2,1\n3,n,0,1,2\n4,s,1,2,1\n",
        {},
        {"about": ("vote", "region"), "judge": "id", "layout": "ranks"},
        ["a b", "b a", "a b", "b a"],
    ),
    "a name as long as those that are cut off": (
        f"1st,2nd,3rd\n{'x' * 32},b,{'x' * 32}\nb,c,{'x' * 32}\nc,b,d\n",
        {"layout": "orders"},
        {"layout": "votes"},
        [f"{'x' * 32} b", f"b c {'x' * 32}", "c b d"],
    ),
    "a count of 0 below the ranks": (
        "item,J1,J2,J3\na,1,2,1\nb,2,1,3\nc,3,3,2\ncount,12,7,0\n",
        {},
        {"transpose": True, "layout": "ranks"},
        ["a b c"] * 12 + ["b a c"] * 7,
    ),
}


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("name", READ)
def test_what_is_asked_and_read(tmp_path, name, suffix):
    text, options, answers, lists = READ[name]
    said, survey = read(tmp_path, text, suffix, **options)
    assert said == answers and joined(survey)[: len(lists)] == lists
    if "count of 0" in name:
        assert survey.notes[0].endswith("; left out, counted 0: 'J3'")
        assert survey.rankings.num_rankings == 19


def test_names_that_are_cut_off_are_not_passed_over(tmp_path):
    """Two names would be one; a number of letters is no proof of it."""
    text = READ["a name as long as those that are cut off"][0]
    with refusal("the names seem to have been cut off; layout='votes' reads a name once"):
        read_survey(write(tmp_path, text, "t.csv"), "orders")
    path = write(tmp_path, text.replace("x" * 32, "Candid..."), "t.csv")
    with pytest.raises(RankingsError) as error:
        read_survey(path, "orders")
    assert not error.value.questions.is_read


def test_rounds_of_a_tournament_are_no_places(tmp_path):
    cells = "Ann,2w1,3b0,4w1\nBob,1b0,4w1,3b1\nCid,4w1,1w1,2b0\nDan,3b0,2b0,1b0\n"
    for names in ("R1,R2,R3", "1,2,3"):
        with refusal("the opponent and the result of each round of a tournament"):
            read_survey(write(tmp_path, f"name,{names}\n{cells}", "t.csv"))
