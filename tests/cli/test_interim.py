"""The page of a run that goes on: when it is written, what it says, and what errors do to it."""

import os
import re
import signal
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.command_line import weights_of_store as draws_of_store
from helpers.toy_kernel import Autoregressive
from jax.experimental.compilation_cache import compilation_cache

from numpyro_rankings.cli import fit, interim, main
from numpyro_rankings.cli.arguments import HopelessError
from numpyro_rankings.cli.compilation import telling_of_compilation
from numpyro_rankings.cli.interim import GroupsSoFar, InterimPage, SoFar
from numpyro_rankings.cli.options import Goals, Plan
from numpyro_rankings.cli.progress import Progress
from numpyro_rankings.run import Run
from numpyro_rankings.run.loop import SweepLoop

pytestmark = pytest.mark.usefixtures("usual_signals", "one_program", "small", "plain_page")

MODEL = ["fit", "small.soi", "--model", "plackett-luce", "--components", "2", "--chains", "2"]
FIXED = [*MODEL, "--warmup", "0", "--thin", "1", "--draws"]
PLAN = Plan(4, 0, None, Goals())
REFRESH = '<meta http-equiv="refresh"'


@pytest.fixture
def steps(monkeypatch, clock):
    """Chunks of 5 draws that take 15 seconds each."""
    make, start = Run._make_chunk, clock.seconds
    monkeypatch.setattr(SweepLoop, "_num_draws", lambda *_: 5)

    def make_chunk(run, at_most):
        make(run, at_most)
        clock.step(15)

    monkeypatch.setattr(Run, "_make_chunk", make_chunk)
    return lambda: clock.seconds - start


@pytest.fixture
def late(monkeypatch):
    """No page before a minute, however low R-hat is."""
    monkeypatch.setattr(interim, "_RHAT", 0.0)


@pytest.fixture
def written(monkeypatch, steps):
    """The times and the texts of the pages."""
    pages, write = [], InterimPage._write

    def keep(self, page):
        pages.append((steps(), page.decode()))
        write(self, page)

    monkeypatch.setattr(InterimPage, "_write", keep)
    return pages


def page_now():
    return Path("out/report.html").read_text(encoding="utf-8")


def failing(monkeypatch, place, name, error):
    """Let a function raise an error each time."""

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(place, name, fail)


@pytest.mark.parametrize(
    ("r_hat", "takes", "times"),
    [
        (1.2, 0, [60, 120, 240, 480, 960]),
        (1.1, 0, [60, 120, 240, 480, 960]),
        (float("nan"), 0, [60, 120, 240, 480, 960]),
        (1.09, 0, [20, 120, 240, 480, 960]),
        # a tenth of the time: 10 of 70 s, so that the next is put off to 200 s, then to 300 s
        (1.2, 10, [60, 200, 300, 480, 960]),
        (1.2, 100, [60, 2000]),
    ],
)
@pytest.mark.parametrize("fails", [False, True])
def test_it_is_written_after_a_minute_and_then_half_as_often(
    monkeypatch, clock, r_hat, takes, times, fails
):
    start, shown = clock.seconds, []

    def show(*_):
        shown.append(clock.seconds - start)
        clock.step(takes)
        if fails:
            raise RuntimeError("not this time")

    monkeypatch.setattr(InterimPage, "_show", show)
    page, progress = InterimPage(Path("out"), lambda *_: None), Progress(PLAN, is_shown=False)
    check = SimpleNamespace(rhat=r_hat)
    run = SimpleNamespace(num_draws=8, first_draw=4, check_if_due=lambda: None, last_check=check)
    while clock.seconds - start <= 2000:
        page.show_if_due(run, progress)
        clock.step(10 - (clock.seconds - start) % 10)
    assert [time for time in shown if time <= times[-1]] == times


