"""The tables that the commands write: ``clusters.csv``, ``assignments.csv`` and ``blocs.csv``.

To add a column to ``clusters.csv``, add a line to the function of the clusters that have it:

- :func:`_columns_of_any`: clusters of rankings and of points;
- :func:`columns_of_rankings`: clusters of rankings; those of one likelihood are the ``columns`` of
  its profiles, in ``families/``;
- what a family says of clusters of points, such as means or words, is added by ``describe`` in
  ``points.py``.

Then add it to ``docs/reading.rst``.
"""

import csv
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from numpyro_rankings.families.base import columns_with_interval, in_item_order, interval_of
from numpyro_rankings.posterior import holds
from numpyro_rankings.rankings import Comparisons, Orders, Rankings
from numpyro_rankings.words import for_spreadsheets, level_in_words, order_in_words

if TYPE_CHECKING:
    from numpyro_rankings.posterior import Bloc, BlocLevel, Profile, RankingProfile
    from numpyro_rankings.report.findings import Findings


def write_clusters(
    path: Path, findings: "Findings", columns_of: Callable[[Any], dict[str, Any]]
) -> None:
    """Write ``clusters.csv``, one row for each profile, with what its kind of clusters has."""
    from numpyro_rankings.report.answers import wants

    rows = [
        {**_columns_of_any(number, p, findings), **columns_of(p)}
        for number, p in enumerate(findings.profiles, 1)
    ]
    if findings.family is not None:
        for row, text in zip(rows, wants(findings), strict=True):
            row["wants"] = text  # also of a group without an order
            if (e := findings.mistakes) is not None:  # one for all judges
                row |= columns_with_interval("mistake_probability", e.mean(), interval_of(e))
    write_rows(path, rows[0], (row.values() for row in rows))


def write_assignments(
    path: Path,
    columns: Mapping[str, Iterable[Any]],
    clusters: Iterable[int | str],
    probability: Iterable[float],
    blocs: tuple[Iterable[int], Iterable[float]] | None = None,
    further: Mapping[str, Iterable[float | str]] | None = None,
) -> dict[str, list[Any]]:
    """Write ``assignments.csv``, or a table like it, one row for each ranking or point.

    :param columns: names of the first columns, and their entries.
    :param probability: with which each is in the same cluster as the others of its cluster.
    :param blocs: the bloc of each, and the probability with which it belongs there.
    :param further: the last columns, with probabilities or texts.
    :return: what was written after the first columns.
    """
    found: dict[str, list[Any]] = {"cluster": list(clusters)}
    texts = [f"{p:.4g}" for p in probability]
    if blocs is None:
        found["probability"] = texts
    else:
        number, certainty = blocs
        found |= {"bloc": list(number), "probability": texts}
        found["bloc_probability"] = [f"{p:.4g}" for p in certainty]
    for name, values in (further or {}).items():
        found[name] = [p if isinstance(p, str) else f"{p:.4g}" for p in values]
    columns = {**columns, **found}
    write_rows(path, columns, zip(*columns.values(), strict=True))
    return found


