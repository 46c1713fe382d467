"""``numpyro-rankings check``: whether this machine compiles the kernels rightly."""

import argparse
import textwrap
from typing import Any

from numpyro_rankings.cli.arguments import UserError
from numpyro_rankings.cli.run import use_compilation_cache

_ABOUT = """\
Check that this JAX, on this machine, compiles the kernels rightly.

A sweep of each kernel, of four chains on four rankings or points, is made in each form in which it
may be compiled; that of the first chain is compared with the same sweep done op by op, those of the
others form by form. Run it once after installing or changing jaxlib, and on each new kind of
device. The first time takes minutes, most of them compilation, which is kept for the next.
"""


_EXIT = "Exit status: 0 if all kernels agree, 1 if one disagrees, 2 after an error."


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the program."""
    parser = commands.add_parser(
        "check",
        help="check that JAX compiles the kernels rightly on this machine",
        description=_ABOUT,
        epilog=_EXIT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        action="append",
        help="only this kernel with its variants, such as PlackettLuceGibbs; may be repeated",
    )
    parser.add_argument(
        "--variants",
        action="store_true",
        help="all kernels with their variants, such as SliceGibbs with parallel labels: this takes "
        "twice as long",
    )
    parser.set_defaults(do=_check)


def _check(args: argparse.Namespace, _: str) -> int:
    use_compilation_cache(shortest=0.0)  # the sweeps op by op are many short programs
    from numpyro_rankings.self_check import SelfCheck, check_kernels, choose_kernels, machine

    try:
        names = choose_kernels(args.kernel, args.variants)
    except ValueError as error:
        raise UserError(f"--kernel: {error}") from None
    found = SelfCheck(machine(), [])
    for name, value in found.machine.items():
        print(f"{name}: {value}")
    print(flush=True)
    for one in check_kernels(names):
        print(one, flush=True)
        found = found._replace(kernels=[*found.kernels, one])
    print(f"\n{textwrap.fill(found.advice, 100, break_on_hyphens=False)}")
    return 0 if found.agrees else 1
