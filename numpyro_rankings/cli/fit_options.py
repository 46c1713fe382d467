"""The options of the command ``fit``, and which of them go together."""

import argparse
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
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
from numpyro_rankings.cli.calibration import check_goes_with as check_calibrate
from numpyro_rankings.cli.models import (
    AUTO,
    MODELS,
    MOST_JUDGES,
    PROCESS,
    TEMPERED,
    ModelOptions,
    models_with,
)
from numpyro_rankings.cli.options import RunOptions, TableOptions
from numpyro_rankings.cli.shares import check_goes_with
from numpyro_rankings.words import listed
from numpyro_rankings.words.commands import DEFAULT_MODEL

_SAVED = ("figures", "xlsx", "summary", "table")
MOST_BLOCS = 8  # up to this number a level of blocs always exists, if there are as many groups


@dataclass(frozen=True)
class FitOptions:
    """All options of ``fit``.

    - **file** - None for the bundled ballots.
    - **by_table** - whether the model, and how many judges are fitted, may depend on the table,
      because no option says them.
    """

    file: str | None
    table: TableOptions
    model: ModelOptions
    run: RunOptions
    sample: int | None = option(
        "fit so many judges of FILE, drawn at random, the same at every run, and put all of them "
        "into the groups (default: all, or where --components auto is the default at most "
        f"{MOST_JUDGES:,})",
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
    shares_by: tuple[str, ...] = option(
        "with --components K: columns of the judges, such as region,age, on which the shares of "
        "the groups depend; text has an effect for each value, numbers have a linear one; the "
        "page and shares_by.csv tell the shares at each value, with intervals. It is fitted by "
        "--sampler tempered",
        "COLUMNS",
        type=parse_names,
        default=(),
    )
    slates: str | None = option(
        "a table with the columns item and slate, or 'party' where FILE says the parties of its "
        "items: write the share, cohesion and crossover of each group, or bloc, to slates.csv, and "
        "to votekit.json as the configuration that VoteKit's generators of elections read; with "
        "--about, tables of the shares by precinct, or whatever the column has, to slates_by",
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
    calibrate: int | None = option(
        "after the fit, simulate further rankings from each of so many draws, such as 50, refit "
        "them together with those of FILE, each in 190 sweeps (of ladders 390), and tell whether "
        "the ranks of these draws are as they must be if the sampler is right (posterior SBC)",
        "R",
        count(20),
    )
    by_table: bool = False


@contextlib.contextmanager
def naming_options(options: FitOptions) -> Iterator[None]:
    """Say by which options the data are given that a run to resume does not have in common.

    An error names them as arguments of the kernel: the rankings, and covariates of judges or items.
    """
    file, by = options.file or "the bundled ballots", "--shares-by"
    if options.model.worths_by is not None:
        by = "--worths-by"
    if options.table.weight is not None:
        file = f"{file} --weight {options.table.weight}"
    try:
        yield
    except UserError as error:
        text = str(error)
        for pattern, words in (
            (r"the data of argument 1 differ; (?=.*argument 2)", ""),  # other rows, by covariates
            (r"argument 2", by),
            (r"argument 1", file),
        ):
            text = re.sub(pattern, words.replace("\\", r"\\"), text)
        error.args = (text,)
        raise


def parse_options(args: argparse.Namespace) -> FitOptions:
    """Return the options of the command, and refuse those that do not go together.

    Those of several files have none of them yet.
    """
    run = take_options(RunOptions, args)
    given = [getattr(args, each.name) for each in fields(ModelOptions)]
    args.model = args.model or DEFAULT_MODEL
    check_goes_with(args, AUTO)
    check_calibrate(args)
    if args.shares_by:
        args.sampler = TEMPERED
    model = _parse_model(args)
    _check_blocs(args.blocs, model)
    save = tuple(dict.fromkeys(args.save or ()))
    _check_save(save)
    if model.components not in (None, AUTO) and args.max_clusters is not None:
        note(f"--max-clusters has no effect with --components {model.components}")
    table, names = take_options(TableOptions, args), dict.fromkeys(args.shares_by)
    table = replace(table, about=(*table.about, *(x for x in names if x not in table.about)))
    return FitOptions(
        file=None,
        table=table,
        model=model,
        sample=args.sample,
        blocs=args.blocs,
        shares_by=tuple(names),
        slates=args.slates,
        save=save,
        calibrate=args.calibrate,
        run=run,
        by_table=not run.has_length and all(x is None for x in (*given, args.blocs, args.weight)),
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
    if args.weight is not None:
        _check_weight(args)
    for name in [each.name for each in fields(ModelOptions) if each.name != "model"]:
        values[name] = getattr(args, name)
        if values[name] is None:
            values[name] = own.get(name)
        elif name not in own:
            option = "--" + name.replace("_", "-")
            raise UserError(f"{option} goes with --model {' or '.join(models_with(name))}")
    if values["worths_by"] is not None:  # the shape of the residuals is learned
        values["shape"] = args.shape
    if args.weight is not None and args.components is None:
        values["components"] = AUTO
    if values["components"] == PROCESS:
        values["components"] = None
    if args.sampler is None and (values["components"] == AUTO or args.weight is not None):
        values["sampler"] = TEMPERED
    if values["sampler"] == TEMPERED:  # the prior of the shares is that of the kernel
        values |= {"alpha": args.alpha, "max_clusters": args.max_clusters}
    return values


def _check_weight(args: argparse.Namespace) -> None:
    """Refuse survey weights with what cannot take them."""
    if args.model not in models_with("effective_size"):
        names = " or ".join(models_with("effective_size"))
        raise UserError(f"--weight goes with --model {names}, not with {args.model}")
    if args.sampler not in (None, TEMPERED):
        raise UserError(
            f"--weight goes with --sampler {TEMPERED}, not with {args.sampler}: leave out --sampler"
        )
    if args.components == PROCESS:
        raise UserError("--weight goes with --components K or auto, not with dp")
    for name in ("blocs", "slates", "shares_by", "worths_by"):
        if getattr(args, name):
            option = "--" + name.replace("_", "-")
            raise UserError(f"{option} goes without --weight: leave one of them out")


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
