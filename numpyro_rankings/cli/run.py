"""A run of the command line: its chains, its memory, and how it can be interrupted."""

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

OUT_OF_MEMORY = "memory ran out: lower --draws or --chains, raise --thin, or lower --max-clusters"


@contextlib.contextmanager
def notes() -> Iterator[None]:
    """Show the package's warnings as one line each, and leave out those of its libraries."""
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


def use_compilation_cache(shortest: float = 0.2) -> None:
    """Keep compiled programs between runs, if there is a place to keep them.

    :param shortest: seconds of compilation from which on it is worth its while.
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


def available_memory() -> int | None:
    """Bytes that are free to use, where the system says so."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB"


def choose_thinning(
    args: argparse.Namespace, what: str, label_bytes: int, slot_bytes: int, budget: int
) -> int:
    """How many sweeps to each draw that is kept, if all of them fit in memory.

    :param what: is drawn, such as ``"20 rankings"``.
    :param label_bytes: of one draw of the labels of all chains.
    :param slot_bytes: of one draw of what each cluster has.
    :param budget: bytes that are kept without asking.
    :raises UserError: if they do not.
    """
    thin = args.thin
    if thin is None:
        usual = max(1, args.draws // 1000)
        thin = max(usual, math.ceil(args.draws * (label_bytes + slot_bytes) / budget))
        thin = min(thin, max(1, args.draws // 100))
        if thin > usual:
            note(
                f"keeping every {thin}th sweep, {args.draws // thin} draws of each chain, to save "
                "memory (--thin)"
            )
    kept = args.draws // thin
    # Twice while chains are put together; the slots again for the ranks and their means.
    needed, free = kept * (2 * label_bytes + 6 * slot_bytes), available_memory()
    if free is not None and needed > 0.8 * free:
        raise UserError(
            f"{args.chains} chains of {kept} draws of {what} need about {gigabytes(needed)} of "
            f"memory, and {gigabytes(free)} is free: raise --thin to "
            f"{math.ceil(thin * needed / (0.8 * free))}, or lower --draws"
        )
    return thin


def run_chains(
    args: argparse.Namespace,
    thin: int,
    make_kernel: type,
    settings: tuple[tuple, dict[str, Any]],
    data: tuple,
    jit_model_args: bool = True,
    before: Callable[[Any], None] | None = None,
) -> Any:
    """An ``MCMC`` that has run.

    :param settings: positional arguments and keywords of the kernel.
    :param data: arguments of the model.
    :param jit_model_args: False makes the data constants of the program.
    :param before: called with the kernel where a progress bar is about to be shown.
    """
    import jax
    from numpyro.infer import MCMC

    from numpyro_rankings.infer.not_finite import NotFiniteError, check_not_stopped

    kernel = type(make_kernel.__name__, (ShowsAllChains, make_kernel), {})(
        *settings[0], **settings[1]
    )
    mcmc = MCMC(
        kernel,
        num_warmup=args.warmup,
        num_samples=args.draws,
        num_chains=args.chains,
        chain_method="vectorized",
        thinning=thin,
        progress_rate=1,
        progress_bar=True,  # its loop is in Python, so Ctrl-C is heard between two sweeps
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


class ShowsAllChains:
    """Clusters and log joint of every chain in NumPyro's progress bar.

    NumPyro asks kernels of vectorized chains for them only if they call themselves ensembles.
    What else that changes, the key of a resumed run, does not matter here.
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


def check_overflow(mcmc: Any, max_clusters: int) -> None:
    import numpy as np

    share = float(np.mean(mcmc.get_extra_fields()["overflow"]))
    # a few sweeps that looked for one more slot than there is do not change an answer
    if share > 0.01:
        raise UserError(
            f"{share:.1%} of the draws wanted more than {max_clusters} clusters: raise "
            "--max-clusters"
        )


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """What Python or XLA say when memory runs out, in one line."""
    try:
        yield
    except MemoryError:
        raise UserError(OUT_OF_MEMORY) from None
    except RuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise UserError(OUT_OF_MEMORY) from None
