"""Files of elections: ``.blt``, Scottish councils, and cast vote records of NIST."""

import copy
import json

import pytest
from helpers.readers import joined, write
from hypothesis import given, settings
from hypothesis import strategies as st

from numpyro_rankings import Rankings, RankingsError
from numpyro_rankings.readers import json_lists, read_rankings, read_survey, write_blt
from numpyro_rankings.readers.ballots import BallotCounts

# ---------------------------------------------------------------------------------------------
# .blt
# ---------------------------------------------------------------------------------------------

BLT = """# a comment
4 2 # candidates and seats
-2

3 1 3 4 0
1 4 1=3 2 0   # two at a rank
2 - 3 2 1 0
1 0
1 3 3 4 0
0 # end of the ballots
"Adam"
"Basil" # who withdrew
"Cha # rlotte"
"Do ""D"" nald"
"Title"
"""
BLT_ITEMS = ("Adam", "Cha # rlotte", 'Do "D" nald')
BLT_VARIANTS = {
    "as it is": BLT,
    "Windows": BLT.replace("\n", "\r\n"),
    "no line end": BLT.rstrip("\n"),
    "no title": BLT.replace('"Title"\n', ""),
    "a byte order mark": "\ufeff" + BLT,
    "blanks and tabs": BLT.replace("3 1 3 4 0", "   3\t1  3 4\t0 "),
    "commas at the end": BLT.replace("4 0\n", "4 0,\n"),
    "no 0 at the end of a line": BLT.replace("3 1 3 4 0", "3 1 3 4"),
    "several on a line": BLT.replace("3 1 3 4 0\n", "1 1 3 4 0 2 1 3 4 0 "),
    "the end on a line of ballots": BLT.replace("4 0\n0 #", "4 0 0 #"),
    "names on the line of the end": BLT.replace("0 # end of the ballots\n", "0 "),
    "withdrawn twice": BLT.replace("-2\n", "-2 -2\n"),
    "more strings after the title": BLT + '"source"\n"comment"\n',
    "names on one line": BLT.replace('"Adam"\n"Basil" # who withdrew\n"Cha', '"Adam" "Basil" "Cha'),
    "names without quotes": BLT.replace('"Adam"', "Adam").replace('"Basil"', "Basil"),
}


@pytest.mark.parametrize("how", BLT_VARIANTS)
def test_blt(tmp_path, how):
    survey = read_survey(write(tmp_path, BLT_VARIANTS[how], "election.blt"))
    assert survey.rankings.items == BLT_ITEMS
    adam, charlotte, donald = BLT_ITEMS
    full = " ".join(BLT_ITEMS)
    assert joined(survey) == [full] * 3 + [donald] + [f"{charlotte} {adam}"] * 2 + [
        f"{charlotte} {donald}"
    ]
    assert survey.ballots == BallotCounts(8, 1, 0, 1, 2, 0, 1, 0, 0)
    assert "'Basil' has withdrawn, and is taken off the ballots" in survey.notes
    assert survey.judges is None and survey.items_about is None


def test_rules_of_blt(tmp_path):
    path = write(tmp_path, BLT, "election.blt")
    survey = read_survey(path, overvote="skip", skipped=0, repeated="stop", max_ranks=2)
    adam, charlotte, donald = BLT_ITEMS
    assert joined(survey) == [f"{adam} {charlotte}"] * 3 + [donald, charlotte]
    assert survey.ballots.ended_by_skipped == 2 and survey.ballots.emptied == 2


def test_a_tie_with_a_withdrawn_candidate_is_none(tmp_path):
    path = write(tmp_path, BLT.replace("1=3 2", "1=2 3"), "election.blt")
    assert joined(read_survey(path))[3] == " ".join((BLT_ITEMS[2], BLT_ITEMS[0], BLT_ITEMS[1]))


def test_ballots_for_withdrawn_candidates_alone(tmp_path):
    text = BLT.replace("3 1 3 4 0\n", "3 1 3 4 0\n2 2 0\n1 - 2 - 0\n1 - 0\n")
    survey = read_survey(write(tmp_path, text, "election.blt"))
    assert survey.ballots.cast == 12 and survey.ballots.blank == 5
    note = "'Basil' has withdrawn, and is taken off the ballots, which leaves 3 ballots blank"
    assert note in survey.notes


