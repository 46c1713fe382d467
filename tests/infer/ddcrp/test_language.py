"""The fully observed model of symbols, its evidence, and Bayes factors: all links enumerated."""

import itertools
import pickle
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from helpers.chains import sampled
from helpers.densities import log_density_at
from helpers.enumeration import discrepancies
from helpers.exact_partitions import components, grid, log_marginals
from helpers.kernel_tests import (
    assert_chain_methods_agree,
    assert_log_joint_is_the_density,
    assert_resumed_run_is_the_long_one,
    each_of,
)
from helpers.link_kernels import GAMMA, LOG_NORMAL, dense
from helpers.refusals import assert_refused
from helpers.symbol_kernels import DIRICHLET, KERNELS, LAG, NEAR, ONE, PROBS, THREE, TWO, WORDS
from jax import random
from numpyro.infer import MCMC, NUTS, Gibbs
from scipy.special import gammaln

import numpyro_rankings.distributions as rd
from numpyro_rankings import log_bayes_factor, log_language_evidence, to_inference_data
from numpyro_rankings.components import Atom, GaussianMean
from numpyro_rankings.infer import (
    DDCRPGibbs,
    DDCRPLanguageGibbs,
    exponential_decay,
    identity_decay,
    logistic_decay,
    window_decay,
)
from numpyro_rankings.links.distances import SparseDistances

each_kernel = each_of(KERNELS, quick=("dirichlet",))
# nobody links forward
EVERY = np.array(list(itertools.product(*(range(i + 1) for i in range(5)))))
CODES = EVERY @ (5 ** np.arange(5))


def sample(kernel, *data, chains=100, draws=300, seed=1):
    settings = {"num_warmup": 50, "num_samples": draws, "num_chains": chains}
    return sampled(kernel, *data, key=random.key(seed), **settings)


@lru_cache
def fitted(name):
    kernel, symbols, distances = KERNELS[name]
    return sample(kernel(), symbols, distances)


def log_likelihoods(symbols, base):
    """log p(symbols | links) for all links, G_0 integrated out where it has a prior."""
    tables = []
    for links in EVERY:
        labels = np.array(components(links))
        found = [set(symbols[labels == c]) for c in range(labels.max() + 1)]
        tables.append([min(s) for s in found] if all(len(s) == 1 for s in found) else None)
    if not isinstance(base, dist.Distribution):
        with np.errstate(divide="ignore"):
            logs = np.log(np.asarray(base))
        return np.array([-np.inf if t is None else logs[t].sum() for t in tables]), None
    a = np.asarray(base.concentration, float)
    counts = np.array([np.bincount(t or [], minlength=len(a)) for t in tables])
    rising = (gammaln(a + counts) - gammaln(a)).sum(1)
    rising -= gammaln(a.sum() + counts.sum(1)) - gammaln(a.sum())
    means = (a + counts) / (a.sum() + counts.sum(1, keepdims=True))
    return np.where([t is None for t in tables], -np.inf, rising), means


def log_priors(alpha, decay):
    """log p(links) for all links and each α of an array, a row for each; f of shape (5, 5)."""
    decay = np.tril(np.asarray(decay, float), -1)
    itself = EVERY == np.arange(5)
    with np.errstate(divide="ignore"):
        chosen = np.log(decay[np.arange(5), EVERY])
    log_weights = np.where(itself, 0.0, chosen).sum(1)
    log_weights = log_weights + np.log(alpha)[:, None] * itself.sum(1)
    return log_weights - np.log(alpha[:, None] + decay.sum(1)).sum(1)[:, None]


@lru_cache
def posterior(name):
    """P(links), E α, E log scale, E G_0: sums over all links and grids of the two."""
    kernel, symbols, distances = KERNELS[name]
    kernel, distances = kernel(), dense(distances)
    log_likelihood, means = log_likelihoods(symbols, kernel._base)
    (alphas, log_alpha), (scales, log_scale) = grid(kernel._alpha, 100), grid(kernel._decay.scale)
    decays = np.asarray(kernel._decay(distances, scales[:, None, None]), float)
    joint = np.stack(
        [
            log_priors(alphas, decay) + log_likelihood + log_weight
            for decay, log_weight in zip(
                np.broadcast_to(decays, (len(scales), 5, 5)), log_scale, strict=True
            )
        ],
        axis=1,
    )
    joint = joint + log_alpha[:, None, None]
    probs = np.exp(joint - np.logaddexp.reduce(joint, axis=None))
    found = {
        "links": probs.sum((0, 1)),
        "alpha": np.array([probs.sum((1, 2)) @ alphas]),
        "log_scale": np.array([probs.sum((0, 2)) @ np.log(scales)]),
    }
    return found if means is None else found | {"base": found["links"] @ means}


