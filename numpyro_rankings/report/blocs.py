"""What a report shows of blocs: a table, what each number of them keeps, and how they split."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from numpyro_rankings import words
from numpyro_rankings.posterior import Bloc, BlocLevel, Blocs
from numpyro_rankings.posterior.diagnostics import Verdict
from numpyro_rankings.report import blocs_in_words as said
from numpyro_rankings.report.answers import (
    Colored,
    Judges,
    Row,
    color_of,
    judges_in_tables,
    numbered,
)
from numpyro_rankings.report.findings import Findings
from numpyro_rankings.report.tree import Level, Tree, around, tree_of

_NAMES = 4  # at most, of what a bloc wants, beside it in the tree


class Kept(NamedTuple):
    """The share that a number of blocs keeps, with its interval: in words, and for a bar."""

    number: int
    is_chosen: bool
    in_words: str
    share: float
    low: float
    high: float


class BlocsShown(NamedTuple):
    """The section about blocs; there is no tree of a single one."""

    how_many: str
    shares: Sequence[str]
    wants: Sequence[str]
    verdict: Verdict
    rows: Sequence[Row]
    explained: str
    kept_explained: str
    kept: Sequence[Kept]
    tree: Tree | None
    judges: Sequence[Judges]


def blocs_shown(findings: Findings, about: Mapping[str, Sequence[str]]) -> BlocsShown | None:
    """Return what the page shows of the blocs; None if there are none."""
    blocs, total = findings.blocs, findings.total
    if blocs is None:
        return None
    wants = [said.wants_of_bloc(bloc) for bloc in blocs.blocs]
    return BlocsShown(
        said.how_many_blocs(blocs),
        [words.share(bloc.size / total) for bloc in blocs.blocs],
        wants,
        said.verdict_of_blocs(blocs),
        [
            _row(k, bloc, text, findings)
            for k, (bloc, text) in enumerate(zip(blocs.blocs, wants, strict=True))
        ],
        said.table_explained(findings.with_intervals, findings.blocs_first),
        said.kept_explained(blocs),
        [_kept(level, blocs.number) for level in blocs.levels],
        _tree(blocs, total) if len(blocs.levels) > 1 else None,
        judges_in_tables(about, blocs.labels, numbered("bloc", blocs.number)),
    )


def _row(place: int, bloc: Bloc, wants: str, findings: Findings) -> Row:
    return (
        Colored(str(place + 1), color_of(place)),
        words.size(bloc.size),
        *([words.interval(bloc.size_interval)] if findings.with_intervals else []),
        words.share(bloc.size / findings.total),
        words.percent(bloc.certainty),
        words.percent(bloc.agreement),
        wants,
    )


def _kept(level: BlocLevel, chosen: int) -> Kept:
    share, low, high = (float(np.clip(x, 0, 1)) for x in (level.kept, *level.kept_interval))
    return Kept(level.number, level.number == chosen, said.share_kept(level), share, low, high)


def _tree(blocs: Blocs, total: int) -> Tree:
    """Lay out the chosen level and its neighbours."""
    levels = [
        Level(
            level.number,
            f"{words.plural(level.number, 'bloc')}, {words.share(level.kept)} kept",
            [bloc.size for bloc in level.blocs],
            level.flow,
            [_wants_first(bloc.levels) for bloc in level.blocs],
        )
        for level in around(blocs.levels, blocs.number - 1)
    ]
    return tree_of(levels, blocs.number, numbered("bloc", blocs.number), total)


def _wants_first(levels: Sequence[Sequence[str]]) -> str:
    """Say what comes first: one level, or two if both are one item."""
    first = levels[0]
    named = list(first if len(first) <= _NAMES + 1 else first[:_NAMES])
    if len(first) > len(named):
        named.append(f"{len(first) - len(named)} more")
    text = f"{words.listed(named)} first"
    if len(levels) == 1 and len(first) > 1:
        text = "all close"
    elif len(first) == 1 and len(levels) > 1 and len(levels[1]) == 1:
        text = f"{first[0]} before {levels[1][0]}"
    return text
