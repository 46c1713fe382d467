"""What users install: the source distribution and the wheel, built from this folder.

The build writes to a temporary folder only, and needs neither a network nor git.
"""

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from datetime import date
from pathlib import Path

import pytest
from packaging.version import Version

from numpyro_rankings._version import __version__

ROOT = Path(__file__).parent.parent
NAME = f"numpyro_rankings-{__version__}"


def run(*command, **settings):
    """The output of a command, which has to succeed."""
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        **settings,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def run_module(*arguments, **settings):
    return run(sys.executable, "-m", *arguments, **settings)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Folder with the source distribution, and the wheel made from it."""
    folder = tmp_path_factory.mktemp("dist")
    run_module("build", "--no-isolation", "--outdir", folder, ROOT)
    assert {path.name for path in folder.iterdir()} == {
        f"{NAME}.tar.gz",
        f"{NAME}-py3-none-any.whl",
    }
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    return built / f"{NAME}-py3-none-any.whl"


@pytest.fixture(scope="module")
def in_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def in_sdist(built):
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        names = [member.name for member in archive.getmembers() if member.isfile()]
    assert all(name.startswith(f"{NAME}/") for name in names)
    return {name.removeprefix(f"{NAME}/") for name in names}


@pytest.fixture(scope="module")
def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return email.message_from_string(archive.read(f"{NAME}.dist-info/METADATA").decode("utf-8"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder that holds the wheel and nothing else, and an environment that looks there first."""
    folder = tmp_path_factory.mktemp("installed")
    options = ["--isolated", "--no-deps", "--no-index", "--no-compile", "--quiet"]
    run_module("pip", "install", *options, "--target", folder, wheel)
    return folder, {**os.environ, "PYTHONPATH": str(folder), "PYTHONUTF8": "1"}


def files_in(folder, pattern):
    """The files below a folder of this tree, named from its root."""
    found = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob(pattern)}
    assert found
    return found


def modules_in(folder):
    return files_in(folder, "*.py")


def test_wheel_holds_the_package_and_nothing_else(in_wheel, in_sdist):
    package = {name for name in in_wheel if name.startswith("numpyro_rankings/")}
    # tables, templates and styles too
    assert package == {
        name for name in files_in("numpyro_rankings", "*.*") if "__pycache__" not in name
    }
    assert {"numpyro_rankings/py.typed", "numpyro_rankings/data/apa1980.csv"} <= package
    assert {
        f"{NAME}.dist-info/licenses/LICENSE",
        f"{NAME}.dist-info/entry_points.txt",
    } <= in_wheel
    # no tests
    assert all(name.startswith(f"{NAME}.dist-info/") for name in in_wheel - package)
    assert package == {name for name in in_sdist if name.startswith("numpyro_rankings/")}


def test_source_distribution_holds_what_the_tests_need(in_sdist):
    assert modules_in("tests") | modules_in("benchmarks") <= in_sdist
    assert {
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "README.md",
        "docs/command_line.rst",
        "notebooks/first_analysis.ipynb",
        "pyproject.toml",
    } <= in_sdist
    # of any virtual environment or cache that is in the tree
    folders = {name.split("/")[0] for name in in_sdist if "/" in name}
    assert folders == {"benchmarks", "docs", "notebooks", "numpyro_rankings", "tests"}
    assert not any("__pycache__" in name or name.endswith(".pyc") for name in in_sdist)


def test_metadata(metadata):
    assert metadata["Name"] == "numpyro-rankings"
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8")
    assert {"dev", "docs", "notebooks", "tables", "test"} <= set(metadata.get_all("Provides-Extra"))


def test_an_index_would_accept_both(built):
    run_module("twine", "check", "--strict", *sorted(built.iterdir()))


