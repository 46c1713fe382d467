"""The results of ``fit`` when judges tie items, or leave the order of items open otherwise."""

import csv
import re
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from helpers.command_line import QUICK_FIT
from helpers.fabricated import (
    apart,
    fabricated_mcmc,
    fabricated_pool_mcmc,
    fabricated_weights_mcmc,
    with_groups,
)

from numpyro_rankings import (
    Comparisons,
    PartialOrders,
    Run,
    cluster_profiles,
    open_run,
    to_inference_data,
)
from numpyro_rankings.cli import fit, main
from numpyro_rankings.cli.session import Sampled
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.infer import (
    BetaGibbs,
    DPPlackettLuceGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
    latent_orders,
)
from numpyro_rankings.readers.surveys import survey_of
from numpyro_rankings.report import findings, write_report
from numpyro_rankings.report.comparison import compare

BUCKETS = [["Ann", ["Bob", "Cid"], "Dee"], [["Dee", "Cid"], "Bob"], ["Bob"], ["Cid", "Bob", "Ann"]]
TIED = PartialOrders.from_buckets(
    BUCKETS * 2, items=["Ann", "Bob", "Cid", "Dee"], counts=[9, 8, 3, 6, 5, 4, 3, 2]
).unique()
TIES = "26 judges tie items, which counts as no opinion between them"
WIDE = PartialOrders.from_buckets([[list(range(1, 18)), 0], [3, list(range(4, 18))]] * 5, 18)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("numpyro_rankings.cli.session.use_compilation_cache", lambda: None)
    return tmp_path


def read_csv(name):
    with Path("out", name).open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def fitted(orders, mcmc, options, monkeypatch):
    """Let the command write results of these draws, and return the page."""
    monkeypatch.setattr(fit, "read_file", lambda *_: survey_of(orders, "orders"))
    monkeypatch.setattr(fit, "_sample", lambda *_: Sampled(mcmc, "length", (60, 60)))
    quick = [x for x in QUICK_FIT if not options or x not in ("--max-clusters", "16")]
    Path("tied.csv").write_text("")
    assert main(["fit", "tied.csv", *quick, *options, "--out", "out"]) == 0
    return Path("out/report.html").read_text(encoding="utf-8")


MODELS = {
    "mallows": (fabricated_mcmc, []),
    "plackett-luce": (lambda x: fabricated_weights_mcmc(x, 3), ["--components", "3"]),
    "gamma-process": (fabricated_pool_mcmc, []),
}


def with_mistakes(mcmc):
    """Let the draws have probabilities of a mistake of which half are 0.06 and half 0.1."""
    chains, draws = mcmc._states["z"]["alpha"].shape
    values = np.tile(np.where(np.arange(draws) % 2, 0.06, 0.1), (chains, 1))
    mcmc._states["z"]["mistake_probability"] = values.astype(np.float32)
    return mcmc


COMPARED = pd.DataFrame(
    [
        (judge, *pair)
        for judge in range(12)
        for pair in ("xy", "yz", ("zx", "xz")[judge % 3 > 0], ("xw", "wx")[judge % 2])
    ],
    columns=["judge", "winner", "loser"],
)


@pytest.mark.parametrize("model", ["mallows", "plackett-luce"])
def test_comparisons_that_may_be_mistakes(model, folder, monkeypatch, capsys):
    """Page, screen and tables say how many are, and what is left out; chains that disagree too."""
    make, options = MODELS[model]
    compared = Comparisons.from_pairs(COMPARED, "judge").unique()
    mcmc = with_mistakes(apart(make(compared.of_all_items() if model == "mallows" else compared)))
    page = fitted(compared, mcmc, ["--model", model, *options], monkeypatch)
    said = "About 8% of the comparisons go against the judge's own order"
    left_out = "Predictive checks and blocs are left out: they are not computed where comparisons"
    printed = " ".join(capsys.readouterr().out.split())
    for text in (page.replace("&#39;", "'"), printed):
        assert said in text and left_out in text
    said = "12 rankings (4 distinct) of 4 items; 4 of 12 judges contradict their own answers; any"
    assert said in page
    assert "Does the model fit" not in page
    clusters = read_csv("clusters.csv")
    (mean,) = {row["mistake_probability"] for row in clusters}
    assert float(mean) == pytest.approx(0.08, abs=0.004)
    assert {row["mistake_probability_high"] for row in clusters} == {"0.1"}
    assert "x > y" in read_csv("assignments.csv")[0]["ordering"]
    assert not Path("out/blocs.csv").exists()


@pytest.mark.parametrize("model", MODELS)
def test_fit(model, folder, monkeypatch, capsys):
    """The command writes the page and all tables; they say what ties are."""
    make, options = MODELS[model]
    mcmc = apart(make(TIED)) if model == "mallows" else make(TIED)
    page = fitted(TIED, mcmc, ["--model", model, *options], monkeypatch)
    assert f"40 rankings (4 distinct) of 4 items; {TIES}" in page
    assert "A judge who ties items, or compares some only, does so in the new rankings too" in page
    assert {x["ordering"] for x in read_csv("assignments.csv")} == {
        "Ann > Bob = Cid > Dee",
        "Cid = Dee > Bob",
        "Bob",
        "Cid > Bob > Ann",
    }
    clusters = read_csv("clusters.csv")
    said = [text for row in clusters for text in row["level"].split("; ") if text]
    assert all(re.fullmatch(r"[\w, ]+ and \w+ are level", text) for text in said)
    assert clusters[0]["level"].split("; ")[0] in page
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("share, level", [(0.5, True), (0.7, True), (0.8, False)])
def test_items_are_level_where_the_draws_say_so(folder, monkeypatch, share, level):
    """One of two items is before the other in this share of the draws, the others are clear."""
    mcmc = fabricated_mcmc(TIED, num_components=1)
    z = mcmc._states["z"]
    is_first = np.arange(z["center"].shape[1]) % 10 < 10 * share
    orders = np.where(is_first[:, None], [0, 1, 2, 3], [0, 2, 1, 3])
    z["center"] = np.broadcast_to(orders[:, None], z["center"].shape).astype(np.int32)
    page = fitted(TIED, mcmc, ["--components", "1"], monkeypatch)
    (row,) = read_csv("clusters.csv")
    assert row["level"] == ("Bob and Cid are level" if level else "")
    assert ("Bob and Cid are level" in page) == level


