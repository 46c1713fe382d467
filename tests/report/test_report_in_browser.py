"""The reports as a browser lays them out, on a screen and on a phone."""

import html
import json
import re
import shutil
import subprocess

import jax
import numpy as np
import pytest
from helpers.command_line import FEW, GAUSSIAN, POINTS, QUICK_CLUSTER, QUICK_FIT, SOI
from helpers.fabricated import apart, fabricated_mcmc, fabricated_partition_mcmc, with_groups
from helpers.figures import assert_inside
from helpers.names import HOSTILE, hostile_report
from matplotlib.text import Text

from numpyro_rankings.cli import cluster as cluster_command
from numpyro_rankings.cli import fit, main
from numpyro_rankings.cli.session import Sampled
from numpyro_rankings.datasets import load_dataset, simulate_mallows_mixture
from numpyro_rankings.posterior.partitions import canonical_labels
from numpyro_rankings.report import answers, findings_of, page, write_report
from numpyro_rankings.report import figures as report_figures
from numpyro_rankings.report.write import write_findings

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,  # .ci/slow installs Chromium, which no registry of Python packages has
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
]

WIDTHS = [1280, 400]
TEXT_OF_FIGURES = 10  # points, 96 / 72 px where a figure is not scaled
# what the page is like once it is laid out; the frame has the width, for windows have a least one
MEASURE = """
const page = frame.contentDocument, root = page.documentElement;
const all = [...page.body.querySelectorAll("*")];
const hasText = e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
const scrolls = e => e.closest(".scroll") !== null;
const named = e => e.tagName + ": " + e.textContent.trim().slice(0, 60);
const outside = e => {
  const range = page.createRange();
  range.selectNodeContents(e);
  const box = e.getBoundingClientRect();
  return [...range.getClientRects()].some(r => r.right > box.right + 1 || r.left < box.left - 1);
};
const result = {
  width: root.clientWidth,
  scrollWidth: root.scrollWidth,
  images: [...page.images].map(i => [i.naturalWidth, i.getBoundingClientRect().width]),
  rows: [...page.querySelectorAll("table")].map(t => t.tBodies[0].rows.length),
  fonts: all.filter(e => hasText(e) && e.getClientRects().length > 0)
    .map(e => parseFloat(page.defaultView.getComputedStyle(e).fontSize)),
  overflowing: all.filter(e => hasText(e) && !scrolls(e)
    && page.defaultView.getComputedStyle(e).display !== "inline" && outside(e)).map(named),
  wider: all.filter(e => !scrolls(e) && e.getBoundingClientRect().right > root.clientWidth + 1)
    .map(named),
  first: [...page.querySelectorAll("dt")].slice(0, 6).map(e => e.textContent),
  verdictTop: page.querySelector(".verdict").getBoundingClientRect().top,
  firstTop: page.querySelector("dt").getBoundingClientRect().top,
  shown: [...page.querySelectorAll("dt, dd, dd .line")].filter(e => e.getClientRects().length > 0)
    .map(e => e.textContent),
  hidden: [...page.querySelectorAll(".answers dt")].filter(e => e.getClientRects().length === 0)
    .map(e => e.textContent),
  paragraphs: [...page.querySelectorAll("p")].filter(e => e.getClientRects().length > 0)
    .map(e => e.textContent),
  title: page.title,
  text: page.body.textContent,
  items: [...page.querySelectorAll("ol.order li")].map(e => e.lastChild.textContent),
  executing: page.querySelectorAll("script").length + all.filter(e => [...e.attributes]
    .some(a => a.name.startsWith("on"))).length,
};
"""


def chromium(path, *options):
    """Open a page in Chromium without a window."""
    common = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    common += ["--virtual-time-budget=20000", f"--user-data-dir={path.parent / 'profile'}"]
    command = [str(CHROMIUM), *common, *options, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True)


