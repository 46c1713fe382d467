"""The command ``numpyro-rankings compare``: which model, and how many groups."""

import argparse
import math
import re
import shlex
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpyro_rankings.cli.arguments import (
    UserError,
    add_options,
    check_output,
    count,
    note,
    option,
    positive,
    take_options,
)
from numpyro_rankings.cli.capacity import memory_errors
from numpyro_rankings.cli.compilation import (
    check_backends,
    use_compilation_cache,
    use_devices,
    use_writable_cache,
)
from numpyro_rankings.cli.models import MODELS, models_with
from numpyro_rankings.cli.options import TableOptions
from numpyro_rankings.cli.progress import say
from numpyro_rankings.cli.rankings_file import (
    FORMATS_IN_WORDS,
    add_file_options,
    read_file,
    take_sample,
)
from numpyro_rankings.cli.results import terminal_width, write_at_once
from numpyro_rankings.cli.streams import notes
from numpyro_rankings.words import in_minutes, listed, number, plural
from numpyro_rankings.words.commands import DEFAULT_MODEL, fit_command

if TYPE_CHECKING:
    from numpyro_rankings.rankings import Orders, Rankings
    from numpyro_rankings.report.comparison import Comparison

FILES = ("comparison.csv", "comparison.svg")
_MOST_GROUPS = 64

_ABOUT = f"""\
Compare Mallows and Plackett–Luce models with different numbers of groups: which of them best
predicts a judge from all the others?

{FORMATS_IN_WORDS}
Two files are written to --out DIR: comparison.csv, the table that is printed, and comparison.svg,
which shows how well the models predict by their number of groups.
"""

_EPILOG = """\
examples:
  numpyro-rankings compare survey.xlsx --layout ranks --judge id
  numpyro-rankings compare ballots.soi --components 1-6 --models mallows --minutes 5
  numpyro-rankings compare ballots.soi --kfold 5
  numpyro-rankings compare ballots.soi --evidence --components 1-6

the columns of the table:
  elpd           expected log predictive density: the larger, the better the model predicts judges
                 that it has not seen
  difference     from the best model, with its standard error; a difference of less than two
                 standard errors says little
  groups         mean number of groups
  R-hat          the chains agree if it is near 1; above 1.05 give more --minutes
  unreliable     share of the judges whose prediction leave-one-out cannot compute well; if it is
                 not small, use --kfold 5
  misfit         share of the items whose frequency of first places, and of the pairs of items whose
                 order, differ from what the model replicates; about 10% by chance
  evidence       with --evidence: log probability of the rankings under the model, with its standard
                 error; a difference of 3 makes one model 20 times as probable as another
  time           seconds of its run

All models are run for a quarter of the time or until their chains nearly agree, and then those on
of which it is not yet clear whether they predict worse than the best. The last lines are the
command that fits the simplest of those that predict well.

Exit status: 0 if the results were written, 2 after an error, 130 after Ctrl-C, 143 after SIGTERM,
129 after a hang-up.
"""


def _parse_models(text: str) -> tuple[str, ...]:
    names = tuple(name.strip().lower() for name in text.split(","))
    for name in names:
        if name not in models_with("components"):
            known = listed(models_with("components"))
            raise UserError(f"--models are {known}, got {name!r}")
    return names


def _parse_components(text: str) -> tuple[int, ...]:
    parts = [
        re.fullmatch(r"\s*(\d{1,4})\s*(?:-\s*(\d{1,4})\s*)?", part) for part in text.split(",")
    ]
    numbers: set[int] = set()
    for part in parts:
        if part is None:
            raise UserError(f"--components must be numbers such as 1-6 or 2,4,8, got {text!r}")
        numbers |= set(range(int(part[1]), int(part[2] or part[1]) + 1))
    if not numbers or min(numbers) < 1 or max(numbers) > _MOST_GROUPS:
        raise UserError(f"--components must be numbers from 1 to {_MOST_GROUPS}, got {text!r}")
    return tuple(sorted(numbers))