def test_ids_of_ballots(tmp_path):
    path = tmp_path / "election.blt"
    text = '3 1\n(a 1) 1 1 2 0\n(b-2) 1 3 0\n0\n"A"\n"B"\n"C"\n'
    path.write_text(text)
    survey = read_survey(path)
    assert survey.judges == ["a 1", "b-2"] and joined(survey) == ["A B", "C"]
    assert survey.rows.tolist() == [2, 3]
    path.write_text(text.replace("(b-2)", "(a 1)"))
    assert read_survey(path).judges is None
    path.write_text(text.replace("(b-2) ", ""))
    survey = read_survey(path)
    assert survey.judges is None
    assert "the ids of the ballots are left out, because 1 ballot has none" in survey.notes


def test_parties_beside_names_and_names_in_comments(tmp_path):
    path = tmp_path / "ward.blt"
    ballots = "2 1\n5 1 2 0\n1 2 0\n0\n"
    path.write_text(ballots + '"Ann ABLE" "Green"\n"Bob BEST" "Green"\n"Ward 1"')
    survey = read_survey(path)
    assert survey.rankings.items == ("Ann ABLE", "Bob BEST")
    assert survey.items_about == {"party": ["Green", "Green"]}
    path.write_text(
        ballots + "# ALTERNATIVE NAME 1: Ann ABLE (Grn)\n# ALTERNATIVE NAME 2: Bob (Ind)\nWard 1"
    )
    assert read_survey(path).rankings.items == ("Ann ABLE (Grn)", "Bob (Ind)")


def test_blt_under_another_extension(tmp_path):
    path = write(tmp_path, BLT, "election.txt")
    assert read_rankings(path).items == BLT_ITEMS
    path.write_text("1st\t2nd\na\tb\nb\ta\n")
    assert read_rankings(path).items == ("a", "b")
    path.write_text("4\t2\n1\t2\n2\t1\n")  # a table of ranks of the items 4 and 2
    assert read_rankings(path, "ranks").items == ("4", "2")


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "out.blt"
    rankings = Rankings.from_orderings(
        [["c", "a"], ["b, B."], ["c", "a"]], items=["a", "b, B.", "c", "d # 4"], counts=[3, 1, 2]
    )
    rankings.to_blt(path, seats=2, title="An election")
    assert path.read_text().splitlines()[:2] == ["4 2", "5 3 1 0"]
    assert path.read_text().endswith('"d # 4"\n"An election"\n')
    assert read_rankings(path) == rankings.unique()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"items": ["a", 'b"', "c", "d"]}, "has a quotation mark"),
        ({"items": ["a", "b\nx", "c", "d"]}, "cannot represent"),
        ({"choice_sets": [[True, True, True, False]]}, "cannot represent choice sets"),
        ({"seats": 5}, "seats is a number from 1 to 4"),
    ],
)
def test_what_blt_cannot_represent_is_not_written(tmp_path, change, message):
    options = {"items": ["a", "b", "c", "d"]} | change
    seats = options.pop("seats", 1)
    rankings = Rankings.from_orderings([[0, 1]], **options)
    with pytest.raises(RankingsError, match=message):
        write_blt(rankings, tmp_path / "out.blt", seats=seats)
    assert not (tmp_path / "out.blt").exists()


BROKEN_BLT = {
    "empty": ("", "1: the file is empty"),
    "no sizes": (BLT.replace("4 2 #", "four two #"), "2: expected the numbers of candidates"),
    "one candidate": ("1 1\n3 1 0\n0\nA\n", "1: a ranking needs at least 2 candidates"),
    "no ballots": ('2 1\n0\n"A"\n"B"\n', "2: there are no ballots"),
    "withdrawn outside": (BLT.replace("-2\n", "-7\n"), "3: the withdrawn candidate 7 is outside"),
    "all withdrawn": (
        BLT.replace("-2\n", "-2 -1 -3\n"),
        "a ranking needs at least 2 candidates who",
    ),
    "withdrawn late": (BLT.replace("\n1 0\n1", "\n-3\n1"), "8: '-3' withdraws a candidate"),
    "no end": ("2 1\n3 1 2 0\n1 2 0\n", "3: the ballots do not end"),
    "names at once": ('2 1\n3 1 2 0\n"A"\n"B"\n', "3: expected a ballot, got '\"A\"'"),
    "a fraction": (BLT.replace("3 1 3 4 0", "1.5 1 3 4 0"), "5: the weight 1.5 is not a whole"),
    "no weight": (BLT.replace("3 1 3 4 0", "3=1 3 4 0"), "5: expected the weight of a ballot"),
    "outside": (BLT.replace("3 1 3 4 0", "3 1 9 4 0"), "5: candidate 9 is outside 1..4"),
    "no number": (BLT.replace("3 1 3 4 0", "3 1 x 4 0"), "5: expected the number of a candidate"),
    "half a tie": (BLT.replace("1=3", "1="), "6: expected the number of a candidate.*'1='"),
    "an open id": (BLT.replace("3 1 3 4 0", "(a 3 1 0"), "5: the id of the ballot has no"),
    "few names": ("3 1\n2 1 2 0\n0\nA\nB\n", "5: the first line says 3 candidates, but 2 are"),
    "same names": ("2 1\n2 1 2 0\n0\nA\nA\n", "5: two candidates have the name 'A'"),
    "no name": ('2 1\n2 1 2 0\n0\n"A"\n""\n"T"\n', "5: a candidate has no name"),
}


