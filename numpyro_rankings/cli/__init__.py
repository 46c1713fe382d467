"""The command line: the commands ``fit``, ``assign``, ``cluster``, ``compare``, …"""

# Functions import what loads JAX, NumPy or ArviZ, which takes seconds: without them --help and
# mistakes in a command are answered in 0.2 s. This is so in all files of the package.

from numpyro_rankings.cli.program import main, run_program

__all__ = ["main", "run_program"]
