"""Distributions over partitions: the Chinese restaurant process and finite Dirichlet mixtures."""

from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import Distribution
from numpyro.distributions import constraints as numpyro_constraints
from numpyro.distributions.batch_util import vmap_over
from numpyro.distributions.util import promote_shapes, validate_sample
from numpyro.util import is_prng_key, not_jax_tracer

from numpyro_rankings.distributions import constraints
from numpyro_rankings.distributions.permutation import as_real, check_event
from numpyro_rankings.ops.checks import check_whole

__all__ = ["ChineseRestaurantProcess", "FiniteDirichletPartition"]


def _blocks(labels: Array) -> tuple[Array, Array]:
    """For each entry, (…, N), the first one with the same label, and how many such precede it."""
    # Sorting avoids a table of all labels and a loop.
    seats = jnp.arange(labels.shape[-1], dtype=jnp.int32)

    def one_partition(labels: Array) -> tuple[Array, Array]:
        order = jnp.argsort(labels, stable=True).astype(jnp.int32)
        ordered = labels[order]
        opens = jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])
        start = jax.lax.cummax(jnp.where(opens, seats, 0))
        unsorted = jnp.zeros_like(seats).at[order]
        return (
            unsorted.set(order[start], unique_indices=True),
            unsorted.set(seats - start, unique_indices=True),
        )

    return jnp.vectorize(one_partition, signature="(n)->(n),(n)")(labels)


def in_order_of_use(labels: Array) -> Array:
    """Relabel a partition 0, 1, … in order of first use."""
    first, members = _blocks(labels)
    rank = jnp.cumsum(members == 0, axis=-1, dtype=jnp.int32) - 1
    return jnp.take_along_axis(rank, first, axis=-1)


def _follow(follows: Array, passes_on: Array) -> tuple[Array, Array]:
    """Find the end of each chain of followers, and whether all entries along it pass on, (…, N)."""
    # Each entry follows an earlier one or, at the end of a chain, itself. The chains are halved
    # repeatedly, so that seating N members takes log N steps instead of N.

    def halve(_: int, chains: tuple[Array, Array]) -> tuple[Array, Array]:
        follows, passes_on = chains
        ahead = jnp.take_along_axis(passes_on, follows, axis=-1)
        return jnp.take_along_axis(follows, follows, axis=-1), passes_on & ahead

    return jax.lax.fori_loop(0, follows.shape[-1].bit_length(), halve, (follows, passes_on))


@jax.jit
def _log_prob(labels: Array, concentration: Array, discount: Array, most_blocks: int) -> Array:
    """Two-parameter formula; the discount may be negative if the number of blocks is bounded."""
    dtype = concentration.dtype
    concentration, discount = concentration[..., None], discount[..., None]
    members = _blocks(labels)[1][..., 1:]
    opens = members == 0
    # The number of blocks before a seat that opens one: those counted here, less its own, plus the
    # block of the first seat.
    blocks = jnp.cumsum(opens, axis=-1)
    weight = jnp.where(
        opens,
        jnp.where(blocks < most_blocks, concentration + blocks.astype(dtype) * discount, 0),
        jnp.maximum(members, 1).astype(dtype) - discount,
    )
    total = concentration + jnp.arange(1, labels.shape[-1], dtype=dtype)
    # One log ratio per seat: all have the same sign and none is large, so nothing cancels in
    # float32, unlike in differences of lgamma at large counts.
    possible = weight > 0
    log_ratio = jnp.log(jnp.where(possible, weight, 1) / total)
    return jnp.sum(jnp.where(possible, log_ratio, -jnp.inf), axis=-1)


@partial(jax.jit, static_argnames="shape")
def _sample_restaurant(
    key: jax.Array, concentration: Array, discount: Array, shape: tuple[int, ...]
) -> Array:
    # Each seated member has weight 1. A new member follows one of them and joins its block. But if
    # it follows the opener of a block, it opens a new block with probability equal to the discount.
    # The very first member has weight 1 + concentration, all of which but 1 - discount opens one.
    concentration, discount = concentration[..., None], discount[..., None]
    dtype = concentration.dtype
    key_first, key_member, key_part = jax.random.split(key, 3)
    seats = jnp.arange(shape[-1], dtype=jnp.int32)
    seated = jnp.maximum(seats, 1)
    weight_first = 1 + concentration
    follows_first = jax.random.bernoulli(
        key_first, weight_first / (concentration + seated.astype(dtype)), shape, mode="high"
    )
    later = jax.random.randint(key_member, shape, 1, jnp.maximum(seated, 2))
    follows = jnp.where(follows_first, 0, later)
    part = jax.random.uniform(key_part, shape, dtype)
    opens_at_opener = jnp.where(follows_first, part * weight_first >= 1 - discount, part < discount)
    opens = _follow(follows, (seats == 0) | opens_at_opener)[1]
    openers, _ = _follow(jnp.where(opens, seats, follows), opens)
    return in_order_of_use(openers)


