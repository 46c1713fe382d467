"""Diagnostics of a run: R-hat and ESS of quantities that do not depend on labels, and a verdict."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpyro.infer import MCMC

from numpyro_rankings.posterior.boosted_trees import class_probabilities
from numpyro_rankings.posterior.convergence import blocks, convergence, r_hats
from numpyro_rankings.posterior.partitions import evenly
from numpyro_rankings.words import (
    LABEL_FREE_QUANTITIES,
    listed,
    plural,
    quantity_name,
    with_article,
)

if TYPE_CHECKING:
    import pandas as pd

# Functions import pandas, which takes long to load and is not always needed.

R_HAT_GOOD, R_HAT_BAD = 1.01, 1.05
R_HAT_APART = 1.2  # above which it cannot be said when the chains will agree
ESS_GOOD, ESS_BAD = 400, 100
# attributes of the posterior
STACKING_WEIGHTS, NUM_COMPONENTS = "stacking_weights", "num_components"
CHANGES = "changes"  # of a run that was resumed without a check
_LEAST_WEIGHT = 0.005  # that is shown
OVERFLOW_BAD = 0.01  # share of the draws; a few draws that lack a slot do not change the results
_DIVERGING_BAD, _MAX_DEPTH_CARE = 0.01, 0.01  # shares of the draws
_ENERGY_FRACTION_CARE = 0.3  # Betancourt's
_SITES_NAMED = 3
_LEARN_FROM, LEAST_R_STAR = 0.7, 20  # share of the draws, and their number in a chain
_COLUMNS = "mean", "sd", "ess_bulk", "ess_tail", "r_hat"


def as_dataset(group: Any) -> Any:
    """Return the Dataset of a group, which is the Dataset in ArviZ 0.23 and a DataTree in 1.x."""
    return group.to_dataset() if hasattr(group, "to_dataset") else group


def posterior_of(data: Any) -> Any:
    """Return the posterior group of ArviZ data, an :class:`xarray.Dataset`; refuse other data."""
    # InferenceData, DataTree, or a dictionary of groups
    if isinstance(data, MCMC) or not hasattr(data, "__contains__") or "posterior" not in data:
        raise TypeError(
            f"data must be what to_inference_data(mcmc, …) returns, got {type(data).__name__}"
        )
    return as_dataset(data["posterior"])


def diagnostics_table(data: Any) -> "pd.DataFrame":
    """Tabulate mean, standard deviation, ESS and R-hat of the quantities that have no labels.

    :param data: the result of :func:`to_inference_data`, also if read back from netCDF.
    :return: a row for each scalar, with the columns ``mean``, ``sd``, ``ess_bulk``, ``ess_tail``,
        ``r_hat`` and ``note``. R-hat and ESS are NaN where they are not defined, and ``note``
        gives the reason: ``"constant"`` if all draws are equal, ``"stuck"`` if no chain moves but
        the chains differ (R-hat is then infinite), or ``"one chain"``.
    :raises TypeError: if ``data`` is anything else, such as the MCMC itself.
    """
    return table_of_scalars(_label_free_scalars(posterior_of(data)))


def _label_free_scalars(posterior: Any) -> dict[str, np.ndarray]:
    scalars: dict[str, np.ndarray] = {}
    for name in LABEL_FREE_QUANTITIES:
        if name not in posterior or "cluster" in posterior[name].dims:
            continue  # one value per cluster depends on the labels
        labels = posterior["top_item"].values if name == "top_weights" else None
        scalars |= scalars_of(name, np.asarray(posterior[name], np.float64), labels)
    return scalars


def scalars_of(
    name: str, values: np.ndarray, labels: Sequence[Any] | None = None
) -> dict[str, np.ndarray]:
    """Return the entries of a quantity, each (chains, draws), as ``name`` or ``name[1]``, ….

    The entries can have labels instead of their numbers from 1.
    """
    if values.ndim == 2:
        return {name: values}
    if labels is not None:
        return {f"{name}[{label}]": values[..., i] for i, label in enumerate(labels)}
    places = list(np.ndindex(values.shape[2:]))
    return {
        f"{name}[{','.join(str(k + 1) for k in place)}]": values[(..., *place)] for place in places
    }


def table_of_scalars(
    scalars: Mapping[str, np.ndarray], superchains: int | None = None
) -> "pd.DataFrame":
    """Tabulate the diagnostics of scalars, each (chains, draws), as :func:`diagnostics_table`.

    With **superchains**, groups of successive chains with one start, R-hat is nested R-hat.
    """
    import pandas as pd

    parts = [_diagnose(x, superchains) for x in blocks(list(scalars.values()))]
    columns = dict(zip(_COLUMNS, np.concatenate([x for x, _ in parts]).T, strict=True))
    notes = np.concatenate([notes for _, notes in parts])
    index = pd.Index(list(scalars), name="quantity")
    return pd.DataFrame({**columns, "note": notes}, index=index)


def largest_of(scalars: Mapping[str, np.ndarray], superchains: int | None, limit: float) -> float:
    """Return the largest R-hat of :func:`table_of_scalars`, or the first above a limit."""
    largest = np.nan
    for x in blocks(list(scalars.values())):
        notes = _notes(x)
        if (notes == "one chain").any():
            return np.nan
        if (notes == "stuck").any():
            return np.inf
        if (moving := notes == "").any():
            r_hat = float(r_hats(x[moving], superchains).max())
            largest = r_hat if np.isnan(largest) else max(largest, r_hat)
            if not r_hat <= limit:
                return r_hat
    return largest


def _notes(x: np.ndarray) -> np.ndarray:
    """Return the notes of quantities, (quantities, chains, draws)."""
    low, high = x.min(2), x.max(2)
    with np.errstate(invalid="ignore"):  # what is not finite is not constant
        is_still = (high - low == 0).all(1)
        is_constant = is_still & (high.max(1) - low.min(1) == 0)
    notes = np.where(is_constant, "constant", np.where(is_still, "stuck", ""))
    return np.where((notes == "") & (x.shape[1] == 1), "one chain", notes).astype(object)


def _diagnose(x: np.ndarray, superchains: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the table, and the notes, of quantities (quantities, chains, draws)."""
    notes = _notes(x)
    # R-hat is not defined for a single chain, and neither R-hat nor ESS where nothing moves
    moving = (notes != "constant") & (notes != "stuck")
    found = np.full((len(x), 3), np.nan)
    found[moving] = convergence(x[moving], superchains)
    found[notes == "stuck", 2] = np.inf
    with np.errstate(invalid="ignore"):
        about = [x.mean((1, 2)), x.reshape(len(x), -1).std(1, ddof=1)]
    return np.column_stack([*about, found]), notes


