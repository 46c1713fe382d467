"""What to do next: whether to go on with the run and for how long, and what of it can be used."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numpyro_rankings.diagnostics import (
    ESS_GOOD,
    R_HAT_APART,
    R_HAT_GOOD,
    diagnostics_table,
    posterior_of,
)
from numpyro_rankings.report import blocs_in_words as said
from numpyro_rankings.report.findings import Findings
from numpyro_rankings.report.page import Status
from numpyro_rankings.summaries import PartitionProfile, WeightsProfile
from numpyro_rankings.words import duration, plural

if TYPE_CHECKING:
    import pandas as pd

LEAST_GROWTH = 1.25  # of the ESS in the second half of the draws, below which no time is told
MOST_TIMES = 30.0  # as long as so far, above which no time is told
TOGETHER = 0.5  # share of the draws in which two members of a group have to be in one group


class Step(NamedTuple):
    """One thing to do: a sentence or two, and the command that does it, or nothing."""

    text: str
    command: str = ""


class Outlook(NamedTuple):
    """How long a run has to be until its goals are reached.

    - **r_hat**, **ess** - the largest and the least so far; R-hat is NaN of one chain.
    - **times** - as long as so far, in all; at most 1 if the goals are reached, and NaN if it
      cannot be said.
    - **reason** - why it cannot be said, else nothing.
    """

    r_hat: float
    ess: float
    times: float
    reason: str = ""

    @property
    def is_apart(self) -> bool:
        """Whether the chains are in different places."""
        return self.r_hat > R_HAT_APART


def outlook(
    r_hat: float,
    ess: float,
    ess_of_half: Callable[[], float],
    rhat_goal: float = R_HAT_GOOD,
    ess_goal: float = ESS_GOOD,
) -> Outlook:
    """Guess how long a run has to be until its goals are reached.

    In a run whose chains visit the same places, ESS and the reciprocal of R-hat - 1 grow like the
    number of draws. So it has to be as many times as long as so far as the ESS has to grow, or
    R-hat - 1 has to shrink, whichever is more. Nothing is said of a run whose chains are in
    different places (R-hat above 1.2), whose ESS has not grown by a quarter in the second half of
    its draws, or that would have to be more than 30 times as long.

    :param r_hat: the largest.
    :param ess: the least.
    :param ess_of_half: returns the least of the first half of the draws.
    """
    if r_hat > R_HAT_APART:
        return Outlook(r_hat, ess, math.nan, "the chains are in different places")
    times = ess_goal / ess if ess > 0 else math.nan
    if not math.isnan(r_hat):
        times = max(times, (r_hat - 1) / (rhat_goal - 1))
    if math.isnan(times):
        return Outlook(r_hat, ess, math.nan, "there are too few draws")
    if times > MOST_TIMES:
        text = f"it would have to be more than {MOST_TIMES:.0f} times as long as so far"
        return Outlook(r_hat, ess, math.nan, text)
    if times > 1 and not ess >= LEAST_GROWTH * ess_of_half():
        text = f"ESS, {ess:,.0f}, has hardly grown in the second half of its draws"
        return Outlook(r_hat, ess, math.nan, text)
    return Outlook(r_hat, ess, times)


def outlook_of(findings: Findings, status: Status | None = None) -> Outlook:
    """Guess it of a run, with the goals of its status."""
    r_hat, ess = worst_of(findings.table)

    def of_half() -> float:
        posterior = posterior_of(findings.data)
        half = posterior.isel(draw=slice(0, posterior.sizes["draw"] // 2))
        return worst_of(diagnostics_table({"posterior": half}))[1]

    goals = (R_HAT_GOOD, ESS_GOOD) if status is None else (status.rhat_goal, status.ess_goal)
    return outlook(r_hat, ess, of_half, *goals)


def worst_of(table: "pd.DataFrame") -> tuple[float, float]:
    """Return the largest R-hat and the least ESS of a table of diagnostics."""
    moving = table[table["note"] != "constant"]
    if not len(moving):
        return math.nan, math.inf
    return float(moving["r_hat"].max()), float(moving[["ess_bulk", "ess_tail"]].min(axis=None))


def seconds_needed(findings: Findings, status: Status) -> float:
    """Guess how many seconds more a run has to go on; NaN if it cannot be said."""
    if status.seconds_left is not None:
        return status.seconds_left
    if status.seconds is None:
        return math.nan
    times = outlook_of(findings, status).times
    return status.seconds * (times if math.isnan(times) else max(times, 1.0) - 1.0)


def next_steps(findings: Findings, status: Status | None = None) -> list[Step]:
    """Say what to do next.

    :param status: of a run that did not end by itself, with the command that goes on with it.
    """
    if findings.data is None:  # the run goes on, and says how long
        return []
    steps = []
    if posterior_of(findings.data).sizes["chain"] == 1:
        text = "Run it again with several chains (--chains 4): one chain cannot show whether it"
        steps.append(Step(f"{text} would end elsewhere from another start."))
    if status is not None or findings.verdict.level != "good":
        steps += _go_on(findings, status)
    return [*steps, *_use(findings)]


def _go_on(findings: Findings, status: Status | None) -> list[Step]:
    """Say whether it pays to go on, and for how long."""
    found = outlook_of(findings, status)
    command = "" if status is None else status.command or ""
    if found.is_apart:
        text = (
            f"Do not wait for the chains: with R-hat {found.r_hat:.2f} they have found different "
            f"groups, and may never agree, however long they run. {_instead(findings)}"
        )
        return [Step(text)]
    if status is not None and status.seconds_left is not None:
        text = f"Go on to the end of its length, for about {duration(status.seconds_left)}"
        return [_step(text, command)]
    if math.isnan(found.times):
        text = f"How long the run still has to go on cannot be said: {found.reason}"
        return [_step(text if not command else f"{text}. To go on", command)]
    if found.times <= 1:
        return []
    if status is None or status.seconds is None:
        text = (
            f"For numbers to rely on, make the run about {found.times:.1f} times as long (more "
            "--minutes or --draws)."
        )
        return [Step(text)]
    time = duration(status.seconds * (found.times - 1))
    text = (
        f"Go on for about {time}, if the run continues as so far (a guess: half or three times as "
        "long is possible)"
    )
    return [_step(text, command)]


def _step(text: str, command: str) -> Step:
    """Return a step with its command, if there is one."""
    return Step(f"{text}:" if command else f"{text}.", command)


def _instead(findings: Findings) -> str:
    """Say what may do better than to wait for chains that are in different places."""
    number, first = findings.num_components, findings.profiles[0]
    if isinstance(first, PartitionProfile):
        return "Run it again with another --seed, and trust only groups that are found again."
    if number is not None:
        fewer = f"Try {'fewer groups' if number > 2 else 'one group'}: --components {number - 1}"
        if isinstance(first, WeightsProfile):
            return f"{fewer}."
        return f"{fewer}. Or leave --components out, and use the blocs that are then found."
    if findings.reference is None:
        return "Run it again with another --seed."
    few = max(2, len(findings.held)) if findings.blocs is None else findings.blocs.number
    model = "--model plackett-luce " if isinstance(first, WeightsProfile) else ""
    return f"A fixed number of groups may do better: {model}--components {few}."


def _use(findings: Findings) -> list[Step]:
    """Say what can be used as it is."""
    texts = _use_blocs(findings) if findings.blocs_first else _use_groups(findings)
    return [Step(text) for text in texts]


def _use_blocs(findings: Findings) -> list[str]:
    blocs = findings.blocs
    assert blocs is not None
    what = plural(blocs.number, "bloc")
    level, agreed = said.verdict_of_blocs(blocs).level, said.agreed_number(blocs)
    others = "" if agreed is None else f"the {agreed} blocs that all chains find (--blocs {agreed})"
    if level == "good":
        use = f"Report the {what}."
    elif level == "care":
        use = f"Report the {what} with care{', or ' if others else ''}{others}."
    else:
        use = f"Report {others}." if others else "Report neither blocs nor groups yet."
    if findings.verdict.level == "bad" and findings.held and not use.startswith("Report neither"):
        use += " Do not report the groups."
    return [use]


def _use_groups(findings: Findings) -> list[str]:
    held = len(findings.held)
    if findings.verdict.level == "bad":
        if findings.reference is None:
            return ["Report nothing yet."]
        is_apart = worst_of(findings.table)[0] > R_HAT_APART
        when = ": the chains do not agree on them" if is_apart else " yet"
        return [f"Do not report the groups{when}."]
    if findings.reference is None:
        return ["Report what all want: there is one group."]
    if not held:
        text = "No group can be reported."
        if not isinstance(findings.profiles[0], PartitionProfile):
            text += " Try a fixed number of groups, such as --components 2, or one, --components 1."
        return [text]
    what = f"the {plural(held, 'group')}" if held > 1 else "the group"
    hold = "hold" if held > 1 else "holds"
    if is_in_doubt(findings):
        text = f"Report {what} that {hold} as rough types: few members belong to one for sure."
        return [text]
    return [f"Report {what} that {hold}."]


def is_in_doubt(findings: Findings) -> bool:
    """Whether two members of a group that holds are rarely together."""
    together = members_together(findings)
    return together is not None and together < TOGETHER


def members_together(findings: Findings) -> float | None:
    """Return how often two members of a group that holds are together; None if it says nothing."""
    if findings.membership is None or not findings.held or len(findings.profiles) == 1:
        return None
    members = np.concatenate([p.members for p in findings.held])
    return float(findings.membership[members].mean())
