"""Ballots as they were cast, and the rules that make rankings of them.

A ballot has ranks that are blank, have one name, or have several. What becomes of such ballots is a
rule, as in software that counts elections. The words are those of RCTab:

- ``overvote="stop"`` is its ``exhaustImmediately``, and ``"skip"`` its ``alwaysSkipToNextRank``;
- ``skipped`` is its ``maxSkippedRanksAllowed``, and None its ``unlimited``;
- ``repeated="stop"`` is its ``exhaustOnDuplicateCandidate``;
- ``max_ranks`` is its ``maxRankingsAllowed``.

Its ``exhaustIfMultipleContinuing`` depends on who is left in a round of counting, and is not a rule
of the ballot alone.

**References**

1. *RCTab*, Bright Spots and the Ranked Choice Voting Resource Center,
   https://github.com/BrightSpots/rcv
"""

from typing import NamedTuple

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.orderings import row_keys
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import in_python, option

BLANK, OVERVOTE = -1, -2  # what a rank has instead of an item
_CHOICES = {
    "overvote": ("stop", "skip"),
    "repeated": ("skip", "stop"),
    "write_ins": ("item", "skip"),
}


class Rules(NamedTuple):
    """What becomes of ballots that are not rankings.

    - **overvote** - of a rank with several names: ``"stop"``, the list ends before it; or
      ``"skip"``, the rank is passed over.
    - **skipped** - how many blank ranks may follow one another before a name; the list ends where
      there are more. None: any number, and what follows moves up.
    - **repeated** - of a name that is on the ballot already: ``"skip"``, it is passed over; or
      ``"stop"``, the list ends before it.
    - **write_ins** - ``"item"``, they are items; or ``"skip"``, they are taken off the list that
      the other rules leave.
    - **max_ranks** - how many ranks of a ballot are read, or None for all.
    """

    overvote: str = "stop"
    skipped: int | None = None
    repeated: str = "skip"
    write_ins: str = "item"
    max_ranks: int | None = None


RULES = Rules._fields


def given_rules(**given: object) -> Rules | None:
    """Return the rules that are given, with defaults for the others; None if none is given."""
    values = {name: value for name, value in given.items() if value is not None}
    if not values:
        return None
    rules = Rules(**values)  # type: ignore[arg-type]
    for name, known in _CHOICES.items():
        if (choice := getattr(rules, name)) not in known:
            expected = " or ".join(map(repr, known))
            raise RankingsError(f"{name} is {expected}, not {choice!r}")
    for name, least in (("skipped", 0), ("max_ranks", 1)):
        number = getattr(rules, name)
        is_number = isinstance(number, int | np.integer) and not isinstance(number, bool)
        if number is not None and not (is_number and number >= least):
            raise RankingsError(f"{name} is a whole number from {least}, not {number!r}")
    return rules


def about_ties(is_answer: bool = True, constructor: str = "from_ranks") -> str:
    """Return what reads ties, for a message.

    :param constructor: that of :class:`~numpyro_rankings.PartialOrders`.
    """
    stop, skip = (option("overvote", x, is_answer) for x in ("stop", "skip"))
    return (
        f"{stop} ends a list before its first tie, which loses nothing if the last items are "
        f"tied; {skip} passes over ties"
        + in_python(f"; PartialOrders.{constructor} takes them as they are")
    )


class BallotCounts(NamedTuple):
    """How many ballots there were, and how many of them each rule touched.

    A ballot that ends at a rank does not count for what comes after it.

    - **cast** - ballots in the file.
    - **blank** - those without any mark.
    - **cut** - with a name below the ranks that ``max_ranks`` reads.
    - **overvoted** - with several names at a rank; all of them end there with
      ``overvote="stop"``.
    - **skipped** - with a blank rank before a name, which moves up.
    - **ended_by_skipped** - that end because more than ``skipped`` ranks are blank.
    - **repeated** - with a name that they have already.
    - **write_ins** - from which a write-in was taken off.
    - **emptied** - with marks of which the rules leave none.
    """

    cast: int
    blank: int
    cut: int
    overvoted: int
    skipped: int
    ended_by_skipped: int
    repeated: int
    write_ins: int
    emptied: int

    def notes(self, rules: Rules) -> list[str]:
        """Return what a reader of the file should know, a sentence each."""
        ends = {"stop": "where the list ends", "skip": "which is passed over"}
        said = (
            (self.cut, f"a name below rank {rules.max_ranks}, which is not read"),
            (self.overvoted, f"a rank with several names, {ends[rules.overvote]}"),
            (self.skipped, "a blank rank before a name, which moves up"),
            (
                self.ended_by_skipped,
                f"more than {plural(rules.skipped or 0, 'blank rank')} before a name, where the "
                "list ends",
            ),
            (self.repeated, f"a name for the second time, {ends[rules.repeated]}"),
            (self.write_ins, "a write-in, which is taken off"),
        )
        sentences = [(number, f"has {what}", f"have {what}") for number, what in said]
        sentences += [
            (self.blank, "is blank, and is left out", "are blank, and are left out"),
            (
                self.emptied,
                "has no name that counts, and is left out",
                "have no name that counts, and are left out",
            ),
        ]
        return [
            f"{plural(number, 'ballot')} of {self.cast:,} {one if number == 1 else many}"
            for number, one, many in sentences
            if number
        ]


