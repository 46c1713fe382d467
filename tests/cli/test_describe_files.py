"""What ``describe`` says of duplicates, of models, and of PrefLib files of all kinds."""

import os

import pandas as pd
import pytest

from numpyro_rankings.cli import main
from numpyro_rankings.cli.models import MODELS

NAMES = "".join(f"# ALTERNATIVE NAME {k}: {x}\n" for k, x in enumerate("ABCD", start=1))
TOI = f"""\
# DATA TYPE: toi
# NUMBER ALTERNATIVES: 4
# NUMBER VOTERS: 20
# NUMBER UNIQUE ORDERS: 4
{NAMES}\
11: 1,{{2,3}},4
6: 4
2: {{2,1}},3
1: {{1,2}}
"""
CAT = f"""\
# DATA TYPE: cat
# NUMBER ALTERNATIVES: 4
# NUMBER VOTERS: 12
# NUMBER UNIQUE PREFERENCES: 4
# NUMBER CATEGORIES: 3
# CATEGORY NAME 1: Yes
# CATEGORY NAME 2: No
# CATEGORY NAME 3: Perhaps
{NAMES}\
6: 1,{{2,3,4}},{{}}
3: {{}},{{1,2,3,4}},{{}}
2: {{1,3}},{{2,4}},{{}}
1: 3,4,{{}}
"""
WMD = f"""\
# DATA TYPE: wmd
# NUMBER ALTERNATIVES: 4
# NUMBER EDGES: 5
{NAMES}\
1,2,1.0
1,3,0.5
2,1,-2
3,3,1
2,3,1
"""


@pytest.fixture(autouse=True)
def _here(tmp_path):
    for name, text in (("x.toi", TOI), ("x.cat", CAT), ("x.wmd", WMD)):
        (tmp_path / name).write_text(text)


def described(capsys, *arguments):
    """The lines that the command prints, with single blanks."""
    assert main(["describe", *arguments]) == 0
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def in_order(lines, expected):
    """Whether these lines are there, in this order."""
    rest = iter(lines)
    missing = next((line for line in expected if line not in rest), None)
    assert missing is None, missing


def test_orders_with_ties(capsys):
    lines = described(capsys, "x.toi")
    in_order(
        lines,
        [
            "20 partial orders of 4 items, 4 of them different",
            "19 have the same list as another (95%), the most frequent one 11 times",
            "11 rank all items (55%)",
            "1: 6, 2: 1, 3: 2, 4: 11",
            "14 have ties (70%)",
            "items in the tie: number of ties",
            "2: 14",
            "item ranked by first mean rank if ranked",
            # tied items have the mean of their ranks
            "A 14 70% 14 70% 1.11",
            "D 17 85% 6 30% 2.94",
            "B 14 70% 3 15% 2.29",
            "C 13 65% 0 0% 2.58",
            # A and D: 14 to 6; A and B: 11 to 0, where 3 tie them and 6 rank neither
            "1 A – 70 100 100",
            "2 D 30 – 30 32",
            "3 B 0 70 – 100",
            "4 C 0 68 0 –",
            "What to check:",
            "14 of 20 judges tie items, which is read as no opinion between these: use --ties drop "
            "to leave out the judges, or --ties order to put tied items in a random order, or "
            "--overvote stop to end a list before its first tie",
            f"Which model: all, {', '.join(MODELS)}",
        ],
    )


SETS_APART = "no judge lists items of more than one of the sets {A and C} and {B and D}"


@pytest.mark.parametrize("kind", ["soi", "toi"])
def test_items_that_are_never_compared(capsys, tmp_path, kind):
    """Items of a list are compared with one another, tied or not."""
    text = TOI.replace("1,{2,3},4", "1,3").replace("{2,1},3", "3,1").replace("{1,2}", "{2,4}")
    if kind == "soi":
        text = text.replace("toi", "soi").replace("{2,4}", "2,4")
    (tmp_path / f"x.{kind}").write_text(text)
    lines = described(capsys, f"x.{kind}")
    assert f"{SETS_APART}: were all items offered to all?" in lines
    assert ("1 has ties (5%)" in lines) == (kind == "toi")
    (tmp_path / f"x.{kind}").write_text(text.replace("6: 4", "6: 4,1"))
    assert not any(line.startswith("no judge lists") for line in described(capsys, f"x.{kind}"))


def test_names_that_are_words_of_ballots(capsys, tmp_path):
    names = TOI.replace("NAME 3: C", "NAME 3: Overvote").replace("NAME 4: D", "NAME 4: skipped")
    (tmp_path / "x.toi").write_text(names)
    assert (
        "these items may say that a rank is blank or has several names: 'Overvote', 'skipped'"
    ) in described(capsys, "x.toi")


