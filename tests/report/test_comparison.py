"""Comparing models: exact predictions, what the table says, and what is refused."""

import arviz as az
import jax
import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

from numpyro_rankings import Rankings, compare
from numpyro_rankings.cli import main
from numpyro_rankings.infer import (
    CollapsedGibbs,
    GammaProcessPlackettLuceGibbs,
    PlackettLuceGibbs,
    SliceGibbs,
    TemperedMixture,
)
from numpyro_rankings.plots import plot_comparison
from numpyro_rankings.posterior.stacking import leave_one_out
from numpyro_rankings.report import comparison
from numpyro_rankings.report.comparison import (
    Comparison,
    TooFewDrawsError,
    _sentences,
    _simplest,
    default_models,
    model_name,
)
from numpyro_rankings.run import Run

TWO = Rankings.from_orderings([[0], [1]], num_items=2, counts=[14, 6])
QUICK = dict(num_chains=2, ess=2000, minutes=1, max_draws=10_000)


def test_leave_one_out_and_parts_against_the_exact_predictions(monkeypatch):
    """Of two items the first is preferred with a probability whose prior is uniform."""
    names, runs, parts_of = [], {}, []
    begin, divide = comparison._begin, comparison._parts

    def begin_once(kernel, rankings, *settings):
        """All rankings are run once for both comparisons."""
        counts = tuple(rankings.counts.tolist())
        if counts not in runs:
            runs[counts] = begin(kernel, rankings, *settings)
        return runs[counts]

    monkeypatch.setattr(comparison, "_begin", begin_once)
    monkeypatch.setattr(
        comparison, "_parts", lambda *args: parts_of.append(divide(*args)) or parts_of[-1]
    )
    one = compare(
        TWO, [PlackettLuceGibbs()], after_model=lambda name, _: names.append(name), **QUICK
    )
    name = "Plackett–Luce (1 group)"
    assert {*names} == {name} == {one.simplest} and len(names) <= 2
    chosen = np.repeat([14, 6], [14, 6])
    exact = np.log(chosen / 21)  # (1 + chosen - 1) / (2 + 20 - 1)
    np.testing.assert_allclose(one.pointwise[name], exact, atol=0.035)  # 5 standard errors
    row = one.table.loc[name]
    assert row["elpd"] == pytest.approx(one.pointwise[name].sum()) and row["bad_k"] == 0
    assert np.isnan(row["log_evidence"]) and np.isnan(row["se_evidence"])
    assert row["se"] == pytest.approx(np.sqrt(20 * one.pointwise[name].var()))
    assert (row["elpd_diff"], row["se_diff"], row["groups"]) == (0, 0, 1)
    # the same as ArviZ
    assert az.loo(one.data[name], reff=1.0).elpd_loo == pytest.approx(row["elpd"], abs=1e-4)

    # of two parts only, a run on the part itself would not be noticed
    parts = compare(TWO, {"one": PlackettLuceGibbs()}, kfold=3, **QUICK)
    assert np.isnan(parts.table.loc["one", "bad_k"])
    (part,) = parts_of
    assert np.bincount(part).tolist() == [7, 7, 6]
    item = np.repeat([0, 1], [14, 6])
    others = [item[part != k] for k in part]
    alike = np.array([np.sum(them == i) for them, i in zip(others, item, strict=True)])
    exact = np.log((1 + alike) / (2 + np.array([len(them) for them in others])))
    np.testing.assert_allclose(parts.pointwise["one"], exact, atol=0.035)


class Paced:
    """A run of which nothing but the goals and the number of draws is known."""

    first_draw = 0

    def __init__(self, pace):
        self.pace, self.num_draws, self.goals = pace, 0, []

    def extend(self, sweeps):
        assert not self.goals

    def until(self, **goals):
        if not self.goals or not self.pace["ends"]:
            self.num_draws += self.pace["draws"]
        self.goals.append(goals)


