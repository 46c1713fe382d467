"""A run that goes on in a thread of its own, and what it is asked to do."""

import contextvars
import threading
from collections.abc import Callable
from typing import Any, Literal

from numpyro_rankings._system import clock

_LOOK_AGAIN = 1.0  # seconds after which a run that rests looks whether the program has ended


class AbortedError(Exception):
    """Ends the sweeps of a run that is asked to."""


class Background:
    """A thread that makes the sweeps of a run. Between two chunks it rests, or ends, if asked to.

    It also ends once the main thread has: the end of the program awaits it, because to end a thread
    within XLA would abort the process.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._asked: Literal["go on", "pause", "abort"] = "go on"
        self._rests, self._is_told = False, True
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether there is a thread that has not ended, also while it rests."""
        return self._thread is not None

    @property
    def is_here(self) -> bool:
        """Whether this is called in the thread."""
        return threading.current_thread() is self._thread

    @property
    def state(self) -> str:
        """What the thread does, in a word; empty where there is nothing to tell."""
        if self.is_running:
            return "paused" if self._rests else "running"
        return "" if self._error is None else f"ended with {type(self._error).__name__}"

    def start(self, work: Callable[[], Any]) -> None:
        """Begin with what is to be done, of which :meth:`wait` tells the result."""
        context = contextvars.copy_context()
        with self._changed:
            self._asked, self._is_told, self._result, self._error = "go on", False, None, None
            name = "run of numpyro_rankings"
            self._thread = threading.Thread(target=context.run, args=(self._do, work), name=name)
            self._thread.start()

    def _do(self, work: Callable[[], Any]) -> None:
        result, error = None, None
        try:
            result = work()
        except AbortedError:
            result = False
        except BaseException as raised:  # for the caller of wait()
            error = raised
        with self._changed:
            self._thread, self._result, self._error = None, result, error
            self._changed.notify_all()

    def heed(self) -> float:
        """Do between two chunks what was asked for, and return how many seconds it rested.

        :raises AbortedError: if the thread is to end.
        """
        if not self.is_here:
            return 0.0
        start = clock.now()
        with self._changed:
            while self._asked == "pause" and threading.main_thread().is_alive():
                self._rests = True
                self._changed.notify_all()
                self._changed.wait(_LOOK_AGAIN)
            self._rests = False
            if self._asked == "abort" or not threading.main_thread().is_alive():
                raise AbortedError
        return clock.now() - start

    def pause(self) -> None:
        """Let it rest after its chunk, and wait until it does."""
        with self._changed:
            if self.is_running and self._asked != "abort":
                self._asked = "pause"
                self._wait_for(lambda: self._rests)

    def proceed(self) -> None:
        """Let it go on after a pause."""
        with self._changed:
            if self._asked == "pause":
                self._asked, self._rests = "go on", False
                self._changed.notify_all()

    def wait(self, timeout: float | None = None) -> Any:
        """Wait for the end, and return the result."""
        with self._changed:
            if self.is_here:
                raise RuntimeError("a run cannot wait for itself")
            if not self._wait_for(lambda: self._rests, timeout):
                raise TimeoutError(f"the run goes on after {timeout:g} seconds")
            if self.is_running:
                raise RuntimeError("the run is paused: call proceed() or abort() first")
            self._is_told = True
            if self._error is not None:
                raise self._error
            return self._result

    def abort(self) -> None:
        """End it after its chunk, and wait until it has ended."""
        with self._changed:
            self._asked = "abort"
            self._changed.notify_all()
            self._wait_for(lambda: False)
            if not self._is_told and not self.is_running:
                self.wait()

    def _wait_for(self, is_so: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until something is so, or the thread has ended; it does not wait for itself."""
        if self.is_here:
            return True
        return self._changed.wait_for(lambda: is_so() or not self.is_running, timeout)