def test_it_waits_for_draws(monkeypatch, clock):
    monkeypatch.setattr(InterimPage, "_show", lambda *_: pytest.fail("too early"))
    page, progress = InterimPage(Path("out"), lambda *_: None), Progress(PLAN, is_shown=False)
    clock.step(1000)
    page.show_if_due(SimpleNamespace(num_draws=6, first_draw=3), progress)


def test_what_it_says(capsys, written, late):
    assert main([*FIXED, "20", "--out", "out"]) == 0
    assert [time for time, _ in written] == [60]
    page = written[0][1]
    assert REFRESH in page and "<h1>Groups in small.soi</h1>" in page
    state = r"Still running: R-hat \d\.\d{3}, ESS \d+, about 0 s left"
    assert re.search(state, page) and re.search(r"after 20 sweeps of each chain", page)
    for expected in (
        "How many groups?",
        "Can I trust it?",
        "Who is in the groups",
        "Ann &lt;A&gt;",
    ):
        assert expected in page
    for missing in ("assignments.csv", "data:image", "<script", "None", "nan"):
        assert missing not in page
    assert REFRESH not in page_now() and "running" not in page_now()
    shown = capsys.readouterr().err
    lines = shown.splitlines()
    first = next(i for i, line in enumerate(lines) if "so far (R-hat" in line)
    assert re.match(r"numpyro-rankings: 2 groups so far \(R-hat .*\), see out/rep", lines[first])
    assert re.match(r"  group 1: +\d+\.\d%  (all close: on average )?[ABCD]", lines[first + 1])
    assert lines[first + 2].startswith("  group 2: ")
    assert shown.count("so far") == 1


def test_that_no_group_holds_is_said():
    assert interim._how_many(["group 1:  60%  A before B"]) == "1 group"
    assert interim._how_many([]) == "no group that holds"


@pytest.mark.parametrize("number", [3, 4, 5, 40])
def test_at_most_five_lines_are_printed(number):
    lines = interim._shortened([f"cluster {k}: " + "long " * 50 for k in range(number)])
    assert len(lines) == min(number, 4) and max(map(len, lines)) <= 100
    assert (f"and {number - 3} smaller ones" in lines[-1]) == (number > 4)


def test_lines_are_not_cut_to_nothing(monkeypatch):
    monkeypatch.setenv("COLUMNS", "8")
    assert list(map(len, interim._shortened(["long " * 50]))) == [40]


@pytest.mark.parametrize("earlier", [None, "results", interim._MARK])
@pytest.mark.parametrize("shown", [0, 1, 2])
def test_what_is_there_when_the_page_is_taken_back(monkeypatch, folder, earlier, shown):
    """Earlier results, or the page of another run that this one has not replaced."""
    monkeypatch.setattr("numpyro_rankings.report.page.page_of", lambda *_: interim._MARK)
    path = folder / "out" / "report.html"
    if earlier is not None:
        path.parent.mkdir()
        path.write_text(earlier)
    page = InterimPage(path.parent, lambda *_: GroupsSoFar({}, []))
    for _ in range(shown):
        page._show(lambda: SoFar(None, "", "after a sweep"), Progress(PLAN, is_shown=False), 1.0)
        assert page_now() == interim._MARK
    page.take_back()
    stays = earlier == "results" or (earlier is not None and shown == 0)
    assert (page_now() if path.exists() else None) == (earlier if stays else None)


