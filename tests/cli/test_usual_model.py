"""What ``fit`` does where no option says it, and the groups of judges who were not fitted."""

import contextlib
import functools
import itertools
import json
import shutil
from collections import Counter
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from helpers.command_line import SOI, interrupting_after, rows_of, run, without_page
from helpers.fabricated import fabricated_mcmc, with_groups

from numpyro_rankings import PartialOrders, Rankings, read_survey
from numpyro_rankings.cli import fit, several, usual_model
from numpyro_rankings.cli.arguments import UserError
from numpyro_rankings.cli.compare import _options_of
from numpyro_rankings.cli.fit_options import parse_options
from numpyro_rankings.cli.models import AUTO, ModelOptions
from numpyro_rankings.cli.options import RunOptions
from numpyro_rankings.cli.program import make_parser
from numpyro_rankings.cli.session import RunSession, Sampled
from numpyro_rankings.cli.usual_model import usual_options, with_usual
from numpyro_rankings.datasets import simulate_mallows_mixture
from numpyro_rankings.infer import PlackettLuceGibbs, SliceGibbs
from numpyro_rankings.posterior import predictive_checks
from numpyro_rankings.readers.surveys import judges_drawn, with_sample
from numpyro_rankings.report import group_path as module

pytestmark = pytest.mark.usefixtures("usual_signals_of_module")

AUTO_ONLY = {"--components": "auto"}
SOME = {**AUTO_ONLY, "--sample": 2000}


def options_of(text):
    return parse_options(make_parser().parse_args(["fit", "t.soi", *text.split()]))


def table(different, judges):
    """So many different rankings of all 6 items but a few, by so many judges."""
    orders = list(itertools.islice(itertools.permutations(range(6)), different))
    counts = [judges - different + 1, *[1] * (different - 1)]
    return Rankings.from_orderings(orders, num_items=6, counts=counts)


# ---------------------------------------------------------------------------------------------
# The rule
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("different", "judges", "options", "chosen"),
    [
        (50, 50, "", {}),
        (51, 51, "", AUTO_ONLY),
        (51, 101, "", AUTO_ONLY),
        (51, 102, "", {}),
        (500, 1000, "", {}),
        (500, 9000, "", {}),
        (501, 501, "", AUTO_ONLY),
        (501, 2000, "", AUTO_ONLY),
        (501, 2001, "", SOME),
        (720, 30_000, "--sample 300", AUTO_ONLY),
        (720, 30_000, "--sample 9000", AUTO_ONLY),
    ],
)
def test_many_different_rankings_are_fitted_on_ladders(different, judges, options, chosen):
    assert usual_options(options_of(options), table(different, judges)) == chosen


@pytest.mark.parametrize(
    "options",
    [
        "--model mallows",
        "--model plackett-luce",
        "--components dp",
        "--components 3",
        "--components auto",
        "--alpha 1",
        "--nu 1",
        "--r 1",
        "--sampler slice",
        "--sampler beta --approximate",
        "--assignment parallel",
        "--init nearest",
        "--max-clusters 64",
        "--blocs 2",
        "--draws 100",
        "--minutes 4.9",
        "--warmup 50",
    ],
)
def test_an_option_that_says_what_to_fit_is_followed(options):
    given = options_of(options)
    assert usual_options(given, table(720, 9000)) == {}
    assert with_usual(given, {}) == given


def test_other_options_leave_the_choice_to_the_table():
    others = "--minutes 5 --rhat 1.1 --ess 100 --seed 2 --chains 2 --thin 2 --save summary,table"
    others += " --slates s.csv --judge id --about region --layout ranks --force --no-progress"
    for options in (others, "--resume out", "--out here"):
        assert usual_options(options_of(options), table(720, 9000)) == SOME


def test_ladders_are_for_up_to_30_items():
    """Of more, a step has not been timed."""
    few = np.asarray(table(720, 900).orderings)
    for number, chosen in ((30, AUTO_ONLY), (31, {})):
        rest = np.broadcast_to(np.arange(6, number), (720, number - 6))
        rankings = Rankings.from_orderings(np.hstack([few, rest]), num_items=number)
        assert usual_options(options_of(""), rankings) == chosen


def test_a_run_that_goes_on_may_have_less_time():
    options, many = options_of("--minutes 1 --resume out"), table(720, 9000)
    assert usual_options(options, many) == {}
    assert usual_options(options, many, resumes=True) == SOME


def test_survey_weights_have_a_default_of_their_own():
    assert usual_options(options_of("--weight w"), table(720, 9000)) == {}


