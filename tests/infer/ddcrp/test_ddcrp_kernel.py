"""The link sampler: the posterior of all links by enumeration."""

import itertools
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from helpers.chains import sampled
from helpers.densities import log_density_at
from helpers.enumeration import discrepancies, partitions
from helpers.exact_partitions import components, grid, log_marginals, log_restaurant
from helpers.kernel_tests import assert_log_joint_is_the_density, each_of
from helpers.link_kernels import (
    ASYMMETRIC,
    COUNTS,
    GAMMA,
    GAUSS,
    GENERAL,
    KERNELS,
    LINE,
    LOG_NORMAL,
    SEQUENTIAL,
    SPARSE,
    SPARSE_ASYMMETRIC,
    TEXT,
    dense,
)
from helpers.refusals import assert_refused
from jax import random
from numpyro.infer import MCMC, NUTS, Gibbs

import numpyro_rankings.distributions as rd
from numpyro_rankings.components import Atom, GaussianMean
from numpyro_rankings.distributions import links_to_partition
from numpyro_rankings.infer import DDCRPGibbs, exponential_decay, identity_decay, window_decay
from numpyro_rankings.infer.ddcrp.reach import LinkPrior, as_link_weights, links_go_back, log_links
from numpyro_rankings.infer.ddcrp.scales import (
    log_terms_of_scale,
    start_scale,
    update_links_given_partition,
)
from numpyro_rankings.links.distances import SparseDistances, as_neighbors

each_kernel = each_of(KERNELS, quick=("window",))
EVERY = np.array(list(itertools.product(range(4), repeat=4)))


@lru_cache
def fitted(name):
    kernel, data, distances = KERNELS[name]
    settings = {"num_warmup": 50, "num_samples": 300, "num_chains": 100}
    return sampled(kernel(), data, distances, key=random.key(1), **settings)


BACKWARD = SparseDistances(  # to earlier points, in the order of the points
    np.array([[-1, -1], [0, -1], [1, 0], [2, 0]]),
    np.array([[0, 0], [0.4, 0], [0.9, 1.3], [0.8, 2.1]]),
)
TURNED = np.where(np.isin(np.arange(4), [0, 2])[:, None], np.inf, GENERAL)  # to 0 and 2 only
TURNED[:, [1, 3]] = np.inf


KEYS = random.split(random.key(0), 4000)
links_go_back_compiled = jax.jit(links_go_back)
labels_of = jax.jit(jax.vmap(links_to_partition))
log_links_of = jax.jit(jax.vmap(lambda links, prior: log_links(links, prior).sum(), (0, None)))


@jax.jit
def terms_and_draws(links, labels, prior):
    """Of a partition: the log likelihood of the scale, and 4,000 draws of the links."""

    def draw(key):
        return update_links_given_partition(key, True, links, labels, prior.weights)

    return log_terms_of_scale(True, links, labels, prior).sum(), jax.vmap(draw)(KEYS)


@pytest.mark.parametrize("distances", [SEQUENTIAL, SEQUENTIAL[::-1, ::-1], BACKWARD, TURNED])
@pytest.mark.parametrize("decay, scale", [(window_decay, 1.4), (exponential_decay, 0.7)])
def test_links_summed_over_given_the_partition(distances, decay, scale):
    """The sum over all links that make a partition is a product; they are drawn in proportion."""
    neighbors, values = as_neighbors(distances)
    assert links_go_back_compiled(neighbors, values)
    # arrays of one type, so that both decays use one program
    reach = jax.tree.map(np.asarray, as_link_weights(neighbors, decay(scale).log(values)))
    hyper = LinkPrior(np.float32(0.6), np.float32(scale), reach)
    log_probs = np.array(log_links_of(EVERY, hyper))
    labels = np.array(labels_of(EVERY))
    code = labels @ 4 ** np.arange(4)
    for chosen in np.unique(code):
        mine = code == chosen
        total = np.logaddexp.reduce(log_probs[mine])
        example, given = EVERY[mine][np.argmax(log_probs[mine])], labels[mine][0]
        found, draws = terms_and_draws(example, given, hyper)
        if total == -np.inf:
            assert found == -np.inf
            continue
        assert float(found) == pytest.approx(total, abs=1e-5)
        places = np.asarray(draws) @ 4 ** np.arange(3, -1, -1)
        counts = np.bincount(places, minlength=256)[mine]
        assert counts.sum() == 4000
        expected = 4000 * np.exp(log_probs[mine] - total)
        error = np.sqrt(expected + 1.0)
        assert np.all(np.abs(counts - expected) < 6 * error)


