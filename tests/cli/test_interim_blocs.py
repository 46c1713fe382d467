"""Blocs on the page of a run that goes on: if a tenth of the time suffices for them."""

from pathlib import Path
from types import SimpleNamespace

import jax
import pandas as pd
import pytest
from helpers.fabricated import fabricated_mcmc, with_groups

from numpyro_rankings import Comparisons, diagnostics_table, find_blocs, to_inference_data
from numpyro_rankings.cli import fit
from numpyro_rankings.cli.interim import (
    InterimPage,
    _BlocFinder,
    _findings_so_far,
    finder_of_groups,
)
from numpyro_rankings.cli.options import Goals, Plan
from numpyro_rankings.cli.program import make_parser
from numpyro_rankings.cli.progress import Progress
from numpyro_rankings.cli.session import RunSession
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.posterior import blocs as blocs_module
from numpyro_rankings.posterior.diagnostics import verdict
from numpyro_rankings.report import blocs_in_words
from numpyro_rankings.report import findings as findings_module
from numpyro_rankings.report.page import Status, page_of

SEARCH = 5.01  # seconds that a search of so small a table is expected to take
CHANGE = "The blocs are found from a few of the draws so far, and may still change too."
STATUS = Status("still running", "The groups may still change.")


@pytest.fixture(scope="module")
def drawn():
    """A run, as far as the page asks it, of six groups; its rankings; and its blocs."""
    data = simulate_mallows_mixture(jax.random.key(1), 80, 5, 5, 6, 2.0)
    mcmc = with_groups(fabricated_mcmc(data.rankings, chains=2, draws=20), data)
    found = to_inference_data(mcmc, data.rankings, log_likelihood=False)
    table = diagnostics_table(found)
    run = SimpleNamespace(
        as_mcmc=lambda _: mcmc,
        diagnostics=lambda: table,
        verdict=verdict(found, table),
        num_sweeps=20,
        num_draws=20,
        first_draw=10,
        last_check=None,
        check_if_due=lambda: None,
    )
    return run, data.rankings, find_blocs(found, data.rankings)


@pytest.fixture
def searches(monkeypatch, drawn, clock):
    """Lets each search take so many seconds; the numbers that were asked for."""
    asked = []

    def search(draws, rankings, number=None):
        asked.append(number)
        clock.step(searches.takes)
        return drawn[2]

    def searches(takes):
        searches.takes = takes
        return asked

    for module in (findings_module, blocs_module):
        monkeypatch.setattr(module, "find_blocs", search)
    return searches


def finder(rankings, number=None):
    return finder_of_groups(rankings, "title", 2, lambda _: {}, number)


def taking(seconds, run, clock):
    """The run, whose draws take so long to read."""

    def as_mcmc(most):
        clock.step(seconds)
        return run.as_mcmc(most)

    return SimpleNamespace(**{**vars(run), "as_mcmc": as_mcmc})


def test_the_page_shows_blocs_that_may_still_change(drawn):
    run, rankings, blocs = drawn
    found = finder(rankings)(run, STATUS, SEARCH)
    page = page_of("report.html", found.view)
    for expected in (
        "How many blocs?",
        "Can I trust the blocs?",
        "What they keep",
        blocs_in_words.verdict_of_blocs(blocs).headline,
        f"{STATUS.text} {CHANGE}",
    ):
        assert expected in page
    assert "Who the judges of each bloc are" not in page
    without = page_of("report.html", finder(rankings)(run, STATUS, SEARCH - 0.1).view)
    assert "bloc" not in without.split("<body", 1)[1].split("</style>")[-1]
    assert "How many groups?" in without


def test_what_the_groups_took_is_not_left_for_blocs(drawn, searches, clock):
    run, rankings, _ = drawn
    asked = searches(1)
    late = taking(2, run, clock)
    assert finder(rankings)(late, STATUS, 2 + SEARCH - 0.1).view["blocs"] is None
    assert asked == []
    assert finder(rankings)(late, STATUS, 2 + SEARCH + 0.1).view["blocs"] is not None
    assert asked == [None]


