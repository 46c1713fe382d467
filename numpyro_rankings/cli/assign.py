"""The command ``numpyro-rankings assign``: the groups of judges who were not fitted."""

import argparse
import os
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpyro_rankings.cli.arguments import (
    UserError,
    add_options,
    as_user_errors,
    check_file,
    count,
    file_errors,
    note,
    option,
    take_options,
)
from numpyro_rankings.cli.compilation import check_backends, use_compilation_cache
from numpyro_rankings.cli.kept import OF_RANKS, Kept, read_kept
from numpyro_rankings.cli.options import TableOptions
from numpyro_rankings.cli.rankings_file import read_file
from numpyro_rankings.cli.streams import notes
from numpyro_rankings.words import in_one_line, listed, plural, share, shorten, without_mark

if TYPE_CHECKING:
    import numpy as np

    from numpyro_rankings.predict import GroupsOfJudges
    from numpyro_rankings.readers import Survey

NONE = "none of the groups"
_CLEAR = 0.5  # a judge is clear whose group has at least this probability
_OWN = re.compile(r"(judge|row|ranking),.*\bcluster,(bloc,)?probability,.*group 1")

_ABOUT = """\
Tell to which groups of a fit new judges belong, such as those of the next wave of a survey.

RESULTS is the folder that 'numpyro-rankings fit' has written. FILE is read as the file of the fit
was, with the same options, which the results remember; options that are given here go before them.
Items are matched by their names. FILE may have fewer items than the fit; those that a table of
ranks does not have were not offered. The groups are those of RESULTS, with the same numbers.

The table that is written has a row for each judge:

  judge            the name of the judge, or row, the row in FILE
  cluster          the most probable group, or none
  bloc             the most probable bloc, and bloc_probability, if RESULTS has blocs
  probability      that of the group
  group 1, ...     the probability of each group
  none of the groups
                   that of a group of which no fitted judge is, if the model allows it
  next 1, ...      with --next: the items that most probably come next in the list of the judge,
                   and their probabilities
"""

_EXAMPLES = """\
examples:
  numpyro-rankings assign results newwave.xlsx
  numpyro-rankings assign results newwave.xlsx --out groups.csv --table newwave-groups.xlsx
  numpyro-rankings assign results newwave.csv --judge email
  numpyro-rankings assign results half-ranked.csv --next 3
  numpyro-rankings assign results --short-form 4
"""


