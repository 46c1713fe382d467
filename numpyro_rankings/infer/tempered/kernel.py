"""Kernel for finite mixtures with the labels summed out, by parallel tempering."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random
from jax.scipy.special import gammaln

from numpyro_rankings._system import memory as _memory
from numpyro_rankings.families import RankingFamily
from numpyro_rankings.infer.base import find_rankings
from numpyro_rankings.infer.checks import check_scale, check_start_values
from numpyro_rankings.infer.mallows.tempered import MallowsComponents
from numpyro_rankings.infer.mixture.component_model import ComponentModel, Rows
from numpyro_rankings.infer.mixture.labels import canonical_order, draw_labels
from numpyro_rankings.infer.mixture.membership import label_dtype
from numpyro_rankings.infer.mixture.steps import log_uniform
from numpyro_rankings.infer.mixture.target import DrawnKind, StepDraw
from numpyro_rankings.infer.plackett_luce.tempered import PlackettLuceComponents
from numpyro_rankings.infer.ranking_kernel import RankingKernel
from numpyro_rankings.infer.tempered.ladder import (
    Path,
    Rungs,
    adapt,
    choose_number,
    exchange,
    first_rungs,
    is_adapted,
    mean_rejection,
)
from numpyro_rankings.infer.tempered.steps import (
    Components,
    Covariates,
    LogRows,
    Target,
    log_mixture,
    log_shares_of_rows,
    metropolis_steps,
    read_components,
)
from numpyro_rankings.models import default_share_concentration, tempered_mixture
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.pairs import Pair, add_number, sum_as_pair
from numpyro_rankings.ops.sampling import draw_together, sample_log_gamma
from numpyro_rankings.ops.sums import count_by_label
from numpyro_rankings.rankings import JudgeCovariates, Rankings, find_covariates
from numpyro_rankings.words import plural

COMPONENT_MODELS: dict[str, Callable[[], ComponentModel]] = {
    "mallows": MallowsComponents,
    "plackett-luce": PlackettLuceComponents,
}
_STEPS, _EXCHANGES = 32, 4  # of a sweep: steps before each exchange, and exchanges
_SCALES = 0.4, 6.0  # of steps, in posterior standard deviations
_LEAST_NUMBER = -1e30  # stands for a log likelihood of minus infinity
_COPIES = 6  # tables that a sweep holds at a time
_OF_SHARES = 2  # further ones, where the shares depend on covariates
_WORTH_A_LOOK = 2**28  # bytes; less is never refused


class Replica(NamedTuple):
    """State of a chain at one rung."""

    parameters: Any  # (K, …)
    log_shares: Array  # (K,)
    effects: Array | None = None  # of the covariates on the log shares, (K, p)


class TemperedState(NamedTuple):
    """State of a ladder. Rungs go from the prior to the model."""

    z: dict[str, Array]  # sites at the last rung, by name
    potential_energy: Array  # minus the log joint
    accept_prob: Array  # share of the steps of parameters that the last rung accepted
    overflow: Array  # always false
    rng_key: Array  # key of the next sweep
    rejection: Array  # mean rejection of exchanges since the rungs were placed, (R - 1,)
    barrier: Array  # their sum Λ
    round_trips: Array  # since the rungs were placed
    rung_power: Array  # z of each rung, (R,)
    rung_effective_size: Array  # z N, (R,)
    rung_share_concentration: Array  # κ of each rung, (R,)
    rung_log_likelihood: Array  # log likelihood at each rung, not raised to its power, (R,)
    rung_log_shares: Array  # sum of the log shares at each rung, (R,)
    replicas: Replica  # (R, …)
    rungs: Rungs
    sweep: Array  # number of sweeps made
    num_warmup: Array  # number of sweeps in which the rungs are placed


class Scores(NamedTuple):
    """What exchanges depend on, by rung or by replica."""

    log_likelihood: Array  # (R,)
    log_shares: Array  # sum of the log shares, (R,)
    accept_prob: Array  # of the steps, (R,)


class TemperedMixture(RankingKernel):
    r"""
    Finite mixture with the labels summed out, on a ladder of powers of the likelihood.

    Shares and parameters of K components have the density

    .. math:: \mathrm{Dirichlet}(w; κ) \prod_c p(η_c)
        \prod_i \Bigl(\sum_c w_c\, p(π_i | η_c)\Bigr)^z.

    Other kernels draw it (z = 1) in one chain, which may stay in one of several modes. Here R
    replicas have powers from 0, where each is drawn afresh from the prior, to that of the model,
    make Metropolis-Hastings steps, and exchange their powers [1]. ``round_trips`` counts how often
    a replica came from the prior to the model; where it did, the last rung does not depend on the
    start. Each of ``num_chains`` is an independent ladder.

    A power below 1 is the posterior as if there were only ``effective_size`` rankings: what may be
    said of groups if the model is only about right [2].

    ``mcmc.get_samples()`` has ``shares`` (D, K), ``assignments`` (D, N), drawn given the
    parameters, integers in order of first use, ``cluster_sizes`` (D, K), ``num_clusters``,
    ``alpha``, which is K κ, and ``log_joint``, without the labels (D,). Further ``center`` (D, K,
    n) and ``concentration`` (D, K, T), or ``weights`` (D, K, n); with one component ``weights``
    (D, n) without labels. ``mcmc.get_extra_fields()`` has ``rejection`` (D, R - 1) of exchanges,
    their sum ``barrier``, ``round_trips``, and what
    :func:`~numpyro_rankings.log_evidence` needs. There are enough temperatures if no rejection is
    far above a half; near 1 there are too few.

    With covariates of the judges, of :func:`~numpyro_rankings.judge_covariates`, the shares are
    those of a multinomial logit: that of component c for a judge is proportional to :math:`w_c
    \exp(x_i'β_c)`, where :math:`β_{cj} \sim \mathrm{Normal}(0, s)`. Columns of x have mean 0, so
    that ``shares`` are those at the average; ``share_effects`` (D, K, p) are β, of which only the
    differences between components matter. :func:`~numpyro_rankings.shares_by` says what they mean.

    Rankings with survey weights, :class:`~numpyro_rankings.WeightedRankings`, have a
    pseudo-likelihood: the density of each ranking is raised to its scaled weight, and n, the sum of
    these, is what N is without. The labels are those of the judges, whatever their weights. They go
    without covariates.

    Run as ``mcmc.run(key, rankings)`` or ``mcmc.run(key, rankings, covariates)`` with some warm-up,
    in which the rungs are placed; without it they stay as they are at first. The kernel is not a
    block of :class:`numpyro.infer.Gibbs`.

    ``init_params`` may have the parameters of the components, ``shares`` and ``share_effects``, at
    which all replicas start; what is not given of them is drawn from the prior. Other sites, such
    as ``assignments`` and ``alpha``, may come with these, but have no effect.

    :param family: ``"mallows"``, ``"plackett-luce"``, or their family, with default priors; or a
        :class:`~numpyro_rankings.infer.MallowsComponents` or
        :class:`~numpyro_rankings.infer.PlackettLuceComponents` with other priors.
    :param num_components: K.
    :param share_concentration: κ of the model. By default that of the ladder, half of log n!, from
        1 to N/20: the prior then says that all K components are there.
    :param power: z of the model, above 0 and at most 1.
    :param effective_size: z times the number of rankings, instead of the power.
    :param num_temperatures: R, at least 2. By default twice the barrier of a normal posterior with
        as many parameters, as a multiple of 8, at most 64.
    :param num_steps: steps before each of the four exchanges of a sweep.
    :param effect_scale: s, the prior standard deviation of the effects of covariates.

    **References:**

    1. Syed, S., Bouchard-Côté, A., Deligiannidis, G., Doucet, A. (2022), "Non-reversible parallel
       tempering: a scalable highly parallel MCMC scheme".
    2. Miller, J. W., Dunson, D. B. (2019), "Robust Bayesian inference via coarsening".

    .. doctest::

       >>> import jax
       >>> from numpyro.infer import MCMC
       >>> from numpyro_rankings import Rankings
       >>> from numpyro_rankings.infer import TemperedMixture
       >>> rankings = Rankings.from_orderings(
       ...     [[0, 1, 2], [0, 2, 1], [2, 1, 0]], num_items=3, counts=[20, 5, 15]
       ... )
       >>> kernel = TemperedMixture("mallows", num_components=2)
       >>> mcmc = MCMC(kernel, num_warmup=100, num_samples=100, progress_bar=False)
       >>> mcmc.run(jax.random.key(0), rankings)
       >>> mcmc.get_samples()["shares"].shape
       (100, 2)
    """

    default_fields = (
        *RankingKernel.default_fields,
        "rejection",
        "barrier",
        "round_trips",
        "rung_power",
        "rung_effective_size",
        "rung_share_concentration",
        "rung_log_likelihood",
        "rung_log_shares",
    )
    num_adaptation = 200
    _effect_scale = 1.0
    takes_weights = True

    def __init__(
        self,
        family: str | RankingFamily | ComponentModel,
        num_components: int,
        share_concentration: float | None = None,
        power: float = 1.0,
        *,
        effective_size: float | None = None,
        num_temperatures: int | None = None,
        num_steps: int = _STEPS,
        effect_scale: float = 1.0,
    ) -> None:
        self._components = _component_model(family)
        check_whole("num_components", num_components, 1)
        if share_concentration is not None:
            check_scale("share_concentration", share_concentration, learned=False)
        _check_power(power, effective_size)
        _check_temperatures(num_temperatures)
        check_whole("num_steps", num_steps, 1)
        check_scale("effect_scale", effect_scale, learned=False)
        if effect_scale != 1.0:  # so that runs which began before there was one can go on
            self._effect_scale = effect_scale
        self._num_components, self._num_steps = num_components, num_steps
        self._share_concentration = share_concentration
        self._power, self._effective_size = power, effective_size
        self._num_temperatures = num_temperatures
        family_of_rows = self.ranking_family
        self._has_labels = num_components > 1 or family_of_rows.has_labels
        names = [*family_of_rows.parameters, "shares", *["assignments"] * self._has_labels]
        self._sites = {name: name for name in names}
        model = partial(
            tempered_mixture,
            sample_component=self._components.sample,
            num_components=num_components,
            share_concentration=share_concentration,
            power=power,
            effective_size=effective_size,
            has_plate=self._has_labels,
            effect_scale=effect_scale,
        )
        super().__init__(model)

    @property
    def ranking_family(self) -> RankingFamily:
        """The likelihood of the rankings in each component."""
        return self._components.ranking_family

    @property
    def num_components(self) -> int:
        """K."""
        return self._num_components

    def num_temperatures(
        self, rankings: Rankings, covariates: JudgeCovariates | None = None
    ) -> int:
        """Return R, the number of rungs of a ladder on some rankings."""
        if self._num_temperatures is not None:
            return self._num_temperatures
        number, size = self._num_components, rankings.effective_number
        worth = size * self._power if self._effective_size is None else self._effective_size
        free = number * (self._components.num_parameters(rankings) + 1) - 1
        free += 0 if covariates is None else (number - 1) * covariates.design.shape[1]
        return choose_number(free, worth)

    def _scale_arguments(self) -> dict[str, Any]:
        return {}

    def _check(self, args: tuple, kwargs: dict) -> None:
        covariates = find_covariates(args, kwargs)
        rankings = self._checked_rankings(*_without(covariates, args, kwargs))
        self._components.check(rankings)
        if covariates is not None:
            _check_covariates(covariates, rankings, self._num_components)
        most = rankings.effective_number
        if self._effective_size is not None and self._effective_size > most:
            there = f"there are only {plural(rankings.num_rankings, 'ranking')}"
            if rankings.weights is not None:
                there += f", whose weights make them worth {most:.6g}"
            raise ValueError(f"effective_size is {self._effective_size:g}, but {there}")

    def _check_start(
        self, start: dict | None, chains: tuple[int, ...], args: tuple, kwargs: dict
    ) -> None:
        check_start_values(start)

        covariates = find_covariates(args, kwargs)

        def sites(key: Array, rankings: Rankings) -> dict[str, Array]:
            components, number = self._components, self._num_components
            drawn = components.draw_prior(key, number, components.read(rankings))
            of_shares = {"shares": jnp.ones(number)}
            if covariates is not None:
                of_shares["share_effects"] = jnp.ones((number, covariates.design.shape[1]))
            return components.sites(drawn) | of_shares

        expected = jax.eval_shape(sites, random.key(0), find_rankings(args, kwargs))
        start = start or {}
        taken = sorted(set(expected) - {"shared_concentration"})
        if start and not set(start) & set(expected):
            raise ValueError(f"init_params has only {sorted(start)}, but a start uses only {taken}")
        if "shared_concentration" in start and "concentration" not in start:
            raise ValueError("init_params needs concentration, not only shared_concentration")
        for name in sorted(set(start) & set(expected)):
            _check_start_value(name, start[name], (*chains, *expected[name].shape))

    def _check_memory(self, args: tuple, kwargs: dict, num_chains: int) -> None:
        rankings = find_rankings(args, kwargs)
        covariates = find_covariates(args, kwargs)
        rungs, rows = self.num_temperatures(rankings, covariates), rankings.num_rows
        bytes_of_number = jnp.zeros(()).dtype.itemsize
        copies = _COPIES if covariates is None else _COPIES + _OF_SHARES
        needed = bytes_of_number * num_chains * rungs * (self._num_components + 2) * rows * copies
        free = None if needed < _WORTH_A_LOOK else _memory.device_memory()
        if free is None or needed <= _memory.USABLE * free:
            return
        raise _memory.TooLittleMemoryError(
            f"{plural(num_chains, 'ladder')} of {rungs} temperatures, with {rows:,} distinct "
            f"rankings in {plural(self._num_components, 'component')}, need about "
            f"{needed / 1e9:.1f} GB of memory, but only {free / 1e9:.1f} GB is free: run fewer "
            "chains at a time, lower num_temperatures or num_components, or take a sample of the "
            "rankings"
        )

    def with_prior_of(self, rankings: Rankings) -> "TemperedMixture":
        """Return the kernel whose prior, with more rankings, is that with these.

        :raises ValueError: if the power is not 1.
        """
        if self._effective_size is not None or self._power != 1:
            raise ValueError("posterior SBC needs draws at power 1")
        kernel = copy.copy(self)
        if kernel._share_concentration is None:
            number = rankings.num_rankings
            kappa = default_share_concentration(rankings.num_items, number)
            kernel._share_concentration = float(kappa)
        kernel._init_jit = None
        return kernel

    def padded(self, num_components: int) -> "TemperedMixture":
        wide = TemperedMixture(
            self._components,
            num_components,
            self._share_concentration,
            self._power,
            effective_size=self._effective_size,
            num_temperatures=self._num_temperatures,
            num_steps=self._num_steps,
            effect_scale=self._effect_scale,
        )
        return wide._with_number_of_run()

    def wrap_model(self, wrapper: Callable[[Callable], Callable]) -> "TemperedMixture":
        """Refuse to be a block of :class:`numpyro.infer.Gibbs`."""
        raise ValueError("TemperedMixture is not a block of numpyro.infer.Gibbs")

    def _read(self, args: tuple, kwargs: dict) -> tuple[Rankings, Rows]:
        """Return the rankings, and these and the covariates as the steps read them."""
        rankings, covariates = find_rankings(args, kwargs), find_covariates(args, kwargs)
        rows = self._components.read(rankings)._replace(
            weights=rankings.weights, num_used=self._num_used(kwargs)
        )
        if covariates is None:
            return rankings, rows
        # all judges of a row are in the cell of its first
        first = jnp.cumsum(rows.data.counts) - rows.data.counts
        cells = jnp.take(covariates.cells, first, mode="clip")
        design = jnp.asarray(covariates.design, float)
        precision = jnp.mean(jnp.square(design)[covariates.cells], axis=0)
        return rankings, rows._replace(
            covariates=Covariates(design, cells, precision, self._effect_scale)
        )

    def _path(self, rankings: Rankings, rows: Rows) -> Path:
        """Return the way from the prior to the model."""
        number = rows.amounts.sum()  # the static one is rounded in a run
        first = default_share_concentration(rankings.num_items, number)
        last = first
        if self._share_concentration is not None:
            last = jnp.asarray(self._share_concentration, float)
        power = jnp.asarray(self._power, float)
        if self._effective_size is not None:
            power = self._effective_size / number
        return Path(power, number, (first, last))

    # -- the chain -----------------------------------------------------------------------------

    def _init(
        self, rng_key: Array, init_params: dict | None, args: tuple, kwargs: dict
    ) -> TemperedState:
        rankings, rows = self._read(args, kwargs)
        number = self.num_temperatures(rankings, find_covariates(args, kwargs))
        path = self._path(rankings, rows)
        key_start, key_given, key_state, rng_key = random.split(rng_key, 4)
        replicas = jax.vmap(lambda key: self._draw_prior(key, rows, path))(
            random.split(key_start, number)
        )
        given = dict(init_params or {})
        if given:
            replicas = self._with_given(key_given, given, replicas, rows)
        rungs = first_rungs(path, number)
        components = read_components(self._log_rows(rows), *replicas, rows.covariates)
        scores = Scores(*_score(components, rows), jnp.ones(number))
        progress = jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)
        keys = key_state, rng_key
        return self._state(keys, replicas, rungs, scores, progress, path, rows)

    def _finish_start(self, state: TemperedState, num_warmup: int) -> TemperedState:
        return state._replace(num_warmup=jnp.full_like(state.num_warmup, num_warmup))

    def _draw_prior(self, key: Array, rows: Rows, path: Path) -> Replica:
        key_parameters, key_shares = random.split(key)
        number = self._num_components
        parameters = self._components.draw_prior(key_parameters, number, rows)
        kappa = jnp.full(number, path.share_concentrations[0], float)
        gammas = rows.among_used(sample_log_gamma(key_shares, kappa), _LEAST_NUMBER)
        effects = None
        if rows.covariates is not None:
            shape = number, rows.covariates.design.shape[1]
            effects = self._effect_scale * random.normal(random.fold_in(key, 2), shape)
        return Replica(parameters, gammas - jax.nn.logsumexp(gammas), effects)

    def _with_given(
        self, key: Array, given: dict[str, Array], replicas: Replica, rows: Rows
    ) -> Replica:
        """Return replicas that all start at values of the sites."""
        one = jax.tree.map(lambda x: x[0], replicas)
        sites = self._components.sites(one.parameters) | given
        parameters = self._components.parameters(key, sites, rows)
        log_shares = one.log_shares
        if "shares" in given:
            log_shares = jnp.log(given["shares"] / given["shares"].sum())
        effects = one.effects
        if effects is not None and "share_effects" in given:
            effects = jnp.asarray(given["share_effects"])
        return jax.tree.map(
            lambda x, y: jnp.broadcast_to(x.astype(y.dtype), y.shape),
            Replica(parameters, log_shares, effects),
            replicas,
        )

    def _sweep(self, state: TemperedState, args: tuple, kwargs: dict) -> TemperedState:
        rankings, rows = self._read(args, kwargs)
        # the power of the state, so that another one is no other program
        path = self._path(rankings, rows)._replace(power=state.rung_power[-1])
        key_rounds, key_state, rng_key = random.split(state.rng_key, 3)

        def one_round(
            carry: tuple[Replica, Rungs], key: Array
        ) -> tuple[tuple[Replica, Rungs], Scores]:
            replicas, rungs = carry
            key_prior, key_steps, key_exchange = random.split(key, 3)
            fresh = self._draw_prior(key_prior, rows, path)
            replicas = jax.tree.map(lambda x, y: x.at[rungs.replica[0]].set(y), replicas, fresh)
            replicas, scores = self._steps(key_steps, replicas, rungs, path, rows)
            by_rung = jax.tree.map(lambda x: x[rungs.replica], scores)
            rungs = exchange(key_exchange, rungs, path, by_rung.log_likelihood, by_rung.log_shares)
            after = jax.tree.map(lambda x: x[rungs.replica], scores)
            return (replicas, rungs), after._replace(accept_prob=by_rung.accept_prob)

        start = state.replicas, state.rungs
        keys = random.split(key_rounds, _EXCHANGES)
        (replicas, rungs), scores = jax.lax.scan(one_round, start, keys)
        last = jax.tree.map(lambda x: x[-1], scores)
        sweep = state.sweep + 1
        placed = is_adapted(sweep, state.num_warmup)
        rungs = jax.tree.map(lambda a, b: jnp.where(placed, a, b), adapt(rungs), rungs)
        after, progress = (key_state, rng_key), (sweep, state.num_warmup)
        return self._state(after, replicas, rungs, last, progress, path, rows)

    def _steps(
        self, key: Array, replicas: Replica, rungs: Rungs, path: Path, rows: Rows
    ) -> tuple[Replica, Scores]:
        """Make steps of all replicas, each with the density of its rung."""
        counts, number = rows.amounts, len(rungs.replica)
        numbers = jnp.arange(number, dtype=jnp.int32)
        place = jnp.zeros_like(numbers).at[rungs.replica].set(numbers)
        positions = rungs.positions[place]
        powers, kappas = path.powers(positions), path.concentrations(positions)
        key_draws, key_steps = random.split(key)
        draws = self._draw_steps(key_draws, powers * path.num_rankings, rows)
        log_rows = self._log_rows(rows)
        target = Target(
            rows.clusters, log_rows, counts, powers, kappas, rows.covariates, rows.num_used
        )
        start = read_components(log_rows, *replicas, rows.covariates)
        end, accepted = metropolis_steps(key_steps, target, start, draws)
        replicas = Replica(end.parameters, end.log_shares, end.effects)
        return replicas, Scores(*_score(end, rows), accepted)

    def _draw_steps(self, key: Array, sizes: Array, rows: Rows) -> StepDraw:
        """Draw the random numbers of steps, given the rankings' worth of each replica, (R,)."""
        key_family, key_uniforms, key_trades = random.split(key, 3)
        shape = self._num_steps, len(sizes)
        worth = sizes / self._number(rows)
        normals, family = self._components.draw_steps(key_family, shape[0], rows, worth)
        three = draw_together(random.uniform, key_uniforms, (3, *shape))[0]
        for_scale, for_odds, for_decision = three
        (trades,) = draw_together(random.normal, key_trades, (*shape, 1))
        no = jnp.zeros(shape, bool)
        return StepDraw(
            kind=DrawnKind(no, no),  # each changes one component
            takes_second=no,
            log_odds=jnp.log(for_odds / (1.0 - for_odds)),
            log_uniform=jnp.log(for_decision),
            scale=_scale(for_scale, worth),
            normals=jnp.concatenate([normals, trades], axis=-1),
            family=family,
        )

    def _number(self, rows: Rows) -> Any:
        """Return the number of components in use."""
        return self._num_components if rows.num_used is None else rows.num_used

    def _log_rows(self, rows: Rows) -> LogRows:
        return partial(self._components.log_rows, rows=rows)

    def _state(
        self,
        keys: tuple[Array, Array],
        replicas: Replica,
        rungs: Rungs,
        scores: Scores,
        progress: tuple[Array, Array],
        path: Path,
        rows: Rows,
    ) -> TemperedState:
        """Draw the labels at the last rung, and put the components in their order."""
        key_labels, rng_key = keys
        last = jax.tree.map(lambda x: x[rungs.replica[-1]], replicas)
        components = self._read_one(last, rows)
        z, order = self._draw_labels(key_labels, components, rows)
        last = jax.tree.map(lambda x: x[order], last)
        z |= self._components.sites(last.parameters)
        if last.effects is not None:
            z["share_effects"] = last.effects
        log_joint, rest = self._log_joint(z, last.log_shares, components.log_density, path, rows)
        z |= {"shares": jnp.exp(last.log_shares), "log_joint": log_joint, "log_joint_rest": rest}
        if self._has_labels:
            z["alpha"] = path.share_concentrations[1] * self._number(rows)
        rejection, powers = mean_rejection(rungs), path.powers(rungs.positions)
        return TemperedState(
            z=z,
            potential_energy=-log_joint,
            accept_prob=scores.accept_prob[-1],
            overflow=jnp.array(False),
            rng_key=rng_key,
            rejection=rejection,
            barrier=rejection.sum(),
            round_trips=rungs.round_trips,
            rung_power=powers,
            rung_effective_size=powers * path.num_rankings,
            rung_share_concentration=path.concentrations(rungs.positions),
            rung_log_likelihood=scores.log_likelihood,
            rung_log_shares=scores.log_shares,
            replicas=replicas,
            rungs=rungs,
            sweep=progress[0],
            num_warmup=progress[1],
        )

    def _read_one(self, replica: Replica, rows: Rows) -> Components:
        """Return the state of the steps for one replica, without that axis."""
        parameters, log_shares, effects = replica
        log_table = self._components.log_rows(parameters, rows).T
        log_density = log_mixture(log_table[..., None], _log_shares_of_rows(replica, rows))[:, 0]
        return Components(parameters, log_shares, log_table, log_density, effects)

    def _draw_labels(
        self, key: Array, components: Components, rows: Rows
    ) -> tuple[dict[str, Array], Array]:
        """Return labels given the parameters, and the slots in order of first use."""
        number, data = self._num_components, rows.data
        if not self._has_labels:
            return {}, jnp.arange(number)
        if rows.covariates is None:
            log_shares = components.log_shares[:, None]
        else:
            one = Replica(components.parameters, components.log_shares, components.effects)
            log_shares = _log_shares_of_rows(one, rows)[..., 0]
        log_weights = components.log_table + log_shares
        labels = draw_labels(key, log_weights, data.row_index)
        is_padding = jnp.arange(len(labels)) >= data.counts.sum()
        labels, order = canonical_order(jnp.where(is_padding, number, labels), number)
        sizes = count_by_label(labels, number)
        z = {
            "assignments": labels.astype(label_dtype(number)),
            "cluster_sizes": sizes,
            "num_clusters": jnp.sum(sizes > 0),
        }
        return z, order

    def _log_joint(
        self, sites: dict[str, Array], log_shares: Array, log_density: Array, path: Path, rows: Rows
    ) -> Pair:
        """Return the log density of the sites, without the labels, to the power of the model."""
        kappa, number = path.share_concentrations[1], self._number(rows)
        log_prior = jnp.sum(rows.among_used(self._components.log_prior(sites, rows), 0.0))
        log_prior += gammaln(number * kappa) - number * gammaln(kappa)
        log_prior += jnp.sum((kappa - 1.0) * rows.among_used(log_shares, 0.0))
        if rows.covariates is not None:
            prior = dist.Normal(0.0, self._effect_scale)
            log_prior += jnp.sum(prior.log_prob(sites["share_effects"]))
        log_likelihood, rest = sum_as_pair([rows.amounts * log_density])
        return add_number((path.power * log_likelihood, path.power * rest), log_prior)

    def _potential(self, state: TemperedState, args: tuple, kwargs: dict) -> Array:
        (rankings, rows), sites = self._read(args, kwargs), state.z
        parameters = self._components.parameters(random.key(0), sites, rows)
        log_shares = jnp.log(sites["shares"])
        components = self._read_one(
            Replica(parameters, log_shares, sites.get("share_effects")), rows
        )
        path = self._path(rankings, rows)
        return -self._log_joint(sites, log_shares, components.log_density, path, rows)[0]


