"""Names of quantities, numbers and plurals, as the report, the plots and the screen write them."""

import numpy as np


def plural(number: int, noun: str) -> str:
    """``1 ranking``, ``2,000 rankings``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def number(value: float, spec: str) -> str:
    """Formatted, or a dash where it is not defined."""
    return "–" if np.isnan(value) else format(value, spec)


_NAMES = {
    "num_clusters": "number of clusters",
    "log_joint": "log joint",
    "alpha": "α",
    "decay_scale": "scale of the decay",
    "partition_entropy": "entropy of the partition",
    "kendall_to_reference": "Kendall distance to the Borda order",
    "population_concentration": "θ of stage",
    "phi": "φ",
    "gamma": "γ",
    "unseen_weight": "weight of what is unseen",
    "population_entropy": "entropy of the weights",
    "top_weights": "weight of",
}


def quantity_name(name: str) -> str:
    """``largest_sizes[2]`` and the like in words."""
    base, index = base_and_index(name)
    if base == "largest_sizes":
        which = {"1": "", "2": "2nd ", "3": "3rd "}.get(index, f"{index}th ")
        return f"size of the {which}largest cluster"
    return f"{_NAMES.get(base, base)} {index}".strip()


def base_and_index(name: str) -> tuple[str, str]:
    """``top_weights[Ann [A]]`` is ``top_weights`` and ``Ann [A]``."""
    base, bracket, rest = name.partition("[")
    return base, rest.removesuffix("]") if bracket else ""


def shorten(name: str, length: int = 24) -> str:
    """A name that fits beside an axis."""
    return name if len(name) <= length else name[: length - 1] + "…"
