"""One run of a command: its warnings, its memory, its compiled programs and its chains."""

import argparse
import contextlib
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from numpyro_rankings._system.interrupts import (
    HeldInterrupts,
    SignalInterrupt,
    check_not_ended,
    ended_by,
    held_interrupts,
)
from numpyro_rankings._system.memory import USABLE, TooLittleMemoryError, available_memory
from numpyro_rankings.cli.arguments import (
    MAX_CLUSTERS,
    PROGRAM,
    HopelessError,
    UserError,
    check_output,
    fill_in_length,
    note,
)
from numpyro_rankings.cli.results import FILES, OPTIONAL, check_replaceable, write_at_once
from numpyro_rankings.words import plural
from numpyro_rankings.words.commands import OUT, resumed

if TYPE_CHECKING:
    from numpyro_rankings.cli.interim import InterimPage
    from numpyro_rankings.cli.progress import Progress
    from numpyro_rankings.report.findings import Findings
    from numpyro_rankings.report.page import Status
    from numpyro_rankings.run import Run
    from numpyro_rankings.run.results import BurnIn
    from numpyro_rankings.run.settings import Settings

FITS = "fits.json"  # in the folder of the results of several files
_MARGIN = 1.05  # of the ESS, because not all draws are summarised
_LEAST_DRAWS, _LEAST_SHOWN, _MOST_SHOWN = 4, 200, 4000  # of each chain
# draws of each chain, and the share of them that lacked a slot, at which a run is given up
_DRAWS_OF_OVERFLOW, _HOPELESS_OVERFLOW = 1000, 0.05
DRAWS_BYTES = 2**28  # size of the draws up to which they are not thinned further
_LEAST_MINUTES = 1e-3  # for one chunk
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


def check_memory(what: str, needed: float, remedy: str) -> None:
    """Refuse a run that needs more memory than can be used.

    :param what: what needs the memory, in the plural.
    :param needed: bytes.
    :param remedy: what the user can do.
    """
    free = available_memory()
    if free is not None and needed > USABLE * free:
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
    if args.draws is None:  # nobody knows how many draws there will be
        size = _MOST_SHOWN * (bytes_of_labels + bytes_of_slots)
        return thin or max(1, math.ceil(size / (16 * DRAWS_BYTES)))
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
    enough = math.ceil(thin * needed / (USABLE * free)) if free else thin
    check_memory(
        f"{args.chains} chains of {kept} draws of {what}",
        needed,
        f"raise --thin to {enough}, or lower --draws",
    )
    return thin


# ---------------------------------------------------------------------------------------------
# Chains
# ---------------------------------------------------------------------------------------------


class Sampled(NamedTuple):
    """The draws of a command.

    - **mcmc** - the draws that are summarised, as an :class:`numpyro.infer.MCMC` after its run.
    - **ended** - why the run ended: its draws suffice, its time or its length was over, or Ctrl-C
      or another signal came.
    - **lengths** - sweeps of each chain, and those of them after the burn-in.
    - **changes** - of the run that Python code resumed with ``check=False``, in sentences.
    - **seconds** - that the sweeps took, those before it was resumed included; None if not known.
    """

    mcmc: Any
    ended: Literal["good", "time", "length", "interrupted"]
    lengths: tuple[int, int]
    changes: Sequence[str] = ()
    seconds: float | None = None

    def note_changes(self, data: Any) -> None:
        """Note in the draws for ArviZ what was changed, so that the verdict says so."""
        if self.changes:
            from numpyro_rankings.posterior.diagnostics import CHANGES

            data["posterior"].attrs[CHANGES] = [*self.changes]


def use_devices(chains: int) -> None:
    """Give JAX one CPU device for each core that can have chains, before it is first used."""
    import jax

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with contextlib.suppress(RuntimeError):  # JAX was used already
        jax.config.update("jax_num_cpu_devices", _largest_divisor(chains, cores or 1))


def _largest_divisor(number: int, at_most: int) -> int:
    return max(k for k in range(1, min(number, at_most) + 1) if number % k == 0)


def store_of(out: Path) -> Path:
    """Return the folder in which a run is kept until it has ended by itself."""
    out = out if out.name not in ("", "..") else out.resolve()
    if not out.name:
        raise UserError(f"{out} has no room for a run beside it: choose another folder")
    return out.with_name(out.name + ".run")


