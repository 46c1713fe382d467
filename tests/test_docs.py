"""The pages in docs/: all public names, all options of the command line, examples that run."""

import argparse
import doctest
import importlib
import re
import shlex
import textwrap
from pathlib import Path

import pytest

from numpyro_rankings import read_survey
from numpyro_rankings.cli import main
from numpyro_rankings.cli.program import make_parser

DOCS = Path(__file__).parent.parent / "docs"
PUBLIC = (
    "numpyro_rankings",
    "numpyro_rankings.components",
    "numpyro_rankings.datasets",
    "numpyro_rankings.links.decays",
    "numpyro_rankings.links.distances",
    "numpyro_rankings.distributions",
    "numpyro_rankings.distributions.constraints",
    "numpyro_rankings.posterior.evidence",
    "numpyro_rankings.infer",
    "numpyro_rankings.posterior.inference_data",
    "numpyro_rankings.posterior.partitions",
    "numpyro_rankings.plots",
    "numpyro_rankings.posterior.point_estimates",
    "numpyro_rankings.posterior.prediction",
    "numpyro_rankings.posterior.predictive_checks",
    "numpyro_rankings.posterior.relabeling",
    "numpyro_rankings.report",
    "numpyro_rankings.self_check",
    "numpyro_rankings.posterior",
    "numpyro_rankings.predict",
)
DIRECTIVE = re.compile(r"^\.\. (py:|auto)(\w+):: ([\w.]+)", re.MULTILINE)
PAGES = {
    "chains.rst": [],
    "elections.rst": [],
    "tutorial.rst": [pytest.mark.slow],
    "recipes.rst": [pytest.mark.slow],
    "choosing.rst": [],
    "composing.rst": [],
    "other_packages.rst": [pytest.mark.slow],
    "partial_orders.rst": [],
    "exactness.rst": [],
    "extending.rst": [pytest.mark.slow],
    "running.rst": [],
    "tables.rst": [],
}
# of the page about tables: a table, whose title is the name of its file; a command; what it prints
TABLE = re.compile(r"^\.\. csv-table:: (\S+)\n(?: +:.*\n)*\n((?: {3}.*\n)+)", re.MULTILINE)
COMMAND = re.compile(
    r"^\.\. code-block:: sh\n\n((?: {3}.*\n)+)(?:\n\.\. code-block:: text\n\n((?: {3}.*\n)+))?",
    re.MULTILINE,
)


def documented():
    """What the reference describes, each as often as it does."""
    found = []
    for page in sorted((DOCS / "reference").glob("*.rst")):
        module = None
        for _, kind, name in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            if kind == "module":
                module = importlib.import_module(name)
                found.append(module)
                continue
            if "." in name:
                home, name = name.rsplit(".", 1)
                found.append(getattr(importlib.import_module(home), name))
            else:
                found.append(getattr(module, name))
    return found


def test_every_public_name_is_in_the_reference_once():
    described = documented()
    for home in PUBLIC:
        module = importlib.import_module(home)
        for name in module.__all__:
            times = sum(one is getattr(module, name) for one in described)
            assert times == 1, f"{home}.{name} is {times} times in docs/reference"


@pytest.mark.parametrize(
    "command", ["fit", "assign", "describe", "compare", "cluster", "check", "warm"]
)
def test_every_option_is_on_the_page(command):
    text = (DOCS / "command_line.rst").read_text(encoding="utf-8")
    subparsers = next(
        action
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    options = {
        option
        for action in subparsers.choices[command]._actions
        for option in action.option_strings
        if option.startswith("--")
    }
    named = set(re.findall(r"``(--[a-z-]+)", text))
    assert options <= named | {"--help"}, options - named
    known = {
        option
        for parser in subparsers.choices.values()
        for action in parser._actions
        for option in action.option_strings
    }
    assert named <= known, named - known


def test_every_page_with_examples_is_run():
    pages = [*DOCS.glob("*.rst"), *DOCS.glob("*.md"), *DOCS.glob("reference/*.rst")]
    with_examples = {page.name for page in pages if ">>> " in page.read_text(encoding="utf-8")}
    assert with_examples == set(PAGES)


@pytest.mark.parametrize("page", [pytest.param(p, marks=marks) for p, marks in PAGES.items()])
def test_examples(page, tmp_path, monkeypatch):
    if page == "tables.rst":
        write_tables(tmp_path)
        monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(DOCS / page), module_relative=False, encoding="utf-8")
    assert tried and not failed


def write_tables(folder, page="tables.rst"):
    """Write the tables of a page as files."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for name, rows in TABLE.findall(text):
        (folder / name).write_text(textwrap.dedent(rows), encoding="utf-8")
    assert len(list(folder.iterdir())) == text.count(".. csv-table::")


@pytest.mark.parametrize(("page", "least"), [("tables.rst", 9), ("elections.rst", 3)])
def test_commands_on_the_pages_about_files(page, least, tmp_path, monkeypatch, capsys):
    write_tables(tmp_path, page)
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    found = [
        (command, shown)
        for lines, shown in COMMAND.findall(text)
        for command in textwrap.dedent(lines).splitlines()
    ]
    assert len(found) == text.count(".. code-block:: sh") >= least
    for command, shown in found:
        program, *arguments = shlex.split(command)
        assert program == "numpyro-rankings"
        assert main(arguments) == (2 if "error: " in shown else 0), command
        output = "".join(capsys.readouterr())
        for line in textwrap.dedent(shown).splitlines():
            assert line in output, command


def test_layouts_on_the_page_about_tables_say_the_same(tmp_path):
    write_tables(tmp_path)
    read = {"judge": "id", "about": "region", "items": ["tea", "coffee", "cocoa", "maté"]}
    surveys = [
        read_survey(tmp_path / "ranks.csv", "ranks", **read),
        read_survey(tmp_path / "orders.csv", **read),
        read_survey(tmp_path / "long.csv", **{**read, "judge": "judge"}),
        read_survey(tmp_path / "cell.csv", "cell", columns="drinks", **read),
    ]
    for survey in surveys:
        assert survey.rankings == surveys[0].rankings
        assert survey.judges == ["r1", "r2", "r3", "r4"] and survey.about == surveys[0].about


def test_functions_of_the_papers_steps_exist():
    """CONTRIBUTING.md names a function for each step of each paper."""
    root = Path(__file__).parents[1]
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)`: ((?:`[\w.]+`(?:, )?)+)", text)
    assert len(named) > 40
    for path, names in named:
        source = (root / "numpyro_rankings" / path).read_text(encoding="utf-8")
        for name in re.findall(r"`([\w.]+)`", names):
            for part in name.split("."):
                assert re.search(rf"^ *(?:def|class) {part}\b", source, re.M), (path, name)


def test_files_of_tests_that_are_named_exist():
    """Pages and CONTRIBUTING.md name tests by their path from the root."""
    root = Path(__file__).parents[1]
    pages = [*DOCS.glob("*.rst"), *DOCS.glob("*.md"), root / "CONTRIBUTING.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    named = set(re.findall(r"\btests/[\w/]+\.py", text))
    assert len(named) > 20
    assert {path for path in named if not (root / path).is_file()} == set()
    # a bare name would not be checked
    assert re.findall(r"(?<![\w/])test_\w+\.py", text) == []
