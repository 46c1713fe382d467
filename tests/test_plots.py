"""What the figures show, read back from their axes."""

import base64
import io
import itertools

import matplotlib
import numpy as np
import numpyro.distributions as dist
import pytest
import xarray as xr
from helpers.figures import assert_inside
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from numpyro_rankings import plots
from numpyro_rankings.links.decays import exponential_decay, identity_decay, window_decay
from numpyro_rankings.plots import (
    plot_coclustering,
    plot_concentration,
    plot_consensus,
    plot_decay,
    plot_group_path,
    plot_num_clusters,
    plot_partition_in_time,
    plot_posterior_sbc,
    plot_predictive_check,
    plot_rank_probabilities,
    plot_trace,
    plot_weights,
)
from numpyro_rankings.posterior import cluster_profiles
from numpyro_rankings.posterior.calibration import PosteriorSBC
from numpyro_rankings.posterior.predictive_checks import PredictiveCheck
from numpyro_rankings.rankings import Rankings
from numpyro_rankings.report.page import embedded_figure

NAMES = ("Phone $199 or $299", "<b>a_1^2</b>", r"$\nonsense$", "a name as long as this is cut off")
LABELS = np.array([[0, 0, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [0, 0, 0, 1, 1]])


@pytest.fixture(scope="module")
def data():
    """Two chains of two draws, in which two points are with two others in one draw only."""
    variables = {
        "assignments": (("chain", "draw", "ranking"), LABELS.reshape(2, 2, 5)),
        "num_clusters": (("chain", "draw"), np.array([[2, 2], [2, 3]])),
        "largest_sizes": (("chain", "draw", "largest"), np.arange(8).reshape(2, 2, 2)),
        "top_weights": (("chain", "draw", "top_item"), np.arange(8).reshape(2, 2, 2) / 9),
    }
    posterior = xr.Dataset(variables, {"top_item": ["Ann [A]", "Bob"], "draw": [0, 1]})
    return xr.DataTree.from_dict({"posterior": posterior})  # ArviZ 1.x; 0.23 has the like


@pytest.fixture(scope="module")
def profiles():
    rankings = Rankings.from_orderings([[0, 1, 2, 3]] * 5, num_items=4, items=NAMES)
    sizes = np.array([np.bincount(labels, minlength=2) for labels in LABELS])
    centers = np.array([[2, 0, 1, 3], [3, 2, 1, 0]])
    swapped = (LABELS[:, 0] == 1)[:, None, None]
    draws = {
        "assignments": LABELS,
        "cluster_sizes": sizes,
        "center": np.where(swapped, centers[::-1], centers),
        "concentration": np.where(swapped, [[1.0], [2.0]], [[2.0], [1.0]]) * np.ones(3),
    }
    return cluster_profiles(draws, rankings, LABELS[0])


@pytest.fixture(scope="module")
def weights_profile():
    rankings = Rankings.from_orderings([[0, 1, 2, 3]], num_items=4, items=NAMES)
    draws = {"weights": np.array([[0.1, 0.2, 0.3, 0.4], [0.1, 0.4, 0.2, 0.3]]), "log_joint": [0, 0]}
    return cluster_profiles(draws, rankings)[0]


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
        with pytest.raises(ValueError, match="of a cluster that all draws have"):
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
    with pytest.raises(ValueError, match="finite"):
        plot_partition_in_time(np.full(len(labels), np.nan), labels)
    with pytest.raises(ValueError, match="a time and a label"):
        plot_partition_in_time(times, labels[:3])


def test_consensus_and_its_names(profiles):
    large, small = profiles  # of the labels 1 and 0 of the first draw
    assert (large.label, small.label) == (1, 0)
    ax = plot_consensus(small, NAMES)
    assert names_of(ax.yaxis) == [
        NAMES[2],
        NAMES[0],
        NAMES[1],
        "a name as long as this\nis cut off",
    ]
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1, 2, 3, 4])
    ax = plot_consensus(large, NAMES, max_items=2)
    assert len(ax.get_yticks()) == 2 and names_of(ax.yaxis)[1] == NAMES[2]
    # a formula would hide the dollars, or be none and fail to be drawn
    assert not any(text.get_parse_math() for text in ax.get_yticklabels())
    ax.figure.canvas.draw()


