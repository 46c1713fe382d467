"""Read and write ``.blt`` files, the format of software that counts ranked ballots.

What the programs write:

- all: the numbers of candidates and seats; withdrawn candidates as negative numbers; ballots of a
  weight, the candidates best first, and a 0; a 0; the names; and the title;
- OpenSTV and OpaVote: comments after ``#``, ids of the ballots in parentheses, ``=`` between
  candidates at one rank, and ``-`` for a blank rank;
- OpenTally: names without quotes, ballots without a 0 at the end of their line, and several of them
  on a line;
- councils: a party in quotes beside each name, or names in comments as in PrefLib's files.

**References**

1. I. D. Hill, B. A. Wichmann, D. R. Woodall, *Algorithm 123: Single transferable vote by Meek's
   method* (Computer Journal 30, 1987)
2. *OpaVote*, https://www.opavote.com/help/overview#blt-file-format
3. *OpenTally*, https://yingtongli.me/git/OpenTally/about/docs/blt-fmt.md
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from numpyro_rankings.rankings import Rankings, RankingsError, check_rankings
from numpyro_rankings.readers.ballots import BLANK, OVERVOTE
from numpyro_rankings.readers.elections import (
    RULE_OPTIONS,
    Election,
    padded,
    refuse_same_names,
    survey_of_election,
)
from numpyro_rankings.readers.grids import place_of
from numpyro_rankings.readers.surveys import Survey
from numpyro_rankings.readers.text import check_writable_names, read_text
from numpyro_rankings.readers.votes import votes_of_marks, without_items
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import refuse_unknown

BLT = "a .blt file"
_SIZES = re.compile(r"\s*(\d{1,9})\s+(\d{1,9})\s*,?\s*")
_WITHDRAWN = re.compile(r"-\d{1,9}(?:\s+-\d{1,9})*")
_ID = re.compile(r"\(([^)]*)\)\s*")
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_NAME_IN_COMMENT = re.compile(r"#\s*ALTERNATIVE NAME (\d{1,9}):\s*(.*\S)\s*")
_BYTES_OF_HEAD = 2**12


class _Ballots(NamedTuple):
    """The ballots of a file: bodies are few, and ballots are many."""

    bodies: dict[str, int]
    codes: list[int]
    weights: list[int]
    ids: list[str | None]
    numbers: list[int]


def looks_like_blt(name: str) -> bool:
    """Return whether a text file begins as a ``.blt`` file does."""
    try:
        with open(name, "rb") as stream:
            head = stream.read(_BYTES_OF_HEAD)
    except OSError:
        return False
    lines = head.decode("utf-8-sig", errors="replace").splitlines()
    first = next((x for line in lines if (x := line.partition("#")[0].strip())), "")
    return "\t" not in first and _SIZES.fullmatch(first) is not None


def read_blt(path: str | os.PathLike, encoding: str | None = None, **options: object) -> Survey:
    """Read a ``.blt`` file.

    Withdrawn candidates are no items, and are taken off the ballots. A rank with several candidates
    is an overvote, and a ``-`` is a blank rank.

    :param path: the file.
    :param encoding: of the text; by default UTF-8, or what the first bytes say.
    :param options: rules and aliases, as in :func:`~numpyro_rankings.read_survey`.
    :raises RankingsError: naming the line.
    """
    refuse_unknown("read_blt", options, RULE_OPTIONS)
    name = os.fspath(path)
    text = read_text(path, encoding, hint=True)
    lines = _lines(text.lines())
    number, line = next(lines, (1, ""))
    sizes = _SIZES.fullmatch(line)
    if sizes is None:
        raise RankingsError(
            f"{name}:{number}: expected the numbers of candidates and seats, such as '4 2', got "
            f"{line[:40]!r}"
        )
    num_items = int(sizes[1])
    if num_items < 2:
        raise RankingsError(f"{name}:{number}: a ranking needs at least 2 candidates")
    ballots, withdrawn, number, rest = _read_ballots(name, number, lines, num_items)
    items, parties = _names(name, number, rest, lines, num_items)
    marks_of_bodies = _marks(name, ballots, num_items, withdrawn)
    if num_items - len(withdrawn) < 2:
        raise RankingsError(f"{name}: a ranking needs at least 2 candidates who have not withdrawn")
    gone = [items[k] for k in sorted(withdrawn)]
    kept, marks_of_bodies = without_items(gone, items, marks_of_bodies)
    notes = _notes_of_withdrawn(gone, ballots, marks_of_bodies)
    ids = [x for x in ballots.ids if x]
    number = len(ballots.ids) - len(ids)
    if ids and number:
        verb = "has" if number == 1 else "have"
        notes.append(
            f"the ids of the ballots are left out, because {plural(number, 'ballot')} {verb} none"
        )
    election = Election(
        name,
        votes_of_marks(kept, marks_of_bodies[np.array(ballots.codes)]),
        np.array(ballots.weights),
        np.array(ballots.numbers),
        place_of(name, ":{}"),
        None if number else ids,
        parties=parties,
        notes=notes,
    )
    return survey_of_election(election, BLT, **options)  # type: ignore[arg-type]


def _read_ballots(
    name: str, number: int, lines: Iterator[tuple[int, str]], num_items: int
) -> tuple[_Ballots, set[int], int, str]:
    """Read the withdrawn candidates and the ballots, to the line that ends them.

    Return also the number of that line, and what follows on it.
    """
    withdrawn: set[int] = set()
    ballots = _Ballots({}, [], [], [], [])
    rest = None
    for number, line in lines:
        if line[0] == "#":
            continue
        if line[0] == "-" and not ballots.codes and _WITHDRAWN.fullmatch(line):
            numbers = [-int(x) for x in line.split()]
            if wrong := [k for k in numbers if not 1 <= k <= num_items]:
                raise RankingsError(
                    f"{name}:{number}: the withdrawn candidate {wrong[0]} is outside 1..{num_items}"
                )
            withdrawn.update(k - 1 for k in numbers)
            continue
        rest = _take_ballots(name, number, line, ballots)
        if rest is not None:
            break
    if rest is None:
        raise RankingsError(
            f"{name}:{number}: the ballots do not end; a line with 0 is expected after them, and "
            "then the names of the candidates"
        )
    if not ballots.codes:
        raise RankingsError(f"{name}:{number}: there are no ballots")
    return ballots, withdrawn, number, rest


def _notes_of_withdrawn(names: list[str], ballots: _Ballots, marks: np.ndarray) -> list[str]:
    """Return who has withdrawn, and how many ballots this leaves blank."""
    if not names:
        return []
    verb = "has withdrawn, and is" if len(names) == 1 else "have withdrawn, and are"
    has_names = np.array([bool(body.strip("- ")) for body in ballots.bodies])
    is_bare = has_names & (marks == BLANK).all(1)
    number = int(np.array(ballots.weights) @ is_bare[np.array(ballots.codes)])
    rest = f", which leaves {plural(number, 'ballot')} blank" if number else ""
    return [f"{', '.join(map(repr, names))} {verb} taken off the ballots{rest}"]


def _lines(lines: Iterator[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers, without comments outside quotes."""
    for number, line in enumerate(lines, 1):
        if "#" in line and not _NAME_IN_COMMENT.match(line):
            line = _without_comment(line)
        line = line.strip(" \t\r\n,")
        if line:
            yield number, line


