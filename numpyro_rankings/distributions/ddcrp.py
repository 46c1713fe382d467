"""The distance dependent Chinese restaurant process."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import Distribution
from numpyro.distributions import constraints as numpyro_constraints
from numpyro.distributions.batch_util import vmap_over
from numpyro.distributions.util import validate_sample
from numpyro.util import is_prng_key

from numpyro_rankings.distributions.partition import in_order_of_use
from numpyro_rankings.distributions.permutation import as_real, check_event, keep
from numpyro_rankings.ops.links import check_neighbors, representatives

__all__ = ["DistanceDependentCRP", "links_to_partition"]


def links_to_partition(links: ArrayLike) -> Array:
    """Canonical labels of the connected components of a graph of links, ``(…, N)``.

    :param links: the point to which each point links, possibly itself, ``(…, N)``.

    .. doctest::

       >>> links_to_partition(jnp.array([1, 1, 4, 0, 2])).tolist()
       [0, 0, 1, 0, 1]
    """
    return in_order_of_use(representatives(jnp.asarray(links)))


class DistanceDependentCRP(Distribution):
    r"""
    Distance dependent Chinese restaurant process [1, eq. 2]: a distribution of links.

    Each point links to another point or to itself, independently of the others:

    .. math:: \Pr(c_i = j) \propto f_{ij} \text{ if } j \ne i, \quad α \text{ if } j = i.

    The connected components of the links are the clusters, see :func:`links_to_partition`. With
    :math:`f_{ij} = 1` for :math:`j < i` and 0 otherwise the partition is that of the traditional
    process.

    The value is the links, int32, shape ``(…, N)``.

    :param alpha: weight of a link of a point to itself, shape ``(…)``.
    :param decay_matrix: :math:`f_{ij} \ge 0`, shape ``(…, N, N)``, the decay of the distances, such
        as ``exponential_decay(2.0)(distances)``. The diagonal is ignored.
    :param neighbors: the points of the columns, if each point can reach only some of the others:
        ``(N, L)``, padded with -1. The decays then have shape ``(…, N, L)``.

    **References:**

    1. Blei, D. M., Frazier, P. I. (2011), "Distance dependent Chinese restaurant processes", JMLR.

    .. doctest::

       >>> from numpyro_rankings.links.decays import window_decay
       >>> times = jnp.array([0.0, 1.0, 5.0])
       >>> decay = window_decay(2.0)(jnp.abs(times[:, None] - times))
       >>> d = DistanceDependentCRP(1.0, decay)
       >>> round(float(jnp.exp(d.log_prob(jnp.array([1, 1, 2])))), 4)
       0.25
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "alpha": numpyro_constraints.positive,
        "decay_matrix": numpyro_constraints.independent(numpyro_constraints.nonnegative, 2),
    }
    pytree_data_fields = ("alpha", "decay_matrix", "neighbors")

    def __init__(
        self,
        alpha: ArrayLike,
        decay_matrix: ArrayLike,
        neighbors: ArrayLike | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.decay_matrix = keep(decay_matrix)
        shape = jnp.shape(self.decay_matrix)
        self.neighbors = None if neighbors is None else keep(neighbors)
        if neighbors is None and (len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] == 0):
            raise ValueError(f"decay_matrix must have shape (…, N, N), got {shape}")
        if neighbors is not None and (len(shape) < 2 or jnp.shape(neighbors) != shape[-2:]):
            raise ValueError(
                f"neighbors must have shape (N, L), that of the decays, got {jnp.shape(neighbors)}"
            )
        if neighbors is not None and not isinstance(neighbors, jax.core.Tracer):
            check_neighbors(np.asarray(neighbors), shape[-2])
        self.alpha = keep(alpha)
        batch = np.broadcast_shapes(jnp.shape(self.alpha), shape[:-2])
        super().__init__(batch, shape[-2:-1], validate_args=validate_args)

    @staticmethod
    def infer_shapes(
        alpha: tuple, decay_matrix: tuple, neighbors: tuple | None = None
    ) -> tuple[tuple, tuple]:
        """Batch and event shapes, given the shapes of the arguments."""
        return np.broadcast_shapes(alpha, decay_matrix[:-2]), decay_matrix[-2:-1]

    @property
    def support(self) -> Any:
        """Links to any point."""
        size = self.event_shape[0]
        return numpyro_constraints.independent(numpyro_constraints.integer_interval(0, size - 1), 1)

    def _log_weights(self) -> Array:
        """Log weights, unnormalised, of all links, (…, N, N), or of those listed, (…, N, L + 1)."""
        weights, alpha = as_real(self.decay_matrix), as_real(self.alpha)[..., None, None]
        if self.neighbors is None:
            weights = jnp.where(jnp.eye(self.event_shape[0], dtype=bool), alpha, weights)
        else:
            neighbors = jnp.asarray(self.neighbors)
            is_other = (neighbors >= 0) & (neighbors != jnp.arange(len(neighbors))[:, None])
            shape = self.batch_shape + neighbors.shape
            weights = jnp.broadcast_to(jnp.where(is_other, weights, 0.0), shape)
            alpha = jnp.broadcast_to(alpha, (*shape[:-1], 1))
            weights = jnp.concatenate([weights, alpha], axis=-1)
        # written so that gradients are finite where a weight is 0
        return jnp.where(weights > 0, jnp.log(jnp.where(weights > 0, weights, 1.0)), -jnp.inf)

    def _targets(self) -> Array:
        """The points of the columns of :meth:`_log_weights`."""
        points = jnp.arange(self.event_shape[0], dtype=jnp.int32)
        if self.neighbors is None:
            return jnp.broadcast_to(points, (len(points), len(points)))
        neighbors = jnp.asarray(self.neighbors, jnp.int32)
        return jnp.concatenate([neighbors, points[:, None]], axis=1)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> Array:
        assert is_prng_key(key)
        columns = jax.random.categorical(key, self._log_weights(), shape=self.shape(sample_shape))
        targets = jnp.broadcast_to(self._targets(), columns.shape + self._targets().shape[1:])
        return jnp.take_along_axis(targets, columns[..., None], axis=-1)[..., 0]

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list | None = None) -> Array:
        check_event(value, self)
        log_probs = jax.nn.log_softmax(self._log_weights(), axis=-1)
        chosen = self._targets() == jnp.asarray(value).astype(jnp.int32)[..., None]
        each = jnp.max(jnp.where(chosen, log_probs, -jnp.inf), axis=-1)
        return each.sum(-1)

    def entropy(self) -> Array:
        log_probs = jax.nn.log_softmax(self._log_weights(), axis=-1)
        # 0 log 0 = 0, written so that gradients are finite
        possible = log_probs > -jnp.inf
        log_probs = jnp.where(possible, log_probs, 0.0)
        return -jnp.where(possible, jnp.exp(log_probs) * log_probs, 0.0).sum((-2, -1))

    def log_prob_of_partition(self, labels: ArrayLike) -> Array:
        r"""
        Log probability of a partition, summed over all links that give it.

        .. math:: \prod_i \frac{w_i}{α + \sum_{j<i} f_{ij}}, \quad
            w_i = α \text{ if } i \text{ is the first of its block, else }
            \sum_{j<i, z_j = z_i} f_{ij}.

        The formula holds for sequential decays only, which are 0 for all later points. Decays with
        positive entries above the diagonal raise an error.

        :param labels: ``(…, N)``, in any numbering.
        """
        if self.neighbors is not None:
            raise ValueError("the probability of a partition needs a full matrix of decays (N, N)")
        decay, alpha = as_real(self.decay_matrix), as_real(self.alpha)[..., None]
        if not isinstance(decay, jax.core.Tracer) and np.any(np.triu(np.asarray(decay), 1) > 0):
            raise ValueError("the probability of a partition is known for sequential decays only")
        labels = jnp.asarray(labels)
        earlier = jnp.tril(decay, -1)
        together = labels[..., :, None] == labels[..., None, :]
        joins = jnp.where(together, earlier, 0.0).sum(-1)
        before = jnp.tril(together, -1).any(-1)
        weight = jnp.where(before, joins, alpha)
        return jnp.sum(jnp.log(weight) - jnp.log(alpha + earlier.sum(-1)), axis=-1)


@vmap_over.register
def _vmap_over_distance_dependent_crp(
    dist: DistanceDependentCRP, alpha: Any = None, decay_matrix: Any = None, neighbors: Any = None
) -> Any:
    axes = vmap_over.dispatch(Distribution)
    return axes(dist, alpha=alpha, decay_matrix=decay_matrix, neighbors=neighbors)