def test_links_that_may_come_back():
    for distances in (
        GENERAL,
        SPARSE,
        ASYMMETRIC,
        SPARSE_ASYMMETRIC,
        np.array([[0, 1, np.inf], [np.inf, 0, 1], [1, np.inf, 0]]),
    ):
        assert not links_go_back_compiled(*as_neighbors(distances))

    @jax.jit
    def both(links):
        alone = LinkPrior(jnp.asarray(1.0), None, as_link_weights(None, jnp.zeros((4, 4))))
        given_links = log_terms_of_scale(jnp.array(False), links, jnp.zeros(4, int), alone)
        return given_links, log_links(links, alone)

    np.testing.assert_allclose(*both(np.array([0, 0, 1, 1])))


def test_chains_start_where_points_can_link():
    """A window that reaches nobody makes all links to oneself, which keep it so."""
    times = np.arange(40.0)
    distances = np.where(times[:, None] > times, times[:, None] - times, np.inf)
    keys = random.split(random.key(0), 200)

    def reach_of(scale):
        return as_link_weights(None, window_decay(1.0).log(distances, scale))

    def starts_of(prior):
        draw = jax.jit(jax.vmap(lambda key: start_scale(key, prior, reach_of)))
        return np.asarray(draw(keys))

    starts = starts_of(dist.LogNormal(0.0, 2.0))  # of which half is below 1
    assert starts.min() > 1.0 and len(np.unique(starts)) > 150
    never = starts_of(dist.Uniform(0.1, 0.2))
    assert np.all((never > 0.1) & (never < 0.2))


@lru_cache
def posterior(name):
    """P(links), E α and E log scale: sums over all links and grids of the two."""
    kernel, data, distances = KERNELS[name]
    kernel, distances = kernel(), dense(distances)
    number = kernel.family.size(data)
    scores = {(): 0.0, **log_marginals(kernel.family, data)}
    log_likelihood = np.array(
        [
            sum(
                scores[tuple(i for i in np.flatnonzero(np.equal(labels, c)) if i < number)]
                for c in range(max(labels) + 1)
            )
            for labels in (components(links) for links in EVERY)
        ]
    )
    (alphas, log_alpha), (scales, log_scale) = grid(kernel._alpha), grid(kernel._decay.scale)
    joint = np.zeros((len(alphas), len(scales), len(EVERY)))
    for s, scale in enumerate(scales):
        decay = np.asarray(kernel._decay(distances, scale), float)
        np.fill_diagonal(decay, 0.0)
        with np.errstate(divide="ignore"):
            weights = np.log(decay)
        totals = decay.sum(1)
        chosen = weights[np.arange(4), EVERY]
        itself = EVERY == np.arange(4)
        log_links = np.where(itself, 0.0, chosen).sum(1) + log_likelihood + log_scale[s]
        log_prior = log_alpha - np.log(alphas[:, None] + totals).sum(1)
        joint[:, s] = log_prior[:, None] + np.log(alphas)[:, None] * itself.sum(1) + log_links
    probs = np.exp(joint - np.logaddexp.reduce(joint, axis=None))
    return {
        "links": probs.sum((0, 1)),
        "alpha": np.array([probs.sum((1, 2)) @ alphas]),
        "log_scale": np.array([probs.sum((0, 2)) @ np.log(scales)]),
    }


@each_kernel
def test_posterior_by_enumeration(name):
    samples = fitted(name).get_samples(group_by_chain=True)
    code = np.asarray(samples["links"]) @ (4 ** np.arange(4))
    scale = samples.get("decay_scale", np.full(code.shape, posterior_scale(name)))
    found = {
        "links": code[..., None] == EVERY @ (4 ** np.arange(4)),
        "alpha": np.asarray(samples["alpha"])[..., None],
        "log_scale": np.log(np.asarray(scale))[..., None],
    }
    gaps = discrepancies(found, posterior(name))
    # some 100 quantities with 99 degrees of freedom: P(any |t| > 6) is about 4e-6
    assert max(gaps.values()) < 6.0, gaps


def posterior_scale(name):
    scale = KERNELS[name][0]()._decay.scale
    return 1.0 if scale is None or isinstance(scale, dist.Distribution) else scale