@dataclass(frozen=True)
class AssignOptions:
    """The options of the output."""

    out: Path | None = option(
        "the table with the groups (default: the name of FILE with -groups.csv)",
        "FILE.csv",
        type=Path,
        group="output",
    )
    table: Path | None = option(
        "also write FILE itself with the columns added, to a text file or a spreadsheet as FILE is",
        "FILE",
        type=Path,
    )
    next: int | None = option(
        "also tell the K items that most probably come next in the list of each judge",
        "K",
        count(1, 20),
    )
    force: bool = option(
        "replace the table of --out, if this command has written it",
        action="store_true",
        default=False,
    )
    short_form: int | None = option(
        "without FILE: tell which K items, from 2 to 6, to ask for so that most judges are still "
        "put into the right group, and the share that is",
        "K",
        count(2, 6),
        group="short form",
    )


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the program."""
    parser = commands.add_parser(
        "assign",
        help="tell to which groups of a fit new judges belong",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the folder of the results")
    parser.add_argument("file", nargs="?", metavar="FILE", help="what the new judges said")
    add_options(parser, AssignOptions)
    add_options(parser, TableOptions)
    parser.set_defaults(do=_assign)


def _assign(args: argparse.Namespace, _: str) -> int:
    options = take_options(AssignOptions, args)
    if options.short_form is not None:
        return _tell_short_form(args, options)
    if args.file is None:
        raise UserError("FILE is missing: what the new judges said, or --short-form K")
    check_file(args.file)
    out = options.out or Path(f"{Path(args.file).stem}-groups.csv")
    _check_outputs(args.file, out, options)
    with notes():
        kept = read_kept(args.results)
        if "share_effects" in kept.draws.samples:
            note(
                "the fit has shares that depend on columns of the judges (--shares-by): here all "
                "judges count as average in these columns"
            )
        table = _as_fitted(args.file, kept.table, take_options(TableOptions, args))
        survey = read_file(args.file, table)
        _check_table(survey, table, options)
        use_compilation_cache()
        check_backends()
        rankings, rows = _new_judges(args.file, kept, survey)
        found = _groups_of(args.file, kept, rankings, rows)
        following = _next_of(args.file, kept, rankings, rows, options.next)
        columns = _write_out(out, found, survey, following)
    if options.table is not None:
        _write_table(args.file, options.table, survey, table, columns)
    _print_summary(args, kept, found, [str(x) for x in (out, options.table) if x is not None])
    return 0


def _tell_short_form(args: argparse.Namespace, options: AssignOptions) -> int:
    """Print which items to ask for."""
    number = options.short_form
    assert number is not None  # asked before
    if any(x is not None for x in (args.file, options.out, options.table, options.next)):
        raise UserError(
            "--short-form goes without FILE, --out, --table and --next: it is about RESULTS"
        )
    with notes():
        kept = read_kept(args.results)
        use_compilation_cache()
        check_backends()
        from numpyro_rankings.predict import short_form

        with as_user_errors(ValueError):
            if number > len(kept.draws.items or ()):
                items = plural(len(kept.draws.items or ()), "item")
                raise UserError(f"--short-form {number}: {args.results} has {items}")
            found = short_form(kept.draws, None, number, kept.labels)
    print(f"\nAsk for the order of {_named(found.items)}: {share(found.share)} are put right\n")
    print("items  put right  which")
    for names, right in found.by_number:
        print(f"{len(names):>5} {share(right):>10}  {_named(names)}")
    print(f"  all {share(found.share_of_all):>10}")
    print(f" none {share(found.share_of_none):>10}  all in the largest group\n")
    print(
        "Put right: the share of judges whose most probable group is theirs, of judges simulated "
        "from\nthe groups of the fit."
    )
    return 0


def _named(items: Iterable[str]) -> str:
    """Return names in one line; those with commas have quotes."""
    return ", ".join(repr(x) if "," in x else in_one_line(x) for x in items)


# ---------------------------------------------------------------------------------------------
# The file
# ---------------------------------------------------------------------------------------------


def _as_fitted(file: str, remembered: TableOptions, given: TableOptions) -> TableOptions:
    """Return the options of the fit, with those that are given here in their place.

    Columns of items, and about the judges, that this file does not have are left out.
    """
    own = {name: x for name, x in asdict(given).items() if x not in (None, ())}
    if given.weight is not None:
        raise UserError(
            "assign takes no survey weights: leave out --weight; the shares of a weighted fit are "
            f"those of its population, and --about {given.weight} leaves the column aside"
        )
    table = replace(remembered, **own)
    if table.weight is not None and "about" not in own:  # a column that is no item
        table = replace(table, weight=None, about=(*table.about, table.weight))
    table = replace(table, weight=None)
    if own.get("layout", OF_RANKS[0]) not in OF_RANKS and "highest_first" not in own:
        table = replace(table, highest_first=None)
    asked = {"judge": table.judge, "count": table.count}
    named = {x for name, x in asked.items() if x is not None and name not in own}
    named |= set(() if "about" in own else table.about)
    items = set(() if "items" in own else table.items or ())
    if not named | items:
        return table
    columns = _columns_of(file, table)
    if items & columns:  # else they are names in cells, or what is left of the headers
        table = replace(table, items=tuple(x for x in table.items or () if x in columns))
    if not (missing := named - columns):
        return table
    column = "column" if len(missing) == 1 else "columns"
    note(f"{file} has no {column} {listed(sorted(missing))}, which the file of the fit had")
    gone: dict[str, Any] = {name: None for name, x in asked.items() if x in missing}
    return replace(table, **gone, about=tuple(x for x in table.about if x not in missing))


def _columns_of(file: str, table: TableOptions) -> set[str]:
    from numpyro_rankings.rankings import RankingsError
    from numpyro_rankings.readers.grids import read_grid

    with as_user_errors(RankingsError):
        has_header = table.header != "none"
        settings = table.encoding, table.layout, has_header, table.max_rows
        return set(read_grid(file, table.items or (), *settings).columns)


def _new_judges(file: str, kept: Kept, survey: "Survey") -> tuple[Any, "np.ndarray"]:
    """Return what the new judges said, and the row of each in it."""
    import numpy as np

    from numpyro_rankings.rankings import Comparisons

    if isinstance(survey.rankings, Comparisons):
        raise UserError("assign takes no comparisons that may be mistakes: add --cycles drop")
    rows = np.asarray(survey.rankings.row_index)[survey.label_index]
    _check_lengths(file, kept, survey, rows)
    return _with_names_in_cells(survey, kept.draws.items or ()), rows


def _groups_of(file: str, kept: Kept, rankings: Any, rows: "np.ndarray") -> "GroupsOfJudges":
    """Return the groups of each judge, in the order of the file."""
    from numpyro_rankings.predict import groups
    from numpyro_rankings.rankings import RankingsError

    try:
        found = groups(kept.draws, None, rankings, kept.labels, blocs=kept.blocs)
    except RankingsError as error:
        hint = "; leave it out by --columns, or tell another name of an item by --aliases FILE"
        raise UserError(f"{file}: {error}{hint if 'of the fit' in str(error) else ''}") from None
    except ValueError as error:
        raise UserError(f"{file}: {error}") from None
    by_row = {
        name: x[rows]
        for name in ("labels", "probability", "groups", "none", "blocs")
        if (x := getattr(found, name)) is not None
    }
    return found._replace(**by_row)


def _next_of(
    file: str, kept: Kept, rankings: Any, rows: "np.ndarray", number: int | None
) -> dict[str, list[float | str]]:
    """Return columns with the items that probably come next; nothing where none is left."""
    if number is None:
        return {}
    import numpy as np

    from numpyro_rankings.predict import next_items

    if rankings.are_partial:
        raise UserError("--next is for lists without ties: add --ties drop or --ties order")
    with as_user_errors(ValueError):
        found = next_items(kept.draws, rankings, num_orders=0)
    order = np.argsort(-found.next, axis=1, kind="stable")[rows]
    probability = np.take_along_axis(found.next[rows], order, axis=1)
    columns: dict[str, list[float | str]] = {}
    for k in range(min(number, len(found.items))):
        is_left = probability[:, k] > 0
        names = zip(order[:, k], is_left, strict=True)
        columns[f"next {k + 1}"] = [found.items[i] if left else "" for i, left in names]
        values = zip(probability[:, k].tolist(), is_left, strict=True)
        columns[f"probability of next {k + 1}"] = [p if left else "" for p, left in values]
    return columns


def _check_lengths(file: str, kept: Kept, survey: "Survey", rows: "np.ndarray") -> None:
    """Refuse lists with more places than the fit has, naming the first in the file."""
    import numpy as np

    lengths = np.asarray(survey.rankings.lengths)[rows]
    most = kept.draws.check_family().most_listed(kept.draws.samples)
    fitted, items = set(kept.draws.items or ()), set(survey.rankings.items)
    are_of_all = items >= fitted and not items - fitted  # others are refused by their names
    for k in np.flatnonzero(lengths > most)[:1].tolist():
        if are_of_all and survey.rankings.offered() is None:
            place = f"ranking {k + 1}" if survey.rows is None else f"row {survey.rows[k]}"
            raise UserError(
                f"{file}: {place} lists {lengths[k]} items, and the lists of the fit had at most "
                f"{most}: add --top {most}"
            )


def _with_names_in_cells(survey: "Survey", fitted: Iterable[str]) -> Any:
    """Return rankings of all fitted items, if the file names those only that somebody ranks."""
    from numpyro_rankings.posterior.predictive_density import by_name
    from numpyro_rankings.readers.layouts import LAYOUTS

    layout = LAYOUTS.get(survey.layout)
    if layout is None or not layout.has_names_in_cells:
        return survey.rankings
    items = survey.rankings.items
    return by_name(survey.rankings, (*items, *(x for x in fitted if x not in items)))


# ---------------------------------------------------------------------------------------------
# The results
# ---------------------------------------------------------------------------------------------


def _check_outputs(file: str, out: Path, options: AssignOptions) -> None:
    """Refuse files that are there, but for a table of this command with --force."""
    if out.suffix.lower() != ".csv":
        raise UserError(f"--out is the name of a table, such as {out.stem or 'groups'}.csv")
    if os.path.lexists(out):
        with file_errors(f"cannot read {out}"):
            is_own = out.is_file() and _OWN.match(out.read_text("utf-8", "replace")[:2000])
        if not is_own:
            raise UserError(f"{out} was not written by this command: choose another --out")
        if not options.force:
            raise UserError(f"{out} exists: use --force to replace it, or choose another --out")
    if options.table is None:
        return
    if os.path.lexists(options.table):
        raise UserError(f"{options.table} exists: choose another --table")
    if options.table.absolute() == out.absolute():
        raise UserError("--table and --out are the same file: choose another --table")
    from numpyro_rankings.rankings import RankingsError
    from numpyro_rankings.readers.with_columns import check_kind

    with as_user_errors(RankingsError):
        check_kind(file, options.table)


def _check_table(survey: "Survey", table: TableOptions, options: AssignOptions) -> None:
    """Refuse --table of a file in which a judge has no row of his own."""
    from numpyro_rankings.readers.layouts import LAYOUTS

    layout = LAYOUTS.get(survey.layout)
    has_rows = layout is not None and not (layout.has_lines_of_items or layout.has_pairs)
    if options.table is not None and not (has_rows and survey.rows is not None):
        raise UserError("--table goes with a table that has a row for each judge; --out has one")
    if options.table is not None and table.transpose:
        raise UserError("--table goes without --transpose; --out has a row for each judge")


def _write_out(
    out: Path,
    found: "GroupsOfJudges",
    survey: "Survey",
    following: dict[str, list[float | str]],
) -> dict[str, list[Any]]:
    """Write the table, and return its columns but for those that name the judges."""
    from numpyro_rankings.cli.tables import write_assignments

    number = found.groups.shape[1]
    first: dict[str, Any] = {"ranking": range(1, len(found.labels) + 1)}
    if survey.judges is not None:
        first = {"judge": survey.judges}
    elif survey.rows is not None:
        first = {"row": survey.rows.tolist()}
    clusters = [k + 1 if k < number else "none" for k in found.labels.tolist()]
    blocs = None if found.blocs is None else (found.blocs.argmax(1) + 1, found.blocs.max(1))
    further: dict[str, Any] = {f"group {k}": found.groups[:, k - 1] for k in range(1, number + 1)}
    further |= {NONE: found.none} if found.shares[-1] > 0 else {}
    further |= following
    columns: dict[str, list[Any]] = {}

    def write(path: Path) -> None:
        columns.update(write_assignments(path, first, clusters, found.probability, blocs, further))

    _write_beside(out, write)
    return columns


def _write_table(
    file: str, path: Path, survey: "Survey", table: TableOptions, columns: dict[str, list[Any]]
) -> None:
    from numpyro_rankings.rankings import RankingsError
    from numpyro_rankings.readers.added_columns import ASSIGNED
    from numpyro_rankings.readers.with_columns import replaced_in_words, write_with_columns

    assert survey.rows is not None  # checked before
    rows = survey.rows.tolist()
    replaced: list[str] = []

    def write(place: Path) -> None:
        replaced[:] = write_with_columns(
            file,
            place,
            columns,
            rows,
            by=ASSIGNED,
            encoding=table.encoding,
            layout=survey.layout,
            has_header=table.header != "none",
        )

    with as_user_errors(RankingsError):
        _write_beside(path, write)
    for text in replaced_in_words(path, replaced):
        note(text)


def _write_beside(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside its place and move it there, so that it is whole or not there."""
    place = path.absolute()
    with file_errors(f"cannot write {path}"):
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as folder:
            made = Path(folder, place.name)
            write(made)
            os.replace(made, place)


