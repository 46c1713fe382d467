"""All labels at once, and splits and merges from sub-clusters, for large numbers of points."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array, random

from numpyro_rankings.components.family import Family, take
from numpyro_rankings.components.points import DataPoints, repeat
from numpyro_rankings.distributions import ChineseRestaurantProcess
from numpyro_rankings.infer.mixture.labels import canonical_order, draw_slices
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.infer.partition.base import Given, Move, PartitionKernel
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.ops.loops import shared_bound
from numpyro_rankings.ops.sampling import sample_log_gamma, sample_uniform
from numpyro_rankings.ops.special import log_beta
from numpyro_rankings.ops.sums import count_by_label, sum_by_label_in_blocks

_SPARE_STICKS = 64  # sticks of the process beyond the slots
_NEVER = -1e30  # a log weight that stands for 0
_SAMPLE = 4096  # points from which a chain starts
_SAMPLE_SWEEPS = 100  # sweeps of these points
_LEARNERS = 2**15  # points that learn sub-clusters
_LAST_SCANS = 2  # passes over all points at the end of learning
_NARROW = 32  # parameters of a cluster are gathered for each point if they are no more than this


class SubclusterGibbs(PartitionKernel):
    r"""
    Gibbs sampler of the partition of a Dirichlet process mixture, parallel over the points.

    For many points: a sweep is a few passes over all of them. Splits come from sub-clusters, as in
    the sampler of Chang & Fisher [1, 3], but are decided by a Hastings ratio that is exact. A sweep
    makes three moves:

    1. Shares and parameters of the clusters are drawn given the partition, then all labels given
       these, by slice sampling [4, 5]. New clusters have parameters from the prior.
    2. Several splits and merges at once. The clusters and a Poisson(λ) number of empty places are
       put into random order, and the first and second of them form a pair, the third and fourth,
       and so on. Two clusters in a pair are to be merged, one beside an empty place is to be split;
       log λ is uniform from 0 to that of ``max_clusters``. In the points of each pair two
       sub-clusters are learned: they start from a cut across a random line, and each of
       ``num_scans`` passes draws their shares and parameters, then the sub-cluster of each point.

    3. The same with the labels in each pair integrated out. A cluster is split by parameters from
       the posterior given a few of its points, so that two clusters with nearly the same
       distribution can merge whatever their labels are.

    A split by move 2 deals the points to the sub-clusters independently, given their last shares
    and parameters. If it deals them to A and B with probability q(A, B), its acceptance probability
    is

    .. math:: \min\Bigl(1, \frac{α}{λ}\, \frac{Γ(n_A) Γ(n_B)}{Γ(n_A + n_B)}\,
        \frac{p(x_A)\, p(x_B)}{p(x_{A ∪ B})}\, \frac{1}{q(A, B) + q(B, A)}\Bigr),

    where the marginals p(x) have the parameters integrated out. A merge of A and B has the reverse
    ratio, with q from sub-clusters that are learned in their union [2]. What the passes draw
    depends on the points of the pair only, not on their current clusters, so it cancels. A split of
    the points U by move 3, with shares w and 1 - w, w uniform, and with parameters :math:`φ_1` and
    :math:`φ_2` given few points S and T, has

    .. math:: \min\Bigl(1, \frac{α}{2 λ}\, \frac{1}{w (1 - w)}\,
        \frac{\prod_U (w f(x \mid φ_1) + (1 - w) f(x \mid φ_2))}{p(x_U)}\,
        \frac{p(x_S)\, p(x_T)}{\prod_S f(x \mid φ_1) \prod_T f(x \mid φ_2)}\Bigr).

    Samples, blocks and initial partitions are those of :class:`CollapsedGibbs`. The family must
    draw its parameters, as :class:`~numpyro_rankings.components.GaussianMean`,
    :class:`~numpyro_rankings.components.NormalGamma`,
    :class:`~numpyro_rankings.components.NormalInverseWishart` and
    :class:`~numpyro_rankings.components.DirichletMultinomial` do.

    :param family: component family, see :mod:`numpyro_rankings.components`.
    :param alpha: concentration, a number or a distribution; with a Gamma prior it is drawn with the
        auxiliary variable of Escobar & West, otherwise by slice sampling.
    :param num_scans: number of passes that learn the sub-clusters. Of more than 65,536 points all
        but the last two passes take 32,768 at random.
    :param max_clusters: number of slots. Labels that would need more are not drawn, a split that
        would is not made, and ``overflow`` is true of that draw.
    :param init: initial partition. ``"sample"`` makes sweeps of 4,096 random points, from a single
        cluster, and adds the other points to the clusters found: if a million points were split
        right away, pieces of a cluster would take long to find each other. Others are ``"one"``,
        ``"sequential"``, which takes the points one by one, ``"singletons"``, and
        ``init_params={"assignments": labels}``.
    :param model: your own model, in which the kernel is a block; its prior must have no discount.
    :param sites: another name for the site ``assignments`` of that model.
    :raises ValueError: if the family does not draw its parameters.

    **References:**

    1. Chang, J., Fisher III, J. W. (2013), "Parallel sampling of DP mixture models using
       sub-clusters splits", NIPS.
    2. Jain, S., Neal, R. M. (2004), "A split-merge Markov chain Monte Carlo procedure for the
       Dirichlet process mixture model", Journal of Computational and Graphical Statistics.
    3. Dinari, O., Yu, A., Freifeld, O., Fisher III, J. W. (2019), "Distributed MCMC inference in
       Dirichlet process mixture models using Julia", CCGRID.
    4. Walker, S. (2007), "Sampling the Dirichlet mixture model with slices", Communications in
       Statistics.
    5. Kalli, M., Griffin, J., Walker, S. (2011), "Slice sampling mixture models", Statistics and
       Computing.

    .. doctest::

       >>> import jax
       >>> from numpyro.infer import MCMC
       >>> from numpyro_rankings.components import GaussianMean
       >>> from numpyro_rankings.infer import SubclusterGibbs
       >>> x = jnp.array([[-1.5], [-1.4], [-1.2], [2.1], [2.5], [2.8]])
       >>> kernel = SubclusterGibbs(GaussianMean(prior_scale=3.0, noise_scale=0.3), max_clusters=6)
       >>> mcmc = MCMC(kernel, num_warmup=100, num_samples=1000, progress_bar=False)
       >>> mcmc.run(jax.random.key(0), x)
       >>> bool((mcmc.get_samples()["num_clusters"] == 2).mean() > 0.5)
       True
    """

    has_decisions = True
    starts = ("sample", "sequential", "one", "singletons")

    def __init__(
        self,
        family: Family,
        alpha: float | dist.Distribution = 1.0,
        *,
        num_scans: int = 10,
        max_clusters: int = 64,
        init: str = "sample",
        model: Callable | None = None,
        sites: Mapping[str, str] | None = None,
    ) -> None:
        check_whole("num_scans", num_scans, 0)
        self._num_scans = num_scans
        super().__init__(
            family, alpha, max_clusters=max_clusters, init=init, model=model, sites=sites
        )
        if not family.has_parameters:
            raise ValueError(
                f"SubclusterGibbs needs a family that draws its parameters, which "
                f"{type(family).__name__} does not: see Family.draw_parameters"
            )

    def _check_prior(self, prior: ChineseRestaurantProcess) -> None:
        discount = prior.discount
        if not isinstance(discount, int | float | np.number | np.ndarray) or np.any(discount != 0):
            raise ValueError(
                "SubclusterGibbs is for the Dirichlet process: the prior of its site must have no "
                "discount"
            )

    def _start_labels(self, key: Array, given: Given) -> Array:
        if self._start == "sample":
            return start_from_sample(key, given, self._num_scans)
        return super()._start_labels(key, given)

    def _move(
        self, key: Array, labels: Array, prior: PartitionPrior, points: DataPoints, state: Any
    ) -> Move:
        given = Given(points, prior, self._family, self._max_clusters)
        return _make_moves(key, labels, given, self._num_scans)


def _make_moves(key: Array, labels: Array, given: Given, num_scans: int) -> Move:
    key_labels, key_pairs, key_free = random.split(key, 3)
    drawn = update_labels_by_slices(key_labels, labels, given)
    move = split_or_merge_clusters(key_pairs, drawn.labels, given, num_scans)
    free = split_or_merge_without_labels(key_free, move.labels, given)
    accept_prob = 0.5 * (move.accept_prob + free.accept_prob)
    return Move(free.labels, accept_prob, drawn.overflow | move.overflow | free.overflow)


def start_from_sample(key: Array, given: Given, num_scans: int) -> Array:
    """Initial labels: sweeps of some points, to whose clusters the others are added."""
    size, family = given.points.size, given.family
    if size <= _SAMPLE:
        return jnp.zeros(size, jnp.int32)
    key_sample, key_sweeps, key_parameters, key_labels = random.split(key, 4)
    index = random.choice(key_sample, size, (_SAMPLE,), replace=False)
    few = _some_points(given, index)

    def sweep(k: Array, labels: Array) -> Array:
        return _make_moves(random.fold_in(key_sweeps, k), labels, few, num_scans).labels

    labels = jax.lax.fori_loop(0, _SAMPLE_SWEEPS, sweep, jnp.zeros(_SAMPLE, jnp.int32))
    parameters = family.draw_parameters(key_parameters, few.clusters_of(labels))
    log_sizes = jnp.log(few.sizes_of(labels).astype(float))
    number = shared_bound(jnp.max(labels) + 1)

    def log_weights(k: Array) -> Array:
        log_likelihood = family.log_likelihood(take(parameters, k), given.points.statistics)
        return log_sizes[k] + log_likelihood

    return _draw_labels(key_labels, jnp.zeros(size, jnp.int32), number, log_weights)


# -- labels ----------------------------------------------------------------------------------------


def update_labels_by_slices(key: Array, labels: Array, given: Given) -> Move:
    """Draw shares and parameters given the labels, then all labels given these [Walker 2007]."""
    # The labels stay as they are if they would need more slots, or more sticks, than there are.
    points, num_slots = given.points, given.num_slots
    key_shares, key_parameters, key_labels = random.split(key, 3)
    labels, _ = canonical_order(labels, num_slots)  # draw_slices wants the empty slots at the end
    clusters = jax.tree.map(
        lambda x, y: jnp.concatenate([x, y]),
        given.clusters_of(labels),
        repeat(points.empty, _SPARE_STICKS),
    )
    num_sticks = num_slots + _SPARE_STICKS
    sizes = count_by_label(labels, num_sticks)
    log_shares, log_slices, too_few = draw_slices(key_shares, sizes, labels, given.prior.alpha)
    parameters = given.family.draw_parameters(key_parameters, clusters)
    # a stick is open to the points with slices below it; the longest ones may be open to some
    order = jnp.argsort(-log_shares)
    num_open = jnp.sum(log_shares >= log_slices.min())

    def log_weights(k: Array) -> Array:
        stick = order[k]
        log_likelihood = given.family.log_likelihood(take(parameters, stick), points.statistics)
        return jnp.where(log_shares[stick] >= log_slices, log_likelihood, -jnp.inf)

    places = jnp.zeros_like(labels)  # places are in the order of the sticks
    places = _draw_labels(key_labels, places, shared_bound(num_open), log_weights)
    new_labels = order[places]
    number = jnp.sum(count_by_label(new_labels, num_sticks) > 0)
    overflow = too_few | (number > num_slots)
    renamed, _ = canonical_order(new_labels, num_sticks)
    return Move(jnp.where(overflow, labels, renamed), jnp.ones(()), overflow)


def _draw_labels(
    key: Array, labels: Array, number: Array, log_weights: Callable[[Array], Array]
) -> Array:
    """Draw a label from 0 to ``number - 1`` for each point, by reservoir sampling."""
    # Labels whose weights are all 0 are kept; ``log_weights`` maps a label to weights, (N,).

    def consider(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        """Take label k with its probability among those up to k."""
        log_sum, labels = carry
        log_weight = log_weights(k)
        log_weight = jnp.where(log_weight > _NEVER, log_weight, 2.0 * _NEVER)
        least = jnp.exp(-jnp.abs(log_weight - log_sum))
        prob = jnp.where(log_weight > log_sum, 1.0, least) / (1.0 + least)
        is_taken = sample_uniform(random.fold_in(key, k), labels.shape) <= prob
        log_sum = jnp.maximum(log_sum, log_weight) + jnp.log1p(least)
        return log_sum, jnp.where(is_taken, k, labels)

    return jax.lax.fori_loop(0, number, consider, (jnp.full(labels.shape, _NEVER), labels))[1]


# -- splits and merges -----------------------------------------------------------------------------


class _Pairs(NamedTuple):
    """Which clusters are to be split and which to be merged; a pair is named by its first slot."""

    pair: Array  # the pair of each slot, C if none, (C,)
    is_second: Array  # whether the slot is the second of two to be merged, (C,)
    order: Array  # the slots in the order of their places, (C,)
    splits: Array  # whether each pair is to be split, (C,)
    merges: Array  # whether it is to be merged, (C,)


def split_or_merge_clusters(key: Array, labels: Array, given: Given, num_scans: int) -> Move:
    """Propose to split or merge many clusters, and decide on each pair of them by itself."""
    # The labels are canonical, (N,), and the sub-clusters are learned in so many passes.
    key_pairs, key_learn, key_accept = random.split(key, 3)
    log_rate, pairs = _draw_pairs(key_pairs, labels, given)
    pair = pairs.pair[labels]
    log_odds, dealt = learn_subclusters(key_learn, pair, given, num_scans)
    is_second = jnp.where(_at(pairs.merges, pair), pairs.is_second[labels], dealt)
    log_split = _log_split_ratio(is_second, pair, log_odds, given) - log_rate
    return _decide(key_accept, labels, log_split, is_second, pairs, given)


def split_or_merge_without_labels(key: Array, labels: Array, given: Given) -> Move:
    """Propose to split or merge many clusters, with the labels in each pair integrated out."""
    # A cluster is split by parameters from the posterior given a few of its points, and the shares
    # w and 1 - w, w uniform. For a merge, parameters and shares are drawn given the two clusters.
    # Then the points are dealt with their probabilities given these, which cancel from the ratio:
    # it has the mixture density of each point instead. The labels are canonical, (N,).
    family, statistics, number = given.family, given.points.statistics, given.num_slots + 1
    keys = random.split(key, 7)
    log_rate, pairs = _draw_pairs(keys[0], labels, given)
    pair = pairs.pair[labels]
    is_merged, in_second = _at(pairs.merges, pair), pairs.is_second[labels]
    # the few points: for each side the same share of all, whose logarithm is uniform
    log_size = jnp.log(jnp.maximum(count_by_label(pair, number), 2).astype(float))
    chance = 0.5 * jnp.exp(-log_size * random.uniform(keys[1], (number,)))
    place = random.uniform(keys[2], pair.shape) / chance[pair]
    part = jnp.where(place < 1.0, 0, jnp.where(place < 2.0, 1, 2))
    parts = family.of_clusters(statistics, 3 * pair + part, 3 * number)
    few, others, rest = (jax.tree.map(lambda x, k=k: x[k::3], parts) for k in (0, 1, 2))
    log_whole = family.log_marginal(family.add(family.add(few, others), rest))
    # shares and parameters, for a merge given the clusters, for a split given the few points
    cells, num_cells = _cells(in_second, pair, given)
    clusters = family.of_clusters(statistics, cells, num_cells)
    sizes = count_by_label(cells, num_cells)
    merges = jnp.append(pairs.merges, False)

    def source(k: int, chosen: Any) -> Any:
        def choose(x: Array, y: Array) -> Array:
            return jnp.where(merges.reshape(-1, *[1] * (x.ndim - 1)), x[k::2], y)

        return jax.tree.map(choose, clusters, chosen)

    both = jax.tree.map(lambda x, y: jnp.concatenate([x, y]), source(0, few), source(1, others))
    parameters = family.draw_parameters(keys[3], both)
    shapes = jnp.where(jnp.repeat(merges, 2), jnp.maximum(sizes, 1).astype(float), 1.0)
    log_gammas = sample_log_gamma(keys[4], shapes)
    log_w, log_v = log_gammas[::2], log_gammas[1::2]
    log_w, log_v = jnp.stack([log_w, log_v]) - jnp.logaddexp(log_w, log_v)
    mine, its = (
        _score_own_clusters(take(parameters, at), pair, given)
        for at in (slice(number), slice(number, None))
    )
    log_first, log_second = log_w[pair] + mine, log_v[pair] + its
    log_odds = log_second - log_first
    log_odds = jnp.where(jnp.isnan(log_odds), 0.0, log_odds)
    log_mixture = jnp.maximum(log_first, log_second) + jnp.log1p(jnp.exp(-jnp.abs(log_odds)))
    # about the mean log marginal of a point, so that sums are small
    log_mixture -= (log_whole / jnp.exp(log_size))[pair]
    log_few = jnp.where(part == 0, mine, jnp.where(part == 1, its, 0.0))
    sums = sum_by_label_in_blocks(jnp.stack([log_mixture, log_few], axis=1), pair, number)
    # prior of the parameters over their proposal: the few points' marginal over their likelihood
    log_prior = family.log_marginal(few) + family.log_marginal(others) - sums[:, 1]
    log_split = jnp.log(0.5 * given.prior.alpha) + log_prior - log_w - log_v + sums[:, 0]
    is_second = jnp.where(is_merged, in_second, _draw_second(keys[5], log_odds))
    return _decide(keys[6], labels, log_split[:-1] - log_rate, is_second, pairs, given)


def _draw_pairs(key: Array, labels: Array, given: Given) -> tuple[Array, _Pairs]:
    """Draw log λ, and pairs of clusters."""
    key_rate, key_pairs = random.split(key)
    log_rate = random.uniform(key_rate) * math.log(given.num_slots)
    return log_rate, pair_clusters(key_pairs, given.sizes_of(labels) > 0, jnp.exp(log_rate))


def _at(flags: Array, pair: Array) -> Array:
    """The flag of the pair of each point, false for points of no pair, (N,)."""
    return jnp.append(flags, False)[pair]


def _decide(
    key: Array, labels: Array, log_split: Array, is_second: Array, pairs: _Pairs, given: Given
) -> Move:
    """Accept or reject each pair by itself, given the log Hastings ratio of its split, (C,)."""
    # Who is in the second cluster, before a merge or after a split, is (N,).
    num_slots, pair = given.num_slots, pairs.pair[labels]
    sizes = count_by_label(*_cells(is_second, pair, given))
    log_accept = jnp.where(pairs.splits, log_split, -log_split)
    # NaN: points that cannot share a cluster
    is_possible = (sizes[:-2:2] > 0) & (sizes[1:-2:2] > 0) & ~jnp.isnan(log_accept)
    log_accept = jnp.where(is_possible, log_accept, -jnp.inf)
    wanted = jnp.log(sample_uniform(key, (num_slots,))) <= log_accept
    number = jnp.sum(given.sizes_of(labels) > 0)
    made, overflow = _fit_into_slots(wanted, number, pairs)
    joins = _at(made & pairs.merges, pair)
    leaves = _at(made & pairs.splits, pair) & is_second
    new_labels = jnp.where(joins, pair, jnp.where(leaves, num_slots + pair, labels))
    new_labels, _ = canonical_order(new_labels, 2 * num_slots)
    tried = pairs.splits | pairs.merges
    accept_probs = jnp.where(tried, jnp.exp(jnp.minimum(log_accept, 0.0)), 0.0)
    mean = jnp.sum(accept_probs) / jnp.maximum(jnp.sum(tried), 1)
    return Move(new_labels, jnp.where(tried.any(), mean, 1.0), overflow)


def pair_clusters(key: Array, occupied: Array, rate: Array) -> _Pairs:
    """Pair clusters with each other or with empty places, in random order."""
    # Clusters lie at uniform places between 0 and 1, empty places form a Poisson process of rate λ,
    # and in their common order the first and second are a pair, the third and fourth, and so on. Of
    # a gap between two clusters only this matters: whether it has an empty place, and whether their
    # number is odd. In state space with this order, splitting a cluster uses up an empty place and
    # merging two leaves one, so that the posterior changes by the factors 1/λ and λ.
    num_slots = occupied.shape[0]
    key_place, key_gap = random.split(key)
    place = jnp.where(occupied, random.uniform(key_place, (num_slots,)), 2.0)
    order = jnp.argsort(place).astype(jnp.int32)
    # gaps before each cluster, and after the last
    ends = jnp.concatenate([jnp.zeros(1), jnp.minimum(place[order], 1.0), jnp.ones(1)])
    mean = rate * jnp.diff(ends)
    uniform = random.uniform(key_gap, mean.shape)
    is_bare = uniform < jnp.exp(-mean)  # no empty place
    is_odd = uniform >= 0.5 * (1.0 + jnp.exp(-2.0 * mean))
    index, number = jnp.arange(num_slots), jnp.sum(occupied)
    is_second = (index + jnp.cumsum(is_odd[:-1])) % 2 == 1
    is_real = index < number
    bare_before, bare_after = is_bare[:-1], is_bare[1:]
    follows = is_real & is_second & bare_before & (index > 0)
    leads = is_real & ~is_second & bare_after & (index + 1 < number)
    splits = is_real & jnp.where(is_second, ~bare_before, ~bare_after)
    pair = jnp.where(follows, jnp.roll(order, 1), order)
    pair = jnp.where(follows | leads | splits, pair, num_slots)

    def by_slot(x: Array) -> Array:
        return jnp.zeros_like(x).at[order].set(x)

    return _Pairs(by_slot(pair), by_slot(follows), order, by_slot(splits), by_slot(leads))


class _Subclusters(NamedTuple):
    """Two sub-clusters of each pair, next to each other."""

    log_shares: Array  # up to a constant, (2 (C + 1),)
    parameters: Any  # with the same leading axis


def learn_subclusters(key: Array, pair: Array, given: Given, num_scans: int) -> tuple[Array, Array]:
    """Learn two sub-clusters in each pair, from its points only, and deal the points to them."""
    # Of many points the first passes take some at random. Pairs have numbers from 0 to C. It
    # returns log odds of the second sub-cluster, (N,), and who is dealt to it, (N,).
    key_sample, key_cut, key_few, key_all, key_last = random.split(key, 5)
    few, pair_of_few, num_last = given, pair, 0
    if given.points.size > 2 * _LEARNERS:
        index = random.randint(key_sample, (_LEARNERS,), 0, given.points.size)
        few, pair_of_few = _some_points(given, index), pair[index]
        num_last = min(num_scans, _LAST_SCANS)

    def scan_few(k: Array, carry: tuple[Array, _Subclusters]) -> tuple[Array, _Subclusters]:
        key_draw, key_deal = random.split(random.fold_in(key_few, k))
        learned = _draw_subclusters(key_draw, carry[0], pair_of_few, few)
        return _draw_second(key_deal, _log_odds(learned, pair_of_few, few)), learned

    def scan_all(k: Array, learned: _Subclusters) -> _Subclusters:
        key_draw, key_deal = random.split(random.fold_in(key_all, k))
        is_second = _draw_second(key_deal, _log_odds(learned, pair, given))
        return _draw_subclusters(key_draw, is_second, pair, given)

    start = _cut(key_cut, pair_of_few, few)
    shape = jax.eval_shape(scan_few, 0, (start, None))[1]
    none = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape)
    _, learned = jax.lax.fori_loop(0, num_scans - num_last + 1, scan_few, (start, none))
    if num_last > 0:
        learned = jax.lax.fori_loop(0, num_last, scan_all, learned)
    log_odds = _log_odds(learned, pair, given)
    return log_odds, _draw_second(key_last, log_odds)


def _some_points(given: Given, index: Array) -> Given:
    points = given.points
    statistics, log_alone = take(points.statistics, index), points.log_alone[index]
    return given._replace(points=points._replace(statistics=statistics, log_alone=log_alone))


def _cut(key: Array, pair: Array, given: Given) -> Array:
    """Cut the points of each pair across a random line; without a line to project to, at random."""
    if type(given.family).project is Family.project:
        return random.bernoulli(key, 0.5, pair.shape)
    key_line, key_place = random.split(key)
    number = given.num_slots + 1
    place = given.family.project(key_line, given.points.statistics)
    size = jnp.maximum(count_by_label(pair, number), 1)
    place -= (sum_by_label_in_blocks(place, pair, number) / size)[pair]
    spread = jnp.sqrt(sum_by_label_in_blocks(place * place, pair, number) / size)
    return place > (spread * random.normal(key_place, (number,)))[pair]


def _draw_subclusters(key: Array, is_second: Array, pair: Array, given: Given) -> _Subclusters:
    """Draw shares and parameters of the sub-clusters given who is in them."""
    key_shares, key_parameters = random.split(key)
    cells, number = _cells(is_second, pair, given)
    clusters = given.family.of_clusters(given.points.statistics, cells, number)
    return _Subclusters(
        sample_log_gamma(key_shares, count_by_label(cells, number) + 1.0),
        given.family.draw_parameters(key_parameters, clusters),
    )


def _log_odds(subclusters: _Subclusters, pair: Array, given: Given) -> Array:
    """Log odds of the second sub-cluster for each point, (N,)."""
    first, second = (jax.tree.map(lambda x, k=k: x[k::2], subclusters) for k in (0, 1))
    log_odds = (second.log_shares - first.log_shares)[pair]
    log_odds += _score_own_clusters(second.parameters, pair, given)
    log_odds -= _score_own_clusters(first.parameters, pair, given)
    return jnp.where(jnp.isnan(log_odds), 0.0, log_odds)  # a point impossible in both


def _cells(is_second: Array, pair: Array, given: Given) -> tuple[Array, int]:
    """The sub-cluster of each point, two for each pair, and how many there are."""
    return 2 * pair + is_second, 2 * (given.num_slots + 1)


def _score_own_clusters(parameters: Any, labels: Array, given: Given) -> Array:
    """Log probability of each point under the parameters of its label, (N,)."""
    family, statistics = given.family, given.points.statistics
    width = sum(math.prod(x.shape[1:]) for x in jax.tree.leaves(parameters))
    if width <= _NARROW:
        return family.log_likelihood(take(parameters, labels), statistics)

    def fill(k: Array, log_probs: Array) -> Array:
        return jnp.where(
            labels == k, family.log_likelihood(take(parameters, k), statistics), log_probs
        )

    return jax.lax.fori_loop(0, shared_bound(jnp.max(labels) + 1), fill, jnp.zeros(labels.shape))


def _draw_second(key: Array, log_odds: Array) -> Array:
    """Draw whether each point is in the second sub-cluster, (N,); small probabilities are exact."""
    odds = jnp.exp(-jnp.abs(log_odds))
    is_unlikely = sample_uniform(key, log_odds.shape) * (1.0 + odds) <= odds
    return (log_odds > 0) ^ is_unlikely


def _log_split_ratio(is_second: Array, pair: Array, log_odds: Array, given: Given) -> Array:
    """Log posterior of two clusters over one, over the probability of dealing points so, (C,)."""
    # It is of no use where one of the two clusters has no points.
    cells, number = _cells(is_second, pair, given)
    clusters = given.family.of_clusters(given.points.statistics, cells, number)
    first, second = (jax.tree.map(lambda x, k=k: x[k:-2:2], clusters) for k in (0, 1))
    sizes = count_by_label(cells, number)
    size, other_size = sizes[:-2:2], sizes[1:-2:2]
    log_union = given.family.log_union(first, given.family.for_union(second))
    log_prior = jnp.log(given.prior.alpha) + log_beta(
        jnp.maximum(size, 1).astype(float), jnp.maximum(other_size, 1).astype(float)
    )
    # log probabilities of this allocation of the points, and of the opposite one
    mine = jnp.where(is_second, log_odds, -log_odds)
    log_sum = jnp.log1p(jnp.exp(-jnp.abs(mine)))
    terms = jnp.stack([jnp.minimum(mine, 0.0), jnp.minimum(-mine, 0.0)], axis=1)
    terms -= log_sum[:, None]
    log_deal, log_reverse = sum_by_label_in_blocks(terms, pair, given.num_slots + 1)[:-1].T
    return log_prior - log_union - jnp.logaddexp(log_deal, log_reverse)


def _fit_into_slots(wanted: Array, number: Array, pairs: _Pairs) -> tuple[Array, Array]:
    """Return which pairs change, (C,), and whether a split was not made for want of slots."""
    # Moves are made in the order of their places.
    num_slots = wanted.shape[0]
    splits = (wanted & pairs.splits)[pairs.order]
    merges = (wanted & pairs.merges)[pairs.order]
    # the number of clusters after each move is min(before + change, C), in closed form
    change = jnp.cumsum(splits.astype(jnp.int32) - merges)
    highest = jax.lax.cummax(jnp.maximum(change, 0))
    after = change + jnp.minimum(number, num_slots - highest)
    before = jnp.append(number, after[:-1])
    is_refused = splits & (before == num_slots)
    made = jnp.zeros_like(wanted).at[pairs.order].set((splits | merges) & ~is_refused)
    return made, is_refused.any()
