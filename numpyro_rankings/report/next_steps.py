"""What to do next: whether to go on with the run and for how long, and what of it can be used."""

import math
import shlex
from collections.abc import Collection, Mapping
from typing import NamedTuple

from numpyro_rankings.infer.tempered.kernel import COMPONENT_MODELS
from numpyro_rankings.posterior import Blocs
from numpyro_rankings.posterior.diagnostics import posterior_of
from numpyro_rankings.report import blocs_in_words as said
from numpyro_rankings.report.findings import BEGUN_WITH, Findings
from numpyro_rankings.report.judgements import (
    Judgements,
    judgements_of,
    outlook_of,
    round_trips,
    with_order,
)
from numpyro_rankings.report.page import Status
from numpyro_rankings.report.path_in_words import may_be_more
from numpyro_rankings.words import duration, plural
from numpyro_rankings.words.commands import (
    DEFAULT_MODEL,
    beside,
    compare_command,
    value_of,
    with_options,
)

# options of fit that go without those that a step proposes
_OF_POOLS = ("--alpha", "--sigma", "--phi", "--gamma")
_OF_MIXTURE = ("--blocs", "--components", "--max-clusters", "--init")
_MINUTES, _TIMES_MORE = 10, 4  # of fit by default, and how much longer it may look for groups
_SAMPLE = 2000  # of more, because a ladder looks up each different ranking in each step
_OF_RUNS = "fit", "cluster"  # the commands that make them
_OF_SAMPLER = ("--assignment", "--approximate", "--sigma", "--phi", "--gamma")


class Step(NamedTuple):
    """One thing to do: a sentence or two, and the command that does it, or nothing."""

    text: str
    command: str = ""


def next_steps(findings: Findings, status: Status | None = None) -> list[Step]:
    """Say what to do next.

    :param status: of a run that did not end by itself, with the command that goes on with it.
    """
    if findings.data is None:  # the run goes on, and says how long
        return []
    judged = judgements_of(findings)
    more = _more_components(findings)
    return [*_of_results(findings, judged, status), *more, *_compare(findings, judged)]


def _of_results(findings: Findings, judged: Judgements, status: Status | None) -> list[Step]:
    """Say whether to go on, and what can be used."""
    steps = list[Step]()
    if posterior_of(findings.data).sizes["chain"] == 1:
        text = (
            "One chain cannot show whether it would end elsewhere from another start. Run it again"
        )
        more = _another(findings, "4-chains", {"--chains": 4})
        steps.append(_step(f"{text} with several (--chains 4)", more))
    use = _use_groups(findings, judged)
    if findings.blocs is not None and findings.blocs_first:
        use = _use_blocs(findings, judged, findings.blocs, status)
    if status is None and judged.chains == "good":
        return [*steps, *use]
    if not judged.are_apart:
        return [*steps, *_go_on(findings, status), *use]
    places = "are in different places"
    if findings.reference is not None:
        places = "have found different groups"
    text = (
        f"Do not wait for the chains: with R-hat {judged.r_hat:.2f} they {places}, and may never "
        "agree, however long they run."
    )
    # what can be used, before what may help
    return [*use, *steps, Step(text), *instead(findings)]


def _more_components(findings: Findings) -> list[Step]:
    """Propose to try more components, if there was no time for them."""
    if findings.path is None or findings.path.attrs["ended"] != "time":
        return []
    if not may_be_more(findings.path):
        return []
    command = findings.details.get(BEGUN_WITH, findings.details.get("command", ""))
    given = value_of(shlex.split(command), "--minutes") if _is_own(command) else None
    minutes = f"{_TIMES_MORE * float(given or _MINUTES):g}"
    text = (
        f"More groups may be there than there was time to try. Look for them (--minutes {minutes})"
    )
    return [_step(text, _another(findings, "longer", {"--minutes": minutes}))]


