"""Profiles of VoteKit and pref_voting, by the code that docs/elections.rst shows.

Neither is needed by the package or its other tests: ``pip install votekit pref_voting``.
"""

import re
from pathlib import Path

import pandas as pd
import pytest

from numpyro_rankings import Rankings

DOCS = Path(__file__).parent.parent.parent / "docs" / "elections.rst"
RANKINGS = Rankings.from_orderings(
    [[2, 0], [1], [0, 1, 2]], items=["Cid", "Ann", "Bob", "Dee"], counts=[3, 1, 2]
)


def run(library, **names):
    """Run the code of a section of the page that goes one way, and return what it has made."""
    text = DOCS.read_text(encoding="utf-8").partition(f"\n{library}\n~~~")[2].partition("\n~~~")[0]
    to_rankings, from_rankings = re.findall(r"code-block:: python\n\n((?:   .*\n|\n)+)", text)
    code = to_rankings if "profile" in names else from_rankings
    exec("\n".join(line.removeprefix("   ") for line in code.splitlines()), names)
    return names


def as_shares(rankings):
    """How many rankings there are of each list of names."""
    frame = rankings.unique().to_dataframe("orders", count="count")
    return {tuple(x for x in row if pd.notna(x)): k for *row, k in frame.itertuples(index=False)}


@pytest.mark.slow
def test_votekit_as_the_page_shows():
    votekit = pytest.importorskip("votekit")
    there = run("VoteKit", rankings=RANKINGS)["profile"]
    assert there.df["Weight"].sum() == 6 and set(there.candidates) == set(RANKINGS.items)
    back = run("VoteKit", profile=there)["rankings"]
    assert as_shares(back) == as_shares(RANKINGS) and set(back.items) == set(RANKINGS.items)
    ballots = [
        votekit.RankBallot(ranking=[{"Ann"}, set(), {"Bob"}], weight=2),
        votekit.RankBallot(ranking=[{"Bob"}, {"Ann", "Cid"}], weight=1),
    ]
    profile = votekit.RankProfile(ballots=ballots, candidates=["Ann", "Bob", "Cid"])
    assert as_shares(run("VoteKit", profile=profile)["rankings"]) == {
        ("Ann", "Bob"): 2,
        ("Bob",): 1,
    }


@pytest.mark.slow
def test_pref_voting_as_the_page_shows():
    profiles = pytest.importorskip("pref_voting.profiles_with_ties")
    there = run("pref_voting", rankings=RANKINGS)["profile"]
    assert there.num_voters == 6 and set(there.candidates) == set(RANKINGS.items)
    back = run("pref_voting", profile=there)["rankings"]
    assert as_shares(back) == as_shares(RANKINGS) and set(back.items) == set(RANKINGS.items)
    profile = profiles.ProfileWithTies(
        [{0: 1, 1: 3}, {1: 1, 0: 2, 2: 2}],
        rcounts=[2, 1],
        candidates=[0, 1, 2],
        cmap={0: "Ann", 1: "Bob", 2: "Cid"},
    )
    assert as_shares(run("pref_voting", profile=profile)["rankings"]) == {
        ("Ann", "Bob"): 2,
        ("Bob",): 1,
    }
