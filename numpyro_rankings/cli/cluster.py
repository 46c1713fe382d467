"""The command ``numpyro-rankings cluster``: groups of points or documents, not of rankings."""

import argparse
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpyro_rankings.cli.arguments import MAX_CLUSTERS, Scale, add_options, as_prior, check_file
from numpyro_rankings.cli.capacity import (
    check_memory,
    choose_thinning,
    label_bytes,
    memory_errors,
)
from numpyro_rankings.cli.cluster_options import ClusterOptions, parse_options
from numpyro_rankings.cli.options import Plan, RunOptions
from numpyro_rankings.cli.results import (
    print_diagnostics,
    print_groups,
    print_reference,
    print_title,
)
from numpyro_rankings.cli.session import RunSession, Sampled, begin_session, check_overflow
from numpyro_rankings.words import plural

if TYPE_CHECKING:
    from numpyro_rankings.cli.points import Description, Points
    from numpyro_rankings.report.findings import Findings
    from numpyro_rankings.report.page import Status

_CLUSTERS_SHOWN = 20  # on the screen, and in the figure of clusters in time
_ABOUT = """\
Find groups of points or documents. The number of groups is inferred.

FILE is a table (.csv) whose first line names its columns. With --family gaussian the columns are
coordinates, and each further line is a point. With --family multinomial the columns are words, and
each further line is a document, given by the counts of its words. The first column names the points
if it has no name or contains no numbers; points without names are numbered from 0. A note says what
each column was taken for, and cells such as '10%' are refused. Documents can also be in the LDA-C
format (.ldac, .dat): each line is 'M word:count word:count …', with M different words, numbered
from 0. A line '0' is an empty document; only the prior determines where it belongs.

The prior is a Chinese restaurant process. With --distances, --time or --graph it is a distance
dependent Chinese restaurant process (Blei & Frazier, JMLR 2011), in which points are more likely to
share a cluster if they are near. Four files are written to --out DIR:

  report.html      the clusters, and whether the results can be trusted; open it in a browser
  clusters.csv     the size of each cluster with its 90% interval, and its means or words
  assignments.csv  the cluster of each point, and the probability that it is in the same cluster as
                   the other points there
  posterior.nc     the draws behind the results, for ArviZ: arviz.from_netcdf("posterior.nc").
                   They are those after the burn-in, an eighth to a half of the run (with --draws:
                   all after the warm-up), at most 4,000 of each chain, and fewer than that beyond
                   256 MB
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

Exit status: 0 if the results were written, 2 after an error, 130 after Ctrl-C, 143 after SIGTERM,
129 after a hang-up.
"""


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
    add_options(parser, ClusterOptions)
    add_options(parser, RunOptions)
    parser.set_defaults(do=_cluster)


# ---------------------------------------------------------------------------------------------
# The run
# ---------------------------------------------------------------------------------------------


def _cluster(args: argparse.Namespace, command: str) -> int:
    options = parse_options(args)
    with begin_session(options.run, command) as session:
        check_file(options.file, "points")
        for name in (options.vocab, options.distances, options.graph):
            if name is not None:
                check_file(name, "text")
        return _cluster_points(options, session)


def _cluster_points(options: ClusterOptions, session: RunSession) -> int:
    with session.preparing():
        from numpyro_rankings.cli.points import read_distances_of, read_points

        points = read_points(options)
        distances = read_distances_of(options, points)
        _check_memory(session.plan, options, points, distances)
        thin = _choose_thinning(session.plan, options, points)
        with memory_errors():
            sampled = _sample(session, options, points, distances, thin)
            check_overflow(sampled.mcmc, options.max_clusters)
            session.say("summarising the draws")
            findings = _summarise(sampled, points)
            descriptions = [points.describe(p.members) for p in findings.profiles]

    def show(findings: "Findings", status: "Status | None") -> None:
        print_title(findings, points.what)
        lines = [_in_words(d) for d in descriptions]
        print_groups(findings, "", [""] * len(lines), lines, _CLUSTERS_SHOWN)
        assert findings.reference is not None  # of points it is always known
        print_reference(findings.reference)
        print_diagnostics(findings, session.out, status)

    model = f"{points.model}; {_prior_in_words(options)}"
    details = session.details(f"{options.file}: {points.what}", model, thin, sampled.lengths)
    write = functools.partial(_write, options, points, descriptions)
    return session.conclude(sampled, findings, details, write, show)


def _check_memory(plan: Plan, options: ClusterOptions, points: "Points", distances: Any) -> None:
    """Refuse data for which a sampler needs too much memory beside the draws, at the least."""
    num_words = points.family.vocabulary_size if options.family == "multinomial" else 1
    slots = options.max_clusters or MAX_CLUSTERS if distances is None else points.size
    needed = 3 * 4 * plan.chains * slots * num_words  # statistics of all clusters
    if options.decay is not None and options.graph is None:
        is_learned = isinstance(options.decay[1], tuple)
        needed += 4 * points.size**2 * (3 + 2 * plan.chains * is_learned)
    check_memory(
        f"{'clusters' if distances is None else 'links'} of {points.size:,} points in "
        f"{plural(plan.chains, 'chain')}",
        needed,
        "lower --chains, or use fewer points or words",
    )


