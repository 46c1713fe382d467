"""Files for readers, the lists that they return, and the messages of what they refuse."""

from contextlib import contextmanager

import numpy as np
import openpyxl
import pytest

from numpyro_rankings import RankingsError, read_survey


def write(folder, text, name):
    """Write a file, and return its path."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def write_rows(path, rows, merged=()):
    """Write rows of cells as text or, by the name, a spreadsheet with merged cells; return it."""
    if path.suffix == ".xlsx":
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        for place in merged:
            book.active.merge_cells(place)
        for cell in (x for row in book.active for x in row if x.data_type == "f"):
            cell.data_type = "s"  # a text that begins with =
        book.save(path)
        return path
    return write(path.parent, "".join(",".join(map(str, row)) + "\n" for row in rows), path.name)


def read_with_answers(path, **options):
    """The options with which a refused table is read, and what is then read."""
    with pytest.raises(RankingsError) as error:
        read_survey(path, **options)
    found = error.value.questions
    assert found.is_read, found.texts
    said = {x: list(y) if isinstance(y, tuple) else y for x, y in found.options.items()}
    return said, read_survey(path, **{**options, **found.options})


def in_order(survey):
    """The list of each ranking, in the order of the file."""
    rows = np.asarray(survey.rankings.row_index)[survey.label_index]
    lists = np.asarray(survey.rankings.orderings)
    return [[int(item) for item in lists[row] if item >= 0] for row in rows]


def by_name(survey):
    """The names in the list of each ranking, in the order of the file."""
    return [[survey.rankings.items[k] for k in row] for row in in_order(survey)]


def joined(survey):
    """The same, each list as one text."""
    return list(map(" ".join, by_name(survey)))


@contextmanager
def refusal(*parts, start="", below=10_000):
    """What follows is refused in one line with these parts."""
    with pytest.raises(RankingsError) as error:
        yield
    message = str(error.value)
    assert message.startswith(start), message
    assert "\n" not in message and len(message) < below
    for part in parts:
        assert part in message