def quantities(samples, name):
    """The same of each draw."""
    scale = KERNELS[name][0]()._decay.scale
    scale = 1.0 if scale is None or isinstance(scale, dist.Distribution) else scale
    code = np.asarray(samples["links"]) @ (5 ** np.arange(5))
    found = {
        "links": code[..., None] == CODES,
        "alpha": np.asarray(samples["alpha"])[..., None],
        "log_scale": np.log(np.asarray(samples.get("decay_scale", np.full(code.shape, scale))))[
            ..., None
        ],
    }
    return found if "base" not in samples else found | {"base": np.asarray(samples["base"])}


@each_kernel
def test_posterior_by_enumeration(name):
    found = quantities(fitted(name).get_samples(group_by_chain=True), name)
    gaps = discrepancies(found, posterior(name))
    assert set(gaps) == set(found)
    # some 50 quantities with 99 degrees of freedom: P(any |t| > 6) is about 2e-6
    assert max(gaps.values()) < 6.0, gaps


@each_kernel
def test_log_joint_is_the_density_of_the_model(name):
    mcmc, (_, symbols, distances) = fitted(name), KERNELS[name]
    assert_log_joint_is_the_density(mcmc, symbols, distances)
    samples = mcmc.get_samples()
    labels = np.asarray(samples["assignments"], int)
    np.testing.assert_array_equal(labels[::300], [components(x) for x in samples["links"][::300]])
    np.testing.assert_array_equal(samples["num_clusters"], labels.max(1) + 1)


def test_density_of_the_model():
    """For all links, also those that no posterior draw has, and cycles."""
    distances = np.abs(LAG)
    kernel = DDCRPLanguageGibbs(PROBS, 0.7, exponential_decay(0.8))
    every = np.random.default_rng(0).integers(5, size=(300, 5))
    scores = log_marginals(Atom(PROBS), WORDS)

    @jax.jit
    @jax.vmap
    def log_joint(links):
        return log_density_at(kernel.model, WORDS, distances)({"links": links})

    prior = rd.DistanceDependentCRP(0.7, exponential_decay(0.8)(distances))
    for links, found in zip(every, np.asarray(log_joint(every)), strict=True):
        labels = np.array(components(links))
        blocks = [tuple(np.flatnonzero(labels == c)) for c in range(labels.max() + 1)]
        expected = float(prior.log_prob(links)) + sum(scores[b] for b in blocks)
        assert found == pytest.approx(expected, abs=1e-4)


def test_draws_are_independent():
    """With α, scale and G_0 known: the first draw is from the posterior, wherever it starts."""
    kernel = DDCRPLanguageGibbs(PROBS, 0.7, exponential_decay(0.8))
    keys = random.split(random.key(4), 20_000)
    links = jnp.array([0, 1, 0, 0, 1])
    state = kernel.init(keys[0], 0, {"links": links}, (WORDS, ONE), {})
    np.testing.assert_array_equal(state.z["links"], links)
    draw = jax.vmap(lambda key: kernel.sample(state._replace(rng_key=key), (WORDS, ONE), {}).z)
    found = np.asarray(jax.jit(draw)(keys)["links"]) @ (5 ** np.arange(5))
    logs = log_priors(np.array([0.7]), exponential_decay(0.8)(ONE))[0]
    logs = logs + log_likelihoods(WORDS, PROBS)[0]
    probs = np.exp(logs - np.logaddexp.reduce(logs))
    share = (found[:, None] == CODES).mean(0)
    error = np.sqrt(probs * (1 - probs) / 20_000)
    # 36 links are possible: P(any |z| > 5.5) is about 1e-6, and counts are no normal draws
    assert np.all(np.abs(share - probs) < 5.5 * error + 1e-4)


# -- chains, resume, starts -----------------------------------------------------------------------


@pytest.mark.slow
def test_chain_methods_resume_and_pickling():
    data = WORDS, NEAR

    def kernel():
        return DDCRPLanguageGibbs(DIRICHLET, GAMMA, exponential_decay(LOG_NORMAL))

    methods = ("sequential", "vectorized", jax.vmap)
    sizes = {"num_warmup": 3, "num_samples": 6}
    assert_chain_methods_agree(kernel, *data, methods=methods, num_same=12, **sizes)
    sizes = {"num_warmup": 4, "num_samples": 4}
    mcmc = MCMC(kernel(), progress_bar=False, **sizes)
    mcmc.run(random.key(6), *data)
    again = pickle.loads(pickle.dumps(mcmc))
    np.testing.assert_array_equal(again.get_samples()["base"], mcmc.get_samples()["base"])
    assert_resumed_run_is_the_long_one(again, kernel, *data, **sizes)


