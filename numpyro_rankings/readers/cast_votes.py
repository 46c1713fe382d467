"""Read cast vote records in the common data format of NIST, as JSON.

**References**

1. *Cast Vote Records Common Data Format Specification*, NIST Special Publication 1500-103,
   https://doi.org/10.6028/NIST.SP.1500-103
"""

import os
import re
import sys
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_shown
from numpyro_rankings.readers.ballots import BLANK, OVERVOTE
from numpyro_rankings.readers.elections import (
    RULE_OPTIONS,
    Election,
    refuse_same_names,
    survey_of_election,
)
from numpyro_rankings.readers.grids import place_of
from numpyro_rankings.readers.json_lists import iterate_list, read_lists
from numpyro_rankings.readers.surveys import Survey
from numpyro_rankings.readers.text import table_of_json, value_of_json
from numpyro_rankings.readers.votes import (
    BLANK_WORDS,
    OVERVOTE_WORDS,
    Votes,
    letters,
    without_items,
)
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import option, refuse_unknown

CAST_VOTES = "a file of cast vote records"
WRITE_IN = "Write-in"
_MOST_RANKS, _BYTES_OF_HEAD = 1000, 2**20
_IDS = ("UniqueId", "BallotPrePrintedId", "BallotAuditId")  # the first that all ballots have
_ROUND = re.compile(r"(.+)-round-\d+")  # snapshots that RCTab adds when it counts


def looks_like_cast_votes(name: str) -> bool:
    """Return whether a file of JSON may be of cast vote records; others are not in this format."""
    try:
        with open(name, "rb") as stream:
            return b"CVR" in stream.read(_BYTES_OF_HEAD)
    except OSError:
        return True


def read_cast_votes(
    path: str | os.PathLike, contest: str | None = None, **options: object
) -> Survey:
    """Read the ballots of one contest from cast vote records in the format of NIST SP 1500-103.

    The current snapshot of each record is read; where it is of a round of a count, the one before
    the count. Positions that have no indication, or must not be counted, are none. All write-ins
    are one item. The precinct and batch of each ballot, and the parties of candidates, are kept.

    :param path: the file, in JSON.
    :param contest: the name or id of the contest, if the file has several.
    :param options: rules and aliases, as in :func:`~numpyro_rankings.read_survey`.
    :raises RankingsError: naming the record.
    """
    refuse_unknown("read_cast_votes", options, RULE_OPTIONS)
    election = _election(os.fspath(path), contest)
    return survey_of_election(election, CAST_VOTES, **options)  # type: ignore[arg-type]