def test_ties_of_the_last_items(capsys, tmp_path):
    text = TOI.replace("toi", "toc").replace("1,{2,3},4", "1,{2,3,4}").replace("6: 4", "6: 4,3,2,1")
    text = text.replace("{2,1},3", "2,3,{1,4}").replace("1: {1,2}", "1: 3,{1,2,4}")
    (tmp_path / "x.toc").write_text(text)
    lines = described(capsys, "x.toc")
    assert any(line.startswith("14 of these rank all items and tie only the") for line in lines)
    # without a tie it is described as a file of strict orders
    header = TOI.split("11:")[0].replace("toi", "toc").replace("ORDERS: 4", "ORDERS: 1")
    (tmp_path / "x.toc").write_text(f"{header}20: 1,2,3,4\n")
    assert main(["describe", "x.toc"]) == 0
    shown = capsys.readouterr()
    assert "no order of the .toc file has a tie: it is read as strict orders" in shown.err
    assert "Which model: all" in shown.out


def test_categories(capsys):
    lines = described(capsys, "x.cat")
    in_order(
        lines,
        [
            "12 judges put 4 items into 3 categories, in 4 different ways",
            "11 have the same answer as another (92%), the most frequent one 6 times",
            "Yes 0 0.9 2",
            "No 1 2.9 4",
            "Perhaps 0 0.0 0",
            "item Yes No Perhaps in none",
            "A 8 67% 3 25% 0 0% 1 8%",
            "C 3 25% 9 75% 0 0% 0 0%",
            "B 0 0% 11 92% 0 0% 1 8%",
            "D 0 0% 12 100% 0 0% 0 0%",
            "nobody puts an item into 'Perhaps'",
            "judges who put all items into the same category, or into none: 3",
        ],
    )
    assert lines[-1].startswith(f"Which model: all, {', '.join(MODELS)}; items in a category are")


def test_matching_graph(capsys):
    lines = described(capsys, "x.wmd")
    in_order(
        lines,
        [
            "a directed graph of 4 nodes and 5 edges",
            "1 pair of nodes have edges in both directions",
            "weights: -2 to 1, median 1",
            "-2: 1, 0.5: 1, 1: 3",
            "node edges out weight edges in weight",
            "A 2 1.5 1 -2",
            "B 2 -1 1 1",
            "C 1 1 3 2.5",
            "D 0 0 0 0",
            "edges from a node to itself: 1 (C)",
            "nodes without an edge: 1 (D)",
            "negative weights: 1",
        ],
    )
    assert lines[-1].startswith("Which model: none, because weights of a graph are no orders")


def test_a_graph_without_edges(capsys, tmp_path):
    (tmp_path / "none.wmd").write_text(WMD.split("1,2,1.0")[0].replace("EDGES: 5", "EDGES: 0"))
    assert "a directed graph of 4 nodes and 0 edges" in described(capsys, "none.wmd")


def test_no_model_is_fitted(capsys):
    before, name = sorted(os.listdir()), "x.wmd"
    for command in ("fit", "compare"):
        assert main([command, name, "--out", "out"]) == 2
        message = capsys.readouterr().err.strip()
        assert message.startswith(f"numpyro-rankings: error: {name}:")
        assert "describe" in message and "\n" not in message
    assert sorted(os.listdir()) == before
    assert main(["describe", name, "--layout", "ranks"]) == 2
    assert "layout does not go with a PrefLib file" in capsys.readouterr().err
    assert main(["describe", f"no{name}"]) == 2
    assert "no such file" in capsys.readouterr().err


def test_which_model(capsys, tmp_path):
    (tmp_path / "some.csv").write_text("x,y,z\n1,2,3\n2,1,\n1,,2\n")
    read = ["some.csv", "--layout", "ranks"]
    assert described(capsys, *read)[-1] == f"Which model: all, {', '.join(MODELS)}"
    last = described(capsys, *read, "--unranked", "not-offered")[-1]
    assert last.startswith("Which model: --model mallows or plackett-luce only, because some items")
    (tmp_path / "same.csv").write_text("x,y,z\n1,,\n1,,\n")
    last = described(capsys, "same.csv", "--layout", "ranks")[-1]
    assert last.startswith("Which model: mallows, plackett-luce; the others need two items")
    # as said
    (tmp_path / "out").mkdir()
    refused = [*read, "--unranked", "not-offered"], ["same.csv", "--layout", "ranks"]
    for arguments in refused:
        assert main(["fit", *arguments, "--model", "gamma-process", "--out", "new"]) == 2
    assert not (tmp_path / "new").exists()


