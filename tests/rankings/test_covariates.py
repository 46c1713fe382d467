"""Covariates of items by a data frame."""

import numpy as np
import pandas as pd
import pytest
from helpers.refusals import assert_refused

from numpyro_rankings import RankingsError, item_covariates

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
    assert found.names == ["price", "kind: leaf", "kind: bean", "cold"]
    assert found.items == tuple(ITEMS)
    price = (np.array([2, 1, 3, 4, 0]) - 2) / np.sqrt(2)
    np.testing.assert_allclose(found.values[:, 0], price, atol=1e-6)
    np.testing.assert_array_equal(found.values[:, 1], [1, 0, 0, 1, 0])  # water is of the base
    np.testing.assert_array_equal(found.values[:, 2], [0, 1, 1, 0, 0])
    np.testing.assert_array_equal(found.values[:, 3], [1, 0, 0, 0, 0])
    steps = [one.step for one in found.covariates]
    assert steps == [
        "1.414 more",
        "leaf instead of plain",
        "bean instead of plain",
        "1 instead of 0",
    ]


@pytest.mark.parametrize("formula", ["~ kind+price", "`price` + kind + price", None])
def test_formulas(formula):
    frame = table().drop(columns="cold") if formula is None else table()
    found = item_covariates(frame, formula, items=ITEMS)
    assert {one.column for one in found.covariates} == {"price", "kind"} and len(found.names) == 3


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
    np.testing.assert_allclose(values, [[np.sqrt(2), 1, 0], [2 * np.sqrt(2), 0, 0]], atol=1e-6)
    assert_refused(
        found.of_others,
        (
            "'leaves' of 'chai' is none of the levels of the fitted items; did you mean 'leaf'",
            new.assign(kind=["leaves", "plain"]),
        ),
        ("no column 'price'", new.drop(columns="price")),
        ("'price' has no value for the item 'ice'", new.assign(price=[4, None])),
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
        ("no column 'prize'; did you mean 'price'", table(), "prize"),
        ("no column 'price:kind'", table(), "price:kind"),
        (
            "column 'price' has no value for the item 'maté': fill it in",
            table(price=[1, None, 2, 3, 4]),
        ),
        ("column 'kind' has no value for the item 'tea'", table(kind=["a", "b", " ", "a", "b"])),
        ("column 'price' is '2' for all items", table(price=[2] * 5)),
        ("column 'kind' has texts, another one for each item", table(kind=list("abcde"))),
        (
            "'tax' follows from those before it, 'price', 'kind: leaf', 'kind: bean'",
            table(tax=[1.0, 9, 5, 7, 3]),
            "price + kind + tax",
        ),
        (
            "'cold' follows from those before it",
            table(kind=["b", "b", "p", "b", "b"]),
            "kind + cold",
        ),
        ("is not finite", table(price=[1, np.inf, 2, 3, 4])),
        ("two columns called 'price'", table().rename(columns={"cold": "price"})),
        ("no column but that with their names", table()[["item"]]),
        error=RankingsError,
    )
