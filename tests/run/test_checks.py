"""When a run checks its draws: the checks take at most a tenth of the time."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers.toy_kernel import Wide, toy_run

from numpyro_rankings.run.goals import Check, CheckSchedule, Diagnosed
from numpyro_rankings.run.monitor import Monitor


@pytest.mark.parametrize("seconds_of_a_draw", [0.0, 1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("fixed", [0.0, 1.0])
@pytest.mark.parametrize("again", [False, True])
def test_checks_take_at_most_a_tenth_of_the_time(
    seconds_of_a_draw, fixed, again, clock, monkeypatch
):
    """Whatever they take. A second one in a row, which confirms the first, is paid for later."""
    monkeypatch.setattr(Check, "of", lambda _: Check(2.0, 3.0, 1))
    schedule, spent, latest, made = CheckSchedule(), 0.0, 0.0, []
    for chunk in range(1, 3001):
        sweeps, draws = 2.0 * chunk, 20 * chunk  # a tenth of a second for each draw
        steps = [schedule.step(draws, sweeps)]
        for step in filter(None, steps + steps * (again and chunk % 5 == 0)):
            latest = fixed + seconds_of_a_draw * (draws // step)

            def diagnose(takes=latest):
                clock.step(takes)
                return Diagnosed(1, 0.5, None)

            schedule.make(diagnose, draws, sweeps, step)
            spent += latest
            made.append(draws // step)
            unpaid = made[0] * seconds_of_a_draw + fixed + again * latest  # the first is a test
            assert spent <= 0.1 * (sweeps + spent) + unpaid + 1e-9
    assert len(made) > 3000 * min(1.0, 0.1 / (fixed + 60_000 * seconds_of_a_draw + 1e-9)) / 10
    assert max(made) > 60_000 * min(1.0, 0.0033 / (seconds_of_a_draw + 1e-9)) * 0.5
    if seconds_of_a_draw < 1e-3:
        assert made[-1] > 59_000  # of all draws


@pytest.mark.parametrize(
    ("check", "num_chains", "suffices"),
    [
        (Check(1.01, 400.0, 3), 2, True),
        (Check(1.011, 400.0, 3), 2, False),
        (Check(1.01, 399.0, 3), 2, False),
        (Check(np.nan, 400.0, 3), 2, False),
        (Check(np.nan, 400.0, 3), 1, True),  # R-hat is of several chains
        (Check(np.nan, np.nan, 0), 2, True),  # nothing moves, as it should
    ],
)
def test_when_draws_suffice(check, num_chains, suffices):
    assert check.suffices(1.01, 400.0, num_chains) is suffices


def test_the_time_at_the_prompt_is_no_time_for_checks(clock):
    run = toy_run()
    run.extend(40)
    run.check()
    run._checks._took, run._checks._paid = 3.0, 27.0
    run.extend(1)
    run.diagnostics()
    run.check()  # it was known, so that it took no time
    assert run._checks._took == 3.0
    run.extend(1)
    clock.step(1e6)
    assert run._step_due(False) == 0
    run._seconds += 54
    assert run._step_due(False) == 0
    run._seconds += 2
    assert run._step_due(False) == 1
    assert not run._checks.is_of(run.num_draws) and run._checks.is_of(41)
    run.extend(100)  # a check of all would take longer
    assert run._step_due(False) == 0
    run._seconds += 27
    assert run._step_due(False) == 2


def test_draws_do_not_depend_on_when_checks_happen(clock, monkeypatch):
    """With many quantities, of which a check of all draws takes longer than a chunk."""
    plain = toy_run(Wide(30))
    plain.extend(1100)
    table, checked = Monitor.table, []

    def slow(monitor, burn_in, step=1):
        clock.step(0.1 * monitor.num_draws / step)
        checked.append(monitor.num_draws // step)
        return table(monitor, burn_in, step)

    monkeypatch.setattr(Monitor, "table", slow)
    run = toy_run(Wide(30))
    advance = run._loop._advance

    def timed(*arguments):
        clock.step(20)
        return advance(*arguments)._replace(seconds=20.0)

    monkeypatch.setattr(run._loop, "_advance", timed)

    def stop(run):
        assert sum(checked[1:]) * 0.1 <= run.seconds / 9
        if run.num_draws >= 1100:
            raise StopIteration

    with pytest.raises(StopIteration):
        run.until(rhat=1.0001, ess=20_000, minutes=60, after_chunk=stop)
    assert len(checked) > 1
    found = run.get_samples(group_by_chain=True)["wide"][:, :1100]
    np.testing.assert_array_equal(found, plain.get_samples(group_by_chain=True)["wide"])
    of_all = run.diagnostics()  # and not of those that were checked
    assert checked[-1] == run.num_draws and run._diagnosed.num_draws == run.num_draws
    assert of_all.loc["mu", "ess_bulk"] > 2 * run.last_check.ess


def test_a_page_of_a_run_so_far_diagnoses_nothing_to_see_whether_it_is_due(tmp_path):
    from numpyro_rankings.cli.interim import InterimPage

    page = InterimPage(tmp_path, lambda *_: None)
    assert not page._is_due(SimpleNamespace(num_draws=6), 50.0)
    assert not page._is_due(SimpleNamespace(num_draws=600), 5.0)
    assert page._is_due(SimpleNamespace(num_draws=600), 70.0)