@pytest.mark.parametrize("name", BROKEN_BLT)
def test_broken_blt(tmp_path, name):
    text, message = BROKEN_BLT[name]
    refused(tmp_path / "broken.blt", text, message)


def refused(path, text, message, **options):
    path.write_text(text)
    with pytest.raises(RankingsError, match=f"{path.name}:? ?{message}") as error:
        read_survey(path, **options)
    assert "\n" not in str(error.value)


# ---------------------------------------------------------------------------------------------
# Scottish councils
# ---------------------------------------------------------------------------------------------

COUNCIL = """3,2,
12,1,
5,3,1,2,
2,2,3,
"Candidate 1","Ann Able","Green (Gr)",
"Candidate 2","Bob, Best","Independent (Ind)",
"Candidate 3","Cid Chair","Green (Gr)",
"Ward 4 - Hill","""


@pytest.mark.parametrize("suffix", [".csv", ".txt"])
def test_a_council(tmp_path, suffix):
    path = tmp_path / f"ward{suffix}"
    path.write_text(COUNCIL)
    survey = read_survey(path)
    assert survey.rankings.items == ("Ann Able", "Bob, Best", "Cid Chair")
    assert joined(survey)[11:14] == ["Ann Able", *["Cid Chair Ann Able Bob, Best"] * 2]
    assert survey.items_about == {"party": ["Green (Gr)", "Independent (Ind)", "Green (Gr)"]}
    assert survey.ballots == BallotCounts(19, *[0] * 8)
    assert survey.rows[-1] == 4


def test_a_council_and_its_blt_agree(tmp_path):
    (tmp_path / "a.csv").write_text(COUNCIL)
    read_rankings(tmp_path / "a.csv").to_blt(tmp_path / "b.blt")
    assert read_rankings(tmp_path / "a.csv") == read_rankings(tmp_path / "b.blt")


BROKEN_COUNCILS = {
    "one candidate": (COUNCIL.replace("3,2,\n", "1,1,\n"), "1: a ranking needs at least 2"),
    "a word": (COUNCIL.replace("5,3,1", "5,Cid,1"), "3: expected a count and the numbers"),
    "no count": (COUNCIL.replace("5,3,1", "0,3,1"), "3: the count of the ballots is 0; expected a"),
    "outside": (COUNCIL.replace("5,3,1", "5,4,1"), "3: candidate 4 is outside 1..3"),
    "no ballots": ("3,2,\n" + COUNCIL[COUNCIL.index('"Cand') :], "2: there are no ballots"),
    "one too few": (COUNCIL.replace("3,2,\n", "4,2,\n"), "8: the first row says 4 candidates"),
    "in another order": (COUNCIL.replace("Candidate 2", "Candidate 4"), "6: expected candidate 2"),
    "same name": (COUNCIL.replace("Cid Chair", "Ann Able"), "7: two candidates have the name"),
}


@pytest.mark.parametrize("name", BROKEN_COUNCILS)
def test_broken_councils(tmp_path, name):
    refused(tmp_path / "broken.csv", *BROKEN_COUNCILS[name])


# ---------------------------------------------------------------------------------------------
# Cast vote records
# ---------------------------------------------------------------------------------------------


def position(rank, **more):
    return {"@type": "CVR.SelectionPosition", "HasIndication": "yes", "Rank": rank} | more


