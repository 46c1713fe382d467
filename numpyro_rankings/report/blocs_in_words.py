"""What screen and page say of blocs, the coarse view of a fit with many groups."""

from collections.abc import Sequence

import numpy as np

from numpyro_rankings import words
from numpyro_rankings.posterior import Bloc, BlocLevel, Blocs
from numpyro_rankings.posterior.diagnostics import ESS_BAD, Verdict
from numpyro_rankings.report.judgements import least_agreement, level_of_blocs
from numpyro_rankings.words import percent, plural

NO_ORDER_IN_WORDS = "no common order: these judges agree hardly more than by chance"
BEFORE_EXPLAINED = (
    "A before B: of the members who order the two, at least 60% put A first; such a pair is clear. "
    "Close: not clear. Roughly in this order: at least half of the pairs are clear, and none "
    "contradicts it."
)
NO_INTERVALS = (
    f"No intervals of sizes are shown: the effective sample size (ESS) is below {ESS_BAD}, too "
    "small for them."
)
_INTERVAL_EXPLAINED = (
    "The interval of a size is that of the whole bloc over the draws, with the blocs as they are; "
    "it does not say how surely a member belongs to it."
)
_CERTAINTY_EXPLAINED = (
    "Certainty: how probable it is that a member belongs to its bloc. Agreement: how alike its "
    "members rank, 0% if at random, 100% if all alike; below 10% they hardly agree."
)
_KEPT_EXPLAINED = (
    "Kept: how well the blocs explain the rankings. 100% is as well as all groups do, and 0% is no "
    "better than one group with everybody in it."
)
_MORE_THAN_ALL = (
    " More than 100% is possible, because the blocs are fitted as well as possible, and the groups "
    "of a draw are not; it is shown as 100%."
)


def verdict_of_blocs(blocs: Blocs) -> Verdict:
    """Say whether each chain alone leads to the same blocs: yes, partly or no."""
    number, what = len(blocs.level.chains_agree), plural(blocs.number, "bloc")
    if blocs.number == 1:
        return Verdict("good", "Yes: there is only one bloc, with everybody in it.", [])
    level, starts = level_of_blocs(blocs), _starts(blocs.level)
    if number == 1:
        text = f"Partly: one run leads to these {what}, and others may lead elsewhere."
        return Verdict(level, text, ["Run at least two chains.", starts])
    everyone = "both" if number == 2 else f"all {number}"
    if level == "good":
        return Verdict(level, f"Yes: {everyone} runs lead to the same {what}.", [starts])
    fewer = fewer_blocs(blocs)
    but = f"; {everyone} lead to the same {fewer}" if fewer else ""
    judged = "Partly:" if level == "care" else "No: only"
    text = f"{judged} {runs_that_agree(blocs)} these {what}{but}."
    return Verdict(level, text, [*_where_others_end(blocs), starts])


def _starts(level: BlocLevel) -> str:
    """Say how many starts of the search arrive at the blocs."""
    arrived = level.num_arrived
    lead = f"{plural(arrived, 'start')} {'leads' if arrived == 1 else 'lead'} to them"
    if arrived == 0:
        lead = "no start leads to them directly, but further steps of the search do"
    return f"The search has {plural(len(level.arrived), 'start')} and keeps the best blocs: {lead}."


def runs_that_agree(blocs: Blocs) -> str:
    """Say how many runs lead to the blocs, without these: ``3 of 4 runs lead to``."""
    agree = blocs.level.chains_agree
    return f"{agree.sum()} of {len(agree)} runs {'leads' if agree.sum() == 1 else 'lead'} to"


def _where_others_end(blocs: Blocs) -> list[str]:
    """Say of each chain that leads to other blocs how much these keep."""
    level = blocs.level
    others: dict[str, list[int]] = {}
    for chain in np.flatnonzero(~level.chains_agree):
        kept = float(level.chain_kept[chain])
        less = shown(level.kept) - shown(kept)
        how_much = "as much" if less < 0.005 else f"{percent(less)} less"
        text = f"leads to other blocs, which keep {how_much}"
        if np.isnan(kept):
            text = f"has fewer than {plural(level.number, 'group')} to merge"
        others.setdefault(text, []).append(int(chain) + 1)
    return [f"{_chains(chains, text)}." for text, chains in others.items()]


