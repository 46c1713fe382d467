"""``numpyro-rankings fit``: a mixture for a file of rankings."""

import argparse
import csv
import math
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from numpyro_rankings.cli.arguments import (
    PROGRAM,
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
    check_overflow,
    choose_thinning,
    memory_errors,
    notes,
    run_chains,
    use_compilation_cache,
)

if TYPE_CHECKING:
    import numpy as np

    from numpyro_rankings.point_estimates import ReferencePartition
    from numpyro_rankings.predictive_checks import PredictiveChecks
    from numpyro_rankings.rankings import Rankings
    from numpyro_rankings.summaries import ClusterProfile, WeightsProfile

FILES = ("posterior.nc", "clusters.csv", "assignments.csv", "report.html")
_BUNDLED = "apa1980"
_MAX_CLUSTERS = 64  # by default
_CHECK_DRAWS, _CHECK_ENTRIES = 50, 2**26  # replicated, and of their tables of pairs
# Options that not every model has: for which, and what each takes by default there.
_OF_MODEL: dict[str, dict[str, Any]] = {
    "components": {"mallows": None, "plackett-luce": 1},
    "alpha": {
        "mallows": 1.0,
        "plackett-luce": 1.0,
        "gamma-process": ("gamma", 1.0, 0.1),
        "dp-plackett-luce": ("gamma", 1.0, 0.1),
    },
    "nu": {"mallows": [1.0]},
    "r": {"mallows": [1.0]},
    "shape": {"plackett-luce": 1.0},
    "sigma": {"gamma-process": 0.0},
    "phi": {"dp-plackett-luce": ("gamma", 1.0, 0.01)},
    "gamma": {"dp-plackett-luce": ("gamma", 1.0, 1.0)},
    "sampler": {"mallows": "slice"},
    "approximate": {"mallows": False},
    "assignment": {"mallows": None},
    "init": {"mallows": None},
    "max_clusters": {"mallows": _MAX_CLUSTERS, "dp-plackett-luce": _MAX_CLUSTERS},
}


_PROCESS = 0  # components of "dp"
_MODELS = ("mallows", "plackett-luce", "gamma-process", "dp-plackett-luce")
_LABEL_BYTES = 2**28  # draws of labels that are kept without asking
_FIT = """\
Fit a model or mixture of models to a file of rankings.

FILE is a PrefLib file of strict orders (.soc, .soi) or a table in this project's own format
(.csv); without one, the bundled 15,449 ballots of the American Psychological Association's 1980
election are fitted. DIR gets four files:

  report.html      the groups, their orders, and whether to trust them: open it in a browser
  clusters.csv     size, consensus order and concentrations (or weights of the items) of each
                   cluster, with 90% intervals
  assignments.csv  the cluster of each ranking, and the probability that it is with its others
  posterior.nc     all draws, for ArviZ: arviz.from_netcdf("posterior.nc")
"""