def test_symbols_are_a_dimension():
    """For ArviZ, which reads the names of dimensions from the model."""
    kernel, *data = KERNELS["dirichlet"]
    model, sites = kernel().model, {}

    def run(key):
        sites.update(numpyro.handlers.trace(numpyro.handlers.seed(model, key)).get_trace(*data))
        return key

    jax.eval_shape(run, random.key(0))
    assert sites["base"]["infer"]["event_dims"] == ["symbol"]


@pytest.mark.slow  # quick: of links, in test_inference_data.py; by ArviZ, in infer/test_kernels.py
def test_to_arviz():
    import arviz as az

    posterior = to_inference_data(fitted("dirichlet"))["posterior"]
    assert posterior["partition_entropy"].shape == (100, 300)
    idata = az.from_numpyro(fitted("dirichlet"), log_likelihood=False)
    assert idata.posterior["links"].shape == (100, 300, 5)
    assert idata.posterior["base"].dims[2:] == ("symbol",)
    np.testing.assert_allclose(idata.sample_stats["lp"], idata.posterior["log_joint"], rtol=1e-6)


def test_starts():
    def start(init="singletons", given=None):
        kernel = DDCRPLanguageGibbs(DIRICHLET, LOG_NORMAL, exponential_decay(0.8), init=init)
        return kernel.init(random.key(7), 0, given, (WORDS, ONE), {}), kernel

    state, kernel = start("prior")  # by default, as singletons: in fitted()
    links = np.asarray(state.z["links"])
    assert np.all(WORDS[links] == WORDS) and np.all(links <= np.arange(5))
    assert np.asarray(state.z["base"]).sum() == pytest.approx(1.0, abs=1e-6)
    assert np.isfinite(state.potential_energy)
    assert " clusters, log joint -" in kernel.get_diagnostics_str(state)
    given = {"links": jnp.array([0, 1, 0, 2, 1]), "base": jnp.array([0.3, 0.7]), "alpha": 2.5}
    state, _ = start(given=given)
    for site, value in given.items():
        np.testing.assert_array_equal(state.z[site], value)
    assert state.z["assignments"].tolist() == [0, 1, 0, 0, 1]


@pytest.mark.slow
def test_rare_symbols_in_single_precision():
    """Of a thousand symbols with tiny weights, those that are seen keep their probability."""
    symbols = np.arange(60) % 20
    lag = np.arange(60.0)[:, None] - np.arange(60)
    distances = np.where(lag > 0, lag, np.inf)
    base = dist.Dirichlet(jnp.full(1000, 1e-3))
    for init in ("singletons", "prior"):
        kernel = DDCRPLanguageGibbs(base, GAMMA, exponential_decay(LOG_NORMAL), init=init)
        mcmc = MCMC(kernel, num_warmup=0, num_samples=30, progress_bar=False)
        mcmc.run(random.key(8), symbols, distances)
        samples = mcmc.get_samples()
        assert all(np.all(np.isfinite(value)) for value in samples.values())
        # each of them was drawn once at least, the 20 alike, and all others together hardly ever
        found = np.asarray(samples["base"])[:, :20].sum(1)
        assert found.min() > 0.8


@pytest.mark.slow
def test_block_of_gibbs():
    """α, the scale and a prior of G_0 by NUTS: the posterior of the kernel by itself."""

    def model(symbols, distances):
        alpha = numpyro.sample("mass", GAMMA)
        scale = numpyro.sample("range", LOG_NORMAL)
        prior = rd.DistanceDependentCRP(alpha, exponential_decay(1.0)(distances, scale))
        links = numpyro.sample("c", prior)
        base = numpyro.sample("g", dist.Dirichlet(DIRICHLET.concentration))
        labels = rd.links_to_partition(links)
        first = jnp.full(5, 5).at[labels].min(jnp.arange(5))
        opens = first[labels] == jnp.arange(5)
        same = jnp.where(symbols[first[labels]] == symbols, 0.0, -jnp.inf)
        numpyro.factor("likelihood", jnp.where(opens, jnp.log(base[symbols]), same).sum())

    block = DDCRPLanguageGibbs(DIRICHLET, model=model, sites={"links": "c", "base": "g"})
    mcmc = MCMC(
        Gibbs([(block, ["c", "g"]), (NUTS(model), None)]),
        num_warmup=100,
        num_samples=250,
        num_chains=60,
        chain_method=jax.vmap,
        progress_bar=False,
    )
    mcmc.run(random.key(3), jnp.array(WORDS), ONE)
    samples = mcmc.get_samples(group_by_chain=True)
    names = {"links": "c", "base": "g", "alpha": "mass", "decay_scale": "range"}
    found = quantities({name: samples[site] for name, site in names.items()}, "dirichlet")
    gaps = discrepancies(found, posterior("dirichlet"))
    assert max(gaps.values()) < 6.0, gaps


