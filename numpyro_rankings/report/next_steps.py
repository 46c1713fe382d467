"""What to do next: whether to go on with the run and for how long, and what of it can be used."""

import math
import shlex
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numpyro_rankings.posterior import PartitionProfile, WeightsProfile
from numpyro_rankings.posterior.diagnostics import (
    ESS_GOOD,
    R_HAT_APART,
    R_HAT_GOOD,
    diagnostics_table,
    posterior_of,
)
from numpyro_rankings.report import blocs_in_words as said
from numpyro_rankings.report.findings import BEGUN_WITH, Findings
from numpyro_rankings.report.page import Status
from numpyro_rankings.words import duration, percent, plural, share
from numpyro_rankings.words.commands import beside, with_options

if TYPE_CHECKING:
    import pandas as pd

LEAST_GROWTH = 1.25  # of the ESS in the second half of the draws, below which no time is told
MOST_TIMES = 30.0  # as long as so far, above which no time is told
TOGETHER = 0.5  # share of the draws in which two members of a group have to be in one group
MOST_LEFT = 0.5  # share of all in no group that holds, above which there are no clear groups
CHANCE = "where 0% is chance"  # said of an agreement
HARDLY_AGREE = 0.1  # agreement of the members of a bloc or group, below which they hardly agree
# options of fit that go without those that a step proposes
_OF_POOLS = ("--alpha", "--sigma", "--phi", "--gamma")
_OF_MIXTURE = ("--blocs", "--components", "--max-clusters", "--init")


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
        text = (
            "One chain cannot show whether it would end elsewhere from another start. Run it again"
        )
        more = _another(findings, "4-chains", {"--chains": 4})
        steps.append(_step(f"{text} with several (--chains 4)", more))
    if status is not None or findings.verdict.level != "good":
        steps += _go_on(findings, status)
        if worst_of(findings.table)[0] > R_HAT_APART:  # what can be used, before what may help
            return [*_use(findings, status), *steps]
    return [*steps, *_use(findings, status)]


def _go_on(findings: Findings, status: Status | None) -> list[Step]:
    """Say whether it pays to go on, and for how long."""
    found = outlook_of(findings, status)
    command = "" if status is None else status.command or ""
    if found.is_apart:
        text = (
            f"Do not wait for the chains: with R-hat {found.r_hat:.2f} they have found different "
            "groups, and may never agree, however long they run."
        )
        return [Step(text), *instead(findings)]
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


def instead(findings: Findings) -> list[Step]:
    """Say what may do better than to wait for chains that are in different places."""
    number, first = findings.num_components, findings.profiles[0]
    of_seed = _another(findings, "another-seed", {"--seed": _seed(findings) + 1})
    if isinstance(first, PartitionProfile):
        text = "Run it again with another --seed, and trust only groups that are found again"
        return [_step(text, of_seed)]
    if findings.reference is None:
        return [_step("Run it again with another --seed", of_seed)]
    if number is None:
        few = max(2, len(findings.held)) if findings.blocs is None else findings.blocs.number
        return [_components(findings, few, "A fixed number of groups may do better")]
    fewer = "Try fewer groups" if number > 2 else "Try one group"
    steps = [_components(findings, number - 1, fewer)]
    if not isinstance(first, WeightsProfile):
        any_number = _another(findings, "any-number", {}, _OF_MIXTURE)
        text = "Or leave --components out, and use the blocs that are then found"
        steps.append(_step(text, any_number))
    return steps


def _components(findings: Findings, number: int, text: str) -> Step:
    """Propose a fixed number of groups."""
    options: dict[str, object] = {"--components": number}
    dropped = list(_OF_MIXTURE)
    if isinstance(findings.profiles[0], WeightsProfile):
        options = {"--model": "plackett-luce", **options}
        if findings.num_components is None:  # of a pool of items, whose options differ
            dropped += _OF_POOLS
    if number == 1:
        dropped.append("--alpha")
    said_so = " ".join(f"{option} {value}" for option, value in options.items())
    command = _another(findings, plural(number, "group").replace(" ", "-"), options, dropped)
    return _step(f"{text} ({said_so})", command)


def _seed(findings: Findings) -> int:
    seed = findings.details.get("seed", "0")
    return int(seed) if seed.isdecimal() else 0


def _another(
    findings: Findings, name: str, options: Mapping[str, object], dropped: Collection[str] = ()
) -> str:
    """Return the command of another run with these options; nothing if none made the page.

    :param name: what is added to the name of the folder of its results.
    """
    command = findings.details.get(BEGUN_WITH, findings.details.get("command", ""))
    return beside(command, name, options, dropped) if _is_own(command) else ""


