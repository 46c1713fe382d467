"""What the commands write and print: the output folder, and the summary on the screen."""

import contextlib
import glob
import mmap
import os
import re
import shutil
import tempfile
import textwrap
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpyro_rankings._version import __version__
from numpyro_rankings.cli.arguments import PROGRAM, UserError, file_errors
from numpyro_rankings.cli.calibration import CALIBRATION
from numpyro_rankings.cli.options import Plan
from numpyro_rankings.cli.saved import SAVED
from numpyro_rankings.cli.shares import SHARES_BY
from numpyro_rankings.cli.slates import SLATES, SLATES_BY, VOTEKIT
from numpyro_rankings.cli.worths import EFFECTS
from numpyro_rankings.words import (
    number,
    percent,
    plural,
    quantity_name,
    share,
    shorten,
    size,
    value,
)

if TYPE_CHECKING:
    from numpyro_rankings.posterior import Blocs
    from numpyro_rankings.report.findings import Findings
    from numpyro_rankings.report.page import Status

FILES = ("posterior.nc", "clusters.csv", "assignments.csv", "report.html")
# files that not all results have
OPTIONAL = (
    *("blocs.csv", "path.csv", SHARES_BY, EFFECTS, SLATES, SLATES_BY, VOTEKIT, CALIBRATION),
)
_UNFINISHED, _RESULTS = ".unfinished", "results"  # folder of files that are written, and within it
# by what tables of this program are recognised; reports and draws have its name in them
_BEGINNINGS = {
    "clusters.csv": re.compile(b"cluster,"),
    "assignments.csv": re.compile(b".*,cluster,(bloc,)?probability", re.DOTALL),
    "blocs.csv": re.compile(b"level,bloc,"),
    "path.csv": re.compile(b"effective_size,num_components,"),
    SLATES: re.compile(b"(cluster|bloc),share,"),
    SHARES_BY: re.compile(b"covariate,value,"),
    EFFECTS: re.compile(b"covariate,step,"),
    CALIBRATION: re.compile(b"quantity,p_value,"),
    SLATES_BY: re.compile(b".*,judges,(group|bloc)_1_share,", re.DOTALL),  # any table in it
    VOTEKIT: re.compile(rb'\{\s*"n_voters":'),
    "table.csv": re.compile(rb".*[,;\t]\"?cluster( \(fitted( \d+)?\))?\"?[,;\t]", re.DOTALL),
    "fits.csv": re.compile(b"file,folder,"),
    "fits.json": re.compile(rb'\{\s*"format":'),
}


def describe_run(plan: Plan, thin: int, num_sweeps: int, num_used: int) -> dict[str, str]:
    """Describe a run, of which some of the sweeps of each chain are used, for the report."""
    import platform

    import arviz
    import jax
    import jaxlib
    import numpy as np
    import numpyro

    kept = f", of which one in {thin} is kept" if thin > 1 else ""
    length = f"{plural(num_sweeps, 'sweep')}, of which the last {num_used:,} are used"
    if plan.length is not None:  # all that there are, even after Ctrl-C
        further = plural(num_sweeps - plan.length.warmup, "further sweep")
        length = f"{plural(plan.length.warmup, 'warm-up sweep')} and {further}"
    return {
        "run": f"{plural(plan.chains, 'chain')}, each of {length}{kept}",
        "seed": str(plan.seed),
        "versions": f"numpyro-rankings {__version__}, numpyro {numpyro.__version__}, "
        f"jax {jax.__version__}, jaxlib {jaxlib.__version__}, arviz {arviz.__version__}, "
        f"numpy {np.__version__}, Python {platform.python_version()}",
    }


def check_replaceable(
    out: Path, files: Iterable[str] = (*FILES, *OPTIONAL), option: str = "--out"
) -> None:
    """Refuse an output folder whose files another program, or a person, has written."""
    with file_errors(f"cannot read {out}"):
        for name in files:
            if os.path.lexists(out / name) and not _is_own(out / name):
                raise UserError(
                    f"{out / name} was not written by {PROGRAM}: move it, or choose another "
                    f"{option}"
                )
        if (out / "zarr.json").exists():
            raise UserError(f"{out} is the store of a run: choose another {option}")


def _is_own(path: Path, name: str = "") -> bool:
    """Whether a file of results, or all that are in a folder of them, are of this program.

    :param name: by which it is known what the file begins with, if not by its own.
    """
    name = name or path.name
    if path.is_dir() and not path.is_symlink():
        return all(_is_own(x, SLATES_BY if name == SLATES_BY else "") for x in path.iterdir())
    if path.suffix == ".xlsx" and path.is_file():
        return _is_own_workbook(path)
    if not path.is_file() or path.stat().st_size == 0:
        return False
    with path.open("rb") as stream:
        if name in _BEGINNINGS:
            return _BEGINNINGS[name].match(stream.read(2**20)) is not None
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(PROGRAM.encode()) >= 0


