"""The bundled real table, the project's small text format for such tables, and simulators.

**References**

1. *A generalization of spectral analysis with application to ranked data*, P. Diaconis (Annals
   of Statistics 17, 1989)
2. *Dirichlet Process Mixtures of Generalized Mallows Models*, M. Meilă, H. Chen (UAI 2010)
3. *Bayesian nonparametric Plackett–Luce models for the analysis of preferences for college degree
   programmes*, F. Caron, Y. W. Teh, T. B. Murphy (Annals of Applied Statistics, 2014)
"""

import os
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from numpyro_rankings.ops.codes import max_codes
from numpyro_rankings.ops.sampling import sample_truncated_geometric
from numpyro_rankings.preflib import check_writable_names, read_lines, read_preflib
from numpyro_rankings.rankings import Rankings, RankingsError

__all__ = [
    "DPPlackettLuceSample",
    "GammaProcessSample",
    "MallowsMixtureSample",
    "PlackettLuceMixtureSample",
    "list_datasets",
    "load_dataset",
    "read_rankings",
    "read_table",
    "simulate_dp_plackett_luce",
    "simulate_gamma_process",
    "simulate_mallows",
    "simulate_mallows_mixture",
    "simulate_plackett_luce",
    "simulate_plackett_luce_mixture",
    "write_table",
]

_ITEM = re.compile(r"#\s*item\s+([^\s,>:={}]+)\s*:(.*)")
_draw_codes = jax.jit(sample_truncated_geometric)  # one compilation, not one per operation
_COLUMNS = ("count,ordering", "count,ordering,offered")


def list_datasets() -> list[str]:
    """Names of the bundled tables, for :func:`load_dataset`."""
    folder = resources.files("numpyro_rankings") / "data"
    names = (entry.name for entry in folder.iterdir())
    return sorted(name.removesuffix(".csv") for name in names if name.endswith(".csv"))


def load_dataset(name: str = "apa1980") -> Rankings:
    """A bundled table of real rankings.

    ``apa1980`` are the 15,449 ballots of the presidential election of the American Psychological
    Association in 1980: five candidates, of whom A and C are research psychologists, D and E
    clinical and B community psychologists; 205 distinct ballots, 5,738 of them complete. It is
    the example of [1].

    :param name: one of :func:`list_datasets`.
    :return: the rankings, one row per distinct one.

    .. doctest::

       >>> from numpyro_rankings.datasets import load_dataset
       >>> load_dataset()
       Rankings(15449 of 5 items, 205 distinct rows, lengths 1-5)
    """
    if name not in list_datasets():
        raise RankingsError(f"there is no data set {name!r}; there is {', '.join(list_datasets())}")
    with resources.as_file(resources.files("numpyro_rankings") / "data" / f"{name}.csv") as path:
        return read_table(path)


def read_rankings(path: str | os.PathLike) -> Rankings:
    """Read a file of rankings, whose extension says what it is.

    :param path: a PrefLib file ``.soc`` or ``.soi``, read by
        :func:`~numpyro_rankings.preflib.read_preflib`, or a table ``.csv``, read by
        :func:`~numpyro_rankings.datasets.read_table`.
    :return: the rankings.
    :raises RankingsError: beginning with ``FILE:LINE:``, for a file that is not what it says.
    """
    extension = Path(path).suffix.lower()
    if extension == ".csv":
        return read_table(path)
    if extension in (".soc", ".soi", ".toc", ".toi"):
        return read_preflib(path)
    if not Path(path).exists():
        raise RankingsError(f"{os.fspath(path)}: no such file")
    raise RankingsError(
        f"{os.fspath(path)}: the extension {extension!r} is not known; expected a PrefLib file "
        ".soc or .soi, or a table .csv"
    )