def _is_own(command: str) -> bool:
    """Whether a command is one of this package, and not what a caller says of a page."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return words[:2] in (["numpyro-rankings", "fit"], ["numpyro-rankings", "cluster"])


def _use(findings: Findings, status: Status | None) -> list[Step]:
    """Say what can be used as it is."""
    return _use_blocs(findings, status) if findings.blocs_first else _use_groups(findings)


def _use_blocs(findings: Findings, status: Status | None) -> list[Step]:
    blocs = findings.blocs
    assert blocs is not None
    what = plural(blocs.number, "bloc")
    level = said.verdict_of_blocs(blocs).level
    fewer = said.fewer_blocs(blocs, " that all runs find")
    not_groups = ""
    if findings.verdict.level == "bad" and findings.held:
        not_groups = " Do not report the groups."
    if level == "good":
        return [Step(f"Report the {what}.{not_groups}")]
    steps = [Step(f"Report the {what} with care.{not_groups}")] if level == "care" else []
    if fewer:
        command = _with_blocs(findings, status)
        text = f"Or report the {fewer}" if steps else f"Report the {fewer}"
        if not steps and not_groups:
            text += f".{not_groups.removesuffix('.')}"
            text += ". To see the blocs" if command else ""
        steps.append(_step(text, command))
    return steps or [Step("Report neither blocs nor groups.")]


def _with_blocs(findings: Findings, status: Status | None) -> str:
    """Return the command that describes the blocs that all chains find; nothing if none can.

    It goes on with a run that has not ended, and else makes the run again.
    """
    assert findings.blocs is not None
    number = said.agreed_number(findings.blocs)
    if status is not None and status.command is not None and _is_own(status.command):
        return with_options(status.command, {"--blocs": number})
    return _another(findings, f"{number}-blocs", {"--blocs": number})


def _use_groups(findings: Findings) -> list[Step]:
    held = len(findings.held)
    if findings.verdict.level == "bad":
        if findings.reference is None:
            return [Step("Report nothing yet.")]
        is_apart = worst_of(findings.table)[0] > R_HAT_APART
        when = ": the chains do not agree on them" if is_apart else " yet"
        return [Step(f"Do not report the groups{when}.")]
    if findings.reference is None:
        return [Step("Report what all want: there is one group.")]
    if why_unclear(findings):
        return _without_groups(findings)
    what = f"the {plural(held, 'group')}" if held > 1 else "the group"
    hold = "hold" if held > 1 else "holds"
    if is_in_doubt(findings):
        text = f"Report {what} that {hold} as rough types: few members belong to one for sure."
        return [Step(text)]
    return [Step(f"Report {what} that {hold}.")]


def _without_groups(findings: Findings) -> list[Step]:
    """Say what to do where there are no clear groups."""
    steps = [Step("Report no groups.")]
    if not isinstance(findings.profiles[0], PartitionProfile):
        steps.append(_components(findings, 1, "For what all together want, fit one group"))
    return steps


def why_unclear(findings: Findings) -> str:
    """Say why there are no clear groups; nothing if there are, or if there is only one.

    There are none if none holds, if more than half of all belong to none that holds, or if the
    members of all that hold hardly agree.
    """
    held = findings.held
    if findings.reference is None or len(findings.profiles) == 1:
        return ""
    if not held:
        return "none is found again in more than half of the draws"
    left = f"{share(findings.left)} belong to no group that holds"
    if findings.left > MOST_LEFT:
        return left
    hardly = hardly_agree(held)
    if len(hardly) < len(held):
        return ""
    if len(held) == 1:
        its = f"has {share(1 - findings.left)} of all, and its members hardly agree"
        return f"the only one that holds {its} ({agreements(held)}, {CHANCE})"
    all_agree = f"{agreements(held)}, {CHANCE}"
    return f"the members of all {len(held)} that hold hardly agree ({all_agree})"


def hardly_agree(groups: Collection[Any]) -> list[int]:
    """Return the numbers, from 1, of the groups or blocs whose members hardly agree."""
    if any(isinstance(group, PartitionProfile) for group in groups):
        return []  # of points it is not known
    # as it is shown, so that none of 10% is said to be less
    return [k for k, x in enumerate(groups, 1) if round(x.agreement, 2) < HARDLY_AGREE]


def agreements(groups: Collection[Any]) -> str:
    """Return the range of the agreement of groups or blocs in words."""
    found = sorted(x.agreement for x in groups)
    texts = dict.fromkeys(percent(x) for x in (found[0], found[-1]))
    return " to ".join(texts)


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