def test_bad_blocks():
    def run(prior, base, **settings):
        def model(symbols):
            numpyro.sample("links", prior)
            numpyro.sample("base", base)

        kernel = DDCRPLanguageGibbs(DIRICHLET, model=model, **settings)
        whole = Gibbs([(kernel, ["links", "base"])])
        # a trace: the model is refused for what it is
        jax.eval_shape(lambda key: whole.init(key, 0, None, (WORDS,), {}), random.key(0))

    process = rd.DistanceDependentCRP(1.0, identity_decay()(ONE))
    with pytest.raises(ValueError, match="'links' must have one DistanceDependentCRP"):
        run(rd.ChineseRestaurantProcess(1.0, 5), DIRICHLET)
    with pytest.raises(ValueError, match=r"'base' must have one Dirichlet"):
        run(process, dist.LogNormal(jnp.zeros(2), 1.0).to_event(1))
    kernel = DDCRPLanguageGibbs(DIRICHLET, model=lambda symbols: None)
    with pytest.raises(ValueError, match=r"block of numpyro\.infer\.Gibbs"):
        kernel.init(random.key(0), 0, None, (WORDS,), {})


# -- bad input ------------------------------------------------------------------------------------

BAD = {
    "base": (lambda: DDCRPLanguageGibbs([0.5, 0.6], 1.0, identity_decay()), "must add up to 1"),
    "base shape": (lambda: DDCRPLanguageGibbs([[1.0]], 1.0, identity_decay()), r"an array \(V,\)"),
    "base prior": (
        lambda: DDCRPLanguageGibbs(dist.Gamma(1.0, 1.0), 1.0, identity_decay()),
        "one Dirichlet distribution",
    ),
    "base priors": (
        lambda: DDCRPLanguageGibbs(dist.Dirichlet(jnp.ones((2, 3))), 1.0, identity_decay()),
        "one Dirichlet distribution",
    ),
    "decay": (lambda: DDCRPLanguageGibbs(PROBS), "decay must be a decay"),
    "alpha": (lambda: DDCRPLanguageGibbs(PROBS, -1.0, identity_decay()), "alpha must be a pos"),
    "start": (lambda: DDCRPLanguageGibbs(PROBS, 1.0, identity_decay(), init="x"), "init is one of"),
    "sites": (
        lambda: DDCRPLanguageGibbs(PROBS, 1.0, identity_decay(), sites={"base": "g"}),
        r"sites can name \['links'\]",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings(case):
    construct, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        construct()


def test_bad_data():
    kernel = DDCRPLanguageGibbs([0.6, 0.4, 0.0], 1.0, exponential_decay(1.0))

    def run(*args, given=None):
        return kernel.init(random.key(0), 0, given, args, {})

    with pytest.raises(TypeError, match=r"mcmc\.run\(key, symbols, distances\)"):
        run(WORDS)
    assert_refused(
        run,
        ("row 3 has the symbol 2, which has probability 0", np.array([0, 1, 0, 2, 1]), ONE),
        ("row 1 has the symbol 7", np.array([0, 7, 0, 0, 1]), ONE),
        ("symbols must be integers", np.ones(5), ONE),
        ("there are no points", np.zeros(0, int), np.zeros((0, 0))),
        ("there are 5 points", WORDS, ONE[:3]),
    )
    forward = r"row 1 has another one; for such .* DDCRPGibbs\(Atom\(probs\), …\)"
    with pytest.raises(ValueError, match=forward):
        run(WORDS, np.where(np.arange(5)[:, None] == 1, np.abs(LAG), ONE))
    with pytest.raises(ValueError, match=forward):
        neighbors = np.array([[-1, -1], [0, 4], [0, 1], [2, 0], [3, 1]])
        run(WORDS, NEAR._replace(neighbors=neighbors))
    # the distance to oneself is of no consequence, and what is ∞ may be listed
    for distances in (
        np.where(np.eye(5) > 0, 0.0, ONE),
        SparseDistances(np.full((5, 1), 4), np.full((5, 1), np.inf)),
    ):
        kernel._check((WORDS, distances), {})
    assert_refused(
        lambda links: run(WORDS, ONE, given={"links": jnp.array(links)}),
        ("not forward: that of row 3", [0, 1, 0, 1, 1]),
        ("not forward: that of row 0", [2, 1, 2, 3, 1]),
        ("a point for each of the 5", [0, 1, 2, 5, 1]),
    )


def test_bad_starts():
    alpha, scale = LOG_NORMAL, dist.Uniform(0.5, 2.0)
    kernel = DDCRPLanguageGibbs(dist.Dirichlet(jnp.ones(2)), alpha, exponential_decay(scale))

    def start(keys=None, **given):
        keys = random.key(0) if keys is None else keys
        return kernel.init(keys, 0, given, (WORDS, ONE), {}).z

    for given in ([1, 2], jnp.ones(2)):
        with pytest.raises(ValueError, match="init_params must be a dictionary by site"):
            kernel.init(random.key(0), 0, given, (WORDS, ONE), {})
    with pytest.raises(ValueError, match=r"'decay_scale'.* is outside the support"):
        start(decay_scale=3.0)
    with pytest.raises(ValueError, match=r"'alpha'.* is outside the support"):
        start(alpha=0.0)
    with pytest.raises(ValueError, match=r"'alpha'.* must be one number, got .* shape \(2,\)"):
        start(alpha=np.ones(2))
    two = random.split(random.key(0), 2)
    with pytest.raises(ValueError, match="one number for each of the 2 chains"):
        start(two, alpha=np.ones(3))
    for base in ([0.5, 0.3, 0.2], [0.5, 0.4], [1.0, 0.0], 0.5):
        with pytest.raises(ValueError, match=r"'base'.* must be 2 positive probabilities"):
            start(base=np.array(base))
    given = {"alpha": np.array([1.0, 2.0]), "base": np.array([[0.3, 0.7], [0.6, 0.4]])}
    z = start(two, **given)
    for site, value in given.items():
        np.testing.assert_allclose(z[site], value, rtol=1e-6)


# -- the evidence ---------------------------------------------------------------------------------

DECAYS = {
    "window": window_decay(1.5),
    "exponential": exponential_decay(0.7),
    "logistic": logistic_decay(1.2),
    "identity": identity_decay(),
}


@pytest.mark.parametrize("name", DECAYS)
@pytest.mark.parametrize("distances", [ONE, TWO, NEAR], ids=["one", "two", "near"])
def test_evidence_by_enumeration(name, distances):
    decay = np.asarray(DECAYS[name](dense(distances)), float)
    for symbols, probs in ((WORDS, PROBS), (THREE, np.array([0.5, 0.3, 0.2]))):
        logs = log_priors(np.array([0.8]), decay)[0] + log_likelihoods(symbols, probs)[0]
        found = log_language_evidence(symbols, distances, probs, 0.8, DECAYS[name])
        assert float(found) == pytest.approx(np.logaddexp.reduce(logs), abs=2e-6)


def test_evidence_adds_up():
    """Over all symbols to 1, over documents to that of both."""
    every = np.array(list(itertools.product(range(2), repeat=5)))
    decay = exponential_decay(0.7)

    @jax.jit
    def scores(alpha):
        of_each = jax.vmap(lambda w: log_language_evidence(w, ONE, PROBS, alpha, decay))(every)
        both = log_language_evidence(WORDS, TWO, PROBS, alpha, decay)
        parts = [
            log_language_evidence(WORDS[s], ONE[s, s], PROBS, alpha, decay)
            for s in (slice(0, 2), slice(2, 5))
        ]
        return of_each, both, parts

    of_each, both, parts = scores(0.8)
    assert np.exp(np.asarray(of_each)).sum() == pytest.approx(1.0, abs=1e-5)
    assert float(both) == pytest.approx(sum(map(float, parts)), abs=1e-6)


def test_traditional_process_is_dirichlet_smoothing():
    """Of 1,500 words, against a pseudo-count in double precision."""
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.full(40, 0.5))
    words = rng.choice(40, p=probs, size=1500)
    counts, expected, alpha = np.zeros(40), 0.0, 3.0
    for i, word in enumerate(words):
        expected += np.log((alpha * probs[word] + counts[word]) / (alpha + i))
        counts[word] += 1
    distances = np.where(np.tri(1500, k=-1) > 0, 1.0, np.inf)
    score = jax.jit(
        lambda alpha: log_language_evidence(words, distances, probs, alpha, identity_decay())
    )
    assert float(score(alpha)) == pytest.approx(expected, abs=5e-3, rel=1e-6)


def test_slopes_of_the_evidence():
    """By α, scale and probabilities; also where a point has nobody in reach, and far ones."""
    distances = np.where(np.isfinite(ONE), ONE, np.inf)
    distances[3, 0] = 500.0  # a weight that underflows in single precision

    def score(alpha, scale, logits):
        probs, decay = jax.nn.softmax(logits), logistic_decay(1.0)
        return log_language_evidence(WORDS, distances, probs, alpha, decay, scale=scale)

    point = np.float32(0.8), np.float32(0.7), np.array([0.2, -0.1], np.float32)
    slopes = jax.jit(jax.grad(score, (0, 1, 2)))(*point)
    score = jax.jit(score)
    for i, direction in ((0, 1.0), (1, 1.0), (2, np.array([1.0, 0.0]))):
        ends = []
        for step in (1e-2, -1e-2):
            moved = list(point)
            moved[i] = np.float32(point[i] + step * direction)
            ends.append(float(score(*moved)))
        slope = np.sum(np.asarray(slopes[i]) * direction)
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-2, rel=5e-3, abs=1e-3)


