"""A column for each rank of a ballot, with names, words such as ``undervote``, or several names."""

from collections import Counter
from collections.abc import Mapping, Sequence

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_counted, names_shown
from numpyro_rankings.readers.answers import (
    is_called_last,
    rank_of_header,
    refuse_missing_items,
    with_places_in_words,
)
from numpyro_rankings.readers.ballots import BLANK, OVERVOTE
from numpyro_rankings.readers.grids import Column, Grid, first_places, table_of
from numpyro_rankings.readers.headers import Table
from numpyro_rankings.readers.layouts.base import MARK_WORDS, BallotLayout
from numpyro_rankings.readers.layouts.orders import names_in_cells, order_of_numbers
from numpyro_rankings.readers.lists import Lists
from numpyro_rankings.readers.questions import Question, QuestionSpec, options_beside
from numpyro_rankings.readers.votes import (
    Votes,
    is_write_in,
    lists_of_ballots,
    sure_words_of_ballots,
    votes_of_marks,
    words_of_ballots,
)
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import option


class BallotVotes(BallotLayout):
    """A column for each rank of a ballot."""

    name = "votes"
    takes_separator = True

    def sign(self, table: Table, picked: Sequence[int], spec: QuestionSpec) -> str:
        """Cells have words such as undervote."""
        has_words = sure_words_of_ballots([table.grid.cells[k] for k in picked])
        return "words such as undervote in its cells" if has_words else ""

    def lists(self, question: Question) -> Lists:
        """Read names, and apply the rules."""
        grid, spec = question.grid, question.spec
        names = _ranks_in_order(grid, question.names, spec)
        column_of = dict(zip(question.names, question.columns, strict=True))
        votes = _read_votes(grid, [column_of[name] for name in names], spec)
        votes.notes.insert(0, f"the ranks are {names_counted(names)}")
        return lists_of_ballots(grid, spec, votes)


# ---------------------------------------------------------------------------------------------
# The ranks, in the headers
# ---------------------------------------------------------------------------------------------


def _ranks_in_order(grid: Grid, names: Sequence[str], spec: QuestionSpec) -> list[str]:
    """Return the columns that are ranks, the first one first.

    The names of picked columns need not say the rank, but may not say that they are of two
    contests, or that there is a column beside the ranks.
    """
    ranks = {name: rank for name in names if (rank := rank_of_header(name)) is not None}
    ranks = with_places_in_words(ranks, names) if ranks else {}
    if len(set(ranks.values())) == len(names):
        return sorted(names, key=ranks.__getitem__)
    if spec.patterns and (not ranks or (len(ranks) < len(names) and 1 not in ranks.values())):
        return [names[k] for k in order_of_numbers(names) or range(len(names))]
    if not ranks:
        raise RankingsError(
            f"{grid.header_place}: which columns are the ranks of the ballots? Pick them with "
            f"{option('columns')}, such as '*hoice*', or add {option('layout', 'ranks')} if each "
            f"is an item with its ranks, or {option('layout', 'long')} if each row is one judge "
            f"and one item; the columns are {names_shown([repr(name) for name in names])}"
        )
    other = next((x for x in names if x not in ranks), None)
    if other is None:
        twice = next(x for k, x in enumerate(names) if ranks[x] in [ranks[y] for y in names[:k]])
        raise RankingsError(
            f"{grid.header_place}: several columns are rank {ranks[twice]}, such as {twice!r}; "
            f"pick those of one contest with {option('columns')}"
        )
    ways = options_beside(grid.column(other), spec, not is_called_last(other))
    raise RankingsError(
        f"{grid.header_place}: the column {other!r} is no rank; pick the ranks with "
        f"{option('columns')}, or {ways}"
    )


# ---------------------------------------------------------------------------------------------
# The names, in the cells
# ---------------------------------------------------------------------------------------------


def _read_votes(grid: Grid, ranks: Sequence[Column], spec: QuestionSpec) -> Votes:
    """Read the names in columns of ranks.

    Without names of items, they are those that appear, in order of first appearance. Without a
    separator, it is what is between names that other cells have alone.
    """
    places = {
        text: grid.at(row, ranks[k])
        for text, (row, k) in sorted(first_places(ranks).items(), key=lambda x: x[1])
        if text
    }
    cells: Counter[str] = Counter()
    for column in ranks:
        cells.update(column.counts())
    words = words_of_ballots(places, spec.items or ())
    separator = MARK_WORDS.get((spec.separator or "").lower(), spec.separator)
    names_in = names_in_cells({x: y for x, y in places.items() if x not in words}, spec, separator)
    in_several = {x for text, names in names_in.items() if len(names) > 1 for x in (text, *names)}
    known = {*(spec.items or ()), *spec.aliases, *words, *in_several}
    known.update(filter(is_write_in, places))
    refuse_missing_items(grid, ranks, known, are_ballots=True)
    items = _items(places, names_in, spec)
    index = {name: k for k, name in enumerate(items)}
    aliases = spec.aliases
    several = [x for x, names in names_in.items() if len({aliases.get(y, y) for y in names}) > 1]
    codes = {"": BLANK, **words, **{text: index[names[0]] for text, names in names_in.items()}}
    codes |= dict.fromkeys(several, OVERVOTE)
    notes = []
    for mark, what in ((BLANK, "a blank rank"), (OVERVOTE, "a rank with several names")):
        said = [f"{x!r} in {plural(cells[x], 'cell')}" for x, y in words.items() if y == mark]
        if said:
            notes.append(f"read as {what}: {', '.join(said)}")
    if several:
        number = sum(cells[text] for text in several)
        notes.append(f"several names are in {plural(number, 'cell')}, such as {several[0][:60]!r}")
    return votes_of_marks(items, table_of(ranks, codes.__getitem__), notes)


def _items(
    places: Mapping[str, str], names_in: Mapping[str, Sequence[str]], spec: QuestionSpec
) -> tuple[str, ...]:
    """Return all names in cells, after those that are known; if some are, all must be."""
    known = spec.items or ()
    for text, names in names_in.items():
        for name in names:
            if known and name not in known and spec.aliases.get(name, name) not in known:
                raise RankingsError(
                    f"{places[text]}: there is no item {name[:40]!r}; expected "
                    f"{names_shown(known)}, or a word such as undervote or overvote; add "
                    f"{option('missing')} if it means a blank rank"
                )
    return tuple(dict.fromkeys((*known, *(name for names in names_in.values() for name in names))))
