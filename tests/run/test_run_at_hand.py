"""A run at the prompt: what it says of itself, and that it gives its store back."""

import pytest
from helpers.toy_kernel import DATA, Autoregressive, toy_run

from numpyro_rankings import Run, StoreError, open_run
from numpyro_rankings.run.goals import Check

pytestmark = pytest.mark.usefixtures("usual_signals")


def test_a_run_says_how_far_it_is(tmp_path, monkeypatch):
    with toy_run(store=tmp_path / "a.run", num_chains=2, burn_in="auto") as run:
        assert repr(run) == "Run(Autoregressive, 2 chains, 0 draws each)"
        run.extend(1)
        assert repr(run) == "Run(Autoregressive, 2 chains, 1 draw each with the burn-in)"
        run.extend(1199)
        assert repr(run) == "Run(Autoregressive, 2 chains, 1,200 draws each with the burn-in)"
        check = run.check()
        figures = f"R-hat {check.rhat:.3f}", f"ESS {check.ess:,.0f}"
        kept, first = 1200 - run.first_draw, run.first_draw
        assert first in (150, 300, 600) and len(run.get_samples()["mu"]) == 2 * kept
        kept_in_words = f"{kept:,} draws each after a burn-in of {first}"
        assert repr(run) == f"Run(Autoregressive, 2 chains, {kept_in_words}, {', '.join(figures)})"
        run.extend(5)
        assert repr(run) == (
            "Run(Autoregressive, 2 chains, 1,205 draws each with the burn-in, "
            f"{figures[0]} at draw 1,200, {figures[1]} at draw 1,200)"
        )
    stored = open_run(tmp_path / "a.run")
    assert repr(stored) == "StoredRun(Autoregressive, 2 chains, 1,205 draws each with the burn-in)"
    check = Check.of(stored.diagnostics())
    first = stored.first_draw
    assert f"2 chains, {1205 - first:,} draws each after a burn-in of {first}, " in repr(stored)
    assert repr(stored).endswith(f"R-hat {check.rhat:.3f}, ESS {check.ess:,.0f})")
    monkeypatch.setattr(type(stored), "_diagnose_anew", None)
    assert "R-hat" in repr(stored)  # nothing was computed for it


def test_a_run_in_its_warmup_and_one_of_a_single_chain():
    run = toy_run(num_warmup=8, num_chains=1, burn_in=0.2)
    run._make_chunk(1)
    warmup = f"{run.num_sweeps} sweep{'s' if run.num_sweeps > 1 else ''} of warm-up"
    assert run.num_draws == 0 < run.num_sweeps
    assert repr(run) == f"Run(Autoregressive, 1 chain, {warmup})"
    run.extend(100)
    kept, ess = "80 draws each after a burn-in of 20", run.check().ess
    assert repr(run) == f"Run(Autoregressive, 1 chain, {kept}, ESS {ess:,.0f})"


@pytest.mark.parametrize("stored", (True, False))
def test_the_end_of_with_gives_the_store_back(stored, tmp_path):
    store = tmp_path / "a.run" if stored else None
    with toy_run(store=store) as run:
        run.extend(4)
        assert isinstance(run, Run)
    assert len(run.get_samples()["mu"]) == 4 * run.num_chains
    with pytest.raises((ValueError, StoreError), match="closed"):
        run.extend(1)
    if stored:
        with Run.resume(store, Autoregressive(), DATA, burn_in=0.0) as again:
            again.extend(1)
        assert again.num_draws == 5


def test_an_error_gives_the_store_back_too(tmp_path):
    with pytest.raises(ZeroDivisionError), toy_run(store=tmp_path / "a.run") as run:
        run.extend(4)
        _ = 1 / 0
    assert Run.resume(tmp_path / "a.run", Autoregressive(), DATA).num_draws == 4
    run.close()  # a second time does no harm
