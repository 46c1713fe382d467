"""All that is odd in a file, asked at once.

A reader refuses what is odd, and its message names the options that settle it. Here the file is
read again with the first of them, until nothing more is asked; where an answer leads nowhere, the
next one is tried. So no reader has to go on after what it refuses.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.words.options import NamedOption, named_options

_MOST_READINGS = 30  # after the first one
_ADDED_TO = ("missing", "about")  # options whose further values are added to those given


class Questions(NamedTuple):
    """What is odd in a file, and answers with which it can be read.

    - **texts** - what is odd, where, and which options settle it, in the order of reading.
    - **answers** - the options that answer each: the first ones with which the file can be read.
      Nothing, for the last one, if the file cannot be read on before a human decides.
    - **options** - all answers together, as :func:`~numpyro_rankings.read_survey` takes them beside
      the options that were given, which they replace.
    - **is_read** - whether the file is read with them.
    """

    texts: tuple[str, ...]
    answers: tuple[Mapping[str, Any], ...]
    options: Mapping[str, Any]
    is_read: bool


def read_or_ask(read: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Return what **read** returns with the given options, or add all questions to its error."""
    outcome, named = _try(read, given)
    if not isinstance(outcome, RankingsError):
        return outcome
    search = _Search(read, given)
    search.go_on({}, [], outcome, named)
    outcome.questions = search.found
    raise outcome


def _try(read: Callable[..., Any], options: Mapping[str, Any]) -> tuple[Any, list[NamedOption]]:
    """Return what was read, or the error, and the options that were named meanwhile."""
    with named_options() as named:
        try:
            return read(**options), named
        except RankingsError as error:
            return error, named


class _Search:
    """Tries answers, the first one first, until the file can be read."""

    def __init__(self, read: Callable[..., Any], given: Mapping[str, Any]) -> None:
        self._read, self._given = read, given
        self._tried: list[dict[str, Any]] = [{}]
        self.found = Questions((), (), {}, False)

    def go_on(
        self,
        options: dict[str, Any],
        asked: Sequence[tuple[str, dict[str, Any]]],
        error: RankingsError,
        named: Sequence[NamedOption],
    ) -> bool:
        """Answer a question, and those that come after it; return whether the file can be read.

        :param options: the answers so far, and **asked** the questions with the answer of each.
        """
        text = str(error)
        in_text = [x for x in named if x.is_answer and x.text in text]
        for one in sorted(in_text, key=lambda x: text.index(x.text)):
            new = self._with_answer(options, one.name, one.value)
            if new in self._tried or len(self._tried) > _MOST_READINGS:
                continue
            self._tried.append(new)
            path = [*asked, (text, {one.name: one.value})]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    outcome, further = _try(self._read, {**self._given, **new})
                except Exception:  # options that go together badly are no mistake of the user
                    continue
            if not isinstance(outcome, RankingsError):
                self.found = _questions(path, new, True)
                return True
            if self.go_on(new, path, outcome, further):
                return True
        # what was answered in vain is asked once, without the answer
        while asked and asked[-1][0] == text:
            asked = asked[:-1]
        kept: dict[str, Any] = {}
        for _, answer in asked:
            for name, value in answer.items():
                kept = self._with_answer(kept, name, value)
        left = _questions([*asked, (text, {})], kept, False)
        if len(left.texts) > len(self.found.texts):
            self.found = left
        return False

    def _with_answer(self, options: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
        """Return the answers with one more; the same ones if it changes nothing."""
        before = options.get(name, self._given.get(name))
        if name in _ADDED_TO:
            known = before
            if isinstance(before, str):  # as a caller in Python may write them
                known = before.split(",") if name == "missing" else [before]
            both = (*(() if known is None else known), *_names(value))
            value = tuple(dict.fromkeys(map(str, both)))
        elif isinstance(before, str | int) and before == value:
            return options
        return {**options, name: value}


def _names(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _questions(
    asked: Sequence[tuple[str, dict[str, Any]]], options: dict[str, Any], is_read: bool
) -> Questions:
    """Put questions together; one that needs several options was asked as often."""
    answers: dict[str, dict[str, Any]] = {}
    for text, answer in asked:
        # an answer that led on may have been replaced by a later one
        final = {k: v if k in _ADDED_TO else options[k] for k, v in answer.items()}
        answers.setdefault(text, {}).update(final)
    return Questions(tuple(answers), tuple(answers.values()), options, is_read)