def test_only_models_whose_place_is_not_clear_are_run_on(monkeypatch):
    rng = np.random.default_rng(0)
    base, noise = rng.normal(-3, 0.2, 20), rng.normal(0, 0.1, 20)
    noise -= noise.mean()
    less = dict(
        best=0.0, near=-0.1 + noise, far=-2.0 + noise, close=-0.19, wide=noise * 50 - 0.5,
        astray=noise - 0.01, stopped=-0.19,
    )  # fmt: skip
    paces = {name: dict(draws=10, ends=name == "stopped") for name in less}
    paces["far"]["draws"] = 2
    errors = dict(near=[0.5], far=[9.0], close=[0.5, 0.5, 0.05], wide=[30.0], stopped=[0.5])
    kernels = {name: SliceGibbs(num_components=k) for k, name in enumerate(less, 1)}
    runs, told = {}, []

    def begin(kernel, *_):
        name = [*less][kernel.num_components - 1]
        return runs.setdefault(name, Paced(paces[name]))

    def fit(kernel, run, *_):
        name = [*less][kernel.num_components - 1]
        known = dict.fromkeys(comparison._Fit._fields[2:], np.nan)
        known["rhat"] = 1.2 if name == "astray" else 1.0
        known["error"] = errors.get(name, [0.01])[: len(run.goals)][-1]
        return comparison._Fit(None, base + less[name], **known)

    monkeypatch.setattr(comparison, "_begin", begin)
    monkeypatch.setattr(comparison, "_fit", fit)
    found = compare(TWO, kernels, minutes=8, after_model=lambda name, _: told.append(name))
    first = dict(rhat=1.05, ess=50, minutes=2)
    on = [dict(rhat=1.025, ess=100, minutes=2), dict(rhat=1 + 0.05 / 3, ess=150, minutes=2)]
    on = [first, *on, dict(rhat=1.01, ess=200, minutes=2)]
    goals = {name: run.goals for name, run in runs.items()}
    # 2 nats are clearly less than 4 and 40 are more, but 3.8 only with small errors
    assert goals["best"] == goals["near"] == [first]
    assert goals["close"] == on[:3]
    assert goals["astray"] == goals["wide"] == on
    # its few draws of the first look did not suffice
    assert goals["far"] == [first, {**first, "minutes": 6}] and runs["far"].num_draws == 4
    assert goals["stopped"] == on  # it has its draws, and none further
    second = ["close", "wide", "astray"]
    assert told == [*less, *second, *second, *second[1:]]
    assert found.simplest == "best" and found.table.index[0] == "best"
    paces["far"]["draws"] = 4
    runs.clear()
    compare(TWO, kernels, minutes=8)
    assert runs["far"].goals == [first]
    # each part needs all of the time
    monkeypatch.setattr(comparison, "_predict_parts", lambda *_: base)
    runs.clear()
    compare(TWO, kernels, minutes=8, kfold=2)
    assert runs["best"].goals == [{**on[-1], "minutes": 8}]


def test_the_error_of_draws_is_that_of_repeated_runs():
    """The log densities of 30 judges in four chains, whose draws depend on each other."""
    rng = np.random.default_rng(1)
    draws = np.zeros((400, 4, 250))
    for t in range(1, 250):
        draws[..., t] = 0.9 * draws[..., t - 1] + rng.normal(0, 0.1, (400, 4))
    slopes = rng.normal(0, 1, 30)[:, None, None]
    runs = [-2 + slopes * one for one in draws]
    found = [leave_one_out(x.reshape(30, -1), 1.0)[0].sum() for x in runs[:60]]
    said = np.sqrt(np.mean([comparison._error_of_draws(x) ** 2 for x in runs]))
    assert said == pytest.approx(np.std(found), rel=0.35)
    assert np.isnan(comparison._error_of_draws(runs[0][:, :1]))


def test_leagues_that_never_meet(monkeypatch):
    numbers = dict.fromkeys(comparison._Fit._fields[2:], 1.0) | {"log_evidence": np.nan}
    fit = comparison._Fit(None, np.zeros(4), **numbers)
    monkeypatch.setattr(comparison, "_fit", lambda *_: fit)
    offered = np.array([[1, 1, 0, 0], [0, 0, 1, 1]], bool)
    orders = [[0, 1], [3]]
    for sets, is_said in ((offered, True), (offered | offered[::-1], False), (None, False)):
        rankings = Rankings.from_orderings(
            orders, items=list("ABCD"), counts=[2, 2], choice_sets=sets
        )
        said = compare(rankings, [PlackettLuceGibbs()]).in_words
        text = "No judge compares items of different sets, which are {A and B} and {C and D}"
        assert (text in said) == is_said


KERNELS = default_models(TWO, (1, 2, 3))
M, P, ANY = "Mallows ({})", "Plackett–Luce ({})", "Mallows (any number of groups)"