def _is_own_workbook(path: Path) -> bool:
    with contextlib.suppress(zipfile.BadZipFile, KeyError), zipfile.ZipFile(path) as book:
        return PROGRAM.encode() in book.read("docProps/core.xml")
    return False


def write_at_once(
    out: Path,
    write: Callable[[Path], object],
    files: Iterable[str] = FILES,
    optional: Iterable[str] = (),
) -> None:
    """Write all result files to a folder beside the output folder, then move them there.

    This is one rename if there is no output folder, and otherwise one for each file, since other
    files in the folder stay.

    :param files: in the order in which they are replaced.
    :param optional: files that may be written too, and replaced first; those that are not written
        are removed, because they are of earlier results.
    """
    place = out.absolute()
    with file_errors(f"cannot write to {out}"):
        place.parent.mkdir(parents=True, exist_ok=True)
        with _folder_beside(place) as folder:
            done = folder / _RESULTS
            done.mkdir()
            write(done)
            if place.exists():
                for name in optional:
                    if os.path.lexists(place / name) and _is_own(place / name):
                        _remove(place / name)
                    if (done / name).exists():
                        os.replace(done / name, place / name)
                for name in files:
                    os.replace(done / name, place / name)
            else:
                os.rename(done, place)


def _remove(path: Path) -> None:
    """Remove a file of results, or a folder that has nothing else."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


@contextlib.contextmanager
def _folder_beside(place: Path) -> Iterator[Path]:
    """Make a folder beside a place, which goes in the end, with those of commands that were killed.

    The lock shows that a process uses it.
    """
    from numpyro_rankings.run.errors import StoreError
    from numpyro_rankings.run.lock import HAS_LOCKS, lock_of

    beginning = f".{place.name}-"
    for rest in place.parent.glob(f"{glob.escape(beginning)}*{_UNFINISHED}") if HAS_LOCKS else ():
        with contextlib.suppress(OSError, StoreError), lock_of(rest):
            if not rest.is_symlink() and os.listdir(rest) in ([], [_RESULTS]):
                shutil.rmtree(rest)
    with contextlib.ExitStack() as stack:
        made = tempfile.TemporaryDirectory(_UNFINISHED, beginning, place.parent)
        folder = Path(stack.enter_context(made))
        with contextlib.suppress(StoreError):  # of a file system without locks: then it stays
            stack.enter_context(lock_of(folder))
        yield folder


# ---------------------------------------------------------------------------------------------
# The screen
# ---------------------------------------------------------------------------------------------


_COLUMNS_EXPLAINED = (
    "Found in: the share of the draws that have a group like it. Such a group and this one share "
    "more members with each other than with any other group, and more than a third of either. "
    "Together: in what share of the draws two of its members are in one group."
)
_AGREEMENT_EXPLAINED = (
    "Agreement: how alike its members rank, 0% if at random, 100% if all alike; below 10% they "
    "hardly agree."
)


def print_groups(
    findings: "Findings", columns: str, texts: Sequence[str], lines: Sequence[str], most: int
) -> None:
    """Print how many groups hold, those that do, each with a line below it, and what is left.

    :param columns: headings of what each row shows besides what is known of groups of any kind.
    :param texts: these columns for each profile, and **lines**, the line below its row.
    """
    from numpyro_rankings.report.answers import how_many, left_in_words, no_intervals
    from numpyro_rankings.report.blocs_in_words import BEFORE_EXPLAINED

    _print_wrapped(how_many(findings))
    held, intervals = findings.held, findings.with_intervals
    if held:
        of_sizes = _bounds(["90% interval"] if intervals else [])
        print(f"\ngroup     size   share{of_sizes}  found in  together  {columns}".rstrip())
    for i, p in enumerate(held[:most]):
        together = findings.cohesion(p)
        print(
            f"{i + 1:>5} {size(p.mean_size):>8} {share(p.mean_size / findings.total):>7}"
            f"{_bounds(findings.interval_in_words(p.interval_over_all))}"
            f"{percent(p.presence):>10} "
            f"{'' if together is None else percent(together):>9}  {texts[i]}".rstrip()
        )
        _print_wrapped(lines[i], " " * 7)
    if len(held) > most:
        print(f"  and {plural(len(held) - most, 'smaller one')}, in clusters.csv")
    print()
    if left := left_in_words(findings):
        _print_wrapped(f"{left}.")
    if held and findings.membership is not None:
        explained = [no_intervals(findings), _COLUMNS_EXPLAINED]
        if columns:
            explained += [_AGREEMENT_EXPLAINED]
            explained += [] if findings.blocs_first else [BEFORE_EXPLAINED]
        _print_wrapped(" ".join(filter(None, explained)))


def _bounds(texts: Sequence[str]) -> str:
    """Return the column of the intervals; nothing if there is none."""
    return "".join(f"  {f'({text})':<15}" for text in texts)


def print_title(findings: "Findings", what: str) -> None:
    """Print what was grouped, the verdict on everything, and how it was grouped."""
    from numpyro_rankings.report.glossary import how_found
    from numpyro_rankings.report.overall import overall

    print(f"\nGroups in {what}\n")
    judged = overall(findings)
    _print_wrapped(" ".join([judged.headline, *judged.reasons]))
    print()
    _print_wrapped(how_found(findings))
    print()


def print_blocs(findings: "Findings", blocs: "Blocs") -> None:
    """Print the blocs, each with a line below it, what each number keeps, and the verdict."""
    from numpyro_rankings.report import blocs_in_words as said

    total, intervals = findings.total, findings.with_intervals
    of_sizes = _bounds(["90% interval"] if intervals else [])
    print(f" bloc     size   share{of_sizes}  certainty  agreement")
    for k, bloc in enumerate(blocs.blocs, 1):
        print(
            f"{k:>5} {size(bloc.size):>8} {share(bloc.size / total):>7}"
            f"{_bounds(findings.interval_in_words(bloc.size_interval))}"
            f"{percent(bloc.certainty):>11} {percent(bloc.agreement):>10}"
        )
        _print_wrapped(said.wants_of_bloc(bloc), " " * 7)
    print()
    _print_wrapped(f"{said.what_each_keeps(blocs)} {said.kept_explained(blocs)}")
    _print_wrapped(said.table_explained(intervals, findings.blocs_first))
    judged = said.verdict_of_blocs(blocs)
    print()
    _print_wrapped(judged.headline)
    for reason in judged.reasons:
        _print_wrapped(reason, "  ")


def print_reference(reference: Any) -> None:
    """Print which partition the groups come from."""
    from numpyro_rankings.report.answers import reference_in_words

    print()
    _print_wrapped(reference_in_words(reference))


def print_diagnostics(findings: "Findings", out: Path, status: "Status | None" = None) -> None:
    """Print whether the run can be trusted, what to do next, and where the results are."""
    from numpyro_rankings.report.answers import files_in_words
    from numpyro_rankings.report.glossary import R_HAT_EXPLAINED
    from numpyro_rankings.report.judgements import r_star_in_words
    from numpyro_rankings.report.next_steps import next_steps

    if findings.calibration is not None:
        from numpyro_rankings.report.calibration import calibration_in_words

        print()
        _print_wrapped(calibration_in_words(findings.calibration))
    print()
    _print_wrapped(R_HAT_EXPLAINED)
    is_moving = findings.table["note"] != "constant"
    table = findings.table[is_moving] if is_moving.any() else findings.table
    print(
        "\nquantity                                  mean         sd  ESS bulk  ESS tail     R-hat"
    )
    for name, row in table.iterrows():
        shown = shorten(quantity_name(str(name)), 34)
        print(
            f"{shown:<34}{value(row['mean']):>12}{value(row['sd']):>11}"
            f"{number(row['ess_bulk'], ',.0f'):>10}{number(row['ess_tail'], ',.0f'):>10}"
            f"{row['note'] or number(row['r_hat'], '.3f'):>10}"
        )
    if findings.r_star is not None:
        print()
        _print_wrapped(r_star_in_words(findings.r_star))
    print(f"\n{findings.verdict.headline}")
    for reason in findings.verdict.reasons:
        _print_wrapped(reason, "  ")
    print("\nWhat to do next?")
    for step in next_steps(findings, status):
        _print_wrapped(step.text, "  ")
        if step.command:
            print(f"    {step.command}")
    if files := files_in_words(findings):
        _print_wrapped(files, "  ")
    extra = {"blocs.csv": findings.blocs, "path.csv": findings.path, SHARES_BY: findings.shares_by}
    extra |= {EFFECTS: findings.item_effects, CALIBRATION: findings.calibration}
    extra |= dict.fromkeys((SLATES, VOTEKIT), findings.slates)
    extra[SLATES_BY] = findings.slates_by or None
    names = [*FILES, *(name for name in OPTIONAL if extra[name] is not None)]
    names += [name for name in SAVED if (out / name).exists() and _is_own(out / name)]
    others = ", ".join(name for name in names if name != "report.html")
    print(f"\nResults: {out / 'report.html'} (open it in a browser), {others}")


def _print_wrapped(text: str, indent: str = "") -> None:
    width = max(40, terminal_width())
    print(textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent))


def terminal_width() -> int:
    """Return the width of the terminal, in characters."""
    return shutil.get_terminal_size((100, 24)).columns