def test_concentrations_of_two_clusters(profiles):
    ax = plot_concentration(profiles)
    lines = [container.lines[0] for container in ax.containers]
    np.testing.assert_allclose([line.get_ydata() for line in lines], [[1.0] * 3, [2.0] * 3])
    assert len({line.get_marker() for line in lines}) == 2  # not told apart by colour alone
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["group 1", "group 2"]
    assert len(plot_concentration(profiles, max_clusters=1).containers) == 1


def test_weights_the_largest_first(weights_profile):
    ax = plot_weights(weights_profile, NAMES)
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [0.35, 0.3, 0.25, 0.1])
    assert names_of(ax.yaxis)[1:] == [NAMES[1], NAMES[2], NAMES[0]]


def test_predictive_check_the_largest_shares_first():
    observed, interval = np.array([0.2, 0.5, 0.3]), np.array([[0.1, 0.3], [0.4, 0.6], [0.2, 0.4]])
    ax = plot_predictive_check(PredictiveCheck(observed, observed, interval, observed), "abc", 2)
    assert names_of(ax.yaxis) == ["b", "c"]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [0.5, 0.3])
    assert {"20%", "40%"} <= set(names_of(ax.xaxis))


def test_coclustering_in_the_order_of_the_clusters(data):
    ax = plot_coclustering(data, LABELS[0])
    shown = ax.images[0].get_array()  # the largest cluster first: points 2, 3, 4, 0, 1
    np.testing.assert_allclose(shown[0], [1, 0.75, 0.75, 0.25, 0.25])
    np.testing.assert_allclose(shown, shown.T)
    assert names_of(ax.yaxis) == ["1", "2"] and ax.get_xlabel() == "rankings, by group"
    other = plot_coclustering(data, LABELS[0], order=[0, 1])  # as profiles may number them
    np.testing.assert_allclose(other.images[0].get_array()[0], [1, 1, 0.25, 0, 0])
    for bad in ([0], [0, 0, 1]):
        with pytest.raises(ValueError, match="must name each label of the reference once"):
            plot_coclustering(data, LABELS[0], order=bad)
    few = plot_coclustering(data, LABELS[0], max_rankings=2)
    assert few.images[0].get_array().shape == (2, 2) and "2 of 5 rankings" in few.get_xlabel()


def test_number_of_clusters(data):
    bars = plot_num_clusters(data).patches
    assert [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in bars] == [
        (pytest.approx(2), 0.75),
        (pytest.approx(3), 0.25),
    ]


def test_group_path_names_the_numbers_that_are_probable():
    probability = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.1, 0.8, 0.1], [0.0, 0.4, 0.6]])
    path = xr.Dataset(
        {"probability": (("effective_size", "num_components"), probability)},
        {"effective_size": [2.0, 10.0, 50.0, 250.0], "num_components": [1, 2, 3]},
    )
    ax = plot_group_path(path)
    assert [text.get_text() for text in ax.texts] == ["1", "2", "3"]
    assert [text.xy[0] for text in ax.texts] == [2.0, 50.0, 250.0]
    assert (ax.get_xlim(), ax.get_ylim(), ax.get_xscale()) == ((2.0, 250.0), (0.0, 1.0), "log")


def test_ranks_of_posterior_sbc_are_seen_beside_their_band():
    ranks = {"log_joint": np.arange(20) % 5, "largest_sizes[1]": np.zeros(20, int)}
    found = PosteriorSBC(ranks, {"log_joint": 1.0, "largest_sizes[1]": 1e-6}, 4, 20)
    ax = plot_posterior_sbc(found)
    lines = [line.get_ydata().tolist() for line in ax.lines[:2]]
    assert lines == [[0, 0, 0, 0], [16, 12, 8, 4]]
    low, high = found.band()[0] - 4  # all of rank 0 are outside
    assert low < 0 < high < 16
    assert ax.get_title(loc="left") == "size of the largest group"


