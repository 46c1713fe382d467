"""Commands as text: the same one with other options, ready to copy."""

import shlex
from collections.abc import Collection, Mapping
from pathlib import Path

OUT = "numpyro-rankings-results"  # folder of the results, where a command names none


def without(command: str, options: Collection[str]) -> list[str]:
    """Return the words of a command without some options, their values and ``--force``."""
    words, kept = iter(shlex.split(command)), []
    for word in words:
        if word in options:
            next(words, None)
        elif word != "--force" and word.partition("=")[0] not in options:
            kept.append(word)
    return kept


def with_options(command: str, options: Mapping[str, object], dropped: Collection[str] = ()) -> str:
    """Return a command with other values of some options.

    :param options: values by option.
    :param dropped: options that it goes without.
    """
    words = without(command, {*options, *dropped})
    for option, value in options.items():
        words += [option, str(value)]
    return shlex.join(words)


def beside(
    command: str, name: str, options: Mapping[str, object], dropped: Collection[str] = ()
) -> str:
    """Return a command with other options, whose results are beside those of the command.

    :param name: what is added to the name of their folder.
    """
    out = Path(_folder(command))
    out = out / name if out.name in ("", "..") else out.with_name(f"{out.name}-{name}")
    return with_options(command, {**options, "--out": out}, {*dropped, "--resume"})


def _folder(command: str) -> str:
    """Return the folder of the results of a command."""
    words = shlex.split(command)
    for option in ("--resume", "--out"):
        for word, following in zip(words, [*words[1:], ""], strict=True):
            if word == option:
                return following
            if word.startswith(f"{option}="):
                return word.partition("=")[2]
    return OUT
