r"""Posterior SBC: whether a kernel recovers what draws of its own posterior have simulated.

A draw :math:`θ` of :math:`p(θ | y)` and further rankings :math:`y'` of that draw are together a
draw of :math:`p(θ, y' | y)`. So :math:`θ` is a draw of :math:`p(θ | y, y')`, and its rank among
other draws of this posterior is uniform, if the kernel is right and moves fast enough.
"""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.handlers import seed
from numpyro.infer.mcmc import MCMCKernel
from numpyro.infer.util import get_transforms
from scipy.stats import binom

from numpyro_rankings.infer.base import GibbsKernel
from numpyro_rankings.infer.mixture.prior import PartitionPrior
from numpyro_rankings.ops.checks import check_whole
from numpyro_rankings.posterior.diagnostics import scalars_of
from numpyro_rankings.posterior.draws import (
    Draws,
    fitted_rankings,
    num_components_of,
    own_kernel,
    unconstrained_model,
)
from numpyro_rankings.posterior.partitions import evenly
from numpyro_rankings.posterior.quantities import as_shown, label_free_quantities
from numpyro_rankings.rankings import Orders, Rankings, refuse_weights
from numpyro_rankings.words import base_and_index, listed, plural, quantity_name, with_article

__all__ = ["PosteriorSBC", "posterior_sbc"]

_FULL = (
    "the further rankings need more clusters than the kernel has slots: fit with a larger "
    "max_clusters"
)
_SIMULATE = "simulate= can say what further data are"
# functions of labels and centers, which may be certain
_OF_LABELS = ("num_clusters", "partition_entropy", "kendall_to_reference", "largest_sizes")
_SIMULATED = 4000  # sets of uniform ranks, for the band and the p-values


# from a random key and a draw, the arguments of the kernel's model and where it starts
Simulate = Callable[[Array, Mapping[str, np.ndarray]], tuple[tuple, Mapping[str, Any]]]


class PosteriorSBC(NamedTuple):
    """The ranks of :func:`~numpyro_rankings.posterior_sbc`.

    - **ranks** - for each quantity, of each simulated draw among the later ones of its chain, from
      0 to **num_draws**, int (R,). Equal values are in random order. Quantities that never change,
      as where all labels are certain, are left out.
    - **p_values** - for each quantity, the probability that uniform ranks are somewhere as far from
      their expected numbers [2].
    - **num_draws** - L, the number of draws of each refit.
    - **num_further** - the number of rankings that were simulated for each refit; None if a
      function of the user's own has simulated them.
    """

    ranks: Mapping[str, np.ndarray]
    p_values: Mapping[str, float]
    num_draws: int
    num_further: int | None

    def band(self, prob: float = 0.95) -> np.ndarray:
        """Return between which numbers of ranks 0, …, z lie, for all z at once, (L, 2).

        :param prob: the probability that uniform ranks of one quantity are within it for every z.
        """
        size = len(next(iter(self.ranks.values())))
        uniform = _least_tails(_uniform_ranks(size, self.num_draws), self.num_draws)
        tail = float(np.quantile(uniform, 1.0 - prob)) / 2.0
        shares = _expected(self.num_draws)
        return np.stack([binom.ppf(x, size, shares) for x in (tail, 1.0 - tail)], axis=1)

    @property
    def in_words(self) -> str:
        """What the ranks say, one sentence."""
        number = len(self.p_values)
        name = min(self.p_values, key=lambda x: self.p_values[x])
        least = min(1.0, number * self.p_values[name])
        if least >= 0.01:
            of_all = "the only quantity" if number == 1 else f"all {number} quantities"
            return f"The ranks of {of_all} agree with uniform ones."
        named = with_article(quantity_name(name))
        return (
            f"The ranks of {named} are not uniform (p = {least:.2g}): the chains move slowly, the "
            "fit has fewer independent draws than there are refits, or the kernel is at fault."
        )


