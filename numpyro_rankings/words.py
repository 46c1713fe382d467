"""Names of quantities, numbers and plurals, as the report, the plots and the screen show them."""

import math
from collections.abc import Sequence

# Display names of the quantities that are diagnosed, which do not depend on the labels of clusters,
# in the order of the tables. To diagnose another variable of the posterior, add a line.
LABEL_FREE_QUANTITIES = {
    "num_clusters": "number of groups",
    "log_joint": "log joint",
    "alpha": "α",
    "decay_scale": "scale of the decay",
    "partition_entropy": "entropy of the grouping",
    "kendall_to_reference": "distance from the average ranking",
    "largest_sizes": "size of the largest group",
    "population_concentration": "θ of stage",
    "phi": "φ",
    "gamma": "γ",
    "unseen_weight": "weight of unlisted items",
    "population_entropy": "entropy of the weights",
    "top_weights": "weight of",
}


def plural(number: int, noun: str) -> str:
    """Return ``1 ranking``, ``2,000 rankings``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def number(value: float, spec: str) -> str:
    """Format a number, or return a dash if it is NaN."""
    return "–" if math.isnan(value) else format(value, spec)


def value(x: float) -> str:
    """Format a mean or a standard deviation: four digits, and whole numbers from 1,000 on."""
    return number(x, ",.0f" if abs(x) >= 999.5 else ".4g")


# The numbers of groups: each has the same text on the screen, on the page and in a figure.


def size(x: float) -> str:
    """Format a number of rankings or points, which may be a mean: ``1,228``."""
    return f"{x:,.0f}"


def share(x: float) -> str:
    """Format a share of all rankings or points: ``27.3%``."""
    return f"{x:.1%}"


def interval(bounds: Sequence[float]) -> str:
    """Format the interval of a size: ``1,465–3,108``."""
    low, high = bounds
    return f"{size(low)}–{size(high)}"


def percent(x: float) -> str:
    """Format a share of draws, a probability or an agreement; 0% and 100% only if it is so."""
    if 0.995 <= x < 1:
        return ">99%"
    return "<1%" if 0 < x < 0.005 else f"{x:.0%}"


def duration(seconds: float) -> str:
    """Say roughly how long something takes: ``40 s``, ``7 min``, ``3 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.0f} h"


_NAMED = 6  # items of an order that are named
_LISTED = 3  # items of a level that are named
_PAIRS = 2  # of a level that are named


def order_in_words(
    levels: Sequence[Sequence[str]], clear_pairs: Sequence[tuple[str, str]] = ()
) -> str:
    """Say an order that is certain only in part: ``E before D before B; the rest close``.

    :param levels: names of the items, level by level, best first; within a level the order is not
        certain.
    :param clear_pairs: names of two items of one level of which it is certain that the first is
        before the second, the most certain first.
    """
    if len(levels) == 1 and len(levels[0]) > 1:
        names = list(levels[0])
        shown = names if len(names) == _LISTED + 1 else names[:_LISTED]
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        return f"all close: on average {', then '.join(shown)}{more}{_clear(names, clear_pairs)}"
    text, named, left = "", 0, sum(map(len, levels))
    for k, level in enumerate(levels):
        if k == len(levels) - 1 and len(level) > 1:
            first = " first" if k == 1 and len(levels[0]) == 1 else ""
            return f"{text}{first}; the rest close{_clear(level, clear_pairs)}"
        if named >= _NAMED:
            return f"{text}; then {left} more"
        few = list(level if len(level) == _LISTED + 1 else level[:_LISTED])
        named, left = named + len(few), left - len(level)
        if len(level) > len(few):
            few.append(f"{len(level) - len(few)} more")
        if text:
            text += ", before " if text.endswith((" close", " clear)")) else " before "
        if len(level) == 1:
            text += few[0]
        else:
            both = "both" if len(level) == 2 else "all"
            clear = _clear(level, clear_pairs)
            text += f"{', '.join(few[:-1])} and {few[-1]}, {both} close{clear}"
    return text


def _clear(level: Sequence[str], clear_pairs: Sequence[tuple[str, str]]) -> str:
    """Say which pairs of a level are clear: `` (but D before A is clear)``."""
    names = set(level)
    pairs = [f"{a} before {b}" for a, b in clear_pairs if a in names and b in names]
    if not pairs:
        return ""
    shown, more = pairs[:_PAIRS], len(pairs) - _PAIRS
    if more > 0:
        shown.append(plural(more, "more pair"))
    return f" (but {listed(shown)} {'is' if len(shown) == 1 else 'are'} clear)"


def listed(texts: Sequence[str]) -> str:
    """Return ``A``, ``A and B`` or ``A, B and C``."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def quantity_name(name: str) -> str:
    """Return the display name of a quantity such as ``largest_sizes[2]``."""
    base, index = base_and_index(name)
    if base == "largest_sizes":
        which = {"1": "", "2": "2nd ", "3": "3rd "}.get(index, f"{index}th ")
        return f"size of the {which}largest group"
    return f"{LABEL_FREE_QUANTITIES.get(base, base)} {index}".strip()


def with_article(name: str) -> str:
    """Put the article before a display name, unless it begins with a Greek letter."""
    return name if "α" <= name[0] <= "ω" else f"the {name}"


def base_and_index(name: str) -> tuple[str, str]:
    """Split ``top_weights[Ann [A]]`` into ``top_weights`` and ``Ann [A]``."""
    base, bracket, rest = name.partition("[")
    return base, rest.removesuffix("]") if bracket else ""


def shorten(name: str, length: int = 24) -> str:
    """Cut a name so that it fits beside an axis or into a column."""
    return name if len(name) <= length else name[: length - 1] + "…"
