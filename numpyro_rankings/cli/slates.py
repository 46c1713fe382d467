"""The option ``--slates`` of ``fit``: what groups do with slates of items, as tables and files."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpyro_rankings.cli.arguments import UserError, note

if TYPE_CHECKING:
    from numpyro_rankings.posterior.slates import Slates
    from numpyro_rankings.posterior.slates_by import SlatesBy
    from numpyro_rankings.readers import Survey
    from numpyro_rankings.report.findings import Findings

SLATES, VOTEKIT = "slates.csv", "votekit.json"
SLATES_BY = "slates_by"  # the folder of the tables by what is known of the judges
_MOST_VALUES = 2000  # of a column that there is a table by
_NOT_IN_NAMES = re.compile(r'[\\/:*?"<>|\[\]\x00-\x1f]')

# Functions import what reads tables and what computes, which take long to load.


def read_slates(source: str, survey: "Survey", is_of_several: bool = False) -> dict[str, str]:
    """Return the slate of each item: by a table, or by what the file of the rankings says of it.

    Other items are left out if all that are ranked have a slate.

    :param is_of_several: whether the table is of several files, of which each may have some of its
        items only.
    """
    from numpyro_rankings.posterior.slates import check_slates, levels_of
    from numpyro_rankings.rankings import RankingsError

    items = list(map(str, survey.rankings.items))
    try:
        if survey.items_about and source in survey.items_about:
            slates = dict(zip(items, survey.items_about[source], strict=True))
        else:
            slates = _read_table(source, list(survey.items_about or ()))
        if is_of_several or slates.keys() >= {*items}:  # else a name may be misspelt
            slates = {item: slate for item, slate in slates.items() if item in items}
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


def with_slates(
    findings: "Findings",
    rankings: Any,
    slates: dict[str, str],
    about: Mapping[str, Sequence[Any]] | None = None,
) -> "Findings":
    """Add what the groups that hold, or where these come first the blocs, do with the slates.

    :param about: what is known of the judges by column, in the order of the labels, by which there
        are tables too.
    """
    from numpyro_rankings.posterior.judges import texts_of_judges
    from numpyro_rankings.posterior.slates import slates_of
    from numpyro_rankings.posterior.slates_by import slates_by

    blocs = findings.blocs if findings.blocs_first else None
    shown = [p.label for p in findings.held or findings.profiles] if blocs is None else slice(None)
    given = findings.described, rankings, slates
    found = slates_of(*given, findings.reference, blocs=blocs).take(shown)
    by = {
        name: slates_by(*given, texts, findings.reference, blocs=blocs).take(shown)
        for name, texts in texts_of_judges(about or {}, rankings.num_rankings).items()
        if _has_table(name, texts)
    }
    return findings._replace(slates=found, slates_by=by)


def _has_table(name: str, texts: Sequence[str]) -> bool:
    """Whether there is a table by a column; if not, say why."""
    from numpyro_rankings.posterior.judges import as_numbers

    known = [x for x in texts if x]
    number, why = len({*known}), ""
    if as_numbers(name, texts) is not None:
        why = "it has numbers; if they are names, call it precinct, ward or district"
    elif number > _MOST_VALUES or number == len(known):
        why = f"it has {number:,} different values, of {len(known):,} judges"
    elif len(known) < len(texts):
        note(f"{SLATES_BY}: {len(texts) - len(known):,} judges without {name!r} are left out there")
    if why:
        note(f"--slates: there is no table by {name!r}, because {why}")
    return not why


def tell_of_sample(findings: "Findings", whole: "Survey") -> None:
    """Say that the tables by what is known of the judges are of those who were drawn.

    :param whole: all judges of the file.
    """
    for name, table in (findings.slates_by or {}).items():
        values = {*whole.about[name]} - {""}
        lacking = len(values - {*table.values})
        rest = f", and {lacking} of {len(values)} have none of them: draw more, --sample N"
        drawn, total = int(table.judges.sum()), whole.rankings.num_rankings
        note(
            f"{SLATES_BY}: the table by {name!r} is of {drawn:,} judges who were drawn, of "
            f"{total:,}{rest if lacking else ''}"
        )


def write_slates(folder: Path, findings: "Findings") -> None:
    """Write ``slates.csv``, one row for each group or bloc, ``votekit.json`` and ``slates_by``."""
    from numpyro_rankings.cli.tables import write_rows
    from numpyro_rankings.posterior.slates import names_for_votekit
    from numpyro_rankings.report.slates import noun_of

    found, noun = findings.slates, noun_of(findings)
    assert found is not None
    column = "bloc" if noun == "bloc" else "cluster"
    rows = [{column: k + 1, **_columns(found, k)} for k in range(len(found.share))]
    write_rows(folder / SLATES, rows[0], (row.values() for row in rows))
    text = json.dumps(found.to_votekit(noun), ensure_ascii=False, indent=1)
    (folder / VOTEKIT).write_text(f"{text}\n", encoding="utf-8")
    pairs = zip(found.items, names_for_votekit(found.items), strict=True)
    if other := [f"{a!r} as {b!r}" for a, b in pairs if a != b]:
        more = f", and {len(other) - 3} more" if len(other) > 3 else ""
        note(f"{VOTEKIT}: VoteKit does not allow some names: {', '.join(other[:3])}{more}")
    by = findings.slates_by or {}
    for name, (about, table) in zip(names_of_tables(by), by.items(), strict=True):
        (folder / name).parent.mkdir(exist_ok=True)
        rows = _rows_by(about, table, noun)
        write_rows(folder / name, rows[0], (row.values() for row in rows))


def names_of_tables(columns: Iterable[str]) -> list[str]:
    """Return the names of the tables by some columns, in the folder of the results."""
    stems: list[str] = []
    for column in columns:
        stem = _NOT_IN_NAMES.sub("_", column).strip(" .")[:80] or "column"
        taken = [x.casefold() for x in stems]
        endings = ["", *(f" {k}" for k in range(2, len(stems) + 2))]
        stems.append(next(x for end in endings if (x := f"{stem}{end}").casefold() not in taken))
    return [f"{SLATES_BY}/{stem}.csv" for stem in stems]


def _rows_by(column: str, found: "SlatesBy", noun: str) -> list[dict[str, Any]]:
    """Return the rows of a table by a column: one for each value, to be joined by its name."""
    rows = []
    first = f"{column} (in the file)" if column == "judges" else column
    for k, value in enumerate(found.values):
        row: dict[str, Any] = {first: value, "judges": int(found.judges[k])}
        for g, share in enumerate(zip(found.share[k], found.share_interval[k], strict=True), 1):
            row |= _share(f"{noun}_{g}", *share)
        of_slates = zip(found.first[k], found.first_interval[k], strict=True)
        for slate, share in zip(found.slates, of_slates, strict=True):
            row |= _share(f"first_{slate}", *share)
        rows.append(row)
    return rows


def _share(name: str, mean: float, bounds: Any) -> dict[str, str]:
    values = zip(("share", "low", "high"), (mean, *bounds), strict=True)
    return {f"{name}_{what}": f"{x:.6g}" for what, x in values}


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