def read_table(path: str | os.PathLike) -> Rankings:
    """Read rankings from the project's own small text format.

    Lines that begin with ``#`` are comments, but for those that say the items: in index order, a
    code without blanks or ``,>:={}``, and the name. Then comes a line with the names of the
    columns, and a line for each row: how many rankings it stands for, and the codes of the items
    that they list, best first::

        # title: A small election
        # item A: Ann Able
        # item B: Bob Best
        # item C: Cid Chair
        count,ordering
        14,C>A>B
        6,B

    A third column ``offered``, if there is one, holds the choice set: the codes of the items that
    were offered, with blanks between them.

    :param path: the file.
    :return: the rankings, row by row as in the file.
    :raises RankingsError: beginning with ``FILE:LINE:``, for a file that is not like that.
    """
    name = os.fspath(path)
    codes: dict[str, int] = {}
    names: dict[str, int] = {}
    columns = 0
    where: list[int] = []
    counts: list[int] = []
    rows: list[list[int]] = []
    offered: list[list[int]] = []
    lines = read_lines(path)
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        try:
            if match := _ITEM.fullmatch(line):
                _add_item(match[1], match[2].strip(), codes, names)
            elif not line or line.startswith("#"):
                continue
            elif columns == 0:
                columns = _parse_columns(line, codes)
            else:
                fields = line.split(",")
                if len(fields) != columns:
                    raise RankingsError(f"expected {columns} columns, got {len(fields)}")
                where.append(number)
                counts.append(_parse_count(fields[0].strip()))
                rows.append(_parse_items(fields[1].split(">"), codes))
                if columns == 3:
                    offered.append(_parse_items(fields[2].split(), codes))
        except RankingsError as error:
            raise RankingsError(f"{name}:{number}: {error}") from None
    if not rows:
        raise RankingsError(f"{name}:{len(lines)}: there are no rankings")
    choice_sets = None
    if columns == 3:
        choice_sets = np.zeros((len(rows), len(names)), bool)
        for row, items in enumerate(offered):
            choice_sets[row, items] = True
    return Rankings._build(
        rows, tuple(names), counts, choice_sets, where=lambda row: f"{name}:{where[row]}"
    )


def write_table(
    rankings: Rankings, path: str | os.PathLike, title: str = "", citation: str = ""
) -> None:
    """Write the format of :func:`read_table`; reading it gives ``rankings.unique()`` again.

    :param rankings: any rankings; their items get the codes 1, 2, …, n.
    :param path: the file.
    :param title: what the data are.
    :param citation: where they come from.
    :raises RankingsError: if a name does not fit the format; nothing is written then.
    """
    check_writable_names(os.fspath(path), rankings.items)
    merged = rankings.unique()
    notes = {"title": title, "citation": citation}
    lines = [f"# {key}: {' '.join(note.split())}" for key, note in notes.items() if note]
    codes = [str(k) for k in range(1, merged.num_items + 1)]
    lines += [f"# item {code}: {item}" for code, item in zip(codes, merged.items, strict=True)]
    lines.append(_COLUMNS[merged.choice_sets is not None])
    orderings, lengths = np.asarray(merged.orderings), np.asarray(merged.lengths)
    offered = None if merged.choice_sets is None else np.asarray(merged.choice_sets)
    for row, count in enumerate(np.asarray(merged.counts).tolist()):
        listed = orderings[row, : lengths[row]].tolist()
        fields = [str(count), ">".join(codes[item] for item in listed)]
        if offered is not None:
            fields.append(" ".join(codes[item] for item in np.flatnonzero(offered[row])))
        lines.append(",".join(fields))
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def _add_item(code: str, item: str, codes: dict[str, int], names: dict[str, int]) -> None:
    if not item:
        raise RankingsError(f"the name of item {code!r} is empty")
    if code in codes:
        raise RankingsError(f"two items have the code {code!r}")
    if item in names:
        raise RankingsError(f"two items have the name {item!r}")
    codes[code] = names[item] = len(codes)


def _parse_columns(line: str, codes: dict[str, int]) -> int:
    columns = line.replace(" ", "")
    if columns not in _COLUMNS:
        raise RankingsError(
            f"expected the columns {_COLUMNS[0]!r}, got {line[:40]!r}; the format is that of "
            "numpyro_rankings.datasets.read_table"
        )
    if len(codes) < 2:
        raise RankingsError(
            "a ranking needs at least 2 items, each named on a line such as '# item A: Ann Able', "
            f"got {len(codes)}"
        )
    return columns.count(",") + 1


def _parse_count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) == 0:
        raise RankingsError(f"count {text[:40]!r} is not a positive whole number")
    return int(text)


