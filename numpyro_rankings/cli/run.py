"""One run of a command: its warnings, its memory, its compiled programs and its chains."""

import argparse
import contextlib
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numpyro_rankings.cli.arguments import PROGRAM, UserError, note

DRAWS_BYTES = 2**28  # size of the draws up to which they are not thinned further
_USABLE = 0.8  # share of the free memory
_OUT_OF_MEMORY = "out of memory: lower --draws, --chains or --max-clusters, or raise --thin"


@contextlib.contextmanager
def notes() -> Iterator[None]:
    """Print the package's warnings as one line each, once, and hide those of its libraries."""
    stream, seen = sys.stderr, set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in seen:
            seen.add(text)
            print(f"{PROGRAM}: note: {text}", file=stream)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", category=UserWarning, module=r"numpyro_rankings")
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """Turn the out-of-memory errors of Python and XLA into one line."""
    try:
        yield
    except MemoryError:
        raise UserError(_OUT_OF_MEMORY) from None
    except RuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise UserError(_OUT_OF_MEMORY) from None


def use_compilation_cache(shortest: float = 0.2) -> None:
    """Keep compiled programs between runs, if there is a folder to keep them in.

    :param shortest: seconds of compilation from which a program is kept.
    """
    import jax

    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "numpyro_rankings" / "jax"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if os.access(folder, os.W_OK):
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", shortest)


# ---------------------------------------------------------------------------------------------
# Memory
# ---------------------------------------------------------------------------------------------


def available_memory() -> int | None:
    """Return the number of bytes of free memory, or None if the system does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def check_memory(what: str, needed: float, remedy: str) -> None:
    """Refuse a run that needs more memory than can be used.

    :param what: what needs the memory, in the plural.
    :param needed: bytes.
    :param remedy: what the user can do.
    """
    free = available_memory()
    if free is not None and needed > _USABLE * free:
        raise UserError(
            f"{what} need about {needed / 1e9:.1f} GB of memory, but only {free / 1e9:.1f} GB is "
            f"free: {remedy}"
        )


def label_bytes(num_slots: int) -> int:
    """Return the size of a label of one of ``num_slots`` clusters."""
    return 1 if num_slots <= 127 else 2 if num_slots <= 32767 else 4


def choose_thinning(
    args: argparse.Namespace, what: str, bytes_of_labels: int, bytes_of_slots: int = 0
) -> int:
    """Return the number of sweeps between two draws that are kept: ``--thin``, or by memory.

    :param what: what is clustered, such as ``"20 rankings"``.
    :param bytes_of_labels: size of one draw of the labels, of all chains.
    :param bytes_of_slots: size of one draw of the parameters of all clusters, of all chains.
    :raises UserError: if the draws do not fit in memory.
    """
    thin = args.thin
    if thin is None:
        usual = max(1, args.draws // 1000)
        size = args.draws * (bytes_of_labels + bytes_of_slots)
        thin = max(usual, math.ceil(size / DRAWS_BYTES))
        thin = min(thin, max(1, args.draws // 100))
        if thin > usual:
            note(
                f"keeping one draw every {thin} sweeps, {args.draws // thin} draws of each chain, "
                "to save memory; --thin changes this"
            )
    kept = args.draws // thin
    # Twice while chains are put together; the slots again for the ranks and their means.
    needed, free = kept * (2 * bytes_of_labels + 6 * bytes_of_slots), available_memory()
    enough = math.ceil(thin * needed / (_USABLE * free)) if free else thin
    check_memory(
        f"{args.chains} chains of {kept} draws of {what}",
        needed,
        f"raise --thin to {enough}, or lower --draws",
    )
    return thin


# ---------------------------------------------------------------------------------------------
# Chains
# ---------------------------------------------------------------------------------------------


class _ShowsAllChains:
    """Mixin: the progress bar shows the clusters and the log joint of every chain.

    For vectorized chains NumPyro calls ``get_diagnostics_str`` only of ensemble kernels. What else
    that flag changes, the key of a resumed run, does not matter here.
    """

    is_ensemble_kernel = True

    def get_diagnostics_str(self, state: Any) -> str:
        import numpy as np

        from numpyro_rankings.infer.base import log_joint_of
        from numpyro_rankings.infer.not_finite import check_not_stopped

        check_not_stopped(self, state.z)
        log_joint = f"log joint {float(np.mean(log_joint_of(state.z))):.1f}"
        if "num_clusters" not in state.z:
            return log_joint
        clusters = "/".join(str(k) for k in np.atleast_1d(state.z["num_clusters"]))
        return f"clusters {clusters}, {log_joint}"


def showing_all_chains(kernel_class: type) -> type:
    """Return a subclass of a kernel for runs with a progress bar."""
    return type(kernel_class.__name__, (_ShowsAllChains, kernel_class), {})


def run_chains(
    args: argparse.Namespace,
    thin: int,
    kernel: Any,
    data: tuple,
    jit_model_args: bool = True,
    before: Callable[[Any], None] | None = None,
) -> Any:
    """Run the chains, with a progress bar if stderr is a terminal.

    :param kernel: an instance of a class of :func:`showing_all_chains`.
    :param data: the arguments of the model.
    :param jit_model_args: False makes the data constants of the compiled program.
    :param before: called with the kernel just before a progress bar is shown.
    :return: the :class:`numpyro.infer.MCMC` after its run.
    :raises UserError: if a chain has stopped because its state is not finite.
    """
    import jax
    from numpyro.infer import MCMC

    from numpyro_rankings.infer.not_finite import NotFiniteError, check_not_stopped

    mcmc = MCMC(
        kernel,
        num_warmup=args.warmup,
        num_samples=args.draws,
        num_chains=args.chains,
        chain_method="vectorized",
        thinning=thin,
        progress_rate=1,
        progress_bar=True,  # its loop is in Python, so that Ctrl-C works between two sweeps
        jit_model_args=jit_model_args,
    )
    show_bar = sys.stderr.isatty() and not args.no_progress
    if show_bar and before is not None:
        before(kernel)
    try:
        with contextlib.ExitStack() as stack:
            if not show_bar:
                nowhere = stack.enter_context(open(os.devnull, "w"))
                stack.enter_context(contextlib.redirect_stderr(nowhere))
            mcmc.run(jax.random.key(args.seed), *data, extra_fields=("overflow",))
        check_not_stopped(kernel, mcmc.get_samples(group_by_chain=True))
    except NotFiniteError as error:
        raise UserError(str(error)) from None
    return mcmc


def check_overflow(mcmc: Any, max_clusters: int) -> None:
    """Refuse a run in which too many draws needed more clusters than there were slots."""
    import numpy as np

    from numpyro_rankings.diagnostics import OVERFLOW_BAD

    share = float(np.mean(mcmc.get_extra_fields()["overflow"]))
    if share > OVERFLOW_BAD:
        raise UserError(
            f"{share:.1%} of the draws needed more than {max_clusters} clusters: raise "
            "--max-clusters"
        )
