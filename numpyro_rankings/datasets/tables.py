"""The bundled table."""

from importlib import resources

from numpyro_rankings.rankings import Rankings, RankingsError
from numpyro_rankings.readers.own_table import read_table


def list_datasets() -> list[str]:
    """Return the names of the bundled tables, for :func:`load_dataset`."""
    folder = resources.files("numpyro_rankings") / "data"
    names = (entry.name for entry in folder.iterdir())
    return sorted(name.removesuffix(".csv") for name in names if name.endswith(".csv"))


def load_dataset(name: str = "apa1980") -> Rankings:
    """Load a bundled table of real rankings.

    ``apa1980`` contains the 15,449 ballots of the presidential election of the American
    Psychological Association in 1980. There were five candidates: A and C are research
    psychologists, D and E clinical psychologists, and B is a community psychologist. 205 ballots
    are distinct; 5,738 of all ballots are complete. It is the example of [1].

    :param name: one of :func:`list_datasets`.
    :return: the rankings, one row for each distinct ranking.

    .. doctest::

       >>> from numpyro_rankings.datasets import load_dataset
       >>> load_dataset()
       Rankings(15449 of 5 items, 205 distinct rows, lengths 1-5)
    """
    if name not in list_datasets():
        known = ", ".join(list_datasets())
        raise RankingsError(f"there is no data set {name!r}; the bundled data are {known}")
    with resources.as_file(resources.files("numpyro_rankings") / "data" / f"{name}.csv") as path:
        rankings = read_table(path)
    assert isinstance(rankings, Rankings)  # as the bundled data are
    return rankings