@dataclass(frozen=True)
class CompareOptions:
    """The options of ``compare``, but for those of the file."""

    models: tuple[str, ...] = option(
        "mallows, plackett-luce, or both, separated by a comma (default: both)",
        "NAMES",
        type=_parse_models,
        default=(),
        group="models",
    )
    components: tuple[int, ...] = option(
        "numbers of groups, such as 1-6, or 2,4,8 (default: 1-4)",
        "FROM-TO",
        type=_parse_components,
        default=(1, 2, 3, 4),
    )
    no_process: bool = option(
        "leave out the Dirichlet process mixture of Mallows models, which learns the number of "
        "groups",
        action="store_true",
        default=False,
    )
    evidence: bool = option(
        "compare the evidence too, by chains on ladders (fit --sampler tempered); without the "
        "Dirichlet process",
        action="store_true",
        default=False,
    )
    kfold: int = option(
        "divide the judges into K parts, and predict each from a run on the others, instead of "
        "leave-one-out; takes K more runs of each model",
        "K",
        count(2, 1000),
        default=0,
        group="run",
    )
    sample: int | None = option(
        "compare on so many judges of FILE, drawn at random, those of 'fit --sample N' (default: "
        "all)",
        "N",
        count(2),
    )
    minutes: float = option(
        "time of the sampling of each run, after which it ends even if its chains do not agree; "
        "models are left out whose sums over the orders of tied or uncompared items would take "
        "more than five times as long (default: 2)",
        "T",
        positive,
        default=2.0,
    )
    chains: int = option("(default: 4)", "M", count(2), default=4)
    seed: int = option(
        "seed of the random numbers (default: 0)", "N", count(0, 2**32 - 1), default=0
    )
    out: Path = option(
        "folder for the results (default: numpyro-rankings-comparison)",
        "DIR",
        type=Path,
        default=Path("numpyro-rankings-comparison"),
        group="output",
    )
    force: bool = option("if DIR exists, replace the results", action="store_true", default=False)
    no_progress: bool = option(
        "print the table at the end only", action="store_true", default=False
    )


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the program."""
    parser = commands.add_parser(
        "compare",
        help="compare models and numbers of groups by how well they predict",
        description=_ABOUT,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_file_options(parser)
    add_options(parser, CompareOptions)
    parser.set_defaults(do=_compare)


def _compare(args: argparse.Namespace, command: str) -> int:
    table, options = take_options(TableOptions, args), take_options(CompareOptions, args)
    if table.weight is not None:
        raise UserError(
            "compare takes no survey weights: leave out --weight; with them, fit --weight "
            f"{shlex.quote(table.weight)} finds the number of groups (--components auto)"
        )
    check_output(options.out, options.force)
    with notes():
        use_compilation_cache()
        use_writable_cache()
        use_devices(1)
        check_backends()
        rankings = take_sample(read_file(args.file, table), options.sample).rankings
        models = _kernels(options, rankings)
        if not models and (rankings.are_partial or rankings.offered() is None):
            raise UserError(f"no model of {' or '.join(options.models)} can be compared")
        if not models:
            names = [name for name, one in MODELS.items() if one.family.takes_choice_sets]
            raise UserError(f"choice sets need --models {','.join(names)}: no model is left")
        models = _comparable(options, rankings, models)
        if options.kfold > rankings.num_rankings:
            raise UserError(f"--kfold must be at most {rankings.num_rankings}, the judges")
        with memory_errors():
            comparison = _compare_models(options, rankings, models)
    write_at_once(options.out, lambda folder: _write(folder, comparison, command), FILES)
    _print(comparison, options.out, fit_command(command, _options_of(comparison, models)))
    return 0


def _options_of(comparison: "Comparison", models: dict[str, Any]) -> dict[str, object]:
    """Return the options of ``fit`` for the simplest of the models that predict well."""
    from numpyro_rankings.infer import TemperedMixture

    kernel = models[comparison.simplest]
    name, number = kernel.ranking_family.name, kernel.num_components
    chosen: dict[str, object] = {} if name == DEFAULT_MODEL else {"--model": name}
    if number is not None or name == DEFAULT_MODEL:
        chosen["--components"] = "dp" if number is None else number
    return chosen | ({"--sampler": "tempered"} if isinstance(kernel, TemperedMixture) else {})


def _kernels(options: CompareOptions, rankings: "Rankings | Orders") -> dict[str, Any]:
    """Return the kernels of the models that are compared, by the names of these."""
    from numpyro_rankings.report.comparison import default_models

    if options.evidence and rankings.kind == "comparisons":
        raise UserError("--evidence is for rankings alone: leave it out with --cycles mistakes")
    if options.evidence and rankings.are_partial:
        raise UserError(
            "--evidence is for rankings alone, and some judges tie items or leave their order "
            "open: leave it out, or read the file with --ties drop or --ties order"
        )
    asked = [MODELS[name].family for name in options.models or models_with("components")]
    return {
        name: kernel
        for name, kernel in default_models(
            rankings, options.components, evidence=options.evidence
        ).items()
        if kernel.ranking_family in asked
        and not (options.no_process and kernel.num_components is None)
    }


def _comparable(
    options: CompareOptions, rankings: "Rankings | Orders", models: dict[str, Any]
) -> dict[str, Any]:
    """Leave out models of which the density of the judges has too many terms, and say so."""
    from numpyro_rankings.report.comparison import comparable_models

    def in_time(models: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        return comparable_models(models, rankings, options.minutes, options.chains)

    kept, left_out = in_time(models)
    if kept:
        for text in left_out:
            note(text)
        return kept
    others, _ = in_time(_kernels(replace(options, models=()), rankings))
    families = {kernel.ranking_family for kernel in others.values()}
    names = [name for name in models_with("components") if MODELS[name].family in families]
    remedy = f"use --models {','.join(names)}" if names else "fit draws the orders instead"
    raise UserError(f"no model can be compared: {'; '.join(left_out)}; {remedy}")


def _compare_models(
    options: CompareOptions, rankings: "Rankings | Orders", models: dict[str, Any]
) -> "Comparison":
    import jax

    from numpyro_rankings.report.comparison import NotComparedError, TooFewDrawsError, compare

    is_shown, minutes = not options.no_progress, in_minutes(options.minutes)
    each, begun = "each " if len(models) > 1 else "", set[str]()
    say(f"comparing {plural(len(models), 'model')}, {each}for at most {minutes}", is_shown)

    def begin(name: str) -> None:
        if name in begun:
            say(f"{name}: sampling on, because its place is not clear", is_shown)
            return
        begun.add(name)
        say(f"{name}: compiling and sampling, model {len(begun)} of {len(models)}", is_shown)

    def show(name: str, row: dict[str, float]) -> None:
        elpd = f"{row['elpd']:,.1f} ± {row['se']:,.1f}"
        say(f"{name}: elpd {elpd}, {row['seconds']:.0f} s", is_shown)

    try:
        return compare(
            rankings,
            models,
            key=jax.random.key(options.seed),
            kfold=options.kfold,
            num_chains=options.chains,
            minutes=options.minutes,
            before_model=begin,
            after_model=show,
        )
    except TooFewDrawsError:
        raise UserError(f"too few draws in {minutes}: raise --minutes") from None
    except NotComparedError as error:
        raise UserError(str(error)) from None


def _write(folder: Path, comparison: "Comparison", command: str) -> None:
    from numpyro_rankings.plots import plot_comparison

    comparison.table.to_csv(folder / "comparison.csv", float_format="%.6g")
    figure: Any = plot_comparison(comparison).figure
    figure.savefig(folder / "comparison.svg", metadata={"Description": command})


def _print(comparison: "Comparison", out: Path, command: str) -> None:
    width = max(len(name) for name in comparison.table.index)
    has_evidence = comparison.table["log_evidence"].notna().any()
    heading = f"{'evidence':>18} " if has_evidence else ""
    print(
        f"\n{'model':<{width}} {'elpd':>11} {'difference':>19} {'groups':>7} {'R-hat':>6} "
        f"{'unreliable':>10} {'misfit':>10} {heading}{'time':>7}"
    )
    for name, row in comparison.table.iterrows():
        difference = f"{row['elpd_diff']:,.1f} ± {row['se_diff']:,.1f}"
        misfit = ", ".join(number(row[name], ".0%") for name in ("first_outside", "pairs_outside"))
        unreliable = "–" if math.isnan(row["bad_k"]) else f"{row['bad_k']:.1%}"
        evidence = f"{row['log_evidence']:,.1f} ± {row['se_evidence']:.1f}"
        evidence = "–" if math.isnan(row["log_evidence"]) else evidence
        print(
            f"{name!s:<{width}} {row['elpd']:>11,.1f} {difference:>19} {row['groups']:>7.1f} "
            f"{number(row['rhat'], '.3f'):>6} {unreliable:>10} {misfit:>10} "
            f"{f'{evidence:>18} ' if has_evidence else ''}{row['seconds']:>5.0f} s"
        )
    print(f"\n{textwrap.fill(comparison.in_words, max(40, terminal_width()))}")
    print(f"\nResults: {', '.join(str(out / name) for name in FILES)}")
    print(f"\nTo fit {comparison.simplest}:\n  {command}")
