"""The page of a run that has not ended yet: what is seen of it in the first minutes."""

import contextlib
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from numpyro_rankings._system import clock
from numpyro_rankings.cli.arguments import HopelessError, UserError, note
from numpyro_rankings.cli.results import terminal_width, write_at_once
from numpyro_rankings.words import plural, share, shorten

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from numpyro_rankings.cli.progress import Progress
    from numpyro_rankings.posterior import Blocs, Draws
    from numpyro_rankings.posterior.diagnostics import Verdict
    from numpyro_rankings.rankings import Orders, Rankings
    from numpyro_rankings.report.findings import Findings
    from numpyro_rankings.report.page import Status
    from numpyro_rankings.run import Run

_PAGE = "report.html"
_FIRST = 60.0  # seconds after the start: the first page at the latest; then 120, 240, …
_RHAT = 1.1  # below which the first page comes earlier
_SHARE = 0.1  # of the time, for all pages together
_FIRST_TAKES = 2.0  # seconds, as a guess: no page comes before ten times as much
_RELOAD = 15  # seconds after which a browser looks for a newer page
_LEAST_DRAWS = 4  # of each chain
_MOST_DRAWS, _LEAST_SHOWN = 200, 10  # of all chains together, and of each
_COMPARED = 1e8  # labels in all pairs of draws that are compared to find the partition: a second
_GROUPS_PRINTED = 4
_BLOCS_CHANGE = "The blocs are found from a few of the draws so far, and may still change too."
_MARK = '<meta name="numpyro-rankings" content="not final">\n'
_REFRESH = f'<meta http-equiv="refresh" content="{_RELOAD}">\n'


class GroupsSoFar(NamedTuple):
    """The groups of a run so far."""

    view: Mapping[str, Any]  # what its page shows, by name
    lines: Sequence[str]  # one for each group, the largest first


class TriedNumber(NamedTuple):
    """The number of components that is the most probable of those that have been tried."""

    number: int
    mcmc: Any  # the draws of its ladders

    @classmethod
    def of(cls, ladders: Mapping[int, Any]) -> "TriedNumber":
        """Return the most probable of the numbers of which these are the ladders."""
        from numpyro_rankings.posterior.ladders import log_evidence

        best = max(ladders, key=lambda number: log_evidence(ladders[number]).value)
        return cls(best, ladders[best])

    @property
    def lengths(self) -> tuple[int, int]:
        """The numbers of sweeps and of draws of each ladder."""
        return self.mcmc.num_warmup + self.mcmc.num_samples, self.mcmc.num_samples


class SoFar(NamedTuple):
    """What a page is of, and in words how far that is."""

    source: "Run | TriedNumber"
    state: str
    how_far: str


if TYPE_CHECKING:
    Finder = Callable[[Run | TriedNumber, Status, float], GroupsSoFar]