def test_installed_package_works(installed, tmp_path):
    folder, environment = installed
    code = """
import numpyro_rankings
from importlib.metadata import version
from numpyro_rankings.datasets import list_datasets, load_dataset
print(numpyro_rankings.__file__)
print(numpyro_rankings.__version__, version("numpyro-rankings"))
print([len(load_dataset(name)) for name in list_datasets()])
"""
    shown = run(sys.executable, "-c", code, cwd=tmp_path, env=environment).splitlines()
    assert Path(shown[0]).is_relative_to(folder)
    assert shown[1:] == [f"{__version__} {__version__}", "[15449]"]


def test_installed_command_works(installed, tmp_path):
    folder, environment = installed
    program = shutil.which("numpyro-rankings", path=folder / "bin")
    assert program
    shown = run(program, "--version", cwd=tmp_path, env=environment)
    assert shown == f"numpyro-rankings {__version__}\n"
    assert "numpyro-rankings fit ballots.soi" in run(
        program, "fit", "--help", cwd=tmp_path, env=environment
    )
    assert "15,449" in run(program, "describe", cwd=tmp_path, env=environment)


def test_a_release_tries_the_commands_of_the_readme():
    script = ROOT / ".ci" / "release"
    if not script.is_file():
        pytest.skip("not in the source distribution")
    assert os.access(script, os.X_OK)
    lines = [line.strip() for line in script.read_text(encoding="utf-8").splitlines()]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(
        r"^python3 -m venv .* && pip install (\S+) && (.+)$", readme, re.MULTILINE
    )
    assert [what for what, _ in commands] == [".", "'.[test]'"]
    assert {command for _, command in commands} <= set(lines)
    assert {'pip install -q "$wheel"', 'pip install -q "$wheel[test]"'} <= set(lines)


def test_each_version_of_python_is_tried_before_a_release():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" in project["dynamic"] and "version" not in project
    pattern = r"Programming Language :: Python :: (3\.\d+)"
    named = [m[1] for m in (re.fullmatch(pattern, x) for x in project["classifiers"]) if m]
    assert project["requires-python"] == f">={named[0]}"
    script = ROOT / ".ci" / "release"
    if script.is_file():
        tried = script.read_text(encoding="utf-8")
        tried += script.with_name("environments.sh").read_text(encoding="utf-8")
        assert set(re.findall(r"find_python (3\.\d+)", tried)) == set(named)


def test_the_badges_of_the_readme_are_true(metadata):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    badges = dict(re.findall(r"^\[!\[([^\]]+)\]\((\S+)\)\]\(", readme, re.MULTILINE))
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL"))
    assert badges.pop("ci").startswith(f"{urls['Repository']}/actions/workflows/ci.yml/badge.svg")
    project = re.search(r"//([\w-]+)\.readthedocs\.io", urls["Documentation"])[1]
    assert badges.pop("docs").startswith(f"https://readthedocs.org/projects/{project}/badge/")
    pattern = r"Programming Language :: Python :: (3\.\d+)"
    found = (re.fullmatch(pattern, x) for x in metadata.get_all("Classifier"))
    versions = [m[1] for m in found if m]
    assert set(badges) == {
        f"Python {versions[0]} to {versions[-1]}",
        metadata["License-Expression"],
    }
    for words, url in badges.items():
        shown = words.lower().replace(" ", "-", 1).replace(" ", "_").replace("apache-", "apache--")
        assert url.lower() in (
            f"https://img.shields.io/badge/{shown}-blue",
            f"https://img.shields.io/badge/license-{shown}-blue",
        )


def test_the_changelog_is_of_this_version():
    """A version in development follows the newest release, and its changes are unreleased."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    version, day = next(one for one in headings if one != "Unreleased").split(" - ")
    date.fromisoformat(day)
    here, newest = Version(__version__), Version(version)
    if here.is_devrelease:
        assert headings[0] == "Unreleased" and here > newest
    else:
        assert here == newest


def test_the_citation_names_the_newest_release():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version, day = re.search(r"^## ([\d.]+) - (.+)$", changes, re.MULTILINE).groups()
    assert f"\nversion: {version}\ndate-released: {day}\n" in text
