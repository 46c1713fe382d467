"""Options, parsers and checks that the commands share, and the error that users see.

Nothing here imports JAX, so that ``--help`` and mistakes in the arguments are answered at once.
"""

import argparse
import contextlib
import csv
import functools
import itertools
import math
import os
import re
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from numpyro_rankings.words.commands import OF_FIT
from numpyro_rankings.words.options import alike, meant_by, options_like

PROGRAM = "numpyro-rankings"
MAX_CLUSTERS = 64  # default of --max-clusters
MOST_CLUSTERS = 32767  # labels are at most 16-bit integers
_INDENT = "  "  # of the further lines of a note
Options = TypeVar("Options")
Scale = float | tuple[str, float, float] | str  # a number, a gamma prior, or "flat"


class UserError(Exception):
    """A mistake that the user can correct, told in one line, and one with how to go on."""


class HopelessError(UserError):
    """An error that a run would meet again if it went on."""


class QuestionsError(UserError):
    """What is to be answered before a file can be read.

    :param answers: options that answer it, by their names in Python.
    :param about: what is said of the command that has them.
    :param is_read: whether the file is read with them, so that the command follows.
    """

    def __init__(
        self, message: str, answers: Mapping[str, Any], about: str, is_read: bool = True
    ) -> None:
        super().__init__(message)
        self.answers, self.about, self.is_read = dict(answers), about, is_read


@contextlib.contextmanager
def as_user_errors(*kinds: type[Exception], told_as: type[UserError] = UserError) -> Iterator[None]:
    """Turn errors of these kinds, whose messages are for users, into one of a command."""
    try:
        yield
    except kinds as error:
        raise told_as(str(error)) from None


@contextlib.contextmanager
def file_errors(what: str) -> Iterator[None]:
    """Turn errors of the file system into one line, after what could not be done."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{what}: {error.strerror or error}") from None


class Parser(argparse.ArgumentParser):
    """An argument parser that raises :class:`UserError` instead of exiting."""

    def error(self, message: str) -> NoReturn:
        wrong = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if wrong:
            message += _did_you_mean(alike(wrong[1], re.split("[', ]+", wrong[2])))
        raise UserError(f"{message} (see {self.prog} --help)")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse options that do not exist, before those that are missing."""
        if self._subparsers is None and args is not None:
            words = list(itertools.takewhile(lambda x: x != "--", args))
            for before, word in zip(["", *words], words, strict=False):
                flag = word.partition("=")[0]
                if re.match("--[A-Za-z]", flag) and not self._get_option_tuples(flag):
                    if flag not in self._option_string_actions:
                        meant = self._meant_by(flag)
                        taker = self._option_string_actions.get(before)
                        if not meant and taker is not None and taker.nargs is None:
                            meant = f"; if it is the value of {before}, write {before}={word}"
                        self.error(f"unrecognized arguments: {flag}{meant}")
        return super().parse_known_args(args, namespace)

    def _get_values(self, action: Any, arg_strings: Any) -> Any:
        """Keep ``--`` as a value, as in ``--missing=--``, where argparse drops it."""
        if action.option_strings and action.nargs is None and list(arg_strings) == ["--"]:
            self._check_value(action, value := self._get_value(action, "--"))
            return value
        return super()._get_values(action, arg_strings)

    def _meant_by(self, flag: str) -> str:
        """Ask for the option that may be meant by one that does not exist."""
        words, known = meant_by(flag), options_like(flag, self._option_string_actions)
        of_fit = [x for x in (flag, *words) if x in OF_FIT]
        if of_fit and not (words and known):  # others are alike by chance
            return f"; did you mean {of_fit[0]} of {PROGRAM} fit?"
        return _did_you_mean(known)


def _did_you_mean(names: Sequence[str]) -> str:
    return f"; did you mean {' or '.join(names)}?" if names else ""


# ---------------------------------------------------------------------------------------------
# Options as fields of dataclasses
# ---------------------------------------------------------------------------------------------


def option(
    text: str,
    metavar: str | None = None,
    parse: Callable[[str, str], Any] | None = None,
    *,
    default: Any = None,
    group: str | None = None,
    exclusive: bool = False,
    **settings: Any,
) -> Any:
    """Return the field of an option, which is named after it.

    :param parse: returns its value, given the option as it is written and its text.
    :param group: title above it and the following ones in the help, if it is another one.
    :param exclusive: whether it goes without the other exclusive options.
    """
    settings |= {"help": text, "default": default}
    if metavar is not None:
        settings["metavar"] = metavar
    about = {"settings": settings, "parse": parse, "group": group, "exclusive": exclusive}
    return field(default=default, metadata=about)


