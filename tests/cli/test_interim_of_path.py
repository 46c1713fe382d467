"""The page of ``fit`` while numbers of components are tried."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.command_line import run

from numpyro_rankings.cli import fit, interim
from numpyro_rankings.cli.interim import GroupsSoFar, InterimPage
from numpyro_rankings.cli.options import Goals, Plan
from numpyro_rankings.cli.progress import Progress
from numpyro_rankings.report import group_path as module

pytestmark = pytest.mark.usefixtures("usual_signals", "one_program", "small", "plain_page")

PLAN = Plan(4, 0, None, Goals())
MARK = '<meta name="numpyro-rankings" content="not final">'
AUTO = ["fit", "small.soi", "--model", "plackett-luce", "--components", "auto", "--max-clusters"]


def ladders(num_tried):
    """Those of so many numbers of components."""
    return {
        k: SimpleNamespace(num_warmup=200, num_samples=50, k=k) for k in range(1, 1 + num_tried)
    }


@pytest.fixture
def evidence(monkeypatch):
    """Two components are the most probable."""

    def log_evidence(mcmc):
        return SimpleNamespace(value=-abs(mcmc.k - 2.0))

    monkeypatch.setattr("numpyro_rankings.posterior.ladders.log_evidence", log_evidence)


@pytest.fixture
def page(monkeypatch, clock, evidence):
    """A page without groups, with the times and sources of those that were written."""
    written = []
    monkeypatch.setattr(InterimPage, "_write", lambda self, page: written.append(page))
    monkeypatch.setattr("numpyro_rankings.report.page.page_of", lambda *_: "")

    def find(source, status, seconds):
        shown.append((clock.seconds - start, source, status, seconds))
        return GroupsSoFar({}, ["group 1: 60%", "group 2: 40%"])

    shown, start = [], clock.seconds
    made = InterimPage(Path("out"), find)
    return SimpleNamespace(page=made, shown=shown, written=written)


def test_when_it_is_written(page, clock, capsys):
    """From the second number on, and then after 2, 4, … minutes."""
    progress, start = Progress(PLAN, is_shown=True), clock.seconds
    for second, num_tried in ((30, 1), (40, 2), (50, 3), (119, 4), (121, 5), (200, 6), (241, 7)):
        clock.step(second - (clock.seconds - start))
        page.page.show_tried(ladders(num_tried), 8, progress)
    assert [round(second) for second, *_ in page.shown] == [40, 121, 241]
    assert [x.number for _, x, *_ in page.shown] == [2, 2, 2]
    status = page.shown[1][2]
    assert status.headline == "still running: 5 of at most 8 components tried"
    text = "the fit with 2 components, the most probable of those with up to 5 tried so far"
    assert text in status.text
    printed = capsys.readouterr().err
    assert printed.count("2 groups so far (2 of at most 8 components tried), see out") == 1
    assert printed.count("group 1: 60%") == 1


def test_one_component_alone_has_none(page, clock, capsys):
    """However long it takes: there is nothing to compare it with, and the chains come next."""
    clock.step(1000)
    page.page.show_tried(ladders(1), 1, Progress(PLAN, is_shown=True, began=0.0))
    assert not page.shown and capsys.readouterr().err == ""


def test_it_is_silent_without_progress(page, clock, capsys):
    progress = Progress(PLAN, is_shown=False)
    clock.step(40)
    page.page.show_tried(ladders(2), 8, progress)
    assert len(page.written) == 1 and capsys.readouterr().err == ""


def test_it_waits_for_what_a_page_takes(page, clock):
    progress = Progress(PLAN, is_shown=False)
    clock.step(19)  # a tenth is less than the 2 s that a page may take
    page.page.show_tried(ladders(2), 8, progress)
    assert not page.written
    clock.step(2)
    page.page.show_tried(ladders(3), 8, progress)
    assert len(page.written) == 1


@pytest.mark.parametrize("where", ["find", "log_evidence"])
def test_errors_are_told_and_the_numbers_go_on(page, clock, capsys, monkeypatch, where):
    """Those of the evidence too, which only the page needs."""

    def fail(*_):
        raise ValueError("no such group")

    if where == "find":
        page.page.find = fail
    else:
        monkeypatch.setattr("numpyro_rankings.posterior.ladders.log_evidence", fail)
    progress = Progress(PLAN, is_shown=False)
    clock.step(40)
    page.page.show_tried(ladders(2), 8, progress)
    assert "could not be written: no such group" in capsys.readouterr().err
    assert not page.page.is_written


@pytest.fixture
def fakes(monkeypatch, evidence):
    """A fit that tries numbers in no time, of which each page is due and has no groups."""
    monkeypatch.setattr(interim, "_FIRST_TAKES", 0.0)
    monkeypatch.setattr(
        "numpyro_rankings.report.page.page_of", lambda *x: f"numpyro-rankings {x[2]}"
    )
    monkeypatch.setattr(fit, "finder_of_groups", lambda *_: lambda *_: GroupsSoFar({}, []))


def trying(monkeypatch, num_tried, error):
    """Try so many numbers, and end with an error."""

    def path(*_, after_number, **__):
        for number, mcmc in ladders(num_tried).items():
            after_number(number, mcmc)
        assert Path("out").exists() == (num_tried > 1)
        raise error

    monkeypatch.setattr(module, "group_path", path)


@pytest.mark.parametrize("num_tried", [0, 1, 2])
def test_a_fit_whose_time_is_over_leaves_no_page(fakes, monkeypatch, num_tried):
    trying(monkeypatch, num_tried, module.TooLittleTimeError())
    assert run(*AUTO, "2", "--out", "out", "--minutes", "5") == 2
    assert sorted(os.listdir()) == ["small.soi"]


def test_the_page_of_a_command_that_was_killed_is_in_nobodys_way(fakes, monkeypatch, capsys):
    """The same command begins again; but what else is in the folder is not replaced."""
    command = [*AUTO, "2", "--out", "out"]
    trying(monkeypatch, 2, KeyboardInterrupt())
    with monkeypatch.context() as patch:
        patch.setattr(InterimPage, "take_back", lambda _: None)  # as kill -9 leaves no time to
        assert run(*command) == 130
    assert os.listdir("out") == ["report.html"] and MARK in page_now()
    Path("out/notes.txt").write_text("mine")
    assert run(*command) == 2
    assert "the folder out exists: use --force" in capsys.readouterr().err
    os.remove("out/notes.txt")
    assert run(*command) == 130
    assert sorted(os.listdir()) == ["small.soi"]  # the page was this command's own again

    Path("out").mkdir()
    Path("out/report.html").write_text("numpyro-rankings")  # the page of results
    assert run(*command) == 2
    assert "the folder out exists: use --force" in capsys.readouterr().err


SHORT = [*AUTO, "2", "--out", "out", "--chains", "2", "--warmup", "20", "--draws", "20"]


@pytest.fixture
def pages(monkeypatch):
    """The pages of numbers that are tried, of which the first is due at once."""
    written, write = [], InterimPage._write

    def keep(self, page):
        written.append(page.decode())
        write(self, page)

    monkeypatch.setattr(InterimPage, "_write", keep)
    monkeypatch.setattr(interim, "_FIRST_TAKES", 0.0)
    return written


@pytest.fixture
def quick(monkeypatch):
    """Few draws of each number."""
    path = module.group_path
    lengths = {"num_warmup": 20, "num_samples": 20}
    monkeypatch.setattr(module, "group_path", lambda *args, **rest: path(*args, **rest | lengths))


def ends_after_the_path(monkeypatch):
    """Press Ctrl-C when all numbers have been tried."""

    def fail(path):
        assert MARK in page_now()
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "choose_number", fail)


def page_now():
    return Path("out/report.html").read_text(encoding="utf-8")


def results():
    return [Path("out", name).read_bytes() for name in ("path.csv", "assignments.csv")]


def test_the_page_of_a_number(pages, quick, monkeypatch, capsys):
    """The results replace it, and are those of a fit without it; if there are none, it goes."""
    assert run(*SHORT) == 0
    (page,) = pages
    for text in (MARK, "Still running: 2 of at most 2 components tried", "renews itself"):
        assert text in page, text
    assert MARK not in page_now()
    assert "so far (2 of at most 2 components tried), see out" in capsys.readouterr().err
    with_page = results()

    monkeypatch.setattr(interim, "_FIRST_TAKES", 2.0)
    assert run(*SHORT, "--force") == 0
    assert len(pages) == 1 and results() == with_page

    monkeypatch.setattr(interim, "_FIRST_TAKES", 0.0)
    ends_after_the_path(monkeypatch)
    final = page_now()
    assert run(*SHORT, "--force") == 130
    assert len(pages) == 3 and MARK in pages[1] and page_now() == final


def test_an_end_while_numbers_are_tried_leaves_nothing(pages, quick, monkeypatch):
    ends_after_the_path(monkeypatch)
    assert run(*SHORT) == 130
    assert len(pages) == 1 and not Path("out").exists()