class RStar(NamedTuple):
    """R* of some chains.

    :param value: number of chains times the share of draws of which the classifier tells the chain.
    :param draws: of R*, by the probabilities that it gives to each chain: their spread is the
        uncertainty.
    """

    value: float
    draws: np.ndarray

    def interval(self, probability: float = 0.9) -> tuple[float, float]:
        """Return the central interval of R*."""
        low, high = np.quantile(self.draws, [(1 - probability) / 2, (1 + probability) / 2])
        return float(low), float(high)


def r_star(
    data: Any, *, split: bool = True, max_draws: int = 1000, num_draws: int = 1000, seed: int = 0
) -> RStar:
    """Return R*: whether a classifier can tell of which chain a draw is.

    R-hat looks at one quantity at a time. R* looks at all of them together, and is above 1 also
    where each of them agrees, but not, say, their correlation. Gradient-boosted trees learn from
    70% of the draws, and are tried on the others. If chains cannot be told apart, R* is about 1; if
    they can in all draws, it is their number. Successive draws that are alike raise it: thin them
    to about their ESS.

    **References:** Lambert and Vehtari, "R*: A robust MCMC convergence diagnostic with uncertainty
    using decision tree classifiers", Bayesian Analysis (2022), Algorithms 1 and 2.

    :param data: the result of :func:`to_inference_data`, of which the quantities that have no
        labels are taken, or arrays (chains, draws, …) by name, such as
        ``run.get_samples(group_by_chain=True)``.
    :param split: whether the halves of a chain count as two, so that a drift is seen too.
    :param max_draws: of each chain: if there are more, as many are taken, evenly spaced.
    :param num_draws: number of draws of R* for its uncertainty.
    :param seed: of the random numbers.
    :raises ValueError: if a draw is not finite, there are fewer than 20 of each chain, nothing
        moves, or there is a single chain that is not split.
    :raises TypeError: if ``data`` is anything else.
    """
    if max_draws < LEAST_R_STAR or num_draws < 1:
        raise ValueError(f"max_draws must be at least {LEAST_R_STAR}, and num_draws positive")
    scalars: dict[str, np.ndarray] = {}
    if isinstance(data, Mapping) and "posterior" not in data:
        arrays = {str(name): np.asarray(x, np.float64) for name, x in data.items()}
        shapes = {name: x.shape for name, x in arrays.items()}
        if len({x[:2] for x in shapes.values()}) > 1 or any(len(x) < 2 for x in shapes.values()):
            shown = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise ValueError(
                "R* needs arrays (chains, draws, …), as get_samples(group_by_chain=True) returns "
                f"them, got {shown}"
            )
        for name, x in arrays.items():
            scalars |= scalars_of(name, x)
    else:
        scalars = _label_free_scalars(posterior_of(data))
    moving = {name: x for name, x in scalars.items() if np.ptp(x) != 0}
    if not moving:
        raise ValueError("all quantities are constant, so that chains cannot be told apart")
    for name, x in moving.items():
        if not np.isfinite(x).all():
            raise ValueError(f"some draws of {name} are NaN or infinite")
    draws = np.stack(list(moving.values()), axis=2)  # (chains, draws, quantities)
    draws = draws[:, evenly(draws.shape[1], max_draws)]
    if draws.shape[1] < LEAST_R_STAR:
        got = f"got {draws.shape[1]} of {plural(len(draws), 'chain')}"
        if len(draws) > draws.shape[1]:
            got += "; are they by chain, as get_samples(group_by_chain=True) returns them?"
        raise ValueError(f"R* needs at least {LEAST_R_STAR} draws of each chain, {got}")
    if split:
        half = draws.shape[1] // 2
        draws = np.concatenate([draws[:, :half], draws[:, -half:]])
    if len(draws) < 2:
        raise ValueError("R* needs at least two chains: use split=True for one")
    return _r_star(draws, num_draws, np.random.default_rng(seed))


