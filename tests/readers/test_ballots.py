"""Ballots: the rules that make rankings of them, and tables of votes and marks."""

import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pytest
from helpers.readers import by_name, write
from hypothesis import given, settings
from hypothesis import strategies as st

from numpyro_rankings import RankingsError
from numpyro_rankings.readers import read_rankings, read_survey
from numpyro_rankings.readers.ballots import BLANK, OVERVOTE, BallotCounts, Rules, apply_rules


def plain_rules(ballot, rules, written):
    """Apply the rules to one ballot, rank by rank; also return which of them touched it."""
    touched = dict.fromkeys(BallotCounts._fields, False)
    touched["cast"] = True
    touched["blank"] = all(mark == BLANK for mark in ballot)
    read = ballot if rules.max_ranks is None else ballot[: rules.max_ranks]
    found, seen, blanks, ended = [], set(), 0, False
    for mark in read:
        if mark == BLANK:
            blanks += 1
            continue
        if rules.skipped is not None and blanks > rules.skipped:
            touched["ended_by_skipped"] = ended = True
            break
        had_blanks, blanks = blanks > 0, 0
        if mark == OVERVOTE:
            touched["overvoted"] = True
            if rules.overvote == "stop":
                ended = True
                break
            continue
        if mark in seen:
            touched["repeated"] = True
            if rules.repeated == "stop":
                ended = True
                break
            continue
        touched["skipped"] |= had_blanks
        seen.add(mark)
        found.append(mark)
    touched["cut"] = not ended and any(mark != BLANK for mark in ballot[len(read) :])
    if rules.write_ins == "skip":
        touched["write_ins"] = any(written[mark] for mark in found)
        found = [mark for mark in found if not written[mark]]
    touched["emptied"] = not touched["blank"] and not found
    return found, touched


RULES = st.builds(
    Rules,
    overvote=st.sampled_from(["stop", "skip"]),
    skipped=st.sampled_from([None, 0, 1, 2]),
    repeated=st.sampled_from(["skip", "stop"]),
    write_ins=st.sampled_from(["item", "skip"]),
    max_ranks=st.sampled_from([None, 1, 2, 3, 9]),
)
BALLOTS = st.integers(1, 6).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(OVERVOTE, 3), min_size=width, max_size=width), min_size=1, max_size=8
    )
)


@settings(max_examples=300, deadline=None)
@given(BALLOTS, RULES, st.data())
def test_the_rules_are_those_of_a_plain_reading(ballots, rules, data):
    weights = data.draw(
        st.lists(st.integers(1, 5), min_size=len(ballots), max_size=len(ballots)), "weights"
    )
    written = np.array([False, True, False, False])
    lists, counts = apply_rules(np.array(ballots), np.array(weights), rules, written)
    expected = [plain_rules(ballot, rules, written) for ballot in ballots]
    assert [[x for x in row if x >= 0] for row in lists.tolist()] == [x for x, _ in expected]
    for name in BallotCounts._fields:
        number = sum(w for w, (_, touched) in zip(weights, expected, strict=True) if touched[name])
        assert getattr(counts, name) == number, name


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, [[0], [2, 1], [1, 0], [0]]),
        ({"overvote": "skip"}, [[0, 1], [2, 1], [1, 0], [0]]),
        ({"skipped": 1}, [[0], [2, 1], [1, 0]]),
        ({"skipped": 0}, [[0], [2], [1, 0]]),
        ({"repeated": "stop"}, [[0], [2, 1], [1], [0]]),
        ({"max_ranks": 2}, [[0], [2], [1]]),
        ({"write_ins": "skip"}, [[0], [1], [1, 0], [0]]),
    ],
)
def test_each_rule_of_a_table_of_votes(rules, expected):
    frame = pd.DataFrame(
        {
            "1st choice": ["Ann", "UWI", "Bob", "undervote", None],
            "2nd choice": ["overvote", "skipped", "Bob", None, "undervote"],
            "3rd choice": ["Bob", "Bob", "Ann", "Ann", ""],
        }
    )
    survey = read_survey(frame, "votes", **rules)
    names = ("Ann", "Bob", "UWI") if "write_ins" not in rules else ("Ann", "Bob")
    assert survey.rankings.items == names
    index = ["Ann", "Bob", "UWI"]
    assert [[index.index(name) for name in row] for row in by_name(survey)] == expected
    assert survey.ballots.cast == 5 and survey.ballots.blank == 1
    assert survey.ballots.emptied == 4 - len(expected)


