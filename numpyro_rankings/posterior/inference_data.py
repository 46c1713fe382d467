"""Convert the draws of the kernels to ArviZ, with quantities that can be diagnosed.

Labels switch and permutations have no mean, so R-hat and ESS of the raw draws mean nothing. The
posterior also has the quantities of ``quantities.py``, which do not depend on the labels.
"""

import copy
import io
import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.handlers import seed, substitute, trace
from numpyro.infer import MCMC

from numpyro_rankings.distributions import links_to_partition
from numpyro_rankings.infer.base import GibbsKernel
from numpyro_rankings.infer.not_finite import check_not_stopped
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.posterior.diagnostics import NUM_COMPONENTS, as_dataset, diagnostics_table
from numpyro_rankings.posterior.draws import (
    KIND_OF_DATA,
    LADDER_FIELDS,
    Draws,
    find_block,
    is_of_partitions,
)
from numpyro_rankings.posterior.likelihood import (
    cost_of_value,
    pointwise_log_likelihood,
    pointwise_of_block,
    pointwise_of_partition,
    why_not_of_points,
)
from numpyro_rankings.posterior.partitions import evenly
from numpyro_rankings.posterior.predictive_checks import replicate
from numpyro_rankings.posterior.quantities import as_shown, label_free_quantities
from numpyro_rankings.rankings import Orders, Rankings, RankingsError

# Functions import ArviZ, pandas and xarray, which take long to load and are not always needed.

__all__ = ["diagnostics_table", "save_inference_data", "to_inference_data"]

_AXES = {
    "item_effects": "covariate",
    "largest_sizes": "size_rank",
    "population_concentration": "stage",
    "top_weights": "top_item",
}
_AUTO_LOG_LIKELIHOOD = 10_000_000  # float32 values, 40 MB


