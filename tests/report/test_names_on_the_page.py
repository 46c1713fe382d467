"""Names of items, columns and files are shown as they are, whatever they look like in HTML."""

from html.parser import HTMLParser

import jinja2
import pytest
from helpers.fabricated import fabricated_mcmc, fabricated_partition_mcmc, fabricated_weights_mcmc
from helpers.names import HOSTILE, hostile_report, of_four_items

from numpyro_rankings import to_inference_data
from numpyro_rankings.posterior import partition_profiles
from numpyro_rankings.posterior.partitions import canonical_labels
from numpyro_rankings.posterior.point_estimates import reference_partition
from numpyro_rankings.report import write_partition_report
from numpyro_rankings.report.description import Pairs, write_description
from numpyro_rankings.report.page import Status, page_of, with_status


class Page(HTMLParser):
    """The elements of a page with their attributes, and the texts in them."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.within = [], [], []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, [name for name, _ in attributes]))
        self.texts += [value for _, value in attributes]
        self.within.append(tag)

    def handle_endtag(self, tag):
        self.within = self.within[: len(self.within) - self.within[::-1].index(tag) - 1]

    def handle_data(self, text):
        if self.within[-1:] != ["style"]:
            self.texts.append(text)


PLAIN = [f"name {k}" for k in range(len(HOSTILE))]


def assert_alike(hostile, plain, names=HOSTILE):
    """Only the names differ: the elements are the same, and all names are there as they are."""
    hostile, plain = Page(hostile), Page(plain)
    assert hostile.elements == plain.elements
    assert "script" not in [tag for tag, _ in hostile.elements]
    together = "\n".join(hostile.texts)
    assert [name for name in names if name not in together] == []


@pytest.mark.parametrize(
    ("make", "checks"), [(fabricated_mcmc, "auto"), (lambda r: fabricated_weights_mcmc(r, 4), None)]
)
def test_on_the_page_of_a_fit(tmp_path, make, checks):
    for names, path in ((HOSTILE, "hostile.html"), (PLAIN, "plain.html")):
        hostile_report(tmp_path / path, names, make, checks)
    assert_alike(tmp_path / "hostile.html", tmp_path / "plain.html")


def test_on_the_page_of_points(tmp_path):
    mcmc = fabricated_partition_mcmc(canonical_labels([k % 2 for k in range(20)]))
    data = to_inference_data(mcmc, log_likelihood=False)
    labels = data["posterior"]["assignments"].values.reshape(-1, 20)
    reference = reference_partition(labels)
    profiles = partition_profiles(labels, reference)
    for names, path in ((HOSTILE, "hostile.html"), (PLAIN, "plain.html")):
        columns = dict(zip(names[:2], [names[2:4]] * 2, strict=True))
        about = {"what": names[4], "title": names[5], "details": {names[6]: names[7]}}
        write_partition_report(tmp_path / path, data, profiles, reference, columns, **about)
    assert_alike(tmp_path / "hostile.html", tmp_path / "plain.html")


def test_on_the_page_of_a_file(tmp_path):
    for names, path in ((HOSTILE, "hostile.html"), (PLAIN, "plain.html")):
        rankings = of_four_items(names[:4])
        pairs = Pairs([0, 1], [[0.5, 0.5], [0.5, 0.5]])
        details = {"command": names[2], names[3]: names[5]}
        texts = (names[:1], names[1:2], details, names[7])
        write_description(tmp_path / path, rankings, pairs, *texts)
    assert_alike(tmp_path / "hostile.html", tmp_path / "plain.html", [*HOSTILE[:4], HOSTILE[7]])


def test_another_status(tmp_path):
    """Names in it are no references to groups of a regular expression either."""
    hostile_report(tmp_path / "page.html", HOSTILE, fabricated_mcmc)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for status in (Status(r"\1 <b>", "</section>", r"\g<0>"), Status("Done", "Later", "go on")):
        page = with_status(page, status)
        (tmp_path / "other.html").write_text(page, encoding="utf-8")
        assert page.count('<section class="status">') == 1
        assert {status.headline, status.text, status.command} <= set(
            Page(tmp_path / "other.html").texts
        )


def test_a_page_lacks_nothing(tmp_path):
    """A template that shows what is not computed is an error, and no gap on the page."""
    with pytest.raises(jinja2.UndefinedError, match="'what' is undefined"):
        page_of("base.html", {"title": "Groups", "status": None, "details": {}})


def test_names_do_not_turn_what_follows_them():
    status = Status("stopped.", "Ann\u202e wins", "a-command")
    assert r"Ann\u202e wins" in page_of("sections/status.html", {"status": status})
    assert r"Ann\u202e wins" in with_status('<section class="status"></section>\n', status)