class InterimPage:
    """Writes ``report.html`` while a run goes on: first when R-hat is low or a minute has passed.

    While numbers of components are tried, it comes first with the second of them. It is renewed
    after 2, 4, 8, … minutes, and put off while more than a tenth of the time would go into it. The
    results replace it. If there are none, because the run ends with an error, it says so; if it has
    replaced the page of earlier results, that page is put back.

    :param find: returns the groups of a run so far, given a status for the top of the page, and
        how many seconds may go into it. It may be replaced.
    """

    def __init__(self, out: Path, find: "Finder") -> None:
        self._path, self.find = out / _PAGE, find
        self._next, self._spent, self._takes = _FIRST, 0.0, _FIRST_TAKES
        self._earlier: bytes | None = None  # page of results, which stay if the run has none
        self._is_first = True

    def show_if_due(self, run: "Run", progress: "Progress") -> None:
        """Write the page if it is time for it, and the first time print the groups.

        An error is said in one line, and the run goes on, unless it would meet the error again.
        """
        if not self._is_due(run, 60 * progress.minutes()):
            return

        def so_far() -> SoFar:
            how_far = f"after {plural(run.num_sweeps, 'sweep')} of each chain"
            return SoFar(run, progress.state(run), how_far)

        self._try_to_show(so_far, progress)

    def show_tried(self, ladders: Mapping[int, Any], most: int, progress: "Progress") -> None:
        """Write the page if it is time for it, while numbers of components are tried.

        :param ladders: an MCMC of each number so far, and **most**, how many are tried.
        """
        seconds, num_tried = 60 * progress.minutes(), len(ladders)
        is_early = self._next > _FIRST and seconds < self._next
        if num_tried < 2 or is_early or self._spent + self._takes > _SHARE * seconds:
            return

        def so_far() -> SoFar:
            tried = TriedNumber.of(ladders)
            how_far = (
                "while numbers of groups were tried: this is the fit with "
                f"{plural(tried.number, 'component')}, the most probable of those with up to "
                f"{num_tried} tried so far, and others may be more probable"
            )
            state = f"{num_tried} of at most {plural(most, 'component')} tried"
            return SoFar(tried, state, how_far)

        self._try_to_show(so_far, progress)

    def _try_to_show(self, so_far: "Callable[[], SoFar]", progress: "Progress") -> None:
        """Write the page, or say why not.

        :param so_far: returns what it is of; an error in it is told like one of the page.
        """
        start = 60 * progress.minutes()
        try:
            self._show(so_far, progress, _SHARE * start - self._spent)
        except HopelessError:
            raise
        except Exception as error:  # whatever it is, the run is worth more than the page
            progress.end()
            text = " ".join(str(error).split()) or type(error).__name__
            note(f"the page of the run so far could not be written: {text}")
        end = 60 * progress.minutes()
        self._takes = end - start
        self._spent += self._takes
        self._next = 2 * _FIRST
        while self._next <= end:
            self._next *= 2

    @property
    def is_written(self) -> bool:
        """Whether there is a page of this run, so that its folder is not that of another."""
        return not self._is_first

    def take_back(self) -> None:
        """Remove the page, if any, or put back that of earlier results: no draws are kept."""
        with contextlib.suppress(OSError, UserError):  # what ended the run is worth more
            if self._earlier is not None:
                self._write(self._earlier)
            elif self.is_written and _MARK.encode() in self._path.read_bytes():
                self._path.unlink()
                self._path.parent.rmdir()  # an error if it is not empty

    def end(self, why: str, run: "Run", command: str | None) -> None:
        """Say on the page, if any, why the run has ended without results, and how to go on."""
        from numpyro_rankings.report.page import Status, with_status

        with contextlib.suppress(OSError, UserError):  # what ended the run is worth more
            page = self._path.read_bytes()
            if _MARK.encode() not in page:
                return
            text = f"The run made {plural(run.num_sweeps, 'sweep')} of each chain. There are no "
            text += "results: these are the groups that it had found some time before its end."
            status = Status(f"not finished: {why}", text, command)
            ended = with_status(page.decode().replace(_REFRESH, ""), status)
            self._write(self._earlier or ended.encode())

    def _is_due(self, run: "Run", seconds: float) -> bool:
        if self._spent + self._takes > _SHARE * seconds:
            return False
        if run.num_draws < 2 * _LEAST_DRAWS:  # half of them may be the burn-in
            return False
        if seconds >= self._next or self._next > _FIRST:
            return seconds >= self._next
        run.check_if_due()
        return run.last_check is not None and run.last_check.rhat < _RHAT

    def _show(self, so_far: "Callable[[], SoFar]", progress: "Progress", seconds: float) -> None:
        from numpyro_rankings.report.page import Status, page_of

        source, state, how_far = so_far()
        text = (
            f"Written on {clock.date_and_time()}, {how_far}. The groups may still change. This "
            "page renews itself, until the results replace it, which have figures and more "
            "sections."
        )
        headline = f"still running{state and f': {state}'}"
        groups = self.find(source, Status(headline, text), seconds)
        page = page_of("report.html", groups.view, _MARK + _REFRESH)
        if self._is_first and self._path.exists():
            earlier = self._path.read_bytes()
            self._earlier = None if _MARK.encode() in earlier else earlier
        self._write(page.encode())
        if self._is_first:
            about = f"{_how_many(groups.lines)} so far{state and f' ({state})'}"
            progress.tell([f"{about}, see {self._path}", *_shortened(groups.lines)])
        self._is_first = False

    def _write(self, page: bytes) -> None:
        """Replace the page at once, so that a browser never sees a part of it."""

        write_at_once(self._path.parent, lambda x: (x / _PAGE).write_bytes(page), (_PAGE,))


def has_only_page(out: Path) -> bool:
    """Whether a folder has nothing but such a page, of a command that was killed."""
    with contextlib.suppress(OSError):
        return os.listdir(out) == [_PAGE] and _MARK.encode() in (out / _PAGE).read_bytes()
    return False


def _how_many(lines: Sequence[str]) -> str:
    return plural(len(lines), "group") if lines else "no group that holds"


def _shortened(lines: Sequence[str]) -> list[str]:
    shown = list(lines if len(lines) <= _GROUPS_PRINTED else lines[: _GROUPS_PRINTED - 1])
    if len(shown) < len(lines):
        shown.append(f"and {plural(len(lines) - len(shown), 'smaller one')}")
    width = max(40, terminal_width())
    return [shorten(f"  {line}", width) for line in shown]


