"""Log predictive densities of new rankings."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp

from numpyro_rankings.families import RankingFamily
from numpyro_rankings.families.base import RowsT
from numpyro_rankings.families.scored import Scored, scored
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.mistakes import MISTAKE
from numpyro_rankings.posterior.draws import Draws
from numpyro_rankings.posterior.likelihood import log_terms, parameters_of
from numpyro_rankings.rankings import (
    Comparisons,
    Orders,
    PartialOrders,
    Rankings,
    RankingsError,
    check_rows,
)


def log_predictive_density(
    samples: Any,
    new_rankings: Rankings | Orders,
    num_components: int | Literal["auto"] | None = "auto",
    *,
    num_new_clusters: int = 100,
    key: Array | None = None,
    fitted: Rankings | Orders | None = None,
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
    drawn from the prior given the root, which is unbiased. Draws of
    :class:`~numpyro_rankings.infer.TemperedMixture` have the weights, their ``shares``; with
    covariates of the judges these are means over the fitted judges, or those at the average if the
    draws do not know the covariates.

    New partial orders have the probability of any of the orderings that agree with them, which is
    exact; at most 16 items may be tied or not compared, as in
    :class:`~numpyro_rankings.distributions.GeneralizedMallows`.

    :param samples: a :class:`~numpyro_rankings.Run` or :class:`numpyro.infer.MCMC` that has run,
        what :func:`~numpyro_rankings.to_inference_data` makes of it, or ``mcmc.get_samples()``,
        grouped by chain or not.
    :param new_rankings: lists, or partial orders, of the same items, no longer than those fitted; a
        list of n - 1 items counts as complete. For draws of comparisons, new comparisons too.
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
    draws = Draws.of(samples, None, num_components)
    for given in (new_rankings, *(() if fitted is None else (fitted,))):
        check_rows(given, takes_comparisons=True)
    if isinstance(new_rankings, Comparisons) and MISTAKE not in draws.samples:
        raise ValueError("the draws are not of comparisons: they have no probability of a mistake")
    check_whole("num_new_clusters", num_new_clusters)
    _check_asked(draws, num_components, fitted)
    family = draws.check_family()
    matched = _match_items(draws, family, new_rankings, fitted)
    check_lengths(draws, matched)
    key = jax.random.key(0) if key is None else key
    by_draw = parameters_of(draws)
    if (np.asarray(matched.table) == draws.num_items).any():
        names = (*family.parameters, "alpha")
        by_draw = {name: by_draw[name] for name in names}
        return np.asarray(_mean_with_new_items(key, by_draw, matched.table, family))
    distinct, row_of_given = matched.merged()
    rows, number = scored(family, distinct), draws.num_components
    values = mean_log_rows(key, by_draw, rows, family, number, num_new_clusters)
    return np.asarray(values)[row_of_given]


def _check_asked(
    draws: Draws,
    num_components: int | Literal["auto"] | None,
    fitted: Rankings | Orders | None,
) -> None:
    """Refuse draws that do not determine the density, and arguments that do not go with them."""
    family = draws.check_family()
    if draws.sites is not None or (family.matches_items and not draws.is_by_itself):
        raise ValueError("the samples must be those of a kernel by itself, not of a block of Gibbs")
    if draws.lacks_empty and not family.has_marginal:
        raise ValueError(
            "the posterior has no weights for components that are empty in a draw: pass the run, "
            "or mcmc.get_samples()"
        )
    if fitted is not None and not family.matches_items:
        raise ValueError("fitted is for draws of a Plackett–Luce kernel")
    if len(family.partitions) == 1:
        if num_components not in ("auto", None):
            raise ValueError("num_components is for draws of a Mallows kernel only")
        return
    check_partition(draws)
    slots = draws.num_slots
    if num_components is None and not draws.kernel and draws.samples["cluster_sizes"].all():
        raise ValueError(
            f"all {slots} clusters are occupied in all draws, so the draws are of a mixture of "
            f"{slots} components, or max_clusters of the Dirichlet process was too small: pass the "
            f"run instead of its samples, or num_components={slots}"
        )


def check_partition(draws: Draws) -> None:
    """Refuse samples that do not say of which prior of the labels they are."""
    if draws.partition == "unknown":
        raise ValueError(
            f"the samples do not say whether they are of a mixture of {draws.num_slots} components "
            "or of a Dirichlet process: pass the run instead of its samples, or num_components=, "
            "None for the process"
        )


def check_lengths(draws: Draws, rows: Rankings | Orders) -> None:
    """Refuse lists that are longer than those that were fitted."""
    lengths = np.asarray(rows.lengths)
    if lengths.max() > (most := draws.check_family().most_listed(draws.samples)):
        raise ValueError(
            f"row {lengths.argmax() + 1} lists {lengths.max()} items, but the fitted lists had at "
            f"most {most}, so later stages have no concentrations: shorten the list"
        )


def _match_items(
    draws: Draws,
    family: RankingFamily,
    new_rankings: Rankings | Orders,
    fitted: Rankings | Orders | None,
) -> Rankings | Orders:
    """Return the new rankings in terms of the fitted items; a new item has the number n."""
    number = draws.num_items
    if fitted is None:
        if new_rankings.num_items != number:
            hint = "; pass fitted= to match items by name" if family.has_pool else ""
            raise ValueError(
                f"the new rankings are of {new_rankings.num_items} items, the fitted ones of "
                f"{number}{hint}"
            )
        return prepared(family, new_rankings)
    fitted = family.described(fitted)
    if fitted.num_items != number:
        raise ValueError(
            f"the samples are of {number} items, the fitted rankings of {fitted.num_items}"
        )
    matched = by_name(new_rankings, fitted.items)
    new, is_partial = np.asarray(matched.table) == number, matched.are_partial
    if new.any() and (is_partial or not family.takes_new_items(draws.samples)):
        row, stage = (int(k[0]) for k in np.nonzero(new))
        name = new_rankings.items[int(new_rankings.table[row, stage])]
        which = "rankings" if is_partial else "lists"
        raise ValueError(
            f"row {row + 1} lists {name!r}, which no fitted ranking lists: such {which} can be "
            "scored under the gamma process (sigma = 0) only"
        )
    return prepared(family, matched)


def prepared(family: RankingFamily, rows: Rankings | Orders) -> Rankings | Orders:
    """Return rows of the items of the draws as the family scores them."""
    if isinstance(rows, Rankings):
        if rows.choice_sets is None or family.takes_choice_sets:
            return rows
        if not family.scores_orders:
            raise RankingsError(
                f"items were not offered to some judges, which {family.title} models do not take: "
                f"give rankings of all {rows.num_items} items"
            )
        rows = PartialOrders.from_rankings(rows)
    return family.prepared(rows)


def by_name(new: RowsT, fitted: Sequence[str]) -> RowsT:
    """Return the new rankings in terms of the fitted items; a new item has the number K."""
    number, numbers = len(fitted), {name: k for k, name in enumerate(fitted)}
    columns = np.array([numbers.get(name, number) for name in new.items])
    (_, *others), (*kind, _, _, size) = new.tree_flatten()
    table = np.asarray(new.table)
    table = np.where(table >= 0, columns[np.maximum(table, 0)], -1).astype(np.int32)
    if not isinstance(new, Comparisons) and new.choice_sets is not None:
        offered = np.zeros((len(table), number + 1), bool)
        offered[:, columns] = np.asarray(new.choice_sets)
        others[-1] = offered[:, :number]
    return new._make((table, *others), (*kind, number, tuple(fitted), size))


@partial(jax.jit, static_argnames=("family", "num_components", "num_new_clusters"))
def mean_log_rows(
    key: Array,
    draws: dict[str, Array],
    rows: Scored,
    family: RankingFamily,
    num_components: int | None,
    num_new_clusters: int,
) -> Array:
    """Return the log of the mean probability of each row over the draws, (rows,)."""

    def one_draw(key: Array, draw: dict[str, Array]) -> Array:
        terms = log_terms_of_rows(key, draw, rows, family, num_components, num_new_clusters)
        return logsumexp(terms, axis=0)

    return _mean_over_draws(key, draws, rows.num_rows, one_draw)


def log_terms_of_rows(
    key: Array,
    draw: dict[str, Array],
    rows: Scored,
    family: RankingFamily,
    num_components: int | None,
    num_new_clusters: int,
) -> Array:
    """Return :func:`~numpyro_rankings.posterior.likelihood.log_terms` of rows in one draw."""
    log_new = None
    if family.has_marginal and {"cluster_sizes", "prior_scale"} <= set(draw):
        log_new = rows.log_new_cluster(family, key, draw, num_new_clusters)
    return log_terms(draw, rows.log_rows(family, draw), log_new, num_components)


@partial(jax.jit, static_argnames="family")
def _mean_with_new_items(
    key: Array, draws: dict[str, Array], orderings: Array, family: RankingFamily
) -> Array:
    log_rows = partial(family.log_rows_with_new_items, orderings=orderings)
    return _mean_over_draws(key, draws, len(orderings), log_rows)


def _mean_over_draws(
    key: Array,
    draws: dict[str, Array],
    num_rows: int,
    log_rows: Callable[[Array, dict[str, Array]], Array],
) -> Array:
    """Return the log of the mean of the probabilities over the draws, (rows,)."""
    num_draws, dtype = next((len(x), x.dtype) for x in draws.values() if x.dtype.kind == "f")

    def add_draw(total: Array, inputs: tuple[Array, dict[str, Array]]) -> tuple[Array, None]:
        return jnp.logaddexp(total, log_rows(*inputs)), None

    start = jnp.full(num_rows, -jnp.inf, dtype)
    inputs = jax.random.split(key, num_draws), draws
    return jax.lax.scan(add_draw, start, inputs)[0] - jnp.log(num_draws)