def _without_comment(line: str) -> str:
    is_quoted = False
    for k, c in enumerate(line):
        if c == '"':
            is_quoted = not is_quoted
        elif c == "#" and not is_quoted and (not k or line[k - 1].isspace()):
            return line[:k]
    return line


def _take_ballots(name: str, number: int, line: str, ballots: _Ballots) -> str | None:
    """Add the ballots of a line; return what follows the end of all ballots if it is there."""
    while line:
        if line == "0":
            return ""
        if line[0] == "0" and line[1].isspace():
            return line[1:].strip()
        identity = None
        if line[0] == "(":
            match = _ID.match(line)
            if match is None:
                raise RankingsError(f"{name}:{number}: the id of the ballot has no ')' at its end")
            identity, line = match[1].strip(), line[match.end() :]
        weight, _, body = line.partition(" ")
        if not (weight.isdecimal() and weight.isascii()):
            parts = line.split(None, 1)
            weight, body = parts[0] if parts else "", "".join(parts[1:])
        if not (weight.isdecimal() and weight.isascii()) or len(weight) > 9 or weight == "0":
            raise RankingsError(f"{name}:{number}: {_weight_problem(weight)}")
        line = ""
        if body.endswith(" 0") and " 0 " not in body:
            body = body[:-2]
        else:  # blanks of other kinds, no 0 at the end, or several ballots
            tokens = body.split()
            end = tokens.index("0") if "0" in tokens else len(tokens)
            line = "".join(body.split(None, end + 1)[end + 1 :])
            body = " ".join(tokens[:end])
        ballots.codes.append(ballots.bodies.setdefault(body, len(ballots.bodies)))
        ballots.weights.append(int(weight))
        ballots.ids.append(identity)
        ballots.numbers.append(number)
    return None


def _weight_problem(text: str) -> str:
    if re.fullmatch(r"\d+[./]\d+", text):
        return (
            f"the weight {text[:20]} is not a whole number, which counts of ballots are; weighted "
            "votes cannot be used yet"
        )
    if text.startswith("-"):
        return f"{text[:20]!r} withdraws a candidate, which comes before the ballots"
    if text.startswith('"') or any(c.isalpha() for c in text):
        return (
            f"expected a ballot, got {text[:20]!r}; a line with 0 comes between the ballots and "
            "the names"
        )
    return f"expected the weight of a ballot, a positive whole number, got {text[:20]!r}"


