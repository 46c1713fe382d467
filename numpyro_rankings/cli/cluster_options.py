"""The options of the command ``cluster``, and which of them go together."""

import argparse
import functools
from dataclasses import dataclass, replace

from numpyro_rankings.cli.arguments import (
    MAX_CLUSTERS,
    MOST_CLUSTERS,
    Scale,
    UserError,
    count,
    option,
    positive,
    scale,
    take_options,
)
from numpyro_rankings.cli.options import RunOptions

_HAS_SCALE = {"window": True, "exponential": True, "logistic": True, "identity": False}  # decays
_DECAYS_IN_WORDS = "window:A, exponential:A, logistic:A or identity"
_FAMILY_OF = {  # options of one family
    "noise": "gaussian",
    "spread": "gaussian",
    "concentration": "multinomial",
    "vocab": "multinomial",
}
plain_scale = functools.partial(scale, can_be_flat=False)


def _parse_discount(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1:
        raise UserError(f"--discount must be a number from 0 to less than 1, got {text!r}")
    return number


def _parse_decay(text: str) -> tuple[str, Scale | None]:
    """Parse the name of a decay and its scale, None for one without."""
    name, colon, rest = text.strip().partition(":")
    if name not in _HAS_SCALE:
        raise UserError(f"--decay must be {_DECAYS_IN_WORDS}, got {text!r}")
    if not _HAS_SCALE[name]:
        if colon:
            raise UserError(f"--decay {name} takes no scale, got {text!r}")
        return name, None
    if not rest.strip():
        raise UserError(f'--decay {name} needs a scale: {name}:A, a number or "gamma(shape,rate)"')
    return name, plain_scale(f"the scale of --decay {name}", rest)


@dataclass(frozen=True)
class ClusterOptions:
    """All options of ``cluster``.

    - **decay** - its name and its scale, None for one without.
    """

    file: str
    run: RunOptions
    names: str | None = option("the column of a .csv file that names the points", "COLUMN")
    family: str = option(
        "gaussian: points around the mean of their cluster; multinomial: counts of words",
        choices=["gaussian", "multinomial"],
        required=True,
        group="family",
    )
    noise: float | None = option(
        "gaussian, with --spread: standard deviation of the points around the mean of their "
        "cluster, the same in all columns. Without --noise and --spread each cluster has a "
        "covariance of its own, with a weak prior taken from the data: inverse Wishart with d + 2 "
        "degrees of freedom, whose mean is a tenth of the covariance of all points; the cluster "
        "means then spread as widely as the points",
        "S",
        positive,
    )
    spread: float | None = option(
        "gaussian, with --noise: standard deviation of the cluster means around the mean of all "
        "points",
        "T",
        positive,
    )
    concentration: float | None = option(
        "multinomial: the prior of the word probabilities of a cluster is Dirichlet(A) (default: "
        "1, uniform)",
        "A",
        positive,
    )
    vocab: str | None = option(
        "multinomial: a file with the words of an LDA-C file, one per line", "FILE"
    )
    alpha: Scale = option(
        'concentration, larger for more clusters: a number, or a prior "gamma(shape,rate)" to '
        "learn it (default: 1)",
        "A",
        plain_scale,
        default=1.0,
        group="prior",
    )
    discount: float | None = option(
        "discount of a Pitman–Yor process, from 0 to less than 1, larger for more small clusters; "
        "not with distances (default: 0)",
        "D",
        type=_parse_discount,
    )
    distances: str | None = option(
        "a table (.csv) without a header: line i has the distances from point i to all points, "
        "inf where it cannot link to the other one",
        "FILE",
        exclusive=True,
    )
    time: str | None = option(
        "the column of a .csv file with the times of the points, numbers or dates such as "
        "2024-03-31 (read as days), which is then not part of the data; for LDA-C, a file with one "
        "of them per line. A point can link to earlier points and, among those of the same time, "
        "to points above it in the file",
        "COLUMN",
        exclusive=True,
    )
    graph: str | None = option(
        "a file of edges, two points per line, given by their names or by numbers from 0; the "
        "distance is the number of hops",
        "FILE",
        exclusive=True,
    )
    hops: int | None = option(
        "with --graph: the largest number of hops between linked points (default: 1)", "H", count(1)
    )
    decay: tuple[str, Scale | None] | None = option(
        "how the weight of a link decreases with the distance d: window:A, 1 for d < A and 0 "
        "beyond; exponential:A, exp(-d/A); logistic:A, 1/(1+exp(d-A)); identity, 1 for all "
        'distances. A is a number, or a prior "gamma(shape,rate)" to learn it (default with '
        "--graph: window:H+0.5, all points within the hops; required with --distances and --time)",
        "F:A",
        type=_parse_decay,
    )
    sampler: str | None = option(
        "collapsed: update the points one at a time; cycle: also split and merge clusters; not "
        "with distances, where links are sampled (default: cycle)",
        choices=["cycle", "collapsed"],
        group="sampler",
    )
    max_clusters: int | None = option(
        f"largest number of clusters; not with distances (default: {MAX_CLUSTERS})",
        "C",
        count(1, MOST_CLUSTERS),
    )

    @property
    def source(self) -> str | None:
        """The option that gives the distances, or None."""
        sources = ("distances", "time", "graph")
        return next((name for name in sources if getattr(self, name) is not None), None)


def parse_options(args: argparse.Namespace) -> ClusterOptions:
    """Return the options of the command, and refuse those that do not go together."""
    for name, family in _FAMILY_OF.items():
        if getattr(args, name) is not None and args.family != family:
            raise UserError(f"--{name} goes with --family {family}")
    if (args.noise is None) != (args.spread is None):
        given, missing = ("noise", "spread") if args.spread is None else ("spread", "noise")
        raise UserError(f"--{given} goes with --{missing}: give both, or neither")
    options = take_options(ClusterOptions, args, run=take_options(RunOptions, args))
    _check_distances(options)
    if options.graph is not None:
        hops = options.hops or 1
        options = replace(options, hops=hops, decay=options.decay or ("window", hops + 0.5))
    if options.source and options.decay is None:
        raise UserError(
            f"--{options.source} needs --decay: {_DECAYS_IN_WORDS}, with A in the units of the "
            f"{'times' if options.time else 'distances'}"
        )
    return options


def _check_distances(options: ClusterOptions) -> None:
    """Refuse options that do not go with distances, or only with them."""
    source = options.source
    for name in ("discount", "sampler", "max_clusters") if source else ("decay", "hops"):
        if getattr(options, name) is not None:
            option = f"--{name.replace('_', '-')}"
            if source:
                raise UserError(f"{option} does not go with --{source}")
            raise UserError(f"{option} goes with --distances, --time or --graph")
    if options.hops is not None and options.graph is None:
        raise UserError("--hops goes with --graph")
