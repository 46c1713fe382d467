"""The verdict at the top of the page and of the screen: what to report, in one sentence.

It counts everything: whether the chains agree, how alike the members of a group rank, and whether
the model fits. Its level is the worst of these.
"""

import math
from collections.abc import Collection
from typing import Any

from numpyro_rankings.posterior import Blocs
from numpyro_rankings.posterior.diagnostics import Verdict
from numpyro_rankings.rankings.counts import never_compared
from numpyro_rankings.report import blocs_in_words as said
from numpyro_rankings.report.findings import Findings
from numpyro_rankings.report.judgements import (
    Judgements,
    Level,
    groups_to_report,
    judgements_of,
    round_trips,
    with_order,
)
from numpyro_rankings.report.page import sentence
from numpyro_rankings.words import listed, percent, plural, share

_LEVELS: tuple[Level, ...] = ("bad", "care", "good")
_NAMED = 3  # groups whose members hardly agree
_CHANCE = "where 0% is chance"  # said of an agreement
_NO_TRIPS = "but not every one has come back from the prior: good evidence, but no proof"
_Part = tuple[Level, str]


def overall(findings: Findings) -> Verdict:
    """Judge the whole result: the headline says what to report, the reasons say the rest."""
    judged, blocs = judgements_of(findings), findings.blocs
    if blocs is not None and findings.blocs_first:
        what, *others = _describe_blocs(findings, judged, blocs)
    else:
        what, *others = _describe_groups(findings, judged)
        if blocs is not None:
            level, headline, _ = said.verdict_of_blocs(blocs)
            asked = plural(blocs.number, "bloc")
            others.append((level, f"The {asked} that you asked for: {headline}"))
    others += [*_describe_agreement(findings, judged), *_describe_fit(judged)]
    if findings.mistakes is not None:
        others.append(("good", findings.mistakes_in_words))
    if findings.weighting:
        others.append(("good", findings.weighting))
    if findings.apart:
        others.append(("care", f"{sentence(never_compared(findings.apart))}."))
    level = min((what[0], *(x[0] for x in others)), key=_LEVELS.index)
    others.sort(key=lambda x: _LEVELS.index(x[0]))
    return Verdict(level, what[1], [text for _, text in others])


def _describe_blocs(findings: Findings, judged: Judgements, blocs: Blocs) -> list[_Part]:
    """Say whether to report the blocs, and whether the chains agree on them and on the groups."""
    what = plural(blocs.number, "bloc")
    keep = f"they explain the rankings {said.as_well(blocs.level.kept)} as all groups do."
    agree = "The runs agree on the blocs and on the groups."
    groups: list[_Part] = []
    if judged.chains != "good":  # blocs can be reported without groups on which the chains agree
        agree = "The runs agree on the blocs."
        but = "Do not rely on the groups" if judged.chains == "bad" else "Use the groups with care"
        groups = [("care", f"{but}: {_describe_chains(findings, judged)}.")]
    if judged.blocs != "bad" and all(map(said.lacks_order, blocs.blocs)):
        headline = "There is no common order: all together agree hardly more than by chance."
        if blocs.number > 1:
            headline = "There are no clear blocs: their members agree hardly more than by chance."
        return [("care", headline), *groups]
    if blocs.number == 1:
        return [
            ("good", "Report what all together want: there is one bloc."),
            *groups,
        ]
    if judged.blocs == "good":
        return [("good", f"Report {what}: {keep}"), ("good", agree), *groups]
    runs = f"Only {said.runs_that_agree(blocs)} these blocs."
    if len(blocs.level.chains_agree) == 1:
        runs = "There is one run: others may lead to other blocs."
    if judged.blocs == "care":
        return [("care", f"Report {what} with care: {keep}"), ("care", runs), *groups]
    headline = "Report neither blocs nor groups: the runs lead to different ones."
    if fewer := said.fewer_blocs(blocs):
        headline = f"Report {fewer}: on these {what} the runs do not agree."
    return [("bad", headline), ("bad", runs), *groups]


def _describe_groups(findings: Findings, judged: Judgements) -> list[_Part]:
    """Say whether to report the groups, and whether the chains agree on them."""
    runs, is_one = _describe_chains(findings, judged), findings.reference is None
    if judged.chains == "bad":
        what = "Report nothing" if is_one else "Do not report the groups"
        return [("bad", f"{what}{'' if judged.are_apart else ' yet'}: {runs}.")]
    chains: _Part = (judged.chains, f"{sentence(runs)}.")
    if judged.unclear == "no order":
        return [("care", _describe_no_order(findings)), chains]
    if is_one:
        return [("good", "Report what all together want: there is one group."), chains]
    if judged.unclear:
        return [("care", f"There are no clear groups: {_why_unclear(findings, judged)}."), chains]
    ordered = with_order(findings)
    held = len(ordered)
    what, has = plural(held, "group"), "it has" if held == 1 else "they have"
    if judged.is_doubtful:
        text = f"Report {what} as rough types: few members belong to one for sure."
        return [("care", text), chains]
    of_all = sum(p.mean_size for p in ordered) / findings.total
    of_how_many = "all" if share(of_all) == share(1.0) else share(of_all)
    text = f"Report {what}: {has} {of_how_many} of the {findings.noun}s."
    if without := sum(p.mean_size for p in findings.held) / findings.total - of_all:
        chains = (chains[0], f"{share(without)} follow none of these. {chains[1]}")
    return [("good", text), chains]


