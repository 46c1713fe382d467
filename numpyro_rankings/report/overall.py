"""The verdict at the top of the page and of the screen: what to report, in one sentence.

It counts everything: whether the chains agree, how alike the members of a group rank, and whether
the model fits. Its level is the worst of these.
"""

import math
from typing import Literal

import numpy as np

from numpyro_rankings.posterior import PartitionProfile
from numpyro_rankings.posterior.diagnostics import (
    ESS_BAD,
    ESS_GOOD,
    R_HAT_APART,
    R_HAT_BAD,
    R_HAT_GOOD,
    Verdict,
)
from numpyro_rankings.report import blocs_in_words as said
from numpyro_rankings.report.findings import Findings
from numpyro_rankings.report.fit import counts_outside, misses_something
from numpyro_rankings.report.next_steps import (
    CHANCE,
    agreements,
    hardly_agree,
    is_in_doubt,
    members_together,
    why_unclear,
    worst_of,
)
from numpyro_rankings.words import listed, percent, plural, share

_LEVELS: tuple[Literal["good", "care", "bad"], ...] = ("bad", "care", "good")
_NAMED = 3  # groups whose members hardly agree
_Part = tuple[Literal["good", "care", "bad"], str]


def overall(findings: Findings) -> Verdict:
    """Judge the whole result.

    :return: the headline says what to report; the reasons say the rest, the worst first.
    """
    if findings.blocs_first:
        what, *others = _of_blocs(findings)
    else:
        what, *others = _of_groups(findings)
        if findings.blocs is not None:
            of_blocs = said.verdict_of_blocs(findings.blocs)
            asked = plural(findings.blocs.number, "bloc")
            others.append((of_blocs.level, f"The {asked} that you asked for: {of_blocs.headline}"))
    others += [*_agreement(findings), *_fit(findings)]
    level = min((what[0], *(x[0] for x in others)), key=_LEVELS.index)
    others.sort(key=lambda x: _LEVELS.index(x[0]))
    return Verdict(level, what[1], [text for _, text in others])


def _of_blocs(findings: Findings) -> list[_Part]:
    """Say whether to report the blocs, and whether the chains agree on them and on the groups."""
    blocs = findings.blocs
    assert blocs is not None
    what, level = plural(blocs.number, "bloc"), said.verdict_of_blocs(blocs).level
    keep = f"they explain the rankings {said.as_well(blocs.level.kept)} as all groups do."
    runs = f"Only {said.runs_that_agree(blocs)} these blocs."
    if len(blocs.level.chains_agree) == 1:
        runs = "There is one run: others may lead to other blocs."
    agree = "The runs agree on the blocs"
    if findings.verdict.level == "good":
        of_groups: list[_Part] = []
        agree += " and on the groups"
    else:  # blocs can be reported without groups on which the chains agree
        of_groups = [("care", f"Do not rely on the groups: {_of_chains(findings)}.")]
        if findings.verdict.level == "care":
            of_groups = [("care", f"Of the groups, {_of_chains(findings)}.")]
    if blocs.number == 1:
        return [("good", "Report what all want: one bloc is everybody."), *of_groups]
    if level == "good":
        return [("good", f"Report {what}: {keep}"), ("good", f"{agree}."), *of_groups]
    if level == "care":
        return [("care", f"Report {what} with care: {keep}"), ("care", runs), *of_groups]
    fewer = said.fewer_blocs(blocs)
    headline = "Report neither blocs nor groups: the runs lead to different ones."
    if fewer:
        headline = f"Report {fewer}: on these {what} the runs do not agree."
    return [("bad", headline), ("bad", runs), *of_groups]