def table_of(**differences):
    """A table of models with these differences, of standard error 5."""
    names = {
        "m1": M.format("1 group"),
        "m2": M.format("2 groups"),
        "m3": M.format("3 groups"),
        "m": ANY,
        "p1": P.format("1 group"),
        "p2": P.format("2 groups"),
        "p3": P.format("3 groups"),
    }
    rows = {
        names[k]: {"elpd_diff": x, "se_diff": 5.0 * (x < 0), "bad_k": 0.0, "rhat": 1.0}
        for k, x in sorted(differences.items(), key=lambda item: -item[1])
    }
    return pd.DataFrame.from_dict(rows, orient="index").assign(
        log_evidence=np.nan, se_evidence=np.nan
    )


SAYS = {
    "groups": (
        dict(m3=0, m=-1, m2=-50, m1=-90, p3=-30, p1=-80),
        "m3",
        ["3 groups or more", "more were not tried", "Plackett–Luce models predict clearly worse"],
    ),
    "fewest that suffice": (
        dict(m=0, m3=-1, m2=-3, m1=-60, p2=-40),
        "m2",
        ["2 groups or more", "beyond 2 nothing is gained", "models predict clearly worse"],
    ),
    "one": (dict(m2=0, m1=-2, m3=-1), "m1", ["1 group can be enough"]),
    "both families": (
        dict(p2=0, m2=-2, p1=-40, m1=-30),
        "p2",
        ["Whether Mallows or Plackett–Luce models predict better is not clear"],
    ),
    "one alone": (
        dict(p1=0, m1=-40),
        "p1",
        ["predicts best, and the other predicts clearly worse."],
    ),
    "all others": (dict(p1=0, m1=-40, m2=-40), "p1", ["and all others predict clearly worse."]),
    "no other": (dict(m2=0), "m2", ["Mallows (2 groups) is the only model."]),
    "few nats": (dict(m2=0, m1=-3.9), "m1", ["can be enough"]),
    "the process alone": (dict(m=0, m1=-40), "m", ["predicts best"]),
}


@pytest.mark.parametrize("name", SAYS)
def test_what_a_table_says(name):
    differences, simplest, parts = SAYS[name]
    table = table_of(**differences)
    if name == "few nats":
        table["se_diff"] = 0.5 * (table["elpd_diff"] < 0)
    found = _simplest(table, KERNELS)
    assert found == table_of(**{simplest: 0}).index[0]
    words = " ".join(_sentences(table, KERNELS, found))
    for part in parts:
        assert part in words
    assert ("predicts best" in words) == (len(table) > 1)
    assert "unreliable" not in words and "chains" not in words


def test_chains_on_few_rankings_start_without_a_search(monkeypatch):
    def starts():
        models = default_models(TWO, (1, 3)).values()
        return [x._settings.init for x in models if isinstance(x, SliceGibbs)]

    assert starts() == ["nearest"] * 3
    monkeypatch.setattr(comparison, "_MANY_ROWS", TWO.num_rows)
    assert starts() == [None] * 3


def test_a_model_whose_place_is_not_clear_is_not_said_to_be_worse():
    table = table_of(m2=0, m1=-30, p1=-40)
    words = " ".join(_sentences(table, KERNELS, table.index[0], ["Mallows (1 group)"]))
    assert (
        "Mallows (2 groups) predicts best. Whether Mallows (1 group) predicts clearly worse"
        in words
    )
    assert "give more time (minutes=)" in words and "all others" not in words
    assert "groups or more" not in words and "Plackett–Luce models predict clearly worse" in words

    def fit(elpd, error, rhat):
        known = dict.fromkeys(comparison._Fit._fields[2:], np.nan) | {"error": error, "rhat": rhat}
        return comparison._Fit(None, np.full(20, elpd / 20), **known)

    best = fit(0.0, 0.1, 1.0)
    assert comparison._place(fit(-30.0, 40.0, 1.9), best) == (False, False)
    assert comparison._place(fit(-30.0, np.nan, 1.9), best) == (True, False)  # one chain
    assert comparison._place(fit(-30.0, 1.0, 1.9), best) == (True, False)
    assert comparison._place(fit(-10.0, 1.0, 1.0), best) == (False, True)


def test_warnings_of_the_sentences():
    table = table_of(m2=0, m1=-2, p1=-90)
    table["bad_k"] = [0.05, 0.0, 0.5]
    table["rhat"] = [1.0, 1.3, 2.0]
    words = " ".join(_sentences(table, KERNELS, "Mallows (1 group)"))
    assert "unreliable for more than 1% of the judges under Mallows (2 groups)" in words
    assert "The chains of Mallows (1 group) do not agree" in words
    assert "(kfold=5)" in words and "(minutes=)" in words
    assert "Plackett–Luce (1 group) do" not in words  # it is out of the question anyway


