"""Log predictive densities of new rankings."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp
from numpyro.infer import MCMC

from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.posterior.diagnostics import NUM_COMPONENTS, posterior_of
from numpyro_rankings.posterior.likelihood import (
    NEW_CLUSTERS,
    log_cluster_likelihood,
    log_cluster_weights,
    log_in_new_cluster,
    log_one_ranking,
    log_plackett_luce_likelihood,
    stage_orderings,
)
from numpyro_rankings.posterior.samples import (
    batch_of_rows,
    check_draws,
    check_samples,
    flatten_chains,
    occupied_slots,
)
from numpyro_rankings.rankings import Rankings, check_rankings

_OF_BLOCK = "the samples must be those of a kernel by itself, not of a block of Gibbs"


def log_predictive_density(
    samples: Any,
    new_rankings: Rankings,
    num_components: int | Literal["auto"] | None = "auto",
    *,
    num_new_clusters: int = 100,
    key: Array | None = None,
    fitted: Rankings | None = None,
) -> np.ndarray:
    r"""Log predictive density of new rankings under a fitted mixture.

    The density is the mean over the draws. With :math:`N` fitted rankings, :math:`N_c` of them in
    cluster :math:`c`, a new list of length :math:`t` has under the Dirichlet process

    .. math::
        p(\pi) = \sum_c \frac{N_c}{N + \alpha} P(\pi \mid \sigma_c, \theta_c)
        + \frac{\alpha}{N + \alpha} \frac{(n - t)!}{n!}.

    The term of a new cluster is exact: under every prior of its concentrations, the last factor is
    the marginal of one ranking in it (Lemma 1 of Meilă & Chen 2010). In a finite mixture the
    weights are :math:`N_c + \alpha/K`, and the empty components share the rest. For draws of a
    Plackett–Luce kernel the probabilities are mixed in the same way. A new cluster of
    ``DPPlackettLuceGibbs`` has no closed form: for each draw its term is the mean over clusters
    drawn from the prior given the root, which is unbiased.

    :param samples: a :class:`~numpyro_rankings.Run` or :class:`numpyro.infer.MCMC` that has run,
        what :func:`~numpyro_rankings.to_inference_data` makes of it, or ``mcmc.get_samples()``,
        grouped by chain or not.
    :param new_rankings: lists of the same items, no longer than those fitted; a list of n - 1 items
        counts as complete.
    :param num_components: needed only with ``mcmc.get_samples()`` of a Mallows kernel, which does
        not hold it: that of the kernel, ``None`` for the Dirichlet process.
    :param num_new_clusters: number of new clusters for each draw of ``DPPlackettLuceGibbs``.
    :param key: a JAX random key for these and for new items; by default always the same one.
    :param fitted: for a Plackett–Luce kernel, the rankings that were fitted, so that items are
        matched by their names. Under the gamma process (σ = 0) new rankings may then list items
        that the fitted ones do not: the probability is that of some new item at that place.
    :return: one value for each row, in nats, float32, shape ``(rows,)``; the mean for one
        ranking is ``np.average(log_density, weights=new_rankings.counts)``.
    :raises ValueError: if the items do not match, a list is longer than the fitted stages, or
        ``num_components`` contradicts the run or the draws, is needed and missing, or is given with
        draws of a Plackett–Luce kernel.
    """
    if not isinstance(samples, Mapping) or "posterior" in samples:
        samples, fitted_number = _read_run(samples)
        is_of_centers = isinstance(samples, Mapping) and "weights" not in samples
        if is_of_centers and num_components not in ("auto", fitted_number):
            model = f"num_components={num_components}"
            raise ValueError(
                f"{model} was not fitted, but {_in_words(fitted_number)}: leave it out"
            )
        num_components = fitted_number if is_of_centers else num_components
    check_draws(samples)
    for given in (new_rankings, *(() if fitted is None else (fitted,))):
        check_rankings(given)
    if "weights" in samples:
        if num_components not in ("auto", None):
            raise ValueError("num_components is for draws of a Mallows kernel only")
        return _log_plackett_luce(samples, new_rankings, key, num_new_clusters, fitted)
    if fitted is not None:
        raise ValueError("fitted is for draws of a Plackett–Luce kernel")
    check_samples(samples)
    draws = flatten_chains(samples)
    number = _check_number(num_components, draws["cluster_sizes"])
    if "alpha" not in draws and number != 1:
        raise ValueError("the samples have no alpha")
    clusters = occupied_slots(draws)
    num_items, num_stages = clusters["center"].shape[-1], clusters["concentration"].shape[-1]
    if new_rankings.num_items != num_items:
        raise ValueError(
            f"the new rankings are of {new_rankings.num_items} items, the fitted ones of "
            f"{num_items}"
        )
    lengths = np.asarray(new_rankings.lengths)
    if lengths.max() > num_stages and num_stages < num_items - 1:
        raise ValueError(
            f"row {lengths.argmax() + 1} lists {lengths.max()} items, but the fitted lists had at "
            f"most {num_stages}, so later stages have no concentrations: shorten the list"
        )
    kept = {name: jnp.asarray(value) for name, value in clusters.items()}
    kept["alpha"] = jnp.broadcast_to(
        jnp.asarray(draws.get("alpha", 1.0), kept["concentration"].dtype), (len(kept["center"]),)
    )
    batch = batch_of_rows(kept["center"].shape, num_stages, new_rankings.num_rows)
    orderings = stage_orderings(new_rankings.orderings, num_stages)
    log_one = log_one_ranking(lengths, num_items)
    return np.asarray(_mean_log_predictive(kept, orderings, log_one, number, batch))


def _read_run(run: Any) -> tuple[Any, int | None]:
    """Return the samples of a run, and the number of components of a Mallows kernel."""
    if hasattr(run, "__contains__") and "posterior" in run:
        return _read_posterior(posterior_of(run))
    mcmc = run.as_mcmc() if hasattr(run, "as_mcmc") else run
    if not isinstance(mcmc, MCMC):
        return run, None  # refused by the caller
    samples = mcmc.get_samples()
    return samples, None if "weights" in samples else getattr(mcmc.sampler, NUM_COMPONENTS, None)


def _read_posterior(posterior: Any) -> tuple[dict[str, Any], int | None]:
    """Return the same of the posterior that ``to_inference_data`` made."""
    if "kernel" not in posterior.attrs:
        raise ValueError("the posterior must be that of to_inference_data(mcmc, …)")
    if "sites" in posterior.attrs:  # whose alpha, say, may be anything
        raise ValueError(_OF_BLOCK)
    samples = {str(name): x.values for name, x in posterior.data_vars.items()}
    if "weights" in samples:
        if np.isnan(samples["weights"]).any():
            raise ValueError(
                "the posterior has no weights for components that are empty in a draw: pass the "
                "run, or mcmc.get_samples()"
            )
        return samples, None
    if "center" in samples and "cluster_sizes" in samples:
        empty = (samples["cluster_sizes"] == 0)[..., None]  # marked with -1 and NaN
        some = np.arange(samples["center"].shape[-1], dtype=np.int32)
        samples["center"] = np.where(empty, some, samples["center"])
        samples["concentration"] = np.where(empty, 1.0, samples["concentration"])
    number = posterior.attrs.get(NUM_COMPONENTS)
    if number is None or "cluster_sizes" not in samples:
        return samples, number
    # slots that are empty in all draws are left out
    missing = int(number) - samples["cluster_sizes"].shape[-1]
    if missing > 0:
        for name in ("cluster_sizes", "center", "concentration"):
            x = samples[name]
            last = np.take(x, [-1] * missing, axis=2) * (name != "cluster_sizes")
            samples[name] = np.concatenate([x, last], axis=2)
    return samples, int(number)


def _check_number(number: int | str | None, sizes: np.ndarray) -> int | None:
    """Return the number of components that draws of these sizes, (D, C), are said to be of.

    :raises ValueError: if the draws contradict it, or if it is unknown.
    """
    slots = sizes.shape[1]
    if number == "auto" and slots == 1:
        return 1
    if number == "auto":
        raise ValueError(
            f"the samples do not say whether they are of a mixture of {slots} components or of a "
            "Dirichlet process: pass the run instead of its samples, or num_components=, None for "
            "the process"
        )
    if number not in (None, slots):
        raise ValueError(f"the draws are of {slots} components, not of {number}")
    if number is None and sizes.all():
        raise ValueError(
            f"all {slots} clusters are occupied in all draws, so the draws are of a mixture of "
            f"{slots} components, or max_clusters of the Dirichlet process was too small: pass the "
            f"run instead of its samples, or num_components={slots}"
        )
    assert not isinstance(number, str)
    return number


def _in_words(number: int | None) -> str:
    return "the Dirichlet process" if number is None else f"num_components={number}"


@partial(jax.jit, static_argnames=("num_components", "batch"))
def _mean_log_predictive(
    draws: dict[str, Array],
    orderings: Array,
    log_one: Array,
    num_components: int | None,
    batch: int,
) -> Array:
    num_draws = len(draws["alpha"])

    def add_draw(total: Array, draw: dict[str, Array]) -> tuple[Array, None]:
        log_weight, log_empty = log_cluster_weights(
            draw["cluster_sizes"], draw["alpha"], num_components
        )
        normalizer = jnp.log(draw["cluster_sizes"].sum() + draw["alpha"])

        def one(row: tuple[Array, Array]) -> Array:
            ordering, log_one = row
            by_cluster = log_cluster_likelihood(
                ordering[None], draw["center"], draw["concentration"]
            )[0]
            return jnp.logaddexp(logsumexp(log_weight + by_cluster), log_empty + log_one)

        rows = jax.lax.map(one, (orderings, log_one), batch_size=batch)
        return jnp.logaddexp(total, rows - normalizer), None

    start = jnp.full(orderings.shape[0], -jnp.inf, draws["alpha"].dtype)
    return jax.lax.scan(add_draw, start, draws)[0] - jnp.log(num_draws)


def _log_plackett_luce(
    samples: Mapping[str, Any],
    new_rankings: Rankings,
    key: Array | None,
    num_new_clusters: int,
    fitted: Rankings | None,
) -> np.ndarray:
    check_whole("num_new_clusters", num_new_clusters)
    num_items = np.shape(samples["weights"])[-1]
    orderings: Any = new_rankings.orderings
    offered: Any = new_rankings.choice_sets
    if fitted is not None:
        if "unseen_weight" in samples:
            fitted = fitted.of_listed_items()
        if fitted.num_items != num_items:
            raise ValueError(
                f"the samples are of {num_items} items, the fitted rankings of {fitted.num_items}"
            )
        orderings, offered = _by_name(new_rankings, fitted)
    elif new_rankings.num_items != num_items:
        hint = ""
        if "unseen_weight" in samples:
            hint = "; pass fitted= to match items by name"
        raise ValueError(
            f"the new rankings are of {new_rankings.num_items} items, the fitted ones of "
            f"{num_items}{hint}"
        )
    if "log_joint" not in samples:
        raise ValueError(_OF_BLOCK)
    names = ("weights", "unseen_weight", "cluster_sizes", "alpha", *NEW_CLUSTERS)
    lead = np.ndim(samples["log_joint"])
    draws = {
        name: jnp.reshape(samples[name], (-1, *np.shape(samples[name])[lead:]))
        for name in names
        if name in samples
    }
    key = jax.random.key(0) if key is None else key
    new = np.asarray(orderings) == num_items
    if new.any():
        if "phi" in samples or "total_weight" in samples or "unseen_weight" not in samples:
            row, stage = (int(k[0]) for k in np.nonzero(new))
            name = new_rankings.items[int(new_rankings.orderings[row, stage])]
            raise ValueError(
                f"row {row + 1} lists {name!r}, which no fitted ranking lists: such lists can be "
                "scored under the gamma process (sigma = 0) only"
            )
        kept = {name: draws[name] for name in ("weights", "unseen_weight", "alpha")}
        return np.asarray(_mean_log_pool(key, kept, jnp.asarray(orderings)))
    values = _mean_log_plackett_luce(key, draws, jnp.asarray(orderings), offered, num_new_clusters)
    return np.asarray(values)


def _by_name(new_rankings: Rankings, fitted: Rankings) -> tuple[np.ndarray, np.ndarray | None]:
    """Orderings and choice sets in terms of the fitted items; a new item has the number K."""
    number = fitted.num_items
    numbers = {name: k for k, name in enumerate(fitted.items)}
    columns = np.array([numbers.get(name, number) for name in new_rankings.items])
    orderings = np.asarray(new_rankings.orderings)
    codes = np.where(orderings >= 0, columns[np.maximum(orderings, 0)], -1)
    if new_rankings.choice_sets is None:
        return codes, None
    offered = np.zeros((len(codes), number + 1), bool)
    offered[:, columns] = np.asarray(new_rankings.choice_sets)
    return codes, offered[:, :number]


@partial(jax.jit, static_argnames="num_new_clusters")
def _mean_log_plackett_luce(
    key: Array, draws: dict[str, Array], orderings: Array, offered: Any, num_new_clusters: int
) -> Array:
    def add_draw(total: Array, inputs: tuple[Array, dict[str, Array]]) -> tuple[Array, None]:
        key, draw = inputs
        by_cluster = log_plackett_luce_likelihood(draw, orderings, offered)
        if "cluster_sizes" not in draw:
            return jnp.logaddexp(total, by_cluster[0]), None
        sizes = draw["cluster_sizes"]
        if "phi" in draw:
            log_new = log_in_new_cluster(key, draw, orderings, offered, num_new_clusters)
            log_sizes = jnp.where(sizes > 0, jnp.log(jnp.maximum(sizes, 1)), -jnp.inf)
            old = logsumexp(log_sizes[:, None] + by_cluster, axis=0)
            both = jnp.logaddexp(old, jnp.log(draw["gamma"]) + log_new)
            return jnp.logaddexp(total, both - jnp.log(sizes.sum() + draw["gamma"])), None
        # an empty component's weights are a draw from the prior
        shares = sizes + draw["alpha"] / draw["weights"].shape[0]
        log_shares = jnp.log(shares / shares.sum())
        return jnp.logaddexp(total, logsumexp(log_shares[:, None] + by_cluster, axis=0)), None

    start = jnp.full(orderings.shape[0], -jnp.inf, draws["weights"].dtype)
    inputs = jax.random.split(key, len(draws["weights"])), draws
    return jax.lax.scan(add_draw, start, inputs)[0] - jnp.log(len(draws["weights"]))


@jax.jit
def _mean_log_pool(key: Array, draws: dict[str, Array], codes: Array) -> Array:
    """Under a gamma process, for lists some of whose items are new and have the number K.

    A new item is a size-biased draw from the unseen items, and takes a Beta(1, α) share of their
    weight.
    """
    (num_rows, _), number = codes.shape, draws["weights"].shape[-1]
    known, new = (codes >= 0) & (codes < number), codes == number
    columns = jnp.where(known, codes, number)
    rows = jnp.arange(num_rows)[:, None]
    unlisted = jnp.ones((num_rows, number)).at[rows, columns].set(0.0, mode="drop")

    def add_draw(total: Array, inputs: tuple[Array, dict[str, Array]]) -> tuple[Array, None]:
        key, draw = inputs
        log_left = jnp.log1p(-jax.random.uniform(key, codes.shape)) / draw["alpha"]
        log_left = jnp.where(new, log_left, 0.0)
        unseen = draw["unseen_weight"] * jnp.exp(jnp.cumsum(log_left, axis=1) - log_left)
        weights = jnp.append(draw["weights"], 0.0)[columns]
        in_play = jnp.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
        mass = (unlisted @ draw["weights"])[:, None] + in_play + unseen
        log_stages = jnp.log(jnp.where(new, unseen, weights) / mass)
        log_p = jnp.sum(jnp.where(codes >= 0, log_stages, 0.0), axis=1)
        return jnp.logaddexp(total, log_p), None

    num_draws = len(draws["weights"])
    inputs = jax.random.split(key, num_draws), draws
    start = jnp.full(num_rows, -jnp.inf, draws["weights"].dtype)
    return jax.lax.scan(add_draw, start, inputs)[0] - jnp.log(num_draws)
