"""The generalized Mallows model of top-t rankings and the conjugate prior of its concentrations."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, kl_divergence
from numpyro.distributions import constraints as numpyro_constraints
from numpyro.distributions.batch_util import vmap_over
from numpyro.distributions.util import promote_shapes, validate_sample
from numpyro.util import is_prng_key, not_jax_tracer

from numpyro_rankings.distributions import constraints
from numpyro_rankings.distributions.partial_orders import (
    against_rows,
    blocks_of_orders,
    orders_of_all_items,
)
from numpyro_rankings.distributions.permutation import as_real, check_event, keep
from numpyro_rankings.ops.codes import inverse_ordering, max_codes, ordering_from_codes, stage_codes
from numpyro_rankings.ops.linear_extensions import Blocks, log_sum_over_orders, sum_of_blocks
from numpyro_rankings.ops.sampling import sample_concentration, sample_truncated_geometric
from numpyro_rankings.ops.special import log_beta_tilde, log_psi, mean_code
from numpyro_rankings.rankings import PartialOrders, RankingsError

__all__ = [
    "GeneralizedMallows",
    "MallowsConcentrationPrior",
    "bayesmallows_alpha_to_concentration",
    "concentration_to_bayesmallows_alpha",
    "concentration_to_dispersion",
    "dispersion_to_concentration",
]


def concentration_to_dispersion(concentration: ArrayLike) -> Array:
    r"""Dispersion :math:`\varphi = e^{-\theta}` of a concentration, within (0, 1]."""
    return jnp.exp(-jnp.asarray(concentration))


def dispersion_to_concentration(dispersion: ArrayLike) -> Array:
    r"""Concentration :math:`\theta = -\ln\varphi` of a dispersion."""
    return -jnp.log(dispersion)


def concentration_to_bayesmallows_alpha(concentration: ArrayLike, num_items: int) -> Array:
    r"""The parameter :math:`\alpha = n\theta` of the R package BayesMallows.

    The package writes the Kendall model as :math:`\exp(-\frac{\alpha}{n} d(\pi, \sigma))`.
    """
    return jnp.asarray(concentration) * num_items


def bayesmallows_alpha_to_concentration(alpha: ArrayLike, num_items: int) -> Array:
    r"""Concentration :math:`\theta = \alpha / n` for the alpha of the R package BayesMallows."""
    return jnp.asarray(alpha) / num_items


def _stages(x: np.ndarray | Array, num_stages: int) -> np.ndarray | Array:
    """Repeat a scalar, or a last axis of length 1, over the stages."""
    xp = jnp if isinstance(x, jax.Array) else np
    return xp.broadcast_to(x, (*x.shape[:-1], num_stages))


def _largest(num_items: int, theta: Array) -> Array:
    """Largest code of each stage of θ, in its dtype."""
    return max_codes(num_items, theta.shape[-1]).astype(theta.dtype)


@jax.jit
def _sample_lists(key: jax.Array, theta: Array, center: Array) -> Array:
    codes = sample_truncated_geometric(key, theta, _largest(center.shape[-1], theta))
    return ordering_from_codes(codes, center)


@jax.jit
def _log_prob(lists: Array, center: Array, theta: Array) -> Array:
    lists = lists.astype(jnp.int32)
    codes = stage_codes(lists, inverse_ordering(center)).astype(theta.dtype)
    by_stage = -theta * codes - log_psi(theta, _largest(center.shape[-1], theta))
    return jnp.sum(jnp.where(lists >= 0, by_stage, 0), axis=-1)


@jax.jit
def _log_prob_of_orders(blocks: list[Blocks], listed: Array, center: Array, theta: Array) -> Array:
    """Log probabilities of partial orders, (B, rows).

    :param listed: (rows, T).
    :param center: (B, rows, n); **theta** (B, rows, T).
    """
    num_items = center.shape[-1]

    def of_parameters(center: Array, theta: Array) -> Array:
        places = jnp.take_along_axis(inverse_ordering(center), jnp.maximum(listed, 0), axis=-1)
        places = jnp.where(listed >= 0, places, num_items)
        return log_prob_of_places(blocks, places, theta, log_psi(theta, _largest(num_items, theta)))

    return jax.vmap(of_parameters)(center, theta)


def log_prob_of_places(
    blocks: list[Blocks], places: Array, theta: Array, log_norms: Array
) -> Array:
    """Log probabilities of partial orders, (rows,).

    :param places: of the listed items in the center, the number of items for padding, (rows, T).
    :param theta: (rows, T), or (T,) if it is the same for all; **log_norms**, log ψ, too.
    """
    theta, log_norms = (jnp.broadcast_to(x, places.shape) for x in (theta, log_norms))
    values = [_log_prob_of_blocks(b, places, theta, log_norms) for b in blocks]
    return sum_of_blocks(blocks, values, jnp.zeros_like(theta[:, 0]))


def _log_prob_of_blocks(blocks: Blocks, places: Array, theta: Array, log_norms: Array) -> Array:
    """Log probability that each block comes in an order that agrees, (blocks,).

    Stage j chooses item a with probability e^(-θ_j s) / ψ(θ_j), where s is how many items of the
    block that are left, and of those after the block, are ahead of a in the center.
    """
    rows, width = blocks.rows[:, None], blocks.before.shape[1]
    here, all_places = places[rows, blocks.places], places[blocks.rows][:, None]
    until = jnp.arange(places.shape[1]) < blocks.starts[:, None] + width
    passed = jnp.sum((all_places < here[:, :, None]) & until[:, None], axis=-1)
    after = (here - passed).T
    is_ahead = here[:, None, :] < here[:, :, None]
    ahead = jnp.sum(is_ahead << np.arange(width), axis=-1, dtype=jnp.int32).T
    of_stage, log_norm = (x[rows, blocks.places].T for x in (theta, log_norms))

    def log_choice(items: np.ndarray, sets: np.ndarray) -> Array:
        stage = width - items.shape[1]
        left = lax.population_count(ahead[items] & sets[..., None])
        return -of_stage[stage] * (after[items] + left) - log_norm[stage]

    return log_sum_over_orders(blocks, log_choice)


class GeneralizedMallows(Distribution):
    r"""
    Generalized Mallows model of top-t rankings, with a concentration for each stage [1, 2].

    A ranking is built stage by stage: from the remaining items, in the order of the center
    :math:`\sigma`, stage :math:`j` skips :math:`s_j` items and lists the next one. With 0-based
    stages and :math:`n` items,

    .. math::
        P(\pi \mid \sigma, \theta) = \prod_{j\,:\,\pi_j \text{ listed}}
        \frac{e^{-\theta_j s_j(\pi \mid \sigma)}}{\psi_{n-1-j}(\theta_j)},
        \qquad \psi_m(\theta) = \sum_{k=0}^{m} e^{-k\theta}.

    The value is an int32 list of item indices, best first, shape ``(…, T)``. A list shorter
    than :math:`T` is padded with -1 at its end. Its probability is that of a ranking beginning with
    it; the length of the list is taken as given. A list of ``n - 1`` items is equivalent to the
    full one. Samples, the mode, the entropy and the KL divergence are those of lists of all
    :math:`T` places.

    The value may also be :class:`~numpyro_rankings.PartialOrders`: the log probability of each row,
    shape ``(…, rows)``, is that of any of the orderings that agree with it. It is exact, by
    dynamic programming over sets of items. At most 16 items may be tied or not compared where all
    earlier items are above them and all later ones below, and 12 listed items if the orders are
    traced, that is arguments of a compiled function. If some items were not offered, all items are
    compared (:meth:`~numpyro_rankings.PartialOrders.of_all_items`, which traced orders need).
    Counts are not applied.
    In a model it is a ``numpyro.factor``, because NumPyro observes arrays only.

    :param center: the central ordering :math:`\sigma`: item indices, best first, shape
        ``(…, n)``.
    :param concentration: :math:`\theta_j \ge 0` of each stage, shape ``(…, T)`` with
        ``T <= n``; 0 is uniform. A scalar, that is shape ``()``, is used for all stages: the
        Mallows–Kendall model. For a batch of scalars see :meth:`kendall`.
    :param int length: :math:`T`, the number of places of a list; needed only with a scalar
        concentration, where it is ``n`` by default.

    **References:**

    1. Fligner, M. A. and Verducci, J. S. (1986), *Distance based ranking models*, JRSS B.
    2. Meilă, M. and Chen, H. (2010), *Dirichlet process mixtures of generalized Mallows
       models*, UAI.

    .. doctest::

       >>> center = jnp.array([2, 0, 1, 3])
       >>> d = GeneralizedMallows(center, jnp.array([2.0, 1.0]))
       >>> d.event_shape, d.mode.tolist()
       ((2,), [2, 0])
       >>> d.log_prob(jnp.array([[2, 0], [0, 2], [2, -1]])).shape
       (3,)
       >>> kendall = GeneralizedMallows(center, 0.5)
       >>> kendall.sample(jax.random.key(0), (10,)).shape
       (10, 4)
       >>> from numpyro_rankings import PartialOrders
       >>> orders = PartialOrders.from_buckets([[[0, 2], 1, 3], [[0, 1, 2, 3]]], num_items=4)
       >>> [round(float(x), 4) for x in jnp.exp(kendall.log_prob(orders))]
       [0.2305, 1.0]
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "center": constraints.permutation,
        "concentration": numpyro_constraints.independent(numpyro_constraints.nonnegative, 1),
    }
    pytree_data_fields = ("center", "concentration")
    pytree_aux_fields = ("num_items",)

    def __init__(
        self,
        center: ArrayLike,
        concentration: ArrayLike,
        *,
        length: int | None = None,
        validate_args: bool | None = None,
    ) -> None:
        center, concentration = keep(center), keep(concentration)
        if center.ndim < 1 or center.shape[-1] < 1:
            raise ValueError(f"center must be an ordering, shape (…, n), got shape {center.shape}")
        self.num_items = center.shape[-1]
        if concentration.ndim == 0:
            length = self.num_items if length is None else length
            concentration = _stages(concentration[None], length)
        elif length not in (None, concentration.shape[-1]):
            raise ValueError(
                f"length is {length}, but concentration has {concentration.shape[-1]} stages; "
                "for a batch of scalar concentrations use GeneralizedMallows.kendall"
            )
        num_stages = concentration.shape[-1]
        if not 1 <= num_stages <= self.num_items:
            raise ValueError(
                f"concentration has {num_stages} stages, but center orders {self.num_items} items"
            )
        batch = np.broadcast_shapes(center.shape[:-1], concentration.shape[:-1])
        (self.center,) = promote_shapes(center, shape=(*batch, self.num_items))
        (self.concentration,) = promote_shapes(concentration, shape=(*batch, num_stages))
        super().__init__(batch, (num_stages,), validate_args=validate_args)

    @classmethod
    def kendall(
        cls,
        center: ArrayLike,
        concentration: ArrayLike,
        *,
        length: int | None = None,
        validate_args: bool | None = None,
    ) -> "GeneralizedMallows":
        """
        Mallows–Kendall models: one concentration for all stages of a ranking.

        :param center: central orderings, shape ``(…, n)``.
        :param concentration: one number for each model of the batch, shape ``(…)``.
        :param int length: number of places of a list, ``n`` by default.

        .. doctest::

           >>> d = GeneralizedMallows.kendall(jnp.arange(5), jnp.array([0.1, 1.0]), length=3)
           >>> d.batch_shape, d.event_shape
           ((2,), (3,))
        """
        concentration = keep(concentration)[..., None]
        length = jnp.shape(keep(center))[-1] if length is None else length
        return cls(center, _stages(concentration, length), validate_args=validate_args)

    @numpyro_constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> numpyro_constraints.Constraint:
        return constraints.top_list(self.num_items)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> Array:
        assert is_prng_key(key)
        theta = jnp.broadcast_to(as_real(self.concentration), self.shape(sample_shape))
        return _sample_lists(key, theta, jnp.asarray(self.center).astype(jnp.int32))

    @validate_sample
    def log_prob(
        self, value: ArrayLike | PartialOrders, intermediates: list | None = None
    ) -> Array:
        if isinstance(value, PartialOrders):
            return self._log_prob_of_orders(value)
        check_event(value, self)
        return _log_prob(jnp.asarray(value), jnp.asarray(self.center), as_real(self.concentration))

    def _log_prob_of_orders(self, orders: PartialOrders) -> Array:
        orders = orders_of_all_items(orders)
        blocks = blocks_of_orders(orders, self.num_items)
        num_listed, (num_stages,) = orders.listed.shape[1], self.event_shape
        if num_stages < min(num_listed, self.num_items - 1):
            raise RankingsError(
                f"the partial orders list {num_listed} items, and there are concentrations of "
                f"{num_stages} stages"
            )
        theta = as_real(self.concentration)[..., :num_listed]
        # the last of all n items is certain
        theta = jnp.pad(theta, [*[(0, 0)] * (theta.ndim - 1), (0, num_listed - theta.shape[-1])])
        center = jnp.asarray(self.center).astype(jnp.int32)
        shape, parameters = against_rows(orders, self.batch_shape, center, theta)
        return _log_prob_of_orders(blocks, orders.listed, *parameters).reshape(shape)

    @property
    def mode(self) -> Array:
        """The first ``T`` items of the center."""
        top = jnp.asarray(self.center).astype(jnp.int32)[..., : self.event_shape[0]]
        return jnp.broadcast_to(top, self.shape())

    @property
    def expected_codes(self) -> Array:
        r"""Expected stage codes :math:`E_\theta s_j`, shape ``(…, T)``."""
        theta = as_real(self.concentration)
        codes = mean_code(theta, _largest(self.num_items, theta))
        return jnp.broadcast_to(codes, self.shape())

    def entropy(self) -> Array:
        theta = as_real(self.concentration)
        by_stage = theta * self.expected_codes + log_psi(theta, _largest(self.num_items, theta))
        return jnp.sum(by_stage, axis=-1)

    @staticmethod
    def infer_shapes(
        center: tuple[int, ...], concentration: tuple[int, ...] = ()
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if not concentration:
            return center[:-1], center[-1:]
        return np.broadcast_shapes(center[:-1], concentration[:-1]), concentration[-1:]


@vmap_over.register
def _vmap_over_generalized_mallows(
    dist: GeneralizedMallows, center: Any = None, concentration: Any = None
) -> Any:
    return vmap_over.dispatch(Distribution)(dist, center=center, concentration=concentration)


@kl_divergence.register(GeneralizedMallows, GeneralizedMallows)
def _kl_generalized_mallows(p: GeneralizedMallows, q: GeneralizedMallows) -> Array:
    """Closed form for two models with the same center; others raise NotImplementedError."""
    # If the centers are traced and cannot be compared, it is NaN where they differ.
    if (p.num_items, p.event_shape) != (q.num_items, q.event_shape):
        raise ValueError(
            "kl_divergence between GeneralizedMallows of "
            f"{p.event_shape[0]} of {p.num_items} and {q.event_shape[0]} of {q.num_items} items"
        )
    concrete = not_jax_tracer(p.center) and not_jax_tracer(q.center)
    xp = np if concrete else jnp
    same_center = xp.all(xp.asarray(p.center) == xp.asarray(q.center), axis=-1)
    if concrete and not np.all(same_center):
        raise NotImplementedError(
            "kl_divergence between GeneralizedMallows of different centers has no closed form"
        )
    theta_p, theta_q = as_real(p.concentration), as_real(q.concentration)
    by_stage = (
        (theta_q - theta_p) * p.expected_codes
        + log_psi(theta_q, _largest(q.num_items, theta_q))
        - log_psi(theta_p, _largest(p.num_items, theta_p))
    )
    return jnp.where(same_center, jnp.sum(by_stage, axis=-1), jnp.nan)


@jax.jit
def _sample_prior(key: jax.Array, nu: Array, r: Array, largest: Array) -> Array:
    return sample_concentration(key, nu * r, nu + 1, largest)


@jax.jit
def _log_prior(theta: Array, nu: Array, r: Array, largest: Array) -> Array:
    unnormalised = -nu * (r * theta + log_psi(theta, largest))
    return jnp.sum(unnormalised - log_beta_tilde(nu * r, nu + 1, largest), axis=-1)


class MallowsConcentrationPrior(Distribution):
    r"""
    Conjugate prior of the concentrations of :class:`GeneralizedMallows`, given its center.

    The stages are independent, with density

    .. math::
        p(\theta_j) = \frac{e^{-\nu r_j \theta_j}\, \psi_{n-1-j}(\theta_j)^{-\nu}}
        {\widetilde{B}(\nu r_j,\, \nu + 1,\, n-1-j)}, \qquad \theta_j \ge 0,

    as if :math:`\nu` rankings had been seen whose codes at stage :math:`j` average
    :math:`r_j`. Given codes that sum to :math:`S_j` over the :math:`N_j` lists that reach stage
    :math:`j`, the posterior has :math:`\nu r_j + S_j` in place of :math:`\nu r_j` and
    :math:`\nu + N_j` in place of :math:`\nu`. This is equation (4) of Meilă and Chen (2010) without
    its factor for the center. Draws are exact, but have no reparametrised gradient.

    :param nu: prior sample size :math:`\nu > 0`, a scalar or one for each stage, ``(…, T)``.
    :param r: prior mean code :math:`r_j > 0`, a scalar or one for each stage, ``(…, T)``.
    :param int num_items: number of items :math:`n`.
    :param int num_stages: :math:`T`; by default the last axis of ``nu`` or ``r``, and
        ``n - 1`` if both are scalars.

    .. doctest::

       >>> d = MallowsConcentrationPrior(2.0, 0.5, num_items=4)
       >>> d.event_shape
       (3,)
       >>> theta = d.sample(jax.random.key(0), (100,))
       >>> bool((theta >= 0).all()), d.log_prob(theta).shape
       (True, (100,))
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        "nu": numpyro_constraints.independent(numpyro_constraints.positive, 1),
        "r": numpyro_constraints.independent(numpyro_constraints.positive, 1),
    }
    support = numpyro_constraints.independent(numpyro_constraints.nonnegative, 1)
    pytree_data_fields = ("nu", "r")
    pytree_aux_fields = ("num_items",)

    def __init__(
        self,
        nu: ArrayLike,
        r: ArrayLike,
        num_items: int,
        num_stages: int | None = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        nu, r = keep(nu), keep(r)
        self.num_items = int(num_items)
        if num_stages is None:
            per_stage = [x.shape[-1] for x in (nu, r) if x.ndim > 0]
            num_stages = max(per_stage, default=self.num_items - 1)
        if not 1 <= num_stages <= self.num_items:
            raise ValueError(
                f"rankings of {self.num_items} items cannot have {num_stages} stages; "
                "nu and r are scalars or have one entry per stage along their last axis"
            )
        nu = _stages(nu if nu.ndim else nu[None], num_stages)
        r = _stages(r if r.ndim else r[None], num_stages)
        batch = np.broadcast_shapes(nu.shape[:-1], r.shape[:-1])
        (self.nu,) = promote_shapes(nu, shape=(*batch, num_stages))
        (self.r,) = promote_shapes(r, shape=(*batch, num_stages))
        super().__init__(batch, (num_stages,), validate_args=validate_args)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> Array:
        assert is_prng_key(key)
        shape = self.shape(sample_shape)
        nu, r = jnp.broadcast_to(as_real(self.nu), shape), as_real(self.r)
        return _sample_prior(key, nu, r, _largest(self.num_items, nu))

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list | None = None) -> Array:
        check_event(value, self)
        nu, r = as_real(self.nu), as_real(self.r)
        theta = as_real(value)
        return _log_prior(theta, nu, r, _largest(self.num_items, theta))


@vmap_over.register
def _vmap_over_mallows_concentration_prior(
    dist: MallowsConcentrationPrior, nu: Any = None, r: Any = None
) -> Any:
    return vmap_over.dispatch(Distribution)(dist, nu=nu, r=r)