@each_kernel
def test_log_joint_is_the_density_of_the_model(name):
    mcmc, (_, data, distances) = fitted(name), KERNELS[name]
    assert_log_joint_is_the_density(mcmc, data, distances)
    samples = mcmc.get_samples()
    labels = np.asarray(samples["assignments"], int)
    np.testing.assert_array_equal(labels[::300], [components(x) for x in samples["links"][::300]])
    np.testing.assert_array_equal(samples["num_clusters"], labels.max(1) + 1)


@pytest.mark.slow
def test_the_traditional_process_is_a_special_case():
    """The links of the identity decay, sequential, have the posterior of the restaurant."""
    samples = fitted("identity-sequential").get_samples(group_by_chain=True)
    table, scores = list(partitions(4)), log_marginals(TEXT, COUNTS)
    logs = []
    for labels in table:
        blocks = [tuple(np.flatnonzero(np.equal(labels, c))) for c in range(max(labels) + 1)]
        logs.append(log_restaurant([len(b) for b in blocks], 0.9, 0.0))
        logs[-1] += sum(scores[b] for b in blocks)
    expected = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    code = np.asarray(samples["assignments"], int) @ (4 ** np.arange(4))
    found = code[..., None] == np.array(table) @ (4 ** np.arange(4))
    gaps = discrepancies({"partition": found}, {"partition": expected})
    assert gaps["partition"] < 6.0