def record(number, selections, **more):
    """A record whose first snapshot is not the current one."""
    contest = {
        "ContestId": "c1",
        "CVRContestSelection": [
            {"ContestSelectionId": key, "SelectionPosition": positions}
            for key, positions in selections.items()
        ],
    }
    old = {"@id": f"old-{number}", "CVRContest": [{"ContestId": "c1", "CVRContestSelection": []}]}
    new = {"@id": f"new-{number}", "CVRContest": [{"ContestId": "c2"}, contest]}
    return {
        "CurrentSnapshotId": f"new-{number}",
        "CVRSnapshot": [old, new],
        "UniqueId": f"ballot {number}",
        "BallotStyleUnitId": f"unit-{number % 2}",
    } | more


REPORT = {
    "@type": "CVR.CastVoteRecordReport",
    "GpUnit": [{"@id": "unit-0", "Name": "Hill"}, {"@id": "unit-1", "Name": "Dale"}],
    "Party": [{"@id": "p", "Name": "Green"}],
    "Election": [
        {
            "Candidate": [
                {"@id": "a", "Name": "Ann", "PartyId": "p"},
                {"@id": "b", "Name": "Bob"},
                {"@id": "o", "Name": "overvote"},
            ],
            "Contest": [
                {
                    "@id": "c1",
                    "Name": "Mayor",
                    "ContestSelection": [
                        {"@id": "s-a", "CandidateIds": ["a"]},
                        {"@id": "s-w", "IsWriteIn": True},
                        {"@id": "s-b", "CandidateIds": ["b"]},
                        {"@id": "s-o", "CandidateIds": ["o"]},
                    ],
                },
                {"@id": "c2", "Name": "Clerk", "ContestSelection": []},
            ],
        }
    ],
    "CVR": [
        record(1, {"s-b": [position(1)], "s-a": [position(2)]}),
        record(2, {"s-a": [position(1), position(3)], "s-b": [position(1, HasIndication="no")]}),
        record(3, {"s-a": [position(2)], "s-b": [position(2)]}),
        record(4, {"s-o": [position(1)], "s-a": [position(2)]}),
        record(5, {"s-w": [position(1)], "s-b": [position(3, IsAllocable="no")]}),
        record(6, {"s-b": [position(1, CVRWriteIn={"Text": "Zed"})], "s-a": [position("2")]}),
        record(7, {}),
    ],
}


def test_cast_vote_records(tmp_path):
    path = write(tmp_path, json.dumps(REPORT), "cvr.json")
    survey = read_survey(path, contest="Mayor", overvote="skip")
    assert survey.rankings.items == ("Ann", "Bob", "Write-in")
    assert joined(survey) == ["Bob Ann", "Ann", "Ann", "Write-in", "Write-in Ann"]
    assert survey.judges == [f"ballot {k}" for k in (1, 2, 4, 5, 6)]
    assert survey.about == {"precinct": ["Dale", "Hill", "Hill", "Dale", "Hill"]}
    assert survey.items_about == {"party": ["Green", "", ""]}
    assert survey.ballots == BallotCounts(7, 1, 0, 2, 0, 0, 1, 0, 1)
    survey = read_survey(path, contest="c1", write_ins="skip")
    assert survey.rankings.items == ("Ann", "Bob")
    assert joined(survey) == ["Bob Ann", "Ann", "Ann"]
    assert survey.items_about == {"party": ["Green", ""]}


def test_ranks_of_selections_and_the_only_contest(tmp_path):
    report = copy.deepcopy(REPORT)
    report["Election"][0]["Contest"].pop()
    chosen = [{"ContestSelectionId": "s-b", "Rank": 1}, {"ContestSelectionId": "s-a", "Rank": 2}]
    report["CVR"] = [report["CVR"][0]]
    report["CVR"][0]["CVRSnapshot"][1]["CVRContest"][1]["CVRContestSelection"] = chosen
    survey = read_survey(write(tmp_path, json.dumps(report), "cvr.json"))
    assert joined(survey) == ["Bob Ann"] and survey.rankings.items == ("Ann", "Bob")


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("is_sorted", [False, True])  # the records come first then
def test_no_more_of_a_file_than_some_records_is_in_memory(tmp_path, monkeypatch, indent, is_sorted):
    path = write(tmp_path, json.dumps(REPORT, indent=indent, sort_keys=is_sorted), "cvr.json")
    whole = read_survey(path, contest="Mayor")
    longest = max(len(json.dumps(REPORT[key], indent=6)) for key in ("Election", "GpUnit"))
    monkeypatch.setattr(json_lists, "_CHARACTERS", 41)
    monkeypatch.setattr(json_lists, "_LONGEST", longest)  # shorter than the list of records
    in_parts = read_survey(path, contest="Mayor")
    assert in_parts.rankings == whole.rankings and in_parts.judges == whole.judges
    assert in_parts.about == whole.about and in_parts.notes == whole.notes
    assert in_parts.items_about == whole.items_about
    monkeypatch.setattr(json_lists, "_LONGEST", 100)
    with pytest.raises(RankingsError, match=r"cvr.json:\d+: this is not JSON"):
        read_survey(path, contest="Mayor")


