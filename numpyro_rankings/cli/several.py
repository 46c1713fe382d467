"""Several files that are fitted one after another: ``numpyro-rankings fit A B C``.

The folder of ``--out`` has a folder of results for each file, ``fits.csv`` with a row for each, and
``fits.json`` with the same rows and the options, by which ``--resume`` knows what is finished.
"""

import contextlib
import csv
import gc
import hashlib
import io
import json
import math
import os
import shlex
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from numpyro_rankings._system import clock
from numpyro_rankings._system.interrupts import SignalInterrupt, ended_by
from numpyro_rankings.cli.arguments import (
    PROGRAM,
    QuestionsError,
    UserError,
    check_file,
    check_output,
    file_errors,
    note,
)
from numpyro_rankings.cli.compilation import check_backends, use_devices
from numpyro_rankings.cli.fit_options import FitOptions
from numpyro_rankings.cli.options import Goals
from numpyro_rankings.cli.results import FILES, check_replaceable
from numpyro_rankings.cli.session import FITS, TooFewDrawsError, check_ess, more_minutes, store_of
from numpyro_rankings.words import for_spreadsheets, number, plural, shorten
from numpyro_rankings.words.commands import resumed, words_of_options

SEVERAL_IN_WORDS = """\
Several files, or a folder of them, are fitted one after another with the same options, of which
--minutes is for each file. The folder of a file in DIR has the name of the file without its
extension; where this is the name of two, with the extension, and then with the names of the folders
that the file is in. One table is printed at the end and written to DIR/fits.csv. A file that cannot
be read or fitted does not stop the others. --resume DIR with the same files skips those that are
finished, goes on with those that were interrupted or ran out of time, and begins the others.
"""

_TABLE = "fits.csv"
_FORMAT = 1
_WAITING, _INTERRUPTED, _FAILED = "waiting", "interrupted", "failed"
_FINISHED = ("good", "length")
_IN_WORDS = {
    _WAITING: "not begun",
    _INTERRUPTED: "interrupted",
    "good": "the draws suffice",
    "length": "full length",
    "time": "out of time",
}
_BY_TABLE = "by_table"  # whether the model was chosen by each table
_OF_RUNS = ("seed", "chains", "thin", "warmup")  # need not be given again
_NAMES_SHOWN = 5


class Fitted(NamedTuple):
    """What is known of a file when its results are written."""

    rankings: int
    items: int
    groups: int
    r_hat: float  # the largest of the quantities that are diagnosed
    ess: float  # the least of them
    ended: str  # as that of Sampled


FitOne = Callable[[FitOptions, str, Callable[[Fitted], None]], int]


@dataclass
class _Fit:
    """A file, and what became of it."""

    file: str  # as it was given
    path: str  # absolute
    folder: str  # of its results, in the output folder
    digest: str | None = None  # of what it held when it was fitted
    rankings: int | None = None
    items: int | None = None
    groups: int | None = None
    r_hat: float | None = None
    ess: float | None = None
    seconds: float = 0.0
    ended: str = _WAITING
    reason: str = ""  # why it failed

    @property
    def in_words(self) -> str:
        """How it ended."""
        return f"failed: {self.reason}" if self.ended == _FAILED else _IN_WORDS[self.ended]


def are_several(files: Sequence[str]) -> bool:
    """Whether the files of a command are several, or in a folder."""
    return len(files) > 1 or any(file and Path(file).is_dir() for file in files)


def fit_each(
    given: Sequence[str],
    options: FitOptions,
    command: str,
    read: Callable[[FitOptions], Any],
    fit_one: FitOne,
) -> int:
    """Fit several files or folders of them, and return 2 if one has no results, or 0.

    :param read: reads the file of its options, and refuses one that cannot be fitted.
    :param fit_one: fits the file of its options, and returns the exit status.
    """
    files, out = _expand_folders(given), options.run.folder
    for folder in given:
        if Path(folder).is_dir() and out.exists() and Path(folder).samefile(out):
            raise UserError(f"{folder} has the files, and cannot be the folder of the results too")
    with contextlib.ExitStack() as stack:
        if is_there := out.is_dir():
            _take(out, stack)
        options, fits, others = _begin(files, options, read)
        if not is_there:
            with file_errors(f"cannot write to {out}"):
                out.mkdir(parents=True)
            _take(out, stack)
        return _Fits(given, options, command, fit_one, fits, others).fit_all()