def test_bad_input_of_the_evidence():
    assert_refused(
        log_language_evidence,
        ("must be sequential", WORDS, np.abs(LAG), PROBS, 1.0, identity_decay()),
        ("row 0 has the symbol 2", THREE, ONE, PROBS, 1.0, identity_decay()),
        ("alpha must be a positive number", WORDS, ONE, PROBS, 0.0, identity_decay()),
        ("give the number", WORDS, ONE, PROBS, 1.0, window_decay(LOG_NORMAL)),
    )


# -- Bayes factors --------------------------------------------------------------------------------


def exact_evidence(symbols, distances, probs, alpha, decay):
    """One symbol after the other: a copy of an earlier one, or a draw."""
    weights = np.tril(np.asarray(decay(distances), float), -1)
    same = np.equal.outer(symbols, symbols)
    chosen = alpha * probs[symbols] + (weights * same).sum(1)
    return np.log(chosen / (alpha + weights.sum(1))).sum()


def exact_ratio(symbols, distances, probs, alpha, decay, drawn_alpha, drawn_decay):
    above = exact_evidence(symbols, distances, probs, alpha, decay)
    return above - exact_evidence(symbols, distances, probs, drawn_alpha, drawn_decay)


def test_bayes_factor_by_the_closed_form():
    probs = np.array([0.5, 0.3, 0.2])
    words = np.array([0, 0, 2, 1, 0, 2, 2, 2, 1, 1, 0, 0])
    lag = np.arange(12.0)[:, None] - np.arange(12)
    distances = np.where(lag > 0, lag, np.inf)
    mcmc = sample(DDCRPLanguageGibbs(probs, 1.1, identity_decay()), words, distances, chains=4)
    links = mcmc.get_samples(group_by_chain=True)["links"]
    for alpha, decay in (
        (1.1, exponential_decay(8.0)),
        (0.9, logistic_decay(9.0)),
        (1.1, window_decay(9.5)),
        (1.5, identity_decay()),
    ):
        found = log_bayes_factor(links, distances, alpha, decay, drawn_alpha=1.1)
        expected = exact_ratio(words, distances, probs, alpha, decay, 1.1, identity_decay())
        assert abs(found.log_ratio - expected) < 5 * found.error < 1.0, (decay, found, expected)
        assert 100 < found.num_effective < 1200
    same = log_bayes_factor(links, distances, 1.1, identity_decay())
    assert same == (0.0, 0.0, 1200.0)