class _BlocFinder:
    """Finds the blocs of some draws of a run that goes on, if there is time for it.

    How long it takes is a guess from the size of the table. Where that is too short, the next page
    is put off until there is time for what the last one took. If no number of blocs was asked for,
    they are found where they help.
    """

    def __init__(self, rankings: "Rankings | Orders", asked: int | None) -> None:
        self._rankings, self._asked = rankings, asked
        self._takes: float | None = None

    def find(
        self, findings: "Findings", draws: "Mapping[str, np.ndarray]", seconds: float
    ) -> "Blocs | None":
        """Return the blocs, None if there are none or it may take longer than **seconds**."""
        from numpyro_rankings.posterior.blocs import (
            MOST_WORK,
            NoBlocsError,
            find_blocs,
            search_seconds,
            search_work,
        )
        from numpyro_rankings.rankings import Comparisons
        from numpyro_rankings.report.findings import blocs_that_help, needs_blocs

        rankings = self._rankings
        if findings.reference is None or not (self._asked or needs_blocs(findings)):
            return None
        if isinstance(rankings, Comparisons) or rankings.weights is not None:
            return None  # which have none
        if self._takes is None:
            try:
                work = search_work(draws, rankings)
            except NoBlocsError:
                work = math.inf
            is_long = self._asked is None and work > MOST_WORK  # the results have none either
            self._takes = math.inf if is_long else search_seconds(work)
        if self._takes > seconds:
            return None
        if self._asked is None:
            return blocs_that_help(draws, rankings)
        try:
            return find_blocs(draws, rankings, self._asked)
        except NoBlocsError:
            return None


def finder_of_groups(
    rankings: "Rankings | Orders",
    title: str,
    chains: int,
    details: "Callable[[Run | TriedNumber], dict[str, str]]",
    num_blocs: int | None = None,
    path: Any = None,
) -> "Finder":
    """Return what finds the groups of rankings in a run that goes on, or in a number tried.

    It takes few of the draws, and describes the draw that agrees best with the others, because to
    search for a partition takes long. Blocs are found if the rest of the time suffices.

    :param details: returns how it is made.
    :param num_blocs: number of blocs that was asked for, if any.
    :param path: by which the number of components was chosen, if it was.
    """
    blocs = _BlocFinder(rankings, num_blocs)

    def find(source: "Run | TriedNumber", status: "Status", seconds: float) -> GroupsSoFar:
        from numpyro_rankings.posterior import Draws
        from numpyro_rankings.report.write import interim_view

        start = clock.now()
        if isinstance(source, TriedNumber):
            draws, judged = Draws.of(source.mcmc), _judged(source.mcmc, rankings)
        else:
            draws = Draws.of(source.as_mcmc(max(_LEAST_SHOWN, _MOST_DRAWS // chains)))
            judged = source.diagnostics(), source.verdict
        findings = _findings_so_far(draws, rankings, *judged)._replace(path=path)
        left = seconds - (clock.now() - start)
        findings = findings._replace(blocs=blocs.find(findings, draws.samples, left))
        if findings.blocs is not None:
            status = status._replace(text=f"{status.text} {_BLOCS_CHANGE}")
        view = interim_view(findings, rankings, title=title, status=status, details=details(source))
        return GroupsSoFar(view, _describe_groups(findings, rankings.num_rankings))

    return find


def _judged(mcmc: Any, rankings: "Rankings | Orders") -> "tuple[pd.DataFrame, Verdict]":
    """Return the diagnostics of the ladders of a number of components, and the verdict on them."""
    from numpyro_rankings.posterior.diagnostics import diagnostics_table, verdict
    from numpyro_rankings.posterior.inference_data import to_inference_data

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without a pointwise log likelihood of so many rankings
        data = to_inference_data(mcmc, rankings)
    table = diagnostics_table(data)
    return table, verdict(data, table)


def _findings_so_far(
    draws: "Draws", rankings: "Rankings | Orders", table: "pd.DataFrame", verdict: "Verdict"
) -> "Findings":
    """Describe the draw that agrees best with the others."""
    import numpy as np

    from numpyro_rankings.posterior import cluster_profiles
    from numpyro_rankings.posterior.partitions import medoid_partition
    from numpyro_rankings.posterior.point_estimates import ReferencePartition
    from numpyro_rankings.report.write import interim_findings

    samples, reference = draws.flat(), None
    if draws.labels is not None:
        pairs = _COMPARED / rankings.num_rankings
        compared = int(np.clip(np.sqrt(2 * pairs), _LEAST_SHOWN, 100))
        medoid = medoid_partition(samples["assignments"], compared)
        reference = ReferencePartition(medoid.labels, medoid.expected_loss, "medoid")
    return interim_findings(
        rankings,
        cluster_profiles(draws, rankings, reference),
        reference,
        table,
        verdict,
        samples.get("num_clusters"),
        draws.num_components,
    )


def _describe_groups(findings: "Findings", size: int) -> list[str]:
    """Return a line for each group that holds."""
    from numpyro_rankings.posterior import holds
    from numpyro_rankings.report.answers import wants

    return [
        f"group {k}: {share(p.mean_size / size):>6}  {text}"
        for k, (p, text) in enumerate(zip(findings.profiles, wants(findings), strict=True), 1)
        if holds(p)
    ]