def _choose_thinning(plan: Plan, options: ClusterOptions, points: "Points") -> int:
    has_links = options.decay is not None
    slots = points.size if has_links else options.max_clusters or MAX_CLUSTERS
    labels = plan.chains * points.size * (label_bytes(slots) + 4 * has_links)
    return choose_thinning(plan, f"{points.size:,} points", labels)


def _sample(
    session: RunSession, options: ClusterOptions, points: "Points", distances: Any, thin: int
) -> Sampled:
    data = (points.data,) if distances is None else (points.data, distances)
    return session.sample(_kernel(options, points), data, thin, options.max_clusters)


def _kernel(options: ClusterOptions, points: "Points") -> Any:
    from numpyro_rankings import infer

    alpha = as_prior(options.alpha)
    if options.decay is not None:
        return infer.DDCRPGibbs(points.family, alpha, _decay_function(*options.decay))
    settings: dict[str, Any] = {
        "discount": options.discount or 0.0,
        # there cannot be more clusters than points
        "max_clusters": options.max_clusters or min(MAX_CLUSTERS, points.size),
    }
    collapsed = infer.CollapsedGibbs(points.family, alpha, **settings)
    if options.sampler == "collapsed":
        return collapsed
    return infer.Cycle([collapsed, infer.SplitMerge(points.family, alpha, **settings)])


def _decay_function(name: str, size: Scale | None) -> Any:
    from numpyro_rankings.links import decays

    make_decay = getattr(decays, f"{name}_decay")
    return make_decay() if size is None else make_decay(as_prior(size))


# ---------------------------------------------------------------------------------------------
# The results
# ---------------------------------------------------------------------------------------------


def _summarise(sampled: Sampled, points: "Points") -> "Findings":
    from numpyro_rankings.posterior.inference_data import to_inference_data
    from numpyro_rankings.report.findings import findings_of

    data = to_inference_data(sampled.mcmc, points=points.names)
    sampled.note_changes(data)
    return findings_of(data)


def _prior_in_words(options: ClusterOptions) -> str:
    """Describe the prior of the partition, for the last section of the report."""

    def in_words(value: Any) -> str:
        return "gamma({1:g},{2:g})".format(*value) if isinstance(value, tuple) else f"{value:g}"

    prior = f"Chinese restaurant process, concentration {in_words(options.alpha)}"
    if options.source is not None and options.decay is not None:
        name, size = options.decay
        hops = f" within {plural(options.hops or 1, 'hop')}" if options.graph is not None else ""
        source = f"--{options.source} {getattr(options, options.source)}{hops}"
        of_scale = "" if size is None else f" of scale {in_words(size)}"
        return f"distance dependent {prior}, {source}, {name} decay{of_scale}"
    return f"{prior}, discount {options.discount:g}" if options.discount else prior


def _write(
    options: ClusterOptions,
    points: "Points",
    descriptions: "list[Description]",
    folder: Path,
    findings: "Findings",
    status: "Status | None",
) -> None:
    from numpyro_rankings.cli.tables import write_assignments, write_clusters
    from numpyro_rankings.posterior.inference_data import save_inference_data
    from numpyro_rankings.report import write as report

    profiles = findings.profiles
    columns_of_family = {p.label: d.columns for p, d in zip(profiles, descriptions, strict=True)}
    clusters = {int(k): number for number, p in enumerate(profiles, 1) for k in p.members}
    assert findings.membership is not None  # of points it is always known
    save_inference_data(findings.data, folder / "posterior.nc")
    write_clusters(folder / "clusters.csv", findings, lambda p: columns_of_family[p.label])
    write_assignments(
        folder / "assignments.csv",
        {"point": range(points.size) if points.names is None else points.names},
        (clusters[k] for k in range(points.size)),
        findings.membership,
    )
    report.write_findings_of_points(
        folder / "report.html",
        findings,
        {name: [d.shown[name] for d in descriptions] for name in descriptions[0].shown},
        what=points.what,
        title=f"Groups in {Path(options.file).name}",
        figures=_figures(options, points, findings),
        status=status,
    )


def _figures(
    options: ClusterOptions, points: "Points", findings: "Findings"
) -> list[tuple[Any, str]]:
    """Return figures of clusters in time and of a learned decay, where there are any."""
    from numpyro_rankings import plots

    figures = []
    if points.times is not None:
        ax = plots.plot_partition_in_time(points.times, findings.reference, _CLUSTERS_SHOWN)
        caption = "When each cluster has its points; clusters are ordered by their first point."
        figures.append((ax, caption))
    if "decay_scale" in findings.data["posterior"] and options.decay is not None:
        scales = findings.data["posterior"]["decay_scale"].values
        ax = plots.plot_decay(_decay_function(*options.decay), scales)
        figures.append((ax, "How the weight of links decreases with the distance, as learned."))
    return figures


def _in_words(description: "Description") -> str:
    return ", ".join(
        text if name == "words" else f"{name} {text}" for name, text in description.shown.items()
    )