def posterior_sbc(
    key: Array,
    kernel: MCMCKernel,
    source: Any,
    rankings: Rankings | Orders | None = None,
    *,
    num_replicates: int = 100,
    num_further: int | None = None,
    num_draws: int = 19,
    num_sweeps: int = 10,
    num_warmup: int | None = None,
    simulate: Simulate | None = None,
) -> PosteriorSBC:
    """Check a fit by simulation from its own posterior [1].

    For each of some draws further rankings are simulated, as long as some of those observed, and
    the kernel goes on with both together from this draw, which is a draw of their posterior. The
    ranks of its label-free quantities among the later draws are uniform if the updates of the
    kernel are right for data like these. They are too often at the ends if the chains move so
    slowly that the later draws go only one way from the first: then raise ``num_sweeps``. The draws
    of the fit must be nearly independent, so that the number of replicates must not be above their
    effective sample size; otherwise the ranks of a right kernel are not uniform either.

    :param key: a JAX random key.
    :param kernel: that was run: a kernel of rankings by itself, of one population, a mixture or a
        process, without a pool of items, ties and covariates; with **simulate** any other.
    :param source: a run, an MCMC or the samples with all parameters, as for :class:`Draws`.
    :param rankings: that were fitted; a run and an MCMC know them.
    :param num_replicates: R, the number of refits, at most that of the draws. All of them share one
        compiled program. Few refits find only gross faults.
    :param num_further: the number of rankings to simulate for each; as many as there are, but at
        most 200, by default.
    :param num_draws: L, the number of draws of each refit.
    :param num_sweeps: the number of sweeps from one of these to the next.
    :param num_warmup: the number of sweeps before them; by default 0, or those in which the rungs
        of a ladder are placed.
    :param simulate: for other kernels and data, also those of NumPyro. It is called with a random
        key and a draw, values by name, simulates further data from the draw, and returns two
        things: the arguments of the kernel's model with all data, a tuple, and the parameters from
        which the kernel starts, a dict: those of the draw and, in a mixture, the labels of all
        judges, also the further ones.
        Shapes are best the same for all draws. A kernel of NumPyro adapts only in **num_warmup**
        sweeps, so that it is best given without adaptation. The ranks of a kernel that is not of
        this package are those of all its sites, which should not depend on labels.
    :raises TypeError: if the rankings are not known, or **simulate** returns something else.
    :raises ValueError: if the draws are of something else, an argument is out of range, or the
        chains stand still in more than half of the refits.

    **References:**

    1. Säilynoja, T., Schmitt, M., Bürkner, P.-C., Vehtari, A. (2025), *Posterior SBC:
       simulation-based calibration checking conditional on data*.
    2. Säilynoja, T., Bürkner, P.-C., Vehtari, A. (2022), *Graphical test for discrete uniformity
       and its applications in goodness-of-fit evaluation and multiple sample comparison*,
       Statistics and Computing.
    """
    for name, value in (("num_replicates", num_replicates), ("num_draws", num_draws)):
        check_whole(name, value)
    check_whole("num_sweeps", num_sweeps)
    own = own_kernel(kernel)
    draws = _samples_of(source) if own is None else _draws_of(own, source, rankings)
    if simulate is not None and num_further is not None:
        raise ValueError("simulate says how many further data there are: leave num_further out")
    key_rows, *keys = jax.random.split(key, 1 + num_replicates)
    rng = np.random.default_rng(np.asarray(jax.random.bits(key_rows, (4,), "uint32")))
    if own is not None and isinstance(draws, Draws) and draws.rankings is not None:
        kernel = own = own.with_prior_of(draws.rankings)
    if simulate is None:
        draws = _checked(kernel, draws)
        num_further = min(draws.fitted.num_rankings, 200) if num_further is None else num_further
        check_whole("num_further", num_further)
        simulate = _simulation(rng, kernel, draws, num_further)
    flat = draws.flat() if isinstance(draws, Draws) else draws
    most = len(next(iter(flat.values())))
    if num_replicates > most:
        raise ValueError(f"num_replicates is {num_replicates}, but there are {most} draws")
    adaptation = 0 if own is None else own.num_adaptation
    warmup = adaptation if num_warmup is None else num_warmup
    check_whole("num_warmup", warmup, 0)
    refit = _Refit(kernel, warmup, num_sweeps, num_draws)
    found = []
    for one, k in zip(keys, evenly(most, num_replicates), strict=True):
        key_data, key_start = jax.random.split(one)
        draw = {name: np.asarray(x[k]) for name, x in flat.items()}
        args, start = _as_simulated(simulate(key_data, draw))
        if own is not None and (absent := flat.keys() & _needed(draws) - start.keys()):
            raise ValueError(f"the parameters to start from lack {listed(sorted(absent))}")
        found.append(refit(key_start, args, start))
    # the replicates stand as chains, the simulated draw of each is the first of its chain
    samples = {name: np.stack([x[name] for x in found]) for name in found[0]}
    scalars = _scalars_of(own, samples, args)

    def is_discrete(name: str) -> bool:
        if own is not None:
            return base_and_index(name)[0] in _OF_LABELS
        return not np.issubdtype(scalars[name].dtype, np.floating)

    ranks = _ranks_of(rng, scalars, is_discrete)
    uniform = np.sort(_least_tails(_uniform_ranks(num_replicates, num_draws), num_draws))
    p_values = {name: _p_value(x, uniform, num_draws) for name, x in ranks.items()}
    return PosteriorSBC(ranks, p_values, num_draws, num_further)


