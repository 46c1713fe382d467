"""The command line: ``numpyro-rankings fit``, ``cluster`` and ``check``."""

from numpyro_rankings.cli.program import main, run_program

__all__ = ["main", "run_program"]