def write_blocs(
    path: Path,
    findings: "Findings",
    rankings: "Rankings | Orders",
    about: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write ``blocs.csv``, one row for each bloc of each level from 2 on, numbered from 1."""
    from numpyro_rankings.report.blocs_in_words import wants_of_bloc

    blocs, family = findings.blocs, findings.profiles[0].family
    assert blocs is not None
    rows = []
    for level in blocs.levels[1:]:
        is_chosen = {"chosen": "yes" if level.number == blocs.number else "no"}
        for number, bloc in enumerate(level.blocs):
            items = in_item_order(bloc.consensus, bloc.consensus_ordering)
            row = {"level": level.number, "bloc": number + 1, **is_chosen}
            row |= _columns_of_bloc(level, number, rankings.num_rankings)
            row |= _columns_of_order(bloc, rankings, about)
            row["wants"] = wants_of_bloc(bloc)  # also of one without an order
            rows.append(row | family.columns_of_bloc(bloc.parameters, items))
    write_rows(path, rows[0], (row.values() for row in rows))


def rows_in_words(said: "Rankings | Orders") -> list[str]:
    """Return what each row says, such as ``A > B = C``; of some pairs alone ``A > B; C > D``.

    Of comparisons that may be mistakes it is how often each was made: ``A > B; B > A (2 times)``.
    """
    table, items = np.asarray(said.table), np.array(said.items, dtype=object)
    if isinstance(said, Rankings):
        return [" > ".join(items[row[row >= 0]]) for row in table]
    if isinstance(said, Comparisons):
        rows = zip(table, np.asarray(said.wins), strict=True)
        return [_comparisons_in_words(items[row], wins) for row, wins in rows]
    levels, above, texts = np.asarray(said.levels), np.asarray(said.above), []
    for row, is_order in enumerate(np.asarray(said.are_buckets)):
        names, of_row = items[table[row][table[row] >= 0]], above[row].astype(int)
        if is_order:
            ends = np.flatnonzero(np.diff(levels[row][: len(names)])) + 1
            texts.append(" > ".join(" = ".join(level) for level in np.split(names, ends)))
        else:  # what follows from the other pairs is left out
            pairs = np.argwhere(of_row & (of_row @ of_row == 0))
            texts.append("; ".join(f"{names[a]} > {names[b]}" for a, b in pairs))
    return texts


def _comparisons_in_words(names: np.ndarray, wins: np.ndarray) -> str:
    """Return the comparisons of a judge, given the items and how often one was preferred."""
    said = ((names[a], names[b], int(wins[a, b])) for a, b in np.argwhere(wins))
    return "; ".join(f"{a} > {b}{f' ({k} times)' if k > 1 else ''}" for a, b, k in said)


def write_rows(path: Path, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table, whose texts no spreadsheet takes for formulas."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerows(map(for_spreadsheets, row) for row in itertools.chain([header], rows))


# ---------------------------------------------------------------------------------------------
# Columns of clusters.csv
# ---------------------------------------------------------------------------------------------


def _columns_of_any(number: int, p: "Profile", findings: "Findings") -> dict[str, Any]:
    cohesion = findings.cohesion(p)
    low, high = p.interval_over_all
    return {
        "cluster": number,
        "holds": "yes" if holds(p) else "no",
        "members": len(p.members),
        "share": f"{p.mean_size / findings.total:.6g}",
        "presence": f"{p.presence:.6g}",
        "matched": f"{p.matched:.6g}",
        "size": f"{p.mean_size:.6g}",
        "size_low": f"{low:.6g}",
        "size_high": f"{high:.6g}",
        "cohesion": f"{1.0 if cohesion is None else cohesion:.6g}",
    }


def columns_of_rankings(
    p: "RankingProfile",
    rankings: "Rankings | Orders",
    about: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str]:
    """Return the columns of a cluster of rankings, with texts about its items by column."""
    return {
        "agreement": f"{p.agreement:.6g}",
        "entropy": f"{p.entropy:.6g}",
        **_columns_of_order(p, rankings, about),
        "level": level_in_words(p.level),
        **p.columns(),
    }


def _columns_of_order(
    group: "RankingProfile | Bloc",
    rankings: "Rankings | Orders",
    about: Mapping[str, Sequence[str]] | None,
) -> dict[str, str]:
    place = {item: k for k, item in enumerate(rankings.items)}
    order = [place[item] for item in group.consensus]
    columns = {f"consensus_{x}": [texts[k] for k in order] for x, texts in (about or {}).items()}
    return {
        "consensus": " > ".join(group.consensus),
        **{name: " > ".join(texts) for name, texts in columns.items()},
        "wants": order_in_words(group.levels, group.clear_pairs),
    }


def _columns_of_bloc(level: "BlocLevel", number: int, total: int) -> dict[str, Any]:
    bloc = level.blocs[number]
    return {
        **columns_with_interval("kept", level.kept, level.kept_interval),
        "members": int((level.labels == number).sum()),
        "share": f"{bloc.size / total:.6g}",
        **columns_with_interval("size", bloc.size, bloc.size_interval),
        "parent": int(level.parent[number]) + 1,
        "certainty": f"{bloc.certainty:.6g}",
        "agreement": f"{bloc.agreement:.6g}",
    }
