"""What ``describe`` says of ballots, the options of rules, and folders with files of elections."""

import json

import pytest

from numpyro_rankings.cli import main
from numpyro_rankings.cli.several import _files_in

CVR = """\
Ballot,Choice 1,Choice 2,Choice 3
1,"Poe, Ann (12)",Böb Best,undervote
2,BOB BEST,Write-in,"Poe, Ann"
3,undervote,Ann Poe,overvote
4,overvote,Ann Poe,"Poe, Ann"
"""
COUNCIL = '2,1,\n5,1,2,\n3,2,\n"Candidate 1","Ann","Green",\n"Candidate 2","Bob","",\n"Ward",\n'


@pytest.fixture(autouse=True)
def _here(tmp_path):
    (tmp_path / "cvr.csv").write_text(CVR, encoding="utf-8")
    (tmp_path / "ward.csv").write_text(COUNCIL)


def described(capsys, *arguments):
    """The lines that the command prints, with single blanks, notes first."""
    assert main(["describe", *arguments]) == 0
    captured = capsys.readouterr()
    return [" ".join(x.split()) for x in (captured.err + captured.out).splitlines()]


def test_ballots_and_names_that_may_be_the_same(capsys):
    lines = described(capsys, "cvr.csv", "--columns", "Choice*", "--judge", "Ballot")
    assert (
        "of 4 ballots; 2 with several names at a rank, 1 with a blank rank before a name, "
        "1 with no name that counts"
    ) in lines
    same = [line for line in lines if "may mean the same item" in line]
    assert same == [
        "these names may mean the same item: 'Poe, Ann (12)', 'Poe, Ann'; --aliases joins them",
        "these names may mean the same item: 'Böb Best', 'BOB BEST'; --aliases joins them",
    ]


def test_words_in_another_order_and_signs(capsys, tmp_path):
    (tmp_path / "names.csv").write_text("1st,2nd,3rd\nAnn Poe,Bob,Poe; Ann\nPOE ANN,Bob,Cid\n")
    lines = described(capsys, "names.csv")
    assert any("'Poe; Ann', 'POE ANN'" in line for line in lines)
    (tmp_path / "names.csv").write_text('1st,2nd\n"Poe, Ann",Bob\nAnn Poe,Bob\n')
    assert any("'Poe, Ann', 'Ann Poe'" in line for line in described(capsys, "names.csv"))
    (tmp_path / "names.csv").write_text("1st,2nd\nDEM Ann Poe (5),Bob\nAnn Poe,Bob\n")
    assert any("'DEM Ann Poe (5)', 'Ann Poe'" in line for line in described(capsys, "names.csv"))
    (tmp_path / "names.csv").write_text("1st,2nd\n(1),(2)\n(2),(1)\n")
    assert not any("may mean the same item" in line for line in described(capsys, "names.csv"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--overvote", "skip"], "2 ballots of 4 have a rank with several names, which is passed"),
        (["--skipped", "0"], "1 ballot of 4 has more than 0 blank ranks before a name, where"),
        (["--write-ins", "skip"], "1 ballot of 4 has a write-in, which is taken off"),
        (["--max-ranks", "1"], "3 ballots of 4 have a name below rank 1, which is not read"),
        (["--aliases", "aliases.csv"], "names are read as others: 'Poe, Ann (12)' as 'Ann Poe'"),
        (
            ["--aliases", "aliases.csv", "--overvote", "skip", "--repeated", "stop"],
            "1 ballot of 4 has a name for the second time, where the list ends",
        ),
    ],
)
def test_each_option_says_what_it_does(capsys, tmp_path, options, said):
    (tmp_path / "aliases.csv").write_text(
        'alias,item\n"Poe, Ann (12)",Ann Poe\n"Poe, Ann",Ann Poe\n'
    )
    lines = described(capsys, "cvr.csv", "--columns", "Choice*", *options)
    assert any(said in line for line in lines), lines


def test_parties_are_shown(capsys):
    lines = described(capsys, "ward.csv")
    assert lines[:2] == ["8 rankings of 2 items, 2 of them different"] + lines[1:2]
    start = lines.index("party of each item:")
    assert lines[start + 1 : start + 3] == ["Ann Green", "Bob"]


DOMINION = """\
City of X,5.11.3.1,,
,,Mayor (Number of ranks=2),Mayor (Number of ranks=2)
,,Ann(1),Ann(2)
CvrNumber,BatchId,,
1,1,1,0
"""


def test_files_that_would_be_misread_are_refused_with_what_to_do(capsys, tmp_path):
    (tmp_path / "dominion.csv").write_text(DOMINION)
    for options in ([], ["--header-rows", "3", "--layout", "marks", "--columns", "Mayor*"]):
        assert main(["describe", "dominion.csv", *options]) == 2
        assert "dominion.csv:4: this seems to be an export of Dominion" in capsys.readouterr().err
    (tmp_path / "papers.csv").write_text('Paper,Preferences\n1,",,1,2"\n2,"2,1,,"\n')
    assert main(["describe", "papers.csv", "--layout", "cell", "--columns", "Preferences"]) == 2
    assert "if the numbers are ranks, split the cells into a column" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ward.csv", "--judge", "Ward"], "judge does not go with a file of a Scottish council"),
        (
            ["cvr.csv", "--contest", "Mayor", "--layout", "votes"],
            "contest goes with cast vote records",
        ),
        (
            ["cvr.csv", "--columns", "Choice*", "--skipped", "-1"],
            "skipped is a whole number from 0",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(capsys, arguments, message):
    assert main(["describe", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1 and not captured.out


def test_a_folder_has_files_of_elections(tmp_path, capsys):
    folder = tmp_path / "elections"
    folder.mkdir()
    (folder / "a.blt").write_text("2 1\n1 1 2 0\n0\nA\nB\n")
    (folder / "b.txt").write_text("2 1\n1 1 2 0\n0\nA\nB\n")
    (folder / "README.txt").write_text("Ballots of two wards.\n")
    (folder / "c.json").write_text(json.dumps({"@type": "CVR.CastVoteRecordReport"}))
    (folder / "settings.json").write_text(json.dumps({"seed": 1}))
    assert [x.rpartition("/")[2] for x in _files_in(str(folder))] == ["a.blt", "b.txt", "c.json"]
    assert "README.txt, settings.json" in capsys.readouterr().err