def test_ladders_are_for_rankings_of_all_items():
    many, options = table(720, 9000), options_of("")
    offered = np.ones((720, 6), bool)
    offered[:, 5] = [order[-1] != 5 for order in np.asarray(many.orderings).tolist()]
    orders = [[x for x in o if x != 5 or is_offered] for o, is_offered in zip(
        np.asarray(many.orderings).tolist(), offered[:, 5], strict=True)]  # fmt: skip
    some_offered = Rankings.from_orderings(orders, num_items=6, choice_sets=offered)
    assert usual_options(options, some_offered) == {}
    assert usual_options(options, PartialOrders.from_rankings(many)) == {}


def test_what_is_chosen_is_as_if_it_were_given():
    usual, given = with_usual(options_of("--seed 2"), SOME), options_of("--components auto")
    assert usual.model == given.model and usual.sample == 2000
    assert with_usual(options_of("--sample 300"), AUTO_ONLY).sample == 300


def test_the_options_of_the_model_are_none_without_one():
    """Otherwise none of them could be told from one that is given."""
    args = make_parser().parse_args(["fit"])
    assert {getattr(args, each.name) for each in fields(ModelOptions)} == {None}


def test_commands_that_compare_proposes_say_that_it_is_a_process():
    models = {"process": SliceGibbs(), "three": SliceGibbs(num_components=3)}
    models["weights"] = PlackettLuceGibbs(num_components=2)
    options = [_options_of(SimpleNamespace(simplest=name), models) for name in models]
    assert options == [
        {"--components": "dp"},
        {"--components": 3},
        {"--model": "plackett-luce", "--components": 2},
    ]


# ---------------------------------------------------------------------------------------------
# Resume, and several files
# ---------------------------------------------------------------------------------------------


def test_a_process_that_is_resumed_stays_one(small, monkeypatch, capsys):
    """Such as one that an earlier version has begun."""
    monkeypatch.setattr(usual_model, "MOST_DIFFERENT", 4)
    options = fit.replace(options_of(""), file="small.soi")
    for resumes, on_ladders, chosen in (
        (True, False, {"--components": "dp"}),
        (True, True, AUTO_ONLY),
        (False, False, AUTO_ONLY),
    ):
        session = SimpleNamespace(resumes=resumes, resumes_ladders=on_ladders)
        read = fit._read(options, session=session)
        assert read.usual == chosen
        assert read.options.model.components == (AUTO if chosen == AUTO_ONLY else None)
        assert ("begun with a Dirichlet process" in capsys.readouterr().err) == (
            resumes and not on_ladders
        )


def test_each_of_several_files_has_the_model_of_its_table(small, monkeypatch):
    monkeypatch.setattr(usual_model, "MOST_DIFFERENT", 4)
    few = SOI.replace("4: 2,1,3\n", "").replace("14: 1,2", "18: 1,2")
    (small / "few.soi").write_text(few.replace("ORDERS: 5", "ORDERS: 4"))
    chosen = []

    def choose(session, model, rankings):
        chosen.append((rankings.num_rows, model.components))
        raise UserError("enough")

    monkeypatch.setattr(fit, "choose_components", choose)
    assert run("fit", "small.soi", "few.soi", "--out", "out") == 2
    assert chosen == [(5, AUTO), (4, None)]


def test_several_files_are_resumed_with_the_model_they_were_begun_with(folder, capsys):
    (folder / "out").mkdir()
    resumed, process = options_of("--resume out"), options_of("--resume out --components dp")

    def begun(options, is_old=False):
        state = {"format": 1, **several._description(options), "files": []}
        if is_old:
            del state["options"]["by_table"]
        (folder / "out" / "fits.json").write_text(json.dumps(state))

    begun(options_of(""))
    assert several._resume(resumed)[1].by_table
    with pytest.raises(UserError, match="was begun without options of the model: leave them out"):
        several._resume(process)
    for is_old in (False, True):
        begun(options_of("--components dp"), is_old)
        assert not several._resume(resumed)[1].by_table
        assert "goes on so (--components dp)" in capsys.readouterr().err
        assert not several._resume(process)[1].by_table
        assert capsys.readouterr().err == ""


# ---------------------------------------------------------------------------------------------
# A whole run of a sample
# ---------------------------------------------------------------------------------------------

ITEMS = ["Ann", "Bob", "Cid", "Dee", "Eva"]
CENTERS = [[0, 1, 2, 3, 4], [4, 2, 3, 0, 1]]
READING = ["--layout", "orders", "--columns", "1,2,3,4,5", "--judge", "id", "--about", "region"]
FIT = ["fit", "wave.csv", *READING, "--chains", "2", "--no-progress"]
ENOUGH = ["--rhat", "9", "--ess", "10"]


def write_wave(path, number):
    """Write judges of two groups, who exchange two neighbours of the center at most."""
    rng = np.random.default_rng(0)
    truth, lines = rng.integers(2, size=number), ["id,region,1,2,3,4,5"]
    for k, group in enumerate(truth.tolist()):
        order, place = list(CENTERS[group]), rng.integers(8)
        if place < 4:
            order[place : place + 2] = order[place : place + 2][::-1]
        lines.append(f"p{k},{'NS'[k % 2]},{','.join(ITEMS[x] for x in order)}")
    path.write_text("\n".join(lines) + "\n")
    return truth


