"""What items are called on the screen and on the page, where the file says more about them.

Tables and draws keep the plain names, by which they can be joined.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpyro_rankings.words import in_one_line

if TYPE_CHECKING:
    from numpyro_rankings.rankings import Orders, Rankings
    from numpyro_rankings.readers import Survey
    from numpyro_rankings.report.findings import Findings

_WITH_SHORT = re.compile(r".*\S\s*\(([^()]{1,12})\)")  # "Scottish National Party (SNP)"


def shown_names(survey: "Survey") -> list[str]:
    """Return the name of each item with what is known about it, such as ``Ann Able (SNP)``."""
    about = list((survey.items_about or {}).values())
    known = [[_short(texts[k]) for texts in about] for k in range(survey.rankings.num_items)]
    names = [
        f"{item} ({', '.join(filter(None, texts))})" if any(texts) else item
        for item, texts in zip(survey.rankings.items, known, strict=True)
    ]
    return list(map(in_one_line, names))


def _short(text: str) -> str:
    match = _WITH_SHORT.fullmatch(text)
    return match[1] if match else text


def rename_rankings(rankings: "Rankings | Orders", names: Sequence[str]) -> "Rankings | Orders":
    """Return the rankings with other names of their items."""
    leaves, (*kind, num_items, _, num_rankings) = rankings.tree_flatten()
    return rankings._make(leaves, (*kind, num_items, tuple(names), num_rankings))


def rename_findings(findings: "Findings", items: Sequence[str], names: Sequence[str]) -> "Findings":
    """Return findings whose profiles, blocs and checks have other names of the items."""
    index = dict(zip(items, names, strict=True))
    profiles = [p.renamed(index) for p in findings.profiles]
    blocs = findings.blocs
    if blocs is not None:
        levels = []
        for level in blocs.levels:
            renamed = tuple(
                x._replace(
                    consensus=_renamed(x.consensus, index),
                    levels=tuple(_renamed(names, index) for names in x.levels),
                    clear_pairs=tuple((index[a], index[b]) for a, b in x.clear_pairs),
                )
                for x in level.blocs
            )
            levels.append(level._replace(blocs=renamed))
        blocs = blocs._replace(levels=tuple(levels))
    checks = findings.checks
    if checks is not None:
        checks = checks._replace(items=_renamed(checks.items, index))
    apart = [_renamed(x, index) for x in findings.apart]
    return findings._replace(profiles=profiles, blocs=blocs, checks=checks, apart=apart)


def _renamed(items: Sequence[str], index: dict[str, str]) -> tuple[str, ...]:
    return tuple(index[item] for item in items)
