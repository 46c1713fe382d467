"""The words of the report: how it was made, at its top, and a list of terms at its end."""

from collections.abc import Sequence
from typing import NamedTuple

from numpyro_rankings.posterior.diagnostics import (
    ESS_GOOD,
    R_HAT_BAD,
    R_HAT_GOOD,
    STACKING_WEIGHTS,
    posterior_of,
)
from numpyro_rankings.report.findings import Findings
from numpyro_rankings.words import base_and_index, listed, quantity_name

R_HAT_EXPLAINED = (
    f"R-hat says whether the chains agree on a quantity: 1 if they do, and up to {R_HAT_GOOD:g} is "
    "good. ESS (effective sample size) says how many independent draws the draws are worth: "
    f"{ESS_GOOD} is good."
)
_NUMBERS = ("", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


class Term(NamedTuple):
    """A word, and what it means."""

    name: str
    meaning: str


def how_found(findings: Findings) -> str:
    """Say what chains, sweeps and draws are, before anything else is said of them."""
    places, one = f"possible groupings of the {findings.noun}s", "groupings"
    if findings.reference is None:
        places, one = "possible values of the model", "values"
    if findings.data is None:
        runs, draws = "Independent runs", "some"
    else:
        chains = posterior_of(findings.data).sizes["chain"]
        runs = f"{_number(chains)} {'run' if chains == 1 else 'independent runs'}"
        sizes = posterior_of(findings.described).sizes
        draws = f"{sizes['chain'] * sizes['draw']:,}"
    name = "chain" if runs.endswith("run") else "chains"
    return (
        f"{runs} of the sampler (the {name}) went through {places}, step by step (in sweeps). The "
        f"results are over {draws} of these {one} (the draws){_by_weight(findings)}."
    )


def _by_weight(findings: Findings) -> str:
    """Say how many draws are of each chain, and why, if the chains are weighted."""
    weights = _weights(findings)
    if weights is None:
        return ""
    what = "R-hat is" if findings.blocs is None else "Blocs and R-hat are"
    sizes = posterior_of(findings.data).sizes
    return (
        f": the runs have {listed([f'{x:.0%}' for x in weights])} of them, because they do not "
        "agree, and those that predict better have more weight. "
        f"{what} over all {sizes['chain'] * sizes['draw']:,}"
    )


def _weights(findings: Findings) -> Sequence[float] | None:
    """Return the weights of the chains, None if they have none."""
    if findings.data is None:
        return None
    weights = posterior_of(findings.data).attrs.get(STACKING_WEIGHTS)
    return None if weights is None else list(map(float, weights))


def _number(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number:,}"


def _quantities(findings: Findings) -> list[Term]:
    """Return the quantities among the diagnostics whose names do not say what they are."""
    meanings = {
        "log_joint": "how probable the data and the draw are together, as a logarithm; all that "
        "matters is whether the chains agree on it",
        "partition_entropy": f"how finely a draw divides the {findings.noun}s: 0 if all are in one "
        "group, larger the more groups there are and the more equal their sizes",
        "kendall_to_reference": "mean number of pairs of items that a ranking's group orders "
        "unlike the average of all rankings",
        "largest_sizes": "the groups of each draw are ordered by their sizes, whoever is in them",
    }
    names = {"largest_sizes": "size of the k-th largest group"}
    present = {base_and_index(str(name))[0] for name in findings.table.index}
    return [
        Term(names.get(base, quantity_name(base)), meaning)
        for base, meaning in meanings.items()
        if base in present
    ]


def glossary(findings: Findings) -> list[Term]:
    """Return the words that the page uses, each with its meaning."""
    of_blocs = [
        Term(
            "bloc",
            "one of a few large groups that together say most of what the many groups say; blocs "
            "and groups have numbers and colours of their own, so that group 1 is not bloc 1",
        )
    ]
    of_groups = [
        Term(
            "draw",
            f"one possible grouping of the {findings.noun}s, with all that belongs to it; what "
            "most draws have is probable, and what few have is not",
        ),
        Term("group that holds", "one that is found again in more than half of the draws"),
    ]
    of_one = [Term("draw", "one set of possible values; what most draws have is probable")]
    common = [
        Term("chain", "one of the runs of the sampler, each from a start of its own"),
        Term("sweep", "one step of a chain, in which everything may change"),
        Term("90% interval", "nine of ten draws are between its two numbers"),
        Term(
            "R-hat",
            f"whether the chains agree on a number: 1 if they do; up to {R_HAT_GOOD:g} is good, "
            f"above {R_HAT_BAD:g} they do not",
        ),
        Term(
            "ESS",
            "effective sample size: how many independent draws the draws are worth; "
            f"{ESS_GOOD} is good",
        ),
        *_quantities(findings),
        Term("posterior", "all draws together: what is possible, and how probable it is"),
    ]
    return [
        *(of_blocs if findings.blocs is not None else []),
        *(of_groups if findings.reference is not None else of_one),
        *common,
    ]