def _r_star(draws: np.ndarray, num_draws: int, rng: np.random.Generator) -> RStar:
    chains = np.repeat(np.arange(len(draws)), draws.shape[1])
    points = draws.reshape(len(chains), -1)
    order = rng.permutation(len(chains))
    learn, test = np.split(order, [int(_LEARN_FROM * len(chains))])
    probabilities = class_probabilities(points[learn], chains[learn], points[test], rng)
    is_right = probabilities.argmax(1) == chains[test]
    of_own_chain = probabilities[np.arange(len(test)), chains[test]]
    shares = np.array([(rng.random(len(test)) < of_own_chain).mean() for _ in range(num_draws)])
    return RStar(float(len(draws) * is_right.mean()), len(draws) * shares)


class Verdict(NamedTuple):
    """A judgment whether a run can be trusted.

    :param level: ``"good"``, ``"care"`` or ``"bad"``.
    :param headline: one sentence.
    :param reasons: the reasons for it, one sentence each; the worst first.
    """

    level: Literal["good", "care", "bad"]
    headline: str
    reasons: list[str]


class RunFacts(NamedTuple):
    """What a verdict needs besides the diagnostics.

    - **overflow** - share of the draws that needed more slots than there were, None without slots.
    - **stacking_weights** - of the chains, if they were stacked because they disagree.
    - **diverging**, **max_depth** - shares of the draws from divergent transitions of HMC or NUTS,
      and from trees of NUTS of the largest depth.
    - **energy_fractions** - of each chain, the energy Bayesian fraction of missing information.
    - **still** - for each continuous site that some chains never change, these chains, from 0.
    """

    num_chains: int
    overflow: float | None
    stacking_weights: Sequence[float] | None = None
    diverging: float | None = None
    max_depth: float | None = None
    energy_fractions: Sequence[float] = ()
    still: Mapping[str, Sequence[int]] = {}


