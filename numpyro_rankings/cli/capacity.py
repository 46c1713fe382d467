"""How much memory a run needs, and how many of its draws are kept and shown."""

import contextlib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from numpyro_rankings._system.memory import USABLE, TooLittleMemoryError, available_memory
from numpyro_rankings.cli.arguments import UserError, note
from numpyro_rankings.cli.options import Plan

if TYPE_CHECKING:
    from numpyro_rankings.run import Run

_LEAST_SHOWN, _MOST_SHOWN = 200, 4000  # draws of each chain that are summarised
DRAWS_BYTES = 2**28  # size of the draws up to which they are not thinned further
_OUT_OF_MEMORY = "out of memory: lower --draws, --chains or --max-clusters, or raise --thin"


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """Turn the out-of-memory errors of Python and XLA, and refusals, into one line."""
    try:
        yield
    except TooLittleMemoryError as error:
        raise UserError(str(error)) from None
    except MemoryError:
        raise UserError(_OUT_OF_MEMORY) from None
    except RuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise UserError(_OUT_OF_MEMORY) from None


def check_memory(what: str, needed: float, remedy: str) -> None:
    """Refuse a run if what it has, in the plural, needs more bytes of memory than can be used."""
    free = available_memory()
    if free is not None and needed > USABLE * free:
        raise UserError(
            f"{what} need about {needed / 1e9:.1f} GB of memory, but only {free / 1e9:.1f} GB is "
            f"free: {remedy}"
        )


def label_bytes(num_slots: int) -> int:
    """Return the size of a label of one of ``num_slots`` clusters."""
    return 1 if num_slots <= 127 else 2 if num_slots <= 32767 else 4


def choose_thinning(plan: Plan, what: str, bytes_of_labels: int, bytes_of_slots: int = 0) -> int:
    """Return the number of sweeps between two draws that are kept: ``--thin``, or by memory.

    :param bytes_of_labels: size of one draw of the labels, of all chains.
    :param bytes_of_slots: size of one draw of the parameters of all clusters, of all chains.
    """
    thin, length = plan.thin, plan.length
    if length is None:  # the number of draws is not known beforehand
        size = _MOST_SHOWN * (bytes_of_labels + bytes_of_slots)
        return thin or max(1, math.ceil(size / (16 * DRAWS_BYTES)))
    if thin is None:
        usual = max(1, length.draws // 1000)
        size = length.draws * (bytes_of_labels + bytes_of_slots)
        thin = max(usual, math.ceil(size / DRAWS_BYTES))
        thin = min(thin, max(1, length.draws // 100))
        if thin > usual:
            note(
                f"keeping one draw every {thin} sweeps, {length.draws // thin} draws of each "
                "chain, to save memory; --thin changes this"
            )
    kept = length.draws // thin
    # Twice while chains are put together; the slots again for the ranks and their means.
    needed, free = kept * (2 * bytes_of_labels + 6 * bytes_of_slots), available_memory()
    enough = math.ceil(thin * needed / (USABLE * free)) if free else thin
    check_memory(
        f"{plan.chains} chains of {kept} draws of {what}",
        needed,
        f"raise --thin to {enough}, or lower --draws",
    )
    return thin


def draws_shown(run: "Run") -> int:
    """Return how many draws of each chain are summarised, by their size."""
    import numpy as np

    one = run.get_samples(group_by_chain=True, max_draws=1)
    size = sum(np.asarray(x[:, :1]).nbytes for x in one.values())
    return int(np.clip(DRAWS_BYTES // size, _LEAST_SHOWN, _MOST_SHOWN))