def test_blocs_on_the_page(folder, monkeypatch):
    """Chains that disagree have blocs, of which page and tables tell."""
    data = simulate_mallows_mixture(jax.random.key(0), 200, 5, 5, 3, 1.5)
    tied = PartialOrders.from_ranks(np.minimum(data.rankings.to_ranks(), 3), ties="any")
    mcmc = apart(with_groups(fabricated_mcmc(tied), data))
    page = fitted(tied, mcmc, [], monkeypatch)
    assert "blocs explain the rankings" in page
    assert len(read_csv("blocs.csv")) >= 2 and "bloc" in read_csv("assignments.csv")[0]


def test_what_cannot_be_computed_is_left_out(folder):
    """Neither weights of the chains nor blocs, where the sums have too many terms."""
    mcmc = apart(fabricated_mcmc(WIDE))
    with pytest.warns(UserWarning, match="log likelihood of 10 rankings was left out: row 1: "):
        data = to_inference_data(mcmc, WIDE)
    found = findings.findings_of(data, WIDE, checks=None)
    limit = "a search sums over the orders of at most 16 items that are tied or not compared, and"
    said = f"No blocs are searched: {limit} there are 17 in row 1."
    assert found.blocs is None and found.no_blocs == said
    write_report("page.html", data, WIDE, checks=None)
    assert "No blocs are searched" in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "orders", "message"),
    [
        (
            ["--sampler", "tempered", "--components", "2"],
            TIED,
            "--sampler tempered is for rankings",
        ),
        (["--sampler", "tempered", "--components", "auto"], TIED, "--components auto is for rank"),
        (
            ["--model", "gamma-process"],
            PartialOrders.from_buckets(
                [["a", "b"], ["c"]], items=["a", "b", "c"], unranked="not-offered"
            ),
            "has choice sets (c was not offered in row 1); only --model mallows or",
        ),
    ],
)
def test_models_that_take_rankings_alone(options, orders, message, folder, monkeypatch, capsys):
    monkeypatch.setattr(fit, "read_file", lambda *_: survey_of(orders, "orders"))
    (folder / "tied.csv").write_text("")
    assert main(["fit", "tied.csv", *options]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


def test_memory_of_preferences(monkeypatch):
    monkeypatch.setattr(latent_orders, "_WORTH_A_LOOK", 0)
    monkeypatch.setattr("numpyro_rankings._system.memory.device_memory", lambda: 1000)
    message = "the preferences between 4 items of 40 judges in 1 chain need about .* but only"
    with pytest.raises(ValueError, match=message):
        SliceGibbs().init(jax.random.key(0), 0, None, (TIED,), {})


KERNELS = {
    "SliceGibbs": SliceGibbs(max_clusters=8),
    "BetaGibbs": BetaGibbs(num_components=2),
    "PlackettLuceGibbs": PlackettLuceGibbs(num_components=2),
    "GammaProcess": GammaProcessPlackettLuceGibbs(1.0),
    "DPPlackettLuce": DPPlackettLuceGibbs(1.0, 1.0, 1.0, max_clusters=8),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_page_from_a_run(name, folder):
    """From the run to the page, and from its store, which knows what the data were."""
    run = Run(KERNELS[name], TIED, key=jax.random.key(0), num_chains=2, store="run")
    run.extend(100)
    write_report("page.html", run, TIED)
    run.close()
    page = Path("page.html").read_text(encoding="utf-8")
    assert TIES in page and not re.search(r"\bnan\b", page)
    stored = open_run("run")
    profiles = cluster_profiles(stored, TIED)
    assert sum(p.mean_size for p in profiles) <= 40 + 1e-6
    strict = TIED.with_orderings(TIED.listed)
    with pytest.raises(ValueError, match="the run was of partial orders, and these are rankings"):
        cluster_profiles(stored, strict)


@pytest.mark.slow
@pytest.mark.parametrize("kfold", [0, 2])
@pytest.mark.parametrize("kind", ["ties", "mistakes"])
def test_compare(kind, kfold):
    """Densities of judges are finite, and there are checks unless comparisons may be mistakes."""
    models = [SliceGibbs(max_clusters=8), PlackettLuceGibbs()]
    data = TIED if kind == "ties" else Comparisons.from_pairs(COMPARED, "judge")
    found = compare(data, models, kfold=kfold, num_chains=2, rhat=2, ess=10, max_draws=50)
    assert len(found.table) == 2
    assert np.isfinite(found.table[["elpd", "se"]]).all(None)
    assert np.isfinite(found.table[["first_outside", "pairs_outside"]]).all(None) == (
        kind == "ties"
    )