def _parse_items(texts: Sequence[str], codes: dict[str, int]) -> list[int]:
    texts = [text.strip() for text in texts]
    if texts in ([], [""]):
        raise RankingsError("an empty ranking")
    for text in texts:
        if any(mark in text for mark in "={}"):
            raise RankingsError(f"ties are not supported, got {text[:40]!r}")
        if text not in codes:
            known = list(codes) if len(codes) <= 10 else [*list(codes)[:10], "…"]
            raise RankingsError(f"there is no item {text[:40]!r}; expected {', '.join(known)}")
    return [codes[text] for text in texts]


# -- simulators --------------------------------------------------------------------------------


class MallowsMixtureSample(NamedTuple):
    """Rankings of a simulated mixture, and the truth behind them.

    - **rankings** - one row for each of the N rankings, in the order of the assignments.
    - **assignments** - cluster of each ranking, int32 (N,), 0-based.
    - **centers** - an ordering per cluster, int32 (C, n).
    - **concentrations** - per cluster and stage, (C, T).
    """

    rankings: Rankings
    assignments: np.ndarray
    centers: np.ndarray
    concentrations: np.ndarray


def simulate_mallows(
    key: Array,
    num_rankings: int,
    center: Any,
    concentration: Any,
    lengths: Any = None,
    items: Sequence[str] | None = None,
) -> Rankings:
    r"""Rankings from one generalized Mallows model [2].

    The code of stage j, which is how far down the center the j-th item stood among those not
    listed before, is :math:`k = 0, 1, …, n-j` with probability proportional to
    :math:`e^{-k\theta_j}`, independently of the other stages.

    :param key: a JAX random key.
    :param num_rankings: N.
    :param center: the ordering of all n items, best first, that rankings concentrate on.
    :param concentration: :math:`\theta \ge 0`, a number or one per stage.
    :param lengths: how many items are listed, a number or one per ranking; by default one for
        each stage of ``concentration``, and all n if that is a number.
    :param items: names of the items.
    :return: the rankings, one row for each; ``unique()`` merges the identical ones.
    """
    centers = _check_centers(np.asarray(center)[None])
    num_items = centers.shape[1]
    theta = np.asarray(concentration, float)
    if theta.ndim > 1:
        raise RankingsError(f"concentration must have shape () or (T,), got {theta.shape}")
    if lengths is None:
        lengths = theta.shape[0] if theta.ndim else num_items
    lengths = _check_lengths(lengths, num_rankings, num_items)
    theta = _check_concentrations(theta, 1, int(lengths.max()), num_items)
    assignments = np.zeros(num_rankings, np.int32)
    return _simulate(key, assignments, centers, theta, lengths, items)


def simulate_mallows_mixture(
    key: Array,
    num_rankings: int,
    num_items: int,
    length: Any,
    num_clusters: int,
    concentration: Any,
    weights: Any = None,
    centers: Any = None,
    items: Sequence[str] | None = None,
) -> MallowsMixtureSample:
    """Rankings from a mixture of generalized Mallows models [2].

    :param key: a JAX random key.
    :param num_rankings: N.
    :param num_items: n.
    :param length: how many items are listed, a number or one per ranking.
    :param num_clusters: C.
    :param concentration: a number, one per stage (T,), or one per cluster and stage (C, T);
        draws of :class:`~numpyro_rankings.distributions.MallowsConcentrationPrior`, for example.
    :param weights: shares of the clusters, (C,); equal by default.
    :param centers: orderings of all items, (C, n); uniformly random by default.
    :param items: names of the items.
    :return: the rankings, their clusters, and the parameters of these.
    """
    key_centers, key_clusters, key_codes = jax.random.split(key, 3)
    if centers is None:
        keys = jax.random.split(key_centers, num_clusters)
        centers = jax.vmap(lambda k: jax.random.permutation(k, num_items))(keys)
    centers = _check_centers(np.asarray(centers))
    if centers.shape != (num_clusters, num_items):
        raise RankingsError(
            f"centers must have shape {(num_clusters, num_items)}, got {centers.shape}"
        )
    lengths = _check_lengths(length, num_rankings, num_items)
    theta = _check_concentrations(concentration, num_clusters, int(lengths.max()), num_items)
    assignments = _draw_clusters(key_clusters, num_rankings, num_clusters, weights, "weights")
    rankings = _simulate(key_codes, assignments, centers, theta, lengths, items)
    return MallowsMixtureSample(rankings, assignments, centers, theta)