def _compare(findings: Findings, judged: Judgements) -> list[Step]:
    """Propose to look for a model that fits better, if this one misses something."""
    command = findings.details.get(BEGUN_WITH, findings.details.get("command", ""))
    if findings.family is None or judged.fit is None or not judged.fit.misses_something:
        return []
    text = "The model misses something. See which model and number of groups predict better"
    return [_step(text, compare_command(command) if _is_own(command, "fit") else "")]


def _go_on(findings: Findings, status: Status | None) -> list[Step]:
    """Say whether it pays to go on, and for how long."""
    command = "" if status is None else status.command or ""
    if status is not None and status.seconds_left is not None:
        text = f"Go on to the end of its length, for about {duration(status.seconds_left)}"
        return [_step(text, command)]
    times, reason = outlook_of(findings, status)
    if math.isnan(times):
        text = f"How long the run still has to go on cannot be said: {reason}"
        return [_step(text if not command else f"{text}. To go on", command)]
    if times <= 1:
        return []
    if status is None or status.seconds is None:
        text = (
            f"For numbers to rely on, make the run about {times:.1f} times as long (more "
            "--minutes or --draws)."
        )
        return [Step(text)]
    text = (
        f"Go on for about {duration(status.seconds * (times - 1))}, if the run "
        "continues as so far (a guess: half or three times as long is possible)"
    )
    return [_step(text, command)]


def _step(text: str, command: str) -> Step:
    """Return a step with its command, if there is one."""
    return Step(f"{text}:" if command else f"{text}.", command)


def instead(findings: Findings) -> list[Step]:
    """Say what may do better than to wait for chains that are in different places."""
    number = findings.num_components
    of_seed = _another(findings, "another-seed", {"--seed": _seed(findings) + 1})
    if findings.family is None:
        text = "Run it again with another --seed, and trust only groups that are found again"
        return [_step(text, of_seed)]
    if findings.reference is None or number == 1:  # ladders have labels of one component, too
        return [_step("Run it again with another --seed", of_seed)]
    has_ladders = findings.family.with_components in COMPONENT_MODELS
    if number is None and has_ladders:
        return [_by_ladders(findings, "auto")]
    if number is None:
        return [_step("Run it again with another --seed", of_seed)]
    fewer = "Try fewer groups" if number > 2 else "Try one group"
    steps = [_components(findings, number - 1, fewer)]
    if not _is_tempered(findings):
        return [_by_ladders(findings, number), *steps] if has_ladders else steps
    half = round(_at_the_end(findings, "rung_effective_size") / 2)
    if half < 2:
        return steps
    text = f"Or ask what fewer rankings would tell (--effective-size {half})"
    options = {"--components": number, "--sampler": "tempered", "--effective-size": half}
    less = _another(findings, f"as-{half}", options, _OF_MIXTURE)
    return [*steps, _step(text, less)]


def _by_ladders(findings: Findings, number: object) -> Step:
    """Propose the sampler whose answer does not depend on the start."""
    model = _with_model(findings)
    options = {**model, "--components": number, "--sampler": "tempered"}
    text = "Chains on ladders may find the same groups from every start (--sampler tempered)"
    if number == "auto" and findings.total > _SAMPLE:
        options["--sample"] = _SAMPLE
        text += f". With so many rankings let them find those of {_SAMPLE:,} (--sample)"
    command = _another(findings, "tempered", options, (*_OF_MIXTURE, "--alpha", *_OF_SAMPLER))
    return _step(text, command)


def _is_tempered(findings: Findings) -> bool:
    return round_trips(findings) is not None


def _at_the_end(findings: Findings, name: str) -> float:
    """Return what the last rung of a ladder has, which is that of the model."""
    return float(findings.data["sample_stats"][name].values[0, -1, -1])


