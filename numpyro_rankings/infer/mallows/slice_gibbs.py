"""Slice-Gibbs for mixtures of generalized Mallows models (Meilă & Chen 2010)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.infer.mallows.kernel import MallowsGibbs
from numpyro_rankings.infer.mallows.labels import (
    SLICE_WEIGHTS,
    after_seating,
    draw_visits,
    seat_one_by_one,
    seats_of,
    update_labels_in_parallel,
)
from numpyro_rankings.infer.mallows.settings import MallowsSettings
from numpyro_rankings.infer.mallows.state import LabelReport, MallowsInputs, MallowsMixture
from numpyro_rankings.ops.checks import check_whole


class SliceGibbs(MallowsGibbs):
    r"""
    Slice-Gibbs: labels, centers and concentrations of a mixture of generalized Mallows models.

    Every update leaves the posterior invariant. The labels are drawn one by one with the
    Chinese-restaurant weights of Figure 1 [1] (``assignment="sequential"``), or all at once given
    explicit shares of the clusters and slice variables [2, 3, 4] (``"parallel"``), which is far
    cheaper with many rankings. Centers move by the stagewise draw of Figure 2 as a
    Metropolis-Hastings proposal (on its own it is not exact, contrary to Lemma 2; of more than 64
    items, for which it is never accepted, by swaps of neighbors instead) and by reinsertions of
    single items. Concentrations are drawn exactly under the conjugate prior and by
    slice sampling under others.

    The data may be :class:`~numpyro_rankings.PartialOrders`: then each sweep also draws the judges'
    orderings, in the field ``orderings`` of the state. Of :class:`~numpyro_rankings.Comparisons`,
    which may be mistakes [5], it draws ``mistake_probability`` (D,) too.

    ``mcmc.get_samples()`` has ``assignments`` (D, N), integers in order of first use, ``center``
    (D, C, n), ``concentration`` (D, C, T), ``cluster_sizes`` (D, C), ``num_clusters``, ``alpha``
    and ``log_joint`` (D,). T is the length of the longest list, at most n - 1. Slots from
    ``num_clusters`` on hold draws from the prior.

    :param alpha: concentration of the Dirichlet process, or of the symmetric Dirichlet(α/K) shares;
        a number, or its prior.
    :param nu: prior sample size of the conjugate prior of θ, a scalar or one per stage.
    :param r: prior mean code, a scalar or one per stage.
    :param concentration_prior: a univariate distribution for θ, scalar or one per stage, instead of
        the conjugate prior.
    :param tied: one θ for all stages of a cluster; needs ``concentration_prior``. The samples then
        also have ``shared_concentration`` (D, C). Center and θ never move together in this case, so
        that a single population may need several starts to find its mode.
    :param num_components: None for a Dirichlet process, K for a finite mixture, 1 for a single
        population.
    :param max_clusters: slots of the Dirichlet process. A sweep that needs more sets the extra
        field ``overflow``, about which :func:`~numpyro_rankings.to_inference_data` warns. The
        parallel mode needs about 14 α further slots, for sticks of empty clusters.
    :param assignment: ``"sequential"`` or ``"parallel"``.
    :param init: ``"search"``, for finite mixtures: parameters of high likelihood that
        expectation-maximization with random changes finds; ``"nearest"``: a few rounds of
        nearest-center clustering from random seeds, with Borda orders as centers (for one
        population, the Borda order); ``"random"``; or ``"given"``, for a block: start at
        ``init_params`` or a draw from the prior. By default a finite mixture starts with a search,
        if 100 iterations take at most a minute or two of a core per chain. With 5 components they
        take longer from about 90 items with lists of 10, or 45 items with full lists. All others
        start at ``"nearest"``. An explicit ``"search"`` has at least 100 iterations.
    :param num_births: in parallel mode, the number of random rankings that a sweep also visits one
        by one, each of which may open a cluster that fits it; by default N/500, at least 16 and at
        most 256, and none for a finite mixture whose labels are integrated out by
        ``num_marginal_steps``.
    :param num_center_updates: updates of (σ, θ) in a sweep, the paper's TGibbs.
    :param num_reinsertions: reinsertions before and after each stagewise draw.
    :param num_marginal_steps: Metropolis-Hastings steps in a sweep with the labels integrated out:
        of parameters and shares, splits and merges of the larger clusters. Where rankings times
        slots are few, Hamiltonian trajectories come before and after them. Without these moves
        chains agree only where clusters are far apart. By default 4 N, at least 10 and at most
        2000; fewer with many distinct rankings, and none beyond 2^21 / slots.
    :param mistake_prior: a and b of the prior Beta(a, b) of ``mistake_probability``, truncated to
        (0, 1/2).
    :param model: your own NumPyro model, in which the kernel is a block of
        :class:`numpyro.infer.Gibbs` (chain methods "sequential", "parallel" and ``jax.vmap``;
        NumPyro's Gibbs does not support "vectorized"). The model takes a
        :class:`~numpyro_rankings.Rankings` and has three sites: a
        :class:`~numpyro_rankings.distributions.ChineseRestaurantProcess` without discount or a
        ``FiniteDirichletPartition``; a ``RandomPermutation``; and a concentration of event shape
        (T,), the latter two in a plate of ``max_clusters``. α and the prior of θ are read from the
        model at the current values of its other sites. Only one site with the likelihood
        GM(π | σ_c, θ_c), neither masked nor scaled, and ``judge_sites`` may depend on these three,
        and the prior of θ must be the same in all slots; other models are refused.
    :param sites: names of these sites, for instance
        ``{"assignments": "z", "center": "sigma", "concentration": "theta"}``.
    :param judge_sites: as a block with ``assignment="parallel"``: observed sites of the model of
        batch shape (N,) that depend on the label of each judge, such as an outcome whose mean is
        that of the judge's cluster, ``dist.Normal(mean[assignments], scale)``. Entry i may depend
        on the label of judge i and on sites that other blocks own, not on the centers or
        concentrations; parameters of clusters in those sites must have the same prior in all
        slots. Labels then name slots and are not in order of first use, because other sites are
        indexed by them: give their prior ``validate_args=False``. There are no steps with the
        labels integrated out.

    **References:**

    1. Meilă, M., Chen, H. (2010), "Dirichlet process mixtures of generalized Mallows models", UAI.
    2. Walker, S. (2007), "Sampling the Dirichlet mixture model with slices".
    3. Kalli, M., Griffin, J., Walker, S. (2011), "Slice sampling mixture models".
    4. Caron, F., Teh, Y. W., Murphy, T. B. (2014), "Bayesian nonparametric Plackett–Luce models
       for the analysis of preferences for college degree programmes", Appendix D, step 6.
    5. Crispino, M., Arjas, E., Vitelli, V., Barrett, N., Frigessi, A. (2019), "A Bayesian Mallows
       approach to nontransitive pair comparison data: How human are sounds?", Annals of Applied
       Statistics 13(1).

    .. doctest::

       >>> import jax
       >>> from numpyro.infer import MCMC
       >>> from numpyro_rankings import Rankings
       >>> from numpyro_rankings.infer import SliceGibbs
       >>> rankings = Rankings.from_orderings(
       ...     [[0, 1, 2], [0, 2, 1], [2, 1, 0]], num_items=3, counts=[20, 5, 15]
       ... )
       >>> mcmc = MCMC(SliceGibbs(), num_warmup=50, num_samples=100, progress_bar=False)
       >>> mcmc.run(jax.random.key(0), rankings)
       >>> mcmc.get_samples()["assignments"].shape
       (100, 40)
    """

    _takes_judge_sites = True

    def __init__(
        self,
        alpha: float | dist.Distribution = 1.0,
        nu: Any = 1.0,
        r: Any = 1.0,
        concentration_prior: dist.Distribution | None = None,
        num_components: int | None = None,
        max_clusters: int = 64,
        assignment: str = "sequential",
        *,
        tied: bool = False,
        init: str | None = None,
        num_births: int | None = None,
        num_center_updates: int = 1,
        num_reinsertions: int | None = None,
        num_marginal_steps: int | None = None,
        mistake_prior: tuple[float, float] = (1.0, 3.0),
        model: Callable | None = None,
        sites: Mapping[str, str] | None = None,
        judge_sites: Sequence[str] = (),
    ) -> None:
        if assignment not in ("sequential", "parallel"):
            raise ValueError(f"assignment is 'sequential' or 'parallel', not {assignment!r}")
        if num_births is not None:
            check_whole("num_births", num_births, 0)
        self._assignment, self._num_births = assignment, num_births
        settings = MallowsSettings(
            alpha=alpha,
            nu=nu,
            r=r,
            concentration_prior=concentration_prior,
            tied=tied,
            num_components=num_components,
            max_clusters=max_clusters,
            init=init,
            num_center_updates=num_center_updates,
            num_reinsertions=num_reinsertions,
            num_marginal_steps=num_marginal_steps,
        )
        super().__init__(settings, mistake_prior, model=model, sites=sites, judge_sites=judge_sites)
        if self._judge_sites and assignment != "parallel":
            raise ValueError('judge_sites needs assignment="parallel"')

    def padded(self, num_components: int) -> "SliceGibbs | None":
        if self._is_block or self.num_components is None or self._settings.init != "nearest":
            return None
        settings: dict[str, Any] = self._settings._asdict() | {"num_components": num_components}
        settings |= {"assignment": self._assignment, "num_births": self._num_births}
        del settings["exact"]
        wide = SliceGibbs(**settings, mistake_prior=self._mistake_prior)
        return wide._with_number_of_run()

    @property
    def can_split_rankings(self) -> bool:
        return not self._is_block and (self._assignment == "parallel" or self.num_slots == 1)

    def _births(self, mixture: MallowsMixture, inputs: MallowsInputs) -> int:
        """Return the number of rankings that a parallel sweep also visits one by one."""
        if self._num_births is not None:
            return self._num_births
        if (
            mixture.partition.num_components is not None
            and self._effort(mixture, inputs).num_steps > 0
        ):
            return 0  # those steps fill empty components
        return int(np.clip(inputs.data.num_labels // 500, 16, 256))

    def _update_labels(
        self, key: Array, mixture: MallowsMixture, inputs: MallowsInputs
    ) -> tuple[MallowsMixture, LabelReport]:
        """Draw the labels: Figure 1, step 1, or all at once [2, 3]; then open further clusters."""
        no, one = jnp.array(False), jnp.ones(())
        if inputs.log_judges is not None:
            mixture, overflow = update_labels_in_parallel(key, mixture, inputs)
            return mixture, LabelReport(overflow, one)
        if mixture.partition.num_components == 1:
            return mixture, LabelReport(no, one)
        key_all, key_visits, key_theta, key_new, key_seats = random.split(key, 5)
        overflow, rankings = no, None  # all of them
        if self._assignment == "parallel":
            mixture, overflow = update_labels_in_parallel(key_all, mixture, inputs)
            num_births = self._births(mixture, inputs)
            if num_births == 0:
                return mixture, LabelReport(overflow, one)
            number = inputs.data.num_rankings.astype(jnp.uint32)
            rankings = (random.bits(key_visits, (num_births,), jnp.uint32) % number).astype(
                jnp.int32
            )
        visits = draw_visits((key_theta, key_new), rankings, inputs.prior, inputs.data)
        seats, data = seats_of(mixture, visits, inputs.data), inputs.data
        seats = seat_one_by_one(key_seats, seats, visits, SLICE_WEIGHTS, mixture.partition, data)
        return after_seating(mixture, visits, seats), LabelReport(overflow | seats.overflow, one)
