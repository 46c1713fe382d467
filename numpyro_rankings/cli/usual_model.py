"""How ``fit`` fits a file where no option says it: by a Dirichlet process, or on ladders.

A process learns the number of groups, but of many different rankings its chains end in different
places (benchmarks/README.md). There the number is chosen as by ``--components auto``. Its ladders
look up each different ranking in each step, so that some of many judges are fitted, as by
``--sample``.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpyro_rankings.cli.fit_options import FitOptions
from numpyro_rankings.cli.models import (
    AUTO,
    LEAST_MINUTES,
    MOST_DIFFERENT,
    MOST_ITEMS,
    MOST_JUDGES,
    MOST_OWN,
    TEMPERED,
)

if TYPE_CHECKING:
    from numpyro_rankings.rankings import Orders, Rankings

CHOSEN = "chosen by default"  # its name in the details of a page


def usual_options(
    options: FitOptions, rankings: "Rankings | Orders", resumes: bool = False
) -> dict[str, Any]:
    """Return the options of a command, by their names, that ``fit`` chooses for a table by itself.

    Nothing if an option says what to fit, if the table has few different rankings or many items, if
    there is little time, or if the ladders do not take it. Then it is fitted as the options say, by
    default by a process.

    :param rankings: of all judges.
    :param resumes: whether a run goes on, so that the time is not the one that it began with.
    """
    from numpyro_rankings.rankings import Rankings  # loads JAX

    is_plain = isinstance(rankings, Rankings) and rankings.choice_sets is None
    is_plain &= rankings.num_items <= MOST_ITEMS
    if not resumes and options.run.minutes is not None and options.run.minutes < LEAST_MINUTES:
        return {}
    if not (options.by_table and is_plain and _are_varied(rankings)):
        return {}
    takes_some = options.sample is None and rankings.num_rankings > MOST_JUDGES
    return {"--components": "auto", **({"--sample": MOST_JUDGES} if takes_some else {})}


def _are_varied(rankings: "Rankings | Orders") -> bool:
    different = rankings.unique().num_rows
    are_own = 2 * different > rankings.num_rankings  # fewer than two judges each, on average
    return different > (MOST_OWN if are_own else MOST_DIFFERENT)


def with_usual(options: FitOptions, usual: Mapping[str, Any]) -> FitOptions:
    """Return the options of a command with those that were chosen, as if they were given."""
    if usual.get("--components") != "auto":
        return options
    chosen: dict[str, Any] = {"components": AUTO, "sampler": TEMPERED}
    chosen |= {"alpha": None, "max_clusters": None}  # those of the ladder
    return replace(
        options,
        model=replace(options.model, **chosen),
        sample=usual.get("--sample", options.sample),
    )


def usual_in_words(usual: Mapping[str, Any], rankings: "Rankings | Orders") -> str:
    """Say what was chosen for a table, why, and how to get something else."""
    chosen = " ".join(f"{option} {value}" for option, value in usual.items())
    others = "--components dp fits a process" + (
        f" to all {rankings.num_rankings:,} judges, and --sample N takes N of them"
        if "--sample" in usual
        else ""
    )
    return (
        f"{rankings.unique().num_rows:,} different rankings: fitted as by {chosen}, because "
        f"chains of a Dirichlet process seldom agree on more than {MOST_DIFFERENT}, or on more "
        f"than {MOST_OWN} if most judges have one of their own; {others}"
    )
