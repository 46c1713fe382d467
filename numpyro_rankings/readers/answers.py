"""What the cells of a question say: ranks in words, and codes for no rank.

The functions take the columns of a question and return columns as the layouts read them, and refuse
what looks like a ranking and is none.
"""

import itertools
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence

import numpy as np

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_shown
from numpyro_rankings.readers.grids import Column, Grid, table_of, whole_number
from numpyro_rankings.words import plural
from numpyro_rankings.words.options import option

NUMBER_WORDS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
_BEFORE = (
    r"(?:rank(?:ing|ed)?|choice|place|position|pos\.?|pref(?:erence|\.)?|priority|number|no\.?|"
    r"nr\.?|platz|rang|choix|#|=|joint|tied|equal)"
)
_AFTER = r"(?:rank|choice|place|pref(?:erence)?|priority|pick|wahl|rang|platz|choix|tied?|equal)"
_RANK = re.compile(
    rf"(?:{_BEFORE}[ _:.-]*)?(?:(?P<number>\d{{1,4}})(?:[.,]0+)?"
    rf"(?:\s*(?:st|nd|rd|th|ère|ème|er|re|e|[.)º°]))?|(?P<word>{'|'.join(NUMBER_WORDS)}))"
    rf"(?:[ _-]*{_AFTER})?\s*(?:[(\[](?P<inside>\D*)[)\]]|\s[-–—=:]\s*(?P<after>\D+)|"
    r"=\s*(?P<equal>\D+)|=|\s+(?P<bare>(?:best|worst|(?:most|least)(?: \w+)?|highest|lowest)))?",
    re.IGNORECASE,
)
# what the columns of the first and the second place are called beside those with numbers
_BEST = r"(?:winner|best|top|favou?rite|most (?:preferred|liked)|preferred)"
_PLACES = {
    1: re.compile(rf"(?:my |the |overall )?{_BEST}(?:[ _-]?(?:{_AFTER}|item|one))?", re.IGNORECASE),
    2: re.compile(r"runner[ _-]?up", re.IGNORECASE),
}
_RANK_IN_HEADER = re.compile(
    r"\b(?:choice|rank(?:ing)?|place|pref(?:erence)?|vote)[ _#:.-]*(\d+)\b|"
    rf"\b(\d+)(?:st|nd|rd|th)\b|\b({'|'.join(NUMBER_WORDS[:10])})\b",
    re.IGNORECASE,
)
BAD = r"(?:worst|least|lowest|bottom|last)"
# what the column of the last place is called, and not that of a last name
_LAST = re.compile(
    rf"(?:my |the |overall )?{BAD}(?:[ _-]?(?:{_AFTER}|preferred|liked|favou?rite|important|item|"
    r"one))?",
    re.IGNORECASE,
)
GOOD = r"(?:best|most|highest|top|favou?rite|greatest|first choice)"
END_OF_SCALE = re.compile(rf"\b(?:{GOOD}|{BAD})\b", re.IGNORECASE)
# texts that mean no rank, unless the user says that they are items
_NO_RANK = set(
    "n/a|n.a.|n / a|not applicable|not ranked|unranked|no rank|none|no answer|no opinion|dk|"
    "don't know|do not know|no preference|refused|skipped|not selected|null|nil|-|–|—|--|.|?|"
    "blank|blank vote|left blank|no vote|not voted|no selection|skip|missing|abstain|abstained|"
    "spoiled|spoilt|invalid|void|empty|blanks|blanc|vote blanc|bulletin blanc|nul|vote nul|"
    "bulletin nul|abstention|sans réponse|pas de réponse|non classé|aucun|k.a.|k. a.|keine angabe|"
    "keine antwort|keine|leer|ungültig|ungueltig|enthaltung|nulo|voto nulo|blanco|en blanco|"
    "voto en blanco|em branco|abstención|sin respuesta|ninguno|ns/nc|ns/nr|nullo|scheda bianca|"
    "scheda nulla|astenuto|nessuno|ongeldig|onthouding".split("|")
)
# texts that say of an item without a rank that it was offered, and that it was not
_WAS_OFFERED = re.compile(
    r"d\.?n\.?f\.?|did not finish|ret\.?|retired|dsq|dq|disqualified|not classified|"
    r"offered(?:,? (?:but )?not ranked)?",
    re.IGNORECASE,
)
_WAS_NOT_OFFERED = re.compile(
    r"d\.?n\.?[sq]\.?|did not (?:start|qualify|enter|take part)|unavailable|"
    r"(?:(?:n/?a|n\.a\.)\W+)?(?:was |were |is |i )?(?:not|never|wasn't|isn't|haven't) "
    r"(?:offered|shown|presented|displayed|available|tried|tasted|seen|entered|assigned|"
    r"(?:on|in) (?:the|my|this) \w+)",
    re.IGNORECASE,
)
# what stands for the items that a list does not name
_REST = re.compile(
    r"(?:(?:and )?(?:all |any |the )*(?:others?|rest|remaining)"
    r"(?: (?:items|candidates|options|ones))?|everything else|everyone else|(?:and )?so on|etc\.?|"
    r"andere|sonstige|autres|otros)(?:\W+(?:please )?(?:specify|explain|describe|name)\b.*)?",
    re.IGNORECASE,
)
_NOT_APPLICABLE = re.compile(r"(?:n/?a|n\.a\.)\s*[-–—:(].*", re.IGNORECASE)
# codes of questionnaires for no answer; those that are not sure are ranks and ratings, too, and
# codes only where no other numbers are near them
_SURE_CODES = {-1, -9, -99, -999, 88, 98, 99, 888, 999, 9999}
CODES = frozenset({8, 9, 66, 77, 97, 777, 998, *_SURE_CODES})
_FAR = 3  # from the next lower number to a code
_IN_BRACKETS = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|\([^()]*\)|\{[^{}]*\}|\*[^*]*\*")
_MOST_PLACES = 1000
_MOST_NAMES = 12  # of items in a suggested option
NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?")
NO_CODE = "none"  # among the codes: all numbers are ranks or ratings
EMPTY = "empty"  # what an empty cell is called among texts
_JOINT = re.compile(r"t[-. ]?(\d{1,4})|(\d{1,4})[-. ]?t", re.IGNORECASE)
RANK_OF = re.compile(r"[(\[]?\d{1,3} ?(?:/|of|out of) ?\d{1,3}\b", re.IGNORECASE)  # 1/3
_DECIMAL = re.compile(r"\d{1,4}[.,]\d{1,6}")


