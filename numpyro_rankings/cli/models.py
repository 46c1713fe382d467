"""The models of the command ``fit``: their options, what they take, and their kernels."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from numpyro_rankings.cli.arguments import (
    MAX_CLUSTERS,
    MOST_CLUSTERS,
    Scale,
    UserError,
    as_prior,
    count,
    option,
    positive,
    scale,
)
from numpyro_rankings.words import value
from numpyro_rankings.words.commands import DEFAULT_MODEL

if TYPE_CHECKING:
    from numpyro_rankings.families import RankingFamily
    from numpyro_rankings.infer import TemperedMixture
    from numpyro_rankings.infer.mixture.component_model import ComponentModel
    from numpyro_rankings.infer.ranking_kernel import RankingKernel
    from numpyro_rankings.rankings import Orders, Rankings

PROCESS, AUTO = 0, -1  # how the parser returns "dp" and "auto" of --components
TEMPERED = "tempered"
MOST_TRIED = 8  # components, by --components auto
# without an option: different rankings beyond which it is auto, or already beyond so many if most
# judges have one for themselves; up to so many items, from so many minutes on, and judges who are
# fitted then
MOST_DIFFERENT, MOST_OWN, MOST_ITEMS, LEAST_MINUTES, MOST_JUDGES = 500, 50, 30, 5, 2000


class FitModel(ABC):
    """One model of ``fit``; a new one is added to ``MODELS``.

    - **name** - as ``--model`` has it, and **about**, what it is.
    - **defaults** - the fields of :class:`ModelOptions` that not every model has, and the default
      of each.
    - **takes_flat_alpha** - whether ``--alpha flat`` is a prior of it.
    - **takes_choice_sets** - whether judges may have been offered some of the items only.
    - **takes_comparisons** - whether judges may have compared pairs and made mistakes.
    - **takes_process** - whether ``--components dp`` is; if not, **process** may name another model
      that is such a process.
    """

    name: str
    about: str
    defaults: ClassVar[Mapping[str, Any]]
    takes_flat_alpha = False
    takes_process = False
    process: str | None = None
    takes_choice_sets = False
    takes_comparisons = False

    @property
    @abstractmethod
    def family(self) -> "RankingFamily":
        """The likelihood of its rankings."""

    @abstractmethod
    def kernel(self, options: "ModelOptions") -> "RankingKernel":
        """Return the kernel that fits it."""

    def components(self, options: "ModelOptions") -> "ComponentModel":
        """Return what its components are to ``--sampler tempered``, if it takes that."""
        raise UserError(f"--sampler {TEMPERED} cannot be used with --model {self.name}")

    @abstractmethod
    def in_words(self, options: "ModelOptions") -> str:
        """Return what it is, for the last section of the report."""

    def is_mixture(self, options: "ModelOptions") -> bool:
        """Whether there can be several groups."""
        return options.components != 1

    def check_options(self, options: "ModelOptions") -> None:
        """Refuse options that do not go together."""
        if options.sampler == TEMPERED:
            _check_tempered(options)
        elif options.components == AUTO:
            raise UserError("--components auto goes with --sampler tempered")
        elif options.effective_size is not None:
            raise UserError("--effective-size goes with --sampler tempered")

    def check_rankings(
        self, name: str, options: "ModelOptions", rankings: "Rankings | Orders"
    ) -> None:
        """Refuse rankings that the options do not go with.

        :param name: of the file.
        """
        size, most = options.effective_size, rankings.effective_number
        if size is not None and size > most:
            what = "rankings" if rankings.weights is None else "effective number of judges"
            raise UserError(
                f"--effective-size must be at most {most:,.9g}, the {what} of {name}, got {size:g}"
            )

    def searches(self, kernel: "RankingKernel", rankings: "Rankings | Orders") -> bool:
        """Whether it takes long to find where the chains start."""
        return False


class _Mallows(FitModel):
    name = "mallows"
    takes_choice_sets = takes_comparisons = True
    about = "consensus orders (generalized Mallows)"
    takes_process = True
    defaults: ClassVar = {
        "components": None,
        "alpha": 1.0,
        "nu": (1.0,),
        "r": (1.0,),
        "sampler": "slice",
        "effective_size": None,
        "approximate": False,
        "assignment": None,
        "init": None,
        "max_clusters": MAX_CLUSTERS,
    }

    @property
    def family(self) -> "RankingFamily":
        from numpyro_rankings.families import MALLOWS

        return MALLOWS

    def kernel(self, options: "ModelOptions") -> "RankingKernel":
        from numpyro_rankings.infer import BetaGibbs, SliceGibbs

        if options.sampler == TEMPERED:
            return _tempered(self.components(options), options)
        settings: dict[str, Any] = {
            "alpha": as_prior(options.alpha),
            "max_clusters": options.max_clusters,
            "nu": _by_stage(options.nu),
            "r": _by_stage(options.r),
            "num_components": options.components,
            "init": options.init,
        }
        if options.sampler == "beta":
            return BetaGibbs(**settings, exact=not options.approximate)
        return SliceGibbs(**settings, assignment=options.assignment or "parallel")

    def components(self, options: "ModelOptions") -> "ComponentModel":
        from numpyro_rankings.infer import MallowsComponents

        return MallowsComponents(nu=_by_stage(options.nu), r=_by_stage(options.r))

    def in_words(self, options: "ModelOptions") -> str:
        return f"generalized Mallows model of top-t rankings, {mixture_in_words(options)}"

    def check_options(self, options: "ModelOptions") -> None:
        super().check_options(options)
        if options.sampler == "gibbs":
            raise UserError("--sampler gibbs goes with --model plackett-luce")
        if options.approximate and options.sampler != "beta":
            raise UserError("--approximate goes with --sampler beta; the slice sampler is exact")
        if options.assignment is not None and options.sampler == "beta":
            raise UserError(
                "--assignment goes with --sampler slice; the beta sampler is sequential"
            )
        for name in ("assignment", "init"):
            if options.sampler == TEMPERED and getattr(options, name) is not None:
                raise UserError(f"--{name} goes with --sampler slice or beta")
        if options.init == "search" and (options.components or 1) == 1:
            raise UserError("--init search goes with --components K, where K is 2 or more")

    def check_rankings(
        self, name: str, options: "ModelOptions", rankings: "Rankings | Orders"
    ) -> None:
        from numpyro_rankings.rankings import num_stages

        super().check_rankings(name, options, rankings)
        stages = num_stages(rankings)
        for flag, numbers in (("--nu", options.nu), ("--r", options.r)):
            if len(numbers) not in (1, stages):
                raise UserError(
                    f"{flag} has {len(numbers)} numbers, but {name} has {stages} stages (one for "
                    "each place of the longest list, but none for the last of all items): give "
                    "one number, or one for each stage"
                )

    def searches(self, kernel: Any, rankings: "Rankings | Orders") -> bool:
        from numpyro_rankings.infer import TemperedMixture

        is_on_ladder = isinstance(kernel, TemperedMixture)
        return not is_on_ladder and kernel.search_iterations(rankings) > 0


class _PlackettLuce(FitModel):
    name = "plackett-luce"
    takes_choice_sets = takes_comparisons = True
    about = "weights of the items"
    defaults: ClassVar = {
        "components": 1,
        "alpha": 1.0,
        "shape": 1.0,
        "worths_by": None,
        "sampler": None,
        "effective_size": None,
        "max_clusters": None,
    }
    process = "dp-plackett-luce"

    @property
    def family(self) -> "RankingFamily":
        from numpyro_rankings.families import PLACKETT_LUCE

        return PLACKETT_LUCE

    def kernel(self, options: "ModelOptions") -> "RankingKernel":
        from numpyro_rankings.infer import PlackettLuceGibbs, PlackettLuceRegressionGibbs

        if options.sampler == TEMPERED:
            return _tempered(self.components(options), options)
        assert options.components is not None
        if options.worths_by is not None:
            settings: dict[str, Any] = {} if options.shape is None else {"shape": options.shape}
            return PlackettLuceRegressionGibbs(**settings)
        return PlackettLuceGibbs(
            shape=options.shape,
            num_components=options.components,
            alpha=as_prior(options.alpha),
        )

    def components(self, options: "ModelOptions") -> "ComponentModel":
        from numpyro_rankings.infer import PlackettLuceComponents

        return PlackettLuceComponents(1.0 if options.shape is None else options.shape)

    def in_words(self, options: "ModelOptions") -> str:
        of_items = "" if options.worths_by is None else ", weights by covariates of the items"
        return f"Plackett–Luce model, {mixture_in_words(options)}{of_items}"

    def check_options(self, options: "ModelOptions") -> None:
        super().check_options(options)
        if options.sampler not in (None, "gibbs", TEMPERED):
            raise UserError(f"--sampler {options.sampler} goes with --model mallows")
        if options.worths_by is not None and options.components != 1:
            raise UserError(
                "--worths-by is for a single population: leave out --components, or leave out "
                "--worths-by and compare the weights of the groups in clusters.csv"
            )
        if options.worths_by is not None and options.sampler == TEMPERED:
            raise UserError(
                "--worths-by is fitted by --sampler gibbs: leave out --sampler tempered"
            )


class _GammaProcess(FitModel):
    name = "gamma-process"
    about = "Plackett–Luce for an unlimited pool of items, of which FILE lists some"
    defaults: ClassVar = {"alpha": ("gamma", 1.0, 0.1), "sigma": 0.0}
    takes_flat_alpha = True

    @property
    def family(self) -> "RankingFamily":
        from numpyro_rankings.families import ITEM_POOL

        return ITEM_POOL

    def kernel(self, options: "ModelOptions") -> "RankingKernel":
        from numpyro_rankings.infer import GammaProcessPlackettLuceGibbs

        alpha = as_prior(options.alpha)
        return GammaProcessPlackettLuceGibbs(alpha=alpha, sigma=options.sigma or 0.0)

    def in_words(self, options: "ModelOptions") -> str:
        sigma = options.sigma
        process = f"generalised gamma process, σ = {sigma:g}" if sigma else "gamma process"
        return f"Plackett–Luce model of an unlimited pool of items, {process}"

    def is_mixture(self, options: "ModelOptions") -> bool:
        return False


class _DPPlackettLuce(_GammaProcess):
    name = "dp-plackett-luce"
    about = "a Dirichlet process mixture of gamma-process models"
    defaults: ClassVar = {
        "alpha": ("gamma", 1.0, 0.1),
        "phi": ("gamma", 1.0, 0.01),
        "gamma": ("gamma", 1.0, 1.0),
        "max_clusters": MAX_CLUSTERS,
    }

    def kernel(self, options: "ModelOptions") -> "RankingKernel":
        from numpyro_rankings.infer import DPPlackettLuceGibbs

        assert options.max_clusters is not None
        return DPPlackettLuceGibbs(
            alpha=as_prior(options.alpha),
            phi=as_prior(options.phi),
            gamma=as_prior(options.gamma),
            max_clusters=options.max_clusters,
        )

    def in_words(self, options: "ModelOptions") -> str:
        return "Dirichlet process mixture of Plackett–Luce models of an unlimited pool of items"

    def is_mixture(self, options: "ModelOptions") -> bool:
        return True


MODELS: dict[str, FitModel] = {
    model.name: model for model in (_Mallows(), _PlackettLuce(), _GammaProcess(), _DPPlackettLuce())
}


def models_with(name: str) -> list[str]:
    """Return the names of the models that have an option, by its name without dashes."""
    return [model.name for model in MODELS.values() if name in model.defaults]


def mixture_in_words(options: "ModelOptions") -> str:
    """Return what the number of components makes of a model."""
    words = {None: "Dirichlet process mixture", 1: "single population"}
    text = words.get(options.components, f"{options.components}-component mixture")
    if options.effective_size is not None:
        text += f", as if there were {value(options.effective_size)} rankings"
    return text


def _check_tempered(options: "ModelOptions") -> None:
    if options.components is None:
        raise UserError("--sampler tempered goes with --components K or auto, not with dp")
    if options.alpha is not None and not isinstance(options.alpha, float):
        raise UserError("--alpha must be a number with --sampler tempered")
    for name in ("alpha", "effective_size"):
        if options.components == AUTO and getattr(options, name) is not None:
            flag = name.replace("_", "-")
            raise UserError(f"--{flag} goes with a number of --components, not with auto")


def _tempered(components: "ComponentModel", options: "ModelOptions") -> "TemperedMixture":
    """Return the kernel; α is shared by the components, and by default the kernel's."""
    from numpyro_rankings.infer import TemperedMixture

    number, alpha = options.components, options.alpha
    assert number is not None and not isinstance(alpha, tuple | str)
    return TemperedMixture(
        components,
        number,
        None if alpha is None else alpha / number,
        effective_size=options.effective_size,
    )


