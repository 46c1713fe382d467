"""Plackett–Luce components of a tempered mixture."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from jax.scipy.special import gammaln

from numpyro_rankings.distributions import TopTPlackettLuce
from numpyro_rankings.families import PLACKETT_LUCE, RankingFamily
from numpyro_rankings.infer.checks import check_positive_array
from numpyro_rankings.infer.mixture.component_model import ComponentModel, Rows
from numpyro_rankings.infer.mixture.target import StepDraw
from numpyro_rankings.infer.plackett_luce.data import as_data, check_shape_for
from numpyro_rankings.infer.plackett_luce.label_free import KINDS_OF_PARAMETERS, draw_steps
from numpyro_rankings.infer.plackett_luce.target import GammaWeights, WeightsClusters
from numpyro_rankings.infer.plackett_luce.waiting_times import normalise
from numpyro_rankings.ops.choices import cells_if_tabled, design_if_small
from numpyro_rankings.ops.sampling import sample_log_gamma
from numpyro_rankings.rankings import Rankings


class PlackettLuceComponents(ComponentModel):
    """Plackett–Luce components of a :class:`TemperedMixture`.

    :param shape: the normalised weights are Dirichlet(a): a number or one for each item, (n,).
    """

    def __init__(self, shape: Any = 1.0) -> None:
        check_positive_array("shape", shape, "a positive number or n of them")
        if np.ndim(shape) > 1:
            raise ValueError(f"shape must be a number or have shape (n,), got {np.shape(shape)}")
        self._shape = shape

    @property
    def ranking_family(self) -> RankingFamily:
        """Plackett–Luce models."""
        return PLACKETT_LUCE

    def check(self, rankings: Rankings) -> None:
        check_shape_for(self._shape, rankings)

    def read(self, rankings: Rankings) -> Rows:
        data, n = as_data(rankings), rankings.num_items
        prior = GammaWeights(self._shape_of(n))
        cells, design = cells_if_tabled(data.choices, n), design_if_small(data.choices, n, float)
        no_unseen = jnp.zeros(1)  # weight of the unseen items, in the one slot that is asked for
        clusters = WeightsClusters(no_unseen, prior, 0.0, data.choices, cells, design)
        return Rows(data, clusters, n)

    def _shape_of(self, num_items: int) -> Array:
        return jnp.broadcast_to(jnp.asarray(self._shape, float), (num_items,))

    def num_parameters(self, rankings: Rankings) -> int:
        return rankings.num_items - 1

    def draw_prior(self, key: Array, num_components: int, rows: Rows) -> Array:
        shape = jnp.broadcast_to(self._shape_of(rows.num_items), (num_components, rows.num_items))
        return sample_log_gamma(key, shape)

    def draw_steps(self, key: Array, num_steps: int, rows: Rows) -> StepDraw:
        clusters: Any = rows.clusters
        return draw_steps(key, num_steps, rows.num_items, KINDS_OF_PARAMETERS, clusters.prior)

    def sites(self, parameters: Array) -> dict[str, Array]:
        weights = normalise(parameters)
        return {"weights": weights if len(weights) > 1 else weights[0]}

    def parameters(self, key: Array, sites: Mapping[str, Array], rows: Rows) -> Array:
        # w = s p: the scale s is Gamma(Σ a, 1), independent of p
        weights = jnp.atleast_2d(jnp.asarray(sites["weights"], float))
        total = jnp.broadcast_to(self._shape_of(rows.num_items).sum(), (len(weights),))
        return jnp.log(weights) + sample_log_gamma(key, total)[:, None]

    def log_prior(self, sites: Mapping[str, Array], rows: Rows) -> Array:
        shape = self._shape_of(rows.num_items)
        log_weights = jnp.log(jnp.atleast_2d(sites["weights"]))
        log_constant = gammaln(shape.sum()) - gammaln(shape).sum()
        return log_constant + jnp.sum((shape - 1.0) * log_weights, axis=1)

    def sample(self, rankings: Rankings) -> dist.Distribution:
        prior = dist.Dirichlet(self._shape_of(rankings.num_items))
        weights = numpyro.sample("weights", prior, infer={"event_dims": ["item"]})
        offered = rankings.choice_sets
        if offered is not None:
            offered = offered[rankings.row_index]
            offered = offered if weights.ndim == 1 else offered[:, None]
        longest = rankings.orderings.shape[1]
        return TopTPlackettLuce(jnp.log(weights), longest, choice_set=offered)