def output_folder(args: argparse.Namespace) -> Path:
    """Return the folder of ``--resume`` or ``--out``, of which there is at most one."""
    if args.resume is not None and args.out is not None:
        raise UserError("--out goes without --resume, whose folder the results are written to")
    if args.resume is not None and args.force:
        raise UserError("--force goes without --resume, which goes on with the run that is there")
    return args.resume or args.out or Path(OUT)


def begin(args: argparse.Namespace) -> None:
    """Check where the run is to be kept and its results are to be written, and fill in its options.

    :raises UserError: if another process has the run, or the options do not go with a resumed one.
    """
    args.out = output_folder(args)
    store = store_of(args.out)
    if args.resume is not None and not store.is_dir():
        if (args.out / FITS).exists():
            raise UserError(f"{args.out} has the fits of several files: give all of them again")
        raise UserError(f"there is no run to resume: no folder {store}")
    if (args.out / FITS).exists():
        raise UserError(f"{args.out} has the fits of several files: choose another --out")
    has_sweeps, least_draws = _has_sweeps(store), 0
    if args.resume is not None and has_sweeps:
        least_draws = _fill_in_stored(args, store)
    elif args.resume is not None:
        note(f"{store} has no sweep yet: the run begins again")
        _fill_in_new(args, store)
    elif has_sweeps and not args.force:
        raise UserError(
            f"{store} has an unfinished run: go on with --resume {args.out}, or start again with "
            "--force"
        )
    args.chains = 4 if args.chains is None else args.chains
    args.seed = 0 if args.seed is None else args.seed
    fill_in_length(args)
    if args.draws is not None and args.draws < least_draws:
        raise UserError(
            f"{store} already has {least_draws:,} sweeps of each chain after the warm-up: --draws "
            f"must be at least that, got {args.draws}"
        )
    args.replaces = args.force or args.resume is not None
    check_output(args.out, args.replaces)
    check_replaceable(args.out)
    args.resume = args.resume if has_sweeps else None


def _has_sweeps(store: Path) -> bool:
    if not os.path.lexists(store):
        return False  # and JAX is not imported before the other options are checked
    from numpyro_rankings.run import StoreError
    from numpyro_rankings.run.store import Store

    try:
        return Store.has_sweeps(store)
    except StoreError as error:
        raise UserError(str(error)) from None


def _fill_in_stored(args: argparse.Namespace, path: Path) -> int:
    """Take the settings of a run from its store, and refuse options that contradict them.

    :return: the number of sweeps after the warm-up.
    """
    from numpyro_rankings.run import StoreError
    from numpyro_rankings.run.settings import settings_of
    from numpyro_rankings.run.store import Store

    try:
        store = Store.open(path)
        try:
            found, num_draws = settings_of(path, store.about), store.num_draws
        finally:
            store.close()
    except StoreError as error:
        raise UserError(str(error)) from None
    _refuse_without_length(args, path, found)
    if args.draws is not None and args.warmup is None and not found.num_warmup:
        raise UserError(
            f"{path} is a run without warm-up, of which only the last part is used: resume it "
            "without --draws"
        )
    stored = {"chains": found.num_chains, "thin": found.thinning, "seed": found.key[-1]}
    if args.draws is not None or args.warmup is not None:
        stored["warmup"] = found.num_warmup
    for name, value in stored.items():
        given = getattr(args, name)
        if given is not None and given != value:
            raise UserError(f"{path} is a run with --{name} {value}, not {given}")
        setattr(args, name, value)
    return num_draws * found.thinning


def _fill_in_new(args: argparse.Namespace, path: Path) -> None:
    """Take what is not given from a run that has no sweep yet, if its settings were stored."""
    from numpyro_rankings.run import StoreError
    from numpyro_rankings.run.settings import settings_of
    from numpyro_rankings.run.store import Store

    try:
        about = Store.about_new(path)
        if about is None:
            return
        found = settings_of(path, about)
    except StoreError as error:
        raise UserError(str(error)) from None
    _refuse_without_length(args, path, found)
    stored = {"chains": found.num_chains, "thin": found.thinning, "seed": found.key[-1]}
    if args.draws is not None and found.num_warmup:
        stored["warmup"] = found.num_warmup
    for name, value in stored.items():
        setattr(args, name, value if getattr(args, name) is None else getattr(args, name))