class _Refit:
    """Goes on from a draw with the data and further ones; all of one shape share a program."""

    def __init__(self, kernel: MCMCKernel, warmup: int, num_sweeps: int, num_draws: int) -> None:
        self._kernel, self._warmup = kernel, warmup

        @jax.jit
        def advance(state: Any, args: tuple) -> Any:
            def sweep_often(state: Any, number: int) -> Any:
                def sweep(_: Array, state: Any) -> Any:
                    return kernel.sample(state, args, {})

                return jax.lax.fori_loop(0, number, sweep, state)

            def keep_one(state: Any, _: None) -> tuple[Any, Any]:
                state = sweep_often(state, num_sweeps)
                return state, (self._sites(state, args), getattr(state, "overflow", False))

            return jax.lax.scan(keep_one, sweep_often(state, warmup), None, length=num_draws)[1]

        self._advance = advance

    def __call__(self, key: Array, args: tuple, start: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the sites at the start and of the later draws, (1 + L, …) by name."""
        kernel, begin = self._kernel, dict(start)
        if (model := unconstrained_model(kernel)) is None:
            state = kernel.init(key, self._warmup, begin, args, {})
            first = self._sites(state, args)
            # labels of the kernels of this package are in order of first use
            given = () if own_kernel(kernel) is not None else first.keys() & start.keys()
        else:
            transforms = get_transforms(seed(model, key), args, {}, begin)
            if absent := transforms.keys() - begin.keys():
                raise ValueError(f"the parameters to start from lack {listed(sorted(absent))}")
            begin = {name: x.inv(begin[name]) for name, x in transforms.items()}
            state = kernel.init(key, self._warmup, begin, args, {})
            first, given = self._sites(state, args), transforms.keys()
        for name in given:
            if not np.allclose(first[name], start[name], rtol=1e-3, atol=1e-5):
                raise ValueError(f"{_type(kernel)} does not start from the given {name}")
        later, is_full = self._advance(state, args)
        if np.asarray(is_full).any():
            raise ValueError(_FULL)
        return jax.tree.map(lambda x, y: np.concatenate([np.asarray(x)[None], y]), first, later)

    def _sites(self, state: Any, args: tuple) -> Any:
        sites = attrgetter(self._kernel.sample_field)(state)
        return self._kernel.postprocess_fn(args, {})(sites)


def _type(thing: Any) -> str:
    return type(thing).__name__


def _as_simulated(found: Any) -> tuple[tuple, dict[str, Any]]:
    """Return what the function of a user returned, if it is two things as they must be."""
    if not isinstance(found, tuple) or len(found) != 2:
        got = f"{len(found)} things" if isinstance(found, tuple) else _type(found)
    elif not isinstance(found[0], tuple | list) or not isinstance(found[1], Mapping):
        got = f"{_type(found[0])} and {_type(found[1])}"
    else:
        return tuple(found[0]), dict(found[1])
    raise TypeError(
        "simulate must return a tuple of the arguments of the model, and a dict of the parameters "
        f"to start from, such as `return (data,), draw`: got {got}"
    )


def _needed(draws: Any) -> set[str]:
    """Return the sites that a kernel of this package would else start from at random."""
    return set() if draws.family is None else {"assignments", *draws.family.parameters}


def _simulation(rng: np.random.Generator, kernel: Any, draws: Draws, number: int) -> Simulate:
    """Return what simulates further rankings, like those of the same judges in all replicates."""
    fitted = draws.fitted
    like = rng.choice(np.repeat(np.arange(fitted.num_rows), fitted.counts), number)

    def simulate(key: Array, z: Mapping[str, np.ndarray]) -> tuple[tuple, dict[str, Any]]:
        labels = _further_labels(rng, kernel, draws, z, number)
        start = dict(z)
        if draws.labels is not None:
            start["assignments"] = np.concatenate([z["assignments"], labels])
        return (_with_further(key, draws, z, labels, like),), start

    return simulate


def _draws_of(kernel: GibbsKernel, source: Any, rankings: Any) -> Draws:
    draws = Draws.of(source, rankings)
    if draws.kernel and draws.kernel != type(kernel).__name__:
        raise ValueError(f"the draws are of {draws.kernel}, not of {type(kernel).__name__}")
    return draws


def _samples_of(source: Any) -> dict[str, np.ndarray]:
    """Return the samples of a kernel that is not of this package, each (D, …)."""
    if not isinstance(source, Mapping) and not hasattr(source, "get_samples"):
        raise TypeError(f"source must be an MCMC, a run or samples by name: got {_type(source)}")
    samples = source if isinstance(source, Mapping) else source.get_samples()
    if not samples:
        raise ValueError("source has no draws")
    return {name: np.asarray(x) for name, x in samples.items()}


def _checked(kernel: MCMCKernel, draws: Any) -> Draws:
    """Return the draws, unless further rankings cannot be simulated from them here."""
    name = type(kernel).__name__
    if not isinstance(draws, Draws):
        raise TypeError(f"{name} is not of this package; {_SIMULATE}")
    family = draws.check_family()
    if family.has_pool:
        raise ValueError(
            f"{name} is not checked so: further rankings may have items of the pool; {_SIMULATE}"
        )
    if draws.sites is not None or draws.lacks_empty:
        raise ValueError("the draws must have all parameters of a kernel by itself: give the run")
    if draws.orders is not None or draws.covariates is not None:
        raise ValueError(
            f"the judges must be without ties, comparisons and covariates; {_SIMULATE}"
        )
    refuse_weights(draws.fitted, "posterior SBC")
    return draws


def _further_labels(
    rng: np.random.Generator,
    kernel: GibbsKernel,
    draws: Draws,
    z: Mapping[str, np.ndarray],
    number: int,
) -> np.ndarray:
    """Draw labels of further judges, given the shares or else the labels of the others, (M,)."""
    if draws.labels is None:
        return np.zeros(number, np.int32)
    if draws.shares is not None:
        shares = np.asarray(z["shares"], float)
        return rng.choice(len(shares), number, p=shares / shares.sum()).astype(np.int32)
    prior = PartitionPrior(**kernel.read_prior(dict(z), (draws.fitted,), {})[0])
    num_slots = len(z["cluster_sizes"])
    labels, sizes = np.zeros(number, np.int32), np.asarray(z["cluster_sizes"], float)
    kappa, alpha = float(prior.kappa), float(prior.alpha)
    for k in range(number):
        occupied = sizes > 0
        left = np.inf if prior.num_components is None else prior.num_components - occupied.sum()
        opens = alpha - kappa * occupied.sum() if np.isinf(left) else kappa * left
        weights = np.where(occupied, sizes + kappa, 0.0)
        if not occupied.all():  # the parameters of empty slots are draws of their prior
            weights[occupied.argmin()] = opens
        elif prior.num_components is None:
            raise ValueError(_FULL)
        labels[k] = rng.choice(num_slots, p=weights / weights.sum())
        sizes[labels[k]] += 1
    return labels


def _with_further(
    key: Array, draws: Draws, z: Mapping[str, np.ndarray], labels: np.ndarray, like: np.ndarray
) -> Rankings:
    """Return the rankings and further ones, a row each, which are as long as those of some rows."""
    fitted, family = draws.fitted, draws.check_family()
    sets = None if fitted.choice_sets is None else jnp.asarray(fitted.choice_sets, bool)[like]
    length, lengths = fitted.orderings.shape[1], fitted.lengths[like]
    parameters = {name: jnp.asarray(z[name]) for name in family.parameters}
    lists = family.replicate(key, parameters, jnp.asarray(labels), sets, length)[:, :length]
    lengths = jnp.minimum(lengths, lists.shape[1])  # all items but the last are as good as all
    lists = jnp.pad(lists, ((0, 0), (0, length - lists.shape[1])))
    lists = jnp.where(jnp.arange(length) < lengths[:, None], lists, -1)
    leaves = [
        jnp.concatenate([fitted.orderings, lists.astype(jnp.int32)]),
        jnp.concatenate([fitted.lengths, lengths]),
        jnp.concatenate([fitted.counts, jnp.ones(len(labels), fitted.counts.dtype)]),
        None if sets is None else jnp.concatenate([jnp.asarray(fitted.choice_sets, bool), sets]),
    ]
    static = fitted.num_items, fitted.items, fitted.num_rankings + len(labels)
    return Rankings._make(leaves, static)


def _scalars_of(
    kernel: GibbsKernel | None, samples: Mapping[str, np.ndarray], args: tuple
) -> dict[str, np.ndarray]:
    """Return the quantities whose ranks are taken, each (R, 1 + L), by their names."""
    if kernel is None:
        return {k: y for name, x in samples.items() for k, y in scalars_of(name, x).items()}
    draws = Draws.of_kernel(samples, num_components_of(kernel), kernel=type(kernel).__name__)
    draws = draws.with_rankings(fitted_rankings(kernel, args, {}))
    quantities = label_free_quantities(draws)
    shown, top_items = as_shown(quantities, draws.items or ())
    labels = {"top_weights": top_items}
    return {
        k: y for name, x in shown.items() for k, y in scalars_of(name, x, labels.get(name)).items()
    }


def _ranks_of(
    rng: np.random.Generator,
    scalars: Mapping[str, np.ndarray],
    is_discrete: Callable[[str], bool],
) -> dict[str, np.ndarray]:
    """Return the rank of the first draw of each chain among the others, (R,), by quantity."""
    ranks = {}
    for name, values in scalars.items():
        if np.ptp(values) == 0:
            continue
        first, later = values[:, :1], values[:, 1:]
        equal = (later == first).sum(1)
        still = equal == later.shape[1]
        if is_discrete(name):
            if still.all():  # as where all labels are certain
                continue
        elif 2 * still.sum() > len(still):  # the order of equal values would hide it
            raise ValueError(
                f"{name} never moves from where it starts in {still.sum()} of "
                f"{plural(len(still), 'refit')}: raise num_sweeps, or see why the kernel does "
                "not move"
            )
        ranks[name] = (later < first).sum(1) + rng.integers(0, equal + 1)
    if not ranks:
        raise ValueError("no quantity moves from where it starts: there are no ranks")
    return ranks


def _p_value(ranks: np.ndarray, uniform: np.ndarray, num_draws: int) -> float:
    """Return the probability of so small a tail, from uniform ranks and at most by Bonferroni.

    Where no simulated ranks have one so small, the bound alone says how improbable it is.
    """
    tail = _least_tails(ranks[None], num_draws)[0]
    below = np.searchsorted(uniform, tail * (1 + 1e-9), side="right") / len(uniform)
    return float(min(below or 1.0, num_draws * tail))


def _expected(num_draws: int) -> np.ndarray:
    """Return the shares of uniform ranks at most z, for z < L."""
    return np.arange(1, num_draws + 1) / (num_draws + 1)


def _uniform_ranks(size: int, num_draws: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, num_draws + 1, (_SIMULATED, size))


def _least_tails(ranks: np.ndarray, num_draws: int) -> np.ndarray:
    """Return the least two-sided tail probability over z of the numbers of ranks at most z [2]."""
    size, least = ranks.shape[1], np.ones(len(ranks))
    for z, share in enumerate(_expected(num_draws)):
        below = binom.cdf(np.arange(-1, size + 1), size, share)
        number = (ranks <= z).sum(1)
        above = binom.sf(np.arange(-1, size + 1), size, share)
        tails = np.minimum(below[number + 1], above[number])
        least = np.minimum(least, 2.0 * tails)
    return least