def verdict(data: Any, table: "pd.DataFrame | None" = None) -> Verdict:
    """Judge a run by its R-hat, ESS, overflow and divergent transitions.

    :param data: the result of :func:`~numpyro_rankings.to_inference_data`.
    :param table: the :func:`~numpyro_rankings.diagnostics_table` of ``data``, if already computed.
    """
    table = diagnostics_table(data) if table is None else table
    posterior, stats = data["posterior"], data["sample_stats"]

    def share(event: str) -> float | None:
        return float(np.mean(stats[event])) if event in stats else None

    attributes = as_dataset(posterior).attrs
    weights = attributes.get(STACKING_WEIGHTS)
    facts = RunFacts(posterior.sizes["chain"], share("overflow"), weights, share("diverging"))
    changes = attributes.get(CHANGES, ())  # of which a file has a single one without a list
    return with_care(judge(table, facts), [changes] if isinstance(changes, str) else [*changes])


def judge(table: "pd.DataFrame", facts: RunFacts) -> Verdict:
    """Judge a run by its table of diagnostics and its facts."""
    moving = table[table["note"] != "constant"]
    reasons = _judge_overflow(facts.overflow or 0.0) + _judge_still(facts)
    reasons += _judge_transitions(facts)
    undefined = moving[moving["mean"].isna() | ((moving["note"] == "") & moving["r_hat"].isna())]
    if len(undefined):
        names = ", ".join(quantity_name(str(name)) for name in undefined.index)
        text = f"Some draws are NaN or infinite, or their R-hat is not defined: {names}."
        reasons.append(("bad", text))
        moving = moving.drop(undefined.index)
    if len(moving) or not facts.still:
        reasons += _judge_agreement(moving, facts.num_chains)
    if facts.stacking_weights is not None:
        reasons.append(("bad", _describe_stacking(facts.stacking_weights)))
    reasons += _judge_ess(moving, bool(moving["r_hat"].max() > R_HAT_APART))
    by_level = {
        level: [text for its_level, text in reasons if its_level == level]
        for level in ("bad", "care", "good")
    }
    sentences = [text for texts in by_level.values() for text in texts]
    if by_level["bad"]:
        apart = len(moving) and moving["r_hat"].max() > R_HAT_APART
        headline = "The chains do not agree." if apart else "Do not rely on this run yet."
        return Verdict("bad", headline, sentences)
    if by_level["care"]:
        return Verdict("care", _CARE, sentences)
    return Verdict("good", "The chains agree.", sentences)


def with_care(judged: Verdict, reasons: Sequence[str]) -> Verdict:
    """Return a verdict with further reasons for care, if there are any."""
    if not reasons:
        return judged
    if judged.level == "good":
        return Verdict("care", _CARE, [*reasons, *judged.reasons])
    return judged._replace(reasons=[*judged.reasons, *reasons])


_CARE = "Usable with care."
_Reason = tuple[Literal["good", "care", "bad"], str]


def _judge_overflow(share: float) -> list[_Reason]:
    if share == 0:
        return []
    text = (
        f"{_percent(share)} of the draws needed more clusters than max_clusters allows: raise it "
        "and run again."
    )
    return [("bad" if share > OVERFLOW_BAD else "care", text)]


def _judge_still(facts: RunFacts) -> list[_Reason]:
    if not facts.still:
        return []
    chains = sorted({chain + 1 for of_site in facts.still.values() for chain in of_site})
    names = [quantity_name(name) for name in facts.still]
    if len(names) > _SITES_NAMED:
        names = [*names[:_SITES_NAMED], f"{len(names) - _SITES_NAMED} further sites"]
    they = "Chain {} does" if len(chains) == 1 else "Chains {} do"
    text = (
        f"{they.format(listed(list(map(str, chains))))} not move: all draws of {listed(names)} "
        "are equal within a chain. Start elsewhere, or use another kernel."
    )
    return [("bad", text)]


