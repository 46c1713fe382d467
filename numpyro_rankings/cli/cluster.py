"""The command ``numpyro-rankings cluster``: groups of points or documents, not of rankings."""

import argparse
import csv
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from numpyro_rankings.cli.arguments import (
    UserError,
    add_run_options,
    as_prior,
    check_draws,
    check_file,
    check_output,
    count,
    note,
    positive,
    scale,
)
from numpyro_rankings.cli.results import (
    describe_run,
    fit_width,
    print_diagnostics,
    print_reference,
    write_at_once,
)
from numpyro_rankings.cli.run import (
    available_memory,
    check_overflow,
    choose_thinning,
    gigabytes,
    memory_errors,
    notes,
    run_chains,
    use_compilation_cache,
)

if TYPE_CHECKING:
    import numpy as np

    from numpyro_rankings.cli.files import Documents, Table
    from numpyro_rankings.point_estimates import ReferencePartition
    from numpyro_rankings.summaries import PartitionProfile

FILES = ("posterior.nc", "clusters.csv", "assignments.csv", "report.html")
_MAX_CLUSTERS = 64  # by default
_DRAW_BYTES = 2**28  # draws of labels and links that are kept without asking
_WORDS_SHOWN = 10
_CLUSTERS_SHOWN = 20
# Covariance within clusters over that of all points, as the prior has it. With 1 instead, six
# clusters of 20 points on a grid came out as 2, and with this as 6.
_WITHIN = 0.1
_LEAST_EIGENVALUE = 1e-5  # of a correlation matrix that single precision can factor
_DECAYS = {"window": True, "exponential": True, "logistic": True, "identity": False}  # has a scale
_DECAYS_IN_WORDS = "window:A, exponential:A, logistic:A or identity"
_DISTANCES = ("distances", "time", "graph")
_OF_FAMILY = {
    "noise": "gaussian",
    "spread": "gaussian",
    "concentration": "multinomial",
    "vocab": "multinomial",
}


_ABOUT = """\
Find groups of points or of documents, and say who is in which; nobody says how many there are.

FILE is a table (.csv) whose first line names its columns. For the family gaussian the columns are
the coordinates of a point in each further line; for multinomial they are words, and each line is a
document with the counts of its words. The first column names the points if it has no name or no
numbers; points without names are numbered from 0. Documents may also come in the LDA-C format
(.ldac, .dat): in each line 'M word:count word:count …', words numbered from 0; a line '0' is an
empty document, of which only the prior says where it belongs.

The prior is a Chinese restaurant process. With --distances, --time or --graph it is a distance
dependent one (Blei & Frazier, JMLR 2011), in which points are likelier to share a cluster if they
are near. DIR gets four files:

  report.html      the clusters, and whether to trust them: open it in a browser
  clusters.csv     size of each cluster with its 90% interval, and its mean or words
  assignments.csv  the cluster of each point, and the probability that it is with its others
  posterior.nc     all draws, for ArviZ: arviz.from_netcdf("posterior.nc")
"""


_EXAMPLES = """\
examples:
  numpyro-rankings cluster points.csv --family gaussian
  numpyro-rankings cluster points.csv --family gaussian --noise 0.5 --spread 10 --alpha "gamma(1,1)"
  numpyro-rankings cluster papers.ldac --family multinomial --vocab words.txt
  numpyro-rankings cluster papers.ldac --family multinomial --graph citations.tsv
  numpyro-rankings cluster news.csv --family multinomial --time day --decay exponential:30
  numpyro-rankings cluster sites.csv --family gaussian --distances km.csv \\
      --decay "window:gamma(2,1)"

Exit status: 0 if the results were written, 2 after an error, 130 if interrupted.
"""