def rank_in_words(text: str) -> tuple[int, str] | None:
    """Return the rank that a text such as ``2. Choice`` says, and the comment of ``5 (worst)``."""
    match = _RANK.fullmatch(text)
    if match is None:
        return None
    number, word, *comments = match.group("number", "word", "inside", "after", "equal", "bare")
    rank = int(number) if number else NUMBER_WORDS.index(word.lower()) + 1
    return rank, next(filter(None, comments), "").strip()


def joint_ranks(texts: Collection[str]) -> dict[str, int]:
    """Return the ranks of texts such as ``T2``, ``2T`` and ``T-2``, as tied ones are written.

    Without a number among the texts they may be names.
    """
    said = {x: match for x in texts if (match := _JOINT.fullmatch(x)) is not None}
    has_number = bool(said) and any(whole_number(x) is not None for x in texts)
    return {x: int(match[1] or match[2]) for x, match in said.items()} if has_number else {}


def rank_of_header(name: str) -> int | None:
    """Return the rank that the name of a column says, such as ``Mayor, 2nd choice``."""
    if name.isdecimal():
        return int(name)
    if (said := rank_in_words(name)) is not None:
        return said[0]
    match = _RANK_IN_HEADER.search(name)
    if match is None:
        return None
    number = match[1] or match[2]
    return int(number) if number else NUMBER_WORDS.index(match[3].lower()) + 1


def with_places_in_words(
    ranks: Mapping[str, int], names: Sequence[str], has_last: bool = True
) -> dict[str, int]:
    """Return the places that names of columns say, with those of a winner beside 2nd, 3rd, …

    :param ranks: the places that are said by numbers; these alone if all of them are not 1, 2, …
    :param has_last: whether the last is the place behind two and more others.
    """
    said = {x: rank for x in names for rank, called in _PLACES.items() if called.fullmatch(x)}
    places = {**said, **ranks}
    if sorted(places.values()) != list(range(1, len(places) + 1)):
        return dict(ranks)
    last = [x for x in names if _LAST.fullmatch(x)] if has_last else []
    return {**places, last[0]: len(places) + 1} if len(last) == 1 < len(places) else places


