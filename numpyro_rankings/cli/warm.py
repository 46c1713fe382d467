"""The command ``numpyro-rankings warm``: compile ahead what ``fit`` needs for tables of a size."""

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from numpyro_rankings._system import clock
from numpyro_rankings.cli.arguments import UserError, add_options, count, take_options
from numpyro_rankings.cli.capacity import memory_errors
from numpyro_rankings.cli.compilation import (
    check_backends,
    is_cache_on,
    telling_of_compilation,
    use_compilation_cache,
    use_devices,
)
from numpyro_rankings.cli.fit import as_fitted
from numpyro_rankings.cli.fit_options import FitOptions, parse_options
from numpyro_rankings.cli.models import (
    AUTO,
    MODELS,
    MOST_TRIED,
    ModelOptions,
    mixture_in_words,
)
from numpyro_rankings.cli.number import LADDERS
from numpyro_rankings.cli.options import RunOptions, TableOptions
from numpyro_rankings.cli.rankings_file import add_file_options, read_file
from numpyro_rankings.cli.session import devices_for
from numpyro_rankings.cli.streams import notes
from numpyro_rankings.words import plural

if TYPE_CHECKING:
    from numpyro_rankings.rankings import Orders, Rankings
    from numpyro_rankings.readers import Survey
    from numpyro_rankings.run import Run

_USUAL_GROUPS = 4

_ABOUT = f"""\
Compile the programs that 'fit' runs for a table, and keep them: later fits of tables of about this
size begin their sweeps after seconds. Nothing is fitted, and no file is written but the programs.

The number of judges is rounded up, so that a program is for a range of them; the last line says for
which. The number of items and the length of the longest list have to be the same. The options of
the model are those of 'fit', and so is what is fitted without them. For some tables, and with
--components auto, fit chooses the number of groups. The chains of each number have a program of
their own: those of 1 to {_USUAL_GROUPS} groups are compiled, or as many as --groups says, with all
judges as the effective size. Programs are of one version of this package and of jaxlib, on one kind
of processor. FILE is surer than --size, whose judges rank at random: fit takes another model for
tables with few different rankings.
"""