class _Points(NamedTuple):
    """What is clustered.

    - **size** - N; **names** - or None; **times** - or None.
    - **data** - as the family takes it.
    - **family** - of the components; **model** - in words.
    - **what** - the points in words.
    - **describe** - of members, what clusters.csv and the report say of them.
    """

    size: int
    names: list[str] | None
    times: "np.ndarray | None"
    data: Any
    family: Any
    model: str
    what: str
    describe: Callable[["np.ndarray"], tuple[dict[str, str], dict[str, str]]]


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the program."""
    parser = commands.add_parser(
        "cluster",
        help="find groups of points or documents",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="points (.csv) or documents (.csv, LDA-C)")
    parser.add_argument("--names", metavar="COLUMN", help="column of a .csv that names the points")

    family = parser.add_argument_group("family")
    family.add_argument(
        "--family",
        choices=["gaussian", "multinomial"],
        required=True,
        help="gaussian: points about the mean of their cluster; multinomial: counts of words",
    )
    family.add_argument(
        "--noise",
        type=lambda text: positive("--noise", text),
        metavar="S",
        help="gaussian, with --spread: standard deviation of points about the mean of their "
        "cluster, in each column. By default each cluster has a covariance of its own, with a weak "
        "prior taken from the data: inverse Wishart with d + 2 degrees of freedom, on average a "
        "tenth of the covariance of all points, and means that spread as widely as these",
    )
    family.add_argument(
        "--spread",
        type=lambda text: positive("--spread", text),
        metavar="T",
        help="gaussian, with --noise: standard deviation of the means of clusters about that of "
        "all points",
    )
    family.add_argument(
        "--concentration",
        type=lambda text: positive("--concentration", text),
        metavar="A",
        help="multinomial: the words of a cluster have Dirichlet(A) shares (default: 1, uniform)",
    )
    family.add_argument(
        "--vocab", metavar="FILE", help="multinomial: the words of an LDA-C file, one a line"
    )

    prior = parser.add_argument_group("prior")
    prior.add_argument(
        "--alpha",
        type=scale("--alpha", can_be_flat=False),
        default=1.0,
        metavar="A",
        help='concentration, larger for more clusters: a number, or a prior "gamma(shape,rate)" '
        "to learn it (default: 1)",
    )
    prior.add_argument(
        "--discount",
        type=_discount,
        metavar="D",
        help="of Pitman and Yor, from 0 to less than 1: larger for more small clusters; not with "
        "distances (default: 0)",
    )
    distances = prior.add_mutually_exclusive_group()
    distances.add_argument(
        "--distances",
        metavar="FILE",
        help="table (.csv) without a header: in line i the distances from point i to each; inf "
        "where it cannot link to the other",
    )
    distances.add_argument(
        "--time",
        metavar="COLUMN",
        help="column of a .csv with a number for the time, then no part of the data, or for LDA-C "
        "a file of one number a line: a point can link to those before it (of the same time, above "
        "it in the file)",
    )
    distances.add_argument(
        "--graph",
        metavar="FILE",
        help="edges, two points a line, by their names or numbers from 0; the distance is the "
        "number of hops",
    )
    prior.add_argument(
        "--hops",
        type=count("--hops", 1),
        metavar="H",
        help="with --graph: nobody links further than this (default: 1)",
    )
    prior.add_argument(
        "--decay",
        type=_decay,
        metavar="F:A",
        help="how links become rarer with the distance d: window:A, those nearer than A; "
        "exponential:A, exp(-d/A); logistic:A, 1/(1+exp(d-A)); identity, all alike. A is a number "
        'or a prior "gamma(shape,rate)" to learn it (default with --graph: window:H+0.5, all '
        "within the hops; otherwise there is none)",
    )

    sampler = parser.add_argument_group("sampler")
    sampler.add_argument(
        "--sampler",
        choices=["cycle", "collapsed"],
        help="one point at a time with moves that split and merge clusters, or without them; not "
        "with distances, where links are drawn (default: cycle)",
    )
    sampler.add_argument(
        "--max-clusters",
        type=count("--max-clusters", 1, 32767),
        metavar="C",
        help="room for so many clusters; not with distances (default: 64)",
    )
    add_run_options(parser, "four")
    parser.set_defaults(do=_cluster)


def _discount(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1:
        raise UserError(f"--discount must be a number from 0 to less than 1, got {text!r}")
    return number


def _decay(text: str) -> tuple[str, Any]:
    name, colon, rest = text.strip().partition(":")
    if name not in _DECAYS:
        raise UserError(f"--decay must be {_DECAYS_IN_WORDS}, got {text!r}")
    if not _DECAYS[name]:
        if colon:
            raise UserError(f"--decay {name} takes no scale, got {text!r}")
        return name, None
    if not rest.strip():
        raise UserError(f'--decay {name} needs a scale: {name}:A, a number or "gamma(shape,rate)"')
    return name, scale(f"the scale of --decay {name}", can_be_flat=False)(rest)


def _check_arguments(args: argparse.Namespace) -> None:
    for name, family in _OF_FAMILY.items():
        if getattr(args, name) is not None and args.family != family:
            raise UserError(f"--{name} goes with --family {family}")
    if (args.noise is None) != (args.spread is None):
        given, missing = ("noise", "spread") if args.spread is None else ("spread", "noise")
        raise UserError(f"--{given} goes with --{missing}: give both, or neither")
    linked = [name for name in _DISTANCES if getattr(args, name) is not None]
    for name in ("discount", "sampler", "max_clusters") if linked else ("decay", "hops"):
        if getattr(args, name) is not None:
            option = f"--{name.replace('_', '-')}"
            if linked:
                raise UserError(f"{option} does not go with --{linked[0]}")
            raise UserError(f"{option} goes with --distances, --time or --graph")
    if args.hops is not None and args.graph is None:
        raise UserError("--hops goes with --graph")
    if args.graph is not None:
        args.hops = args.hops or 1
        args.decay = args.decay or ("window", args.hops + 0.5)
    if linked and args.decay is None:
        raise UserError(
            f"--{linked[0]} needs --decay: {_DECAYS_IN_WORDS}, with A in the units of the "
            f"{'times' if args.time else 'distances'}"
        )
    check_draws(args)


def _cluster(args: argparse.Namespace, command: str) -> None:
    _check_arguments(args)
    check_output(args.out, args.force)
    check_file(args.file, "points")
    for name in (args.vocab, args.distances, args.graph):
        if name is not None:
            check_file(name, "text")
    with notes():
        use_compilation_cache()
        points = _read(args)
        distances = _read_distances(args, points)
        _check_memory(args, points, distances)
        thin = _thinning(args, points)
        with memory_errors():
            mcmc = _sample(args, points, distances, thin)
            check_overflow(mcmc, args.max_clusters or _MAX_CLUSTERS)
            data, profiles, reference, probability = _summarise(mcmc, points)
    details = _details(args, points, thin, command)
    data.attrs.update(details)

    def write(folder: Path) -> None:
        from numpyro_rankings.inference_data import save_inference_data
        from numpyro_rankings.report import write_partition_report

        save_inference_data(data, folder / "posterior.nc")
        described = [points.describe(p.members) for p in profiles]
        _write_clusters(folder / "clusters.csv", profiles, points, [row for row, _ in described])
        _write_assignments(folder / "assignments.csv", profiles, points, probability)
        write_partition_report(
            folder / "report.html",
            data,
            profiles,
            reference,
            {name: [shown[name] for _, shown in described] for name in described[0][1]},
            what=points.what,
            title=f"Groups in {Path(args.file).name}",
            figures=_figures(args, points, data, reference),
            details=details,
        )

    write_at_once(args.out, FILES, write)
    _print_summary(args.out, data, points, profiles, reference)


def _read(args: argparse.Namespace) -> _Points:
    from numpyro_rankings.cli.files import counts_of, is_ldac, read_ldac, read_table

    if not is_ldac(args.file):
        if args.vocab is not None:
            raise UserError("--vocab goes with an LDA-C file; a table names its columns")
        table = read_table(args.file, args.names, args.time)
        if args.names is None and table.names is None:
            _warn_of_numbering(table)
        if args.family == "multinomial":
            return _documents(args, counts_of(args.file, table))
        return _coordinates(args, table)
    if args.family != "multinomial":
        raise UserError(f"{args.file}: is in the LDA-C format, which is for --family multinomial")
    if args.names is not None:
        raise UserError("--names goes with a table (.csv); documents of LDA-C are numbered from 0")
    if args.time is not None:
        check_file(args.time, "times")
    return _documents(args, read_ldac(args.file, args.vocab, args.time))


def _warn_of_numbering(table: "Table") -> None:
    import numpy as np

    first = table.values[:, 0]
    if len(table.columns) > 1 and len(first) > 2 and np.all(np.diff(first) == 1):
        note(
            f"column {table.columns[0]!r} counts the points and is taken as data: --names "
            f"{table.columns[0]} if it is their names"
        )


def _coordinates(args: argparse.Namespace, table: "Table") -> _Points:
    import numpy as np

    from numpyro_rankings.components import GaussianMean, NormalInverseWishart

    size, dimension = table.values.shape
    if size < 2:
        raise UserError(f"{args.file}: has one point, and there is nothing to cluster")
    # about their mean, so that single precision has digits left
    data = table.values - table.values.mean(0)
    if args.noise is not None:
        family: Any = GaussianMean(prior_scale=args.spread, noise_scale=args.noise)
        model = f"Gaussian, noise {args.noise:g}, spread of the means {args.spread:g}"
    else:
        deviation = data.std(0, ddof=1)
        same = deviation <= 1e-12 * np.abs(table.values).max(0)
        if same.any():
            raise UserError(
                f"{args.file}: column {table.columns[int(np.argmax(same))]!r} has the same number "
                "in all lines: leave it out"
            )
        # the prior follows the units of the columns: this changes rounding, and the log joint by a
        # constant, but no probability of a partition
        data = data / deviation
        correlation = data.T @ data / (size - 1)
        if np.linalg.eigvalsh(correlation)[0] < _LEAST_EIGENVALUE:
            raise UserError(
                f"{args.file}: {size} points in {dimension} columns have a singular covariance: "
                "leave out columns that follow from others, or give --noise and --spread"
            )
        # with κ = _WITHIN the means spread as widely as all points
        family = NormalInverseWishart(
            np.zeros(dimension), _WITHIN, dimension + 2.0, _WITHIN * correlation
        )
        model = "Gaussian with a covariance for each cluster, prior from the data"

    def describe(members: np.ndarray) -> tuple[dict[str, str], dict[str, str]]:
        means = table.values[members].mean(0)
        named = list(zip(table.columns, means, strict=True))
        shown = {f"mean of {name}": f"{mean:,.4g}" for name, mean in named[:_WORDS_SHOWN]}
        return {f"mean of {name}": f"{mean:.6g}" for name, mean in named}, shown

    what = f"{_plural(size, 'point')} of {_plural(dimension, 'column')}: " + _some(table.columns)
    return _Points(
        size, table.names, table.times, data.astype(np.float32), family, model, what, describe
    )


def _documents(args: argparse.Namespace, documents: "Documents") -> _Points:
    import numpy as np

    from numpyro_rankings.components import DirichletMultinomial, SparseCounts

    words, counts = documents.words, documents.counts
    size, number = len(words), len(documents.vocabulary)
    if size < 2:
        raise UserError(f"{args.file}: has one document, and there is nothing to cluster")
    if number < 2:
        raise UserError(f"{args.file}: has {number} words, and there is nothing to tell apart")
    num_empty = int((counts.sum(1) == 0).sum())
    if num_empty == size:
        raise UserError(f"{args.file}: all documents are empty")
    if num_empty:
        note(f"{_plural(num_empty, 'document')} without words: only the prior says where they go")
    concentration = 1.0 if args.concentration is None else args.concentration
    family = DirichletMultinomial(concentration, vocabulary_size=number)
    data: Any = SparseCounts(words, counts)
    if 4 * words.shape[1] > number:  # sparse counts would save nothing
        data = np.zeros((size, number + 1), np.float32)
        np.put_along_axis(data, words, counts, axis=1)  # what is padded goes to the last column
        data = data[:, :number]
    total = np.zeros(number)
    np.add.at(total, words[words >= 0], counts[words >= 0])

    def describe(members: np.ndarray) -> tuple[dict[str, str], dict[str, str]]:
        mine, used = np.zeros(number), words[members] >= 0
        np.add.at(mine, words[members][used], counts[members][used])
        # p ln(p/q): much used here, and more than elsewhere
        share, overall = mine / max(mine.sum(), 1.0), total / total.sum()
        lift = np.log(np.divide(share, overall, out=np.ones(number), where=share > 0))
        order = np.lexsort((-mine, -(share * lift)))[:_WORDS_SHOWN]
        row, shown = {}, []
        for k in range(_WORDS_SHOWN):
            has_one = k < len(order) and mine[order[k]] > 0
            word = documents.vocabulary[order[k]] if has_one else ""
            row[f"word_{k + 1}"] = word
            row[f"share_{k + 1}"] = f"{share[order[k]]:.4g}" if has_one else ""
            shown += [word] if has_one else []
        return row, {"words": ", ".join(shown)}

    what = (
        f"{_plural(size, 'document')} of {_plural(int(total.sum()), 'word')}, "
        f"{number:,} in the vocabulary"
    )
    model = f"multinomial, Dirichlet({concentration:g})"
    return _Points(size, documents.names, documents.times, data, family, model, what, describe)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_WORDS_SHOWN]) + (", …" if len(names) > _WORDS_SHOWN else "")


def _plural(number: int, noun: str) -> str:
    from numpyro_rankings.words import plural

    return plural(number, noun)


def _read_distances(args: argparse.Namespace, points: _Points) -> Any:
    from numpyro_rankings.cli.files import distances_in_time, read_distances, read_graph

    if args.time is not None:
        assert points.times is not None
        return distances_in_time(points.times)
    if args.distances is not None:
        return read_distances(args.distances, points.size)
    if args.graph is not None:
        return read_graph(args.graph, points.size, points.names, args.hops)
    return None


def _check_memory(args: argparse.Namespace, points: _Points, distances: Any) -> None:
    """What a sampler needs beside the draws; roughly, from below."""
    number = points.family.vocabulary_size if args.family == "multinomial" else 1
    slots = args.max_clusters or _MAX_CLUSTERS if distances is None else points.size
    needed = 3 * 4 * args.chains * slots * number  # statistics of all clusters
    if distances is not None and args.graph is None:
        is_learned = isinstance(args.decay[1], tuple)
        needed += 4 * points.size**2 * (3 + 2 * args.chains * is_learned)
    free = available_memory()
    if free is not None and needed > 0.8 * free:
        raise UserError(
            f"{'clusters' if distances is None else 'links'} of {points.size:,} points in "
            f"{args.chains} chains need about "
            f"{gigabytes(needed)} of memory, and {gigabytes(free)} is free: lower --chains, or "
            "take fewer points or words"
        )


def _thinning(args: argparse.Namespace, points: _Points) -> int:
    slots = points.size if args.decay else args.max_clusters or _MAX_CLUSTERS
    label = 1 if slots <= 127 else 2 if slots <= 32767 else 4
    draw_bytes = args.chains * points.size * (label + (4 if args.decay else 0))
    what = f"{points.size:,} points"
    return choose_thinning(args, what, draw_bytes, 0, _DRAW_BYTES)


def _sample(args: argparse.Namespace, points: _Points, distances: Any, thin: int) -> Any:
    from numpyro_rankings import infer

    alpha = as_prior(args.alpha)
    if args.decay is not None:
        name, size = args.decay
        make_decay = getattr(infer, f"{name}_decay")
        decay = make_decay() if size is None else make_decay(as_prior(size))
        settings: tuple = (points.family, alpha, decay)
        return run_chains(args, thin, infer.DDCRPGibbs, (settings, {}), (points.data, distances))
    shared: dict[str, Any] = {
        "discount": args.discount or 0.0,
        # there cannot be more than points
        "max_clusters": args.max_clusters or min(_MAX_CLUSTERS, points.size),
    }
    if args.sampler == "collapsed":
        kernel: Any = infer.CollapsedGibbs
        return run_chains(args, thin, kernel, ((points.family, alpha), shared), (points.data,))
    kernels = [
        make_kernel(points.family, alpha, **shared)
        for make_kernel in (infer.CollapsedGibbs, infer.SplitMerge)
    ]
    return run_chains(args, thin, infer.Cycle, ((kernels,), {}), (points.data,))


def _summarise(
    mcmc: Any, points: _Points
) -> tuple[Any, list["PartitionProfile"], "ReferencePartition", "np.ndarray"]:
    """For ArviZ, a profile of each cluster, the partition that they describe, and who is in it."""
    import numpy as np

    from numpyro_rankings.inference_data import to_inference_data
    from numpyro_rankings.point_estimates import reference_partition
    from numpyro_rankings.summaries import membership_probability, partition_profiles

    labels = np.asarray(mcmc.get_samples()["assignments"])
    reference = reference_partition(labels)
    profiles = partition_profiles(labels, reference)
    probability = membership_probability(labels, reference.labels)
    return to_inference_data(mcmc, points=points.names), profiles, reference, probability


def _details(args: argparse.Namespace, points: _Points, thin: int, command: str) -> dict[str, str]:
    def number(value: Any) -> str:
        return "gamma({1:g},{2:g})".format(*value) if isinstance(value, tuple) else f"{value:g}"

    prior = f"Chinese restaurant process, concentration {number(args.alpha)}"
    if args.decay is not None:
        name, size = args.decay
        option = next(name for name in _DISTANCES if getattr(args, name) is not None)
        hops = f", {args.hops} hops" if args.graph is not None else ""
        prior = (
            f"distance dependent {prior}, --{option} {getattr(args, option)}{hops}, decay {name}"
            + ("" if size is None else f" of scale {number(size)}")
        )
    elif args.discount:
        prior += f", discount {args.discount:g}"
    return {
        "command": command,
        "data": f"{args.file}: {points.what}",
        "model": f"{points.model}; {prior}",
        **describe_run(args, thin),
    }


def _figures(
    args: argparse.Namespace, points: _Points, data: Any, reference: "ReferencePartition"
) -> list[tuple[Any, str]]:
    """Of clusters in time, and of a decay whose scale was learned; the captions."""
    from numpyro_rankings import decays, plots

    figures = []
    if points.times is not None:
        caption = "When each cluster has its points; clusters by the time of their first."
        figures.append((plots.plot_partition_in_time(points.times, reference, 20), caption))
    if "decay_scale" in data["posterior"]:
        name, size = args.decay
        decay = getattr(decays, f"{name}_decay")(as_prior(size))
        caption = "How much rarer links become with the distance, as learned."
        scales = data["posterior"]["decay_scale"].values
        figures.append((plots.plot_decay(decay, scales), caption))
    return figures


def _write_clusters(
    path: Path,
    profiles: Sequence["PartitionProfile"],
    points: _Points,
    described: Sequence[dict[str, str]],
) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        for i, (p, more) in enumerate(zip(profiles, described, strict=True), 1):
            row = {
                "cluster": i,
                "size": f"{p.size:.6g}",
                "size_low": f"{p.size_interval[0]:.6g}",
                "size_high": f"{p.size_interval[1]:.6g}",
                "share": f"{p.size / points.size:.6g}",
                "presence": f"{p.presence:.6g}",
                "members": len(p.members),
                "cohesion": f"{p.cohesion:.6g}",
                **more,
            }
            if i == 1:
                table.writerow(row)
            table.writerow(row.values())


def _write_assignments(
    path: Path,
    profiles: Sequence["PartitionProfile"],
    points: _Points,
    probability: "np.ndarray",
) -> None:
    clusters = {int(k): i for i, p in enumerate(profiles, 1) for k in p.members}
    names = range(points.size) if points.names is None else points.names
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(["point", "cluster", "probability"])
        for k, name in enumerate(names):
            table.writerow([name, clusters[k], f"{probability[k]:.4g}"])


def _print_summary(
    out: Path,
    data: Any,
    points: _Points,
    profiles: Sequence["PartitionProfile"],
    reference: "ReferencePartition",
) -> None:
    width = shutil.get_terminal_size((100, 24)).columns
    print(f"\n{_plural(len(profiles), 'group')} in {points.what}\n")
    print("cluster     size  (90% interval)   share  presence  cohesion  what it has")
    for i, p in enumerate(profiles[:_CLUSTERS_SHOWN], 1):
        low, high = p.size_interval
        line = (
            f"{i:>7} {p.size:>8,.0f}  {f'({low:,.0f}–{high:,.0f})':<15} "
            f"{p.size / points.size:>6.1%}  {p.presence:>8.0%}  {p.cohesion:>8.0%}  "
        )
        _, shown = points.describe(p.members)
        text = ", ".join(
            value if name == "words" else f"{name} {value}" for name, value in shown.items()
        )
        print(line + fit_width(text, max(20, width - len(line))))
    if len(profiles) > _CLUSTERS_SHOWN:
        rest = len(profiles) - _CLUSTERS_SHOWN
        print(f"    and {_plural(rest, 'smaller one')}, in clusters.csv")
    print_reference(reference)
    print_diagnostics(data, out, FILES)
