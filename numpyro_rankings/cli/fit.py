"""The command ``numpyro-rankings fit``: groups in a file of rankings."""

import argparse
import functools
import sys
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from numpyro_rankings.cli.arguments import UserError, add_options, note
from numpyro_rankings.cli.assignments import Assigned, assigned, write_assigned
from numpyro_rankings.cli.calibration import (
    check_calibrates,
    tell_of_power,
    with_calibration,
    write_calibration,
)
from numpyro_rankings.cli.capacity import choose_thinning, label_bytes, memory_errors
from numpyro_rankings.cli.fit_options import FitOptions, naming_options, parse_options
from numpyro_rankings.cli.interim import InterimPage, TriedNumber, finder_of_groups
from numpyro_rankings.cli.item_names import rename_findings, rename_rankings, shown_names
from numpyro_rankings.cli.kept import keep_groups
from numpyro_rankings.cli.models import (
    AUTO,
    LEAST_MINUTES,
    MODELS,
    MOST_DIFFERENT,
    MOST_ITEMS,
    MOST_JUDGES,
    MOST_OWN,
    TEMPERED,
    ModelOptions,
)
from numpyro_rankings.cli.number import PATH, choose_components, write_path
from numpyro_rankings.cli.options import Plan, RunOptions
from numpyro_rankings.cli.rankings_file import (
    FORMATS_IN_WORDS,
    OWN_FORMAT,
    add_file_options,
    read_file,
    take_sample,
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
from numpyro_rankings.cli.shares import by_covariates, print_shares, with_shares, write_shares
from numpyro_rankings.cli.slates import (
    names_of_tables,
    read_slates,
    tell_of_sample,
    with_slates,
    write_slates,
)
from numpyro_rankings.cli.usual_model import CHOSEN, usual_in_words, usual_options, with_usual
from numpyro_rankings.cli.worths import (
    print_effects,
    read_covariates,
    with_effects,
    write_effects,
)
from numpyro_rankings.words import listed, percent, plural

if TYPE_CHECKING:
    from numpyro_rankings.cli.interim import Finder
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
Without an option of the model or the sampler, nor --blocs, --draws or --warmup, a Dirichlet process
is fitted. But if more than {MOST_DIFFERENT} rankings without ties, of up to {MOST_ITEMS} items, are
different, or more than {MOST_OWN} of fewer than twice as many judges, it is as by --components
auto, and of more than {MOST_JUDGES:,} judges as by --sample {MOST_JUDGES}. --components dp, or less
than --minutes {LEAST_MINUTES}, fits the process.

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
                   probability that it is in the same cluster as the others. With --sample, of all
                   judges of FILE: the probability of the cluster given what the judge said,
                   averaged over draws, and in the column fitted whether the judge was drawn
  blocs.csv        if there are more than 4 groups, or the chains disagree: the blocs, which are the
                   coarse view of the groups; assignments.csv has the bloc of each ranking, and as
                   bloc_probability how surely it belongs there
  path.csv         with --components auto: the probability of each number of groups, as if there
                   were fewer rankings
  shares_by.csv    with --shares-by: the share of each group if all judges had one value of a
                   column, and how much that differs from the share with their own values
  item_effects.csv with --worths-by: the effect of each covariate of the items on their weights
  calibration.csv  with --calibrate: for each quantity how often each rank is there
  slates.csv       with --slates: the share, cohesion and crossover of each group, or bloc, and in
                   votekit.json the same for VoteKit
  slates_by/       with --slates and --about: for each column of names, such as a precinct, a table
                   with a row for each: its judges, and partially pooled the share of each group, or
                   bloc, and of the first choices of each slate, to be joined to a map
  posterior.nc     the draws behind the results, for ArviZ: arviz.from_netcdf("posterior.nc").
                   They are those after the burn-in, an eighth to a half of the run (with --draws:
                   all after the warm-up), at most 4,000 of each chain, and fewer than that beyond
                   256 MB

With --save there are also figures in the size of a slide, a workbook of the tables, a summary for
one sheet of paper, or FILE with the columns of assignments.csv added.

While the chains run, as soon as R-hat is below 1.1 or after about a minute, the groups so far are
printed, and report.html shows them; in a browser it renews itself until it is final. With
--components auto it does so as soon as two numbers of components have been tried.

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
  numpyro-rankings fit lists.csv --model plackett-luce --worths-by items.csv
  numpyro-rankings fit ballots.soi --components 2 --slates slates.csv
  numpyro-rankings fit survey.xlsx --layout ranks --components 2 --shares-by region,age
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
    parser.set_defaults(do=_fit, model=None)  # so that it is known whether it was given


# ---------------------------------------------------------------------------------------------
# The run
# ---------------------------------------------------------------------------------------------


def _fit(args: argparse.Namespace, command: str) -> int:
    options = parse_options(args)
    # The kernel of the first file, and its compiled programs, are shared by the others.
    make_kernel = functools.cache(MODELS[options.model.model].kernel)
    if are_several(args.file):
        fit_one = functools.partial(_fit_one, make_kernel=make_kernel)
        read = functools.partial(_read, is_one_of_several=True)
        return fit_each(args.file, options, command, read, fit_one)
    file = args.file[0] if args.file else None
    return _fit_one(replace(options, file=file), command, make_kernel=make_kernel)


class AsFitted(NamedTuple):
    """What was read of a file, and how it is fitted.

    - **options** - with those that were chosen for the table.
    - **survey** - of the judges who are fitted.
    - **whole** - of all judges of the file, if those are a sample of them.
    - **usual** - the options that were chosen, by their names, and **why**.
    """

    options: FitOptions
    survey: "Survey"
    whole: "Survey | None"
    usual: Mapping[str, Any]
    why: str


def _read(
    options: FitOptions, is_one_of_several: bool = False, session: RunSession | None = None
) -> AsFitted:
    """Read the file, choose what no option says, and refuse what the model cannot be fitted to.

    :param session: of the run; one that is resumed stays what it was begun as.
    """
    whole = read_file(options.file, options.table)
    return as_fitted(whole, options, is_one_of_several, session)


def as_fitted(
    whole: "Survey",
    options: FitOptions,
    is_one_of_several: bool = False,
    session: RunSession | None = None,
) -> AsFitted:
    """Choose how all judges of a file are fitted, as :func:`_read`."""
    resumes = session is not None and session.resumes
    usual, why = usual_options(options, whole.rankings, resumes), ""
    if usual and session is not None and resumes and not session.resumes_ladders:
        usual = {"--components": "dp"}
        note("the run was begun with a Dirichlet process, and goes on so (--components dp)")
    elif usual:
        why = usual_in_words(usual, whole.rankings)
        note(why)
    options = with_usual(options, usual)
    survey = take_sample(whole, options.sample)
    survey = survey._replace(rankings=_as_taken(options.model, survey.rankings))
    by_covariates(options.file, survey, options.shares_by)  # refuses some
    _check_rankings(options.file or _BUNDLED, options.model, survey.rankings)
    if options.blocs is not None and survey.rankings.kind == "comparisons":
        raise UserError(
            "--blocs cannot be used with --cycles mistakes, because blocs need the probability of "
            "all that a judge said: leave it out, or read the file with --cycles drop"
        )
    if options.blocs is not None and not MODELS[options.model.model].family.has_fit:
        raise UserError(f"--blocs cannot be used with --model {options.model.model}")
    if options.calibrate is not None:
        check_calibrates(MODELS[options.model.model], survey.rankings)
    check_can_save(options, whole)
    if options.slates is not None:
        read_slates(options.slates, survey, is_one_of_several)
    if options.model.worths_by is not None:
        read_covariates(options.model.worths_by, survey, is_one_of_several)
    is_sample = survey.rankings.num_rankings < whole.rankings.num_rankings
    return AsFitted(options, survey, whole if is_sample else None, usual, why)


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
        check=lambda: _read(options, tell is not None),
    ) as session:
        with session.preparing():
            read = _read(options, tell is not None, session)
            options = read.options
            session.spell_out(read.usual)
            survey, covariates = by_covariates(
                options.file, read.survey, options.shares_by, tells=True
            )
            check_replaceable(session.out, names_saved(options))
            rankings = survey.rankings
            title = f"Groups in {Path(options.file).name if options.file else 'APA 1980'}"
            named, told = rename_rankings(rankings, shown_names(survey)), _how_read(read)
            finder = functools.partial(_finder, session, title=title, rankings=named, read=told)
            session.interim = InterimPage(session.out, finder(options))
            with memory_errors():
                model, path = choose_components(session, options.model, rankings)
            options = replace(options, model=model)
            tell_of_power(model, options.calibrate)
            thin = _choose_thinning(session.plan, options.model, rankings)
            session.interim.find = finder(options, thin=thin, path=path)
            with memory_errors():
                of_items = None
                if options.model.worths_by is not None:
                    of_items = read_covariates(options.model.worths_by, survey, tell is not None)
                given = covariates if of_items is None else of_items.values
                with naming_options(options):
                    if given is not None:  # which the path is without
                        session.ladders = None
                    sampled = _sample(session, options.model, rankings, given, thin, make_kernel)
                if options.model.components is None:
                    check_overflow(sampled.mcmc, options.model.max_clusters)
                session.say("summarising the draws")
                findings = _summarise(sampled, rankings, options.blocs)._replace(path=path)
                if survey.weights is not None:
                    by_label = survey.label_index.argsort()
                    findings = findings._replace(weights=survey.weights[by_label])
                if options.slates is not None:
                    slates = read_slates(options.slates, survey, tell is not None)
                    findings = with_slates(findings, rankings, slates, _about_by_label(survey))
                    if read.whole is not None:
                        tell_of_sample(findings, read.whole)
                findings = with_shares(findings, covariates)
                if of_items is not None:
                    findings = with_effects(findings, of_items)
                if options.calibrate is not None:
                    session.say("refitting what the fit simulates")
                    kernel, seed = make_kernel(model), session.plan.seed
                    findings = with_calibration(findings, kernel, sampled, options, seed)
                keep_groups(findings, options.table, survey.layout)
                if read.whole is not None:
                    session.say("putting all judges into the groups")
                judges = assigned(findings, survey, read.whole)

        def write(folder: Path, findings: "Findings", status: "Status | None") -> None:
            _write(folder, title, survey, judges, findings, status, options)

        def show(findings: "Findings", status: "Status | None") -> None:
            if tell is not None:
                tell(_fitted(rankings, findings, sampled.ended))
            named_findings = rename_findings(findings, rankings.items, named.items)
            _print_summary(session.out, named, named_findings, status)

        ladders = sampled.mcmc if sampled.is_of_path else None
        data_and_model = _data_and_model(options, rankings)
        details = session.details(*data_and_model, thin, sampled.lengths, ladders)
        details |= told | _who_is_assigned(judges)
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
    if rankings.weights is not None:
        raise UserError(
            "--weight goes with items that were not offered to all judges only under --model "
            "plackett-luce"
        )
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
    covariates: Any,
    thin: int,
    make_kernel: Callable[[ModelOptions], Any],
) -> Sampled:
    """Run the chains.

    :param covariates: those of the judges or of the items, as the kernel takes them, or None.
    """
    model, kernel = MODELS[options.model], make_kernel(options)
    if kernel.ranking_family is not model.family:
        raise TypeError(f"the kernel of --model {model.name} is not of the family {model.family}")
    rankings = model.family.described(rankings)
    shows = sys.stderr.isatty() and session.is_shown
    if shows and model.searches(kernel, rankings):
        note("searching for starting points; this can take minutes")
    data = (rankings,) if covariates is None else (rankings, covariates)
    return session.sample(kernel, data, thin, options.max_clusters)