def _chains(chains: Sequence[int], text: str) -> str:
    """Say what chains do, given what one does."""
    if len(chains) == 1:
        return f"Chain {chains[0]} {text}"
    verb, _, rest = text.partition(" ")
    several = {"leads": "lead", "has": "have"}[verb]
    return f"Chains {', '.join(map(str, chains[:-1]))} and {chains[-1]} {several} {rest}"


def agreed_number(blocs: Blocs) -> int | None:
    """Return the largest smaller number of blocs that all chains agree on; None if none is."""
    if len(blocs.level.chains_agree) == 1:
        return None
    for level in blocs.levels[blocs.number - 2 : 0 : -1]:
        if level.chains_agree.all():
            return level.number
    return None


def fewer_blocs(blocs: Blocs, which: str = "") -> str:
    """Name the largest smaller number of blocs that all chains agree on, **which** …, if any is."""
    number = agreed_number(blocs)
    if number is None:
        return ""
    keep, instead = (percent(shown(x.kept)) for x in (blocs.levels[number - 1], blocs.level))
    less = "as much" if keep == instead else f"{keep} instead of {instead}"
    return f"{plural(number, 'bloc')}{which} (--blocs {number}), which keep {less}"


def how_many_blocs(blocs: Blocs) -> str:
    """Say how many blocs there are, and what they and one more keep."""
    level, more = blocs.level, blocs.levels[blocs.number : blocs.number + 1]
    text = (
        f"{plural(level.number, 'bloc')} explain the rankings {as_well(level.kept)} as all groups "
        "together"
    )
    others = [f"{x.number} would explain them {as_well(x.kept)}" for x in more]
    return f"{'; '.join([text, *others])}."


def as_well(kept: float) -> str:
    """Say how well blocs explain the rankings, of what all groups do: ``78% as well``."""
    return f"{percent(shown(kept))} as well" if round(kept, 2) < 1 else "as well"


def what_each_keeps(blocs: Blocs) -> str:
    """Say in one line what each number of blocs keeps."""
    first, *others = blocs.levels[1:]
    texts = [f"{plural(first.number, 'bloc')} keep {share_kept(first)}"]
    return f"{', '.join([*texts, *(f'{x.number} {share_kept(x)}' for x in others)])}."


def kept_explained(blocs: Blocs) -> str:
    """Explain what blocs keep."""
    return _KEPT_EXPLAINED + (_MORE_THAN_ALL if blocs.level.kept > 1 else "")


def shown(kept: float) -> float:
    """Return the share of the gain that is shown of one that blocs keep: within 0 and 1."""
    return float(np.clip(kept, 0, 1))


def share_kept(level: BlocLevel) -> str:
    """Say what a number of blocs keeps, with its interval: ``49.2% (48.1–50.3%)``."""
    low, high = (100 * shown(x) for x in level.kept_interval)
    return f"{words.share(shown(level.kept))} ({low:.1f}–{high:.1f}%)"


def table_explained(with_intervals: bool, is_first: bool) -> str:
    """Explain the table of blocs, or what no table of groups has explained before it."""
    before = BEFORE_EXPLAINED if is_first else ""
    of_sizes = _INTERVAL_EXPLAINED if with_intervals else (NO_INTERVALS if is_first else "")
    return " ".join(filter(None, (of_sizes, _CERTAINTY_EXPLAINED, before)))


def lacks_order(bloc: Bloc) -> bool:
    """Whether the members of a bloc agree hardly more than by chance."""
    return bool(bloc.agreement < least_agreement(bloc.size))


def wants_of_bloc(bloc: Bloc) -> str:
    """Say what the members of a bloc want."""
    if lacks_order(bloc):
        return NO_ORDER_IN_WORDS
    return words.order_in_words(bloc.levels, bloc.clear_pairs)
