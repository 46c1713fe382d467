"""What an answer is about: the draws, their clusters and their diagnostics, computed once.

Screen, page and tables take the same :class:`Findings`, wherever the draws come from.
"""

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import jax
import numpy as np
from numpyro.infer import MCMC

from numpyro_rankings.families import RankingFamily
from numpyro_rankings.families.base import interval_of
from numpyro_rankings.ops.mistakes import MISTAKE
from numpyro_rankings.posterior import (
    Blocs,
    cluster_profiles,
    find_blocs,
    holds,
    membership_probability,
    partition_profiles,
    predictive_checks,
)
from numpyro_rankings.posterior.bloc_orders import TooManyOrderingsError
from numpyro_rankings.posterior.blocs import MOST_WORK, NoBlocsError, search_work
from numpyro_rankings.posterior.calibration import PosteriorSBC
from numpyro_rankings.posterior.diagnostics import (
    LEAST_R_STAR,
    NUM_COMPONENTS,
    R_HAT_BAD,
    STACKING_WEIGHTS,
    RStar,
    Verdict,
    allows_intervals,
    as_dataset,
    diagnostics_table,
    posterior_of,
    r_star,
    verdict,
)
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.item_effects import ItemEffects
from numpyro_rankings.posterior.partitions import evenly
from numpyro_rankings.posterior.point_estimates import ReferencePartition, reference_partition
from numpyro_rankings.posterior.predictive_checks import PredictiveChecks
from numpyro_rankings.posterior.slates import Slates
from numpyro_rankings.posterior.slates_by import SlatesBy
from numpyro_rankings.posterior.stacking import posterior_by_weight, stack_fitted_chains
from numpyro_rankings.predict import SharesBy
from numpyro_rankings.rankings import (
    Comparisons,
    Orders,
    PartialOrders,
    Rankings,
    RankingsError,
    WeightedRankings,
    check_rows,
)
from numpyro_rankings.rankings.counts import sets_apart, ties_in_words
from numpyro_rankings.rankings.weights import weights_in_words
from numpyro_rankings.words import interval, percent

if TYPE_CHECKING:
    import pandas as pd

# Functions import pandas, Jinja and xarray, which take long to load and are not always needed.

# Predictive checks: draws that are replicated, the fewest of them, and entries of their tables of
# pairs. With more items there are none.
_CHECK_DRAWS, _CHECK_DRAWS_LEAST, _CHECK_ENTRIES = 50, 10, 2**26
BEGUN_WITH = "begun with"  # its name in the details of a run that was resumed
JUDGES = "judges"  # and that of how many were fitted, if a sample was
_LITTLE_GAIN = 0.1  # nats a ranking that all groups gain over one population
FEW_GROUPS = 4  # so many are read one by one; of more, blocs are the coarse view
_TOO_MUCH_WORK = (
    "Blocs, the coarse view of many groups, take minutes to find in so large a table: ask for them "
    "by --blocs, or in Python by find_blocs."
)
_LEFT_OUT = (
    "Predictive checks and blocs are left out: they are not computed where comparisons may be "
    "mistakes."
)
_MEMBERSHIP_DRAWS = 1000  # they suffice for the probabilities of membership of rankings