@pytest.mark.parametrize(
    ("work", "takes", "rest", "pages", "of_blocs"),
    [
        (600, 1, 0, [60, 120, 240, 480], [60, 120, 240, 480]),
        # what it took puts the next page off
        (600, 20, 0, [60, 400, 600, 960], [60, 400, 600, 960]),
        # 18 s are expected: a tenth of 240 s
        (1e6, 18, 0, [60, 120, 240, 480], [240, 480]),
        (1e6, 1, 0, [60, 120, 240, 480], [240, 480]),
        # which is not there if each page has taken 2 s
        (1e6, 1, 2, [60, 120, 240, 480], [480]),
        # of so large a table blocs are not found in the results either
        (1.6e6, 1, 0, [60, 120, 240, 480], []),
    ],
)
def test_blocs_come_when_a_tenth_of_the_time_suffices(
    work, takes, rest, pages, of_blocs, drawn, searches, clock, monkeypatch
):
    drawn_run, rankings, _ = drawn
    asked, start, written, with_blocs = searches(takes), clock.seconds, [], []

    def write(self, page):
        written.append(began - start)
        if CHANGE in page.decode():
            with_blocs.append(began - start)

    monkeypatch.setattr(InterimPage, "_write", write)
    for module in (findings_module, blocs_module):
        monkeypatch.setattr(module, "search_work", lambda *_: work)
    run = taking(rest, drawn_run, clock)
    plan = Plan(2, 0, None, Goals(minutes=60))
    page, progress = InterimPage(Path("out"), finder(rankings)), Progress(plan, is_shown=False)
    while clock.seconds - start <= pages[-1]:
        began = clock.seconds
        page.show_if_due(run, progress)
        clock.step(10 - (clock.seconds - start) % 10)
    assert (written, with_blocs) == (pages, of_blocs)
    assert len(asked) == len(of_blocs)
    if takes <= SEARCH:
        assert takes * len(asked) <= 0.1 * pages[-1]


def test_a_number_of_blocs_is_found_that_was_asked_for(drawn, searches, monkeypatch):
    run, rankings, _ = drawn
    asked = searches(0)
    monkeypatch.setattr(blocs_module, "search_work", lambda *_: 1.6e6)
    find = finder(rankings, 3)
    assert find(run, STATUS, 26).view["blocs"] is None
    assert find(run, STATUS, 27).view["blocs"] is not None
    assert asked == [3]


def test_the_command_passes_its_number_of_blocs(drawn, monkeypatch):
    monkeypatch.setattr(fit, "finder_of_groups", lambda *given: given)
    arguments = ["fit", "--chains", "2", "--blocs", "3", "--out", "out"]
    options = fit.parse_options(make_parser().parse_args(arguments))
    session = RunSession(options.run, "command")
    made = fit._finder(session, options, title="", rankings=drawn[1], read={}, path="a path")
    *_, number, path = made
    assert (number, path) == (3, "a path")


def test_there_may_be_no_blocs(drawn, monkeypatch):
    """The page is then as it was."""
    run, rankings, _ = drawn

    def fail(*_):
        raise blocs_module.NoBlocsError("not so many groups")

    for module in (findings_module, blocs_module):
        monkeypatch.setattr(module, "find_blocs", fail)
    for number in (None, 5):
        view = finder(rankings, number)(run, STATUS, 100).view
        assert view["blocs"] is None and view["status"] == STATUS


@pytest.mark.parametrize("kind", ["survey weights", "comparisons"])
def test_some_rankings_have_no_blocs(kind):
    """Though a number was asked for, and there is time."""
    if kind == "comparisons":
        lines = [("x", "a", "b"), ("x", "b", "c"), ("y", "b", "a")]
        rankings = Comparisons.from_pairs(pd.DataFrame(lines, columns=["judge", "winner", "loser"]))
        assert rankings.weights is None
    else:
        rankings = SimpleNamespace(weights=[1.5, 0.5])
    findings = SimpleNamespace(reference="some groups")
    assert _BlocFinder(rankings, 3).find(findings, {}, 1e9) is None


@pytest.mark.parametrize(("chains", "most"), [(2, 100), (30, 10)])
def test_the_page_is_of_few_draws(drawn, chains, most):
    """As many of all chains together, but some of each."""

    def as_mcmc(asked):
        assert asked == most
        return drawn[0].as_mcmc(asked)

    run = SimpleNamespace(**{**vars(drawn[0]), "as_mcmc": as_mcmc})
    find = finder_of_groups(drawn[1], "title", chains, lambda _: {})
    assert find(run, STATUS, 0.0).lines


@pytest.mark.parametrize(("judges", "most"), [(100, 100), (80_000, 50), (10**8, 10)])
def test_fewer_draws_of_many_judges_are_compared(monkeypatch, judges, most):
    class ComparedError(Exception):
        pass

    def medoid(_, compared):
        raise ComparedError(compared)

    monkeypatch.setattr("numpyro_rankings.posterior.partitions.medoid_partition", medoid)
    draws = SimpleNamespace(labels="some", flat=lambda: {"assignments": None})
    with pytest.raises(ComparedError) as error:
        _findings_so_far(draws, SimpleNamespace(num_rankings=judges), None, None)
    assert error.value.args == (most,)


def test_few_groups_have_no_blocs(searches):
    data = simulate_mallows_mixture(jax.random.key(1), 80, 5, 5, 3, 2.0)
    mcmc = with_groups(fabricated_mcmc(data.rankings, chains=2, draws=20), data)
    found = to_inference_data(mcmc, data.rankings, log_likelihood=False)
    table = diagnostics_table(found)
    run = SimpleNamespace(
        as_mcmc=lambda _: mcmc, diagnostics=lambda: table, verdict=verdict(found, table)
    )
    assert searches(0) == [] and finder(data.rankings)(run, STATUS, 100).view["blocs"] is None
