"""The layouts of tables.

To add one, write a file with a class like :class:`~.marks.Marks`, and add it to :data:`_KNOWN`; if
tables can say that they have it, also to :data:`_ASKED`.
"""

from collections.abc import Sequence
from typing import NoReturn

from numpyro_rankings.rankings import RankingsError
from numpyro_rankings.rankings.names import names_shown
from numpyro_rankings.readers.answers import numbers_in
from numpyro_rankings.readers.grids import Grid
from numpyro_rankings.readers.headers import Table
from numpyro_rankings.readers.layouts.base import Layout
from numpyro_rankings.readers.layouts.cell import Cell
from numpyro_rankings.readers.layouts.long import Long
from numpyro_rankings.readers.layouts.marks import Marks
from numpyro_rankings.readers.layouts.orders import Orders
from numpyro_rankings.readers.layouts.ranks import Ranks
from numpyro_rankings.readers.layouts.votes import BallotVotes
from numpyro_rankings.readers.questions import QuestionSpec, options_about_judges
from numpyro_rankings.words.options import option

_KNOWN = (Ranks, Orders, Long, Cell, BallotVotes, Marks)
_ASKED = (Long, Cell, BallotVotes, Orders, Ranks)  # the first that a table has a sign of is taken
LAYOUTS: dict[str, Layout] = {layout.name: layout() for layout in _KNOWN}


def layout_of_table(
    table: Table, picked: Sequence[int], spec: QuestionSpec
) -> tuple[Layout, list[str]]:
    """Return the layout that a table says it has, and why; or show it in both ways, and ask."""
    for one in _ASKED:
        layout = LAYOUTS[one.name]
        if why := layout.sign(table, picked, spec):
            return layout, [f"read as {option('layout', layout.name)}, because of the {why}"]
    _ask_layout(table.grid, picked, spec)


def _ask_layout(grid: Grid, picked: Sequence[int], spec: QuestionSpec) -> NoReturn:
    """Show the first row in two ways; an answer is what may be read, and is not read wrongly."""
    columns = [grid.cells[k] for k in picked]
    numbers = numbers_in(columns)
    are_ranks = bool(2 * (numbers > 0).sum() > (numbers != 0).sum())
    texts = [{*column.values} - {""} for column in columns]
    # places have items in common, and what names the judges has nothing in common with them
    others = [
        column
        for column, x in zip(columns, texts, strict=True)
        if len(x) > 1 and not any(x & y for y in texts if y is not x)
    ]
    judge = ""
    if others:
        is_sure = others[0] is columns[0] and 2 * len(others) < len(columns)
        how = options_about_judges(others[0], spec, is_sure)
        judge = f"; {others[0].name!r} may be no part of it: {how}"
    cells = [(grid.cells[k].name, grid.cells[k].text(0)) for k in picked]
    ranks = names_shown([f"{name!r} has rank {cell or 'none'}" for name, cell in cells])
    orders = names_shown([f"{cell or 'nothing'!r} is at place {name!r}" for name, cell in cells])
    raise RankingsError(
        f"{grid.where(0)}: the layout is needed. As ranks (one column for each item), this row "
        f"says: {ranks}. As orders (one column for each place): {orders}. Add "
        f"{option('layout', 'ranks', are_ranks)} or "
        f"{option('layout', 'orders', not (others or are_ranks))}, or "
        f"{option('layout', 'long', spec.item is not None)} if each row is one judge and one item, "
        f"or {option('layout', 'cell', False)} if one cell has the whole order{judge}"
    )
