"""What the Gibbs kernels for mixtures of generalized Mallows models share."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.distributions import (
    ChineseRestaurantProcess,
    FiniteDirichletPartition,
    GeneralizedMallows,
    MallowsConcentrationPrior,
    RandomPermutation,
)
from numpyro_rankings.infer.base import GibbsKernel, find_rankings
from numpyro_rankings.infer.blocks import check_judge_sites, check_prior_of_slots, log_of_own
from numpyro_rankings.infer.checks import (
    check_only_rankings,
    check_prior,
    check_scale,
    leave_to_model,
)
from numpyro_rankings.infer.mallows.centers import propose_rearrangement, update_centers
from numpyro_rankings.infer.mallows.concentrations import (
    ConcentrationPrior,
    Conjugate,
    PerStage,
    Tied,
    per_stage_prior,
)
from numpyro_rankings.infer.mallows.data import (
    MallowsData,
    check_code_sums,
    code_sums,
    stage_counts,
)
from numpyro_rankings.infer.mallows.label_free import update_marginally
from numpyro_rankings.infer.mallows.labels import (
    NewClusters,
    Seats,
    update_assignments_parallel,
    update_assignments_sequential,
)
from numpyro_rankings.infer.mallows.start import (
    LEAST_SEARCH,
    STARTS,
    num_iterations,
    start_nearest,
    start_random,
    start_searched,
)
from numpyro_rankings.infer.mixture.label_free import number_of_moves
from numpyro_rankings.infer.mixture.labels import canonical_order
from numpyro_rankings.infer.mixture.members import Members, label_dtype
from numpyro_rankings.infer.mixture.prior import PartitionPrior, log_partition_prior, update_alpha
from numpyro_rankings.infer.priors import base_of, draw_start, log_prior
from numpyro_rankings.models import mallows_mixture
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.codes import inverse_ordering, max_codes
from numpyro_rankings.ops.pairs import Pair, add_number, exact_products, sum_as_pair, times_log_psi
from numpyro_rankings.ops.sampling import sample_concentration
from numpyro_rankings.ops.special import log_beta_tilde_change, log_psi
from numpyro_rankings.ops.sums import count_by_label
from numpyro_rankings.rankings import Rankings, num_stages


class MallowsState(NamedTuple):
    """
    - **z** - ``assignments`` (N,), ``center`` (C, n), ``concentration`` (C, T),
      ``cluster_sizes`` (C,), ``num_clusters``, ``alpha``, ``log_joint``,
      and ``log_joint_rest``, what float32 leaves of it.
    - **potential_energy** - minus the log joint.
    - **accept_prob** - mean acceptance probability of the Metropolis-Hastings steps of the sweep:
      of the stagewise center draws, and of the labels in an exact Beta-Gibbs.
    - **overflow** - whether the sweep wanted more cluster slots than there are.
    - **rng_key** - key of the next sweep.
    """

    z: dict[str, Array]
    potential_energy: Array
    accept_prob: Array
    overflow: Array
    rng_key: Array


class Hyper(NamedTuple):
    """What a sweep is conditioned on: the priors at the present values of their parameters."""

    partition: PartitionPrior
    concentration: ConcentrationPrior


class _MallowsGibbs(GibbsKernel):
    """What Slice-Gibbs and Beta-Gibbs share: all but the update of the labels."""

    _exact = True

    def __init__(
        self,
        *,
        alpha: float | dist.Distribution,
        nu: Any,
        r: Any,
        concentration_prior: dist.Distribution | None,
        tied: bool,
        num_components: int | None,
        max_clusters: int,
        init: str | None,
        num_center_updates: int,
        num_reinsertions: int | None,
        num_marginal_steps: int | None,
        model: Callable | None,
        sites: Mapping[str, str] | None,
        judge_sites: Sequence[str] = (),
    ) -> None:
        _check_settings(alpha, nu, r, num_components, max_clusters, init)
        if tied and concentration_prior is None:
            raise ValueError("tied=True needs a concentration_prior, for instance dist.Gamma(1, 1)")
        if (
            tied
            and concentration_prior is not None
            and concentration_prior.batch_shape + concentration_prior.event_shape != ()
        ):
            raise ValueError("with tied=True, concentration_prior must be a scalar distribution")
        if concentration_prior is not None:
            check_prior("concentration_prior", concentration_prior)
        check_whole("num_center_updates", num_center_updates, 1)
        for name, number in (
            ("num_reinsertions", num_reinsertions),
            ("num_marginal_steps", num_marginal_steps),
        ):
            if number is not None:
                check_whole(name, number, 0)
        self._alpha, self._nu, self._r = alpha, nu, r
        self._concentration_prior, self._tied = concentration_prior, tied
        self._num_components = num_components
        self._num_slots = max_clusters if num_components is None else num_components
        self._init_strategy = init
        self._num_center_updates, self._num_reinsertions = num_center_updates, num_reinsertions
        self._num_marginal_steps = num_marginal_steps
        self._is_block = model is not None
        leave_to_model(
            self._is_block,
            alpha=isinstance(alpha, dist.Distribution) or alpha != 1.0,
            nu=bool(np.any(np.asarray(nu) != 1.0)),
            r=bool(np.any(np.asarray(r) != 1.0)),
            concentration_prior=concentration_prior is not None,
        )
        names = {name: name for name in ("assignments", "center", "concentration")}
        self._sites = {**names, **(sites or {})}
        if set(self._sites) != set(names):
            raise ValueError(f"sites can name {sorted(names)}, got {sorted(self._sites)}")
        self._judge_sites = check_judge_sites(judge_sites, self._is_block)
        if model is None:
            model = partial(
                mallows_mixture,
                alpha=alpha,
                nu=nu,
                r=r,
                concentration_prior=concentration_prior,
                tied=tied,
                num_components=num_components,
                max_clusters=max_clusters,
            )
        super().__init__(model)

    @property
    def num_components(self) -> int | None:
        """K of a finite mixture, None for the Dirichlet process."""
        return self._num_components

    @property
    def num_slots(self) -> int:
        """C, the number of cluster slots."""
        return self._num_slots

    # -- what the sweep is conditioned on ------------------------------------------------------

    def _check(self, args: tuple, kwargs: dict) -> None:
        self._check_use_as_block()
        rankings = find_rankings(args, kwargs)
        if not self._is_block:
            check_only_rankings(args, kwargs)
        if rankings.choice_sets is not None:
            raise ValueError(
                "these are subset rankings (they have choice sets); a Mallows model is one of "
                "rankings of all items, where an item not listed ranks below the listed ones"
            )
        if rankings.num_items < 2:
            raise ValueError("a ranking needs at least 2 items")
        stages = num_stages(rankings)
        for name, value in (("nu", self._nu), ("r", self._r)):
            if np.shape(value) not in ((), (stages,)):
                raise ValueError(
                    f"{name} must be a scalar or have one entry for each of the {stages} stages, "
                    f"got shape {np.shape(value)}"
                )
        if self._concentration_prior is not None:
            per_stage_prior(self._concentration_prior, stages)
        check_code_sums(rankings, stages)

    def _data(self, rankings: Rankings) -> MallowsData:
        n, stages = rankings.num_items, num_stages(rankings)
        orderings = jnp.asarray(rankings.orderings)[:, :stages]
        left = (n - jnp.arange(stages)).astype(float)
        log_marginal = -jnp.sum(jnp.where(orderings >= 0, jnp.log(left), 0.0), axis=1)
        rows = jnp.asarray(rankings.row_index, jnp.int32)
        return MallowsData(orderings, jnp.asarray(rankings.counts), rows, log_marginal)

    def _hyper(self, z: dict, alpha: Array | None, args: tuple, kwargs: dict) -> Hyper:
        """The priors; as a block, those of the user's model given the sibling sites."""
        stages = num_stages(find_rankings(args, kwargs))
        if self._is_block:
            return self._hyper_from_model(z, stages, args, kwargs)
        if alpha is None:
            alpha = jnp.asarray(self._alpha, float)
        prior: ConcentrationPrior
        if self._tied:
            prior = Tied(self._concentration_prior)
        elif self._concentration_prior is not None:
            prior = PerStage(per_stage_prior(self._concentration_prior, stages))
        else:
            prior = self._conjugate(self._nu, self._r, stages)
        return Hyper(PartitionPrior(alpha, self._num_components), prior)

    def _conjugate(self, nu: Any, r: Any, stages: int) -> Conjugate:
        nu, r = jnp.asarray(nu, float), jnp.asarray(r, float)
        shape = jnp.broadcast_shapes(nu.shape, r.shape, (stages,))
        return Conjugate(jnp.broadcast_to(nu, shape), jnp.broadcast_to(r, shape))

    def _hyper_from_model(self, z: dict, stages: int, args: tuple, kwargs: dict) -> Hyper:
        values = {name: z[name] for name in self._sites.values()}
        trace = self._sites_of_model(values, args, kwargs)
        partition = trace[self._sites["assignments"]]["fn"]
        if isinstance(partition, FiniteDirichletPartition):
            num_components = partition.num_components
        elif isinstance(partition, ChineseRestaurantProcess):
            num_components = None
        else:
            raise ValueError(
                f"site {self._sites['assignments']!r} must have a ChineseRestaurantProcess or a "
                f"FiniteDirichletPartition as its prior, not {type(partition).__name__}"
            )
        if self._judge_sites:
            check_prior_of_slots(partition, self._sites["assignments"])
        alpha = jnp.asarray(partition.concentration, float)
        if num_components is None and not _is_zero(partition.discount):
            raise ValueError(
                f"the prior of site {self._sites['assignments']!r} has a discount; the kernel is "
                "one of the Dirichlet process, which has none"
            )
        center = trace[self._sites["center"]]["fn"]
        if not isinstance(base_of(center), RandomPermutation):
            raise ValueError(
                f"site {self._sites['center']!r} must have a RandomPermutation as its prior, not "
                f"{type(base_of(center)).__name__}"
            )
        site = self._sites["concentration"]
        prior = trace[site]["fn"]
        if prior.event_shape != (stages,):
            raise ValueError(
                f"site {site!r} must have event shape ({stages},), a value for each stage, as of "
                f".expand(({stages},)).to_event(1); it has {prior.event_shape}"
            )
        if prior.batch_shape not in ((), (self._num_slots,)):
            raise ValueError(
                f"site {self._sites['concentration']!r} has batch shape {prior.batch_shape}; the "
                f"kernel has {self._num_slots} cluster slots (max_clusters or num_components)"
            )
        prior = base_of(prior)
        per_slot = prior.batch_shape[: -1 if prior.event_shape == () else None]
        if any(size != 1 for size in per_slot):
            raise ValueError(
                f"the prior of site {site!r} must be the same in all slots, for the kernel numbers "
                f"the clusters anew; its parameters have shape {prior.batch_shape}"
            )
        if isinstance(prior, MallowsConcentrationPrior):
            concentration: ConcentrationPrior = self._conjugate(prior.nu, prior.r, stages)
        else:
            concentration = PerStage(per_stage_prior(prior, stages))
        return Hyper(PartitionPrior(alpha, num_components), concentration)

    # -- the chain -----------------------------------------------------------------------------

    def _init(
        self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict
    ) -> MallowsState:
        rankings = find_rankings(args, kwargs)
        data, n, slots = self._data(rankings), rankings.num_items, self._num_slots
        stages, names = num_stages(rankings), self._sites
        key_init, key_alpha, rng_key = random.split(rng_key, 3)
        given = dict(init_params or {})
        alpha = given.get("alpha")
        if alpha is None and isinstance(self._alpha, dist.Distribution):
            alpha = draw_start(key_alpha, self._alpha)
        iterations = self._search_iterations(rankings)
        if iterations > 0:
            start = start_searched(key_init, data, slots, n, self._tied, iterations)
        elif self._init_strategy == "random":
            start = start_random(key_init, data, slots, n, stages)
        else:
            start = start_nearest(key_init, data, slots, n, stages)
        # as a block, Gibbs always passes a draw from the prior: a poor start, to be asked for
        takes_given = not self._is_block or self._init_strategy == "given"
        if takes_given:
            start = {name: given.get(names[name], value) for name, value in start.items()}
        start["assignments"] = start["assignments"].astype(jnp.int32)
        start["concentration"] = jnp.asarray(start["concentration"], float)
        if alpha is not None:
            alpha = jnp.asarray(alpha, float)
        z = {names[name]: value for name, value in start.items()}
        hyper = self._hyper(z, alpha, args, kwargs)
        if not (takes_given and names["concentration"] in given):
            # out of a prior that excludes what the data suggest, no update would find its way
            theta = start["concentration"]
            key_theta = random.fold_in(key_init, 1)
            drawn = hyper.concentration.draw(key_theta, slots, max_codes(n, stages))
            possible = jnp.isfinite(hyper.concentration.log_prob(theta, n))
            start["concentration"] = jnp.where(possible[:, None], theta, drawn)
        outcomes = self._log_outcomes_at({names[k]: start[k] for k in names}, args, kwargs)
        if self._is_block:
            own = {names[k]: start[k] for k in names}
            self._check_dependents(
                own,
                names["assignments"],
                args,
                kwargs,
                lambda _, fn: isinstance(fn, GeneralizedMallows),
            )
        yes, no = jnp.ones(()), jnp.array(False)
        return self._state(start, hyper, data, n, rng_key, yes, no, outcomes)

    def _search_iterations(self, rankings: Rankings) -> int:
        """Iterations of the search for a start, 0 where there is none."""
        if self._init_strategy not in (None, "search") or (self._num_components or 1) == 1:
            return 0
        rows, stages = rankings.orderings.shape[0], num_stages(rankings)
        number = num_iterations(rows, stages, self._num_slots, rankings.num_items)
        if self._init_strategy == "search":
            return max(number, LEAST_SEARCH)
        return number if number >= LEAST_SEARCH else 0

    def _sweep(self, state: MallowsState, args: tuple, kwargs: dict) -> MallowsState:
        rankings = find_rankings(args, kwargs)
        data, n, slots = self._data(rankings), rankings.num_items, self._num_slots
        limits = max_codes(n, num_stages(rankings))
        names, z = self._sites, state.z
        hyper = self._hyper(z, z.get("alpha"), args, kwargs)
        rng_key, *keys = random.split(state.rng_key, 6)
        key_empty, key_labels, key_steps, key_params, key_alpha = keys

        now = {name: z[names[name]] for name in names}
        now["assignments"] = now["assignments"].astype(jnp.int32)
        sizes = count_by_label(now["assignments"], slots)
        if self._is_block:
            # siblings may have moved the prior since the empty slots were drawn from it
            fresh = hyper.concentration.draw(key_empty, slots, limits)
            now["concentration"] = jnp.where(sizes[:, None] > 0, now["concentration"], fresh)

        accept_label = jnp.ones(())
        overflow = jnp.array(False)
        log_outcomes = self._log_outcomes_at(z, args, kwargs)
        if log_outcomes is not None:
            labels, overflow = self._update_assignments_with_outcomes(
                key_labels, now, sizes, hyper, data, log_outcomes
            )
            now["assignments"] = labels
            sizes = count_by_label(labels, slots)
        elif hyper.partition.num_components != 1:
            now, overflow, accept_label = self._update_assignments(
                key_labels, now, sizes, hyper, data, limits
            )
            rows, stages = data.orderings.shape
            num_steps, glides = number_of_moves(
                self._num_marginal_steps, data.num_rankings, rows, stages, slots
            )
            if self._exact and num_steps > 0:
                priors = hyper.partition, hyper.concentration
                now = update_marginally(
                    key_steps, now, *priors, data, limits, num_steps, glides=glides
                )
            sizes = count_by_label(now["assignments"], slots)

        now, accept_center = self._update_parameters(key_params, now, sizes, hyper, data, limits)
        if isinstance(self._alpha, dist.Distribution) and not self._is_block:
            alpha = update_alpha(key_alpha, hyper.partition, self._alpha, sizes)
            hyper = hyper._replace(partition=hyper.partition._replace(alpha=alpha))
        accept_prob = jnp.minimum(accept_label, accept_center)
        return self._state(now, hyper, data, n, rng_key, accept_prob, overflow, log_outcomes)

    def _log_outcomes_at(self, z: dict, args: tuple, kwargs: dict) -> Array | None:
        own = {name: z[name] for name in self._sites.values()}
        return self._log_outcomes(own, self._sites["assignments"], self._num_slots, args, kwargs)

    def _update_assignments_with_outcomes(
        self,
        key: Array,
        now: dict[str, Array],
        sizes: Array,
        hyper: Hyper,
        data: MallowsData,
        log_outcomes: Array,
    ) -> tuple[Array, Array]:
        """All labels at once, outcomes included; slots keep their names, which others know."""
        order = jnp.argsort(sizes == 0, stable=True).astype(jnp.int32)  # occupied slots first
        labels, overflow = update_assignments_parallel(
            key,
            inverse_ordering(order)[now["assignments"]],
            sizes[order],
            inverse_ordering(now["center"][order]),
            now["concentration"][order],
            hyper.partition,
            data,
            log_outcomes[order],
        )
        return order[labels], overflow

    def _update_assignments(
        self,
        key: Array,
        now: dict[str, Array],
        sizes: Array,
        hyper: Hyper,
        data: MallowsData,
        limits: Array,
    ) -> tuple[dict[str, Array], Array, Array]:
        """Step 1 of Figures 1 and 5: labels, overflow flag, acceptance probability."""
        raise NotImplementedError

    def _update_parameters(
        self,
        key: Array,
        now: dict[str, Array],
        sizes: Array,
        hyper: Hyper,
        data: MallowsData,
        limits: Array,
    ) -> tuple[dict[str, Array], Array]:
        """Step 2 of Figures 1 and 5: centers and concentrations given the labels."""
        who = data.members(now["assignments"], self._num_slots)
        counts = stage_counts(who, data, self._num_slots)
        center, theta = now["center"], now["concentration"]
        sums = code_sums(who, data, inverse_ordering(center))
        num_moves = self._num_reinsertions
        if num_moves is None:
            num_moves = min(2 * center.shape[1], 100)
        occupied = sizes > 0

        def update(carry: tuple, key: Array) -> tuple[tuple, Array]:
            center, theta, sums = carry
            key_center, key_theta, key_far = random.split(key, 3)
            center, sums, accept = update_centers(
                key_center, center, theta, sums, who, data, sizes, num_moves, self._exact
            )
            theta = hyper.concentration.update(key_theta, theta, sums, counts, limits)
            if self._exact:
                center, theta, sums = self._rearrange(
                    key_far, center, theta, sums, who, counts, hyper, data, limits
                )
            mean_accept = jnp.sum(accept * occupied) / jnp.maximum(occupied.sum(), 1)
            return (center, theta, sums), mean_accept

        keys = random.split(key, self._num_center_updates)
        (center, theta, _), accept = jax.lax.scan(update, (center, theta, sums), keys)
        now = {**now, "center": center, "concentration": theta}
        return now, accept.mean()

    def _rearrange(
        self,
        key: Array,
        center: Array,
        theta: Array,
        sums: Array,
        who: Members,
        counts: Array,
        hyper: Hyper,
        data: MallowsData,
        limits: Array,
    ) -> tuple[Array, Array, Array]:
        """Metropolis-Hastings moves of (σ, θ) together, between modes that σ | θ cannot leave.

        σ' rearranges a window of places, and θ' is drawn from its conditional given σ' (under the
        conjugate part of the prior), which leaves a ratio of B̃eta functions.
        """
        conjugate = hyper.concentration.conjugate_part(limits)
        if conjugate is None or center.shape[1] < 2:
            return center, theta, sums
        nu_r, nu = conjugate
        # a single population cannot escape by its labels; elsewhere one try a sweep is enough
        num_moves = 8 if self._num_slots == 1 and who.rows.shape[0] <= 2**14 else 1
        b = nu + counts + 1.0

        def rearrange(carry: tuple, key: Array) -> tuple[tuple, None]:
            center, theta, sums = carry
            key_center, key_theta, key_accept = random.split(key, 3)
            proposal = propose_rearrangement(key_center, center)
            new_sums = code_sums(who, data, inverse_ordering(proposal))
            new_theta = sample_concentration(key_theta, nu_r + new_sums, b, limits)
            change = (new_sums - sums).astype(float)
            log_accept = log_beta_tilde_change(nu_r + sums, b, limits, change)
            log_accept += hyper.concentration.log_rest(new_theta, limits)
            log_accept -= hyper.concentration.log_rest(theta, limits)
            accept_prob = jnp.exp(jnp.minimum(log_accept.sum(1), 0.0))
            accepted = random.uniform(key_accept, accept_prob.shape) < accept_prob
            keep = accepted[:, None]
            carry = (
                jnp.where(keep, proposal, center),
                jnp.where(keep, new_theta, theta),
                jnp.where(keep, new_sums, sums),
            )
            return carry, None

        keys = random.split(key, num_moves)
        return jax.lax.scan(rearrange, (center, theta, sums), keys)[0]

    def _state(
        self,
        now: dict[str, Array],
        hyper: Hyper,
        data: MallowsData,
        num_items: int,
        rng_key: Array,
        accept_prob: Array,
        overflow: Array,
        log_outcomes: Array | None = None,
    ) -> MallowsState:
        """Labels in order of first use, everything else after them, and the log joint."""
        slots = self._num_slots
        labels, center, theta = (now[k] for k in ("assignments", "center", "concentration"))
        if log_outcomes is None:
            labels, order = canonical_order(labels, slots)
            center, theta = center[order], theta[order]
        sizes = count_by_label(labels, slots)
        pair = self._log_joint(labels, center, theta, sizes, hyper, data, num_items)
        log_joint, log_joint_rest = add_number(pair, log_of_own(labels, log_outcomes))
        names = self._sites
        z = {
            names["assignments"]: labels.astype(label_dtype(slots)),
            names["center"]: center.astype(jnp.int32),
            names["concentration"]: theta,
        }
        if not self._is_block:
            z |= {
                "cluster_sizes": sizes,
                "num_clusters": jnp.sum(sizes > 0),
                "alpha": hyper.partition.alpha,
                "log_joint": log_joint,
                "log_joint_rest": log_joint_rest,
            }
            if self._tied:
                z["shared_concentration"] = theta[:, 0]
        return MallowsState(z, -log_joint, accept_prob, overflow, rng_key)

    def _log_joint(
        self,
        labels: Array,
        center: Array,
        theta: Array,
        sizes: Array,
        hyper: Hyper,
        data: MallowsData,
        num_items: int,
    ) -> Pair:
        """log p(rankings, labels, centers, θ, α), of the occupied clusters."""
        who = data.members(labels, self._num_slots)
        sums = code_sums(who, data, inverse_ordering(center))
        counts = stage_counts(who, data, self._num_slots)
        limits = max_codes(num_items, theta.shape[1])
        occupied = sizes > 0
        log_center = -jnp.sum(jnp.log(jnp.arange(1, num_items + 1, dtype=float)))
        per_cluster = hyper.concentration.log_prob(theta, num_items) + log_center
        log_joint = jnp.sum(jnp.where(occupied, per_cluster, 0.0))
        # leftovers in empty slots count nothing
        theta = jnp.where(occupied[:, None], theta, 1.0)
        terms = exact_products(sums, theta)
        terms += times_log_psi(counts, theta, limits, data.num_rankings)
        minus_likelihood, rest = sum_as_pair(terms)
        if hyper.partition.num_components != 1:
            log_joint += log_partition_prior(hyper.partition, sizes)
            if isinstance(self._alpha, dist.Distribution) and not self._is_block:
                log_joint += log_prior(self._alpha, hyper.partition.alpha)
        return add_number((-minus_likelihood, -rest), log_joint)

    def _potential(self, state: MallowsState, args: tuple, kwargs: dict) -> Array:
        rankings = find_rankings(args, kwargs)
        z, names = state.z, self._sites
        hyper = self._hyper(z, z.get("alpha"), args, kwargs)
        labels = z[names["assignments"]].astype(jnp.int32)
        sizes = count_by_label(labels, self._num_slots)
        center, theta = z[names["center"]], z[names["concentration"]]
        data = self._data(rankings)
        pair = self._log_joint(labels, center, theta, sizes, hyper, data, rankings.num_items)
        return -pair[0] - log_of_own(labels, self._log_outcomes_at(z, args, kwargs))

    def _reseat(
        self,
        key: Array,
        visits: Array,
        now: dict[str, Array],
        sizes: Array,
        hyper: Hyper,
        data: MallowsData,
        limits: Array,
        new: NewClusters,
        predictive: Callable,
        correction: Callable | None = None,
    ) -> Seats:
        places = inverse_ordering(now["center"])
        who = data.members(now["assignments"], self._num_slots)
        seats = Seats(
            assignments=now["assignments"],
            sizes=sizes,
            places=places,
            concentration=now["concentration"],
            log_psis=log_psi(now["concentration"], limits),
            sums=code_sums(who, data, places),
            counts=stage_counts(who, data, self._num_slots),
            overflow=jnp.array(False),
            accept_prob=jnp.zeros(()),
        )
        return update_assignments_sequential(
            key, visits, seats, new, hyper.partition, data, predictive, correction
        )


def _is_zero(discount: Any) -> bool:
    """Whether it is known to be: not where it is traced."""
    return not isinstance(discount, jax.core.Tracer) and bool(np.all(np.asarray(discount) == 0.0))


def _check_settings(
    alpha: Any, nu: Any, r: Any, num_components: Any, max_clusters: Any, init: str | None
) -> None:
    check_scale("alpha", alpha)
    for name, value in (("nu", nu), ("r", r)):
        array = np.asarray(value)
        if array.dtype.kind not in "iuf" or not np.all((array > 0) & (array < np.inf)):
            raise ValueError(f"{name} must be positive, got {value!r}")
    for name, number in (("num_components", num_components), ("max_clusters", max_clusters)):
        if number is not None or name == "max_clusters":
            check_whole(name, number, 1)
    if init is not None and not (isinstance(init, str) and init in STARTS):
        raise ValueError(f"init is one of {STARTS}, not {init!r}")
    if init == "search" and (num_components is None or num_components == 1):
        raise ValueError("init='search' is for finite mixtures: set num_components to 2 or more")