def test_trace_of_each_chain(data):
    lines = plot_trace(data).lines
    assert [line.get_ydata().tolist() for line in lines] == [[2, 2], [2, 3]]
    ax = plot_trace(data, "largest_sizes[2]")
    assert ax.lines[1].get_ydata().tolist() == [5, 7]
    assert ax.get_title(loc="left") == "size of the 2nd largest group"
    np.testing.assert_allclose(
        plot_trace(data, "top_weights[Ann [A]]").lines[0].get_ydata()[1], 2 / 9
    )
    assert len(plot_trace(data, max_draws=1).lines[0].get_ydata()) == 1
    # side by side, each with its mean
    (first, second), means = lines, [c.get_segments()[0] for c in lines[0].axes.collections]
    assert first.get_xdata().max() < second.get_xdata().min()
    assert [mean[0, 1] for mean in means] == [2, 2.5]
    assert all(m[0, 0] == x.get_xdata()[0] for m, x in zip(means, lines, strict=True))
    assert names_of(ax.xaxis) == ["1", "2"] and "chain" in ax.get_xlabel()
    for name, message in {
        "foo": "has no variable 'foo'; it has assignments, num_clusters",
        "largest_sizes[3]": "no entry '3'; it has 1, 2",
        "num_clusters[1]": "no entry '1'; it has no entries",
        "top_weights[Cid]": r"no entry 'Cid'; it has Ann \[A\], Bob",
        "largest_sizes": r"name one, such as largest_sizes\[1\]",
    }.items():
        with pytest.raises(ValueError, match=message):
            plot_trace(data, name)


def test_what_is_no_draws_and_no_profile(data, profiles, weights_profile):
    for plot in (plot_coclustering, plot_num_clusters, plot_trace):
        with pytest.raises(TypeError, match=r"must be what to_inference_data.* got dict"):
            plot({"assignments": LABELS})
    with pytest.raises(TypeError, match="must be a CenterProfile, got WeightsProfile"):
        plot_consensus(weights_profile, NAMES)
    with pytest.raises(TypeError, match="must be a WeightsProfile, got list"):
        plot_weights(profiles, NAMES)
    for none in ([], [weights_profile]):
        with pytest.raises(TypeError, match="returns for draws of a Mallows kernel"):
            plot_concentration(none)
    with pytest.raises(ValueError, match="items must have 4 names, got 3"):
        plot_consensus(profiles[0], NAMES[:3])
    with pytest.raises(ValueError, match="max_items must be"):
        plot_consensus(profiles[0], NAMES, max_items=0)
    with pytest.raises(ValueError, match="max_rankings must be"):
        plot_coclustering(data, max_rankings=0)


def figures(data, profiles, weights_profile):
    """Each plot, a function of its axes."""
    observed = np.array([0.5, 0.3, 0.1, 0.1])
    check = PredictiveCheck(observed, observed, observed[:, None] + [-0.1, 0.1], observed)
    orderings = np.random.default_rng(0).permuted(np.tile(np.arange(4), (9, 1)), axis=1)
    return (
        lambda ax: plot_coclustering(data, ax=ax),
        lambda ax: plot_concentration(profiles, ax=ax),
        lambda ax: plot_consensus(profiles[0], NAMES, ax=ax),
        lambda ax: plot_decay(exponential_decay(1.0), ax=ax),
        lambda ax: plot_num_clusters(data, ax=ax),
        lambda ax: plot_partition_in_time([0.0, 1.0], [0, 1], ax=ax),
        lambda ax: plot_predictive_check(check, NAMES, ax=ax),
        lambda ax: plot_rank_probabilities(orderings, NAMES, ax=ax),
        lambda ax: plot_trace(data, "largest_sizes[2]", ax=ax),
        lambda ax: plot_weights(weights_profile, NAMES, ax=ax),
    )


def test_axes_that_are_given(data, profiles, weights_profile):
    for plot in figures(data, profiles, weights_profile):
        ax = Figure().subplots()
        assert plot(ax) is ax


@pytest.mark.parametrize("number", range(10))
def test_nothing_is_cut_off(data, profiles, weights_profile, number):
    ax = figures(data, profiles, weights_profile)[number](None)
    for _ in range(2):
        ax.figure.draw_without_rendering()
    assert_inside(ax.figure)