def is_called_last(name: str) -> bool:
    """Return whether a column is called as that of the last place, such as ``Least preferred``."""
    return _LAST.fullmatch(name) is not None


def places_in_order(texts: Sequence[str]) -> bool:
    """Return whether texts are the places 1, 2, …, from either end, of which one may be best."""
    ranks = {x: rank[0] for x in texts[:_MOST_PLACES] if (rank := rank_in_words(x)) is not None}
    places = with_places_in_words(ranks, texts[:_MOST_PLACES]) if ranks else {}
    order = [places.get(x, 0) for x in texts[: _MOST_PLACES + 1]]
    return min(order, order[::-1]) == list(range(1, len(order) + 1))


def without_missing(
    grid: Grid,
    columns: Sequence[Column],
    missing: Sequence[str],
    num_items: int | None,
    what: str = "cell",
    elsewhere: Container[str] = (),
) -> tuple[list[Column], list[str]]:
    """Make cells empty that say that nothing is ranked, and tell how many there were.

    Of ranks of ``num_items`` items, none can say so. The note calls cells **what** they are, and
    does not miss words that were found **elsewhere**.
    """
    if not missing:
        return list(columns), []
    texts = {text_key(text) for column in columns for text in column.values}
    for word in missing:
        number = whole_number(word)
        # a code may be a number up to that of the items, if the ranks below it are not there
        is_rank = number is not None and (number < 3 or {str(number - 1), str(number - 2)} & texts)
        if num_items is not None and number is not None and 1 <= number <= num_items and is_rank:
            raise RankingsError(
                f"{grid.name}: {word!r} cannot mean that an item is not ranked: it is a rank of "
                f"{num_items} items"
            )
    keys = {text_key(word): word for word in reversed(missing)}
    counts = dict.fromkeys(missing, 0)
    for column in columns:
        for text, num_cells in column.counts().items():
            if text_key(text) in keys:
                counts[keys[text_key(text)]] += num_cells
    emptied = [x.with_texts(lambda text: "" if text_key(text) in keys else text) for x in columns]
    counts = {word: k for word, k in counts.items() if k or word not in elsewhere}
    return emptied, _notes_of_words("not ranked", counts, "missing", what)


def _notes_of_words(meaning: str, counts: Mapping[str, int], name: str, what: str) -> list[str]:
    """Tell in how many cells words are that have a meaning, and which are nowhere.

    :param name: that of the option which has them; its word none says that there are none.
    """
    found = [f"{word!r} in {plural(k, what)}" for word, k in counts.items() if k]
    nowhere = [word for word, k in counts.items() if not k and word.casefold() != NO_CODE]
    notes = [f"read as {meaning}: {', '.join(found)}"] if found else []
    if nowhere:
        notes.append(f"no {what} has {names_shown(list(map(repr, nowhere)))}, of {option(name)}")
    return notes


def read_offered(
    grid: Grid, columns: Sequence[Column], words: Mapping[bool, Sequence[str]]
) -> tuple[list[Column], np.ndarray | None, list[str]]:
    """Make cells empty whose texts say whether an item was offered that is not ranked.

    :param words: the texts that say that it was, True, and that it was not, False; ``empty`` is an
        empty cell.
    :return: the columns; (rows, columns) whether an item was offered, 1 or 0, or -1 where neither a
        text nor a rank says so, or None without texts; and notes.
    """
    if not any(words.values()):
        return list(columns), None, []
    says: dict[str, bool] = {}
    counts: dict[bool, dict[str, int]] = {True: {}, False: {}}
    for meaning, texts in words.items():
        for word in texts:
            key = "" if word.casefold() == EMPTY else text_key(word)
            if says.setdefault(key, meaning) != meaning:
                raise RankingsError(
                    f"{grid.name}: {word!r} cannot mean both that an item was offered and that it "
                    "was not"
                )
            cells = [k for x in columns for y, k in x.counts().items() if text_key(y) == key]
            counts[meaning][word] = sum(cells)
    notes = _notes_of_words("offered and not ranked", counts[True], "offered", "cell")
    notes += _notes_of_words("not offered", counts[False], "not_offered", "cell")
    said = [
        x.mapped(lambda text: says.get(text_key(text), 1 if text else -1), int) for x in columns
    ]
    emptied = [x.with_texts(lambda text: "" if text_key(text) in says else text) for x in columns]
    return emptied, np.stack(said, axis=1), notes


