"""The options of the command ``fit``, and which of them go together."""

import argparse
import math
from dataclasses import dataclass
from typing import Any

from numpyro_rankings.cli.arguments import (
    MAX_CLUSTERS,
    MOST_CLUSTERS,
    Scale,
    UserError,
    count,
    note,
    option,
    positive,
    scale,
    take_options,
)
from numpyro_rankings.cli.options import RunOptions, TableOptions

MODELS = ("mallows", "plackett-luce", "gamma-process", "dp-plackett-luce")
POOL_MODELS = MODELS[2:]
MOST_BLOCS = 8  # up to this number a level of blocs always exists, if there are as many groups
_PROCESS = 0  # how the parser returns "dp" of --components
# The options that not every model has: their models, and the default of each.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "components": {"mallows": None, "plackett-luce": 1},
    "alpha": {
        "mallows": 1.0,
        "plackett-luce": 1.0,
        "gamma-process": ("gamma", 1.0, 0.1),
        "dp-plackett-luce": ("gamma", 1.0, 0.1),
    },
    "nu": {"mallows": (1.0,)},
    "r": {"mallows": (1.0,)},
    "shape": {"plackett-luce": 1.0},
    "sigma": {"gamma-process": 0.0},
    "phi": {"dp-plackett-luce": ("gamma", 1.0, 0.01)},
    "gamma": {"dp-plackett-luce": ("gamma", 1.0, 1.0)},
    "sampler": {"mallows": "slice"},
    "approximate": {"mallows": False},
    "assignment": {"mallows": None},
    "init": {"mallows": None},
    "max_clusters": {"mallows": MAX_CLUSTERS, "dp-plackett-luce": MAX_CLUSTERS},
}


def _positive_list(name: str, text: str) -> tuple[float, ...]:
    return tuple(positive(name, part) for part in text.split(","))


def _parse_sigma(text: str) -> float:
    # Imported only when the option is given, because this loads JAX.
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


def _parse_components(text: str) -> int:
    return _PROCESS if text.lower() == "dp" else count(1, MOST_CLUSTERS)("--components", text)


@dataclass(frozen=True)
class ModelOptions:
    """The model of rankings and its sampler; what it does not have is None, or false.

    Of a Dirichlet process, the number of components is None.
    """

    model: str = option(
        "mallows: consensus orders (generalized Mallows); plackett-luce: weights of the items; "
        "gamma-process: Plackett–Luce for an unlimited pool of items, of which FILE lists some; "
        "dp-plackett-luce: a Dirichlet process mixture of gamma-process models (default: mallows)",
        choices=MODELS,
        default="mallows",
        group="model",
    )
    components: int | None = option(
        "mallows, plackett-luce: dp for a Dirichlet process, which infers the number of clusters, "
        "or the number K of components, 1 for a single population (default: dp for mallows, 1 "
        "for plackett-luce; for a Dirichlet process of Plackett–Luce models, use --model "
        "dp-plackett-luce)",
        "dp|K",
        type=_parse_components,
    )
    alpha: Scale = option(
        "mallows, plackett-luce: concentration of the prior of the partition, larger for more "
        "clusters. gamma-process, dp-plackett-luce: concentration of the pool, larger for more "
        'items. A number, or a prior "gamma(shape,rate)" to learn it; for the pool also flat, the '
        "prior 1/x (default: 1; for the pool gamma(1,0.1))",
        "A",
        scale,
    )
    nu: tuple[float, ...] = option(
        "mallows: weight of the prior of θ, as a number of rankings; one number, or one for each "
        "stage, separated by commas (default: 1)",
        "NU",
        _positive_list,
    )
    r: tuple[float, ...] = option(
        "mallows: prior of θ, given as the mean number of better items that a choice skips; one "
        "number, or one for each stage (default: 1)",
        "R",
        _positive_list,
    )
    shape: float | None = option(
        "plackett-luce: the prior of the weights is Dirichlet(A) (default: 1)", "A", positive
    )
    sigma: float | None = option(
        "gamma-process: index of the generalised gamma process, from 0 to less than 1 (default: 0)",
        "S",
        type=_parse_sigma,
    )
    phi: Scale | None = option(
        "dp-plackett-luce: similarity of the clusters; given like --alpha, but flat makes the "
        "posterior improper (default: gamma(1,0.01))",
        "F",
        scale,
    )
    gamma: Scale | None = option(
        "dp-plackett-luce: concentration of the Dirichlet process, larger for more clusters; "
        "given like --alpha, but flat makes the posterior improper (default: gamma(1,1))",
        "G",
        scale,
    )
    sampler: str | None = option(
        "mallows: the sampler (default: slice)", choices=["slice", "beta"], group="sampler"
    )
    approximate: bool | None = option(
        "with --sampler beta: use the paper's approximation of the label probabilities",
        action="store_true",
    )
    assignment: str | None = option(
        "with --sampler slice: update all labels at once, or one by one (default: parallel)",
        choices=["parallel", "sequential"],
    )
    init: str | None = option(
        "mallows: where the chains start. search: near a good mode with K components; nearest: at "
        "clusters around 20 random rankings; random: anywhere (default: search with --components "
        "K, unless there are too many items for it; otherwise nearest)",
        choices=["search", "nearest", "random"],
    )
    max_clusters: int | None = option(
        "largest number of clusters of the Dirichlet process, including those that a sweep "
        "proposes and does not keep, which can be several times as many (default: "
        f"{MAX_CLUSTERS})",
        "C",
        count(1, MOST_CLUSTERS),
    )


