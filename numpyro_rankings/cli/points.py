"""Points and documents as ``numpyro-rankings cluster`` models them: data, family, and in words."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numpyro_rankings.cli.arguments import UserError, check_file, note
from numpyro_rankings.cli.cluster_options import ClusterOptions
from numpyro_rankings.cli.files import (
    Documents,
    PointsTable,
    distances_in_time,
    documents_of_table,
    is_ldac,
    read_distances,
    read_graph,
    read_ldac,
    read_points_table,
)
from numpyro_rankings.words import plural

if TYPE_CHECKING:
    from numpyro_rankings.components.family import Family

_NAMES_SHOWN = 10  # columns or words
# Covariance within clusters as a share of that of all points, in the prior. With 1 instead of 0.1,
# six clusters of 20 points on a grid were found as 2.
_WITHIN = 0.1
_LEAST_EIGENVALUE = 1e-5  # of a correlation matrix that single precision can factorise
_LEAST_DEVIATION = 1e-12  # of a column, as a share of its largest number


class Description(NamedTuple):
    """What a family says of a cluster, by name."""

    columns: dict[str, str]  # for clusters.csv
    shown: dict[str, str]  # for the report and the screen


class Points(NamedTuple):
    """What is clustered, and how."""

    size: int
    names: list[str] | None
    times: np.ndarray | None  # (size,)
    data: Any  # as the family takes it
    family: Any  # of the components
    model: str  # the family in words
    what: str  # the points in words
    describe: Callable[[np.ndarray], Description]  # of the cluster that has these members


def read_points(options: ClusterOptions) -> Points:
    """Read the file of points or documents that the options name."""
    if is_ldac(options.file):
        return _documents(options, _read_documents(options))
    if options.vocab is not None:
        raise UserError("--vocab goes with an LDA-C file; a table names its columns")
    table = read_points_table(options.file, options.names, options.time)
    _note_columns(options.file, table, options.time)
    if options.names is None and table.names is None:
        _warn_of_numbering(table)
    if options.family == "multinomial":
        return _documents(options, documents_of_table(options.file, table))
    return _coordinates(options, table)


def read_distances_of(options: ClusterOptions, points: Points) -> Any:
    """Return the distances that the options ask for, or None without them."""
    if options.time is not None:
        assert points.times is not None
        return distances_in_time(points.times)
    if options.distances is not None:
        return read_distances(options.distances, points.size)
    if options.graph is not None:
        return read_graph(options.graph, points.size, points.names, options.hops or 1)
    return None


def _read_documents(options: ClusterOptions) -> Documents:
    if options.family != "multinomial":
        ldac = f"{options.file}: is in the LDA-C format"
        raise UserError(f"{ldac}, which is for --family multinomial")
    if options.names is not None:
        raise UserError("--names goes with a table (.csv); LDA-C documents are numbered from 0")
    if options.time is not None:
        check_file(options.time, "times")
    return read_ldac(options.file, options.vocab, options.time)


def _note_columns(file: str, table: PointsTable, time: str | None) -> None:
    """Say which columns were taken for what."""
    names = "points are numbered from 0"
    if table.name_column is not None:
        which = f"column {table.name_column!r}" if table.name_column else "the first column"
        names = f"{which} names the points"
    times = "" if time is None else f", column {time!r} has the times"
    data = f"data: {plural(len(table.columns), 'column')}, {_some(table.columns)}"
    note(f"{file}: {names}{times}; {data}")


def _warn_of_numbering(table: PointsTable) -> None:
    first = table.values[:, 0]
    if len(table.columns) > 1 and len(first) > 2 and np.all(np.diff(first) == 1):
        note(
            f"column {table.columns[0]!r} numbers the points but is used as data: if it names "
            f"them, add --names {table.columns[0]}"
        )


# ---------------------------------------------------------------------------------------------
# Gaussian
# ---------------------------------------------------------------------------------------------


def _coordinates(options: ClusterOptions, table: PointsTable) -> Points:
    from numpyro_rankings.components import GaussianMean

    size, dimension = table.values.shape
    if size < 2:
        raise UserError(f"{options.file}: has one point, but at least two are needed")
    # centred, so that no digits of single precision are lost to the mean
    data = table.values - table.values.mean(0)
    if options.noise is not None and options.spread is not None:
        family: Any = GaussianMean(prior_scale=options.spread, noise_scale=options.noise)
        model = f"Gaussian, noise {options.noise:g}, spread of the means {options.spread:g}"
    else:
        data, family = _standardised(options.file, table, data)
        model = "Gaussian with a covariance for each cluster, prior from the data"

    def describe(members: np.ndarray) -> Description:
        means = table.values[members].mean(0)
        named = list(zip(table.columns, means, strict=True))
        shown = {f"mean of {name}": f"{mean:,.4g}" for name, mean in named[:_NAMES_SHOWN]}
        return Description({f"mean of {name}": f"{mean:.6g}" for name, mean in named}, shown)

    return Points(
        size=size,
        names=table.names,
        times=table.times,
        data=data.astype(np.float32),
        family=family,
        model=model,
        what=f"{plural(size, 'point')} of {plural(dimension, 'column')}: " + _some(table.columns),
        describe=describe,
    )


def _standardised(file: str, table: PointsTable, data: np.ndarray) -> tuple[np.ndarray, "Family"]:
    """Scale the columns to unit variance, and return a family whose prior follows the data."""
    from numpyro_rankings.components import NormalInverseWishart

    size, dimension = data.shape
    deviation = data.std(0, ddof=1)
    is_constant = deviation <= _LEAST_DEVIATION * np.abs(table.values).max(0)
    if is_constant.any():
        raise UserError(
            f"{file}: column {table.columns[int(np.argmax(is_constant))]!r} has the same number in "
            "all lines: leave it out"
        )
    # The prior follows the units of the columns, so scaling changes rounding, and the log joint by
    # a constant, but no probability of a partition.
    data = data / deviation
    correlation = data.T @ data / (size - 1)
    if np.linalg.eigvalsh(correlation)[0] < _LEAST_EIGENVALUE:
        raise UserError(
            f"{file}: the covariance of {size} points in {dimension} columns is singular: leave "
            "out columns that can be computed from others, or give --noise and --spread"
        )
    # with κ = _WITHIN the means spread as widely as all points
    family = NormalInverseWishart(
        np.zeros(dimension), _WITHIN, dimension + 2.0, _WITHIN * correlation
    )
    return data, family


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")


# ---------------------------------------------------------------------------------------------
# Multinomial
# ---------------------------------------------------------------------------------------------


def _documents(options: ClusterOptions, documents: Documents) -> Points:
    from numpyro_rankings.components import DirichletMultinomial

    words, counts = documents.words, documents.counts
    size, num_words = len(words), len(documents.vocabulary)
    if size < 2:
        raise UserError(f"{options.file}: has one document, but at least two are needed")
    if num_words < 2:
        raise UserError(
            f"{options.file}: has {num_words} different words, but at least two are needed"
        )
    num_empty = int((counts.sum(1) == 0).sum())
    if num_empty == size:
        raise UserError(f"{options.file}: all documents are empty")
    if num_empty:
        note(
            f"{plural(num_empty, 'document')} without words: only the prior determines where they "
            "belong"
        )
    concentration = 1.0 if options.concentration is None else options.concentration
    total = np.zeros(num_words)
    np.add.at(total, words[words >= 0], counts[words >= 0])
    return Points(
        size=size,
        names=documents.names,
        times=documents.times,
        data=_as_counts(documents),
        family=DirichletMultinomial(concentration, vocabulary_size=num_words),
        model=f"multinomial, Dirichlet({concentration:g})",
        what=f"{plural(size, 'document')} of {plural(int(total.sum()), 'word')}, "
        f"{num_words:,} in the vocabulary",
        describe=lambda members: _describe_words(documents, total, members),
    )


def _as_counts(documents: Documents) -> Any:
    """Return the counts as a matrix, or in sparse form where that saves memory."""
    from numpyro_rankings.components import SparseCounts

    words, counts = documents.words, documents.counts
    num_words = len(documents.vocabulary)
    if 4 * words.shape[1] <= num_words:
        return SparseCounts(words, counts)
    matrix = np.zeros((len(words), num_words + 1), np.float32)
    np.put_along_axis(matrix, words, counts, axis=1)  # padding, -1, goes to the last column
    return matrix[:, :num_words]


def _describe_words(documents: Documents, total: np.ndarray, members: np.ndarray) -> Description:
    """Return the words that are typical of some documents, and their shares there.

    Word v is ranked by p ln(p / q), with p its share in these documents and q its share in all: it
    is frequent here, and more frequent than elsewhere.
    """
    words, counts = documents.words[members], documents.counts[members]
    mine, is_used = np.zeros(len(total)), words >= 0
    np.add.at(mine, words[is_used], counts[is_used])
    share, overall = mine / max(mine.sum(), 1.0), total / total.sum()
    lift = np.log(np.divide(share, overall, out=np.ones(len(total)), where=share > 0))
    order = np.lexsort((-mine, -(share * lift)))[:_NAMES_SHOWN]
    columns, shown = {}, []
    for k in range(_NAMES_SHOWN):
        has_one = k < len(order) and mine[order[k]] > 0
        word = documents.vocabulary[order[k]] if has_one else ""
        columns[f"word_{k + 1}"] = word
        columns[f"share_{k + 1}"] = f"{share[order[k]]:.4g}" if has_one else ""
        shown += [word] if has_one else []
    return Description(columns, {"words": ", ".join(shown)})
