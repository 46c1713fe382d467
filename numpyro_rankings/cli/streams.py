"""The screen of a command, which may go away before the command ends, and notes on it."""

import contextlib
import errno
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from numpyro_rankings.cli.arguments import PROGRAM, UserError, for_screen
from numpyro_rankings.words import with_visible_directions

# The errors of a terminal that hung up, and of a pipe whose reader has ended.
_GONE = (errno.EIO, errno.EPIPE)


class _Outlived:
    """A stream that drops what nobody can read any more, instead of an error.

    Names in files, and of files, do not command the terminal: their control characters are seen.

    Other errors, as of a log on a full disk, are the user's.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._dropped():
            self._stream.write(with_visible_directions(text))
        return len(text)

    def flush(self) -> None:
        with self._dropped():
            self._stream.flush()

    @contextlib.contextmanager
    def _dropped(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # What is buffered would fail again when Python ends, and the exit status would be 120.
            with contextlib.suppress(OSError):  # there may be no file
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)
            if error.errno not in _GONE:
                text = error.strerror or error
                raise UserError(f"cannot write what is shown on the screen: {text}") from None


@contextlib.contextmanager
def outlived_streams() -> Iterator[None]:
    """Go on when the terminal hangs up, or the reader of a pipe ends: a run is worth more."""
    with contextlib.ExitStack() as stack:

        def outlived(stream: Any) -> Any:
            if stream is None:  # it was closed before the command began, as by >&- of a shell
                stream = stack.enter_context(open(os.devnull, "w"))
            return _Outlived(stream)

        out, err = outlived(sys.stdout), outlived(sys.stderr)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield
            out.flush()  # not only when Python ends
            err.flush()


@contextlib.contextmanager
def notes() -> Iterator[None]:
    """Print the package's warnings as one line each, once, and hide those of its libraries."""
    stream, seen = sys.stderr, set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in seen:
            seen.add(text)
            print(for_screen(f"{PROGRAM}: note: {text}", stream), file=stream)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", category=UserWarning, module=r"numpyro_rankings")
        warnings.showwarning = show
        yield
