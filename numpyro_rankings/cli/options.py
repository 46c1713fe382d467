"""What a command is asked for, parsed once and frozen.

Nothing here imports JAX, so that mistakes in the arguments are answered at once.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from numpyro_rankings.cli.arguments import UserError, count, option, parse_names, positive
from numpyro_rankings.words.commands import OUT

_MIN_DRAWS = 4  # R-hat needs at least these in each chain
_READING = (
    "judge about count weight items item rank unranked gaps columns missing offered not_offered "
    "ties cycles top highest_first duplicates separator header header_rows transpose encoding "
    "max_rows overvote skipped repeated write_ins max_ranks aliases contest"
).split()


# ---------------------------------------------------------------------------------------------
# The run
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Goals:
    """When a run ends by itself."""

    rhat: float = 1.01
    ess: float = 400.0
    minutes: float = 10.0


@dataclass(frozen=True)
class Length:
    """How long a run of fixed length is, in sweeps of each chain."""

    warmup: int = 1000
    draws: int = 2000

    @property
    def num_sweeps(self) -> int:
        """Sweeps of each chain, warm-up included."""
        return self.warmup + self.draws


@dataclass(frozen=True)
class Plan:
    """How the chains of a run are made."""

    chains: int
    seed: int
    thin: int | None
    until: Goals | Length

    @property
    def length(self) -> Length | None:
        """The length of the run, None if it ends by itself."""
        return self.until if isinstance(self.until, Length) else None


@dataclass(frozen=True)
class RunOptions:
    """The options of the run and of its output, None where they are not given."""

    chains: int | None = option("number of chains (default: 4)", "M", count(1), group="run")
    rhat: float | None = option(
        "the chains agree if R-hat is at most this (default: 1.01)", "R", positive
    )
    ess: float | None = option(
        "the draws suffice if their effective sample size is at least this (default: 400)",
        "E",
        positive,
    )
    minutes: float | None = option(
        "stop after this time, start and compilation included, even if the chains do not agree "
        "yet (default: 10)",
        "T",
        positive,
    )
    resume: Path | None = option(
        "go on with a run that was interrupted or ran out of time, and write its results to DIR, "
        "the --out of that command; the options of the model must be the same, --draws and the "
        "goals may be others; --seed, --chains, --warmup and --thin need not be given again",
        "DIR",
        type=Path,
    )
    warmup: int | None = option(
        "with --draws: warm-up sweeps of each chain, which are discarded (default: 1000)",
        "W",
        count(0),
    )
    draws: int | None = option(
        "sweeps of each chain after the warm-up, instead of as many as are needed (with --warmup "
        "alone: 2000)",
        "D",
        count(1),
    )
    thin: int | None = option(
        "keep one draw every S sweeps (default: 1, or more if the draws are large; with --draws: "
        "keep about 1000 draws of each chain, fewer if memory is short)",
        "S",
        count(1),
    )
    seed: int | None = option("seed of the random numbers (default: 0)", "N", count(0, 2**32 - 1))
    out: Path | None = option(
        "folder for the results (default: numpyro-rankings-results)",
        "DIR",
        type=Path,
        group="output",
    )
    force: bool = option(
        "if DIR exists, replace the result files of this program in it, and remove an unfinished "
        "run of it, once the new one has made sweeps; not with --resume, which replaces the "
        "results anyway",
        action="store_true",
        default=False,
    )
    no_progress: bool = option(
        "show nothing while the chains run", action="store_true", default=False
    )

    @property
    def folder(self) -> Path:
        """The folder of ``--resume`` or ``--out``, of which there is at most one."""
        if self.resume is not None and self.out is not None:
            raise UserError("--out goes without --resume, whose folder the results are written to")
        if self.resume is not None and self.force:
            without = "--force goes without --resume"
            raise UserError(f"{without}, which goes on with the run that is there")
        return self.resume or self.out or Path(OUT)

    @property
    def replaces(self) -> bool:
        """Whether results that are there are replaced."""
        return self.force or self.resume is not None

    @property
    def has_length(self) -> bool:
        """Whether the length of the run is fixed."""
        return self.warmup is not None or self.draws is not None

    def plan(self) -> Plan:
        """Fill in the defaults, and refuse options that contradict each other."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        goals = {name: given[name] for name in ("rhat", "ess", "minutes") if name in given}
        lengths = {name: given[name] for name in ("warmup", "draws") if name in given}
        until = Length(**lengths) if lengths else Goals(**goals)
        if isinstance(until, Goals) and until.rhat <= 1:
            raise UserError(f"--rhat must be greater than 1, got {until.rhat:g}")
        if isinstance(until, Length):
            for name in goals:
                raise UserError(f"--{name} goes without --warmup and --draws, which fix the length")
            thin = self.thin or 1
            if (kept := until.draws // thin) < _MIN_DRAWS:
                raise UserError(
                    f"--draws {until.draws} with --thin {thin} keeps {kept} draws; at least "
                    f"{_MIN_DRAWS} are needed"
                )
        return Plan(self.chains or 4, self.seed or 0, self.thin, until)

    def filled(self) -> "RunOptions":
        """Return the options with the defaults of all but the goals."""
        plan = self.plan()
        length = {} if plan.length is None else asdict(plan.length)
        return replace(self, chains=plan.chains, seed=plan.seed, **length)

    def continued(
        self,
        stored: Mapping[str, int | None],
        refusal: Callable[[str, int | None, int], str] | None = None,
    ) -> "RunOptions":
        """Take from the stored options of the run that is resumed what is not given again.

        :param refusal: what is said of an option, its stored value and the one that is given, if
            they differ; without it, the given ones are taken.
        """
        given = {name: getattr(self, name) for name in stored if getattr(self, name) is not None}
        for name, value in given.items():
            if refusal is not None and value != stored[name]:
                raise UserError(refusal(name, stored[name], value))
        return replace(self, **{**stored, **given})


# ---------------------------------------------------------------------------------------------
# The file
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableOptions:
    """How a file of rankings is to be read, as :func:`~numpyro_rankings.read_rankings` takes it."""

    layout: str | None = option(
        "what the columns of FILE are, if their names do not say it",
        choices=["ranks", "orders", "long", "cell", "pairs", "votes", "marks"],
        group="table",
    )
    judge: str | None = option("the column that names the judges", "COLUMN")
    about: tuple[str, ...] = option(
        "columns with what else is known about the judges, such as region,age; the results show "
        "who is in the groups by each of them",
        "COLUMNS",
        type=parse_names,
        default=(),
    )
    columns: tuple[str, ...] | None = option(
        "the columns of the question, such as 'Q5_*', where * stands for any text; the others are "
        "left out (default: all that no other option names)",
        "NAMES",
        type=parse_names,
        action="extend",
    )
    count: str | None = option(
        "the column with the count of each row; survey weights are not counts, see --weight",
        "COLUMN",
    )
    weight: str | None = option(
        "the column with the survey weight of each judge, from 0 on: fit takes them, on ladders "
        "(--sampler tempered), and by default with --components auto",
        "COLUMN",
    )
    items: tuple[str, ...] | None = option(
        "names of all items, separated by commas (default: those that FILE has)",
        "NAMES",
        type=parse_names,
    )
    item: str | None = option("long: the column with the items", "COLUMN")
    rank: str | None = option("long: the column with the ranks", "COLUMN")
    unranked: str | None = option(
        "what it means that a judge did not rank an item: it ranks below the others, or was not "
        "offered, which --model mallows and plackett-luce allow (default: below)",
        choices=["below", "not-offered"],
    )
    offered: tuple[str, ...] | None = option(
        "ranks, long: texts that mean that an item was offered and is not ranked, so that it is "
        "below those that are, such as DNF; empty stands for an empty cell. Or a column that lists "
        "the items offered to each judge",
        "WORDS",
        type=parse_names,
    )
    not_offered: tuple[str, ...] | None = option(
        "ranks, long: texts that mean that an item was not offered, such as DNS; empty stands for "
        "an empty cell",
        "WORDS",
        type=parse_names,
    )
    ties: str | None = option(
        "what a tie is: exact, no opinion between the tied items; drop leaves out the judges with "
        "ties, of pairs the ties; order puts tied items in a random order, the same at every run "
        "(default: exact)",
        choices=["exact", "drop", "order"],
    )
    cycles: str | None = option(
        "pairs: drop leaves out the judges whose preferences contradict one another, and lines "
        "that compare an item with itself; mistakes says that each comparison may be a mistake, "
        "with a probability that fit --model mallows or plackett-luce learns, and needs --judge "
        "(default: refuse)",
        choices=["refuse", "drop", "mistakes"],
    )
    gaps: str | None = option(
        "where a rank or place is left out: close keeps the order of the items that are ranked; "
        "fill first puts the item there, if it is the only one that is left out (default: refuse)",
        choices=["refuse", "close", "fill"],
    )
    encoding: str | None = option(
        "encoding of a text file, such as windows-1252 or mac-roman (default: UTF-8, or UTF-16 if "
        "FILE begins with its mark)",
        "NAME",
    )
    missing: tuple[str, ...] | None = option(
        "texts and codes that mean that an item is not ranked, such as N/A,99; empty cells always "
        "do; none: no code stands for a missing value, so that 99 is a rating",
        "WORDS",
        type=parse_names,
    )
    top: int | None = option(
        "read the first K items of each list, of any file; of ballots, --max-ranks also counts "
        "blank ranks (default: all)",
        "K",
        type=int,
    )
    highest_first: bool | None = option(
        "the highest number is the first choice; or 1 is, although the question says 'points' or "
        "the like",
        action=argparse.BooleanOptionalAction,
    )
    duplicates: str | None = option(
        "which answers of a judge with several are read, with --judge: the first, the last, or "
        "none (default: they are refused)",
        choices=["first", "last", "drop"],
    )
    separator: str | None = option(
        "cell: what is between the items, such as ';', comma, newline or space, or any if each "
        "cell is split at its own mark; orders, votes: "
        "what is between several names at a place (default: what the cells show)",
        "TEXT",
    )
    header: str | None = option(
        "none: the first row is a ballot, and the columns are called 1, 2, …; counts: with "
        "--transpose, its numbers count the judges who gave the order in each column",
        choices=["none", "counts"],
    )
    header_rows: int | None = option(
        "number of rows above the answers, 1 to 3 (default: 1, or those that Qualtrics and "
        "SurveyMonkey write)",
        "K",
        type=int,
    )
    transpose: bool | None = option(
        "each column is a judge, and each row an item or a place, which the column of --judge, or "
        "the first, names; or each row is a judge, although the table does not look so",
        action=argparse.BooleanOptionalAction,
    )
    max_rows: int | None = option(
        "read a spreadsheet of up to K rows, which a small file may unpack to (default: 1,048,576)",
        "K",
        type=int,
    )
    overvote: str | None = option(
        "where a rank has several names, the list ends, or the rank is passed over (default: stop)",
        choices=["stop", "skip"],
        group="ballots",
    )
    skipped: int | None = option(
        "the list ends where more than K ranks in a row are blank before a name (default: it goes "
        "on, and what follows moves up)",
        "K",
        type=int,
    )
    repeated: str | None = option(
        "where a name is there for the second time, it is passed over, or the list ends (default: "
        "skip)",
        choices=["skip", "stop"],
    )
    write_ins: str | None = option(
        "write-ins are items, or are taken off the lists (default: item)", choices=["item", "skip"]
    )
    max_ranks: int | None = option("read K ranks of a ballot (default: all)", "K", type=int)
    contest: str | None = option(
        "the name or id of the contest, of cast vote records with several", "NAME"
    )
    aliases: str | None = option(
        "further names of items: a table with the columns alias and item", "FILE", group=""
    )

    def given(self) -> dict[str, Any]:
        """Return the options that were given, but for the layout, in the order of complaints."""
        values = {name: getattr(self, name) for name in _READING}
        return {name: value for name, value in values.items() if value not in (None, ())}
