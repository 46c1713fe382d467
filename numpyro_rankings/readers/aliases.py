"""Further names of items, under which a file may have them."""

import os
from collections.abc import Mapping

from numpyro_rankings.rankings import RankingsError

# Functions import pandas and what reads single formats, which take long to load.

Aliases = Mapping[str, str] | str | os.PathLike | None
_HEADER = ("alias", "item")


def read_aliases(aliases: Aliases) -> dict[str, str]:
    """Return the item that each further name means, from a dict or a table ``alias,item``."""
    if aliases is None:
        return {}
    if isinstance(aliases, Mapping):
        pairs = [("aliases", str(x).strip(), str(y).strip()) for x, y in aliases.items()]
    else:
        pairs = _pairs_of_file(aliases)
    found: dict[str, str] = {}
    for where, alias, item in pairs:
        if not alias or not item:
            raise RankingsError(f"{where}: an alias and the name of its item are needed")
        if found.get(alias, item) != item:
            raise RankingsError(
                f"{where}: {alias!r} cannot mean both {found[alias]!r} and {item!r}"
            )
        found[alias] = item
    for where, alias, item in pairs:
        if alias != item and found.get(item, item) != item:
            raise RankingsError(
                f"{where}: {alias!r} means {item!r}, which means {found[item]!r}; give it the last"
            )
    return {alias: item for alias, item in found.items() if alias != item}


def _pairs_of_file(path: str | os.PathLike) -> list[tuple[str, str, str]]:
    from numpyro_rankings.readers.grids import read_grid

    grid = read_grid(path)
    if tuple(name.lower() for name in grid.columns) != _HEADER:
        raise RankingsError(
            f"{grid.header_place}: a file of aliases has two columns, and its first row is "
            f"{','.join(_HEADER)}; got {','.join(grid.columns)[:40]!r}"
        )
    return [
        (grid.where(row), grid.cells[0].text(row), grid.cells[1].text(row))
        for row in range(len(grid.numbers))
    ]