def _marks(name: str, ballots: _Ballots, num_items: int, withdrawn: set[int]) -> np.ndarray:
    """Return the marks of the distinct ballots, without withdrawn candidates."""
    rows = []
    for code, body in enumerate(ballots.bodies):
        row = []
        for token in body.split():
            if token == "-":
                row.append(BLANK)
                continue
            candidates = set()
            for part in token.split("="):
                k = int(part) if part.isdecimal() and part.isascii() and len(part) < 10 else 0
                if not 1 <= k <= num_items:
                    where = f"{name}:{ballots.numbers[ballots.codes.index(code)]}"
                    raise RankingsError(f"{where}: {_candidate_problem(token, part, num_items)}")
                candidates.add(k - 1)
            left = candidates - withdrawn
            if left:
                row.append(OVERVOTE if len(left) > 1 else left.pop())
        rows.append(row)
    return padded(rows)


def _candidate_problem(token: str, part: str, num_items: int) -> str:
    if part.isdecimal():
        return f"candidate {part[:20]} is outside 1..{num_items}"
    return (
        f"expected the number of a candidate, such as 3, 3=4 for several, or - for a blank rank, "
        f"got {token[:20]!r}"
    )


def _names(
    name: str, number: int, rest: str, lines: Iterator[tuple[int, str]], num_items: int
) -> tuple[list[str], dict[str, str]]:
    """Return the names of the candidates, and their parties; what follows them is not read."""
    remaining = [(number, rest), *lines] if rest else list(lines)
    named: list[tuple[int, str]] = []
    parties: list[str] = []
    of_lines = [(at, _names_of_line(line)) for at, line in remaining if line[0] != "#"]
    in_comments = [(at, m) for at, line in remaining if (m := _NAME_IN_COMMENT.match(line))]
    if in_comments:
        numbers = [int(m[1]) for _, m in in_comments]
        if numbers != list(range(1, num_items + 1)):
            raise RankingsError(
                f"{name}:{in_comments[0][0]}: expected the names of the candidates 1..{num_items} "
                "in this order"
            )
        named = [(at, m[2].strip()) for at, m in in_comments]
    elif len(of_lines) >= num_items and all(len(x) == 2 for _, x in of_lines[:num_items]):
        named = [(at, x[0]) for at, x in of_lines]
        parties = [x[1] for _, x in of_lines[:num_items]]
    else:
        named = [(at, x) for at, names in of_lines for x in names]
    if len(named) < num_items:
        at = remaining[-1][0] if remaining else number
        raise RankingsError(
            f"{name}:{at}: the first line says {num_items} candidates, but {len(named)} are named "
            "after the ballots"
        )
    refuse_same_names((f"{name}:{at}", item) for at, item in named[:num_items])
    items = [item for _, item in named[:num_items]]
    return items, dict(zip(items, parties, strict=False))


def _names_of_line(line: str) -> list[str]:
    if line[0] != '"':
        return [line]
    if _QUOTED.sub("", line).strip():  # quotes within a name
        return [line.strip().strip('"').strip()]
    return [x.replace('""', '"').strip() for x in _QUOTED.findall(line)]


# ---------------------------------------------------------------------------------------------
# Writing
# ---------------------------------------------------------------------------------------------


def write_blt(rankings: Rankings, path: str | os.PathLike, seats: int = 1, title: str = "") -> None:
    """Write a ``.blt`` file, from which ``rankings.unique()`` can be read.

    :param rankings: rankings without choice sets, which the format cannot represent.
    :param path: the file to write.
    :param seats: number of candidates to elect.
    :param title: of the election.
    :raises RankingsError: if the rankings do not fit the format; then nothing is written.
    """
    check_rankings(rankings)
    name = os.fspath(path)
    if rankings.choice_sets is not None:
        raise RankingsError(f"{name}: .blt files cannot represent choice sets")
    if not 1 <= seats <= rankings.num_items:
        raise RankingsError(
            f"{name}: seats is a number from 1 to {rankings.num_items}, the candidates, not {seats}"
        )
    check_writable_names(name, rankings.items)
    if quoted := [x for x in (*rankings.items, title) if '"' in x]:
        raise RankingsError(f"{name}: {quoted[0]!r} has a quotation mark, which .blt files lack")
    merged = rankings.unique()
    orderings, lengths = np.asarray(merged.orderings) + 1, np.asarray(merged.lengths)
    lines = [f"{merged.num_items} {seats}"]
    for row, length, count in zip(orderings, lengths, merged.counts.tolist(), strict=True):
        lines.append(" ".join(map(str, [count, *row[:length].tolist(), 0])))
    lines += ["0", *(f'"{item}"' for item in merged.items), f'"{" ".join(title.split())}"']
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
