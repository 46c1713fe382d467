"""The file of rankings that commands read: its options, and what is said about reading it."""

import argparse
import csv
from typing import TYPE_CHECKING

from numpyro_rankings.cli.arguments import UserError, check_file, note
from numpyro_rankings.cli.options import TableOptions

if TYPE_CHECKING:
    from numpyro_rankings.readers import Survey
    from numpyro_rankings.readers.unsupported import Unsupported

FORMATS_IN_WORDS = """\
FILE is a PrefLib file of strict orders (.soc, .soi), or a table (.csv, .tsv, .xlsx, .parquet, .sav,
.dta) whose first row names the columns, in one of these layouts:

  ranks   a column for each item, with the ranks 1, 2, …, and nothing where an item has none
  orders  a column for each place, 1st, 2nd, …, with the names of the items
  long    a row for each judge and item, in the columns judge, item, and rank or position
  cell    one cell for each judge with all items, best first, such as Ann;Bob;Cid;
  votes   a row for each ballot, and a column for each rank, with names, undervote or overvote
  marks   a sheet with a column of 0 and 1 for each item and rank, such as Ann 1

Files of elections are read too: .blt, the .csv of a Scottish council, and cast vote records in the
format of NIST (.json). What becomes of ballots that are not rankings is said by --overvote,
--skipped, --repeated, --write-ins and --max-ranks; notes tell how many ballots each rule touched.

From an export of a survey tool, --columns picks the columns of the question, such as "Q5_*". Items
are named by what is left of the headers after their common beginning and end. Ranks may be in
words, such as 1st or Second choice. 1 is the first choice unless --highest-first is given.

Text files have commas, semicolons or tabs between the columns, and are in UTF-8 or UTF-16; for
others there is --encoding.
"""

OWN_FORMAT = """\
this project's own format of a table (.csv) names the items; orderings are best first:
  # item A: Ann Able
  # item B: Bob Best
  # item C: Cid Chair
  count,ordering
  14,C>A>B
  6,B
"""


def add_file_options(parser: argparse.ArgumentParser, takes_several: bool = False) -> None:
    """Add FILE and the options that say how a table is to be read.

    :param takes_several: whether there may be several files, and folders of files.
    """
    what = "rankings (default: the bundled APA 1980 ballots)"
    if takes_several:
        what = (
            "rankings; several files, or a folder of files, are fitted one after another (default: "
            "the bundled APA 1980 ballots)"
        )
    parser.add_argument("file", nargs="*" if takes_several else "?", metavar="FILE", help=what)
    table = parser.add_argument_group("table")
    table.add_argument(
        "--layout",
        choices=["ranks", "orders", "long", "cell", "votes", "marks"],
        help="what the columns of FILE are, if their names do not say it",
    )
    table.add_argument("--judge", metavar="COLUMN", help="the column that names the judges")
    table.add_argument(
        "--about",
        type=_names,
        default=(),
        metavar="COLUMNS",
        help="columns with what else is known about the judges, such as region,age; the results "
        "show who is in the groups by each of them",
    )
    table.add_argument(
        "--columns",
        type=_names,
        action="extend",
        metavar="NAMES",
        help="the columns of the question, such as 'Q5_*', where * stands for any text; the others "
        "are left out (default: all that no other option names)",
    )
    table.add_argument(
        "--count",
        metavar="COLUMN",
        help="the column with the count of each row; survey weights are not counts",
    )
    table.add_argument(
        "--items",
        type=_names,
        metavar="NAMES",
        help="names of all items, separated by commas (default: those that FILE has)",
    )
    table.add_argument("--item", metavar="COLUMN", help="long: the column with the items")
    table.add_argument("--rank", metavar="COLUMN", help="long: the column with the ranks")
    table.add_argument(
        "--unranked",
        choices=["below", "not-offered"],
        help="what it means that a judge did not rank an item: it ranks below the others, or was "
        "not offered, which --model plackett-luce allows (default: below)",
    )
    table.add_argument(
        "--gaps",
        choices=["refuse", "close"],
        help="whether to keep the order of the items where a rank or place is left out (default: "
        "refuse)",
    )
    table.add_argument(
        "--encoding",
        metavar="NAME",
        help="encoding of a text file, such as windows-1252 or mac-roman (default: UTF-8, or "
        "UTF-16 if FILE begins with its mark)",
    )
    table.add_argument(
        "--missing",
        type=_names,
        metavar="WORDS",
        help="texts and codes that mean that an item is not ranked, such as N/A,99; empty cells "
        "always do",
    )
    table.add_argument(
        "--highest-first",
        action=argparse.BooleanOptionalAction,
        help="the highest number is the first choice; or 1 is, although the question says 'points' "
        "or the like",
    )
    table.add_argument(
        "--separator",
        metavar="TEXT",
        help="cell: what is between the items, such as ';', comma, newline or space; votes: what "
        "is between several names at a rank (default: what the cells show)",
    )
    table.add_argument(
        "--header-rows",
        type=int,
        metavar="K",
        help="number of rows above the answers, 1 to 3 (default: 1, or those that Qualtrics and "
        "SurveyMonkey write)",
    )
    _add_ballot_options(parser)