def _refuse_without_length(args: argparse.Namespace, path: Path, found: "Settings") -> None:
    if args.draws is None and args.warmup is None and found.num_warmup:
        raise UserError(f"{path} is a run of a fixed length: give its --draws again")


class TooFewDrawsError(UserError):
    """The time was over before there were enough draws for results."""


class Kept:
    """The run of a command: a context whose store goes only when the results are written.

    If the command fails in it, the error is followed by the command that goes on with the run. Only
    a store without draws is removed. That of another process is none of its business.

    Once there is a run, the first interrupt ends it, and the report is written; Ctrl-C after that
    leaves the report unwritten.

    :param command: as it was given; None if its caller says how to go on.
    """

    def __init__(self, args: argparse.Namespace, command: str | None) -> None:
        self._args, self._command = args, command
        self._run: Run | None = None
        self._held: HeldInterrupts | None = None
        self._stack = contextlib.ExitStack()
        self.minutes: float | None = None  # to go on with, if those of the command were too few
        self._better = ""  # command that may help more than to go on
        self.interim: InterimPage | None = None  # page of the run while it goes on

    def __enter__(self) -> "Kept":
        return self

    def keep(self, run: "Run") -> None:
        """Keep a run, and hold interrupts back from now on."""
        self._run = run
        self._held = self._stack.enter_context(held_interrupts())

    def now(self, doing: str) -> None:
        """Set what is done before an interrupt is heeded."""
        if self._held is not None:
            self._held.doing = doing

    def write(self, write: Callable[[Path], None]) -> None:
        """Write the results, as :func:`write_at_once` does, which nothing interrupts in the end."""

        def write_and_hold(folder: Path) -> None:
            write(folder)
            check_not_ended()
            if self._held is not None:
                self._held.is_over = True

        write_at_once(self._args.out, write_and_hold, FILES, OPTIONAL)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        with self._stack:
            if self._held is not None:
                self._held.is_over = True
            number = ended_by()
            if number is not None and isinstance(error, Exception):  # made of it by a library
                error = SignalInterrupt(number)
                self._end(error)
                raise error from None
            self._end(error)

    def _end(self, error: BaseException | None) -> None:
        """Give the store back, and say in the error what it keeps."""
        run, self._run = self._run, None
        store, is_hopeless = store_of(self._args.out), isinstance(error, HopelessError)
        if run is None:
            if self._args.resume is not None and isinstance(error, KeyboardInterrupt):
                kept = f"{store} keeps its draws"
                error.args = (f"interrupted, nothing was written; {kept}.{self._how_to_go_on()}",)
            return
        from numpyro_rankings.run.folder import discard

        is_useless = run.num_sweeps == 0 or (is_hopeless and run.num_draws == 0)
        if is_useless and error is not None:
            discard(store)
        run.close()
        if is_useless or error is None:
            return
        is_there = store.is_dir()  # otherwise the error says that it was moved or removed
        if self.interim is not None:
            command = self._resumed() if is_there and not is_hopeless else None
            self.interim.end(_in_words(error), run, command)
        if not is_there:
            return
        kept = f"{store} keeps {plural(run.num_sweeps, 'sweep')} of each chain"
        if is_hopeless:
            raise UserError(f"{error} ({kept}; --force starts again)") from None
        if isinstance(error, UserError):
            message = f"{error}\n{PROGRAM}: {kept}.{self._how_to_go_on()}"
            raise type(error)(message) from None
        if isinstance(error, KeyboardInterrupt):
            error.args = (f"interrupted, no results were written; {kept}.{self._how_to_go_on()}",)
        else:
            error.add_note(f"{PROGRAM}: {kept}.{self._how_to_go_on()}")

    def end(self, sampled: Sampled) -> int:
        """Say how the run ended, remove its store if that is all, and return the exit status."""
        from numpyro_rankings.run.folder import discard

        came = None if self._held is None else self._held.came
        status = 0 if came is None else 128 + came
        if sampled.ended in ("good", "length"):
            discard(store_of(self._args.out))
            if status:
                print(
                    f"\n{PROGRAM}: interrupted after the end of the run: the results are complete",
                    file=sys.stderr,
                )
            return status
        print(f"\n{PROGRAM}: {self._why(sampled)}{self._how_to_go_on()}", file=sys.stderr)
        return status

    def status_of(self, sampled: Sampled, findings: "Findings") -> "Status | None":
        """Return what is to be said on top of the report of a run that did not end by itself.

        Its command has the minutes that the run is expected to need, and half as many more. Where
        the chains are in different places, it says which command may help more.
        """
        from numpyro_rankings.posterior.diagnostics import R_HAT_APART
        from numpyro_rankings.report.judgements import seconds_needed, worst_of
        from numpyro_rankings.report.next_steps import instead
        from numpyro_rankings.report.page import Status

        if sampled.ended in ("good", "length"):
            return None
        args, text = self._args, "This is the report of the draws that there are."
        status = Status(self._why(sampled), text, None, sampled.seconds)
        if worst_of(findings.table)[0] > R_HAT_APART:
            better = next((step.command for step in instead(findings)), "")
            text = f"{text} Going on will probably not help."
            status = status._replace(text=text, better=better)
            if sampled.ended == "time":  # one who has interrupted it knows why
                self._better = better
        if args.draws is None:
            status = status._replace(rhat_goal=args.rhat, ess_goal=args.ess)
            needed = seconds_needed(findings, status) / 60
            if not math.isnan(needed) and 1.5 * needed > args.minutes:
                self.minutes = math.ceil(1.5 * needed)
        elif sampled.seconds is not None:
            left = args.warmup + args.draws - sampled.lengths[0]
            left_of_length = max(0.0, left * sampled.seconds / sampled.lengths[0])
            status = status._replace(seconds_left=left_of_length)
        return status._replace(command=self._resumed())

    def _why(self, sampled: Sampled) -> str:
        why = "interrupted"
        if sampled.ended == "time":
            why = f"stopped after {self._args.minutes:g} minutes; the draws do not suffice"
        return f"{why}, after {sampled.lengths[0]:,} sweeps of each chain."

    def _how_to_go_on(self) -> str:
        command = self._resumed()
        if command is None:
            return ""
        if self._better:
            better = f" Going on will probably not help. This may:\n  {self._better}\n"
            return f"{better}To go on all the same:\n  {command}"
        return f" To go on:\n  {command}"

    def _resumed(self) -> str | None:
        if self._command is None:
            return None
        return resumed(self._command, self._args.out, self.minutes)


