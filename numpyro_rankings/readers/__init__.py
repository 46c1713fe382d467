"""Files of rankings, in and out: tables of every layout, PrefLib, and the project's own format."""

from numpyro_rankings.readers.formats import read_rankings, read_survey
from numpyro_rankings.readers.own_table import read_table, write_table
from numpyro_rankings.readers.preflib import read_preflib, write_preflib
from numpyro_rankings.readers.surveys import Survey, write_survey

__all__ = [
    "Survey",
    "read_preflib",
    "read_rankings",
    "read_survey",
    "read_table",
    "write_preflib",
    "write_survey",
    "write_table",
]
