"""The formats in which files of rankings can be read.

To add a format whose files say what they hold, write a reader like
:func:`~numpyro_rankings.readers.read_preflib`, and add a line to :data:`FORMATS`. Layouts of tables
are in ``layouts/``. The command line then reads such files too; name the format in the help text
in ``cli/fit.py``.
"""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from numpyro_rankings.rankings import Orders, Rankings, RankingsError
from numpyro_rankings.rankings.counts import ties_in_words
from numpyro_rankings.readers.all_questions import read_or_ask
from numpyro_rankings.readers.blt import BLT, looks_like_blt, read_blt
from numpyro_rankings.readers.cast_votes import CAST_VOTES, looks_like_cast_votes, read_cast_votes
from numpyro_rankings.readers.elections import COUNCIL, RULE_OPTIONS, is_of_council, read_council
from numpyro_rankings.readers.grids import (
    EXCEL_SUFFIXES,
    LABELLED_SUFFIXES,
    PARQUET_SUFFIXES,
    TEXT_SUFFIXES,
    looks_like_table,
)
from numpyro_rankings.readers.own_table import is_own_table, read_table
from numpyro_rankings.readers.preflib import refuse_lines_alone
from numpyro_rankings.readers.questions import TableOptions
from numpyro_rankings.readers.surveys import (
    Survey,
    merged_survey_of,
    read_layout,
    survey_of,
    with_top,
)
from numpyro_rankings.readers.tied_orders import PREFLIB, PREFLIB_OPTIONS, read_preflib_survey
from numpyro_rankings.words.options import refuse_unknown


class FileFormat(NamedTuple):
    """A format of files of rankings that say what they hold."""

    name: str  # its name in messages
    extensions: tuple[str, ...]  # those of its files
    read: Callable[..., Rankings | Survey]  # reads a file, with a row for each line
    # those of similar files, which the reader refuses in its own words
    similar: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # names of the options that the reader takes
    # whether a file of one of the other extensions has this format
    holds: Callable[[str], bool] | None = None
    also: tuple[str, ...] = ()  # the other extensions


FORMATS = (
    FileFormat(
        PREFLIB,
        (".soc", ".soi", ".toc", ".toi", ".cat"),
        read_preflib_survey,
        similar=(".wmd",),
        options=PREFLIB_OPTIONS,
    ),
    FileFormat(
        BLT,
        (".blt",),
        read_blt,
        options=(*RULE_OPTIONS, "encoding"),
        holds=looks_like_blt,
        also=(".txt", ".dat"),
    ),
    FileFormat(CAST_VOTES, (".json",), read_cast_votes, options=("contest", *RULE_OPTIONS)),
    FileFormat(
        COUNCIL,
        (),
        read_council,
        options=(*RULE_OPTIONS, "encoding"),
        holds=is_of_council,
        also=(".csv", ".txt"),
    ),
)
_OPTIONS = ("layout", *TableOptions._fields, "top")
_TABLES = (*TEXT_SUFFIXES, *EXCEL_SUFFIXES, *PARQUET_SUFFIXES, *LABELLED_SUFFIXES)
SUFFIXES = (*(suffix for one in FORMATS for suffix in one.extensions), *_TABLES)


