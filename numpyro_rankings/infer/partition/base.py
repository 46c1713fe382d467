"""Base of the samplers of partitions: model, state, prior, initial labels, concentration."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.components.checks import check_family_in_kernel
from numpyro_rankings.components.family import Family, take, with_auxiliary
from numpyro_rankings.components.points import (
    DataPoints,
    as_points,
    read_auxiliary,
    repeat,
    start_auxiliary,
    update_auxiliary,
)
from numpyro_rankings.distributions import ChineseRestaurantProcess
from numpyro_rankings.families import RankingFamily
from numpyro_rankings.infer.base import GibbsKernel
from numpyro_rankings.infer.blocks import check_block_family
from numpyro_rankings.infer.checks import check_possible, check_scale, check_start_values
from numpyro_rankings.infer.mixture.labels import canonical_order
from numpyro_rankings.infer.mixture.membership import label_dtype
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.priors import draw_start
from numpyro_rankings.models import conjugate_mixture
from numpyro_rankings.ops.checks import check_whole, is_traced
from numpyro_rankings.ops.sums import count_by_label

_WEIGHT_OF_LAST = 0.1  # least weight of a warm-up sweep in the mean number of clusters


class PartitionState(NamedTuple):
    """State of one chain, with what the permutation-augmented sampler adapts to."""

    z: dict[str, Array]  # values of the sites, by name
    potential_energy: Array  # minus the log joint
    accept_prob: Array  # mean of the Metropolis-Hastings moves of the sweep, or 1
    overflow: Array  # whether a move wanted more clusters than there are slots
    rng_key: Array  # key of the next sweep
    warmup_left: Array  # number of warm-up sweeps still to come
    mean_clusters: Array  # mean number of clusters over the last sweeps of warm-up
    warmup_done: Array  # number of warm-up sweeps so far


class CurrentPartition(NamedTuple):
    """The values that a sweep changes."""

    labels: Array  # cluster of each point, (N,) int32
    prior: PartitionPrior  # prior of the partition, with the current α
    auxiliary: dict[str, Array]  # auxiliary variables of the family by site, {} without any
    points: DataPoints  # given these variables


class Given(NamedTuple):
    """The values that a move of the labels conditions on."""

    points: DataPoints
    prior: PartitionPrior  # prior of the partition, with the current α
    family: Family
    num_slots: int  # C, the largest number of clusters

    def clusters_of(self, labels: Array) -> Any:
        """Statistics of the cluster in each slot, leading axis C."""
        return self.family.of_clusters(self.points.statistics, labels, self.num_slots)

    def sizes_of(self, labels: Array) -> Array:
        """Number of points in each slot, (C,)."""
        return count_by_label(labels, self.num_slots)


class Move(NamedTuple):
    """New **labels** (N,), and **accept_prob** and **overflow** of the move, as in the state."""

    labels: Array
    accept_prob: Array
    overflow: Array


class PartitionKernel(GibbsKernel):
    """Base of the kernels whose state is a partition of data of a conjugate family.

    A subclass gives :meth:`_move`, which leaves the posterior of the labels given alpha invariant.
    """

    starts: tuple[str, ...] = ("sequential", "one", "singletons")  # values of init
    has_decisions = False  # whether a sweep accepts or rejects, so that accept_prob is informative

    def __init__(
        self,
        family: Family,
        alpha: float | dist.Distribution = 1.0,
        *,
        discount: float = 0.0,
        max_clusters: int = 64,
        init: str = "sequential",
        model: Callable | None = None,
        sites: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(family, Family):
            raise ValueError(f"family must be a component family, got {family!r}")
        if not isinstance(discount, int | float | np.number) or not 0 <= float(discount) < 1:
            raise ValueError(f"discount must be a number, at least 0 and less than 1: {discount!r}")
        check_scale("alpha", alpha)
        check_whole("max_clusters", max_clusters, 1)
        if init not in self.starts:
            raise ValueError(f"init is one of {self.starts}, got {init!r}")
        self._family, self._alpha, self._discount = family, alpha, float(discount)
        self._max_clusters, self._start = max_clusters, init
        self._is_block = model is not None
        self._sites = {"assignments": "assignments", **(sites or {})}
        if set(self._sites) != {"assignments"}:
            raise ValueError(f"sites can name ['assignments'], got {sorted(self._sites)}")
        check_block_family(family, self._is_block)
        if model is None:
            model = partial(
                conjugate_mixture,
                family=family,
                alpha=alpha,
                discount=self._discount,
                max_clusters=max_clusters,
            )
        super().__init__(model)

    @property
    def family(self) -> Family:
        """The component family."""
        return self._family

    @property
    def ranking_family(self) -> RankingFamily | None:
        """The likelihood of rankings in the clusters, None if the data are no rankings."""
        return self._family.ranking_family

    @property
    def discount(self) -> float:
        """The discount d of the Pitman-Yor process."""
        return self._discount

    @property
    def num_slots(self) -> int:
        """The largest number of clusters."""
        return self._max_clusters

    @abstractmethod
    def _move(
        self, key: Array, labels: Array, prior: PartitionPrior, points: DataPoints, state: Any
    ) -> Move:
        """Draw new labels given α, by a move that leaves their posterior invariant.

        :param prior: prior of the partition, with the current α.
        :param state: state before the sweep, for a move that adapts in warm-up.
        """

    def _scale_arguments(self) -> dict[str, Any]:
        return {"alpha": self._alpha}

    def _shared_settings(self) -> dict[str, Any]:
        """Return what the kernels of a :class:`Cycle` have in common, by name."""
        return {
            "family": self._family,
            "alpha": self._alpha,
            "discount": self._discount,
            "max_clusters": self._max_clusters,
            "sites": self._sites,
        }

    # -- data ------------------------------------------------------------------------------------

    def _data(self, args: tuple, kwargs: dict) -> Any:
        if not self._is_block and len(args) + len(kwargs) > 1:
            raise TypeError("the kernel takes the data and nothing else: mcmc.run(key, data)")
        if args:
            return args[0]
        if "data" in kwargs:
            return kwargs["data"]
        raise TypeError("the kernel needs the data as the first argument of mcmc.run(key, …)")

    def _points(self, args: tuple, kwargs: dict, z: dict) -> DataPoints:
        return as_points(self._family, with_auxiliary(self._family, self._data(args, kwargs), z))

    def _check(self, args: tuple, kwargs: dict) -> None:
        self._check_use_as_block()
        data = self._data(args, kwargs)
        if not is_traced(data):
            self._family.check(data)
            check_family_in_kernel(self._family, data)
        size = self._family.size(data)
        if size == 0:
            raise ValueError("there are no points")
        if self._start == "singletons" and size > self._max_clusters:
            raise ValueError(
                "init='singletons' needs as many slots as there are points: "
                f"max_clusters={size}, not {self._max_clusters}"
            )

    # -- state -----------------------------------------------------------------------------------

    def _check_start(
        self, start: dict | None, chains: tuple[int, ...], args: tuple, kwargs: dict
    ) -> None:
        check_start_values(start)
        given = (start or {}).get("assignments")
        if given is None or is_traced(given):
            return
        labels, size = np.asarray(given), self._family.size(self._data(args, kwargs))
        if labels.dtype.kind not in "iu" or labels.shape != (*chains, size):
            raise ValueError(
                f"init_params['assignments'] must be one label for each of the {size} points, "
                f"an integer array of shape {(*chains, size)}, got {labels.shape} of {labels.dtype}"
            )
        if labels.max() >= self._max_clusters:
            raise ValueError(
                "init_params['assignments'] must be labels below max_clusters = "
                f"{self._max_clusters}"
            )

    def _finish_start(self, state: Any, num_warmup: int) -> Any:
        if not self._is_block:
            check_possible(state.potential_energy)
        return state._replace(warmup_left=jnp.full_like(state.warmup_left, num_warmup))

    def _prior(self, z: dict, args: tuple, kwargs: dict) -> PartitionPrior:
        """Prior with the current α; as a block, that of the user's model given its other sites."""
        if not self._is_block:
            return PartitionPrior(jnp.asarray(z["alpha"], float), discount=self._discount)
        site = self._sites["assignments"]
        prior = self._trace_model({site: z[site]}, args, kwargs)[site]["fn"]
        if not isinstance(prior, ChineseRestaurantProcess):
            raise ValueError(
                f"site {site!r} must have a ChineseRestaurantProcess as its prior, not {prior!r}"
            )
        if prior.max_clusters != self._max_clusters:
            raise ValueError(
                f"the prior of site {site!r} has max_clusters={prior.max_clusters}, the kernel "
                f"{self._max_clusters}"
            )
        self._check_prior(prior)
        discount = jnp.asarray(prior.discount, float)
        return PartitionPrior(jnp.asarray(prior.concentration, float), discount=discount)

    def _check_prior(self, prior: ChineseRestaurantProcess) -> None:
        """Raise ValueError if the kernel cannot handle such a prior of a user's model."""

    def _init(
        self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict
    ) -> PartitionState:
        key_alpha, key_labels, rng_key, key_auxiliary = random.split(rng_key, 4)
        start = {} if self._is_block else dict(init_params or {})
        auxiliary = start_auxiliary(key_auxiliary, self._family, self._data(args, kwargs), start)
        points, site = self._points(args, kwargs, auxiliary), self._sites["assignments"]
        z = {site: jnp.zeros(points.size, jnp.int32)}
        if not self._is_block:
            z["alpha"] = jnp.asarray(draw_start(key_alpha, start.get("alpha", self._alpha)), float)
        prior = self._prior(z, args, kwargs)
        if self._is_block:
            self._check_dependents(z, args, kwargs, lambda _, fn: isinstance(fn, dist.Unit))
        if "assignments" in start:
            labels = jnp.asarray(start["assignments"], jnp.int32)
        else:
            given = Given(points, prior, self._family, self._max_clusters)
            labels = self._start_labels(key_labels, given)
        zero = jnp.zeros(())
        state = PartitionState(
            z, zero, zero + 1.0, jnp.array(False), rng_key, jnp.array(0), zero, jnp.array(0)
        )
        return self._write(state, CurrentPartition(labels, prior, auxiliary, points))

    def _start_labels(self, key: Array, given: Given) -> Array:
        """Initial labels, (N,)."""
        if self._start == "one":
            return jnp.zeros(given.points.size, jnp.int32)
        if self._start == "singletons":
            return jnp.arange(given.points.size, dtype=jnp.int32)
        return predict_in_turn(key, given)

    # -- sweep -----------------------------------------------------------------------------------

    def _sweep(self, state: PartitionState, args: tuple, kwargs: dict) -> PartitionState:
        rng_key, key_move, key_alpha, key_auxiliary = random.split(state.rng_key, 4)
        current = self._read(state, args, kwargs)
        # labels given α: see _move of each kernel
        move = self._move(key_move, current.labels, current.prior, current.points, state)
        current = current._replace(labels=move.labels)
        sizes = count_by_label(move.labels, self._max_clusters)
        # α given the labels [Escobar & West 1995]
        current = current._replace(prior=self._update_alpha(key_alpha, current.prior, sizes))
        state = state._replace(
            accept_prob=move.accept_prob, overflow=move.overflow, rng_key=rng_key
        )
        state = adapt(state, jnp.sum(sizes > 0))
        # auxiliary variables given the labels
        current = self._update_auxiliary(key_auxiliary, current, args, kwargs)
        return self._write(state, current)

    def _read(self, state: PartitionState, args: tuple, kwargs: dict) -> CurrentPartition:
        return CurrentPartition(
            labels=state.z[self._sites["assignments"]].astype(jnp.int32),
            prior=self._prior(state.z, args, kwargs),
            auxiliary=read_auxiliary(self._family, state.z),
            points=self._points(args, kwargs, state.z),
        )

    def _update_auxiliary(
        self, key: Array, current: CurrentPartition, args: tuple, kwargs: dict
    ) -> CurrentPartition:
        """Draw the auxiliary variables of the family given the labels, if it has any."""
        auxiliary = update_auxiliary(
            key,
            self._family,
            self._data(args, kwargs),
            current.auxiliary,
            current.labels,
            self._max_clusters,
        )
        if not auxiliary:
            return current
        points = self._points(args, kwargs, auxiliary)
        return current._replace(auxiliary=auxiliary, points=points)

    def _write(self, state: PartitionState, current: CurrentPartition) -> PartitionState:
        """The state with canonical labels, in order of first use, and the log joint."""
        slots = self._max_clusters
        labels, _ = canonical_order(current.labels, slots)
        sizes = count_by_label(labels, slots)
        log_joint = self._log_joint(current._replace(labels=labels), sizes)
        sites = {self._sites["assignments"]: labels.astype(label_dtype(slots)), **current.auxiliary}
        scalars = {
            "num_clusters": jnp.sum(sizes > 0),
            "alpha": current.prior.alpha,
            "log_joint": log_joint,
        }
        z = sites if self._is_block else {**sites, **scalars}
        return state._replace(z=z, potential_energy=-log_joint)

    def _log_joint(self, current: CurrentPartition, sizes: Array) -> Array:
        """log p(data, labels, α), where the labels have these sizes, (C,)."""
        points, prior = current.points, current.prior
        clusters = self._family.of_clusters(points.statistics, current.labels, self._max_clusters)
        log_joint = prior.log_prob(sizes) + self._family.log_marginal(clusters).sum()
        return self._add_log_priors(log_joint + points.log_base, alpha=prior.alpha)

    def _potential(self, state: PartitionState, args: tuple, kwargs: dict) -> Array:
        current = self._read(state, args, kwargs)
        return -self._log_joint(current, count_by_label(current.labels, self._max_clusters))


