"""The clock of runs and commands, in one place so that tests can let it stand still."""

import time


def now() -> float:
    """Return seconds since some moment. They never decrease."""
    return time.perf_counter()


def date_and_time() -> str:
    """Return the date and the time of this place, as text."""
    return time.strftime("%Y-%m-%d %H:%M:%S")