def test_the_evidence_beside_the_predictions():
    """Of two items one population has the evidence 14! 6! / 21!, whichever way it is fitted."""
    names = list(default_models(TWO, (1, 2), evidence=True))
    assert names == [
        "Mallows (1 group)",
        "Mallows (2 groups)",
        "Plackett–Luce (1 group)",
        "Plackett–Luce (2 groups)",
    ]
    choices = Rankings.from_orderings([[0], [1]], num_items=2, choice_sets=np.ones((2, 2), bool))
    assert list(default_models(choices, (1,), evidence=True)) == names[2:3]
    kernel = TemperedMixture("plackett-luce", 1, num_temperatures=4)
    found = compare(TWO, {"one": kernel, "other": PlackettLuceGibbs()}, **QUICK)
    exact = gammaln(15) + gammaln(7) - gammaln(22)
    row = found.table.loc["one"]
    assert row["log_evidence"] == pytest.approx(exact, abs=max(5 * row["se_evidence"], 0.05))
    assert 0 < row["se_evidence"] < 0.1
    assert np.isnan(found.table.loc["other", "log_evidence"])
    assert "evidence" not in found.in_words  # that of one model alone says nothing


def test_what_is_said_of_evidence():
    table = table_of(m2=0, m1=-2, p2=-3)
    table["log_evidence"], table["se_evidence"] = [-100.0, -104.0, -102.0], 0.1
    words = " ".join(_sentences(table, KERNELS, "Mallows (1 group)"))
    said = "Mallows (2 groups) has the largest evidence; not much less: Plackett–Luce (2 groups)."
    assert said in words
    table["se_evidence"] = [2.0, 2.0, 2.0]  # 4 nats may be chance
    assert "not much less: " in (words := " ".join(_sentences(table, KERNELS, "Mallows (1 group)")))
    assert "Mallows (1 group), Plackett–Luce (2 groups)." in words
    table["se_evidence"], table["log_evidence"] = 0.1, [-100.0, -104.0, np.nan]
    words = " ".join(_sentences(table, KERNELS, "Mallows (1 group)"))
    assert "Mallows (2 groups) has the largest evidence." in words


def test_models_and_their_names():
    assert list(default_models(TWO, (1, 2))) == [
        "Mallows (1 group)",
        "Mallows (2 groups)",
        "Mallows (any number of groups)",
        "Plackett–Luce (1 group)",
        "Plackett–Luce (2 groups)",
    ]
    offered = Rankings.from_orderings(
        [[0, 1]], num_items=3, choice_sets=np.array([[True, True, False]])
    )
    assert list(default_models(offered, (1,))) == ["Plackett–Luce (1 group)"]
    for rankings in (offered, TWO):
        with pytest.raises(ValueError, match="num_components must be a positive whole number"):
            default_models(rankings, (0,))
    assert model_name(SliceGibbs()) == "Mallows (any number of groups)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(models=[]), "no models"),
        (dict(models=[PlackettLuceGibbs(), PlackettLuceGibbs(shape=2.0)]), "give them names"),
        (dict(models=[GammaProcessPlackettLuceGibbs()]), "not GammaProcessPlackettLuceGibbs"),
        (dict(models=["mallows"]), "not str"),
        (dict(models={"x": CollapsedGibbs}), "models to compare are kernels"),
        (dict(kfold=1), "kfold must be 0, or 2 to 20"),
        (dict(kfold=21), "kfold must be 0, or 2 to 20"),
        (dict(kfold=2.5), "kfold"),
    ],
)
def test_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        compare(TWO, **arguments)


def test_too_few_draws(tmp_path, monkeypatch, capsys):
    """Of a run whose time is over at once."""
    monkeypatch.setattr(Run, "until", lambda run, **_: run.extend(2))
    monkeypatch.setattr("numpyro_rankings.cli.compare.use_compilation_cache", lambda: None)
    with pytest.raises(TooFewDrawsError, match=r"too few draws in 0\.1 minutes: raise minutes"):
        compare(TWO, [PlackettLuceGibbs()], minutes=0.1, num_chains=2)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.csv").write_text("judge,item,rank\na,x,1\na,y,2\nb,y,1\nb,x,2\n")
    command = "compare two.csv --models plackett-luce --components 1 --chains 2 --minutes 0.1"
    assert main(command.split()) == 2
    assert "too few draws in 0.1 minutes: raise --minutes" in capsys.readouterr().err


