"""The commands on tables with ties, of pairs, and of items that were not offered to all."""

import csv
import json
import shlex

import pytest
from helpers.command_line import FEW_DRAWS, interrupting_after, run, weights_of_results

from numpyro_rankings.cli import main
from numpyro_rankings.cli.arguments import UserError

TIED = "id,a,b,c,d\n" + "".join(
    f"r{k},{row}\n"
    for k, row in enumerate(["1,2,2,4", "1,2,3,4", "4,3,1,1", "2,1,3,4", ",1,,"] * 4)
)
PAIRS = "user,model_a,model_b,winner\n" + "".join(
    f"u{k % 4},{row}\n"
    for k, row in enumerate(["x,y,model_a", "y,z,model_a", "x,z,tie", "z,w,model_b", "x,w,x"] * 4)
)
RACES = "race,Ann,Bob,Cid,Dora\n" + "1,1,DNF,2,DNS\n2,DNF,1,2,3\n3,1,2,DNS,3\n4,2,1,3,DNS\n"
QUICK = [*FEW_DRAWS, "--no-progress", "--out", "out"]


@pytest.fixture(autouse=True)
def _here(folder):
    for name, text in (("tied.csv", TIED), ("pairs.csv", PAIRS), ("races.csv", RACES)):
        (folder / name).write_text(text)