def to_inference_data(
    mcmc: MCMC,
    rankings: Rankings | Orders | None = None,
    log_likelihood: bool | Literal["auto"] = "auto",
    include_assignments: bool = True,
    points: Sequence[Any] | None = None,
    posterior_predictive: int = 0,
) -> Any:
    """Convert a run of a kernel of this package, by itself or as a block, to ArviZ.

    The group ``posterior`` has the draws, and further variables that depend on the kernel.

    For the Mallows kernels :class:`~numpyro_rankings.infer.SliceGibbs` and
    :class:`~numpyro_rankings.infer.BetaGibbs` they are:

    - ``rank``, 1 = best, by name of the item: the inverse of ``center``. In slots that are empty in
      a draw ``rank`` is 0, ``center`` is -1 and ``concentration`` is NaN. Slots that are empty in
      all draws are left out.
    - quantities that do not depend on the labels, for R-hat and ESS: ``num_clusters``,
      ``log_joint``, ``alpha``, ``largest_sizes``, ``partition_entropy``, and
      ``kendall_to_reference``, the mean over the rankings of the Kendall distance between the
      center of their cluster and the Borda order of the data. With ``num_components=1`` also
      ``population_concentration``, the θ of each stage.

    For the Plackett–Luce kernels:

    - ``weights`` by name of the item, NaN in components that are empty in a draw, and ``entropy``,
      the entropy of the weights divided by the log of their number (1 if they are equal).
    - quantities that do not depend on the labels: ``log_joint``, ``alpha``, ``unseen_weight``,
      ``population_weights`` (the mean of the weights of the components by their sizes),
      ``population_entropy``, ``top_weights`` (the largest five population weights), and for
      mixtures ``num_clusters``, ``largest_sizes`` and ``partition_entropy``.

    For both, of :class:`~numpyro_rankings.Comparisons`, also ``mistake_probability``.

    For the kernels of partitions (:class:`~numpyro_rankings.infer.CollapsedGibbs`, ``SplitMerge``,
    ``PermutationGibbs``, ``Cycle``, ``DDCRPGibbs``, ``DDCRPLanguageGibbs``):

    - ``assignments`` and ``links`` by ``point``.
    - quantities that do not depend on the labels: ``num_clusters``, ``log_joint``, ``alpha``,
      ``decay_scale`` if it is learned, ``largest_sizes`` and ``partition_entropy``.

    For the kernels of rankings ``log_joint`` is in double precision, with the remainder that their
    samples have in ``log_joint_rest``: with 10^6 rankings float32 has steps of 8 nats and more.

    The group ``sample_stats`` has ``lp``, ``acceptance_rate`` (of the Metropolis steps) and
    ``overflow``. Of :class:`~numpyro_rankings.infer.TemperedMixture` it also has ``barrier``,
    ``round_trips``, the fields that begin with ``rung_`` by ``rung``, from 0, which is the prior,
    to the model, and ``rejection`` by ``rung_pair``: of exchanges of that rung with the next.

    For a model of :class:`numpyro.infer.Gibbs` with a kernel of this package as a block, the sites
    have the names of the model, and ``center``, ``concentration`` and ``weights`` are left as they
    are in empty slots. Added are ``cluster_sizes``, ``rank`` and the quantities above that the
    block's sites determine, each unless a site of the model has its name. The attribute ``sites``
    tells which site is which.

    The group ``log_likelihood`` has a column for each ranking, not for each distinct row: leaving
    one ranking out keeps the others of its row. It is the log probability of the ranking given the
    labels of all others, with its own label summed out, so that :func:`arviz.loo` leaves out the
    label too; its attributes say so. Draws of :class:`~numpyro_rankings.infer.TemperedMixture` give
    the shares of the components instead of labels. With ``judge_sites`` it is the log probability
    of the ranking and of these outcomes of its judge together, named in the attribute ``of``:
    leaving one out leaves out the judge. Pass ``reff`` to that function, for instance the share of
    effective draws of ``log_joint``: by default ArviZ averages over all variables, and the empty
    slots make the average NaN.

    Of kernels of partitions it has a column for each point, likewise given the labels of all
    others, if ``log_likelihood=True``. It has none of links, of blocks, and of families with
    auxiliary variables.

    The groups ``posterior_predictive`` and ``observed_data`` have, of replicated and of the fitted
    rankings, what does not depend on labels: ``first``, the share of the judges who put each item
    first, and ``mean_rank``, 1 + the sum over the other items of the share of the judges who put
    that item above, among those who order the two; of full rankings it is the mean rank. Look at
    them by ``arviz.plot_ppc(data, var_names=["first", "mean_rank"])``, in ArviZ 1.x
    ``plot_ppc_dist``. Replications are those of
    :func:`~numpyro_rankings.posterior_predictive_checks`.

    :param mcmc: the MCMC after ``mcmc.run(key, rankings)``, of a kernel or of
        :class:`numpyro.infer.Gibbs` with one block of this package.
    :param rankings: the rankings, partial orders or comparisons that were fitted. Not for the
        kernels of partitions, whose draws contain everything needed.
    :param log_likelihood: whether to compute it. ``"auto"`` computes it if rankings times draws are
        at most 10^7, and otherwise warns; of judges with survey weights it does not. For
        ``DPPlackettLuceGibbs`` the limit is 5 · 10^5, because its new clusters have no closed form:
        for each draw 50 are drawn from the prior, so that the values of rankings that fit no other
        cluster scatter. Of partial orders each value is a sum over the orders that agree, which is
        exact; the limit is lower by as much as it takes longer, and at most 16 items may be tied or
        not compared; of comparisons that may be mistakes, a judge may compare at most 16 items.
    :param include_assignments: whether to keep the labels (and links), by far the largest arrays.
    :param points: names of the points, for the kernels of partitions; by default 0, 1, ….
    :param posterior_predictive: number of draws in which all rankings are replicated, evenly spaced
        in each chain, such as 100. By default none, because it takes some time.
    :return: an :class:`arviz.InferenceData` (ArviZ 0.23) or :class:`xarray.DataTree` (1.x).
    :raises ValueError: if the rankings or names are not those of the run, if there is no log
        likelihood of such a run, if partitions are to be replicated, or if a chain has stopped
        because its log joint or a site was not finite.
    :raises TypeError: if ``mcmc`` is not an MCMC or has no kernel of this package, or if the
        rankings are needed and missing.
    """
    if not isinstance(mcmc, MCMC):
        raise TypeError(f"mcmc must be a numpyro.infer.MCMC, got {type(mcmc).__name__}")
    kernel: Any = mcmc.sampler
    block = find_block(kernel)
    own = block or kernel
    if not isinstance(own, GibbsKernel):
        raise TypeError(
            "to_inference_data is for the kernels of this package, not "
            f"{type(kernel).__name__}: use arviz.from_numpyro(mcmc)"
        )
    draws = Draws.of(mcmc)
    check_not_stopped(own, draws.samples)
    _check_asked(draws, rankings, posterior_predictive, points)
    draws, values = draws.with_rankings(rankings), None
    if rankings is None and log_likelihood is True:
        if why := why_not_of_points(own, draws):
            raise ValueError(f"there is no log likelihood for {draws.kernel}, because {why}")
        values = pointwise_of_partition(mcmc, draws)
    elif rankings is not None and _wants_log_likelihood(draws, log_likelihood):
        of_own = pointwise_log_likelihood
        values = of_own(draws) if block is None else pointwise_of_block(mcmc, block, draws)
    data = convert(mcmc, draws, values, include_assignments, points)
    if posterior_predictive:
        data = _with_replications(data, draws, posterior_predictive)
    if block is None:
        _warn_of_overflow(mcmc)
    return data


