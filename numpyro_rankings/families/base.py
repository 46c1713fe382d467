"""What a likelihood of rankings knows, and which one draws are of."""

from abc import ABC
from collections.abc import Collection


class RankingFamily(ABC):
    """A likelihood of rankings given the parameters of clusters, without a state of its own.

    Draws, summaries, tables and figures ask it and nothing else in what likelihoods differ.

    - **name** - as the command line has it.
    - **parameters** - the names of the sites with the parameters of the clusters, each (…, C, …).
    """

    name: str
    parameters: tuple[str, ...]

    # -- likelihood ----------------------------------------------------------------------------

    # -- fit -----------------------------------------------------------------------------------

    # -- profiles and tables -------------------------------------------------------------------

    # -- figures -------------------------------------------------------------------------------


_families: list[RankingFamily] = []


def register_family(family: RankingFamily) -> None:
    """Let draws with the parameters of a family be known as its draws."""
    _families.append(family)


def family_of(sites: Collection[str]) -> RankingFamily | None:
    """Return the family whose parameters are among the sites of draws, None if there is none.

    Of several it is the one with the most parameters.
    """
    known = [family for family in _families if set(family.parameters) <= set(sites)]
    return max(known, key=lambda family: len(family.parameters), default=None)
