"""Files of elections: what they have in common, and those of the Scottish councils.

A reader of a file of an election returns an :class:`Election`, of which :func:`survey_of_election`
makes a survey. The other readers are in ``blt.py`` and ``cast_votes.py``.
"""

import csv
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.ballots import BLANK, given_rules
from numpyro_rankings.readers.grids import Grid, column_of_texts, place_of
from numpyro_rankings.readers.questions import Aliases, QuestionSpec, read_aliases
from numpyro_rankings.readers.surveys import Survey, survey_of_lists
from numpyro_rankings.readers.text import read_lines
from numpyro_rankings.readers.votes import Votes, lists_of_ballots
from numpyro_rankings.words.options import refuse_unknown

COUNCIL = "a file of a Scottish council"
RULE_OPTIONS = ("overvote", "skipped", "repeated", "write_ins", "max_ranks", "aliases")
_COUNCIL_HEADER = re.compile(r"\s*\d+\s*,\s*\d+\s*,?\s*")
_COUNCIL_BALLOT = re.compile(r"\s*\d+(?:\s*,\s*\d*)*\s*")
_COUNCIL_CANDIDATE = re.compile(r'\s*"?Candidate \d+"?\s*,', re.IGNORECASE)


class Election(NamedTuple):
    """The ballots of a file."""

    name: str  # the name of the file, for messages
    votes: Votes  # the marks on the ballots of each row
    # (rows,) how many ballots each row stands for; None if it is one each
    weights: np.ndarray | None
    numbers: np.ndarray  # (rows,) the number of each row in the file
    place: str  # the name of a row in messages, such as "FILE:{}"
    ids: list[str] | None = None  # a name of each row
    about: Mapping[str, list[str]] = MappingProxyType(
        {}
    )  # all else that is known about each row, such as a precinct
    parties: Mapping[str, str] = MappingProxyType({})  # the parties of items that have one, by name
    notes: Sequence[str] = ()  # sentences for a reader of the file


def survey_of_election(
    election: Election, layout: str, aliases: Aliases = None, **rules: object
) -> Survey:
    """Apply the rules to the ballots of an election, and return its survey."""
    joined = read_aliases(aliases)
    special = dict(election.about)
    notes = list(election.notes)
    judge = count = None
    if election.weights is not None:
        count = "count"
        special[count] = [str(x) for x in election.weights.tolist()]
    if election.ids is not None:
        if len(set(election.ids)) == len(election.ids):
            judge = "id"
            special[judge] = election.ids
        else:
            notes.append("the ids of the ballots are left out, because some are there twice")
    grid = Grid(
        election.name,
        [column_of_texts(name, texts) for name, texts in special.items()],
        election.numbers,
        election.place,
        election.name,
    )
    spec = QuestionSpec(
        judge=judge,
        counts=count,
        about=tuple(election.about),
        rules=given_rules(**rules),
        aliases=joined,
    )
    lists = lists_of_ballots(grid, spec, election.votes)
    survey = survey_of_lists(grid, spec, lists, layout, notes)
    if not election.parties:
        return survey
    parties = {joined.get(name, name): party for name, party in election.parties.items()}
    parties |= election.parties  # that of an item itself, not that of its alias
    of_items = [parties.get(name, "") for name in survey.rankings.items]
    return survey._replace(items_about={"party": of_items})


def padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Return rows of marks as an array, padded with BLANK."""
    width = max(1, max(map(len, rows), default=1))
    marks = np.full((len(rows), width), BLANK, np.int32)
    lengths = np.array([len(row) for row in rows], int)
    is_there = np.arange(width) < lengths[:, None]
    marks[is_there] = np.array([x for row in rows for x in row], np.int32)
    return marks


def refuse_same_names(named: Iterable[tuple[str, str]]) -> None:
    """Refuse two candidates of the same name, or one without a name, each after its place."""
    seen = set()
    for place, name in named:
        if not name:
            raise RankingsError(f"{place}: a candidate has no name")
        if name in seen:
            raise RankingsError(
                f"{place}: two candidates have the name {name[:40]!r}; give one of them another"
            )
        seen.add(name)


# ---------------------------------------------------------------------------------------------
# Scottish councils
# ---------------------------------------------------------------------------------------------


def is_of_council(name: str) -> bool:
    """Return whether a text file is of a Scottish council election, right or wrong."""
    try:
        with open(name, "rb") as stream:
            content = stream.read()
    except OSError:
        return False
    lines = content.decode("utf-8-sig", errors="replace").split("\n")
    first = next((line for line in lines if line.strip()), "")
    is_header = _COUNCIL_HEADER.fullmatch(first) is not None
    return is_header and any(map(_COUNCIL_CANDIDATE.match, lines))


def read_council(path: str | os.PathLike, encoding: str | None = None, **options: object) -> Survey:
    """Read a file ``.csv`` of a Scottish council election.

    Its first row has the numbers of candidates and seats. Then come rows of a count and the numbers
    of the candidates, best first, rows such as ``"Candidate 1","Ann Able","Party",``, and the ward.

    :param path: the file.
    :param encoding: of the text; by default UTF-8, or what the first bytes say.
    :param options: rules and aliases, as in :func:`~numpyro_rankings.read_survey`.
    :raises RankingsError: naming the row.
    """
    refuse_unknown("read_council", options, RULE_OPTIONS)
    name = os.fspath(path)
    lines = [
        (k, line) for k, line in enumerate(read_lines(path, encoding, hint=True), 1) if line.strip()
    ]
    number, header = lines[0]
    num_items = int(header.split(",")[0])
    if num_items < 2:
        raise RankingsError(f"{name}:{number}: a ranking needs at least 2 candidates")
    first = next(k for k, (_, line) in enumerate(lines) if _COUNCIL_CANDIDATE.match(line))
    ballots = [_council_ballot(f"{name}:{k}", line, num_items) for k, line in lines[1:first]]
    if not ballots:
        raise RankingsError(f"{name}:{lines[first][0]}: there are no ballots above the candidates")
    items, parties = _candidates(name, lines[first:], num_items)
    marks = padded([marks for _, marks in ballots])
    election = Election(
        name,
        Votes(items, marks, np.zeros(num_items, bool), []),
        np.array([weight for weight, _ in ballots]),
        np.array([number for number, _ in lines[1:first]]),
        place_of(name, ":{}"),
        parties=parties,
    )
    return survey_of_election(election, COUNCIL, **options)  # type: ignore[arg-type]


def _council_ballot(where: str, line: str, num_items: int) -> tuple[int, list[int]]:
    """Return the count of a line, and the marks of its ballots."""
    if not _COUNCIL_BALLOT.fullmatch(line):
        raise RankingsError(
            f"{where}: expected a count and the numbers of candidates, separated by commas, "
            f"got {line[:40]!r}"
        )
    cells = [cell.strip() for cell in line.split(",")]
    while cells and not cells[-1]:
        cells.pop()
    if int(cells[0] or 0) < 1:
        raise RankingsError(
            f"{where}: the count of the ballots is {cells[0]}; expected a positive whole number"
        )
    marks = [int(cell) - 1 if cell else BLANK for cell in cells[1:]]
    if wrong := [k for k in marks if k != BLANK and not 0 <= k < num_items]:
        raise RankingsError(
            f"{where}: candidate {wrong[0] + 1} is outside 1..{num_items}, the number of "
            "candidates in the first row"
        )
    return int(cells[0]), marks


def _candidates(
    name: str, lines: Sequence[tuple[int, str]], num_items: int
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the names of the candidates, and their parties."""
    named: list[tuple[int, str, str]] = []
    for number, line in lines:
        if not _COUNCIL_CANDIDATE.match(line):
            continue
        cells = [cell.strip() for cell in next(csv.reader([line]))]
        if not cells[0].split()[-1] == str(len(named) + 1):
            raise RankingsError(
                f"{name}:{number}: expected candidate {len(named) + 1}, got {line[:40]!r}"
            )
        named.append((number, cells[1] if len(cells) > 1 else "", "".join(cells[2:3])))
    if len(named) != num_items:
        raise RankingsError(
            f"{name}:{lines[-1][0]}: the first row says {num_items} candidates, but {len(named)} "
            "are named"
        )
    refuse_same_names((f"{name}:{number}", item) for number, item, _ in named)
    items = tuple(item for _, item, _ in named)
    return items, {item: party for _, item, party in named if party}
