"""Files of rankings, in and out: tables of every layout, PrefLib, elections, and an own format."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpyro_rankings.readers.ballots import BallotCounts
    from numpyro_rankings.readers.blt import read_blt, write_blt
    from numpyro_rankings.readers.cast_votes import read_cast_votes
    from numpyro_rankings.readers.elections import read_council
    from numpyro_rankings.readers.formats import read_rankings, read_survey
    from numpyro_rankings.readers.own_table import read_table, write_table
    from numpyro_rankings.readers.preflib import read_preflib, write_preflib
    from numpyro_rankings.readers.surveys import Survey
    from numpyro_rankings.readers.writing import write_survey

# Loaded when they are first used: the command line needs only how messages write options, and
# NumPy is not loaded for it.
_HOMES = {
    "BallotCounts": "ballots",
    "Survey": "surveys",
    "read_blt": "blt",
    "read_cast_votes": "cast_votes",
    "read_council": "elections",
    "read_preflib": "preflib",
    "read_rankings": "formats",
    "read_survey": "formats",
    "read_table": "own_table",
    "write_blt": "blt",
    "write_preflib": "preflib",
    "write_survey": "writing",
    "write_table": "own_table",
}

__all__ = [
    "BallotCounts",
    "Survey",
    "read_blt",
    "read_cast_votes",
    "read_council",
    "read_preflib",
    "read_rankings",
    "read_survey",
    "read_table",
    "write_blt",
    "write_preflib",
    "write_survey",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
