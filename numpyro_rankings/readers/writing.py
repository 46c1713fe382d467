"""Write tables of rankings and their judges, in the layouts in which they are read."""

import csv
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from numpyro_rankings.rankings import Rankings, RankingsError
from numpyro_rankings.readers.grids import EXCEL_SUFFIXES, PARQUET_SUFFIXES, TEXT_SUFFIXES
from numpyro_rankings.readers.layouts import LAYOUTS
from numpyro_rankings.readers.surveys import Survey, survey_of
from numpyro_rankings.readers.text import check_writable_texts


def write_survey(survey: Survey | Rankings, path: str | os.PathLike, layout: str = "ranks") -> None:
    """Write a table that :func:`~numpyro_rankings.read_survey` reads.

    The columns of judges and what is known about them come first. A layout of orders or a long one
    does not name the items that nobody lists: give ``items`` when it is read.

    :param survey: the survey, or rankings, whose judges are then numbered from 1.
    :param path: the file to write: ``.csv``, ``.tsv``, ``.xlsx`` or ``.parquet``.
    :param layout: ``"ranks"``, ``"orders"``, ``"long"`` or ``"cell"``, with semicolons between the
        items.
    :raises RankingsError: if there are choice sets that the table cannot represent.
    """
    if isinstance(survey, Rankings):
        survey = survey_of(survey, "")
    name, suffix = os.fspath(path), Path(path).suffix.lower()
    if suffix not in (*TEXT_SUFFIXES, *EXCEL_SUFFIXES, *PARQUET_SUFFIXES):
        raise RankingsError(f"{name}: the extension {suffix!r} is not known")
    if layout not in LAYOUTS:
        raise RankingsError(f"layout is one of {', '.join(LAYOUTS)}, not {layout!r}")
    rankings = survey.rankings
    orderings = np.asarray(rankings.orderings)
    if rankings.choice_sets is not None:
        listed = (np.asarray(rankings.to_ranks()) > 0).astype(bool)
        if not np.array_equal(listed, np.asarray(rankings.choice_sets)):
            raise RankingsError(
                f"{name}: a table says which items were ranked, not which were offered, and some "
                "judges did not rank all items of their choice sets"
            )
    rows = orderings[np.asarray(rankings.row_index)[survey.label_index]]
    if "judge" in survey.about:
        raise RankingsError(f"{name}: two columns would have the same name")
    if survey.judges is not None and len(set(survey.judges)) < len(survey.judges):
        raise RankingsError(f"{name}: a judge has several rankings, of which a table has only one")
    judges = survey.judges or [str(k) for k in range(1, len(rows) + 1)]
    before = {"judge": judges, **survey.about}
    columns, cells = _CELLS[layout](rows, rankings.items)
    header = [*before, *columns]
    if len(set(header)) < len(header):
        raise RankingsError(f"{name}: two columns would have the same name")
    table = [
        [*about, *row]
        for about, of_judge in zip(zip(*before.values(), strict=True), cells, strict=True)
        for row in of_judge
    ]
    check_writable_texts(name, (cell for row in [header, *table] for cell in row))
    if suffix in EXCEL_SUFFIXES and any(
        isinstance(cell, str) and cell.startswith("=") for row in [header, *table] for cell in row
    ):
        raise RankingsError(f"{name}: spreadsheets take a text that begins with = for a formula")
    try:
        if suffix in TEXT_SUFFIXES:
            with open(name, "w", newline="", encoding="utf-8") as stream:
                writer = csv.writer(stream, delimiter="," if suffix == ".csv" else "\t")
                writer.writerows([header, *table])
            return
        import pandas as pd

        frame = pd.DataFrame(table, columns=header)
        if suffix in EXCEL_SUFFIXES:
            frame.to_excel(name, index=False)
        else:
            frame.to_parquet(name, index=False)
    except OSError as error:
        raise RankingsError(f"{name}: cannot be written: {error.strerror or error}") from None
    except ImportError as error:
        raise RankingsError(f"{name}: pip install 'numpyro-rankings[tables]' ({error})") from None


_Cells = tuple[list[str], list[list[list[Any]]]]  # columns, and the rows of each judge


def _cells_of_ranks(rows: np.ndarray, items: Sequence[str]) -> _Cells:
    cells = []
    for row in rows:
        ranks = {item: place for place, item in enumerate(row[row >= 0], 1)}
        cells.append([[ranks.get(k) for k in range(len(items))]])
    return list(items), cells


def _cells_of_orders(rows: np.ndarray, items: Sequence[str]) -> _Cells:
    columns = [f"rank {k}" for k in range(1, rows.shape[1] + 1)]
    return columns, [[[items[k] if k >= 0 else None for k in row]] for row in rows]


def _cells_of_long(rows: np.ndarray, items: Sequence[str]) -> _Cells:
    cells = [[[items[k], place] for place, k in enumerate(row[row >= 0], 1)] for row in rows]
    return ["item", "rank"], cells


def _cells_of_cell(rows: np.ndarray, items: Sequence[str]) -> _Cells:
    if wrong := [item for item in items if ";" in item]:
        raise RankingsError(f"the item name {wrong[0]!r} contains a semicolon; use another layout")
    return ["order"], [[["".join(f"{items[k]};" for k in row[row >= 0])]] for row in rows]


_CELLS: dict[str, Callable[[np.ndarray, Sequence[str]], _Cells]] = {
    "ranks": _cells_of_ranks,
    "orders": _cells_of_orders,
    "long": _cells_of_long,
    "cell": _cells_of_cell,
}