@pytest.fixture
def low_limits(monkeypatch):
    limit_choice(monkeypatch)


def limit_choice(patch):
    patch.setattr(usual_model, "MOST_DIFFERENT", 8)
    patch.setattr(usual_model, "MOST_JUDGES", 60)
    patch.setattr("numpyro_rankings.cli.number.MOST_TRIED", 2)
    quick = functools.partial(module.group_path, num_warmup=30, num_samples=30)
    patch.setattr(module, "group_path", quick)


@pytest.fixture(scope="module")
def begun(tmp_path_factory, one_program, usual_signals_of_module):
    """A folder with a run without an option of the model, which was interrupted, and its truth."""
    folder = tmp_path_factory.mktemp("usual")
    truth = write_wave(folder / "wave.csv", 150)
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        without_page(patch)
        limit_choice(patch)
        interrupting_after(3, patch)
        assert run(*FIT, "--save", "table,xlsx", "--out", "out") == 130
    return folder, truth


@pytest.fixture
def there(begun, folder, plain_page):
    shutil.copytree(begun[0], folder, dirs_exist_ok=True)
    return begun[1]


def test_all_judges_are_put_into_the_groups_of_a_sample(there):
    rows = rows_of("out/assignments.csv")
    assert list(rows[0]) == [
        *("judge", "ranking", "ordering", "region", "cluster", "probability", "fitted")
    ]
    assert [row["judge"] for row in rows] == [f"p{k}" for k in range(150)]
    assert [row["region"] for row in rows] == ["NS"[k % 2] for k in range(150)]
    own = rows_of("wave.csv")
    said = [" > ".join(row[str(k)] for k in range(1, 6)) for row in own]
    assert [row["ordering"] for row in rows] == said
    is_fitted = np.array([row["fitted"] == "yes" for row in rows])
    np.testing.assert_array_equal(np.flatnonzero(is_fitted), judges_drawn(150, 60))
    found = [row["cluster"] for row in rows]
    number = [Counter(np.array(found)[there == k]).most_common(1)[0][0] for k in (0, 1)]
    assert sorted(number) == ["1", "2"]
    right = np.array([row == number[k] for row, k in zip(found, there.tolist(), strict=True)])
    assert right[~is_fitted].mean() > 0.95 and right[is_fitted].mean() > 0.95
    # FILE itself has the same columns
    saved = rows_of("out/table.csv")
    assert list(saved[0]) == [*own[0], "cluster", "probability", "fitted"]
    for name in ("cluster", "fitted"):
        assert [row[name] for row in saved] == [row[name] for row in rows]
    assert Path("out/results.xlsx").exists()
    # they are no items when it is read again
    again = read_survey("out/table.csv", "orders", judge="id", about=["region"])
    assert again.rankings.num_rankings == 150 and again.rankings.num_items == 5


def test_they_are_the_groups_that_assign_finds(there):
    assert run("assign", "out", "wave.csv") == 0
    for row, one in zip(rows_of("out/assignments.csv"), rows_of("wave-groups.csv"), strict=True):
        assert (row["judge"], row["cluster"]) == (one["judge"], one["cluster"])
        assert float(row["probability"]) == pytest.approx(float(one["probability"]), abs=1e-3)


def test_the_page_says_what_was_chosen(there):
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "10 different rankings: fitted as by --components auto --sample 60" in page
    assert "fitted to 60 of 150 judges drawn at random; assignments.csv has the groups" in page
    assert "those of the judges who were drawn" in page
    # and the command with it, so that others that are made of it are right
    assert "--save table,xlsx --out out --components auto --sample 60</code>" in page
    assert "chosen by default" in page and "2-component" in page


@pytest.mark.parametrize("options", ["", "--components auto --sample 60"])
def test_a_run_is_resumed_by_the_same_command(there, low_limits, monkeypatch, capsys, options):
    """Or by the one that says what was chosen, as the screen and the page have it."""

    def raising(*_, **__):
        raise AssertionError("the path is run again")

    monkeypatch.setattr(module, "group_path", raising)
    path = Path("out/path.csv").read_bytes()
    session = RunSession(RunOptions(resume=Path("out")), "command", resumes=True)
    assert session.resumes_ladders
    read, times = fit.read_file, []
    monkeypatch.setattr(fit, "read_file", lambda *x: times.append(1) or read(*x))
    assert run(*FIT, *options.split(), *ENOUGH, "--resume", "out") == 0
    assert len(times) == 1
    told = capsys.readouterr()
    why = "note: 10 different rankings: fitted as by --components auto --sample 60"
    assert (why in told.err) == (options == "")
    assert ("--components dp fits a process to all 150 judges" in told.err) == (options == "")
    assert "Fitted to 60 of 150 judges drawn at random; assignments.csv has" in told.out
    assert "assign out" not in told.out
    assert Path("out/path.csv").read_bytes() == path and len(rows_of("out/assignments.csv")) == 150


