"""What screen and page say of blocs, the coarse view of a fit with many groups."""

from collections.abc import Sequence

import numpy as np

from numpyro_rankings import words
from numpyro_rankings.diagnostics import Verdict
from numpyro_rankings.summaries import Bloc, BlocLevel, Blocs
from numpyro_rankings.words import percent, plural

BEFORE_EXPLAINED = (
    "A before B: of the members who order the two, at least 60% put A first. Items that are close "
    "are so in the view of the bloc as a whole: less than 60% of it prefer either."
)


def verdict_of_blocs(blocs: Blocs) -> Verdict:
    """Judge whether the chains find the same blocs."""
    level = blocs.level
    number, agree = len(level.chains_agree), int(level.chains_agree.sum())
    what = plural(level.number, "bloc")
    if number == 1:
        text = "Whether another chain has the same blocs is not known: run at least two."
        return Verdict("care", f"{what}, found from one chain.", [text, _starts(level)])
    if agree == number:
        headline = f"{what}, found from all {number} chains."
        return Verdict("good", headline, [_starts(level)])
    reasons = [*_where_others_end(blocs), _starts(level), *_agreed(blocs)]
    if 2 * agree > number:
        return Verdict("care", f"{what}, found from {agree} of {number} chains.", reasons)
    headline = f"{what}, found from {agree} of {number} chains only: do not rely on all of them."
    return Verdict("bad", headline, reasons)


def _starts(level: BlocLevel) -> str:
    number = int(np.isfinite(level.start_kept).sum())
    return (
        f"{level.num_arrived} of {plural(number, 'start')} end at these blocs by themselves; a "
        "start merges the groups of one draw and improves the result."
    )


def _where_others_end(blocs: Blocs) -> list[str]:
    """Say of each chain that ends elsewhere how much its blocs keep."""
    level, lines = blocs.level, []
    others: dict[str, list[int]] = {}
    for chain in np.flatnonzero(~level.chains_agree):
        kept = level.start_kept[blocs.start_chain == chain]
        if np.isnan(kept).all():
            text = f"fewer than {plural(level.number, 'group')} to merge"
        else:
            less = level.kept - float(np.nanmax(kept))
            text = f"other blocs, which keep {_less(less)}"
        others.setdefault(text, []).append(int(chain) + 1)
    for text, chains in others.items():
        one = len(chains) == 1
        verb = ("has" if one else "have") if text.startswith("fewer") else None
        verb = verb or ("ends at" if one else "end at")
        lines.append(f"{_chains(chains)} {verb} {text}.")
    return lines


def _less(less: float) -> str:
    return "as much" if less < 0.005 else f"{percent(less)} less"


def _chains(chains: Sequence[int]) -> str:
    names = [str(chain) for chain in chains]
    if len(names) == 1:
        return f"Chain {names[0]}"
    return f"Chains {', '.join(names[:-1])} and {names[-1]}"


def _agreed(blocs: Blocs) -> list[str]:
    """Name the largest smaller number of blocs that all chains agree on."""
    for level in blocs.levels[blocs.number - 2 : 0 : -1]:
        if level.chains_agree.all():
            return [f"All chains find the same {plural(level.number, 'bloc')}."]
    return []


def how_many_blocs(blocs: Blocs) -> str:
    """Say how many blocs there are, and what they keep."""
    level = blocs.level
    return (
        f"{plural(level.number, 'bloc')}, which keep {percent(level.kept)} of what all groups of a "
        "draw say about the rankings."
    )


def kept_in_words(blocs: Blocs) -> list[str]:
    """Say what each number of blocs keeps, a line for each from 2 on."""
    return [f"{plural(level.number, 'bloc')}: {share_kept(level)}" for level in blocs.levels[1:]]


def share_kept(level: BlocLevel) -> str:
    """Say what a number of blocs keeps, with its interval: ``49.2% (48.1–50.3%)``."""
    low, high = (100 * x for x in level.kept_interval)
    return f"{words.share(level.kept)} ({low:.1f}–{high:.1f}%)"


def size_of_bloc(bloc: Bloc, total: int) -> str:
    """Say how large a bloc is, with the interval of its size."""
    return (
        f"{words.size(bloc.size)}, {words.share(bloc.size / total)} of all "
        f"(90% interval {words.interval(bloc.size_interval)})"
    )


def wants_of_bloc(bloc: Bloc) -> str:
    """Say what the members of a bloc want."""
    return words.order_in_words(bloc.levels)


def names_of_blocs(number: int) -> list[str]:
    """Return what the blocs of a level are called: by their places, the largest first."""
    return [f"bloc {k}" for k in range(1, number + 1)]