def _in_words(error: BaseException) -> str:
    """Say in a few words why a run has ended."""
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    return str(error).partition("\n")[0] if isinstance(error, UserError) else "an error"


def check_ess(args: argparse.Namespace) -> None:
    """Refuse a goal that no run can reach."""
    from numpyro_rankings.run.monitor import Monitor
    from numpyro_rankings.run.results import BURN_IN

    most = Monitor.LEAST_KEPT * args.chains * (1 - BURN_IN) / _MARGIN
    if args.ess is not None and args.ess > most:
        raise UserError(f"--ess must be at most {most:,.0f} with {plural(args.chains, 'chain')}")


def sample(args: argparse.Namespace, thin: int, kernel: Any, data: tuple, kept: Kept) -> Sampled:
    """Run the chains until their draws suffice, or for the length that was asked for.

    :param thin: sweeps from one draw that is kept to the next.
    :param kernel: with all settings.
    :param data: the arguments of its model.
    :param kept: is given the run.
    :raises UserError: if a chain stops because its state is not finite, or the store is refused.
    """
    import jax

    from numpyro_rankings.cli.compilation import is_cache_on, telling_of_compilation
    from numpyro_rankings.cli.progress import Progress
    from numpyro_rankings.infer.not_finite import NotFiniteError
    from numpyro_rankings.run import Run, StoreError

    check_ess(args)
    check_not_ended()
    burn_in: BurnIn = "auto" if args.draws is None else 0.0
    number = _largest_divisor(args.chains, len(jax.devices()))
    devices = jax.devices()[:number] if number > 1 else None
    store = store_of(args.out)
    progress, stack = Progress(args), contextlib.ExitStack()
    try:
        starting = "starting the chains"
        progress.say(starting if is_cache_on() else f"compiling and {starting}")
        compiling = "compiling the sampler, which is kept for the next run"
        stack.enter_context(telling_of_compilation(lambda: progress.say(compiling)))
        if args.resume is not None:
            run = Run.resume(store, kernel, *data, devices=devices, burn_in=burn_in)
        else:
            run = Run(
                kernel,
                *data,
                key=jax.random.key(args.seed),
                num_chains=args.chains,
                num_warmup=args.warmup,
                thinning=thin,
                burn_in=burn_in,
                store=store,
                devices=devices,
                extra_fields=("overflow",),
                overwrite=args.force,
            )
        kept.keep(run)
        # now that no other command can write them
        check_output(args.out, args.replaces)
        ended = _advance(run, args, thin, progress, kept)
        progress.end()
        if ended == "good":
            print(f"{PROGRAM}: {_why_good(run)}", file=sys.stderr)
        kept.now("the report is being written")
        mcmc = run.as_mcmc(_draws_shown(run))
    except NotFiniteError as error:
        raise HopelessError(str(error)) from None
    except StoreError as error:
        raise UserError(str(error)) from None
    finally:
        stack.close()
        progress.end()
    return Sampled(mcmc, ended, lengths_of(run, thin), run.changes, run.seconds)


