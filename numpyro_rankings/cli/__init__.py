"""The command line: ``numpyro-rankings fit``, ``cluster``, ``compare``, ``describe`` and ``check``.

Imports within the functions of this package load JAX, NumPy or ArviZ, which takes seconds. Without
them help and mistakes in the options are answered in 0.2 s.
"""

from numpyro_rankings.cli.program import main, run_program

__all__ = ["main", "run_program"]