def _finder(
    session: RunSession,
    options: FitOptions,
    *,
    title: str,
    rankings: "Rankings | Orders",
    read: Mapping[str, str],
    thin: int = 1,
    path: Any = None,
) -> "Finder":
    """Return what finds the groups for the page that is written while the run goes on."""

    def details(source: "Run | TriedNumber") -> dict[str, str]:
        if isinstance(source, TriedNumber):
            model = replace(options.model, components=source.number)
            lengths, ladders = source.lengths, source.mcmc
        else:
            model, lengths, ladders = options.model, lengths_of(source, thin), None
        data_and_model = _data_and_model(replace(options, model=model), rankings)
        return session.details(*data_and_model, thin, lengths, ladders) | dict(read)

    return finder_of_groups(rankings, title, session.plan.chains, details, options.blocs, path)


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
    model = MODELS[options.model.model].in_words(options.model)
    if options.shares_by:
        model += f", with shares that depend on {listed(options.shares_by)}"
    return data, model


def _how_read(read: AsFitted) -> dict[str, str]:
    """Say what was left out, closed or read as something else, for the last section too."""
    from numpyro_rankings.rankings import WeightedRankings
    from numpyro_rankings.rankings.weights import weights_in_words

    notes, rankings = read.survey.notes, read.survey.rankings
    told = {"how the file was read": "; ".join(notes)} if notes else {}
    if isinstance(rankings, WeightedRankings):
        column, in_words = read.options.table.weight, weights_in_words(rankings)
        told["survey weights"] = f"column {column}: {in_words}"
        note(f"weighted by {column!r}: {in_words}")
    return told | ({CHOSEN: read.why} if read.why else {})


