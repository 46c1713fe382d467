"""The options of the command ``fit``, and which of them go together."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any

from numpyro_rankings.cli.arguments import (
    UserError,
    count,
    note,
    option,
    parse_names,
    take_options,
)
from numpyro_rankings.cli.models import (
    AUTO,
    MODELS,
    PROCESS,
    TEMPERED,
    ModelOptions,
    models_with,
)
from numpyro_rankings.cli.options import RunOptions, TableOptions
from numpyro_rankings.words import listed

_SAVED = ("figures", "xlsx", "summary", "table")
MOST_BLOCS = 8  # up to this number a level of blocs always exists, if there are as many groups


@dataclass(frozen=True)
class FitOptions:
    """All options of ``fit``.

    - **file** - None for the bundled ballots.
    """

    file: str | None
    table: TableOptions
    model: ModelOptions
    run: RunOptions
    sample: int | None = option(
        "fit so many judges of FILE, drawn at random, the same at every run; 'numpyro-rankings "
        "assign' puts the others into the groups (default: all)",
        "N",
        count(2),
        group="run",
    )
    blocs: int | None = option(
        "number of blocs, from 2 to 8: the few groups that keep most of what the fit says about "
        "the rankings (default: none of up to 4 groups on which the chains agree, nor with "
        "--components up to 4, nor of a table so large that to find them takes minutes; otherwise "
        "the largest number of which the last one still adds a tenth)",
        "K",
        count(2, MOST_BLOCS),
        group="answer",
    )
    slates: str | None = option(
        "a table with the columns item and slate, or 'party' where FILE says the parties of its "
        "items: write the share, cohesion and crossover of each group, or bloc, to slates.csv, and "
        "to votekit.json as the configuration that VoteKit's generators of elections read",
        "TABLE",
    )
    save: tuple[str, ...] = option(
        "what to write too, separated by commas: figures, each of the page as SVG and PNG in the "
        "size of a slide, in the folder figures; xlsx, a workbook results.xlsx with a sheet for "
        "each table; summary, summary.html, which prints on one sheet of paper; table, FILE with "
        "the columns of assignments.csv added, as table.csv or table.xlsx",
        "WHAT",
        type=parse_names,
        action="extend",
    )


def parse_options(args: argparse.Namespace) -> FitOptions:
    """Return the options of the command, and refuse those that do not go together.

    Those of several files have none of them yet.
    """
    model = _parse_model(args)
    _check_blocs(args.blocs, model)
    save = tuple(dict.fromkeys(args.save or ()))
    _check_save(save)
    if model.components not in (None, AUTO) and args.max_clusters is not None:
        note(f"--max-clusters has no effect with --components {model.components}")
    return FitOptions(
        file=None,
        table=take_options(TableOptions, args),
        model=model,
        sample=args.sample,
        blocs=args.blocs,
        slates=args.slates,
        save=save,
        run=take_options(RunOptions, args),
    )


def _parse_model(args: argparse.Namespace) -> ModelOptions:
    model = MODELS[args.model]
    if args.components == PROCESS and "components" in model.defaults and not model.takes_process:
        names = [name for name, other in MODELS.items() if other.takes_process]
        see = "" if model.process is None else f"; see --model {model.process}"
        raise UserError(f"--components dp goes with {' or '.join(names)}{see}")
    options = take_options(ModelOptions, args, **_with_defaults(args))
    for name, value, degenerate in (
        ("phi", options.phi, "all clusters become alike"),
        ("gamma", options.gamma, "all rankings end up in one cluster"),
    ):
        if value == "flat":
            note(
                f"--{name} flat makes the posterior improper: the results mean nothing if "
                f"{degenerate}"
            )
    if options.alpha == "flat" and not model.takes_flat_alpha:
        names = [name for name, other in MODELS.items() if other.takes_flat_alpha]
        raise UserError(f"--alpha flat goes with --model {' or '.join(names)}")
    model.check_options(options)
    if options.components == 1 and args.alpha is not None:
        raise UserError(
            "--alpha has no effect with --components 1: a single population has no mixture weights"
        )
    return options


def _with_defaults(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options that not every model has; None, or refused, where it has not."""
    own, values = MODELS[args.model].defaults, {}
    for name in [each.name for each in fields(ModelOptions) if each.name != "model"]:
        values[name] = getattr(args, name)
        if values[name] is None:
            values[name] = own.get(name)
        elif name not in own:
            option = "--" + name.replace("_", "-")
            raise UserError(f"{option} goes with --model {' or '.join(models_with(name))}")
    if values["components"] == PROCESS:
        values["components"] = None
    if values["components"] == AUTO and args.sampler is None:
        values["sampler"] = TEMPERED
    if values["sampler"] == TEMPERED:  # the prior of the shares is that of the kernel
        values |= {"alpha": args.alpha, "max_clusters": args.max_clusters}
    return values


def _check_blocs(blocs: int | None, options: ModelOptions) -> None:
    if blocs is None:
        return
    if not MODELS[options.model].is_mixture(options):
        raise UserError("--blocs goes with a mixture: a single population has no blocs")
    if options.components not in (None, AUTO) and blocs > options.components:
        raise UserError(f"--blocs must be at most --components {options.components}")


def _check_save(words: Sequence[str]) -> None:
    """Refuse what ``--save`` does not know, and a workbook without the package for it."""
    for word in words:
        if word not in _SAVED:
            raise UserError(f"--save takes {listed(_SAVED)}, separated by commas, not {word!r}")
    if "xlsx" in words and find_spec("openpyxl") is None:
        raise UserError(
            "--save xlsx needs the package openpyxl: pip install 'numpyro-rankings[tables]'"
        )