def convert(
    mcmc: MCMC,
    draws: Draws,
    values: np.ndarray | None = None,
    include_assignments: bool = True,
    points: Sequence[Any] | None = None,
) -> Any:
    """Convert draws to ArviZ, also where kernel and data are not there, as of a store.

    :param draws: what is known of them. The rankings need only have the items, the Borda order and
        the number of those of the run.
    :param values: the log likelihood, if it is wanted.
    """
    coords, dims = _names_of(draws, points)
    sites = draws.sites
    if sites is not None:
        dims = {sites.get(site, site): axes for site, axes in dims.items() if site != "rankings"}
        drawn = mcmc.get_samples().keys()
        dims = {site: axes for site, axes in dims.items() if site in drawn}
    data = _from_numpyro(mcmc, coords, dims)
    posterior = as_dataset(data["posterior"])
    items = coords.get("item", [])
    if items:
        posterior = posterior.assign_coords(item=items)
    add = _with_variables if sites is None else _with_variables_of_block
    posterior = _with_quantities(*add(posterior, draws), items)
    if not include_assignments:
        names = [name if sites is None else sites.get(name) for name in ("assignments", "links")]
        posterior = posterior.drop_vars(names, errors="ignore")
    if sites is not None:
        posterior.attrs["sites"] = json.dumps(dict(sites))
    if draws.covariates is not None:
        posterior = posterior.assign_coords(draws.covariates.to_coords())
    return _finished(data, posterior, draws, values)


def _with_variables(posterior: Any, draws: Draws) -> tuple[Any, dict[str, np.ndarray]]:
    """Return a posterior in which empty clusters are marked, and the quantities to be added."""
    quantities = label_free_quantities(draws)
    if draws.family is None:
        return posterior, quantities
    sizes, num_used = draws.sizes, None
    if sizes is not None and draws.family.leaves_out_unused:
        num_used = int(np.flatnonzero(sizes.any((0, 1)))[-1]) + 1
        posterior = posterior.isel(cluster=slice(num_used))
    for name, (axes, values) in draws.family.variables(draws.samples, sizes).items():
        if sizes is None:
            posterior[name] = ("chain", "draw", *axes), values
        else:
            posterior[name] = ("chain", "draw", "cluster", *axes), values[:, :, :num_used]
    if "population_weights" in quantities:
        weights = quantities["population_weights"]
        posterior["population_weights"] = ("chain", "draw", "item"), weights
    if draws.labels is not None and "alpha" not in quantities:
        posterior = posterior.drop_vars("alpha", errors="ignore")
    return posterior, quantities


def _with_variables_of_block(posterior: Any, draws: Draws) -> tuple[Any, dict[str, np.ndarray]]:
    """Return a posterior with what a block determines, and the quantities to be added.

    What has the name of a site of the model is left out.
    """
    links = draws.samples.get("links")
    if draws.labels is None and links is not None:
        labels = jax.jit(jax.vmap(jax.vmap(links_to_partition)))(jnp.asarray(links))
        draws = replace(draws, samples={**draws.samples, "assignments": np.asarray(labels)})
    quantities = label_free_quantities(draws)
    added: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    if "population_weights" in quantities:
        added["population_weights"] = ("item",), quantities["population_weights"]
    if draws.sizes is not None:
        assert draws.family is not None
        quantities["num_clusters"] = (draws.sizes > 0).sum(-1)
        added["cluster_sizes"] = ("cluster",), draws.sizes
        variables = draws.family.variables(draws.samples, draws.sizes)
        for name in draws.family.block_variables:
            axes, values = variables[name]
            added[name] = ("cluster", *axes), values
    elif draws.labels is not None:
        quantities["num_clusters"] = draws.labels.max(-1).astype(np.int32) + 1
    new = {name: x for name, x in quantities.items() if name not in posterior}
    if "population_weights" in quantities:
        new["population_weights"] = quantities["population_weights"]
    for name, (axes, values) in added.items():
        if name not in posterior:
            posterior = posterior.assign({name: (("chain", "draw", *axes), values)})
    return posterior, new