@pytest.mark.slow
def test_standard_error_of_bayes_factors():
    """Over 200 runs with correlated draws, estimates scatter as they say that they do."""
    mcmc = sample(
        DDCRPLanguageGibbs(DIRICHLET, 0.8, identity_decay()), WORDS, ONE, chains=800, draws=200
    )
    links = np.asarray(mcmc.get_samples(group_by_chain=True)["links"]).reshape(200, 4, 200, 5)
    decay = exponential_decay(1.0)
    found = [log_bayes_factor(four, ONE, 0.8, decay) for four in links]
    log_likelihood, _ = log_likelihoods(WORDS, DIRICHLET)
    evidence = [
        np.logaddexp.reduce(log_priors(np.array([0.8]), np.asarray(d(ONE)))[0] + log_likelihood)
        for d in (decay, identity_decay())
    ]
    z = np.array([(f.log_ratio - (evidence[0] - evidence[1])) / f.error for f in found])
    # of 200 standard normal draws the mean has standard error 0.07, the deviation 0.05
    assert abs(z.mean()) < 0.4 and 0.7 < z.std() < 1.4, (z.mean(), z.std())


@pytest.mark.slow
@pytest.mark.parametrize("learned", [False, True])
def test_bayes_factor_of_a_mixture(learned):
    """By DDCRPGibbs, not sequential, α known or drawn along: the evidence by enumeration."""
    family = GaussianMean(1.5, 0.6)
    data = np.array([[-1.0], [0.2], [-0.7], [0.9]])
    times = np.array([0.0, 0.4, 1.3, 2.1])
    distances = np.abs(times[:, None] - times)
    drawn, decay = exponential_decay(2.0), logistic_decay(0.5)
    mcmc = sample(DDCRPGibbs(family, GAMMA if learned else 0.9, drawn), data, distances, chains=20)
    samples = mcmc.get_samples(group_by_chain=True)
    alpha = samples["alpha"] if learned else 0.9
    found = log_bayes_factor(samples["links"], distances, alpha, decay, drawn_decay=drawn)
    scores, alphas = log_marginals(family, data), grid(GAMMA if learned else 0.9)
    logs = {f.name: [] for f in (drawn, decay)}
    for links in itertools.product(range(4), repeat=4):
        labels = np.array(components(links))
        blocks = [tuple(np.flatnonzero(labels == c)) for c in range(labels.max() + 1)]
        score = sum(scores[b] for b in blocks)
        for f in (drawn, decay):
            weights = np.array(f(distances), float)
            np.fill_diagonal(weights, 0.0)
            log_prior = alphas[1].copy()
            for i, j in enumerate(links):
                weight = alphas[0] if i == j else weights[i, j]
                log_prior += np.log(weight / (alphas[0] + weights[i].sum()))
            logs[f.name].append(np.logaddexp.reduce(log_prior) + score)
    evidence = {name: np.logaddexp.reduce(values) for name, values in logs.items()}
    expected = evidence[decay.name] - evidence[drawn.name]
    assert abs(found.log_ratio - expected) < 5 * found.error < 0.2, (found, expected)


