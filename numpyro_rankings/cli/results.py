"""What the commands print and write."""

import argparse
import math
import os
import shutil
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from numpyro_rankings.cli.arguments import UserError


def describe_run(args: argparse.Namespace, thin: int) -> dict[str, str]:
    """How the run was made, as the report lists it."""
    import platform

    import arviz
    import jax
    import jaxlib
    import numpy as np
    import numpyro

    from numpyro_rankings._version import __version__

    sweeps = f"{args.chains} chains of {args.warmup} sweeps of warm-up and {args.draws}"
    return {
        "run": f"{sweeps} more, every {thin} kept" if thin > 1 else f"{sweeps} kept",
        "seed": str(args.seed),
        "versions": f"numpyro-rankings {__version__}, numpyro {numpyro.__version__}, "
        f"jax {jax.__version__}, jaxlib {jaxlib.__version__}, arviz {arviz.__version__}, "
        f"numpy {np.__version__}, Python {platform.python_version()}",
    }


def write_at_once(out: Path, files: Sequence[str], write: Callable[[Path], None]) -> None:
    """Write all files beside the output folder, then move them there at once.

    :param write: puts the ``files`` into the folder that it is given.
    :raises UserError: if that cannot be done.
    """
    place = out.absolute()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as folder:
            done = Path(folder) / "results"
            done.mkdir()
            write(done)
            if place.exists():  # --force: other files that are there stay
                for name in files:
                    os.replace(done / name, place / name)
            else:
                shutil.move(done, place)
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror or error}") from None


def print_reference(reference: Any) -> None:
    """Which partition the groups are those of."""
    most = math.log(len(reference.labels))
    print()
    _print_wrapped(
        f"The groups are those of {reference.in_words}: {reference.expected_loss:.3g} nats on "
        f"average, of {most:.3g} at most."
    )


def _print_wrapped(text: str, indent: str = "") -> None:
    width = shutil.get_terminal_size((100, 24)).columns
    print(textwrap.fill(text, max(40, width), initial_indent=indent, subsequent_indent=indent))


def print_diagnostics(data: Any, out: Path, files: Sequence[str]) -> None:
    """Whether the run can be trusted, and where its results are."""
    from numpyro_rankings.diagnostics import diagnostics_table, verdict
    from numpyro_rankings.words import number

    table = diagnostics_table(data)
    print(
        "\nquantity                                  mean         sd  ESS bulk  ESS tail     R-hat"
    )
    for name, row in table.iterrows():
        print(
            f"{name!s:<34}{row['mean']:>12,.5g}{row['sd']:>11,.3g}"
            f"{number(row['ess_bulk'], ',.0f'):>10}{number(row['ess_tail'], ',.0f'):>10}"
            f"{row['note'] or number(row['r_hat'], '.3f'):>10}"
        )
    judged = verdict(data, table)
    print(f"\n{judged.headline}")
    for reason in judged.reasons:
        _print_wrapped(reason, "  ")
    others = ", ".join(name for name in files if name != "report.html")
    print(f"\nResults: {out / 'report.html'} (open it in a browser), {others}")


def fit_width(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