@pytest.mark.slow
def test_links_of_many_points():
    """200 points, links drawn in turn: components, statistics and lists of children agree."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(200, 2)) + 3.0 * rng.integers(3, size=(200, 1))
    places = rng.uniform(size=(200, 2))
    distances = np.linalg.norm(places[:, None] - places, axis=-1)
    nearest = np.argsort(distances + np.eye(200) * 9, axis=1)[:, :6]
    sparse = SparseDistances(nearest, np.take_along_axis(distances, nearest, axis=1))
    full = np.full((200, 200), np.inf)
    np.put_along_axis(full, nearest, sparse.distances, axis=1)
    kernel = DDCRPGibbs(GaussianMean(3.0, 1.0), 0.1, exponential_decay(0.2))
    draws = []
    for given in (sparse, full):
        mcmc = MCMC(kernel, num_warmup=0, num_samples=8, progress_bar=False)
        mcmc.run(random.key(3), data, given)
        draws.append(mcmc.get_samples())
        for k in range(8):
            z = {name: value[k] for name, value in draws[-1].items()}
            assert components(z["links"]) == tuple(np.asarray(z["assignments"], int))
            expected = log_density_at(kernel.model, data, given)(z)
            assert float(z["log_joint"]) == pytest.approx(float(expected), rel=1e-4)
    assert draws[0]["num_clusters"][-1] < 60


@pytest.mark.parametrize(
    ("distances", "expected"),
    [(SEQUENTIAL, [0, 0, 1, 2]), (GENERAL, [0, 0, 1, 2]), (SPARSE, [0, 0, 0, 2])],
)
def test_start_as_one_cluster(distances, expected):
    """Each by its nearest point before it, among those in reach."""
    kernel = DDCRPGibbs(GAUSS, 1.0, exponential_decay(0.8), init="one")
    state = kernel.init(random.key(0), 0, None, (LINE, distances), {})
    assert state.z["links"].tolist() == expected


@pytest.mark.slow
def test_block_of_gibbs():
    """α and the scale of the decay by NUTS: the posterior of the kernel by itself."""

    def model(data, distances):
        alpha = numpyro.sample("mass", GAMMA)
        scale = numpyro.sample("range", LOG_NORMAL)
        prior = rd.DistanceDependentCRP(alpha, exponential_decay(1.0)(distances, scale))
        links = numpyro.sample("c", prior)
        points = GAUSS.statistics(data)
        clusters = GAUSS.of_clusters(points, rd.links_to_partition(links), len(data))
        numpyro.factor("likelihood", GAUSS.log_marginal(clusters).sum())

    block = DDCRPGibbs(GAUSS, model=model, sites={"links": "c"})
    mcmc = MCMC(
        Gibbs([(block, ["c"]), (NUTS(model), None)]),
        num_warmup=100,
        num_samples=250,
        num_chains=60,
        chain_method=jax.vmap,
        progress_bar=False,
    )
    mcmc.run(random.key(3), LINE, GENERAL)
    samples = mcmc.get_samples(group_by_chain=True)
    code = np.asarray(samples["c"]) @ (4 ** np.arange(4))
    found = {
        "links": code[..., None] == EVERY @ (4 ** np.arange(4)),
        "alpha": np.asarray(samples["mass"])[..., None],
        "log_scale": np.log(np.asarray(samples["range"]))[..., None],
    }
    gaps = discrepancies(found, posterior("scale"))
    assert max(gaps.values()) < 6.0, gaps


BAD = {
    "family": (lambda: DDCRPGibbs("text", 1.0, identity_decay()), "must be a component family"),
    "decay": (lambda: DDCRPGibbs(GAUSS, 1.0), "decay must be a decay"),
    "decay function": (lambda: DDCRPGibbs(GAUSS, 1.0, np.exp), "decay must be a decay"),
    "alpha": (lambda: DDCRPGibbs(GAUSS, -1.0, identity_decay()), "alpha must be a positive"),
    "scale": (
        lambda: DDCRPGibbs(GAUSS, 1.0, window_decay(dist.Normal(0.0, 1.0))),
        "the scale of the decay must give no mass to negative",
    ),
    "start": (lambda: DDCRPGibbs(GAUSS, 1.0, identity_decay(), init="far"), "init is one of"),
    "sites": (
        lambda: DDCRPGibbs(GAUSS, 1.0, identity_decay(), sites={"labels": "c"}),
        "sites can name",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings(case):
    construct, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        construct()


def test_bad_data():
    kernel = DDCRPGibbs(GAUSS, 1.0, exponential_decay(1.0))

    def run(*args, given=None):
        return kernel.init(random.key(0), 0, given, args, {})

    assert_refused(
        run,
        (r"mcmc\.run\(key, data, distances\)", LINE),
        (r"mcmc\.run\(key, data, distances\)", LINE, None),
        ("and nothing else", LINE, GENERAL, 3),
        (r"not a DataFrame: pass frame.to_numpy\(\) of points", LINE, pd.DataFrame(GENERAL)),
        error=TypeError,
    )
    twice = np.array([[1, 2], [0, -1], [3, 0], [2, 2]])
    unknown = np.array([[1, 2], [0, -1], [4, 0], [2, -1]])
    nobody = SparseDistances(np.zeros((4, 0), int), np.zeros((4, 0)))
    assert_refused(
        partial(run, LINE),
        ("there are 4 points", GENERAL[:3]),
        (r"got shape \(4, 3\)", GENERAL[:, :3]),
        ("row 1 has a distance that is negative", np.where(np.eye(4)[1][:, None], -1.0, GENERAL)),
        ("row 0 has a distance", np.full((4, 4), np.nan)),
        ("row 2 has a neighbor that is not", SPARSE._replace(neighbors=unknown)),
        ("row 3 has a neighbor twice", SPARSE._replace(neighbors=twice)),
        ("must have the shape of the distances", SPARSE._replace(neighbors=np.zeros((4, 3), int))),
        (r"array \(4, L\), got shape \(4, 0\)", nobody),
    )
    assert_refused(
        lambda given: run(LINE, GENERAL, given=given),
        ("a point for each of the 4", {"links": jnp.array([0, 1, 2, 4])}),
        (r"shape \(4,\), got \(2, 4\)", {"links": jnp.zeros((2, 4), int)}),
        ("a label for each of the 4", {"assignments": jnp.zeros(3, int)}),
        ("a dictionary by site, got list", [1, 2]),
    )
    mixed = DDCRPGibbs(Atom([0.5, 0.5]), 1.0, exponential_decay(1.0), init="one")
    with pytest.raises(ValueError, match="start has probability 0"):
        mixed.init(random.key(0), 0, None, (np.array([0, 1, 0, 1]), GENERAL), {})
    with pytest.raises(ValueError, match="must be a scalar distribution"):
        DDCRPGibbs(GAUSS, 1.0, exponential_decay(dist.Gamma(1.0, np.ones(3))))
    state = run(LINE, GENERAL, given={"links": jnp.array([0, 0, 1, 3])})
    assert state.z["assignments"].tolist() == [0, 0, 0, 1]
    assert kernel.get_diagnostics_str(state).startswith("2 clusters, log joint -")
    state = run(LINE, GENERAL, given={"assignments": jnp.array([3, 1, 3, 1])})
    assert state.z["assignments"].tolist() == [0, 1, 0, 1]
    with pytest.warns(UserWarning, match="the values of the last 1 are taken as not known"):
        jax.eval_shape(
            lambda key: kernel.init(key, 0, None, (LINE[:3], GENERAL), {}), random.key(0)
        )