class Findings(NamedTuple):
    """What a report is about.

    - **data** - the draws, with the groups posterior and sample_stats; of chains that disagree the
      posterior has their weights as an attribute.
    - **described** - the draws that are described: of chains that disagree, those that the weights
      of the chains choose.
    - **profiles** - a profile of each cluster: those that hold, then the others, each the largest
      first. Their numbers on the screen, on the page and in the tables are their places here.
    - **total** - number of all rankings or points.
    - **reference** - the partition whose clusters they are; None for a single population.
    - **membership** - (N,), how often each ranking or point is with the others of its cluster; None
      for a single population, or if it is not known.
    - **table** - the diagnostics.
    - **verdict** - whether the run can be trusted.
    - **r_star** - of the quantities in the table together; None of a single chain or of few draws.
    - **checks** - predictive checks, None if there are none.
    - **details** - how the run was made, by name.
    - **blocs** - the coarse view of the draws of all chains, whatever the weights of these; None if
      there are few groups.
    - **no_blocs** - why there are none although there are many groups; else nothing.
    - **path** - of :func:`~numpyro_rankings.group_path`, by which the number of groups was chosen;
      None if it was not.
    - **apart** - sets of items of which no ranking compares any with an item of another, by name.
    - **ties** - how many judges tie items, in words; nothing of rankings.
    - **mistakes** - of comparisons that may be mistakes, the draws of the probability that one is,
      (D,); else None.
    - **weights** - (N,) survey weights of the judges in the order of the labels; None without. The
      sizes of the profiles are then those in the population, and there are neither checks nor
      blocs.
    - **weighting** - what the weights are worth, in words; nothing without.
    - **slates** - what the groups that hold, or where these come first the blocs, do with slates of
      items; None without slates.
    - **slates_by** - shares of these groups, and of the slates, by what is known of the judges: by
      column.
    - **shares_by** - the shares of the groups that hold at values of covariates; None without any.
    - **item_effects** - what covariates of the items do to their weights; None without any.
    - **calibration** - whether the kernel recovers what the fit simulates; None if not asked for.
    """

    data: Any
    described: Any
    profiles: Sequence[Any]
    total: int
    reference: ReferencePartition | None
    membership: np.ndarray | None
    table: "pd.DataFrame"
    verdict: Verdict
    checks: PredictiveChecks | None
    details: Mapping[str, str]
    blocs: Blocs | None = None
    no_blocs: str = ""
    path: Any = None
    apart: Sequence[Sequence[str]] = ()
    ties: str = ""
    mistakes: np.ndarray | None = None
    weights: np.ndarray | None = None
    weighting: str = ""
    slates: Slates | None = None
    slates_by: Mapping[str, SlatesBy] | None = None
    shares_by: SharesBy | None = None
    item_effects: ItemEffects | None = None
    calibration: PosteriorSBC | None = None
    r_star: RStar | None = None

    @property
    def family(self) -> RankingFamily | None:
        """The likelihood of the rankings; None of points."""
        return self.profiles[0].family

    @property
    def noun(self) -> str:
        """What is grouped: ``ranking`` or ``point``."""
        return self.profiles[0].noun

    @property
    def has_weights(self) -> bool:
        """Whether the items have weights, as in a Plackett–Luce model."""
        return self.family is not None and "weights" in self.family.sections

    @property
    def chains_disagree(self) -> bool:
        """Whether the chains are in different places, so that their groups are others."""
        return _do_chains_disagree(self.table)

    @property
    def with_intervals(self) -> bool:
        """Whether the draws suffice for intervals of sizes and parameters of groups and blocs."""
        return allows_intervals(self.table)

    def interval_in_words(self, sizes: Sequence[float]) -> list[str]:
        """Return the interval of a size as shares, for a table; nothing if there are none."""
        return [interval(sizes, self.total)] if self.with_intervals else []

    @property
    def blocs_first(self) -> bool:
        """Whether blocs are what to read first.

        They are if there are more than 4 groups, those that come and go included, or if the chains
        disagree.
        """
        return self.blocs is not None and (len(self.profiles) > FEW_GROUPS or self.chains_disagree)

    @property
    def held(self) -> list[Any]:
        """The profiles of the clusters that hold, which are the first ones."""
        return [p for p in self.profiles if holds(p)]

    @property
    def passing(self) -> list[Any]:
        """The profiles of the clusters that come and go from draw to draw."""
        return [p for p in self.profiles if not holds(p)]

    @property
    def left(self) -> float:
        """The share of the rankings or points that belong to no cluster that holds.

        In draw d, n_dk of the N rankings are in the cluster that is matched to cluster k, 0 if none
        is. A ranking is in one cluster of the draw, and a cluster of the draw is matched to at most
        one of the profiles, so that Σ_k n_dk ≤ N over any of them, such as those that hold. The
        share of the others is 1 - Σ_k n_dk / N in the draw, and its mean over all draws is
        1 - Σ_k E[n_dk] / N, where E[n_dk] counts the zeros. The means over the draws that have a
        match, E[n_dk | n_dk > 0], add up to more.
        """
        return max(0.0, 1 - sum(p.mean_size for p in self.held) / self.total)

    @property
    def num_components(self) -> int | None:
        """The number of clusters that was asked for, None if it is a part of the posterior."""
        return _num_components(posterior_of(self.described))

    @property
    def mistakes_in_words(self) -> str:
        """How many comparisons are mistakes, and what is left out for it; nothing without them."""
        if self.mistakes is None:
            return ""
        low, high = map(percent, interval_of(self.mistakes))
        bounds = f" (90% interval {low}–{high})" if self.with_intervals else ""
        return (
            f"About {percent(self.mistakes.mean())} of the comparisons go against the judge's own "
            f"order{bounds}, and count as mistakes. {_LEFT_OUT}"
        )

    def together(self, profile: Any) -> float | None:
        """Return :meth:`cohesion`, which it is called now."""
        warnings.warn("Findings.together is now cohesion", DeprecationWarning, stacklevel=2)
        return self.cohesion(profile)

    def cohesion(self, profile: Any) -> float | None:
        """How often two members of a cluster are in one cluster: how surely they belong to it."""
        if self.membership is None:
            return None
        return float(self.membership[profile.members].mean())