@pytest.mark.parametrize(
    "model",
    [
        ["plackett-luce"],
        ["gamma-process"],
        pytest.param(["dp-plackett-luce"], marks=pytest.mark.slow),
        pytest.param(["mallows"], marks=pytest.mark.slow),
        pytest.param(["mallows", "--components", "1"], marks=pytest.mark.slow),
    ],
)
def test_the_page_of_each_model(written, late, model):
    options = ["--chains", "2", "--warmup", "0", "--thin", "1", "--draws", "25", "--out", "out"]
    assert main(["fit", "small.soi", "--model", *model, *options]) == 0
    assert [time for time, _ in written] == [60]
    page = written[0][1]
    r_hat = float(re.search(r"Still running: R-hat (\d+\.\d+)", page)[1])
    # of an unknown number of groups; where blocs come first, the groups are in a table
    may_have_blocs = model in (["dp-plackett-luce"], ["mallows"])
    has_blocs = "How many blocs?" in page
    assert may_have_blocs or not has_blocs
    assert has_blocs or not (may_have_blocs and r_hat > 1.05)
    assert ("<h3>Group 1</h3>" in page) != has_blocs
    assert ('<div class="groups-table">' in page) == has_blocs
    assert "Who is in the groups" in page
    is_mixture = model[0] in ("dp-plackett-luce", "mallows")
    assert ("a single population was fitted" in page) != is_mixture


def test_it_is_silent_without_progress(capsys, written, late):
    assert main([*FIXED, "20", "--no-progress", "--out", "out"]) == 0
    assert len(written) == 1
    assert capsys.readouterr().err == ""


def test_a_short_run_has_none(written, late):
    assert main([*FIXED, "5", "--out", "out"]) == 0
    assert written == [] and sorted(os.listdir()) == ["out", "small.soi"]


def test_the_page_of_a_killed_command_is_replaced(written, late):
    """By one that has no page of its own, if nothing else is in the folder."""
    Path("out").mkdir()
    Path("out/report.html").write_text(f"<html>{interim._MARK}</html>")
    assert main([*FIXED, "5", "--out", "out"]) == 0
    assert written == [] and interim._MARK not in page_now()


def test_a_page_of_results_is_kept(written, late, capsys):
    Path("out").mkdir()
    Path("out/report.html").write_text("<html>results</html>")
    assert main([*FIXED, "5", "--out", "out"]) != 0
    assert "--force" in capsys.readouterr().err and page_now() == "<html>results</html>"


def test_the_draws_are_the_same(monkeypatch, written, late):
    failing(monkeypatch, fit, "_summarise", KeyboardInterrupt())
    assert main([*FIXED, "30", "--out", "out"]) == 130
    assert len(written) == 2  # the second says that the run has ended
    found = draws_of_store()
    monkeypatch.setattr(InterimPage, "show_if_due", lambda *_: None)
    assert main([*FIXED, "30", "--out", "out", "--force"]) == 130
    np.testing.assert_array_equal(found, draws_of_store())


@pytest.mark.parametrize("error", [RuntimeError("odd\nerror"), MemoryError(), OSError(28, "full")])
def test_errors_are_told_and_the_run_goes_on(capsys, monkeypatch, steps, late, error):
    place = (interim, "write_at_once") if isinstance(error, OSError) else (InterimPage, "_show")
    failing(monkeypatch, *place, error)
    assert main([*FIXED, "20", "--out", "out"]) == 0
    text = {"OSError": "[Errno 28] full", "MemoryError": "MemoryError"}.get(
        type(error).__name__, "odd error"
    )
    message = f"note: the page of the run so far could not be written: {text}\n"
    assert capsys.readouterr().err.count(message) == 1
    assert sorted(os.listdir()) == ["out", "small.soi"]