def _finished(data: Any, posterior: Any, draws: Draws, values: np.ndarray | None) -> Any:
    """Return the data with a posterior that tells of the kernel, and the log likelihood."""
    import xarray as xr

    from numpyro_rankings._version import __version__

    posterior = posterior.drop_vars("log_joint_rest", errors="ignore")
    about = {"numpyro_rankings_version": __version__, "kernel": draws.kernel}
    posterior.attrs.update(about)
    if draws.data is not None:
        posterior.attrs[KIND_OF_DATA] = draws.data
    if draws.num_components is not None:
        posterior.attrs[NUM_COMPONENTS] = draws.num_components
    groups = {"posterior": posterior}
    if "sample_stats" in data:
        groups["sample_stats"] = _with_rungs(as_dataset(data["sample_stats"]))
    if values is not None:
        coords = {name: posterior[name] for name in ("chain", "draw")}
        given = "those of all others" if draws.shares is None else "the shares"
        noun = "point" if draws.family is None else "ranking"
        names = posterior["point"] if noun == "point" else np.arange(values.shape[-1])
        groups["log_likelihood"] = xr.Dataset(
            {f"{noun}s": (("chain", "draw", noun), values)},
            {**coords, noun: names},
            {
                "labels": f"that of the {noun} is summed out, given {given}",
                "of": ", ".join([f"{noun}s", *draws.judge_sites]),
            },
        )
    return with_groups(data, groups, about)


