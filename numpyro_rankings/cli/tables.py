"""The tables that the commands write: ``clusters.csv``, ``assignments.csv`` and ``blocs.csv``.

To add a column to ``clusters.csv``, add a line to the function of the clusters that have it:

- :func:`_columns_of_any`: clusters of rankings and of points;
- :func:`columns_of_rankings`: clusters of rankings; :func:`_columns_of_mallows` and
  :func:`_columns_of_weights`: those of one kind of model;
- what a family says of clusters of points, such as means or words, is added by ``describe`` in
  ``points.py``.

Then add it to ``docs/reading.rst``.
"""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpyro_rankings.posterior import holds
from numpyro_rankings.words import order_in_words

if TYPE_CHECKING:
    from numpyro_rankings.posterior import BlocLevel, Blocs, ClusterProfile, WeightsProfile
    from numpyro_rankings.rankings import Rankings
    from numpyro_rankings.report.findings import Findings


def write_clusters(
    path: Path, findings: "Findings", columns_of: Callable[[Any], dict[str, Any]]
) -> None:
    """Write ``clusters.csv``, one row for each profile, numbered from 1.

    :param columns_of: returns the columns of a profile that not all kinds of clusters have.
    """
    rows = [
        {**_columns_of_any(number, p, findings), **columns_of(p)}
        for number, p in enumerate(findings.profiles, 1)
    ]
    _write(path, rows[0], (row.values() for row in rows))


def write_assignments(
    path: Path,
    columns: Mapping[str, Iterable[Any]],
    clusters: Iterable[int],
    probability: Iterable[float],
    blocs: Iterable[int] | None = None,
) -> None:
    """Write ``assignments.csv``, one row for each ranking or point.

    :param columns: names of the first columns, and their entries.
    :param clusters: number of the cluster of each, as in ``clusters.csv``.
    :param probability: with which each is in the same cluster as the others of its cluster.
    :param blocs: number of the bloc of each, as in ``blocs.csv``, if there are any.
    """
    of_blocs = {} if blocs is None else {"bloc": blocs}
    texts = (f"{p:.4g}" for p in probability)
    columns = {**columns, "cluster": clusters, **of_blocs, "probability": texts}
    _write(path, columns, zip(*columns.values(), strict=True))


def write_blocs(
    path: Path,
    blocs: "Blocs",
    rankings: "Rankings",
    about: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write ``blocs.csv``, one row for each bloc of each level from 2 on, numbered from 1.

    :param about: what is known about the items, as in :func:`columns_of_rankings`.
    """
    rows = [
        _columns_of_bloc(level, k, blocs, rankings, about)
        for level in blocs.levels[1:]
        for k in range(level.number)
    ]
    _write(path, rows[0], (row.values() for row in rows))


def _write(path: Path, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(header)
        table.writerows(rows)


# ---------------------------------------------------------------------------------------------
# Columns of clusters.csv
# ---------------------------------------------------------------------------------------------


def _columns_of_any(number: int, p: Any, findings: "Findings") -> dict[str, Any]:
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
    p: Any, rankings: "Rankings", about: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Any]:
    """Return the columns of a cluster of rankings.

    :param about: what is known about the items, such as a party: texts by column, in their order.
    """
    is_weighted = hasattr(p, "weights")
    return {
        "agreement": f"{p.agreement:.6g}",
        "entropy": f"{p.entropy:.6g}",
        **_columns_of_consensus(p.consensus, rankings, about),
        "wants": order_in_words(p.levels, p.clear_pairs),
        **(_columns_of_weights(p, rankings) if is_weighted else _columns_of_mallows(p)),
    }


def _columns_of_consensus(
    consensus: Sequence[str], rankings: "Rankings", about: Mapping[str, Sequence[str]] | None
) -> dict[str, str]:
    place = {item: k for k, item in enumerate(rankings.items)}
    order = [place[item] for item in consensus]
    columns = {f"consensus_{x}": [texts[k] for k in order] for x, texts in (about or {}).items()}
    return {"consensus": " > ".join(consensus)} | {x: " > ".join(y) for x, y in columns.items()}


def _columns_of_mallows(p: "ClusterProfile") -> dict[str, str]:
    row = {
        "most_frequent_center": " > ".join(p.map_consensus),
        "most_frequent_probability": f"{p.map_probability:.4g}",
    }
    by_stage = zip(p.concentration, p.concentration_interval, strict=True)
    for stage, (mean, interval) in enumerate(by_stage, 1):
        row |= _with_interval(f"theta_{stage}", mean, interval)
    return row


def _columns_of_weights(p: "WeightsProfile", rankings: "Rankings") -> dict[str, str]:
    row: dict[str, str] = {}
    if p.unseen_interval is not None:
        row |= _with_interval("unseen_weight", p.unseen_weight, p.unseen_interval)
        rankings = rankings.of_listed_items()
    for name, mean, interval in zip(rankings.items, p.weights, p.weights_interval, strict=True):
        row |= _with_interval(f"weight of {name}", mean, interval)
    return row


def _columns_of_bloc(
    level: "BlocLevel",
    k: int,
    blocs: "Blocs",
    rankings: "Rankings",
    about: Mapping[str, Sequence[str]] | None,
) -> dict[str, Any]:
    bloc = level.blocs[k]
    row = {
        "level": level.number,
        "bloc": k + 1,
        "chosen": "yes" if level.number == blocs.number else "no",
        **_with_interval("kept", level.kept, level.kept_interval),
        "members": int((level.labels == k).sum()),
        "share": f"{bloc.size / rankings.num_rankings:.6g}",
        **_with_interval("size", bloc.size, bloc.size_interval),
        "parent": int(level.parent[k]) + 1,
        "certainty": f"{bloc.certainty:.6g}",
        "agreement": f"{bloc.agreement:.6g}",
        **_columns_of_consensus(bloc.consensus, rankings, about),
        "wants": order_in_words(bloc.levels, bloc.clear_pairs),
    }
    if bloc.concentration is not None:
        return row | {f"theta_{j}": f"{x:.6g}" for j, x in enumerate(bloc.concentration, 1)}
    if bloc.unseen_weight is not None:
        row["unseen_weight"] = f"{bloc.unseen_weight:.6g}"
        rankings = rankings.of_listed_items()
    assert bloc.weights is not None
    weights = zip(rankings.items, bloc.weights, strict=True)
    return row | {f"weight of {name}": f"{x:.6g}" for name, x in weights}


def _with_interval(name: str, mean: Any, interval: Any) -> dict[str, str]:
    low, high = interval
    return {name: f"{mean:.6g}", f"{name}_low": f"{low:.6g}", f"{name}_high": f"{high:.6g}"}