class PlackettLuceMixtureSample(NamedTuple):
    """Rankings of a simulated mixture, and the truth behind them.

    - **rankings** - one row for each of the N rankings, in the order of the assignments.
    - **assignments** - cluster of each ranking, int32 (N,), 0-based.
    - **weights** - normalised, per cluster, (C, n).
    """

    rankings: Rankings
    assignments: np.ndarray
    weights: np.ndarray


def simulate_plackett_luce(
    key: Array,
    num_rankings: int,
    weights: Any,
    lengths: Any = None,
    choice_sets: Any = None,
    items: Sequence[str] | None = None,
) -> Rankings:
    """Rankings from one Plackett–Luce model: items arrive in a race, k after Exponential(w_k) [3].

    :param key: a JAX random key.
    :param num_rankings: N.
    :param weights: positive, (n,).
    :param lengths: how many items are listed, a number or one per ranking; all by default, and at
        most those that are offered.
    :param choice_sets: which items each judge is offered, booleans (N, n) or (n,); all by default.
    :param items: names of the items.
    :return: the rankings, one row for each; ``unique()`` merges the identical ones.
    """
    weights = _check_weights(np.asarray(weights, float)[None])
    num_items = weights.shape[1]
    if lengths is None:
        lengths = num_items
    checked = _check_lengths(lengths, num_rankings, num_items)
    if choice_sets is not None:
        offered = np.asarray(choice_sets)
        if offered.dtype != bool or offered.shape not in ((num_items,), (num_rankings, num_items)):
            raise RankingsError(
                f"choice_sets must be booleans of shape ({num_rankings}, {num_items}) or "
                f"({num_items},), got {offered.dtype} of shape {offered.shape}"
            )
        choice_sets = np.broadcast_to(offered, (num_rankings, num_items))
        if not choice_sets.any(1).all():
            raise RankingsError(f"row {np.argmin(choice_sets.any(1)) + 1} offers no item")
    return _race(key, weights[np.zeros(num_rankings, int)], checked, choice_sets, items)


def simulate_plackett_luce_mixture(
    key: Array,
    num_rankings: int,
    weights: Any,
    lengths: Any = None,
    shares: Any = None,
    items: Sequence[str] | None = None,
) -> PlackettLuceMixtureSample:
    """Rankings from a mixture of Plackett–Luce models.

    :param key: a JAX random key.
    :param num_rankings: N.
    :param weights: positive, of each cluster, (C, n).
    :param lengths: how many items are listed, a number or one per ranking; all by default.
    :param shares: of the clusters, (C,); equal by default.
    :param items: names of the items.
    :return: the rankings, their clusters, and the normalised weights.
    """
    key_clusters, key_race = jax.random.split(key)
    weights = _check_weights(np.asarray(weights, float))
    checked = _check_lengths(
        weights.shape[1] if lengths is None else lengths, num_rankings, weights.shape[1]
    )
    assignments = _draw_clusters(key_clusters, num_rankings, len(weights), shares, "shares")
    rankings = _race(key_race, weights[assignments], checked, None, items)
    return PlackettLuceMixtureSample(rankings, assignments, weights)


def _race(
    key: Array,
    weights: np.ndarray,
    lengths: np.ndarray,
    choice_sets: np.ndarray | None,
    items: Sequence[str] | None,
) -> Rankings:
    num_items = weights.shape[1]
    times = np.asarray(jax.random.exponential(key, weights.shape), float) / weights
    if choice_sets is not None:
        times = np.where(choice_sets, times, np.inf)
        lengths = np.minimum(lengths, choice_sets.sum(1))
    orderings = np.argsort(times, axis=1)[:, : lengths.max()].astype(np.int32)
    orderings[np.arange(lengths.max()) >= lengths[:, None]] = -1
    return Rankings.from_orderings(orderings, num_items, items, choice_sets=choice_sets)


class GammaProcessSample(NamedTuple):
    """Rankings of a simulated pool of items.

    - **rankings** - one row for each; the items are those that occur, as they did one by one.
    - **weights** - of these items, (K,), in units in which the pool has inverse scale τ.
    """

    rankings: Rankings
    weights: np.ndarray