def test_an_unfinished_process_is_none_of_ladders(small, plain_page, one_program, monkeypatch):
    interrupting_after(2, monkeypatch)
    command = "fit small.soi --model plackett-luce --chains 2 --warmup 8 --draws 60 --out out"
    assert run(*command.split()) == 130
    session = RunSession(RunOptions(resume=Path("out")), "command", resumes=True)
    assert not session.resumes_ladders


# ---------------------------------------------------------------------------------------------
# Draws that are made up
# ---------------------------------------------------------------------------------------------


@pytest.fixture
def sampled(monkeypatch):
    """Lets the command write results of made-up draws of 40 of 60 judges, without a sampler."""
    monkeypatch.setattr(predictive_checks, "posterior_predictive_checks", lambda *_: None)
    without_page(monkeypatch)

    def make(number, num_components=None):
        data = simulate_mallows_mixture(jax.random.key(1), 60, 5, 5, number, 2.0, items=ITEMS)
        rows = np.asarray(data.rankings.expand().orderings)
        lines = ["id,1st,2nd,3rd,4th,5th"]
        lines += [f"{k:03},{','.join(ITEMS[i] for i in row)}" for k, row in enumerate(rows)]
        Path("lists.csv").write_text("\n".join(lines) + "\n")
        survey = with_sample(read_survey("lists.csv", "orders", judge="id"), 40)
        mcmc = fabricated_mcmc(survey.rankings, num_components, chains=2, draws=20)
        if number > 1:
            items = survey.rankings.items
            centers = np.array([items.index(name) for name in ITEMS])[np.asarray(data.centers)]
            labels = np.asarray(data.assignments)[judges_drawn(60, 40)]
            labels = labels[np.argsort(survey.label_index)]
            mcmc = with_groups(mcmc, data._replace(centers=centers, assignments=labels))
        monkeypatch.setattr(fit, "_sample", lambda *_: Sampled(mcmc, "length", (60, 60)))

    return make


LISTS = ["fit", "lists.csv", "--layout", "orders", "--judge", "id", "--sample", "40"]


def test_blocs_of_all_judges(sampled):
    sampled(6)
    assert run(*LISTS, "--save", "table", "--no-progress", "--out", "out") == 0
    rows, saved = rows_of("out/assignments.csv"), rows_of("out/table.csv")
    columns = ["cluster", "bloc", "probability", "bloc_probability", "fitted"]
    assert len(rows) == 60 and list(rows[0])[-5:] == list(saved[0])[-5:] == columns
    assert Counter(row["fitted"] for row in rows) == {"yes": 40, "no": 20}
    assert run("assign", "out", "lists.csv") == 0
    for row, one in zip(rows, rows_of("lists-groups.csv"), strict=True):
        assert [row["cluster"], row["bloc"]] == [one["cluster"], one["bloc"]]
    # the columns that were added are those of the last time
    shutil.copy("out/table.csv", "again.csv")
    command = ["fit", "again.csv", *LISTS[2:], "--save", "table", "--no-progress", "--out", "two"]
    assert run(*command) == 0
    assert list(rows_of("two/table.csv")[0]) == list(saved[0])


def test_all_judges_are_in_the_only_group(sampled, capsys):
    sampled(1, 1)
    options = ["--components", "1", "--no-progress", "--out", "out"]
    assert run(*LISTS, *options) == 0
    rows = rows_of("out/assignments.csv")
    assert len(rows) == 60 and {row["cluster"] for row in rows} == {"1"}
    assert Counter(row["fitted"] for row in rows) == {"yes": 40, "no": 20}
    drawn = {*judges_drawn(60, 40).tolist()}
    assert [row["fitted"] == "yes" for row in rows] == [k in drawn for k in range(60)]
    out = " ".join(capsys.readouterr().out.split())
    assert "Fitted to 40 of 60 judges drawn at random; assignments.csv has all, in one group" in out


def test_all_judges_that_are_fitted_have_no_column_of_it(sampled):
    sampled(6)
    survey = read_survey("lists.csv", "orders", judge="id")
    mcmc = fabricated_mcmc(survey.rankings, chains=2, draws=20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "_sample", lambda *_: Sampled(mcmc, "length", (60, 60)))
        command = [*LISTS[:-2], "--sample", "60", "--no-progress", "--out", "out"]
        assert run(*command) == 0
    assert len(rows_of("out/assignments.csv")) == 60
    assert "fitted" not in rows_of("out/assignments.csv")[0]