def _print_summary(
    args: argparse.Namespace, kept: Kept, found: "GroupsOfJudges", files: list[str]
) -> None:
    """Print how many judges each group, or bloc, has, and how many are unclear."""
    import numpy as np

    from numpyro_rankings.predict.groups import are_near

    total, number = len(found.labels), found.groups.shape[1]
    what, labels, probability = "group", found.labels, found.probability
    names = [*map(str, range(1, number + 1)), *(["none"] if found.shares[-1] > 0 else [])]
    every, expected = np.append(found.groups, found.none[:, None], axis=1), found.shares
    if kept.blocs_first and kept.blocs is not None and found.blocs is not None:
        what, labels, probability = "bloc", found.blocs.argmax(1), found.blocs.max(1)
        every, expected = found.blocs, kept.blocs.shares
        names = [str(k + 1) for k in range(len(expected))]
    counts, wants = np.bincount(labels, minlength=number + 1), _wants(args.results, what)
    print(f"\n{plural(total, 'judge')} of {args.file} in the {what}s of {args.results}\n")
    print(f"{what:<5}   judges  share put  share expected")
    for name, judges, known in zip(names, counts.tolist(), expected.tolist(), strict=False):
        line = f"{name:>5} {judges:>8,} {share(judges / total):>10} {share(known):>15}"
        print(f"{line}  {wants.get(name, '')}".rstrip())
    print(f"\nShare put: of the judges of FILE, the share whose most probable {what} it is.")
    print("Share expected: that in the fit, of a judge of whom nothing is known.")
    unclear = int((probability < _CLEAR).sum())
    print(f"Unclear, no {what} has half of the probability: {unclear:,} ({unclear / total:.1%})")
    little = int(are_near(every, expected).sum())
    print(f"Too short to tell, or like any list: {little:,} ({little / total:.1%})")
    of_groups = " of groups" if what == "bloc" else ""
    print(f"The probabilities{of_groups} are averages over {found.num_draws:,} draws.")
    print(f"\nResults: {', '.join(files)}")


def _wants(folder: Path, what: str) -> dict[str, str]:
    """Return what each group or bloc wants, by its number, as far as the results say it."""
    import csv

    name, column = ("blocs.csv", "bloc") if what == "bloc" else ("clusters.csv", "cluster")
    try:
        with (folder / name).open(newline="", encoding="utf-8") as stream:
            rows = [x for x in csv.DictReader(stream) if x.get("chosen", "yes") == "yes"]
        wants = ((x[column], in_one_line(without_mark(x["wants"]))) for x in rows)
        return {number: shorten(text, 60) for number, text in wants}
    except (OSError, KeyError, UnicodeDecodeError, csv.Error):
        return {}
