"""Who is in the groups, by what is known about the judges."""

import numpy as np
import pandas as pd
import pytest

from numpyro_rankings.posterior.judges import (
    NO_ANSWER,
    OTHERS,
    as_numbers,
    by_group,
    texts_of_judges,
)

GROUPS = np.array([0, 0, 0, 1, 1, 2])


def test_shares_of_categories():
    found = by_group("region", ["N", "N", "", "S", "N", "S"], GROUPS, 4)
    assert found.headings == ["N", "S", NO_ANSWER] and not found.is_number
    expected = [[2 / 3, 0, 1 / 3], [0.5, 0.5, 0], [0, 1, 0], [np.nan] * 3, [0.5, 2 / 6, 1 / 6]]
    np.testing.assert_allclose(found.values, expected)


def test_shares_and_quartiles_of_judges_with_weights():
    weights = np.array([1.0, 3.0, 0.0, 2.0, 0.5, 0.0])
    found = by_group("region", ["N", "S", "S", "S", "N", "S"], GROUPS, 3, weights)
    headings = np.argsort(found.headings)  # N and S
    expected = [[1 / 4, 3 / 4], [0.2, 0.8], [np.nan] * 2, [1.5 / 6.5, 5 / 6.5]]
    np.testing.assert_allclose(found.values[:, headings], expected)
    assert found.counts[:, headings].tolist() == [[1, 2], [1, 1], [0, 1], [2, 4]]  # of judges
    texts, weights = [str(k) for k in range(20, 29)], np.array([0, 1, 1, 1, 7, 1, 1, 1, 1.0])
    found = by_group("age", texts, np.zeros(9, int), 1, weights)
    assert found.values[0].tolist() == [24, 24, 25]  # at 7, 3.5 and 10.5 of 14
    copies = np.repeat(texts, weights.astype(int))  # judges of weight 7 are as seven judges
    plain = by_group("age", [*copies], np.zeros(14, int), 1)
    np.testing.assert_array_equal(plain.values[0], found.values[0])
    of_eight = by_group("age", texts[:8], np.zeros(8, int), 1)
    assert of_eight.values[0].tolist() == [23.5, 21.5, 25.5]


def test_rare_categories_are_put_together():
    found = by_group("town", [*"aabbccddeeffgh"], np.zeros(14, int), 1)
    assert found.headings == [*"abcdef", OTHERS]
    assert found.values[0, -1] == pytest.approx(2 / 14)


def test_quartiles_of_numbers():
    texts = ["20", "30,5", "40", "", "50", "60", "70", "80", "90"]
    found = by_group("age", texts, np.array([0] * 4 + [1] * 5), 2)
    assert found.is_number
    np.testing.assert_allclose(found.values[0], [30.5, 20, 40])
    np.testing.assert_allclose(found.values[1], [70, 60, 80])


@pytest.mark.parametrize("name", ["precinct", "Batch ID", "ward_no", "Voting District"])
def test_numbers_of_precincts_are_names(name):
    texts = [str(k) for k in range(9)] + ["8"]
    assert as_numbers(name, texts) is None
    assert as_numbers(f"{name} size", texts) is not None
    found = by_group(name, texts, np.zeros(10, int), 1)
    assert not found.is_number and found.headings[0] == "8"


@pytest.mark.parametrize("text", ["007", "1,000", "2.500", "5E3", "x", "inf"])
def test_texts_that_are_no_numbers(text):
    assert as_numbers("age", [str(k) for k in range(9)]) is not None
    assert as_numbers("age", [*(str(k) for k in range(9)), text]) is None
    assert as_numbers("age", ["1", "2", "1"]) is None  # a few codes


def test_missing_values_are_no_answers():
    values = ["N", None, np.nan, pd.NA, "", pd.NaT]
    assert texts_of_judges({"region": values}, 6) == {"region": ["N", *[""] * 5]}
    numbers = {"age": pd.Series([34, None, 2.5]), "code": np.array([1, 2, 3])}
    assert texts_of_judges(numbers, 3) == {"age": ["34", "", "2.5"], "code": ["1", "2", "3"]}


@pytest.mark.parametrize("number", [2, 4])
def test_columns_of_another_number_of_judges_are_refused(number):
    words = f"the column 'region' about the judges has 3 entries, and there are {number} judges"
    with pytest.raises(ValueError, match=words):
        texts_of_judges({"region": ["N", "S", "S"]}, number)
