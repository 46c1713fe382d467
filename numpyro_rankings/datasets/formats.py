"""The formats in which files of rankings can be read.

To add a format, write a reader like :func:`~numpyro_rankings.preflib.read_preflib`, and add a line
to :data:`FORMATS`. The command line then reads such files too; name the format in the help text in
``cli/fit.py``.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from numpyro_rankings.datasets.tables import read_table
from numpyro_rankings.preflib import read_preflib
from numpyro_rankings.rankings import Rankings, RankingsError


class FileFormat(NamedTuple):
    """A format of files of rankings.

    - **name** - for messages.
    - **extensions** - of its files.
    - **read** - reads a file.
    - **refused** - extensions of similar files, which the reader refuses in its own words.
    """

    name: str
    extensions: tuple[str, ...]
    read: Callable[[str | os.PathLike], Rankings]
    refused: tuple[str, ...] = ()


FORMATS = (
    FileFormat("a PrefLib file", (".soc", ".soi"), read_preflib, refused=(".toc", ".toi")),
    FileFormat("a table", (".csv",), read_table),
)


def read_rankings(path: str | os.PathLike) -> Rankings:
    """Read a file of rankings in the format that its extension stands for.

    :param path: a PrefLib file ``.soc`` or ``.soi``, read by
        :func:`~numpyro_rankings.preflib.read_preflib`, or a table ``.csv``, read by
        :func:`~numpyro_rankings.datasets.read_table`.
    :return: the rankings.
    :raises RankingsError: beginning with ``FILE:LINE:``, if the file is not in that format.
    """
    extension = Path(path).suffix.lower()
    for one in FORMATS:
        if extension in (*one.extensions, *one.refused):
            return one.read(path)
    if not Path(path).exists():
        raise RankingsError(f"{os.fspath(path)}: no such file")
    known = ", or ".join(f"{one.name} ({' or '.join(one.extensions)})" for one in FORMATS)
    raise RankingsError(
        f"{os.fspath(path)}: the extension {extension!r} is not known; expected {known}"
    )
