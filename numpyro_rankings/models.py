"""The generative NumPyro models of the kernels."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpyro import handlers
from numpyro.primitives import Messenger

from numpyro_rankings.components.family import (
    Augmented,
    AugmentedFamily,
    Family,
    num_points,
    with_awaited,
)
from numpyro_rankings.distributions import (
    ChineseRestaurantProcess,
    DistanceDependentCRP,
    FiniteDirichletPartition,
    GeneralizedMallows,
    MallowsConcentrationPrior,
    PlackettLuceTies,
    RandomPermutation,
    ScaledDirichlet,
    TopTPlackettLuce,
    links_to_partition,
)
from numpyro_rankings.links.decays import Decay
from numpyro_rankings.links.distances import as_neighbors
from numpyro_rankings.ops.links import representatives
from numpyro_rankings.ops.mistakes import LARGEST, MistakePrior
from numpyro_rankings.ops.random_measures import (
    ClusterShares,
    RootMeasure,
    log_gamma_process,
    log_pitt_walker,
)
from numpyro_rankings.ops.sums import count_by_label
from numpyro_rankings.rankings import (
    Games,
    JudgeCovariates,
    Orders,
    PartialOrders,
    Rankings,
    num_stages,
)

_NEARLY_ZERO = 1e-30


def mallows_mixture(
    rankings: Rankings,
    *,
    alpha: float | dist.Distribution = 1.0,
    nu: Any = 1.0,
    r: Any = 1.0,
    concentration_prior: dist.Distribution | None = None,
    tied: bool = False,
    num_components: int | None = None,
    max_clusters: int = 64,
) -> None:
    r"""
    Mixture of generalized Mallows models of top-t rankings, with explicit labels.

    .. math::
        c_{1:N} \sim \mathrm{CRP}(α), \quad σ_c \sim \mathrm{Uniform}, \quad
        θ_{cj} \sim p_0, \quad π_i \mid c_i = c \sim \mathrm{GM}(σ_c, θ_c).

    Sites: ``alpha`` (if it is a distribution), ``assignments`` (N,), ``center`` (C, n),
    ``concentration`` (C, T), and the observed ``rankings`` (N, T). Slots without rankings do not
    contribute to the density.

    :param rankings: complete or top-t rankings of all items.
    :param alpha: concentration of the partition, a number or a prior.
    :param nu: prior sample size of the conjugate prior, a scalar or (T,).
    :param r: prior mean code of the conjugate prior, a scalar or (T,).
    :param concentration_prior: univariate prior of θ that replaces the conjugate one.
    :param tied: whether all stages of a cluster share one θ.
    :param num_components: K of a finite mixture with symmetric Dirichlet(α/K) weights, 1 for a
        single population; None for the Dirichlet process.
    :param max_clusters: number of slots of the Dirichlet process.

    **References:**

    1. Meilă, M., Chen, H. (2010), "Dirichlet process mixtures of generalized Mallows models", UAI.
    """
    n, stages, size = rankings.num_items, num_stages(rankings), rankings.num_rankings
    slots = max_clusters if num_components is None else num_components
    if num_components == 1:
        assignments = jnp.zeros(size, jnp.int32)
    else:
        if isinstance(alpha, dist.Distribution):
            alpha = numpyro.sample("alpha", alpha)
        assignments = numpyro.sample(
            "assignments",
            ChineseRestaurantProcess(alpha, size, max_clusters=slots)
            if num_components is None
            else FiniteDirichletPartition(alpha, num_components, size),
            infer={"event_dims": ["ranking"]},
        )
    cluster_sizes = count_by_label(assignments, slots)
    with (
        numpyro.plate("cluster", slots, dim=-1),
        handlers.mask(mask=cluster_sizes > 0),
    ):
        center, concentration = sample_mallows_component(
            nu, r, concentration_prior, tied, n, stages
        )
    orderings = rankings.orderings[rankings.row_index, :stages]
    # a kernel works with sums of codes; only a replay of this model expands the rankings
    with numpyro.plate("ranking", size, dim=-1):
        numpyro.sample(
            "rankings",
            GeneralizedMallows(center[assignments], concentration[assignments]),
            obs=orderings,
            infer={"event_dims": ["stage"]},
        )


def sample_mallows_component(
    nu: Any, r: Any, prior: dist.Distribution | None, tied: bool, num_items: int, stages: int
) -> tuple[Array, Array]:
    """Sample the center and the concentrations of a Mallows model, in the plate of the caller."""
    uniform = RandomPermutation(num_items)
    center = numpyro.sample("center", uniform, infer={"event_dims": ["place"]})
    if tied:
        shared = numpyro.sample("shared_concentration", prior)
        return center, jnp.broadcast_to(shared[..., None], (*shared.shape, stages))
    if prior is None:
        joint: dist.Distribution = MallowsConcentrationPrior(nu, r, num_items, stages)
    else:
        joint = prior.expand((stages,)).to_event(1)
    return center, numpyro.sample("concentration", joint, infer={"event_dims": ["stage"]})


def default_share_concentration(num_items: int, num_rankings: Any) -> Array:
    """Return κ of shares whose components the prior keeps occupied: log n! / 2, from 1 to N/20."""
    # A component that the data do not tell from another one costs its center, log n! nats, at once.
    most = max(math.lgamma(num_items + 1.0) / 2, 1.0)
    return jnp.clip(jnp.asarray(num_rankings, float) / 20.0, 1.0, most)


def tempered_mixture(
    rankings: Rankings,
    covariates: JudgeCovariates | None = None,
    *,
    sample_component: Callable[[Rankings], dist.Distribution],
    num_components: int,
    share_concentration: float | None = None,
    power: float = 1.0,
    effective_size: float | None = None,
    has_plate: bool = True,
    effect_scale: float = 1.0,
) -> None:
    r"""
    Finite mixture with the labels summed out, whose likelihood has a power z.

    .. math:: w \sim \mathrm{Dirichlet}(κ, …, κ), \quad
        p(π_{1:N} | w, η)^z = \prod_i \Bigl(\sum_c w_c\, p(π_i | η_c)\Bigr)^z.

    With covariates :math:`x_i` of the judges, the shares of a judge are proportional to
    :math:`w_c \exp(x_i'β_c)`, and :math:`β_{cj} \sim \mathrm{Normal}(0, s)`.

    Sites: ``shares`` (K,), those of the components, (K, …), the observed ``rankings`` (N, T), and
    with covariates ``share_effects`` (K, p).

    :param rankings: as the components take them; where judges have survey weights, the power of
        each is z times its scaled weight.
    :param covariates: of the judges, or None.
    :param sample_component: samples the parameters of a component, in the plate of the components,
        and returns the distribution of the rankings, of batch shape (K,) or (N, K).
    :param num_components: K.
    :param share_concentration: κ, by default half of log n!, from 1 to N/20.
    :param power: z.
    :param effective_size: z times the number of rankings, instead of z.
    :param has_plate: whether the sites have an axis of the components, of which one may do without.
    :param effect_scale: s.
    """
    size = rankings.num_rankings
    kappa: Any = share_concentration
    if kappa is None:
        kappa = default_share_concentration(rankings.num_items, rankings.effective_number)
    prior = dist.Dirichlet(jnp.full(num_components, kappa, float))
    shares = numpyro.sample("shares", prior, infer={"event_dims": ["component"]})
    if has_plate:
        with numpyro.plate("cluster", num_components, dim=-1):
            component = sample_component(rankings)
        choice = dist.Categorical(shares)
        if covariates is not None:
            shape = num_components, covariates.design.shape[1]
            prior = dist.Normal(0.0, effect_scale).expand(shape).to_event(2)
            event_dims = {"event_dims": ["component", "covariate"]}
            effects = numpyro.sample("share_effects", prior, infer=event_dims)
            linear = jnp.dot(covariates.design, effects.T, precision="highest") + jnp.log(shares)
            choice = dist.Categorical(logits=linear[covariates.cells])
            component = component.expand((size, num_components))
        mixture = dist.MixtureSameFamily(choice, component)
    else:
        mixture = component = sample_component(rankings)
    scale: Any = power
    if effective_size is not None:
        scale = effective_size / rankings.effective_number
    if rankings.weights is not None:  # a scale must be positive
        scale = scale * jnp.maximum(rankings.weights[rankings.row_index], _NEARLY_ZERO)
    stages = component.event_shape[0]
    with numpyro.plate("ranking", size, dim=-1), handlers.scale(scale=scale):
        numpyro.sample(
            "rankings",
            mixture,
            obs=rankings.orderings[rankings.row_index, :stages],
            infer={"event_dims": ["stage"]},
        )


def plackett_luce(
    rankings: Rankings,
    *,
    shape: Any = 1.0,
    num_components: int = 1,
    alpha: float | dist.Distribution = 1.0,
) -> None:
    r"""
    Plackett–Luce model of top-t or subset rankings, or a finite mixture of it with explicit labels.

    Weights :math:`w_k \sim \mathrm{Gamma}(a_k, b)`, once normalised, have a Dirichlet(a)
    distribution for any b, and the likelihood depends on the normalised weights only.

    Sites: ``weights`` (n,) and the observed ``rankings`` (N, T); with K > 1 components ``weights``
    (K, n), ``assignments`` (N,), and ``alpha`` if it is a distribution. Components without rankings
    do not contribute to the density.

    :param rankings: top-t rankings of all items, or of choice sets.
    :param shape: a, a number or one for each item, (n,).
    :param num_components: K.
    :param alpha: the components have symmetric Dirichlet(α/K) shares; a number or a prior.

    **References:**

    1. Caron, F., Teh, Y. W., Murphy, T. B. (2014), "Bayesian nonparametric Plackett–Luce models
       for the analysis of preferences for college degree programmes", Section 3.1.
    """
    n, size = rankings.num_items, rankings.num_rankings
    prior = dist.Dirichlet(jnp.broadcast_to(jnp.asarray(shape, float), (n,)))
    if num_components == 1:
        weights = numpyro.sample("weights", prior, infer={"event_dims": ["item"]})
    else:
        if isinstance(alpha, dist.Distribution):
            alpha = numpyro.sample("alpha", alpha)
        assignments = numpyro.sample(
            "assignments",
            FiniteDirichletPartition(alpha, num_components, size),
            infer={"event_dims": ["ranking"]},
        )
        cluster_sizes = count_by_label(assignments, num_components)
        with (
            numpyro.plate("cluster", num_components, dim=-1),
            handlers.mask(mask=cluster_sizes > 0),
        ):
            weights = numpyro.sample("weights", prior, infer={"event_dims": ["item"]})
        weights = weights[assignments]
    _observe_lists(rankings, weights)


def _observe_lists(rankings: Rankings, weights: Array) -> None:
    """Observe lists whose items have these weights, (n,) or (N, n)."""
    offered = rankings.choice_sets
    with numpyro.plate("ranking", rankings.num_rankings, dim=-1):
        numpyro.sample(
            "rankings",
            TopTPlackettLuce(
                jnp.log(weights),
                rankings.orderings.shape[1],
                choice_set=None if offered is None else offered[rankings.row_index],
            ),
            obs=rankings.orderings[rankings.row_index],
            infer={"event_dims": ["stage"]},
        )


def plackett_luce_regression(
    rankings: Rankings,
    item_covariates: Any,
    *,
    shape: float | dist.Distribution = 1.0,
    effect_scale: float = 1.0,
) -> None:
    r"""
    Plackett–Luce model of top-t or subset rankings whose weights depend on covariates of the items.

    .. math:: w_k = e^{x_k'β} g_k, \quad g_k \sim \mathrm{Gamma}(a, 1), \quad
        β_j \sim \mathrm{Normal}(0, τ^2).

    Sites: ``item_effects`` β (p,), ``residual_shape`` (if it is a distribution), the normalised
    ``weights`` (n,), and the observed ``rankings`` (N, T).

    :param rankings: top-t rankings of all items, or of choice sets.
    :param item_covariates: x, (n, p). There is no intercept, which would change no probability.
    :param shape: a, a number or a prior.
    :param effect_scale: τ.
    """
    covariates = jnp.asarray(item_covariates, float)
    effects = numpyro.sample(
        "item_effects",
        dist.Normal(0.0, effect_scale).expand((covariates.shape[1],)).to_event(1),
        infer={"event_dims": ["covariate"]},
    )
    if isinstance(shape, dist.Distribution):
        shape = numpyro.sample("residual_shape", shape)
    prior = ScaledDirichlet(shape, jnp.dot(covariates, effects, precision="highest"))
    weights = numpyro.sample("weights", prior, infer={"event_dims": ["item"]})
    _observe_lists(rankings, weights)


def plackett_luce_ties(
    orders: PartialOrders,
    *,
    shape: Any = 1.0,
    tie_prior: dist.Distribution | None = None,
    num_components: int = 1,
    share_concentration: float = 1.0,
) -> None:
    r"""
    Davidson–Luce model of orders with true ties, whose strengths are sampled, for NUTS.

    A tie is a choice of its own, of a set of items, and not "no opinion": see
    :class:`~numpyro_rankings.distributions.PlackettLuceTies`. The weights are Dirichlet(a). The
    labels of a mixture are summed out. Its components are interchangeable: chains may number them
    differently.

    Sites: ``weights`` (n,), normalised, and ``tie_strengths`` :math:`δ_2, …, δ_D`, (D - 1,), where
    D is the size of the largest tie, at least 2; with K > 1 components ``shares`` (K,), ``weights``
    (K, n) and ``tie_strengths`` (K, D - 1). The observed ``orders`` have a row for each row of the
    data, whose density is raised to its count; ``orders.expand()`` has one for each judge.

    :param orders: each row an order of buckets, for instance tops, subsets or pairs. They cannot be
        arguments of a compiled function (``jit_model_args``).
    :param shape: a, a number or one for each item, (n,).
    :param tie_prior: of each δ, by default LogNormal(0, 1): two items of the same weight, alone,
        are tied with a probability of :math:`δ_2 / (2 + δ_2)`, 1/3 in the median and from 0.09 to
        0.72 with probability 0.9.
    :param num_components: K.
    :param share_concentration: κ, of symmetric Dirichlet(κ) shares of the components.
    :raises RankingsError: for a row that is no order of buckets.

    **References:**

    1. Turner, H. L., van Etten, J., Firth, D., Kosmidis, I. (2020), "Modelling rankings in R: the
       PlackettLuce package", Computational Statistics.

    .. doctest::

       >>> import jax
       >>> from numpyro.infer import MCMC, NUTS
       >>> from numpyro_rankings import PartialOrders
       >>> from numpyro_rankings.models import plackett_luce_ties
       >>> orders = PartialOrders.from_buckets(
       ...     [["a", ["b", "c"]], [["a", "b"], "c"], ["c", "a", "b"]], items=["a", "b", "c"]
       ... )
       >>> mcmc = MCMC(NUTS(plackett_luce_ties), num_warmup=50, num_samples=50, progress_bar=False)
       >>> mcmc.run(jax.random.key(0), orders)
       >>> mcmc.get_samples()["tie_strengths"].shape
       (50, 1)
    """
    with jax.ensure_compile_time_eval():  # they are known also while something is traced
        levels, offered = np.asarray(orders.levels_of_items()), orders.offered()
    row, item = np.nonzero(levels >= 0)
    buckets = row * orders.num_items + levels[row, item]
    largest = max(2, *np.unique(buckets, return_counts=True)[1].tolist())
    prior = dist.Dirichlet(jnp.broadcast_to(jnp.asarray(shape, float), (orders.num_items,)))
    of_ties = dist.LogNormal(0.0, 1.0) if tie_prior is None else tie_prior

    def sample_component() -> tuple[Array, Array]:
        weights = numpyro.sample("weights", prior, infer={"event_dims": ["item"]})
        joint = of_ties.expand((largest - 1,)).to_event(1)
        ties = numpyro.sample("tie_strengths", joint, infer={"event_dims": ["tie_size"]})
        return jnp.log(weights), jnp.log(ties)

    if num_components == 1:
        likelihood: dist.Distribution = PlackettLuceTies(*sample_component(), offered)
    else:
        kappa = jnp.full(num_components, share_concentration, float)
        shares = numpyro.sample(
            "shares", dist.Dirichlet(kappa), infer={"event_dims": ["component"]}
        )
        with numpyro.plate("cluster", num_components, dim=-1):
            component = sample_component()
        sets = None if offered is None else offered[:, None]
        likelihood = dist.MixtureSameFamily(
            dist.Categorical(shares), PlackettLuceTies(*component, sets)
        )
    with numpyro.plate("row", orders.num_rows, dim=-1), handlers.scale(scale=orders.counts):
        numpyro.sample("orders", likelihood, obs=levels, infer={"event_dims": ["item"]})


def bradley_terry(
    games: Games,
    *,
    shape: Any = 1.0,
    home_prior: dist.Distribution | None = None,
    tie_prior: dist.Distribution | None = None,
) -> None:
    r"""
    Bradley–Terry model of games of two items, with ties and an advantage at home, for NUTS.

    Item i, at home, wins against item j, ties, or loses with probabilities proportional to
    :math:`γ w_i`, :math:`δ \sqrt{γ w_i w_j}` and :math:`w_j`, as in
    :func:`~numpyro_rankings.bradley_terry_map`. The weights are Dirichlet(a).

    Sites: ``weights`` (n,), normalised; ``home_advantage`` γ, if some item was at home;
    ``tie_strength`` δ, if there are ties; and the observed ``results``, (rows, 2) or (rows, 3).
    Without home and ties it is the posterior of :class:`~numpyro_rankings.infer.PlackettLuceGibbs`
    with partial orders of two items, which has no steps to tune and is faster.

    :param games: counted games.
    :param shape: a, a number or one for each item, (n,).
    :param home_prior: of γ, by default LogNormal(0, 1): between two items of the same weight the
        one at home wins with probability :math:`γ / (1 + γ)`, 1/2 in the median and from 0.16 to
        0.84 with probability 0.9.
    :param tie_prior: of δ, by default LogNormal(0, 1), as in :func:`plackett_luce_ties`.
    :raises TypeError: for other data than games.

    **References:**

    1. Davidson, R. R., Beaver, R. J. (1977), "On extending the Bradley–Terry model to incorporate
       within-pair order effects", Biometrics 33.

    .. doctest::

       >>> import jax
       >>> import pandas as pd
       >>> from numpyro.infer import MCMC, NUTS
       >>> from numpyro_rankings import Games
       >>> from numpyro_rankings.models import bradley_terry
       >>> table = pd.DataFrame({"home": ["x", "y", "x"], "away": ["y", "x", "y"], "won": [*"HHD"]})
       >>> games = Games.from_pairs(table, winner="won", pair=("home", "away"), home="home")
       >>> mcmc = MCMC(NUTS(bradley_terry), num_warmup=50, num_samples=50, progress_bar=False)
       >>> mcmc.run(jax.random.key(0), games)
       >>> sorted(mcmc.get_samples())
       ['home_advantage', 'tie_strength', 'weights']
    """
    if not isinstance(games, Games):
        raise TypeError(
            f"games must be Games, got {type(games).__name__}: Games.from_pairs counts those of a "
            "table, and Games.from_orders those of partial orders"
        )
    prior = dist.Dirichlet(jnp.broadcast_to(jnp.asarray(shape, float), (games.num_items,)))
    weights = numpyro.sample("weights", prior, infer={"event_dims": ["item"]})
    first, second = jnp.log(weights)[games.pairs.T]
    if games.at_home is not None:
        of_home = dist.LogNormal(0.0, 1.0) if home_prior is None else home_prior
        first += games.at_home * jnp.log(numpyro.sample("home_advantage", of_home))
    scores = [first, second]
    if games.has_ties:
        of_ties = dist.LogNormal(0.0, 1.0) if tie_prior is None else tie_prior
        scores.append(jnp.log(numpyro.sample("tie_strength", of_ties)) + (first + second) / 2)
    likelihood = dist.Multinomial(
        games.results.sum(1), logits=jnp.stack(scores, axis=-1), total_count_max=games.num_games
    )
    with numpyro.plate("row", len(games.pairs), dim=-1):
        numpyro.sample("results", likelihood, obs=games.results, infer={"event_dims": ["result"]})


def gamma_process_plackett_luce(
    rankings: Rankings,
    *,
    alpha: Any = 1.0,
    tau: float = 1.0,
    sigma: float = 0.0,
) -> None:
    r"""
    Nonparametric Plackett–Luce model: an endless pool of items whose weights are the atoms of a
    (generalised) gamma process. The rankings show K of them.

    The normalised weights are :math:`p_k` for each of the K listed items and :math:`p_*` for all
    others together. Their density is that of the process times the likelihood. The density of the
    process alone is not normalised, because no item is listed before there are rankings:

    .. math:: p(p_1, …, p_K, p_*) = α^K p_*^{α-1} \prod_k p_k^{-1}.

    For σ > 0 the total of the weights is a further variable. Then :math:`w = p \cdot` total has the
    density :math:`f(w_*) \prod_k λ(w_k)` of (31), with
    :math:`λ(w) = \frac{α}{Γ(1-σ)} w^{-1-σ} e^{-τw}` and the density f of an exponentially tilted
    stable variable.

    Sites: ``alpha`` (if it is a distribution), ``weights`` (K,), in item order, ``unseen_weight``,
    for σ > 0 ``total_weight``, and the observed ``rankings`` (N, T). The prior cannot be sampled,
    because ``weights`` belong to the items that the rankings list.

    :param rankings: top-t rankings; items that none of them lists count as unseen.
    :param alpha: concentration of the process, a number or a prior.
    :param tau: inverse scale τ; with σ = 0 the normalised weights do not depend on it.
    :param sigma: index σ of the generalised gamma process, 0 <= σ < 1.

    **References:**

    1. Caron, F., Teh, Y. W., Murphy, T. B. (2014), "Bayesian nonparametric Plackett–Luce models
       for the analysis of preferences for college degree programmes", Section 4, Appendix C.
    """
    rankings = rankings.of_listed_items()
    if isinstance(alpha, dist.Distribution):
        alpha = numpyro.sample("alpha", alpha)
    alpha = numpyro.deterministic("process_concentration", jnp.asarray(alpha, float))
    shares = dist.constraints.unit_interval
    item = {"event_dims": ["item"]}
    weights = numpyro.sample(
        "weights", dist.ImproperUniform(shares, (), (rankings.num_items,)), infer=item
    )
    unseen = numpyro.sample("unseen_weight", dist.ImproperUniform(shares, (), ()))
    total = None
    if sigma > 0:
        total = numpyro.sample(
            "total_weight", dist.ImproperUniform(dist.constraints.positive, (), ())
        )
    _factor("process", log_gamma_process(weights, unseen, total, alpha, tau, sigma))
    with numpyro.plate("ranking", rankings.num_rankings, dim=-1):
        numpyro.sample(
            "rankings",
            TopTPlackettLuce(jnp.log(weights), rankings.orderings.shape[1], jnp.log(unseen)),
            obs=rankings.orderings[rankings.row_index],
            infer={"event_dims": ["stage"]},
        )


class _LatentRankings(Messenger):
    """Take the rankings of a model as latent, and remember their value."""

    value: Array

    def process_message(self, msg: dict) -> None:
        if msg["type"] == "sample" and msg["name"] == "rankings":
            msg["is_observed"], msg["value"] = False, None
            if msg["kwargs"]["rng_key"] is None:
                msg["kwargs"]["rng_key"] = numpyro.prng_key()

    def postprocess_message(self, msg: dict) -> None:
        if msg["type"] == "sample" and msg["name"] == "rankings":
            self.value = msg["value"]


def of_latent_orders(
    model: Callable[..., Any],
    prepare: Callable[[Any], Any],
    mistake_prior: MistakePrior,
    data: Rankings | Orders,
    *further: Any,
    **named: Any,
) -> Any:
    """A model of rankings that also takes partial orders and comparisons.

    The site ``rankings`` is then latent. The density is 0 where it does not agree with partial
    orders. Comparisons have the further site ``mistake_probability``.

    :param model: of rankings.
    :param prepare: returns the partial orders, or the comparisons, as the model takes them.
    :param mistake_prior: of ``mistake_probability``.
    :param further: arguments of the model, and **named** ones.
    """
    if isinstance(data, Rankings):
        return model(data, *further, **named)
    orders = prepare(data).expand()
    with (latent := _LatentRankings()):
        result = model(orders.with_orderings(orders.listed), *further, **named)
    if isinstance(orders, PartialOrders):
        _factor("orders", jnp.where(orders.agree(latent.value), 0.0, -jnp.inf).sum())
        return result
    support = dist.constraints.interval(0.0, LARGEST)
    mistake = numpyro.sample("mistake_probability", dist.ImproperUniform(support, (), ()))
    mistakes = orders.count_mistakes(latent.value).sum(dtype=jnp.int32)
    others = orders.wins.sum(dtype=jnp.int32) - mistakes
    _factor("comparisons", mistake_prior.log_joint(mistake, mistakes, others)[0])
    return result


def _factor(name: str, log_factor: Array) -> None:
    """The same as ``numpyro.factor``, which fails if ArviZ 1.x is imported before NumPyro."""
    unit = dist.Unit(log_factor)
    numpyro.sample(name, unit, obs=unit.sample(None), infer={"is_auxiliary": True})


def dp_plackett_luce(
    rankings: Rankings,
    *,
    alpha: Any = 1.0,
    phi: Any = 1.0,
    gamma: Any = 1.0,
    tau: float = 1.0,
    max_clusters: int = 64,
    validate_args: bool | None = None,
) -> Array:
    r"""
    Dirichlet process mixture of nonparametric Plackett–Luce models that share their items.

    The items are the atoms of a root gamma process :math:`G_0`; each cluster has

    .. math:: u_{jk} \sim \mathrm{Poisson}(φ w_{0k}), \qquad
        w_{jk} \sim \mathrm{Gamma}(u_{jk}, τ + φ), \text{ or } 0 \text{ if } u_{jk} = 0,

    and the same for the items that no ranking lists, with shape :math:`α + u_{j*}`. The u are
    summed out here. Every listed item is taken to be an atom of the root.

    Sites: ``alpha``, ``phi``, ``gamma`` (those that have priors), ``assignments`` (N,),
    ``root_weights`` (K,) and ``root_unseen_weight``, not normalised, ``weights`` (C, K) and
    ``unseen_weight`` (C,), normalised, ``total_weight`` (C,), and the observed ``rankings``. The
    prior cannot be sampled.

    :param rankings: top-t rankings; items that none of them lists count as unseen.
    :param alpha: concentration of the root process and of the processes of the clusters; like
        **phi** and **gamma** a number or a prior.
    :param phi: how closely the clusters resemble the root.
    :param gamma: concentration of the Dirichlet process.
    :param tau: inverse scale τ.
    :param max_clusters: number of slots.
    :param validate_args: whether the prior of the labels validates them, NumPyro's setting by
        default. False if labels are names of slots, as in a model with ``judge_sites``.
    :return: the labels, (N,).

    **References:**

    1. Caron, F., Teh, Y. W., Murphy, T. B. (2014), "Bayesian nonparametric Plackett–Luce models
       for the analysis of preferences for college degree programmes", Section 5.
    """
    rankings = rankings.of_listed_items()
    values = {}
    for name, value in (("alpha", alpha), ("phi", phi), ("gamma", gamma)):
        if isinstance(value, dist.Distribution):
            value = numpyro.sample(name, value)
        values[name] = numpyro.deterministic(f"process_{name}", jnp.asarray(value, float))
    size, number = rankings.num_rankings, rankings.num_items
    assignments = numpyro.sample(
        "assignments",
        ChineseRestaurantProcess(
            values["gamma"], size, max_clusters=max_clusters, validate_args=validate_args
        ),
        infer={"event_dims": ["ranking"]},
    )
    cluster_sizes = count_by_label(assignments, max_clusters)
    positive, shares = dist.constraints.positive, dist.constraints.unit_interval
    item, slots = {"event_dims": ["item"]}, max_clusters

    def improper(
        name: str, support: Any, batch: tuple = (), event: tuple = (), **infer: Any
    ) -> Array:
        return numpyro.sample(name, dist.ImproperUniform(support, batch, event), infer=infer)

    root = improper("root_weights", positive, (), (number,), **item)
    root_unseen = improper("root_unseen_weight", positive)
    with numpyro.plate("cluster", slots, dim=-1):
        weights = improper("weights", shares, (slots,), (number,), **item)
        unseen = improper("unseen_weight", shares, (slots,))
        total = improper("total_weight", positive, (slots,))
    process = log_pitt_walker(
        RootMeasure(root, root_unseen),
        ClusterShares(weights, unseen, total),
        cluster_sizes > 0,
        values["alpha"],
        values["phi"],
        tau,
    )
    _factor("process", process)
    # a cluster cannot list an item that is not one of its atoms
    log_weights = jnp.where(weights > 0, jnp.log(jnp.where(weights > 0, weights, 1.0)), -1e30)
    with numpyro.plate("ranking", size, dim=-1):
        numpyro.sample(
            "rankings",
            TopTPlackettLuce(
                log_weights[assignments],
                rankings.orderings.shape[1],
                jnp.log(unseen[assignments]),
            ),
            obs=rankings.orderings[rankings.row_index],
            infer={"event_dims": ["stage"]},
        )
    return assignments


def conjugate_mixture(
    data: Any,
    *,
    family: Family,
    alpha: float | dist.Distribution = 1.0,
    discount: float = 0.0,
    max_clusters: int = 64,
) -> None:
    r"""
    Mixture of a conjugate family over the partitions of a Dirichlet or Pitman–Yor process.

    .. math:: c_{1:N} \sim \mathrm{CRP}(α, d), \quad p(x \mid c) = \prod_c p(x_{i: c_i = c}),

    with the parameters of the clusters integrated out. Sites: ``alpha`` (if it is a distribution),
    ``assignments`` (N,), and the factor ``data``.

    :param data: data in the form that the family takes.
    :param family: family of the components.
    :param alpha: concentration, a number or a prior.
    :param discount: d, 0 for the Dirichlet process.
    :param max_clusters: number of slots.

    **References:**

    1. Antoniak, C. E. (1974), "Mixtures of Dirichlet processes with applications to Bayesian
       nonparametric problems", Annals of Statistics.
    """
    data, log_rest = _augment(family, data)
    points = family.statistics(data)
    if isinstance(alpha, dist.Distribution):
        alpha = numpyro.sample("alpha", alpha)
    prior = ChineseRestaurantProcess(alpha, num_points(points), discount, max_clusters=max_clusters)
    labels = numpyro.sample("assignments", prior, infer={"event_dims": ["point"]})
    clusters = family.of_clusters(points, labels, max_clusters)
    _factor("data", family.log_marginal(clusters).sum() + log_rest)


def _augment(family: Family, data: Any) -> tuple[Any, Array | float]:
    """Sample the family's auxiliary variables; the log factor returned corrects their prior."""
    if not isinstance(family, AugmentedFamily):
        return data, 0.0
    prior = family.auxiliary_prior(data)
    auxiliary = numpyro.sample(family.site, prior)
    data = Augmented(data, auxiliary)
    return data, family.log_base(data) - prior.log_prob(auxiliary)


def ddcrp_mixture(
    data: Any,
    distances: Any,
    *,
    family: Family,
    alpha: float | dist.Distribution = 1.0,
    decay: Decay,
) -> None:
    r"""
    Mixture of a conjugate family over the partitions of a distance dependent process.

    .. math:: c_i \sim p(c_i = j) \propto f(d_{ij}), \quad
        p(x \mid c) = \prod_k p(x_{i: z(c)_i = k}),

    with z(c) the connected components of the links. Sites: ``alpha`` and ``decay_scale`` (if they
    are distributions), ``links`` (N,), and the factor ``data``.

    :param data: data in the form that the family takes.
    :param distances: (N, N), or :class:`~numpyro_rankings.links.distances.SparseDistances`; with
        more points than data if the values of the last points are unknown.
    :param family: family of the components.
    :param alpha: weight of a link of a point to itself, a number or a prior.
    :param decay: decay of the distances.

    **References:**

    1. Blei, D. M., Frazier, P. I. (2011), "Distance dependent Chinese restaurant processes", JMLR.
    """
    data, log_rest = _augment(family, data)
    points = family.statistics(data)
    if isinstance(alpha, dist.Distribution):
        alpha = numpyro.sample("alpha", alpha)
    scale = decay.scale
    if isinstance(scale, dist.Distribution):
        scale = numpyro.sample("decay_scale", scale)
    neighbors, distances = as_neighbors(distances)
    prior = DistanceDependentCRP(alpha, decay(distances, scale), neighbors)
    links = numpyro.sample("links", prior, infer={"event_dims": ["point"]})
    points = with_awaited(points, links.shape[-1])
    clusters = family.of_clusters(points, links_to_partition(links), links.shape[-1])
    _factor("data", family.log_marginal(clusters).sum() + log_rest)


def ddcrp_language_model(
    symbols: Array,
    distances: Any,
    *,
    base: Any,
    alpha: float | dist.Distribution = 1.0,
    decay: Decay,
) -> None:
    r"""
    Symbols under a distance dependent process, one symbol for each table: the fully observed model.

    .. math:: c_i \sim p(c_i = j) \propto f(d_{ij}), \quad w^*_k \sim G_0, \quad
        w_i = w^*_{z(c)_i},

    with z(c) the connected components of the links. Sites: ``alpha`` and ``decay_scale`` (if they
    are distributions), ``base`` (V,) (if it is unknown), ``links`` (N,), and the factor
    ``symbols``.

    :param symbols: (N,), from 0 to V - 1.
    :param distances: (N, N), or :class:`~numpyro_rankings.links.distances.SparseDistances`.
    :param base: :math:`G_0`, probabilities (V,), or a Dirichlet distribution.
    :param alpha: weight of a link of a point to itself, a number or a prior.
    :param decay: decay of the distances.

    **References:**

    1. Blei, D. M., Frazier, P. I. (2011), "Distance dependent Chinese restaurant processes", JMLR.
    """
    symbols = jnp.asarray(symbols)
    if isinstance(alpha, dist.Distribution):
        alpha = numpyro.sample("alpha", alpha)
    scale = decay.scale
    if isinstance(scale, dist.Distribution):
        scale = numpyro.sample("decay_scale", scale)
    if isinstance(base, dist.Distribution):
        base = numpyro.sample("base", base, infer={"event_dims": ["symbol"]})
    neighbors, distances = as_neighbors(distances)
    prior = DistanceDependentCRP(alpha, decay(distances, scale), neighbors)
    links = numpyro.sample("links", prior, infer={"event_dims": ["point"]})
    _factor("symbols", log_prob_of_symbols(symbols, links, jnp.asarray(base, float)))


def log_prob_of_symbols(symbols: Array, links: Array, base: Array) -> Array:
    """log p(symbols | links, G_0): one draw for each table, -inf if a table has two symbols.

    :param base: :math:`G_0`, (V,).
    """
    table = representatives(links)
    opens = table == jnp.arange(symbols.shape[0])
    same = jnp.where(symbols == symbols[table], 0.0, -jnp.inf)
    return jnp.sum(jnp.where(opens, jnp.log(base)[symbols], same))
