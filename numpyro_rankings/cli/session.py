"""The session of a command: how its run begins, goes on, is interrupted and ends."""

import contextlib
import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

from numpyro_rankings._system import clock
from numpyro_rankings._system.interrupts import (
    HeldInterrupts,
    SignalInterrupt,
    check_not_ended,
    ended_by,
    held_interrupts,
)
from numpyro_rankings.cli.arguments import (
    MAX_CLUSTERS,
    PROGRAM,
    HopelessError,
    UserError,
    as_user_errors,
    check_output,
    file_errors,
    note,
)
from numpyro_rankings.cli.begun import (
    differing_options,
    drop_command,
    keep_command,
    kept_command,
)
from numpyro_rankings.cli.capacity import draws_shown
from numpyro_rankings.cli.compilation import (
    check_backends,
    is_cache_on,
    largest_divisor,
    telling_of_compilation,
    use_compilation_cache,
    use_devices,
    use_writable_cache,
)
from numpyro_rankings.cli.interim import has_only_page
from numpyro_rankings.cli.options import Goals, Plan, RunOptions
from numpyro_rankings.cli.progress import Progress, say
from numpyro_rankings.cli.results import (
    FILES,
    OPTIONAL,
    check_replaceable,
    describe_run,
    write_at_once,
)
from numpyro_rankings.cli.saved import SAVED
from numpyro_rankings.cli.streams import notes
from numpyro_rankings.words import in_minutes, plural
from numpyro_rankings.words.commands import resumed, with_options

if TYPE_CHECKING:
    import jax

    from numpyro_rankings.cli.interim import InterimPage
    from numpyro_rankings.report.findings import Findings
    from numpyro_rankings.report.page import Status
    from numpyro_rankings.run import Run
    from numpyro_rankings.run.results import BurnIn
    from numpyro_rankings.run.settings import Settings

FITS = "fits.json"  # in the folder of the results of several files
_MARGIN = 1.05  # of the ESS, because not all draws are summarised
_LEAST_DRAWS = 4  # of each chain
# A run is given up if, of this number of draws of each chain, such a share lacked a slot.
_DRAWS_OF_OVERFLOW, _HOPELESS_OVERFLOW = 1000, 0.05
_LEAST_MINUTES = 1e-3  # for one chunk
_PATH = "path.nc"  # in the store: how the number of components was found
_RUN = "run"  # attribute of it: of which run
Ending = Literal["good", "time", "length", "interrupted"]


class TooFewDrawsError(UserError):
    """The time was over before there were enough draws for results."""


class Sampled(NamedTuple):
    """The draws of a command."""

    mcmc: Any  # an MCMC after its run
    ended: Ending
    lengths: tuple[int, int]  # sweeps of each chain, and those of them after the burn-in
    changes: Sequence[str] = ()  # by Python code that resumed with check=False, in sentences
    seconds: float | None = None  # of all sweeps, those before it was resumed included
    is_of_path: bool = False  # whether they are those by which the number was found

    @property
    def is_complete(self) -> bool:
        """Whether the run ended by itself."""
        return self.ended in ("good", "length")

    def note_changes(self, data: Any) -> None:
        """Note in the draws for ArviZ what was changed, so that the verdict says so."""
        if self.changes:
            from numpyro_rankings.posterior.diagnostics import CHANGES

            data["posterior"].attrs[CHANGES] = [*self.changes]


# ---------------------------------------------------------------------------------------------
# The beginning: is this the same run?
# ---------------------------------------------------------------------------------------------


def store_of(out: Path) -> Path:
    """Return the folder in which a run is kept until it has ended by itself."""
    out = out if out.name not in ("", "..") else out.resolve()
    if not out.name:
        raise UserError(f"{out} has no room for a run beside it: choose another folder")
    return out.with_name(out.name + ".run")


