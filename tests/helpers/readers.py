"""Files for readers, the lists that they return, and the messages of what they refuse."""

from contextlib import contextmanager

import numpy as np
import pytest

from numpyro_rankings import RankingsError


def write(folder, text, name):
    """Write a file, and return its path."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


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
