"""What ``numpyro-rankings describe`` says of rankings."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from numpyro_rankings.cli.models import MODELS, models_with
from numpyro_rankings.cli.tables import rows_in_words
from numpyro_rankings.posterior.judges import as_numbers, most_frequent
from numpyro_rankings.rankings import (
    Comparisons,
    Orders,
    PartialOrders,
    Rankings,
    WeightedRankings,
)
from numpyro_rankings.rankings.counts import item_counts, shares_above
from numpyro_rankings.rankings.weights import weights_in_words
from numpyro_rankings.readers import BallotCounts, Survey
from numpyro_rankings.readers.layouts import LAYOUTS
from numpyro_rankings.readers.votes import words_of_ballots
from numpyro_rankings.words import by_number, plural, shorten, span

ITEMS_SHOWN, _PAIRS_SHOWN = 40, 12
NAME_WIDTH, _VALUES_SHOWN = 24, 8
_MISSING = {"-", "–", "?", ".", "n/a", "null", "none", "blank", "#n/a"}
_RARE = 0.01  # share of the judges who rank an item, below which it is said
COMPARISONS = "comparisons:"
# notes of nothing odd
_HOW_READ = (
    "read as --layout",
    "the ranks are",
    "the contest is",
    "the pairs are",
    "categories are",
    COMPARISONS,
)
_LEAST_REPEATED = 10  # rows that a table repeats, below which it may be by chance


def description(survey: Survey) -> Iterator[str]:
    """Yield the lines that describe a survey."""
    rankings = survey.rankings
    yield from _numbers_and_lengths(survey)
    yield ""
    yield from _items(rankings)
    yield ""
    yield from pairs_table(rankings)
    for name, values in (survey.items_about or {}).items():
        yield ""
        yield f"{name} of each item:"
        for item, text in zip(rankings.items, values, strict=True):
            yield f"  {shorten(item, NAME_WIDTH):<{NAME_WIDTH}}  {text}".rstrip()
    for name, values in survey.about.items():
        yield ""
        yield from _column(name, values)
    yield from what_to_check(what_is_odd(survey))
    yield ""
    yield _models(rankings)


def shared_answers(counts: np.ndarray, what: str) -> Iterator[str]:
    """Yield how many judges say the same as another, from the counts of what is different."""
    shared = int(counts[counts > 1].sum())
    if shared:
        yield (
            f"{shared:,} have the same {what} as another ({shared / counts.sum():.0%}), "
            f"the most frequent one {counts.max():,} times"
        )


def what_to_check(odd: Iterable[str]) -> Iterator[str]:
    """Yield what is odd, if anything is."""
    lines = [f"  {line}" for line in odd]
    yield ""
    yield "What to check:" if lines else "Nothing odd was found."
    yield from lines


def _models(rankings: Rankings | Orders) -> str:
    """Return which of the models of ``fit`` take the rankings."""
    families = {name: model.family for name, model in MODELS.items()}
    if rankings.weights is not None:
        return (
            f"Which model: --model {' or '.join(models_with('effective_size'))} with --weight, by "
            "--components auto or K"
        )
    if isinstance(rankings, Comparisons):
        takes = [name for name, model in MODELS.items() if model.takes_comparisons]
        return (
            f"Which model: --model {' or '.join(takes)} only, because comparisons may be mistakes"
        )
    if rankings.offered() is not None:
        takes = [name for name, model in MODELS.items() if model.takes_choice_sets]
        others = ", ".join(name for name in MODELS if name not in takes)
        return (
            f"Which model: --model {' or '.join(takes)} only, because some items were not "
            f"offered; {others} refuse choice sets"
        )
    if rankings.of_listed_items().num_items < 2:
        names = [name for name, family in families.items() if not family.has_pool]
        return f"Which model: {', '.join(names)}; the others need two items that are listed"
    return f"Which model: all, {', '.join(MODELS)}"


def _numbers_and_lengths(survey: Survey) -> Iterator[str]:
    """Yield how many rankings there are, how many are the same, and how many items they list."""
    rankings = survey.rankings
    counts, lengths = np.asarray(rankings.counts, int), np.asarray(rankings.lengths)
    total, n = counts.sum(), rankings.num_items
    what = "judge" if rankings.kind == "comparisons" else rankings.kind.removesuffix("s")
    yield (
        f"{plural(rankings.num_rankings, what)} of {plural(n, 'item')}, "
        f"{rankings.num_rows:,} of them different"
    )
    if isinstance(rankings, WeightedRankings):
        yield f"weighted, {weights_in_words(rankings)}; below, all judges count the same"
    yield from (text for text in survey.notes if text.startswith(COMPARISONS))
    yield from shared_answers(counts, "list")
    if survey.ballots is not None:
        yield _ballots(survey.ballots)
    if (offered := rankings.offered()) is not None:
        number = np.asarray(offered).sum(1)
        yield f"judges chose among {span(number.min(), number.max())} items each"
        only = int(counts @ (number - lengths))
        if only:
            yield f"{plural(only, 'item')} in all were offered to a judge and not ranked"
    complete = counts[lengths == n].sum()
    yield f"{complete:,} {by_number(complete, 'ranks', 'rank')} all items ({complete / total:.0%})"
    shown = [f"{length}: {counts[lengths == length].sum():,}" for length in np.unique(lengths)]
    yield "length of the list: number of judges"
    yield "  " + ", ".join(shown[:ITEMS_SHOWN]) + (", …" if len(shown) > ITEMS_SHOWN else "")
    if isinstance(rankings, PartialOrders):
        layout = LAYOUTS.get(survey.layout)
        yield from _ties(rankings, layout is not None and layout.has_pairs)


def _ties(orders: PartialOrders, are_pairs: bool) -> Iterator[str]:
    """Yield how many judges have ties, of how many items, and who ties the last ones only.

    :param are_pairs: whether judges compared pairs, so that any three items were not tied as such.
    """
    counts, has_ties = np.asarray(orders.counts, int), np.asarray(orders.has_ties)
    are_tied, lengths = np.asarray(orders.are_buckets), np.asarray(orders.lengths)
    if are_pairs:
        are_tied = lengths == 2
    if (number := counts[has_ties & ~are_tied].sum()) > 0:
        leave = by_number(number, "leaves", "leave")
        yield f"{number:,} {leave} the order of some items open ({number / counts.sum():.0%})"
    has_ties = has_ties & are_tied
    tied = counts[has_ties].sum()
    if not tied:
        return
    yield f"{tied:,} {by_number(tied, 'has', 'have')} ties ({tied / counts.sum():.0%})"
    levels = np.where(has_ties[:, None], np.asarray(orders.levels), -1)
    width = levels.shape[1]
    rows, places = np.nonzero(levels >= 0)
    group, size = np.unique(rows * width + levels[rows, places], return_counts=True)
    row, level = np.divmod(group[size > 1], width)
    numbers = np.bincount(size[size > 1], counts[row]).astype(int)
    yield "items in the tie: number of ties"
    shown = [f"{k}: {number:,}" for k, number in enumerate(numbers.tolist()) if number]
    yield "  " + ", ".join(shown[:ITEMS_SHOWN]) + (", …" if len(shown) > ITEMS_SHOWN else "")
    is_one = np.bincount(row, minlength=len(counts)) == 1
    is_last = np.zeros(len(counts), bool)
    is_last[row[(level == levels.max(1)[row]) & (level > 0)]] = True
    last = counts[is_one & is_last & (lengths == orders.num_items)].sum()
    if last:
        who = by_number(
            last, "of these ranks all items and ties", "of these rank all items and tie"
        )
        yield f"{last:,} {who} only the last ones, which may be those that were not ranked"


def _ballots(counts: BallotCounts) -> str:
    """Return the line that says how many ballots were odd."""
    said = (
        (counts.blank, "blank"),
        (counts.overvoted, "with several names at a rank"),
        (counts.repeated, "with a name twice"),
        (counts.skipped + counts.ended_by_skipped, "with a blank rank before a name"),
        (counts.write_ins, "with a write-in taken off"),
        (counts.cut, "with more ranks than are read"),
        (counts.emptied, "with no name that counts"),
    )
    odd = ", ".join(f"{number:,} {what}" for number, what in said if number)
    return f"of {plural(counts.cast, 'ballot')}; {odd or 'each of them is a ranking'}"


def _items(rankings: Rankings | Orders) -> Iterator[str]:
    ranked, first, mean, order = item_counts(rankings)
    total = rankings.num_rankings
    head = f"{'ranked by':>9}  {'':>5}  {'first':>7}  {'':>5}  mean rank if ranked"
    yield f"{'item':<{NAME_WIDTH}}  {head}"
    for k in order[:ITEMS_SHOWN]:
        of_ranked = f"{mean[k]:.2f}" if ranked[k] else "–"
        yield (
            f"{shorten(rankings.items[k], NAME_WIDTH):<{NAME_WIDTH}}  {ranked[k]:>9,}  "
            f"{ranked[k] / total:>5.0%}  {first[k]:>7,}  {first[k] / total:>5.0%}  {of_ranked:>6}"
        )
    if len(order) > ITEMS_SHOWN:
        yield f"and {len(order) - ITEMS_SHOWN:,} more items, which are less often first"


def often_first(rankings: Rankings | Orders) -> np.ndarray:
    """Return the items that are most often first, those that are compared in pairs."""
    return np.argsort(-item_counts(rankings).first, kind="stable")[:_PAIRS_SHOWN]


def pairs_table(rankings: Rankings | Orders) -> Iterator[str]:
    """Yield the table of how often one item is above another."""
    some = often_first(rankings)
    shares = shares_above(rankings, some)
    which = "" if len(some) == rankings.num_items else f" of the {len(some)} most often first"
    among = " among those who order the two, without ties," if rankings.are_partial else ""
    yield (
        f"share of the judges who put the item of the row above that of the column,{among} in "
        f"%{which}"
    )
    yield f"{'':<{NAME_WIDTH + 4}}" + "".join(f"{k:>5}" for k in range(1, len(some) + 1))
    for k, item in enumerate(some):
        cells = ("    –" if i == k else _percent(shares[k, i]) for i in range(len(some)))
        name = shorten(rankings.items[item], NAME_WIDTH)
        yield f"{k + 1:>3} {name:<{NAME_WIDTH}}" + "".join(cells)


def _percent(share: float) -> str:
    """Return a share in percent, where 0 and 100 are exact."""
    if math.isnan(share):
        return "    –"
    if 0 < share < 0.005 or 0.995 <= share < 1:
        return "   <1" if share < 0.5 else "  >99"
    return f"{100 * share:>5.0f}"


def _column(name: str, values: list[str]) -> Iterator[str]:
    counted = Counter(values)
    missing = counted.pop("", 0)
    numbers = as_numbers(name, list(counted))
    if numbers is not None:
        low, middle, high = np.quantile(np.repeat(numbers, list(counted.values())), (0, 0.5, 1))
        tail = f", {missing:,} without" if missing else ""
        yield f"{name}: {span(low, high)}, median {middle:g}{tail}"
        return
    shown = ", ".join(f"{text} {count:,}" for text, count in most_frequent(values, _VALUES_SHOWN))
    yield f"{name}: {shown}"


def what_is_odd(survey: Survey) -> Iterator[str]:
    """Yield what an analyst should look at before fitting a model."""
    rankings = survey.rankings
    counts, lengths = np.asarray(rankings.counts, int), np.asarray(rankings.lengths)
    orderings, total = np.asarray(rankings.table), rankings.num_rankings
    ranked = item_counts(rankings).ranked
    never = [rankings.items[k] for k in np.flatnonzero(ranked == 0)]
    if never:
        yield f"nobody ranks {list_names(never)}"
    rare = [rankings.items[k] for k in np.flatnonzero((ranked > 0) & (ranked < _RARE * total))]
    if rare:
        yield f"fewer than {_RARE:.0%} of the judges rank {list_names(rare)}"
    yield from odd_names(rankings.items)
    if survey.judges is not None:
        alike = [" and ".join(map(repr, names)) for names in _alike(survey.judges)]
        if alike:
            yield f"these names may mean the same judge: {list_names(alike)}"
    half, rest = divmod(total, 2)
    layout = LAYOUTS.get(survey.layout)
    if layout is not None and half >= _LEAST_REPEATED and not rest:
        rows = np.asarray(rankings.row_index)[survey.label_index]
        if (rows[:half] == rows[half:]).all() and len(np.unique(rows)) > half // 2:
            yield "the second half of the judges repeats the lists of the first half, in its order"
    one = counts[lengths == 1].sum()
    if one and not (layout is not None and layout.has_pairs):
        rank = by_number(one, "ranks", "rank")
        yield (
            f"{plural(int(one), 'judge')} of {total:,} {rank} one item only, from which little can "
            f"be learned about groups{_who(survey, lengths == 1)}"
        )
    if layout is not None and layout.has_item_columns:
        straight = (orderings == np.arange(orderings.shape[1])) | (orderings < 0)
        is_complete = (lengths == rankings.num_items) & ~_has_ties(rankings)
        is_straight = straight.all(1) & is_complete
        number = counts[is_straight].sum()
        by_chance = counts[is_complete].sum() / math.factorial(min(rankings.num_items, 20))
        if number > max(1, 3 * by_chance):
            who = _who(survey, is_straight)
            yield f"{number:,} judges rank the items in the order of the columns{who}"
    most = int(np.argmax(counts))
    if counts[most] > 0.1 * total and total > 20 and rankings.num_items > 3:
        order = rows_in_words(rankings)[most]
        yield f"{counts[most] / total:.0%} of the judges give the same list: {shorten(order, 60)}"
    yield from _silent(rankings)
    # what was left out, closed or read as something else, and what never meets
    yield from (text for text in survey.notes if not text.startswith(_HOW_READ))


def _has_ties(rankings: Rankings | Orders) -> np.ndarray:
    """Return which rows leave the order of listed items open, (rows,) bool."""
    if isinstance(rankings, PartialOrders):
        return np.asarray(rankings.has_ties)
    return np.full(rankings.num_rows, rankings.are_partial)


def _silent(rankings: Rankings | Orders) -> Iterator[str]:
    """Yield how many judges put no item above another one."""
    if not isinstance(rankings, Rankings):
        is_silent = ~np.asarray(rankings.prefers.any((1, 2)) | rankings.rest().any(1))
        if number := np.asarray(rankings.counts)[is_silent].sum():
            judges = plural(rankings.num_rankings, "judge")
            tie = by_number(number, "ties", "tie")
            yield f"{number:,} of {judges} {tie} all items that they were offered"


def _alike(names: Sequence[str]) -> list[list[str]]:
    """Return the names that are the same but for capitals and blanks."""
    # all in one text, which takes a tenth of the time where no two are alike
    folded = re.sub(r"[^\S\n]+", " ", "\n".join(names).casefold()).split("\n")
    if len(folded) == len(names) and len(set(folded)) == len(set(names)):
        return []
    by_case: dict[str, set[str]] = {}
    for name in names:
        by_case.setdefault(" ".join(name.casefold().split()), set()).add(name)
    return [sorted(x) for x in by_case.values() if len(x) > 1]


def _letters(name: str) -> str:
    """Return a name without capitals, accents, signs, and a number in parentheses at its end."""
    name = re.sub(r"(?<=\S)\s*[(\[]\s*#?\d+\s*[)\]]\s*$", "", name)
    plain = unicodedata.normalize("NFKD", name.casefold())
    return "".join(c for c in plain if c.isalnum())


def _words(name: str) -> str:
    """Return the words of a name by the alphabet: those of Poe, Ann and Ann Poe are the same."""
    return " ".join(sorted(filter(None, map(_letters, re.split(r"[\s,]+", name)))))


def _without_party(name: str) -> str:
    """Return the letters of a name without capitals before it, as in DEM Golden, Jared F."""
    return _letters(re.sub(r"^[A-Z]{2,4}[.:]?\s+(?=\S)", "", name.strip()))


def odd_names(items: Sequence[str]) -> Iterator[str]:
    """Yield which names of items may mean the same item, or none."""
    shown: set[str] = set()
    for key in (_letters, _words, _without_party):
        alike: dict[str, list[str]] = {}
        for name in items:
            if name not in shown:
                alike.setdefault(key(name) or name, []).append(name)
        for names in alike.values():
            if len(names) > 1:
                shown.update(names)
                same = list_names([repr(name) for name in names])
                yield f"these names may mean the same item: {same}; --aliases joins them"
    missing = [repr(x) for x in items if x.casefold() in _MISSING]
    if missing:
        yield f"these items may mean that nothing was ranked: {list_names(missing)}"
    said = [repr(x) for x in words_of_ballots(items) if x.casefold() not in _MISSING]
    if said:
        yield f"these items may say that a rank is blank or has several names: {list_names(said)}"
    words = [x for x in items if not x.isupper()]
    codes = [repr(x) for x in items if x.isupper() and len(x) < 4]
    if len(words) > 2 and len(words) + len(codes) == len(items) and len(codes) in (1, 2):
        yield f"this looks like a code: {list_names(codes)}; --missing if nothing was ranked"


def _who(survey: Survey, is_odd: np.ndarray) -> str:
    """Return the first judges of odd rows of the rankings, or nothing if they have no names."""
    if survey.judges is None:
        return ""
    of_judges = is_odd[np.asarray(survey.rankings.row_index)[survey.label_index]]
    return f": {list_names([survey.judges[k] for k in np.flatnonzero(of_judges)])}"


def list_names(names: list[str], most: int = 5) -> str:
    rest = len(names) - most
    shown = ", ".join(names[:most])
    return f"{shown} and {rest:,} more" if rest > 0 else shown
