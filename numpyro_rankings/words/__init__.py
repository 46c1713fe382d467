"""Names of quantities, numbers and plurals, as the report, the plots and the screen show them."""

import math
import re
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
    "mistake_probability": "probability of a mistake",
    "item_effects": "effect of covariate",
    "residual_shape": "shape of the residuals",
    "unseen_weight": "weight of unlisted items",
    "population_entropy": "entropy of the weights",
    "top_weights": "weight of",
}


def plural(number: int, noun: str) -> str:
    """Return ``1 ranking``, ``2,000 rankings``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def by_number(number: int, one: str, many: str) -> str:
    """Return the words that go with a number: ``is`` with 1, ``are`` with 0 and with others."""
    return one if number == 1 else many


def in_minutes(number: float) -> str:
    """Return ``1 minute``, ``0.5 minutes``."""
    return f"{number:g} minute{'' if number == 1 else 's'}"


def number(value: float, spec: str) -> str:
    """Format a number, or return a dash if it is NaN."""
    return "–" if math.isnan(value) else format(value, spec)


def span(low: float, high: float) -> str:
    """Return ``3 to 5``, or ``3`` if both are the same."""
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


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


def interval(bounds: Sequence[float], total: float) -> str:
    """Format the interval of a size as shares of all: ``24.1–31.0%``."""
    low, high = bounds
    return f"{100 * low / total:.1f}–{share(high / total)}"


def percent(x: float) -> str:
    """Format a share of draws, a probability or an agreement; 0% and 100% only if it is so.

    NaN is a dash, and what rounding has made of 0 is 0%.
    """
    if 0.995 <= x < 1:
        return ">99%"
    return "<1%" if 0 < x < 0.005 else number(max(x, 0.0), ".0%")


def duration(seconds: float) -> str:
    """Say roughly how long something takes: ``40 s``, ``7 min``, ``3 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.0f} h"


_NAMED = 6  # items of an order that are named, and more if few are left
_LISTED = 3  # items of a large level that are named
_FEW = 3  # items that are not hidden in "and 3 more"
_PAIRS = 2  # clear pairs of a level that are named
COMPARED = 60  # items of a level, the first ones, whose pairs are compared


def order_in_words(
    levels: Sequence[Sequence[str]], clear_pairs: Sequence[tuple[str, str]] = ()
) -> str:
    """Say an order that is clear only in part: ``E before D before B; the rest close``.

    Of a level of several items it says that they are close if no pair is clear, nearly all close if
    one or two are. Of more pairs, two are named, and the items are mostly close. If at
    least half of all pairs are clear, the items are roughly in an order that no clear pair is
    against, or in no one order if the clear pairs form a circle.

    :param levels: names of the items, level by level, best first: each item of a level is before
        each of the next.
    :param clear_pairs: names of two items of one level of which the first is before the second all
        the same, the clearest first.
    """
    text, named, left = "", 0, sum(map(len, levels))
    for k, level in enumerate(levels):
        names, how, exceptions = _how(level, clear_pairs)
        if len(levels) == 1 and len(names) > 1:
            return _only_level(names, how, exceptions)
        if k == len(levels) - 1 and len(names) > _FEW and how.endswith("close"):
            first = " first" if k == 1 and len(levels[0]) == 1 else ""
            return f"{text}{first}; the rest {how.removeprefix('all ')}{exceptions}"
        if named >= _NAMED and left > _FEW:
            return f"{text}; then {left} more"
        few = _shown(names)
        named, left = named + len(few), left - len(names)
        if text:
            text += ", before " if len(levels[k - 1]) > 1 else " before "
        if len(names) == 1:
            text += names[0]
        else:
            more = [f"{len(names) - len(few)} more"] if len(few) < len(names) else []
            text += f"{listed([*few, *more])}, {how}{exceptions}"
    return text


def _only_level(names: Sequence[str], how: str, exceptions: str) -> str:
    """Say an order that is one level."""
    few = _shown(names)
    more = f" and {len(names) - len(few)} more" if len(few) < len(names) else ""
    if not how.endswith("close"):
        return f"{how}: {', '.join(few)}{more}"
    how = how.replace("both", "all")
    return f"{how}: on average {', then '.join(few)}{more}{exceptions}"


def _shown(names: Sequence[str]) -> list[str]:
    """Return the items of a level that are named: all, unless more than three others are left."""
    return list(names if len(names) <= _LISTED + _FEW else names[:_LISTED])


def _how(
    level: Sequence[str], clear_pairs: Sequence[tuple[str, str]]
) -> tuple[list[str], str, str]:
    """Return the items of a level in an order, in what order they are, and the exceptions."""
    places, compared = set(level), min(len(level), COMPARED)
    pairs = [(a, b) for a, b in clear_pairs if a in places and b in places]
    if not pairs:
        return list(level), "both close" if len(level) == 2 else "all close", ""
    ordered = _in_line(level, pairs)
    if 4 * len(pairs) >= compared * (compared - 1) and len(level) > 2:  # half of all pairs
        how = "in no one order" if ordered is None else "roughly in this order"
        return ordered or list(level), how, ""
    names = ordered or list(level)
    texts = [f"{a} before {b}" for a, b in pairs[:_PAIRS]]
    if len(pairs) <= _PAIRS:
        return names, "nearly all close", f" (but {listed(texts)} {_are(texts)} clear)"
    texts.append(plural(len(pairs) - _PAIRS, "more pair"))
    return names, "mostly close", f" ({listed(texts)} {_are(texts)} clear)"


def _are(texts: Sequence[str]) -> str:
    return by_number(len(texts), "is", "are")


def _in_line(level: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[str] | None:
    """Return the items in an order that no pair is against; None if the pairs form a circle.

    Of the items that may be next, the first of the level is.
    """
    left, ordered = list(level), []
    while left:
        behind = {b for a, b in pairs if a in left}
        free = [name for name in left if name not in behind]
        if not free:
            return None
        ordered.append(free[0])
        left.remove(free[0])
    return ordered


def listed(texts: Sequence[str]) -> str:
    """Return ``A``, ``A and B`` or ``A, B and C``."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def level_in_words(sets: Sequence[Sequence[str]]) -> str:
    """Say which items of an order are level: ``B and C are level; E, F and G are level``."""
    texts = []
    for names in sets:
        some = [*names[:_NAMED], *([f"{len(names) - _NAMED} more"] if len(names) > _NAMED else [])]
        texts.append(f"{listed(some)} are level")
    return "; ".join(texts)


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


def for_spreadsheets(cell: object) -> object:
    """Return a cell of a csv file that no spreadsheet takes for a formula.

    A text that begins like one, and is no number, has an apostrophe before it.
    """
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def without_mark(cell: str) -> str:
    """Return the text of a cell that :func:`for_spreadsheets` has made safe."""
    return cell[1:] if re.match(r"'[=+\-@\t\r]", cell) else cell


# Characters that turn the direction of the text after them, and those that command a terminal.
_BREAKS = "\t\n\r"
_HIDDEN = (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_VISIBLE = {code: f"\\u{code:04x}" for code in _HIDDEN}
_VISIBLE_BUT_BREAKS = {code: x for code, x in _VISIBLE.items() if chr(code) not in _BREAKS}


def with_visible_directions(text: str) -> str:
    """Return a text in which such characters are seen, and do not turn what follows a name.

    Tabs and ends of lines stay.
    """
    return text.translate(_VISIBLE_BUT_BREAKS)


def in_one_line(text: str) -> str:
    """Return a text in which these are seen too, such as a name, which could end a line."""
    return text.translate(_VISIBLE)