def _election(name: str, contest: str | None) -> Election:
    """Return the ballots of a contest."""
    report = read_lists(name, ("Election", "GpUnit", "Party"))
    if "Election" not in report:
        raise RankingsError(
            f"{name}: expected a cast vote record report of NIST SP 1500-103, with Election and "
            "CVR; RCTab converts the exports of vendors to it; of other lists, "
            f"{table_of_json(name, value_of_json(name))}"
        )
    chosen = _contest(name, report, contest)
    selections, items, parties = _selections(name, report, chosen)
    units = _by_id(_objects(name, report, "GpUnit", False))
    precincts = {key: str(unit.get("Name", "")) for key, unit in units.items()}
    about: dict[str, list[str]] = {"precinct": [], "batch": []}
    ids: dict[str, list[str]] = {key: [] for key in _IDS}
    numbers, lengths, ranks, codes = array("q"), array("q"), array("q"), array("i")
    number = num_counted = 0
    for number, record in enumerate(iterate_list(name, "CVR"), 1):
        where = f"{name}: record {number}"
        try:
            snapshot, is_counted = _snapshot(where, record)
            votes = _votes_for(where, snapshot, chosen["@id"])
            marks = None if votes is None else _marks(where, votes, selections)
        except AttributeError:
            raise RankingsError(f"{where}: expected lists of objects") from None
        if marks is None:
            continue
        num_counted += is_counted
        numbers.append(number)
        lengths.append(len(marks))
        ranks.extend(marks)
        codes.extend(marks.values())
        about["precinct"].append(precincts.get(_id(record, "BallotStyleUnitId"), ""))
        about["batch"].append(sys.intern(str(record.get("BatchSequenceId", ""))))
        for key in _IDS:
            if key in ids and key in record:
                ids[key].append(str(record[key]))
            else:
                ids.pop(key, None)
    if not numbers:
        raise RankingsError(f"{name}: no record has the contest {chosen.get('Name')!r}")
    notes = [f"the contest is {chosen.get('Name')!r}"]
    if others := number - len(numbers):
        verb = "does" if others == 1 else "do"
        notes.append(f"{plural(others, 'record')} {verb} not have this contest")
    if num_counted:
        notes.append(
            f"the rounds of a count are in {plural(num_counted, 'record')}, which "
            f"{'is' if num_counted == 1 else 'are'} read as before the count"
        )
    table = np.full((len(numbers), max(ranks, default=1)), BLANK, np.int32)
    rows = np.repeat(np.arange(len(numbers)), lengths)
    table[rows, np.array(ranks) - 1] = np.array(codes)
    if not (table == items.index(WRITE_IN)).any():
        items, table = without_items([WRITE_IN], items, table)
    return Election(
        name,
        Votes(items, table, np.array([x == WRITE_IN for x in items], bool), []),
        None,
        np.array(numbers),
        place_of(name, ": record {}"),
        next((x for x in ids.values() if all(x)), None),
        {key: texts for key, texts in about.items() if any(texts)},
        parties,
        notes,
    )


def _list(where: str, parent: Mapping[str, Any], key: str, is_needed: bool = True) -> list[Any]:
    """Return a list; to ask what is in it for a value is an error if it is no object."""
    value = parent.get(key, [] if not is_needed else None)
    if not isinstance(value, list):
        raise RankingsError(f"{where}: expected a list of objects as {key}")
    return value


def _objects(name: str, parent: Mapping[str, Any], key: str, is_needed: bool = True) -> list[Any]:
    """Return a list of objects."""
    value = _list(name, parent, key, is_needed)
    if not all(isinstance(x, dict) for x in value):
        raise RankingsError(f"{name}: expected a list of objects as {key}")
    return value


def _id(x: Mapping[str, Any], key: str = "@id") -> str:
    """Return an id, which is a text; "" if there is none."""
    value = x.get(key)
    return value if isinstance(value, str) else ""


