"""Warnings as errors."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_warnings(category: type[Warning] = Warning) -> Iterator[None]:
    """Raise warnings, but for those about compiled programs that another process is just storing.

    JAX compiles these anew.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", category)
        warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation")
        yield
