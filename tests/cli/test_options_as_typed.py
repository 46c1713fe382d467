"""Options as people type them, and what is shown on a narrow terminal."""

import io
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from numpyro_rankings.cli import main
from numpyro_rankings.cli.arguments import for_screen
from numpyro_rankings.cli.options import Goals, Length, Plan
from numpyro_rankings.cli.progress import Progress


@pytest.mark.parametrize(
    "words, meant",
    [
        ("fit x.csv --groups 3", "--components or --blocs or --max-clusters"),
        ("fit --clusters 4", "--components or --blocs or --max-clusters"),
        ("compare --groups 3", "--components"),
        ("cluster x.csv --groups 3", "--max-clusters"),
        ("fit x.csv --output r", "--out"),
        ("describe x.csv --output r.html", "--plot"),
        ("fit x.csv --modle mallows", "--model"),
        ("describe x.csv --juge=id", "--judge"),
        ("describe x.csv --tied drop", "--ties"),
        ("cluster x.csv --famly gaussian", "--family"),  # before that --family is missing
        ("compare --sed 1", "--seed"),
        ("fit x.csv --n-clusters 3", "--components or --blocs or --max-clusters"),
        ("fit x.csv --num-clusters 3", "--components or --blocs or --max-clusters"),
        ("cluster x.csv --num_components 3", "--max-clusters"),
        ("compare x.csv --samples 100", "--sample?"),
        # of another command, and not --gaps, which is alike
        ("describe x.csv --groups 3", "--components of numpyro-rankings fit?"),
        ("describe x.csv --components 3", "--components of numpyro-rankings fit?"),
        ("assign r x.csv --samples 100", "--draws of numpyro-rankings fit?"),
        ("describe x.csv --out x.html", "--plot?"),
    ],
)
def test_did_you_mean(words, meant, capsys):
    assert main(words.split()) == 2
    message = capsys.readouterr().err
    assert "unrecognized arguments: --" in message
    assert f"did you mean {meant}" in message


@pytest.mark.parametrize(
    "words, meant", [("fti x.csv", "fit"), ("fit --model plackettluce", "plackett-luce")]
)
def test_did_you_mean_of_other_words(words, meant, capsys):
    assert main(words.split()) == 2
    assert f"did you mean {meant}" in capsys.readouterr().err


def test_nothing_alike(capsys):
    assert main("fit --zzzzz 3".split()) == 2
    message = capsys.readouterr().err
    assert "unrecognized arguments: --zzzzz (see" in message and "did you mean" not in message


def test_top(tmp_path, capsys):
    (tmp_path / "x.csv").write_text("a,b,c\n1,2,3\n3,1,2\n")
    assert main(["describe", str(tmp_path / "x.csv"), "--layout", "ranks", "--top", "2"]) == 0
    shown = capsys.readouterr()
    assert "--top 2: 2 lists of 2 had more items" in shown.err
    assert "\n  2: 2\n" in shown.out


@pytest.mark.parametrize(
    "line, expected",
    [
        ("numpyro-rankings de", ["describe"]),
        ("numpyro-rankings fit --over", ["--overvote"]),
        ("numpyro-rankings describe --layout ", ["ranks", "orders", "long"]),
    ],
)
def test_completion(tmp_path, line, expected):
    pytest.importorskip("argcomplete")
    shown = tmp_path / "shown"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(shown),
        "_ARGCOMPLETE_IFS": "\n",
    }
    asked |= {"COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9"}
    subprocess.run(
        [sys.executable, "-m", "numpyro_rankings"], env={**os.environ, **asked}, timeout=120
    )
    words = [word.strip() for word in shown.read_text().split("\n")]
    assert words[: len(expected)] == expected


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("width", [40, 80])
def test_notes_break_between_words(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    text = "numpyro-rankings: note: " + " ".join(f"word{k}-{k}" * (1 + k % 3) for k in range(40))
    shown = for_screen(text, Terminal())
    assert max(map(len, shown.split("\n"))) <= width
    assert re.sub(r"\n +", " ", shown) == text
    assert for_screen(text, io.StringIO()) == text
    long = "note: " + "x" * 100  # as a path, which can still be copied
    assert "x" * 100 in for_screen(long, Terminal())


@pytest.mark.parametrize("width", [30, 80, 200])
@pytest.mark.parametrize("num_chains", [4, 24])
def test_the_line_of_progress_fits(monkeypatch, width, num_chains):
    monkeypatch.setenv("COLUMNS", str(width))
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    check = SimpleNamespace(rhat=1.729, ess=1234.0)
    run = SimpleNamespace(
        num_sweeps=12_345,
        num_draws=12_345,
        num_chains=num_chains,
        num_divergent=None,
        seconds=60.0,
        num_clusters=range(10, 10 + num_chains),
        last_check=check,
        check_if_due=lambda: None,
    )
    Progress(Plan(num_chains, 0, None, Goals()), is_shown=True).show(run)
    line = terminal.getvalue().split("\r")[1].rstrip()
    assert len(line) < width
    assert line.startswith("12,345 sweeps, ")
    if width == 200:
        assert f"/{9 + num_chains}, R-hat 1.729, ESS 1,234" in line
    if width == 80:
        clusters = "10/11/12/13" if num_chains == 4 else "10 to 33"
        assert f"clusters {clusters}, R-hat 1.729, ESS 1,234, about " in line


@pytest.mark.parametrize(
    ("until", "left"),
    [
        (Goals(minutes=10), "80 s"),  # five times the 20 seconds of the chains
        (Goals(minutes=2), "70 s"),  # of which 50 are over
        (Length(100, 300), "30 s"),
    ],
)
def test_the_time_that_is_left(clock, until, left):
    """Of the time, 30 seconds went by before the chains."""
    progress = Progress(Plan(2, 0, None, until), is_shown=False, began=clock.seconds - 30)
    clock.step(20)
    check = SimpleNamespace(rhat=1.05, ess=200.0)
    run = SimpleNamespace(last_check=check, num_sweeps=100, seconds=10.0)
    assert progress.state(run) == f"R-hat 1.050, ESS 200, about {left} left"
    assert progress.minutes() == pytest.approx(50 / 60)


def test_a_line_every_ten_seconds_where_there_is_no_terminal(monkeypatch, clock):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    monkeypatch.setattr(Progress, "_describe", lambda *_: "how far")
    run = SimpleNamespace(check_if_due=lambda: None)
    progress, lines = Progress(Plan(2, 0, None, Goals()), is_shown=True), []
    for seconds in (0, 9.5, 1, 9.5, 1):
        clock.step(seconds)
        progress.show(run)
        lines.append(sys.stderr.getvalue().count("numpyro-rankings: how far\n"))
    assert lines == [0, 0, 1, 1, 2]


def test_spans_of_one_number(tmp_path, capsys):
    path = tmp_path / "x.csv"
    path.write_text("a,b,c,d,age\n1,2,3,,30\n,1,2,3,30\n2,1,,3,30\n")
    options = ["--layout", "ranks", "--unranked", "not-offered", "--about", "age"]
    assert main(["describe", str(path), *options]) == 0
    shown = capsys.readouterr().out
    assert "judges chose among 3 items each" in shown
    path.write_text(path.read_text().replace("2,1,,3,30", "2,1,,,40"))
    assert main(["describe", str(path), *options]) == 0
    shown = capsys.readouterr().out
    assert "judges chose among 2 to 3 items each" in shown
