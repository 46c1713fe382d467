"""The reports as a browser lays them out, on a screen and on a phone."""

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from helpers.command_line import FEW, GAUSSIAN, POINTS, QUICK_CLUSTER, QUICK_FIT, SOI
from helpers.fabricated import fabricated_mcmc, fabricated_partition_mcmc
from helpers.figures import assert_inside
from helpers.names import HOSTILE, hostile_report
from matplotlib.text import Text

from numpyro_rankings.cli import cluster as cluster_command
from numpyro_rankings.cli import fit, main
from numpyro_rankings.cli.run import Sampled
from numpyro_rankings.report import answers, page
from numpyro_rankings.report import figures as report_figures

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
  fonts: all.filter(hasText).map(e => parseFloat(page.defaultView.getComputedStyle(e).fontSize)),
  overflowing: all.filter(e => hasText(e) && !scrolls(e)
    && page.defaultView.getComputedStyle(e).display !== "inline" && outside(e)).map(named),
  wider: all.filter(e => !scrolls(e) && e.getBoundingClientRect().right > root.clientWidth + 1)
    .map(named),
  first: [...page.querySelectorAll("dt")].slice(0, 5).map(e => e.textContent),
  firstTop: page.querySelector("dt").getBoundingClientRect().top,
  title: page.title,
  text: page.body.textContent,
  items: [...page.querySelectorAll("ol.order li")].map(e => e.lastChild.textContent),
  executing: page.querySelectorAll("script").length + all.filter(e => [...e.attributes]
    .some(a => a.name.startsWith("on"))).length,
};
"""


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
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options += ["--virtual-time-budget=20000"]
    done = subprocess.run(
        [str(CHROMIUM), *options, f"--user-data-dir={path.parent / 'profile'}",
         f"--window-size={width + 100},1000", "--dump-dom", framed.as_uri()],
        capture_output=True, text=True,
    )  # fmt: skip
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
    assert found["first"][0] == "How many groups?" and found["firstTop"] < 400
    assert found["first"][3:] == ["Can I trust it?", "How do I repeat it?"]


def _sampled(mcmc):
    return Sampled(mcmc, "length", mcmc.num_samples)


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Those of the two commands, the draws made up; names that are long and hard to break."""
    folder = tmp_path_factory.mktemp("reports")
    names = SOI.replace("Bob", "Bartholomäus-Maximilian_von_und_zu_Hohenlohe" * 2)
    (folder / "small.soi").write_text(names, encoding="utf-8")
    (folder / "points.csv").write_text(POINTS, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for module, name in (
            (fit, "use_compilation_cache"),
            (cluster_command, "use_compilation_cache"),
        ):
            patch.setattr(module, name, lambda: None)
        patch.setattr(fit, "_sample", lambda _, rankings, *__: _sampled(fabricated_mcmc(rankings)))
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
@pytest.mark.parametrize("command, num_tables, num_images", [("fit", 2, 6), ("cluster", 2, 4)])
def test_layout(reports, command, num_tables, num_images, width):
    check(measure(reports[command], width), width, num_tables, num_images)


def test_names_are_shown_as_they_are(tmp_path):
    """Whatever they look like in HTML, and in the figures."""
    hostile_report(tmp_path / "page.html", HOSTILE, fabricated_mcmc)
    found = measure(tmp_path / "page.html", WIDTHS[0])
    assert found["title"] == HOSTILE[4] and found["executing"] == 0
    assert set(found["items"]) == set(HOSTILE[:4])
    assert [name for name in HOSTILE if name not in found["text"]] == []
    assert len(found["images"]) >= 6 and min(natural for natural, _ in found["images"]) > 0
