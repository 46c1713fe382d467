"""Maximum likelihood and maximum a posteriori weights of the Plackett–Luce model."""

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm

from numpyro_rankings.infer.newton import climb
from numpyro_rankings.infer.paired_stages import PairStages
from numpyro_rankings.infer.tied_stages import TiedStages
from numpyro_rankings.rankings import Games, PartialOrders, Rankings, RankingsError, check_rankings
from numpyro_rankings.rankings.games import are_games

if TYPE_CHECKING:
    import pandas as pd

# A function imports pandas, which takes long to load and is needed for its table alone.

_MOST_ITERATIONS = 100_000
_TOLERANCE = 1e-9  # change of a log weight in one iteration
_NAMED = 10  # items of a group that an error message names
_BITS = 62  # items whose sets can be encoded in one integer


class PlackettLuceFit(NamedTuple):
    """Maximum likelihood or maximum a posteriori weights.

    - **weights** - normalised, float64 (n,).
    - **log_likelihood** - of all rankings at these weights, without the prior.
    - **num_iterations** - number of iterations used.
    - **items** - names of the items.
    - **information** - observed information of the log weights, float64 (n, n). It is singular,
      because only differences of log weights matter. A prior adds that of the choices that it is
      worth. With ties it has a further row and column for the log strength of each size of ties
      that occurs, and with an advantage at home a last one for its logarithm.
    - **tie_strengths** - with ties :math:`\\delta_2, …, \\delta_D`, float64 (D - 1,), where D is
      the size of the largest tie; 0 for sizes that do not occur. None without ties.
    - **home_advantage** - of :func:`~numpyro_rankings.bradley_terry_map` with ``home``, the factor
      γ of the weight of an item at home; otherwise None.
    """

    weights: np.ndarray
    log_likelihood: float
    num_iterations: int
    items: tuple[str, ...]
    information: np.ndarray
    tie_strengths: np.ndarray | None = None
    home_advantage: float | None = None

    @property
    def tie_sizes(self) -> tuple[int, ...]:
        """The numbers of items of the ties that occur."""
        if self.tie_strengths is None:
            return ()
        return tuple((np.flatnonzero(self.tie_strengths) + 2).tolist())

    def _further(self) -> dict[str, float]:
        """Return the names and values of what is estimated beside the weights, as logarithms."""
        strengths = {} if self.tie_strengths is None else dict(enumerate(self.tie_strengths, 2))
        found = {f"tie{d}": float(np.log(strengths[d])) for d in self.tie_sizes}
        if self.home_advantage is not None:
            found["home"] = float(np.log(self.home_advantage))
        return found

    def covariance(self, reference: str | None = None) -> np.ndarray:
        """Return the approximate covariance of the log weights, (n, n).

        It has further rows and columns as the information has.

        :param reference: the item whose log weight is 0; by default their mean is 0.
        """
        n, information = len(self.items), self.information.copy()
        # on the differences, with the direction of all ones, which is not identified, shut out
        information[:n, :n] += np.trace(information[:n, :n]) / n**2
        contrasts = np.eye(len(information))
        contrasts[:n, :n] = _contrasts(n, self._index(reference))
        return contrasts @ np.linalg.inv(information) @ contrasts.T

    def summary(self, reference: str | None = None, level: float = 0.9) -> "pd.DataFrame":
        """Tabulate the log weights with Gaussian approximate intervals, the largest first.

        The columns ``log_weight``, ``standard_error``, ``low``, ``high``, ``z`` and ``p_value`` are
        of the difference to the reference. Two items are compared by their quasi-variances [1]:
        the variance of the difference of their log weights is about the sum of the two, whatever
        the reference. ``quasi_low`` and ``quasi_high`` are the intervals that belong to them;
        ``table.attrs["quasi_error"]`` is the largest relative error of a standard error that is
        computed in this way.

        With ties the last rows, ``tie2``, ``tie3``, …, are of the logarithms of the tie strengths,
        which are compared with 0: :math:`\\delta_2 = 1` ties two items of the same weight, alone,
        with probability 1/3. The last row, ``home``, is of the logarithm of the advantage at home.

        :param reference: the item whose log weight is 0; by default the mean of all is 0.
        :param level: probability of the intervals.
        :return: a row for each item, for each size of ties, and for the advantage at home.

        **References:**

        1. Firth, D., de Menezes, R. X. (2004), "Quasi-variances", Biometrika 91.

        .. doctest::

           >>> from numpyro_rankings import load_dataset, plackett_luce_map
           >>> table = plackett_luce_map(load_dataset("apa1980")).summary()
           >>> table[["log_weight", "standard_error"]].round(3).iloc[0].tolist()
           [0.151, 0.01]
        """
        import pandas as pd

        if not 0 < level < 1:
            raise ValueError(f"level must be a probability between 0 and 1, got {level!r}")
        index, n = self._index(reference), len(self.items)
        log_weights, further = _contrasts(n, index) @ np.log(self.weights), self._further()
        order = np.argsort(-log_weights, kind="stable")
        log_weights = np.append(log_weights, list(further.values()))
        order = np.append(order, np.arange(n, len(log_weights)))
        covariance, width = self.covariance(reference), norm.ppf(0.5 + level / 2)
        error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            z = log_weights / error
        if index is not None:
            z[index] = np.nan  # not compared with itself
        quasi = np.full(len(error), np.nan)
        quasi[:n], quasi_error = _quasi_variances(covariance[:n, :n])
        columns = {
            "log_weight": log_weights,
            "standard_error": error,
            "low": log_weights - width * error,
            "high": log_weights + width * error,
            "z": z,
            "p_value": 2 * norm.sf(np.abs(z)),
            "quasi_variance": quasi,
            "quasi_low": log_weights - width * np.sqrt(quasi),
            "quasi_high": log_weights + width * np.sqrt(quasi),
        }
        names = [*self.items, *further]
        table = pd.DataFrame(columns, index=pd.Index(names, name="item")).iloc[order]
        table.attrs = {"quasi_error": quasi_error, "level": level, "reference": reference}
        return table

    def _index(self, reference: str | None) -> int | None:
        if reference is None:
            return None
        if reference not in self.items:
            raise ValueError(f"there is no item {reference!r}")
        return self.items.index(reference)


