"""The option ``--worths-by`` of ``fit``: covariates of the items, their effects as a table."""

from pathlib import Path
from typing import TYPE_CHECKING

from numpyro_rankings.cli.arguments import UserError

if TYPE_CHECKING:
    from numpyro_rankings.rankings import ItemCovariates
    from numpyro_rankings.readers import Survey
    from numpyro_rankings.report.findings import Findings

EFFECTS = "item_effects.csv"

# Functions import what reads tables and what computes, which take long to load.


def read_covariates(source: str, survey: "Survey", is_of_several: bool = False) -> "ItemCovariates":
    """Return the covariates of the items, by a table whose first column has their names.

    Rows of other items are left out if all that are ranked have one.

    :param is_of_several: whether the table is of several files, of which each may have some of its
        items only.
    """
    import pandas as pd

    from numpyro_rankings.rankings import RankingsError, item_covariates
    from numpyro_rankings.readers.grids import TEXT_SUFFIXES, read_grid

    if not Path(source).is_file():
        raise UserError(f"--worths-by {source}: there is no such file")
    if Path(source).suffix.lower() not in (*TEXT_SUFFIXES, ".xlsx"):
        raise UserError(f"--worths-by {source}: must be a table .csv, .tsv, .txt or .xlsx")
    try:
        grid = read_grid(source)
        columns = grid.columns
        rows, items = range(len(grid.numbers)), set(map(str, survey.rankings.items))
        names = [grid.column(columns[0]).text(row).strip() for row in rows]
        takes_others = is_of_several or items <= {*names}  # else a name may be misspelt
        kept = [row for row in rows if not takes_others or names[row] in items]
        frame = pd.DataFrame({x: [grid.column(x).text(row) for row in kept] for x in columns})
        return item_covariates(frame, items=survey.rankings.items, item=columns[0])
    except RankingsError as error:
        raise UserError(f"--worths-by {source}: {error}") from None


def with_effects(findings: "Findings", covariates: "ItemCovariates") -> "Findings":
    """Add what the covariates do to the weights."""
    from numpyro_rankings.posterior.item_effects import item_effects

    return findings._replace(item_effects=item_effects(findings.described, covariates))


def write_effects(folder: Path, findings: "Findings") -> None:
    """Write ``item_effects.csv``, one row for each covariate."""
    from numpyro_rankings.cli.tables import write_rows
    from numpyro_rankings.families.base import columns_with_interval

    found = findings.item_effects
    assert found is not None
    rows = [
        {
            "covariate": name,
            "step": found.steps[k],
            **columns_with_interval("effect", found.effect[k], found.effect_interval[k]),
            **columns_with_interval("odds", found.odds[k], found.odds_interval[k]),
            "probability_positive": f"{found.probability[k]:.4g}",
        }
        for k, name in enumerate(found.names)
    ]
    write_rows(folder / EFFECTS, rows[0], (row.values() for row in rows))


def print_effects(findings: "Findings") -> None:
    """Print the effects, and how much they explain."""
    from numpyro_rankings.report.item_effects import effects_shown

    shown = effects_shown(findings)
    if shown is None:
        return
    print("\nWhat the covariates do to the weights of the items (the odds of being chosen over an")
    print("item that is otherwise equal):")
    for line in shown.lines:
        print(f"  {line}")
    print(f"{shown.explained}")
