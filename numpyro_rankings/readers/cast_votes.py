"""Read cast vote records in the common data format of NIST, as JSON.

**References**

1. *Cast Vote Records Common Data Format Specification*, NIST Special Publication 1500-103,
   https://doi.org/10.6028/NIST.SP.1500-103
"""

import contextlib
import gc
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.readers.ballots import BLANK, OVERVOTE
from numpyro_rankings.readers.elections import (
    Election,
    padded,
    refuse_same_names,
    survey_of_election,
)
from numpyro_rankings.readers.surveys import Survey
from numpyro_rankings.readers.text import read_text
from numpyro_rankings.readers.votes import BLANK_WORDS, OVERVOTE_WORDS, Votes, letters
from numpyro_rankings.words import plural

CAST_VOTES = "a file of cast vote records"
WRITE_IN = "Write-in"
_MOST_RANKS, _BYTES_OF_HEAD = 1000, 2**20
_IDS = ("UniqueId", "BallotPrePrintedId", "BallotAuditId")  # the first that all ballots have


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

    The current snapshot of each record is read. Positions that have no indication, or must not be
    counted, are none. All write-ins are one item. The precinct and batch of each ballot, and the
    parties of candidates, are kept.

    :param path: the file, in JSON.
    :param contest: the name or id of the contest, if the file has several.
    :param options: rules and aliases, as in :func:`~numpyro_rankings.read_survey`.
    :raises RankingsError: naming the record.
    """
    name = os.fspath(path)
    with _without_collections():
        election = _election(name, contest)
    return survey_of_election(election, CAST_VOTES, **options)  # type: ignore[arg-type]


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Look for no unused objects meanwhile, which takes most of the time with so many in use."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _election(name: str, contest: str | None) -> Election:
    """Return the ballots of a contest."""
    report = _load(name)
    found = _contest(name, report, contest)
    selections, items, parties, is_written = _selections(name, report, found)
    units = _by_id(_list(name, report, "GpUnit", False))
    rows, numbers = [], []
    about: dict[str, list[str]] = {"precinct": [], "batch": []}
    ids: dict[str, list[str]] = {key: [] for key in _IDS}
    records = _list(name, report, "CVR")
    for number, record in enumerate(records, 1):
        where = f"{name}: record {number}"
        votes = _votes_for(where, record, found["@id"])
        if votes is None:
            continue
        rows.append(_ranks(where, votes, selections))
        numbers.append(number)
        unit = units.get(_id(record, "BallotStyleUnitId"), {})
        about["precinct"].append(str(unit.get("Name", "")))
        about["batch"].append(str(record.get("BatchSequenceId", "")))
        for key in _IDS:
            ids[key].append(str(record.get(key, "")))
    if not rows:
        raise RankingsError(f"{name}: no record has the contest {found.get('Name')!r}")
    notes = [f"the contest is {found.get('Name')!r}"]
    if len(rows) < len(records):
        number = len(records) - len(rows)
        verb = "does" if number == 1 else "do"
        notes.append(f"{plural(number, 'record')} {verb} not have this contest")
    if WRITE_IN not in (items[k] for row in rows for k in row if k >= 0):
        items, is_written = _without(items, is_written, WRITE_IN, rows)
    return Election(
        name,
        Votes(items, padded(rows), is_written, []),
        np.ones(len(rows), int),
        np.array(numbers),
        name.replace("{", "{{").replace("}", "}}") + ": record {}",
        next((x for x in ids.values() if all(x)), None),
        {key: texts for key, texts in about.items() if any(texts)},
        parties,
        notes,
    )


def _load(name: str) -> dict[str, Any]:
    text = read_text(name)
    try:
        report = json.loads(text.content.decode(text.encoding))
    except json.JSONDecodeError as error:
        raise RankingsError(f"{name}:{error.lineno}: this is not JSON: {error.msg}") from None
    except RecursionError:
        raise RankingsError(f"{name}: this is not JSON of cast vote records") from None
    if not isinstance(report, dict) or "CVR" not in report or "Election" not in report:
        raise RankingsError(
            f"{name}: expected a cast vote record report of NIST SP 1500-103, with Election and "
            "CVR; RCTab converts the exports of vendors to it"
        )
    return report


def _list(name: str, parent: Mapping[str, Any], key: str, is_needed: bool = True) -> list[Any]:
    value = parent.get(key, [] if not is_needed else None)
    if not isinstance(value, list) or not all(isinstance(x, dict) for x in value):
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
    contests = [
        x for election in _list(name, report, "Election") for x in _list(name, election, "Contest")
    ]
    shown = ", ".join(repr(str(x.get("Name", x.get("@id")))) for x in contests[:12])
    shown += ", …" if len(contests) > 12 else ""
    if wanted is None:
        if len(contests) != 1:
            raise RankingsError(
                f"{name}: which of the {len(contests)} contests? Name it with --contest; there are "
                f"{shown}"
            )
        found = contests
    else:
        found = [x for x in contests if wanted in (x.get("@id"), x.get("Name"))]
        if not found:
            raise RankingsError(f"{name}: there is no contest {wanted!r}; there are {shown}")
        if len(found) > 1:
            several = ", ".join(repr(x.get("@id")) for x in found)
            raise RankingsError(
                f"{name}: {len(found)} contests are called {wanted!r}; name one by its id: "
                f"{several}"
            )
    if not isinstance(found[0].get("@id"), str):
        raise RankingsError(f"{name}: the contest {found[0].get('Name')!r} has no @id")
    return found[0]


def _selections(
    name: str, report: Mapping[str, Any], contest: Mapping[str, Any]
) -> tuple[dict[str, int], tuple[str, ...], dict[str, str], np.ndarray]:
    """Return the mark that each selection means, the items, and their parties."""
    party_of = _by_id(_list(name, report, "Party", False))
    candidates = _by_id(
        [
            x
            for election in _list(name, report, "Election")
            for x in _list(name, election, "Candidate", False)
        ]
    )
    marks: dict[str, int] = {}
    items: list[str] = []
    parties: dict[str, str] = {}
    for selection in _list(name, contest, "ContestSelection"):
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
    refuse_same_names([f"{name}: the contest {contest.get('Name')!r}"] * len(items), items)
    if WRITE_IN not in items:
        items.append(WRITE_IN)
    written = items.index(WRITE_IN)
    for selection in _list(name, contest, "ContestSelection"):
        if selection.get("IsWriteIn") in (True, "true"):
            marks[str(selection.get("@id"))] = written
    marks[WRITE_IN] = written
    return marks, tuple(items), parties, np.array([x == WRITE_IN for x in items], bool)


def _without(
    items: tuple[str, ...], is_written: np.ndarray, item: str, rows: list[list[int]]
) -> tuple[tuple[str, ...], np.ndarray]:
    """Drop an item that no ballot has."""
    k = items.index(item)
    for row in rows:
        row[:] = [x - 1 if x > k else x for x in row]
    return items[:k] + items[k + 1 :], np.delete(is_written, k)


def _votes_for(where: str, record: Mapping[str, Any], contest: str) -> list[Any] | None:
    """Return the selections of a contest in the current snapshot; None if it has none."""
    current = record.get("CurrentSnapshotId")
    snapshots = _list(where, record, "CVRSnapshot")
    found = [x for x in snapshots if x.get("@id") == current]
    if len(found) != 1:
        raise RankingsError(
            f"{where}: the current snapshot {current!r} is there {len(found)} times; expected once"
        )
    for one in _list(where, found[0], "CVRContest", False):
        if one.get("ContestId") == contest:
            return _list(where, one, "CVRContestSelection", False)
    return None


def _ranks(
    where: str, votes: Iterable[Mapping[str, Any]], selections: Mapping[str, int]
) -> list[int]:
    """Return the mark at each rank."""
    at: dict[int, set[int]] = {}
    for vote in votes:
        key = str(vote.get("ContestSelectionId"))
        if key not in selections:
            raise RankingsError(f"{where}: the contest has no selection {key!r}")
        if "Rank" in vote:
            at.setdefault(_rank(where, vote), set()).add(selections[key])
            continue
        for position in _list(where, vote, "SelectionPosition"):
            if "no" in (position.get("HasIndication"), position.get("IsAllocable")):
                continue
            is_written = bool(position.get("CVRWriteIn"))
            mark = selections[WRITE_IN] if is_written else selections[key]
            at.setdefault(_rank(where, position), set()).add(mark)
    row = []
    for rank in range(1, max(at, default=0) + 1):
        found = at.get(rank, set()) - {BLANK}
        row.append(BLANK if not found else OVERVOTE if len(found) > 1 else found.pop())
    return row


def _rank(where: str, vote: Mapping[str, Any]) -> int:
    rank = vote.get("Rank")
    if isinstance(rank, str) and rank.isdecimal():
        rank = int(rank)
    if not isinstance(rank, int) or isinstance(rank, bool) or not 1 <= rank <= _MOST_RANKS:
        raise RankingsError(
            f"{where}: expected a rank, a whole number from 1, got {rank!r}; is this a contest of "
            "ranked choice?"
        )
    return rank