def _by_stage(numbers: Sequence[float]) -> Any:
    import jax.numpy as jnp

    return numbers[0] if len(numbers) == 1 else jnp.array(numbers)


def _positive_list(name: str, text: str) -> tuple[float, ...]:
    return tuple(positive(name, part) for part in text.split(","))


def _parse_sigma(text: str) -> float:
    # Imported only when the option is given, because this loads JAX.
    from numpyro_rankings.infer.plackett_luce.gamma_process import LEAST_SIGMA

    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (number == 0 or LEAST_SIGMA <= number < 1):
        raise UserError(
            f"--sigma must be 0, or a number from {LEAST_SIGMA} to less than 1, got {text!r}"
        )
    return number


def _parse_components(text: str) -> int:
    names = {"dp": PROCESS, "auto": AUTO}
    number = names.get(text.lower())
    return count(1, MOST_CLUSTERS)("--components", text) if number is None else number


@dataclass(frozen=True)
class ModelOptions:
    """The model of rankings and its sampler; what it does not have is None, or false.

    Of a Dirichlet process, the number of components is None. Where it is ``AUTO``, it is replaced
    by the one that is chosen before there is a kernel.
    """

    model: str = option(
        "; ".join(f"{model.name}: {model.about}" for model in MODELS.values())
        + f" (default: {DEFAULT_MODEL})",
        choices=MODELS,
        default=DEFAULT_MODEL,
        group="model",
    )
    components: int | None = option(
        "mallows, plackett-luce: dp for a Dirichlet process, which infers the number of clusters, "
        "or the number K of components, 1 for a single population; auto: fit 1, 2, … components "
        "by --sampler tempered, and report the number that lasts (default: dp for mallows, but "
        f"auto of more than {MOST_DIFFERENT} different rankings of up to {MOST_ITEMS} items, or "
        f"more than {MOST_OWN} of fewer than twice as many judges, if no option of the model or "
        f"the sampler, nor --blocs, --draws, --warmup or less than --minutes {LEAST_MINUTES}, is "
        "given; 1 for plackett-luce; for a Dirichlet process of Plackett–Luce models, use --model "
        "dp-plackett-luce)",
        "dp|auto|K",
        type=_parse_components,
    )
    alpha: Scale = option(
        "mallows, plackett-luce: concentration of the prior of the partition, larger for more "
        "clusters. gamma-process, dp-plackett-luce: concentration of the pool, larger for more "
        'items. A number, or a prior "gamma(shape,rate)" to learn it; for the pool also flat, the '
        "prior 1/x (default: 1; for the pool gamma(1,0.1))",
        "A",
        scale,
    )
    nu: tuple[float, ...] = option(
        "mallows: weight of the prior of θ, as a number of rankings; one number, or one for each "
        "stage, separated by commas (default: 1)",
        "NU",
        _positive_list,
    )
    r: tuple[float, ...] = option(
        "mallows: prior of θ, given as the mean number of better items that a choice skips; one "
        "number, or one for each stage (default: 1)",
        "R",
        _positive_list,
    )
    shape: float | None = option(
        "plackett-luce: the prior of the weights is Dirichlet(A) (default: 1); with --worths-by, "
        "the residuals of the weights are Gamma(A) (default: A is learned)",
        "A",
        positive,
    )
    worths_by: str | None = option(
        "plackett-luce: a table whose first column names the items, and whose other columns are "
        "covariates of them, such as price and brand: the weights depend on these, and their "
        "effects are written to item_effects.csv (--items is for the names of the items)",
        "TABLE",
    )
    sigma: float | None = option(
        "gamma-process: index of the generalised gamma process, from 0 to less than 1 (default: 0)",
        "S",
        type=_parse_sigma,
    )
    phi: Scale | None = option(
        "dp-plackett-luce: similarity of the clusters; given like --alpha, but flat makes the "
        "posterior improper (default: gamma(1,0.01))",
        "F",
        scale,
    )
    gamma: Scale | None = option(
        "dp-plackett-luce: concentration of the Dirichlet process, larger for more clusters; "
        "given like --alpha, but flat makes the posterior improper (default: gamma(1,1))",
        "G",
        scale,
    )
    sampler: str | None = option(
        "mallows: slice or beta; plackett-luce: gibbs; both, with --components K or auto: "
        "tempered, whose answer depends less on the start (default: slice, or gibbs; with "
        "--components auto tempered)",
        choices=["slice", "beta", "gibbs", TEMPERED],
        group="sampler",
    )
    effective_size: float | None = option(
        "with --sampler tempered: the posterior as if there were only N rankings, for data that "
        "the model fits only roughly (default: all that there are)",
        "N",
        positive,
    )
    approximate: bool | None = option(
        "with --sampler beta: use the paper's approximation of the label probabilities",
        action="store_true",
    )
    assignment: str | None = option(
        "with --sampler slice: update all labels at once, or one by one (default: parallel)",
        choices=["parallel", "sequential"],
    )
    init: str | None = option(
        "mallows: where the chains start. search: near a good mode with K components; nearest: at "
        "clusters around 20 random rankings; random: anywhere (default: search with --components "
        "K, unless there are too many items for it; otherwise nearest)",
        choices=["search", "nearest", "random"],
    )
    max_clusters: int | None = option(
        "largest number of clusters of the Dirichlet process, including those that a sweep "
        "proposes and does not keep, which can be several times as many (default: "
        f"{MAX_CLUSTERS}); with --components auto: largest number of components (default: "
        f"{MOST_TRIED})",
        "C",
        count(1, MOST_CLUSTERS),
    )