def test_odd_judges_are_named(capsys, tmp_path):
    rows = ["a,1,,", "b,1,2,3", "c,3,2,1", "d,,,1", "e,2,1,3"]
    (tmp_path / "some.csv").write_text("id,x,y,z\n" + "\n".join(rows) + "\n")
    odd = "2 judges of 5 rank one item only, from which little can be learned about groups"
    read = ["some.csv", "--layout", "ranks"]
    assert f"{odd}: a, d" in described(capsys, *read, "--judge", "id")
    assert odd in described(capsys, *read, "--about", "id")
    (tmp_path / "one.csv").write_text("id,x,y,z\n" + "\n".join(rows[:3]) + "\n")
    odd = "1 judge of 3 ranks one item only, from which little can be learned about groups: a"
    assert odd in described(capsys, "one.csv", *read[1:], "--judge", "id")


def test_duplicates(capsys, tmp_path):
    lists = ["1,2,3,4", "2,1,3,4", "4,3,2,1", "3,1,2,4", "1,3,2,4", "4,1,2,3"] * 2
    twice = "the second half of the judges repeats the lists of the first half, in its order"
    rows = [f"r{k},{row}\n" for k, row in enumerate([*lists, *lists])]
    (tmp_path / "twice.csv").write_text("id,w,x,y,z\n" + "".join(rows))
    read = ["--layout", "ranks", "--judge", "id"]
    lines = described(capsys, "twice.csv", *read)
    assert "24 have the same list as another (100%), the most frequent one 4 times" in lines
    assert twice not in lines  # six different lists in twelve are too few to tell
    many = [f"{a},{b},{c},{d}" for a in "1234" for b in "1234" for c in "1234" for d in "1234"]
    many = [row for row in many if len(set(row)) == 5]
    for second, is_told in ((many, True), (many[::-1], False)):
        rows = [f"r{k},{row}\n" for k, row in enumerate([*many, *second])]
        (tmp_path / "twice.csv").write_text("id,w,x,y,z\n" + "".join(rows))
        assert (twice in described(capsys, "twice.csv", *read)) == is_told
    rows = [row.replace("r1,", "Ann B,").replace("r2,", "ann  b,") for row in rows]
    (tmp_path / "twice.csv").write_text("id,w,x,y,z\n" + "".join(rows))
    lines = described(capsys, "twice.csv", *read)
    assert "these names may mean the same judge: 'Ann B' and 'ann b'" in lines


@pytest.mark.parametrize("weight", ["1.37", "0,25", ".5", "2.5e-1"])
def test_weights_that_are_no_counts(weight, capsys, tmp_path):
    (tmp_path / "survey.csv").write_text(f"w;x;y;z\n1;1;2;3\n{weight};2;1;3\n")
    read = ["survey.csv", "--layout", "ranks"]
    for command in ("describe", "fit", "compare"):
        assert main([command, *read, "--count", "w"]) == 2
        message = capsys.readouterr().err.strip()
        assert message == (
            f"numpyro-rankings: error: survey.csv:3: column 'w': expected a positive whole number, "
            f"got '{weight}'; survey weights are not counts: name the column in --weight instead"
        )
    assert any(line.startswith("w: ") for line in described(capsys, *read, "--about", "w"))
    value = float(weight.replace(",", "."))
    effective = (1 + value) ** 2 / (1 + value**2)
    said = f"weighted, 2 judges count as {effective:.0f} (design effect {2 / effective:.2f}); below"
    lines = described(capsys, *read, "--weight", "w")
    assert any(line.startswith(said) for line in lines), lines
    for other in ("1,000", "x", "-1", "0"):  # which say something else
        (tmp_path / "survey.csv").write_text(f"w;x;y;z\n1;1;2;3\n{other};2;1;3\n")
        assert main(["describe", *read, "--count", "w"]) == 2
        assert "weights" not in capsys.readouterr().err
    (tmp_path / "own.csv").write_text("# item A: Ann\n# item B: Bob\ncount,ordering\n1.37,A>B\n")
    assert main(["describe", "own.csv"]) == 2
    assert "own.csv:4: count '1.37' is not a positive whole number; survey weights are not" in (
        capsys.readouterr().err
    )


LEAGUES = "race,A,B,C,D,E\n1,1,2,3,,\n2,2,1,3,,\n3,,,,1,2\n4,,,,2,1\n5,1,3,2,,\n"
OFFERED = """# item A: A
# item B: B
# item C: C
# item D: D
count,ordering,offered
2,A>B,A B
3,D,C D
"""
RACES = ["--layout", "ranks", "--judge", "race"]
APART = "no judge compares items of different sets, which are {A, B and C} and {D and E}: how one"


