"""What the processes of :mod:`jax.distributed` tell one another."""

import contextlib
from collections.abc import Iterator

import jax
import numpy as np

# Functions import zarr and ArviZ, which take long to load and which not every run needs.

_WORDS_BYTES = 512  # the other processes are told so much of an error


def agree(value: int) -> int:
    """Return the value of the first process, so that all of them go on alike."""
    if jax.process_count() == 1:
        return value
    from jax.experimental import multihost_utils

    return int(multihost_utils.broadcast_one_to_all(np.int32(value)))


@contextlib.contextmanager
def raise_in_all_processes() -> Iterator[None]:
    """Let what is raised in one process be raised in all, so that none waits for it for ever.

    All processes must get here, and nothing within may need the others in one process alone.
    """
    if jax.process_count() == 1:
        yield
        return
    raised: BaseException | None = None
    try:
        yield
    except BaseException as error:
        raised = error
    raised_elsewhere = _raised_in(raised)
    if raised is not None:
        raise raised
    if raised_elsewhere:
        process, words = next(iter(raised_elsewhere.items()))
        if words == KeyboardInterrupt.__name__:
            raise KeyboardInterrupt(f"the run was interrupted in process {process}")
        raise RuntimeError(f"the run stopped in process {process}: {words}")


def _raised_in(error: BaseException | None) -> dict[int, str]:
    """Return what was raised in which processes, in words."""
    from jax.experimental import multihost_utils

    words = ""
    if error is not None:
        name, text = type(error).__name__, " ".join(str(error).split())
        is_interrupt = isinstance(error, KeyboardInterrupt)
        words = KeyboardInterrupt.__name__ if is_interrupt else f"{name}: {text}".rstrip(": ")
    mine = np.zeros(_WORDS_BYTES, np.uint8)
    content = np.frombuffer(words.encode()[:_WORDS_BYTES], np.uint8)
    mine[: len(content)] = content
    gathered = np.asarray(multihost_utils.process_allgather(mine))
    words_of_each = [row.tobytes().rstrip(b"\0").decode(errors="ignore") for row in gathered]
    return {process: words for process, words in enumerate(words_of_each) if words}