def _with_replications(data: Any, draws: Draws, number: int) -> Any:
    """Add what does not depend on the labels of replicated rankings, and of the fitted ones."""
    import xarray as xr

    of_chain = evenly(draws.num_draws, -(-number // draws.num_chains))
    kept = (np.arange(draws.num_chains)[:, None] * draws.num_draws + of_chain).ravel()
    # the key is always the same, so that the same draws give the same data
    made = replicate(jax.random.fold_in(jax.random.key(0), 1), draws, kept)
    ranks, seen_ranks = made.mean_ranks()
    posterior = as_dataset(data["posterior"])
    coords = {
        "chain": posterior["chain"].values,
        "draw": posterior["draw"].values[of_chain],
        "item": list(draws.said.items),
    }
    shape, axes = (draws.num_chains, len(of_chain), -1), ("chain", "draw", "item")
    values = {"first": made.first, "mean_rank": ranks}
    of_draws = {name: (axes, x.reshape(shape)) for name, x in values.items()}
    seen = {"first": ("item", made.seen_first), "mean_rank": ("item", seen_ranks)}
    observed = as_dataset(data["observed_data"]) if "observed_data" in data else xr.Dataset()
    groups = {
        "posterior_predictive": xr.Dataset(of_draws, coords),
        "observed_data": observed.assign(seen).assign_coords(item=coords["item"]),
    }
    return with_groups(data, groups, {})


def _with_rungs(stats: Any) -> Any:
    """Return the sample statistics of ladders, whose fields have axes of their own each."""
    named = {
        name: "rung_pair" if name == "rejection" else "rung"
        for name in (*LADDER_FIELDS, "rejection")
        if name in stats
    }
    new = {name: (("chain", "draw", axis), stats[name].values) for name, axis in named.items()}
    own = [axis for name in named for axis in stats[name].dims[2:]]
    coords = {axis: np.arange(new[name][1].shape[-1]) for name, axis in named.items()}
    return stats.drop_vars(own, errors="ignore").assign(new).assign_coords(coords)


def _check_asked(
    draws: Draws,
    rankings: Rankings | Orders | None,
    posterior_predictive: int,
    points: Sequence[Any] | None,
) -> None:
    """Refuse arguments that do not go with the kernel."""
    name, is_of_rankings = draws.kernel, draws.rankings is not None
    if is_of_rankings and rankings is None:
        raise TypeError(
            f"the rankings are needed for {name}: use to_inference_data(mcmc, rankings)"
        )
    if is_of_rankings and points is not None:
        raise ValueError(f"points is an argument for kernels of partitions, not for {name}")
    if not is_of_rankings and rankings is not None:
        raise ValueError(
            f"the draws of {name} are labels alone, whatever was grouped, and need no rankings: "
            "use to_inference_data(mcmc) without them"
        )
    check_whole("posterior_predictive", posterior_predictive, 0)
    if not is_of_rankings and posterior_predictive:
        raise ValueError(
            f"posterior_predictive is an argument for rankings, and {name} has labels alone"
        )
    if posterior_predictive and draws.data == "comparisons":
        raise ValueError("comparisons are not replicated: leave out posterior_predictive")


def _warn_of_overflow(mcmc: MCMC) -> None:
    overflow = np.asarray(mcmc.get_extra_fields().get("overflow", False))
    if overflow.any():
        warnings.warn(
            f"{overflow.mean():.1%} of the draws needed more clusters than there are slots, so "
            "the posterior is truncated: raise max_clusters and run again",
            UserWarning,
            stacklevel=3,
        )


def _wants_log_likelihood(draws: Draws, asked: bool | Literal["auto"]) -> bool:
    """Return whether to compute the log likelihood; warn if it is left out because of its size."""
    num_rankings = draws.given.num_rankings
    if asked == "auto" and draws.given.weights is not None:
        return False  # leave-one-out would take all judges to count the same
    num_values = draws.num_chains * draws.num_draws * num_rankings
    try:
        of_one = cost_of_value(draws) if asked else 0
    except RankingsError as error:
        if asked is True:
            raise
        why, remedy = f": {error}", ""
    else:
        if asked != "auto" or num_values * of_one <= _AUTO_LOG_LIKELIHOOD:
            return bool(asked)
        cause = "is large" if of_one == 1 else "takes long, because new clusters are drawn"
        if draws.orders is not None:
            cause = "takes long, because each is a sum over orders"
        why = f", because it has {num_values:.1e} numbers and {cause}"
        remedy = ". For leave-one-out, pass log_likelihood=True or keep fewer draws"
    text = f"the pointwise log likelihood of {num_rankings} rankings was left out{why}{remedy}"
    warnings.warn(text, UserWarning, stacklevel=3)
    return False


def _from_numpyro(mcmc: MCMC, coords: dict[str, Any], dims: dict[str, Any]) -> Any:
    """Let ArviZ convert a run.

    ArviZ runs the model, one operation after the other, to find what is observed. With the sites at
    the last draw nothing is drawn from the prior, and a model of rankings is replaced by one that
    has the observed values only: either would take a second to compile.
    """
    import arviz as az

    kernel: Any = mcmc.sampler
    samples = mcmc.get_samples(group_by_chain=True)
    last = jax.tree.map(lambda x: np.asarray(x)[-1, -1], samples)
    mcmc, kernel = copy.copy(mcmc), copy.copy(kernel)
    if is_of_partitions(kernel):
        kernel._model = substitute(kernel.model, data=jax.tree.map(jnp.asarray, last))
    elif kernel.model is not None:
        observed = _observed(kernel.model, last, mcmc._args, mcmc._kwargs)
        kernel._model = partial(_model_of_observed, observed)
    mcmc.sampler = kernel
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*skipping initialization of site")
        return az.from_numpyro(mcmc, coords=coords, dims=dims, log_likelihood=False)


def _observed(
    model: Any, sites: dict[str, Any], args: tuple, kwargs: dict[str, Any]
) -> dict[str, np.ndarray]:
    """Return the observed values of a model of rankings, by site."""
    leaves, structure = jax.tree.flatten((args, kwargs))
    # numbers among the arguments of a user's model stay static
    is_static = [isinstance(x, int | str) for x in leaves]

    def values(sites: dict[str, Any], arrays: list) -> dict[str, Any]:
        given = [x if static else y for x, y, static in zip(leaves, arrays, is_static, strict=True)]
        args, kwargs = jax.tree.unflatten(structure, given)
        of_sites = seed(substitute(model, data=sites), 0)
        traced = trace(of_sites).get_trace(*args, **kwargs)
        return {name: site["value"] for name, site in traced.items() if site.get("is_observed")}

    arrays = [None if static else x for x, static in zip(leaves, is_static, strict=True)]
    return jax.device_get(jax.jit(values)(sites, arrays))


def _model_of_observed(observed: dict[str, np.ndarray], *_: Any, **__: Any) -> None:
    for name, value in observed.items():
        anything = dist.ImproperUniform(dist.constraints.real, (), value.shape)
        numpyro.sample(name, anything, obs=value)


_Names = tuple[dict[str, Any], dict[str, list[str]]]  # coordinates, and axes by variable


def _names_of(draws: Draws, points: Sequence[Any] | None) -> _Names:
    """Return the names of what the sites describe: items, rankings, clusters, or points."""
    rankings, family = draws.rankings, draws.family
    if family is None or rankings is None:
        samples = draws.samples
        size = samples["assignments" if draws.labels is not None else "links"].shape[-1]
        if points is not None and len(points) != size:
            raise ValueError(f"the run was of {size} points, but points has {len(points)} names")
        of_points = {"point": np.arange(size) if points is None else np.asarray(points)}
        return of_points, {"assignments": ["point"], "links": ["point"]}
    coords: dict[str, Any] = {
        "item": list(draws.items or ()),
        "ranking": np.arange(rankings.num_rankings),
        "stage": np.arange(1, rankings.orderings.shape[1] + 1),
        "cluster": np.arange(draws.num_slots or 1),
    }
    dims = {"assignments": ["ranking"], "cluster_sizes": ["cluster"]}
    if "shares" in draws.samples:
        dims["shares"] = ["cluster"]
    if "share_effects" in draws.samples:
        dims["share_effects"] = ["cluster", "covariate"]
        if draws.covariates is not None:
            coords["covariate"] = list(draws.covariates.columns)
    dims |= {site: ["ranking"] for site in draws.judge_sites}
    dims["rankings"] = ["ranking", "stage"]
    of_clusters = ["cluster"] if draws.labels is not None else []
    for name in (*family.parameters, *family.of_clusters):
        dims[name] = [*of_clusters, *family.axes.get(name, ())]
    for name, axes in family.axes.items():
        dims.setdefault(name, list(axes))
        if name in draws.samples and axes and axes[-1] != "item":
            coords[axes[-1]] = np.arange(1, draws.samples[name].shape[-1] + 1)
    if (effects := draws.samples.get("item_effects")) is not None:
        dims["item_effects"] = ["covariate"]
        coords["covariate"] = np.arange(1, effects.shape[-1] + 1)
    return coords, dims


def _with_quantities(
    posterior: Any, quantities: dict[str, np.ndarray], items: Sequence[str]
) -> Any:
    """Add quantities that do not depend on the labels."""
    quantities, top_items = as_shown(quantities, items)
    for name, values in quantities.items():
        axes = ("chain", "draw", _AXES[name]) if values.ndim == 3 else ("chain", "draw")
        posterior[name] = axes, values
    if top_items:
        posterior = posterior.assign_coords(top_item=top_items)
    if "largest_sizes" in quantities:
        number = quantities["largest_sizes"].shape[-1]
        posterior = posterior.assign_coords(size_rank=np.arange(1, number + 1))
    return posterior


def with_groups(data: Any, groups: dict[str, Any], attrs: dict[str, str]) -> Any:
    """Replace or add groups, in ArviZ 0.23 or 1.x."""
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
    """Write the data to a compressed netCDF file, which ``arviz.from_netcdf`` reads.

    The file is first made in memory, which holds it beside the draws.

    :param data: the result of :func:`~numpyro_rankings.to_inference_data`.
    :param path: the file to write.
    """
    import xarray as xr

    file = io.BytesIO()  # for HDF5 crashes on a full disk
    if hasattr(data, "to_dataset"):
        encoding = {node.path: _compression(node.data_vars) for node in data.subtree}
        data.to_netcdf(file, engine="h5netcdf", encoding=encoding)
    else:
        xr.Dataset(attrs=data.attrs).to_netcdf(file, engine="h5netcdf")
        for name in data.groups():
            group, encoding = data[name], _compression(data[name].variables)
            group.to_netcdf(file, mode="a", group=name, engine="h5netcdf", encoding=encoding)
    Path(path).write_bytes(file.getbuffer())


def _compression(variables: Any) -> dict[str, dict[str, Any]]:
    """Return how to compress variables: labels become hardly smaller at a higher level."""
    how = {"zlib": True, "complevel": 1}
    return {str(name): how for name, x in variables.items() if x.dtype.kind in "biuf"}