def test_a_file_of_records_that_is_cut_off_is_refused(tmp_path, monkeypatch):
    text = json.dumps(REPORT, indent=1)
    start = text.index('"CVR": [') + 8
    monkeypatch.setattr(json_lists, "_CHARACTERS", 100)
    for end in range(start, text.rindex("]"), 53):
        (tmp_path / "cut.json").write_text(text[:end])
        with pytest.raises(RankingsError, match=r"cut.json:\d+: this is not JSON: ") as error:
            read_survey(tmp_path / "cut.json", contest="Mayor")
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("size", [7, 1000])
def test_where_a_file_in_one_line_is_not_json(tmp_path, monkeypatch, size):
    monkeypatch.setattr(json_lists, "_CHARACTERS", size)
    for before in ("", "\n\n "):
        text = before + json.dumps(REPORT)
        place = text.index('"CVRSnapshot"')
        (tmp_path / "odd.json").write_text(text[:place] + "?" + text[place:])
        where = f"at character {place + 1 - before.count(chr(10))} of the line; if the file is cut"
        with pytest.raises(RankingsError, match=where):
            read_survey(tmp_path / "odd.json", contest="Mayor")


def test_rounds_of_a_count_are_not_what_was_cast(tmp_path):
    report = copy.deepcopy(REPORT)
    for cast in report["CVR"]:
        snapshot = cast["CVRSnapshot"][1]
        of_round = copy.deepcopy(snapshot) | {"@id": f"{snapshot['@id']}-round-2"}
        for selection in of_round["CVRContest"][1]["CVRContestSelection"]:
            for one in selection["SelectionPosition"]:
                one["IsAllocable"] = "no"
        cast["CVRSnapshot"].append(of_round)
        cast["CurrentSnapshotId"] = of_round["@id"]
    (tmp_path / "cvr.json").write_text(json.dumps(REPORT))
    (tmp_path / "counted.json").write_text(json.dumps(report))
    counted = read_survey(tmp_path / "counted.json", contest="Mayor")
    assert counted.rankings == read_rankings(tmp_path / "cvr.json", contest="Mayor")
    assert any(x.startswith("the rounds of a count are in 7 records") for x in counted.notes)


def broken(change):
    report = copy.deepcopy(REPORT)
    change(report)
    return json.dumps(report)


def first_position(report):
    snapshot = report["CVR"][0]["CVRSnapshot"][1]
    return snapshot["CVRContest"][1]["CVRContestSelection"][0]["SelectionPosition"][0]


def first_vote(report):
    return report["CVR"][0]["CVRSnapshot"][1]["CVRContest"][1]["CVRContestSelection"][0]


BROKEN_RECORDS = {
    "no JSON": (json.dumps(REPORT, indent=1)[:-3], "404: this is not JSON: expected "),
    "something else": ("[1, 2]", "expected a cast vote record report"),
    "no contest is named": (json.dumps(REPORT), "which of the 2 contests.*'Mayor', 'Clerk'"),
    "no such contest": (json.dumps(REPORT), "there is no contest 'Judge'; there are 'Mayor'"),
    "no snapshot": (
        broken(lambda x: x["CVR"][2].update(CurrentSnapshotId="?")),
        "record 3: the current snapshot '.' is there 0 times",
    ),
    "no list": (broken(lambda x: x["CVR"][2].update(CVRSnapshot=7)), "record 3: expected a list"),
    "no rank": (
        broken(lambda x: first_position(x).pop("Rank")),
        "record 1: expected a rank.*got None; is this a contest of ranked choice",
    ),
    "rank 0": (broken(lambda x: first_position(x).update(Rank=0)), "record 1: expected a rank"),
    "no selection": (
        broken(lambda x: first_vote(x).update(ContestSelectionId="s-z")),
        "record 1: the contest has no selection 's-z'",
    ),
    "no candidate": (
        broken(lambda x: x["Election"][0]["Candidate"].pop(1)),
        "the selection 's-b' of the contest 'Mayor' has no candidate",
    ),
    "same name": (
        broken(lambda x: x["Election"][0]["Candidate"][1].update(Name="Ann")),
        "the contest 'Mayor': two candidates have the name 'Ann'",
    ),
    "nobody votes": (broken(lambda x: x.update(CVR=[])), "no record has the contest 'Mayor'"),
}