@partial(jax.jit, static_argnames="shape")
def _sample_components(
    key: jax.Array, concentration: Array, num_components: int, shape: tuple[int, ...]
) -> Array:
    # Follow a seated member, weight 1 each, or draw a component from the prior, as the first member
    # must.
    concentration = concentration[..., None]
    key_prior, key_member, key_component = jax.random.split(key, 3)
    seats = jnp.arange(shape[-1], dtype=jnp.int32)
    total = concentration + seats.astype(concentration.dtype)
    by_prior = jax.random.bernoulli(key_prior, concentration / total, shape, mode="high")
    by_prior = by_prior | (seats == 0)
    member = jax.random.randint(key_member, shape, 0, jnp.maximum(seats, 1))
    component = jax.random.randint(key_component, shape, 0, num_components)
    ends, _ = _follow(jnp.where(by_prior, seats, member), by_prior)
    return in_order_of_use(jnp.take_along_axis(component, ends, axis=-1))


class _SequentialPartition(Distribution):
    """Partitions whose members are seated one after another."""

    support = constraints.canonical_labels
    pytree_data_fields: tuple[str, ...] = ()
    pytree_aux_fields = ("max_clusters",)
    max_clusters: int | None

    @abstractmethod
    def _two_parameters(self) -> tuple[Array, Array, int]:
        """Concentration, discount and the largest possible number of blocks."""

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list | None = None) -> Array:
        check_event(value, self)
        labels = jnp.asarray(value).astype(jnp.int32)
        log_prob = _log_prob(labels, *self._two_parameters())
        if self.max_clusters is None:
            return log_prob
        return jnp.where(jnp.any(labels >= self.max_clusters, axis=-1), -jnp.inf, log_prob)


class ChineseRestaurantProcess(_SequentialPartition):
    r"""
    Chinese restaurant process: the partition of :math:`N` draws from a Dirichlet process or, with a
    discount, from a Pitman–Yor process.

    The value is the labels of the partition, int32, shape ``(…, N)``: 0-based in order of first
    use. With :math:`k` blocks of sizes :math:`n_c`, concentration :math:`\theta` and discount
    :math:`d`,

    .. math::
        P = \frac{\prod_{l=1}^{k-1} (\theta + l d)}{\prod_{i=1}^{N-1} (\theta + i)}
        \prod_{c} \frac{\Gamma(n_c - d)}{\Gamma(1 - d)}.

    With ``validate_args=False``, labels in any other numbering have the log probability of their
    partition. The cost is that of sorting the labels; no table of blocks is made.

    :param concentration: :math:`\theta > -d`, shape ``(…)``.
    :param int size: :math:`N`, the number of members.
    :param discount: :math:`0 \le d < 1`, shape ``(…)``.
    :param int max_clusters: if given, partitions with a label of this value or higher have log
        probability ``-inf``: the capacity of a model with so many slots. Samples ignore it.

    **References:**

    1. Pitman, J. (2006), *Combinatorial Stochastic Processes*, Springer, section 3.2.

    .. doctest::

       >>> d = ChineseRestaurantProcess(1.0, 3)
       >>> [round(float(jnp.exp(d.log_prob(jnp.array(x)))), 4) for x in ([0, 0, 0], [0, 1, 2])]
       [0.3333, 0.1667]
       >>> d.sample(jax.random.key(1), (5,)).shape
       (5, 3)
    """

    arg_constraints: ClassVar[dict[str, Any]] = {
        # More than -discount, which validate_args checks: it depends on the other argument.
        "concentration": numpyro_constraints.dependent(is_discrete=False, event_dim=0),
        "discount": constraints.unit_interval_without_one,
    }
    pytree_data_fields = ("concentration", "discount")

    def __init__(
        self,
        concentration: ArrayLike,
        size: int,
        discount: ArrayLike = 0.0,
        *,
        max_clusters: int | None = None,
        validate_args: bool | None = None,
    ) -> None:
        batch = np.broadcast_shapes(jnp.shape(concentration), jnp.shape(discount))
        self.concentration, self.discount = promote_shapes(concentration, discount, shape=batch)
        self.max_clusters = max_clusters
        super().__init__(batch, (_positive(size, "size"),), validate_args=validate_args)

    def validate_args(self, strict: bool = True) -> None:
        super().validate_args(strict)
        with jax.ensure_compile_time_eval():
            is_valid = self.concentration > -self.discount
        # in NumPy: jnp.all would be traced, also of values that are known
        if not_jax_tracer(is_valid) and not np.asarray(is_valid).all():
            raise ValueError(
                "ChineseRestaurantProcess distribution got invalid concentration parameter: "
                "it must be positive, or more than -discount."
            )

    def _two_parameters(self) -> tuple[Array, Array, int]:
        most_blocks = np.iinfo(np.int32).max
        return as_real(self.concentration), as_real(self.discount), most_blocks

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> Array:
        assert is_prng_key(key)
        concentration, discount, _ = self._two_parameters()
        return _sample_restaurant(key, concentration, discount, self.shape(sample_shape))