@dataclass(frozen=True)
class FitOptions:
    """All options of ``fit``.

    - **file** - None for the bundled ballots.
    """

    file: str | None
    table: TableOptions
    model: ModelOptions
    run: RunOptions
    blocs: int | None = option(
        "number of blocs, from 2 to 8: the few groups that keep most of what the fit says about "
        "the rankings (default: none of up to 4 groups on which the chains agree, nor with "
        "--components up to 4, nor of a table so large that to find them takes minutes; otherwise "
        "the largest number of which the last one still adds a tenth)",
        "K",
        count(2, MOST_BLOCS),
        group="answer",
    )


def parse_options(args: argparse.Namespace) -> FitOptions:
    """Return the options of the command, and refuse those that do not go together.

    Those of several files have none of them yet.
    """
    model = _parse_model(args)
    _check_blocs(args.blocs, model)
    if model.components is not None and args.max_clusters is not None:
        note(f"--max-clusters has no effect with --components {model.components}")
    return FitOptions(
        file=None,
        table=take_options(TableOptions, args),
        model=model,
        blocs=args.blocs,
        run=take_options(RunOptions, args),
    )


def _parse_model(args: argparse.Namespace) -> ModelOptions:
    if args.model == "plackett-luce" and args.components == _PROCESS:
        raise UserError("--components dp goes with mallows; see --model dp-plackett-luce")
    model = take_options(ModelOptions, args, **_with_defaults(args))
    for name, value, degenerate in (
        ("phi", model.phi, "all clusters become alike"),
        ("gamma", model.gamma, "all rankings end up in one cluster"),
    ):
        if value == "flat":
            note(
                f"--{name} flat makes the posterior improper: the results mean nothing if "
                f"{degenerate}"
            )
    if model.alpha == "flat" and model.model not in POOL_MODELS:
        raise UserError("--alpha flat goes with --model gamma-process or dp-plackett-luce")
    if model.approximate and model.sampler != "beta":
        raise UserError("--approximate goes with --sampler beta; the slice sampler is exact")
    if model.assignment is not None and model.sampler == "beta":
        raise UserError("--assignment goes with --sampler slice; the beta sampler is sequential")
    if model.init == "search" and (model.components or 1) == 1:
        raise UserError("--init search goes with --components K, where K is 2 or more")
    if model.components == 1 and args.alpha is not None:
        raise UserError(
            "--alpha has no effect with --components 1: a single population has no mixture weights"
        )
    return model


def _with_defaults(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options that not every model has; None, or refused, where it has not."""
    values = {}
    for name, defaults in _DEFAULTS.items():
        values[name] = getattr(args, name)
        if values[name] is None:
            values[name] = defaults.get(args.model)
        elif args.model not in defaults:
            option = "--" + name.replace("_", "-")
            raise UserError(f"{option} goes with --model {' or '.join(defaults)}")
    if values["components"] == _PROCESS:
        values["components"] = None
    return values


def _check_blocs(blocs: int | None, model: ModelOptions) -> None:
    if blocs is None:
        return
    if model.model == "gamma-process" or model.components == 1:
        raise UserError("--blocs goes with a mixture: a single population has no blocs")
    if model.components is not None and blocs > model.components:
        raise UserError(f"--blocs must be at most --components {model.components}")