def begin_session(
    options: RunOptions,
    command: str,
    is_alone: bool = True,
    check: Callable[[], object] = lambda: None,
) -> "RunSession":
    """Check where the run is to be kept and its results are to be written, and plan its chains.

    :param check: reads the data, or refuses them, before it is said that there is an unfinished
        run.
    """
    if not __debug__:
        from numpyro_rankings.run.errors import NEEDS_ASSERTS

        raise UserError(NEEDS_ASSERTS)
    out, resumes = options.folder, options.resume is not None
    store = store_of(out)
    _check_place(options, store)
    has_sweeps = _has_sweeps(store)
    if resumes:
        if not has_sweeps:
            note(f"{store} has no sweep yet: the run begins again")
        options = _continued(options, store, has_sweeps)
    elif has_sweeps and not options.force:
        check_ess(options.plan())
        with contextlib.redirect_stderr(io.StringIO()), notes():
            check()
        raise UserError(
            f"{store} has an unfinished run: go on with --resume {out}, or start again with --force"
        )
    session = RunSession(options, command, resumes=resumes and has_sweeps, is_alone=is_alone)
    check_output(out, options.replaces or has_only_page(out))
    check_replaceable(out)
    return session


def _check_place(options: RunOptions, store: Path) -> None:
    """Refuse a run to resume that is not there, and the folder of the fits of several files."""
    out, has_fits = options.folder, (options.folder / FITS).exists()
    if options.resume is not None and not store.is_dir():
        if has_fits:
            raise UserError(f"{out} has the fits of several files: give all of them again")
        raise UserError(f"there is no run to resume: no folder {store}")
    if has_fits:
        raise UserError(f"{out} has the fits of several files: choose another --out")


def _has_sweeps(store: Path) -> bool:
    if not os.path.lexists(store):
        return False  # and JAX is not imported before the other options are checked
    from numpyro_rankings.run import StoreError
    from numpyro_rankings.run.store import Store

    with as_user_errors(StoreError):
        return Store.has_sweeps(store)


def _continued(run: RunOptions, path: Path, has_sweeps: bool) -> RunOptions:
    """Take the settings of a run from its store, and refuse options that contradict them.

    If it has no sweep yet, the options that are given replace its settings.
    """
    stored, about, num_draws = _stored(path, has_sweeps)
    if stored is None:
        return run
    if not run.has_length and stored.num_warmup and not _is_usual(stored, about):
        raise UserError(f"{path} is a run of a fixed length: give its --draws again")
    settings = {"chains": stored.num_chains, "thin": stored.thinning, "seed": stored.key[-1]}
    if not has_sweeps:
        if run.draws is not None and stored.num_warmup:
            settings["warmup"] = stored.num_warmup
        return run.continued(settings)
    if run.draws is not None and run.warmup is None and not stored.num_warmup:
        raise UserError(
            f"{path} is a run without warm-up, of which only the last part is used: resume it "
            "without --draws"
        )
    if run.has_length:
        settings["warmup"] = stored.num_warmup

    def refusal(name: str, value: int | None, given: int) -> str:
        return f"{path} is a run with --{name} {value}, not {given}"

    options = run.continued(settings, refusal)
    length, least = options.plan().length, num_draws * stored.thinning
    if length is not None and length.draws < least:
        raise UserError(
            f"{path} already has {least:,} sweeps of each chain after the warm-up: --draws "
            f"must be at least that, got {length.draws}"
        )
    return options


def _is_usual(stored: "Settings", about: Mapping[str, Any]) -> bool:
    """Whether the warm-up is the one that ladders have by themselves."""
    from numpyro_rankings.infer import TemperedMixture

    return _is_of_ladders(about) and stored.num_warmup == TemperedMixture.num_adaptation


def _is_of_ladders(about: Mapping[str, Any]) -> bool:
    """Whether a run is one of chains on ladders, given what its store says of it."""
    from numpyro_rankings.infer import TemperedMixture
    from numpyro_rankings.run.fingerprint import class_of

    kernel = about.get("kernel")
    return isinstance(kernel, dict) and kernel.get("class") == class_of(TemperedMixture)