@pytest.mark.slow
def test_bayes_factor_by_steps():
    """f is far from the traditional process: the draws of that do not do, those of powers do."""
    rng = np.random.default_rng(3)
    words = np.repeat(rng.integers(4, size=8), 4)
    probs, times = np.full(4, 0.25), np.arange(32.0)
    lag = times[:, None] - times
    distances, decay = np.where(lag > 0, lag, np.inf), exponential_decay(2.0)
    total, variance = 0.0, 0.0
    for t, u in itertools.pairwise((0.0, 0.03, 0.1, 0.25, 0.5, 1.0)):
        kernel = DDCRPLanguageGibbs(probs, 1.0, decay.power(t))
        links = sample(kernel, words, distances, chains=2, draws=4000).get_samples()["links"]
        if t == 0.0:
            with pytest.warns(UserWarning, match=r"go in steps, from decay\.power\(t\)"):
                log_bayes_factor(links, distances, 1.0, decay)
        step = log_bayes_factor(links, distances, 1.0, decay.power(u), drawn_decay=decay.power(t))
        total, variance = total + step.log_ratio, variance + step.error**2
    expected = exact_ratio(words, distances, probs, 1.0, decay, 1.0, identity_decay())
    assert expected > 5 and abs(total - expected) < 5 * np.sqrt(variance) < 0.7, (total, expected)


@pytest.mark.slow
def test_sparse_bayes_factor():
    """Draws with all distances serve for neighbors only; and the other way round they do not."""
    mcmc = sample(DDCRPLanguageGibbs(PROBS, 0.8, identity_decay()), WORDS, ONE, chains=4)
    links = mcmc.get_samples()["links"]
    decay = exponential_decay(1.5)
    found = log_bayes_factor(links, NEAR, 0.8, decay, drawn_distances=ONE)
    full = log_bayes_factor(links, dense(NEAR), 0.8, decay, drawn_distances=ONE)
    assert found == pytest.approx(full, rel=1e-4)
    above = log_language_evidence(WORDS, NEAR, PROBS, 0.8, decay)
    below = log_language_evidence(WORDS, ONE, PROBS, 0.8, identity_decay())
    assert abs(found.log_ratio - float(above - below)) < 5 * found.error
    with pytest.raises(ValueError, match="decay allows a link of point 3 to 1"):
        log_bayes_factor(links, ONE, 0.8, decay, drawn_distances=NEAR)


def test_bad_input_of_bayes_factors():
    links = np.tile([0, 1, 0, 2, 1], (6, 1))
    far = np.tile([0, 1, 0, 0, 1], (6, 1))
    decay = window_decay(1.0)
    with pytest.raises(ValueError, match="allows a link of point 2 to 0 but drawn_decay does not"):
        log_bayes_factor(links, ONE, 1.0, exponential_decay(1.0), drawn_decay=decay)
    with pytest.raises(ValueError, match="draw 0 has a link to which drawn_decay gives no"):
        log_bayes_factor(far, ONE, 1.0, decay, drawn_decay=decay)
    assert_refused(
        log_bayes_factor,
        ("4 draws or more", links[:3], ONE, 1.0, decay),
        ("links must be from 0 to 4", links + 4, ONE, 1.0, decay),
        ("one for each draw", links, ONE, np.ones(5), decay),
        ("alpha must be positive", links, ONE, 0.0, decay),
        ("there are 5 points", links, ONE[:4, :4], 1.0, decay),
    )
    with pytest.raises(ValueError, match="exponent of a decay"):
        decay.power(-1.0)
    with pytest.warns(UserWarning, match="worth 0 of equal weight"):
        found = log_bayes_factor(far, ONE, 1.0, decay)  # none of them is possible under it
    assert found.log_ratio == -np.inf


def test_powers_of_decays():
    distances = np.array([0.0, 0.5, 1.5, 3.0, np.inf])
    for decay in DECAYS.values():
        whole = np.asarray(decay(distances), float)
        for exponent in (0.0, 0.3, 1.0, 2.0):
            expected = np.where(whole > 0, whole**exponent, 0.0)
            np.testing.assert_allclose(decay.power(exponent)(distances), expected, rtol=1e-5)


