"""What the commands share: arguments, errors, a run that can be interrupted, files written at once.

Nothing heavy is imported before the arguments are known to be good.
"""

import argparse
import contextlib
import math
import os
import re
import shutil
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

PROGRAM = "numpyro-rankings"
MIN_DRAWS = 4  # what R-hat needs
OUT_OF_MEMORY = "memory ran out: lower --draws or --chains, raise --thin, or lower --max-clusters"


class UserError(Exception):
    """Something the user can put right; its message is the one line that they see."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see {self.prog} --help)")


# ---------------------------------------------------------------------------------------------
# Arguments
# ---------------------------------------------------------------------------------------------


def add_run_options(parser: argparse.ArgumentParser, files: str) -> None:
    """Those of the run and of its output, so many ``files``."""
    run = parser.add_argument_group("run")
    run.add_argument(
        "--chains", type=count("--chains", 1), default=4, metavar="M", help="default: 4"
    )
    run.add_argument(
        "--warmup",
        type=count("--warmup", 0),
        default=1000,
        metavar="W",
        help="sweeps of each chain before any is kept (default: 1000)",
    )
    run.add_argument(
        "--draws",
        type=count("--draws", 1),
        default=2000,
        metavar="D",
        help="sweeps of each chain after that (default: 2000)",
    )
    run.add_argument(
        "--thin",
        type=count("--thin", 1),
        default=None,
        metavar="S",
        help="keep every S-th of them (default: about 1000 draws, fewer if memory is short)",
    )
    run.add_argument(
        "--seed", type=count("--seed", 0, 2**32 - 1), default=0, metavar="N", help="default: 0"
    )

    output = parser.add_argument_group("output")
    output.add_argument(
        "--out",
        type=Path,
        default=Path("numpyro-rankings-results"),
        metavar="DIR",
        help="default: numpyro-rankings-results",
    )
    output.add_argument(
        "--force", action="store_true", help=f"replace the {files} files if DIR exists"
    )
    output.add_argument("--no-progress", action="store_true", help="no progress bar")


def count(option: str, least: int, most: int | None = None) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise UserError(f"{option} must be a whole number, got {text!r}") from None
        if number < least or (most is not None and number > most):
            bounds = f"at least {least}" if most is None else f"from {least} to {most}"
            raise UserError(f"{option} must be {bounds}, got {number}")
        return number

    return parse


def positive(option: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise UserError(f"{option} must be a number, got {text.strip()!r}") from None
    if not (math.isfinite(number) and number > 0):
        raise UserError(f"{option} must be a positive number, got {text.strip()}")
    return number


def scale(option: str, can_be_flat: bool = True) -> Callable[[str], Any]:
    """A number, the shape and rate of a Gamma prior, or ``"flat"``."""

    def parse(text: str) -> float | tuple[str, float, float] | str:
        prior = re.fullmatch(r"\s*gamma\s*\(([^,()]*),([^,()]*)\)\s*", text, re.IGNORECASE)
        if prior:
            return ("gamma", positive(option, prior[1]), positive(option, prior[2]))
        if can_be_flat and text.strip().lower() == "flat":
            return "flat"
        if "(" in text:
            flat = '"gamma(shape,rate)" or flat' if can_be_flat else 'or "gamma(shape,rate)"'
            comma = ", " if can_be_flat else " "
            raise UserError(f"{option} must be a number{comma}{flat}, got {text!r}")
        return positive(option, text)

    return parse


def check_draws(args: argparse.Namespace) -> None:
    kept = args.draws // (args.thin or 1)
    if kept < MIN_DRAWS:
        raise UserError(
            f"--draws {args.draws} with --thin {args.thin or 1} keeps {kept} draws; at least "
            f"{MIN_DRAWS} are needed"
        )


def check_output(out: Path, force: bool) -> None:
    """Complain before an hour of sampling, not after it."""
    if os.path.lexists(out):
        if not out.is_dir():
            raise UserError(f"{out} exists and is not a folder: give another --out")
        if not force:
            raise UserError(f"the folder {out} exists: add --force to replace its results")
        parent = out
    else:
        parent = next(p for p in out.absolute().parents if os.path.lexists(p))
    try:
        tempfile.TemporaryDirectory(dir=parent).cleanup()
    except OSError as error:
        raise UserError(f"cannot write to {out}: {parent}: {error.strerror or error}") from None


def check_file(name: str, what: str = "rankings") -> None:
    """Answer the commonest slips at once; the reader knows the others."""
    if not name:
        raise UserError("the name of the file is empty")
    if Path(name).is_dir():
        raise UserError(f"{name}: is a folder, not a file of {what}")
    if not Path(name).exists():
        raise UserError(f"{name}: no such file")


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


# ---------------------------------------------------------------------------------------------
# The run
# ---------------------------------------------------------------------------------------------


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


def note(text: str) -> None:
    print(f"{PROGRAM}: note: {text}", file=sys.stderr)


def as_prior(value: Any) -> Any:
    """What :func:`scale` has read, as the kernels take it."""
    import numpyro.distributions as dist

    from numpyro_rankings.distributions import FlatLog

    if value == "flat":
        return FlatLog()
    return dist.Gamma(*value[1:]) if isinstance(value, tuple) else value


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


# ---------------------------------------------------------------------------------------------
# Results
# ---------------------------------------------------------------------------------------------


def describe_run(args: argparse.Namespace, thin: int) -> dict[str, str]:
    """How the run was made, as the report lists it."""
    import platform

    import arviz
    import jax
    import jaxlib
    import numpy as np
    import numpyro

    from numpyro_rankings import __version__

    sweeps = f"{args.chains} chains of {args.warmup} sweeps of warm-up and {args.draws}"
    return {
        "run": f"{sweeps} more, every {thin} kept" if thin > 1 else f"{sweeps} kept",
        "seed": str(args.seed),
        "versions": f"numpyro-rankings {__version__}, numpyro {numpyro.__version__}, "
        f"jax {jax.__version__}, jaxlib {jaxlib.__version__}, arviz {arviz.__version__}, "
        f"numpy {np.__version__}, Python {platform.python_version()}",
    }


def write_at_once(out: Path, files: Sequence[str], write: Callable[[Path], None]) -> None:
    """Write all files beside the output folder, then move them there at once.

    :param write: puts the ``files`` into the folder that it is given.
    :raises UserError: if that cannot be done.
    """
    place = out.absolute()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as folder:
            done = Path(folder) / "results"
            done.mkdir()
            write(done)
            if place.exists():  # --force: other files that are there stay
                for name in files:
                    os.replace(done / name, place / name)
            else:
                shutil.move(done, place)
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror or error}") from None


def print_reference(reference: Any) -> None:
    """Which partition the groups are those of."""
    most = math.log(len(reference.labels))
    print()
    _print_wrapped(
        f"The groups are those of {reference.in_words}: {reference.expected_loss:.3g} nats on "
        f"average, of {most:.3g} at most."
    )


def _print_wrapped(text: str, indent: str = "") -> None:
    width = shutil.get_terminal_size((100, 24)).columns
    print(textwrap.fill(text, max(40, width), initial_indent=indent, subsequent_indent=indent))


def print_diagnostics(data: Any, out: Path, files: Sequence[str]) -> None:
    """Whether the run can be trusted, and where its results are."""
    from numpyro_rankings.inference_data import diagnostics_table
    from numpyro_rankings.report import number, verdict

    table = diagnostics_table(data)
    print(
        "\nquantity                                  mean         sd  ESS bulk  ESS tail     R-hat"
    )
    for name, row in table.iterrows():
        print(
            f"{name!s:<34}{row['mean']:>12,.5g}{row['sd']:>11,.3g}"
            f"{number(row['ess_bulk'], ',.0f'):>10}{number(row['ess_tail'], ',.0f'):>10}"
            f"{row['note'] or number(row['r_hat'], '.3f'):>10}"
        )
    judged = verdict(data, table)
    print(f"\n{judged.headline}")
    for reason in judged.reasons:
        _print_wrapped(reason, "  ")
    others = ", ".join(name for name in files if name != "report.html")
    print(f"\nResults: {out / 'report.html'} (open it in a browser), {others}")


def fit_width(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