def _take(out: Path, stack: contextlib.ExitStack) -> None:
    """Keep other commands from the folder of the results."""
    from numpyro_rankings.run.errors import StoreError
    from numpyro_rankings.run.lock import lock_of

    try:
        with file_errors(f"cannot read {out}"):
            stack.enter_context(lock_of(out))
    except StoreError:
        raise UserError(f"{out} is in use by another command") from None


def _begin(
    files: Sequence[str], options: FitOptions, read: Callable[[FitOptions], Any]
) -> "tuple[FitOptions, list[_Fit], list[_Fit]]":
    """Check the options, read the files, and return the options of all files and their fits."""
    out, resumes = options.run.folder, options.run.resume is not None
    earlier: list[_Fit] = []
    if resumes:
        earlier, options = _resume(options)
    options = replace(options, run=options.run.filled())
    check_ess(options.run.plan())
    has_fits = not resumes and (out / FITS).exists() and not options.run.force
    check_output(out, options.run.replaces or has_fits)
    check_replaceable(out, (_TABLE, FITS))
    fits, others = _match_fits(files, earlier)
    use_devices(options.run.plan().chains)
    check_backends()  # or each of the files would fail by it
    todo = [fit for fit in fits if not _is_finished(fit, out)]
    if len(todo) < len(fits):
        note(f"finished already: {len(fits) - len(todo)} of {plural(len(fits), 'file')}")
    for fit in todo:  # all files are checked before the first one is fitted
        _check_readable(fit, options, read)
    if has_fits:
        raise UserError(
            f"{out} has the results of several files: go on with --resume {out}, or use --force to "
            "replace them"
        )
    failed = sum(fit.ended == _FAILED for fit in fits)
    if failed and not resumes and (out / FITS).exists():
        raise UserError(f"{plural(failed, 'file')} cannot be fitted: nothing in {out} was replaced")
    return options, fits, others


# ---------------------------------------------------------------------------------------------
# The files
# ---------------------------------------------------------------------------------------------


def _expand_folders(given: Iterable[str]) -> list[str]:
    """Return the files, each once, with those of folders in the order of their names."""
    files: list[str] = []
    for name in given:
        files += _files_in(name) if name and Path(name).is_dir() else [name]
    seen: set[str] = set()
    for file in files:
        path = os.path.realpath(file)
        if path in seen:
            raise UserError(f"{file} is given twice")
        seen.add(path)
    return files


