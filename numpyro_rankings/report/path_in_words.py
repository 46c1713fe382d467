"""What the path to the number of groups says, in words."""

from typing import Any

from numpyro_rankings.report.group_path import GroupChoice, choose_number
from numpyro_rankings.words import plural

_SHORT = {"time": "for which there was time", "memory": "for which there was memory"}
_ENDED = {"number": "as many as were asked for", **_SHORT}


def may_be_more(path: Any) -> bool:
    """Whether the largest number that there was time, or memory, for is the one that is shown."""
    at_most = path.sizes["num_components"]
    return path.attrs["ended"] in _SHORT and choose_number(path).num_components == at_most


def path_in_words(path: Any) -> str:
    """Say which number of groups lasts, and at which resolution it is described."""
    choice, total = choose_number(path), float(path["effective_size"][-1])
    parts = _number(choice, path), _tried(path), _resolution(choice, total)
    return " ".join(filter(None, parts))


def _amount(x: float) -> str:
    return f"{x:,.0f}" if x >= 10 else f"{x:.2g}"


def _number(choice: GroupChoice, path: Any) -> str:
    groups, stretch = plural(choice.num_groups, "group"), choice.stretch
    if path.sizes["num_components"] == 1:
        return "One group is shown; no other number was tried."
    if stretch is None:
        return (
            "No number of groups stands out: none above 1 is more probable than not over a range "
            f"of a factor of 2. Shown are {groups}, which come nearest."
        )
    if stretch.num_groups == 1:
        return "One group lasts: with more rankings no other number becomes more probable than not."
    return (
        f"{groups} last longest: if the model were right, they would be more probable than not "
        f"with {_amount(stretch.first)} to {_amount(stretch.last)} rankings "
        f"(a factor of {stretch.factor:.1f})."
    )


def _tried(path: Any) -> str:
    """Say where larger numbers might have been needed."""
    ended, most = path.attrs["ended"], path.sizes["num_components"]
    if ended not in _ENDED or most == 1:
        return ""
    text = f"Tried were 1 to {plural(most, 'component')}, {_ENDED[ended]}"
    more = ": a larger number may be more probable" if may_be_more(path) else ""
    return f"{text}{more}."


def _resolution(choice: GroupChoice, total: float) -> str:
    more = choice.num_components - choice.num_groups
    others = "" if not more else "The other judges follow none of these: they have no common order."
    if choice.effective_size is None:
        return others
    size = _amount(choice.effective_size)
    return (
        f"{others} With all {_amount(total)} rankings independent runs are in different places. "
        f"They agree up to as many as {size}, and what so many would tell is shown."
    ).strip()