def _log_shares_of_rows(replica: Replica, rows: Rows) -> Array:
    """Return the log shares for each row with one replica as last axis, (K, rows, 1), or (1, K)."""
    effects = None if replica.effects is None else replica.effects[None]
    return log_shares_of_rows(replica.log_shares[None], effects, rows.covariates)


def _without(covariates: JudgeCovariates | None, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Return the arguments without the covariates."""
    if covariates is None:
        return args, kwargs
    others = {name: x for name, x in kwargs.items() if x is not covariates}
    return tuple(x for x in args if x is not covariates), others


def _check_covariates(covariates: JudgeCovariates, rankings: Rankings, number: int) -> None:
    """Refuse covariates of other judges, and of rows whose judges differ in them."""
    if number == 1:
        raise ValueError(
            "covariates are of the shares of components, and there is one component: take "
            "num_components from 2 on, or leave the covariates out"
        )
    if rankings.weights is not None:
        raise ValueError(
            "covariates of the judges go without survey weights: leave the covariates out, or the "
            "weights by rankings.unweighted()"
        )
    if isinstance(covariates.cells, jax.core.Tracer) or rankings._is_traced():
        return
    cells, counts = np.asarray(covariates.cells), np.asarray(rankings.counts)
    rows = np.repeat(np.arange(len(counts)), counts)
    if len(cells) != len(rows) or np.any((np.diff(rows) == 0) & (np.diff(cells) != 0)):
        raise ValueError(
            f"the covariates are of {len(cells)} judges in another order than the "
            f"{plural(len(rows), 'ranking')}: give the rankings that judge_covariates returns with "
            "them"
        )


def _score(components: Components, rows: Rows) -> tuple[Array, Array]:
    """Return the log likelihood and the sum of the log shares of each replica, (R,) each."""
    terms = rows.amounts[:, None] * components.log_density
    log_likelihood, rest = jax.vmap(lambda x: sum_as_pair([x]), in_axes=1)(terms)
    log_likelihood = jnp.maximum(log_likelihood + rest, _LEAST_NUMBER)
    return log_likelihood, jnp.sum(rows.among_used(components.log_shares, 0.0), axis=1)


def _scale(uniforms: Array, worth: Array) -> Array:
    """Return scales of steps, around the posterior standard deviation of a component."""
    # the prior is as informative as a ranking
    low, high = (x * jax.lax.rsqrt(1.0 + 0.5 * worth) for x in _SCALES)
    return jnp.minimum(log_uniform(uniforms, low, high), _SCALES[1] / 2)


def _check_start_value(name: str, value: Any, shape: tuple[int, ...]) -> None:
    """Refuse a start value of another shape, zeros, and a center that is no ordering."""
    if isinstance(value, jax.core.Tracer):
        return
    if np.shape(value) != shape:
        raise ValueError(
            f"init_params[{name!r}] must have shape {shape}, got {np.shape(value)}: the components "
            "of each chain"
        )
    if name in ("shares", "weights", "concentration") and not np.all(np.asarray(value) > 0):
        raise ValueError(f"init_params[{name!r}] must be positive")
    if name == "center" and np.any(np.sort(value, axis=-1) != np.arange(shape[-1])):
        raise ValueError("init_params['center'] must be orderings of the items, best first")


def _component_model(family: Any) -> ComponentModel:
    if isinstance(family, ComponentModel):
        return family
    name = family.name if isinstance(family, RankingFamily) else family
    if isinstance(name, str) and name in COMPONENT_MODELS:
        return COMPONENT_MODELS[name]()
    names = ", ".join(map(repr, COMPONENT_MODELS))
    raise ValueError(
        f"family is one of {names}, or components such as MallowsComponents(…), got {family!r}"
    )


def _check_power(power: float, effective_size: float | None) -> None:
    check_scale("power", power, learned=False)
    if power > 1:
        raise ValueError(f"power must be at most 1, got {power!r}")
    if effective_size is None:
        return
    check_scale("effective_size", effective_size, learned=False)
    if power != 1:
        raise ValueError("power and effective_size say the same: give one of them")


def _check_temperatures(number: int | None) -> None:
    if number is not None:
        check_whole("num_temperatures", number)
        if number == 1:
            raise ValueError("num_temperatures must be at least 2, the prior and the model, got 1")