def _files_in(folder: str) -> list[str]:
    """Return the files of a folder that can be read, and say which are left out."""
    from numpyro_rankings.readers.formats import SUFFIXES, may_hold_rankings

    with file_errors(f"{folder}: cannot be read"):
        entries = sorted(Path(folder).iterdir())
    # Files that begin with ~$ belong to spreadsheets that are open.
    taken = [
        x
        for x in entries
        if x.suffix.lower() in SUFFIXES
        and not x.name.startswith((".", "~$"))
        and x.is_file()
        and may_hold_rankings(x)
    ]
    left_out = [x.name for x in entries if x not in taken]
    if not taken:
        raise UserError(f"{folder}: has no files of rankings ({', '.join(SUFFIXES)})")
    if left_out:
        more = len(left_out) - _NAMES_SHOWN
        names = ", ".join(left_out[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
        note(f"{folder}: left out, because hidden or not a file of rankings: {names}")
    return [str(x) for x in taken]


def folder_names(paths: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Return a folder name for each file: its stem, or what tells it from the others.

    Files that would have the same name, or one that is taken, get their name with its extension,
    and then those of the folders above it before it, as many as are needed.
    """
    level = [0] * len(paths)
    used = _occupied([*taken, _TABLE, FITS])
    while True:
        names = [_name_at(path, k) for path, k in zip(paths, level, strict=True)]
        count = Counter(x for name in names for x in _occupied([name]))
        clash = [
            not name.strip(".") or any(count[x] > 1 or x in used for x in _occupied([name]))
            for name in names
        ]
        if not any(clash):
            return names
        level = [k + is_bad for k, is_bad in zip(level, clash, strict=True)]


def _occupied(names: Iterable[str]) -> set[str]:
    """Return the names and those of their stores, as file systems without case see them."""
    return {x for name in names for x in (name.casefold(), f"{name}.run".casefold())}


def _name_at(path: str, level: int) -> str:
    parts = [part for part in Path(path).parts if part != Path(path).anchor]
    if level == 0:
        return Path(path).stem
    if level <= len(parts):
        return "-".join(parts[-level:])
    return f"{'-'.join(parts)}-{level - len(parts) + 1}"


def _digest(path: str) -> str | None:
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def _check_readable(fit: _Fit, options: FitOptions, read: Callable[[FitOptions], Any]) -> None:
    """Read a file, and let it fail if it cannot be; what there is to note is noted later."""
    fit.ended, fit.reason = (_WAITING if fit.ended == _FAILED else fit.ended), ""
    try:
        check_file(fit.file)
        with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(replace(options, file=fit.file))
    except Exception as error:
        _fail(fit, error)


def _fail(fit: _Fit, error: Exception) -> None:
    """Note that a file failed, and say so; what is no mistake of the user is told in full."""
    if (signal := ended_by()) is not None:  # of which a library has made the error
        raise SignalInterrupt(signal) from None
    message = str(error)
    if not isinstance(error, UserError):
        traceback.print_exception(error)
        message = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, QuestionsError):
        what = "it" if error.is_read else "the other questions"
        message += f"\n  options for {what}: {shlex.join(words_of_options(error.answers))}"
    fit.ended = _FAILED
    fit.reason = message.partition("\n")[0].removeprefix(f"{fit.file}: ")
    where = "" if message.startswith(fit.file) else f"{fit.file}: "
    print(f"{PROGRAM}: error: {where}{message}", file=sys.stderr, flush=True)


# ---------------------------------------------------------------------------------------------
# The options
# ---------------------------------------------------------------------------------------------


def _description(options: FitOptions) -> dict[str, Any]:
    """Return what must be the same when the fits are resumed."""
    model = {**asdict(options.table), **asdict(options.model), "blocs": options.blocs}
    model[_BY_TABLE] = options.by_table
    model = {"version": None, **model}  # an entry that the files have always had
    runs = {name: getattr(options.run, name) for name in _OF_RUNS}
    return json.loads(json.dumps({"options": model, "runs": runs}))


def _resume(options: FitOptions) -> tuple[list[_Fit], FitOptions]:
    """Return the files of the command that is resumed, and the options with those of its runs."""
    out, run = options.run.folder, options.run
    fits, before, runs = _earlier(out / FITS)
    before.setdefault(_BY_TABLE, False)  # before there was a choice
    if is_process := options.by_table and not before[_BY_TABLE]:
        options = replace(options, by_table=False)
    for name, value in _description(options)["options"].items():
        if before.get(name) != value:
            if name == _BY_TABLE:
                raise UserError(f"{out} was begun without options of the model: leave them out")
            option = "--" + name.replace("_", "-")
            raise UserError(
                f"{out} was begun with another {option}: those that were and those that will be "
                "fitted must have the same model"
            )
    if is_process:
        note(f"{out} was begun with a Dirichlet process, and goes on so (--components dp)")
    is_fixed = runs["warmup"] is not None
    if is_fixed and not run.has_length:
        raise UserError(f"{out} has runs of a fixed length: give their --draws again")
    if not is_fixed and run.has_length:
        raise UserError(f"{out} has runs that end by themselves: resume them without --draws")

    def refusal(name: str, value: int | None, given: int) -> str:
        was = f"without --{name}" if value is None else f"with --{name} {value}"
        return f"{out} was begun {was}, not --{name} {given}"

    stored = {name: runs[name] for name in _OF_RUNS}
    return fits, replace(options, run=run.continued(stored, refusal))


def _earlier(state: Path) -> tuple[list[_Fit], dict[str, Any], dict[str, Any]]:
    """Read ``fits.json``: the fits, and the options of their model and of their runs."""
    try:
        stored = json.loads(state.read_text(encoding="utf-8"))
        if stored["format"] != _FORMAT:
            raise UserError(f"{state} is of another version of {PROGRAM}")
        fits = [_Fit(**fit) for fit in stored["files"]]
        before, runs = stored["options"], stored["runs"]
        if not {*_OF_RUNS} <= {*runs} or {x.ended for x in fits} - {*_IN_WORDS, _FAILED}:
            raise ValueError
        if not all(_is_name(fit.folder) for fit in fits):  # results are written there
            raise ValueError
    except FileNotFoundError:
        raise UserError(f"there are no fits to resume: no file {state}") from None
    except OSError as error:
        raise UserError(f"cannot read {state}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{state} is damaged") from None
    return fits, before, runs


def _is_name(folder: str) -> bool:
    """Whether it is the name of a folder in another one."""
    return folder.strip(".") != "" and Path(folder).name == folder


def _match_fits(files: Sequence[str], earlier: Sequence[_Fit]) -> tuple[list[_Fit], list[_Fit]]:
    """Return the fits of the files, and the earlier ones of files that are not given this time."""
    by_path = {fit.path: fit for fit in earlier}
    paths = [os.path.abspath(file) for file in files]
    new = [path for path in paths if path not in by_path]
    names = dict(zip(new, folder_names(new, (fit.folder for fit in earlier)), strict=True))
    fits = []
    for file, path in zip(files, paths, strict=True):
        fit = by_path.pop(path, None) or _Fit(file, path, names[path])
        fit.file = file
        fits.append(fit)
    return fits, list(by_path.values())


def _is_finished(fit: _Fit, out: Path) -> bool:
    """Whether a file was fitted, and its results are there; refuse it if it has changed since."""
    if fit.ended not in _FINISHED or not all((out / fit.folder / x).exists() for x in FILES):
        return False
    digest = _digest(fit.path)
    if digest is not None and digest != fit.digest:
        raise UserError(
            f"{fit.file} has changed since it was fitted: remove {out / fit.folder} to fit it again"
        )
    return True


def _options_for(fit: _Fit, options: FitOptions) -> FitOptions:
    """Return the options with which one file is fitted or gone on with."""
    run, folder = options.run, options.run.folder / fit.folder
    if run.resume is not None and store_of(folder).is_dir():
        run = replace(run, resume=folder)
    else:
        run = replace(run, out=folder, resume=None, force=run.replaces)
    return replace(options, file=fit.file, run=run)


def command_of_one(command: str, given: Sequence[str], file: str, out: Path) -> str:
    """Return the command that fits one file as it is fitted among the others."""
    words, size = shlex.split(command), len(given)
    starts = (k for k in range(len(words)) if words[k : k + size] == list(given))
    start = next(starts, len(words))
    one = [*words[:start], file, *words[start + size :]]
    return resumed(shlex.join(one), out, option="--out")


# ---------------------------------------------------------------------------------------------
# The fits
# ---------------------------------------------------------------------------------------------


class _Fits:
    """Fits files one after another, which share a kernel and, if shapes agree, its programs.

    :param given: files and folders of the command.
    :param others: earlier fits of files that are not given this time.
    """

    def __init__(
        self,
        given: Sequence[str],
        options: FitOptions,
        command: str,
        fit_one: FitOne,
        fits: Sequence[_Fit],
        others: Sequence[_Fit],
    ) -> None:
        self._given, self._options, self._command = given, options, command
        self._fit_one, self._fits, self._rows = fit_one, fits, [*others, *fits]
        self._out = options.run.folder
        self._minutes: float | None = None  # to go on with, if those of the command were too few

    def fit_all(self) -> int:
        """Fit the files that are not finished, and return the exit status of the command."""
        self._save()
        try:
            status = self._fit_in_turn()
        except KeyboardInterrupt as interrupt:
            self._print()
            what = str(interrupt) or "interrupted."
            interrupt.args = (f"{what} To go on:\n  {resumed(self._command, self._out)}",)
            raise
        self._print()
        if any(fit.ended not in _FINISHED for fit in self._fits):
            again = resumed(self._command, self._out, self._minutes)
            print(f"\n{PROGRAM}: To go on:\n  {again}", file=sys.stderr)
        has_all = all(fit.ended != _FAILED and fit.groups is not None for fit in self._fits)
        return status or (0 if has_all else 2)

    def _fit_in_turn(self) -> int:
        """Return the exit status of an interrupt, or 0."""
        import jax

        from numpyro_rankings.run.loop import sharing_programs

        todo = [x for x in self._fits if x.ended != _FAILED and not _is_finished(x, self._out)]
        with sharing_programs() as programs:
            for k, fit in enumerate(todo, 1):
                print(f"\n{fit.file} ({k} of {len(todo)})", flush=True)
                num_compiled = programs.num_compiled
                status = self._fit(fit)
                if status >= 128:
                    return status
                if k > 1 and programs.num_compiled > num_compiled:
                    jax.clear_caches()  # as shapes have changed, the old programs are not needed
                gc.collect()  # runs and figures have cycles
        return 0

    def _fit(self, fit: _Fit) -> int:
        before, start = fit.seconds, clock.now()
        command = command_of_one(self._command, self._given, fit.file, self._out / fit.folder)
        # This stays if the process is killed before something else is known.
        fit.ended, fit.digest = _INTERRUPTED, _digest(fit.path)
        self._save()

        def save() -> None:
            fit.seconds = before + clock.now() - start
            self._save()

        def tell(fitted: Fitted) -> None:
            for name, value in fitted._asdict().items():
                is_known = not isinstance(value, float) or math.isfinite(value)
                setattr(fit, name, value if is_known else None)
            save()

        try:
            return self._fit_one(_options_for(fit, self._options), command, tell)
        except Exception as error:
            _fail(fit, error)
            until = self._options.run.plan().until
            if isinstance(error, TooFewDrawsError) and isinstance(until, Goals):
                fit.ended, self._minutes = "time", more_minutes(until)
        finally:
            save()
        return 2

    def _save(self) -> None:
        """Write ``fits.csv`` and ``fits.json``, each at once."""
        files = [asdict(fit) for fit in self._rows]
        state = {"format": _FORMAT, **_description(self._options), "files": files}
        text = io.StringIO(newline="")
        table = csv.writer(text)
        table.writerow(
            ["file", "folder", "rankings", "items", "groups", "r_hat", "ess", "ended", "seconds"]
        )
        for fit in self._rows:
            sizes = ("" if x is None else x for x in (fit.rankings, fit.items, fit.groups))
            r_hat = "" if fit.r_hat is None else f"{fit.r_hat:.4f}"
            ess = "" if fit.ess is None else f"{fit.ess:.1f}"
            judged = r_hat, ess, fit.in_words, f"{fit.seconds:.1f}"
            row = fit.file, fit.folder, *sizes, *judged
            table.writerow(map(for_spreadsheets, row))
        with file_errors(f"cannot write to {self._out}"):
            self._out.mkdir(parents=True, exist_ok=True)
            _replace(self._out / _TABLE, text.getvalue())
            _replace(self._out / FITS, json.dumps(state, indent=1, ensure_ascii=False) + "\n")

    def _print(self) -> None:
        """Print the table."""
        width = min(40, max(len("file"), *(len(fit.file) for fit in self._rows)))
        print(
            f"\n{'file':<{width}}  rankings  items  groups   R-hat     ESS  seconds  how it ended"
        )
        for fit in self._rows:
            rankings, items, groups = (
                "–" if x is None else f"{x:,}" for x in (fit.rankings, fit.items, fit.groups)
            )
            r_hat = number(math.nan if fit.r_hat is None else fit.r_hat, ".3f")
            ess = number(math.nan if fit.ess is None else fit.ess, ",.0f")
            print(
                f"{shorten(fit.file, width):<{width}}  {rankings:>8}  {items:>5}  {groups:>6}  "
                f"{r_hat:>6}  {ess:>6}  {fit.seconds:>7,.0f}  {fit.in_words}"
            )
        print(f"\nResults: {self._out / _TABLE}, and a folder for each file beside it")


def _replace(path: Path, text: str) -> None:
    """Write a file at once, so that a process that is killed leaves the old one."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)  # it may be a link, which would be followed
    new.write_text(text, encoding="utf-8", newline="")
    os.replace(new, path)
