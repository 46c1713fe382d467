"""Tables of paired comparisons: which they are, in which forms, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from helpers.readers import joined, refusal, write, write_rows

from numpyro_rankings import Comparisons, PartialOrders, RankingsError, read_rankings, read_survey

WINS = [("tea", "maté"), ("maté", "cocoa"), ("tea", "cocoa"), ("tea", "maté")]
TWO_COLUMNS = [
    ("winner", "loser"),
    ("Winner", "Loser"),
    ("top_item", "bottom_item"),
    ("top", "bottom"),
    ("preferred", "other"),
    ("chosen", "rejected"),
    ("won", "lost"),
    ("winner_id", "loser_id"),
    ("Winning team", "Losing team"),
    ("preferred_option", "other_option"),
    ("chosen_response", "rejected_response"),
]


def pairs_of(survey):
    """What each row says, in the order of the file: ``a b``, or ``a=b`` of a tie."""
    orders = survey.rankings
    rows = np.asarray(orders.row_index)[survey.label_index]
    marks = np.where(np.asarray(orders.has_ties), "=", " ")
    names = [[orders.items[k] for k in row] for row in orders.listed.tolist()]
    return [
        marks[row].join(sorted(names[row]) if marks[row] == "=" else names[row]) for row in rows
    ]


@pytest.mark.parametrize("layout", [None, "pairs"])
@pytest.mark.parametrize("names", TWO_COLUMNS)
def test_columns_of_the_winner_and_the_loser(names, layout):
    frame = pd.DataFrame(WINS, columns=names)[[names[1], names[0]]]
    survey = read_survey(frame, layout)
    assert pairs_of(survey) == [f"{a} {b}" for a, b in WINS] and survey.layout == "pairs"
    expected = PartialOrders.from_pairs(pd.DataFrame(WINS, columns=["winner", "loser"]))
    assert {*survey.rankings.items} == {*expected.items}
    assert survey.rankings.counts.tolist() == [2, 1, 1]
    for other in ("orders", "ranks", "votes"):
        with refusal("called as those of paired comparisons", "add layout='pairs'"):
            read_survey(frame, other)


def test_items_called_top_and_bottom_have_ranks():
    frame = pd.DataFrame({"top": [1, 2, 3], "bottom": [2, 1, 1], "shoes": [3, 3, 2]})
    assert joined(read_survey(frame, "ranks")) == [
        "top bottom shoes",
        "bottom top shoes",
        "bottom shoes top",
    ]


@pytest.mark.parametrize("names", TWO_COLUMNS[:3])
def test_pairs_may_be_read_as_orders(names):
    frame = pd.DataFrame(WINS, columns=names)[[names[1], names[0]]]
    survey = read_survey(frame, "orders", columns=list(names), unranked="not-offered")
    assert joined(survey) == [f"{a} {b}" for a, b in WINS]
    assert np.asarray(survey.rankings.choice_sets).sum(1).tolist() == [2, 2, 2]


def test_judges_and_their_closure():
    frame = pd.DataFrame(WINS, columns=["winner", "loser"]).assign(who=[1, 1, 2, 2], n=[3, 3, 1, 1])
    survey = read_survey(frame, judge="who", count="n")
    assert survey.judges == ["1"] * 3 + ["2"]
    expected = PartialOrders.from_pairs(frame, judge="who", count="n")
    assert survey.rankings == expected
    assert "comparisons: 8 by 4 judges" in survey.notes
    with refusal("column 'n' is '1', but '3' in an earlier row of judge '1'"):
        read_survey(frame.assign(n=[3, 1, 1, 1]), judge="who", count="n")


def test_numbers_of_games():
    frame = pd.DataFrame(WINS, columns=["winner", "loser"]).assign(games=[3, 1, 1, 2])
    read = read_rankings(frame, count="games")
    assert read == PartialOrders.from_pairs(frame, count="games") and len(read) == 7
    survey = read_survey(frame.assign(games=[3, 0, 1, 2]), count="games")
    said = [" ".join(x) for x in WINS]
    assert sorted(pairs_of(survey)) == sorted([said[0]] * 3 + [said[2]] + [said[3]] * 2)
    assert "1 line with 0 games left out: row 2" in survey.notes
    with refusal("expected a positive whole number, got '-1'"):
        read_rankings(frame.assign(games=[3, -1, 1, 2]), count="games")


def test_what_may_name_the_judges_is_said():
    frame = pd.DataFrame(WINS, columns=["winner", "loser"]).assign(case_id=list("xxyy"))
    notes = read_survey(frame).notes
    assert (
        "each line is read as a judge of its own: use judge='case_id' if 'case_id' names the judges"
        in notes
    )
    assert "columns left out: 'case_id'" in notes
    frame["case_id"] = list("wxyz")
    assert read_survey(frame).notes[-1] == "columns left out: 'case_id'"


@pytest.mark.parametrize(
    "names",
    [
        ("model_a", "model_b", "winner"),
        ("item1", "item2", "choice"),
        ("Left", "Right", "preferred"),
        ("option A", "option B", "outcome"),
        ("home", "away", "result"),
        ("left", "right", "label"),
        ("player1", "player2", "winner_name"),
        ("option1", "option2", "selected_option"),
        ("team_home", "team_away", "winning team"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_columns_of_two_items_and_the_outcome(tmp_path, names, suffix):
    rows = [names, ("tea", "maté", "tea"), ("maté", "cocoa", "cocoa"), ("cocoa", "tea", "tie")]
    path = write_rows(tmp_path / f"t{suffix}", rows)
    assert pairs_of(read_survey(path)) == ["tea maté", "cocoa maté", "cocoa=tea"]
    with refusal("paired comparisons", "add layout='pairs'"):
        read_survey(path, "votes")


OUTCOMES = {
    "1-0": ("White", "Black", ("1-0", "0-1", "1/2-1/2")),
    "½": ("White", "Black", ("1-0", "0 - 1", "½-½")),
    "score": ("player1", "player2", ("1", "0", "0.5")),
    "numbers": ("home", "away", ("1", "2", "0")),
    "toto": ("home", "away", ("1", "2", "X")),
    "words": ("home", "away", ("W", "L", "D")),
    "letters": ("home", "away", ("H", "A", "D")),
    "colours": ("White", "Black", ("white", "black", "draw")),
    "points": ("home", "away", ("3-1", "0:2", "1-1")),
    "columns": ("model_a", "model_b", ("model_a", "model_b", "tie (bothbad)")),
    "ends": ("model_a", "model_b", ("A", "B", "tie")),
    "items": ("model_a", "model_b", ("a", "c", "Tie")),
}


@pytest.mark.parametrize("ties", [None, "exact", "drop"])
@pytest.mark.parametrize("form", OUTCOMES)
def test_results_of_games(form, ties):
    one, two, results = OUTCOMES[form]
    frame = pd.DataFrame({one: list("abc"), two: list("bca"), "Result": results})
    survey = read_survey(frame, ties=ties)
    assert pairs_of(survey) == ["a b", "c b", *([] if ties == "drop" else ["a=c"])]
    how = "and is left out" if ties == "drop" else "which is read as no opinion"
    assert any(x.startswith(f"1 of 3 comparisons is a tie, {how}") for x in survey.notes)
    with refusal("ties='order' does not go with pairs, of which 1 of 3 comparisons is a tie"):
        read_survey(frame, ties="order")


def test_ties_are_counted_as_the_games_and_the_judges():
    """A line may stand for many games, and a judge for many; who has only ties is left out."""
    games = pd.DataFrame({"home": list("abc"), "away": list("bca"), "result": list("HDD")})
    survey = read_survey(games.assign(games=[3, 5, 1]), count="games", ties="drop")
    assert "6 of 9 comparisons are ties, and are left out" in survey.notes
    assert survey.rankings.num_rankings == 3
    answers = pd.DataFrame(
        [(1, "a", "b", 2, "a"), (1, "b", "c", 2, "tie"), (2, "a", "c", 3, "tie")],
        columns=["who", "model_a", "model_b", "n", "winner"],
    )
    survey = read_survey(answers, judge="who", count="n", ties="drop")
    said = "5 of 7 comparisons are ties, and are left out, with 3 judges who have no others"
    assert said in survey.notes and "comparisons: 2 by 2 judges" in survey.notes
    assert survey.rankings.num_rankings == 2
    columns = ["model_a", "model_b", "winner"]
    survey = read_survey(answers[:2], judge="who", columns=columns, ties="drop")
    assert "1 of 2 comparisons is a tie, and is left out" in survey.notes


def test_outcomes_that_may_be_read_in_two_ways():
    frame = pd.DataFrame({"left": list("abc"), "right": list("bca"), "label": [0, 1, 0]})
    with refusal("column 'label': does 0 in 'label' mean that 'left' is preferred, or 'right'?"):
        read_survey(frame)
    assert pairs_of(read_survey(frame, highest_first=True)) == ["b a", "b c", "a c"]
    survey = read_survey(frame, highest_first=False)
    assert pairs_of(survey) == ["a b", "c b", "c a"]
    assert "in the column 'label' '0' is 'left', '1' is 'right'" in survey.notes
    frame = pd.DataFrame({"left": list("xyz"), "right": list("yzx"), "winner": ["x", "q", "x"]})
    with refusal("row 2: column 'winner': 'q' does not say which of 'y' and 'z' is preferred"):
        read_survey(frame)
    survey = read_survey(frame, missing="q")
    assert pairs_of(survey) == ["x y", "x z"]
    assert any("1 line with an empty cell left out: row 2" in x for x in survey.notes)


@pytest.mark.parametrize("items", ["tea rum gin", "1 2 3", "0 1 2"])
@pytest.mark.parametrize("names", ["i j y", "judge i j y"])
def test_numbers_that_say_which_of_two_items_is_preferred(tmp_path, names, items):
    a, b, c = items.split()
    rows = [f"x,{a},{b},1", f"x,{b},{c},0", f"z,{a},{c},1", f"z,{c},{a},0"]
    columns = names.split()
    text = "\n".join([",".join(columns), *(x[2 * (len(columns) < 4) :] for x in rows)])
    path = write(tmp_path, text, "t.csv")
    for layout in (None, "pairs"):
        with pytest.raises(RankingsError) as error:
            read_survey(path, layout)
        found = error.value.questions
        assert "Add highest_first=True if 1 means that 'i' is preferred" in found.texts[-1]
        assert found.options["columns"] == ["i", "j", "y"] and not found.is_read
        settings = {"layout": layout, **found.options}
        survey = read_survey(path, **settings, highest_first=True)
        assert pairs_of(survey) == [f"{a} {b}", f"{c} {b}", f"{a} {c}", f"{a} {c}"]
        survey = read_survey(path, **settings, highest_first=False)
        assert pairs_of(survey) == [f"{b} {a}", f"{b} {c}", f"{c} {a}", f"{c} {a}"]


def test_numbers_of_a_result_are_no_items():
    frame = pd.DataFrame({"i": [1, 2, 2], "j": [2, 3, 1], "result": [1, 0, 1]})
    assert pairs_of(read_survey(frame)) == ["1 2", "3 2", "2 1"]


def test_where_no_number_says_which_item_is_preferred():
    with refusal("highest_first=True goes with a column of 1 and 0"):
        read_survey(pd.DataFrame(WINS, columns=TWO_COLUMNS[0]), highest_first=True)
    named = pd.DataFrame({"a": ["x", "y"], "b": ["y", "z"], "winner": ["x", "z"]})
    with refusal("row 1: column 'winner': highest_first=False says", "by 1 and 0, got 'x'"):
        read_survey(named, highest_first=False)


CYCLE = [("a", "b", "Ann"), ("b", "c", "Ann"), ("c", "a", "Ann"), ("a", "b", "Bob")]


def test_cycles():
    frame = pd.DataFrame(CYCLE, columns=["winner", "loser", "judge"])
    said = "judge 'Ann': the preferences contradict one another: a > b > c > a; 1 of 2 judges"
    with refusal(said, "contradicts their own answers; cycles='drop' leaves such judges out"):
        read_survey(frame, judge="judge")
    survey = read_survey(frame, judge="judge", cycles="drop")
    assert survey.judges == ["Bob"] and pairs_of(survey) == ["a b"]
    assert f"{said} contradicts their own answers, and is left out" in survey.notes
    assert "comparisons: 1 by 1 judge" in survey.notes  # those that are left
    # each line a judge of its own
    assert len(read_rankings(frame, columns=["winner", "loser"])) == 4
    with refusal("a > b > c > a; cycles='drop' leaves none, and cycles='mistakes' learns how"):
        read_survey(frame[:3], judge="judge", cycles="drop")
    with refusal("cycles goes with the layout pairs, not with ranks"):
        read_survey(pd.DataFrame({"a": [1], "b": [2]}), "ranks", cycles="drop")


def test_cycles_as_mistakes():
    """The same comparisons as those of the class, of tables with two columns or an outcome."""
    frame = pd.DataFrame(CYCLE, columns=["winner", "loser", "judge"])
    survey = read_survey(frame, judge="judge", cycles="mistakes")
    assert survey.rankings == Comparisons.from_pairs(frame, "judge")
    assert survey.judges == ["Ann", "Bob"] and survey.label_index.tolist() == [0, 1]
    said = (
        "1 of 2 judges contradicts their own answers; any comparison may be a mistake, all with the"
    )
    assert any(text.startswith(said) for text in survey.notes)
    outcomes = pd.DataFrame(
        [*[("x", "y", "a", 1)] * 3, ("x", "y", "b", 1), ("y", "z", "tie", 1), ("z", "x", "a", 2)],
        columns=["a", "b", "winner", "judge"],
    )
    kept = read_rankings(outcomes, judge="judge", cycles="mistakes")
    expected = Comparisons.from_pairs(outcomes, "judge", pair=("a", "b"))
    assert kept == expected and kept.has_cycles.tolist() == [True, False]
    assert int(kept.wins[0].sum()) == 4
    without = read_rankings(outcomes, judge="judge", cycles="mistakes", ties="drop")
    assert without.lengths.tolist() == [2, 2]
    # equal judges are one row
    twice = pd.concat([frame, frame.assign(judge=frame["judge"] + "2")])
    merged = read_rankings(twice, judge="judge", cycles="mistakes")
    assert merged.num_rows == 2 and merged.counts.tolist() == [2, 2]
    with refusal("cycles='mistakes' needs the judges, by judge=: without it each line is a judge"):
        read_survey(frame, columns=["winner", "loser"], cycles="mistakes")
    with refusal("top=1 goes with lists in which no items are tied", "does not go with pairs"):
        read_survey(frame, judge="judge", cycles="mistakes", top=1)
    with refusal("cycles is 'refuse' or 'drop' or 'mistakes', not 'keep'"):
        read_survey(frame, judge="judge", cycles="keep")


def test_refusals(tmp_path):
    frame = pd.DataFrame({"winner": ["a", "b"], "loser": ["b", "b"]})
    with refusal("row 2: compares item 'b' with itself"):
        read_survey(frame)
    with refusal("there is no item 'b'; expected a, c"):
        read_survey(frame, items=["a", "c"])
    with refusal("which columns are the pairs?", "columns="):
        read_survey(pd.DataFrame({"x": ["a"], "y": ["b"], "z": ["c"]}), "pairs")
    with refusal("duplicates does not go with pairs"):
        read_survey(frame.assign(judge=[1, 2]), judge="judge", duplicates="first")
    with refusal("there are no comparisons"):
        read_survey(pd.DataFrame({"winner": ["a", ""], "loser": ["", "b"]}))
    with refusal("is empty: who is it?"):
        read_survey(
            pd.DataFrame({"winner": ["a", "b"], "loser": ["b", "a"], "judge": ["x", ""]}),
            judge="judge",
        )


def test_columns_of_other_names():
    frame = pd.DataFrame({"x": ["a", "b"], "y": ["b", "c"], "z": ["a", "c"]})
    assert pairs_of(read_survey(frame, "pairs", columns=["y", "x"])) == ["b a", "c b"]
    assert pairs_of(read_survey(frame, "pairs", columns=["x", "y", "z"])) == ["a b", "c b"]


def test_a_pattern_that_leaves_the_pairs_out():
    frame = pd.DataFrame({"Q1_1": ["a", "b"], "Q1_2": ["b", "a"], "winner": ["x", "y"]})
    frame["loser"] = ["y", "x"]
    assert joined(read_survey(frame, "orders", columns="Q1_*")) == ["a b", "b a"]


def test_a_choice_that_is_of_no_pair():
    frame = pd.DataFrame({"choice": [3, 1, 2], "b1": ["x", "y", "x"], "b2": ["y", "x", "y"]})
    assert joined(read_survey(frame, "orders", columns="*"))[0] == "3 x y"


def test_words_of_pairs_beside_orders():
    for names in (("team1", "team2", "label"), ("item_1", "item_2", "vote")):
        frame = pd.DataFrame([["a", "b", "north"], ["b", "a", "south"]], columns=names)
        assert joined(read_survey(frame, "orders", about=names[2])) == ["a b", "b a"]


def test_ranks_are_no_pairs():
    frame = pd.DataFrame({"rank1": ["a", "b"], "rank2": ["b", "a"], "result": ["c", "c"]})
    assert joined(read_survey(frame, "orders", about="result")) == ["a b", "b a"]


@pytest.mark.parametrize(
    ("columns", "rows", "words"),
    [
        (
            "model_a model_b winner",
            ["x y y", "y z x"],
            "'x' is an item, but not one of the two, 'y' and 'z'",
        ),
        ("item_a item_b winner", ["B A A", "B C A"], "'A' is an item, but not one of the two"),
        ("item1 item2 choice", ["2 5 1", "5 1 1"], "'1' is an item, but not one of the two"),
        ("winner loser draw", ["x y 0", "y z 1"], "does the column 'draw' say which comparisons"),
        ("winner loser is_tie", ["x y no", "y z yes"], "does the column 'is_tie' say"),
        ("a b winner", ["x y 0", "y z 1"], "does 0 in 'winner' mean"),
        (
            "home away home_goals",
            ["Ars Che 2", "Che Liv 0"],
            "'home_goals' is what one of the two scored",
        ),
    ],
)
def test_outcomes_that_are_not_what_they_seem(columns, rows, words):
    frame = pd.DataFrame([row.split() for row in rows], columns=columns.split())
    with refusal(words):
        read_survey(frame, "pairs", columns=columns.split() if "goals" in columns else ())
    if "loser" in columns:  # the remedy works
        survey = read_survey(frame, "pairs", columns=["winner", "loser"])
        assert pairs_of(survey) == ["x y", "y z"]


def test_pairs_take_no_offers():
    frame = pd.DataFrame({"j": ["a"], "winner": ["x"], "loser": ["y"], "saw": ["x;y;z"]})
    with refusal("offered='saw' does not go with pairs"):
        read_survey(frame, "pairs", judge="j", offered="saw")


def test_names_of_columns_come_before_codes():
    """Also where the first column is that of the guests."""
    frame = pd.DataFrame({"away": ["x"], "home": ["y"], "won": ["home"]})
    for won, first in (("home", "y"), ("away", "x")):
        made = PartialOrders.from_pairs(frame.assign(won=won), winner="won", pair=("away", "home"))
        assert made.items[int(made.listed[0, 0])] == first
        made = PartialOrders.from_pairs(
            frame.assign(won=won[0].upper()), winner="won", pair=("away", "home")
        )
        assert made.items[int(made.listed[0, 0])] == first


def test_lines_that_compare_an_item_with_itself(tmp_path):
    text = "judge,winner,loser\nx,a,b\nx,b,b\ny,b,c\ny,c,c\ny,c,a\nz,a,a\n"
    path = write(tmp_path, text, "t.csv")
    own = {"columns": ["winner", "loser"]}  # each line a judge of its own
    for settings in (own, {"judge": "judge"}):
        with refusal(
            "t.csv:3: compares item 'b' with itself, as in 2 other lines: 5, 7; correct the names, "
            "or leave such lines out, as cycles='drop' does"
        ):
            read_survey(path, **settings)
        survey = read_survey(path, cycles="drop", **settings)
        assert survey.rankings.items == ("a", "b", "c")
        assert any("3 lines with an item against itself left out: " in x for x in survey.notes)
    assert pairs_of(read_survey(path, cycles="drop", **own)) == ["a b", "b c", "c a"]
    assert survey.judges == ["x", "y"] and len(survey.rankings) == 2
    assert "comparisons: 3 by 2 judges" in survey.notes
    alike = read_survey(path, cycles="drop", aliases={"c": "b"}, **own)
    assert pairs_of(alike) == ["a b", "b a"]
    with refusal("t.csv:2: compares item 'a' with itself, as in 5 other lines: 3, 4, 5, 6, 7"):
        read_survey(path, cycles="drop", aliases={"c": "a", "b": "a"}, **own)


def test_comparisons_are_counted_without_those_who_are_left_out():
    frame = pd.DataFrame(CYCLE, columns=["winner", "loser", "judge"])
    counted = frame.assign(n=[2, 2, 2, 5])
    notes = read_survey(counted, judge="judge", count="n", cycles="drop").notes
    assert "comparisons: 5 by 5 judges" in notes
    without = counted[:2]
    assert "comparisons: 4 by 2 judges" in read_survey(without, judge="judge", count="n").notes


ODD = "judge,winner,loser,n,age\nx,a,b,2,30\n{},b,c,{},{}\ny,c,a,1,50\n{},a,c,1,{}\n"


@pytest.mark.parametrize(
    ("cells", "options", "said"),
    [
        (
            ("", 2, 30, "", 50),
            {},
            "t.csv:3: column 'judge' is empty, as in 1 other line: 5: who is it? Write the name in "
            "each row, also where it is that of the row above, or leave out judge=, without which "
            "each line is a judge of its own",
        ),
        (
            ("x", 3, 30, "x", 30),
            {"count": "n"},
            "t.csv:3: column 'n' is '3', but '2' in an earlier row of judge 'x', as in 1 other "
            "line: 5; write the same in all rows of a judge, or leave out count='n', or judge=, "
            "without which each line is a judge of its own",
        ),
        (
            ("x", 2, 31, "y", 50),
            {"about": "age"},
            "t.csv:3: column 'age' is '31', but '30' in an earlier row of judge 'x'; write the "
            "same in all rows of a judge, or leave out about='age', or judge=",
        ),
    ],
)
def test_what_lines_say_of_their_judge(tmp_path, cells, options, said):
    path = write(tmp_path, ODD.format(*cells), "t.csv")
    options = {"columns": ["winner", "loser"]} | options
    with refusal(said):
        read_survey(path, judge="judge", **options)
    number = 7 if "count" in options else 4
    assert len(read_survey(path, **options).rankings) == number  # without the judges
    if len(options) > 1 and cells[0]:  # without the option
        read_survey(path, judge="judge", columns=["winner", "loser"], cycles="drop")
    if len(options) == 1:
        ranks = write(tmp_path, "judge,a,b\nx,1,2\n,2,1\n,1,2\n", "r.csv")
        with refusal("r.csv:3: column 'judge' is empty, as in 1 other line: 4: who is it?"):
            read_survey(ranks, "ranks", judge="judge")
        long = write(tmp_path, "judge,item,rank\nx,a,1\n,b,2\n,c,3\n", "l.csv")
        with refusal("l.csv:3: column 'judge' is empty, as in 1 other line: 4; write the name"):
            read_survey(long)


@pytest.mark.parametrize("name", ["draw", "is_tie", "Tied"])
@pytest.mark.parametrize("texts", ["01", ("no", "yes"), ("FALSE", "true")])
def test_a_column_that_says_which_are_ties(tmp_path, name, texts):
    no, yes = texts
    path = write(tmp_path, f"winner,loser,{name}\nx,y,{no}\ny,z,{yes}\nx,z,{no}\n", "t.csv")
    with pytest.raises(RankingsError) as error:
        read_survey(path)
    assert error.value.questions.options == {"columns": ["winner", "loser", name]}
    survey = read_survey(path, **error.value.questions.options)
    assert pairs_of(survey) == ["x y", "y=z", "x z"]
    assert f"in the column {name!r} 1, yes and true are a tie" in survey.notes
    frame = pd.read_csv(path, dtype=str).rename(columns={"winner": "a", "loser": "b"})
    with refusal("does" if no == "0" else "expected one of these"):  # nothing says who won
        read_survey(frame, "pairs", columns=["a", "b", name])


def test_a_column_beside_pairs_that_has_no_outcome(tmp_path):
    path = write(tmp_path, "winner,loser,result\nx,y,KO\ny,z,points\n", "t.csv")
    with pytest.raises(RankingsError) as error:
        read_survey(path)
    assert error.value.questions.options == {"columns": ["winner", "loser"]}
    assert pairs_of(read_survey(path, columns=["winner", "loser"])) == ["x y", "y z"]


@pytest.mark.parametrize("name", ["games", "n", "count", "times", "Number of games", "frequency"])
@pytest.mark.parametrize("columns", ["winner,loser", "a,b,winner"])
def test_counts_of_pairs(tmp_path, columns, name):
    end = ",x" if columns.startswith("a") else ""
    text = f"{columns},{name}\nx,y{end},3\nx,z{end},2\n"
    path = write(tmp_path, text, "t.csv")
    with pytest.raises(RankingsError) as error:
        read_survey(path)
    assert error.value.questions.options == {"count": name}
    assert pairs_of(read_survey(path, count=name)) == ["x y"] * 3 + ["x z"] * 2
    assert pairs_of(read_survey(path, columns=columns.split(","))) == ["x y", "x z"]
    running = write(tmp_path, text.replace(",3", ",1"), "u.csv")  # numbers of the lines
    assert len(read_survey(running).rankings) == 2


@pytest.mark.parametrize("judge", ["", "x,"])
def test_pairs_without_a_header(tmp_path, judge):
    pairs = ["Ann,Bob", "Bob,Cid", "Ann,Cid", "Cid,Dee", "Bob,Ann"]
    path = write(tmp_path, "\n".join(f"{judge}{x}" for x in pairs), "t.csv")
    settings = {"header": "none", "judge": "1"} if judge else {"header": "none"}
    with refusal("the layout is needed", "layout='pairs' if each row compares two items"):
        read_survey(path, **settings)
    if not judge:
        with pytest.raises(RankingsError) as error:
            read_survey(path)
        assert error.value.questions.options == {"header": "none", "layout": "pairs"}
        assert read_survey(path, "pairs", header="none").rankings.num_rankings == 5


def test_pairs_without_a_header_whose_third_column_has_the_winner(tmp_path):
    rows = ["Ann,Bob,Bob", "Bob,Cid,Bob", "Ann,Cid,Ann", "Cid,Dee,Dee", "Bob,Ann,Bob"]
    path = write(tmp_path, "\n".join(rows), "t.csv")
    with pytest.raises(RankingsError) as error:
        read_survey(path)
    assert error.value.questions.options == {"header": "none"}
    survey = read_survey(path, header="none")
    orders = survey.rankings
    said = [" ".join(orders.items[k] for k in row) for row in orders.listed.tolist()]
    of_rows = [said[k] for k in orders.row_index[survey.label_index].tolist()]
    assert of_rows == ["Bob Ann", "Bob Cid", "Ann Cid", "Dee Cid", "Bob Ann"]
    with refusal("the texts of the cells are those of paired comparisons", "layout='pairs'"):
        read_survey(path, "orders", header="none")
    # a list that has a third name is no pair
    path = write(tmp_path, "\n".join([*rows[:4], "Bob,Ann,Cid"]), "u.csv")
    with refusal("the layout is needed"):
        read_survey(path, header="none")
