"""The command line: ``numpyro-rankings fit``, ``cluster`` and ``check``."""

from numpyro_rankings.cli.program import main

__all__ = ["main"]