def test_kernels_are_pickled():
    for decay in [*DECAYS.values(), logistic_decay(LOG_NORMAL).power(0.5)]:
        for kernel in (
            DDCRPLanguageGibbs(DIRICHLET, GAMMA, decay),
            DDCRPGibbs(Atom(PROBS), GAMMA, decay),
        ):
            again = pickle.loads(pickle.dumps(kernel))
            np.testing.assert_array_equal(again._decay(ONE, 0.7), decay(ONE, 0.7))


# -- joint distribution tests ---------------------------------------------------------------------

SIZE = 7
PLACES = np.array([0.0, 0.3, 0.7, 1.6, 1.8, 2.9, 3.1])
APART = np.abs(PLACES[:, None] - PLACES)
LATER = np.where(np.tri(SIZE, k=-1) > 0, APART, np.inf)
# name: kernel, decay, prior of alpha, distances
JOINT = {
    "mixture-gamma": (DDCRPGibbs, exponential_decay, GAMMA, APART),
    "mixture-slice": (DDCRPGibbs, logistic_decay, LOG_NORMAL, APART),
    "language-known": (DDCRPLanguageGibbs, logistic_decay, GAMMA, LATER),
    "language-unknown": (DDCRPLanguageGibbs, exponential_decay, LOG_NORMAL, LATER),
}
NOISE = GaussianMean(1.5, 0.6)


def draw_from_prior(key, name):
    """α, scale, links, and G_0 if it is unknown."""
    _, decay, alpha_prior, distances = JOINT[name]
    key_alpha, key_scale, key_links, key_base = random.split(key, 4)
    z = {"alpha": alpha_prior.sample(key_alpha), "decay_scale": LOG_NORMAL.sample(key_scale)}
    weights = decay(1.0)(distances, z["decay_scale"])
    z["links"] = rd.DistanceDependentCRP(z["alpha"], weights).sample(key_links)
    if name == "language-unknown":
        z["base"] = DIRICHLET.sample(key_base)
    return z


def draw_data(key, z, name):
    """Of each table a mean or a symbol, and the points of it."""
    key_tables, key_points = random.split(key)
    table = rd.links_to_partition(z["links"])
    if name.startswith("mixture"):
        means = 1.5 * random.normal(key_tables, (SIZE,))
        return (means[table] + 0.6 * random.normal(key_points, (SIZE,)))[:, None]
    base = z.get("base", jnp.asarray(PROBS))
    return random.categorical(key_tables, jnp.log(base), shape=(SIZE,))[table]


def moments(z):
    log_alpha, log_scale = jnp.log(z["alpha"]), jnp.log(z["decay_scale"])
    clusters = 1.0 + jnp.max(rd.links_to_partition(z["links"]))
    itself = jnp.sum(z["links"] == jnp.arange(SIZE))
    found = [z["alpha"], log_alpha, log_alpha**2, log_scale, log_scale**2, clusters, itself]
    found += [clusters * log_alpha, itself * log_scale]
    return jnp.stack(found + [z[name][0] for name in ("base",) if name in z])


@pytest.mark.slow
@pytest.mark.parametrize("name", JOINT)
def test_joint_distribution(name):
    """Data given the state, a sweep given the data, in turns: the state keeps its prior."""
    constructor, decay, alpha_prior, distances = JOINT[name]
    scored = {"language-known": PROBS, "language-unknown": DIRICHLET}.get(name, NOISE)
    kernel = constructor(scored, alpha_prior, decay(LOG_NORMAL))

    def chain(key):
        key_prior, key_data, key_init, key_steps = random.split(key, 4)
        z = draw_from_prior(key_prior, name)
        data = draw_data(key_data, z, name)
        state = kernel.init(key_init, 0, z, (data, distances), {})

        def step(state, key):
            data = draw_data(key, state.z, name)
            state = kernel.sample(state, (data, distances), {})
            return state, moments(state.z)

        _, found = jax.lax.scan(step, state, random.split(key_steps, 100))
        return found.mean(0)

    found = np.asarray(jax.jit(jax.vmap(chain))(random.split(random.key(1), 300)), float)
    prior = jax.jit(jax.vmap(lambda key: moments(draw_from_prior(key, name))))
    expected = np.asarray(prior(random.split(random.key(2), 100_000)), float)
    variance = found.var(0, ddof=1) / len(found) + expected.var(0, ddof=1) / len(expected)
    z = (found.mean(0) - expected.mean(0)) / np.sqrt(variance)
    # ten quantities with 299 degrees of freedom: P(any |t| > 5.5) is about 1e-6
    assert np.abs(z).max() < 5.5, z