def findings_of(
    source: Any,
    rankings: Rankings | Orders | None = None,
    *,
    profiles: Sequence[Any] | None = None,
    reference: Any = None,
    checks: PredictiveChecks | Literal["auto"] | None = "auto",
    details: Mapping[str, str] | None = None,
    blocs: Blocs | int | Literal["auto"] | None = "auto",
) -> Findings:
    """Find what a report is about.

    :param source: the result of :func:`~numpyro_rankings.to_inference_data`, with the assignments;
        an :class:`~numpyro.infer.MCMC` after its run; or a :class:`~numpyro_rankings.Run`.
    :param rankings: the rankings, partial orders or comparisons that were fitted; None for points.
        Of comparisons there are neither checks nor blocs.
    :param profiles: of the clusters, if already computed.
    :param reference: the partition that they describe: labels, or the result of
        :func:`~numpyro_rankings.reference_partition`. By default it is computed.
    :param checks: predictive checks. By default they are computed, unless there are too many items;
        points have none.
    :param details: how the run was made, by name.
    :param blocs: those of :func:`~numpyro_rankings.find_blocs`, or how many to find; None for none.
        By default they are found if there are more than 4 groups, or if the chains disagree on an
        unknown number of groups; not for points, not for a mixture of up to 4 components, and not
        where it would take minutes, as with many items.
    :raises ValueError: if there are no assignments, if there are not so many blocs, or if the blocs
        are of other rankings.
    """
    if rankings is not None:
        check_rows(rankings, takes_comparisons=True)
    _check_asked(checks, blocs, rankings)
    data = _as_data(source, rankings)
    _check_labels(posterior_of(data), rankings)
    table = diagnostics_table(data)
    data = _with_weights(data, rankings, table)
    described = posterior_by_weight(posterior_of(data))
    draws = None if rankings is None else Draws.of({"posterior": described}, rankings)
    labels = labels_of_draws(described)
    with ThreadPoolExecutor(1) as beside:  # the checks are mostly compilation, on another core
        checking = beside.submit(_check, checks, draws)
        partition = None if labels is None else reference_partition(labels, reference)
        membership = _membership(labels, partition, rankings)
        if profiles is None and draws is not None:
            profiles = cluster_profiles(draws, draws.given, partition)
        elif profiles is None:
            assert labels is not None
            profiles = partition_profiles(labels, partition)
    findings = Findings(
        data,
        {"posterior": described},
        in_order(profiles),
        described["assignments"].shape[-1] if rankings is None else rankings.num_rankings,
        partition,
        membership,
        table,
        verdict(data, table),
        checking.result(),
        details or {},
        apart=_sets_apart(rankings),
        ties="" if rankings is None else ties_in_words(rankings),
        mistakes=_mistakes(described),
        weights=_weights_of_judges(rankings),
        weighting=_weighting(rankings),
        r_star=_r_star(data, table),
    )
    of_blocs, why_none = _blocs_of(findings, rankings, blocs)
    return findings._replace(blocs=of_blocs, no_blocs=why_none)


def _r_star(data: Any, table: "pd.DataFrame") -> RStar | None:
    """Return R*, of as many draws as are about independent."""
    sizes = posterior_of(data).sizes
    ess = table[["ess_bulk", "ess_tail"]].min(axis=None)  # NaN if nothing moves
    if sizes["chain"] < 2 or np.isnan(ess) or not np.isfinite(table["sd"]).all():
        return None
    independent = int(min(ess / sizes["chain"], sizes["draw"]))
    if independent < LEAST_R_STAR:
        return None
    return r_star(data, max_draws=independent)