def assignments():
    """The rows of ``assignments.csv``."""
    with open("out/assignments.csv", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


READ = {
    "tied.csv": ["--layout", "ranks", "--judge", "id"],
    "pairs.csv": ["--columns", "model_a,model_b,winner"],
    "races.csv": "--layout ranks --judge race --offered DNF --not-offered DNS".split(),
}
MODELS = {
    "mallows": "--components 2".split(),
    "beta": "--components 2 --sampler beta --init random".split(),
    "plackett-luce": "--model plackett-luce --components 2".split(),
    "gamma-process": "--model gamma-process".split(),
    "dp-plackett-luce": "--model dp-plackett-luce --max-clusters 64".split(),
}


@pytest.mark.parametrize(
    "model, file",
    [
        ("mallows", "tied.csv"),
        ("dp-plackett-luce", "tied.csv"),
        ("plackett-luce", "pairs.csv"),
        ("mallows", "races.csv"),
        *(
            pytest.param(model, file, marks=pytest.mark.slow)
            for model, file in (
                ("beta", "tied.csv"),
                ("plackett-luce", "tied.csv"),
                ("gamma-process", "tied.csv"),
                ("mallows", "pairs.csv"),
                ("plackett-luce", "races.csv"),
            )
        ),
    ],
)
def test_models_take_them(capsys, plain_page, model, file):
    assert main(["fit", file, *READ[file], *MODELS[model], *QUICK]) == 0
    rows = assignments()
    orders = {row.get("judge", row.get("row")): row["ordering"] for row in rows}
    if file == "tied.csv":
        assert orders["r0"] == "a > b = c > d" and orders["r2"] == "c = d > b > a"
        assert [row["judge"] for row in rows] == [f"r{k}" for k in range(20)]
        assert "8 of 20 judges tie items, which is read as no opinion" in capsys.readouterr().err
    elif file == "pairs.csv":
        assert [row["ordering"] for row in rows[:5]] == [
            "x > y", "y > z", "x = z", "w > z", "x > w"
        ]  # fmt: skip
    else:
        assert next(iter(orders.values())) == "Ann > Cid"


@pytest.mark.usefixtures("usual_signals")
def test_resume(capfd, plain_page, monkeypatch):
    """The same file, read in the same way, goes on; read in another way it does not."""
    command = ["fit", "tied.csv", *READ["tied.csv"], *MODELS["plackett-luce"], *QUICK]
    assert main(command) == 0
    alone = weights_of_results("out")
    again = [*command[:-1], "other"]
    with monkeypatch.context() as patch:
        interrupting_after(1, patch)
        main(again)
    words = shlex.split(capfd.readouterr().err.strip().splitlines()[-1])[1:]
    assert words[-2:] == ["--resume", "other"]
    assert main([*words, "--ties", "order"]) == 2
    assert "other" in capfd.readouterr().err
    assert main(words) == 0
    assert (weights_of_results("other") == alone).all()


def test_what_tempered_chains_refuse(capsys):
    tempered = ["--components", "2", "--sampler", "tempered"]
    for file, more in (("tied.csv", tempered), ("races.csv", tempered),
                       ("tied.csv", ["--components", "auto"])):  # fmt: skip
        assert main(["fit", file, *READ[file], *more, *QUICK]) == 2
        message = capsys.readouterr().err.splitlines()[-1]
        assert "is for rankings alone: leave it out" in message
        assert ("--ties drop" in message) == (file == "tied.csv")
    assert main(["fit", "races.csv", *READ["races.csv"], "--model", "gamma-process", *QUICK]) == 2
    assert "only --model mallows or plackett-luce can use them" in capsys.readouterr().err


def test_mallows_takes_items_that_were_not_offered(capsys, plain_page):
    read = "--layout ranks --judge race --missing DNF,DNS --unranked not-offered".split()
    assert main(["fit", "races.csv", *read, "--components", "1", *QUICK]) == 0
    assert "the rankings are read as partial orders" in capsys.readouterr().err


def described(capsys, *arguments):
    """The lines that the command prints, with single blanks, notes first."""
    assert main(["describe", *arguments]) == 0
    captured = capsys.readouterr()
    return [" ".join(x.split()) for x in (captured.err + captured.out).splitlines()]


def test_describe_counts_ties(capsys):
    lines = described(capsys, "tied.csv", *READ["tied.csv"])
    for line in (
        "20 partial orders of 4 items, 5 of them different",
        "8 have ties (40%)",
        "items in the tie: number of ties",
        "2: 8",
        "Which model: all, mallows, plackett-luce, gamma-process, dp-plackett-luce",
    ):
        assert line in lines, line


def test_describe_counts_pairs_and_cycles(capsys, folder):
    own = ["--columns", "model_a,model_b,winner"]
    lines = described(capsys, "pairs.csv", *own)
    assert "20 partial orders of 4 items, 5 of them different" in lines
    said = "4 of 20 comparisons are ties, which are read as no opinion: use --ties drop to leave"
    assert f"{said} them out" in lines and "4 have ties (20%)" in lines
    # x > y > z and x > w > z: y and w were never compared, and nobody ties them
    lines = described(capsys, "pairs.csv", "--judge", "user", "--ties", "drop")
    assert "4 of 20 comparisons are ties, and are left out" in lines
    assert "4 leave the order of some items open (100%)" in lines
    assert not any("have ties" in line for line in lines)
    cycle = "who,winner,loser\nu1,a,b\nu1,b,c\nu1,c,a\nu2,d,e\nu3,d,e\n"
    (folder / "cycle.csv").write_text(cycle)
    lines = described(capsys, "cycle.csv", "--judge", "who")
    assert "comparisons: 2 by 2 judges" in lines
    said = "another: a > b > c > a; 1 of 3 judges contradicts their own answers, and is left out"
    assert any(line.endswith(said) for line in lines)
    fit_says = (
        "fit, compare and assign refuse what is left out here. Add --cycles drop to leave it out"
    )
    both = f"{fit_says}, or --cycles mistakes to learn how probable a mistake is"
    assert both in lines
    assert main(["fit", "cycle.csv", "--judge", "who"]) == 2
    message = capsys.readouterr().err
    assert "judge 'u1': the preferences contradict one another: a > b > c > a" in message
    assert message.strip().endswith("fit cycle.csv --judge who --cycles drop")
    (folder / "self.csv").write_text("winner,loser\na,b\nb,b\nb,c\n")
    lines = described(capsys, "self.csv")
    assert "1 line with an item against itself left out: self.csv:3" in lines
    assert fit_says in lines and both not in lines
    assert main(["fit", "self.csv"]) == 2
    assert capsys.readouterr().err.strip().endswith("fit self.csv --cycles drop")
    lines = described(capsys, "cycle.csv")
    apart = "no judge compares items of different sets, which are {a, b and c} and {d and e}: how"
    assert any(line.removeprefix("note: ").startswith(apart) for line in lines)


MISTAKES = ["--judge", "user", "--cycles", "mistakes"]


@pytest.fixture
def with_cycles(folder):
    """A table in which the judge u0 contradicts herself."""
    (folder / "pairs.csv").write_text(PAIRS + "u0,y,x,model_a\nu0,z,y,z\n")


@pytest.mark.usefixtures("usual_signals")
@pytest.mark.parametrize("model", ["plackett-luce", pytest.param("beta", marks=pytest.mark.slow)])
def test_judges_who_make_mistakes(with_cycles, capfd, plain_page, monkeypatch, model):
    """The command, its tables, and a run that is resumed; not with another reading of the file."""
    command = ["fit", "pairs.csv", *MISTAKES, *MODELS[model], *QUICK]
    assert main(command) == 0
    captured = capfd.readouterr()
    assert "of 4 judges contradict" in captured.err
    assert "of the comparisons go against the judge's own order" in " ".join(captured.out.split())
    assert [row["judge"] for row in assignments()] == ["u0", "u1", "u2", "u3"]
    with open("out/clusters.csv", encoding="utf-8") as stream:
        columns = ["mistake_probability", "mistake_probability_low", "mistake_probability_high"]
        row = next(csv.DictReader(stream))
    values = [float(row[name]) for name in columns]
    assert 0 < values[1] <= values[0] <= values[2] < 0.5
    with monkeypatch.context() as patch:
        interrupting_after(1, patch)
        main([*command[:-1], "other"])
    words = shlex.split(capfd.readouterr().err.strip().splitlines()[-1])[1:]
    assert words[-2:] == ["--resume", "other"]
    otherwise = ["drop" if word == "mistakes" else word for word in words]
    assert main(otherwise) == 2 and "other" in capfd.readouterr().err
    assert main(words) == 0


@pytest.mark.parametrize(
    "command, said",
    [
        (
            ["fit", "--model", "gamma-process"],
            "--cycles mistakes goes with --model mallows or plackett-luce, not with gamma-process",
        ),
        (
            ["fit", "--components", "2", "--sampler", "tempered"],
            "--sampler tempered is for rankings alone: leave it out with --cycles mistakes, or",
        ),
        (
            ["fit", "--components", "auto"],
            "--components auto is for rankings alone: leave it out with --cycles mistakes, or",
        ),
        (
            ["fit", "--components", "2", "--blocs", "2"],
            "--blocs cannot be used with --cycles mistakes, because blocs need the probability",
        ),
        (["compare", "--evidence"], "--evidence is for rankings alone: leave it out with"),
    ],
)
def test_what_does_not_go_with_mistakes(with_cycles, capsys, command, said):
    name, *options = command
    assert main([name, "pairs.csv", *MISTAKES, *options, "--out", "out"]) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_models_that_compare_leaves_out(folder, capsys, monkeypatch):
    """Those whose sums over orders are too large, by default with a note, by name with a remedy."""
    games = "".join(f"u{k % 3},i{k},i{k + 3}\n" for k in range(17))
    (folder / "many.csv").write_text("user,winner,loser\n" + games)
    compared = []

    def compare_models(options, rankings, models):
        compared.extend(models)
        raise UserError("stop here")

    monkeypatch.setattr("numpyro_rankings.cli.compare._compare_models", compare_models)
    command = ["compare", "many.csv", "--judge", "user"]
    assert main(command) == 2
    notes = capsys.readouterr().err
    said = "Mallows models are left out: the density of a judge sums over the orders of at most 16"
    assert said in notes and "there are 20 in row 1" in notes
    assert len(compared) == 4 and all(name.startswith("Plackett–Luce") for name in compared)
    assert main([*command, "--models", "mallows"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"no model can be compared: {said}" in last
    assert last.endswith("; use --models plackett-luce") and len(compared) == 4


def test_describe_counts_mistakes(with_cycles, capsys, folder):
    lines = described(capsys, "pairs.csv", *MISTAKES, "--plot", "page.html")
    assert "4 judges of 4 items, 2 of them different" in lines
    said = "1 of 4 judges contradicts their own answers; any comparison"
    assert any(x.startswith(said) for x in lines)
    models = "Which model: --model mallows or plackett-luce only, because comparisons may be"
    assert any(x.startswith(models) for x in lines)
    assert "1 of 4 judges contradicts" in (folder / "page.html").read_text(encoding="utf-8")


def test_shares_of_wins_leave_ties_out(capsys, folder):
    """Of four games a wins two, b one, and one is a tie: 67%, not 50%."""
    games = "home,away,home_goals,away_goals\na,b,2,1\nb,a,0,3\na,b,0,1\nb,a,1,1\n"
    (folder / "games.csv").write_text(games)
    lines = described(capsys, "games.csv", "--plot", "games.html")
    said = "above that of the column, among those who order the two, without ties, in %"
    start = lines.index(f"share of the judges who put the item of the row {said}")
    assert [line.split() for line in lines[start + 2 : start + 4]] == [
        ["1", "a", "–", "67"],
        ["2", "b", "33", "–"],
    ]
    page = " ".join((folder / "games.html").read_text(encoding="utf-8").split())
    assert "among those who order the two, without ties." in page


def test_describe_counts_what_was_offered(capsys):
    lines = described(capsys, "races.csv", *READ["races.csv"])
    assert "judges chose among 3 to 4 items each" in lines
    assert "2 items in all were offered to a judge and not ranked" in lines
    assert lines[-1].startswith("Which model: --model mallows or plackett-luce only")


def test_the_page_of_describe(capsys, folder):
    assert run("describe", "tied.csv", *READ["tied.csv"], "--plot", "page.html") == 0
    assert "8 judges tie items" in (folder / "page.html").read_text(encoding="utf-8")


def test_several_files_with_ties(folder, plain_page):
    (folder / "data").mkdir()
    for name in ("one", "two"):
        (folder / "data" / f"{name}.csv").write_text(TIED)
    assert main(["fit", "data", *READ["tied.csv"], *MODELS["plackett-luce"], *QUICK]) == 0
    files = json.loads((folder / "out" / "fits.json").read_text())["files"]
    assert {one["ended"] for one in files} == {"length"}