def read_survey(source: Any, layout: str | None = None, **options: Any) -> Survey:
    """Read rankings and the judges who gave them.

    Seven layouts of tables are read, whose first row names the columns:

    - ``"ranks"``: a column for each item, with the ranks 1, 2, …, and nothing where an item is not
      ranked;
    - ``"orders"``: a column for each place, the best first, with the names of the items;
    - ``"long"``: a row for each judge and item, in columns named ``judge``, ``item`` and ``rank``
      or ``position``;
    - ``"cell"``: one cell for each judge with all items, best first, such as ``Ann;Bob;Cid;``;
    - ``"pairs"``: a row for each comparison, with the item that was preferred and the other one, or
      with two items and the outcome, or what each scored;
    - ``"votes"``: a row for each ballot, or for a count of them, and a column for each rank, with
      names, words such as ``undervote`` and ``overvote``, or several names;
    - ``"marks"``: a sheet with a column of 0 and 1 for each item and rank, such as ``Ann 1``.

    Names of the columns such as these, or ``1st``, ``2nd``, … for orders, say which it is; other
    tables need ``layout``. Where judges tie items, and of pairs, the rankings are
    :class:`~numpyro_rankings.PartialOrders`, unless ``ties`` or ``overvote`` says otherwise.

    Of an export of a survey tool, ``columns`` picks the columns of the question. Its items are
    named by what is left of the headers after their common beginning and end: ``Q5: Rank [Ann]`` is
    Ann. Ranks may be in words, such as ``1st``, ``2. Choice``, ``third`` and ``4 (worst)``. Further
    rows of names as Qualtrics and SurveyMonkey write them, and rows of totals at the end, are
    recognised. Questions of other kinds, such as ticks and ratings, and rows whose cells have slid
    to a side, are refused.

    Ballots need not be rankings: a rank may be blank or have several names, and a name may be there
    twice. What becomes of them is a rule. How many ballots each rule touched is in
    :class:`Survey.ballots <numpyro_rankings.Survey>`, and ballots that become empty are no
    judges.

    :param source: a text file ``.csv``, ``.tsv`` or ``.txt`` with commas, semicolons or tabs
        between the columns, a spreadsheet ``.xlsx`` (its first sheet), a ``.parquet`` file, a
        ``.sav`` file of SPSS, a ``.dta`` file of Stata, a data frame, a PrefLib file of orders
        (``.soc``, ``.soi``, ``.toc``, ``.toi``) or of categories (``.cat``), a table of
        :func:`~numpyro_rankings.readers.write_table`, or a file of an election: ``.blt``, the
        ``.csv`` of a Scottish council, or cast vote records of NIST SP 1500-103 in ``.json``.
    :param layout: ``"ranks"``, ``"orders"``, ``"long"``, ``"cell"``, ``"pairs"``, ``"votes"`` or
        ``"marks"``.
    :param judge: the column with the names of the judges; two rows cannot have the same.
    :param about: columns with what else is known about the judges, such as a region or an age.
    :param items: names of all items in index order; by default the columns of the ranks, or the
        names that appear, in order of first appearance.
    :param item: of a long table, the column with the items, and **rank** that with the ranks.
    :param count: the column with the number of rankings that a row stands for.
    :param weight: the column with the survey weight of each judge, from 0 on: the rankings are
        :class:`~numpyro_rankings.WeightedRankings`. It goes without ``count`` and ties.
    :param unranked: what it means that an item is not ranked: ``"below"``, it ranks below the
        others; or ``"not-offered"``, the judge did not choose among it.
    :param gaps: what becomes of lists in which a rank or place is left out: ``"refuse"``;
        ``"close"``, the order of the items that are ranked is kept; or ``"fill"``, if only one item
        and one rank are left out, the item has that rank, and other gaps are closed.
    :param columns: names of the columns of the question, or patterns such as ``"Q5_*"``, in which
        ``*`` stands for any text and ``?`` for one character; the columns that no option names are
        left out.
    :param missing: texts and codes that mean that an item is not ranked, such as ``"N/A,99"``;
        ``"none"`` says that no number is a code, so that 99 is a rating.
    :param offered: of ranks and long tables, texts that mean that an item was offered and is not
        ranked, so that it is below those that are, such as ``"DNF"``; ``"empty"`` is an empty cell.
        Or, of every layout but pairs, the column that lists the items offered to each judge.
    :param not_offered: of ranks and long tables, texts that mean that an item was not offered.
    :param ties: what a tie is: ``"exact"``, no opinion between the tied items, the default;
        ``"drop"``, the judges are left out; or ``"order"``, the items are put in a random order,
        the same at every run.
    :param cycles: of pairs, ``"drop"`` leaves out the judges whose preferences contradict one
        another, and lines that compare an item with itself; by default they are refused.
        ``"mistakes"`` reads :class:`~numpyro_rankings.Comparisons`, each of which may be a mistake,
        and needs **judge**.
    :param highest_first: True if the highest number is the first choice. Ranks 1, 2, …, n can be
        read from either end; 1 is the first choice by default. If the headers or the cells say
        "points", "5 = best" or the like, the incomplete lists have the ranks …, n−1, n, or the
        numbers are like points, such as 12, 10, 8, 7, it is asked, and False says that the lowest
        is the first choice.
    :param duplicates: which answers of a judge with several are read: ``"first"``, ``"last"``, or
        none with ``"drop"``; by default they are refused. Rows in which nothing is ranked are no
        answers.
    :param separator: of the layout ``"cell"``, what is between the items; by default what the cells
        show. ``"any"`` splits each cell at its own mark, an arrow, semicolon, ``|`` or comma. Of
        ``"orders"`` and ``"votes"``, what is between several names at a place; by default what is
        between names that other cells have alone.
    :param header: ``"none"`` if the first row of a text file or a spreadsheet is a ballot: the
        columns are then called 1, 2, …, and so are the items of a table of ranks, unless ``items``
        names them. A first row that looks like the rows below is asked about. ``"counts"`` if
        it has, above each column of a table with ``transpose``, the number of judges who gave it.
    :param header_rows: number of rows above the answers, if there is more than one and they are not
        recognised; rows that are blank do not count.
    :param transpose: True if each column is a judge, and each row an item or a place; the column of
        ``judge``, by default the first, has their names. A table that looks so is asked about, and
        False says that each row is a judge.
    :param encoding: of a text file, such as ``"windows-1252"``; by default UTF-8, or UTF-16 if the
        file begins with its mark. Others are never guessed.
    :param max_rows: how many rows a spreadsheet may have, by default 1,048,576: a small file may
        unpack to more than memory holds.
    :param overvote: of ballots, what becomes of a rank with several names: ``"stop"``, the list
        ends before it, the default; or ``"skip"``, the rank is passed over.
    :param skipped: of ballots, how many blank ranks may follow one another before a name; the list
        ends where there are more. By default any number, and what follows moves up.
    :param repeated: of ballots, what becomes of a name for the second time: ``"skip"``, it is
        passed over, the default; or ``"stop"``, the list ends before it.
    :param write_ins: of ballots, ``"item"``, write-ins are items, the default; or ``"skip"``, they
        are taken off the lists.
    :param max_ranks: of ballots, how many ranks are read; by default all.
    :param aliases: further names of items: a dict such as ``{"Poe, Ann (5931)": "Poe, Ann"}``, or a
        table with the columns ``alias`` and ``item``.
    :param top: how many items of each list are read, of any file; by default all.
    :param contest: of cast vote records, the name or id of the contest, if there are several.
    :raises RankingsError: naming the file, the row and the column, with all that is odd, and
        options that settle it, in its attribute ``questions``.

    .. doctest::

       >>> import pandas as pd
       >>> from numpyro_rankings.readers import read_survey
       >>> table = pd.DataFrame({"who": ["x", "y"], "tea": [1, 2], "coffee": [2, 1]})
       >>> survey = read_survey(table, "ranks", judge="who")
       >>> survey.judges, survey.rankings.orderings.tolist()
       (['x', 'y'], [[0, 1], [1, 0]])
       >>> export = pd.DataFrame({"Rank [tea]": ["2nd", "1st"], "Rank [coffee]": ["1st", "2nd"]})
       >>> read_survey(export, "ranks", columns="Rank*").rankings.items
       ('tea', 'coffee')
       >>> cast = pd.DataFrame({"Choice 1": ["Ann", "undervote"], "Choice 2": ["Ann", "Bob"]})
       >>> ballots = read_survey(cast, "votes").ballots
       >>> ballots.cast, ballots.skipped, ballots.repeated
       (2, 1, 1)
    """
    refuse_unknown("read_survey", options, _OPTIONS)
    return read_or_ask(functools.partial(_read, source), {"layout": layout, **options})


