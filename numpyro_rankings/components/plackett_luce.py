"""Plackett–Luce components, conjugate given the waiting times of the choices."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.components.family import Augmented, AugmentedFamily, as_rankings
from numpyro_rankings.families import PLACKETT_LUCE
from numpyro_rankings.ops.checks import as_array, is_traced, refuse_masked
from numpyro_rankings.ops.choices import as_choices, log_choice_likelihoods
from numpyro_rankings.ops.sampling import sample_log_gamma
from numpyro_rankings.ops.special import log_gamma_ratio
from numpyro_rankings.ops.sums import sum_by_label
from numpyro_rankings.rankings import Rankings


class ChoiceTimes(NamedTuple):
    """Statistics of a cluster by item, (…, n): number of times **chosen**, and time **in play**."""

    chosen: Array
    in_play: Array


class PlackettLuceWeights(AugmentedFamily):
    r"""
    Top-t or subset rankings with unknown weights, which are integrated out.

    .. math:: w_k \sim \mathrm{Gamma}(a, 1), \quad π_i \mid w \sim \mathrm{PL}(w).

    The marginal of a cluster has no closed form. Each choice, at stage j of ranking i, is therefore
    augmented with a waiting time :math:`Z_{ij} \sim \mathrm{Exp}(W_{ij})`, where W is the mass of
    the items in play [1, eq. 4; 2]. Given the times the weights are conjugate. The statistics of a
    cluster are how often each item was chosen, :math:`n_k`, and how long it was in play,
    :math:`T_k`:

    .. math:: p(π, Z \mid \text{cluster}) = \prod_k \frac{Γ(a + n_k)}{Γ(a)\, (1 + T_k)^{a + n_k}}.

    The kernels of partitions also draw the times, which are the site ``times`` of their samples,
    (D, N, T). The sampler is exact, but labels mix a little more slowly than with the times
    integrated out.

    Data: :class:`~numpyro_rankings.Rankings`; each of its N rankings is a point, in the order of
    :meth:`~numpyro_rankings.Rankings.expand`.

    :param shape: a, a number or (n,).

    **References:**

    1. Caron, F., Teh, Y. W., Murphy, T. B. (2014), "Bayesian nonparametric Plackett–Luce models
       for the analysis of preferences for college degree programmes".
    2. Caron, F., Doucet, A. (2012), "Efficient Bayesian inference for generalized Bradley–Terry
       models".
    """

    site = "times"
    ranking_family = PLACKETT_LUCE

    def __init__(self, shape: Any = 1.0) -> None:
        refuse_masked("shape", shape)
        self.shape = as_array(shape).astype(float)
        is_allowed = is_traced(shape) or np.all((self.shape > 0) & np.isfinite(self.shape))
        if self.shape.ndim > 1 or not is_allowed:
            raise ValueError(f"shape must be positive, a number or (n,), got {shape!r}")

    # -- the choices -----------------------------------------------------------------------------

    def _in_play(self, data: Rankings) -> tuple[Array, Array, Array]:
        """Items in play and items chosen by stage, (N, T, n), and informative stages, (N, T)."""
        # A stage with one item in play has no choice and is not informative.
        rows = jnp.asarray(data.row_index, jnp.int32)
        orderings, n = jnp.asarray(data.orderings)[rows], data.num_items
        listed = orderings[..., None] == jnp.arange(n)
        before = jnp.cumsum(listed, axis=1) > listed.astype(int)
        offered = jnp.ones((1, 1, n), bool)
        if data.choice_sets is not None:
            offered = jnp.asarray(data.choice_sets)[rows][:, None]
        in_play = offered & ~before
        informative = (orderings >= 0) & (in_play.sum(-1) > 1)
        return in_play & informative[..., None], listed & informative[..., None], informative

    def size(self, data: Rankings) -> int:
        return data.num_rankings

    def statistics(self, data: Augmented) -> ChoiceTimes:
        in_play, chosen, _ = self._in_play(data.data)
        times = jnp.einsum("itk,it->ik", in_play.astype(float), data.auxiliary, precision="highest")
        return ChoiceTimes(chosen.sum(1).astype(float), times)

    # -- the waiting times -----------------------------------------------------------------------

    def auxiliary_prior(self, data: Rankings) -> dist.Distribution:
        shape = (data.num_rankings, data.orderings.shape[1])
        return dist.Exponential(1.0).expand(shape).to_event(2)

    def start(self, key: Array, data: Rankings) -> Array:
        in_play, _, _ = self._in_play(data)
        weights = jnp.broadcast_to(jnp.asarray(self.shape, float), (data.num_items,))
        in_play = jnp.dot(in_play, weights, precision="highest")
        return self._draw_times(key, data, in_play)

    def refresh(self, key: Array, data: Augmented, labels: Array, num_clusters: int) -> Array:
        key_weights, key_scale, key_times = random.split(key, 3)
        n = data.data.num_items
        clusters = self.of_clusters(self.statistics(data), labels, num_clusters)
        shape = jnp.broadcast_to(jnp.asarray(self.shape, float), (n,))
        log_weights = sample_log_gamma(key_weights, shape + clusters.chosen)
        log_weights = log_weights - jnp.log1p(clusters.in_play)
        # the likelihood of the rankings depends on ratios of weights only, so the scale is drawn
        # from its prior, and then the times given the scale
        log_weights = jax.nn.log_softmax(log_weights, axis=-1)
        log_scale = sample_log_gamma(key_scale, jnp.full(num_clusters, shape.sum()))
        weights = jnp.exp(log_weights + log_scale[:, None])
        in_play, _, _ = self._in_play(data.data)
        mass = jnp.einsum("itk,ik->it", in_play.astype(float), weights[labels], precision="highest")
        return self._draw_times(key_times, data.data, mass)

    def _draw_times(self, key: Array, data: Rankings, mass: Array) -> Array:
        """Draw the times of the choices; at stages without a choice, from the prior."""
        _, _, informative = self._in_play(data)
        return random.exponential(key, mass.shape) / jnp.where(informative, mass, 1.0)

    def log_base(self, data: Augmented) -> Array:
        """Log density of the times at stages without a choice, which no cluster scores."""
        _, _, informative = self._in_play(data.data)
        return -jnp.sum(jnp.where(informative, 0.0, data.auxiliary))

    # -- clusters --------------------------------------------------------------------------------

    def of_clusters(self, points: ChoiceTimes, labels: Array, num_clusters: int) -> ChoiceTimes:
        return ChoiceTimes(*(sum_by_label(x, labels, num_clusters) for x in points))

    def log_marginal(self, cluster: ChoiceTimes) -> Array:
        a = jnp.asarray(self.shape, float)
        chosen = log_gamma_ratio(a, cluster.chosen)
        return jnp.sum(chosen - (a + cluster.chosen) * jnp.log1p(cluster.in_play), axis=-1)

    def log_predictive(self, cluster: ChoiceTimes, point: ChoiceTimes) -> Array:
        a = jnp.asarray(self.shape, float) + cluster.chosen
        longer = jnp.log1p(point.in_play / (1.0 + cluster.in_play))
        log_time = jnp.log1p(cluster.in_play + point.in_play)
        chosen = log_gamma_ratio(a, point.chosen) - point.chosen * log_time
        return jnp.sum(chosen - a * longer, axis=-1)

    def draw_ranking_parameters(self, key: Array, cluster: ChoiceTimes) -> dict[str, Array]:
        """Draw the weights of clusters from their posterior given the times.

        :param cluster: statistics with any leading axes.
        :return: ``weights`` (…, n), of sum 1.
        """
        shape = jnp.asarray(self.shape, float) + cluster.chosen
        log_weights = sample_log_gamma(key, shape) - jnp.log1p(cluster.in_play)
        return {"weights": jax.nn.softmax(log_weights, axis=-1)}

    def log_predictive_of_values(
        self, key: Array, cluster: ChoiceTimes, data: Rankings, num_draws: int
    ) -> Array:
        num_items = cluster.chosen.shape[-1]
        if data.num_items != num_items:
            raise ValueError(
                f"the new rankings are of {data.num_items} items, the fitted ones of {num_items}"
            )
        offered = None if data.choice_sets is None else jnp.asarray(data.choice_sets)
        choices = as_choices(jnp.asarray(data.orderings), offered, data.num_items, False)
        slots = cluster.chosen.shape[0]

        def add(total: Array, key: Array) -> tuple[Array, None]:
            weights = self.draw_ranking_parameters(key, cluster)["weights"]
            log_p = log_choice_likelihoods(choices, weights, None, jnp.array(slots))
            return jnp.logaddexp(total, log_p), None

        start = jnp.full((slots, data.orderings.shape[0]), -jnp.inf, cluster.in_play.dtype)
        total, _ = jax.lax.scan(add, start, random.split(key, num_draws))
        return total.T[data.row_index] - jnp.log(num_draws)

    def log_union(self, cluster: ChoiceTimes, other: ChoiceTimes) -> Array:
        a = jnp.asarray(self.shape, float)
        (n, t), (m, s) = cluster, other
        chosen = log_gamma_ratio(a + n, m) - log_gamma_ratio(a, m)
        # terms such as log1p(s) are combined, so that digits are kept
        times = a * jnp.log1p(s) - (a + n) * jnp.log1p(s / (1.0 + t))
        times = times - m * jnp.log1p(t / (1.0 + s))
        return jnp.sum(chosen + times, axis=-1)

    def check(self, data: Any) -> None:
        rankings = as_rankings(data)
        if self.shape.shape not in ((), (rankings.num_items,)):
            raise ValueError(
                f"shape must be a number or one for each of the {rankings.num_items} items, got "
                f"{self.shape.shape}"
            )
