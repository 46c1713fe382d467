"""The signals that end a run: between two chunks instead of anywhere."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

# what is said of each; Windows has no SIGHUP
_WORDS: dict[int, str] = {
    signal.SIGINT: "Ctrl-C: stopping after this chunk; Ctrl-C again stops at once",
    signal.SIGTERM: "terminated: stopping after this chunk",
}
_HANG_UP: int | None = getattr(signal, "SIGHUP", None)
if _HANG_UP is not None:
    _WORDS[_HANG_UP] = "hung up: stopping after this chunk"

# The signal that has ended a command. Python drops what a handler raises in a callback, such as one
# of the garbage collector, and a library that is being imported makes an ImportError of it.
_ended_by: int | None = None


class SignalInterrupt(KeyboardInterrupt):
    """What SIGTERM and SIGHUP raise in the command line.

    :param number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def exit_status(interrupt: KeyboardInterrupt) -> int:
    """Return the exit status of a command that was interrupted."""
    return 128 + getattr(interrupt, "number", signal.SIGINT)


def end_by_signal(number: int, frame: object) -> None:
    """Raise :class:`SignalInterrupt`: the handler of SIGTERM and SIGHUP in the command line."""
    global _ended_by
    _ended_by = number
    # ``timeout``, or a shell whose terminal closes, sends the same one twice, which must not
    # disturb what is said before the end
    signal.signal(number, signal.SIG_IGN)
    raise SignalInterrupt(number)


def ended_by() -> int | None:
    """Return the signal that has ended the command in :func:`ended_by_signals`."""
    return _ended_by


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """End what is done here at SIGTERM and SIGHUP as at Ctrl-C.

    A signal that is ignored stays so, as SIGHUP under ``nohup``; one that has a handler keeps it.
    Only the main thread can have handlers.
    """
    global _ended_by
    _ended_by = None
    taken: list[int] = []
    if threading.current_thread() is threading.main_thread():
        others = set(_WORDS) - {signal.SIGINT}  # of which Python makes a KeyboardInterrupt
        taken += [number for number in others if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in taken:
            signal.signal(number, end_by_signal)
        yield
    finally:
        _ended_by = None
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def postponed_interrupts() -> Iterator[Callable[[], None]]:
    """Hold interrupts back until the function that is yielded is called, which then raises them.

    They are Ctrl-C, and in the command line SIGTERM and SIGHUP. A line tells of the first one,
    because a chunk may have to be compiled first. Ctrl-C after that is raised at once. Signals that
    are ignored, or have a handler of the user's, are left alone. In other threads than the main
    one, which get no signals, nothing changes.
    """
    came = _ended_by

    def hold(number: int, frame: object) -> None:
        nonlocal came
        if came is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        if came is None:
            came = number
            with contextlib.suppress(OSError):  # print() may be interrupted by this very function
                os.write(2, f"\n{_WORDS[number]}\n".encode())

    def check() -> None:
        if came is not None:
            raise KeyboardInterrupt if came == signal.SIGINT else SignalInterrupt(came)

    held: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in _WORDS:
            handler = signal.getsignal(number)
            if handler is signal.default_int_handler or handler is end_by_signal:
                held[number] = handler
    try:
        for number in held:
            signal.signal(number, hold)
        yield check
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
    check()  # one that came after the last chunk