def _by_id(objects: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {key: x for x in objects if (key := _id(x))}


def _contest(name: str, report: Mapping[str, Any], wanted: str | None) -> dict[str, Any]:
    """Return the contest that is wanted, or the only one."""
    elections = _objects(name, report, "Election")
    contests = [x for one in elections for x in _objects(name, one, "Contest")]
    shown = names_shown([repr(str(x.get("Name", x.get("@id")))) for x in contests], 12)
    if wanted is None and len(contests) != 1:
        raise RankingsError(
            f"{name}: which of the {len(contests)} contests? Name it with {option('contest')}; "
            f"there are {shown}"
        )
    named = [x for x in contests if wanted is None or wanted in (x.get("@id"), x.get("Name"))]
    if not named:
        raise RankingsError(f"{name}: there is no contest {wanted!r}; there are {shown}")
    if len(named) > 1:
        several = ", ".join(repr(x.get("@id")) for x in named)
        raise RankingsError(
            f"{name}: {len(named)} contests are called {wanted!r}; name one by its id: {several}"
        )
    if not isinstance(named[0].get("@id"), str):
        raise RankingsError(f"{name}: the contest {named[0].get('Name')!r} has no @id")
    return named[0]


def _selections(
    name: str, report: Mapping[str, Any], contest: Mapping[str, Any]
) -> tuple[dict[str, int], tuple[str, ...], dict[str, str]]:
    """Return the mark that each selection means, the items, and their parties."""
    party_of = _by_id(_objects(name, report, "Party", False))
    elections = _objects(name, report, "Election")
    candidates = _by_id(x for one in elections for x in _objects(name, one, "Candidate", False))
    marks: dict[str, int] = {}
    items: list[str] = []
    parties: dict[str, str] = {}
    for selection in _objects(name, contest, "ContestSelection"):
        key = selection.get("@id")
        if selection.get("IsWriteIn") in (True, "true"):
            continue
        of = selection.get("CandidateIds")
        first = of[0] if isinstance(of, list) and of else None
        candidate = candidates.get(first) if isinstance(first, str) else None
        if not isinstance(key, str) or candidate is None:
            raise RankingsError(
                f"{name}: the selection {key!r} of the contest {contest.get('Name')!r} has no "
                "candidate"
            )
        item = str(candidate.get("Name", "")).strip()
        if letters(item) in OVERVOTE_WORDS:
            marks[key] = OVERVOTE
        elif letters(item) in BLANK_WORDS:
            marks[key] = BLANK
        else:
            marks[key] = len(items)
            items.append(item)
            if (party := party_of.get(_id(candidate, "PartyId"))) is not None:
                parties[item] = str(party.get("Name", ""))
    where = f"{name}: the contest {contest.get('Name')!r}"
    refuse_same_names((where, item) for item in items)
    if WRITE_IN not in items:
        items.append(WRITE_IN)
    written = items.index(WRITE_IN)
    for selection in _objects(name, contest, "ContestSelection"):
        if selection.get("IsWriteIn") in (True, "true"):
            marks[str(selection.get("@id"))] = written
    marks[WRITE_IN] = written
    return marks, tuple(items), parties


def _snapshot(where: str, record: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the current snapshot, and whether the rounds of a count came after it."""
    snapshots = _list(where, record, "CVRSnapshot")
    current = record.get("CurrentSnapshotId")
    if len(snapshots) > 1 and isinstance(current, str) and (of_round := _ROUND.fullmatch(current)):
        if before := [x for x in snapshots if x.get("@id") == of_round[1]]:
            return before[0], True
    called_so = [x for x in snapshots if x.get("@id") == current]
    if len(called_so) != 1:
        raise RankingsError(
            f"{where}: the current snapshot {current!r} is there {len(called_so)} times; expected "
            "once"
        )
    return called_so[0], False


def _votes_for(where: str, snapshot: Mapping[str, Any], contest: str) -> list[Any] | None:
    """Return the selections of a contest; None if the snapshot does not have it."""
    for one in _list(where, snapshot, "CVRContest", False):
        if one.get("ContestId") == contest:
            return _list(where, one, "CVRContestSelection", False)
    return None


def _marks(
    where: str, votes: Iterable[Mapping[str, Any]], selections: Mapping[str, int]
) -> dict[int, int]:
    """Return the mark at each rank that is not blank."""
    marks: dict[int, int] = {}
    for vote in votes:
        key = vote.get("ContestSelectionId")
        if not isinstance(key, str) or key not in selections:
            raise RankingsError(f"{where}: the contest has no selection {key!r}")
        # the rank of a selection, or of its positions
        positions = [vote] if "Rank" in vote else vote.get("SelectionPosition")
        if not isinstance(positions, list):
            raise RankingsError(f"{where}: expected a list of objects as SelectionPosition")
        for position in positions:
            if "no" in (position.get("HasIndication"), position.get("IsAllocable")):
                continue
            mark = selections[WRITE_IN if position.get("CVRWriteIn") else key]
            rank = position.get("Rank")
            if type(rank) is not int or not 1 <= rank <= _MOST_RANKS:
                rank = _rank(where, rank)
            if mark != BLANK:
                marks[rank] = mark if marks.get(rank, mark) == mark else OVERVOTE
    return marks


def _rank(where: str, rank: object) -> int:
    """Return a rank that is a text, or refuse it."""
    if isinstance(rank, str) and re.fullmatch("[0-9]{1,4}", rank) and 1 <= int(rank) <= _MOST_RANKS:
        return int(rank)
    raise RankingsError(
        f"{where}: expected a rank, a whole number from 1, got {rank!r}; is this a contest of "
        "ranked choice?"
    )
