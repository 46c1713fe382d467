"""Columns that ``fit`` and ``assign`` have added to a table, which are not read as data."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from numpyro_rankings.rankings.names import names_counted
from numpyro_rankings.readers.grids import Column, Grid
from numpyro_rankings.words.options import option

FITTED, ASSIGNED = "fitted", "assigned"  # by what columns are added
_OF_SOURCE = re.compile(rf" \((?:{FITTED}|{ASSIGNED})(?: \d+)?\)$")
# names of columns that fit and assign add, one a line; assign adds those of the groups
_ADDED = re.compile(
    r"^cluster\n(?:bloc\nprobability\nbloc_probability\n|probability\n)(?:fitted\n)?"
    r"((?:group \d+\n)+(?:none of the groups\n)?(?:next \d+\nprobability of next \d+\n)*)?",
    re.MULTILINE,
)
_SHARE = re.compile(r"\d*[.,]?\d+(?:[eE]-?\d+)?")


def added_columns(names: Sequence[Any]) -> list[tuple[range, str]]:
    """Return where a table has columns that ``fit`` or ``assign`` has added, and by which.

    They are known by their names and by the order of these.
    """
    lines = [_OF_SOURCE.sub("", str(name).strip()).replace("\n", " ") for name in names]
    text = "".join(f"{line}\n" for line in lines)
    return [
        (
            range(text.count("\n", 0, found.start()), text.count("\n", 0, found.end())),
            FITTED if found[1] is None else ASSIGNED,
        )
        for found in _ADDED.finditer(text)
    ]


def without_added_columns(grid: Grid, named: Iterable[str]) -> tuple[Grid, list[str]]:
    """Return a table without such columns, but for those that are named, and notes."""
    kept = set(named)
    places = {
        k
        for columns, _ in added_columns(grid.columns)
        if all(_are_shares(grid.cells[k]) for k in columns if _is_share(grid.columns[k]))
        for k in columns
    }
    left_out = [x for k, x in enumerate(grid.columns) if k in places and x not in kept]
    if not left_out:
        return grid, []
    cells = [x for k, x in enumerate(grid.cells) if k not in places or x.name in kept]
    return grid._replace(cells=cells), [
        f"columns that fit or assign has added are left out: {names_counted(left_out)}; "
        f"{option('about', left_out[0])} reads one all the same"
    ]


def _is_share(name: str) -> bool:
    return _OF_SOURCE.sub("", name.strip()) in ("probability", "bloc_probability")


def _are_shares(column: Column) -> bool:
    """Whether all texts are numbers from 0 to 1, or blank; items of these names have ranks."""
    numbers = [
        float(x.replace(",", ".")) if _SHARE.fullmatch(x) else -1.0 for x in column.values if x
    ]
    return all(0 <= x <= 1 for x in numbers)