class FiniteDirichletPartition(_SequentialPartition):
    r"""
    Partition by the labels of a finite mixture with symmetric Dirichlet weights.

    The labels are :math:`N` draws from ``Categorical(w)``, ``w ~ Dirichlet(alpha/K, …, alpha/K)``,
    of which only equality matters. With :math:`k \le K` blocks of sizes :math:`n_c` and
    :math:`\kappa = \alpha / K`,

    .. math::
        P = \frac{K!}{(K-k)!} \frac{\Gamma(\alpha)}{\Gamma(\alpha + N)}
        \prod_{c} \frac{\Gamma(n_c + \kappa)}{\Gamma(\kappa)},

    and 0 for more than :math:`K` blocks. This is the two-parameter process with discount
    :math:`-\kappa`. It tends to :class:`ChineseRestaurantProcess` as :math:`K` grows.

    :param concentration: :math:`\alpha > 0`, shape ``(…)``.
    :param int num_components: :math:`K`.
    :param int size: :math:`N`.
    :param int max_clusters: if given, partitions with a label of this value or higher have log
        probability ``-inf``.

    .. doctest::

       >>> d = FiniteDirichletPartition(2.0, num_components=2, size=3)
       >>> labels = jnp.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]])
       >>> [round(float(p), 4) for p in jnp.exp(d.log_prob(labels))]
       [0.5, 0.1667, 0.1667, 0.1667]
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": numpyro_constraints.positive}
    pytree_data_fields = ("concentration",)
    pytree_aux_fields = ("num_components",)

    def __init__(
        self,
        concentration: ArrayLike,
        num_components: int,
        size: int,
        *,
        max_clusters: int | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration = concentration
        self.num_components = _positive(num_components, "num_components")
        self.max_clusters = max_clusters
        batch = jnp.shape(concentration)
        super().__init__(batch, (_positive(size, "size"),), validate_args=validate_args)

    def _two_parameters(self) -> tuple[Array, Array, int]:
        concentration = as_real(self.concentration)
        return concentration, -concentration / self.num_components, self.num_components

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> Array:
        assert is_prng_key(key)
        concentration, _, num_components = self._two_parameters()
        return _sample_components(key, concentration, num_components, self.shape(sample_shape))


def _positive(number: int, name: str) -> int:
    check_whole(name, number)
    return int(number)


@vmap_over.register
def _vmap_over_chinese_restaurant_process(
    dist: ChineseRestaurantProcess, concentration: Any = None, discount: Any = None
) -> Any:
    axes = vmap_over.dispatch(Distribution)
    return axes(dist, concentration=concentration, discount=discount)


@vmap_over.register
def _vmap_over_finite_dirichlet_partition(
    dist: FiniteDirichletPartition, concentration: Any = None
) -> Any:
    return vmap_over.dispatch(Distribution)(dist, concentration=concentration)