def _mistakes(posterior: Any) -> np.ndarray | None:
    """Return the draws of the probability that a comparison is a mistake, (D,), if there is one."""
    probability = posterior.get(MISTAKE)
    return None if probability is None else np.asarray(probability).ravel()


def _weights_of_judges(rankings: Rankings | Orders | None) -> np.ndarray | None:
    """Return the survey weights of the judges, in the order of the labels, if they have any."""
    if rankings is None or rankings.weights is None:
        return None
    return np.asarray(rankings.weights, float)[np.asarray(rankings.row_index)]


def _weighting(rankings: Rankings | Orders | None) -> str:
    """Say what the survey weights are worth, and what is left out for them."""
    if not isinstance(rankings, WeightedRankings):
        return ""
    return (
        f"Weighted, {weights_in_words(rankings)}. Shares, their intervals, and sizes, which are "
        f"shares of {rankings.num_rankings:,}, are those of the weighted population. Predictive "
        "checks and blocs are left out, and all runs have the same weight: these are not computed "
        "with survey weights. The diagnostics of the chains count each judge once."
    )


def _sets_apart(rankings: Rankings | Orders | None) -> Sequence[Sequence[str]]:
    """Return sets of items that are never compared; rankings of all items compare all."""
    if rankings is None:
        return ()
    is_known = not isinstance(rankings, Rankings) or rankings.choice_sets is not None
    return sets_apart(rankings) if is_known else ()


def _check_asked(checks: Any, blocs: Any, rankings: Rankings | Orders | None) -> None:
    """Refuse what is neither a result nor a way to ask for one, and blocs of other rankings."""
    if not (checks is None or isinstance(checks, PredictiveChecks)) and checks != "auto":
        raise ValueError(
            'checks must be "auto", None or what posterior_predictive_checks returns, got '
            f"{checks!r}"
        )
    if isinstance(blocs, str) and blocs != "auto":
        raise ValueError(
            f'blocs must be "auto", None, a number or what find_blocs returns, got {blocs!r}'
        )
    if isinstance(rankings, Comparisons) and isinstance(blocs, int | Blocs):
        check_rows(rankings)
    if isinstance(rankings, Rankings | PartialOrders) and isinstance(blocs, Blocs):
        _check_same_rankings(blocs, rankings)


def _check_same_rankings(blocs: Blocs, rankings: Rankings | PartialOrders) -> None:
    """Refuse blocs of other rankings, as far as their number and the names of items tell."""
    first = blocs.blocs[0]
    fitted = rankings if first.unseen_weight is None else rankings.of_listed_items()
    if len(blocs.labels) != rankings.num_rankings:
        raise ValueError(
            f"the blocs are of {len(blocs.labels):,} rankings; these are {rankings.num_rankings:,}"
        )
    named = dict(zip(first.consensus_ordering.tolist(), first.consensus, strict=True))
    if named != dict(enumerate(map(str, fitted.items))):
        raise ValueError("the blocs are of rankings of other items")


def _blocs_of(
    findings: Findings,
    rankings: Rankings | Orders | None,
    asked: Blocs | int | Literal["auto"] | None,
) -> tuple[Blocs | None, str]:
    """Return the blocs, and why there are none although there are many groups."""
    if rankings is None or asked is None or isinstance(asked, Blocs):
        return asked if isinstance(asked, Blocs) else None, ""
    if isinstance(rankings, Comparisons) or (rankings.weights is not None and asked == "auto"):
        return None, ""
    if not isinstance(asked, str):
        return find_blocs(findings.data, rankings, asked), ""
    if not needs_blocs(findings):
        return None, ""
    try:
        if search_work(posterior_of(findings.data), rankings) > MOST_WORK:
            return None, _TOO_MUCH_WORK
    except TooManyOrderingsError as error:
        text = str(error)
        return None, f"{text[0].upper()}{text[1:]}."
    return blocs_that_help(findings.data, rankings), ""


def needs_blocs(findings: Findings) -> bool:
    """Whether there are so many groups, or such different ones, that blocs are worth their time."""
    number = findings.num_components
    if findings.reference is None or (number is not None and number <= FEW_GROUPS):
        return False
    return len(findings.profiles) > FEW_GROUPS or findings.chains_disagree


