"""Write tables of rankings and their judges, in the layouts in which they are read."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from numpyro_rankings.rankings import Orders, Rankings, RankingsError, check_rankings
from numpyro_rankings.rankings.orderings import listed_items
from numpyro_rankings.readers.grids import EXCEL_SUFFIXES, PARQUET_SUFFIXES, TEXT_SUFFIXES
from numpyro_rankings.readers.layouts import LAYOUTS
from numpyro_rankings.readers.surveys import Survey, survey_of
from numpyro_rankings.readers.text import check_writable_texts

if TYPE_CHECKING:
    import pandas as pd


def write_survey(survey: Survey | Rankings, path: str | os.PathLike, layout: str = "ranks") -> None:
    """Write a table that :func:`~numpyro_rankings.read_survey` reads.

    The columns of judges and what is known about them come first. A layout of orders or a long one
    does not name the items that nobody lists: give ``items`` when it is read. Names are written as
    they are, since they are read again: spreadsheets may take those of a text file that begin with
    ``=``, ``+``, ``-`` or ``@`` for formulas.

    :param survey: the survey, or rankings, whose judges are then numbered from 1.
    :param path: the file to write: ``.csv``, ``.tsv``, ``.xlsx`` or ``.parquet``.
    :param layout: ``"ranks"``, ``"orders"``, ``"long"`` or ``"cell"``, with semicolons between the
        items.
    :raises RankingsError: if there are choice sets that the table cannot represent.
    """
    if not isinstance(survey, Survey):
        check_rankings(survey)
        survey = survey_of(survey, "")
    name, suffix = os.fspath(path), Path(path).suffix.lower()
    if suffix not in (*TEXT_SUFFIXES, *EXCEL_SUFFIXES, *PARQUET_SUFFIXES):
        raise RankingsError(f"{name}: the extension {suffix!r} is not known")
    if layout not in LAYOUTS:
        raise RankingsError(f"layout is one of {', '.join(LAYOUTS)}, not {layout!r}")
    check_rankings(survey.rankings)  # partial orders are not written
    if len(_offered_only(survey.rankings)):
        raise RankingsError(
            f"{name}: a table says which items were ranked, not which were offered, and some "
            "judges did not rank all items of their choice sets"
        )
    check_writable_texts(name, (*survey.about, *survey.rankings.items, *(survey.judges or ())))
    check_writable_texts(name, (text for texts in survey.about.values() for text in texts))
    frame = _frame(name, survey, layout)
    if suffix in EXCEL_SUFFIXES:
        texts = (*frame.columns, *frame.to_numpy(object).ravel())
        if any(isinstance(text, str) and text.startswith("=") for text in texts):
            raise RankingsError(
                f"{name}: spreadsheets take a text that begins with = for a formula"
            )
    try:
        _write(frame, name, suffix)
    except OSError as error:
        raise RankingsError(f"{name}: cannot be written: {error.strerror or error}") from None
    except ImportError as error:
        raise RankingsError(f"{name}: pip install 'numpyro-rankings[tables]' ({error})") from None


def _frame(name: str, survey: Survey, layout: str) -> "pd.DataFrame":
    """Return the table, in which the columns about the judges come first."""
    rankings, about = survey.rankings, survey.about
    rows = np.asarray(rankings.row_index)[survey.label_index]
    if "judge" in about:
        raise RankingsError(f"{name}: two columns would have the same name")
    if survey.judges is not None and len(set(survey.judges)) < len(survey.judges):
        raise RankingsError(f"{name}: a judge has several rankings, of which a table has only one")
    judges = survey.judges or [str(k) for k in range(1, len(rows) + 1)]
    orderings = np.asarray(rankings.table)[rows]
    lists, frame = _table(orderings, rankings.items, layout)
    for k, (column, texts) in enumerate({"judge": judges, **about}.items()):
        if column in frame.columns:
            raise RankingsError(f"{name}: two columns would have the same name")
        frame.insert(k, column, np.array(texts, object)[lists])
    return frame


def _write(frame: "pd.DataFrame", name: str, suffix: str) -> None:
    if suffix in TEXT_SUFFIXES:
        mark = "," if suffix == ".csv" else "\t"
        with open(name, "w", newline="", encoding="utf-8") as stream:
            frame.to_csv(stream, sep=mark, index=False, lineterminator="\r\n")
    elif suffix in EXCEL_SUFFIXES:
        frame.to_excel(name, index=False)
    else:
        frame.to_parquet(name, index=False)


def write_frame(rankings: Rankings, layout: str, count: str | None = None) -> "pd.DataFrame":
    """Write a data frame; see :meth:`numpyro_rankings.Rankings.to_dataframe`."""
    # pandas takes a third of a second to load, which the command line would pay at its start
    import pandas as pd

    written = [name for name, one in LAYOUTS.items() if not (one.is_of_ballots or one.has_pairs)]
    if layout not in written:
        raise RankingsError(f"layout is one of {', '.join(written)}, not {layout!r}")
    for row, item in _offered_only(rankings)[:1]:
        raise RankingsError(
            f"row {row + 1}: item {rankings.items[item]!r} was offered but is not ranked, which a "
            "data frame cannot say; readers.write_table writes a file that can"
        )
    orderings, lengths = np.asarray(rankings.orderings), np.asarray(rankings.lengths)
    rows = np.asarray(rankings.row_index) if count is None else np.arange(rankings.num_rows)
    orderings = orderings[rows, : lengths.max()]
    lists, frame = _table(orderings, rankings.items, layout)
    if LAYOUTS[layout].has_lines_of_items:
        frame.insert(0, "judge", lists + 1)
    else:
        frame.index = pd.RangeIndex(1, len(orderings) + 1, name="judge")
    if count is None:
        return frame
    if count in frame.columns:
        raise RankingsError(f"the table has a column {count!r} already; give count another name")
    frame[count] = np.asarray(rankings.counts, np.int64)[lists]
    return frame


def _table(
    orderings: np.ndarray, items: tuple[str, ...], layout: str
) -> tuple[np.ndarray, "pd.DataFrame"]:
    """Return the list that each line of a table is of, and the table."""
    import pandas as pd  # as in write_frame

    lists, columns = LAYOUTS[layout].table(orderings, items)
    masked = {name: x for name, x in columns.items() if isinstance(x, np.ma.MaskedArray)}
    whole = {name: pd.arrays.IntegerArray(x.data, x.mask) for name, x in masked.items()}
    return lists, pd.DataFrame({**columns, **whole})


def _offered_only(rankings: Rankings | Orders) -> np.ndarray:
    """Return the rows and the items that were offered and are not ranked, (k, 2)."""
    if rankings.choice_sets is None:
        return np.zeros((0, 2), int)
    is_listed = listed_items(np.asarray(rankings.table), rankings.num_items)
    return np.argwhere(np.asarray(rankings.choice_sets) & ~is_listed)
