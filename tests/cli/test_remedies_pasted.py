"""Commands that a refusal ends with are run as they are, and read the table rightly."""

import shlex

import numpy as np
import pytest

from numpyro_rankings import read_survey
from numpyro_rankings.cli import main
from numpyro_rankings.rankings.counts import shares_above


def pasted(folder, capsys, table, *words, name="t.csv"):
    """Describe a table that is refused; return the options of the last line, which reads it."""
    (folder / name).write_text(table)
    assert main(["describe", name, *words]) == 2
    command = capsys.readouterr().err.splitlines()[-1].strip()
    assert command.startswith(f"numpyro-rankings describe {name}")
    assert main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out
    return command.partition(f"{name} ")[2]


LONG = "judge,item,rank\na,tea,1\na,over,2\nb,over,1\nb,tea,2\n"


@pytest.mark.parametrize(
    ("table", "options"),
    [
        (LONG, "--items tea,over"),
        (
            "id,tea,under,milk\n1,1,3,2\n2,2,1,3\n",
            "--judge id --layout ranks --items tea,under,milk",
        ),
        ("winner,loser\nover,tea\ntea,milk\n", "--items over,tea,milk"),
    ],
)
def test_an_item_called_as_an_overvote(folder, capsys, table, options):
    assert pasted(folder, capsys, table) == options


DASHES = "id,a,b,c\n1,1,2,3\n2,1,--,2\n3,2,--,1\n4,3,--na--,2\n"


@pytest.mark.parametrize("words", [(), ("--layout", "ranks", "--offered", "--")])
def test_values_that_begin_with_dashes(folder, capsys, words):
    told = pasted(folder, capsys, DASHES, *words, "--gaps", "close", "--judge", "id")
    assert "--missing=--,--na--" in told or "--missing=--na--" in told
    for way in (["--missing=--"], ["--missing", "--"]):
        assert main(["describe", "t.csv", "--layout", "ranks", "--judge", "id", *way]) == 2
        assert "add --missing=--,--na--, or --offered=--na--" in capsys.readouterr().err


def test_options_are_not_taken_for_values(folder, capsys):
    (folder / "t.csv").write_text(DASHES)
    assert main(["describe", "t.csv", "--missing", "--na--"]) == 2
    assert "if it is the value of --missing, write --missing=--na--" in capsys.readouterr().err
    assert main(["describe", "t.csv", "--layout=--"]) == 2
    assert "invalid choice: '--'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (["DNS", "1", "", ""], "--not-offered DNS"),  # once, among few
        (["DNS", "2", "DNS", "DNF"], "--not-offered DNS --offered DNF"),
    ],
)
def test_codes_in_small_columns(folder, capsys, column, told):
    others = ["1,2,3", "2,3,4", "1,3,2", "2,1,3"]
    rows = [f"r{k},{a},{b}\n" for k, (a, b) in enumerate(zip(column, others, strict=True))]
    table = "race,Ann,Bob,Cid,Dora\n" + "".join(rows)
    assert pasted(folder, capsys, table, "--layout", "ranks", "--judge", "race").endswith(told)


@pytest.mark.parametrize("code", ["DNF", "n/a"])
def test_codes_in_two_of_four_columns_make_no_pairs(folder, capsys, code):
    """Two columns of numbers beside two with codes are no games with scores."""
    table = f"race,Ham,Ver,Lec,Nor\nbahrain,2,1,3,{code}\njeddah,1,2,{code},3\nimola,1,2,3,4\n"
    told = pasted(folder, capsys, table)
    assert "--layout ranks" in told and "pairs" not in told and "--columns" not in told


def test_a_column_of_one_code_alone(folder, capsys):
    (folder / "t.csv").write_text("Ann,Bob,Cid\nDNS,1,2\nDNS,2,1\n")
    assert main(["describe", "t.csv", "--layout", "ranks"]) == 2
    error = capsys.readouterr().err
    assert "add --not-offered DNS; --offered DNS if" in error
    assert main(["describe", "t.csv", "--layout", "ranks", "--not-offered", "DNS"]) == 0


def test_codes_of_a_long_table(folder, capsys):
    table = "judge,item,rank\na,x,DNS\na,y,1\nb,x,DNS\nb,y,DNF\nb,z,1\n"
    assert pasted(folder, capsys, table) == "--not-offered DNS --offered DNF"


GAMES = "Reds,2-1,Blues\nBlues,0-0,Greens\nGreens,1-3,Reds\n"


@pytest.mark.parametrize(
    ("table", "options"),
    [
        (GAMES, "--header none --layout pairs --columns 1,3,2"),
        ("one,score,two\n" + GAMES, "--layout pairs --columns one,two,score"),
        ("one;two;sets\nReds;Blues;2:1\nGreens;Reds;1:3\nBlues;Greens;0:0\n", None),
    ],
)
def test_a_score_in_one_column(folder, capsys, table, options):
    told = pasted(folder, capsys, table)
    assert told == (options or "--layout pairs --columns one,two,sets")
    names = told.split()[-1].split(",")
    header = "none" if options and "header" in options else None
    survey = read_survey(folder / "t.csv", "pairs", columns=names, header=header, ties="drop")
    first, above = survey.rankings.items.index("Reds"), shares_above(survey.rankings, [0, 1, 2])
    assert np.delete(above[first], first).tolist() == [1, 1]
    assert survey.rankings.num_rankings == 2


