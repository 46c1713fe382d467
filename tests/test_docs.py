"""The pages in docs/: all public names, all options of the command line, examples that run."""

import argparse
import doctest
import importlib
import re
from pathlib import Path

import pytest

from numpyro_rankings.cli.program import make_parser

DOCS = Path(__file__).parent.parent / "docs"
PUBLIC = (
    "numpyro_rankings",
    "numpyro_rankings.components",
    "numpyro_rankings.datasets",
    "numpyro_rankings.decays",
    "numpyro_rankings.distances",
    "numpyro_rankings.distributions",
    "numpyro_rankings.distributions.constraints",
    "numpyro_rankings.evidence",
    "numpyro_rankings.infer",
    "numpyro_rankings.inference_data",
    "numpyro_rankings.partitions",
    "numpyro_rankings.plots",
    "numpyro_rankings.point_estimates",
    "numpyro_rankings.prediction",
    "numpyro_rankings.predictive_checks",
    "numpyro_rankings.relabeling",
    "numpyro_rankings.report",
    "numpyro_rankings.self_check",
    "numpyro_rankings.summaries",
)
DIRECTIVE = re.compile(r"^\.\. (py:|auto)(\w+):: ([\w.]+)", re.MULTILINE)
PAGES = {
    "tutorial.rst": [pytest.mark.slow],
    "recipes.rst": [pytest.mark.slow],
    "choosing.rst": [],
    "composing.rst": [],
    "extending.rst": [pytest.mark.slow],
    "running.rst": [],
}


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


@pytest.mark.parametrize("command", ["fit", "cluster", "check"])
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
def test_examples(page):
    failed, tried = doctest.testfile(str(DOCS / page), module_relative=False, encoding="utf-8")
    assert tried and not failed


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
