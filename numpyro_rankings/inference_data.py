"""Draws of the kernels to ArviZ, with the quantities that can be diagnosed.

Labels switch and permutations have no mean, so R-hat and ESS of the raw draws say nothing. They
are taken here on quantities that do not depend on the labels.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpyro.infer import MCMC

from numpyro_rankings.diagnostics import as_dataset, diagnostics_table
from numpyro_rankings.infer.base import find_rankings, log_joint_of
from numpyro_rankings.infer.ddcrp.base import LinkGibbs
from numpyro_rankings.infer.not_finite import check_not_stopped
from numpyro_rankings.infer.partition.base import PartitionKernel
from numpyro_rankings.partitions import partition_entropy
from numpyro_rankings.rankings import Rankings, check_rankings
from numpyro_rankings.summaries import borda_ordering, kendall_distance
from numpyro_rankings.summaries.likelihood import pointwise_log_likelihood, pointwise_plackett_luce
from numpyro_rankings.summaries.profiles import normalised_entropy
from numpyro_rankings.summaries.samples import check_fitted, occupied_slots

__all__ = ["diagnostics_table", "save_inference_data", "to_inference_data"]


_SIZES_SHOWN = 5
_WEIGHTS_SHOWN = 5
_AUTO_LOG_LIKELIHOOD = 10_000_000  # float32 values, 40 MB


def to_inference_data(
    mcmc: MCMC,
    rankings: Rankings | None = None,
    log_likelihood: bool | Literal["auto"] = "auto",
    include_assignments: bool = True,
    points: Sequence[Any] | None = None,
) -> Any:
    """Convert a run of a kernel of this package to ArviZ.

    Of the Mallows kernels :class:`~numpyro_rankings.infer.SliceGibbs` and
    :class:`~numpyro_rankings.infer.BetaGibbs`, beside the draws as they are, ``posterior`` has

    - ``rank``, 1 = best, by name of the item: ``center`` the other way round. In slots that are
      empty in a draw ``rank`` is 0, ``center`` -1 and ``concentration`` NaN; slots empty in all
      draws are left out.
    - quantities that do not depend on the labels, for R-hat and ESS: ``num_clusters``,
      ``log_joint``, ``alpha``, ``largest_sizes``, ``partition_entropy``, and
      ``kendall_to_reference``, the mean over the rankings of the Kendall distance between the
      center of their cluster and the Borda order of the data. With ``num_components=1`` also
      ``population_concentration``, the θ of each stage.

    Of the Plackett–Luce kernels it has ``weights`` by name of the item (NaN in components that are
    empty in a draw), ``entropy``, that of the weights over the log of their number, 1 if they are
    equal, and free of labels ``log_joint``, ``alpha``, ``unseen_weight``, ``population_weights``
    (those of the components by their sizes), ``population_entropy``, ``top_weights`` (the largest
    five of the former), and of a mixture ``num_clusters``, ``largest_sizes`` and
    ``partition_entropy``. Of ``DPPlackettLuceGibbs`` there is no log likelihood.

    Of the kernels of partitions (:class:`~numpyro_rankings.infer.CollapsedGibbs`, ``SplitMerge``,
    ``PermutationGibbs``, ``Cycle``, ``DDCRPGibbs``,
    ``DDCRPLanguageGibbs``) it has ``assignments`` and ``links`` by
    ``point``, and free of labels ``num_clusters``, ``log_joint``, ``alpha``, ``decay_scale`` where
    it is learned, ``largest_sizes`` and ``partition_entropy``; there is no log likelihood.

    Of the kernels of rankings ``log_joint`` is in double precision, with what their samples have
    in ``log_joint_rest``: with 10^6 rankings float32 has steps of 8 nats and more.

    ``sample_stats`` has ``lp``, ``acceptance_rate`` (of the Metropolis steps) and ``overflow``.

    ``log_likelihood`` has a column for each ranking, not each distinct row: leaving one out
    leaves the others of its row in. It is the log probability of the ranking given the labels of
    all others, its own summed over, so that :func:`arviz.loo` leaves out what it says. Pass
    ``reff`` to it, the share of effective draws of ``log_joint`` for instance: by default ArviZ
    averages over all variables, and the empty slots make that NaN.

    :param mcmc: after ``mcmc.run(key, rankings)``.
    :param rankings: what was fitted; not with the kernels of partitions, whose draws say all.
    :param log_likelihood: ``"auto"`` computes it if rankings times draws are at most 10^7, and
        else warns that it did not.
    :param include_assignments: whether to keep the labels (and links), by far the largest arrays.
    :param points: of the kernels of partitions, names of the points; by default 0, 1, ….
    :return: an :class:`arviz.InferenceData` (ArviZ 0.23) or :class:`xarray.DataTree` (1.x).
    :raises ValueError: if the rankings or names are not those of the run, there is no log
        likelihood to be had, or a chain has stopped, for its log joint or a site was not finite.
    :raises TypeError: without rankings, of a kernel that needs them, or of what is no MCMC.
    """
    import xarray as xr

    from numpyro_rankings._version import __version__

    if not isinstance(mcmc, MCMC):
        raise TypeError(f"mcmc must be a numpyro.infer.MCMC, got {type(mcmc).__name__}")
    kernel: Any = mcmc.sampler
    samples = mcmc.get_samples(group_by_chain=True)
    check_not_stopped(kernel, samples)
    name = type(kernel).__name__
    values = None
    if isinstance(kernel, PartitionKernel | LinkGibbs):
        if rankings is not None:
            raise ValueError(f"the draws of {name} are not of rankings: to_inference_data(mcmc)")
        if log_likelihood is True:
            raise ValueError(f"there is no log likelihood of {name}: pass False")
        data, posterior = _partition_posterior(mcmc, samples, points)
    elif rankings is None:
        raise TypeError(f"of {name} the rankings are needed: to_inference_data(mcmc, rankings)")
    elif points is not None:
        raise ValueError(f"points are named of kernels of partitions, not of {name}")
    else:
        check_rankings(rankings)
        convert = _plackett_luce_posterior if "weights" in samples else _mallows_posterior
        data, posterior = convert(mcmc, samples, rankings)
        if _wants_log_likelihood(samples, rankings, log_likelihood):
            if "weights" in samples:
                values = pointwise_plackett_luce(samples, rankings)
            else:
                values = pointwise_log_likelihood(samples, rankings, kernel.num_components)
    if "log_joint_rest" in samples:
        posterior["log_joint"] = ("chain", "draw"), log_joint_of(samples)
        posterior = posterior.drop_vars("log_joint_rest")
    if not include_assignments:
        posterior = posterior.drop_vars(["assignments", "links"], errors="ignore")
    about = {"numpyro_rankings_version": __version__, "kernel": name}
    posterior.attrs.update(about)
    groups = {"posterior": posterior}
    if values is not None:
        coords = {name: posterior[name] for name in ("chain", "draw")}
        groups["log_likelihood"] = xr.Dataset(
            {"rankings": (("chain", "draw", "ranking"), values)},
            {**coords, "ranking": np.arange(values.shape[-1])},
        )

    overflow = np.asarray(mcmc.get_extra_fields().get("overflow", False))
    if overflow.any():
        warnings.warn(
            f"{overflow.mean():.1%} of the draws wanted more clusters than there are slots, so "
            "the posterior is cut off: raise max_clusters and run again",
            UserWarning,
            stacklevel=2,
        )
    return _with_groups(data, groups, about)


def _wants_log_likelihood(
    samples: dict[str, Any], rankings: Rankings, asked: bool | Literal["auto"]
) -> bool:
    """Whether to compute it; warns where it is left out for its size."""
    if "phi" in samples:
        # the probability of a list in a new cluster has no closed form
        if asked is True:
            raise ValueError("there is no log likelihood of DPPlackettLuceGibbs: pass False")
        return False
    num_values = np.size(samples["log_joint"]) * rankings.num_rankings
    if asked == "auto" and num_values > _AUTO_LOG_LIKELIHOOD:
        warnings.warn(
            f"the pointwise log likelihood of {rankings.num_rankings} rankings would be "
            f"{num_values:.1e} numbers: left out. For leave-one-out pass log_likelihood=True, or "
            "keep fewer draws",
            UserWarning,
            stacklevel=3,
        )
        return False
    return bool(asked)


def _mallows_posterior(mcmc: MCMC, samples: dict[str, Any], rankings: Rankings) -> tuple[Any, Any]:
    """What ArviZ makes of the run, and the posterior to put in its place."""
    import arviz as az

    check_fitted(samples["assignments"].shape[-1], samples["center"].shape[-1], rankings)
    kernel: Any = mcmc.sampler
    num_components = kernel.num_components
    clusters = occupied_slots(samples)
    num_slots, num_items = clusters["center"].shape[-2:]
    num_stages = clusters["concentration"].shape[-1]
    coords = {
        "item": [str(name) for name in rankings.items],
        "place": np.arange(1, num_items + 1),
        "stage": np.arange(1, num_stages + 1),
        "ranking": np.arange(rankings.num_rankings),
        "cluster": np.arange(samples["center"].shape[-2]),
    }
    dims = {
        "assignments": ["ranking"],
        "center": ["cluster", "place"],
        "concentration": ["cluster", "stage"],
        "cluster_sizes": ["cluster"],
        "rankings": ["ranking", "stage"],
    }
    data = az.from_numpyro(mcmc, coords=coords, dims=dims, log_likelihood=False)
    posterior = as_dataset(data["posterior"]).isel(cluster=slice(num_slots))

    empty = np.asarray(clusters["cluster_sizes"]) == 0
    center, theta = np.asarray(clusters["center"]), np.asarray(clusters["concentration"])
    rank = (np.argsort(center, axis=-1) + 1).astype(np.int32)
    axes = ("chain", "draw", "cluster")
    posterior["center"] = (*axes, "place"), np.where(empty[..., None], -1, center)
    posterior["rank"] = (*axes, "item"), np.where(empty[..., None], 0, rank)
    posterior["concentration"] = (*axes, "stage"), np.where(empty[..., None], np.nan, theta)
    posterior = posterior.assign_coords(item=coords["item"])
    sizes = np.asarray(clusters["cluster_sizes"])
    posterior = _with_sizes(posterior, _largest_first(sizes), partition_entropy(sizes))
    posterior["kendall_to_reference"] = ("chain", "draw"), _kendall(clusters, rankings)
    if num_components == 1:
        posterior["population_concentration"] = ("chain", "draw", "stage"), theta[:, :, 0]
        posterior = posterior.drop_vars("alpha", errors="ignore")  # of no consequence
    return data, posterior


def _plackett_luce_posterior(
    mcmc: MCMC, samples: dict[str, Any], rankings: Rankings
) -> tuple[Any, Any]:
    """The same for the kernels whose samples are weights."""
    import arviz as az

    if "unseen_weight" in samples:
        rankings = rankings.of_listed_items()
    weights = np.asarray(samples["weights"])
    is_mixture = "assignments" in samples
    # the draws of one population do not tell how many rankings there were
    fitted = find_rankings(mcmc._args, mcmc._kwargs)
    check_fitted(fitted.num_rankings, weights.shape[-1], rankings)
    coords = {
        "item": [str(name) for name in rankings.items],
        "ranking": np.arange(rankings.num_rankings),
        "stage": np.arange(1, rankings.orderings.shape[1] + 1),
        "cluster": np.arange(weights.shape[-2]),
    }
    dims = {
        "weights": ["cluster", "item"] if is_mixture else ["item"],
        "assignments": ["ranking"],
        "cluster_sizes": ["cluster"],
        "rankings": ["ranking", "stage"],
    }
    if is_mixture:
        dims |= {name: ["cluster"] for name in ("unseen_weight", "total_weight")}
        dims["root_weights"] = ["item"]
    data = az.from_numpyro(mcmc, coords=coords, dims=dims, log_likelihood=False)
    posterior = as_dataset(data["posterior"])
    axes = ("chain", "draw")
    population = weights
    if is_mixture:
        sizes = np.asarray(samples["cluster_sizes"])
        population = np.einsum("abc,abci->abi", sizes / sizes.sum(-1, keepdims=True), weights)
        weights = np.where(sizes[..., None] > 0, weights, np.nan)
        posterior["weights"] = (*axes, "cluster", "item"), weights
        posterior = _with_sizes(posterior, _largest_first(sizes), partition_entropy(sizes))
    posterior["entropy"] = (
        (*axes, *(["cluster"] if is_mixture else [])),
        normalised_entropy(weights),
    )
    posterior["population_weights"] = (*axes, "item"), population
    posterior["population_entropy"] = axes, normalised_entropy(population)
    top = np.argsort(-population.mean((0, 1)), kind="stable")[:_WEIGHTS_SHOWN]
    posterior["top_weights"] = (*axes, "top_item"), population[..., top]
    names = np.array(coords["item"])
    return data, posterior.assign_coords(item=names, top_item=names[top])


def _partition_posterior(
    mcmc: MCMC, samples: dict[str, Any], points: Sequence[Any] | None
) -> tuple[Any, Any]:
    """The same for the kernels whose samples are a partition, or links that make one."""
    import arviz as az

    labels = np.asarray(samples["assignments"])
    size = labels.shape[-1]
    if points is not None and len(points) != size:
        raise ValueError(f"the run was of {size} points, these are {len(points)} names")
    coords = {"point": np.arange(size) if points is None else np.asarray(points)}
    dims = {"assignments": ["point"], "links": ["point"]}
    data = az.from_numpyro(mcmc, coords=coords, dims=dims, log_likelihood=False)
    posterior = as_dataset(data["posterior"])
    most = min(_SIZES_SHOWN, int(labels.max()) + 1)
    largest_first = np.zeros((*labels.shape[:2], most), np.int64)
    entropy = np.zeros(labels.shape[:2])
    for k in np.ndindex(entropy.shape):  # one draw at a time: no D × N × C array
        sizes = np.bincount(labels[k])
        largest = _largest_first(sizes)
        largest_first[k][: len(largest)] = largest
        entropy[k] = partition_entropy(sizes)
    return data, _with_sizes(posterior, largest_first, entropy)


def _with_sizes(posterior: Any, largest_first: np.ndarray, entropy: np.ndarray) -> Any:
    """Add what the sizes of the clusters say whatever their labels."""
    posterior["largest_sizes"] = ("chain", "draw", "size_rank"), largest_first
    posterior["partition_entropy"] = ("chain", "draw"), entropy
    return posterior.assign_coords(size_rank=np.arange(1, largest_first.shape[-1] + 1))


def _largest_first(sizes: np.ndarray) -> np.ndarray:
    """The largest few of the sizes of clusters, (…, C)."""
    return -np.sort(-sizes, axis=-1)[..., :_SIZES_SHOWN]


def _with_groups(data: Any, groups: dict[str, Any], attrs: dict[str, str]) -> Any:
    """Replace or add groups, in the manner of either ArviZ."""
    import xarray as xr

    is_tree = isinstance(data, xr.DataTree)
    for name, dataset in groups.items():
        if is_tree:
            data[name] = xr.DataTree(dataset)
        elif name in data.groups():
            setattr(data, name, dataset)
        else:
            data.add_groups({name: dataset})
    data.attrs.update(attrs)
    return data


def save_inference_data(data: Any, path: str | Path) -> None:
    """Write to a compressed netCDF file; ``arviz.from_netcdf`` reads it back.

    :param data: what :func:`~numpyro_rankings.to_inference_data` returned.
    :param path: where to.
    """
    if not hasattr(data, "to_dataset"):
        data.to_netcdf(str(path), engine="h5netcdf", compress=True)
        return
    encoding = {
        node.path: {
            name: {"zlib": True} for name, x in node.data_vars.items() if x.dtype.kind in "biuf"
        }
        for node in data.subtree
    }
    data.to_netcdf(path, engine="h5netcdf", encoding=encoding)


def _kendall(clusters: dict[str, Any], rankings: Rankings) -> np.ndarray:
    """Mean Kendall distance between the center of a ranking and the Borda order of the data."""
    sizes = np.asarray(clusters["cluster_sizes"])
    occupied = sizes > 0
    distance = np.zeros(sizes.shape)
    distance[occupied] = kendall_distance(
        np.asarray(clusters["center"])[occupied], borda_ordering(rankings)
    )
    return (distance * sizes).sum(-1) / sizes.sum(-1)
