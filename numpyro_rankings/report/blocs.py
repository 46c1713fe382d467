"""What a report shows of blocs: a table, what each number of them keeps, and how they split."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
        words.share(bloc.size / findings.total),
        *findings.interval_in_words(bloc.size_interval),
        words.percent(bloc.certainty),
        words.percent(bloc.agreement),
        wants,
    )


def _kept(level: BlocLevel, chosen: int) -> Kept:
    share, low, high = map(said.shown, (level.kept, *level.kept_interval))
    return Kept(level.number, level.number == chosen, said.share_kept(level), share, low, high)


def _tree(blocs: Blocs, total: int) -> Tree:
    """Lay out the chosen level and its neighbours."""
    levels = [
        Level(
            level.number,
            f"{words.plural(level.number, 'bloc')}, {words.share(said.shown(level.kept))} kept",
            [bloc.size for bloc in level.blocs],
            level.flow,
            [said.wants_of_bloc(bloc) for bloc in level.blocs],
        )
        for level in around(blocs.levels, blocs.number - 1)
    ]
    return tree_of(levels, blocs.number, numbered("bloc", blocs.number), total)