_EXAMPLES = """\
examples:
  numpyro-rankings fit
  numpyro-rankings fit ballots.soi --out results --seed 1
  numpyro-rankings fit ballots.soi --components 3 --alpha "gamma(1,1)"
  numpyro-rankings fit ballots.soi --draws 8000 --thin 4
  numpyro-rankings fit ballots.soi --model plackett-luce --components 3
  numpyro-rankings fit lists.csv --model dp-plackett-luce --alpha flat

a table in this project's own format, best first:
  # item A: Ann Able
  # item B: Bob Best
  # item C: Cid Chair
  count,ordering
  14,C>A>B
  6,B

Exit status: 0 if the results were written, 2 after an error, 130 if interrupted.
"""


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the program."""
    parser = commands.add_parser(
        "fit",
        help="fit a mixture to a file of rankings",
        description=_FIT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="rankings; default: APA 1980")

    model = parser.add_argument_group("model")
    model.add_argument(
        "--model",
        choices=_MODELS,
        default="mallows",
        help="mallows: consensus orders; plackett-luce: weights of the items; gamma-process: the "
        "same for a pool of items without end, of which FILE lists some; dp-plackett-luce: a "
        "Dirichlet process mixture of these (default: mallows)",
    )
    model.add_argument(
        "--components",
        type=_components,
        metavar="dp|K",
        help="of mallows and plackett-luce. dp: a Dirichlet process, which finds the number of "
        "clusters; or a number K of components, 1 for a single population (default: dp for "
        "mallows, 1 for plackett-luce, which has no dp here: see dp-plackett-luce)",
    )
    model.add_argument(
        "--alpha",
        type=scale("--alpha"),
        metavar="A",
        help="mallows, plackett-luce: concentration of the partition, larger for more clusters; "
        "gamma-process, dp-plackett-luce: of the pool, larger for more items. A number, or a "
        'prior "gamma(shape,rate)" to learn it, or for the pool flat: 1/x (default: 1; of the '
        "pool gamma(1,0.1))",
    )
    model.add_argument(
        "--nu",
        type=_positive_list("--nu"),
        metavar="NU",
        help="mallows: prior of θ, how many rankings it is worth; a number, or one for each stage "
        "with commas between (default: 1)",
    )
    model.add_argument(
        "--r",
        type=_positive_list("--r"),
        metavar="R",
        help="mallows: prior of θ, mean number of better items that a choice passes over; a "
        "number, or one for each stage (default: 1)",
    )
    model.add_argument(
        "--shape",
        type=lambda text: positive("--shape", text),
        metavar="A",
        help="plackett-luce: the weights are Dirichlet(shape) (default: 1)",
    )
    model.add_argument(
        "--sigma",
        type=_sigma,
        metavar="S",
        help="gamma-process: index of the generalised gamma process, from 0 to less than 1 "
        "(default: 0)",
    )
    model.add_argument(
        "--phi",
        type=scale("--phi"),
        metavar="F",
        help="dp-plackett-luce: how much clusters resemble one another; like --alpha, but flat "
        "makes the posterior improper (default: gamma(1,0.01))",
    )
    model.add_argument(
        "--gamma",
        type=scale("--gamma"),
        metavar="G",
        help="dp-plackett-luce: concentration of the Dirichlet process, larger for more clusters; "
        "like --alpha, but flat makes the posterior improper (default: gamma(1,1))",
    )

    sampler = parser.add_argument_group("sampler")
    sampler.add_argument("--sampler", choices=["slice", "beta"], help="of mallows (default: slice)")
    sampler.add_argument(
        "--approximate",
        action="store_true",
        default=None,
        help="with --sampler beta: the paper's approximation of the labels' weights",
    )
    sampler.add_argument(
        "--assignment",
        choices=["parallel", "sequential"],
        help="with --sampler slice: all labels at once, or one by one (default: parallel)",
    )
    sampler.add_argument(
        "--init",
        choices=["search", "nearest", "random"],
        help="where chains of mallows start: near a good mode of K components; at clusters around "
        "20 random rankings; anywhere (default: search with --components K unless there are too "
        "many items for it, otherwise nearest)",
    )
    sampler.add_argument(
        "--max-clusters",
        type=count("--max-clusters", 1, 32767),
        metavar="C",
        help="room for so many clusters of the Dirichlet process, with those that are tried and "
        "not kept, which may be several times as many (default: 64)",
    )

    add_run_options(parser, "three")
    parser.set_defaults(do=_fit)


def _positive_list(option: str) -> Callable[[str], list[float]]:
    return lambda text: [positive(option, part) for part in text.split(",")]


def _sigma(text: str) -> float:
    from numpyro_rankings.infer.plackett_luce.gamma_process import LEAST_SIGMA

    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (number == 0 or LEAST_SIGMA <= number < 1):
        raise UserError(
            f"--sigma must be 0, or a number from {LEAST_SIGMA} to less than 1, got {text!r}"
        )
    return number


def _components(text: str) -> int:
    return _PROCESS if text.lower() == "dp" else count("--components", 1, 32767)(text)


def _fit(args: argparse.Namespace, command: str) -> None:
    _check_arguments(args)
    check_output(args.out, args.force)
    if args.file is not None:
        check_file(args.file)
    with notes():
        use_compilation_cache()
        rankings = _read(args.file)
        _check_rankings(args, rankings)
        thin = _thinning(args, rankings)
        with memory_errors():
            mcmc = _sample(args, rankings, thin)
            if args.components is None:
                check_overflow(mcmc, args.max_clusters)
            found = _summarise(mcmc, rankings, args.seed)
    details = _details(args, rankings, thin, command)
    found.data.attrs.update({name.replace(" ", "_"): text for name, text in details.items()})
    write_at_once(args.out, FILES, lambda folder: _write(folder, args, rankings, found, details))
    _print_summary(args.out, rankings, found)


def _fill_in(args: argparse.Namespace) -> None:
    """Defaults of the model; options of other models are refused."""
    for name, defaults in _OF_MODEL.items():
        if getattr(args, name) is None:
            setattr(args, name, defaults.get(args.model))
        elif args.model not in defaults:
            option = "--" + name.replace("_", "-")
            raise UserError(f"{option} goes with --model {' or '.join(defaults)}")


def _check_arguments(args: argparse.Namespace) -> None:
    asked_for_room, asked_for_alpha = args.max_clusters is not None, args.alpha is not None
    if args.model == "plackett-luce" and args.components == _PROCESS:
        raise UserError("--components dp goes with mallows; see --model dp-plackett-luce")
    _fill_in(args)
    args.components = None if args.components == _PROCESS else args.components
    for name in ("phi", "gamma"):
        if getattr(args, name) == "flat":
            note(
                f"with --{name} flat the posterior is improper: "
                + ("clusters all alike" if name == "phi" else "one single cluster")
                + ", if the chains end there, means nothing"
            )
    if args.alpha == "flat" and args.model in ("mallows", "plackett-luce"):
        raise UserError("--alpha flat goes with --model gamma-process or dp-plackett-luce")
    if args.approximate and args.sampler != "beta":
        raise UserError("--approximate goes with --sampler beta; the slice sampler is exact")
    if args.assignment is not None and args.sampler == "beta":
        raise UserError("--assignment goes with --sampler slice; the beta sampler is sequential")
    if args.init == "search" and (args.components or 1) == 1:
        raise UserError("--init search goes with --components K, of 2 or more")
    if args.components == 1 and asked_for_alpha:
        raise UserError(
            "--alpha has no say with --components 1: a single population has no weights"
        )
    check_draws(args)
    if args.components is not None and asked_for_room:
        note(f"--max-clusters has no effect with --components {args.components}")


def _read(name: str | None) -> "Rankings":
    from numpyro_rankings.datasets import load_dataset, read_rankings
    from numpyro_rankings.rankings import RankingsError

    if name is None:
        return load_dataset(_BUNDLED)
    try:
        return read_rankings(name)
    except RankingsError as error:
        raise UserError(str(error)) from None


def _check_rankings(args: argparse.Namespace, rankings: "Rankings") -> None:
    name = args.file or _BUNDLED
    if rankings.choice_sets is not None and args.model != "plackett-luce":
        not_offered = (
            f" ({rankings.items[item]} was not offered in row {row + 1})"
            for row, offered in enumerate(rankings.choice_sets.tolist())
            for item, was_offered in enumerate(offered)
            if not was_offered
        )
        raise UserError(
            f"{name}: its rankings are of choice sets{next(not_offered, '')}; only "
            "--model plackett-luce can use them"
        )
    if rankings.num_items < 2:
        raise UserError(f"{name}: has one item, and there is nothing to rank")
    if args.model in ("gamma-process", "dp-plackett-luce"):
        if rankings.of_listed_items().num_items < 2:
            raise UserError(f"{name}: all rankings list one and the same item")
    if args.model != "mallows":
        return
    num_stages = min(int(rankings.orderings.shape[1]), rankings.num_items - 1)
    for option, numbers in (("--nu", args.nu), ("--r", args.r)):
        if len(numbers) not in (1, num_stages):
            raise UserError(
                f"{option} has {len(numbers)} numbers, but {name} has {num_stages} stages (places "
                "of the longest list, without the last of all items): give one, or one for each"
            )


def _thinning(args: argparse.Namespace, rankings: "Rankings") -> int:
    slots = args.components or args.max_clusters or 1
    has_labels = slots > 1 or args.model == "mallows"
    label_bytes = args.chains * rankings.num_rankings * (1 if slots <= 127 else 2) * has_labels
    num_stages = min(int(rankings.orderings.shape[1]), rankings.num_items - 1)
    slot_bytes = 4 * args.chains * slots * (rankings.num_items + num_stages)
    what = f"{rankings.num_rankings:,} rankings"
    return choose_thinning(args, what, label_bytes, slot_bytes, _LABEL_BYTES)


def _sample(args: argparse.Namespace, rankings: "Rankings", thin: int) -> Any:
    from numpyro_rankings import infer

    def announce(kernel: Any) -> None:
        if args.model == "mallows" and kernel._search_iterations(rankings) > 0:
            print(f"{PROGRAM}: looking for a start, which can take minutes", file=sys.stderr)

    name, settings = _kernel_settings(args)
    if args.model in ("gamma-process", "dp-plackett-luce"):
        rankings = rankings.of_listed_items()
    as_arguments = args.model != "mallows"  # as constants, XLA would add up all of them
    make_kernel = getattr(infer, name)
    return run_chains(args, thin, make_kernel, ((), settings), (rankings,), as_arguments, announce)


def _kernel_settings(args: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Name of the kernel, and what it is given."""
    import jax.numpy as jnp

    settings: dict[str, Any] = {"alpha": as_prior(args.alpha)}
    if args.model == "plackett-luce":
        return "PlackettLuceGibbs", {
            **settings,
            "shape": args.shape,
            "num_components": args.components,
        }
    if args.model == "gamma-process":
        return "GammaProcessPlackettLuceGibbs", {**settings, "sigma": args.sigma}
    settings["max_clusters"] = args.max_clusters
    if args.model == "dp-plackett-luce":
        settings |= {"phi": as_prior(args.phi), "gamma": as_prior(args.gamma)}
        return "DPPlackettLuceGibbs", settings
    settings |= {
        "nu": args.nu[0] if len(args.nu) == 1 else jnp.array(args.nu),
        "r": args.r[0] if len(args.r) == 1 else jnp.array(args.r),
        "num_components": args.components,
        "init": args.init,
    }
    if args.sampler == "beta":
        return "BetaGibbs", {**settings, "exact": not args.approximate}
    return "SliceGibbs", {**settings, "assignment": args.assignment or "parallel"}


