"""Write tables of rankings and their judges, in the layouts in which they are read."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from numpyro_rankings.rankings import Rankings, RankingsError
from numpyro_rankings.readers.grids import EXCEL_SUFFIXES, PARQUET_SUFFIXES, TEXT_SUFFIXES
from numpyro_rankings.readers.layouts import LAYOUTS
from numpyro_rankings.readers.surveys import Survey, survey_of
from numpyro_rankings.readers.text import check_writable_texts

if TYPE_CHECKING:
    import pandas as pd


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
    _check_choice_sets(name, survey.rankings)
    check_writable_texts(name, (*survey.about, *survey.rankings.items, *(survey.judges or ())))
    check_writable_texts(name, (text for texts in survey.about.values() for text in texts))
    frame = _frame(name, survey, layout)
    if suffix in EXCEL_SUFFIXES and _has_formula(frame):
        raise RankingsError(f"{name}: spreadsheets take a text that begins with = for a formula")
    try:
        _write(frame, name, suffix)
    except OSError as error:
        raise RankingsError(f"{name}: cannot be written: {error.strerror or error}") from None
    except ImportError as error:
        raise RankingsError(f"{name}: pip install 'numpyro-rankings[tables]' ({error})") from None


def _has_formula(frame: "pd.DataFrame") -> bool:
    """Return whether a text of a table begins as a formula does."""
    texts = (*frame.columns, *frame.to_numpy(object).ravel())
    return any(isinstance(text, str) and text.startswith("=") for text in texts)


def _check_choice_sets(name: str, rankings: Rankings) -> None:
    """Refuse choice sets with items that are not ranked."""
    if rankings.choice_sets is None:
        return
    is_listed = (np.asarray(rankings.to_ranks()) > 0).astype(bool)
    if not np.array_equal(is_listed, np.asarray(rankings.choice_sets)):
        raise RankingsError(
            f"{name}: a table says which items were ranked, not which were offered, and some "
            "judges did not rank all items of their choice sets"
        )


def _frame(name: str, survey: Survey, layout: str) -> "pd.DataFrame":
    """Return the table, in which the columns about the judges come first."""
    # pandas takes a third of a second to load, which the command line would pay at its start
    from numpyro_rankings.readers.frames import table_frame

    rankings, about = survey.rankings, survey.about
    rows = np.asarray(rankings.row_index)[survey.label_index]
    if "judge" in about:
        raise RankingsError(f"{name}: two columns would have the same name")
    if survey.judges is not None and len(set(survey.judges)) < len(survey.judges):
        raise RankingsError(f"{name}: a judge has several rankings, of which a table has only one")
    judges = survey.judges or [str(k) for k in range(1, len(rows) + 1)]
    orderings = np.asarray(rankings.orderings)[rows]
    lists, frame = table_frame(orderings, rankings.items, LAYOUTS[layout])
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