def _add_ballot_options(parser: argparse.ArgumentParser) -> None:
    """Add the rules of ballots, and what else files of elections need."""
    ballots = parser.add_argument_group("ballots")
    ballots.add_argument(
        "--overvote",
        choices=["stop", "skip"],
        help="where a rank has several names, the list ends, or the rank is passed over (default: "
        "stop)",
    )
    ballots.add_argument(
        "--skipped",
        type=int,
        metavar="K",
        help="the list ends where more than K ranks in a row are blank before a name (default: it "
        "goes on, and what follows moves up)",
    )
    ballots.add_argument(
        "--repeated",
        choices=["skip", "stop"],
        help="where a name is there for the second time, it is passed over, or the list ends "
        "(default: skip)",
    )
    ballots.add_argument(
        "--write-ins",
        choices=["item", "skip"],
        help="write-ins are items, or are taken off the lists (default: item)",
    )
    ballots.add_argument(
        "--max-ranks", type=int, metavar="K", help="read K ranks of a ballot (default: all)"
    )
    ballots.add_argument(
        "--contest",
        metavar="NAME",
        help="the name or id of the contest, of cast vote records with several",
    )
    parser.add_argument(
        "--aliases",
        metavar="FILE",
        help="further names of items: a table with the columns alias and item",
    )


def _names(text: str) -> tuple[str, ...]:
    """Split a list of names at commas; a name that contains one is put into quotes."""
    try:
        names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error as error:
        raise UserError(f"the list of names {text!r} cannot be read: {error}") from None
    if not names or not all(names) or len(set(names)) < len(names):
        raise UserError(f"the list of names {text!r} has an empty name, or the same name twice")
    return tuple(names)


def read_file(file: str | None, table: TableOptions) -> "Survey":
    """Read the file of a command, or the bundled ballots, and say how it was read.

    :raises UserError: if it cannot be read, naming the row and the column.
    """
    if file is not None:
        check_file(file)
    from numpyro_rankings.datasets import load_dataset
    from numpyro_rankings.rankings import RankingsError
    from numpyro_rankings.readers import read_survey
    from numpyro_rankings.readers.surveys import survey_of

    options = table.given()
    if file is None:
        if options or table.layout:
            option = next(iter(options), "layout").replace("_", "-")
            raise UserError(f"--{option} goes with a FILE")
        return survey_of(load_dataset(), "bundled")
    try:
        survey = read_survey(file, table.layout, **options)
    except RankingsError as error:
        raise UserError(str(error)) from None
    for text in survey.notes:
        note(text)
    return survey


def read_unsupported_file(file: str | None, table: TableOptions) -> "Unsupported | None":
    """Read a PrefLib file that no model can take yet; None for all other files.

    :raises UserError: if it cannot be read, naming the line.
    """
    from numpyro_rankings.rankings import RankingsError
    from numpyro_rankings.readers.formats import check_no_options
    from numpyro_rankings.readers.unsupported import read_unsupported

    if file is None:
        return None
    check_file(file)
    try:
        unsupported = read_unsupported(file)
        if unsupported is not None:
            check_no_options(file, "a PrefLib file", table.layout, table.given())
    except RankingsError as error:
        raise UserError(str(error)) from None
    return unsupported
