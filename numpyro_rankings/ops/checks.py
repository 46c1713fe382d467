"""Checks of arguments that every part of the package makes."""

from typing import Any

import numpy as np


def check_whole(name: str, number: Any, least: int = 1) -> None:
    """Refuse what is no whole number from 0, or from 1, on."""
    is_whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if not is_whole or number < least:
        kind = "a positive whole number" if least == 1 else "a whole number, 0 or more"
        raise ValueError(f"{name} must be {kind}, got {number!r}")