def _read(source: Any, layout: str | None = None, **options: Any) -> Survey:
    """Read rankings, or refuse the first thing that is odd."""
    if (top := options.pop("top", None)) is not None:
        return with_top(_read(source, layout, **options), top)
    if hasattr(source, "columns"):
        return read_layout(source, layout, **options)
    name, extension = os.fspath(source), Path(source).suffix.lower()
    if (one := _format_of(name, extension)) is not None:
        taken = {key: options[key] for key in one.options if key in options}
        others = {key: value for key, value in options.items() if key not in taken}
        check_no_options(name, one.name, layout, others)
        read = one.read(source, **taken)
        return merged_survey_of(read, one.name) if isinstance(read, Rankings) else read
    if extension in _TABLES and not Path(name).exists():
        raise RankingsError(f"{name}: no such file")
    if extension in TEXT_SUFFIXES and is_own_table(source, options.get("encoding")):
        encoding = options.pop("encoding", None)
        check_no_options(name, "a table that names its items", layout, options)
        survey = survey_of(read_table(source, encoding), "a table of this project's own format")
        if ties := ties_in_words(survey.rankings):
            survey.notes.append(ties)
        return survey
    if extension in _TABLES:
        if extension in TEXT_SUFFIXES:
            refuse_lines_alone(name, options)
        return read_layout(source, layout, **options)
    if not Path(name).exists():
        raise RankingsError(f"{name}: no such file")
    known = ", ".join(
        f"{one.name} ({' or '.join(one.extensions)})" for one in FORMATS if one.extensions
    )
    raise RankingsError(
        f"{name}: the extension {extension!r} is not known; expected {known}, or a table "
        f"({', '.join(_TABLES)})"
    )


