"""Locks: one run at a time has a folder, whichever process it is of."""

import contextlib
import gc
import importlib.util
import os
import weakref
from pathlib import Path

from numpyro_rankings.run.errors import StoreError

HAS_LOCKS = importlib.util.find_spec("fcntl") is not None  # Windows has none


class Lock:
    """Keeps a folder from all other runs, of this process and others.

    It is given back by :meth:`close`, when it is no longer referred to, as in a notebook that
    runs a cell again, and in a process that is forked, where the run is not its own.
    """

    def __init__(self, path: Path) -> None:
        self.is_inherited = False
        self._path = path
        descriptor = _locked(path)
        if descriptor is None:
            gc.collect()  # frees a run that is no longer referred to, but part of a cycle
            descriptor = _locked(path)
        if descriptor is None:
            raise StoreError(
                f"{path} is in use by another process, or by another run of this process, which "
                "gives it back by Run.close()"
            )
        self._folder = os.stat(path if descriptor < 0 else descriptor)
        self._close = weakref.finalize(self, _close, descriptor)
        _locks.add(self)

    def close(self) -> None:
        """Give the folder back."""
        self._close()

    def is_in_place(self) -> bool:
        """Whether the folder is still where it was."""
        try:
            return os.path.samestat(self._folder, os.stat(self._path))
        except OSError:
            return False


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def _release_after_fork() -> None:
    for lock in list(_locks):
        lock.is_inherited = True
        lock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_after_fork)


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


def _locked(path: Path) -> int | None:
    """Return a descriptor of the folder with a lock, or None if another one has it.

    It is -1 on Windows, which has no such locks.
    """
    try:
        import fcntl
    except ImportError:
        return -1
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # another process has just removed the folder
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(descriptor), os.stat(path)):
            raise OSError  # another process has just removed the folder
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def lock_of(path: Path) -> contextlib.closing[Lock]:
    """Keep other processes from a folder within a context."""
    return contextlib.closing(Lock(path))
