"""Names of quantities, numbers and plurals, as the report, the plots and the screen show them."""

import math

# Display names of the quantities that are diagnosed, which do not depend on the labels of clusters,
# in the order of the tables. To diagnose another variable of the posterior, add a line.
LABEL_FREE_QUANTITIES = {
    "num_clusters": "number of clusters",
    "log_joint": "log joint",
    "alpha": "α",
    "decay_scale": "scale of the decay",
    "partition_entropy": "entropy of the partition",
    "kendall_to_reference": "distance from the average ranking",
    "largest_sizes": "size of the largest cluster",
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


def quantity_name(name: str) -> str:
    """Return the display name of a quantity such as ``largest_sizes[2]``."""
    base, index = base_and_index(name)
    if base == "largest_sizes":
        which = {"1": "", "2": "2nd ", "3": "3rd "}.get(index, f"{index}th ")
        return f"size of the {which}largest cluster"
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
