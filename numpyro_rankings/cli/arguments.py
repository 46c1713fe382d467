"""Options, parsers and checks that the commands share, and the error that users see.

Nothing here imports JAX, so that ``--help`` and mistakes in the arguments are answered at once.
"""

import argparse
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

PROGRAM = "numpyro-rankings"
MAX_CLUSTERS = 64  # default of --max-clusters


class UserError(Exception):
    """A mistake that the user can correct. Its message is what they see, one line.

    Of a run that has draws in its store, a second line is added with the command that goes on.
    """


class HopelessError(UserError):
    """An error that a run would meet again if it went on."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises :class:`UserError` instead of exiting."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see {self.prog} --help)")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the run and of its output."""
    run = parser.add_argument_group("run")
    run.add_argument(
        "--chains",
        type=count("--chains", 1),
        metavar="M",
        help="number of chains (default: 4)",
    )
    run.add_argument(
        "--rhat",
        type=lambda text: positive("--rhat", text),
        metavar="R",
        help="the chains agree if R-hat is at most this (default: 1.01)",
    )
    run.add_argument(
        "--ess",
        type=lambda text: positive("--ess", text),
        metavar="E",
        help="the draws suffice if their effective sample size is at least this (default: 400)",
    )
    run.add_argument(
        "--minutes",
        type=lambda text: positive("--minutes", text),
        metavar="T",
        help="stop after this time, start and compilation included, even if the chains do not "
        "agree yet (default: 10)",
    )
    run.add_argument(
        "--resume",
        type=Path,
        metavar="DIR",
        help="go on with a run that was interrupted or ran out of time, and write its results to "
        "DIR, the --out of that command; the options of the model must be the same, --draws and "
        "the goals may be others; --seed, --chains, --warmup and --thin need not be given again",
    )
    run.add_argument(
        "--warmup",
        type=count("--warmup", 0),
        metavar="W",
        help="with --draws: warm-up sweeps of each chain, which are discarded (default: 1000)",
    )
    run.add_argument(
        "--draws",
        type=count("--draws", 1),
        metavar="D",
        help="sweeps of each chain after the warm-up, instead of as many as are needed (with "
        "--warmup alone: 2000)",
    )
    run.add_argument(
        "--thin",
        type=count("--thin", 1),
        default=None,
        metavar="S",
        help="keep one draw every S sweeps (default: 1, or more if the draws are large; with "
        "--draws: keep about 1000 draws of each chain, fewer if memory is short)",
    )
    run.add_argument(
        "--seed",
        type=count("--seed", 0, 2**32 - 1),
        metavar="N",
        help="seed of the random numbers (default: 0)",
    )

    output = parser.add_argument_group("output")
    output.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for the results (default: numpyro-rankings-results)",
    )
    output.add_argument(
        "--force",
        action="store_true",
        help="if DIR exists, replace the result files of this program in it, and remove an "
        "unfinished run of it, once the new one has made sweeps; not with --resume, which replaces "
        "the results anyway",
    )
    output.add_argument(
        "--no-progress", action="store_true", help="show nothing while the chains run"
    )


def count(option: str, least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers from ``least`` to ``most``."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise UserError(f"{option} must be a whole number, got {text!r}") from None
        if number < least or (most is not None and number > most):
            bounds = f"at least {least}" if most is None else f"from {least} to {most}"
            raise UserError(f"{option} must be {bounds}, got {number}")
        return number

    return parse


def max_clusters(text: str) -> int:
    """Parse ``--max-clusters``; labels are at most 16-bit integers."""
    return count("--max-clusters", 1, 32767)(text)


def positive(option: str, text: str) -> float:
    """Parse a positive number."""
    try:
        number = float(text)
    except ValueError:
        raise UserError(f"{option} must be a number, got {text.strip()!r}") from None
    if not (math.isfinite(number) and number > 0):
        raise UserError(f"{option} must be a positive number, got {text.strip()}")
    return number


def scale(option: str, can_be_flat: bool = True) -> Callable[[str], Any]:
    """Return a parser of a number, of ``gamma(shape,rate)`` and, if allowed, of ``flat``.

    :return: the parser; it returns the number, ``("gamma", shape, rate)`` or ``"flat"``, which
        :func:`as_prior` turns into what the kernels take.
    """

    def parse(text: str) -> float | tuple[str, float, float] | str:
        prior = re.fullmatch(r"\s*gamma\s*\(([^,()]*),([^,()]*)\)\s*", text, re.IGNORECASE)
        if prior:
            return ("gamma", positive(option, prior[1]), positive(option, prior[2]))
        if can_be_flat and text.strip().lower() == "flat":
            return "flat"
        if "(" in text:
            forms = ', "gamma(shape,rate)" or flat' if can_be_flat else ' or "gamma(shape,rate)"'
            raise UserError(f"{option} must be a number{forms}, got {text!r}")
        return positive(option, text)

    return parse


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
    try:
        tempfile.TemporaryDirectory(dir=parent).cleanup()
    except OSError as error:
        raise UserError(f"cannot write to {out}: {parent}: {error.strerror or error}") from None


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
    print(f"{PROGRAM}: note: {text}", file=sys.stderr)