def said_of_offer(text: str) -> bool | None:
    """Return what a text says of an item without a rank: that it was offered, or not, or nothing.

    Who did not finish has started, and who did not start has not.
    """
    if _WAS_OFFERED.fullmatch(text):
        return True
    return False if _WAS_NOT_OFFERED.fullmatch(text) else None


def says_no_rank(text: str) -> bool:
    """Return whether a text says in words that nothing is ranked, or that it was not offered."""
    is_known = text.casefold() in _NO_RANK or said_of_offer(text) is not None
    return is_known or _NOT_APPLICABLE.fullmatch(text) is not None


def stands_for_rest(text: str) -> bool:
    """Return whether a text such as ``others`` may stand for the items that a list leaves out."""
    return _REST.fullmatch(text) is not None


def text_key(text: str) -> str:
    """Return what texts have in common that mean the same: case, and forms of numbers."""
    number = whole_number(text)
    return text.casefold() if number is None else str(number)


def means_no_rank(text: str, num_items: int | None) -> bool:
    """Return whether a text among ranks may mean that an item is not ranked."""
    number = whole_number(text)
    if number is None:
        return says_no_rank(text)
    is_rank = number > 0 and (num_items is None or number <= num_items)
    return (number == 0 or number in _SURE_CODES) and not is_rank


def codes_above(numbers: Iterable[int]) -> list[int]:
    """Return the codes that are far above all other numbers, such as 9 and 99 above 1, …, 5."""
    values = sorted({x for x in numbers if x > 0})[-1 - len(CODES) :]
    for k, (one, two) in enumerate(itertools.pairwise(values), 1):
        if two - one >= _FAR and CODES.issuperset(values[k:]):
            return values[k:]
    return []


def refuse_missing_items(
    grid: Grid,
    columns: Sequence[Column],
    known: Container[str] | None,
    how: str = "",
    are_ballots: bool = False,
) -> None:
    """Refuse names of items that may mean that nothing is ranked, unless they are **known**.

    :param how: what to do if they mean it; by default the option that says so.
    :param are_ballots: whether a few capitals among other names are a code, too.
    """
    texts = dict.fromkeys(text for column in columns for text in column.values if text)
    num_names = sum(sum(map(str.isalpha, x)) > 2 and not says_no_rank(x) for x in texts)
    capitals = {text for text in texts if text.isupper() and len(text) < 4}
    if not are_ballots or any(x.isupper() and x not in capitals for x in texts):
        capitals = set()
    # candidates called A, B and C are no codes, unless they are among longer names
    initials = {text for text in texts if len(text) == 1 and text.isalpha()}
    names = initials if 2 < len(initials) > len(texts) / 2 else set()
    num_cells = sum(k for column in columns for x, k in column.counts().items() if x)
    codes, signs = _codes_among_numbers(texts), _codes_among_names(texts)
    for column in columns:
        for text in column.values:
            is_code = text in signs or (text in capitals and len(capitals) == 1)
            is_odd = says_no_rank(text) or (num_names > 1 and is_code) or text in codes
            is_odd &= text not in (known or ()) and text not in names
            if is_odd and text in codes and whole_number(text) not in _SURE_CODES:
                is_odd = not _may_be_name(columns, text, codes)[1]
            if text and is_odd:
                number = sum(x.counts().get(text, 0) for x in columns)
                is_name, is_above = False, False
                if text.casefold() in ("blanc", "blanco"):
                    is_name, is_above = _may_be_name(columns, text)
                is_often = (is_name or text in initials) and 5 * number > num_cells
                is_item = (is_often or is_above) and len(texts) <= _MOST_NAMES
                items = [x for x in texts if x == text or not says_no_rank(x)]
                missing = option("missing", text, not is_item)
                every = option("items", items) if is_item else option("items")
                raise RankingsError(
                    f"{grid.at_text(column, text)}: is {text!r} an item?"
                    f"{in_cells(columns, text, ' It is in {}.')} If it means that nothing is "
                    f"ranked, {how or 'add ' + missing}; if it is one, name all items with {every}"
                )