def test_a_page_is_replaced_at_once(capsys, monkeypatch, written, late):
    """A disk that is full in the middle of a page leaves the one before."""
    write = Path.write_bytes

    def write_half(path, page):
        if len(written) > 1:
            write(path, page[: len(page) // 2])
            assert page_now() == written[0][1]
            raise OSError(28, "No space left on device")
        return write(path, page)

    monkeypatch.setattr(Path, "write_bytes", write_half)
    failing(monkeypatch, fit, "_summarise", KeyboardInterrupt())
    assert main([*FIXED, "40", "--out", "out"]) == 130
    assert "could not be written: cannot write to out: No space" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["out", "out.run", "small.soi"]
    assert os.listdir("out") == ["report.html"]


def test_errors_that_come_again_end_the_run(capsys, monkeypatch, steps, late):
    failing(monkeypatch, InterimPage, "_show", HopelessError("more slots"))
    assert main([*FIXED, "30", "--out", "out"]) == 2
    assert "error: more slots (out.run keeps" in capsys.readouterr().err


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_while_it_is_written(capfd, monkeypatch, written, late, times):
    """The page is finished after one Ctrl-C, and the report says it; neither after two."""
    write = InterimPage._write

    def press(self, page):
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        write(self, page)

    monkeypatch.setattr(InterimPage, "_write", press)
    assert main([*FIXED, "60", "--out", "out"]) == 130
    assert len(written) == (times == 1)
    message = capfd.readouterr().err
    if times == 2:
        assert "no results were written; out.run keeps 20 sweeps of each chain. To go on" in message
        assert sorted(os.listdir()) == ["out.run", "small.soi"]
        return
    page = page_now()
    assert "interrupted, after 20 sweeps of each chain. To go on:" in message
    assert "Interrupted, after 20 sweeps of each chain." in page
    command = message.strip().splitlines()[-1].strip()
    assert f"To go on: <code>{command}</code>" in page
    assert REFRESH not in page and "running" not in page
    assert sorted(os.listdir("out")) == [
        "assignments.csv", "clusters.csv", "posterior.nc", "report.html"
    ]  # fmt: skip
    monkeypatch.setattr(InterimPage, "_write", write)
    assert main(command.split()[1:]) == 0
    assert "Interrupted" not in page_now()


@pytest.mark.parametrize(
    ("error", "why", "goes_on"),
    [
        (KeyboardInterrupt(), "Not finished: it was interrupted", True),
        (MemoryError(), "Not finished: out of memory", True),
        (HopelessError("more slots"), "Not finished: more slots", False),
    ],
)
def test_a_run_without_results_says_so(monkeypatch, written, late, error, why, goes_on):
    failing(monkeypatch, fit, "_summarise", error)
    assert main([*FIXED, "30", "--out", "out"]) == (130 if goes_on and "inter" in why else 2)
    page = page_now()
    assert why in page and "The run made 30 sweeps" in page and "Who is in the groups" in page
    assert REFRESH not in page and "running" not in page
    assert ("--resume out</code>" in page) == goes_on
    assert os.listdir("out") == ["report.html"]


def test_earlier_results_stay_if_there_are_no_new_ones(monkeypatch, written, late):
    assert main([*FIXED, "5", "--out", "out"]) == 0
    before = {name: Path("out", name).read_bytes() for name in os.listdir("out")}
    with monkeypatch.context() as patch:
        failing(patch, fit, "_summarise", KeyboardInterrupt())
        assert main([*FIXED, "20", "--out", "out", "--force"]) == 130
    assert len(written) == 2 and "Still running" in written[0][1]
    assert before == {name: Path("out", name).read_bytes() for name in os.listdir("out")}
    assert main([*FIXED, "20", "--resume", "out"]) == 0
    assert page_now() != before["report.html"].decode()


def test_compiling_is_said_only_if_it_is_so(tmp_path):
    """Whether the chains are on one device or on two."""
    folder, told = jax.config.jax_compilation_cache_dir, []

    def start(devices):
        jax.clear_caches()
        with telling_of_compilation(lambda: told.append(len(devices))):
            data, key = jnp.ones(3), jax.random.key(0)
            Run(Autoregressive(), data, key=key, num_chains=2, devices=devices).extend(1)

    compilation_cache.reset_cache()
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "cache"))
    try:
        for devices in (jax.devices()[:1], jax.devices()[:2]) * 2:
            start(devices)
    finally:
        compilation_cache.reset_cache()
        jax.config.update("jax_compilation_cache_dir", folder)
    assert told == [1, 2]
