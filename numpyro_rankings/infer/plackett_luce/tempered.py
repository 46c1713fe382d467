"""Plackett–Luce components of a tempered mixture."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array, random
from jax.scipy.special import gammaln

from numpyro_rankings.distributions import TopTPlackettLuce
from numpyro_rankings.families import PLACKETT_LUCE, RankingFamily
from numpyro_rankings.infer.checks import check_positive_array
from numpyro_rankings.infer.mixture.component_model import ComponentModel, Rows
from numpyro_rankings.infer.plackett_luce.data import as_data, check_shape_for
from numpyro_rankings.infer.plackett_luce.log_rows import choices_of_rows, log_rows_by_choices
from numpyro_rankings.infer.plackett_luce.target import GammaWeights, WeightsClusters, WeightsDraw
from numpyro_rankings.infer.plackett_luce.waiting_times import normalise
from numpyro_rankings.ops.sampling import draw_together, sample_log_gamma
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
        no_unseen = jnp.zeros(1)  # weight of the unseen items, in the one slot that is asked for
        clusters = WeightsClusters(no_unseen, prior, 0.0, data.choices, None, None)
        return Rows(data, clusters, n, choices_of_rows(data.choices, n))

    def log_rows(self, parameters: Array, rows: Rows) -> Array:
        if rows.tables is None:
            return super().log_rows(parameters, rows)
        return log_rows_by_choices(rows.tables, parameters)

    def _shape_of(self, num_items: int) -> Array:
        return jnp.broadcast_to(jnp.asarray(self._shape, float), (num_items,))

    def num_parameters(self, rankings: Rankings) -> int:
        return rankings.num_items - 1

    def draw_prior(self, key: Array, num_components: int, rows: Rows) -> Array:
        shape = jnp.broadcast_to(self._shape_of(rows.num_items), (num_components, rows.num_items))
        return sample_log_gamma(key, shape)

    def draw_steps(
        self, key: Array, num_steps: int, rows: Rows, worth: Array
    ) -> tuple[Array, WeightsDraw]:
        n, shape = rows.num_items, (num_steps, len(worth))
        key_normals, key_moves = random.split(key)
        (normals,) = draw_together(random.normal, key_normals, (*shape, n))
        item = random.randint(key_moves, shape, 0, n)
        # every second step changes one weight, the others all
        is_one = item[..., None] == jnp.arange(n)
        moves_all = jnp.arange(num_steps)[:, None, None] % 2 == 0
        family = WeightsDraw(
            moves=is_one | moves_all,
            flip_chance=jnp.zeros(shape),
            flips=jnp.zeros_like(is_one),
            log_atoms=jnp.zeros(is_one.shape),
        )
        return normals, family

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
