"""The program ``numpyro-rankings``: its commands, and its exit status."""

import argparse
import contextlib
import io
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn

from numpyro_rankings._system.interrupts import (
    SignalInterrupt,
    ended_by,
    ended_by_signals,
    exit_status,
    ignore_signals,
)
from numpyro_rankings._version import __version__
from numpyro_rankings.cli import assign, check, cluster, compare, describe, fit, warm
from numpyro_rankings.cli.arguments import (
    PROGRAM,
    Parser,
    QuestionsError,
    UserError,
    for_screen,
)
from numpyro_rankings.cli.streams import outlived_streams
from numpyro_rankings.words import in_one_line
from numpyro_rankings.words.commands import answered
from numpyro_rankings.words.options import options_of_commands

_DESCRIPTION = """\
Find groups in rankings, points or documents with Bayesian mixture models.

'%(prog)s fit' fits a Dirichlet process mixture of generalized Mallows models (Meilă & Chen,
UAI 2010), of many different rankings a finite one, or a Plackett–Luce model or mixture (Caron, Teh
& Murphy, AoAS 2014), to a file of rankings by Markov chain Monte Carlo. The lists may differ in
length. For each group it reports the consensus order and how closely the members follow it.

See '%(prog)s COMMAND --help' for the options of a command.
"""


def run_program() -> NoReturn:
    """Run the command line as this process, and end it with the exit status."""
    status = main()
    ignore_signals()  # nothing is left that they could end but Python itself, which would complain
    if status > 128:  # at once: Python would wait for a program that is being compiled
        os._exit(status)
    sys.exit(status)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    :param argv: the arguments; by default those of the process.
    :return: the exit status: 0 for success, 1 if a check fails, 2 after a user's error, and if
        interrupted 128 and the number of the signal: 130 after Ctrl-C, 143 after SIGTERM, 129 after
        SIGHUP.
    """
    if "_ARGCOMPLETE" in os.environ:  # a shell asks, which has loaded the same package
        import argcomplete

        argcomplete.autocomplete(make_parser())
    argv = sys.argv[1:] if argv is None else list(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA's remarks on slow compilation
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the console may have no Greek letters
            stream.reconfigure(errors="replace")
    try:
        with outlived_streams(), ended_by_signals(), options_of_commands():
            return _do(argv)
    except UserError as error:  # of the screen, where the error is not read either, or of its end
        with contextlib.suppress(OSError):
            print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 2


def _do(argv: list[str]) -> int:
    argv = list(_with_codes(argv))
    try:
        args, unknown = make_parser().parse_known_args(argv)
        if args.command is None and not unknown:
            make_parser().print_help()
            return 0
        if unknown:
            raise UserError(
                f"unrecognized arguments: {shlex.join(unknown)} (see {PROGRAM} "
                f"{args.command or ''} --help)".replace("  ", " ")
            )
        status = args.do(args, shlex.join([PROGRAM, *argv]))
    except UserError as error:
        print(for_screen(f"{PROGRAM}: error: {error}", sys.stderr), file=sys.stderr)
        if isinstance(error, QuestionsError):
            print(for_screen(error.about, sys.stderr), file=sys.stderr)
            if error.is_read:  # the command stays in one line, to be copied
                again = answered(shlex.join([PROGRAM, *argv]), error.answers)
                print(f"  {in_one_line(again)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        return _interrupted(interrupt)
    except Exception:
        if (number := ended_by()) is None:
            raise
        return _interrupted(SignalInterrupt(number))
    except SystemExit as end:  # --help and --version
        return int(end.code or 0)
    return status or 0


_TAKE_CODES = ("--missing", "--offered", "--not-offered", "--separator")


def _with_codes(argv: Iterable[str]) -> Iterator[str]:
    """Yield the arguments, with ``--missing -99,NA`` as one: argparse would see an option -9."""
    remaining = iter(argv)
    for argument in remaining:
        if argument in _TAKE_CODES and (value := next(remaining, None)) is not None:
            if re.match(r"-(?!-?[A-Za-z])", value):
                yield f"{argument}={value}"
                continue
            yield from (argument, value)
        else:
            yield argument


def _interrupted(interrupt: KeyboardInterrupt) -> int:
    """Say that the command was interrupted, and return its exit status."""
    what = str(interrupt) or "interrupted, nothing was written"
    print(f"\n{PROGRAM}: {what}", file=sys.stderr)
    return exit_status(interrupt)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the program, with all commands."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog=PROGRAM, description=_DESCRIPTION, formatter_class=raw)
    version = f"{PROGRAM} {__version__}"
    parser.add_argument(
        "--version", action="version", version=version, help="print the version and exit"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in (fit, assign, describe, compare, cluster, check, warm):
        command.add_command(commands)
    return parser