def _contrasts(n: int, reference: int | None) -> np.ndarray:
    """Return the matrix that subtracts the reference, or the mean, from n numbers."""
    weights = np.full(n, 1 / n) if reference is None else np.eye(n)[reference]
    return np.eye(n) - weights


def _quasi_variances(covariance: np.ndarray) -> tuple[np.ndarray, float]:
    """Return quasi-variances, (n,), and the largest relative error of standard errors by them."""
    # They minimise the sum of squares of r_ik = log((q_i + q_k) / v_ik) over the pairs of items. By
    # Gauss and Newton: the derivative of r_ik by log q_i is the share q_i / (q_i + q_k).
    n = len(covariance)
    variance, itself = np.diag(covariance), np.eye(n, dtype=bool)
    of_pairs = np.where(itself, 1.0, variance[:, None] + variance - 2 * covariance)
    if n == 2:
        return np.full(2, of_pairs[0, 1] / 2), 0.0
    # exact if the information is diagonal but for the choices: start from the mean over pairs
    start = of_pairs.sum(1) - 1
    start = np.maximum(start - start.sum() / (2 * n - 2), 1e-3 * start) / (n - 2)

    def evaluate(log_quasi: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        quasi = np.exp(log_quasi)
        total = quasi[:, None] + quasi
        errors = np.where(itself, 0.0, np.log(total / of_pairs))
        share = np.where(itself, 0.0, quasi[:, None] / total)
        slopes = share * share.T + np.diag((share**2).sum(1))
        return -(errors**2).sum() / 4, -(share * errors).sum(1), slopes

    quasi = np.exp(climb(evaluate, np.log(start))[0])
    ratio = np.sqrt((quasi[:, None] + quasi) / of_pairs)[~itself]
    return quasi, float(np.abs(ratio - 1).max())


def plackett_luce_map(
    rankings: Rankings | PartialOrders, shape: float = 1.0, rate: float = 0.0
) -> PlackettLuceFit:
    r"""
    Weights of highest posterior density, by default of highest likelihood.

    They are found by Hunter's MM algorithm [1], which is the EM algorithm of [2]: the next weight
    of an item is :math:`(a - 1 + n_k) / (b + \sum 1/W)`, where the sum is over the stages at which
    the item was in play and W is the mass of all items in play.

    Orders with ties have the likelihood of
    :class:`~numpyro_rankings.distributions.PlackettLuceTies`, where a tie is a choice of a set. The
    strengths of ties of two items, of three, … are estimated too, by the MM algorithm of [3]: the
    weights are multiplied by the ratio of how often an item was chosen and how often that is
    expected, where a tie of d items is 1/d of a choice, and then the strengths by that of ties.

    Partial orders of two items each are games of the Bradley–Terry model, whose maximum is found by
    Newton's method. :func:`~numpyro_rankings.bradley_terry_map` takes them with an advantage at
    home.

    :param rankings: top-t rankings of all items, or of choice sets, or partial orders. Each row of
        these must be an order of buckets: listed items whose order is not known count as tied. If
        a judge compared pairs that are no such order, give each pair a row of its own. A last
        bucket that only holds the rest is no tie: leave it out.
    :param shape: a >= 1 of the prior Gamma(a, b) of each weight. With 1 the result is the maximum
        of the likelihood. With 2 it is as if each item had been chosen once more, from all
        items.
    :param rate: b >= 0. The likelihood depends on ratios of weights only, so the normalised weights
        of highest density are the same for every rate.
    :return: normalised weights, the log likelihood, and the number of iterations.
    :raises RankingsError: with ``shape=1``, if the likelihood has no maximum, because it increases
        as the weights of some items go to 0 or infinity: these items are always chosen before the
        others, never, or not compared with them. The message names them. Ties do not count here,
        though in rare cases they would be enough for a maximum. Ties that occur wherever they can
        are refused, and so is a row that is no order of buckets.

    **References:**

    1. Hunter, D. R. (2004), "MM algorithms for generalized Bradley–Terry models".
    2. Caron, F., Doucet, A. (2012), "Efficient Bayesian inference for generalized Bradley–Terry
       models".
    3. Turner, H. L., van Etten, J., Firth, D., Kosmidis, I. (2020), "Modelling rankings in R: the
       PlackettLuce package".

    .. doctest::

       >>> from numpyro_rankings import PartialOrders, Rankings, plackett_luce_map
       >>> rankings = Rankings.from_orderings([[0], [1]], num_items=2, counts=[3, 1])
       >>> plackett_luce_map(rankings).weights.round(3).tolist()
       [0.75, 0.25]
       >>> games = [["a", "b"], ["b", "a"], [["a", "b"]]]
       >>> games = PartialOrders.from_buckets(games, items=["a", "b"], counts=[4, 4, 2])
       >>> plackett_luce_map(games).tie_strengths.round(3).tolist()
       [0.5]
    """
    check_shape(shape)
    if np.ndim(rate) > 0 or np.asarray(rate).dtype.kind not in "iuf":
        raise ValueError(f"rate must be a number, got {rate!r}")
    if not (np.isfinite(rate) and rate >= 0.0):
        raise ValueError(f"rate must be a number, 0 or more; got {rate!r}")
    return fit_stages(_stages_of(rankings), rankings.items, shape)


def _stages_of(rankings: Rankings | PartialOrders) -> "Stages":
    if isinstance(rankings, PartialOrders):
        if are_games(rankings):
            return PairStages(Games.from_orders(rankings))
        if np.asarray(rankings.has_ties).any():
            return TiedStages(rankings)
        rankings = rankings.to_rankings()
    check_rankings(rankings)
    if rankings.num_items < 2:
        raise ValueError("a ranking needs at least 2 items")
    return _Stages(rankings)


def check_shape(shape: float) -> None:
    """Refuse a prior of the weights without a highest density."""
    if np.ndim(shape) > 0 or np.asarray(shape).dtype.kind not in "iuf":
        raise ValueError(f"shape must be a number, got {shape!r}")
    if not (np.isfinite(shape) and shape >= 1.0):
        raise ValueError(f"shape must be at least 1, or there is no maximum; got {shape!r}")


def fit_stages(stages: "Stages", items: tuple[str, ...], shape: float) -> PlackettLuceFit:
    """Return the weights of highest density, and what else is estimated."""
    if shape == 1.0:
        _check_that_there_is_a_maximum(items, stages)
    n, home = len(items), None
    # over all scales the density is highest at Σ w = n (a - 1) / b, which is 1 with this b
    prior = n * (shape - 1.0)
    if isinstance(stages, PairStages):
        stages.check_home(shape > 1.0)
        weights, iteration = stages.best(shape - 1.0)
        home = stages.home
    else:
        weights, iteration = _climb(stages, shape - 1.0)
    information = stages.information(weights)
    # a prior is worth that many choices from all items
    information[:n, :n] += prior * (np.diag(weights) - np.outer(weights, weights))
    strengths = None
    if len(stages.tie_sizes):
        strengths = np.zeros(max(stages.tie_sizes) - 1)
        strengths[np.array(stages.tie_sizes) - 2] = stages.ties
    likelihood = stages.log_likelihood(weights)
    return PlackettLuceFit(weights, likelihood, iteration, items, information, strengths, home)


def _climb(stages: "_Stages | TiedStages", times: float) -> tuple[np.ndarray, int]:
    """Return the weights of highest density by the MM algorithm, and the number of iterations.

    :param times: how often each item is chosen once more, from all items.
    """
    n = stages.num_items
    weights = np.full(n, 1.0 / n)
    iteration, change = 0, np.inf
    while change > _TOLERANCE and iteration < _MOST_ITERATIONS:
        new = (times + stages.times_chosen) / (stages.times_in_play(weights) + n * times)
        new /= new.sum()
        change = np.max(np.abs(np.log(new / weights)))
        if isinstance(stages, TiedStages):
            change = max(change, stages.update_ties(new))
        weights, iteration = new, iteration + 1
    if change > _TOLERANCE:
        warnings.warn(
            f"the weights still change by {change:.1e} after {iteration} iterations: some items "
            "are hardly compared with the others",
            UserWarning,
            stacklevel=3,
        )
    return weights, iteration


class _Stages:
    """The stages of all rankings in float64, where stages with the same items in play are merged.

    Stages with one item in play are not informative and are left out.
    """

    tie_sizes = ties = ()

    def __init__(self, rankings: Rankings) -> None:
        n = rankings.num_items
        self.num_items, self.orderings = n, np.asarray(rankings.orderings)
        listed = self.orderings >= 0
        offered = rankings.choice_sets
        self.offered = None if offered is None else np.asarray(offered)
        num_offered = n if self.offered is None else self.offered.sum(1, keepdims=True)
        self.informative = listed & (num_offered - np.arange(listed.shape[1]) > 1)
        counts = np.asarray(rankings.counts, float)[:, None] * self.informative
        # padding has a column of its own
        self.columns = np.where(listed, self.orderings, n)
        self.times_chosen = np.bincount(self.columns.ravel(), counts.ravel(), n + 1)[:n]
        self.counts, self.in_play = counts, None
        if self.offered is not None:
            row, place = np.nonzero(listed)
            items = self.orderings[row, place]
            self.listed = csr_array((np.ones(len(row)), (row, items)), (len(listed), n))
            unlisted = self.offered.copy()
            unlisted[row, items] = False
            self.unlisted = csr_array(unlisted, dtype=float)
        if n <= _BITS:
            bits = np.where(listed, 1 << np.maximum(self.orderings.astype(np.int64), 0), 0)
            powers = 1 << np.arange(n, dtype=np.int64)
            all_offered = powers.sum() if self.offered is None else (self.offered * powers).sum(1)
            codes = np.reshape(all_offered, (-1, 1)) - np.cumsum(bits, axis=1) + bits
            sets, which = np.unique(codes[self.informative], return_inverse=True)
            self.in_play = ((sets[:, None] & powers) > 0).astype(float)
            self.counts = np.bincount(which.ravel(), counts[self.informative], len(sets))

    def _masses(self, weights: np.ndarray) -> np.ndarray:
        """Mass in play at each stage, (rows, T), 1 if it is not informative; or for each set."""
        if self.in_play is not None:
            return self.in_play @ weights
        chosen = np.append(weights, 0.0)[self.columns]
        # in float64 the difference keeps enough digits
        rest = 1.0 - chosen.sum(1) if self.offered is None else self.unlisted @ weights
        masses = np.maximum(rest, 0.0)[:, None] + np.cumsum(chosen[:, ::-1], axis=1)[:, ::-1]
        return np.where(self.informative, masses, 1.0)

    def times_in_play(self, weights: np.ndarray) -> np.ndarray:
        """Σ 1/W over the stages where each item is in play, the expected waiting times, (n,)."""
        times = self.counts / self._masses(weights)
        if self.in_play is not None:
            return times @ self.in_play
        upto, n = np.cumsum(times, axis=1), self.num_items
        total = upto[:, -1]
        if self.offered is not None:
            listed = np.bincount(self.columns.ravel(), upto.ravel(), n + 1)[:n]
            return listed + self.unlisted.T @ total
        after = total[:, None] - upto
        return total.sum() - np.bincount(self.columns.ravel(), after.ravel(), n + 1)[:n]

    def information(self, weights: np.ndarray) -> np.ndarray:
        """Observed information of the log weights: Σ diag(p) - p pᵀ, p = w / W in play, (n, n)."""
        masses, n = self._masses(weights), self.num_items
        if self.in_play is not None:
            p = self.in_play * (weights / masses[:, None])
            return np.diag(self.counts @ p) - p.T @ (self.counts[:, None] * p)
        # pairs are in play together until one of them is chosen: sums of 1/W² up to there
        upto = np.cumsum(self.counts / masses**2, axis=1)
        rows, total = np.arange(len(upto)), upto[:, -1]
        together = np.zeros((n, n))
        if self.offered is None:
            together += total.sum()
        else:
            offered = csr_array(self.offered, dtype=float)
            together += (offered.T @ (offered * total[:, None])).toarray()
        first = np.zeros((n + 1, n + 1))  # of pairs of which the row's item is chosen first
        for j in range(upto.shape[1]):
            chosen, less = self.columns[:, j], upto[:, j] - total
            if self.offered is None:
                first[:, :n] += np.bincount(chosen, less, n + 1)[:, None]
            else:
                at = csr_array((less, (rows, chosen)), (len(rows), n + 1))
                first[:, :n] += (at.T @ offered).toarray()
            for earlier in range(j + 1):
                np.add.at(first, (chosen, self.columns[:, earlier]), -less)
        first = first[:n, :n]
        itself = np.bincount(self.columns.ravel(), (upto - total[:, None]).ravel(), n + 1)[:n]
        together += first + first.T + np.diag(itself)
        times = np.diag(self.times_in_play(weights) * weights)
        return times - together * np.outer(weights, weights)

    def log_likelihood(self, weights: np.ndarray) -> float:
        """Log likelihood of all rankings; the weights of items never chosen may be 0."""
        chosen = self.times_chosen > 0
        total = np.sum(self.times_chosen[chosen] * np.log(weights[chosen]))
        return float(total - np.sum(self.counts * np.log(self._masses(weights))))

    def beats(self) -> np.ndarray:
        """Whether the item of the row was once ahead of that of the column, (n, n)."""
        n, columns = self.num_items, self.columns
        # before[j, i]: rankings that list j before i
        before = np.zeros((n + 1) * (n + 1))
        for later in range(1, columns.shape[1]):
            for earlier in range(later):
                pairs = columns[:, earlier] * (n + 1) + columns[:, later]
                before += np.bincount(pairs, minlength=before.size)
        before = before.reshape(n + 1, n + 1)[:n, :n]
        if self.offered is None:
            # some list has item i, and not j before it
            listed = np.bincount(columns.ravel(), minlength=n + 1)[:n]
            return listed[:, None] > before.T
        return (before > 0) | ((self.listed.T @ self.unlisted).toarray() > 0)


Stages = _Stages | TiedStages | PairStages


def _check_that_there_is_a_maximum(items: tuple[str, ...], stages: Stages) -> None:
    """Check that every item beats every other, directly or through others [1, assumption 1]."""
    beats = stages.beats()
    np.fill_diagonal(beats, False)
    number, group = connected_components(beats, directed=True, connection="strong")
    if number == 1:
        return
    main = np.argmax(np.bincount(group))
    reach, reached = _reach(beats, group == main), _reach(beats.T, group == main)
    outside = group != main
    kinds = {
        "always ahead of": outside & reached & ~reach,
        "never ahead of": outside & reach & ~reached,
        "not compared with": outside & ~reach & ~reached,
    }
    # ties between such items are enough for a maximum in rare cases only
    has = "may have no maximum" if len(stages.tie_sizes) else "has no maximum"
    phrases = [f"{_name(items, which)} {how}" for how, which in kinds.items() if which.any()]
    raise RankingsError(
        f"the likelihood {has}: {', '.join(phrases)} the other items. Leave them out, or give the "
        "weights a prior with shape > 1"
    )


def _reach(beats: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Items that those of ``start`` beat, directly or through others."""
    found = start
    while True:
        more = found | beats[found].any(0)
        if np.array_equal(more, found):
            return found
        found = more


def _name(items: tuple[str, ...], which: np.ndarray) -> str:
    names = [repr(items[item]) for item in np.flatnonzero(which)]
    shown = ", ".join(names[:_NAMED])
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"items {shown}{rest} are" if len(names) > 1 else f"item {shown} is"