def lengths_of(run: "Run", thin: int) -> tuple[int, int]:
    """Return the number of sweeps of each chain, and of those after the burn-in."""
    return run.num_sweeps, (run.num_draws - run.first_draw) * thin


def _why_good(run: "Run") -> str:
    """Say why a run ended by itself."""
    check = run.last_check
    why = "the draws suffice"
    if check is not None and math.isfinite(check.rhat):
        why = f"the chains agree: R-hat {check.rhat:.3f}, ESS {check.ess:,.0f}"
    elif check is not None and math.isfinite(check.ess):  # one chain
        why = f"the draws suffice: ESS {check.ess:,.0f}"
    return f"stopped after {plural(run.num_sweeps, 'sweep')} of each chain because {why}"


def _advance(
    run: "Run", args: argparse.Namespace, thin: int, progress: "Progress", kept: Kept
) -> Any:
    def after_chunk(run: "Run") -> None:
        progress.show(run)
        if run.num_draws >= _DRAWS_OF_OVERFLOW and (run.overflow or 0.0) > _HOPELESS_OVERFLOW:
            progress.end()
            _refuse_overflow(run.overflow or 0.0, args.max_clusters)
        if kept.interim is not None:
            kept.interim.show_if_due(run, progress)

    try:
        if args.draws is not None:
            run.extend((args.draws // thin - run.num_draws) * thin, after_chunk)
            return "length"
        left = max(args.minutes - progress.minutes(), _LEAST_MINUTES)
        is_good = run.until(args.rhat, args.ess * _MARGIN, left, after_chunk=after_chunk)
    except KeyboardInterrupt:
        # a second Ctrl-C leaves the report unwritten
        if ended_by() is not None or run.num_draws - run.first_draw < _LEAST_DRAWS:
            raise
        return "interrupted"
    if run.num_draws - run.first_draw < _LEAST_DRAWS:
        kept.minutes = max(2 * args.minutes, 1.0)
        raise TooFewDrawsError(f"too few draws in {args.minutes:g} minutes: raise --minutes")
    return "good" if is_good else "time"


def _draws_shown(run: "Run") -> int:
    """Return how many draws of each chain are summarised, by their size."""
    import numpy as np

    one = run.get_samples(group_by_chain=True, max_draws=1)
    size = sum(np.asarray(x[:, :1]).nbytes for x in one.values())
    return int(np.clip(DRAWS_BYTES // size, _LEAST_SHOWN, _MOST_SHOWN))


def check_overflow(mcmc: Any, max_clusters: int) -> None:
    """Refuse a run in which too many draws needed more clusters than there were slots."""
    import numpy as np

    from numpyro_rankings.posterior.diagnostics import OVERFLOW_BAD

    share = float(np.mean(mcmc.get_extra_fields()["overflow"]))
    if share > OVERFLOW_BAD:
        _refuse_overflow(share, max_clusters)


def _refuse_overflow(share: float, max_clusters: int | None) -> None:
    slots = MAX_CLUSTERS if max_clusters is None else max_clusters
    raise HopelessError(
        f"{share:.1%} of the draws needed more than {slots} clusters: use --max-clusters "
        f"{2 * slots}"
    )
