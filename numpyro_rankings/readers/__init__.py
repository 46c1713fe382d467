"""Files of rankings, in and out: tables of every layout, PrefLib, elections, and an own format."""

from numpyro_rankings.readers.all_questions import Questions
from numpyro_rankings.readers.ballots import BallotCounts
from numpyro_rankings.readers.blt import read_blt, write_blt
from numpyro_rankings.readers.cast_votes import read_cast_votes
from numpyro_rankings.readers.elections import read_council
from numpyro_rankings.readers.formats import read_rankings, read_survey
from numpyro_rankings.readers.own_table import read_table, write_table
from numpyro_rankings.readers.preflib import read_preflib, write_preflib
from numpyro_rankings.readers.surveys import Survey
from numpyro_rankings.readers.writing import write_survey

__all__ = [
    "BallotCounts",
    "Questions",
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