def _describe_chains(findings: Findings, judged: Judgements) -> str:
    """Say whether the chains agree, as a clause."""
    r_hat, ess, is_bad = judged.r_hat, judged.ess, judged.chains == "bad"
    if judged.chains == "good":
        agree = "the runs agree" + ("" if math.isnan(r_hat) else f" (R-hat {r_hat:.3f})")
        return agree if round_trips(findings) != 0 else f"{agree}, {_NO_TRIPS}"
    if judged.cause == "R-hat":
        agree = (
            f"do not agree (R-hat {r_hat:.2f})" if is_bad else f"nearly agree (R-hat {r_hat:.3f})"
        )
        return f"the runs {agree}"
    if judged.cause == "ESS":
        return f"the draws are {'too few' if is_bad else 'few'} (ESS {ess:,.0f})"
    reasons = findings.verdict.reasons
    first = reasons[0] if reasons else findings.verdict.headline
    return (first[:1].lower() + first[1:]).removesuffix(".")


def _why_unclear(findings: Findings, judged: Judgements) -> str:
    """Say why there are no clear groups; nothing if there are, or if there is only one."""
    held = findings.held
    if judged.unclear == "none holds":
        return "none is found again in more than half of the draws"
    if judged.unclear == "few belong":
        return f"{share(findings.left)} are in groups that do not hold"
    if judged.unclear == "":
        return ""
    if judged.unclear == "no order":
        return "the only group has no common order"
    how_alike = f"({_agreements(held)}, {_CHANCE})"
    if len(held) == 1:
        its = f"has {share(1 - findings.left)} of all, and its members hardly agree"
        return f"the only one that holds {its} {how_alike}"
    return f"the {len(held)} that hold have members who hardly agree {how_alike}"


def _describe_no_order(findings: Findings) -> str:
    """Say that all together have no common order, and how sure this is."""
    one, what = findings.profiles[0], "There is no common order"
    if findings.reference is not None:
        what = "There are no clear groups, and no common order"
    agreement = f"agreement {percent(one.agreement)}, {_CHANCE}"
    strength = one.strength() if findings.with_intervals else ""
    how_alike = "; ".join(filter(None, (agreement, strength)))
    return f"{what}: all together agree hardly more than by chance ({how_alike})."


def _describe_agreement(findings: Findings, judged: Judgements) -> list[_Part]:
    """Say whether the members of each bloc or group that is reported rank alike."""
    if judged.unlike is None:
        return []
    groups, numbers = groups_to_report(findings), judged.unlike
    noun = "bloc" if findings.blocs_first else "group"
    if not numbers:
        what = noun if len(groups) == 1 else f"{noun}s"
        return [("good", f"Agreement within the {what}: {_agreements(groups)}.")]
    if len(groups) == 1:
        which = f"the {noun}"
    elif len(numbers) > _NAMED:
        which = f"{len(numbers)} {noun}s"
    else:
        which = f"{noun}{'' if len(numbers) == 1 else 's'} {listed(list(map(str, numbers)))}"
    how_alike = f"({_agreements([groups[k - 1] for k in numbers])}, {_CHANCE})"
    return [("care", f"Members of {which} hardly agree {how_alike}.")]


def _agreements(groups: Collection[Any]) -> str:
    """Return the range of the agreement of groups or blocs in words."""
    ordered = sorted(x.agreement for x in groups)
    return " to ".join(dict.fromkeys(percent(x) for x in (ordered[0], ordered[-1])))


def _describe_fit(judged: Judgements) -> list[_Part]:
    """Say whether the model fits, if that is known."""
    if judged.fit is None:
        return []
    if not judged.fit.misses_something:
        return [("good", "The model fits.")]
    text = (
        f"{judged.fit.outside} of {judged.fit.checked} checked numbers are outside their intervals"
    )
    return [("care", f"The model misses something: {text}.")]


def trust(findings: Findings) -> str:
    """Say whether the groups can be trusted: yes, partly or no."""
    judged = judgements_of(findings)
    runs, doubt = _describe_chains(findings, judged), _describe_doubt(judged)
    if judged.chains == "bad":
        return f"No: {runs}."
    if findings.reference is not None and not findings.held:
        return "No: no group holds."
    if judged.chains == "care":
        return f"Partly: {runs}.{f' {sentence(doubt)}.' if doubt else ''}"
    if judged.unclear == "no order" and not findings.blocs_first:
        return "Yes: the runs agree that there is no common order."
    if judged.unclear and not findings.blocs_first:  # the verdict on all says why
        return "Yes: the runs agree that there are no clear groups."
    if but := _why_unclear(findings, judged) or doubt:
        return f"Partly: the runs agree, but {but}."
    return f"Yes: {runs}."


def _describe_doubt(judged: Judgements) -> str:
    """Say that few belong to their group for sure, if two members are rarely together."""
    if judged.cohesion is None or not judged.is_doubtful:
        return ""
    return (
        f"two members of a group are together in {percent(judged.cohesion)} of the draws, so that "
        "few belong to it for sure"
    )