def may_hold_rankings(path: Path) -> bool:
    """Return whether a file, whose extension is known, is not something else, such as a README."""
    name, extension = os.fspath(path), path.suffix.lower()
    if extension == ".json":
        return looks_like_cast_votes(name)
    if extension != ".txt" or looks_like_table(path):
        return True
    return _format_of(name, extension) is not None


def _format_of(name: str, extension: str) -> FileFormat | None:
    """Return the format of a file, by its extension or by what it holds."""
    for one in FORMATS:
        if extension in (*one.extensions, *one.similar):
            return one
        if extension in one.also and one.holds is not None and one.holds(name):
            return one
    return None


def read_rankings(source: Any, layout: str | None = None, **options: Any) -> Rankings | Orders:
    """Read rankings from a file, one row for each distinct ranking.

    They are partial orders if some judges tie items, or if it is a table of pairs; comparisons if
    these may be mistakes.

    :param source: as in :func:`~numpyro_rankings.read_survey`, which also returns the
        judges.
    :param layout: as in :func:`~numpyro_rankings.read_survey`.
    :param options: as in :func:`~numpyro_rankings.read_survey`.
    :raises RankingsError: naming the file and the row.
    """
    refuse_unknown("read_rankings", options, _OPTIONS)
    return read_survey(source, layout, **options).rankings


def check_no_options(name: str, what: str, layout: str | None, options: dict[str, Any]) -> None:
    """Refuse options of tables with a file that says what it holds."""
    given = [key for key, value in options.items() if value not in (None, (), [])]
    defaults = {"unranked": "below", "gaps": "refuse", "cycles": "refuse"}
    given = [key for key in given if options[key] != defaults.get(key)]
    if layout is not None:
        given.insert(0, "layout")
    if given:
        is_kept = given[0] == "about" and what == CAST_VOTES
        why = ", whose precincts and batches are kept without it" if is_kept else ""
        raise RankingsError(f"{name}: {given[0]} does not go with {what}{why}; leave it out")