def _judge_transitions(facts: RunFacts) -> list[_Reason]:
    """Judge what HMC and NUTS tell of their transitions."""
    reasons: list[_Reason] = []
    if facts.diverging:
        text = (
            f"{_percent(facts.diverging)} of the draws come from divergent transitions, so a part "
            "of the posterior may be missing: raise target_accept_prob, or reparametrize the model."
        )
        reasons.append(("bad" if facts.diverging > _DIVERGING_BAD else "care", text))
    if facts.max_depth:
        text = (
            f"{_percent(facts.max_depth)} of the draws come from trajectories that ended at the "
            "maximum tree depth: raise max_tree_depth, or reparametrize the model."
        )
        reasons.append(("care" if facts.max_depth > _MAX_DEPTH_CARE else "good", text))
    low = {i: x for i, x in enumerate(facts.energy_fractions, 1) if x < _ENERGY_FRACTION_CARE}
    if low:
        chains = ("chain " if len(low) == 1 else "chains ") + listed(list(map(str, low)))
        text = (
            f"The energy changes little from draw to draw in {chains} (E-BFMI "
            f"{min(low.values()):.2f}, less than {_ENERGY_FRACTION_CARE:g}), so the tails may be "
            "missing: reparametrize the model."
        )
        reasons.append(("care", text))
    return reasons


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= 0.001 else "Less than 0.1%"


_MAY_STAY = ", and may stay there however long they run."


def _judge_agreement(moving: "pd.DataFrame", num_chains: int) -> list[_Reason]:
    if num_chains < 2:
        text = "The agreement of chains cannot be checked with one chain: run at least two."
        return [("care", text)]
    if len(moving) == 0:
        text = f"All monitored quantities are constant, and equal in all {num_chains} chains."
        return [("good", text)]
    worst, r_hat = moving["r_hat"].idxmax(), moving["r_hat"].max()
    name = with_article(quantity_name(str(worst)))
    if r_hat > R_HAT_BAD:
        text = (
            f"The {num_chains} chains do not agree on {name} (R-hat {r_hat:.2f}): they are in "
            f"different places{_MAY_STAY if r_hat > R_HAT_APART else '. Run them longer.'}"
        )
        return [("bad", text)]
    if r_hat > R_HAT_GOOD:
        text = (
            f"The {num_chains} chains nearly agree: R-hat is at most {r_hat:.3f}, largest for "
            f"{name}."
        )
        return [("care", text)]
    return [("good", f"The {num_chains} chains agree: R-hat is at most {r_hat:.3f}.")]


def _describe_stacking(weights: Sequence[float]) -> str:
    """Say which chains are described."""
    held = [f"chain {k} ({w:.0%})" for k, w in enumerate(weights, 1) if w >= _LEAST_WEIGHT]
    return (
        f"The groups described here are those of {listed(held)}: with these weights (stacking) "
        "the chains together predict best the rankings that they have not seen. The weights say "
        "how well chains predict, not how probable their groups are."
    )


def allows_intervals(table: "pd.DataFrame") -> bool:
    """Return whether the ESS suffices for intervals; otherwise page and screen have none."""
    return not _least_ess(table[table["note"] != "constant"]).min() < ESS_BAD  # or NaN


def _least_ess(moving: "pd.DataFrame") -> "pd.Series":
    """Return the smaller ESS of each quantity."""
    return moving[["ess_bulk", "ess_tail"]].min(axis=1)


def _judge_ess(moving: "pd.DataFrame", is_apart: bool) -> list[_Reason]:
    """Judge the least ESS; more draws need not help chains that are in different places."""
    smallest = _least_ess(moving)
    if not smallest.notna().any():
        return []
    ess, name = smallest.min(), with_article(quantity_name(str(smallest.idxmin())))
    text = f"The effective sample size (ESS) is at least {ess:,.0f}, smallest for {name}"
    if ess < ESS_BAD:
        return [("bad", f"{text}: too small for intervals.{'' if is_apart else ' Run longer.'}")]
    if ess < ESS_GOOD:
        return [("care", f"{text}: enough for means, but small for intervals.")]
    return [("good", f"{text}.")]
