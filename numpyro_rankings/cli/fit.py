"""The command ``numpyro-rankings fit``: groups in a file of rankings."""

import argparse
import functools
import sys
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from numpyro_rankings.cli.arguments import UserError, add_options, note
from numpyro_rankings.cli.capacity import choose_thinning, label_bytes, memory_errors
from numpyro_rankings.cli.fit_options import FitOptions, parse_options
from numpyro_rankings.cli.interim import InterimPage, finder_of_groups
from numpyro_rankings.cli.item_names import rename_findings, rename_rankings, shown_names
from numpyro_rankings.cli.kept import keep_groups
from numpyro_rankings.cli.models import AUTO, MODELS, TEMPERED, ModelOptions
from numpyro_rankings.cli.number import PATH, choose_components, write_path
from numpyro_rankings.cli.options import Plan, RunOptions
from numpyro_rankings.cli.rankings_file import (
    FORMATS_IN_WORDS,
    OWN_FORMAT,
    add_file_options,
    read_sample,
)
from numpyro_rankings.cli.results import (
    OPTIONAL,
    check_replaceable,
    print_blocs,
    print_diagnostics,
    print_groups,
    print_reference,
    print_title,
)
from numpyro_rankings.cli.saved import (
    FIGURES,
    SUMMARY,
    check_can_save,
    names_saved,
    write_table,
    write_workbook,
)
from numpyro_rankings.cli.session import (
    RunSession,
    Sampled,
    begin_session,
    check_overflow,
    lengths_of,
)
from numpyro_rankings.cli.several import SEVERAL_IN_WORDS, Fitted, are_several, fit_each
from numpyro_rankings.cli.slates import read_slates, with_slates, write_slates
from numpyro_rankings.words import percent, plural

if TYPE_CHECKING:
    from numpyro_rankings.rankings import Orders, PartialOrders, Rankings
    from numpyro_rankings.readers import Survey
    from numpyro_rankings.report.findings import Findings
    from numpyro_rankings.report.page import Status
    from numpyro_rankings.run import Run

_BUNDLED = "apa1980"
_BUNDLED_CITATION = (
    "American Psychological Association, presidential election of 1980 (P. Diaconis, A "
    "generalization of spectral analysis with application to ranked data, Annals of Statistics "
    "17, 1989)"
)

_ABOUT = f"""\
Find groups of rankings: fit a model, or a mixture of models, to a file of rankings.

{FORMATS_IN_WORDS}
'numpyro-rankings describe FILE' says what was read. Without FILE, the bundled data are fitted: the
15,449 ballots of the American Psychological Association's presidential election of 1980. Four
files, and blocs.csv and path.csv where there are such, are written to --out DIR (of several files,
to a folder of each in it):

  report.html      the groups, their orders, and whether the results can be trusted; open it in a
                   browser
  clusters.csv     the size, consensus order and concentrations (or item weights) of each cluster,
                   with 90% intervals, and the parties of the items if FILE has them
  assignments.csv  the cluster of each ranking in the order of FILE, with the name of its judge, or
                   the row in FILE, and the columns of --about, and how surely it belongs there: the
                   probability that it is in the same cluster as the others
  blocs.csv        if there are more than 4 groups, or the chains disagree: the blocs, which are the
                   coarse view of the groups; assignments.csv has the bloc of each ranking, and as
                   bloc_probability how surely it belongs there
  path.csv         with --components auto: the probability of each number of groups, as if there
                   were fewer rankings
  slates.csv       with --slates: the share, cohesion and crossover of each group, or bloc, and in
                   votekit.json the same for VoteKit
  posterior.nc     the draws behind the results, for ArviZ: arviz.from_netcdf("posterior.nc").
                   They are those after the burn-in, an eighth to a half of the run (with --draws:
                   all after the warm-up), at most 4,000 of each chain, and fewer than that beyond
                   256 MB

With --save there are also figures in the size of a slide, a workbook of the tables, a summary for
one sheet of paper, or FILE with the columns of assignments.csv added.

While the chains run, as soon as R-hat is below 1.1 or after about a minute, the groups so far are
printed, and report.html shows them; in a browser it renews itself until it is final.

{SEVERAL_IN_WORDS}"""

