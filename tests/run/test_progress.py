"""What is shown of a run while it goes on: a table in a notebook, a line in a terminal."""

import io
import math
import sys
import threading
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from helpers.toy_kernel import toy_run
from jax import random
from numpyro.infer import HMC

from numpyro_rankings import Run
from numpyro_rankings.run.goals import Check
from numpyro_rankings.run.progress import Display, Figures, in_words, seconds_to_goals

pytestmark = pytest.mark.usefixtures("programs")


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Handle:
    """What IPython's ``display`` returns, with all that was shown."""

    def __init__(self, first):
        self.shown, self.thread = [first], threading.current_thread()

    def update(self, figures):
        self.shown.append(figures)


@pytest.fixture
def notebook(monkeypatch):
    """A kernel of IPython, as far as it is asked; the tables that were begun."""
    handles = []

    def display(figures, display_id):
        assert display_id is True
        handles.append(Handle(figures))
        return handles[-1]

    module, of_display = ModuleType("IPython"), ModuleType("IPython.display")
    module.get_ipython = lambda: SimpleNamespace(kernel=object())
    module.display, of_display.display = of_display, display
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", of_display)
    return handles


def cells(figures):
    """The cells of the table, by row."""
    table = ElementTree.fromstring(figures._repr_html_())
    return [[cell.text or "" for cell in row] for row in table]


def test_a_table_in_a_notebook_is_renewed(notebook, clock):
    run = toy_run(num_chains=3)
    assert run.until(rhat=1.1, ess=50, minutes=5, after_chunk=lambda _: clock.step(1))
    (handle,) = notebook
    assert len(handle.shown) > 3  # at first, after some chunks, and at the end
    assert cells(handle.shown[0])[0] == ["chain", "draws"]
    assert "left" in cells(handle.shown[-2])[0]  # and no more of a run that has ended
    names, *chains, everything = cells(handle.shown[-1])
    assert names == ["chain", "draws", "R-hat", "ESS"]
    assert chains == [[str(k), f"{run.num_draws:,}", "", ""] for k in (1, 2, 3)]
    check = run.last_check
    expected = ["all", f"{3 * run.num_draws:,}", f"{check.rhat:.3f}", f"{check.ess:,.0f}"]
    assert everything == expected
    run.extend(10)  # a further cell has a table of its own
    assert len(notebook) == 2 and f"of {run.num_sweeps:,} sweeps" in repr(notebook[1].shown[-1])


def test_a_run_in_the_background_has_its_table_in_the_cell_that_began_it(notebook, clock):
    run = toy_run()
    run.start(40, after_chunk=lambda _: clock.step(1))
    (handle,) = notebook
    assert handle.thread is threading.current_thread()
    run.wait(60)
    assert len(notebook) == 1 and handle.shown[-1].num_draws == 40


def test_a_line_in_a_terminal(monkeypatch, clock):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stderr", Terminal())
    run = toy_run()
    run.extend(300, after_chunk=lambda _: clock.step(1))
    shown = sys.stderr.getvalue()
    *lines, last = shown.split("\r")
    assert len(lines) > 3 and last.endswith("\n") and "\n" not in "".join(lines)
    assert all(len(line.rstrip("\n")) < 60 for line in (*lines, last))
    assert last.startswith(f"300 of 300 sweeps, R-hat {run.last_check.rhat:.3f}, ESS ")


@pytest.mark.parametrize("where", ["notebook", "terminal", "file"])
def test_progress_false_silences_it(where, monkeypatch, request, clock, tmp_path):
    tables = request.getfixturevalue("notebook") if where == "notebook" else []
    screen = Terminal() if where == "terminal" else io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    run = toy_run(progress=where == "file", store=tmp_path / "a.run")  # no line gets into a file
    run.extend(40, after_chunk=lambda _: clock.step(1))
    run.close()
    from helpers.toy_kernel import DATA, Autoregressive

    again = Run.resume(tmp_path / "a.run", Autoregressive(), DATA, progress=where == "file")
    again.extend(40, after_chunk=lambda _: clock.step(1))
    assert tables == [] and screen.getvalue() == ""
    assert again.last_check is None  # nothing was computed for it either


def test_divergent_transitions_are_told(notebook, clock):
    def steep(z):
        return 1e8 * z**2

    settings = {"step_size": 10.0, "adapt_step_size": False, "num_steps": 2}
    kernel = HMC(potential_fn=steep, trajectory_length=None, **settings)
    starts = np.linspace(0.1, 0.2, 3)
    run = Run(kernel, key=random.key(0), num_chains=3, num_warmup=0, init_params=starts)
    run.extend(50, after_chunk=lambda _: clock.step(1))
    assert run.num_divergent.tolist() == [50, 50, 50]
    assert "150 divergent transitions" in repr(run)
    names, first, *_, everything = cells(notebook[0].shown[-1])
    column = names.index("divergent")
    assert first[column] == "50" and everything[column] == "150"
    assert notebook[0].shown[-1].line().endswith(", 150 divergent")
    assert toy_run().num_divergent is None