CITY = pd.DataFrame(
    {
        "Cast Vote Record": [1, 2, 3, 4, 5],
        "Precinct": ["P1", "P2", "P1", "P2", "P3"],
        "Mayor Choice 2 (50)": ["Bob", "Ann", "overvote", None, "Cid"],
        "Mayor Choice 1 (45)": ["Ann", "Ann", "Cid", "undervote", "undervote"],
        "Clerk Choice 1": ["X", "Y", "X", "Y", "X"],
    }
)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx", ".parquet"])
def test_an_export_of_a_city(tmp_path, suffix):
    path = tmp_path / f"cvr{suffix}"
    write = {".xlsx": CITY.to_excel, ".parquet": CITY.to_parquet}.get(suffix, CITY.to_csv)
    write(path, index=False, **({"sep": "\t"} if suffix == ".tsv" else {}))
    survey = read_survey(path, columns="Mayor*hoice*", judge="Cast Vote Record", about="Precinct")
    assert survey.layout == "votes"
    assert by_name(survey) == [["Ann", "Bob"], ["Ann"], ["Cid"], ["Cid"]]
    assert survey.judges == ["1", "2", "3", "5"]
    assert survey.about == {"Precinct": ["P1", "P2", "P1", "P3"]}
    assert survey.ballots == BallotCounts(5, 1, 0, 1, 1, 0, 1, 0, 0)
    for text in (
        "1 ballot of 5 has a rank with several names, where the list ends",
        "1 ballot of 5 has a blank rank before a name, which moves up",
        "1 ballot of 5 has a name for the second time, which is passed over",
        "1 ballot of 5 is blank, and is left out",
        "read as a blank rank: 'undervote' in 2 cells",
    ):
        assert text in survey.notes


def test_counts_are_ballots():
    frame = pd.DataFrame({"n": [3, 2], "Rank 1": ["Ann", "overvote"], "Rank 2": ["Bob", "Bob"]})
    survey = read_survey(frame, "votes", count="n")
    assert survey.ballots.cast == 5 and survey.ballots.overvoted == survey.ballots.emptied == 2
    assert survey.rankings.num_rankings == 3
    assert "2 ballots of 5 have no name that counts, and are left out" in survey.notes


@pytest.mark.parametrize("mark", ["|", "; ", " / ", "//", ",", "\n"])
def test_names_joined_by_what_no_name_has(mark):
    frame = pd.DataFrame({"Rank 1": ["Ann", f"Ann{mark}Bob", "Bob"], "Rank 2": ["Bob", "Cid", ""]})
    survey = read_survey(frame, "votes", overvote="skip")
    assert survey.rankings.items == ("Ann", "Bob", "Cid")
    assert by_name(survey) == [["Ann", "Bob"], ["Cid"], ["Bob"]]
    assert survey.ballots.overvoted == 1


def test_a_name_with_a_comma_is_one_name():
    frame = pd.DataFrame({"Rank 1": ["Poe, Ann", "Roe, Bob"], "Rank 2": ["Roe, Bob", "Poe, Ann"]})
    assert read_rankings(frame, "votes").items == ("Poe, Ann", "Roe, Bob")


def test_an_equals_sign_joins_names_that_other_cells_have():
    frame = pd.DataFrame({"Rank 1": ["Ann", "Bob=Ann"], "Rank 2": ["Bob", "Cid"]})
    survey = read_survey(frame, "votes", overvote="skip")
    assert survey.rankings.items == ("Ann", "Bob", "Cid") and survey.ballots.overvoted == 1


def test_a_separator_joins_names_that_no_other_cell_has():
    frame = pd.DataFrame({"Rank 1": ["Ann", "Ann+Cid"], "Rank 2": ["Bob", "Bob"]})
    survey = read_survey(frame, "votes", separator="+")
    assert survey.rankings.items == ("Ann", "Bob", "Cid") and survey.ballots.overvoted == 1
    assert by_name(survey) == [["Ann", "Bob"]]