def simulate_gamma_process(
    key: Array,
    num_rankings: int,
    length: int,
    alpha: float,
    tau: float = 1.0,
    sigma: float = 0.0,
) -> GammaProcessSample:
    r"""Rankings of items from an endless pool, whose weights are a (generalised) gamma process [3].

    Nothing is cut off: items join when they arrive in a race for the first time. While the pool
    has been raced for a time S, new items arrive at a rate :math:`α (τ + S)^{σ-1}`, each with a
    weight Gamma(1 - σ, τ + S), by Theorem 2' of [3].

    :param key: a JAX random key.
    :param num_rankings: N.
    :param length: m, items in each list.
    :param alpha: concentration α > 0.
    :param tau: inverse scale τ > 0.
    :param sigma: index, 0 <= σ < 1; 0 is the gamma process.
    :return: the rankings, and the weights of the items in them.
    """
    for name, number in (("alpha", alpha), ("tau", tau)):
        if not 0 < number < np.inf:
            raise RankingsError(f"{name} must be a positive number, got {number}")
    if not 0 <= sigma < 1:
        raise RankingsError(f"sigma must be at least 0 and less than 1, got {sigma}")
    if num_rankings < 1 or length < 1:
        raise RankingsError("num_rankings and length must be at least 1")
    rng = np.random.default_rng(np.asarray(jax.random.bits(key, (4,))))
    pool = Pool(np.zeros(0), alpha, np.log(tau), sigma)
    orderings = [pool.draw_list(rng, length) for _ in range(num_rankings)]
    weights = np.exp(pool.log_weights)
    if len(weights) < 2:
        # the same item in every list of one
        names: list[str] = ["item 1", "unseen item"]
        return GammaProcessSample(Rankings.from_orderings(orderings, items=names), weights)
    return GammaProcessSample(Rankings.from_orderings(orderings, len(weights)), weights)


class DPPlackettLuceSample(NamedTuple):
    """Rankings of a simulated mixture over an endless pool of items, and the truth behind them.

    - **rankings** - one row for each of the N rankings; the items are those that occur.
    - **assignments** - cluster of each ranking, int32 (N,), in order of first use.
    - **in_root** - whether an item is an atom of the root, (K,) bool. The others belong to one
      cluster only. :class:`~numpyro_rankings.infer.DPPlackettLuceGibbs` takes all for atoms.
    """

    rankings: Rankings
    assignments: np.ndarray
    in_root: np.ndarray


def simulate_dp_plackett_luce(
    key: Array,
    num_rankings: int,
    length: int,
    alpha: float,
    phi: float,
    gamma: float,
    tau: float = 1.0,
) -> DPPlackettLuceSample:
    r"""Rankings from the Dirichlet process mixture of Section 5 of [3], nothing cut off.

    Of the root only its total mass :math:`G_0(\mathbb X) \sim \mathrm{Gamma}(α, τ)` is drawn. A
    cluster has Poisson(:math:`φ G_0(\mathbb X)`) tokens, each on an atom of the root. As the
    normalised root is a Dirichlet process, the tokens of all clusters seat themselves as in a
    Chinese restaurant. An atom with u tokens weighs Gamma(u, τ + φ), and the items of the cluster's
    own are a gamma process with inverse scale τ + φ.

    :param key: a JAX random key.
    :param num_rankings: N.
    :param length: m, items in each list.
    :param alpha: concentration α > 0 of the root and of what is the clusters' own.
    :param phi: φ > 0, how much the clusters resemble the root.
    :param gamma: concentration γ > 0 of the Dirichlet process.
    :param tau: inverse scale τ > 0.
    """
    for name, number in (("alpha", alpha), ("phi", phi), ("gamma", gamma), ("tau", tau)):
        if not 0 < number < np.inf:
            raise RankingsError(f"{name} must be a positive number, got {number}")
    if num_rankings < 1 or length < 1:
        raise RankingsError("num_rankings and length must be at least 1")
    rng = np.random.default_rng(np.asarray(jax.random.bits(key, (4,))))
    labels, lists = draw_dp_lists(rng, num_rankings, length, alpha, phi, gamma, tau)
    items = {name: k for k, name in enumerate(dict.fromkeys(x for one in lists for x in one))}
    in_root = np.array([cluster < 0 for cluster, _ in items])
    orderings = [[items[name] for name in one] for one in lists]
    names_of_one = ["item 1", "unseen item"]  # the same item in every list of one
    rankings = (
        Rankings.from_orderings(orderings, items=names_of_one)
        if len(items) < 2
        else Rankings.from_orderings(orderings, len(items))
    )
    return DPPlackettLuceSample(rankings, np.array(labels, np.int32), in_root)


