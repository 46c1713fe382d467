"""Ctrl-C between two chunks instead of anywhere."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def postponed_interrupts() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back until the function that is yielded is called, which then raises it.

    A line tells of it, because a chunk may have to be compiled first. A second Ctrl-C is raised at
    once. In other threads than the main one, which get no signals,
    nothing changes.
    """
    came = False

    def hold(number: int, frame: object) -> None:
        nonlocal came
        if came:
            raise KeyboardInterrupt
        came = True
        with contextlib.suppress(OSError):  # print() may be interrupted by this very function
            os.write(2, b"\nCtrl-C: stopping after this chunk; Ctrl-C again stops at once\n")

    def check() -> None:
        if came:
            raise KeyboardInterrupt

    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not is_ours:
        yield check
        return
    signal.signal(signal.SIGINT, hold)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
