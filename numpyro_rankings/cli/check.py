"""The command ``numpyro-rankings check``: does this machine compile the kernels correctly?"""

import argparse
import textwrap
from typing import Any

from numpyro_rankings.cli.arguments import UserError
from numpyro_rankings.cli.compilation import check_backends, use_compilation_cache

_ABOUT = """\
Check that JAX compiles the kernels correctly on this machine.

Each kernel makes one sweep of four chains on four rankings or points, compiled in each form in
which it can be run. The sweep of the first chain is compared with the same sweep executed op by op;
those of the other chains are compared between the compiled forms. Run this command once after
installing or updating jaxlib, and on each new kind of device. The first run takes minutes, most of
them spent on compilation; the compiled programs are kept for the next run.
"""

_EXIT = "Exit status: 0 if all kernels agree, 1 if one disagrees, 2 after an error."


def add_command(commands: Any) -> None:
    """Add the command to the subparsers of the program."""
    parser = commands.add_parser(
        "check",
        help="check that JAX compiles the kernels correctly on this machine",
        description=_ABOUT,
        epilog=_EXIT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        action="append",
        help="check only this kernel and its variants, for example PlackettLuceGibbs; can be "
        "repeated",
    )
    parser.add_argument(
        "--variants",
        action="store_true",
        help="check all kernels and their variants, such as SliceGibbs with parallel labels; takes "
        "twice as long",
    )
    parser.set_defaults(do=_check)


def _check(args: argparse.Namespace, _: str) -> int:
    use_compilation_cache(shortest=0.0)  # sweeps executed op by op are many short programs
    check_backends()
    from numpyro_rankings.self_check import SelfCheck, check_kernels, choose_kernels, machine

    try:
        names = choose_kernels(args.kernel, args.variants)
    except ValueError as error:
        raise UserError(f"--kernel: {error}") from None
    result = SelfCheck(machine(), [])
    for name, value in result.machine.items():
        print(f"{name}: {value}")
    print(flush=True)
    for one in check_kernels(names):
        print(one, flush=True)
        result = result._replace(kernels=[*result.kernels, one])
    print(f"\n{textwrap.fill(result.advice, 100, break_on_hyphens=False)}")
    return 0 if result.agrees else 1
