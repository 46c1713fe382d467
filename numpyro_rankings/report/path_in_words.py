"""What the path to the number of groups says, in words."""

from typing import Any

from numpyro_rankings.report.group_path import GroupChoice, choose_number
from numpyro_rankings.words import plural


def path_in_words(path: Any) -> str:
    """Say which number of groups lasts, and at which resolution it is described."""
    choice, total = choose_number(path), float(path["effective_size"][-1])
    return " ".join(filter(None, [_number(choice, total), _resolution(choice, total)]))


def _number(choice: GroupChoice, total: float) -> str:
    groups, stretch = plural(choice.num_groups, "group"), choice.stretch
    if stretch is None:
        return (
            "No number of groups stands out: none above 1 is more probable than not over a range "
            f"of a factor of 2. The one that comes nearest is shown, {groups}."
        )
    if stretch.num_groups == 1:
        return "One group lasts: no other number is ever more probable than not."
    last = f"to all {total:,.0f}" if stretch.last >= total else f"to {stretch.last:,.0f}"
    return (
        f"{groups} last longest: they are more probable than not from as if there were "
        f"{stretch.first:,.0f} rankings, and the model were right, {last} (a factor of "
        f"{stretch.factor:.1f})."
    )


def _resolution(choice: GroupChoice, total: float) -> str:
    more = choice.num_components - choice.num_groups
    others = "" if not more else "The other judges follow none of these: they have no common order."
    if choice.effective_size is None:
        return others
    return (
        f"{others} With all {total:,.0f} rankings independent runs are in different places; up to "
        f"as many as {choice.effective_size:,.0f} they agree, and what so many would tell is shown."
    ).strip()