def add_options(parser: argparse.ArgumentParser, options: type) -> None:
    """Add the options of a dataclass to a parser; other fields of it are left out."""
    group: Any = parser
    exclusive = None
    for each in fields(options):
        if not each.metadata:
            continue
        flag, settings = "--" + each.name.replace("_", "-"), dict(each.metadata["settings"])
        if (title := each.metadata["group"]) is not None:
            group = parser.add_argument_group(title) if title else parser
        if (parse := each.metadata["parse"]) is not None:
            settings["type"] = functools.partial(parse, flag)
        if each.metadata["exclusive"]:
            exclusive = exclusive or group.add_mutually_exclusive_group()
            exclusive.add_argument(flag, **settings)
        else:
            group.add_argument(flag, **settings)


def take_options(options: type[Options], args: argparse.Namespace, **others: Any) -> Options:
    """Return the options of a dataclass from the parsed arguments of the same names, or others."""
    names = {each.name for each in fields(options)} - {*others}  # type: ignore[arg-type]
    return options(**{name: getattr(args, name) for name in names}, **others)


# ---------------------------------------------------------------------------------------------
# Parsers
# ---------------------------------------------------------------------------------------------


def count(least: int, most: int | None = None) -> Callable[[str, str], int]:
    """Return a parser of whole numbers from ``least`` to ``most``."""

    def parse(name: str, text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise UserError(f"{name} must be a whole number, got {text!r}") from None
        if number < least or (most is not None and number > most):
            bounds = f"at least {least}" if most is None else f"from {least} to {most}"
            raise UserError(f"{name} must be {bounds}, got {number}")
        return number

    return parse


def positive(name: str, text: str) -> float:
    """Parse a positive number."""
    try:
        number = float(text)
    except ValueError:
        raise UserError(f"{name} must be a number, got {text.strip()!r}") from None
    if not (math.isfinite(number) and number > 0):
        raise UserError(f"{name} must be a positive number, got {text.strip()}")
    return number


def scale(name: str, text: str, can_be_flat: bool = True) -> Scale:
    """Parse a number, ``gamma(shape,rate)`` and, if allowed, ``flat``, for :func:`as_prior`."""
    prior = re.fullmatch(r"\s*gamma\s*\(([^,()]*),([^,()]*)\)\s*", text, re.IGNORECASE)
    if prior:
        return ("gamma", positive(name, prior[1]), positive(name, prior[2]))
    if can_be_flat and text.strip().lower() == "flat":
        return "flat"
    if "(" in text:
        forms = ', "gamma(shape,rate)" or flat' if can_be_flat else ' or "gamma(shape,rate)"'
        raise UserError(f"{name} must be a number{forms}, got {text!r}")
    return positive(name, text)


def parse_names(text: str) -> tuple[str, ...]:
    """Split a list of names at commas; a name that contains one is put into quotes."""
    try:
        names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error as error:
        raise UserError(f"the list of names {text!r} cannot be read: {error}") from None
    if not names or not all(names) or len(set(names)) < len(names):
        raise UserError(f"the list of names {text!r} has an empty name, or the same name twice")
    return tuple(names)


def as_prior(value: Any) -> Any:
    """Convert the result of a :func:`scale` parser to a number or a NumPyro distribution."""
    import numpyro.distributions as dist

    from numpyro_rankings.distributions import FlatLog

    if value == "flat":
        return FlatLog()
    return dist.Gamma(*value[1:]) if isinstance(value, tuple) else value


def check_output(out: Path, force: bool) -> None:
    """Refuse an output folder that cannot be written to, before the sampling and not after it."""
    if os.path.lexists(out):
        if not out.is_dir():
            raise UserError(f"{out} exists and is not a folder: choose another --out")
        if not force:
            raise UserError(f"the folder {out} exists: use --force to replace the results in it")
        parent = out
    else:
        parent = next(p for p in out.absolute().parents if os.path.lexists(p))
    with file_errors(f"cannot write to {out}: {parent}"):
        tempfile.TemporaryDirectory(dir=parent).cleanup()


def check_file(name: str, what: str = "rankings") -> None:
    """Refuse an input file that does not exist; all other problems are found by its reader."""
    if not name:
        raise UserError("the name of the file is empty")
    if Path(name).is_dir():
        raise UserError(f"{name}: is a folder, not a file of {what}")
    if not Path(name).exists():
        raise UserError(f"{name}: no such file")


def note(text: str) -> None:
    """Print a note to the user on stderr."""
    print(for_screen(f"{PROGRAM}: note: {text}", sys.stderr), file=sys.stderr)


def for_screen(text: str, stream: Any) -> str:
    """Return a text in lines as wide as the terminal, broken between words; as it is elsewhere."""
    if not stream.isatty():
        return text
    width = screen_width()
    wrap = functools.partial(textwrap.fill, break_long_words=False, break_on_hyphens=False)
    return "\n".join(
        line if len(line) <= width else wrap(line, width, subsequent_indent=_INDENT)
        for line in text.split("\n")
    )


def screen_width() -> int:
    """Return the number of letters in a line of the terminal, 80 where it is not known."""
    return max(20, shutil.get_terminal_size().columns)