ITEMS_IN_ROWS = "j1,A,1\nj1,B,2\nj1,C,3\nj2,B,1\nj2,A,2\nj2,C,3\n"


@pytest.mark.parametrize(
    ("table", "words", "options"),
    [
        (ITEMS_IN_ROWS, [], "--header none --layout long --judge 1 --item 2 --rank 3"),
        (
            ITEMS_IN_ROWS,
            ["--layout", "long"],
            "--layout long --header none --judge 1 --item 2 --rank 3",
        ),
        ("12,A>B>C\n5,B>A>C\n3,C>A\n", [], "--header none --count 1 --layout cell"),
        ("12: A>B>C\n5: B>A>C\n3: C>A\n", [], "--header none --count 1"),
        ("1 A>B>C\n2 B>A>C\n3 C>A\n", [], "--header none --judge 1"),
        (
            'id,ballot\n1,1>2>none of these\n2,"1,2,3"\n3,"2,1,3"\n',
            ["--layout", "cell"],
            "--layout cell --judge id --separator any",
        ),
        ('r,answer\n1,"[tea, milk]"\n2,"[milk, tea]"\n', [], "--judge r --layout cell"),
    ],
)
def test_lists_in_cells_and_long_tables(folder, capsys, table, words, options):
    assert pasted(folder, capsys, table, *words) == options


@pytest.mark.parametrize(
    ("name", "table", "options"),
    [
        ("t.txt", "(tea, milk)\n(milk, tea)\n(tea, milk)\n", "--layout cell --header none"),
        ("t.csv", "list\ntea then milk\nmilk then tea then rum\n", "--separator ' then '"),
        (
            "t.csv",
            "id;top1;top2;top3;bottom1\na;tea;milk;rum;gin\nb;milk;tea;gin;ale\n",
            "--judge id --layout orders --columns 'top*'",
        ),
        ("t.txt", "12 x tea > milk\n3 x milk > tea\n", "--header none --count 1"),
        (
            "t.csv",
            "country,Total,Ann,Bob,Cid\nx,21,5,4,12\ny,17,1,6,10\nz,9,2,,7\n",
            "--layout ranks --about Total --highest-first --judge country",
        ),
        (
            "t.csv",
            "who,tea,tea_note,milk,milk_note\na,1,nice,2,\nb,2,,1,wow\n",
            "--columns tea,milk --layout ranks",
        ),
        ("t.csv", "10,1,2,3\n5,2,1,3\n3,3,1,2\n", "--header none --count 1 --layout ranks"),
    ],
)
def test_commands_of_odd_tables(folder, capsys, name, table, options):
    assert pasted(folder, capsys, table, name=name) == options


@pytest.mark.parametrize(
    ("table", "options"),
    [
        ("id,Winner,2nd,3rd\n1,a,c,d\n2,b,d,c\n3,a,d,c\n", "--judge id"),
        ("item,J,K,L\ntotal,12,7,3\na,1,2,1\nb,2,1,3\nc,3,3,2\n", "--transpose --layout ranks"),
        (",J,K\n1st,a,b\n2nd,b,a\n3rd,c,c\n", "--transpose"),
        (
            "id,a,b,c\nx,1,2,last\n# day 2\ny,last,1,2\nz,2,1,3\n",
            "--judge id --layout ranks --missing last",
        ),
        ("id,c1,c2\na,2,3\nb,1,4\nc,3,4\nd,2,3\n", "--judge id --layout orders"),
    ],
)
def test_rows_and_names_that_say_something_else(folder, capsys, table, options):
    assert pasted(folder, capsys, table) == options


IDS = "b1,Kiwi,Plum,undervote\nb2,Plum,Kiwi,Lime\nb3,Lime,undervote,undervote\n"
TIE = (
    "# DATA TYPE: soi\n# NUMBER ALTERNATIVES: 3\n# NUMBER VOTERS: 3\n# NUMBER UNIQUE ORDERS: 2\n"
    + "".join(f"# ALTERNATIVE NAME {k}: i{k}\n" for k in (1, 2, 3))
)


@pytest.mark.parametrize(
    ("name", "table", "words", "options"),
    [
        ("t.csv", IDS, ["--layout", "votes"], "--layout votes --header none --judge 1"),
        ("t.csv", IDS, ["--header", "none"], "--header none --judge 1"),
        ("t.csv", f"ballot,c1,c2,c3\n{IDS}", [], "--judge ballot --columns c1,c2,c3"),
        (
            "t.csv",
            "Mayor [Ann],Mayor [Bob],Clerk [Dan],Clerk [Eve]\n1,2,2,1\n2,1,1,2\n1,2,1,2\n",
            ["--layout", "ranks"],
            "--layout ranks --columns 'Mayor [*'",
        ),
        ("t.soi", f"{TIE}2: 1,2\n1: 1,{{2,3}}\n", [], "--ties exact"),
    ],
)
def test_commands_of_elections(folder, capsys, name, table, words, options):
    assert pasted(folder, capsys, table, *words, name=name) == options


@pytest.mark.parametrize("option", ["--ties drop", "--ties order", "--overvote stop"])
def test_other_commands_of_a_tie(folder, capsys, option):
    (folder / "t.soi").write_text(f"{TIE}2: 1,2\n1: 1,{{2,3}}\n")
    assert main(["describe", "t.soi"]) == 2
    told = capsys.readouterr().err
    assert option in told or option == "--ties order"
    assert main(["describe", "t.soi", *option.split()]) == 0