def measure(path, width):
    """The page in a frame of that width, as Chromium lays it out."""
    framed = path.parent / f"framed-{width}.html"
    page = html.escape(path.read_text(encoding="utf-8"), quote=True)
    framed.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><pre id="found"></pre>'
        f'<iframe id="frame" style="width:{width}px;height:900px;border:0" srcdoc="{page}">'
        "</iframe><script>const frame = document.getElementById('frame');"
        f"frame.onload = async () => {{ await Promise.all([...frame.contentDocument.images]"
        f".map(i => i.decode().catch(() => null))); {MEASURE}"
        "document.getElementById('found').textContent = JSON.stringify(result); };</script>",
        encoding="utf-8",
    )
    done = chromium(framed, f"--window-size={width + 100},1000", "--dump-dom")
    found = re.search(r'<pre id="found">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    return json.loads(html.unescape(found[1]))


def check(found, width, num_tables, num_images):
    assert found["width"] == width
    assert found["scrollWidth"] <= width and found["wider"] == []
    assert found["overflowing"] == []
    assert min(found["fonts"]) >= 12
    assert len(found["images"]) >= num_images
    for natural, shown in found["images"]:
        assert natural > 0 and shown >= min(300, 0.8 * width)
        assert shown / natural * TEXT_OF_FIGURES * 96 / 72 >= 12
    assert len(found["rows"]) == num_tables and min(found["rows"]) > 0
    assert found["first"][0] == "How many groups?"
    assert found["verdictTop"] < 200 and found["firstTop"] < 600
    assert found["first"][3:] == ["Can I trust it?", "What to do next?", "How was it made?"]


def _sampled(mcmc):
    return Sampled(mcmc, "length", (mcmc.num_samples, mcmc.num_samples))


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Those of the two commands, the draws made up; names that are long and hard to break."""
    folder = tmp_path_factory.mktemp("reports")
    names = SOI.replace("Bob", "Bartholomäus-Maximilian_von_und_zu_Hohenlohe" * 2)
    (folder / "small.soi").write_text(names, encoding="utf-8")
    (folder / "points.csv").write_text(POINTS, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("numpyro_rankings.cli.session.use_compilation_cache", lambda: None)
        patch.setattr(fit, "_sample", lambda *given: _sampled(fabricated_mcmc(given[2])))
        figures = []
        make = page.embedded_figure

        def embed(ax, *text):
            figures.append(ax.figure)
            return make(ax, *text)

        patch.setattr(answers, "embedded_figure", embed)
        patch.setattr(report_figures, "embedded_figure", embed)
        of_groups = fabricated_partition_mcmc(np.arange(20) % 2)
        patch.setattr(cluster_command, "_sample", lambda *_: _sampled(of_groups))
        assert main(["fit", "small.soi", *QUICK_FIT, "--out", "fitted"]) == 0
        assert main([*GAUSSIAN, *FEW, *QUICK_CLUSTER]) == 0
    texts = [text for figure in figures for text in figure.findobj(Text) if text.get_text()]
    assert texts and min(text.get_fontsize() for text in texts) >= TEXT_OF_FIGURES
    for figure in figures:
        assert_inside(figure)
    return {"fit": folder / "fitted" / "report.html", "cluster": folder / "out" / "report.html"}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command, num_tables, num_images", [("fit", 3, 6), ("cluster", 3, 4)])
def test_layout(reports, command, num_tables, num_images, width):
    check(measure(reports[command], width), width, num_tables, num_images)


def test_names_are_shown_as_they_are(tmp_path):
    """Whatever they look like in HTML, and in the figures."""
    hostile_report(tmp_path / "page.html", HOSTILE, fabricated_mcmc, "auto")
    found = measure(tmp_path / "page.html", WIDTHS[0])
    assert found["title"] == HOSTILE[4] and found["executing"] == 0
    assert set(found["items"]) == set(HOSTILE[:4])
    assert [name for name in HOSTILE if name not in found["text"]] == []
    assert len(found["images"]) >= 6 and min(natural for natural, _ in found["images"]) > 0


DETAILS = {"command": "numpyro-rankings fit --out apa", "data": "APA 1980", "seed": "0"}
DETAILS |= {"versions": "a line of versions " * 8, "model": "a line about the model " * 6}
SHEET = (210 - 2 * 13) / 25.4 * 96  # pixels; the width of A4 between the margins
LEAST_SIZE = 8 * 96 / 72  # pixels; 8 points
RESERVE = 50  # points; about five lines, so that other names and reasons have room


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """The page of a fit of the bundled table with 15 groups that hold, and chains that disagree."""
    rankings = load_dataset()
    mcmc = fabricated_mcmc(rankings, num_slots=16)
    z = {name: np.array(x) for name, x in mcmc._states["z"].items()}
    rng = np.random.default_rng(0)
    groups = np.asarray(rankings.row_index) % 15
    labels = canonical_labels(
        np.where(rng.random(z["assignments"].shape) < 0.05, groups[::-1], groups)
    )
    z |= {"assignments": labels, "num_clusters": labels.max(-1) + 1}
    z["cluster_sizes"] = (labels[..., None] == np.arange(16)).sum(2)
    mcmc._states["z"] = z
    path = tmp_path_factory.mktemp("usual") / "report.html"
    write_report(
        path, apart(mcmc), rankings, title="Groups in APA 1980", details=DETAILS, blocs=None
    )
    return path


@pytest.fixture(scope="module")
def with_blocs(tmp_path_factory):
    """The page of a fit with 11 groups, where three blocs come first."""
    names = load_dataset().items
    data = simulate_mallows_mixture(jax.random.key(0), 1000, 5, 5, 11, 1.5, items=names)
    rankings = data.rankings
    mcmc = with_groups(fabricated_mcmc(rankings, num_slots=16), data)
    about = {"region": ["north", "south"] * 500}
    path = tmp_path_factory.mktemp("blocs") / "report.html"
    title = "Groups of judges"
    write_report(path, mcmc, rankings, title=title, details=DETAILS, about=about, blocs=3)
    assert path.read_text(encoding="utf-8").index("The blocs") > 0
    return path


LONG_NAMES = [
    "Bernadette O'Shaughnessy F.F.",
    "Cornelius Fitzgerald-Byrne F.F.",
    "Dervla Ní Chonghaile Lab",
    "Eoghan Mac Giolla Phádraig S.P.",
    "Fionnuala Abercrombie F.G.",
    "Gearóid McLoughlin S.F.",
    "Hyacinth Prendergast G.P.",
    "Ignatius Ruttledge-Poole C.C. Csp",
    "Jacinta Montgomery P.D.",
]


@pytest.fixture(scope="module")
def with_long_names(tmp_path_factory):
    """The page of an election: nine long names, three groups that hold, ten that come and go.

    The chains disagree, and there are blocs. Members of the groups that hold are often elsewhere.
    """
    data = simulate_mallows_mixture(jax.random.key(1), 1000, 9, 9, 13, 1.5, items=LONG_NAMES)
    mcmc = with_groups(fabricated_mcmc(data.rankings, num_slots=16), data)
    z = {name: np.array(x) for name, x in mcmc._states["z"].items()}
    rng, labels = np.random.default_rng(0), z["assignments"]
    elsewhere = (labels >= 3) | (rng.random(labels.shape) < 0.45)
    labels = np.where(elsewhere, rng.integers(3, 13, labels.shape), labels)
    z["assignments"] = labels.astype(np.int8)
    z["cluster_sizes"] = (labels[..., None] == np.arange(13)).sum(2)
    mcmc._states["z"] = z
    path = tmp_path_factory.mktemp("long") / "report.html"
    found = findings_of(
        apart(mcmc), data.rankings, reference=np.asarray(data.assignments), details=DETAILS, blocs=3
    )
    assert (len(found.held), len(found.passing)) == (3, 10) and found.chains_disagree
    write_findings(path, found, data.rankings, title="Groups in Dublin East 2002")
    text = path.read_text(encoding="utf-8")
    assert "The blocs" in text and "would show nothing" in text
    return path


def num_sheets(path):
    """How many sheets of paper Chromium prints."""
    pdf = path.with_suffix(".pdf")
    done = chromium(path, "--no-pdf-header-footer", f"--print-to-pdf={pdf}")
    assert pdf.exists(), done.stderr[-2000:]
    return len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))


@pytest.mark.parametrize("page", ["usual", "with_blocs", "with_long_names"])
def test_it_prints_on_two_sheets(page, request, tmp_path):
    """The answer is on the first; the diagnostics have room on one. A few lines are left."""
    text = request.getfixturevalue(page).read_text(encoding="utf-8")
    for number, hidden, what in (
        (2, "nothing", "the page"),
        (1, ".diagnostics, .details, .glossary", "the answer"),
        (1, "main > :not(.diagnostics, .details, .glossary, .reserve)", "the diagnostics"),
    ):
        path = tmp_path / "part.html"
        style = f"{hidden} {{ display: none }} .reserve {{ height: {RESERVE}pt }}</style>"
        longer = text.replace("</main>", '<div class="reserve"></div></main>', 1)
        path.write_text(longer.replace("</style>", style, 1), encoding="utf-8")
        assert num_sheets(path) == number, what


def test_the_summary_prints_on_one_sheet(tmp_path):
    """Also of eight blocs of long names."""
    data = simulate_mallows_mixture(jax.random.key(1), 1000, 9, 9, 13, 1.5, items=LONG_NAMES)
    mcmc = with_groups(fabricated_mcmc(data.rankings, num_slots=16), data)
    found = findings_of(mcmc, data.rankings, details=DETAILS, blocs=8, checks=None)
    summary = tmp_path / "summary.html"
    write_findings(tmp_path / "r.html", found, data.rankings, title="Dublin", summary=summary)
    assert summary.read_text(encoding="utf-8").count("<tr><td>bloc ") == 8
    assert num_sheets(summary) == 1


@pytest.mark.parametrize("page", ["with_blocs", "with_long_names"])
def test_no_sheet_ends_before_it_is_full(page, request, tmp_path):
    """After a short answer the diagnostics, or as much of them as there is room for, go on."""
    text = request.getfixturevalue(page).read_text(encoding="utf-8")
    short = ".answers, .blocs, .groups-table, .diagnostics img { display: none }"
    path = tmp_path / "short.html"
    path.write_text(text.replace("</style>", f"{short}</style>", 1), encoding="utf-8")
    assert num_sheets(path) == 1


@pytest.mark.parametrize(
    ("page", "questions"),
    [
        ("usual", ["How many groups", "Who is in them", "What do they want", "Can I trust it"]),
        ("with_blocs", ["How many blocs", "What do they want", "Can I trust the groups"]),
        ("with_long_names", ["How many blocs", "What do they want", "Can I trust the groups"]),
    ],
)
def test_all_answers_are_printed(page, questions, request, tmp_path):
    """With all their lines; how the page was made is in its last section."""
    text = request.getfixturevalue(page).read_text(encoding="utf-8")
    path = tmp_path / "paper.html"
    path.write_text(text.replace("@media print {", "@media screen {"), encoding="utf-8")
    found = measure(path, round(SHEET))
    shown = "\n".join(found["shown"])
    assert found["hidden"] == ["How was it made?"] and DETAILS["command"] in shown
    assert DETAILS["versions"].strip() in shown
    for question in [*questions, "What to do next"]:
        assert f"{question}?" in shown
    lines = text.partition('<section class="answers">')[2].partition("</section>")[0]
    lines = re.findall('<span class="line[^>]*>(.*?)</span>', lines)
    assert len(lines) >= 4
    for line in lines:
        assert html.unescape(re.sub("<.*?>", "", line)) in shown


def test_paper_has_the_better_command_once(with_long_names, tmp_path):
    """Among the next steps; the box above them has the command to go on with."""
    better = "numpyro-rankings fit --components 3 --out apa-3-groups"
    status = page.Status("stopped.", "Going on will not help.", "a-command", better=better)
    box = page.page_of("sections/status.html", {"status": status})
    text = with_long_names.read_text(encoding="utf-8")
    assert f"<code>{better}</code>" in text
    text = text.replace('<section class="answers">', f'{box}<section class="answers">', 1)
    path = tmp_path / "status.html"
    for media, is_shown in (("print", True), ("screen", False)):
        path.write_text(text.replace("@media print {", f"@media {media} {{"), encoding="utf-8")
        shown = "\n".join(measure(path, round(SHEET))["paragraphs"])
        assert ("This may help" in shown) == is_shown
        assert "a-command" in shown


@pytest.mark.parametrize("width", WIDTHS)
def test_layout_with_blocs(with_blocs, width):
    """On a phone the tree is wider than the screen, and scrolls."""
    found = measure(with_blocs, width)
    assert found["scrollWidth"] <= width and found["wider"] == [] and found["overflowing"] == []
    assert min(found["fonts"]) >= 12
    assert found["first"][0] == "How many blocs?"
    assert found["verdictTop"] < 200 and found["firstTop"] < 600


@pytest.mark.parametrize("page", ["usual", "with_blocs", "with_long_names"])
def test_print_is_readable(page, request, tmp_path):
    """As on paper, but laid out on a screen: sizes of the texts, also of those in figures."""
    text = request.getfixturevalue(page).read_text(encoding="utf-8")
    assert text.count("@media print {") == 1
    path = tmp_path / "paper.html"
    path.write_text(text.replace("@media print {", "@media screen {"), encoding="utf-8")
    found = measure(path, round(SHEET))
    assert min(found["fonts"]) >= LEAST_SIZE - 0.01
    assert found["overflowing"] == [] and found["wider"] == []
    shown = [(natural, width) for natural, width in found["images"] if width > 0]
    assert len(shown) == 1  # the check of the model: a table has who goes with whom
    for natural, width in shown:
        assert width / natural * TEXT_OF_FIGURES * 96 / 72 >= LEAST_SIZE - 0.01


def test_no_group_is_cut_by_the_end_of_a_sheet(usual, tmp_path):
    """Cards that are taller than half a sheet take a sheet each."""
    text = usual.read_text(encoding="utf-8")
    tall = ".group { height: 60vh } .diagnostics, .details, main > :not(.groups) { display: none }"
    path = tmp_path / "tall.html"
    sheets = []
    for allowed in ("", ".group { break-inside: auto }"):
        style = f"@media print {{ {tall} {allowed} }}"
        path.write_text(text.replace("</style>", f"{style}</style>", 1))
        sheets.append(num_sheets(path))
    assert sheets[0] == 15 > sheets[1]