def test_many_chains_have_few_rows():
    check = Check(1.5, 20.0, 3)
    figures = Figures(9, 5, 24, check, [3] * 23 + [4], [0] * 24, 12.34, None, 100.0)
    names, *rows, everything = cells(figures)
    assert names == "chain draws clusters divergent R-hat ESS sweeps/s left".split()
    assert len(rows) == 16 and rows[0] == ["1", "5", "3", "0", "", "", "", ""]
    assert everything == ["all", "120", "3 to 4", "0", "1.500", "20", "12.34", "2 min"]
    assert repr(figures).startswith("9 sweeps, clusters 3/3/3")
    assert "clusters 3 to 4, R-hat 1.500" in figures.line(80)


def test_the_line_counts_sweeps():
    figures = Figures(1, 1, 4, None, None, None, 1.0)
    assert figures.line() == "1 sweep"
    assert replace(figures, num_sweeps=2).line() == "2 sweeps"
    assert replace(figures, total=1_000).line() == "1 of 1,000 sweeps"


def figures(num_sweeps, seconds_left=None):
    """Those of a run of which nothing else is known."""
    return Figures(num_sweeps, 0, 2, None, None, None, math.nan, None, seconds_left)


def test_a_line_covers_the_one_before_after_half_a_second(monkeypatch, clock):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stderr", Terminal())
    display = Display(True)
    assert display.is_due()
    display.show(figures(1000, 3.0))
    clock.step(0.4)
    assert not display.is_due()
    clock.step(0.2)
    assert display.is_due()
    display.show(figures(1, 3.0))
    display.end(lambda: figures(2, 3.0))
    first, second = "1,000 sweeps, about 3 s left", "1 sweep, about 3 s left"
    expected = f"\r{first}\r{second:<{len(first)}}\r{'2 sweeps':<{len(second)}}\n"
    assert sys.stderr.getvalue() == expected


@pytest.mark.parametrize("is_prompt", [True, False])
def test_no_line_of_another_thread_gets_into_a_prompt(monkeypatch, is_prompt):
    monkeypatch.setattr("sys.stderr", Terminal())
    if is_prompt:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    due = []
    thread = threading.Thread(target=lambda: due.append(Display(True).is_due()))
    thread.start()
    thread.join()
    assert due == [not is_prompt] and Display(True).is_due()


def test_ipython_in_a_terminal_shows_no_table(notebook, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", SimpleNamespace)
    Display(True).begin(lambda: figures(1))
    assert notebook == []


def test_a_line_has_the_clusters_of_each_chain_where_it_is_wide_enough():
    some = replace(figures(3), clusters=[3, 14] * 4)
    whole, narrow = "3 sweeps, clusters 3/14/3/14/3/14/3/14", "3 sweeps, clusters 3 to 14"
    for line, less in ((whole, narrow), (narrow, "3 sweeps")):
        assert some.line(len(line)) == line and some.line(len(line) - 1) == less


@pytest.mark.parametrize(
    ("check", "left", "words"),
    [
        (None, None, ""),
        (Check(1.5, 20.4, 3), 90.0, "R-hat 1.500, ESS 20, about 2 min left"),
        (Check(math.nan, 20.4, 3), None, "ESS 20"),  # of one chain
        (Check(1.5, math.nan, 3), None, "R-hat unknown yet"),
    ],
)
def test_how_far_it_is_in_words(check, left, words):
    assert in_words(check, left) == words


@pytest.mark.parametrize(
    ("check", "left", "seconds"),
    [
        (None, 100.0, None),
        (Check(1.05, math.nan, 3), 100.0, None),
        (Check(1.05, 200.0, 3), 100.0, 40.0),  # five times as long as so far
        (Check(math.nan, 200.0, 3), 100.0, 10.0),
        (Check(1.3, 200.0, 3), 100.0, 100.0),  # not more than it has
        (Check(1.3, 200.0, 3), -1.0, 0.0),
        (Check(1.001, 800.0, 3), 100.0, 0.0),  # the goals are reached
    ],
)
def test_the_time_until_the_goals_are_reached(check, left, seconds):
    found = seconds_to_goals(check, (1.01, 400.0), 10.0, left)
    assert found == (seconds if seconds is None else pytest.approx(seconds))
