"""How many cores this process may use."""

import os


def num_cores() -> int:
    """Return their number, where the system tells it those that the process was given."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