def apply_rules(
    marks: np.ndarray, weights: np.ndarray, rules: Rules, is_write_in: np.ndarray
) -> tuple[np.ndarray, BallotCounts]:
    """Return the lists that the rules leave of marks (ballots, ranks), and whom each rule touched.

    A rank with several names is no blank rank, nor are its names on the ballot for the rule of
    repeated names. Blank ranks are counted from the last rank with a mark.
    """
    keys = row_keys(marks - OVERVOTE - 1)  # from -1 on
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    weights = np.bincount(inverse, weights=weights)
    lists, touched = _apply(np.asarray(marks[first], np.int32), rules, is_write_in)
    cast = int(weights.sum())
    counts = BallotCounts(cast, *(int(weights @ x) for x in touched))
    return lists[inverse], counts


def _apply(
    marks: np.ndarray, rules: Rules, is_write_in: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Apply the rules to distinct ballots, and return which of them each rule touched."""
    is_blank = (marks == BLANK).all(1)
    width = marks.shape[1] if rules.max_ranks is None else rules.max_ranks
    is_cut = (marks[:, width:] != BLANK).any(1)
    marks = marks[:, :width]
    if not marks.shape[1]:
        marks = np.full((len(marks), 1), BLANK, np.int32)
    num_blank, is_overvote, is_again = _blanks_before(marks), marks == OVERVOTE, _is_again(marks)
    ends_by_skipped = np.zeros_like(is_overvote)
    if rules.skipped is not None:
        ends_by_skipped = num_blank > rules.skipped
    ends = ends_by_skipped.copy()
    if rules.overvote == "stop":
        ends |= is_overvote
    if rules.repeated == "stop":
        ends |= is_again
    has_ended = np.logical_or.accumulate(ends, axis=1)
    # the rank at which a list ends is looked at, and those after it are not
    is_reached = np.ones_like(is_overvote)
    is_reached[:, 1:] = ~has_ended[:, :-1]
    ended_by_skipped = (ends_by_skipped & is_reached).any(1)
    is_read = is_reached & ~ends_by_skipped
    is_kept = (marks >= 0) & ~is_again & ~has_ended
    if rules.write_ins == "skip" and len(is_write_in):
        is_taken = is_kept & is_write_in[np.maximum(marks, 0)]
    else:
        is_taken = np.zeros_like(is_kept)
    is_left = is_kept & ~is_taken
    order = np.argsort(~is_left, axis=1, kind="stable")
    lists = np.take_along_axis(np.where(is_left, marks, -1), order, axis=1)
    touched = [
        is_blank,
        is_cut & ~has_ended.any(1),
        (is_overvote & is_read).any(1),
        ((num_blank > 0) & is_kept).any(1),
        ended_by_skipped,
        (is_again & is_read).any(1),
        is_taken.any(1),
        ~is_left.any(1) & ~is_blank,
    ]
    return lists[:, : max(1, int(is_left.sum(1).max(initial=1)))], touched


def _blanks_before(marks: np.ndarray) -> np.ndarray:
    """Return how many blank ranks are between each mark and the one before it; 0 for no mark."""
    places = np.arange(marks.shape[1], dtype=np.int16)
    is_marked = marks != BLANK
    last = np.maximum.accumulate(np.where(is_marked, places, np.int16(-1)), axis=1)
    before = np.concatenate([np.full((len(marks), 1), -1, np.int16), last[:, :-1]], axis=1)
    return np.where(is_marked, places - before - 1, 0)


def _is_again(marks: np.ndarray) -> np.ndarray:
    """Return which marks are items for the second time."""
    is_again = np.zeros(marks.shape, bool)
    for k in range(1, marks.shape[1]):
        is_again[:, k] = (marks[:, :k] == marks[:, [k]]).any(1)
    return is_again & (marks >= 0)