class _Summary(NamedTuple):
    """What a run says: its draws for ArviZ, a profile of each cluster, the partition that these
    describe (one population has none) with how surely each ranking is with the others of its
    cluster, and its predictive checks (none of very many items)."""

    data: Any
    profiles: list[Any]
    reference: "ReferencePartition | None"
    membership: "np.ndarray | None"
    checks: "PredictiveChecks | None"


def _summarise(mcmc: Any, rankings: "Rankings", seed: int) -> _Summary:
    import jax
    import numpy as np

    from numpyro_rankings.inference_data import to_inference_data
    from numpyro_rankings.point_estimates import reference_partition
    from numpyro_rankings.predictive_checks import posterior_predictive_checks
    from numpyro_rankings.summaries import cluster_profiles, membership_probability
    from numpyro_rankings.summaries.samples import flatten_chains

    samples = flatten_chains(mcmc.get_samples(group_by_chain=True))
    reference = membership = None
    if "assignments" in samples:
        labels = samples["assignments"]
        reference = reference_partition(labels)
        some = labels[np.linspace(0, len(labels) - 1, min(len(labels), 1000)).astype(int)]
        membership = membership_probability(some, reference.labels)
    profiles = cluster_profiles(samples, rankings, reference)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that many rankings get no pointwise log likelihood
        data = to_inference_data(mcmc, rankings)
    checks, num_draws = None, min(_CHECK_DRAWS, _CHECK_ENTRIES // rankings.num_items**2)
    if num_draws >= 10:
        key = jax.random.fold_in(jax.random.key(seed), 1)
        checks = posterior_predictive_checks(key, samples, rankings, num_draws)
    return _Summary(data, profiles, reference, membership, checks)


def _details(
    args: argparse.Namespace, rankings: "Rankings", thin: int, command: str
) -> dict[str, str]:
    lengths = f"{int(rankings.lengths.min())} to {int(rankings.lengths.max())}"
    what = {
        None: "Dirichlet process mixture",
        1: "single population",
    }.get(args.components, f"{args.components}-component mixture")
    model = {
        "mallows": f"generalized Mallows model of top-t rankings, {what}",
        "plackett-luce": f"Plackett–Luce model, {what}",
        "gamma-process": "Plackett–Luce model of a pool of items without end, gamma process"
        + (f" generalised by σ = {args.sigma:g}" if args.sigma else ""),
        "dp-plackett-luce": "Dirichlet process mixture of Plackett–Luce models of a pool of items "
        "without end",
    }[args.model]
    return {
        "command": command,
        "data": f"{args.file or _bundled_citation()}: {rankings.num_rankings:,} rankings, "
        f"{rankings.unique().num_rows:,} distinct, of {rankings.num_items} items, {lengths} listed",
        "model": model,
        **describe_run(args, thin),
    }


def _bundled_citation() -> str:
    return (
        "American Psychological Association, presidential election of 1980 (P. Diaconis, A "
        "generalization of spectral analysis with application to ranked data, Annals of "
        "Statistics 17, 1989)"
    )


def _write(
    folder: Path,
    args: argparse.Namespace,
    rankings: "Rankings",
    found: _Summary,
    details: dict[str, str],
) -> None:
    from numpyro_rankings.inference_data import save_inference_data
    from numpyro_rankings.report import write_report

    save_inference_data(found.data, folder / "posterior.nc")
    _write_clusters(folder / "clusters.csv", found.profiles, rankings)
    _write_assignments(folder / "assignments.csv", found, rankings)
    name = Path(args.file).name if args.file else "APA 1980"
    write_report(
        folder / "report.html",
        found.data,
        rankings,
        found.profiles,
        found.reference,
        title=f"Groups in {name}",
        checks=found.checks,
        details=details,
    )


def _write_clusters(path: Path, profiles: list[Any], rankings: "Rankings") -> None:
    from numpyro_rankings.summaries import WeightsProfile

    is_weighted = isinstance(profiles[0], WeightsProfile)
    columns = _columns_of_weights if is_weighted else _columns_of_mallows
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        for i, p in enumerate(profiles, 1):
            row = {
                "cluster": i,
                "size": f"{p.size:.6g}",
                "size_low": f"{p.size_interval[0]:.6g}",
                "size_high": f"{p.size_interval[1]:.6g}",
                "share": f"{p.size / rankings.num_rankings:.6g}",
                "presence": f"{p.presence:.6g}",
                "agreement": f"{p.agreement:.6g}",
                "entropy": f"{p.entropy:.6g}",
                "consensus": " > ".join(p.consensus),
                **columns(p, rankings),
            }
            if i == 1:
                table.writerow(row)
            table.writerow(row.values())


def _write_assignments(path: Path, found: _Summary, rankings: "Rankings") -> None:
    """The cluster of each ranking, equal ones apart, and how surely it is with the others of it."""
    import numpy as np

    orderings, row_index = np.asarray(rankings.orderings), np.asarray(rankings.row_index)
    lists = [" > ".join(rankings.items[i] for i in row[row >= 0]) for row in orderings]
    number = {p.label: i for i, p in enumerate(found.profiles, 1)}
    labels, probability = np.zeros(len(row_index), int), np.ones(len(row_index))
    if found.reference is not None and found.membership is not None:
        labels, probability = found.reference.labels, found.membership
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(["ranking", "ordering", "cluster", "probability"])
        for k, row in enumerate(row_index):
            cluster = number[int(labels[k])]
            table.writerow([k + 1, lists[row], cluster, f"{probability[k]:.4g}"])


def _columns_of_mallows(p: "ClusterProfile", rankings: "Rankings") -> dict[str, str]:
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


def _with_interval(name: str, mean: Any, interval: Any) -> dict[str, str]:
    low, high = interval
    return {name: f"{mean:.6g}", f"{name}_low": f"{low:.6g}", f"{name}_high": f"{high:.6g}"}


def _print_summary(out: Path, rankings: "Rankings", found: _Summary) -> None:
    from numpyro_rankings.words import plural

    profiles = found.profiles
    width = shutil.get_terminal_size((100, 24)).columns
    print(
        f"\n{plural(len(profiles), 'group')} in {plural(rankings.num_rankings, 'ranking')} of "
        f"{plural(rankings.num_items, 'item')}\n"
    )
    print("cluster     size  (90% interval)   share  agreement  consensus, best first")
    for i, p in enumerate(profiles, 1):
        low, high = p.size_interval
        line = (
            f"{i:>7} {p.size:>8,.0f}  {f'({low:,.0f}–{high:,.0f})':<15} "
            f"{p.size / rankings.num_rankings:>6.1%}  {p.agreement:>9.0%}  "
        )
        print(line + fit_width(" > ".join(p.consensus), max(20, width - len(line))))
    if found.reference is not None and found.membership is not None:
        print_reference(found.reference)
    print_diagnostics(found.data, out, FILES)
