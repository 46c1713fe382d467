"""The file of rankings that commands read: its options, and what is said about reading it."""

import argparse
import shlex
from typing import TYPE_CHECKING

from numpyro_rankings.cli.arguments import (
    QuestionsError,
    UserError,
    add_options,
    as_user_errors,
    check_file,
    note,
)
from numpyro_rankings.cli.compilation import check_devices
from numpyro_rankings.cli.options import TableOptions
from numpyro_rankings.words.commands import words_of_options

if TYPE_CHECKING:
    from numpyro_rankings.rankings import RankingsError
    from numpyro_rankings.readers import Survey
    from numpyro_rankings.readers.unsupported import Categories, MatchingGraph

FORMATS_IN_WORDS = """\
FILE is a PrefLib file of orders (.soc, .soi; with ties .toc, .toi, .cat), or a table (.csv, .tsv,
.xlsx, .parquet, .sav, .dta) whose first row names the columns, unless --header none is given, in
one of these layouts:

  ranks   a column for each item, with the ranks 1, 2, …, and nothing where an item has none
  orders  a column for each place, 1st, 2nd, …, with the names of the items
  long    a row for each judge and item, in the columns judge, item, and rank or position
  cell    one cell for each judge with all items, best first, such as Ann;Bob;Cid;
  pairs   a row for each comparison: the winner and the loser, or two items and who won, or
          what each scored
  votes   a row for each ballot, and a column for each rank, with names, undervote or overvote
  marks   a sheet with a column of 0 and 1 for each item and rank, such as Ann 1

Items may be tied: ranks 1, 2, 2, 4 (or 1, 2, 2, 3; 1, 3, 3, 4; 1, 2.5, 2.5, 4), several names at
a place, and Ann>Bob=Cid in a cell. A tie means no opinion between the items, unless --ties says
otherwise. An item that a judge does not rank is below the others or was not offered, as --unranked
says, or as texts in cells do that --offered and --not-offered name, such as DNF and DNS.

Files of elections are read too: .blt, the .csv of a Scottish council, and cast vote records in the
format of NIST (.json). What becomes of ballots that are not rankings is said by --overvote,
--skipped, --repeated, --write-ins and --max-ranks; notes tell how many ballots each rule touched.

From an export of a survey tool, --columns picks the columns of the question, such as "Q5_*". Items
are named by what is left of the headers after their common beginning and end. Ranks may be in
words, such as 1st or Second choice. 1 is the first choice unless --highest-first is given.

What is odd in FILE is asked at once, each with the options that settle it, and the last line is a
command that answers each question with the first option that works.

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
    """Add FILE, or several files and folders of files, and how a table is to be read."""
    what = "rankings (default: the bundled APA 1980 ballots)"
    if takes_several:
        what = (
            "rankings; several files, or a folder of files, are fitted one after another (default: "
            "the bundled APA 1980 ballots)"
        )
    parser.add_argument("file", nargs="*" if takes_several else "?", metavar="FILE", help=what)
    add_options(parser, TableOptions)


def take_sample(survey: "Survey", number: int | None) -> "Survey":
    """Keep so many judges of the file of a command, or all; say so."""
    from numpyro_rankings.readers.surveys import with_sample

    if number is None:
        return survey
    sample = with_sample(survey, number)
    for text in sample.notes[len(survey.notes) :]:
        note(text)
    return sample


def read_file(file: str | None, table: TableOptions) -> "Survey":
    """Read the file of a command, or the bundled ballots, and say how it was read."""
    if file is not None:
        check_file(file)
    from numpyro_rankings.datasets import load_dataset
    from numpyro_rankings.rankings import RankingsError
    from numpyro_rankings.rankings.counts import apart_in_words
    from numpyro_rankings.readers import read_survey
    from numpyro_rankings.readers.surveys import survey_of

    options = table.given()
    if file is None:
        if options or table.layout:
            option = next(iter(options), "layout").replace("_", "-")
            raise UserError(f"--{option} goes with a FILE")
        check_devices()
        return survey_of(load_dataset(), "bundled")
    check_devices()  # where rankings are kept
    try:
        survey = read_survey(file, table.layout, **options)
    except RankingsError as error:
        raise _asked(file, error) from None
    if apart := apart_in_words(survey.rankings):
        survey.notes.append(apart)
    for text in survey.notes:
        note(text)
    return survey


def _asked(file: str, error: "RankingsError") -> UserError:
    """Return the error of a file that is refused, with all that is odd and what settles it."""
    found = error.questions
    if found is None or not found.options:
        return UserError(str(error))
    message = str(error)
    if len(found.texts) > 1:
        lines = [f"{file}: {len(found.texts)} questions before it can be read"]
        for k, (text, answer) in enumerate(zip(found.texts, found.answers, strict=True), 1):
            lines.append(f"{k}. {text}")
            if answer:
                lines.append(f"   in the command: {shlex.join(words_of_options(answer))}")
        message = "\n".join(lines)
    about = (
        "This command reads the file, with the first option that works for each question; change "
        "what is not meant:"
    )
    if not found.is_read:
        about = (
            "The last question needs a decision of yours; what may follow it is not known yet. Add "
            f"its option, and for the others {shlex.join(words_of_options(found.options))}"
        )
    return QuestionsError(message, found.options, about, found.is_read)


def read_unsupported_file(
    file: str | None, table: TableOptions
) -> "Categories | MatchingGraph | None":
    """Read a PrefLib file of categories, or one that no model can take; None for others."""
    from numpyro_rankings.rankings import RankingsError
    from numpyro_rankings.readers.formats import check_no_options
    from numpyro_rankings.readers.tied_orders import PREFLIB_OPTIONS
    from numpyro_rankings.readers.unsupported import TiedOrders, read_unsupported

    if file is None:
        return None
    check_file(file)
    with as_user_errors(RankingsError):
        unsupported = read_unsupported(file)
        if isinstance(unsupported, TiedOrders) or {*PREFLIB_OPTIONS} & table.given().keys():
            return None  # it is read as rankings are
        if unsupported is not None:
            check_no_options(file, "a PrefLib file", table.layout, table.given())
    return unsupported
