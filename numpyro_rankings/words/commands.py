"""Commands as text: the same one with other options, ready to copy."""

import csv
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpyro_rankings.words.options import words_of_option

OUT = "numpyro-rankings-results"  # folder of the results, where a command names none
DEFAULT_MODEL = "mallows"  # of fit
# options without a value
_FLAGS = (
    *("--approximate", "--evidence", "--no-process", "--force", "--no-progress"),
    *("--highest-first", "--no-highest-first", "--transpose", "--no-transpose"),
)
# options that fit and compare have, but with another meaning, and those that one of them has
_OF_RUN = ("--components", "--minutes", "--out")
_OF_FIT = (
    *("--alpha", "--approximate", "--assignment", "--blocs", "--calibrate", "--draws"),
    *(
        "--effective-size",
        "--ess",
        "--gamma",
        "--init",
        "--max-clusters",
        "--model",
        "--nu",
        "--phi",
        "--r",
    ),
    *(
        "--resume",
        "--rhat",
        "--sampler",
        "--save",
        "--shape",
        "--shares-by",
        "--sigma",
        "--slates",
        "--thin",
        "--warmup",
        "--worths-by",
    ),
)
OF_FIT = (*_OF_RUN, *_OF_FIT)
_OF_COMPARE = ("--evidence", "--kfold", "--models", "--no-process")


def without(command: str, options: Collection[str]) -> list[str]:
    """Return the words of a command without some options, their values and ``--force``.

    Columns that only ``--shares-by`` says to be about the judges are then those of ``--about``.
    """
    words, kept, of_shares = iter(shlex.split(command)), [], ""
    for word in words:
        name, has_value, value = word.partition("=")
        if name in options:
            if name not in _FLAGS:
                value = value if has_value else next(words, "")
            of_shares = value if name == "--shares-by" else of_shares
        elif word != "--force":
            kept.append(word)
    if not of_shares:
        return kept
    texts = [value_of(kept, "--about") or "", of_shares]
    names = [x.strip() for row in csv.reader(texts, skipinitialspace=True) for x in row]
    return shlex.split(answered(shlex.join(kept), {"about": tuple(dict.fromkeys(names))}))


def with_options(command: str, options: Mapping[str, object], dropped: Collection[str] = ()) -> str:
    """Return a command with other values of some options.

    :param options: values by option.
    :param dropped: options that it goes without.
    """
    words = without(command, {*options, *dropped})
    added = [word for option, value in options.items() for word in (option, str(value))]
    end = words.index("--") if "--" in words else len(words)  # names of files follow
    return shlex.join([*words[:end], *added, *words[end:]])


def beside(
    command: str, name: str, options: Mapping[str, object], dropped: Collection[str] = ()
) -> str:
    """Return a command with other options, whose results are beside those of the command.

    :param name: what is added to the name of their folder.
    """
    out = Path(_folder(command))
    out = out / name if out.name in ("", "..") else out.with_name(f"{out.name}-{name}")
    return with_options(command, {**options, "--out": out}, {*dropped, "--resume"})


def compare_command(fit: str) -> str:
    """Return the command that compares models of the file that a command fits."""
    return _another(fit, "compare", {}, _OF_FIT)


def fit_command(compare: str, options: Mapping[str, object]) -> str:
    """Return the command that fits the file of a comparison.

    :param options: those of the model.
    """
    return _another(compare, "fit", options, _OF_COMPARE)


def _another(
    command: str, verb: str, options: Mapping[str, object], dropped: Collection[str]
) -> str:
    program, _, *rest = without(command, {*dropped, *_OF_RUN})
    words = [word for option, value in options.items() for word in (option, str(value))]
    return shlex.join([program, verb, *rest, *words])


def resumed(command: str, out: Path, minutes: float | None = None, option: str = "--resume") -> str:
    """Return the command that goes on with a run, or one that begins the same with ``--out``.

    :param minutes: instead of its own.
    """
    kept = without(command, {"--out", "--resume"} | (set() if minutes is None else {"--minutes"}))
    kept += [] if minutes is None else ["--minutes", f"{minutes:g}"]
    return shlex.join([*kept, option, str(out)])


def answered(command: str, answers: Mapping[str, Any]) -> str:
    """Return a command with the options of a table that answer its questions.

    :param answers: values by the names that the options have in Python.
    """
    rest, kept = iter(shlex.split(command)), []
    for word in rest:
        flag, _, value = word.partition("=")
        name = flag.removeprefix("--").removeprefix("no-").replace("-", "_")
        if not flag.startswith("--") or name not in answers:
            kept.append(word)
        elif not value and not isinstance(answers[name], bool):
            next(rest, None)
    end = kept.index("--") if "--" in kept else len(kept)
    return shlex.join([*kept[:end], *words_of_options(answers), *kept[end:]])


def words_of_options(answers: Mapping[str, Any]) -> list[str]:
    """Return the words of options, of which the values are given by their names in Python."""
    return [word for name, value in answers.items() for word in words_of_option(name, value)]


def _folder(command: str) -> str:
    """Return the folder of the results of a command."""
    words = shlex.split(command)
    found = (value_of(words, option) for option in ("--resume", "--out"))
    return next((x for x in found if x is not None), OUT)


def options_of(command: str) -> dict[str, list[str]]:
    """Return the values of each option of a command; what is no option has an empty name."""
    words, found = iter(shlex.split(command)[1:]), dict[str, list[str]]()
    for word in words:
        name, has_value, value = word.partition("=")
        if not word.startswith("--"):
            name, value = "", word
        elif not has_value and name not in _FLAGS:
            value = next(words, "")
        found.setdefault(name, []).extend([value] if value else [])
    return found


def value_of(words: Sequence[str], option: str) -> str | None:
    """Return the value of an option in the words of a command; None if it is not there."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None