def _who_is_assigned(judges: Assigned) -> dict[str, str]:
    """Say how many judges were fitted, and who is in the tables, if a sample was."""
    from numpyro_rankings.report.findings import JUDGES  # loads JAX

    return {JUDGES: judges.in_words} if judges.in_words else {}


def _write(
    folder: Path,
    title: str,
    survey: "Survey",
    judges: Assigned,
    findings: "Findings",
    status: "Status | None",
    options: FitOptions,
) -> None:
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
        write_assigned(folder / "assignments.csv", judges)
        if findings.blocs is not None:
            tables.write_blocs(folder / "blocs.csv", findings, rankings, survey.items_about)
        if findings.item_effects is not None:
            write_effects(folder, findings)
        if findings.calibration is not None:
            write_calibration(folder, findings)
        if findings.slates is not None:
            write_slates(folder, findings)
        if findings.shares_by is not None:
            write_shares(folder, findings)
        if findings.path is not None:
            write_path(folder / PATH, findings.path)
        report.write_findings(
            folder / "report.html",
            rename_findings(findings, rankings.items, names),
            rename_rankings(rankings, names),
            title=title,
            about=_about_by_label(survey),
            status=status,
            figures=folder / FIGURES if "figures" in options.save else None,
            summary=folder / SUMMARY if "summary" in options.save else None,
        )
        if "xlsx" in options.save:
            of_csv = ["clusters.csv", "assignments.csv", *OPTIONAL]
            of_csv += names_of_tables(findings.slates_by or {})
            tables_written = [x for x in of_csv if x.endswith(".csv") and (folder / x).exists()]
            write_workbook(folder, tables_written)
        if "table" in options.save:
            write_table(folder, options, judges.survey, judges.columns)
        saved.result()


def _about_by_label(survey: "Survey") -> dict[str, list[Any]]:
    """Return what is known of the judges, in the order of the labels and not of the file."""
    import numpy as np

    by_label = np.argsort(survey.label_index)  # the ranking of the file that each label is of
    return {name: [x[i] for i in by_label] for name, x in survey.about.items()}


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
    print_shares(findings)
    if findings.reference is not None:
        print_reference(findings.reference)
    if blocs is not None and not findings.blocs_first:
        print()
        print_blocs(findings, blocs)
    print_effects(findings)
    print_diagnostics(findings, out, status)
