"""Whether a run can be trusted: R-hat and ESS of quantities free of labels, and the verdict."""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpyro.infer import MCMC

from numpyro_rankings.words import quantity_name

if TYPE_CHECKING:
    import pandas as pd

_LABEL_FREE = (
    "num_clusters",
    "log_joint",
    "alpha",
    "decay_scale",
    "partition_entropy",
    "kendall_to_reference",
    "largest_sizes",
    "population_concentration",
    "phi",
    "gamma",
    "unseen_weight",
    "population_entropy",
    "top_weights",
)


def as_dataset(group: Any) -> Any:
    """The dataset of a group: an xarray Dataset in ArviZ 0.23, a DataTree node in 1.x."""
    return group.to_dataset() if hasattr(group, "to_dataset") else group


def posterior_of(data: Any) -> Any:
    """The posterior of what :func:`to_inference_data` returned, an :class:`xarray.Dataset`.

    :raises TypeError: of anything else.
    """
    # InferenceData, DataTree, or a dictionary of groups
    if isinstance(data, MCMC) or not hasattr(data, "__contains__") or "posterior" not in data:
        raise TypeError(
            f"data must be what to_inference_data(mcmc, …) returns, got {type(data).__name__}"
        )
    return as_dataset(data["posterior"])


def diagnostics_table(data: Any) -> "pd.DataFrame":
    """Mean, spread, effective sample size and R-hat of the quantities free of labels.

    :param data: what :func:`to_inference_data` returned, or read back from netCDF.
    :return: a row for each scalar and the columns ``mean``, ``sd``, ``ess_bulk``, ``ess_tail``,
        ``r_hat`` and ``note``. R-hat and ESS are NaN where they are not defined, and ``note``
        says why: ``"constant"`` in all draws, ``"stuck"`` at a different value in each chain
        (R-hat is then infinite), or ``"one chain"``.
    :raises TypeError: of anything else, such as the MCMC itself.
    """
    import arviz as az
    import pandas as pd
    import xarray as xr

    posterior = posterior_of(data)
    scalars: dict[str, np.ndarray] = {}
    for name in _LABEL_FREE:
        if name not in posterior:
            continue
        if "cluster" in posterior[name].dims:
            continue  # of each cluster, and not free of labels
        values = np.asarray(posterior[name], np.float64)
        if values.ndim == 2:
            scalars[name] = values
        else:
            labels = posterior["top_item"].values if name == "top_weights" else None
            labels = range(1, values.shape[-1] + 1) if labels is None else labels
            scalars |= {f"{name}[{k}]": values[..., i] for i, k in enumerate(labels)}
    moving = {name: x for name, x in scalars.items() if np.ptp(x, axis=1).any()}
    # R-hat of a single chain is not defined; and where nothing moves, nothing can be estimated.
    dataset = xr.Dataset({name: (("chain", "draw"), x) for name, x in moving.items()})
    columns: dict[str, Any] = {"ess_bulk": {}, "ess_tail": {}, "r_hat": {}}
    if moving:
        columns["ess_bulk"] = az.ess(dataset, method="bulk")
        columns["ess_tail"] = az.ess(dataset, method="tail")
        if dataset.sizes["chain"] > 1:
            columns["r_hat"] = az.rhat(dataset)
    rows = []
    for name, x in scalars.items():
        row = {key: float(column.get(name, np.nan)) for key, column in columns.items()}
        note = "" if len(x) > 1 else "one chain"
        if np.ptp(x) == 0:
            note = "constant"
        elif name not in moving:
            note, row["r_hat"] = "stuck", np.inf
        rows.append({"mean": x.mean(), "sd": x.std(ddof=1), **row, "note": note})
    return pd.DataFrame(rows, index=pd.Index(list(scalars), name="quantity"))


R_HAT_GOOD, R_HAT_BAD = 1.01, 1.05
ESS_GOOD, ESS_BAD = 400, 100
OVERFLOW_BAD = 0.01


class Verdict(NamedTuple):
    """Whether a fit can be trusted.

    :param level: ``"good"``, ``"care"`` or ``"bad"``.
    :param headline: one sentence.
    :param reasons: what it rests on, a sentence each.
    """

    level: Literal["good", "care", "bad"]
    headline: str
    reasons: list[str]


def verdict(data: Any, table: "pd.DataFrame | None" = None) -> Verdict:
    """Judge a run by R-hat, ESS, overflow and acceptance.

    :param data: what :func:`~numpyro_rankings.to_inference_data` returned.
    :param table: its :func:`~numpyro_rankings.diagnostics_table`, if at hand.
    """
    table = diagnostics_table(data) if table is None else table
    bad: list[str] = []
    care: list[str] = []
    fine: list[str] = []
    stats = data["sample_stats"]
    overflow = float(np.mean(stats["overflow"])) if "overflow" in stats else 0.0
    if overflow > 0:
        (bad if overflow > OVERFLOW_BAD else care).append(
            f"{overflow:.1%} of the draws wanted more clusters than max_clusters allows: "
            "raise it and run again."
        )
    chains = data["posterior"].sizes["chain"]
    moving = table[table["note"] != "constant"]
    unknown = moving[moving["mean"].isna() | ((moving["note"] == "") & moving["r_hat"].isna())]
    if len(unknown):
        names = ", ".join(quantity_name(str(name)) for name in unknown.index)
        bad.append(f"Some draws are no numbers, or cannot be compared: {names}.")
        moving = moving.drop(unknown.index)
    if chains < 2:
        care.append("One chain cannot be checked against another: run at least two.")
    elif len(moving):
        worst, r_hat = moving["r_hat"].idxmax(), moving["r_hat"].max()
        name = quantity_name(str(worst))
        if r_hat > R_HAT_BAD:
            bad.append(
                f"The {chains} chains do not agree on the {name} (R-hat {r_hat:.2f}): they are "
                "in different places, so run them longer or from another start."
            )
        elif r_hat > R_HAT_GOOD:
            care.append(f"The chains nearly agree: R-hat is at most {r_hat:.3f}, for the {name}.")
        else:
            fine.append(f"The {chains} chains agree: R-hat is at most {r_hat:.3f}.")
    else:
        fine.append(f"Nothing that was watched moved: all {chains} chains stayed at one value.")
    if len(moving) and moving[["ess_bulk", "ess_tail"]].notna().any(axis=None):
        smallest = moving[["ess_bulk", "ess_tail"]].min(axis=1)
        ess, name = smallest.min(), quantity_name(str(smallest.idxmin()))
        text = f"The draws are worth at least {ess:.0f} independent ones (ESS, for the {name})"
        if ess < ESS_BAD:
            bad.append(f"{text}: too few for intervals. Run longer.")
        elif ess < ESS_GOOD:
            care.append(f"{text}: enough for means, few for intervals.")
        else:
            fine.append(f"{text}.")
    posterior = data["posterior"]
    if overflow == 0 and "overflow" in stats and "num_clusters" in posterior:
        fine.append("No draw wanted more clusters than there was room for.")
    if "acceptance_rate" in stats and "center" in posterior:  # the others have no such steps
        rate = float(np.mean(stats["acceptance_rate"]))
        if rate < 1:  # else there were none
            fine.append(f"{rate:.0%} of the Metropolis proposals within a sweep were accepted.")
    if bad:
        return Verdict("bad", "Do not rely on this run yet.", bad + care + fine)
    if care:
        return Verdict("care", "Usable with care.", care + fine)
    return Verdict("good", "The chains agree; the posterior can be used.", fine)
