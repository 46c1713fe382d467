"""The clock of runs and commands, in one place so that tests can let it stand still."""

import time


def now() -> float:
    """Return seconds since some moment. They never decrease."""
    return time.perf_counter()