@pytest.mark.parametrize("name", BROKEN_RECORDS)
def test_broken_cast_vote_records(tmp_path, name):
    contest = {"no contest is named": None, "no such contest": "Judge"}.get(name, "Mayor")
    options = {} if contest is None else {"contest": contest}
    refused(tmp_path / "broken.json", *BROKEN_RECORDS[name], **options)


# ---------------------------------------------------------------------------------------------
# Files that are damaged anywhere
# ---------------------------------------------------------------------------------------------


def paths_in(value, path=()):
    """The places of all values in a JSON object."""
    children = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in children:
        yield (*path, key)
        if isinstance(child, dict | list):
            yield from paths_in(child, (*path, key))


ODD_VALUES = [None, 0, -1, True, 3.5, "x", "1", [], {}, [1], ["a"], [{}], {"@id": []}]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(paths_in(REPORT))), st.sampled_from(ODD_VALUES))
def test_a_record_with_an_odd_value_is_read_or_refused(tmp_path_factory, place, value):
    def change(report):
        for key in place[:-1]:
            report = report[key]
        report[place[-1]] = value

    path = tmp_path_factory.getbasetemp() / "odd.json"
    path.write_text(broken(change))
    read_or_refused(path, contest="Mayor")


def read_or_refused(path, **options):
    try:
        survey = read_survey(path, **options)
    except RankingsError as error:
        assert path.name in str(error) and "\n" not in str(error)
    else:
        assert len(survey.label_index) == survey.rankings.num_rankings


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([("odd.blt", BLT), ("odd.csv", COUNCIL)]),
    st.integers(0, 200),
    st.integers(0, 3),
    st.text('0123456789 -=(),"#\n\tx\u00e9', max_size=3),
)
def test_a_text_with_odd_letters_is_read_or_refused(tmp_path_factory, file, start, length, text):
    name, content = file
    start %= len(content)
    path = tmp_path_factory.getbasetemp() / name
    changed = content[:start] + text + content[start + length :]
    path.write_text(changed, encoding="utf-8")
    read_or_refused(path)


# ---------------------------------------------------------------------------------------------
# Options and names
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "votes"}, "layout does not go with a .blt file"),
        ({"judge": "id"}, "judge does not go with a .blt file"),
        ({"contest": "Mayor"}, "contest does not go with a .blt file"),
        ({"overvote": "ignore"}, "overvote is 'stop' or 'skip'"),
        ({"aliases": {"Adam": ""}}, "an alias and the name of its item are needed"),
    ],
)
def test_options_that_a_file_does_not_have(tmp_path, options, message):
    path = write(tmp_path, BLT, "election.blt")
    with pytest.raises(RankingsError, match=message):
        read_survey(path, **options)


def test_the_columns_of_cast_vote_records_need_no_option(tmp_path):
    path = write(tmp_path, json.dumps(REPORT), "cvr.json")
    with pytest.raises(RankingsError, match="precincts and batches are kept without it; leave"):
        read_survey(path, contest="Mayor", about="precinct")


def test_an_alias_does_not_change_the_party_of_its_item(tmp_path):
    survey = read_survey(write(tmp_path, COUNCIL, "ward.csv"), aliases={"Bob, Best": "Ann Able"})
    assert dict(zip(survey.rankings.items, survey.items_about["party"], strict=True)) == {
        "Ann Able": "Green (Gr)",
        "Cid Chair": "Green (Gr)",
    }


def test_aliases_of_a_file(tmp_path):
    path, pairs = tmp_path / "election.blt", tmp_path / "aliases.csv"
    path.write_text(BLT)
    pairs.write_text('alias,item\n"Do ""D"" nald",Adam\nZed,Adam\n')
    survey = read_survey(path, aliases=pairs)
    assert survey.rankings.items == ("Adam", "Cha # rlotte")
    assert joined(survey)[:3] == ["Adam Cha # rlotte"] * 3
    assert any("names are read as others" in note for note in survey.notes)
    assert any(
        "1 of 2 names in aliases is not in the file, such as 'Zed'" in x for x in survey.notes
    )
    pairs.write_text("a,b\nx,y\n")
    with pytest.raises(RankingsError, match=r"aliases.csv:1: a file of aliases has two columns"):
        read_survey(path, aliases=pairs)