def fabricated():
    table = table_of(m2=0, m=-1, m1=-30, p1=-20)
    table["elpd"], table["se"] = -1000 + table["elpd_diff"], 20.0
    more = dict(groups=1.5, seconds=3.0, first_outside=0.1, pairs_outside=0.2)
    table = table.assign(**more).rename_axis("model")
    groups = {
        name: (name.split(" (")[0], getattr(KERNELS[name], "num_components", None))
        for name in table.index
    }
    return Comparison(table, {}, {}, groups, table.index[0], "What the table says.")


def test_the_figure():
    ax = plot_comparison(fabricated())
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(labels) == ["Mallows", "Mallows, any number", "Plackett–Luce"]
    mallows = next(
        line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_marker() == "o"
    )
    np.testing.assert_array_equal(mallows.get_xdata(), [1, 2])
    np.testing.assert_array_equal(mallows.get_ydata(), [-30, 0])


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.csv").write_text("judge,item,rank\na,x,1\na,y,2\nb,y,1\n")
    asked = {}

    def quick(rankings, models, **options):
        asked.update(options, models=list(models), rankings=rankings)
        for name in (*models, next(iter(models))):
            options["before_model"](name)
        options["after_model"]("Mallows (1 group)", {"elpd": -1030.0, "se": 20.0, "seconds": 3.0})
        return fabricated()

    monkeypatch.setattr("numpyro_rankings.report.comparison.compare", quick)
    monkeypatch.setattr("numpyro_rankings.cli.compare.use_compilation_cache", lambda: None)
    command = ["compare", "two.csv", "--components", "1,2,4", "--models", "mallows", "--seed", "3"]
    assert main([*command, "--minutes", "5", "--out", "out"]) == 0
    shown = capsys.readouterr()
    assert asked["models"] == [*(M.format(x) for x in ("1 group", "2 groups", "4 groups")), ANY]
    assert len(asked["rankings"]) == 2 and (asked["minutes"], asked["kfold"]) == (5, 0)
    assert asked["key"] == jax.random.key(3)
    assert "Mallows (1 group): elpd -1,030.0 ± 20.0, 3 s" in shown.err
    # without a terminal too it says what it is doing
    said = "comparing 4 models, each for at most 5 minutes"
    assert said in shown.err
    assert "Mallows (2 groups): compiling and sampling, model 2 of 4\n" in shown.err
    assert "Mallows (1 group): sampling on, because its place is not clear\n" in shown.err
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert "Mallows (1 group) -1,030.0 -30.0 ± 5.0 1.5 1.000 0.0% 10%, 20% 3 s" in lines
    assert "What the table says." in lines
    assert lines[lines.index("To fit Mallows (2 groups):") + 1] == (
        "numpyro-rankings fit two.csv --seed 3 --components 2"
    )
    table = pd.read_csv("out/comparison.csv", index_col="model")
    assert table.loc["Mallows (1 group)", "elpd"] == -1030
    assert (tmp_path / "out" / "comparison.svg").read_text().startswith("<?xml")
    assert main([*command, "--out", "out"]) == 2 and "--force" in capsys.readouterr().err
    assert main([*command, "--out", "out", "--force", "--no-process", "--no-progress"]) == 0
    assert ANY not in asked["models"] and capsys.readouterr().err.count("comparing") == 0
    lines = (f"{judge},{item},{rank}" for judge in range(9) for rank, item in ((1, "x"), (2, "y")))
    (tmp_path / "nine.csv").write_text("judge,item,rank\n" + "\n".join(lines))
    one = "--models mallows --components 2 --no-process --minutes 1".split()
    assert main(["compare", "nine.csv", *one, "--out", "one"]) == 0
    assert "comparing 1 model, for at most 1 minute\n" in capsys.readouterr().err
    assert main(["compare", "nine.csv", "--sample", "5", "--seed", "3", "--out", "some"]) == 0
    shown = capsys.readouterr()
    assert asked["rankings"].num_rankings == 5 and "5 of 9 judges drawn at random" in shown.err
    assert "numpyro-rankings fit nine.csv --sample 5 --seed 3 --components 2" in shown.out
    for wrong, part in (
        (["--models", "borda"], "mallows and plackett-luce"),
        (["--components", "0-2"], "from 1 to 64"),
        (["--components", "many"], "such as 1-6"),
        (["--kfold", "1"], "--kfold must be from 2"),
        (["--kfold", "9"], "--kfold must be at most 2"),
    ):
        assert main(["compare", "two.csv", *wrong, "--out", "new"]) == 2
        assert part in capsys.readouterr().err
