"""Commands ask all questions of a file at once, and end with a command that answers them."""

import shlex

import pytest
from helpers.command_line import SOI, run

from numpyro_rankings.cli import main

ODD = """\
id,tea,coffee,cocoa
r1,1,2,3
r2,2,1,99
r2,1,3,2
r3,1,3,
r4,3,2,2
r5,-1,,1
"""
ANSWERS = "--missing=-1,99 --gaps close --duplicates first"


def asked(capsys, *arguments):
    """What a command asks on the screen, in lines."""
    assert main([*arguments]) == 2
    shown = capsys.readouterr()
    assert not shown.out
    return shown.err.splitlines()


def test_the_last_line_is_a_command_that_works(folder, capsys):
    (folder / "my file.csv").write_text(ODD)
    lines = asked(capsys, "describe", "my file.csv", "--judge=id")
    assert lines[0].endswith("error: my file.csv: 5 questions before it can be read")
    numbered = [line for line in lines if line[:2] in [f"{k}." for k in range(1, 6)]]
    assert len(numbered) == 5 and len(lines) == 1 + 2 * 5 + 2
    for number, part in enumerate(
        (
            "the layout is needed",
            "my file.csv:7: column 'tea': expected a rank",
            "my file.csv:3: column 'cocoa': expected a rank",
            "my file.csv:5: 'coffee' has rank 3, but no item has rank 2",
            "my file.csv:4: judge 'r2' has a row already, my file.csv:3",
        )
    ):
        assert part in numbered[number]
    command = lines[-1].strip()
    expected = f"numpyro-rankings describe 'my file.csv' --judge=id --layout ranks {ANSWERS}"
    assert command == expected
    assert main(shlex.split(command)[1:]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("5 partial orders of 3 items")
    assert "1 of 5 judges ties items, which is read as no opinion" in shown.err
    assert "read as not ranked: '-1' in 1 cell, '99' in 1 cell" in shown.err


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_other_commands_ask_so_too(folder, capsys, command):
    (folder / "t.csv").write_text(ODD)
    words = [command, "t.csv", "--judge", "id", "--seed", "3"]
    lines = asked(capsys, *words)
    assert lines[-1] == f"  numpyro-rankings {shlex.join(words)} --layout ranks {ANSWERS}"
    assert [x.name for x in folder.iterdir()] == ["t.csv"]


def test_one_question_is_told_as_before(folder, capsys):
    (folder / "t.csv").write_text("a,b\n1,2\n1,n/a\n")
    lines = asked(capsys, "describe", "t.csv", "--layout", "ranks")
    assert lines[0].startswith("numpyro-rankings: error: t.csv:3: column 'b'") and len(lines) == 3
    assert lines[-1].endswith("describe t.csv --layout ranks --missing n/a")


def test_what_only_a_person_can_answer(folder, capsys):
    (folder / "t.csv").write_text("a,b,c\n1,2,99\n2,5,1\n2,1,3\n3,1,2\n")
    lines = asked(capsys, "describe", "t.csv")
    assert "rank 5" in lines[-2] and lines[-1].startswith("The last question needs a decision")
    assert lines[-1].endswith("Add its option, and for the others --layout ranks --missing 99")
    (folder / "t.csv").write_text("winner,loser\nb,b\na,a\n")
    assert len(asked(capsys, "describe", "t.csv")) == 1
    (folder / "t.csv").write_text("winner,loser\na,b\na,a\n")
    assert asked(capsys, "fit", "t.csv")[-1].endswith("fit t.csv --cycles drop")


def test_pairs_in_another_layout(folder, capsys):
    (folder / "t.csv").write_text("winner,loser\na,b\nb,c\n")
    lines = asked(capsys, "fit", "t.csv", "--layout", "ranks")
    assert lines[-1].endswith("fit t.csv --layout pairs")


def test_each_of_several_files_is_asked_about(folder, capsys):
    (folder / "a.csv").write_text(ODD)
    (folder / "b.csv").write_text("id,x,y\n1,1,2\n2,1,n/a\n")
    assert main("fit a.csv b.csv --judge id --out out".split()) == 2
    shown = capsys.readouterr()
    assert f"  options for it: --layout ranks {ANSWERS}\n" in shown.err
    assert "  options for it: --layout ranks --missing n/a\n" in shown.err
    assert "failed: 5 questions before it can be read" in shown.out


def test_the_file_is_read_before_an_unfinished_run_is_told(folder, capsys, monkeypatch):
    monkeypatch.setattr("numpyro_rankings.cli.session._has_sweeps", lambda store: True)
    (folder / "t.csv").write_text(ODD)
    (folder / "t.soi").write_text(SOI)
    lines = asked(capsys, "fit", "t.csv", "--judge", "id", "--out", "out")
    assert lines[0].endswith("5 questions before it can be read")
    assert "no such file" in asked(capsys, "fit", "other.csv", "--out", "out")[0]
    assert "--rhat must be" in asked(capsys, "fit", "t.soi", "--out", "out", "--rhat", "1")[0]
    assert run("fit", "t.soi", "--out", "out") == 2
    assert "out.run has an unfinished run" in capsys.readouterr().err
