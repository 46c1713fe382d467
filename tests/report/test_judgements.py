"""What is judged of a run: how long it has to be, and what of it can be reported."""

import math

import numpy as np
import pytest

from numpyro_rankings.posterior.diagnostics import table_of_scalars
from numpyro_rankings.report.judgements import (
    Fit,
    Judgements,
    outlook,
    times_as_long,
    worst_of,
)


@pytest.mark.parametrize(
    ("r_hat", "ess", "of_half", "times", "reason"),
    [
        (1.005, 200, 100, 2, ""),
        (1.005, 200, 159, 2, ""),
        (1.005, 200, 161, math.nan, "hardly grown"),
        (1.05, 200, 100, 5, ""),
        (1.008, 500, 490, 0.8, ""),
        (math.nan, 100, 50, 4, ""),
        (1.21, 500, 250, math.nan, "different places"),
        (math.inf, 500, 250, math.nan, "different places"),
        (1.01, 13, 6, math.nan, "more than 30 times"),
        (1.1, math.nan, 6, math.nan, "too few draws"),
    ],
)
def test_the_rule_of_how_long_a_run_has_to_be(r_hat, ess, of_half, times, reason):
    said = outlook(r_hat, ess, lambda: of_half)
    assert said.times == pytest.approx(times, nan_ok=True)
    assert (reason in said.reason) and bool(reason) == bool(said.reason)


def test_goals_of_ones_own():
    assert outlook(1.05, 200, lambda: 100, 1.05, 1000).times == pytest.approx(5)


def walks(rng, draws, memory=0.9):
    """Four chains of an autoregressive process."""
    x = np.empty((4, draws))
    x[:, 0] = rng.normal(size=4)
    for t in range(1, draws):
        x[:, t] = memory * x[:, t - 1] + math.sqrt(1 - memory**2) * rng.normal(size=4)
    return x


def test_the_guess_is_about_right_where_chains_mix():
    """At the length that is guessed from 150 draws the goals are nearly reached, as a rule."""
    ess = []
    for seed in range(12):
        x = walks(np.random.default_rng(seed), 4500)
        of = [worst_of(table_of_scalars({"alpha": x[:, :n]})) for n in (75, 150)]
        said = outlook(*of[1], lambda of=of: of[0][1], rhat_goal=1.05)
        if math.isnan(said.times):
            continue
        ess.append(worst_of(table_of_scalars({"alpha": x[:, : int(150 * said.times)]}))[1])
    assert len(ess) >= 8
    assert 300 <= np.median(ess) <= 800 and min(ess) >= 150


@pytest.mark.parametrize(
    ("r_hat", "ess", "times"),
    [
        (1.005, 200, 2),  # by the ESS
        (1.05, 200, 5),  # by R-hat
        (math.nan, 100, 4),  # of one chain R-hat is not known
        (1.3, 500, 30),  # a guess even where the result would say none
        (1.1, 0, math.nan),
        (1.1, math.nan, math.nan),
    ],
)
def test_the_rule_while_a_run_goes_on(r_hat, ess, times):
    assert times_as_long(r_hat, ess, 1.01, 400) == pytest.approx(times, nan_ok=True)


def test_thresholds_of_judgements():
    judged = Judgements("good", "other", 1.2, 400, "", 0.5, None, None, None)
    assert not judged.are_apart and judged._replace(r_hat=1.21).are_apart
    assert not judged.is_doubtful and judged._replace(cohesion=0.49).is_doubtful
    assert not judged._replace(cohesion=None).is_doubtful
    fit = Fit(5, 1, 10, 2)
    assert (fit.checked, fit.outside, fit.misses_something) == (15, 3, False)
    assert fit._replace(pairs_outside=3).misses_something
