"""``numpyro-rankings check``: whether this machine compiles the kernels rightly."""

import argparse
import textwrap
from typing import Any

from .command_line import UserError, use_compilation_cache

_ABOUT = """\
Check that this JAX, on this machine, compiles the kernels rightly.

A sweep of each kernel, of four chains on four rankings or points, is compared with the same sweep
done op by op. Run it once after installing or changing jaxlib, and on each new kind of device. The
first time takes minutes, most of them compilation, which is kept for the next.
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
        help="only the kernels whose names begin so, such as PlackettLuceGibbs; may be repeated",
    )
    parser.set_defaults(do=_check)


def _check(args: argparse.Namespace, _: str) -> int:
    use_compilation_cache(shortest=0.0)  # the sweeps op by op are many short programs
    from .self_check import SelfCheck, check_kernels, kernel_names, machine

    names = kernel_names()
    if args.kernel is not None:
        for start in args.kernel:
            if not any(name.startswith(start) for name in names):
                known = dict.fromkeys(name.split(",")[0] for name in names)
                raise UserError(f"--kernel must be one of {', '.join(known)}, got {start!r}")
        names = [name for name in names if name.startswith(tuple(args.kernel))]
    found = SelfCheck(machine(), [])
    for name, value in found.machine.items():
        print(f"{name}: {value}")
    print(flush=True)
    for one in check_kernels(names):
        print(one, flush=True)
        found = found._replace(kernels=[*found.kernels, one])
    print(f"\n{textwrap.fill(found.advice, 100, break_on_hyphens=False)}")
    return 0 if found.agrees else 1
