"""The signals that end a run: between two chunks instead of anywhere."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# the first words of the line that reports each signal; Windows has no SIGHUP
_WORDS: dict[int, str] = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "terminated"}
_HANG_UP: int | None = getattr(signal, "SIGHUP", None)
if _HANG_UP is not None:
    _WORDS[_HANG_UP] = "hung up"

# The signal that has ended a command. It is kept because the exception may be lost: Python drops
# those raised in a callback (such as one of the garbage collector), and a library that is being
# imported turns it into an ImportError.
_ended_by: int | None = None
# the handlers that the signals which end the command had before it began
_taken: dict[int, Any] = {}


class SignalInterrupt(KeyboardInterrupt):
    """Raised by a signal in the command line.

    :param number: number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def exit_status(interrupt: KeyboardInterrupt) -> int:
    """Return the exit status of a command that was interrupted."""
    if isinstance(interrupt, SignalInterrupt):
        return 128 + interrupt.number
    return 128 + signal.SIGINT


def end_by_signal(number: int, frame: object) -> None:
    """Raise :class:`SignalInterrupt`: the handler of the signals that end a command.

    It is the last one that is heeded: those that follow must not disturb what is said before the
    end. ``timeout``, or a shell whose terminal closes, sends the same one twice.
    """
    global _ended_by
    _ended_by = number
    ignore_signals(_taken)
    raise SignalInterrupt(number)


def ignore_signals(numbers: Iterable[int] = tuple(_WORDS)) -> None:
    """Ignore signals until the process ends, or the command has ended."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def ended_by() -> int | None:
    """Return the signal that has ended the command in :func:`ended_by_signals`."""
    return _ended_by


def check_not_ended() -> None:
    """Raise :class:`SignalInterrupt` if a signal has ended the command, and Python dropped it."""
    if _ended_by is not None:
        raise SignalInterrupt(_ended_by)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """End what is done here at the first Ctrl-C, SIGTERM or SIGHUP, and ignore the others.

    A signal that is ignored stays so, as SIGHUP under ``nohup``; one that has a handler keeps it.
    Only the main thread can have handlers.
    """
    global _ended_by
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = (signal.SIG_DFL, signal.default_int_handler)
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in _WORDS}
    _taken.update((number, handler) for number, handler in handlers.items() if handler in usual)
    _ended_by, show = None, sys.unraisablehook

    def show_others(unraisable: Any) -> None:
        """Say nothing of an interrupt that Python drops, which :func:`ended_by` knows."""
        if unraisable.exc_type is not SignalInterrupt:
            show(unraisable)

    try:
        sys.unraisablehook = show_others
        for number in _taken:
            signal.signal(number, end_by_signal)
        yield
    finally:
        _ended_by, sys.unraisablehook = None, show
        for number, handler in _taken.items():
            signal.signal(number, handler)
        _taken.clear()


class HeldInterrupts:
    """Interrupts that are held back.

    - **came** - the signal that came first, None before.
    - **doing** - the work that is finished first, in the words of the line that reports the signal.
    - **is_over** - whether nothing is left that a second Ctrl-C could interrupt.
    """

    def __init__(self) -> None:
        self.came = _ended_by
        self.doing = "stopping after this chunk"
        self.is_over = False

    def check(self) -> None:
        """Raise the interrupt that came."""
        if self.came is not None:
            raise KeyboardInterrupt if self.came == signal.SIGINT else SignalInterrupt(self.came)


_held: HeldInterrupts | None = None  # only the main thread gets signals


@contextlib.contextmanager
def held_interrupts() -> Iterator[HeldInterrupts]:
    """Hold interrupts back: Ctrl-C, and in the command line SIGTERM and SIGHUP.

    A line reports the first one, because the work that is finished first may take long. Ctrl-C
    after that is raised at once, and in the command line it is the last signal that has an effect.
    Signals that are ignored, or have a handler of the user's, are left alone. Threads other than
    the main one get no signals, so nothing changes there. A context within another such context
    is the outer one.
    """
    global _held
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and _held is not None:
        yield _held
        return
    held = HeldInterrupts()
    handlers: dict[int, Any] = {}

    def hold(number: int, frame: object) -> None:
        if held.came is None:
            held.came = number
            if not held.is_over:
                again = "; Ctrl-C again stops at once" if number == signal.SIGINT else ""
                with contextlib.suppress(OSError):  # print() may be interrupted by this function
                    os.write(2, f"\n{_WORDS[number]}: {held.doing}{again}\n".encode())
        elif number == signal.SIGINT and not held.is_over:
            handlers[number](number, frame)  # this raises KeyboardInterrupt

    if is_main:
        current_handlers: dict[int, Any] = {number: signal.getsignal(number) for number in _WORDS}
        ours = (signal.default_int_handler, end_by_signal)
        handlers.update(
            (number, handler) for number, handler in current_handlers.items() if handler in ours
        )
        _held = held
    try:
        for number in handlers:
            signal.signal(number, hold)
        yield held
    finally:
        if is_main:
            _held = None
        for number, handler in handlers.items():
            if signal.getsignal(number) is hold:  # it is ignored once it has ended the command
                signal.signal(number, handler)


@contextlib.contextmanager
def postponed_interrupts() -> Iterator[Callable[[], None]]:
    """Hold interrupts back until the function that is yielded is called, which then raises them.

    As :func:`held_interrupts`, but one that came after the last call is raised in the end.
    """
    with held_interrupts() as held:
        yield held.check
    held.check()
