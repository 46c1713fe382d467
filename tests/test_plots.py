"""What the figures show, read back from their axes."""

import numpy as np
import numpyro.distributions as dist
import pytest
from matplotlib.figure import Figure

from numpyro_rankings.decays import exponential_decay, identity_decay, window_decay
from numpyro_rankings.plots import plot_decay, plot_partition_in_time, plot_rank_probabilities


def names_of(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_rank_probabilities_in_the_order_of_the_consensus():
    draws = [[2, 0, 1]] * 3 + [[0, 2, 1]]
    ax = plot_rank_probabilities(draws, ["Ann", "Bob", "Cid"])
    assert names_of(ax.yaxis) == ["Cid", "Ann", "Bob"]
    shown = [[0.75, 0.25, 0], [0.25, 0.75, 0], [0, 0, 1]]
    np.testing.assert_allclose(ax.images[0].get_array(), shown)
    ax = plot_rank_probabilities(draws, ["Ann", "Bob", "Cid"], max_items=2)
    np.testing.assert_allclose(ax.images[0].get_array(), [[0.75, 0.25], [0.25, 0.75]])
    for bad in ([0, 1, 2], np.full((3, 3), -1), np.zeros((0, 3), int)):
        with pytest.raises(ValueError, match="of a cluster that they all have"):
            plot_rank_probabilities(bad, ["Ann", "Bob", "Cid"])


def test_decay_of_a_number():
    ax = plot_decay(exponential_decay(2.0))
    distance, values = ax.lines[0].get_data()
    assert distance[-1] == 8
    np.testing.assert_allclose(values, np.exp(-distance / 2), rtol=1e-5)
    assert not ax.collections
    distance, values = plot_decay(identity_decay(), max_distance=3.0).lines[0].get_data()
    assert distance[-1] == 3 and np.all(values == 1)


def test_decay_of_draws():
    scales = np.arange(1.0, 102.0).reshape(101, 1)
    learned = window_decay(dist.Gamma(1.0, 1.0))
    ax = plot_decay(learned, scales, max_distance=200.0)
    distance, values = ax.lines[0].get_data()
    np.testing.assert_allclose(values, (scales > distance).mean(0), rtol=1e-6)
    band = ax.collections[0].get_paths()[0].vertices
    assert band[band[:, 1] > 0.5, 0].max() == pytest.approx(96, abs=0.6)
    with pytest.raises(ValueError, match="give draws of it"):
        plot_decay(learned)


def test_partition_in_time_by_first_point():
    times = np.array([5.0, 1.0, 7.0, 3.0, 2.0, 9.0])
    labels = np.array([0, 4, 0, 4, 0, 7])
    ax = plot_partition_in_time(times, labels)
    assert names_of(ax.yaxis) == ["1 (2)", "2 (3)", "3 (1)"]
    marks = [sorted(line.get_xdata().tolist()) for line in ax.lines]
    assert marks == [[1, 3], [2, 5, 7], [9]]
    assert len({line.get_marker() for line in ax.lines}) == 3
    few = plot_partition_in_time(times, labels, max_clusters=2)
    assert names_of(few.yaxis) == ["1 (2)", "2 (3)"] and "1 smaller" in few.get_ylabel()
    with pytest.raises(ValueError, match="a time and a label"):
        plot_partition_in_time(times, labels[:3])


def test_axes_that_are_given():
    ax = Figure().subplots()
    assert plot_decay(exponential_decay(1.0), ax=ax) is ax
    assert plot_partition_in_time([0.0, 1.0], [0, 1], ax=ax) is ax
    assert plot_rank_probabilities([[0, 1]], ["a", "b"], ax=ax) is ax