def test_a_page_has_the_figure_that_savefig_would_save(data):
    """Which draws it once for each layout; for a page it is drawn once."""
    layouts, drawings = [], []

    def count(ax):
        engine, figure = ax.figure.get_layout_engine(), ax.figure
        execute, draw = engine.execute, figure.draw
        engine.execute = lambda fig: (layouts.append(1), execute(fig))
        figure.draw = lambda renderer: (drawings.append(1), draw(renderer))
        return ax

    found = embedded_figure(count(plot_coclustering(data, LABELS[0])))
    assert (len(layouts), len(drawings)) == (2, 1)
    ax = plot_coclustering(data, LABELS[0])
    figure = ax.figure
    before = figure.canvas, figure.get_layout_engine(), figure.dpi
    embedded_figure(ax)
    assert (figure.canvas, figure.get_layout_engine(), figure.dpi) == before
    figure = plot_coclustering(data, LABELS[0]).figure
    with matplotlib.rc_context({"svg.hashsalt": "numpyro_rankings", "svg.fonttype": "none"}):
        for _ in range(2):  # the first time sets the ticks
            stream = io.StringIO()
            figure.savefig(stream, format="svg", metadata={"Date": None})
    encoded = found.source.partition("base64,")[2]
    assert base64.b64decode(encoded).decode() == stream.getvalue()


def test_long_names_keep_their_ends():
    """They have two lines; what is too long for them is left out in the middle."""
    assert plots._beside("Ann", 2) == "Ann"
    wrapped = plots._beside("More buses in the city centre at night", 2)
    assert wrapped == "More buses in the city\ncentre at night"
    three = "More buses in the city centre at night and on Sundays before noon"
    assert plots._beside(three, 2) == "More buses in the city …\n… on Sundays before noon"
    assert plots._beside(three, 1) == "More buses i…before noon"
    shown = [plots._beside(f"{'x' * 60}{end}", lines) for end in "ab" for lines in (1, 2)]
    assert len(set(shown)) == 4
    assert max(len(line) for text in shown for line in text.split("\n")) <= 24
    assert [len(text.split("\n")) for text in shown] == [1, 2] * 2


def test_rows_have_room_for_two_lines(profiles):
    """Of names of any length, and in the figure itself no name has more."""
    heights = []
    for length in (24, 25, 70):
        names = [f"{k}{'y' * (length - 1)}" for k in range(4)]
        ax = plot_consensus(profiles[0], names)
        heights.append(ax.figure.get_figheight())
        assert max(name.count("\n") for name in names_of(ax.yaxis)) == (length > 24)
    assert heights[0] < heights[1] == heights[2]


@pytest.mark.parametrize("number", [4, 8])
def test_concentrations_of_many_clusters_stand_side_by_side(profiles, number):
    ax = plot_concentration([profiles[k % 2] for k in range(number)])
    places = [container.lines[0].get_xdata() for container in ax.containers]
    assert all(one.max() < other.min() for one, other in itertools.pairwise(places))
    assert names_of(ax.xaxis) == [str(k + 1) for k in range(number)] and ax.get_legend() is None
    middles = [float(x.mean()) for x in places]
    np.testing.assert_allclose(ax.get_xticks(), middles)


@pytest.mark.parametrize("sizes", [[30, 2, 2, 20, 1, 1, 1, 1, 1, 1], [1] * 60])
def test_numbers_beside_the_heat_map_do_not_touch(sizes):
    """The largest groups have theirs, and of many small ones as many as there is room for."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    draws = xr.Dataset({"assignments": (("chain", "draw", "ranking"), labels[None, None])})
    ax = plot_coclustering(xr.DataTree.from_dict({"posterior": draws}), labels)
    ticks = ax.get_yticks()
    assert np.diff(ticks).min() >= 0.07 * 60
    assert {"1", "2"} <= set(names_of(ax.yaxis)) if max(sizes) > 1 else len(ticks) >= 8


def test_the_first_colors_differ_in_grey():
    def lightness(color):
        red, green, blue = (
            x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in to_rgb(color)
        )
        return 116 * (0.2126 * red + 0.7152 * green + 0.0722 * blue) ** (1 / 3) - 16

    first = sorted(lightness(color) for color in plots.COLORS[:4])
    assert np.diff(first).min() > 7 and len(set(plots.COLORS)) == len(plots.COLORS)
