"""Covariates of items, and of judges, by a data frame."""

import numpy as np
import pandas as pd
import pytest
from helpers.refusals import assert_refused

from numpyro_rankings import Rankings, RankingsError, item_covariates, judge_covariates
from numpyro_rankings.readers import Survey

ITEMS = ["tea", "coffee", "cocoa", "maté", "water"]


def table(**columns):
    own = {
        "item": ["water", "maté", "tea", "cocoa", "coffee"],
        "price": [0.0, 4, 2, 3, 1],
        "kind": ["plain", "leaf", "leaf", "bean", "bean"],
        "cold": [0, 0, 1, 0, 0],
    }
    return pd.DataFrame(own | columns)


def test_rows_are_matched_by_name():
    found = item_covariates(table(), "price + kind + cold", items=ITEMS)
    assert found.names == [
        "price",
        "kind: leaf",
        "kind: plain",
        "cold",
    ]  # bean is as common as leaf
    assert found.items == tuple(ITEMS)
    price = (np.array([2, 1, 3, 4, 0]) - 2) / np.sqrt(2)
    np.testing.assert_allclose(found.values[:, 0], price, atol=1e-6)
    np.testing.assert_allclose(found.values[:, 1] + 0.4, [1, 0, 0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(found.values[:, 2] + 0.2, [0, 0, 0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(found.values[:, 3] + 0.2, [1, 0, 0, 0, 0], atol=1e-6)
    assert found.steps == [
        "1.414 more",
        "leaf instead of bean",
        "plain instead of bean",
        "1 instead of 0",
    ]


def test_covariates_of_judges_are_made_by_the_same_rules():
    lists = [np.roll(range(5), k) for k in range(5)]
    rankings, frame = Rankings.from_orderings(lists, num_items=5), table()
    of_items = item_covariates(frame, items=frame["item"], item="item")
    of_judges = judge_covariates(rankings, frame, "~ price + `kind` + cold + price")
    assert of_judges.covariates.columns == tuple(of_items.names)
    assert of_judges.covariates.terms == of_items.terms
    cells = np.asarray(of_judges.covariates.cells)[of_judges.judges]
    np.testing.assert_allclose(of_judges.covariates.design[cells], of_items.values, atol=1e-6)


def test_names_may_be_in_the_index_of_a_frame():
    expected = item_covariates(table(), "price + kind", items=ITEMS)
    named, unnamed = table().set_index("item"), table().set_index("item").rename_axis(None)
    numbers = table(item=[5, 4, 1, 3, 2]).set_index("item")
    for frame, items, item in (
        (named, ITEMS, None),
        (unnamed, ITEMS, None),
        (named, ITEMS, "item"),
        (numbers, [1, 2, 3, 4, 5], None),
        (table().iloc[[4, 0, 3, 1, 2]], ITEMS, None),  # an index that only counts rows
    ):
        found = item_covariates(frame, "price + kind", items=items, item=item)
        np.testing.assert_array_equal(found.values, expected.values)
    with pytest.raises(RankingsError, match=r"row 3: 'te' is none of the items .*mean 'tea'"):
        item_covariates(named.rename({"tea": "te"}), "price", items=ITEMS)
    values, names = expected.of_others(unnamed.iloc[:2])
    assert names == ["water", "maté"]
    np.testing.assert_allclose(values, expected.values[[4, 3]], atol=1e-6)


CODED = np.array([-0.25, -1.25, 1.75, -0.25]) / np.sqrt(19 / 16)  # 2, 1, 4, 2


def test_judges_of_a_survey_are_matched_by_the_index_of_a_frame():
    lists = [[2, 0, 1], [0, 1, 2], [2, 0, 1], [0, 2, 1]]
    rankings, rows = Rankings.from_orderings(lists, num_items=3).merged()
    label_index = np.argsort(np.argsort(rows, kind="stable"))
    judges = ["d", "a", "7", "b"]
    survey = Survey(rankings, label_index, judges, {"age": list("2142")}, "orders", [])
    frame = pd.DataFrame({"age": [1, 2, 4, 2], "id": ["a", "b", 7, "d"]}).set_index("id")
    by_label = {"age": [[2, 1, 4, 2][k] for k in np.argsort(label_index)]}
    plain = judge_covariates(rankings, by_label, "age")
    for given in (frame, frame.rename_axis(None), survey.about, frame.loc[["d", "a", 7, "b"]]):
        found = judge_covariates(survey, given, "age")
        np.testing.assert_array_equal(found.judges, plain.judges[label_index])
        np.testing.assert_array_equal(found.covariates.cells, plain.covariates.cells)
        of_judges = found.covariates.design[np.asarray(found.covariates.cells)[found.judges]]
        np.testing.assert_allclose(of_judges[:, 0], CODED, atol=1e-5)
        tables = np.asarray(found.rankings.expand().orderings)[found.judges]
        np.testing.assert_array_equal(tables[:, :2], np.array(lists)[:, :2])
    for others, message in (
        (frame.rename({"b": "e"}), "row 2: 'e' is none of the judges that were read"),
        (frame.iloc[:3], "has no row for 'd'"),
        (frame.iloc[[0, 1, 2, 3, 0]], "rows 1 and 5: both are 'a'"),
    ):
        with pytest.raises(RankingsError, match=message):
            judge_covariates(survey, others, "age")
    # without names of the judges the rows count
    nameless = survey._replace(judges=None)
    with pytest.raises(RankingsError, match="3 values, but there are 4 rankings"):
        judge_covariates(nameless, frame.iloc[:3], "age")


def test_numbers_as_text_are_numbers():
    found = item_covariates(table(price=["0", "4", " 2", "3", "1"]), "price", items=ITEMS)
    plain = item_covariates(table(), "price", items=ITEMS)
    assert found.terms == plain.terms
    np.testing.assert_array_equal(found.values, plain.values)


@pytest.mark.parametrize("formula", ["~ kind+price", "`price` + kind + price", None])
def test_formulas(formula):
    frame = table().drop(columns="cold") if formula is None else table()
    found = item_covariates(frame, formula, items=ITEMS)
    assert {one.name for one in found.terms} == {"price", "kind"} and len(found.names) == 3


def test_names_may_be_in_any_column_and_columns_may_have_odd_names():
    frame = table().rename(columns={"item": "drink", "price": "price + tax"})[
        ["kind", "price + tax", "drink"]
    ]
    found = item_covariates(frame, "price + tax", items=ITEMS, item="drink")
    assert found.names == ["price + tax"]
    numbered = pd.DataFrame({0: [1, 2, 3], 1: [5.0, 6.0, 8.0]})
    assert item_covariates(numbered, items=[3, 1, 2]).values[:, 0].argmax() == 0


def test_other_items_are_on_the_same_scale():
    found = item_covariates(table(), "price + kind", items=ITEMS)
    new = pd.DataFrame({"item": ["chai", "ice"], "kind": ["leaf", "plain"], "price": [4, 6]})
    values, names = found.of_others(new)
    assert names == ["chai", "ice"]
    expected = [[np.sqrt(2), 0.6, -0.2], [2 * np.sqrt(2), -0.4, 0.8]]
    np.testing.assert_allclose(values, expected, atol=1e-6)
    assert_refused(
        found.of_others,
        (
            "'leaves' in the row of 'chai' is none of its levels; did you mean 'leaf'",
            new.assign(kind=["leaves", "plain"]),
        ),
        ("no column 'price'", new.drop(columns="price")),
        ("'price' has no value in the row of 'ice'", new.assign(price=[4, None])),
        ("'price' must be numbers", new.assign(price=[4, "x"])),
        error=RankingsError,
    )


def test_what_is_refused():
    def make(frame, formula=None, items=ITEMS):
        item_covariates(frame, formula, items=items)

    assert_refused(
        make,
        ("has no row for 'tea'$", table().iloc[[0, 1, 3, 4]]),
        (
            "row 3: 'te' is none of the items that are ranked; did you mean 'tea'",
            table(item=["water", "maté", "te", "cocoa", "coffee"]),
        ),
        ("rows 1 and 3: both are 'water'", table(item=["water", "maté", "water", "tea", "coffee"])),
        (
            "no column 'prize' of the items, only price, kind, cold; did you mean 'price'",
            table(),
            "prize",
        ),
        ("'price:kind' is an interaction", table(), "price:kind"),
        (
            "'price' has no value in the row of 'maté' .1 of 5 rows.: fill it in",
            table(price=[1, None, 2, 3, 4]),
        ),
        ("'kind' has no value in the row of 'tea'", table(kind=["a", "b", " ", "a", "b"])),
        ("'price' is 2 in all rows", table(price=[2] * 5)),
        ("'kind' has texts, another one for each item", table(kind=list("abcde"))),
        (
            "'tax' follows from those before it, 'price', 'kind: leaf', 'kind: plain'",
            table(tax=[1.0, 9, 5, 7, 3]),
            "price + kind + tax",
        ),
        (
            "'cold' follows from those before it",
            table(kind=["b", "b", "p", "b", "b"]),
            "kind + cold",
        ),
        ("'price': inf in the row of 'maté' is no number", table(price=[1, np.inf, 2, 3, 4])),
        ("two columns called 'price'", table().rename(columns={"cold": "price"})),
        ("no column but that with their names", table()[["item"]]),
        error=RankingsError,
    )
