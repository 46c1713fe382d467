"""Arguments that the commands share, and the errors of users."""

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
MIN_DRAWS = 4  # what R-hat needs


class UserError(Exception):
    """Something the user can put right; its message is the one line that they see."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see {self.prog} --help)")


def add_run_options(parser: argparse.ArgumentParser, files: str) -> None:
    """Those of the run and of its output, so many ``files``."""
    run = parser.add_argument_group("run")
    run.add_argument(
        "--chains", type=count("--chains", 1), default=4, metavar="M", help="default: 4"
    )
    run.add_argument(
        "--warmup",
        type=count("--warmup", 0),
        default=1000,
        metavar="W",
        help="sweeps of each chain before any is kept (default: 1000)",
    )
    run.add_argument(
        "--draws",
        type=count("--draws", 1),
        default=2000,
        metavar="D",
        help="sweeps of each chain after that (default: 2000)",
    )
    run.add_argument(
        "--thin",
        type=count("--thin", 1),
        default=None,
        metavar="S",
        help="keep every S-th of them (default: about 1000 draws, fewer if memory is short)",
    )
    run.add_argument(
        "--seed", type=count("--seed", 0, 2**32 - 1), default=0, metavar="N", help="default: 0"
    )

    output = parser.add_argument_group("output")
    output.add_argument(
        "--out",
        type=Path,
        default=Path("numpyro-rankings-results"),
        metavar="DIR",
        help="default: numpyro-rankings-results",
    )
    output.add_argument(
        "--force", action="store_true", help=f"replace the {files} files if DIR exists"
    )
    output.add_argument("--no-progress", action="store_true", help="no progress bar")


def count(option: str, least: int, most: int | None = None) -> Callable[[str], int]:
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


def positive(option: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise UserError(f"{option} must be a number, got {text.strip()!r}") from None
    if not (math.isfinite(number) and number > 0):
        raise UserError(f"{option} must be a positive number, got {text.strip()}")
    return number


def scale(option: str, can_be_flat: bool = True) -> Callable[[str], Any]:
    """A number, the shape and rate of a Gamma prior, or ``"flat"``."""

    def parse(text: str) -> float | tuple[str, float, float] | str:
        prior = re.fullmatch(r"\s*gamma\s*\(([^,()]*),([^,()]*)\)\s*", text, re.IGNORECASE)
        if prior:
            return ("gamma", positive(option, prior[1]), positive(option, prior[2]))
        if can_be_flat and text.strip().lower() == "flat":
            return "flat"
        if "(" in text:
            flat = '"gamma(shape,rate)" or flat' if can_be_flat else 'or "gamma(shape,rate)"'
            comma = ", " if can_be_flat else " "
            raise UserError(f"{option} must be a number{comma}{flat}, got {text!r}")
        return positive(option, text)

    return parse


def check_draws(args: argparse.Namespace) -> None:
    kept = args.draws // (args.thin or 1)
    if kept < MIN_DRAWS:
        raise UserError(
            f"--draws {args.draws} with --thin {args.thin or 1} keeps {kept} draws; at least "
            f"{MIN_DRAWS} are needed"
        )


def check_output(out: Path, force: bool) -> None:
    """Complain before an hour of sampling, not after it."""
    if os.path.lexists(out):
        if not out.is_dir():
            raise UserError(f"{out} exists and is not a folder: give another --out")
        if not force:
            raise UserError(f"the folder {out} exists: add --force to replace its results")
        parent = out
    else:
        parent = next(p for p in out.absolute().parents if os.path.lexists(p))
    try:
        tempfile.TemporaryDirectory(dir=parent).cleanup()
    except OSError as error:
        raise UserError(f"cannot write to {out}: {parent}: {error.strerror or error}") from None


def check_file(name: str, what: str = "rankings") -> None:
    """Answer the commonest slips at once; the reader knows the others."""
    if not name:
        raise UserError("the name of the file is empty")
    if Path(name).is_dir():
        raise UserError(f"{name}: is a folder, not a file of {what}")
    if not Path(name).exists():
        raise UserError(f"{name}: no such file")


def note(text: str) -> None:
    print(f"{PROGRAM}: note: {text}", file=sys.stderr)


def as_prior(value: Any) -> Any:
    """What :func:`scale` has read, as the kernels take it."""
    import numpyro.distributions as dist

    from numpyro_rankings.distributions import FlatLog

    if value == "flat":
        return FlatLog()
    return dist.Gamma(*value[1:]) if isinstance(value, tuple) else value