_EXAMPLES = """\
examples:
  numpyro-rankings warm survey.xlsx --layout ranks --judge id
  numpyro-rankings warm --size 100x10
  numpyro-rankings warm --size 2000x5 --model plackett-luce --components 3

Exit status: 0 if the programs are there, 2 after an error.
"""


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the program."""
    parser = commands.add_parser(
        "warm",
        help="compile ahead what fit needs for tables of a size",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_file_options(parser)
    parser.add_argument(
        "--size",
        type=_parse_size,
        metavar="JUDGESxITEMS",
        help="instead of FILE: a table of so many judges, who each rank all items, such as 100x10",
    )
    parser.add_argument(
        "--groups",
        type=lambda text: count(1)("--groups", text),
        metavar="K",
        help="where fit chooses the number of groups: compile the chains of 1 to K of them "
        f"(default: {_USUAL_GROUPS})",
    )
    add_options(parser, ModelOptions)
    parser.set_defaults(**_as_without(RunOptions), **_as_without(FitOptions))
    parser.set_defaults(do=_warm, model=None)  # so that it is known whether it was given
    parser.add_argument(
        "--chains",
        type=lambda text: count(1)("--chains", text),
        metavar="M",
        help="number of chains (default: 4)",
    )


def _as_without(options: type) -> dict[str, Any]:
    """Return the defaults of options of fit that this command has not."""
    return {x.name: x.default for x in fields(options) if x.metadata and x.name != "chains"}


def _parse_size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"\s*(\d[\d,]*)\s*[xX×]\s*(\d+)\s*", text)
    if found is None:
        raise UserError(f"--size is the judges and the items, such as 100x10, got {text!r}")
    judges, items = (int(x.replace(",", "")) for x in found.groups())
    if judges < 1 or items < 2:
        raise UserError(f"--size must be of at least 1 judge and 2 items, got {text!r}")
    return judges, items


def _warm(args: argparse.Namespace, _: str) -> int:
    is_of_file = args.file is not None or take_options(TableOptions, args) != TableOptions()
    if is_of_file and args.size is not None:
        raise UserError("--size goes without FILE and the options by which one is read")
    if args.worths_by is not None:
        raise UserError("--worths-by goes with fit only, whose covariates are part of the program")
    options = replace(parse_options(args), file=args.file)
    chains = options.run.plan().chains
    start = clock.now()
    with notes():
        use_compilation_cache()
        if not is_cache_on():
            raise UserError(
                "programs cannot be kept: the folder of the cache cannot be written, or JAX's "
                "cache is off (XDG_CACHE_HOME and JAX_COMPILATION_CACHE_DIR say where it is)"
            )
        use_devices(chains)
        check_backends()
        with memory_errors():
            whole = read_file(args.file, options.table) if args.size is None else _like(*args.size)
            fitted = as_fitted(whole, options)
            data = MODELS[options.model.model].family.described(fitted.survey.rankings)
            model, most = fitted.options.model, args.groups or _USUAL_GROUPS
            if args.groups is not None and model.components != AUTO:
                raise UserError(
                    "--groups is for tables of which fit chooses the number of groups, as by "
                    "--components auto; of this one it does not"
                )
            for name, begin in _programs(model, data, chains, most):
                _compile(name, begin)
    covered = _covered(data, chains, is_sample=fitted.whole is not None)
    print(f"{covered}; {clock.now() - start:,.0f} s in all")
    return 0


def _like(judges: int, items: int) -> "Survey":
    """Return different rankings of all items, as far as there are so many."""
    import numpy as np

    from numpyro_rankings.rankings import Rankings
    from numpyro_rankings.readers.surveys import survey_of

    orders = np.tile(np.arange(items), (judges, 1))
    orders = np.random.default_rng(0).permuted(orders, axis=1)
    return survey_of(Rankings.from_orderings(orders, num_items=items).unique(), "simulated")


def _programs(
    options: ModelOptions, data: "Rankings | Orders", chains: int, most: int
) -> "Iterator[tuple[str, Callable[[], Run]]]":
    """Yield each program that a fit may need, in words, and what begins a run of it."""
    import jax

    from numpyro_rankings.report.group_path import programs_of_path
    from numpyro_rankings.run import Run

    model, numbers = MODELS[options.model], [options.components]
    if options.components == AUTO:
        tried = options.max_clusters or MOST_TRIED
        rankings, numbers = cast("Rankings", data), [*range(1, min(most, tried) + 1)]
        path = rankings, model.components(options), tried, LADDERS, devices_for(LADDERS)
        for width, begin in programs_of_path(*path):
            yield f"numbers of groups, up to {width}", begin

    def begin_chains(components: int | None) -> Run:
        kernel = model.kernel(replace(options, components=components))
        settings: Any = {"num_chains": chains, "devices": devices_for(chains), "num_warmup": 0}
        key, fields = jax.random.key(0), ("overflow",)
        return Run(kernel, data, key=key, extra_fields=fields, progress=False, **settings)

    for number in numbers:
        yield mixture_in_words(replace(options, components=number)), partial(begin_chains, number)


def _compile(name: str, begin: "Callable[[], Run]") -> None:
    """Compile a program by one sweep, and say how long that took."""
    start, missed = clock.now(), list[str]()
    with telling_of_compilation(lambda: missed.append(name)):
        begin().extend(1)
    what = "compiled" if missed else "was there"
    print(f"{name}: {what}, {clock.now() - start:,.0f} s", flush=True)


def _covered(data: "Rankings | Orders", chains: int, is_sample: bool) -> str:
    """Say for which tables the programs are."""
    from numpyro_rankings.rankings import Rankings, WeightedRankings
    from numpyro_rankings.run.rounding import rounded_alike

    judges, rows = range(len(data), len(data) + 1), range(data.num_rows, data.num_rows + 1)
    what = "different rankings"
    if isinstance(data, Rankings) and not isinstance(data, WeightedRankings):
        judges, rows = rounded_alike(data)
        what += "" if data.choice_sets is None else ", not all of the same items,"
    of_sample = ", a sample of those of the table," if is_sample else ""
    return (
        f"fit compiles no sampler for {_from_to(judges)} judges{of_sample} with {_from_to(rows)} "
        f"{what} of {data.num_items} items, the longest of {data.table.shape[1]}, "
        f"in {plural(chains, 'chain')}"
    )


def _from_to(numbers: range) -> str:
    first, last = numbers[0], numbers[-1]
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"
