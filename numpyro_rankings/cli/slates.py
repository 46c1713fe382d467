"""The option ``--slates`` of ``fit``: what groups do with slates of items, as tables and files."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpyro_rankings.cli.arguments import UserError

if TYPE_CHECKING:
    from numpyro_rankings.posterior.slates import Slates
    from numpyro_rankings.readers import Survey
    from numpyro_rankings.report.findings import Findings

SLATES, VOTEKIT = "slates.csv", "votekit.json"

# Functions import what reads tables and what computes, which take long to load.


def read_slates(source: str, survey: "Survey") -> dict[str, str]:
    """Return the slate of each item: by a table, or by what the file of the rankings says of it."""
    from numpyro_rankings.posterior.slates import check_slates, levels_of
    from numpyro_rankings.rankings import RankingsError

    items = list(map(str, survey.rankings.items))
    try:
        if survey.items_about and source in survey.items_about:
            slates = dict(zip(items, survey.items_about[source], strict=True))
        else:
            slates = _read_table(source, list(survey.items_about or ()))
        check_slates(items, slates, f"--slates {source}")
        levels_of(survey.rankings)
    except RankingsError as error:
        raise UserError(str(error)) from None
    return slates


def _read_table(source: str, known: list[str]) -> dict[str, str]:
    from numpyro_rankings.readers.grids import TEXT_SUFFIXES, read_grid

    if not Path(source).is_file():
        what = f" (nor {' or '.join(known)}, which FILE says of its items)" if known else ""
        raise UserError(f"--slates {source}: there is no such file{what}")
    if Path(source).suffix.lower() not in (*TEXT_SUFFIXES, ".xlsx"):
        raise UserError(f"--slates {source}: must be a table .csv, .tsv, .txt or .xlsx")
    grid = read_grid(source)
    if not {"item", "slate"} <= {*grid.columns}:
        found = ", ".join(map(repr, grid.columns[:10]))
        raise UserError(f"--slates {source}: must have the columns item and slate, not {found}")
    slates: dict[str, str] = {}
    items, names = grid.column("item"), grid.column("slate")
    for row in range(len(grid.numbers)):
        item, slate = items.text(row), names.text(row)
        if slates.setdefault(item, slate) != slate:
            raise UserError(
                f"--slates {grid.where(row)}: {item!r} is in two slates, {slates[item]!r} and "
                f"{slate!r}"
            )
    return slates


def with_slates(findings: "Findings", rankings: Any, slates: dict[str, str]) -> "Findings":
    """Add what the groups that hold, or where these come first the blocs, do with the slates."""
    from numpyro_rankings.posterior.slates import slates_of

    blocs = findings.blocs if findings.blocs_first else None
    found = slates_of(findings.described, rankings, slates, findings.reference, blocs=blocs)
    if blocs is None:
        found = found.take([p.label for p in findings.held or findings.profiles])
    return findings._replace(slates=found)


def write_slates(folder: Path, findings: "Findings") -> None:
    """Write ``slates.csv``, one row for each group or bloc, and ``votekit.json``."""
    from numpyro_rankings.cli.tables import write_rows
    from numpyro_rankings.report.slates import noun_of

    found, noun = findings.slates, noun_of(findings)
    assert found is not None
    column = "bloc" if noun == "bloc" else "cluster"
    rows = [{column: k + 1, **_columns(found, k)} for k in range(len(found.share))]
    write_rows(folder / SLATES, rows[0], (row.values() for row in rows))
    text = json.dumps(found.to_votekit(noun), ensure_ascii=False, indent=1)
    (folder / VOTEKIT).write_text(f"{text}\n", encoding="utf-8")


def _columns(found: "Slates", k: int) -> dict[str, str]:
    from numpyro_rankings.families.base import columns_with_interval

    own = found.own[k]
    columns = {
        **columns_with_interval("share", found.share[k], found.share_interval[k]),
        "slate": found.slates[own],
        **columns_with_interval("cohesion", found.cohesion[k], found.cohesion_interval[k]),
        **columns_with_interval("crossover", found.crossover[k], found.crossover_interval[k]),
        **columns_with_interval("first", found.first[k, own], found.first_interval[k, own]),
    }
    for s, name in enumerate(found.slates):
        support = found.support[k, s], found.support_interval[k, s]
        columns |= columns_with_interval(f"support of {name}", *support)
    return columns
