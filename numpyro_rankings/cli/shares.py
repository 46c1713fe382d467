"""The option ``--shares-by`` of ``fit``: shares of groups that depend on columns of the judges."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpyro_rankings.cli.arguments import UserError, note
from numpyro_rankings.words import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpyro_rankings.rankings import JudgeCovariates
    from numpyro_rankings.readers import Survey
    from numpyro_rankings.report.findings import Findings

SHARES_BY = "shares_by.csv"
_MODELS = ("mallows", "plackett-luce")
_FEW_NUMBERS = 10  # different ones in a column; they may be codes

# Functions import what computes, which takes long to load.


def check_goes_with(args: argparse.Namespace, auto: int) -> None:
    """Refuse ``--shares-by`` with options that it does not go with."""
    if not args.shares_by:
        return
    if not args.file:
        raise UserError("--shares-by goes with a FILE")
    if args.model not in _MODELS:
        raise UserError(f"--shares-by goes with --model {' or '.join(_MODELS)}")
    if args.sampler not in (None, "tempered"):
        raise UserError(
            f"--shares-by goes with --sampler tempered, which is the default with it: leave "
            f"--sampler {args.sampler} out"
        )
    if args.components is None or args.components < 2:
        found = " that --components auto found" if args.components == auto else ""
        raise UserError(
            "--shares-by goes with a number of groups from 2 on: give --components K, such as "
            f"--components 2, or the number{found or ' that a fit without --shares-by found'}"
        )


def by_covariates(
    file: str | None, survey: "Survey", names: "Sequence[str]", tells: bool = False
) -> "tuple[Survey, JudgeCovariates | None]":
    """Return a survey in rows of equal covariates, and these; as it is if no columns are named.

    :param tells: whether a note names the columns of few numbers, which may be codes.
    """
    if not names:
        return survey, None
    from numpyro_rankings.rankings import RankingsError, judge_covariates

    if survey.rankings.are_partial or survey.rankings.kind == "comparisons":
        mistakes = survey.rankings.kind == "comparisons"
        remedy = "--cycles drop" if mistakes else "--ties drop or --ties order"
        remedy = (
            "" if survey.rankings.offered() is not None else f", or read the file with {remedy}"
        )
        raise UserError(
            f"{file}: some judges tie items, leave their order open or were offered a part of "
            f"them, and --shares-by is for rankings alone: leave it out{remedy}"
        )
    for name in names:
        empty = [k for k, text in enumerate(survey.about[name]) if not text.strip()]
        if empty:
            rows = survey.rows
            place = f"ranking {empty[0] + 1}" if rows is None else f"row {rows[empty[0]]}"
            raise UserError(
                f"{file}: {place} has nothing in the column {name!r} of --shares-by "
                f"({len(empty)} of {len(survey.about[name])} judges): write there what it means, "
                "such as unknown, or leave these judges out of the file"
            )
    try:
        made = judge_covariates(survey, survey.about, names)
    except RankingsError as error:
        raise UserError(f"{file}: --shares-by: {error}") from None
    codes = [x.name for x in made.covariates.terms if not x.levels]
    codes = [name for name in codes if len(set(survey.about[name])) <= _FEW_NUMBERS]
    if codes and tells:
        note(
            f"--shares-by takes {listed(codes)} as numbers with a linear effect: if these are "
            "codes, write them as text, such as r1"
        )
    survey = survey._replace(rankings=made.rankings, label_index=made.judges)
    return survey, made.covariates


def with_shares(findings: "Findings", covariates: "JudgeCovariates | None") -> "Findings":
    """Add the shares of the groups that hold at values of the covariates."""
    if covariates is None:
        return findings
    if findings.reference is None:
        note("--shares-by has nothing to tell: there is one group")
        return findings
    from numpyro_rankings.predict import shares_by

    found = shares_by(findings.described, covariates, findings.reference)
    labels = [p.label for p in findings.held or findings.profiles]
    return findings._replace(shares_by=found.take(labels))


def write_shares(folder: Path, findings: "Findings") -> None:
    """Write ``shares_by.csv``: a row for each value of a covariate and each group."""
    from numpyro_rankings.cli.tables import write_rows
    from numpyro_rankings.families.base import columns_with_interval

    found = findings.shares_by
    assert found is not None
    rows: list[dict[str, Any]] = [
        {
            "covariate": found.covariate[v],
            "value": found.value[v],
            "judges": found.num_judges[v],
            "cluster": k + 1,
            **columns_with_interval("share", found.share[v, k], found.share_interval[v, k]),
            **columns_with_interval(
                "difference", found.difference[v, k], found.difference_interval[v, k]
            ),
        }
        for v in range(len(found.value))
        for k in range(len(found.average))
    ]
    write_rows(folder / SHARES_BY, rows[0], (row.values() for row in rows))


def print_shares(findings: "Findings") -> None:
    """Print the share of each group at each value, if the table fits on the screen."""
    from numpyro_rankings.report.shares import values_shown
    from numpyro_rankings.words import percent

    found = findings.shares_by
    if found is None or len(found.average) > 6 or len(found.value) > 12:
        return
    print("\nShare of each group if all judges had one value (90% interval of the difference)")
    for v, name in enumerate(values_shown(found)):
        cells = [
            f"{percent(found.share[v, k])} ({_signed(low)} to {_signed(high)})"
            for k, (low, high) in enumerate(found.difference_interval[v])
        ]
        print(f"  {name[:24]:<24}  " + "  ".join(f"{cell:>20}" for cell in cells))


def _signed(x: float) -> str:
    return f"{100 * x:+.0f}"