def blocs_that_help(draws: Any, rankings: Rankings | PartialOrders) -> Blocs | None:
    """Return the blocs; None if there are none, or if they are no coarse view of the groups."""
    try:
        blocs = find_blocs(draws, rankings)
    except NoBlocsError:
        return None
    # two that keep more than all groups are no coarse view if one population says nearly as much
    gain = blocs.log_density.mean() - blocs.log_density_of_one
    says_little = gain < _LITTLE_GAIN * rankings.num_rankings
    return None if says_little and blocs.levels[1].kept >= 1 else blocs


def _membership(
    labels: np.ndarray | None,
    partition: ReferencePartition | None,
    rankings: Rankings | Orders | None,
) -> np.ndarray | None:
    """Return how often each ranking or point is with the others of its cluster."""
    if labels is None or partition is None:
        return None
    if rankings is not None:
        labels = labels[evenly(len(labels), _MEMBERSHIP_DRAWS)]
    return membership_probability(labels, partition.labels)


def in_order(profiles: Sequence[Any]) -> list[Any]:
    """Return the profiles of the clusters that hold, then the others, else in the same order."""
    return sorted(profiles, key=lambda p: not holds(p))


def _as_data(source: Any, rankings: Rankings | Orders | None) -> Any:
    from numpyro_rankings.posterior.inference_data import to_inference_data

    if isinstance(source, MCMC):
        return to_inference_data(source, rankings, log_likelihood=False)
    if hasattr(source, "to_inference_data"):
        return source.to_inference_data()
    return source


def _check_labels(posterior: Any, rankings: Rankings | Orders | None) -> None:
    """Refuse draws without labels, unless they are of a single population of rankings."""
    if labels_of_draws(posterior) is not None:
        return
    text = "the report needs the labels: "
    if "cluster_sizes" in posterior:
        raise ValueError(f"{text}to_inference_data(include_assignments=True)")
    if rankings is None:
        raise ValueError(f"{text}there are no assignments")


def _do_chains_disagree(table: "pd.DataFrame") -> bool:
    return bool(table["r_hat"].max() > R_HAT_BAD)


def _with_weights(data: Any, rankings: Rankings | Orders | None, table: "pd.DataFrame") -> Any:
    """Return the data with weights of the chains if these disagree and have none yet."""
    posterior = posterior_of(data)
    has_weights = STACKING_WEIGHTS in posterior.attrs
    if rankings is None or has_weights or not _do_chains_disagree(table):
        return data
    if rankings.weights is not None:  # stacking would predict a judge of the sample
        return data
    try:
        weights = stack_fitted_chains(Draws.of({"posterior": posterior}, rankings)).weights
    except RankingsError:  # partial orders, or comparisons, whose likelihood has too many terms
        return data
    posterior = posterior.assign_attrs({STACKING_WEIGHTS: weights})
    return {"posterior": posterior, "sample_stats": as_dataset(data["sample_stats"])}


def _num_components(posterior: Any) -> int | None:
    number = posterior.attrs.get(NUM_COMPONENTS)
    return None if number is None else int(number)


def _check(
    checks: PredictiveChecks | Literal["auto"] | None, draws: Draws | None
) -> PredictiveChecks | None:
    """Return predictive checks of some of the draws; None if there are too many items."""
    if draws is None or isinstance(draws.orders, Comparisons):
        return None
    if checks == "auto" and draws.given.weights is not None:
        return None
    if not isinstance(checks, str):
        return checks
    num_draws = min(_CHECK_DRAWS, _CHECK_ENTRIES // draws.said.num_items**2)
    if num_draws < _CHECK_DRAWS_LEAST:
        return None
    # the key is always the same, so that the same draws give the same page
    key = jax.random.fold_in(jax.random.key(0), 1)
    with contextlib.suppress(RankingsError):  # partial orders of too many items for their pairs
        return predictive_checks.posterior_predictive_checks(key, draws, draws.said, num_draws)
    return None


def labels_of_draws(posterior: Any) -> np.ndarray | None:
    """Return the labels of all chains, (D, N); None for a single population."""
    labels = posterior.get("assignments")
    return None if labels is None else np.asarray(labels).reshape(-1, labels.shape[-1])