def draw_dp_lists(
    rng: np.random.Generator,
    num_rankings: int,
    length: int,
    alpha: float,
    phi: float,
    gamma: float,
    tau: float,
) -> tuple[list[int], list[list[tuple[int, int]]]]:
    """Labels, and lists of items: (-1, k) are atoms of the root, (j, k) of cluster j only."""
    root_total = rng.gamma(alpha) / tau
    tokens: list[int] = []  # on each atom of the root that has some
    clusters: list[tuple[Pool, list[tuple[int, int]]]] = []
    sizes: list[int] = []
    labels, lists = [], []
    for i in range(num_rankings):
        label = int(np.searchsorted(np.cumsum(sizes), rng.uniform() * (i + gamma), side="right"))
        if label == len(sizes):
            counts = seat_tokens(rng, tokens, rng.poisson(phi * root_total), alpha)
            atoms = np.flatnonzero(counts)
            log_weights = np.log(rng.gamma(counts[atoms])) - np.log(tau + phi)
            names = [(-1, int(k)) for k in atoms]
            clusters.append((Pool(log_weights, alpha, np.log(tau + phi), 0.0), names))
            sizes.append(0)
        sizes[label] += 1
        pool, names = clusters[label]
        ordering = pool.draw_list(rng, length)
        names += [(label, k) for k in range(len(names), len(pool.log_weights))]
        labels.append(label)
        lists.append([names[k] for k in ordering])
    return labels, lists


def seat_tokens(
    rng: np.random.Generator, tables: list[int], number: int, alpha: float
) -> np.ndarray:
    """Seat so many more tokens as in a Chinese restaurant; ``tables`` counts all that sit there.

    :return: how many of the new ones sit at each table.
    """
    table_of = np.repeat(np.arange(len(tables)), tables).tolist()
    there = np.arange(len(table_of), len(table_of) + number)
    # each sits down beside a token that is there, or with weight α at a new table
    beside = np.floor(rng.uniform(size=number) * (there + alpha)).astype(int).tolist()
    for one in beside:
        if one >= len(table_of):
            table_of.append(len(tables))
            tables.append(0)
        else:
            table_of.append(table_of[one])
        tables[table_of[-1]] += 1
    return np.bincount(table_of[len(table_of) - number :], minlength=len(tables))


class Pool:
    """Items that are known by their weights, and an endless pool of others.

    The others are the atoms of a (generalised) gamma process with inverse scale e^``log_rate``,
    which grows by the time that it is raced for.

    :param log_weights: of the known items, (K,).
    """

    def __init__(
        self, log_weights: np.ndarray, alpha: float, log_rate: float, sigma: float
    ) -> None:
        self.log_weights = np.asarray(log_weights, float)
        self.alpha, self.log_rate, self.sigma = float(alpha), float(log_rate), float(sigma)

    def draw_list(self, rng: np.random.Generator, length: int) -> list[int]:
        """The first ``length`` items to arrive; new ones get the next indices.

        Times are in logarithms, for the weights of a small α span hundreds of orders.
        """
        log_times = np.log(rng.exponential(size=len(self.log_weights))) - self.log_weights
        first = np.sort(log_times)[:length]
        new_times: list[float] = []
        start = self.log_rate
        while True:
            arrived = self._log_rate_at_next(rng)
            # how long the pool has been raced for in this list
            log_time = arrived + np.log(-np.expm1(start - arrived))
            if len(first) == length and log_time >= first[-1]:
                break
            self.log_rate = arrived
            log_weight = np.log(rng.gamma(2.0 - self.sigma)) + np.log(rng.uniform()) / (
                1.0 - self.sigma
            )
            self.log_weights = np.append(self.log_weights, log_weight - arrived)
            new_times.append(log_time)
            first = np.sort(np.append(first, log_time))[:length]
        self.log_rate = np.logaddexp(start, first[-1])
        return np.argsort(np.concatenate([log_times, new_times]), kind="stable")[:length].tolist()

    def _log_rate_at_next(self, rng: np.random.Generator) -> float:
        """log of τ + S when the next item of the pool arrives."""
        waited = rng.exponential() / self.alpha
        if self.sigma == 0:
            return self.log_rate + waited
        # ((τ + S)^σ + σ E/α)^(1/σ)
        return np.logaddexp(self.sigma * self.log_rate, np.log(self.sigma * waited)) / self.sigma