def _may_be_name(
    columns: Sequence[Column], text: str, codes: Container[str] = ()
) -> tuple[bool, bool]:
    """Return whether a text that means that nothing is ranked may be a name, and is likely one.

    It may be one where it is once in each row, and is likely one where most rows go on behind it
    with names, which none of the other **codes** is.
    """
    is_text = np.array([x.mapped(lambda y: y == text) for x in columns])
    is_name = np.array(
        [
            x.mapped(lambda y: y not in {"", text} and y not in codes and not says_no_rank(y))
            for x in columns
        ]
    )
    goes_on = np.logical_or.accumulate(is_name[::-1])[::-1]
    is_once = bool(is_text.sum(0).max() == 1)
    return is_once, is_once and bool(2 * (is_text[:-1] & goes_on[1:]).sum() > is_text.sum())


def _codes_among_numbers(texts: Collection[str]) -> set[str]:
    """Return the numbers such as 99 among the items 1, 2, …, n, of which none is left out."""
    numbers = {text: whole_number(text) or 0 for text in texts}
    known = _SURE_CODES.union(codes_above(set(numbers.values()) - _SURE_CODES))
    codes = {x for x, number in numbers.items() if number in known}
    rest = {number for x, number in numbers.items() if x not in codes}
    return codes if len(rest) > 2 and rest == {*range(1, len(rest) + 1)} else set()


def in_cells(columns: Sequence[Column], text: str, form: str = ", as in {}") -> str:
    """Return in how many cells a text is, if in several."""
    number = sum(column.counts().get(text, 0) for column in columns)
    return form.format(plural(number, "cell")) if number > 1 else ""


def _codes_among_names(texts: Collection[str]) -> set[str]:
    """Return the texts among names that look like codes.

    They are single characters, numbers such as 99, have no letters, or are in brackets. A number
    such as 9 is none beside further numbers, which are names.
    """
    numbers = {text: number for text in texts if (number := whole_number(text)) is not None}
    are_names = any(x > 0 and x not in CODES for x in numbers.values())
    known = _SURE_CODES if are_names else CODES
    codes = {text for text, number in numbers.items() if number < 1 or number in known}
    signs = {x for x in texts if len(x) == 1 or not any(map(str.isalnum, x))}
    return codes | ({*filter(_IN_BRACKETS.fullmatch, texts), *signs} - numbers.keys())


def cells_are_ranks(columns: Sequence[Column], missing: Sequence[str]) -> bool | None:
    """Return whether cells can only be ranks, as words such as ``1st``, or only items, as texts.

    None if all of them are numbers, which may be ranks or codes of items, or if they are mixed.
    So may texts such as ``1 - Tea``, unless some say which end is best. Texts such as ``1/3`` and
    ``1.5`` are no names: they are taken for ranks, and refused as such.
    """
    keys = {text_key(word) for word in missing}
    texts = {x for column in columns for x in column.values if x and text_key(x) not in keys}
    texts = {x for x in texts if x.casefold() not in _NO_RANK}
    ranks = {x: rank_in_words(x) for x in texts}
    if texts and not any(ranks.values()):
        return all(RANK_OF.fullmatch(x) or _DECIMAL.fullmatch(x) for x in texts)
    if not texts or not all(ranks.values()) or all(whole_number(x) is not None for x in texts):
        return None
    comments = [rank[1] for rank in ranks.values() if rank is not None]
    if all(comments) and not any(map(END_OF_SCALE.search, comments)):
        return None
    return True


def numbers_in(columns: Sequence[Column]) -> np.ndarray:
    """Return the numbers in columns, (rows, columns) int32: 0 if there is none, -1 for a text."""

    def number(text: str) -> int:
        value = whole_number(text) if text else 0
        return value if value is not None and 0 <= value < 2**31 else -1

    return table_of(columns, number)


def rank_number(text: str) -> int:
    """Return the rank that a text is, in words or not: 0 if it is empty, and -1 if it is none."""
    number = whole_number(text) if text else 0
    if number is None and (rank := rank_in_words(text)) is not None:
        number = rank[0]
    return number if number is not None and 0 <= number < 2**31 else -1


def numbers_of_ranks(columns: Sequence[Column]) -> np.ndarray:
    """Return the ranks in columns, in words or not, (rows, columns) int32; 0 and -1 as above."""
    return table_of(columns, rank_number)


def ranks_in(column: Column, num_items: int | None) -> np.ndarray:
    """Return the ranks of a column, (rows,) int32: 0 if there is none, and -1 if it is no rank."""
    most = np.iinfo(np.int32).max if num_items is None else num_items

    def rank(text: str) -> int:
        if not text:
            return 0
        number = whole_number(text)
        return -1 if number is None or not 1 <= number <= most else number

    return column.mapped(rank)
