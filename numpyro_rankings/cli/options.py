"""What a command is asked for, parsed once and frozen.

Nothing here imports JAX, so that mistakes in the arguments are answered at once.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from numpyro_rankings.cli.arguments import UserError
from numpyro_rankings.words.commands import OUT

MODELS = ("mallows", "plackett-luce", "gamma-process", "dp-plackett-luce")
POOL_MODELS = MODELS[2:]
_MIN_DRAWS = 4  # R-hat needs at least these in each chain
_READING = (
    "judge about count items item rank unranked gaps columns missing highest_first separator "
    "header_rows encoding overvote skipped repeated write_ins max_ranks aliases contest"
).split()
Options = TypeVar("Options")
Scale = float | tuple[str, float, float] | str  # a number, a gamma prior, or "flat"


def take_options(options: type[Options], args: argparse.Namespace, **others: Any) -> Options:
    """Return the options of a dataclass from the parsed arguments of the same names.

    :param others: fields that are given here.
    """
    names = {field.name for field in fields(options)} - {*others}  # type: ignore[arg-type]
    return options(**{name: getattr(args, name) for name in names}, **others)


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
    """The options of the chains, None where they are not given."""

    chains: int | None = None
    rhat: float | None = None
    ess: float | None = None
    minutes: float | None = None
    warmup: int | None = None
    draws: int | None = None
    thin: int | None = None
    seed: int | None = None

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
        """Take from the run that is resumed what is not given again.

        :param stored: its options by name.
        :param refusal: what is said of an option, its stored value and the one that is given, if
            they differ; without it, the given ones are taken.
        """
        given = {name: getattr(self, name) for name in stored if getattr(self, name) is not None}
        for name, value in given.items():
            if refusal is not None and value != stored[name]:
                raise UserError(refusal(name, stored[name], value))
        return replace(self, **{**stored, **given})


@dataclass(frozen=True)
class OutOptions:
    """Where the results go, and what is shown meanwhile."""

    out: Path | None = None
    resume: Path | None = None
    force: bool = False
    no_progress: bool = False

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


# ---------------------------------------------------------------------------------------------
# The data and the model
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableOptions:
    """How a file of rankings is to be read, as :func:`~numpyro_rankings.read_rankings` takes it."""

    layout: str | None
    judge: str | None
    about: tuple[str, ...]
    columns: tuple[str, ...] | None
    count: str | None
    items: tuple[str, ...] | None
    item: str | None
    rank: str | None
    unranked: str | None
    gaps: str | None
    encoding: str | None
    missing: tuple[str, ...] | None
    highest_first: bool | None
    separator: str | None
    header_rows: int | None
    overvote: str | None
    skipped: int | None
    repeated: str | None
    write_ins: str | None
    max_ranks: int | None
    contest: str | None
    aliases: str | None

    def given(self) -> dict[str, Any]:
        """Return the options that were given, but for the layout, in the order of complaints."""
        values = {name: getattr(self, name) for name in _READING}
        return {name: value for name, value in values.items() if value not in (None, ())}


@dataclass(frozen=True)
class ModelOptions:
    """The model of rankings and its sampler; what it does not have is None, or false.

    - **components** - None for a Dirichlet process.
    """

    model: str
    components: int | None
    alpha: Scale
    nu: tuple[float, ...]
    r: tuple[float, ...]
    shape: float | None
    sigma: float | None
    phi: Scale | None
    gamma: Scale | None
    sampler: str | None
    approximate: bool | None
    assignment: str | None
    init: str | None
    max_clusters: int | None


@dataclass(frozen=True)
class FitOptions:
    """All options of ``fit``.

    - **file** - None for the bundled ballots.
    """

    file: str | None
    table: TableOptions
    model: ModelOptions
    blocs: int | None
    run: RunOptions
    output: OutOptions


@dataclass(frozen=True)
class ClusterOptions:
    """All options of ``cluster``.

    - **decay** - its name and its scale, None for one without.
    """

    file: str
    names: str | None
    family: str
    noise: float | None
    spread: float | None
    concentration: float | None
    vocab: str | None
    alpha: Scale
    discount: float | None
    distances: str | None
    time: str | None
    graph: str | None
    hops: int | None
    decay: tuple[str, Scale | None] | None
    sampler: str | None
    max_clusters: int | None
    run: RunOptions
    output: OutOptions

    @property
    def source(self) -> str | None:
        """The option that gives the distances, or None."""
        sources = ("distances", "time", "graph")
        return next((name for name in sources if getattr(self, name) is not None), None)