def adapt(state: PartitionState, num_clusters: Array) -> PartitionState:
    """Count a sweep, and during warm-up update the running mean of the number of clusters."""
    warm = state.warmup_left > 0
    done = state.warmup_done + warm
    # later sweeps count more: the initial labels may have far more clusters
    weight = jnp.maximum(1.0 / jnp.maximum(done, 1), _WEIGHT_OF_LAST)
    step = weight * (num_clusters.astype(float) - state.mean_clusters)
    return state._replace(
        warmup_left=jnp.maximum(state.warmup_left - 1, 0),
        warmup_done=done,
        mean_clusters=state.mean_clusters + jnp.where(warm, step, 0.0),
    )


def predict_in_turn(key: Array, given: Given) -> Array:
    """Seat the points one after another by their predictive probability: labels (N,)."""
    points, prior, family, num_slots = given
    clusters = repeat(points.empty, num_slots)
    sizes = jnp.zeros(num_slots, jnp.int32)

    def seat(carry: tuple, inputs: tuple) -> tuple:
        clusters, sizes = carry
        point, log_alone, noise = inputs
        number = jnp.sum(sizes > 0)
        # slots are taken in order, so that the next new cluster takes slot `number`
        log_weights = prior.log_join(sizes) + family.log_predictive(clusters, point)
        is_next = jnp.arange(num_slots) == number
        log_weights = jnp.where(is_next, prior.log_open(number) + log_alone, log_weights)
        seat = jnp.argmax(log_weights + noise)
        joined = family.add(take(clusters, seat), point)
        clusters = jax.tree.map(lambda x, y: x.at[seat].set(y), clusters, joined)
        return (clusters, sizes.at[seat].add(1)), seat.astype(jnp.int32)

    noise = random.gumbel(key, (points.size, num_slots))
    inputs = points.statistics, points.log_alone, noise
    return jax.lax.scan(seat, (clusters, sizes), inputs)[1]