def test_a_table_of_ranks_with_rules():
    frame = pd.DataFrame({"Ann": [1, 2, 1], "Bob": [1, 3, 3], "Cid": [2, None, 2]})
    assert read_survey(frame.iloc[:1], "ranks").rankings.levels.tolist() == [[0, 0, 1]]
    survey = read_survey(frame, "ranks", overvote="skip", skipped=1)
    assert by_name(survey) == [["Cid"], ["Ann", "Bob"], ["Ann", "Cid", "Bob"]]
    assert survey.ballots == BallotCounts(3, 0, 0, 1, 1, 0, 0, 0, 0)


SHEETS = {
    "rank at the end": ["Ann Able 1", "Ann Able 2", "Bob 1", "Bob 2"],
    "brackets": ["Ann Able [1st choice]", "Ann Able [2nd choice]", "Bob [1st choice]"]
    + ["Bob [2nd choice]"],
    "underscores": ["Ann Able_1", "Ann Able_2", "Bob_1", "Bob_2"],
    "rank first": ["Rank 1: Ann Able", "Rank 2: Ann Able", "Rank 1: Bob", "Rank 2: Bob"],
    "numbers first": ["1_Ann Able", "2_Ann Able", "1_Bob", "2_Bob"],
}


@pytest.mark.parametrize("how", SHEETS)
def test_scanned_sheets(how):
    marks = [[1, 0, 0, 1], [1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    frame = pd.DataFrame(marks, columns=SHEETS[how])
    frame.insert(0, "ballot", list("abcde"))
    survey = read_survey(frame, "marks", judge="ballot")
    assert survey.rankings.items == ("Ann Able", "Bob")
    assert by_name(survey) == [["Ann Able", "Bob"], ["Ann Able"], ["Bob"]]
    assert survey.judges == ["a", "b", "e"]
    assert survey.ballots == BallotCounts(5, 1, 0, 1, 1, 0, 1, 0, 1)


def test_the_first_rank_may_be_called_by_the_contest():
    frame = pd.DataFrame({"Mayor": ["Ann"], "Mayor 2nd choice": ["Bob"]})
    assert read_survey(frame, "votes", columns="Mayor*").rankings.items == ("Ann", "Bob")


def test_a_name_and_its_alias_at_one_rank_are_one_name():
    frame = pd.DataFrame({"1st": ["Ann|ANN", "Bob"], "2nd": ["Bob", "Ann"]})
    survey = read_survey(frame, "votes", aliases={"ANN": "Ann"})
    assert survey.ballots.overvoted == 0 and survey.rankings.num_rankings == 2


LISTS = "1)C04[1],C07[2],C01[3]\n2)C03[1],C07[1]\n3)C03[1]\n"


@pytest.mark.parametrize(
    ("text", "options", "line"),
    [
        (LISTS, {}, 1),
        (LISTS, {"layout": "votes"}, 1),
        ('ballot\n"C04[1],C07[2]"\n"C03[1]"\n', {}, 2),
        ('id,vote\n1,"C04[1],C07[2]"\n2,"C07[1],C04[2]"\n', {"layout": "cell", "judge": "id"}, 2),
        ("id,1st,2nd\n1,C04[1],C07[2]\n2,C07[1],\n", {"judge": "id"}, 2),
    ],
)
def test_lists_of_names_with_their_ranks(tmp_path, text, options, line):
    path = write(tmp_path, text, "ballots.txt")
    with pytest.raises(RankingsError, match=f"ballots.txt:{line}: 'C04.1.' seems to be a name"):
        read_survey(path, **options)


def test_a_quotation_mark_that_is_not_closed(tmp_path):
    path = write(tmp_path, 'Choice 1,Choice 2\n"Ann,undervote\nBob,Ann\n', "ballots.csv")
    with pytest.raises(RankingsError, match=r"ballots.csv:2: .*; are the quotation marks"):
        read_survey(path)


def test_brackets_in_names(tmp_path):
    path = write(tmp_path, "id,Q1[1],Q1[2],Q2[1]\n1,A,B,C\n2,A\n", "limesurvey.csv")
    with pytest.raises(RankingsError, match=r"limesurvey.csv:3: has 2 cells, expected 4"):
        read_survey(path, "orders", columns="Q1*")
    frame = pd.DataFrame({"1st": ["Plan[1]", "Plan[2]"], "2nd": ["Plan[2]", "Plan[1]"]})
    assert read_survey(frame).rankings.items == ("Plan[1]", "Plan[2]")
    frame = frame.replace("Plan[2]", "Law[2]")
    names = ["Plan[1]", "Law[2]"]
    assert read_survey(frame, items=names).rankings.items == ("Plan[1]", "Law[2]")


VOTES = {"Rank 1": ["Ann", "Bob"], "Rank 2": ["Bob", "Ann"]}
REFUSED = {
    "no ranks": ({"a": ["Ann"], "b": ["Bob"]}, {}, "which columns are the ranks"),
    "a precinct": (VOTES | {"Precinct": ["P", "Q"]}, {}, "the column 'Precinct' is no rank"),
    "two contests": (
        {"Mayor choice 1": ["Ann"], "Mayor choice 2": ["Bob"], "Clerk choice 1": ["Cid"]},
        {},
        "several columns are rank 1, such as 'Clerk choice 1'",
    ),
    "two contests that are picked": (
        {"Mayor choice 1": ["Ann"], "Mayor choice 2": ["Bob"], "Clerk choice 1": ["Cid"]},
        {"columns": "*choice*"},
        "several columns are rank 1, such as 'Clerk choice 1'",
    ),
    "a precinct that is picked": (
        VOTES | {"Precinct": ["P", "Q"]},
        {"columns": "*"},
        "the column 'Precinct' is no rank",
    ),
    "half a name": (
        {"Rank 1": ["Ann", "Ann|Zed"], "Rank 2": ["Bob", ""]},
        {},
        "row 2: column 'Rank 1': 'Ann|Zed' seems to have several names, but no other cell has "
        "'Zed'; add separator=",
    ),
    "an empty name": ({"Rank 1": ["Ann|", "Bob"]}, {"separator": "|"}, "row 1.*empty name"),
    "no separator": (VOTES, {"separator": ""}, "separator is empty"),
    "no item": (VOTES, {"items": ["Ann", "Cid"]}, "row 1: column 'Rank 2': there is no item 'Bob'"),
    "no rule": (VOTES, {"overvote": "ignore"}, "overvote is 'stop' or 'skip', not 'ignore'"),
    "no number": (VOTES, {"skipped": -1}, "skipped is a whole number from 0, not -1"),
    "no rank is read": (VOTES, {"max_ranks": 0}, "max_ranks is a whole number from 1, not 0"),
    "gaps": (VOTES, {"gaps": "close"}, "gaps does not go with the layout votes"),
    "nothing counts": (
        {"Rank 1": ["undervote"], "Rank 2": ["overvote"]},
        {},
        "at least 2 items, got 0",
    ),
    "one name": ({"Rank 1": ["Ann"], "Rank 2": ["overvote"]}, {}, "at least 2 items"),
    "a word as an item": (
        {"1st": ["Ann", "undervote"], "2nd": ["Bob", "Ann"]},
        {"layout": "orders"},
        "layout='votes' reads ballots",
    ),
    "rules of no ballots": (
        {"1st": ["Ann", "Bob"], "2nd": ["Bob", "Ann"]},
        {"layout": "orders", "overvote": "skip"},
        "overvote is a rule of ballots",
    ),
    "rules at their defaults": (
        {"vote": ["Ann;Bob", "Bob;Ann"]},
        {"layout": "cell", "columns": "vote", "repeated": "skip"},
        "repeated is a rule of ballots, which the layouts votes, marks and ranks have, not cell",
    ),
    "ranks in brackets": (
        {"1st": ["C04[1]", "C03[1],C07[1]"], "2nd": ["C07[2]", ""]},
        {},
        r"row 1: 'C04\[1\]' seems to be a name with its rank in brackets; write a column for each "
        r"rank.*layout='votes'; if it is a name, add items=",
    ),
    "no item and rank": (
        {"Ann": [1], "Bob": [0]},
        {"layout": "marks"},
        "the column 'Ann' does not",
    ),
    "a rank less": (
        {"Ann 1": [1], "Ann 2": [0], "Bob 1": [0], "Cid 1": [0], "Cid 2": [1]},
        {"layout": "marks"},
        "'Bob' has no column for rank 2",
    ),
    "no mark": (
        {"Ann 1": [1, 1], "Bob 1": [0, 7]},
        {"layout": "marks"},
        "row 2: column 'Bob 1': expected 1 for a mark and 0 or nothing for none, got '7'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    cells, options, message = REFUSED[name]
    with pytest.raises(RankingsError, match=message.replace("|", r"\|")) as error:
        read_survey(pd.DataFrame(cells), **{"layout": "votes"} | options)
    assert "\n" not in str(error.value)


# ---------------------------------------------------------------------------------------------
# Names
# ---------------------------------------------------------------------------------------------

MAINE = {"Poe, Ann (5931)": "Poe, Ann", "ann poe": "Poe, Ann"}


@pytest.mark.parametrize(
    ("layout", "frame"),
    [
        (
            "votes",
            {
                "Choice 1": ["Poe, Ann (5931)", "Roe, Bob|ann poe"],
                "Choice 2": ["Poe, Ann", "Roe, Bob"],
                "Choice 3": ["Roe, Bob", "Poe, Ann"],
            },
        ),
        (
            "marks",
            {"Poe, Ann (5931) 1": [1, 0], "Poe, Ann 2": [0, 0], "Roe, Bob 1": [0, 1]}
            | {"Poe, Ann (5931) 2": [0, 1], "Poe, Ann 1": [0, 0], "Roe, Bob 2": [1, 0]},
        ),
        ("orders", {"1st": ["Poe, Ann (5931)", "Roe, Bob"], "2nd": ["Roe, Bob", "Poe, Ann"]}),
        ("ranks", {"Poe, Ann (5931)": [1, 2], "Roe, Bob": [2, 1]}),
        (
            "long",
            {"judge": [1, 1, 2, 2], "rank": [1, 2, 1, 2]}
            | {"item": ["Poe, Ann (5931)", "Roe, Bob", "Roe, Bob", "ann poe"]},
        ),
        ("cell", {"all": ["Poe, Ann (5931);Roe, Bob", "Roe, Bob;Poe, Ann"]}),
    ],
)
def test_aliases_of_every_layout(layout, frame):
    options = {"separator": ";"} if layout == "cell" else {}
    survey = read_survey(pd.DataFrame(frame), layout, aliases=MAINE, **options)
    assert survey.rankings.items == ("Poe, Ann", "Roe, Bob")
    expected = [["Poe, Ann", "Roe, Bob"], ["Roe, Bob", "Poe, Ann"]]
    if layout == "votes":  # the second ballot has two names at its first rank
        expected = [["Poe, Ann", "Roe, Bob"]]
        assert survey.ballots.repeated == survey.ballots.overvoted == 1
    assert by_name(survey) == expected
    assert any("'Poe, Ann (5931)' as 'Poe, Ann'" in note for note in survey.notes)


@pytest.mark.parametrize(
    ("aliases", "message"),
    [
        ({"a": "b", "b": "c"}, "'a' means 'b', which means 'c'"),
        ({"a": " "}, "an alias and the name of its item are needed"),
        ({"Ann": "Bob"}, "the columns 'Ann' and 'Bob' are both the item 'Bob'"),
    ],
)
def test_aliases_that_are_refused(aliases, message):
    frame = pd.DataFrame({"Ann": [1, 2], "Bob": [2, 1], "Cid": [3, 3]})
    with pytest.raises(RankingsError, match=message):
        read_survey(frame, "ranks", aliases=aliases)


def test_rows_of_a_spreadsheet_without_their_last_cells(tmp_path):
    book = openpyxl.Workbook()
    for row in (["1st choice", "2nd choice", "3rd choice"], ["Ann"], ["Bob", "Ann"]):
        book.active.append(row)
    path = tmp_path / "votes.xlsx"
    book.save(path)
    # some programs do not save how large the sheet is, or cells that are empty
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    parts[sheet] = parts[sheet].replace(b'<dimension ref="A1:C3" />', b"")
    with zipfile.ZipFile(path, "w") as new:
        for name, content in parts.items():
            new.writestr(name, content)
    assert b"dimension" not in parts[sheet]
    assert by_name(read_survey(path, "votes")) == [["Ann"], ["Bob", "Ann"]]
