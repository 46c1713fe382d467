"""The command ``numpyro-rankings describe``: what a file of rankings holds."""

import argparse
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpyro_rankings._version import __version__
from numpyro_rankings.cli.arguments import (
    PROGRAM,
    QuestionsError,
    UserError,
    file_errors,
    note,
    take_options,
)
from numpyro_rankings.cli.compilation import check_backends
from numpyro_rankings.cli.options import TableOptions
from numpyro_rankings.cli.rankings_file import (
    FORMATS_IN_WORDS,
    add_file_options,
    read_file,
    read_unsupported_file,
)
from numpyro_rankings.words import in_one_line

if TYPE_CHECKING:
    from numpyro_rankings.readers import Survey

_ABOUT = f"""\
Say what a file of rankings holds: how many judges and items, how long the lists are, how often each
item is ranked and first, how often one item is above another, what is odd, and which model can be
fitted. Nothing is fitted.

{FORMATS_IN_WORDS}
Items in categories (.cat) are counted by category, and PrefLib's matching graphs (.wmd), which no
model takes, are described too."""


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the program."""
    parser = commands.add_parser(
        "describe",
        help="say what a file of rankings holds",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_file_options(parser)
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="PAGE.html",
        help="also write a page with pictures, which needs no other files",
    )
    parser.set_defaults(do=_describe)


def _describe(args: argparse.Namespace, command: str) -> int:
    if args.plot is not None:
        _check_page(args.plot)
    table = take_options(TableOptions, args)
    if (unsupported := read_unsupported_file(args.file, table)) is not None:
        if args.plot is not None:
            raise UserError(f"{args.file}: --plot has no page about what no model can take yet")
        from numpyro_rankings.cli.describe_unsupported import describe_unsupported

        print(*map(in_one_line, describe_unsupported(unsupported)), sep="\n")
        return 0
    if args.plot is not None:
        check_backends()
    survey = _read_without_cycles(args.file, table)
    from numpyro_rankings.cli.describe_rankings import description

    lines = list(map(in_one_line, description(survey)))
    print(*lines, sep="\n")
    if args.plot is not None:
        _write_page(args.plot, args.file, survey, lines, command)
    return 0


def _read_without_cycles(file: str | None, table: TableOptions) -> "Survey":
    """Read the file; where judges contradict themselves, leave them out, which notes say."""
    try:
        return read_file(file, table)
    except QuestionsError as error:
        if error.answers != {"cycles": "drop"}:
            raise
    survey = read_file(file, replace(table, cycles="drop"))
    text = "fit, compare and assign refuse what is left out here. Add --cycles drop to leave it out"
    if table.judge is not None and any("contradict" in x for x in survey.notes):
        text += ", or --cycles mistakes to learn how probable a mistake is"
    note(text)
    survey.notes.append(text)
    return survey


def _check_page(path: Path) -> None:
    """Refuse a page that would replace something else, such as the file of rankings."""
    from numpyro_rankings.cli.results import check_replaceable

    if path.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"--plot is the name of a page, such as {path.stem or 'survey'}.html")
    check_replaceable(path.parent, [path.name], "--plot")


def _write_page(
    path: Path, file: str | None, survey: "Survey", lines: list[str], command: str
) -> None:
    from numpyro_rankings.cli.describe_rankings import often_first, what_is_odd
    from numpyro_rankings.rankings.counts import shares_above
    from numpyro_rankings.report.description import Pairs, write_description

    some = often_first(survey.rankings)
    pairs = Pairs(some, shares_above(survey.rankings, some))
    details = {"command": command, "version": f"{PROGRAM} {__version__}"}
    title = "APA 1980" if file is None else Path(file).name
    odd, place = list(what_is_odd(survey)), path.absolute()
    with file_errors(f"cannot write {path}"):
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as folder:
            page = Path(folder, place.name)
            write_description(page, survey.rankings, pairs, odd, lines, details, title)
            os.replace(page, place)
    print(f"\nPage: {path} (open it in a browser)")