def _of_groups(findings: Findings) -> list[_Part]:
    """Say whether to report the groups, and whether the chains agree on them."""
    held, level, runs = findings.held, findings.verdict.level, _of_chains(findings)
    is_one = findings.reference is None
    if level == "bad":
        what = "Report nothing" if is_one else "Do not report the groups"
        when = "" if worst_of(findings.table)[0] > R_HAT_APART else " yet"
        return [("bad", f"{what}{when}: {runs}.")]
    chains: _Part = (level, _sentence(runs))
    if is_one:
        return [("good", "Report what all want: one group was fitted."), chains]
    if why := why_unclear(findings):
        return [("care", f"There are no clear groups: {why}."), chains]
    what = plural(len(held), "group")
    if is_in_doubt(findings):
        text = f"Report {what} as rough types: few members belong to one for sure."
        return [("care", text), chains]
    whose = "point" if isinstance(held[0], PartitionProfile) else "ranking"
    has = "it has" if len(held) == 1 else "they have"
    return [("good", f"Report {what}: {has} {share(1 - findings.left)} of the {whose}s."), chains]


def _of_chains(findings: Findings) -> str:
    """Say whether the chains agree, as a clause."""
    level, reasons = findings.verdict.level, findings.verdict.reasons
    r_hat, ess = worst_of(findings.table)
    if level == "good":
        return "the runs agree" + ("" if math.isnan(r_hat) else f" (R-hat {r_hat:.3f})")
    if level == "bad" and r_hat > R_HAT_BAD:
        return f"the runs do not agree (R-hat {r_hat:.2f})"
    if level == "bad" and ess < ESS_BAD:
        return f"the draws are too few (ESS {ess:,.0f})"
    if level == "care" and r_hat > R_HAT_GOOD:
        return f"the runs nearly agree (R-hat {r_hat:.3f})"
    if level == "care" and ess < ESS_GOOD and not math.isnan(r_hat):
        return f"the draws are few (ESS {ess:,.0f})"
    first = reasons[0] if reasons else findings.verdict.headline
    return (first[:1].lower() + first[1:]).removesuffix(".")


def _agreement(findings: Findings) -> list[_Part]:
    """Say whether the members of each bloc or group that is reported rank alike."""
    noun, groups = "group", findings.held
    if findings.blocs_first and findings.blocs is not None:
        noun, groups = "bloc", list(findings.blocs.blocs)
        if said.verdict_of_blocs(findings.blocs).level == "bad":
            return []
    elif findings.verdict.level == "bad" or why_unclear(findings):
        return []
    if not groups or isinstance(groups[0], PartitionProfile):
        return []
    numbers = hardly_agree(groups)
    hardly = [groups[k - 1] for k in numbers]
    if not hardly:
        what = noun if len(groups) == 1 else f"{noun}s"
        return [("good", f"Agreement within the {what}: {agreements(groups)}.")]
    if len(groups) == 1:
        which = f"the {noun}"
    elif len(hardly) > _NAMED:
        which = f"{len(hardly)} {noun}s"
    else:
        which = f"{noun}{'' if len(hardly) == 1 else 's'} {listed(list(map(str, numbers)))}"
    return [("care", f"Members of {which} hardly agree ({agreements(hardly)}, {CHANCE}).")]


def _fit(findings: Findings) -> list[_Part]:
    """Say whether the model fits, if that is known."""
    if findings.checks is None:
        return []
    if not misses_something(findings.checks):
        return [("good", "The model fits.")]
    number, outside = np.sum(counts_outside(findings.checks), axis=0)
    text = f"{outside} of {number} checked numbers are outside their intervals"
    return [("care", f"The model misses something: {text}.")]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def trust(findings: Findings) -> str:
    """Say whether the groups can be trusted: yes, partly or no."""
    level, runs = findings.verdict.level, _of_chains(findings)
    if level == "bad":
        return f"No: {runs}."
    if findings.reference is not None and not findings.held:
        return "No: none holds."
    if level == "care":
        doubt = _doubt(findings)
        return f"Partly: {runs}.{f' {_sentence(doubt)}' if doubt else ''}"
    but = why_unclear(findings) or _doubt(findings)
    if why_unclear(findings) and not findings.blocs_first:  # the verdict on all says why
        return "Yes: the runs agree that there are no clear groups."
    if but:
        return f"Partly: the runs agree, but {but}."
    return f"Yes: {runs}."


def _doubt(findings: Findings) -> str:
    """Say that few belong to their group for sure, if two members are rarely together."""
    together = members_together(findings)
    if together is None or not is_in_doubt(findings):
        return ""
    return (
        f"two members of a group are together in {percent(together)} of the draws, so that few "
        "belong to it for sure"
    )
