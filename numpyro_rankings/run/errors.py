"""The error of a store, and what the errors of files and of Zarr are in its words."""

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

NEEDS_ASSERTS = (
    "python -O takes assertions away, on which Zarr relies, which writes the store of a run: start "
    "Python without -O and PYTHONOPTIMIZE"
)
_ERRORS_OF_WRITING = (errno.EROFS, errno.ENOSPC, errno.EDQUOT)


class StoreError(Exception):
    """A store cannot be made, read or written. The message is one line."""


class OtherRunError(StoreError):
    """The run in a store has other data, another model or another kernel."""


class DamagedRootError(StoreError):
    """The file of the root is not what was written."""


@contextlib.contextmanager
def errors_of(path: Path, what: str | None = None) -> Iterator[None]:
    """Turn errors of files and of Zarr into one line; ``what`` is read, or None is written."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        # a store that is opened to go on with it is read and written
        doing = "write to" if what is None or error.errno in _ERRORS_OF_WRITING else "read"
        raise StoreError(f"cannot {doing} {path}: {error.strerror or error}") from error
    except Exception as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if what is None:
            raise StoreError(
                f"cannot write to {path}: a file in it is missing or damaged ({text})"
            ) from error
        raise StoreError(f"{path}: {what} is damaged ({text})") from error
