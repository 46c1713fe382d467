"""The notebooks: what is saved in them, and (slow) that each runs in its small setting.

The conventions are in notebooks/README.md.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
QUICK = "NUMPYRO_RANKINGS_QUICK"
# of a home folder, a temporary one, an installed package; of Windows
MACHINE_PATH = re.compile(
    r"(?<![\w.:/])/(?:home|Users|root|tmp|var|opt|usr|work|private|mnt)/|\b[A-Z]:\\"
)


def read(name):
    """A notebook as plain JSON."""
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))


def source(cell):
    """Text of a cell, which may be saved as a list of lines."""
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def script(notebook):
    """The code of all cells; a last expression is not shown there, but runs."""
    return "\n\n\n".join(source(cell) for cell in code_cells(notebook))


def test_there_are_notebooks():
    assert NAMES


@pytest.mark.parametrize("name", NAMES)
def test_is_a_valid_notebook(name):
    notebook = read(name)
    assert notebook["nbformat"] == 4
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        assert cell["cell_type"] in ("code", "markdown")
        assert not cell["metadata"].keys() & {"execution", "ExecuteTime"}
    compile(script(notebook), f"{name}.ipynb", "exec")
    assert (FOLDER / f"{name}.ipynb").stat().st_size < 400_000


@pytest.mark.parametrize("name", NAMES)
def test_begins_with_a_title_and_is_listed(name):
    first = read(name)["cells"][0]
    assert first["cell_type"] == "markdown"
    assert source(first).startswith("# ")
    assert f"({name}.ipynb)" in (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_saved_and_free_of_errors(name):
    cells = code_cells(read(name))
    counts = [cell["execution_count"] for cell in cells]
    assert counts == list(range(1, len(cells) + 1)), "not run from top to bottom"
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert outputs
    assert any("image/png" in output.get("data", {}) for output in outputs), "no figure"
    for output in outputs:
        assert output["output_type"] != "error"
        assert output.get("name") != "stderr", "".join(output["text"])
        data = output.get("data", {})
        shown = "".join([*output.get("text", []), *data.get("text/plain", [])])
        # printed by the code of a cell, or by a program that it has started
        assert not re.search(r"Traceback \(most recent|\w(Error|Warning): ", shown), shown


@pytest.mark.parametrize("name", NAMES)
def test_names_no_place_on_a_machine(name):
    notebook = read(name)
    for cell in notebook["cells"]:
        texts = [source(cell)]
        for output in cell.get("outputs", []):
            shown = {
                key: text for key, text in output.get("data", {}).items() if "image" not in key
            }
            texts.append(json.dumps([output.get("text"), shown], ensure_ascii=False))
        for text in texts:
            found = MACHINE_PATH.search(text)
            assert not found, text[max(found.start() - 40, 0) : found.end() + 40]


@pytest.mark.parametrize("name", NAMES)
def test_has_a_small_setting_and_ends_with_a_check(name):
    notebook = read(name)
    assert QUICK in script(notebook)
    assert re.search(r"^assert ", source(code_cells(notebook)[-1]), re.MULTILINE)


def tables(notebook):
    """What the cells show as HTML."""
    data = [out.get("data", {}) for cell in code_cells(notebook) for out in cell["outputs"]]
    return ["".join(one["text/html"]) for one in data if "text/html" in one]


def test_the_table_of_a_run_is_saved():
    shown = tables(read("runs_at_hand"))
    assert len(shown) == 2 and all("<th>R-hat</th><th>ESS</th>" in table for table in shown)


@pytest.mark.slow
def test_jupyter_shows_the_table_of_a_run(monkeypatch):
    """In the environment of the notebooks, see .ci/run: the others have no Jupyter."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    monkeypatch.setenv(QUICK, "1")
    notebook = nbformat.read(FOLDER / "runs_at_hand.ipynb", as_version=4)
    for cell in code_cells(notebook):
        cell["outputs"] = []
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    shown = tables(notebook)
    assert len(shown) == 2 and all("<td>all</td>" in table for table in shown)
    assert all("<th>R-hat</th>" in table for table in shown)  # not only as they were at first


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_runs_in_its_small_setting(name, tmp_path):
    path = tmp_path / f"{name}.py"
    path.write_text(script(read(name)), encoding="utf-8")
    settings = {
        QUICK: "1",
        "MPLBACKEND": "Agg",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5",
        "PYTHONUTF8": "1",
    }
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, f"{name}.ipynb:\n{done.stderr[-3000:]}"
