"""What is judged of a run, in one place: chains, draws, groups, blocs, agreement, fit, time left.

Page, screen and next steps put it into words. The verdict on the chains and the draws is that of
:mod:`numpyro_rankings.posterior.diagnostics`, which a run has while it goes on.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from numpyro_rankings.posterior import Bloc, Blocs
from numpyro_rankings.posterior.diagnostics import (
    ESS_BAD,
    ESS_GOOD,
    R_HAT_APART,
    R_HAT_BAD,
    R_HAT_GOOD,
    RStar,
    diagnostics_table,
    posterior_of,
)
from numpyro_rankings.posterior.predictive_checks import PredictiveCheck, PredictiveChecks
from numpyro_rankings.report.findings import Findings
from numpyro_rankings.report.page import Status
from numpyro_rankings.run.goals import times_as_long

if TYPE_CHECKING:
    import pandas as pd

# Thresholds. Those of R-hat and ESS are beside the verdict on the run, and those by which a group
# holds and blocs are searched are beside their definitions.
MOST_LEFT = 0.5  # share of all in no group that holds, above which there are no clear groups
LEAST_COHESION = 0.5  # share of the draws in which two members of a group have to be in one group
HARDLY_AGREE = 0.1  # agreement of the members of a bloc or group, below which they hardly agree
# Agreement of a group below which it has no common order: chance alone makes about 2 divided by its
# size. Below the first of the limits it says little in any case; the second one is for small
# groups, in which chance cannot be told from an order.
_NO_ORDER, _CHANCE = (0.01, 0.03), 3.0
MANY_OUTSIDE = 0.2  # share of the intervals of 90% that the observed numbers are outside of
LEAST_GROWTH = 1.25  # times the ESS of half of the draws; of a smaller ESS no time is told
MOST_TIMES = 30.0  # no time is told if the run has to be longer than so many times

Level = Literal["good", "care", "bad"]
Cause = Literal["R-hat", "ESS", "other"]
Unclear = Literal["", "none holds", "few belong", "hardly agree", "no order"]


class Judgements(NamedTuple):
    """What is judged of a run.

    - **chains** - whether the chains agree and the draws suffice, and **cause**, what this level
      comes from: the largest **r_hat**, the least **ess**, or something else.
    - **unclear** - why there are no clear groups; nothing if there are, or if there is only one,
      which has a common order.
    - **cohesion** - how often two members of a group that holds are together; None if it says
      nothing.
    - **blocs** - whether each chain alone leads to the same blocs; None if there are none.
    - **unlike** - the numbers of the groups or blocs to report whose members hardly agree; None if
      there is nothing to report, or of points, of which it is not known.
    - **fit** - whether the model fits; None if it was not checked.
    """

    chains: Level
    cause: Cause
    r_hat: float
    ess: float
    unclear: Unclear
    cohesion: float | None
    blocs: Level | None
    unlike: Sequence[int] | None
    fit: "Fit | None"

    @property
    def are_apart(self) -> bool:
        """Whether the chains are in different places, and may stay there however long they run."""
        return self.r_hat > R_HAT_APART

    @property
    def is_doubtful(self) -> bool:
        """Whether few members belong to their group for sure, as two are rarely together."""
        return self.cohesion is not None and self.cohesion < LEAST_COHESION


def judgements_of(findings: Findings) -> Judgements:
    """Judge what was found."""
    level = findings.verdict.level
    r_hat, ess = worst_of(findings.table)
    unclear = _why_unclear(findings)
    of_blocs = None if findings.blocs is None else level_of_blocs(findings.blocs)
    is_reported = of_blocs != "bad" if findings.blocs_first else level != "bad" and not unclear
    reported = groups_to_report(findings)
    return Judgements(
        level,
        _cause(level, r_hat, ess),
        r_hat,
        ess,
        unclear,
        _cohesion(findings),
        of_blocs,
        _unlike(findings) if is_reported and reported and findings.family is not None else None,
        None if findings.checks is None else judge_fit(findings.checks),
    )


# -- chains and draws ------------------------------------------------------------------------------


def worst_of(table: "pd.DataFrame") -> tuple[float, float]:
    """Return the largest R-hat and the least ESS of a table of diagnostics."""
    moving = table[table["note"] != "constant"]
    if not len(moving):
        return math.nan, math.inf
    return float(moving["r_hat"].max()), float(moving[["ess_bulk", "ess_tail"]].min(axis=None))


def r_star_in_words(found: RStar) -> str:
    """Say what R* is, and whether it can tell the chains apart."""
    low, high = found.interval(0.9)
    return (
        "R* looks at all of these quantities together, and is about 1 for chains that look alike: "
        f"{found.value:.2f} (90% interval {low:.2f} to {high:.2f}), so that the chains "
        f"{'can' if low > 1 else 'cannot'} be told apart."
    )


def _cause(level: Level, r_hat: float, ess: float) -> Cause:
    """Return what the level of the verdict on a run comes from."""
    if level == "bad":
        return "R-hat" if r_hat > R_HAT_BAD else "ESS" if ess < ESS_BAD else "other"
    if r_hat > R_HAT_GOOD:
        return "R-hat"
    return "ESS" if ess < ESS_GOOD and not math.isnan(r_hat) else "other"


def round_trips(findings: Findings) -> int | None:
    """Return how often a replica went from the prior to the model, at least; None without ladders.

    Of several ladders it is the least.
    """
    if findings.data is None or "sample_stats" not in findings.data:
        return None
    stats = findings.data["sample_stats"]
    return int(stats["round_trips"].values[:, -1].min()) if "round_trips" in stats else None


# -- groups and blocs ------------------------------------------------------------------------------


def least_agreement(size: Any) -> Any:
    """Return the agreement below which a group of so many judges has no common order."""
    return np.clip(_CHANCE / np.maximum(size, 1.0), *_NO_ORDER)


def lacks_order(profile: Any, findings: Findings) -> bool:
    """Whether the judges of a group have no common order: they agree hardly more than by chance."""
    if findings.family is None:
        return False
    # without an entropy, agreement is on another scale
    has_scale = not math.isnan(profile.entropy)
    return bool(has_scale and profile.agreement < least_agreement(profile.mean_size))


def with_order(findings: Findings) -> Sequence[Any]:
    """Return the groups that hold and have a common order, or all that hold if none has."""
    return [p for p in findings.held if not lacks_order(p, findings)] or findings.held


def _why_unclear(findings: Findings) -> Unclear:
    held = findings.held
    if findings.reference is None or len(findings.profiles) == 1:
        return "no order" if lacks_order(findings.profiles[0], findings) else ""
    if not held:
        return "none holds"
    if findings.left > MOST_LEFT:
        return "few belong"
    all_unlike = findings.family is not None and len(hardly_agree(held)) == len(held)
    return "hardly agree" if all_unlike else ""


def _cohesion(findings: Findings) -> float | None:
    if findings.membership is None or not findings.held or len(findings.profiles) == 1:
        return None
    members = np.concatenate([p.members for p in findings.held])
    return float(findings.membership[members].mean())


def groups_to_report(findings: Findings) -> Sequence[Any]:
    """Return the blocs if they come first, else the groups that hold."""
    if findings.blocs_first and findings.blocs is not None:
        return findings.blocs.blocs
    return findings.held


def _unlike(findings: Findings) -> Sequence[int]:
    """Return the numbers of what is reported whose members hardly agree, but have an order."""
    numbers, groups = hardly_agree(groups_to_report(findings)), with_order(findings)
    if findings.blocs_first:
        return numbers
    return [k for k in numbers if any(findings.held[k - 1] is p for p in groups)]


def hardly_agree(groups: Sequence[Any] | Sequence[Bloc]) -> list[int]:
    """Return the numbers, from 1, of the groups or blocs whose members hardly agree."""
    # rounded as it is shown, so that none of 10% is said to be less
    return [k for k, x in enumerate(groups, 1) if round(x.agreement, 2) < HARDLY_AGREE]


def level_of_blocs(blocs: Blocs) -> Level:
    """Judge whether each chain alone leads to the same blocs."""
    number, agree = len(blocs.level.chains_agree), int(blocs.level.chains_agree.sum())
    if blocs.number == 1 or agree == number > 1:
        return "good"
    return "care" if number == 1 or 2 * agree > number else "bad"


# -- fit -------------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """How many shares of first places and preferences are compared and outside their intervals."""

    shares: int
    shares_outside: int
    pairs: int
    pairs_outside: int

    @property
    def checked(self) -> int:
        """How many numbers are compared."""
        return self.shares + self.pairs

    @property
    def outside(self) -> int:
        """How many of them are outside their intervals."""
        return self.shares_outside + self.pairs_outside

    @property
    def misses_something(self) -> bool:
        """Whether more numbers are outside their intervals than by chance."""
        return self.outside > MANY_OUTSIDE * self.checked


def judge_fit(checks: PredictiveChecks) -> Fit:
    """Count what the model does not reproduce."""
    above = np.triu(np.ones(checks.pairs.observed.shape, bool), 1)
    pairs = PredictiveCheck(*(x[above] for x in checks.pairs))
    return Fit(*count_outside(checks.top), *count_outside(pairs))


def count_outside(check: PredictiveCheck) -> tuple[int, int]:
    """Count the numbers that are compared, and those outside their intervals."""
    known = ~np.isnan(check.mean) & ~np.isnan(check.observed)
    low, high = check.interval[known].T
    seen = check.observed[known]
    return int(known.sum()), int(((seen < low) | (seen > high)).sum())


# -- time left -------------------------------------------------------------------------------------


class Outlook(NamedTuple):
    """How many times as long as so far a run has to be in all to reach its goals.

    It is at most 1 if they are reached, and NaN if it cannot be said, for a reason.
    """

    times: float
    reason: str = ""


def outlook(
    r_hat: float,
    ess: float,
    ess_of_half: Callable[[], float],
    rhat_goal: float = R_HAT_GOOD,
    ess_goal: float = ESS_GOOD,
) -> Outlook:
    """Guess how long a run has to be, as :func:`times_as_long`, if it can be said.

    Nothing is said of a run whose chains are in different places (R-hat above 1.2), whose ESS has
    not grown by a quarter in the second half of its draws, or that would have to be more than 30
    times as long. **ess_of_half** returns that of the first half.
    """
    if r_hat > R_HAT_APART:
        return Outlook(math.nan, "the chains are in different places")
    times = times_as_long(r_hat, ess, rhat_goal, ess_goal)
    if math.isnan(times):
        return Outlook(math.nan, "there are too few draws")
    if times > MOST_TIMES:
        text = f"it would have to be more than {MOST_TIMES:.0f} times as long as so far"
        return Outlook(math.nan, text)
    if times > 1 and not ess >= LEAST_GROWTH * ess_of_half():
        return Outlook(
            math.nan, f"ESS, {ess:,.0f}, has hardly grown in the second half of its draws"
        )
    return Outlook(times)


def outlook_of(findings: Findings, status: Status | None = None) -> Outlook:
    """Guess how long a run has to be, with the goals of its status."""

    def ess_of_half() -> float:
        posterior = posterior_of(findings.data)
        half = posterior.isel(draw=slice(0, posterior.sizes["draw"] // 2))
        return worst_of(diagnostics_table({"posterior": half}))[1]

    goals = (R_HAT_GOOD, ESS_GOOD) if status is None else (status.rhat_goal, status.ess_goal)
    return outlook(*worst_of(findings.table), ess_of_half, *goals)


def seconds_needed(findings: Findings, status: Status) -> float:
    """Guess how many seconds more a run has to go on; NaN if it cannot be said."""
    if status.seconds_left is not None:
        return status.seconds_left
    if status.seconds is None:
        return math.nan
    times = outlook_of(findings, status).times
    return status.seconds * (times if math.isnan(times) else max(times, 1.0) - 1.0)
