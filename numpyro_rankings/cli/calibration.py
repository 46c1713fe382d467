"""The option ``--calibrate`` of ``fit``: posterior SBC, its ranks as a table."""

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpyro_rankings.cli.arguments import UserError, note

if TYPE_CHECKING:
    from numpyro_rankings.cli.models import ModelOptions
    from numpyro_rankings.rankings import Orders, Rankings
    from numpyro_rankings.report.findings import Findings

CALIBRATION = "calibration.csv"
_APART = 2**21  # its random numbers are not those of a chain

# Functions import what computes, which takes long to load.


def check_goes_with(args: argparse.Namespace) -> None:
    """Refuse ``--calibrate`` with what posterior SBC does not take."""
    if args.calibrate is None:
        return
    for name in ("weight", "shares_by", "worths_by", "effective_size"):
        if getattr(args, name, None):
            option = "--" + name.replace("_", "-")
            raise UserError(f"--calibrate goes without {option}: leave one of them out")


def check_calibrates(model: Any, rankings: "Rankings | Orders") -> None:
    """Refuse models and data from which no further rankings are simulated."""
    if model.family.has_pool:
        raise UserError(
            f"--calibrate goes without --model {model.name}: its lists may have further items"
        )
    if rankings.are_partial or rankings.kind == "comparisons":
        raise UserError("--calibrate is for rankings without ties, open orders and mistakes")


def tell_of_power(options: "ModelOptions", calibrate: int | None) -> None:
    """Say before the run that a number of groups at less than full power is not calibrated."""
    if calibrate is not None and options.effective_size is not None:
        note(
            "--calibrate does nothing here, because the groups are those of fewer rankings: give "
            f"--components {options.components} for a fit of all of them"
        )


def with_calibration(
    findings: "Findings", kernel: Any, sampled: Any, options: Any, seed: int
) -> "Findings":
    """Add what refits of further rankings say; a note says why there is nothing to add.

    There are no more of them than the draws are worth. Ctrl-C ends them, and not the command.

    :param sampled: the draws of the command, and **options**, all of it.
    """
    number = options.calibrate
    if sampled.ended == "interrupted" or options.model.effective_size is not None:
        return findings
    import jax

    from numpyro_rankings.posterior.calibration import posterior_sbc

    key = jax.random.fold_in(jax.random.key(seed), _APART)
    worth = findings.table[["ess_bulk", "ess_tail"]].min(axis=None)
    if worth == worth and number > worth:  # not NaN
        number = max(2, int(worth))
        note(f"--calibrate takes {number} draws, because the fit is worth no more independent ones")
    try:
        found = posterior_sbc(key, kernel, sampled.mcmc, num_replicates=number)
    except KeyboardInterrupt:
        note("--calibrate was interrupted: the results are without it")
        return findings
    except ValueError as error:
        note(f"--calibrate does nothing here: {error}")
        return findings
    return findings._replace(calibration=found)


def write_calibration(folder: Path, findings: "Findings") -> None:
    """Write ``calibration.csv``, one row for each quantity: how often each rank is there."""
    from numpyro_rankings.cli.tables import write_rows

    found = findings.calibration
    assert found is not None
    columns = ["quantity", "p_value", *(f"rank_{k}" for k in range(found.num_draws + 1))]
    rows = []
    for name, ranks in found.ranks.items():
        times = Counter(ranks.tolist())
        counts = (str(times[k]) for k in range(found.num_draws + 1))
        rows.append([name, f"{found.p_values[name]:.4g}", *counts])
    write_rows(folder / CALIBRATION, columns, rows)