_EXAMPLES = f"""\
examples:
  numpyro-rankings fit
  numpyro-rankings fit survey.xlsx --layout ranks --judge id --about region,age
  numpyro-rankings fit ballots.soi --out results --seed 1
  numpyro-rankings fit ballots.soi --components 3 --alpha "gamma(1,1)"
  numpyro-rankings fit ballots.soi --components auto
  numpyro-rankings fit ballots.soi --components 2 --sampler tempered --effective-size 500
  numpyro-rankings fit ballots.soi --draws 8000 --thin 4
  numpyro-rankings fit ballots.soi --blocs 3
  numpyro-rankings fit survey.xlsx --layout ranks --judge id --save figures,xlsx,summary,table
  numpyro-rankings fit ballots.soi --model plackett-luce --components 3
  numpyro-rankings fit ballots.soi --components 2 --slates slates.csv
  numpyro-rankings fit lists.csv --model dp-plackett-luce --alpha flat
  numpyro-rankings fit wards/ --minutes 5 --out wards-results
  numpyro-rankings fit wards/ --minutes 5 --resume wards-results

{OWN_FORMAT}
Exit status: 0 if the results were written, 2 after an error (of several files: of any of them), 130
after Ctrl-C, 143 after SIGTERM, 129 after a hang-up.
"""


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the program."""
    parser = commands.add_parser(
        "fit",
        help="find groups in a file of rankings",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_file_options(parser, takes_several=True)
    for options in (ModelOptions, RunOptions, FitOptions):
        add_options(parser, options)
    parser.set_defaults(do=_fit)


# ---------------------------------------------------------------------------------------------
# The run
# ---------------------------------------------------------------------------------------------


def _fit(args: argparse.Namespace, command: str) -> int:
    options = parse_options(args)
    # The kernel of the first file, and its compiled programs, are shared by the others.
    make_kernel = functools.cache(MODELS[options.model.model].kernel)
    if are_several(args.file):
        fit_one = functools.partial(_fit_one, make_kernel=make_kernel)
        return fit_each(args.file, options, command, _read, fit_one)
    file = args.file[0] if args.file else None
    return _fit_one(replace(options, file=file), command, make_kernel=make_kernel)


def _read(options: FitOptions) -> "Survey":
    """Read the file, and refuse one that the model cannot be fitted to."""
    survey = read_sample(options.file, options.table, options.sample)
    survey = survey._replace(rankings=_as_taken(options.model, survey.rankings))
    _check_rankings(options.file or _BUNDLED, options.model, survey.rankings)
    if options.blocs is not None and survey.rankings.kind == "comparisons":
        raise UserError(
            "--blocs cannot be used with --cycles mistakes, because blocs need the probability of "
            "all that a judge said: leave it out, or read the file with --cycles drop"
        )
    if options.blocs is not None and not MODELS[options.model.model].family.has_fit:
        raise UserError(f"--blocs cannot be used with --model {options.model.model}")
    check_can_save(options, survey)
    if options.slates is not None:
        read_slates(options.slates, survey)
    return survey


def _fit_one(
    options: FitOptions,
    command: str,
    tell: Callable[[Fitted], None] | None = None,
    *,
    make_kernel: Callable[[ModelOptions], Any],
) -> int:
    """Fit one file, or the bundled ballots.

    :param tell: is called when the results of one of several files are written.
    """
    with begin_session(
        options.run,
        command,
        is_alone=tell is None,
        adapts=options.model.sampler == TEMPERED,
        check=lambda: _read(options),
    ) as session:
        with session.preparing():
            survey = _read(options)
            check_replaceable(session.out, names_saved(options))
            rankings = survey.rankings
            with memory_errors():
                model, path = choose_components(session, options.model, rankings)
            options = replace(options, model=model)
            thin = _choose_thinning(session.plan, options.model, rankings)
            title = f"Groups in {Path(options.file).name if options.file else 'APA 1980'}"
            named = rename_rankings(rankings, shown_names(survey))
            read = _how_read(survey)
            session.interim = _interim_page(session, options, title, named, thin, path, read)
            with memory_errors():
                sampled = _sample(session, options.model, rankings, thin, make_kernel)
                if options.model.components is None:
                    check_overflow(sampled.mcmc, options.model.max_clusters)
                session.say("summarising the draws")
                findings = _summarise(sampled, rankings, options.blocs)._replace(path=path)
                if options.slates is not None:
                    slates = read_slates(options.slates, survey)
                    findings = with_slates(findings, rankings, slates)
                keep_groups(findings, options.table, survey.layout)

        def write(folder: Path, findings: "Findings", status: "Status | None") -> None:
            _write(folder, title, survey, findings, status, options)

        def show(findings: "Findings", status: "Status | None") -> None:
            if tell is not None:
                tell(_fitted(rankings, findings, sampled.ended))
            named_findings = rename_findings(findings, rankings.items, named.items)
            _print_summary(session.out, named, named_findings, status)

        details = session.details(*_data_and_model(options, rankings), thin, sampled.lengths)
        details |= read
        return session.conclude(sampled, findings, details, write, show)


def _models_of_choice_sets() -> list[str]:
    return [name for name, model in MODELS.items() if model.takes_choice_sets]


def _as_taken(options: ModelOptions, rankings: "Rankings | Orders") -> "Rankings | Orders":
    """Return the data as the model takes them: some take choice sets in partial orders only."""
    from numpyro_rankings.rankings import PartialOrders, Rankings

    model = MODELS[options.model]
    needs_orders = model.takes_choice_sets and not model.family.takes_choice_sets
    if not (isinstance(rankings, Rankings) and rankings.choice_sets is not None and needs_orders):
        return rankings
    note(
        f"--model {model.name} takes items that were not offered as anywhere in a judge's order: "
        "the rankings are read as partial orders"
    )
    return PartialOrders.from_rankings(rankings)


def _check_rankings(name: str, options: ModelOptions, rankings: "Rankings | Orders") -> None:
    """Refuse rankings that the model cannot be fitted to."""
    model = MODELS[options.model]
    family = model.family
    offered, are_compared = rankings.offered(), rankings.kind == "comparisons"
    if are_compared:
        _check_takes_comparisons(name, options)
    if offered is not None and not model.takes_choice_sets:
        not_offered = (
            f" ({rankings.items[item]} was not offered in row {row + 1})"
            for row, of_row in enumerate(offered.tolist())
            for item, was_offered in enumerate(of_row)
            if not was_offered
        )
        others = " or ".join(_models_of_choice_sets())
        raise UserError(
            f"{name}: has choice sets{next(not_offered, '')}; only --model {others} can use them"
        )
    if rankings.are_partial and (options.sampler == TEMPERED or options.components == AUTO):
        asked = "--components auto" if options.components == AUTO else f"--sampler {TEMPERED}"
        raise UserError(
            f"{name}: some judges tie items, leave their order open or were offered a part of "
            f"them, and {asked} is for rankings alone: leave it out"
            + ("" if offered is not None else ", or read the file with --ties drop or --ties order")
        )
    if rankings.num_items < 2:
        raise UserError(f"{name}: has one item, but a ranking needs at least two")
    if family.described(cast("Rankings | PartialOrders", rankings)).num_items < 2:
        raise UserError(f"{name}: all rankings list the same single item")
    model.check_rankings(name, options, rankings)


def _check_takes_comparisons(name: str, options: ModelOptions) -> None:
    """Refuse a model, or a way to fit it, that takes no comparisons that may be mistakes."""
    model = MODELS[options.model]
    if not model.takes_comparisons:
        others = " or ".join(one.name for one in MODELS.values() if one.takes_comparisons)
        raise UserError(
            f"{name}: --cycles mistakes goes with --model {others}, not with {model.name}"
        )
    if options.sampler == TEMPERED or options.components == AUTO:
        asked = "--components auto" if options.components == AUTO else f"--sampler {TEMPERED}"
        raise UserError(
            f"{name}: {asked} is for rankings alone: leave it out with --cycles mistakes, or read "
            "the file with --cycles drop"
        )


def _choose_thinning(plan: Plan, model: ModelOptions, rankings: "Rankings | Orders") -> int:
    from numpyro_rankings.rankings import num_stages

    slots = model.components or model.max_clusters or 1
    has_labels = slots > 1 or MODELS[model.model].family.has_labels
    labels = plan.chains * rankings.num_rankings * label_bytes(slots) * has_labels
    numbers = plan.chains * slots * (rankings.num_items + num_stages(rankings))
    return choose_thinning(plan, f"{rankings.num_rankings:,} rankings", labels, 4 * numbers)


def _sample(
    session: RunSession,
    options: ModelOptions,
    rankings: "Rankings | Orders",
    thin: int,
    make_kernel: Callable[[ModelOptions], Any],
) -> Sampled:
    model, kernel = MODELS[options.model], make_kernel(options)
    if kernel.ranking_family is not model.family:
        raise TypeError(f"the kernel of --model {model.name} is not of the family {model.family}")
    rankings = model.family.described(rankings)
    shows = sys.stderr.isatty() and session.is_shown
    if shows and model.searches(kernel, rankings):
        note("searching for starting points; this can take minutes")
    return session.sample(kernel, (rankings,), thin, options.max_clusters)


def _interim_page(
    session: RunSession,
    options: FitOptions,
    title: str,
    rankings: "Rankings | Orders",
    thin: int,
    path: Any,
    read: Mapping[str, str] | None = None,
) -> InterimPage:
    """Return the page that is written while the run goes on."""

    def details(run: "Run") -> dict[str, str]:
        data_and_model = _data_and_model(options, rankings)
        made = session.details(*data_and_model, thin, lengths_of(run, thin))
        return made | dict(read or {})

    find = finder_of_groups(rankings, title, session.plan.chains, details, options.blocs, path)
    return InterimPage(session.out, find)


# ---------------------------------------------------------------------------------------------
# The results
# ---------------------------------------------------------------------------------------------


def _summarise(
    sampled: Sampled, rankings: "Rankings | Orders", num_blocs: int | None
) -> "Findings":
    from numpyro_rankings.posterior.diagnostics import STACKING_WEIGHTS, posterior_of
    from numpyro_rankings.posterior.inference_data import to_inference_data
    from numpyro_rankings.report.findings import findings_of

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without a pointwise log likelihood of so many rankings
        data = to_inference_data(sampled.mcmc, rankings)
    sampled.note_changes(data)
    findings = findings_of(data, rankings, blocs="auto" if num_blocs is None else None)
    if num_blocs is not None:
        findings = _with_blocs(findings, rankings, num_blocs)
    weights = posterior_of(findings.data).attrs.get(STACKING_WEIGHTS)
    if weights is not None:  # so that they are in the file of the draws
        data["posterior"].attrs[STACKING_WEIGHTS] = weights
    return findings._replace(data=data)


def _with_blocs(findings: "Findings", rankings: "Rankings | Orders", number: int) -> "Findings":
    """Add the blocs that were asked for; the rest does not fail if there are not so many."""
    from numpyro_rankings.posterior.blocs import NoBlocsError, find_blocs

    if findings.reference is None:  # as --components auto may find
        note("no blocs are described: there is one group")
        return findings
    try:
        said = cast("Rankings | PartialOrders", rankings)  # comparisons are refused before
        return findings._replace(blocs=find_blocs(findings.data, said, number))
    except NoBlocsError as error:
        note(f"no blocs are described: {str(error).replace('num_blocs is', '--blocs is')}")
        return findings


def _data_and_model(options: FitOptions, rankings: "Rankings | Orders") -> tuple[str, str]:
    """Describe the data and the model, for the last section of the report."""
    from numpyro_rankings.rankings.counts import said_in_words

    fewest, most = int(rankings.lengths.min()), int(rankings.lengths.max())
    data = (
        f"{options.file or _BUNDLED_CITATION}: {rankings.num_rankings:,} rankings, "
        f"{rankings.unique().num_rows:,} distinct, of {rankings.num_items} items, each listing "
        f"{fewest if fewest == most else f'{fewest} to {most}'} of them"
    )
    ties = said_in_words(rankings)
    data = f"{data}; {ties}" if ties else data
    return data, MODELS[options.model.model].in_words(options.model)


def _how_read(survey: "Survey") -> dict[str, str]:
    """Say what was left out, closed or read as something else, for the last section too."""
    return {"how the file was read": "; ".join(survey.notes)} if survey.notes else {}


def _write(
    folder: Path,
    title: str,
    survey: "Survey",
    findings: "Findings",
    status: "Status | None",
    options: FitOptions,
) -> None:
    import numpy as np

    from numpyro_rankings.cli import tables
    from numpyro_rankings.posterior.inference_data import save_inference_data
    from numpyro_rankings.report import write as report

    rankings, names = survey.rankings, shown_names(survey)
    with ThreadPoolExecutor(1) as beside:  # to compress the draws takes about as long as the rest
        saved = beside.submit(save_inference_data, findings.data, folder / "posterior.nc")
        tables.write_clusters(
            folder / "clusters.csv",
            findings,
            functools.partial(
                tables.columns_of_rankings, rankings=rankings, about=survey.items_about
            ),
        )
        assigned = _assigned(findings, survey)
        _write_assignments(folder / "assignments.csv", assigned, survey)
        if findings.blocs is not None:
            tables.write_blocs(folder / "blocs.csv", findings, rankings, survey.items_about)
        if findings.slates is not None:
            write_slates(folder, findings)
        if findings.path is not None:
            write_path(folder / PATH, findings.path)
        by_label = np.argsort(survey.label_index)  # the ranking of the file that each label is of
        report.write_findings(
            folder / "report.html",
            rename_findings(findings, rankings.items, names),
            rename_rankings(rankings, names),
            title=title,
            about={name: [x[i] for i in by_label] for name, x in survey.about.items()},
            status=status,
            figures=folder / FIGURES if "figures" in options.save else None,
            summary=folder / SUMMARY if "summary" in options.save else None,
        )
        if "xlsx" in options.save:
            of_csv = ("clusters.csv", "assignments.csv", *OPTIONAL)
            tables_written = [x for x in of_csv if x.endswith(".csv") and (folder / x).exists()]
            write_workbook(folder, tables_written)
        if "table" in options.save:
            write_table(folder, options, survey, assigned)
        saved.result()


def _assigned(findings: "Findings", survey: "Survey") -> dict[str, list[Any]]:
    """Return the cluster, and if there are blocs the bloc, of each ranking in the file's order.

    Identical ones can be in different clusters.
    """
    import numpy as np

    rankings, place = survey.rankings, survey.label_index
    numbers = {p.label: number for number, p in enumerate(findings.profiles, 1)}
    labels, probability = np.zeros(len(place), int), np.ones(len(place))
    if findings.reference is not None and findings.membership is not None:
        labels, probability = findings.reference.labels[place], findings.membership[place]
    columns: dict[str, list[Any]] = {"cluster": [numbers[x] for x in labels.tolist()]}
    blocs = findings.blocs
    if blocs is None:
        return columns | {"probability": _rounded(probability)}
    of_each = blocs.labels[place]
    certainty = blocs.membership[np.asarray(rankings.row_index)[place], of_each]
    columns |= {"bloc": (of_each + 1).tolist(), "probability": _rounded(probability)}
    return columns | {"bloc_probability": _rounded(certainty)}


def _rounded(probability: Any) -> list[float]:
    return [float(f"{p:.4g}") for p in probability]


def _write_assignments(path: Path, assigned: Mapping[str, list[Any]], survey: "Survey") -> None:
    """Write one row for each ranking in the order of the file."""
    import numpy as np

    from numpyro_rankings.cli.tables import rows_in_words, write_assignments

    rankings = survey.rankings
    rows, lists = np.asarray(rankings.row_index)[survey.label_index], rows_in_words(rankings)
    columns: dict[str, Any] = {}
    if survey.judges is not None:
        columns["judge"] = survey.judges
    elif survey.rows is not None:  # by which a survey without names can be joined
        columns["row"] = survey.rows.tolist()
    columns |= {"ranking": range(1, len(rows) + 1), "ordering": (lists[row] for row in rows)}
    taken = {*columns, "cluster", "bloc", "probability", "bloc_probability"}
    for name, values in survey.about.items():
        columns[f"{name} (in the file)" if name in taken else name] = values
    blocs = (assigned["bloc"], assigned["bloc_probability"]) if "bloc" in assigned else None
    write_assignments(path, columns, assigned["cluster"], assigned["probability"], blocs)


def _fitted(rankings: "Rankings | Orders", findings: "Findings", ended: str) -> Fitted:
    """Return what the table of several files says of one."""
    table = findings.table
    moving = table[table["note"] != "constant"]
    r_hat = float(moving["r_hat"].max())
    ess = float(moving[["ess_bulk", "ess_tail"]].min(axis=None))
    sizes = rankings.num_rankings, rankings.num_items, len(findings.held)
    return Fitted(*sizes, r_hat, ess, ended)


def _print_summary(
    out: Path, rankings: "Rankings | Orders", findings: "Findings", status: "Status | None"
) -> None:
    from numpyro_rankings.report.answers import wants

    num_rankings = plural(rankings.num_rankings, "ranking")
    print_title(findings, f"{num_rankings} of {plural(rankings.num_items, 'item')}")
    held, blocs = findings.held, findings.blocs
    if blocs is not None and findings.blocs_first:
        print_blocs(findings, blocs)
        print()
    print_groups(
        findings,
        "agreement",
        [f"{percent(p.agreement):>9}" for p in held],
        wants(findings)[: len(held)],
        len(held),
    )
    if findings.reference is not None:
        print_reference(findings.reference)
    if blocs is not None and not findings.blocs_first:
        print()
        print_blocs(findings, blocs)
    print_diagnostics(findings, out, status)
