"""The command line."""

from numpyro_rankings.cli.program import main

__all__ = ["main"]