def _check_weights(weights: np.ndarray) -> np.ndarray:
    if weights.ndim != 2 or not ((weights > 0) & (weights < np.inf)).all():
        raise RankingsError(f"weights must be positive numbers, got an array {weights.shape[1:]}")
    return weights / weights.sum(1, keepdims=True)


def _draw_clusters(
    key: Array, num_rankings: int, num_clusters: int, shares: Any, name: str
) -> np.ndarray:
    """Cluster of each ranking, by inversion, which makes no (N, C) table."""
    shares = np.full(num_clusters, 1.0) if shares is None else np.asarray(shares, float)
    if shares.shape != (num_clusters,) or not (shares >= 0).all() or not 0 < shares.sum() < np.inf:
        raise RankingsError(f"{name} must be {num_clusters} numbers, at least 0 and not all 0")
    bounds = np.cumsum(shares / shares.sum())[:-1]
    uniform = np.asarray(jax.random.uniform(key, (num_rankings,)))
    return np.searchsorted(bounds, uniform, side="right").astype(np.int32)


def _simulate(
    key: Array,
    assignments: np.ndarray,
    centers: np.ndarray,
    theta: np.ndarray,
    lengths: np.ndarray,
    items: Sequence[str] | None,
) -> Rankings:
    num_items, stages = centers.shape[1], theta.shape[1]
    codes = _draw_codes(key, theta[assignments], max_codes(num_items, stages))
    # Codes to places, from the last stage back: a place counts in the items listed before it.
    # This is ordering_from_codes without its table of all n items for each ranking.
    places = np.array(codes)
    for stage in reversed(range(stages - 1)):
        later = places[:, stage + 1 :]
        later += later >= places[:, stage, None]
    orderings = centers[assignments[:, None], places]
    orderings[np.arange(stages) >= lengths[:, None]] = -1
    return Rankings.from_orderings(orderings, num_items, items)


def _check_centers(centers: np.ndarray) -> np.ndarray:
    if centers.ndim != 2 or not (np.sort(centers) == np.arange(centers.shape[1])).all():
        raise RankingsError("a center must be an ordering of all items 0..n-1, each once")
    return centers.astype(np.int32)


def _check_lengths(lengths: Any, num_rankings: int, num_items: int) -> np.ndarray:
    if num_rankings < 1:
        raise RankingsError(f"num_rankings must be at least 1, got {num_rankings}")
    array = np.asarray(lengths)
    if array.dtype.kind not in "iu" or array.shape not in ((), (num_rankings,)):
        raise RankingsError(f"lengths must be a whole number, or one for each of {num_rankings}")
    if array.min() < 1 or array.max() > num_items:
        raise RankingsError(
            f"lengths must be from 1 to {num_items}, got {array.min()} to {array.max()}"
        )
    return np.broadcast_to(array, (num_rankings,))


def _check_concentrations(
    concentration: Any, num_clusters: int, stages: int, num_items: int
) -> np.ndarray:
    """Concentrations (C, stages), from a number, (T,) or (C, T) with T at least as large."""
    theta = np.asarray(concentration, float)
    if theta.ndim > 2 or (theta.ndim == 2 and theta.shape[0] != num_clusters):
        raise RankingsError(
            f"concentration must have shape (), (T,) or ({num_clusters}, T), got {theta.shape}"
        )
    if not (theta >= 0).all() or not np.isfinite(theta).all():
        raise RankingsError("concentrations must be finite numbers, at least 0")
    if theta.ndim == 0:
        return np.full((num_clusters, stages), float(theta))
    if theta.shape[-1] == num_items - 1:
        # the last of all items is forced, whatever its concentration
        theta = np.concatenate([theta, theta[..., -1:]], axis=-1)
    if theta.shape[-1] < stages:
        raise RankingsError(
            f"there are {theta.shape[-1]} stages of concentration for lists of {stages} items"
        )
    return np.broadcast_to(theta[..., :stages], (num_clusters, stages)).copy()