@pytest.mark.parametrize(
    ("name", "text", "options", "expected"),
    [
        ("x.csv", LEAGUES, [*RACES, "--unranked", "not-offered"], APART),
        ("x.csv", LEAGUES, RACES, "no judge lists items of more than one of the"),
        ("x.csv", OFFERED, [], "no judge compares items of different sets, which are {A and B}"),
    ],
)
def test_leagues_that_never_meet(capsys, tmp_path, name, text, options, expected):
    (tmp_path / name).write_text(text)
    assert main(["describe", name, *options, "--plot", "page.html"]) == 0
    shown = capsys.readouterr()
    assert f"  {expected}" in shown.out and "Nothing odd" not in shown.out
    assert f"note: {expected}" in shown.err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"<li>{expected}" in page and "Nothing odd" not in page


CLEAN = "who,Ann,Bob,Cid,Dee\nx,1,2,3,4\ny,2,1,3,4\nz,3,1,2,4\n"


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (CLEAN, [], None),
        (CLEAN.replace("2,1,3,4", "3,1,,"), ["--gaps", "close"], "gaps were closed in 1 list"),
        (f"{CLEAN}w,,,,\n", [], "1 judge ranks nothing and is left out:"),
        (CLEAN.replace("2,1,3,4", "2,1,3,-9"), ["--missing", "-9"], "read as not ranked"),
    ],
)
def test_nothing_odd_is_said_only_if_there_is_nothing(capsys, tmp_path, text, options, said):
    """Not where somebody was left out, gaps were closed, or codes are not ranks."""
    (tmp_path / "x.csv").write_text(text)
    arguments = ["x.csv", "--layout", "ranks", "--judge", "who", *options]
    lines = described(capsys, *arguments)
    assert ("Nothing odd was found." in lines) == (said is None)
    assert ("What to check:" in lines) == (said is not None)
    assert said is None or any(said in line for line in lines)


@pytest.mark.parametrize(
    ("text", "options", "question", "answer", "first"),
    [
        (
            "2,1,3\n1,2,3\n3,2,1\n",
            "--layout orders",
            "--header none",
            "--header none",
            "3 rankings",
        ),
        (
            "id,A,B,C\nr1,1,,3\nr2,1,2,3\n",
            "--layout ranks --judge id",
            "--gaps fill puts it",
            "--gaps fill",
            "2 rankings of 3 items, 1 of them",
        ),
        (
            "item,J1,J2\na,1,2\nb,2,1\nc,3,3\n",
            "--layout ranks --judge item",
            "add --transpose; --no-transpose",
            "--transpose",
            "2 rankings of 3 items",
        ),
        (
            "loser,winner\na,b\nc,b\n",
            "--layout orders",
            "add --layout pairs",
            "--layout pairs",
            "2 partial orders of 3 items",
        ),
        (
            "1st,2nd\nAnn,##\nBob,Ann\n",
            "",
            "add --missing '##'",
            "--missing ##",
            "2 rankings of 2 items",
        ),
    ],
)
def test_the_option_of_a_question_answers_it(
    tmp_path, capsys, text, options, question, answer, first
):
    (tmp_path / "t.csv").write_text(text)
    assert main(["describe", "t.csv", *options.split()]) == 2
    assert question in capsys.readouterr().err
    assert described(capsys, "t.csv", *options.split(), *answer.split())[0].startswith(first)


def test_names_do_not_command_the_terminal(folder, capsys):
    """Nor do they begin a line of their own, where the file can have one in a name."""
    names = ["Ann\x1b[31m", "Bob\x9b2J", "Cid\nnote: all is good"]
    file = folder / "a\x1b[1m.parquet"
    pd.DataFrame([[1, 2, 3], [2, 1, 3], [3, 1, 2]], columns=names).to_parquet(file)
    (folder / "b.toi").write_text(TOI.replace(": B", f": {names[0]}"))
    for arguments in ([file, "--layout", "ranks"], [f"{file}x"], [folder / "b.toi"]):
        main(["describe", *map(str, arguments)])
        shown = "".join(capsys.readouterr())
        assert "\\u001b[" in shown and not {"\x1b", "\x9b"} & {*shown}
        assert "\nnote: all" not in shown


@pytest.mark.parametrize(("line", "are_named"), [("b,b", False), ("b,a", True)])
def test_mistakes_are_named_where_judges_contradict_themselves(tmp_path, capsys, line, are_named):
    path = tmp_path / "pairs.csv"
    path.write_text(f"judge,winner,loser\nAnn,a,b\nAnn,{line}\nBob,b,a\nBob,b,b\n")
    lines = described(capsys, str(path), "--judge", "judge")
    says = [x for x in lines if x.startswith("fit, compare and assign refuse what is left out")]
    assert len(says) == 1 and ("--cycles mistakes" in says[0]) == are_named