def _stored(path: Path, has_sweeps: bool) -> "tuple[Settings | None, Mapping[str, Any], int]":
    """Return the settings in a store, what it says of the run, and its number of draws.

    A new one may have no settings yet.
    """
    from numpyro_rankings.run import StoreError
    from numpyro_rankings.run.settings import settings_of
    from numpyro_rankings.run.store import Store

    with as_user_errors(StoreError):
        if not has_sweeps:
            about = Store.about_new(path)
            return (None if about is None else settings_of(path, about)), about or {}, 0
        with contextlib.closing(Store.open(path)) as store:
            return settings_of(path, store.about), store.about, store.num_draws


# ---------------------------------------------------------------------------------------------
# The session
# ---------------------------------------------------------------------------------------------


class RunSession:
    """The run of a command: a context whose store goes only when the results are written.

    If the command fails in it, the error is followed by the command that goes on with the run. Only
    a store without draws is removed. That of another process is none of its business.

    Once there is a run, the first interrupt ends it, and the report is written; Ctrl-C after that
    leaves the report unwritten.

    :param resumes: whether it goes on with sweeps that are there.
    :param is_alone: whether it says how to go on; otherwise its caller does.
    """

    def __init__(
        self, options: RunOptions, command: str, *, resumes: bool = False, is_alone: bool = True
    ) -> None:
        self.plan, self.out, self.is_shown = options.plan(), options.folder, not options.no_progress
        self.minutes: float | None = None  # to go on with, if those of the command were too few
        self.interim: InterimPage | None = None  # page of the run while it goes on
        # an MCMC of what is fitted, whose draws are shown if the time is over before there are more
        self.ladders: Any = None
        self._options, self._store = options, store_of(self.out)
        self._command, self._resumes, self._is_alone = command, resumes, is_alone
        self._better = ""  # command that may help more than to go on
        self._path_found: Any = None
        self._has_path = resumes  # whether that in the store is of this run
        self._began: float | None = None  # the time of the run, if before its chains
        self._run: Run | None = None
        self._held: HeldInterrupts | None = None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "RunSession":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        with self._stack:
            if self._held is not None:
                self._held.is_over = True
            number = ended_by()
            if number is not None and isinstance(error, Exception):  # made of it by a library
                error = SignalInterrupt(number)
                self._close(error)
                raise error from None
            self._close(error)

    def say(self, what: str) -> None:
        """Say what is being done before or after the sampling."""
        say(what, self.is_shown)

    @property
    def resumes(self) -> bool:
        """Whether it goes on with sweeps that are there."""
        return self._resumes

    @property
    def resumes_ladders(self) -> bool:
        """Whether it goes on with chains on ladders."""
        return self._resumes and _is_of_ladders(_about(self._store))

    def spell_out(self, options: Mapping[str, object]) -> None:
        """Take options for given that no option of the command says."""
        self._command = with_options(self._command, options)

    def start_clock(self) -> None:
        """Count what is done from now on to the time of the run."""
        self._began = clock.now()

    def show_tried(self, ladders: Mapping[int, Any], most: int) -> None:
        """Show the groups of the most probable number of components so far, if it is time."""
        if self.interim is not None:
            self.interim.show_tried(ladders, most, Progress(self.plan, self.is_shown, self._began))

    def keep(self, path: Any) -> None:
        """Keep the path to the number of components with the draws, as long as these are kept."""
        self._path_found, self._has_path = path, False

    def kept(self) -> Any:
        """Return the path that the run was begun with; None if it is new, or has none.

        If a command was killed, the path may be that of the run that it was replacing.
        """
        file = self._store / _PATH
        if not self._resumes or not file.is_file() or file.is_symlink():
            return None
        import xarray as xr

        path = xr.load_dataset(io.BytesIO(file.read_bytes()), engine="h5netcdf")
        return path if path.attrs.get(_RUN) == _identity(self._store) else None

    def _keep_beside(self) -> None:
        """Write the command once there are draws, and the path, or remove that of another run."""
        if self._has_path or not self._store.is_dir():
            return
        keep_command(self._store, _identity(self._store), self._command)
        if self._path_found is None:
            (self._store / _PATH).unlink(missing_ok=True)
        else:
            from numpyro_rankings.run.metadata import replace_file

            content = io.BytesIO()
            path = self._path_found.assign_attrs({_RUN: _identity(self._store)})
            path.to_netcdf(content, engine="h5netcdf")
            with file_errors(f"cannot write {self._store / _PATH}"):
                replace_file(self._store / _PATH, content.getvalue())
        self._has_path = True

    def _discard(self) -> None:
        from numpyro_rankings.run.folder import discard

        if self._has_path:
            with contextlib.suppress(OSError):
                (self._store / _PATH).unlink(missing_ok=True)
                drop_command(self._store)
        discard(self._store)

    @contextlib.contextmanager
    def preparing(self) -> Iterator[None]:
        """Set up JAX for the chains, and show warnings as notes."""
        with notes():
            use_compilation_cache()
            use_writable_cache()
            use_devices(self.plan.chains)
            check_backends()
            yield

    # -----------------------------------------------------------------------------------------
    # The chains
    # -----------------------------------------------------------------------------------------

    def sample(
        self, kernel: Any, data: tuple[Any, ...], thin: int, max_clusters: int | None
    ) -> Sampled:
        """Run the chains until their draws suffice, or for the length that was asked for."""
        from numpyro_rankings.infer.not_finite import NotFiniteError
        from numpyro_rankings.run import StoreError

        check_ess(self.plan)
        check_not_ended()
        progress = Progress(self.plan, self.is_shown, self._began)
        with contextlib.ExitStack() as stack:
            stack.callback(progress.end)
            stack.enter_context(as_user_errors(StoreError))
            stack.enter_context(as_user_errors(NotFiniteError, told_as=HopelessError))
            progress.say(f"{'' if is_cache_on() else 'compiling and '}starting the chains")
            compiling = "compiling the sampler, which is kept for the next run"
            stack.enter_context(telling_of_compilation(lambda: progress.say(compiling)))
            run = self._run = self._start(kernel, data, thin)
            self._held = self._stack.enter_context(held_interrupts())
            # Checked again, because another command may have written results meanwhile.
            is_own = self.interim is not None and self.interim.is_written
            check_output(self.out, self._options.replaces or is_own or has_only_page(self.out))
            ended = self._advance(run, thin, progress, max_clusters)
            progress.end()
            if ended == "good":
                print(f"{PROGRAM}: {_why_good(run)}", file=sys.stderr)
            self._held.doing = "the report is being written"
            if ended == "time" and self._has_more_of_path(run):
                return _of_path(self.ladders)
            mcmc = run.as_mcmc(draws_shown(run))
        return Sampled(mcmc, ended, lengths_of(run, thin), run.changes, run.seconds)

    def _start(self, kernel: Any, data: tuple[Any, ...], thin: int) -> "Run":
        import jax

        from numpyro_rankings.run import Run
        from numpyro_rankings.run.errors import OtherRunError

        plan, length = self.plan, self.plan.length
        burn_in: BurnIn = "auto" if length is None else 0.0
        devices = devices_for(plan.chains)
        if self._resumes:
            settings: Any = {"devices": devices, "burn_in": burn_in, "progress": False}
            try:
                return Run.resume(self._store, kernel, *data, **settings)
            except OtherRunError:
                self._refuse_other_options()
                raise
        return Run(
            kernel,
            *data,
            key=jax.random.key(plan.seed),
            num_chains=plan.chains,
            num_warmup=None if length is None else length.warmup,
            thinning=thin,
            burn_in=burn_in,
            store=self._store,
            devices=devices,
            extra_fields=("overflow",),
            overwrite=self._options.force,
            progress=False,
        )

    def _begun_with(self) -> str:
        """Return the command that began the run that this one goes on with, if any did."""
        return kept_command(self._store, _identity(self._store)) if self._resumes else ""

    def _refuse_other_options(self) -> None:
        """Say by which options the data or the model of a run differ from what it has."""
        begun = self._begun_with()
        if begun and (differing := differing_options(begun, self._command)):
            text = f"{self._store} was begun {'; '.join(differing)}"
            how = f"; to go on with it:\n  {resumed(begun, self.out)}" if self._is_alone else ""
            raise UserError(text + how)

    def _advance(
        self, run: "Run", thin: int, progress: Progress, max_clusters: int | None
    ) -> Ending:
        def after_chunk(run: "Run") -> None:
            self._keep_beside()
            progress.show(run)
            if run.num_draws >= _DRAWS_OF_OVERFLOW and (run.overflow or 0.0) > _HOPELESS_OVERFLOW:
                progress.end()
                _refuse_overflow(run.overflow or 0.0, max_clusters)
            if self.interim is not None:
                self.interim.show_if_due(run, progress)

        until = self.plan.until
        try:
            if not isinstance(until, Goals):
                run.extend((until.draws // thin - run.num_draws) * thin, after_chunk)
                return "length"
            left = max(until.minutes - progress.minutes(), _LEAST_MINUTES)
            is_good = run.until(until.rhat, until.ess * _MARGIN, left, after_chunk=after_chunk)
        except KeyboardInterrupt:
            # A second Ctrl-C leaves the report unwritten
            if ended_by() is not None or run.num_draws - run.first_draw < _LEAST_DRAWS:
                raise
            return "interrupted"
        if run.num_draws - run.first_draw < _LEAST_DRAWS:
            self.minutes = more_minutes(until)
            if not self._has_more_of_path(run):
                few = f"too few draws in {in_minutes(until.minutes)}: raise --minutes"
                raise TooFewDrawsError(few)
        return "good" if is_good else "time"

    def _has_more_of_path(self, run: "Run") -> bool:
        """Whether the ladders by which the number was found have more draws than the chains."""
        ladders = self.ladders
        if ladders is None:
            return False
        kept = max(0, run.num_draws - run.first_draw) * self.plan.chains
        return bool(kept < ladders.num_samples * ladders.num_chains)

    # -----------------------------------------------------------------------------------------
    # The results
    # -----------------------------------------------------------------------------------------

    def details(
        self,
        data: str,
        model: str,
        thin: int,
        lengths: tuple[int, int],
        ladders: Any = None,
    ) -> dict[str, str]:
        """Describe the data, the model and the run, for the last section of the report.

        :param ladders: an MCMC, if the draws are those by which the number of components is found.
        """
        plan = self.plan
        if ladders is not None:
            plan, thin = replace(plan, chains=ladders.num_chains), 1
        texts = {"data": data, "model": model, **describe_run(plan, thin, *lengths)}
        return {**self._commands(), **texts}

    def _commands(self) -> dict[str, str]:
        """Say which command made the results and, if it has resumed the run, what began it."""
        from numpyro_rankings.report.findings import BEGUN_WITH

        begun = self._begun_with()
        return {"command": self._command} | ({BEGUN_WITH: begun} if begun else {})

    def conclude(
        self,
        sampled: Sampled,
        findings: "Findings",
        details: dict[str, str],
        write: "Callable[[Path, Findings, Status | None], None]",
        show: "Callable[[Findings, Status | None], None]",
    ) -> int:
        """Write the results to a folder, show the summary, and return the exit status."""
        self.say("drawing the figures")
        findings = findings._replace(details=details)
        findings.data.attrs.update({name.replace(" ", "_"): x for name, x in details.items()})
        status = self.status_of(sampled, findings)

        def write_and_hold(folder: Path) -> None:
            write(folder, findings, status)
            check_not_ended()
            if self._held is not None:
                self._held.is_over = True  # nothing interrupts the files as they are replaced

        write_at_once(self.out, write_and_hold, FILES, (*OPTIONAL, *SAVED))
        show(findings, status)
        return self._end(sampled)

    def status_of(self, sampled: Sampled, findings: "Findings") -> "Status | None":
        """Return what is to be said on top of the report of a run that did not end by itself.

        Its command has the minutes that the run is expected to need, and half as many more. Where
        the chains are in different places, it says which command may help more.
        """
        from numpyro_rankings.posterior.diagnostics import R_HAT_APART
        from numpyro_rankings.report.judgements import seconds_needed, worst_of
        from numpyro_rankings.report.next_steps import instead
        from numpyro_rankings.report.page import Status

        if sampled.is_complete:
            return None
        until, text = self.plan.until, "This is the report of the draws that there are."
        status = Status(self._why(sampled), text, None, sampled.seconds)
        if worst_of(findings.table)[0] > R_HAT_APART:
            better = next((step.command for step in instead(findings)), "")
            text = f"{text} Going on will probably not help."
            status = status._replace(text=text, better=better)
            if sampled.ended == "time":  # one who has interrupted it knows why
                self._better = better
        if isinstance(until, Goals):
            status = status._replace(rhat_goal=until.rhat, ess_goal=until.ess)
            needed = seconds_needed(findings, status) / 60
            if not math.isnan(needed) and 1.5 * needed > until.minutes:
                self.minutes = math.ceil(1.5 * needed)
        elif sampled.seconds is not None:
            left = (until.num_sweeps - sampled.lengths[0]) * sampled.seconds / sampled.lengths[0]
            status = status._replace(seconds_left=max(0.0, left))
        return status._replace(command=self._resumed())

    # -----------------------------------------------------------------------------------------
    # The end: what is kept, and how to go on
    # -----------------------------------------------------------------------------------------

    def _end(self, sampled: Sampled) -> int:
        """Say how the run ended, remove its store if that is all, and return the exit status."""
        came = None if self._held is None else self._held.came
        status = 0 if came is None else 128 + came
        if not sampled.is_complete:
            print(f"\n{PROGRAM}: {self._why(sampled)}{self._how_to_go_on()}", file=sys.stderr)
            return status
        self._discard()
        if status:
            ended = "interrupted after the end of the run: the results are complete"
            print(f"\n{PROGRAM}: {ended}", file=sys.stderr)
        return status

    def _close(self, error: BaseException | None) -> None:
        """Give the store back, and say in the error what it keeps."""
        run, self._run = self._run, None
        if run is None:
            if self._resumes and isinstance(error, KeyboardInterrupt):
                kept = f"{self._store} keeps its draws"
                error.args = (f"interrupted, nothing was written; {kept}.{self._how_to_go_on()}",)
            if self.interim is not None and error is not None:
                self.interim.take_back()
            return
        is_hopeless = isinstance(error, HopelessError)
        is_useless = run.num_sweeps == 0 or (is_hopeless and run.num_draws == 0)
        if is_useless and error is not None:
            self._discard()
            if self.interim is not None:
                self.interim.take_back()
        run.close()
        if is_useless or error is None:
            return
        is_there = self._store.is_dir()  # otherwise the error says that it was moved or removed
        if self.interim is not None:
            command = self._resumed() if is_there and not is_hopeless else None
            self.interim.end(_in_words(error), run, command)
        if is_there:
            self._say_what_is_kept(error, run.num_sweeps)

    def _say_what_is_kept(self, error: BaseException, num_sweeps: int) -> None:
        kept = f"{self._store} keeps {plural(num_sweeps, 'sweep')} of each chain"
        if isinstance(error, HopelessError):
            raise UserError(f"{error} ({kept}; --force starts again)") from None
        if isinstance(error, UserError):
            message = f"{error}\n{PROGRAM}: {kept}.{self._how_to_go_on()}"
            raise type(error)(message) from None
        if isinstance(error, KeyboardInterrupt):
            error.args = (f"interrupted, no results were written; {kept}.{self._how_to_go_on()}",)
        else:
            error.add_note(f"{PROGRAM}: {kept}.{self._how_to_go_on()}")

    def _why(self, sampled: Sampled) -> str:
        why, sweeps = "interrupted", f"after {sampled.lengths[0]:,} sweeps of each chain."
        if sampled.ended == "time" and isinstance(self.plan.until, Goals):
            why = f"stopped after {in_minutes(self.plan.until.minutes)}; the draws do not suffice"
        if sampled.is_of_path:
            chains = plural(sampled.mcmc.num_chains, "chain")
            return f"{why}: they are of the {chains} by which the number was found, {sweeps}"
        return f"{why}, {sweeps}"

    def _how_to_go_on(self) -> str:
        command = self._resumed()
        if command is None:
            return ""
        if self._better:
            better = f" Going on will probably not help. This may:\n  {self._better}\n"
            return f"{better}To go on all the same:\n  {command}"
        return f" To go on:\n  {command}"

    def _resumed(self) -> str | None:
        return resumed(self._command, self.out, self.minutes) if self._is_alone else None


def _identity(store: Path) -> str:
    """Return a hash of what the run in a store was begun with."""
    from numpyro_rankings.run.fingerprint import digest

    about = _about(store)
    return digest(json.dumps([about.get(name) for name in ("data", "kernel", "settings")]))


def _about(store: Path) -> Mapping[str, Any]:
    """Return what the run in a store was created with."""
    from numpyro_rankings.run import StoreError
    from numpyro_rankings.run.read_only import ReadOnlyStore

    with as_user_errors(StoreError):
        return ReadOnlyStore(store).about


def _in_words(error: BaseException) -> str:
    """Say in a few words why a run has ended."""
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    return str(error).partition("\n")[0] if isinstance(error, UserError) else "an error"


def more_minutes(goals: Goals) -> float:
    """Return the minutes to go on with, after a time in which there were too few draws."""
    return max(2 * goals.minutes, 1.0)


def check_ess(plan: Plan) -> None:
    """Refuse a goal that no run can reach."""
    from numpyro_rankings.run.monitor import Monitor
    from numpyro_rankings.run.results import BURN_IN

    most = Monitor.LEAST_KEPT * plan.chains * (1 - BURN_IN) / _MARGIN
    if isinstance(plan.until, Goals) and plan.until.ess > most:
        raise UserError(f"--ess must be at most {most:,.0f} with {plural(plan.chains, 'chain')}")


def devices_for(chains: int) -> "list[jax.Device] | None":
    """Return as many devices as can have equally many of the chains, None for a single one."""
    import jax

    number = largest_divisor(chains, len(jax.devices()))
    return jax.devices()[:number] if number > 1 else None


def _of_path(ladders: Any) -> Sampled:
    """Return the draws by which the number of components was found, all after a warm-up."""
    num_draws = ladders.num_samples
    return Sampled(ladders, "time", (ladders.num_warmup + num_draws, num_draws), is_of_path=True)


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


def check_overflow(mcmc: Any, max_clusters: int | None) -> None:
    """Refuse a run in which too many draws needed more clusters than there were slots."""
    import numpy as np

    from numpyro_rankings.posterior.diagnostics import OVERFLOW_BAD

    share = float(np.mean(mcmc.get_extra_fields()["overflow"]))
    if share > OVERFLOW_BAD:
        _refuse_overflow(share, max_clusters)


def _refuse_overflow(share: float, max_clusters: int | None) -> NoReturn:
    slots = MAX_CLUSTERS if max_clusters is None else max_clusters
    raise HopelessError(
        f"{share:.1%} of the draws needed more than {slots} clusters: use --max-clusters "
        f"{2 * slots}"
    )