def _components(findings: Findings, number: int, text: str) -> Step:
    """Propose a fixed number of groups."""
    options: dict[str, object] = {**_with_model(findings), "--components": number}
    dropped = list(_OF_MIXTURE)
    if "--model" in options and findings.num_components is None:
        dropped += _OF_POOLS  # the options of a pool of items differ
    if _is_tempered(findings):
        options["--sampler"] = "tempered"
        if _at_the_end(findings, "rung_power") < 1:  # also if --components auto chose it
            size = _at_the_end(findings, "rung_effective_size")
            options["--effective-size"] = f"{size:.6g}"
    if number == 1:
        dropped += ["--alpha", "--shares-by"]
    said_so = " ".join(f"{option} {value}" for option, value in options.items())
    command = _another(findings, plural(number, "group").replace(" ", "-"), options, dropped)
    return _step(f"{text} ({said_so})", command)


def _with_model(findings: Findings) -> dict[str, object]:
    """Return the option of the model with a fixed number of components, if it is not the usual."""
    family = findings.family
    if family is None or family.with_components == DEFAULT_MODEL:
        return {}
    return {"--model": family.with_components}


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


def _is_own(command: str, *verbs: str) -> bool:
    """Whether a command is one of this package, and not what a caller says of a page."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return words[:1] == ["numpyro-rankings"] and words[1:2] in [[x] for x in verbs or _OF_RUNS]


def _use_blocs(
    findings: Findings, judged: Judgements, blocs: Blocs, status: Status | None
) -> list[Step]:
    """Say which blocs can be used as they are."""
    what = plural(blocs.number, "bloc")
    fewer = said.fewer_blocs(blocs, " that all runs find")
    not_groups = ""
    if judged.chains == "bad" and findings.held:
        not_groups = " Do not report the groups."
    if judged.blocs != "bad" and all(map(said.lacks_order, blocs.blocs)):
        return [Step("Report that there is no common order.")]
    if judged.blocs == "good":
        return [Step(f"Report the {what}.{not_groups}")]
    steps = [Step(f"Report the {what} with care.{not_groups}")] if judged.blocs == "care" else []
    if fewer:
        command = _with_blocs(findings, blocs, status)
        text = f"Or report the {fewer}" if steps else f"Report the {fewer}"
        if not steps and not_groups:
            text += f".{not_groups.removesuffix('.')}"
            text += ". To see the blocs" if command else ""
        steps.append(_step(text, command))
    return steps or [Step("Report neither blocs nor groups.")]


def _with_blocs(findings: Findings, blocs: Blocs, status: Status | None) -> str:
    """Return the command that describes the blocs that all chains find; nothing if none can.

    It goes on with a run that has not ended, and else makes the run again.
    """
    number = said.agreed_number(blocs)
    if status is not None and status.command is not None and _is_own(status.command):
        return with_options(status.command, {"--blocs": number})
    return _another(findings, f"{number}-blocs", {"--blocs": number})


def _use_groups(findings: Findings, judged: Judgements) -> list[Step]:
    """Say which groups can be used as they are."""
    if judged.chains == "bad":
        if findings.reference is None:
            return [Step("Report nothing yet.")]
        when = ": the chains do not agree on them" if judged.are_apart else " yet"
        return [Step(f"Do not report the groups{when}.")]
    if judged.unclear == "no order":
        return [Step("Report that there is no common order.")]
    if findings.reference is None:
        return [Step("Report what all together want: there is one group.")]
    if judged.unclear:
        return _without_groups(findings)
    held = len(with_order(findings))
    what = f"the {plural(held, 'group')} that hold" if held > 1 else "the group that holds"
    if held < len(findings.held):
        what = f"the {plural(held, 'group')} with a common order"
    if judged.is_doubtful:
        return [Step(f"Report {what} as rough types: few members belong to one for sure.")]
    return [Step(f"Report {what}.")]


def _without_groups(findings: Findings) -> list[Step]:
    """Say what to do where there are no clear groups."""
    steps = [Step("Report no groups.")]
    if findings.family is not None:
        steps.append(_components(findings, 1, "For what all together want, fit one group"))
    return steps
